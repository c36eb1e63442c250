/* Batch: products with one matrix over many inputs become one product.
 *
 * Two kinds.  Rows: y = x W of steps that do not depend on each other (the input projections of
 * a recurrent net): their x lie one below the other, and so do their y.  Sums: gradients of one
 * variable that are products or sums over rows (of every time step): one over all their rows.
 * The memory plan lays the parts side by side, so that nothing is copied; a value is a part of
 * one block at most.
 *
 * Sums are made in another order than by define-by-run, and differ from it in the last bits.
 *
 * SPDX-License-Identifier: MIT */
#include "order.h"
#include "pass.h"

#include <stdlib.h>
#include <string.h>

typedef enum
{
  NO_BATCH,
  ROWS, /* in[0] and out[0] are rows; the other inputs are the same */
  SUMS  /* all inputs are rows; out[0] is a gradient that is handed on */
} BatchKind;

typedef struct
{
  TdPlan *p;
  uint32_t list;
  uint32_t *n_touches; /* by value, over all lists */
  uint32_t *give;      /* by step: the GIVE of its gradient, or TD_ABSENT */
  uint8_t *kinds;      /* by step */
  uint32_t *members;   /* of the set that is looked at */
  uint32_t n;
} Batch;

/* --- blocks --- */

static void
room_for_values (TdPlan *p)
{
  const uint32_t n = p->s->n_values;

  p->block = realloc (p->block, n * sizeof *p->block);
  p->inner = realloc (p->inner, n * sizeof *p->inner);
  if (p->block == NULL || p->inner == NULL)
    abort ();
}

/* A value of the plan's own: so many bytes of a block from `inner` on. */
static uint32_t
new_value (TdPlan *p, uint32_t block, size_t inner, size_t bytes, bool is_saved)
{
  const uint32_t value = td__schedule_value (p->s, TD_VALUE_INTERIOR, 0, bytes);

  p->s->values[value].n_writers = 1;
  p->s->values[value].is_saved = is_saved;
  room_for_values (p);
  p->block[value] = block;
  p->inner[value] = inner;
  return value;
}

static uint32_t
rows_node (TdPlan *p, uint32_t value, uint32_t like, int64_t rows)
{
  const TdNodeInfo *info = &p->s->nodes[like];
  TdNode n = { 0 };

  n.dtype = info->dtype;
  n.requires_grad = info->requires_grad;
  n.category = info->category;
  n.name = info->name;
  n.shape = info->shape;
  n.layout = info->layout;
  n.shape.dim[0] = rows;
  return td__schedule_node (p->s, value, &n);
}

static uint32_t
operand (const Batch *b, uint32_t member, uint32_t k, bool out)
{
  const TdStep *step = &td__plan_list (b->p, b->list)->steps[b->members[member]];

  return out ? td__step_out (b->p->s, step, k) : td__step_in (b->p->s, step, k);
}

static uint32_t
operand_value (const Batch *b, uint32_t member, uint32_t k, bool out)
{
  return b->p->s->nodes[operand (b, member, k, out)].value;
}

/* Can operand k of the members lie side by side, in their order?  1: they do, 0: they can, -1:
 * they cannot. */
static int
side_by_side (const Batch *b, uint32_t k, bool out)
{
  const TdPlan *p = b->p;
  const uint32_t first = operand_value (b, 0, k, out), block = p->block[first];

  for (uint32_t i = 0; i < b->n; i++)
    {
      const uint32_t v = operand_value (b, i, k, out);
      const TdValue *value = &p->s->values[v];

      if (value->kind != TD_VALUE_INTERIOR || value->n_writers != 1
          || value->bytes != p->s->values[first].bytes || p->block[v] != block)
        return -1;
      if (block != TD_ABSENT && p->inner[v] != p->inner[first] + i * value->bytes)
        return -1;
      for (uint32_t j = 0; j < i && block == TD_ABSENT; j++)
        if (operand_value (b, j, k, out) == v)
          return -1;
    }
  return block != TD_ABSENT;
}

/* A node of all their rows. */
static uint32_t
join_operand (Batch *b, uint32_t k, bool out)
{
  TdPlan *p = b->p;
  const uint32_t first = operand_value (b, 0, k, out), like = operand (b, 0, k, out);
  const size_t bytes = p->s->values[first].bytes;
  const int64_t rows = p->s->nodes[like].shape.dim[0] * b->n;
  uint32_t block = p->block[first], value;

  if (block == TD_ABSENT)
    {
      TdValueBlock *new;

      block = p->n_blocks;
      p->blocks = realloc (p->blocks, (p->n_blocks + 1) * sizeof *p->blocks);
      if (p->blocks == NULL)
        abort ();
      new = &p->blocks[p->n_blocks++];
      new->parts = td__plan_zeroed (b->n, sizeof *new->parts);
      new->n_parts = b->n;
      for (uint32_t i = 0; i < b->n; i++)
        {
          const uint32_t part = operand_value (b, i, k, out);

          new->parts[i] = part;
          p->block[part] = block;
          p->inner[part] = i * bytes;
        }
      value = new_value (p, block, 0, b->n * bytes, p->s->values[first].is_saved);
      p->blocks[block].value = value;
    }
  else
    value = new_value (p, block, p->inner[first], b->n * bytes, p->s->values[first].is_saved);
  return rows_node (p, value, like, rows);
}

/* --- what can be batched --- */

static bool
flag_of (const TdStep *step, const char *name)
{
  for (int i = 0; i < step->cls->n_attrs; i++)
    if (strcmp (step->cls->attrs[i].name, name) == 0)
      return *((const bool *)step->attrs + step->cls->attrs[i].offset);
  return false;
}

/* Is it a sum over axis 0 alone? */
static bool
sums_rows (const TdSchedule *s, const TdStep *step)
{
  const TdAttr *a = &step->cls->attrs[0];
  const TdNodeInfo *x = &s->nodes[td__step_in (s, step, 0)];
  const TdNodeInfo *y = &s->nodes[td__step_out (s, step, 0)];
  int n, axis;

  if (strcmp (a->name, "axis") != 0 || a->kind != TD_ATTR_INTS || a->n_offset == 0
      || x->shape.ndim != 2 || y->shape.ndim != 1)
    return false;
  memcpy (&n, (const char *)step->attrs + a->n_offset, sizeof n);
  memcpy (&axis, (const char *)step->attrs + a->offset, sizeof axis);
  return n == 1 && (axis == 0 || axis == -2);
}

static bool
is_matrix (const TdSchedule *s, uint32_t node)
{
  return s->nodes[node].shape.ndim == 2 && s->nodes[node].dtype <= TD_F64
         && s->nodes[node].shape.dim[0] > 0;
}

static BatchKind
kind_of (const Batch *b, uint32_t i)
{
  const TdSchedule *s = b->p->s;
  const TdStep *step = &td__plan_list (b->p, b->list)->steps[i];
  const TdValue *out;

  if (step->kind != TD_STEP_OP || step->accumulate || step->n_out != 1 || step->n_in == 0
      || td_op_class_find (step->cls->name) != step->cls
      || !is_matrix (s, td__step_in (s, step, 0)))
    return NO_BATCH;
  out = td__node_value (s, td__step_out (s, step, 0));
  if (step->external != TD_ABSENT)
    {
      if (out->kind != TD_VALUE_GRADIENT || b->give[i] == TD_ABSENT)
        return NO_BATCH;
      if (strcmp (step->cls->name, "matmul") == 0)
        return flag_of (step, "transa") && !flag_of (step, "transb") ? SUMS : NO_BATCH;
      return strcmp (step->cls->name, "sum") == 0 && sums_rows (s, step) ? SUMS : NO_BATCH;
    }
  if (out->kind != TD_VALUE_INTERIOR)
    return NO_BATCH;
  if (strcmp (step->cls->name, "matmul") == 0)
    return flag_of (step, "transa") ? NO_BATCH : ROWS;
  return strcmp (step->cls->name, "linear") == 0 ? ROWS : NO_BATCH;
}

static bool
go_together (const Batch *b, BatchKind kind, uint32_t i, uint32_t j)
{
  const TdSchedule *s = b->p->s;
  const TdStep *x = &td__plan_list (b->p, b->list)->steps[i];
  const TdStep *y = &td__plan_list (b->p, b->list)->steps[j];

  if (x->cls != y->cls || x->n_in != y->n_in || x->external != y->external
      || (x->cls->attrs_size > 0 && memcmp (x->attrs, y->attrs, x->cls->attrs_size) != 0))
    return false;
  for (uint32_t k = 0; k < x->n_in; k++)
    {
      const TdNodeInfo *a = &s->nodes[td__step_in (s, x, k)];
      const TdNodeInfo *c = &s->nodes[td__step_in (s, y, k)];

      if (a->dtype != c->dtype || !td_shape_equal (&a->shape, &c->shape))
        return false;
      if (kind == ROWS && k > 0
          && (a->value != c->value || s->values[a->value].is_state
              || s->values[a->value].n_writers > 1))
        return false;
    }
  return true;
}

/* A member whose rows are not the plan's to lay out. */
static bool
can_lie (const Batch *b, BatchKind kind, uint32_t i)
{
  const TdSchedule *s = b->p->s;
  const TdStep *step = &td__plan_list (b->p, b->list)->steps[i];

  for (uint32_t k = 0; k < (kind == ROWS ? 1 : step->n_in); k++)
    {
      const TdValue *v = td__node_value (s, td__step_in (s, step, k));

      if (v->kind != TD_VALUE_INTERIOR || v->n_writers != 1)
        return false;
    }
  return true;
}

/* --- one set --- */

static const Batch *sorting;

static int
by_place (const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

  return (x > y) - (x < y);
}

/* Where the rows of a member lie already: of the first of its inputs that is in a block. */
static uint64_t
place_of (const Batch *b, uint32_t step)
{
  const TdStep *s = &td__plan_list (b->p, b->list)->steps[step];

  for (uint32_t k = 0; k < s->n_in; k++)
    {
      const uint32_t v = b->p->s->nodes[td__step_in (b->p->s, s, k)].value;

      if (b->p->block[v] != TD_ABSENT)
        return b->p->inner[v];
    }
  return step;
}

static int
by_rows (const void *a, const void *b)
{
  const uint64_t x = place_of (sorting, *(const uint32_t *)a);
  const uint64_t y = place_of (sorting, *(const uint32_t *)b);

  return (x > y) - (x < y);
}

/* How many operands are rows; and how many of those lie side by side.  False: they cannot. */
static bool
check_rows (const Batch *b, BatchKind kind, uint32_t n_in, uint32_t *n_there)
{
  *n_there = 0;
  for (uint32_t k = 0; k < (kind == ROWS ? 1 : n_in); k++)
    {
      const int there = side_by_side (b, k, false);

      if (there < 0)
        return false;
      *n_there += (uint32_t)there;
      for (uint32_t j = 0; j < k; j++)
        if (operand_value (b, 0, j, false) == operand_value (b, 0, k, false))
          return false;
    }
  return kind == SUMS || side_by_side (b, 0, true) == 0;
}

/* The members become one step, the first of the list among them. */
static void
apply (Batch *b, BatchKind kind, const uint32_t *order, uint32_t n_order)
{
  TdPlan *p = b->p;
  TdSteps *list = td__plan_list (p, b->list);
  uint32_t first = b->members[0], last = b->members[0], nodes[8], at;
  TdStep *sorted = td__plan_zeroed (n_order, sizeof *sorted), built;

  for (uint32_t i = 0; i < b->n; i++)
    {
      first = b->members[i] < first ? b->members[i] : first;
      last = b->members[i] > last ? b->members[i] : last;
    }
  built = list->steps[first];
  for (uint32_t k = 0; k < built.n_in; k++)
    nodes[k]
        = kind == SUMS || k == 0 ? join_operand (b, k, false) : td__step_in (p->s, &built, k);
  nodes[built.n_in]
      = kind == ROWS ? join_operand (b, 0, true) : td__step_out (p->s, &list->steps[last], 0);
  at = td__schedule_operands (p->s, built.n_in + 1);
  memcpy (p->s->operands + at, nodes, (built.n_in + 1) * sizeof *nodes);
  built.in = at;
  built.out = at + built.n_in;
  for (uint32_t i = 0; i < b->n; i++)
    td__plan_note (p, TD_PASS_BATCH, b->list, list->steps[b->members[i]].trace_at,
                   built.trace_at);
  p->n_batched += b->n;
  list->steps[first] = built;
  for (uint32_t i = 0; i < n_order; i++)
    sorted[i] = list->steps[order[i]];
  free (list->steps);
  list->steps = sorted;
  list->n = list->capacity = n_order;
}

/* The steps that could go with step i, which is the first of them.  Returns how many. */
static uint32_t
find_members (Batch *b, uint32_t i)
{
  const BatchKind kind = (BatchKind)b->kinds[i];

  b->n = 0;
  if (kind == NO_BATCH || !can_lie (b, kind, i))
    return 0;
  for (uint32_t j = i; j < td__plan_list (b->p, b->list)->n; j++)
    if (b->kinds[j] == kind && go_together (b, kind, i, j) && can_lie (b, kind, j))
      b->members[b->n++] = j;
  return b->n;
}

/* Try the set of step i, found already.  Returns true if the list has changed. */
static bool
try_set (Batch *b, uint32_t i, bool only_there)
{
  const BatchKind kind = (BatchKind)b->kinds[i];
  TdSteps *list = td__plan_list (b->p, b->list);
  uint32_t n_there, n_order, first = i, *joined, *order;
  bool *dead;

  sorting = b;
  qsort (b->members, b->n, sizeof *b->members, by_place);
  qsort (b->members, b->n, sizeof *b->members, by_rows);
  if (!check_rows (b, kind, list->steps[i].n_in, &n_there) || (only_there && n_there == 0))
    return false;
  joined = td__plan_zeroed (list->n, sizeof *joined);
  order = td__plan_zeroed (list->n, sizeof *order);
  dead = td__plan_zeroed (list->n, sizeof *dead);
  for (uint32_t j = 0; j < list->n; j++)
    joined[j] = j;
  for (uint32_t k = 0; k < b->n; k++)
    {
      joined[b->members[k]] = first;
      if (kind == SUMS)
        dead[b->give[b->members[k]]] = true;
    }
  if (kind == SUMS) /* that of the last stays */
    {
      uint32_t last = first;

      for (uint32_t k = 0; k < b->n; k++)
        last = b->members[k] > last ? b->members[k] : last;
      dead[b->give[last]] = false;
    }
  n_order = td__order_steps (b->p, b->list, joined, dead, order);
  if (n_order != TD_ABSENT)
    apply (b, kind, order, n_order);
  free (joined);
  free (order);
  free (dead);
  return n_order != TD_ABSENT;
}

/* --- a list --- */

static void
find_gives (Batch *b)
{
  const TdSchedule *s = b->p->s;
  const TdSteps *list = td__plan_list (b->p, b->list);
  uint32_t *maker = td__plan_zeroed (s->n_values, sizeof *maker); /* step + 1 */

  memset (b->n_touches, 0, s->n_values * sizeof *b->n_touches);
  for (uint32_t i = 0; i < list->n; i++)
    {
      const TdStep *step = &list->steps[i];

      b->give[i] = TD_ABSENT;
      if (!td__step_computes (step))
        continue;
      for (uint32_t k = 0; k < step->n_in + step->n_out; k++)
        b->n_touches[s->nodes[k < step->n_in ? td__step_in (s, step, k)
                                             : td__step_out (s, step, k - step->n_in)]
                         .value]++;
      if (step->kind == TD_STEP_OP && step->external != TD_ABSENT && step->n_out == 1)
        maker[s->nodes[td__step_out (s, step, 0)].value] = i + 1;
    }
  for (uint32_t i = 0; i < list->n; i++)
    if (list->steps[i].kind == TD_STEP_GIVE)
      {
        const uint32_t v = s->nodes[td__step_in (s, &list->steps[i], 0)].value;

        if (maker[v] != 0 && b->n_touches[v] == 2
            && list->steps[maker[v] - 1].external == list->steps[i].external)
          b->give[maker[v] - 1] = i;
      }
  free (maker);
}

static void
look_at_list (Batch *b)
{
  const TdSteps *list = td__plan_list (b->p, b->list);

  find_gives (b);
  for (uint32_t i = 0; i < list->n; i++)
    b->kinds[i] = (uint8_t)kind_of (b, i);
}

/* Every set of the list, the largest first, and of those first the ones whose rows lie
 * somewhere already: that says in what order the others' have to lie. */
static void
batch_list (Batch *b)
{
  TdSteps *list = td__plan_list (b->p, b->list);
  uint32_t size = UINT32_MAX, next;

  look_at_list (b);
  for (bool only_there = true;; only_there = !only_there)
    {
      bool changed = false;

      next = 0;
      for (uint32_t i = 0; i < list->n && !changed; i++)
        {
          const uint32_t n = find_members (b, i);

          if (n == size)
            changed = try_set (b, i, only_there);
          else if (n < size && n > next)
            next = n;
        }
      if (changed)
        look_at_list (b);
      if (changed)
        only_there = false; /* that is: the same size again, from the start */
      else if (!only_there || size == UINT32_MAX)
        {
          size = next;
          only_there = false;
        }
      if (size < 2)
        return;
    }
}

void
td__pass_batch (TdPlan *p)
{
  Batch b = { .p = p };
  uint32_t most = 0;

  for (uint32_t list = 0; list <= p->s->n_backwards; list++)
    most = td__plan_list (p, list)->n > most ? td__plan_list (p, list)->n : most;
  b.members = td__plan_zeroed (most, sizeof *b.members);
  b.kinds = td__plan_zeroed (most, sizeof *b.kinds);
  room_for_values (p);
  for (uint32_t v = 0; v < p->s->n_values; v++)
    {
      p->block[v] = TD_ABSENT;
      p->inner[v] = 0;
    }
  b.give = td__plan_zeroed (most, sizeof *b.give);
  b.n_touches = td__plan_zeroed (p->s->n_values + 3 * most, sizeof *b.n_touches);
  for (b.list = 0; b.list <= p->s->n_backwards; b.list++)
    batch_list (&b);
  free (b.members);
  free (b.give);
  free (b.kinds);
  free (b.n_touches);
}
