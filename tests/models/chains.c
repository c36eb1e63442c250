/* Programs for the staticness advisor, one for each argument.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <string.h>

enum
{
  N = 1000
};

/* Ten elementwise operations on arrays of one size; nothing is kept for backward. */
static void
curves (int i)
{
  TdVar *h = td_full (TD_F32, TD_SHAPE (N), 0.1 * i);

  for (int k = 0; k < 10; k++)
    h = td_sin (h);
}

/* The same, always; its slope is another number each time. */
static void
slopes (int i)
{
  td_tanh (td_leaky_relu (td_ones (TD_F32, TD_SHAPE (N)), .slope = 0.01 * (i + 1)));
}

/* A cell that is called more or less often, and a part that is read in its middle. */
static void
cells (int i, TdLink *cell, TdLink *late)
{
  TdVar *h = td_ones (TD_F32, TD_SHAPE (2, 3));

  for (int k = 0; k < 2 + i % 3; k++) /* the loop */
    h = td_link (cell, h);
  TD_SCOPE ("measured")
    {
      h = td_tanh (h);
      if (td_mean_of (h) > 1e9) /* the read */
        h = td_exp (h);
      h = td_scope_yield (td_sin (h));
    }
  if (i >= 5)
    h = td_link (late, h); /* the late one */
}

/* Eight batches of one size, then one that is smaller, again and again. */
static void
batches (int i, TdLink *cell)
{
  td_tanh (td_link (cell, td_ones (TD_F32, TD_SHAPE (i % 8 == 7 ? 1 : 4, 3))));
}

/* Something else each time. */
static void
anything (int i)
{
  TdVar *h = td_ones (TD_F32, TD_SHAPE (3));

  for (int k = 0; k < 6; k++)
    h = (i >> k) & 1 ? td_sin (h) : td_cos (h); /* the choice */
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  const char *what = argc > 1 ? argv[1] : "curves";
  TdLink *chain = td_chain_new ("net");
  TdLink *cell = td_linear_new (chain, "cell", 3, 3),
         *late = td_linear_new (chain, "late", 3, 3);

  TD_ITERATIONS (i, 32)
    {
      TD_NO_BACKPROP
        {
          if (strcmp (what, "curves") == 0)
            curves ((int)i);
          else if (strcmp (what, "slopes") == 0)
            slopes ((int)i);
          else if (strcmp (what, "cells") == 0)
            cells ((int)i, cell, late);
          else if (strcmp (what, "batches") == 0)
            batches ((int)i, cell);
          else
            anything ((int)i);
        }
    }
  td_link_free (chain);
  return td_finish ();
}
