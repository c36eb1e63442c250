/* Measures the peer workloads (peer-models.c) and chains of small operations.
 *
 *   workloads WORKLOAD [--threads N] [--seconds S]
 *
 * prints one JSON object: workload, threads, value (median per iteration: CPU time with one
 * thread, wall time with more), unit, both medians, loss_trace of updates 0 .. 10.
 * SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peer-models.h"

enum
{
  N_TRACED = 11,
  CHAIN_OPS = 1000,
  LONG_CHAIN_OPS = 20,
  MAX_SAMPLES = 1 << 20
};

/* --- measurement --- */

static double
now (clockid_t clock)
{
  struct timespec t;

  clock_gettime (clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct
{
  double wall[MAX_SAMPLES], cpu[MAX_SAMPLES];
  int n;
} Samples;

static Samples forward_time, backward_time, both_time;
static double base_rss_mb; /* of the process before it made anything */

/* The most memory that this process has held.  (getrusage would tell that of the program which
 * started it, where that was more.) */
static double
peak_rss_mb (void)
{
  FILE *f = fopen ("/proc/self/status", "re");
  char line[256];
  long kb = 0;

  while (f != NULL && fgets (line, sizeof line, f) != NULL)
    if (sscanf (line, "VmHWM: %ld kB", &kb) == 1)
      break;
  if (f != NULL)
    fclose (f);
  return (double)kb / 1024;
}

static int
ascending (const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static double
median (double *x, int n)
{
  qsort (x, (size_t)n, sizeof *x, ascending);
  return n % 2 == 1 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static void
sample (Samples *s, double wall, double cpu)
{
  if (s->n < MAX_SAMPLES)
    {
      s->wall[s->n] = wall;
      s->cpu[s->n++] = cpu;
    }
}

static void
print_value (const char *workload, int threads, Samples *s, double scale, const char *unit)
{
  const double wall = median (s->wall, s->n) * scale, cpu = median (s->cpu, s->n) * scale;

  printf ("{\"workload\": \"%s\", \"threads\": %d, \"value\": %.6g, \"unit\": \"%s\", "
          "\"wall\": %.6g, \"cpu\": %.6g, \"n\": %d, \"base_rss_mb\": %.4g, "
          "\"peak_rss_mb\": %.4g",
          workload, threads, threads == 1 ? cpu : wall, unit, wall, cpu, s->n, base_rss_mb,
          peak_rss_mb ());
}

static double
update (Model *m, TdVar *(*loss) (Model *m, int k), int i)
{
  double value = 0;

  TD_ITERATION (i)
    {
      TdVar *y;

      td_cleargrads (m->root);
      y = loss (m, i % POOL);
      td_backward (y, 0);
      td_opt_update (m->opt);
      if (i < N_TRACED)
        value = td_item (y);
    }
  return value;
}

static int
run_model (int which, int threads, double seconds)
{
  static Model m;
  double trace[N_TRACED], end;
  int i = 0;

  peer_models[which].make (&m);
  for (; i < N_TRACED; i++)
    trace[i] = update (&m, peer_models[which].loss, i);
  for (end = now (CLOCK_MONOTONIC) + 0.5; now (CLOCK_MONOTONIC) < end; i++)
    update (&m, peer_models[which].loss, i);
  end = now (CLOCK_MONOTONIC) + seconds;
  for (; both_time.n < 3 || now (CLOCK_MONOTONIC) < end; i++)
    {
      const double c = now (CLOCK_PROCESS_CPUTIME_ID), t = now (CLOCK_MONOTONIC);

      update (&m, peer_models[which].loss, i);
      sample (&both_time, now (CLOCK_MONOTONIC) - t, now (CLOCK_PROCESS_CPUTIME_ID) - c);
    }
  if (td_error () != NULL)
    return 1;
  print_value (peer_models[which].name, threads, &both_time, 1e3, "ms/iteration");
  printf (", \"loss_trace\": [");
  for (int j = 0; j < N_TRACED; j++)
    printf ("%s%.6f", j > 0 ? ", " : "", trace[j]);
  printf ("]}\n");
  return 0;
}

/* y = tanh (y a + b), one operation at a time. */
static TdVar *
chain (TdVar *y, TdVar *a, TdVar *b, int n)
{
  for (int i = 0; i < n; i++)
    y = i % 3 == 0 ? td_mul (y, a) : i % 3 == 1 ? td_add (y, b) : td_tanh (y);
  return y;
}

static int
run_chain (const char *name, int64_t size, int n, int threads, double seconds)
{
  float *ones = peer_numbers (size, 2, 1e-3f);
  TdVar *x = td_variable (peer_array (TD_SHAPE (size), 1, 0.01f), "x"), *a, *b, *seed;
  const double warm = now (CLOCK_MONOTONIC) + 0.3, end = warm + seconds;
  char line[64];

  for (int64_t i = 0; i < size; i++)
    ones[i] += 1.0f;
  a = td_retain (td_tensor (TD_F32, TD_SHAPE (size), ones));
  b = peer_array (TD_SHAPE (size), 3, 1e-4f);
  seed = td_retain (td_ones (TD_F32, TD_SHAPE (size)));
  for (int i = 0; now (CLOCK_MONOTONIC) < end; i++)
    TD_ITERATION (i)
      {
        double c[3], t[3];
        TdVar *y;

        td_cleargrad (x);
        c[0] = now (CLOCK_PROCESS_CPUTIME_ID), t[0] = now (CLOCK_MONOTONIC);
        y = chain (x, a, b, n);
        t[1] = now (CLOCK_MONOTONIC), c[1] = now (CLOCK_PROCESS_CPUTIME_ID);
        td_set_grad (y, seed);
        td_backward (y, 0);
        t[2] = now (CLOCK_MONOTONIC), c[2] = now (CLOCK_PROCESS_CPUTIME_ID);
        if (t[0] >= warm)
          {
            sample (&forward_time, t[1] - t[0], c[1] - c[0]);
            sample (&backward_time, t[2] - t[1], c[2] - c[1]);
          }
      }
  free (ones);
  if (td_error () != NULL)
    return 1;
  snprintf (line, sizeof line, "%s.forward", name);
  print_value (line, threads, &forward_time, 1e9 / n, "ns/operation");
  printf ("}\n");
  snprintf (line, sizeof line, "%s.backward", name);
  print_value (line, threads, &backward_time, 1e9 / n, "ns/operation");
  printf ("}\n");
  return 0;
}

static int
run_matmul (int threads, double seconds)
{
  const int64_t n = 2048;
  TdVar *a = peer_array (TD_SHAPE (n, n), 1, 1), *b = peer_array (TD_SHAPE (n, n), 2, 1);
  const double warm = now (CLOCK_MONOTONIC) + 0.3, end = warm + seconds;

  while (both_time.n < 3 || now (CLOCK_MONOTONIC) < end)
    TD_SCOPE ("product")
      {
        const double c = now (CLOCK_PROCESS_CPUTIME_ID), t = now (CLOCK_MONOTONIC);

        td_matmul (a, b, false, false);
        if (t >= warm)
          sample (&both_time, now (CLOCK_MONOTONIC) - t, now (CLOCK_PROCESS_CPUTIME_ID) - c);
      }
  print_value ("matmul", threads, &both_time, 1e3, "ms/iteration");
  printf ("}\n");
  return 0;
}

static int
run (const char *name, int threads, double seconds)
{
  for (int i = 0; i < n_peer_models; i++)
    if (strcmp (name, peer_models[i].name) == 0)
      return run_model (i, threads, seconds);
  if (strcmp (name, "op_overhead") == 0)
    return run_chain (name, 16, CHAIN_OPS, threads, seconds);
  if (strcmp (name, "chain_large") == 0)
    return run_chain (name, 1000000, LONG_CHAIN_OPS, threads, seconds);
  if (strcmp (name, "matmul") == 0)
    return run_matmul (threads, seconds);
  fprintf (stderr, "workloads: no workload %s\n", name);
  return 2;
}

int
main (int argc, char **argv)
{
  const char *name = NULL;
  int threads = 1, status;
  double seconds = 3;
  char text[16];

  td_init (&argc, &argv);
  base_rss_mb = peak_rss_mb ();
  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--threads") == 0 && i + 1 < argc)
      threads = atoi (argv[++i]);
    else if (strcmp (argv[i], "--seconds") == 0 && i + 1 < argc)
      seconds = atof (argv[++i]);
    else
      name = argv[i];
  if (name == NULL)
    {
      fprintf (stderr, "usage: workloads WORKLOAD [--threads N] [--seconds S]\n");
      return 2;
    }
  snprintf (text, sizeof text, "%d", threads);
  setenv ("TAPEDECK_THREADS", text, 1); /* read at the first parallel region */
  status = run (name, threads, seconds);
  return td_finish () != 0 ? 1 : status;
}
