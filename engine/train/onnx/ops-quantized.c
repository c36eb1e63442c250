/* ONNX's quantized arithmetic: numbers of 8 bits, their scales and zero points.
 *
 * The engine has uint8; int8 lies in arrays of int32, and only operators that keep it as it is
 * may take it (load-narrow.c).  Sums of products are taken in double precision, where they are
 * exact.  No gradient goes back through integers.
 *
 * *Source*: github.com/onnx/onnx, docs/Operators.md.
 * SPDX-License-Identifier: MIT */
#include "run.h"

#include "host-memory.h"

#include <string.h>

/* --- numbers of 8 bits and real ones --- */

static TdVar *
as (TdVar *v, TdDtype dtype)
{
  return td_dtype (v) == dtype ? v : td_cast (v, dtype);
}

/* A scale or zero point so that it is repeated along all axes of x but one: one number, or a
 * row of as many as the axis has. */
static TdVar *
along (TdOnnxRun *r, TdVar *v, const TdShape *x, int axis)
{
  const TdShape shape = td_shape (v);
  TdShape to = { x->ndim, { 0 } };

  if (td_poisoned (v))
    return v;
  if (td_size (v) == 1)
    return shape.ndim == 0 ? v : td_reshape (v, TD_SCALAR);
  if (shape.ndim != 1 || axis < 0 || axis >= x->ndim || shape.dim[0] != x->dim[axis])
    {
      td__run_fail (r, TD_ERR_SHAPE, "one number, or one for each of an axis, expected");
      return td__poison ();
    }
  for (int d = 0; d < x->ndim; d++)
    to.dim[d] = d == axis ? shape.dim[0] : 1;
  return td_reshape (v, to);
}

/* To the nearest whole number, halves to the even one: beyond 2^23 single precision has no
 * others.  |x| is at most 2^22. */
static TdVar *
rounded (TdVar *x)
{
  const double whole = 12582912; /* 1.5 * 2^23 */

  return td_add_scalar (td_add_scalar (x, whole), -whole);
}

/* saturate (round (x) + zero), as the node's type has it; zero may be NULL. */
static TdVar *
saturated (const TdOnnxRun *r, TdVar *x, TdVar *zero)
{
  const bool is_signed = r->node->makes_int8;
  TdVar *q = rounded (td_clip (x, -1024, 1024)); /* beyond that it is saturated anyway */

  if (zero != NULL)
    q = td_add (q, zero);
  return td_cast (td_clip (q, is_signed ? -128 : 0, is_signed ? 127 : 255),
                  is_signed ? TD_I32 : TD_U8);
}

/* Input i as real numbers along an axis of x, or NULL. */
static TdVar *
real_along (TdOnnxRun *r, int i, TdDtype dtype, const TdShape *x, int axis)
{
  return td__run_there (r, i) ? along (r, as (td__run_var (r, i), dtype), x, axis) : NULL;
}

/* --- to and from real numbers --- */

static void
quantize (TdOnnxRun *r)
{
  TdVar *x = as (td__run_var (r, 0), TD_F32);
  const TdShape shape = td_shape (x);
  const int axis = td_size (td__run_var (r, 1)) == 1 ? 0 : td__run_axis (r, 1, shape.ndim);
  TdVar *scale, *zero;

  if (r->failed)
    return;
  scale = real_along (r, 1, TD_F32, &shape, axis);
  zero = real_along (r, 2, TD_F32, &shape, axis);
  if (!r->failed)
    td__run_out (r, 0, saturated (r, td_div (x, scale), zero));
}

static void
dequantize (TdOnnxRun *r)
{
  const TdDtype dtype = td_dtype (td__run_var (r, 1));
  TdVar *x = as (td__run_var (r, 0), TD_F32), *scale, *zero;
  const TdShape shape = td_shape (x);
  const int axis = td_size (td__run_var (r, 1)) == 1 ? 0 : td__run_axis (r, 1, shape.ndim);

  if (r->failed)
    return;
  scale = real_along (r, 1, TD_F32, &shape, axis);
  zero = real_along (r, 2, TD_F32, &shape, axis);
  if (!r->failed)
    td__run_out (r, 0, as (td_mul (zero != NULL ? td_sub (x, zero) : x, scale), dtype));
}

/* The scale is looked at: of zeros alone it is 1. */
static void
quantize_by_range (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0), *none = td_zeros (TD_F32, TD_SCALAR);
  TdVar *low = td_minimum (td_min (x), none), *high = td_maximum (td_max (x), none);
  TdVar *scale = td_div (td_sub (high, low), td_full (TD_F32, TD_SCALAR, 255)), *zero;

  if (!td_poisoned (scale) && td_item (scale) == 0)
    scale = td_ones (TD_F32, TD_SCALAR);
  zero = saturated (r, td_div (td_neg (low), scale), NULL);
  td__run_out (r, 0, saturated (r, td_div (x, scale), as (zero, TD_F32)));
  td__run_out (r, 1, scale);
  td__run_out (r, 2, zero);
}

/* --- products --- */

/* Input i without its zero point, which is input k, one number or one for each of an axis. */
static TdVar *
centred (TdOnnxRun *r, int i, int k, int axis)
{
  TdVar *x = as (td__run_var (r, i), TD_F64);
  const TdShape shape = td_shape (x);
  TdVar *zero = real_along (r, k, TD_F64, &shape, axis < 0 ? axis + shape.ndim : axis);

  return zero != NULL ? td_sub (x, zero) : x;
}

static void
matmul_integer (TdOnnxRun *r)
{
  TdVar *a = centred (r, 0, 2, -2), *b = centred (r, 1, 3, -1);

  if (!r->failed)
    td__run_out (r, 0, td_cast (td_matmul (a, b, false, false), TD_I32));
}

static void
conv_integer (TdOnnxRun *r)
{
  TdVar *x = centred (r, 0, 2, 1), *w = centred (r, 1, 3, 0);
  TdVar *y = r->failed ? NULL : td__run_conv (r, x, w, NULL);

  if (y != NULL)
    td__run_out (r, 0, td_cast (y, TD_I32));
}

/* Sums of products with their scales in the place of the output's: inputs 1 and 4 are the
 * scales of what was multiplied, 6 and 7 what the output has.  `axis` is that of the second
 * scale, in the output. */
static void
put_scaled (TdOnnxRun *r, TdVar *sums, int axis_of_first, int axis)
{
  TdVar *y = as (sums, TD_F32), *first, *second, *own, *zero;
  const TdShape shape = td_shape (y);

  first
      = real_along (r, 1, TD_F32, &shape, axis_of_first + (axis_of_first < 0 ? shape.ndim : 0));
  second = real_along (r, 4, TD_F32, &shape, axis + (axis < 0 ? shape.ndim : 0));
  own = real_along (r, 6, TD_F32, &shape, -1);
  zero = real_along (r, 7, TD_F32, &shape, -1);
  if (r->failed || td_poisoned (y))
    return;
  y = td_mul (y, td_div (td_mul (first, second), own));
  td__run_out (r, 0, saturated (r, y, zero));
}

static void
matmul_scaled (TdOnnxRun *r)
{
  TdVar *a = centred (r, 0, 2, -2), *b = centred (r, 3, 5, -1);

  if (!r->failed)
    put_scaled (r, td_matmul (a, b, false, false), -2, -1);
}

static void
conv_scaled (TdOnnxRun *r)
{
  TdVar *x = centred (r, 0, 2, 1), *w = centred (r, 3, 5, 0);
  TdVar *b = td__run_there (r, 8) ? as (td__run_var (r, 8), TD_F64) : NULL;
  TdVar *y = r->failed ? NULL : td__run_conv (r, x, w, b);

  if (y != NULL)
    put_scaled (r, y, -1, 1);
}

#define BLOCKS "without blocks; int8 and uint8"
#define INTEGERS "int8 and uint8, without gradients"
#define WINDOWS "auto_pad dilations group kernel_shape pads strides"

/* clang-format off */
const TdOnnxRow td__onnx_quantized[] = {
  { "ConvInteger", .from = 10, .least_in = 2, .most_in = 4, .narrow = 15, .attributes = WINDOWS, .run = conv_integer,
    .limits = INTEGERS },
  { "DequantizeLinear", .from = 10, .to = 12, .least_in = 2, .most_in = 3, .narrow = 5, .run = dequantize,
    .limits = "int8, uint8 and int32" },
  { "DequantizeLinear", .from = 13, .least_in = 2, .most_in = 3, .narrow = 5, .attributes = "axis block_size=0",
    .run = dequantize, .limits = "without blocks; int8, uint8 and int32" },
  { "DynamicQuantizeLinear", .from = 11, .least_in = 1, .most_in = 1, .most_out = 3, .run = quantize_by_range,
    .limits = "without gradients" },
  { "MatMulInteger", .from = 10, .least_in = 2, .most_in = 4, .narrow = 15, .run = matmul_integer, .limits = INTEGERS },
  { "QLinearConv", .from = 10, .least_in = 8, .most_in = 9, .narrow = 0xad, .narrow_as = 7, .attributes = WINDOWS,
    .run = conv_scaled, .limits = INTEGERS },
  { "QLinearMatMul", .from = 10, .least_in = 8, .most_in = 8, .narrow = 0xad, .narrow_as = 7, .run = matmul_scaled,
    .limits = INTEGERS },
  { "QuantizeLinear", .from = 10, .to = 12, .least_in = 2, .most_in = 3, .narrow = 4, .narrow_as = 2, .run = quantize,
    .limits = INTEGERS },
  { "QuantizeLinear", .from = 13, .least_in = 2, .most_in = 3, .narrow = 4, .narrow_as = 2,
    .attributes = "axis saturate block_size=0 output_dtype=0", .run = quantize, .limits = BLOCKS ", without gradients" },
  { 0 },
};
/* clang-format on */
