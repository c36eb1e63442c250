/* Zoom and cursor are places, keys in lanes, so that they outlive the iteration on show.
 * SPDX-License-Identifier: MIT */
#include "pages/td-schedule-flame.h"

/* ---- where it stands ---- */

static gint
zoom_of (TdScheduleData *data, const TdFlame *flame)
{
  return MAX (0, td_flame_find (flame, data->flame_zoom.key, data->flame_zoom.lane));
}

/* Where keys or a click led, else what is selected; -1: nowhere. */
static gint
cursor_of (TdScheduleData *data, const TdFlame *flame)
{
  guint n;
  const guint64 *keys = td_session_get_selection (td_page_get_session (data->page), &n);
  if (data->flame_walked)
    return td_flame_find (flame, data->flame_cursor.key, data->flame_cursor.lane);
  return n > 0 && keys[0] ? td_flame_find (flame, keys[0], TD_FLAME_ALL) : -1;
}

static gboolean
is_within (const TdFlame *flame, gint node, gint zoom)
{
  return node >= zoom && node < flame->nodes[zoom].end;
}

TdScene *
td__flame_make (TdScheduleData *data, const TdPanelView *view)
{
  TdFlame *flame = td__schedule_get_flame (data);
  if (!flame)
    return NULL;
  TdFlameLook look = { .size = data->flame_size,
                       .zoom = zoom_of (data, flame),
                       .cursor = data->flame_walked ? cursor_of (data, flame) : -1 };
  return td_flame_scene (flame, &look, view);
}

/* ---- going there ---- */

static TdFlamePlace
place_of (const TdFlame *flame, gint node)
{
  return (TdFlamePlace){ flame->nodes[node].key, flame->nodes[node].lane };
}

/* Lanes stand for nothing that could be selected: what is selected stays. */
static void
go_to (TdScheduleData *data, const TdFlame *flame, gint node)
{
  data->flame_cursor = place_of (flame, node);
  data->flame_walked = TRUE;
  data->picking = TRUE;
  if (flame->nodes[node].key)
    td_session_select (td_page_get_session (data->page), flame->nodes[node].key);
  data->picking = FALSE;
  td_page_refresh (data->page);
}

static void
zoom_to (TdScheduleData *data, const TdFlame *flame, gint node)
{
  data->flame_zoom = place_of (flame, node);
  td_page_refresh (data->page);
}

gboolean
td__flame_zoom_out (TdScheduleData *data)
{
  TdFlame *flame = td__schedule_get_flame (data);
  gint zoom = flame ? zoom_of (data, flame) : 0;
  if (zoom == 0)
    return FALSE;
  zoom_to (data, flame, flame->nodes[zoom].parent);
  return TRUE;
}

/* An operation has nothing in it to zoom into: it is a moment. */
static void
zoom_in (TdScheduleData *data, const TdFlame *flame, gint node)
{
  if (!flame->nodes[node].is_op)
    zoom_to (data, flame, node);
  else
    td_session_set_moment (td_page_get_session (data->page),
                           td_iteration_get_number (flame->iteration),
                           flame->nodes[node].event);
}

static gint
node_of (const TdFlame *flame, const TdSceneHit *hit)
{
  return flame && hit && hit->tag == TD_TAG_ROW && hit->data >= 0
                 && hit->data < (gint64)flame->n
             ? (gint)hit->data
             : -1;
}

void
td__flame_press (TdScheduleData *data, const TdSceneHit *hit)
{
  TdFlame *flame = td__schedule_get_flame (data);
  gint node = node_of (flame, hit);
  if (node >= 0)
    go_to (data, flame, node);
}

void
td__flame_open (TdScheduleData *data, const TdSceneHit *hit)
{
  TdFlame *flame = td__schedule_get_flame (data);
  gint node = node_of (flame, hit);
  if (node > 0 && node == zoom_of (data, flame))
    zoom_to (data, flame, flame->nodes[node].parent);
  else if (node >= 0)
    zoom_in (data, flame, node);
}

static const TdFlameStep steps[] = {
  [TD_SCENE_LEFT] = TD_FLAME_LEFT,   [TD_SCENE_RIGHT] = TD_FLAME_RIGHT,
  [TD_SCENE_UP] = TD_FLAME_OUT,      [TD_SCENE_DOWN] = TD_FLAME_IN,
  [TD_SCENE_FIRST] = TD_FLAME_FIRST, [TD_SCENE_LAST] = TD_FLAME_LAST,
};

char *
td__flame_walk (TdScheduleData *data, TdSceneWay way)
{
  TdFlame *flame = td__schedule_get_flame (data);
  if (!flame || flame->n < 2)
    return NULL;
  gint zoom = zoom_of (data, flame), at = cursor_of (data, flame), next;
  gboolean outside = at < 0 || !is_within (flame, at, zoom);
  if (way == TD_SCENE_OUT)
    {
      if (!td__flame_zoom_out (data))
        return NULL;
      return td_flame_title (flame, zoom_of (data, flame), data->flame_size);
    }
  if (way == TD_SCENE_IN)
    {
      if (outside)
        return NULL;
      g_autofree char *words = td_flame_describe (flame, at, data->flame_size);
      zoom_in (data, flame, at); /* a moment may make the graph anew */
      return g_steal_pointer (&words);
    }
  next = outside ? zoom : td_flame_step (flame, data->flame_size, zoom, at, steps[way]);
  if (next >= 0)
    go_to (data, flame, next);
  return td_flame_describe (flame, next >= 0 ? next : at, data->flame_size);
}

void
td__flame_set_size (TdScheduleData *data, TdFlameSize size)
{
  if (data->flame_size == size)
    return;
  data->flame_size = size;
  td_page_refresh (data->page);
}

/* ---- the bar ---- */

typedef struct
{
  TdPage *page;         /* weak */
  TdScheduleData *data; /* of the page */
  GtkWidget *sizes[TD_N_FLAME_SIZES];
  GtkLabel *title;
  GtkWidget *out;
} Bar;

static void
bar_free (gpointer data)
{
  Bar *bar = data;
  g_clear_weak_pointer (&bar->page);
  g_free (bar);
}

static void
size_toggled (GtkToggleButton *button, Bar *bar)
{
  for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
    if (bar->page && bar->sizes[s] == GTK_WIDGET (button)
        && gtk_toggle_button_get_active (button))
      td__flame_set_size (bar->data, (TdFlameSize)s);
}

static void
out_clicked (GtkButton *button, Bar *bar)
{
  if (bar->page)
    td__flame_zoom_out (bar->data);
}

void
td__flame_bar_update (GtkWidget *widget)
{
  Bar *bar = g_object_get_data (G_OBJECT (widget), "bar");
  TdFlame *flame = bar->page && gtk_widget_get_mapped (gtk_widget_get_parent (widget))
                       ? td__schedule_get_flame (bar->data)
                       : NULL;
  if (!flame)
    return;
  gint zoom = zoom_of (bar->data, flame);
  g_autofree char *title = td_flame_title (flame, zoom, bar->data->flame_size);
  g_autofree char *valid = g_utf8_make_valid (title, -1);
  gtk_toggle_button_set_active (GTK_TOGGLE_BUTTON (bar->sizes[bar->data->flame_size]), TRUE);
  gtk_label_set_text (bar->title, valid);
  gtk_widget_set_tooltip_text (GTK_WIDGET (bar->title), valid);
  gtk_widget_set_visible (bar->out, zoom > 0);
}

/* A narrow dock cuts it at its end instead of growing. */
static GtkWidget *
wrap_bar (GtkWidget *box)
{
  GtkWidget *bar = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (bar), GTK_POLICY_EXTERNAL,
                                  GTK_POLICY_NEVER);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (bar), box);
  return bar;
}

static GtkWidget *
new_sizes (Bar *bar)
{
  static const struct
  {
    const char *label, *tip;
  } sizes[] = { [TD_FLAME_TIME] = { "Time", "Boxes as wide as the time they took" },
                [TD_FLAME_BYTES] = { "Bytes", "Boxes as wide as the bytes they made" } };
  GtkWidget *linked = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  gtk_widget_add_css_class (linked, "linked");
  for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
    {
      bar->sizes[s] = gtk_toggle_button_new_with_label (sizes[s].label);
      gtk_widget_add_css_class (bar->sizes[s], "td-small");
      gtk_widget_set_valign (bar->sizes[s], GTK_ALIGN_CENTER);
      gtk_widget_set_tooltip_text (bar->sizes[s], sizes[s].tip);
      if (s > 0)
        gtk_toggle_button_set_group (GTK_TOGGLE_BUTTON (bar->sizes[s]),
                                     GTK_TOGGLE_BUTTON (bar->sizes[0]));
      g_signal_connect (bar->sizes[s], "toggled", G_CALLBACK (size_toggled), bar);
      gtk_box_append (GTK_BOX (linked), bar->sizes[s]);
    }
  return linked;
}

GtkWidget *
td__flame_bar_new (TdScheduleData *data)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  Bar *bar = g_new0 (Bar, 1);
  g_set_weak_pointer (&bar->page, data->page);
  bar->data = data;
  gtk_widget_set_margin_start (box, 8);
  gtk_widget_set_margin_end (box, 8);
  gtk_widget_set_margin_bottom (box, 4);
  gtk_box_append (GTK_BOX (box), new_sizes (bar));
  bar->out = gtk_button_new_from_icon_name ("go-up-symbolic");
  gtk_widget_add_css_class (bar->out, "td-small");
  gtk_widget_set_valign (bar->out, GTK_ALIGN_CENTER);
  gtk_widget_set_tooltip_text (bar->out, "Zoom out (Backspace)");
  gtk_accessible_update_property (GTK_ACCESSIBLE (bar->out), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  "Zoom out", -1);
  g_signal_connect (bar->out, "clicked", G_CALLBACK (out_clicked), bar);
  gtk_box_append (GTK_BOX (box), bar->out);
  bar->title = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_ellipsize (bar->title, PANGO_ELLIPSIZE_END);
  gtk_label_set_xalign (bar->title, 0);
  gtk_widget_set_hexpand (GTK_WIDGET (bar->title), TRUE);
  gtk_widget_add_css_class (GTK_WIDGET (bar->title), "caption");
  gtk_widget_add_css_class (GTK_WIDGET (bar->title), "numeric");
  gtk_widget_set_name (GTK_WIDGET (bar->title), "flame-title");
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (bar->title));
  GtkWidget *widget = wrap_bar (box);
  g_object_set_data_full (G_OBJECT (widget), "bar", bar, bar_free);
  return widget;
}
