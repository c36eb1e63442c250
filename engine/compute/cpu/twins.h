/* Loops that are compiled for AVX-512, for AVX2 and for any processor, and chosen when called.
 * No fused multiply-add: all give the same bits. SPDX-License-Identifier: MIT */
#pragma once

#if defined(__clang__) /* knows no preferred width of one function */
#define TD_TARGET_AVX512 "avx512f,avx512vl,avx512bw,avx512dq"
#else
#define TD_TARGET_AVX512 "avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512"
#endif

/** Define name from the inline function name_body: TD_TWINS (name, (int n), (n)). */
#if defined(__x86_64__)
#define TD_TWINS(name, params, arguments)                                                      \
  __attribute__ ((target (TD_TARGET_AVX512))) static void name##_avx512 params                 \
  {                                                                                            \
    name##_body arguments;                                                                     \
  }                                                                                            \
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
    if (__builtin_cpu_supports ("avx512dq") && __builtin_cpu_supports ("avx512vl")             \
        && __builtin_cpu_supports ("avx512bw"))                                                \
      name##_avx512 arguments;                                                                 \
    else if (__builtin_cpu_supports ("avx2"))                                                  \
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
