/* Between the two files of the fake cuDNN: recurrent layers as its functions are told of them,
 * and what computes them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "fake-internal.h"

#include <cudnn_adv.h>

/** A network, a batch, and everything that one call is given. */
typedef struct FakeRnn
{
  cudnnRNNMode_t mode;
  int n_layers, n_directions, in, units;
  bool wide; /**< float64, else float32 */
  int n_steps, n_sequences;
  int *lengths; /**< the longest first */
  bool trains;
  const void *x, *hx, *cx, *w, *gy, *ghy, *gcy;
  void *y, *hy, *cy, *gx, *ghx, *gcx, *gw, *work, *reserve;
  size_t work_bytes;
} FakeRnn;

/** Matrices, and biases, of a layer in one direction. */
int fake_rnn_parts (const FakeRnn *r);
/** Columns of a matrix. */
int fake_rnn_columns (const FakeRnn *r, int cell, int part);
/** Where a matrix or its bias begins among the weights, in elements; past the last cell: how
 * many there are. */
size_t fake_rnn_place (const FakeRnn *r, int cell, int part, bool bias);
size_t fake_rnn_reserve_bytes (const FakeRnn *r);
/** Rows of all steps. */
size_t fake_rnn_rows (const FakeRnn *r);

void fake_rnn_forward (const FakeRnn *r);
/** Writes into the reserve what the weights' gradient reads there. */
void fake_rnn_backward_data (const FakeRnn *r);
void fake_rnn_backward_weights (const FakeRnn *r);
