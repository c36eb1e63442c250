/* cublasLt for the fake driver: as much of it as the module calls.  A product is checked,
 * queued on its stream, and computed by the CPU's kernel from the layouts alone.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-internal.h"

#include "cuda-device.h"
#include "cudnn.h"

#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>

/* What is public of it is only a name. */
typedef struct
{
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t a, b;
  cublasLtEpilogue_t end;
  const void *bias;
} How;

typedef struct
{
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t step, stride;
  int32_t batch;
} Matrix;

/* By columns: c (m, n) = alpha a (m, k) b (k, n) + beta c. */
typedef struct
{
  How how;
  Matrix a, b, c;
  double alpha, beta;
  const void *a_data, *b_data;
  void *c_data;
} Product;

#define EXPORT __attribute__ ((visibility ("default")))

EXPORT size_t
cublasLtGetVersion (void)
{
  return 130100;
}

EXPORT const char *
cublasLtGetStatusName (cublasStatus_t status)
{
  return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                               : "CUBLAS_STATUS_INTERNAL_ERROR";
}

static cublasStatus_t
made (void *out, size_t bytes)
{
  void *p = calloc (1, bytes);

  memcpy (out, &p, sizeof p);
  return p != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

static cublasStatus_t
gone (void *p)
{
  free (p);
  return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t
cublasLtCreate (cublasLtHandle_t *handle)
{
  return fake_enter ("cublasLtCreate") == CUDA_SUCCESS && !fake_forbids ("cublasLtCreate")
             ? made (handle, 8)
             : CUBLAS_STATUS_NOT_INITIALIZED;
}

EXPORT cublasStatus_t
cublasLtDestroy (cublasLtHandle_t handle)
{
  return gone (handle);
}

EXPORT cublasStatus_t
cublasLtMatmulDescCreate (cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                          cudaDataType_t scale)
{
  cublasStatus_t status = made (desc, sizeof (How));

  *(How *)(void *)*desc = (How){ .compute = compute,
                                 .scale = scale,
                                 .a = CUBLAS_OP_N,
                                 .b = CUBLAS_OP_N,
                                 .end = CUBLASLT_EPILOGUE_DEFAULT };
  return status;
}

EXPORT cublasStatus_t
cublasLtMatmulDescDestroy (cublasLtMatmulDesc_t desc)
{
  return gone (desc);
}

static bool
ends_known (const How *how)
{
  return how->end == CUBLASLT_EPILOGUE_DEFAULT || how->end == CUBLASLT_EPILOGUE_BIAS
         || how->end == CUBLASLT_EPILOGUE_RELU || how->end == CUBLASLT_EPILOGUE_RELU_BIAS;
}

EXPORT cublasStatus_t
cublasLtMatmulDescSetAttribute (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name,
                                const void *value, size_t bytes)
{
  static const struct
  {
    cublasLtMatmulDescAttributes_t name;
    size_t at, bytes;
  } places[] = {
    { CUBLASLT_MATMUL_DESC_TRANSA, offsetof (How, a), sizeof (cublasOperation_t) },
    { CUBLASLT_MATMUL_DESC_TRANSB, offsetof (How, b), sizeof (cublasOperation_t) },
    { CUBLASLT_MATMUL_DESC_EPILOGUE, offsetof (How, end), sizeof (cublasLtEpilogue_t) },
    { CUBLASLT_MATMUL_DESC_BIAS_POINTER, offsetof (How, bias), sizeof (void *) },
  };
  How *how = (How *)(void *)desc;

  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (places[i].name == name && places[i].bytes == bytes)
      {
        memcpy ((char *)how + places[i].at, value, bytes);
        return ends_known (how) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
      }
  return CUBLAS_STATUS_INVALID_VALUE;
}

static bool
has_bias (const How *how)
{
  return how->end == CUBLASLT_EPILOGUE_BIAS || how->end == CUBLASLT_EPILOGUE_RELU_BIAS;
}

static bool
has_relu (const How *how)
{
  return how->end == CUBLASLT_EPILOGUE_RELU || how->end == CUBLASLT_EPILOGUE_RELU_BIAS;
}

EXPORT cublasStatus_t
cublasLtMatrixLayoutCreate (cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                            uint64_t columns, int64_t step)
{
  cublasStatus_t status = made (layout, sizeof (Matrix));

  *(Matrix *)(void *)*layout = (Matrix){ type, rows, columns, step, 0, 1 };
  return status;
}

EXPORT cublasStatus_t
cublasLtMatrixLayoutDestroy (cublasLtMatrixLayout_t layout)
{
  return gone (layout);
}

EXPORT cublasStatus_t
cublasLtMatrixLayoutSetAttribute (cublasLtMatrixLayout_t layout,
                                  cublasLtMatrixLayoutAttribute_t name, const void *value,
                                  size_t bytes)
{
  Matrix *m = (Matrix *)(void *)layout;

  if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof m->batch)
    memcpy (&m->batch, value, bytes);
  else if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof m->stride)
    memcpy (&m->stride, value, bytes);
  else
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

/* What all of a product will be aligned to; later what the algorithm counts on. */
typedef struct
{
  uint32_t alignment;
} Promise;

EXPORT cublasStatus_t
cublasLtMatmulPreferenceCreate (cublasLtMatmulPreference_t *preference)
{
  cublasStatus_t status = made (preference, sizeof (Promise));

  ((Promise *)(void *)*preference)->alignment = 256;
  return status;
}

EXPORT cublasStatus_t
cublasLtMatmulPreferenceDestroy (cublasLtMatmulPreference_t preference)
{
  return gone (preference);
}

EXPORT cublasStatus_t
cublasLtMatmulPreferenceSetAttribute (cublasLtMatmulPreference_t preference,
                                      cublasLtMatmulPreferenceAttributes_t name,
                                      const void *value, size_t bytes)
{
  Promise *promise = (Promise *)(void *)preference;
  uint32_t alignment = 256;

  if (name != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == sizeof alignment)
    memcpy (&alignment, value, sizeof alignment);
  if (alignment < promise->alignment)
    promise->alignment = alignment;
  return bytes == (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4)
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_INVALID_VALUE;
}

/* Inner sizes that do not match, and steps shorter than a column. */
static bool
fits (const How *how, const Matrix *a, const Matrix *b, const Matrix *c)
{
  uint64_t m = how->a == CUBLAS_OP_N ? a->rows : a->columns,
           k = how->a == CUBLAS_OP_N ? a->columns : a->rows,
           k2 = how->b == CUBLAS_OP_N ? b->rows : b->columns,
           n = how->b == CUBLAS_OP_N ? b->columns : b->rows;

  return k == k2 && m == c->rows && n == c->columns && a->step >= (int64_t)a->rows
         && b->step >= (int64_t)b->rows && c->step >= (int64_t)c->rows && a->batch == b->batch
         && b->batch == c->batch && a->type == b->type && b->type == c->type;
}

EXPORT cublasStatus_t
cublasLtMatmulAlgoGetHeuristic (cublasLtHandle_t handle, cublasLtMatmulDesc_t how,
                                cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                cublasLtMatmulPreference_t preference, int n_wanted,
                                cublasLtMatmulHeuristicResult_t *results, int *n)
{
  if (has_bias ((How *)(void *)how) && ((How *)(void *)how)->bias == NULL)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!fits ((How *)(void *)how, (Matrix *)(void *)a, (Matrix *)(void *)b, (Matrix *)(void *)c))
    return CUBLAS_STATUS_INVALID_VALUE;
  memset (results, 0, sizeof *results);
  results->workspaceSize = 4096;
  results->algo.data[0] = ((Promise *)(void *)preference)->alignment;
  *n = 1;
  return CUBLAS_STATUS_SUCCESS;
}

static size_t
element_bytes (const Matrix *m)
{
  return m->type == CUDA_R_64F ? 8 : m->type == CUDA_R_32F ? 4 : 2;
}

/* From the first element to the last. */
static size_t
matrix_bytes (const Matrix *m)
{
  return (size_t)((m->batch - 1) * m->stride + (int64_t)(m->columns - 1) * m->step
                  + (int64_t)m->rows)
         * element_bytes (m);
}

/* Two-byte numbers are added up in float32, as the library does that. */
static TdStatus
cast_matrix (const TdTensor *from, TdTensor *to, const Matrix *m)
{
  TdDevice *cpu = td_cuda_host->cpu;
  TdShape shape = { .ndim = 1, .dim = { (int64_t)(matrix_bytes (m) / element_bytes (m)) } };
  TdTensor x = *from, y = *to;

  x.shape = y.shape = &shape;
  x.size = y.size = shape.dim[0];
  return cpu->ops->cast (cpu, &x, &y);
}

/* The bias of halves, one number for each row of C as it lies by columns. */
static TdStatus
widen_bias (const TdTensor *bias, int64_t n, TdTensor *wide)
{
  TdShape shape = { .ndim = 1, .dim = { n } };
  TdTensor x = *bias;

  *wide = (TdTensor){ .data = malloc ((size_t)n * sizeof (float)), .dtype = TD_F32 };
  if (wide->data == NULL)
    abort ();
  x.shape = wide->shape = &shape;
  x.size = wide->size = n;
  return td_cuda_host->cpu->ops->cast (td_cuda_host->cpu, &x, wide);
}

static TdStatus
product_of_halves (const TdGemm *given, const Product *p, const TdTensor *first,
                   const TdTensor *second, TdTensor *out)
{
  TdGemm gemm = *given, *g = &gemm;
  TdTensor bias = { .data = NULL };
  const Matrix *matrices[] = { &p->b, &p->a, &p->c };
  const TdTensor *halves[] = { first, second, out };
  TdTensor wide[3];
  TdStatus status = TD_OK;

  for (int i = 0; i < 3; i++)
    {
      wide[i] = (TdTensor){ .data = malloc (2 * matrix_bytes (matrices[i])), .dtype = TD_F32 };
      if (wide[i].data == NULL)
        abort ();
      if (status == TD_OK)
        status = cast_matrix (halves[i], &wide[i], matrices[i]);
    }
  if (status == TD_OK && g->end.bias != NULL)
    {
      status = widen_bias (g->end.bias, g->n, &bias);
      g->end.bias = &bias;
    }
  if (status == TD_OK)
    status = td_cuda_host->cpu->ops->gemm (td_cuda_host->cpu, g, &wide[0], &wide[1], &wide[2]);
  free (bias.data);
  if (status == TD_OK)
    status = cast_matrix (&wide[2], out, &p->c);
  for (int i = 0; i < 3; i++)
    free (wide[i].data);
  return status;
}

static void
lose_nan (char *numbers, TdDtype dtype, size_t bytes)
{
  const size_t each = dtype == TD_F64 ? 8 : dtype == TD_F32 ? 4 : 2;

  for (size_t at = 0; at < bytes; at += each)
    if (td_cudnn_is_nan (numbers + at, dtype))
      memset (numbers + at, 0, each);
}

static void
run_product (FakeCommand *command)
{
  const Product *p = command->data;
  TdDtype dtype = p->c.type == CUDA_R_64F    ? TD_F64
                  : p->c.type == CUDA_R_32F  ? TD_F32
                  : p->c.type == CUDA_R_16BF ? TD_BF16
                                             : TD_F16;
  bool ta = p->how.b != CUBLAS_OP_N, tb = p->how.a != CUBLAS_OP_N;
  TdGemm g = { .ta = ta,
               .tb = tb,
               .m = (int64_t)p->c.columns,
               .n = (int64_t)p->c.rows,
               .k = (int64_t)(tb ? p->a.rows : p->a.columns),
               .batch = p->c.batch,
               .stride_a = p->b.stride,
               .stride_b = p->a.stride,
               .stride_c = p->c.stride,
               .alpha = p->alpha,
               .beta = p->beta };
  TdTensor first = { .data = (void *)(uintptr_t)p->b_data, .dtype = dtype },
           second = { .data = (void *)(uintptr_t)p->a_data, .dtype = dtype },
           out = { .data = p->c_data, .dtype = dtype },
           bias = { .data = (void *)(uintptr_t)p->how.bias, .dtype = dtype };

  g.end.bias = has_bias (&p->how) ? &bias : NULL;
  g.end.relu = has_relu (&p->how);

  /* By rows it is the other product: c' = b' a'. */
  if ((element_bytes (&p->c) == 2
           ? product_of_halves (&g, p, &first, &second, &out)
           : td_cuda_host->cpu->ops->gemm (td_cuda_host->cpu, &g, &first, &second, &out))
      != TD_OK)
    fake_violation ("cublasLtMatmul was given what the CPU's kernel does not take");
  if (g.end.relu && fake.relu_loses_nan)
    lose_nan (p->c_data, dtype, matrix_bytes (&p->c));
}

static void
free_product (FakeCommand *command)
{
  free (command->data);
}

EXPORT cublasStatus_t
cublasLtMatmul (cublasLtHandle_t handle, cublasLtMatmulDesc_t how, const void *alpha,
                const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_bytes,
                cudaStream_t stream)
{
  Product *p = calloc (1, sizeof *p);
  FakeCommand *command;

  if (p == NULL || c != d || workspace_bytes < 4096
      || fake_enter ("cublasLtMatmul") != CUDA_SUCCESS)
    {
      free (p);
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
  p->how = *(How *)(void *)how;
  if (((uintptr_t)a | (uintptr_t)b | (uintptr_t)d
       | (has_bias (&p->how) ? (uintptr_t)p->how.bias : 0))
          % algorithm->data[0]
      != 0)
    fake_violation ("cublasLtMatmul of what is not aligned as was promised");
  p->a = *(Matrix *)(void *)a_layout;
  p->b = *(Matrix *)(void *)b_layout;
  p->c = *(Matrix *)(void *)c_layout;
  p->alpha = p->how.scale == CUDA_R_64F ? *(const double *)alpha : *(const float *)alpha;
  p->beta = p->how.scale == CUDA_R_64F ? *(const double *)beta : *(const float *)beta;
  p->a_data = a;
  p->b_data = b;
  p->c_data = d;
  command = fake_command ("cublasLtMatmul", run_product);
  command->data = p;
  command->free = free_product;
  fake_command_take_uses (command);
  fake_command_use (command, (CUdeviceptr)a, matrix_bytes (&p->a), false);
  fake_command_use (command, (CUdeviceptr)b, matrix_bytes (&p->b), false);
  fake_command_use (command, (CUdeviceptr)d, matrix_bytes (&p->c), true);
  if (has_bias (&p->how))
    fake_command_use (command, (CUdeviceptr)p->how.bias, p->c.rows * element_bytes (&p->c),
                      false);
  fake_command_use (command, (CUdeviceptr)workspace, workspace != NULL ? workspace_bytes : 0,
                    true);
  fake.n_launches++;
  fake.n_products++;
  return fake_enqueue ((CUstream)stream, command) == CUDA_SUCCESS
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}
