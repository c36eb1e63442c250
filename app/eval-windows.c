/* Rows of `tapedeck eval`: convolutions and poolings over any number of axes.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <stddef.h>

/* --- convolutions --- */

/* Axes after batch and channels, of which there must be as many as numbers are given. */
static int
n_axes (const TdEval *e)
{
  int n = td_ndim (e->in[0]) - 2;

  return n < 1 ? 1 : n;
}

static TdConv2dOpt
conv_2d (TdEval *e, bool cover_all, int groups)
{
  TdConv2dOpt o = { .dilate = { 1, 1 }, .groups = groups, .cover_all = cover_all };

  td_eval_tuple (e, "stride", o.stride, 2);
  td_eval_tuple (e, "pad", o.pad, 2);
  return o;
}

static void
call_convolution_2d (TdEval *e)
{
  TdConv2dOpt o = conv_2d (e, td_eval_bool (e, "cover_all"), (int)td_eval_int (e, "groups"));

  td_eval_tuple (e, "dilate", o.dilate, 2);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_convolution_2d_ (e->in[0], e->in[1], td_eval_in (e, 2), &o));
}

static void
call_dilated_convolution_2d (TdEval *e)
{
  TdConv2dOpt o = conv_2d (e, td_eval_bool (e, "cover_all"), 1);

  td_eval_tuple (e, "dilate", o.dilate, 2);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_dilated_convolution_2d_ (e->in[0], e->in[1], td_eval_in (e, 2), &o));
}

static void
call_depthwise_convolution_2d (TdEval *e)
{
  TdConv2dOpt o = conv_2d (e, false, 1);

  if (e->wrong[0] == '\0')
    td_eval_output (e,
                    td_depthwise_convolution_2d_ (e->in[0], e->in[1], td_eval_in (e, 2), &o));
}

typedef TdVar *ConvNd (TdVar *x, TdVar *W, TdVar *b, const TdConvNdOpt *options);

static void
conv_nd (TdEval *e, ConvNd *function)
{
  TdConvNdOpt o = { .cover_all = td_eval_bool (e, "cover_all"),
                    .groups = (int)td_eval_int (e, "groups") };

  td_eval_tuple (e, "stride", o.stride, n_axes (e));
  td_eval_tuple (e, "pad", o.pad, n_axes (e));
  td_eval_tuple (e, "dilate", o.dilate, n_axes (e));
  if (e->wrong[0] == '\0')
    td_eval_output (e, function (e->in[0], e->in[1], td_eval_in (e, 2), &o));
}

static void
call_convolution_nd (TdEval *e)
{
  conv_nd (e, td_convolution_nd_);
}

static void
call_convolution_1d (TdEval *e)
{
  conv_nd (e, td_convolution_1d_);
}

static void
call_convolution_3d (TdEval *e)
{
  conv_nd (e, td_convolution_3d_);
}

static void
call_deconvolution_2d (TdEval *e)
{
  TdDeconv2dOpt o = { .groups = (int)td_eval_int (e, "groups") };

  td_eval_tuple (e, "stride", o.stride, 2);
  td_eval_tuple (e, "pad", o.pad, 2);
  td_eval_tuple (e, "outsize", o.outsize, 2);
  td_eval_tuple (e, "dilate", o.dilate, 2);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_deconvolution_2d_ (e->in[0], e->in[1], td_eval_in (e, 2), &o));
}

static void
call_deconvolution_nd (TdEval *e)
{
  TdDeconvNdOpt o = { .groups = (int)td_eval_int (e, "groups") };

  td_eval_tuple (e, "stride", o.stride, n_axes (e));
  td_eval_tuple (e, "pad", o.pad, n_axes (e));
  td_eval_tuple (e, "outsize", o.outsize, n_axes (e));
  td_eval_tuple (e, "dilate", o.dilate, n_axes (e));
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_deconvolution_nd_ (e->in[0], e->in[1], td_eval_in (e, 2), &o));
}

/* --- poolings --- */

static TdPoolNdOpt
pool (TdEval *e, int n)
{
  TdPoolNdOpt o = { .cover_all = false };

  td_eval_tuple (e, "ksize", o.ksize, n);
  td_eval_tuple (e, "stride", o.stride, n);
  td_eval_tuple (e, "pad", o.pad, n);
  return o;
}

typedef TdVar *PoolNd (TdVar *x, const TdPoolNdOpt *options);

static void
max_pooling (TdEval *e, PoolNd *function, int n)
{
  TdPoolNdOpt o = pool (e, n);
  TdVar *indices = NULL;
  TdVar *y;

  o.cover_all = td_eval_bool (e, "cover_all");
  if (td_eval_bool (e, "return_indices"))
    o.indices = &indices;
  if (e->wrong[0] != '\0')
    return;
  y = function (e->in[0], &o);
  td_eval_output (e, y);
  if (indices != NULL)
    td_eval_output (e, indices);
}

static void
call_max_pooling_nd (TdEval *e)
{
  max_pooling (e, td_max_pooling_nd_, n_axes (e));
}

static void
call_max_pooling_1d (TdEval *e)
{
  max_pooling (e, td_max_pooling_1d_, 1);
}

static void
call_max_pooling_3d (TdEval *e)
{
  max_pooling (e, td_max_pooling_3d_, 3);
}

static void
call_max_pooling_2d (TdEval *e)
{
  TdPoolNdOpt nd = pool (e, 2);
  TdPool2dOpt o = { .ksize = { nd.ksize[0], nd.ksize[1] },
                    .stride = { nd.stride[0], nd.stride[1] },
                    .pad = { nd.pad[0], nd.pad[1] },
                    .cover_all = td_eval_bool (e, "cover_all") };

  if (e->wrong[0] != '\0')
    return;
  if (td_eval_bool (e, "return_indices"))
    max_pooling (e, td_max_pooling_nd_, 2);
  else
    td_eval_output (e, td_max_pooling_2d_ (e->in[0], &o));
}

static void
average_pooling (TdEval *e, PoolNd *function, int n)
{
  TdPoolNdOpt o = pool (e, n);

  td_eval_tuple (e, "pad_value", &o.pad_value, 1);
  if (td_eval_none (e, "pad_value"))
    o.pad_value = TD_NONE;
  if (e->wrong[0] == '\0')
    td_eval_output (e, function (e->in[0], &o));
}

static void
call_average_pooling_nd (TdEval *e)
{
  average_pooling (e, td_average_pooling_nd_, n_axes (e));
}

static void
call_average_pooling_1d (TdEval *e)
{
  average_pooling (e, td_average_pooling_1d_, 1);
}

static void
call_average_pooling_3d (TdEval *e)
{
  average_pooling (e, td_average_pooling_3d_, 3);
}

static void
call_average_pooling_2d (TdEval *e)
{
  TdPoolNdOpt nd = pool (e, 2);
  TdPool2dOpt o = { .ksize = { nd.ksize[0], nd.ksize[1] },
                    .stride = { nd.stride[0], nd.stride[1] },
                    .pad = { nd.pad[0], nd.pad[1] } };

  if (e->wrong[0] == '\0')
    td_eval_output (e, td_average_pooling_2d_ (e->in[0], &o));
}

static void
call_unpooling_2d (TdEval *e)
{
  TdUnpool2dOpt o = { .cover_all = td_eval_bool (e, "cover_all") };

  td_eval_tuple (e, "ksize", o.ksize, 2);
  td_eval_tuple (e, "stride", o.stride, 2);
  td_eval_tuple (e, "pad", o.pad, 2);
  td_eval_tuple (e, "outsize", o.outsize, 2);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_unpooling_2d_ (e->in[0], &o));
}

static void
call_adaptive_average_pooling_2d (TdEval *e)
{
  int size[2] = { 0, 0 };

  td_eval_tuple (e, "output_size", size, 2);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_adaptive_average_pooling_2d (e->in[0], size[0], size[1]));
}

/* clang-format off */
#define CONVOLUTION(name, formula)                                                             \
  { #name, "connection", "x W [b]",                                                            \
    "stride:ints=1 pad:ints=0 cover_all:bool=false dilate:ints=1 groups:int=1", formula,       \
    .call = call_##name }
#define DECONVOLUTION(name, formula)                                                           \
  { #name, "connection", "x W [b]",                                                            \
    "stride:ints=1 pad:ints=0 outsize:ints=None dilate:ints=1 groups:int=1", formula,          \
    .call = call_##name }
#define MAX_POOLING(name)                                                                      \
  { #name, "pooling", "x",                                                                     \
    "ksize:ints stride:ints=None pad:ints=0 cover_all:bool=true return_indices:bool=false",    \
    "largest element of each window", .call = call_##name }
#define AVERAGE_POOLING(name)                                                                  \
  { #name, "pooling", "x", "ksize:ints stride:ints=None pad:ints=0 pad_value:int?=0",          \
    "mean of each window; pad_value=None: of what is not padding", .call = call_##name }
#define ROW(name, group, operands, attributes, formula)                                        \
  { #name, group, operands, attributes, formula, .call = call_##name }
const TdEvalFunction td_eval_windows[] = {
  CONVOLUTION (convolution_2d, "y[o] = sum of x[i] (*) W[o, i], + b[o]"),
  CONVOLUTION (convolution_nd, "convolution over all axes after the second"),
  CONVOLUTION (convolution_1d, "convolution_nd of one axis"),
  CONVOLUTION (convolution_3d, "convolution_nd of three axes"),
  ROW (dilated_convolution_2d, "connection", "x W [b]",
       "stride:ints=1 pad:ints=0 dilate:ints=1 cover_all:bool=false", "convolution_2d with gaps"),
  ROW (depthwise_convolution_2d, "connection", "x W [b]", "stride:ints=1 pad:ints=0",
       "each channel with filters of its own"),
  DECONVOLUTION (deconvolution_2d, "the transpose of convolution_2d, + b"),
  DECONVOLUTION (deconvolution_nd, "the transpose of convolution_nd, + b"),
  MAX_POOLING (max_pooling_2d),
  MAX_POOLING (max_pooling_nd),
  MAX_POOLING (max_pooling_1d),
  MAX_POOLING (max_pooling_3d),
  ROW (average_pooling_2d, "pooling", "x", "ksize:ints stride:ints=None pad:ints=0",
       "mean of each window, padding counted as zeros"),
  AVERAGE_POOLING (average_pooling_nd),
  AVERAGE_POOLING (average_pooling_1d),
  AVERAGE_POOLING (average_pooling_3d),
  ROW (unpooling_2d, "pooling", "x",
       "ksize:ints stride:ints=None pad:ints=0 outsize:ints=None cover_all:bool=true",
       "each element over its window, windows added"),
  ROW (adaptive_average_pooling_2d, "pooling", "x", "output_size:ints",
       "mean of each of output_size windows that cover x"),
  { .name = NULL },
};
