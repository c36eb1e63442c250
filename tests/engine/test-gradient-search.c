/* A searcher: random graphs in double precision, in which variables are used several times and
 * of shapes that are broadcast, so that gradients are sums of many kinds.  What backward gives
 * is held against td_grad_of, which touches no gradient that is there, and that against
 * differences of the loss; second gradients against differences of the first.
 *
 * Arguments: how many graphs, and the first seed.
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "td-test.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  GRAPHS = 1500,
  MOST_TOLD = 5,
  ROWS = 3,
  COLUMNS = 4,
  N_LEAVES = 6,
  ROOM = COLUMNS * COLUMNS, /* of the largest leaf */
  MAX_STATEMENTS = 16
};

static const TdShape leaf_shapes[N_LEAVES] = {
  { 2, { ROWS, COLUMNS } }, { 2, { 1, COLUMNS } },       { 2, { ROWS, 1 } },
  { 2, { 1, 1 } },          { 2, { COLUMNS, COLUMNS } }, { 1, { COLUMNS } },
};

/* The last two leaves are weights, the others the first variables. */
enum
{
  WEIGHT = 4,
  BIAS = 5
};

typedef struct
{
  double numbers[N_LEAVES][ROOM];
} Point;

/* --- statements: each makes one more variable, (1 or ROWS, 1 or COLUMNS) --- */

static TdVar *leaves[N_LEAVES]; /* of the graph that is being built */

static TdVar *
whole (TdVar *a)
{
  return td_broadcast_to (a, TD_SHAPE (ROWS, COLUMNS));
}

#define STATEMENT(name, expression)                                                            \
  static TdVar *name (TdVar *a, TdVar *b)                                                      \
  {                                                                                            \
    (void)b;                                                                                   \
    return expression;                                                                         \
  }

STATEMENT (add, td_add (a, b))
STATEMENT (sub, td_sub (a, b))
STATEMENT (mul, td_mul (td_tanh (a), b))
STATEMENT (mul_plain, td_mul_scalar (td_mul (a, b), 0.5))
STATEMENT (divide, td_div (a, td_add_scalar (td_square (b), 1)))
STATEMENT (power, td_pow (td_add_scalar (td_square (a), 0.5), td_tanh (b)))
STATEMENT (negative, td_neg (a))
STATEMENT (scaled, td_mul_scalar (a, -0.75))
STATEMENT (shifted, td_add_scalar (a, 0.25))
STATEMENT (hyperbolic, td_tanh (a))
STATEMENT (logistic, td_sigmoid (a))
STATEMENT (exponential, td_exp (td_tanh (a)))
STATEMENT (logarithm, td_log (td_add_scalar (td_square (a), 1)))
STATEMENT (root, td_sqrt (td_add_scalar (td_square (a), 1)))
STATEMENT (sine, td_sin (a))
STATEMENT (squared, td_square (td_tanh (a)))
STATEMENT (column_sums, td_sum_axes (a, (const int[]){ 0 }, 1, true))
STATEMENT (row_sums, td_mul_scalar (td_sum_axes (a, (const int[]){ 1 }, 1, true), 0.5))
STATEMENT (mean, td_reshape (td_mean (a), TD_SHAPE (1, 1)))
STATEMENT (centered, td_sub (a, td_reshape (td_mean (a), TD_SHAPE (1, 1))))
STATEMENT (broadcast, whole (a))
STATEMENT (product, td_matmul (whole (td_tanh (a)), leaves[WEIGHT], false, false))
STATEMENT (layer, td_linear (whole (td_tanh (a)), leaves[WEIGHT], leaves[BIAS]))
STATEMENT (biased, td_add (whole (a), td_broadcast_to (leaves[BIAS], TD_SHAPE (ROWS, COLUMNS))))
STATEMENT (soft, td_softmax (whole (a)))
STATEMENT (log_soft, td_log_softmax (whole (a)))
STATEMENT (turned, td_transpose (td_tanh (td_transpose (a, NULL)), NULL))
STATEMENT (flattened, td_reshape (td_sin (td_reshape (whole (a), TD_SHAPE (ROWS *COLUMNS))),
                                  TD_SHAPE (ROWS, COLUMNS)))
STATEMENT (sums_of_exponentials,
           td_reshape (td_logsumexp_axes (whole (a), (const int[]){ 1 }, 1, false),
                       TD_SHAPE (ROWS, 1)))

static TdVar *
joined (TdVar *a, TdVar *b)
{
  TdVar *both[] = { whole (a), whole (b) }, *parts[4];

  if (td_split_axis (td_concat (both, 2, 1), 4, 1, parts) != TD_OK)
    return td_tanh (a);
  return td_concat ((TdVar *const[]){ parts[1], td_sub (parts[2], parts[3]) }, 2, 1);
}

static TdVar *
stacked (TdVar *a, TdVar *b)
{
  TdVar *both[] = { whole (a), whole (b) };

  return td_sum_axes (td_tanh (td_stack (both, 2, 0)), (const int[]){ 0 }, 1, false);
}

static TdVar *
chosen (TdVar *a, TdVar *b)
{
  static const uint8_t mask[COLUMNS] = { 1, 0, 0, 1 };

  return td_where (td_tensor (TD_BOOL, TD_SHAPE (1, COLUMNS), mask), a, b);
}

static void
forgotten_body (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)user, (void)n_in, (void)n_out;
  out[0] = td_mul (td_sub (td_tanh (in[0]), in[1]), td_sigmoid (in[1]));
}

static TdVar *
forgotten (TdVar *a, TdVar *b)
{
  TdVar *in[] = { a, b }, *y = NULL;

  td_forget (forgotten_body, NULL, in, 2, &y, 1);
  return y;
}

typedef struct
{
  const char *name;
  TdVar *(*make) (TdVar *a, TdVar *b);
} Kind;

#define KIND(name)                                                                             \
  {                                                                                            \
#name, name                                                                                \
  }
static const Kind kinds[] = {
  KIND (add),
  KIND (sub),
  KIND (mul),
  KIND (mul_plain),
  KIND (divide),
  KIND (power),
  KIND (negative),
  KIND (scaled),
  KIND (shifted),
  KIND (hyperbolic),
  KIND (logistic),
  KIND (exponential),
  KIND (logarithm),
  KIND (root),
  KIND (sine),
  KIND (squared),
  KIND (column_sums),
  KIND (row_sums),
  KIND (mean),
  KIND (centered),
  KIND (broadcast),
  KIND (product),
  KIND (layer),
  KIND (biased),
  KIND (soft),
  KIND (log_soft),
  KIND (turned),
  KIND (flattened),
  KIND (sums_of_exponentials),
  KIND (joined),
  KIND (stacked),
  KIND (chosen),
  KIND (forgotten),
};

/* --- graphs --- */

typedef struct
{
  unsigned seed;
  int n;
  struct
  {
    unsigned kind, a, b;
  } list[MAX_STATEMENTS];
} Graph;

static uint32_t stream;

static unsigned
draw (unsigned below)
{
  stream = stream * 1664525u + 1013904223u;
  return (stream >> 9) % below;
}

static Graph
graph_of (unsigned seed)
{
  Graph g = { .seed = seed };

  stream = 2654435761u * (seed + 1);
  g.n = 2 + (int)draw (MAX_STATEMENTS - 2);
  for (int i = 0; i < g.n; i++)
    {
      g.list[i].kind = draw (sizeof kinds / sizeof *kinds);
      g.list[i].a = draw (5);
      g.list[i].b = draw (5);
    }
  return g;
}

static Point
point_of (unsigned seed)
{
  Point p;

  stream = 40503u * (seed + 7);
  for (int l = 0; l < N_LEAVES; l++)
    for (int k = 0; k < ROOM; k++)
      p.numbers[l][k] = (double)draw (1 << 20) / (1 << 19) - 1;
  return p;
}

static int64_t
size_of (int leaf)
{
  int64_t size = 1;

  for (int d = 0; d < leaf_shapes[leaf].ndim; d++)
    size *= leaf_shapes[leaf].dim[d];
  return size;
}

static void
make_leaves (const Point *at)
{
  for (int l = 0; l < N_LEAVES; l++)
    leaves[l] = td_variable (td_tensor (TD_F64, leaf_shapes[l], at->numbers[l]), NULL);
}

/* The loss: sums of the newest variables, no two elements of which weigh the same.  between, if
 * not NULL, gets a variable on the way. */
static TdVar *
loss_of (const Graph *g, TdVar **between)
{
  TdVar *made[MAX_STATEMENTS + N_LEAVES], *loss = NULL;
  int n = 0;

  for (int l = 0; l < WEIGHT; l++)
    made[n++] = leaves[l];
  for (int i = 0; i < g->n; i++, n++)
    made[n] = kinds[g->list[i].kind].make (made[n - 1 - (int)g->list[i].a % n],
                                           made[n - 1 - (int)g->list[i].b % n]);
  for (int k = 0; k < 3; k++)
    {
      TdVar *y = td_tanh (whole (made[n - 1 - k]));
      TdVar *weights = td_reshape (td_arange (TD_F64, 1 + k, 1 + k + ROWS * COLUMNS, 1),
                                   TD_SHAPE (ROWS, COLUMNS));
      TdVar *part = td_mul_scalar (td_sum (td_mul (y, weights)), 0.25);

      loss = loss == NULL ? part : td_add (loss, part);
    }
  if (between != NULL)
    *between = made[WEIGHT + g->n / 2];
  return loss;
}

/* --- what is held against what --- */

static const char *wrong; /* what, of the current graph; NULL: nothing yet */
static char details[1100];

static void
expect_near (double got, double want, double tolerance, const char *what)
{
  if (wrong != NULL || fabs (got - want) <= tolerance * (1 + fabs (want)))
    return;
  wrong = what;
  snprintf (details, sizeof details, "%.12g, %.12g expected", got, want);
}

static void
expect_ok (TdStatus status, const char *what)
{
  if (wrong != NULL || status == TD_OK)
    return;
  wrong = what;
  snprintf (details, sizeof details, "%s",
            td_error () != NULL ? td_error ()->message : td_status_name (status));
}

static void
read_gradient (TdVar *gradient, int64_t n, double *to)
{
  memset (to, 0, ROOM * sizeof *to);
  if (gradient != NULL)
    expect_ok (td_read (gradient, to, (size_t)n * sizeof *to), "read");
}

static double
loss_at (const Graph *g, const Point *at)
{
  double loss = 0;

  TD_SCOPE ("loss")
    TD_NO_BACKPROP
      {
        make_leaves (at);
        loss = td_item (loss_of (g, NULL));
      }
  return loss;
}

static void
gradients_at (const Graph *g, const Point *at, Point *to)
{
  TD_SCOPE ("gradients")
    {
      TdVar *loss, *gxs[N_LEAVES];

      make_leaves (at);
      loss = loss_of (g, NULL);
      expect_ok (td_grad_of (&loss, 1, leaves, N_LEAVES, NULL, 0, gxs), "td_grad_of");
      for (int l = 0; l < N_LEAVES && wrong == NULL; l++)
        read_gradient (gxs[l], size_of (l), to->numbers[l]);
    }
}

static Point
moved (const Point *at, const Point *along, double by)
{
  Point p = *at;

  for (int l = 0; l < N_LEAVES; l++)
    for (int k = 0; k < ROOM; k++)
      p.numbers[l][k] += by * along->numbers[l][k];
  return p;
}

static double
dot (const Point *a, const Point *b)
{
  double sum = 0;

  for (int l = 0; l < N_LEAVES; l++)
    for (int k = 0; k < size_of (l); k++)
      sum += a->numbers[l][k] * b->numbers[l][k];
  return sum;
}

static double
difference (const Graph *g, const Point *at, const Point *along, double eps)
{
  const Point up = moved (at, along, eps), down = moved (at, along, -eps);

  return (loss_at (g, &up) - loss_at (g, &down)) / (2 * eps);
}

/* Of two widths, so that the third derivative falls out. */
static void
check_differences (const Graph *g, const Point *at, const Point *gradient, const Point *along)
{
  const double eps = 5e-5;
  const double want
      = (4 * difference (g, at, along, eps) - difference (g, at, along, 2 * eps)) / 3;

  expect_near (dot (gradient, along), want, 2e-6, "first gradient");
}

/* Once, and again without clearing: as much once more. */
static void
check_backward (const Graph *g, const Point *at, const Point *gradient)
{
  static const char *const what[] = { "backward", "second backward, added" };

  TD_SCOPE ("backward")
    {
      make_leaves (at);
      for (int turn = 0; turn < 2; turn++)
        {
          TD_SCOPE ("turn")
            expect_ok (td_backward (loss_of (g, NULL), 0), what[turn]);
          for (int l = 0; l < N_LEAVES && wrong == NULL; l++)
            {
              double got[ROOM];

              read_gradient (td_grad (leaves[l]), size_of (l), got);
              for (int k = 0; k < size_of (l); k++)
                expect_near (got[k], (turn + 1) * gradient->numbers[l][k], 1e-11, what[turn]);
            }
        }
    }
}

/* Asked for at once, a variable on the way and what lies behind it get what each gets alone. */
static void
check_together (TdVar *loss, TdVar *between, const double *want, const Point *gradient)
{
  TdVar *xs[N_LEAVES + 1], *gxs[N_LEAVES + 1];
  double got[ROOM];

  memcpy (xs, leaves, sizeof leaves);
  xs[N_LEAVES] = between;
  expect_ok (td_grad_of (&loss, 1, xs, N_LEAVES + 1, NULL, 0, gxs), "td_grad_of, together");
  if (wrong != NULL)
    return;
  read_gradient (gxs[N_LEAVES], td_size (between), got);
  for (int k = 0; k < td_size (between) && wrong == NULL; k++)
    expect_near (got[k], want[k], 1e-11, "td_grad_of on the way, together");
  for (int l = 0; l < N_LEAVES && wrong == NULL; l++)
    {
      read_gradient (gxs[l], size_of (l), got);
      for (int k = 0; k < size_of (l); k++)
        expect_near (got[k], gradient->numbers[l][k], 1e-11, "td_grad_of, together");
    }
}

/* A variable on the way keeps all that comes to it, and nobody's gradient is another for it. */
static void
check_retained (const Graph *g, const Point *at, const Point *gradient)
{
  TD_SCOPE ("retained")
    {
      double want[ROOM], got[ROOM];
      TdVar *loss, *between, *gx = NULL;

      make_leaves (at);
      loss = loss_of (g, &between);
      if (td_grad_of (&loss, 1, &between, 1, NULL, 0, &gx) != TD_OK)
        gx = NULL;
      td_error_clear (); /* it leads nowhere */
      read_gradient (gx, td_size (between), want);
      check_together (loss, between, want, gradient);
      expect_ok (td_backward (loss, TD_RETAIN_GRADS), "backward, retaining");
      read_gradient (td_grad (between), td_size (between), got);
      for (int k = 0; k < td_size (between) && wrong == NULL; k++)
        expect_near (got[k], want[k], 1e-11, "retained gradient");
      for (int l = 0; l < N_LEAVES && wrong == NULL; l++)
        {
          read_gradient (td_grad (leaves[l]), size_of (l), got);
          for (int k = 0; k < size_of (l); k++)
            expect_near (got[k], gradient->numbers[l][k], 1e-11, "backward, retaining");
        }
    }
}

/* The gradient of (gradient along d), against differences of the gradient. */
static void
check_second (const Graph *g, const Point *at, const Point *along, const Point *across)
{
  const double eps = 1e-5;
  const Point up = moved (at, across, eps), down = moved (at, across, -eps);
  Point above, below, second;
  double want;

  gradients_at (g, &up, &above);
  gradients_at (g, &down, &below);
  if (wrong != NULL)
    return;
  want = (dot (&above, along) - dot (&below, along)) / (2 * eps);
  TD_SCOPE ("second")
    {
      TdVar *loss, *gxs[N_LEAVES], *sum = NULL;

      make_leaves (at);
      loss = loss_of (g, NULL);
      expect_ok (td_grad_of (&loss, 1, leaves, N_LEAVES, NULL, TD_DOUBLE_BACKPROP, gxs),
                 "td_grad_of with double backprop");
      for (int l = 0; l < N_LEAVES && wrong == NULL; l++)
        if (gxs[l] != NULL)
          {
            TdVar *d = td_tensor (TD_F64, leaf_shapes[l], along->numbers[l]);
            TdVar *part = td_sum (td_mul (gxs[l], d));

            sum = sum == NULL ? part : td_add (sum, part);
          }
      if (sum != NULL && wrong == NULL)
        expect_ok (td_backward (sum, 0), "backward of a gradient");
      for (int l = 0; l < N_LEAVES && wrong == NULL; l++)
        read_gradient (td_grad (leaves[l]), size_of (l), second.numbers[l]);
    }
  if (wrong == NULL)
    expect_near (dot (&second, across), want, 2e-5, "second gradient");
}

/* td_forget's gradients have no graph, which is documented. */
static bool
has_second (const Graph *g)
{
  for (int i = 0; i < g->n; i++)
    if (kinds[g->list[i].kind].make == forgotten)
      return false;
  return true;
}

static bool
fails (const Graph *g)
{
  const Point at = point_of (g->seed), along = point_of (g->seed + 1000003);
  const Point across = point_of (g->seed + 2000003);
  Point gradient;

  wrong = NULL;
  gradients_at (g, &at, &gradient);
  if (wrong == NULL)
    check_differences (g, &at, &gradient, &along);
  if (wrong == NULL)
    check_backward (g, &at, &gradient);
  if (wrong == NULL)
    check_retained (g, &at, &gradient);
  if (wrong == NULL && has_second (g))
    check_second (g, &at, &along, &across);
  td_error_clear ();
  return wrong != NULL;
}

/* Drop what is not needed for it to fail. */
static void
shrink (Graph *g)
{
  for (int i = g->n - 1; i >= 0 && g->n > 1; i--)
    {
      Graph smaller = *g;

      memmove (&smaller.list[i], &smaller.list[i + 1],
               (size_t)(--smaller.n - i) * sizeof *smaller.list);
      if (fails (&smaller))
        *g = smaller;
    }
}

static void
show (Graph g)
{
  shrink (&g);
  fails (&g);
  fprintf (stderr, "graph %u, %s: %s\n", g.seed, wrong != NULL ? wrong : "?", details);
  for (int i = 0; i < g.n; i++)
    fprintf (stderr, "  %-20s a %u, b %u\n", kinds[g.list[i].kind].name, g.list[i].a,
             g.list[i].b);
}

int
main (int argc, char **argv)
{
  const unsigned n = argc > 1 ? (unsigned)strtoul (argv[1], NULL, 10) : GRAPHS;
  const unsigned first = argc > 2 ? (unsigned)strtoul (argv[2], NULL, 10) : 0;
  int n_failed = 0;

  if (td_init (NULL, NULL) != TD_OK)
    return 1;
  for (unsigned seed = first; seed < first + n && n_failed < MOST_TOLD; seed++)
    {
      const Graph g = graph_of (seed);

      if (!fails (&g))
        continue;
      n_failed++;
      show (g);
    }
  printf ("%u graphs from seed %u: %d failed\n", n, first, n_failed);
  return td_finish () != 0 || n_failed > 0;
}
