/* Dead code elimination: steps whose results nothing uses are removed.
 *
 * Backwards come before the forward, because they use what it saves.  An operation that can
 * fail because of the values it gets (an index out of range), or that the program has defined
 * itself, is never removed.
 *
 * SPDX-License-Identifier: MIT */
#include "pass.h"

#include <stdlib.h>

/* Whether the step has no effect but its outputs. */
static bool
is_pure (const TdSchedule *s, const TdStep *step)
{
  const unsigned seen = TD_OP_STATEFUL | TD_OP_HOST | TD_OP_CAPTURES | TD_OP_VIEW;

  if (step->kind == TD_STEP_FILL || step->kind == TD_STEP_COPY)
    return true;
  if (step->kind != TD_STEP_OP || step->external != TD_ABSENT || (step->cls->flags & seen)
      || td_op_class_find (step->cls->name) != step->cls)
    return false;
  for (uint32_t k = 0; k < step->n_in; k++)
    if (s->nodes[td__step_in (s, step, k)].dtype > TD_BF16)
      return false;
  return true;
}

static bool
is_needed (const TdPlan *p, const TdStep *step, const bool *needed)
{
  const TdSchedule *s = p->s;

  if (!is_pure (s, step))
    {
      /* accumulation into memory of the schedule is removed too when nothing reads the sum */
      if (step->kind != TD_STEP_OP || step->cls != &td__add_into_class)
        return true;
      return td__node_value (s, td__step_in (s, step, 0))->kind != TD_VALUE_INTERIOR
             || needed[s->nodes[td__step_in (s, step, 0)].value];
    }
  for (uint32_t k = 0; k < step->n_out; k++)
    {
      const uint32_t value = s->nodes[td__step_out (s, step, k)].value;

      if (needed[value] || s->values[value].kind != TD_VALUE_INTERIOR)
        return true;
    }
  return false;
}

static void
prune_list (TdPlan *p, uint32_t list, bool *needed)
{
  const TdSchedule *s = p->s;
  TdSteps *steps = td__plan_list (p, list);
  bool *dead = td__plan_zeroed (steps->n, sizeof *dead);

  for (uint32_t i = steps->n; i-- > 0;)
    {
      const TdStep *step = &steps->steps[i];

      if (!td__step_computes (step))
        continue;
      dead[i] = !is_needed (p, step, needed);
      if (dead[i])
        {
          td__plan_note (p, TD_PASS_PRUNE, list, step->trace_at, TD_ABSENT);
          p->n_pruned++;
          continue;
        }
      for (uint32_t k = 0; k < step->n_in; k++)
        needed[s->nodes[td__step_in (s, step, k)].value] = true;
    }
  td__plan_remove (p, list, dead);
  free (dead);
}

void
td__pass_prune (TdPlan *p)
{
  bool *needed = td__plan_zeroed (p->s->n_values, sizeof *needed);

  for (uint32_t k = 0; k < p->s->n_outputs; k++)
    needed[p->s->nodes[p->s->outputs[k].node].value] = true;
  for (uint32_t b = p->s->n_backwards; b > 0; b--)
    prune_list (p, b, needed);
  prune_list (p, 0, needed);
  free (needed);
}
