/* A test double of ggml's backends: one buffer, one scheduler, and how a test makes tensors.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "ggml.h"

typedef struct ggml_backend_buffer *ggml_backend_buffer_t;
typedef struct ggml_backend_sched *ggml_backend_sched_t;
typedef bool (*ggml_backend_sched_eval_callback) (struct ggml_tensor *t, bool ask, void *user);

struct ggml_backend_buffer
{
  const char *name;
  size_t size;
};

struct ggml_cgraph
{
  struct ggml_tensor *nodes[32];
  int n;
};

struct ggml_backend_sched
{
  ggml_backend_sched_eval_callback callback;
  void *user;
};

const char *ggml_backend_buffer_name (ggml_backend_buffer_t buffer);
size_t ggml_backend_buffer_get_size (ggml_backend_buffer_t buffer);
void ggml_backend_tensor_get (const struct ggml_tensor *t, void *data, size_t offset,
                              size_t size);
void ggml_backend_sched_set_eval_callback (ggml_backend_sched_t sched,
                                           ggml_backend_sched_eval_callback callback,
                                           void *user);
/* Asks the call-back, computes, and tells it, node by node. */
void ggml_backend_sched_graph_compute (ggml_backend_sched_t sched, struct ggml_cgraph *graph);
