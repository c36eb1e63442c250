/* What the programs of this folder train: a small network that tells on which side of two lines
 * a point of the plane lies.
 *
 * Each program has one mistake, and is without it where CURED is defined, as NAME_cured.c does.
 * Start one as three processes: tapedeck run -n 3 same_data.c, then tapedeck ranks.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck.h>

enum
{
  POINTS = 192,
  BATCH = 16,
  ITERATIONS = 12,
  ODD = 6 /* the iteration in which something happens, where it is not in all */
};

typedef struct
{
  TdLink *all, *hidden, *output;
} Net;

static inline Net
net_new (void)
{
  Net net;

  net.all = td_chain_new ("net");
  net.hidden = td_linear_new (net.all, "hidden", 2, 8);
  net.output = td_linear_new (net.all, "output", 8, 2);
  return net;
}

/* The same points on all ranks. */
static inline TdDataset *
points_new (void)
{
  static float x[POINTS][2];
  static int32_t side[POINTS];
  uint32_t r = 1;

  for (int i = 0; i < POINTS; i++)
    {
      for (int k = 0; k < 2; k++)
        {
          r = r * 1664525 + 1013904223;
          x[i][k] = (float)(r >> 8) / (1 << 23) - 1;
        }
      side[i] = x[i][0] * x[i][1] > 0;
    }
  return td_tuple_dataset_new (td_tensor (TD_F32, TD_SHAPE (POINTS, 2), x),
                               td_tensor (TD_I32, TD_SHAPE (POINTS), side));
}

/* This rank's share of them, in batches. */
static inline TdIter *
batches_of_a_share (TdComm *comm)
{
  TdDataset *share = td_scatter_dataset (points_new (), comm, .force_equal_length = true);

  return td_serial_iterator_new (share, .batch_size = BATCH);
}

static inline TdVar *
loss_of (Net net, TdBatch b)
{
  TdVar *h = td_tanh (td_link (net.hidden, b.x));

  return td_softmax_cross_entropy (td_link (net.output, h), b.t);
}

/* The gradients of a loss, and its value. */
static inline float
backward (Net net, TdVar *loss)
{
  td_cleargrads (net.all);
  td_backward (loss, 0);
  td_report ("loss", td_item (loss));
  return (float)td_item (loss);
}
