/* "Where from?" of a NaN, against random nets with one planted in a known place
 * (tests/models/planted.c): the answer is right in all of them. PLANTED_FIRST and PLANTED_N
 * look at other seeds and more of them.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape/td-origin.h"
#include "td-test.h"

typedef struct
{
  int seed, ask, iteration, line, element, cause_line;
  char kind[8], op[24], cause_op[24];
} Planted;

/* What the model printed. Owner: the caller. */
static GArray *
record (const char *level, const char *statics, guint64 first, guint64 n, const char *tape)
{
  g_autofree char *first_text = g_strdup_printf ("%" G_GUINT64_FORMAT, first),
                  *n_text = g_strdup_printf ("%" G_GUINT64_FORMAT, n);
  TdTestChild c = TD_TEST_RUN (
      td_test_program ("app/tapedeck"), "run", "--quiet", "-f", "--level", level,
      "--values-budget", "0", "-o", tape, "--static", statics ? statics : "auto",
      td_test_source ("tests/models/planted.c"), first_text, n_text, statics ? "static" : NULL);
  GArray *all = g_array_new (FALSE, TRUE, sizeof (Planted));
  Planted p;

  assert_child_status (c, 0);
  for (const char *line = c.out; *line; line = strchr (line, '\n') + 1)
    {
      assert_int_equal (sscanf (line, "%d %d %7s %d %23s %d %d %23s %d", &p.seed, &p.ask,
                                p.kind, &p.iteration, p.op, &p.line, &p.element, p.cause_op,
                                &p.cause_line),
                        9);
      g_array_append_val (all, p);
    }
  td_test_child_clear (&c);
  assert_int_equal (all->len, n);
  c = TD_TEST_RUN (td_test_program ("app/tapedeck"), "check", tape);
  assert_child_status (c, 0);
  assert_contains (c.out, "whole"); /* every schedule of it can be shown */
  td_test_child_clear (&c);
  return all;
}

/* Is this place what was planted? */
static gboolean
is_it (TdSession *session, const TdOriginStep *at, const char *op, gint64 iteration, int line)
{
  g_autoptr (TdIteration) it = td_session_load_iteration (session, at->iteration, NULL);
  g_autofree char *site
      = at->event >= 0 ? td_iteration_dup_site (it, (guint)at->event) : g_strdup ("");
  g_autofree char *wanted = g_strdup_printf ("planted.c:%d", line);
  const char *name = at->event >= 0 ? td_iteration_get_op_name (it, (guint)at->event)
                                    : td_iteration_get_var_name (it, at->var);

  if (g_strcmp0 (at->name, "the gradient of net/l0/W") == 0)
    name = "W.grad";

  return at->iteration == iteration && strcmp (name, op) == 0
         && (line < 0 || strcmp (site, wanted) == 0);
}

/* Is it a fused operation of which the planted one is a member, and is that said, with what
 * would tell? */
static gboolean
is_inside (TdSession *session, const TdOrigin *o, const char *op, gint64 iteration, int line)
{
  g_autofree char *member = g_strdup_printf ("%s at planted.c:%d", op, line);

  return o->at.iteration == iteration && o->kind != TD_ORIGIN_CAME && !o->sure
         && strstr (o->at.name, "+") && strstr (o->at.name, op)
         && strstr (o->sentence, "inside static function middle at planted.c:")
         && (strstr (o->sentence, member) || !strstr (o->sentence, "in one of"))
         && strstr (o->sentence, "--static off");
}

static gboolean
is_among (TdSession *session, const TdOrigin *o, const Planted *p)
{
  gboolean found = FALSE;

  for (guint i = 0; i < o->candidates->len; i++)
    found = found
            || is_it (session, &g_array_index (o->candidates, TdOriginStep, i), p->op,
                      p->iteration, p->line);
  return found;
}

static gboolean
is_right (TdSession *session, const TdOrigin *o, const Planted *p, gboolean has_values)
{
  gint64 element = 0;

  /* an update that overflows makes infinities, and they the NaN */
  while (p->cause_line < 0 && o->cause && o->kind == TD_ORIGIN_MADE && p->line < 0)
    o = o->cause;
  if (p->line >= 0 && is_inside (session, o, p->op, p->iteration, p->line))
    return TRUE;
  if (o->kind != (p->kind[0] == 'm' ? TD_ORIGIN_MADE : TD_ORIGIN_CAME)
      || !is_it (session, &o->at, p->op, p->iteration, p->line))
    return !has_values && !o->sure && is_among (session, o, p);
  if (p->cause_line >= 0
      && !(o->cause && o->cause->kind == TD_ORIGIN_MADE
           && (is_it (session, &o->cause->at, p->cause_op, p->iteration, p->cause_line)
               || is_inside (session, o->cause, p->cause_op, p->iteration, p->cause_line))))
    return FALSE;
  if (!has_values || p->element < 0)
    return TRUE;
  if (p->cause_line >= 0 && o->cause->has_element && o->cause->element[0] != o->element[0])
    return FALSE; /* both lie in one row */
  for (guint k = 0; k < o->ndim; k++)
    element = element * 4 + o->element[k]; /* all planted arrays have 4 columns */
  return o->has_element && element == p->element;
}

static void
ask_all (const char *level, const char *statics, guint64 first, guint64 n)
{
  const char *tape = td_test_tmp ("planted.tdtape");
  g_autoptr (GArray) all = record (level, statics, td_test_number ("PLANTED_FIRST", first),
                                   td_test_number ("PLANTED_N", n), tape);
  g_autoptr (TdSession) session = td_session_open (tape, NULL);
  gboolean has_values = strcmp (level, "values") == 0;
  guint n_right = 0, n_sure = 0;

  assert_non_null (session);
  for (guint i = 0; i < all->len; i++)
    {
      const Planted *p = &g_array_index (all, Planted, i);
      g_autoptr (TdIteration) it = td_session_load_iteration (session, p->ask, NULL);

      assert_non_null (it);
      g_autoptr (TdOrigin) o = td_origin_new (session, it, td_origin_find (it), -1);
      gboolean right = is_right (session, o, p, has_values);

      n_right += right;
      n_sure += right && o->sure;
      if (!right)
        print_message ("seed %d: asked in iteration %d for %s in %d (line %d, element %d); "
                       "got: %s\n",
                       p->seed, p->ask, p->op, p->iteration, p->line, p->element, o->sentence);
    }
  print_message ("%s: %u of %u right, %u of them sure\n", level, n_right, all->len, n_sure);
  assert_int_equal (n_right, all->len);
}

static void
origin__of_planted_nans_is_found_with_its_element (void **state)
{
  ask_all ("values", NULL, 1, 300);
}

/* Without elements the place is named, or is among those that come into question. */
static void
origin__of_planted_nans_is_found_by_statistics (void **state)
{
  ask_all ("stats", NULL, 1001, 200);
}

/* The same where some layers are a static function: before it, inside it, after it. */
static void
origin__is_followed_through_replays_to_its_element (void **state)
{
  ask_all ("values", "as-is", 1, 300);
}

static void
origin__is_followed_through_verified_replays (void **state)
{
  ask_all ("values", "auto", 2001, 200);
}

static void
origin__is_followed_through_replays_by_statistics (void **state)
{
  ask_all ("stats", "as-is", 3001, 200);
}

/* A gradient that leaves a replay as a view of what it was summed in, and is added to outside.
 */
static void
origin__is_followed_through_views_that_replays_hand_out (void **state)
{
  static const char *const modes[] = { "as-is", "auto", "verify" };

  for (guint i = 0; i < G_N_ELEMENTS (modes); i++)
    ask_all ("values", modes[i], 910302, 1);
}

/* The verb of the window goes there, selects the way and says it; asked again at the origin it
 * stays. What is clean has none, and without statistics nothing is guessed. */
static void
where_from__of_a_nan_goes_to_what_made_it (void **state)
{
  const char *tape = td_test_tmp ("one.tdtape");
  g_autoptr (GArray) all = record ("values", NULL, 53, 1, tape);
  const Planted *p = &g_array_index (all, Planted, 0);
  g_autoptr (TdSession) session = td_session_open (tape, NULL);
  g_autoptr (TdIteration) it = td_session_load_iteration (session, p->ask, NULL);
  g_autofree char *said = NULL, *again = NULL;
  gint event = td_iteration_find_event (it, td_origin_find (it));
  guint n_selected;

  td_session_set_moment (session, p->ask, event);
  assert_true (td_session_go (session, TD_VERB_WHERE_FROM, 1, &said));
  TdMoment m = td_session_get_moment (session);
  g_autoptr (TdIteration) there = td_session_load_iteration (session, m.iteration, NULL);
  assert_int_equal (m.iteration, p->iteration);
  assert_string_equal (td_iteration_get_op_name (there, (guint)m.event), p->op);
  assert_non_null (strstr (said, "NaN first made by log at "));
  assert_non_null (strstr (said, ", element [2, 0], input "));
  assert_true (td_session_get_selection (session, &n_selected) && n_selected > 1);
  assert_false (td_session_go (session, TD_VERB_WHERE_FROM, 1, &again));
  assert_string_equal (said, again);
}

static void
origin__of_what_is_clean_or_not_recorded_is_none (void **state)
{
  static const struct
  {
    const char *level;
    TdOriginKind kind;
  } rows[] = { { "values", TD_ORIGIN_CLEAN }, { "graph", TD_ORIGIN_UNKNOWN } };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      const char *tape = td_test_tmp ("clean.tdtape");
      g_autoptr (GArray) all = record (rows[i].level, NULL, 1, 1, tape);
      assert_non_null (all);
      g_autoptr (TdSession) session = td_session_open (tape, NULL);
      g_autoptr (TdIteration) it = td_session_load_iteration (session, 0, NULL);
      g_autoptr (TdOrigin) o
          = td_origin_new (session, it, td_iteration_get_tape (it)->events[0].key, -1);

      assert_int_equal (o->kind, rows[i].kind);
      assert_int_equal (o->steps->len, 0);
      assert_true (td_origin_find (it) == 0);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (origin__of_planted_nans_is_found_with_its_element),
    td_test (origin__of_planted_nans_is_found_by_statistics),
    td_test (origin__is_followed_through_replays_to_its_element),
    td_test (origin__is_followed_through_verified_replays),
    td_test (origin__is_followed_through_replays_by_statistics),
    td_test (origin__is_followed_through_views_that_replays_hand_out),
    td_test (where_from__of_a_nan_goes_to_what_made_it),
    td_test (origin__of_what_is_clean_or_not_recorded_is_none),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
