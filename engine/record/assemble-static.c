/* Static functions out of the ring: schedules put together and numbered as the tape numbers,
 * what happened, and where each function stands. SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SCHEDULE (256u << 20)

void
td__feed_function (TdAssembler *a, const TdRawHead *head)
{
  TdTapeChain chain = ((const TdRawFunction *)head)->function;

  chain.name = td__alias (&a->strings, chain.name).id;
  chain.site = td__alias (&a->sites, chain.site).id;
  td_tape_writer_chain (a->w, &chain);
}

static uint32_t
schedule_id (const TdAssembler *a, uint32_t number)
{
  uint32_t id = td__id_map_get (&a->schedules, number);

  return id != TD_TAPE_NONE ? id : 0;
}

void
td__feed_static_event (TdAssembler *a, const TdRawHead *head)
{
  const TdRawStaticEvent *raw = (const TdRawStaticEvent *)head;
  TdTapeStaticEvent event = raw->event;

  event.iteration = a->state.iteration;
  event.time_ns = td__assembler_ns (a, raw->ticks);
  event.schedule = schedule_id (a, event.schedule);
  event.guard = td__alias (&a->strings, event.guard).id;
  event.text = td__alias (&a->strings, event.text).id;
  event.site = td__alias (&a->sites, event.site).id;
  event.other_site = td__alias (&a->sites, event.other_site).id;
  td_tape_writer_static_event (a->w, &event);
}

void
td__feed_static (TdAssembler *a, const TdRawHead *head)
{
  const TdTapeStatic *now = &((const TdRawStatic *)head)->state;
  TdTapeStatic *all = a->statics.items, *s = NULL;

  for (uint32_t i = 0; i < a->statics.n && s == NULL; i++)
    if (all[i].chain == now->chain)
      s = &all[i];
  if (s == NULL && a->state.in_iteration)
    s = td__list_add (&a->statics, sizeof *s);
  if (s == NULL)
    return;
  *s = *now;
  s->schedule = schedule_id (a, s->schedule);
}

/* The newest run of the function and kind; open: one that is not yet over. */
static TdTapeRun *
find_run (const TdAssembler *a, const TdTapeRun *like, bool open)
{
  TdTapeRun *runs = a->runs.items;

  for (uint32_t i = a->runs.n; i-- > 0;)
    if (runs[i].chain == like->chain && runs[i].kind == like->kind
        && (!open || ((runs[i].flags & TD_TAPE_RUN_OPEN) && runs[i].list == like->list)))
      return &runs[i];
  return NULL;
}

void
td__feed_static_run (TdAssembler *a, const TdRawHead *head)
{
  const TdRawStaticRun *raw = (const TdRawStaticRun *)head;
  const uint64_t ns = td__assembler_ns (a, raw->ticks);
  TdTapeRun *run;

  if (!a->state.in_iteration)
    return;
  if (head->flags != TD_RAW_RUN_BEGINS)
    {
      run = find_run (a, &raw->run, head->flags == TD_RAW_RUN_ENDS);
      if (run != NULL && head->flags == TD_RAW_RUN_DISCARDED)
        run->flags |= TD_TAPE_RUN_DISCARDED;
      else if (run != NULL)
        {
          run->flags &= (uint8_t)~TD_TAPE_RUN_OPEN;
          run->end = a->state.n_events;
          run->ns = ns > run->ns ? ns - run->ns : 0;
        }
      return;
    }
  if ((run = td__list_add (&a->runs, sizeof *run)) == NULL)
    return;
  *run = raw->run;
  run->schedule = schedule_id (a, run->schedule);
  run->begin = run->end = a->state.n_events;
  run->flags = TD_TAPE_RUN_OPEN;
  run->ns = ns;
}

void
td__static_runs (const TdAssembler *a, uint64_t end_ns, TdList *runs)
{
  TdTapeRun *copy = a->runs.n > 0 ? td__list_add_n (runs, sizeof *copy, a->runs.n) : NULL;

  if (copy == NULL)
    return;
  memcpy (copy, a->runs.items, a->runs.n * sizeof *copy);
  for (uint32_t i = 0; i < runs->n; i++)
    if (copy[i].flags & TD_TAPE_RUN_OPEN)
      {
        copy[i].end = a->state.n_events;
        copy[i].ns = end_ns > copy[i].ns ? end_ns - copy[i].ns : 0;
      }
}

void
td__feed_static_entry (TdAssembler *a, const TdRawHead *head)
{
  const TdTapeTraced *raw = &((const TdRawStaticEntry *)head)->entry;
  TdTapeTraced *entry = a->state.in_iteration ? td__list_add (&a->traced, sizeof *entry) : NULL;

  if (entry == NULL)
    return;
  *entry = *raw;
  entry->opdef = td__alias (&a->opdefs, raw->opdef).id;
  entry->site = td__alias (&a->sites, raw->site).id;
  entry->path = td__alias (&a->paths, raw->path).id;
  entry->text = td__alias (&a->strings, raw->text).id;
  entry->event = a->state.n_events;
  if (raw->kind == TD_TAPE_STEP_OP && entry->event > 0)
    entry->event--;
}

/* ------------------------------------------------------------------------- schedules */

/* The array of `count` items at `*at`; NULL when the bytes do not hold it. */
static void *
array_at (char *bytes, size_t n, size_t *at, uint32_t count, size_t size)
{
  uint64_t need = ((uint64_t)count * size + 7) & ~(uint64_t)7;
  void *array = bytes + *at;

  if (need > n - *at)
    return NULL;
  *at += (size_t)need;
  return array;
}

static void
translate (TdAssembler *a, TdTapeSchedule *s, TdTapeStep *steps, TdTapeNode *nodes,
           TdTapeGuard *guards)
{
  s->head.key = td__alias (&a->strings, s->head.key).id;
  for (uint32_t i = 0; i < s->n_steps; i++)
    {
      steps[i].opdef = td__alias (&a->opdefs, steps[i].opdef).id;
      steps[i].site = td__alias (&a->sites, steps[i].site).id;
      steps[i].path = td__alias (&a->paths, steps[i].path).id;
      steps[i].attrs = td__alias (&a->strings, steps[i].attrs).id;
      steps[i].text = td__alias (&a->strings, steps[i].text).id;
      steps[i].why = td__alias (&a->strings, steps[i].why).id;
    }
  for (uint32_t i = 0; i < s->n_nodes; i++)
    nodes[i].name = td__alias (&a->strings, nodes[i].name).id;
  for (uint32_t i = 0; i < s->n_guards; i++)
    {
      guards[i].guard = td__alias (&a->strings, guards[i].guard).id;
      guards[i].text = td__alias (&a->strings, guards[i].text).id;
      guards[i].site = td__alias (&a->sites, guards[i].site).id;
    }
}

/* A schedule that a reader would refuse is a finding: it goes on the tape as a notice. */
static void
refuse (TdAssembler *a, uint32_t number, const char *why)
{
  char text[240];
  TdTapeNotice notice = { .iteration = a->state.iteration,
                          .event = TD_TAPE_NONE,
                          .kind = TD_TAPE_NOTICE_RECORDING };

  snprintf (text, sizeof text, "schedule %u is not shown: %s", number, why);
  notice.text = td_tape_writer_string (a->w, text);
  td_tape_writer_notice (a->w, &notice);
}

static void
put_schedule (TdAssembler *a, char *bytes, size_t n)
{
  TdRawScheduleHead head;
  TdTapeSchedule s = { .size = sizeof s };
  size_t at = sizeof head;
  char error[160];
  uint32_t id;

  if (n < sizeof head)
    return;
  memcpy (&head, bytes, sizeof head);
  s.head = head.head;
  s.n_steps = head.n_steps;
  s.n_operands = head.n_operands;
  s.n_nodes = head.n_nodes;
  s.n_dims = head.n_dims;
  s.n_values = head.n_values;
  s.n_guards = head.n_guards;
  TdTapeStep *steps = array_at (bytes, n, &at, s.n_steps, sizeof *steps);
  uint32_t *operands
      = steps != NULL ? array_at (bytes, n, &at, s.n_operands, sizeof *operands) : NULL;
  TdTapeNode *nodes
      = operands != NULL ? array_at (bytes, n, &at, s.n_nodes, sizeof *nodes) : NULL;
  int64_t *dims = nodes != NULL ? array_at (bytes, n, &at, s.n_dims, sizeof *dims) : NULL;
  TdTapeValue *values
      = dims != NULL ? array_at (bytes, n, &at, s.n_values, sizeof *values) : NULL;
  TdTapeGuard *guards
      = values != NULL ? array_at (bytes, n, &at, s.n_guards, sizeof *guards) : NULL;
  if (guards == NULL)
    {
      a->state.n_bad++;
      return;
    }
  s.steps = steps;
  s.operands = operands;
  s.nodes = nodes;
  s.dims = dims;
  s.values = values;
  s.guards = guards;
  translate (a, &s, steps, nodes, guards);
  id = td_tape_writer_schedule (a->w, &s, error, sizeof error);
  if (id == 0)
    refuse (a, a->schedule_number, error);
  else
    td__id_map_set (&a->schedules, a->schedule_number, id);
}

/* Parts in order make the whole; anything else is dropped. */
void
td__feed_schedule (TdAssembler *a, const TdRawHead *head)
{
  const TdRawSchedule *raw = (const TdRawSchedule *)head;

  if (raw->offset == 0)
    {
      free (a->schedule);
      a->schedule = raw->total <= MAX_SCHEDULE ? malloc ((size_t)raw->total + 8) : NULL;
      a->schedule_total = raw->total;
      a->schedule_have = 0;
      a->schedule_number = raw->schedule;
    }
  if (a->schedule == NULL || raw->schedule != a->schedule_number
      || raw->offset != a->schedule_have || raw->length > a->schedule_total - a->schedule_have)
    return;
  memcpy (a->schedule + a->schedule_have, raw->bytes, raw->length);
  a->schedule_have += raw->length;
  if (a->schedule_have < a->schedule_total)
    return;
  put_schedule (a, a->schedule, (size_t)a->schedule_total);
  free (a->schedule);
  a->schedule = NULL;
}
