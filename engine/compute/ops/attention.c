/* Scaled dot-product attention: one operation that keeps no matrix of weights, and the same
 * from products and softmax.  Output 1, the logarithm of each query's sum, is for backward
 * only.
 *
 * SPDX-License-Identifier: MIT */
#include "compose.h"
#include "layers.h"

#include <math.h>

typedef struct
{
  double scale;
  int64_t mask_every;
  bool causal;
  char zero[7]; /* no padding: recordings compare the bytes */
} Attrs;

static const TdAttr attr_table[] = {
  { "scale", TD_ATTR_DOUBLE, offsetof (Attrs, scale), 0, 0, "0" },
  { "causal", TD_ATTR_BOOL, offsetof (Attrs, causal), 0, 0, "false" },
  { "mask_every", TD_ATTR_U64, offsetof (Attrs, mask_every), 0, 0, "1" },
};
static const char *const names[] = { "q", "k", "v", "mask" };
static const char *const grad_names[] = { "q", "k", "v", "gy", "y", "log_sum", "mask" };

/* Scores below every other, and still finite: exp of it is 0, and it has no NaN in sums. */
#define HIDDEN (-1e30)
#define HIDDEN_F16 (-6e4)

static double
scale_of (const Attrs *a, const TdShape *q)
{
  return a->scale != 0 ? a->scale : 1 / sqrt ((double)(q->dim[2] > 0 ? q->dim[2] : 1));
}

static TdAttention
kernel_attrs (const TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdShape *q = call->in[0].shape, *k = call->in[1].shape, *v = call->in[2].shape;

  return (TdAttention){ .batch = q->dim[0],
                        .n_q = q->dim[1],
                        .n_k = k->dim[1],
                        .d = q->dim[2],
                        .d_v = v->dim[2],
                        .mask_every = a->mask_every > 0 ? a->mask_every : 1,
                        .scale = scale_of (a, q),
                        .causal = a->causal };
}

/* Halves are too short for the logarithm of a sum, of which backward makes the weights. */
static TdDtype
log_sum_dtype (const TdOpCall *call)
{
  return call->in[0].dtype == TD_F64 ? TD_F64 : TD_F32;
}

/* Check q, k, v, and the mask that may be input i. */
static TdStatus
check (const TdOpCall *call, int i)
{
  const Attrs *a = call->attrs;
  const TdShape *q = call->in[0].shape, *mask;
  const uint32_t log_sum = i == 6 ? 1u << 5 : 0;
  TdStatus status = td__check_floats (call, (call->n_in > i ? ~0u : (1u << i) - 1) & ~log_sum);

  for (int k = 0; status == TD_OK && k < 3; k++)
    status = td__check_ndim (call, k, 3);
  for (int k = 1; status == TD_OK && k < 3; k++)
    status = td__check_sizes (call, 0, 0, k, 0);
  if (status == TD_OK)
    status = td__check_sizes (call, 0, 2, 1, 2);
  if (status == TD_OK)
    status = td__check_sizes (call, 1, 1, 2, 1);
  if (status != TD_OK || call->n_in == i)
    return status;
  status = td__check_ndim (call, i, 3);
  if (status == TD_OK)
    status = td__check_sizes (call, i, 1, 0, 1);
  if (status == TD_OK)
    status = td__check_sizes (call, i, 2, 1, 1);
  mask = call->in[i].shape;
  if (status == TD_OK
      && (a->mask_every < 1 || mask->dim[0] != (q->dim[0] + a->mask_every - 1) / a->mask_every))
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "a mask for every %lld of q.shape[0] expected",
                                (long long)a->mask_every);
  return status;
}

static TdStatus
infer (TdOpCall *call)
{
  const TdShape *q = call->in[0].shape, *v = call->in[2].shape;
  TdStatus status = check (call, 3);

  if (status == TD_OK)
    status
        = td_op_out (call, 0, call->in[0].dtype, &TD_SHAPE (q->dim[0], q->dim[1], v->dim[2]));
  return status != TD_OK
             ? status
             : td_op_out (call, 1, log_sum_dtype (call), &TD_SHAPE (q->dim[0], q->dim[1]));
}

static TdStatus
forward (TdOpCall *call)
{
  const TdAttention a = kernel_attrs (call);

  return call->device->ops->attention (call->device, TD_ATTENTION, &a, call->in, call->n_in,
                                       call->out, 2);
}

static TdStatus
backward (TdBackward *b)
{
  TdVar *in[7], *gx[3];
  int n = 0;
  TdStatus status;

  if (b->gy[0] == NULL)
    return TD_OK;
  for (; n < 3; n++)
    in[n] = td_backward_input (b, n);
  in[n++] = b->gy[0];
  in[n++] = td_backward_output (b, 0);
  in[n++] = td_backward_output (b, 1);
  if (b->n_in == 4)
    in[n++] = td_backward_input (b, 3);
  status = td_apply (&td__scaled_dot_product_attention_grad_class, b->attrs, in, n, gx, 3);
  for (int i = 0; i < 3; i++)
    if (td_backward_needs (b, i))
      b->gx[i] = gx[i];
  return status;
}

const TdOpClass td__scaled_dot_product_attention_class = {
  .name = "scaled_dot_product_attention",
  .label = "ScaledDotProductAttention",
  .group = "attention",
  .formula = "softmax (scale q k^T) v",
  .n_in_min = 3,
  .n_in_max = 4,
  .n_out = 2,
  .retain_in = 15,
  .retain_out = 3,
  .no_grad_in = 8,
  .in_names = names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = 3,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

static TdStatus
grad_infer (TdOpCall *call)
{
  TdStatus status = check (call, 6);

  if (status == TD_OK && call->in[5].dtype != log_sum_dtype (call))
    return td_op_fail_operands (call, TD_ERR_DTYPE, "log_sum.dtype == %s expected, got %s",
                                td_dtype_name (log_sum_dtype (call)),
                                td_dtype_name (call->in[5].dtype));
  if (status == TD_OK)
    status = td__check_same_shape (call, 3, 4);
  for (int i = 0; status == TD_OK && i < 2; i++)
    status = td__check_sizes (call, 3, i, 0, i);
  if (status == TD_OK)
    status = td__check_sizes (call, 3, 2, 2, 2);
  for (int i = 0; status == TD_OK && i < 3; i++)
    status = td__out_like (call, i, i);
  return status;
}

static TdStatus
grad_forward (TdOpCall *call)
{
  const TdAttention a = kernel_attrs (call);

  return call->device->ops->attention (call->device, TD_ATTENTION_GRAD, &a, call->in,
                                       call->n_in, call->out, 3);
}

/* --- from other operations --- */

/* 0, 1 ... n - 1 on v's device; in floats where v is in halves, which count to 256 at least, in
 * whole numbers where it is of a dtype that does not count. */
static TdVar *
range_like (TdVar *v, int64_t n)
{
  TdEngine *e = &td__engine;
  TdDevice *outer = e->device;
  const TdDtype dtype = td_dtype (v);
  TdVar *r;

  if (td_poisoned (v)) /* of an input that was lost */
    return v;
  e->device = v->node->device;
  r = td_arange (td__is_number (dtype) ? td__moments_dtype (dtype) : TD_I32, 0, (double)n, 1);
  e->device = outer;
  return r;
}

static TdVar *
causal_mask (TdVar *like, int64_t n_q, int64_t n_k)
{
  TdVar *rows = td_add_scalar (range_like (like, n_q), (double)(n_k - n_q));
  TdVar *sees = td__apply2 (&td__greater_equal_class, NULL, NULL,
                            td_reshape (rows, TD_SHAPE (n_q, 1)), range_like (like, n_k));

  return td__in_dtype (sees, td_dtype (like));
}

/* 1 where a query of (B, n_q, n_k) may look, 0 elsewhere; NULL: everywhere. */
static TdVar *
seen (const Attrs *a, TdVar *q, TdVar *k, TdVar *mask)
{
  const int64_t batch = td_shape (q).dim[0], n_q = td_shape (q).dim[1],
                n_k = td_shape (k).dim[1];
  TdVar *both = a->causal ? causal_mask (q, n_q, n_k) : NULL, *ones;

  if (mask == NULL)
    return both;
  ones = td_where (mask, td__number_like (q, 1), td__number_like (q, 0));
  if (a->mask_every > 1 && td_shape (mask).dim[0] > 1)
    {
      const int64_t n = td_shape (mask).dim[0];

      ones = td_broadcast_to (td_reshape (ones, TD_SHAPE (n, 1, n_q, n_k)),
                              TD_SHAPE (n, a->mask_every, n_q, n_k));
      ones = td_reshape (ones, TD_SHAPE (batch, n_q, n_k));
    }
  return both == NULL ? ones : td_mul (ones, both);
}

/* All weights (B, n_q, n_k). */
static TdVar *
weights (const Attrs *a, TdVar *q, TdVar *k, TdVar *mask)
{
  const TdShape shape = td_shape (q);
  const TdSoftmaxOpt last = { .axis = 2 };
  TdVar *s = td_mul_scalar (td_batch_matmul (q, k, false, true), scale_of (a, &shape));
  TdVar *m = seen (a, q, k, mask);

  if (m == NULL)
    return td_softmax_ (s, &last);
  s = td_where (m, s, td__number_like (s, td_dtype (s) == TD_F16 ? HIDDEN_F16 : HIDDEN));
  return td_mul (td_softmax_ (s, &last), m); /* rows that see nothing: zeros, not even shares */
}

/* P gp of each row's softmax: P (g - sum (P g)). */
static TdVar *
through_softmax (TdVar *P, TdVar *g)
{
  const TdSoftmaxAttrs last = { 2 };

  return td__apply2 (&td__softmax_grad_class, &last, NULL, P, g);
}

static TdVar *
or_zeros (TdVar *g, TdVar *like)
{
  return g != NULL ? g : td_zeros_like (like);
}

/* With P = softmax (c q k^T), gP = gy v^T, r = sum (P gP), gS = P (gP - r):
 *   gq = c gS k, gk = c gS^T q, gv = P^T gy.
 * a, b, w are the gradients of these; E that of gS, G that of gP, F that of P, S that of the
 * scores.  P is computed anew, as a function of q and k, so that higher gradients are right
 * too. */
static TdStatus
grad_backward (TdBackward *b)
{
  const int last = 2;
  const Attrs *attrs = b->attrs;
  TdVar *q = td_backward_input (b, 0), *k = td_backward_input (b, 1);
  TdVar *v = td_backward_input (b, 2), *gy = td_backward_input (b, 3);
  TdVar *mask = b->n_in == 7 ? td_backward_input (b, 6) : NULL;
  TdVar *ga = or_zeros (b->gy[0], q), *gb = or_zeros (b->gy[1], k), *w = or_zeros (b->gy[2], v);
  const TdShape shape = td_shape (q);
  const double c = scale_of (attrs, &shape);
  TdVar *P = weights (attrs, q, k, mask), *gP = td_batch_matmul (gy, v, false, true);
  TdVar *gS = through_softmax (P, gP);
  TdVar *E = td_mul_scalar (
      td_add (td_batch_matmul (ga, k, false, true), td_batch_matmul (q, gb, false, true)), c);
  TdVar *G = through_softmax (P, E);
  TdVar *r = td_sum_axes (td_mul (P, gP), &last, 1, true);
  TdVar *PE = td_sum_axes (td_mul (P, E), &last, 1, true);
  TdVar *F = td_add (td_sub (td_mul (E, td_sub (gP, r)), td_mul (gP, PE)),
                     td_batch_matmul (gy, w, false, true));
  TdVar *S = through_softmax (P, F);

  if (td_backward_needs (b, 0))
    b->gx[0] = td_mul_scalar (
        td_add (td_batch_matmul (S, k, false, false), td_batch_matmul (gS, gb, false, false)),
        c);
  if (td_backward_needs (b, 1))
    b->gx[1] = td_mul_scalar (
        td_add (td_batch_matmul (S, q, true, false), td_batch_matmul (gS, ga, true, false)), c);
  if (td_backward_needs (b, 2))
    b->gx[2] = td_batch_matmul (G, gy, true, false);
  if (td_backward_needs (b, 3))
    b->gx[3]
        = td_add (td_batch_matmul (P, w, false, false), td_batch_matmul (G, v, false, false));
  return TD_OK;
}

const TdOpClass td__scaled_dot_product_attention_grad_class = {
  .name = "scaled_dot_product_attention_grad",
  .label = "ScaledDotProductAttentionGrad",
  .group = "attention",
  .formula = "gradients of q, k and v; the weights are made again",
  .n_in_min = 6,
  .n_in_max = 7,
  .n_out = 3,
  .retain_in = 15 | 64,
  .no_grad_in = 16 | 32 | 64,
  .in_names = grad_names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = 3,
  .infer = grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

/* --- calls --- */

/* Batches and heads in one axis. */
static TdVar *
merge_heads (TdVar *v)
{
  const TdShape s = td_shape (v);

  return td_reshape (v, TD_SHAPE (s.dim[0] * s.dim[1], s.dim[2], s.dim[3]));
}

static TdVar *
run (TdVar *q, TdVar *k, TdVar *v, TdVar *mask, const Attrs *a, bool composed)
{
  TdVar *in[] = { q, k, v, mask }, *out[2];

  if (composed)
    return td_batch_matmul (weights (a, q, k, mask), v, false, false);
  td_apply (&td__scaled_dot_product_attention_class, a, in, mask != NULL ? 4 : 3, out, 2);
  return out[0];
}

static TdVar *
attention (TdVar *q, TdVar *k, TdVar *v, const TdAttentionOpt *o)
{
  Attrs a = { o->scale, 1, o->causal, { 0 } };
  TdVar *const given[] = { q, k, v, o->mask };
  TdVar *mask = o->mask;
  TdShape shape;
  int ndim;

  for (int i = 0; i < (mask != NULL ? 4 : 3); i++)
    if (!td__var_usable (given[i], "scaled_dot_product_attention", NULL))
      return td__poison ();
  shape = td_shape (q);
  ndim = shape.ndim;
  if ((ndim != 3 && ndim != 4) || td_ndim (k) != ndim || td_ndim (v) != ndim)
    {
      td__fail (TD_ERR_SHAPE, "scaled_dot_product_attention", NULL,
                "q, k and v of 3 axes, or 4 with heads, expected, got %d, %d and %d", ndim,
                td_ndim (k), td_ndim (v));
      return td__poison ();
    }
  if (mask != NULL)
    {
      const TdShape m = td_shape (mask);

      if (td_dtype (mask) != td_dtype (q)) /* the operation reads it as what it computes in */
        mask = td_where (mask, td__number_like (q, 1), td__number_like (q, 0));
      if (m.ndim == 2)
        {
          a.mask_every = shape.dim[0] * (ndim == 4 ? shape.dim[1] : 1);
          mask = td_expand_dims (mask, 0);
        }
      else if (m.ndim == 3 && ndim == 4)
        a.mask_every = shape.dim[1];
      else if (m.ndim == 4)
        mask = merge_heads (mask);
      if (a.mask_every < 1)
        a.mask_every = 1;
    }
  if (ndim == 3)
    return run (q, k, v, mask, &a, o->composed);
  q = run (merge_heads (q), merge_heads (k), merge_heads (v), mask, &a, o->composed);
  if (td_poisoned (q))
    return q;
  return td_reshape (q,
                     TD_SHAPE (shape.dim[0], shape.dim[1], shape.dim[2], td_shape (q).dim[2]));
}

TdVar *
td_scaled_dot_product_attention_at (TdVar *q, TdVar *k, TdVar *v, TdAttentionOpt options,
                                    const TdSite *site)
{
  const TdSite *outer = td__at (site);
  TdVar *y = attention (q, k, v, &options);

  td__at_end (outer);
  return y;
}

TdVar *
td_scaled_dot_product_attention_ (TdVar *q, TdVar *k, TdVar *v, const TdAttentionOpt *options)
{
  const TdAttentionOpt defaults = { TD_ATTENTION_DEFAULTS };

  return td_scaled_dot_product_attention_at (q, k, v, options != NULL ? *options : defaults,
                                             NULL);
}

TdVar *
td_causal_mask_at (TdDtype dtype, int64_t n_q, int64_t n_k, const TdSite *site)
{
  const TdSite *outer = td__at (site);
  TdVar *like = td_zeros (dtype, TD_SCALAR),
        *mask = td_poisoned (like) ? like : causal_mask (like, n_q, n_k);

  td__at_end (outer);
  return mask;
}

TdVar *
td_causal_mask (TdDtype dtype, int64_t n_q, int64_t n_k)
{
  return td_causal_mask_at (dtype, n_q, n_k, NULL);
}
