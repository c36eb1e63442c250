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

/* Elements that lie in memory by strides, row by row, or the other way.  False: they leave what
 * there is of them. */
static bool
move (const int64_t *dims, const int64_t *strides, unsigned ndim, size_t size, uint64_t n,
      const char *from, char *to, bool to_memory)
{
  int64_t at[TD_TAPE_MAX_NDIM] = { 0 };
  uint64_t place = 0;

  for (uint64_t i = 0; i < n; i++)
    {
      if (place >= n)
        return false;
      if (to_memory)
        memcpy (to + place * size, from + i * size, size);
      else
        memcpy (to + i * size, from + place * size, size);
      for (unsigned d = ndim; d-- > 0;)
        {
          place += (uint64_t)strides[d];
          if (++at[d] < dims[d])
            break;
          place -= (uint64_t)(strides[d] * at[d]);
          at[d] = 0;
        }
    }
  return true;
}

/* The same memory in the order of another view of it. */
static TdProducerStatus
put_view (TdProducer *p, const ProducerMeasured *m, const ProducerVar *v, uint64_t n)
{
  const size_t size = td_tape_dtype_bytes (v->dtype);
  char *memory = calloc (n + 1, size), *rows = malloc (n * size + 1);
  TdProducerStatus status = TD_PRODUCER_OK; /* without memory they are left out */

  if (memory != NULL && rows != NULL
      && move (m->dims, m->strides, m->ndim, size, n, m->elements, memory, true)
      && move (v->dims, v->strides, v->ndim, size, n, memory, rows, false))
    status = put (p, v, rows, m->bytes);
  free (memory);
  free (rows);
  return status;
}

TdProducerStatus
td__producer_say_kept (TdProducer *p, ProducerMeasured *m, const ProducerVar *v, uint64_t n)
{
  if (m->elements == NULL || m->dtype != v->dtype
      || m->bytes != n * td_tape_dtype_bytes (v->dtype))
    return TD_PRODUCER_OK;
  if (m->named)
    return put_view (p, m, v, n);
  m->named = true;
  m->ndim = v->ndim;
  memcpy (m->dims, v->dims, sizeof m->dims);
  memcpy (m->strides, v->strides, sizeof m->strides);
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
