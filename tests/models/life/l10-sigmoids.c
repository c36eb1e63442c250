/* L10: 100 sigmoid layers, whose gradients vanish.  layers=100 width=16 batch_size=8
 * iterations=4. SPDX-License-Identifier: MIT */
#include "life.h"

enum
{
  MOST_LAYERS = 1000
};

typedef struct
{
  TdLink *root, *layer[MOST_LAYERS], *out;
  int n;
} Net;

static void
net_loss (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *m = self;
  TdVar *h = in[0];

  (void)n_in;
  (void)n_out;
  for (int i = 0; i < m->n; i++)
    h = td_sigmoid (td_link (m->layer[i], h));
  out[0] = td_softmax_cross_entropy (td_link (m->out, h), in[1]);
}

int
main (int argc, char **argv)
{
  Net m = { 0 };

  life_begin (argc, argv);
  int64_t width = life_arg ("width", 16), batch = life_arg ("batch_size", 8),
          end = life_end (4);
  m.n = (int)life_arg ("layers", 100);
  m.root = td_chain_new ("sigmoids");
  for (int i = 0; i < m.n && i < MOST_LAYERS; i++)
    {
      char name[32];

      snprintf (name, sizeof name, "l%d", i);
      m.layer[i] = td_linear_new (m.root, name, width, width);
    }
  m.out = td_linear_new (m.root, "out", width, 10);
  TdOpt *opt = td_sgd_new (m.root, .lr = 0.1);
  life_keep (m.root, opt);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *in[] = { life_array (TD_SHAPE (batch, width), (uint32_t)i),
                        life_ids (TD_SHAPE (batch), 10, (uint32_t)i) };
        TdVar *loss;

        life_call (net_loss, &m, in, 2, &loss, 1);
        td_cleargrads (m.root);
        td_backward (loss, 0);
        td_opt_update (opt);
        life_line (i, loss);
      }
  return life_finish ();
}
