/* SGD, MomentumSGD and Adam: their options, and the operations that update one parameter.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer.h"

#include <math.h>
#include <stddef.h>

/* All rules are one kernel call of the device: p, g and the states, in place. */
static TdStatus
run (TdOpCall *call, TdUpdateKind kind)
{
  TdTensor arrays[2 + TD_OPT_MAX_STATES], *pointers[2 + TD_OPT_MAX_STATES];

  for (int i = 0; i < call->n_in; i++)
    {
      arrays[i] = call->in[i];
      pointers[i] = &arrays[i];
    }
  return call->device->ops->update (call->device, kind, call->attrs, pointers, call->n_in);
}

static TdStatus
sgd_forward (TdOpCall *call)
{
  return run (call, TD_UPDATE_SGD);
}

static TdStatus
momentum_sgd_forward (TdOpCall *call)
{
  return run (call, TD_UPDATE_MOMENTUM_SGD);
}

static TdStatus
adam_forward (TdOpCall *call)
{
  return run (call, TD_UPDATE_ADAM);
}

#define ATTR(field, text)                                                                      \
  {                                                                                            \
#field, TD_ATTR_DOUBLE, offsetof(TdUpdate, field), 0, 0, text                              \
  }
static const TdAttr sgd_attrs[] = { ATTR (lr, "0.01") };
static const TdAttr momentum_sgd_attrs[] = { ATTR (lr, "0.01"), ATTR (momentum, "0.9") };
static const TdAttr adam_attrs[] = {
  ATTR (lr, "0.001"),
  ATTR (beta1, "0.9"),
  ATTR (beta2, "0.999"),
  ATTR (eps, "1e-08"),
  ATTR (eta, "1"),
  ATTR (weight_decay, "0"),
  { "amsgrad", TD_ATTR_BOOL, offsetof (TdUpdate, amsgrad), 0, 0, "false" },
};
static const char *const names[] = { "param", "grad", "state 0", "state 1", "state 2" };

#define UPDATE_OP(text, title, law, n, m, mask, table, function)                               \
  {                                                                                            \
    .name = text, .label = title, .group = "optimizer", .formula = law, .n_in_min = n,         \
    .n_in_max = m, .n_out = 0, .flags = TD_OP_STATEFUL | TD_OP_NO_GRAD, .writes = mask,        \
    .in_names = names, .attrs_size = sizeof (TdUpdate), .attrs = table,                        \
    .n_attrs = TD_ARRAY_LENGTH (table), .infer = td__opt_infer, .forward = function            \
  }
const TdOpClass td__sgd_class
    = UPDATE_OP ("sgd", "SGD", "p -= lr g", 2, 2, 1u, sgd_attrs, sgd_forward);
const TdOpClass td__momentum_sgd_class
    = UPDATE_OP ("momentum_sgd", "MomentumSGD", "v = momentum v - lr g; p += v", 3, 3, 5u,
                 momentum_sgd_attrs, momentum_sgd_forward);
const TdOpClass td__adam_class
    = UPDATE_OP ("adam", "Adam", "p -= eta (alpha_t m / (sqrt (v) + eps) + weight_decay p)", 4,
                 5, 0x1du, adam_attrs, adam_forward);

static int
no_states (const TdUpdate *u)
{
  (void)u;
  return 0;
}

static int
one_state (const TdUpdate *u)
{
  (void)u;
  return 1;
}

static int
adam_states (const TdUpdate *u)
{
  return u->amsgrad ? 3 : 2;
}

static void
adam_prepare (TdUpdate *u, int64_t t)
{
  u->alpha_t = u->lr * sqrt (1 - pow (u->beta2, (double)t)) / (1 - pow (u->beta1, (double)t));
}

static const TdOptClass sgd = { "SGD", &td__sgd_class, no_states, NULL };
static const TdOptClass momentum_sgd
    = { "MomentumSGD", &td__momentum_sgd_class, one_state, NULL };
static const TdOptClass adam = { "Adam", &td__adam_class, adam_states, adam_prepare };

TdSgdOpt
td_sgd_options (void)
{
  return (TdSgdOpt){ TD_SGD_DEFAULTS };
}

TdMomentumSgdOpt
td_momentum_sgd_options (void)
{
  return (TdMomentumSgdOpt){ TD_MOMENTUM_SGD_DEFAULTS };
}

TdAdamOpt
td_adam_options (void)
{
  return (TdAdamOpt){ TD_ADAM_DEFAULTS };
}

TdOpt *
td_sgd_new_at (TdLink *target, TdSgdOpt options, const TdSite *site)
{
  TdUpdate u = { .lr = options.lr };

  return td__opt_make (&sgd, target, &u, site);
}

TdOpt *
td_sgd_new_ (TdLink *target, const TdSgdOpt *options)
{
  return td_sgd_new_at (target, options != NULL ? *options : td_sgd_options (), NULL);
}

TdOpt *
td_momentum_sgd_new_at (TdLink *target, TdMomentumSgdOpt options, const TdSite *site)
{
  TdUpdate u = { .lr = options.lr, .momentum = options.momentum };

  return td__opt_make (&momentum_sgd, target, &u, site);
}

TdOpt *
td_momentum_sgd_new_ (TdLink *target, const TdMomentumSgdOpt *options)
{
  return td_momentum_sgd_new_at (target,
                                 options != NULL ? *options : td_momentum_sgd_options (), NULL);
}

TdOpt *
td_adam_new_at (TdLink *target, TdAdamOpt options, const TdSite *site)
{
  TdUpdate u = { .lr = options.lr,
                 .beta1 = options.beta1,
                 .beta2 = options.beta2,
                 .eps = options.eps,
                 .eta = options.eta,
                 .weight_decay = options.weight_decay_rate,
                 .amsgrad = options.amsgrad };

  return td__opt_make (&adam, target, &u, site);
}

TdOpt *
td_adam_new_ (TdLink *target, const TdAdamOpt *options)
{
  return td_adam_new_at (target, options != NULL ? *options : td_adam_options (), NULL);
}
