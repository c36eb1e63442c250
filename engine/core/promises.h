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
#define td__link_usable(link, ...) TD_USABLE (td__link_usable, link, __VA_ARGS__)
#define td__opt_usable(opt, ...) TD_USABLE (td__opt_usable, opt, __VA_ARGS__)
#define td__dataset_usable(set, ...) TD_USABLE (td__dataset_usable, set, __VA_ARGS__)
#define td__trainer_usable(t, ...) TD_USABLE (td__trainer_usable, t, __VA_ARGS__)
#endif
