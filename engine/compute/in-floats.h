/* Halves in float: what a device's kernels do not compute in bf16 or f16 they are asked for
 * again with floats, between casts, and what comes out is rounded once.  Here is what the
 * devices share of that: the operands of a call, and the slots with their operands.  Memory is
 * theirs.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "device.h"

enum
{
  TD_IN_FLOATS_MAX = 12,
  TD_IN_FLOATS_ALIGNED = 256 /* bytes */
};

/** What is done with an operand. */
typedef enum
{
  TD_IN_FLOATS_READ = 1,
  TD_IN_FLOATS_WRITE = 2,
  TD_IN_FLOATS_CHANGE = TD_IN_FLOATS_READ | TD_IN_FLOATS_WRITE
} TdInFloatsUse;

/** The operands of one call, those in halves as floats. */
typedef struct TdInFloats
{
  const TdTensor *of[TD_IN_FLOATS_MAX];
  TdTensor wide[TD_IN_FLOATS_MAX];
  TdInFloatsUse use[TD_IN_FLOATS_MAX];
  int n;
  size_t bytes; /**< of the floats; 0: there are no halves */
  void *memory; /**< the device's own */
} TdInFloats;

static inline bool
td__is_half (TdDtype dtype)
{
  return dtype == TD_F16 || dtype == TD_BF16;
}

static inline size_t
td_in_floats_bytes (const TdTensor *t)
{
  const size_t bytes = (size_t)t->size * sizeof (float);

  return td__is_half (t->dtype)
             ? bytes / TD_IN_FLOATS_ALIGNED * TD_IN_FLOATS_ALIGNED + TD_IN_FLOATS_ALIGNED
             : 0;
}

/** Add n operands side by side (or none, NULL).  Returns the first of those to compute with. */
static inline TdTensor *
td_in_floats_add (TdInFloats *f, const TdTensor *t, int n, TdInFloatsUse use)
{
  TdTensor *first = &f->wide[f->n];

  if (t == NULL)
    return NULL;
  for (int i = 0; i < n; i++)
    {
      f->of[f->n] = &t[i];
      f->use[f->n] = use;
      f->wide[f->n++] = t[i];
      f->bytes += td_in_floats_bytes (&t[i]);
    }
  return first;
}

/** Lay the floats out in `room` and fill those that are read. */
static inline TdStatus
td_in_floats_begin (TdInFloats *f, TdDevice *d, const TdDeviceOps *ops, char *room)
{
  TdStatus status = TD_OK;

  for (int i = 0; i < f->n && status == TD_OK; i++)
    if (td__is_half (f->of[i]->dtype))
      {
        f->wide[i].data = room;
        f->wide[i].dtype = TD_F32;
        room += td_in_floats_bytes (f->of[i]);
        if ((f->use[i] & TD_IN_FLOATS_READ) && f->of[i]->size > 0)
          status = ops->cast (d, f->of[i], &f->wide[i]);
      }
  return status;
}

/** Round what has been written, if the call went well.  Returns its status, or that of a cast.
 */
static inline TdStatus
td_in_floats_end (TdInFloats *f, TdDevice *d, const TdDeviceOps *ops, TdStatus status)
{
  for (int i = 0; i < f->n && status == TD_OK; i++)
    if ((f->use[i] & TD_IN_FLOATS_WRITE) && td__is_half (f->of[i]->dtype) && f->of[i]->size > 0)
      {
        TdTensor to = *f->of[i];

        status = ops->cast (d, &f->wide[i], &to);
      }
  return status;
}

/* clang-format off */

/** The slots: X (slot, its parameters, as arguments, how these become floats), the last with `f`
 * for the call's TdInFloats. */
#define TD_IN_FLOATS_SLOTS(X)                                                                    \
  X (strided, (TdDevice *d, TdStridedKind kind, const TdTensor *x, const TdStrides *walk,        \
               TdTensor *y),                                                                     \
     (d, kind, x, walk, y),                                                                      \
     x = TD_READ_IN_FLOATS (x, 1); y = TD_CHANGE_IN_FLOATS (y, 1, true))                         \
  X (scatter_rows_add, (TdDevice *d, const TdTensor *index, const TdTensor *gy, TdTensor *gw),   \
     (d, index, gy, gw),                                                                         \
     gy = TD_READ_IN_FLOATS (gy, 1); gw = TD_CHANGE_IN_FLOATS (gw, 1, true))                     \
  X (reduce, (TdDevice *d, TdReduceKind kind, uint32_t axes, const TdTensor *x, TdTensor *y,     \
              bool accumulate),                                                                  \
     (d, kind, axes, x, y, accumulate),                                                          \
     x = TD_READ_IN_FLOATS (x, 1); y = TD_CHANGE_IN_FLOATS (y, 1, accumulate))                   \
  X (cumulative_sum, (TdDevice *d, int axis, bool reverse, const TdTensor *x, TdTensor *y),      \
     (d, axis, reverse, x, y),                                                                   \
     x = TD_READ_IN_FLOATS (x, 1); y = TD_CHANGE_IN_FLOATS (y, 1, false))                        \
  X (softmax, (TdDevice *d, TdSoftmaxKind kind, int axis, const TdTensor *x, const TdTensor *gy, \
               TdTensor *y),                                                                     \
     (d, kind, axis, x, gy, y),                                                                  \
     x = TD_READ_IN_FLOATS (x, 1); gy = TD_READ_IN_FLOATS (gy, 1);                               \
     y = TD_CHANGE_IN_FLOATS (y, 1, false))                                                      \
  X (gemm, (TdDevice *d, const TdGemm *g, const TdTensor *a, const TdTensor *b, TdTensor *c),    \
     (d, g, a, b, c),                                                                            \
     TdGemm wide = *g; a = TD_READ_IN_FLOATS (a, 1); b = TD_READ_IN_FLOATS (b, 1);               \
     wide.end.bias = TD_READ_IN_FLOATS (g->end.bias, 1);                                         \
     wide.end.above = TD_READ_IN_FLOATS (g->end.above, 1);                                       \
     c = TD_CHANGE_IN_FLOATS (c, 1, g->beta != 0); g = &wide)                                    \
  X (conv, (TdDevice *d, TdConvKind kind, const TdConv *attrs, const TdTensor *in, int n_in,     \
            TdTensor *out),                                                                      \
     (d, kind, attrs, in, n_in, out),                                                            \
     in = TD_READ_IN_FLOATS (in, n_in); out = TD_CHANGE_IN_FLOATS (out, 1, attrs->accumulate))   \
  X (pooling, (TdDevice *d, TdPoolKind kind, const TdPooling *attrs, const TdTensor *in,         \
               int n_in, TdTensor *out, TdTensor *out2),                                         \
     (d, kind, attrs, in, n_in, out, out2),                                                      \
     in = TD_READ_IN_FLOATS (in, n_in); out = TD_CHANGE_IN_FLOATS (out, 1, false))               \
  X (batch_norm, (TdDevice *d, int kind, const double *params, const TdTensor *in, int n_in,     \
                  TdTensor *out, int n_out),                                                     \
     (d, kind, params, in, n_in, out, n_out),                                                    \
     const int running = kind == TD_BATCH_NORM_TRAIN && n_in > 3 ? n_in - 3 : 0;                 \
     const TdTensor *kept = in + n_in - running;                                                 \
     in = TD_READ_IN_FLOATS (in, n_in - running); TD_CHANGE_IN_FLOATS (kept, running, true);     \
     out = TD_CHANGE_IN_FLOATS (out, n_out, false))                                              \
  X (row_norm, (TdDevice *d, TdRowNormKind kind, const TdRowNorm *norm, const TdTensor *in,      \
                int n_in, TdTensor *out, int n_out),                                             \
     (d, kind, norm, in, n_in, out, n_out),                                                      \
     TdRowNorm wide = *norm; wide.join.added = TD_READ_IN_FLOATS (norm->join.added, 1);          \
     wide.join.sum = TD_CHANGE_IN_FLOATS (norm->join.sum, 1, false); norm = &wide;               \
     in = TD_READ_IN_FLOATS (in, n_in); out = TD_CHANGE_IN_FLOATS (out, n_out, false))           \
  X (attention, (TdDevice *d, TdAttentionKind kind, const TdAttention *attrs,                    \
                 const TdTensor *in, int n_in, TdTensor *out, int n_out),                        \
     (d, kind, attrs, in, n_in, out, n_out),                                                     \
     in = TD_READ_IN_FLOATS (in, n_in); out = TD_CHANGE_IN_FLOATS (out, n_out, false))           \
  X (cross_entropy, (TdDevice *d, int kind, const int64_t *params, const TdTensor *in, int n_in, \
                     TdTensor *out, int n_out),                                                  \
     (d, kind, params, in, n_in, out, n_out),                                                    \
     in = TD_READ_IN_FLOATS (in, n_in); out = TD_CHANGE_IN_FLOATS (out, n_out, false))           \
  X (lstm, (TdDevice *d, int kind, const TdTensor *in, int n_in, TdTensor *out, int n_out),      \
     (d, kind, in, n_in, out, n_out),                                                            \
     in = TD_READ_IN_FLOATS (in, n_in); out = TD_CHANGE_IN_FLOATS (out, n_out, false))
/* clang-format on */

/** Operands that are read; that are written, and read before where `reads`. */
#define TD_READ_IN_FLOATS(t, n) td_in_floats_add (f, t, n, TD_IN_FLOATS_READ)
#define TD_CHANGE_IN_FLOATS(t, n, reads)                                                       \
  td_in_floats_add (f, t, n, (reads) ? TD_IN_FLOATS_CHANGE : TD_IN_FLOATS_WRITE)
