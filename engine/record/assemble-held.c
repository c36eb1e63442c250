/* Who holds memory, out of the ring: names of places and texts become the tape's.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <string.h>

void
td__feed_held (TdAssembler *a, const TdRawHead *head)
{
  TdTapeHeld *h = a->state.in_iteration && a->held.n <= TD_TAPE_MAX_HELD
                      ? td__list_add (&a->held, sizeof *h)
                      : NULL;

  if (h == NULL)
    return;
  *h = ((const TdRawHeld *)head)->held;
  h->site = td__alias (&a->sites, h->site).id;
  h->held_site = td__alias (&a->sites, h->held_site).id;
  h->holder_site = td__alias (&a->sites, h->holder_site).id;
  h->opdef = td__alias (&a->opdefs, h->opdef).id;
  h->held_opdef = td__alias (&a->opdefs, h->held_opdef).id;
  h->name = td__alias (&a->strings, h->name).id;
}

void
td__feed_object (TdAssembler *a, const TdRawHead *head)
{
  TdTapeObject *o = a->state.in_iteration && a->objects.n < TD_TAPE_MAX_OBJECTS
                        ? td__list_add (&a->objects, sizeof *o)
                        : NULL;

  if (o == NULL)
    return;
  *o = ((const TdRawObject *)head)->object;
  o->site = td__alias (&a->sites, o->site).id;
  o->holder_site = td__alias (&a->sites, o->holder_site).id;
  o->opdef = td__alias (&a->opdefs, o->opdef).id;
  o->name = td__alias (&a->strings, o->name).id;
}

void
td__feed_references (TdAssembler *a, const TdRawHead *head)
{
  const TdRawReferences *raw = (const TdRawReferences *)head;
  uint32_t *to
      = a->state.in_iteration && a->objects.n > 0 && a->references.n < 16 * TD_TAPE_MAX_OBJECTS
            ? td__list_add_n (&a->references, sizeof *to, raw->n)
            : NULL;

  if (to != NULL && raw->n > 0)
    memcpy (to, raw->to, raw->n * sizeof *to);
}

void
td__resolve_objects (const TdAssembler *a, TdTapeIteration *it)
{
  const TdTapeObject *objects = a->objects.items;
  const uint32_t *to = a->references.items;

  for (uint32_t i = 0; i < a->objects.n; i++)
    if (objects[i].first_reference > a->references.n)
      return;
  for (uint32_t i = 0; i < a->references.n; i++)
    if (to[i] >= a->objects.n)
      return;
  it->objects = objects;
  it->n_objects = a->objects.n;
  it->references = to;
  it->n_references = a->references.n;
  if (it->n_objects > 0)
    it->flags |= TD_TAPE_ITERATION_OBJECTS;
}
