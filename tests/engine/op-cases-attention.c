/* Rows for attention, in one operation, from others, and its gradient.  The reference is the
 * definition as loops in double precision.
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"

#include <math.h>
#include <string.h>

#define S(...) TD_SHAPE (__VA_ARGS__)
#define CALL(name, ...)                                                                        \
  static void call_##name (TdVar *const *x, TdVar **y)                                         \
  {                                                                                            \
    __VA_ARGS__;                                                                               \
  }
#define WHOLE(name)                                                                            \
  static void whole_##name (const OpCase *c, const double *const *in, double *const *out)

enum
{
  B = 4, /* two times two heads */
  Q = 3,
  K = 4,
  D = 2,
  E = 3
};

/* Query 1 of each first mask sees nothing. */
static const double mask[2 * Q * K]
    = { 1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0, 1, 0, 1, 0, 0, 1 };

/* How a row hides keys from queries. */
typedef struct
{
  double scale;
  int64_t mask_every; /* as attributes of the operation */
  bool causal;
  bool masked;
} Way;
static const Way plain = { 0, 1, false, false }, causal = { 0, 1, true, false };
static const Way masked = { 0.5, 2, false, true }, both = { 0, B, true, true };

/* P (K) of query i of batch b. */
static void
weights (const Way *w, const double *const *in, int64_t b, int64_t i, double *P)
{
  double sum = 0;

  for (int64_t j = 0; j < K; j++)
    {
      const bool hidden = (w->causal && j > i + K - Q)
                          || (w->masked && mask[(b / w->mask_every * Q + i) * K + j] == 0);
      double s = 0;

      for (int64_t d = 0; d < D; d++)
        s += in[0][(b * Q + i) * D + d] * in[1][(b * K + j) * D + d];
      P[j] = hidden ? 0 : exp (s * (w->scale != 0 ? w->scale : 1 / sqrt (D)));
      sum += P[j];
    }
  for (int64_t j = 0; j < K && sum != 0; j++)
    P[j] /= sum;
}

static void
forward (const Way *w, const double *const *in, double *out)
{
  for (int64_t row = 0; row < B * Q; row++)
    {
      double P[K];

      weights (w, in, row / Q, row % Q, P);
      for (int64_t j = 0; j < K; j++)
        for (int64_t e = 0; e < E; e++)
          out[row * E + e] += P[j] * in[2][(row / Q * K + j) * E + e];
    }
}

static void
backward (const Way *w, const double *const *in, const double *gy, double *const *out)
{
  const double c = w->scale != 0 ? w->scale : 1 / sqrt (D);

  for (int64_t row = 0; row < B * Q; row++)
    {
      const int64_t b = row / Q;
      double P[K], gP[K] = { 0 }, r = 0;

      weights (w, in, b, row % Q, P);
      for (int64_t j = 0; j < K; j++)
        for (int64_t e = 0; e < E; e++)
          {
            gP[j] += gy[row * E + e] * in[2][(b * K + j) * E + e];
            out[2][(b * K + j) * E + e] += P[j] * gy[row * E + e];
          }
      for (int64_t j = 0; j < K; j++)
        r += P[j] * gP[j];
      for (int64_t j = 0; j < K; j++)
        for (int64_t d = 0; d < D; d++)
          {
            out[0][row * D + d] += c * P[j] * (gP[j] - r) * in[1][(b * K + j) * D + d];
            out[1][(b * K + j) * D + d] += c * P[j] * (gP[j] - r) * in[0][row * D + d];
          }
    }
}

static TdVar *
attend (TdVar *const *x, TdAttentionOpt o)
{
  return td_scaled_dot_product_attention_ (x[0], x[1], x[2], &o);
}

/* The mask as a constant, so that differences are taken in q, k and v only. */
static TdVar *
constant_mask (const TdVar *like)
{
  return td_cast (td_tensor (TD_F64, S (2, Q, K), mask), td_dtype (like));
}

/* The gradient as backward calls it. */
static void
apply_grad (const Way *w, TdVar *const *x, TdVar **y)
{
  TdVar *in[] = { x[0], x[1], x[2], NULL }, *of[2];
  TdVar *all[] = { x[0], x[1], x[2], x[3], NULL, NULL, NULL };

  if (w->masked)
    in[3] = all[6] = constant_mask (x[0]);
  td_apply (&td__scaled_dot_product_attention_class, w, in, w->masked ? 4 : 3, of, 2);
  all[4] = of[0];
  all[5] = of[1];
  td_apply (&td__scaled_dot_product_attention_grad_class, w, all, w->masked ? 7 : 6, y, 3);
}

CALL (plain, y[0] = attend (x, (TdAttentionOpt){ .composed = false }))
CALL (causal, y[0] = attend (x, (TdAttentionOpt){ .causal = true }))
CALL (composed, y[0] = attend (x, (TdAttentionOpt){ .causal = true, .composed = true }))
CALL (both, y[0] = attend (x, (TdAttentionOpt){ .causal = true, .mask = x[3] }))
/* With heads: (2, 2, n, d), one mask for the heads of each. */
static TdVar *
with_heads (TdVar *const *x, bool in_parts)
{
  TdVar *of[3];

  for (int i = 0; i < 3; i++)
    {
      const TdShape s = td_shape (x[i]);

      of[i] = td_poisoned (x[i]) ? x[i] : td_reshape (x[i], S (2, 2, s.dim[1], s.dim[2]));
    }
  return td_reshape (attend (of, (TdAttentionOpt){ .mask = constant_mask (of[0]),
                                                   .scale = 0.5,
                                                   .composed = in_parts }),
                     S (B, Q, E));
}
CALL (masked, y[0] = with_heads (x, false))
CALL (composed_masked, y[0] = with_heads (x, true))
CALL (causal_grad, apply_grad (&causal, x, y))
CALL (masked_grad, apply_grad (&masked, x, y))

#define FORWARD(name, way)                                                                     \
  WHOLE (name)                                                                                 \
  {                                                                                            \
    (void)c;                                                                                   \
    forward (&way, in, out[0]);                                                                \
  }
#define BACKWARD(name, way)                                                                    \
  WHOLE (name)                                                                                 \
  {                                                                                            \
    (void)c;                                                                                   \
    backward (&way, in, in[3], out);                                                           \
  }
FORWARD (plain, plain)
FORWARD (causal, causal)
FORWARD (composed, causal)
FORWARD (masked, masked)
FORWARD (composed_masked, masked)
FORWARD (both, both)
BACKWARD (causal_grad, causal)
BACKWARD (masked_grad, masked)

// clang-format off
#define X(...) { S (__VA_ARGS__), -1.5, 1.5, 0, 0, NULL }
#define MASK(...) { S (__VA_ARGS__), 0, 0, TD_F32, 0, mask }
#define QKV X (B, Q, D), X (B, K, D), X (B, K, E)
#define FUSED "scaled_dot_product_attention"
#define ROW(op_name, name, n, m, ...) \
  { .op = op_name, .variant = #name, .call = call_##name, .n_in = n, .n_out = m, .whole = whole_##name, .loose = 4, __VA_ARGS__ }

const OpCase op_cases_attention[] = {
  ROW (FUSED, plain, 3, 1, .in = { QKV }, .out = { S (B, Q, E) }),
  ROW (FUSED, causal, 3, 1, .in = { QKV }, .out = { S (B, Q, E) }),
  ROW (FUSED, composed, 3, 1, .in = { QKV }, .out = { S (B, Q, E) }),
  ROW (FUSED, masked, 3, 1, .in = { QKV }, .out = { S (B, Q, E) }),
  ROW (FUSED, composed_masked, 3, 1, .in = { QKV }, .out = { S (B, Q, E) }),
  ROW (FUSED, both, 4, 1, .in = { QKV, MASK (Q, K) }, .out = { S (B, Q, E) }, .flags = OP_NO_GRAD),
  ROW ("scaled_dot_product_attention_grad", causal_grad, 4, 3, .in = { QKV, X (B, Q, E) }, .out = { S (B, Q, D), S (B, K, D), S (B, K, E) }),
  ROW ("scaled_dot_product_attention_grad", masked_grad, 4, 3, .in = { QKV, X (B, Q, E) }, .out = { S (B, Q, D), S (B, K, D), S (B, K, E) }),
};
const int n_op_cases_attention = (int)(sizeof op_cases_attention / sizeof op_cases_attention[0]);

#define E3(d, s, e, t, f, u) 3, { { d, s }, { e, t }, { f, u } }
#define E4(d, s, e, t, f, u, g, v) 4, { { d, s }, { e, t }, { f, u }, { g, v } }
const OpError op_errors_attention[] = {
  { FUSED, call_plain, E3 (TD_F32, S (2, 3, 4), TD_F32, S (2, 5, 3), TD_F32, S (2, 5, 3)), TD_ERR_SHAPE, "scaled_dot_product_attention: q.shape[2] == k.shape[2] expected, got 4 != 3: q (2, 3, 4) f32, k (2, 5, 3) f32, v (2, 5, 3) f32" },
  { FUSED, call_plain, E3 (TD_F32, S (3, 4), TD_F32, S (5, 4), TD_F32, S (2, 5, 3)), TD_ERR_SHAPE, "scaled_dot_product_attention: q, k and v of 3 axes, or 4 with heads, expected, got 2, 2 and 3" },
  { FUSED, call_both, E4 (TD_F32, S (2, 3, 4), TD_F32, S (2, 5, 4), TD_F32, S (2, 5, 3), TD_F32, S (3, 4)), TD_ERR_SHAPE, "scaled_dot_product_attention: mask.shape[2] == k.shape[1] expected, got 4 != 5: q (2, 3, 4) f32, k (2, 5, 4) f32, v (2, 5, 3) f32, mask (1, 3, 4) f32" },
};
// clang-format on
const int n_op_errors_attention
    = (int)(sizeof op_errors_attention / sizeof op_errors_attention[0]);
