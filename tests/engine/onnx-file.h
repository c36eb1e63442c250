/* ONNX files as tests want them: message by message, also such as nobody writes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/serial/protobuf.h"

#include <stdint.h>

/** A graph that is being written. */
typedef struct OnnxFile
{
  TdMessage graph;
  int64_t opset, ir_version; /**< 0: 8 */
} OnnxFile;

/** A node; lists of names are separated by spaces, "-" leaves one out; attribute NULL: none,
 * else its name and whole number. */
void onnx_node (OnnxFile *f, const char *name, const char *type, const char *domain,
                const char *in, const char *out, const char *attribute, int64_t value);
/** A tensor of floats with these dims, whose bytes are given. */
void onnx_initializer (OnnxFile *f, const char *name, int type, const int64_t *dims, int n_dims,
                       const void *bytes, size_t n);
/** One whose elements lie in another file. */
void onnx_external (OnnxFile *f, const char *name, const int64_t *dims, int n_dims,
                    const char *location, const char *offset);
void onnx_input (OnnxFile *f, const char *name, const int64_t *dims, int n_dims);
/** One of another element type, by ONNX's number. */
void onnx_input_of (OnnxFile *f, const char *name, int element, const int64_t *dims,
                    int n_dims);
void onnx_output (OnnxFile *f, const char *name);
/** The whole file's bytes.  *Owner*: td__message_free; f is freed. */
TdMessage onnx_model (OnnxFile *f);
/** Write it to path. */
void onnx_write (OnnxFile *f, const char *path);
