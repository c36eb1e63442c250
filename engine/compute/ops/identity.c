/* x itself: a place in the graph that can be named, watched and unchained.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

static TdStatus
identity_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
identity_backward (TdBackward *b)
{
  b->gx[0] = b->gy[0];
  return TD_OK;
}

/* *Source*: chainer.functions.identity. */
const TdOpClass td__identity_class = {
  .name = "identity",
  .label = "Identity",
  .group = "math",
  .formula = "x",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_VIEW,
  .in_names = td__names_x,
  .infer = identity_infer,
  .backward = identity_backward,
};

TD_OP_FUNCTIONS_1 (identity)
