/* L02: the shapes of ResNet-50, meant for --device null: 161 parameters, 25 million numbers,
 * graphs without arithmetic.  size=224 batch_size=32 iterations=2 read=0.
 *
 * SPDX-License-Identifier: MIT */
#include "life.h"

enum
{
  BLOCKS = 16
};

typedef struct
{
  TdLink *conv[3], *bn[3], *down, *down_bn;
} Block;

typedef struct
{
  TdLink *root, *conv, *bn, *fc;
  Block block[BLOCKS];
} ResNet;

static void
block_make (ResNet *r, int i, int stage, int number, int64_t in, int64_t middle, int stride)
{
  static const int ksize[] = { 1, 3, 1 };
  Block *b = &r->block[i];
  char name[32];

  snprintf (name, sizeof name, "res%d_%d", stage + 2, number);
  TdLink *c = td_chain_new (r->root, name);
  for (int k = 0; k < 3; k++)
    {
      int64_t from = k == 0 ? in : middle, to = k == 2 ? 4 * middle : middle;
      int step = k == 1 ? stride : 1, pad = k == 1;

      snprintf (name, sizeof name, "conv%d", k + 1);
      b->conv[k] = td_convolution_2d_new (c, name, from, to, ksize[k], .stride = { step, step },
                                          .pad = { pad, pad }, .nobias = true);
      snprintf (name, sizeof name, "bn%d", k + 1);
      b->bn[k] = td_batch_normalization_new (c, name, to);
    }
  if (number > 0)
    return;
  b->down = td_convolution_2d_new (c, "down", in, 4 * middle, 1, .stride = { stride, stride },
                                   .nobias = true);
  b->down_bn = td_batch_normalization_new (c, "down_bn", 4 * middle);
}

static void
resnet_make (ResNet *r)
{
  static const int n_blocks[] = { 3, 4, 6, 3 };
  int64_t in = 64;

  r->root = td_chain_new ("resnet50");
  r->conv = td_convolution_2d_new (r->root, "conv", 3, 64, 7, .stride = { 2, 2 },
                                   .pad = { 3, 3 }, .nobias = true);
  r->bn = td_batch_normalization_new (r->root, "bn", 64);
  for (int stage = 0, i = 0; stage < 4; stage++)
    for (int k = 0; k < n_blocks[stage]; k++, i++)
      {
        int64_t middle = 64 << stage;

        block_make (r, i, stage, k, in, middle, k == 0 && stage > 0 ? 2 : 1);
        in = 4 * middle;
      }
  r->fc = td_linear_new (r->root, "fc", in, 1000);
}

static TdVar *
block (Block *b, TdVar *x)
{
  TdVar *h = x;

  for (int k = 0; k < 3; k++)
    {
      h = td_link (b->bn[k], td_link (b->conv[k], h));
      if (k < 2)
        h = td_relu (h);
    }
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
  h = td_max_pooling_2d (h, .ksize = { 3, 3 }, .stride = { 2, 2 }, .pad = { 1, 1 });
  for (int i = 0; i < BLOCKS; i++)
    h = block (&r->block[i], h);
  out[0] = td_softmax_cross_entropy (td_link (r->fc, td_mean_axes (h, plane, 2, false)), in[1]);
}

int
main (int argc, char **argv)
{
  ResNet r = { 0 };

  life_begin (argc, argv);
  int64_t batch = life_arg ("batch_size", 32), size = life_arg ("size", 224);
  int64_t end = life_end (2);
  resnet_make (&r);
  TdOpt *opt = td_momentum_sgd_new (r.root, .lr = 0.1, .momentum = 0.9);
  td_opt_add_hook (opt, td_weight_decay_new (1e-4));
  life_keep (r.root, opt);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *in[] = { td_zeros (TD_F32, TD_SHAPE (batch, 3, size, size)),
                        td_zeros (TD_I32, TD_SHAPE (batch)) };
        TdVar *loss;

        life_call (resnet_loss, &r, in, 2, &loss, 1);
        td_cleargrads (r.root);
        td_backward (loss, 0);
        td_opt_update (opt);
        if (life_arg ("read", 0) != 0) /* the null device has no numbers */
          life_line (i, loss);
      }
  return life_finish ();
}
