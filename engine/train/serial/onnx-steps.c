/* Which ONNX operators an operation is: a table, and a function where a name alone is not
 * enough. What ONNX does not have is written under the domain org.tapedeck with its attributes.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-fields.h"
#include "onnx.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  TEXT = TD_ONNX_TEXT,
  AXES = TD_MAX_DIMS
};

typedef void (*Write) (TdOnnx *o, const TdStep *step, const char *type);

static uint32_t
in (const TdOnnx *o, const TdStep *step, uint32_t i)
{
  return td__step_in (o->s, step, i);
}

static uint32_t
out (const TdOnnx *o, const TdStep *step)
{
  return td__step_out (o->s, step, 0);
}

static const TdNodeInfo *
info (const TdOnnx *o, uint32_t node)
{
  return &o->s->nodes[node];
}

/* All inputs, one output, no attributes. */
static void
plain (TdOnnx *o, const TdStep *step, const char *type)
{
  TdOnnxNodeWriter n = td__onnx_node (o, type, NULL);

  for (uint32_t i = 0; i < step->n_in; i++)
    td__onnx_in_node (&n, in (o, step, i));
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

static void
with_float (TdOnnx *o, const TdStep *step, const char *type, const char *name, double value)
{
  TdOnnxNodeWriter n = td__onnx_node (o, type, NULL);

  td__onnx_in_node (&n, in (o, step, 0));
  td__onnx_out_node (&n, out (o, step));
  td__onnx_float (&n, name, value);
  td__onnx_end (&n);
}

static void
leaky (TdOnnx *o, const TdStep *step, const char *type)
{
  with_float (o, step, type, "alpha", td__export_number (step, "slope", 0.2));
}

static void
elu (TdOnnx *o, const TdStep *step, const char *type)
{
  with_float (o, step, type, "alpha", td__export_number (step, "alpha", 1));
}

/* x and a number; the name ends in "r" where the number comes first. */
static void
scalar (TdOnnx *o, const TdStep *step, const char *type)
{
  const bool first = step->cls->name[0] == 'r';
  char number[TEXT];
  TdOnnxNodeWriter n;

  td__onnx_constant_number (o, td__export_number (step, "value", 0),
                            (TdDtype)info (o, in (o, step, 0))->dtype, number, sizeof number);
  n = td__onnx_node (o, type, NULL);
  if (first)
    td__onnx_in (&n, number);
  td__onnx_in_node (&n, in (o, step, 0));
  if (!first)
    td__onnx_in (&n, number);
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

static void
twice (TdOnnx *o, const TdStep *step, const char *type)
{
  TdOnnxNodeWriter n = td__onnx_node (o, type, NULL);

  td__onnx_in_node (&n, in (o, step, 0));
  td__onnx_in_node (&n, in (o, step, 0));
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

static void
clip (TdOnnx *o, const TdStep *step, const char *type)
{
  const TdDtype dtype = (TdDtype)info (o, in (o, step, 0))->dtype;
  char low[TEXT], high[TEXT];
  TdOnnxNodeWriter n;

  td__onnx_constant_number (o, td__export_number (step, "x_min", 0), dtype, low, sizeof low);
  td__onnx_constant_number (
      o, td__export_number (step, "x_max", td__export_number (step, "z", 20)), dtype, high,
      sizeof high);
  n = td__onnx_node (o, type, NULL);
  td__onnx_in_node (&n, in (o, step, 0));
  td__onnx_in (&n, low);
  td__onnx_in (&n, high);
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

static void
hard_sigmoid (TdOnnx *o, const TdStep *step, const char *type)
{
  with_float (o, step, type, "alpha", 0.2);
}

/* Reductions; ReduceSum takes its axes as an input, the others as an attribute before opset 18.
 */
static void
reduce (TdOnnx *o, const TdStep *step, const char *type)
{
  const bool as_input = strcmp (type, "ReduceSum") == 0 || o->opset >= 18;
  int64_t axes[AXES];
  int count = td__export_ints (step, "axis", axes, AXES);
  char text[TEXT];
  TdOnnxNodeWriter n;

  if (count == 0)
    type = "Identity";
  if (as_input && count > 0)
    td__onnx_constant_ints (o, axes, count, text, sizeof text);
  n = td__onnx_node (o, type, NULL);
  td__onnx_in_node (&n, in (o, step, 0));
  if (as_input && count > 0)
    td__onnx_in (&n, text);
  else if (count > 0)
    td__onnx_ints (&n, "axes", axes, count);
  if (count != 0)
    td__onnx_int (&n, "keepdims", td__export_number (step, "keepdims", 0) != 0);
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

static void
argmax (TdOnnx *o, const TdStep *step, const char *type)
{
  char wide[TEXT];
  TdOnnxNodeWriter n = td__onnx_node (o, type, NULL);

  td__onnx_in_node (&n, in (o, step, 0));
  td__onnx_int (&n, "axis", (int64_t)td__export_number (step, "axis", 0));
  td__onnx_int (&n, "keepdims", 0);
  td__onnx_out (&n, td__onnx_made (o, wide, sizeof wide));
  td__onnx_end (&n);
  td__onnx_cast (o, wide, (TdDtype)info (o, out (o, step))->dtype,
                 td__onnx_value (o, out (o, step)), NULL);
}

/* To the shape that came out. */
static void
to_shape (TdOnnx *o, const TdStep *step, const char *type)
{
  const uint32_t x = in (o, step, 0), y = out (o, step);
  char text[TEXT];
  TdOnnxNodeWriter n;

  if (strcmp (type, "Reshape") == 0)
    td__onnx_reshape_list (o, o->sizes.of[x], info (o, x)->shape.ndim, o->sizes.of[y],
                           info (o, y)->shape.ndim, text, sizeof text);
  else
    td__onnx_shape_of (o, y, text, sizeof text);
  n = td__onnx_node (o, type, NULL);
  td__onnx_in_node (&n, x);
  td__onnx_in (&n, text);
  td__onnx_out_node (&n, y);
  td__onnx_end (&n);
}

static void
transpose (TdOnnx *o, const TdStep *step, const char *type)
{
  const int ndim = info (o, in (o, step, 0))->shape.ndim;
  int64_t axes[AXES];
  int count = td__export_ints (step, "axes", axes, AXES);
  TdOnnxNodeWriter n = td__onnx_node (o, type, NULL);

  for (int i = 0; i < count; i++)
    axes[i] += axes[i] < 0 ? ndim : 0;
  td__onnx_in_node (&n, in (o, step, 0));
  if (count > 0)
    td__onnx_ints (&n, "perm", axes, count);
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

static void
swapaxes (TdOnnx *o, const TdStep *step, const char *type)
{
  const int ndim = info (o, in (o, step, 0))->shape.ndim;
  int64_t a = (int64_t)td__export_number (step, "axis1", 0),
          b = (int64_t)td__export_number (step, "axis2", 0), axes[AXES];
  TdOnnxNodeWriter n = td__onnx_node (o, type, NULL);

  for (int i = 0; i < ndim; i++)
    axes[i] = i;
  a += a < 0 ? ndim : 0;
  b += b < 0 ? ndim : 0;
  axes[a] = b;
  axes[b] = a;
  td__onnx_in_node (&n, in (o, step, 0));
  td__onnx_ints (&n, "perm", axes, ndim);
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

static void
along_axis (TdOnnx *o, const TdStep *step, const char *type)
{
  TdOnnxNodeWriter n = td__onnx_node (o, type, NULL);

  for (uint32_t i = 0; i < step->n_in; i++)
    td__onnx_in_node (&n, in (o, step, i));
  td__onnx_int (&n, "axis", (int64_t)td__export_number (step, "axis", 1));
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

static void
split (TdOnnx *o, const TdStep *step, const char *type)
{
  const int ndim = info (o, in (o, step, 0))->shape.ndim;
  int64_t axis = (int64_t)td__export_number (step, "axis", 0);
  int64_t *sizes = td__xmalloc ((step->n_out + 1) * sizeof *sizes);
  char text[TEXT];
  TdOnnxNodeWriter n;

  axis += axis < 0 ? ndim : 0;
  for (uint32_t k = 0; k < step->n_out; k++)
    sizes[k] = td__onnx_fixed (o, step, td__step_out (o->s, step, k), (int)axis);
  td__onnx_constant_ints (o, sizes, (int)step->n_out, text, sizeof text);
  n = td__onnx_node (o, type, NULL);
  td__onnx_in_node (&n, in (o, step, 0));
  td__onnx_in (&n, text);
  td__onnx_int (&n, "axis", axis);
  for (uint32_t k = 0; k < step->n_out; k++)
    td__onnx_out_node (&n, td__step_out (o->s, step, k));
  td__onnx_end (&n);
  free (sizes);
}

static void
cast (TdOnnx *o, const TdStep *step, const char *type)
{
  TdOnnxNodeWriter n = td__onnx_node (o, type, NULL);

  td__onnx_in_node (&n, in (o, step, 0));
  td__onnx_int (&n, "to", td__onnx_dtype (info (o, out (o, step))->dtype));
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

static void
where (TdOnnx *o, const TdStep *step, const char *type)
{
  char condition[TEXT];
  TdOnnxNodeWriter n;

  td__onnx_cast (o, td__onnx_value (o, in (o, step, 0)), TD_BOOL, NULL, condition);
  n = td__onnx_node (o, type, NULL);
  td__onnx_in (&n, condition);
  td__onnx_in_node (&n, in (o, step, 1));
  td__onnx_in_node (&n, in (o, step, 2));
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

/* One operand of a product, its last two axes exchanged if asked. */
static void
product_operand (TdOnnx *o, uint32_t node, bool exchanged, char *text, size_t size)
{
  const int ndim = info (o, node)->shape.ndim;
  int64_t axes[AXES];
  TdOnnxNodeWriter n;

  snprintf (text, size, "%s", td__onnx_value (o, node));
  if (!exchanged || ndim < 2)
    return;
  for (int i = 0; i < ndim; i++)
    axes[i] = i;
  axes[ndim - 1] = ndim - 2;
  axes[ndim - 2] = ndim - 1;
  n = td__onnx_node (o, "Transpose", NULL);
  td__onnx_in_node (&n, node);
  td__onnx_ints (&n, "perm", axes, ndim);
  td__onnx_out (&n, td__onnx_made (o, text, size));
  td__onnx_end (&n);
}

static void
matmul (TdOnnx *o, const TdStep *step, const char *type)
{
  char a[TEXT], b[TEXT];
  TdOnnxNodeWriter n;

  product_operand (o, in (o, step, 0), td__export_number (step, "transa", 0) != 0, a, sizeof a);
  product_operand (o, in (o, step, 1), td__export_number (step, "transb", 0) != 0, b, sizeof b);
  n = td__onnx_node (o, type, NULL);
  td__onnx_in (&n, a);
  td__onnx_in (&n, b);
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

/* Rows are everything behind the first axis. */
static void
linear (TdOnnx *o, const TdStep *step, const char *type)
{
  char x[TEXT];
  TdOnnxNodeWriter n;

  snprintf (x, sizeof x, "%s", td__onnx_value (o, in (o, step, 0)));
  if (info (o, in (o, step, 0))->shape.ndim != 2)
    {
      n = td__onnx_node (o, "Flatten", NULL);
      td__onnx_in_node (&n, in (o, step, 0));
      td__onnx_int (&n, "axis", 1);
      td__onnx_out (&n, td__onnx_made (o, x, sizeof x));
      td__onnx_end (&n);
    }
  n = td__onnx_node (o, type, NULL);
  td__onnx_in (&n, x);
  for (uint32_t i = 1; i < step->n_in; i++)
    td__onnx_in_node (&n, in (o, step, i));
  td__onnx_int (&n, "transB", 1);
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

/* Behind the image as much as the last windows of a convolution reach over it. */
static void
cover (TdOnnx *o, const TdStep *step, int n_axes, int64_t *pads)
{
  const TdShape *y = &info (o, out (o, step))->shape, *w = &info (o, in (o, step, 1))->shape;
  int64_t stride[AXES], dilate[AXES];
  const int n_stride = td__export_ints (step, "stride", stride, AXES),
            n_dilate = td__export_ints (step, "dilate", dilate, AXES);

  for (int i = 0; i < n_axes; i++)
    {
      const int64_t by = n_stride <= 0 ? 1 : stride[n_stride == 1 ? 0 : i],
                    apart = n_dilate <= 0 ? 1 : dilate[n_dilate == 1 ? 0 : i];

      pads[i] = (y->dim[2 + i] - 1) * by + (w->dim[2 + i] - 1) * apart + 1
                - td__onnx_fixed (o, step, in (o, step, 0), 2 + i) - pads[i];
    }
}

/* Strides, pads on both sides, and the window's size. */
static void
window (TdOnnxNodeWriter *n, const TdStep *step, int n_axes, bool dilates)
{
  int64_t values[AXES], pads[2 * AXES];
  int count;

  if ((count = td__export_ints (step, "ksize", values, AXES)) > 0)
    td__onnx_ints (n, "kernel_shape", values, count);
  count = td__export_ints (step, "stride", values, AXES);
  if (count == 0)
    count = td__export_ints (step, "ksize", values, AXES);
  if (count > 0)
    td__onnx_ints (n, "strides", values, count);
  memset (pads, 0, sizeof pads);
  td__export_ints (step, "pad", pads, n_axes);
  memcpy (pads + n_axes, pads, (size_t)n_axes * sizeof *pads);
  if (dilates && td__export_number (step, "cover_all", 0) != 0)
    cover (n->o, step, n_axes, pads + n_axes);
  td__onnx_ints (n, "pads", pads, 2 * n_axes);
  if (dilates && (count = td__export_ints (step, "dilate", values, AXES)) > 0)
    td__onnx_ints (n, "dilations", values, count);
}

static void foreign (TdOnnx *o, const TdStep *step, const char *why);
static void composed (TdOnnx *o, const TdStep *step);

static void
convolution (TdOnnx *o, const TdStep *step, const char *type)
{
  TdOnnxNodeWriter n;

  n = td__onnx_node (o, type, NULL);
  for (uint32_t i = 0; i < step->n_in; i++)
    td__onnx_in_node (&n, in (o, step, i));
  window (&n, step, info (o, in (o, step, 0))->shape.ndim - 2, true);
  td__onnx_int (&n, "group", (int64_t)td__export_number (step, "groups", 1));
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

static void
pooling (TdOnnx *o, const TdStep *step, const char *type)
{
  TdOnnxNodeWriter n;

  if (step->n_out > 1 && td__export_is_used (o->s, td__step_out (o->s, step, 1)))
    {
      td__onnx_windows (o, step);
      return;
    }
  n = td__onnx_node (o, type, NULL);
  td__onnx_in_node (&n, in (o, step, 0));
  window (&n, step, info (o, in (o, step, 0))->shape.ndim - 2, false);
  td__onnx_int (&n, "ceil_mode", td__export_number (step, "cover_all", 0) != 0);
  if (strcmp (type, "AveragePool") == 0)
    td__onnx_int (&n, "count_include_pad",
                  td__export_number (step, "pad_value", 0) != (double)TD_NONE);
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

static void
fixed_normalization (TdOnnx *o, const TdStep *step, const char *type)
{
  TdOnnxNodeWriter n = td__onnx_node (o, type, NULL);

  for (uint32_t i = 0; i < step->n_in; i++)
    td__onnx_in_node (&n, in (o, step, i));
  td__onnx_float (&n, "epsilon", td__export_number (step, "eps", 2e-5));
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

/* Of a value that a node has already: in the shape of result k. */
static void
reshaped (TdOnnx *o, const TdStep *step, uint32_t k, const char *from)
{
  const uint32_t y = td__step_out (o->s, step, k);
  char sizes[TEXT];

  td__onnx_reshape_list (o, NULL, 0, o->sizes.of[y], info (o, y)->shape.ndim, sizes,
                         sizeof sizes);
  td__onnx_call (o, (TdOnnxCall){ "Reshape", { from, sizes } }, td__onnx_value (o, y), NULL);
}

/* The mean and 1 / deviation of each row are ONNX's too, floats with an axis of 1 behind.  It
 * has them in no wider type, and so computes doubles by them. */
static void
layer_normalization (TdOnnx *o, const TdStep *step, const char *type)
{
  const TdDtype dtype = (TdDtype)info (o, out (o, step))->dtype;
  char moments[2][TEXT];
  bool any = false;
  TdOnnxNodeWriter n;

  if (dtype == TD_F64)
    {
      composed (o, step);
      return;
    }

  for (uint32_t k = 1; k < step->n_out; k++)
    any = any || td__export_is_used (o->s, td__step_out (o->s, step, k));
  for (int k = 0; k < 2 && any; k++)
    td__onnx_made (o, moments[k], TEXT);
  n = td__onnx_node (o, type, NULL);
  for (uint32_t i = 0; i < step->n_in; i++)
    td__onnx_in_node (&n, in (o, step, i));
  td__onnx_int (&n, "axis", -1);
  td__onnx_float (&n, "epsilon", td__export_number (step, "eps", 1e-5));
  td__onnx_out_node (&n, out (o, step));
  for (int k = 0; k < 2 && any; k++)
    td__onnx_out (&n, moments[k]);
  td__onnx_end (&n);
  for (uint32_t k = 0; k < 2 && any; k++)
    {
      if (dtype != TD_F32)
        td__onnx_cast (o, moments[k], dtype, NULL, moments[k]);
      reshaped (o, step, 1 + k, moments[k]);
    }
}

static void
dropout (TdOnnx *o, const TdStep *step, const char *type)
{
  const TdShape scalar = { 0, { 0 } };
  const bool yes = true;
  char ratio[TEXT], train[TEXT];
  TdOnnxNodeWriter n;

  td__onnx_constant_number (o, td__export_number (step, "ratio", 0.5), TD_F32, ratio,
                            sizeof ratio);
  td__onnx_constant (o, TD_BOOL, &scalar, &yes, train, sizeof train);
  n = td__onnx_node (o, type, NULL);
  td__onnx_in_node (&n, in (o, step, 0));
  td__onnx_in (&n, ratio);
  td__onnx_in (&n, train);
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
}

static void
cross_entropy (TdOnnx *o, const TdStep *step, const char *type)
{
  const bool scalar_loss = info (o, out (o, step))->shape.ndim == 0;
  TdOnnxNodeWriter n;

  if (td__export_number (step, "normalize", 1) == 0 || step->n_in > 2)
    {
      composed (o, step);
      return;
    }
  n = td__onnx_node (o, type, NULL);
  for (uint32_t i = 0; i < step->n_in; i++)
    td__onnx_in_node (&n, in (o, step, i));
  td__onnx_text (&n, "reduction", scalar_loss ? "mean" : "none");
  td__onnx_int (&n, "ignore_index", (int64_t)td__export_number (step, "ignore_label", -1));
  td__onnx_out_node (&n, out (o, step));
  td__onnx_end (&n);
  if (td__export_is_used (o->s, td__step_out (o->s, step, 1)))
    td__onnx_call (
        o,
        (TdOnnxCall){
            "Softmax", { td__onnx_value (o, in (o, step, 0)) }, .number = "axis", .value = 1 },
        td__onnx_value (o, td__step_out (o->s, step, 1)), NULL);
}

static void
squared_mean (TdOnnx *o, const TdStep *step, const char *type)
{
  char value[TEXT];

  td__onnx_call (
      o,
      (TdOnnxCall){
          "Sub", { td__onnx_value (o, in (o, step, 0)), td__onnx_value (o, in (o, step, 1)) } },
      NULL, value);
  td__onnx_call (o, (TdOnnxCall){ "Mul", { value, value } }, NULL, value);
  td__onnx_call (o, (TdOnnxCall){ type, { value }, .number = "keepdims", .value = 0 },
                 td__onnx_value (o, out (o, step)), NULL);
}

/* An operation that ONNX does not have, or not so. */
static void
foreign (TdOnnx *o, const TdStep *step, const char *why)
{
  TdOnnxNodeWriter n = td__onnx_node (o, step->cls->name, "org.tapedeck");
  char lacks[120];
  int64_t values[64];

  snprintf (lacks, sizeof lacks, "%s%s%s", step->cls->name, why != NULL ? " " : "",
            why != NULL ? why : "");
  td__export_lack (&o->lacks, step, lacks);
  for (uint32_t i = 0; i < step->n_in; i++)
    td__onnx_in_node (&n, in (o, step, i));
  for (uint32_t k = 0; k < step->n_out; k++)
    td__onnx_out_node (&n, td__step_out (o->s, step, k));
  for (int i = 0; i < step->cls->n_attrs; i++)
    {
      const TdAttr *a = &step->cls->attrs[i];

      if (a->kind == TD_ATTR_DOUBLE)
        td__onnx_float (&n, a->name, td__export_number (step, a->name, 0));
      else if (a->kind == TD_ATTR_INTS)
        td__onnx_ints (&n, a->name, values, td__export_ints (step, a->name, values, 64));
      else if (a->kind == TD_ATTR_INT || a->kind == TD_ATTR_BOOL || a->kind == TD_ATTR_CHOICE)
        td__onnx_int (&n, a->name, (int64_t)td__export_number (step, a->name, 0));
    }
  td__onnx_end (&n);
}

static void
composed (TdOnnx *o, const TdStep *step)
{
  const char *why = NULL;

  if (!td__onnx_shape (o, step) && !td__onnx_gradient (o, step) && !td__onnx_map (o, step)
      && !td__onnx_windows (o, step) && !td__onnx_places (o, step)
      && !td__onnx_recipe (o, step, &why))
    foreign (o, step, why);
}

static const struct
{
  const char *op, *type;
  Write write;
} table[] = {
  { "add", "Add", plain },
  { "sub", "Sub", plain },
  { "mul", "Mul", plain },
  { "div", "Div", plain },
  { "pow", "Pow", plain },
  { "maximum", "Max", plain },
  { "minimum", "Min", plain },
  { "neg", "Neg", plain },
  { "exp", "Exp", plain },
  { "log", "Log", plain },
  { "sqrt", "Sqrt", plain },
  { "absolute", "Abs", plain },
  { "sin", "Sin", plain },
  { "cos", "Cos", plain },
  { "erf", "Erf", plain },
  { "sign", "Sign", plain },
  { "relu", "Relu", plain },
  { "sigmoid", "Sigmoid", plain },
  { "tanh", "Tanh", plain },
  { "identity", "Identity", plain },
  { "copy", "Identity", plain },
  { "to_layout", "Identity", plain },
  { "square", "Mul", twice },
  { "leaky_relu", "LeakyRelu", leaky },
  { "elu", "Elu", elu },
  { "clipped_relu", "Clip", clip },
  { "clip", "Clip", clip },
  { "hard_sigmoid", "HardSigmoid", hard_sigmoid },
  { "add_scalar", "Add", scalar },
  { "mul_scalar", "Mul", scalar },
  { "div_scalar", "Div", scalar },
  { "pow_scalar", "Pow", scalar },
  { "rsub_scalar", "Sub", scalar },
  { "rdiv_scalar", "Div", scalar },
  { "rpow_scalar", "Pow", scalar },
  { "sum", "ReduceSum", reduce },
  { "mean", "ReduceMean", reduce },
  { "max", "ReduceMax", reduce },
  { "min", "ReduceMin", reduce },
  { "prod", "ReduceProd", reduce },
  { "logsumexp", "ReduceLogSumExp", reduce },
  { "argmax", "ArgMax", argmax },
  { "argmin", "ArgMin", argmax },
  { "reshape", "Reshape", to_shape },
  { "expand_dims", "Reshape", to_shape },
  { "squeeze", "Reshape", to_shape },
  { "broadcast_to", "Expand", to_shape },
  { "transpose", "Transpose", transpose },
  { "swapaxes", "Transpose", swapaxes },
  { "concat", "Concat", along_axis },
  { "softmax", "Softmax", along_axis },
  { "log_softmax", "LogSoftmax", along_axis },
  { "split_axis", "Split", split },
  { "split_axis_indices", "Split", split },
  { "cast", "Cast", cast },
  { "where", "Where", where },
  { "matmul", "MatMul", matmul },
  { "batch_matmul", "MatMul", matmul },
  { "linear", "Gemm", linear },
  { "convolution_2d", "Conv", convolution },
  { "convolution_nd", "Conv", convolution },
  { "max_pooling_2d", "MaxPool", pooling },
  { "max_pooling_nd", "MaxPool", pooling },
  { "average_pooling_2d", "AveragePool", pooling },
  { "average_pooling_nd", "AveragePool", pooling },
  { "fixed_batch_normalization", "BatchNormalization", fixed_normalization },
  { "layer_normalization", "LayerNormalization", layer_normalization },
  { "dropout", "Dropout", dropout },
  { "softmax_cross_entropy", "SoftmaxCrossEntropyLoss", cross_entropy },
  { "mean_squared_error", "ReduceMean", squared_mean },
};

/* An array made from nothing: the same numbers, spread. */
static void
spread (TdOnnx *o, const TdStep *step, double value, uint32_t y)
{
  char number[TEXT], sizes[TEXT];
  TdOnnxNodeWriter n;

  td__onnx_constant_number (o, value, (TdDtype)info (o, y)->dtype, number, sizeof number);
  td__onnx_shape_of (o, y, sizes, sizeof sizes);
  n = td__onnx_node (o, "Expand", NULL);
  td__onnx_in (&n, number);
  td__onnx_in (&n, sizes);
  if (step->how.origin != TD_ARRAY_RANDOM)
    {
      td__onnx_out_node (&n, y);
      td__onnx_end (&n);
      return;
    }
  td__onnx_out (&n, td__onnx_made (o, number, sizeof number));
  td__onnx_end (&n);
  n = td__onnx_node (o,
                     step->how.random_kind == (int)TD_RANDOM_NORMAL ? "RandomNormalLike"
                                                                    : "RandomUniformLike",
                     NULL);
  td__onnx_in (&n, number);
  td__onnx_out_node (&n, y);
  td__onnx_end (&n);
}

/* from, from + by ..., as many as the axis has. */
static void
counted (TdOnnx *o, const TdStep *step, uint32_t y)
{
  const TdNodeInfo *n = info (o, y);
  const TdDtype dtype = (TdDtype)n->dtype;
  char from[TEXT], by[TEXT], to[TEXT], size[TEXT], part[TEXT];
  TdOnnxNodeWriter node;

  td__onnx_constant_number (o, step->how.a, dtype, from, sizeof from);
  td__onnx_constant_number (o, step->how.b, dtype, by, sizeof by);
  if (o->sizes.of[y][0].mask == 0)
    td__onnx_constant_number (o, step->how.a + step->how.b * (double)n->shape.dim[0], dtype, to,
                              sizeof to);
  else
    {
      td__onnx_size_number (o, &o->sizes.of[y][0], dtype, size, sizeof size);
      node = td__onnx_node (o, "Mul", NULL);
      td__onnx_in (&node, size);
      td__onnx_in (&node, by);
      td__onnx_out (&node, td__onnx_made (o, part, sizeof part));
      td__onnx_end (&node);
      node = td__onnx_node (o, "Add", NULL);
      td__onnx_in (&node, from);
      td__onnx_in (&node, part);
      td__onnx_out (&node, td__onnx_made (o, to, sizeof to));
      td__onnx_end (&node);
    }
  node = td__onnx_node (o, "Range", NULL);
  td__onnx_in (&node, from);
  td__onnx_in (&node, to);
  td__onnx_in (&node, by);
  td__onnx_out_node (&node, y);
  td__onnx_end (&node);
}

static void
fill (TdOnnx *o, const TdStep *step)
{
  const TdNodeInfo *n = info (o, out (o, step));
  uint64_t mask = 0;
  TdOnnxNodeWriter node;

  for (int d = 0; d < n->shape.ndim; d++)
    mask |= o->sizes.of[out (o, step)][d].mask;
  if (step->how.origin == TD_ARRAY_ARANGE)
    counted (o, step, out (o, step));
  else if (step->how.origin != TD_ARRAY_RANDOM || mask != 0)
    spread (o, step, step->how.a, out (o, step));
  else
    {
      node = td__onnx_node (
          o, step->how.random_kind == (int)TD_RANDOM_NORMAL ? "RandomNormal" : "RandomUniform",
          NULL);
      td__onnx_ints (&node, "shape", n->shape.dim, n->shape.ndim);
      if (n->dtype == TD_F64 || n->dtype == TD_F16)
        td__onnx_int (&node, "dtype", td__onnx_dtype (n->dtype));
      td__onnx_out_node (&node, out (o, step));
      td__onnx_end (&node);
    }
}

void
td__onnx_step (TdOnnx *o, const TdStep *step)
{
  if (step->kind == TD_STEP_FILL)
    fill (o, step);
  else if (step->kind == TD_STEP_COPY)
    plain (o, step, "Identity");
  else if (step->kind != TD_STEP_OP)
    td__export_lack_outside (&o->lacks, step);
  else if (!td__onnx_double (o, step))
    {
      for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp (table[i].op, step->cls->name) == 0)
          {
            table[i].write (o, step, table[i].type);
            return;
          }
      composed (o, step);
    }
}
