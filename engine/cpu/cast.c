/* Other element types: all pairs, half precision by its bits (IEEE 754 binary16 and bfloat16,
 * rounding to nearest, ties to even).
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"

#include "../scalar-ops.h"

const uint8_t td__cpu_dtype_bytes[TD_BOOL + 1]
    = { [TD_F32] = 4, [TD_F64] = 8, [TD_F16] = 2, [TD_BF16] = 2,
        [TD_I32] = 4, [TD_I64] = 8, [TD_U8] = 1,  [TD_BOOL] = 1 };

static float
float_of_f16 (uint16_t h)
{
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, m = h & 0x3FFu;

  if (exponent == 31)
    return td_float_of_bits (sign | 0x7F800000u | m << 13);
  if (exponent != 0)
    return td_float_of_bits (sign | (exponent + 112) << 23 | m << 13);
  return (sign != 0 ? -1.0f : 1.0f) * (float)m * 0x1p-24f;
}

static uint16_t
f16_of_float (float x)
{
  uint32_t bits = td_bits_of_float (x), sign = bits >> 16 & 0x8000u, a = bits & 0x7FFFFFFFu;

  if (a > 0x7F800000u)
    return (uint16_t)(sign | 0x7E00u);
  if (a >= 0x477FF000u) /* 65520 and above round to infinity */
    return (uint16_t)(sign | 0x7C00u);
  if (a < 0x38800000u) /* below 2^-14: the addition aligns and rounds */
    return (uint16_t)(sign | (td_bits_of_float (td_float_of_bits (a) + 0.5f) - 0x3F000000u));
  a += 0xFFFu + (a >> 13 & 1u);
  return (uint16_t)(sign | ((a - 0x38000000u) >> 13));
}

static uint16_t
bf16_of_float (float x)
{
  uint32_t bits = td_bits_of_float (x);

  if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
    return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

void
td__half_load (const TdTensor *x, int64_t i, int64_t n, float *block)
{
  const uint16_t *h = (const uint16_t *)x->data + i;

  if (x->dtype == TD_F16)
    for (int64_t k = 0; k < n; k++)
      block[k] = float_of_f16 (h[k]);
  else
    for (int64_t k = 0; k < n; k++)
      block[k] = td_float_of_bits ((uint32_t)h[k] << 16);
}

void
td__half_store (TdTensor *y, int64_t i, int64_t n, const float *block)
{
  uint16_t *h = (uint16_t *)y->data + i;

  if (y->dtype == TD_F16)
    for (int64_t k = 0; k < n; k++)
      h[k] = f16_of_float (block[k]);
  else
    for (int64_t k = 0; k < n; k++)
      h[k] = bf16_of_float (block[k]);
}

/* Float to integer as C does where it may, 0 for NaN, the nearest limit beyond the range. */
static inline int64_t
int_of_double (double v, double low, double high)
{
  return v != v ? 0 : v <= low ? (int64_t)low : v >= high ? INT64_MAX : (int64_t)v;
}

#define TO_FLOAT(v) (v)
#define I32_OF(v)                                                                              \
  ((v) != (v)                     ? 0                                                          \
   : (double)(v) <= -2147483648.0 ? INT32_MIN                                                  \
   : (double)(v) >= 2147483647.0  ? INT32_MAX                                                  \
                                  : (int32_t)(v))
#define I64_OF(v) int_of_double ((double)(v), -9223372036854775808.0, 9223372036854775807.0)
#define U8_OF(v) ((v) != (v) ? 0 : (uint8_t)I64_OF (v))
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

static void (*const casts[TD_BOOL + 1][TD_BOOL + 1]) (const void *, void *, int64_t) = {
  [TD_F32] = CASTS_OF (float),   [TD_F64] = CASTS_OF (double), [TD_I32] = CASTS_OF (int32_t),
  [TD_I64] = CASTS_OF (int64_t), [TD_U8] = CASTS_OF (uint8_t), [TD_BOOL] = CASTS_OF (uint8_t)
};

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
      const void *x = (const char *)w->x->data + (size_t)i * td__cpu_dtype_bytes[w->x->dtype];
      void *y = (char *)w->y->data + (size_t)i * td__cpu_dtype_bytes[w->y->dtype];

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
