/* Buffers: device memory with a count, a version and an id.
 *
 * SPDX-License-Identifier: MIT */
#include "before-write.h"

/* A buffer of a block that was taken for it. */
static TdBuffer *
make (TdDevice *device, TdBlock *block, size_t bytes, TdMemCategory category)
{
  TdEngine *e = &td__engine;
  TdBuffer *b = td__slab_take (&e->buffers, sizeof *b);

  b->refs = 1;
  b->version = 0;
  b->block = block;
  b->data = block->address;
  b->bytes = bytes;
  b->device = device;
  b->id = ++e->next_buffer_id;
  b->writer = NULL;
  b->n_saved = 0;
  b->copied_version = 0;
  b->copied_to = 0;
  b->origin = 0;
  b->category = (uint8_t)category;
  return b;
}

TdBuffer *
td__buffer_take (TdDevice *device, size_t bytes, TdMemCategory category)
{
  TdBlock *block = td__pool_take (device->pool, bytes, category);

  return TD_LIKELY (block != NULL) ? make (device, block, bytes, category) : NULL;
}

TdBuffer *
td__buffer_of (TdDevice *device, TdBlock *block, size_t bytes)
{
  TdObserver *o = td__engine.observer;
  TdBuffer *b = make (device, block, bytes, (TdMemCategory)block->category);

  if (TD_UNLIKELY (o != NULL))
    o->buffer_new (o, b);
  return b;
}

TdBuffer *
td__buffer_new (TdDevice *device, size_t bytes, TdMemCategory category)
{
  TdObserver *o = td__engine.observer;
  TdBuffer *b = td__buffer_take (device, bytes, category);

  if (TD_UNLIKELY (o != NULL) && b != NULL)
    o->buffer_new (o, b);
  return b;
}

void
td__buffer_free (TdBuffer *b)
{
  TdEngine *e = &td__engine;

  if (TD_UNLIKELY (e->observer != NULL))
    e->observer->buffer_free (e->observer, b);
  td__pool_release (b->block);
  td__slab_release (&e->buffers, b);
}

void (*td__before_write) (const TdBuffer *b);

void
td__buffer_written (TdBuffer *b, const TdSite *site)
{
  b->version++;
  b->writer = site != NULL ? site : td__engine.site;
}
