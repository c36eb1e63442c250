/* An ONNX file with an open batch: with others it is right, whatever the code meant by a
 * number, or it says that it is for one.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "onnx-run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
 * for one. */
static void
out__of_a_reshape_is_right_or_says_that_the_batch_stays (void **state)
{
  static const int64_t saved_with[] = { 1, 5, 4 }, others[] = { 4, 8, 5 };

  (void)state;
  td_test_python ("onnxruntime");
  for (int kind = 0; kind < N_RESHAPES; kind++)
    for (int b = kind == GHOST ? 2 : 0; b < 3; b++)
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

/* --- sizes that are the batch's by the code or by chance --- */

static int n_fixed, n_assumed;

static void
count_fixed (const char *line, void *user)
{
  (void)line, (void)user;
  n_fixed++;
}

static void
count_assumed (const char *line, void *user)
{
  (void)line, (void)user;
  n_assumed++;
}

static TdVar *
turned (TdVar *x)
{
  return td_reshape (td_transpose (x, (int[]){ 1, 0 }), TD_SHAPE (td_shape (x).dim[0], 6));
}

static TdVar *
moved (TdVar *x)
{
  return td_moveaxis (td_reshape (x, TD_SHAPE (2, td_shape (x).dim[0], 3)), 1, 0);
}

static TdVar *
halved (TdVar *x)
{
  return td_argmin (td_reshape (x, TD_SHAPE (2, 3 * td_shape (x).dim[0])), 1);
}

static TdVar *
kept (TdVar *x)
{
  return td_sum_to (td_relu (x), TD_SHAPE (1, 6));
}

/* A size that the code wrote and that is the batch's as well is not taken for it in silence. */
static void
out__of_a_size_that_may_be_the_batch_stays_or_says_so (void **state)
{
  static const struct
  {
    TdVar *(*call) (TdVar *x);
    int64_t n;
    bool stays;
  } cases[] = { { turned, 6, true }, { turned, 3, true },  { moved, 2, true },
                { moved, 3, true },  { halved, 2, false }, { kept, 1, false } };

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    TD_USING (keep_graph, 1)
      TD_SCOPE ("call")
        {
          TdVar *x = td_zeros (TD_F32, TD_SHAPE (cases[i].n, 6)), *y;

          fill (x, 3);
          y = cases[i].call (x);
          n_fixed = n_assumed = 0;
          assert_int_equal (td_save_onnx (&y, 1, td_test_tmp ("chance.onnx"), .in = &x,
                                          .n_in = 1, .fixed = count_fixed,
                                          .assumed = count_assumed),
                            TD_OK);
          assert_int_equal (n_fixed > 0, cases[i].stays);
          assert_true (n_fixed + n_assumed > 0);
        }
}

/* --- arrays that the code makes from nothing, of a length that is the batch's or a multiple by
 * chance: of x (batch, 1) --- */

static int64_t n_made;

static TdVar *
beside_itself (TdVar *x)
{
  const int64_t n = td_shape (x).dim[0];
  TdVar *g = td_ones (TD_F32, TD_SHAPE (n, n_made));

  g = td_concat ((TdVar *[]){ g, g }, 2, 1);
  return td_sum_axes (td_mul (g, td_broadcast_to (x, TD_SHAPE (n, 2 * n_made))), (int[]){ 1 },
                      1, false);
}

static TdVar *
to_places (TdVar *x)
{
  const TdShape all = TD_SHAPE (td_shape (x).dim[0], n_made, 6);
  TdVar *places
      = td_reshape (td_arange (TD_F32, 0, (double)n_made, 1), TD_SHAPE (1, n_made, 1));

  x = td_broadcast_to (td_expand_dims (x, 2), all);
  return td_max_axes (td_add (x, td_broadcast_to (places, all)), (int[]){ 1 }, 1, false);
}

static TdVar *
near_centres (TdVar *x)
{
  const int64_t n = td_shape (x).dim[0];
  TdVar *c = td_mul_scalar (td_arange (TD_F32, 0, (double)n_made, 1), 0.5), *y;

  y = td_sub (td_broadcast_to (x, TD_SHAPE (n, n_made)),
              td_broadcast_to (td_expand_dims (c, 0), TD_SHAPE (n, n_made)));
  y = td_exp (td_neg (td_square (y)));
  y = td_concat ((TdVar *[]){ y, y }, 2, 1);
  return td_mul (y, td_broadcast_to (x, TD_SHAPE (n, 2 * n_made)));
}

static TdVar *
embedded_time (TdVar *x)
{
  TdVar *f = td_exp (td_mul_scalar (td_arange (TD_F32, 0, (double)n_made, 1), -0.7));
  TdVar *angle = td_mul (x, td_expand_dims (f, 0));

  angle = td_concat ((TdVar *[]){ td_sin (angle), td_cos (angle) }, 2, 1);
  return td_mul (angle, td_broadcast_to (x, TD_SHAPE (td_shape (x).dim[0], 2 * n_made)));
}

static TdVar *
beside_a_column (TdVar *x)
{
  return td_add (x, td_full (TD_F32, TD_SHAPE (n_made, 1), 2));
}

static TdVar *
squeezed (TdVar *x)
{
  return td_squeeze (x);
}

static TdVar *
by_twice_as_many (TdVar *x)
{
  return td_mul (x, td_sum (td_ones (TD_F32, TD_SHAPE (2 * td_shape (x).dim[0]))));
}

static TdVar *
of_large_numbers (TdVar *x)
{
  return td_sub (x, td_mul_scalar (td_sum (x), 1e4));
}

static TdVar *
nothing_of_it (TdVar *x)
{
  return td_zeros (TD_F32, TD_SHAPE (td_shape (x).dim[0], n_made));
}

static char told[1200];

static void
hear_all (const char *line, void *user)
{
  const size_t n = strlen (told);

  (void)user;
  snprintf (told + n, sizeof told - n, "%s\n", line);
}

static void
call_of_one (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *(*const *call) (TdVar * x) = self;

  (void)n_in, (void)n_out;
  out[0] = (*call) (in[0]);
  if (*call == nothing_of_it)
    out[1] = td_relu (in[0]);
}

static TdVar *
column (int64_t n)
{
  TdVar *x = td_zeros (TD_F32, TD_SHAPE (n, 1));

  fill (x, 3);
  return x;
}

/* Save what a function makes of a batch of n; what is fixed and assumed goes to told. */
static void
save_told (TdVar *(**call) (TdVar *x), int64_t n, bool is_static, const char *name)
{
  const int n_out = *call == nothing_of_it ? 2 : 1;
  TdStatic *s = td_static_new (call_of_one, call);
  TdVar *x = column (n), *out[2];

  told[0] = '\0';
  if (is_static)
    {
      assert_int_equal (td_static_call (s, &x, 1, out, n_out), TD_OK);
      assert_int_equal (
          td_static_save (s, td_test_tmp (name), .fixed = hear_all, .assumed = hear_all),
          TD_OK);
    }
  else
    TD_USING (keep_graph, 1)
      {
        call_of_one (call, &x, 1, out, n_out);
        assert_int_equal (td_save_onnx (out, n_out, td_test_tmp (name), .in = &x, .n_in = 1,
                                        .fixed = hear_all, .assumed = hear_all),
                          TD_OK);
      }
  td_static_free (s);
}

/* A length that is the batch's, or a multiple, by chance is no batch where it can be a number;
 * and what each size was taken for is said with the operation and its place. */
static void
out__of_arrays_made_from_nothing_says_what_their_sizes_were_taken_for (void **state)
{
  static struct
  {
    TdVar *(*call) (TdVar *x);
    int64_t n, length;
    bool runs;           /* with other batches, as the program does */
    const char *says[2]; /* of the graph that ran, of a static function */
  } cases[] = {
    { beside_itself,
      2,
      4,
      true,
      { "4 is a number and not a multiple of batch in the array (2, 4) of concat at" } },
    { beside_itself,
      3,
      9,
      true,
      { "9 is a number and not a multiple of batch in the array (3, 9) of concat at" } },
    { beside_itself, 5, 5, false, { "batch stays 5: " } },
    { to_places, 2, 4, true, { "4 is a number and not a multiple of batch in the array (" } },
    { near_centres,
      3,
      6,
      true,
      { "6 is a number and not a multiple of batch in the array (6) of mul_scalar at",
        "12 is a number and not a multiple of batch in broadcast_to at" } },
    { embedded_time,
      2,
      4,
      true,
      { "4 is a number and not a multiple of batch in the array (4) of mul_scalar at" } },
    { beside_a_column,
      5,
      5,
      false,
      { "5 is batch and not a number in the array (5, 1) of add at" } },
    { squeezed,
      4,
      1,
      false,
      { "where batch is 1 that axis stays, and the program drops it, in squeeze at" } },
    { by_twice_as_many,
      3,
      1,
      false,
      { "6 is a number and not a multiple of batch in the array (6) of sum at" } },
    { by_twice_as_many,
      1,
      1,
      false,
      { "2 is a number and not a multiple of batch in the array (2) of sum at" } },
    { of_large_numbers, 5, 1, false, { "batch stays 5: mul_scalar at test-onnx-batches.c:" } },
    { nothing_of_it,
      1,
      3,
      false,
      { "1 is a number and not batch in the array (1, 3) of output 0", "batch stays 1: " } },
  };

  (void)state;
  td_test_python ("onnxruntime");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int is_static = 0; is_static < 2; is_static++)
      TD_SCOPE ("call")
        {
          const char *says = cases[i].says[is_static && cases[i].says[1] != NULL];
          char name[40];

          snprintf (name, sizeof name, "made-%zu-%d.onnx", i, is_static);
          n_made = cases[i].length;
          save_told (&cases[i].call, cases[i].n, is_static, name);
          if (strstr (told, says) == NULL)
            fail_msg ("case %zu, static %d: \"%s\" expected, told:\n%s", i, is_static, says,
                      told);
          assert_null (strstr (told, "?:0"));
          for (int64_t n = 1; n <= 4 && cases[i].runs; n++)
            {
              TdVar *x = column (n), *y = cases[i].call (x);

              keep_case (name, (int)n - 1, &x, 1, &y, 1);
            }
          if (cases[i].runs)
            free (run_onnx (name, true));
        }
}

/* A number that counts nothing is not said to be the batch's size. */
static void
out__that_keeps_the_batch_by_a_number_says_that_it_may_be_its_size (void **state)
{
  static TdVar *(*call) (TdVar * x) = of_large_numbers;

  (void)state;
  TD_SCOPE ("call")
    {
      save_told (&call, 5, false, "number.onnx");
      assert_non_null (strstr (told, " has a number that may be its size, or one by it\n"));
    }
}

/* With two inputs, one may stay while the other is open. */
static void
out__of_an_input_that_stays_says_so (void **state)
{
  static const char *const says[]
      = { "axis 0 of y stays 6: get_item at ", "axis 0 of y stays 6: get_item at ",
          "axis 0 of y stays 6: embed_id at " };

  (void)state;
  for (int kind = 0; kind < 3; kind++)
    TD_USING (keep_graph, 1)
      TD_SCOPE ("call")
        {
          TdVar *in[2]
              = { td_name (td_zeros (kind < 2 ? TD_F32 : TD_I32, TD_SHAPE (6, 6)), "x"),
                  td_name (td_zeros (TD_F32, TD_SHAPE (6, 6)), "y") };
          TdVar *row = td_get_item (in[1], (TdSlice[]){ TD_RANGE (0, 1) }, 1), *z;

          z = kind == 0   ? td_add (in[0], row)
              : kind == 1 ? td_concat (((TdVar *[]){ in[0], row }), 2, 0)
                          : td_embed_id (in[0], in[1]);
          assumed[0] = '\0';
          assert_int_equal (td_save_onnx (&z, 1, td_test_tmp ("two.onnx"), .in = in, .n_in = 2,
                                          .fixed = hear_assumed),
                            TD_OK);
          assert_memory_equal (assumed, says[kind], strlen (says[kind]));
        }
}

static TdVar *
masked_by_length (TdVar *x)
{
  const int64_t n = td_shape (x).dim[0], length = td_shape (x).dim[1];
  const TdShape all = TD_SHAPE (n, length, length);

  return td_where (td_broadcast_to (td_causal_mask (TD_BOOL, length, length), all),
                   td_batch_matmul (x, x, false, true), td_full (TD_F32, all, -9));
}

/* An axis that cannot follow shuts no other. */
static void
out__of_two_axes_shuts_the_one_that_cannot_follow (void **state)
{
  TdLink *net = td_linear_new (NULL, "net", 6, 4);

  (void)state;
  fill_params (net, 5);
  for (int kind = 0; kind < 2; kind++)
    TD_USING (keep_graph, 1)
      TD_SCOPE ("call")
        {
          TdVar *x = td_name (
                    td_zeros (TD_F32, kind == 0 ? TD_SHAPE (3, 6) : TD_SHAPE (3, 5, 6)), "x"),
                *y = kind == 0 ? td_link (net, x) : masked_by_length (x);

          n_fixed = 0;
          assumed[0] = '\0';
          assert_int_equal (td_save_onnx (&y, 1, td_test_tmp ("axes.onnx"), .in = &x, .n_in = 1,
                                          .axes = "x:0=b,x:1=l", .fixed = hear_assumed),
                            TD_OK);
          assert_memory_equal (assumed, "l stays ", 8);
          assert_non_null (strstr (assumed, kind == 0 ? "6: linear at test-onnx-batches.c:"
                                                      : "5: where at test-onnx-batches.c:"));
          if (kind == 0)
            assert_non_null (strstr (assumed, " in net is possible "));
        }
  td_link_free (net);
}

static void
out__with_an_axis_that_has_no_name_is_refused (void **state)
{
  static const char *const wrong[] = { "0:0=7", "0:0=2*b", "0:0=a b", "0:0=" };

  (void)state;
  TD_USING (keep_graph, 1)
    TD_SCOPE ("call")
      {
        TdVar *x = td_zeros (TD_F32, TD_SHAPE (3, 6)), *y = td_relu (x);

        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
          {
            assert_int_equal (td_save_onnx (&y, 1, td_test_tmp ("named.onnx"), .in = &x,
                                            .n_in = 1, .axes = wrong[i]),
                              TD_ERR_ARG);
            td_error_clear ();
          }
        assert_int_equal (td_save_onnx (&y, 1, td_test_tmp ("named.onnx"), .in = &x, .n_in = 1,
                                        .axes = "0:0=b_7"),
                          TD_OK);
      }
}

static TdLink *words, *through;

static void
embedded (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)n_in, (void)n_out;
  out[0] = td_link (through, td_link (words, in[0]));
}

/* A length that is a multiple of the batch is a number, and no reason for the batch to stay. */
static void
out__of_a_length_that_the_batch_divides_is_open_in_both_ways (void **state)
{
  TdLink *net = td_chain_new ("net");

  (void)state;
  words = td_embed_id_new (net, "words", 9, 8);
  through = td_linear_new (net, "through", 8, 8, .n_batch_axes = 2);
  fill_params (net, 5);
  for (int is_static = 0; is_static < 2; is_static++)
    TD_USING (keep_graph, !is_static)
      TD_SCOPE ("call")
        {
          TdVar *x = td_zeros (TD_I64, TD_SHAPE (3, 6)), *y;
          TdStatic *s = td_static_new (embedded, NULL);

          n_fixed = 0;
          if (is_static)
            {
              assert_int_equal (td_static_call (s, &x, 1, &y, 1), TD_OK);
              assert_int_equal (
                  td_static_save (s, td_test_tmp ("words.onnx"), .fixed = count_fixed), TD_OK);
            }
          else
            {
              embedded (NULL, &x, 1, &y, 1);
              assert_int_equal (td_save_onnx (&y, 1, td_test_tmp ("words.onnx"), .in = &x,
                                              .n_in = 1, .fixed = count_fixed),
                                TD_OK);
            }
          assert_int_equal (n_fixed, 0);
          td_static_free (s);
        }
  td_link_free (net);
}

static void
sampled (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)in, (void)n_in, (void)n_out;
  out[0] = td_add (td_cast (td_walker_alias_sample (self, TD_SHAPE (4)), TD_F32), in[0]);
}

/* Numbers that the host drew would be those of one call for ever. */
static void
out__of_numbers_that_the_host_draws_is_refused_by_name (void **state)
{
  static const char *const files[] = { "drawn.c", "drawn.onnx" };
  TdWalkerAlias *sampler = td_walker_alias_new ((const double[]){ 1, 2, 3 }, 3);
  TdStatic *s = td_static_new (sampled, sampler, .verify = 0);

  (void)state;
  TD_SCOPE ("call")
    {
      TdVar *x = td_zeros (TD_F32, TD_SHAPE (4)), *y;

      assert_int_equal (td_static_call (s, &x, 1, &y, 1), TD_OK);
      for (int i = 0; i < 2; i++)
        {
          assumed[0] = '\0';
          assert_int_equal (td_static_save (s, td_test_tmp (files[i]), .lack = hear_assumed),
                            TD_ERR_ARG);
          assert_non_null (
              strstr (assumed, "(td_walker_alias_sample) at test-onnx-batches.c:"));
          assert_int_not_equal (access (td_test_tmp (files[i]), F_OK), 0);
          td_error_clear ();
        }
    }
  td_static_free (s);
  td_walker_alias_free (sampler);
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
    engine_test (out__of_a_size_that_may_be_the_batch_stays_or_says_so),
    engine_test (out__of_arrays_made_from_nothing_says_what_their_sizes_were_taken_for),
    engine_test (out__that_keeps_the_batch_by_a_number_says_that_it_may_be_its_size),
    engine_test (out__of_an_input_that_stays_says_so),
    engine_test (out__of_two_axes_shuts_the_one_that_cannot_follow),
    engine_test (out__with_an_axis_that_has_no_name_is_refused),
    engine_test (out__of_a_length_that_the_batch_divides_is_open_in_both_ways),
    engine_test (out__of_numbers_that_the_host_draws_is_refused_by_name),
  };

  return cmocka_run_group_tests_name ("onnx-batches", tests, NULL, NULL);
}
