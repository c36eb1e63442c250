/* Arranges outline, canvas, inspector, dock and deck as PRODUCT.md 4.4 has them; narrow windows
 * fold the sides and show one panel of the dock.
 * SPDX-License-Identifier: MIT */
#include "pages/td-workspace.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "settings/td-keys.h"
#include "widgets/td-dock.h"
#include "widgets/td-text-scale.h"
#include "pages/td-curves-page.h"
#include "pages/td-gradients-page.h"
#include "pages/td-memory-page.h"
#include "pages/td-ranks-page.h"
#include "pages/td-schedule-page.h"
#include "pages/td-strips.h"

/* For text of the usual size; sizes of the parts are in points, in style.css. */
#define NARROW_WIDTH 1200
#define SLIM_WIDTH 800
#define LOW_HEIGHT 560 /* of the page: a window of 700 less its header bar and the deck */
/* The least that a window may have. */
#define FOLDED_WIDTH 860
#define FOLDED_HEIGHT 500

enum
{
  NARROW = 1,
  LOW = 2,
  SLIM = 4
};

struct _TdWorkspace
{
  GtkWidget parent;
  GtkWidget *box;
  AdwToastOverlay *toasts; /* above the deck: nothing covers the scrubber */
  GtkStack *perspectives, *sides;
  AdwFlap *left, *right;
  GtkPaned *body;
  TdDock *dock;
  TdPage *memory, *gradients, *schedule, *curves, *ranks, *strips;
  TdGraphPage *graph;
  TdComparePage *compare;
  TdOutlinePage *outline;
  TdIterationsPage *iterations;
  TdInspector *inspector;
  TdSourcePage *source;
  TdLogPage *log;
  TdNotesPage *notes, *watches;
  TdBreaksPage *breaks;
  TdFilterPage *filter;
  TdEvaluatePage *evaluate;
  TdDeck *deck;
  GtkEventController *single_keys; /* owned by the widget */
  int form;                        /* NARROW... as bits; -1 before the first size */
  gboolean wanted[TD_N_PARTS];     /* where there is room for it */
  gboolean is_formed;              /* it has had a size */
  TdWorkspacePart asked; /* what is to be seen once it has one; TD_N_PARTS: nothing, */
  char *asked_view;      /* and of the dock which view */
  GSettings *settings;   /* NULL: nothing is kept */
};

G_DEFINE_FINAL_TYPE (TdWorkspace, td_workspace, GTK_TYPE_WIDGET)

/* ---- building ---- */

static GtkWidget *
new_switcher (GtkStack *stack)
{
  GtkWidget *switcher = gtk_stack_switcher_new ();
  gtk_stack_switcher_set_stack (GTK_STACK_SWITCHER (switcher), stack);
  gtk_widget_set_valign (switcher, GTK_ALIGN_CENTER);
  return switcher;
}

GtkWidget *
td_workspace_new_switcher (TdWorkspace *self)
{
  GtkWidget *switcher = new_switcher (self->perspectives);
  gtk_widget_set_name (switcher, "perspectives");
  return switcher;
}

static GtkWidget *
new_left (TdWorkspace *self)
{
  self->outline = TD_OUTLINE_PAGE (td_outline_page_new ());
  self->iterations = TD_ITERATIONS_PAGE (td_iterations_page_new ());
  self->sides = GTK_STACK (gtk_stack_new ());
  gtk_stack_add_titled (self->sides, GTK_WIDGET (self->outline), "outline", _ ("Outline"));
  gtk_stack_add_titled (self->sides, GTK_WIDGET (self->iterations), "iterations",
                        _ ("Iterations"));
  GtkWidget *head = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_widget_add_css_class (head, "td-side-head");
  GtkWidget *switcher = new_switcher (self->sides);
  gtk_widget_add_css_class (switcher, "td-small");
  gtk_box_append (GTK_BOX (head), switcher);
  GtkWidget *space = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  gtk_widget_set_hexpand (space, TRUE);
  gtk_box_append (GTK_BOX (head), space);
  GtkWidget *find = gtk_button_new_from_icon_name ("edit-find-symbolic");
  gtk_widget_add_css_class (find, "flat");
  gtk_actionable_set_action_name (GTK_ACTIONABLE (find), "win.find");
  gtk_widget_set_tooltip_text (find, _ ("Find in the graph (Ctrl+F)"));
  gtk_accessible_update_property (GTK_ACCESSIBLE (find), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Find in the graph"), -1);
  gtk_box_append (GTK_BOX (head), find);
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_widget_add_css_class (box, "td-side");
  gtk_widget_add_css_class (box, "td-outline");
  gtk_box_append (GTK_BOX (box), head);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->sides));
  gtk_widget_set_vexpand (GTK_WIDGET (self->sides), TRUE);
  return box;
}

static AdwFlap *
new_flap (GtkWidget *content, GtkWidget *flap, GtkPackType side)
{
  AdwFlap *widget = ADW_FLAP (adw_flap_new ());
  adw_flap_set_flap_position (widget, side);
  gtk_widget_set_hexpand (content, TRUE);
  gtk_widget_set_hexpand (flap, FALSE); /* or it would take half of the window */
  adw_flap_set_content (widget, content);
  adw_flap_set_flap (widget, flap);
  adw_flap_set_separator (widget, gtk_separator_new (GTK_ORIENTATION_VERTICAL));
  adw_flap_set_fold_policy (widget, ADW_FLAP_FOLD_POLICY_NEVER);
  adw_flap_set_locked (widget, TRUE); /* folding does not decide what is shown */
  adw_flap_set_swipe_to_open (widget, FALSE);
  adw_flap_set_swipe_to_close (widget, FALSE);
  return widget;
}

static void
add_page (TdWorkspace *self, TdPage *page)
{
  GtkWidget *controls, *panel = td_page_new_panel (page, &controls);
  td_dock_add_view (self->dock, td_page_get_name (page), td_page_get_title (page), controls,
                    panel);
}

static void
fill_dock (TdWorkspace *self)
{
  self->dock = TD_DOCK (td_dock_new ());
  add_page (self, self->memory);
  add_page (self, self->gradients);
  add_page (self, self->schedule);
  self->source = TD_SOURCE_PAGE (td_source_page_new ());
  self->log = TD_LOG_PAGE (td_log_page_new ());
  td_dock_add_view (self->dock, "source", "Source", NULL, GTK_WIDGET (self->source));
  td_dock_add_view (self->dock, "log", "Log", NULL, GTK_WIDGET (self->log));
  self->notes = TD_NOTES_PAGE (td_notes_page_new (FALSE));
  self->watches = TD_NOTES_PAGE (td_notes_page_new (TRUE));
  self->filter = TD_FILTER_PAGE (td_filter_page_new ());
  self->breaks = TD_BREAKS_PAGE (td_breaks_page_new ());
  td_dock_add_view (self->dock, "breakpoints", "Breakpoints", NULL, GTK_WIDGET (self->breaks));
  td_dock_add_view (self->dock, "filter", "Filter", NULL, GTK_WIDGET (self->filter));
  self->evaluate = TD_EVALUATE_PAGE (td_evaluate_page_new ());
  td_dock_add_view (self->dock, "evaluate", "Evaluate", NULL, GTK_WIDGET (self->evaluate));
  td_dock_add_view (self->dock, "notes", "Notes", NULL, GTK_WIDGET (self->notes));
  td_dock_add_view (self->dock, "watches", "Watches", NULL, GTK_WIDGET (self->watches));
  add_page (self, self->curves);
  add_page (self, self->ranks);
}

static GtkWidget *
new_debug (TdWorkspace *self)
{
  self->graph = TD_GRAPH_PAGE (td_graph_page_new ());
  gtk_widget_set_size_request (GTK_WIDGET (self->graph), 360, -1);
  self->inspector = TD_INSPECTOR (td_inspector_new ());
  /* beside a panel in a low window it has less room than it needs */
  GtkWidget *side = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (side), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (side), GTK_WIDGET (self->inspector));
  gtk_widget_add_css_class (side, "td-side");
  gtk_widget_add_css_class (side, "td-inspector-side");
  self->right = new_flap (GTK_WIDGET (self->graph), side, GTK_PACK_END);
  self->left = new_flap (GTK_WIDGET (self->right), new_left (self), GTK_PACK_START);
  gtk_widget_set_vexpand (GTK_WIDGET (self->left), TRUE);
  fill_dock (self);
  gtk_widget_add_css_class (GTK_WIDGET (self->dock), "td-dock");
  self->body = GTK_PANED (gtk_paned_new (GTK_ORIENTATION_VERTICAL));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->body), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Between the graph and the panels"), -1);
  gtk_paned_set_start_child (self->body, GTK_WIDGET (self->left));
  gtk_paned_set_end_child (self->body, GTK_WIDGET (self->dock));
  gtk_paned_set_resize_end_child (self->body, FALSE);
  gtk_paned_set_shrink_start_child (self->body, FALSE);
  gtk_paned_set_shrink_end_child (self->body, FALSE);
  return GTK_WIDGET (self->body);
}

/* ---- session and pages ---- */

void
td_workspace_set_session (TdWorkspace *self, TdSession *session)
{
  TdPage *const pages[] = { self->memory, self->gradients, self->schedule,
                            self->curves, self->ranks,     self->strips };
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    td_page_set_session (pages[i], session);
  td_outline_page_set_session (self->outline, session);
  td_iterations_page_set_session (self->iterations, session);
  td_graph_page_set_session (self->graph, session);
  td_inspector_set_session (self->inspector, session);
  td_source_page_set_session (self->source, session);
  td_deck_set_session (self->deck, session);
  td_compare_page_set_session (self->compare, session);
  td_filter_page_set_session (self->filter, session);
  td_evaluate_page_set_session (self->evaluate, session);
}

void
td_workspace_set_notebook (TdWorkspace *self, TdSession *session, TdNotebook *notebook)
{
  td_notes_page_set_notebook (self->notes, session, notebook);
  td_notes_page_set_notebook (self->watches, session, notebook);
  td_strips_set_notebook (TD_STRIPS (self->strips), notebook);
}

TdNotesPage *
td_workspace_get_notes (TdWorkspace *self, gboolean watches)
{
  return watches ? self->watches : self->notes;
}

TdBreaksPage *
td_workspace_get_breaks (TdWorkspace *self)
{
  return self->breaks;
}

/* What the first size folds away was asked for before it could be known. */
static void
show_part (TdWorkspace *self, TdWorkspacePart part, const char *view)
{
  td_workspace_set_part_shown (self, part, TRUE);
  if (self->is_formed)
    return;
  self->asked = part;
  g_free (self->asked_view);
  self->asked_view = g_strdup (view);
}

static gboolean
show_view (TdWorkspace *self, const char *name)
{
  if (!td_dock_show_view (self->dock, name))
    return FALSE;
  show_part (self, TD_PART_DOCK, name);
  return TRUE;
}

gboolean
td_workspace_show_page (TdWorkspace *self, const char *name)
{
  if (strcmp (name, "growth") == 0 || strcmp (name, "holders") == 0
      || strcmp (name, "oom") == 0)
    name = "memory"; /* they are on it */
  if (gtk_stack_get_child_by_name (self->perspectives, name))
    {
      gtk_stack_set_visible_child_name (self->perspectives, name);
      return TRUE;
    }
  if (gtk_stack_get_child_by_name (self->sides, name))
    {
      gtk_stack_set_visible_child_name (self->sides, name);
      show_part (self, TD_PART_OUTLINE, NULL);
      return TRUE;
    }
  if (td_inspector_show_page (self->inspector, name))
    {
      show_part (self, TD_PART_INSPECTOR, NULL);
      return TRUE;
    }
  if (td_compare_page_show_view (self->compare, name))
    {
      gtk_stack_set_visible_child_name (self->perspectives, "compare");
      return TRUE;
    }
  return show_view (self, name);
}

static TdPage *
find_page (TdWorkspace *self, const char *name)
{
  TdPage *const pages[]
      = { self->memory, self->gradients, self->schedule, self->curves, self->ranks };
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    if (strcmp (td_page_get_name (pages[i]), name) == 0)
      return pages[i];
  return NULL;
}

void
td_workspace_show_finding (TdWorkspace *self)
{
  show_view (self, "ranks");
  td_ranks_page_lead (TD_RANKS_PAGE (self->ranks));
}

gboolean
td_workspace_show_picture (TdWorkspace *self, const char *page, const char *picture)
{
  TdPage *found = find_page (self, page);
  if (!found || !td_page_show_picture (found, picture))
    return FALSE;
  gtk_stack_set_visible_child_name (self->perspectives, "debug");
  return show_view (self, page);
}

gboolean
td_workspace_shows_picture (TdWorkspace *self, const char *page, const char *picture)
{
  TdPage *found = find_page (self, page);
  return found && g_strcmp0 (td_page_get_picture (found), picture) == 0
         && strcmp (td_workspace_get_perspective (self), "debug") == 0
         && td_workspace_is_part_shown (self, TD_PART_DOCK)
         && td_dock_is_shown (self->dock, page);
}

gboolean
td_workspace_step_static (TdWorkspace *self, gboolean schedules, int direction)
{
  gboolean stepped
      = td_schedule_page_step_static (TD_SCHEDULE_PAGE (self->schedule), schedules, direction);
  td_workspace_show_picture (self, "schedule", "static");
  return stepped;
}

void
td_workspace_show_flame (TdWorkspace *self, TdFlameSize size)
{
  td_schedule_page_set_flame_size (TD_SCHEDULE_PAGE (self->schedule), size);
  td_workspace_show_picture (self, "schedule", "flame");
}

gboolean
td_workspace_leave (TdWorkspace *self)
{
  return td_schedule_page_leave (TD_SCHEDULE_PAGE (self->schedule));
}

static void
reveal (TdWorkspace *self, TdWorkspacePart part, gboolean shown)
{
  if (part == TD_PART_DOCK)
    gtk_widget_set_visible (GTK_WIDGET (self->dock), shown);
  else
    adw_flap_set_reveal_flap (part == TD_PART_OUTLINE ? self->left : self->right, shown);
}

static const char *const part_keys[] = { "show-outline", "show-inspector", "show-dock" };

/* Whether the window is too small to show the part without being asked. */
static gboolean
is_folded (TdWorkspace *self, int part)
{
  return self->form > 0 && (self->form & (part == TD_PART_DOCK ? LOW : NARROW));
}

/* A small window hides parts by itself, and shows one of those at a time, for two would leave
 * nothing of the graph. What is done there is not kept. */
void
td_workspace_set_part_shown (TdWorkspace *self, TdWorkspacePart part, gboolean shown)
{
  gboolean folded = is_folded (self, (int)part);
  for (int other = 0; folded && shown && other < TD_N_PARTS; other++)
    if (other != (int)part && is_folded (self, other))
      reveal (self, (TdWorkspacePart)other, FALSE);
  reveal (self, part, shown);
  if (folded)
    return;
  self->wanted[part] = shown;
  if (self->settings)
    g_settings_set_boolean (self->settings, part_keys[part], shown);
}

gboolean
td_workspace_is_part_shown (TdWorkspace *self, TdWorkspacePart part)
{
  if (part == TD_PART_DOCK)
    return gtk_widget_get_visible (GTK_WIDGET (self->dock));
  return adw_flap_get_reveal_flap (part == TD_PART_OUTLINE ? self->left : self->right);
}

static void
single_keys_changed (GSettings *settings, const char *key, TdWorkspace *self)
{
  gtk_event_controller_set_propagation_phase (
      self->single_keys,
      g_settings_get_boolean (settings, key) ? GTK_PHASE_BUBBLE : GTK_PHASE_NONE);
}

static void
orientation_changed (GSettings *settings, const char *key, TdWorkspace *self)
{
  TdOrientation orientation
      = g_settings_get_enum (settings, key) ? TD_ORIENTATION_LR : TD_ORIENTATION_TB;
  td_graph_page_set_orientation (self->graph, orientation);
  for (int side = 0; side < TD_N_SIDES; side++)
    td_graph_view_set_orientation (
        td_compare_side_get_view (td_compare_page_get_side (self->compare, (TdSide)side)),
        orientation);
}

static void
perspective_changed (TdWorkspace *self)
{
  const char *name = gtk_stack_get_visible_child_name (self->perspectives);
  if (name)
    g_settings_set_string (self->settings, "perspective", name);
}

static void
dock_changed (TdWorkspace *self)
{
  g_auto (GStrv) names = td_dock_dup_names (self->dock);
  g_settings_set_strv (self->settings, "dock-panels", (const char *const *)names);
}

/* As the last window was left; a page that is no longer there leaves the usual one. */
static void
restore (TdWorkspace *self, GSettings *settings)
{
  g_autofree char *perspective = g_settings_get_string (settings, "perspective");
  g_auto (GStrv) names = g_settings_get_strv (settings, "dock-panels");
  if (gtk_stack_get_child_by_name (self->perspectives, perspective))
    gtk_stack_set_visible_child_name (self->perspectives, perspective);
  td_dock_set_names (self->dock, (const char *const *)names);
  for (int part = 0; part < TD_N_PARTS; part++)
    td_workspace_set_part_shown (self, part,
                                 g_settings_get_boolean (settings, part_keys[part]));
  self->settings = g_object_ref (settings);
  g_signal_connect_swapped (self->dock, "changed", G_CALLBACK (dock_changed), self);
  g_signal_connect_swapped (self->perspectives, "notify::visible-child-name",
                            G_CALLBACK (perspective_changed), self);
}

void
td_workspace_bind_settings (TdWorkspace *self, GSettings *settings)
{
  restore (self, settings);
  g_signal_connect_object (settings, "changed::single-key-shortcuts",
                           G_CALLBACK (single_keys_changed), self, 0);
  g_signal_connect_object (settings, "changed::graph-orientation",
                           G_CALLBACK (orientation_changed), self, 0);
  single_keys_changed (settings, "single-key-shortcuts", self);
  orientation_changed (settings, "graph-orientation", self);
}

void
td_workspace_append_log (TdWorkspace *self, const char *line, gboolean is_stderr)
{
  td_log_page_append (self->log, line, is_stderr);
}

void
td_workspace_set_cost (TdWorkspace *self, const TdCost *cost)
{
  td_deck_set_cost (self->deck, cost);
}

void
td_workspace_announce (TdWorkspace *self, const char *text)
{
  td_deck_announce (self->deck, text);
}

const char *
td_workspace_get_perspective (TdWorkspace *self)
{
  return gtk_stack_get_visible_child_name (self->perspectives);
}

TdDock *
td_workspace_get_dock (TdWorkspace *self)
{
  return self->dock;
}

TdFilterPage *
td_workspace_get_filter (TdWorkspace *self)
{
  return self->filter;
}

TdEvaluatePage *
td_workspace_get_evaluate (TdWorkspace *self)
{
  return self->evaluate;
}

TdComparePage *
td_workspace_get_compare (TdWorkspace *self)
{
  return self->compare;
}

TdGraphPage *
td_workspace_get_graph (TdWorkspace *self)
{
  return self->graph;
}

TdOutlinePage *
td_workspace_get_outline (TdWorkspace *self)
{
  return self->outline;
}

TdIterationsPage *
td_workspace_get_iterations (TdWorkspace *self)
{
  return self->iterations;
}

TdInspector *
td_workspace_get_inspector (TdWorkspace *self)
{
  return self->inspector;
}

TdSourcePage *
td_workspace_get_source (TdWorkspace *self)
{
  return self->source;
}

TdLogPage *
td_workspace_get_log (TdWorkspace *self)
{
  return self->log;
}

char *
td_workspace_dup_scrubber_text (TdWorkspace *self)
{
  return td_deck_dup_value_text (self->deck);
}

/* ---- narrow windows ---- */

/* There is room for everything. */
static void
forget_asked (TdWorkspace *self)
{
  self->is_formed = TRUE;
  self->asked = TD_N_PARTS;
}

static void
show_asked (TdWorkspace *self)
{
  if (self->asked == TD_PART_DOCK)
    td_dock_show_view (self->dock, self->asked_view);
  td_workspace_set_part_shown (self, self->asked, TRUE);
  forget_asked (self);
}

/* Changing what is shown while a size is given out would be lost: done from the idle loop. */
static gboolean
apply_form (gpointer data)
{
  TdWorkspace *self = data;
  gboolean narrow = (self->form & NARROW) != 0, low = (self->form & LOW) != 0;
  AdwFlapFoldPolicy policy = narrow ? ADW_FLAP_FOLD_POLICY_ALWAYS : ADW_FLAP_FOLD_POLICY_NEVER;
  if (!self->box)
    return G_SOURCE_REMOVE;
  self->is_formed = TRUE;
  adw_flap_set_fold_policy (self->left, policy);
  adw_flap_set_fold_policy (self->right, policy);
  reveal (self, TD_PART_OUTLINE, !narrow && self->wanted[TD_PART_OUTLINE]);
  reveal (self, TD_PART_INSPECTOR, !narrow && self->wanted[TD_PART_INSPECTOR]);
  td_dock_set_n_places (self->dock, narrow ? 1 : 3);
  reveal (self, TD_PART_DOCK, !low && self->wanted[TD_PART_DOCK]);
  td_deck_set_narrow (self->deck, narrow);
  td_graph_page_set_narrow (self->graph, narrow);
  gtk_paned_set_shrink_start_child (self->body, low); /* a panel that is asked for fits */
  td_compare_page_set_low (self->compare, low);
  td_compare_page_set_narrow (self->compare, narrow);
  td_memory_page_set_slim (TD_MEMORY_PAGE (self->memory), (self->form & SLIM) != 0);
  if (self->asked < TD_N_PARTS)
    show_asked (self);
  return G_SOURCE_REMOVE;
}

static void
td_workspace_size_allocate (GtkWidget *widget, int width, int height, int baseline)
{
  TdWorkspace *self = TD_WORKSPACE (widget);
  double scale = td_text_scale_get (widget);
  int form = (width < NARROW_WIDTH * scale ? NARROW : 0)
             | (width < SLIM_WIDTH * scale ? SLIM : 0)
             | (height < LOW_HEIGHT * scale ? LOW : 0);
  if (form != self->form)
    {
      gboolean first = self->form < 0;
      self->form = form;
      if (first && !form)
        forget_asked (self);
      else
        g_idle_add_full (G_PRIORITY_HIGH_IDLE, apply_form, g_object_ref (self), g_object_unref);
    }
  int min_width, min_height;
  gtk_widget_measure (self->box, GTK_ORIENTATION_HORIZONTAL, -1, &min_width, NULL, NULL, NULL);
  width = MAX (width, min_width);
  gtk_widget_measure (self->box, GTK_ORIENTATION_VERTICAL, width, &min_height, NULL, NULL,
                      NULL);
  height = MAX (height, min_height);
  gtk_widget_size_allocate (self->box, &(GtkAllocation){ 0, 0, width, height }, baseline);
}

/* The page can be made narrower than it is now: it then folds its sides. */
static void
td_workspace_measure (GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum,
                      int *natural, int *minimum_baseline, int *natural_baseline)
{
  gtk_widget_measure (TD_WORKSPACE (widget)->box, orientation, for_size, minimum, natural, NULL,
                      NULL);
  *minimum = MIN (*minimum,
                  orientation == GTK_ORIENTATION_HORIZONTAL ? FOLDED_WIDTH : FOLDED_HEIGHT);
}

static void
td_workspace_dispose (GObject *object)
{
  TdWorkspace *self = TD_WORKSPACE (object);
  if (self->settings)
    {
      g_signal_handlers_disconnect_by_data (self->dock, self);
      g_signal_handlers_disconnect_by_data (self->perspectives, self);
    }
  g_clear_object (&self->settings);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  g_clear_object (&self->memory);
  g_clear_object (&self->gradients);
  g_clear_object (&self->schedule);
  g_clear_object (&self->curves);
  g_clear_object (&self->ranks);
  g_clear_object (&self->strips);
  G_OBJECT_CLASS (td_workspace_parent_class)->dispose (object);
}

static void
td_workspace_finalize (GObject *object)
{
  g_free (TD_WORKSPACE (object)->asked_view);
  G_OBJECT_CLASS (td_workspace_parent_class)->finalize (object);
}

static void
td_workspace_class_init (TdWorkspaceClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = td_workspace_dispose;
  G_OBJECT_CLASS (klass)->finalize = td_workspace_finalize;
  widget_class->size_allocate = td_workspace_size_allocate;
  widget_class->measure = td_workspace_measure;
}

static void
td_workspace_init (TdWorkspace *self)
{
  self->form = -1;
  self->asked = TD_N_PARTS;
  for (int part = 0; part < TD_N_PARTS; part++)
    self->wanted[part] = TRUE;
  self->memory = td_memory_page_new ();
  self->gradients = td_gradients_page_new ();
  self->schedule = td_schedule_page_new ();
  self->curves = td_curves_page_new ();
  self->ranks = td_ranks_page_new ();
  self->strips = TD_PAGE (td_strips_new ());
  self->perspectives = GTK_STACK (gtk_stack_new ());
  gtk_stack_add_titled (self->perspectives, new_debug (self), "debug", _ ("Debug"));
  gtk_stack_add_titled (self->perspectives,
                        td_memory_page_new_perspective (TD_MEMORY_PAGE (self->memory)),
                        "memory", _ ("Memory"));
  self->compare = TD_COMPARE_PAGE (td_compare_page_new ());
  gtk_stack_add_titled (self->perspectives, GTK_WIDGET (self->compare), "compare",
                        _ ("Compare"));
  gtk_widget_set_vexpand (GTK_WIDGET (self->perspectives), TRUE);
  self->deck = TD_DECK (td_deck_new (td_page_new_picture (self->strips, "iterations-strip"),
                                     td_page_new_picture (self->strips, "events-strip")));
  g_signal_connect_swapped (self->compare, "announce", G_CALLBACK (td_deck_announce),
                            self->deck);
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  self->toasts = ADW_TOAST_OVERLAY (adw_toast_overlay_new ());
  adw_toast_overlay_set_child (self->toasts, GTK_WIDGET (self->perspectives));
  gtk_box_append (GTK_BOX (self->box), GTK_WIDGET (self->toasts));
  gtk_widget_set_name (GTK_WIDGET (self->deck), "deck");
  gtk_box_append (GTK_BOX (self->box), GTK_WIDGET (self->deck));
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  self->single_keys = td_keys_new_single_controller ();
  gtk_widget_add_controller (GTK_WIDGET (self), self->single_keys);
}

void
td_workspace_add_toast (TdWorkspace *self, AdwToast *toast)
{
  adw_toast_overlay_add_toast (self->toasts, toast);
}

GtkWidget *
td_workspace_new (void)
{
  return g_object_new (TD_TYPE_WORKSPACE, NULL);
}
