/* L08: a U-Net: what the way down saves is needed at the end of the way up.
 * levels=3 width=8 size=32 batch_size=2 iterations=4.  SPDX-License-Identifier: MIT */
#include "life.h"

enum
{
  MOST_LEVELS = 6
};

typedef struct
{
  TdLink *conv1, *bn1, *conv2, *bn2;
} Double;

typedef struct
{
  TdLink *root, *up[MOST_LEVELS], *out;
  Double down[MOST_LEVELS + 1], join[MOST_LEVELS];
  int levels;
} UNet;

static Double
double_new (TdLink *parent, const char *way, int level, int64_t in, int64_t out)
{
  char name[32];
  Double d;

  snprintf (name, sizeof name, "%s%d", way, level);
  TdLink *c = td_chain_new (parent, name);
  d.conv1 = td_convolution_2d_new (c, "conv1", in, out, 3, .pad = { 1, 1 }, .nobias = true);
  d.bn1 = td_batch_normalization_new (c, "bn1", out);
  d.conv2 = td_convolution_2d_new (c, "conv2", out, out, 3, .pad = { 1, 1 }, .nobias = true);
  d.bn2 = td_batch_normalization_new (c, "bn2", out);
  return d;
}

static TdVar *
convolve (Double *d, TdVar *x)
{
  TdVar *h = td_relu (td_link (d->bn1, td_link (d->conv1, x)));

  return td_relu (td_link (d->bn2, td_link (d->conv2, h)));
}

static void
unet_make (UNet *u, int64_t width)
{
  int64_t in = 1;

  u->root = td_chain_new ("unet");
  for (int i = 0; i <= u->levels; i++)
    {
      u->down[i] = double_new (u->root, "down", i, in, width << i);
      in = width << i;
    }
  for (int i = u->levels - 1; i >= 0; i--)
    {
      char name[32];

      snprintf (name, sizeof name, "up%d", i);
      u->up[i] = td_deconvolution_2d_new (u->root, name, in, width << i, 2, .stride = { 2, 2 });
      u->join[i] = double_new (u->root, "join", i, 2 * (width << i), width << i);
      in = width << i;
    }
  u->out = td_convolution_2d_new (u->root, "out", in, 2, 1);
}

static void
unet_loss (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  UNet *u = self;
  TdVar *skip[MOST_LEVELS], *h = in[0];

  (void)n_in;
  (void)n_out;
  for (int i = 0; i < u->levels; i++)
    {
      skip[i] = convolve (&u->down[i], h);
      h = td_max_pooling_2d (skip[i]);
    }
  h = convolve (&u->down[u->levels], h);
  for (int i = u->levels - 1; i >= 0; i--)
    {
      TdVar *both[2] = { skip[i], td_link (u->up[i], h) };

      h = convolve (&u->join[i], td_concat (both, 2, 1));
    }
  out[0] = td_softmax_cross_entropy (td_link (u->out, h), in[1]);
}

int
main (int argc, char **argv)
{
  UNet u = { 0 };

  life_begin (argc, argv);
  u.levels = (int)life_arg ("levels", 3);
  int64_t n = life_arg ("batch_size", 2), size = life_arg ("size", 32), end = life_end (4);
  unet_make (&u, life_arg ("width", 8));
  TdOpt *opt = td_adam_new (u.root);
  life_keep (u.root, opt);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *in[] = { life_array (TD_SHAPE (n, 1, size, size), (uint32_t)i),
                        life_ids (TD_SHAPE (n, size, size), 2, (uint32_t)i) };
        TdVar *loss;

        life_call (unet_loss, &u, in, 2, &loss, 1);
        td_cleargrads (u.root);
        td_backward (loss, 0);
        td_opt_update (opt);
        life_line (i, loss);
      }
  return life_finish ();
}
