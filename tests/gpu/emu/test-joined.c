/* Kernels of rows that do what other kernels would have done before or after them: to the bit
 * what these leave one after the other.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <string.h>

#include "td-test.h"

static const TdDtype dtypes[][3] /* x, gamma, moments */
    = { { TD_F32, TD_F32, TD_F32 },   { TD_F64, TD_F64, TD_F64 }, { TD_F16, TD_F16, TD_F32 },
        { TD_BF16, TD_BF16, TD_F32 }, { TD_F16, TD_F32, TD_F32 }, { TD_BF16, TD_F32, TD_F32 } };

/* Where a sum is left. */
typedef enum
{
  APART,
  IN_X,     /* in the place of what is added up: the first, */
  IN_ADDED, /* the second */
  NOWHERE,
  NOWHERE_IN_X, /* and the result in the place of x */
  WAYS
} Way;

typedef struct
{
  TdRowNormKind kind;
  TdRowNorm norm;
  Way way;
} Joined;

static size_t
bytes_of (const TdTensor *x)
{
  return (size_t)x->size * rig_bytes_of (x->dtype);
}

/* A tensor of the numbers of x in the memory of y. */
static TdTensor
moved (const TdTensor *x, const TdTensor *y)
{
  TdTensor to = *x;

  memcpy (y->data, x->data, bytes_of (x));
  to.data = y->data;
  return to;
}

/* x, gamma, beta?, added -> y, mean?, 1 / std, sum?: two kernels. */
static TdStatus
one_after_the_other (TdTensor *in, int n_in, TdTensor *out, int n_out, const Joined *c)
{
  TdCudaLauncher *l = rig_launcher ();
  TdTensor operands[5], sum = in[0];
  TdStatus status;

  sum.data = c->way < NOWHERE ? out[n_out].data : rig_guarded (bytes_of (&sum), true);
  memcpy (operands, in, (size_t)n_in * sizeof *in);
  operands[0] = sum;
  status = td_cuda_binary (l, TD_BINARY_ADD, &in[0], &in[n_in], &sum, false);
  if (status == TD_OK)
    status = td_cuda_row_norm (l, c->kind, &c->norm, operands, n_in, out, n_out);
  if (c->way >= NOWHERE)
    rig_release (sum.data, bytes_of (&sum));
  return status;
}

static TdStatus
call_joined (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Joined *c = context;
  const int n = 2 + c->norm.centred; /* inputs and outputs of a normalisation alone */
  TdTensor operands[5];
  TdRowNorm norm = c->norm;

  if (gpu == NULL)
    return one_after_the_other (in, n, out, n, c);
  memcpy (operands, in, 5 * sizeof *in);
  if (c->way == IN_X)
    operands[0] = moved (&in[0], &out[n]);
  if (c->way == IN_ADDED)
    operands[n] = moved (&in[n], &out[n]);
  if (c->way == NOWHERE_IN_X)
    operands[0] = moved (&in[0], &out[0]);
  norm.join.added = &operands[n];
  norm.join.sum = c->way < NOWHERE ? &out[n] : NULL;
  return td_cuda_row_norm (gpu, c->kind, &norm, operands, n, out, n);
}

/* x, gamma, gy, mean?, 1 / std, added -> gx + added, ggamma, gbeta?. */
static TdStatus
call_joined_grad (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Joined *c = context;
  const int n_in = 4 + c->norm.centred, n_out = 2 + c->norm.centred;
  TdRowNorm norm = c->norm;
  TdTensor added = in[n_in];
  TdStatus status;

  if (gpu == NULL)
    {
      gpu = rig_launcher ();
      status = td_cuda_row_norm (gpu, c->kind, &norm, in, n_in, out, n_out);
      return status != TD_OK
                 ? status
                 : td_cuda_binary (gpu, TD_BINARY_ADD, &out[0], &added, &out[0], false);
    }
  if (c->way == IN_ADDED)
    added = moved (&added, &out[0]);
  norm.join.added = &added;
  return td_cuda_row_norm (gpu, c->kind, &norm, in, n_in, out, n_out);
}

static void
check (const int64_t *n, int d, bool centred, Way way, unsigned flags)
{
  const TdDtype dtype = dtypes[d][0];
  const RigArray x = { dtype, { 4, { n[0], n[1], n[2], n[3] } }, -2, 3, flags };
  const RigArray c = { dtypes[d][1], { 1, { n[1] * n[2] } }, 0.5, 2, 0 };
  const RigArray rows = { dtypes[d][2], { 1, { n[0] * n[1] } }, 0.5, 1, 0 };
  Joined call = { TD_ROW_NORM, { n[0], n[1], n[2], n[3], centred ? 1e-5 : 0.3, centred }, way };

  if (centred)
    rig_check ("norm of a sum", (const RigArray[]){ x, c, c, x }, 4,
               (const RigArray[]){ x, rows, rows, x }, 3 + (way < NOWHERE), 0, call_joined,
               &call);
  else
    rig_check ("rms norm of a sum", (const RigArray[]){ x, c, x }, 3,
               (const RigArray[]){ x, rows, x }, 2 + (way < NOWHERE), 0, call_joined, &call);
  if (way != APART && way != IN_ADDED)
    return;
  call.kind = TD_ROW_NORM_GRAD;
  if (centred)
    rig_check ("norm's gradient and a sum", (const RigArray[]){ x, c, x, rows, rows, x }, 6,
               (const RigArray[]){ x, c, c }, 3, 0, call_joined_grad, &call);
  else
    rig_check ("rms norm's gradient and a sum", (const RigArray[]){ x, c, x, rows, x }, 5,
               (const RigArray[]){ x, c }, 2, 0, call_joined_grad, &call);
}

/* Rows that are kept or read again, by packs or one by one; groups of channels. */
static void
norm__of_a_sum_is_that_of_what_a_kernel_would_leave (void **state)
{
  static const int64_t sizes[][4] /* n, groups, channels, rest */
      = {
          { 37, 1, 8, 1 },   { 5, 1, 7, 1 },  { 3, 2, 3, 11 },
          { 2, 1, 1024, 1 }, { 9, 2, 24, 1 }, { 6, 1, 776, 1 },
        };

  for (int s = 0; s < 6; s++)
    for (int d = 0; d < 6; d++)
      for (int way = 0; way < WAYS; way++)
        check (sizes[s], d, (d + way + s) % 3 != 0, (Way)way, 0);
}

static void
norm__of_a_sum_reads_long_rows_again_where_it_left_them (void **state)
{
  static const int64_t sizes[][4] = { { 1, 1, 4104, 1 }, { 1, 1, 8216, 1 } };

  for (int s = 0; s < 2; s++)
    for (int d = 0; d < 4; d++)
      for (int way = 0; way < WAYS; way++)
        if ((d + way + s) % 2 == 0)
          check (sizes[s], d, (d + way) % 4 != 0, (Way)way, 0);
}

static void
kernels__that_are_joined_have_all_run (void **state)
{
  static const char *const words[]
      = { "td_norm_of_sum_", "td_norm_grad_to_sum_", "td_norm_rows_grad_to_sum_" };

  rig_all_ran (words, (int)(sizeof words / sizeof words[0]));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (norm__of_a_sum_is_that_of_what_a_kernel_would_leave),
    cmocka_unit_test (norm__of_a_sum_reads_long_rows_again_where_it_left_them),
    cmocka_unit_test (kernels__that_are_joined_have_all_run),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
