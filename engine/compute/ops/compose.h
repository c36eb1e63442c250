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
