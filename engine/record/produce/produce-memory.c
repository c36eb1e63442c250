/* Memory of a recorded program: storages that are taken and given back, the variables on them,
 * and at the end of iterations what has outlived the one that made it.
 * SPDX-License-Identifier: MIT */
#include "producer-private.h"

#include <stdlib.h>
#include <string.h>

enum
{
  MAX_GROUPS = 512, /* further groups are counted as one */
  SAME_MARKS = 64   /* of so many equal marks a few are written */
};

ProducerVar *
td__producer_var (TdProducer *p, uint64_t id)
{
  const uint32_t at = id != 0 ? td__id_map_get (&p->var_at, id) : TD_TAPE_NONE;

  return at != TD_TAPE_NONE ? (ProducerVar *)p->vars.items + at : NULL;
}

ProducerStorage *
td__producer_storage (TdProducer *p, uint64_t id)
{
  const uint32_t at = id != 0 ? td__id_map_get (&p->storage_at, id) : TD_TAPE_NONE;

  return at != TD_TAPE_NONE ? (ProducerStorage *)p->storages.items + at : NULL;
}

static void
put_alloc (TdProducer *p, ProducerStorage *s)
{
  TdRawMemory *m = td__producer_record (p, TD_RAW_MEMORY, TD_TAPE_MEMORY_ALLOC, sizeof *m);

  s->said = true;
  if (m == NULL)
    return;
  m->address = s->address;
  m->bytes = s->bytes;
  m->buffer = s->buffer;
  m->variable = s->variable;
  m->category = s->category;
  m->device = s->device;
  td__producer_feed (p, m);
}

void
td__producer_flush_memory (TdProducer *p)
{
  const uint32_t *slots = p->pending.items;

  for (uint32_t i = 0; i < p->pending.n; i++)
    {
      ProducerStorage *s = (ProducerStorage *)p->storages.items + slots[i];

      if (s->used && !s->said)
        put_alloc (p, s);
    }
  p->pending.n = 0;
}

TdProducerStatus
td_producer_alloc (TdProducer *p, uint64_t storage, uint64_t address, uint64_t bytes,
                   uint32_t category, uint32_t device)
{
  TdProducerStatus ready = td__producer_ready (p);
  ProducerStorage *s;
  uint32_t at, *wait;

  if (ready != TD_PRODUCER_OK)
    return ready;
  if (storage == 0)
    return td__producer_refuse (p, TD_PRODUCER_WRONG,
                                "alloc: a storage has a number from 1 on");
  if (td__producer_storage (p, storage) != NULL)
    return td__producer_refuse (p, TD_PRODUCER_NOT_NOW,
                                "alloc: storage %llu has not been released",
                                (unsigned long long)storage);
  if (category >= TD_TAPE_N_CATEGORIES)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "alloc: there is no category %u",
                                category);
  if (device > UINT8_MAX || bytes >= 1ull << 60)
    return td__producer_refuse (p, TD_PRODUCER_WRONG,
                                "alloc: no device is that far, no memory that large");
  if (p->free_storages.n > 0)
    at = ((const uint32_t *)p->free_storages.items)[--p->free_storages.n];
  else
    {
      at = p->storages.n;
      if (at >= PRODUCER_MOST || td__list_add (&p->storages, sizeof *s) == NULL)
        return td__producer_refuse (p, TD_PRODUCER_MEMORY, "alloc: too much is alive");
    }
  s = (ProducerStorage *)p->storages.items + at;
  *s = (ProducerStorage){ .id = storage,
                          .address = address,
                          .bytes = bytes,
                          .buffer = p->next_buffer++,
                          .made = p->n_begun,
                          .vars = TD_TAPE_NONE,
                          .category = (uint8_t)category,
                          .device = (uint8_t)device,
                          .used = true };
  wait = td__list_add (&p->pending, sizeof *wait);
  if (wait == NULL || !td__id_map_set (&p->storage_at, storage, at))
    return td__producer_refuse (p, TD_PRODUCER_MEMORY, "no memory");
  *wait = at;
  return TD_PRODUCER_OK;
}

static void
drop_var (TdProducer *p, ProducerVar *v)
{
  uint32_t *slot = td__list_add (&p->free_vars, sizeof *slot);

  td__id_map_remove (&p->var_at, v->id);
  if (slot != NULL)
    *slot = (uint32_t)(v - (ProducerVar *)p->vars.items);
  v->id = 0;
}

TdProducerStatus
td_producer_release (TdProducer *p, uint64_t storage)
{
  TdProducerStatus ready = td__producer_ready (p);
  ProducerStorage *s;
  TdRawFree *f;
  uint32_t *slot;

  if (ready != TD_PRODUCER_OK)
    return ready;
  if ((s = td__producer_storage (p, storage)) == NULL)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "release: there is no storage %llu",
                                (unsigned long long)storage);
  if (!s->said)
    td__producer_flush_memory (p);
  f = td__producer_record (p, TD_RAW_FREE, s->category | (unsigned)s->device << 8, sizeof *f);
  slot = td__list_add (&p->free_storages, sizeof *slot);
  if (f == NULL || slot == NULL)
    return td__producer_refuse (p, TD_PRODUCER_MEMORY, "no memory");
  f->address = s->address;
  f->bytes = s->bytes;
  f->buffer = s->buffer;
  td__producer_feed (p, f);
  for (uint32_t at = s->vars; at != TD_TAPE_NONE;)
    {
      ProducerVar *v = (ProducerVar *)p->vars.items + at;

      at = v->next;
      drop_var (p, v);
    }
  *slot = (uint32_t)(s - (ProducerStorage *)p->storages.items);
  s->used = false;
  td__id_map_remove (&p->storage_at, storage);
  return TD_PRODUCER_OK;
}

TdProducerStatus
td_producer_forget (TdProducer *p, uint64_t variable)
{
  TdProducerStatus ready = td__producer_ready (p);
  ProducerVar *v;

  if (ready != TD_PRODUCER_OK)
    return ready;
  if ((v = td__producer_var (p, variable)) == NULL)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "forget: there is no variable %llu",
                                (unsigned long long)variable);
  if (v->storage != TD_TAPE_NONE)
    {
      const uint32_t own = (uint32_t)(v - (ProducerVar *)p->vars.items);
      uint32_t *at = &((ProducerStorage *)p->storages.items)[v->storage].vars;

      while (*at != own && *at != TD_TAPE_NONE)
        at = &((ProducerVar *)p->vars.items)[*at].next;
      if (*at == own)
        *at = v->next;
    }
  drop_var (p, v);
  return TD_PRODUCER_OK;
}

/* -------------------------------------------------------------- what outlived its iteration */

/* As the engine's own: nothing from before the first iteration, no parameters and no
 * optimizer's state of the first one. */
static bool
is_told (const ProducerStorage *s)
{
  return s->used && s->made > 0
         && (s->made > 1
             || (s->category != TD_TAPE_CATEGORY_PARAMETER
                 && s->category != TD_TAPE_CATEGORY_OPTIMIZER));
}

/* A name only makes a group where no place does: a program may name each array it keeps. */
static bool
is_of (const ProducerHeld *g, const ProducerStorage *s)
{
  return g->place == s->place && g->kind == s->kind && g->category == s->category
         && (s->place != 0 || g->name == s->name);
}

static void
count (ProducerHeld *groups, uint32_t *n, const ProducerStorage *s)
{
  ProducerHeld *g = NULL;

  for (uint32_t i = 0; g == NULL && i < *n; i++)
    if (is_of (&groups[i], s))
      g = &groups[i];
  if (g == NULL)
    {
      g = &groups[*n < MAX_GROUPS ? (*n)++ : MAX_GROUPS];
      if (g->n == 0)
        *g = (ProducerHeld){ .place = s->place,
                             .kind = s->kind,
                             .name = s->name,
                             .category = s->category,
                             .oldest = s->made - 1 };
    }
  if (g->name != s->name)
    g->name = 0;
  g->n++;
  g->bytes += s->bytes;
  g->oldest = s->made - 1 < g->oldest ? s->made - 1 : g->oldest;
  td__made_in_add (&g->made_in, s->made);
}

static int
larger_first (const void *x, const void *y)
{
  const ProducerHeld *a = x, *b = y;

  return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

static void
put_held (TdProducer *p, const ProducerHeld *g, unsigned flags)
{
  TdRawHeld *raw = td__producer_record (p, TD_RAW_HELD, 0, sizeof *raw);

  if (raw == NULL)
    return;
  raw->held = (TdTapeHeld){ .bytes = g->bytes,
                            .oldest = g->oldest,
                            .n_objects = g->n < UINT32_MAX ? (uint32_t)g->n : UINT32_MAX,
                            .n_iterations = g->made_in.n,
                            .site = g->place,
                            .opdef = g->kind,
                            .held_site = g->place,
                            .held_opdef = g->kind,
                            .name = g->name,
                            .category = g->category,
                            .holder = TD_TAPE_HOLDER_HANDLE,
                            .flags = (uint8_t)flags };
  td__producer_feed (p, raw);
}

/* Of marks that do not differ the 1st, 2nd, 4th, 8th and so on are written. */
static bool
is_due (TdProducer *p, const ProducerHeld *groups, uint32_t n)
{
  uint64_t bytes = 0, objects = 0;
  uint32_t at;
  bool same;

  for (uint32_t i = 0; i < n; i++)
    {
      bytes += groups[i].bytes;
      objects += groups[i].n;
    }
  same = bytes == p->marked_bytes && objects == p->marked_objects;
  p->marked_bytes = bytes;
  p->marked_objects = objects;
  p->n_same = same ? p->n_same + 1 : 0;
  at = p->n_same % SAME_MARKS;
  return (at & (at - 1)) == 0;
}

/* A look costs what is alive: it waits until as much has happened. */
void
td__producer_mark (TdProducer *p)
{
  const ProducerStorage *all = p->storages.items;
  ProducerHeld *groups, others = { 0 };
  uint32_t n = 0, n_put;

  p->credit += 128 + 2 * (uint64_t)p->n_events;
  if (p->credit < p->storages.n)
    return;
  p->credit = 0;
  groups = calloc (MAX_GROUPS + 1, sizeof *groups);
  if (groups == NULL)
    return;
  for (uint32_t i = 0; i < p->storages.n; i++)
    if (is_told (&all[i]))
      count (groups, &n, &all[i]);
  if (is_due (p, groups, MAX_GROUPS + 1))
    {
      n_put = n < TD_TAPE_MAX_HELD ? n : TD_TAPE_MAX_HELD;
      if (n > 1)
        qsort (groups, n, sizeof *groups, larger_first);
      for (uint32_t i = 0; i < n_put; i++)
        put_held (p, &groups[i], 0);
      for (uint32_t i = n_put; i <= MAX_GROUPS; i++)
        {
          others.bytes += groups[i].bytes;
          others.n += groups[i].n;
          td__made_in_join (&others.made_in, &groups[i].made_in);
        }
      put_held (p, &others, TD_TAPE_HELD_OTHERS);
    }
  free (groups);
}
