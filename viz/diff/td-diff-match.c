/*
 * Counterparts. Forward operations are aligned as sequences, first by layer, operation and
 * line, then, in the gaps, by layer and operation; what is left in a gap and reads the same
 * inputs is the same call doing something else. Backward events: td-diff-backward.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "tape/td-mix.h"
#include "td-align.h"
#include "td-diff-private.h"
#include "td-tape.h"

/* How far substitutes are looked for: a gap can be a whole graph. */
#define WINDOW 64

typedef struct
{
  TdComparison *c;
  guint64 *loose[2], *exact[2]; /* by event */
  guint32 *list[2];             /* the events that are looked at now */
  gint n[2];
} Match;

static const TdTapeEvent *
event_of (const TdComparison *c, guint side, guint event)
{
  return &c->t[side]->events[event];
}

/* ---- tokens: texts, not ids, since the two sides may come from different tapes ---- */

static guint64
loose_token (const TdComparison *c, guint side, guint event)
{
  const TdIteration *it = c->d->side[side];
  const TdTapeEvent *e = event_of (c, side, event);
  guint64 h = td__mix_text (e->phase, td_iteration_get_op_name (it, event));

  h = td__mix_text (h, td_iteration_get_link_path (it, event));
  /* the weight's update and the bias's are different things */
  if (e->phase == TD_TAPE_PHASE_UPDATE && e->n_in > 0)
    h = td__mix_text (h, td_iteration_get_var_name (it, c->t[side]->ins[e->first_in]));
  return h;
}

static guint64
exact_token (const TdComparison *c, guint side, guint event, guint64 loose)
{
  guint32 line = 0;
  const char *file
      = td_iteration_get_site (c->d->side[side], event_of (c, side, event)->site, &line);
  guint in_b = side == TD_DIFF_A ? td__line_in_b (c, file, line) : line;

  return td__mix (td__mix_text (loose, td__base_name (file)),
                  in_b > 0 ? in_b : line | 0x80000000u);
}

/* ---- pairing ---- */

void
td__diff_pair (TdComparison *c, gint a, gint b)
{
  c->d->partner[TD_DIFF_A][a] = b;
  c->d->partner[TD_DIFF_B][b] = a;
}

gboolean
td__diff_is_lone (const TdComparison *c, guint side, guint32 event)
{
  return c->d->partner[side][event] < 0;
}

static gboolean
same_text (const char *a, const char *b)
{
  return *a && g_str_equal (a, b);
}

static gboolean
same_dims (const TdComparison *c, const TdTapeVar *a, const TdTapeVar *b)
{
  return a->ndim == b->ndim
         && memcmp (c->t[0]->dims + a->first_dim, c->t[1]->dims + b->first_dim,
                    a->ndim * sizeof (gint64))
                == 0;
}

static gboolean
is_leaf_like (const TdIteration *it, gint var, const TdComparison *c, guint side,
              const TdTapeVar *other)
{
  const TdTapeVar *v = var >= 0 ? &td_iteration_get_tape (it)->vars[var] : NULL;

  return v && v->producer < 0 && v->category == other->category
         && (side == TD_DIFF_A ? same_dims (c, v, other) : same_dims (c, other, v));
}

/* Keys of leaves count what is made at a place: alone they prove nothing. */
gboolean
td__diff_other_leaf (const TdComparison *c, guint var_a, guint var_b)
{
  const TdTapeVar *a = &c->t[0]->vars[var_a], *b = &c->t[1]->vars[var_b];
  const TdIteration *ia = c->d->side[0], *ib = c->d->side[1];

  return a->key != b->key && a->key && b->key
         && is_leaf_like (ib, td_iteration_find_var (ib, a->key), c, TD_DIFF_B, a)
         && is_leaf_like (ia, td_iteration_find_var (ia, b->key), c, TD_DIFF_A, b);
}

gboolean
td__diff_same_var (const TdComparison *c, guint var_a, guint var_b)
{
  const TdTapeVar *a = &c->t[0]->vars[var_a], *b = &c->t[1]->vars[var_b];
  const TdIteration *ia = c->d->side[0], *ib = c->d->side[1];

  if ((a->producer >= 0) != (b->producer >= 0))
    return FALSE;
  if (a->producer >= 0)
    /* a group hands out what its members do, in an order of its own */
    return (a->out_index == b->out_index || c->group[0][a->producer] >= 0)
           && (c->d->partner[0][a->producer] == b->producer
               || c->d->partner[1][b->producer] == a->producer);
  if (((a->flags ^ b->flags) & TD_TAPE_VAR_PARAMETER) != 0)
    return FALSE;
  if (a->flags & TD_TAPE_VAR_PARAMETER)
    return g_str_equal (td_iteration_get_path_name (ia, a->path),
                        td_iteration_get_path_name (ib, b->path))
           && g_str_equal (td_iteration_get_var_name (ia, var_a),
                           td_iteration_get_var_name (ib, var_b));
  if (a->key == b->key
      || same_text (td_iteration_get_var_name (ia, var_a),
                    td_iteration_get_var_name (ib, var_b)))
    return TRUE;
  return !td__diff_other_leaf (c, var_a, var_b) && a->category == b->category
         && same_dims (c, a, b);
}

/* ---- alignment of lists ---- */

static void
list_add (Match *m, guint side, guint32 event)
{
  m->list[side][m->n[side]++] = event;
}

static void
align_lists (Match *m, guint64 *const tokens[2])
{
  guint64 *text[2]; /* g_autofree would free the first only */
  g_autofree gint32 *b_of_a = NULL, *a_of_b = NULL;

  if (m->n[0] == 0 || m->n[1] == 0)
    return;
  for (guint s = 0; s < 2; s++)
    {
      text[s] = g_new (guint64, m->n[s]);
      for (gint i = 0; i < m->n[s]; i++)
        text[s][i] = tokens[s][m->list[s][i]];
    }
  b_of_a = g_new (gint32, m->n[0]);
  a_of_b = g_new (gint32, m->n[1]);
  td__align (text[0], m->n[0], text[1], m->n[1], b_of_a, a_of_b);
  for (guint s = 0; s < 2; s++)
    g_free (text[s]);
  for (gint i = 0; i < m->n[0]; i++)
    if (b_of_a[i] >= 0)
      td__diff_pair (m->c, (gint)m->list[0][i], (gint)m->list[1][b_of_a[i]]);
}

/* Calls `gap` with the lists holding the lone forward events between two matched ones. */
static void
each_gap (Match *m, void (*gap) (Match *m))
{
  TdComparison *c = m->c;
  guint n[2] = { c->t[0]->n_events, c->t[1]->n_events }, i = 0, j = 0;

  while (i < n[0] || j < n[1])
    {
      m->n[0] = m->n[1] = 0;
      for (; i < n[0]
             && (event_of (c, 0, i)->phase != TD_TAPE_PHASE_FORWARD
                 || td__diff_is_lone (c, 0, i));
           i++)
        if (event_of (c, 0, i)->phase == TD_TAPE_PHASE_FORWARD)
          list_add (m, 0, i);
      for (; j < n[1]
             && (event_of (c, 1, j)->phase != TD_TAPE_PHASE_FORWARD
                 || td__diff_is_lone (c, 1, j));
           j++)
        if (event_of (c, 1, j)->phase == TD_TAPE_PHASE_FORWARD)
          list_add (m, 1, j);
      if (m->n[0] > 0 && m->n[1] > 0)
        gap (m);
      i++;
      j++;
    }
}

static void
align_gap (Match *m)
{
  align_lists (m, m->loose);
}

/* Opens the groups in the lists that are one event of `side`. */
static void
find_fused (Match *m, guint side)
{
  for (gint i = 0; i < m->n[side]; i++)
    {
      guint32 e = m->list[side][i];
      gboolean done = !td__diff_is_lone (m->c, side, e) || !td__diff_is_fused (m->c, side, e);

      for (gint k = 0; k < m->n[1 - side] && !done; k++)
        done = td__diff_open_group (m->c, side, e, m->list[1 - side][k], TD_DIFF_NEAR);
    }
}

/* ---- substitutes ---- */

/* Do they read the same things? Parameters may be others: another layer in the same place. */
static gboolean
same_inputs (const TdComparison *c, guint a, guint b)
{
  const TdTapeEvent *ea = event_of (c, 0, a), *eb = event_of (c, 1, b);
  gint data = 0;

  if (ea->n_in != eb->n_in)
    return FALSE;
  for (guint k = 0; k < ea->n_in; k++)
    {
      guint va = c->t[0]->ins[ea->first_in + k], vb = c->t[1]->ins[eb->first_in + k];

      if (c->t[0]->vars[va].flags & c->t[1]->vars[vb].flags & TD_TAPE_VAR_PARAMETER)
        continue;
      if (!td__diff_same_var (c, va, vb))
        return FALSE;
      data++;
    }
  return data > 0;
}

static gboolean
same_place (const Match *m, guint a, guint b)
{
  const TdComparison *c = m->c;

  return c->d->same_program && event_of (c, 0, a)->key != 0
         && event_of (c, 0, a)->key == event_of (c, 1, b)->key;
}

static void
substitute_gap (Match *m)
{
  gint next = 0;

  find_fused (m, TD_DIFF_B);
  find_fused (m, TD_DIFF_A);
  for (gint i = 0; i < m->n[0]; i++)
    for (gint j = next;
         td__diff_is_lone (m->c, 0, m->list[0][i]) && j < MIN (m->n[1], next + WINDOW); j++)
      {
        guint32 a = m->list[0][i], b = m->list[1][j];

        if (!td__diff_is_lone (m->c, 1, b)
            || (!same_place (m, a, b) && !same_inputs (m->c, a, b)))
          continue;
        td__diff_pair (m->c, (gint)a, (gint)b);
        next = j + 1;
      }
}

/* ---- moved operations ---- */

/* The only lone event with each token: its event + 1, or 0 where there are several. */
static GHashTable *
only_ones (const Match *m, guint side)
{
  GHashTable *table = g_hash_table_new (g_int64_hash, g_int64_equal);

  for (guint e = 0; e < m->c->t[side]->n_events; e++)
    if (event_of (m->c, side, e)->phase == TD_TAPE_PHASE_FORWARD
        && td__diff_is_lone (m->c, side, e))
      {
        gboolean again = g_hash_table_contains (table, &m->exact[side][e]);

        g_hash_table_insert (table, &m->exact[side][e], GUINT_TO_POINTER (again ? 0 : e + 1));
      }
  return table;
}

static void
match_moved (Match *m)
{
  g_autoptr (GHashTable) in_a = only_ones (m, 0);
  g_autoptr (GHashTable) in_b = only_ones (m, 1);

  for (guint a = 0; a < m->c->t[0]->n_events && g_hash_table_size (in_a) > 0; a++)
    {
      guint b;

      if (!td__diff_is_lone (m->c, 0, a)
          || GPOINTER_TO_UINT (g_hash_table_lookup (in_a, &m->exact[0][a])) != a + 1)
        continue;
      b = GPOINTER_TO_UINT (g_hash_table_lookup (in_b, &m->exact[0][a]));
      if (b == 0 || !same_inputs (m->c, a, b - 1))
        continue;
      td__diff_pair (m->c, (gint)a, (gint)b - 1);
      m->c->moved[0][a] = m->c->moved[1][b - 1] = 1;
    }
}

/* ---- all ---- */

/* Lone events after the forward pass that have no twin. */
static void
list_rest (Match *m)
{
  m->n[0] = m->n[1] = 0;
  for (guint s = 0; s < 2; s++)
    for (guint e = 0; e < m->c->t[s]->n_events; e++)
      if (event_of (m->c, s, e)->phase != TD_TAPE_PHASE_FORWARD && td__diff_is_lone (m->c, s, e)
          && event_of (m->c, s, e)->twin < 0)
        list_add (m, s, e);
}

static void
list_forward (Match *m)
{
  m->n[0] = m->n[1] = 0;
  for (guint s = 0; s < 2; s++)
    for (guint e = 0; e < m->c->t[s]->n_events; e++)
      if (event_of (m->c, s, e)->phase == TD_TAPE_PHASE_FORWARD)
        list_add (m, s, e);
}

void
td__diff_match (TdComparison *c)
{
  Match m = { .c = c };

  for (guint s = 0; s < 2; s++)
    {
      guint n = MAX (c->t[s]->n_events, 1);

      m.loose[s] = g_new (guint64, n);
      m.exact[s] = g_new (guint64, n);
      m.list[s] = g_new (guint32, n);
      for (guint e = 0; e < c->t[s]->n_events; e++)
        {
          m.loose[s][e] = loose_token (c, s, e);
          m.exact[s][e] = exact_token (c, s, e, m.loose[s][e]);
        }
    }
  list_forward (&m);
  align_lists (&m, m.exact);
  each_gap (&m, align_gap);
  each_gap (&m, substitute_gap);
  match_moved (&m);
  td__diff_match_backward (c, (const guint64 *const *)m.loose);
  list_rest (&m);
  align_lists (&m, m.loose);
  for (guint s = 0; s < 2; s++)
    {
      g_free (m.loose[s]);
      g_free (m.exact[s]);
      g_free (m.list[s]);
    }
}
