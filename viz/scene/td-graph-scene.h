/*
 * The picture of a graph: a view (what is visible), its layout (where), and a moment (what has
 * run).
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "layout/td-layout.h"
#include "scene/td-panel.h"

G_BEGIN_DECLS

typedef enum
{
  TD_HEAT_OFF,
  TD_HEAT_BYTES, /* of the outputs */
  TD_HEAT_TIME,
  TD_HEAT_NORM, /* of the first output or gradient, where recorded; or that it is NaN */
  TD_N_HEATS
} TdHeatBy;

/**
 * Draw a graph. view->event is the playhead: what comes later is dashed; -1: all has run, no
 * playhead. Node prims carry the node's select key (TD_TAG_NODE, data: event), folded ones and
 * headers the group's key (TD_TAG_GROUP, TD_TAG_GROUP_TOGGLE), pills and edges the variable's
 * key. Owner: the caller.
 */
TdScene *td_graph_scene_new (const TdLayout *layout, const TdPanelView *view, TdHeatBy heat);

/** How large that picture is. */
void td_graph_scene_get_size (const TdLayout *layout, double *width, double *height);

/**
 * Draw the small map of a layout in 122 x 66 units, with the visible part framed (NULL: none).
 * Owner: the caller.
 */
TdScene *td_graph_minimap_new (const TdLayout *layout, const TdPanelView *view,
                               const TdSceneRect *visible);

/** Turn a point of the minimap into one of the layout. */
TdScenePoint td_graph_minimap_point (const TdLayout *layout, double x, double y);

G_END_DECLS
