/* Checks of every index in an iteration that was read: what passes can be used without further
 * ones.
 * SPDX-License-Identifier: MIT */
#include "reader-private.h"

static bool
range_ok (uint32_t first, uint32_t n, uint32_t all)
{
  return first <= all && n <= all - first;
}

static bool
index_ok (uint32_t i, uint32_t n)
{
  return i < n || i == TD_TAPE_NONE;
}

static bool
indices_below (const uint32_t *list, uint32_t n, uint32_t limit)
{
  for (uint32_t i = 0; i < n; i++)
    if (list[i] >= limit)
      return false;
  return true;
}

bool
td__tape_structure_ok (const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_events; i++)
    {
      const TdTapeEvent *e = &it->events[i];

      if (!range_ok (e->first_in, e->n_in, it->n_ins)
          || !range_ok (e->first_out, e->n_out, it->n_outs) || e->twin < -1
          || (e->twin >= 0 && (uint32_t)e->twin >= it->n_events)
          || !index_ok (e->span, it->n_spans))
        return false;
    }
  for (uint32_t i = 0; i < it->n_vars; i++)
    {
      const TdTapeVar *v = &it->vars[i];

      if (v->producer < -1 || (v->producer >= 0 && (uint32_t)v->producer >= it->n_events)
          || v->ndim > TD_TAPE_MAX_NDIM || !range_ok (v->first_dim, v->ndim, it->n_dims))
        return false;
    }
  for (uint32_t i = 0; i < it->n_spans; i++)
    {
      const TdTapeSpan *s = &it->spans[i];

      if (s->begin > s->end || s->end > it->n_events
          || (s->parent >= i && s->parent != TD_TAPE_NONE))
        return false;
    }
  for (uint32_t i = 0; i < it->n_grads; i++)
    if (!index_ok (it->grads[i].event, it->n_events) || it->grads[i].parameter >= it->n_vars
        || !index_ok (it->grads[i].gradient, it->n_vars))
      return false;
  return indices_below (it->ins, it->n_ins, it->n_vars)
         && indices_below (it->outs, it->n_outs, it->n_vars);
}

static bool
calls_ok (const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_calls; i++)
    {
      const TdTapeCall *c = &it->calls[i];

      if (c->event >= it->n_events || (i > 0 && c->event <= it->calls[i - 1].event)
          || !index_ok (c->into, it->n_vars)
          || !range_ok (c->first_word, c->n_bytes / 8 + (c->n_bytes % 8 != 0),
                        it->n_call_words))
        return false;
    }
  return true;
}

static bool
ranks_ok (const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_collectives; i++)
    if (it->collectives[i].event > it->n_events || it->collectives[i].wait >= TD_TAPE_N_WAITS)
      return false;
  for (uint32_t i = 0; i < it->n_rank_sums; i++)
    if (it->rank_sums[i].event > it->n_events || it->rank_sums[i].kind >= TD_TAPE_N_SUMS)
      return false;
  return true;
}

/* Whoever goes outwards gets to an end. */
static bool
stacks_ok (const TdTapeIteration *it)
{
  if ((it->n_event_stacks > 0 && it->n_event_stacks != it->n_events)
      || (it->n_external_stacks > 0 && it->n_external_stacks != it->n_externals))
    return false;
  for (uint32_t i = 0; i < it->n_stack_frames; i++)
    if (it->stack_frames[i].outer > i)
      return false;
  for (uint32_t i = 0; i < it->n_event_stacks; i++)
    if (it->event_stacks[i] > it->n_stack_frames)
      return false;
  for (uint32_t i = 0; i < it->n_external_stacks; i++)
    if (it->external_stacks[i] > it->n_stack_frames)
      return false;
  return true;
}

bool
td__tape_instance_ok (const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_host_reads; i++)
    if (it->host_reads[i].event > it->n_events || !index_ok (it->host_reads[i].var, it->n_vars))
      return false;
  for (uint32_t i = 0; i < it->n_copies; i++)
    if (it->copies[i].event > it->n_events || !index_ok (it->copies[i].var, it->n_vars)
        || it->copies[i].way >= TD_TAPE_N_COPY_WAYS)
      return false;
  for (uint32_t i = 0; i < it->n_stats; i++)
    if (it->stats[i].var >= it->n_vars)
      return false;
  for (uint32_t i = 0; i < it->n_tensors; i++)
    if (it->tensors[i].var >= it->n_vars)
      return false;
  for (uint32_t i = 0; i < it->n_memory; i++)
    if (it->memory[i].event > it->n_events)
      return false;
  for (uint32_t i = 0; i < it->n_runs; i++)
    if (it->runs[i].begin > it->runs[i].end || it->runs[i].end > it->n_events)
      return false;
  for (uint32_t i = 0; i < it->n_traced; i++)
    if (it->traced[i].event > it->n_events)
      return false;
  for (uint32_t i = 0; i < it->n_device_times; i++)
    if (it->device_times[i].event >= it->n_events
        || (i > 0 && it->device_times[i].event < it->device_times[i - 1].event))
      return false;
  return calls_ok (it) && ranks_ok (it) && stacks_ok (it);
}
