/* What an ONNX file says of itself, also one that cannot be run here: for `tapedeck info`, and
 * for whoever makes up inputs.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck.h"

/** So many nodes are of this operator. */
typedef struct TdOnnxCount
{
  const char *name, *domain; /**< "": the standard domain */
  int n;
} TdOnnxCount;

/** An input or output; sizes as in TdOnnxInfo. */
typedef struct TdOnnxEnd
{
  TdOnnxInfo info;
  const char *type; /**< as the engine calls it, or as ONNX does where the engine has it not */
} TdOnnxEnd;

typedef struct TdOnnxLook
{
  int64_t ir_version, opset;
  const char *name, *producer, *producer_version;
  TdOnnxEnd *in, *out;
  int n_in, n_out;
  TdOnnxCount *operators; /**< by number, then by name */
  int n_operators, n_nodes;
  int64_t n_initializers, n_numbers, initializer_bytes;
  const char *fixed, *assumed; /**< what td_save_onnx wrote of sizes that stay, and of numbers
                                  that may be sizes: lines, or "" */
  char **lacks; /**< what it asks for and is not there, a line each */
  int n_lacks;
  void *inside; /**< nothing for others */
} TdOnnxLook;

/** Look at a file without making anything of it.  *Owner*: the caller, td__onnx_look_free.
 * NULL: why, of `size` bytes, one line without the path. */
TdOnnxLook *td__onnx_look (const char *path, char *why, size_t size);
void td__onnx_look_free (TdOnnxLook *look);

/** How many rows an array has that input i (of td_onnx_input) indexes by Gather; 0: it indexes
 * none that the file gives.  The least where there are several; *of gets its name, the link's.
 */
int64_t td__onnx_rows_for (TdLink *link, int i, const char **of);
