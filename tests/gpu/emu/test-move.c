/* Kernels that move numbers, beside the CPU's: walks, transposes, rows by an index.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdio.h>
#include <string.h>

#include "compute/cpu/cpu.h"
#include "td-test.h"

typedef struct
{
  TdStridedKind kind;
  TdStrides walk;
} Walk;

static TdStatus
call_strided (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Walk *w = context;

  return gpu == NULL ? td__cpu_strided (NULL, w->kind, &in[0], &w->walk, &out[0])
                     : td_cuda_strided (gpu, w->kind, &in[0], &w->walk, &out[0]);
}

/* Walk `walked` with the strides of `whole` along its axes in order `axes`. */
static void
check_walk (const char *what, TdStridedKind kind, TdDtype dtype, const TdShape *whole,
            const TdShape *walked, const TdStrides *walk, double tolerance)
{
  const bool read = kind == TD_STRIDED_READ;
  const RigArray in = { dtype, read ? *whole : *walked, -9, 9, 0 };
  const RigArray out = { dtype, read ? *walked : *whole, -9, 9, RIG_KEEP };
  const Walk w = { kind, *walk };

  rig_check (what, &in, 1, &out, 1, tolerance, call_strided, &w);
}

/* Any axes of a shape in any order, whole or a slice of them, backwards now and then. */
static void
random_walk (const TdShape *whole, bool repeats, TdShape *walked, TdStrides *walk)
{
  int64_t stride[TD_MAX_DIMS], step = 1;
  int order[TD_MAX_DIMS];

  for (int i = whole->ndim - 1; i >= 0; step *= whole->dim[i], i--)
    {
      stride[i] = step;
      order[i] = i;
    }
  for (int i = whole->ndim - 1; i > 0; i--)
    {
      const int k = (int)rig_random ((uint64_t)i + 1), other = order[k];

      order[k] = order[i];
      order[i] = other;
    }
  *walk = (TdStrides){ 0 };
  walked->ndim = whole->ndim;
  for (int i = 0; i < whole->ndim; i++)
    {
      const int64_t n = whole->dim[order[i]], s = stride[order[i]];
      const uint64_t dice = rig_random (8);

      walked->dim[i] = n;
      walk->stride[i] = s;
      if (dice == 0 && n > 2)
        {
          walked->dim[i] = n / 2;
          walk->stride[i] = 2 * s;
          walk->offset += s;
        }
      else if (dice == 1 && n > 0)
        {
          walk->stride[i] = -s;
          walk->offset += (n - 1) * s;
        }
      else if (dice == 2 && repeats)
        walk->stride[i] = 0;
    }
}

static void
strided__reads_and_writes_any_walk_of_any_type (void **state)
{
  char what[80];

  for (int i = 0; i < 200; i++)
    {
      const TdDtype dtype = (TdDtype)(i % 8);
      const bool read = i % 3 != 0;
      const TdShape whole = rig_shape (i % 9, i % 7 == 0 ? 6000 : 400);
      TdShape walked;
      TdStrides walk;

      random_walk (&whole, read, &walked, &walk);
      snprintf (what, sizeof what, "walk %d", i);
      check_walk (what, read ? TD_STRIDED_READ : TD_STRIDED_WRITE, dtype, &whole, &walked,
                  &walk, 0);
    }
}

static void
strided__transposes_by_tiles_both_ways (void **state)
{
  static const int64_t sizes[][3]
      = { { 1, 33, 65 }, { 3, 4, 129 }, { 2, 100, 32 }, { 2, 64, 128 } };

  for (int i = 0; i < 4; i++)
    for (int d = 0; d < 8; d++)
      for (int read = 0; read < 2; read++)
        {
          const TdShape whole = { 3, { sizes[i][0], sizes[i][1], sizes[i][2] } };
          const TdShape walked = { 3, { sizes[i][0], sizes[i][2], sizes[i][1] } };
          const TdStrides walk = { 0, { sizes[i][1] * sizes[i][2], 1, sizes[i][2] } };

          check_walk ("transpose", read ? TD_STRIDED_READ : TD_STRIDED_WRITE, (TdDtype)d,
                      &whole, &walked, &walk, 0);
        }
}

static void
strided__adds_where_places_are_different (void **state)
{
  static const TdDtype types[] = { TD_F32, TD_F64, TD_I32, TD_I64, TD_F16, TD_BF16, TD_U8 };
  char what[80];

  for (int i = 0; i < 60; i++)
    {
      const TdShape whole = rig_shape (i % 5, 300);
      TdShape walked;
      TdStrides walk;

      random_walk (&whole, false, &walked, &walk);
      snprintf (what, sizeof what, "adding walk %d", i);
      check_walk (what, TD_STRIDED_ADD, types[i % 7], &whole, &walked, &walk, 0);
    }
}

static void
strided__adds_in_one_order_where_places_meet (void **state)
{
  /* All to one place; windows of 3 x 3 over an image; rows that overlap. */
  static const struct
  {
    TdShape whole, walked;
    TdStrides walk;
  } cases[] = {
    { { 1, { 3 } }, { 2, { 70, 3 } }, { 0, { 0, 1 } } },
    { { 3, { 2, 10, 11 } }, { 5, { 2, 3, 3, 8, 9 } }, { 0, { 110, 11, 1, 11, 1 } } },
    { { 1, { 40 } }, { 2, { 6, 9 } }, { 1, { 5, 1 } } },
    { { 1, { 1 } }, { 1, { 33 } }, { 0, { 0 } } },
  };

  for (int i = 0; i < 4; i++)
    {
      check_walk ("meeting places", TD_STRIDED_ADD, TD_F32, &cases[i].whole, &cases[i].walked,
                  &cases[i].walk, 1e-5);
      check_walk ("meeting integers", TD_STRIDED_ADD, TD_I32, &cases[i].whole, &cases[i].walked,
                  &cases[i].walk, 0);
    }
}

static TdStatus
call_gather (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  return gpu == NULL ? td__cpu_gather_rows (NULL, &in[0], &in[1], &out[0])
                     : td_cuda_gather_rows (gpu, &in[0], &in[1], &out[0]);
}

static TdStatus
call_scatter (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  return gpu == NULL ? td__cpu_scatter_rows_add (NULL, &in[0], &in[1], &out[0])
                     : td_cuda_scatter_rows_add (gpu, &in[0], &in[1], &out[0]);
}

static const int64_t tables[][3] /* rows, columns, indices */
    = { { 5, 1, 9 },   { 40, 16, 300 }, { 7, 300, 33 }, { 3000, 3, 40 },
        { 1, 5, 700 }, { 12, 8, 0 },    { 9, 4, 5000 }, { 40, 12, 2500 } };
static const TdDtype indices[] = { TD_I32, TD_I64, TD_U8, TD_F32 };

static void
gather__takes_the_rows_of_every_type (void **state)
{
  for (int t = 0; t < (int)(sizeof tables / sizeof tables[0]); t++)
    for (int d = 0; d < 8; d++)
      {
        const int64_t rows = tables[t][0], n = tables[t][2];
        const TdDtype dtype = indices[(t + d) % 4];
        const double highest = (double)((dtype == TD_U8 && rows > 256 ? 256 : rows) - 1);
        const RigArray in[2]
            = { { (TdDtype)d, { 2, { rows, tables[t][1] } }, -9, 9, 0 },
                { dtype, { 2, { n > 3 ? 3 : 1, n > 3 ? n / 3 : n } }, 0, highest, 0 } };
        const RigArray out = {
          (TdDtype)d, { 3, { in[1].shape.dim[0], in[1].shape.dim[1], tables[t][1] } }, 0, 0, 0
        };

        rig_check ("gather", in, 2, &out, 1, 0, call_gather, NULL);
      }
}

static void
scatter__adds_rows_in_the_order_of_the_indices (void **state)
{
  for (int t = 0; t < (int)(sizeof tables / sizeof tables[0]); t++)
    for (int d = 0; d < 8; d++)
      {
        const int64_t rows = tables[t][0];
        const TdDtype dtype = indices[(t + d) % 4];
        const double highest = (double)((dtype == TD_U8 && rows > 256 ? 256 : rows) - 1);
        const RigArray in[2]
            = { { dtype, { 1, { tables[t][2] } }, 0, highest, 0 },
                { (TdDtype)d, { 2, { tables[t][2], tables[t][1] } }, -9, 9, 0 } };
        const RigArray out = { (TdDtype)d, { 2, { rows, tables[t][1] } }, -9, 9, RIG_KEEP };

        rig_check ("scatter", in, 2, &out, 1, 0, call_scatter, NULL);
      }
}

static TdStatus
call_check (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const int64_t *limits = context;
  int64_t *found = out[0].data;

  return gpu == NULL
             ? td__cpu_check_index (NULL, &in[0], limits[0], limits[1], &found[0], &found[1])
             : td_cuda_check_index (gpu, &in[0], limits[0], limits[1], found);
}

static void
check_index__finds_the_first_bad_place_and_its_value (void **state)
{
  static const int64_t sizes[] = { 0, 1, 300, 5000, 30001 };
  const RigArray out = { TD_I64, { 1, { 2 } }, 0, 0, 0 };

  for (int i = 0; i < 5; i++)
    for (int d = 0; d < 3; d++)
      for (int64_t limit = 97; limit < 103; limit++)
        {
          const RigArray in
              = { indices[d], { 1, { sizes[i] } }, limit % 2 == 0 ? -1 : 0, 99, 0 };
          const int64_t limits[2] = { limit, -1 };

          rig_check ("check of indices", &in, 1, &out, 1, 0, call_check, limits);
        }
}

/* Two checks, of which one finds something, or both, or none. */
static TdStatus
call_check_async (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const int64_t *limits = context;
  int64_t *found = out[0].data, *any_bad = found + 4, *runs = found + 5, at, value;
  TdStatus status = TD_OK;

  for (int k = 0; k < 2 && status == TD_OK; k++)
    {
      if (gpu != NULL)
        {
          status = td_cuda_check_index_async (gpu, &in[0], limits[k], -1, found, any_bad,
                                              (uint64_t *)runs);
          continue;
        }
      status = td__cpu_check_index (NULL, &in[0], limits[k], -1, &at, &value);
      ++*runs;
      if (at < 0 || found[0] != 0)
        continue;
      memcpy (found, (const int64_t[]){ *runs, at, value }, 3 * sizeof *found);
      *any_bad = 1;
    }
  return status;
}

static void
check_index__that_nobody_waits_for_keeps_the_first_that_it_found (void **state)
{
  static const int64_t sizes[] = { 0, 1, 300, 2048, 2049, 30001 };
  static const int64_t limits[][2] = { { 100, 100 }, { 97, 20 }, { 100, 97 }, { 100, 1 } };
  const RigArray out = { TD_I64, { 1, { 6 } }, 0, 0, RIG_KEEP };

  for (int i = 0; i < 6; i++)
    for (int k = 0; k < 4; k++)
      {
        const RigArray in = { indices[(i + k) % 3], { 1, { sizes[i] } }, k % 2, 99, 0 };

        rig_check ("check of indices", &in, 1, &out, 1, 0, call_check_async, limits[k]);
      }
}

/* What is out of range is read as zeros, and added nowhere. */
static void
rows__that_are_not_there_are_passed_over (void **state)
{
  for (int t = 0; t < 5; t++)
    for (int d = 0; d < 8; d++)
      {
        const int64_t rows = tables[t][0], columns = tables[t][1], n = tables[t][2];
        const TdDtype dtype = d % 2 != 0 ? TD_I32 : TD_I64;
        const RigArray index = { dtype, { 1, { n } }, -3, (double)rows + 2, 0 };
        const RigArray many = { (TdDtype)d, { 2, { n, columns } }, -9, 9, 0 };
        const RigArray table = { (TdDtype)d, { 2, { rows, columns } }, -9, 9, RIG_KEEP };
        const RigArray gather[2]
            = { { (TdDtype)d, { 2, { rows, columns } }, -9, 9, 0 }, index };
        const RigArray scatter[2] = { index, many };

        rig_check ("gather", gather, 2, &many, 1, 0, call_gather, NULL);
        rig_check ("scatter", scatter, 2, &table, 1, 0, call_scatter, NULL);
      }
}

static void
kernels__of_these_families_have_all_run (void **state)
{
  static const char *const words[] = { "td_copy_walk_", "td_copy_tile_", "td_add_walk_",
                                       "td_gather_",    "td_scatter_",   "td_check_index" };

  rig_all_ran (words, (int)(sizeof words / sizeof words[0]));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (strided__reads_and_writes_any_walk_of_any_type),
    cmocka_unit_test (strided__transposes_by_tiles_both_ways),
    cmocka_unit_test (strided__adds_where_places_are_different),
    cmocka_unit_test (strided__adds_in_one_order_where_places_meet),
    cmocka_unit_test (gather__takes_the_rows_of_every_type),
    cmocka_unit_test (scatter__adds_rows_in_the_order_of_the_indices),
    cmocka_unit_test (check_index__finds_the_first_bad_place_and_its_value),
    cmocka_unit_test (check_index__that_nobody_waits_for_keeps_the_first_that_it_found),
    cmocka_unit_test (rows__that_are_not_there_are_passed_over),
    cmocka_unit_test (kernels__of_these_families_have_all_run),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
