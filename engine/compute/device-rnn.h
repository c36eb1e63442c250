/* Recurrent layers that a device computes whole.  Included by device.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tapedeck-op.h"

/** Stacked recurrent layers over packed sequences, in one call.  All steps' rows lie below each
 * other, those of the longest sequences first: runs[i].steps steps of runs[i].rows rows each, i
 * = 0, 1 ... n_runs - 1, ever fewer rows.  Layer l in direction d is cell l * n_directions + d;
 * its matrices and biases are numbered as those of td_n_step_lstm, td_n_step_gru and
 * td_n_step_rnn. */
typedef enum
{
  TD_CELL_LSTM,
  TD_CELL_GRU,
  TD_CELL_TANH,
  TD_CELL_RELU
} TdCell;
typedef struct TdRnnRun
{
  int rows, steps;
} TdRnnRun;
typedef struct TdRnn
{
  TdCell cell;
  int n_layers, n_directions;
  int64_t in_size, units;
  TdDtype dtype;
  bool keeps; /* a gradient follows: forward leaves what it needs in the reserve */
  int n_runs;
  const TdRnnRun *runs;
} TdRnn;

typedef struct TdRnnSizes
{
  int64_t n_weights; /* elements of all weights, as the device wants them to lie */
  size_t reserve_bytes;
} TdRnnSizes;

/** What a call reads and writes; NULL: none, which counts as zeros. */
typedef struct TdRnnArrays
{
  const TdTensor *x, *w, *hx, *cx; /* (rows, in), all weights, (cells, rows 0, units) */
  TdTensor *y, *hy, *cy, *reserve; /* written by forward, read by gradient */
  const TdTensor *gy, *ghy, *gcy;  /* of the gradient, and: */
  TdTensor *gx, *gw, *ghx, *gcx;
} TdRnnArrays;

typedef struct TdDeviceRnn
{
  /** Returns NULL, or why this is not for the device: no error. */
  const char *(*sizes) (TdDevice *d, const TdRnn *rnn, TdRnnSizes *sizes);
  /** Where matrix and bias `part` of a cell begin among the weights, in elements.  Rows of a
   * matrix follow each other. */
  TdStatus (*place) (TdDevice *d, const TdRnn *rnn, int cell, int part, int64_t *matrix,
                     int64_t *bias);
  TdStatus (*forward) (TdDevice *d, const TdRnn *rnn, const TdRnnArrays *arrays);
  /** The reserve stays as forward left it. */
  TdStatus (*gradient) (TdDevice *d, const TdRnn *rnn, const TdRnnArrays *arrays);
} TdDeviceRnn;
