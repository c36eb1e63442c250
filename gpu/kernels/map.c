/* Launches of element-by-element kernels: formulas, casts, select, fill, random numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "launch.h"

#include "scalar-ops.h"

/* --- flat arrays --- */

/* 16 bytes at a time of each array, if all begin where that is allowed.  `counting` has the
 * kernel that counts y while it writes it, if there is one. */
static TdStatus
launch_map (TdCudaLauncher *l, TdCudaKernel *kernel, TdCudaKernel *counting, const TdTensor *y,
            TdMapParams *a)
{
  int64_t blocks = td__blocks (l, a->n, TD_BLOCK * 4);

  a->packs = td__aligned (a->x, 16) && td__aligned (a->y, 16);
  if (counting != NULL)
    a->parts = td__count (l, counting, y, &blocks);
  return td__launch (l, a->parts != NULL ? counting : kernel, blocks, 1, a);
}

#define UNARY_FLOATS(kind, formula)                                                            \
  [TD_UNARY_##kind] = { TD_FLOATS ("td_unary_" #kind), TD_HALVES ("td_unary_" #kind) },
#define UNARY_INT(kind, formula) [TD_UNARY_##kind] = { TD_INTEGERS ("td_unary_" #kind) },
static TdCudaKernel unary[TD_UNARY_N][TD_N_DTYPES] = { TD_UNARY_FLOAT (UNARY_FLOATS, f32) };
#define UNARY_COUNTS(kind, formula)                                                            \
  [TD_UNARY_##kind]                                                                            \
      = { TD_FLOATS ("td_count_unary_" #kind), TD_HALVES ("td_count_unary_" #kind) },
static TdCudaKernel unary_counts[TD_UNARY_N][TD_N_DTYPES]
    = { TD_UNARY_FLOAT (UNARY_COUNTS, f32) };
static TdCudaKernel unary_int[TD_UNARY_N][TD_N_DTYPES] = { TD_UNARY_INT (UNARY_INT, i32) };

static bool
is_integer (TdDtype dtype)
{
  return dtype == TD_I32 || dtype == TD_I64;
}

#define CASTS_OF(from)                                                                         \
  {                                                                                            \
    TD_FLOATS ("td_cast_" from), TD_HALVES ("td_cast_" from),                                  \
        TD_INTEGERS ("td_cast_" from), [TD_U8] = { .name = "td_cast_" from "_u8" },            \
                                       [TD_BOOL]                                               \
                                       = {.name = "td_cast_" from "_bool" }                    \
  }
static TdCudaKernel casts[TD_N_DTYPES][TD_N_DTYPES]
    = { [TD_F32] = CASTS_OF ("f32"),   [TD_F64] = CASTS_OF ("f64"), [TD_F16] = CASTS_OF ("f16"),
        [TD_BF16] = CASTS_OF ("bf16"), [TD_I32] = CASTS_OF ("i32"), [TD_I64] = CASTS_OF ("i64"),
        [TD_U8] = CASTS_OF ("u8"),     [TD_BOOL] = CASTS_OF ("u8") };
#define CAST_COUNTS_OF(from)                                                                   \
  {                                                                                            \
    TD_FLOATS ("td_count_cast_" from), TD_HALVES ("td_count_cast_" from)                       \
  }
static TdCudaKernel cast_counts[TD_N_DTYPES][TD_N_DTYPES]
    = { [TD_F32] = CAST_COUNTS_OF ("f32"), [TD_F64] = CAST_COUNTS_OF ("f64"),
        [TD_F16] = CAST_COUNTS_OF ("f16"), [TD_BF16] = CAST_COUNTS_OF ("bf16"),
        [TD_I32] = CAST_COUNTS_OF ("i32"), [TD_I64] = CAST_COUNTS_OF ("i64"),
        [TD_U8] = CAST_COUNTS_OF ("u8"),   [TD_BOOL] = CAST_COUNTS_OF ("u8") };

static TdStatus
launch_cast (TdCudaLauncher *l, const TdTensor *x, TdTensor *y)
{
  TdMapParams a = { .x = x->data, .y = y->data, .n = x->size };

  /* A copy of bytes, also of truths. */
  if (x->dtype == y->dtype && td__bytes_of (x->dtype) == 1)
    return launch_map (l, &casts[TD_U8][TD_U8], NULL, y, &a);
  return launch_map (l, &casts[x->dtype][y->dtype], &cast_counts[x->dtype][y->dtype], y, &a);
}

TdStatus
td_cuda_unary (TdCudaLauncher *l, TdUnaryKind kind, double p, double q, const TdTensor *x,
               TdTensor *y)
{
  TdMapParams a = { .x = x->data, .y = y->data, .n = x->size, .p = p, .q = q };
  TdCudaKernel *kernel
      = is_integer (x->dtype) ? &unary_int[kind][x->dtype] : &unary[kind][x->dtype];

  if (x->dtype != y->dtype)
    return TD_ERR_DTYPE;
  if (kernel->name == NULL && kind == TD_UNARY_COPY)
    return launch_cast (l, x, y);
  return launch_map (l, kernel, &unary_counts[kind][x->dtype], y, &a);
}

TdStatus
td_cuda_cast (TdCudaLauncher *l, const TdTensor *x, TdTensor *y)
{
  return x->dtype == TD_BOOL && y->dtype == TD_BOOL
             ? launch_map (l, &casts[TD_BOOL][TD_BOOL], NULL, y,
                           &(TdMapParams){ .x = x->data, .y = y->data, .n = x->size })
             : launch_cast (l, x, y);
}

/* The bits of a value, as the casts make them. */
static uint64_t
bits_of (TdDtype dtype, double value)
{
  uint64_t bits = 0;
  const float f = (float)value;
  const int32_t i = td_i32_of_f64 (value);
  const int64_t wide = td_i64_of_f64 (value);

  switch (dtype)
    {
    case TD_F32:
      memcpy (&bits, &f, sizeof f);
      break;
    case TD_F64:
      memcpy (&bits, &value, sizeof value);
      break;
    case TD_F16:
      bits = td_f16_of_float (f);
      break;
    case TD_BF16:
      bits = td_bf16_of_float (f);
      break;
    case TD_I32:
      memcpy (&bits, &i, sizeof i);
      break;
    case TD_I64:
      memcpy (&bits, &wide, sizeof wide);
      break;
    case TD_U8:
      bits = (uint8_t)wide;
      break;
    case TD_BOOL:
      bits = value != 0;
      break;
    }
  return bits;
}

TdStatus
td_cuda_fill (TdCudaLauncher *l, TdTensor *y, double value)
{
  static TdCudaKernel fills[9] = { [1] = { .name = "td_fill_1" },
                                   [2] = { .name = "td_fill_2" },
                                   [4] = { .name = "td_fill_4" },
                                   [8] = { .name = "td_fill_8" } };
  TdMapParams a = { .y = y->data, .n = y->size, .bits = bits_of (y->dtype, value) };

  return launch_map (l, &fills[td__bytes_of (y->dtype)], NULL, y, &a);
}

TdStatus
td_cuda_arange (TdCudaLauncher *l, TdTensor *y, double start, double step)
{
  static TdCudaKernel aranges[TD_N_DTYPES]
      = { TD_FLOATS ("td_arange"), TD_HALVES ("td_arange"), TD_INTEGERS ("td_arange"),
          [TD_U8] = { .name = "td_arange_u8" }, [TD_BOOL] = { .name = "td_arange_bool" } };
  TdMapParams a = { .y = y->data, .n = y->size, .p = start, .q = step };

  return launch_map (l, &aranges[y->dtype], NULL, y, &a);
}

static TdRandomParams
random_of (TdRngKey key, double p, const void *x, const TdTensor *y)
{
  const size_t four = 4 * td__bytes_of (y->dtype);

  return (TdRandomParams){ .x = x,
                           .y = y->data,
                           .n = y->size,
                           .seed = key.seed,
                           .offset = key.offset,
                           .p = p,
                           .packs = td__aligned (x, four) && td__aligned (y->data, four) };
}

TdStatus
td_cuda_random (TdCudaLauncher *l, TdRandomKind kind, TdRngKey key, double p, TdTensor *y)
{
  static TdCudaKernel randoms[TD_N_DTYPES]
      = { TD_FLOATS ("td_random"), TD_HALVES ("td_random") };
  TdRandomParams a = random_of (key, p, NULL, y);

  a.kind = (int)kind;
  return td__launch (l, &randoms[y->dtype], td__blocks (l, (y->size + 3) / 4, TD_BLOCK), 1, &a);
}

TdStatus
td_cuda_dropout (TdCudaLauncher *l, TdRngKey key, double p, const TdTensor *x, TdTensor *y)
{
  static TdCudaKernel dropouts[TD_N_DTYPES]
      = { TD_FLOATS ("td_dropout"), TD_HALVES ("td_dropout") };
  static TdCudaKernel counting[TD_N_DTYPES]
      = { TD_FLOATS ("td_count_dropout"), TD_HALVES ("td_count_dropout") };
  TdRandomParams a = random_of (key, p, x->data, y);
  int64_t blocks = td__blocks (l, (y->size + 3) / 4, TD_BLOCK * 2);

  if (x->dtype != y->dtype)
    return TD_ERR_DTYPE;
  a.parts = td__count (l, &counting[y->dtype], y, &blocks);
  return td__launch (l, &(a.parts != NULL ? counting : dropouts)[y->dtype], blocks, 1, &a);
}

/* --- walks --- */

typedef struct
{
  TdCudaKernel *kernel, *counting; /* NULL: none counts */
  const TdTensor *z;
  size_t bytes;
} WalkLaunch;

/* Take packs along the last axis, where operands that advance there are aligned at each row. */
static int
pack_items (const TdWalkParams *w, const TdAxes *axes, size_t bytes)
{
  const int items = (int)(16 / bytes), last = axes->ndim - 1;

  if (!td__aligned (w->data[2], 16) || (axes->ndim > 1 && axes->dim[last] % items != 0))
    return 1;
  for (int k = 0; k < 2; k++)
    {
      if (axes->stride[k][last] == 0)
        continue;
      if (axes->stride[k][last] != 1 || !td__aligned (w->data[k], 16))
        return 1;
      for (int i = 0; i < last; i++)
        if (axes->stride[k][i] % items != 0)
          return 1;
    }
  return items;
}

static TdStatus
launch_walk (TdCudaLauncher *l, TdWalkParams *w, const TdAxes *axes, void *context)
{
  const WalkLaunch *job = context;
  const int items = pack_items (w, axes, job->bytes), last = axes->ndim - 1;
  const uint32_t n = w->n;
  int64_t blocks = td__blocks (l, n, TD_BLOCK * 2 * items);

  w->items = items;
  if (items > 1)
    {
      w->n = n / (uint32_t)items;
      w->tail = n % (uint32_t)items;
      w->dim[last] = td__divisor (axes->ndim > 1 ? axes->dim[last] / items : 1);
      for (int k = 0; k < 2; k++)
        w->stride[k][last] *= items;
    }
  w->parts = job->counting != NULL ? td__count (l, job->counting, job->z, &blocks) : NULL;
  return td__launch (l, w->parts != NULL ? job->counting : job->kernel, blocks, 1, w);
}

static TdStatus
run_walk (TdCudaLauncher *l, TdCudaKernel *kernel, TdCudaKernel *counting, double p,
          const TdTensor *x, const TdTensor *y, TdTensor *z, bool accumulate)
{
  const TdTensor *const operands[2] = { x, y };
  const TdAxes axes = td__axes_broadcast (z->shape, operands, 2);
  const bool whole = z->size <= TD_PIECE; /* by one launch */
  WalkLaunch job = { .kernel = kernel,
                     .counting = whole ? counting : NULL,
                     .z = z,
                     .bytes = td__bytes_of (z->dtype) };
  const size_t bytes[3] = { job.bytes, job.bytes, job.bytes };
  TdWalkParams w = { .data = { x->data, y->data, z->data }, .accumulate = accumulate, .p = p };

  if (x->dtype != y->dtype || x->dtype != z->dtype || kernel->name == NULL)
    return TD_ERR_DTYPE;
  if (z->size == 0)
    return TD_OK;
  return td__walk_pieces (l, &axes, &w, bytes, launch_walk, &job);
}

#define BINARY_FLOATS(kind, formula)                                                           \
  [TD_BINARY_##kind] = { TD_FLOATS ("td_binary_" #kind), TD_HALVES ("td_binary_" #kind) },
#define BINARY_INT(kind, formula) [TD_BINARY_##kind] = { TD_INTEGERS ("td_binary_" #kind) },
#define GRAD_FLOATS(kind, formula)                                                             \
  [TD_UNARY_##kind]                                                                            \
      = { TD_FLOATS ("td_unary_grad_" #kind), TD_HALVES ("td_unary_grad_" #kind) },
static TdCudaKernel binary[TD_BINARY_N][TD_N_DTYPES] = { TD_BINARY_FLOAT (BINARY_FLOATS, f32) };
#define BINARY_COUNTS(kind, formula)                                                           \
  [TD_BINARY_##kind]                                                                           \
      = { TD_FLOATS ("td_count_binary_" #kind), TD_HALVES ("td_count_binary_" #kind) },
#define GRAD_COUNTS(kind, formula)                                                             \
  [TD_UNARY_##kind] = { TD_FLOATS ("td_count_unary_grad_" #kind),                              \
                        TD_HALVES ("td_count_unary_grad_" #kind) },
static TdCudaKernel binary_counts[TD_BINARY_N][TD_N_DTYPES]
    = { TD_BINARY_FLOAT (BINARY_COUNTS, f32) };
static TdCudaKernel grad_counts[TD_UNARY_N][TD_N_DTYPES]
    = { TD_UNARY_GRAD_FLOAT (GRAD_COUNTS, f32) };
static TdCudaKernel binary_int[TD_BINARY_N][TD_N_DTYPES] = { TD_BINARY_INT (BINARY_INT, i32) };
static TdCudaKernel unary_grad[TD_UNARY_N][TD_N_DTYPES]
    = { TD_UNARY_GRAD_FLOAT (GRAD_FLOATS, f32) };

TdStatus
td_cuda_unary_grad (TdCudaLauncher *l, TdUnaryKind kind, double p, const TdTensor *x,
                    const TdTensor *gy, TdTensor *gx, bool accumulate)
{
  return run_walk (l, &unary_grad[kind][x->dtype], &grad_counts[kind][x->dtype], p, x, gy, gx,
                   accumulate);
}

TdStatus
td_cuda_binary (TdCudaLauncher *l, TdBinaryKind kind, const TdTensor *x, const TdTensor *y,
                TdTensor *z, bool accumulate)
{
  TdCudaKernel *kernel
      = is_integer (x->dtype) ? &binary_int[kind][x->dtype] : &binary[kind][x->dtype];

  return run_walk (l, kernel, &binary_counts[kind][x->dtype], 0, x, y, z, accumulate);
}

static TdStatus
launch_select (TdCudaLauncher *l, TdWalkParams *w, const TdAxes *axes, void *context)
{
  const WalkLaunch *job = context;
  int64_t blocks = td__blocks (l, w->n, TD_BLOCK * 2);

  w->parts = job->counting != NULL ? td__count (l, job->counting, job->z, &blocks) : NULL;
  return td__launch (l, w->parts != NULL ? job->counting : job->kernel, blocks, 1, w);
}

TdStatus
td_cuda_select (TdCudaLauncher *l, const TdTensor *c, const TdTensor *x, const TdTensor *y,
                TdTensor *z)
{
  static TdCudaKernel selects[9] = { [1] = { .name = "td_select_1" },
                                     [2] = { .name = "td_select_2" },
                                     [4] = { .name = "td_select_4" },
                                     [8] = { .name = "td_select_8" } };
  static TdCudaKernel counting[TD_N_DTYPES]
      = { TD_FLOATS ("td_count_select"), TD_HALVES ("td_count_select") };
  const TdTensor *const operands[3] = { c, x, y };
  const TdAxes axes = td__axes_broadcast (z->shape, operands, 3);
  const size_t n = td__bytes_of (z->dtype), bytes[4] = { td__bytes_of (c->dtype), n, n, n };
  const bool whole = z->size <= TD_PIECE; /* by one launch */
  WalkLaunch job
      = { .kernel = &selects[n], .counting = whole ? &counting[z->dtype] : NULL, .z = z };
  TdWalkParams w = { .data = { c->data, x->data, y->data, z->data }, .kind = (int)c->dtype };

  if (x->dtype != y->dtype || x->dtype != z->dtype)
    return TD_ERR_DTYPE;
  if (z->size == 0)
    return TD_OK;
  return td__walk_pieces (l, &axes, &w, bytes, launch_select, &job);
}
