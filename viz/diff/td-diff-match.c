/*
 * Counterparts. Forward operations are aligned as sequences, first by layer, operation and
 * line, then, in the gaps, by layer and operation; what is left in a gap and reads the same
 * inputs is the same call doing something else. Backward events go with their forward twins.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "tape/td-mix.h"
#include "td-align.h"
#include "td-diff-private.h"
#include "td-tape.h"

/* How far substitutes and members of fused groups are looked for: a gap can be a whole graph.
 */
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

static void
pair (TdComparison *c, gint a, gint b)
{
  c->d->partner[TD_DIFF_A][a] = b;
  c->d->partner[TD_DIFF_B][b] = a;
}

static gboolean
is_lone (const TdComparison *c, guint side, guint32 event)
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

gboolean
td__diff_same_var (const TdComparison *c, guint var_a, guint var_b)
{
  const TdTapeVar *a = &c->t[0]->vars[var_a], *b = &c->t[1]->vars[var_b];
  const TdIteration *ia = c->d->side[0], *ib = c->d->side[1];
  gint there;

  if ((a->producer >= 0) != (b->producer >= 0))
    return FALSE;
  if (a->producer >= 0)
    return a->out_index == b->out_index
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
  /* a leaf that B has under the same key is that one and no other */
  there = a->key ? td_iteration_find_var (ib, a->key) : -1;
  return there < 0 && a->category == b->category && same_dims (c, a, b);
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
      pair (m->c, (gint)m->list[0][i], (gint)m->list[1][b_of_a[i]]);
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
             && (event_of (c, 0, i)->phase != TD_TAPE_PHASE_FORWARD || is_lone (c, 0, i));
           i++)
        if (event_of (c, 0, i)->phase == TD_TAPE_PHASE_FORWARD)
          list_add (m, 0, i);
      for (; j < n[1]
             && (event_of (c, 1, j)->phase != TD_TAPE_PHASE_FORWARD || is_lone (c, 1, j));
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

/* ---- fused groups ---- */

/* The operations that a fused one is made of: "convolution_2d + relu", or those its attribute
 * "ops" lists. NULL: it is not fused. */
static char **
members_of (const TdIteration *it, guint event)
{
  const char *name = td_iteration_get_op_name (it, event), *list = name;
  g_autofree char *attr = NULL;
  char **members;

  if (g_str_has_prefix (name, "fuse"))
    {
      const char *attrs
          = td_iteration_get_string (it, td_iteration_get_tape (it)->events[event].attrs);
      const char *ops = g_str_has_prefix (attrs, "ops=") ? attrs : strstr (attrs, " ops=");

      if (!ops)
        return NULL;
      ops = strchr (ops, '=') + 1;
      list = attr = g_strndup (ops, strcspn (ops, " "));
    }
  members = g_strsplit_set (list, "+,", 0);
  for (char **p = members; *p; p++)
    g_strstrip (*p);
  if (g_strv_length (members) >= 2)
    return members;
  g_strfreev (members);
  return NULL;
}

static gboolean
reads_one_of (const TdComparison *c, guint side, guint32 event, const guint32 *makers, guint n)
{
  const TdTapeEvent *e = event_of (c, side, event);

  for (guint k = 0; k < e->n_in; k++)
    for (guint m = 0; m < n; m++)
      if (c->t[side]->vars[c->t[side]->ins[e->first_in + k]].producer == (gint)makers[m])
        return TRUE;
  return FALSE;
}

/* Finds members in list[side] from position `at` on: each reads what an earlier one made. */
static gboolean
collect_members (Match *m, guint side, gint at, char **names, guint phase, guint32 *found)
{
  guint n = 0;

  for (gint i = at; i < m->n[side] && i < at + WINDOW && names[n]; i++)
    {
      guint32 e = m->list[side][i];

      if (!is_lone (m->c, side, e) || event_of (m->c, side, e)->phase != phase
          || !g_str_equal (td_iteration_get_op_name (m->c->d->side[side], e), names[n])
          || (n > 0 && !reads_one_of (m->c, side, e, found, n)))
        {
          if (n == 0)
            return FALSE; /* it has to begin here */
          continue;
        }
      found[n++] = e;
    }
  return names[n] == NULL;
}

static void
add_group (TdComparison *c, guint side, gint fused, const guint32 *members, guint n)
{
  TdFusedGroup group = { side, fused, c->fused->len, n };

  for (guint i = 0; i < n; i++)
    {
      c->group[side][members[i]] = (gint32)c->groups->len;
      c->d->partner[side][members[i]] = fused;
    }
  c->group[1 - side][fused] = (gint32)c->groups->len;
  c->d->partner[1 - side][fused] = (gint32)members[n - 1];
  g_array_append_vals (c->fused, members, n);
  g_array_append_val (c->groups, group);
}

/* Looks in the lists for groups that are one event of `side`. */
static void
find_fused (Match *m, guint side)
{
  for (gint i = 0; i < m->n[side]; i++)
    {
      guint32 e = m->list[side][i];
      g_auto (GStrv) names = NULL;
      g_autofree guint32 *found = NULL;

      if (!is_lone (m->c, side, e) || !(names = members_of (m->c->d->side[side], e)))
        continue;
      found = g_new (guint32, g_strv_length (names));
      for (gint at = 0; at < m->n[1 - side]; at++)
        if (collect_members (m, 1 - side, at, names, event_of (m->c, side, e)->phase, found))
          {
            add_group (m->c, 1 - side, (gint)e, found, g_strv_length (names));
            break;
          }
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
    for (gint j = next; is_lone (m->c, 0, m->list[0][i]) && j < MIN (m->n[1], next + WINDOW);
         j++)
      {
        guint32 a = m->list[0][i], b = m->list[1][j];

        if (!is_lone (m->c, 1, b) || (!same_place (m, a, b) && !same_inputs (m->c, a, b)))
          continue;
        pair (m->c, (gint)a, (gint)b);
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
    if (event_of (m->c, side, e)->phase == TD_TAPE_PHASE_FORWARD && is_lone (m->c, side, e))
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

      if (!is_lone (m->c, 0, a)
          || GPOINTER_TO_UINT (g_hash_table_lookup (in_a, &m->exact[0][a])) != a + 1)
        continue;
      b = GPOINTER_TO_UINT (g_hash_table_lookup (in_b, &m->exact[0][a]));
      if (b == 0 || !same_inputs (m->c, a, b - 1))
        continue;
      pair (m->c, (gint)a, (gint)b - 1);
      m->c->moved[0][a] = m->c->moved[1][b - 1] = 1;
    }
}

/* ---- backward ---- */

/* The lone event of B that answers A's event `a` among the twins of `forward_b`. */
static gint
twin_like (const Match *m, guint a, guint forward_b)
{
  const TdComparison *c = m->c;
  const TdTapeEvent *ea = event_of (c, 0, a);
  guint n;
  const gint32 *twins = td_iteration_get_twins (c->d->side[1], forward_b, &n);
  gint other_order = -1;

  for (guint k = 0; k < n; k++)
    {
      const TdTapeEvent *eb = event_of (c, 1, (guint)twins[k]);

      if (!is_lone (c, 1, (guint32)twins[k]) || eb->phase != ea->phase
          || m->loose[0][a] != m->loose[1][twins[k]])
        continue;
      if (eb->order == ea->order)
        return twins[k];
      if (other_order < 0)
        other_order = twins[k];
    }
  return other_order;
}

/* The one lone event of a phase among the twins of `forward`, -1 if there are several. */
static gint
only_twin (const TdComparison *c, guint side, guint forward, guint phase)
{
  guint n;
  const gint32 *twins = td_iteration_get_twins (c->d->side[side], forward, &n);
  gint only = -1;

  for (guint k = 0; k < n; k++)
    if (is_lone (c, side, (guint32)twins[k])
        && event_of (c, side, (guint)twins[k])->phase == phase)
      {
        if (only >= 0)
          return -1;
        only = twins[k];
      }
  return only;
}

static void
match_twins (Match *m, gboolean substitutes)
{
  TdComparison *c = m->c;

  for (guint a = 0; a < c->t[0]->n_events; a++)
    {
      const TdTapeEvent *e = event_of (c, 0, a);
      gint forward_b = e->twin >= 0 ? c->d->partner[0][e->twin] : -1, b;

      if (forward_b < 0 || e->phase == TD_TAPE_PHASE_FORWARD || !is_lone (c, 0, a))
        continue;
      if (!substitutes)
        b = twin_like (m, a, (guint)forward_b);
      else if (only_twin (c, 0, (guint)e->twin, e->phase) == (gint)a)
        b = only_twin (c, 1, (guint)forward_b, e->phase);
      else
        b = -1;
      if (b >= 0)
        pair (c, (gint)a, b);
    }
}

/* Lone events after the forward pass; without those that have a twin, if so wanted. */
static void
list_rest (Match *m, gboolean with_twins)
{
  m->n[0] = m->n[1] = 0;
  for (guint s = 0; s < 2; s++)
    for (guint e = 0; e < m->c->t[s]->n_events; e++)
      if (event_of (m->c, s, e)->phase != TD_TAPE_PHASE_FORWARD && is_lone (m->c, s, e)
          && (with_twins || event_of (m->c, s, e)->twin < 0))
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
  match_twins (&m, FALSE);
  list_rest (&m, TRUE);
  find_fused (&m, TD_DIFF_B);
  find_fused (&m, TD_DIFF_A);
  match_twins (&m, TRUE);
  list_rest (&m, FALSE);
  align_lists (&m, m.loose);
  for (guint s = 0; s < 2; s++)
    {
      g_free (m.loose[s]);
      g_free (m.exact[s]);
      g_free (m.list[s]);
    }
}
