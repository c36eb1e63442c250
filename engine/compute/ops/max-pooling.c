/* Max pooling over planes and over any number of axes.  Output 1 remembers where in its window
 * each maximum lay, in a byte where that is enough (TD_POOL_MAX of device.h); the gradient
 * scatters to those places, its own gradient gathers from them.
 *
 * SPDX-License-Identifier: MIT */
#include "windows.h"

static const char *const grad_names[] = { "index", "gy" };
static const TdAttr attrs_of[] = { TD_POOL_ATTRS, TD_POOL_COVER_ALL ("true") };
static const TdAttr grad_attrs[]
    = { TD_POOL_ATTRS, TD_POOL_COVER_ALL ("true"), TD_POOL_SIZE ("size") };

/* Of places counted from 1, 0 for none, in windows that have been checked. */
static TdDtype
index_dtype (const TdPooling *w)
{
  int64_t places = 1;

  for (int i = 0; i < w->ndim; i++)
    places *= w->ksize[i];
  return places <= UINT8_MAX ? TD_U8 : TD_I32;
}

static TdStatus
infer (TdOpCall *call)
{
  TdShape pooled;
  TdPooling w;
  TdStatus status = td__pool_infer (call, &td__max_pooling_2d_class, &pooled);

  if (status == TD_OK)
    status = td_op_out (call, 0, call->in[0].dtype, &pooled);
  if (status == TD_OK)
    status = td__pool_windows (call, pooled.ndim - 2, &w);
  return status != TD_OK ? status : td_op_out (call, 1, index_dtype (&w), &pooled);
}

static TdStatus
forward (TdOpCall *call)
{
  return td__pool_run (call, TD_POOL_MAX, TD_POOL_BY_ONE);
}

static TdStatus
backward (TdBackward *b)
{
  const TdPoolAttrs attrs = td__pool_sized (b->attrs, td_backward_in_shape (b, 0));

  if (b->gy[0] != NULL)
    b->gx[0] = td__apply2 (b->cls == &td__max_pooling_nd_class ? &td__max_pooling_nd_grad_class
                                                               : &td__max_pooling_2d_grad_class,
                           &attrs, NULL, td_backward_output (b, 1), b->gy[0]);
  return TD_OK;
}

/* clang-format off */
#define MAX_POOLING(NAME, LABEL)                                                               \
  {                                                                                            \
    .name = NAME, .label = LABEL, .group = "pooling", .formula = "largest of each window",     \
    .n_in_min = 1, .n_in_max = 1, .n_out = 2, .retain_out = 2, .flags = TD_OP_LAYOUTS, .in_names = td__names_x,        \
    .attrs_size = sizeof (TdPoolAttrs), .attrs = attrs_of,                                     \
    .n_attrs = TD_ARRAY_LENGTH (attrs_of), .infer = infer, .forward = forward, .backward = backward,      \
  }
/* clang-format on */

/* *Source*: chainer.functions.max_pooling_2d, max_pooling_nd. */
const TdOpClass td__max_pooling_2d_class = MAX_POOLING ("max_pooling_2d", "MaxPooling2D");
const TdOpClass td__max_pooling_nd_class = MAX_POOLING ("max_pooling_nd", "MaxPoolingND");

/* The index, and the windows that it is of. */
static TdStatus
check_index (const TdOpCall *call, TdPooling *w)
{
  const TdStatus status = td__pool_windows (call, call->in[0].shape->ndim - 2, w);

  if (status != TD_OK || call->in[0].dtype == index_dtype (w))
    return status;
  return td_op_fail_operands (call, TD_ERR_DTYPE, "index.dtype == %s expected, got %s",
                              td_dtype_name (index_dtype (w)),
                              td_dtype_name (call->in[0].dtype));
}

static TdStatus
grad_infer (TdOpCall *call)
{
  TdShape image;
  TdPooling w;
  TdStatus status = td__pool_grad_infer (call, &td__max_pooling_2d_grad_class, 1, &image);

  if (status == TD_OK)
    status = td__check_same_shape (call, 0, 1);
  if (status == TD_OK)
    status = check_index (call, &w);
  return status != TD_OK ? status : td_op_out (call, 0, call->in[1].dtype, &image);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  return td__pool_run (call, TD_POOL_MAX_GRAD, TD_POOL_BY_ONE);
}

static TdStatus
grad_backward (TdBackward *b)
{
  if (td_backward_needs (b, 1))
    b->gx[1] = td__apply2 (b->cls == &td__max_pooling_nd_grad_class
                               ? &td__max_pooling_nd_gather_class
                               : &td__max_pooling_2d_gather_class,
                           b->attrs, NULL, td_backward_input (b, 0), b->gy[0]);
  return TD_OK;
}

static TdStatus
gather_infer (TdOpCall *call)
{
  const TdShape *index = call->in[0].shape, *x = call->in[1].shape;
  const TdPoolAttrs *a = call->attrs;
  TdPooling w;
  int ndim;
  TdStatus status = td__window_ndim (call, &td__max_pooling_2d_gather_class, a->ndim, &ndim);

  if (status == TD_OK)
    status = check_index (call, &w);
  if (status == TD_OK)
    status = td__check_floats (call, 2);
  if (status == TD_OK)
    status = td__check_ndim (call, 1, index->ndim);
  for (int i = 0; status == TD_OK && i < 2; i++)
    status = td__check_sizes (call, 0, i, 1, i);
  for (int i = 0; status == TD_OK && i < ndim; i++)
    if (td__window_count (x->dim[2 + i], w.ksize[i], w.stride[i], w.pad[i], 1, a->cover_all)
        != index->dim[2 + i])
      status = td_op_fail_operands (call, TD_ERR_SHAPE, "an index for each window expected");
  return status != TD_OK ? status : td_op_out (call, 0, call->in[1].dtype, index);
}

static TdStatus
gather_forward (TdOpCall *call)
{
  return td__pool_run (call, TD_POOL_MAX_GATHER, TD_POOL_BY_ONE);
}

static TdStatus
gather_backward (TdBackward *b)
{
  const TdPoolAttrs attrs = td__pool_sized (b->attrs, td_backward_in_shape (b, 1));

  if (td_backward_needs (b, 1))
    b->gx[1] = td__apply2 (b->cls == &td__max_pooling_nd_gather_class
                               ? &td__max_pooling_nd_grad_class
                               : &td__max_pooling_2d_grad_class,
                           &attrs, NULL, td_backward_input (b, 0), b->gy[0]);
  return TD_OK;
}

/* clang-format off */
#define BY_INDEX(NAME, LABEL, FORMULA, WHAT)                                                   \
  {                                                                                            \
    .name = NAME, .label = LABEL, .group = "pooling", .formula = FORMULA, .n_in_min = 2,       \
    .n_in_max = 2, .n_out = 1, .retain_in = 1, .no_grad_in = 1, .flags = TD_OP_LAYOUTS, .in_names = grad_names,        \
    .attrs_size = sizeof (TdPoolAttrs), .attrs = grad_attrs,                                   \
    .n_attrs = TD_ARRAY_LENGTH (grad_attrs), .infer = WHAT##_infer, .forward = WHAT##_forward,         \
    .backward = WHAT##_backward,                                                               \
  }

const TdOpClass td__max_pooling_2d_grad_class
    = BY_INDEX ("max_pooling_2d_grad", "MaxPooling2DGrad", "gy where the maxima were", grad);
const TdOpClass td__max_pooling_nd_grad_class
    = BY_INDEX ("max_pooling_nd_grad", "MaxPoolingNDGrad", "gy where the maxima were", grad);
const TdOpClass td__max_pooling_2d_gather_class
    = BY_INDEX ("max_pooling_2d_gather", "MaxPooling2DWithIndexes", "x where the maxima were", gather);
const TdOpClass td__max_pooling_nd_gather_class
    = BY_INDEX ("max_pooling_nd_gather", "MaxPoolingNDWithIndexes", "x where the maxima were", gather);
/* clang-format on */

/* Who asks for indices gets Chainer's: i32, counted from 0, -1 for none. */
static TdVar *
apply (const TdOpClass *cls, const TdPoolAttrs *attrs, TdVar *x, TdVar **indices,
       const TdSite *site)
{
  TdVar *out[2];

  td__apply_at (cls, attrs, &x, 1, out, 2, site);
  if (indices != NULL)
    *indices = td_add_scalar_at (
        td_dtype (out[1]) == TD_I32 ? out[1] : td_cast_at (out[1], TD_I32, site), -1, site);
  return out[0];
}

TdVar *
td_max_pooling_2d_at (TdVar *x, TdPool2dOpt o, const TdSite *site)
{
  const TdPoolAttrs attrs = td__pool_attrs_2d (&o);

  return apply (&td__max_pooling_2d_class, &attrs, x, o.indices, site);
}

TdVar *
td_max_pooling_2d_ (TdVar *x, const TdPool2dOpt *options)
{
  const TdPool2dOpt defaults = { TD_MAX_POOL_2D_DEFAULTS };

  return td_max_pooling_2d_at (x, options != NULL ? *options : defaults, NULL);
}

#define FUNCTIONS(name, ndim)                                                                  \
  TdVar *td_max_pooling_##name##_at (TdVar *x, TdPoolNdOpt o, const TdSite *site)              \
  {                                                                                            \
    const TdPoolAttrs attrs = td__pool_attrs_nd (&o, ndim, x);                                 \
                                                                                               \
    return apply (&td__max_pooling_nd_class, &attrs, x, o.indices, site);                      \
  }                                                                                            \
  TdVar *td_max_pooling_##name##_ (TdVar *x, const TdPoolNdOpt *options)                       \
  {                                                                                            \
    const TdPoolNdOpt defaults = { TD_MAX_POOL_ND_DEFAULTS };                                  \
                                                                                               \
    return td_max_pooling_##name##_at (x, options != NULL ? *options : defaults, NULL);        \
  }
FUNCTIONS (nd, 0)
FUNCTIONS (1d, 1)
FUNCTIONS (3d, 3)
