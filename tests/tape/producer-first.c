/* A program as it was compiled against the first header, version 0.1.0: its structs and
 * prototypes are copied here and stay as they are, however td-producer.h grows.
 * SPDX-License-Identifier: MIT */
#include "producer-first.h"

#include <stddef.h>
#include <stdint.h>

typedef struct TdProducer TdProducer;

typedef struct
{
  uint32_t size, level;
  const char *path, *producer, *version, *program;
  uint64_t budget_bytes;
  uint32_t overwrite, rank, n_ranks, reserved;
} Options;

typedef struct
{
  uint32_t size, dtype;
  uint64_t id, storage, offset, version;
  const int64_t *dims, *strides;
  uint32_t ndim, category, flags, device, name, layer, place, parameter;
} Variable;

typedef struct
{
  uint32_t size, kind, phase, place, layer, flags, thread, n_attributes;
  const void *attributes;
  const uint64_t *inputs, *outputs;
  uint32_t n_inputs, n_outputs;
  uint64_t twin, start_ns, end_ns;
} Operation;

TdProducer *td_producer_new (const Options *options, char *error, size_t n);
void td_producer_free (TdProducer *p);
const char *td_producer_error (const TdProducer *p);
uint32_t td_producer_text (TdProducer *p, const char *text);
uint32_t td_producer_kind (TdProducer *p, const char *name, const char *group,
                           const char *arguments);
uint32_t td_producer_layer (TdProducer *p, const char *path, const char *layer_class);
int td_producer_alloc (TdProducer *p, uint64_t storage, uint64_t address, uint64_t bytes,
                       uint32_t category, uint32_t device);
int td_producer_variable (TdProducer *p, const Variable *v);
int td_producer_begin (TdProducer *p, uint32_t label, uint64_t time_ns);
int td_producer_operation (TdProducer *p, const Operation *op);
int td_producer_report (TdProducer *p, const char *key, double value);
int td_producer_end_iteration (TdProducer *p, uint64_t time_ns);
int td_producer_end (TdProducer *p, int status);

int
producer_first (const char *path, char *error, size_t n)
{
  const int64_t dims[] = { 2, 3 };
  const uint64_t in = 1, out = 2;
  TdProducer *p = td_producer_new (
      &(Options){
          .size = sizeof (Options), .path = path, .producer = "first", .version = "0.1" },
      error, n);
  int wrong = p == NULL;

  if (wrong)
    return 1;
  for (uint64_t id = 1; id <= 2; id++)
    {
      if (id == 2)
        wrong |= td_producer_begin (p, 0, 0);
      wrong |= td_producer_alloc (p, id, 4096 * id, 24, 0, 0);
      wrong |= td_producer_variable (p, &(Variable){ .size = sizeof (Variable),
                                                     .id = id,
                                                     .storage = id,
                                                     .dims = dims,
                                                     .ndim = 2,
                                                     .name = td_producer_text (p, "x") });
    }
  wrong |= td_producer_operation (
      p, &(Operation){ .size = sizeof (Operation),
                       .kind = td_producer_kind (p, "relu", NULL, NULL),
                       .layer = td_producer_layer (p, "net", ""),
                       .inputs = &in,
                       .outputs = &out,
                       .n_inputs = 1,
                       .n_outputs = 1 });
  wrong |= td_producer_report (p, "loss", 0.5);
  wrong |= td_producer_end_iteration (p, 0);
  wrong |= td_producer_end (p, 0);
  for (size_t i = 0; wrong && i + 1 < n; i++)
    {
      error[i] = td_producer_error (p)[i];
      error[i + 1] = '\0';
      if (error[i] == '\0')
        break;
    }
  td_producer_free (p);
  return wrong != 0;
}
