/* Plans: the copy that passes work on, and memory for every value.
 *
 * SPDX-License-Identifier: MIT */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

enum
{
  ALIGN = 64
};

static void *
copy_of (const void *items, size_t n, size_t bytes)
{
  void *copy = malloc (n * bytes + 1);

  if (copy == NULL)
    abort ();
  if (n > 0)
    memcpy (copy, items, n * bytes);
  return copy;
}

static TdSteps
copy_list (const TdSteps *list)
{
  return (TdSteps){ .steps = copy_of (list->steps, list->n, sizeof *list->steps),
                    .n = list->n,
                    .capacity = list->n,
                    .n_events = list->n_events };
}

/* Tables and lists are the copy's own; what steps point to stays the schedule's. */
static TdSchedule *
copy_schedule (const TdSchedule *s)
{
  TdSchedule *c = copy_of (s, 1, sizeof *s);

  c->nodes = copy_of (s->nodes, s->n_nodes, sizeof *s->nodes);
  c->nodes_capacity = s->n_nodes;
  c->values = copy_of (s->values, s->n_values, sizeof *s->values);
  c->values_capacity = s->n_values;
  c->operands = copy_of (s->operands, s->n_operands, sizeof *s->operands);
  c->operands_capacity = s->n_operands;
  c->forward = copy_list (&s->forward);
  c->backwards = copy_of (s->backwards, s->n_backwards, sizeof *s->backwards);
  for (uint32_t i = 0; i < s->n_backwards; i++)
    c->backwards[i].list = copy_list (&s->backwards[i].list);
  return c;
}

/* Every value has memory of its own. */
static void
place (TdPlan *p)
{
  TdSchedule *s = p->s;

  p->offsets = malloc ((s->n_values + 1) * sizeof *p->offsets);
  if (p->offsets == NULL)
    abort ();
  for (uint32_t i = 0; i < s->n_values; i++)
    {
      p->offsets[i] = SIZE_MAX;
      if (s->values[i].kind != TD_VALUE_INTERIOR)
        continue;
      p->offsets[i] = p->arena_bytes;
      p->arena_bytes += (s->values[i].bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
  p->lower_bound = p->arena_bytes;
}

TdPlan *
td__plan_new (const TdSchedule *s, const TdPassSwitches *switches)
{
  TdPlan *p = calloc (1, sizeof *p);

  if (p == NULL)
    abort ();
  (void)switches;
  p->refs = 1;
  p->s = copy_schedule (s);
  place (p);
  return p;
}

void
td__plan_unref (TdPlan *p)
{
  if (p == NULL || --p->refs > 0)
    return;
  for (uint32_t i = 0; i < p->n_groups; i++)
    {
      free (p->groups[i].members);
      free (p->groups[i].interior);
    }
  free (p->groups);
  free (p->offsets);
  for (uint32_t i = 0; i < p->s->n_backwards; i++)
    free (p->s->backwards[i].list.steps);
  free (p->s->backwards);
  free (p->s->forward.steps);
  free (p->s->operands);
  free (p->s->values);
  free (p->s->nodes);
  free (p->s);
  free (p);
}
