/* A static function in which every pass finds something: constants, what is computed twice or
 * for nothing, products that share a matrix, elementwise steps in a row.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

enum
{
  N_ITERATIONS = 6
};

static TdLink *net, *cell;

static void
forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *constant = td_exp (td_full (TD_F32, TD_SHAPE (4, 8), 0.5));
  TdVar *h = td_zeros (TD_F32, TD_SHAPE (4, 8));

  (void)self;
  (void)n_in;
  (void)n_out;
  td_sin (in[0]);
  for (int t = 0; t < 3; t++)
    h = td_tanh (td_add (td_link (cell, h), in[0]));
  h = td_add (td_mul (td_sigmoid (in[0]), h), td_sigmoid (in[0]));
  out[0] = td_sum (td_add (h, constant));
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);
  net = td_chain_new ("net");
  cell = td_linear_new (net, "cell", 8, 8);

  TdStatic *step = td_static_new (forward, NULL, .name = "step");
  TdOpt *opt = td_sgd_new (net, .lr = 0.01);

  TD_ITERATIONS (i, N_ITERATIONS)
    {
      TdVar *loss = td_static_call1 (step, td_rand (TD_F32, TD_SHAPE (4, 8)));

      td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);
    }
  return td_finish ();
}
