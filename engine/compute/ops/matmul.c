/* Matrix products: of two matrices, and of two stacks of them.  Both are their own gradients.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

static const TdAttr attrs[] = {
  { "transa", TD_ATTR_BOOL, offsetof (TdMatmulAttrs, ta), 0, 0, "false" },
  { "transb", TD_ATTR_BOOL, offsetof (TdMatmulAttrs, tb), 0, 0, "false" },
};

/* Matrices are the last two axes; stacks have one axis before them. */
static TdStatus
infer (TdOpCall *call, int ndim)
{
  const TdMatmulAttrs *a = call->attrs;
  const int rows = ndim - 2, columns = ndim - 1;
  const TdShape *x = call->in[0].shape, *y = call->in[1].shape;
  TdShape shape = *x;
  TdStatus status = td__check_floats (call, 3);

  for (int i = 0; status == TD_OK && i < 2; i++)
    status = td__check_ndim (call, i, ndim);
  if (status == TD_OK && ndim == 3)
    status = td__check_sizes (call, 0, 0, 1, 0);
  if (status == TD_OK)
    status = td__check_sizes (call, 0, a->ta ? rows : columns, 1, a->tb ? columns : rows);
  if (status != TD_OK)
    return status;
  shape.dim[rows] = x->dim[a->ta ? columns : rows];
  shape.dim[columns] = y->dim[a->tb ? rows : columns];
  return td_op_out (call, 0, call->in[0].dtype, &shape);
}

static TdStatus
matmul_infer (TdOpCall *call)
{
  return infer (call, 2);
}

static TdStatus
batch_matmul_infer (TdOpCall *call)
{
  return infer (call, 3);
}

static TdStatus
forward (TdOpCall *call)
{
  const TdMatmulAttrs *a = call->attrs;
  const int ndim = call->out[0].shape->ndim;
  const int64_t *x = call->in[0].shape->dim + ndim - 2, *y = call->out[0].shape->dim + ndim - 2;
  const TdGemm g = { .ta = a->ta,
                     .tb = a->tb,
                     .m = y[0],
                     .n = y[1],
                     .k = a->ta ? x[0] : x[1],
                     .batch = ndim == 3 ? call->out[0].shape->dim[0] : 1,
                     .stride_a = x[0] * x[1],
                     .stride_b = (a->ta ? x[0] : x[1]) * y[1],
                     .stride_c = y[0] * y[1],
                     .alpha = 1,
                     .beta = call->accumulate ? 1 : 0,
                     .end = call->end != NULL ? *call->end : (TdProductEnd){ 0 } };

  return call->device->ops->gemm (call->device, &g, &call->in[0], &call->in[1], &call->out[0]);
}

static TdVar *
multiply (const TdOpClass *cls, TdVar *a, TdVar *b, bool ta, bool tb, const TdSite *site)
{
  const TdMatmulAttrs attr = { ta, tb };

  return td__apply2 (cls, &attr, site, a, b);
}

/* C = op (A) op (B): the gradients are products of C's with the other operand. */
static TdStatus
backward (TdBackward *b)
{
  const TdMatmulAttrs *t = b->attrs;

  if (td_backward_needs (b, 0))
    {
      TdVar *y = td_backward_input (b, 1);

      td_backward_into (b, 0);
      b->gx[0] = t->ta ? multiply (b->cls, y, b->gy[0], t->tb, true, NULL)
                       : multiply (b->cls, b->gy[0], y, false, !t->tb, NULL);
    }
  if (td_backward_needs (b, 1))
    {
      TdVar *x = td_backward_input (b, 0);

      td_backward_into (b, 1);
      b->gx[1] = t->tb ? multiply (b->cls, b->gy[0], x, true, t->ta, NULL)
                       : multiply (b->cls, x, b->gy[0], !t->ta, false, NULL);
    }
  return TD_OK;
}

const TdOpClass td__matmul_class = {
  .name = "matmul",
  .label = "MatMul",
  .group = "math",
  .formula = "op (a) op (b)",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .flags = TD_OP_ACCUMULATES | TD_OP_ENDS,
  .retain_in = 3,
  .in_names = td__names_ab,
  .attrs_size = sizeof (TdMatmulAttrs),
  .attrs = attrs,
  .n_attrs = 2,
  .infer = matmul_infer,
  .forward = forward,
  .backward = backward,
};

const TdOpClass td__batch_matmul_class = {
  .name = "batch_matmul",
  .label = "MatMul",
  .group = "math",
  .formula = "op (a[i]) op (b[i])",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .flags = TD_OP_ACCUMULATES,
  .retain_in = 3,
  .in_names = td__names_ab,
  .attrs_size = sizeof (TdMatmulAttrs),
  .attrs = attrs,
  .n_attrs = 2,
  .infer = batch_matmul_infer,
  .forward = forward,
  .backward = backward,
};

TdVar *
td_matmul_at (TdVar *a, TdVar *b, bool ta, bool tb, const TdSite *site)
{
  if (td_ndim (a) != 2 || td_ndim (b) != 2)
    return td__matmul_nd (a, b, ta, tb, site);
  return multiply (&td__matmul_class, a, b, ta, tb, site);
}

TdVar *
td_matmul (TdVar *a, TdVar *b, bool ta, bool tb)
{
  return td_matmul_at (a, b, ta, tb, NULL);
}

TdVar *
td_batch_matmul_at (TdVar *a, TdVar *b, bool ta, bool tb, const TdSite *site)
{
  return multiply (&td__batch_matmul_class, a, b, ta, tb, site);
}

TdVar *
td_batch_matmul (TdVar *a, TdVar *b, bool ta, bool tb)
{
  return multiply (&td__batch_matmul_class, a, b, ta, tb, NULL);
}
