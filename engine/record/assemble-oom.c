/* Memory that ran out, out of the ring: where in the iteration it did, and names of places and
 * texts as the tape has them.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include "td-tape-oom-way.h"

#include <string.h>

void
td__feed_oom (TdAssembler *a, const TdRawHead *head)
{
  const TdRawOom *raw = (const TdRawOom *)head;
  TdTapeOomHolder holders[TD_TAPE_MAX_OOM_HOLDERS];
  TdTapeOomLink links[TD_TAPE_MAX_OOM_HOLDERS * TD_TAPE_MAX_OOM_LINKS];
  TdTapeOom oom = raw->oom;

  oom.flags &= (uint8_t)~TD_TAPE_OOM_ITERATION;
  oom.iteration = a->state.iteration;
  oom.event = TD_TAPE_NONE;
  oom.n_memory = 0;
  if (a->state.in_iteration)
    {
      oom.flags |= TD_TAPE_OOM_ITERATION;
      oom.iteration = a->begin.number;
      oom.event = a->state.n_events;
      oom.n_memory = a->large == NULL ? a->memory.n : td_tape_rows_count (a->large->memory);
    }
  oom.time_ns = td__assembler_ns (a, raw->ticks);
  oom.device_name = td__alias (&a->strings, oom.device_name).id;
  oom.op = td__alias (&a->strings, oom.op).id;
  oom.site = td__alias (&a->sites, oom.site).id;
  oom.path = td__alias (&a->paths, oom.path).id;
  memcpy (holders, raw->holders, oom.n_holders * sizeof *holders);
  for (uint32_t i = 0; i < oom.n_holders; i++)
    {
      TdTapeOomHolder *h = &holders[i];

      h->name = td__alias (&a->strings, h->name).id;
      h->path = td__alias (&a->paths, h->path).id;
      h->op = td__alias (&a->strings, h->op).id;
      h->site = td__alias (&a->sites, h->site).id;
      h->holder_site = td__alias (&a->sites, h->holder_site).id;
    }
  memcpy (links, raw->holders + oom.n_holders, raw->n_links * sizeof *links);
  for (uint32_t i = 0; i < raw->n_links; i++)
    {
      links[i].name = td__alias (&a->strings, links[i].name).id;
      links[i].op = td__alias (&a->strings, links[i].op).id;
      links[i].site = td__alias (&a->sites, links[i].site).id;
      links[i].path = td__alias (&a->paths, links[i].path).id;
    }
  td_tape_writer_oom_ways (a->w, &oom, holders, oom.n_holders, links, raw->n_links);
}
