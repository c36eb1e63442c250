/* One row per operation and variant: what it is called with, what it gives in double precision.
 * test-op-cases.c holds every row against its reference, differences of first and second order,
 * the null device, poison and leaks; rows of errors hold their text.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/ops/ops.h"

/** An input: numbers spread over [low, high], or `values`; dtype 0 (TD_F32) stands for the
 * floating-point dtype of the run. */
typedef struct
{
  TdShape shape;
  double low, high;
  TdDtype dtype;
  double gap;           /**< no number in (-gap, gap): away from a kink */
  const double *values; /**< instead of spread numbers */
} OpInput;

enum
{
  OP_NO_GRAD = 1,  /**< not differentiable: no gradients are checked */
  OP_NO_SECOND = 2 /**< first gradients only */
};

typedef struct OpCase OpCase;
struct OpCase
{
  const char *op;      /**< name in ops.def */
  const char *variant; /**< "", "axes", "broadcast" ... */
  void (*call) (TdVar *const *x, TdVar **y);
  int n_in, n_out;
  OpInput in[6];
  TdShape out[3];
  TdDtype out_dtype; /**< TD_F32: that of the run */
  unsigned flags;
  double loose; /**< times the usual tolerance */
  /* The reference, one of: */
  double (*map) (double a, double b, double c);        /**< element by element, broadcast */
  int (*source) (int k, const int64_t *o, int64_t *i); /**< input and place behind place o of
                                                          output k; -1: zero */
  double (*fold) (const double *v, int64_t n); /**< of the elements that `mask` reduces */
  uint32_t mask;
  void (*whole) (const OpCase *c, const double *const *in, double *const *out);
};

/** A call that must fail: its status, and its whole message without the place. */
typedef struct
{
  const char *op;
  void (*call) (TdVar *const *x, TdVar **y);
  int n_in;
  struct
  {
    TdDtype dtype;
    TdShape shape;
  } in[4];
  TdStatus status;
  const char *message;
} OpError;

/** Make input k of a row, floating-point ones in dtype `run`; `doubles`, if not NULL, gets the
 * numbers as they came out of rounding.  *Owner*: the innermost scope. */
TdVar *op_input (const OpCase *c, int k, TdDtype run, double *doubles);

/** Each test begins without an error, and ends so, with as many live objects as it began with.
 */
int op_test_begin (void **state);
int op_test_end (void **state);

#define TABLE(topic)                                                                           \
  extern const OpCase op_cases_##topic[];                                                      \
  extern const int n_op_cases_##topic;                                                         \
  extern const OpError op_errors_##topic[];                                                    \
  extern const int n_op_errors_##topic;
#include "op-cases.def"
#undef TABLE

/** All tables of rows. */
typedef struct
{
  const OpCase *cases;
  const int *n_cases;
  const OpError *errors;
  const int *n_errors;
} OpCaseTable;

static const OpCaseTable op_case_tables[] = {
#define TABLE(topic)                                                                           \
  { op_cases_##topic, &n_op_cases_##topic, op_errors_##topic, &n_op_errors_##topic },
#include "op-cases.def"
#undef TABLE
};

enum
{
  N_OP_CASE_TABLES = (int)(sizeof op_case_tables / sizeof op_case_tables[0])
};
