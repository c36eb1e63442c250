/* A generative adversarial net of handwritten digits (DCGAN): a painter and a critic.
 *
 *     gan [ITERATIONS]
 *
 * The painter makes pictures of random numbers by transposed convolutions; the critic says of a
 * picture how real it is.  Each learns against the other, with an optimizer of its own.  The
 * report `loss` is the critic's; `painter` is the painter's; `distance` is how far the mean of
 * the painted pictures is from the mean of the real ones, which no loss of theirs says.
 * Reads MNIST from the folder in $TAPEDECK_DATA; without it, the built-in digits.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>

enum
{
  SIDE = 28,
  BATCH = 64,
  NUMBERS = 32
};

typedef struct
{
  TdLink *chain, *begin, *norm0, *larger, *norm1, *picture;
} Painter;

typedef struct
{
  TdLink *chain, *strokes, *shapes, *norm, *verdict;
} Critic;

static Painter
painter_new (void)
{
  Painter p = { .chain = td_chain_new ("painter") };
  TdInit small = td_init_normal (0.05);

  p.begin = td_linear_new (p.chain, "begin", NUMBERS, 32 * 7 * 7, .initialW = small);
  p.norm0 = td_batch_normalization_new (p.chain, "norm0", 32);
  p.larger = td_deconvolution_2d_new (p.chain, "larger", 32, 16, 4, .stride = { 2, 2 },
                                      .pad = { 1, 1 }, .initialW = small);
  p.norm1 = td_batch_normalization_new (p.chain, "norm1", 16);
  p.picture = td_deconvolution_2d_new (p.chain, "picture", 16, 1, 4, .stride = { 2, 2 },
                                       .pad = { 1, 1 }, .initialW = small);
  return p;
}

/* Pictures (n, 1, 28, 28) of random numbers (n, NUMBERS). */
static TdVar *
paint (Painter *p, int64_t n)
{
  TdVar *h = td_link (p->begin, td_randn (TD_F32, TD_SHAPE (n, NUMBERS)));

  h = td_relu (td_link (p->norm0, td_reshape (h, TD_SHAPE (n, 32, 7, 7))));
  h = td_relu (td_link (p->norm1, td_link (p->larger, h)));
  return td_sigmoid (td_link (p->picture, h));
}

static Critic
critic_new (void)
{
  Critic c = { .chain = td_chain_new ("critic") };
  TdInit small = td_init_normal (0.05);

  c.strokes = td_convolution_2d_new (c.chain, "strokes", 1, 16, 4, .stride = { 2, 2 },
                                     .pad = { 1, 1 }, .initialW = small);
  c.shapes = td_convolution_2d_new (c.chain, "shapes", 16, 32, 4, .stride = { 2, 2 },
                                    .pad = { 1, 1 }, .initialW = small);
  c.norm = td_batch_normalization_new (c.chain, "norm", 32);
  c.verdict = td_linear_new (c.chain, "verdict", 32 * 7 * 7, 1, .initialW = small);
  return c;
}

/* Above 0: real. */
static TdVar *
judge (Critic *c, TdVar *pictures)
{
  TdVar *h = td_leaky_relu (td_link (c->strokes, pictures));

  h = td_leaky_relu (td_link (c->norm, td_link (c->shapes, h)));
  return td_link (c->verdict, h);
}

/* The root of the mean square of the difference of two mean pictures. */
static double
distance (TdVar *a, TdVar *b)
{
  static const int batch[] = { 0 };
  double d = 0;

  TD_NO_BACKPROP
    {
      TdVar *mean_a = td_mean_axes (a, batch, 1, false),
            *mean_b = td_mean_axes (b, batch, 1, false);

      d = td_item (td_sqrt (td_mean_squared_error (mean_a, mean_b)));
    }
  return d;
}

/* A few pictures, with letters for ink. */
static void
show (Painter *p)
{
  static const char ink[] = " .:-=+*#%@";
  float picture[4][SIDE * SIDE];

  TD_NO_BACKPROP
    TD_USING (train, 0)
      TD_SCOPE ("show")
        {
          if (td_read (paint (p, 4), picture, sizeof picture) != TD_OK)
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

  int64_t n_iterations = argc > 1 ? atoi (argv[1]) : 300;
  Painter p = painter_new ();
  Critic c = critic_new ();
  TdOpt *paints = td_adam_new (p.chain, .lr = 1e-3, .beta1 = 0.5);
  TdOpt *judges = td_adam_new (c.chain, .lr = 4e-4, .beta1 = 0.5);
  TdIter *iter = td_serial_iterator_new (td_mnist_open (NULL, TD_TRAIN), .batch_size = BATCH);

  for (int64_t i = 0; i < n_iterations && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdBatch b = td_iter_next (iter);
        TdVar *real = td_reshape (b.x, TD_SHAPE (b.n, 1, SIDE, SIDE)),
              *painted = paint (&p, b.n);
        TdVar *of_real = judge (&c, real), *of_painted = judge (&c, painted);
        TdVar *painter_loss = td_mean (td_softplus (td_neg (of_painted)));
        TdVar *loss = td_add (td_mean (td_softplus (td_neg (of_real))),
                              td_mean (td_softplus (of_painted)));

        /* The painter's lesson goes through the critic, who does not learn from it. */
        td_cleargrads (p.chain);
        td_backward (painter_loss, 0);
        td_opt_update (paints);
        td_unchain (painted);
        td_cleargrads (c.chain);
        td_backward (loss, 0);
        td_opt_update (judges);
        td_report ("loss", td_item (loss));
        td_report ("painter", td_item (painter_loss));
        td_report ("distance", distance (real, painted));
        if (i == 0 || i % 50 == 49)
          printf ("iteration %d  loss %.4f  painter %.4f  distance %.4f\n", (int)i + 1,
                  td_item (loss), td_item (painter_loss), distance (real, painted));
      }
  if (td_error () == NULL)
    show (&p);
  return td_finish ();
}
