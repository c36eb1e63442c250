/* A net of random blocks, of which those in a mask of bits are not kept for backward, but
 * computed again there.  argv: the seed, the mask.  Blocks are scopes, net/b0 and so on.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "tapedeck.h"

enum
{
  MOST_BLOCKS = 8,
  MOST_STEPS = 6,
  ROWS = 64
};

typedef enum
{
  LINEAR,
  NORM,
  RELU,
  GELU,
  SIGMOID,
  DROPOUT,
  SQUARE,
  PLUS_INPUT,
  HALF,
  N_STEPS
} Step;

typedef struct
{
  char name[8];
  int n;
  Step steps[MOST_STEPS];
  TdLink *links[MOST_STEPS];
} Block;

static TdVar *
step (const Block *b, int k, TdVar *h, TdVar *x)
{
  switch (b->steps[k])
    {
    case LINEAR:
    case NORM:
      return td_link (b->links[k], h);
    case RELU:
      return td_relu (h);
    case GELU:
      return td_gelu (h);
    case SIGMOID:
      return td_sigmoid (h);
    case DROPOUT:
      return td_dropout (h, 0.3);
    case SQUARE:
      return td_square (h);
    case PLUS_INPUT:
      return td_add (h, x);
    default:
      return td_mul_scalar (td_reshape (h, TD_SHAPE (ROWS, -1)), 0.5);
    }
}

static void
run (void *user, TdVar *const *xs, int n, TdVar **ys, int m)
{
  const Block *b = user;
  TdVar *h = xs[0];

  (void)n;
  (void)m;
  for (int k = 0; k < b->n; k++)
    h = step (b, k, h, xs[0]);
  ys[0] = h;
}

static void
make (Block *b, TdLink *net, int i, int64_t width)
{
  TdLink *own;

  snprintf (b->name, sizeof b->name, "b%d", i);
  own = td_chain_new (net, b->name);
  b->n = 2 + rand () % (MOST_STEPS - 1);
  for (int k = 0; k < b->n; k++)
    {
      char name[16];

      snprintf (name, sizeof name, "l%d", k);
      b->steps[k] = k == 0 ? LINEAR : (Step)(rand () % N_STEPS);
      if (b->steps[k] == LINEAR)
        b->links[k] = td_linear_new (own, name, width, width);
      else if (b->steps[k] == NORM)
        b->links[k] = td_layer_normalization_new (own, name, width);
    }
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);
  unsigned seed = argc > 1 ? (unsigned)atoi (argv[1]) : 0,
           mask = argc > 2 ? (unsigned)atoi (argv[2]) : 0;
  Block blocks[MOST_BLOCKS] = { 0 };

  srand (seed);
  int n = 2 + rand () % (MOST_BLOCKS - 1);
  int64_t width = 32 + 16 * (rand () % 8);
  TdLink *net = td_chain_new ("net");
  for (int i = 0; i < n; i++)
    make (&blocks[i], net, i, width);
  TdOpt *opt = td_sgd_new (net, .lr = 1e-4);
  TD_ITERATIONS (i, 3)
    {
      TdVar *h = td_randn (TD_F32, TD_SHAPE (ROWS, width));

      for (int k = 0; k < n; k++)
        {
          TdVar *x = h;

          TD_SCOPE (blocks[k].name)
            {
              if (mask >> k & 1)
                td_forget (run, &blocks[k], &x, 1, &h, 1);
              else
                run (&blocks[k], &x, 1, &h, 1);
              td_scope_yield (h);
            }
        }
      TdVar *loss = td_mean (td_square (h));
      td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);
    }
  return td_finish () == TD_OK ? 0 : 1;
}
