/* Buffers: device memory with a count, a version and an id.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"

TdBuffer *
td__buffer_take (TdDevice *device, size_t bytes, TdMemCategory category)
{
  TdEngine *e = &td__engine;
  TdBlock *block = td__pool_take (device->pool, bytes, category);
  TdBuffer *b;

  if (TD_UNLIKELY (block == NULL))
    return NULL;
  b = td__slab_take (&e->buffers);
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
  td__pool_give (b->block);
  td__slab_give (&e->buffers, b);
}

void
td__buffer_written (TdBuffer *b, const TdSite *site)
{
  b->version++;
  b->writer = site != NULL ? site : td__engine.site;
}
