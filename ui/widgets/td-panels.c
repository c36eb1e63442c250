/* What panels share: profile, schedule, gradient table and curves of the session, each computed
 * at most once per change and only when a scene asks for it. SPDX-License-Identifier: MIT */
#include "widgets/td-panels.h"

#include <math.h>
#include <string.h>

#include "gradient/td-gradient.h"
#include "memory/td-memory.h"
#include "schedule/td-advice-scene.h"
#include "schedule/td-curve.h"
#include "schedule/td-gantt.h"
#include "schedule/td-schedule.h"
#include "schedule/td-statics.h"
#include "widgets/td-panel-view.h"
#include "widgets/td-scene-view.h"

#define GRADIENT_COLUMNS 40
#define HISTORY_COLUMNS 400

struct _TdPanels
{
  GObject parent;
  TdSession *session;
  GPtrArray *views; /* of TdSceneView, not owned */

  TdIteration *iteration; /* at the playhead */
  TdIteration *expected;  /* the same, with what is to come */
  TdMemoryProfile *profile, *previous;
  gint64 previous_number;
  TdSchedule *schedule;
  char *advice;
  TdStatics *statics;
  TdGantt *gantt;
  TdMemoryHistory *history;
  guint history_n; /* iterations there were when it was made */
  TdGradientTable *gradients;
  TdStaticness *staticness;
  guint staticness_n; /* iterations there were when it was made */
};

G_DEFINE_FINAL_TYPE (TdPanels, td_panels, G_TYPE_OBJECT)

/* ---- what is computed ---- */

static void
forget_iteration (TdPanels *self)
{
  g_clear_pointer (&self->profile, td_memory_profile_free);
  g_clear_pointer (&self->previous, td_memory_profile_free);
  g_clear_pointer (&self->schedule, td_schedule_free);
  g_clear_pointer (&self->advice, g_free);
  g_clear_pointer (&self->statics, td_statics_free);
  g_clear_pointer (&self->gantt, td_gantt_free);
  g_clear_pointer (&self->iteration, td_iteration_unref);
  g_clear_pointer (&self->expected, td_iteration_unref);
  self->previous_number = -1;
}

static void
forget_session (TdPanels *self)
{
  forget_iteration (self);
  g_clear_pointer (&self->history, td_memory_history_free);
  g_clear_pointer (&self->gradients, td_gradient_table_free);
  g_clear_pointer (&self->staticness, td_staticness_free);
  self->history_n = self->staticness_n = 0;
}

static TdMemoryProfile *
get_profile (TdPanels *self)
{
  if (!self->profile && self->iteration)
    self->profile = td_memory_profile_new (self->iteration);
  return self->profile;
}

/* The iteration before shows how it will go on where this one has not been yet. */
static TdMemoryProfile *
get_previous (TdPanels *self)
{
  gint64 wanted = td_iteration_get_number (self->iteration) - 1;
  if (wanted < 0 || td_iteration_is_complete (self->iteration))
    return NULL;
  if (!self->previous && self->previous_number != wanted)
    {
      TdIteration *before = td_session_load_iteration (self->session, wanted, NULL);
      if (before)
        self->previous = td_memory_profile_new (before);
      g_clear_pointer (&before, td_iteration_unref);
      self->previous_number = wanted;
    }
  return self->previous;
}

static TdMemoryHistory *
get_history (TdPanels *self)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  guint n = td_session_get_n_iterations (self->session);
  if (self->history && self->history_n == n)
    return self->history;
  g_clear_pointer (&self->history, td_memory_history_free);
  if (reader)
    self->history = td_memory_history_new (reader, HISTORY_COLUMNS);
  self->history_n = n;
  return self->history;
}

static TdGradientTable *
get_gradients (TdPanels *self)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  TdMoment moment = td_session_get_moment (self->session);
  if (!reader)
    return NULL;
  if (!self->gradients)
    self->gradients = td_gradient_table_new (reader);
  td_gradient_table_load (self->gradients, reader, moment.iteration, GRADIENT_COLUMNS);
  if (self->iteration && !td_iteration_is_complete (self->iteration))
    td_gradient_table_add (self->gradients, self->iteration);
  return self->gradients;
}

static TdSchedule *
get_schedule (TdPanels *self)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  if (!self->schedule && self->iteration)
    {
      self->schedule = td_schedule_new (self->expected);
      if (reader)
        self->advice = td_schedule_advice (reader, td_iteration_get_number (self->iteration));
    }
  return self->schedule;
}

/* ---- makers ---- */

typedef TdScene *(*MakePage) (TdPanels *self, const TdPanelView *view);

static TdScene *
make_memory_events (TdPanels *self, const TdPanelView *view)
{
  return td_memory_scene_events (self->iteration, get_profile (self), get_previous (self), 0,
                                 view);
}

static TdScene *
make_memory_iterations (TdPanels *self, const TdPanelView *view)
{
  TdMemoryHistory *history = get_history (self);
  return history ? td_memory_scene_iterations (history, view) : NULL;
}

static TdScene *
make_memory_blocks (TdPanels *self, const TdPanelView *view)
{
  return td_memory_scene_blocks (self->iteration, view);
}

static TdScene *
make_gradients (TdPanels *self, const TdPanelView *view)
{
  TdGradientTable *table = get_gradients (self);
  return table ? td_gradient_scene (table, self->iteration, view) : NULL;
}

static TdScene *
make_missing (TdPanels *self, const TdPanelView *view)
{
  TdGradientTable *table = get_gradients (self);
  return table ? td_gradient_scene_missing (table, view) : NULL;
}

static TdScene *
make_order (TdPanels *self, const TdPanelView *view)
{
  TdSchedule *schedule = get_schedule (self);
  return schedule ? td_schedule_scene (schedule, self->advice, view) : NULL;
}

/* The first chain, or the one that was called last, is what most programs have. */
static guint
busiest_chain (const TdStatics *statics)
{
  guint best = 0;

  for (guint i = 1; i < statics->n_chains; i++)
    if (statics->chains[i].state.n_replays > statics->chains[best].state.n_replays)
      best = i;
  return best;
}

static TdScene *
make_static (TdPanels *self, const TdPanelView *view)
{
  TdTapeReader *reader = td_session_get_reader (self->session);

  if (!self->statics && reader)
    self->statics = td_statics_new (reader, self->iteration);
  return self->statics
             ? td_statics_scene (self->statics, busiest_chain (self->statics), view)
             : td_panel_message (view, "No static chain",
                                 "td_static_new makes one; its schedule appears here.");
}

static TdScene *
make_timeline (TdPanels *self, const TdPanelView *view)
{
  return td_timeline_scene (self->iteration, view);
}

/* While a program runs the advice is made anew when a tenth has come to it: it reads structures
 * of the whole tape. */
static TdScene *
make_advice (TdPanels *self, const TdPanelView *view)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  guint n = td_session_get_n_iterations (self->session);
  if (!reader)
    return NULL;
  if (!self->staticness || n > self->staticness_n + self->staticness_n / 10)
    {
      g_clear_pointer (&self->staticness, td_staticness_free);
      self->staticness = td_staticness_new (reader);
      self->staticness_n = n;
    }
  return td_advice_scene (self->staticness, view);
}

static TdScene *
make_buffers (TdPanels *self, const TdPanelView *view)
{
  if (!self->gantt)
    self->gantt = td_gantt_new (self->iteration);
  return td_gantt_scene (self->gantt, 0, view);
}

static TdScene *
make_curves (TdPanels *self, const TdPanelView *view)
{
  return td_curves_scene (td_session_get_curves (self->session), view);
}

static TdScene *
make_iterations_strip (TdPanels *self, const TdPanelView *view)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  return reader ? td_deck_scene_iterations (td_session_get_curves (self->session), reader, 0, 0,
                                            view)
                : NULL;
}

static TdScene *
make_events_strip (TdPanels *self, const TdPanelView *view)
{
  return td_deck_scene_events (self->expected, FALSE, view);
}

typedef struct
{
  TdPanel panel;
  const char *name, *title, *label;
  MakePage make;
} Page;

static const Page pages[] = {
  { TD_PANEL_MEMORY, "events", "Events", "Memory by category over the events",
    make_memory_events },
  { TD_PANEL_MEMORY, "iterations", "Iterations", "Memory by category over the iterations",
    make_memory_iterations },
  { TD_PANEL_MEMORY, "blocks", "Blocks", "Blocks of memory alive at the playhead",
    make_memory_blocks },
  { TD_PANEL_GRADIENTS, "heatmap", "Heatmap", "Gradient norms of parameters by iteration",
    make_gradients },
  { TD_PANEL_GRADIENTS, "missing", "Missing", "Parameters without a gradient", make_missing },
  { TD_PANEL_SCHEDULE, "order", "Order", "Operations in order of execution", make_order },
  { TD_PANEL_SCHEDULE, "static", "Static", "The schedule of a static chain", make_static },
  { TD_PANEL_SCHEDULE, "timeline", "Timeline", "Operations over time", make_timeline },
  { TD_PANEL_SCHEDULE, "advice", "Advice", "What could be a static schedule", make_advice },
  { TD_PANEL_SCHEDULE, "buffers", "Buffers", "Buffers over the events, by address",
    make_buffers },
  { TD_PANEL_CURVES, "curves", "Curves", "Reported values over the iterations", make_curves },
};

static const Page strips[] = {
  { TD_N_PANELS, "iterations", "Iterations", "Iterations, loss and memory",
    make_iterations_strip },
  { TD_N_PANELS, "events", "Events", "Events of the iteration", make_events_strip },
};

static const struct
{
  const char *name, *title;
} panels[TD_N_PANELS] = { { "memory", "Memory" },
                          { "gradients", "Gradients" },
                          { "schedule", "Schedule" },
                          { "curves", "Curves" } };

const char *
td_panel_name (TdPanel panel)
{
  return panels[panel].name;
}

const char *
td_panel_title (TdPanel panel)
{
  return panels[panel].title;
}

typedef struct
{
  TdPanels *panels;
  const Page *page;
} PageData;

static TdScene *
make_page (gpointer data, double width, double height)
{
  PageData *page_data = data;
  TdPanels *self = page_data->panels;
  if (!self->session || !self->iteration)
    return NULL;
  TdPanelView view = td_panel_view_new (self->session, width, height);
  return page_data->page->make (self, &view);
}

/* ---- pointer ---- */

/* In a plot without a mark under the pointer, the place along the x axis is meant. */
static void
follow_axis (TdPanels *self, TdSceneView *view, const Page *page, double x)
{
  TdScene *scene = td_scene_view_get_scene (view);
  if (!scene || !td_scene_axes (scene))
    return;
  TdMoment moment = td_session_get_moment (self->session);
  gint64 value = (gint64)llround (td_scene_axis_value (scene, x));
  static const char *const over_events[] = { "events", "timeline", "buffers", NULL };
  gboolean by_event = g_strv_contains (over_events, page->name);
  if (by_event)
    td_session_set_moment (self->session, moment.iteration, (gint)value);
  else
    td_session_set_moment (self->session, value, moment.event);
}

static void
pressed (TdSceneView *view, TdSceneHit *hit, double x, double y, PageData *data)
{
  TdPanels *self = data->panels;
  if (!self->session)
    return;
  if (hit && hit->tag == TD_TAG_CELL && hit->row >= 0 && self->gradients
      && data->page->make == make_gradients)
    {
      if (hit->key)
        td_session_select (self->session, hit->key);
      follow_axis (self, view, data->page, x);
    }
  else if (hit && hit->tag != TD_TAG_PLAYHEAD && hit->tag != TD_TAG_HEAD)
    td_panel_view_follow (self->session, hit);
  else
    follow_axis (self, view, data->page, x);
}

static void
dragged (TdSceneView *view, TdSceneHit *hit, double x, double y, PageData *data)
{
  TdScene *scene = td_scene_view_get_scene (view);
  if (data->panels->session && scene && td_scene_axes (scene))
    follow_axis (data->panels, view, data->page, x);
}

/* ---- building ---- */

static void
view_gone (gpointer views, GObject *view)
{
  g_ptr_array_remove_fast (views, view);
}

static GtkWidget *
new_view (TdPanels *self, const Page *page)
{
  PageData *data = g_new (PageData, 1);
  *data = (PageData){ self, page };
  GtkWidget *view = td_scene_view_new (page->label, make_page, data);
  g_object_set_data_full (G_OBJECT (view), "page", data, g_free);
  g_signal_connect (view, "pressed", G_CALLBACK (pressed), data);
  g_signal_connect (view, "dragged", G_CALLBACK (dragged), data);
  gtk_widget_set_hexpand (view, TRUE);
  g_ptr_array_add (self->views, view);
  g_object_weak_ref (G_OBJECT (view), view_gone, self->views);
  return view;
}

GtkWidget *
td_panels_new_page (TdPanels *self, TdPanel panel, const char *page)
{
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    if (pages[i].panel == panel && strcmp (pages[i].name, page) == 0)
      return new_view (self, &pages[i]);
  return NULL;
}

GtkWidget *
td_panels_new_panel (TdPanels *self, TdPanel panel, GtkWidget **controls)
{
  GtkWidget *stack = gtk_stack_new ();
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    if (pages[i].panel == panel)
      {
        gtk_stack_add_titled (GTK_STACK (stack), new_view (self, &pages[i]), pages[i].name,
                              pages[i].title);
        n++;
      }
  gtk_widget_set_name (stack, panels[panel].name);
  *controls = NULL;
  if (n > 1)
    {
      *controls = gtk_stack_switcher_new ();
      gtk_stack_switcher_set_stack (GTK_STACK_SWITCHER (*controls), GTK_STACK (stack));
      gtk_widget_add_css_class (*controls, "td-small");
      gtk_widget_set_halign (*controls, GTK_ALIGN_START);
    }
  return stack;
}

GtkWidget *
td_panels_new_strip (TdPanels *self, gboolean events)
{
  return new_view (self, &strips[events ? 1 : 0]);
}

/* ---- session ---- */

static void
invalidate_all (TdPanels *self)
{
  for (guint i = 0; i < self->views->len; i++)
    td_scene_view_invalidate (g_ptr_array_index (self->views, i));
}

static void
show_moment (TdPanels *self)
{
  TdIteration *iteration = td_session_get_current (self->session);
  TdIteration *expected = td_session_get_expected (self->session);
  if (iteration != self->iteration || expected != self->expected)
    {
      forget_iteration (self);
      self->iteration = iteration ? td_iteration_ref (iteration) : NULL;
      self->expected = expected ? td_iteration_ref (expected) : NULL;
    }
  g_clear_pointer (&iteration, td_iteration_unref);
  g_clear_pointer (&expected, td_iteration_unref);
  invalidate_all (self);
}

void
td_panels_set_session (TdPanels *self, TdSession *session)
{
  static const char *const redraw[] = { "selection-changed", "head-changed" };
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  forget_session (self);
  g_set_object (&self->session, session);
  if (!session)
    return;
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (show_moment), self);
  g_signal_connect_swapped (session, "iterations-changed", G_CALLBACK (show_moment), self);
  for (guint i = 0; i < G_N_ELEMENTS (redraw); i++)
    g_signal_connect_swapped (session, redraw[i], G_CALLBACK (invalidate_all), self);
  show_moment (self);
}

static void
td_panels_finalize (GObject *object)
{
  TdPanels *self = TD_PANELS (object);
  td_panels_set_session (self, NULL);
  for (guint i = 0; i < self->views->len; i++)
    g_object_weak_unref (g_ptr_array_index (self->views, i), view_gone, self->views);
  g_ptr_array_unref (self->views);
  G_OBJECT_CLASS (td_panels_parent_class)->finalize (object);
}

static void
td_panels_class_init (TdPanelsClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = td_panels_finalize;
}

static void
td_panels_init (TdPanels *self)
{
  self->views = g_ptr_array_new ();
  self->previous_number = -1;
}

TdPanels *
td_panels_new (void)
{
  return g_object_new (TD_TYPE_PANELS, NULL);
}
