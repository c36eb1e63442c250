/* An ONNX file with an open batch: with others it is right, whatever the code meant by a
 * number, or it says that it is for one.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "onnx-run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_heard;

static void
hear (const char *line, void *user)
{
  (void)line, (void)user;
  n_heard++;
}

/* The last line of what was taken for granted. */
static char assumed[300];

static void
hear_assumed (const char *line, void *user)
{
  (void)user;
  snprintf (assumed, sizeof assumed, "%s", line);
}

/* Reshapes by what the code knows of the batch. */
enum
{
  GHOST, /* four rows to a group, whatever the batch is */
  ROWS,
  ROWS_AND_REST,
  REST_LAST,
  MERGED,
  MERGED_OPEN,
  SPLIT,
  MERGED_AND_SPLIT,
  GROUPS, /* from here on the batch's elements are dealt out anew */
  COLUMNS,
  COLUMNS_OPEN,
  SECOND,
  N_RESHAPES
};

static TdVar *
reshaped_by (int kind, TdVar *x)
{
  const int64_t n = td_shape (x).dim[0];
  const TdShape shapes[N_RESHAPES] = {
    [GHOST] = TD_SHAPE (-1, 4, 24),     [ROWS] = TD_SHAPE (n, 24),
    [ROWS_AND_REST] = TD_SHAPE (n, -1), [REST_LAST] = TD_SHAPE (-1, 24),
    [MERGED] = TD_SHAPE (n * 4, 6),     [MERGED_OPEN] = TD_SHAPE (-1, 6),
    [SPLIT] = TD_SHAPE (n, 2, 2, 6),    [MERGED_AND_SPLIT] = TD_SHAPE (n * 4, 2, 3),
    [GROUPS] = TD_SHAPE (6, 4 * n),     [COLUMNS] = TD_SHAPE (24, n),
    [COLUMNS_OPEN] = TD_SHAPE (-1, n),  [SECOND] = TD_SHAPE (4, n, 6),
  };
  TdVar *y = td_reshape (x, shapes[kind]);

  return td_sub (y, td_mean_axes (y, (int[]){ 1 }, 1, true));
}

/* Whatever the code meant by a number, the file is right with other batches, or says that it is
 * for one. (A batch as large as the axis behind it is taken to be where it was.) */
static void
out__of_a_reshape_is_right_or_says_that_the_batch_stays (void **state)
{
  static const int64_t saved_with[] = { 1, 3, 4 }, others[] = { 4, 8, 3 };

  (void)state;
  td_test_python ("onnxruntime");
  for (int kind = 0; kind < N_RESHAPES; kind++)
    for (int b = kind == GHOST ? 2 : 0; b < (kind == SECOND ? 2 : 3); b++)
      {
        char name[40];
        int n_cases = 0;

        snprintf (name, sizeof name, "reshape-%d-%d.onnx", kind, b);
        n_heard = 0;
        TD_USING (keep_graph, 1)
          TD_SCOPE ("call")
            {
              TdVar *x = td_zeros (TD_F32, TD_SHAPE (saved_with[b], 4, 6)), *y;

              fill (x, 7);
              y = reshaped_by (kind, x);
              assert_int_equal (
                  td_save_onnx (&y, 1, td_test_tmp (name), .in = &x, .n_in = 1, .fixed = hear),
                  TD_OK);
              keep_case (name, n_cases++, &x, 1, &y, 1);
            }
        if (kind < GROUPS && kind != GHOST)
          assert_int_equal (n_heard, 0);
        for (int k = 0; k < (kind == GHOST ? 2 : 3) && n_heard == 0; k++)
          TD_SCOPE ("call")
            {
              TdVar *x = td_zeros (TD_F32, TD_SHAPE (others[k], 4, 6)), *y;

              fill (x, 8 + (unsigned)k);
              y = reshaped_by (kind, x);
              keep_case (name, n_cases++, &x, 1, &y, 1);
            }
        free (run_onnx (name, true));
      }
}

/* A mean by an array of the code is one of that many rows; a factor that counts nothing is not.
 */
static void
out__of_an_array_that_counts_the_rows_says_that_the_batch_stays (void **state)
{
  (void)state;
  for (int kind = 0; kind < 4; kind++)
    TD_USING (keep_graph, 1)
      TD_SCOPE ("call")
        {
          TdVar *x = td_zeros (TD_F32, TD_SHAPE (5, 4)), *y = NULL;
          TdVar *by = td_full (TD_F32, TD_SCALAR, kind == 0 ? 5 : kind == 1 ? 0.2 : 0.37);

          fill (x, 3);
          y = kind == 0   ? td_div (td_sum (x), by)
              : kind == 1 ? td_mul (by, td_sum (x))
              : kind == 2 ? td_mul (td_sum (x), by)
                          : td_div (x, td_full (TD_F32, TD_SHAPE (1), 5));
          n_heard = 0;
          assert_int_equal (td_save_onnx (&y, 1, td_test_tmp ("array.onnx"), .in = &x,
                                          .n_in = 1, .fixed = hear),
                            TD_OK);
          assert_int_equal (n_heard, kind < 2);
        }
}

/* Zeros that the code makes for one row are the state of every row. */
static void
out__of_a_recurrent_layer_with_a_batch_of_one_runs_with_others (void **state)
{
  TdLink *cell = td_stateless_lstm_new (NULL, "cell", 3, 5);

  (void)state;
  td_test_python ("onnxruntime");
  fill_params (cell, 5);
  for (int64_t n = 1; n <= 4; n += n < 3 ? 2 : 1)
    TD_USING (keep_graph, 1)
      TD_SCOPE ("call")
        {
          TdVar *x = td_zeros (TD_F32, TD_SHAPE (n, 3)), *out[2],
                *in[]
                = { td_zeros (TD_F32, TD_SHAPE (n, 5)), td_zeros (TD_F32, TD_SHAPE (n, 5)), x };

          fill (x, 11);
          td_link_call (cell, in, 3, out, 2);
          in[0] = out[0];
          in[1] = out[1];
          td_link_call (cell, in, 3, out, 2);
          if (n == 1)
            assert_int_equal (
                td_save_onnx (&out[1], 1, td_test_tmp ("cell.onnx"), .in = &x, .n_in = 1),
                TD_OK);
          keep_case ("cell.onnx", n == 1 ? 0 : (int)n - 2, &x, 1, &out[1], 1);
        }
  char *text = run_onnx ("cell.onnx", true);
  assert_non_null (strstr (text, "3 runs\ninput0(batch,3) -> output0(batch,5)\n"));
  assert_non_null (strstr (text, "LSTM"));
  free (text);
  td_link_free (cell);
}

/* A mask that has one number for each row, saved with one row: that number is the file's for
 * every row, which no operation forbids. */
static void
out__of_a_batch_of_one_says_which_numbers_may_be_the_batch (void **state)
{
  enum
  {
    MASK,
    MASK_OF_ONE,
    LABELS,
    ROW,
    FACTOR,
    N_KINDS
  };
  static const char *const says[] = {
    [MASK] = "1 is a number and not batch in the array (1, 1) of mul at test-onnx-batches.c:",
    [MASK_OF_ONE] = "1 is a number and not batch in the array (1, 1) of mul at ",
    [LABELS] = "all rows are the one of the array (1) of softmax_cross_entropy at ",
    [ROW] = "a size is taken for batch in reshape at ",
    [FACTOR] = "1 is no count of batch in mul_scalar at ",
  };

  (void)state;
  td_test_python ("onnxruntime");
  for (int kind = 0; kind < N_KINDS; kind++)
    TD_USING (keep_graph, 1)
      TD_SCOPE ("call")
        {
          TdVar *x = td_zeros (TD_F32, TD_SHAPE (1, 4)), *y = NULL;
          char *text;

          fill (x, 3);
          y = kind == MASK          ? td_mul (x, td_full (TD_F32, TD_SHAPE (1, 1), 0.5))
              : kind == MASK_OF_ONE ? td_mul (x, td_full (TD_F32, TD_SHAPE (1, 1), 1))
              : kind == LABELS ? td_softmax_cross_entropy (x, td_full (TD_I32, TD_SHAPE (1), 3))
              : kind == ROW    ? td_reshape (x, TD_SHAPE (1, -1))
                               : td_mul_scalar (x, 1);
          assumed[0] = '\0';
          assert_int_equal (td_save_onnx (&y, 1, td_test_tmp ("one.onnx"), .in = &x, .n_in = 1,
                                          .assumed = hear_assumed),
                            TD_OK);
          assert_memory_equal (assumed, says[kind], strlen (says[kind]));
          keep_case ("one.onnx", 0, &x, 1, &y, 1);
          text = run_onnx ("one.onnx", true);
          assert_non_null (strstr (text, "input0(batch,4) -> "));
          assert_non_null (strstr (text, "assumed="));
          assert_non_null (strstr (text, assumed));
          free (text);
        }
}

/* A size of 0 in the list of a reshape is 0, and not the size of that axis. */
static void
out__of_a_reshape_of_no_elements_runs (void **state)
{
  static const TdShape from[] = { { 2, { 4, 0 } }, { 2, { 2, 0 } }, { 3, { 3, 0, 5 } } },
                       to[] = { { 2, { 0, 3 } }, { 3, { 2, 3, 0 } }, { 2, { 5, 0 } } };

  (void)state;
  td_test_python ("onnxruntime");
  for (int i = 0; i < 3; i++)
    TD_USING (keep_graph, 1)
      TD_SCOPE ("call")
        {
          TdVar *x = td_zeros (TD_F32, from[i]), *y = td_reshape (td_add_scalar (x, 1), to[i]);

          assert_int_equal (
              td_save_onnx (&y, 1, td_test_tmp ("none.onnx"), .in = &x, .n_in = 1), TD_OK);
          keep_case ("none.onnx", 0, &x, 1, &y, 1);
          free (run_onnx ("none.onnx", true));
        }
}

/* What is known of its sizes is not said: of a parameter's, of a reshape that can mean one
 * thing. */
static void
out__of_a_batch_of_one_says_nothing_of_what_is_known (void **state)
{
  TdLink *net = td_linear_new (NULL, "net", 6, 1);

  (void)state;
  fill_params (net, 5);
  TD_USING (keep_graph, 1)
    TD_SCOPE ("call")
      {
        TdVar *x = td_zeros (TD_F32, TD_SHAPE (1, 2, 3)), *y;

        y = td_mul_scalar (td_link (net, td_reshape (x, TD_SHAPE (-1, 6))), 0.5);
        assumed[0] = '\0';
        assert_int_equal (td_save_onnx (&y, 1, td_test_tmp ("known.onnx"), .in = &x, .n_in = 1,
                                        .assumed = hear_assumed),
                          TD_OK);
        assert_string_equal (assumed, "");
      }
  td_link_free (net);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (out__of_a_reshape_is_right_or_says_that_the_batch_stays),
    engine_test (out__of_an_array_that_counts_the_rows_says_that_the_batch_stays),
    engine_test (out__of_a_recurrent_layer_with_a_batch_of_one_runs_with_others),
    engine_test (out__of_a_batch_of_one_says_which_numbers_may_be_the_batch),
    engine_test (out__of_a_batch_of_one_says_nothing_of_what_is_known),
    engine_test (out__of_a_reshape_of_no_elements_runs),
  };

  return cmocka_run_group_tests_name ("onnx-batches", tests, NULL, NULL);
}
