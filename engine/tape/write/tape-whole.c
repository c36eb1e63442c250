/* Iterations from recorders other than the engine's: keys are made here, and structure, memory
 * and times are written in one call.
 * SPDX-License-Identifier: MIT */
#include "writer-private.h"

#include <stdlib.h>
#include <string.h>

/* How many earlier events have the same path, site, phase and span. */
static uint32_t
occurrence (const TdTapeIteration *it, uint32_t event, TapeMap *counts)
{
  const TdTapeEvent *e = &it->events[event];
  uint64_t h
      = td_tape_hash (td_tape_hash (e->path, e->site), (uint64_t)e->phase << 32 | e->span);
  uint32_t k = 0;

  /* One entry per event met: the k-th is found under the hash of (place, k). */
  while (td__tape_map_find (counts, td_tape_hash (h, k), NULL, NULL) != 0)
    k++;
  td__tape_map_add (counts, td_tape_hash (h, k), 1);
  return k;
}

static void
make_keys (const TdTapeWriter *w, const TdTapeIteration *it, TdTapeEvent *events,
           TdTapeVar *vars)
{
  TapeMap counts = { 0 };

  for (uint32_t i = 0; i < it->n_events; i++)
    {
      TdTapeEvent *e = &events[i];
      uint64_t path
          = e->path && e->path <= w->tables[TABLE_PATHS].n ? w->path_hash[e->path - 1] : 0;
      uint64_t site = e->site && e->site <= w->tables[TABLE_SITES].n
                          ? w->tables[TABLE_SITES].check[e->site - 1]
                          : 0;
      uint64_t scope = e->span < it->n_spans ? it->spans[e->span].key : 0;

      if (e->key == 0 && e->twin >= 0 && (uint32_t)e->twin < i)
        e->key = td_tape_twin_key (events[e->twin].key, e->phase, e->order);
      else if (e->key == 0)
        e->key = td_tape_event_key (scope, path, site, occurrence (it, i, &counts), e->phase);
      for (uint32_t k = 0; k < e->n_out; k++)
        {
          TdTapeVar *v = &vars[it->outs[e->first_out + k]];

          if (v->key == 0)
            v->key = td_tape_output_key (e->key, k);
        }
    }
  td__tape_map_clear (&counts);
}

/* Recorders that have made all keys have no use for copies of what is large. */
static bool
has_keys (const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_events; i++)
    if (it->events[i].key == 0)
      return false;
  for (uint32_t i = 0; i < it->n_outs; i++)
    if (it->vars[it->outs[i]].key == 0)
      return false;
  return true;
}

void
td_tape_writer_whole (TdTapeWriter *w, TdTapeIteration *it)
{
  TdTapeIteration full = *it;
  const bool keyed = has_keys (it);
  TdTapeEvent *events = keyed ? NULL : malloc ((it->n_events + 1) * sizeof *events);
  TdTapeVar *vars = keyed ? NULL : malloc ((it->n_vars + 1) * sizeof *vars);
  bool is_new;

  if (events != NULL && vars != NULL)
    {
      if (it->n_events > 0)
        memcpy (events, it->events, it->n_events * sizeof *events);
      if (it->n_vars > 0)
        memcpy (vars, it->vars, it->n_vars * sizeof *vars);
      full.events = events;
      full.vars = vars;
      make_keys (w, it, events, vars);
    }
  if (keyed || (events != NULL && vars != NULL))
    {
      td_tape_writer_fingerprint (w, &full, &full.fingerprint, &full.fingerprint_dims);
      full.structure = td_tape_writer_structure (w, &full, &is_new);
      full.memory_profile = td_tape_writer_memory (w, &full);
      full.flags |= is_new ? TD_TAPE_ITERATION_NEW_GRAPH : 0;
      it->structure = full.structure;
      it->memory_profile = full.memory_profile;
      td_tape_writer_iteration (w, &full);
    }
  free (events);
  free (vars);
}
