/* Recording memory.  What is allocated and freed between two events belongs to the second one;
 * the outputs of an event are written together with it (recorder.c).
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"
#include "agent/agent.h"
#include "host-memory.h"

#include <stdlib.h>

const uint8_t td__tape_category[TD_MEM_N_CATEGORIES] = {
  [TD_MEM_PARAMETER] = TD_TAPE_CATEGORY_PARAMETER,
  [TD_MEM_GRADIENT] = TD_TAPE_CATEGORY_GRADIENT,
  [TD_MEM_ACTIVATION] = TD_TAPE_CATEGORY_ACTIVATION,
  [TD_MEM_OPTIMIZER] = TD_TAPE_CATEGORY_OPTIMIZER,
  [TD_MEM_INPUT] = TD_TAPE_CATEGORY_INPUT,
  [TD_MEM_BUFFER] = TD_TAPE_CATEGORY_BUFFER,
  [TD_MEM_WORKSPACE] = TD_TAPE_CATEGORY_WORKSPACE,
  [TD_MEM_COMMUNICATION] = TD_TAPE_CATEGORY_COMMUNICATION,
  [TD_MEM_STATIC] = TD_TAPE_CATEGORY_STATIC,
  [TD_MEM_OTHER] = TD_TAPE_CATEGORY_OTHER,
};

static inline void
put_free (TdRecorder *r, const TdBuffer *b, uint8_t category)
{
  TdRawFree *f = td_ring_reserve (r->ring, sizeof *f);

  f->head
      = (TdRawHead){ sizeof *f, TD_RAW_FREE, (uint16_t)(category | b->device->number << 8) };
  f->address = (uint64_t)(uintptr_t)b->data;
  f->bytes = b->block->bytes;
  f->buffer = b->id;
  td_ring_commit (r->ring, sizeof *f);
}

/* Write allocations and frees so far: they belong to the event that follows. */
void
td__recorder_flush_memory (TdRecorder *r)
{
  for (size_t i = 0; i < r->n_pending; i++)
    {
      const TdPendingMemory *p = &r->pending[i];
      TdRawMemory *m = td_ring_reserve (r->ring, sizeof *m);

      m->head = (TdRawHead){ sizeof *m, TD_RAW_MEMORY, p->kind };
      m->address = p->live != NULL ? (uint64_t)(uintptr_t)p->live->data : p->address;
      m->bytes = p->live != NULL ? p->live->block->bytes : p->bytes;
      m->buffer = p->live != NULL ? p->live->id : p->buffer;
      m->variable = p->variable;
      m->site = 0;
      m->category = p->category;
      m->holder = 0;
      m->device = p->device;
      td_ring_publish (r->ring, sizeof *m);
    }
  r->n_pending = r->n_live = 0;
}

static inline TdPendingMemory *
pend (TdRecorder *r, const TdBuffer *b, uint8_t kind)
{
  TdPendingMemory *p;

  if (TD_UNLIKELY (r->n_pending == r->pending_capacity))
    {
      r->pending_capacity = r->pending_capacity == 0 ? 256 : 2 * r->pending_capacity;
      r->pending = td__xrealloc (r->pending, r->pending_capacity * sizeof *r->pending);
    }
  p = &r->pending[r->n_pending++];
  p->variable = 0;
  p->kind = kind;
  p->category = td__tape_category[b->category];
  p->device = b->device->number;
  return p;
}

/* Keep what is needed of a buffer that is being freed. */
static void
keep_words (TdPendingMemory *p, const TdBuffer *b)
{
  p->live = NULL;
  p->address = (uint64_t)(uintptr_t)b->data;
  p->bytes = b->block->bytes;
  p->buffer = b->id;
}

/* Find the allocation of a buffer among those that are not written yet, or NULL.  NULL is the
 * usual case: a scope that closes frees thousands of older buffers. */
static TdPendingMemory *
find_pending (TdRecorder *r, const TdBuffer *b)
{
  for (size_t i = r->n_live > 0 ? r->n_pending : 0; i > 0; i--)
    if (r->pending[i - 1].live == b)
      return &r->pending[i - 1];
  return NULL;
}

/* Set the variable of a buffer that was just allocated. */
void
td__recorder_match_memory (TdRecorder *r, const TdBuffer *b, uint64_t variable)
{
  TdPendingMemory *p = b != NULL ? find_pending (r, b) : NULL;

  if (p != NULL && p->variable == 0)
    p->variable = variable;
}

void
td__recorder_buffer_new (TdObserver *o, const TdBuffer *b)
{
  TdRecorder *r = (TdRecorder *)(void *)o;

  if (r->agent != NULL)
    r->agent->allocated += b->block->bytes;
  if (!r->writes)
    return;
  pend (r, b, TD_TAPE_MEMORY_ALLOC)->live = b;
  r->n_live++;
}

void
td__recorder_buffer_free (TdObserver *o, const TdBuffer *b)
{
  TdRecorder *r = (TdRecorder *)(void *)o;
  TdPendingMemory *p;

  if (!r->writes)
    return;
  if (TD_LIKELY (r->n_pending == 0 && r->in_iteration))
    {
      put_free (r, b, td__tape_category[b->category]);
      return;
    }
  p = find_pending (r, b);
  if (p != NULL)
    {
      keep_words (p, b);
      r->n_live--;
    }
  keep_words (pend (r, b, TD_TAPE_MEMORY_FREE), b);
}
