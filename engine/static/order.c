/* Scheduling the steps of a list again after some have been merged: a topological order.
 *
 * A step depends on the steps that write what it reads or writes, and on those that read what
 * it overwrites.  Besides, some steps keep their order among each other: those that propagate
 * gradients of one variable (the order of the sum), effects, reads by the host, and where links
 * and scopes begin and end.
 *
 * SPDX-License-Identifier: MIT */
#include "order.h"
#include "host-memory.h"
#include "pass.h"

#include <stdlib.h>

typedef struct
{
  uint32_t to, next; /* next: index + 1 of the next edge from the same step */
} Edge;

typedef struct
{
  const TdPlan *p;
  const TdSteps *steps;
  const uint32_t *joined;
  Edge *edges;
  uint32_t n_edges, capacity;
  uint32_t *first;    /* by step: index + 1 of its newest edge */
  uint32_t *n_before; /* by step: how many steps it still waits for */
  uint32_t *writer;   /* by value: step + 1 */
  uint32_t *readers;  /* by value: index + 1 of the newest read since the last write */
  Edge *reads;        /* to: the step; next */
  uint32_t n_reads, reads_capacity;
  uint32_t *propagates; /* by external: index + 1 of the last step that used its gradient */
  uint32_t seen, marks;
  bool cycle; /* two steps that are to be merged depend on each other */
} Order;

static void *
grown (void *items, uint32_t n, uint32_t *capacity, size_t bytes)
{
  if (n < *capacity)
    return items;
  *capacity = 2 * n + 64;
  items = td__xrealloc (items, *capacity * bytes);
  return items;
}

/* Add an edge: `from` (a step's index + 1; 0: none) comes before `to`. */
static void
before (Order *o, uint32_t from, uint32_t to)
{
  if (from == 0 || from - 1 == to)
    return;
  if (o->joined[from - 1] == o->joined[to])
    {
      o->cycle = true;
      return;
    }
  from = o->joined[from - 1];
  to = o->joined[to];
  o->edges = grown (o->edges, o->n_edges, &o->capacity, sizeof *o->edges);
  o->edges[o->n_edges] = (Edge){ to, o->first[from] };
  o->first[from] = ++o->n_edges;
  o->n_before[to]++;
}

static void
chain (Order *o, uint32_t *last, uint32_t i)
{
  if (*last == 0 || o->joined[*last - 1] != o->joined[i])
    before (o, *last, i);
  *last = i + 1;
}

static void
reads (Order *o, uint32_t value, uint32_t i)
{
  before (o, o->writer[value], i);
  o->reads = grown (o->reads, o->n_reads, &o->reads_capacity, sizeof *o->reads);
  o->reads[o->n_reads] = (Edge){ i, o->readers[value] };
  o->readers[value] = ++o->n_reads;
}

static void
writes (Order *o, uint32_t value, uint32_t i)
{
  before (o, o->writer[value], i);
  for (uint32_t r = o->readers[value]; r != 0; r = o->reads[r - 1].next)
    before (o, o->reads[r - 1].to + 1, i);
  o->readers[value] = 0;
  o->writer[value] = i + 1;
}

/* Call `how` for a value; where it consists of parts of a block, for each of those. */
static void
touches (Order *o, void (*how) (Order *o, uint32_t value, uint32_t i), uint32_t value,
         uint32_t i)
{
  const uint32_t b = td__plan_block (o->p, value);

  if (b == TD_ABSENT || !td__plan_covers (o->p, value))
    {
      how (o, value, i);
      return;
    }
  for (uint32_t k = 0; k < o->p->blocks[b].n_parts; k++)
    if (td__plan_covers_part (o->p, value, k))
      how (o, o->p->blocks[b].parts[k], i);
}

static void
relate (Order *o, uint32_t i)
{
  const TdSchedule *s = o->p->s;
  const TdStep *step = &o->steps->steps[i];

  if (!td__step_computes (step) && step->kind != TD_STEP_OP)
    chain (o, &o->marks, i);
  if (step->kind == TD_STEP_EFFECT || step->kind == TD_STEP_HOST_READ)
    chain (o, &o->seen, i);
  if (step->external != TD_ABSENT && step->kind != TD_STEP_GROUP)
    chain (o, &o->propagates[step->external], i);
  for (uint32_t k = 0; k < step->n_in; k++)
    touches (o, reads, s->nodes[td__step_in (s, step, k)].value, i);
  for (uint32_t k = 0; k < step->n_in; k++)
    if (td__step_writes_input (step, k))
      touches (o, writes, s->nodes[td__step_in (s, step, k)].value, i);
  for (uint32_t k = 0; k < step->n_out && td__step_computes (step); k++)
    touches (o, writes, s->nodes[td__step_out (s, step, k)].value, i);
}

/* A binary heap of steps that are ready; on top the one that stood first in the list. */
static void
push (uint32_t *heap, uint32_t *n, uint32_t step)
{
  uint32_t at = (*n)++;

  while (at > 0 && heap[(at - 1) / 2] > step)
    {
      heap[at] = heap[(at - 1) / 2];
      at = (at - 1) / 2;
    }
  heap[at] = step;
}

static uint32_t
pop (uint32_t *heap, uint32_t *n)
{
  const uint32_t top = heap[0], step = heap[--*n];
  uint32_t at = 0;

  for (;;)
    {
      uint32_t child = 2 * at + 1;

      if (child >= *n)
        break;
      if (child + 1 < *n && heap[child + 1] < heap[child])
        child++;
      if (heap[child] >= step)
        break;
      heap[at] = heap[child];
      at = child;
    }
  heap[at] = step;
  return top;
}

uint32_t
td__order_steps (const TdPlan *p, uint32_t list, const uint32_t *joined, const bool *dead,
                 uint32_t *order)
{
  const TdSteps *steps = td__plan_list (p, list);
  Order o = { .p = p, .steps = steps, .joined = joined };
  uint32_t *heap = td__plan_zeroed (steps->n, sizeof *heap), n_heap = 0, n = 0, n_wanted = 0;

  o.first = td__plan_zeroed (steps->n, sizeof *o.first);
  o.n_before = td__plan_zeroed (steps->n, sizeof *o.n_before);
  o.writer = td__plan_zeroed (p->s->n_values, sizeof *o.writer);
  o.readers = td__plan_zeroed (p->s->n_values, sizeof *o.readers);
  o.propagates = td__plan_zeroed (p->s->n_externals, sizeof *o.propagates);
  for (uint32_t i = 0; i < steps->n; i++)
    if (!dead[i])
      relate (&o, i);
  for (uint32_t i = 0; i < steps->n; i++)
    if (!dead[i] && joined[i] == i)
      {
        n_wanted++;
        if (o.n_before[i] == 0)
          push (heap, &n_heap, i);
      }
  while (n_heap > 0)
    {
      const uint32_t i = pop (heap, &n_heap);

      order[n++] = i;
      for (uint32_t e = o.first[i]; e != 0; e = o.edges[e - 1].next)
        if (--o.n_before[o.edges[e - 1].to] == 0)
          push (heap, &n_heap, o.edges[e - 1].to);
    }
  free (heap);
  free (o.edges);
  free (o.reads);
  free (o.first);
  free (o.n_before);
  free (o.writer);
  free (o.readers);
  free (o.propagates);
  return n == n_wanted && !o.cycle ? n : TD_ABSENT;
}
