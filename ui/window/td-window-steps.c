/* The verbs of the transport. A step forward from the program's own place is a command to the
 * program; every other step moves the playhead over what was recorded.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "tape/td-navigate.h"

#define PLAY_INTERVAL_MS 150

typedef struct
{
  TdVerb verb;
  int direction;
  const char *command; /* for a live program, NULL: recorded only */
} Step;

static gboolean
is_live (TdWindow *self)
{
  TdProgramState state = td_session_get_state (self->session);
  return self->control && td_control_client_is_open (self->control)
         && (state == TD_PROGRAM_RUNNING || state == TD_PROGRAM_PAUSED);
}

static gboolean
at_head (TdWindow *self)
{
  TdMoment moment = td_session_get_moment (self->session);
  TdMoment head = td_session_get_head (self->session);
  return td_session_get_follow (self->session)
         || (moment.iteration == head.iteration && moment.event >= head.event);
}

/* ---- playing a recording ---- */

gboolean
td__window_stop_playing (TdWindow *self)
{
  if (!self->playing)
    return FALSE;
  g_clear_handle_id (&self->playing, g_source_remove);
  td__window_update_actions (self);
  return TRUE;
}

static gboolean
play_on (gpointer data)
{
  TdWindow *self = data;
  if (td_session_go (self->session, TD_VERB_STEP_OP, self->play_direction, NULL))
    return G_SOURCE_CONTINUE;
  self->playing = 0;
  td__window_update_actions (self);
  return G_SOURCE_REMOVE;
}

static void
start_playing (TdWindow *self, int direction)
{
  td__window_stop_playing (self);
  self->play_direction = direction;
  self->playing = g_timeout_add (PLAY_INTERVAL_MS, play_on, self);
  td__window_update_actions (self);
}

void
td__run_play (TdWindow *self, const char *parameter)
{
  if (!is_live (self))
    start_playing (self, 1);
  else if (td_session_get_state (self->session) == TD_PROGRAM_PAUSED)
    {
      td_session_set_follow (self->session, TRUE);
      td__window_send (self, "continue");
    }
}

void
td__run_pause (TdWindow *self, const char *parameter)
{
  if (!td__window_stop_playing (self))
    td__window_send (self, "pause");
}

void
td__run_play_pause (TdWindow *self, const char *parameter)
{
  gboolean runs
      = self->playing
        || (is_live (self) && td_session_get_state (self->session) == TD_PROGRAM_RUNNING);
  (runs ? td__run_pause : td__run_play) (self, parameter);
}

void
td__run_continue_back (TdWindow *self, const char *parameter)
{
  start_playing (self, -1);
}

/* ---- steps ---- */

static void
announce (TdWindow *self)
{
  TdIteration *iteration = td_session_get_current (self->session);
  TdMoment moment = td_session_get_moment (self->session);
  if (iteration && moment.event >= 0
      && (guint)moment.event < td_iteration_get_n_events (iteration))
    {
      g_autofree char *op
          = g_utf8_make_valid (td_iteration_get_op_name (iteration, (guint)moment.event), -1);
      g_autofree char *words = td_workspace_dup_scrubber_text (self->workspace);
      g_autofree char *text = g_strdup_printf (_ ("Step: %s, %s"), op, words);
      td_workspace_announce (self->workspace, text);
    }
  g_clear_pointer (&iteration, td_iteration_unref);
}

static void
do_step (TdWindow *self, const Step *step)
{
  g_autofree char *message = NULL;
  gboolean running = td_session_get_state (self->session) == TD_PROGRAM_RUNNING;
  td__window_stop_playing (self);
  if (step->command && is_live (self) && (running || at_head (self)))
    {
      if (running)
        td__window_send (self, "pause");
      td_session_begin_step (self->session, step->verb, step->direction);
      td_session_set_follow (self->session, TRUE);
      td__window_send (self, step->command);
      return;
    }
  gboolean moved = td_session_go (self->session, step->verb, step->direction, &message);
  if (message)
    {
      g_autofree char *valid = g_utf8_make_valid (message, -1);
      td__window_toast (self, valid);
    }
  if (moved && step->verb == TD_VERB_STEP_INTO)
    td_graph_view_reveal (td_graph_page_get_view (td_workspace_get_graph (self->workspace)),
                          td_session_get_moment (self->session).event);
  if (moved)
    announce (self);
}

// clang-format off
#define STEP(function, ...) \
  void function (TdWindow *self, const char *parameter) { static const Step step = { __VA_ARGS__ }; do_step (self, &step); }
STEP (td__run_step_op, TD_VERB_STEP_OP, 1, "step-op")
STEP (td__run_reverse_step_op, TD_VERB_STEP_OP, -1, NULL)
STEP (td__run_step_over, TD_VERB_STEP_OVER, 1, "step-over")
STEP (td__run_reverse_step_over, TD_VERB_STEP_OVER, -1, NULL)
STEP (td__run_step_into, TD_VERB_STEP_INTO, 1, "step-into")
STEP (td__run_reverse_step_into, TD_VERB_STEP_INTO, -1, NULL)
STEP (td__run_step_out, TD_VERB_STEP_OUT, 1, "step-out")
STEP (td__run_reverse_step_out, TD_VERB_STEP_OUT, -1, NULL)
STEP (td__run_next_iteration, TD_VERB_ITERATION, 1, "next-iteration")
STEP (td__run_previous_iteration, TD_VERB_ITERATION, -1, NULL)
STEP (td__run_first_event, TD_VERB_END, -1, NULL)
STEP (td__run_last_event, TD_VERB_END, 1, NULL)
STEP (td__run_next_anomaly, TD_VERB_ANOMALY, 1, NULL)
STEP (td__run_previous_anomaly, TD_VERB_ANOMALY, -1, NULL)
STEP (td__run_to_loss, TD_VERB_LOSS, 1, "run-to loss")
STEP (td__run_to_backward, TD_VERB_BACKWARD, 1, "run-to backward")
STEP (td__run_to_update, TD_VERB_UPDATE, 1, "run-to update")
STEP (td__run_where_from, TD_VERB_WHERE_FROM, 1, NULL)
STEP (td__run_where_used, TD_VERB_WHERE_USED, 1, NULL)
STEP (td__run_twin, TD_VERB_TWIN, 1, NULL)
// clang-format on

/* The event that the first selected key stands for in the iteration on show; -1: none. */
static gint
selected_event (TdWindow *self)
{
  guint n;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  TdIteration *iteration = n ? td_session_get_current (self->session) : NULL;
  gint event = iteration ? td_iteration_find (iteration, keys[0]) : -1;
  g_clear_pointer (&iteration, td_iteration_unref);
  return event;
}

/* Say how the path was found, or that there is none. */
static void
tell_path (TdWindow *self, TdIteration *iteration, gint from, gint to, guint n)
{
  g_autofree char *a
      = g_utf8_make_valid (td_iteration_get_op_name (iteration, (guint)from), -1);
  g_autofree char *b = g_utf8_make_valid (td_iteration_get_op_name (iteration, (guint)to), -1);
  g_autofree char *text
      = n > 0 ? g_strdup_printf (_ ("%u operations lead from %s, event %d, to %s, event %d"), n,
                                 a, from, b, to)
              : g_strdup_printf (_ ("Nothing leads from %s, event %d, to %s, event %d"), a,
                                 from, b, to);
  td__window_toast (self, text);
}

/* What is selected and the playhead are the ends; where they are the same, it is the way to the
 * loss that is asked for. */
void
td__run_path (TdWindow *self, const char *parameter)
{
  g_autoptr (TdIteration) iteration = td_session_get_current (self->session);
  gint playhead = td_session_get_moment (self->session).event, selected = selected_event (self);
  if (selected < 0)
    selected = playhead;
  gint other = selected == playhead && iteration ? td_navigate_loss (iteration) : playhead;
  if (!iteration || selected < 0 || other < 0)
    return;
  if (selected == other)
    {
      td__window_toast (self, _ ("Select the operation that the path begins at"));
      return;
    }
  gint from = MIN (selected, other), to = MAX (selected, other);
  g_autoptr (GArray) path = td_navigate_between (iteration, from, to);
  g_autofree guint64 *keys = g_new (guint64, MAX (path->len, 1));
  for (guint i = 0; i < path->len; i++) /* the inspector goes on with what it is about */
    {
      guint k = selected == from ? i : path->len - 1 - i;
      gint event = g_array_index (path, gint32, k);
      keys[i] = td_iteration_get_tape (iteration)->events[event].key;
    }
  if (path->len > 0)
    td_session_select_many (self->session, keys, path->len);
  tell_path (self, iteration, from, to, path->len);
}

/* Return the breakpoint that holds at this event in every iteration. Owner: caller. */
static char *
dup_place (TdIteration *iteration, guint event)
{
  const char *op = td_iteration_get_op_name (iteration, event);
  g_autofree char *site = td_iteration_dup_site (iteration, event);
  if (!*site || strpbrk (site, " \t\"'&|"))
    return g_strdup_printf ("op == %s", op);
  return g_strdup_printf ("line == %s && op == %s", site, op);
}

/* The place of the selection. A program that stands before it has not recorded it in this
 * iteration, but in the last whole one. Returns NULL when nothing is selected; Owner: caller.
 */
static char *
dup_selected_place (TdWindow *self)
{
  guint n;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  char *place = NULL;
  for (int i = 0; n && !place && i < 2; i++)
    {
      gint64 whole = td_session_get_last_complete (self->session);
      TdIteration *iteration = i == 0 ? td_session_get_current (self->session)
                                      : td_session_load_iteration (self->session, whole, NULL);
      gint event = iteration ? td_iteration_find (iteration, keys[0]) : -1;
      if (event >= 0)
        place = dup_place (iteration, (guint)event);
      g_clear_pointer (&iteration, td_iteration_unref);
    }
  return place;
}

/* In a recording the playhead goes to the selection; a live program runs there, once. */
void
td__run_to_cursor (TdWindow *self, const char *parameter)
{
  TdMoment moment = td_session_get_moment (self->session);
  gint event = selected_event (self);
  g_autofree char *place = is_live (self) ? dup_selected_place (self) : NULL;
  if (place)
    td__window_run_to (self, place);
  else if (event >= 0)
    td_session_set_moment (self->session, moment.iteration, event);
}

void
td__run_follow (TdWindow *self, const char *parameter)
{
  td_session_set_follow (self->session, !td_session_get_follow (self->session));
}

/* The breakpoint of the operation that is selected, else of the one at the playhead. */
void
td__run_toggle_breakpoint (TdWindow *self, const char *parameter)
{
  gint event = td_session_get_moment (self->session).event;
  TdIteration *iteration = td_session_get_current (self->session);
  g_autofree char *place = dup_selected_place (self);
  if (!place && iteration && event >= 0)
    place = dup_place (iteration, (guint)event);
  if (place)
    td__window_toggle_break (self, place);
  g_clear_pointer (&iteration, td_iteration_unref);
}

void
td__run_set_level (TdWindow *self, const char *parameter)
{
  static const char *const levels[] = { "graph", "stats", "values", NULL };
  if (!g_strv_contains (levels, parameter))
    {
      td__window_toast (self, _ ("A level is graph, stats or values."));
      return;
    }
  g_autofree char *command = g_strdup_printf ("level %s", parameter);
  td__window_send (self, command);
}

void
td__run_verify_static (TdWindow *self, const char *parameter)
{
  td__window_send (self, "static verify");
  td__window_toast (self, _ ("Static functions are verified at their next call."));
}

void
td__run_dynamically (TdWindow *self, const char *parameter)
{
  td__window_send (self, "static off");
  td__window_toast (self, _ ("Static functions run their code from their next call on."));
}

void
td__run_statically (TdWindow *self, const char *parameter)
{
  td__window_send (self, "static as-is");
  td__window_toast (self, _ ("Static functions run as the program says."));
}

static void
step_static (TdWindow *self, gboolean schedules, int direction)
{
  if (!td_workspace_step_static (self->workspace, schedules, direction))
    td__window_toast (self, schedules ? _ ("There is no other schedule of this function.")
                                      : _ ("There is no other static function."));
}

void
td__run_next_function (TdWindow *self, const char *parameter)
{
  step_static (self, FALSE, 1);
}

void
td__run_previous_function (TdWindow *self, const char *parameter)
{
  step_static (self, FALSE, -1);
}

void
td__run_next_schedule (TdWindow *self, const char *parameter)
{
  step_static (self, TRUE, 1);
}

void
td__run_previous_schedule (TdWindow *self, const char *parameter)
{
  step_static (self, TRUE, -1);
}

void
td__run_record (TdWindow *self, const char *parameter)
{
  self->level_low = !self->level_low;
  td__run_set_level (self, self->level_low ? "graph" : "values");
  td__window_toast (self,
                    self->level_low ? _ ("Recording structure only") : _ ("Recording values"));
}

/* tapedeck:UUID?i=4812&e=118&r=0&sel=KEY */
void
td__run_go_to (TdWindow *self, const char *parameter)
{
  const char *query = strchr (parameter, '?');
  TdMoment moment = td_session_get_moment (self->session);
  gint64 iteration = moment.iteration;
  gint event = moment.event;
  g_auto (GStrv) parts = g_strsplit (query ? query + 1 : parameter, "&", 16);
  for (char **part = parts; *part; part++)
    {
      if (g_str_has_prefix (*part, "i="))
        iteration = g_ascii_strtoll (*part + 2, NULL, 10);
      else if (g_str_has_prefix (*part, "e="))
        event = (gint)CLAMP (g_ascii_strtoll (*part + 2, NULL, 10), -1, G_MAXINT);
      else if (g_str_has_prefix (*part, "sel="))
        td_session_select (self->session, g_ascii_strtoull (*part + 4, NULL, 16));
    }
  td_session_set_moment (self->session, iteration, event);
}
