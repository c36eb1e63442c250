/* The public constructors of optimizers: named options in, hyperparameters out.
 *
 * SPDX-License-Identifier: MIT */
#include "rules.h"

/* The three ways to make one: with a site, with a pointer to options, with defaults. */
#define CONSTRUCTOR(name, Options, DEFAULTS, ...)                                              \
  Options td_##name##_options (void)                                                           \
  {                                                                                            \
    return (Options){ DEFAULTS };                                                              \
  }                                                                                            \
  TdOpt *td_##name##_new_at (TdLink *target, Options o, const TdSite *site)                    \
  {                                                                                            \
    TdUpdate u = { __VA_ARGS__ };                                                              \
                                                                                               \
    return td__opt_make (&td__##name##_class, target, &u, site);                               \
  }                                                                                            \
  TdOpt *td_##name##_new_ (TdLink *target, const Options *options)                             \
  {                                                                                            \
    return td_##name##_new_at (target, options != NULL ? *options : td_##name##_options (),    \
                               NULL);                                                          \
  }

#define td__adagrad_class td__ada_grad_class
#define td__adadelta_class td__ada_delta_class

// clang-format off
CONSTRUCTOR (sgd, TdSgdOpt, TD_SGD_DEFAULTS, .lr = o.lr)
CONSTRUCTOR (momentum_sgd, TdMomentumSgdOpt, TD_MOMENTUM_SGD_DEFAULTS,
             .lr = o.lr, .momentum = o.momentum)
CONSTRUCTOR (corrected_momentum_sgd, TdMomentumSgdOpt, TD_MOMENTUM_SGD_DEFAULTS,
             .lr = o.lr, .momentum = o.momentum)
CONSTRUCTOR (nesterov_ag, TdMomentumSgdOpt, TD_MOMENTUM_SGD_DEFAULTS,
             .lr = o.lr, .momentum = o.momentum)
CONSTRUCTOR (adagrad, TdAdaGradOpt, TD_ADAGRAD_DEFAULTS, .lr = o.lr, .eps = o.eps)
CONSTRUCTOR (adadelta, TdAdaDeltaOpt, TD_ADADELTA_DEFAULTS, .rho = o.rho, .eps = o.eps)
CONSTRUCTOR (rmsprop, TdRmspropOpt, TD_RMSPROP_DEFAULTS,
             .lr = o.lr, .alpha = o.alpha, .eps = o.eps, .eps_inside_sqrt = o.eps_inside_sqrt)
CONSTRUCTOR (rmsprop_graves, TdRmspropGravesOpt, TD_RMSPROP_GRAVES_DEFAULTS,
             .lr = o.lr, .alpha = o.alpha, .momentum = o.momentum, .eps = o.eps)
CONSTRUCTOR (smorms3, TdSmorms3Opt, TD_SMORMS3_DEFAULTS, .lr = o.lr, .eps = o.eps)
CONSTRUCTOR (adam, TdAdamOpt, TD_ADAM_DEFAULTS,
             .lr = o.lr, .beta1 = o.beta1, .beta2 = o.beta2, .eps = o.eps, .eta = o.eta,
             .weight_decay = o.weight_decay_rate, .amsgrad = o.amsgrad, .adabound = o.adabound,
             .final_lr = o.final_lr, .gamma = o.gamma)
// clang-format on
