/* Cross entropy, LSTM cells, updates and statistics, beside the CPU's.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compute/cpu/cpu.h"
#include "td-test.h"

static const TdDtype floats[] = { TD_F32, TD_F64, TD_F16, TD_BF16 };

static double
tolerance_of (TdDtype dtype)
{
  return dtype == TD_F64 ? 1e-11 : dtype == TD_BF16 ? 8e-3 : dtype == TD_F16 ? 1e-3 : 2e-5;
}

typedef struct
{
  int kind, n_in, n_out;
  int64_t params[3];
} Loss;

static TdStatus
call_loss (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Loss *c = context;

  return gpu == NULL
             ? td__cpu_cross_entropy (NULL, c->kind, c->params, in, c->n_in, out, c->n_out)
             : td_cuda_cross_entropy (gpu, c->kind, c->params, in, c->n_in, out, c->n_out);
}

static const int64_t losses[][3] /* n, c, rest */
    = { { 7, 10, 1 }, { 300, 3, 1 }, { 1, 1, 1 },    { 5, 70, 1 },   { 3, 4, 50 },
        { 0, 5, 1 },  { 3, 72, 1 },  { 2, 2056, 1 }, { 1, 8320, 1 }, { 2, 1301, 1 } };
enum
{
  N_LOSSES = sizeof losses / sizeof losses[0]
};

/* Ignored labels are -1, or 2 where labels have no sign; of ten and more some are none. */
static void
check_loss (int kind, const int64_t *size, TdDtype dtype, TdDtype t_dtype, bool normalize,
            bool each, bool weighted, unsigned flags)
{
  const bool rows_only = kind == TD_CROSS_ENTROPY_ROWS, grad = kind == TD_CROSS_ENTROPY_GRAD;
  const int64_t ignore = t_dtype == TD_U8 ? 2 : -1;
  const TdShape x = { 3, { size[0], size[1], size[2] } }, t = { 2, { size[0], size[2] } };
  const TdShape number = { 0 };
  Loss c = { .kind = kind, .params = { ignore, normalize, each }, .n_out = 1 };
  RigArray in[4], out[3];
  char what[100];

  if (!rows_only)
    in[c.n_in++] = (RigArray){ dtype, x, -3, 3, flags };
  in[c.n_in++] = (RigArray){ t_dtype, t, t_dtype == TD_U8 ? 0 : -1,
                             (double)size[1] + (size[1] < 10 ? -1 : 1), 0 };
  if (grad)
    in[c.n_in++] = (RigArray){ dtype, each ? t : number, -2, 2, 0 };
  if (weighted)
    in[c.n_in++] = (RigArray){ dtype, { 1, { size[1] } }, 0.5, 2, 0 };
  out[0] = (RigArray){ dtype, grad ? x : each || rows_only ? t : number, 0, 0, 0 };
  if (kind == TD_CROSS_ENTROPY)
    out[c.n_out++] = (RigArray){ dtype, x, 0, 0, 0 };
  snprintf (what, sizeof what, "cross entropy kind %d of (%d, %d, %d), each %d, weighted %d",
            kind, (int)size[0], (int)size[1], (int)size[2], each, weighted);
  rig_check (what, in, c.n_in, out, c.n_out, tolerance_of (dtype), call_loss, &c);
}

static void
cross_entropy__gives_the_cpus_losses_gradients_and_shares (void **state)
{
  static const TdDtype labels[] = { TD_I32, TD_I64, TD_U8 };

  for (int kind = 0; kind <= TD_CROSS_ENTROPY_ROWS; kind++)
    for (int s = 0; s < N_LOSSES; s++)
      for (int i = 0; i < 16; i++)
        check_loss (kind, losses[s], floats[(i / 4 + s) % 4], labels[(i + s) % 3], (i & 1) != 0,
                    (i & 2) != 0, (i & 4) != 0, 0);
}

/* Rows of one number are all -inf, or inf, or NaN; in others one of them meets numbers. */
static void
cross_entropy__of_nan_and_infinities_is_of_the_cpus_kind (void **state)
{
  static const int64_t sizes[][3] = { { 60, 1, 1 },  { 90, 2, 1 }, { 40, 10, 1 },
                                      { 30, 16, 1 }, { 12, 4, 5 }, { 3, 139, 1 } };

  for (int kind = TD_CROSS_ENTROPY; kind <= TD_CROSS_ENTROPY_GRAD; kind++)
    for (int s = 0; s < 6 && kind != TD_ACCURACY; s++)
      for (int i = 0; i < 8; i++)
        check_loss (kind, sizes[s], floats[i / 2], TD_I32, false, i % 2 == 0, false,
                    RIG_SPECIAL);
}

static void
accuracy__counts_as_the_cpu_with_nan_the_largest (void **state)
{
  for (int s = 0; s < 6; s++)
    for (int i = 0; i < 8; i++)
      {
        const TdDtype dtype = floats[i / 2];
        const TdShape t = { 2, { losses[s][0], losses[s][2] } };
        const RigArray in[2] = {
          { dtype, { 3, { losses[s][0], losses[s][1], losses[s][2] } }, -3, 3, RIG_SPECIAL },
          { TD_I32, t, -1, (double)losses[s][1] - 1, 0 }
        };
        const RigArray share = { dtype, { 0 }, 0, 0, 0 };
        const RigArray counts = { TD_F64, { 1, { losses[s][1] } }, 0, 0, 0 };
        const RigArray three[3] = { counts, counts, counts };
        const Loss accuracy
            = { .kind = TD_ACCURACY, .params = { -1, i % 2 }, .n_in = 2, .n_out = 1 };
        const Loss by_label
            = { .kind = TD_LABEL_COUNTS, .params = { -1 }, .n_in = 2, .n_out = 3 };

        if (i % 2 == 1 || losses[s][1] > 1)
          rig_check ("accuracy", in, 2, &share, 1, tolerance_of (dtype), call_loss, &accuracy);
        rig_check ("counts of labels", in, 2, three, 3, 0, call_loss, &by_label);
      }
}

static TdStatus
call_lstm (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const int kind = *(const int *)context, n_in = kind == TD_LSTM ? 2 : 5;

  return gpu == NULL ? td__cpu_lstm (NULL, kind, in, n_in, out, 2)
                     : td_cuda_lstm (gpu, kind, in, n_in, out, 2);
}

static void
lstm__gives_the_cpus_cells_and_gradients (void **state)
{
  static const int64_t sizes[][2] = { { 1, 1 }, { 5, 33 }, { 0, 4 }, { 40, 100 } };

  for (int s = 0; s < 4; s++)
    for (int d = 0; d < 4; d++)
      for (int kind = 0; kind < 2; kind++)
        {
          const RigArray c = { floats[d], { 2, { sizes[s][0], sizes[s][1] } }, -2, 2, 0 };
          const RigArray x = { floats[d], { 2, { sizes[s][0], 4 * sizes[s][1] } }, -3, 3, 0 };
          const RigArray in[5] = { c, x, c, c, c }, out[2] = { c, kind == 0 ? c : x };

          rig_check ("lstm", in, kind == 0 ? 2 : 5, out, 2,
                     tolerance_of (floats[d]) / (d < 2 ? 10 : 1), call_lstm, &kind);
        }
}

typedef struct
{
  TdUpdateKind kind;
  int n, n_params;
} Update;

static TdStatus
call_update (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  static const double by = 0.3;
  const Update *c = context;
  const TdUpdate u = { .lr = 0.01,
                       .momentum = 0.9,
                       .alpha = 0.99,
                       .rho = 0.95,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-8,
                       .eta = 1,
                       .weight_decay = 0.01,
                       .alpha_t = 0.002,
                       .lower = 0.001,
                       .upper = 0.1,
                       .rate = 0.05,
                       .by = &by };
  TdTensor *arrays[RIG_ARRAYS];
  TdStatus status = TD_OK;

  for (int k = 0; k < c->n * c->n_params; k++)
    arrays[k] = &out[k];
  if (gpu != NULL)
    return td_cuda_update (gpu, c->kind, &u, arrays, c->n, c->n_params);
  for (int k = 0; k < c->n_params && status == TD_OK; k++)
    status = td__cpu_update (NULL, c->kind, &u, arrays + k * c->n, c->n);
  return status;
}

static void
update__gives_the_cpus_numbers_for_every_rule_and_type (void **state)
{
  static const int n_arrays[TD_UPDATE_N]
      = { 2, 3, 3, 3, 3, 4, 3, 3, 5, 5, 4, 5, 4, 5, 2, 2, 1, 1 };
  char what[80];

  for (int kind = 0; kind < TD_UPDATE_N; kind++)
    for (int d = 0; d < 4; d++)
      {
        Update c = { (TdUpdateKind)kind, n_arrays[kind], 2 };
        RigArray out[RIG_ARRAYS];

        for (int k = 0; k < 2 * c.n; k++)
          out[k] = (RigArray){ floats[d],
                               { 1,
                                 { k < c.n         ? 37
                                   : kind % 4 == 0 ? 16400
                                                   : 8 } },
                               k % c.n > 1 ? 0.1 : -1,
                               1,
                               RIG_KEEP };
        snprintf (what, sizeof what, "update %d of dtype %d", kind, (int)floats[d]);
        rig_check (what, NULL, 0, out, 2 * c.n, 0, call_update, &c);
      }
}

static void
update__takes_many_parameters_with_few_launches (void **state)
{
  enum
  {
    MANY = 160
  };
  float numbers[MANY][2][33];
  TdShape shape = { 1, { 33 } };
  TdTensor tensors[MANY][2], *arrays[2 * MANY];
  const TdUpdate u = { .lr = 0.5 };
  long before;

  for (int k = 0; k < MANY; k++)
    for (int i = 0; i < 2; i++)
      {
        for (int j = 0; j < 33; j++)
          numbers[k][i][j] = (float)(k + j);
        shape.dim[0] = 33;
        tensors[k][i] = (TdTensor){ numbers[k][i], &shape, k % 7 == 3 ? 0 : 33, TD_F32 };
        arrays[2 * k + i] = &tensors[k][i];
      }
  before = td_emu_launches ();
  assert_int_equal (td_cuda_update (rig_launcher (), TD_UPDATE_SGD, &u, arrays, 2, MANY),
                    TD_OK);
  assert_int_equal (td_emu_launches () - before, 2);
  for (int k = 0; k < MANY; k++)
    for (int j = 0; j < 33; j++)
      assert_true (numbers[k][0][j] == (k % 7 == 3 ? 1.0f : 0.5f) * (float)(k + j));
}

typedef struct
{
  int n;
} Squares;

/* As they are composed: the sum of each, then the sum of these. */
static TdStatus
call_squares (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Squares *c = context;
  TdShape scalar = { 0, { 0 } };
  double sum = 0, part64;
  uint64_t bits;
  TdTensor part = { &bits, &scalar, 1, in[0].dtype }, wide = { &part64, &scalar, 1, TD_F64 };

  if (gpu != NULL)
    return td_cuda_sum_squares (gpu, in, c->n, &out[0]);
  for (int i = 0; i < c->n; i++)
    if (in[i].size > 0)
      {
        if (td__cpu_reduce (NULL, TD_REDUCE_SUM_SQUARES, 1, &in[i], &part, false) != TD_OK
            || td__cpu_cast (NULL, &part, &wide) != TD_OK)
          return TD_ERR_DTYPE;
        sum += part64;
      }
  *(double *)out[0].data = sum;
  return TD_OK;
}

static void
sum_squares__is_the_sum_of_what_reduce_gives (void **state)
{
  static const int64_t sizes[RIG_ARRAYS] = { 1, 0, 300, 16384, 16385, 70001, 7, 8 };
  const RigArray out = { TD_F64, { 0, { 0 } }, 0, 0, 0 };

  for (int d = 0; d < 4; d++)
    for (int special = 0; special < 2; special++)
      {
        const Squares c = { special ? 3 : 8 };
        RigArray in[RIG_ARRAYS];

        for (int k = 0; k < c.n; k++)
          in[k] = (RigArray){
            floats[d], { 1, { sizes[k] } }, -0.2, 0.1, special && k == 2 ? RIG_SPECIAL : 0
          };
        rig_check ("sum of squares", in, c.n, &out, 1,
                   d == 0   ? 1e-6
                   : d == 1 ? 1e-12
                            : 1e-2,
                   call_squares, &c);
      }
}

/* More than one launch takes: these add to the sum. */
static void
sum_squares__takes_any_number_of_arrays (void **state)
{
  enum
  {
    ARRAYS = 150
  };
  static float numbers[ARRAYS][5];
  TdShape shape = { 1, { 5 } }, scalar = { 0, { 0 } };
  TdTensor x[ARRAYS];
  double got = -1, expected = 0;
  TdTensor sum = { &got, &scalar, 1, TD_F64 };

  for (int i = 0; i < ARRAYS; i++)
    {
      for (int j = 0; j < 5; j++)
        {
          numbers[i][j] = (float)(i + j);
          expected += (double)((i + j) * (i + j));
        }
      x[i] = (TdTensor){ numbers[i], &shape, 5, TD_F32 };
    }
  assert_int_equal (td_cuda_sum_squares (rig_launcher (), x, ARRAYS, &sum), TD_OK);
  assert_true (got == expected);
  assert_int_equal (td_cuda_sum_squares (rig_launcher (), x, 0, &sum), TD_OK);
  assert_true (got == 0);
}

typedef struct
{
  uint64_t max_samples, seed;
} Sample;

/* out[0]: the counts; out[1]: the moments. */
static TdStatus
call_stats (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Sample *c = context;
  int64_t *counts = out[0].data;
  double *moments = out[1].data;
  TdStats s;
  TdStatus status;

  if (gpu != NULL)
    {
      TdCudaStats *results = rig_guarded (2 * sizeof *results, true);
      const TdCudaStatsOf of[2]
          = { { in[0].data, in[0].size / 2, in[0].dtype, 5, 1, &results[1] },
              { in[0].data, in[0].size, in[0].dtype, c->max_samples, c->seed, &results[0] } };

      status = td_cuda_stats (gpu, of, 2);
      td_cuda_stats_finish (&results[0], &s);
      rig_release (results, 2 * sizeof *results);
    }
  else
    status = td__cpu_stats (NULL, &in[0], c->max_samples, c->seed, &s);
  memcpy (counts, &s.n, 6 * sizeof *counts);
  for (int k = 0; k < 32; k++)
    counts[6 + k] = s.exponent[k];
  /* A mean that is nothing beside the numbers is their rounding, which depends on the order. */
  if (fabs (s.mean) < 1e-12 * (s.max - s.min))
    s.mean = 0;
  memcpy (moments, &s.min, 5 * sizeof *moments);
  return status;
}

static void
stats__counts_and_moments_are_the_cpus (void **state)
{
  static const int64_t sizes[] = { 0, 1, 100, 5000, 40000, 70000, 70001, 70002 };
  static const Sample samples[] = { { 0, 0 }, { 64, 7 }, { 1000, 123456789 } };
  const RigArray out[2]
      = { { TD_I64, { 1, { 38 } }, 0, 0, 0 }, { TD_F64, { 1, { 5 } }, 0, 0, 0 } };
  char what[80];

  for (int s = 0; s < (int)(sizeof sizes / sizeof sizes[0]); s++)
    for (int d = TD_F32; d <= TD_BOOL; d++)
      {
        const RigArray in = { (TdDtype)d,
                              { 1, { sizes[s] } },
                              -3,
                              d == TD_F16 ? 9 : 50,
                              d == TD_F64 || s == 2 ? RIG_SPECIAL : 0 };

        if (sizes[s] >= 40000 && d > TD_F64)
          continue;
        snprintf (what, sizeof what, "statistics of %d numbers of dtype %d", (int)sizes[s], d);
        rig_check (what, &in, 1, out, 2, s == 2 ? 1e-5 : 1e-6, call_stats,
                   &samples[(s + d) % 3]);
      }
}

static void
kernels__of_these_families_have_all_run (void **state)
{
  static const char *const words[]
      = { "td_loss_", "td_right_",  "td_count_rows", "td_label_counts_end",
          "td_lstm_", "td_update_", "td_stats",      "td_sum_squares" };

  rig_all_ran (words, (int)(sizeof words / sizeof words[0]));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (cross_entropy__gives_the_cpus_losses_gradients_and_shares),
    cmocka_unit_test (accuracy__counts_as_the_cpu_with_nan_the_largest),
    cmocka_unit_test (lstm__gives_the_cpus_cells_and_gradients),
    cmocka_unit_test (update__gives_the_cpus_numbers_for_every_rule_and_type),
    cmocka_unit_test (update__takes_many_parameters_with_few_launches),
    cmocka_unit_test (sum_squares__is_the_sum_of_what_reduce_gives),
    cmocka_unit_test (sum_squares__takes_any_number_of_arrays),
    cmocka_unit_test (stats__counts_and_moments_are_the_cpus),
    cmocka_unit_test (cross_entropy__of_nan_and_infinities_is_of_the_cpus_kind),
    cmocka_unit_test (kernels__of_these_families_have_all_run),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
