/* L13: a net of two layers, for very many iterations.  iterations=1000 (1000000 for its
 * length). SPDX-License-Identifier: MIT */
#include "life.h"

typedef struct
{
  TdLink *root, *l1, *l2;
} Net;

static void
net_loss (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *m = self;

  (void)n_in;
  (void)n_out;
  out[0] = td_softmax_cross_entropy (td_link (m->l2, td_relu (td_link (m->l1, in[0]))), in[1]);
}

int
main (int argc, char **argv)
{
  Net m;

  life_begin (argc, argv);
  int64_t end = life_end (1000);
  m.root = td_chain_new ("two_layers");
  m.l1 = td_linear_new (m.root, "l1", 4, 8);
  m.l2 = td_linear_new (m.root, "l2", 8, 3);
  TdOpt *opt = td_sgd_new (m.root, .lr = 0.01);
  life_keep (m.root, opt);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *in[] = { life_array (TD_SHAPE (2, 4), (uint32_t)i),
                        life_ids (TD_SHAPE (2), 3, (uint32_t)i) };
        TdVar *loss;

        life_call (net_loss, &m, in, 2, &loss, 1);
        td_cleargrads (m.root);
        td_backward (loss, 0);
        td_opt_update (opt);
        life_line (i, loss);
      }
  return life_finish ();
}
