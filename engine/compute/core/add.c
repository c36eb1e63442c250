/* a + b, with broadcasting: also how backward sums two gradients that have a graph.
 *
 * SPDX-License-Identifier: MIT */
#include "operands.h"

static TdStatus
forward (TdOpCall *call)
{
  return call->device->ops->binary (call->device, TD_BINARY_ADD, &call->in[0], &call->in[1],
                                    &call->out[0], call->accumulate);
}

static TdStatus
backward (TdBackward *b)
{
  for (int i = 0; i < 2; i++)
    if (td_backward_needs (b, i))
      b->gx[i] = td__grad_to_input (b, i, b->gy[0]);
  return TD_OK;
}

const TdOpClass td__add_class = {
  .name = "add",
  .label = "_ + _",
  .group = "math",
  .formula = "a + b",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE | TD_OP_ACCUMULATES,
  .in_names = td__names_ab,
  .infer = td__infer_number_pair,
  .forward = forward,
  .backward = backward,
};

TdVar *
td_add_at (TdVar *a, TdVar *b, const TdSite *site)
{
  return td__apply2 (&td__add_class, NULL, site, a, b);
}

TdVar *
td_add (TdVar *a, TdVar *b)
{
  return td__apply2 (&td__add_class, NULL, NULL, a, b);
}
