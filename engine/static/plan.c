/* Plans: the copy that passes work on, and their order.
 *
 * SPDX-License-Identifier: MIT */
#include "pass.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

void *
td__plan_zeroed (size_t n, size_t bytes)
{
  void *memory = td__xcalloc (n + 1, bytes);

  return memory;
}

void
td__plan_note (TdPlan *p, TdPassKind pass, uint32_t list, uint32_t step, uint32_t other)
{
  if (p->n_notes % 64 == 0)
    {
      p->notes = td__xrealloc (p->notes, (p->n_notes + 64) * sizeof *p->notes);
    }
  p->notes[p->n_notes++] = (TdPassNote){ (uint8_t)pass, list, step, other };
}

void
td__plan_remove (TdPlan *p, uint32_t list, const bool *dead)
{
  TdSteps *steps = td__plan_list (p, list);
  uint32_t n = 0;

  for (uint32_t i = 0; i < steps->n; i++)
    if (!dead[i])
      steps->steps[n++] = steps->steps[i];
  steps->n = n;
}

uint32_t *
td__plan_touches (const TdPlan *p)
{
  const TdSchedule *s = p->s;
  uint32_t *n = td__plan_zeroed (s->n_values, sizeof *n);

  for (uint32_t list = 0; list <= s->n_backwards; list++)
    {
      const TdSteps *steps = td__plan_list (p, list);

      for (uint32_t i = 0; i < steps->n; i++)
        {
          const TdStep *step = &steps->steps[i];

          if (!td__step_computes (step))
            continue;
          for (uint32_t k = 0; k < step->n_in; k++)
            n[s->nodes[td__step_in (s, step, k)].value]++;
          for (uint32_t k = 0; k < step->n_out; k++)
            n[s->nodes[td__step_out (s, step, k)].value]++;
        }
    }
  return n;
}

static void *
copy_of (const void *items, size_t n, size_t bytes)
{
  void *copy = td__xmalloc (n * bytes + 1);

  if (n > 0)
    memcpy (copy, items, n * bytes);
  return copy;
}

static TdSteps
copy_list (const TdSteps *list)
{
  TdSteps copy = { .steps = copy_of (list->steps, list->n, sizeof *list->steps),
                   .n = list->n,
                   .capacity = list->n,
                   .n_events = list->n_events };

  for (uint32_t i = 0; i < copy.n; i++)
    copy.steps[i].trace_at = i;
  return copy;
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
  c->constants = copy_of (s->constants, s->n_constants, sizeof *s->constants);
  c->forward = copy_list (&s->forward);
  c->backwards = copy_of (s->backwards, s->n_backwards, sizeof *s->backwards);
  for (uint32_t i = 0; i < s->n_backwards; i++)
    c->backwards[i].list = copy_list (&s->backwards[i].list);
  return c;
}

TdPlan *
td__plan_new (const TdSchedule *s, const TdPassSwitches *switches)
{
  TdPlan *p = td__plan_zeroed (1, sizeof *p);

  p->refs = 1;
  p->switches = *switches;
  p->s = copy_schedule (s);
  p->graphs = switches->graphs && s->device != NULL && s->device->ops->graphs != NULL;
  p->n_trace_constants = s->n_constants;
  p->n_trace_values = s->n_values;
  if (switches->fold)
    td__pass_fold (p);
  if (switches->cse)
    td__pass_cse (p);
  if (switches->prune)
    td__pass_prune (p);
  if (switches->batch)
    td__pass_batch (p);
  if (switches->pack)
    td__pass_pack (p);
  if (switches->fuse)
    {
      td__pass_end (p);
      td__pass_rows (p);
      td__pass_fuse (p);
    }
  td__pass_memory (p, switches->in_place, switches->plan);
  td__pass_pack_place (p);
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
      free (p->groups[i].externals);
      td__tiles_free (p->groups[i].tiles);
    }
  free (p->groups);
  for (uint32_t i = 0; i < p->n_blocks; i++)
    free (p->blocks[i].parts);
  free (p->blocks);
  free (p->packs);
  free (p->block);
  free (p->inner);
  free (p->offsets);
  free (p->lives);
  free (p->home);
  free (p->notes);
  for (uint32_t i = p->n_trace_constants; i < p->s->n_constants; i++)
    td__buffer_unref (p->s->constants[i].buffer);
  free (p->s->constants);
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
