/* L12: very many small operations in one iteration.  operations=100000 width=4 iterations=2
 * backward=1.  SPDX-License-Identifier: MIT */
#include "life.h"

static void
chain (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const int64_t n = life_arg ("operations", 100000);
  TdVar *x = td_link (self, in[0]), *h = x;

  (void)n_in;
  (void)n_out;
  for (int64_t k = 0; k < n; k += 4)
    h = td_tanh (td_add (td_mul_scalar (h, 1.001), td_sin (x)));
  out[0] = td_sum (h);
}

int
main (int argc, char **argv)
{
  life_begin (argc, argv);

  int64_t width = life_arg ("width", 4), end = life_end (2);
  TdLink *root = td_chain_new ("many");
  TdLink *first = td_linear_new (root, "first", width, width);
  TdOpt *opt = td_sgd_new (root, .lr = 0.01);
  life_keep (root, opt);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *x = life_array (TD_SHAPE (1, width), (uint32_t)i), *h;

        life_call (chain, first, &x, 1, &h, 1);
        td_cleargrads (root);
        if (life_arg ("backward", 1) != 0)
          td_backward (h, 0);
        td_opt_update (opt);
        life_line (i, h);
      }
  return life_finish ();
}
