/* Layers in half precision on the CPU: stored in two bytes a number, computed in float by the
 * kernels that know no halves, and rounded once at the end.
 *
 * SPDX-License-Identifier: MIT */
#include "halves.h"

#include <stdlib.h>

#include "elementwise.h"

enum
{
  MAX_TENSORS = 12,
  ALIGNED = 64
};

/* What is done with an operand. */
typedef enum
{
  READ = 1,
  WRITE = 2,
  CHANGE = READ | WRITE
} Use;

/* The operands of one call, those in halves as floats. */
typedef struct
{
  const TdTensor *of[MAX_TENSORS];
  TdTensor wide[MAX_TENSORS];
  Use use[MAX_TENSORS];
  int n;
  char *memory;
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

  return td__is_half (t->dtype) ? (bytes + ALIGNED - 1) / ALIGNED * ALIGNED : 0;
}

static TdStatus
begin (TdDevice *d, Wide *w)
{
  size_t bytes = 0, at = 0;
  TdStatus status = TD_OK;

  for (int i = 0; i < w->n; i++)
    bytes += bytes_of (w->of[i]);
  w->memory = aligned_alloc (ALIGNED, bytes + ALIGNED);
  if (w->memory == NULL)
    return TD_ERR_MEMORY;
  for (int i = 0; i < w->n && status == TD_OK; i++)
    if (td__is_half (w->of[i]->dtype))
      {
        w->wide[i].data = w->memory + at;
        w->wide[i].dtype = TD_F32;
        at += bytes_of (w->of[i]);
        if ((w->use[i] & READ) && w->of[i]->size > 0)
          status = td__cpu_cast (d, w->of[i], &w->wide[i]);
      }
  return status;
}

static TdStatus
end (TdDevice *d, Wide *w, TdStatus status)
{
  for (int i = 0; i < w->n && status == TD_OK; i++)
    if ((w->use[i] & WRITE) && td__is_half (w->of[i]->dtype) && w->of[i]->size > 0)
      {
        TdTensor to = *w->of[i];

        status = td__cpu_cast (d, &w->wide[i], &to);
      }
  free (w->memory);
  return status;
}

/* Call the kernel between begin and end. */
#define IN_FLOATS(d, w, call)                                                                  \
  do                                                                                           \
    {                                                                                          \
      TdStatus status_ = begin (d, w);                                                         \
                                                                                               \
      return end (d, w, status_ == TD_OK ? (call) : status_);                                  \
    }                                                                                          \
  while (0)

TdStatus
td__cpu_half_strided (TdDevice *d, TdStridedKind kind, const TdTensor *x, const TdStrides *walk,
                      TdTensor *y)
{
  Wide w = { .n = 0 };
  TdTensor *wx, *wy;

  if (kind != TD_STRIDED_ADD || !td__is_half (y->dtype))
    return td__cpu_strided (d, kind, x, walk, y);
  wx = add (&w, x, 1, READ);
  wy = add (&w, y, 1, CHANGE);
  IN_FLOATS (d, &w, td__cpu_strided (d, kind, wx, walk, wy));
}

TdStatus
td__cpu_half_scatter_rows_add (TdDevice *d, const TdTensor *index, const TdTensor *gy,
                               TdTensor *gw)
{
  Wide w = { .n = 0 };
  TdTensor *wg, *ww;

  if (!td__is_half (gw->dtype))
    return td__cpu_scatter_rows_add (d, index, gy, gw);
  wg = add (&w, gy, 1, READ);
  ww = add (&w, gw, 1, CHANGE);
  IN_FLOATS (d, &w, td__cpu_scatter_rows_add (d, index, wg, ww));
}

TdStatus
td__cpu_half_reduce (TdDevice *d, TdReduceKind kind, uint32_t axes, const TdTensor *x,
                     TdTensor *y, bool accumulate)
{
  Wide w = { .n = 0 };
  TdTensor *wx;

  if ((kind != TD_REDUCE_ARGMAX && kind != TD_REDUCE_ARGMIN) || !td__is_half (x->dtype))
    return td__cpu_reduce (d, kind, axes, x, y, accumulate);
  wx = add (&w, x, 1, READ);
  IN_FLOATS (d, &w, td__cpu_reduce (d, kind, axes, wx, y, accumulate));
}

TdStatus
td__cpu_half_cumulative_sum (TdDevice *d, int axis, bool reverse, const TdTensor *x,
                             TdTensor *y)
{
  Wide w = { .n = 0 };
  TdTensor *wx, *wy;

  if (!td__is_half (y->dtype))
    return td__cpu_cumulative_sum (d, axis, reverse, x, y);
  wx = add (&w, x, 1, READ);
  wy = add (&w, y, 1, WRITE);
  IN_FLOATS (d, &w, td__cpu_cumulative_sum (d, axis, reverse, wx, wy));
}

TdStatus
td__cpu_half_softmax (TdDevice *d, TdSoftmaxKind kind, int axis, const TdTensor *x,
                      const TdTensor *gy, TdTensor *y)
{
  Wide w = { .n = 0 };
  TdTensor *wx, *wg, *wy;

  if (!td__is_half (y->dtype))
    return td__cpu_softmax (d, kind, axis, x, gy, y);
  wx = add (&w, x, 1, READ);
  wg = add (&w, gy, 1, READ);
  wy = add (&w, y, 1, WRITE);
  IN_FLOATS (d, &w, td__cpu_softmax (d, kind, axis, wx, wg, wy));
}

TdStatus
td__cpu_half_gemm (TdDevice *d, const TdGemm *g, const TdTensor *a, const TdTensor *b,
                   TdTensor *c)
{
  Wide w = { .n = 0 };
  TdTensor *wa, *wb, *wc;

  if (!td__is_half (c->dtype))
    return td__cpu_gemm (d, g, a, b, c);
  wa = add (&w, a, 1, READ);
  wb = add (&w, b, 1, READ);
  wc = add (&w, c, 1, g->beta != 0 ? CHANGE : WRITE);
  IN_FLOATS (d, &w, td__cpu_gemm (d, g, wa, wb, wc));
}

TdStatus
td__cpu_half_conv (TdDevice *d, TdConvKind kind, const TdConv *attrs, const TdTensor *in,
                   int n_in, TdTensor *out)
{
  Wide w = { .n = 0 };
  TdTensor *wi, *wo;

  if (!td__is_half (out->dtype))
    return td__cpu_conv_any (d, kind, attrs, in, n_in, out);
  wi = add (&w, in, n_in, READ);
  wo = add (&w, out, 1, attrs->accumulate ? CHANGE : WRITE);
  IN_FLOATS (d, &w, td__cpu_conv_any (d, kind, attrs, wi, n_in, wo));
}

TdStatus
td__cpu_half_pooling (TdDevice *d, TdPoolKind kind, const TdPooling *attrs, const TdTensor *in,
                      int n_in, TdTensor *out, TdTensor *out2)
{
  Wide w = { .n = 0 };
  TdTensor *wi, *wo;

  if (!td__is_half (out->dtype))
    return td__cpu_pooling_any (d, kind, attrs, in, n_in, out, out2);
  wi = add (&w, in, n_in, READ);
  wo = add (&w, out, 1, WRITE);
  IN_FLOATS (d, &w, td__cpu_pooling_any (d, kind, attrs, wi, n_in, wo, out2));
}

TdStatus
td__cpu_half_batch_norm (TdDevice *d, int kind, const double *params, const TdTensor *in,
                         int n_in, TdTensor *out, int n_out)
{
  const int n_running = kind == TD_BATCH_NORM_TRAIN && n_in > 3 ? n_in - 3 : 0;
  Wide w = { .n = 0 };
  TdTensor *wi, *wo;

  if (!td__is_half (out->dtype))
    return td__cpu_batch_norm_any (d, kind, params, in, n_in, out, n_out);
  wi = add (&w, in, n_in - n_running, READ);
  add (&w, in + n_in - n_running, n_running, CHANGE);
  wo = add (&w, out, n_out, WRITE);
  IN_FLOATS (d, &w, td__cpu_batch_norm_any (d, kind, params, wi, n_in, wo, n_out));
}

TdStatus
td__cpu_half_row_norm (TdDevice *d, TdRowNormKind kind, const TdRowNorm *norm,
                       const TdTensor *in, int n_in, TdTensor *out, int n_out)
{
  Wide w = { .n = 0 };
  TdTensor *wi, *wo;

  if (!td__is_half (out->dtype))
    return td__cpu_row_norm (d, kind, norm, in, n_in, out, n_out);
  wi = add (&w, in, n_in, READ);
  wo = add (&w, out, n_out, WRITE);
  IN_FLOATS (d, &w, td__cpu_row_norm (d, kind, norm, wi, n_in, wo, n_out));
}

TdStatus
td__cpu_half_attention (TdDevice *d, TdAttentionKind kind, const TdAttention *attrs,
                        const TdTensor *in, int n_in, TdTensor *out, int n_out)
{
  Wide w = { .n = 0 };
  TdTensor *wi, *wo;

  if (!td__is_half (out->dtype))
    return td__cpu_attention (d, kind, attrs, in, n_in, out, n_out);
  wi = add (&w, in, n_in, READ);
  wo = add (&w, out, n_out, WRITE);
  IN_FLOATS (d, &w, td__cpu_attention (d, kind, attrs, wi, n_in, wo, n_out));
}

TdStatus
td__cpu_half_cross_entropy (TdDevice *d, int kind, const int64_t *params, const TdTensor *in,
                            int n_in, TdTensor *out, int n_out)
{
  bool half = false;
  Wide w = { .n = 0 };
  TdTensor *wi, *wo;

  for (int i = 0; i < n_in; i++)
    half = half || td__is_half (in[i].dtype);
  if (!half && !td__is_half (out->dtype))
    return td__cpu_cross_entropy (d, kind, params, in, n_in, out, n_out);
  wi = add (&w, in, n_in, READ);
  wo = add (&w, out, n_out, WRITE);
  IN_FLOATS (d, &w, td__cpu_cross_entropy (d, kind, params, wi, n_in, wo, n_out));
}

TdStatus
td__cpu_half_lstm (TdDevice *d, int kind, const TdTensor *in, int n_in, TdTensor *out,
                   int n_out)
{
  Wide w = { .n = 0 };
  TdTensor *wi, *wo;

  if (!td__is_half (out->dtype))
    return td__cpu_lstm (d, kind, in, n_in, out, n_out);
  wi = add (&w, in, n_in, READ);
  wo = add (&w, out, n_out, WRITE);
  IN_FLOATS (d, &w, td__cpu_lstm (d, kind, wi, n_in, wo, n_out));
}
