/* What the test double of ggml computes: elements one by one, in float32.
 * SPDX-License-Identifier: MIT */
#include "ggml-backend.h"

#include <math.h>
#include <string.h>

static const char *const op_names[GGML_OP_COUNT] = { "NONE",
                                                     "MUL",
                                                     "SUB",
                                                     "SQR",
                                                     "SUM",
                                                     "SCALE",
                                                     "CPY",
                                                     "RESHAPE",
                                                     "VIEW",
                                                     "PERMUTE",
                                                     "TRANSPOSE",
                                                     "OPT_STEP_SGD",
                                                     "ADD",
                                                     "MUL_MAT",
                                                     "OUT_PROD",
                                                     "RELU",
                                                     "STEP",
                                                     "REPEAT_BACK",
                                                     "CROSS_ENTROPY_LOSS",
                                                     "CROSS_ENTROPY_LOSS_BACK" };

const char *
ggml_op_name (enum ggml_op op)
{
  return op_names[op];
}

const char *
ggml_op_desc (const struct ggml_tensor *t)
{
  return op_names[t->op];
}

const char *
ggml_type_name (enum ggml_type type)
{
  return type == GGML_TYPE_F32 ? "f32" : type == GGML_TYPE_Q4_0 ? "q4_0" : "other";
}

size_t
ggml_type_size (enum ggml_type type)
{
  return type == GGML_TYPE_Q4_0 ? 18 : type == GGML_TYPE_F32 || type == GGML_TYPE_I32 ? 4 : 8;
}

int64_t
ggml_nelements (const struct ggml_tensor *t)
{
  return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

/* From the first element to the last; a block of q4_0 is 32 elements in 18 bytes. */
size_t
ggml_nbytes (const struct ggml_tensor *t)
{
  size_t bytes = ggml_type_size (t->type);

  if (t->type == GGML_TYPE_Q4_0)
    return (size_t)ggml_nelements (t) * bytes / 32;
  for (int i = 0; i < GGML_MAX_DIMS; i++)
    bytes += (size_t)(t->ne[i] - 1) * t->nb[i];
  return bytes;
}

int
ggml_n_dims (const struct ggml_tensor *t)
{
  int n = GGML_MAX_DIMS;

  while (n > 1 && t->ne[n - 1] == 1)
    n--;
  return n;
}

bool
ggml_is_contiguous (const struct ggml_tensor *t)
{
  size_t next = ggml_type_size (t->type);

  for (int i = 0; i < GGML_MAX_DIMS; i++)
    {
      if (t->ne[i] != 1 && t->nb[i] != next)
        return false;
      next *= (size_t)t->ne[i];
    }
  return true;
}

int
ggml_graph_n_nodes (struct ggml_cgraph *graph)
{
  return graph->n;
}

struct ggml_tensor *
ggml_graph_node (struct ggml_cgraph *graph, int i)
{
  return graph->nodes[i];
}

const char *
ggml_backend_buffer_name (ggml_backend_buffer_t buffer)
{
  return buffer->name;
}

size_t
ggml_backend_buffer_get_size (ggml_backend_buffer_t buffer)
{
  return buffer->size;
}

void
ggml_backend_tensor_get (const struct ggml_tensor *t, void *data, size_t offset, size_t size)
{
  memcpy (data, (const char *)t->data + offset, size);
}

void
ggml_backend_sched_set_eval_callback (ggml_backend_sched_t sched,
                                      ggml_backend_sched_eval_callback callback, void *user)
{
  sched->callback = callback;
  sched->user = user;
}

/* Element i of row j. */
static float *
at (const struct ggml_tensor *t, int64_t i, int64_t j)
{
  return (float *)((char *)t->data + (size_t)i * t->nb[0] + (size_t)j * t->nb[1]);
}

static float
product (const struct ggml_tensor *t, int64_t i, int64_t j)
{
  const struct ggml_tensor *a = t->src[0], *b = t->src[1];
  const bool is_outer = t->op == GGML_OP_OUT_PROD;
  const int64_t n = is_outer ? a->ne[1] : a->ne[0];
  float sum = 0;

  for (int64_t k = 0; k < n; k++)
    sum += is_outer ? *at (a, i, k) * *at (b, j, k) : *at (a, k, i) * *at (b, k, j);
  return sum;
}

/* The logarithm of the sum of a row's exponentials. */
static float
log_sum (const struct ggml_tensor *t, int64_t j)
{
  float sum = 0;

  for (int64_t i = 0; i < t->ne[0]; i++)
    sum += expf (*at (t, i, j));
  return logf (sum);
}

static float
cross_entropy (const struct ggml_tensor *logits, const struct ggml_tensor *labels)
{
  float sum = 0;

  for (int64_t j = 0; j < logits->ne[1]; j++)
    for (int64_t i = 0; i < logits->ne[0]; i++)
      sum += *at (labels, i, j) * (log_sum (logits, j) - *at (logits, i, j));
  return sum / (float)logits->ne[1];
}

/* One element of what is no function of one element. */
static float
element (const struct ggml_tensor *t, int64_t i, int64_t j)
{
  const struct ggml_tensor *a = t->src[0], *b = t->src[1];
  float sum = 0;

  switch (t->op)
    {
    case GGML_OP_ADD:
      return *at (a, i, j) + *at (b, i, 0);
    case GGML_OP_RELU:
      return fmaxf (*at (a, i, j), 0);
    case GGML_OP_STEP:
      return *at (a, i, j) > 0 ? 1 : 0;
    case GGML_OP_REPEAT_BACK:
      for (int64_t k = 0; k < a->ne[1]; k++)
        sum += *at (a, i, k);
      return sum;
    case GGML_OP_CROSS_ENTROPY_LOSS:
      return cross_entropy (a, b);
    case GGML_OP_CROSS_ENTROPY_LOSS_BACK:
      return (expf (*at (a, i, j) - log_sum (a, j)) - *at (b, i, j)) / (float)a->ne[1];
    default:
      return product (t, i, j);
    }
}

static void
compute (struct ggml_tensor *t)
{
  if (t->op >= GGML_OP_ADD)
    {
      for (int64_t j = 0; j < t->ne[1]; j++)
        for (int64_t i = 0; i < t->ne[0]; i++)
          *at (t, i, j) = element (t, i, j);
      return;
    }

  float *out = t->data;
  const float *a = t->src[0] != NULL ? t->src[0]->data : NULL;
  const float *b = t->src[1] != NULL ? t->src[1]->data : NULL;
  const int64_t n = t->src[0] != NULL ? ggml_nelements (t->src[0]) : 0;
  float by;

  memcpy (&by, t->op_params, sizeof by);
  if (t->op == GGML_OP_SUM)
    out[0] = 0;
  for (int64_t i = 0; i < n; i++)
    if (t->op == GGML_OP_MUL)
      out[i] = a[i] * b[i];
    else if (t->op == GGML_OP_SUB)
      out[i] = a[i] - b[i];
    else if (t->op == GGML_OP_SQR)
      out[i] = a[i] * a[i];
    else if (t->op == GGML_OP_SUM)
      out[0] += a[i];
    else if (t->op == GGML_OP_SCALE)
      out[i] = a[i] * by;
    else if (t->op == GGML_OP_CPY)
      out[i] = a[i];
    else if (t->op == GGML_OP_OPT_STEP_SGD)
      out[i] = a[i] - by * b[i];
}

void
ggml_backend_sched_graph_compute (ggml_backend_sched_t sched, struct ggml_cgraph *graph)
{
  for (int i = 0; i < graph->n; i++)
    {
      const bool wanted
          = sched->callback != NULL && sched->callback (graph->nodes[i], true, sched->user);

      compute (graph->nodes[i]);
      if (wanted && !sched->callback (graph->nodes[i], false, sched->user))
        return;
    }
}
