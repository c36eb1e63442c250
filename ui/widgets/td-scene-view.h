/* A widget that shows one scene of viz: charts, strips, heat maps. Its maker is asked for a new
 * scene when the size changes or the view is told that something else did.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "scene/td-scene.h"

#define TD_TYPE_SCENE_VIEW (td_scene_view_get_type ())
G_DECLARE_FINAL_TYPE (TdSceneView, td_scene_view, TD, SCENE_VIEW, GtkWidget)

/** Make the scene for a size in CSS pixels, fewer of them where the user wants larger text (the
 * picture is then enlarged, and places are still the scene's); NULL shows nothing. Owner of the
 * result: the view.
 */
typedef TdScene *(*TdSceneMaker) (gpointer data, double width, double height);

/** Ways in a picture of things in one another. */
typedef enum
{
  TD_SCENE_LEFT,
  TD_SCENE_RIGHT,
  TD_SCENE_UP,
  TD_SCENE_DOWN,
  TD_SCENE_FIRST, /* Home */
  TD_SCENE_LAST,  /* End */
  TD_SCENE_IN,    /* Return */
  TD_SCENE_OUT,   /* Backspace */
  TD_SCENE_LARGER,
  TD_SCENE_SMALLER
} TdSceneWay;

/** Create a view with the accessible name `label`. Signals: "pressed" and "dragged" (hit, x, y)
 * with hit NULL where there is nothing; "opened" alike, by a double click; "hovered" alike,
 * with x -1 when the pointer has left; "scrolled" (x, how far) by the wheel, to be answered by
 * TRUE where that means something; "spanned" (x of one end, x of the other) when a drag with
 * Shift has ended, of which a band is drawn meanwhile, and which is a drag like others where
 * nobody listens; "walked" (TdSceneWay) by arrow keys and the like, to be answered by TRUE
 * where the picture knows ways; else "moved" (int rows), 0 by Return, to be answered by TRUE
 * where there are rows. Owner: floating. */
GtkWidget *td_scene_view_new (const char *label, TdSceneMaker maker, gpointer data);

/** Ring what stands for `key`, and on an axis of events the place of `event`, without making
 * the scene anew; 0 and -1: nothing. */
void td_scene_view_set_hover (TdSceneView *self, guint64 key, gint event);
/** Count what is ringed, for tests. */
guint td_scene_view_count_hovered (TdSceneView *self);

/** Ask the maker for a new scene before the next frame. */
void td_scene_view_invalidate (TdSceneView *self);

/** Return the scene on show, made now if need be; may be NULL. Owner: the view. */
TdScene *td_scene_view_get_scene (TdSceneView *self);

/** Return the theme that fits the style of the desktop now. */
const TdTheme *td_scene_view_get_theme (void);
