/* The rules by which optimizers update, and hooks change gradients, once, for every compiler
 * that makes kernels.  They have declared `late`, by
 * TD_UPDATE_LATE (u).
 *
 * A list of X (S, T, kind, name, arrays, setup, body): `setup` declares constants from the
 * TdUpdate u, `body` updates element i of p, g and the states a, b, c, of which there are
 * arrays - 2. Chainer's arithmetic, in the dtype T of the parameter, root its square root.
 * SPDX-License-Identifier: MIT */
#pragma once

#ifdef __CUDACC__
#define TD_SCALE_FUNCTION static __device__ inline
#else
#define TD_SCALE_FUNCTION static inline
#endif

/** The largest number of half precision: Chainer's limit of a dynamic scale. */
#define TD_SCALE_MOST 65504.0

/** How a scale follows gradients: doubled till some are not finite for the first time; then
 * halved where they are not, and grown by 2^(1 / interval) where they are.  numbers: of
 * TdScaleNumber, TD_SCALE_NEXT being the scale of what was looked at. */
TD_SCALE_FUNCTION void
td_scale_next (double *numbers, bool overflow, double growth)
{
  double scale = numbers[TD_SCALE_NEXT];

  numbers[TD_SCALE_OF_GRADIENTS] = scale;
  numbers[TD_SCALE_SKIPS] = overflow ? 1 : 0;
  numbers[TD_SCALE_SKIPPED] += overflow ? 1 : 0;
  if (overflow)
    numbers[TD_SCALE_SEEN] = 1;
  scale *= overflow ? 0.5 : numbers[TD_SCALE_SEEN] != 0 ? growth : 2;
  numbers[TD_SCALE_NEXT] = scale < 1 ? 1 : scale > TD_SCALE_MOST ? TD_SCALE_MOST : scale;
}

/* Not all updates that the host has counted were done: the step is one of before. */
#define TD_UPDATE_LATE(u)                                                                      \
  ((u)->decided != NULL ? (int)((u)->decided[TD_SCALE_SKIPPED] - (u)->n_known) : 0)
/* Nothing is updated. */
#define TD_UPDATE_SKIPS(u, kind)                                                               \
  ((u)->decided != NULL && (kind) != TD_UPDATE_UNSCALE && (u)->decided[TD_SCALE_SKIPS] != 0)

// clang-format off
/* The moments of Adam, and the step: v is what its root is taken of. */
#define TD_OF_STEP(what) (late == 0 ? u->what : u->earlier[late - 1].what)
#define TD_ADAM_SETUP(T)                                                                       \
  const T b1 = (T)(1 - u->beta1), b2 = (T)(1 - u->beta2), eps = (T)u->eps;                     \
  const T alpha = (T)TD_OF_STEP (alpha_t), eta = (T)u->eta, decay = (T)u->weight_decay;        \
  const T lower __attribute__ ((unused)) = (T)TD_OF_STEP (lower);                              \
  const T upper __attribute__ ((unused)) = (T)TD_OF_STEP (upper)
#define TD_ADAM_MOMENTS(T)                                                                     \
  const T mi = a[i] + b1 * (g[i] - a[i]), vi = b[i] + b2 * (g[i] * g[i] - b[i]);               \
  a[i] = mi;                                                                                   \
  b[i] = vi
#define TD_ADAM_HIGHEST(T)                                                                     \
  const T vh = vi > c[i] || vi != vi ? vi : c[i];                                              \
  c[i] = vh
#define TD_ADAM_STEP(v, root) p[i] -= eta * (alpha * mi / (root (v) + eps) + decay * p[i])
#define TD_BOUND_STEP(T, v, root)                                                              \
  const T step = alpha / (root (v) + eps);                                                     \
  const T kept = step > upper ? upper : step < lower ? lower : step;                           \
  p[i] -= eta * (kept * mi + decay * p[i])

#define TD_UPDATES(X, S, T, root)                                                              \
  X (S, T, SGD, sgd, 2, const T lr = (T)u->lr, p[i] -= lr * g[i])                              \
  X (S, T, MOMENTUM_SGD, momentum_sgd, 3, const T lr = (T)u->lr; const T momentum = (T)u->momentum, \
               const T v = momentum * a[i] - lr * g[i]; a[i] = v; p[i] += v)                   \
  X (S, T, CORRECTED_MOMENTUM_SGD, corrected_momentum_sgd, 3,                                  \
               const T lr = (T)u->lr; const T momentum = (T)u->momentum,                       \
               const T v = momentum * a[i] - g[i]; a[i] = v; p[i] += lr * v)                   \
  X (S, T, NESTEROV_AG, nesterov_ag, 3,                                                        \
               const T lr = (T)u->lr; const T momentum = (T)u->momentum;                       \
               const T squared = (T)(u->momentum * u->momentum);                               \
               const T both = (T)((1 + u->momentum) * u->lr),                                  \
               const T v = momentum * a[i] - lr * g[i]; a[i] = v;                              \
               p[i] = p[i] + squared * v - both * g[i])                                        \
  X (S, T, ADA_GRAD, ada_grad, 3, const T lr = (T)u->lr; const T eps = (T)u->eps,              \
               const T h = a[i] + g[i] * g[i]; a[i] = h; p[i] -= lr * g[i] / (root (h) + eps)) \
  X (S, T, ADA_DELTA, ada_delta, 4,                                                            \
               const T rho = (T)u->rho; const T rest = (T)(1 - u->rho); const T eps = (T)u->eps, \
               const T msg = rho * a[i] + rest * g[i] * g[i];                                  \
               const T dx = root ((b[i] + eps) / (msg + eps)) * g[i];                          \
               a[i] = msg; b[i] = rho * b[i] + rest * dx * dx; p[i] -= dx)                     \
  X (S, T, RMSPROP, rmsprop, 3,                                                                \
               const T lr = (T)u->lr; const T alpha = (T)u->alpha;                             \
               const T rest = (T)(1 - u->alpha); const T eps = (T)u->eps,                      \
               const T ms = alpha * a[i] + rest * g[i] * g[i]; a[i] = ms;                      \
               p[i] -= lr * g[i] / (root (ms) + eps))                                          \
  X (S, T, RMSPROP_INSIDE, rmsprop_inside, 3,                                                  \
               const T lr = (T)u->lr; const T alpha = (T)u->alpha;                             \
               const T rest = (T)(1 - u->alpha); const T eps = (T)u->eps,                      \
               const T ms = alpha * a[i] + rest * g[i] * g[i]; a[i] = ms;                      \
               p[i] -= lr * g[i] / root (ms + eps))                                            \
  X (S, T, RMSPROP_GRAVES, rmsprop_graves, 5,                                                  \
               const T lr = (T)u->lr; const T alpha = (T)u->alpha;                             \
               const T rest = (T)(1 - u->alpha); const T momentum = (T)u->momentum;            \
               const T eps = (T)u->eps,                                                        \
               const T m2 = alpha * a[i] + rest * g[i] * g[i];                                 \
               const T m1 = alpha * b[i] + rest * g[i];                                        \
               const T delta = momentum * c[i] - lr * g[i] / root (m2 - m1 * m1 + eps);        \
               a[i] = m2; b[i] = m1; c[i] = delta; p[i] += delta)                              \
  X (S, T, SMORMS3, smorms3, 5, const T lr = (T)u->lr; const T eps = (T)u->eps,                \
               const T r = 1 / (a[i] + 1);                                                     \
               const T m1 = (1 - r) * b[i] + r * g[i];                                         \
               const T m2 = (1 - r) * c[i] + r * g[i] * g[i];                                  \
               const T x = m1 * m1 / (m2 + eps);                                               \
               const T least = x < lr || x != x ? x : lr;                                      \
               p[i] -= g[i] * least / (root (m2) + eps);                                       \
               a[i] = 1 + a[i] * (1 - x); b[i] = m1; c[i] = m2)                                \
  X (S, T, ADAM, adam, 4, TD_ADAM_SETUP (T), TD_ADAM_MOMENTS (T); TD_ADAM_STEP (vi, root))     \
  X (S, T, AMSGRAD, amsgrad, 5, TD_ADAM_SETUP (T),                                             \
               TD_ADAM_MOMENTS (T); TD_ADAM_HIGHEST (T); TD_ADAM_STEP (vh, root))              \
  X (S, T, ADABOUND, adabound, 4, TD_ADAM_SETUP (T), TD_ADAM_MOMENTS (T); TD_BOUND_STEP (T, vi, root)) \
  X (S, T, AMSBOUND, amsbound, 5, TD_ADAM_SETUP (T),                                           \
               TD_ADAM_MOMENTS (T); TD_ADAM_HIGHEST (T); TD_BOUND_STEP (T, vh, root))          \
  X (S, T, WEIGHT_DECAY, weight_decay, 2, const T rate = (T)u->rate, p[i] += rate * g[i])      \
  X (S, T, LASSO, lasso, 2, const T rate = (T)u->rate,                                         \
               const T sign = g[i] > 0 ? (T)1 : g[i] < 0 ? (T)-1 : g[i]; p[i] += rate * sign)                 \
  X (S, T, UNSCALE, unscale, 1,                                                                \
               const T scale = (T)(u->decided != NULL ? u->decided[TD_SCALE_OF_GRADIENTS] : u->rate), \
               p[i] /= scale)                                                                  \
  X (S, T, CLIP, clip, 1, const T rate = (T)*u->by, p[i] *= rate)
// clang-format on
