/* An operation of a program's own that changes what it is given, for tests: see remember-op.h.
 * SPDX-License-Identifier: MIT */
#include "remember-op.h"

static TdStatus
infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
forward (TdOpCall *call)
{
  float *memory = call->in[0].data, *y = call->out[0].data;
  const float *x = call->in[1].data;

  for (int64_t i = 0; i < call->in[0].size; i++)
    y[i] = memory[i] = 0.5f * memory[i] + 0.5f * x[i];
  return TD_OK;
}

const TdOpClass remember_class = { .name = "remember",
                                   .group = "test",
                                   .formula = "memory = (memory + x) / 2",
                                   .n_in_min = 2,
                                   .n_in_max = 2,
                                   .n_out = 1,
                                   .flags = TD_OP_HOST | TD_OP_STATEFUL | TD_OP_NO_GRAD,
                                   .writes = 1,
                                   .infer = infer,
                                   .forward = forward };
