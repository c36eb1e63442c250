/* What is done to the finished rows of a product or a convolution while they are still near:
 * bias, a sum, relu, the gradient of relu.
 *
 * One sum and one choice per number, as the operations by themselves do: the same bits.
 * SPDX-License-Identifier: MIT */
#include "gemm.h"
#include "twins.h"

#define DEFINE_END(name, T)                                                                    \
  static inline __attribute__ ((always_inline)) void name##_body (                             \
      T *restrict c, const T *restrict bias, const T *restrict added, const T *restrict above, \
      bool relu, int64_t rows, int64_t n, int64_t ldc)                                         \
  {                                                                                            \
    if (bias == NULL && ldc == n) /* one row as long as all of them */                         \
      {                                                                                        \
        n *= rows;                                                                             \
        rows = rows > 0;                                                                       \
      }                                                                                        \
    for (int64_t i = 0; i < rows; i++, c += ldc)                                               \
      {                                                                                        \
        if (bias != NULL && relu && added == NULL)                                             \
          for (int64_t j = 0; j < n; j++)                                                      \
            {                                                                                  \
              const T x = bias[j] + c[j];                                                      \
                                                                                               \
              c[j] = x <= 0 ? (T)0 : x;                                                        \
            }                                                                                  \
        else if (bias != NULL)                                                                 \
          for (int64_t j = 0; j < n; j++)                                                      \
            c[j] = bias[j] + c[j];                                                             \
        if (added != NULL)                                                                     \
          for (int64_t j = 0; j < n; j++)                                                      \
            {                                                                                  \
              const T x = c[j] + added[j];                                                     \
                                                                                               \
              c[j] = relu && x <= 0 ? (T)0 : x;                                                \
            }                                                                                  \
        else if (relu && bias == NULL)                                                         \
          for (int64_t j = 0; j < n; j++)                                                      \
            c[j] = c[j] <= 0 ? (T)0 : c[j];                                                    \
        for (int64_t j = 0; above != NULL && j < n; j++)                                       \
          c[j] = above[j] > 0 ? c[j] : above[j] != above[j] ? above[j] : (T)0;                 \
        above = above != NULL ? above + ldc : NULL;                                            \
        added = added != NULL ? added + ldc : NULL;                                            \
      }                                                                                        \
  }                                                                                            \
  TD_TWINS (name,                                                                              \
            (T *restrict c, const T *restrict bias, const T *restrict added,                   \
             const T *restrict above, bool relu, int64_t rows, int64_t n, int64_t ldc),        \
            (c, bias, added, above, relu, rows, n, ldc))                                       \
  void td__gemm_##name (const TdGemm *g, int64_t row, int64_t rows, int64_t column, int64_t n, \
                        T *c)                                                                  \
  {                                                                                            \
    const TdProductEnd *end = &g->end;                                                         \
    const int64_t at = row * g->n + column;                                                    \
    const T *bias = end->bias != NULL ? (const T *)end->bias->data + column : NULL;            \
    const T *added = end->added != NULL ? (const T *)end->added->data + at : NULL;             \
    const T *above = end->above != NULL ? (const T *)end->above->data + at : NULL;             \
                                                                                               \
    if (bias != NULL || added != NULL || above != NULL || end->relu)                           \
      name (c, bias, added, above, end->relu, rows, n, g->n);                                  \
  }
DEFINE_END (end_f32, float)
DEFINE_END (end_f64, double)
