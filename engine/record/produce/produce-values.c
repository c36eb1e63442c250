/* Elements of a recorded program's arrays, at level values: copied when they are measured, said
 * when their variable is.  SPDX-License-Identifier: MIT */
#include "producer-private.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (16u << 20)    /* of one array */
#define MOST_WAITING (256u << 20) /* of all that wait for their words */

static bool
are_wanted (const TdProducer *p, uint64_t bytes)
{
  return p->keeps_elements && bytes <= MOST_BYTES;
}

static TdProducerStatus
put (TdProducer *p, const ProducerVar *v, const void *elements, uint64_t bytes)
{
  TdRawTensor *raw = td__producer_record (p, TD_RAW_TENSOR, 0, sizeof *raw + bytes);

  if (raw == NULL)
    return TD_PRODUCER_MEMORY;
  raw->variable = v->id;
  raw->total = bytes;
  raw->length = (uint32_t)bytes;
  raw->dtype = v->dtype;
  raw->ndim = v->ndim;
  memcpy (raw->dims, v->dims, v->ndim * sizeof *v->dims);
  memcpy (raw->bytes, elements, bytes);
  td__producer_feed (p, raw);
  return TD_PRODUCER_OK;
}

TdProducerStatus
td__producer_elements (TdProducer *p, const ProducerVar *v, const void *elements, uint64_t n)
{
  const uint64_t bytes = n * td_tape_dtype_bytes (v->dtype);

  return are_wanted (p, bytes) ? put (p, v, elements, bytes) : TD_PRODUCER_OK;
}

void
td__producer_keep (TdProducer *p, ProducerMeasured *m, uint32_t dtype, const void *elements,
                   uint64_t n)
{
  const uint64_t bytes = n * td_tape_dtype_bytes (dtype);

  if (!are_wanted (p, bytes) || p->waiting_bytes + bytes > MOST_WAITING)
    return;
  m->elements = malloc (bytes + 1);
  if (m->elements == NULL)
    return; /* they are left out, as those of a large array are */
  memcpy (m->elements, elements, bytes);
  m->bytes = bytes;
  m->dtype = (uint8_t)dtype;
  p->waiting_bytes += bytes;
}

/* A view of the same memory has the same numbers, but in the same order only where both go
 * through it row by row. */
TdProducerStatus
td__producer_say_kept (TdProducer *p, ProducerMeasured *m, const ProducerVar *v, uint64_t n)
{
  const bool first = !m->named, same = m->in_order && v->in_order;

  if (first)
    {
      m->named = true;
      m->in_order = v->in_order;
    }
  if (m->elements == NULL || (!first && !same) || m->dtype != v->dtype
      || m->bytes != n * td_tape_dtype_bytes (v->dtype))
    return TD_PRODUCER_OK;
  return put (p, v, m->elements, m->bytes);
}

void
td__producer_forget_measured (TdProducer *p)
{
  ProducerMeasured *m = p->measured.items;

  for (uint32_t i = 0; i < p->measured.n; i++)
    free (m[i].elements);
  p->measured.n = 0;
  p->waiting_bytes = 0;
}
