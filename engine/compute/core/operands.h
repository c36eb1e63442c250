/* Checks that many operations make, and the small steps that many backward functions take.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

/* Operand names for messages. */
extern const char *const td__names_x[];
extern const char *const td__names_ab[];
extern const char *const td__names_ygy[]; /* y, gy */

static inline bool
td__is_float (TdDtype dtype)
{
  return dtype <= TD_BF16;
}

/** Floating point, i32 or i64. */
static inline bool
td__is_number (TdDtype dtype)
{
  return dtype <= TD_I64;
}

/* infer of operations with one input and an equal output. */
TdStatus td__infer_float (TdOpCall *call);
TdStatus td__infer_number (TdOpCall *call);
/* infer of operations with two inputs of one dtype that broadcast. */
TdStatus td__infer_float_pair (TdOpCall *call);
TdStatus td__infer_number_pair (TdOpCall *call);
/* ... and of two floating-point inputs of one shape and dtype. */
TdStatus td__infer_float_twins (TdOpCall *call);

/** Text of a number as short as it can be read back from: "1", "0.1", "-2.5". */
const char *td__number_text (double value, char *text, size_t size);

/** A constant without dimensions, of v's dtype, on v's device. *Owner*: the scope. */
TdVar *td__number_like (const TdVar *v, double value);

/** Zeros of v's shape and dtype, on v's device. *Owner*: the scope. */
TdVar *td__zeros_like (const TdVar *v);

/** Bring gradient g to the shape of input i, by summing over what was repeated.  The result is
 * gx[i] itself: it may have been added to what is there (td_backward_into). */
TdVar *td__grad_to_input (TdBackward *b, int i, TdVar *g);

/** Row-major strides in elements. */
void td__row_major (const TdShape *shape, int64_t stride[TD_MAX_DIMS]);
