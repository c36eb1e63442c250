/* L01: ResNet-18 on pictures of 32 x 32; the program calls leaf links only.
 * width=16 batch_size=8 fault=NAME iterations=4.  SPDX-License-Identifier: MIT */
#include "life.h"

enum
{
  BLOCKS = 8
};

typedef struct
{
  TdLink *conv1, *bn1, *conv2, *bn2, *down, *down_bn;
} Block;

typedef struct
{
  TdLink *root, *conv, *bn, *fc;
  Block block[BLOCKS];
  int64_t iteration;
} ResNet;

static void
resnet_make (ResNet *r, int64_t width)
{
  int64_t in = width;

  r->root = td_chain_new ("resnet18");
  r->conv
      = td_convolution_2d_new (r->root, "conv", 3, width, 3, .pad = { 1, 1 }, .nobias = true);
  r->bn = td_batch_normalization_new (r->root, "bn", width);
  for (int i = 0; i < BLOCKS; i++)
    {
      Block *b = &r->block[i];
      int64_t out = width << i / 2;
      int stride = out != in ? 2 : 1;
      char name[32];

      snprintf (name, sizeof name, "res%d", i + 1);
      TdLink *c = td_chain_new (r->root, name);
      b->conv1 = td_convolution_2d_new (c, "conv1", in, out, 3, .stride = { stride, stride },
                                        .pad = { 1, 1 }, .nobias = true);
      b->bn1 = td_batch_normalization_new (c, "bn1", out);
      b->conv2
          = td_convolution_2d_new (c, "conv2", out, out, 3, .pad = { 1, 1 }, .nobias = true);
      b->bn2 = td_batch_normalization_new (c, "bn2", out);
      if (stride == 2)
        {
          b->down = td_convolution_2d_new (c, "down", in, out, 1, .stride = { 2, 2 },
                                           .nobias = true);
          b->down_bn = td_batch_normalization_new (c, "down_bn", out);
        }
      in = out;
    }
  r->fc = td_linear_new (r->root, "fc", in, 10);
}

/* The block res5 is the one with a mistake. */
static TdVar *
block (ResNet *r, int i, TdVar *x)
{
  Block *b = &r->block[i];
  TdVar *h = td_link (b->bn1, td_link (b->conv1, x));

  if (i == 4 && life_fault ("nan") && r->iteration == 3)
    h = td_sqrt (h);
  if (i == 4 && life_fault ("branch") && r->iteration % 2 == 1)
    h = td_sigmoid (h);
  else
    h = td_relu (h);
  h = td_link (b->bn2, td_link (b->conv2, h));
  if (i == 4 && life_fault ("vanishing"))
    h = td_mul_scalar (h, 1e-9);
  if (b->down != NULL)
    x = td_link (b->down_bn, td_link (b->down, x));
  return td_relu (td_add (h, x));
}

static void
resnet_loss (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  static const int plane[] = { 2, 3 };
  ResNet *r = self;
  TdVar *h = td_relu (td_link (r->bn, td_link (r->conv, in[0])));

  (void)n_in;
  (void)n_out;
  for (int i = 0; i < BLOCKS; i++)
    h = block (r, i, h);
  h = td_mean_axes (h, plane, 2, false);
  out[0] = td_softmax_cross_entropy (td_link (r->fc, h), in[1]);
}

int
main (int argc, char **argv)
{
  ResNet r = { 0 };
  TdVar *total = NULL;
  uint32_t rank;

  life_begin (argc, argv);
  int64_t batch = life_arg ("batch_size", 8), end = life_end (4);
  resnet_make (&r, life_arg ("width", 16));
  TdOpt *opt = life_shared (td_momentum_sgd_new (r.root, .lr = 0.05, .momentum = 0.9), &rank);
  td_opt_add_hook (opt, td_weight_decay_new (5e-4));
  life_keep (r.root, opt);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        const uint32_t seed = (uint32_t)i + 100000 * rank;
        TdVar *in[] = { life_array (TD_SHAPE (batch, 3, 32, 32), seed),
                        life_ids (TD_SHAPE (batch), 10, seed) };
        TdVar *loss;

        r.iteration = i;
        life_call (resnet_loss, &r, in, 2, &loss, 1);
        td_cleargrads (r.root);
        td_backward (loss, 0);
        td_opt_update (opt);
        if (life_fault ("growth")) /* the sum of all losses, with the graph of each */
          {
            TdVar *before = total;

            total = td_retain (before != NULL ? td_add (before, loss) : loss);
            if (before != NULL)
              td_release (before);
          }
        life_line (i, loss);
      }
  if (total != NULL)
    td_release (total);
  return life_finish ();
}
