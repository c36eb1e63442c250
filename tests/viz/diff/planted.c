/* Pairs of programs with exactly one thing changed: a comparison names that and nothing else.
 * The programs run through the engine, recorded into a tape for each side; more of them by
 * PLANTED_FIRST and PLANTED_N.
 *
 * SPDX-License-Identifier: MIT */
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "diff/td-diff.h"
#include "planted.h"
#include "td-session.h"
#include "td-test.h"

typedef struct
{
  PlantedProgram of[2];
  Planted planted;
  const TdDiff *d;
} Pair;

static const char *const kinds[PLANTED_N_KINDS]
    = { "nothing", "added", "removed", "replaced", "in the middle", "attribute", "shape",
        "link",    "input", "edge",    "dtype",    "frozen",        "static" };

/* ---- running ---- */

static void
record (const char *side, guint64 first, guint64 n, const char *path)
{
  g_autofree char *first_text = g_strdup_printf ("%" G_GUINT64_FORMAT, first),
                  *n_text = g_strdup_printf ("%" G_GUINT64_FORMAT, n);
  const char *argv[]
      = { td_test_build ("tests/viz/diff/planted-program"), side, first_text, n_text, NULL };
  g_auto (GStrv) environment = g_environ_setenv (g_get_environ (), "TAPEDECK_TAPE", path, TRUE);
  int status = 0;

  remove (path);
  assert_true (g_spawn_sync (NULL, (char **)argv, environment, G_SPAWN_DEFAULT, NULL, NULL,
                             NULL, NULL, &status, NULL));
  assert_int_equal (status, 0);
}

/* ---- what a comparison has to say ---- */

static const TdDiffPair *
item_of (const Pair *p, guint i)
{
  return &p->d->pairs[p->d->items[i]];
}

/* Events of the forward pass are the steps, one each. */
static gboolean
is_at (const Pair *p, const TdDiffPair *item, guint side, int step)
{
  const PlantedProgram *of = &p->of[side];
  int at = item->event[side];

  /* of equal neighbours on one line any may be the one */
  if (at < 0 || at >= of->n || of->step[at].op != of->step[step].op)
    return FALSE;
  for (; at != step; at += at < step ? 1 : -1)
    if (of->step[at].op != of->step[step].op || of->step[at].block != of->step[step].block)
      return FALSE;
  return TRUE;
}

static gboolean
is_one (const Pair *p, TdDiffKind kind, guint side, guint aspects)
{
  const TdDiffPair *item = p->d->n_items == 1 ? item_of (p, 0) : NULL;

  return item && item->kind == kind && (item->aspects & aspects) == aspects
         && is_at (p, item, side, p->planted.at)
         && (kind == TD_DIFF_CHANGED ? item->event[1 - side] == item->event[side]
                                     : item->event[1 - side] < 0);
}

/* Of a layer that is not updated the updates are missing, and they alone. */
static gboolean
are_updates_of (const Pair *p, int step)
{
  const PlantedStep *s = &p->of[0].step[step];
  g_autofree char *path = g_strdup_printf ("net/block%d/linear%d", s->block, s->line);

  for (guint i = 0; i < p->d->n_items; i++)
    {
      const TdDiffPair *item = item_of (p, i);

      if (item->kind != TD_DIFF_REMOVED
          || td_iteration_get_tape (p->d->side[0])->events[item->event[0]].phase
                 != TD_TAPE_PHASE_UPDATE
          || strcmp (td_iteration_get_link_path (p->d->side[0], (guint)item->event[0]), path)
                 != 0)
        return FALSE;
    }
  return p->d->n_items == 2; /* W and b */
}

/* Does the fused operation's name list the members that it is paired with? */
static gboolean
is_named_by_members (const TdDiff *d, const TdDiffPair *item)
{
  const char *name = td_iteration_get_op_name (d->side[1], (guint)item->event[1]);
  g_auto (GStrv) names = g_strsplit (name, "+", 0);
  guint n, found = 0;
  const guint32 *events = td_diff_get_events (d, item, TD_DIFF_A, &n);

  for (guint i = 0; names[i]; i++)
    for (guint k = 0; k < n; k++)
      if (strcmp (g_strstrip (names[i]), td_iteration_get_op_name (d->side[0], events[k])) == 0)
        {
          found++;
          break;
        }
  return n >= 2 && n == g_strv_length (names) && found == n;
}

/* A schedule fuses, and does the same: every operation has its counterpart. */
static gboolean
are_groups (const Pair *p)
{
  const TdTapeIteration *b = td_iteration_get_tape (p->d->side[1]);

  for (guint i = 0; i < p->d->n_items; i++)
    if (item_of (p, i)->kind != TD_DIFF_FUSED || !is_named_by_members (p->d, item_of (p, i)))
      return FALSE;
  for (guint e = 0; e < b->n_events; e++)
    if (b->events[e].phase == TD_TAPE_PHASE_BACKWARD && b->events[e].twin < 0)
      return FALSE;
  for (guint k = 0; k < TD_TAPE_N_PHASES; k++)
    if (p->d->n_followers[k] > 0)
      return FALSE;
  return p->d->totals[1].n_static > 0;
}

static gboolean
is_right (const Pair *p)
{
  switch (p->planted.kind)
    {
    case PLANTED_NOTHING:
      return td_diff_is_same (p->d);
    case PLANTED_ADDED:
    case PLANTED_LINK:
      return is_one (p, TD_DIFF_ADDED, TD_DIFF_B, 0);
    case PLANTED_REMOVED:
      return is_one (p, TD_DIFF_REMOVED, TD_DIFF_A, 0);
    case PLANTED_REPLACED:
    case PLANTED_MIDDLE:
      return is_one (p, TD_DIFF_CHANGED, TD_DIFF_B, TD_DIFF_OPERATION);
    case PLANTED_ATTRIBUTE:
      return is_one (p, TD_DIFF_CHANGED, TD_DIFF_B, TD_DIFF_ATTRIBUTES);
    case PLANTED_SHAPE:
      return is_one (p, TD_DIFF_CHANGED, TD_DIFF_B, TD_DIFF_SHAPE);
    case PLANTED_INPUT:
      return is_one (p, TD_DIFF_CHANGED, TD_DIFF_B, TD_DIFF_INPUTS);
    case PLANTED_EDGE:
      return is_one (p, TD_DIFF_CHANGED, TD_DIFF_B, TD_DIFF_GRAPH);
    case PLANTED_DTYPE:
      return is_one (p, TD_DIFF_CHANGED, TD_DIFF_B, TD_DIFF_DTYPE);
    case PLANTED_FROZEN:
      return are_updates_of (p, p->planted.at);
    case PLANTED_STATIC:
      return are_groups (p);
    case PLANTED_N_KINDS:
      break;
    }
  return FALSE;
}

/* ---- who is whose counterpart ---- */

/* The parameter that an update reads, or whose gradient an event makes; "" for others. */
static const char *
parameter_of (const TdIteration *it, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  const TdTapeEvent *e = &t->events[event];

  for (guint i = 0; i < t->n_grads; i++)
    for (guint k = 0; k < e->n_out; k++)
      if (t->outs[e->first_out + k] == t->grads[i].gradient)
        return td_iteration_get_string (it, t->grads[i].path);
  return "";
}

/* Backward operations belong to counterparts, and make the gradients of the same parameters. */
static gboolean
are_in_their_roles (const TdDiff *d)
{
  const TdTapeIteration *a = td_iteration_get_tape (d->side[0]),
                        *b = td_iteration_get_tape (d->side[1]);

  for (guint i = 0; i < d->n_pairs; i++)
    {
      const gint *e = d->pairs[i].event;

      if (e[0] < 0 || e[1] < 0 || d->pairs[i].kind == TD_DIFF_FUSED
          || a->events[e[0]].phase != TD_TAPE_PHASE_BACKWARD)
        continue;
      if (d->partner[0][a->events[e[0]].twin] != b->events[e[1]].twin
          && d->partner[1][b->events[e[1]].twin] != a->events[e[0]].twin)
        return FALSE;
      const char *of[2];
      for (guint side = 0; side < 2; side++)
        of[side] = parameter_of (d->side[side], (guint)e[side]);
      if (*of[0] && *of[1] && strcmp (of[0], of[1]) != 0)
        return FALSE; /* what is not updated is not known by name */
    }
  return TRUE;
}

/* The other way round nothing is another difference. */
static gboolean
is_mirrored (const TdDiff *d, const TdDiff *back)
{
  return d->n_items == back->n_items
         && d->n_kind[TD_DIFF_ADDED] == back->n_kind[TD_DIFF_REMOVED]
         && d->n_kind[TD_DIFF_REMOVED] == back->n_kind[TD_DIFF_ADDED]
         && d->n_kind[TD_DIFF_CHANGED] == back->n_kind[TD_DIFF_CHANGED]
         && d->n_kind[TD_DIFF_FUSED] == back->n_kind[TD_DIFF_FUSED];
}

/* ---- the search ---- */

static gboolean
look (TdSession *const sessions[2], guint64 seed, guint64 first)
{
  gint64 number = (gint64)(seed - first) * PLANTED_RUNS + PLANTED_RUNS - 1;
  g_autoptr (TdIteration) a = td_session_load_iteration (sessions[0], number, NULL);
  g_autoptr (TdIteration) b = td_session_load_iteration (sessions[1], number, NULL);
  Pair p;

  assert_non_null (a);
  assert_non_null (b);
  planted_make (seed, &p.of[0], &p.of[1], &p.planted);
  g_autoptr (TdDiff) d = td_diff_new (a, b, td_session_get_reader (sessions[0]),
                                      td_session_get_reader (sessions[1]));
  g_autoptr (TdDiff) back = td_diff_new (b, a, td_session_get_reader (sessions[1]),
                                         td_session_get_reader (sessions[0]));
  p.d = d;
  if (is_right (&p) && is_mirrored (d, back) && are_in_their_roles (d))
    return TRUE;
  g_autofree char *text = td_diff_print (d, "text");
  print_message ("seed %" G_GUINT64_FORMAT ", %s at step %d:\n%s\n", seed,
                 kinds[p.planted.kind], p.planted.at, text);
  return FALSE;
}

static void
diff__names_the_one_difference_that_was_planted (void **state)
{
  guint64 first = td_test_number ("PLANTED_FIRST", 0), n = td_test_number ("PLANTED_N", 390);
  g_autofree char *path_a = g_strdup (td_test_tmp ("a.tdtape")),
                  *path_b = g_strdup (td_test_tmp ("b.tdtape"));
  guint n_wrong = 0;

  record ("a", first, n, path_a);
  record ("b", first, n, path_b);
  g_autoptr (TdSession) a = td_session_open (path_a, NULL);
  g_autoptr (TdSession) b = td_session_open (path_b, NULL);
  assert_non_null (a);
  assert_non_null (b);
  for (guint64 seed = first; seed < first + n; seed++)
    n_wrong += !look ((TdSession *const[]){ a, b }, seed, first);
  print_message ("%" G_GUINT64_FORMAT " pairs, %u wrong\n", n, n_wrong);
  assert_int_equal (n_wrong, 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (diff__names_the_one_difference_that_was_planted),
  };

  return cmocka_run_group_tests_name ("planted", tests, NULL, NULL);
}
