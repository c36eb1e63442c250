/* Memory planning: an offset in the arena for each value, so that values that live at the same
 * time do not overlap.
 *
 * A lifetime is a range of steps in a list.  Values that only the forward uses live in its
 * list; saved values also live in each backward that reads them.  A call runs only one of the
 * backwards, so the temporaries of different ones may overlap.  The result of an elementwise
 * step may take the memory of an input that is not read again.
 *
 * Several greedy orders are tried, and the one that needs the least memory is taken.  The lower
 * bound is the largest sum of the sizes of values that live at the same time.
 *
 * SPDX-License-Identifier: MIT */
#include "pass.h"

#include <stdlib.h>
#include <string.h>

enum
{
  ALIGN = 64,
  MANY = 6000,     /* values: for more than so many only one greedy order is tried */
  TOO_MANY = 40000 /* and beyond this none: every value has memory of its own */
};

typedef struct
{
  TdPlan *p;
  uint32_t n_values, n_lists;
  uint32_t *items; /* values that need memory of their own */
  uint32_t n_items;
  size_t *offsets;   /* by value, for the order that is being tried */
  uint32_t *placed;  /* sorted by offset */
  uint32_t *weights; /* by value: what an order sorts by */
} Memory;

static bool
never (TdLife l)
{
  return l.first > l.last;
}

static TdLife *
life (const Memory *m, uint32_t list, uint32_t value)
{
  return &m->p->lives[(size_t)list * m->n_values + value];
}

static size_t
room (const Memory *m, uint32_t value)
{
  return (m->p->s->values[value].bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* --- lifetimes --- */

static void
touch (Memory *m, uint32_t list, uint32_t value, uint32_t at)
{
  const uint32_t block = td__plan_block (m->p, value);
  TdLife *l = life (m, list, value);

  if (block != TD_ABSENT && m->p->blocks[block].value != value)
    touch (m, list, m->p->blocks[block].value, at);
  if (at < l->first)
    l->first = at;
  if (at > l->last || never (*l))
    l->last = at;
}

static void
find_lives (Memory *m)
{
  TdPlan *p = m->p;
  const TdSchedule *s = p->s;

  p->lives = td__plan_zeroed ((size_t)m->n_lists * m->n_values, sizeof *p->lives);
  for (size_t i = 0; i < (size_t)m->n_lists * m->n_values; i++)
    p->lives[i] = (TdLife){ UINT32_MAX, 0 };
  for (uint32_t list = 0; list < m->n_lists; list++)
    {
      const TdSteps *steps = td__plan_list (p, list);

      for (uint32_t i = 0; i < steps->n; i++)
        {
          const TdStep *step = &steps->steps[i];

          if (!td__step_computes (step))
            continue;
          for (uint32_t k = 0; k < step->n_in; k++)
            touch (m, list, s->nodes[td__step_in (s, step, k)].value, i);
          for (uint32_t k = 0; k < step->n_out; k++)
            touch (m, list, s->nodes[td__step_out (s, step, k)].value, i);
        }
    }
  /* A value of the forward that a backward uses lives to the end of the forward, and in the
   * backward from its start. */
  for (uint32_t v = 0; v < m->n_values; v++)
    for (uint32_t list = 1; list < m->n_lists; list++)
      if (!never (*life (m, 0, v)) && !never (*life (m, list, v)))
        {
          life (m, 0, v)->last = td__plan_list (p, 0)->n;
          life (m, list, v)->first = 0;
        }
}

/* --- in place --- */

/* Whether a value is dead after step i of the list, whichever backward runs later. */
static bool
dies_at (const Memory *m, uint32_t list, uint32_t value, uint32_t i)
{
  if (life (m, list, value)->last != i || never (*life (m, list, value)))
    return false;
  for (uint32_t other = 1; other < m->n_lists && list == 0; other++)
    if (!never (*life (m, other, value)))
      return false;
  return true;
}

static uint32_t
home_of (const Memory *m, uint32_t value)
{
  while (m->p->home[value] != value)
    value = m->p->home[value];
  return value;
}

/* Let `value` share the memory of `home`, which then lives as long as both. */
static void
unite (Memory *m, uint32_t value, uint32_t home)
{
  m->p->home[value] = home;
  for (uint32_t list = 0; list < m->n_lists; list++)
    {
      TdLife *a = life (m, list, home), *b = life (m, list, value);

      if (never (*b))
        continue;
      if (never (*a))
        *a = *b;
      a->first = a->first < b->first ? a->first : b->first;
      a->last = a->last > b->last ? a->last : b->last;
    }
}

static bool
is_item (const Memory *m, uint32_t value)
{
  return m->p->s->values[value].kind == TD_VALUE_INTERIOR;
}

/* Place the result of an elementwise step, or of a member of group i, over an input if
 * possible. */
static void
replace_input (Memory *m, uint32_t list, uint32_t i, const TdStep *step, uint32_t mask)
{
  const TdSchedule *s = m->p->s;
  uint32_t out = s->nodes[td__step_out (s, step, 0)].value;

  if (!is_item (m, out) || never (*life (m, list, out)) || m->p->home[out] != out
      || life (m, list, out)->first != i || life (m, list, out)->last == i
      || s->values[out].n_writers != 1)
    return;
  for (uint32_t k = 0; k < step->n_in; k++)
    {
      const uint32_t in = s->nodes[td__step_in (s, step, k)].value, home = home_of (m, in);

      if (!(mask >> k & 1) || !is_item (m, in) || in == out
          || td__plan_block (m->p, in) != TD_ABSENT
          || s->values[in].bytes != s->values[out].bytes
          || td__size (&s->nodes[td__step_in (s, step, k)].shape)
                 != td__size (&s->nodes[td__step_out (s, step, 0)].shape)
          || !dies_at (m, list, home, i) || life (m, list, home)->first == i)
        continue;
      unite (m, out, home);
      td__plan_note (m->p, TD_PASS_IN_PLACE, list, step->trace_at, in);
      m->p->n_in_place++;
      return;
    }
}

/* Inputs of member j that no later member reads, as a bit mask. */
static uint32_t
last_reads (const TdSchedule *s, const TdGroup *g, uint32_t j)
{
  uint32_t mask = 0;

  for (uint32_t k = 0; k < g->members[j].n_in && k < 32; k++)
    {
      const uint32_t value = s->nodes[td__step_in (s, &g->members[j], k)].value;
      bool later = false;

      for (uint32_t i = j + 1; i < g->n_members && !later; i++)
        for (uint32_t n = 0; n < g->members[i].n_in; n++)
          later |= s->nodes[td__step_in (s, &g->members[i], n)].value == value;
      if (!later)
        mask |= 1u << k;
    }
  return mask;
}

/* Whether no other input of the step is of the same value as input k. */
static bool
is_read_once (const Memory *m, const TdStep *step, uint32_t k)
{
  const TdSchedule *s = m->p->s;
  uint32_t n = 0;

  for (uint32_t j = 0; j < step->n_in; j++)
    n += s->nodes[td__step_in (s, step, j)].value == s->nodes[td__step_in (s, step, k)].value;
  return n == 1;
}

/* Place the sum of a row normalisation group over one of its summands, if nothing else in the
 * group reads that. */
static void
replace_added (Memory *m, uint32_t list, uint32_t i, const TdGroup *g)
{
  const TdStep *step = &td__plan_list (m->p, list)->steps[i];
  const bool x = is_read_once (m, step, 0), added = is_read_once (m, step, g->added);

  if (g->main == 0)
    replace_input (m, list, i, step, added ? 1u << g->added : 0);
  else if (g->sum == TD_ABSENT)
    replace_input (m, list, i, step, (x ? 1u : 0) | (added ? 1u << g->added : 0));
  else
    replace_input (m, list, i, &g->members[0], (x ? 1u : 0) | (added ? 2u : 0));
}

static void
find_in_place (Memory *m)
{
  const TdPlan *p = m->p;
  TdTileCall call;

  if (!td__tiles_known (p->s->device))
    return;
  for (uint32_t list = 0; list < m->n_lists; list++)
    {
      const TdSteps *steps = td__plan_list (p, list);

      for (uint32_t i = 0; i < steps->n; i++)
        {
          const TdStep *step = &steps->steps[i];

          if (step->kind == TD_STEP_GROUP)
            {
              const TdGroup *g = &p->groups[step->external];

              if (g->rows)
                replace_added (m, list, i, g);
              for (uint32_t j = 0; g->tiles != NULL && j < g->n_members && g->n_members < 200;
                   j++)
                if (g->members[j].n_out == 1 && !g->members[j].accumulate)
                  replace_input (m, list, i, &g->members[j], last_reads (p->s, g, j));
            }
          else if (step->external == TD_ABSENT && !step->accumulate && step->n_out == 1
                   && td__step_tile (p->s, step, &call))
            replace_input (m, list, i, step, call.full);
        }
    }
}

/* --- the bound --- */

static size_t
most_alive (const Memory *m)
{
  size_t most = 0;

  for (uint32_t list = 0; list < m->n_lists; list++)
    {
      const uint32_t n = td__plan_list (m->p, list)->n;
      int64_t *change = td__plan_zeroed (n + 2, sizeof *change), alive = 0;

      for (uint32_t k = 0; k < m->n_items; k++)
        {
          const TdLife *l = life (m, list, m->items[k]);

          if (never (*l))
            continue;
          change[l->first] += (int64_t)room (m, m->items[k]);
          change[(l->last < n ? l->last : n) + 1] -= (int64_t)room (m, m->items[k]);
        }
      for (uint32_t i = 0; i <= n; i++)
        {
          alive += change[i];
          if ((size_t)alive > most)
            most = (size_t)alive;
        }
      free (change);
    }
  return most;
}

/* --- greedy orders --- */

static bool
meet (const Memory *m, uint32_t a, uint32_t b)
{
  for (uint32_t list = 0; list < m->n_lists; list++)
    {
      const TdLife x = *life (m, list, a), y = *life (m, list, b);

      if (x.first <= x.last && y.first <= y.last && x.first <= y.last && y.first <= x.last)
        return true;
    }
  return false;
}

static const Memory *sorting;

static int
by_weight (const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  const uint32_t wx = sorting->weights[x], wy = sorting->weights[y];
  const size_t rx = room (sorting, x), ry = room (sorting, y);

  if (wx != wy)
    return wx < wy ? 1 : -1;
  if (rx != ry)
    return rx < ry ? 1 : -1;
  return (x > y) - (x < y);
}

/* Best fit: the smallest gap for the value between those placed values that live when it does.
 */
static size_t
best_gap (const Memory *m, uint32_t n_placed, uint32_t value)
{
  const size_t need = room (m, value);
  size_t end = 0, best = SIZE_MAX, at = SIZE_MAX;

  for (uint32_t k = 0; k < n_placed; k++)
    {
      const uint32_t other = m->placed[k];
      const size_t offset = m->offsets[other], top = offset + room (m, other);

      if (top <= end || !meet (m, value, other))
        continue;
      if (offset >= end + need && offset - end < best)
        {
          best = offset - end;
          at = end;
        }
      end = top;
    }
  return at != SIZE_MAX ? at : end;
}

/* Place all items in the order of their weights.  Returns the size of the arena. */
static size_t
place (Memory *m)
{
  size_t total = 0;

  sorting = m;
  qsort (m->items, m->n_items, sizeof *m->items, by_weight);
  for (uint32_t n = 0; n < m->n_items; n++)
    {
      const uint32_t value = m->items[n];
      uint32_t k = n;

      m->offsets[value] = best_gap (m, n, value);
      if (m->offsets[value] + room (m, value) > total)
        total = m->offsets[value] + room (m, value);
      while (k > 0 && m->offsets[m->placed[k - 1]] > m->offsets[value])
        {
          m->placed[k] = m->placed[k - 1];
          k--;
        }
      m->placed[k] = value;
    }
  return total;
}

/* The length of a value's lifetime in steps, over all lists. */
static uint32_t
duration (const Memory *m, uint32_t value)
{
  uint32_t n = 0;

  for (uint32_t list = 0; list < m->n_lists; list++)
    if (!never (*life (m, list, value)))
      n += life (m, list, value)->last - life (m, list, value)->first + 1;
  return n;
}

static uint32_t
start (const Memory *m, uint32_t value)
{
  for (uint32_t list = 0; list < m->n_lists; list++)
    if (!never (*life (m, list, value)))
      return list * td__plan_list (m->p, 0)->n + life (m, list, value)->first;
  return 0;
}

typedef enum
{
  BY_SIZE,
  BY_DURATION,
  BY_START,
  BY_AREA,  /* size times lifetime */
  BY_SAVED, /* saved values first, then by size */
  N_ORDERS
} Order;

static void
weigh (Memory *m, Order order)
{
  for (uint32_t k = 0; k < m->n_items; k++)
    {
      const uint32_t v = m->items[k];
      const uint32_t size = (uint32_t)(room (m, v) / ALIGN);
      const uint64_t area = (uint64_t)size * duration (m, v);

      m->weights[v] = order == BY_SIZE       ? size
                      : order == BY_DURATION ? duration (m, v)
                      : order == BY_START    ? UINT32_MAX - start (m, v)
                      : order == BY_AREA     ? (uint32_t)(area > UINT32_MAX ? UINT32_MAX : area)
                                             : m->p->s->values[v].is_saved;
    }
}

static void
best_of_orders (Memory *m)
{
  TdPlan *p = m->p;

  p->arena_bytes = SIZE_MAX;
  for (Order order = 0; order < N_ORDERS && p->arena_bytes > p->lower_bound; order++)
    {
      size_t bytes;

      if (order > BY_SIZE && m->n_items > MANY)
        break;
      weigh (m, order);
      bytes = place (m);
      if (bytes >= p->arena_bytes)
        continue;
      p->arena_bytes = bytes;
      for (uint32_t k = 0; k < m->n_items; k++)
        p->offsets[m->items[k]] = m->offsets[m->items[k]];
    }
}

static void
side_by_side (Memory *m)
{
  for (uint32_t k = 0; k < m->n_items; k++)
    {
      m->p->offsets[m->items[k]] = m->p->arena_bytes;
      m->p->arena_bytes += room (m, m->items[k]);
    }
}

static void
collect_items (Memory *m)
{
  for (uint32_t v = 0; v < m->n_values; v++)
    {
      bool lives = false;

      m->p->offsets[v] = SIZE_MAX;
      for (uint32_t list = 0; list < m->n_lists; list++)
        lives |= !never (*life (m, list, v));
      if (is_item (m, v) && m->p->home[v] == v && lives)
        m->items[m->n_items++] = v;
    }
}

void
td__pass_memory (TdPlan *p, bool in_place, bool overlay)
{
  const uint32_t n = p->s->n_values;
  Memory m = { .p = p, .n_values = n, .n_lists = p->s->n_backwards + 1 };

  p->offsets = td__plan_zeroed (n, sizeof *p->offsets);
  p->home = td__plan_zeroed (n, sizeof *p->home);
  m.items = td__plan_zeroed (n, sizeof *m.items);
  m.placed = td__plan_zeroed (n, sizeof *m.placed);
  m.weights = td__plan_zeroed (n, sizeof *m.weights);
  m.offsets = td__plan_zeroed (n, sizeof *m.offsets);
  for (uint32_t v = 0; v < n; v++)
    p->home[v] = td__plan_block (p, v) != TD_ABSENT ? p->blocks[p->block[v]].value : v;
  find_lives (&m);
  if (in_place)
    find_in_place (&m);
  collect_items (&m);
  p->lower_bound = most_alive (&m);
  if (overlay && m.n_items <= TOO_MANY)
    best_of_orders (&m);
  else
    side_by_side (&m);
  for (uint32_t v = 0; v < n; v++)
    if (p->home[v] != v)
      {
        p->home[v] = home_of (&m, v);
        p->offsets[v] = p->offsets[p->home[v]];
        if (td__plan_block (p, v) != TD_ABSENT)
          p->offsets[v] += p->inner[v];
      }
  free (m.items);
  free (m.placed);
  free (m.weights);
  free (m.offsets);
}
