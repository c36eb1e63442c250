/* Fusion of row normalisations with a sum.
 *
 * A sum whose result is normalised next (a residual stream) is computed by the normalisation's
 * kernel while it reads its rows.  A sum of a normalisation's gradient and another array is
 * computed by the gradient's kernel while it writes.  The sum itself is written only if another
 * step needs it.
 *
 * The first kind of sum moves down the list to the normalisation.  Of the second kind the sum
 * moves up to the gradient, or the gradient down to the sum.  Either is possible only if no
 * step between depends on, or changes, what the moved step reads and writes.
 *
 * SPDX-License-Identifier: MIT */
#include "pass.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdPlan *p;
  uint32_t list;
  uint32_t *n_touches; /* by value, in all lists */
  bool *gone;          /* by step of the list */
} Rows;

static const TdStep *
step_at (const Rows *r, uint32_t i)
{
  return &td__plan_list (r->p, r->list)->steps[i];
}

/* Whether the step is still in the list and in no group. */
static bool
runs (const Rows *r, uint32_t i)
{
  return !r->gone[i] && td__step_computes (step_at (r, i));
}

static uint32_t
value_in (const Rows *r, const TdStep *step, uint32_t k)
{
  return r->p->s->nodes[td__step_in (r->p->s, step, k)].value;
}

static uint32_t
value_out (const Rows *r, const TdStep *step, uint32_t k)
{
  return r->p->s->nodes[td__step_out (r->p->s, step, k)].value;
}

/* Whether the step is one of these operations of ours, in no group and not accumulating. */
static bool
is_own (const TdStep *step, const char *const *names)
{
  if (step->kind != TD_STEP_OP || step->accumulate || step->external != TD_ABSENT
      || td_op_class_find (step->cls->name) != step->cls)
    return false;
  for (uint32_t k = 0; names[k] != NULL; k++)
    if (strcmp (step->cls->name, names[k]) == 0)
      return true;
  return false;
}

static const char *const sums[] = { "add", NULL };
static const char *const norms[]
    = { "layer_normalization", "rms_normalization", "group_normalization", NULL };
static const char *const norm_grads[] = { "layer_normalization_grad", "rms_normalization_grad",
                                          "group_normalization_grad", NULL };

/* Whether two nodes have the same rows: shape, dtype and layout. */
static bool
are_alike (const TdSchedule *s, uint32_t a, uint32_t b)
{
  const TdNodeInfo *x = &s->nodes[a], *y = &s->nodes[b];

  return x->dtype == y->dtype && x->layout == TD_ROW_MAJOR && y->layout == TD_ROW_MAJOR
         && td_shape_equal (&x->shape, &y->shape);
}

/* Whether a value lies in the arena and is written by one step, as a whole. */
static bool
is_made_once (const Rows *r, uint32_t value)
{
  const TdValue *v = &r->p->s->values[value];

  return (v->kind == TD_VALUE_INTERIOR || v->kind == TD_VALUE_OUTPUT) && v->n_writers == 1
         && td__plan_block (r->p, value) == TD_ABSENT;
}

static bool
reads (const Rows *r, const TdStep *step, uint32_t value)
{
  for (uint32_t k = 0; k < step->n_in; k++)
    if (value_in (r, step, k) == value)
      return true;
  return false;
}

/* Whether the step writes the value, be it as a part of a block. */
static bool
writes (const Rows *r, const TdStep *step, uint32_t value)
{
  const uint32_t block = td__plan_block (r->p, value);

  if (step->kind == TD_STEP_EFFECT)
    return true;
  for (uint32_t k = 0; k < step->n_in + step->n_out; k++)
    {
      const bool out = k >= step->n_in;
      const uint32_t other = out ? value_out (r, step, k - step->n_in) : value_in (r, step, k);

      if ((out || td__step_writes_input (step, k))
          && (other == value || (block != TD_ABSENT && td__plan_block (r->p, other) == block)))
        return true;
    }
  return false;
}

static bool
touches (const Rows *r, const TdStep *step, uint32_t value)
{
  return reads (r, step, value) || writes (r, step, value);
}

/* --- groups --- */

/* Two steps of a list that become one, at the place of one of them. */
typedef struct
{
  uint32_t main, sum, at;
  uint32_t in, added; /* nodes: first and last input of the kernel, */
  uint32_t out, more; /* first output, and last one or TD_ABSENT */
} Pair;

static void
join (Rows *r, const Pair *pair)
{
  TdPlan *p = r->p;
  TdSchedule *s = p->s;
  TdStep *steps = td__plan_list (p, r->list)->steps, built = steps[pair->main];
  const uint32_t main = pair->main < pair->sum ? 0 : 1; /* in the order of the list */
  const bool more = pair->more != TD_ABSENT;
  const uint32_t n_in = built.n_in + 1, n_out = built.n_out + more,
                 place = td__schedule_operands (s, n_in + n_out);
  TdGroup g = { .n_members = 2,
                .rows = true,
                .main = main,
                .added = built.n_in,
                .above = TD_ABSENT,
                .sum = more ? built.n_out : TD_ABSENT };

  for (uint32_t k = 0; k < built.n_in; k++)
    s->operands[place + k] = k == 0 ? pair->in : td__step_in (s, &built, k);
  s->operands[place + g.added] = pair->added;
  for (uint32_t k = 0; k < built.n_out; k++)
    s->operands[place + n_in + k] = k == 0 ? pair->out : td__step_out (s, &built, k);
  if (more)
    s->operands[place + n_in + g.sum] = pair->more;
  g.members = td__plan_zeroed (2, sizeof *g.members);
  g.members[main] = steps[pair->main];
  g.members[!main] = steps[pair->sum];
  g.interior = td__plan_zeroed (1, sizeof *g.interior);
  if (!more)
    g.interior[g.n_interior++] = value_out (r, &g.members[0], 0);
  g.externals = td__plan_zeroed (n_out, sizeof *g.externals);
  memset (g.externals, 0xFF, n_out * sizeof *g.externals);
  g.size = td__size (&s->nodes[pair->out].shape);
  for (uint32_t k = 0; k < 2; k++)
    td__plan_note (p, TD_PASS_FUSE, r->list, g.members[k].trace_at, p->n_groups);
  built.kind = TD_STEP_GROUP;
  built.cls = NULL;
  built.attrs = NULL;
  built.in = place;
  built.n_in = n_in;
  built.out = place + n_in;
  built.n_out = n_out;
  built.external = p->n_groups;
  built.trace_at = steps[pair->at].trace_at;
  r->gone[pair->main] = r->gone[pair->sum] = true;
  r->gone[pair->at] = false;
  steps[pair->at] = built;
  p->n_fused += 2;
  p->groups = td__xrealloc (p->groups, (p->n_groups + 1) * sizeof *p->groups);
  p->groups[p->n_groups++] = g;
}

/* --- a sum, then a normalisation --- */

/* Whether an elementwise step makes this summand, for the sum alone.  Then it is better to fuse
 * those two, as less goes through memory. */
static bool
is_of_tiles (const Rows *r, uint32_t i, uint32_t value)
{
  const TdSchedule *s = r->p->s;
  TdTileCall call;

  if (!td__tiles_known (s->device) || s->values[value].kind != TD_VALUE_INTERIOR
      || r->n_touches[value] != 2)
    return false;
  while (i-- > 0)
    if (runs (r, i) && writes (r, step_at (r, i), value))
      return td__step_tile (s, step_at (r, i), &call) && !call.broadcasts;
  return false;
}

static bool
is_sum (const Rows *r, uint32_t i)
{
  const TdSchedule *s = r->p->s;
  const TdStep *step = step_at (r, i);
  uint32_t z;

  if (!is_own (step, sums))
    return false;
  z = td__step_out (s, step, 0);
  return td__bit (s->device->ops->joins_norms, s->nodes[z].dtype)
         && td__size (&s->nodes[z].shape) > 0 && are_alike (s, td__step_in (s, step, 0), z)
         && are_alike (s, td__step_in (s, step, 1), z)
         && is_made_once (r, value_out (r, step, 0))
         && !is_of_tiles (r, i, value_in (r, step, 0))
         && !is_of_tiles (r, i, value_in (r, step, 1));
}

/* The first step after i that reads the sum, or the length of the list if a step before that
 * changes a summand. */
static uint32_t
find_reader (const Rows *r, uint32_t i)
{
  const TdStep *sum = step_at (r, i);
  const uint32_t n = td__plan_list (r->p, r->list)->n, z = value_out (r, sum, 0);

  for (uint32_t k = i + 1; k < n; k++)
    {
      const TdStep *step = step_at (r, k);

      if (!runs (r, k))
        continue;
      if (reads (r, step, z))
        return k;
      if (writes (r, step, value_in (r, sum, 0)) || writes (r, step, value_in (r, sum, 1)))
        break;
    }
  return n;
}

static void
join_sum (Rows *r, uint32_t i)
{
  const TdSchedule *s = r->p->s;
  const TdStep *sum = step_at (r, i), *norm;
  const uint32_t k = find_reader (r, i), z = td__step_out (s, sum, 0);
  const uint32_t value = value_out (r, sum, 0);

  if (k == td__plan_list (r->p, r->list)->n)
    return;
  norm = step_at (r, k);
  if (!is_own (norm, norms) || value_in (r, norm, 0) != value
      || !are_alike (s, td__step_in (s, norm, 0), z)
      || !are_alike (s, td__step_out (s, norm, 0), z)
      || td__plan_block (r->p, value_out (r, norm, 0)) != TD_ABSENT)
    return;
  for (uint32_t j = 1; j < norm->n_in; j++)
    if (value_in (r, norm, j) == value)
      return;
  join (r,
        &(Pair){ .main = k,
                 .sum = i,
                 .at = k,
                 .in = td__step_in (s, sum, 0),
                 .added = td__step_in (s, sum, 1),
                 .out = td__step_out (s, norm, 0),
                 .more = s->values[value].kind == TD_VALUE_INTERIOR && r->n_touches[value] == 2
                             ? TD_ABSENT
                             : z });
}

/* --- a gradient, then a sum --- */

/* Whether the kernel may write the sum of gradients to this value, new or in place. */
static bool
may_leave (const Rows *r, uint32_t value, bool in_place)
{
  const TdValue *v = &r->p->s->values[value];

  return (v->kind == TD_VALUE_INTERIOR || v->kind == TD_VALUE_GRADIENT)
         && (in_place || v->n_writers == 1) && td__plan_block (r->p, value) == TD_ABSENT;
}

/* Whether the step adds an array to the gradient; which one, and where the sum goes. */
static bool
adds (const Rows *r, const TdStep *step, uint32_t value, uint32_t *added, uint32_t *to)
{
  const TdSchedule *s = r->p->s;
  const bool in_place = step->kind == TD_STEP_OP && step->cls == &td__add_into_class;
  const uint32_t own = in_place || value_in (r, step, 0) != value ? 1 : 0;

  if (!in_place && !is_own (step, sums))
    return false;
  *added = td__step_in (s, step, 1 - own);
  *to = in_place ? *added : td__step_out (s, step, 0);
  return step->external == TD_ABSENT && value_in (r, step, own) == value
         && s->nodes[*added].value != value && may_leave (r, s->nodes[*to].value, in_place);
}

static bool
is_norm_grad (const Rows *r, uint32_t i)
{
  const TdSchedule *s = r->p->s;
  const TdStep *step = step_at (r, i);
  uint32_t gx, value;

  if (!is_own (step, norm_grads))
    return false;
  gx = td__step_out (s, step, 0);
  value = s->nodes[gx].value;
  return td__bit (s->device->ops->joins_norms, s->nodes[gx].dtype)
         && s->values[value].kind == TD_VALUE_INTERIOR && is_made_once (r, value)
         && r->n_touches[value] == 2;
}

/* Whether the value exists before step i of the list. */
static bool
is_there (const Rows *r, uint32_t i, uint32_t value)
{
  const uint8_t kind = r->p->s->values[value].kind;

  if (kind == TD_VALUE_EXTERNAL || kind == TD_VALUE_CONSTANT || kind == TD_VALUE_GY)
    return true;
  while (i-- > 0)
    if (runs (r, i) && writes (r, step_at (r, i), value))
      return true;
  return false;
}

/* Whether the sum at step k may move up to the gradient at step i. */
static bool
may_rise (const Rows *r, uint32_t i, uint32_t k, uint32_t added, uint32_t to)
{
  if (!is_there (r, i, added))
    return false;
  for (uint32_t j = i + 1; j < k; j++)
    if (runs (r, j) && (writes (r, step_at (r, j), added) || touches (r, step_at (r, j), to)))
      return false;
  return true;
}

/* Whether the gradient may move down to the sum. */
static bool
may_sink (const Rows *r, uint32_t i, uint32_t k)
{
  const TdStep *grad = step_at (r, i);

  for (uint32_t j = i + 1; j < k; j++)
    {
      const TdStep *step = step_at (r, j);

      if (!runs (r, j))
        continue;
      for (uint32_t n = 0; n < grad->n_out; n++)
        if (touches (r, step, value_out (r, grad, n)))
          return false;
      for (uint32_t n = 0; n < grad->n_in; n++)
        if (writes (r, step, value_in (r, grad, n)))
          return false;
    }
  return true;
}

static void
join_gradient (Rows *r, uint32_t i)
{
  const TdSchedule *s = r->p->s;
  const TdStep *grad = step_at (r, i);
  const uint32_t n = td__plan_list (r->p, r->list)->n, gx = td__step_out (s, grad, 0),
                 value = s->nodes[gx].value;
  uint32_t k = i + 1, added, to;
  bool rises;

  while (k < n && (!runs (r, k) || !reads (r, step_at (r, k), value)))
    k++;
  if (k == n || !adds (r, step_at (r, k), value, &added, &to) || !are_alike (s, gx, added)
      || !are_alike (s, gx, to) || reads (r, grad, s->nodes[to].value))
    return;
  rises = may_rise (r, i, k, s->nodes[added].value, s->nodes[to].value);
  if (rises || may_sink (r, i, k))
    join (r, &(Pair){ .main = i,
                      .sum = k,
                      .at = rises ? i : k,
                      .in = td__step_in (s, grad, 0),
                      .added = added,
                      .out = to,
                      .more = TD_ABSENT });
}

static void
join_list (Rows *r)
{
  const uint32_t n = td__plan_list (r->p, r->list)->n;

  r->gone = td__plan_zeroed (n, sizeof *r->gone);
  for (uint32_t i = 0; i < n; i++)
    if (!r->gone[i] && is_norm_grad (r, i))
      join_gradient (r, i);
    else if (!r->gone[i] && is_sum (r, i))
      join_sum (r, i);
  td__plan_remove (r->p, r->list, r->gone);
  free (r->gone);
}

void
td__pass_rows (TdPlan *p)
{
  Rows r = { .p = p };

  if (p->s->device == NULL || p->s->device->ops->joins_norms == 0)
    return;
  r.n_touches = td__plan_touches (p);
  for (r.list = 0; r.list <= p->s->n_backwards; r.list++)
    join_list (&r);
  free (r.n_touches);
}
