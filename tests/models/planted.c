/* Random nets with a NaN planted in a known place, one net after the other: from seed FIRST on,
 * N of them; with a third argument, some layers of each are a static function. Each trains for
 * a few iterations and prints where its NaN comes from:
 *
 *     SEED ASK KIND ITERATION OP LINE ELEMENT CAUSE_OP CAUSE_LINE
 *
 * ASK is the iteration whose NaN is asked for; KIND is made or came; OP the operation, or the
 * name of what came in (of an update that overflows: what made the infinity); -1 and - stand
 * for nothing. In half of the nets there is a second NaN, older, which where () keeps from
 * reaching anything.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum
{
  ROWS = 3,
  COLUMNS = 4,
  SIZE = ROWS * COLUMNS,
  MOST = 4,
  N_ITERATIONS = 5,
};

typedef enum
{
  LOG,
  SQRT,
  QUOTIENT,
  OVERFLOW,
  MASK,
  BACKWARD,
  UPDATE,
  BATCH,
  WEIGHT,
  GRADIENT,
  N_KINDS
} Kind;

static uint64_t random_state;

static int
pick (int n)
{
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int)((random_state >> 33) % (uint64_t)n);
}

typedef struct
{
  Kind kind;
  int at, element; /* iteration and element of the planted NaN */
  int layer;       /* that it is planted before */
  int n_layers, activation[MOST], mix[MOST];
  int hidden; /* element of the NaN that goes nowhere; -1: there is none */
  TdLink *net, *link[MOST], *head;
  TdOpt *opt;
  int momentum, line, cause_line;
  TdStatic *function; /* of layers [from, to); NULL: all of it is plain code */
  int from, to;
} Case;

/* What differs from one iteration to the next, and so cannot be in a static function. */
typedef struct
{
  TdVar *odd, *secret;
} Given;

/* `usual` everywhere, but `odd` at an element; -1: nowhere. */
static TdVar *
constant (double usual, double odd, int element)
{
  float numbers[SIZE];

  for (int i = 0; i < SIZE; i++)
    numbers[i] = (float)(i == element ? odd : usual);
  return td_tensor (TD_F32, TD_SHAPE (ROWS, COLUMNS), numbers);
}

/* The same for the row of an element. */
static TdVar *
constant_row (double usual, double odd, int element)
{
  float numbers[SIZE];

  for (int i = 0; i < SIZE; i++)
    numbers[i] = (float)(element >= 0 && i / COLUMNS == element / COLUMNS ? odd : usual);
  return td_tensor (TD_F32, TD_SHAPE (ROWS, COLUMNS), numbers);
}

static TdVar *
chosen (const Case *c)
{
  uint8_t bits[SIZE];

  for (int i = 0; i < SIZE; i++)
    bits[i] = (uint8_t)(i != c->element && i != c->hidden && (i * 7 + c->n_layers) % 3 == 0);
  return td_tensor (TD_BOOL, TD_SHAPE (ROWS, COLUMNS), bits);
}

/* h plus something small, without changing where numbers are. */
static TdVar *
around (TdVar *h, TdVar *numbers)
{
  return td_add (td_mul_scalar (td_tanh (h), 0.1), numbers);
}

static TdVar *
plant (Case *c, TdVar *h, TdVar *odd)
{
  TdVar *positive = td_add_scalar (td_sigmoid (h), 1), *e;

  switch (c->kind)
    {
    case LOG:
      c->line = __LINE__ + 1;
      return td_log (around (h, odd));
    case SQRT:
      c->line = __LINE__ + 1;
      return td_sqrt (around (h, odd));
    case QUOTIENT:
      e = td_mul (positive, odd);
      c->line = __LINE__ + 1;
      return td_div (td_add (e, e), e);
    case OVERFLOW:
      c->cause_line = __LINE__ + 1;
      e = td_exp (around (h, odd));
      c->line = __LINE__ + 1;
      return td_sub (td_add (e, constant (1, 1, -1)), e);
    case MASK: /* all of a row is masked */
      c->cause_line = __LINE__ + 1;
      e = td_log (odd);
      e = td_add (e, h);
      c->line = __LINE__ + 1;
      return td_softmax (e);
    case BACKWARD:
      c->line = __LINE__ + 1;
      e = td_sqrt (td_mul (positive, odd));
      return td_where (chosen (c), e, h);
    default:
      return h;
    }
}

static TdVar *
activation (int which, TdVar *h)
{
  switch (which)
    {
    case 0:
      return td_tanh (h);
    case 1:
      return td_sigmoid (h);
    case 2:
      return td_softplus (h);
    case 3:
      return td_softmax (h);
    default: /* bounded: no net overflows by itself */
      return td_square (td_tanh (h));
    }
}

/* What a layer does besides: nothing, or moves its numbers about and back. */
static TdVar *
mixed (int which, TdVar *h, TdVar *before)
{
  switch (which)
    {
    case 0:
      return td_add (h, before);
    case 1:
      return td_transpose (td_transpose (h, (int[]){ 1, 0 }), (int[]){ 1, 0 });
    case 2:
      return td_reshape (td_reshape (h, TD_SHAPE (SIZE)), TD_SHAPE (ROWS, COLUMNS));
    case 3:
      return td_sum_axes (
          td_concat ((TdVar *[]){ td_expand_dims (h, 0), td_expand_dims (before, 0) }, 2, 0),
          (int[]){ 0 }, 1, false);
    default:
      return h;
    }
}

static TdVar *
layers (Case *c, TdVar *h, const Given *given, int from, int to)
{
  for (int k = from; k < to; k++)
    {
      TdVar *before = h;

      if (k == c->layer)
        {
          h = plant (c, h, given->odd);
          if (c->hidden >= 0)
            h = td_where (chosen (c), td_log (given->secret), h);
        }
      h = mixed (c->mix[k], activation (c->activation[k], td_link (c->link[k], h)), before);
    }
  return h;
}

static void
body (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Case *c = self;

  (void)n_in;
  (void)n_out;
  out[0] = layers (c, in[0], &(Given){ in[1], in[2] }, c->from, c->to);
}

static TdVar *
loss_of (Case *c, int now)
{
  static const double numbers[N_KINDS][2] = {
    [LOG] = { 2, -3 },       [SQRT] = { 2, -3 }, [QUOTIENT] = { 1, 0 },
    [OVERFLOW] = { 1, 200 }, [MASK] = { 1, 0 },  [BACKWARD] = { 1, 0 },
  };
  const double *n = numbers[c->kind];
  double odd = c->kind == BATCH && now ? (double)NAN : 0.7;
  TdVar *x = td_name (constant (0.5, odd, c->element), "batch"), *h;
  Given given
      = { (c->kind == MASK ? constant_row : constant) (n[0], n[1], now ? c->element : -1),
          constant (2, now ? -1 : 2, c->hidden) };

  if (c->function == NULL)
    return td_mean (td_link (c->head, layers (c, x, &given, 0, c->n_layers)));
  h = layers (c, x, &given, 0, c->from);
  td_static_call (c->function, (TdVar *[]){ h, given.odd, given.secret }, 3, &h, 1);
  return td_mean (td_link (c->head, layers (c, h, &given, c->to, c->n_layers)));
}

static void
make (Case *c, bool has_function)
{
  *c = (Case){ .kind = (Kind)pick (N_KINDS),
               .at = 1 + pick (2),
               .element = pick (SIZE),
               .n_layers = 2 + pick (MOST - 1),
               .hidden = -1,
               .net = td_chain_new ("net") };
  c->layer = 1 + pick (c->n_layers - 1);
  if (c->kind == MASK)
    c->element -= c->element % COLUMNS; /* the first of those that are bad */
  else if (c->kind != BACKWARD && pick (2))
    c->hidden = (c->element + 1 + pick (SIZE - 1)) % SIZE;
  for (int k = 0; k < c->n_layers; k++)
    {
      char name[8];

      snprintf (name, sizeof name, "l%d", k);
      c->link[k] = td_linear_new (c->net, name, COLUMNS, COLUMNS);
      c->activation[k] = pick (5);
      c->mix[k] = pick (5);
    }
  c->head = td_linear_new (c->net, "head", COLUMNS, 2);
  c->momentum = pick (2);
  c->opt = c->momentum ? td_momentum_sgd_new (c->net, .lr = 0.01)
                       : td_sgd_new (c->net, .lr = 0.01);
  if (pick (2)) /* spreads what is bad over all gradients */
    td_opt_add_hook (c->opt, td_gradient_clipping_new (1e6));
  if (!has_function)
    return;
  c->at += pick (2); /* replayed from 1 on, beside its code in 1, 2 and 4 */
  c->from = pick (c->n_layers);
  c->to = c->from + 1 + pick (c->n_layers - c->from);
  c->function = td_static_new (body, c, .name = "middle");
}

/* Writes a NaN into a weight, as a program that copies weights by hand may, or into a gradient,
 * as one that scales them. */
static void
write_nan (Case *c, TdVar *w)
{
  float numbers[COLUMNS * COLUMNS];

  td_read (w, numbers, sizeof numbers);
  numbers[c->element] = NAN;
  td_write (w, numbers, sizeof numbers);
}

static const char *
op_of (const Case *c)
{
  static const char *const names[]
      = { "log", "sqrt", "div", "sub", "softmax", "div", NULL, "batch", "W", "W.grad" };

  return c->kind != UPDATE ? names[c->kind] : c->momentum ? "momentum_sgd" : "sgd";
}

static void
run (int seed, int first_iteration, bool has_function)
{
  Case c;
  int bad[N_ITERATIONS], ask;

  random_state = (uint64_t)seed * 7919 + 17;
  td_set_seed ((uint64_t)seed); /* the weights: a seed is the same net whichever came before */
  for (int i = 0; i < 8; i++)
    pick (2);
  make (&c, has_function);
  for (int i = 0; i < N_ITERATIONS; i++)
    TD_ITERATION (first_iteration + i)
      {
        if (c.kind == WEIGHT && i == c.at)
          write_nan (&c, td_link_param (c.link[0], "W"));
        TdVar *loss = loss_of (&c, i == c.at);

        td_cleargrads (c.net);
        td_backward (loss, 0);
        if (c.kind == GRADIENT && i == c.at)
          write_nan (&c, td_grad (td_link_param (c.link[0], "W")));
        if (c.kind == UPDATE && i == c.at)
          td_opt_set_lr (c.opt, 1e300); /* no float */
        td_opt_update (c.opt);
        bad[i] = !isfinite (td_item (loss));
      }
  ask = c.at + pick (N_ITERATIONS - c.at < 3 ? N_ITERATIONS - c.at : 3);
  if (!bad[ask] && c.kind != BACKWARD)
    ask = c.kind == UPDATE || c.kind == GRADIENT ? c.at + 1 : c.at;
  if (c.kind == BACKWARD)
    ask = bad[c.at + 1] ? ask : c.at;
  printf ("%d %d %s %d %s %d %d %s %d\n", seed, first_iteration + ask,
          c.kind < BATCH ? "made" : "came", first_iteration + c.at, op_of (&c),
          c.kind < UPDATE ? c.line : -1, c.kind != UPDATE ? c.element : -1,
          c.kind == OVERFLOW ? "exp"
          : c.kind == MASK   ? "log"
                             : "-",
          c.kind == OVERFLOW || c.kind == MASK ? c.cause_line : -1);
  td_static_free (c.function);
  td_opt_free (c.opt);
  td_link_free (c.net);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);
  int first = argc > 1 ? atoi (argv[1]) : 1, n = argc > 2 ? atoi (argv[2]) : 10;

  for (int i = 0; i < n; i++)
    run (first + i, i * N_ITERATIONS, argc > 3);
  return td_finish ();
}
