/* Fused groups of static chains on the device: one kernel each, made at run time from the
 * schedule, against the code itself there and on the CPU, bit for bit.
 *
 * SPDX-License-Identifier: MIT */
#include "tapedeck.h"

#include "far-cuda.h"
#include "td-test.h"

#include <stdlib.h>
#include <string.h>

enum
{
  ROWS = 59,
  COLUMNS = 17,
  N = ROWS * COLUMNS, /* packs of 16 bytes, and a rest */
  CALLS = 4,
  RESULTS = 4 /* two outputs, two gradients */
};

typedef struct
{
  unsigned char bytes[RESULTS][N * 8];
  long launches; /* of the last call */
  uint32_t n_fused;
} Answers;

/* 18 operations on arrays of one size, one number, one row and one array of integers among
 * their inputs, two results. */
static void
chain (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *x = in[0], *w = in[1], *number = in[2], *row = in[3], *a, *b;
  TdVar *chosen = in[4];

  a = td_tanh (td_sub (td_add (td_mul (x, w), number), row));
  b = td_sub (td_mul_scalar (td_sigmoid (a), 1.7), td_relu (x));
  b = td_clip (td_elu (b), -0.6, 0.9);
  b = td_where (chosen, b, td_where (td_relu (w), a, number));
  out[0] = td_mul (td_mul (td_exp (td_neg (td_square (b))), w), row);
  out[1] = td_maximum (td_softplus (a), td_silu (b));
}

/* Mixed precision: 13 operations in halves and floats, two of them dropout, and a choice by a
 * byte. */
static void
mixed_chain (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *x = td_cast (in[0], TD_BF16), *w = td_cast (in[1], TD_BF16), *a, *b;
  TdVar *row = td_cast (in[3], TD_BF16), *chosen = td_cast (in[4], TD_BOOL);

  a = td_dropout (td_gelu (td_add (td_mul (x, w), row)), 0.3);
  b = td_where (chosen, td_cast (td_tanh (td_cast (a, TD_F32)), TD_BF16), x);
  out[0] = td_cast (td_add (b, td_mul_scalar (w, 0.5)), TD_F32);
  out[1] = td_dropout (td_cast (td_sub (b, a), TD_F16), 0.1);
}

static TdVar *
wave (TdDtype dtype, int64_t rows, int64_t columns, double step)
{
  TdVar *v = td_sin (td_mul_scalar (td_arange (dtype, 0, (double)(rows * columns), 1), step));

  return td_reshape (v, TD_SHAPE (rows, columns));
}

/* Integers, the sign bit alone among them: as a number that is a 0. */
static TdVar *
some_are_0 (TdDtype dtype, int call)
{
  unsigned char bytes[N * 8] = { 0 };
  const size_t size = dtype == TD_I64 ? 8 : 4;

  for (int i = 0; i < N; i++)
    bytes[(size_t)i * size + (i % 3 == call % 3 ? 0 : size - 1)] = i % 2 != 0          ? 0
                                                                   : i % 3 == call % 3 ? 5
                                                                                       : 0x80;
  return td_tensor (dtype, TD_SHAPE (ROWS, COLUMNS), bytes);
}

static void
keep (Answers *a, int k, TdVar *v)
{
  const size_t bytes = (size_t)td_size (v) * td_dtype_bytes (td_dtype (v));

  assert_int_equal (td_size (v), N);
  memset (a->bytes[k], 0, sizeof a->bytes[k]);
  assert_int_equal (td_read (v, a->bytes[k], bytes), TD_OK);
}

/* Call the code, or its schedule, CALLS times with other numbers each time. */
static void
answer (const char *device, TdStaticFn code, TdDtype dtype, TdStatic *s, Answers *answers)
{
  assert_int_equal (td_device_use (td_device_get (device)), TD_OK);
  for (int call = 0; call < CALLS; call++)
    TD_SCOPE ("call")
      {
        TdVar *in[5] = { td_variable (wave (dtype, ROWS, COLUMNS, 0.37 + call), "x"),
                         td_variable (wave (dtype, ROWS, COLUMNS, 0.71 + call), "w"),
                         wave (dtype, 1, 1, 1), wave (dtype, 1, COLUMNS, 0.3),
                         some_are_0 (dtype == TD_F64 ? TD_I64 : TD_I32, call) },
              *out[2], *gx[2];
        long before = far_cuda_driver ()->state->n_launches;

        td_set_seed ((uint64_t)call + 5);
        if (s != NULL)
          assert_int_equal (td_static_call (s, in, 5, out, 2), TD_OK);
        else
          code (NULL, in, 5, out, 2);
        keep (&answers[call], 0, out[0]);
        keep (&answers[call], 1, out[1]);
        answers[call].launches = far_cuda_driver ()->state->n_launches - before;
        out[1] = td_cast (td_mul_scalar (out[1], 0.25), td_dtype (out[0]));
        td_backward (td_sum (td_add (out[0], out[1])), 0);
        gx[0] = td_grad (in[0]);
        gx[1] = td_grad (in[1]);
        keep (&answers[call], 2, gx[0]);
        keep (&answers[call], 3, gx[1]);
        answers[call].n_fused = s != NULL ? td_static_info (s).n_fused : 0;
      }
}

static void
same_bits (const Answers *a, const Answers *b)
{
  for (int call = 0; call < CALLS; call++)
    for (int k = 0; k < RESULTS; k++)
      assert_memory_equal (a[call].bytes[k], b[call].bytes[k], sizeof a->bytes[k]);
}

static void
compare (TdStaticFn code_of, TdDtype dtype, uint32_t n_fused, long n_saved)
{
  Answers *cpu = calloc (CALLS, sizeof *cpu), *code = calloc (CALLS, sizeof *code);
  Answers *fused = calloc (CALLS, sizeof *fused), *single = calloc (CALLS, sizeof *single);
  TdStatic *s = td_static_new (code_of, NULL, .cuda_graph = false);
  TdStatic *plain = td_static_new (code_of, NULL, .fuse = false, .cuda_graph = false);
  TdStatic *captured = td_static_new (code_of, NULL); /* and its kernels in CUDA graphs */

  answer ("cpu", code_of, dtype, NULL, cpu);
  answer ("cuda:0", code_of, dtype, NULL, code);
  answer ("cuda:0", code_of, dtype, plain, single);
  answer ("cuda:0", code_of, dtype, s, fused);
  assert_int_equal (td_static_info (s).n_replays, CALLS - 1);
  same_bits (fused, code);
  same_bits (single, code);
  if (dtype == TD_F32) /* f64 is by libm here, and by CUDA's functions there */
    same_bits (fused, cpu);
  assert_true (fused[CALLS - 1].n_fused >= n_fused);
  assert_int_equal (single[CALLS - 1].n_fused, 0);
  assert_true (single[CALLS - 1].launches >= fused[CALLS - 1].launches + n_saved);
  answer ("cuda:0", code_of, dtype, captured, single);
  assert_true (far_cuda_driver ()->state->n_graph_launches > 0);
  same_bits (single, code);
  td_static_free (s);
  td_static_free (plain);
  td_static_free (captured);
  free (cpu);
  free (code);
  free (fused);
  free (single);
}

static void
programs__in_f32_give_the_bits_of_the_code (void **state)
{
  compare (chain, TD_F32, 20, 16); /* 18 kernels are one */
}

static void
programs__in_f64_give_the_bits_of_the_code (void **state)
{
  compare (chain, TD_F64, 20, 16);
}

/* As every call has other random numbers, those of the graph are changed before each launch. */
static void
programs__in_mixed_precision_give_the_bits_of_the_code (void **state)
{
  compare (mixed_chain, TD_F32, 20, 13); /* dropout is two kernels by itself */
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (programs__in_f32_give_the_bits_of_the_code),
    cmocka_unit_test (programs__in_f64_give_the_bits_of_the_code),
    cmocka_unit_test (programs__in_mixed_precision_give_the_bits_of_the_code),
  };

  setenv ("TAPEDECK_CUDA_CACHE", "off", 1);
  if (td_init (&argc, &argv) != TD_OK)
    return 1;
  return cmocka_run_group_tests_name ("programs", tests, NULL, NULL);
}
