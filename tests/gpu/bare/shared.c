/* Two processes that share one GPU and train one net: each takes half of every batch, gradients
 * are averaged through memory that both map.  The weights are those of one process that takes
 * all of it, but for rounding, and both have the same bits.
 *
 *   bare-shared
 *
 * prints one JSON object; the status is 1 where that does not hold.
 *
 * SPDX-License-Identifier: MIT */
#include "measure.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
  RANKS = 2,
  BATCH = 32,
  PIXELS = 40,
  HIDDEN = 64,
  CLASSES = 10,
  STEPS = 30,
  ROOM = 1 << 14, /* floats */
  SECONDS = 40
};

/* What both map: a place for each rank's gradients, and the weights that all end with; the last
 * is the process alone. */
typedef struct
{
  atomic_int arrived, round, broken;
  float gradients[RANKS][ROOM];
  float weights[RANKS + 1][ROOM];
  int n;
  double us[RANKS + 1], loss[RANKS + 1];
  char error[RANKS + 1][200];
} Shared;

typedef struct
{
  Shared *shared;
  int rank, n_ranks; /* of how many that work together */
  int n;             /* floats so far */
} Rank;

/* Returns false where another has gone. */
static bool
meet (Shared *s, int n_ranks)
{
  const int round = atomic_load (&s->round);

  if (atomic_fetch_add (&s->arrived, 1) + 1 == n_ranks)
    {
      atomic_store (&s->arrived, 0);
      atomic_fetch_add (&s->round, 1);
      return true;
    }
  while (atomic_load (&s->round) == round)
    {
      if (atomic_load (&s->broken))
        return false;
      sched_yield ();
    }
  return true;
}

static void
give_gradient (const char *path, TdVar *param, void *user)
{
  Rank *r = user;
  const int n = (int)td_size (param);

  (void)path;
  if (r->n + n <= ROOM)
    td_read (td_grad (param), r->shared->gradients[r->rank] + r->n, (size_t)n * sizeof (float));
  r->n += n;
}

static void
take_average (const char *path, TdVar *param, void *user)
{
  static float mean[ROOM];
  Rank *r = user;
  const int n = (int)td_size (param);

  (void)path;
  for (int i = 0; i < n && r->n + i < ROOM; i++)
    mean[i] = (r->shared->gradients[0][r->n + i] + r->shared->gradients[1][r->n + i]) / RANKS;
  td_set_grad (param, td_tensor (TD_F32, td_shape (param), mean));
  r->n += n;
}

static void
give_weights (const char *path, TdVar *param, void *user)
{
  Rank *r = user;
  const int n = (int)td_size (param);

  (void)path;
  if (r->n + n <= ROOM)
    td_read (param, r->shared->weights[r->rank] + r->n, (size_t)n * sizeof (float));
  r->n += n;
}

static void
visit (Rank *r, TdLink *net, void (*what) (const char *path, TdVar *param, void *user))
{
  r->n = 0;
  td_link_each_param (net, what, r);
}

/* The same for every rank: `n` lines of batch `step`, from line `first` on. */
static void
batch (int step, int first, int n, TdVar **x, TdVar **t)
{
  static float pixels[BATCH * PIXELS];
  static int32_t labels[BATCH];

  for (int i = 0; i < n; i++)
    {
      const int line = step * BATCH + first + i;

      labels[i] = line * 7 % CLASSES;
      for (int k = 0; k < PIXELS; k++)
        pixels[i * PIXELS + k] = (float)((line * 31 + k * 17) % 23) / 23
                                 + (k % CLASSES == labels[i] ? 1.0f : 0.0f);
    }
  *x = td_tensor (TD_F32, TD_SHAPE (n, PIXELS), pixels);
  *t = td_tensor (TD_I32, TD_SHAPE (n), labels);
}

/* rank RANKS is the process alone. */
static bool
train (Shared *s, int rank)
{
  const bool alone = rank == RANKS;
  const int n = alone ? BATCH : BATCH / RANKS;
  Rank r = { .shared = s, .rank = rank };
  TdLink *net = td_chain_new ("net"), *l1, *l2;
  TdOpt *opt;
  double start = 0;

  td_set_seed (5);
  l1 = td_linear_new (net, "l1", PIXELS, HIDDEN);
  l2 = td_linear_new (net, "l2", HIDDEN, CLASSES);
  opt = td_momentum_sgd_new (net, .lr = 0.1);
  for (int i = 0; i < STEPS && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *x, *t, *loss;

        if (i == 5)
          start = measure_now ();
        batch (i, alone ? 0 : rank * n, n, &x, &t);
        loss = td_softmax_cross_entropy (td_link (l2, td_relu (td_link (l1, x))), t);
        td_cleargrads (net);
        td_backward (loss, 0);
        if (!alone)
          {
            visit (&r, net, give_gradient);
            if (!meet (s, RANKS))
              break;
            visit (&r, net, take_average);
            if (!meet (s, RANKS)) /* before the places are written again */
              break;
          }
        td_opt_update (opt);
        s->loss[rank] = td_item (loss);
      }
  s->us[rank] = (measure_now () - start) / (STEPS - 5) * 1e6;
  visit (&r, net, give_weights);
  s->n = r.n;
  td_opt_free (opt);
  td_link_free (net);
  if (td_error () != NULL)
    snprintf (s->error[rank], sizeof s->error[rank], "%.190s", td_error ()->message);
  return td_error () == NULL && r.n <= ROOM && !atomic_load (&s->broken);
}

/* Nothing of CUDA may be open here: a process that was forked cannot use it. */
static pid_t
start (Shared *s, int rank)
{
  pid_t pid = fork ();
  bool ok;

  if (pid != 0)
    return pid;
  alarm (SECONDS);
  ok = td_init (NULL, NULL) == TD_OK && train (s, rank);
  td_error_clear ();
  _exit (td_finish () != 0 || !ok);
}

static bool
wait_for (Shared *s, int n)
{
  bool ok = true;

  for (int i = 0; i < n; i++)
    {
      int status = 1;

      if (wait (&status) < 0 || status != 0)
        {
          atomic_store (&s->broken, 1); /* who waits for it goes on */
          ok = false;
        }
    }
  return ok;
}

int
main (void)
{
  Shared *s = mmap (NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  double difference = 0, largest = 0;
  bool ran, same = true;

  if (s == MAP_FAILED)
    {
      perror ("mmap");
      return 1;
    }
  for (int i = 0; i < RANKS; i++)
    start (s, i);
  ran = wait_for (s, RANKS);
  start (s, RANKS);
  ran = wait_for (s, 1) && ran;
  for (int i = 0; i < s->n; i++)
    {
      same = same && memcmp (&s->weights[0][i], &s->weights[1][i], sizeof (float)) == 0;
      difference = fmax (difference, fabs (s->weights[0][i] - s->weights[RANKS][i]));
      largest = fmax (largest, fabs (s->weights[RANKS][i]));
    }
  ran = ran && s->n > 0 && same && difference <= 1e-4 * largest;
  printf ("{\"row\": \"shared\", \"holds\": %s, \"same_bits\": %s, \"difference\": %.3g, "
          "\"largest\": %.3g, \"us\": %.5g, \"us_alone\": %.5g, \"loss\": %.5g, \"error\": "
          "\"%s%s%s\"}\n",
          ran ? "true" : "false", same ? "true" : "false", difference, largest, s->us[0],
          s->us[RANKS], s->loss[RANKS], s->error[0], s->error[1], s->error[RANKS]);
  return !ran;
}
