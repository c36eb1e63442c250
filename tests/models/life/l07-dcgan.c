/* L07: DCGAN with two optimizers and spectral normalisation: two backward passes in an
 * iteration, one of which must make no gradient of the other's net.
 * width=8 batch_size=4 iterations=4.  SPDX-License-Identifier: MIT */
#include "life.h"

enum
{
  NOISE = 16
};

typedef struct
{
  TdLink *root, *first, *bn0, *up1, *bn1, *up2;
  int64_t width;
} Generator;

typedef struct
{
  TdLink *root, *down1, *down2, *verdict;
} Critic;

static Generator
generator_new (int64_t w)
{
  Generator g = { .root = td_chain_new ("generator"), .width = w };

  g.first = td_linear_new (g.root, "first", NOISE, 2 * w * 4 * 4);
  g.bn0 = td_batch_normalization_new (g.root, "bn0", 2 * w);
  g.up1 = td_deconvolution_2d_new (g.root, "up1", 2 * w, w, 4, .stride = { 2, 2 },
                                   .pad = { 1, 1 });
  g.bn1 = td_batch_normalization_new (g.root, "bn1", w);
  g.up2 = td_deconvolution_2d_new (g.root, "up2", w, 1, 4, .stride = { 2, 2 }, .pad = { 1, 1 });
  return g;
}

static Critic
critic_new (int64_t w)
{
  Critic c = { .root = td_chain_new ("critic") };

  c.down1
      = td_convolution_2d_new (c.root, "down1", 1, w, 4, .stride = { 2, 2 }, .pad = { 1, 1 });
  c.down2 = td_convolution_2d_new (c.root, "down2", w, 2 * w, 4, .stride = { 2, 2 },
                                   .pad = { 1, 1 });
  c.verdict = td_linear_new (c.root, "verdict", 2 * w * 4 * 4, 1);
  td_link_add_hook (c.down1, td_spectral_normalization_new ());
  td_link_add_hook (c.down2, td_spectral_normalization_new ());
  return c;
}

static void
paint_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Generator *g = self;
  int64_t n = td_shape (in[0]).dim[0];
  TdVar *h = td_reshape (td_link (g->first, in[0]), TD_SHAPE (n, 2 * g->width, 4, 4));

  (void)n_in;
  (void)n_out;
  h = td_relu (td_link (g->bn0, h));
  h = td_relu (td_link (g->bn1, td_link (g->up1, h)));
  out[0] = td_tanh (td_link (g->up2, h));
}

static void
judge_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Critic *c = self;
  TdVar *h = td_leaky_relu (td_link (c->down1, in[0]));

  (void)n_in;
  (void)n_out;
  out[0] = td_link (c->verdict, td_leaky_relu (td_link (c->down2, h)));
}

static TdVar *
paint (Generator *g, TdVar *z)
{
  TdVar *y;

  life_call (paint_code, g, &z, 1, &y, 1);
  return y;
}

static TdVar *
judge (Critic *c, TdVar *x)
{
  TdVar *y;

  life_call (judge_code, c, &x, 1, &y, 1);
  return y;
}

int
main (int argc, char **argv)
{
  life_begin (argc, argv);

  int64_t w = life_arg ("width", 8), n = life_arg ("batch_size", 4), end = life_end (4);
  Generator g = generator_new (w);
  Critic c = critic_new (w);
  TdOpt *opt_g = td_adam_new (g.root, .lr = 2e-4, .beta1 = 0.5);
  TdOpt *opt_c = td_adam_new (c.root, .lr = 2e-4, .beta1 = 0.5);
  life_keep (g.root, opt_g);
  life_keep (c.root, opt_c);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        uint32_t seed = (uint32_t)i;
        TdVar *real = life_array (TD_SHAPE (n, 1, 16, 16), seed), *fake = NULL, *loss;

        TD_NO_BACKPROP
          fake = paint (&g, life_array (TD_SHAPE (n, NOISE), seed + 1000));
        loss = td_add (td_mean (td_softplus (td_neg (judge (&c, real)))),
                       td_mean (td_softplus (judge (&c, fake))));
        td_cleargrads (c.root);
        td_backward (loss, 0);
        td_opt_update (opt_c);
        td_report ("critic", td_item (loss));

        loss = td_mean (td_softplus (
            td_neg (judge (&c, paint (&g, life_array (TD_SHAPE (n, NOISE), seed + 2000))))));
        td_cleargrads (g.root);
        td_cleargrads (c.root);
        td_backward (loss, 0);
        td_opt_update (opt_g);
        life_line (i, loss);
      }
  return life_finish ();
}
