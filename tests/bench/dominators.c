/* How long dominators take, of a graph such as a program that adds up its losses keeps: 100,000
 * and 1,000,000 operations and arrays, where each operation refers to two before it and to what
 * it saved. One JSON object a line; CPU time, the median of several.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "memory/td-dominators.h"

#define ROUNDS 7

static int
compare (const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return x < y ? -1 : x > y;
}

static double
cpu_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Even numbers are operations, odd ones the arrays that those before them saved. */
static guint
make_graph (guint n, guint *first, guint *edges)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  guint m = 0;

  for (guint i = 0; i < n; i++)
    {
      first[i] = m;
      if (i % 2 == 1)
        continue;
      if (i + 1 < n)
        edges[m++] = i + 1;
      if (i + 2 < n)
        edges[m++] = i + 2;
      if (i + 16 < n)
        edges[m++] = i + 2 * (guint)g_rand_int_range (rand, 1, 8);
      if (i > 0 && g_rand_int_range (rand, 0, 4) == 0)
        edges[m++] = i - 1;
    }
  first[n] = m;
  return m;
}

int
main (void)
{
  static const guint sizes[] = { 100000, 1000000 };

  for (guint s = 0; s < G_N_ELEMENTS (sizes); s++)
    {
      guint n = sizes[s], m;
      g_autofree guint *first = g_new (guint, n + 1), *edges = g_new (guint, 4 * n);
      g_autofree guint *idom = g_new (guint, n);
      double ms[ROUNDS];

      m = make_graph (n, first, edges);
      for (int i = 0; i < ROUNDS; i++)
        {
          double start = cpu_ms ();

          td_dominators (n, first, edges, 0, idom, NULL);
          ms[i] = cpu_ms () - start;
        }
      qsort (ms, ROUNDS, sizeof *ms, compare);
      printf ("{\"workload\": \"dominators-%u\", \"threads\": 1, \"value\": %.3f, \"unit\": "
              "\"ms\", \"peer\": null, \"ratio\": null, \"edges\": %u}\n",
              n, ms[ROUNDS / 2], m);
    }
  return 0;
}
