/* Places in a chain of panes, each with a head (menu of views, the view's controls) and the
 * view. SPDX-License-Identifier: MIT */
#include "widgets/td-dock.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#define N_PLACES 3
#define MAX_VIEWS 16

typedef struct
{
  char *name, *title;
  GtkWidget *controls, *content; /* owned */
  int place;                     /* -1: not shown */
} View;

typedef struct
{
  GtkWidget *box, *head, *menu;
  GtkLabel *title;
  int view; /* -1: none */
} Place;

struct _TdDock
{
  GtkWidget parent;
  Place places[N_PLACES];
  View views[MAX_VIEWS];
  guint n_views, n_places;
  GtkWidget *right; /* the second and the third place */
};

enum
{
  CHANGED,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdDock, td_dock, GTK_TYPE_WIDGET)

static void
clear_place (TdDock *self, int i)
{
  Place *place = &self->places[i];
  if (place->view < 0)
    return;
  View *view = &self->views[place->view];
  if (view->controls)
    gtk_box_remove (GTK_BOX (place->head), view->controls);
  gtk_box_remove (GTK_BOX (place->box), view->content);
  view->place = -1;
  place->view = -1;
}

static void
fill_place (TdDock *self, int i, int v)
{
  Place *place = &self->places[i];
  View *view = &self->views[v];
  place->view = v;
  view->place = i;
  if (view->controls)
    gtk_box_append (GTK_BOX (place->head), view->controls);
  gtk_box_append (GTK_BOX (place->box), view->content);
  gtk_label_set_text (place->title, view->title);
}

static void
put (TdDock *self, int i, int v)
{
  int old = self->places[i].view, other = self->views[v].place;
  if (old == v)
    return;
  clear_place (self, i);
  if (other >= 0)
    clear_place (self, other);
  fill_place (self, i, v);
  if (other >= 0 && old >= 0)
    fill_place (self, other, old);
  g_signal_emit (self, signals[CHANGED], 0);
}

/* Places that a narrow dock hides keep their views; the last place that is seen is used. */
static int
find_view (TdDock *self, const char *name)
{
  for (guint v = 0; v < self->n_views; v++)
    if (strcmp (self->views[v].name, name) == 0)
      return (int)v;
  return -1;
}

gboolean
td_dock_is_shown (TdDock *self, const char *name)
{
  int v = find_view (self, name);
  return v >= 0 && self->views[v].place >= 0 && self->views[v].place < (int)self->n_places;
}

/* Somebody works in that place. */
static gboolean
has_focus (TdDock *self, int place)
{
  GtkRoot *root = gtk_widget_get_root (GTK_WIDGET (self));
  GtkWidget *focus = root ? gtk_root_get_focus (root) : NULL;
  return focus && gtk_widget_is_ancestor (focus, self->places[place].box);
}

gboolean
td_dock_show_view (TdDock *self, const char *name)
{
  int v = find_view (self, name);
  if (v < 0)
    return FALSE;
  if (td_dock_is_shown (self, name))
    return TRUE;
  int last = (int)self->n_places - 1;
  put (self, last > 0 && has_focus (self, last) ? last - 1 : last, v);
  return TRUE;
}

char **
td_dock_dup_names (TdDock *self)
{
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  for (int i = 0; i < N_PLACES; i++)
    if (self->places[i].view >= 0)
      g_strv_builder_add (names, self->views[self->places[i].view].name);
  return g_strv_builder_end (names);
}

void
td_dock_set_names (TdDock *self, const char *const *names)
{
  for (int i = 0; i < N_PLACES && *names; names++)
    {
      int v = find_view (self, *names);
      if (v < 0)
        continue;
      put (self, i++, v);
    }
}

static void
choose (GtkButton *button, TdDock *self)
{
  int place = GPOINTER_TO_INT (g_object_get_data (G_OBJECT (button), "place"));
  int view = GPOINTER_TO_INT (g_object_get_data (G_OBJECT (button), "view"));
  put (self, place, view);
  gtk_menu_button_popdown (GTK_MENU_BUTTON (self->places[place].menu));
}

static void
fill_menu (GtkMenuButton *menu, gpointer data)
{
  TdDock *self = data;
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  int place = GPOINTER_TO_INT (g_object_get_data (G_OBJECT (menu), "place"));
  for (guint v = 0; v < self->n_views; v++)
    {
      GtkWidget *button = gtk_button_new_with_label (self->views[v].title);
      gtk_widget_add_css_class (button, "flat");
      gtk_label_set_xalign (GTK_LABEL (gtk_button_get_child (GTK_BUTTON (button))), 0);
      g_object_set_data (G_OBJECT (button), "place", GINT_TO_POINTER (place));
      g_object_set_data (G_OBJECT (button), "view", GINT_TO_POINTER ((int)v));
      g_signal_connect (button, "clicked", G_CALLBACK (choose), self);
      gtk_box_append (GTK_BOX (box), button);
    }
  GtkWidget *popover = gtk_popover_new ();
  gtk_popover_set_child (GTK_POPOVER (popover), box);
  gtk_menu_button_set_popover (menu, popover);
}

static void
build_place (TdDock *self, int i)
{
  Place *place = &self->places[i];
  place->view = -1;
  place->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_widget_add_css_class (place->box, "td-panel");
  gtk_widget_set_hexpand (place->box, TRUE);
  gtk_widget_set_overflow (place->box, GTK_OVERFLOW_HIDDEN);
  place->head = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  gtk_widget_add_css_class (place->head, "td-panel-head");
  gtk_widget_set_margin_start (place->head, 6);
  gtk_widget_set_margin_end (place->head, 12);
  gtk_box_append (GTK_BOX (place->box), place->head);

  place->menu = gtk_menu_button_new ();
  gtk_widget_add_css_class (place->menu, "flat");
  gtk_widget_set_valign (place->menu, GTK_ALIGN_CENTER);
  gtk_widget_set_tooltip_text (place->menu, _ ("Choose what this panel shows"));
  GtkWidget *content = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  place->title = GTK_LABEL (gtk_label_new (NULL));
  gtk_widget_add_css_class (GTK_WIDGET (place->title), "td-panel-title");
  gtk_box_append (GTK_BOX (content), GTK_WIDGET (place->title));
  gtk_box_append (GTK_BOX (content), gtk_image_new_from_icon_name ("pan-down-symbolic"));
  gtk_menu_button_set_child (GTK_MENU_BUTTON (place->menu), content);
  g_object_set_data (G_OBJECT (place->menu), "place", GINT_TO_POINTER (i));
  gtk_menu_button_set_create_popup_func (GTK_MENU_BUTTON (place->menu), fill_menu, self, NULL);
  gtk_box_append (GTK_BOX (place->head), place->menu);
}

void
td_dock_add_view (TdDock *self, const char *name, const char *title, GtkWidget *controls,
                  GtkWidget *content)
{
  g_return_if_fail (self->n_views < MAX_VIEWS);
  guint v = self->n_views++;
  self->views[v] = (View){ g_strdup (name), g_strdup (title), NULL, NULL, -1 };
  self->views[v].controls = controls ? g_object_ref_sink (controls) : NULL;
  self->views[v].content = g_object_ref_sink (content);
  gtk_widget_set_vexpand (content, TRUE);
  if (controls)
    {
      gtk_widget_set_hexpand (controls, TRUE);
      gtk_widget_set_valign (controls, GTK_ALIGN_CENTER);
    }
  if (v < N_PLACES)
    fill_place (self, (int)v, (int)v);
}

void
td_dock_set_n_places (TdDock *self, guint n)
{
  self->n_places = CLAMP (n, 1, N_PLACES);
  for (guint i = 0; i < N_PLACES; i++)
    gtk_widget_set_visible (self->places[i].box, i < self->n_places);
  gtk_widget_set_visible (self->right, self->n_places > 1); /* or it keeps its room */
}

static void
td_dock_dispose (GObject *object)
{
  TdDock *self = TD_DOCK (object);
  for (int i = 0; i < N_PLACES && self->places[i].box; i++)
    clear_place (self, i);
  for (guint v = 0; v < self->n_views; v++)
    {
      g_clear_pointer (&self->views[v].name, g_free);
      g_clear_pointer (&self->views[v].title, g_free);
      g_clear_object (&self->views[v].controls);
      g_clear_object (&self->views[v].content);
    }
  self->n_views = 0;
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (self))))
    gtk_widget_unparent (child);
  memset (self->places, 0, sizeof self->places);
  G_OBJECT_CLASS (td_dock_parent_class)->dispose (object);
}

static void
td_dock_class_init (TdDockClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_dock_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
  signals[CHANGED] = g_signal_new ("changed", TD_TYPE_DOCK, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                   NULL, G_TYPE_NONE, 0);
}

static void
td_dock_init (TdDock *self)
{
  self->n_places = N_PLACES;
  for (int i = 0; i < N_PLACES; i++)
    build_place (self, i);
  GtkWidget *right = self->right = gtk_paned_new (GTK_ORIENTATION_HORIZONTAL);
  gtk_accessible_update_property (GTK_ACCESSIBLE (right), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Between the second and the third panel"), -1);
  gtk_paned_set_start_child (GTK_PANED (right), self->places[1].box);
  gtk_paned_set_end_child (GTK_PANED (right), self->places[2].box);
  GtkWidget *all = gtk_paned_new (GTK_ORIENTATION_HORIZONTAL);
  gtk_accessible_update_property (GTK_ACCESSIBLE (all), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Between the first and the second panel"), -1);
  gtk_paned_set_start_child (GTK_PANED (all), self->places[0].box);
  gtk_paned_set_end_child (GTK_PANED (all), right);
  gtk_paned_set_position (GTK_PANED (all), 480);
  gtk_paned_set_position (GTK_PANED (right), 480);
  gtk_paned_set_resize_start_child (GTK_PANED (all), TRUE);
  gtk_paned_set_shrink_start_child (GTK_PANED (all), FALSE); /* or views are cut */
  gtk_paned_set_shrink_end_child (GTK_PANED (all), FALSE);
  gtk_paned_set_shrink_start_child (GTK_PANED (right), FALSE);
  gtk_paned_set_shrink_end_child (GTK_PANED (right), FALSE);
  gtk_widget_set_parent (all, GTK_WIDGET (self));
}

GtkWidget *
td_dock_new (void)
{
  return g_object_new (TD_TYPE_DOCK, NULL);
}
