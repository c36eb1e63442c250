/* Static chains and their schedules: to the tape and back.
 * SPDX-License-Identifier: MIT */
#include "reader-private.h"
#include "tape-schedule.h"
#include "writer-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------- writing */

void
td_tape_writer_chain (TdTapeWriter *w, const TdTapeChain *chain)
{
  td__tape_append (w, TD_TAPE_SEGMENT_DEFS, TD_TAPE_FRAME_STATIC_CHAIN, chain, sizeof *chain,
                   NULL, 0, 0, NULL);
}

/* A program that misses at every call must not fill its tape with that. */
void
td_tape_writer_static_event (TdTapeWriter *w, const TdTapeStaticEvent *event)
{
  if (w->kind_bytes[TD_TAPE_SEGMENT_DEFS] <= td__tape_share (w, 1))
    td__tape_append (w, TD_TAPE_SEGMENT_DEFS, TD_TAPE_FRAME_STATIC_EVENT, event, sizeof *event,
                     NULL, 0, event->iteration, NULL);
}

#define PUT(b, KIND, array, n)                                                                 \
  td__tape_buffer_section (b, TD_TAPE_SECTION_##KIND, sizeof *(array), n, array)

static void
put_schedule (TapeBuffer *b, const TdTapeSchedule *s)
{
  TdTapeScheduleHead head = s->head;

  head.id = 0;
  b->n = 0;
  td__tape_buffer_put (b, &head, sizeof head);
  PUT (b, STEPS, s->steps, s->n_steps);
  PUT (b, OPERANDS, s->operands, s->n_operands);
  PUT (b, NODES, s->nodes, s->n_nodes);
  PUT (b, DIMS, s->dims, s->n_dims);
  PUT (b, VALUES, s->values, s->n_values);
  PUT (b, GUARDS, s->guards, s->n_guards);
}

/* The values with their lifetimes; NULL: no memory, or operands that are out of range. */
static TdTapeValue *
with_lives (const TdTapeSchedule *s)
{
  TdTapeValue *values = malloc ((s->n_values + 1) * sizeof *values);
  TapeLife *life = malloc ((s->n_values + 1) * sizeof *life);
  bool ok = values != NULL && life != NULL;

  for (uint32_t i = 0; ok && i < s->n_operands; i++)
    ok = s->operands[i] < s->n_nodes && s->nodes[s->operands[i]].value < s->n_values;
  for (uint32_t i = 0; ok && i < s->n_steps; i++)
    ok = s->steps[i].first_in <= s->n_operands
         && s->steps[i].n_in <= s->n_operands - s->steps[i].first_in
         && s->steps[i].first_out <= s->n_operands
         && s->steps[i].n_out <= s->n_operands - s->steps[i].first_out;
  if (ok)
    {
      td__tape_schedule_lives (s, life);
      for (uint32_t i = 0; i < s->n_values; i++)
        {
          values[i] = s->values[i];
          values[i].first = life[i].first;
          values[i].last = life[i].last;
        }
    }
  free (life);
  if (ok)
    return values;
  free (values);
  return NULL;
}

uint32_t
td_tape_writer_schedule (TdTapeWriter *w, const TdTapeSchedule *schedule, char *error, size_t n)
{
  TdTapeSchedule s = *schedule;
  TdTapeValue *values = with_lives (schedule);
  char unused[160];
  bool is_new;
  uint32_t id = 0;

  if (error == NULL)
    {
      error = unused;
      n = sizeof unused;
    }
  snprintf (error, n, "it has operands that are not there");
  s.values = values;
  if (values != NULL && td_tape_schedule_verify (&s, error, n))
    {
      put_schedule (&w->scratch, &s);
      id = td__tape_put_once (w, TABLE_SCHEDULES, TD_TAPE_FRAME_SCHEDULE, &is_new);
      if (id == 0)
        snprintf (error, n, "there is no room left for it");
    }
  free (values);
  return id;
}

/* --------------------------------------------------------------------------- reading */

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
      "missed", "evicted", "verified", "differs", "proved", "captured")
NAME (td_tape_run_kind_name, TD_TAPE_N_RUN_KINDS, "code", "traced", "replayed", "shadow")
NAME (td_tape_step_kind_name, TD_TAPE_N_STEP_KINDS, "operation", "fill", "copy", "effect",
      "host read", "link", "link end", "scope", "scope end", "gradient", "group")
NAME (td_tape_fate_name, TD_TAPE_N_FATES, "runs", "pruned", "folded", "merged", "batched")
NAME (td_tape_pool_name, TD_TAPE_N_POOLS, "default", "workspace", "static", "graph-private",
      "capture", "upload", "pinned", "private")
NAME (td_tape_copy_way_name, TD_TAPE_N_COPY_WAYS, "to device", "to host")
NAME (td_tape_copy_why_name, TD_TAPE_N_COPY_WHYS, "op", "read", "write", "new", "batch", "load",
      "check")
NAME (td_tape_value_kind_name, TD_TAPE_N_VALUE_KINDS, "interior", "external", "constant",
      "output", "output's gradient", "gradient")
