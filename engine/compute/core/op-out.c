/* What infer says of an output: its dtype and shape, which an array can have.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"

static __attribute__ ((noinline, cold)) TdStatus
refuse_out (const TdOpCall *call, int i, TdDtype dtype)
{
  if (call == NULL)
    return td__fail (TD_ERR_ARG, "td_op_out", NULL, "a call expected, got NULL");
  if ((unsigned)dtype >= TD_N_DTYPES)
    return td_op_fail (call, TD_ERR_DTYPE, "td_op_out of output %d: there is no dtype %d", i,
                       (int)dtype);
  return td_op_fail (call, TD_ERR_ARG,
                     "td_op_out of output %d, with a shape, expected one of %d", i,
                     call->n_out);
}

TdStatus
td_op_out (TdOpCall *call, int i, TdDtype dtype, const TdShape *shape)
{
  TdShape *out;
  int64_t n = 1;
  bool fits;
  char text[200];
  size_t bytes;

  if (TD_UNLIKELY (call == NULL || (unsigned)i >= (unsigned)call->n_out || shape == NULL
                   || (unsigned)dtype >= TD_N_DTYPES))
    return refuse_out (call, i, dtype);
  out = call->out[i].shape;
  fits = (unsigned)shape->ndim <= TD_MAX_DIMS;
  call->out[i].dtype = dtype;
  if (call->n_in > 0 && shape == call->in[0].shape
      && dtype == call->in[0].dtype) /* there is an array of that size */
    {
      out->ndim = shape->ndim;
      for (int d = 0; d < shape->ndim; d++)
        out->dim[d] = shape->dim[d];
      return TD_OK;
    }
  out->ndim = shape->ndim;
  for (int d = 0; d < shape->ndim && d < TD_MAX_DIMS; d++)
    {
      out->dim[d] = shape->dim[d];
      fits = fits && (uint64_t)shape->dim[d] - 1 < 0xFFFFF;
      n *= shape->dim[d] & 0xFFFFF;
      fits = fits && n < (int64_t)1 << 40;
    }
  if (TD_LIKELY (fits)) /* each size in 1 .. 2^20 - 1, their product below 2^40: no array is too
                           large */
    return TD_OK;
  if (!td__shape_bytes (shape, dtype, &bytes))
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "a result of %s is no size an array can have",
                                td_shape_text (shape, text, sizeof text));
  return TD_OK;
}
