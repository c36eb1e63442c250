/* Models that were written, in the programs of others.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck.h"

#include <stdbool.h>

/** Run MODEL of the test's folder in onnxruntime, and in onnx's reference, on MODEL.K.in0.npy
 * ... and hold it against MODEL.K.out0.npy ..., for each K there is; then print the model's
 * inputs, outputs and metadata, and the names of its nodes.  *Owner*: free. */
char *run_onnx (const char *model, bool reference);
/** Case k of a model: what it is given and what the engine makes of it. */
void keep_case (const char *model, int k, TdVar *const *in, int n_in, TdVar *const *out,
                int n_out);
