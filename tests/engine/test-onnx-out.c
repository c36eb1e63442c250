/* The graph that ran as an ONNX model: others compute the same from it, with other batches too,
 * and what cannot go out is said before a file is there.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "onnx-run.h"
#include "tapedeck-op.h"
#include "train/serial/onnx-weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
  MOST_LINES = 80
};

/* What a call-back heard. */
static char heard[MOST_LINES][320];
static int n_heard;

static void
hear (const char *line, void *user)
{
  (void)user;
  if (n_heard < MOST_LINES)
    snprintf (heard[n_heard], sizeof heard[n_heard], "%s", line);
  n_heard++;
}

/* The path of a file of this test.  *Owner*: static, until the next but three. */
static const char *
file (const char *name)
{
  static char paths[4][512];
  static int at;

  at = (at + 1) % 4;
  snprintf (paths[at], sizeof paths[at], "%s", td_test_tmp (name));
  return paths[at];
}

/* --- a net --- */

typedef struct
{
  TdLink *root, *c1, *bn, *up, *l1, *l2;
} Net;

static void
net_new (Net *net)
{
  net->root = td_chain_new ("net");
  net->c1 = td_convolution_2d_new (net->root, "c1", 3, 4, 3, .pad = { 1, 1 });
  net->bn = td_batch_normalization_new (net->root, "bn", 4);
  net->up = td_chain_new (net->root, "up");
  net->l1 = td_linear_new (net->up, "l1", 4 * 8 * 8, 10);
  net->l2 = td_linear_new (net->up, "l2", 10, 4);
  fill_params (net->root, 9);
}

/* The batch's size is a number of the code here and there. */
static TdVar *
net_call (Net *net, TdVar *x)
{
  const int64_t n = td_shape (x).dim[0];
  TdVar *h = td_relu (td_link (net->bn, td_link (net->c1, x)));

  h = td_reshape (h, TD_SHAPE (n, 4 * 8 * 8));
  h = td_add (td_tanh (td_link (net->l1, h)), td_full (TD_F32, TD_SHAPE (n, 10), 0.25));
  h = td_mul (h, td_broadcast_to (td_full (TD_F32, TD_SHAPE (1, 10), 2), TD_SHAPE (n, 10)));
  return td_softmax (td_link (net->l2, h), .axis = 1);
}

/* The same, and the graph is kept. */
static TdVar *
net_kept (Net *net, TdVar *x)
{
  TdVar *y = NULL;

  TD_USING (keep_graph, 1)
    y = net_call (net, x);
  return y;
}

/* Images of a batch of n. */
static TdVar *
images (int64_t n)
{
  TdVar *x = td_zeros (TD_F32, TD_SHAPE (n, 3, 8, 8));

  fill (x, (unsigned)n);
  return x;
}

static void
out__of_the_graph_that_ran_computes_the_same_with_other_batches (void **state)
{
  static const int64_t batches[] = { 1, 3, 7 };
  Net net;
  char *said;

  (void)state;
  td_test_python ("onnxruntime");
  net_new (&net);
  TD_USING (train, 0)
    for (int opset = 17; opset <= 21; opset += 4)
      TD_SCOPE ("call")
        {
          TdVar *x = td_name (images (5), "image"), *y = net_kept (&net, x);

          assert_int_equal (td_save_onnx (&y, 1, file ("net.onnx"), .in = &x, .n_in = 1,
                                          .opset = opset, .fixed = hear),
                            TD_OK);
          assert_int_equal (n_heard, 0);
          for (int k = 0; k < 3; k++)
            {
              x = images (batches[k]);
              y = net_call (&net, x);
              keep_case ("net.onnx", k, &x, 1, &y, 1);
            }
          said = run_onnx ("net.onnx", true);
          assert_non_null (strstr (said, "3 runs\nimage(batch,3,8,8) -> output0(batch,4)\n"));
          assert_non_null (strstr (said, "5 is batch and not a number in the array (5, 10) of "
                                         "add at test-onnx-out.c:"));
          assert_null (strstr (said, "is a number and not"));
          assert_non_null (strstr (said, "net/c1/Conv "));
          assert_non_null (strstr (said, "net/up/l2/Gemm "));
          assert_non_null (strstr (said, "net/c1/W "));
          assert_non_null (strstr (said, "net/up/l1/W "));
          free (said);
        }
  td_link_free (net.root);
}

/* With a batch of one, sizes of 1 may be the batch's. */
static void
out__of_a_batch_of_one_runs_with_others (void **state)
{
  static const int64_t batches[] = { 1, 3, 7 };
  Net net;
  char *said;

  (void)state;
  td_test_python ("onnxruntime");
  net_new (&net);
  TD_USING (train, 0)
    TD_SCOPE ("call")
      {
        TdVar *x = images (1), *y = net_kept (&net, x);

        n_heard = 0;
        assert_int_equal (
            td_save_onnx (&y, 1, file ("one.onnx"), .in = &x, .n_in = 1, .assumed = hear),
            TD_OK);
        assert_int_equal (n_heard, 7);
        n_heard = 0;
        for (int k = 0; k < 3; k++)
          {
            x = images (batches[k]);
            y = net_call (&net, x);
            keep_case ("one.onnx", k, &x, 1, &y, 1);
          }
        said = run_onnx ("one.onnx", true);
        assert_non_null (strstr (said, "3 runs\ninput0(batch,3,8,8) -> output0(batch,4)\n"
                                       "assumed=1 is a number and not batch in the array "
                                       "(1, 10) of add at test-onnx-out.c:"));
        free (said);
      }
  td_link_free (net.root);
}

/* Sizes of an input that are the batch's by chance, or some times it, are numbers. */
static void
out__of_images_as_large_as_the_batch_follows_the_batch (void **state)
{
  TdLink *c = td_convolution_2d_new (NULL, "c", 1, 2, 4, .stride = { 2, 2 }, .pad = { 1, 1 }),
         *l = td_linear_new (NULL, "l", 2 * 8 * 2, 3);
  char *text;

  (void)state;
  td_test_python ("onnxruntime");
  fill_params (c, 3);
  fill_params (l, 4);
  TD_USING (keep_graph, 1)
    for (int again = 0; again < 2; again++)
      TD_SCOPE ("call")
        {
          TdVar *x = td_zeros (TD_F32, TD_SHAPE (again ? 3 : 4, 1, 16, 4)), *y;

          fill (x, 5);
          y = td_link (l, td_link (c, x));
          if (!again)
            assert_int_equal (td_save_onnx (&y, 1, file ("square.onnx"), .in = &x, .n_in = 1),
                              TD_OK);
          keep_case ("square.onnx", again, &x, 1, &y, 1);
        }
  text = run_onnx ("square.onnx", true);
  assert_non_null (strstr (text, "2 runs\ninput0(batch,1,16,4) -> output0(batch,3)\n\n"));
  free (text);
  td_link_free (c);
  td_link_free (l);
}

/* --- places --- */

/* Resize of others has its places in float32: off by more than is allowed at this size. */
static void
out__of_large_images_between_pixels_is_as_near_as_of_small_ones (void **state)
{
  TdVar *x = td_zeros (TD_F32, TD_SHAPE (1, 1, 1000, 20)), *y = NULL;

  (void)state;
  td_test_python ("onnxruntime");
  fill (x, 3);
  TD_USING (keep_graph, 1)
    y = td_resize_images (x, 333, 33);
  assert_int_equal (td_save_onnx (&y, 1, file ("large.onnx"), .in = &x, .n_in = 1), TD_OK);
  keep_case ("large.onnx", 0, &x, 1, &y, 1);
  free (run_onnx ("large.onnx", true));
}

/* Padding is -inf as well, and never the largest. */
static void
out__of_places_finds_them_in_the_image_where_all_is_as_small_as_padding (void **state)
{
  TdVar *x = td_full (TD_F32, TD_SHAPE (1, 2, 4, 4), -INFINITY), *places = NULL;

  (void)state;
  td_test_python ("onnxruntime");
  TD_USING (keep_graph, 1)
    td_max_pooling_2d (x, .ksize = { 3, 3 }, .stride = { 2, 2 }, .pad = { 1, 1 },
                       .indices = &places);
  assert_int_equal (td_save_onnx (&places, 1, file ("places.onnx"), .in = &x, .n_in = 1),
                    TD_OK);
  keep_case ("places.onnx", 0, &x, 1, &places, 1);
  free (run_onnx ("places.onnx", true));
}

/* --- what a recurrent net carries along --- */

static TdVar *
wide_of (int64_t n, int64_t length, int64_t units)
{
  TdVar *x = td_zeros (TD_F32, TD_SHAPE (n, length, units));

  fill (x, (unsigned)(n + length));
  return x;
}

static TdVar *
lstm_call (TdLink *lstm, TdLink *last, TdVar *x)
{
  TdVar *h = NULL;

  td_link_reset_state (lstm);
  TD_USING (keep_graph, 1)
    for (int64_t t = 0; t < td_shape (x).dim[1]; t++)
      h = td_link (lstm, td_get_item (x, (TdSlice[]){ TD_ALL, TD_AT (t) }, 2));
  return td_link (last, h);
}

static void
out__of_an_lstm_follows_the_batch_and_not_the_length (void **state)
{
  static const int64_t batches[] = { 1, 3, 7 };
  TdLink *root = td_chain_new ("rnn"), *lstm = td_lstm_new (root, "lstm", 5, 6),
         *last = td_linear_new (root, "last", 6, 3);
  char *said;

  (void)state;
  td_test_python ("onnxruntime");
  fill_params (root, 4);
  TD_USING (train, 0)
    TD_SCOPE ("call")
      {
        TdVar *x = wide_of (2, 4, 5), *y = lstm_call (lstm, last, x);

        assert_int_equal (
            td_save_onnx (&y, 1, file ("lstm.onnx"), .in = &x, .n_in = 1, .fixed = hear),
            TD_OK);
        assert_int_equal (n_heard, 0);
        for (int k = 0; k < 3; k++)
          {
            x = wide_of (batches[k], 4, 5);
            y = lstm_call (lstm, last, x);
            keep_case ("lstm.onnx", k, &x, 1, &y, 1);
          }
        said = run_onnx ("lstm.onnx", true);
        assert_non_null (strstr (said, "3 runs\ninput0(batch,4,5) -> output0(batch,3)\n\n"));
        free (said);
        /* The code took step after step: another length is another graph. */
        x = wide_of (2, 4, 5);
        y = lstm_call (lstm, last, x);
        n_heard = 0;
        assert_int_equal (td_save_onnx (&y, 1, file ("long.onnx"), .in = &x, .n_in = 1,
                                        .axes = "0:0=batch,0:1=length", .fixed = hear),
                          TD_OK);
        assert_int_equal (n_heard, 1);
        assert_non_null (strstr (heard[0], "length stays 4: get_item at test-onnx-out.c:"));
        said = run_onnx ("long.onnx", false);
        assert_non_null (strstr (said, "input0(batch,4,5) -> output0(batch,3)\nfixed=length "
                                       "stays 4: get_item at test-onnx-out.c:"));
        free (said);
        n_heard = 0;
      }
  td_link_free (root);
}

/* --- what cannot follow --- */

/* What becomes of x; each has the batch's size where no file can follow it, or might not. */
static TdVar *
first_row (TdVar *x)
{
  return td_sum_axes (td_get_item (x, (TdSlice[]){ TD_AT (0) }, 1), NULL, 0, false);
}

static TdVar *
halves (TdVar *x)
{
  TdVar *part[2];

  td_split_axis (x, 2, 0, part);
  return td_add (part[0], part[1]);
}

static TdVar *
mean_by_hand (TdVar *x)
{
  const int rows = 0;

  return td_div_scalar (td_sum_axes (x, &rows, 1, false), (double)td_shape (x).dim[0]);
}

static TdVar *
rows_of_an_array (TdVar *x)
{
  return td_concat ((TdVar *[]){ x, td_ones (TD_F32, TD_SHAPE (4, 6)) }, 2, 0);
}

static TdVar *
exchanged (TdVar *x)
{
  return td_reshape (td_transpose (x, NULL), td_shape (x));
}

static void
out__keeps_the_batch_that_an_operation_has_as_a_number (void **state)
{
  static const struct
  {
    TdVar *(*call) (TdVar *x);
    const char *why;
  } rows[] = {
    { first_row, "batch stays 4: get_item at test-onnx-out.c:" },
    { halves, "batch stays 4: split_axis at test-onnx-out.c:" },
    { mean_by_hand, "batch stays 4: div_scalar at test-onnx-out.c:" },
    { rows_of_an_array, "batch stays 4: an array that the code filled has this size" },
    { exchanged, "batch stays 4: reshape at test-onnx-out.c:" },
  };

  (void)state;
  td_test_python ("onnxruntime");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    TD_SCOPE ("call")
      {
        TdVar *x = td_zeros (TD_F32, TD_SHAPE (4, 6)), *y = NULL;
        char *text;

        fill (x, 3);
        TD_USING (keep_graph, 1)
          y = rows[i].call (x);
        n_heard = 0;
        assert_int_equal (
            td_save_onnx (&y, 1, file ("kept.onnx"), .in = &x, .n_in = 1, .fixed = hear),
            TD_OK);
        assert_int_equal (n_heard, 1);
        if (strncmp (heard[0], rows[i].why, strlen (rows[i].why)) != 0)
          fail_msg ("\"%s\" expected, got \"%s\"", rows[i].why, heard[0]);
        keep_case ("kept.onnx", 0, &x, 1, &y, 1);
        text = run_onnx ("kept.onnx", true);
        assert_non_null (strstr (text, "1 runs\ninput0(4,6) -> "));
        assert_non_null (strstr (text, rows[i].why));
        free (text);
      }
  n_heard = 0;
}

/* Two axes of one size, and each by its name. */
static void
out__opens_the_axes_that_are_asked_for (void **state)
{
  TdLink *l = td_linear_new (NULL, "l", 6, 3);
  char *text;

  (void)state;
  td_test_python ("onnxruntime");
  fill_params (l, 2);
  for (int again = 0; again < 2; again++)
    TD_SCOPE ("call")
      {
        const int64_t n = again ? 3 : 2, length = again ? 7 : 5;
        TdVar *x = td_name (wide_of (n, length, 6), "x"), *y = NULL;

        TD_USING (keep_graph, 1)
          y = td_reshape (td_link (l, td_reshape (x, TD_SHAPE (n * length, 6))),
                          TD_SHAPE (n, length, 3));
        y = td_reshape (td_transpose (y, (int[]){ 1, 0, 2 }), TD_SHAPE (length, n * 3));
        if (!again)
          {
            assert_int_equal (td_save_onnx (&y, 1, file ("axes.onnx"), .in = &x, .n_in = 1,
                                            .axes = "x:0=n,0:1=length", .fixed = hear),
                              TD_OK);
            assert_int_equal (n_heard, 0);
            assert_int_equal (td_save_onnx (&y, 1, file ("none.onnx"), .axes = ""), TD_OK);
          }
        keep_case ("axes.onnx", again, &x, 1, &y, 1);
      }
  text = run_onnx ("axes.onnx", true);
  assert_non_null (strstr (text, "2 runs\nx(n,length,6) -> output0(length,3*n)\n"));
  free (text);
  text = run_onnx ("none.onnx", false);
  assert_non_null (strstr (text, "x(2,5,6) -> output0(5,6)\n"));
  free (text);
  td_link_free (l);
}

static void
out__says_what_is_wrong_with_axes (void **state)
{
  static const char *const wrong[][2] = {
    { "x", "ARGUMENT:AXIS=NAME expected" },
    { "0:0", "ARGUMENT:AXIS=NAME expected, with a name" },
    { "y:0=n", "no argument of that name or number" },
    { "0:2=n", "the argument has no such axis" },
    { "0:0=n,0:1=n", "two axes of one name, and of two sizes" },
    { "0:0=n,0:0=m", "an axis with two names" },
  };
  TdVar *x = td_variable (td_zeros (TD_F32, TD_SHAPE (2, 3)), NULL), *y = td_relu (x);

  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    {
      assert_int_equal (td_save_onnx (&y, 1, file ("wrong.onnx"), .axes = wrong[i][0]),
                        TD_ERR_ARG);
      assert_non_null (strstr (said (TD_ERR_ARG), wrong[i][1]));
      assert_int_not_equal (access (file ("wrong.onnx"), F_OK), 0);
    }
}

/* --- what is refused --- */

static TdStatus
own_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
own_forward (TdOpCall *call)
{
  memcpy (call->out[0].data, call->in[0].data, (size_t)call->in[0].size * sizeof (float));
  return TD_OK;
}

static TdStatus
own_backward (TdBackward *b)
{
  b->gx[0] = b->gy[0];
  return TD_OK;
}

static void
out__names_all_that_it_lacks_before_there_is_a_file (void **state)
{
  static char names[MOST_LINES][64];
  static TdOpClass classes[MOST_LINES];
  TdVar *y;

  (void)state;
  td_test_needs_cpu ("a device has no operations that the host computes");
  n_heard = 0;
  y = td_variable (td_ones (TD_F32, TD_SHAPE (2, 3)), NULL);
  for (int i = 0; i < MOST_LINES; i++)
    {
      TdVar *x = y;

      snprintf (names[i], sizeof names[i], "an_operation_of_the_program_with_number_%d", i);
      classes[i] = (TdOpClass){ .name = names[i],
                                .label = names[i],
                                .group = "own",
                                .formula = "x",
                                .n_in_min = 1,
                                .n_in_max = 1,
                                .n_out = 1,
                                .flags = TD_OP_HOST,
                                .infer = own_infer,
                                .forward = own_forward,
                                .backward = own_backward };
      assert_int_equal (td_apply (&classes[i], NULL, &x, 1, &y, 1), TD_OK);
    }
  assert_int_equal (td_save_onnx (&y, 1, file ("own.onnx"), .lack = hear), TD_ERR_ARG);
  assert_int_equal (n_heard, MOST_LINES);
  for (int i = 0; i < MOST_LINES; i++)
    assert_non_null (strstr (heard[i], names[i]));
  assert_non_null (strstr (heard[79], "_number_79 at test-onnx-out.c:"));
  const char *message = said (TD_ERR_ARG);
  assert_non_null (strstr (message, "ONNX does not have an_operation_of_the_program_with_number"
                                    "_0 at test-onnx-out.c:"));
  assert_non_null (strstr (message, " more: leave them out, or ask for custom_domains"));
  assert_int_not_equal (access (file ("own.onnx"), F_OK), 0);
  assert_int_equal (td_save_onnx (&y, 1, file ("own.onnx"), .custom_domains = true), TD_OK);
  assert_int_equal (access (file ("own.onnx"), F_OK), 0);
  n_heard = 0;
}

/* A file would have the numbers of this run where its input should be. */
static void
out__refuses_what_kept_no_graph (void **state)
{
  TdLink *l = td_linear_new (NULL, "l", 3, 2);
  TdVar *x = td_ones (TD_F32, TD_SHAPE (2, 3)), *other = td_ones (TD_F32, TD_SHAPE (2, 2));
  TdVar *y = NULL, *h = NULL, *z, *both[] = { x, other };

  (void)state;
  TD_NO_BACKPROP
    y = td_link (l, x);
  assert_int_equal (td_save_onnx (&y, 1, file ("no.onnx"), .in = &x, .n_in = 1), TD_ERR_ARG);
  assert_non_null (strstr (said (TD_ERR_ARG), "kept no graph"));
  TD_NO_BACKPROP
    h = td_mul_scalar (x, 2);
  y = td_link (l, h);
  assert_int_equal (td_save_onnx (&y, 1, file ("no.onnx"), .in = &x, .n_in = 1), TD_ERR_ARG);
  assert_non_null (strstr (said (TD_ERR_ARG), "kept no graph"));
  z = td_link (l, x);
  assert_int_equal (td_save_onnx (&z, 1, file ("no.onnx"), .in = both, .n_in = 2), TD_ERR_ARG);
  assert_non_null (strstr (said (TD_ERR_ARG), "no output was computed from input 1"));
  both[1] = x;
  assert_int_equal (td_save_onnx (&z, 1, file ("no.onnx"), .in = both, .n_in = 2), TD_ERR_ARG);
  assert_non_null (strstr (said (TD_ERR_ARG), "input 1 is input 0 once more"));
  assert_int_not_equal (access (file ("no.onnx"), F_OK), 0);
  assert_int_equal (td_save_onnx (&z, 1, "/nowhere/no.onnx"), TD_ERR_IO);
  said (TD_ERR_IO);
  assert_int_equal (td_save_onnx (NULL, 0, file ("no.onnx")), TD_ERR_ARG);
  said (TD_ERR_ARG);
  td_link_free (l);
}

/* --- weights --- */

static void
out__puts_weights_beside_where_they_are_too_many (void **state)
{
  const size_t most = td__onnx_most_bytes;
  Net net;

  (void)state;
  td_test_python ("onnxruntime");
  net_new (&net);
  TD_USING (train, 0)
    for (int asked = 0; asked < 2; asked++)
      TD_SCOPE ("call")
        {
          TdVar *x = images (2), *y = net_kept (&net, x);
          char *text;

          td__onnx_most_bytes = asked ? most : 1000;
          assert_int_equal (td_save_onnx (&y, 1, file (asked ? "asked.onnx" : "many.onnx"),
                                          .in = &x, .n_in = 1, .weights_beside = asked),
                            TD_OK);
          td__onnx_most_bytes = most;
          assert_int_equal (access (file (asked ? "asked.onnx.data" : "many.onnx.data"), F_OK),
                            0);
          keep_case (asked ? "asked.onnx" : "many.onnx", 0, &x, 1, &y, 1);
          text = run_onnx (asked ? "asked.onnx" : "many.onnx", false);
          assert_non_null (strstr (text, "1 runs"));
          free (text);
        }
  td_link_free (net.root);
}

/* --- and in again --- */

static TdVar *
loss_of (TdVar *y, TdVar *t)
{
  return td_mean_squared_error (y, t);
}

/* One step of plain gradient descent on a link's parameters, from the loss of these. */
static double
train (TdLink *link, Net *net, TdOpt *opt, unsigned seed)
{
  double loss = 0;

  TD_SCOPE ("step")
    {
      TdVar *x = images (5), *t = td_zeros (TD_F32, TD_SHAPE (5, 4)), *y, *l;

      fill (x, seed);
      fill (t, seed + 1);
      y = net != NULL ? net_call (net, x) : td_link (link, x);
      l = loss_of (y, t);
      td_cleargrads (link);
      td_backward (l, 0);
      td_opt_update (opt);
      loss = td_item (l);
    }
  return loss;
}

/* Ours, as it is searched in the link that came in. */
typedef struct
{
  TdLink *back;
  const char *path;
  TdVar *twin;
  int n_same;
} Twin;

/* "graph/net/c1/W" came from "net/c1/W". */
static void
find_twin (const char *path, TdVar *param, void *user)
{
  Twin *t = user;
  const size_t n = strlen (path), n_of = strlen (t->path);

  if (n >= n_of && strcmp (path + n - n_of, t->path) == 0)
    t->twin = param;
}

static void
same_bits (const char *path, TdVar *param, void *user)
{
  Twin *t = user;
  const size_t n = (size_t)td_size (param) * sizeof (float);
  char *a = malloc (n), *b = malloc (n);

  t->path = path;
  t->twin = NULL;
  td_link_each_param (t->back, find_twin, t);
  if (t->twin == NULL)
    fail_msg ("%s did not come in again", path);
  assert_int_equal (td_read (param, a, n), TD_OK);
  assert_int_equal (td_read (t->twin, b, n), TD_OK);
  if (memcmp (a, b, n) != 0)
    fail_msg ("%s has other bits", path);
  t->n_same++;
  free (a);
  free (b);
}

static void
out__comes_in_again_and_trains_on_bit_for_bit (void **state)
{
  TdLink *back;
  TdOpt *opt, *opt_back;
  Twin twin = { 0 };
  Net net;

  (void)state;
  net_new (&net);
  opt = td_sgd_new (net.root, .lr = 0.05);
  for (unsigned i = 0; i < 3; i++)
    train (net.root, &net, opt, 10 * i);
  TD_USING (train, 0)
    TD_SCOPE ("call")
      {
        TdVar *x = images (2), *y = net_kept (&net, x);

        assert_int_equal (td_save_onnx (&y, 1, file ("net.onnx"), .in = &x, .n_in = 1), TD_OK);
      }
  back = td_onnx_load (file ("net.onnx"), .train = true);
  opt_back = td_sgd_new (back, .lr = 0.05);
  for (unsigned i = 3; i < 9; i++)
    {
      const double loss = train (net.root, &net, opt, 10 * i),
                   again = train (back, NULL, opt_back, 10 * i);

      if (loss != again)
        fail_msg ("step %u: a loss of %.17g, and %.17g", i, loss, again);
    }
  twin.back = back;
  td_link_each_param (net.root, same_bits, &twin);
  assert_int_equal (twin.n_same, 8);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (out__of_the_graph_that_ran_computes_the_same_with_other_batches),
    engine_test (out__of_a_batch_of_one_runs_with_others),
    engine_test (out__of_images_as_large_as_the_batch_follows_the_batch),
    engine_test (out__of_large_images_between_pixels_is_as_near_as_of_small_ones),
    engine_test (out__of_places_finds_them_in_the_image_where_all_is_as_small_as_padding),
    engine_test (out__of_an_lstm_follows_the_batch_and_not_the_length),
    engine_test (out__keeps_the_batch_that_an_operation_has_as_a_number),
    engine_test (out__opens_the_axes_that_are_asked_for),
    engine_test (out__says_what_is_wrong_with_axes),
    engine_test (out__names_all_that_it_lacks_before_there_is_a_file),
    engine_test (out__refuses_what_kept_no_graph),
    engine_test (out__puts_weights_beside_where_they_are_too_many),
    engine_test (out__comes_in_again_and_trains_on_bit_for_bit),
  };

  return cmocka_run_group_tests_name ("onnx_out", tests, NULL, NULL);
}
