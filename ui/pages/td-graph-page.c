/* Toolbar and search of the canvas.
 * SPDX-License-Identifier: MIT */
#include "pages/td-graph-page.h"

#include "settings/td-keys.h"
#include "widgets/td-find-bar.h"

struct _TdGraphPage
{
  GtkWidget parent;
  GtkWidget *box;
  TdGraphView *view;
  GtkLabel *crumbs, *zoom;
  TdFindBar *find;
  GtkWidget *heat_label, *heat_button;
  GtkToggleButton *top_bottom, *left_right;
  GtkWidget *chips, *replay_chip;
  TdSession *session;
};

G_DEFINE_FINAL_TYPE (TdGraphPage, td_graph_page, GTK_TYPE_WIDGET)

TdGraphView *
td_graph_page_get_view (TdGraphPage *self)
{
  return self->view;
}

/* ---- where ---- */

static gboolean
has_replays (TdIteration *iteration)
{
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  for (guint e = 0; e < tape->n_events; e++)
    if (tape->events[e].flags & TD_TAPE_EVENT_REPLAYED)
      return TRUE;
  return FALSE;
}

static void
show_crumbs (TdGraphPage *self)
{
  guint n;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  TdIteration *iteration = td_session_get_expected (self->session);
  g_autofree char *text = g_strdup (td_session_get_name (self->session));
  if (iteration)
    {
      TdVizGraph *graph = td_iteration_get_graph (iteration);
      guint n_groups;
      const TdVizGroup *groups = td_viz_graph_get_groups (graph, &n_groups);
      gint group = n ? td_viz_graph_find_group (graph, keys[0]) : -1;
      gint event = n && group < 0 ? td_iteration_find (iteration, keys[0])
                                  : td_session_get_moment (self->session).event;
      if (group < 0 && event >= 0 && (guint)event < td_iteration_get_n_events (iteration))
        group = td_viz_graph_get_event_group (graph, (guint)event);
      if (group > 0 && groups[group].path && *groups[group].path)
        {
          g_auto (GStrv) parts = g_strsplit (groups[group].path, "/", -1);
          g_free (text);
          text = g_strjoinv (" ▸ ", parts);
        }
      gtk_widget_set_visible (self->replay_chip, has_replays (iteration));
      td_iteration_unref (iteration);
    }
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  gtk_label_set_text (self->crumbs, valid);
}

static void
show_zoom (TdGraphPage *self)
{
  g_autofree char *text
      = g_strdup_printf ("%.0f %%", 100 * td_graph_view_get_scale (self->view));
  gtk_label_set_text (self->zoom, text);
}

void
td_graph_page_set_session (TdGraphPage *self, TdSession *session)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  g_set_object (&self->session, session);
  td_graph_view_set_session (self->view, session);
  if (!session)
    return;
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (show_crumbs), self);
  g_signal_connect_swapped (session, "selection-changed", G_CALLBACK (show_crumbs), self);
  show_crumbs (self);
}

void
td_graph_page_set_narrow (TdGraphPage *self, gboolean narrow)
{
  gtk_widget_set_visible (self->chips, !narrow);
}

/* ---- search ---- */

guint
td_graph_page_search (TdGraphPage *self, const char *text)
{
  TdIteration *iteration = self->session ? td_session_get_expected (self->session) : NULL;
  if (!iteration || !*text)
    {
      g_clear_pointer (&iteration, td_iteration_unref);
      td_find_bar_set_words (self->find, "");
      return 0;
    }
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  GArray *found = td_viz_graph_find_text (td_iteration_get_graph (iteration), text);
  guint n = found->len, n_selected;
  const guint64 *keys = td_session_get_selection (self->session, &n_selected);
  gint from = n_selected ? td_iteration_find (iteration, keys[0]) : -1;
  guint chosen = 0;
  while (chosen < n && g_array_index (found, gint32, chosen) <= from)
    chosen++;
  if (chosen == n)
    chosen = 0;
  g_autofree char *words = n ? g_strdup_printf ("%u of %u", chosen + 1, n)
                             : g_strdup_printf ("No match in iteration %" G_GINT64_FORMAT,
                                                td_iteration_get_number (iteration));
  if (n)
    {
      gint event = g_array_index (found, gint32, chosen);
      td_graph_view_reveal (self->view, event);
      td_session_select (self->session, tape->events[event].key);
    }
  td_find_bar_set_words (self->find, words);
  g_array_unref (found);
  td_iteration_unref (iteration);
  return n;
}

static void
search (TdFindBar *bar, const char *text, TdGraphPage *self)
{
  td_graph_page_search (self, text);
}

static void
find_closed (TdFindBar *bar, TdGraphPage *self)
{
  gtk_widget_grab_focus (GTK_WIDGET (self->view));
}

void
td_graph_page_find (TdGraphPage *self)
{
  td_find_bar_open (self->find);
}

gboolean
td_graph_page_close_find (TdGraphPage *self)
{
  return td_find_bar_close (self->find);
}

static GtkWidget *
new_search (TdGraphPage *self)
{
  self->find = TD_FIND_BAR (td_find_bar_new ("Find in the graph"));
  g_signal_connect (self->find, "search", G_CALLBACK (search), self);
  g_signal_connect (self->find, "closed", G_CALLBACK (find_closed), self);
  return GTK_WIDGET (self->find);
}

/* ---- toolbar ---- */

/* Chips must not make the graph wider than the window leaves it. */
static GtkWidget *
new_chip (const char *mark, const char *words)
{
  g_autofree char *text = g_strdup_printf ("%s %s", mark, words);
  GtkWidget *chip = gtk_label_new (text);
  gtk_label_set_ellipsize (GTK_LABEL (chip), PANGO_ELLIPSIZE_END);
  gtk_widget_set_tooltip_text (chip, words);
  gtk_widget_add_css_class (chip, "td-chip");
  gtk_widget_set_valign (chip, GTK_ALIGN_CENTER);
  return chip;
}

static GtkWidget *
small_button (const char *icon, const char *action, const char *words)
{
  GtkWidget *button = gtk_button_new_from_icon_name (icon);
  gtk_actionable_set_action_name (GTK_ACTIONABLE (button), action);
  gtk_widget_add_css_class (button, "td-small");
  g_autofree char *key = td_keys_get_label (action);
  g_autofree char *tip = key ? g_strdup_printf ("%s (%s)", words, key) : g_strdup (words);
  gtk_widget_set_tooltip_text (button, tip);
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, words,
                                  -1);
  gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
  return button;
}

static void
orientation_toggled (TdGraphPage *self)
{
  gboolean top = gtk_toggle_button_get_active (self->top_bottom);
  td_graph_view_set_orientation (self->view, top ? TD_ORIENTATION_TB : TD_ORIENTATION_LR);
}

void
td_graph_page_set_orientation (TdGraphPage *self, TdOrientation orientation)
{
  gtk_toggle_button_set_active (
      orientation == TD_ORIENTATION_TB ? self->top_bottom : self->left_right, TRUE);
}

static GtkToggleButton *
orientation_button (const char *label, const char *tip)
{
  GtkWidget *button = gtk_toggle_button_new_with_label (label);
  gtk_widget_add_css_class (button, "td-small");
  gtk_widget_set_tooltip_text (button, tip);
  return GTK_TOGGLE_BUTTON (button);
}

static GtkWidget *
new_orientation (TdGraphPage *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  gtk_widget_add_css_class (box, "linked");
  gtk_widget_set_valign (box, GTK_ALIGN_CENTER);
  self->top_bottom = orientation_button ("TB", "From top to bottom");
  self->left_right = orientation_button ("LR", "From left to right");
  gtk_toggle_button_set_group (self->left_right, self->top_bottom);
  gtk_toggle_button_set_active (self->top_bottom, TRUE);
  g_signal_connect_swapped (self->top_bottom, "toggled", G_CALLBACK (orientation_toggled),
                            self);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->top_bottom));
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->left_right));
  return box;
}

static const char *const heat_titles[TD_N_HEATS] = { "Off", "Bytes", "Time", "Norm" };

static void
choose_heat (GtkButton *button, TdGraphPage *self)
{
  int heat = GPOINTER_TO_INT (g_object_get_data (G_OBJECT (button), "heat"));
  td_graph_view_set_heat (self->view, heat);
  gtk_label_set_text (GTK_LABEL (self->heat_label), heat_titles[heat]);
  gtk_menu_button_popdown (GTK_MENU_BUTTON (self->heat_button));
}

static GtkWidget *
new_heat (TdGraphPage *self)
{
  GtkWidget *content = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *title = gtk_label_new ("Heat");
  gtk_widget_add_css_class (title, "dim-label");
  self->heat_label = gtk_label_new (heat_titles[TD_HEAT_OFF]);
  gtk_widget_add_css_class (self->heat_label, "heading");
  gtk_box_append (GTK_BOX (content), title);
  gtk_box_append (GTK_BOX (content), self->heat_label);
  gtk_box_append (GTK_BOX (content), gtk_image_new_from_icon_name ("pan-down-symbolic"));
  self->heat_button = gtk_menu_button_new ();
  gtk_menu_button_set_child (GTK_MENU_BUTTON (self->heat_button), content);
  gtk_widget_add_css_class (self->heat_button, "td-small");
  gtk_widget_set_valign (self->heat_button, GTK_ALIGN_CENTER);
  gtk_widget_set_tooltip_text (self->heat_button, "Colour nodes by a number");
  GtkWidget *list = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  for (int i = 0; i < TD_N_HEATS; i++)
    {
      GtkWidget *button = gtk_button_new_with_label (heat_titles[i]);
      gtk_widget_add_css_class (button, "flat");
      g_object_set_data (G_OBJECT (button), "heat", GINT_TO_POINTER (i));
      g_signal_connect (button, "clicked", G_CALLBACK (choose_heat), self);
      gtk_box_append (GTK_BOX (list), button);
    }
  GtkWidget *popover = gtk_popover_new ();
  gtk_popover_set_child (GTK_POPOVER (popover), list);
  gtk_menu_button_set_popover (GTK_MENU_BUTTON (self->heat_button), popover);
  return self->heat_button;
}

static GtkWidget *
new_toolbar (TdGraphPage *self)
{
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_widget_add_css_class (row, "td-graph-bar");
  self->crumbs = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_ellipsize (self->crumbs, PANGO_ELLIPSIZE_MIDDLE);
  gtk_label_set_xalign (self->crumbs, 0);
  gtk_label_set_max_width_chars (self->crumbs, 40);
  gtk_widget_set_margin_end (GTK_WIDGET (self->crumbs), 6);
  gtk_box_append (GTK_BOX (row), GTK_WIDGET (self->crumbs));
  self->chips = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_box_append (GTK_BOX (self->chips), new_chip ("••••", "saved for backward"));
  gtk_box_append (GTK_BOX (self->chips), new_chip ("┄┄", "not run yet"));
  self->replay_chip = new_chip ("≡", "replayed");
  gtk_widget_set_tooltip_text (self->replay_chip, "replayed from a schedule");
  gtk_widget_set_visible (self->replay_chip, FALSE);
  gtk_box_append (GTK_BOX (self->chips), self->replay_chip);
  gtk_box_append (GTK_BOX (row), self->chips);
  GtkWidget *space = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  gtk_widget_set_hexpand (space, TRUE);
  gtk_box_append (GTK_BOX (row), space);
  gtk_box_append (GTK_BOX (row), new_orientation (self));
  gtk_box_append (GTK_BOX (row), new_heat (self));
  gtk_box_append (GTK_BOX (row),
                  small_button ("zoom-out-symbolic", "win.zoom-out", "Zoom out"));
  self->zoom = GTK_LABEL (gtk_label_new ("100 %"));
  gtk_label_set_width_chars (self->zoom, 6);
  gtk_widget_add_css_class (GTK_WIDGET (self->zoom), "numeric");
  gtk_widget_add_css_class (GTK_WIDGET (self->zoom), "caption-heading");
  gtk_box_append (GTK_BOX (row), GTK_WIDGET (self->zoom));
  gtk_box_append (GTK_BOX (row), small_button ("zoom-in-symbolic", "win.zoom-in", "Zoom in"));
  gtk_box_append (GTK_BOX (row),
                  small_button ("zoom-fit-best-symbolic", "win.fit", "Fit the graph"));
  return row;
}

static void
td_graph_page_dispose (GObject *object)
{
  TdGraphPage *self = TD_GRAPH_PAGE (object);
  if (self->box)
    {
      g_signal_handlers_disconnect_by_data (self->view, self);
      td_graph_page_set_session (self, NULL);
    }
  g_clear_pointer (&self->box, gtk_widget_unparent);
  G_OBJECT_CLASS (td_graph_page_parent_class)->dispose (object);
}

static void
td_graph_page_class_init (TdGraphPageClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_graph_page_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
}

static void
td_graph_page_init (TdGraphPage *self)
{
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_widget_add_css_class (self->box, "td-canvas");
  self->view = TD_GRAPH_VIEW (td_graph_view_new ());
  gtk_box_append (GTK_BOX (self->box), new_toolbar (self));
  gtk_box_append (GTK_BOX (self->box), new_search (self));
  gtk_box_append (GTK_BOX (self->box), GTK_WIDGET (self->view));
  g_signal_connect_swapped (self->view, "view-changed", G_CALLBACK (show_zoom), self);
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
}

GtkWidget *
td_graph_page_new (void)
{
  return g_object_new (TD_TYPE_GRAPH_PAGE, NULL);
}
