/* Checks and steps that many operations share.
 *
 * SPDX-License-Identifier: MIT */
#include "operands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const td__names_x[] = { "x" };
const char *const td__names_ab[] = { "a", "b" };
const char *const td__names_ygy[] = { "y", "gy" };

TdStatus
td__infer_float (TdOpCall *call)
{
  if (TD_UNLIKELY (!td__is_float (call->in[0].dtype)))
    return td_op_fail_operands (call, TD_ERR_DTYPE, "a floating-point x expected");
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

TdStatus
td__infer_number (TdOpCall *call)
{
  if (TD_UNLIKELY (!td__is_number (call->in[0].dtype)))
    return td_op_fail_operands (call, TD_ERR_DTYPE, "a floating-point or signed x expected");
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
infer_pair (TdOpCall *call, bool floats)
{
  const TdTensor *a = &call->in[0], *b = &call->in[1];
  const char *x = call->cls->in_names[0], *y = call->cls->in_names[1];
  TdShape shape;

  if (TD_UNLIKELY (a->dtype != b->dtype))
    return td_op_fail_operands (call, TD_ERR_DTYPE, "%s.dtype == %s.dtype expected", x, y);
  if (TD_UNLIKELY (floats ? !td__is_float (a->dtype) : !td__is_number (a->dtype)))
    return td_op_fail_operands (call, TD_ERR_DTYPE,
                                floats ? "floating-point operands expected"
                                       : "floating-point or signed operands expected");
  if (TD_LIKELY (td__same_shape (a->shape, b->shape)))
    return td_op_out (call, 0, a->dtype, a->shape);
  if (TD_UNLIKELY (!td__shape_broadcast (a->shape, b->shape, &shape)))
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "%s.shape and %s.shape that broadcast expected", x, y);
  return td_op_out (call, 0, a->dtype, &shape);
}

TdStatus
td__infer_float_pair (TdOpCall *call)
{
  return infer_pair (call, true);
}

TdStatus
td__infer_number_pair (TdOpCall *call)
{
  return infer_pair (call, false);
}

TdStatus
td__infer_float_twins (TdOpCall *call)
{
  const TdTensor *a = &call->in[0], *b = &call->in[1];

  if (TD_UNLIKELY (!td__same_shape (a->shape, b->shape)))
    return td_op_fail_operands (call, TD_ERR_SHAPE, "%s.shape == %s.shape expected",
                                call->cls->in_names[0], call->cls->in_names[1]);
  return infer_pair (call, true);
}

const char *
td__number_text (double value, char *text, size_t size)
{
  for (int digits = 6; digits <= 17; digits++)
    {
      snprintf (text, size, "%.*g", digits, value);
      if (strtod (text, NULL) == value)
        break;
    }
  return text;
}

TdVar *
td__number_like (const TdVar *v, double value)
{
  static const TdShape scalar = { 0 };
  TdDevice *d;
  TdTensor t;
  TdVar *c;

  if (!td__var_usable (v, "constant", NULL))
    return td__poison ();
  d = v->node->device;
  c = td__var_leaf ((TdDtype)v->node->dtype, &scalar, d, TD_MEM_OTHER, NULL);
  if (c == NULL)
    return td__poison ();
  td__scope_add (c);
  if (TD_UNLIKELY (td__engine.config.keep_graph)) /* td_save_onnx: no operation made it */
    c->node->category = TD_MEM_INPUT;
  t = (TdTensor){ c->buffer->data, &c->node->shape, 1, (TdDtype)c->node->dtype };
  if (td__engine.tracer != NULL)
    td__engine.tracer->array (td__engine.tracer, c,
                              &(TdTraceArray){ .origin = TD_ARRAY_FILL, .a = value });
  return !d->computes || d->ops->fill (d, &t, value) == TD_OK ? c : td__poison ();
}

TdVar *
td__zeros_like (const TdVar *v)
{
  return td_broadcast_to (td__number_like (v, 0), td_shape (v));
}

TdVar *
td__grad_to_input (TdBackward *b, int i, TdVar *g)
{
  const TdShape *shape = td_backward_in_shape (b, i);
  TdShape now = td_shape (g);

  if (td_poisoned (g) || td__same_shape (&now, shape))
    return g;
  td_backward_into (b, i);
  return td_sum_to (g, *shape);
}

void
td__row_major (const TdShape *shape, int64_t stride[TD_MAX_DIMS])
{
  int64_t step = 1;

  for (int i = shape->ndim - 1; i >= 0; i--)
    {
      stride[i] = step;
      step *= shape->dim[i];
    }
}
