/* Copies between the host and devices, as records of their iteration.
 *
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

void
td__feed_copy (TdAssembler *a, const TdRawHead *head)
{
  const TdRawCopy *raw = (const TdRawCopy *)head;
  TdRawCopy *to = a->state.in_iteration ? td__list_add (&a->copies, sizeof *to) : NULL;

  if (to == NULL)
    return;
  *to = *raw;
  to->copy.event = a->state.n_events;
  to->copy.site = td__alias (&a->sites, raw->copy.site).id;
}

static void
set_times (const TdAssembler *a, const TdRawCopy *raw, TdTapeCopy *to)
{
  uint64_t began = td__assembler_ns (a, a->begin.ticks), start, end;

  if (raw->start == 0)
    return;
  start = td__assembler_ns (a, raw->start);
  end = td__assembler_ns (a, raw->end);
  to->flags |= TD_TAPE_COPY_TIMED;
  to->start_ns = start > began ? start - began : 0;
  to->duration_ns = end > start ? end - start : 0;
}

void
td__resolve_copies (const TdAssembler *a, const TdShape *s, TdTapeIteration *it, TdList *copies)
{
  const TdRawCopy *raw = a->copies.items;
  TdTapeCopy *to = td__list_add_n (copies, sizeof *to, a->copies.n);

  if (to == NULL)
    return;
  for (uint32_t i = 0; i < a->copies.n; i++)
    {
      to[i] = raw[i].copy;
      set_times (a, &raw[i], &to[i]);
      to[i].var = raw[i].variable != 0 ? td__shape_var (a, s, raw[i].variable) : TD_TAPE_NONE;
      if (to[i].event > it->n_events)
        to[i].event = it->n_events;
    }
  it->copies = to;
  it->n_copies = a->copies.n;
}
