/* What differs in each iteration, times, reads, statistics and tensors, on its way to the tape:
 * ids become indices of the structure's variables.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <string.h>

static void
resolve_times (TdAssembler *a, TdTapeIteration *it, TdResolved *r, bool commit)
{
  const uint64_t *from = a->start.items, *length = a->duration.items;
  uint64_t *start, *duration;

  if (it->packed != NULL)
    return;
  /* The last time that the ticks are asked for, their place is that of the result. */
  start = commit ? a->start.items : td__list_add_n (&r->start, sizeof *start, it->n_events + 1);
  duration = commit ? a->duration.items
                    : td__list_add_n (&r->duration, sizeof *duration, it->n_events + 1);

  if (start == NULL || duration == NULL)
    {
      it->n_events = 0;
      return;
    }
  for (uint32_t i = 0; i < it->n_events; i++)
    {
      start[i] = from[i] > a->begin.ticks
                     ? (uint64_t)((double)(from[i] - a->begin.ticks) * a->ns_per_tick)
                     : 0;
      duration[i] = (uint64_t)((double)length[i] * a->ns_per_tick);
    }
  it->event_start_ns = start;
  it->event_duration_ns = duration;
}

static void
resolve_reads (TdAssembler *a, const TdShape *s, TdTapeIteration *it, TdResolved *r)
{
  const TdPendingRead *reads = a->reads.items;

  for (uint32_t i = 0; i < a->reads.n; i++)
    {
      TdTapeHostRead *read = td__list_add (&r->reads, sizeof *read);

      if (read == NULL)
        return;
      *read = reads[i].read;
      read->var = td__shape_var (a, s, reads[i].variable);
    }
  it->host_reads = r->reads.items;
  it->n_host_reads = r->reads.n;
}

static void
resolve_stats (TdAssembler *a, const TdShape *s, TdTapeIteration *it, TdResolved *r,
               bool commit)
{
  const char *of = a->stats_of.items;
  const uint32_t n = a->stats_of.n;
  /* The last time the variables are written over their ids. */
  char *vars
      = commit ? a->stats_of.items : td__list_add_n (&r->stats_vars, sizeof (uint32_t), n + 1);

  if (vars == NULL)
    return;
  for (uint32_t i = 0; i < n; i++)
    {
      uint64_t id;
      uint32_t var;

      memcpy (&id, of + i * sizeof id, sizeof id);
      var = td__shape_var (a, s, id);
      memcpy (vars + i * sizeof var, &var, sizeof var);
    }
  it->stats_rows = a->stats;
  it->stats_vars = (const uint32_t *)(const void *)vars;
  it->n_stats = n;
}

static void
resolve_tensors (TdAssembler *a, const TdShape *s, TdTapeIteration *it, TdResolved *r)
{
  const TdPendingTensor *tensors = a->tensors.items;

  for (uint32_t i = 0; i < a->tensors.n; i++)
    {
      uint32_t var = td__shape_var (a, s, tensors[i].variable);
      TdTapeTensorRef *one
          = var != TD_TAPE_NONE ? td__list_add (&r->tensors, sizeof *one) : NULL;

      if (one == NULL)
        continue;
      *one = tensors[i].ref;
      one->var = var;
    }
  it->tensors = r->tensors.items;
  it->n_tensors = r->tensors.n;
}

void
td__resolve (TdAssembler *a, const TdShape *s, uint64_t end_ns, TdTapeIteration *it,
             TdResolved *r, bool commit)
{
  if (a->large != NULL)
    td__large_resolve (a, s);
  *it = s->it;
  it->n_events = s->n_events;
  it->flags = a->flags;
  it->number = a->begin.number;
  it->label = a->begin.label & TD_TAPE_LABEL_NUMBER
                  ? a->begin.label
                  : td__alias (&a->strings, a->begin.label).id;
  it->first_id = a->begin.first_id;
  it->first_buffer = a->begin.first_buffer;
  it->start_ns = td__assembler_ns (a, a->begin.ticks);
  it->duration_ns = end_ns > it->start_ns ? end_ns - it->start_ns : 0;
  it->externals = s->externals.items;
  it->n_externals = s->externals.n;
  it->notices = a->notices.items;
  it->n_notices = a->notices.n;
  it->statics = a->statics.items;
  it->n_statics = a->statics.n;
  td__static_runs (a, end_ns, &r->runs);
  it->runs = r->runs.items;
  it->n_runs = r->runs.n;
  it->traced = a->traced.items;
  it->n_traced = a->traced.n;
  it->held = a->held.items;
  it->n_held = a->held.n;
  if (it->n_held > 0)
    it->flags |= TD_TAPE_ITERATION_HELD;
  td__resolve_objects (a, it);
  it->collectives = a->rank_waits.items;
  it->n_collectives = a->rank_waits.n;
  it->rank_sums = a->rank_sums.items;
  it->n_rank_sums = a->rank_sums.n;
  it->stop = a->stop;
  it->attr_changes = a->attr_changes.items;
  it->n_attr_changes = a->attr_changes.n;
  resolve_times (a, it, r, commit);
  resolve_reads (a, s, it, r);
  td__resolve_copies (a, s, it, &r->copies);
  td__resolve_calls (a, s, it, &r->calls);
  resolve_stats (a, s, it, r, commit);
  resolve_tensors (a, s, it, r);
  td__resolve_devices (a, it, &r->device_times, &r->copies, commit);
}

void
td__resolved_clear (TdResolved *r)
{
  td__list_clear (&r->start);
  td__list_clear (&r->duration);
  td__list_clear (&r->reads);
  td__list_clear (&r->stats_vars);
  td__list_clear (&r->tensors);
  td__list_clear (&r->runs);
  td__list_clear (&r->records);
  td__list_clear (&r->blocks);
  td__list_clear (&r->device_times);
  td__list_clear (&r->copies);
  td__list_clear (&r->calls);
}
