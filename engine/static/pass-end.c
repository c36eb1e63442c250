/* Epilogue fusion: a matrix product or convolution followed by relu or relu_grad applies that
 * itself before it writes its result.  A convolution can also add an array before that, as the
 * shortcut of a residual block.  The values between them are never written to memory.
 *
 * This is done if nothing else reads the values between, and the device has such a kernel.  The
 * group takes the place of its last step, so no step between may change what the others read.
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

static bool
is_own (const TdStep *step)
{
  return step->kind == TD_STEP_OP && td_op_class_find (step->cls->name) == step->cls;
}

/* Whether one other step, and nothing else, uses the only result of this step. */
static bool
is_taken_once (const End *e, const TdStep *step)
{
  const TdSchedule *s = e->p->s;
  uint32_t value;

  if (!is_own (step) || step->accumulate || step->n_out != 1 || step->external != TD_ABSENT)
    return false;
  value = value_out (s, step, 0);
  return s->values[value].kind == TD_VALUE_INTERIOR && s->values[value].n_writers == 1
         && e->n_touches[value] == 2 && td__plan_block (e->p, value) == TD_ABSENT;
}

static bool
is_conv (const TdStep *step)
{
  return (step->cls->flags & TD_OP_IMAGES) != 0;
}

/* Whether the step is a matrix product or convolution that is in no group and accumulates into
 * nothing. */
static bool
is_product (const End *e, const TdStep *step)
{
  const TdSchedule *s = e->p->s;

  return is_taken_once (e, step) && (step->cls->flags & TD_OP_ENDS) != 0
         && td__size (&s->nodes[td__step_out (s, step, 0)].shape) > 0;
}

/* Whether the device has a kernel for the product with this epilogue and dtype. */
static bool
is_known (const End *e, const TdStep *product, const TdGroup *g)
{
  const TdSchedule *s = e->p->s;
  const TdDeviceOps *ops = s->device->ops;
  const bool turned = strncmp (product->cls->name, "deconvolution", 13) == 0;
  const uint32_t known = !is_conv (product)   ? ops->ends_products
                         : turned || !g->relu ? ops->ends_conv_grads
                                              : ops->ends_convs;

  return td__bit (known, s->nodes[td__step_out (s, product, 0)].dtype);
}

/* Whether two nodes have one shape and layout; views of a value may differ in them. */
static bool
are_alike (const TdSchedule *s, uint32_t a, uint32_t b)
{
  const TdNodeInfo *x = &s->nodes[a], *y = &s->nodes[b];

  return x->dtype == y->dtype && x->layout == y->layout
         && td_shape_equal (&x->shape, &y->shape);
}

/* Say whether the step is the relu or the relu_grad of what `product` makes. */
static bool
takes (const TdSchedule *s, const TdStep *step, const TdStep *product, TdGroup *g)
{
  const uint32_t y = td__step_out (s, product, 0), value = value_out (s, product, 0);
  const bool grad = is_own (step) && strcmp (step->cls->name, "relu_grad") == 0;

  g->relu = is_own (step) && strcmp (step->cls->name, "relu") == 0;
  if ((!g->relu && !grad) || step->accumulate || step->external != TD_ABSENT
      || s->values[value_out (s, step, 0)].n_writers != 1
      || !are_alike (s, y, td__step_out (s, step, 0))
      || !are_alike (s, y, td__step_in (s, step, grad)))
    return false;
  return g->relu
         || (value_in (s, step, 1) == value && value_in (s, step, 0) != value
             && are_alike (s, y, td__step_in (s, step, 0)));
}

/* Say whether the step adds another array to what a convolution makes, and *added which. */
static bool
adds (const End *e, const TdStep *step, const TdStep *conv, uint32_t *added)
{
  const TdSchedule *s = e->p->s;
  const uint32_t y = td__step_out (s, conv, 0), value = value_out (s, conv, 0);
  uint32_t own;

  if (!is_conv (conv) || !is_taken_once (e, step) || strcmp (step->cls->name, "add") != 0)
    return false;
  own = value_in (s, step, 0) == value ? 0 : 1;
  *added = td__step_in (s, step, 1 - own);
  return s->nodes[*added].value != value && are_alike (s, y, td__step_in (s, step, own))
         && are_alike (s, y, *added) && are_alike (s, y, td__step_out (s, step, 0));
}

static bool
reads (const TdSchedule *s, const TdStep *step, uint32_t value)
{
  for (uint32_t k = 0; k < step->n_in; k++)
    if (value_in (s, step, k) == value)
      return true;
  return false;
}

/* The steps that would move down the list: a product, and the sum after it (or NULL). */
typedef struct
{
  const TdStep *product, *sum;
} Moved;

static bool
moved_reads (const TdSchedule *s, const Moved *m, uint32_t value)
{
  return reads (s, m->product, value) || (m->sum != NULL && reads (s, m->sum, value));
}

/* Whether the step changes what the moved steps read. */
static bool
disturbs (const End *e, const TdStep *step, const Moved *m)
{
  const TdSchedule *s = e->p->s;

  if (step->kind == TD_STEP_EFFECT)
    return true;
  for (uint32_t k = 0; k < step->n_out; k++)
    if (td__plan_block (e->p, value_out (s, step, k)) != TD_ABSENT
        || moved_reads (s, m, value_out (s, step, k)))
      return true;
  for (uint32_t k = 0; k < step->n_in; k++)
    if (td__step_writes_input (step, k) && moved_reads (s, m, value_in (s, step, k)))
      return true;
  return false;
}

/* The first step after i that reads the result, or the length of the list if a step before that
 * changes what the moved steps read. */
static uint32_t
find_reader (const End *e, uint32_t i, const Moved *m)
{
  const TdSchedule *s = e->p->s;
  const TdSteps *list = td__plan_list (e->p, e->list);
  const uint32_t value = value_out (s, m->sum != NULL ? m->sum : m->product, 0);

  for (uint32_t k = i + 1; k < list->n; k++)
    {
      const TdStep *step = &list->steps[k];

      if (!td__step_computes (step))
        continue;
      if (reads (s, step, value))
        return k;
      if (disturbs (e, step, m))
        break;
    }
  return list->n;
}

/* Indices in the list: of a product, the sum after it (or TD_ABSENT), and relu or relu_grad. */
typedef struct
{
  uint32_t at, sum, taker;
  uint32_t added; /* the node */
} Places;

/* Find the epilogue of the product at step i; false: it has none. */
static bool
find_taker (const End *e, uint32_t i, Places *places, TdGroup *g)
{
  const TdSchedule *s = e->p->s;
  const TdSteps *list = td__plan_list (e->p, e->list);
  Moved m = { .product = &list->steps[i] };
  uint32_t k = find_reader (e, i, &m);

  *places = (Places){ i, TD_ABSENT, k, TD_ABSENT };
  if (k == list->n)
    return false;
  if (adds (e, &list->steps[k], m.product, &places->added))
    {
      m.sum = &list->steps[k];
      places->sum = k;
      k = places->taker = find_reader (e, k, &m);
      return k < list->n && takes (s, &list->steps[k], m.sum, g);
    }
  return takes (s, &list->steps[k], m.product, g);
}

static void
add_member (End *e, TdGroup *g, uint32_t at)
{
  const TdStep *step = &td__plan_list (e->p, e->list)->steps[at];

  td__plan_note (e->p, TD_PASS_FUSE, e->list, step->trace_at, e->p->n_groups);
  g->members[g->n_members++] = *step;
}

/* Replace the steps by one group at the place of the last.  Its inputs are those of the
 * product, then the array that is added, then the one whose sign relu_grad tests; its output is
 * that of the last step. */
static void
join (End *e, const Places *places, TdGroup g)
{
  TdPlan *p = e->p;
  TdSchedule *s = p->s;
  TdStep *steps = td__plan_list (p, e->list)->steps, built = steps[places->taker];
  const TdStep *product = &steps[places->at];
  const bool sum = places->sum != TD_ABSENT;
  const uint32_t n_own = product->n_in, n_in = n_own + sum + !g.relu,
                 at = td__schedule_operands (s, n_in + 1);

  for (uint32_t n = 0; n < n_own; n++)
    s->operands[at + n] = td__step_in (s, product, n);
  g.added = sum ? n_own : TD_ABSENT;
  g.sum = TD_ABSENT;
  g.above = g.relu ? TD_ABSENT : n_own + sum;
  if (sum)
    s->operands[at + g.added] = places->added;
  if (!g.relu)
    s->operands[at + g.above] = td__step_in (s, &built, 0);
  s->operands[at + n_in] = td__step_out (s, &built, 0);
  g.members = td__plan_zeroed (3, sizeof *g.members);
  g.interior = td__plan_zeroed (2, sizeof *g.interior);
  add_member (e, &g, places->at);
  if (sum)
    add_member (e, &g, places->sum);
  for (uint32_t n = 0; n < g.n_members; n++)
    g.interior[g.n_interior++] = value_out (s, &g.members[n], 0);
  add_member (e, &g, places->taker);
  g.externals = td__plan_zeroed (1, sizeof *g.externals);
  g.externals[0] = TD_ABSENT;
  g.size = td__size (&s->nodes[td__step_out (s, &built, 0)].shape);
  built.kind = TD_STEP_GROUP;
  built.cls = NULL;
  built.attrs = NULL;
  built.in = at;
  built.n_in = n_in;
  built.out = at + n_in;
  built.n_out = 1;
  built.external = p->n_groups;
  built.pack = product->pack;
  p->n_fused += g.n_members;
  steps[places->taker] = built;
  p->groups = td__xrealloc (p->groups, (p->n_groups + 1) * sizeof *p->groups);
  p->groups[p->n_groups++] = g;
}

static void
end_list (End *e)
{
  const TdSteps *list = td__plan_list (e->p, e->list);
  bool *gone = td__plan_zeroed (list->n, sizeof *gone);

  for (uint32_t i = 0; i < list->n; i++)
    {
      TdGroup g = { .n_members = 0 };
      Places places;

      if (!is_product (e, &list->steps[i]) || !find_taker (e, i, &places, &g)
          || !is_known (e, &list->steps[i], &g))
        continue;
      join (e, &places, g);
      gone[i] = true;
      if (places.sum != TD_ABSENT)
        gone[places.sum] = true;
    }
  td__plan_remove (e->p, e->list, gone);
  free (gone);
}

void
td__pass_end (TdPlan *p)
{
  End e = { .p = p };

  if (p->s->device == NULL)
    return;
  e.n_touches = td__plan_touches (p);
  for (e.list = 0; e.list <= p->s->n_backwards; e.list++)
    end_list (&e);
  free (e.n_touches);
}
