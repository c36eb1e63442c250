/* Training of two nets of real size on a device: ResNet-50 and a transformer as large as
 * GPT-2's smallest, on random numbers.
 *
 *   bare-models [--small] [--seconds S] [ROW ...]
 *
 * prints one JSON object per row, named NET.DTYPE or NET.DTYPE.static: median time of an
 * update, samples a second, the highest use of memory, first and last loss, and the weights'
 * hash after the first updates, which recording must not change.  tf32: numbers of float32,
 * products on tensor cores; bf16: parameters and activations, with copies in float32 for the
 * optimizer.
 *
 * SPDX-License-Identifier: MIT */
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum
{
  WARM_UP = 4,
  MAX_LAYERS = 12,
  MAX_SAMPLES = 40
};

typedef struct
{
  TdLink *norm[2], *qkv, *join, *wide, *narrow;
} Block;

/* What a net has: images, or places of a text. */
typedef struct
{
  bool small;
  TdDtype dtype;
  TdLink *root;
  TdOpt *opt;
  TdStatic *chain; /* NULL: define-by-run */
  TdVar *x, *t;
  int64_t batch, side, classes;                  /* of images */
  int64_t words, places, width, heads, n_blocks; /* of a text */
  TdLink *word, *place, *last;
  TdVar *ids;
  Block block[MAX_LAYERS];
} Net;

/* n whole numbers below `limit`. */
static TdVar *
numbers (TdShape shape, int64_t limit)
{
  TdVar *x = td_mul_scalar (td_rand (TD_F32, shape), (double)limit);

  return td_retain (td_cast (td_clip (x, 0, (double)(limit - 1)), TD_I32));
}

/* --- ResNet-50 --- */

static void
resnet50_make (Net *n)
{
  n->batch = n->small ? 2 : 256;
  n->side = n->small ? 32 : 224;
  n->classes = 1000;
  n->root = td_chain_new ("net");
  TD_USING (dtype, (int)n->dtype)
    td_resnet50_layers_new (n->root, "resnet50", .layer = "fc6");
  n->x = td_retain (
      td_cast (td_randn (TD_F32, TD_SHAPE (n->batch, 3, n->side, n->side)), n->dtype));
  n->t = numbers (TD_SHAPE (n->batch), n->classes);
  n->opt = td_momentum_sgd_new (n->root, .lr = 1e-3);
}

static TdVar *
resnet50_loss (Net *n, TdVar *x, TdVar *t)
{
  TdVar *y = td_link (td_link_child (n->root, "resnet50"), x);

  return td_softmax_cross_entropy (td_cast (y, TD_F32), t);
}

/* --- GPT-2 --- */

static void
gpt2_make (Net *n)
{
  const TdInit small = td_init_normal (0.02);
  const int64_t w = n->small ? 32 : 768;
  int32_t place[1024];

  n->batch = n->small ? 2 : 8;
  n->places = n->small ? 16 : 1024;
  n->words = n->small ? 100 : 50257;
  n->width = w;
  n->heads = n->small ? 2 : 12;
  n->n_blocks = n->small ? 2 : 12;
  n->root = td_chain_new ("gpt2");
  TD_USING (dtype, (int)n->dtype)
    {
      n->word = td_embed_id_new (n->root, "word", n->words, w, .initialW = small);
      n->place = td_embed_id_new (n->root, "place", n->places, w, .initialW = small);
      for (int64_t i = 0; i < n->n_blocks; i++)
        {
          Block *b = &n->block[i];
          char name[16];
          TdLink *chain;

          snprintf (name, sizeof name, "block%d", (int)i);
          chain = td_chain_new_in (n->root, name);
          b->norm[0] = td_layer_normalization_new (chain, "norm0", w);
          b->qkv = td_linear_new (chain, "qkv", w, 3 * w, .initialW = small);
          b->join = td_linear_new (chain, "join", w, w, .initialW = small);
          b->norm[1] = td_layer_normalization_new (chain, "norm1", w);
          b->wide = td_linear_new (chain, "wide", w, 4 * w, .initialW = small);
          b->narrow = td_linear_new (chain, "narrow", 4 * w, w, .initialW = small);
        }
      n->last = td_layer_normalization_new (n->root, "last", w);
    }
  for (int i = 0; i < n->places; i++)
    place[i] = i;
  n->ids = td_retain (td_tensor (TD_I32, TD_SHAPE (n->places), place));
  n->x = numbers (TD_SHAPE (n->batch, n->places), n->words);
  n->t = numbers (TD_SHAPE (n->batch * n->places), n->words);
  n->opt = td_adam_new (n->root, .lr = 1e-4);
}

/* Each place sees itself and those before it. */
static TdVar *
attention (Net *n, Block *b, TdVar *x)
{
  static const int heads_first[] = { 2, 0, 3, 1, 4 }, places_first[] = { 0, 2, 1, 3 };
  const int64_t d = n->width / n->heads;
  TdVar *y = td_reshape (td_link (b->qkv, x), TD_SHAPE (n->batch, n->places, 3, n->heads, d));
  TdVar *part[3];

  y = td_reshape (td_transpose (y, heads_first),
                  TD_SHAPE (3 * n->batch * n->heads, n->places, d));
  td_split_axis (y, 3, 0, part);
  y = td_scaled_dot_product_attention (part[0], part[1], part[2], .causal = true);
  y = td_transpose (td_reshape (y, TD_SHAPE (n->batch, n->heads, n->places, d)), places_first);
  return td_link (b->join, td_reshape (y, TD_SHAPE (n->batch * n->places, n->width)));
}

/* The last product is by the words' own vectors. */
static TdVar *
gpt2_loss (Net *n, TdVar *x, TdVar *t)
{
  TdVar *h = td_add (td_link (n->word, x), td_link (n->place, n->ids));

  h = td_reshape (h, TD_SHAPE (n->batch * n->places, n->width));
  for (int64_t i = 0; i < n->n_blocks; i++)
    {
      Block *b = &n->block[i];

      h = td_add (h, attention (n, b, td_link (b->norm[0], h)));
      h = td_add (h, td_link (b->narrow, td_gelu (td_link (b->wide, td_link (b->norm[1], h)))));
    }
  h = td_matmul (td_link (n->last, h), td_link_param (n->word, "W"), false, true);
  return td_softmax_cross_entropy (td_cast (h, TD_F32), t);
}

/* --- rows --- */

typedef struct
{
  const char *name;
  void (*make) (Net *n);
  TdVar *(*loss) (Net *n, TdVar *x, TdVar *t);
} Kind;
static const Kind kinds[]
    = { { "resnet50", resnet50_make, resnet50_loss }, { "gpt2", gpt2_make, gpt2_loss } };
static const TdDtype dtypes[] = { TD_BF16, TD_F32 };

typedef struct
{
  Net net;
  const Kind *kind;
} Training;

static void
chain_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Training *t = self;

  (void)n_in;
  (void)n_out;
  out[0] = t->kind->loss (&t->net, in[0], in[1]);
}

/* Returns the loss where it is asked for. */
static double
update (Training *t, int i, bool look)
{
  Net *n = &t->net;
  double loss = 0;

  TD_ITERATION (i)
    {
      TdVar *in[] = { n->x, n->t }, *y;

      td_cleargrads (n->root);
      if (n->chain != NULL)
        td_static_call (n->chain, in, 2, &y, 1);
      else
        y = t->kind->loss (n, n->x, n->t);
      td_backward (y, 0);
      td_opt_update (n->opt);
      if (look && td_error () == NULL)
        loss = td_item (y);
    }
  return loss;
}

static void
print_row (const char *name, Training *t, double us, int updates, unsigned long long hash,
           const double loss[2])
{
  TdMemInfo info = td_mem_info (td_device (t->net.x));
  const int64_t samples = t->net.batch;

  printf ("{\"row\": \"model.%s\", \"us\": %.6g, \"samples_per_s\": %.5g, \"batch\": %d, "
          "\"dtype\": \"%s\", \"parameters\": %lld, \"updates\": %d, \"weights\": \"%016llx\", "
          "\"peak_bytes\": %zu, \"reserved_bytes\": %zu, \"first_loss\": %.6g, \"last_loss\": "
          "%.6g, \"finite\": %s",
          name, us, (double)samples / us * 1e6, (int)samples, td_dtype_name (t->net.dtype),
          (long long)td_link_count_params (t->net.root), updates, hash, (size_t)info.peak_bytes,
          (size_t)info.reserved_bytes, loss[0], loss[1],
          isfinite (loss[0]) && isfinite (loss[1]) ? "true" : "false");
  if (t->net.chain != NULL)
    {
      const TdStaticInfo s = td_static_info (t->net.chain);

      printf (", \"replays\": %llu, \"graph_launches\": %llu", (unsigned long long)s.n_replays,
              (unsigned long long)s.n_graph_launches);
    }
  printf ("}\n");
}

static void
train (const MeasureOptions *o, const char *name, Training *t)
{
  TdDevice *d = td_device (t->net.x);
  double samples[MAX_SAMPLES], loss[2];
  unsigned long long hash;
  int n = 0, i = 0;

  loss[0] = update (t, i++, true);
  while (i < (o->small ? 2 : WARM_UP) && td_error () == NULL)
    update (t, i++, false);
  hash = td_error () == NULL ? measure_params_hash (t->net.root) : 0;
  for (double end = measure_now () + 8 * o->seconds;
       td_error () == NULL && (n < 3 || (measure_now () < end && n < MAX_SAMPLES)); n++)
    {
      double start;

      td_device_synchronize (d);
      start = measure_now ();
      update (t, i++, false);
      td_device_synchronize (d);
      samples[n] = measure_now () - start;
    }
  loss[1] = update (t, i++, true);
  if (td_error () == NULL)
    print_row (name, t, measure_median (samples, n) * 1e6, i, hash, loss);
  else
    printf ("{\"row\": \"model.%s\", \"error\": \"%.300s\"}\n", name, td_error ()->message);
  fflush (stdout);
  td_error_clear ();
}

static void
run (const MeasureOptions *o, const char *name, const Kind *kind, TdDtype dtype, bool is_static)
{
  static Training t;
  TdDevice *d = td_device (td_zeros (TD_F32, TD_SHAPE (1)));

  t = (Training){ .net = { .small = o->small, .dtype = dtype }, .kind = kind };
  td_set_seed (7);
  TD_USING (tf32, dtype == TD_F32)
    {
      TD_SCOPE ("make")
        kind->make (&t.net);
      if (dtype != TD_F32)
        td_opt_use_fp32_update (t.net.opt, true);
      if (is_static)
        t.net.chain = td_static_new (chain_code, &t);
      train (o, name, &t);
      if (is_static)
        td_static_free (t.net.chain);
    }
  td_release (t.net.x);
  td_release (t.net.t);
  if (t.net.ids != NULL)
    td_release (t.net.ids);
  td_opt_free (t.net.opt);
  td_link_free (t.net.root);
  td_pool_trim (d);
}

int
main (int argc, char **argv)
{
  MeasureOptions o;
  char name[64];

  td_init (&argc, &argv);
  o = measure_options (argc, argv);
  for (size_t dtype = 0; dtype < sizeof dtypes / sizeof dtypes[0]; dtype++)
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
      for (int is_static = 0; is_static < 2; is_static++)
        {
          snprintf (name, sizeof name, "%s.%s%s", kinds[i].name,
                    dtypes[dtype] == TD_F32 ? "tf32" : "bf16", is_static ? ".static" : "");
          if (measure_wanted (&o, name))
            run (&o, name, &kinds[i], dtypes[dtype], is_static);
        }
  return measure_end ();
}
