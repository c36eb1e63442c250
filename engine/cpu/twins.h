/* Loops that are compiled twice, for AVX2 and for any processor, and chosen when called.  No
 * fused multiply-add: both twins give the same bits.
 * SPDX-License-Identifier: MIT */
#pragma once

/** Define name from the inline function name_body: TD_TWINS (name, (int n), (n)). */
#if defined(__x86_64__)
#define TD_TWINS(name, params, arguments)                                                      \
  __attribute__ ((target ("avx2"))) static void name##_avx2 params                             \
  {                                                                                            \
    name##_body arguments;                                                                     \
  }                                                                                            \
  static void name##_any params                                                                \
  {                                                                                            \
    name##_body arguments;                                                                     \
  }                                                                                            \
  static inline void name params                                                               \
  {                                                                                            \
    if (__builtin_cpu_supports ("avx2"))                                                       \
      name##_avx2 arguments;                                                                   \
    else                                                                                       \
      name##_any arguments;                                                                    \
  }
#else
#define TD_TWINS(name, params, arguments)                                                      \
  static inline void name params                                                               \
  {                                                                                            \
    name##_body arguments;                                                                     \
  }
#endif
