/* Optimizers: update rules with Chainer's arithmetic, hooks between gradient and update, loss
 * scaling.  Included by tapedeck.h.
 *
 * Each constructor takes the link whose parameters it updates, then named options.  Parameters
 * are called by their keys below that link: "l1/W"; "l1" means all of that link, "" all there
 * are.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/* --- kinds of optimizer --------------------------------------------------------------------
 */
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
  double lr, eps;
  int end_;
} TdAdaGradOpt;
#define TD_ADAGRAD_DEFAULTS .lr = 0.001, .eps = 1e-8
typedef struct
{
  double rho, eps;
  int end_;
} TdAdaDeltaOpt;
#define TD_ADADELTA_DEFAULTS .rho = 0.95, .eps = 1e-6
typedef struct
{
  double lr, alpha, eps;
  bool eps_inside_sqrt;
  int end_;
} TdRmspropOpt;
#define TD_RMSPROP_DEFAULTS .lr = 0.01, .alpha = 0.99, .eps = 1e-8, .eps_inside_sqrt = false
typedef struct
{
  double lr, alpha, momentum, eps;
  int end_;
} TdRmspropGravesOpt;
#define TD_RMSPROP_GRAVES_DEFAULTS .lr = 1e-4, .alpha = 0.95, .momentum = 0.9, .eps = 1e-4
typedef struct
{
  double lr, eps;
  int end_;
} TdSmorms3Opt;
#define TD_SMORMS3_DEFAULTS .lr = 0.001, .eps = 1e-16
typedef struct
{
  double lr; /**< Chainer's alpha */
  double beta1, beta2, eps, eta;
  double weight_decay_rate; /**< not 0: AdamW */
  bool amsgrad, adabound;
  double final_lr, gamma; /**< adabound: the step size in the end, and how soon */
  int end_;
} TdAdamOpt;
#define TD_ADAM_DEFAULTS                                                                       \
  .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .eta = 1.0, .weight_decay_rate = 0.0, \
  .amsgrad = false, .adabound = false, .final_lr = 0.1, .gamma = 1e-3
TD_API TdSgdOpt td_sgd_options (void);
TD_API TdMomentumSgdOpt td_momentum_sgd_options (void);
TD_API TdMomentumSgdOpt td_corrected_momentum_sgd_options (void);
TD_API TdMomentumSgdOpt td_nesterov_ag_options (void);
TD_API TdAdaGradOpt td_adagrad_options (void);
TD_API TdAdaDeltaOpt td_adadelta_options (void);
TD_API TdRmspropOpt td_rmsprop_options (void);
TD_API TdRmspropGravesOpt td_rmsprop_graves_options (void);
TD_API TdSmorms3Opt td_smorms3_options (void);
TD_API TdAdamOpt td_adam_options (void);
/** p -= lr g.  *Owner*: the caller, td_opt_free or td_finish. */
TD_API TdOpt *td_sgd_new_ (TdLink *target, const TdSgdOpt *options);
TD_API TdOpt *td_sgd_new_at (TdLink *target, TdSgdOpt options, const TdSite *site);
/** v = momentum v - lr g; p += v. */
TD_API TdOpt *td_momentum_sgd_new_ (TdLink *target, const TdMomentumSgdOpt *options);
TD_API TdOpt *td_momentum_sgd_new_at (TdLink *target, TdMomentumSgdOpt options,
                                      const TdSite *site);
/** v = momentum v - g; p += lr v: a change of lr acts at once.  *Source*: Goyal et al. 2017,
 * equation 9; chainer.optimizers.CorrectedMomentumSGD. */
TD_API TdOpt *td_corrected_momentum_sgd_new_ (TdLink *target, const TdMomentumSgdOpt *options);
TD_API TdOpt *td_corrected_momentum_sgd_new_at (TdLink *target, TdMomentumSgdOpt options,
                                                const TdSite *site);
/** v = momentum v - lr g; p += momentum^2 v - (1 + momentum) lr g.  *Source*:
 * chainer.optimizers.NesterovAG, which takes the new v where Bengio et al. 2012, equation 7,
 * takes the old one. */
TD_API TdOpt *td_nesterov_ag_new_ (TdLink *target, const TdMomentumSgdOpt *options);
TD_API TdOpt *td_nesterov_ag_new_at (TdLink *target, TdMomentumSgdOpt options,
                                     const TdSite *site);
/** h += g g; p -= lr g / (sqrt (h) + eps).  *Source*: Duchi et al. 2011. */
TD_API TdOpt *td_adagrad_new_ (TdLink *target, const TdAdaGradOpt *options);
TD_API TdOpt *td_adagrad_new_at (TdLink *target, TdAdaGradOpt options, const TdSite *site);
/** msg = rho msg + (1 - rho) g g; dx = sqrt ((msdx + eps) / (msg + eps)) g;
 * msdx = rho msdx + (1 - rho) dx dx; p -= dx.  *Source*: Zeiler 2012, algorithm 1. */
TD_API TdOpt *td_adadelta_new_ (TdLink *target, const TdAdaDeltaOpt *options);
TD_API TdOpt *td_adadelta_new_at (TdLink *target, TdAdaDeltaOpt options, const TdSite *site);
/** ms = alpha ms + (1 - alpha) g g; p -= lr g / (sqrt (ms) + eps), or sqrt (ms + eps).
 * *Source*: Tieleman and Hinton 2012; chainer.optimizers.RMSprop. */
TD_API TdOpt *td_rmsprop_new_ (TdLink *target, const TdRmspropOpt *options);
TD_API TdOpt *td_rmsprop_new_at (TdLink *target, TdRmspropOpt options, const TdSite *site);
/** n = alpha n + (1 - alpha) grad grad; g = alpha g + (1 - alpha) grad;
 * delta = momentum delta - lr grad / sqrt (n - g g + eps); p += delta.  *Source*: Graves 2013,
 * equations 38 to 41. */
TD_API TdOpt *td_rmsprop_graves_new_ (TdLink *target, const TdRmspropGravesOpt *options);
TD_API TdOpt *td_rmsprop_graves_new_at (TdLink *target, TdRmspropGravesOpt options,
                                        const TdSite *site);
/** r = 1 / (mem + 1); g = (1 - r) g + r grad; g2 = (1 - r) g2 + r grad grad;
 * x = g g / (g2 + eps); p -= grad min (x, lr) / (sqrt (g2) + eps); mem = 1 + mem (1 - x), from
 * mem = 1.  *Source*: Funk 2015; chainer.optimizers.SMORMS3. */
TD_API TdOpt *td_smorms3_new_ (TdLink *target, const TdSmorms3Opt *options);
TD_API TdOpt *td_smorms3_new_at (TdLink *target, TdSmorms3Opt options, const TdSite *site);
/** m += (1 - beta1)(g - m); v += (1 - beta2)(g g - v);
 * p -= eta (alpha_t m / (sqrt (v) + eps) + weight_decay_rate p) with
 * alpha_t = lr sqrt (1 - beta2^t) / (1 - beta1^t).  amsgrad: the highest v so far in its place;
 * adabound: alpha_t / (sqrt (v) + eps) is kept within bounds that both go to final_lr.
 * *Source*: Kingma and Ba 2015, algorithm 1 in its second form; Loshchilov and Hutter 2019;
 * Reddi et al. 2018; Luo et al. 2019; chainer.optimizers.Adam. */
TD_API TdOpt *td_adam_new_ (TdLink *target, const TdAdamOpt *options);
TD_API TdOpt *td_adam_new_at (TdLink *target, TdAdamOpt options, const TdSite *site);
TD_API void td_opt_free (TdOpt *opt);

/* --- updates -------------------------------------------------------------------------------
 */
/** Update every parameter of the target by its gradient; one without a gradient counts as
 * zero.  *Errors*: the pending error, when there is one: nothing is updated then. */
TD_API TdStatus td_opt_update (TdOpt *opt);
TD_API TdStatus td_opt_update_at (TdOpt *opt, const TdSite *site);
/** Number of updates, skipped ones too. */
TD_API int64_t td_opt_count (const TdOpt *opt);
/** Number of updates of one parameter: Adam's t. */
TD_API int64_t td_opt_count_of (TdOpt *opt, const char *key);
/** Epochs as the program (or its updater) counts them: they are saved with the optimizer. */
TD_API int64_t td_opt_epoch (const TdOpt *opt);
TD_API void td_opt_new_epoch (TdOpt *opt);
/** Borrow a state of a parameter by Chainer's name ("m"), NULL before its first update; or
 * "fp32_param". */
TD_API TdVar *td_opt_state (TdOpt *opt, const char *key, const char *name);

/* --- hyperparameters -----------------------------------------------------------------------
 */
TD_API void td_opt_set_lr (TdOpt *opt, double lr); /**< The learning rate, 0 or more. */
TD_API double td_opt_lr (const TdOpt *opt);        /**< What it is now. */
/** Change a hyperparameter by name ("momentum"; a switch is 0 or 1).  With a key only those
 * parameters have it of their own; others follow the optimizer's.
 * *Errors*: TD_ERR_ARG for an unknown name or key, or a number that is not finite. */
TD_API TdStatus td_opt_set_hyper (TdOpt *opt, const char *key, const char *name, double value);
/** A hyperparameter of the optimizer (key NULL) or of one parameter; NaN after an error. */
TD_API double td_opt_hyper (TdOpt *opt, const char *key, const char *name);
/** Leave parameters alone from now on, or update them again; their states stay. */
TD_API TdStatus td_opt_set_enabled (TdOpt *opt, const char *key, bool enabled);
/** Update float16 and bfloat16 parameters through copies in float32, which are kept. */
TD_API void td_opt_use_fp32_update (TdOpt *opt, bool use);

/* --- hooks ---------------------------------------------------------------------------------
 */
typedef enum
{
  TD_OPT_HOOK_AUTO, /**< as the hook wants it: before the update */
  TD_OPT_HOOK_PRE,
  TD_OPT_HOOK_POST
} TdOptHookTiming;
typedef struct
{
  TdOptHookTiming timing;
  const char *name;  /**< of which there is one only; NULL: the kind's name */
  const char *param; /**< the key of the one parameter it is for; NULL: all of them */
  int end_;
} TdOptHookOpt;
#define TD_OPT_HOOK_DEFAULTS .timing = TD_OPT_HOOK_AUTO, .name = NULL, .param = NULL
/** Add a hook that runs with each update, in the order of adding; those of one parameter come
 * after those of all.  Gradients are without loss scale.  *Owner*: opt.
 * *Errors*: TD_ERR_STATE for a second hook of one name. */
TD_API TdStatus td_opt_add_hook (TdOpt *opt, TdOptHook *hook);
TD_API TdStatus td_opt_add_hook_at (TdOpt *opt, TdOptHook *hook, TdOptHookOpt options,
                                    const TdSite *site);
TD_API TdStatus td_opt_remove_hook (TdOpt *opt, const char *name);
/** g += rate p for every parameter. */
TD_API TdOptHook *td_weight_decay_new (double rate);
/** g += rate sign (p) for every parameter. */
TD_API TdOptHook *td_lasso_new (double rate);
/** Scale all gradients down when their common norm is above threshold. */
TD_API TdOptHook *td_gradient_clipping_new (double threshold);
/** g = min (max (g, lower), upper). */
TD_API TdOptHook *td_gradient_hard_clipping_new (double lower, double upper);
/** g += normal noise of variance eta / (1 + t)^0.55.  *Source*: Neelakantan et al. 2015. */
TD_API TdOptHook *td_gradient_noise_new (double eta);
typedef struct
{
  double threshold, weight_decay, eps;
  int end_;
} TdGradientLarsOpt;
#define TD_GRADIENT_LARS_DEFAULTS .threshold = 1e-2, .weight_decay = 0.0, .eps = 1e-9
/** g = rate (g + weight_decay p), rate = |p| / (eps + |g| + weight_decay |p|) where |p| is
 * above threshold, else 1.  *Source*: You et al. 2017; chainer.optimizer_hooks.GradientLARS. */
TD_API TdOptHook *td_gradient_lars_new_ (const TdGradientLarsOpt *options);
TD_API TdOptHook *td_gradient_lars_new_at (TdGradientLarsOpt options, const TdSite *site);
/** Called for each parameter; key, param and grad are lent for the call. */
typedef TdStatus (*TdOptHookFn) (void *user, TdOpt *opt, const char *key, TdVar *param,
                                 TdVar *grad);
/** A hook of one's own. */
TD_API TdOptHook *td_opt_hook_new (const char *name, TdOptHookFn call, void *user);

/* --- loss scaling --------------------------------------------------------------------------
 */
typedef struct
{
  int64_t interval; /**< dynamic: updates until the scale has doubled */
  double scale;     /**< above 0: always this; 0: dynamic */
  int end_;
} TdLossScalingOpt;
#define TD_LOSS_SCALING_DEFAULTS .interval = 1000, .scale = 0
/** Compute gradients of the loss times a scale.  A dynamic scale starts at 1, doubles until a
 * gradient is not finite, then halves at each such update, which is skipped, and grows by
 * 2^(1 / interval) at the others; it stays within 1 and 65504.  Use td_opt_backward with it.
 * *Sync*: none on a device that decides by itself, unless hooks other than weight decay, lasso
 * and gradient clipping must know; then td_opt_loss_scale, td_opt_skipped,
 * td_opt_first_overflow and td_opt_count_of wait for what they return, and a recording has
 * an update's decision with the next update. */
TD_API TdStatus td_opt_loss_scaling_ (TdOpt *opt, const TdLossScalingOpt *options);
TD_API TdStatus td_opt_loss_scaling_at (TdOpt *opt, TdLossScalingOpt options,
                                        const TdSite *site);
/** The scale that the next td_opt_backward multiplies by. */
TD_API double td_opt_loss_scale (const TdOpt *opt);
/** td_backward of the loss times the scale; the update divides the gradients of the target that
 * came this way, before any hook sees them.  A gradient that the loss has is scaled too.
 * *Errors*: TD_ERR_ARG for a scale that is 0 or infinite in the dtype of the loss, or in that
 * in which a gradient is divided; TD_ERR_STATE where gradients wait that are times another
 * scale, and for a loss that is computed from such a gradient. */
TD_API TdStatus td_opt_backward (TdOpt *opt, TdVar *loss, unsigned flags);
TD_API TdStatus td_opt_backward_at (TdOpt *opt, TdVar *loss, unsigned flags,
                                    const TdSite *site);
/** Number of updates that were left out because a gradient was not finite. */
TD_API int64_t td_opt_skipped (const TdOpt *opt);
/** The key of the parameter ("l1/W") whose gradient was the first that was not finite, in the
 * last update that was left out; NULL: none was.  *Owner*: opt. */
TD_API const char *td_opt_first_overflow (const TdOpt *opt);

/* clang-format off */
#if !defined(TD_NO_SITES)
#define td_sgd_new(...) td__sgd_new_x (__VA_ARGS__, .end_ = 0)
#define td__sgd_new_x(target, ...) TD_CALL_ (td_sgd_new_at (target, TD_OPTIONS_ (TdSgdOpt, TD_SGD_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_momentum_sgd_new(...) td__momentum_sgd_new_x (__VA_ARGS__, .end_ = 0)
#define td__momentum_sgd_new_x(target, ...) TD_CALL_ (td_momentum_sgd_new_at (target, TD_OPTIONS_ (TdMomentumSgdOpt, TD_MOMENTUM_SGD_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_corrected_momentum_sgd_new(...) td__corrected_momentum_sgd_new_x (__VA_ARGS__, .end_ = 0)
#define td__corrected_momentum_sgd_new_x(target, ...) TD_CALL_ (td_corrected_momentum_sgd_new_at (target, TD_OPTIONS_ (TdMomentumSgdOpt, TD_MOMENTUM_SGD_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_nesterov_ag_new(...) td__nesterov_ag_new_x (__VA_ARGS__, .end_ = 0)
#define td__nesterov_ag_new_x(target, ...) TD_CALL_ (td_nesterov_ag_new_at (target, TD_OPTIONS_ (TdMomentumSgdOpt, TD_MOMENTUM_SGD_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_adagrad_new(...) td__adagrad_new_x (__VA_ARGS__, .end_ = 0)
#define td__adagrad_new_x(target, ...) TD_CALL_ (td_adagrad_new_at (target, TD_OPTIONS_ (TdAdaGradOpt, TD_ADAGRAD_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_adadelta_new(...) td__adadelta_new_x (__VA_ARGS__, .end_ = 0)
#define td__adadelta_new_x(target, ...) TD_CALL_ (td_adadelta_new_at (target, TD_OPTIONS_ (TdAdaDeltaOpt, TD_ADADELTA_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_rmsprop_new(...) td__rmsprop_new_x (__VA_ARGS__, .end_ = 0)
#define td__rmsprop_new_x(target, ...) TD_CALL_ (td_rmsprop_new_at (target, TD_OPTIONS_ (TdRmspropOpt, TD_RMSPROP_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_rmsprop_graves_new(...) td__rmsprop_graves_new_x (__VA_ARGS__, .end_ = 0)
#define td__rmsprop_graves_new_x(target, ...) TD_CALL_ (td_rmsprop_graves_new_at (target, TD_OPTIONS_ (TdRmspropGravesOpt, TD_RMSPROP_GRAVES_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_smorms3_new(...) td__smorms3_new_x (__VA_ARGS__, .end_ = 0)
#define td__smorms3_new_x(target, ...) TD_CALL_ (td_smorms3_new_at (target, TD_OPTIONS_ (TdSmorms3Opt, TD_SMORMS3_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_adam_new(...) td__adam_new_x (__VA_ARGS__, .end_ = 0)
#define td__adam_new_x(target, ...) TD_CALL_ (td_adam_new_at (target, TD_OPTIONS_ (TdAdamOpt, TD_ADAM_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_gradient_lars_new(...) TD_CALL_ (td_gradient_lars_new_at (TD_OPTIONS_ (TdGradientLarsOpt, TD_GRADIENT_LARS_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_opt_loss_scaling(...) td__opt_loss_scaling_x (__VA_ARGS__, .end_ = 0)
#define td__opt_loss_scaling_x(opt, ...) TD_CALL_ (td_opt_loss_scaling_at (opt, TD_OPTIONS_ (TdLossScalingOpt, TD_LOSS_SCALING_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_opt_add_hook(opt, ...) td__opt_add_hook_x (opt, __VA_ARGS__, .end_ = 0)
#define td__opt_add_hook_x(opt, hook, ...) TD_CALL_ (td_opt_add_hook_at (opt, hook, TD_OPTIONS_ (TdOptHookOpt, TD_OPT_HOOK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_opt_update(...) td_opt_update_at (__VA_ARGS__, TD_HERE)
#define td_opt_backward(...) td_opt_backward_at (__VA_ARGS__, TD_HERE)
#endif
/* clang-format on */

TD_END_DECLS
