/* The tapes of all ranks are read by a worker, with readers of their own, when the page is
 * first looked at; what they say of the iteration at the playhead is read here.
 * SPDX-License-Identifier: MIT */
#include "pages/td-ranks-page.h"

#include <glib/gi18n-lib.h>

#include "ranks/td-ranks-views.h"

/* While the program runs its tapes are read again so often at most, and for this share of the
 * time. */
#define LOOK_AGAIN_US (2 * G_USEC_PER_SEC)
#define LIVE_SHARE 10

/* In the order of the table. */
typedef enum
{
  PICTURE_FINDINGS,
  PICTURE_LANES,
  PICTURE_LADDER,
  PICTURE_MATRIX,
  N_PICTURES
} Picture;

struct _TdRanksPage
{
  TdPage parent;
  GtkWidget *views[N_PICTURES];                /* in the panel; NULL: not built, or gone */
  int widths[N_PICTURES], heights[N_PICTURES]; /* that their scenes need; -1: any */
  guint fitting;                               /* source that gives them these */
  GCancellable *looking;                       /* NULL: nobody does */
  TdRanks *ranks;                              /* NULL: not read, or not to be had */
  TdRanksStep *step;  /* of the moment; NULL: not read, or not to be had */
  char *why;          /* what there is instead */
  gboolean ran;       /* the program, when they were read */
  gint64 began, next; /* microseconds: to read, and when it may be done again */
  gboolean leads;     /* to the worst finding, from: */
  TdMoment from;
};

G_DEFINE_FINAL_TYPE (TdRanksPage, td_ranks_page, TD_TYPE_PAGE)

/* ---- reading all tapes ---- */

static void
forget_ranks (TdRanksPage *self)
{
  g_clear_pointer (&self->step, td_ranks_step_free); /* of these ranks */
  g_clear_pointer (&self->ranks, td_ranks_free);
  g_clear_pointer (&self->why, g_free);
}

static void
look_in_thread (GTask *task, gpointer source, gpointer path, GCancellable *cancellable)
{
  const char *const paths[] = { path };
  GError *error = NULL;
  TdRanks *ranks = td_ranks_open (paths, 1, &error);
  if (!ranks)
    {
      g_task_return_error (task, error);
      return;
    }
  td_ranks_look (ranks);
  g_task_return_pointer (task, ranks, (GDestroyNotify)td_ranks_free);
}

static void lead (TdRanksPage *self);

static void
on_looked (GObject *object, GAsyncResult *result, gpointer data)
{
  TdRanksPage *self = TD_RANKS_PAGE (object);
  g_autoptr (GError) error = NULL;
  TdRanks *ranks = g_task_propagate_pointer (G_TASK (result), &error);
  if (g_task_get_cancellable (G_TASK (result)) != self->looking)
    {
      g_clear_pointer (&ranks, td_ranks_free); /* another recording is open by now */
      return;
    }
  gint64 now = g_get_monotonic_time ();
  g_clear_object (&self->looking);
  self->next = now + MAX (LOOK_AGAIN_US, (now - self->began) * LIVE_SHARE);
  forget_ranks (self);
  self->ranks = ranks;
  self->why = ranks ? NULL : g_strdup (error->message);
  lead (self);
  td_page_invalidate (TD_PAGE (self));
}

static gboolean
is_running (TdPage *page)
{
  TdSession *session = td_page_get_session (page);
  return session && td_session_get_state (session) <= TD_PROGRAM_PAUSED;
}

static void
begin_to_look (TdRanksPage *self)
{
  self->looking = g_cancellable_new ();
  self->began = g_get_monotonic_time ();
  self->ran = is_running (TD_PAGE (self));
  g_autoptr (GTask) task = g_task_new (self, self->looking, on_looked, NULL);
  g_task_set_check_cancellable (task, FALSE);
  g_task_set_task_data (
      task, g_strdup (td_session_get_path (td_page_get_session (TD_PAGE (self)))), g_free);
  g_task_run_in_thread (task, look_in_thread);
}

static void
forget_moment (TdPage *page)
{
  g_clear_pointer (&TD_RANKS_PAGE (page)->step, td_ranks_step_free);
}

static void
forget_session (TdPage *page)
{
  TdRanksPage *self = TD_RANKS_PAGE (page);
  if (self->looking)
    g_cancellable_cancel (self->looking);
  g_clear_object (&self->looking);
  self->leads = FALSE;
  forget_ranks (self);
}

/* Their tapes grow while the program runs: what was read then is read again, now and then, and
 * when it has ended. Until that is done the page shows what it has. */
static void
moment_shown (TdPage *page)
{
  TdRanksPage *self = TD_RANKS_PAGE (page);
  if ((self->ranks || self->why) && self->ran && !self->looking
      && (!is_running (page) || g_get_monotonic_time () >= self->next))
    begin_to_look (self);
}

/* ---- pictures ---- */

static gboolean
fit_all (gpointer data)
{
  TdRanksPage *self = data;
  self->fitting = 0;
  for (guint i = 0; i < N_PICTURES; i++)
    if (self->views[i])
      gtk_widget_set_size_request (self->views[i], self->widths[i], self->heights[i]);
  return G_SOURCE_REMOVE;
}

static gboolean
is_as_wide_as_its_ranks (Picture picture)
{
  return picture == PICTURE_LADDER || picture == PICTURE_MATRIX;
}

/* The more ranks, arrays and calls, the higher a picture; a size is not asked for while one is
 * drawn. */
static TdScene *
fit (TdPage *page, Picture picture, TdScene *scene)
{
  TdRanksPage *self = TD_RANKS_PAGE (page);
  int height = (int)td_scene_height (scene),
      width = is_as_wide_as_its_ranks (picture) ? (int)td_scene_width (scene) : -1;
  if (self->heights[picture] == height && self->widths[picture] == width)
    return scene;
  self->heights[picture] = height;
  self->widths[picture] = width;
  if (self->fitting == 0)
    self->fitting = g_idle_add (fit_all, self);
  return scene;
}

/* What is larger than the panel is scrolled: it is drawn as large as it needs to be. */
static TdPanelView
natural_view (const TdPanelView *view, Picture picture)
{
  TdPanelView natural = *view;
  natural.height = 0;
  if (is_as_wide_as_its_ranks (picture))
    natural.width = 0;
  return natural;
}

/* What is shown where there are no ranks to show; NULL: there are. */
static TdScene *
make_message (TdPage *page, const TdPanelView *view)
{
  TdRanksPage *self = TD_RANKS_PAGE (page);
  TdTapeReader *reader = td_page_get_reader (page);
  if (reader && td_tape_reader_header (reader)->n_ranks < 2)
    return td_panel_message (
        view, _ ("This recording has one rank"),
        _ ("Of a program that runs as several (tapedeck run -n 4) they are "
           "compared here."));
  if (reader && !self->ranks && !self->why && !self->looking)
    begin_to_look (self);
  if (self->why)
    return td_panel_message (view, _ ("The ranks cannot be compared"), self->why);
  if (!self->ranks)
    return td_panel_message (view, _ ("Reading the tapes of all ranks"), "");
  return NULL;
}

static TdScene *
make_findings (TdPage *page, const TdPanelView *view)
{
  TdPanelView natural = natural_view (view, PICTURE_FINDINGS);
  TdScene *message = make_message (page, view);
  return message ? message
                 : fit (page, PICTURE_FINDINGS,
                        td_ranks_findings_scene (TD_RANKS_PAGE (page)->ranks, &natural));
}

static TdScene *
make_step (TdPage *page, const TdPanelView *view, Picture picture,
           TdScene *(*draw) (TdRanksStep *step, const TdPanelView *view))
{
  TdRanksPage *self = TD_RANKS_PAGE (page);
  TdPanelView natural = natural_view (view, picture);
  TdScene *message = make_message (page, view);
  g_autoptr (GError) error = NULL;
  if (message)
    return message;
  if (!self->step || td_ranks_step_get_number (self->step) != view->iteration)
    {
      g_clear_pointer (&self->step, td_ranks_step_free);
      self->step = td_ranks_step_new (self->ranks, view->iteration, &error);
    }
  return self->step ? fit (page, picture, draw (self->step, &natural))
                    : td_panel_message (view, _ ("Not on the tapes"), error->message);
}

/* What is on show was read for that. */
static char *
dup_csv (TdPage *page, const char *name)
{
  static const struct
  {
    const char *picture;
    char *(*print) (TdRanksStep *step, const char *format);
  } prints[] = { { "lanes", td_ranks_lanes_print },
                 { "ladder", td_ranks_ladder_print },
                 { "matrix", td_ranks_matrix_print } };
  TdRanksPage *self = TD_RANKS_PAGE (page);
  for (guint i = 0; self->step && i < G_N_ELEMENTS (prints); i++)
    if (g_str_equal (name, prints[i].picture))
      return prints[i].print (self->step, "csv");
  return NULL;
}

static TdScene *
make_lanes (TdPage *page, const TdPanelView *view)
{
  return make_step (page, view, PICTURE_LANES, td_ranks_lanes_scene);
}

static TdScene *
make_ladder (TdPage *page, const TdPanelView *view)
{
  return make_step (page, view, PICTURE_LADDER, td_ranks_ladder_scene);
}

static TdScene *
make_matrix (TdPage *page, const TdPanelView *view)
{
  return make_step (page, view, PICTURE_MATRIX, td_ranks_matrix_scene);
}

/* The operation that a finding about this array is seen at: the last that took it, which is its
 * update; -1: none here. */
static gint
find_use (TdIteration *iteration, const char *array)
{
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  for (guint v = 0; v < tape->n_vars; v++)
    {
      guint n;
      const gint32 *uses = td_iteration_get_consumers (iteration, v, &n);
      if (n > 0 && g_str_equal (td_iteration_get_var_name (iteration, v), array))
        return uses[n - 1];
    }
  return -1;
}

static void
go_to_array (TdPage *page, gint64 number, const char *array)
{
  TdSession *session = td_page_get_session (page);
  td_session_set_moment (session, number, G_MAXINT);
  g_autoptr (TdIteration) iteration = td_session_get_current (session);
  gint event = array && iteration && td_session_get_moment (session).iteration == number
                   ? find_use (iteration, array)
                   : -1;
  if (event < 0)
    return;
  td_session_set_moment (session, number, event);
  td_session_select (session, td_iteration_get_tape (iteration)->events[event].key);
}

/* To the worst that is no note; a rank that stays says more than one that is changed unasked.
 */
static void
lead (TdRanksPage *self)
{
  TdPage *page = TD_PAGE (self);
  TdMoment now = td_session_get_moment (td_page_get_session (page));
  const TdRanksFinding *worst = NULL;
  gboolean leads = self->leads && self->ranks && !is_running (page)
                   && now.iteration == self->from.iteration && now.event == self->from.event;
  self->leads = FALSE;
  for (guint i = 0; leads && !worst && i < td_ranks_get_n_findings (self->ranks); i++)
    {
      const TdRanksFinding *f = td_ranks_get_finding (self->ranks, i);
      if (f->level != TD_RANKS_NOTE && f->iteration >= 0)
        worst = f;
    }
  if (worst)
    go_to_array (page, worst->iteration, worst->array);
}

void
td_ranks_page_lead (TdRanksPage *self)
{
  self->leads = TRUE;
  self->from = td_session_get_moment (td_page_get_session (TD_PAGE (self)));
  if (self->ranks)
    lead (self);
}

/* A finding leads to its iteration and to what takes its array, on the rank that it is of. */
static TdPress
press_finding (TdPage *page, const char *name, const TdSceneHit *hit, GtkWidget *view)
{
  TdRanksPage *self = TD_RANKS_PAGE (page);
  if (!hit || hit->tag != TD_TAG_ROW || !self->ranks
      || hit->data >= td_ranks_get_n_findings (self->ranks))
    return TD_PRESS_TAKEN;
  const TdRanksFinding *f = td_ranks_get_finding (self->ranks, (guint)hit->data);
  g_autofree char *array = g_strdup (f->array); /* another rank's session has other findings */
  gint64 iteration = f->iteration;
  if (iteration < 0)
    return TD_PRESS_TAKEN;
  if (f->n_ranks == 1 && f->ranks[0] != td_tape_reader_header (td_page_get_reader (page))->rank)
    {
      g_autofree char *rank = g_strdup_printf ("%u", f->ranks[0]);
      gtk_widget_activate_action (view, "win.rank", "s", rank);
    }
  go_to_array (page, iteration, array);
  return TD_PRESS_TAKEN;
}

/* Their rows stand for no operation. */
static TdPress
press_nothing (TdPage *page, const char *name, const TdSceneHit *hit, GtkWidget *view)
{
  return TD_PRESS_TAKEN;
}

// clang-format off
static const TdPicture pictures[N_PICTURES] = {
  [PICTURE_FINDINGS] = { "findings", N_ ("Findings"), N_ ("Where the ranks part"), make_findings, press_finding,
    .axis = TD_AXIS_TIME, .still = TRUE },
  [PICTURE_LANES] = { "lanes", N_ ("Lanes"), N_ ("What each rank computed and waited"), make_lanes, press_nothing,
    .axis = TD_AXIS_TIME, .still = TRUE },
  [PICTURE_LADDER] = { "ladder", N_ ("Ladder"), N_ ("Calls that ranks make together"), make_ladder, press_nothing,
    .axis = TD_AXIS_TIME, .still = TRUE },
  [PICTURE_MATRIX] = { "matrix", N_ ("Matrix"), N_ ("Which arrays are equal on which ranks"), make_matrix, press_nothing,
    .axis = TD_AXIS_TIME, .still = TRUE },
};
// clang-format on

static GtkWidget *
wrap (TdPage *page, const char *name, GtkWidget *view)
{
  TdRanksPage *self = TD_RANKS_PAGE (page);
  GtkWidget *scrolled = gtk_scrolled_window_new ();
  for (guint i = 0; i < N_PICTURES; i++)
    if (g_str_equal (pictures[i].name, name))
      g_set_weak_pointer (&self->views[i], view);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scrolled), view);
  return scrolled;
}

static void
td_ranks_page_finalize (GObject *object)
{
  TdRanksPage *self = TD_RANKS_PAGE (object);
  g_clear_handle_id (&self->fitting, g_source_remove);
  for (guint i = 0; i < N_PICTURES; i++)
    g_clear_weak_pointer (&self->views[i]);
  forget_session (TD_PAGE (object));
  G_OBJECT_CLASS (td_ranks_page_parent_class)->finalize (object);
}

static void
td_ranks_page_class_init (TdRanksPageClass *klass)
{
  TdPageClass *class = TD_PAGE_CLASS (klass);
  G_OBJECT_CLASS (klass)->finalize = td_ranks_page_finalize;
  class->name = "ranks";
  class->title = N_ ("Ranks");
  class->dup_csv = dup_csv;
  class->pictures = pictures;
  class->n_pictures = G_N_ELEMENTS (pictures);
  class->forget_moment = forget_moment;
  class->forget_session = forget_session;
  class->moment_shown = moment_shown;
  class->wrap = wrap;
}

static void
td_ranks_page_init (TdRanksPage *self)
{
}

TdPage *
td_ranks_page_new (void)
{
  return g_object_new (TD_TYPE_RANKS_PAGE, NULL);
}
