/* What one row per operation cannot say: labels, kinks, NaN on the way back, both ways to the
 * product's gradient, accumulation inside kernels, views, empty arrays, broken sums.
 * SPDX-License-Identifier: MIT */
#include "compute/ops/ops.h"
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static TdVar *
floats (int n, const float *x)
{
  return td_tensor (TD_F32, TD_SHAPE (n), x);
}

static void
expect_floats (const TdVar *v, int n, const float *want)
{
  float got[16];

  if (td_error () != NULL)
    fail_msg ("%s", td_error ()->message);
  assert_non_null (v);
  assert_int_equal (td_read (v, got, (size_t)n * sizeof *got), TD_OK);
  for (int i = 0; i < n; i++)
    if (!(got[i] == want[i] || (isnan (got[i]) && isnan (want[i]))))
      fail_msg ("element %d is %g, not %g", i, (double)got[i], (double)want[i]);
}

/* Chainer's labels (chainer/functions/math/basic_math.py and the class names). */
static void
labels__are_chainers (void **state)
{
  static const char *const rows[][2] = {
    { "add", "_ + _" },
    { "sub", "_ - _" },
    { "mul", "_ * _" },
    { "div", "_ / _" },
    { "pow", "_ ** _" },
    { "neg", "__neg__" },
    { "absolute", "|_|" },
    { "relu", "ReLU" },
    { "sigmoid", "Sigmoid" },
    { "tanh", "Tanh" },
    { "exp", "Exp" },
    { "log", "Log" },
    { "sum", "Sum" },
    { "prod", "Prod" },
    { "max", "Max" },
    { "min", "Min" },
    { "logsumexp", "LogSumExp" },
    { "reshape", "Reshape" },
    { "transpose", "Transpose" },
    { "concat", "Concat" },
    { "split_axis", "SplitAxis" },
    { "get_item", "GetItem" },
    { "select_item", "SelectItem" },
    { "where", "Where" },
    { "broadcast_to", "BroadcastTo" },
    { "expand_dims", "ExpandDims" },
    { "clip", "Clip" },
    { "squeeze", "Squeeze" },
    { "cast", "Cast" },
    { "copy", "Copy" },
  };
  static const struct
  {
    const char *op;
    double c;
    const char *label;
  } printed[] = { { "add_scalar", 1, "_ + 1" },
                  { "add_scalar", -0.5, "_ + -0.5" },
                  { "rsub_scalar", 1, "1 - _" },
                  { "pow_scalar", 2, "_ ** 2" },
                  { "mul_scalar", 0.1, "_ * 0.1" },
                  { "rdiv_scalar", 1, "1 / _" },
                  { "rpow_scalar", 2, "2 ** _" },
                  { "div_scalar", 3, "_ / 3" },
                  { "mul_scalar", 1.0 / 3, "_ * 0.3333333333333333" } };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    {
      const TdOpClass *c = td_op_class_find (rows[i][0]);

      assert_non_null (c);
      assert_string_equal (c->label, rows[i][1]);
    }
  for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++)
    {
      char text[64];

      td_op_class_find (printed[i].op)->print (&printed[i].c, text, sizeof text);
      assert_string_equal (text, printed[i].label);
    }
}

static void
every_class__says_what_it_is (void **state)
{
  for (int i = 0; td__op_classes[i] != NULL; i++)
    {
      const TdOpClass *c = td__op_classes[i];

      assert_non_null (c->name);
      assert_non_null (c->group);
      assert_non_null (c->formula);
      assert_non_null (c->infer);
      assert_true (c->label != NULL || c->print != NULL);
      assert_true (c->forward != NULL || (c->flags & TD_OP_VIEW) != 0);
      assert_true (c->backward != NULL || (c->flags & TD_OP_NO_GRAD) != 0);
      assert_ptr_equal (td_op_class_find (c->name), c);
      for (int k = 0; k < c->n_attrs; k++)
        {
          const TdAttr *a = &c->attrs[k];

          assert_true (a->offset < c->attrs_size);
          /* A list has a fixed count, or says where its length is. */
          assert_true (a->kind != TD_ATTR_INTS || a->count > 0
                       || (a->n_offset > 0 && a->n_offset < c->attrs_size));
        }
    }
  assert_null (td_op_class_find ("no such operation"));
}

static void
kinks__have_chainers_gradients (void **state)
{
  TD_SCOPE ("test")
    {
      const float at[] = { -1, 0, 2 }, equal[] = { 1, 3, 3 };
      TdVar *x = td_variable (floats (3, at), "x"), *y = td_variable (floats (3, at), "y");
      TdVar *m = td_variable (floats (3, equal), "m");

      td_backward (td_sum (td_relu (x)), 0);
      expect_floats (td_grad (x), 3, (const float[]){ 0, 0, 1 });
      td_cleargrad (x);
      td_backward (td_sum (td_absolute (x)), 0);
      expect_floats (td_grad (x), 3, (const float[]){ -1, 0, 1 });
      td_cleargrad (x);
      td_backward (td_sum (td_maximum (x, y)), 0); /* equal: all to the first */
      expect_floats (td_grad (x), 3, (const float[]){ 1, 1, 1 });
      expect_floats (td_grad (y), 3, (const float[]){ 0, 0, 0 });
      td_backward (td_max (m), 0); /* all that are equal to the largest */
      expect_floats (td_grad (m), 3, (const float[]){ 0, 1, 1 });
    }
}

/* A mask by multiplication would turn inf into NaN where nothing should arrive. */
static void
masks__stop_infinite_gradients (void **state)
{
  TD_SCOPE ("test")
    {
      const float at[] = { -1, 0.5f, 2 }, inf[] = { INFINITY, INFINITY, INFINITY };
      TdVar *x = td_variable (floats (3, at), "x"), *y = td_clip (x, 0, 1);
      TdVar *g = floats (3, inf), *gx = NULL;

      td_grad_of (&y, 1, &x, 1, &g, 0, &gx);
      expect_floats (gx, 3, (const float[]){ 0, INFINITY, 0 });
      y = td_relu (x);
      td_grad_of (&y, 1, &x, 1, &g, 0, &gx);
      expect_floats (gx, 3, (const float[]){ 0, INFINITY, INFINITY });
    }
}

/* The way by division and the way by omission, with none, one and two zeros in a row. */
static void
prod__has_one_gradient_on_both_ways (void **state)
{
  TD_SCOPE ("test")
    {
      const float at[] = { 2, 3, 0.5f, 0, 3, 2, 0, 5, 0 };
      const float want[] = { 1.5f, 1, 6, 6, 0, 0, 0, 0, 0 };
      const int axis = 1;

      for (unsigned flags = 0; flags <= TD_DOUBLE_BACKPROP; flags++)
        {
          TdVar *x = td_variable (td_tensor (TD_F32, TD_SHAPE (3, 3), at), "x");

          td_backward (td_sum (td_prod_axes (x, &axis, 1, false)), flags);
          expect_floats (td_grad (x), 9, want);
        }
    }
}

/* Gradients that kernels add into: the same bits as a sum made afterwards. */
static void
accumulation__in_kernels_equals_sums (void **state)
{
  TdVar *(*const uses[]) (TdVar *) = { td_relu, td_exp, td_sigmoid, td_square, td_neg, td_sum };

  for (size_t k = 0; k < sizeof uses / sizeof uses[0]; k++)
    TD_SCOPE ("test")
      {
        float once[3], twice[3], sum[3];
        const float at[] = { 0.3f, -1.7f, 2.9f };
        TdVar *x = td_variable (floats (3, at), "x");

        td_backward (td_sum (uses[k](td_mul_scalar (x, 1.3))), 0);
        td_read (td_grad (x), once, sizeof once);
        td_backward (td_sum (uses[k](x)), 0);
        td_read (td_grad (x), twice, sizeof twice);
        td_cleargrad (x);
        td_backward (td_sum (uses[k](x)), 0);
        td_read (td_grad (x), sum, sizeof sum);
        for (int i = 0; i < 3; i++)
          sum[i] = once[i] + sum[i];
        assert_memory_equal (sum, twice, sizeof sum);
      }
}

static void
views__share_memory_and_copies_do_not (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = td_zeros (TD_F32, TD_SHAPE (2, 1, 3)), *y = td_reshape (x, TD_SHAPE (6));
      const float six[] = { 1, 2, 3, 4, 5, 6 };

      td_write (x, six, sizeof six);
      expect_floats (y, 6, six);
      expect_floats (td_squeeze (td_expand_dims (x, 0)), 6, six);
      y = td_copy (x);
      td_write (x, (const float[6]){ 0 }, sizeof six);
      expect_floats (y, 6, six);
    }
}

static void
empty_arrays__go_through (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = td_variable (td_zeros (TD_F32, TD_SHAPE (0, 3)), "x");
      const int axis = 1;

      assert_true (td_item (td_sum (td_relu (td_add (x, x)))) == 0);
      assert_true (td_item (td_prod (x)) == 1);
      assert_true (isnan (td_item (td_mean (x))));
      assert_true (td_item (td_logsumexp (x)) == -INFINITY);
      assert_int_equal (td_size (td_max_axes (x, &axis, 1, false)), 0);
      assert_int_equal (td_size (td_transpose (x, NULL)), 0);
      td_backward (td_sum (td_mul (x, x)), 0);
      assert_int_equal (td_size (td_grad (x)), 0);
      assert_null (td_error ());
    }
}

static void
half_precision__computes_in_float (void **state)
{
  TD_SCOPE ("test")
    {
      const float at[] = { 1, 2, 3, 60000 };
      TdVar *x = td_variable (td_cast (floats (4, at), TD_F16), "x");
      TdVar *y = td_sum (td_mul_scalar (td_maximum (x, td_add (x, x)), 0.25));

      /* 120000 is beyond f16: infinite before the quarter. */
      assert_true (isinf (td_item (y)));
      td_backward (y, 0);
      expect_floats (td_cast (td_grad (x), TD_F32), 4,
                     (const float[]){ 0.5f, 0.5f, 0.5f, 0.5f });
    }
}

static void
split_axis__with_sections_that_are_none_is_refused (void **state)
{
  TdVar *out[1] = { NULL };

  TD_SCOPE ("test")
    {
      assert_int_equal (td_split_axis (td_zeros (TD_F32, TD_SHAPE (4)), 0, 0, out), TD_ERR_ARG);
      assert_contains (td_error ()->message, "split_axis: sections > 0 expected, got 0");
      td_error_clear ();
    }
}

static void
expect_error (const TdVar *v, TdStatus status, const char *op, const char *rest)
{
  char want[256];

  snprintf (want, sizeof want, "%s: %s", op, rest);
  assert_true (td_poisoned (v));
  assert_non_null (td_error ());
  assert_int_equal (td_error ()->status, status);
  assert_string_equal (td_error ()->message, want);
  td_error_clear ();
}

/* Every operation of a family, not one of them: a class with the wrong infer would show. */
static void
families__refuse_wrong_dtypes_and_shapes (void **state)
{
  static const struct
  {
    const char *name;
    TdVar *(*call) (TdVar *);
  } floats_only[] = { { "relu", td_relu }, { "sigmoid", td_sigmoid },
                      { "tanh", td_tanh }, { "exp", td_exp },
                      { "log", td_log },   { "sqrt", td_sqrt },
                      { "sin", td_sin },   { "cos", td_cos },
                      { "mean", td_mean }, { "logsumexp", td_logsumexp } },
    numbers[] = { { "neg", td_neg }, { "absolute", td_absolute }, { "square", td_square },
                  { "sum", td_sum }, { "prod", td_prod },         { "max", td_max },
                  { "min", td_min } };
  static const struct
  {
    const char *name;
    TdVar *(*call) (TdVar *, TdVar *);
  } pairs[] = { { "add", td_add },        { "sub", td_sub }, { "mul", td_mul },
                { "div", td_div },        { "pow", td_pow }, { "maximum", td_maximum },
                { "minimum", td_minimum } };

  TD_SCOPE ("test")
    {
      TdVar *i32 = td_zeros (TD_I32, TD_SHAPE (2)), *u8 = td_zeros (TD_U8, TD_SHAPE (2));
      TdVar *f32 = td_zeros (TD_F32, TD_SHAPE (2)), *three = td_zeros (TD_F32, TD_SHAPE (3));

      for (size_t i = 0; i < sizeof floats_only / sizeof floats_only[0]; i++)
        expect_error (floats_only[i].call (i32), TD_ERR_DTYPE, floats_only[i].name,
                      "a floating-point x expected: x (2) i32");
      for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        {
          assert_false (td_poisoned (numbers[i].call (i32)));
          expect_error (numbers[i].call (u8), TD_ERR_DTYPE, numbers[i].name,
                        "a floating-point or signed x expected: x (2) u8");
        }
      for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        {
          expect_error (pairs[i].call (f32, i32), TD_ERR_DTYPE, pairs[i].name,
                        "a.dtype == b.dtype expected: a (2) f32, b (2) i32");
          expect_error (pairs[i].call (three, f32), TD_ERR_SHAPE, pairs[i].name,
                        "a.shape and b.shape that broadcast expected: a (3) f32, b (2) f32");
        }
    }
}

/* Eight dimensions, walked from both ends. */
static void
broadcasting__works_up_to_eight_dimensions (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *a = td_reshape (td_arange (TD_F64, 0, 16, 1), TD_SHAPE (2, 1, 2, 1, 2, 1, 2, 1));
      TdVar *b = td_reshape (td_arange (TD_F64, 0, 16, 1), TD_SHAPE (1, 2, 1, 2, 1, 2, 1, 2));
      TdVar *c = td_add (td_mul_scalar (a, 100), b);
      double got[256];

      assert_int_equal (td_read (c, got, sizeof got), TD_OK);
      for (int i = 0; i < 256; i++)
        {
          int ai = (i >> 7 & 1) * 8 + (i >> 5 & 1) * 4 + (i >> 3 & 1) * 2 + (i >> 1 & 1);
          int bi = (i >> 6 & 1) * 8 + (i >> 4 & 1) * 4 + (i >> 2 & 1) * 2 + (i & 1);

          assert_true (got[i] == 100 * ai + bi);
        }
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (labels__are_chainers),
    td_test (every_class__says_what_it_is),
    td_test (kinks__have_chainers_gradients),
    td_test (masks__stop_infinite_gradients),
    td_test (prod__has_one_gradient_on_both_ways),
    td_test (accumulation__in_kernels_equals_sums),
    td_test (views__share_memory_and_copies_do_not),
    td_test (empty_arrays__go_through),
    td_test (half_precision__computes_in_float),
    td_test (families__refuse_wrong_dtypes_and_shapes),
    td_test (broadcasting__works_up_to_eight_dimensions),
    td_test (split_axis__with_sections_that_are_none_is_refused),
  };

  td_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL) != 0 || td_finish () != 0;
}
