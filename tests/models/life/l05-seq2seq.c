/* L05: sequence to sequence with attention over ragged batches: no two iterations have the same
 * shapes.  units=32 batch_size=4 longest=9 iterations=5.  SPDX-License-Identifier: MIT */
#include "life.h"

enum
{
  MOST = 16,
  WORDS = 40
};

typedef struct
{
  TdLink *root, *source, *target, *encoder, *decoder, *join, *word;
} Model;

static void
model_make (Model *m, int64_t units)
{
  m->root = td_chain_new ("seq2seq");
  m->source = td_embed_id_new (m->root, "source", WORDS, units);
  m->target = td_embed_id_new (m->root, "target", WORDS, units);
  m->encoder = td_n_step_lstm_new (m->root, "encoder", 2, units, units, 0.0);
  m->decoder = td_n_step_lstm_new (m->root, "decoder", 2, units, units, 0.0);
  m->join = td_linear_new (m->root, "join", 2 * units, units);
  m->word = td_linear_new (m->root, "word", units, WORDS);
}

/* What the decoder said, beside what it looks at in the source: (n_y, units). */
static TdVar *
look (Model *m, TdVar *said, TdVar *read)
{
  TdVar *weights = td_softmax (td_matmul (said, read, false, true));
  TdVar *both[2] = { said, td_matmul (weights, read, false, false) };

  return td_tanh (td_link (m->join, td_concat (both, 2, 1)));
}

static TdVar *
loss_of (Model *m, int64_t i, int n, int64_t longest)
{
  TdVar *xs[MOST], *ys[MOST], *read[MOST], *said[MOST], *joined[MOST], *want[MOST];
  TdVar *hx, *cx;
  int64_t most = 0;

  for (int k = 0; k < n; k++)
    {
      uint32_t seed = (uint32_t)(i * MOST + k);
      int64_t n_x = 1 + (int64_t)(life_number (seed, 1) * (float)longest);
      int64_t n_y = 1 + (int64_t)(life_number (seed, 2) * (float)longest);

      xs[k] = td_link (m->source, life_ids (TD_SHAPE (n_x), WORDS, seed));
      ys[k] = td_link (m->target, life_ids (TD_SHAPE (n_y), WORDS, seed + 7000));
      want[k] = life_ids (TD_SHAPE (n_y), WORDS, seed + 9000);
      most += n_y;
    }
  td_n_step_call (m->encoder, NULL, NULL, xs, n, &hx, &cx, read);
  td_n_step_call (m->decoder, hx, cx, ys, n, NULL, NULL, said);
  for (int k = 0; k < n; k++)
    joined[k] = look (m, said[k], read[k]);
  return td_softmax_cross_entropy (td_link (m->word, td_concat (joined, n, 0)),
                                   td_reshape (td_concat (want, n, 0), TD_SHAPE (most)));
}

int
main (int argc, char **argv)
{
  Model m;

  life_begin (argc, argv);
  int n = (int)life_arg ("batch_size", 4);
  int64_t longest = life_arg ("longest", 9), end = life_end (5);
  model_make (&m, life_arg ("units", 32));
  TdOpt *opt = td_adam_new (m.root, .lr = 2e-3);
  td_opt_add_hook (opt, td_gradient_clipping_new (5.0));
  life_keep (m.root, opt);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *loss = loss_of (&m, i, n < MOST ? n : MOST, longest);

        life_graph (loss);
        td_cleargrads (m.root);
        td_backward (loss, 0);
        td_opt_update (opt);
        life_line (i, loss);
      }
  return life_finish ();
}
