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
  MOST = 24, /* outputs of a model */
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

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (gradients__of_a_penalty_follow_the_batch),
    engine_test (gradients__of_a_mean_keep_the_batch),
    engine_test (gradients__of_a_block_follow_the_batch),
  };

  return cmocka_run_group_tests_name ("onnx_gradients", tests, NULL, NULL);
}
