/* The peer workloads: the same data, first weights, losses and updates as the PyTorch programs
 * that run beside them, so that loss traces can be compared number by number.  Data are a fixed
 * integer hash of index and seed.
 *
 * SPDX-License-Identifier: MIT */
#include "peer-models.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- data --- */

static float *
hash_uniform (int64_t n, uint32_t seed)
{
  float *u = malloc ((size_t)n * sizeof *u);

  for (int64_t i = 0; u != NULL && i < n; i++)
    {
      uint32_t z = (uint32_t)(i + 1) * 0x9E3779B1u + seed * 0x85EBCA77u;

      z ^= z >> 15;
      z *= 0x2C1B3C6Du;
      z ^= z >> 12;
      z *= 0x297A2D39u;
      z ^= z >> 15;
      u[i] = (float)(z >> 8) * 0x1p-24f;
    }
  if (u == NULL)
    abort ();
  return u;
}

static int64_t
size_of (TdShape shape)
{
  int64_t size = 1;

  for (int i = 0; i < shape.ndim; i++)
    size *= shape.dim[i];
  return size;
}

/* Uniform in [-scale, scale). */
float *
peer_numbers (int64_t n, uint32_t seed, float scale)
{
  float *u = hash_uniform (n, seed);

  for (int64_t i = 0; i < n; i++)
    u[i] = (u[i] * 2.0f - 1.0f) * scale;
  return u;
}

TdVar *
peer_array (TdShape shape, uint32_t seed, float scale)
{
  float *u = peer_numbers (size_of (shape), seed, scale);
  TdVar *v = td_retain (td_tensor (TD_F32, shape, u));

  free (u);
  return v;
}

/* n_sets arrays of n labels each, cut from one hash. */
static void
labels (int64_t n, int n_sets, int classes, uint32_t seed, TdVar **out)
{
  float *u = hash_uniform (n * n_sets, seed);
  int64_t *t = malloc ((size_t)n * sizeof *t);

  for (int set = 0; set < n_sets; set++)
    {
      for (int64_t i = 0; i < n; i++)
        {
          const int64_t label = (int64_t)(u[set * n + i] * (float)classes);

          t[i] = label < classes ? label : classes - 1;
        }
      out[set] = td_retain (td_tensor (TD_I64, TD_SHAPE (n), t));
    }
  free (u);
  free (t);
}

/* Weights: uniform, +- 1 / sqrt (fan in), by the parameter's index; biases are 0 already. */
static void
init_weight (TdLink *link, uint32_t index, bool embedding)
{
  TdVar *W = td_link_param (link, "W");
  const TdShape shape = td_shape (W);
  const int64_t size = size_of (shape);
  const double fan_in = (double)(size / shape.dim[0]);
  float *u = peer_numbers (size, 100 + index, embedding ? 1.0f : (float)(1 / sqrt (fan_in)));

  td_write (W, u, (size_t)size * sizeof *u);
  free (u);
}

/* The gates of the peer are blocks i, f, a, o of rows; ours are a, i, f, o per unit. */
static void
interleave_gates (TdLink *link)
{
  static const int64_t ours[] = { 1, 2, 0, 3 };
  TdVar *W = td_link_param (link, "W");
  const TdShape shape = td_shape (W);
  const int64_t u = shape.dim[0] / 4, n = shape.dim[1];
  const size_t bytes = (size_t)size_of (shape) * sizeof (float);
  float *from = malloc (bytes), *to = malloc (bytes);

  td_read (W, from, bytes);
  for (int64_t g = 0; g < 4; g++)
    for (int64_t k = 0; k < u; k++)
      memcpy (to + (4 * k + ours[g]) * n, from + (g * u + k) * n, (size_t)n * sizeof *to);
  td_write (W, to, bytes);
  free (from);
  free (to);
}

/* --- models --- */

static void
mlp_layers (Model *m, const int *sizes, int n, int64_t batch)
{
  m->root = td_chain_new ("mlp");
  m->n_layers = n - 1;
  for (int i = 0; i < n - 1; i++)
    {
      char name[8];

      snprintf (name, sizeof name, "l%d", i + 1);
      m->layer[i] = td_linear_new (m->root, name, sizes[i], sizes[i + 1]);
      init_weight (m->layer[i], (uint32_t)(2 * i), false);
    }
  for (uint32_t k = 0; k < POOL; k++)
    {
      m->x[k][0] = peer_array (TD_SHAPE (batch, sizes[0]), 10 + k, 1);
      labels (batch, 1, 10, 50 + k, m->t[k]);
    }
  m->opt = td_momentum_sgd_new (m->root, .lr = 0.01, .momentum = 0.9);
}

static void
mlp_make (Model *m)
{
  mlp_layers (m, (const int[]){ 784, 1000, 1000, 10 }, 4, 100);
}

static void
mlp_small_make (Model *m)
{
  mlp_layers (m, (const int[]){ 784, 100, 10 }, 3, 32);
}

static TdVar *
mlp_loss (Model *m, int k)
{
  TdVar *h = m->x[k][0];

  for (int i = 0; i < m->n_layers; i++)
    {
      h = td_link (m->layer[i], h);
      if (i < m->n_layers - 1)
        h = td_relu (h);
    }
  return td_softmax_cross_entropy (h, m->t[k][0]);
}

static void
lenet_make (Model *m)
{
  m->root = td_chain_new ("lenet");
  m->layer[0] = td_convolution_2d_new (m->root, "c1", 1, 20, 5);
  m->layer[1] = td_convolution_2d_new (m->root, "c2", 20, 50, 5);
  m->layer[2] = td_linear_new (m->root, "f1", 800, 500);
  m->layer[3] = td_linear_new (m->root, "f2", 500, 10);
  for (uint32_t i = 0; i < 4; i++)
    init_weight (m->layer[i], 2 * i, false);
  for (uint32_t k = 0; k < POOL; k++)
    {
      m->x[k][0] = peer_array (TD_SHAPE (64, 1, 28, 28), 10 + k, 1);
      labels (64, 1, 10, 50 + k, m->t[k]);
    }
  m->opt = td_adam_new (m->root, .lr = 1e-3);
}

static TdVar *
lenet_loss (Model *m, int k)
{
  TdVar *h = td_max_pooling_2d (td_link (m->layer[0], m->x[k][0]));

  h = td_max_pooling_2d (td_link (m->layer[1], h));
  h = td_relu (td_link (m->layer[2], h));
  return td_softmax_cross_entropy (td_link (m->layer[3], h), m->t[k][0]);
}

static void
lstm_make (Model *m)
{
  m->root = td_chain_new ("char_lstm");
  m->layer[0] = td_embed_id_new (m->root, "emb", 65, 64);
  m->layer[1] = td_linear_new (m->root, "upward", 64, 1024);
  m->layer[2] = td_linear_new (m->root, "lateral", 256, 1024);
  m->layer[3] = td_linear_new (m->root, "out", 256, 65);
  init_weight (m->layer[0], 0, true);
  init_weight (m->layer[1], 1, false);
  init_weight (m->layer[2], 2, false);
  init_weight (m->layer[3], 5, false);
  interleave_gates (m->layer[1]);
  interleave_gates (m->layer[2]);
  for (uint32_t k = 0; k < POOL; k++)
    {
      labels (32, STEPS, 65, 10 + k, m->x[k]);
      labels (32, STEPS, 65, 50 + k, m->t[k]);
    }
  m->zero = td_retain (td_zeros (TD_F32, TD_SHAPE (32, 256)));
  m->opt = td_adam_new (m->root, .lr = 1e-3);
  td_opt_add_hook (m->opt, td_gradient_clipping_new (5.0));
}

static TdVar *
lstm_loss (Model *m, int k)
{
  TdVar *h = m->zero, *c = m->zero, *loss = NULL;

  for (int i = 0; i < STEPS; i++)
    {
      TdVar *x = td_link (m->layer[1], td_link (m->layer[0], m->x[k][i])), *step;

      c = td_lstm (c, td_add (x, td_link (m->layer[2], h)), &h);
      step = td_softmax_cross_entropy (td_link (m->layer[3], h), m->t[k][i]);
      loss = loss != NULL ? td_add (loss, step) : step;
    }
  return td_div_scalar (loss, STEPS);
}

/* Eight blocks of two convolutions on 64 x 32 x 32, then the mean of each channel. */
static void
resnet_make (Model *m)
{
  m->root = td_chain_new ("resnet_block");
  for (uint32_t i = 0; i < 16; i++)
    {
      char name[8];

      snprintf (name, sizeof name, "c%d", (int)i);
      m->layer[2 * i]
          = td_convolution_2d_new (m->root, name, 64, 64, 3, .pad = { 1, 1 }, .nobias = true);
      init_weight (m->layer[2 * i], 3 * i, false);
      snprintf (name, sizeof name, "b%d", (int)i);
      m->layer[2 * i + 1] = td_batch_normalization_new (m->root, name, 64, .eps = 1e-5);
    }
  m->layer[32] = td_linear_new (m->root, "fc", 64, 10);
  init_weight (m->layer[32], 48, false);
  for (uint32_t k = 0; k < POOL; k++)
    {
      m->x[k][0] = peer_array (TD_SHAPE (8, 64, 32, 32), 10 + k, 1);
      labels (8, 1, 10, 50 + k, m->t[k]);
    }
  m->opt = td_sgd_new (m->root, .lr = 0.01);
}

static TdVar *
resnet_loss (Model *m, int k)
{
  static const int plane[] = { 2, 3 };
  TdVar *h = m->x[k][0];

  for (int block = 0; block < 8; block++)
    {
      TdLink **l = m->layer + 4 * block;
      TdVar *y = td_relu (td_link (l[1], td_link (l[0], h)));

      h = td_relu (td_add (h, td_link (l[3], td_link (l[2], y))));
    }
  return td_softmax_cross_entropy (td_link (m->layer[32], td_mean_axes (h, plane, 2, false)),
                                   m->t[k][0]);
}

/* Two blocks of attention over 64 places, 128 wide, of 4 heads; 16 lines of text. */
enum
{
  LINES = 16,
  PLACES = 64,
  WIDE = 128,
  HEADS = 4
};

static void
transformer_make (Model *m)
{
  static const struct
  {
    const char *name;
    int in, out;
    uint32_t index;
  } linears[] = {
    { "qkv1", WIDE, 3 * WIDE, 4 }, { "proj1", WIDE, WIDE, 6 },     { "up1", WIDE, 512, 10 },
    { "down1", 512, WIDE, 12 },    { "qkv2", WIDE, 3 * WIDE, 16 }, { "proj2", WIDE, WIDE, 18 },
    { "up2", WIDE, 512, 22 },      { "down2", 512, WIDE, 24 },     { "out", WIDE, 65, 28 },
  };
  int64_t ids[PLACES];

  m->root = td_chain_new ("transformer");
  for (int i = 0; i < (int)(sizeof linears / sizeof linears[0]); i++)
    {
      m->layer[i] = td_linear_new (m->root, linears[i].name, linears[i].in, linears[i].out);
      init_weight (m->layer[i], linears[i].index, false);
    }
  for (int i = 0; i < 5; i++)
    {
      char name[8];

      snprintf (name, sizeof name, "n%d", i);
      m->layer[9 + i] = td_chain_new_in (m->root, name);
      td_link_add_param (m->layer[9 + i], "gamma", TD_SHAPE (WIDE),
                         .initializer = td_init_constant (1));
      td_link_add_param (m->layer[9 + i], "beta", TD_SHAPE (WIDE),
                         .initializer = td_init_constant (0));
    }
  m->layer[14] = td_embed_id_new (m->root, "emb", 65, WIDE);
  m->layer[15] = td_embed_id_new (m->root, "pos", PLACES, WIDE);
  init_weight (m->layer[14], 0, true);
  init_weight (m->layer[15], 1, true);
  for (int i = 0; i < PLACES; i++)
    ids[i] = i;
  m->ids = td_retain (td_tensor (TD_I64, TD_SHAPE (PLACES), ids));
  for (uint32_t k = 0; k < POOL; k++)
    {
      labels (LINES * PLACES, 1, 65, 10 + k, m->x[k]);
      labels (LINES * PLACES, 1, 65, 50 + k, m->t[k]);
    }
  m->opt = td_adam_new (m->root, .lr = 1e-3);
}

/* x (LINES * PLACES, WIDE); each place sees itself and those before it. */
static TdVar *
attention (TdLink *qkv, TdLink *proj, TdVar *x)
{
  static const int heads_first[] = { 2, 0, 3, 1, 4 }, places_first[] = { 0, 2, 1, 3 };
  TdVar *y = td_reshape (td_link (qkv, x), TD_SHAPE (LINES, PLACES, 3, HEADS, WIDE / HEADS));
  TdVar *part[3];

  y = td_reshape (td_transpose (y, heads_first),
                  TD_SHAPE (3 * LINES * HEADS, PLACES, WIDE / HEADS));
  td_split_axis (y, 3, 0, part);
  y = td_scaled_dot_product_attention (part[0], part[1], part[2], .causal = true);
  y = td_transpose (td_reshape (y, TD_SHAPE (LINES, HEADS, PLACES, WIDE / HEADS)),
                    places_first);
  return td_link (proj, td_reshape (y, TD_SHAPE (LINES * PLACES, WIDE)));
}

static TdVar *
normal (Model *m, int i, TdVar *x)
{
  TdLink *l = m->layer[9 + i];

  return td_layer_normalization (x, td_link_param (l, "gamma"), td_link_param (l, "beta"));
}

static TdVar *
transformer_loss (Model *m, int k)
{
  TdVar *h = td_reshape (td_link (m->layer[14], m->x[k][0]), TD_SHAPE (LINES, PLACES, WIDE));

  h = td_reshape (td_add (h, td_link (m->layer[15], m->ids)), TD_SHAPE (LINES * PLACES, WIDE));
  for (int block = 0; block < 2; block++)
    {
      TdLink **l = m->layer + 4 * block;

      h = td_add (h, attention (l[0], l[1], normal (m, 2 * block, h)));
      h = td_add (h, td_link (l[3], td_gelu (td_link (l[2], normal (m, 2 * block + 1, h)))));
    }
  return td_softmax_cross_entropy (td_link (m->layer[8], normal (m, 4, h)), m->t[k][0]);
}

const PeerModel peer_models[] = {
  { "mlp", mlp_make, mlp_loss },       { "mlp_small", mlp_small_make, mlp_loss },
  { "lenet", lenet_make, lenet_loss }, { "resnet_block", resnet_make, resnet_loss },
  { "lstm", lstm_make, lstm_loss },    { "transformer", transformer_make, transformer_loss },
};
const int n_peer_models = (int)(sizeof peer_models / sizeof peer_models[0]);
