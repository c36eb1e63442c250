/* Mixed precision in whole nets on the device: a convolutional net with batch normalisation, a
 * transformer's block, an LSTM; trained in halves with float copies of the parameters and a
 * loss scale that finds itself, by hand and as static schedules, and held against float32.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "far-test.h"
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const FakeCudaControl *driver;

enum
{
  BATCH = 8,
  SIDE = 8,
  CLASSES = 5,
  STEPS = 40,
  BAD_STEP = 20, /* its loss is infinite */
  TOKENS = 6,
  UNITS = 8
};

typedef struct Net
{
  TdDtype dtype;
  TdLink *root, *part[9];
} Net;

/* A net: its links, and the numbers behind its loss, from x. */
typedef struct
{
  const char *name;
  void (*make) (Net *net);
  TdStaticFn run;
  bool tokens;      /* x holds numbers of words */
  int64_t n_rows;   /* of its answers */
  double tolerance; /* of the last loss, as a share of the first; a step is left out */
} Kind;

/* --- a convolutional net --- */

static void
make_lenet (Net *net)
{
  net->part[0] = td_convolution_2d_new (net->root, "conv", 1, 4, 3, .pad = { 1, 1 });
  net->part[1] = td_batch_normalization_new (net->root, "bn", 4);
  net->part[2] = td_linear_new (net->root, "out", 4 * SIDE * SIDE / 4, CLASSES);
}

static void
run_lenet (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *h = td_link (net->part[0], td_cast (in[0], net->dtype));

  h = td_relu (td_link (net->part[1], h));
  h = td_max_pooling_2d (h, .ksize = { 2, 2 }, .stride = { 2, 2 });
  out[0] = td_cast (td_link (net->part[2], h), TD_F32);
}

/* --- a block of a transformer: attention and two layers, each beside what goes around it ---
 */

static void
make_transformer (Net *net)
{
  static const char *const names[] = { "q", "k", "v", "mix" };

  net->part[0] = td_embed_id_new (net->root, "words", CLASSES, UNITS);
  net->part[1] = td_layer_normalization_new (net->root, "norm", UNITS);
  for (int i = 0; i < 4; i++)
    net->part[2 + i] = td_linear_new (net->root, names[i], UNITS, UNITS);
  net->part[6] = td_linear_new (net->root, "wide", UNITS, 2 * UNITS);
  net->part[7] = td_linear_new (net->root, "narrow", 2 * UNITS, UNITS);
  net->part[8] = td_linear_new (net->root, "out", UNITS, CLASSES);
}

static TdVar *
sentences (TdVar *v)
{
  return td_reshape (v, TD_SHAPE (BATCH, TOKENS, UNITS));
}

static void
run_transformer (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *x = td_reshape (td_link (net->part[0], in[0]), TD_SHAPE (BATCH * TOKENS, UNITS));
  TdVar *h = td_link (net->part[1], x);

  h = td_scaled_dot_product_attention (sentences (td_link (net->part[2], h)),
                                       sentences (td_link (net->part[3], h)),
                                       sentences (td_link (net->part[4], h)), .causal = true);
  h = td_reshape (h, TD_SHAPE (BATCH * TOKENS, UNITS));
  x = td_add (x, td_dropout (td_link (net->part[5], h), 0.05));
  h = td_link (net->part[7], td_gelu (td_link (net->part[6], x)));
  out[0] = td_cast (td_link (net->part[8], td_add (x, h)), TD_F32);
}

/* --- a recurrent net, unrolled --- */

static void
make_lstm (Net *net)
{
  net->part[0] = td_embed_id_new (net->root, "words", CLASSES, UNITS);
  net->part[1] = td_stateless_lstm_new (net->root, "lstm", UNITS, UNITS);
  net->part[2] = td_linear_new (net->root, "out", UNITS, CLASSES);
}

static void
run_lstm (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *words = td_link (net->part[0], in[0]), *step[TOKENS], *state[2];

  state[0] = state[1] = td_zeros (net->dtype, TD_SHAPE (BATCH, UNITS)); /* c, h */
  td_split_axis (words, TOKENS, 1, step);
  for (int t = 0; t < TOKENS; t++)
    {
      TdVar *given[] = { state[0], state[1], td_reshape (step[t], TD_SHAPE (BATCH, UNITS)) };

      td_link_call (net->part[1], given, 3, state, 2);
    }
  out[0] = td_cast (td_link (net->part[2], state[1]), TD_F32);
}

static const Kind kinds[] = {
  { "lenet", make_lenet, run_lenet, false, BATCH, 0.01 },
  { "transformer", make_transformer, run_transformer, true, BATCH *TOKENS, 0.01 },
  { "lstm", make_lstm, run_lstm, true, BATCH, 0.03 },
};

/* --- training --- */

typedef struct
{
  double first, last;
  double scale_before, scale_after, scale; /* around the bad step, and in the end */
  int64_t skipped;
  long waits, graphs; /* most waits of an update; launches of CUDA graphs */
  char overflow[64];  /* the first parameter that was not finite */
} Run;

static TdVar *
input_of (const Kind *kind)
{
  float images[BATCH * SIDE * SIDE];
  int32_t words[BATCH * TOKENS];

  for (int i = 0; i < BATCH * SIDE * SIDE; i++)
    images[i] = (float)(i * 7 % 13) / 13 + (i % SIDE % CLASSES == i / (SIDE * SIDE) % CLASSES);
  for (int i = 0; i < BATCH * TOKENS; i++)
    words[i] = i * i % CLASSES;
  return kind->tokens ? td_tensor (TD_I32, TD_SHAPE (BATCH, TOKENS), words)
                      : td_tensor (TD_F32, TD_SHAPE (BATCH, 1, SIDE, SIDE), images);
}

/* What each row is to be called; a word of a sentence by what comes before it. */
static TdVar *
labels_of (const Kind *kind)
{
  int32_t labels[BATCH * TOKENS];

  for (int i = 0; i < kind->n_rows; i++)
    labels[i] = (kind->n_rows > BATCH ? i * i + 1 : i) % CLASSES;
  return td_tensor (TD_I32, TD_SHAPE (kind->n_rows), labels);
}

/* Parameters in halves have copies in float, of which they are the roundings. */
static void
check_copies (TdOpt *opt, TdLink *root, TdDtype dtype)
{
  TdVar *p = td_link_param (root, "out/W"), *master = td_opt_state (opt, "out/W", "fp32_param");
  uint16_t a[512], b[512];
  const size_t bytes = (size_t)td_size (p) * 2;

  assert_int_equal (td_dtype (p), dtype);
  assert_non_null (master);
  assert_int_equal (td_dtype (master), TD_F32);
  assert_true (bytes <= sizeof a);
  assert_int_equal (td_read (p, a, bytes), TD_OK);
  assert_int_equal (td_read (td_cast (master, dtype), b, bytes), TD_OK);
  assert_memory_equal (a, b, bytes);
}

static void
step (const Kind *kind, Net *net, TdOpt *opt, TdStatic *function, int i, Run *run)
{
  TdVar *x = input_of (kind), *t = labels_of (kind), *y = NULL, *loss, *scaled;
  long before;

  if (function != NULL)
    td_static_call (function, &x, 1, &y, 1);
  else
    kind->run (net, &x, 1, &y, 1);
  loss = td_softmax_cross_entropy (y, t);
  scaled = i == BAD_STEP && net->dtype != TD_F32 ? td_mul_scalar (loss, INFINITY) : loss;
  if (i == BAD_STEP)
    run->scale_before = td_opt_loss_scale (opt);
  td_cleargrads (net->root);
  td_opt_backward (opt, scaled, 0);
  before = driver->state->n_waits;
  td_opt_update (opt);
  if (driver->state->n_waits - before > run->waits)
    run->waits = driver->state->n_waits - before;
  if (td_error () != NULL)
    fail_msg ("%s in step %d: %s", kind->name, i, td_error ()->message);
  if (i == BAD_STEP)
    {
      const char *key = td_opt_first_overflow (opt);

      run->scale_after = td_opt_loss_scale (opt);
      snprintf (run->overflow, sizeof run->overflow, "%s", key != NULL ? key : "");
    }
  run->last = td_item (loss);
  if (i == 0)
    run->first = run->last;
}

static Run
train (const Kind *kind, const char *device, TdDtype dtype, bool is_static)
{
  Run run = { 0 };
  Net net = { .dtype = dtype };
  TdStatic *function = NULL;
  TdOpt *opt;
  const long graphs = driver->state->n_graph_launches;

  assert_int_equal (td_init (NULL, NULL), TD_OK);
  td_device_use (td_device_get (device));
  td_set_seed (3);
  net.root = td_chain_new (kind->name);
  TD_USING (dtype, (int)dtype)
    kind->make (&net);
  opt = td_adam_new (net.root, .lr = 0.01);
  if (dtype != TD_F32)
    {
      td_opt_use_fp32_update (opt, true);
      td_opt_loss_scaling (opt, .interval = 10);
    }
  if (is_static)
    function = td_static_new (kind->run, &net);
  TD_ITERATIONS (i, STEPS)
    step (kind, &net, opt, function, (int)i, &run);
  if (dtype != TD_F32)
    TD_SCOPE ("copies")
      check_copies (opt, net.root, dtype);
  run.scale = td_opt_loss_scale (opt);
  run.skipped = td_opt_skipped (opt);
  run.graphs = driver->state->n_graph_launches - graphs;
  if (function != NULL)
    td_static_free (function);
  td_opt_free (opt);
  td_link_free (net.root);
  assert_null (td_error ());
  assert_int_equal (td_finish (), 0);
  return run;
}

static void
reaches (const Kind *kind, TdDtype dtype, bool is_static)
{
  const Run exact = train (kind, "cpu", TD_F32, false);
  const Run half = train (kind, "cuda:0", dtype, is_static);

  print_message ("%s in %s%s: %.4f to %.4f (float32: %.4f), scale %g, %ld skipped, first %s, "
                 "%ld graphs\n",
                 kind->name, td_dtype_name (dtype), is_static ? ", static" : "", half.first,
                 half.last, exact.last, half.scale, (long)half.skipped, half.overflow,
                 half.graphs);
  assert_true (exact.last < exact.first / 2);
  assert_true (fabs (half.last - exact.last) <= kind->tolerance * exact.first);
  /* the infinite loss cost a step and half of the scale, and where it began is known */
  assert_true (half.skipped >= 1 && half.skipped < STEPS / 4);
  assert_true (half.scale_after == fmax (1, half.scale_before / 2));
  assert_true (half.scale > half.scale_after);
  assert_int_equal (strncmp (half.overflow, "out/", 4), 0);
  assert_int_equal (half.waits, 0);
  if (is_static)
    assert_true (half.graphs > STEPS / 2);
}

#define ROW(net, index)                                                                        \
  static void net##__in_bfloat16_reaches_float32 (void **state)                                \
  {                                                                                            \
    reaches (&kinds[index], TD_BF16, false);                                                   \
  }                                                                                            \
  static void net##__in_float16_reaches_float32 (void **state)                                 \
  {                                                                                            \
    reaches (&kinds[index], TD_F16, false);                                                    \
  }                                                                                            \
  static void net##__in_bfloat16_as_a_schedule_reaches_float32 (void **state)                  \
  {                                                                                            \
    reaches (&kinds[index], TD_BF16, true);                                                    \
  }                                                                                            \
  static void net##__in_float16_as_a_schedule_reaches_float32 (void **state)                   \
  {                                                                                            \
    reaches (&kinds[index], TD_F16, true);                                                     \
  }
ROW (lenet, 0)
ROW (transformer, 1)
ROW (lstm, 2)

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  return far_test_setup (state);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, far_test_teardown)
#define rows(net)                                                                              \
  row (net##__in_bfloat16_reaches_float32), row (net##__in_float16_reaches_float32),           \
      row (net##__in_bfloat16_as_a_schedule_reaches_float32),                                  \
      row (net##__in_float16_as_a_schedule_reaches_float32)
  const struct CMUnitTest tests[] = { rows (lenet), rows (transformer), rows (lstm) };

  return cmocka_run_group_tests_name ("mixed-nets", tests, NULL, NULL);
}
