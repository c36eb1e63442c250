/* A recurrent encoder and decoder that learn to write strings backward.
 *
 *     seq2seq [ITERATIONS]
 *
 * One LSTM reads a string letter by letter; its state is all that the second one, which writes,
 * is given to begin with.  While it learns the writer is told each letter that it should have
 * written before; in the test it goes on from what it wrote.  Strings of one batch are of one
 * length, the next batch's are of another: the graph is as long as they are.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>

enum
{
  BATCH = 64,
  LETTERS = 10,
  BEGIN = LETTERS, /* what the writer is given before its first letter */
  UNITS = 96,
  SHORTEST = 2,
  LONGEST = 6
};

/* Strings as the links take them: one array a step, a letter of each string. */
typedef struct
{
  int32_t letter[LONGEST][BATCH];
  int n_steps;
} Strings;

static unsigned
draw (unsigned *state, unsigned n)
{
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 16) % n;
}

static Strings
strings_new (unsigned *state, int n_steps)
{
  Strings s = { .n_steps = n_steps };

  for (int t = 0; t < n_steps; t++)
    for (int i = 0; i < BATCH; i++)
      s.letter[t][i] = (int32_t)draw (state, LETTERS);
  return s;
}

typedef struct
{
  TdLink *chain, *read_embed, *reader, *write_embed, *writer, *letter;
} Model;

static Model
model_new (void)
{
  Model m = { .chain = td_chain_new ("seq2seq") };

  m.read_embed
      = td_embed_id_new (m.chain, "read_embed", LETTERS, 32, .initialW = td_init_normal (0.3));
  m.reader = td_lstm_new (m.chain, "reader", 32, UNITS);
  m.write_embed = td_embed_id_new (m.chain, "write_embed", LETTERS + 1, 32,
                                   .initialW = td_init_normal (0.3));
  m.writer = td_lstm_new (m.chain, "writer", 32, UNITS);
  m.letter = td_linear_new (m.chain, "letter", UNITS, LETTERS);
  return m;
}

static TdVar *
letters (const int32_t *letter)
{
  return td_tensor (TD_I32, TD_SHAPE (BATCH), letter);
}

/* Read the strings, and give the writer what has been understood. */
static void
read_strings (Model *m, const Strings *s)
{
  td_lstm_reset_state (m->reader);
  for (int t = 0; t < s->n_steps; t++)
    td_link (m->reader, td_link (m->read_embed, letters (s->letter[t])));
  td_lstm_set_state (m->writer, td_lstm_c (m->reader), td_lstm_h (m->reader));
}

/* Scores of the next letter after `before`. */
static TdVar *
write_letter (Model *m, TdVar *before)
{
  return td_link (m->letter, td_link (m->writer, td_link (m->write_embed, before)));
}

static TdVar *
first (void)
{
  return td_full (TD_I32, TD_SHAPE (BATCH), BEGIN);
}

static TdVar *
loss_of (Model *m, const Strings *s)
{
  TdVar *loss = NULL, *before = first ();

  read_strings (m, s);
  for (int t = s->n_steps - 1; t >= 0; t--)
    {
      TdVar *target = letters (s->letter[t]);
      TdVar *l = td_softmax_cross_entropy (write_letter (m, before), target);

      loss = loss == NULL ? l : td_add (loss, l);
      before = target;
    }
  return td_div_scalar (loss, s->n_steps);
}

/* The share of letters that are right when the writer goes on from its own. */
static double
test_accuracy (Model *m)
{
  unsigned state = 4711;
  double right = 0;
  int n = 0;

  for (int length = SHORTEST; length <= LONGEST && td_error () == NULL; length++)
    TD_NO_BACKPROP
      TD_SCOPE ("test")
        {
          Strings s = strings_new (&state, length);
          TdVar *before = first ();

          read_strings (m, &s);
          for (int t = s.n_steps - 1; t >= 0; t--, n++)
            {
              TdVar *y = write_letter (m, before);

              right += td_item (td_accuracy (y, letters (s.letter[t])));
              before = td_argmax (y, 1);
            }
          td_lstm_reset_state (m->reader);
          td_lstm_reset_state (m->writer);
        }
  return right / n;
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  int n_iterations = argc > 1 ? atoi (argv[1]) : 600;
  unsigned state = 1;
  Model m = model_new ();
  TdOpt *opt = td_adam_new (m.chain, .lr = 5e-3);
  td_opt_add_hook (opt, td_gradient_clipping_new (5.0));

  for (int i = 0; i < n_iterations && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        Strings s = strings_new (&state, SHORTEST + i % (LONGEST - SHORTEST + 1));
        TdVar *loss = loss_of (&m, &s);

        td_cleargrads (m.chain);
        td_backward (loss, 0);
        td_opt_update (opt);
        td_lstm_reset_state (m.reader);
        td_lstm_reset_state (m.writer);
        td_report ("loss", td_item (loss));
        if (i == 0 || i % 50 == 49)
          printf ("iteration %d  loss %.4f\n", i + 1, td_item (loss));
      }
  if (td_error () == NULL)
    printf ("test accuracy %.4f\n", test_accuracy (&m));
  return td_finish ();
}
