/*
 * What the parts of the graph's picture share while it is made.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-graph-scene.h"

G_BEGIN_DECLS

/** What became of what an operation made. */
typedef enum
{
  TD_LIFE_UNKNOWN,
  TD_LIFE_ALIVE,
  TD_LIFE_HELD,
  TD_LIFE_FREED,
  TD_N_LIVES
} TdLife;

typedef struct
{
  TdSceneBuilder *b;
  const TdLayout *layout;
  const TdPanelView *panel;
  TdIteration *iteration;
  double dx, dy;  /* from layout to scene */
  gint playhead;  /* node that shows the playhead's event, -1 */
  guint8 *linked; /* nodes that show what is selected under another key; NULL: none */
  TdHeatBy heat;
  float *heat_values; /* log10 by node; NaN: it is none; minus infinity: it is not known */
  double heat_lo, heat_hi;
  TdLife *lives;      /* by node; NULL: not known */
  GHashTable *labels; /* of edges, drawn so far */
  GHashTable *drawn;  /* segment starts and directions -> length drawn so far */
} TdGraphPainter;

gboolean td__graph_has_run (const TdGraphPainter *g, gint event);
gboolean td__graph_is_at_playhead (const TdGraphPainter *g, gint node);
/** Say whether the node shows what is selected. */
gboolean td__graph_is_selected (const TdGraphPainter *g, gint node);
/** Find the numbers that nodes are coloured by; draw one; write one, where there is one. */
void td__graph_prepare_heat (TdGraphPainter *g);
void td__graph_add_heat_stripe (TdGraphPainter *g, gint node, TdSceneRect r);
void td__graph_format_heat (const TdGraphPainter *g, gint node, char text[TD_FORMAT_SIZE]);
/** Find what became of what each node made; return it; say it. */
void td__graph_find_lives (TdGraphPainter *g);
TdLife td__graph_life_of (const TdGraphPainter *g, gint node);
const char *td__graph_life_words (TdLife life);
TdSceneRect td__graph_rect (const TdGraphPainter *g, const TdRect *r);
/** Return the mark of an operation's node; TD_MARK_NONE for groups, which show counts. */
TdMark td__graph_mark_of (const TdGraphPainter *g, gint node);
/** Add the sign of a marked operation, or the counts of what differs in a folded group. */
void td__graph_add_marks (TdGraphPainter *g, gint node, TdSceneRect r);
/** Count the events of a node that a static schedule replayed. */
guint td__graph_count_replayed (const TdGraphPainter *g, gint node);
/** Add the sign of what is replayed: the lines of a list. Returns the width it takes. */
double td__graph_add_replay_sign (TdGraphPainter *g, double x, double y, gboolean run);
/** Say in a lane's header how many of its operations were replayed, where there is room. */
void td__graph_add_replay_legend (TdGraphPainter *g, TdLane lane, TdSceneRect r);
/** Write the operations of a fused node below one another. */
void td__graph_add_fused_text (TdGraphPainter *g, gint node, TdSceneRect r, gboolean run);
/** Append "replayed from schedule 3, step 12" where that is so. */
void td__graph_append_replay (const TdGraphPainter *g, gint node, GString *text);
/** Mark the nodes that show what is selected, where no node has the key itself. */
void td__graph_link_selection (TdGraphPainter *g);
/** Add all wires, below the nodes. */
void td__graph_add_edges (TdGraphPainter *g);
/** Add the bytes of saved edges, above the wires. */
void td__graph_add_pills (TdGraphPainter *g);

G_END_DECLS
