/* One small network that runs its code at every call, or with the argument "static" as a static
 * function. SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <string.h>

typedef struct
{
  TdLink *net, *conv, *out;
} Model;

static void
code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Model *m = self;
  TdVar *h = td_max_pooling_2d (td_link (m->conv, in[0]), .ksize = { 2, 2 });

  out[0] = td_link (m->out, td_relu (h)); /* relu right after conv would be one event with it */
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  Model m = { .net = td_chain_new ("net") };
  m.conv = td_convolution_2d_new (m.net, "conv", 1, 6, 5);
  m.out = td_linear_new (m.net, "out", TD_INFER, 10);
  TdOpt *opt = td_sgd_new (m.net, .lr = 0.01);
  TdStatic *function
      = argc > 1 && strcmp (argv[1], "static") == 0 ? td_static_new (code, &m) : NULL;

  TD_ITERATIONS (i, 4)
    {
      TdVar *in[] = { td_variable (td_randn (TD_F32, TD_SHAPE (16, 1, 28, 28)), NULL) };
      TdVar *out[1];

      if (function)
        td_static_call (function, in, 1, out, 1);
      else
        code (&m, in, 1, out, 1);
      TdVar *loss = td_mean (td_square (out[0]));
      td_cleargrads (m.net);
      td_backward (loss, 0);
      td_opt_update (opt);
      td_report ("loss", td_item (loss));
    }
  return td_finish ();
}
