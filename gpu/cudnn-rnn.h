/* Recurrent layers through cuDNN: what its files and their tests know of them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "cudnn-private.h"

#include <cudnn_adv.h>

/** What the descriptor of a network depends on; compared as bytes. */
typedef struct TdDnnRnnKey
{
  int32_t cell, n_layers, n_directions, in_size, units, dtype, tf32;
} TdDnnRnnKey;

TdDnnRnnKey td__dnn_rnn_key (const TdRnn *rnn, bool tf32);

/** Its functions are here. */
bool td__dnn_rnn_load (void);

cudnnStatus_t td__dnn_rnn_describe (cudnnRNNDescriptor_t net, const TdDnnRnnKey *key,
                                    cudnnDropoutDescriptor_t none);
/** Rows of all steps, packed, of that width. */
cudnnStatus_t td__dnn_rnn_describe_rows (cudnnRNNDataDescriptor_t rows, const TdRnn *rnn,
                                         int64_t width);
