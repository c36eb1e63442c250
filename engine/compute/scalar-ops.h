/* The formulas of all element-by-element kernels, once, for every compiler that makes kernels.
 *
 * Lists of X (kind, expression): the expression sees x (and y) of type T, and the parameters p
 * and q.  S is the suffix of the type, f32 or f64.  NaN passes through relu, max, min and clip.
 * Polynomials (exp, log, tanh) are for float only, so that loops vectorise; double goes through
 * libm.  *Source*: Cephes mathematical library, S. Moshier, single precision coefficients.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define TD_FORMULA static __device__ __forceinline__
#else
#define TD_FORMULA static inline __attribute__ ((always_inline))
#endif

/* clang-format off */
#define TD_UNARY_FLOAT(X, S)                                       \
  X (COPY, x)                                                      \
  X (NEG, -x)                                                      \
  X (RELU, x <= 0 ? (T)0 : x)                                      \
  X (SIGMOID, 1 / (1 + td_exp_##S (-x)))                           \
  X (TANH, td_tanh_##S (x))                                        \
  X (EXP, td_exp_##S (x))                                          \
  X (LOG, td_log_##S (x))                                          \
  X (SQRT, td_sqrt_##S (x))                                        \
  X (ABS, td_abs_##S (x))                                          \
  X (SQUARE, x * x)                                                \
  X (SIN, td_sin_##S (x))                                          \
  X (COS, td_cos_##S (x))                                          \
  X (SIGN, x > 0 ? (T)1 : x < 0 ? (T)-1 : x)                       \
  X (ADD_SCALAR, x + p)                                            \
  X (MUL_SCALAR, x * p)                                            \
  X (RSUB_SCALAR, p - x)                                           \
  X (RDIV_SCALAR, p / x)                                           \
  X (DIV_SCALAR, x / p)                                            \
  X (POW_SCALAR, td_pow_##S (x, p))                                \
  X (RPOW_SCALAR, td_pow_##S (p, x))                               \
  X (CLIP, x < p ? p : x > q ? q : x)                              \
  X (INSIDE, x < p ? (T)0 : x > q ? (T)0 : (T)1)                   \
  X (LEAKY_RELU, x < 0 ? x * p : x)                                \
  X (ELU, x > 0 ? x : p * td_expm1_##S (x))                        \
  X (SOFTPLUS, td_softplus_##S (x * p) / p)                        \
  X (CLIPPED_RELU, x < 0 ? (T)0 : x > p ? p : x)                   \
  X (HARD_SIGMOID, x < (T)-2.5 ? (T)0 : x > (T)2.5 ? (T)1 : x * (T)0.2 + (T)0.5) \
  X (SILU, x / (1 + td_exp_##S (-x)))                              \
  X (GELU, x * td_phi_##S (x))                                     \
  X (GELU_TANH, x / (1 + td_exp_##S (-td_gelu_power_##S (x))))     \
  X (ERF, td_erf_##S (x))                                          \
  X (LOG1P, td_log1p_##S (x))                                      \
  X (EXPM1, td_expm1_##S (x))                                      \
  X (RSQRT, 1 / td_sqrt_##S (x))

/* y times the slope of the unary formula of that name. */
#define TD_UNARY_GRAD_FLOAT(X, S)                                  \
  X (LEAKY_RELU, x < 0 ? y * p : x != x ? x : y)                   \
  X (ELU, x > 0 ? y : y * p * td_exp_##S (x))                      \
  X (SOFTPLUS, y / (1 + td_exp_##S (-(x * p))))                    \
  X (CLIPPED_RELU, x != x ? x : x > 0 ? (x < p ? y : (T)0) : (T)0) \
  X (HARD_SIGMOID, x != x ? x : x > (T)-2.5 ? (x < (T)2.5 ? y * (T)0.2 : (T)0) : (T)0) \
  X (SILU, y * td_silu_slope_##S (x))                              \
  X (GELU, y * td_gelu_slope_##S (x))                              \
  X (GELU_TANH, y * td_gelu_tanh_slope_##S (x))                    \
  X (ERF, y * (T)1.1283791670955126 * td_exp_##S (-(x * x)))       \
  X (LOG1P, y / (1 + x))                                           \
  X (EXPM1, y * td_exp_##S (x))                                    \
  X (RSQRT, y * (T)-0.5 / (x * td_sqrt_##S (x)))

#define TD_BINARY_FLOAT(X, S)                                      \
  X (ADD, x + y)                                                   \
  X (SUB, x - y)                                                   \
  X (MUL, x * y)                                                   \
  X (DIV, x / y)                                                   \
  X (POW, td_pow_##S (x, y))                                       \
  X (MAXIMUM, x != x ? x : x > y ? x : y)                          \
  X (MINIMUM, x != x ? x : x < y ? x : y)                          \
  X (RELU_GRAD, x > 0 ? y : x != x ? x : (T)0)                     \
  X (SIGMOID_GRAD, y * x * (1 - x))                                \
  X (TANH_GRAD, y * (1 - x * x))                                   \
  TD_BINARY_COMPARE (X)                                                                        \
  X (SIGMOID_CE, y < 0 ? (T)0 : (x > 0 ? x : (T)0) - x * y + td_log1p_##S (td_exp_##S (-td_abs_##S (x)))) \
  X (SIGMOID_CE_GRAD, y < 0 ? (T)0 : 1 / (1 + td_exp_##S (-x)) - y)

#define TD_BINARY_COMPARE(X)                                       \
  X (EQ, x == y ? (T)1 : (T)0)                                     \
  X (GE, x >= y ? (T)1 : (T)0)                                     \
  X (GT, x > y ? (T)1 : (T)0)                                      \
  X (LE, x <= y ? (T)1 : (T)0)                                     \
  X (LT, x < y ? (T)1 : (T)0)

/* Integers wrap: sums and products are made in U, the unsigned type of T's size. */
#define TD_UNARY_INT(X, S)                                         \
  X (COPY, x)                                                      \
  X (NEG, (T)(0 - (U)x))                                           \
  X (RELU, x <= 0 ? 0 : x)                                         \
  X (ABS, x < 0 ? (T)(0 - (U)x) : x)                               \
  X (SQUARE, (T)((U)x * (U)x))                                     \
  X (SIGN, x > 0 ? 1 : x < 0 ? -1 : 0)                             \
  X (ADD_SCALAR, (T)((U)x + (U)p))                                 \
  X (MUL_SCALAR, (T)((U)x * (U)p))                                 \
  X (RSUB_SCALAR, (T)((U)p - (U)x))                                \
  X (CLIP, x < p ? p : x > q ? q : x)                              \
  X (INSIDE, x < p ? 0 : x > q ? 0 : 1)

#define TD_BINARY_INT(X, S)                                        \
  X (ADD, (T)((U)x + (U)y))                                        \
  X (SUB, (T)((U)x - (U)y))                                        \
  X (MUL, (T)((U)x * (U)y))                                        \
  X (MAXIMUM, x > y ? x : y)                                       \
  X (MINIMUM, x < y ? x : y)                                       \
  TD_BINARY_COMPARE (X)
/* clang-format on */

TD_FORMULA float
td_float_of_bits (uint32_t bits)
{
  float x;

  memcpy (&x, &bits, sizeof x);
  return x;
}

TD_FORMULA uint32_t
td_bits_of_float (float x)
{
  uint32_t bits;

  memcpy (&bits, &x, sizeof bits);
  return bits;
}

/* Half precision by its bits: IEEE 754 binary16 and bfloat16, rounding to nearest, ties to
 * even. */
TD_FORMULA float
td_float_of_f16 (uint16_t h)
{
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, m = h & 0x3FFu;

  if (exponent == 31)
    return td_float_of_bits (sign | 0x7F800000u | m << 13);
  if (exponent != 0)
    return td_float_of_bits (sign | (exponent + 112) << 23 | m << 13);
  return (sign != 0 ? -1.0f : 1.0f) * (float)m * 5.9604644775390625e-8f; /* 2^-24 */
}

TD_FORMULA uint16_t
td_f16_of_float (float x)
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

TD_FORMULA float
td_float_of_bf16 (uint16_t h)
{
  return td_float_of_bits ((uint32_t)h << 16);
}

TD_FORMULA uint16_t
td_bf16_of_float (float x)
{
  uint32_t bits = td_bits_of_float (x);

  if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
    return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

/* Float to integer as C does where it may, 0 for NaN, the nearest limit beyond the range. */
TD_FORMULA int32_t
td_i32_of_f64 (double v)
{
  return v != v               ? 0
         : v <= -2147483648.0 ? INT32_MIN
         : v >= 2147483647.0  ? INT32_MAX
                              : (int32_t)v;
}

TD_FORMULA int64_t
td_i64_of_f64 (double v)
{
  return v != v                        ? 0
         : v <= -9223372036854775808.0 ? INT64_MIN
         : v >= 9223372036854775807.0  ? INT64_MAX
                                       : (int64_t)v;
}

/** Four numbers of the Philox4x32-10 stream from a counter and a key.  *Source*: Salmon et al.,
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
TD_FORMULA void
td_philox (const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];

  for (int round = 0; round < 10; round++)
    {
      uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;

      c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
      c1 = (uint32_t)p1;
      c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
      c3 = (uint32_t)p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

/** Two normal numbers from two of 32 bits; (bits + 1/2) 2^-32 is never 0.  *Source*: Box and
 * Muller, 1958. */
TD_FORMULA void
td_box_muller (uint32_t a, uint32_t b, double out[2])
{
  double r = sqrt (-2.0 * log (((double)a + 0.5) * 2.3283064365386963e-10)); /* 2^-32 */
  double angle = 6.283185307179586477 * ((double)b * 2.3283064365386963e-10);

  out[0] = r * cos (angle);
  out[1] = r * sin (angle);
}

/** e^x to 1 ulp or so; denormal results included, overflow gives infinity. */
TD_FORMULA float
td_exp_f32 (float x)
{
  const float round = 12582912.0f; /* 1.5 * 2^23: adding it leaves the nearest integer */
  float c = x > 88.8f ? 88.8f : x;
  float t, n, r, y;
  int32_t k, half;

  c = c < -104.0f ? -104.0f : c;
  t = c * 1.44269504088896341f + round;
  n = t - round;
  r = c - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  y = 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  k = (int32_t)(td_bits_of_float (t) - 0x4B400000u);
  half = k >> 1; /* two steps, so that 2^128 and denormals work */
  return y * td_float_of_bits (((uint32_t)half + 127u) << 23)
         * td_float_of_bits (((uint32_t)k - (uint32_t)half + 127u) << 23);
}

TD_FORMULA float
td_log_f32 (float x)
{
  bool tiny = x < 1.17549435e-38f;
  uint32_t bits = td_bits_of_float (tiny ? x * 8388608.0f : x);
  float m = td_float_of_bits ((bits & 0x007FFFFFu) | 0x3F000000u); /* 0.5 .. 1 */
  bool low = m < 0.707106781186547524f;
  float e = (float)((int32_t)(bits >> 23) - 126) - (low ? 1.0f : 0.0f) - (tiny ? 23.0f : 0.0f);
  float z, y;

  m = (low ? m + m : m) - 1.0f;
  z = m * m;
  y = 7.0376836292e-2f;
  y = y * m - 1.1514610310e-1f;
  y = y * m + 1.1676998740e-1f;
  y = y * m - 1.2420140846e-1f;
  y = y * m + 1.4249322787e-1f;
  y = y * m - 1.6668057665e-1f;
  y = y * m + 2.0000714765e-1f;
  y = y * m - 2.4999993993e-1f;
  y = y * m + 3.3333331174e-1f;
  y = y * m * z;
  y = y + e * -2.12194440e-4f;
  y = y - 0.5f * z;
  y = m + y + e * 0.693359375f;
  y = x > 3.402823466e38f ? x : y;
  return x > 0 ? y : x == 0 ? -INFINITY : NAN;
}

/* tanh below this limit. */
#define TD_TANH_LIMIT 0.625f
TD_FORMULA float
td_tanh_small_f32 (float x)
{
  float z = x * x;
  float y = -5.70498872745e-3f;

  y = y * z + 2.06390887954e-2f;
  y = y * z - 5.37397155531e-2f;
  y = y * z + 1.33314422036e-1f;
  y = y * z - 3.33332819422e-1f;
  return y * z * x + x;
}

/* tanh from there on, a > 0: 1 - 2 / (e^2a + 1).  The exponential has the bits of td_exp_f32,
 * whose range for large and for negative numbers is not needed: 1 - 4e-9 is 1. */
TD_FORMULA float
td_tanh_large_f32 (float a)
{
  const float round = 12582912.0f;
  float c = a > 10.0f ? 10.0f : a;
  float t, n, r, y;

  c = c + c;
  t = c * 1.44269504088896341f + round;
  n = t - round;
  r = c - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  y = 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  y = td_float_of_bits (td_bits_of_float (y) + (td_bits_of_float (t) << 23)); /* 2^n y */
  return 1.0f - 2.0f / (y + 1.0f);
}

/* Both, so that loops vectorise; NaN goes through the first. */
TD_FORMULA float
td_tanh_f32 (float x)
{
  uint32_t bits = td_bits_of_float (x), sign = bits & 0x80000000u;
  float a = td_float_of_bits (bits ^ sign);
  float big = td_float_of_bits (td_bits_of_float (td_tanh_large_f32 (a)) | sign);
  float y = td_tanh_small_f32 (x);

  return a >= TD_TANH_LIMIT ? big : y;
}

/** e^x - 1, also where e^x is nearly 1: td_exp_f32's polynomial without its 1. */
TD_FORMULA float
td_expm1_f32 (float x)
{
  const float round = 12582912.0f;
  float c = x > 88.8f ? 88.8f : x;
  float t, n, r, y, low, high;
  int32_t k, half;

  c = c < -104.0f ? -104.0f : c;
  t = c * 1.44269504088896341f + round;
  n = t - round;
  r = c - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  y = 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r;
  k = (int32_t)(td_bits_of_float (t) - 0x4B400000u);
  half = k >> 1;
  high = td_float_of_bits (((uint32_t)k - (uint32_t)half + 127u) << 23);
  low = td_float_of_bits (((uint32_t)half + 127u) << 23);
  /* 2^k (y + 1) - 1, the 1 taken off before the second step of the power. */
  return (y * high + (high - td_float_of_bits ((127u - (uint32_t)half) << 23))) * low;
}

/** log (1 + x), also where 1 + x is nearly 1: what rounding 1 + x lost is added back.
 * *Source*: W. Kahan's correction. */
TD_FORMULA float
td_log1p_f32 (float x)
{
  float u = 1.0f + x;
  float lost = (x - (u - 1.0f)) / u;

  return td_log_f32 (u) + (lost == lost ? lost : 0.0f);
}

/** The normal distribution function, by a = |x| / sqrt (2): from a series of erf below, above
 * from erfc (a) = e^(-a a) t R (t) with t = 1 / (1 + 0.4 a), to keep the tail's digits.
 * *Source*: both polynomials fitted for least relative error, 1.2e-9 and 4.1e-9. */
TD_FORMULA float
td_half_erf_f32 (float a) /* erf (a) / 2 for |a| < 1 */
{
  float z = a * a;
  float y = 7.853860952e-05f;

  y = y * z - 8.010193504e-04f;
  y = y * z + 5.188327672e-03f;
  y = y * z - 2.685381193e-02f;
  y = y * z + 1.128358515e-01f;
  y = y * z - 3.761262582e-01f;
  y = y * z + 1.128379166e+00f;
  return 0.5f * a * y;
}

TD_FORMULA float
td_half_erfc_f32 (float a, float e) /* erfc (a) / 2 for a >= 0.5; e: e^(-a a) */
{
  float t = 1.0f / (1.0f + 0.4f * a);
  float y = 6.034672182e-02f;

  y = y * t - 2.212025030e-01f;
  y = y * t + 2.295100807e-01f;
  y = y * t - 5.690643204e-02f;
  y = y * t + 1.668193718e-01f;
  y = y * t + 1.611247794e-01f;
  y = y * t + 2.090767065e-01f;
  y = y * t + 2.255640122e-01f;
  y = y * t + 2.256793822e-01f;
  return 0.5f * t * y * e;
}

/** e^(-x x / 2), 0 where it is below 2^-126: fewer steps than td_exp_f32. */
TD_FORMULA float
td_bell_f32 (float x)
{
  const float round = 12582912.0f; /* as there */
  float power = x * x * -0.5f;
  float c = power < -87.3f ? -87.3f : power;
  float t, n, r, y;

  t = c * 1.44269504088896341f + round;
  n = t - round;
  r = c - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  y = 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  y = y * td_float_of_bits ((td_bits_of_float (t) - 0x4B400000u + 127u) << 23);
  return power < -87.3f ? 0.0f : y;
}

/** Phi (x), where e is e^(-x x / 2): its slope has the same factor.  In the middle by a series
 * in x * x, fitted as above to 1.4e-9. */
TD_FORMULA float
td_phi_of_f32 (float x, float e)
{
  float a = x * 0.707106781186547524f, z = x * x;
  float b = a < 0 ? -a : a;
  float tail = td_half_erfc_f32 (b, e);
  float y = 1.042538318e-04f;

  y = y * z - 1.182511648e-03f;
  y = y * z + 9.972700648e-03f;
  y = y * z - 6.649032645e-02f;
  y = y * z + 3.989422799e-01f;
  return b < 0.5f ? 0.5f + x * y : x < 0 ? tail : 1.0f - tail;
}

TD_FORMULA float
td_phi_f32 (float x)
{
  return td_phi_of_f32 (x, td_bell_f32 (x));
}

TD_FORMULA float
td_erf_f32 (float x)
{
  float b = x < 0 ? -x : x;
  float big = 1.0f - 2.0f * td_half_erfc_f32 (b, td_exp_f32 (-(x * x)));

  return b < 1.0f ? 2.0f * td_half_erf_f32 (x) : x < 0 ? -big : big;
}

#define td_expm1_f64(x) expm1 (x)
#define td_log1p_f64(x) log1p (x)
#define td_erf_f64(x) erf (x)
#define td_phi_f64(x) (0.5 * erfc (-0.70710678118654752440 * (x)))
#define td_phi_of_f64(x, e) td_phi_f64 (x)
#define td_bell_f64(x) exp ((x) * (x) * -0.5)
#define td_exp_f64(x) exp (x)
#define td_log_f64(x) log (x)
#define td_tanh_f64(x) tanh (x)
#define td_sqrt_f32(x) sqrtf (x)
#define td_sqrt_f64(x) sqrt (x)
#define td_abs_f32(x) fabsf (x)
#define td_abs_f64(x) fabs (x)
#define td_sin_f32(x) sinf (x)
#define td_sin_f64(x) sin (x)
#define td_cos_f32(x) cosf (x)
#define td_cos_f64(x) cos (x)
#define td_pow_f32(x, y) powf (x, y)
#define td_pow_f64(x, y) pow (x, y)

/* The activations' longer formulas, for T float and double. */
#define TD_ACTIVATION_FORMULAS(S, T)                                                           \
  TD_FORMULA T td_softplus_##S (T x) /* log (1 + e^x) */                                       \
  {                                                                                            \
    return (x > 0 ? x : (T)0) + td_log1p_##S (td_exp_##S (-td_abs_##S (x)));                   \
  }                                                                                            \
  /* s + s (1 - s) g with s = sigmoid (x): 1 - s from e^-|x|, so that it keeps its digits. */  \
  TD_FORMULA T td_sigmoid_and_bell_##S (T x, T g)                                              \
  {                                                                                            \
    T z = td_exp_##S (-td_abs_##S (x));                                                        \
    T large = 1 / (1 + z), small = z * large;                                                  \
                                                                                               \
    return (x < 0 ? small : large) + small * large * g;                                        \
  }                                                                                            \
  TD_FORMULA T td_silu_slope_##S (T x)                                                         \
  {                                                                                            \
    return td_sigmoid_and_bell_##S (x, x);                                                     \
  }                                                                                            \
  TD_FORMULA T td_gelu_slope_##S (T x) /* Phi (x) + x phi (x) */                               \
  {                                                                                            \
    T e = td_bell_##S (x);                                                                     \
                                                                                               \
    return td_phi_of_##S (x, e) + x * (T)0.39894228040143268 * e;                              \
  }                                                                                            \
  /* 2 sqrt (2 / pi) (x + 0.044715 x^3): (1 + tanh (u)) / 2 is the sigmoid of 2 u. */          \
  TD_FORMULA T td_gelu_power_##S (T x)                                                         \
  {                                                                                            \
    return (T)1.5957691216057308 * x * (1 + (T)0.044715 * x * x);                              \
  }                                                                                            \
  TD_FORMULA T td_gelu_tanh_slope_##S (T x)                                                    \
  {                                                                                            \
    T slope = (T)1.5957691216057308 * (1 + (T)(3 * 0.044715) * x * x);                         \
                                                                                               \
    return td_sigmoid_and_bell_##S (td_gelu_power_##S (x), x * slope);                         \
  }

TD_ACTIVATION_FORMULAS (f32, float)
TD_ACTIVATION_FORMULAS (f64, double)
