/* x[i, t[i]] for each row i, and its gradient, which adds into zeros.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"
#include "../core/async-index.h"

typedef struct
{
  int64_t n_columns; /* of x, for the gradient */
} SelectGradAttrs;

static const TdAttr select_grad_attrs[]
    = { { "n_columns", TD_ATTR_U64, offsetof (SelectGradAttrs, n_columns), 0, 0, NULL } };

static const char *const names_xt[] = { "x", "t" };
static const char *const names_tgy[] = { "t", "gy" };

static bool
is_index (TdDtype dtype)
{
  return dtype == TD_I32 || dtype == TD_I64 || dtype == TD_U8;
}

static TdStatus
select_infer (TdOpCall *call)
{
  const TdShape *x = call->in[0].shape, *t = call->in[1].shape;

  if (!is_index (call->in[1].dtype))
    return td_op_fail_operands (call, TD_ERR_DTYPE, "an integer t expected");
  if (x->ndim != 2 || t->ndim != 1)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.ndim == 2 and t.ndim == 1 expected");
  if (x->dim[0] != t->dim[0])
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.shape[0] == t.shape[0] expected");
  return td_op_out (call, 0, call->in[0].dtype, t);
}

/* Workspace: row i's place i * columns + t[i] in x, checked. */
static TdStatus
places (TdOpCall *call, int operand, int64_t columns, TdTensor *index)
{
  const TdTensor *t = &call->in[operand];
  const TdDeviceOps *ops = call->device->ops;
  size_t bytes = (size_t)t->size * sizeof (int64_t);
  char *room = td_op_workspace (call, 2 * bytes);
  TdTensor wide;
  TdStatus status;

  if (room == NULL)
    return TD_ERR_MEMORY;
  *index = wide = (TdTensor){ room, t->shape, t->size, TD_I64 };
  wide.data = room + bytes;
  status = td__index_check (call, operand, columns, INT64_MIN);
  if (status == TD_OK)
    status = ops->arange (call->device, index, 0, (double)columns);
  if (status == TD_OK)
    status = ops->cast (call->device, t, &wide);
  if (status == TD_OK)
    status = ops->binary (call->device, TD_BINARY_ADD, index, &wide, index, false);
  return status;
}

static TdStatus
select_forward (TdOpCall *call)
{
  TdTensor index;
  TdStatus status = places (call, 1, call->in[0].shape->dim[1], &index);

  return status != TD_OK ? status
                         : call->device->ops->gather_rows (call->device, &call->in[0], &index,
                                                           &call->out[0]);
}

static TdStatus
select_backward (TdBackward *b)
{
  const SelectGradAttrs attrs = { td_backward_in_shape (b, 0)->dim[1] };

  b->gx[0] = td__apply2 (&td__select_item_grad_class, &attrs, NULL, td_backward_input (b, 1),
                         b->gy[0]);
  return TD_OK;
}

const TdOpClass td__select_item_class = {
  .name = "select_item",
  .label = "SelectItem",
  .group = "array",
  .formula = "y[i] = x[i, t[i]]",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .retain_in = 2,
  .no_grad_in = 2,
  .in_names = names_xt,
  .infer = select_infer,
  .forward = select_forward,
  .backward = select_backward,
};

static TdStatus
select_grad_infer (TdOpCall *call)
{
  const TdShape *t = call->in[0].shape;
  int64_t n_columns = ((const SelectGradAttrs *)call->attrs)->n_columns;
  TdShape shape = TD_SHAPE (t->dim[0], n_columns);

  if (!is_index (call->in[0].dtype) || t->ndim != 1 || !td_shape_equal (t, call->in[1].shape))
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "t of integers and gy of one shape (n) expected");
  return td_op_out (call, 0, call->in[1].dtype, &shape);
}

static TdStatus
select_grad_forward (TdOpCall *call)
{
  TdTensor *gx = &call->out[0];
  TdTensor index;
  TdStatus status = call->device->ops->zero (call->device, gx->data,
                                             (size_t)gx->size * td_dtype_bytes (gx->dtype));

  if (status == TD_OK)
    status = places (call, 0, gx->shape->dim[1], &index);
  if (status == TD_OK)
    status = call->device->ops->scatter_rows_add (call->device, &index, &call->in[1], gx);
  return status;
}

static TdStatus
select_grad_backward (TdBackward *b)
{
  b->gx[1] = td_select_item (b->gy[0], td_backward_input (b, 0));
  return TD_OK;
}

const TdOpClass td__select_item_grad_class = {
  .name = "select_item_grad",
  .label = "SelectItemGrad",
  .group = "array",
  .formula = "zeros, gx[i, t[i]] = gy[i]",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .retain_in = 1,
  .no_grad_in = 1,
  .in_names = names_tgy,
  .attrs_size = sizeof (SelectGradAttrs),
  .attrs = select_grad_attrs,
  .n_attrs = 1,
  .infer = select_grad_infer,
  .forward = select_grad_forward,
  .backward = select_grad_backward,
};

TdVar *
td_select_item_at (TdVar *x, TdVar *t, const TdSite *site)
{
  return td__apply2 (&td__select_item_class, NULL, site, x, t);
}

TdVar *
td_select_item (TdVar *x, TdVar *t)
{
  return td_select_item_at (x, t, NULL);
}
