/* A variational autoencoder of handwritten digits: what is a digit, in eight numbers?
 *
 *     vae [ITERATIONS]
 *
 * The encoder says where in a space of eight dimensions a picture lies, as a normal
 * distribution; the decoder paints a picture of a place drawn from it.  The loss is what the
 * painting misses and how far the places are from a standard normal distribution, so that any
 * place drawn from that becomes a digit.  At the end a few are drawn, with letters for ink.
 * Reads MNIST from the folder in $TAPEDECK_DATA; without it, the built-in digits.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>

enum
{
  SIDE = 28,
  PIXELS = SIDE * SIDE,
  HIDDEN = 256,
  LATENT = 8,
  BATCH = 100
};

typedef struct
{
  TdLink *chain, *see, *mean, *ln_var, *imagine, *paint;
} Vae;

static Vae
vae_new (void)
{
  Vae v = { .chain = td_chain_new ("vae") };

  v.see = td_linear_new (v.chain, "see", PIXELS, HIDDEN);
  v.mean = td_linear_new (v.chain, "mean", HIDDEN, LATENT);
  v.ln_var = td_linear_new (v.chain, "ln_var", HIDDEN, LATENT);
  v.imagine = td_linear_new (v.chain, "imagine", LATENT, HIDDEN);
  v.paint = td_linear_new (v.chain, "paint", HIDDEN, PIXELS);
  return v;
}

/* Scores of the pixels; their sigmoids are the picture. */
static TdVar *
decode (Vae *v, TdVar *z)
{
  return td_link (v->paint, td_tanh (td_link (v->imagine, z)));
}

/* Both parts of the loss, for one picture of the batch. */
static void
losses (Vae *v, TdVar *x, int64_t n, TdVar **missed, TdVar **divergence)
{
  TdVar *h = td_tanh (td_link (v->see, x));
  TdVar *mean = td_link (v->mean, h), *ln_var = td_link (v->ln_var, h);
  TdVar *y = decode (v, td_gaussian (mean, ln_var));

  *missed = td_div_scalar (td_bernoulli_nll (x, y), (double)n);
  *divergence = td_div_scalar (td_gaussian_kl_divergence (mean, ln_var), (double)n);
}

static double
test_loss (Vae *v, TdDataset *test)
{
  TdIter *iter
      = td_serial_iterator_new (test, .batch_size = 500, .shuffle = false, .repeat = false);
  double sum = 0;

  while (td_iter_epoch (iter) < 1 && td_error () == NULL)
    TD_NO_BACKPROP
      TD_SCOPE ("test")
        {
          TdBatch b = td_iter_next (iter);
          TdVar *missed, *divergence;

          losses (v, td_reshape (b.x, TD_SHAPE (b.n, PIXELS)), b.n, &missed, &divergence);
          sum += td_item (td_add (missed, divergence)) * (double)b.n;
        }
  td_iter_free (iter);
  return sum / (double)td_dataset_size (test);
}

/* Pictures of places that nobody has shown. */
static void
draw (Vae *v)
{
  static const char ink[] = " .:-=+*#%@";
  float picture[4][PIXELS];

  TD_NO_BACKPROP
    TD_SCOPE ("draw")
      {
        TdVar *y = td_sigmoid (decode (v, td_randn (TD_F32, TD_SHAPE (4, LATENT))));

        if (td_read (y, picture, sizeof picture) != TD_OK)
          break;
        for (int row = 0; row < SIDE; row += 2)
          {
            for (int i = 0; i < 4; i++)
              for (int column = 0; column < SIDE; column++)
                putchar (ink[(int)(9.99f * picture[i][row * SIDE + column])]);
            putchar ('\n');
          }
      }
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  int64_t n_iterations = argc > 1 ? atoi (argv[1]) : 600;
  Vae v = vae_new ();
  TdOpt *opt = td_adam_new (v.chain, .lr = 1e-3);
  TdDataset *train = td_mnist_open (NULL, TD_TRAIN), *test = td_mnist_open (NULL, TD_TEST);
  TdIter *iter = td_serial_iterator_new (train, .batch_size = BATCH);

  for (int64_t i = 0; i < n_iterations && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdBatch b = td_iter_next (iter);
        TdVar *x = td_reshape (b.x, TD_SHAPE (b.n, PIXELS)), *missed, *divergence, *loss;

        losses (&v, x, b.n, &missed, &divergence);
        loss = td_add (missed, divergence);
        td_cleargrads (v.chain);
        td_backward (loss, 0);
        td_opt_update (opt);
        td_report ("loss", td_item (loss));
        td_report ("divergence", td_item (divergence));
        if (i == 0 || i % 100 == 99)
          printf ("iteration %d  loss %.4f\n", (int)i + 1, td_item (loss));
      }
  if (td_error () == NULL)
    {
      draw (&v);
      printf ("test loss %.4f\n", test_loss (&v, test));
    }
  return td_finish ();
}
