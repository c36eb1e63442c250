/* Our matrix product beside bare cblas_sgemm, in CPU time of one thread, in turn within one
 * process: square sizes from 256 to 2048, and the three products of a layer of `mlp`.  OpenBLAS
 * is opened by name and told to use the kernels of OPENBLAS_CORETYPE (`run` names the best that
 * it has).  Prints a JSON object a size: value is ours, peer cblas_sgemm, ratio peer / ours.
 * SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tapedeck.h"

typedef void (*Sgemm) (int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                       const float *a, int lda, const float *b, int ldb, float beta, float *c,
                       int ldc);
enum
{
  ROW_MAJOR = 101,
  NO_TRANS = 111,
  TRANS = 112,
  N_ROUNDS = 9
};

static const struct
{
  const char *name;
  int m, n, k;
  bool trans_a, trans_b;
} products[] = {
  { "gemm_256", 256, 256, 256, false, false },
  { "gemm_512", 512, 512, 512, false, false },
  { "gemm_1024", 1024, 1024, 1024, false, false },
  { "gemm_2048", 2048, 2048, 2048, false, false },
  { "gemm_forward", 100, 1000, 784, false, true },
  { "gemm_grad_x", 100, 1000, 1000, false, false },
  { "gemm_grad_w", 1000, 1000, 100, true, false },
};

static double
cpu_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int
ascending (const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static float *
numbers (int64_t n)
{
  float *x = malloc ((size_t)n * sizeof *x);

  for (int64_t i = 0; x != NULL && i < n; i++)
    x[i] = (float)((i * 7919) % 1009) / 1009 - 0.5f;
  if (x == NULL)
    abort ();
  return x;
}

static void
measure (Sgemm sgemm, int which)
{
  const int m = products[which].m, n = products[which].n, k = products[which].k;
  const bool ta = products[which].trans_a, tb = products[which].trans_b;
  float *a = numbers ((int64_t)m * k), *b = numbers ((int64_t)k * n);
  float *c = numbers ((int64_t)m * n);
  const int repeat = 1 + (int)(2e8 / ((double)m * n * k));
  double ours[N_ROUNDS], theirs[N_ROUNDS];

  TD_SCOPE ("products")
    {
      TdVar *x = td_tensor (TD_F32, ta ? TD_SHAPE (k, m) : TD_SHAPE (m, k), a);
      TdVar *y = td_tensor (TD_F32, tb ? TD_SHAPE (n, k) : TD_SHAPE (k, n), b);

      for (int round = -1; round < N_ROUNDS; round++)
        {
          double t[3];

          t[0] = cpu_ms ();
          for (int i = 0; i < repeat; i++)
            TD_SCOPE ("product")
              td_matmul (x, y, ta, tb);
          t[1] = cpu_ms ();
          for (int i = 0; i < repeat; i++)
            sgemm (ROW_MAJOR, ta ? TRANS : NO_TRANS, tb ? TRANS : NO_TRANS, m, n, k, 1, a,
                   ta ? m : k, b, tb ? k : n, 0, c, n);
          t[2] = cpu_ms ();
          if (round >= 0)
            {
              ours[round] = (t[1] - t[0]) / repeat;
              theirs[round] = (t[2] - t[1]) / repeat;
            }
        }
    }
  qsort (ours, N_ROUNDS, sizeof *ours, ascending);
  qsort (theirs, N_ROUNDS, sizeof *theirs, ascending);
  printf ("{\"workload\": \"%s\", \"threads\": 1, \"value\": %.4g, \"unit\": \"ms\", "
          "\"peer\": %.4g, \"ratio\": %.3f, \"goal\": 0.97}\n",
          products[which].name, ours[N_ROUNDS / 2], theirs[N_ROUNDS / 2],
          theirs[N_ROUNDS / 2] / ours[N_ROUNDS / 2]);
  free (a);
  free (b);
  free (c);
}

int
main (int argc, char **argv)
{
  void *blas;
  union
  {
    void *object;
    Sgemm function;
  } sgemm;

  /* OpenBLAS starts its threads when it is loaded, with us: begin again with the right number,
   * or their waiting counts as our time. */
  if (getenv ("OPENBLAS_NUM_THREADS") == NULL)
    {
      setenv ("OPENBLAS_NUM_THREADS", "1", 1);
      execv ("/proc/self/exe", argv);
    }
  setenv ("TAPEDECK_THREADS", "1", 0);
  td_init (&argc, &argv);
  blas = dlopen ("libopenblas.so.0", RTLD_NOW);
  sgemm.object = blas != NULL ? dlsym (blas, "cblas_sgemm") : NULL;
  if (sgemm.object == NULL)
    {
      fprintf (stderr, "gemm: no libopenblas.so.0 to compare with\n");
      return 1;
    }
  TD_NO_BACKPROP
    {
      for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        measure (sgemm.function, (int)i);
    }
  return td_finish ();
}
