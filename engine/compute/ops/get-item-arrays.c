/* Indexing with arrays of indices along neighbouring axes, its gradient, adding at such places,
 * and rows with a single one.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

#include <string.h>

enum
{
  MAX_ARRAYS = TD_MAX_DIMS
};

typedef struct
{
  int axis;      /* the first that is indexed */
  TdShape shape; /* of x, in the gradient */
} Attrs;

static const TdAttr axis_attrs[] = {
  { "axis", TD_ATTR_INT, offsetof (Attrs, axis), 0, 0, "0" },
};
static const TdAttr grad_attrs[] = {
  { "axis", TD_ATTR_INT, offsetof (Attrs, axis), 0, 0, "0" },
  { "shape", TD_ATTR_SHAPE, offsetof (Attrs, shape), 0, 0, NULL },
};
static const char *const names[]
    = { "x", "index", "index", "index", "index", "index", "index", "index", "index" };
static const char *const grad_names[]
    = { "gy", "index", "index", "index", "index", "index", "index", "index", "index" };
static const char *const add_names[]
    = { "a", "b", "index", "index", "index", "index", "index", "index", "index", "index" };

/* x of an operation whose inputs `first` ... are indices, and the shape that they pick. */
static TdStatus
picked (const TdOpCall *call, const TdShape *x, int first, TdShape *out)
{
  const int given = ((const Attrs *)call->attrs)->axis, axis = td__axis (given, x->ndim);
  const int n = call->n_in - first;
  const TdShape *index = call->in[first].shape;
  TdStatus status = TD_OK;

  if (axis < 0 || axis + n > x->ndim)
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "%d axes from axis %d on expected, there are %d", n, given,
                                x->ndim);
  for (int k = 0; status == TD_OK && k < n; k++)
    {
      status = td__check_integers (call, first + k);
      if (status == TD_OK)
        status = td__check_same_shape (call, first, first + k);
    }
  if (status == TD_OK && x->ndim - n + index->ndim > TD_MAX_DIMS)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "at most %d dimensions expected",
                                TD_MAX_DIMS);
  if (status != TD_OK)
    return status;
  *out = (TdShape){ 0 };
  for (int i = 0; i < axis; i++)
    out->dim[out->ndim++] = x->dim[i];
  for (int i = 0; i < index->ndim; i++)
    out->dim[out->ndim++] = index->dim[i];
  for (int i = axis + n; i < x->ndim; i++)
    out->dim[out->ndim++] = x->dim[i];
  return TD_OK;
}

/* Which rows of x, cut after the axes that are indexed, are picked: workspace of i64, checked.
 */
typedef struct
{
  TdShape all, column, line; /* (outer, n), (outer, 1), (1, n) */
  TdTensor rows;
} Places;

/* index[0] * dim ... + index[n - 1] into `sum`, each checked; `wide` is room for one of them.
 */
static TdStatus
add_indices (TdOpCall *call, const int64_t *dims, int first, TdTensor *sum, TdTensor *wide)
{
  const TdDeviceOps *ops = call->device->ops;
  TdStatus status = TD_OK;

  for (int k = 0; status == TD_OK && first + k < call->n_in; k++)
    {
      TdTensor index = call->in[first + k];

      index.shape = sum->shape;
      status = td__check_labels (call, first + k, dims[k], TD_NOT_A_LABEL);
      if (status == TD_OK)
        status = ops->cast (call->device, &index, k == 0 ? sum : wide);
      if (status == TD_OK && k > 0)
        status = ops->unary (call->device, TD_UNARY_MUL_SCALAR, (double)dims[k], 0, sum, sum);
      if (status == TD_OK && k > 0)
        status = ops->binary (call->device, TD_BINARY_ADD, sum, wide, sum, false);
    }
  return status;
}

static TdStatus
find_places (TdOpCall *call, const TdShape *x, int first, Places *p)
{
  const TdDeviceOps *ops = call->device->ops;
  const int axis = td__axis (((const Attrs *)call->attrs)->axis, x->ndim);
  const int64_t n = call->in[first].size;
  int64_t outer = 1, step = 1, *room;
  TdTensor line, wide, column;
  TdStatus status;

  for (int i = 0; i < axis; i++)
    outer *= x->dim[i];
  for (int i = axis; i < axis + call->n_in - first; i++)
    step *= x->dim[i];
  p->all = TD_SHAPE (outer, n);
  p->column = TD_SHAPE (outer, 1);
  p->line = TD_SHAPE (1, n);
  room = td_op_workspace (call, (size_t)(2 * n + outer + outer * n) * sizeof *room);
  if (room == NULL)
    return TD_ERR_MEMORY;
  line = (TdTensor){ room, &p->line, n, TD_I64 };
  wide = (TdTensor){ room + n, &p->line, n, TD_I64 };
  column = (TdTensor){ room + 2 * n, &p->column, outer, TD_I64 };
  p->rows = (TdTensor){ room + 2 * n + outer, &p->all, outer * n, TD_I64 };
  status = add_indices (call, x->dim + axis, first, &line, &wide);
  if (status == TD_OK && outer == 1)
    {
      p->rows = line;
      return TD_OK;
    }
  if (status == TD_OK)
    status = ops->arange (call->device, &column, 0, (double)step);
  if (status == TD_OK)
    status = ops->binary (call->device, TD_BINARY_ADD, &column, &line, &p->rows, false);
  return status;
}

/* --- x at places --- */

static TdStatus
infer (TdOpCall *call)
{
  TdShape out;
  const TdStatus status = picked (call, call->in[0].shape, 1, &out);

  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &out);
}

static TdStatus
forward (TdOpCall *call)
{
  Places p;
  TdStatus status;

  if (call->out[0].size == 0)
    return TD_OK;
  status = find_places (call, call->in[0].shape, 1, &p);
  return status != TD_OK ? status
                         : call->device->ops->gather_rows (call->device, &call->in[0], &p.rows,
                                                           &call->out[0]);
}

/* The class with `first` and then backward's indices, inputs `from` ... of b. */
static TdVar *
apply_indexed (TdBackward *b, const TdOpClass *cls, const Attrs *attrs, TdVar *first, int from)
{
  TdVar *in[1 + MAX_ARRAYS] = { first };
  const int n = b->n_in - from;

  for (int k = 0; k < n; k++)
    in[1 + k] = td_backward_input (b, from + k);
  return td__applyn (cls, attrs, NULL, in, 1 + n);
}

static TdStatus
backward (TdBackward *b)
{
  Attrs attrs = *(const Attrs *)b->attrs;

  attrs.shape = *td_backward_in_shape (b, 0);
  b->gx[0] = apply_indexed (b, &td__get_item_arrays_grad_class, &attrs, b->gy[0], 1);
  return TD_OK;
}

#define INDICES_1 (0x1FEu)
#define INDICES_2 (0x3FCu)

/* *Source*: chainer.functions.get_item with arrays. */
const TdOpClass td__get_item_arrays_class = {
  .name = "get_item_arrays",
  .label = "GetItem",
  .group = "array",
  .formula = "x[..., index, ...]",
  .n_in_min = 2,
  .n_in_max = 1 + MAX_ARRAYS,
  .n_out = 1,
  .retain_in = INDICES_1,
  .no_grad_in = INDICES_1,
  .in_names = names,
  .attrs_size = sizeof (Attrs),
  .attrs = axis_attrs,
  .n_attrs = 1,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

/* --- its gradient: added into zeros --- */

static TdStatus
grad_infer (TdOpCall *call)
{
  const TdShape *shape = &((const Attrs *)call->attrs)->shape;
  TdShape out;
  TdStatus status = picked (call, shape, 1, &out);

  if (status == TD_OK && !td_shape_equal (&out, call->in[0].shape))
    return td_op_fail_operands (call, TD_ERR_SHAPE, "gy of what the indices pick expected");
  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, shape);
}

/* y at the places += b. */
static TdStatus
add_at_places (TdOpCall *call, const TdTensor *b, int first)
{
  Places p;
  TdStatus status;

  if (b->size == 0)
    return TD_OK;
  status = find_places (call, call->out[0].shape, first, &p);
  return status != TD_OK
             ? status
             : call->device->ops->scatter_rows_add (call->device, &p.rows, b, &call->out[0]);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  TdTensor *gx = &call->out[0];
  const TdStatus status = call->device->ops->zero (
      call->device, gx->data, (size_t)gx->size * td_dtype_bytes (gx->dtype));

  return status != TD_OK ? status : add_at_places (call, &call->in[0], 1);
}

static TdStatus
grad_backward (TdBackward *b)
{
  b->gx[0] = apply_indexed (b, &td__get_item_arrays_class, b->attrs, b->gy[0], 1);
  return TD_OK;
}

const TdOpClass td__get_item_arrays_grad_class = {
  .name = "get_item_arrays_grad",
  .label = "GetItemGrad",
  .group = "array",
  .formula = "zeros, gx[..., index, ...] += gy",
  .n_in_min = 2,
  .n_in_max = 1 + MAX_ARRAYS,
  .n_out = 1,
  .retain_in = INDICES_1,
  .no_grad_in = INDICES_1,
  .in_names = grad_names,
  .attrs_size = sizeof (Attrs),
  .attrs = grad_attrs,
  .n_attrs = 2,
  .infer = grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

/* --- adding at places --- */

static TdStatus
add_infer (TdOpCall *call)
{
  TdShape out;
  TdStatus status = picked (call, call->in[0].shape, 2, &out);

  if (status == TD_OK && call->in[1].dtype != call->in[0].dtype)
    return td_op_fail_operands (call, TD_ERR_DTYPE, "a.dtype == b.dtype expected");
  if (status == TD_OK && !td_shape_equal (&out, call->in[1].shape))
    return td_op_fail_operands (call, TD_ERR_SHAPE, "b of what the indices pick expected");
  return status != TD_OK ? status : td__out_like (call, 0, 0);
}

static TdStatus
add_forward (TdOpCall *call)
{
  const TdTensor *a = &call->in[0];
  const TdStatus status = call->device->ops->copy (call->device, call->out[0].data, a->data,
                                                   (size_t)a->size * td_dtype_bytes (a->dtype));

  return status != TD_OK ? status : add_at_places (call, &call->in[1], 2);
}

static TdStatus
add_backward (TdBackward *b)
{
  b->gx[0] = b->gy[0];
  if (td_backward_needs (b, 1))
    b->gx[1] = apply_indexed (b, &td__get_item_arrays_class, b->attrs, b->gy[0], 2);
  return TD_OK;
}

/* *Source*: chainer.functions.scatter_add with arrays. */
const TdOpClass td__scatter_add_arrays_class = {
  .name = "scatter_add_arrays",
  .label = "ScatterAdd",
  .group = "array",
  .formula = "a, y[..., index, ...] += b",
  .n_in_min = 3,
  .n_in_max = 2 + MAX_ARRAYS,
  .n_out = 1,
  .retain_in = INDICES_2,
  .no_grad_in = INDICES_2,
  .in_names = add_names,
  .attrs_size = sizeof (Attrs),
  .attrs = axis_attrs,
  .n_attrs = 1,
  .infer = add_infer,
  .forward = add_forward,
  .backward = add_backward,
};

/* --- rows with a one --- */

typedef struct
{
  int n_classes, dtype;
} OneHotAttrs;

static const TdAttr one_hot_attrs[] = {
  { "n_classes", TD_ATTR_INT, offsetof (OneHotAttrs, n_classes), 0, 0, NULL },
  { "dtype", TD_ATTR_DTYPE, offsetof (OneHotAttrs, dtype), 0, 0, "f32" },
};
static const char *const names_t[] = { "t" };

static TdStatus
one_hot_infer (TdOpCall *call)
{
  const OneHotAttrs *a = call->attrs;
  TdShape shape = *call->in[0].shape;
  const TdStatus status = td__check_integers (call, 0);

  if (status != TD_OK)
    return status;
  if (a->n_classes < 1)
    return td_op_fail (call, TD_ERR_ARG, "n_classes >= 1 expected, got %d", a->n_classes);
  if (a->dtype != TD_F32 && a->dtype != TD_F64 && a->dtype != TD_I32 && a->dtype != TD_I64)
    return td_op_fail (call, TD_ERR_DTYPE, "f32, f64, i32 or i64 expected");
  if (shape.ndim == TD_MAX_DIMS)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "t.ndim < %d expected", TD_MAX_DIMS);
  shape.dim[shape.ndim++] = a->n_classes;
  return td_op_out (call, 0, (TdDtype)a->dtype, &shape);
}

static TdStatus
one_hot_forward (TdOpCall *call)
{
  const OneHotAttrs *a = call->attrs;
  const TdDeviceOps *ops = call->device->ops;
  TdDevice *d = call->device;
  TdTensor *y = &call->out[0];
  TdShape line = TD_SHAPE (call->in[0].size);
  TdTensor t = call->in[0], wide = { NULL, &line, t.size, TD_I64 }, place = wide, one = wide;
  TdStatus status = td__check_labels (call, 0, a->n_classes, TD_NOT_A_LABEL);

  t.shape = &line;
  one.dtype = y->dtype;
  wide.data = status == TD_OK
                  ? td_op_workspace (call, 3 * (size_t)(t.size + 1) * sizeof (int64_t))
                  : NULL;
  if (wide.data == NULL)
    return status != TD_OK ? status : TD_ERR_MEMORY;
  place.data = (int64_t *)wide.data + t.size;
  one.data = (int64_t *)place.data + t.size;
  status = ops->zero (d, y->data, (size_t)y->size * td_dtype_bytes (y->dtype));
  if (status == TD_OK)
    status = ops->cast (d, &t, &wide);
  if (status == TD_OK)
    status = ops->arange (d, &place, 0, a->n_classes);
  if (status == TD_OK)
    status = ops->binary (d, TD_BINARY_ADD, &place, &wide, &place, false);
  if (status == TD_OK)
    status = ops->fill (d, &one, 1);
  return status != TD_OK ? status : ops->scatter_rows_add (d, &place, &one, y);
}

const TdOpClass td__one_hot_class = {
  .name = "one_hot",
  .label = "OneHot",
  .group = "array",
  .formula = "y[..., t] = 1, else 0",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_NO_GRAD,
  .in_names = names_t,
  .attrs_size = sizeof (OneHotAttrs),
  .attrs = one_hot_attrs,
  .n_attrs = 2,
  .infer = one_hot_infer,
  .forward = one_hot_forward,
};

/* --- calls --- */

static bool
counts (int n, const char *op, const TdSite *site)
{
  if (n >= 1 && n <= MAX_ARRAYS)
    return true;
  td__fail (TD_ERR_ARG, op, site, "1 to %d arrays of indices expected, got %d", MAX_ARRAYS, n);
  return false;
}

TdVar *
td_get_item_arrays_at (TdVar *x, TdVar *const *indices, int n, int axis, const TdSite *site)
{
  TdVar *in[1 + MAX_ARRAYS] = { x };
  Attrs attrs;

  if (!counts (n, "get_item_arrays", site)
      || !td__list_there (indices, n, "get_item_arrays", site))
    return td__poison ();
  memset (&attrs, 0, sizeof attrs);
  attrs.axis = axis;
  memcpy (in + 1, indices, (size_t)n * sizeof *indices);
  return td__applyn (&td__get_item_arrays_class, &attrs, site, in, 1 + n);
}

TdVar *
td_get_item_arrays (TdVar *x, TdVar *const *indices, int n, int axis)
{
  return td_get_item_arrays_at (x, indices, n, axis, NULL);
}

TdVar *
td_scatter_add_arrays_at (TdVar *a, TdVar *const *indices, int n, int axis, TdVar *b,
                          const TdSite *site)
{
  TdVar *in[2 + MAX_ARRAYS] = { a, b };
  Attrs attrs;

  if (!counts (n, "scatter_add_arrays", site)
      || !td__list_there (indices, n, "scatter_add_arrays", site))
    return td__poison ();
  memset (&attrs, 0, sizeof attrs);
  attrs.axis = axis;
  memcpy (in + 2, indices, (size_t)n * sizeof *indices);
  return td__applyn (&td__scatter_add_arrays_class, &attrs, site, in, 2 + n);
}

TdVar *
td_scatter_add_arrays (TdVar *a, TdVar *const *indices, int n, int axis, TdVar *b)
{
  return td_scatter_add_arrays_at (a, indices, n, axis, b, NULL);
}

TdVar *
td_one_hot_at (TdVar *t, int n_classes, TdDtype dtype, const TdSite *site)
{
  const OneHotAttrs attrs = { n_classes, (int)dtype };

  return td__apply1 (&td__one_hot_class, &attrs, site, t);
}

TdVar *
td_one_hot (TdVar *t, int n_classes, TdDtype dtype)
{
  return td_one_hot_at (t, n_classes, dtype, NULL);
}
