/*
 * Nodes coloured by a number: a stripe of the heat scale at the left end, inside the outline,
 * so that the text keeps its contrast.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "td-graph-scene-private.h"

/* NaN is a value: what was measured is none, or infinite. */
#define MISSING (-INFINITY)

/* log scale: one large layer must not paint all others alike */
static float
scaled (double v)
{
  return v > 0 ? (float)log10 (v) : (float)MISSING;
}

/* Of variables, where there are statistics. Owner: the caller. */
static float *
new_norms (const TdTapeIteration *t)
{
  float *norms = g_new (float, MAX (t->n_vars, 1));

  for (guint32 i = 0; i < t->n_vars; i++)
    norms[i] = (float)MISSING;
  for (guint32 i = 0; i < t->n_stats; i++)
    {
      const TdTapeStats *s = &t->stats[i];

      if (s->var < t->n_vars)
        norms[s->var] = s->n_nan + s->n_pos_inf + s->n_neg_inf > 0 ? NAN : scaled (s->l2);
    }
  return norms;
}

/* An operation has the norm of its first output; a folded layer none, but it is not hidden that
 * something in it is no number. */
static float
norm_of (const TdGraphPainter *g, const TdVizNode *n, const float *norms)
{
  const TdTapeIteration *t = td_iteration_get_tape (g->iteration);
  guint n_members = 1;
  const gint32 *members = &n->event;

  if (n->kind != TD_VIZ_OP && n->kind != TD_VIZ_GROUP)
    return (float)MISSING;
  if (n->kind == TD_VIZ_GROUP)
    members = td_viz_graph_get_members (g->layout->view->graph, (guint)n->group, n->lane,
                                        &n_members);
  for (guint i = 0; i < n_members; i++)
    {
      const TdTapeEvent *e = &t->events[members[i]];
      float v = e->n_out > 0 ? norms[t->outs[e->first_out]] : (float)MISSING;

      if (n->kind == TD_VIZ_OP || isnan (v))
        return v;
    }
  return (float)MISSING;
}

void
td__graph_prepare_heat (TdGraphPainter *g)
{
  TdVizView *view = g->layout->view;
  g_autofree float *norms = NULL;

  if (g->heat == TD_HEAT_OFF)
    return;
  if (g->heat == TD_HEAT_NORM)
    norms = new_norms (td_iteration_get_tape (g->iteration));
  g->heat_values = g_new (float, MAX (view->n_nodes, 1));
  g->heat_lo = G_MAXDOUBLE;
  g->heat_hi = -G_MAXDOUBLE;
  for (guint i = 0; i < view->n_nodes; i++)
    {
      const TdVizNode *n = &view->nodes[i];
      float v = norms ? norm_of (g, n, norms)
                      : scaled ((double)(g->heat == TD_HEAT_BYTES ? n->bytes : n->time_ns));

      g->heat_values[i] = v;
      if (isfinite (v))
        {
          g->heat_lo = MIN (g->heat_lo, (double)v);
          g->heat_hi = MAX (g->heat_hi, (double)v);
        }
    }
}

void
td__graph_add_heat_stripe (TdGraphPainter *g, gint i, TdSceneRect r)
{
  float v;

  if (g->heat == TD_HEAT_OFF || isinf (g->heat_values[i]))
    return;
  v = g->heat_values[i];
  TdHeat stripe = { .rows = 1,
                    .cols = 1,
                    .values = &v,
                    .map = TD_COLORMAP_CIVIDIS,
                    .lo = g->heat_lo,
                    .hi = g->heat_hi };
  td_scene_add_heat (g->b, (TdSceneRect){ r.x + 3, r.y + 7, 5, MAX (4, r.height - 14) },
                     &stripe);
}

void
td__graph_format_heat (const TdGraphPainter *g, gint i, char text[TD_FORMAT_SIZE])
{
  const TdVizNode *n = &g->layout->view->nodes[i];

  if (g->heat == TD_HEAT_BYTES && n->bytes > 0)
    td_format_bytes (text, n->bytes);
  else if (g->heat == TD_HEAT_TIME && n->time_ns > 0)
    td_format_ns (text, n->time_ns);
  else if (g->heat == TD_HEAT_NORM && isnan (g->heat_values[i]))
    g_strlcpy (text, "NaN", TD_FORMAT_SIZE);
  else if (g->heat == TD_HEAT_NORM && isfinite (g->heat_values[i]))
    td_format_value (text, pow (10, (double)g->heat_values[i]));
}
