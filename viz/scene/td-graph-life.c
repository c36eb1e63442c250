/*
 * What became of the arrays that a node made, at the playhead: they are there, they were all
 * freed (the node is a ghost), or one is there although nothing reads it any more (held).
 *
 * SPDX-License-Identifier: MIT
 */
#include "tape/td-frees.h"
#include "td-graph-scene-private.h"

static gboolean
is_read_later (const TdIteration *iteration, guint32 var, gint playhead)
{
  guint n;
  const gint32 *readers = td_iteration_get_consumers (iteration, var, &n);

  return n > 0 && readers[n - 1] > playhead;
}

static TdLife
life_of (const TdGraphPainter *g, const TdTapeIteration *t, const guint32 *frees,
         const TdTapeEvent *e)
{
  TdLife life = TD_LIFE_FREED;

  for (guint i = 0; i < e->n_out; i++)
    {
      guint32 var = t->outs[e->first_out + i];

      if (frees[var] != TD_TAPE_NONE && (gint)frees[var] <= g->panel->event)
        continue;
      if (is_read_later (g->iteration, var, g->panel->event))
        return TD_LIFE_ALIVE;
      life = TD_LIFE_HELD;
    }
  return e->n_out > 0 ? life : TD_LIFE_UNKNOWN;
}

void
td__graph_find_lives (TdGraphPainter *g)
{
  const TdTapeIteration *t = td_iteration_get_tape (g->iteration);
  TdVizView *view = g->layout->view;
  g_autofree guint32 *frees = NULL;

  if (g->panel->event < 0 || g->panel->whole || g->panel->nothing_ran)
    return;
  frees = td_frees_new (g->iteration);
  if (!frees) /* the recorder does not tell */
    return;
  g->lives = g_new0 (TdLife, MAX (view->n_nodes, 1));
  for (guint i = 0; i < view->n_nodes; i++)
    if (view->nodes[i].kind == TD_VIZ_OP && td__graph_has_run (g, view->nodes[i].event))
      g->lives[i] = life_of (g, t, frees, &t->events[view->nodes[i].event]);
}

TdLife
td__graph_life_of (const TdGraphPainter *g, gint node)
{
  return g->lives ? g->lives[node] : TD_LIFE_UNKNOWN;
}

const char *
td__graph_life_words (TdLife life)
{
  static const char *const words[TD_N_LIVES] = {
    [TD_LIFE_ALIVE] = "its output is read later",
    [TD_LIFE_HELD] = "its output is held, and nothing in this iteration reads it any more",
    [TD_LIFE_FREED] = "its output is freed",
  };

  return words[life];
}
