/*
 * What the parts of the graph's picture share while it is made.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-graph-scene.h"

G_BEGIN_DECLS

typedef struct
{
  TdSceneBuilder *b;
  const TdLayout *layout;
  const TdPanelView *panel;
  TdIteration *iteration;
  double dx, dy; /* from layout to scene */
  gint playhead; /* node that shows the playhead's event, -1 */
  TdHeatBy heat;
  float *heat_values; /* log10 by node, NaN where there is none */
  double heat_lo, heat_hi;
  GHashTable *labels; /* of edges, drawn so far */
  GHashTable *drawn;  /* segment starts and directions -> length drawn so far */
} TdGraphPainter;

gboolean td__graph_has_run (const TdGraphPainter *g, gint event);
gboolean td__graph_is_at_playhead (const TdGraphPainter *g, gint node);
TdSceneRect td__graph_rect (const TdGraphPainter *g, const TdRect *r);
/** Return the mark of an operation's node; TD_MARK_NONE for groups, which show counts. */
TdMark td__graph_mark_of (const TdGraphPainter *g, gint node);
/** Add the sign of a marked operation, or the counts of what differs in a folded group. */
void td__graph_add_marks (TdGraphPainter *g, gint node, TdSceneRect r);
/** Add all wires, below the nodes. */
void td__graph_add_edges (TdGraphPainter *g);
/** Add the bytes of saved edges, above the wires. */
void td__graph_add_pills (TdGraphPainter *g);

G_END_DECLS
