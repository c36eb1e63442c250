/* An ONNX graph that is being written.
 *
 * *Source*: github.com/onnx/onnx, onnx.proto3 and Operators.md, opsets 17 to 21.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "export.h"
#include "protobuf.h"

typedef struct TdOnnx
{
  const TdSchedule *s;
  TdMessage graph;
  uint32_t n_made; /**< names that were made up */
  int opset;
  TdExportLacks lacks;
} TdOnnx;

/** One node that is being written. */
typedef struct TdOnnxNodeWriter
{
  TdOnnx *o;
  TdMessage m;
} TdOnnxNodeWriter;

TdOnnxNodeWriter td__onnx_node (TdOnnx *o, const char *type, const char *domain);
void td__onnx_in (TdOnnxNodeWriter *n, const char *name);
void td__onnx_in_node (TdOnnxNodeWriter *n, uint32_t node);
void td__onnx_out (TdOnnxNodeWriter *n, const char *name);
void td__onnx_out_node (TdOnnxNodeWriter *n, uint32_t node);
void td__onnx_int (TdOnnxNodeWriter *n, const char *name, int64_t value);
void td__onnx_float (TdOnnxNodeWriter *n, const char *name, double value);
void td__onnx_ints (TdOnnxNodeWriter *n, const char *name, const int64_t *values, int count);
void td__onnx_text (TdOnnxNodeWriter *n, const char *name, const char *text);
void td__onnx_end (TdOnnxNodeWriter *n);
/** A constant with these numbers; its name goes to text. */
const char *td__onnx_constant_ints (TdOnnx *o, const int64_t *values, int count, char *text,
                                    size_t size);
const char *td__onnx_constant (TdOnnx *o, TdDtype dtype, const TdShape *shape,
                               const void *numbers, char *text, size_t size);
const char *td__onnx_constant_number (TdOnnx *o, double value, TdDtype dtype, char *text,
                                      size_t size);
/** A new name. */
const char *td__onnx_made (TdOnnx *o, char *text, size_t size);
/** Write an operation that is several of ONNX's (onnx-recipes.c), or moves elements
 * (onnx-shapes.c).  False where it is none; *why: what of it cannot be written, or NULL. */
bool td__onnx_recipe (TdOnnx *o, const TdStep *step, const char **why);
bool td__onnx_shape (TdOnnx *o, const TdStep *step);
/** Write the nodes of one step (onnx-steps.c). */
void td__onnx_step (TdOnnx *o, const TdStep *step);
