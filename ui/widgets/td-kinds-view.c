/* A grid of wrapped labels; the measured half stands out.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-kinds-view.h"

#include <glib/gi18n-lib.h>

struct _TdKindsView
{
  GtkWidget parent;
  GtkWidget *scroller;
  GtkGrid *grid;
};

G_DEFINE_FINAL_TYPE (TdKindsView, td_kinds_view, GTK_TYPE_WIDGET)

enum
{
  COLUMN_ASPECT,
  COLUMN_DYNAMIC,
  COLUMN_STATIC,
  COLUMN_A,
  COLUMN_B
};

static void
add_cell (TdKindsView *self, int column, int row, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  GtkWidget *label = gtk_label_new (valid);
  gboolean title = row == 0 || column == COLUMN_ASPECT;
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_yalign (GTK_LABEL (label), 0);
  gtk_label_set_wrap (GTK_LABEL (label), TRUE);
  gtk_label_set_selectable (GTK_LABEL (label), FALSE);
  gtk_label_set_width_chars (GTK_LABEL (label), column == COLUMN_ASPECT ? 16 : 22);
  gtk_widget_set_hexpand (label, column != COLUMN_ASPECT);
  if (title)
    gtk_widget_add_css_class (label, "td-kinds-title");
  else if (column < COLUMN_A)
    gtk_widget_add_css_class (label, "dim-label");
  gtk_grid_attach (self->grid, label, column, row, 1, 1);
}

void
td_kinds_view_show (TdKindsView *self, const TdKinds *kinds, const char *title_a,
                    const char *title_b)
{
  const char *titles[] = { "", _ ("Dynamic graphs"), _ ("Static graphs"), title_a, title_b };
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (self->grid))))
    gtk_grid_remove (self->grid, child);
  if (!kinds)
    return;
  for (int column = 0; column < (int)G_N_ELEMENTS (titles); column++)
    add_cell (self, column, 0, titles[column]);
  for (guint i = 0; i < kinds->n_rows; i++)
    {
      const TdKindsRow *row = &kinds->rows[i];
      const char *texts[] = { row->aspect, row->of_dynamic, row->of_static,
                              row->measured[TD_SIDE_A], row->measured[TD_SIDE_B] };
      for (int column = 0; column < (int)G_N_ELEMENTS (texts); column++)
        add_cell (self, column, (int)i + 1, *texts[column] ? texts[column] : "—");
    }
}

static void
td_kinds_view_dispose (GObject *object)
{
  g_clear_pointer (&TD_KINDS_VIEW (object)->scroller, gtk_widget_unparent);
  G_OBJECT_CLASS (td_kinds_view_parent_class)->dispose (object);
}

static void
td_kinds_view_class_init (TdKindsViewClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_kinds_view_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
}

static void
td_kinds_view_init (TdKindsView *self)
{
  self->grid = GTK_GRID (gtk_grid_new ());
  gtk_grid_set_row_spacing (self->grid, 6);
  gtk_grid_set_column_spacing (self->grid, 18);
  gtk_widget_add_css_class (GTK_WIDGET (self->grid), "td-kinds");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->grid), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Dynamic and static graphs"), -1);
  self->scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (self->scroller), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), GTK_WIDGET (self->grid));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->scroller),
                                  GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Dynamic and static graphs"), -1);
  gtk_widget_set_parent (self->scroller, GTK_WIDGET (self));
}
