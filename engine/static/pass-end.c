/* End: a product whose result only relu takes, or relu_grad, does that itself before it leaves
 * its numbers.  What was between them is never written.
 *
 * The product moves to where the other stood; nothing between them writes what it reads.
 * SPDX-License-Identifier: MIT */
#include "pass.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdPlan *p;
  uint32_t list;
  uint32_t *n_touches; /* by value, in all lists */
} End;

static uint32_t
value_in (const TdSchedule *s, const TdStep *step, uint32_t k)
{
  return s->nodes[td__step_in (s, step, k)].value;
}

static uint32_t
value_out (const TdSchedule *s, const TdStep *step, uint32_t k)
{
  return s->nodes[td__step_out (s, step, k)].value;
}

static void
count_touches (End *e)
{
  const TdSchedule *s = e->p->s;

  for (uint32_t list = 0; list <= s->n_backwards; list++)
    {
      const TdSteps *steps = td__plan_list (e->p, list);

      for (uint32_t i = 0; i < steps->n; i++)
        {
          const TdStep *step = &steps->steps[i];

          if (!td__step_computes (step))
            continue;
          for (uint32_t k = 0; k < step->n_in; k++)
            e->n_touches[value_in (s, step, k)]++;
          for (uint32_t k = 0; k < step->n_out; k++)
            e->n_touches[value_out (s, step, k)]++;
        }
    }
}

static bool
is_own (const TdStep *step)
{
  return step->kind == TD_STEP_OP && td_op_class_find (step->cls->name) == step->cls;
}

/* A product by itself, in a type that the device's products know, whose result one step takes.
 */
static bool
is_product (const End *e, const TdStep *step)
{
  const TdSchedule *s = e->p->s;
  const TdNodeInfo *y;

  if (!is_own (step) || !(step->cls->flags & TD_OP_ENDS) || step->accumulate || step->n_out != 1
      || step->external != TD_ABSENT)
    return false;
  y = &s->nodes[td__step_out (s, step, 0)];
  return td__bit (s->device->ops->ends_products, y->dtype) && td__size (&y->shape) > 0
         && s->values[y->value].kind == TD_VALUE_INTERIOR && s->values[y->value].n_writers == 1
         && e->n_touches[y->value] == 2 && td__plan_block (e->p, y->value) == TD_ABSENT;
}

/* Say whether the step is the relu or the relu_grad of the product that makes `value`. */
static bool
takes (const TdSchedule *s, const TdStep *step, uint32_t value, TdGroup *g)
{
  const bool grad = is_own (step) && strcmp (step->cls->name, "relu_grad") == 0;

  g->relu = is_own (step) && strcmp (step->cls->name, "relu") == 0;
  if ((!g->relu && !grad) || step->accumulate || step->external != TD_ABSENT
      || s->values[value_out (s, step, 0)].n_writers != 1)
    return false;
  return g->relu || (value_in (s, step, 1) == value && value_in (s, step, 0) != value);
}

static bool
reads (const TdSchedule *s, const TdStep *step, uint32_t value)
{
  for (uint32_t k = 0; k < step->n_in; k++)
    if (value_in (s, step, k) == value)
      return true;
  return false;
}

/* Does the step change what the product reads? */
static bool
disturbs (const End *e, const TdStep *step, const TdStep *product)
{
  const TdSchedule *s = e->p->s;

  if (step->kind == TD_STEP_EFFECT)
    return true;
  for (uint32_t k = 0; k < step->n_out; k++)
    if (td__plan_block (e->p, value_out (s, step, k)) != TD_ABSENT
        || reads (s, product, value_out (s, step, k)))
      return true;
  for (uint32_t k = 0; k < step->n_in; k++)
    if (td__step_writes_input (step, k) && reads (s, product, value_in (s, step, k)))
      return true;
  return false;
}

/* The step that takes the product of step i, or the length of the list. */
static uint32_t
find_taker (const End *e, uint32_t i, TdGroup *g)
{
  const TdSchedule *s = e->p->s;
  const TdSteps *list = td__plan_list (e->p, e->list);
  const TdStep *product = &list->steps[i];

  for (uint32_t k = i + 1; k < list->n; k++)
    {
      const TdStep *step = &list->steps[k];

      if (!td__step_computes (step))
        continue;
      if (reads (s, step, value_out (s, product, 0)))
        return takes (s, step, value_out (s, product, 0), g) ? k : list->n;
      if (disturbs (e, step, product))
        return list->n;
    }
  return list->n;
}

/* Steps i and k as one group, in k's place: operands are the product's, then what relu_grad
 * looks at; the result is k's. */
static void
join (End *e, uint32_t i, uint32_t k, TdGroup g)
{
  TdPlan *p = e->p;
  TdSchedule *s = p->s;
  TdStep *steps = td__plan_list (p, e->list)->steps, built = steps[k];
  const uint32_t n_in = steps[i].n_in + !g.relu, at = td__schedule_operands (s, n_in + 1);

  for (uint32_t n = 0; n < steps[i].n_in; n++)
    s->operands[at + n] = td__step_in (s, &steps[i], n);
  g.above = g.relu ? TD_ABSENT : steps[i].n_in;
  if (!g.relu)
    s->operands[at + g.above] = td__step_in (s, &steps[k], 0);
  s->operands[at + n_in] = td__step_out (s, &steps[k], 0);
  g.members = td__plan_zeroed (2, sizeof *g.members);
  g.n_members = 2;
  g.members[0] = steps[i];
  g.members[1] = steps[k];
  g.interior = td__plan_zeroed (1, sizeof *g.interior);
  g.interior[g.n_interior++] = value_out (s, &steps[i], 0);
  g.externals = td__plan_zeroed (1, sizeof *g.externals);
  g.externals[0] = TD_ABSENT;
  g.size = td__size (&s->nodes[td__step_out (s, &steps[k], 0)].shape);
  td__plan_note (p, TD_PASS_FUSE, e->list, steps[i].trace_at, p->n_groups);
  td__plan_note (p, TD_PASS_FUSE, e->list, steps[k].trace_at, p->n_groups);
  built.kind = TD_STEP_GROUP;
  built.cls = NULL;
  built.attrs = NULL;
  built.in = at;
  built.n_in = n_in;
  built.out = at + n_in;
  built.n_out = 1;
  built.external = p->n_groups;
  built.pack = steps[i].pack;
  steps[k] = built;
  p->groups = realloc (p->groups, (p->n_groups + 1) * sizeof *p->groups);
  if (p->groups == NULL)
    abort ();
  p->groups[p->n_groups++] = g;
  p->n_fused += 2;
}

static void
end_list (End *e)
{
  const TdSteps *list = td__plan_list (e->p, e->list);
  bool *gone = td__plan_zeroed (list->n, sizeof *gone);

  for (uint32_t i = 0; i < list->n; i++)
    {
      TdGroup g = { .above = TD_ABSENT };
      uint32_t k;

      if (!is_product (e, &list->steps[i]) || (k = find_taker (e, i, &g)) == list->n)
        continue;
      join (e, i, k, g);
      gone[i] = true;
    }
  td__plan_remove (e->p, e->list, gone);
  free (gone);
}

void
td__pass_end (TdPlan *p)
{
  End e = { .p = p };

  if (p->s->device == NULL || p->s->device->ops->ends_products == 0)
    return;
  e.n_touches = td__plan_zeroed (p->s->n_values, sizeof *e.n_touches);
  count_touches (&e);
  for (e.list = 0; e.list <= p->s->n_backwards; e.list++)
    end_list (&e);
  free (e.n_touches);
}
