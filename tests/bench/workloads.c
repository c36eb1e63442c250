/* The peer workloads: the same data, first weights, losses and updates as the PyTorch programs
 * that run beside them, so that loss traces can be compared number by number.
 *
 *   workloads WORKLOAD [--threads N] [--seconds S]
 *
 * prints one JSON object: workload, threads, value (median per iteration: CPU time with one
 * thread, wall time with more), unit, both medians, loss_trace of updates 0 .. 10.
 * Data are a fixed integer hash of index and seed.  SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tapedeck.h"

enum
{
  POOL = 4, /* batches, used in rotation */
  N_TRACED = 11,
  STEPS = 50, /* of the recurrent network */
  CHAIN_OPS = 1000,
  LONG_CHAIN_OPS = 20,
  MAX_SAMPLES = 1 << 20
};

/* --- data --- */

static float *
hash_uniform (int64_t n, uint32_t seed)
{
  float *u = malloc ((size_t)n * sizeof *u);

  for (int64_t i = 0; u != NULL && i < n; i++)
    {
      uint32_t z = (uint32_t)(i + 1) * 0x9E3779B1u + seed * 0x85EBCA77u;

      z ^= z >> 15;
      z *= 0x2C1B3C6Du;
      z ^= z >> 12;
      z *= 0x297A2D39u;
      z ^= z >> 15;
      u[i] = (float)(z >> 8) * 0x1p-24f;
    }
  if (u == NULL)
    abort ();
  return u;
}

static int64_t
size_of (TdShape shape)
{
  int64_t size = 1;

  for (int i = 0; i < shape.ndim; i++)
    size *= shape.dim[i];
  return size;
}

/* Uniform in [-scale, scale). */
static float *
symmetric (int64_t n, uint32_t seed, float scale)
{
  float *u = hash_uniform (n, seed);

  for (int64_t i = 0; i < n; i++)
    u[i] = (u[i] * 2.0f - 1.0f) * scale;
  return u;
}

static TdVar *
numbers (TdShape shape, uint32_t seed, float scale)
{
  float *u = symmetric (size_of (shape), seed, scale);
  TdVar *v = td_retain (td_tensor (TD_F32, shape, u));

  free (u);
  return v;
}

/* n_sets arrays of n labels each, cut from one hash. */
static void
labels (int64_t n, int n_sets, int classes, uint32_t seed, TdVar **out)
{
  float *u = hash_uniform (n * n_sets, seed);
  int64_t *t = malloc ((size_t)n * sizeof *t);

  for (int set = 0; set < n_sets; set++)
    {
      for (int64_t i = 0; i < n; i++)
        {
          const int64_t label = (int64_t)(u[set * n + i] * (float)classes);

          t[i] = label < classes ? label : classes - 1;
        }
      out[set] = td_retain (td_tensor (TD_I64, TD_SHAPE (n), t));
    }
  free (u);
  free (t);
}

/* Weights: uniform, +- 1 / sqrt (fan in), by the parameter's index; biases are 0 already. */
static void
init_weight (TdLink *link, uint32_t index, bool embedding)
{
  TdVar *W = td_link_param (link, "W");
  const TdShape shape = td_shape (W);
  const int64_t size = size_of (shape);
  const double fan_in = (double)(size / shape.dim[0]);
  float *u = symmetric (size, 100 + index, embedding ? 1.0f : (float)(1 / sqrt (fan_in)));

  td_write (W, u, (size_t)size * sizeof *u);
  free (u);
}

/* The gates of the peer are blocks i, f, a, o of rows; ours are a, i, f, o per unit. */
static void
interleave_gates (TdLink *link)
{
  static const int64_t ours[] = { 1, 2, 0, 3 };
  TdVar *W = td_link_param (link, "W");
  const TdShape shape = td_shape (W);
  const int64_t u = shape.dim[0] / 4, n = shape.dim[1];
  const size_t bytes = (size_t)size_of (shape) * sizeof (float);
  float *from = malloc (bytes), *to = malloc (bytes);

  td_read (W, from, bytes);
  for (int64_t g = 0; g < 4; g++)
    for (int64_t k = 0; k < u; k++)
      memcpy (to + (4 * k + ours[g]) * n, from + (g * u + k) * n, (size_t)n * sizeof *to);
  td_write (W, to, bytes);
  free (from);
  free (to);
}

/* --- models --- */

typedef struct
{
  TdLink *root, *layer[4];
  int n_layers;
  TdOpt *opt;
  TdVar *x[POOL][STEPS], *t[POOL][STEPS];
  TdVar *zero; /* first h and c of the recurrent network */
} Model;

static void
mlp_layers (Model *m, const int *sizes, int n, int64_t batch)
{
  m->root = td_chain_new ("mlp");
  m->n_layers = n - 1;
  for (int i = 0; i < n - 1; i++)
    {
      char name[8];

      snprintf (name, sizeof name, "l%d", i + 1);
      m->layer[i] = td_linear_new (m->root, name, sizes[i], sizes[i + 1]);
      init_weight (m->layer[i], (uint32_t)(2 * i), false);
    }
  for (uint32_t k = 0; k < POOL; k++)
    {
      m->x[k][0] = numbers (TD_SHAPE (batch, sizes[0]), 10 + k, 1);
      labels (batch, 1, 10, 50 + k, m->t[k]);
    }
  m->opt = td_momentum_sgd_new (m->root, .lr = 0.01, .momentum = 0.9);
}

static void
mlp_make (Model *m)
{
  mlp_layers (m, (const int[]){ 784, 1000, 1000, 10 }, 4, 100);
}

static void
mlp_small_make (Model *m)
{
  mlp_layers (m, (const int[]){ 784, 100, 10 }, 3, 32);
}

static TdVar *
mlp_loss (Model *m, int k)
{
  TdVar *h = m->x[k][0];

  for (int i = 0; i < m->n_layers; i++)
    {
      h = td_link (m->layer[i], h);
      if (i < m->n_layers - 1)
        h = td_relu (h);
    }
  return td_softmax_cross_entropy (h, m->t[k][0]);
}

static void
lenet_make (Model *m)
{
  m->root = td_chain_new ("lenet");
  m->layer[0] = td_convolution_2d_new (m->root, "c1", 1, 20, 5);
  m->layer[1] = td_convolution_2d_new (m->root, "c2", 20, 50, 5);
  m->layer[2] = td_linear_new (m->root, "f1", 800, 500);
  m->layer[3] = td_linear_new (m->root, "f2", 500, 10);
  for (uint32_t i = 0; i < 4; i++)
    init_weight (m->layer[i], 2 * i, false);
  for (uint32_t k = 0; k < POOL; k++)
    {
      m->x[k][0] = numbers (TD_SHAPE (64, 1, 28, 28), 10 + k, 1);
      labels (64, 1, 10, 50 + k, m->t[k]);
    }
  m->opt = td_adam_new (m->root, .lr = 1e-3);
}

static TdVar *
lenet_loss (Model *m, int k)
{
  TdVar *h = td_max_pooling_2d (td_link (m->layer[0], m->x[k][0]));

  h = td_max_pooling_2d (td_link (m->layer[1], h));
  h = td_relu (td_link (m->layer[2], h));
  return td_softmax_cross_entropy (td_link (m->layer[3], h), m->t[k][0]);
}

static void
lstm_make (Model *m)
{
  m->root = td_chain_new ("char_lstm");
  m->layer[0] = td_embed_id_new (m->root, "emb", 65, 64);
  m->layer[1] = td_linear_new (m->root, "upward", 64, 1024);
  m->layer[2] = td_linear_new (m->root, "lateral", 256, 1024);
  m->layer[3] = td_linear_new (m->root, "out", 256, 65);
  init_weight (m->layer[0], 0, true);
  init_weight (m->layer[1], 1, false);
  init_weight (m->layer[2], 2, false);
  init_weight (m->layer[3], 5, false);
  interleave_gates (m->layer[1]);
  interleave_gates (m->layer[2]);
  for (uint32_t k = 0; k < POOL; k++)
    {
      labels (32, STEPS, 65, 10 + k, m->x[k]);
      labels (32, STEPS, 65, 50 + k, m->t[k]);
    }
  m->zero = td_retain (td_zeros (TD_F32, TD_SHAPE (32, 256)));
  m->opt = td_adam_new (m->root, .lr = 1e-3);
  td_opt_add_hook (m->opt, td_gradient_clipping_new (5.0));
}

static TdVar *
lstm_loss (Model *m, int k)
{
  TdVar *h = m->zero, *c = m->zero, *loss = NULL;

  for (int i = 0; i < STEPS; i++)
    {
      TdVar *x = td_link (m->layer[1], td_link (m->layer[0], m->x[k][i])), *step;

      c = td_lstm (c, td_add (x, td_link (m->layer[2], h)), &h);
      step = td_softmax_cross_entropy (td_link (m->layer[3], h), m->t[k][i]);
      loss = loss != NULL ? td_add (loss, step) : step;
    }
  return td_div_scalar (loss, STEPS);
}

static const struct
{
  const char *name;
  void (*make) (Model *m);
  TdVar *(*loss) (Model *m, int k);
} models[] = {
  { "mlp", mlp_make, mlp_loss },
  { "mlp_small", mlp_small_make, mlp_loss },
  { "lenet", lenet_make, lenet_loss },
  { "lstm", lstm_make, lstm_loss },
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
          "\"wall\": %.6g, \"cpu\": %.6g, \"n\": %d",
          workload, threads, threads == 1 ? cpu : wall, unit, wall, cpu, s->n);
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

  models[which].make (&m);
  for (; i < N_TRACED; i++)
    trace[i] = update (&m, models[which].loss, i);
  for (end = now (CLOCK_MONOTONIC) + 0.5; now (CLOCK_MONOTONIC) < end; i++)
    update (&m, models[which].loss, i);
  end = now (CLOCK_MONOTONIC) + seconds;
  for (; both_time.n < 3 || now (CLOCK_MONOTONIC) < end; i++)
    {
      const double c = now (CLOCK_PROCESS_CPUTIME_ID), t = now (CLOCK_MONOTONIC);

      update (&m, models[which].loss, i);
      sample (&both_time, now (CLOCK_MONOTONIC) - t, now (CLOCK_PROCESS_CPUTIME_ID) - c);
    }
  if (td_error () != NULL)
    return 1;
  print_value (models[which].name, threads, &both_time, 1e3, "ms/iteration");
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
  float *ones = symmetric (size, 2, 1e-3f);
  TdVar *x = td_variable (numbers (TD_SHAPE (size), 1, 0.01f), "x"), *a, *b, *seed;
  const double warm = now (CLOCK_MONOTONIC) + 0.3, end = warm + seconds;
  char line[64];

  for (int64_t i = 0; i < size; i++)
    ones[i] += 1.0f;
  a = td_retain (td_tensor (TD_F32, TD_SHAPE (size), ones));
  b = numbers (TD_SHAPE (size), 3, 1e-4f);
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
  TdVar *a = numbers (TD_SHAPE (n, n), 1, 1), *b = numbers (TD_SHAPE (n, n), 2, 1);
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
  for (int i = 0; i < (int)(sizeof models / sizeof models[0]); i++)
    if (strcmp (name, models[i].name) == 0)
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
