/* Seven pages over one subject: an event and a variable. Value and Gradient are tensors, Inside
 * is there for fused groups and Stack for memory snapshots, the others are lists of facts
 * filled by td-inspector-facts.c. SPDX-License-Identifier: MIT */
#include "pages/td-inspector.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "graph/td-graph.h"
#include "pages/td-inspector-facts.h"
#include "widgets/td-hover-row.h"
#include "settings/td-tip.h"

struct _TdInspector
{
  GtkWidget parent;
  GtkWidget *box;
  GtkLabel *title, *subtitle, *chip;
  GtkStack *pages;
  TdTensorPanel *value, *gradient;
  TdInsidePage *inside;
  TdStackPage *stack;
  gboolean wants_inside; /* that page was on show when a group was left */
  TdFacts *facts[TD_N_FACT_PAGES];
  gboolean is_stale[TD_N_FACT_PAGES]; /* its facts are those of an earlier subject */
  TdSession *session;
  TdIteration *iteration;
  gint event, var, gradient_var; /* -1: none */
};

enum
{
  READ,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdInspector, td_inspector, GTK_TYPE_WIDGET)

/* ---- subject ---- */

static gint
find_gradient (TdIteration *iteration, gint var)
{
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  for (guint32 i = 0; var >= 0 && i < tape->n_grads; i++)
    if (tape->grads[i].parameter == (guint32)var && tape->grads[i].gradient != TD_TAPE_NONE
        && tape->grads[i].gradient < tape->n_vars)
      return (gint)tape->grads[i].gradient;
  return -1;
}

/* A selected variable speaks for itself, an operation through its first output, a layer through
 * its last operation; without a selection the playhead's operation is the subject. */
static void
find_subject (TdInspector *self)
{
  guint n;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  TdMoment moment = td_session_get_moment (self->session);
  self->event = self->var = self->gradient_var = -1;
  if (!self->iteration)
    return;
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);
  if (n)
    {
      self->event = td_iteration_find (self->iteration, keys[0]);
      self->var = td_iteration_find_event (self->iteration, keys[0]) >= 0
                      ? -1
                      : td_iteration_find_var (self->iteration, keys[0]);
      if (self->event < 0)
        {
          TdVizGraph *graph = td_iteration_get_graph (self->iteration);
          gint group = td_viz_graph_find_group (graph, keys[0]);
          guint n_members = 0;
          const gint32 *members = group >= 0 ? td_viz_graph_get_members (
                                      graph, (guint)group, TD_LANE_FORWARD, &n_members)
                                             : NULL;
          if (n_members)
            self->event = members[n_members - 1];
        }
    }
  if (self->event < 0 && self->var < 0 && moment.event >= 0
      && (guint32)moment.event < tape->n_events)
    self->event = moment.event;
  if (self->var < 0 && self->event >= 0 && tape->events[self->event].n_out)
    self->var = (gint)tape->outs[tape->events[self->event].first_out];
  /* an update writes into its first input: that is its value */
  if (self->var < 0 && self->event >= 0 && tape->events[self->event].n_in)
    self->var = (gint)tape->ins[tape->events[self->event].first_in];
  self->gradient_var = find_gradient (self->iteration, self->var);
}

/* The value is that of the operation, or of the variable that no operation made; the gradient
 * is its variable's. */
static void
set_hover (TdInspector *self)
{
  const TdTapeIteration *tape
      = self->iteration ? td_iteration_get_tape (self->iteration) : NULL;
  guint64 event_key = tape && self->event >= 0 ? tape->events[self->event].key : 0;
  guint64 var_key = tape && self->var >= 0 ? tape->vars[self->var].key : 0;
  GtkWidget *value = td_tensor_panel_get_picture (self->value);
  GtkWidget *gradient = td_tensor_panel_get_picture (self->gradient);
  td_hover_row_set (value, self->session, event_key ? event_key : var_key, value);
  td_hover_row_set (gradient, self->session, self->gradient_var >= 0 ? var_key : 0, gradient);
}

static void
show_head (TdInspector *self)
{
  if (!self->iteration || (self->event < 0 && self->var < 0))
    {
      gtk_label_set_text (self->title, _ ("Nothing Selected"));
      gtk_label_set_text (self->subtitle, "");
      gtk_label_set_text (self->chip, "");
      return;
    }
  g_autofree char *title = td_facts_dup_title (self->iteration, self->event, self->var);
  g_autofree char *subtitle = td_facts_dup_subtitle (self->iteration, self->event, self->var);
  gtk_label_set_text (self->title, title);
  gtk_label_set_text (self->subtitle, subtitle);
  td_tip_set (GTK_WIDGET (self->subtitle), subtitle);
  g_autofree char *chip
      = g_strdup_printf ("it. %" G_GINT64_FORMAT ", ev. %d",
                         td_iteration_get_number (self->iteration), self->event);
  gtk_label_set_text (self->chip, chip);
}

static void ask_for_live (TdInspector *self);

/* What the playhead has not come to yet is shown as it will be. */
static void
show_tensors (TdInspector *self)
{
  TdMoment moment = { .event = -1 };
  if (self->session)
    moment = td_session_get_moment (self->session);
  gint event = self->event > moment.event ? -1 : moment.event;
  td_tensor_panel_set_subject (self->value, self->session, self->iteration, self->var, event);
  td_tensor_panel_set_subject (self->gradient, self->session, self->iteration,
                               self->gradient_var, event);
}

/* Its page is there for groups only, and comes back with the next one. A member that is meant
 * from elsewhere is shown. */
static void
show_inside (TdInspector *self)
{
  GtkStackPage *page = gtk_stack_get_page (self->pages, GTK_WIDGET (self->inside));
  gboolean was = gtk_stack_page_get_visible (page);
  gboolean open = gtk_stack_get_visible_child (self->pages) == GTK_WIDGET (self->inside);
  gboolean any = td_inside_page_show (self->inside, self->session);
  if (was && !any)
    self->wants_inside = open;
  gtk_stack_page_set_visible (page, any);
  if (any
      && ((!was && self->wants_inside)
          || td_session_get_step (self->session) != TD_SESSION_NO_STEP))
    gtk_stack_set_visible_child (self->pages, GTK_WIDGET (self->inside));
}

/* Facts are many labels, and a stack lays out those of its hidden pages too: only those on show
 * are made anew. */
static void
show_facts (TdInspector *self)
{
  GtkWidget *shown = gtk_stack_get_visible_child (self->pages);
  TdFactsSubject subject = { self->session, self->iteration, self->event, self->var };
  for (int i = 0; i < TD_N_FACT_PAGES; i++)
    if (self->session && self->is_stale[i] && shown == td_facts_get_widget (self->facts[i]))
      {
        self->is_stale[i] = FALSE;
        td_facts_show (self->facts[i], &subject);
      }
}

/* Its page is there where the recording has stacks, and comes to the front then: such a
 * recording has no values. */
static void
show_stack (TdInspector *self)
{
  GtkStackPage *page = gtk_stack_get_page (self->pages, GTK_WIDGET (self->stack));
  gboolean was = gtk_stack_page_get_visible (page);
  gboolean any = td_stack_page_show (self->stack, self->session, self->iteration, self->event,
                                     self->var);
  gtk_stack_page_set_visible (page, any);
  if (any && !was)
    gtk_stack_set_visible_child (self->pages, GTK_WIDGET (self->stack));
}

static void
show_subject (TdInspector *self)
{
  g_clear_pointer (&self->iteration, td_iteration_unref);
  self->iteration = td_session_get_current (self->session);
  find_subject (self);
  show_head (self);
  set_hover (self);
  show_tensors (self);
  for (int i = 0; i < TD_N_FACT_PAGES; i++)
    self->is_stale[i] = TRUE;
  show_facts (self);
  show_inside (self);
  show_stack (self);
  ask_for_live (self);
}

/* ---- tensors ---- */

const TdTensor *
td_inspector_get_tensor (TdInspector *self)
{
  return td_tensor_panel_get_tensor (self->value);
}

TdTensorPanel *
td_inspector_get_panel (TdInspector *self)
{
  GtkWidget *shown = gtk_stack_get_visible_child (self->pages);
  return shown == GTK_WIDGET (self->gradient) ? self->gradient : self->value;
}

const char *
td_inspector_get_panel_name (TdInspector *self)
{
  return td_inspector_get_panel (self) == self->gradient ? "gradient" : "value";
}

static guint64
engine_id (TdInspector *self)
{
  const TdTapeIteration *tape
      = self->iteration ? td_iteration_get_tape (self->iteration) : NULL;
  return tape && self->var >= 0 ? td_tape_var_id (tape, (guint32)self->var) : 0;
}

void
td_inspector_take_live (TdInspector *self, guint64 id, TdTensor *tensor)
{
  if (id != engine_id (self))
    {
      td_tensor_free (tensor);
      return;
    }
  td_tensor_panel_take_live (self->value, tensor);
}

void
td_inspector_set_recomputing (TdInspector *self, double part)
{
  td_tensor_panel_set_recomputing (self->value, part);
  td_tensor_panel_set_recomputing (self->gradient, part);
}

/* Only the variables of the iteration that the program is in can still be there. */
static void
ask_for_live (TdInspector *self)
{
  TdMoment head = td_session_get_head (self->session);
  if (td_session_get_state (self->session) != TD_PROGRAM_PAUSED || !engine_id (self)
      || head.iteration != td_iteration_get_number (self->iteration))
    return;
  const TdTensor *tensor = td_inspector_get_tensor (self);
  if (!tensor || !tensor->values)
    g_signal_emit (self, signals[READ], 0, engine_id (self));
}

/* ---- session and pages ---- */

void
td_inspector_set_session (TdInspector *self, TdSession *session)
{
  static const char *const names[]
      = { "moment-changed", "selection-changed", "iterations-changed", "head-changed" };
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  g_clear_pointer (&self->iteration, td_iteration_unref);
  g_set_object (&self->session, session);
  self->event = self->var = self->gradient_var = -1;
  show_tensors (self);
  set_hover (self);
  td_inside_page_show (self->inside, NULL);
  show_stack (self);
  if (!session)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    g_signal_connect_swapped (session, names[i], G_CALLBACK (show_subject), self);
  show_subject (self);
}

gboolean
td_inspector_show_page (TdInspector *self, const char *name)
{
  GtkWidget *page = gtk_stack_get_child_by_name (self->pages, name);
  if (!page || !gtk_stack_page_get_visible (gtk_stack_get_page (self->pages, page)))
    return FALSE;
  gtk_stack_set_visible_child_name (self->pages, name);
  return TRUE;
}

TdInsidePage *
td_inspector_get_inside (TdInspector *self)
{
  return self->inside;
}

TdStackPage *
td_inspector_get_stack (TdInspector *self)
{
  return self->stack;
}

const char *
td_inspector_get_title (TdInspector *self)
{
  return gtk_label_get_text (self->title);
}

const char *
td_inspector_find_fact (TdInspector *self, const char *name)
{
  GtkWidget *child = gtk_stack_get_visible_child (self->pages);
  for (int i = 0; i < TD_N_FACT_PAGES; i++)
    if (child == td_facts_get_widget (self->facts[i]))
      return td_facts_find (self->facts[i], name);
  return NULL;
}

static GtkLabel *
new_label (const char *style, gboolean dim)
{
  GtkWidget *label = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_MIDDLE);
  gtk_widget_add_css_class (label, style);
  if (dim)
    gtk_widget_add_css_class (label, "dim-label");
  return GTK_LABEL (label);
}

static GtkWidget *
new_head (TdInspector *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  self->title = new_label ("heading", FALSE);
  gtk_widget_set_hexpand (GTK_WIDGET (self->title), TRUE);
  self->chip = new_label ("td-chip", FALSE);
  gtk_label_set_ellipsize (self->chip, PANGO_ELLIPSIZE_NONE);
  gtk_widget_add_css_class (GTK_WIDGET (self->chip), "numeric");
  self->subtitle = new_label ("caption", TRUE);
  gtk_box_append (GTK_BOX (row), GTK_WIDGET (self->title));
  gtk_box_append (GTK_BOX (row), GTK_WIDGET (self->chip));
  gtk_box_append (GTK_BOX (box), row);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->subtitle));
  return box;
}

static void
add_pages (TdInspector *self)
{
  self->value = TD_TENSOR_PANEL (td_tensor_panel_new (_ ("Value of the tensor"), _ ("No Value"),
                                                      _ ("Select an operation or a variable")));
  self->gradient = TD_TENSOR_PANEL (
      td_tensor_panel_new (_ ("Gradient of the tensor"), _ ("No Gradient Here"),
                           _ ("A parameter has one after the backward pass")));
  GtkWidget *value = td_tensor_panel_get_picture (self->value);
  GtkWidget *gradient = td_tensor_panel_get_picture (self->gradient);
  gtk_widget_set_name (value, "value");
  gtk_widget_set_name (gradient, "gradient");
  gtk_widget_add_css_class (value, "td-subject");
  gtk_widget_add_css_class (gradient, "td-subject");
  gtk_stack_add_titled (self->pages, GTK_WIDGET (self->value), "value", _ ("Value"));
  gtk_stack_add_titled (self->pages, GTK_WIDGET (self->gradient), "gradient", _ ("Gradient"));
  self->inside = TD_INSIDE_PAGE (td_inside_page_new ());
  gtk_stack_page_set_visible (
      gtk_stack_add_titled (self->pages, GTK_WIDGET (self->inside), "inside", _ ("Inside")),
      FALSE);
  for (int i = 0; i < TD_N_FACT_PAGES; i++)
    {
      self->facts[i] = td_facts_new (i);
      gtk_stack_add_titled (self->pages, td_facts_get_widget (self->facts[i]),
                            td_facts_get_name (i), td_facts_get_title (i));
    }
  self->stack = TD_STACK_PAGE (td_stack_page_new ());
  gtk_stack_page_set_visible (
      gtk_stack_add_titled (self->pages, GTK_WIDGET (self->stack), "stack", _ ("Stack")),
      FALSE);
  g_signal_connect_swapped (self->pages, "notify::visible-child", G_CALLBACK (show_facts),
                            self);
}

static GtkWidget *
new_buttons (void)
{
  static const struct
  {
    const char *label, *action, *tip;
  } buttons[]
      = { { N_ ("Where From?"), "win.where-from", N_ ("Go to what wrote its inputs") },
          { N_ ("Where Used?"), "win.where-used", N_ ("Go to what reads it") },
          { N_ ("Twin"), "win.twin", N_ ("Between forward and backward") },
          { N_ ("Break Here"), "win.toggle-breakpoint", N_ ("Stop the program at it") } };
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  for (guint i = 0; i < G_N_ELEMENTS (buttons); i++)
    {
      GtkWidget *button = gtk_button_new_with_label (_ (buttons[i].label));
      gtk_widget_add_css_class (button, "td-small");
      gtk_actionable_set_action_name (GTK_ACTIONABLE (button), buttons[i].action);
      gtk_widget_set_tooltip_text (button, _ (buttons[i].tip));
      gtk_box_append (GTK_BOX (row), button);
    }
  return row;
}

static void
td_inspector_dispose (GObject *object)
{
  TdInspector *self = TD_INSPECTOR (object);
  td_inspector_set_session (self, NULL);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  for (int i = 0; i < TD_N_FACT_PAGES; i++)
    g_clear_pointer (&self->facts[i], td_facts_free);
  G_OBJECT_CLASS (td_inspector_parent_class)->dispose (object);
}

static void
td_inspector_class_init (TdInspectorClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_inspector_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
  signals[READ] = g_signal_new ("read", TD_TYPE_INSPECTOR, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                NULL, G_TYPE_NONE, 1, G_TYPE_UINT64);
}

static void
td_inspector_init (TdInspector *self)
{
  self->event = self->var = self->gradient_var = -1;
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 9);
  gtk_widget_add_css_class (self->box, "td-inspector");
  gtk_box_append (GTK_BOX (self->box), new_head (self));
  self->pages = GTK_STACK (gtk_stack_new ());
  gtk_widget_set_vexpand (GTK_WIDGET (self->pages), TRUE);
  add_pages (self);
  GtkWidget *switcher = gtk_stack_switcher_new ();
  gtk_stack_switcher_set_stack (GTK_STACK_SWITCHER (switcher), self->pages);
  gtk_widget_add_css_class (switcher, "td-small");
  for (GtkWidget *button = gtk_widget_get_first_child (switcher); button;
       button = gtk_widget_get_next_sibling (button))
    gtk_widget_set_hexpand (button, TRUE);
  gtk_box_append (GTK_BOX (self->box), switcher);
  gtk_box_append (GTK_BOX (self->box), GTK_WIDGET (self->pages));
  gtk_box_append (GTK_BOX (self->box), new_buttons ());
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
}

GtkWidget *
td_inspector_new (void)
{
  return g_object_new (TD_TYPE_INSPECTOR, NULL);
}
