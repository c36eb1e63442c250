/* Random numbers of a variable's shape and dtype, as an operation: normal ones, Gumbel ones,
 * and the masks of dropout.  Which numbers is an attribute, so that running it again gives them
 * again.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

#include <math.h>

typedef struct
{
  TdRngKey key;
  int distribution;
  double ratio; /* of a mask: the share of zeros */
} Attrs;

enum
{
  NORMAL,
  GUMBEL,
  MASK
};
static const char *const distributions[] = { "normal", "gumbel", "mask", NULL };
static const TdAttr attr_table[] = {
  { "seed", TD_ATTR_U64, offsetof (Attrs, key.seed), 0, 0, "0" },
  { "offset", TD_ATTR_U64, offsetof (Attrs, key.offset), 0, 0, "0" },
  { "distribution", TD_ATTR_CHOICE, offsetof (Attrs, distribution), 0, 0, "normal",
    distributions },
  { "ratio", TD_ATTR_DOUBLE, offsetof (Attrs, ratio), 0, 0, "0.5" },
};

static TdStatus
infer (TdOpCall *call)
{
  return td__infer_mask (call, ((const Attrs *)call->attrs)->ratio);
}

/* -log (-log (u)); u = 0 would give an infinity: half of the smallest other u stands for it. */
static TdStatus
make_gumbel (TdDevice *d, TdTensor *y)
{
  TdStatus status
      = d->ops->unary (d, TD_UNARY_CLIP, y->dtype == TD_F64 ? 0x1p-54 : 0x1p-25, 1, y, y);

  for (int i = 0; i < 4 && status == TD_OK; i++)
    status = d->ops->unary (d, i % 2 == 0 ? TD_UNARY_LOG : TD_UNARY_NEG, 0, 0, y, y);
  return status;
}

static TdStatus
forward (TdOpCall *call)
{
  static const TdRandomKind kinds[] = { TD_RANDOM_NORMAL, TD_RANDOM_UNIFORM, TD_RANDOM_MASK };
  const Attrs *a = call->attrs;
  TdDevice *d = call->device;
  const TdStatus status
      = d->ops->random (d, kinds[a->distribution], a->key, a->ratio, &call->out[0]);

  return status == TD_OK && a->distribution == GUMBEL ? make_gumbel (d, &call->out[0]) : status;
}

const TdOpClass td__random_like_class = {
  .name = "random_like",
  .label = "RandomLike",
  .group = "noise",
  .formula = "random numbers of x's shape",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_RANDOM | TD_OP_NO_GRAD,
  .in_names = td__names_x,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = TD_ARRAY_LENGTH (attr_table),
  .infer = infer,
  .forward = forward,
};

static TdVar *
random_like (TdVar *x, int distribution, double ratio, const TdSite *site)
{
  Attrs attrs = { { 0, 0 }, distribution, ratio };

  if (!td_poisoned (x))
    attrs.key = td__rng_take ((uint64_t)td_size (x));
  return td__apply1 (&td__random_like_class, &attrs, site, x);
}

/* *Source*: chainer.functions.gumbel_softmax; E. Jang et al., "Categorical reparameterization
 * with Gumbel-softmax", 2017. */
TdVar *
td_gumbel_softmax_at (TdVar *log_pi, TdGumbelSoftmaxOpt o, const TdSite *site)
{
  TdVar *noise = random_like (log_pi, GUMBEL, 0, site);
  const TdSoftmaxOpt softmax = { .axis = o.axis };

  return td_softmax_at (td_div_scalar_at (td_add_at (log_pi, noise, site), o.tau, site),
                        softmax, site);
}

TdVar *
td_gumbel_softmax_ (TdVar *log_pi, const TdGumbelSoftmaxOpt *options)
{
  const TdGumbelSoftmaxOpt defaults = { TD_GUMBEL_SOFTMAX_DEFAULTS };

  return td_gumbel_softmax_at (log_pi, options != NULL ? *options : defaults, NULL);
}

/* With a mask given or wanted the mask is a variable; else dropout makes it as it goes. */
TdVar *
td_dropout_with_at (TdVar *x, double ratio, TdDropoutOpt o, const TdSite *site)
{
  TdVar *mask = o.mask;

  if (o.return_mask != NULL)
    *o.return_mask = NULL;
  if (!td_config ()->train)
    return x;
  if (mask == NULL && o.return_mask == NULL)
    return td_dropout_at (x, ratio, site);
  if (mask == NULL)
    mask = random_like (x, MASK, ratio, site);
  if (o.return_mask != NULL)
    *o.return_mask = mask;
  return td_mul_at (x, mask, site);
}

/* --- gaussian --- */

static const char *const gaussian_names[] = { "mean", "ln_var", "eps" };

static TdStatus
gaussian_infer (TdOpCall *call)
{
  TdStatus status = td__check_floats (call, 7);

  for (int i = 1; status == TD_OK && i < 3; i++)
    status = td__check_same_shape (call, 0, i);
  return status != TD_OK ? status : td__out_like (call, 0, 0);
}

static TdStatus
gaussian_forward (TdOpCall *call)
{
  TdDevice *d = call->device;
  TdTensor *y = &call->out[0];
  TdStatus status = d->ops->unary (d, TD_UNARY_MUL_SCALAR, 0.5, 0, &call->in[1], y);

  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_EXP, 0, 0, y, y);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_MUL, y, &call->in[2], y, false);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_ADD, &call->in[0], y, y, false);
  return status;
}

static TdStatus
gaussian_backward (TdBackward *b)
{
  TdVar *gy = b->gy[0];

  if (td_backward_needs (b, 0))
    b->gx[0] = gy;
  if (td_backward_needs (b, 1))
    {
      TdVar *deviation = td_exp (td_mul_scalar (td_backward_input (b, 1), 0.5));
      TdVar *noise = td_mul (deviation, td_backward_input (b, 2));

      b->gx[1] = td_mul (gy, td_mul_scalar (noise, 0.5));
    }
  return TD_OK;
}

/* *Source*: chainer.functions.gaussian. */
const TdOpClass td__gaussian_class = {
  .name = "gaussian",
  .label = "Gaussian",
  .group = "noise",
  .formula = "mean + e ** (ln_var / 2) eps",
  .n_in_min = 3,
  .n_in_max = 3,
  .n_out = 1,
  .retain_in = 6,
  .no_grad_in = 4,
  .in_names = gaussian_names,
  .infer = gaussian_infer,
  .forward = gaussian_forward,
  .backward = gaussian_backward,
};

TdVar *
td_gaussian_at (TdVar *mean, TdVar *ln_var, TdGaussianOpt o, const TdSite *site)
{
  TdVar *eps = o.eps != NULL ? o.eps : random_like (mean, NORMAL, 0, site);

  TdVar *y = td__apply3 (&td__gaussian_class, NULL, site, mean, ln_var, eps);

  if (o.return_eps != NULL)
    *o.return_eps = td_poisoned (y) ? y : eps;
  return y;
}

TdVar *
td_gaussian_ (TdVar *mean, TdVar *ln_var, const TdGaussianOpt *options)
{
  return td_gaussian_at (
      mean, ln_var, options != NULL ? *options : (TdGaussianOpt){ TD_GAUSSIAN_DEFAULTS }, NULL);
}
