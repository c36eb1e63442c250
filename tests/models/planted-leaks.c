/* Random training programs with one leak planted in a known place, and the same programs cured:
 *
 *     planted-leaks SEED leaking|cured
 *
 * A program trains a few layers, and besides does what sound programs do: it evaluates now and
 * then, keeps the newest losses in a ring and those of an epoch in a list, fills a cache once,
 * clears gradients only every few iterations. In some seeds what it keeps has names of its own:
 * one for all, one for each iteration, or a few in turn. Some seeds plant nothing. What was
 * planted is printed, with the line that a user has to look at:
 *
 *     KIND WHEN LINE HOLDER
 *
 * LINE is -1 where nothing is planted, and 0 where no place is known: persistents of links that
 * are made without one.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MOST_LAYERS = 4,
  MOST_KEPT = 200,
  ROWS = 4
};

typedef enum
{
  LOSSES,
  TOTAL,
  OUTPUTS,
  GRADIENTS,
  AVERAGE,
  ATTRIBUTE,
  LINKS,
  COPIES,
  OPTIMIZERS,
  STATE,
  PERSISTENTS,
  CACHED,
  VARIABLES,
  ATTRIBUTES,
  HISTORY,
  NOTHING,
  N_KINDS
} Kind;

typedef enum
{
  ALWAYS,
  EVERY_THIRD,
  FROM_SOME_ON,
  N_WHENS
} When;

static const char *const kinds[N_KINDS]
    = { "losses",    "total",      "outputs",    "gradients", "average",     "attribute",
        "links",     "copies",     "optimizers", "state",     "persistents", "cached",
        "variables", "attributes", "history",    "nothing" };

/* The names of what is kept. */
typedef enum
{
  NO_NAME,
  ONE_NAME,
  EACH_ITS_OWN,
  A_FEW_IN_TURN,
  N_NAMINGS
} Naming;

static const char *const whens[N_WHENS] = { "always", "every-third", "from-some-on" };

static uint64_t random_state;

static int
pick (int n)
{
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int)((random_state >> 33) % (uint64_t)n);
}

/* 0: it is not done. */
static int
now_and_then (int least, int most)
{
  return pick (2) ? least + pick (most - least + 1) : 0;
}

typedef struct
{
  Kind kind;
  When when;
  bool cured;
  int n, first, phase; /* iterations; the leak's first one */
  int width, n_layers, activation[MOST_LAYERS];
  int evaluates, ring, epoch, cache, clears, late, cuts;
  TdLink *net, *layer[MOST_LAYERS], *head, *cell;
  TdOpt *opt;
  Naming naming;
  int now; /* the iteration */
  TdVar *kept[MOST_KEPT], *last;
  int n_kept;
  int line;
  const char *holder;
} Program;

static void
make (Program *p)
{
  int which;

  p->kind = (Kind)pick (N_KINDS);
  p->when = (When)pick (N_WHENS);
  p->n = 40 + pick (41);
  p->first = p->when == FROM_SOME_ON ? 2 + pick (p->n / 2) : 0;
  p->phase = pick (3);
  p->width = 4 + 4 * pick (8);
  p->n_layers = 1 + pick (MOST_LAYERS);
  p->evaluates = now_and_then (2, 9);
  p->ring = now_and_then (1, 10);
  p->epoch = now_and_then (3, 12);
  p->cache = now_and_then (1, 10);
  p->clears = pick (2) ? 1 : 2 + pick (3);
  p->late = now_and_then (1, 20);
  p->cuts = 1 + pick (6);
  p->naming = (Naming)pick (N_NAMINGS);
  p->net = td_chain_new ("net");
  for (int k = 0; k < p->n_layers; k++)
    {
      char name[16];

      snprintf (name, sizeof name, "l%d", k);
      /* of unknown width until it is called */
      p->layer[k] = td_linear_new (p->net, name, pick (2) ? -1 : p->width, p->width);
      p->activation[k] = pick (4);
    }
  if (p->kind == STATE)
    p->cell = td_lstm_new (p->net, "cell", p->width, p->width);
  p->head = td_linear_new (p->net, "head", p->width, 1);
  which = pick (3);
  p->opt = which == 0   ? td_sgd_new (p->net, .lr = 1e-4)
           : which == 1 ? td_momentum_sgd_new (p->net, .lr = 1e-4)
                        : td_adam_new (p->net, .lr = 1e-4);
}

static TdVar *
forward (Program *p, TdVar *x)
{
  for (int k = 0; k < p->n_layers; k++)
    {
      x = td_link (p->layer[k], x);
      x = p->activation[k] == 0   ? td_relu (x)
          : p->activation[k] == 1 ? td_tanh (x)
          : p->activation[k] == 2 ? td_add (td_sigmoid (x), x)
                                  : td_square (x);
    }
  return x;
}

static TdVar *
batch (const Program *p)
{
  return td_randn (TD_F32, TD_SHAPE (ROWS, p->width));
}

/* A name that is not there yet, or the one that has been there all along. */
static const char *
fresh (const Program *p, const char *stem)
{
  static char text[40];

  if (p->cured)
    return stem;
  snprintf (text, sizeof text, "%s-%d", stem, p->now);
  return text;
}

/* Name what is about to be kept, as the program does. */
static TdVar *
called (const Program *p, const char *stem, TdVar *v)
{
  char text[40];

  if (p->naming == NO_NAME)
    return v;
  snprintf (text, sizeof text, "%s-%d", stem,
            p->naming == EACH_ITS_OWN    ? p->now
            : p->naming == A_FEW_IN_TURN ? p->now % 7
                                         : 0);
  return td_name (v, text);
}

/* ---- what sound programs do ---- */

static void
evaluate (Program *p)
{
  TD_NO_BACKPROP
    {
      TdVar *y = forward (p, batch (p));

      td_report ("validation", td_item (td_mean (td_square (td_link (p->head, y)))));
    }
}

static void
keep_in_ring (const Program *p, TdVar *loss, int i)
{
  static TdVar *ring[10];

  if (ring[i % p->ring] != NULL)
    td_release (ring[i % p->ring]);
  ring[i % p->ring] = td_retain (called (p, "recent", td_mul_scalar (loss, 0.5)));
}

/* The losses of an epoch, which are given up when it ends. */
static void
keep_for_epoch (const Program *p, TdVar *loss, int i)
{
  static TdVar *list[12];
  static int n;

  list[n++] = td_retain (called (p, "epoch", td_mul_scalar (loss, 2)));
  if (n < p->epoch)
    return;
  while (n > 0)
    td_release (list[--n]);
}

static void
fill_cache (const Program *p, TdVar *x, int i)
{
  static TdVar *cache[10];

  if (cache[i % p->cache] == NULL)
    cache[i % p->cache] = td_retain (called (p, "cached", x));
}

/* A second optimizer and one more link, once. */
static void
begin_late (const Program *p, TdVar *y, int i)
{
  static TdLink *link;
  static TdOpt *opt;

  if (i == p->late)
    {
      link = td_linear_new (NULL, "late", -1, p->width);
      opt = td_adam_new (p->net, .lr = 1e-5);
    }
  if (i < p->late)
    return;
  td_link (link, y);
  if (p->cell == NULL && i % 2 == 0)
    td_opt_update (opt);
}

/* ---- what leaks, and the same cured ---- */

static void
keep (Program *p, TdVar *v)
{
  p->kept[p->n_kept++] = v;
}

static void
replace (Program *p, TdVar *v)
{
  if (p->last != NULL)
    td_release (p->last);
  p->last = v;
}

static void
losses (Program *p, TdVar *loss, TdVar *y)
{
  static double sum;

  p->line = __LINE__ + 2;
  if (!p->cured)
    keep (p, td_retain (called (p, "loss", loss)));
  else
    sum += td_item (loss);
  (void)sum; /* read by nobody */
}

static void
total (Program *p, TdVar *loss, TdVar *y)
{
  TdVar *sum = p->last != NULL ? td_add (p->last, loss) : td_mul_scalar (loss, 1);

  p->line = __LINE__ + 1;
  replace (p, td_retain (called (p, "total", sum)));
  if (p->cured)
    td_unchain (p->last);
}

/* Without a graph: all of them, or only the newest. */
static void
outputs (Program *p, TdVar *loss, TdVar *y)
{
  TD_NO_BACKPROP
    {
      TdVar *number = td_mul_scalar (y, 1);

      p->line = __LINE__ + 2;
      if (!p->cured)
        keep (p, td_retain (called (p, "output", number)));
      else
        replace (p, td_retain (called (p, "output", number)));
    }
}

static void
gradients (Program *p, TdVar *loss, TdVar *y)
{
  TdVar *copy = NULL;

  TD_NO_BACKPROP
    copy = td_mul_scalar (td_grad (td_link_param (p->head, "W")), 1);
  p->line = __LINE__ + 2;
  if (!p->cured)
    keep (p, td_retain (called (p, "gradient", copy)));
  else
    replace (p, td_retain (called (p, "gradient", copy)));
}

static TdVar *
mixed (TdVar *before, TdVar *loss)
{
  return before != NULL ? td_add (td_mul_scalar (before, 0.9), td_mul_scalar (loss, 0.1))
                        : td_mul_scalar (loss, 1);
}

static void
average (Program *p, TdVar *loss, TdVar *y)
{
  TdVar *now = NULL;

  if (p->cured)
    TD_NO_BACKPROP
      now = mixed (p->last, loss);
  else
    now = mixed (p->last, loss);
  p->line = __LINE__ + 1;
  replace (p, td_retain (called (p, "average", now)));
}

/* A link that remembers what it has seen. */
static void
attribute (Program *p, TdVar *loss, TdVar *y)
{
  TdVar *before = td_link_attr (p->net, "memory"), *now = td_tanh (y);

  if (before != NULL)
    now = td_add (before, td_tanh (y));
  p->line = __LINE__ + 1;
  td_link_set_attr (p->net, "memory", now);
  if (p->cured)
    td_unchain (now);
  p->holder = "link attribute";
}

static void
links (Program *p, TdVar *loss, TdVar *y)
{
  p->line = __LINE__ + 1;
  TdLink *aside = td_linear_new (NULL, "aside", p->width, p->width);

  td_link (aside, y);
  if (p->cured)
    td_link_free (aside);
  p->holder = "link attribute";
}

/* A snapshot of the net, as of the best so far. */
static void
copies (Program *p, TdVar *loss, TdVar *y)
{
  p->line = __LINE__ + 1;
  TdLink *best = td_link_copy (p->net);

  if (p->cured)
    td_link_free (best);
  p->holder = "link attribute";
}

static void
optimizers (Program *p, TdVar *loss, TdVar *y)
{
  p->line = __LINE__ + 1;
  TdOpt *again = td_adam_new (p->net, .lr = 1e-5);

  td_opt_update (again);
  if (p->cured)
    td_opt_free (again);
  p->holder = "optimizer";
}

/* Of a place that nobody knows: td_zeros and td_link_add_persistent do not take one. */
static void
persistents (Program *p, TdVar *loss, TdVar *y)
{
  static bool once;

  p->line = 0;
  p->holder = "link attribute";
  if (!p->cured || !once)
    td_link_add_persistent (p->net, fresh (p, "p"), td_zeros (TD_F32, TD_SHAPE (p->width)));
  once = true;
}

/* The same of what an operation made. */
static void
cached (Program *p, TdVar *loss, TdVar *y)
{
  TdVar *value = NULL;

  TD_NO_BACKPROP
    value = td_tanh (y);
  p->line = __LINE__ + 1;
  td_link_set_attr (p->net, fresh (p, "c"), value);
  p->holder = "link attribute";
}

static void
variables (Program *p, TdVar *loss, TdVar *y)
{
  TdVar *value = td_zeros (TD_F32, TD_SHAPE (p->width));

  p->line = __LINE__ + 2;
  if (!p->cured)
    td_retain (td_variable (value, fresh (p, "v")));
  else
    replace (p, td_retain (td_variable (value, fresh (p, "v"))));
}

/* An attribute of a name of its own for each iteration, which keeps its graph. */
static void
attributes (Program *p, TdVar *loss, TdVar *y)
{
  p->line = __LINE__ + 1;
  td_link_set_attr (p->net, fresh (p, "a"), td_tanh (y));
  p->holder = "link attribute";
}

/* One array, which becomes longer: cured, the newest rows of it. */
static void
history (Program *p, TdVar *loss, TdVar *y)
{
  TdVar *rows = y;

  TD_NO_BACKPROP
    {
      if (p->last != NULL)
        rows = td_concat (((TdVar *[]){ p->last, y }), 2, 0);
      if (p->cured && td_shape (rows).dim[0] > 3 * ROWS)
        rows = td_get_item (rows, ((TdSlice[]){ TD_RANGE (-3 * ROWS, TD_END) }), 1);
      p->line = __LINE__ + 1;
      replace (p, td_retain (called (p, "history", td_mul_scalar (rows, 1))));
    }
}

static void (*const plant[N_KINDS]) (Program *p, TdVar *loss, TdVar *y)
    = { losses,     total, outputs,     gradients, average,   attribute,  links,   copies,
        optimizers, NULL,  persistents, cached,    variables, attributes, history, NULL };

static bool
is_time (const Program *p, int i)
{
  return i >= p->first && (p->when != EVERY_THIRD || i % 3 == p->phase);
}

/* Where there is a state, it is cut off after every few iterations. */
static void
train (const Program *p, TdVar *loss, int i)
{
  if (p->cell != NULL && i % p->cuts != 0)
    return;
  if (i % p->clears == 0)
    td_cleargrads (p->net);
  td_backward (loss, 0);
  if (p->cell != NULL)
    td_unchain_backward (loss);
  td_opt_update (p->opt);
}

static void
iterate (Program *p, int i)
{
  TdVar *x = batch (p), *y = forward (p, x), *loss;

  p->now = i;
  if (p->cell != NULL)
    {
      p->line = __LINE__ + 1;
      y = td_link (p->cell, y);
      p->holder = "link attribute";
    }
  loss = td_mean (td_square (td_link (p->head, y)));
  if (p->cell == NULL || p->cured)
    train (p, loss, i);
  if (plant[p->kind] != NULL && is_time (p, i))
    plant[p->kind](p, loss, y);
  if (p->evaluates > 0 && i % p->evaluates == 0)
    evaluate (p);
  if (p->ring > 0)
    keep_in_ring (p, loss, i);
  if (p->epoch > 0)
    keep_for_epoch (p, loss, i);
  if (p->cache > 0)
    fill_cache (p, x, i);
  if (p->late > 0)
    begin_late (p, y, i);
  td_report ("loss", td_item (loss));
}

int
main (int argc, char **argv)
{
  static Program p = { .line = -1, .holder = "user handle" };

  td_init (&argc, &argv);
  random_state = (argc > 1 ? strtoull (argv[1], NULL, 10) : 1) * 7919 + 17;
  p.cured = argc > 2 && strcmp (argv[2], "cured") == 0;
  for (int i = 0; i < 8; i++)
    pick (2);
  make (&p);
  TD_ITERATIONS (i, p.n)
    iterate (&p, (int)i);
  printf ("%s %s %d %s\n", kinds[p.kind], whens[p.when], p.line, p.holder);
  return td_finish ();
}
