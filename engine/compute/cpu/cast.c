/* Other element types: all pairs, half precision by way of float.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"
#include "vector.h"

#include "../scalar-ops.h"

void
td__half_load (const TdTensor *x, int64_t i, int64_t n, float *block)
{
  td__vector->half_load[x->dtype == TD_BF16]((const uint16_t *)x->data + i, block, n);
}

void
td__half_store (TdTensor *y, int64_t i, int64_t n, const float *block)
{
  td__vector->half_store[y->dtype == TD_BF16](block, (uint16_t *)y->data + i, n);
}

#define I32_OF(v) td_i32_of_f64 ((double)(v))
#define I64_OF(v) td_i64_of_f64 ((double)(v))
#define U8_OF(v) ((uint8_t)I64_OF (v))
#define PLAIN(v) (v)
#define TRUTH(v) ((v) != 0)

#define CAST_LOOP(From, To, name, convert)                                                     \
  static void cast_##From##_##name (const void *xs, void *ys, int64_t n)                       \
  {                                                                                            \
    const From *x = xs;                                                                        \
    To *y = ys;                                                                                \
                                                                                               \
    for (int64_t i = 0; i < n; i++)                                                            \
      y[i] = (To)convert (x[i]);                                                               \
  }
#define CASTS_FROM_FLOAT(From)                                                                 \
  CAST_LOOP (From, float, f32, PLAIN)                                                          \
  CAST_LOOP (From, double, f64, PLAIN)                                                         \
  CAST_LOOP (From, int32_t, i32, I32_OF)                                                       \
  CAST_LOOP (From, int64_t, i64, I64_OF)                                                       \
  CAST_LOOP (From, uint8_t, u8, U8_OF)                                                         \
  CAST_LOOP (From, uint8_t, bool, TRUTH)
#define CASTS_FROM_INT(From)                                                                   \
  CAST_LOOP (From, float, f32, PLAIN)                                                          \
  CAST_LOOP (From, double, f64, PLAIN)                                                         \
  CAST_LOOP (From, int32_t, i32, PLAIN)                                                        \
  CAST_LOOP (From, int64_t, i64, PLAIN)                                                        \
  CAST_LOOP (From, uint8_t, u8, PLAIN)                                                         \
  CAST_LOOP (From, uint8_t, bool, TRUTH)

CASTS_FROM_FLOAT (float)
CASTS_FROM_FLOAT (double)
CASTS_FROM_INT (int32_t)
CASTS_FROM_INT (int64_t)
CASTS_FROM_INT (uint8_t)

#define CASTS_OF(From)                                                                         \
  {                                                                                            \
    [TD_F32] = cast_##From##_f32, [TD_F64] = cast_##From##_f64, [TD_I32] = cast_##From##_i32,  \
    [TD_I64] = cast_##From##_i64, [TD_U8] = cast_##From##_u8, [TD_BOOL] = cast_##From##_bool   \
  }

static const TdCastLoop casts[TD_BOOL + 1][TD_BOOL + 1] = {
  [TD_F32] = CASTS_OF (float),   [TD_F64] = CASTS_OF (double), [TD_I32] = CASTS_OF (int32_t),
  [TD_I64] = CASTS_OF (int64_t), [TD_U8] = CASTS_OF (uint8_t), [TD_BOOL] = CASTS_OF (uint8_t)
};

TdCastLoop
td__cast_loop (TdDtype from, TdDtype to)
{
  return casts[td__is_half (from) ? TD_F32 : from][td__is_half (to) ? TD_F32 : to];
}

typedef struct
{
  const TdTensor *x;
  TdTensor *y;
} CastWork;

static void
cast_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const CastWork *w = context;
  TdDtype from = td__is_half (w->x->dtype) ? TD_F32 : w->x->dtype;
  TdDtype to = td__is_half (w->y->dtype) ? TD_F32 : w->y->dtype;
  float in[TD_HALF_BLOCK], out[TD_HALF_BLOCK];

  for (int64_t i = begin; i < end; i += TD_HALF_BLOCK)
    {
      int64_t n = end - i < TD_HALF_BLOCK ? end - i : TD_HALF_BLOCK;
      const void *x = (const char *)w->x->data + (size_t)i * td__dtype_sizes[w->x->dtype];
      void *y = (char *)w->y->data + (size_t)i * td__dtype_sizes[w->y->dtype];

      if (from != w->x->dtype)
        {
          td__half_load (w->x, i, n, in);
          x = in;
        }
      casts[from][to](x, to != w->y->dtype ? out : y, n);
      if (to != w->y->dtype)
        td__half_store (w->y, i, n, out);
    }
}

TdStatus
td__cpu_cast (TdDevice *d, const TdTensor *x, TdTensor *y)
{
  CastWork w = { x, y };

  td__cpu_parallel (x->size, TD_CPU_GRAIN, cast_piece, &w);
  return TD_OK;
}
