/* Attention in halves on the device where no library has it: in fp32 by our kernels, and back.
 *
 * SPDX-License-Identifier: MIT */
#include "tapedeck.h"

#include "td-test.h"

#include <math.h>
#include <stdio.h>

enum
{
  BATCH = 2,
  QUERIES = 5,
  KEYS = 7,
  UNITS = 8,
  N_Q = BATCH * QUERIES * UNITS,
  N_K = BATCH * KEYS * UNITS
};

typedef struct
{
  float y[N_Q], gq[N_Q], gk[N_K], gv[N_K];
} Answers;

static void
read_floats (TdVar *v, float *into, size_t n)
{
  TdVar *wide = td_cast (v, TD_F32);

  assert_int_equal (td_size (wide), n);
  assert_int_equal (td_read (wide, into, n * sizeof *into), TD_OK);
}

/* Numbers that bf16 holds, in any dtype. */
static TdVar *
leaf (TdDtype dtype, int64_t rows, double step)
{
  TdVar *v = td_sin (td_mul_scalar (td_arange (TD_F32, 0, BATCH * rows * UNITS, 1), step));

  v = td_reshape (td_cast (v, TD_BF16), TD_SHAPE (BATCH, rows, UNITS));
  return td_variable (td_cast (v, dtype), "leaf");
}

static void
answer (const char *device, TdDtype dtype, bool causal, Answers *a)
{
  assert_int_equal (td_device_use (td_device_get (device)), TD_OK);
  TD_SCOPE ("answer")
    {
      TdVar *in[3]
          = { leaf (dtype, QUERIES, 0.37), leaf (dtype, KEYS, 0.71), leaf (dtype, KEYS, 1.13) };
      TdVar *gy = leaf (dtype, QUERIES, 0.53), *gx[3], *y;

      y = td_scaled_dot_product_attention (in[0], in[1], in[2], .causal = causal);
      assert_int_equal (td_grad_of (&y, 1, in, 3, &gy, 0, gx), TD_OK);
      read_floats (y, a->y, N_Q);
      read_floats (gx[0], a->gq, N_Q);
      read_floats (gx[1], a->gk, N_K);
      read_floats (gx[2], a->gv, N_K);
    }
}

static void
near (const char *what, const float *got, const float *want, int n, float tolerance)
{
  for (int i = 0; i < n; i++)
    if (!(fabsf (got[i] - want[i]) <= tolerance * (1 + fabsf (want[i]))))
      fail_msg ("%s[%d]: %g, not %g", what, i, (double)got[i], (double)want[i]);
}

/* One rounding of what fp32 gives: half a unit in the last of bf16's 8 digits, of fp16's 11.
 * The gradients come from a rounded y too. */
static void
halves_agree (TdDtype dtype, float unit)
{
  for (int causal = 0; causal < 2; causal++)
    {
      Answers wide, half;

      answer ("cpu", TD_F32, causal != 0, &wide);
      answer ("cuda:0", dtype, causal != 0, &half);
      near ("y", half.y, wide.y, N_Q, unit);
      near ("gq", half.gq, wide.gq, N_Q, 4 * unit);
      near ("gk", half.gk, wide.gk, N_K, 4 * unit);
      near ("gv", half.gv, wide.gv, N_K, 4 * unit);
    }
}

static void
attention__in_bf16_is_one_rounding_from_fp32 (void **state)
{
  halves_agree (TD_BF16, 0x1p-8f);
}

static void
attention__in_fp16_is_one_rounding_from_fp32 (void **state)
{
  halves_agree (TD_F16, 0x1p-11f);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (attention__in_bf16_is_one_rounding_from_fp32),
    cmocka_unit_test (attention__in_fp16_is_one_rounding_from_fp32),
  };

  if (td_init (&argc, &argv) != TD_OK)
    return 1;
  return cmocka_run_group_tests_name ("halves", tests, NULL, NULL);
}
