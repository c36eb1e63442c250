/* Matrix products through cublasLt: exact fp32 unless the configuration allows tf32, workspace
 * from the engine's pool, the algorithm chosen once per size and kept.
 *
 * cublasLt is column-major: our row-major C = A B is its C' = B' A', where a prime is the same
 * memory read by columns.
 *
 * Bias and relu at the end of a product are cublasLt's epilogue.  Its documentation does not
 * say whether that relu lets NaN pass, so a plan with one is first run on a product that is
 * all NaN; if NaN is lost, the product runs plain and our kernels do the end (slots.c).
 *
 * SPDX-License-Identifier: MIT */
#include "blas.h"

#include "cudnn.h"
#include "libraries.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>

#define WORKSPACE_BYTES ((size_t)32 << 20) /* what NVIDIA advises for Hopper */

enum
{
  N_PLANS = 512 /* a power of two; a newer plan takes the place of an older of the same hash */
};

#define FUNCTIONS(X)                                                                           \
  X (cublasLtCreate)                                                                           \
  X (cublasLtDestroy)                                                                          \
  X (cublasLtGetStatusName)                                                                    \
  X (cublasLtMatmulDescCreate)                                                                 \
  X (cublasLtMatmulDescDestroy)                                                                \
  X (cublasLtMatmulDescSetAttribute)                                                           \
  X (cublasLtMatrixLayoutCreate)                                                               \
  X (cublasLtMatrixLayoutDestroy)                                                              \
  X (cublasLtMatrixLayoutSetAttribute)                                                         \
  X (cublasLtMatmulPreferenceCreate)                                                           \
  X (cublasLtMatmulPreferenceDestroy)                                                          \
  X (cublasLtMatmulPreferenceSetAttribute)                                                     \
  X (cublasLtMatmulAlgoGetHeuristic)                                                           \
  X (cublasLtMatmul)

static struct
{
  bool tried, here;
#define FIELD(name) __typeof__ (name) *name;
  FUNCTIONS (FIELD)
#undef FIELD
} lt;

/* What a plan depends on; compared and hashed as bytes. */
typedef struct
{
  int64_t m, n, k, batch, stride_a, stride_b, stride_c;
  uint8_t ta, tb, dtype, tf32, add;
  uint8_t alignment;  /* of all that is read and written, log2 */
  uint8_t bias, relu; /* at its end */
} Key;

typedef struct
{
  Key key;
  bool made, refused; /* refused: cublasLt knows no way, or loses NaN */
  bool tried;         /* its relu lets NaN pass */
  cublasLtMatmulDesc_t how;
  cublasLtMatrixLayout_t a, b, c; /* in its order: a is our b */
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace_bytes;
} Plan;

typedef struct TdCudaBlas
{
  cublasLtHandle_t handle;
  Plan plans[N_PLANS];
} TdCudaBlas;

static bool
load (void)
{
  void *library;

  if (lt.tried)
    return lt.here;
  lt.tried = true;
  library = td_cuda_library ("libcublasLt.so.13");
  if (library == NULL)
    return false;
#define FIND(name)                                                                             \
  *(void **)&lt.name = dlsym (library, #name);                                                 \
  if (lt.name == NULL)                                                                         \
    return false;
  FUNCTIONS (FIND)
#undef FIND
  return lt.here = true;
}

static TdStatus
fail (TdCuda *c, cublasStatus_t result, const char *what)
{
  char text[160];

  snprintf (text, sizeof text, "%s failed: %s", what, lt.cublasLtGetStatusName (result));
  return td_cuda_host->fail (TD_ERR_DEVICE, c->device.name, text);
}

/* The handle; NULL: none to be had, *status TD_OK where that is no error. */
static TdCudaBlas *
blas_of (TdCuda *c, TdStatus *status)
{
  TdCudaBlas *blas = c->blas;
  cublasStatus_t result;

  *status = TD_OK;
  if (blas != NULL)
    return blas;
  if (!load ())
    return NULL;
  blas = calloc (1, sizeof *blas);
  if (blas == NULL)
    return NULL;
  result = lt.cublasLtCreate (&blas->handle);
  if (result != CUBLAS_STATUS_SUCCESS)
    {
      *status = fail (c, result, "cublasLtCreate");
      free (blas);
      return NULL;
    }
  return c->blas = blas;
}

static void
plan_free (Plan *p)
{
  if (p->a != NULL)
    lt.cublasLtMatrixLayoutDestroy (p->a);
  if (p->b != NULL)
    lt.cublasLtMatrixLayoutDestroy (p->b);
  if (p->c != NULL)
    lt.cublasLtMatrixLayoutDestroy (p->c);
  if (p->how != NULL)
    lt.cublasLtMatmulDescDestroy (p->how);
  *p = (Plan){ 0 };
}

void
td_cuda_blas_close (TdCuda *c)
{
  if (c->blas == NULL)
    return;
  for (int i = 0; i < N_PLANS; i++)
    plan_free (&c->blas->plans[i]);
  lt.cublasLtDestroy (c->blas->handle);
  free (c->blas);
  c->blas = NULL;
}

static const struct
{
  bool known;
  cudaDataType_t type, scale;
  cublasComputeType_t compute;
} types[] = {
  [TD_F32] = { true, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F },
  [TD_F64] = { true, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F },
  [TD_F16] = { true, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F },
  [TD_BF16] = { true, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F },
  [TD_BOOL] = { false, 0, 0, 0 },
};

/* A row-major matrix of rows x columns, as cublasLt sees it: columns x rows. */
static cublasStatus_t
layout (cublasLtMatrixLayout_t *out, const Key *key, int64_t rows, int64_t columns,
        int64_t stride)
{
  cublasStatus_t result
      = lt.cublasLtMatrixLayoutCreate (out, types[key->dtype].type, (uint64_t)columns,
                                       (uint64_t)rows, columns > 0 ? columns : 1);
  int32_t batch = (int32_t)key->batch;

  if (result == CUBLAS_STATUS_SUCCESS && key->batch > 1)
    {
      result = lt.cublasLtMatrixLayoutSetAttribute (*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                    &batch, sizeof batch);
      if (result == CUBLAS_STATUS_SUCCESS)
        result = lt.cublasLtMatrixLayoutSetAttribute (
            *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
    }
  return result;
}

static cublasStatus_t
describe (Plan *p, const Key *key)
{
  cublasOperation_t first = key->tb ? CUBLAS_OP_T : CUBLAS_OP_N,
                    second = key->ta ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasLtEpilogue_t end = key->bias && key->relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                 : key->bias            ? CUBLASLT_EPILOGUE_BIAS
                                                        : CUBLASLT_EPILOGUE_RELU;
  cublasComputeType_t compute
      = key->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : types[key->dtype].compute;
  cublasStatus_t result
      = lt.cublasLtMatmulDescCreate (&p->how, compute, types[key->dtype].scale);

  if (result == CUBLAS_STATUS_SUCCESS)
    result = lt.cublasLtMatmulDescSetAttribute (p->how, CUBLASLT_MATMUL_DESC_TRANSA, &first,
                                                sizeof first);
  if (result == CUBLAS_STATUS_SUCCESS)
    result = lt.cublasLtMatmulDescSetAttribute (p->how, CUBLASLT_MATMUL_DESC_TRANSB, &second,
                                                sizeof second);
  if (result == CUBLAS_STATUS_SUCCESS && (key->bias || key->relu))
    result = lt.cublasLtMatmulDescSetAttribute (p->how, CUBLASLT_MATMUL_DESC_EPILOGUE, &end,
                                                sizeof end);
  if (result == CUBLAS_STATUS_SUCCESS)
    result = layout (&p->a, key, key->tb ? key->n : key->k, key->tb ? key->k : key->n,
                     key->stride_b);
  if (result == CUBLAS_STATUS_SUCCESS)
    result = layout (&p->b, key, key->ta ? key->k : key->m, key->ta ? key->m : key->k,
                     key->stride_a);
  return result == CUBLAS_STATUS_SUCCESS ? layout (&p->c, key, key->m, key->n, key->stride_c)
                                         : result;
}

static cublasStatus_t
set_bias (const Plan *p, const void *bias)
{
  return lt.cublasLtMatmulDescSetAttribute (p->how, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                            sizeof bias);
}

/* The best way that the heuristics know for this workspace and these alignments. */
static cublasStatus_t
choose (TdCudaBlas *blas, Plan *p)
{
  static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
  };
  cublasLtMatmulPreference_t wishes = NULL;
  cublasLtMatmulHeuristicResult_t found;
  cublasStatus_t result = lt.cublasLtMatmulPreferenceCreate (&wishes);
  const size_t bytes = WORKSPACE_BYTES;
  const uint32_t alignment = 1u << p->key.alignment;
  int n = 0;

  if (result != CUBLAS_STATUS_SUCCESS)
    return result;
  result = lt.cublasLtMatmulPreferenceSetAttribute (
      wishes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
  for (int i = 0; i < 4 && result == CUBLAS_STATUS_SUCCESS; i++)
    result = lt.cublasLtMatmulPreferenceSetAttribute (wishes, alignments[i], &alignment,
                                                      sizeof alignment);
  if (result == CUBLAS_STATUS_SUCCESS)
    result = lt.cublasLtMatmulAlgoGetHeuristic (blas->handle, p->how, p->a, p->b, p->c, p->c,
                                                wishes, 1, &found, &n);
  lt.cublasLtMatmulPreferenceDestroy (wishes);
  /* Of an end that it does not know for these types it may also say that it is invalid. */
  if (result == CUBLAS_STATUS_NOT_SUPPORTED || (result == CUBLAS_STATUS_SUCCESS && n == 0)
      || (result == CUBLAS_STATUS_INVALID_VALUE && (p->key.bias || p->key.relu)))
    {
      p->refused = true;
      return CUBLAS_STATUS_SUCCESS;
    }
  if (result == CUBLAS_STATUS_SUCCESS)
    {
      p->algorithm = found.algo;
      p->workspace_bytes = found.workspaceSize;
    }
  return result;
}

/* bias: NULL where there is none. */
static uint8_t
alignment_of (const void *a, const void *b, const void *c, const void *bias)
{
  uintptr_t bits = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)bias | 256;

  return (uint8_t)__builtin_ctzll (bits);
}

static Plan *
plan_for (TdCuda *c, TdCudaBlas *blas, const Key *key, const void *bias, TdStatus *status)
{
  const unsigned char *bytes = (const unsigned char *)key;
  uint64_t hash = 14695981039346656037u;
  Plan *p;
  cublasStatus_t result;

  for (size_t i = 0; i < sizeof *key; i++)
    hash = (hash ^ bytes[i]) * 1099511628211u;
  p = &blas->plans[(hash ^ hash >> 32) % N_PLANS];
  if (p->made && memcmp (&p->key, key, sizeof *key) == 0)
    return p;
  plan_free (p);
  p->key = *key;
  result = describe (p, key);
  if (result == CUBLAS_STATUS_SUCCESS && key->bias)
    result = set_bias (p, bias); /* what is proposed may depend on how it is aligned */
  if (result == CUBLAS_STATUS_SUCCESS)
    result = choose (blas, p);
  if (result != CUBLAS_STATUS_SUCCESS)
    {
      *status = fail (c, result, "planning a matrix product");
      plan_free (p);
      return NULL;
    }
  p->made = true;
  return p;
}

/* What the product is of. */
typedef struct
{
  const TdGemm *g;
  const TdTensor *a, *b;
  TdTensor *out;
  void *room;
} Call;

static TdStatus
run (TdCuda *c, const Plan *p, const Call *call, double alpha, double beta)
{
  const float alpha_f = (float)alpha, beta_f = (float)beta;
  const bool wide = call->out->dtype == TD_F64;
  void *out = call->out->data;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  cublasStatus_t result;

  td_cuda_exchange_mode (c, &mode); /* the first launch of a kernel may load it */
  result = lt.cublasLtMatmul (
      c->blas->handle, p->how, wide ? (const void *)&alpha : &alpha_f, call->b->data, p->a,
      call->a->data, p->b, wide ? (const void *)&beta : &beta_f, out, p->c, out, p->c,
      &p->algorithm, call->room, p->workspace_bytes, (cudaStream_t)c->stream);
  td_cuda_exchange_mode (c, &mode);
  return result == CUBLAS_STATUS_SUCCESS ? TD_OK : fail (c, result, "cublasLtMatmul");
}

/* cublasLt says of its relu that it is max (x, 0), and not which of the two that is where x is
 * NaN; a debugger must not lose one.  Before a plan is used, all of its product is NaN once. */
static TdStatus
try_relu (TdCuda *c, Plan *p, const Call *call)
{
  unsigned char first[8];
  TdStatus status;

  if (td_cuda_refuses (c, "the relu of a product is tried"))
    return TD_ERR_STATE;
  status = run (c, p, call, NAN, 0);
  if (status == TD_OK)
    status = td_cuda_download (&c->device, first, call->out->data,
                               td__bytes_of (call->out->dtype));
  if (status != TD_OK)
    return status;
  p->tried = true;
  p->refused = !td_cudnn_is_nan (first, call->out->dtype);
  return TD_OK;
}

bool
td_cuda_blas_gemm (TdCuda *c, const TdGemm *g, const TdTensor *a, const TdTensor *b,
                   TdTensor *out, TdStatus *status)
{
  TdCudaBlas *blas;
  Key key;
  Plan *p;
  Call call = { .g = g, .a = a, .b = b, .out = out };
  cublasStatus_t result;
  const void *bias = g->end.bias != NULL ? g->end.bias->data : NULL;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

  *status = c->lost;
  if (c->lost != TD_OK)
    return true;
  if (g->m <= 0 || g->n <= 0 || g->k <= 0 || g->batch <= 0 || g->batch > INT32_MAX
      || g->end.above != NULL || out->dtype > TD_BF16 || !types[out->dtype].known)
    return false;
  memset (&key, 0, sizeof key);
  key = (Key){ .m = g->m,
               .n = g->n,
               .k = g->k,
               .batch = g->batch,
               .stride_a = g->batch > 1 ? g->stride_a : 0,
               .stride_b = g->batch > 1 ? g->stride_b : 0,
               .stride_c = g->batch > 1 ? g->stride_c : 0,
               .ta = g->ta,
               .tb = g->tb,
               .dtype = (uint8_t)out->dtype,
               .tf32 = out->dtype == TD_F32 && td_cuda_host->config ()->tf32 != 0,
               .add = g->beta != 0,
               .bias = g->end.bias != NULL,
               .relu = g->end.relu,
               .alignment = alignment_of (a->data, b->data, out->data, bias) };
  td_cuda_exchange_mode (c, &mode);
  blas = blas_of (c, status);
  p = blas != NULL ? plan_for (c, blas, &key, bias, status) : NULL;
  td_cuda_exchange_mode (c, &mode);
  if (blas == NULL)
    return *status != TD_OK;
  if (p == NULL)
    return true;
  if (p->refused)
    return false;
  if (p->workspace_bytes > 0)
    {
      call.room = td_cuda_scratch (c, p->workspace_bytes);
      if (call.room == NULL)
        {
          *status = TD_ERR_MEMORY;
          return true;
        }
    }
  if (key.bias)
    {
      result = set_bias (p, bias);
      if (result != CUBLAS_STATUS_SUCCESS)
        {
          td_cuda_scratch_end (c);
          *status = fail (c, result, "the bias of a matrix product");
          return true;
        }
    }
  if (key.relu && !p->tried)
    *status = try_relu (c, p, &call);
  if (*status == TD_OK && !p->refused)
    *status = run (c, p, &call, g->alpha, g->beta);
  td_cuda_scratch_end (c);
  c->device.algorithm = key.tf32 ? "cublasLt tf32" : "cublasLt";
  return *status != TD_OK || !p->refused;
}
