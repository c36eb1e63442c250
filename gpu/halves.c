/* What no library and no kernel of ours computes in halves, stored in two bytes a number and
 * computed in fp32: a slot that does not know the type is asked again with floats, which are
 * rounded once at the end.  Those that know it are not touched.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"

enum
{
  MAX_TENSORS = 12,
  ALIGNED = 256
};

/* What is done with an operand. */
typedef enum
{
  READ = 1,
  WRITE = 2,
  CHANGE = READ | WRITE
} Use;

static bool
is_half (TdDtype dtype)
{
  return dtype == TD_F16 || dtype == TD_BF16;
}

/* The operands of one call, those in halves as floats. */
typedef struct
{
  const TdTensor *of[MAX_TENSORS];
  TdTensor wide[MAX_TENSORS];
  Use use[MAX_TENSORS];
  int n;
  struct TdBlock *block;
} Wide;

/* Add n operands side by side.  Returns the first of those to compute with. */
static TdTensor *
add (Wide *w, const TdTensor *t, int n, Use use)
{
  TdTensor *first = &w->wide[w->n];

  if (t == NULL)
    return NULL;
  for (int i = 0; i < n; i++)
    {
      w->of[w->n] = &t[i];
      w->use[w->n] = use;
      w->wide[w->n++] = t[i];
    }
  return first;
}

static size_t
bytes_of (const TdTensor *t)
{
  const size_t bytes = (size_t)t->size * sizeof (float);

  return is_half (t->dtype) ? (bytes + ALIGNED - 1) / ALIGNED * ALIGNED : 0;
}

/* Whether a slot's answer was that it does not know halves, and there are some. */
static bool
refused (const Wide *w, TdStatus status)
{
  for (int i = 0; status == TD_ERR_DTYPE && i < w->n; i++)
    if (is_half (w->of[i]->dtype))
      return true;
  return false;
}

static TdStatus
begin (TdDevice *d, Wide *w)
{
  size_t bytes = 0;
  char *room;
  TdStatus status = TD_OK;

  for (int i = 0; i < w->n; i++)
    bytes += bytes_of (w->of[i]);
  room = td_cuda_host->memory_take (d, bytes + 1, TD_MEM_WORKSPACE, &w->block);
  if (room == NULL)
    return TD_ERR_MEMORY;
  for (int i = 0; i < w->n && status == TD_OK; i++)
    if (is_half (w->of[i]->dtype))
      {
        w->wide[i].data = room;
        w->wide[i].dtype = TD_F32;
        room += bytes_of (w->of[i]);
        if ((w->use[i] & READ) && w->of[i]->size > 0)
          status = td_cuda_slots ()->cast (d, w->of[i], &w->wide[i]);
      }
  return status;
}

/* The memory is the pool's again: what follows on the stream follows what used it. */
static TdStatus
end (TdDevice *d, Wide *w, TdStatus status)
{
  for (int i = 0; i < w->n && status == TD_OK; i++)
    if ((w->use[i] & WRITE) && is_half (w->of[i]->dtype) && w->of[i]->size > 0)
      {
        TdTensor to = *w->of[i];

        status = td_cuda_slots ()->cast (d, &w->wide[i], &to);
      }
  if (w->block != NULL)
    td_cuda_host->memory_give (w->block);
  return status;
}

/* Call the slot as it is, and where it refuses with floats, between begin and end. */
#define TRY(d, w, call, wide_call)                                                             \
  do                                                                                           \
    {                                                                                          \
      TdStatus status_ = (call);                                                               \
                                                                                               \
      if (!refused (w, status_))                                                               \
        return status_;                                                                        \
      status_ = begin (d, w);                                                                  \
      return end (d, w, status_ == TD_OK ? (wide_call) : status_);                             \
    }                                                                                          \
  while (0)

static TdStatus
strided (TdDevice *d, TdStridedKind kind, const TdTensor *x, const TdStrides *walk, TdTensor *y)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  Wide w = { .n = 0 };
  TdTensor *wx = add (&w, x, 1, READ), *wy = add (&w, y, 1, CHANGE);

  TRY (d, &w, ops->strided (d, kind, x, walk, y), ops->strided (d, kind, wx, walk, wy));
}

static TdStatus
scatter_rows_add (TdDevice *d, const TdTensor *index, const TdTensor *gy, TdTensor *gw)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  Wide w = { .n = 0 };
  TdTensor *wg = add (&w, gy, 1, READ), *ww = add (&w, gw, 1, CHANGE);

  TRY (d, &w, ops->scatter_rows_add (d, index, gy, gw),
       ops->scatter_rows_add (d, index, wg, ww));
}

static TdStatus
reduce (TdDevice *d, TdReduceKind kind, uint32_t axes, const TdTensor *x, TdTensor *y,
        bool accumulate)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  Wide w = { .n = 0 };
  TdTensor *wx = add (&w, x, 1, READ), *wy = add (&w, y, 1, accumulate ? CHANGE : WRITE);

  TRY (d, &w, ops->reduce (d, kind, axes, x, y, accumulate),
       ops->reduce (d, kind, axes, wx, wy, accumulate));
}

static TdStatus
cumulative_sum (TdDevice *d, int axis, bool reverse, const TdTensor *x, TdTensor *y)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  Wide w = { .n = 0 };
  TdTensor *wx = add (&w, x, 1, READ), *wy = add (&w, y, 1, WRITE);

  TRY (d, &w, ops->cumulative_sum (d, axis, reverse, x, y),
       ops->cumulative_sum (d, axis, reverse, wx, wy));
}

static TdStatus
softmax (TdDevice *d, TdSoftmaxKind kind, int axis, const TdTensor *x, const TdTensor *gy,
         TdTensor *y)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  Wide w = { .n = 0 };
  TdTensor *wx = add (&w, x, 1, READ), *wg = add (&w, gy, 1, READ);
  TdTensor *wy = add (&w, y, 1, WRITE);

  TRY (d, &w, ops->softmax (d, kind, axis, x, gy, y), ops->softmax (d, kind, axis, wx, wg, wy));
}

static TdStatus
gemm (TdDevice *d, const TdGemm *g, const TdTensor *a, const TdTensor *b, TdTensor *c)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  Wide w = { .n = 0 };
  TdTensor *wa = add (&w, a, 1, READ), *wb = add (&w, b, 1, READ);
  TdTensor *wc = add (&w, c, 1, g->beta != 0 ? CHANGE : WRITE);
  TdGemm wide = *g;

  wide.end.bias = add (&w, g->end.bias, 1, READ);
  wide.end.above = add (&w, g->end.above, 1, READ);
  TRY (d, &w, ops->gemm (d, g, a, b, c), ops->gemm (d, &wide, wa, wb, wc));
}

static TdStatus
conv (TdDevice *d, TdConvKind kind, const TdConv *attrs, const TdTensor *in, int n_in,
      TdTensor *out)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  Wide w = { .n = 0 };
  TdTensor *wi = add (&w, in, n_in, READ);
  TdTensor *wo = add (&w, out, 1, attrs->accumulate ? CHANGE : WRITE);

  TRY (d, &w, ops->conv (d, kind, attrs, in, n_in, out),
       ops->conv (d, kind, attrs, wi, n_in, wo));
}

static TdStatus
pooling (TdDevice *d, TdPoolKind kind, const TdPooling *attrs, const TdTensor *in, int n_in,
         TdTensor *out, TdTensor *out2)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  Wide w = { .n = 0 };
  TdTensor *wi = add (&w, in, n_in, READ), *wo = add (&w, out, 1, WRITE);

  TRY (d, &w, ops->pooling (d, kind, attrs, in, n_in, out, out2),
       ops->pooling (d, kind, attrs, wi, n_in, wo, out2));
}

static TdStatus
batch_norm (TdDevice *d, int kind, const double *params, const TdTensor *in, int n_in,
            TdTensor *out, int n_out)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  const int n_running = kind == TD_BATCH_NORM_TRAIN && n_in > 3 ? n_in - 3 : 0;
  Wide w = { .n = 0 };
  TdTensor *wi = add (&w, in, n_in - n_running, READ), *wo;

  add (&w, in + n_in - n_running, n_running, CHANGE);
  wo = add (&w, out, n_out, WRITE);
  TRY (d, &w, ops->batch_norm (d, kind, params, in, n_in, out, n_out),
       ops->batch_norm (d, kind, params, wi, n_in, wo, n_out));
}

static TdStatus
row_norm (TdDevice *d, TdRowNormKind kind, const TdRowNorm *norm, const TdTensor *in, int n_in,
          TdTensor *out, int n_out)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  Wide w = { .n = 0 };
  TdTensor *wi = add (&w, in, n_in, READ), *wo = add (&w, out, n_out, WRITE);

  TRY (d, &w, ops->row_norm (d, kind, norm, in, n_in, out, n_out),
       ops->row_norm (d, kind, norm, wi, n_in, wo, n_out));
}

static TdStatus
attention (TdDevice *d, TdAttentionKind kind, const TdAttention *attrs, const TdTensor *in,
           int n_in, TdTensor *out, int n_out)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  Wide w = { .n = 0 };
  TdTensor *wi = add (&w, in, n_in, READ), *wo = add (&w, out, n_out, WRITE);

  TRY (d, &w, ops->attention (d, kind, attrs, in, n_in, out, n_out),
       ops->attention (d, kind, attrs, wi, n_in, wo, n_out));
}

static TdStatus
cross_entropy (TdDevice *d, int kind, const int64_t *params, const TdTensor *in, int n_in,
               TdTensor *out, int n_out)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  Wide w = { .n = 0 };
  TdTensor *wi = add (&w, in, n_in, READ), *wo = add (&w, out, n_out, WRITE);

  TRY (d, &w, ops->cross_entropy (d, kind, params, in, n_in, out, n_out),
       ops->cross_entropy (d, kind, params, wi, n_in, wo, n_out));
}

static TdStatus
lstm (TdDevice *d, int kind, const TdTensor *in, int n_in, TdTensor *out, int n_out)
{
  const TdDeviceOps *ops = td_cuda_slots ();
  Wide w = { .n = 0 };
  TdTensor *wi = add (&w, in, n_in, READ), *wo = add (&w, out, n_out, WRITE);

  TRY (d, &w, ops->lstm (d, kind, in, n_in, out, n_out),
       ops->lstm (d, kind, wi, n_in, wo, n_out));
}

void
td_cuda_halves_begin (TdDeviceOps *ops)
{
  ops->strided = strided;
  ops->scatter_rows_add = scatter_rows_add;
  ops->reduce = reduce;
  ops->cumulative_sum = cumulative_sum;
  ops->softmax = softmax;
  ops->gemm = gemm;
  ops->conv = conv;
  ops->pooling = pooling;
  ops->batch_norm = batch_norm;
  ops->row_norm = row_norm;
  ops->attention = attention;
  ops->cross_entropy = cross_entropy;
  ops->lstm = lstm;
}
