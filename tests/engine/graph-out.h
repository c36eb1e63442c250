/* A graph that ran goes out with what it began with and what came of it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck.h>

/* Write the graph behind y, the first two of them, into the folder EXPORT of the environment:
 * graphK.onnx, what it begins with as graphK.in0.npy ..., y as graphK.out0.npy, and a line
 * "graphK OK" or "graphK", what the format does not have.  After those the program ends. */
void graph_out (TdVar *y);
