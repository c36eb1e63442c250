/* Measures static schedules against our own dynamic graphs, by turns in one process.
 *
 *   static [ROW ...] [--threads N] [--seconds S]
 *
 * prints one JSON object per row: workload, threads, value (dynamic time / static time,
 * medians), both times, and the goal. SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peer-models.h"

enum
{
  CHAIN_OPS = 1000,
  LONG_CHAIN_OPS = 20,
  MAX_SAMPLES = 1 << 18,
  WARM_UP = 6,
  MAX_BLOCK = 64
};

#define BLOCK_SECONDS 0.01

static int threads = 1;
static double seconds = 3;

static double
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double samples[2][MAX_SAMPLES];
static int n_samples;

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

/* Iterations in a row, of which the first quarter is not measured: a loop that trains is the
 * one or the other, and finds its weights in the caches and its threads where it left them. */
static int
block_length (double iteration)
{
  const double n = BLOCK_SECONDS / iteration;

  return n < 1 ? 1 : n > MAX_BLOCK ? MAX_BLOCK : (int)n;
}

/* Run both by turns, a block of each, until time is up; what = 0: dynamic, 1: static. */
static void
alternate (void (*run) (void *context, int what, int i), void *context)
{
  double end, start = now ();
  int block;

  n_samples = 0;
  for (int i = 0; i < WARM_UP; i++)
    for (int what = 0; what < 2; what++)
      run (context, what, i);
  block = block_length ((now () - start) / (2 * WARM_UP));
  end = now () + seconds;
  for (int i = 0; (n_samples < 5 || now () < end) && n_samples + block <= MAX_SAMPLES;
       i += block)
    {
      for (int what = 0; what < 2; what++)
        {
          for (int k = 0; k < block / 4; k++)
            run (context, what, i + k);
          for (int k = 0; k < block; k++)
            {
              start = now ();
              run (context, what, i + k);
              samples[what][n_samples + k] = now () - start;
            }
        }
      n_samples += block;
    }
}

static void
print_row (const char *name, double goal, TdStatic *s)
{
  const TdStaticInfo info = td_static_info (s);
  const double dynamic = median (samples[0], n_samples), fixed = median (samples[1], n_samples);

  printf (
      "{\"workload\": \"static.%s\", \"threads\": %d, \"value\": %.4g, \"unit\": "
      "\"x dynamic\", \"goal\": %g, \"dynamic_us\": %.6g, \"static_us\": %.6g, \"best\": %.4g, "
      "\"n\": %d, "
      "\"steps\": %u, \"backward_steps\": %u, \"pruned\": %u, \"folded\": %u, \"merged\": "
      "%u, \"batched\": %u, \"fused\": %u, \"in_place\": %u, \"planned_mb\": %.4g, "
      "\"bound_mb\": %.4g}\n",
      name, threads, dynamic / fixed, goal, dynamic * 1e6, fixed * 1e6,
      samples[0][0] / samples[1][0], n_samples, info.n_steps, info.n_backward_steps,
      info.n_pruned, info.n_folded, info.n_merged, info.n_batched, info.n_fused,
      info.n_in_place, (double)info.planned_bytes / 1e6, (double)info.lower_bound_bytes / 1e6);
}

/* --- models: an iteration with its update --- */

typedef struct
{
  Model m[2];
  TdVar *(*loss) (Model *m, int k);
  TdStatic *s;
  const char *name;
} Pair;

/* in: the data of one batch; the loss sees them as batch 0 of a model of its own. */
static void
model_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Pair *p = self;
  Model m = p->m[1];
  const int n_x = n_in / 2;

  (void)n_out;
  for (int i = 0; i < n_x; i++)
    {
      m.x[0][i] = in[i];
      m.t[0][i] = in[n_x + i];
    }
  out[0] = p->loss (&m, 0);
}

static void
model_update (void *context, int what, int i)
{
  Pair *p = context;
  Model *m = &p->m[what];
  const int k = i % POOL;

  TD_ITERATION (i)
    {
      TdVar *in[2 * STEPS], *y;
      int n = 0, n_x = 0;

      td_cleargrads (m->root);
      if (what == 0)
        y = p->loss (m, k);
      else
        {
          while (n_x < STEPS && m->x[k][n_x] != NULL)
            in[n++] = m->x[k][n_x++];
          for (int j = 0; j < n_x; j++)
            in[n++] = m->t[k][j];
          td_static_call (p->s, in, n, &y, 1);
        }
      td_backward (y, 0);
      td_opt_update (m->opt);
    }
}

static void
run_model (const char *name, double goal)
{
  static Pair p;

  memset (&p, 0, sizeof p);
  for (int i = 0; i < n_peer_models; i++)
    if (strcmp (peer_models[i].name, name) == 0)
      {
        p.loss = peer_models[i].loss;
        peer_models[i].make (&p.m[0]);
        peer_models[i].make (&p.m[1]);
      }
  p.s = td_static_new (model_code, &p);
  alternate (model_update, &p);
  print_row (name, goal, p.s);
  td_static_free (p.s);
}

/* --- chains of small operations --- */

typedef struct
{
  int n;
  TdDtype dtype;
  bool drops; /* dropout in place of every third operation */
  TdVar *x, *a, *b, *seed;
  TdStatic *s;
} Chain;

/* y = tanh (y a + b), one operation at a time; in halves b is a number of floats that is cast.
 */
static void
chain_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Chain *c = self;
  TdVar *y = in[0];

  (void)n_in;
  (void)n_out;
  for (int i = 0; i < c->n; i++)
    y = i % 3 == 0   ? td_mul (y, c->a)
        : i % 3 == 1 ? td_add (y, c->dtype == TD_F32 ? c->b : td_cast (c->b, c->dtype))
        : c->drops ? td_dropout (y, 0.1)
                     : td_tanh (y);
  out[0] = y;
}

static void
chain_step (void *context, int what, int i)
{
  Chain *c = context;

  TD_ITERATION (i)
    {
      TdVar *y;

      td_cleargrad (c->x);
      if (what == 0)
        chain_code (c, &c->x, 1, &y, 1);
      else
        y = td_static_call1 (c->s, c->x);
      td_set_grad (y, c->seed);
      td_backward (y, 0);
    }
}

/* a and b are as large as x, or rows of it. */
static void
run_chain (const char *name, int64_t size, int64_t row, int n, double goal, TdDtype dtype,
           bool drops)
{
  float *ones = peer_numbers (row, 2, 1e-3f);
  const TdShape shape = row == size ? TD_SHAPE (size) : TD_SHAPE (size / row, row);
  Chain c = { .n = n, .dtype = dtype, .drops = drops };

  for (int64_t i = 0; i < row; i++)
    ones[i] += 1.0f;
  c.x = td_variable (td_retain (td_cast (peer_array (shape, 1, 0.01f), dtype)), "x");
  c.a = td_retain (td_cast (td_tensor (TD_F32, TD_SHAPE (row), ones), dtype));
  c.b = peer_array (TD_SHAPE (row), 3, 1e-4f);
  c.seed = td_retain (td_ones (dtype, shape));
  c.s = td_static_new (chain_code, &c);
  free (ones);
  alternate (chain_step, &c);
  print_row (name, goal, c.s);
  td_static_free (c.s);
}

/* --- what a call costs besides its kernels: guards, results --- */

enum
{
  CAPTURED = 6,
  CALLS = 1000
};

static void
call_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar **captured = self;

  (void)n_in;
  (void)n_out;
  out[0] = in[0];
  for (int i = 0; i < CAPTURED; i++)
    out[0] = td_add (out[0], captured[i]);
}

/* Nanoseconds of a call of six additions of 16 floats, kernels included: an upper bound. */
static void
run_call (void)
{
  TdVar *captured[CAPTURED], *x = td_retain (td_ones (TD_F32, TD_SHAPE (16))), *y;
  TdStatic *s = td_static_new (call_code, captured);
  double start;

  for (int i = 0; i < CAPTURED; i++)
    captured[i] = td_retain (td_ones (TD_F32, TD_SHAPE (16)));
  n_samples = 0;
  TD_NO_BACKPROP
    for (double end = now () + seconds; n_samples < 5 || now () < end; n_samples++)
      {
        start = now ();
        for (int i = 0; i < CALLS; i++)
          TD_SCOPE (NULL)
            td_static_call (s, &x, 1, &y, 1);
        samples[0][n_samples] = (now () - start) / CALLS;
      }
  printf ("{\"workload\": \"static.call\", \"threads\": %d, \"value\": %.4g, \"unit\": "
          "\"ns\", \"goal\": 1000, \"replays\": %llu}\n",
          threads, median (samples[0], n_samples) * 1e9,
          (unsigned long long)td_static_info (s).n_replays);
  td_static_free (s);
}

/* --- what it costs that a function verifies itself --- */

enum
{
  VERIFIED_CALLS = 300, /* that are run: it verifies itself at 2, 3, 5, 9, 17 ... 257 */
  N_VERIFIED = 14,      /* and in so many of 10,000 */
  ALL_CALLS = 10000,
  NEW_FUNCTIONS = 15
};

/* The second call of a new function, which makes the plan and its memory too. */
static double
second_call (Pair *p, int verify)
{
  double times[NEW_FUNCTIONS];

  for (int i = 0; i < NEW_FUNCTIONS; i++)
    {
      p->s = td_static_new (model_code, p, .verify = verify);
      model_update (p, 1, 0);
      times[i] = now ();
      model_update (p, 1, POOL); /* the same batch */
      times[i] = now () - times[i];
      td_static_free (p->s);
    }
  return median (times, NEW_FUNCTIONS);
}

/* The share of it in 10,000 iterations, in percent: what the verified ones take beyond the
 * median of the others. */
static void
run_verify (const char *name)
{
  static Pair p;
  double *extra = samples[1], step, full, iteration;
  int n_extra = 0;

  memset (&p, 0, sizeof p);
  for (int i = 0; i < n_peer_models; i++)
    if (strcmp (peer_models[i].name, name) == 0)
      {
        p.loss = peer_models[i].loss;
        peer_models[i].make (&p.m[1]);
      }
  p.s = td_static_new (model_code, &p);
  n_samples = 0;
  for (int i = 0; i < VERIFIED_CALLS; i++)
    {
      const uint64_t n = td_static_info (p.s).n_verified;
      double start = now ();

      model_update (&p, 1, i);
      start = now () - start;
      if (td_static_info (p.s).n_verified != n)
        extra[n_extra++] = start;
      else if (i > 0) /* which was traced */
        samples[0][n_samples++] = start;
    }
  iteration = median (samples[0], n_samples);
  step = n_extra > 1 ? median (extra + 1, n_extra - 1) - iteration : 0;
  td_static_free (p.s);
  full = second_call (&p, -1) - second_call (&p, 0);
  printf ("{\"workload\": \"static.verify_%s\", \"threads\": %d, \"value\": %.4g, \"unit\": "
          "\"%% of %d calls\", \"goal\": 0.1, \"iteration_us\": %.6g, \"full_us\": %.6g, "
          "\"steps_us\": %.6g, \"verified\": %d}\n",
          name, threads, 100 * (full + (N_VERIFIED - 1) * step) / (ALL_CALLS * iteration),
          ALL_CALLS, iteration * 1e6, full * 1e6, step * 1e6, n_extra);
}

static const struct
{
  const char *name;
  int64_t size, row; /* of a chain; 0: a model */
  int n;
  double goal;
  TdDtype dtype;
  bool drops;
} rows[] = {
  { "op_overhead", 16, 16, CHAIN_OPS, 3 },
  { "chain_large", 1000000, 1000000, LONG_CHAIN_OPS, 2.5 },
  { "chain_rows", 1000000, 100, LONG_CHAIN_OPS, 2 },
  { "chain_bf16", 1000000, 1000000, LONG_CHAIN_OPS, 1.5, TD_BF16 },
  { "chain_dropout", 1000000, 1000000, LONG_CHAIN_OPS, 1.5, TD_F32, true },
  { "mlp_small", 0, 0, 0, 1.03 },
  { "mlp", 0, 0, 0, 0.99 },
  { "lenet", 0, 0, 0, 0.99 },
  { "lstm", 0, 0, 0, 1.10 },
};

static bool
asked (const char *name, char **names, int n)
{
  for (int i = 0; i < n; i++)
    if (strcmp (names[i], name) == 0)
      return true;
  return n == 0;
}

int
main (int argc, char **argv)
{
  char *names[16], text[16];
  int n = 0;

  td_init (&argc, &argv);
  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--threads") == 0 && i + 1 < argc)
      threads = atoi (argv[++i]);
    else if (strcmp (argv[i], "--seconds") == 0 && i + 1 < argc)
      seconds = atof (argv[++i]);
    else if (n < 16)
      names[n++] = argv[i];
  snprintf (text, sizeof text, "%d", threads);
  setenv ("TAPEDECK_THREADS", text, 1); /* read at the first parallel region */
  if (asked ("call", names, n))
    run_call ();
  for (size_t i = 0; i < sizeof rows / sizeof rows[0] && td_error () == NULL; i++)
    {
      char verify[40];

      snprintf (verify, sizeof verify, "verify_%s", rows[i].name);
      if (rows[i].size == 0 && asked (verify, names, n))
        run_verify (rows[i].name);
    }
  for (size_t i = 0; i < sizeof rows / sizeof rows[0] && td_error () == NULL; i++)
    if (!asked (rows[i].name, names, n))
      continue;
    else if (rows[i].size > 0)
      run_chain (rows[i].name, rows[i].size, rows[i].row, rows[i].n, rows[i].goal,
                 rows[i].dtype, rows[i].drops);
    else
      run_model (rows[i].name, rows[i].goal);
  return td_error () != NULL || td_finish () != 0 ? 1 : 0;
}
