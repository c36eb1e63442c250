/*
 * Graphs in the DOT language, as far as Chainer and this program write it: nodes with label,
 * shape and style, edges, rankdir, clusters (whose members are kept, their frames are not).
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-scene.h"

G_BEGIN_DECLS

typedef struct
{
  char *id;
  char *label;      /* lines separated by '\n'; the id when there is none */
  gboolean octagon; /* a variable; else a box */
} TdDotNode;

typedef struct
{
  guint from, to; /* indices of nodes */
} TdDotEdge;

typedef struct
{
  GArray *nodes;   /* TdDotNode, in the order in which they are first named */
  GArray *edges;   /* TdDotEdge */
  char rankdir[3]; /* TB, BT, LR or RL */
} TdDotGraph;

/** Parse a text. Owner: the caller. Errors: one line with the place ("line 3: ] expected"). */
TdDotGraph *td_dot_parse (const char *text, gsize n, GError **error);
void td_dot_free (TdDotGraph *graph);

/** Lay out and draw it, in the look of the theme that paints it. Owner: the caller. */
TdScene *td_dot_scene (const TdDotGraph *graph);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdDotGraph, td_dot_free)

G_END_DECLS
