/* A static function in one that can never be static, whose argument wants a gradient in some
 * iterations: what is between the two is held by the code's graph alone, which goes when a call
 * is verified. The program ends well, or not at all. SPDX-License-Identifier: MIT */
#include <tapedeck.h>

static TdLink *net, *embed, *linear;
static TdStatic *inner, *outer;

static void
forgotten (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)n_in, (void)n_out;
  out[0] = td_tanh (td_link (linear, in[0]));
}

static void
inner_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)n_in, (void)n_out;
  out[0] = td_link (embed, td_argmax (in[0], 1));
  out[1] = in[1];
  out[2] = in[0];
}

static void
outer_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h[3], *y;

  (void)self, (void)n_in, (void)n_out;
  td_static_call (inner, (TdVar *[]){ td_mul (td_tanh (in[0]), in[0]), in[1] }, 2, h, 3);
  td_forget (forgotten, NULL, &h[0], 1, &y, 1);
  out[0] = td_add (y, td_mul_scalar (h[0], 0.5));
}

int
main (int argc, char **argv)
{
  TdOpt *opt;

  td_init (&argc, &argv);
  net = td_chain_new ("net");
  embed = td_embed_id_new (net, "embed", 8, 8);
  linear = td_linear_new (net, "linear", 8, 8);
  inner = td_static_new (inner_code, NULL, .batch = false);
  outer = td_static_new (outer_code, NULL, .batch = false);
  opt = td_sgd_new (net);
  td_set_seed (1);
  TD_ITERATIONS (i, 40)
    {
      TdVar *x = td_rand (TD_F32, TD_SHAPE (4, 8)), *y;

      if (i % 3 == 1)
        td_variable (x, "x");
      td_static_call (outer, (TdVar *[]){ x, x }, 2, &y, 1);
      if (i % 4 == 2)
        td_static_call (outer, (TdVar *[]){ y, x }, 2, &y, 1);
      td_cleargrads (net);
      td_backward (td_mean (td_square (y)), 0);
      td_opt_update (opt);
    }
  return td_finish ();
}
