/* What panels share: profile, schedule, gradient table and curves of the session, each computed
 * at most once per change and only when a scene asks for it. SPDX-License-Identifier: MIT */
#include "widgets/td-panels-private.h"

#include <math.h>
#include <string.h>

#include "schedule/td-advice-scene.h"
#include "schedule/td-curve.h"
#include "widgets/td-scene-view.h"

#define GRADIENT_COLUMNS 40
#define HISTORY_COLUMNS 400

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
  td__panels_forget_held (self);
  td__panels_forget_oom (self);
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

TdSchedule *
td__panels_get_schedule (TdPanels *self)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  if (!self->schedule && self->iteration)
    {
      self->schedule = td_schedule_new (self->expected);
      if (reader)
        self->advice = td_schedule_advice (reader, td_iteration_get_number (self->iteration),
                                           td_schedule_count_replayed (self->iteration));
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
  TdSchedule *schedule = td__panels_get_schedule (self);
  return schedule ? td_schedule_scene (schedule, self->advice, view) : NULL;
}

TdStatics *
td__panels_get_statics (TdPanels *self, guint *chain)
{
  TdTapeReader *reader = self->session ? td_session_get_reader (self->session) : NULL;

  if (!self->statics && reader && self->iteration)
    self->statics = td_statics_new (reader, self->iteration);
  if (!self->statics)
    return NULL;
  *chain = td_statics_busiest (self->statics);
  for (guint i = 0; i < self->statics->n_chains; i++)
    if (self->statics->chains[i].chain->id == self->chain_id)
      *chain = i;
  if (self->schedule_id > 0)
    td_statics_choose (self->statics, *chain, self->schedule_id);
  return self->statics;
}

static TdScene *
make_static (TdPanels *self, const TdPanelView *view)
{
  guint chain;
  TdStatics *statics = td__panels_get_statics (self, &chain);

  return statics ? td_statics_scene (statics, chain, view)
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
TdStaticness *
td__panels_get_staticness (TdPanels *self)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  guint n = td_session_get_n_iterations (self->session);
  if (reader && (!self->staticness || n > self->staticness_n + self->staticness_n / 10))
    {
      g_clear_pointer (&self->staticness, td_staticness_free);
      self->staticness = td_staticness_new (reader);
      self->staticness_n = n;
    }
  return self->staticness;
}

static TdScene *
make_advice (TdPanels *self, const TdPanelView *view)
{
  TdStaticness *staticness = td__panels_get_staticness (self);
  return staticness ? td_advice_scene (staticness, view) : NULL;
}

TdGantt *
td__panels_get_gantt (TdPanels *self)
{
  if (!self->gantt && self->iteration)
    self->gantt = td_gantt_new (self->iteration);
  return self->gantt;
}

static TdScene *
make_buffers (TdPanels *self, const TdPanelView *view)
{
  return td_gantt_scene (td__panels_get_gantt (self), 0, view);
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
  guint n = self->notebook ? td_notebook_get_n_notes (self->notebook) : 0;
  g_autofree TdStripFlag *flags = g_new (TdStripFlag, MAX (n, 1));

  for (guint i = 0; i < n; i++)
    {
      const TdNote *note = td_notebook_get_note (self->notebook, i);
      flags[i] = (TdStripFlag){ note->iteration, note->text };
    }
  return reader ? td_deck_scene_iterations (td_session_get_curves (self->session), reader, 0, 0,
                                            flags, n, view)
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
  gboolean held; /* on the Memory page only: why memory grows */
} Page;

static const Page pages[] = {
  { TD_PANEL_MEMORY, "events", "Events", "Memory by category over the events",
    make_memory_events },
  { TD_PANEL_MEMORY, "iterations", "Iterations", "Memory by category over the iterations",
    make_memory_iterations },
  { TD_PANEL_MEMORY, "blocks", "Blocks", "Blocks of memory alive at the playhead",
    make_memory_blocks },
  { TD_PANEL_MEMORY, "growth", "Growth", "What grows over the iterations",
    td__panels_make_growth, TRUE },
  { TD_PANEL_MEMORY, "holders", "Holders", "Who keeps what is there after the iteration",
    td__panels_make_holders, TRUE },
  { TD_PANEL_MEMORY, "oom", "Out of Memory", "Who held what when memory ran out",
    td__panels_make_oom, TRUE },
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
  td__panels_place_rows (self, page_data->page->name, &view);
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
go_to_note (TdPanels *self, gint64 i)
{
  if (!self->notebook || i < 0 || i >= td_notebook_get_n_notes (self->notebook))
    return;
  const TdNote *note = td_notebook_get_note (self->notebook, (guint)i);
  td_session_set_moment (self->session, note->iteration, note->event);
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
  else if (hit && hit->tag == TD_TAG_ROW && data->page->make == make_iterations_strip)
    go_to_note (self, hit->data);
  else if (data->page->held)
    td__panels_pick_held (self, data->page->name, hit, GTK_WIDGET (view));
  else if (td__panels_pick (self, data->page->name, hit))
    return;
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

/* A key went `delta` rows on; 0: to the row's moment. */
static gboolean
moved (TdSceneView *view, int delta, PageData *data)
{
  TdPanels *self = data->panels;
  g_autofree char *words = !self->session     ? NULL
                           : data->page->held ? td__panels_move_held (self, data->page->name,
                                                                      delta, GTK_WIDGET (view))
                                              : td__panels_move (self, data->page->name, delta);
  g_autofree char *valid = words ? g_utf8_make_valid (words, -1) : NULL;
  if (valid)
    gtk_accessible_update_property (GTK_ACCESSIBLE (view), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                    valid, -1);
  return valid != NULL;
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
  g_signal_connect (view, "moved", G_CALLBACK (moved), data);
  gtk_widget_set_hexpand (view, TRUE);
  if (page->held)
    gtk_widget_set_name (view, page->name);
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

/* The page with what stands above its picture. */
static GtkWidget *
new_page (TdPanels *self, const Page *page)
{
  GtkWidget *view = new_view (self, page);
  if (page->make != make_static)
    return view;
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_box_append (GTK_BOX (box), td__panels_new_static_bar (self));
  gtk_widget_set_vexpand (view, TRUE);
  gtk_box_append (GTK_BOX (box), view);
  g_signal_connect_object (box, "map", G_CALLBACK (td__panels_update_static_bar), self,
                           G_CONNECT_SWAPPED | G_CONNECT_AFTER);
  return box;
}

gboolean
td_panels_show_page (TdPanels *self, TdPanel panel, const char *page)
{
  GtkWidget *stack = self->stacks[panel];
  if (!stack || !gtk_stack_get_child_by_name (GTK_STACK (stack), page))
    return FALSE;
  gtk_stack_set_visible_child_name (GTK_STACK (stack), page);
  return TRUE;
}

GtkWidget *
td_panels_new_panel (TdPanels *self, TdPanel panel, GtkWidget **controls)
{
  GtkWidget *stack = gtk_stack_new ();
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    if (pages[i].panel == panel && !pages[i].held)
      {
        gtk_stack_add_titled (GTK_STACK (stack), new_page (self, &pages[i]), pages[i].name,
                              pages[i].title);
        n++;
      }
  gtk_widget_set_name (stack, panels[panel].name);
  g_set_weak_pointer (&self->stacks[panel], stack);
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
  td__panels_update_static_bar (self);
  td__panels_update_held (self);
  invalidate_all (self);
}

/* The playhead moved: lists follow it again. */
static void
moment_changed (TdPanels *self)
{
  self->at_selection = FALSE;
  self->cursor = 0;
  show_moment (self);
}

static void
selection_changed (TdPanels *self)
{
  self->at_selection = TRUE;
  if (!self->picking)
    {
      td__panels_follow_chain (self);
      self->cursor = td_session_get_step (self->session) + 1; /* no step: no row */
    }
  invalidate_all (self);
}

void
td_panels_set_notebook (TdPanels *self, TdNotebook *notebook)
{
  if (self->notebook)
    g_signal_handlers_disconnect_by_data (self->notebook, self);
  if (g_set_object (&self->notebook, notebook) && notebook)
    g_signal_connect_swapped (notebook, "changed", G_CALLBACK (invalidate_all), self);
  invalidate_all (self);
}

void
td_panels_set_session (TdPanels *self, TdSession *session)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  forget_session (self);
  self->chain_id = self->schedule_id = self->cursor = 0;
  self->at_selection = FALSE;
  g_set_object (&self->session, session);
  if (!session)
    return;
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (moment_changed), self);
  g_signal_connect_swapped (session, "iterations-changed", G_CALLBACK (show_moment), self);
  g_signal_connect_swapped (session, "selection-changed", G_CALLBACK (selection_changed), self);
  g_signal_connect_swapped (session, "head-changed", G_CALLBACK (invalidate_all), self);
  show_moment (self);
}

static void
td_panels_finalize (GObject *object)
{
  TdPanels *self = TD_PANELS (object);
  td_panels_set_session (self, NULL);
  td_panels_set_notebook (self, NULL);
  for (guint i = 0; i < self->views->len; i++)
    g_object_weak_unref (g_ptr_array_index (self->views, i), view_gone, self->views);
  g_ptr_array_unref (self->views);
  for (guint i = 0; i < TD_N_PANELS; i++)
    g_clear_weak_pointer (&self->stacks[i]);
  g_clear_weak_pointer (&self->static_bar);
  g_clear_weak_pointer (&self->held_bar);
  g_clear_weak_pointer (&self->oom_card);
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
