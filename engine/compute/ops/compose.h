/* For functions made of operations: messages in the form that operations give theirs.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "ops.h"

/** Fail a composed function: "op: text: x (2, 3) f32, W (5) f32", an operand for each name;
 * NULL operands are left out.  Returns poison. */
TdVar *td__compose_fail (TdStatus status, const char *op, const TdSite *site,
                         const char *const *names, TdVar *const *operands, int n,
                         const char *format, ...) __attribute__ ((format (printf, 7, 8)));

/** Operations that a composed function makes without naming a place are at its call: td__at
 * (site) before them, and td__at_end with what it returned behind.  NULL: at the call around.
 */
static inline const TdSite *
td__at (const TdSite *site)
{
  const TdSite *outer = td__engine.site;

  if (site != NULL)
    td__engine.site = site;
  return outer;
}

static inline void
td__at_end (const TdSite *outer)
{
  td__engine.site = outer;
}
