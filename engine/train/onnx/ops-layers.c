/* ONNX operators with windows and weights: convolutions, poolings, products, normalisations.
 *
 * SPDX-License-Identifier: MIT */
#include "run.h"

#include <math.h>
#include <string.h>

enum
{
  MOST_AXES = TD_MAX_DIMS - 2
};

/* --- windows --- */

typedef struct
{
  int n;                                 /* axes after batch and channels */
  int64_t in[MOST_AXES], out[MOST_AXES]; /* sizes */
  int64_t ksize[MOST_AXES], stride[MOST_AXES], dilate[MOST_AXES];
  int64_t before[MOST_AXES], after[MOST_AXES]; /* padding */
  bool ceil;
} Window;

static bool
numbers_of (TdOnnxRun *r, const char *name, int n, int64_t otherwise, int64_t least,
            int64_t *to)
{
  const int given = td__run_ints (r, -1, name, to, n);

  for (int d = given < 0 ? 0 : given; d < n; d++)
    to[d] = otherwise;
  if (given >= 0 && given != n)
    td__run_fail (r, TD_ERR_SHAPE, "%d %s expected, got %d", n, name, given);
  for (int d = 0; d < n; d++)
    if (to[d] < least || to[d] > INT32_MAX / 4)
      td__run_fail (r, TD_ERR_ARG, "%s of %lld", name, (long long)to[d]);
  return !r->failed;
}

/* Padding as it is said, or so that out = ceil (in / stride). */
static bool
padding (TdOnnxRun *r, Window *w)
{
  const char *automatic = td__onnx_attr_text (r->node, "auto_pad", "NOTSET");
  const bool same = strncmp (automatic, "SAME", 4) == 0;
  int64_t pads[2 * MOST_AXES];

  if (strcmp (automatic, "NOTSET") != 0 || !numbers_of (r, "pads", 2 * w->n, 0, 0, pads))
    memset (pads, 0, sizeof pads);
  for (int d = 0; d < w->n; d++)
    {
      const int64_t reach = w->dilate[d] * (w->ksize[d] - 1) + 1;
      const int64_t need = ((w->in[d] + w->stride[d] - 1) / w->stride[d] - 1) * w->stride[d]
                           + reach - w->in[d];
      const int64_t more = same && need > 0 ? need : 0;

      w->before[d]
          = pads[d] + (strcmp (automatic, "SAME_LOWER") == 0 ? (more + 1) / 2 : more / 2);
      w->after[d] = pads[w->n + d] + more - (same ? w->before[d] : 0);
    }
  return !r->failed;
}

/* The window's sizes: those of the weights, and what is said; false after a failure. */
static bool
kernel_of (TdOnnxRun *r, const TdShape *weights, Window *w)
{
  const bool is_said = td__onnx_attr (r->node, "kernel_shape") != NULL;
  int64_t said[MOST_AXES];

  if (is_said && !numbers_of (r, "kernel_shape", w->n, 1, 1, said))
    return false;
  if (weights == NULL && !is_said)
    td__run_fail (r, TD_ERR_ARG, "a kernel_shape expected");
  for (int d = 0; d < w->n && !r->failed; d++)
    {
      w->ksize[d] = weights != NULL ? weights->dim[d + 2] : said[d];
      if (is_said && said[d] != w->ksize[d])
        td__run_fail (r, TD_ERR_SHAPE, "its kernel_shape has %lld, and the weights %lld",
                      (long long)said[d], (long long)w->ksize[d]);
    }
  return !r->failed;
}

/* Sizes of what comes out; a window that would begin behind the end is none. */
static bool
window_of (TdOnnxRun *r, const TdShape *x, const TdShape *weights, Window *w)
{
  *w = (Window){ .n = x->ndim - 2, .ceil = td__onnx_attr_int (r->node, "ceil_mode", 0) != 0 };
  if (w->n < 1 || w->n > MOST_AXES || (weights != NULL && weights->ndim != x->ndim))
    {
      td__run_fail (r, TD_ERR_SHAPE, "3 axes and more, and weights of as many expected");
      return false;
    }
  for (int d = 0; d < w->n; d++)
    w->in[d] = x->dim[d + 2];
  if (!kernel_of (r, weights, w) || !numbers_of (r, "strides", w->n, 1, 1, w->stride)
      || !numbers_of (r, "dilations", w->n, 1, 1, w->dilate) || !padding (r, w))
    return false;
  for (int d = 0; d < w->n; d++)
    {
      const int64_t room
          = w->in[d] + w->before[d] + w->after[d] - (w->dilate[d] * (w->ksize[d] - 1) + 1);

      w->out[d] = (room + (w->ceil ? w->stride[d] - 1 : 0)) / w->stride[d] + 1;
      if (w->ceil && (w->out[d] - 1) * w->stride[d] >= w->in[d] + w->before[d])
        w->out[d]--;
      if (room < 0)
        td__run_fail (r, TD_ERR_SHAPE, "a window larger than its input of %lld",
                      (long long)w->in[d]);
    }
  return !r->failed;
}

/* How much has to be behind an axis so that the last window is whole. */
static int64_t
behind (const Window *w, int d)
{
  const int64_t need = (w->out[d] - 1) * w->stride[d] + w->dilate[d] * (w->ksize[d] - 1) + 1
                       - w->in[d] - w->before[d];

  return need > w->after[d] ? need : w->after[d];
}

/* Is padding the same on both sides, and every window whole? */
static bool
is_even (const Window *w)
{
  for (int d = 0; d < w->n; d++)
    if (w->before[d] != w->after[d] || behind (w, d) != w->after[d])
      return false;
  return true;
}

/* x with its padding in place. */
static TdVar *
padded (TdVar *x, const Window *w, double value)
{
  int width[2 * TD_MAX_DIMS] = { 0 };

  for (int d = 0; d < w->n; d++)
    {
      width[2 * (d + 2)] = (int)w->before[d];
      width[2 * (d + 2) + 1] = (int)behind (w, d);
    }
  return td_pad (x, width, TD_PAD_CONSTANT, value);
}

static void
to_ints (const int64_t *from, int n, int *to)
{
  for (int d = 0; d < n; d++)
    to[d] = (int)from[d];
}

/* --- convolutions --- */

TdVar *
td__run_conv (TdOnnxRun *r, TdVar *x, TdVar *weights, TdVar *b)
{
  const TdShape shape = td_shape (x), kernel = td_shape (weights);
  TdConvNdOpt o = { TD_CONV_ND_DEFAULTS };
  TdConv2dOpt two = { TD_CONV_2D_DEFAULTS };
  Window w;

  if (!window_of (r, &shape, &kernel, &w))
    return NULL;
  if (is_even (&w))
    to_ints (w.before, w.n, o.pad);
  else
    x = padded (x, &w, 0);
  to_ints (w.stride, w.n, o.stride);
  to_ints (w.dilate, w.n, o.dilate);
  o.groups = two.groups = (int)td__onnx_attr_int (r->node, "group", 1);
  memcpy (two.stride, o.stride, sizeof two.stride);
  memcpy (two.pad, o.pad, sizeof two.pad);
  memcpy (two.dilate, o.dilate, sizeof two.dilate);
  return w.n == 2 ? td_convolution_2d_ (x, weights, b, &two)
                  : td_convolution_nd_ (x, weights, b, &o);
}

static void
conv (TdOnnxRun *r)
{
  TdVar *b = td__run_there (r, 2) ? td__run_var (r, 2) : NULL,
        *y = td__run_conv (r, td__run_var (r, 0), td__run_var (r, 1), b);

  if (y != NULL)
    td__run_out (r, 0, y);
}

/* The whole of what the windows reach, of which the padding is cut off. */
static TdVar *
deconvolved (TdOnnxRun *r, const Window *w, const int64_t *more)
{
  TdVar *x = td__run_var (r, 0), *weights = td__run_var (r, 1),
        *b = td__run_there (r, 2) ? td__run_var (r, 2) : NULL;
  TdDeconvNdOpt o = { TD_DECONV_ND_DEFAULTS };
  TdSlice slices[TD_MAX_DIMS] = { TD_ALL, TD_ALL };
  bool even = true;

  for (int d = 0; d < w->n; d++)
    even = even && w->before[d] == w->after[d] && more[d] < w->stride[d];
  for (int d = 0; d < w->n; d++)
    {
      const int64_t whole
          = w->stride[d] * (w->in[d] - 1) + w->dilate[d] * (w->ksize[d] - 1) + 1 + more[d];

      o.stride[d] = (int)w->stride[d];
      o.dilate[d] = (int)w->dilate[d];
      o.pad[d] = even ? (int)w->before[d] : 0;
      o.outsize[d] = (int)(even ? whole - 2 * w->before[d] : whole - more[d]);
      slices[d + 2] = TD_RANGE (w->before[d], whole - w->after[d]);
      if (whole - w->before[d] - w->after[d] < 1 || (!even && more[d] > w->after[d]))
        {
          td__run_fail (r, TD_ERR_SHAPE, "padding of %lld and %lld around %lld",
                        (long long)w->before[d], (long long)w->after[d], (long long)whole);
          return td__poison ();
        }
    }
  o.groups = (int)td__onnx_attr_int (r->node, "group", 1);
  if (w->n == 2)
    {
      const TdDeconv2dOpt two = { .stride = { o.stride[0], o.stride[1] },
                                  .pad = { o.pad[0], o.pad[1] },
                                  .dilate = { o.dilate[0], o.dilate[1] },
                                  .outsize = { o.outsize[0], o.outsize[1] },
                                  .groups = o.groups };

      x = td_deconvolution_2d_ (x, weights, b, &two);
    }
  else
    x = td_deconvolution_nd_ (x, weights, b, &o);
  return even ? x : td_get_item (x, slices, w->n + 2);
}

static void
conv_transpose (TdOnnxRun *r)
{
  const TdShape x = td__run_shape (r, 0), kernel = td__run_shape (r, 1);
  int64_t more[MOST_AXES], sizes[MOST_AXES];
  const char *automatic = td__onnx_attr_text (r->node, "auto_pad", "NOTSET");
  int n;
  Window w = { .n = x.ndim - 2 };

  if (w.n < 1 || w.n > MOST_AXES || kernel.ndim != x.ndim)
    {
      td__run_fail (r, TD_ERR_SHAPE, "3 axes and more, and weights of as many expected");
      return;
    }
  for (int d = 0; d < w.n; d++)
    {
      w.in[d] = x.dim[d + 2];
      w.ksize[d] = kernel.dim[d + 2];
    }
  n = td__run_ints (r, -1, "output_shape", sizes, MOST_AXES);
  if (r->failed || !numbers_of (r, "strides", w.n, 1, 1, w.stride)
      || !numbers_of (r, "dilations", w.n, 1, 1, w.dilate)
      || !numbers_of (r, "output_padding", w.n, 0, 0, more))
    return;
  if (n < 0 && strcmp (automatic, "NOTSET") == 0)
    {
      int64_t pads[2 * MOST_AXES];

      if (!numbers_of (r, "pads", 2 * w.n, 0, 0, pads))
        return;
      memcpy (w.before, pads, (size_t)w.n * sizeof *pads);
      memcpy (w.after, pads + w.n, (size_t)w.n * sizeof *pads);
    }
  for (int d = 0; d < w.n && (n == w.n || strncmp (automatic, "SAME", 4) == 0); d++)
    {
      const int64_t want = n == w.n ? sizes[d] : w.in[d] * w.stride[d];
      const int64_t reach
          = w.stride[d] * (w.in[d] - 1) + more[d] + w.dilate[d] * (w.ksize[d] - 1) + 1;
      const int64_t all = reach - want;

      w.before[d] = strcmp (automatic, "SAME_UPPER") == 0 ? all / 2 : all - all / 2;
      w.after[d] = all - w.before[d];
      if (all < 0)
        td__run_fail (r, TD_ERR_SHAPE,
                      "an output of %lld on axis %d, where windows reach no further than %lld",
                      (long long)want, d + 2, (long long)reach);
    }
  if (!r->failed)
    td__run_out (r, 0, deconvolved (r, &w, more));
}

/* Number d of an attribute, or what stands for one that is not there. */
static double
number_at (const TdOnnxNode *n, const char *name, int d, int64_t otherwise)
{
  const TdOnnxAttr *a = td__onnx_attr (n, name);

  return (double)(a != NULL && a->kind == TD_ONNX_INTS && d < a->n ? a->ints[d] : otherwise);
}

/* Padding to the input's size times the stride, where windows leave gaps: of no input they
 * reach so far. */
static const char *
transpose_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  const TdOnnxAttr *kernel = td__onnx_attr (n, "kernel_shape");

  (void)g;
  if (strncmp (td__onnx_attr_text (n, "auto_pad", "NOTSET"), "SAME", 4) != 0
      || td__onnx_attr (n, "output_shape") != NULL || kernel == NULL)
    return NULL;
  for (int d = 0; d < kernel->n; d++)
    if (number_at (n, "dilations", d, 1) * (number_at (n, "kernel_shape", d, 1) - 1) + 1
            + number_at (n, "output_padding", d, 0)
        < number_at (n, "strides", d, 1))
      return "an output larger than its windows reach";
  return NULL;
}

/* --- poolings --- */

static const char *
average_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  const TdOnnxAttr *a = td__onnx_attr (n, "dilations");

  (void)g;
  for (int d = 0; a != NULL && d < a->n; d++)
    if (number_at (n, "dilations", d, 1) != 1)
      return "dilations";
  return NULL;
}

/* The largest of each window with gaps: windows as columns first. */
static TdVar *
max_of_columns (TdOnnxRun *r, TdVar *x, const Window *w)
{
  const TdShape shape = td_shape (x);
  TdIm2colOpt o = { TD_IM2COL_DEFAULTS };
  const int axis = 2;

  if (w->n != 2)
    return td__run_fail (r, TD_ERR_SHAPE, "dilations with 4 axes expected"), td__poison ();
  to_ints (w->ksize, 2, o.ksize);
  to_ints (w->stride, 2, o.stride);
  to_ints (w->dilate, 2, o.dilate);
  x = td_im2col_ (padded (x, w, -INFINITY), &o);
  x = td_reshape (x, TD_SHAPE (shape.dim[0], shape.dim[1], w->ksize[0] * w->ksize[1], w->out[0],
                               w->out[1]));
  return td_max_axes (x, &axis, 1, false);
}

static TdPoolNdOpt
pool_options (const Window *w, bool pads)
{
  TdPoolNdOpt o = { .cover_all = false, .pad_value = 0 };

  to_ints (w->ksize, w->n, o.ksize);
  to_ints (w->stride, w->n, o.stride);
  if (pads)
    to_ints (w->before, w->n, o.pad);
  return o;
}

static TdVar *
pool (TdVar *x, const Window *w, const TdPoolNdOpt *o, bool max)
{
  const TdPool2dOpt two = { .ksize = { o->ksize[0], o->ksize[1] },
                            .stride = { o->stride[0], o->stride[1] },
                            .pad = { o->pad[0], o->pad[1] } };

  if (w->n == 2 && o->pad_value == 0)
    return max ? td_max_pooling_2d_ (x, &two) : td_average_pooling_2d_ (x, &two);
  return max ? td_max_pooling_nd_ (x, o) : td_average_pooling_nd_ (x, o);
}

/* A window that lies in the padding alone has nothing to pool. */
static bool
is_over_elements (TdOnnxRun *r, const Window *w)
{
  for (int d = 0; d < w->n; d++)
    {
      const int64_t reach = w->dilate[d] * (w->ksize[d] - 1) + 1,
                    most = w->before[d] > w->after[d] ? w->before[d] : w->after[d];

      if (most >= reach)
        {
          td__run_fail (r, TD_ERR_ARG,
                        "padding less than the window of %lld expected, got %lld",
                        (long long)reach, (long long)most);
          return false;
        }
    }
  return true;
}

static void
max_pool (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0);
  const TdShape shape = td_shape (x);
  bool gaps = false;
  TdPoolNdOpt o;
  Window w;

  if (!window_of (r, &shape, NULL, &w) || !is_over_elements (r, &w))
    return;
  for (int d = 0; d < w.n; d++)
    gaps |= w.dilate[d] != 1;
  o = pool_options (&w, is_even (&w));
  td__run_out (r, 0,
               gaps ? max_of_columns (r, x, &w)
                    : pool (is_even (&w) ? x : padded (x, &w, -INFINITY), &w, &o, true));
}

/* Ones where an element counts, of one image. */
static TdVar *
counted (TdVar *x, const Window *w, bool padding_counts)
{
  Window rest = *w;
  TdShape one = td_shape (x);

  one.dim[0] = one.dim[1] = 1;
  for (int d = 0; d < w->n && padding_counts; d++)
    {
      one.dim[d + 2] += w->before[d] + w->after[d];
      rest.in[d] += w->before[d] + w->after[d];
      rest.before[d] = rest.after[d] = 0;
    }
  return padded (td_full (td_dtype (x), one, 1), &rest, 0);
}

/* Where windows are not all alike: the mean with zeros, by the share of what counts. */
static void
average_pool (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0);
  const TdShape shape = td_shape (x);
  const bool padding_counts = td__onnx_attr_int (r->node, "count_include_pad", 0) != 0;
  TdPoolNdOpt o;
  Window w;

  if (!window_of (r, &shape, NULL, &w) || !is_over_elements (r, &w))
    return;
  for (int d = 0; d < w.n; d++)
    if (w.dilate[d] != 1)
      td__run_fail (r, TD_ERR_ARG, "dilations of 1 expected, got %lld", (long long)w.dilate[d]);
  if (r->failed)
    return;
  o = pool_options (&w, is_even (&w));
  if (is_even (&w))
    {
      bool none = true;

      for (int d = 0; d < w.n; d++)
        none = none && w.before[d] == 0;
      o.pad_value = padding_counts || none ? 0 : TD_NONE;
      td__run_out (r, 0, pool (x, &w, &o, false));
      return;
    }
  td__run_out (r, 0,
               td_div (pool (padded (x, &w, 0), &w, &o, false),
                       pool (counted (x, &w, padding_counts), &w, &o, false)));
}

static void
global_pool (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0);
  int axes[MOST_AXES], n = 0;

  for (int d = 2; d < td_ndim (x); d++)
    axes[n++] = d;
  td__run_out (r, 0, n > 0 ? r->node->row->reduce (x, axes, n, true) : td_identity (x));
}

/* --- products --- */

static void
matmul (TdOnnxRun *r)
{
  td__run_out (r, 0, td_matmul (td__run_var (r, 0), td__run_var (r, 1), false, false));
}

/* alpha A B + beta C; what a fully connected layer is, as one. */
static void
gemm (TdOnnxRun *r)
{
  const double alpha = td__onnx_attr_float (r->node, "alpha", 1),
               beta = td__onnx_attr_float (r->node, "beta", 1);
  const bool ta = td__onnx_attr_int (r->node, "transA", 0) != 0,
             tb = td__onnx_attr_int (r->node, "transB", 0) != 0;
  TdVar *a = td__run_var (r, 0), *b = td__run_var (r, 1), *y,
        *c = td__run_there (r, 2) ? td__run_var (r, 2) : NULL;

  if (td_ndim (a) != 2 || td_ndim (b) != 2)
    {
      td__run_fail (r, TD_ERR_SHAPE, "two matrices expected, got %d and %d axes", td_ndim (a),
                    td_ndim (b));
      return;
    }
  if (!ta && tb && alpha == 1 && beta == 1
      && (c == NULL || (td_ndim (c) == 1 && td_shape (c).dim[0] == td_shape (b).dim[0])))
    {
      td__run_out (r, 0, td_linear (a, b, c));
      return;
    }
  y = td_matmul (a, b, ta, tb);
  y = alpha != 1 ? td_mul_scalar (y, alpha) : y;
  if (c != NULL && beta != 0) /* with 0 it does not count, whatever it is */
    y = td_add (y, beta != 1 ? td_mul_scalar (c, beta) : c);
  td__run_out (r, 0, y);
}

static void
einsum (TdOnnxRun *r)
{
  TdVar *in[TD_MAX_DIMS];

  for (int i = 0; i < r->node->n_in && i < TD_MAX_DIMS; i++)
    in[i] = td__run_var (r, i);
  td__run_out (r, 0,
               td_einsum (td__onnx_attr_text (r->node, "equation", ""), in, r->node->n_in));
}

/* --- normalisations --- */

static void
batch_normalization (TdOnnxRun *r)
{
  TdVar *in[5];
  const double eps = td__onnx_attr_float (r->node, "epsilon", 1e-5);
  TdBatchNormOpt o = { .eps = eps, .decay = td__onnx_attr_float (r->node, "momentum", 0.9) };

  for (int i = 0; i < 5; i++)
    in[i] = td__run_var (r, i);
  o.running_mean = in[3];
  o.running_var = in[4];
  td__run_out (r, 0,
               r->g->follows_train && td_config ()->train
                   ? td_batch_normalization_ (in[0], in[1], in[2], &o)
                   : td_fixed_batch_normalization (in[0], in[1], in[2], in[3], in[4], eps));
}

static void
instance_normalization (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0);
  const TdNormOpt o = { .eps = td__onnx_attr_float (r->node, "epsilon", 1e-5) };

  if (td_ndim (x) < 3)
    td__run_fail (r, TD_ERR_SHAPE, "3 axes and more expected");
  else
    td__run_out (r, 0,
                 td_group_normalization_ (x, (int)td_shape (x).dim[1], td__run_var (r, 1),
                                          td__run_var (r, 2), &o));
}

/* Before opset 21 gamma and beta are of groups. */
static void
group_normalization (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0), *weights[2];
  const TdNormOpt o = { .eps = td__onnx_attr_float (r->node, "epsilon", 1e-5) };
  const int64_t groups = td__onnx_attr_int (r->node, "num_groups", 1),
                channels = td_ndim (x) > 1 ? td_shape (x).dim[1] : 0;

  if (groups < 1 || groups > INT32_MAX || channels % groups != 0)
    {
      td__run_fail (r, TD_ERR_ARG, "%lld groups of %lld channels", (long long)groups,
                    (long long)channels);
      return;
    }
  for (int i = 0; i < 2; i++)
    {
      weights[i] = td__run_var (r, i + 1);
      if (r->g->opset < 21)
        weights[i] = td_repeat (weights[i], &(int){ (int)(channels / groups) }, 1, 0);
    }
  td__run_out (r, 0, td_group_normalization_ (x, (int)groups, weights[0], weights[1], &o));
}

/* The mean of each row, and one by its deviation, which are seldom asked for. */
static void
moments_of_rows (TdOnnxRun *r, TdVar *x, int axis, double eps)
{
  int axes[TD_MAX_DIMS], n = 0;
  TdVar *mean;

  if (r->node->n_out < 2)
    return;
  for (int d = axis; d < td_ndim (x); d++)
    axes[n++] = d;
  mean = td_mean_axes (x, axes, n, true);
  td__run_out (r, 1, mean);
  td__run_out (r, 2,
               td_rsqrt (td_add_scalar (
                   td_mean_axes (td_square (td_sub (x, mean)), axes, n, true), eps)));
}

/* Over all axes from one on, which are a row. */
static void
layer_normalization (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0), *gamma, *beta;
  const TdNormOpt o = { .eps = td__onnx_attr_float (r->node, "epsilon", 1e-5) };
  const TdShape shape = td_shape (x);
  const int axis = td__run_axis (r, -1, shape.ndim);
  TdShape tail = { 0, { 0 } }, rows = { 2, { 1, 1 } };

  if (axis < 0)
    return;
  moments_of_rows (r, x, axis, o.eps);
  for (int d = 0; d < shape.ndim; d++)
    {
      rows.dim[d >= axis] *= shape.dim[d];
      if (d >= axis)
        tail.dim[tail.ndim++] = shape.dim[d];
    }
  gamma = td_broadcast_to (td__run_var (r, 1), tail);
  beta = td__run_there (r, 2) ? td_broadcast_to (td__run_var (r, 2), tail)
                              : td_zeros (td_dtype (x), tail);
  if (tail.ndim == 1)
    {
      td__run_out (r, 0, td_layer_normalization_ (x, gamma, beta, &o));
      return;
    }
  tail = (TdShape){ 1, { rows.dim[1] } };
  x = td_layer_normalization_ (td_reshape (x, rows), td_reshape (gamma, tail),
                               td_reshape (beta, tail), &o);
  td__run_out (r, 0, td_reshape (x, shape));
}

static void
local_response (TdOnnxRun *r)
{
  const int64_t size = td__onnx_attr_int (r->node, "size", 1);
  const TdLocalResponseOpt o
      = { .n = (int)size,
          .k = td__onnx_attr_float (r->node, "bias", 1),
          .alpha = td__onnx_attr_float (r->node, "alpha", 1e-4) / (double)(size > 0 ? size : 1),
          .beta = td__onnx_attr_float (r->node, "beta", 0.75) };

  if (size < 1 || size > 1 << 20 || size % 2 == 0)
    td__run_fail (r, TD_ERR_ARG, "an odd size expected, got %lld", (long long)size);
  else
    td__run_out (r, 0, td_local_response_normalization_ (td__run_var (r, 0), &o));
}

static const char *
response_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  (void)g;
  return td__onnx_attr_int (n, "size", 1) % 2 == 0 ? "an even size" : NULL;
}

/* Whether a node that says so itself trains is the program's to say. */
static const char *
training_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  bool trains = td__onnx_attr_int (n, "training_mode", 0) != 0;

  for (int i = 0; i < g->n_givens && n->n_in > 2 && strcmp (n->type, "Dropout") == 0; i++)
    if (g->givens[i].value == n->in[2] && g->givens[i].tensor.bytes == 1)
      trains |= *(const char *)g->givens[i].tensor.elements != 0;
  return trains && !g->follows_train
             ? "training_mode (export in evaluation mode; or td_onnx_load with .train = true)"
             : NULL;
}

static void
dropout (TdOnnxRun *r)
{
  const TdOnnxHost *ratio = td__run_there (r, 1) ? td__run_numbers (r, 1) : NULL;
  TdVar *x = td__run_var (r, 0);

  td__run_out (r, 0,
               r->g->follows_train && td_config ()->train
                   ? td_dropout (x, ratio != NULL && ratio->n == 1
                                        ? td__host_float (ratio, 0)
                                        : td__onnx_attr_float (r->node, "ratio", 0.5))
                   : x);
}

static const char *
cross_entropy_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  const char *how = td__onnx_attr_text (n, "reduction", "mean");

  (void)g;
  return strcmp (how, "mean") != 0 && strcmp (how, "sum") != 0 && strcmp (how, "none") != 0
             ? "the reduction"
             : NULL;
}

static void
cross_entropy (TdOnnxRun *r)
{
  const char *reduction = td__onnx_attr_text (r->node, "reduction", "mean");
  TdCrossEntropyOpt o = { TD_CROSS_ENTROPY_DEFAULTS };
  TdVar *loss;

  /* Without the attribute no label is passed over, -1 neither. */
  o.ignore_label = (int)td__onnx_attr_int (r->node, "ignore_index", INT32_MIN);
  o.reduce = reduction[0] == 'm' ? "mean" : "no";
  loss = td_softmax_cross_entropy_ (td__run_var (r, 0), td__run_var (r, 1), &o);
  td__run_out (r, 0, reduction[0] == 's' ? td_sum (loss) : loss);
}

#define ONE .least_in = 1, .most_in = 1
#define TWO .least_in = 2, .most_in = 2
#define FLOATS "of floating-point numbers"
#define WINDOW "auto_pad dilations kernel_shape pads strides "

/* clang-format off */
const TdOnnxRow td__onnx_layers[] = {
  { "AveragePool", .from = 1, ONE, .attributes = WINDOW "ceil_mode count_include_pad", .run = average_pool,
    .lacks = average_lacks, .limits = "no dilations" },
  { "BatchNormalization", .from = 6, .to = 6, .least_in = 5, .most_in = 5, .state = 24,
    .attributes = "epsilon is_test=1 momentum spatial=1", .run = batch_normalization, .limits = "spatial, its first output only" },
  { "BatchNormalization", .from = 7, .to = 8, .least_in = 5, .most_in = 5, .state = 24,
    .attributes = "epsilon momentum spatial=1", .run = batch_normalization, .limits = "spatial, its first output only" },
  { "BatchNormalization", .from = 9, .least_in = 5, .most_in = 5, .state = 24,
    .attributes = "epsilon momentum training_mode", .run = batch_normalization, .lacks = training_lacks,
    .limits = "its first output only; training is the option train of td_onnx_load" },
  { "Conv", .from = 1, .least_in = 2, .most_in = 3, .attributes = WINDOW "group", .run = conv },
  { "ConvTranspose", .from = 1, .least_in = 2, .most_in = 3, .attributes = WINDOW "group output_padding output_shape",
    .run = conv_transpose, .lacks = transpose_lacks, .limits = "no output larger than its windows reach" },
  { "Dropout", .from = 7, .to = 11, ONE, .attributes = "ratio", .run = dropout, .limits = "without its mask" },
  { "Dropout", .from = 12, .least_in = 1, .most_in = 3, .read = 6, .attributes = "seed", .run = dropout,
    .lacks = training_lacks, .limits = "without its mask; training is the option train of td_onnx_load" },
  { "Einsum", .from = 12, .least_in = 1, .most_in = TD_MAX_DIMS, .attributes = "equation", .run = einsum,
    .limits = "8 inputs at most; a size of 1 is not repeated" },
  { "Gemm", .from = 6, .to = 6, .least_in = 3, .most_in = 3, .attributes = "alpha beta broadcast transA transB",
    .run = gemm, .limits = FLOATS },
  { "Gemm", .from = 7, .least_in = 2, .most_in = 3, .attributes = "alpha beta transA transB", .run = gemm, .limits = FLOATS },
  { "GlobalAveragePool", .from = 1, ONE, .run = global_pool, .reduce = td_mean_axes },
  { "GlobalMaxPool", .from = 1, ONE, .run = global_pool, .reduce = td_max_axes },
  { "GroupNormalization", .from = 18, .least_in = 3, .most_in = 3, .attributes = "epsilon num_groups stash_type",
    .run = group_normalization },
  { "InstanceNormalization", .from = 6, .least_in = 3, .most_in = 3, .attributes = "epsilon",
    .run = instance_normalization },
  { "LayerNormalization", .from = 17, .least_in = 2, .most_in = 3, .most_out = 3, .attributes = "axis epsilon stash_type",
    .run = layer_normalization },
  { "LRN", .from = 1, ONE, .attributes = "alpha beta bias size", .run = local_response, .lacks = response_lacks, .limits = "odd sizes" },
  { "MatMul", .from = 1, TWO, .run = matmul, .limits = FLOATS },
  { "MaxPool", .from = 1, ONE, .attributes = WINDOW "ceil_mode storage_order=0", .run = max_pool,
    .limits = "of floating-point numbers, without indices; dilations with 4 axes" },
  { "SoftmaxCrossEntropyLoss", .from = 12, TWO, .attributes = "ignore_index reduction", .run = cross_entropy, .lacks = cross_entropy_lacks,
    .limits = "without weights, its first output only" },
  { 0 },
};
/* clang-format on */
