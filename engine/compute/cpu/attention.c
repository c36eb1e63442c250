/* Scaled dot-product attention on the CPU without the matrix of all weights: blocks of queries
 * meet blocks of keys, with the maximum and the sum of each row so far; backward makes the
 * weights again from the logarithm of the sums.
 *
 * Rows of queries that may look at no key give zeros.
 *
 * *Source*: Milakov and Gimelshein, 2018 (online softmax); Dao et al., 2022.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "cpu.h"
#include "gemm.h"
#include "halves.h"
#include "twins.h"
#include "vector.h"

enum
{
  QUERIES = 128, /* of a block, at most */
  KEYS = 256,
  FULL_VECTOR = 16 /* loops over other lengths end in single numbers */
};

typedef struct
{
  const TdAttention *a;
  const TdTensor *in;
  TdTensor *out;
  int64_t queries;  /* of a block */
  int64_t n_blocks; /* of queries, a batch */
  const void *mask;
  TdStatus status;
} Job;

static inline int64_t
smaller (int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* How many keys, from the first, row i may look at. */
static inline int64_t
visible (const TdAttention *a, int64_t i)
{
  const int64_t n = i + 1 + a->n_k - a->n_q;

  return !a->causal ? a->n_k : n < 0 ? 0 : smaller (n, a->n_k);
}

static inline TdStatus
product_float (bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha, double beta,
               const float *a, const float *b, float *c)
{
  const TdGemm g = {
    .ta = ta, .tb = tb, .m = m, .n = n, .k = k, .batch = 1, .alpha = alpha, .beta = beta
  };

  return td__gemm_prefers_blas () ? td__gemm_blas_f32 (&g, a, b, c)
                                  : td__gemm_f32 (td__gemm_tiles (), &g, a, b, c);
}

static inline TdStatus
product_double (bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha, double beta,
                const double *a, const double *b, double *c)
{
  const TdGemm g = {
    .ta = ta, .tb = tb, .m = m, .n = n, .k = k, .batch = 1, .alpha = alpha, .beta = beta
  };

  return td__gemm_f64 (&g, a, b, c);
}

/* The same among keys [j0, j0 + n). */
static inline int64_t
seen (const TdAttention *a, int64_t i, int64_t j0, int64_t n)
{
  const int64_t k = visible (a, i) - j0;

  return k < 0 ? 0 : smaller (k, n);
}

/* How many queries make a block.  Those that look back only see few keys if they are first: two
 * blocks leave out a quarter of all scores, more and smaller ones are slower products. */
static int64_t
queries_of (const TdAttention *a)
{
  const int64_t half = (a->n_q / 2 + FULL_VECTOR - 1) / FULL_VECTOR * FULL_VECTOR;

  return a->causal && half > FULL_VECTOR && half < QUERIES ? half : QUERIES;
}

#define DEFINE_ATTENTION(T, DTYPE)                                                             \
  /* Weights p into the slopes of their scores; gp: the slopes of p. */                        \
  static inline void slopes_##T##_body (T *restrict p, const T *restrict gp, int64_t n,        \
                                        T delta, T scale)                                      \
  {                                                                                            \
    for (int64_t c = 0; c < n; c++)                                                            \
      p[c] = p[c] * (gp[c] - delta) * scale;                                                   \
  }                                                                                            \
  TD_TWINS (slopes_##T, (T *restrict p, const T *restrict gp, int64_t n, T delta, T scale),    \
            (p, gp, n, delta, scale))                                                          \
                                                                                               \
  /* The mask's rows of batch b, or NULL. */                                                   \
  static const T *mask_of_##T (const Job *j, int64_t b)                                        \
  {                                                                                            \
    return j->mask == NULL                                                                     \
               ? NULL                                                                          \
               : (const T *)j->mask + b / j->a->mask_every * j->a->n_q * j->a->n_k;            \
  }                                                                                            \
                                                                                               \
  /* Scores of queries [i0, i0 + m) and keys [j0, j0 + n): s (m, n), -inf where hidden. */     \
  static TdStatus scores_##T (const Job *j, int64_t b, int64_t i0, int64_t m, int64_t j0,      \
                              int64_t n, T *scaled, T *s)                                      \
  {                                                                                            \
    const TdAttention *a = j->a;                                                               \
    const T *q = (const T *)j->in[0].data + (b * a->n_q + i0) * a->d;                          \
    const T *k = (const T *)j->in[1].data + (b * a->n_k + j0) * a->d;                          \
    const T *mask = mask_of_##T (j, b);                                                        \
    TdStatus status;                                                                           \
                                                                                               \
    td__vector->unary[TD_UNARY_MUL_SCALAR][DTYPE](q, scaled, m * a->d, a->scale, 0);           \
    status = product_##T (false, true, m, n, a->d, 1, 0, scaled, k, s);                        \
    for (int64_t i = 0; i < m; i++)                                                            \
      {                                                                                        \
        const T *row = mask != NULL ? mask + (i0 + i) * a->n_k + j0 : NULL;                    \
                                                                                               \
        for (int64_t c = seen (a, i0 + i, j0, n); c < n; c++)                                  \
          s[i * n + c] = -(T)INFINITY;                                                         \
        for (int64_t c = 0; row != NULL && c < n; c++)                                         \
          s[i * n + c] = row[c] != 0 ? s[i * n + c] : -(T)INFINITY;                            \
      }                                                                                        \
    return status;                                                                             \
  }                                                                                            \
                                                                                               \
  /* Scores of one row into e^(score - top), 0 from `seen` on. */                              \
  static void weights_##T (T *s, int64_t seen, int64_t n, double top)                          \
  {                                                                                            \
    const int64_t end = smaller ((seen + FULL_VECTOR - 1) / FULL_VECTOR * FULL_VECTOR, n);     \
                                                                                               \
    td__vector->unary[TD_UNARY_ADD_SCALAR][DTYPE](s, s, end, -top, 0);                         \
    td__vector->unary[TD_UNARY_EXP][DTYPE](s, s, end, 0, 0);                                   \
    memset (s + end, 0, (size_t)(n - end) * sizeof *s);                                        \
  }                                                                                            \
                                                                                               \
  /* One more block of keys for one row: weights into s, the old sum and output scaled down.   \
   */                                                                                          \
  static void soften_##T (T *s, int64_t seen, int64_t n, T *y, int64_t d_v, T *top,            \
                          double *sum)                                                         \
  {                                                                                            \
    double best = (double)*top, now = 0;                                                       \
                                                                                               \
    td__vector->max[DTYPE](s, n, &best);                                                       \
    if (best == -INFINITY)                                                                     \
      {                                                                                        \
        memset (s, 0, (size_t)n * sizeof *s);                                                  \
        return;                                                                                \
      }                                                                                        \
    if (*top != (T)best && *sum != 0)                                                          \
      {                                                                                        \
        const double shrink = exp ((double)*top - best);                                       \
                                                                                               \
        td__vector->unary[TD_UNARY_MUL_SCALAR][DTYPE](y, y, d_v, shrink, 0);                   \
        *sum *= shrink;                                                                        \
      }                                                                                        \
    *top = (T)best;                                                                            \
    weights_##T (s, seen, n, best);                                                            \
    td__vector->sum[DTYPE](s, n, &now);                                                        \
    *sum += now;                                                                               \
  }                                                                                            \
                                                                                               \
  /* Queries [i0, i0 + m) of batch b, start to end. */                                         \
  static TdStatus forward_block_##T (const Job *j, int64_t b, int64_t i0, int64_t m, T *s)     \
  {                                                                                            \
    const TdAttention *a = j->a;                                                               \
    const T *v = (const T *)j->in[2].data + b * a->n_k * a->d_v;                               \
    T *y = (T *)j->out[0].data + (b * a->n_q + i0) * a->d_v;                                   \
    T *lse = (T *)j->out[1].data + b * a->n_q + i0, top[QUERIES];                              \
    double sum[QUERIES] = { 0 };                                                               \
    const int64_t end = visible (a, i0 + m - 1);                                               \
    TdStatus status = TD_OK;                                                                   \
                                                                                               \
    for (int64_t i = 0; i < m; i++)                                                            \
      top[i] = -(T)INFINITY;                                                                   \
    memset (y, 0, (size_t)(m * a->d_v) * sizeof *y);                                           \
    for (int64_t j0 = 0; j0 < end && status == TD_OK; j0 += KEYS)                              \
      {                                                                                        \
        const int64_t n = smaller (KEYS, end - j0);                                            \
                                                                                               \
        status = scores_##T (j, b, i0, m, j0, n, s + QUERIES * KEYS, s);                       \
        for (int64_t i = 0; i < m; i++)                                                        \
          soften_##T (s + i * n, seen (a, i0 + i, j0, n), n, y + i * a->d_v, a->d_v, &top[i],  \
                      &sum[i]);                                                                \
        if (status == TD_OK)                                                                   \
          status = product_##T (false, false, m, a->d_v, n, 1, 1, s, v + j0 * a->d_v, y);      \
      }                                                                                        \
    for (int64_t i = 0; i < m; i++)                                                            \
      {                                                                                        \
        if (sum[i] != 0)                                                                       \
          td__vector->unary[TD_UNARY_MUL_SCALAR][DTYPE](y + i * a->d_v, y + i * a->d_v,        \
                                                        a->d_v, 1 / sum[i], 0);                \
        lse[i] = sum[i] != 0 ? (T)((double)top[i] + log (sum[i])) : (T)INFINITY;               \
      }                                                                                        \
    return status;                                                                             \
  }                                                                                            \
                                                                                               \
  static void forward_##T (int64_t begin, int64_t end, int worker, void *context)              \
  {                                                                                            \
    Job *j = context;                                                                          \
    T *s = td__cpu_scratch (TD_SCRATCH_IMAGE,                                                  \
                            (size_t)(QUERIES * (KEYS + j->a->d)) * sizeof *s);                 \
    TdStatus status = s == NULL ? TD_ERR_MEMORY : TD_OK;                                       \
                                                                                               \
    for (int64_t k = begin; k < end && status == TD_OK; k++)                                   \
      {                                                                                        \
        const int64_t i0 = k % j->n_blocks * j->queries;                                       \
                                                                                               \
        status = forward_block_##T (j, k / j->n_blocks, i0,                                    \
                                    smaller (j->queries, j->a->n_q - i0), s);                  \
      }                                                                                        \
    if (status != TD_OK)                                                                       \
      __atomic_store_n (&j->status, status, __ATOMIC_RELAXED);                                 \
  }                                                                                            \
                                                                                               \
  /* Queries [i0, i0 + m) with keys [j0, j0 + n): add what they give to gq, gk and gv. */      \
  static TdStatus backward_block_##T (const Job *j, int64_t b, int64_t i0, int64_t m,          \
                                      int64_t j0, int64_t n, const T *delta, T *room)          \
  {                                                                                            \
    const TdAttention *a = j->a;                                                               \
    const int64_t qs = b * a->n_q + i0, ks = b * a->n_k + j0;                                  \
    const T *q = (const T *)j->in[0].data + qs * a->d;                                         \
    const T *k = (const T *)j->in[1].data + ks * a->d;                                         \
    const T *v = (const T *)j->in[2].data + ks * a->d_v;                                       \
    const T *gy = (const T *)j->in[3].data + qs * a->d_v;                                      \
    const T *lse = (const T *)j->in[5].data + qs;                                              \
    T *gq = (T *)j->out[0].data + qs * a->d, *gk = (T *)j->out[1].data + ks * a->d;            \
    T *gv = (T *)j->out[2].data + ks * a->d_v;                                                 \
    T *p = room, *gp = p + QUERIES * KEYS, *scaled = gp + QUERIES * KEYS;                      \
    TdStatus status = scores_##T (j, b, i0, m, j0, n, scaled, p);                              \
                                                                                               \
    for (int64_t i = 0; i < m; i++)                                                            \
      weights_##T (p + i * n, seen (a, i0 + i, j0, n), n, (double)lse[i]);                     \
    if (status == TD_OK)                                                                       \
      status = product_##T (true, false, n, a->d_v, m, 1, 1, p, gy, gv);                       \
    if (status == TD_OK)                                                                       \
      status = product_##T (false, true, m, n, a->d_v, 1, 0, gy, v, gp);                       \
    for (int64_t i = 0; i < m; i++)                                                            \
      slopes_##T (p + i * n, gp + i * n, n, delta[i0 + i], (T)a->scale);                       \
    if (status == TD_OK)                                                                       \
      status = product_##T (false, false, m, a->d, n, 1, 1, p, k, gq);                         \
    if (status == TD_OK)                                                                       \
      status = product_##T (true, false, n, a->d, m, 1, 1, p, q, gk);                          \
    return status;                                                                             \
  }                                                                                            \
                                                                                               \
  static TdStatus backward_batch_##T (const Job *j, int64_t b, T *room)                        \
  {                                                                                            \
    const TdAttention *a = j->a;                                                               \
    const T *y = (const T *)j->in[4].data + b * a->n_q * a->d_v;                               \
    const T *gy = (const T *)j->in[3].data + b * a->n_q * a->d_v;                              \
    T *delta = room + QUERIES * (2 * KEYS + a->d);                                             \
    TdStatus status = TD_OK;                                                                   \
                                                                                               \
    memset ((T *)j->out[0].data + b * a->n_q * a->d, 0, (size_t)(a->n_q * a->d) * sizeof (T)); \
    memset ((T *)j->out[1].data + b * a->n_k * a->d, 0, (size_t)(a->n_k * a->d) * sizeof (T)); \
    memset ((T *)j->out[2].data + b * a->n_k * a->d_v, 0,                                      \
            (size_t)(a->n_k * a->d_v) * sizeof (T));                                           \
    for (int64_t i = 0; i < a->n_q; i++)                                                       \
      {                                                                                        \
        double sum = 0;                                                                        \
                                                                                               \
        _Pragma ("omp simd reduction (+ : sum)") for (int64_t c = 0; c < a->d_v; c++) sum      \
            += (double)(y[i * a->d_v + c] * gy[i * a->d_v + c]);                               \
        delta[i] = (T)sum;                                                                     \
      }                                                                                        \
    for (int64_t j0 = 0; j0 < a->n_k; j0 += KEYS)                                              \
      for (int64_t i0 = 0; i0 < a->n_q && status == TD_OK; i0 += j->queries)                   \
        {                                                                                      \
          const int64_t m = smaller (j->queries, a->n_q - i0);                                 \
          const int64_t n = smaller (KEYS, visible (a, i0 + m - 1) - j0);                      \
                                                                                               \
          if (n > 0)                                                                           \
            status = backward_block_##T (j, b, i0, m, j0, n, delta, room);                     \
        }                                                                                      \
    return status;                                                                             \
  }                                                                                            \
                                                                                               \
  static void backward_##T (int64_t begin, int64_t end, int worker, void *context)             \
  {                                                                                            \
    Job *j = context;                                                                          \
    T *room = td__cpu_scratch (TD_SCRATCH_IMAGE,                                               \
                               (size_t)(QUERIES * (2 * KEYS + j->a->d) + j->a->n_q)            \
                                   * sizeof *room);                                            \
    TdStatus status = room == NULL ? TD_ERR_MEMORY : TD_OK;                                    \
                                                                                               \
    for (int64_t b = begin; b < end && status == TD_OK; b++)                                   \
      status = backward_batch_##T (j, b, room);                                                \
    if (status != TD_OK)                                                                       \
      __atomic_store_n (&j->status, status, __ATOMIC_RELAXED);                                 \
  }

DEFINE_ATTENTION (float, TD_F32)
DEFINE_ATTENTION (double, TD_F64)

TdStatus
td__cpu_attention (TdDevice *d, TdAttentionKind kind, const TdAttention *attention,
                   const TdTensor *in, int n_in, TdTensor *out, int n_out)
{
  const int n_plain = kind == TD_ATTENTION ? 3 : 6;
  const int64_t queries = queries_of (attention);
  Job job = { attention,
              in,
              out,
              queries,
              (attention->n_q + queries - 1) / queries,
              n_in > n_plain ? in[n_plain].data : NULL,
              TD_OK };
  const bool f32 = out[0].dtype == TD_F32;

  if (!f32 && out[0].dtype != TD_F64)
    return td__cpu_half_attention (d, kind, attention, in, n_in, out, n_out);
  if (kind == TD_ATTENTION)
    td__cpu_parallel (attention->batch * job.n_blocks, 1, f32 ? forward_float : forward_double,
                      &job);
  else
    td__cpu_parallel (attention->batch, 1, f32 ? backward_float : backward_double, &job);
  return job.status;
}
