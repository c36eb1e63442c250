/* Static functions and their schedules, from the tape.  Their way to it:
 * write/tape-put-static.c. SPDX-License-Identifier: MIT */
#include "reader-private.h"
#include "../format/tape-schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** A schedule and what it owns. */
typedef struct
{
  TdTapeSchedule s; /* first: it is what callers hold */
  void *arrays[6];
  unsigned n_arrays;
} Loaded;

void
td_tape_schedule_free (const TdTapeSchedule *schedule)
{
  Loaded *l = (Loaded *)(uintptr_t)schedule;

  if (l == NULL)
    return;
  for (unsigned i = 0; i < l->n_arrays; i++)
    free (l->arrays[i]);
  free (l);
}

#define COPY(l, field, n_field, KIND)                                                          \
  ((l)->arrays[(l)->n_arrays++]                                                                \
   = (void *)((l)->s.field = td__tape_copy_section (sections, TD_TAPE_SECTION_##KIND,          \
                                                    sizeof *(l)->s.field, &(l)->s.n_field)))

static void
take (Loaded *l, const TapeSections *sections)
{
  COPY (l, steps, n_steps, STEPS);
  COPY (l, operands, n_operands, OPERANDS);
  COPY (l, nodes, n_nodes, NODES);
  COPY (l, dims, n_dims, DIMS);
  COPY (l, values, n_values, VALUES);
  COPY (l, guards, n_guards, GUARDS);
}

const TdTapeSchedule *
td_tape_schedule_load (TdTapeReader *r, uint32_t id, char *error, size_t n)
{
  const TapeSpot *spot = id != 0 && id <= r->schedule_spots.n
                             ? (const TapeSpot *)r->schedule_spots.items + (id - 1)
                             : NULL;
  Loaded *l = calloc (1, sizeof *l);
  TapeSections sections;
  TdTapeFrame frame;
  char *bytes = NULL, what[160] = "its record is damaged";
  bool ok = false;

  if (spot == NULL || spot->len == 0 || l == NULL)
    snprintf (what, sizeof what, l != NULL ? "there is none" : "no memory");
  else
    bytes
        = td__tape_read_frame (r->fd, spot->offset, spot->len, TD_TAPE_FRAME_SCHEDULE, &frame);
  if (bytes != NULL
      && td__tape_find_sections (bytes, frame.len - sizeof frame, sizeof l->s.head, &sections))
    {
      l->s.size = sizeof l->s;
      td__tape_take (&l->s.head, sizeof l->s.head, bytes, frame.len - sizeof frame);
      take (l, &sections);
      ok = td_tape_schedule_verify (&l->s, what, sizeof what);
    }
  free (bytes);
  if (ok)
    return &l->s;
  snprintf (error, n, "schedule %u: %s", id, what);
  td_tape_schedule_free (l != NULL ? &l->s : NULL);
  return NULL;
}

uint32_t
td_tape_reader_n_schedules (const TdTapeReader *r)
{
  return r->schedule_spots.n;
}

uint32_t
td_tape_reader_n_chains (const TdTapeReader *r)
{
  return r->chains.n;
}

const TdTapeChain *
td_tape_reader_chain (const TdTapeReader *r, uint32_t id)
{
  const TdTapeChain *chain
      = id != 0 && id <= r->chains.n ? (const TdTapeChain *)r->chains.items + (id - 1) : NULL;

  return chain != NULL && chain->id == id ? chain : NULL;
}

uint32_t
td_tape_reader_n_static_events (const TdTapeReader *r)
{
  return r->static_events.n;
}

const TdTapeStaticEvent *
td_tape_reader_static_event (const TdTapeReader *r, uint32_t i)
{
  return i < r->static_events.n ? (const TdTapeStaticEvent *)r->static_events.items + i : NULL;
}

/* ----------------------------------------------------------------------------- names */

#define NAME(function, Count, ...)                                                             \
  const char *function (unsigned i)                                                            \
  {                                                                                            \
    static const char *const names[Count] = { __VA_ARGS__ };                                   \
                                                                                               \
    return i < Count ? names[i] : "?";                                                         \
  }

NAME (td_tape_chain_state_name, TD_TAPE_N_CHAIN_STATES, "off", "tracing", "scheduled",
      "invalid")
NAME (td_tape_static_event_name, TD_TAPE_N_STATIC_EVENTS, "traced", "refused", "scheduled",
      "missed", "evicted", "verified", "differs", "proved", "captured", "set aside")
NAME (td_tape_run_kind_name, TD_TAPE_N_RUN_KINDS, "code", "traced", "replayed", "verification")
NAME (td_tape_step_kind_name, TD_TAPE_N_STEP_KINDS, "operation", "fill", "copy", "effect",
      "host read", "link", "link end", "scope", "scope end", "gradient", "group")
NAME (td_tape_fate_name, TD_TAPE_N_FATES, "runs", "pruned", "folded", "merged", "batched")
NAME (td_tape_pool_name, TD_TAPE_N_POOLS, "default", "workspace", "static", "graph-private",
      "capture", "upload", "pinned", "private")
NAME (td_tape_copy_way_name, TD_TAPE_N_COPY_WAYS, "to device", "to host")
NAME (td_tape_copy_why_name, TD_TAPE_N_COPY_WHYS, "op", "read", "write", "new", "batch", "load",
      "check")
NAME (td_tape_wait_name, TD_TAPE_N_WAITS, "meet", "bcast", "sum", "gather", "exchange", "send",
      "receive")
NAME (td_tape_rank_sum_name, TD_TAPE_N_SUMS, "parameter", "persistent", "state", "gradient",
      "mean", "number")
NAME (td_tape_value_kind_name, TD_TAPE_N_VALUE_KINDS, "interior", "external", "constant",
      "output", "output's gradient", "gradient")
