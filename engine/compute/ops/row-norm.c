/* Normalisation of each row by its own moments: of layers (all of a row), of groups of
 * channels, and by the root mean square.  Outputs past the first, the mean and 1 / deviation of
 * each row, are for backward only.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

typedef struct
{
  double eps;
  int groups, zero; /* no padding: recordings compare the bytes */
} Attrs;

/* What a class normalises by. */
typedef enum
{
  LAYER,
  GROUP,
  RMS
} Kind;

static const TdAttr eps_attrs[] = {
  { "eps", TD_ATTR_DOUBLE, offsetof (Attrs, eps), 0, 0, "1e-05" },
};
static const TdAttr group_attrs[] = {
  { "groups", TD_ATTR_INT, offsetof (Attrs, groups), 0, 0, NULL },
  { "eps", TD_ATTR_DOUBLE, offsetof (Attrs, eps), 0, 0, "1e-05" },
};
static const char *const names[] = { "x", "gamma", "beta" };
static const char *const grad_names[] = { "x", "gamma", "gy", "mean", "inv_std" };
static const char *const rms_grad_names[] = { "x", "gamma", "gy", "inv_rms" };

/* x as (n, groups, channels, rest). */
static TdRowNorm
view (Kind kind, const Attrs *a, const TdShape *x)
{
  const int axis = kind == GROUP ? 1 : x->ndim - 1;
  TdRowNorm v = { .n = 1,
                  .groups = kind == GROUP ? a->groups : 1,
                  .channels = x->dim[axis],
                  .rest = 1,
                  .eps = a->eps,
                  .centred = kind != RMS };

  v.channels /= v.groups;
  for (int i = 0; i < axis; i++)
    v.n *= x->dim[i];
  for (int i = axis + 1; i < x->ndim; i++)
    v.rest *= x->dim[i];
  return v;
}

/* Check x, gamma and, from input 2 on, the vectors given; those in `like` have the dtype of x.
 * Make *v. */
static TdStatus
check (const TdOpCall *call, Kind kind, int n_vectors, uint32_t like, TdRowNorm *v)
{
  const Attrs *a = call->attrs;
  const TdShape *x = call->in[0].shape;
  TdStatus status = td__check_mixed (call, 31, like);

  if (status == TD_OK && x->ndim < 2)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.ndim >= 2 expected, got %d", x->ndim);
  for (int i = 1; status == TD_OK && i <= n_vectors; i++)
    status = td__check_vector (call, i, 0, kind == GROUP ? 1 : x->ndim - 1);
  if (status != TD_OK)
    return status;
  if (!(a->eps > 0))
    return td_op_fail (call, TD_ERR_ARG, "eps > 0 expected, got %g", a->eps);
  if (kind == GROUP && (a->groups < 1 || x->dim[1] % a->groups != 0))
    return td_op_fail_operands (
        call, TD_ERR_ARG, "groups >= 1 that divide x.shape[1] expected, got %d", a->groups);
  if (call->in[0].size == 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "an x that is not empty expected");
  *v = view (kind, a, x);
  return TD_OK;
}

static TdStatus
infer (TdOpCall *call, Kind kind)
{
  TdRowNorm v;
  TdStatus status = check (call, kind, call->n_in - 1, 1, &v);

  if (status == TD_OK)
    status = td__out_like (call, 0, 0);
  for (int i = 1; status == TD_OK && i < call->n_out; i++)
    status = td_op_out (call, i, td__moments_dtype (call->in[0].dtype),
                        &TD_SHAPE (v.n * v.groups));
  return status;
}

static TdStatus
grad_infer (TdOpCall *call, Kind kind)
{
  TdRowNorm v;
  TdStatus status = check (call, kind, 1, 1 | 4, &v);

  if (status == TD_OK)
    status = td__check_same_shape (call, 0, 2);
  for (int i = 3; status == TD_OK && i < call->n_in; i++)
    {
      status = td__check_ndim (call, i, 1);
      if (status == TD_OK && call->in[i].shape->dim[0] != v.n * v.groups)
        return td_op_fail_operands (call, TD_ERR_SHAPE, "%s of one number a row expected",
                                    call->cls->in_names[i]);
    }
  for (int i = 0; status == TD_OK && i < call->n_out; i++)
    status = td__out_like (call, i, i == 0 ? 0 : 1);
  return status;
}

static TdStatus
run (TdOpCall *call, Kind kind, TdRowNormKind kernel)
{
  TdRowNorm v = view (kind, call->attrs, call->in[0].shape);

  if (call->join != NULL)
    v.join = *call->join;
  return call->device->ops->row_norm (call->device, kernel, &v, call->in, call->n_in, call->out,
                                      call->n_out);
}

static TdStatus
backward (TdBackward *b, const TdOpClass *grad)
{
  TdVar *in[5], *gx[3];
  TdStatus status;

  if (b->gy[0] == NULL)
    return TD_OK;
  in[0] = td_backward_input (b, 0);
  in[1] = td_backward_input (b, 1);
  in[2] = b->gy[0];
  for (int i = 1; i < b->n_out; i++)
    in[2 + i] = td_backward_output (b, i);
  status = td_apply (grad, b->attrs, in, 2 + b->n_out, gx, b->n_in);
  for (int i = 0; i < b->n_in; i++)
    if (td_backward_needs (b, i))
      b->gx[i] = gx[i];
  return status;
}

static const int row_axes[] = { 2, 3 }, other_axes[] = { 0, 3 };

static TdVar *
row_mean (TdVar *v)
{
  return td_mean_axes (v, row_axes, 2, true);
}

/* v - its row's mean, if means are taken out. */
static TdVar *
centre (TdVar *v, bool centred)
{
  return centred ? td_sub (v, row_mean (v)) : v;
}

/* The gradient of the gradient.  With h = (x - mean) s, W gamma, p = gy W, A = mean (p h):
 * gx = s (p - mean (p) - h A), ggamma = sum (gy h), gbeta = sum (gy); v, vg, vb are the
 * gradients of these.  The operator on p is symmetric: q is the same of v.  Mean and s are
 * computed anew, as functions of x, so that higher gradients are right too.  Without centring
 * the means of p, v and of the gradient of h are left out. */
static TdStatus
grad_backward (TdBackward *b, Kind kind)
{
  const TdShape shape = *td_backward_in_shape (b, 0), vector = *td_backward_in_shape (b, 1);
  const TdRowNorm o = view (kind, b->attrs, &shape);
  const TdShape rows = TD_SHAPE (o.n, o.groups, o.channels, o.rest);
  const TdShape channels = TD_SHAPE (1, o.groups, o.channels, 1);
  const TdDtype dtype = td__moments_dtype (td_backward_in_dtype (b, 0));
  TdVar *x = td_reshape (td__in_dtype (td_backward_input (b, 0), dtype), rows);
  TdVar *W = td_reshape (td__in_dtype (td_backward_input (b, 1), dtype), channels);
  TdVar *gy = td_reshape (td__in_dtype (td_backward_input (b, 2), dtype), rows);
  TdVar *v = b->gy[0] != NULL ? td_reshape (td__in_dtype (b->gy[0], dtype), rows)
                              : td_zeros_like (x);
  TdVar *vg = b->gy[1] != NULL ? td_reshape (td__in_dtype (b->gy[1], dtype), channels)
                               : td_zeros_like (W);
  TdVar *xc = centre (x, o.centred);
  TdVar *s = td_pow_scalar (td_add_scalar (row_mean (td_square (xc)), o.eps), -0.5);
  TdVar *h = td_mul (xc, s), *p = td_mul (gy, W);
  TdVar *A = row_mean (td_mul (p, h)), *V = row_mean (td_mul (v, h));
  TdVar *inner = td_sub (centre (p, o.centred), td_mul (h, A));
  TdVar *q = td_mul (s, td_sub (centre (v, o.centred), td_mul (h, V)));

  if (td_backward_needs (b, 1))
    b->gx[1] = td_reshape (td_sum_axes (td_mul (q, gy), other_axes, 2, true), vector);
  if (td_backward_needs (b, 2))
    {
      TdVar *g = td_add (td_mul (q, W), td_mul (vg, h));

      if (b->n_out == 3 && b->gy[2] != NULL)
        g = td_add (g, td_reshape (td__in_dtype (b->gy[2], dtype), channels));
      b->gx[2] = td_reshape (g, shape);
    }
  if (td_backward_needs (b, 0))
    {
      /* of h, then through h = xc s; s also stands before the bracket in gx */
      TdVar *th = td_sub (td_mul (vg, gy), td_mul (s, td_add (td_mul (v, A), td_mul (p, V))));
      TdVar *of_s
          = td_add (row_mean (td_mul (th, h)), td_mul (s, row_mean (td_mul (v, inner))));

      b->gx[0]
          = td_reshape (td_mul (s, td_sub (centre (th, o.centred), td_mul (h, of_s))), shape);
    }
  for (int i = 0; i < 3; i++)
    if (b->gx[i] != NULL)
      b->gx[i] = td__in_dtype (b->gx[i], td_backward_in_dtype (b, i));
  return TD_OK;
}

#define CLASSES(op_name, op_label, text, KIND, vectors, grad_in, list)                         \
  static TdStatus op_name##_infer (TdOpCall *call)                                             \
  {                                                                                            \
    return infer (call, KIND);                                                                 \
  }                                                                                            \
  static TdStatus op_name##_forward (TdOpCall *call)                                           \
  {                                                                                            \
    return run (call, KIND, TD_ROW_NORM);                                                      \
  }                                                                                            \
  static TdStatus op_name##_backward (TdBackward *b)                                           \
  {                                                                                            \
    return backward (b, &td__##op_name##_grad_class);                                          \
  }                                                                                            \
  static TdStatus op_name##_grad_infer (TdOpCall *call)                                        \
  {                                                                                            \
    return grad_infer (call, KIND);                                                            \
  }                                                                                            \
  static TdStatus op_name##_grad_forward (TdOpCall *call)                                      \
  {                                                                                            \
    return run (call, KIND, TD_ROW_NORM_GRAD);                                                 \
  }                                                                                            \
  static TdStatus op_name##_grad_backward (TdBackward *b)                                      \
  {                                                                                            \
    return grad_backward (b, KIND);                                                            \
  }                                                                                            \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = "normalization",                                                                  \
    .formula = text,                                                                           \
    .n_in_min = 1 + vectors,                                                                   \
    .n_in_max = 1 + vectors,                                                                   \
    .n_out = 1 + vectors,                                                                      \
    .retain_in = 3,                                                                            \
    .retain_out = vectors == 2 ? 6 : 2,                                                        \
    .in_names = names,                                                                         \
    .attrs_size = sizeof (Attrs),                                                              \
    .attrs = list,                                                                             \
    .n_attrs = TD_ARRAY_LENGTH (list),                                                         \
    .infer = op_name##_infer,                                                                  \
    .forward = op_name##_forward,                                                              \
    .backward = op_name##_backward,                                                            \
  };                                                                                           \
  const TdOpClass td__##op_name##_grad_class = {                                               \
    .name = #op_name "_grad",                                                                  \
    .label = op_label "Grad",                                                                  \
    .group = "normalization",                                                                  \
    .formula = "the gradients of x, gamma and beta of " #op_name,                              \
    .n_in_min = 3 + vectors,                                                                   \
    .n_in_max = 3 + vectors,                                                                   \
    .n_out = 1 + vectors,                                                                      \
    .retain_in = 7,                                                                            \
    .no_grad_in = 8 | 16,                                                                      \
    .in_names = grad_in,                                                                       \
    .attrs_size = sizeof (Attrs),                                                              \
    .attrs = list,                                                                             \
    .n_attrs = TD_ARRAY_LENGTH (list),                                                         \
    .infer = op_name##_grad_infer,                                                             \
    .forward = op_name##_grad_forward,                                                         \
    .backward = op_name##_grad_backward,                                                       \
  };

/* *Source*: chainer.functions.layer_normalization. */
CLASSES (layer_normalization, "LayerNormalization", "(x - mean) / std gamma + beta, row by row",
         LAYER, 2, grad_names, eps_attrs)
/* *Source*: chainer.functions.group_normalization, which composes it. */
CLASSES (group_normalization, "GroupNormalization",
         "(x - mean) / std gamma + beta, by groups of channels", GROUP, 2, grad_names,
         group_attrs)
CLASSES (rms_normalization, "RMSNormalization", "x / rms gamma, row by row", RMS, 1,
         rms_grad_names, eps_attrs)

TdVar *
td_layer_normalization_at (TdVar *x, TdVar *gamma, TdVar *beta, TdNormOpt options,
                           const TdSite *site)
{
  const Attrs attrs = { options.eps, 1, 0 };
  TdVar *in[] = { x, gamma, beta }, *out[3];

  td__apply_at (&td__layer_normalization_class, &attrs, in, 3, out, 3, site);
  return out[0];
}

TdVar *
td_group_normalization_at (TdVar *x, int groups, TdVar *gamma, TdVar *beta, TdNormOpt options,
                           const TdSite *site)
{
  const Attrs attrs = { options.eps, groups, 0 };
  TdVar *in[] = { x, gamma, beta }, *out[3];

  td__apply_at (&td__group_normalization_class, &attrs, in, 3, out, 3, site);
  return out[0];
}

TdVar *
td_rms_normalization_at (TdVar *x, TdVar *gamma, TdNormOpt options, const TdSite *site)
{
  const Attrs attrs = { options.eps, 1, 0 };
  TdVar *in[] = { x, gamma }, *out[2];

  td__apply_at (&td__rms_normalization_class, &attrs, in, 2, out, 2, site);
  return out[0];
}

static TdNormOpt
options_or_defaults (const TdNormOpt *options)
{
  const TdNormOpt defaults = { TD_NORM_DEFAULTS };

  return options != NULL ? *options : defaults;
}

TdVar *
td_layer_normalization_ (TdVar *x, TdVar *gamma, TdVar *beta, const TdNormOpt *options)
{
  return td_layer_normalization_at (x, gamma, beta, options_or_defaults (options), NULL);
}

TdVar *
td_group_normalization_ (TdVar *x, int groups, TdVar *gamma, TdVar *beta,
                         const TdNormOpt *options)
{
  return td_group_normalization_at (x, groups, gamma, beta, options_or_defaults (options),
                                    NULL);
}

TdVar *
td_rms_normalization_ (TdVar *x, TdVar *gamma, const TdNormOpt *options)
{
  return td_rms_normalization_at (x, gamma, options_or_defaults (options), NULL);
}
