/* Both are there; which of them is seen is chosen as room is given out.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-stack-switcher.h"

#include <glib/gi18n-lib.h>

struct _TdStackSwitcher
{
  GtkWidget parent;
  GtkStack *stack; /* weak */
  GtkWidget *buttons, *menu;
};

G_DEFINE_FINAL_TYPE (TdStackSwitcher, td_stack_switcher, GTK_TYPE_WIDGET)

/* Hidden ones still have their sizes. */
static void
measure_child (GtkWidget *child, GtkOrientation orientation, int *least, int *natural)
{
  gtk_widget_measure (child, orientation, -1, least, natural, NULL, NULL);
}

static void
td_stack_switcher_measure (GtkWidget *widget, GtkOrientation orientation, int for_size,
                           int *least, int *natural, int *least_baseline, int *natural_baseline)
{
  TdStackSwitcher *self = TD_STACK_SWITCHER (widget);
  int buttons, menu, all;
  measure_child (self->buttons, orientation, &buttons, &all);
  measure_child (self->menu, orientation, &menu, NULL);
  *least
      = orientation == GTK_ORIENTATION_HORIZONTAL ? MIN (buttons, menu) : MAX (buttons, menu);
  *natural = MAX (all, *least);
  *least_baseline = *natural_baseline = -1;
}

static void
td_stack_switcher_size_allocate (GtkWidget *widget, int width, int height, int baseline)
{
  TdStackSwitcher *self = TD_STACK_SWITCHER (widget);
  int buttons, menu, natural, unused;
  measure_child (self->buttons, GTK_ORIENTATION_HORIZONTAL, &buttons, &unused);
  measure_child (self->menu, GTK_ORIENTATION_HORIZONTAL, &menu, &natural);
  gboolean fits = buttons <= width;
  GtkWidget *shown = fits ? self->buttons : self->menu,
            *other = fits ? self->menu : self->buttons;
  gtk_widget_set_child_visible (other, FALSE);
  gtk_widget_set_child_visible (shown, TRUE);
  gtk_widget_allocate (shown, fits ? width : CLAMP (natural, menu, MAX (menu, width)), height,
                       baseline, NULL);
}

static void
page_shown (TdStackSwitcher *self)
{
  g_autoptr (GtkSelectionModel) pages = gtk_stack_get_pages (self->stack);
  for (guint i = 0; i < g_list_model_get_n_items (G_LIST_MODEL (pages)); i++)
    if (gtk_selection_model_is_selected (pages, i))
      gtk_drop_down_set_selected (GTK_DROP_DOWN (self->menu), i);
}

static void
page_chosen (TdStackSwitcher *self)
{
  GtkStackPage *page = gtk_drop_down_get_selected_item (GTK_DROP_DOWN (self->menu));
  if (page && self->stack)
    gtk_stack_set_visible_child (self->stack, gtk_stack_page_get_child (page));
}

static void
td_stack_switcher_dispose (GObject *object)
{
  TdStackSwitcher *self = TD_STACK_SWITCHER (object);
  g_clear_weak_pointer (&self->stack);
  g_clear_pointer (&self->buttons, gtk_widget_unparent);
  g_clear_pointer (&self->menu, gtk_widget_unparent);
  G_OBJECT_CLASS (td_stack_switcher_parent_class)->dispose (object);
}

static void
td_stack_switcher_class_init (TdStackSwitcherClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = td_stack_switcher_dispose;
  widget_class->measure = td_stack_switcher_measure;
  widget_class->size_allocate = td_stack_switcher_size_allocate;
  gtk_widget_class_set_css_name (widget_class, "td-stack-switcher");
}

static void
td_stack_switcher_init (TdStackSwitcher *self)
{
}

GtkWidget *
td_stack_switcher_new (GtkStack *stack)
{
  TdStackSwitcher *self = g_object_new (TD_TYPE_STACK_SWITCHER, NULL);
  GtkExpression *title = gtk_property_expression_new (GTK_TYPE_STACK_PAGE, NULL, "title");
  g_set_weak_pointer (&self->stack, stack);
  self->buttons = gtk_stack_switcher_new ();
  gtk_stack_switcher_set_stack (GTK_STACK_SWITCHER (self->buttons), stack);
  gtk_widget_add_css_class (self->buttons, "td-small");
  gtk_widget_set_halign (self->buttons, GTK_ALIGN_START);
  self->menu = gtk_drop_down_new (G_LIST_MODEL (gtk_stack_get_pages (stack)), title);
  gtk_widget_add_css_class (self->menu, "td-small");
  gtk_widget_set_halign (self->menu, GTK_ALIGN_START);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->menu), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("What this panel shows"), -1);
  gtk_widget_set_parent (self->buttons, GTK_WIDGET (self));
  gtk_widget_set_parent (self->menu, GTK_WIDGET (self));
  page_shown (self);
  g_signal_connect_swapped (self->menu, "notify::selected", G_CALLBACK (page_chosen), self);
  g_signal_connect_object (stack, "notify::visible-child", G_CALLBACK (page_shown), self,
                           G_CONNECT_SWAPPED);
  return GTK_WIDGET (self);
}
