/* What is in use, and the layout of the perspective (td-memory-page.ui), whose other parts are
 * td-memory-growth.c, td-memory-oom.c, td-memory-stacks.c and td-memory-what-if.c.
 * SPDX-License-Identifier: MIT */
#include "pages/td-memory-page.h"

#include <glib/gi18n-lib.h>

#include "memory/td-memory.h"
#include "pages/td-memory-growth.h"
#include "pages/td-memory-oom.h"
#include "pages/td-memory-stacks.h"
#include "pages/td-memory-what-if.h"
#include "scene/td-sink.h"

#define HISTORY_COLUMNS 400

struct _TdMemoryPage
{
  TdPage parent;
  TdMemoryProfile *profile, *previous;
  gint64 previous_number;
  TdMemoryHistory *history;
  guint history_n;           /* iterations there were when it was made */
  TdRange history_range;     /* that it is of */
  GCancellable *history_job; /* a worker makes it; NULL: none does */
  TdMemoryGrowth *growth;
  TdMemoryOom *oom;
  TdMemoryStacks *stacks;
  TdMemoryWhatIf *what_if;
  GtkBox *pairs[3]; /* cards beside each other; the perspective owns them */
};

G_DEFINE_FINAL_TYPE (TdMemoryPage, td_memory_page, TD_TYPE_PAGE)

/* ---- what is computed ---- */

static TdMemoryProfile *
get_profile (TdMemoryPage *self)
{
  TdIteration *iteration = td_page_get_iteration (TD_PAGE (self));
  if (!self->profile && iteration)
    self->profile = td_memory_profile_new (iteration);
  return self->profile;
}

/* The iteration before shows how it will go on where this one has not been yet. */
static TdMemoryProfile *
get_previous (TdMemoryPage *self)
{
  TdIteration *iteration = td_page_get_iteration (TD_PAGE (self));
  gint64 wanted = td_iteration_get_number (iteration) - 1;
  if (wanted < 0 || td_iteration_is_complete (iteration))
    return NULL;
  if (!self->previous && self->previous_number != wanted)
    {
      TdIteration *before
          = td_session_load_iteration (td_page_get_session (TD_PAGE (self)), wanted, NULL);
      if (before)
        self->previous = td_memory_profile_new (before);
      g_clear_pointer (&before, td_iteration_unref);
      self->previous_number = wanted;
    }
  return self->previous;
}

typedef struct
{
  char *path;
  TdRange range;
} HistoryJob;

static void
history_job_free (gpointer data)
{
  g_free (((HistoryJob *)data)->path);
  g_free (data);
}

static void
history_free (gpointer history)
{
  td_memory_history_free (history);
}

/* The session's reader is the main thread's: this one reads with its own. */
static void
make_history (GTask *task, gpointer page, gpointer data, GCancellable *cancellable)
{
  HistoryJob *job = data;
  char why[256];
  TdTapeReader *reader = td_tape_reader_open (job->path, why, sizeof why);
  TdMemoryHistory *history
      = reader ? td_memory_history_new (reader, job->range, HISTORY_COLUMNS) : NULL;
  td_tape_reader_free (reader);
  g_task_return_pointer (task, history, history_free);
}

static void
history_made (GObject *source, GAsyncResult *result, gpointer data)
{
  TdMemoryPage *self = TD_MEMORY_PAGE (source);
  TdMemoryHistory *history = g_task_propagate_pointer (G_TASK (result), NULL);
  if (g_task_get_cancellable (G_TASK (result)) != self->history_job)
    {
      td_memory_history_free (history);
      return;
    }
  g_clear_object (&self->history_job);
  td_memory_history_free (self->history);
  self->history = history;
  td_page_invalidate (TD_PAGE (self));
}

static void
start_history (TdMemoryPage *self, TdRange range)
{
  HistoryJob *job = g_new (HistoryJob, 1);
  *job = (HistoryJob){ g_strdup (td_session_get_path (td_page_get_session (TD_PAGE (self)))),
                       range };
  self->history_job = g_cancellable_new ();
  g_autoptr (GTask) task = g_task_new (self, self->history_job, history_made, NULL);
  g_task_set_task_data (task, job, history_job_free);
  g_task_run_in_thread (task, make_history);
}

static void
forget_history (TdMemoryPage *self)
{
  g_cancellable_cancel (self->history_job);
  g_clear_object (&self->history_job);
  g_clear_pointer (&self->history, td_memory_history_free);
  self->history_n = 0;
}

/* Of a program that runs it is made again and again, from few iterations that changed; of a
 * long recording, once and by a worker: the picture comes when it is there. */
static TdMemoryHistory *
get_history (TdMemoryPage *self, TdRange range)
{
  TdSession *session = td_page_get_session (TD_PAGE (self));
  TdTapeReader *reader = td_page_get_reader (TD_PAGE (self));
  guint n = td_session_get_n_iterations (session);
  if ((self->history || self->history_job) && self->history_n == n
      && td_range_equal (self->history_range, range))
    return self->history;
  forget_history (self);
  self->history_n = n;
  self->history_range = range;
  if (reader && td_session_get_state (session) > TD_PROGRAM_PAUSED
      && td_session_is_large (session))
    start_history (self, range);
  else if (reader)
    self->history = td_memory_history_new (reader, range, HISTORY_COLUMNS);
  return self->history;
}

static void
forget_moment (TdPage *page)
{
  TdMemoryPage *self = TD_MEMORY_PAGE (page);
  g_clear_pointer (&self->profile, td_memory_profile_free);
  g_clear_pointer (&self->previous, td_memory_profile_free);
  self->previous_number = -1;
}

static void
forget_session (TdPage *page)
{
  forget_history (TD_MEMORY_PAGE (page));
}

/* ---- pictures ---- */

static TdScene *
make_events (TdPage *page, const TdPanelView *view)
{
  TdMemoryPage *self = TD_MEMORY_PAGE (page);
  return td_memory_scene_events (td_page_get_iteration (page), get_profile (self),
                                 get_previous (self), 0, view);
}

static TdScene *
make_iterations (TdPage *page, const TdPanelView *view)
{
  TdMemoryHistory *history = get_history (TD_MEMORY_PAGE (page), view->range);
  return history ? td_memory_scene_iterations (history, view) : NULL;
}

static TdScene *
make_blocks (TdPage *page, const TdPanelView *view)
{
  TdMemoryPage *self = TD_MEMORY_PAGE (page);
  return td_memory_scene_blocks_under (td_page_get_iteration (page), view,
                                       td_memory_stacks_get_call (self->stacks));
}

static const TdPicture pictures[] = {
  { "events", N_ ("Events"), N_ ("Memory by category over the events"), make_events,
    .axis = TD_AXIS_EVENTS },
  { "iterations", N_ ("Iterations"), N_ ("Memory by category over the iterations"),
    make_iterations, .spans = TRUE },
  { "blocks", N_ ("Blocks"), N_ ("Blocks of memory alive at the playhead"), make_blocks },
};

/* ---- as tables ---- */

static char *
dup_history (const TdMemoryHistory *history)
{
  GString *text = g_string_new ("iteration,peak_bytes\n");
  for (guint i = 0; i < history->n; i++)
    if (i == 0 || history->iteration[i] != history->iteration[i - 1])
      g_string_append_printf (text, "%" G_GINT64_FORMAT ",%" G_GUINT64_FORMAT "\n",
                              history->iteration[i], history->peak[i]);
  return g_string_free (text, FALSE);
}

static char *
dup_csv (TdPage *page, const char *name)
{
  TdMemoryPage *self = TD_MEMORY_PAGE (page);
  TdSession *session = td_page_get_session (page);
  TdIteration *iteration = td_page_get_iteration (page);
  TdSink sink = { 0 };
  if (!session || !iteration)
    return NULL;
  if (g_str_equal (name, "iterations"))
    {
      TdMemoryHistory *history = get_history (self, td_session_get_range (session));
      return history ? dup_history (history) : NULL;
    }
  sink.text = g_string_new (NULL);
  if (g_str_equal (name, "events"))
    td_memory_events_print (iteration, get_profile (self), "csv", &sink);
  else
    td_memory_blocks_print (iteration, td_session_get_moment (session).event, 0, "csv", &sink);
  return g_string_free (sink.text, FALSE);
}

/* ---- the perspective ---- */

static void
look (TdMemoryPage *self)
{
  td_memory_oom_look (self->oom);
  td_memory_growth_look (self->growth);
  td_memory_stacks_look (self->stacks);
  td_memory_what_if_look (self->what_if);
}

/* Picture `name` of a page is the last of the card of that name. */
static void
fill_card (GtkBuilder *builder, TdPage *page, const char *name)
{
  GtkWidget *card = GTK_WIDGET (gtk_builder_get_object (builder, name));
  GtkWidget *view = td_page_new_picture (page, name);
  gtk_widget_set_vexpand (view, TRUE);
  gtk_widget_add_css_class (view, "td-card-picture");
  gtk_box_append (GTK_BOX (card), view);
}

void
td_memory_page_set_slim (TdMemoryPage *self, gboolean slim)
{
  for (guint i = 0; i < G_N_ELEMENTS (self->pairs); i++)
    {
      gtk_orientable_set_orientation (GTK_ORIENTABLE (self->pairs[i]),
                                      slim ? GTK_ORIENTATION_VERTICAL
                                           : GTK_ORIENTATION_HORIZONTAL);
      gtk_box_set_homogeneous (self->pairs[i], !slim);
    }
}

GtkWidget *
td_memory_page_new_perspective (TdMemoryPage *self)
{
  g_autoptr (GtkBuilder) builder
      = gtk_builder_new_from_resource ("/io/github/tapedeck/Tapedeck/pages/td-memory-page.ui");
  GtkWidget *perspective = GTK_WIDGET (gtk_builder_get_object (builder, "perspective"));
  self->pairs[0] = GTK_BOX (gtk_builder_get_object (builder, "upper-pair"));
  self->pairs[1] = GTK_BOX (gtk_builder_get_object (builder, "lower-pair"));
  self->pairs[2] = GTK_BOX (gtk_builder_get_object (builder, "stacks-columns"));
  td_memory_growth_build (self->growth, builder);
  td_memory_oom_build (self->oom, builder);
  td_memory_stacks_build (self->stacks, builder);
  td_memory_what_if_build (self->what_if, builder);
  for (guint i = 0; i < G_N_ELEMENTS (pictures); i++)
    fill_card (builder, TD_PAGE (self), pictures[i].name);
  fill_card (builder, TD_PAGE (self->growth), "growth");
  fill_card (builder, TD_PAGE (self->growth), "holders");
  fill_card (builder, TD_PAGE (self->what_if), "what-if");
  g_signal_connect_object (perspective, "map", G_CALLBACK (look), self,
                           G_CONNECT_SWAPPED | G_CONNECT_AFTER);
  g_object_force_floating (g_object_ref (G_OBJECT (perspective))); /* the builder goes */
  return perspective;
}

/* ---- life ---- */

/* Its parts follow the session that the page follows. */
static void
session_changed (TdPage *page)
{
  TdMemoryPage *self = TD_MEMORY_PAGE (page);
  TdSession *session = td_page_get_session (page);
  td_page_set_session (TD_PAGE (self->growth), session);
  td_page_set_session (TD_PAGE (self->oom), session);
  td_page_set_session (TD_PAGE (self->stacks), session);
  td_page_set_session (TD_PAGE (self->what_if), session);
}

static void
td_memory_page_finalize (GObject *object)
{
  TdMemoryPage *self = TD_MEMORY_PAGE (object);
  g_object_unref (self->growth);
  g_object_unref (self->oom);
  g_object_unref (self->stacks);
  g_object_unref (self->what_if);
  G_OBJECT_CLASS (td_memory_page_parent_class)->finalize (object);
}

static void
td_memory_page_class_init (TdMemoryPageClass *klass)
{
  TdPageClass *class = TD_PAGE_CLASS (klass);
  G_OBJECT_CLASS (klass)->finalize = td_memory_page_finalize;
  class->name = "memory";
  class->title = N_ ("Memory");
  class->dup_csv = dup_csv;
  class->pictures = pictures;
  class->n_pictures = G_N_ELEMENTS (pictures);
  class->forget_moment = forget_moment;
  class->forget_session = forget_session;
  class->session_changed = session_changed;
}

static void
td_memory_page_init (TdMemoryPage *self)
{
  self->previous_number = -1;
  self->growth = td_memory_growth_new ();
  self->oom = td_memory_oom_new ();
  self->stacks = td_memory_stacks_new ();
  g_signal_connect_object (self->stacks, "filtered", G_CALLBACK (td_page_invalidate), self,
                           G_CONNECT_SWAPPED);
  self->what_if = td_memory_what_if_new ();
}

TdPage *
td_memory_page_new (void)
{
  return g_object_new (TD_TYPE_MEMORY_PAGE, NULL);
}
