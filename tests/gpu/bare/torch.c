/* Layers with their inputs, results and gradients, written for PyTorch to compute again:
 * cross.py reads them.
 *
 *   bare-torch FOLDER
 *
 * leaves CASE.ARRAY files of little-endian float32 or int64, and `index`: a line of JSON for
 * each. The last array of a case is "y"; "g.NAME" is the gradient of sum (y slope).
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder, *current;
static FILE *listing;

static void
write_array (const char *name, TdVar *v)
{
  const TdShape shape = td_shape (v);
  const bool is_float = td_dtype (v) == TD_F32;
  size_t bytes = (size_t)td_size (v) * (is_float ? 4 : 8);
  void *values = malloc (bytes + 1);
  char path[600];
  FILE *f;

  snprintf (path, sizeof path, "%s/%s.%s", folder, current, name);
  f = fopen (path, "wb");
  if (values == NULL || f == NULL || td_read (v, values, bytes) != TD_OK
      || fwrite (values, 1, bytes, f) != bytes)
    {
      fprintf (stderr, "%s: not written\n", path);
      exit (1);
    }
  fclose (f);
  free (values);
  fprintf (listing, "{\"case\": \"%s\", \"array\": \"%s\", \"dtype\": \"%s\", \"shape\": [",
           current, name, is_float ? "float32" : "int64");
  for (int i = 0; i < shape.ndim; i++)
    fprintf (listing, "%s%lld", i > 0 ? ", " : "", (long long)shape.dim[i]);
  fprintf (listing, "]}\n");
}

/* An input with a gradient. */
static TdVar *
input (const char *name, TdShape shape, double scale)
{
  TdVar *v = td_variable (td_mul_scalar (td_randn (TD_F32, shape), scale), name);

  write_array (name, v);
  return v;
}

static TdVar *
labels (const char *name, TdShape shape, int n)
{
  TdVar *v = td_cast (td_mul_scalar (td_rand (TD_F32, shape), n), TD_I64);

  write_array (name, v);
  return v;
}

/* Write y, go backward from sum (y slope), write the gradients. */
static void
result (TdVar *y, TdVar *const *in, const char *const *names, int n)
{
  char name[64];
  TdVar *slope = td_randn (TD_F32, td_shape (y));

  write_array ("slope", slope);
  write_array ("y", y);
  td_backward (td_sum (td_mul (y, slope)), 0);
  for (int i = 0; i < n; i++)
    {
      snprintf (name, sizeof name, "g.%s", names[i]);
      write_array (name, td_grad (in[i]));
    }
}

static void
convolution (void)
{
  static const char *const names[] = { "x", "W", "b" };
  TdVar *in[] = { input ("x", TD_SHAPE (4, 16, 14, 14), 1),
                  input ("W", TD_SHAPE (32, 16, 3, 3), 0.1), input ("b", TD_SHAPE (32), 1) };

  result (td_convolution_2d (in[0], in[1], in[2], .stride = { 2, 2 }, .pad = { 1, 1 }), in,
          names, 3);
}

static void
batch_norm (void)
{
  static const char *const names[] = { "x", "gamma", "beta" };
  TdVar *in[] = { input ("x", TD_SHAPE (8, 16, 7, 7), 2), input ("gamma", TD_SHAPE (16), 1),
                  input ("beta", TD_SHAPE (16), 1) };

  result (td_batch_normalization (in[0], in[1], in[2], .eps = 1e-5), in, names, 3);
}

static void
layer_norm (void)
{
  static const char *const names[] = { "x", "gamma", "beta" };
  TdVar *in[] = { input ("x", TD_SHAPE (64, 96), 2), input ("gamma", TD_SHAPE (96), 1),
                  input ("beta", TD_SHAPE (96), 1) };

  result (td_layer_normalization (in[0], in[1], in[2]), in, names, 3);
}

static void
attention (void)
{
  static const char *const names[] = { "q", "k", "v" };
  TdVar *in[] = { input ("q", TD_SHAPE (6, 40, 16), 1), input ("k", TD_SHAPE (6, 40, 16), 1),
                  input ("v", TD_SHAPE (6, 40, 16), 1) };

  result (td_scaled_dot_product_attention (in[0], in[1], in[2], .causal = true), in, names, 3);
}

static void
product (void)
{
  static const char *const names[] = { "a", "b" };
  TdVar *in[] = { input ("a", TD_SHAPE (130, 70), 1), input ("b", TD_SHAPE (70, 90), 1) };

  result (td_matmul (in[0], in[1], false, false), in, names, 2);
}

static void
cross_entropy (void)
{
  static const char *const names[] = { "x" };
  TdVar *in[] = { input ("x", TD_SHAPE (100, 37), 3) };

  result (td_softmax_cross_entropy (in[0], labels ("t", TD_SHAPE (100), 37)), in, names, 1);
}

static void
max_pool (void)
{
  static const char *const names[] = { "x" };
  TdVar *in[] = { input ("x", TD_SHAPE (3, 5, 12, 12), 1) };

  result (td_max_pooling_2d (in[0]), in, names, 1);
}

static void
embedding (void)
{
  static const char *const names[] = { "W" };
  TdVar *in[] = { input ("W", TD_SHAPE (50, 24), 1) };

  result (td_embed_id (labels ("t", TD_SHAPE (300), 50), in[0]), in, names, 1);
}

static void
gelu (void)
{
  static const char *const names[] = { "x" };
  TdVar *in[] = { input ("x", TD_SHAPE (1000), 3) };

  result (td_gelu (in[0]), in, names, 1);
}

/* Five updates with gradients that are the parameter itself. */
static void
adam (void)
{
  TdLink *m = td_chain_new ("m");
  TdVar *w = td_link_add_param (m, "w", TD_SHAPE (500), .initializer = td_init_constant (0));
  TdOpt *opt = td_adam_new (m, .lr = 0.01);
  float values[500];

  td_read (td_randn (TD_F32, TD_SHAPE (500)), values, sizeof values);
  td_write (w, values, sizeof values);
  write_array ("x", w);
  for (int i = 0; i < 5; i++)
    {
      td_cleargrads (m);
      td_backward (td_mul_scalar (td_sum (td_mul (w, w)), 0.5), 0);
      td_opt_update (opt);
    }
  write_array ("y", w);
  td_opt_free (opt);
  td_link_free (m);
}

/* Six steps of four sequences, gates below each other as PyTorch has them. */
static void
recurrent (int gates, bool has_c)
{
  static const char *const names[] = { "x", "Wx", "Wh", "bx", "bh", "hx", "cx" };
  const int64_t rows = 12 * gates;
  TdVar *in[] = { input ("x", TD_SHAPE (24, 10), 1),
                  input ("Wx", TD_SHAPE (rows, 10), 0.3),
                  input ("Wh", TD_SHAPE (rows, 12), 0.3),
                  input ("bx", TD_SHAPE (rows), 0.3),
                  input ("bh", TD_SHAPE (rows), 0.3),
                  input ("hx", TD_SHAPE (1, 4, 12), 1),
                  has_c ? input ("cx", TD_SHAPE (1, 4, 12), 1) : NULL };
  TdVar *ws[8], *bs[8], *xs[6], *ys[6], *hy, *cy;

  for (int i = 0; i < 2; i++)
    {
      td_split_axis (in[1 + i], gates, 0, ws + i * gates);
      td_split_axis (in[3 + i], gates, 0, bs + i * gates);
    }
  td_split_axis (in[0], 6, 0, xs);
  if (has_c)
    td_n_step_lstm (1, 0, in[5], in[6], ws, bs, xs, 6, &hy, &cy, ys);
  else
    td_n_step_gru (1, 0, in[5], ws, bs, xs, 6, &hy, ys);
  result (td_concat (ys, 6, 0), in, names, has_c ? 7 : 6);
}

static void
lstm (void)
{
  recurrent (4, true);
}

static void
gru (void)
{
  recurrent (3, false);
}

static const struct
{
  const char *name;
  void (*run) (void);
} cases[] = {
  { "convolution", convolution },
  { "batch_norm", batch_norm },
  { "layer_norm", layer_norm },
  { "attention", attention },
  { "product", product },
  { "cross_entropy", cross_entropy },
  { "max_pool", max_pool },
  { "embedding", embedding },
  { "gelu", gelu },
  { "adam", adam },
  { "lstm", lstm },
  { "gru", gru },
};

int
main (int argc, char **argv)
{
  char path[600];

  td_init (&argc, &argv);
  if (argc != 2)
    {
      fprintf (stderr, "usage: bare-torch FOLDER\n");
      return 2;
    }
  folder = argv[1];
  snprintf (path, sizeof path, "%s/index", folder);
  listing = fopen (path, "w");
  if (listing == NULL)
    {
      perror (path);
      return 1;
    }
  td_set_seed (11);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0] && td_error () == NULL; i++)
    TD_SCOPE ("case")
      {
        current = cases[i].name;
        cases[i].run ();
      }
  fclose (listing);
  if (td_error () != NULL)
    {
      fprintf (stderr, "%s\n", td_error ()->message);
      return 1;
    }
  return td_finish ();
}
