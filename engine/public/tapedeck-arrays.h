/* Functions that rearrange, pick, repeat and fill up arrays.  Included by tapedeck.h.
 *
 * Names and argument order are Chainer's where Chainer has the function.  As everywhere, each
 * has a twin with _at that takes the call site, and results belong to the innermost scope.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck.h"

TD_BEGIN_DECLS

/** Repeat all inputs to the shape they have in common, into out[0 .. n - 1]. */
TD_API TdStatus td_broadcast (TdVar *const *xs, int n, TdVar **out);
TD_API TdStatus td_broadcast_at (TdVar *const *xs, int n, TdVar **out, const TdSite *site);
/** Exchange two axes. */
TD_API TdVar *td_swapaxes (TdVar *x, int axis1, int axis2);
TD_API TdVar *td_swapaxes_at (TdVar *x, int axis1, int axis2, const TdSite *site);
/** Move one axis to another place; the others keep their order. */
TD_API TdVar *td_moveaxis (TdVar *x, int source, int destination);
TD_API TdVar *td_moveaxis_at (TdVar *x, int source, int destination, const TdSite *site);
/** Reverse an axis. */
TD_API TdVar *td_flip (TdVar *x, int axis);
TD_API TdVar *td_flip_at (TdVar *x, int axis, const TdSite *site);

/** For td_repeat: of x as one axis. */
#define TD_NO_AXIS INT32_MIN
/** Repeat each element of an axis: all as often, n_repeats 1, or each its own number of times.
 */
TD_API TdVar *td_repeat (TdVar *x, const int *repeats, int n_repeats, int axis);
TD_API TdVar *td_repeat_at (TdVar *x, const int *repeats, int n_repeats, int axis,
                            const TdSite *site);
/** Put x several times behind itself along each axis; reps are those of the last axes. */
TD_API TdVar *td_tile (TdVar *x, const int *reps, int n_reps);
TD_API TdVar *td_tile_at (TdVar *x, const int *reps, int n_reps, const TdSite *site);
/** Join along axis 1; vectors and scalars along axis 0. */
TD_API TdVar *td_hstack (TdVar *const *xs, int n);
TD_API TdVar *td_hstack_at (TdVar *const *xs, int n, const TdSite *site);
/** Join along axis 0; vectors count as rows. */
TD_API TdVar *td_vstack (TdVar *const *xs, int n);
TD_API TdVar *td_vstack_at (TdVar *const *xs, int n, const TdSite *site);
/** Cut x at places along an axis into out[0 .. n]; indices rise from 0 to the axis's size.
 * *Source*: chainer.functions.split_axis with indices. */
TD_API TdStatus td_split_axis_indices (TdVar *x, const int64_t *indices, int n, int axis,
                                       TdVar **out);
TD_API TdStatus td_split_axis_indices_at (TdVar *x, const int64_t *indices, int n, int axis,
                                          TdVar **out, const TdSite *site);
/** Cut x into pieces without that axis, as many as it is long, into out. */
TD_API TdStatus td_separate (TdVar *x, int axis, TdVar **out);
TD_API TdStatus td_separate_at (TdVar *x, int axis, TdVar **out, const TdSite *site);
/** Pick elements by n arrays of indices along neighbouring axes, the first being `axis`.
 * *Shapes*: x (a, b, c), two indices (i) at axis 0 -> (i, c).  *Errors*: TD_ERR_ARG for an
 * index below 0 or beyond the axis.  *Source*: chainer.functions.get_item with arrays. */
TD_API TdVar *td_get_item_arrays (TdVar *x, TdVar *const *indices, int n, int axis);
TD_API TdVar *td_get_item_arrays_at (TdVar *x, TdVar *const *indices, int n, int axis,
                                     const TdSite *site);
/** a with b added at a slice (see td_get_item).  *Source*: chainer.functions.scatter_add. */
TD_API TdVar *td_scatter_add (TdVar *a, const TdSlice *slices, int n_slices, TdVar *b);
TD_API TdVar *td_scatter_add_at (TdVar *a, const TdSlice *slices, int n_slices, TdVar *b,
                                 const TdSite *site);
/** a with b added at the places that td_get_item_arrays would pick, one that comes twice twice.
 */
TD_API TdVar *td_scatter_add_arrays (TdVar *a, TdVar *const *indices, int n, int axis,
                                     TdVar *b);
TD_API TdVar *td_scatter_add_arrays_at (TdVar *a, TdVar *const *indices, int n, int axis,
                                        TdVar *b, const TdSite *site);
/** 1 at each index, else 0; no gradient.  *Shapes*: t (...) integers -> (..., n_classes).
 * *Errors*: TD_ERR_ARG for an index out of range. */
TD_API TdVar *td_one_hot (TdVar *t, int n_classes, TdDtype dtype);
TD_API TdVar *td_one_hot_at (TdVar *t, int n_classes, TdDtype dtype, const TdSite *site);

typedef enum
{
  TD_PAD_CONSTANT,
  TD_PAD_EDGE,   /**< by the number at the edge */
  TD_PAD_REFLECT /**< by those on the other side of it */
} TdPadMode;
/** Put numbers around x: pad_width holds how many before and after, axis by axis; value counts
 * for TD_PAD_CONSTANT.  *Source*: chainer.functions.pad. */
TD_API TdVar *td_pad (TdVar *x, const int *pad_width, TdPadMode mode, double value);
TD_API TdVar *td_pad_at (TdVar *x, const int *pad_width, TdPadMode mode, double value,
                         const TdSite *site);
/** Put sequences below each other, filled up to one length (-1: that of the longest). *Shapes*:
 * xs (l_i, ...) -> (n, length, ...).  *Source*: chainer.functions.pad_sequence. */
TD_API TdVar *td_pad_sequence (TdVar *const *xs, int n, int length, double padding);
TD_API TdVar *td_pad_sequence_at (TdVar *const *xs, int n, int length, double padding,
                                  const TdSite *site);

typedef struct
{
  int ksize[2], stride[2], pad[2], dilate[2];
  bool cover_all; /**< the last window may hang over the edge */
  int end_;
} TdIm2colOpt;
#define TD_IM2COL_DEFAULTS .ksize = { 1, 1 }, .stride = { 1, 1 }, .dilate = { 1, 1 }
/** Windows of images as columns.  *Shapes*: x (n, c, h, w) -> (n, c kh kw, oh, ow).  *Source*:
 * chainer.functions.im2col. */
TD_API TdVar *td_im2col_ (TdVar *x, const TdIm2colOpt *options);
TD_API TdVar *td_im2col_at (TdVar *x, TdIm2colOpt options, const TdSite *site);

typedef struct
{
  const char *mode;   /**< "bilinear" or "nearest" */
  bool align_corners; /**< bilinear: corner pixels of x are those of the result */
  int end_;
} TdResizeImagesOpt;
#define TD_RESIZE_IMAGES_DEFAULTS .mode = "bilinear", .align_corners = true
/** Images in another size.  *Shapes*: x (n, c, h, w) -> (n, c, height, width).  *Source*:
 * chainer.functions.resize_images. */
TD_API TdVar *td_resize_images_ (TdVar *x, int64_t height, int64_t width,
                                 const TdResizeImagesOpt *options);
TD_API TdVar *td_resize_images_at (TdVar *x, int64_t height, int64_t width,
                                   TdResizeImagesOpt options, const TdSite *site);

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_resize_images(x, height, ...) td__resize_images_x (x, height, __VA_ARGS__, .end_ = 0)
#define td__resize_images_x(x, height, width, ...) TD_CALL_ (td_resize_images_at (x, height, width, TD_OPTIONS_ (TdResizeImagesOpt, TD_RESIZE_IMAGES_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_im2col(...) td__im2col_x (__VA_ARGS__, .end_ = 0)
#define td__im2col_x(x, ...) TD_CALL_ (td_im2col_at (x, TD_OPTIONS_ (TdIm2colOpt, TD_IM2COL_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_broadcast(...) td_broadcast_at (__VA_ARGS__, TD_HERE)
#define td_swapaxes(...) td_swapaxes_at (__VA_ARGS__, TD_HERE)
#define td_moveaxis(...) td_moveaxis_at (__VA_ARGS__, TD_HERE)
#define td_flip(...) td_flip_at (__VA_ARGS__, TD_HERE)
#define td_repeat(...) td_repeat_at (__VA_ARGS__, TD_HERE)
#define td_tile(...) td_tile_at (__VA_ARGS__, TD_HERE)
#define td_hstack(...) td_hstack_at (__VA_ARGS__, TD_HERE)
#define td_vstack(...) td_vstack_at (__VA_ARGS__, TD_HERE)
#define td_split_axis_indices(...) td_split_axis_indices_at (__VA_ARGS__, TD_HERE)
#define td_separate(...) td_separate_at (__VA_ARGS__, TD_HERE)
#define td_get_item_arrays(...) td_get_item_arrays_at (__VA_ARGS__, TD_HERE)
#define td_scatter_add(...) td_scatter_add_at (__VA_ARGS__, TD_HERE)
#define td_scatter_add_arrays(...) td_scatter_add_arrays_at (__VA_ARGS__, TD_HERE)
#define td_one_hot(...) td_one_hot_at (__VA_ARGS__, TD_HERE)
#define td_pad(...) td_pad_at (__VA_ARGS__, TD_HERE)
#define td_pad_sequence(...) td_pad_sequence_at (__VA_ARGS__, TD_HERE)
/* clang-format on */
#endif

TD_END_DECLS
