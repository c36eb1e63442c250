/* Checks and steps that the operations of layers share.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"
#include "../core/async-index.h"

TdStatus
td__check_floats (const TdOpCall *call, uint32_t mask)
{
  int first = -1;

  for (int i = 0; i < call->n_in && i < 32; i++)
    {
      if (!(mask >> i & 1))
        continue;
      if (!td__is_float (call->in[i].dtype))
        return td_op_fail_operands (call, TD_ERR_DTYPE, "%s.dtype.kind == f expected, got %s",
                                    call->cls->in_names[i], td_dtype_name (call->in[i].dtype));
      if (first >= 0 && call->in[i].dtype != call->in[first].dtype)
        return td_op_fail_operands (
            call, TD_ERR_DTYPE, "%s.dtype == %s.dtype expected, got %s != %s",
            call->cls->in_names[first], call->cls->in_names[i],
            td_dtype_name (call->in[first].dtype), td_dtype_name (call->in[i].dtype));
      if (first < 0)
        first = i;
    }
  return TD_OK;
}

static bool
is_half (TdDtype dtype)
{
  return dtype == TD_F16 || dtype == TD_BF16;
}

TdStatus
td__check_mixed (const TdOpCall *call, uint32_t mask, uint32_t like)
{
  const TdDtype dtype = call->in[0].dtype;
  const TdStatus status = td__check_floats (call, is_half (dtype) ? like : mask);

  for (int i = 1; status == TD_OK && i < call->n_in; i++)
    if ((mask >> i & 1) && call->in[i].dtype != dtype && call->in[i].dtype != TD_F32)
      return td_op_fail_operands (call, TD_ERR_DTYPE, "%s.dtype == %s or f32 expected, got %s",
                                  call->cls->in_names[i], td_dtype_name (dtype),
                                  td_dtype_name (call->in[i].dtype));
  if (status == TD_OK && call->n_in > 2 && !(like & 4)
      && call->in[2].dtype != call->in[1].dtype)
    return td_op_fail_operands (call, TD_ERR_DTYPE, "%s.dtype == %s.dtype expected",
                                call->cls->in_names[1], call->cls->in_names[2]);
  return status;
}

TdDtype
td__moments_dtype (TdDtype dtype)
{
  return is_half (dtype) ? TD_F32 : dtype;
}

TdVar *
td__in_dtype (TdVar *v, TdDtype dtype)
{
  return td_dtype (v) == dtype ? v : td_cast (v, dtype);
}

TdVar *
td__per_channel (TdVar *v, const TdShape *x)
{
  TdShape shape = { .ndim = x->ndim };

  for (int i = 0; i < x->ndim; i++)
    shape.dim[i] = i == 1 ? x->dim[1] : 1;
  return td_reshape (v, shape);
}

TdVar *
td__channel_sum (TdVar *v)
{
  int axes[TD_MAX_DIMS], n = 0;

  for (int i = 0; i < td_ndim (v); i++)
    if (i != 1)
      axes[n++] = i;
  return td_sum_axes (v, axes, n, false);
}

TdStatus
td__check_integers (const TdOpCall *call, int i)
{
  const TdDtype dtype = call->in[i].dtype;

  if (dtype == TD_I32 || dtype == TD_I64 || dtype == TD_U8)
    return TD_OK;
  return td_op_fail_operands (call, TD_ERR_DTYPE, "%s.dtype.kind == i expected, got %s",
                              call->cls->in_names[i], td_dtype_name (dtype));
}

TdStatus
td__check_ndim (const TdOpCall *call, int i, int ndim)
{
  if (call->in[i].shape->ndim == ndim)
    return TD_OK;
  return td_op_fail_operands (call, TD_ERR_SHAPE, "%s.ndim == %d expected, got %d",
                              call->cls->in_names[i], ndim, call->in[i].shape->ndim);
}

TdStatus
td__check_sizes (const TdOpCall *call, int i, int a, int j, int b)
{
  const int64_t m = call->in[i].shape->dim[a], n = call->in[j].shape->dim[b];

  if (m == n)
    return TD_OK;
  return td_op_fail_operands (
      call, TD_ERR_SHAPE, "%s.shape[%d] == %s.shape[%d] expected, got %lld != %lld",
      call->cls->in_names[i], a, call->cls->in_names[j], b, (long long)m, (long long)n);
}

TdStatus
td__check_same_shape (const TdOpCall *call, int i, int j)
{
  if (td_shape_equal (call->in[i].shape, call->in[j].shape))
    return TD_OK;
  return td_op_fail_operands (call, TD_ERR_SHAPE, "%s.shape == %s.shape expected",
                              call->cls->in_names[i], call->cls->in_names[j]);
}

TdStatus
td__check_vector (const TdOpCall *call, int i, int j, int a)
{
  const TdStatus status = td__check_ndim (call, i, 1);

  return status != TD_OK ? status : td__check_sizes (call, i, 0, j, a);
}

TdStatus
td__check_labels_shape (const TdOpCall *call, int x, int t)
{
  const TdShape *s = call->in[x].shape;
  const char *name = call->cls->in_names[x];
  TdStatus status;

  if (s->ndim < 2)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "%s.ndim >= 2 expected, got %d", name,
                                s->ndim);
  status = td__check_ndim (call, t, s->ndim - 1);
  for (int i = 0; status == TD_OK && i < s->ndim; i++)
    if (i != 1)
      status = td__check_sizes (call, x, i, t, i > 0 ? i - 1 : 0);
  if (status == TD_OK && s->dim[1] < 1)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "%s.shape[1] >= 1 expected, got 0", name);
  return status;
}

TdStatus
td__check_labels (TdOpCall *call, int i, int64_t limit, int64_t allowed)
{
  return td__index_check (call, i, limit, allowed);
}

int64_t
td__window_count (int64_t size, int64_t ksize, int64_t stride, int64_t pad, int64_t dilate,
                  bool cover_all)
{
  const int64_t room = size + 2 * pad - (ksize - 1) * dilate - 1;

  if (cover_all)
    return room + stride < 1 ? 0 : (room + stride - 1) / stride + 1;
  return room < 0 ? 0 : room / stride + 1;
}

TdStatus
td__out_like (TdOpCall *call, int out, int i)
{
  return td_op_out (call, out, call->in[i].dtype, call->in[i].shape);
}

TdStatus
td__infer_mask (TdOpCall *call, double ratio)
{
  const TdStatus status = td__check_floats (call, 1);

  if (status != TD_OK)
    return status;
  if (!(ratio >= 0 && ratio < 1))
    return td_op_fail (call, TD_ERR_ARG, "0 <= ratio < 1 expected, got %g", ratio);
  return td__out_like (call, 0, 0);
}
