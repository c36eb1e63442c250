/* Times of single operations on a device, beside the bytes or the arithmetic that each cannot
 * do without: the ceilings of the machine first, then the table of kernels.
 *
 *   bare-times [--small] [--seconds S] [ROW ...]
 *
 * prints one JSON object per row: row, us, and bytes or flops, with the goal as a fraction of
 * what the ceilings say.  The device is the engine's default one.
 *
 * SPDX-License-Identifier: MIT */
#include "measure.h"

#include "compute/core/core.h"
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MANY = 100 /* parameters of the optimizers' rows */
};

/* What a row works on; a row takes what it needs. */
typedef struct Rig
{
  TdDevice *d;
  bool small;
  int64_t n;            /* elements of the large arrays */
  TdVar *x, *y, *a, *b; /* inputs, by the row's own prepare */
  TdVar *out, *slope;   /* of the rows that only go backward */
  TdLink *link;
  TdOpt *opt;
  struct TdBlock *block[2];
} Rig;

typedef struct Row
{
  const char *name;
  double bytes;        /* for each element of n; of all, where elements is 0 */
  double goal;         /* fraction of the ceiling */
  const char *ceiling; /* of what: the row that measures it */
  int64_t m, k, n;     /* of a product; k: elements of others */
  void (*prepare) (Rig *r, const struct Row *row);
  void (*run) (void *rig);
  int dtype;
  double torch_goal; /* PyTorch's time over ours, at least; 0: no goal */
  double most_us;    /* 0: no goal */
} Row;

static int64_t
rows_of (const Rig *r, int64_t width)
{
  return r->n / width;
}

static TdVar *
random_array (TdShape shape)
{
  return td_retain (td_randn (TD_F32, shape));
}

/* The same as the row wants it stored. */
static TdVar *
array_of (const Row *row, TdShape shape)
{
  return td_retain (td_cast (td_randn (TD_F32, shape), (TdDtype)row->dtype));
}

/* --- what is prepared --- */

static void
prepare_flat (Rig *r, const Row *row)
{
  r->x = random_array (TD_SHAPE (r->n));
  r->y = random_array (TD_SHAPE (r->n));
  if (row->dtype != 0)
    r->y = td_retain (td_cast (r->x, (TdDtype)row->dtype));
}

static void
prepare_rows (Rig *r, const Row *row)
{
  const int64_t width = row->k;

  r->x = td_variable (array_of (row, TD_SHAPE (rows_of (r, width), width)), "x");
  r->a = td_variable (array_of (row, TD_SHAPE (width)), "a");
  r->b = td_variable (array_of (row, TD_SHAPE (width)), "b");
  r->y = random_array (TD_SHAPE (rows_of (r, width), 1));
}

static void
prepare_labels (Rig *r, const Row *row)
{
  const int64_t n = rows_of (r, row->k);

  prepare_rows (r, row);
  r->y = td_retain (
      td_cast (td_mul_scalar (td_rand (TD_F32, TD_SHAPE (n)), (double)row->k), TD_I32));
}

static void
prepare_images (Rig *r, const Row *row)
{
  const int64_t channels = r->small ? 4 : 64, side = r->small ? 8 : 64;

  r->x = td_variable (
      array_of (row, TD_SHAPE (r->n / (channels * side * side), channels, side, side)), "x");
  r->a = td_variable (random_array (TD_SHAPE (channels)), "a");
  r->b = td_variable (random_array (TD_SHAPE (channels)), "b");
}

static void
prepare_products (Rig *r, const Row *row)
{
  const int64_t m = r->small ? 16 : row->m, k = r->small ? 16 : row->k,
                n = r->small ? 16 : row->n;

  r->x = td_retain (td_cast (random_array (TD_SHAPE (m, k)), (TdDtype)row->dtype));
  r->y = td_retain (td_cast (random_array (TD_SHAPE (k, n)), (TdDtype)row->dtype));
}

/* As in GPT-2's smallest: 8 texts, 12 heads of 64. */
static void
prepare_attention (Rig *r, const Row *row)
{
  const TdShape shape = r->small ? TD_SHAPE (4, 8, 4) : TD_SHAPE (96, 1024, 64);
  TdVar **in[] = { &r->x, &r->a, &r->b };

  for (int i = 0; i < TD_ARRAY_LENGTH (in); i++)
    *in[i] = td_retain (td_cast (random_array (shape), (TdDtype)row->dtype));
}

static void
run_attention (void *rig)
{
  Rig *r = rig;

  td_scaled_dot_product_attention (r->x, r->a, r->b, .causal = true);
}

static void
prepare_attention_grad (Rig *r, const Row *row)
{
  prepare_attention (r, row);
  td_variable (r->x, "q");
  td_variable (r->a, "k");
  td_variable (r->b, "v");
  r->out = td_retain (td_scaled_dot_product_attention (r->x, r->a, r->b, .causal = true));
  r->slope = td_retain (td_cast (random_array (td_shape (r->out)), (TdDtype)row->dtype));
}

static void
prepare_optimizer (Rig *r, const Row *row)
{
  const int64_t size = row->k > 0 ? (r->small ? 64 : row->k) : r->n / MANY;
  const int n = row->k > 0 ? 160 : MANY;
  char name[16];

  r->link = td_chain_new ("many");
  for (int i = 0; i < n; i++)
    {
      snprintf (name, sizeof name, "p%d", i);
      td_link_add_param (r->link, name, TD_SHAPE (size));
    }
  r->opt = row->m == 0 ? td_momentum_sgd_new (r->link) : td_adam_new (r->link);
}

/* The norm of all gradients reads them once, clipping reads and writes them. */
static void
prepare_clipped (Rig *r, const Row *row)
{
  prepare_optimizer (r, row);
  td_opt_add_hook (r->opt, td_gradient_clipping_new (1.0));
}

/* What only goes backward has gone forward here. */
static void
go_forward (Rig *r, TdVar *y)
{
  r->out = td_retain (y);
  r->slope = td_retain (td_cast (td_randn (TD_F32, td_shape (y)), td_dtype (y)));
}

/* --- rows --- */

static void
run_copy (void *rig)
{
  Rig *r = rig;

  r->d->ops->copy (r->d, r->block[0]->address, r->block[1]->address, (size_t)r->n * 4);
}

static void
prepare_copy (Rig *r, const Row *row)
{
  for (int i = 0; i < 2; i++)
    r->block[i] = td__pool_take (r->d->pool, (size_t)r->n * 4, TD_MEM_WORKSPACE);
}

static void
prepare_one (Rig *r, const Row *row)
{
  r->x = random_array (TD_SHAPE (1));
}

static void
run_relu (void *rig)
{
  td_relu (((Rig *)rig)->x);
}

/* One launch and the wait for it. */
static void
run_relu_and_wait (void *rig)
{
  Rig *r = rig;

  td_relu (r->x);
  td_device_synchronize (r->d);
}

static void
run_exp (void *rig)
{
  td_exp (((Rig *)rig)->x);
}

static void
run_add (void *rig)
{
  td_add (((Rig *)rig)->x, ((Rig *)rig)->y);
}

static void
run_add_row (void *rig)
{
  td_add (((Rig *)rig)->x, ((Rig *)rig)->a);
}

static void
run_transpose (void *rig)
{
  td_transpose (((Rig *)rig)->x, NULL);
}

static void
run_to_nhwc (void *rig)
{
  static const int axes[] = { 0, 2, 3, 1 };

  td_transpose (((Rig *)rig)->x, axes);
}

static void
run_sum (void *rig)
{
  td_sum (((Rig *)rig)->x);
}

static void
run_max (void *rig)
{
  td_max (((Rig *)rig)->x);
}

static void
run_sum_rows (void *rig)
{
  static const int axis = 1;

  td_sum_axes (((Rig *)rig)->x, &axis, 1, false);
}

static void
run_sum_columns (void *rig)
{
  static const int axis = 0;

  td_sum_axes (((Rig *)rig)->x, &axis, 1, false);
}

static void
run_softmax (void *rig)
{
  td_softmax (((Rig *)rig)->x);
}

static void
run_cross_entropy (void *rig)
{
  Rig *r = rig;

  td_cleargrad (r->x);
  td_backward (td_softmax_cross_entropy (r->x, r->y), 0);
  td_cleargrad (r->x);
}

static void
run_layer_norm (void *rig)
{
  Rig *r = rig;

  td_layer_normalization (r->x, r->a, r->b);
}

static void
run_batch_norm (void *rig)
{
  Rig *r = rig;

  td_batch_normalization (r->x, r->a, r->b);
}

/* Backward alone; the graph stays. */
static void
run_backward (void *rig)
{
  Rig *r = rig;

  td_cleargrad (r->x);
  if (r->a != NULL)
    {
      td_cleargrad (r->a);
      td_cleargrad (r->b);
    }
  td_set_grad (r->out, r->slope);
  td_backward (r->out, 0);
}

static void
prepare_layer_norm_grad (Rig *r, const Row *row)
{
  prepare_rows (r, row);
  go_forward (r, td_layer_normalization (r->x, r->a, r->b));
}

static void
prepare_batch_norm_grad (Rig *r, const Row *row)
{
  prepare_images (r, row);
  go_forward (r, td_batch_normalization (r->x, r->a, r->b));
}

static void
prepare_pool_grad (Rig *r, const Row *row)
{
  prepare_images (r, row);
  r->a = NULL;
  go_forward (r, td_max_pooling_2d (r->x));
}

static void
prepare_average_grad (Rig *r, const Row *row)
{
  prepare_images (r, row);
  r->a = NULL;
  go_forward (r, td_average_pooling_2d (r->x));
}

static void
run_pool (void *rig)
{
  td_max_pooling_2d (((Rig *)rig)->x);
}

static void
run_average (void *rig)
{
  td_average_pooling_2d (((Rig *)rig)->x);
}

/* A table of 32,768 words; as many looked up as give n elements. */
static void
prepare_embedding (Rig *r, const Row *row)
{
  const int64_t words = r->small ? 64 : 32768, width = row->k;

  r->x = td_variable (array_of (row, TD_SHAPE (words, width)), "W");
  r->y = td_retain (td_cast (
      td_mul_scalar (td_rand (TD_F32, TD_SHAPE (rows_of (r, width))), (double)words), TD_I32));
}

static void
run_embedding (void *rig)
{
  td_embed_id (((Rig *)rig)->y, ((Rig *)rig)->x);
}

static void
prepare_embedding_grad (Rig *r, const Row *row)
{
  prepare_embedding (r, row);
  go_forward (r, td_embed_id (r->y, r->x));
}

static void
run_dropout (void *rig)
{
  td_dropout (((Rig *)rig)->x, 0.5);
}

static void
run_cast (void *rig)
{
  td_cast (((Rig *)rig)->x, TD_BF16);
}

static void
run_cast_back (void *rig)
{
  td_cast (((Rig *)rig)->y, TD_F32);
}

static void
run_stats (void *rig)
{
  Rig *r = rig;
  TdTensor t = { .data = r->block[0]->address, .size = r->n, .dtype = TD_F32 };
  TdShape shape = TD_SHAPE (r->n);
  TdStats s;

  t.shape = &shape;
  r->d->ops->stats (r->d, &t, 0, 1, &s);
}

/* relu and, as a recording asks for them, the statistics of what it wrote: counted by the same
 * kernel, or read apart. */
static void
relu_and_ask (Rig *r, bool apart)
{
  TdShape shape = TD_SHAPE (r->n);
  const TdTensor x = { r->block[0]->address, &shape, r->n, TD_F32 };
  TdTensor y = { r->block[1]->address, &shape, r->n, TD_F32 };
  const TdDeviceOps *ops = r->d->ops;
  const TdAsyncOf of = { 0 };
  TdAsyncResult result[16];

  r->d->stats_apart = apart;
  r->d->stats_wanted = true;
  ops->unary (r->d, TD_UNARY_RELU, 0, 0, &x, &y);
  r->d->stats_wanted = r->d->stats_apart = false;
  if (ops->stats_async (r->d, &y, 4096, 1, &of) != TD_ASYNC_TAKEN)
    while (ops->poll_async (r->d, TD_ASYNC_WAIT, result, TD_ARRAY_LENGTH (result)) > 0)
      ;
  ops->poll_async (r->d, TD_ASYNC_LOOK, result, TD_ARRAY_LENGTH (result));
}

static void
run_relu_with_stats (void *rig)
{
  relu_and_ask (rig, false);
}

static void
run_relu_read (void *rig)
{
  relu_and_ask (rig, true);
}

static void
prepare_stats (Rig *r, const Row *row)
{
  TdShape shape = TD_SHAPE (r->n);
  TdTensor t = { .shape = &shape, .size = r->n, .dtype = TD_F32 };

  prepare_copy (r, row);
  t.data = r->block[0]->address;
  r->d->ops->random (r->d, TD_RANDOM_NORMAL, (TdRngKey){ 0 }, 0, &t);
}

static void
fill_grad (const char *path, TdVar *param, void *user)
{
  (void)path;
  (void)user;
  if (td_grad (param) == NULL)
    td_set_grad (param, td_retain (td_randn (TD_F32, td_shape (param))));
}

static void
run_update (void *rig)
{
  Rig *r = rig;

  td_link_each_param (r->link, fill_grad, NULL);
  td_opt_update (r->opt);
}

static void
run_matmul (void *rig)
{
  td_matmul (((Rig *)rig)->x, ((Rig *)rig)->y, false, false);
}

static void
run_matmul_tf32 (void *rig)
{
  TD_USING (tf32, 1)
    run_matmul (rig);
}

/* --- 50 steps of 32 sequences of 256 numbers, one layer of 256 units --- */

enum
{
  STEPS = 50
};

static struct
{
  TdVar *ws[8], *bs[8], *xs[STEPS], *ys[STEPS];
  int n;
} lstm;

/* Weights and steps are cut from three arrays anew each time, which is part of the time. */
static void
prepare_lstm (Rig *r, const Row *row)
{
  const int64_t units = r->small ? 4 : 256, batch = r->small ? 2 : 32;

  (void)row;
  lstm.n = r->small ? 3 : STEPS;
  r->x = td_variable (random_array (TD_SHAPE (lstm.n * batch, units)), "x");
  r->a = td_variable (random_array (TD_SHAPE (8 * units, units)), "W");
  r->b = td_variable (random_array (TD_SHAPE (8 * units)), "b");
  r->slope = random_array (TD_SHAPE (lstm.n * batch, units));
}

static void
go_through_lstm (Rig *r, bool back)
{
  td_split_axis (r->a, 8, 0, lstm.ws);
  td_split_axis (r->b, 8, 0, lstm.bs);
  td_split_axis (r->x, lstm.n, 0, lstm.xs);
  td_n_step_lstm (1, 0, NULL, NULL, lstm.ws, lstm.bs, lstm.xs, lstm.n, NULL, NULL, lstm.ys);
  if (!back)
    return;
  td_cleargrad (r->x);
  td_cleargrad (r->a);
  td_cleargrad (r->b);
  td_backward (td_sum (td_mul (td_concat (lstm.ys, lstm.n, 0), r->slope)), 0);
}

static void
run_lstm (void *rig)
{
  TD_NO_BACKPROP
    go_through_lstm (rig, false);
}

static void
run_lstm_grad (void *rig)
{
  go_through_lstm (rig, true);
}

static void
run_lstm_composed (void *rig)
{
  TD_USING (use_cudnn, 0)
    run_lstm (rig);
}

static void
run_lstm_grad_composed (void *rig)
{
  TD_USING (use_cudnn, 0)
    run_lstm_grad (rig);
}

/* clang-format off */
static const Row rows[] = {
  /* ceilings */
  { "ceiling.copy", 8, 0, "", 0, 0, 0, prepare_copy, run_copy, 0 },
  { "ceiling.launch", 0, 0, "", 0, 0, 0, prepare_one, run_relu, 0 },
  { "ceiling.launch_and_wait", 0, 0, "", 0, 0, 0, prepare_one, run_relu_and_wait, 0 },
  { "ceiling.gemm_f32", 0, 0, "", 8192, 8192, 8192, prepare_products, run_matmul, TD_F32, 0.97 },
  { "ceiling.gemm_tf32", 0, 0, "", 8192, 8192, 8192, prepare_products, run_matmul_tf32, TD_F32, 0.97 },
  { "ceiling.gemm_bf16", 0, 0, "", 8192, 8192, 8192, prepare_products, run_matmul, TD_BF16, 0.97 },
  /* kernels: bytes for each element, goal */
  { "relu", 8, 0.85, "copy", 0, 0, 0, prepare_flat, run_relu, 0 },
  { "exp", 8, 0.85, "copy", 0, 0, 0, prepare_flat, run_exp, 0 },
  { "add", 12, 0.85, "copy", 0, 0, 0, prepare_flat, run_add, 0 },
  { "add_row", 8, 0.80, "copy", 0, 1024, 0, prepare_rows, run_add_row, 0 },
  { "add_column", 8, 0.80, "copy", 0, 1024, 0, prepare_rows, run_add, 0 },
  { "transpose", 8, 0.80, "copy", 0, 1024, 0, prepare_rows, run_transpose, 0 },
  { "nchw_to_nhwc", 8, 0.80, "copy", 0, 0, 0, prepare_images, run_to_nhwc, 0 },
  { "sum", 4, 0.85, "copy", 0, 0, 0, prepare_flat, run_sum, 0 },
  { "max", 4, 0.85, "copy", 0, 0, 0, prepare_flat, run_max, 0 },
  { "sum_rows", 4, 0.80, "copy", 0, 1024, 0, prepare_rows, run_sum_rows, 0 },
  { "sum_columns", 4, 0.80, "copy", 0, 1024, 0, prepare_rows, run_sum_columns, 0 },
  { "softmax", 8, 0.80, "copy", 0, 8192, 0, prepare_rows, run_softmax, 0 },
  { "softmax_cross_entropy", 8, 0.75, "copy", 0, 8192, 0, prepare_labels, run_cross_entropy, 0 },
  { "softmax_bf16", 4, 0.80, "copy", 0, 8192, 0, prepare_rows, run_softmax, TD_BF16 },
  { "softmax_cross_entropy_bf16", 4, 0.75, "copy", 0, 8192, 0, prepare_labels, run_cross_entropy, TD_BF16 },
  { "layer_norm", 8, 0.80, "copy", 0, 1024, 0, prepare_rows, run_layer_norm, 0 },
  { "layer_norm_grad", 12, 0.70, "copy", 0, 1024, 0, prepare_layer_norm_grad, run_backward, 0 },
  { "layer_norm_bf16", 4, 0.80, "copy", 0, 1024, 0, prepare_rows, run_layer_norm, TD_BF16 },
  { "layer_norm_grad_bf16", 6, 0.70, "copy", 0, 1024, 0, prepare_layer_norm_grad, run_backward, TD_BF16 },
  { "batch_norm", 12, 0.70, "copy", 0, 0, 0, prepare_images, run_batch_norm, 0 },
  { "batch_norm_grad", 20, 0.70, "copy", 0, 0, 0, prepare_batch_norm_grad, run_backward, 0 },
  { "batch_norm_bf16", 6, 0.70, "copy", 0, 0, 0, prepare_images, run_batch_norm, TD_BF16 },
  { "batch_norm_grad_bf16", 10, 0.70, "copy", 0, 0, 0, prepare_batch_norm_grad, run_backward, TD_BF16 },
  { "embedding", 8, 0.80, "copy", 0, 1024, 0, prepare_embedding, run_embedding, 0 },
  { "embedding_grad", 8, 0.60, "copy", 0, 1024, 0, prepare_embedding_grad, run_backward, 0 },
  { "embedding_bf16", 4, 0.80, "copy", 0, 1024, 0, prepare_embedding, run_embedding, TD_BF16 },
  { "embedding_grad_bf16", 4, 0.60, "copy", 0, 1024, 0, prepare_embedding_grad, run_backward, TD_BF16 },
  { "dropout", 8, 0.85, "copy", 0, 0, 0, prepare_flat, run_dropout, 0 },
  { "max_pool", 5, 0.75, "copy", 0, 0, 0, prepare_images, run_pool, 0 },
  { "max_pool_grad", 5, 0.75, "copy", 0, 0, 0, prepare_pool_grad, run_backward, 0 },
  { "average_pool", 5, 0.75, "copy", 0, 0, 0, prepare_images, run_average, 0 },
  { "average_pool_grad", 5, 0.75, "copy", 0, 0, 0, prepare_average_grad, run_backward, 0 },
  { "max_pool_bf16", 2.5, 0.75, "copy", 0, 0, 0, prepare_images, run_pool, TD_BF16 },
  { "max_pool_grad_bf16", 2.5, 0.75, "copy", 0, 0, 0, prepare_pool_grad, run_backward, TD_BF16 },
  { "average_pool_bf16", 2.5, 0.75, "copy", 0, 0, 0, prepare_images, run_average, TD_BF16 },
  { "average_pool_grad_bf16", 2.5, 0.75, "copy", 0, 0, 0, prepare_average_grad, run_backward, TD_BF16 },
  { "momentum_sgd", 20, 0.85, "copy", 0, 0, 0, prepare_optimizer, run_update, 0 },
  { "momentum_sgd_clipped", 32, 0.80, "copy", 0, 0, 0, prepare_clipped, run_update, 0 },
  { "adam", 28, 0.85, "copy", 1, 0, 0, prepare_optimizer, run_update, 0 },
  { "adam_160_small", 0, 0, "", 1, 1024, 0, prepare_optimizer, run_update, 0, 0, 60 },
  { "stats", 4, 0.80, "copy", 0, 0, 0, prepare_stats, run_stats, 0 },
  { "relu_with_stats", 8, 0, "copy", 0, 0, 0, prepare_stats, run_relu_with_stats, 0 },
  { "relu_read_apart", 12, 0, "copy", 0, 0, 0, prepare_stats, run_relu_read, 0 },
  { "cast_to_bf16", 6, 0.85, "copy", 0, 0, 0, prepare_flat, run_cast, 0 },
  { "cast_from_bf16", 6, 0.85, "copy", 0, 0, 0, prepare_flat, run_cast_back, TD_BF16 },
  { "attention_f32", 0, 0, "", 0, 0, 0, prepare_attention, run_attention, TD_F32 },
  { "attention_bf16", 0, 0, "", 0, 0, 0, prepare_attention, run_attention, TD_BF16 },
  { "attention_grad_f32", 0, 0, "", 0, 0, 0, prepare_attention_grad, run_backward, TD_F32 },
  { "attention_grad_bf16", 0, 0, "", 0, 0, 0, prepare_attention_grad, run_backward, TD_BF16 },
  { "gemm_f32_1024", 0, 0, "", 1024, 1024, 1024, prepare_products, run_matmul, TD_F32, 0.95 },
  { "gemm_f32_4096_1024_4096", 0, 0, "", 4096, 1024, 4096, prepare_products, run_matmul, TD_F32, 0.95 },
  { "gemm_bf16_1024", 0, 0, "", 1024, 1024, 1024, prepare_products, run_matmul, TD_BF16, 0.95 },
  { "gemm_bf16_4096_1024_4096", 0, 0, "", 4096, 1024, 4096, prepare_products, run_matmul, TD_BF16, 0.95 },
  { "gemm_f32_64", 0, 0, "", 64, 64, 64, prepare_products, run_matmul, TD_F32, 2 },
  { "gemm_tf32_1024", 0, 0, "", 1024, 1024, 1024, prepare_products, run_matmul_tf32, TD_F32, 0.97 },
  { "gemm_tf32_4096_1024_4096", 0, 0, "", 4096, 1024, 4096, prepare_products, run_matmul_tf32, TD_F32, 0.97 },
  { "gemm_f32_128", 0, 0, "", 128, 128, 128, prepare_products, run_matmul, TD_F32, 2 },
  { "gemm_f32_256", 0, 0, "", 256, 256, 256, prepare_products, run_matmul, TD_F32, 2 },
  { "lstm_50", 0, 0, "", 0, 0, 0, prepare_lstm, run_lstm, 0 },
  { "lstm_composed_50", 0, 0, "", 0, 0, 0, prepare_lstm, run_lstm_composed, 0 },
  { "lstm_grad_50", 0, 0, "", 0, 0, 0, prepare_lstm, run_lstm_grad, 0 },
  { "lstm_grad_composed_50", 0, 0, "", 0, 0, 0, prepare_lstm, run_lstm_grad_composed, 0 },
};
/* clang-format on */

/* What the row did, in numbers that a ceiling can be held against. */
static void
print_row (const Rig *r, const Row *row, double us)
{
  printf ("{\"row\": \"%s\", \"us\": %.6g", row->name, us);
  if (row->bytes > 0)
    printf (", \"bytes\": %.0f, \"goal\": %g", row->bytes * (double)r->n, row->goal);
  if (row->prepare == prepare_products && !r->small)
    printf (", \"flops\": %.0f", 2.0 * (double)row->m * (double)row->k * (double)row->n);
  if (row->torch_goal > 0)
    printf (", \"torch_goal\": %g", row->torch_goal);
  if (row->most_us > 0)
    printf (", \"most_us\": %g", row->most_us);
  printf (", \"algorithm\": \"%s\"}\n", r->d->algorithm != NULL ? r->d->algorithm : "");
  fflush (stdout);
}

static void
forget (Rig *r)
{
  TdVar *held[] = { r->x, r->y, r->a, r->b, r->out, r->slope };

  for (int i = 0; i < TD_ARRAY_LENGTH (held); i++)
    if (held[i] != NULL)
      td_release (held[i]);
  for (int i = 0; i < 2; i++)
    if (r->block[i] != NULL)
      td__pool_release (r->block[i]);
  if (r->opt != NULL)
    td_opt_free (r->opt);
  if (r->link != NULL)
    td_link_free (r->link);
}

static void
measure (const MeasureOptions *o, const Row *row)
{
  Rig r = { .d = td_device (td_zeros (TD_F32, TD_SHAPE (1))), .small = o->small };
  double us;

  r.n = o->small ? 1 << 13 : 64 << 20; /* 256 MiB of float32 */
  r.d->algorithm = NULL;
  row->prepare (&r, row);
  us = measure_call (o, r.d, row->run, &r);
  if (td_error () == NULL)
    print_row (&r, row, us);
  else
    {
      printf ("{\"row\": \"%s\", \"error\": \"%s\"}\n", row->name, td_error ()->message);
      td_error_clear ();
    }
  forget (&r);
  td_pool_trim (r.d);
}

int
main (int argc, char **argv)
{
  MeasureOptions o;

  td_init (&argc, &argv);
  o = measure_options (argc, argv);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (measure_wanted (&o, rows[i].name)
        && !(o.small && rows[i].dtype == TD_BF16
             && rows[i].run != run_cast_back)) /* the CPU's kernels, behind the fake driver,
                                                  know few things in bf16 */
      TD_SCOPE ("row")
        measure (&o, &rows[i]);
  return measure_end ();
}
