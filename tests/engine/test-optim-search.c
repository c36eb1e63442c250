/* A searcher: random sequences of backwards, updates and gradients set by hand over several
 * optimizers with loss scales, each in float32 and, without the scales, in float64.  Parameters
 * are the same, and what cannot be known is an error, after which everything is as before:
 * never another number.  Steps that are refused are left out without the scales.
 *
 * Arguments: how many sequences, and the first seed.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <tapedeck.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  SEQUENCES = 2000,
  MAX_STEPS = 24,
  N_NETS = 3, /* the third is a copy of the first, without an optimizer of its own */
  N_OPTS = 3, /* of the first net, the second, and of the first again */
  SIZE = 3,
  MOST_TOLD = 5
};

#define KINDS(X)                                                                               \
  X (BACKWARD) /* of an optimizer */                                                           \
  X (PLAIN_BACKWARD)                                                                           \
  X (CLEAR)                                                                                    \
  X (UPDATE)                                                                                   \
  X (SET_FROM_OWN)   /* a gradient computed from the one that is there */                      \
  X (SET_FROM_OTHER) /* from that of another parameter */                                      \
  X (SET_FROM_HELD)  /* from the one that was there until it was cleared */                    \
  X (SET_FREE)       /* numbers of the program's own */                                        \
  X (ADD_GRADS)                                                                                \
  X (SCALE)      /* another scale */                                                           \
  X (PENALTY)    /* a backward of what is computed from a gradient */                          \
  X (STATIC_SET) /* as SET_FROM_OWN, by a static function */

#define NAME(x) x,
#define TEXT(x) #x,
typedef enum
{
  KINDS (NAME) N_KINDS
} Kind;
static const char *const kind_names[] = { KINDS (TEXT) };

typedef struct
{
  Kind kind;
  unsigned a, b, number;
} Step;

typedef struct
{
  unsigned seed;
  Step list[MAX_STEPS];
  int n;
  unsigned kinds[N_OPTS], scales[N_OPTS];
  bool spans; /* losses go through the first two nets */
} Sequence;

/* What one run is. */
typedef struct
{
  const Sequence *q;
  bool scaled;
  TdDtype dtype;
  TdLink *nets[N_NETS];
  TdOpt *opts[N_OPTS];
  TdStatic *halve;
  bool refused[MAX_STEPS];
  bool changed; /* a refused step changed something, or without scales one was refused */
  double numbers[N_NETS * 2 * SIZE * SIZE];
} Run;

static uint32_t stream;

static unsigned
draw (unsigned below)
{
  stream = stream * 1664525u + 1013904223u;
  return (stream >> 9) % below;
}

static Sequence
generate (unsigned seed)
{
  Sequence q = { .seed = seed };

  stream = 2654435761u * (seed + 1);
  q.n = 3 + (int)draw (MAX_STEPS - 3);
  for (int i = 0; i < q.n; i++)
    {
      q.list[i] = (Step){ (Kind)draw (N_KINDS), draw (8), draw (8), draw (64) };
      if (draw (2) == 0) /* else half would end with an error soon */
        q.list[i].kind = draw (2) == 0 ? BACKWARD : draw (2) == 0 ? UPDATE : CLEAR;
    }
  for (int k = 0; k < N_OPTS; k++)
    {
      q.kinds[k] = draw (3);
      q.scales[k] = draw (6);
    }
  q.spans = draw (3) == 0;
  return q;
}

static void
print (FILE *to, const Sequence *q, int n)
{
  fprintf (to, "seed %u: optimizers %u %u %u, scales %u %u %u%s\n", q->seed, q->kinds[0],
           q->kinds[1], q->kinds[2], q->scales[0], q->scales[1], q->scales[2],
           q->spans ? ", losses through two nets" : "");
  for (int i = 0; i < n; i++)
    fprintf (to, "  %-14s a %u, b %u, number %u\n", kind_names[q->list[i].kind], q->list[i].a,
             q->list[i].b, q->list[i].number);
}

/* --- one run --- */

static TdVar *
array (const Run *r, TdShape shape, unsigned seed)
{
  double numbers[SIZE * SIZE];
  TdVar *v;
  uint32_t s = seed * 747796405u + 12345;

  for (int k = 0; k < SIZE * SIZE; k++)
    {
      s = s * 1664525u + 1013904223u;
      numbers[k] = (double)(s >> 16) / 32768 - 1;
    }
  v = td_tensor (TD_F64, shape, numbers);
  return r->dtype == TD_F64 ? v : td_cast (v, r->dtype);
}

static TdVar *
param (const Run *r, unsigned k)
{
  return td_link_param (r->nets[k / 2 % N_NETS], k % 2 == 0 ? "W" : "b");
}

static void
set_scale (const Run *r, int k, unsigned scale)
{
  static const double scales[] = { 1, 2, 8, 1024, 0.25 };

  if (!r->scaled || r->opts[k] == NULL)
    return;
  if (scale >= 5)
    td_opt_loss_scaling (r->opts[k], .interval = 2);
  else
    td_opt_loss_scaling (r->opts[k], .scale = scales[scale]);
}

static TdOpt *
optimizer (unsigned kind, TdLink *net)
{
  return kind == 0   ? td_sgd_new (net, .lr = 0.01)
         : kind == 1 ? td_momentum_sgd_new (net, .lr = 0.01)
                     : td_adam_new (net, .lr = 0.01, .eps = 0.01);
}

static void
halve (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)n_in, (void)n_out;
  out[0] = td_mul_scalar (in[0], 0.5);
}

static void
write_param (Run *r, TdVar *v, unsigned seed)
{
  double room[SIZE * SIZE];
  const size_t bytes = (size_t)td_size (v) * td_dtype_bytes (r->dtype);

  TD_SCOPE ("numbers")
    td_read (array (r, td_shape (v), seed), room, bytes);
  td_write (v, room, bytes);
}

static void
prepare (Run *r)
{
  static const char *const names[] = { "first", "second", "copy" };

  td_config_set (dtype, (int)r->dtype);
  for (unsigned k = 0; k < N_NETS; k++)
    {
      r->nets[k] = td_linear_new (NULL, names[k], SIZE, SIZE);
      for (unsigned p = 0; p < 2; p++)
        write_param (r, param (r, 2 * k + p), r->q->seed + 2 * (k % 2) + p);
    }
  for (int k = 0; k < N_OPTS; k++)
    {
      r->opts[k] = optimizer (r->q->kinds[k], r->nets[k % 2]);
      set_scale (r, k, r->q->scales[k]);
    }
  r->halve = td_static_new (halve, NULL);
}

static TdVar *
loss_of (const Run *r, const Step *s)
{
  TdVar *x = array (r, TD_SHAPE (SIZE, SIZE), s->number), *y;

  y = td_tanh (td_link (r->nets[s->b % N_NETS], x));
  if (r->q->spans)
    y = td_link (r->nets[1], y);
  return td_mean (td_mul (y, y));
}

static TdStatus
set_from (TdVar *to, TdVar *from, unsigned number)
{
  TdVar *g;

  if (from == NULL)
    return TD_OK;
  g = number % 3 == 0   ? td_mul_scalar (from, 0.5)
      : number % 3 == 1 ? td_add (from, from)
                        : from;
  return td_set_grad (to, g);
}

static TdStatus
set_from_held (TdVar *p, unsigned number)
{
  TdVar *held = td_grad (p);
  TdStatus status;

  if (held == NULL)
    return TD_OK;
  td_retain (held);
  td_cleargrad (p);
  status = set_from (p, held, number);
  td_release (held);
  return status;
}

static TdStatus
penalty (const Run *r, TdVar *p, const Step *s)
{
  TdVar *g = td_grad (p), *loss;

  if (g == NULL)
    return TD_OK;
  loss = td_sum (td_mul (p, g));
  return s->number % 2 == 0 ? td_backward (loss, 0)
                            : td_opt_backward (r->opts[s->b % N_OPTS], loss, 0);
}

static TdStatus
static_set (const Run *r, TdVar *p)
{
  return td_grad (p) != NULL ? td_set_grad (p, td_static_call1 (r->halve, td_grad (p))) : TD_OK;
}

static TdStatus
step (Run *r, const Step *s)
{
  TdVar *p = param (r, s->a), *other = param (r, s->a / 2 * 2 + s->b * 2 + s->a % 2);
  TdOpt *opt = r->opts[s->a % N_OPTS];

  switch (s->kind)
    {
    case BACKWARD:
      return td_opt_backward (opt, loss_of (r, s), 0);
    case PLAIN_BACKWARD:
      return td_backward (loss_of (r, s), 0);
    case CLEAR:
      td_cleargrads (r->nets[s->a % N_NETS]);
      return TD_OK;
    case UPDATE:
      return td_opt_update (opt);
    case SET_FROM_OWN:
      return set_from (p, td_grad (p), s->number);
    case SET_FROM_OTHER:
      return set_from (p, td_grad (other), s->number);
    case SET_FROM_HELD:
      return set_from_held (p, s->number);
    case SET_FREE:
      return td_set_grad (p, array (r, td_shape (p), s->number));
    case ADD_GRADS:
      return td_link_add_grads (r->nets[s->a % 2 * 2], r->nets[2 - s->a % 2 * 2]);
    case SCALE:
      set_scale (r, (int)(s->a % N_OPTS), s->number % 6);
      return TD_OK;
    case PENALTY:
      return penalty (r, p, s);
    case STATIC_SET:
      return static_set (r, p);
    case N_KINDS:
    default:
      return TD_ERR_STATE;
    }
}

static void
note (const Run *r, bool gradients, double *numbers)
{
  for (unsigned k = 0; k < 2 * N_NETS; k++)
    TD_SCOPE ("numbers")
      {
        TdVar *v = gradients ? td_grad (param (r, k)) : param (r, k);

        if (v == NULL)
          continue;
        v = r->dtype == TD_F64 ? v : td_cast (v, TD_F64);
        td_read (v, numbers + k * SIZE * SIZE, (size_t)td_size (v) * sizeof *numbers);
      }
}

static void
try_step (Run *r, int k)
{
  double before[2 * N_NETS * SIZE * SIZE] = { 0 }, after[2 * N_NETS * SIZE * SIZE] = { 0 };

  if (r->scaled)
    note (r, true, before);
  if (step (r, &r->q->list[k]) == TD_OK)
    return;
  td_error ();
  td_error_clear ();
  r->refused[k] = true;
  note (r, true, after);
  r->changed
      |= !r->scaled
         || (r->q->list[k].kind != SET_FROM_HELD && memcmp (before, after, sizeof before) != 0);
}

static void
run (Run *r, int n)
{
  if (td_init (NULL, NULL) != TD_OK)
    abort ();
  prepare (r);
  for (int k = 0; k < n; k++)
    TD_SCOPE ("step")
      if (!r->refused[k])
        try_step (r, k);
      else if (r->q->list[k].kind == SET_FROM_HELD) /* which was the half of it */
        td_cleargrad (param (r, r->q->list[k].a));
  note (r, false, r->numbers);
  td_static_free (r->halve);
  for (int k = 0; k < N_OPTS; k++)
    td_opt_free (r->opts[k]);
  for (int k = 0; k < N_NETS; k++)
    td_link_free (r->nets[k]);
  td_config_set (dtype, TD_F32);
  td_finish ();
}

/* --- both --- */

static bool
near (double a, double b)
{
  return fabs (a - b) <= 2e-5 * (1 + fabs (b));
}

/* Say whether the first n steps with scales give the numbers of those without. */
static bool
agrees (const Sequence *q, int n, unsigned *n_refused)
{
  static Run with, without;
  bool same;

  with = (Run){ .q = q, .scaled = true, .dtype = TD_F32 };
  without = (Run){ .q = q, .dtype = TD_F64 };
  run (&with, n);
  memcpy (without.refused, with.refused, sizeof with.refused);
  run (&without, n);
  same = !with.changed && !without.changed;
  for (int k = 0; k < 2 * N_NETS * SIZE * SIZE && same; k++)
    same = near (with.numbers[k], without.numbers[k]);
  for (int k = 0; k < n; k++)
    *n_refused += with.refused[k];
  return same;
}

int
main (int argc, char **argv)
{
  const unsigned n = argc > 1 ? (unsigned)strtoul (argv[1], NULL, 10) : SEQUENCES;
  const unsigned first = argc > 2 ? (unsigned)strtoul (argv[2], NULL, 10) : 0;
  unsigned n_failed = 0, n_refused = 0, n_steps = 0;

  if (td_test_setup (NULL) != 0)
    return 1;
  for (unsigned k = 0; k < n && n_failed < MOST_TOLD; k++)
    {
      const Sequence q = generate (first + k);
      int least = 1;

      n_steps += (unsigned)q.n;
      if (agrees (&q, q.n, &n_refused))
        continue;
      while (least < q.n && agrees (&q, least, &n_refused))
        least++;
      n_failed++;
      print (stderr, &q, least);
    }
  printf ("%u sequences from seed %u: %u failed; %u steps, %u of them refused\n", n, first,
          n_failed, n_steps, n_refused);
  if (n_refused == 0 || n_refused > n_steps / 2) /* it looked at nothing */
    n_failed++;
  td_test_teardown (NULL);
  return n_failed > 0;
}
