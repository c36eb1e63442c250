/* A test double of ggml: its names and signatures, as far as tapedeck-ggml.h and the test use
 * them, over arithmetic of a few lines.  Not ggml.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GGML_MAX_DIMS 4
#define GGML_MAX_SRC 10
#define GGML_MAX_NAME 64
#define GGML_MAX_OP_PARAMS 64

enum ggml_type
{
  GGML_TYPE_F32 = 0,
  GGML_TYPE_F16 = 1,
  GGML_TYPE_Q4_0 = 2,
  GGML_TYPE_I32 = 26,
  GGML_TYPE_I64 = 27,
  GGML_TYPE_F64 = 28,
  GGML_TYPE_BF16 = 30,
};

enum ggml_op
{
  GGML_OP_NONE,
  GGML_OP_MUL,
  GGML_OP_SUB,
  GGML_OP_SQR,
  GGML_OP_SUM,
  GGML_OP_SCALE,
  GGML_OP_CPY,
  GGML_OP_RESHAPE,
  GGML_OP_VIEW,
  GGML_OP_PERMUTE,
  GGML_OP_TRANSPOSE,
  GGML_OP_OPT_STEP_SGD,
  GGML_OP_ADD,      /* rows plus one row */
  GGML_OP_MUL_MAT,  /* [k, m], [k, n] -> [m, n] */
  GGML_OP_OUT_PROD, /* [p, n], [q, n] -> [p, q] */
  GGML_OP_RELU,
  GGML_OP_STEP,
  GGML_OP_REPEAT_BACK, /* rows summed to one row */
  GGML_OP_CROSS_ENTROPY_LOSS,
  GGML_OP_CROSS_ENTROPY_LOSS_BACK, /* of logits and labels; of a loss whose gradient is 1 */
  GGML_OP_COUNT
};

enum ggml_tensor_flag
{
  GGML_TENSOR_FLAG_INPUT = 1,
  GGML_TENSOR_FLAG_OUTPUT = 2,
  GGML_TENSOR_FLAG_PARAM = 4,
  GGML_TENSOR_FLAG_LOSS = 8,
};

struct ggml_backend_buffer;

struct ggml_tensor
{
  enum ggml_type type;
  struct ggml_backend_buffer *buffer;
  int64_t ne[GGML_MAX_DIMS];
  size_t nb[GGML_MAX_DIMS];
  enum ggml_op op;
  int32_t op_params[GGML_MAX_OP_PARAMS / sizeof (int32_t)];
  int32_t flags;
  struct ggml_tensor *src[GGML_MAX_SRC];
  struct ggml_tensor *view_src;
  size_t view_offs;
  void *data;
  char name[GGML_MAX_NAME];
  void *extra;
  char padding[8];
};

struct ggml_cgraph;

const char *ggml_op_name (enum ggml_op op);
const char *ggml_op_desc (const struct ggml_tensor *t);
const char *ggml_type_name (enum ggml_type type);
size_t ggml_type_size (enum ggml_type type);
size_t ggml_nbytes (const struct ggml_tensor *t);
int64_t ggml_nelements (const struct ggml_tensor *t);
int ggml_n_dims (const struct ggml_tensor *t);
bool ggml_is_contiguous (const struct ggml_tensor *t);
int ggml_graph_n_nodes (struct ggml_cgraph *graph);
struct ggml_tensor *ggml_graph_node (struct ggml_cgraph *graph, int i);
