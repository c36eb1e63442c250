/* Parameter updates and what optimizer hooks do to gradients, over contiguous numbers; compiled
 * once per instruction set.
 *
 * Chainer's arithmetic, in the dtype of the parameter; an array is read and written once.
 * SPDX-License-Identifier: MIT */
#include "vector.h"

#include <math.h>

/* `setup` declares constants, `body` updates element i of p, g and the states a, b, c. */
#define UPDATE_LOOP(S, T, name, setup, body)                                                   \
  static void name##_##S (const TdUpdate *u, void *ps, const void *gs, void *as, void *bs,     \
                          void *cs, int64_t n)                                                 \
  {                                                                                            \
    T *p = ps, *a __attribute__ ((unused)) = as, *b __attribute__ ((unused)) = bs,             \
      *c __attribute__ ((unused)) = cs;                                                        \
    const T *g = gs;                                                                           \
    setup;                                                                                     \
                                                                                               \
    _Pragma ("omp simd") for (int64_t i = 0; i < n; i++)                                       \
    {                                                                                          \
      body;                                                                                    \
    }                                                                                          \
  }

// clang-format off
/* The moments of Adam, and the step: v is what its root is taken of. */
#define ADAM_SETUP(T)                                                                          \
  const T b1 = (T)(1 - u->beta1), b2 = (T)(1 - u->beta2), eps = (T)u->eps;                     \
  const T alpha = (T)u->alpha_t, eta = (T)u->eta, decay = (T)u->weight_decay;                  \
  const T lower __attribute__ ((unused)) = (T)u->lower, upper __attribute__ ((unused)) = (T)u->upper
#define ADAM_MOMENTS(T)                                                                        \
  const T mi = a[i] + b1 * (g[i] - a[i]), vi = b[i] + b2 * (g[i] * g[i] - b[i]);               \
  a[i] = mi;                                                                                   \
  b[i] = vi
#define ADAM_HIGHEST(T)                                                                        \
  const T vh = vi > c[i] || vi != vi ? vi : c[i];                                              \
  c[i] = vh
#define ADAM_STEP(v, root) p[i] -= eta * (alpha * mi / (root (v) + eps) + decay * p[i])
#define BOUND_STEP(T, v, root)                                                                 \
  const T step = alpha / (root (v) + eps);                                                     \
  const T kept = step > upper ? upper : step < lower ? lower : step;                           \
  p[i] -= eta * (kept * mi + decay * p[i])

#define UPDATE_LOOPS(S, T, root)                                                               \
  UPDATE_LOOP (S, T, sgd, const T lr = (T)u->lr, p[i] -= lr * g[i])                            \
  UPDATE_LOOP (S, T, momentum_sgd, const T lr = (T)u->lr; const T momentum = (T)u->momentum,   \
               const T v = momentum * a[i] - lr * g[i]; a[i] = v; p[i] += v)                   \
  UPDATE_LOOP (S, T, corrected_momentum_sgd,                                                   \
               const T lr = (T)u->lr; const T momentum = (T)u->momentum,                       \
               const T v = momentum * a[i] - g[i]; a[i] = v; p[i] += lr * v)                   \
  UPDATE_LOOP (S, T, nesterov_ag,                                                              \
               const T lr = (T)u->lr; const T momentum = (T)u->momentum;                       \
               const T squared = (T)(u->momentum * u->momentum);                               \
               const T both = (T)((1 + u->momentum) * u->lr),                                  \
               const T v = momentum * a[i] - lr * g[i]; a[i] = v;                              \
               p[i] = p[i] + squared * v - both * g[i])                                        \
  UPDATE_LOOP (S, T, ada_grad, const T lr = (T)u->lr; const T eps = (T)u->eps,                 \
               const T h = a[i] + g[i] * g[i]; a[i] = h; p[i] -= lr * g[i] / (root (h) + eps)) \
  UPDATE_LOOP (S, T, ada_delta,                                                                \
               const T rho = (T)u->rho; const T rest = (T)(1 - u->rho); const T eps = (T)u->eps, \
               const T msg = rho * a[i] + rest * g[i] * g[i];                                  \
               const T dx = root ((b[i] + eps) / (msg + eps)) * g[i];                          \
               a[i] = msg; b[i] = rho * b[i] + rest * dx * dx; p[i] -= dx)                     \
  UPDATE_LOOP (S, T, rmsprop,                                                                  \
               const T lr = (T)u->lr; const T alpha = (T)u->alpha;                             \
               const T rest = (T)(1 - u->alpha); const T eps = (T)u->eps,                      \
               const T ms = alpha * a[i] + rest * g[i] * g[i]; a[i] = ms;                      \
               p[i] -= lr * g[i] / (root (ms) + eps))                                          \
  UPDATE_LOOP (S, T, rmsprop_inside,                                                           \
               const T lr = (T)u->lr; const T alpha = (T)u->alpha;                             \
               const T rest = (T)(1 - u->alpha); const T eps = (T)u->eps,                      \
               const T ms = alpha * a[i] + rest * g[i] * g[i]; a[i] = ms;                      \
               p[i] -= lr * g[i] / root (ms + eps))                                            \
  UPDATE_LOOP (S, T, rmsprop_graves,                                                           \
               const T lr = (T)u->lr; const T alpha = (T)u->alpha;                             \
               const T rest = (T)(1 - u->alpha); const T momentum = (T)u->momentum;            \
               const T eps = (T)u->eps,                                                        \
               const T m2 = alpha * a[i] + rest * g[i] * g[i];                                 \
               const T m1 = alpha * b[i] + rest * g[i];                                        \
               const T delta = momentum * c[i] - lr * g[i] / root (m2 - m1 * m1 + eps);        \
               a[i] = m2; b[i] = m1; c[i] = delta; p[i] += delta)                              \
  UPDATE_LOOP (S, T, smorms3, const T lr = (T)u->lr; const T eps = (T)u->eps,                  \
               const T r = 1 / (a[i] + 1);                                                     \
               const T m1 = (1 - r) * b[i] + r * g[i];                                         \
               const T m2 = (1 - r) * c[i] + r * g[i] * g[i];                                  \
               const T x = m1 * m1 / (m2 + eps);                                               \
               const T least = x < lr || x != x ? x : lr;                                      \
               p[i] -= g[i] * least / (root (m2) + eps);                                       \
               a[i] = 1 + a[i] * (1 - x); b[i] = m1; c[i] = m2)                                \
  UPDATE_LOOP (S, T, adam, ADAM_SETUP (T), ADAM_MOMENTS (T); ADAM_STEP (vi, root))             \
  UPDATE_LOOP (S, T, amsgrad, ADAM_SETUP (T),                                                  \
               ADAM_MOMENTS (T); ADAM_HIGHEST (T); ADAM_STEP (vh, root))                       \
  UPDATE_LOOP (S, T, adabound, ADAM_SETUP (T), ADAM_MOMENTS (T); BOUND_STEP (T, vi, root))     \
  UPDATE_LOOP (S, T, amsbound, ADAM_SETUP (T),                                                 \
               ADAM_MOMENTS (T); ADAM_HIGHEST (T); BOUND_STEP (T, vh, root))                   \
  UPDATE_LOOP (S, T, weight_decay, const T rate = (T)u->rate, p[i] += rate * g[i])             \
  UPDATE_LOOP (S, T, lasso, const T rate = (T)u->rate,                                         \
               const T sign = g[i] > 0 ? (T)1 : g[i] < 0 ? (T)-1 : g[i]; p[i] += rate * sign)

UPDATE_LOOPS (f32, float, sqrtf)
UPDATE_LOOPS (f64, double, sqrt)
// clang-format on

#define FILL_NAME_(isa) td__vector_fill_updates_##isa
#define FILL_NAME(isa) FILL_NAME_ (isa)
#define SET(kind, name)                                                                        \
  v->update[kind][TD_F32] = name##_f32;                                                        \
  v->update[kind][TD_F64] = name##_f64

void
FILL_NAME (TD_VECTOR_NAME) (TdVector *v)
{
  SET (TD_UPDATE_SGD, sgd);
  SET (TD_UPDATE_MOMENTUM_SGD, momentum_sgd);
  SET (TD_UPDATE_CORRECTED_MOMENTUM_SGD, corrected_momentum_sgd);
  SET (TD_UPDATE_NESTEROV_AG, nesterov_ag);
  SET (TD_UPDATE_ADA_GRAD, ada_grad);
  SET (TD_UPDATE_ADA_DELTA, ada_delta);
  SET (TD_UPDATE_RMSPROP, rmsprop);
  SET (TD_UPDATE_RMSPROP_INSIDE, rmsprop_inside);
  SET (TD_UPDATE_RMSPROP_GRAVES, rmsprop_graves);
  SET (TD_UPDATE_SMORMS3, smorms3);
  SET (TD_UPDATE_ADAM, adam);
  SET (TD_UPDATE_AMSGRAD, amsgrad);
  SET (TD_UPDATE_ADABOUND, adabound);
  SET (TD_UPDATE_AMSBOUND, amsbound);
  SET (TD_UPDATE_WEIGHT_DECAY, weight_decay);
  SET (TD_UPDATE_LASSO, lasso);
}
