/* Fusion of elementwise steps into groups that run tile by tile.
 *
 * A group is collected along the list and takes the place of its last member.  Steps between
 * members that do not depend on the group stay in front of it.  A value that only members use
 * is never written to memory: it lives in the tile.
 *
 * SPDX-License-Identifier: MIT */
#include "pass.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

enum
{
  MAX_MEMBERS = TD_TILE_MAX_STEPS,
  N_READS = 3 /* operands that a step may read: x, y, c */
};

/* How a value is used inside the open group. */
typedef struct
{
  uint32_t group; /* the group that the other fields are of; in others the value is unused */
  uint32_t n_touches;  /* how often members read or write it */
  uint32_t last;       /* the last member that does */
  uint32_t counted;    /* number of the last n_operands () that has seen it */
  bool written, first; /* first: its first use was a write of all elements */
  int64_t period;      /* a broadcast operand repeats after so many elements; 0: no broadcast */
} Use;

typedef struct
{
  TdPlan *p;
  uint32_t list;
  uint32_t *n_touches; /* by value, in all lists */
  Use *uses;           /* by value */
  uint32_t stamp, count;
  TdTileCall calls[MAX_MEMBERS];
  uint32_t members[MAX_MEMBERS]; /* steps of the list */
  uint32_t n, n_values, n_rows;  /* n_rows: values that are broadcast */
  uint32_t n_draws;              /* members that draw random numbers */
  bool *gone;                    /* by step: a group has replaced it */
} Fuse;

/* --- what can be fused --- */

/* The kernel of dropout.  It cannot be found as others are, because the operation allocates its
 * mask.  Random numbers belong to elements by their logical index, so that x has to lie in
 * row-major order. */
static bool
dropout_tile (const TdStep *step, const TdTensor *x, const TdTensor *y, TdTileCall *call)
{
  if (x->layout != TD_ROW_MAJOR || y->layout != TD_ROW_MAJOR)
    return false;
  *call = (TdTileCall){ .family = TD_TILE_MASK,
                        .dtype = (uint8_t)y->dtype,
                        .y = -1,
                        .z = 1,
                        .c = -1,
                        .full = 1,
                        .size = y->size };
  for (int k = 0; k < step->cls->n_attrs; k++)
    if (strcmp (step->cls->attrs[k].name, "ratio") == 0)
      {
        call->p = *(const double *)(const void *)((const char *)step->attrs
                                                  + step->cls->attrs[k].offset);
        return true;
      }
  return false;
}

bool
td__step_drops (const TdStep *step)
{
  return step->kind == TD_STEP_OP && step->random && strcmp (step->cls->name, "dropout") == 0;
}

bool
td__step_tile (const TdSchedule *s, const TdStep *step, TdTileCall *call)
{
  const unsigned seen = TD_OP_HOST | TD_OP_CAPTURES | TD_OP_VIEW;
  TdTensor t[8];
  TdRun run = { .call = { .cls = step->cls,
                          .attrs = step->attrs,
                          .n_in = (int)step->n_in,
                          .n_out = (int)step->n_out,
                          .in = t,
                          .out = t + step->n_in,
                          .accumulate = step->accumulate },
                .site = step->site,
                .device = s->device };
  bool known;

  if (step->kind != TD_STEP_OP || !(step->cls->flags & TD_OP_ELEMENTWISE)
      || (step->cls->flags & seen) || step->n_in + step->n_out > 8
      || (step->random && !td__step_drops (step))
      || (td_op_class_find (step->cls->name) != step->cls && step->cls != &td__add_into_class))
    return false;
  for (uint32_t k = 0; k < step->n_in + step->n_out; k++)
    {
      TdNodeInfo *n = &s->nodes[k < step->n_in ? td__step_in (s, step, k)
                                               : td__step_out (s, step, k - step->n_in)];

      t[k] = (TdTensor){ .shape = &n->shape, .size = td__size (&n->shape), .dtype = n->dtype };
      if (step->random)
        t[k].layout = n->layout;
    }
  known = step->random ? dropout_tile (step, &t[0], &t[1], call)
                       : td__tiles_record (&run.call, call);
  if (run.workspace != NULL)
    td__pool_release (run.workspace);
  return known && td__tiles_has (s->device, call);
}

static uint32_t
operand (const TdSchedule *s, const TdStep *step, int8_t k)
{
  const uint32_t i = (uint32_t)k;

  return i < step->n_in ? td__step_in (s, step, i) : td__step_out (s, step, i - step->n_in);
}

/* Whether a step can be a member: it has an elementwise kernel and writes memory of the
 * schedule. */
static bool
can_fuse (const TdSchedule *s, const TdStep *step, TdTileCall *call)
{
  const TdValue *v;

  if (step->kind != TD_STEP_OP || !td__step_tile (s, step, call) || call->broadcasts
      || call->size == 0)
    return false;
  v = td__node_value (s, operand (s, step, call->z));
  if (step->external != TD_ABSENT)
    return v->kind == TD_VALUE_GRADIENT && v->n_writers == 1 && step->n_out == 1
           && call->z == (int8_t)step->n_in && (step->cls->flags & TD_OP_ACCUMULATES);
  return v->kind == TD_VALUE_INTERIOR || v->kind == TD_VALUE_OUTPUT
         || v->kind == TD_VALUE_GRADIENT;
}

/* --- the open group --- */

static Use *
use_of (Fuse *f, uint32_t value)
{
  Use *u = &f->uses[value];

  if (u->group != f->stamp)
    {
      *u = (Use){ .group = f->stamp };
      f->n_values++;
    }
  return u;
}

static bool
is_used (const Fuse *f, uint32_t value, bool or_read)
{
  const TdPlan *p = f->p;
  const Use *u = &f->uses[value];
  const uint32_t b = td__plan_block (p, value);

  if (b != TD_ABSENT && td__plan_covers (p, value))
    {
      for (uint32_t k = 0; k < p->blocks[b].n_parts; k++)
        if (td__plan_covers_part (p, value, k) && is_used (f, p->blocks[b].parts[k], or_read))
          return true;
      return false;
    }
  return f->n > 0 && u->group == f->stamp && (u->written || or_read);
}

/* Whether a member makes a gradient of the same variable: such gradients are propagated in the
 * order of the trace. */
static bool
makes_gradient (const Fuse *f, uint32_t external)
{
  for (uint32_t j = 0; j < f->n && external != TD_ABSENT; j++)
    if (td__plan_list (f->p, f->list)->steps[f->members[j]].external == external)
      return true;
  return false;
}

/* Whether a step that is no member depends on the group. */
static bool
meets_group (const Fuse *f, const TdStep *step)
{
  const TdSchedule *s = f->p->s;

  if (makes_gradient (f, step->external))
    return true;

  for (uint32_t k = 0; k < step->n_in; k++)
    if (is_used (f, s->nodes[td__step_in (s, step, k)].value, td__step_writes_input (step, k)))
      return true;
  for (uint32_t k = 0; k < step->n_out; k++)
    if (is_used (f, s->nodes[td__step_out (s, step, k)].value, true))
      return true;
  return false;
}

/* After how many elements a broadcast operand repeats; 0: it is not broadcast. */
static int64_t
period_of (const TdSchedule *s, uint32_t node, const TdTileCall *call)
{
  const int64_t size = td__size (&s->nodes[node].shape);

  return size == call->size ? 0 : size;
}

static void
add_member (Fuse *f, uint32_t i, const TdTileCall *call)
{
  const TdSchedule *s = f->p->s;
  const TdStep *step = &td__plan_list (f->p, f->list)->steps[i];
  const int8_t reads[N_READS] = { call->x, call->y, call->c };
  Use *z;

  for (int k = 0; k < N_READS; k++)
    if (reads[k] >= 0)
      {
        const uint32_t node = operand (s, step, reads[k]);
        Use *u = use_of (f, s->nodes[node].value);

        f->n_rows += u->period <= 1 && period_of (s, node, call) > 1;
        u->period = period_of (s, node, call);
        u->last = f->n;
      }
  z = use_of (f, s->nodes[operand (s, step, call->z)].value);
  z->first |= !z->written && !call->accumulate && z->n_touches == 0 && call->z != call->x;
  z->written = true;
  z->last = f->n;
  f->n_draws += step->random;
  for (uint32_t k = 0; k < step->n_in; k++)
    use_of (f, s->nodes[td__step_in (s, step, k)].value)->n_touches++;
  for (uint32_t k = 0; k < step->n_out; k++)
    use_of (f, s->nodes[td__step_out (s, step, k)].value)->n_touches++;
  f->calls[f->n] = *call;
  f->members[f->n++] = i;
}

static bool
is_interior (const Fuse *f, uint32_t value)
{
  const Use *u = &f->uses[value];

  return u->first && td__plan_block (f->p, value) == TD_ABSENT
         && f->p->s->values[value].kind == TD_VALUE_INTERIOR
         && u->n_touches == f->n_touches[value];
}

/* The number of operands that the group has with its present members. */
static uint32_t
n_operands (Fuse *f)
{
  const TdSchedule *s = f->p->s;
  uint32_t n = 0;

  if (td__tiles_most_operands (s->device) == TD_TILE_MAX_OPERANDS)
    return f->n_values; /* an upper bound will do where so many are allowed */
  f->count++;
  for (uint32_t j = 0; j < f->n; j++)
    {
      const TdStep *step = &td__plan_list (f->p, f->list)->steps[f->members[j]];
      const TdTileCall *call = &f->calls[j];
      const int8_t all[] = { call->x, call->y, call->c, call->z };

      for (int i = 0; i < 1 + N_READS; i++)
        if (all[i] >= 0)
          {
            const uint32_t value = s->nodes[operand (s, step, all[i])].value;

            if (f->uses[value].counted != f->count)
              n += !is_interior (f, value);
            f->uses[value].counted = f->count;
          }
    }
  return n;
}

static bool
fits (Fuse *f, const TdSchedule *s, const TdStep *step, const TdTileCall *call)
{
  const int8_t reads[N_READS] = { call->x, call->y, call->c };
  uint32_t n_rows = f->n_rows;

  if (f->n == 0)
    return true;
  if (makes_gradient (f, step->external) || f->n == td__tiles_most_steps (s->device)
      || n_operands (f) + 1 + N_READS > td__tiles_most_operands (s->device)
      || call->size != f->calls[0].size || (step->random && f->n_draws == TD_TILE_MAX_DRAWS))
    return false;
  /* One value cannot be a single number to one member and an array to another. */
  for (int k = 0; k < N_READS; k++)
    if (reads[k] >= 0)
      {
        const uint32_t node = operand (s, step, reads[k]);
        const Use *u = &f->uses[s->nodes[node].value];
        const int64_t period = period_of (s, node, call);

        n_rows += period > 1 && u->group != f->stamp;
        if (n_rows > TD_TILE_MAX_ROWS || (u->group == f->stamp && u->period != period))
          return false;
      }
  return true;
}

/* --- from members to a group --- */

typedef struct
{
  uint32_t *place; /* by value: number of the operand, or n_operands + slot; or TD_ABSENT */
  uint32_t *nodes; /* nodes of the operands: inputs of the group, then outputs */
  uint32_t n_in, n_out, n_slots;
  bool free_slot[TD_TILE_MAX_SLOTS];
} Layout;

static uint32_t
take_slot (Layout *l)
{
  for (uint32_t k = 0; k < TD_TILE_MAX_SLOTS; k++)
    if (l->free_slot[k])
      {
        l->free_slot[k] = false;
        l->n_slots = k + 1 > l->n_slots ? k + 1 : l->n_slots;
        return k;
      }
  return TD_ABSENT;
}

enum
{
  SLOT = 0x80000000u /* marks slots until the number of operands is known */
};

static void
place_read (const Fuse *f, Layout *l, uint32_t node)
{
  const uint32_t value = f->p->s->nodes[node].value;

  if (l->place[value] != TD_ABSENT)
    return;
  l->place[value] = l->n_in;
  l->nodes[l->n_in++] = node;
}

static void
free_slots (const Fuse *f, Layout *l, uint32_t j, uint32_t value)
{
  const uint32_t place = l->place[value];

  if (f->uses[value].last == j && place != TD_ABSENT && (place & SLOT))
    l->free_slot[place & ~SLOT] = true;
}

/* Free the slots of values that member j is the last to read.  If their elements are as wide as
 * the result's, the result may take such a slot; with another width it would overwrite elements
 * that are not read yet, so those are freed in a second call, after the result has its slot. */
static void
free_reads (const Fuse *f, Layout *l, uint32_t j, bool as_wide)
{
  const TdSchedule *s = f->p->s;
  const TdTileCall *c = &f->calls[j];
  const TdStep *step = &td__plan_list (f->p, f->list)->steps[f->members[j]];
  const int8_t reads[N_READS] = { c->x, c->y, c->c };
  const TdNodeInfo *z = &s->nodes[operand (s, step, c->z)];

  for (int k = 0; k < N_READS; k++)
    {
      const TdNodeInfo *x = reads[k] >= 0 ? &s->nodes[operand (s, step, reads[k])] : z;

      if (x->value != z->value
          && (td__dtype_sizes[x->dtype] == td__dtype_sizes[z->dtype]) == as_wide)
        free_slots (f, l, j, x->value);
    }
}

/* Assign a slot or operand to each value, as registers are allocated: a result may take the
 * slot of an input that no later member reads. */
static void
lay_out (const Fuse *f, Layout *l, TdTileStep *steps, uint32_t *leaving, TdGroup *g)
{
  const TdSchedule *s = f->p->s;

  for (uint32_t j = 0; j < f->n; j++)
    {
      const TdTileCall *c = &f->calls[j];
      const TdStep *step = &td__plan_list (f->p, f->list)->steps[f->members[j]];
      const uint32_t z = s->nodes[operand (s, step, c->z)].value;
      const int8_t reads[N_READS] = { c->x, c->y, c->c };

      for (int k = 0; k < N_READS; k++)
        if (reads[k] >= 0)
          place_read (f, l, operand (s, step, reads[k]));
      if (c->accumulate || c->z == c->x)
        place_read (f, l, operand (s, step, c->z));
      steps[j] = (TdTileStep){ .call = *c, .addend = TD_ABSENT };
      steps[j].x = l->place[s->nodes[operand (s, step, c->x)].value];
      steps[j].y = c->y >= 0 ? l->place[s->nodes[operand (s, step, c->y)].value] : steps[j].x;
      steps[j].c = c->c >= 0 ? l->place[s->nodes[operand (s, step, c->c)].value] : steps[j].x;
      free_reads (f, l, j, true);
      if (l->place[z] == TD_ABSENT && is_interior (f, z))
        {
          const uint32_t slot = take_slot (l);

          if (slot != TD_ABSENT)
            {
              l->place[z] = SLOT | slot;
              g->interior[g->n_interior++] = z;
            }
        }
      if (l->place[z] == TD_ABSENT)
        {
          l->place[z] = SLOT >> 1 | l->n_out;
          leaving[l->n_out++] = operand (s, step, c->z);
        }
      else if (!(l->place[z] & (SLOT | SLOT >> 1)) && f->uses[z].last == j)
        leaving[l->n_out++]
            = operand (s, step, c->z); /* an input that a member changes in place */
      steps[j].z = l->place[z];
      free_reads (f, l, j, false);
      free_slots (f, l, j, z);
    }
}

static uint32_t
final_place (const Layout *l, uint32_t place)
{
  if (place & SLOT)
    return l->n_in + l->n_out + (place & ~SLOT);
  return place & SLOT >> 1 ? l->n_in + (place & ~(SLOT >> 1)) : place;
}

static bool
is_gradient (const Fuse *f, uint32_t j)
{
  return td__plan_list (f->p, f->list)->steps[f->members[j]].external != TD_ABSENT;
}

static bool
is_random (const Fuse *f, uint32_t j)
{
  return td__plan_list (f->p, f->list)->steps[f->members[j]].random;
}

/* Give members that accumulate a slot for their addend; they share one. */
static bool
place_addends (const Fuse *f, Layout *l, TdTileStep *steps)
{
  uint32_t addend = TD_ABSENT;

  for (uint32_t j = 0; j < f->n; j++)
    if (f->calls[j].accumulate || is_gradient (f, j))
      {
        if (addend == TD_ABSENT && l->n_slots == TD_TILE_MAX_SLOTS)
          return false;
        if (addend == TD_ABSENT)
          addend = SLOT | l->n_slots++;
        steps[j].addend = addend;
      }
  return true;
}

/* Whether the step is a view of what a member writes. */
static bool
shows_member (const Fuse *f, const TdStep *step)
{
  const TdSchedule *s = f->p->s;

  if (step->kind != TD_STEP_OP || td__step_computes (step) || step->n_in == 0)
    return false;
  for (uint32_t j = 0; j + 1 < f->n; j++)
    {
      const TdStep *member = &td__plan_list (f->p, f->list)->steps[f->members[j]];

      if (s->nodes[operand (s, member, f->calls[j].z)].value
          == s->nodes[td__step_in (s, step, 0)].value)
        return true;
    }
  return false;
}

/* Members run where the last of them stands: views of what the others write come behind it, so
 * that nothing is told of before it is there. */
static void
put_views_behind (Fuse *f)
{
  const uint32_t first = f->members[0], last = f->members[f->n - 1];
  TdSteps *list = td__plan_list (f->p, f->list);
  TdStep *views = td__plan_zeroed (last - first, sizeof *views);
  uint32_t n_views = 0, to = first;
  bool *behind = td__plan_zeroed (last - first + 1, sizeof *behind);

  for (uint32_t i = first; i < last; i++)
    behind[i - first] = shows_member (f, &list->steps[i]);
  for (uint32_t i = first; i <= last; i++)
    if (behind[i - first])
      views[n_views++] = list->steps[i];
    else
      {
        list->steps[to] = list->steps[i];
        f->gone[to++] = f->gone[i];
      }
  for (uint32_t k = 0; k < n_views; k++)
    {
      list->steps[to] = views[k];
      f->gone[to++] = false;
    }
  free (views);
  free (behind);
}

static void
write_group (Fuse *f, Layout *l, const TdTileStep *steps, const uint32_t *leaving, TdGroup g)
{
  TdPlan *p = f->p;
  TdSchedule *s = p->s;
  TdSteps *list = td__plan_list (p, f->list);
  const uint32_t last = f->members[f->n - 1],
                 at = td__schedule_operands (s, l->n_in + l->n_out);
  int64_t *period = td__plan_zeroed (l->n_in + l->n_out, sizeof *period);
  TdStep built = list->steps[last];
  const TdProgram program = { .steps = steps,
                              .period = period,
                              .n_steps = f->n,
                              .n_operands = l->n_in + l->n_out,
                              .n_slots = l->n_slots,
                              .size = f->calls[0].size };

  memcpy (s->operands + at, l->nodes, l->n_in * sizeof *s->operands);
  memcpy (s->operands + at + l->n_in, leaving, l->n_out * sizeof *s->operands);
  for (uint32_t k = 0; k < l->n_in; k++)
    period[k] = f->uses[s->nodes[l->nodes[k]].value].period;
  g.above = g.added = g.sum = TD_ABSENT;
  g.tiles = td__tiles_new (s->device, &program);
  if (g.tiles == NULL) /* no program for them: they run one by one */
    {
      free (period);
      free (g.interior);
      return;
    }
  g.externals = td__plan_zeroed (l->n_out, sizeof *g.externals);
  memset (g.externals, 0xFF, l->n_out * sizeof *g.externals);
  for (uint32_t j = 0; j < f->n; j++)
    if (is_gradient (f, j))
      g.externals[steps[j].z - l->n_in] = list->steps[f->members[j]].external;
  g.members = td__plan_zeroed (f->n, sizeof *g.members);
  g.n_members = f->n;
  g.size = f->calls[0].size;
  for (uint32_t j = 0; j < f->n; j++)
    {
      g.members[j] = list->steps[f->members[j]];
      f->gone[f->members[j]] = f->members[j] != last;
      td__plan_note (p, TD_PASS_FUSE, f->list, g.members[j].trace_at, p->n_groups);
    }
  built.kind = TD_STEP_GROUP;
  built.accumulate = false;
  built.random = f->n_draws > 0;
  built.in = at;
  built.n_in = l->n_in;
  built.out = at + l->n_in;
  built.n_out = l->n_out;
  built.cls = NULL;
  built.attrs = NULL;
  built.external = p->n_groups;
  list->steps[last] = built;
  p->groups = td__xrealloc (p->groups, (p->n_groups + 1) * sizeof *p->groups);
  p->groups[p->n_groups++] = g;
  p->n_fused += f->n;
  free (period);
  put_views_behind (f);
}

static void
close_group (Fuse *f)
{
  const TdSchedule *s = f->p->s;

  if (f->n >= 2)
    {
      Layout l = { .place = td__plan_zeroed (s->n_values, sizeof *l.place),
                   .nodes = td__plan_zeroed ((1 + N_READS) * (size_t)f->n, sizeof *l.nodes) };
      TdTileStep *steps = td__plan_zeroed (f->n, sizeof *steps);
      uint32_t *leaving = td__plan_zeroed (f->n, sizeof *leaving);
      TdGroup g = { .interior = td__plan_zeroed (f->n, sizeof *g.interior) };
      uint32_t n_draws = 0;

      memset (l.place, 0xFF, s->n_values * sizeof *l.place);
      memset (l.free_slot, true, sizeof l.free_slot);
      lay_out (f, &l, steps, leaving, &g);
      if (place_addends (f, &l, steps))
        {
          for (uint32_t j = 0; j < f->n; j++)
            {
              steps[j].x = final_place (&l, steps[j].x);
              steps[j].y = final_place (&l, steps[j].y);
              steps[j].z = final_place (&l, steps[j].z);
              steps[j].c = final_place (&l, steps[j].c);
              steps[j].may_add = is_gradient (f, j);
              if (is_random (f, j))
                steps[j].draw = n_draws++;
              if (steps[j].addend != TD_ABSENT)
                steps[j].addend = final_place (&l, steps[j].addend);
            }
          write_group (f, &l, steps, leaving, g);
        }
      else
        free (g.interior);
      free (l.place);
      free (l.nodes);
      free (steps);
      free (leaving);
    }
  f->n = f->n_values = f->n_rows = f->n_draws = 0;
  f->stamp++;
}

/* --- along a list --- */

/* Whether the step adds a further contribution to a gradient in half precision.  An addition in
 * place rounds once less than a sum of two arrays, and which of them is used depends on who
 * else holds the gradient at that moment.  To keep the bits, such a step is not moved. */
static bool
adds_in_halves (const TdSteps *list, uint32_t i, const TdSchedule *s)
{
  const TdStep *step = &list->steps[i];

  if (step->kind != TD_STEP_OP || step->external == TD_ABSENT
      || td_dtype_bytes ((TdDtype)s->nodes[td__step_out (s, step, 0)].dtype) != 2)
    return false;
  for (uint32_t k = 0; k < i; k++)
    if (list->steps[k].kind == TD_STEP_PROPAGATE && list->steps[k].external == step->external)
      return true;
  return false;
}

static void
fuse_list (Fuse *f)
{
  TdSteps *list = td__plan_list (f->p, f->list);

  f->gone = td__plan_zeroed (list->n, sizeof *f->gone);
  for (uint32_t i = 0; i < list->n; i++)
    {
      const TdStep *step = &list->steps[i];
      TdTileCall call;

      if (!td__step_computes (step))
        continue;
      if (adds_in_halves (list, i, f->p->s))
        close_group (f);
      else if (can_fuse (f->p->s, step, &call))
        {
          if (!fits (f, f->p->s, step, &call))
            {
              if (f->n > 1 && call.size != f->calls[0].size && !meets_group (f, step))
                continue; /* it runs by itself */
              close_group (f);
            }
          add_member (f, i, &call);
        }
      else if (meets_group (f, step))
        close_group (f);
    }
  close_group (f);
  td__plan_remove (f->p, f->list, f->gone);
  free (f->gone);
}

void
td__pass_fuse (TdPlan *p)
{
  Fuse *f;

  if (!td__tiles_known (p->s->device))
    return;
  f = td__plan_zeroed (1, sizeof *f);
  f->p = p;
  f->n_touches = td__plan_touches (p);
  f->uses = td__plan_zeroed (p->s->n_values, sizeof *f->uses);
  f->stamp = 1;
  for (f->list = 0; f->list <= p->s->n_backwards; f->list++)
    fuse_list (f);
  free (f->n_touches);
  free (f->uses);
  free (f);
}
