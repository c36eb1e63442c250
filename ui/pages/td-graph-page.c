/* Toolbar (td-graph-page.ui) and search of the canvas.
 * SPDX-License-Identifier: MIT */
#include "pages/td-graph-page.h"

#include <glib/gi18n-lib.h>

#include "settings/td-keys.h"
#include "widgets/td-find-bar.h"

struct _TdGraphPage
{
  AdwBin parent;
  GtkBox *box;
  GtkWidget *toolbar;
  TdGraphView *view;
  GtkLabel *crumbs, *zoom, *heat_label;
  TdFindBar *find;
  char *wanted; /* all of it is marked, in iteration `marked`; NULL: nothing is */
  gint64 marked;
  GtkMenuButton *heat_button;
  GtkBox *heats;
  GtkToggleButton *top_bottom, *left_right;
  GtkWidget *chips, *replay_chip;
  TdSession *session;
};

G_DEFINE_FINAL_TYPE (TdGraphPage, td_graph_page, ADW_TYPE_BIN)

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

/* ---- what is found ---- */

/* All that is found is marked in the picture, in folded layers by how many they hide. */
static void
mark_found (TdGraphPage *self, TdIteration *iteration, const GArray *found)
{
  guint n = td_iteration_get_n_events (iteration);
  g_autofree guint8 *marks = g_new0 (guint8, n + 1);
  for (guint i = 0; i < found->len; i++)
    marks[g_array_index (found, gint32, i)] = TD_MARK_FOUND;
  td_graph_view_set_marks (self->view, found->len ? marks : NULL, n);
  self->marked = td_iteration_get_number (iteration);
}

static void
forget_found (TdGraphPage *self)
{
  g_clear_pointer (&self->wanted, g_free);
  td_graph_view_set_marks (self->view, NULL, 0);
}

/* Events of another iteration are others: the same is looked for there, and nothing selected.
 */
static void
mark_again (TdGraphPage *self)
{
  if (!self->wanted || td_session_get_moment (self->session).iteration == self->marked)
    return;
  TdIteration *iteration = td_session_get_expected (self->session);
  if (!iteration)
    return;
  g_autoptr (GArray) found
      = td_viz_graph_find_text (td_iteration_get_graph (iteration), self->wanted);
  mark_found (self, iteration, found);
  td_iteration_unref (iteration);
}

void
td_graph_page_set_session (TdGraphPage *self, TdSession *session)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  g_set_object (&self->session, session);
  forget_found (self);
  td_graph_view_set_session (self->view, session);
  if (!session)
    return;
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (show_crumbs), self);
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (mark_again), self);
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
  forget_found (self);
  if (!iteration || !*text)
    {
      g_clear_pointer (&iteration, td_iteration_unref);
      td_find_bar_set_words (self->find, "");
      return 0;
    }
  self->wanted = g_strdup (text);
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  GArray *found = td_viz_graph_find_text (td_iteration_get_graph (iteration), text);
  guint n = found->len, n_selected;
  const guint64 *keys = td_session_get_selection (self->session, &n_selected);
  gint from = n_selected ? td_iteration_find (iteration, keys[0]) : -1;
  guint chosen = 0;
  mark_found (self, iteration, found);
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
  forget_found (self);
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
  self->find = TD_FIND_BAR (td_find_bar_new (_ ("Find in the graph")));
  g_signal_connect (self->find, "search", G_CALLBACK (search), self);
  g_signal_connect (self->find, "closed", G_CALLBACK (find_closed), self);
  return GTK_WIDGET (self->find);
}

/* ---- toolbar ---- */

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

static const char *const heat_titles[TD_N_HEATS]
    = { N_ ("Off"), N_ ("Bytes"), N_ ("Time"), N_ ("Norm") };

static void
choose_heat (GtkButton *button, TdGraphPage *self)
{
  int heat = GPOINTER_TO_INT (g_object_get_data (G_OBJECT (button), "heat"));
  td_graph_view_set_heat (self->view, heat);
  gtk_label_set_text (self->heat_label, _ (heat_titles[heat]));
  gtk_menu_button_popdown (self->heat_button);
}

static void
add_heats (TdGraphPage *self)
{
  gtk_label_set_text (self->heat_label, _ (heat_titles[TD_HEAT_OFF]));
  for (int i = 0; i < TD_N_HEATS; i++)
    {
      GtkWidget *button = gtk_button_new_with_label (_ (heat_titles[i]));
      gtk_widget_add_css_class (button, "flat");
      g_object_set_data (G_OBJECT (button), "heat", GINT_TO_POINTER (i));
      g_signal_connect (button, "clicked", G_CALLBACK (choose_heat), self);
      gtk_box_append (self->heats, button);
    }
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
  G_OBJECT_CLASS (td_graph_page_parent_class)->dispose (object);
}

static void
td_graph_page_class_init (TdGraphPageClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = td_graph_page_dispose;
  gtk_widget_class_set_template_from_resource (
      widget_class, "/io/github/tapedeck/Tapedeck/pages/td-graph-page.ui");
  gtk_widget_class_bind_template_child (widget_class, TdGraphPage, box);
  gtk_widget_class_bind_template_child (widget_class, TdGraphPage, toolbar);
  gtk_widget_class_bind_template_child (widget_class, TdGraphPage, crumbs);
  gtk_widget_class_bind_template_child (widget_class, TdGraphPage, zoom);
  gtk_widget_class_bind_template_child (widget_class, TdGraphPage, heat_label);
  gtk_widget_class_bind_template_child (widget_class, TdGraphPage, heat_button);
  gtk_widget_class_bind_template_child (widget_class, TdGraphPage, heats);
  gtk_widget_class_bind_template_child (widget_class, TdGraphPage, top_bottom);
  gtk_widget_class_bind_template_child (widget_class, TdGraphPage, left_right);
  gtk_widget_class_bind_template_child (widget_class, TdGraphPage, chips);
  gtk_widget_class_bind_template_child (widget_class, TdGraphPage, replay_chip);
  gtk_widget_class_bind_template_callback (widget_class, orientation_toggled);
}

static void
td_graph_page_init (TdGraphPage *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  td_keys_name_buttons (self->toolbar);
  add_heats (self);
  self->view = TD_GRAPH_VIEW (td_graph_view_new ());
  g_signal_connect_swapped (self->view, "view-changed", G_CALLBACK (show_zoom), self);
  gtk_box_append (self->box, new_search (self));
  gtk_box_append (self->box, GTK_WIDGET (self->view));
}

GtkWidget *
td_graph_page_new (void)
{
  return g_object_new (TD_TYPE_GRAPH_PAGE, NULL);
}
