/* `tapedeck run --break` on what happens to a graph and to memory, which models/events.c does
 * once: where the program stops, and the line that says why.
 *
 *     test-break-events [PROGRAM]      the same with a program of real size, of tests/life
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Run the model, which does `what` in iteration 4, with a condition. */
static TdTestChild
run (const char *condition, const char *what)
{
  return TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "-o",
                      td_test_tmp ("events.tdtape"), "--static", "as-is", "--break", condition,
                      td_test_program ("tests/app/model-events"), what);
}

static void
assert_stops (const char *condition, const char *what, const char *const *says)
{
  TdTestChild child = run (condition, what);

  assert_child_status (child, 3);
  assert_contains (child.err, "tapedeck: stopped at ");
  assert_contains (child.err, condition);
  for (; *says != NULL; says++)
    assert_contains (child.err, *says);
  td_test_child_clear (&child);
}

static void
assert_runs_through (const char *condition, const char *what)
{
  TdTestChild child = run (condition, what);

  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

/* "events.c:31": where that stands in the source. */
static const char *
line_of (const char *words)
{
  static char place[40];
  char *text = td_test_read_file (td_test_source ("tests/models/events.c"), NULL);
  const char *at = strstr (text, words);
  int line = 1;

  assert_non_null (at);
  for (const char *s = text; s < at; s++)
    line += *s == '\n';
  free (text);
  snprintf (place, sizeof place, "events.c:%d", line);
  return place;
}

static void
graph_changed__stops_after_the_iteration_that_is_another (void **state)
{
  const char *const says[]
      = { "the graph of iteration 4 is not that of iteration 3: it has "
          "tanh at ",
          line_of ("the change"), "where that had square at events.c:", NULL };

  (void)state;
  assert_stops ("graph changed", "changed", says);
  assert_stops ("graph changed && iteration > 2", "changed", says);
  assert_runs_through ("graph changed", "nothing");
  assert_runs_through ("graph changed && iteration > 5", "changed");
}

static void
graph_changed__is_not_said_of_sizes (void **state)
{
  (void)state;
  assert_runs_through ("graph changed", "sizes");
}

/* It runs its code, is verified, is replayed, and has its code run again where a guard fails.
 */
static void
graph_changed__is_not_said_of_what_becomes_static (void **state)
{
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "-o",
                                   td_test_tmp ("events.tdtape"), "--break", "graph changed",
                                   td_test_program ("tests/app/model-events"), "guard", "40");

  (void)state;
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
held__stops_where_something_of_an_iteration_outlives_the_next (void **state)
{
  const char *const says[]
      = { "256 B of iteration 4 are still there, most of them made by linear",
          "kept by a handle of the program taken at ", line_of ("the hold"), NULL };

  (void)state;
  assert_stops ("held after iteration", "held", says);
  assert_runs_through ("held after iteration", "nothing");
}

static void
growth__is_of_live_bytes_from_end_to_end (void **state)
{
  const char *const says[] = { "256 B more are alive after iteration ", NULL };

  (void)state;
  assert_stops ("growth > 100", "grows", says);
  assert_stops ("growth > 100 && iteration >= 3", "grows", says);
  assert_runs_through ("growth > 300 && iteration > 1", "grows");
  assert_runs_through ("growth > 0 && iteration > 1", "nothing");
}

static void
guard_failed__stops_in_the_call_and_says_which (void **state)
{
  const char *const says[] = { "square cannot be replayed, and runs its code: argument",
                               line_of ("td_static_call ("), NULL };

  (void)state;
  assert_stops ("guard failed", "guard", says);
  assert_runs_through ("guard failed", "nothing");
}

static void
edge_cut__stops_at_unchain_and_at_the_first_operation_without_backprop (void **state)
{
  const char *const unchain[]
      = { "the result of linear is cut from it: no gradient passes", NULL };
  const char *const without[]
      = { "before linear, which runs without backprop: no gradient passes it",
          line_of ("two operations, one cut"), NULL };

  (void)state;
  assert_stops ("edge cut", "unchain", unchain);
  assert_stops ("edge cut", "no-backprop", without);
  assert_runs_through ("edge cut", "nothing");
  assert_runs_through ("edge cut && op == sigmoid", "no-backprop");
}

static void
alloc_and_pool__are_bytes_of_an_operation_and_of_the_device (void **state)
{
  const char *const alloc[] = { "exp allocated 4.00 MB", NULL };
  const char *const pool[] = { "before ", NULL };

  (void)state;
  assert_stops ("alloc > 3M && op == exp", "alloc", alloc);
  assert_runs_through ("alloc > 5M", "alloc");
  assert_stops ("pool > 1K", "nothing", pool);
  assert_runs_through ("pool > 1T", "nothing");
}

/* ------------------------------------------------------------ programs of real size */

static const char *program;

static TdTestChild
run_program (const char *condition, const char *argument)
{
  char path[128];

  snprintf (path, sizeof path, "tests/life/%s", program);
  return TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "--quiet", "-o",
                      td_test_tmp ("life.tdtape"), "--break", condition, td_test_build (path),
                      "iterations=8", argument);
}

static void
assert_program_stops (const char *condition, const char *argument, const char *says)
{
  TdTestChild child = run_program (condition, argument);

  assert_child_status (child, 3);
  assert_contains (child.err, says);
  td_test_child_clear (&child);
}

static void
program__stops_at_its_mistakes (void **state)
{
  (void)state;
  assert_program_stops ("graph changed", "fault=branch",
                        "the graph of iteration 1 is not that of iteration 0: it has ");
  assert_program_stops ("held after iteration", "fault=growth",
                        "of iteration 0 are still there, most of them made by ");
  assert_program_stops ("growth > 100K && iteration > 1", "fault=growth",
                        "more are alive after iteration 2 than after the one before");
}

static void
program__without_mistakes_does_not_stop (void **state)
{
  static const char *const arguments[] = { "static=0", "static=1" };

  (void)state;
  for (unsigned i = 0; i < 2; i++)
    {
      TdTestChild child = run_program (
          "graph changed || held after iteration || edge cut || guard failed", arguments[i]);

      assert_child_status (child, 0);
      td_test_child_clear (&child);
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest of_program[] = {
    td_test (program__stops_at_its_mistakes),
    td_test (program__without_mistakes_does_not_stop),
  };
  const struct CMUnitTest tests[] = {
    td_test (graph_changed__stops_after_the_iteration_that_is_another),
    td_test (graph_changed__is_not_said_of_sizes),
    td_test (graph_changed__is_not_said_of_what_becomes_static),
    td_test (held__stops_where_something_of_an_iteration_outlives_the_next),
    td_test (growth__is_of_live_bytes_from_end_to_end),
    td_test (guard_failed__stops_in_the_call_and_says_which),
    td_test (edge_cut__stops_at_unchain_and_at_the_first_operation_without_backprop),
    td_test (alloc_and_pool__are_bytes_of_an_operation_and_of_the_device),
  };

  program = argc > 1 ? argv[1] : NULL;
  if (program != NULL)
    return cmocka_run_group_tests (of_program, NULL, NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
