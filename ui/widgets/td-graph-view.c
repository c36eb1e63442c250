/* The canvas. Structure changes go through rebuild_layout, everything else only makes the scene
 * again: quick layout at once, Graphviz's when it has answered and the pointer is still.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-graph-view-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "widgets/td-draw-later.h"
#include "widgets/td-scene-view.h"
#include "widgets/td-text-scale.h"

#define LAYOUT_BUDGET_MS 2000
#define STILL_MS 1000
#define SHOW_MARGIN 24.0
#define READABLE_SCALE 0.8
#define READABLE_SCALE_OF_PAIR 0.6 /* two canvases in one window */

enum
{
  VIEW_CHANGED,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdGraphView, td_graph_view, GTK_TYPE_WIDGET)

/* ---- scene ---- */

static void
invalidate_scene (TdGraphView *self)
{
  g_clear_pointer (&self->painted, gsk_render_node_unref); /* colours may have changed */
  self->scene_valid = FALSE;
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

TdLayout *
td_graph_view_get_layout (TdGraphView *self)
{
  return self->layout;
}

guint
td_graph_view_get_n_nodes (TdGraphView *self)
{
  return self->layout ? self->layout->view->n_nodes : 0;
}

/* The accessible description follows the selection: drawn nodes cannot be objects of their own.
 */
static void
update_description (TdGraphView *self)
{
  guint n;
  const guint64 *keys = self->session ? td_session_get_selection (self->session, &n) : NULL;
  g_autofree char *text = NULL;
  if (keys && n && self->iteration)
    {
      gint event = td_iteration_find (self->iteration, keys[0]);
      if (event >= 0)
        {
          g_autofree char *op = g_utf8_make_valid (
              td_iteration_get_op_name (self->iteration, (guint)event), -1);
          g_autofree char *site = td_iteration_dup_site (self->iteration, (guint)event);
          g_autofree char *valid = g_utf8_make_valid (site, -1);
          gboolean ran = (guint)event < td_iteration_get_n_run (self->iteration);
          text = g_strdup_printf ("%s, event %d, %s%s", op, event, valid,
                                  ran ? "" : ", has not run yet");
        }
    }
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                  text ? text : _ ("Nothing is selected"), -1);
}

/* ---- viewport ---- */

/* Listeners change labels, which must not happen while the view is being drawn. */
static gboolean
notify_view_changed (gpointer self)
{
  g_signal_emit (self, signals[VIEW_CHANGED], 0);
  return G_SOURCE_REMOVE;
}

static void
update_viewport (TdGraphView *self)
{
  double scale = self->viewport.scale;
  self->viewport.width = gtk_widget_get_width (GTK_WIDGET (self)) / self->text_scale;
  self->viewport.height = gtk_widget_get_height (GTK_WIDGET (self)) / self->text_scale;
  td__graph_view_get_size (self, &self->viewport.content_width, &self->viewport.content_height);
  td__graph_view_share_content (self);
  if (self->fitted)
    td__graph_view_fit_content (self);
  if (self->viewport.scale != scale)
    g_idle_add_full (G_PRIORITY_DEFAULT_IDLE, notify_view_changed, g_object_ref (self),
                     g_object_unref);
}

void
td_graph_view_fit (TdGraphView *self)
{
  if (self->peer && self->is_second) /* which shows what the first one does */
    self = self->peer;
  self->fitted = self->fit_whole = TRUE;
  self->peer_x = self->peer_y = 0;
  update_viewport (self);
  td__graph_view_moved (self);
}

double
td_graph_view_get_scale (TdGraphView *self)
{
  return self->viewport.scale;
}

void
td__graph_view_zoom_at (TdGraphView *self, double factor, double x, double y)
{
  self->fitted = FALSE;
  td_viewport_zoom_at (&self->viewport, factor, x, y);
  td__graph_view_moved (self);
}

void
td_graph_view_zoom (TdGraphView *self, double factor)
{
  if (factor <= 0)
    factor = 1.0 / self->viewport.scale;
  td__graph_view_zoom_at (self, factor, self->viewport.width / 2, self->viewport.height / 2);
}

static void
show_playhead (TdGraphView *self)
{
  TdSceneRect box;
  if (!td__graph_view_sees_all (self) && td__graph_view_find_playhead (self, &box)
      && td_viewport_show (&self->viewport, &box, SHOW_MARGIN))
    td__graph_view_moved (self);
}

/* ---- layout ---- */

static void
take_layout (TdGraphView *self, TdLayout *layout, guint64 still_key)
{
  TdSceneRect before, after;
  TdScene *old = still_key ? td_graph_view_get_scene (self) : NULL;
  gboolean known = old && td_scene_find_key (old, still_key, &before);
  g_clear_pointer (&self->layout, td_layout_unref);
  self->layout = layout;
  self->scene_valid = FALSE;
  if (self->peer && self->is_second && self->peer->layout) /* it makes room for both */
    update_viewport (self->peer);
  update_viewport (self);
  TdScene *new = known ? td_graph_view_get_scene (self) : NULL;
  if (new && !td__graph_view_sees_all (self) && td_scene_find_key (new, still_key, &after))
    {
      self->viewport.x += after.x - before.x;
      self->viewport.y += after.y - before.y;
    }
  td__graph_view_moved (self);
}

static guint64
playhead_key (TdGraphView *self)
{
  TdMoment moment = td_session_get_moment (self->session);
  gint node = self->layout ? td_viz_view_find_event (self->layout->view, moment.event) : -1;
  return node >= 0 ? self->layout->view->nodes[node].select_key : 0;
}

/* A better layout is taken when nobody is pointing at the one on show. */
static gboolean
take_better (gpointer data)
{
  TdGraphView *self = data;
  if (g_get_monotonic_time () - self->last_motion < STILL_MS * 1000)
    return G_SOURCE_CONTINUE;
  self->still_timer = 0;
  g_autoptr (TdLayout) better = g_steal_pointer (&self->better);
  if (better && self->session) /* of the iteration that it was asked for, maybe not this one */
    take_layout (self, td_layout_new_like (better, self->layout->view), playhead_key (self));
  return G_SOURCE_REMOVE;
}

gboolean
td_graph_view_is_laying_out (TdGraphView *self)
{
  return self->n_asked > 0 || self->better;
}

static void
graphviz_answered (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (TdGraphView) self = data;
  self->n_asked--;
  TdLayout *layout = td_layout_new_graphviz_finish (result, NULL);
  gboolean wanted = layout && self->layout && self->session
                    && td_layout_fits (layout, self->layout->view, self->layout->orientation);
  if (!wanted)
    {
      g_clear_pointer (&layout, td_layout_unref);
      return;
    }
  g_clear_pointer (&self->better, td_layout_unref);
  self->better = layout;
  if (!self->still_timer)
    self->still_timer = g_timeout_add (100, take_better, self);
}

static TdViewLanes
lanes_of (TdGraphView *self)
{
  return self->lanes ? self->lanes : TD_VIEW_ALL;
}

static void
rebuild_layout (TdGraphView *self, guint64 still_key)
{
  if (!self->graph || !self->fold)
    return;
  TdLayoutOptions options = { .orientation = self->orientation };
  TdVizView *view = td_viz_view_new (self->graph, self->fold, lanes_of (self));
  g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  g_clear_pointer (&self->better, td_layout_unref);
  gboolean second = self->peer && self->is_second && self->peer->layout
                    && self->peer->layout->orientation == self->orientation;
  TdLayout *layout
      = td_layout_new_quick (view, &options, second ? self->peer->layout : self->layout);
  take_layout (self, layout, still_key);
  if (self->peer) /* Graphviz would move each on its own */
    {
      td_viz_view_unref (view);
      return;
    }
  self->cancellable = g_cancellable_new ();
  self->n_asked++;
  td_layout_new_graphviz_async (view, &options, layout, LAYOUT_BUDGET_MS, self->cancellable,
                                graphviz_answered, g_object_ref (self));
  td_viz_view_unref (view);
}

/* Fold until the picture can be read without zooming, but never to less than a dozen nodes. */
static TdFold *
make_fold (TdGraphView *self)
{
  static const guint visible[] = { 60, 48, 40, 32, 26, 20, 16, 12 };
  double width = MAX (gtk_widget_get_width (GTK_WIDGET (self)) / self->text_scale, 640);
  double height = MAX (gtk_widget_get_height (GTK_WIDGET (self)) / self->text_scale, 400);
  TdLayoutOptions options = { .orientation = self->orientation };
  gint event = self->peer ? -1 : td_session_get_moment (self->session).event;
  TdFold *fold = self->peer && self->is_second ? td__graph_view_copy_fold (self) : NULL;
  if (fold)
    return fold;
  for (guint i = 0; i < G_N_ELEMENTS (visible); i++)
    {
      TdFold *next = td_fold_new_near (self->graph, visible[i], event);
      gboolean same = fold && td_fold_equal (fold, next);
      g_clear_pointer (&fold, td_fold_free);
      fold = next;
      if (same) /* and so is its picture */
        continue;
      TdVizView *view = td_viz_view_new (self->graph, fold, lanes_of (self));
      TdLayout *layout = td_layout_new_quick (view, &options, NULL);
      double scale = MIN (width / MAX (layout->bounds.width, 1),
                          height / MAX (layout->bounds.height, 1));
      td_layout_unref (layout);
      td_viz_view_unref (view);
      if (scale >= (self->peer ? READABLE_SCALE_OF_PAIR : READABLE_SCALE))
        break;
    }
  return self->peer && self->is_second ? td__graph_view_match_fold (self, fold) : fold;
}

/* What was replayed is folded otherwise; the keys alone do not say it. */
static gboolean
same_replays (TdIteration *a, TdIteration *b)
{
  const TdTapeIteration *x = td_iteration_get_tape (a), *y = td_iteration_get_tape (b);
  for (guint e = 0; e < x->n_events && e < y->n_events; e++)
    if ((x->events[e].flags ^ y->events[e].flags) & TD_TAPE_EVENT_REPLAYED)
      return FALSE;
  return x->n_events == y->n_events;
}

/* An iteration of the same structure: nothing moves, but sizes, times and what failed are its
 * own. FALSE: it has to be laid out. */
static gboolean
keep_places (TdGraphView *self)
{
  TdVizView *view = td_viz_view_new (self->graph, self->fold, lanes_of (self));
  gboolean fits = self->layout && td_layout_fits (self->layout, view, self->orientation)
                  && same_replays (td_viz_graph_get_iteration (self->layout->view->graph),
                                   self->iteration);
  if (fits)
    {
      TdLayout *layout = td_layout_new_like (self->layout, view);
      td_layout_unref (self->layout);
      self->layout = layout;
      self->scene_valid = FALSE;
    }
  td_viz_view_unref (view);
  return fits;
}

/* Nothing is shown; nor will be what was asked for meanwhile. */
static void
drop_layout (TdGraphView *self)
{
  g_clear_handle_id (&self->still_timer, g_source_remove);
  g_clear_pointer (&self->better, td_layout_unref);
  g_clear_pointer (&self->layout, td_layout_unref);
}

static void
set_iteration (TdGraphView *self, TdIteration *iteration)
{
  if (iteration == self->iteration)
    return;
  g_clear_pointer (&self->iteration, td_iteration_unref);
  self->graph = NULL;
  if (!iteration)
    {
      drop_layout (self);
      invalidate_scene (self);
      return;
    }
  self->iteration = td_iteration_ref (iteration);
  if (td_iteration_get_tape (iteration)->flags & TD_TAPE_ITERATION_SNAPSHOT)
    {
      drop_layout (self);
      self->scene_valid = FALSE;
      update_viewport (self);
      return;
    }
  self->graph = td_iteration_get_graph (iteration);
  if (self->fold && keep_places (self))
    return;
  if (!self->fold || !self->fold_chosen)
    {
      g_clear_pointer (&self->fold, td_fold_free);
      self->fold = make_fold (self);
    }
  rebuild_layout (self, playhead_key (self));
}

static void
show_moment (TdGraphView *self)
{
  TdIteration *iteration = td_session_get_expected (self->session);
  set_iteration (self, iteration);
  g_clear_pointer (&iteration, td_iteration_unref);
  invalidate_scene (self);
  if (self->anchor < 0)
    show_playhead (self);
}

/* From an anchor of before to the playhead, which moved. */
static void
show_moved (TdGraphView *self)
{
  td__graph_view_anchor (self, -1);
  show_moment (self);
}

/* Scrolls to what was selected elsewhere; what was clicked is in sight. */
static void
show_selected (TdGraphView *self)
{
  guint n;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  TdScene *scene = n && !td__graph_view_sees_all (self) ? td_graph_view_get_scene (self) : NULL;
  gint event = scene && self->iteration ? td_iteration_find (self->iteration, keys[0]) : -1;
  gint node = event >= 0 ? td_viz_view_find_event (self->layout->view, (guint)event) : -1;
  TdSceneRect box;
  if (!scene)
    return;
  guint64 key = td_scene_find_key (scene, keys[0], &box) || node < 0
                    ? keys[0]
                    : self->layout->view->nodes[node].select_key;
  if (!td_scene_find_key (scene, key, &box)
      || !td_viewport_show (&self->viewport, &box, SHOW_MARGIN))
    return;
  td__graph_view_anchor (self, event);
  if (event < 0) /* a variable or a layer: nothing follows it */
    self->fitted = FALSE;
  td__graph_view_moved (self);
}

static void
show_selection (TdGraphView *self)
{
  invalidate_scene (self);
  show_selected (self);
  update_description (self);
}

static void show_hover (TdGraphView *self);

/* In the session's worker: the window does not wait for it. */
static void
prepare (TdIteration *iteration)
{
  td_iteration_get_graph (iteration);
}

void
td_graph_view_set_session (TdGraphView *self, TdSession *session)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  drop_layout (self);
  g_clear_pointer (&self->fold, td_fold_free);
  set_iteration (self, NULL);
  self->hover = 0;
  g_set_object (&self->session, session);
  self->fitted = TRUE;
  self->fit_whole = self->cut = FALSE;
  self->anchor = self->beside = -1;
  self->fold_chosen = FALSE;
  if (self->peer && self->is_second) /* another iteration beside the first one's: stay there */
    {
      self->fitted = self->peer->fitted;
      self->fit_whole = self->peer->fit_whole;
      self->cut = self->peer->cut;
      self->viewport = self->peer->viewport;
    }
  if (!session)
    return;
  td_session_set_prepare (session, prepare);
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (show_moved), self);
  g_signal_connect_swapped (session, "iterations-changed", G_CALLBACK (show_moment), self);
  g_signal_connect_swapped (session, "head-changed", G_CALLBACK (invalidate_scene), self);
  g_signal_connect_swapped (session, "selection-changed", G_CALLBACK (show_selection), self);
  g_signal_connect_swapped (session, "hover-changed", G_CALLBACK (show_hover), self);
  show_moment (self);
}

/* ---- choices ---- */

void
td_graph_view_set_orientation (TdGraphView *self, TdOrientation orientation)
{
  if (self->orientation == orientation)
    return;
  self->orientation = orientation;
  drop_layout (self);
  self->scene_valid = FALSE;
  self->fitted = TRUE;
  self->fit_whole = self->cut = FALSE;
  rebuild_layout (self, 0);
}

void
td_graph_view_set_lanes (TdGraphView *self, TdViewLanes lanes)
{
  if (self->lanes == lanes)
    return;
  self->lanes = lanes;
  rebuild_layout (self, 0);
}

void
td_graph_view_set_heat (TdGraphView *self, TdHeatBy heat)
{
  self->heat = heat;
  rebuild_layout (self, 0);
  invalidate_scene (self);
}

gboolean
td_graph_view_is_expanded (TdGraphView *self, guint64 key)
{
  return self->fold && td_fold_is_expanded (self->fold, key);
}

gboolean
td_graph_view_set_expanded (TdGraphView *self, guint64 key, gboolean expanded)
{
  if (!self->graph || td_viz_graph_find_group (self->graph, key) < 0)
    return FALSE;
  td_fold_set_expanded (self->fold, key, expanded);
  self->fold_chosen = TRUE;
  td__graph_view_keep_zoom (self);
  rebuild_layout (self, key);
  if (self->peer && !self->following)
    {
      self->peer->following = TRUE;
      td_graph_view_set_expanded (self->peer, td_graph_view_get_peer_key (self, key), expanded);
      self->peer->following = FALSE;
    }
  return TRUE;
}

void
td_graph_view_expand_to (TdGraphView *self, int depth)
{
  if (!self->graph)
    return;
  g_clear_pointer (&self->fold, td_fold_free);
  self->fold = td_fold_new_depth (self->graph, depth);
  self->fold_chosen = TRUE;
  td__graph_view_keep_zoom (self);
  rebuild_layout (self, 0);
  if (self->peer && !self->following)
    {
      self->peer->following = TRUE;
      td_graph_view_expand_to (self->peer, depth);
      self->peer->following = FALSE;
    }
}

void
td_graph_view_reveal (TdGraphView *self, gint event)
{
  if (!self->graph || event < 0 || !td_fold_reveal (self->fold, self->graph, (guint)event))
    return;
  self->fold_chosen = TRUE;
  td__graph_view_keep_zoom (self);
  rebuild_layout (self, 0);
}

guint64
td_graph_view_find_layer (TdGraphView *self, guint64 key)
{
  if (!self->graph || !key)
    return 0;
  if (td_viz_graph_find_group (self->graph, key) >= 0)
    return key;
  gint event = td_iteration_find (self->iteration, key);
  guint n;
  const TdVizGroup *groups = td_viz_graph_get_groups (self->graph, &n);
  gint group = event >= 0 ? td_viz_graph_get_event_group (self->graph, (guint)event) : -1;
  return group > 0 ? groups[group].key : 0;
}

/* ---- what the pointer is on, here or elsewhere ---- */

/* The key itself, or that of the layer which hides it. */
static guint64
find_shown (TdGraphView *self, guint64 key)
{
  TdScene *scene = key ? td_graph_view_get_scene (self) : NULL;
  TdSceneRect box;
  if (!scene || !self->layout || !self->iteration)
    return 0;
  if (td_scene_find_key (scene, key, &box))
    return key;
  gint event = td_iteration_find (self->iteration, key);
  gint node = event >= 0 ? td_viz_view_find_event (self->layout->view, event) : -1;
  return node >= 0 ? self->layout->view->nodes[node].select_key : 0;
}

static void
show_hover (TdGraphView *self)
{
  guint64 key = find_shown (self, td_session_get_hover (self->session));
  if (key == self->hover)
    return;
  self->hover = key;
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

guint64
td_graph_view_get_hover (TdGraphView *self)
{
  return self->hover;
}

void
td__graph_view_point (TdGraphView *self, double x, double y)
{
  TdScene *scene = td_graph_view_get_scene (self);
  TdSceneHit hit;
  double cx, cy;
  td_viewport_to_content (&self->viewport, x, y, &cx, &cy);
  if (!self->session)
    return;
  gboolean found = x >= 0 && scene && td_scene_hit (scene, cx, cy, 0, &hit);
  td_session_set_hover (self->session, found ? hit.key : 0);
}

static void
make_first (GtkWidget *widget)
{
  td_graph_view_get_scene (TD_GRAPH_VIEW (widget));
}

static void
td_graph_view_snapshot (GtkWidget *widget, GtkSnapshot *snapshot)
{
  TdGraphView *self = TD_GRAPH_VIEW (widget);
  update_viewport (self);
  if (!self->scene_valid && !self->scene)
    {
      td_draw_later (widget, make_first);
      return;
    }
  TdScene *scene = td_graph_view_get_scene (self);
  TdViewport *v = &self->viewport;
  if (!scene || v->width < 2)
    return;
  graphene_rect_t bounds;
  td__graph_view_get_bounds (self, &bounds);
  TdSceneRect visible = td_viewport_visible (v);
  if (!self->painted || self->painted_scene != scene
      || memcmp (&self->painted_at, v, sizeof *v) != 0)
    td__graph_view_paint (self, scene);
  if (self->painted)
    gtk_snapshot_append_node (snapshot, self->painted);
  if (self->hover)
    {
      cairo_t *cr = td__graph_view_begin_paint (self, snapshot);
      td_scene_paint_key (scene, cr, &visible, v->scale, td_scene_view_get_theme (),
                          self->hover);
      cairo_destroy (cr);
    }
  if (gtk_widget_has_visible_focus (widget))
    {
      GdkRGBA color;
      gtk_style_context_get_color (gtk_widget_get_style_context (widget), &color);
      const GdkRGBA colors[4] = { color, color, color, color };
      GskRoundedRect frame;
      gsk_rounded_rect_init_from_rect (&frame, &bounds, 0);
      gtk_snapshot_append_border (snapshot, &frame, (const float[4]){ 2, 2, 2, 2 }, colors);
    }
}

static void
td_graph_view_size_allocate (GtkWidget *widget, int width, int height, int baseline)
{
  TdGraphView *self = TD_GRAPH_VIEW (widget);
  update_viewport (self);
}

/* ---- life ---- */

static void
td_graph_view_dispose (GObject *object)
{
  TdGraphView *self = TD_GRAPH_VIEW (object);
  td_graph_view_set_session (self, NULL);
  g_clear_pointer (&self->scene, td_scene_unref);
  td__graph_view_forget_painted (self);
  td_graph_view_set_marks (self, NULL, 0);
  if (self->peer)
    self->peer->peer = NULL;
  self->peer = NULL;
  G_OBJECT_CLASS (td_graph_view_parent_class)->dispose (object);
}

static void
td_graph_view_class_init (TdGraphViewClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = td_graph_view_dispose;
  widget_class->snapshot = td_graph_view_snapshot;
  widget_class->size_allocate = td_graph_view_size_allocate;
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_IMG);
  signals[VIEW_CHANGED] = g_signal_new ("view-changed", TD_TYPE_GRAPH_VIEW, G_SIGNAL_RUN_LAST,
                                        0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
text_scale_changed (TdGraphView *self)
{
  self->text_scale = td_text_scale_get (GTK_WIDGET (self));
  update_viewport (self);
  td__graph_view_forget_painted (self);
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

static void
td_graph_view_init (TdGraphView *self)
{
  GtkWidget *widget = GTK_WIDGET (self);
  self->viewport.scale = 1;
  self->anchor = self->beside = -1;
  self->text_scale = td_text_scale_get (widget);
  td_text_scale_watch (self, G_CALLBACK (text_scale_changed));
  self->fitted = TRUE;
  gtk_widget_set_focusable (widget, TRUE);
  gtk_widget_set_has_tooltip (widget, TRUE);
  gtk_widget_set_overflow (widget, GTK_OVERFLOW_HIDDEN);
  gtk_widget_set_hexpand (widget, TRUE);
  gtk_widget_set_vexpand (widget, TRUE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Computation graph"), -1);
  AdwStyleManager *style = adw_style_manager_get_default ();
  g_signal_connect_object (style, "notify::dark", G_CALLBACK (invalidate_scene), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (style, "notify::high-contrast", G_CALLBACK (invalidate_scene), self,
                           G_CONNECT_SWAPPED);
}
