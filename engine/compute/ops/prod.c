/* Product over axes.
 *
 * Its gradient is the product of the others.  Where gradients get no graph it comes from
 * dividing, with zeros counted: one pass, no more memory than x.  With double backprop it is
 * built as Chainer builds it, the product of x with one element after the other left out, which
 * needs n times the memory but has all derivatives, also at zeros.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

static TdStatus
prod_forward (TdOpCall *call)
{
  return call->device->ops->reduce (call->device, TD_REDUCE_PROD,
                                    td__reduce_mask (call->attrs, call->in[0].shape->ndim),
                                    &call->in[0], &call->out[0], false);
}

/* The product of the others is P / x without zeros; with one zero it is P there and 0
 * elsewhere; with more it is 0.  P: the product of what is not 0. */
static TdVar *
others_by_division (TdVar *x, const TdReduceAttrs *a)
{
  TdVar *zero = td__number_like (x, 0), *one = td__number_like (x, 1);
  TdVar *is_zero = td__equal (x, zero);
  TdVar *filled = td_where (is_zero, one, x);
  TdVar *p = td__reduce (&td__prod_class, filled, a->axes, a->n_axes, true, NULL);
  TdVar *n_zero = td__reduce (&td__sum_class, is_zero, a->axes, a->n_axes, true, NULL);
  /* Zeros elsewhere than here: none if I am the only one. */
  TdVar *elsewhere = td_sub (n_zero, is_zero);

  return td_where (elsewhere, zero, td_div (p, filled));
}

/* x as (kept..., n) -> (kept..., n, n) with 1 on the diagonal, product over the last axis. */
static TdVar *
others_by_omission (TdVar *x, const TdReduceAttrs *a)
{
  TdShape shape = td_shape (x), flat = { 0 }, eye_shape, back;
  int order[TD_MAX_DIMS], inverse[TD_MAX_DIMS], n_kept = 0, at = 0, last;
  uint32_t mask = td__reduce_mask (a, shape.ndim);
  int64_t n = 1;
  TdVar *moved, *index, *eye, *product;

  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < shape.ndim; i++)
      if ((int)(mask >> i & 1) == pass)
        order[at++] = i;
  back.ndim = shape.ndim;
  for (int i = 0; i < shape.ndim; i++)
    {
      inverse[order[i]] = i;
      back.dim[i] = shape.dim[order[i]];
      if (mask >> order[i] & 1)
        n *= shape.dim[order[i]];
      else
        flat.dim[n_kept++] = shape.dim[order[i]];
    }
  moved = td_transpose (x, order);
  flat.ndim = n_kept + 2;
  flat.dim[n_kept] = 1;
  flat.dim[n_kept + 1] = n;
  moved = td_reshape (moved, flat);
  index = td_arange (TD_I64, 0, (double)n, 1);
  if (index->node->device != x->node->device)
    index = td_to_device (index, x->node->device);
  eye_shape = TD_SHAPE (n, 1);
  eye = td__equal (td_reshape (index, eye_shape), index);
  last = n_kept + 1;
  product = td_prod_axes (td_where (eye, td__number_like (x, 1), moved), &last, 1, false);
  return td_transpose (td_reshape (product, back), inverse);
}

static TdStatus
prod_backward (TdBackward *b)
{
  TdVar *x = td_backward_input (b, 0), *gy = td__reduce_unsqueeze (b, b->gy[0]);
  const TdShape *shape = td_backward_in_shape (b, 0);
  bool exact = td_config ()->enable_backprop && shape->ndim <= TD_MAX_DIMS - 2;

  if (td_poisoned (x))
    return TD_OK;
  b->gx[0] = td_mul (gy, exact ? others_by_omission (x, b->attrs)
                               : others_by_division (x, b->attrs));
  return TD_OK;
}

const TdOpClass td__prod_class = {
  .name = "prod",
  .label = "Prod",
  .group = "math",
  .formula = "product of x over axis",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .retain_in = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (TdReduceAttrs),
  .attrs = td__reduce_attrs,
  .n_attrs = 2,
  .infer = td__infer_reduce,
  .forward = prod_forward,
  .backward = prod_backward,
};

TD_OP_FUNCTIONS_REDUCE (prod)
