/* Small programs that train on a device: four nets, Adam, labels and images that are always the
 * same.
 *
 * SPDX-License-Identifier: MIT */
#include "train.h"

#include <stdlib.h>
#include <string.h>

struct TrainNet
{
  TdLink *net, *a, *b, *c;
  TdOpt *opt;
  TdVar *(*forward) (TrainNet *t);
  TdDevice *device;
  bool copies;
  float images[8 * 64];
  int iteration;
};

enum
{
  BATCH = 8
};
static const int32_t labels[BATCH] = { 0, 1, 2, 3, 4, 0, 1, 2 };

/* Made on the device, or on the host and copied by an event of its own. */
static TdVar *
images (TrainNet *t, TdShape shape, int from)
{
  TdVar *x;

  if (!t->copies)
    return td_tensor (TD_F32, shape, t->images + from);
  td_device_use (td_device_get ("cpu"));
  x = td_tensor (TD_F32, shape, t->images + from);
  td_device_use (t->device);
  return td_to_device (x, t->device);
}

static TdVar *
mlp (TrainNet *t)
{
  TdVar *x = images (t, TD_SHAPE (BATCH, 20), 0);

  return td_link (t->b, td_relu (td_link (t->c, td_link (t->a, x))));
}

static TdVar *
lenet (TrainNet *t)
{
  TdVar *x = images (t, TD_SHAPE (BATCH, 1, 8, 8), 0);
  TdVar *h = td_relu (td_link (t->a, x));

  h = td_max_pooling_2d (h, .ksize = { 2, 2 }, .stride = { 2, 2 });
  return td_link (t->b, h);
}

/* A convolution's images are normalised, channels side by side where the device likes that. */
static TdVar *
norm (TrainNet *t)
{
  TdVar *x = images (t, TD_SHAPE (BATCH, 1, 8, 8), 0);

  return td_link (t->b, td_relu (td_link (t->c, td_link (t->a, x))));
}

static TdVar *
lstm (TrainNet *t)
{
  TdVar *h = NULL;

  td_lstm_reset_state (t->a);
  for (int step = 0; step < 4; step++)
    h = td_link (t->a, images (t, TD_SHAPE (BATCH, 5), step * BATCH * 5));
  return td_link (t->b, h);
}

TrainNet *
train_new (const char *net, TdDevice *device)
{
  TrainNet *t = calloc (1, sizeof *t);

  t->device = device;
  td_device_use (device);
  for (size_t i = 0; i < sizeof t->images / sizeof *t->images; i++)
    t->images[i] = (float)(i * 7 % 13) / 13;
  t->net = td_chain_new (net);
  if (strcmp (net, "mlp") == 0)
    {
      t->a = td_linear_new (t->net, "l1", 20, 30);
      t->c = td_batch_normalization_new (t->net, "bn", 30);
      t->b = td_linear_new (t->net, "l2", 30, 5);
      t->forward = mlp;
    }
  else if (strcmp (net, "lenet") == 0)
    {
      t->a = td_convolution_2d_new (t->net, "conv1", 1, 3, 3, .pad = { 1, 1 });
      t->b = td_linear_new (t->net, "fc1", 3 * 4 * 4, 5);
      t->forward = lenet;
    }
  else if (strcmp (net, "norm") == 0)
    {
      t->a = td_convolution_2d_new (t->net, "conv", 1, 4, 3, .pad = { 1, 1 });
      t->c = td_batch_normalization_new (t->net, "bn", 4);
      t->b = td_linear_new (t->net, "fc", 4 * 8 * 8, 5);
      t->forward = norm;
    }
  else
    {
      t->a = td_lstm_new (t->net, "lstm", 5, 6);
      t->b = td_linear_new (t->net, "out", 6, 5);
      t->forward = lstm;
    }
  t->opt = td_adam_new (t->net);
  td_opt_add_hook (t->opt, td_gradient_clipping_new (1.0));
  return t;
}

double
train_step (TrainNet *t, bool reads)
{
  double value = 0;

  TD_ITERATION (t->iteration++)
    {
      TdVar *truth = td_tensor (TD_I32, TD_SHAPE (BATCH), labels);
      TdVar *loss = td_softmax_cross_entropy (t->forward (t), truth);

      td_cleargrads (t->net);
      td_backward (loss, 0);
      td_opt_update (t->opt);
      if (reads)
        value = td_item (loss);
    }
  return value;
}

void
train_copies (TrainNet *t)
{
  t->copies = true;
}

void
train_free (TrainNet *t)
{
  td_opt_free (t->opt);
  td_link_free (t->net);
  free (t);
}
