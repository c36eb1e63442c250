/* The staticness advisor on programs whose behaviour is known (tests/models/chains.c) and on
 * the hand-made tape, whose times are.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "diff/td-diff.h"
#include "lenet-tape.h"
#include "schedule/td-schedule.h"
#include "schedule/td-staticness.h"
#include "td-test.h"

static TdTapeReader *
open_tape (const char *tape)
{
  char error[160];
  TdTapeReader *reader = td_tape_reader_open (tape, error, sizeof error);

  assert_non_null (reader);
  return reader;
}

/* Records chains.c as a user would. */
static TdTapeReader *
record (const char *what)
{
  const char *tape = td_test_tmp ("chains.tdtape");
  TdTestChild c = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", "-f", "-o",
                               tape, td_test_source ("tests/models/chains.c"), what);

  assert_child_status (c, 0);
  td_test_child_clear (&c);
  return open_tape (tape);
}

static TdStaticness *
advise (const char *what)
{
  TdTapeReader *reader = record (what);
  TdStaticness *s = td_staticness_new (reader, NULL);

  td_tape_reader_free (reader);
  return s;
}

static const TdStaticFunction *
function_of (const TdStaticness *s, const char *path)
{
  for (guint i = 0; i < s->n_functions; i++)
    if (strcmp (s->functions[i].path, path) == 0)
      return &s->functions[i];
  fail_msg ("no function %s", path);
  return NULL;
}

/* "chains.c:37", the line that has `mark`. */
static char *
site_of (const char *mark)
{
  char *source = td_test_read_file (td_test_source ("tests/models/chains.c"), NULL);
  const char *at = strstr (source, mark);
  guint line = 1;

  assert_non_null (at);
  for (const char *p = source; p < at; p++)
    line += *p == '\n';
  free (source);
  return g_strdup_printf ("chains.c:%u", line);
}

static void
st04__equal_iterations_are_one_static_function (void **state)
{
  g_autoptr (TdStaticness) s = advise ("curves");
  const TdStaticFunction *whole = function_of (s, "");

  assert_int_equal (s->n_iterations, 32);
  assert_int_equal (s->n_equal, 32);
  assert_int_equal (s->equal_since, 0);
  assert_int_equal (whole->verdict, TD_STATIC_ALWAYS);
  assert_true (whole->maximal);
  assert_int_equal (whole->n_ops, 10);
  assert_int_equal (whole->changed, -1);
  assert_contains (s->sentence, "the same in all 32 iterations");
}

/* Iterations 3 and 30: event by event the same, in the same order; only their times differ. */
static void
st06__equal_iterations_run_the_same_events_in_the_same_order (void **state)
{
  TdTapeReader *r = record ("curves");
  g_autoptr (TdIteration) a = lenet_tape_load (r, 3);
  g_autoptr (TdIteration) b = lenet_tape_load (r, 30);
  const TdTapeIteration *x = td_iteration_get_tape (a), *y = td_iteration_get_tape (b);
  g_autoptr (TdDiff) d = td_diff_new (a, b, r, r);
  guint n_other_times = 0;

  assert_true (td_diff_is_same (d));
  assert_int_equal (d->n_pairs, 10);
  for (guint e = 0; e < x->n_events; e++)
    {
      assert_int_equal (d->pairs[e].event[TD_DIFF_A], e);
      assert_int_equal (d->pairs[e].event[TD_DIFF_B], e);
      assert_true (x->events[e].key == y->events[e].key);
      assert_int_equal (x->events[e].site, y->events[e].site);
      n_other_times += x->event_start_ns[e] != y->event_start_ns[e];
    }
  assert_true (x->start_ns < y->start_ns && n_other_times > 0);
  g_clear_pointer (&d, td_diff_unref);
  g_clear_pointer (&a, td_iteration_unref);
  g_clear_pointer (&b, td_iteration_unref);
  td_tape_reader_free (r);
}

static void
st11_st12__fusion_and_memory_are_counted_from_the_tape (void **state)
{
  g_autoptr (TdStaticness) s = advise ("curves");

  /* ten in one, whose nine results in between are 4000 bytes each */
  assert_int_equal (s->gain.n_fusable, 10);
  assert_int_equal (s->gain.n_groups, 1);
  assert_int_equal (s->gain.fused_bytes, 9 * 4000);
  /* two arrays are needed at once; all eleven stayed until the iteration closed */
  assert_in_range (s->gain.planned_bytes, 2 * 4000, 3 * 4000);
  assert_in_range (s->gain.peak_bytes, 11 * 4000, 12 * 4096);
  assert_true (s->gain.worth_it);
}

static void
st05_st08__what_became_dynamic_is_named_with_its_line (void **state)
{
  g_autoptr (TdStaticness) s = advise ("anything");
  const TdStaticFunction *whole = function_of (s, "");
  g_autofree char *site = site_of ("/* the choice */");

  assert_int_equal (whole->verdict, TD_STATIC_DYNAMIC);
  assert_false (whole->maximal);
  assert_int_equal (whole->changed, 1);
  assert_int_equal (whole->compared, 0);
  assert_string_equal (whole->op, "cos → sin");
  assert_string_equal (whole->site_a, site);
  assert_string_equal (whole->site_b, site);
  assert_contains (whole->why, site);
  assert_contains (s->sentence, "Nothing is static");
  assert_int_equal (s->n_equal, 1);
  assert_int_equal (s->gain.n_outside, 6);
}

static void
sg16_sg17__largest_functions_within_a_dynamic_pass_are_found (void **state)
{
  g_autoptr (TdStaticness) s = advise ("cells");
  const TdStaticFunction *whole = function_of (s, ""), *cell = function_of (s, "net/cell"),
                         *scope = function_of (s, "measured");
  g_autofree char *loop = site_of ("/* the loop */"), *read = site_of ("/* the read */");

  assert_int_equal (whole->verdict, TD_STATIC_DYNAMIC);
  assert_contains (whole->why, loop);
  assert_int_equal (cell->verdict, TD_STATIC_ALWAYS);
  assert_true (cell->maximal && cell->is_link);
  assert_int_equal (cell->n_calls, 3); /* of iteration 31 */
  assert_int_equal (cell->gap_ns, 0);  /* one operation has nothing between */
  assert_true (scope->maximal && !scope->is_link);
  assert_int_equal (scope->n_ops, 2);
  assert_int_equal (scope->n_reads, 1);
  assert_string_equal (scope->read_site, read);
  assert_int_equal (s->gain.n_outside, 0);
  assert_true (s->gain.static_gap_ns < s->gain.gap_ns);
}

static void
st09__links_and_parameters_that_come_late_are_named (void **state)
{
  g_autoptr (TdStaticness) s = advise ("cells");
  static const char *const paths[] = { "net/late", "net/late/W", "net/late/b" };
  g_autofree char *site = site_of ("/* the late one */");

  assert_int_equal (s->n_additions, 3);
  for (guint i = 0; i < 3; i++)
    {
      assert_string_equal (s->additions[i].path, paths[i]);
      assert_int_equal (s->additions[i].is_parameter, i > 0);
      assert_int_equal (s->additions[i].iteration, 5);
      assert_string_equal (s->additions[i].site, site);
    }
  g_autoptr (TdStaticness) none = advise ("curves");
  assert_int_equal (none->n_additions, 0);
}

static void
sizes__that_come_again_are_a_schedule_each (void **state)
{
  g_autoptr (TdStaticness) s = advise ("batches");
  const TdStaticFunction *whole = function_of (s, "");

  assert_int_equal (whole->verdict, TD_STATIC_SHAPES);
  assert_int_equal (whole->n_structures, 1);
  assert_int_equal (whole->n_sizes, 2);
  assert_true (whole->maximal);
}

/* "263 operations against 263" is no difference. */
static void
sizes__that_change_are_said_and_not_a_graph (void **state)
{
  TdTapeReader *reader = record ("batches");
  const TdTapeSummaries s = td_tape_reader_summaries (reader);
  g_autofree char *fewer = td_schedule_advice (reader, 7, 0);
  g_autofree char *more = td_schedule_advice (reader, 8, 0);

  assert_true (td_schedule_only_sizes (reader, &s.rows[7], &s.rows[6]));
  assert_false (td_schedule_only_sizes (reader, &s.rows[6], &s.rows[5]));
  assert_string_equal (fewer,
                       "Iteration 7 has the graph of the one before, and arrays of other "
                       "sizes, first where linear reads (1, 3) instead of (4, 3).");
  assert_string_equal (more, "Iteration 8 has the graph of the one before, and arrays of other "
                             "sizes, first where linear reads (4, 3) instead of (1, 3).");
  td_tape_reader_free (reader);
}

static void
attributes__that_change_are_said_to_make_new_schedules (void **state)
{
  g_autoptr (TdStaticness) s = advise ("slopes");
  const TdStaticFunction *whole = function_of (s, "");

  assert_int_equal (whole->n_attributes, 1);
  assert_contains (whole->attribute, "leaky_relu at chains.c:");
  assert_contains (s->sentence, "each change is a new schedule");
}

/* The hand-made tape has 900 ns between any two events, and 36 of its events are forward and
 * backward ones; ten updates follow. */
static void
gain__is_what_a_recount_of_the_tape_gives (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const char *tape = td_test_tmp ("lenet.tdtape");

  lenet_tape_write (tape, &o);
  TdTapeReader *r = open_tape (tape);
  g_autoptr (TdStaticness) s = td_staticness_new (r, NULL);
  g_autoptr (TdIteration) it = lenet_tape_load (r, 39);
  const TdTapeIteration *t = td_iteration_get_tape (it);
  guint n = 0;

  for (guint e = 0; e < t->n_events; e++)
    n += t->events[e].phase != TD_TAPE_PHASE_UPDATE;
  assert_int_equal (n, 35);
  assert_int_equal (s->n_iterations, 40);
  assert_int_equal (s->n_equal, 40);
  assert_int_equal (function_of (s, "")->gap_ns, 34 * 900);
  assert_int_equal (s->gain.gap_ns, 44 * 900);
  assert_int_equal (s->gain.static_gap_ns, 34 * 900);
  assert_true (s->gain.with_recording);
  assert_true (s->gain.planned_bytes <= s->gain.peak_bytes);
  assert_int_equal (s->gain.n_fusable, 0); /* its operations say nothing of themselves */
  td_tape_reader_free (r);
}

/* What changes outside of the range is not known in it. */
static void
advice__of_a_range_is_of_its_iterations_only (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const char *tape = td_test_tmp ("lenet.tdtape");

  o.extra_relu_at = 30;
  lenet_tape_write (tape, &o);
  TdTapeReader *r = open_tape (tape);
  g_autoptr (TdStaticness) before = td_staticness_new_in (r, (TdRange){ 5, 30 });
  g_autoptr (TdStaticness) with = td_staticness_new_in (r, (TdRange){ 25, 31 });

  assert_int_equal (before->n_iterations, 25);
  assert_int_equal (before->n_equal, 25);
  assert_int_equal (before->equal_since, 5);
  assert_int_equal (before->n_structures, 1);
  assert_int_equal (function_of (before, "")->verdict, TD_STATIC_ALWAYS);
  assert_int_equal (with->n_iterations, 6);
  assert_int_equal (with->n_structures, 2);
  assert_int_equal (with->n_equal, 1);
  assert_int_equal (function_of (with, "")->compared, 29);
  td_tape_reader_free (r);
}

static void
function__that_changed_once_and_came_back_is_several (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const char *tape = td_test_tmp ("lenet.tdtape");

  o.extra_relu_at = 30;
  lenet_tape_write (tape, &o);
  TdTapeReader *r = open_tape (tape);
  g_autoptr (TdStaticness) s = td_staticness_new (r, NULL);
  const TdStaticFunction *whole = function_of (s, ""), *lenet = function_of (s, "lenet");
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GString) json = g_string_new (NULL);
  TdJson j;

  assert_int_equal (whole->verdict, TD_STATIC_SEVERAL);
  assert_int_equal (whole->n_structures, 2);
  assert_int_equal (whole->changed, 30);
  assert_int_equal (whole->compared, 29);
  assert_int_equal (whole->since, 31);
  assert_int_equal (whole->n_ops, 13); /* of iteration 39 */
  assert_string_equal (whole->op, "relu added");
  assert_string_equal (whole->site_b, "lenet.c:50");
  assert_int_equal (lenet->verdict, TD_STATIC_ALWAYS);
  assert_false (lenet->maximal); /* what is around it is already */
  assert_int_equal (s->n_equal, 9);
  assert_int_equal (s->equal_since, 31);
  /* 34 times 900 ns are less than 1 % of its 3.3 ms, and its memory is needed at once */
  assert_false (s->gain.worth_it);
  assert_contains (s->sentence, " No gain: 0.92 % of an iteration");
  td_staticness_print (s, text);
  assert_contains (text->str, "40 iterations, 2 graphs; the newest 9 are equal");
  td_json_init (&j, json);
  td_staticness_print_json (s, &j);
  td_test_golden ("viz/staticness.json", json->str);
  td_tape_reader_free (r);
}

/* What a budget thins has run all the same: the counts do not fall while a run goes on. */
static void
equal__counts_what_ran_and_not_what_is_stored (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const char *tape = td_test_tmp ("thin.tdtape");

  (void)state;
  o.n_iterations = 30000;
  o.budget_bytes = 1 << 20;
  lenet_tape_write (tape, &o);

  TdTapeReader *r = open_tape (tape);
  g_autoptr (TdStaticness) s = td_staticness_new (r, NULL);
  GString *text = g_string_new (NULL);

  assert_true (s->n_iterations < 30000);
  assert_int_equal (s->n_ran, 30000);
  assert_int_equal (s->n_equal, 30000 - s->equal_since);
  td_staticness_print (s, text);
  assert_non_null (strstr (text->str, "  30000 iterations, "));
  g_string_free (text, TRUE);
  td_tape_reader_free (r);
}

static void
advice__waits_for_a_second_iteration (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const char *tape = td_test_tmp ("one.tdtape");

  o.n_iterations = 1;
  lenet_tape_write (tape, &o);
  TdTapeReader *r = open_tape (tape);
  g_autoptr (TdStaticness) one = td_staticness_new (r, NULL);
  assert_string_equal (
      one->sentence, "One iteration so far: another one will show whether the graph repeats.");
  td_tape_reader_free (r);
  o.n_iterations = 0;
  lenet_tape_write (tape, &o);
  r = open_tape (tape);
  g_autoptr (TdStaticness) none = td_staticness_new (r, NULL);
  assert_string_equal (none->sentence, "No iteration has ended yet.");
  td_tape_reader_free (r);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (st04__equal_iterations_are_one_static_function),
    td_test (st06__equal_iterations_run_the_same_events_in_the_same_order),
    td_test (st11_st12__fusion_and_memory_are_counted_from_the_tape),
    td_test (st05_st08__what_became_dynamic_is_named_with_its_line),
    td_test (sg16_sg17__largest_functions_within_a_dynamic_pass_are_found),
    td_test (st09__links_and_parameters_that_come_late_are_named),
    td_test (sizes__that_come_again_are_a_schedule_each),
    td_test (sizes__that_change_are_said_and_not_a_graph),
    td_test (attributes__that_change_are_said_to_make_new_schedules),
    td_test (gain__is_what_a_recount_of_the_tape_gives),
    td_test (advice__of_a_range_is_of_its_iterations_only),
    td_test (function__that_changed_once_and_came_back_is_several),
    td_test (equal__counts_what_ran_and_not_what_is_stored),
    td_test (advice__waits_for_a_second_iteration),
  };

  return cmocka_run_group_tests_name ("staticness", tests, NULL, NULL);
}
