/* Static functions and their schedules, to the tape.
 * SPDX-License-Identifier: MIT */
#include "writer-private.h"
#include "../format/tape-schedule.h"
#include "td-tape-reader.h"

#include <stdio.h>
#include <stdlib.h>

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
