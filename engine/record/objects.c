/* Recording what refers to what among the objects that have outlived their iteration:
 * variables, operations and arrays (td-tape-objects.h).
 *
 * They are found breadth first from all variables that something holds, so that if there are
 * too many those nearest to a holder are written.  A set of objects is written as a whole or
 * not at all, and only at intervals, so that what a tape gets is proportional to what the
 * program did, also in a program that leaks.
 *
 * SPDX-License-Identifier: MIT */
#include "holdings.h"
#include "compute/core/op-held.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

enum
{
  FIRST_OBJECTS = 65536, /* up to so many in all, objects are written at every change */
  EVENTS_PER_OBJECT = 16,
  MAX_REFERENCES = 8 * TD_TAPE_MAX_OBJECTS,
  REFERENCES_PER_RECORD = 256
};

typedef struct
{
  const void *pointer; /* TdVar, TdOp or TdBuffer */
  TdTapeObject o;
  uint32_t n_told; /* references to an array's buffer that were found */
  const TdSite *site, *holder_site;
  const TdOpClass *cls;
  const char *name;
} Found;

struct TdObjects
{
  Found *found;
  uint32_t n, capacity;
  uint32_t *to;
  uint32_t n_to, to_capacity;
  uint32_t *slots; /* 2^k; index + 1 of what was found, by pointer */
  size_t n_slots;
  uint64_t n_written, n_last, events; /* in all; the last time; since then */
  bool cut;
};

TdObjects *
td__objects_new (void)
{
  TdObjects *o = td__xcalloc (1, sizeof *o);

  return o;
}

static void
forget (TdObjects *o)
{
  free (o->found);
  free (o->to);
  free (o->slots);
  o->found = NULL;
  o->to = o->slots = NULL;
  o->n = o->capacity = o->n_to = o->to_capacity = 0;
  o->n_slots = 0;
  o->cut = false;
}

void
td__objects_free (TdObjects *o)
{
  if (o == NULL)
    return;
  forget (o);
  free (o);
}

void
td__objects_count (TdObjects *o, uint64_t n_events)
{
  o->events += n_events;
}

/* ---------------------------------------------------------------------------- finding */

static void *
room (void *items, uint32_t n, uint32_t *capacity, size_t size)
{
  if (n < *capacity)
    return items;
  *capacity = *capacity == 0 ? 256 : 2 * *capacity;
  items = td__xrealloc (items, *capacity * size);
  return items;
}

static uint32_t *
slot_of (const TdObjects *o, const void *pointer)
{
  size_t at = ((uintptr_t)pointer * 0x9e3779b97f4a7c15u >> 20) & (o->n_slots - 1);

  while (o->slots[at] != 0 && o->found[o->slots[at] - 1].pointer != pointer)
    at = (at + 1) & (o->n_slots - 1);
  return &o->slots[at];
}

static void
grow_slots (TdObjects *o)
{
  free (o->slots);
  o->n_slots = o->n_slots == 0 ? 1024 : 2 * o->n_slots;
  o->slots = td__xcalloc (o->n_slots, sizeof *o->slots);
  for (uint32_t i = 0; i < o->n; i++)
    *slot_of (o, o->found[i].pointer) = i + 1;
}

/* The object of a pointer, which is added if it is new; NULL: there are too many. */
static Found *
find (TdObjects *o, const void *pointer, TdTapeObjectKind kind)
{
  uint32_t *slot;

  if (2 * (size_t)o->n >= o->n_slots)
    grow_slots (o);
  slot = slot_of (o, pointer);
  if (*slot != 0)
    return &o->found[*slot - 1];
  if (o->n == TD_TAPE_MAX_OBJECTS)
    return NULL;
  o->found = room (o->found, o->n, &o->capacity, sizeof *o->found);
  o->found[o->n] = (Found){ .pointer = pointer, .o.kind = (uint8_t)kind };
  *slot = ++o->n;
  return &o->found[o->n - 1];
}

static void
set_made (const TdHoldings *h, Found *f, uint64_t id)
{
  f->o.id = id;
  if (!td__holdings_iteration_of (h, id, &f->o.iteration))
    f->o.iteration = TD_TAPE_NO_ID;
}

/* Add a reference from object i. */
static void
refer (TdObjects *o, uint32_t i, const Found *to)
{
  if (to == NULL || o->n_to == MAX_REFERENCES)
    {
      o->found[i].o.flags |= TD_TAPE_OBJECT_CUT;
      o->cut = true;
      return;
    }
  o->to = room (o->to, o->n_to, &o->to_capacity, sizeof *o->to);
  o->to[o->n_to++] = (uint32_t)(to - o->found);
}

static bool
is_told (const TdHoldings *h, const TdBuffer *b, uint64_t id)
{
  uint64_t iteration;

  return td__holdings_is_told (h, b, id, &iteration);
}

static void
refer_array (TdObjects *o, const TdHoldings *h, uint32_t i, const TdNode *n, const TdBuffer *b,
             const TdSite *site)
{
  Found *f = is_told (h, b, n->id) ? find (o, b, TD_TAPE_OBJECT_ARRAY) : NULL;

  if (f == NULL)
    {
      if (is_told (h, b, n->id))
        refer (o, i, NULL);
      return;
    }
  if (f->o.id == 0)
    {
      set_made (h, f, n->id);
      f->o.bytes = b->bytes;
      f->o.category = td__tape_category[b->category];
      f->cls = n->creator != NULL ? n->creator->cls : NULL;
      f->site = n->creator != NULL && n->creator->site != NULL ? n->creator->site : site;
    }
  refer (o, i, f);
}

static void
refer_op (TdObjects *o, const TdHoldings *h, uint32_t i, TdOp *op)
{
  Found *f = op != NULL ? find (o, op, TD_TAPE_OBJECT_OPERATION) : NULL;

  if (f != NULL && f->o.id == 0)
    {
      f->cls = op->cls;
      f->site = op->site;
      for (int k = 0; k < op->n_out; k++)
        if (op->out[k] != NULL)
          {
            set_made (h, f, op->out[k]->id);
            break;
          }
    }
  if (op != NULL)
    refer (o, i, f);
}

/* Count the reference of a node to its array: once, however many operations saved it. */
static void
count_node (TdObjects *o, TdNode *n, uint32_t mark)
{
  uint32_t *slot;

  if (n == NULL || n->retained == NULL || n->mark == mark)
    return;
  n->mark = mark;
  slot = slot_of (o, n->retained);
  if (*slot != 0)
    o->found[*slot - 1].n_told++;
}

static void
count_kept (void *user, const TdNode *n, const TdBuffer *b)
{
  TdObjects *o = user;
  const uint32_t *slot = slot_of (o, b);

  (void)n;
  if (*slot != 0)
    o->found[*slot - 1].n_told++;
}

/* --------------------------------------------------------------------------- handles */

static bool
is_worth_reporting (const TdHoldings *h, const TdVar *v)
{
  return v->node->creator != NULL || is_told (h, v->buffer, v->node->id);
}

static Found *
find_handle (TdObjects *o, const TdHoldings *h, const TdVar *v)
{
  Found *f = find (o, v, TD_TAPE_OBJECT_HANDLE);

  if (f == NULL || f->o.id != 0)
    return f;
  set_made (h, f, v->node->id);
  f->o.holder = td__holdings_holder (v);
  f->site = v->site;
  f->cls = v->node->creator != NULL ? v->node->creator->cls : NULL;
  f->holder_site = td__holdings_holder_site (v);
  f->name = v->name != NULL ? v->name : v->node->name;
  if (v->refs > v->holds[TD_HOLD_GRADIENT])
    f->o.flags |= TD_TAPE_OBJECT_ROOT;
  return f;
}

static void
find_roots (TdObjects *o, const TdHoldings *h)
{
  const TdSlab *slab = &td__engine.vars;

  for (size_t c = 0; c < slab->n_chunks; c++)
    for (size_t i = 0; i < TD_SLAB_ITEMS; i++)
      {
        const TdVar *v = (TdVar *)(void *)((char *)slab->chunks[c] + i * slab->item_bytes);

        if (v->state == TD_VAR_LIVE && v->refs > v->holds[TD_HOLD_GRADIENT]
            && (is_worth_reporting (h, v)
                || (v->grad != NULL && is_worth_reporting (h, v->grad)))
            && find_handle (o, h, v) == NULL)
          o->cut = true;
      }
}

static void
follow_handle (TdObjects *o, const TdHoldings *h, uint32_t i, const TdVar *v)
{
  refer_array (o, h, i, v->node, v->buffer, v->site);
  refer_op (o, h, i, v->node->creator);
  if (v->grad != NULL && is_worth_reporting (h, v->grad))
    refer (o, i, find_handle (o, h, v->grad));
}

typedef struct
{
  TdObjects *o;
  const TdHoldings *h;
  uint32_t i;
} Followed;

static void
refer_kept (void *user, const TdNode *n, const TdBuffer *b)
{
  const Followed *f = user;

  refer_array (f->o, f->h, f->i, n, b, NULL);
}

static void
follow_op (TdObjects *o, const TdHoldings *h, uint32_t i, const TdOp *op)
{
  for (int k = 0; k < op->n_in; k++)
    refer_op (o, h, i, op->in[k]->creator);
  for (int k = 0; k < op->n_in; k++)
    if (td__bit (op->retained_in, k))
      refer_array (o, h, i, op->in[k], op->in[k]->retained, NULL);
  for (int k = 0; k < op->n_out; k++)
    if (td__bit (op->retained_out, k) && op->out[k] != NULL)
      refer_array (o, h, i, op->out[k], op->out[k]->retained, NULL);
  if (td__op_held != NULL && (op->cls->flags & TD_OP_CAPTURES))
    td__op_held (op, refer_kept, &(Followed){ o, h, i });
}

static void
follow (TdObjects *o, const TdHoldings *h)
{
  for (uint32_t i = 0; i < o->n; i++)
    {
      const void *pointer = o->found[i].pointer;

      o->found[i].o.first_reference = o->n_to;
      if (o->found[i].o.kind == TD_TAPE_OBJECT_HANDLE)
        follow_handle (o, h, i, pointer);
      else if (o->found[i].o.kind == TD_TAPE_OBJECT_OPERATION)
        follow_op (o, h, i, pointer);
    }
}

/* Find arrays to which something else refers: a batch that is prefetched, a communicator. */
static void
find_elsewhere (TdObjects *o)
{
  const uint32_t mark = td__engine.mark += 4; /* a backward uses a few numbers after its own */

  for (uint32_t i = 0; i < o->n; i++)
    if (o->found[i].o.kind == TD_TAPE_OBJECT_HANDLE)
      {
        const TdVar *v = o->found[i].pointer;
        uint32_t *slot = v->buffer != NULL ? slot_of (o, v->buffer) : NULL;

        if (slot != NULL && *slot != 0)
          o->found[*slot - 1].n_told++;
      }
    else if (o->found[i].o.kind == TD_TAPE_OBJECT_OPERATION)
      {
        const TdOp *op = o->found[i].pointer;

        for (int k = 0; k < op->n_in; k++)
          count_node (o, op->in[k], mark);
        for (int k = 0; k < op->n_out; k++)
          count_node (o, op->out[k], mark);
        if (td__op_held != NULL && (op->cls->flags & TD_OP_CAPTURES))
          td__op_held (op, count_kept, o);
      }
  for (uint32_t i = 0; i < o->n && !o->cut; i++)
    if (o->found[i].o.kind == TD_TAPE_OBJECT_ARRAY
        && o->found[i].n_told < ((const TdBuffer *)o->found[i].pointer)->refs)
      o->found[i].o.flags |= TD_TAPE_OBJECT_ELSEWHERE;
}

/* ---------------------------------------------------------------------------- writing */

static void
put (TdRecorder *r, const Found *f)
{
  const uint32_t site = td__recorder_site (r, f->site);
  const uint32_t holder_site = td__recorder_site (r, f->holder_site);
  const uint32_t opdef = f->cls != NULL ? td__recorder_class (r, f->cls) : 0;
  const uint32_t name = td__recorder_string (r, f->name);
  TdRawObject *raw = td_ring_reserve (r->ring, TD_RAW_PADDED (sizeof *raw));

  raw->head = (TdRawHead){ TD_RAW_PADDED (sizeof *raw), TD_RAW_OBJECT, 0 };
  raw->object = f->o;
  raw->object.site = site;
  raw->object.holder_site = holder_site;
  raw->object.opdef = opdef;
  raw->object.name = name;
  td_ring_publish (r->ring, raw->head.size);
}

static void
put_references (TdRecorder *r, const uint32_t *to, uint32_t n)
{
  const uint32_t size
      = TD_RAW_PADDED ((uint32_t)sizeof (TdRawReferences) + n * (uint32_t)sizeof *to);
  TdRawReferences *raw = td_ring_reserve (r->ring, size);

  raw->head = (TdRawHead){ size, TD_RAW_REFERENCES, 0 };
  raw->n = n;
  raw->reserved = 0;
  memcpy (raw->to, to, n * sizeof *to);
  td_ring_publish (r->ring, size);
}

static bool
is_time (const TdObjects *o, uint64_t n)
{
  return o->n_written + n <= FIRST_OBJECTS || n >= o->n_last + o->n_last / 3
         || o->events >= EVENTS_PER_OBJECT * n;
}

uint64_t
td__objects_mark (TdObjects *o, const TdHoldings *h, TdRecorder *r, uint64_t n_visits)
{
  if (!is_time (o, n_visits < TD_TAPE_MAX_OBJECTS ? n_visits : TD_TAPE_MAX_OBJECTS))
    return 0;
  find_roots (o, h);
  follow (o, h);
  if (o->n > 0)
    find_elsewhere (o);
  for (uint32_t i = 0; i < o->n; i++)
    put (r, &o->found[i]);
  for (uint32_t i = 0; i < o->n_to; i += REFERENCES_PER_RECORD)
    put_references (r, o->to + i,
                    o->n_to - i < REFERENCES_PER_RECORD ? o->n_to - i : REFERENCES_PER_RECORD);
  n_visits = o->n + o->n_to;
  o->n_written += o->n;
  o->n_last = o->n;
  o->events = 0;
  forget (o);
  return n_visits;
}
