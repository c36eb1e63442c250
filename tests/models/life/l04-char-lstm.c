/* L04: a character LSTM over 200 steps whose state is carried from iteration to iteration, and
 * cut between them.  The LSTM keeps it from call to call, and cannot be static; static=1 calls
 * what follows it through a static function, once a step.  steps=200 units=64 batch_size=8
 * iterations=3.
 *
 * SPDX-License-Identifier: MIT */
#include "life.h"

enum
{
  WORDS = 65
};

/* in: h, the next characters. */
static void
step_loss (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_softmax_cross_entropy (td_link (self, in[0]), in[1]);
}

int
main (int argc, char **argv)
{
  life_begin (argc, argv);

  int64_t steps = life_arg ("steps", 200), units = life_arg ("units", 64);
  int64_t batch = life_arg ("batch_size", 8), end = life_end (3);
  TdLink *root = td_chain_new ("char_lstm");
  TdLink *embed = td_embed_id_new (root, "embed", WORDS, units);
  TdLink *lstm = td_lstm_new (root, "lstm", units, units);
  TdLink *out = td_linear_new (root, "out", units, WORDS);
  TdOpt *opt = td_adam_new (root, .lr = 2e-3);
  td_opt_add_hook (opt, td_gradient_clipping_new (5.0));
  life_keep (root, opt);
  life_keep_state (lstm);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *loss = NULL;

        for (int64_t t = 0; t < steps; t++)
          {
            uint32_t seed = (uint32_t)(i * steps + t);
            TdVar *h
                = td_link (lstm, td_link (embed, life_ids (TD_SHAPE (batch), WORDS, seed)));
            TdVar *step;

            life_call (step_loss, out,
                       (TdVar *[]){ h, life_ids (TD_SHAPE (batch), WORDS, seed + 1) }, 2, &step,
                       1);
            loss = loss == NULL ? step : td_add (loss, step);
          }
        loss = td_div_scalar (loss, (double)steps);
        life_graph (loss);
        td_cleargrads (root);
        td_backward (loss, 0);
        td_unchain_backward (loss); /* the next iteration starts from the state, not its past */
        td_opt_update (opt);
        life_line (i, loss);
      }
  return life_finish ();
}
