/* The session: moment, selection, follow, history. The program's side is in
 * td-session-program.c, iterations in td-session-load.c, verbs in td-session-verbs.c.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-navigate.h"
#include "tape/td-session-private.h"

#include "schedule/td-curve.h"

#include <glib/gstdio.h>
#include <string.h>

#define CACHE_BYTES (256u << 20)
#define MAX_HISTORY 256
/* Of the iterations that are over: 8 MB, and far more than there are pixels. */
#define MAX_SUMMARIES (1u << 17)
/* Values of a reported curve; 2.5 MB each. */
#define MAX_CURVE_VALUES (1u << 16)

G_DEFINE_FINAL_TYPE (TdSession, td_session, G_TYPE_OBJECT)

static guint signals[TD_N_SESSION_SIGNALS];

void
td__session_emit (TdSession *self, guint signal)
{
  g_signal_emit (self, signals[signal], 0, (gint64)0);
}

static void
td_session_dispose (GObject *object)
{
  td__session_stop_worker (TD_SESSION (object));
  G_OBJECT_CLASS (td_session_parent_class)->dispose (object);
}

static void
td_session_finalize (GObject *object)
{
  TdSession *self = TD_SESSION (object);

  g_clear_pointer (&self->cache, td__iteration_cache_free);
  g_clear_pointer (&self->by_hand, g_ptr_array_unref);
  g_clear_pointer (&self->recomputed, g_ptr_array_unref);
  g_clear_pointer (&self->tape, td__tape_handle_unref);
  g_clear_pointer (&self->worker_tape, td__tape_handle_unref);
  g_clear_pointer (&self->expected, td_iteration_unref);
  g_clear_pointer (&self->expected_of, td_iteration_unref);
  td_curves_free (self->curves);
  g_array_unref (self->history);
  g_array_unref (self->trail);
  g_array_unref (self->selection);
  g_array_unref (self->notices);
  g_string_chunk_free (self->texts);
  g_mutex_clear (&self->lock);
  g_free (self->path);
  g_free (self->name);
  g_free (self->reason);
  G_OBJECT_CLASS (td_session_parent_class)->finalize (object);
}

static void
td_session_class_init (TdSessionClass *class)
{
  static const char *const names[TD_N_SESSION_SIGNALS] = {
    [TD_SIGNAL_MOMENT] = "moment-changed",         [TD_SIGNAL_SELECTION] = "selection-changed",
    [TD_SIGNAL_HOVER] = "hover-changed",           [TD_SIGNAL_HEAD] = "head-changed",
    [TD_SIGNAL_ITERATIONS] = "iterations-changed", [TD_SIGNAL_FOLLOW] = "follow-changed",
    [TD_SIGNAL_HISTORY] = "history-changed",       [TD_SIGNAL_NOTICES] = "notices-changed",
    [TD_SIGNAL_LOADED] = "iteration-loaded",       [TD_SIGNAL_RANGE] = "range-changed",
  };
  GObjectClass *object_class = G_OBJECT_CLASS (class);

  object_class->dispose = td_session_dispose;
  object_class->finalize = td_session_finalize;
  for (guint i = 0; i < TD_N_SESSION_SIGNALS; i++)
    signals[i] = i == TD_SIGNAL_LOADED
                     ? g_signal_new (names[i], TD_TYPE_SESSION, G_SIGNAL_RUN_LAST, 0, NULL,
                                     NULL, NULL, G_TYPE_NONE, 1, G_TYPE_INT64)
                     : g_signal_new (names[i], TD_TYPE_SESSION, G_SIGNAL_RUN_LAST, 0, NULL,
                                     NULL, NULL, G_TYPE_NONE, 0);
}

static void
td_session_init (TdSession *self)
{
  g_mutex_init (&self->lock);
  self->cache = td__iteration_cache_new (CACHE_BYTES);
  self->curves = td_curves_new ();
  self->history = g_array_new (FALSE, FALSE, sizeof (TdMoment));
  self->trail = g_array_new (FALSE, FALSE, sizeof (TdTrailStep));
  self->selection = g_array_new (FALSE, FALSE, sizeof (guint64));
  self->step = TD_SESSION_NO_STEP;
  self->notices = g_array_new (FALSE, FALSE, sizeof (TdNotice));
  self->texts = g_string_chunk_new (1024);
  self->reason = g_strdup ("");
  self->moment = self->head = (TdMoment){ 0, -1, -1 };
  self->live_number = -1;
  self->expected_from = -1;
}

/* A finished recording opens on the loss of its last whole iteration, the place that both ways
 * lead from: what made it, and what backward makes of it. One that crashed opens where it did.
 */
static void
place_at_start (TdSession *self)
{
  gint64 last = td_session_get_last_complete (self);
  g_autoptr (TdIteration) iteration = NULL;

  if (self->state == TD_PROGRAM_RUNNING || self->state == TD_PROGRAM_PAUSED)
    self->follow = TRUE;
  self->moment = self->head;
  if (self->state == TD_PROGRAM_ENDED && last >= 0)
    iteration = td_session_load_iteration (self, last, NULL);
  if (iteration)
    {
      gint loss = td_navigate_loss (iteration);
      gint end = (gint)td_iteration_get_n_events (iteration) - 1;

      self->moment.iteration = last;
      self->moment.event = loss >= 0 ? loss : end;
    }
  g_array_append_val (self->history, self->moment);
}

/* Open the reader and read what it says of the program. */
static TdSession *
session_new (const char *path, guint max_summaries, GError **error)
{
  TdTapeHandle *tape = td__tape_handle_open (path, max_summaries, error);
  TdSession *self;

  if (!tape)
    return NULL;
  self = g_object_new (TD_TYPE_SESSION, NULL);
  self->tape = tape;
  self->path = g_strdup (path);
  td__session_read_program (self);
  return self;
}

TdSession *
td_session_open (const char *path, GError **error)
{
  TdSession *self = session_new (path, 0, error);

  if (!self)
    return NULL;
  self->worker_tape = td__tape_handle_ref (self->tape);
  self->moment = self->head;
  g_array_append_val (self->history, self->moment);
  return self;
}

TdSession *
td_session_open_bounded (const char *path, GError **error)
{
  TdSession *self = session_new (path, MAX_SUMMARIES, error);

  if (!self)
    return NULL;
  td__session_start_worker (self);
  self->bounded = TRUE;
  td_curves_set_limit (self->curves, MAX_CURVE_VALUES);
  td__session_take_reports (self);
  place_at_start (self);
  return self;
}

TdSession *
td_session_new_for_iterations (TdIteration **iterations, guint n)
{
  TdSession *self = g_object_new (TD_TYPE_SESSION, NULL);

  self->path = g_strdup ("");
  self->name = g_strdup ("");
  self->state = TD_PROGRAM_ENDED;
  self->by_hand = g_ptr_array_new_with_free_func ((GDestroyNotify)td_iteration_unref);
  for (guint i = 0; i < n; i++)
    g_ptr_array_add (self->by_hand, iterations[i]);
  if (n)
    {
      self->head.iteration = td_iteration_get_number (iterations[n - 1]);
      self->head.event = (gint)td_iteration_get_n_events (iterations[n - 1]) - 1;
    }
  self->moment = self->head;
  g_array_append_val (self->history, self->moment);
  return self;
}

const char *
td_session_get_path (TdSession *self)
{
  return self->path;
}

const char *
td_session_get_name (TdSession *self)
{
  return self->name;
}

gboolean
td_session_is_large (TdSession *self)
{
  GStatBuf info;

  return self->tape && g_stat (self->path, &info) == 0
         && info.st_size > (goffset)TD_SESSION_SMALL_BYTES;
}

TdTapeReader *
td_session_get_reader (TdSession *self)
{
  return self->tape ? self->tape->reader : NULL;
}

/* A reader that is to stay small gives its reports away. */
void
td__session_take_reports (TdSession *self)
{
  if (self->bounded)
    td_curves_take (self->curves, self->tape->reader);
  else
    td_curves_update (self->curves, self->tape->reader);
}

TdCurves *
td_session_get_curves (TdSession *self)
{
  return self->curves;
}

/* ---- moment ---- */

TdMoment
td_session_get_moment (TdSession *self)
{
  return self->moment;
}

void
td__session_place (TdSession *self, TdMoment moment)
{
  if (memcmp (&moment, &self->moment, sizeof moment) == 0)
    return;
  self->moment = moment;
  td__session_emit (self, TD_SIGNAL_MOMENT);
}

/* Steps change the newest entry; jumps add one. */
static void
remember (TdSession *self, TdMoment moment)
{
  TdMoment *last = &g_array_index (self->history, TdMoment, self->history_at);

  if (last->iteration == moment.iteration && ABS (last->event - moment.event) <= 1)
    {
      *last = moment;
      return;
    }
  g_array_set_size (self->history, self->history_at + 1);
  g_array_append_val (self->history, moment);
  if (self->history->len > MAX_HISTORY)
    g_array_remove_index (self->history, 0);
  self->history_at = self->history->len - 1;
  td__session_emit (self, TD_SIGNAL_HISTORY);
}

void
td_session_set_moment (TdSession *self, gint64 iteration, gint event)
{
  TdMoment moment = { self->moment.rank, event, iteration };
  TdIteration *loaded = td_session_load_iteration (self, iteration, NULL);

  if (!loaded)
    return;
  moment.event = CLAMP (event, -1, (gint)td_iteration_get_n_events (loaded) - 1);
  td_iteration_unref (loaded);
  if (memcmp (&moment, &self->moment, sizeof moment) == 0)
    return;
  td_session_set_follow (self, FALSE);
  remember (self, moment);
  td__session_place (self, moment);
}

gboolean
td_session_get_follow (TdSession *self)
{
  return self->follow;
}

void
td_session_set_follow (TdSession *self, gboolean follow)
{
  if (self->follow == !!follow)
    return;
  self->follow = !!follow;
  td__session_emit (self, TD_SIGNAL_FOLLOW);
  if (self->follow)
    td__session_place (self, self->head);
}

gboolean
td_session_can_go_back (TdSession *self)
{
  return self->history_at > 0;
}

gboolean
td_session_can_go_forward (TdSession *self)
{
  return self->history_at + 1 < self->history->len;
}

static void
go_in_history (TdSession *self, gint step)
{
  if (step < 0 ? !td_session_can_go_back (self) : !td_session_can_go_forward (self))
    return;
  self->history_at += (guint)step;
  td_session_set_follow (self, FALSE);
  td__session_place (self, g_array_index (self->history, TdMoment, self->history_at));
  td__session_emit (self, TD_SIGNAL_HISTORY);
}

void
td_session_go_back (TdSession *self)
{
  go_in_history (self, -1);
}

void
td_session_go_forward (TdSession *self)
{
  go_in_history (self, 1);
}

/* ---- selection ---- */

const guint64 *
td_session_get_selection (TdSession *self, guint *n)
{
  *n = self->selection->len;
  return (const guint64 *)(gpointer)self->selection->data;
}

static gint
find_selected (TdSession *self, guint64 key)
{
  for (guint i = 0; i < self->selection->len; i++)
    if (g_array_index (self->selection, guint64, i) == key)
      return (gint)i;
  return -1;
}

gboolean
td_session_is_selected (TdSession *self, guint64 key)
{
  return find_selected (self, key) >= 0;
}

static gboolean
are_selected (TdSession *self, const guint64 *keys, guint n)
{
  return n == self->selection->len
         && (n == 0 || memcmp (keys, self->selection->data, n * sizeof *keys) == 0);
}

void
td_session_select_many (TdSession *self, const guint64 *keys, guint n)
{
  if (are_selected (self, keys, n) && self->step == TD_SESSION_NO_STEP)
    return;
  self->step = TD_SESSION_NO_STEP;
  g_array_set_size (self->selection, 0);
  for (guint i = 0; i < n; i++)
    if (keys[i] && find_selected (self, keys[i]) < 0)
      g_array_append_val (self->selection, keys[i]);
  td__session_emit (self, TD_SIGNAL_SELECTION);
}

void
td_session_select (TdSession *self, guint64 key)
{
  td_session_select_many (self, &key, key ? 1 : 0);
}

guint
td_session_get_step (TdSession *self)
{
  return self->step;
}

void
td_session_set_step (TdSession *self, guint step)
{
  if (self->step == step || self->selection->len != 1)
    return;
  self->step = step;
  td__session_emit (self, TD_SIGNAL_SELECTION);
}

void
td_session_select_step (TdSession *self, guint64 key, guint step)
{
  if (key && are_selected (self, &key, 1))
    {
      td_session_set_step (self, step);
      return;
    }
  g_array_set_size (self->selection, 0);
  if (key)
    g_array_append_val (self->selection, key);
  self->step = key ? step : TD_SESSION_NO_STEP;
  td__session_emit (self, TD_SIGNAL_SELECTION);
}

guint64
td_session_get_hover (TdSession *self)
{
  return self->hover;
}

void
td_session_set_hover (TdSession *self, guint64 key)
{
  if (self->hover == key)
    return;
  self->hover = key;
  td__session_emit (self, TD_SIGNAL_HOVER);
}

TdRange
td_session_get_range (TdSession *self)
{
  return self->range;
}

TdRange
td_session_get_run (TdSession *self)
{
  guint n = td_session_get_n_iterations (self);

  return n > 0 ? (TdRange){ td_session_get_iteration_number (self, 0),
                            td_session_get_iteration_number (self, n - 1) + 1 }
               : (TdRange){ 0, 0 };
}

/* What is all there is may grow: it is no range. */
void
td_session_set_range (TdSession *self, TdRange range)
{
  TdRange run = td_session_get_run (self);

  if (!td_range_is_all (range) && !td_range_is_all (run))
    range = (TdRange){ CLAMP (range.first, run.first, run.end - 1),
                       CLAMP (range.end, run.first + 1, run.end) };
  if (td_range_is_all (range) || (range.first <= run.first && range.end >= run.end))
    range = (TdRange){ 0, 0 };
  if (td_range_equal (self->range, range))
    return;
  self->range = range;
  td__session_emit (self, TD_SIGNAL_RANGE);
}

void
td_session_find_range (TdSession *self, guint *from, guint *to)
{
  *from = 0;
  *to = td_session_get_n_iterations (self);
  while (*from < *to
         && !td_range_has (self->range, td_session_get_iteration_number (self, *from)))
    ++*from;
  while (*to > *from
         && !td_range_has (self->range, td_session_get_iteration_number (self, *to - 1)))
    --*to;
}

void
td_session_set_cache_bytes (TdSession *self, gsize bytes)
{
  g_return_if_fail (TD_IS_SESSION (self));
  td__iteration_cache_set_budget (self->cache, bytes);
}
