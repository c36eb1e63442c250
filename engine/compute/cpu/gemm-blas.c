/* Matrix products through BLAS: f64, and f32 on processors for which we have no tiles.  Built
 * with -Dblas=reference the same calls run on plain loops, and nothing foreign is linked.
 *
 * BLAS always computes on one thread; rows of C are shared out over the engine's own threads,
 * so that two pools never wait for each other.
 *
 * SPDX-License-Identifier: MIT */
#include "gemm.h"

#include <stdlib.h>
#include <string.h>

#include "cpu.h"

#if defined(TD_HAVE_OPENBLAS)
#include <cblas.h>
#include <pthread.h>
#endif

const char *
td__cpu_blas_version (void)
{
#if defined(TD_HAVE_OPENBLAS)
  return openblas_get_config ();
#else
  return "reference";
#endif
}

enum
{
  ROWS = 128 /* of C per task */
};

/* Rows [row, row + m) of g's product; c points at the first of them. */
typedef void (*Multiply) (const TdGemm *g, int64_t row, int64_t m, const void *a, const void *b,
                          void *c, double beta);

#if defined(TD_HAVE_OPENBLAS)
static void
one_thread (void)
{
  openblas_set_num_threads (1);
}

static void
use_one_thread (void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once (&once, one_thread);
}

static void
multiply_f64 (const TdGemm *g, int64_t row, int64_t m, const void *a, const void *b, void *c,
              double beta)
{
  const double *x = (const double *)a + (g->ta ? row : row * g->k);

  cblas_dgemm (CblasRowMajor, g->ta ? CblasTrans : CblasNoTrans,
               g->tb ? CblasTrans : CblasNoTrans, (int)m, (int)g->n, (int)g->k, g->alpha, x,
               (int)(g->ta ? g->m : g->k), b, (int)(g->tb ? g->k : g->n), beta, c, (int)g->n);
}

static void
multiply_f32 (const TdGemm *g, int64_t row, int64_t m, const void *a, const void *b, void *c,
              double beta)
{
  const float *x = (const float *)a + (g->ta ? row : row * g->k);

  cblas_sgemm (CblasRowMajor, g->ta ? CblasTrans : CblasNoTrans,
               g->tb ? CblasTrans : CblasNoTrans, (int)m, (int)g->n, (int)g->k, (float)g->alpha,
               x, (int)(g->ta ? g->m : g->k), b, (int)(g->tb ? g->k : g->n), (float)beta, c,
               (int)g->n);
}

bool
td__gemm_prefers_blas (void)
{
  return strcmp (td__gemm_tiles ()->name, "plain") == 0 && getenv ("TAPEDECK_TILES") == NULL;
}
#else
static void
use_one_thread (void)
{
}

#define DEFINE_MULTIPLY(name, T)                                                               \
  static void name (const TdGemm *g, int64_t row, int64_t m, const void *a, const void *b,     \
                    void *c, double beta)                                                      \
  {                                                                                            \
    const T *x = a, *y = b;                                                                    \
    T *z = c;                                                                                  \
                                                                                               \
    for (int64_t i = 0; i < m; i++, z += g->n)                                                 \
      {                                                                                        \
        for (int64_t j = 0; j < g->n; j++)                                                     \
          z[j] = beta == 0.0 ? (T)0 : (T)beta * z[j];                                          \
        for (int64_t l = 0; l < g->k; l++)                                                     \
          {                                                                                    \
            const int64_t r = row + i;                                                         \
            const T s = (T)g->alpha * (g->ta ? x[l * g->m + r] : x[r * g->k + l]);             \
                                                                                               \
            if (g->tb)                                                                         \
              for (int64_t j = 0; j < g->n; j++)                                               \
                z[j] += s * y[j * g->k + l];                                                   \
            else                                                                               \
              for (int64_t j = 0; j < g->n; j++)                                               \
                z[j] += s * y[l * g->n + j];                                                   \
          }                                                                                    \
      }                                                                                        \
  }
DEFINE_MULTIPLY (multiply_f64, double)
DEFINE_MULTIPLY (multiply_f32, float)

bool
td__gemm_prefers_blas (void)
{
  return false;
}
#endif

typedef struct
{
  const TdGemm *g;
  Multiply multiply;
  size_t item;
  const char *a, *b;
  char *c;
  bool failed;
} Job;

/* Rows [begin, end) of C; what is to be added to C is finished in memory of its own first. */
static void
rows_body (int64_t begin, int64_t end, int worker, void *context)
{
  Job *job = context;
  const TdGemm *g = job->g;
  const int64_t m = end - begin, size = m * g->n;
  const size_t item = job->item;
  char *c = job->c + (size_t)(begin * g->n) * item;
  char *product;

  if (g->beta != 1.0)
    {
      job->multiply (g, begin, m, job->a, job->b, c, g->beta);
      return;
    }
  product = td__cpu_scratch (TD_SCRATCH_C, (size_t)size * item);
  if (product == NULL)
    {
      __atomic_store_n (&job->failed, true, __ATOMIC_RELAXED);
      return;
    }
  job->multiply (g, begin, m, job->a, job->b, product, 0.0);
  if (item == sizeof (double))
    for (int64_t i = 0; i < size; i++)
      ((double *)c)[i] += ((double *)product)[i];
  else
    for (int64_t i = 0; i < size; i++)
      ((float *)c)[i] += ((float *)product)[i];
}

/* A product of no terms: C = beta C, without the old C where beta is 0. */
static void
scale_c (const Job *job)
{
  const TdGemm *g = job->g;
  const int64_t size = g->m * g->n;

  if (g->beta == 0.0)
    memset (job->c, 0, (size_t)size * job->item);
  else if (g->beta != 1.0 && job->item == sizeof (double))
    for (int64_t i = 0; i < size; i++)
      ((double *)job->c)[i] *= g->beta;
  else if (g->beta != 1.0)
    for (int64_t i = 0; i < size; i++)
      ((float *)job->c)[i] *= (float)g->beta;
}

static void
end_rows (const Job *job)
{
  const TdGemm *g = job->g;

  if (job->item == sizeof (double))
    td__gemm_end_f64 (g, 0, g->m, 0, g->n, (double *)(void *)job->c);
  else
    td__gemm_end_f32 (g, 0, g->m, 0, g->n, (float *)(void *)job->c);
}

static TdStatus
run (Job *job)
{
  const TdGemm *g = job->g;

  if (g->m == 0 || g->n == 0)
    return TD_OK;
  if (g->k == 0)
    {
      scale_c (job);
      end_rows (job);
      return TD_OK;
    }
  use_one_thread ();
  if (2.0 * (double)g->m * (double)g->n * (double)g->k >= 4e6)
    td__cpu_parallel (g->m, ROWS, rows_body, job);
  else
    for (int64_t row = 0; row < g->m; row += ROWS)
      rows_body (row, g->m - row < ROWS ? g->m : row + ROWS, 0, job);
  if (job->failed)
    return TD_ERR_MEMORY;
  end_rows (job);
  return TD_OK;
}

TdStatus
td__gemm_f64 (const TdGemm *g, const double *a, const double *b, double *c)
{
  Job job = { g, multiply_f64, sizeof *c, (const char *)a, (const char *)b, (char *)c, false };

  return run (&job);
}

TdStatus
td__gemm_blas_f32 (const TdGemm *g, const float *a, const float *b, float *c)
{
  Job job = { g, multiply_f32, sizeof *c, (const char *)a, (const char *)b, (char *)c, false };

  return run (&job);
}
