/* Optimizers: update rules with Chainer's arithmetic, hooks between gradient and update, loss
 * scaling.  Included by tapedeck.h.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/* --- optimizers --------------------------------------------------------------------------- */
typedef struct
{
  double lr;
  int end_;
} TdSgdOpt;
#define TD_SGD_DEFAULTS .lr = 0.01
typedef struct
{
  double lr, momentum;
  int end_;
} TdMomentumSgdOpt;
#define TD_MOMENTUM_SGD_DEFAULTS .lr = 0.01, .momentum = 0.9
typedef struct
{
  double lr; /**< Chainer's alpha */
  double beta1, beta2, eps, eta;
  double weight_decay_rate; /**< not 0: AdamW */
  bool amsgrad;
  int end_;
} TdAdamOpt;
#define TD_ADAM_DEFAULTS                                                                       \
  .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .eta = 1.0, .weight_decay_rate = 0.0, \
  .amsgrad = false
TD_API TdSgdOpt td_sgd_options (void);
TD_API TdMomentumSgdOpt td_momentum_sgd_options (void);
TD_API TdAdamOpt td_adam_options (void);
/** p -= lr g.  *Owner*: the caller, td_opt_free or td_finish. */
TD_API TdOpt *td_sgd_new_ (TdLink *target, const TdSgdOpt *options);
TD_API TdOpt *td_sgd_new_at (TdLink *target, TdSgdOpt options, const TdSite *site);
/** v = momentum v - lr g; p += v. */
TD_API TdOpt *td_momentum_sgd_new_ (TdLink *target, const TdMomentumSgdOpt *options);
TD_API TdOpt *td_momentum_sgd_new_at (TdLink *target, TdMomentumSgdOpt options,
                                      const TdSite *site);
/** m += (1 - beta1)(g - m); v += (1 - beta2)(g g - v);
 * p -= eta (alpha_t m / (sqrt (v) + eps) + weight_decay_rate p) with
 * alpha_t = lr sqrt (1 - beta2^t) / (1 - beta1^t).  *Source*: Kingma and Ba 2015, algorithm 1
 * in its second form; chainer.optimizers.Adam. */
TD_API TdOpt *td_adam_new_ (TdLink *target, const TdAdamOpt *options);
TD_API TdOpt *td_adam_new_at (TdLink *target, TdAdamOpt options, const TdSite *site);
/** Update every parameter of the target by its gradient; one without a gradient counts as
 * zero.  *Errors*: the pending error, when there is one: nothing is updated then. */
TD_API TdStatus td_opt_update (TdOpt *opt);
TD_API TdStatus td_opt_update_at (TdOpt *opt, const TdSite *site);
/** Add a hook that runs before each update, in the order of adding.  *Owner*: opt. */
TD_API TdStatus td_opt_add_hook (TdOpt *opt, TdOptHook *hook);
/** Scale all gradients down when their common norm is above threshold. */
TD_API TdOptHook *td_gradient_clipping_new (double threshold);
/** g += rate p for every parameter. */
TD_API TdOptHook *td_weight_decay_new (double rate);
TD_API void td_opt_set_lr (TdOpt *opt, double lr);
TD_API double td_opt_lr (const TdOpt *opt);
/** Number of updates done. */
TD_API int64_t td_opt_count (const TdOpt *opt);
TD_API void td_opt_free (TdOpt *opt);

/* clang-format off */
#if !defined(TD_NO_SITES)
#define td_sgd_new(...) td__sgd_new_x (__VA_ARGS__, .end_ = 0)
#define td__sgd_new_x(target, ...) td_sgd_new_at (target, TD_OPTIONS_ (TdSgdOpt, TD_SGD_DEFAULTS, __VA_ARGS__), TD_HERE)
#define td_momentum_sgd_new(...) td__momentum_sgd_new_x (__VA_ARGS__, .end_ = 0)
#define td__momentum_sgd_new_x(target, ...) td_momentum_sgd_new_at (target, TD_OPTIONS_ (TdMomentumSgdOpt, TD_MOMENTUM_SGD_DEFAULTS, __VA_ARGS__), TD_HERE)
#define td_adam_new(...) td__adam_new_x (__VA_ARGS__, .end_ = 0)
#define td__adam_new_x(target, ...) td_adam_new_at (target, TD_OPTIONS_ (TdAdamOpt, TD_ADAM_DEFAULTS, __VA_ARGS__), TD_HERE)
#define td_opt_update(...) td_opt_update_at (__VA_ARGS__, TD_HERE)
#endif
/* clang-format on */

TD_END_DECLS
