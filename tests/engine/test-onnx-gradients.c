/* Graphs of gradients as ONNX models: a penalty on a critic's gradient, and the first step of a
 * language model's block, computed by others as by the engine.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "onnx-run.h"
#include "tapedeck-op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MOST = 64, /* outputs of a model */
  WORDS = 11,
  LENGTH = 5,
  HEADS = 2,
  UNITS = 12
};

/* The last line that td_save_onnx said of a size that stays, and how many. */
static char stays[320];
static int n_stay;

static void
hear (const char *line, void *user)
{
  (void)user;
  snprintf (stays, sizeof stays, "%s", line);
  n_stay++;
}

/* What a link's parameters are, as a list. */
typedef struct
{
  TdVar *of[MOST];
  int n;
} Params;

static void
take_param (const char *path, TdVar *param, void *user)
{
  Params *p = user;

  (void)path;
  assert_true (p->n < MOST);
  p->of[p->n++] = param;
}

static Params
params_of (TdLink *link)
{
  Params p = { .n = 0 };

  td_link_each_param (link, take_param, &p);
  return p;
}

/* --- a critic, and how steep it is: onnx's reference does not know groups of ConvTranspose ---
 */

typedef struct
{
  TdLink *root, *conv, *grouped, *norm, *last;
} Critic;

static Critic
critic_new (void)
{
  Critic c = { .root = td_chain_new ("critic") };

  c.conv = td_convolution_2d_new (c.root, "conv", 1, 4, 3, .stride = { 2, 2 }, .pad = { 1, 1 });
  c.grouped = td_convolution_2d_new (c.root, "grouped", 4, 4, 3, .pad = { 1, 1 }, .groups = 2);
  c.norm = td_layer_normalization_new (c.root, "norm", 4 * 4 * 4);
  c.last = td_linear_new (c.root, "last", 4 * 4 * 4, 1);
  fill_params (c.root, 5);
  return c;
}

static TdVar *
critic_call (const Critic *c, TdVar *x)
{
  TdVar *h = td_leaky_relu (td_link (c->conv, x));

  h = td_average_pooling_2d (td_leaky_relu (td_link (c->grouped, h)), .ksize = { 3, 3 },
                             .stride = { 1, 1 }, .pad = { 1, 1 });
  h = td_link (c->norm, td_reshape (h, TD_SHAPE (td_shape (x).dim[0], -1)));
  return td_link (c->last, td_leaky_relu (h));
}

/* The mean of (|d score / d x| - 1)^2; with `sum`, their sum. */
static TdVar *
penalty_of (const Critic *c, TdVar *x, bool sum)
{
  static const int image[] = { 1, 2, 3 };
  TdVar *score = td_sum (critic_call (c, x)), *gx = NULL, *apart;

  assert_int_equal (td_grad_of (&score, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &gx), TD_OK);
  apart = td_add_scalar (td_sqrt (td_sum_axes (td_square (gx), image, 3, false)), -1);
  return sum ? td_sum (td_square (apart)) : td_mean (td_square (apart));
}

static TdVar *
pictures (int64_t n)
{
  TdVar *x = td_variable (td_zeros (TD_F32, TD_SHAPE (n, 1, 8, 8)), NULL);

  fill (x, (unsigned)n);
  return x;
}

/* The penalty and its gradients for the parameters that it depends on: all but the last
 * layers' additions. */
static int
critic_step (const Critic *c, TdVar *x, bool sum, TdVar **out)
{
  const Params p = params_of (c->root);
  TdVar *gradients[MOST] = { NULL };
  int n = 1;

  out[0] = penalty_of (c, x, sum);
  assert_int_equal (td_grad_of (out, 1, p.of, p.n, NULL, TD_DOUBLE_BACKPROP, gradients), TD_OK);
  for (int i = 0; i < p.n; i++)
    if (gradients[i] != NULL)
      out[n++] = gradients[i];
  return n;
}

static void
gradients__of_a_penalty_follow_the_batch (void **state)
{
  static const int64_t batches[] = { 5, 1, 3, 7 };
  Critic c;
  char *said;

  (void)state;
  td_test_python ("onnxruntime");
  c = critic_new ();
  n_stay = 0;
  for (int k = 0; k < 4; k++)
    TD_SCOPE ("step")
      TD_USING (keep_graph, true)
        {
          TdVar *x = pictures (batches[k]), *out[MOST] = { NULL };
          const int n = critic_step (&c, x, true, out);

          assert_int_equal (n, 7);
          if (k == 0)
            assert_int_equal (td_save_onnx (out, (size_t)n, td_test_tmp ("steep.onnx"),
                                            .in = &x, .n_in = 1, .fixed = hear),
                              TD_OK);
          keep_case ("steep.onnx", k, &x, 1, out, n);
        }
  if (n_stay > 0)
    fail_msg ("%s", stays);
  said = run_onnx ("steep.onnx", false);
  assert_non_null (strstr (said, "4 runs\ninput0(batch,1,8,8) -> output0() "));
  free (said);
  td_link_free (c.root);
}

/* A mean's gradient has the number of elements: the file says that its batch stays. */
static void
gradients__of_a_mean_keep_the_batch (void **state)
{
  Critic c;
  char *said;

  (void)state;
  td_test_python ("onnxruntime");
  c = critic_new ();
  n_stay = 0;
  TD_SCOPE ("step")
    TD_USING (keep_graph, true)
      {
        TdVar *x = pictures (5), *out[MOST] = { NULL };
        const int n = critic_step (&c, x, false, out);

        assert_int_equal (td_save_onnx (out, (size_t)n, td_test_tmp ("mean.onnx"), .in = &x,
                                        .n_in = 1, .fixed = hear),
                          TD_OK);
        keep_case ("mean.onnx", 0, &x, 1, out, n);
      }
  assert_int_equal (n_stay, 1);
  if (strncmp (stays, "batch stays 5: div_scalar at ", 29) != 0)
    fail_msg ("%s", stays);
  said = run_onnx ("mean.onnx", false);
  assert_non_null (strstr (said, "1 runs\ninput0(5,1,8,8) -> "));
  free (said);
  td_link_free (c.root);
}

/* --- a block of a language model --- */

typedef struct
{
  TdLink *root, *embed, *norm, *qkv, *to, *norm2, *up, *down, *last;
} Block;

static Block
block_new (void)
{
  Block b = { .root = td_chain_new ("block") };

  b.embed = td_embed_id_new (b.root, "embed", WORDS, UNITS);
  b.norm = td_layer_normalization_new (b.root, "norm", UNITS);
  b.qkv = td_linear_new (b.root, "qkv", UNITS, 3 * UNITS);
  b.to = td_linear_new (b.root, "to", UNITS, UNITS);
  b.norm2 = td_layer_normalization_new (b.root, "norm2", UNITS);
  b.up = td_linear_new (b.root, "up", UNITS, 4 * UNITS);
  b.down = td_linear_new (b.root, "down", 4 * UNITS, UNITS);
  b.last = td_linear_new (b.root, "last", UNITS, WORDS);
  fill_params (b.root, 6);
  return b;
}

/* Part i of three of x (n LENGTH, 3 UNITS), by heads. */
static TdVar *
part (TdVar *x, int64_t n, int i)
{
  TdVar *of = td_get_item (x, (TdSlice[]){ TD_ALL, TD_RANGE (i * UNITS, (i + 1) * UNITS) }, 2);

  of = td_reshape (of, TD_SHAPE (n, LENGTH, HEADS, UNITS / HEADS));
  return td_transpose (of, (int[]){ 0, 2, 1, 3 });
}

static TdVar *
block_loss (const Block *b, TdVar *ids, TdVar *next)
{
  const int64_t n = td_shape (ids).dim[0];
  TdVar *x = td_reshape (td_link (b->embed, ids), TD_SHAPE (n * LENGTH, UNITS));
  TdVar *h = td_link (b->qkv, td_link (b->norm, x));

  h = td_scaled_dot_product_attention (part (h, n, 0), part (h, n, 1), part (h, n, 2),
                                       .causal = true);
  h = td_reshape (td_transpose (h, (int[]){ 0, 2, 1, 3 }), TD_SHAPE (n * LENGTH, UNITS));
  x = td_add (x, td_link (b->to, h));
  h = td_gelu (td_link (b->up, td_link (b->norm2, x)), .approximate = true);
  x = td_add (x, td_link (b->down, h));
  return td_softmax_cross_entropy (td_link (b->last, x),
                                   td_reshape (next, TD_SHAPE (n * LENGTH)));
}

/* Numbers of words; some come again. */
static TdVar *
words (int64_t n, int from)
{
  int32_t ids[7 * LENGTH];

  for (int64_t i = 0; i < n * LENGTH; i++)
    ids[i] = (int32_t)((i * i + 3 * i + from) % WORDS);
  return td_tensor (TD_I32, TD_SHAPE (n, LENGTH), ids);
}

static void
gradients__of_a_block_follow_the_batch (void **state)
{
  static const int64_t batches[] = { 4, 1, 3, 7 };
  Block b;
  char *said;

  (void)state;
  td_test_python ("onnxruntime");
  b = block_new ();
  n_stay = 0;
  for (int k = 0; k < 4; k++)
    TD_SCOPE ("step")
      TD_USING (keep_graph, true)
        {
          TdVar *in[] = { words (batches[k], 1), words (batches[k], 4) }, *out[MOST] = { NULL };
          const Params p = params_of (b.root);

          out[0] = block_loss (&b, in[0], in[1]);
          assert_int_equal (td_grad_of (out, 1, p.of, p.n, NULL, TD_DOUBLE_BACKPROP, out + 1),
                            TD_OK);
          if (k == 0)
            assert_int_equal (td_save_onnx (out, (size_t)p.n + 1, td_test_tmp ("block.onnx"),
                                            .in = in, .n_in = 2, .fixed = hear),
                              TD_OK);
          keep_case ("block.onnx", k, in, 2, out, p.n + 1);
        }
  if (n_stay > 0)
    fail_msg ("%s", stays);
  said = run_onnx ("block.onnx", true);
  assert_non_null (strstr (said, "4 runs\ninput0(batch,5) input1(batch,5) -> output0() "));
  free (said);
  td_link_free (b.root);
}

/* --- one operation each: its gradient, and the gradient of that --- */

enum
{
  CHANNELS = 8
};

static TdVar *
per_channel (double value)
{
  return td_full (TD_F32, TD_SHAPE (CHANNELS), value);
}

static TdVar *
activations (TdVar *x)
{
  TdVar *y = td_elu (td_softplus (td_silu (td_gelu (x))));

  y = td_add (y, td_erf (td_gelu (x, .approximate = true)));
  y = td_add (y, td_log1p (td_square (td_expm1 (td_tanh (x)))));
  y = td_add (y, td_rsqrt (td_add_scalar (td_square (td_sigmoid (x)), 1)));
  return td_add (y, td_mul (x, td_add (td_clipped_relu (x, .z = 0.5), td_hard_sigmoid (x))));
}

static TdVar *
by_groups (TdVar *x)
{
  return td_group_normalization (x, 4, per_channel (1.25), per_channel (0.5));
}

static TdVar *
by_rows (TdVar *x)
{
  TdVar *rows = td_transpose (x, (int[]){ 0, 2, 3, 1 });

  return td_mul_scalar (
      td_add (td_rms_normalization (rows, per_channel (1.25)),
              td_layer_normalization (rows, per_channel (0.75), per_channel (0.5))),
      0.25);
}

static TdVar *
by_channels (TdVar *x)
{
  return td_batch_normalization (x, per_channel (1.25), per_channel (0.5));
}

static TdVar *
averages (TdVar *x)
{
  TdVar *y = td_average_pooling_nd (x, .ksize = { 3, 3 }, .stride = { 2, 2 }, .pad = { 1, 1 },
                                    .pad_value = TD_NONE);

  return td_mul_scalar (
      td_add (td_unpooling_2d (y, .ksize = { 2, 2 }),
              td_sum_axes (td_adaptive_average_pooling_2d (x, 3, 2), (int[]){ 2, 3 }, 2, true)),
      0.25);
}

static TdVar *
slices (TdVar *x)
{
  TdVar *some = td_get_item (
      x,
      (TdSlice[]){ TD_ALL, TD_STEP (7, TD_END, -3), TD_AT (-1), TD_NEW_AXIS, TD_RANGE (1, 3) },
      5);

  return td_add (some, td_get_item (x,
                                    (TdSlice[]){ TD_ALL, TD_STEP (0, 6, 2), TD_RANGE (1, 2),
                                                 TD_RANGE (2, TD_END) },
                                    4));
}

static TdVar *
rows_by_index (TdVar *x)
{
  static const int64_t channels[] = { 0, 7, 7, 2 };
  TdVar *index = td_tensor (TD_I64, TD_SHAPE (4), channels);

  return td_repeat (td_get_item_arrays (x, &index, 1, 1), (int[]){ 2 }, 1, 3);
}

static TdVar *
looking (TdVar *x)
{
  TdVar *h = td_reshape (x, TD_SHAPE (td_shape (x).dim[0], CHANNELS, 16));

  return td_scaled_dot_product_attention (h, td_tanh (h), h, .causal = true);
}

static TdVar *
cell (TdVar *x)
{
  TdVar *rows = td_reshape (x, TD_SHAPE (td_shape (x).dim[0], -1)), *h;
  TdVar *c = td_get_item (rows, (TdSlice[]){ TD_ALL, TD_RANGE (0, 32) }, 2);

  c = td_lstm (c, rows, &h);
  return td_add (c, td_square (h));
}

static TdVar *
labelled (TdVar *x)
{
  TdVar *likely = td_argmax (td_sin (td_mul_scalar (x, 9)), 1);

  return td_softmax_cross_entropy (x, likely, .reduce = "no");
}

static TdVar *
labelled_mean (TdVar *x)
{
  return td_mul_scalar (td_softmax_cross_entropy (
                            x, td_argmax (td_sin (td_mul_scalar (x, 9)), 1), .ignore_label = 2),
                        8);
}

static TdVar *
yes_or_no (TdVar *x)
{
  TdVar *t
      = td_cast (td_clip (td_mul_scalar (td_sin (td_mul_scalar (x, 9)), 100), 0, 1), TD_I32);

  return td_sigmoid_cross_entropy (x, t);
}

typedef TdVar *(*Function) (TdVar *x);

static const Function open_functions[]
    = { activations, by_groups, by_rows,  averages,      slices,   rows_by_index,
        looking,     cell,      labelled, labelled_mean, yes_or_no };
static const Function closed_functions[] = { by_channels };

/* Of sum (f (x)^2), the gradient g, and that of sum (g^2).  Functions are scaled so that all
 * are of about one size, which is what 1e-5 is meant of. */
static int
twice (const Function *functions, int n, TdVar *x, TdVar **out)
{
  for (int i = 0; i < n; i++)
    {
      TdVar *y = td_sum (td_square (functions[i](x)));

      assert_int_equal (td_grad_of (&y, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &out[2 * i]),
                        TD_OK);
      y = td_sum (td_square (out[2 * i]));
      assert_int_equal (td_grad_of (&y, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &out[2 * i + 1]),
                        TD_OK);
    }
  return 2 * n;
}

static TdVar *
examples (int64_t n)
{
  TdVar *x = td_variable (td_zeros (TD_F32, TD_SHAPE (n, CHANNELS, 4, 4)), NULL);

  fill (x, (unsigned)n);
  return x;
}

static void
run_twice (const char *file, const Function *functions, int n_functions, int n_batches)
{
  static const int64_t batches[] = { 5, 1, 3, 7 };

  n_stay = 0;
  for (int k = 0; k < n_batches; k++)
    TD_SCOPE ("step")
      TD_USING (keep_graph, true)
        {
          TdVar *x = examples (batches[k]), *out[MOST] = { NULL };
          const int n = twice (functions, n_functions, x, out);

          if (k == 0)
            assert_int_equal (td_save_onnx (out, (size_t)n, td_test_tmp (file), .in = &x,
                                            .n_in = 1, .fixed = hear),
                              TD_OK);
          keep_case (file, k, &x, 1, out, n);
        }
}

static void
gradients__of_gradients_follow_the_batch (void **state)
{
  char *said;

  (void)state;
  td_test_python ("onnxruntime");
  run_twice ("twice.onnx", open_functions,
             (int)(sizeof open_functions / sizeof *open_functions), 4);
  if (n_stay > 0)
    fail_msg ("%s", stays);
  said = run_onnx ("twice.onnx", true);
  assert_non_null (strstr (said, "4 runs\ninput0(batch,8,4,4) -> output0(batch,8,4,4) "));
  free (said);
}

/* Of batch normalization the second has the number of elements of each channel. */
static void
gradients__of_the_batchs_own_moments_keep_it (void **state)
{
  char *said;

  (void)state;
  td_test_python ("onnxruntime");
  run_twice ("moments.onnx", closed_functions, 1, 1);
  assert_int_equal (n_stay, 1);
  if (strncmp (stays, "batch stays 5: div_scalar at ", 29) != 0)
    fail_msg ("%s", stays);
  said = run_onnx ("moments.onnx", true);
  assert_non_null (strstr (said, "1 runs\ninput0(5,8,4,4) -> "));
  free (said);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (gradients__of_a_penalty_follow_the_batch),
    engine_test (gradients__of_a_mean_keep_the_batch),
    engine_test (gradients__of_a_block_follow_the_batch),
    engine_test (gradients__of_gradients_follow_the_batch),
    engine_test (gradients__of_the_batchs_own_moments_keep_it),
  };

  return cmocka_run_group_tests_name ("onnx_gradients", tests, NULL, NULL);
}
