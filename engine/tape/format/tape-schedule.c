/* Is a schedule well formed: numbers, groups, order of writing and reading, memory.  Lifetimes
 * are computed here too, for writers and for the check.
 * SPDX-License-Identifier: MIT */
#include "tape-private.h"
#include "tape-schedule.h"
#include "td-tape-reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_BACKWARDS = 64
};

#define NONE TD_TAPE_NO_GROUP

typedef struct
{
  const TdTapeSchedule *s;
  char *error;
  size_t n;
} Check;

#define WRONG(c, ...) (snprintf ((c)->error, (c)->n, __VA_ARGS__), false)

static bool
range_ok (uint32_t first, uint32_t n, uint32_t all)
{
  return first <= all && n <= all - first;
}

static bool
nodes_ok (const Check *c)
{
  const TdTapeSchedule *s = c->s;

  for (uint32_t i = 0; i < s->n_nodes; i++)
    {
      const TdTapeNode *n = &s->nodes[i];

      if (n->value >= s->n_values || n->ndim > TD_TAPE_MAX_NDIM
          || !range_ok (n->first_dim, n->ndim, s->n_dims) || n->dtype >= TD_TAPE_N_DTYPES)
        return WRONG (c, "node %u is of value %u of %u", i, n->value, s->n_values);
    }
  for (uint32_t i = 0; i < s->n_operands; i++)
    if (s->operands[i] >= s->n_nodes)
      return WRONG (c, "operand %u is node %u of %u", i, s->operands[i], s->n_nodes);
  return true;
}

static bool
values_ok (const Check *c)
{
  const TdTapeScheduleHead *head = &c->s->head;

  for (uint32_t i = 0; i < c->s->n_values; i++)
    {
      const TdTapeValue *v = &c->s->values[i];

      if (v->kind >= TD_TAPE_N_VALUE_KINDS)
        return WRONG (c, "value %u is of an unknown kind", i);
      if (v->offset == TD_TAPE_NO_OFFSET)
        continue;
      if (v->kind != TD_TAPE_VALUE_INTERIOR)
        return WRONG (c, "value %u is not the schedule's and has a place in its arena", i);
      if (v->offset > head->arena_bytes || v->bytes > head->arena_bytes - v->offset)
        return WRONG (c, "value %u lies outside the arena", i);
    }
  if (head->n_backwards > MAX_BACKWARDS)
    return WRONG (c, "it has %u backwards; %d are possible", head->n_backwards, MAX_BACKWARDS);
  return true;
}

/* Members follow their group, in its list, and run as it does. */
static bool
group_ok (const Check *c, uint32_t at)
{
  const TdTapeSchedule *s = c->s;
  uint32_t n = s->steps[at].group;

  if (n == 0 || n > s->n_steps - at - 1)
    return WRONG (c, "step %u is a group of %u steps that are not there", at, n);
  for (uint32_t i = at + 1; i <= at + n; i++)
    if (s->steps[i].group != at || s->steps[i].list != s->steps[at].list
        || s->steps[i].kind == TD_TAPE_STEP_GROUP || s->steps[i].fate != TD_TAPE_FATE_RUNS)
      return WRONG (c, "step %u is not of the group of step %u", i, at);
  return true;
}

static bool
steps_ok (const Check *c)
{
  const TdTapeSchedule *s = c->s;
  uint32_t list = 0, group = NONE;

  for (uint32_t i = 0; i < s->n_steps; i++)
    {
      const TdTapeStep *t = &s->steps[i];

      if (t->kind >= TD_TAPE_N_STEP_KINDS || t->fate >= TD_TAPE_N_FATES
          || t->phase >= TD_TAPE_N_PHASES)
        return WRONG (c, "step %u is of an unknown kind", i);
      if (t->list < list || t->list > s->head.n_backwards)
        return WRONG (c, "step %u is out of order", i);
      list = t->list;
      if (!range_ok (t->first_in, t->n_in, s->n_operands)
          || !range_ok (t->first_out, t->n_out, s->n_operands))
        return WRONG (c, "step %u has operands that are not there", i);
      if (t->kind == TD_TAPE_STEP_GROUP)
        {
          if (t->fate != TD_TAPE_FATE_RUNS || !group_ok (c, i))
            return t->fate == TD_TAPE_FATE_RUNS ? false : WRONG (c, "step %u is no group", i);
          group = i;
        }
      else if (t->group != NONE
               && (group == NONE || t->group != group || i > group + s->steps[group].group))
        return WRONG (c, "step %u is of a group that is not there", i);
    }
  return true;
}

/* ------------------------------------------------------------------------ lifetimes */

/* When a step runs: a member with its group; NONE: a pass took it out. */
static uint32_t
runs_at (const TdTapeSchedule *s, uint32_t i)
{
  const TdTapeStep *t = &s->steps[i];

  if (t->fate != TD_TAPE_FATE_RUNS)
    return NONE;
  return t->kind != TD_TAPE_STEP_GROUP && t->group != NONE ? t->group : i;
}

static void
use (TapeLife *life, const TdTapeSchedule *s, uint32_t operand, uint32_t at)
{
  TapeLife *l = &life[s->nodes[s->operands[operand]].value];

  if (l->first == NONE)
    l->first = at;
  l->last = at;
}

/* In the forward and backward `list`; 0: in all lists. */
static void
lives (const TdTapeSchedule *s, uint32_t list, TapeLife *life)
{
  for (uint32_t i = 0; i < s->n_values; i++)
    life[i] = (TapeLife){ NONE, NONE };
  for (uint32_t i = 0; i < s->n_steps; i++)
    {
      const TdTapeStep *t = &s->steps[i];
      uint32_t at = runs_at (s, i);

      if (at == NONE || (list != 0 && t->list != 0 && t->list != list))
        continue;
      for (uint32_t k = 0; k < t->n_in; k++)
        use (life, s, t->first_in + k, at);
      for (uint32_t k = 0; k < t->n_out; k++)
        use (life, s, t->first_out + k, at);
    }
}

void
td__tape_schedule_lives (const TdTapeSchedule *s, TapeLife *life)
{
  lives (s, 0, life);
}

static bool
lives_ok (const Check *c, TapeLife *life)
{
  lives (c->s, 0, life);
  for (uint32_t i = 0; i < c->s->n_values; i++)
    if (c->s->values[i].first != life[i].first || c->s->values[i].last != life[i].last)
      return WRONG (c, "value %u does not live from step %u to step %u", i,
                    c->s->values[i].first, c->s->values[i].last);
  return true;
}

/* Written before it is read, in the forward and backward `list`. */
static bool
order_ok (const Check *c, uint32_t list, bool *written)
{
  const TdTapeSchedule *s = c->s;

  for (uint32_t i = 0; i < s->n_values; i++)
    written[i] = s->values[i].kind == TD_TAPE_VALUE_EXTERNAL
                 || s->values[i].kind == TD_TAPE_VALUE_CONSTANT
                 || s->values[i].kind == TD_TAPE_VALUE_GY;
  for (uint32_t i = 0; i < s->n_steps; i++)
    {
      const TdTapeStep *t = &s->steps[i];

      if (runs_at (s, i) == NONE || (t->list != 0 && t->list != list))
        continue;
      for (uint32_t k = 0; k < t->n_in; k++)
        if (!written[s->nodes[s->operands[t->first_in + k]].value])
          return WRONG (c, "step %u reads value %u before it is written", i,
                        s->nodes[s->operands[t->first_in + k]].value);
      for (uint32_t k = 0; k < t->n_out; k++)
        written[s->nodes[s->operands[t->first_out + k]].value] = true;
    }
  return true;
}

/* --------------------------------------------------------------------------- memory */

typedef struct
{
  uint64_t offset, end;
  uint32_t first, last, value;
} Place;

static int
by_first (const void *a, const void *b)
{
  const Place *x = a, *y = b;

  if (x->first != y->first)
    return x->first < y->first ? -1 : 1;
  return x->value < y->value ? -1 : x->value > y->value;
}

/* The place where the first of the sorted places ends behind `offset`. */
static uint32_t
find_place (const Place *set, uint32_t n, uint64_t offset)
{
  uint32_t lo = 0, hi = n;

  while (lo < hi)
    {
      uint32_t mid = lo + (hi - lo) / 2;

      if (set[mid].end <= offset)
        lo = mid + 1;
      else
        hi = mid;
    }
  return lo;
}

/* Places of `set` never overlap.  What ended may be overwritten; a step's output may take the
 * place of an input that ends there. */
static bool
places_ok (const Check *c, Place *all, uint32_t n, Place *set)
{
  uint32_t n_set = 0;

  qsort (all, n, sizeof *all, by_first);
  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t at = find_place (set, n_set, all[i].offset), end = at;

      for (; end < n_set && set[end].offset < all[i].end; end++)
        if (set[end].last > all[i].first
            || (set[end].last == all[i].first && set[end].offset != all[i].offset))
          return WRONG (c, "values %u and %u overlap at step %u", set[end].value, all[i].value,
                        all[i].first);
      memmove (set + at + 1, set + end, (n_set - end) * sizeof *set);
      n_set = n_set - (end - at) + 1;
      set[at] = all[i];
    }
  return true;
}

static bool
memory_ok (const Check *c, uint32_t list, TapeLife *life, Place *all, Place *set)
{
  uint32_t n = 0;

  lives (c->s, list, life);
  for (uint32_t i = 0; i < c->s->n_values; i++)
    {
      const TdTapeValue *v = &c->s->values[i];

      if (v->offset != TD_TAPE_NO_OFFSET && v->bytes > 0 && life[i].first != NONE)
        all[n++] = (Place){ v->offset, v->offset + v->bytes, life[i].first, life[i].last, i };
    }
  return places_ok (c, all, n, set);
}

static bool
deep_ok (const Check *c)
{
  const TdTapeSchedule *s = c->s;
  size_t n = (size_t)s->n_values + 1;
  TapeLife *life = malloc (n * sizeof *life);
  Place *all = malloc (n * sizeof *all), *set = malloc ((n + 1) * sizeof *set);
  bool *written = malloc (n * sizeof *written), ok;

  ok = life != NULL && all != NULL && set != NULL && written != NULL;
  if (!ok)
    snprintf (c->error, c->n, "no memory");
  ok = ok && lives_ok (c, life);
  for (uint32_t list = s->head.n_backwards > 0 ? 1 : 0; ok && list <= s->head.n_backwards;
       list++)
    ok = order_ok (c, list, written) && memory_ok (c, list, life, all, set);
  free (life);
  free (all);
  free (set);
  free (written);
  return ok;
}

bool
td_tape_schedule_verify (const TdTapeSchedule *schedule, char *error, size_t n)
{
  const Check c = { .s = schedule, .error = error, .n = n };

  return nodes_ok (&c) && values_ok (&c) && steps_ok (&c) && deep_ok (&c);
}
