/* Numbers of an operation that may be the size of an open axis: the file says that the axis
 * stays, or what it took them for.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

enum
{
  BATCH = 5,
  LENGTH = 7
};

static char told[4000];

static void
tell (const char *line, void *user)
{
  const size_t n = strlen (told);

  (void)user;
  snprintf (told + n, sizeof told - n, "%s\n", line);
}

/* --- programs of x (batch, length, 2) --- */

static TdVar *
classes (TdVar *x)
{
  return td_one_hot (td_argmax (x, 1), (int)td_shape (x).dim[1], TD_F32);
}

static TdVar *
padding (TdVar *x)
{
  const int by[] = { 0, 0, 0, (int)td_shape (x).dim[1] };

  return td_pad (td_mean_axes (x, (int[]){ 1 }, 1, false), by, TD_PAD_CONSTANT, 0);
}

static TdVar *
window (TdVar *x)
{
  const TdShape s = td_shape (x);

  return td_average_pooling_2d (td_reshape (x, TD_SHAPE (s.dim[0], 1, s.dim[1], 2)),
                                .ksize = { (int)s.dim[1], 1 });
}

/* A window over all of another axis is a number of the code's. */
static TdVar *
window_over_2 (TdVar *x)
{
  const TdShape s = td_shape (x);

  return td_max_pooling_2d (td_reshape (x, TD_SHAPE (s.dim[0], 1, s.dim[1], 2)),
                            .ksize = { 1, 2 });
}

static TdVar *
images (TdVar *x)
{
  const TdShape s = td_shape (x);

  return td_resize_images (td_reshape (x, TD_SHAPE (s.dim[0], 1, s.dim[1], 2)), (int)s.dim[1],
                           3);
}

/* It sees all keys, those before it are one less. */
static TdVar *
one_query (TdVar *x)
{
  const int64_t n = td_shape (x).dim[1];
  TdVar *q = td_mean_axes (x, (int[]){ 1 }, 1, true);

  return td_mul (td_batch_matmul (q, x, false, true), td_causal_mask (TD_F32, 1, n));
}

static TdVar *
as_many_queries (TdVar *x)
{
  const int64_t n = td_shape (x).dim[1];

  return td_mul (td_batch_matmul (x, x, false, true), td_causal_mask (TD_F32, n, n));
}

static TdVar *
by_places (TdVar *x, double from, double end, double by)
{
  return td_mul (x, td_reshape (td_arange (TD_F32, from, end, by), TD_SHAPE (-1, 1)));
}

static TdVar *
places (TdVar *x)
{
  return by_places (x, 2, (double)td_shape (x).dim[1] + 2, 1); /* 2 come before */
}

static TdVar *
places_from_the_end (TdVar *x)
{
  return by_places (x, (double)td_shape (x).dim[1] - 1, -1, -1);
}

static TdVar *
places_before (TdVar *x)
{
  return by_places (x, -(double)td_shape (x).dim[1], 0, 1);
}

static TdVar *
places_as_parts (TdVar *x)
{
  const double n = (double)td_shape (x).dim[1];

  return by_places (x, 0, 1 - 0.5 / n, 1 / n);
}

static TdVar *
places_behind (TdVar *x)
{
  const double n = (double)td_shape (x).dim[1];

  return by_places (x, n, 2 * n, 1);
}

/* The rows of all pairs, broadcast to their number. */
static TdVar *
pairs (TdVar *x)
{
  const int64_t n = td_shape (x).dim[0];
  TdVar *rows = td_sum_axes (x, (int[]){ 1 }, 1, false);
  TdVar *each = td_reshape (td_matmul (rows, rows, false, true), TD_SHAPE (n * n, 1));

  return td_broadcast_to (each, TD_SHAPE (n * n, 3));
}

static TdVar *
pairs_in_a_row (TdVar *x)
{
  const int64_t n = td_shape (x).dim[0];
  TdVar *rows = td_sum_axes (x, (int[]){ 1 }, 1, false);

  return td_broadcast_to (td_reshape (td_matmul (rows, rows, false, true), TD_SHAPE (1, n * n)),
                          TD_SHAPE (2, n * n));
}

/* Ones for what is there, zeros for the rest. */
static TdVar *
filled (TdVar *x)
{
  const int64_t n = td_shape (x).dim[1];
  TdVar *parts[] = { td_ones (TD_F32, TD_SHAPE (n)), td_zeros (TD_F32, TD_SHAPE (16 - n)) };
  TdVar *mask = td_concat (parts, 2, 0);

  return td_add (td_mul (mask, td_arange (TD_F32, 0, 16, 1)), td_sum (x));
}

static const struct
{
  TdVar *(*call) (TdVar *x);
  const char *says[2]; /* of the graph that ran, of a static function; NULL: nothing */
} cases[] = {
  { classes, { "length stays 7: one_hot", "length stays 7: one_hot" } },
  { padding, { "length stays 7: pad", "length stays 7: pad" } },
  { window, { "length stays 7: average_pooling_2d", "length stays 7: average_pooling_2d" } },
  { window_over_2, { NULL, NULL } },
  { images, { "length stays 7: resize_images", "length stays 7: resize_images" } },
  { one_query, { "length stays 7: ", "length stays 7: greater_equal" } },
  { as_many_queries, { "length stays 7: ", NULL } },
  { places, { "length stays 7: ", "7 is length and not a number in the array (7)" } },
  { places_from_the_end, { "length stays 7: ", "length stays 7: " } },
  { places_before, { "length stays 7: ", "length stays 7: " } },
  { places_as_parts, { "length stays 7: ", "length stays 7: " } },
  { places_behind, { "length stays 7: ", "length stays 7: " } },
  { pairs, { "batch stays 5: broadcast_to", "batch stays 5: broadcast_to" } },
  { pairs_in_a_row, { "batch stays 5: broadcast_to", "batch stays 5: broadcast_to" } },
  { filled, { "7 is a number and not length", "7 is a number and not length" } },
};

static void
call_it (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *(*const *call) (TdVar * x) = self;

  (void)n_in, (void)n_out;
  out[0] = (*call) (in[0]);
}

static void
save (TdVar *(*const *call) (TdVar *x), bool is_static)
{
  const char *path = td_test_tmp ("numbers.onnx"), *axes = "x:0=batch,x:1=length";
  TdVar *x = td_name (td_randn (TD_F32, TD_SHAPE (BATCH, LENGTH, 2)), "x"), *y;

  told[0] = '\0';
  if (is_static)
    {
      TdStatic *f = td_static_new (call_it, (void *)(uintptr_t)call);

      assert_int_equal (td_static_call (f, &x, 1, &y, 1), TD_OK);
      assert_int_equal (td_static_save (f, path, .axes = axes, .fixed = tell, .assumed = tell),
                        TD_OK);
      td_static_free (f);
      return;
    }
  TD_USING (keep_graph, true)
    {
      y = (*call) (x);
      assert_int_equal (td_save_onnx (&y, 1, path, .in = &x, .n_in = 1, .axes = axes,
                                      .fixed = tell, .assumed = tell),
                        TD_OK);
    }
}

static void
out__with_a_number_that_may_be_a_size_says_so (void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int is_static = 0; is_static < 2; is_static++)
      TD_SCOPE ("call")
        {
          const char *says = cases[i].says[is_static];

          save (&cases[i].call, is_static);
          if (says != NULL ? strstr (told, says) == NULL : strstr (told, "stays") != NULL)
            fail_msg ("case %zu, static %d: \"%s\" expected, told:\n%s", i, is_static,
                      says != NULL ? says : "(nothing)", told);
        }
}

/* x (1, 1, 4) as (-1, 4 * length): which of both axes the -1 takes is not known. */
static void
out__of_two_axes_of_one_in_a_size_left_open_says_so (void **state)
{
  const char *path = td_test_tmp ("left.onnx");
  TdVar *x, *y;

  (void)state;
  told[0] = '\0';
  TD_USING (keep_graph, true)
    {
      x = td_name (td_randn (TD_F32, TD_SHAPE (1, 1, 4)), "x");
      y = td_reshape (x, TD_SHAPE (-1, 4));
      assert_int_equal (td_save_onnx (&y, 1, path, .in = &x, .n_in = 1,
                                      .axes = "x:0=batch,x:1=length", .fixed = tell,
                                      .assumed = tell),
                        TD_OK);
    }
  assert_non_null (strstr (told, "a size is taken for batch or length in reshape"));
}

/* What cannot be saved has an error, also where the one that it failed by was taken. */
static void
out__of_what_has_failed_has_an_error (void **state)
{
  (void)state;
  TD_USING (keep_graph, true)
    {
      TdVar *x = td_name (td_randn (TD_F32, TD_SHAPE (2, 3)), "x");
      TdVar *y = td_reshape (x, TD_SHAPE (4, 2));

      assert_non_null (td_error ());
      td_error_clear ();
      assert_int_equal (td_save_onnx (&y, 1, td_test_tmp ("failed.onnx"), .in = &x, .n_in = 1),
                        TD_ERR_STATE);
      assert_non_null (td_error ());
      assert_non_null (strstr (td_error ()->message, "an operation that failed"));
      td_error_clear ();
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (out__with_a_number_that_may_be_a_size_says_so),
    engine_test (out__of_what_has_failed_has_an_error),
    engine_test (out__of_two_axes_of_one_in_a_size_left_open_says_so),
  };

  return cmocka_run_group_tests_name ("onnx-numbers", tests, NULL, NULL);
}
