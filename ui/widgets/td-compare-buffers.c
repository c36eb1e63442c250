/* Two scenes of viz side by side.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-compare-buffers.h"

#include <glib/gi18n-lib.h>

#include "schedule/td-gantt.h"
#include "widgets/td-panel-view.h"
#include "widgets/td-scene-view.h"

typedef struct
{
  TdCompareBuffers *buffers;
  TdSide side;
} Half;

struct _TdCompareBuffers
{
  GtkWidget parent;
  GtkWidget *box;
  GtkWidget *views[TD_N_SIDES];
  Half halves[TD_N_SIDES];
  const TdCompare *compare; /* borrowed, as the sessions */
  TdSession *sessions[TD_N_SIDES];
  TdGantt *gantts[TD_N_SIDES]; /* made when they are looked at */
};

enum
{
  PRESSED_KEY,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdCompareBuffers, td_compare_buffers, GTK_TYPE_WIDGET)

static void
make_gantts (TdCompareBuffers *self)
{
  for (int side = 0; side < TD_N_SIDES; side++)
    if (!self->gantts[side])
      self->gantts[side] = td_gantt_new (self->compare->of[side]);
}

static TdScene *
make_scene (gpointer data, double width, double height)
{
  Half *half = data;
  TdCompareBuffers *self = half->buffers;
  if (!self->compare || !self->sessions[half->side])
    return NULL;
  make_gantts (self);
  TdPanelView view = td_panel_view_new (self->sessions[half->side], width, height);
  return td_gantt_scene (self->gantts[half->side],
                         MAX (self->gantts[TD_SIDE_A]->extent, self->gantts[TD_SIDE_B]->extent),
                         &view);
}

static void
pressed (TdSceneView *view, TdSceneHit *hit, double x, double y, Half *half)
{
  if (hit && hit->tag == TD_TAG_ROW && hit->key)
    g_signal_emit (half->buffers, signals[PRESSED_KEY], 0, (int)half->side, hit->key);
}

static void
hovered (TdSceneView *view, TdSceneHit *hit, double x, double y, Half *half)
{
  TdSession *session = half->buffers->sessions[half->side];
  if (session)
    td_session_set_hover (session, hit ? hit->key : 0);
}

static void
show_hover (Half *half)
{
  TdCompareBuffers *self = half->buffers;
  td_scene_view_set_hover (TD_SCENE_VIEW (self->views[half->side]),
                           td_session_get_hover (self->sessions[half->side]), -1);
}

void
td_compare_buffers_invalidate (TdCompareBuffers *self)
{
  for (int side = 0; side < TD_N_SIDES; side++)
    td_scene_view_invalidate (TD_SCENE_VIEW (self->views[side]));
}

void
td_compare_buffers_set_compare (TdCompareBuffers *self, const TdCompare *compare,
                                TdSession *const *sessions)
{
  self->compare = compare;
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      if (self->sessions[side])
        g_signal_handlers_disconnect_by_data (self->sessions[side], &self->halves[side]);
      self->sessions[side] = compare ? sessions[side] : NULL;
      if (self->sessions[side])
        g_signal_connect_swapped (self->sessions[side], "hover-changed",
                                  G_CALLBACK (show_hover), &self->halves[side]);
      g_clear_pointer (&self->gantts[side], td_gantt_free);
    }
  td_compare_buffers_invalidate (self);
}

TdScene *
td_compare_buffers_get_scene (TdCompareBuffers *self, TdSide side)
{
  return td_scene_view_get_scene (TD_SCENE_VIEW (self->views[side]));
}

static void
td_compare_buffers_dispose (GObject *object)
{
  TdCompareBuffers *self = TD_COMPARE_BUFFERS (object);
  if (self->box)
    td_compare_buffers_set_compare (self, NULL, NULL);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  G_OBJECT_CLASS (td_compare_buffers_parent_class)->dispose (object);
}

static void
td_compare_buffers_class_init (TdCompareBuffersClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_compare_buffers_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
  signals[PRESSED_KEY]
      = g_signal_new ("pressed-key", TD_TYPE_COMPARE_BUFFERS, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                      NULL, G_TYPE_NONE, 2, G_TYPE_INT, G_TYPE_UINT64);
}

static void
td_compare_buffers_init (TdCompareBuffers *self)
{
  static const char *const names[TD_N_SIDES]
      = { N_ ("Buffers of A over its events, by address"),
          N_ ("Buffers of B over its events, by address") };
  self->box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 1);
  gtk_box_set_homogeneous (GTK_BOX (self->box), TRUE);
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      self->halves[side] = (Half){ self, (TdSide)side };
      self->views[side] = td_scene_view_new (_ (names[side]), make_scene, &self->halves[side]);
      g_signal_connect (self->views[side], "pressed", G_CALLBACK (pressed),
                        &self->halves[side]);
      g_signal_connect (self->views[side], "hovered", G_CALLBACK (hovered),
                        &self->halves[side]);
      gtk_box_append (GTK_BOX (self->box), self->views[side]);
    }
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
}
