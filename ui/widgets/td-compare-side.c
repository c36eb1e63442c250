/* A head line above a canvas (td-compare-side.ui).
 * SPDX-License-Identifier: MIT */
#include "widgets/td-compare-side.h"

#include <glib/gi18n-lib.h>

struct _TdCompareSide
{
  AdwBin parent;
  GtkLabel *letter, *title, *name, *totals, *statement;
  GtkWidget *back, *forward;
  GtkOverlay *overlay;
  TdGraphView *view;
};

G_DEFINE_FINAL_TYPE (TdCompareSide, td_compare_side, ADW_TYPE_BIN)

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
  g_autofree char *label = g_strdup_printf (_ ("Computation graph of %s, %s"), title, valid);
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

void
td_compare_side_set_steps (TdCompareSide *self, const char *back, const char *forward)
{
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->back), back);
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->forward), forward);
}

static void
name_step (GtkWidget *button, const char *words, const char *letter)
{
  g_autofree char *name = g_strdup_printf ("%s on side %s", words, letter);
  gtk_widget_set_tooltip_text (button, name);
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, name,
                                  -1);
}

static void
td_compare_side_class_init (TdCompareSideClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  gtk_widget_class_set_template_from_resource (
      widget_class, "/io/github/tapedeck/Tapedeck/widgets/td-compare-side.ui");
  gtk_widget_class_bind_template_child (widget_class, TdCompareSide, letter);
  gtk_widget_class_bind_template_child (widget_class, TdCompareSide, title);
  gtk_widget_class_bind_template_child (widget_class, TdCompareSide, name);
  gtk_widget_class_bind_template_child (widget_class, TdCompareSide, totals);
  gtk_widget_class_bind_template_child (widget_class, TdCompareSide, statement);
  gtk_widget_class_bind_template_child (widget_class, TdCompareSide, back);
  gtk_widget_class_bind_template_child (widget_class, TdCompareSide, forward);
  gtk_widget_class_bind_template_child (widget_class, TdCompareSide, overlay);
}

static void
td_compare_side_init (TdCompareSide *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  self->view = TD_GRAPH_VIEW (td_graph_view_new ());
  td_graph_view_set_whole (self->view, TRUE);
  gtk_overlay_set_child (self->overlay, GTK_WIDGET (self->view));
}

GtkWidget *
td_compare_side_new (const char *letter)
{
  TdCompareSide *self = g_object_new (TD_TYPE_COMPARE_SIDE, NULL);
  gtk_label_set_text (self->letter, letter);
  name_step (self->back, _ ("Previous iteration"), letter);
  name_step (self->forward, _ ("Next iteration"), letter);
  return GTK_WIDGET (self);
}
