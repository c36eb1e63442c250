/* Zoom and cursor are places, keys in lanes, so that they outlive the iteration on show.
 * SPDX-License-Identifier: MIT */
#include "pages/td-schedule-flame.h"

#include <glib/gi18n-lib.h>

#include "settings/td-tip.h"

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
  if (flame->nodes[node].key && flame->kind == TD_FLAME_LAYERS)
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

/* An operation has nothing in it to zoom into: it is a moment.  A call of a snapshot is none.
 */
static void
zoom_in (TdScheduleData *data, const TdFlame *flame, gint node)
{
  if (!flame->nodes[node].is_op)
    zoom_to (data, flame, node);
  else if (flame->nodes[node].event >= 0)
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
  if (way == TD_SCENE_LARGER || way == TD_SCENE_SMALLER) /* they open and close nodes */
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
  data->flame_sized = TRUE;
  data->flame_size = size;
  td_page_refresh (data->page);
}

/* ---- the bar ---- */

/* What boxes are as wide as, of layers and of a snapshot's calls. */
static const struct
{
  const char *label, *tip;
} size_words[][TD_N_FLAME_SIZES] = {
  { { N_ ("Time"), N_ ("Boxes as wide as the time they took") },
    { N_ ("Bytes"), N_ ("Boxes as wide as the bytes they made") } },
  { { N_ ("Bytes × Time"),
      N_ ("Boxes as wide as what their blocks held, over the whole trace") },
    { N_ ("Bytes"), N_ ("Boxes as wide as their blocks at the peak") } },
};

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
  for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
    {
      gboolean of_calls = flame->kind != TD_FLAME_LAYERS;
      gtk_button_set_label (GTK_BUTTON (bar->sizes[s]), _ (size_words[of_calls][s].label));
      td_tip_set (bar->sizes[s], _ (size_words[of_calls][s].tip));
    }
  gtk_toggle_button_set_active (GTK_TOGGLE_BUTTON (bar->sizes[bar->data->flame_size]), TRUE);
  gtk_label_set_text (bar->title, valid);
  td_tip_set (GTK_WIDGET (bar->title), valid);
  gtk_widget_set_visible (bar->out, zoom > 0);
}

GtkWidget *
td__flame_bar_new (TdScheduleData *data)
{
  g_autoptr (GtkBuilder) builder = gtk_builder_new_from_resource (
      "/io/github/tapedeck/Tapedeck/pages/td-schedule-flame.ui");
  GtkWidget *widget = GTK_WIDGET (gtk_builder_get_object (builder, "bar"));
  Bar *bar = g_new0 (Bar, 1);
  g_set_weak_pointer (&bar->page, data->page);
  bar->data = data;
  bar->out = GTK_WIDGET (gtk_builder_get_object (builder, "out"));
  bar->title = GTK_LABEL (gtk_builder_get_object (builder, "title"));
  g_signal_connect (bar->out, "clicked", G_CALLBACK (out_clicked), bar);
  for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
    {
      GObject *button = gtk_builder_get_object (builder, td_flame_size_name ((TdFlameSize)s));
      bar->sizes[s] = GTK_WIDGET (button);
      g_signal_connect (button, "toggled", G_CALLBACK (size_toggled), bar);
    }
  g_object_set_data_full (G_OBJECT (widget), "bar", bar, bar_free);
  g_object_force_floating (g_object_ref (G_OBJECT (widget))); /* the builder goes */
  return widget;
}
