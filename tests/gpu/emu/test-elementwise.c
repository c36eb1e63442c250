/* Kernels that work element by element, beside the CPU's.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdio.h>

#include "compute/cpu/cpu.h"
#include "td-test.h"

static const TdDtype floats[] = { TD_F32, TD_F64, TD_F16, TD_BF16 };
static const TdDtype numbers[] = { TD_F32, TD_F64, TD_F16, TD_BF16, TD_I32, TD_I64 };
#define N_OF(table) (int)(sizeof (table) / sizeof (table)[0])

typedef struct
{
  int kind;
  double p, q;
  bool accumulate;
  TdRngKey key;
} Call;

static TdStatus
call_unary (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Call *c = context;

  return gpu == NULL ? td__cpu_unary (NULL, c->kind, c->p, c->q, &in[0], &out[0])
                     : td_cuda_unary (gpu, c->kind, c->p, c->q, &in[0], &out[0]);
}

static void
unary__gives_the_cpus_numbers_for_every_formula_and_type (void **state)
{
  static const int64_t sizes[] = { 64, 1, 7, 300, 40013 };
  char what[80];

  for (int kind = 0; kind < TD_UNARY_N; kind++)
    for (int d = 0; d < N_OF (numbers); d++)
      {
        const int64_t n = sizes[(kind + d) % N_OF (sizes)];
        const bool integer = numbers[d] == TD_I32 || numbers[d] == TD_I64;
        const RigArray in = { numbers[d], { 1, { n } }, -4, 4, RIG_SPECIAL };
        const Call c = { .kind = kind, .p = integer ? -2 : 0.75, .q = integer ? 2 : 1.5 };

        snprintf (what, sizeof what, "unary %d, dtype %d", kind, (int)numbers[d]);
        rig_check (what, &in, 1, &in, 1, 0, call_unary, &c);
      }
}

static void
unary__launches_nothing_for_no_numbers (void **state)
{
  const RigArray none = { TD_F32, { 2, { 3, 0 } }, 0, 0, 0 };
  const Call c = { .kind = TD_UNARY_EXP };
  const long before = td_emu_launches ();

  rig_check ("no numbers", &none, 1, &none, 1, 0, call_unary, &c);
  assert_int_equal (td_emu_launches (), before);
}

static void
unary__copies_bytes_and_truths (void **state)
{
  const Call c = { .kind = TD_UNARY_COPY };

  for (int d = TD_U8; d <= TD_BOOL; d++)
    {
      const RigArray in = { (TdDtype)d, { 1, { 1001 } }, 0, 255, 0 };

      rig_check ("copy of bytes", &in, 1, &in, 1, 0, call_unary, &c);
    }
}

static TdStatus
call_unary_grad (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Call *c = context;

  return gpu == NULL
             ? td__cpu_unary_grad (NULL, c->kind, c->p, &in[0], &in[1], &out[0], c->accumulate)
             : td_cuda_unary_grad (gpu, c->kind, c->p, &in[0], &in[1], &out[0], c->accumulate);
}

static void
unary_grad__gives_the_cpus_numbers_and_adds (void **state)
{
  char what[80];

  for (int kind = TD_UNARY_LEAKY_RELU; kind < TD_UNARY_N; kind++)
    for (int d = 0; d < N_OF (floats); d++)
      {
        const int64_t n = kind % 2 == 0 ? 1027 : 64;
        const RigArray a = { floats[d], { 1, { n } }, -4, 4, RIG_SPECIAL | RIG_KEEP };
        const RigArray in[2] = { a, a };
        const Call c = { .kind = kind, .p = 0.75, .accumulate = d % 2 == kind % 2 };

        snprintf (what, sizeof what, "gradient of unary %d, dtype %d", kind, (int)floats[d]);
        rig_check (what, in, 2, &a, 1, 0, call_unary_grad, &c);
      }
}

static TdStatus
call_binary (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Call *c = context;

  return gpu == NULL ? td__cpu_binary (NULL, c->kind, &in[0], &in[1], &out[0], c->accumulate)
                     : td_cuda_binary (gpu, c->kind, &in[0], &in[1], &out[0], c->accumulate);
}

/* A shape that broadcasts to `out`: some axes 1, some of the first left out. */
static TdShape
part_of (const TdShape *out)
{
  TdShape part = *out;
  int drop = (int)rig_random (4) == 0 ? (int)rig_random ((uint64_t)out->ndim + 1) : 0;

  part.ndim -= drop;
  for (int i = 0; i < part.ndim; i++)
    part.dim[i] = rig_random (3) == 0 ? 1 : out->dim[i + drop];
  return part;
}

static void
binary__gives_the_cpus_numbers_for_every_formula_and_type (void **state)
{
  char what[80];

  for (int kind = 0; kind < TD_BINARY_N; kind++)
    for (int d = 0; d < N_OF (numbers); d++)
      {
        const int64_t n = (kind + d) % 3 == 0 ? 2051 : 40;
        const RigArray a = { numbers[d], { 1, { n } }, -3, 3, RIG_SPECIAL | RIG_KEEP };
        const RigArray in[2] = { a, a };
        const Call c = { .kind = kind, .accumulate = (kind + d) % 2 == 0 };

        snprintf (what, sizeof what, "binary %d, dtype %d", kind, (int)numbers[d]);
        rig_check (what, in, 2, &a, 1, 0, call_binary, &c);
      }
}

static void
binary__broadcasts_any_shapes (void **state)
{
  char what[80];

  for (int i = 0; i < 120; i++)
    {
      const TdShape shape = rig_shape (i % 9, i % 5 == 0 ? 9000 : 300);
      const TdDtype dtype = numbers[i % N_OF (numbers)];
      const RigArray in[2]
          = { { dtype, part_of (&shape), -2, 2, 0 }, { dtype, part_of (&shape), -2, 2, 0 } };
      TdShape z = { 0 };
      RigArray out;
      const Call c
          = { .kind = i % 2 == 0 ? TD_BINARY_SUB : TD_BINARY_MUL, .accumulate = i % 3 == 0 };

      /* Axes of 1 in both stay 1. */
      z.ndim = in[0].shape.ndim > in[1].shape.ndim ? in[0].shape.ndim : in[1].shape.ndim;
      for (int k = 1; k <= z.ndim; k++)
        {
          const TdShape *a = &in[0].shape, *b = &in[1].shape;
          const int64_t m = k <= a->ndim ? a->dim[a->ndim - k] : 1;
          const int64_t n = k <= b->ndim ? b->dim[b->ndim - k] : 1;

          z.dim[z.ndim - k] = m == 1 ? n : m;
        }
      out = (RigArray){ dtype, z, -2, 2, RIG_KEEP };
      snprintf (what, sizeof what, "broadcast %d", i);
      rig_check (what, in, 2, &out, 1, 0, call_binary, &c);
    }
}

static void
binary__takes_packs_of_a_repeated_row_and_column (void **state)
{
  const RigArray x = { TD_F32, { 2, { 33, 64 } }, -2, 2, 0 };
  const RigArray row = { TD_F32, { 1, { 64 } }, -2, 2, 0 };
  const RigArray column = { TD_F32, { 2, { 33, 1 } }, -2, 2, 0 };
  const RigArray both[3][2] = { { x, row }, { x, column }, { column, row } };
  const Call c = { .kind = TD_BINARY_DIV };

  for (int i = 0; i < 3; i++)
    rig_check ("row and column", both[i], 2, &x, 1, 0, call_binary, &c);
}

static TdStatus
call_select (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  return gpu == NULL ? td__cpu_select (NULL, &in[0], &in[1], &in[2], &out[0])
                     : td_cuda_select (gpu, &in[0], &in[1], &in[2], &out[0]);
}

static void
select__chooses_as_the_cpu_for_every_pair_of_types (void **state)
{
  char what[80];

  for (int c = TD_F32; c <= TD_BOOL; c++)
    for (int d = TD_F32; d <= TD_BOOL; d++)
      {
        const RigArray out = { (TdDtype)d, { 3, { 3, 5, 7 } }, -3, 3, 0 };
        const RigArray in[3]
            = { { (TdDtype)c, { 3, { 3, 1, 7 } }, -1, 1, RIG_SPECIAL },
                { (TdDtype)d, { 3, { 3, 5, 7 } }, -3, 3, RIG_SPECIAL },
                { (TdDtype)d, { 1, { d % 2 == 0 ? 1 : 7 } }, -3, 3, RIG_SPECIAL } };

        snprintf (what, sizeof what, "select by dtype %d of dtype %d", c, d);
        rig_check (what, in, 3, &out, 1, 0, call_select, NULL);
      }
}

static TdStatus
call_cast (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  return gpu == NULL ? td__cpu_cast (NULL, &in[0], &out[0])
                     : td_cuda_cast (gpu, &in[0], &out[0]);
}

static void
cast__converts_as_the_cpu_between_all_types (void **state)
{
  static const double highs[] = { 100, 1e10, 300 };
  char what[80];

  for (int from = TD_F32; from <= TD_BOOL; from++)
    for (int to = TD_F32; to <= TD_BOOL; to++)
      for (int i = 0; i < N_OF (highs); i++)
        {
          const RigArray in
              = { (TdDtype)from, { 1, { 333 + i } }, -highs[i], highs[i], RIG_SPECIAL };
          const RigArray out = { (TdDtype)to, in.shape, 0, 0, 0 };

          snprintf (what, sizeof what, "cast of dtype %d to %d", from, to);
          rig_check (what, &in, 1, &out, 1, 0, call_cast, NULL);
        }
}

static TdStatus
call_fill (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Call *c = context;

  if (c->kind == 0)
    return gpu == NULL ? td__cpu_fill (NULL, &out[0], c->p) : td_cuda_fill (gpu, &out[0], c->p);
  return gpu == NULL ? td__cpu_arange (NULL, &out[0], c->p, c->q)
                     : td_cuda_arange (gpu, &out[0], c->p, c->q);
}

static void
fill_and_arange__give_the_cpus_numbers_in_all_types (void **state)
{
  static const int64_t sizes[] = { 0, 1, 15, 1000, 20011 };
  char what[80];

  for (int d = TD_F32; d <= TD_BOOL; d++)
    for (int i = 0; i < N_OF (sizes); i++)
      for (int kind = 0; kind < 2; kind++)
        {
          const RigArray out = { (TdDtype)d, { 1, { sizes[i] } }, 0, 0, 0 };
          const Call c = { .kind = kind, .p = 2.75, .q = 0.5 };

          snprintf (what, sizeof what, "%s of dtype %d", kind == 0 ? "fill" : "arange", d);
          rig_check (what, NULL, 0, &out, 1, 0, call_fill, &c);
        }
}

static TdStatus
call_random (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Call *c = context;

  return gpu == NULL ? td__cpu_random (NULL, c->kind, c->key, c->p, &out[0])
                     : td_cuda_random (gpu, c->kind, c->key, c->p, &out[0]);
}

static void
random__gives_the_cpus_bits (void **state)
{
  static const int64_t sizes[] = { 0, 1, 6, 257, 10007 };
  char what[80];

  for (int kind = TD_RANDOM_UNIFORM; kind <= TD_RANDOM_MASK; kind++)
    for (int d = 0; d < N_OF (floats); d++)
      for (int i = 0; i < N_OF (sizes); i++)
        {
          const RigArray out = { floats[d], { 1, { sizes[i] } }, 0, 0, 0 };
          const Call c = { .kind = kind,
                           .p = 0.3,
                           .key = { 0x123456789ABCDEFu + (uint64_t)i, 0xFFFFFFF0u } };

          snprintf (what, sizeof what, "random kind %d of dtype %d", kind, (int)floats[d]);
          rig_check (what, NULL, 0, &out, 1, 0, call_random, &c);
        }
}

/* The CPU's two steps. */
static TdStatus
call_dropout (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Call *c = context;
  const TdStatus status = gpu == NULL
                              ? td__cpu_random (NULL, TD_RANDOM_MASK, c->key, c->p, &out[0])
                              : td_cuda_dropout (gpu, c->key, c->p, &in[0], &out[0]);

  return gpu != NULL || status != TD_OK
             ? status
             : td__cpu_binary (NULL, TD_BINARY_MUL, &in[0], &out[0], &out[0], false);
}

static void
dropout__gives_the_bits_of_a_mask_and_a_product (void **state)
{
  static const int64_t sizes[] = { 0, 1, 6, 257, 10007, 40000 };
  char what[80];

  for (int d = 0; d < N_OF (floats); d++)
    for (int i = 0; i < N_OF (sizes); i++)
      {
        const RigArray x = { floats[d], { 1, { sizes[i] } }, -3, 3, RIG_SPECIAL };
        const RigArray y = { floats[d], x.shape, 0, 0, 0 };
        const Call c = { .p = i % 2 == 0 ? 0.3 : 0, .key = { 77, 0xFFFFFFF0u } };

        snprintf (what, sizeof what, "dropout of dtype %d", (int)floats[d]);
        rig_check (what, &x, 1, &y, 1, 0, call_dropout, &c);
      }
}

static void
kernels__refuse_the_types_that_the_cpu_refuses (void **state)
{
  const RigArray a = { TD_U8, { 1, { 4 } }, 0, 4, 0 }, in[2] = { a, a };
  const RigArray i = { TD_I32, { 1, { 4 } }, 0, 4, 0 }, mixed[2] = { a, i };
  const Call exp = { .kind = TD_UNARY_EXP }, add = { .kind = TD_BINARY_ADD };
  const Call div = { .kind = TD_BINARY_DIV }, gelu = { .kind = TD_UNARY_GELU };
  const RigArray ints[2] = { i, i };

  rig_check ("exp of bytes", &a, 1, &a, 1, 0, call_unary, &exp);
  rig_check ("exp of integers", &i, 1, &i, 1, 0, call_unary, &exp);
  rig_check ("sum of bytes", in, 2, &a, 1, 0, call_binary, &add);
  rig_check ("sum of two types", mixed, 2, &a, 1, 0, call_binary, &add);
  rig_check ("quotient of integers", ints, 2, &i, 1, 0, call_binary, &div);
  rig_check ("gradient of integers", ints, 2, &i, 1, 0, call_unary_grad, &gelu);
  rig_check ("random integers", NULL, 0, &i, 1, 0, call_random, &add);
}

static void
kernels__of_these_families_have_all_run (void **state)
{
  static const char *const words[] = { "td_unary_", "td_binary_", "td_cast_",   "td_arange_",
                                       "td_fill_",  "td_random_", "td_select_", "td_dropout_" };

  rig_all_ran (words, (int)(sizeof words / sizeof words[0]));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (unary__gives_the_cpus_numbers_for_every_formula_and_type),
    cmocka_unit_test (unary__launches_nothing_for_no_numbers),
    cmocka_unit_test (unary__copies_bytes_and_truths),
    cmocka_unit_test (unary_grad__gives_the_cpus_numbers_and_adds),
    cmocka_unit_test (binary__gives_the_cpus_numbers_for_every_formula_and_type),
    cmocka_unit_test (binary__broadcasts_any_shapes),
    cmocka_unit_test (binary__takes_packs_of_a_repeated_row_and_column),
    cmocka_unit_test (select__chooses_as_the_cpu_for_every_pair_of_types),
    cmocka_unit_test (cast__converts_as_the_cpu_between_all_types),
    cmocka_unit_test (fill_and_arange__give_the_cpus_numbers_in_all_types),
    cmocka_unit_test (random__gives_the_cpus_bits),
    cmocka_unit_test (dropout__gives_the_bits_of_a_mask_and_a_product),
    cmocka_unit_test (kernels__refuse_the_types_that_the_cpu_refuses),
    cmocka_unit_test (kernels__of_these_families_have_all_run),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
