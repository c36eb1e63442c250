/* What the operations share: their classes by name, and how their public functions are made.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../core/operands.h"

#define TD_OP(name) extern const TdOpClass td__##name##_class;
#include "ops.def"
#undef TD_OP

/** Every registered class, ended by NULL. */
extern const TdOpClass *const td__op_classes[];

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
