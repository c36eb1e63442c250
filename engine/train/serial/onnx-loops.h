/* Recurrent layers in a schedule that has them step by step: which of its steps together are an
 * LSTM, a GRU or an RNN of ONNX.
 *
 * A *cell* is the operations of one step, as n_step_lstm, n_step_gru and n_step_rnn compose it,
 * or as an LSTM link runs it: h -> h', and c -> c'.  A *loop* is cells one after the other, of
 * the same weights and equally many rows, whose inputs are all there before the first of them
 * runs.  What is no loop stays the operations that it is.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "static/schedule.h"

typedef enum
{
  TD_LOOP_LSTM, /**< gates interleaved: a, i, f, o of each unit */
  TD_LOOP_GRU,  /**< r, z and the candidate, whose bias stands inside the reset */
  TD_LOOP_TANH,
  TD_LOOP_RELU
} TdLoopKind;

enum
{
  TD_LOOP_CELL = 16 /* operations of a cell at most */
};

typedef struct TdOnnxCell
{
  TdLoopKind kind;
  uint32_t steps[TD_LOOP_CELL]; /**< its operations */
  int n_steps;
  uint32_t gates[2]; /**< what the two sides of the sum are: of the input, of the state; which
                        is which is not known of plain cells and LSTMs, [1] may be TD_ABSENT */
  uint32_t c, h_next, c_next; /**< nodes; of LSTMs, but for h_next */
  uint32_t before, behind;    /**< cells, or TD_ABSENT */
} TdOnnxCell;

typedef struct TdOnnxLoop
{
  TdLoopKind kind;
  int n;       /**< cells */
  uint32_t *h; /**< node of the state after each, in the order in which they ran */
  uint32_t c_last;
  uint32_t h_first, c_first; /**< or TD_ABSENT: zeros */
  uint32_t xw, xb, hw, hb;   /**< weights and biases, or TD_ABSENT */
  uint32_t all;              /**< the inputs of all steps below each other, or TD_ABSENT */
  uint32_t *x;               /**< without `all`: the input of each cell */
  bool backwards;            /**< the last step of `all` runs first */
} TdOnnxLoop;

/** What becomes of a step. */
typedef struct TdOnnxRole
{
  uint32_t loop; /**< of which it is a cell's; or TD_ABSENT */
  bool feeds;    /**< it makes of inputs what the cells add */
  bool splits;   /**< that, and cuts it into as many parts */
  bool skipped;  /**< that, and nobody else needs it */
  uint32_t join; /**< it joins the states of this loop in their order; or TD_ABSENT */
} TdOnnxRole;

typedef struct TdOnnxLoops
{
  TdOnnxLoop *loops;
  uint32_t n;
  TdOnnxRole *role;  /**< by step of the forward */
  uint32_t *maker;   /**< by node: the step that makes it, or TD_ABSENT */
  uint32_t *n_reads; /**< by node: operands and results that it is */
} TdOnnxLoops;

/** Find all loops.  *Owner*: td__onnx_loops_free. */
TdOnnxLoops td__onnx_loops_find (const TdSchedule *s);
void td__onnx_loops_free (TdOnnxLoops *loops);
/** The nodes that a loop reads: fills `to` and returns how many, at most 7 + n. */
uint32_t td__onnx_loop_reads (const TdOnnxLoop *loop, uint32_t *to);
