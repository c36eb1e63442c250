/* What the operations share: their classes by name, checks that many of them make, and the
 * small steps that many backward functions take.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../core/core.h"

#define TD_OP(name) extern const TdOpClass td__##name##_class;
#include "ops.def"
#undef TD_OP

/** Every registered class, ended by NULL. */
extern const TdOpClass *const td__op_classes[];
/** The class of that name, or NULL. */
const TdOpClass *td__op_find (const char *name);

/* Operand names for messages. */
extern const char *const td__names_x[];
extern const char *const td__names_ab[];
extern const char *const td__names_ygy[]; /* y, gy */

/** The two public functions of an operation without attributes. */
#define TD_OP_FUNCTIONS_1(name)                                                                \
  TdVar *td_##name##_at (TdVar *x, const TdSite *site)                                         \
  {                                                                                            \
    return td__apply1 (&td__##name##_class, NULL, site, x);                                    \
  }                                                                                            \
  TdVar *td_##name (TdVar *x)                                                                  \
  {                                                                                            \
    return td__apply1 (&td__##name##_class, NULL, NULL, x);                                    \
  }
#define TD_OP_FUNCTIONS_2(name)                                                                \
  TdVar *td_##name##_at (TdVar *a, TdVar *b, const TdSite *site)                               \
  {                                                                                            \
    return td__apply2 (&td__##name##_class, NULL, site, a, b);                                 \
  }                                                                                            \
  TdVar *td_##name (TdVar *a, TdVar *b)                                                        \
  {                                                                                            \
    return td__apply2 (&td__##name##_class, NULL, NULL, a, b);                                 \
  }

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

/** Bring gradient g to the shape of input i, by summing over what was repeated. */
TdVar *td__grad_to_input (TdBackward *b, int i, TdVar *g);

/** Row-major strides in elements. */
void td__row_major (const TdShape *shape, int64_t stride[TD_MAX_DIMS]);

/** Axes of a reduction, for infer: -1 axes means all; `mask` gets one bit an axis. */
typedef struct TdReduceAttrs
{
  int axes[TD_MAX_DIMS];
  int n_axes;
  bool keepdims;
} TdReduceAttrs;
extern const TdAttr td__reduce_attrs[2];
TdStatus td__infer_reduce (TdOpCall *call);
uint32_t td__reduce_mask (const TdReduceAttrs *a, int ndim);
TdVar *td__reduce (const TdOpClass *cls, TdVar *x, const int *axes, int n_axes, bool keepdims,
                   const TdSite *site);
/** A reduction's output (or its gradient) with the reduced axes back, of size 1. */
TdVar *td__reduce_unsqueeze (TdBackward *b, TdVar *y);

/** The four public functions of a reduction. */
#define TD_OP_FUNCTIONS_REDUCE(name)                                                           \
  TdVar *td_##name##_at (TdVar *x, const TdSite *site)                                         \
  {                                                                                            \
    return td__reduce (&td__##name##_class, x, NULL, -1, false, site);                         \
  }                                                                                            \
  TdVar *td_##name (TdVar *x)                                                                  \
  {                                                                                            \
    return td_##name##_at (x, NULL);                                                           \
  }                                                                                            \
  TdVar *td_##name##_axes_at (TdVar *x, const int *axes, int n_axes, bool keepdims,            \
                              const TdSite *site)                                              \
  {                                                                                            \
    return td__reduce (&td__##name##_class, x, axes, n_axes < 0 ? 0 : n_axes, keepdims, site); \
  }                                                                                            \
  TdVar *td_##name##_axes (TdVar *x, const int *axes, int n_axes, bool keepdims)               \
  {                                                                                            \
    return td_##name##_axes_at (x, axes, n_axes, keepdims, NULL);                              \
  }

/* 1 where it holds, else 0, in the operands' dtype; no gradient. */
TdVar *td__equal (TdVar *a, TdVar *b);
TdVar *td__less (TdVar *a, TdVar *b);
/** -1, 0 or 1; no gradient. */
TdVar *td__sign (TdVar *x);
