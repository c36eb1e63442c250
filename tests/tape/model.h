/* A model for tests of the tape: writes the raw records of a small network into a ring, as the
 * engine's recorder would.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "record/ring.h"

/** Ids of operations, sites and so on that model_define gives out. */
enum
{
  MODEL_LINEAR = 1,
  MODEL_RELU,
  MODEL_LOSS,
  MODEL_LINEAR_GRAD,
  MODEL_RELU_GRAD,
  MODEL_SGD,
};

typedef struct
{
  TdRing *ring;
  uint64_t next_id, next_buffer;
  uint64_t parameter; /* W */
  uint64_t state;     /* carried from iteration to iteration when `recurrent` */
  uint64_t iteration;
  uint32_t strings;
  int n_layers;
  int64_t batch;
  bool recurrent, memory;
  unsigned n_memory; /* records of memory so far */
} Model;

/** Reserve, zero and head a record of `bytes`. */
void *model_record (Model *m, unsigned type, unsigned flags, size_t bytes);
void model_publish (Model *m, void *record);

/** Say a text; returns its id. */
uint32_t model_string (Model *m, const char *text);

/** Texts, operations, two sites, a link path, a source, a parameter. */
void model_define (Model *m, TdRing *ring);

/** Memory of `bytes` at an address that depends on `place` only. */
void model_memory (Model *m, unsigned kind, unsigned place, uint64_t bytes, uint64_t variable);

/** One operation with one output (batch, 10); returns the output's id. */
uint64_t model_op (Model *m, unsigned opdef, unsigned phase, uint32_t twin_back, uint64_t in0,
                   uint64_t in1);

void model_begin (Model *m);
void model_end (Model *m);

/** Forward and backward through n_layers, a loss and an update: 4 * n_layers + 2 events. */
void model_iteration (Model *m);

/** SCOPE_OPEN, LINK_ENTER ... with a name or the path id. */
void model_span (Model *m, unsigned type, const char *name, uint32_t path);

/** Statistics and a tensor (in two parts) of a variable of 4 elements: 1, -2, 0, NaN. */
void model_values (Model *m, uint64_t variable);

/** Something to say, a TdTapeNoticeKind. */
void model_notice (Model *m, unsigned kind, const char *text);
/** A report, a host read, an error, a name, an unchain and a gradient. */
void model_side_records (Model *m, uint64_t variable);

/** An index out of range, found later in event `event` of iteration `iteration`. */
void model_fault (Model *m, uint64_t iteration, uint32_t event);
