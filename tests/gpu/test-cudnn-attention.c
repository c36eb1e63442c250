/* Attention's graphs in cuDNN, for a GPU that is only described.  Its engines are compiled when
 * they are planned, up to the loading of the code, which the toolkit's stand-in for the driver
 * refuses: that far is as far as it goes without a device.
 *
 * SPDX-License-Identifier: MIT */
#include "cudnn.h"

#include "h200.h"
#include "libraries.h"
#include "td-test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  const char *name;
  int64_t batch, n_q, n_k, d, d_v;
  bool causal;
} Case;

static const Case cases[] = {
  { "GPT-2, a batch of 8", 96, 1024, 1024, 64, 64, true },
  { "no mask", 96, 1024, 1024, 64, 64, false },
  { "few queries, causal", 8, 64, 192, 64, 64, true },
  { "keys of another text", 8, 128, 192, 64, 64, false },
  { "wide heads", 4, 256, 256, 128, 128, true },
  { "odd lengths", 4, 77, 131, 32, 32, false },
};

enum
{
  N_CASES = sizeof cases / sizeof cases[0]
};

static bool
make_key (TdCudnnAttention *key, const Case *c, TdAttentionKind kind, TdDtype dtype, int n_in)
{
  const TdAttention attrs = { .batch = c->batch,
                              .n_q = c->n_q,
                              .n_k = c->n_k,
                              .d = c->d,
                              .d_v = c->d_v,
                              .mask_every = 1,
                              .scale = 0.125,
                              .causal = c->causal };
  TdTensor in[7] = { { 0 } }, out[3] = { { .dtype = dtype } };

  return td_cudnn_attention_key (key, kind, &attrs, in, n_in, out);
}

/* One engine at least is the same every time, and the best of these can be compiled for the
 * card; a second or so each. */
static void
plan_first (size_t n, TdAttentionKind kind, TdDtype dtype)
{
  for (size_t i = 0; i < n; i++)
    {
      TdCudnnAttention key;
      TdCudnnPlanned planned;
      bool ready;

      assert_true (make_key (&key, &cases[i], kind, dtype, kind == TD_ATTENTION ? 3 : 6));
      ready = td_cudnn_attention_plan_deviceless (&key, td_h200, &planned);
      if (planned.n_exact < 1)
        fail_msg ("%s: %d engines, %d exact: %s", cases[i].name, planned.n_engines,
                  planned.n_exact, planned.why);
      if (!ready && strstr (planned.why, "cuLibraryLoadData") == NULL)
        fail_msg ("%s: %s", cases[i].name, planned.why);
    }
}

static void
cudnn__compiles_attention_in_bf16 (void **state)
{
  plan_first (N_CASES, TD_ATTENTION, TD_BF16);
}

static void
cudnn__compiles_attention_in_fp16 (void **state)
{
  plan_first (1, TD_ATTENTION, TD_F16);
}

static void
cudnn__compiles_the_gradient_of_attention_in_bf16 (void **state)
{
  plan_first (N_CASES, TD_ATTENTION_GRAD, TD_BF16);
}

static void
cudnn__compiles_the_gradient_of_attention_in_fp16 (void **state)
{
  plan_first (1, TD_ATTENTION_GRAD, TD_F16);
}

/* What is left to our own kernels: other dtypes, masks, rows that see nothing. */
static void
key__is_only_of_what_cudnn_gets_right (void **state)
{
  const Case blind = { "", 2, 8, 4, 64, 64, true }, empty = { "", 2, 0, 4, 64, 64, false };
  TdCudnnAttention key;

  assert_true (make_key (&key, &cases[0], TD_ATTENTION, TD_BF16, 3));
  assert_false (make_key (&key, &cases[0], TD_ATTENTION, TD_F32, 3));
  assert_false (make_key (&key, &cases[0], TD_ATTENTION, TD_F64, 3));
  assert_false (make_key (&key, &cases[0], TD_ATTENTION, TD_BF16, 4));
  assert_false (make_key (&key, &cases[0], TD_ATTENTION_GRAD, TD_BF16, 7));
  assert_false (make_key (&key, &blind, TD_ATTENTION, TD_BF16, 3));
  assert_false (make_key (&key, &empty, TD_ATTENTION, TD_BF16, 3));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (cudnn__compiles_attention_in_bf16),
    cmocka_unit_test (cudnn__compiles_attention_in_fp16),
    cmocka_unit_test (cudnn__compiles_the_gradient_of_attention_in_bf16),
    cmocka_unit_test (cudnn__compiles_the_gradient_of_attention_in_fp16),
    cmocka_unit_test (key__is_only_of_what_cudnn_gets_right),
  };

  if (td_cuda_library ("libcudnn.so.9") == NULL)
    {
      puts ("libcudnn.so.9 is not here, skipped");
      return 77;
    }
  /* Its name inside is libcuda.so.1: who asks for that now gets this. */
  if (dlopen ("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == NULL
      && (CUDA_STUB[0] == '\0' || dlopen (CUDA_STUB, RTLD_NOW | RTLD_GLOBAL) == NULL))
    {
      puts ("neither a driver nor the toolkit's stand-in for it is here, skipped");
      return 77;
    }
  setenv ("TAPEDECK_CUDA_CACHE", "off", 1);
  return cmocka_run_group_tests_name ("cudnn-attention", tests, NULL, NULL);
}
