/* Where halves meet floats: normalisations whose parameters and moments are float beside
 * activations in two bytes, and counting that two bytes are too short for.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "td-test.h"

#include <math.h>
#include <string.h>

enum
{
  N = 4,
  C = 6,
  SIDE = 3,
  SIZE = N * C * SIDE * SIDE
};

static const TdShape images = { 4, { N, C, SIDE, SIDE } };

static int
start (void **state)
{
  return td_init (NULL, NULL) == TD_OK ? 0 : -1;
}

static int
finish (void **state)
{
  return td_finish ();
}

/* Numbers that bf16 holds. */
static TdVar *
numbers (TdDtype dtype, TdShape shape, double step)
{
  TdVar *v
      = td_sin (td_mul_scalar (td_arange (TD_F32, 0, (double)td_shape_size (&shape), 1), step));

  v = td_cast (td_reshape (td_add_scalar (v, 0.25), shape), TD_BF16);
  return td_variable (td_cast (v, dtype), "v");
}

typedef enum
{
  BATCH,
  FIXED,
  LAYER,
  GROUP,
  N_NORMS
} Norm;

/* y, then the gradients of x, gamma and beta, then the gradient of x behind the gradient of x.
 */
static void
run (Norm norm, TdDtype x_dtype, TdVar *out[5])
{
  const int64_t n_params = norm == LAYER ? SIDE : C;
  TdVar *in[] = { numbers (x_dtype, images, 0.7), numbers (TD_F32, TD_SHAPE (n_params), 1.3),
                  numbers (TD_F32, TD_SHAPE (n_params), 2.1) };
  TdVar *running[] = { numbers (TD_F32, TD_SHAPE (C), 0.3),
                       td_add_scalar (td_square (numbers (TD_F32, TD_SHAPE (C), 0.9)), 0.5) };
  TdVar *gy = numbers (x_dtype, images, 0.37);

  switch (norm)
    {
    case BATCH:
      out[0] = td_batch_normalization (in[0], in[1], in[2], .running_mean = running[0],
                                       .running_var = running[1]);
      break;
    case FIXED:
      out[0] = td_fixed_batch_normalization (in[0], in[1], in[2], running[0], running[1], 1e-5);
      break;
    case LAYER:
      out[0] = td_layer_normalization (in[0], in[1], in[2]);
      break;
    case GROUP:
    case N_NORMS:
      out[0] = td_group_normalization (in[0], 2, in[1], in[2]);
      break;
    }
  assert_int_equal (td_grad_of (out, 1, in, 3, &gy, TD_DOUBLE_BACKPROP, out + 1), TD_OK);
  assert_int_equal (td_grad_of (out + 1, 1, in, 1, &gy, 0, out + 4), TD_OK);
}

static void
near (TdVar *got, TdVar *want, double tolerance)
{
  float a[SIZE], b[SIZE], most = 1;
  const size_t n = (size_t)td_size (want);

  assert_true (n <= SIZE && td_size (got) == td_size (want));
  assert_int_equal (td_read (td_cast (got, TD_F32), a, n * sizeof *a), TD_OK);
  assert_int_equal (td_read (want, b, n * sizeof *b), TD_OK);
  for (size_t i = 0; i < n; i++)
    most = fmaxf (most, fabsf (b[i]));
  for (size_t i = 0; i < n; i++)
    if (!(fabsf (a[i] - b[i]) <= tolerance * most))
      fail_msg ("element %d is %g, in float %g", (int)i, (double)a[i], (double)b[i]);
}

static void
normalisation__of_halves_has_float_parameters (void **state)
{
  static const TdDtype dtypes[] = { TD_BF16, TD_F16 };
  static const double tolerance[] = { 1e-2, 1.5e-3 };

  for (int norm = 0; norm < N_NORMS; norm++)
    for (int d = 0; d < TD_ARRAY_LENGTH (dtypes); d++)
      TD_SCOPE ("norm")
        {
          TdVar *wide[5], *half[5];

          run ((Norm)norm, TD_F32, wide);
          run ((Norm)norm, dtypes[d], half);
          if (td_error () != NULL)
            fail_msg ("%s", td_error ()->message);
          for (int k = 0; k < 5; k++)
            {
              if (half[k] == NULL || wide[k] == NULL) /* of no influence */
                {
                  assert_true (half[k] == wide[k]);
                  continue;
                }
              assert_int_equal (td_dtype (half[k]), k == 2 || k == 3 ? TD_F32 : dtypes[d]);
              near (half[k], wide[k], k == 4 ? 2 * tolerance[d] : tolerance[d]);
            }
        }
}

static void
normalisation__refuses_parameters_of_another_half (void **state)
{
  TdVar *x = td_zeros (TD_BF16, TD_SHAPE (2, 3)), *gamma = td_zeros (TD_F16, TD_SHAPE (3));

  assert_true (td_poisoned (td_batch_normalization (x, gamma, gamma)));
  assert_int_equal (td_error ()->status, TD_ERR_DTYPE);
  assert_non_null (
      strstr (td_error ()->message, "gamma.dtype == bf16 or f32 expected, got f16"));
  td_error_clear ();
}

/* A mean that moves by a hundredth would stay where it is in bf16. */
static void
batch_norm_link__in_halves_keeps_float_statistics (void **state)
{
  TdLink *net = td_chain_new ("net"), *bn = NULL;
  float mean[C];

  TD_USING (dtype, TD_BF16)
    bn = td_batch_normalization_new (net, "bn", C, .decay = 0.999);
  assert_int_equal (td_dtype (td_link_param (bn, "gamma")), TD_F32);
  assert_int_equal (td_dtype (td_link_param (bn, "avg_mean")), TD_F32);
  for (int i = 0; i < 1000; i++)
    TD_SCOPE ("step")
      {
        TdVar *y = td_link (bn, td_full (TD_BF16, images, 2));

        assert_int_equal (td_dtype (y), TD_BF16);
      }
  assert_int_equal (td_read (td_link_param (bn, "avg_mean"), mean, sizeof mean), TD_OK);
  /* 2 (1 - 0.999^1000) */
  assert_true (fabs ((double)mean[0] - 1.264609) < 1e-4);
  td_link_free (net);
}

/* The first query of two sees keys 0 to 598, of which bf16 has not every one. */
static void
causal_mask__in_bfloat16_counts_past_256 (void **state)
{
  float seen[2 * 600];

  TD_SCOPE ("mask")
    {
      TdVar *mask = td_causal_mask (TD_BF16, 2, 600);

      assert_int_equal (td_dtype (mask), TD_BF16);
      assert_int_equal (td_read (td_cast (mask, TD_F32), seen, sizeof seen), TD_OK);
    }
  for (int k = 0; k < 600; k++)
    assert_true (seen[k] == (k < 599 ? 1 : 0) && seen[600 + k] == 1);
}

/* Two ways from x to the loss that meet in a sum: of one of them the gradient so far is also
 * that of what the program may want to see. */
static void
gradient_of (TdDtype dtype, unsigned flags, float *g)
{
  TdVar *x = td_variable (numbers (dtype, TD_SHAPE (SIZE), 0.7), "x");
  TdVar *h = td_mul (x, numbers (dtype, TD_SHAPE (SIZE), 0.3));
  TdVar *a = td_sqrt (td_add_scalar (td_square (h), 0.1));

  assert_int_equal (td_backward (td_sum (td_square (td_cast (td_add (a, h), TD_F32))), flags),
                    TD_OK);
  assert_int_equal (td_read (td_cast (td_grad (x), TD_F32), g, SIZE * sizeof *g), TD_OK);
  assert_int_equal (td_grad (a) != NULL, flags == TD_RETAIN_GRADS);
}

static void
gradients__do_not_depend_on_what_else_is_kept (void **state)
{
  static const TdDtype dtypes[] = { TD_F16, TD_BF16, TD_F32 };
  float g[2][SIZE];

  (void)state;
  for (int d = 0; d < 3; d++)
    {
      gradient_of (dtypes[d], 0, g[0]);
      gradient_of (dtypes[d], TD_RETAIN_GRADS, g[1]);
      assert_memory_equal (g[0], g[1], sizeof g[0]);
    }
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, start, finish)
  const struct CMUnitTest tests[] = {
    row (gradients__do_not_depend_on_what_else_is_kept),
    row (normalisation__of_halves_has_float_parameters),
    row (normalisation__refuses_parameters_of_another_half),
    row (batch_norm_link__in_halves_keeps_float_statistics),
    row (causal_mask__in_bfloat16_counts_past_256),
  };

  return cmocka_run_group_tests_name ("halves", tests, NULL, NULL);
}
