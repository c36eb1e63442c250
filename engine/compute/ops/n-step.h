/* Recurrent layers over sequences: what a call is, for the two ways in which it can run, from
 * operations (n-step.c) or as one (n-step-fused.c).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "ops.h"

typedef struct TdNStep TdNStep;
typedef struct TdNStepState TdNStepState;

/** A kind of cell. */
typedef struct TdNStepCell
{
  const char *name, *name_both; /**< in one direction and in both */
  TdCell cell;                  /**< of plain cells: TD_CELL_TANH, also where they rectify */
  int n_weights;                /**< matrices, and biases, of a layer in one direction */
  bool has_c;
  /** Stack ws and bs to TdNStepState.xw ... hb. */
  void (*prepare) (const TdNStep *r, TdNStepState *s, TdVar *const *w, TdVar *const *b);
  /** h (n, u), gates x (n, ...) of this step -> the new h; s->c may be replaced. */
  TdVar *(*step) (const TdNStep *r, TdNStepState *s, TdVar *h, TdVar *x);
} TdNStepCell;

/** One call. */
struct TdNStep
{
  const TdNStepCell *cell;
  const TdSite *site;
  int n_layers, n_directions, n_xs;
  double dropout_ratio;
  TdVar *hx, *cx;
  TdVar *const *ws, *const *bs, *const *xs;
  bool rectify; /**< plain cells: relu, else tanh */
  int64_t units;
  int64_t *ends; /**< of each step's rows among all */
};

/** One layer in one direction. */
struct TdNStepState
{
  TdVar *xw, *xb, *hw, *hb; /**< stacked weights; hb NULL: contained in xb */
  TdVar *c;
};

/** The cells of that kind; *rectify: plain ones, with relu. */
const TdNStepCell *td__n_step_cell (TdCell cell, bool *rectify);

/** Run from operations in a scope of the call's name.  why: it is not one operation; NULL: it
 * never is on this device.  *Owner*: the outer scope. */
TdStatus td__n_step_composed (TdNStep *r, const char *why, TdVar **hy, TdVar **cy, TdVar **ys);

/** Run as one operation, where the device has it.  Returns NULL, *status saying how it went; or
 * why it is to be composed; *offered: the device has such an operation. */
const char *td__n_step_fused (TdNStep *r, TdVar **hy, TdVar **cy, TdVar **ys, TdStatus *status,
                              bool *offered);

/** "n_step_lstm". */
const char *td__n_step_name (const TdNStep *r);
