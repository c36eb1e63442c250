/* The operations of layers: values against compositions of elementary operations, first and
 * second gradients against differences, f32 against f64, and what poison and wrong shapes do.
 * SPDX-License-Identifier: MIT */
#include "start.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum
{
  MAX_IN = 5
};

/* One operand: its shape; labels > 0: integers in [0, labels), else numbers in [low, high]. */
typedef struct
{
  int ndim;
  int64_t dim[4];
  int labels;
  double low, high;
} Operand;

typedef TdVar *(*Function) (TdVar *const *in);

typedef struct
{
  const char *name;
  Function function;
  Function reference; /* of elementary operations; NULL where another test has the numbers */
  Operand in[MAX_IN];
  uint32_t no_grads;
} Case;

/* --- the functions under test and their references --- */

static TdVar *
matmul (TdVar *const *in)
{
  return td_matmul (in[0], in[1], false, false);
}
static TdVar *
matmul_ta (TdVar *const *in)
{
  return td_matmul (in[0], in[1], true, false);
}
static TdVar *
matmul_tb (TdVar *const *in)
{
  return td_matmul (in[0], in[1], false, true);
}
static TdVar *
matmul_tab (TdVar *const *in)
{
  return td_matmul (in[0], in[1], true, true);
}
static TdVar *
batch_matmul (TdVar *const *in)
{
  return td_batch_matmul (in[0], in[1], false, true);
}

/* Sums of products: a (..., m, k), b (..., n, k). */
static TdVar *
product (TdVar *a, TdVar *b)
{
  const int axis = td_ndim (a);

  return td_sum_axes (td_mul (td_expand_dims (a, axis - 1), td_expand_dims (b, axis - 2)),
                      &axis, 1, false);
}
static TdVar *
swapped (TdVar *a)
{
  return td_transpose (a, NULL);
}
static TdVar *
ref_matmul (TdVar *const *in)
{
  return product (in[0], swapped (in[1]));
}
static TdVar *
ref_matmul_ta (TdVar *const *in)
{
  return product (swapped (in[0]), swapped (in[1]));
}
static TdVar *
ref_matmul_tb (TdVar *const *in)
{
  return product (in[0], in[1]);
}
static TdVar *
ref_matmul_tab (TdVar *const *in)
{
  return product (swapped (in[0]), in[1]);
}
static TdVar *
linear (TdVar *const *in)
{
  return td_linear (in[0], in[1], in[2]);
}
static TdVar *
ref_linear (TdVar *const *in)
{
  TdVar *x = td_reshape (in[0], TD_SHAPE (td_shape (in[0]).dim[0], -1));

  return td_add (product (x, in[1]), in[2]);
}
static TdVar *
linear_no_bias (TdVar *const *in)
{
  return td_linear (in[0], in[1], NULL);
}
static TdVar *
convolution (TdVar *const *in)
{
  return td_convolution_2d (in[0], in[1], in[2], .stride = { 2, 1 }, .pad = { 1, 0 });
}
static TdVar *
convolution_dilated_groups (TdVar *const *in)
{
  return td_convolution_2d (in[0], in[1], NULL, .dilate = { 1, 2 }, .groups = 2,
                            .pad = { 0, 1 });
}
static TdVar *
convolution_cover_all (TdVar *const *in)
{
  return td_convolution_2d (in[0], in[1], in[2], .stride = { 2, 2 }, .cover_all = true);
}
/* 1 x 1 convolutions are products over channels. */
static TdVar *
convolution_1x1 (TdVar *const *in)
{
  return td_convolution_2d (in[0], in[1], in[2]);
}
static TdVar *
ref_convolution_1x1 (TdVar *const *in)
{
  const TdShape x = td_shape (in[0]), W = td_shape (in[1]);
  const int channel = 2;
  TdVar *wide = td_reshape (in[0], TD_SHAPE (x.dim[0], 1, x.dim[1], x.dim[2], x.dim[3]));
  TdVar *filters = td_reshape (in[1], TD_SHAPE (1, W.dim[0], W.dim[1], 1, 1));

  return td_add (td_sum_axes (td_mul (wide, filters), &channel, 1, false),
                 td_reshape (in[2], TD_SHAPE (1, W.dim[0], 1, 1)));
}
static TdVar *
max_pooling (TdVar *const *in)
{
  return td_max_pooling_2d (in[0]);
}
static TdVar *
max_pooling_overlapping (TdVar *const *in)
{
  return td_max_pooling_2d (in[0], .ksize = { 3, 2 }, .stride = { 2, 1 }, .pad = { 1, 1 },
                            .cover_all = false);
}
static TdVar *
average_pooling (TdVar *const *in)
{
  return td_average_pooling_2d (in[0]);
}
/* 2 x 2 windows of an even image as axes of their own. */
static TdVar *
windows (TdVar *x)
{
  const TdShape s = td_shape (x);

  return td_reshape (x, TD_SHAPE (s.dim[0], s.dim[1], s.dim[2] / 2, 2, s.dim[3] / 2, 2));
}
static const int window_axes[] = { 3, 5 };
static TdVar *
ref_max_pooling (TdVar *const *in)
{
  return td_max_axes (windows (in[0]), window_axes, 2, false);
}
static TdVar *
ref_average_pooling (TdVar *const *in)
{
  return td_mean_axes (windows (in[0]), window_axes, 2, false);
}
static TdVar *
average_pooling_padded (TdVar *const *in)
{
  return td_average_pooling_2d (in[0], .ksize = { 3, 3 }, .stride = { 2, 2 }, .pad = { 1, 1 });
}
static TdVar *
batch_normalization (TdVar *const *in)
{
  return td_batch_normalization (in[0], in[1], in[2]);
}
static TdVar *
channels (TdVar *v, TdVar *x)
{
  TdShape shape = td_shape (x);

  for (int i = 0; i < shape.ndim; i++)
    shape.dim[i] = i == 1 ? shape.dim[1] : 1;
  return td_reshape (v, shape);
}
static TdVar *
normalized (TdVar *x, TdVar *gamma, TdVar *beta, TdVar *mean, TdVar *var)
{
  TdVar *std = td_sqrt (td_add_scalar (var, 2e-5));

  return td_add (td_mul (td_div (td_sub (x, mean), std), channels (gamma, x)),
                 channels (beta, x));
}
static TdVar *
ref_batch_normalization (TdVar *const *in)
{
  const int axes[] = { 0, 2, 3 }, n = td_ndim (in[0]) - 1;
  TdVar *mean = td_mean_axes (in[0], axes, n, true);
  TdVar *var = td_mean_axes (td_square (td_sub (in[0], mean)), axes, n, true);

  return normalized (in[0], in[1], in[2], mean, var);
}
static TdVar *
fixed_batch_normalization (TdVar *const *in)
{
  return td_fixed_batch_normalization (in[0], in[1], in[2], in[3], in[4], 2e-5);
}
static TdVar *
ref_fixed_batch_normalization (TdVar *const *in)
{
  return normalized (in[0], in[1], in[2], channels (in[3], in[0]), channels (in[4], in[0]));
}
static TdVar *
dropout (TdVar *const *in)
{
  td_set_seed (5);
  return td_dropout (in[0], 0.3);
}
static TdVar *
embed_id (TdVar *const *in)
{
  return td_embed_id (in[0], in[1]);
}
static TdVar *
softmax (TdVar *const *in)
{
  return td_softmax (in[0]);
}
static TdVar *
softmax_last (TdVar *const *in)
{
  return td_softmax (in[0], .axis = -1);
}
static TdVar *
softmax_over (TdVar *x, int axis)
{
  TdVar *e = td_exp (x);

  return td_div (e, td_sum_axes (e, &axis, 1, true));
}
static TdVar *
ref_softmax (TdVar *const *in)
{
  return softmax_over (in[0], 1);
}
static TdVar *
ref_softmax_last (TdVar *const *in)
{
  return softmax_over (in[0], td_ndim (in[0]) - 1);
}
static TdVar *
log_softmax (TdVar *const *in)
{
  return td_log_softmax (in[0]);
}
static TdVar *
ref_log_softmax (TdVar *const *in)
{
  return td_log (softmax_over (in[0], 1));
}
static TdVar *
cross_entropy (TdVar *const *in)
{
  return td_softmax_cross_entropy (in[0], in[1]);
}
static TdVar *
ref_cross_entropy (TdVar *const *in)
{
  return td_neg (td_mean (td_select_item (td_log (softmax_over (in[0], 1)), in[1])));
}
static TdVar *
cross_entropy_ignoring (TdVar *const *in)
{
  return td_softmax_cross_entropy (in[0], in[1], .ignore_label = 1);
}
static TdVar *
cross_entropy_weighted (TdVar *const *in)
{
  return td_softmax_cross_entropy (in[0], in[1], .class_weight = in[2], .normalize = false);
}
static TdVar *
ref_cross_entropy_weighted (TdVar *const *in)
{
  const TdShape x = td_shape (in[0]);
  TdVar *weighted
      = td_mul (td_log (softmax_over (in[0], 1)), td_reshape (in[2], TD_SHAPE (1, x.dim[1])));

  return td_neg (td_mean (td_select_item (weighted, in[1])));
}
static TdVar *
mean_squared_error (TdVar *const *in)
{
  return td_mean_squared_error (in[0], in[1]);
}
static TdVar *
ref_mean_squared_error (TdVar *const *in)
{
  return td_mean (td_square (td_sub (in[0], in[1])));
}
/* Both outputs, side by side. */
static TdVar *
lstm (TdVar *const *in)
{
  TdVar *h, *c = td_lstm (in[0], in[1], &h);

  return td_concat ((TdVar *const[]){ c, h }, 2, 1);
}
static TdVar *
gate_of (TdVar *x, int i)
{
  const TdSlice slices[] = { TD_ALL, TD_STEP (i, TD_END, 4) };

  return td_get_item (x, slices, 2);
}
static TdVar *
ref_lstm (TdVar *const *in)
{
  TdVar *c = td_add (td_mul (td_tanh (gate_of (in[1], 0)), td_sigmoid (gate_of (in[1], 1))),
                     td_mul (td_sigmoid (gate_of (in[1], 2)), in[0]));
  TdVar *h = td_mul (td_sigmoid (gate_of (in[1], 3)), td_tanh (c));

  return td_concat ((TdVar *const[]){ c, h }, 2, 1);
}
/* Only h, so that no gradient arrives at c. */
static TdVar *
lstm_h (TdVar *const *in)
{
  TdVar *h;

  td_lstm (in[0], in[1], &h);
  return h;
}

// clang-format off
#define N(...) { TD_NARGS_ (__VA_ARGS__), { __VA_ARGS__ }, 0, -1, 1 }
#define P(...) { TD_NARGS_ (__VA_ARGS__), { __VA_ARGS__ }, 0, 0.5, 1.5 }
#define L(n, ...) { TD_NARGS_ (__VA_ARGS__), { __VA_ARGS__ }, n, 0, 0 }
static const Case cases[] = {
  { "matmul", matmul, ref_matmul, { N (3, 4), N (4, 2) }, 0 },
  { "matmul_ta", matmul_ta, ref_matmul_ta, { N (4, 3), N (4, 2) }, 0 },
  { "matmul_tb", matmul_tb, ref_matmul_tb, { N (3, 4), N (2, 4) }, 0 },
  { "matmul_tab", matmul_tab, ref_matmul_tab, { N (4, 3), N (2, 4) }, 0 },
  { "batch_matmul", batch_matmul, ref_matmul_tb, { N (2, 3, 4), N (2, 5, 4) }, 0 },
  { "linear", linear, ref_linear, { N (3, 4), N (2, 4), N (2) }, 0 },
  { "linear of 3 axes", linear, ref_linear, { N (3, 2, 2), N (2, 4), N (2) }, 0 },
  { "linear without bias", linear_no_bias, ref_matmul_tb, { N (3, 4), N (2, 4) }, 0 },
  { "convolution_2d", convolution, NULL, { N (2, 2, 4, 5), N (3, 2, 3, 2), N (3) }, 0 },
  { "convolution_2d dilated, groups", convolution_dilated_groups, NULL, { N (1, 4, 3, 5), N (2, 2, 2, 3) }, 0 },
  { "convolution_2d cover_all", convolution_cover_all, NULL, { N (1, 2, 4, 5), N (2, 2, 3, 2), N (2) }, 0 },
  { "convolution_2d 1 x 1", convolution_1x1, ref_convolution_1x1, { N (2, 3, 2, 3), N (4, 3, 1, 1), N (4) }, 0 },
  { "max_pooling_2d", max_pooling, ref_max_pooling, { N (2, 2, 4, 6) }, 0 },
  { "max_pooling_2d odd", max_pooling, NULL, { N (1, 2, 5, 3) }, 0 },
  { "max_pooling_2d overlapping", max_pooling_overlapping, NULL, { N (1, 2, 5, 4) }, 0 },
  { "average_pooling_2d", average_pooling, ref_average_pooling, { N (2, 2, 4, 6) }, 0 },
  { "average_pooling_2d padded", average_pooling_padded, NULL, { N (1, 2, 5, 4) }, 0 },
  { "batch_normalization", batch_normalization, ref_batch_normalization, { N (3, 2, 2, 2), P (2), N (2) }, 0 },
  { "batch_normalization (n, c)", batch_normalization, ref_batch_normalization, { N (5, 3), P (3), N (3) }, 0 },
  { "fixed_batch_normalization", fixed_batch_normalization, ref_fixed_batch_normalization, { N (2, 2, 3), P (2), N (2), N (2), P (2) }, 0 },
  { "dropout", dropout, NULL, { N (4, 5) }, 0 },
  { "embed_id", embed_id, NULL, { L (4, 2, 3), N (4, 2) }, 0 },
  { "softmax", softmax, ref_softmax, { N (3, 4, 2) }, 0 },
  { "softmax last axis", softmax_last, ref_softmax_last, { N (3, 5) }, 0 },
  { "log_softmax", log_softmax, ref_log_softmax, { N (3, 4, 2) }, 0 },
  { "softmax_cross_entropy", cross_entropy, ref_cross_entropy, { N (4, 3), L (3, 4) }, 0 },
  { "softmax_cross_entropy of images", cross_entropy, NULL, { N (2, 3, 2), L (3, 2, 2) }, 0 },
  { "softmax_cross_entropy ignoring", cross_entropy_ignoring, NULL, { N (6, 3), L (3, 6) }, 0 },
  { "softmax_cross_entropy weighted", cross_entropy_weighted, ref_cross_entropy_weighted, { N (4, 3), L (3, 4), P (3) }, 4 },
  { "mean_squared_error", mean_squared_error, ref_mean_squared_error, { N (3, 4), N (3, 4) }, 0 },
  { "lstm", lstm, ref_lstm, { N (2, 3), N (2, 12) }, 0 },
  { "lstm, h only", lstm_h, NULL, { N (2, 3), N (2, 12) }, 0 },
};
// clang-format on

/* --- running them --- */

static uint32_t state;

static double
number (double low, double high)
{
  state = state * 1664525u + 1013904223u;
  return low + (double)(state >> 8) / (1 << 24) * (high - low);
}

/* Operands of a case: numbers in f64 (or the same ones in f32), labels in i32. */
static int
operands (const Case *c, TdDtype dtype, TdVar **in)
{
  int n = 0;

  state = 11;
  for (; n < MAX_IN && c->in[n].ndim > 0; n++)
    {
      const Operand *o = &c->in[n];
      TdShape shape = { .ndim = o->ndim };
      double numbers[128];
      float singles[128];
      int32_t labels[128];
      int64_t size;

      memcpy (shape.dim, o->dim, sizeof o->dim);
      size = 1;
      for (int i = 0; i < o->ndim; i++)
        size *= o->dim[i];
      assert_true (size <= 128);
      for (int64_t i = 0; i < size; i++)
        {
          numbers[i] = number (o->low, o->high);
          singles[i] = (float)numbers[i];
          labels[i] = (int32_t)number (0, o->labels);
        }
      in[n] = o->labels > 0     ? td_tensor (TD_I32, shape, labels)
              : dtype == TD_F64 ? td_variable (td_tensor (TD_F64, shape, numbers), "x")
                                : td_variable (td_tensor (TD_F32, shape, singles), "x");
    }
  return n;
}

static void
no_error (const Case *c)
{
  if (td_error () != NULL)
    fail_msg ("%s: %s", c->name, td_error ()->message);
}

static void
read_numbers (const Case *c, TdVar *y, double *out, size_t n)
{
  TdVar *wide = td_cast (y, TD_F64);

  assert_true ((size_t)td_size (y) <= n);
  if (td_read (wide, out, (size_t)td_size (y) * sizeof *out) != TD_OK)
    no_error (c);
}

static void
compare (const Case *c, const char *what, TdVar *got, TdVar *wanted, double tolerance)
{
  double a[512], b[512];

  read_numbers (c, got, a, 512);
  read_numbers (c, wanted, b, 512);
  assert_int_equal (td_size (got), td_size (wanted));
  for (int64_t i = 0; i < td_size (got); i++)
    if (!(fabs (a[i] - b[i]) <= tolerance * (1 + fabs (b[i]))))
      fail_msg ("%s, %s: [%d] is %.12g, expected %.12g", c->name, what, (int)i, a[i], b[i]);
}

#define EACH_CASE(c) for (const Case *c = cases; c < cases + sizeof cases / sizeof *cases; c++)

static void
layers__agree_with_compositions_of_elementary_operations (void **unused)
{
  int n_compared = 0;

  EACH_CASE (c) TD_SCOPE ("case")
  {
    TdVar *in[MAX_IN];

    if (c->reference == NULL)
      continue;
    operands (c, TD_F64, in);
    compare (c, "values", c->function (in), c->reference (in), 1e-12);
    no_error (c);
    n_compared++;
  }
  assert_true (n_compared > 15);
}

static void
layers__agree_between_f32_and_f64 (void **unused)
{
  EACH_CASE (c) TD_SCOPE ("case")
  {
    TdVar *in[MAX_IN], *in32[MAX_IN], *g[MAX_IN], *g32[MAX_IN], *wanted[MAX_IN],
        *wanted32[MAX_IN];
    TdVar *y, *y32;
    int n = 0;

    for (int i = 0, all = operands (c, TD_F64, in); i < all; i++)
      if (c->in[i].labels == 0 && !(c->no_grads >> i & 1))
        wanted[n++] = in[i];
    n = 0;
    for (int i = 0, all = operands (c, TD_F32, in32); i < all; i++)
      if (c->in[i].labels == 0 && !(c->no_grads >> i & 1))
        wanted32[n++] = in32[i];
    y = c->function (in);
    y32 = c->function (in32);
    assert_int_equal (td_dtype (y32), TD_F32);
    compare (c, "values", y32, y, 2e-6);
    y = td_sum (td_mul (y, y));
    y32 = td_sum (td_mul (y32, y32));
    td_grad_of (&y, 1, wanted, n, NULL, 0, g);
    td_grad_of (&y32, 1, wanted32, n, NULL, 0, g32);
    no_error (c);
    for (int i = 0; i < n; i++)
      compare (c, "gradients", g32[i], g[i], 2e-5);
    no_error (c);
  }
}

static void
run_case (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  out[0] = ((const Case *)user)->function (in);
}

static void
layers__have_first_gradients_as_differences_say (void **unused)
{
  EACH_CASE (c) TD_SCOPE ("case")
  {
    TdVar *in[MAX_IN];
    const int n = operands (c, TD_F64, in);

    td_check_backward (run_case, (void *)c, in, n, NULL, 1, .eps = 1e-5, .atol = 1e-7,
                       .rtol = 1e-6, .no_grads = c->no_grads);
    no_error (c);
  }
}

static void
layers__have_second_gradients_as_differences_say (void **unused)
{
  EACH_CASE (c) TD_SCOPE ("case")
  {
    TdVar *in[MAX_IN];
    const int n = operands (c, TD_F64, in);

    td_check_double_backward (run_case, (void *)c, in, n, NULL, 1, .eps = 1e-5, .atol = 1e-6,
                              .rtol = 1e-5, .no_grads = c->no_grads);
    no_error (c);
  }
}

static void
layers__pass_poison_on_without_a_second_error (void **unused)
{
  EACH_CASE (c) TD_SCOPE ("case")
  {
    TdVar *in[MAX_IN];

    operands (c, TD_F64, in);
    in[0] = td_matmul (td_zeros (TD_F32, TD_SHAPE (2, 3)), td_zeros (TD_F32, TD_SHAPE (2, 3)),
                       false, false);
    assert_true (td_poisoned (in[0]));
    assert_contains (td_error ()->message, "a.shape[1] == b.shape[0]");
    td_error_clear ();
    assert_true (td_poisoned (c->function (in)));
    td_error_clear ();
  }
}

/* --- messages --- */

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (layers__agree_with_compositions_of_elementary_operations),
    td_test (layers__agree_between_f32_and_f64),
    td_test (layers__have_first_gradients_as_differences_say),
    td_test (layers__have_second_gradients_as_differences_say),
    td_test (layers__pass_poison_on_without_a_second_error),
  };

  return run_with_engine (tests);
}
