/*
 * Immediate dominators of a graph of numbers: which one thing every way to another goes
 * through.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define TD_NO_DOMINATOR G_MAXUINT

/**
 * Find the immediate dominator of each node that can be reached from `root`.
 *
 * Edges of node i are edges[first[i]] to edges[first[i + 1] - 1], each below n; first has n + 1
 * entries.  Out: idom, n entries; TD_NO_DOMINATOR for the root and for what it does not reach.
 * order (may be NULL, n entries) gets what is reached in depth-first preorder: a node comes
 * after its dominator.  Returns how many are reached.
 * *Source*: Lengauer and Tarjan, A fast algorithm for finding dominators in a flowgraph, TOPLAS
 * 1 (1979), with simple linking: O (m log n). No recursion.
 */
guint td_dominators (guint n, const guint *first, const guint *edges, guint root, guint *idom,
                     guint *order);

G_END_DECLS
