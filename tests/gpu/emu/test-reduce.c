/* Reductions and what is done along an axis, beside the CPU's.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdio.h>
#include <string.h>

#include "compute/cpu/cpu.h"
#include "td-test.h"

typedef struct
{
  int kind, axis;
  uint32_t axes;
  bool flag;
} Call;

static const TdDtype numbers[] = { TD_F32, TD_F64, TD_F16, TD_BF16, TD_I32, TD_I64 };

static double
tolerance_of (TdDtype dtype)
{
  return dtype == TD_BF16 ? 2e-2 : dtype == TD_F16 ? 2e-3 : dtype == TD_F32 ? 1e-5 : 1e-11;
}

/* x's shape without some axes; kept ones of 1 would do as well. */
static TdShape
without (const TdShape *x, uint32_t axes)
{
  TdShape y = { 0 };

  for (int i = 0; i < x->ndim; i++)
    if ((axes >> i & 1) == 0)
      y.dim[y.ndim++] = x->dim[i];
  return y;
}

static TdStatus
call_reduce (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Call *c = context;

  return gpu == NULL
             ? td__cpu_reduce (NULL, (TdReduceKind)c->kind, c->axes, &in[0], &out[0], c->flag)
             : td_cuda_reduce (gpu, (TdReduceKind)c->kind, c->axes, &in[0], &out[0], c->flag);
}

static void
check_reduce (int kind, TdDtype dtype, const TdShape *shape, uint32_t axes, unsigned flags)
{
  const RigArray in = { dtype, *shape, -1.5, 2, flags };
  const RigArray out = { dtype, without (shape, axes), -2, 2, RIG_KEEP };
  const Call c = { .kind = kind, .axes = axes, .flag = shape->dim[0] % 2 == 0 };
  char what[100];

  snprintf (what, sizeof what, "reduction %d of dtype %d, axes %x of %d, first %d", kind,
            (int)dtype, axes, shape->ndim, (int)shape->dim[0]);
  rig_check (what, &in, 1, &out, 1, tolerance_of (dtype), call_reduce, &c);
}

static void
reduce__gives_the_cpus_numbers_for_every_kind_and_type (void **state)
{
  static const TdShape shapes[]
      = { { 1, { 9000 } }, { 2, { 6, 300 } }, { 3, { 5, 4, 7 } }, { 2, { 120, 200 } } };

  for (int kind = 0; kind < TD_REDUCE_ARGMAX; kind++)
    for (int d = 0; d < 6; d++)
      for (int s = 0; s < 4; s++)
        check_reduce (kind, numbers[d], &shapes[s],
                      s == 0 ? 1 : (uint32_t)(1 + (kind + d) % (s == 2 ? 7 : 3)), 0);
}

static void
reduce__takes_any_axes_of_any_shape (void **state)
{
  for (int i = 0; i < 150; i++)
    {
      const TdShape shape = rig_shape (1 + i % 8, i % 6 == 0 ? 5000 : 200);
      const uint32_t axes = (uint32_t)rig_random (1ull << shape.ndim);

      check_reduce (i % 2 == 0 ? TD_REDUCE_SUM : TD_REDUCE_MAX, numbers[i % 6], &shape, axes,
                    0);
    }
}

/* Shapes by how they are read: rows and what is left of them, columns, few and many; runs of
 * packs; several parts of each. */
static struct
{
  TdShape shape;
  uint32_t axes;
} ways[] = {
  { { 1, { 9001 } }, 1 },      { { 2, { 7, 301 } }, 2 },    { { 2, { 40, 24 } }, 2 },
  { { 2, { 30, 7 } }, 2 },     { { 2, { 3, 3000 } }, 2 },   { { 3, { 6, 5, 48 } }, 5 },
  { { 3, { 6, 5, 49 } }, 5 },  { { 3, { 40, 3, 96 } }, 5 }, { { 2, { 300, 64 } }, 1 },
  { { 2, { 301, 10 } }, 1 },   { { 2, { 900, 3 } }, 1 },    { { 2, { 9, 1000 } }, 1 },
  { { 3, { 4, 70, 24 } }, 2 }, { { 3, { 5, 9, 17 } }, 2 },  { { 4, { 6, 3, 5, 40 } }, 5 },
};

/* The same numbers, but for the first: none that a pack begins with is aligned. */
static TdStatus
call_reduce_behind (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Call *c = context;
  TdTensor x = in[0];

  x.data = (char *)x.data + rig_bytes_of (x.dtype);
  x.shape = &ways[c->axis].shape;
  x.size--;
  return call_reduce (gpu, &x, out, context);
}

static void
reduce__is_the_cpus_however_numbers_lie (void **state)
{
  for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
    for (int d = 0; d < 6; d++)
      for (int k = 0; k < 3; k++)
        {
          static const int kinds[] = { TD_REDUCE_SUM, TD_REDUCE_MIN, TD_REDUCE_LOGSUMEXP };
          const TdShape *shape = &ways[w].shape;
          const RigArray out = { numbers[d], without (shape, ways[w].axes), -2, 2, RIG_KEEP };
          const Call c = { .kind = kinds[k], .axes = ways[w].axes, .axis = (int)w };
          RigArray in = { numbers[d], { 1, { 1 } }, -1.5, 2, 0 };

          check_reduce (kinds[k], numbers[d], shape, ways[w].axes, 0);
          for (int i = 0; i < shape->ndim; i++)
            in.shape.dim[0] *= shape->dim[i];
          in.shape.dim[0]++;
          rig_check ("reduction of numbers not aligned", &in, 1, &out, 1,
                     tolerance_of (numbers[d]), call_reduce_behind, &c);
        }
}

static void
reduce__passes_nan_and_infinities_on (void **state)
{
  static const int kinds[]
      = { TD_REDUCE_MAX, TD_REDUCE_MIN, TD_REDUCE_LOGSUMEXP, TD_REDUCE_SUM_SQUARES };
  const TdShape shape = { 2, { 200, 9 } }, wide = { 2, { 90, 132 } };

  for (int k = 0; k < 4; k++)
    for (int d = 0; d < 2; d++)
      {
        check_reduce (kinds[k], numbers[d], &shape, 2, RIG_SPECIAL);
        check_reduce (kinds[k], numbers[d], &shape, 3, RIG_SPECIAL);
        check_reduce (kinds[k], numbers[d], &wide, 1, RIG_SPECIAL);
        check_reduce (kinds[k], numbers[d], &wide, 2, RIG_SPECIAL);
      }
}

static void
check_along (const char *what, RigCall call, int kind, TdDtype dtype, TdDtype out_dtype,
             const TdShape *shape, int axis, bool flag, unsigned flags, double tolerance)
{
  const RigArray in[2] = { { dtype, *shape, -2, 2, flags }, { dtype, *shape, -2, 2, 0 } };
  const bool reduces = kind == TD_REDUCE_ARGMAX || kind == TD_REDUCE_ARGMIN;
  const RigArray out
      = { out_dtype, reduces ? without (shape, 1u << axis) : *shape, -2, 2, RIG_KEEP };
  const Call c = { .kind = kind, .axis = axis, .axes = 1u << axis, .flag = flag };

  rig_check (what, in, 2, &out, 1, tolerance, call, &c);
}

static const TdShape lines[]
    = { { 1, { 1 } },         { 1, { 1500 } },    { 2, { 70, 10 } },    { 2, { 10, 70 } },
        { 3, { 3, 33, 40 } }, { 2, { 2, 5000 } }, { 2, { 300, 1 } },    { 3, { 2, 300, 3 } },
        { 2, { 0, 4 } },      { 2, { 70, 24 } },  { 3, { 2, 3, 1056 } } };

enum
{
  N_LINES = sizeof lines / sizeof lines[0]
};

static void
argmax__finds_the_first_of_equals_and_nan_first (void **state)
{
  static const TdDtype types[] = { TD_F32, TD_F64, TD_I32, TD_I64, TD_F16, TD_BF16 };

  for (int s = 0; s < N_LINES; s++)
    for (int axis = 0; axis < lines[s].ndim; axis++)
      for (int d = 0; d < 6; d++)
        for (int kind = TD_REDUCE_ARGMAX; kind <= TD_REDUCE_ARGMIN; kind++)
          if (lines[s].dim[axis] > 0)
            check_along ("argmax", call_reduce, kind, types[d], TD_I32, &lines[s], axis, false,
                         s % 2 == 0 ? RIG_SPECIAL : 0, 0);
}

static TdStatus
call_sum (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Call *c = context;

  return gpu == NULL ? td__cpu_cumulative_sum (NULL, c->axis, c->flag, &in[0], &out[0])
                     : td_cuda_cumulative_sum (gpu, c->axis, c->flag, &in[0], &out[0]);
}

static void
cumulative_sum__gives_the_cpus_numbers_both_ways (void **state)
{
  for (int s = 0; s < N_LINES; s++)
    for (int axis = 0; axis < lines[s].ndim; axis++)
      for (int d = 0; d < 6; d++)
        check_along ("cumulative sum", call_sum, -1, numbers[d], numbers[d], &lines[s], axis,
                     (s + d) % 2 == 0, 0, tolerance_of (numbers[d]));
}

/* Lines that begin one number behind an aligned place. */
static TdStatus
call_behind (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Call *c = context;
  const bool place = c->kind >= 0;
  TdShape x_shape = { 3, { 2, (in[0].size - 1) / 2, 1 } }, y_shape = { 2, { 2, 1 } };
  TdTensor x = in[0], y = out[0];

  x.data = (char *)x.data + rig_bytes_of (x.dtype);
  x.size--;
  x.shape = &x_shape;
  y.data = (char *)y.data + rig_bytes_of (y.dtype);
  y.size--;
  y.shape = place ? &y_shape : &x_shape;
  return place ? call_reduce (gpu, &x, &y, c) : call_sum (gpu, &x, &y, c);
}

static void
lines__may_begin_anywhere (void **state)
{
  static const int64_t sizes[] = { 40, 201, 1500, 2600 };

  for (int s = 0; s < 4; s++)
    for (int d = 0; d < 6; d++)
      for (int way = 0; way < 2; way++)
        {
          const TdShape shape = { 1, { 2 * sizes[s] + 1 } }, three = { 1, { 3 } };
          const RigArray x = { numbers[d], shape, -2, 2, RIG_WHOLE };
          const RigArray y = { numbers[d], shape, -2, 2, RIG_KEEP };
          const RigArray places = { TD_I32, three, 0, 9, RIG_KEEP };
          const Call sum = { .kind = -1, .axis = 1, .flag = way == 0 };
          const Call best
              = { .kind = way == 0 ? TD_REDUCE_ARGMAX : TD_REDUCE_ARGMIN, .axes = 2 };

          rig_check ("cumulative sum behind", &x, 1, &y, 1, tolerance_of (numbers[d]),
                     call_behind, &sum);
          rig_check ("argmax behind", &x, 1, &places, 1, 0, call_behind, &best);
        }
}

static TdStatus
call_softmax (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Call *c = context;
  const TdTensor *gy = c->kind >= TD_SOFTMAX_GRAD ? &in[1] : NULL;
  const TdSoftmaxKind kind = (TdSoftmaxKind)c->kind;

  return gpu == NULL ? td__cpu_softmax (NULL, kind, c->axis, &in[0], gy, &out[0])
                     : td_cuda_softmax (gpu, kind, c->axis, &in[0], gy, &out[0]);
}

static void
softmax__gives_the_cpus_numbers_in_all_four_kinds (void **state)
{
  for (int s = 0; s < N_LINES; s++)
    for (int axis = 0; axis < lines[s].ndim; axis++)
      for (int kind = 0; kind <= TD_LOG_SOFTMAX_GRAD; kind++)
        for (int d = 0; d < 4; d++)
          check_along ("softmax", call_softmax, kind, numbers[d], numbers[d], &lines[s], axis,
                       false, kind < TD_SOFTMAX_GRAD && s % 2 == 0 ? RIG_SPECIAL : 0,
                       (d > 1    ? 1
                        : s == 5 ? 100
                                 : 10)
                           * tolerance_of (numbers[d]));
}

/* Of each length some rows are aligned and some are not, as all lie at the end of a page too.
 */
/* The rows begin one number behind an aligned place. */
static TdStatus
call_softmax_behind (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const size_t bytes = rig_bytes_of (in[0].dtype);
  TdShape rows = { 2, { (in[0].size - 1) / 24, 24 } };
  TdTensor all[3] = { in[0], in[1], out[0] };

  for (int i = 0; i < 3; i++)
    {
      all[i].data = (char *)all[i].data + bytes;
      all[i].shape = &rows;
      all[i].size -= 1;
    }
  return call_softmax (gpu, all, &all[2], context);
}

static void
softmax__is_the_cpus_in_rows_that_are_not_aligned (void **state)
{
  const TdShape shape = { 1, { 24 * 37 + 1 } };

  for (int kind = 0; kind <= TD_LOG_SOFTMAX_GRAD; kind++)
    for (int d = 0; d < 4; d++)
      {
        const RigArray in[2]
            = { { numbers[d], shape, -2, 2, 0 }, { numbers[d], shape, -2, 2, 0 } };
        const RigArray out = { numbers[d], shape, -2, 2, RIG_KEEP };
        const Call c = { .kind = kind, .axis = 1 };

        rig_check ("softmax of rows not aligned", in, 2, &out, 1,
                   (d > 1 ? 1 : 10) * tolerance_of (numbers[d]), call_softmax_behind, &c);
      }
}

static void
softmax__is_the_cpus_in_rows_of_packs_kept_or_read_again (void **state)
{
  static const int64_t sizes[][2] = { { 40, 8 },   { 37, 24 },  { 9, 132 }, { 5, 1024 },
                                      { 3, 1027 }, { 2, 4096 }, { 1, 8216 } };

  for (int s = 0; s < 7; s++)
    for (int kind = 0; kind <= TD_LOG_SOFTMAX_GRAD; kind++)
      for (int d = 0; d < 4; d++)
        {
          const TdShape shape = { 2, { sizes[s][0], sizes[s][1] } };

          check_along ("softmax of packs", call_softmax, kind, numbers[d], numbers[d], &shape,
                       1, false, s == 2 ? RIG_SPECIAL : 0,
                       (d > 1 ? 1 : 100) * tolerance_of (numbers[d]));
        }
}

static void
kernels__of_these_families_have_all_run (void **state)
{
  static const char *const words[] = { "td_reduce_",    "td_logsumexp_",  "td_argmax_",
                                       "td_sum_along_", "td_scan_along_", "td_softmax_" };

  rig_all_ran (words, (int)(sizeof words / sizeof words[0]));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (reduce__gives_the_cpus_numbers_for_every_kind_and_type),
    cmocka_unit_test (reduce__takes_any_axes_of_any_shape),
    cmocka_unit_test (reduce__is_the_cpus_however_numbers_lie),
    cmocka_unit_test (reduce__passes_nan_and_infinities_on),
    cmocka_unit_test (argmax__finds_the_first_of_equals_and_nan_first),
    cmocka_unit_test (cumulative_sum__gives_the_cpus_numbers_both_ways),
    cmocka_unit_test (lines__may_begin_anywhere),
    cmocka_unit_test (softmax__gives_the_cpus_numbers_in_all_four_kinds),
    cmocka_unit_test (softmax__is_the_cpus_in_rows_that_are_not_aligned),
    cmocka_unit_test (softmax__is_the_cpus_in_rows_of_packs_kept_or_read_again),
    cmocka_unit_test (kernels__of_these_families_have_all_run),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
