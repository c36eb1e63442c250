/* What a view is built with.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "graph/td-graph-private.h"

typedef struct
{
  TdVizGraph *graph;
  const TdTapeIteration *tape;
  GArray *nodes, *groups, *edges;
  GStringChunk *strings;
  gint32 *closed; /* per group: the folded group that hides it (itself, perhaps); -1: open */
  gint32 *open_index;       /* per group: into `groups`; -1: not open */
  gint32 *facets;           /* per group and lane: node, -1 */
  gint32 *node_of;          /* per event: node, -1 */
  const char **update_path; /* per event: path of the parameter that it updates, or NULL */
  const char *
      *gradient_path; /* per variable: path of the parameter it is the gradient of, or NULL */
  guint top_user;     /* the node whose first input stands by itself above the graph */
} TdViewBuilder;

/** Make the edges between the visible nodes, several variables between two nodes merged into
 * one. */
void td__view_add_edges (TdViewBuilder *b);
