/* The text of half precision for C programs, see products.c: IEEE 754 binary16 and bfloat16 by
 * their bits, for compilers that know neither.  Numbers are computed in float and rounded to
 * nearest, ties to even.
 *
 * SPDX-License-Identifier: MIT */
#include "c-kernels.h"

/* The float that has these bits. */
static float
float_of_bits (uint32_t bits)
{
  float x;

  memcpy (&x, &bits, sizeof x);
  return x;
}

/* The opposite. */
static uint32_t
bits_of_float (float x)
{
  uint32_t bits;

  memcpy (&bits, &x, sizeof bits);
  return bits;
}

/* A number of binary16. */
static float
float_of_f16 (uint16_t h)
{
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u,
                 m = h & 0x3FFu;

  if (exponent == 31)
    return float_of_bits (sign | 0x7F800000u | m << 13);
  if (exponent != 0)
    return float_of_bits (sign | (exponent + 112) << 23 | m << 13);
  return (sign != 0 ? -1.0f : 1.0f) * (float)m * 5.9604644775390625e-8f; /* 2^-24 */
}

/* The nearest one, infinity from 65520 on.  Below 2^-14 the addition aligns and rounds. */
static uint16_t
f16_of_float (float x)
{
  const uint32_t bits = bits_of_float (x), sign = bits >> 16 & 0x8000u, a = bits & 0x7FFFFFFFu;

  if (a > 0x7F800000u)
    return (uint16_t)(sign | 0x7E00u);
  if (a >= 0x477FF000u)
    return (uint16_t)(sign | 0x7C00u);
  if (a < 0x38800000u)
    return (uint16_t)(sign | (bits_of_float (float_of_bits (a) + 0.5f) - 0x3F000000u));
  return (uint16_t)(sign | ((a + 0xFFFu + (a >> 13 & 1u) - 0x38000000u) >> 13));
}

/* A number of bfloat16. */
static float
float_of_bf16 (uint16_t h)
{
  return float_of_bits ((uint32_t)h << 16);
}

/* The nearest one. */
static uint16_t
bf16_of_float (float x)
{
  const uint32_t bits = bits_of_float (x);

  if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
    return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

/* A float as it is kept in binary16. */
static float
round_f16 (float x)
{
  return float_of_f16 (f16_of_float (x));
}

/* A float as it is kept in bfloat16. */
static float
round_bf16 (float x)
{
  return float_of_bf16 (bf16_of_float (x));
}

/* n numbers of binary16 as floats. */
static void
floats_of_f16 (const uint16_t *h, float *x, long n)
{
  for (long i = 0; i < n; i++)
    x[i] = float_of_f16 (h[i]);
}

/* n floats as numbers of binary16. */
static void
f16_of_floats (const float *x, uint16_t *h, long n)
{
  for (long i = 0; i < n; i++)
    h[i] = f16_of_float (x[i]);
}

/* n numbers of bfloat16 as floats. */
static void
floats_of_bf16 (const uint16_t *h, float *x, long n)
{
  for (long i = 0; i < n; i++)
    x[i] = float_of_bf16 (h[i]);
}

/* n floats as numbers of bfloat16. */
static void
bf16_of_floats (const float *x, uint16_t *h, long n)
{
  for (long i = 0; i < n; i++)
    h[i] = bf16_of_float (x[i]);
}
