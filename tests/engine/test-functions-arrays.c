/* Functions of arrays, rule by rule: what is composed, what is empty, what is refused.
 * SPDX-License-Identifier: MIT */
#include "start.h"

#include "compute/ops/ops.h"

#include <math.h>
#include <string.h>

enum
{
  MANY = 1100 /* pieces: more than two operations cut */
};

static void
expect_shape (const TdVar *v, TdShape want)
{
  const TdShape got = td_shape (v);

  assert_false (td_poisoned (v));
  assert_int_equal (got.ndim, want.ndim);
  for (int i = 0; i < want.ndim; i++)
    assert_int_equal (got.dim[i], want.dim[i]);
}

static void
expect (TdVar *y, TdStatus status, const char *text)
{
  assert_true (td_poisoned (y));
  assert_non_null (td_error ());
  assert_contains (td_error ()->message, text);
  assert_null (strchr (td_error ()->message, '\n'));
  assert_int_equal (td_error ()->status, status);
  td_error_clear ();
}

static void
split_axis_indices__cuts_more_pieces_than_one_operation_holds (void **unused)
{
  TD_SCOPE ("test")
    {
      static TdVar *pieces[MANY];
      static int64_t indices[MANY - 1];
      static float gx[2 * MANY];
      TdVar *x = td_variable (td_arange (TD_F32, 0, 2 * MANY, 1), "x"), *sum;

      for (int k = 0; k < MANY - 1; k++)
        indices[k] = 2 * k + 2;
      assert_int_equal (td_split_axis_indices (x, indices, MANY - 1, 0, pieces), TD_OK);
      for (int k = 0; k < MANY; k += 99)
        {
          float two[2];

          assert_int_equal (td_read (pieces[k], two, sizeof two), TD_OK);
          assert_true (two[0] == (float)(2 * k) && two[1] == (float)(2 * k + 1));
        }
      sum = td_add (td_sum (pieces[0]), td_mul_scalar (td_sum (pieces[MANY - 1]), 3));
      assert_int_equal (td_backward (sum, 0), TD_OK);
      assert_int_equal (td_read (td_grad (x), gx, sizeof gx), TD_OK);
      assert_true (gx[0] == 1 && gx[1] == 1 && gx[2] == 0 && gx[1024] == 0);
      assert_true (gx[2 * MANY - 3] == 0 && gx[2 * MANY - 1] == 3);
    }
}

/* A piece that dies takes no other one's place in the operation that made both. */
static void
split_axis_indices__keeps_the_gradient_of_a_piece_when_the_others_die (void **unused)
{
  static TdVar *pieces[500];
  static int64_t indices[499];
  float gx[500];

  for (int k = 0; k < 499; k++)
    indices[k] = k + 1;
  TD_SCOPE ("test")
    {
      TdVar *x = td_variable (td_arange (TD_F32, 0, 500, 1), "x"), *kept[2] = { NULL };

      TD_SCOPE ("pieces")
        {
          td_split_axis_indices (x, indices, 499, 0, pieces);
          kept[0] = td_scope_yield (pieces[44]); /* 300 and 44 are one number in 8 bits */
          kept[1] = td_scope_yield (pieces[401]);
        }
      td_backward (td_sum (td_add (kept[0], td_mul_scalar (kept[1], 2))), 0);
      assert_non_null (td_grad (x));
      assert_int_equal (td_read (td_grad (x), gx, sizeof gx), TD_OK);
      for (int k = 0; k < 500; k++)
        assert_true (gx[k] == (k == 44 ? 1 : k == 401 ? 2 : 0));
    }
}

static void
arrays__may_be_empty (void **unused)
{
  const int widths[] = { 1, 1, 0, 0 }, twice[] = { 2, 2 }, none[] = { 0 };

  TD_SCOPE ("test")
    {
      TdVar *e = td_zeros (TD_F32, TD_SHAPE (0, 3)), *i = td_zeros (TD_I32, TD_SHAPE (0));
      TdVar *x = td_ones (TD_F32, TD_SHAPE (2, 3)), *both[] = { e, x }, *out[2];

      expect_shape (td_swapaxes (e, 0, 1), TD_SHAPE (3, 0));
      expect_shape (td_flip (e, 0), TD_SHAPE (0, 3));
      expect_shape (td_pad (e, widths, TD_PAD_CONSTANT, 1), TD_SHAPE (2, 3));
      expect_shape (td_repeat (e, twice, 1, 1), TD_SHAPE (0, 6));
      expect_shape (td_repeat (x, none, 1, 0), TD_SHAPE (0, 3));
      expect_shape (td_tile (e, twice, 2), TD_SHAPE (0, 6));
      expect_shape (td_tile (x, none, 1), TD_SHAPE (2, 0));
      expect_shape (td_vstack (both, 2), TD_SHAPE (2, 3));
      expect_shape (td_pad_sequence (both, 2, -1, 0), TD_SHAPE (2, 2, 3));
      expect_shape (td_get_item_arrays (x, &i, 1, 0), TD_SHAPE (0, 3));
      expect_shape (td_get_item_arrays (e, &i, 1, 0), TD_SHAPE (0, 3));
      expect_shape (td_scatter_add_arrays (x, &i, 1, 0, e), TD_SHAPE (2, 3));
      expect_shape (td_one_hot (i, 4, TD_F32), TD_SHAPE (0, 4));
      td_split_axis_indices (x, (const int64_t[]){ 2 }, 1, 0, out);
      expect_shape (out[1], TD_SHAPE (0, 3));
    }
}

static void
arrays__have_no_gradient_where_there_is_none (void **unused)
{
  TD_SCOPE ("test")
    {
      TdVar *t = td_zeros (TD_I64, TD_SHAPE (3));
      TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (3, 2)), "x");
      TdVar *y = td_mul (td_one_hot (t, 2, TD_F32), x);
      float gx[6], want[] = { 1, 0, 1, 0, 1, 0 };

      td_backward (td_sum (y), 0);
      assert_int_equal (td_read (td_grad (x), gx, sizeof gx), TD_OK);
      assert_memory_equal (gx, want, sizeof want);
      assert_null (td_grad (t));
    }
}

static void
arrays__say_what_they_refuse_on_one_line (void **unused)
{
  const int32_t far[] = { 0, 4 };
  const int minus[] = { -1, 0, 0, 0 }, each[] = { 1, 2 }, many[] = { 2, 2, 2, 2, 2, 2, 2, 2 };

  TD_SCOPE ("test")
    {
      TdVar *x = td_ones (TD_F32, TD_SHAPE (4, 3)), *v = td_ones (TD_F32, TD_SHAPE (3));
      TdVar *t = td_tensor (TD_I32, TD_SHAPE (2), far), *mixed[] = { x, v }, *out[4];

      expect (td_get_item_arrays (x, &t, 1, 0), TD_ERR_ARG,
              "0 <= index[i] < 4 expected, got 4 at element 1");
      expect (td_get_item_arrays (x, &t, 1, 2), TD_ERR_SHAPE, "1 axes from axis 2 on expected");
      expect (td_get_item_arrays (x, &t, 0, 0), TD_ERR_ARG,
              "1 to 8 arrays of indices expected");
      expect (td_scatter_add_arrays (x, &t, 1, 0, v), TD_ERR_SHAPE,
              "b of what the indices pick expected");
      expect (td_one_hot (t, 4, TD_F32), TD_ERR_ARG,
              "0 <= t[i] < 4 expected, got 4 at element 1");
      expect (td_one_hot (t, 5, TD_U8), TD_ERR_DTYPE, "f32, f64, i32 or i64 expected");
      expect (td_pad (x, minus, TD_PAD_CONSTANT, 0), TD_ERR_ARG, "pad_width >= 0 expected");
      expect (td_pad (x, minus, TD_PAD_EDGE, 0), TD_ERR_ARG, "0 <= pad_width");
      expect (td_pad_sequence (mixed, 2, -1, 0), TD_ERR_SHAPE, "input 1 differs elsewhere");
      expect (td_pad_sequence (&x, 1, 3, 0), TD_ERR_ARG,
              "length >= 4, that of the longest, expected, got 3");
      expect (td_repeat (x, each, 2, 0), TD_ERR_SHAPE,
              "one number of repeats for each of axis 0 expected, got 2");
      expect (td_repeat (x, minus, 1, 0), TD_ERR_ARG, "repeats >= 0 expected");
      expect (td_tile (x, many, 8), TD_ERR_SHAPE, "at most 8 axes");
      expect (td_moveaxis (x, 2, 0), TD_ERR_SHAPE, "axis < x.ndim expected, got axis 2");
      expect (td_im2col (v), TD_ERR_SHAPE, "x.ndim == 4 expected, got 1");
      expect (td_im2col (td_ones (TD_F32, TD_SHAPE (1, 1, 4, 4)), .stride = { 0, 1 }),
              TD_ERR_ARG, "ksize, stride and dilate >= 1");
      assert_int_equal (td_separate (x, 2, out), TD_ERR_SHAPE);
      td_error_clear ();
    }
}

/* y of x in another size, and the gradient of the sum of its squares. */
static void
resize_both_ways (const TdResizeImagesOpt *o, double *numbers)
{
  TdVar *x = td_variable (td_arange (TD_F64, 0, 48, 1), NULL), *y;

  y = td_resize_images_ (td_reshape (td_sin (x), TD_SHAPE (2, 2, 3, 4)), 5, 7, o);
  td_read (y, numbers, 140 * sizeof *numbers);
  y = td_sum (td_mul (y, y));
  td_backward (y, 0);
  td_read (td_grad (x), numbers + 140, 48 * sizeof *numbers);
}

static void
resize_images__gathers_where_a_device_has_no_kernel (void **state)
{
  static const TdResizeImagesOpt ways[]
      = { { "bilinear", true, 0 }, { "bilinear", false, 0 }, { "nearest", true, 0 } };
  TdDevice *d = td_device_get ("cpu");
  const TdDeviceOps *own = d->ops;
  TdDeviceOps bare = *own;

  (void)state;
  td_test_needs_cpu ("what it compares is the CPU's kernel");
  bare.resize = NULL;
  for (int i = 0; i < TD_ARRAY_LENGTH (ways); i++)
    {
      double kernel[188], gathered[188];

      resize_both_ways (&ways[i], kernel);
      d->ops = &bare;
      resize_both_ways (&ways[i], gathered);
      d->ops = own;
      assert_null (td_error ());
      for (int k = 0; k < 188; k++)
        assert_true (fabs (kernel[k] - gathered[k]) < 1e-13);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (split_axis_indices__cuts_more_pieces_than_one_operation_holds),
    td_test (split_axis_indices__keeps_the_gradient_of_a_piece_when_the_others_die),
    td_test (arrays__may_be_empty),
    td_test (arrays__have_no_gradient_where_there_is_none),
    td_test (resize_images__gathers_where_a_device_has_no_kernel),
    td_test (arrays__say_what_they_refuse_on_one_line),
  };

  return run_with_engine (tests);
}
