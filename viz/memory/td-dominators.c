/*
 * Dominators after Lengauer and Tarjan. Nodes are numbered from 1 in depth-first order; 0 is
 * "none", so that a forest of links needs no special cases.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-dominators.h"

#include <string.h>

typedef struct
{
  guint n_reached;
  guint *number; /* by node: 1 and on in preorder; 0: not reached */
  guint *node;   /* by number, as all below */
  guint *parent, *semi, *idom;
  guint *ancestor, *label; /* of the forest */
  guint *bucket, *next;    /* whose semidominator this is; the next one of that bucket */
  guint *stack;
} Work;

/* Number what is reached, in preorder; `stack` and `at` are the way down and where it went. */
static void
number_nodes (Work *w, const guint *first, const guint *edges, guint root, guint *at)
{
  guint depth = 0;

  w->number[root] = ++w->n_reached;
  w->node[w->n_reached] = root;
  w->stack[depth++] = root;
  at[root] = first[root];
  while (depth > 0)
    {
      guint v = w->stack[depth - 1], to;

      if (at[v] == first[v + 1])
        {
          depth--;
          continue;
        }
      to = edges[at[v]++];
      if (w->number[to] != 0)
        continue;
      w->number[to] = ++w->n_reached;
      w->node[w->n_reached] = to;
      w->parent[w->n_reached] = w->number[v];
      at[to] = first[to];
      w->stack[depth++] = to;
    }
}

/* The node with the lowest semidominator on the way up from v, whose path is shortened. */
static guint
eval (Work *w, guint v)
{
  guint depth = 0;

  if (w->ancestor[v] == 0)
    return v;
  for (guint u = v; w->ancestor[w->ancestor[u]] != 0; u = w->ancestor[u])
    w->stack[depth++] = u;
  while (depth > 0)
    {
      guint u = w->stack[--depth], above = w->ancestor[u];

      if (w->semi[w->label[above]] < w->semi[w->label[u]])
        w->label[u] = w->label[above];
      w->ancestor[u] = w->ancestor[above];
    }
  return w->label[v];
}

/* Who points to whom, by number: into[from[i]] to into[from[i + 1] - 1]. */
static void
turn_edges (const Work *w, const guint *first, const guint *edges, guint *from, guint *into)
{
  for (guint i = 1; i <= w->n_reached; i++)
    for (guint e = first[w->node[i]]; e < first[w->node[i] + 1]; e++)
      from[w->number[edges[e]] + 1]++;
  for (guint i = 1; i <= w->n_reached + 1; i++)
    from[i] += from[i - 1];
  for (guint i = 1; i <= w->n_reached; i++)
    for (guint e = first[w->node[i]]; e < first[w->node[i] + 1]; e++)
      into[from[w->number[edges[e]]]++] = i;
  for (guint i = w->n_reached + 1; i > 0; i--)
    from[i] = from[i - 1];
  from[0] = 0;
}

static void
find (Work *w, const guint *from, const guint *into)
{
  for (guint i = w->n_reached; i >= 2; i--)
    {
      guint above = w->parent[i];

      for (guint e = from[i]; e < from[i + 1]; e++)
        w->semi[i] = MIN (w->semi[i], w->semi[eval (w, into[e])]);
      w->next[i] = w->bucket[w->semi[i]];
      w->bucket[w->semi[i]] = i;
      w->ancestor[i] = above;
      for (guint v = w->bucket[above]; v != 0; v = w->next[v])
        {
          guint u = eval (w, v);

          w->idom[v] = w->semi[u] < w->semi[v] ? u : above;
        }
      w->bucket[above] = 0;
    }
  for (guint i = 2; i <= w->n_reached; i++)
    if (w->idom[i] != w->semi[i])
      w->idom[i] = w->idom[w->idom[i]];
}

guint
td_dominators (guint n, const guint *first, const guint *edges, guint root, guint *idom,
               guint *order)
{
  enum
  {
    N_TABLES = 10
  };
  gsize size = (gsize)n + 2;
  g_autofree guint *tables = g_new0 (guint, N_TABLES * size);
  g_autofree guint *at = g_new0 (guint, size);
  g_autofree guint *into = g_new0 (guint, (gsize)first[n] + 1);
  Work w = { .number = tables,
             .node = tables + size,
             .parent = tables + 2 * size,
             .semi = tables + 3 * size,
             .idom = tables + 4 * size,
             .ancestor = tables + 5 * size,
             .label = tables + 6 * size,
             .bucket = tables + 7 * size,
             .next = tables + 8 * size,
             .stack = tables + 9 * size };

  number_nodes (&w, first, edges, root, at);
  for (guint i = 0; i <= w.n_reached; i++)
    w.semi[i] = w.label[i] = i;
  memset (at, 0, size * sizeof *at);
  turn_edges (&w, first, edges, at, into);
  find (&w, at, into);
  for (guint v = 0; v < n; v++)
    idom[v] = TD_NO_DOMINATOR;
  for (guint i = 1; i <= w.n_reached; i++)
    {
      if (i > 1)
        idom[w.node[i]] = w.node[w.idom[i]];
      if (order)
        order[i - 1] = w.node[i];
    }
  return w.n_reached;
}
