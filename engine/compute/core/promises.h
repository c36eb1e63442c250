/* What functions promise, said again for clang's analyzer, which sees one file at a time: a
 * failure is never TD_OK, and what is usable is there.  Nothing of it is compiled.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck-op.h"

#ifdef __clang_analyzer__
/** f (x, ...) is true of nothing that is NULL. */
#define TD_USABLE(f, x, ...) ((f)(x, __VA_ARGS__) && (x) != NULL)

static inline TdStatus
td__not_ok (TdStatus status)
{
  if (status == TD_OK)
    __builtin_unreachable ();
  return status;
}

#define td__fail(...) td__not_ok ((td__fail)(__VA_ARGS__))
#define td__fail_memory(...) td__not_ok ((td__fail_memory)(__VA_ARGS__))
#define td__fail_memory_of(...) td__not_ok ((td__fail_memory_of)(__VA_ARGS__))
#define td__var_usable(v, ...) TD_USABLE (td__var_usable, v, __VA_ARGS__)
#endif
