/* Common subexpression elimination: the same operation on the same values is computed once.
 *
 * Only values that are written once are considered, as others could change between the two
 * operations.  Steps of a backward are not replaced by steps of the forward, because the result
 * would have to be kept in memory until then.
 *
 * SPDX-License-Identifier: MIT */
#include "pass.h"

#include <stdlib.h>
#include <string.h>

enum
{
  N_BUCKETS = 1024
};

typedef struct
{
  TdPlan *p;
  uint32_t *same;   /* by value: the equal value that replaces it; itself if none */
  uint32_t *bucket; /* by hash: index + 1 of the newest step */
  uint32_t *next;   /* by step: index + 1 of an older one in its bucket */
} Search;

static uint32_t
value_of (const Search *c, uint32_t node)
{
  return c->same[c->p->s->nodes[node].value];
}

static bool
stays (const TdValue *v)
{
  return v->n_writers <= 1 && !v->is_state;
}

static bool
can_merge (const TdSchedule *s, const TdStep *step)
{
  const unsigned seen
      = TD_OP_STATEFUL | TD_OP_HOST | TD_OP_CAPTURES | TD_OP_VIEW | TD_OP_RANDOM;

  if (step->kind != TD_STEP_OP || step->random || step->accumulate
      || step->external != TD_ABSENT || step->n_out == 0 || (step->cls->flags & seen)
      || td_op_class_find (step->cls->name) != step->cls)
    return false;
  for (uint32_t k = 0; k < step->n_in; k++)
    if (!stays (td__node_value (s, td__step_in (s, step, k))))
      return false;
  for (uint32_t k = 0; k < step->n_out; k++)
    {
      const TdValue *v = td__node_value (s, td__step_out (s, step, k));

      if (v->kind != TD_VALUE_INTERIOR || v->n_writers != 1)
        return false;
    }
  return true;
}

static bool
same_kind (const TdNodeInfo *a, const TdNodeInfo *b)
{
  return a->dtype == b->dtype && a->layout == b->layout
         && td_shape_equal (&a->shape, &b->shape);
}

static bool
is_same (const Search *c, const TdStep *a, const TdStep *b)
{
  const TdSchedule *s = c->p->s;

  if (a->cls != b->cls || a->n_in != b->n_in || a->n_out != b->n_out
      || (a->cls->attrs_size > 0 && memcmp (a->attrs, b->attrs, a->cls->attrs_size) != 0))
    return false;
  for (uint32_t k = 0; k < a->n_in; k++)
    if (value_of (c, td__step_in (s, a, k)) != value_of (c, td__step_in (s, b, k))
        || !same_kind (&s->nodes[td__step_in (s, a, k)], &s->nodes[td__step_in (s, b, k)]))
      return false;
  for (uint32_t k = 0; k < a->n_out; k++)
    if (!same_kind (&s->nodes[td__step_out (s, a, k)], &s->nodes[td__step_out (s, b, k)]))
      return false;
  return true;
}

static uint32_t
hash_of (const Search *c, const TdStep *step)
{
  uint64_t h = (uintptr_t)step->cls;

  for (uint32_t k = 0; k < step->n_in; k++)
    h = (h ^ value_of (c, td__step_in (c->p->s, step, k))) * 0x9E3779B97F4A7C15u;
  return (uint32_t)(h >> 40) % N_BUCKETS;
}

static void
merge_list (Search *c, uint32_t list)
{
  const TdSchedule *s = c->p->s;
  TdSteps *steps = td__plan_list (c->p, list);
  bool *dead = td__plan_zeroed (steps->n, sizeof *dead);

  memset (c->bucket, 0, N_BUCKETS * sizeof *c->bucket);
  c->next = td__plan_zeroed (steps->n, sizeof *c->next);
  for (uint32_t i = 0; i < steps->n; i++)
    {
      const TdStep *step = &steps->steps[i], *other = NULL;
      uint32_t h;

      if (!can_merge (s, step))
        continue;
      h = hash_of (c, step);
      for (uint32_t at = c->bucket[h]; at != 0 && other == NULL; at = c->next[at - 1])
        if (is_same (c, &steps->steps[at - 1], step))
          other = &steps->steps[at - 1];
      if (other == NULL)
        {
          c->next[i] = c->bucket[h];
          c->bucket[h] = i + 1;
          continue;
        }
      for (uint32_t k = 0; k < step->n_out; k++)
        c->same[s->nodes[td__step_out (s, step, k)].value]
            = value_of (c, td__step_out (s, other, k));
      dead[i] = true;
      td__plan_note (c->p, TD_PASS_CSE, list, step->trace_at, other->trace_at);
      c->p->n_merged++;
    }
  td__plan_remove (c->p, list, dead);
  free (c->next);
  free (dead);
}

void
td__pass_cse (TdPlan *p)
{
  TdSchedule *s = p->s;
  Search c = { .p = p };

  c.same = td__plan_zeroed (s->n_values, sizeof *c.same);
  c.bucket = td__plan_zeroed (N_BUCKETS, sizeof *c.bucket);
  for (uint32_t v = 0; v < s->n_values; v++)
    c.same[v] = v;
  for (uint32_t list = 0; list <= s->n_backwards; list++)
    merge_list (&c, list);
  for (uint32_t n = 0; n < s->n_nodes; n++)
    {
      const uint32_t value = s->nodes[n].value;

      s->values[c.same[value]].is_saved |= s->values[value].is_saved;
      s->nodes[n].value = c.same[value];
    }
  free (c.same);
  free (c.bucket);
}
