/* Batching: matrix products that share a matrix are computed as one larger product.
 *
 * Two kinds of steps are merged, each set into one step:
 *
 * - Rows: y_i = x_i W with the same W, where no product depends on another, as the input
 *   projections of a recurrent network at all its time steps.  The x_i are placed one below the
 *   other in memory, and so are the y_i, so that [y_1; y_2; ...] = [x_1; x_2; ...] W.
 * - Sums: the contributions to the gradient of one variable, one for each time step, as
 *   gW = x_1' gy_1 + x_2' gy_2 + ...: one product, or one sum, over the rows of all steps.
 *
 * Nothing is copied to bring the rows together: operands become parts of a block
 * (TdValueBlock), and the memory plan places the parts of a block side by side.  Because a
 * value has only one place, it is a part of at most one block.
 *
 * The sums are taken in another order than define-by-run takes them, so the last bits differ.
 *
 * SPDX-License-Identifier: MIT */
#include "order.h"
#include "host-memory.h"
#include "pass.h"

#include <stdlib.h>
#include <string.h>

typedef enum
{
  NO_BATCH,
  ROWS, /* in[0] and out[0] are stacked; the steps share their other inputs */
  SUMS  /* all inputs are stacked; out[0] is a contribution to a gradient */
} BatchKind;

typedef struct
{
  TdPlan *p;
  uint32_t list;
  uint32_t *n_uses;        /* of each value in this list: how often it is read or written */
  uint32_t *gradient_step; /* for each step: the step that propagates its gradient to a variable
                              outside the schedule, or TD_ABSENT */
  uint8_t *kinds;          /* BatchKind of each step */
  uint32_t *members;       /* steps of the candidate set at hand */
  uint32_t n_members;
} Batch;

/* --- blocks --- */

static void
room_for_values (TdPlan *p)
{
  const uint32_t n = p->s->n_values;

  p->block = td__xrealloc (p->block, n * sizeof *p->block);
  p->inner = td__xrealloc (p->inner, n * sizeof *p->inner);
}

/* Add a value that is a part of a block, `inner` bytes after its start. */
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

/* Add a node like another, but with this many rows. */
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

/* Whether operand k of all members can be contiguous in memory, in the order of the members:
 * 1: it is already, 0: it can be, -1: it cannot. */
static int
contiguity (const Batch *b, uint32_t k, bool out)
{
  const TdPlan *p = b->p;
  const uint32_t first = operand_value (b, 0, k, out), block = p->block[first];

  for (uint32_t i = 0; i < b->n_members; i++)
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

/* Make the contiguous operands k one node with the rows of all of them; where they have no
 * block yet they get one. */
static uint32_t
join_operand (Batch *b, uint32_t k, bool out)
{
  TdPlan *p = b->p;
  const uint32_t first = operand_value (b, 0, k, out), like = operand (b, 0, k, out);
  const size_t bytes = p->s->values[first].bytes;
  const int64_t rows = p->s->nodes[like].shape.dim[0] * b->n_members;
  uint32_t block = p->block[first], value;

  if (block == TD_ABSENT)
    {
      TdValueBlock *new;

      block = p->n_blocks;
      p->blocks = td__xrealloc (p->blocks, (p->n_blocks + 1) * sizeof *p->blocks);
      new = &p->blocks[p->n_blocks++];
      new->parts = td__plan_zeroed (b->n_members, sizeof *new->parts);
      new->n_parts = b->n_members;
      for (uint32_t i = 0; i < b->n_members; i++)
        {
          const uint32_t part = operand_value (b, i, k, out);

          new->parts[i] = part;
          p->block[part] = block;
          p->inner[part] = i * bytes;
        }
      value = new_value (p, block, 0, b->n_members * bytes, p->s->values[first].is_saved);
      p->blocks[block].value = value;
    }
  else
    value = new_value (p, block, p->inner[first], b->n_members * bytes,
                       p->s->values[first].is_saved);
  return rows_node (p, value, like, rows);
}

/* --- what can be batched --- */

/* The value of a boolean attribute of this name, false where the class has none. */
static bool
bool_attr (const TdStep *step, const char *name)
{
  for (int i = 0; i < step->cls->n_attrs; i++)
    if (strcmp (step->cls->attrs[i].name, name) == 0)
      return *((const bool *)step->attrs + step->cls->attrs[i].offset);
  return false;
}

/* Whether a step of class "sum" sums over axis 0 alone. */
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

/* What kind of set a step can be a member of, by what it computes and writes. */
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
      if (out->kind != TD_VALUE_GRADIENT || b->gradient_step[i] == TD_ABSENT)
        return NO_BATCH;
      if (strcmp (step->cls->name, "matmul") == 0)
        return bool_attr (step, "transa") && !bool_attr (step, "transb") ? SUMS : NO_BATCH;
      return strcmp (step->cls->name, "sum") == 0 && sums_rows (s, step) ? SUMS : NO_BATCH;
    }
  if (out->kind != TD_VALUE_INTERIOR)
    return NO_BATCH;
  if (strcmp (step->cls->name, "matmul") == 0)
    return bool_attr (step, "transa") ? NO_BATCH : ROWS;
  return strcmp (step->cls->name, "linear") == 0 ? ROWS : NO_BATCH;
}

/* Whether two steps of one kind are of the same operation, attributes, shapes and dtypes, and
 * of the same shared matrix or target variable. */
static bool
are_alike (const Batch *b, BatchKind kind, uint32_t i, uint32_t j)
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

/* Whether the plan decides where the stacked inputs of a step lie.  It does not for arguments,
 * variables outside, and values that several steps write. */
static bool
is_placeable (const Batch *b, BatchKind kind, uint32_t i)
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

/* --- one set of steps --- */

static const Batch *sorting; /* qsort passes no context */

/* The sort key of a member: the offset of its rows in a block, if one of its inputs is in one,
 * else its place in the list.  Operands that an earlier set has placed fix the order of this.
 */
static uint64_t
row_offset (const Batch *b, uint32_t step)
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

/* Steps whose rows begin at the same offset keep their order in the list, whichever algorithm
 * qsort uses. */
static int
by_row_offset (const void *a, const void *b)
{
  const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
  const uint64_t x = row_offset (sorting, i), y = row_offset (sorting, j);

  return x != y ? (x > y) - (x < y) : (i > j) - (i < j);
}

/* Whether the stacked operands of all members can be contiguous; *n_placed: how many of the
 * inputs are so already. */
static bool
check_rows (const Batch *b, BatchKind kind, uint32_t n_in, uint32_t *n_placed)
{
  *n_placed = 0;
  for (uint32_t k = 0; k < (kind == ROWS ? 1 : n_in); k++)
    {
      const int there = contiguity (b, k, false);

      if (there < 0)
        return false;
      *n_placed += (uint32_t)there;
      for (uint32_t j = 0; j < k; j++)
        if (operand_value (b, 0, j, false) == operand_value (b, 0, k, false))
          return false;
    }
  return kind == SUMS || contiguity (b, 0, true) == 0;
}

/* Replace the first member by one step that computes all of them, and drop the others.  `order`
 * has the remaining steps in an order that respects dependences. */
static void
apply (Batch *b, BatchKind kind, const uint32_t *order, uint32_t n_order)
{
  TdPlan *p = b->p;
  TdSteps *list = td__plan_list (p, b->list);
  uint32_t first = b->members[0], last = b->members[0], nodes[8], at;
  TdStep *sorted = td__plan_zeroed (n_order, sizeof *sorted), built;

  for (uint32_t i = 0; i < b->n_members; i++)
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
  for (uint32_t i = 0; i < b->n_members; i++)
    td__plan_note (p, TD_PASS_BATCH, b->list, list->steps[b->members[i]].trace_at,
                   built.trace_at);
  p->n_batched += b->n_members;
  list->steps[first] = built;
  for (uint32_t i = 0; i < n_order; i++)
    sorted[i] = list->steps[order[i]];
  free (list->steps);
  list->steps = sorted;
  list->n = list->capacity = n_order;
}

/* Collect step i and the later steps that could be merged with it.  Returns how many. */
static uint32_t
find_members (Batch *b, uint32_t i)
{
  const BatchKind kind = (BatchKind)b->kinds[i];

  b->n_members = 0;
  if (kind == NO_BATCH || !is_placeable (b, kind, i))
    return 0;
  for (uint32_t j = i; j < td__plan_list (b->p, b->list)->n; j++)
    if (b->kinds[j] == kind && are_alike (b, kind, i, j) && is_placeable (b, kind, j))
      b->members[b->n_members++] = j;
  return b->n_members;
}

/* Merge the members of the set that starts at step i, if their operands can be contiguous and
 * the steps can be reordered so that all inputs are there.  only_placed: only if some of the
 * inputs have been placed by an earlier set.  Returns whether the list has changed. */
static bool
try_set (Batch *b, uint32_t i, bool only_placed)
{
  const BatchKind kind = (BatchKind)b->kinds[i];
  TdSteps *list = td__plan_list (b->p, b->list);
  uint32_t n_placed, n_order, first = i, *joined, *order;
  bool *dead;

  sorting = b;
  qsort (b->members, b->n_members, sizeof *b->members, by_row_offset);
  if (!check_rows (b, kind, list->steps[i].n_in, &n_placed) || (only_placed && n_placed == 0))
    return false;
  joined = td__plan_zeroed (list->n, sizeof *joined);
  order = td__plan_zeroed (list->n, sizeof *order);
  dead = td__plan_zeroed (list->n, sizeof *dead);
  for (uint32_t j = 0; j < list->n; j++)
    joined[j] = j;
  for (uint32_t k = 0; k < b->n_members; k++)
    {
      joined[b->members[k]] = first;
      if (kind == SUMS)
        dead[b->gradient_step[b->members[k]]] = true;
    }
  if (kind == SUMS) /* of the steps that propagate the gradient that of the last member stays */
    {
      uint32_t last = first;

      for (uint32_t k = 0; k < b->n_members; k++)
        last = b->members[k] > last ? b->members[k] : last;
      dead[b->gradient_step[last]] = false;
    }
  n_order = td__order_steps (b->p, b->list, joined, dead, order);
  if (n_order != TD_ABSENT)
    apply (b, kind, order, n_order);
  free (joined);
  free (order);
  free (dead);
  return n_order != TD_ABSENT;
}

/* --- all sets of a list --- */

/* Find, for each step that makes a gradient, the step that propagates it.  A gradient that is
 * used anywhere else is left out: merging would take away what the other use reads. */
static void
find_gradient_steps (Batch *b)
{
  const TdSchedule *s = b->p->s;
  const TdSteps *list = td__plan_list (b->p, b->list);
  uint32_t *maker = td__plan_zeroed (s->n_values, sizeof *maker); /* step + 1 */

  memset (b->n_uses, 0, s->n_values * sizeof *b->n_uses);
  for (uint32_t i = 0; i < list->n; i++)
    {
      const TdStep *step = &list->steps[i];

      b->gradient_step[i] = TD_ABSENT;
      if (!td__step_computes (step))
        continue;
      for (uint32_t k = 0; k < step->n_in + step->n_out; k++)
        b->n_uses[s->nodes[k < step->n_in ? td__step_in (s, step, k)
                                          : td__step_out (s, step, k - step->n_in)]
                      .value]++;
      if (step->kind == TD_STEP_OP && step->external != TD_ABSENT && step->n_out == 1)
        maker[s->nodes[td__step_out (s, step, 0)].value] = i + 1;
    }
  for (uint32_t i = 0; i < list->n; i++)
    if (list->steps[i].kind == TD_STEP_PROPAGATE)
      {
        const uint32_t v = s->nodes[td__step_in (s, &list->steps[i], 0)].value;

        if (maker[v] != 0 && b->n_uses[v] == 2
            && list->steps[maker[v] - 1].external == list->steps[i].external)
          b->gradient_step[maker[v] - 1] = i;
      }
  free (maker);
}

/* Find gradient steps and kinds again: indices change with every set that is merged. */
static void
analyze_list (Batch *b)
{
  const TdSteps *list = td__plan_list (b->p, b->list);

  find_gradient_steps (b);
  for (uint32_t i = 0; i < list->n; i++)
    b->kinds[i] = (uint8_t)kind_of (b, i);
}

/* Merge every set of the list, larger sets first.  Among sets of one size
 * those go first that share an operand with a set that was merged before: its rows have an
 * order, which the others have to follow. */
static void
batch_list (Batch *b)
{
  TdSteps *list = td__plan_list (b->p, b->list);
  uint32_t size = UINT32_MAX, next;

  analyze_list (b);
  for (bool only_placed = true;; only_placed = !only_placed)
    {
      bool changed = false;

      next = 0;
      for (uint32_t i = 0; i < list->n && !changed; i++)
        {
          const uint32_t n = find_members (b, i);

          if (n == size)
            changed = try_set (b, i, only_placed);
          else if (n < size && n > next)
            next = n;
        }
      if (changed)
        analyze_list (b);
      if (changed)
        only_placed = false; /* the loop makes it true: this size again, placed sets first */
      else if (!only_placed || size == UINT32_MAX)
        {
          size = next;
          only_placed = false;
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
  b.gradient_step = td__plan_zeroed (most, sizeof *b.gradient_step);
  b.n_uses = td__plan_zeroed (p->s->n_values + 3 * most, sizeof *b.n_uses);
  for (b.list = 0; b.list <= p->s->n_backwards; b.list++)
    batch_list (&b);
  free (b.members);
  free (b.gradient_step);
  free (b.kinds);
  free (b.n_uses);
}
