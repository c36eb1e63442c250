/* Operations of one variable whose gradient is one kernel too: y = f (x) and gx = gy f' (x),
 * each a device's slot, and what the second derivative adds.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "ops.h"

extern const char *const td__names_xgy[]; /* x, gy */

/** infer of f' (x) gy: two floating-point arrays of one shape. */
TdStatus td__infer_slope (TdOpCall *call);

/** Backward of f' (x) gy: v f' (x) for gy, and curve (attrs, x, v gy) for x, which multiplies
 * by f'' (x); NULL where f is made of straight lines. */
TdStatus td__slope_backward (TdBackward *b,
                             TdVar *(*curve) (const void *attrs, TdVar *x, TdVar *w));

/** The classes name and name_grad.  `kind_of` and `p_of` are expressions in `attrs`; `keep` is
 * 3 where there is a curve (NULL: 1); the attributes' table is attrs_type's. */
#define TD_SLOPED_CLASSES(op_name, op_label, grad_label, op_group, text, grad_text, kind_of,   \
                          p_of, check, curve, keep, attrs_bytes, table, attrs_count)           \
  static TdStatus op_name##_forward (TdOpCall *call)                                           \
  {                                                                                            \
    const void *attrs __attribute__ ((unused)) = call->attrs;                                  \
                                                                                               \
    return call->device->ops->unary (call->device, kind_of, p_of, 0, &call->in[0],             \
                                     &call->out[0]);                                           \
  }                                                                                            \
  static TdStatus op_name##_backward (TdBackward *b)                                           \
  {                                                                                            \
    TdVar *x = td_backward_input (b, 0);                                                       \
                                                                                               \
    td_backward_into (b, 0);                                                                   \
    b->gx[0] = td__apply2 (&td__##op_name##_grad_class, b->attrs, NULL, x, b->gy[0]);          \
    return TD_OK;                                                                              \
  }                                                                                            \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = op_group,                                                                         \
    .formula = text,                                                                           \
    .n_in_min = 1,                                                                             \
    .n_in_max = 1,                                                                             \
    .n_out = 1,                                                                                \
    .flags = TD_OP_ELEMENTWISE,                                                                \
    .retain_in = 1,                                                                            \
    .in_names = td__names_x,                                                                   \
    .attrs_size = attrs_bytes,                                                                 \
    .attrs = table,                                                                            \
    .n_attrs = attrs_count,                                                                    \
    .infer = check,                                                                            \
    .forward = op_name##_forward,                                                              \
    .backward = op_name##_backward,                                                            \
  };                                                                                           \
  static TdStatus op_name##_grad_forward (TdOpCall *call)                                      \
  {                                                                                            \
    const void *attrs __attribute__ ((unused)) = call->attrs;                                  \
                                                                                               \
    return call->device->ops->unary_grad (call->device, kind_of, p_of, &call->in[0],           \
                                          &call->in[1], &call->out[0], call->accumulate);      \
  }                                                                                            \
  static TdStatus op_name##_grad_backward (TdBackward *b)                                      \
  {                                                                                            \
    return td__slope_backward (b, curve);                                                      \
  }                                                                                            \
  const TdOpClass td__##op_name##_grad_class = {                                               \
    .name = #op_name "_grad",                                                                  \
    .label = grad_label,                                                                       \
    .group = op_group,                                                                         \
    .formula = grad_text,                                                                      \
    .n_in_min = 2,                                                                             \
    .n_in_max = 2,                                                                             \
    .n_out = 1,                                                                                \
    .flags = TD_OP_ELEMENTWISE | TD_OP_ACCUMULATES,                                            \
    .retain_in = keep,                                                                         \
    .no_grad_in = (keep) == 1 ? 1 : 0,                                                         \
    .in_names = td__names_xgy,                                                                 \
    .attrs_size = attrs_bytes,                                                                 \
    .attrs = table,                                                                            \
    .n_attrs = attrs_count,                                                                    \
    .infer = td__infer_slope,                                                                  \
    .forward = op_name##_grad_forward,                                                         \
    .backward = op_name##_grad_backward,                                                       \
  };
