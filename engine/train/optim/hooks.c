/* Optimizer hooks that treat one parameter after the other: WeightDecay, Lasso,
 * GradientHardClipping, GradientNoise and GradientLARS.
 *
 * Each is an operation in place, on the device and without a host read, so that it is seen and
 * stepped over like any other.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer.h"

#include <math.h>
#include <stddef.h>

#define HOOK_OP(text, title, law, n, operands, Type, table, check, function)                   \
  {                                                                                            \
    .name = text, .label = title, .group = "optimizer", .formula = law, .n_in_min = n,         \
    .n_in_max = n, .flags = TD_OP_STATEFUL | TD_OP_NO_GRAD, .writes = 1, .in_names = operands, \
    .attrs_size = sizeof (Type), .attrs = table, .n_attrs = TD_ARRAY_LENGTH (table),           \
    .infer = check, .forward = function                                                        \
  }
#define NUMBER(Type, field)                                                                    \
  {                                                                                            \
#field, TD_ATTR_DOUBLE, offsetof(Type, field), 0, 0, NULL                                  \
  }
static const char *const names[] = { "grad", "param" };

/* The operation on every slot, with or without its parameter. */
static TdStatus
apply_each (const TdOpClass *cls, const void *attrs, const TdOptHookCall *c)
{
  TdStatus status = TD_OK;

  for (int i = 0; i < c->n && status == TD_OK; i++)
    {
      TdVar *in[] = { c->slots[i].g, c->slots[i].at };

      td__engine.path = c->slots[i].path;
      status = td__apply_update (cls, attrs, in, cls->n_in_max, c->site);
    }
  return status;
}

/* Updates know themselves whether the device has decided against them. */
static TdOptHook *
decided (TdOptHook *hook)
{
  if (!hook->inert)
    hook->decided = true;
  return hook;
}

/* --- g += rate p, and g += rate sign (p) --- */

static const TdAttr rate_attrs[] = { NUMBER (TdUpdate, rate) };

static TdStatus
weight_decay_forward (TdOpCall *call)
{
  return td__opt_run (call, TD_UPDATE_WEIGHT_DECAY);
}

static TdStatus
lasso_forward (TdOpCall *call)
{
  return td__opt_run (call, TD_UPDATE_LASSO);
}

const TdOpClass td__weight_decay_class
    = HOOK_OP ("weight_decay", "WeightDecay", "g += rate p", 2, names, TdUpdate, rate_attrs,
               td__opt_infer, weight_decay_forward);
const TdOpClass td__lasso_class = HOOK_OP ("lasso", "Lasso", "g += rate sign (p)", 2, names,
                                           TdUpdate, rate_attrs, td__opt_infer, lasso_forward);

static TdStatus
weight_decay_call (TdOptHook *hook, const TdOptHookCall *c)
{
  TdUpdate u = { .rate = hook->value[0], .decided = td__opt_decided (c->opt) };

  return apply_each (&td__weight_decay_class, &u, c);
}

static TdStatus
lasso_call (TdOptHook *hook, const TdOptHookCall *c)
{
  TdUpdate u = { .rate = hook->value[0], .decided = td__opt_decided (c->opt) };

  return apply_each (&td__lasso_class, &u, c);
}

TdOptHook *
td_weight_decay_new (double rate)
{
  return decided (td__opt_hook_make ("WeightDecay", weight_decay_call, rate >= 0, rate, 0, 0));
}

TdOptHook *
td_lasso_new (double rate)
{
  return decided (td__opt_hook_make ("Lasso", lasso_call, rate >= 0, rate, 0, 0));
}

/* --- g = min (max (g, lower), upper) --- */

typedef struct
{
  double lower, upper;
} Bounds;
static const TdAttr bounds_attrs[] = { NUMBER (Bounds, lower), NUMBER (Bounds, upper) };

static TdStatus
hard_clipping_forward (TdOpCall *call)
{
  const Bounds *b = call->attrs;
  TdTensor g = call->in[0];

  return call->device->ops->unary (call->device, TD_UNARY_CLIP, b->lower, b->upper,
                                   &call->in[0], &g);
}

const TdOpClass td__gradient_hard_clipping_class = HOOK_OP (
    "gradient_hard_clipping", "GradientHardClipping", "g = min (max (g, lower), upper)", 1,
    names, Bounds, bounds_attrs, td__opt_infer, hard_clipping_forward);

static TdStatus
hard_clipping_call (TdOptHook *hook, const TdOptHookCall *c)
{
  Bounds bounds = { hook->value[0], hook->value[1] };

  return apply_each (&td__gradient_hard_clipping_class, &bounds, c);
}

TdOptHook *
td_gradient_hard_clipping_new (double lower, double upper)
{
  return td__opt_hook_make ("GradientHardClipping", hard_clipping_call, lower <= upper, lower,
                            upper, 0);
}

/* --- g += sigma z --- */

typedef struct
{
  TdRngKey key;
  double sigma;
} Noise;
static const TdAttr noise_attrs[] = {
  { "seed", TD_ATTR_U64, offsetof (Noise, key.seed), 0, 0, NULL },
  { "offset", TD_ATTR_U64, offsetof (Noise, key.offset), 0, 0, NULL },
  NUMBER (Noise, sigma),
};

static TdStatus
noise_forward (TdOpCall *call)
{
  const Noise *a = call->attrs;
  TdDevice *d = call->device;
  TdTensor g = call->in[0], z = g, half = g;
  bool is_half = g.dtype == TD_F16 || g.dtype == TD_BF16;
  TdStatus status;

  z.dtype = is_half ? TD_F32 : g.dtype;
  z.data = td_op_workspace (call, (size_t)z.size * (is_half ? 6 : td_dtype_bytes (z.dtype)));
  if (z.data == NULL)
    return TD_ERR_MEMORY;
  half.data = is_half ? (char *)z.data + 4 * z.size : z.data;
  status = d->ops->random (d, TD_RANDOM_NORMAL, a->key, 0, &z);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_MUL_SCALAR, a->sigma, 0, &z, &z);
  if (status == TD_OK && is_half)
    status = d->ops->cast (d, &z, &half);
  return status == TD_OK ? d->ops->binary (d, TD_BINARY_ADD, &g, &half, &g, false) : status;
}

const TdOpClass td__gradient_noise_class
    = { .name = "gradient_noise",
        .label = "GradientNoise",
        .group = "optimizer",
        .formula = "g += sigma z, z normal",
        .n_in_min = 1,
        .n_in_max = 1,
        .flags = TD_OP_STATEFUL | TD_OP_NO_GRAD | TD_OP_RANDOM,
        .writes = 1,
        .in_names = names,
        .attrs_size = sizeof (Noise),
        .attrs = noise_attrs,
        .n_attrs = 3,
        .infer = td__opt_infer,
        .forward = noise_forward };

/* sigma^2 = eta / (1 + t)^0.55, t counting the updates of the parameter. */
static TdStatus
noise_call (TdOptHook *hook, const TdOptHookCall *c)
{
  TdStatus status = TD_OK;

  for (int i = 0; i < c->n && status == TD_OK; i++)
    {
      TdOptSlot *slot = &c->slots[i];
      Noise noise = { td__rng_take ((uint64_t)td_shape_size (&slot->g->node->shape)),
                      sqrt (hook->value[0] / pow (1 + (double)slot->t, 0.55)) };

      td__engine.path = slot->path;
      status = td__apply_update (&td__gradient_noise_class, &noise, &slot->g, 1, c->site);
    }
  return status;
}

TdOptHook *
td_gradient_noise_new (double eta)
{
  return td__opt_hook_make ("GradientNoise", noise_call, eta >= 0, eta, 0, 0);
}

/* --- g = rate (g + weight_decay p) --- */

typedef struct
{
  double threshold, weight_decay, eps;
} Lars;
static const TdAttr lars_attrs[]
    = { NUMBER (Lars, threshold), NUMBER (Lars, weight_decay), NUMBER (Lars, eps) };

/* The L2 norm of x as a float64 scalar; part is room for a number of x's dtype. */
static TdStatus
norm (TdOpCall *call, const TdTensor *x, TdTensor *out, TdTensor part)
{
  TdDevice *d = call->device;
  TdStatus status;

  if (x->size == 0)
    return d->ops->fill (d, out, 0);
  if (x->dtype == TD_F64)
    part = *out;
  status
      = d->ops->reduce (d, TD_REDUCE_SUM_SQUARES, (1u << x->shape->ndim) - 1, x, &part, false);
  if (status == TD_OK && x->dtype != TD_F64)
    status = d->ops->cast (d, &part, out);
  return status == TD_OK ? d->ops->unary (d, TD_UNARY_SQRT, 0, 0, out, out) : status;
}

/* rate[0] = |p| / (eps + |g| + weight_decay |p|) where |p| > threshold, else 1; rate has room
 * for five numbers, part for one in the dtype of the gradient. */
static TdStatus
lars_rate (TdOpCall *call, TdTensor rate[5], TdTensor part)
{
  const Lars *a = call->attrs;
  TdDevice *d = call->device;
  const TdDeviceOps *ops = d->ops;
  TdTensor *p = &rate[1], *g = &rate[2], *one = &rate[3], *large = &rate[4];
  TdStatus status = norm (call, &call->in[1], p, part);

  if (status == TD_OK)
    status = norm (call, &call->in[0], g, part);
  if (status == TD_OK)
    status = ops->unary (d, TD_UNARY_ADD_SCALAR, a->eps, 0, g, g);
  if (status == TD_OK)
    status = ops->unary (d, TD_UNARY_MUL_SCALAR, a->weight_decay, 0, p, large);
  if (status == TD_OK)
    status = ops->binary (d, TD_BINARY_ADD, g, large, g, false);
  if (status == TD_OK)
    status = ops->binary (d, TD_BINARY_DIV, p, g, g, false);
  if (status == TD_OK)
    status = ops->fill (d, large, a->threshold);
  if (status == TD_OK)
    status = ops->binary (d, TD_BINARY_GT, p, large, large, false);
  if (status == TD_OK)
    status = ops->fill (d, one, 1);
  return status == TD_OK ? ops->select (d, large, g, one, &rate[0]) : status;
}

static TdStatus
lars_forward (TdOpCall *call)
{
  const Lars *a = call->attrs;
  TdDevice *d = call->device;
  TdShape scalar = { 0, { 0 } };
  TdTensor g = call->in[0], p = call->in[1], *arrays[] = { &g, &p }, rate[5], fitting;
  TdUpdate u = { .rate = a->weight_decay };
  double *room = td_op_workspace (call, 6 * sizeof (double));
  TdStatus status;

  if (room == NULL)
    return TD_ERR_MEMORY;
  for (int i = 0; i < 5; i++)
    rate[i] = (TdTensor){ room + i, &scalar, 1, TD_F64 };
  fitting = (TdTensor){ room + 5, &scalar, 1, g.dtype };
  status = lars_rate (call, rate, fitting);
  if (status == TD_OK)
    status = d->ops->update (d, TD_UPDATE_WEIGHT_DECAY, &u, arrays, 2);
  if (status == TD_OK)
    status = d->ops->cast (d, &rate[0], &fitting);
  return status == TD_OK ? d->ops->binary (d, TD_BINARY_MUL, &g, &fitting, &g, false) : status;
}

const TdOpClass td__gradient_lars_class = HOOK_OP (
    "gradient_lars", "GradientLARS",
    "g = (g + weight_decay p) |p| / (eps + |g| + weight_decay |p|) if |p| > threshold", 2,
    names, Lars, lars_attrs, td__opt_infer, lars_forward);

static TdStatus
lars_call (TdOptHook *hook, const TdOptHookCall *c)
{
  Lars lars = { hook->value[0], hook->value[1], hook->value[2] };

  return apply_each (&td__gradient_lars_class, &lars, c);
}

TdOptHook *
td_gradient_lars_new_at (TdGradientLarsOpt o, const TdSite *site)
{
  (void)site;
  return td__opt_hook_make ("GradientLARS", lars_call,
                            o.threshold >= 0 && o.weight_decay >= 0 && o.eps >= 0, o.threshold,
                            o.weight_decay, o.eps);
}

TdOptHook *
td_gradient_lars_new_ (const TdGradientLarsOpt *options)
{
  static const TdGradientLarsOpt defaults = { TD_GRADIENT_LARS_DEFAULTS };

  return td_gradient_lars_new_at (options != NULL ? *options : defaults, NULL);
}
