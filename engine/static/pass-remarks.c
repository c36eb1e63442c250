/* What the passes did to a step, and why they left it as it is, in words for whoever looks at a
 * plan.  Nothing is decided here: the rules are those of the passes, asked again.
 *
 * SPDX-License-Identifier: MIT */
#include "pass.h"
#include "notify.h"

#include <stdio.h>
#include <string.h>

#define WHY(why, ...) snprintf (why, TD_WHY_SIZE, __VA_ARGS__)

enum
{
  MOST_LOOKED_AT = 4096 /* of a list, for one step's sake */
};

/* --- fused --- */

/* Is there another step of the list that could run in the same tiles? */
static bool
has_neighbour (const TdPlan *p, uint32_t list, const TdStep *step, const TdTileCall *call)
{
  const TdSteps *steps = td__plan_list (p, list);
  TdTileCall other;

  for (uint32_t i = 0; i < steps->n && i < MOST_LOOKED_AT; i++)
    {
      const TdStep *s = &steps->steps[i];

      if (s->kind == TD_STEP_GROUP
              ? p->groups[s->external].size == call->size
              : s != step && td__step_tile (p->s, s, &other) && other.size == call->size)
        return true;
    }
  return false;
}

static const char *
why_not_fused (const TdPlan *p, uint32_t list, const TdStep *step)
{
  TdTileCall call;
  const TdValue *out = td__node_value (p->s, td__step_out (p->s, step, 0));

  if (!p->switches.fuse)
    return "fusion is off";
  if (step->random && !td__step_tile (p->s, step, &call))
    return !td__step_drops (step) ? "it draws random numbers"
                                  : "its random numbers do not lie in its layout's order";
  if (!td__step_tile (p->s, step, &call))
    return "no kernel of its type and attributes runs tile by tile";
  if (call.broadcasts)
    return "an operand is repeated, and no row of the result";
  if (call.size == 0)
    return "it has no elements";
  if (out->kind != TD_VALUE_INTERIOR && out->kind != TD_VALUE_OUTPUT
      && out->kind != TD_VALUE_GRADIENT)
    return "it writes what lies outside";
  if (!has_neighbour (p, list, step, &call))
    return "no other step of its size";
  return "what lies between it and its like has to wait for it";
}

/* --- batched --- */

static bool
is_product (const TdStep *step)
{
  return step->kind == TD_STEP_OP && step->n_in >= 2 && step->n_out == 1
         && (strcmp (step->cls->name, "matmul") == 0
             || strcmp (step->cls->name, "linear") == 0);
}

static uint32_t
value_in (const TdPlan *p, const TdStep *step, uint32_t k)
{
  return p->s->nodes[td__step_in (p->s, step, k)].value;
}

static bool
plan_lays_out (const TdPlan *p, uint32_t value)
{
  return p->s->values[value].kind == TD_VALUE_INTERIOR && p->s->values[value].n_writers == 1;
}

/* Of products by one matrix, or that make one variable's gradient. */
static const char *
why_not_batched (const TdPlan *p, uint32_t list, const TdStep *step)
{
  const TdSteps *steps = td__plan_list (p, list);
  const bool gradient = step->external != TD_ABSENT;
  uint32_t n_like = 0;

  if (!p->switches.batch)
    return "batching is off";
  for (uint32_t i = 0; i < steps->n; i++)
    {
      const TdStep *other = &steps->steps[i];

      n_like += is_product (other) && other->cls == step->cls
                && (gradient ? other->external == step->external
                             : other->external == TD_ABSENT
                                   && value_in (p, other, 1) == value_in (p, step, 1));
    }
  if (n_like < 2)
    return gradient ? "no other product makes this gradient"
                    : "no other product has its matrix";
  if (!plan_lays_out (p, value_in (p, step, 0))
      || (gradient && !plan_lays_out (p, value_in (p, step, 1))))
    return "its rows are not the plan's to lay out";
  return "its like depend on each other, or lie elsewhere";
}

/* --- every step --- */

static uint32_t
batch_size (const TdPlan *p, uint32_t list, uint32_t trace_at)
{
  uint32_t n = 0;

  for (uint32_t k = 0; k < p->n_notes; k++)
    n += p->notes[k].pass == TD_PASS_BATCH && p->notes[k].list == list
         && p->notes[k].other == trace_at;
  return n;
}

void
td__plan_why (const TdPlan *p, uint32_t list, const TdStep *step, char why[TD_WHY_SIZE])
{
  const uint32_t n_batch = batch_size (p, list, step->trace_at);
  int n = 0;

  why[0] = '\0';
  if (step->kind != TD_STEP_OP)
    return;
  if (n_batch > 0)
    n = WHY (why, "batch of %u", n_batch);
  else if (is_product (step))
    n = WHY (why, "not batched: %s", why_not_batched (p, list, step));
  else if ((step->cls->flags & TD_OP_ELEMENTWISE) && step->n_out > 0)
    n = WHY (why, "not fused: %s", why_not_fused (p, list, step));
  if (step->pack > 0 && n >= 0 && n < TD_WHY_SIZE)
    snprintf (why + n, (size_t)(TD_WHY_SIZE - n), "%sits matrix is packed", n > 0 ? "; " : "");
}
