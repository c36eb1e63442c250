/* A recurrent network that learns to write a text character by character.
 *
 *     char_lstm [TEXT-FILE [ITERATIONS]]
 *
 * Each iteration reads 32 places of the text at once for 35 characters, then learns from all of
 * them: truncated backpropagation through time. The state goes on into the next iteration, its
 * graph does not: td_unchain_backward cuts it.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>

enum
{
  BATCH = 32,
  STEPS = 35,
  UNITS = 128
};

static const char built_in_text[]
    = "The tape turns and the needle rests. What was heard goes round again.\n"
      "Press stop and the tape stands still; press back and the song runs backward.\n"
      "A small machine keeps every note: the first, the last, the one between.\n"
      "Turn the wheel to the left and you hear what led to the sound.\n"
      "Turn the wheel to the right and you hear what the sound led to.\n"
      "Nothing is lost while the tape is whole, and the tape is whole to its end.\n"
      "When the light goes red, look at the place where the needle stands.\n"
      "There the song went wrong, and there it can be mended.\n"
      "Mend it, turn back a little, and let the tape turn again.\n"
      "The song that was wrong is now the song that is right.\n";

typedef struct
{
  TdLink *chain, *embed, *lstm, *out;
} Model;

static Model
model_new (int n_chars)
{
  Model m = { .chain = td_chain_new ("char_lstm") };

  m.embed = td_embed_id_new (m.chain, "embed", n_chars, 32, .initialW = td_init_normal (0.1));
  m.lstm = td_lstm_new (m.chain, "lstm", 32, UNITS);
  m.out = td_linear_new (m.chain, "out", UNITS, n_chars);
  return m;
}

static TdVar *
step (Model *m, TdVar *x)
{
  TdVar *h = td_link (m->embed, x);

  h = td_link (m->lstm, h);
  return td_link (m->out, h);
}

/* How often the next character of a text is the most likely one, read in a few places at once,
 * so that each begins without a state but has time to find one. */
static double
test_accuracy (Model *m, TdDataset *test)
{
  int64_t places = td_dataset_size (test) / 200 + 1, n_steps, done = 0;
  double right = 0;

  places = places < BATCH ? places : BATCH;
  n_steps = td_dataset_size (test) / places - 1;
  TdIter *iter = td_text_iterator_new (test, places);

  td_lstm_reset_state (m->lstm);
  for (; done < n_steps && done < 1000 && td_error () == NULL; done++)
    TD_NO_BACKPROP
      TD_SCOPE ("test")
        {
          TdBatch b = td_iter_next (iter);

          right += td_item (td_accuracy (step (m, b.x), b.t));
        }
  td_iter_free (iter);
  return right / (double)done;
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  /* One tenth at the end is kept for the test. */
  TdDataset *train = argc > 1 ? td_text_open (argv[1]) : td_text_from (built_in_text);
  TdDataset *test = argc > 1 ? td_text_open (argv[1]) : td_text_from (built_in_text);
  int64_t n = td_dataset_size (train), n_iterations = argc > 2 ? atoi (argv[2]) : 300;
  td_dataset_slice (train, 0, n - n / 10);
  td_dataset_slice (test, n - n / 10, n);

  Model m = model_new (td_text_vocabulary (train));
  TdOpt *opt = td_adam_new (m.chain, .lr = 5e-3);
  td_opt_add_hook (opt, td_gradient_clipping_new (5.0));
  TdIter *iter = td_text_iterator_new (train, BATCH);

  for (int64_t i = 0; i < n_iterations && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *loss = NULL;

        for (int t = 0; t < STEPS; t++)
          {
            TdBatch b = td_iter_next (iter);
            TdVar *y = step (&m, b.x);
            TdVar *l = td_softmax_cross_entropy (y, b.t);

            loss = loss == NULL ? l : td_add (loss, l);
          }
        loss = td_div_scalar (loss, STEPS);
        td_cleargrads (m.chain);
        td_backward (loss, 0);
        td_unchain_backward (loss);
        td_opt_update (opt);
        td_report ("loss", td_item (loss));
        if (i % 50 == 49)
          printf ("iteration %d  loss %.4f\n", (int)i + 1, td_item (loss));
      }
  if (td_error () == NULL)
    printf ("test accuracy %.4f\n", test_accuracy (&m, test));
  return td_finish ();
}
