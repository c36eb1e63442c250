/* Running a group of fused steps: a program over tiles, a product or convolution with its
 * epilogue, or a row normalisation with the sum next to it.
 * SPDX-License-Identifier: MIT */
#include "replay.h"

static const TdTensor *
input (const TdReady *r, uint32_t k)
{
  return k != TD_ABSENT ? &r->run.call.in[k] : NULL;
}

/* Run a product or convolution and its epilogue (relu or relu_grad) in one call. */
static TdStatus
run_product (const TdGroup *g, const TdReady *r)
{
  const TdStep *product = &g->members[0];
  const TdProductEnd end
      = { .relu = g->relu, .above = input (r, g->above), .added = input (r, g->added) };
  TdOpCall call = r->run.call;

  call.cls = product->cls;
  call.attrs = product->attrs;
  call.n_in = (int)product->n_in;
  call.end = &end;
  return r->run.device->computes ? call.cls->forward (&call) : TD_OK;
}

/* Run a row normalisation and the sum before or after it in one call. */
static TdStatus
run_rows (const TdGroup *g, const TdReady *r)
{
  const TdStep *step = &g->members[g->main];
  const TdRowJoin join = { .added = input (r, g->added),
                           .sum = g->sum != TD_ABSENT ? &r->run.call.out[g->sum] : NULL };
  TdOpCall call = r->run.call;

  call.cls = step->cls;
  call.attrs = step->attrs;
  call.n_in = (int)step->n_in;
  call.n_out = (int)step->n_out;
  call.join = &join;
  return r->run.device->computes ? call.cls->forward (&call) : TD_OK;
}

TdStatus
td__replay_group (const TdReplay *p, const TdReady *r)
{
  const TdSchedule *s = p->i->plan->s;
  const TdGroup *g = &p->i->plan->groups[r->step->external];
  bool adds[TD_TILE_MAX_OPERANDS];

  if (g->tiles == NULL)
    return g->rows ? run_rows (g, r) : run_product (g, r);
  if (r->opens)
    for (uint32_t k = 0; k < r->step->n_out; k++)
      adds[r->step->n_in + k] = p->added[s->nodes[td__step_out (s, r->step, k)].value];
  return td__tiles_run (g->tiles, r->run.call.in, r->opens ? adds : NULL, r->run.call.attrs);
}
