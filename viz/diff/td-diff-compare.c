/*
 * In what pairs differ, and what only follows from an earlier difference: gradients of what
 * differs, and what reads its results.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "tape/td-attributes.h"
#include "td-diff-private.h"
#include "td-tape.h"

/* Another call: a decision of the program, also behind an earlier difference. */
#define DECIDED                                                                                \
  (TD_DIFF_OPERATION | TD_DIFF_ATTRIBUTES | TD_DIFF_LINK | TD_DIFF_INPUTS | TD_DIFF_FAILED     \
   | TD_DIFF_ORDER)
#define STRUCTURAL (DECIDED | TD_DIFF_SHAPE | TD_DIFF_DTYPE | TD_DIFF_GRAPH)
/* How many lone operations lie between a variable and what it stands for, at most. */
#define MAX_WALK 64

typedef struct
{
  TdComparison *c;
  gint32 *taint[2]; /* by variable: 1 + the pair at the root of its being different; 0: none */
  GArray *pairs, *items;
  gint cut; /* the first pair of which one left no graph, -1 */
} Walk;

static const TdTapeEvent *
event_of (const TdComparison *c, guint side, gint event)
{
  return &c->t[side]->events[event];
}

static TdDiffPair *
pair_at (Walk *w, gint i)
{
  return &g_array_index (w->pairs, TdDiffPair, i);
}

/* ---- what follows ---- */

/* The pair from which an event follows: its forward twin is different, or it reads what is. */
static gint
cause_of (Walk *w, guint side, gint event)
{
  const TdTapeIteration *t = w->c->t[side];
  const TdTapeEvent *e = &t->events[event];

  if (e->twin >= 0 && (guint)e->twin < t->n_events)
    {
      gint p = w->c->d->pair_of[side][e->twin];

      if (p >= 0 && pair_at (w, p)->cause >= 0)
        return pair_at (w, p)->cause;
      if (p >= 0
          && (pair_at (w, p)->kind == TD_DIFF_REMOVED || pair_at (w, p)->kind == TD_DIFF_ADDED
              || (pair_at (w, p)->aspects & STRUCTURAL) != 0))
        return p;
    }
  for (guint k = 0; k < e->n_in; k++)
    if (w->taint[side][t->ins[e->first_in + k]] > 0)
      return w->taint[side][t->ins[e->first_in + k]] - 1;
  return -1;
}

static void
mark_outputs (Walk *w, guint side, gint event, gint root)
{
  const TdTapeIteration *t = w->c->t[side];
  const TdTapeEvent *e = &t->events[event];

  for (guint k = 0; k < e->n_out; k++)
    w->taint[side][t->outs[e->first_out + k]] = root + 1;
}

/* ---- what differs ---- */

/* Is the attribute `word` of that name, and one that may follow from other sizes, or a place in
 * the random stream? */
static gboolean
is_named (const char *word, const char *const *names)
{
  for (; *names; names++)
    if (g_str_has_prefix (word, *names) && word[strlen (*names)] == '=')
      return TRUE;
  return FALSE;
}

gboolean
td_diff_is_call_of_ranks (const char *op)
{
  return g_str_has_prefix (op, "comm_") || g_str_equal (op, "send") || g_str_equal (op, "recv");
}

/* Aspects of two texts of attributes of an operation; sizes that follow (where what it returns
 * has other bytes) and places in the random stream are not decisions of the program, nor is
 * which rank of a communicator it ran on. */
guint
td__diff_compare_attributes (const char *op, const char *a, const char *b, gboolean follows)
{
  static const char *const random[] = { "offset", "seed", "key", NULL };
  static const char *const sizes[] = { "shape", NULL };
  static const char *const own[] = { "rank", NULL };
  guint aspects = 0;

  if (g_str_equal (a, b))
    return 0;
  g_auto (GStrv) wa = td_attributes_split (a), wb = td_attributes_split (b);
  if (g_strv_length (wa) != g_strv_length (wb))
    return TD_DIFF_ATTRIBUTES;
  for (guint i = 0; wa[i]; i++)
    {
      if (g_str_equal (wa[i], wb[i]))
        continue;
      if (td_diff_is_call_of_ranks (op) && is_named (wa[i], own) && is_named (wb[i], own))
        continue;
      if (is_named (wa[i], random) && is_named (wb[i], random))
        aspects |= TD_DIFF_NUMBERS;
      else if (follows && is_named (wa[i], sizes) && is_named (wb[i], sizes))
        aspects |= TD_DIFF_SHAPE;
      else
        aspects |= TD_DIFF_ATTRIBUTES;
    }
  return aspects;
}

static guint64
output_bytes (const TdTapeIteration *t, guint event)
{
  const TdTapeEvent *e = &t->events[event];
  guint64 bytes = 0;

  for (guint k = 0; k < e->n_out; k++)
    bytes += t->vars[t->outs[e->first_out + k]].bytes;
  return bytes;
}

static guint
compare_outputs (const TdComparison *c, const TdTapeEvent *ea, const TdTapeEvent *eb)
{
  guint aspects = ea->n_out != eb->n_out ? TD_DIFF_SHAPE : 0;

  for (guint k = 0; k < MIN (ea->n_out, eb->n_out); k++)
    {
      const TdTapeVar *a = &c->t[0]->vars[c->t[0]->outs[ea->first_out + k]],
                      *b = &c->t[1]->vars[c->t[1]->outs[eb->first_out + k]];

      if (a->dtype != b->dtype)
        aspects |= TD_DIFF_DTYPE;
      if (a->ndim != b->ndim
          || memcmp (c->t[0]->dims + a->first_dim, c->t[1]->dims + b->first_dim,
                     a->ndim * sizeof (gint64))
                 != 0)
        aspects |= TD_DIFF_SHAPE;
    }
  return aspects;
}

static gboolean
has_output_like (const TdTapeIteration *t, const TdTapeEvent *e, const TdTapeIteration *other,
                 const TdTapeVar *v)
{
  for (guint k = 0; k < e->n_out; k++)
    {
      const TdTapeVar *x = &t->vars[t->outs[e->first_out + k]];

      if (x->dtype == v->dtype && x->ndim == v->ndim
          && memcmp (t->dims + x->first_dim, other->dims + v->first_dim,
                     v->ndim * sizeof (gint64))
                 == 0)
        return TRUE;
    }
  return FALSE;
}

/* A group hands out what its last member does, and of the others what somebody else reads. */
static guint
compare_results (const TdComparison *c, const TdFusedGroup *group)
{
  const TdTapeIteration *t = c->t[group->side], *other = c->t[1 - group->side];
  const TdTapeEvent *last = event_of (
      c, group->side, (gint)g_array_index (c->fused, guint32, group->first + group->n - 1));

  for (guint k = 0; k < last->n_out; k++)
    if (!has_output_like (other, event_of (c, 1 - group->side, group->event), t,
                          &t->vars[t->outs[last->first_out + k]]))
      return TD_DIFF_SHAPE;
  return 0;
}

/* Does `var` of `side` stand for `other`, through operations that only its side has? */
static gboolean
stands_for (const TdComparison *c, guint side, guint var, guint other)
{
  guint queue[MAX_WALK], n = 1;

  queue[0] = var;
  for (guint at = 0; at < n; at++)
    {
      gint maker = c->t[side]->vars[queue[at]].producer;

      if (side == TD_DIFF_A ? td__diff_same_var (c, queue[at], other)
                            : td__diff_same_var (c, other, queue[at]))
        return TRUE;
      if (maker < 0 || (at > 0 && c->d->partner[side][maker] >= 0))
        continue;
      if (at == 0 && c->d->partner[side][maker] >= 0)
        return FALSE;
      const TdTapeEvent *e = event_of (c, side, maker);
      for (guint k = 0; k < e->n_in && n < MAX_WALK; k++)
        queue[n++] = c->t[side]->ins[e->first_in + k];
    }
  return FALSE;
}

/* Both lone: they differ by what they are, which is listed where they are. */
static gboolean
both_lone (const TdComparison *c, guint var_a, guint var_b)
{
  gint pa = c->t[0]->vars[var_a].producer, pb = c->t[1]->vars[var_b].producer;

  return pa >= 0 && pb >= 0 && c->d->partner[0][pa] < 0 && c->d->partner[1][pb] < 0;
}

static gboolean
is_leaf_pair (const TdComparison *c, guint var_a, guint var_b)
{
  const TdTapeVar *a = &c->t[0]->vars[var_a], *b = &c->t[1]->vars[var_b];

  /* other sizes of data show in the shapes of what reads them */
  return a->producer < 0 && b->producer < 0
         && ((a->flags | b->flags) & TD_TAPE_VAR_PARAMETER) == 0 && a->category == b->category
         && !td__diff_other_leaf (c, var_a, var_b);
}

gboolean
td__diff_reads_other (const TdComparison *c, guint a, guint b)
{
  return !td__diff_same_var (c, a, b) && !is_leaf_pair (c, a, b) && !both_lone (c, a, b)
         && !stands_for (c, 0, a, b) && !stands_for (c, 1, b, a);
}

/* Does a pair read something else than its counterpart, beyond what was put in or left out? */
static gboolean
reads_other (const TdComparison *c, const TdTapeEvent *ea, const TdTapeEvent *eb)
{
  if (ea->n_in != eb->n_in)
    return TRUE;
  for (guint k = 0; k < ea->n_in; k++)
    if (td__diff_reads_other (c, c->t[0]->ins[ea->first_in + k],
                              c->t[1]->ins[eb->first_in + k]))
      return TRUE;
  return FALSE;
}

static guint
compare_events (TdComparison *c, gint a, gint b)
{
  const TdIteration *ia = c->d->side[0], *ib = c->d->side[1];
  const TdTapeEvent *ea = event_of (c, 0, a), *eb = event_of (c, 1, b);
  guint aspects = compare_outputs (c, ea, eb), attrs;

  if (!g_str_equal (td_iteration_get_op_name (ia, (guint)a),
                    td_iteration_get_op_name (ib, (guint)b)))
    aspects |= TD_DIFF_OPERATION;
  if (!g_str_equal (td_iteration_get_link_path (ia, (guint)a),
                    td_iteration_get_link_path (ib, (guint)b)))
    aspects |= TD_DIFF_LINK;
  attrs = td__diff_compare_attributes (
      td_iteration_get_op_name (ia, (guint)a), td_iteration_get_string (ia, ea->attrs),
      td_iteration_get_string (ib, eb->attrs),
      output_bytes (c->t[0], (guint)a) != output_bytes (c->t[1], (guint)b));
  /* an optimizer's attributes are numbers that change from step to step */
  if (ea->phase == TD_TAPE_PHASE_UPDATE && attrs != 0)
    attrs = TD_DIFF_NUMBERS;
  aspects |= attrs;
  if (!(aspects & TD_DIFF_OPERATION))
    aspects |= td__diff_compare_members (c, (guint)a, (guint)b);
  if ((ea->flags ^ eb->flags) & TD_TAPE_EVENT_FAILED)
    aspects |= TD_DIFF_FAILED;
  if ((ea->flags ^ eb->flags) & TD_TAPE_EVENT_REPLAYED)
    aspects |= TD_DIFF_MODE;
  if (c->moved[0][a])
    aspects |= TD_DIFF_ORDER;
  if (ea->phase == TD_TAPE_PHASE_FORWARD
      && ((ea->flags ^ eb->flags) & TD_TAPE_EVENT_NO_BACKPROP))
    aspects |= TD_DIFF_GRAPH;
  /* another layer reads its own parameters */
  if (ea->phase == TD_TAPE_PHASE_FORWARD && !(aspects & (TD_DIFF_OPERATION | TD_DIFF_LINK))
      && reads_other (c, ea, eb))
    aspects |= TD_DIFF_INPUTS;
  return aspects;
}

/* ---- pairs ---- */

static void
add_costs (Walk *w, TdDiffPair *pair, guint side, guint event)
{
  const TdTapeIteration *t = w->c->t[side];

  pair->ns[side] += td__diff_event_ns (w->c, side, event);
  pair->bytes[side] += output_bytes (t, event);
  w->c->d->pair_of[side][event] = (gint32)w->pairs->len;
}

static void
add_pair (Walk *w, TdDiffPair *pair)
{
  TdDiff *d = w->c->d;
  gint at = (gint)w->pairs->len;
  guint phase = TD_TAPE_PHASE_FORWARD;

  for (guint s = 0; s < 2; s++)
    if (pair->event[s] >= 0)
      phase = event_of (w->c, s, pair->event[s])->phase;
  g_array_append_val (w->pairs, *pair);
  if (pair->cause >= 0)
    d->n_followers[MIN (phase, TD_TAPE_N_PHASES - 1)]++;
  if (pair->cause >= 0 || pair->kind != TD_DIFF_SAME)
    for (guint s = 0; s < 2; s++)
      if (pair->event[s] >= 0)
        mark_outputs (w, s, pair->event[s], pair->cause >= 0 ? pair->cause : at);
}

static void
add_matched (Walk *w, gint a, gint b)
{
  TdDiffPair pair = { .event = { a, b } };
  gint cause = cause_of (w, 0, a);
  gboolean forward = event_of (w->c, 0, a)->phase == TD_TAPE_PHASE_FORWARD;

  if (cause < 0)
    cause = cause_of (w, 1, b);
  pair.aspects = compare_events (w->c, a, b);
  if (cause >= 0 && !(forward && (pair.aspects & DECIDED)))
    pair.cause = cause;
  else
    pair.cause = -1;
  if (pair.aspects & STRUCTURAL)
    pair.kind = TD_DIFF_CHANGED;
  if ((pair.aspects & TD_DIFF_GRAPH) && pair.cause < 0 && w->cut < 0)
    w->cut = (gint)w->pairs->len;
  add_costs (w, &pair, 0, (guint)a);
  add_costs (w, &pair, 1, (guint)b);
  add_pair (w, &pair);
}

/* An event that only one side has: a difference; in the passes after the forward one what
 * follows from a difference, if it does. Two inserted operations are two differences. */
static void
add_lone (Walk *w, guint side, gint event)
{
  TdDiffPair pair = { .kind = side == TD_DIFF_A ? TD_DIFF_REMOVED : TD_DIFF_ADDED,
                      .cause = -1,
                      .event = { -1, -1 } };

  pair.event[side] = event;
  if (event_of (w->c, side, event)->phase != TD_TAPE_PHASE_FORWARD)
    {
      pair.cause = cause_of (w, side, event);
      if (pair.cause < 0) /* nothing came through what left no graph */
        pair.cause = w->cut;
    }
  add_costs (w, &pair, side, (guint)event);
  add_pair (w, &pair);
}

/* A fused operation computes what its members compute: nothing follows from that. */
static void
add_fused (Walk *w, const TdFusedGroup *group)
{
  TdComparison *c = w->c;
  const guint32 *members = &g_array_index (c->fused, guint32, group->first);
  TdDiffPair pair = { .kind = TD_DIFF_FUSED, .cause = -1 };

  pair.event[group->side] = (gint)members[group->n - 1];
  pair.event[1 - group->side] = group->event;
  pair.fused_side = group->side;
  pair.n_fused = group->n;
  pair.first_fused = group->first;
  pair.aspects = compare_results (c, group) | td__diff_compare_fused (c, group);
  for (guint k = 0; k < group->n; k++)
    {
      if (pair.cause < 0
          && event_of (c, group->side, (gint)members[k])->phase != TD_TAPE_PHASE_FORWARD)
        pair.cause = cause_of (w, group->side, (gint)members[k]);
      add_costs (w, &pair, group->side, members[k]);
    }
  add_costs (w, &pair, 1 - group->side, (guint)group->event);
  g_array_append_val (w->pairs, pair);
}

/* Is this the member of its group at which the group's pair is made? */
static const TdFusedGroup *
group_ending_at (const TdComparison *c, guint side, guint event)
{
  gint32 g = c->group[side][event];
  const TdFusedGroup *group = g >= 0 ? &g_array_index (c->groups, TdFusedGroup, g) : NULL;

  if (group
      && (group->side != side
          || g_array_index (c->fused, guint32, group->first + group->n - 1) == event))
    return group;
  return NULL;
}

/* Adds B's lone events up to `end`. */
static guint
add_lone_until (Walk *w, guint from, guint end)
{
  for (; from < end; from++)
    if (w->c->d->partner[1][from] < 0)
      add_lone (w, TD_DIFF_B, (gint)from);
  return from;
}

static void
make_pairs (Walk *w)
{
  TdComparison *c = w->c;
  guint j = 0;

  for (guint i = 0; i < c->t[0]->n_events; i++)
    {
      gint b = c->d->partner[0][i];
      const TdFusedGroup *group;

      if (b < 0)
        {
          add_lone (w, TD_DIFF_A, (gint)i);
          continue;
        }
      j = add_lone_until (w, j, (guint)b + 1);
      if (c->group[0][i] < 0)
        add_matched (w, (gint)i, b);
      else if ((group = group_ending_at (c, 0, i)))
        add_fused (w, group);
    }
  add_lone_until (w, j, c->t[1]->n_events);
}

/* ---- the result ---- */

static void
collect_items (Walk *w)
{
  TdDiff *d = w->c->d;

  for (guint i = 0; i < d->n_pairs; i++)
    {
      TdDiffPair *p = &d->pairs[i];

      if (p->kind == TD_DIFF_SAME && p->cause < 0 && (p->aspects & TD_DIFF_NUMBERS))
        {
          p->kind = TD_DIFF_CHANGED;
          d->n_numbers_only++;
        }
      if (p->cause >= 0)
        continue;
      d->n_kind[p->kind]++;
      if (p->kind != TD_DIFF_SAME)
        g_array_append_val (w->items, i);
    }
}

static void
add_totals (const TdComparison *c, guint side)
{
  const TdTapeIteration *t = c->t[side];
  TdDiffTotals *totals = &c->d->totals[side];

  totals->n_events = t->n_events;
  totals->peak_bytes = t->peak_bytes;
  for (guint e = 0; e < t->n_events; e++)
    {
      totals->n_phase[MIN (t->events[e].phase, TD_TAPE_N_PHASES - 1)]++;
      totals->n_static += (t->events[e].flags & TD_TAPE_EVENT_REPLAYED) != 0;
      totals->bytes += output_bytes (t, e);
    }
}

void
td__diff_compare (TdComparison *c)
{
  TdDiff *d = c->d;
  Walk w = { .c = c,
             .cut = -1,
             .pairs = g_array_new (FALSE, FALSE, sizeof (TdDiffPair)),
             .items = g_array_new (FALSE, FALSE, sizeof (guint32)) };

  for (guint s = 0; s < 2; s++)
    {
      w.taint[s] = g_new0 (gint32, MAX (c->t[s]->n_vars, 1));
      add_totals (c, s);
    }
  make_pairs (&w);
  d->n_pairs = w.pairs->len;
  d->pairs = (TdDiffPair *)(void *)g_array_free (w.pairs, FALSE);
  td__diff_numbers (c);
  collect_items (&w);
  d->n_items = w.items->len;
  d->items = (guint32 *)(void *)g_array_free (w.items, FALSE);
  g_free (w.taint[0]);
  g_free (w.taint[1]);
}
