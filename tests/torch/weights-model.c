/* Networks of links that test-weights.py has in PyTorch, too: weights-model NAME init OUT.npz
 * saves one, weights-model NAME run WEIGHTS.npz X.npy Y.npy loads it strictly and computes.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <string.h>

enum
{
  BLOCKS = 8,
  SIZE = 32,
  HEADS = 4,
  LAYERS = 2,
  WORDS = 50
};

static const double eps = 1e-5; /* PyTorch's, of which no file tells */

typedef struct
{
  TdLink *root, *fc, *embed, *embed_place, *layer[BLOCKS][8];
} Net;

/* --- ResNet-18, in names of its own --- */

enum
{
  CONV1,
  BN1,
  CONV2,
  BN2,
  DOWN,
  DOWN_BN
};

static TdLink *
conv (TdLink *parent, const char *name, int64_t in, int64_t out, int k, int stride)
{
  return td_convolution_2d_new (parent, name, in, out, k, .stride = { stride, stride },
                                .pad = { k / 2, k / 2 }, .nobias = true);
}

static TdLink *
norm (TdLink *parent, const char *name, int64_t size)
{
  return td_batch_normalization_new (parent, name, size, .eps = eps);
}

static void
make_resnet (Net *n)
{
  int64_t in = 64;

  n->embed = conv (n->root, "conv", 3, in, 7, 2);
  n->embed_place = norm (n->root, "bn", in);
  for (int i = 0; i < BLOCKS; i++)
    {
      int64_t out = (int64_t)64 << i / 2;
      int stride = out != in ? 2 : 1;
      char name[16];

      snprintf (name, sizeof name, "res%d", i + 1);
      TdLink *c = td_chain_new (n->root, name);
      n->layer[i][CONV1] = conv (c, "conv1", in, out, 3, stride);
      n->layer[i][BN1] = norm (c, "bn1", out);
      n->layer[i][CONV2] = conv (c, "conv2", out, out, 3, 1);
      n->layer[i][BN2] = norm (c, "bn2", out);
      if (stride == 2)
        {
          n->layer[i][DOWN] = conv (c, "down", in, out, 1, 2);
          n->layer[i][DOWN_BN] = norm (c, "down_bn", out);
        }
      in = out;
    }
  n->fc = td_linear_new (n->root, "fc", in, 10);
}

static TdVar *
call_resnet (Net *n, TdVar *x)
{
  static const int plane[] = { 2, 3 };
  TdVar *h = td_relu (td_link (n->embed_place, td_link (n->embed, x)));

  h = td_max_pooling_2d (h, .ksize = { 3, 3 }, .stride = { 2, 2 }, .pad = { 1, 1 },
                         .cover_all = false);
  for (int i = 0; i < BLOCKS; i++)
    {
      TdLink **l = n->layer[i];
      TdVar *y = td_relu (td_link (l[BN1], td_link (l[CONV1], h)));

      y = td_link (l[BN2], td_link (l[CONV2], y));
      h = td_relu (
          td_add (y, l[DOWN] != NULL ? td_link (l[DOWN_BN], td_link (l[DOWN], h)) : h));
    }
  return td_link (n->fc, td_mean_axes (h, plane, 2, false));
}

/* --- a GPT, with PyTorch's names; queries, keys and values in one, or in three --- */

enum
{
  LN1,
  QUERY,
  KEY,
  VALUE,
  PROJ,
  LN2,
  UP,
  DOWN_AGAIN
};

static void
make_gpt_of (Net *n, bool in_three, bool tied)
{
  TdLink *layers;

  n->embed = td_embed_id_new (n->root, "wte", WORDS, SIZE);
  n->embed_place = td_embed_id_new (n->root, "wpe", SIZE, SIZE);
  layers = td_chain_new (n->root, "layers");
  for (int i = 0; i < LAYERS; i++)
    {
      TdLink **l = n->layer[i], *c, *a;
      char name[16];

      snprintf (name, sizeof name, "%d", i);
      c = td_chain_new (layers, name);
      l[LN1] = td_layer_normalization_new (c, "ln1", SIZE, .eps = eps);
      a = td_chain_new (c, "attention");
      if (in_three)
        {
          l[KEY] = td_linear_new (a, "key", SIZE, SIZE); /* not in PyTorch's order */
          l[QUERY] = td_linear_new (a, "query", SIZE, SIZE);
          l[VALUE] = td_linear_new (a, "value", SIZE, SIZE);
        }
      else
        l[QUERY] = td_linear_new (a, "qkv", SIZE, (int64_t)3 * SIZE);
      l[PROJ] = td_linear_new (a, "proj", SIZE, SIZE);
      l[LN2] = td_layer_normalization_new (c, "ln2", SIZE, .eps = eps);
      l[UP] = td_linear_new (c, "up", SIZE, (int64_t)4 * SIZE);
      l[DOWN_AGAIN] = td_linear_new (c, "down", (int64_t)4 * SIZE, SIZE);
    }
  n->layer[LAYERS][0] = td_layer_normalization_new (n->root, "ln", SIZE, .eps = eps);
  if (!tied)
    n->fc = td_linear_new (n->root, "head", SIZE, WORDS, .nobias = true);
}

static void
make_gpt (Net *n)
{
  make_gpt_of (n, false, false);
}

static void
make_gpt_three (Net *n)
{
  make_gpt_of (n, true, false);
}

static void
make_gpt_tied (Net *n)
{
  make_gpt_of (n, false, true);
}

static TdVar *
rows (TdVar *x, TdLink *link)
{
  TdShape s = td_shape (x);
  TdVar *y = td_link (link, td_reshape (x, TD_SHAPE (s.dim[0] * s.dim[1], s.dim[2])));

  return td_reshape (y, TD_SHAPE (s.dim[0], s.dim[1], -1));
}

static TdVar *
heads_of (TdVar *x)
{
  static const int axes[] = { 0, 2, 1, 3 };
  TdShape s = td_shape (x);

  return td_transpose (td_reshape (x, TD_SHAPE (s.dim[0], s.dim[1], HEADS, SIZE / HEADS)),
                       axes);
}

static TdVar *
attend (TdLink **l, TdVar *x)
{
  static const int axes[] = { 0, 2, 1, 3 };
  TdShape s = td_shape (x);
  TdVar *in[3];

  if (l[KEY] != NULL)
    for (int i = 0; i < 3; i++)
      in[i] = rows (x, l[QUERY + i]);
  else
    td_split_axis (rows (x, l[QUERY]), 3, 2, in);
  x = td_scaled_dot_product_attention (heads_of (in[0]), heads_of (in[1]), heads_of (in[2]),
                                       .causal = true);
  return rows (td_reshape (td_transpose (x, axes), s), l[PROJ]);
}

static TdVar *
call_gpt (Net *n, TdVar *ids)
{
  TdShape s = td_shape (ids);
  TdVar *places = td_broadcast_to (td_arange (TD_I64, 0, (double)s.dim[1], 1), s),
        *h = td_add (td_link (n->embed, ids), td_link (n->embed_place, places));

  for (int i = 0; i < LAYERS; i++)
    {
      TdLink **l = n->layer[i];

      h = td_add (h, attend (l, rows (h, l[LN1])));
      h = td_add (h, rows (td_gelu (rows (rows (h, l[LN2]), l[UP])), l[DOWN_AGAIN]));
    }
  h = rows (h, n->layer[LAYERS][0]);
  if (n->fc != NULL)
    return rows (h, n->fc);
  h = td_reshape (h, TD_SHAPE (s.dim[0] * s.dim[1], SIZE));
  return td_reshape (td_linear (h, td_link_param (n->embed, "W"), NULL),
                     TD_SHAPE (s.dim[0], s.dim[1], WORDS));
}

/* --- recurrent layers over (batch, steps, 12) --- */

static void
make_lstm (Net *n)
{
  n->embed = td_lstm_new (n->root, "layer", 12, 16);
  n->fc = td_linear_new (n->root, "fc", 16, 5);
}

static TdVar *
step_of (TdVar *x, int64_t t)
{
  TdSlice at[] = { { 0, TD_END, 1, 0 }, { t, t + 1, 1, 0 } };
  TdShape s = td_shape (x);

  return td_reshape (td_get_item (x, at, 2), TD_SHAPE (s.dim[0], s.dim[2]));
}

static TdVar *
call_lstm (Net *n, TdVar *x)
{
  TdVar *h = NULL;

  for (int64_t t = 0; t < td_shape (x).dim[1]; t++)
    h = td_link (n->embed, step_of (x, t));
  return td_link (n->fc, h);
}

static void
make_bilstm (Net *n)
{
  n->embed = td_n_step_bilstm_new (n->root, "layer", 2, 12, 16, 0);
  n->fc = td_linear_new (n->root, "fc", 32, 5);
}

static void
make_gru (Net *n)
{
  n->embed = td_n_step_gru_new (n->root, "layer", 2, 12, 16, 0);
  n->fc = td_linear_new (n->root, "fc", 16, 5);
}

/* The results of the last step of every sequence. */
static TdVar *
call_n_step (Net *n, TdVar *x)
{
  TdVar *xs[8], *ys[8], *last[8];
  const int64_t batch = td_shape (x).dim[0], steps = td_shape (x).dim[1];

  for (int i = 0; i < batch && i < 8; i++)
    {
      TdSlice one = { i, i + 1, 1, 0 };

      xs[i] = td_reshape (td_get_item (x, &one, 1), TD_SHAPE (steps, 12));
    }
  td_n_step_call (n->embed, NULL, NULL, xs, (int)batch, NULL, NULL, ys);
  for (int i = 0; i < batch && i < 8; i++)
    {
      TdSlice end = { steps - 1, steps, 1, 0 };

      last[i] = td_get_item (ys[i], &end, 1);
    }
  return td_link (n->fc, td_concat (last, (int)batch, 0));
}

/* --- a transposed convolution, and a linear layer that is a convolution of 1 x 1 there --- */

static void
make_deconvolution (Net *n)
{
  n->embed = td_deconvolution_2d_new (n->root, "up", 3, 6, 2, .stride = { 2, 2 });
  n->fc = td_linear_new (n->root, "mix", 6, 4);
}

static TdVar *
call_deconvolution (Net *n, TdVar *x)
{
  static const int plane[] = { 2, 3 };

  return td_link (n->fc, td_mean_axes (td_relu (td_link (n->embed, x)), plane, 2, false));
}

static const struct
{
  const char *name;
  void (*make) (Net *net);
  TdVar *(*call) (Net *net, TdVar *x);
} nets[] = { { "resnet", make_resnet, call_resnet },
             { "gpt", make_gpt, call_gpt },
             { "gpt-three", make_gpt_three, call_gpt },
             { "gpt-tied", make_gpt_tied, call_gpt },
             { "lstm", make_lstm, call_lstm },
             { "bilstm", make_bilstm, call_n_step },
             { "gru", make_gru, call_n_step },
             { "deconvolution", make_deconvolution, call_deconvolution } };

int
main (int argc, char **argv)
{
  Net n = { 0 };
  unsigned i = 0;

  while (i < sizeof nets / sizeof *nets && (argc < 4 || strcmp (argv[1], nets[i].name) != 0))
    i++;
  if (i == sizeof nets / sizeof *nets)
    return fprintf (stderr, "weights-model: no such net\n"), 2;
  td_init (NULL, NULL);
  n.root = td_chain_new ("net");
  nets[i].make (&n);
  if (strcmp (argv[2], "init") == 0)
    {
      td_save_npz (argv[3], n.root);
      return td_finish ();
    }
  td_load_npz (argv[3], n.root);
  TD_USING (train, false)
    TD_NO_BACKPROP
      TD_ITERATION (0)
        td_save_npy (argv[5], nets[i].call (&n, td_load_npy (argv[4])));
  return td_finish ();
}
