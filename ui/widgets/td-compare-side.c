/* A head line above a canvas.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-compare-side.h"

struct _TdCompareSide
{
  GtkWidget parent;
  GtkWidget *box;
  GtkLabel *title, *name, *totals, *statement;
  GtkWidget *back, *forward;
  TdGraphView *view;
};

G_DEFINE_FINAL_TYPE (TdCompareSide, td_compare_side, GTK_TYPE_WIDGET)

TdGraphView *
td_compare_side_get_view (TdCompareSide *self)
{
  return self->view;
}

void
td_compare_side_set_head (TdCompareSide *self, const char *title, const char *name,
                          const TdDiffTotals *totals)
{
  g_autofree char *valid = g_utf8_make_valid (name, -1), *cost = NULL;
  char ns[TD_FORMAT_SIZE], peak[TD_FORMAT_SIZE];
  if (totals && totals->n_static > 0)
    {
      g_autofree char *dynamic = g_steal_pointer (&valid);
      valid = g_strdup_printf ("%s · %u of %u from a schedule", dynamic, totals->n_static,
                               totals->n_events);
    }
  if (totals)
    cost = g_strdup_printf ("%s · peak %s", td_format_ns (ns, totals->op_ns),
                            td_format_bytes (peak, totals->peak_bytes));
  gtk_label_set_text (self->title, title);
  gtk_label_set_text (self->name, valid);
  gtk_label_set_text (self->totals, cost ? cost : "");
  gtk_widget_set_visible (GTK_WIDGET (self->totals), cost != NULL);
  g_autofree char *label = g_strdup_printf ("Computation graph of %s, %s", title, valid);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->view), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  label, -1);
}

void
td_compare_side_state (TdCompareSide *self, const char *text)
{
  gtk_label_set_text (self->statement, text ? text : "");
  gtk_widget_set_visible (GTK_WIDGET (self->statement), text && *text);
}

const char *
td_compare_side_get_statement (TdCompareSide *self)
{
  const char *text = gtk_label_get_text (self->statement);
  return *text ? text : NULL;
}

static GtkLabel *
new_label (GtkWidget *box, const char *style)
{
  GtkWidget *label = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_widget_add_css_class (label, style);
  gtk_box_append (GTK_BOX (box), label);
  return GTK_LABEL (label);
}

void
td_compare_side_set_steps (TdCompareSide *self, const char *back, const char *forward)
{
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->back), back);
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->forward), forward);
}

static GtkWidget *
new_step (const char *icon, const char *letter, const char *words)
{
  GtkWidget *button = gtk_button_new_from_icon_name (icon);
  g_autofree char *name = g_strdup_printf ("%s on side %s", words, letter);
  gtk_widget_add_css_class (button, "td-small");
  gtk_widget_set_tooltip_text (button, name);
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, name,
                                  -1);
  return button;
}

static GtkWidget *
new_steps (TdCompareSide *self, const char *letter)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  gtk_widget_add_css_class (box, "linked");
  gtk_widget_set_valign (box, GTK_ALIGN_CENTER);
  self->back = new_step ("go-previous-symbolic", letter, "Previous iteration");
  self->forward = new_step ("go-next-symbolic", letter, "Next iteration");
  gtk_box_append (GTK_BOX (box), self->back);
  gtk_box_append (GTK_BOX (box), self->forward);
  return box;
}

static GtkWidget *
new_head (TdCompareSide *self, const char *letter)
{
  GtkWidget *head = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_widget_add_css_class (head, "td-graph-bar");
  GtkLabel *mark = new_label (head, "td-side-letter");
  gtk_label_set_text (mark, letter);
  gtk_widget_set_valign (GTK_WIDGET (mark), GTK_ALIGN_CENTER);
  self->title = new_label (head, "td-panel-title");
  self->name = new_label (head, "dim-label");
  gtk_label_set_ellipsize (self->name, PANGO_ELLIPSIZE_MIDDLE);
  gtk_widget_set_hexpand (GTK_WIDGET (self->name), TRUE);
  self->totals = new_label (head, "td-chip");
  gtk_widget_add_css_class (GTK_WIDGET (self->totals), "numeric");
  gtk_widget_set_valign (GTK_WIDGET (self->totals), GTK_ALIGN_CENTER);
  gtk_box_append (GTK_BOX (head), new_steps (self, letter));
  return head;
}

static void
td_compare_side_dispose (GObject *object)
{
  g_clear_pointer (&TD_COMPARE_SIDE (object)->box, gtk_widget_unparent);
  G_OBJECT_CLASS (td_compare_side_parent_class)->dispose (object);
}

static void
td_compare_side_class_init (TdCompareSideClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_compare_side_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
}

static void
td_compare_side_init (TdCompareSide *self)
{
  self->view = TD_GRAPH_VIEW (td_graph_view_new ());
  td_graph_view_set_whole (self->view, TRUE);
  self->statement = GTK_LABEL (gtk_label_new (NULL));
  gtk_widget_add_css_class (GTK_WIDGET (self->statement), "td-statement");
  gtk_label_set_wrap (self->statement, TRUE);
  gtk_widget_set_halign (GTK_WIDGET (self->statement), GTK_ALIGN_CENTER);
  gtk_widget_set_valign (GTK_WIDGET (self->statement), GTK_ALIGN_END);
  gtk_widget_set_margin_bottom (GTK_WIDGET (self->statement), 12);
  gtk_widget_set_can_target (GTK_WIDGET (self->statement), FALSE);
  gtk_widget_set_visible (GTK_WIDGET (self->statement), FALSE);
}

GtkWidget *
td_compare_side_new (const char *letter)
{
  TdCompareSide *self = g_object_new (TD_TYPE_COMPARE_SIDE, NULL);
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_widget_add_css_class (self->box, "td-canvas");
  GtkWidget *overlay = gtk_overlay_new ();
  gtk_overlay_set_child (GTK_OVERLAY (overlay), GTK_WIDGET (self->view));
  gtk_overlay_add_overlay (GTK_OVERLAY (overlay), GTK_WIDGET (self->statement));
  gtk_box_append (GTK_BOX (self->box), new_head (self, letter));
  gtk_box_append (GTK_BOX (self->box), overlay);
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  return GTK_WIDGET (self);
}
