/*
 * Fused groups: one event of a side that does what several of the other do. Members are found
 * from the last one backwards through what they read, so that it does not matter where in the
 * order they run, nor what a schedule left out between them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-diff-private.h"
#include "td-tape.h"

/* How far members are looked for. */
#define WINDOW 64
#define MAX_MEMBERS 64

/* Gradients are made and added up in one go: of the passes only the forward one is apart. */
static gboolean
is_forward (const TdComparison *c, guint side, guint event)
{
  return c->t[side]->events[event].phase == TD_TAPE_PHASE_FORWARD;
}

static void
strip_all (char **texts)
{
  for (char **p = texts; *p; p++)
    g_strstrip (*p);
}

/* The operations that an event is made of: "convolution_2d + relu", or those its attribute
 * "ops" lists; one, if it is not fused. */
static char **
members_of (const TdIteration *it, guint event)
{
  const char *list = td_iteration_get_op_name (it, event);
  g_autofree char *attr = NULL;
  char **members;

  if (g_str_has_prefix (list, "fuse"))
    {
      const char *attrs
          = td_iteration_get_string (it, td_iteration_get_tape (it)->events[event].attrs);
      const char *ops = g_str_has_prefix (attrs, "ops=") ? attrs : strstr (attrs, " ops=");

      if (ops)
        {
          ops = strchr (ops, '=') + 1;
          list = attr = g_strndup (ops, strcspn (ops, " "));
        }
    }
  members = g_strsplit_set (list, "+,", 0);
  strip_all (members);
  return members;
}

gboolean
td__diff_is_fused (const TdComparison *c, guint side, guint event)
{
  g_auto (GStrv) members = members_of (c->d->side[side], event);

  return g_strv_length (members) >= 2;
}

/* ---- one group ---- */

typedef struct
{
  TdComparison *c;
  guint side; /* of the members */
  gboolean forward;
  TdDiffReach reach;
  char **names;
  gint n_left; /* names[0 .. n_left - 1] are still to be found */
  guint32 found[MAX_MEMBERS];
  guint n_found; /* last first */
} Search;

static gboolean
is_found (const Search *s, guint32 event)
{
  for (guint i = 0; i < s->n_found; i++)
    if (s->found[i] == event)
      return TRUE;
  return FALSE;
}

/* Takes an event whose operations are the last of those that are left. */
static gboolean
take (Search *s, guint32 event)
{
  g_auto (GStrv) own = NULL;
  gint n;

  if (!td__diff_is_lone (s->c, s->side, event) || is_found (s, event)
      || is_forward (s->c, s->side, event) != s->forward || s->n_found == MAX_MEMBERS)
    return FALSE;
  own = members_of (s->c->d->side[s->side], event);
  n = (gint)g_strv_length (own);
  if (n == 0 || n > s->n_left)
    return FALSE;
  for (gint i = 0; i < n; i++)
    if (!g_str_equal (own[i], s->names[s->n_left - n + i]))
      return FALSE;
  s->found[s->n_found++] = event;
  s->n_left -= n;
  return TRUE;
}

/* Adds the lone makers of what an event reads. */
static guint
add_makers (const Search *s, guint32 event, guint32 *queue, guint n)
{
  const TdTapeIteration *t = s->c->t[s->side];
  const TdTapeEvent *e = &t->events[event];

  for (guint k = 0; k < e->n_in && n < WINDOW; k++)
    {
      gint maker = t->vars[t->ins[e->first_in + k]].producer;
      gboolean known = maker < 0 || !td__diff_is_lone (s->c, s->side, (guint32)maker);

      for (guint i = 0; i < n && !known; i++)
        known = queue[i] == (guint32)maker;
      if (!known)
        queue[n++] = (guint32)maker;
    }
  return n;
}

static gboolean
is_of_one_twin (const Search *s, guint32 event)
{
  const TdTapeEvent *events = s->c->t[s->side]->events;

  for (guint i = 0; i < s->n_found; i++)
    if (events[event].twin >= 0 && events[s->found[i]].twin == events[event].twin)
      return TRUE;
  return FALSE;
}

/* The next member: what a found one reads, if need be through what the schedule left out; else
 * the nearest one before. */
static gboolean
take_next (Search *s)
{
  guint32 queue[WINDOW], last = s->found[0];
  guint n = 0;

  for (guint i = 0; i < s->n_found; i++)
    n = add_makers (s, s->found[i], queue, n);
  for (guint at = 0; at < n; at++)
    {
      if (take (s, queue[at]))
        return TRUE;
      if (!is_found (s, queue[at]))
        n = add_makers (s, queue[at], queue, n);
    }
  for (guint32 e = last; s->reach > TD_DIFF_LINKED && e-- > 0 && last - e < WINDOW;)
    if ((s->reach == TD_DIFF_NEAR || is_of_one_twin (s, e)) && take (s, e))
      return TRUE;
  return FALSE;
}

static gint
by_event (gconstpointer a, gconstpointer b)
{
  guint32 x = *(const guint32 *)a, y = *(const guint32 *)b;

  return (x > y) - (x < y);
}

static void
add_group (TdComparison *c, guint side, guint fused, guint32 *members, guint n)
{
  TdFusedGroup group = { side, (gint)fused, c->fused->len, n };

  qsort (members, n, sizeof *members, by_event);
  for (guint i = 0; i < n; i++)
    {
      c->group[side][members[i]] = (gint32)c->groups->len;
      c->d->partner[side][members[i]] = (gint32)fused;
    }
  c->group[1 - side][fused] = (gint32)c->groups->len;
  c->d->partner[1 - side][fused] = (gint32)members[n - 1];
  g_array_append_vals (c->fused, members, n);
  g_array_append_val (c->groups, group);
}

gboolean
td__diff_open_group (TdComparison *c, guint side, guint fused, guint32 last, TdDiffReach reach)
{
  g_auto (GStrv) names = members_of (c->d->side[side], fused);
  Search s = { .c = c,
               .reach = reach,
               .side = 1 - side,
               .forward = is_forward (c, side, fused),
               .names = names,
               .n_left = (gint)g_strv_length (names) };

  if (s.n_left < 2 || !take (&s, last))
    return FALSE;
  while (s.n_left > 0)
    if (!take_next (&s))
      return FALSE;
  if (s.n_found < 2)
    return FALSE;
  add_group (c, 1 - side, fused, s.found, s.n_found);
  return TRUE;
}
