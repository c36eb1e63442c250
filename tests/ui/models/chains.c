/* chains [PIDFILE [live]]: two static chains for two batch sizes. One has elementwise steps
 * that are fused and has memory for one schedule, the other keeps both; eight iterations, or as
 * many as there is time for. SPDX-License-Identifier: MIT */
#include <stdio.h>

#include <tapedeck.h>

typedef struct
{
  TdLink *l;
} Part;

static void
encode (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Part *p = self;
  TdVar *h = td_link (p->l, in[0]);

  (void)n_in;
  (void)n_out;
  h = td_mul_scalar (td_tanh (td_add_scalar (h, 0.5)), 2);
  out[0] = td_relu (h);
}

static void
decode (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Part *p = self;

  (void)n_in;
  (void)n_out;
  out[0] = td_sigmoid (td_link (p->l, in[0]));
}

int
main (int argc, char **argv)
{
  int n = argc > 2 ? 1000000 : 8;

  td_init (&argc, &argv);

  TdLink *net = td_chain_new ("net");
  Part a = { td_linear_new (net, "encoder", 8, 6) },
       b = { td_linear_new (net, "decoder", 6, 8) };
  TdStatic *encoder = td_static_new (encode, &a, .verify = 0, .cache_bytes = 1);
  TdStatic *decoder = td_static_new (decode, &b, .minimize_cache_size = false, .verify = 0);
  TdOpt *opt = td_sgd_new (net);

  TD_ITERATIONS (i, n)
    {
      TdVar *x = td_randn (TD_F32, TD_SHAPE (i % 4 == 3 ? 5 : 16, 8));
      TdVar *h = td_static_call1 (encoder, x);
      TdVar *loss = td_mean_squared_error (td_static_call1 (decoder, h), x);

      td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);
      td_report ("loss", td_item (loss));
    }
  td_static_free (encoder);
  td_static_free (decoder);
  return td_finish ();
}
