/* Dominators against their definition: d dominates v where v is not reached without d.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "memory/td-dominators.h"
#include "td-test.h"

#define MAX_NODES 40

typedef struct
{
  guint n, first[MAX_NODES + 1], edges[8 * MAX_NODES];
} Graph;

/* What is reached from node 0 without going through `without`. */
static void
reach (const Graph *g, guint without, gboolean reached[MAX_NODES])
{
  guint stack[MAX_NODES], depth = 0;

  memset (reached, 0, MAX_NODES * sizeof *reached);
  if (without == 0)
    return;
  reached[0] = TRUE;
  stack[depth++] = 0;
  while (depth > 0)
    {
      guint v = stack[--depth];

      for (guint e = g->first[v]; e < g->first[v + 1]; e++)
        if (g->edges[e] != without && !reached[g->edges[e]])
          {
            reached[g->edges[e]] = TRUE;
            stack[depth++] = g->edges[e];
          }
    }
}

/* The immediate dominator is the one that all other dominators dominate: of those, the one that
 * has the most dominators itself. */
static void
by_definition (const Graph *g, guint idom[MAX_NODES])
{
  static gboolean without[MAX_NODES][MAX_NODES];
  gboolean all[MAX_NODES];
  guint depth[MAX_NODES] = { 0 };

  reach (g, G_MAXUINT, all);
  for (guint d = 0; d < g->n; d++)
    reach (g, d, without[d]);
  for (guint v = 0; v < g->n; v++)
    for (guint d = 0; d < g->n; d++)
      depth[v] += all[v] && d != v && all[d] && !without[d][v];
  for (guint v = 0; v < g->n; v++)
    {
      idom[v] = TD_NO_DOMINATOR;
      for (guint d = 0; v != 0 && all[v] && d < g->n; d++)
        if (d != v && all[d] && !without[d][v]
            && (idom[v] == TD_NO_DOMINATOR || depth[d] > depth[idom[v]]))
          idom[v] = d;
    }
}

static void
make_graph (GRand *rand, Graph *g)
{
  guint n_edges = 0;

  g->n = (guint)g_rand_int_range (rand, 1, MAX_NODES);
  for (guint v = 0; v < g->n; v++)
    {
      gint n = g_rand_int_range (rand, v < 4, 4);

      g->first[v] = n_edges;
      for (gint i = 0; i < n; i++) /* itself, and twice the same, too */
        g->edges[n_edges++] = (guint)g_rand_int_range (rand, 0, (gint)g->n);
    }
  g->first[g->n] = n_edges;
}

static void
dominators__are_those_of_the_definition_in_500_random_graphs (void **state)
{
  guint n_reached = 0, n_deep = 0;

  for (guint32 seed = 1; seed <= 500; seed++)
    {
      g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
      guint want[MAX_NODES], got[MAX_NODES], order[MAX_NODES], n, place[MAX_NODES];
      Graph g;

      make_graph (rand, &g);
      by_definition (&g, want);
      n = td_dominators (g.n, g.first, g.edges, 0, got, order);
      for (guint v = 0; v < g.n; v++)
        {
          if (got[v] != want[v])
            fail_msg ("seed %u: node %u of %u has dominator %d, by definition %d", seed, v, g.n,
                      (gint)got[v], (gint)want[v]);
          n_deep += got[v] != TD_NO_DOMINATOR && got[v] != 0;
        }
      assert_int_equal (order[0], 0);
      for (guint i = 0; i < n; i++)
        place[order[i]] = i;
      for (guint i = 1; i < n; i++)
        assert_true (place[got[order[i]]] < i);
      n_reached += n;
    }
  assert_in_range (n_reached, 500 * 8, 500 * MAX_NODES); /* or they are too poor to say much */
  assert_in_range (n_deep, 500 * 2, 500 * MAX_NODES);
}

/* A chain as long as a leaking program makes it: no recursion. */
static void
dominators__of_a_chain_of_a_million_are_the_ones_before (void **state)
{
  enum
  {
    N = 1000000
  };
  g_autofree guint *first = g_new (guint, N + 1), *edges = g_new (guint, N);
  g_autofree guint *idom = g_new (guint, N);

  for (guint i = 0; i < N; i++)
    {
      first[i] = i;
      edges[i] = i + 1 < N ? i + 1 : 0;
    }
  first[N] = N;
  assert_int_equal (td_dominators (N, first, edges, 0, idom, NULL), N);
  assert_int_equal (idom[0], TD_NO_DOMINATOR);
  for (guint i = 1; i < N; i++)
    if (idom[i] != i - 1)
      fail_msg ("node %u has dominator %u", i, idom[i]);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (dominators__are_those_of_the_definition_in_500_random_graphs),
    td_test (dominators__of_a_chain_of_a_million_are_the_ones_before),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
