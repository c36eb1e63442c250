/* Static functions from a program's source to what `show` says of them.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include "static/schedule.h"
#include "td-tape-reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The engine hands its numbers on to the tape as they are. */
#define SAME(engine, tape) _Static_assert((int)TD_##engine == (int)TD_TAPE_##tape, #engine)
SAME (STEP_OP, STEP_OP);
SAME (STEP_FILL, STEP_FILL);
SAME (STEP_COPY, STEP_COPY);
SAME (STEP_EFFECT, STEP_EFFECT);
SAME (STEP_HOST_READ, STEP_HOST_READ);
SAME (STEP_LINK_ENTER, STEP_LINK_ENTER);
SAME (STEP_SCOPE_CLOSE, STEP_SCOPE_CLOSE);
SAME (STEP_PROPAGATE, STEP_PROPAGATE);
SAME (STEP_GROUP, STEP_GROUP);
SAME (VALUE_INTERIOR, VALUE_INTERIOR);
SAME (VALUE_EXTERNAL, VALUE_EXTERNAL);
SAME (VALUE_CONSTANT, VALUE_CONSTANT);
SAME (VALUE_OUTPUT, VALUE_OUTPUT);
SAME (VALUE_GY, VALUE_GY);
SAME (VALUE_GRADIENT, VALUE_GRADIENT);
SAME (FUNCTION_OFF, CHAIN_OFF);
SAME (FUNCTION_TRACING, CHAIN_TRACING);
SAME (FUNCTION_SCHEDULED, CHAIN_SCHEDULED);
SAME (FUNCTION_INVALID, CHAIN_INVALID);

static const char *
example (void)
{
  return td_test_source ("data/examples/static_mlp.c");
}

static int
count (const char *text, const char *what)
{
  int n = 0;

  for (const char *at = strstr (text, what); at != NULL; at = strstr (at + 1, what))
    n++;
  return n;
}

/* Seed 002: a counter in a static function stays at 1, one that is wrapped counts. */
static void
side_effects__run_once_unless_they_are_wrapped (void **state)
{
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", example ());

  assert_child_status (child, 0);
  assert_contains (child.out, "20 iterations: the plain counter is 1, the wrapped one 20\n");
  assert_contains (child.out, "1 calls ran the code, 19 the schedule\n");
  assert_int_equal (count (child.out, "a line of the function's code\n"), 1);
  td_test_child_clear (&child);
}

static void
run__static_off_runs_the_code_at_every_call (void **state)
{
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet",
                                   "--static", "off", example ());

  assert_child_status (child, 0);
  assert_contains (child.out, "20 iterations: the plain counter is 20, the wrapped one 20\n");
  assert_contains (child.out, "20 calls ran the code, 0 the schedule\n");
  assert_int_equal (count (child.out, "a line of the function's code\n"), 20);
  td_test_child_clear (&child);
}

static void
run__takes_no_other_word_for_static (void **state)
{
  static const char *const words[]
      = { "on", "", "verify=", "verify=0", "verify=x", "verify=-1" };

  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    {
      TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--static",
                                       words[i], example ());

      assert_child_status (child, 2);
      assert_contains (child.err, "auto, as-is, off, verify or verify=K expected");
      td_test_child_clear (&child);
    }
}

/* Record the example in its own folder, so that sites are relative. */
static const char *
record (const char *name, const char *mode)
{
  const char *tape = td_test_tmp (name);
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", "-o",
                                   tape, "--static", mode, example ());

  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return tape;
}

/* Nanoseconds of a step in one iteration, from the list as CSV. */
static double
step_time (const char *tape, int iteration, int step)
{
  char number[16], start[40];
  snprintf (number, sizeof number, "%d", iteration);
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view",
                                   "schedule", "--format", "csv", "--iteration", number);
  const char *line, *end;
  int commas = 0;

  assert_child_status (child, 0);
  snprintf (start, sizeof start, "\nmlp,%d,", step);
  line = strstr (child.out, start);
  assert_non_null (line);
  end = strchr (line + 1, '\n');
  while (end > line && commas < 2) /* the last but one */
    commas += *--end == ',';
  double ns = strtod (end + 1, NULL);
  td_test_child_clear (&child);
  return ns;
}

static int
smaller (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static double
member (const char *json, const char *name)
{
  const char *at = strstr (json, name);

  assert_non_null (at);
  return strtod (at + strlen (name), NULL);
}

/* ST13: the first linear's mean, deviation and 99th percentile are those of its 19 replays. */
static void
show__summarises_the_times_of_a_step_over_its_replays (void **state)
{
  const char *tape = record ("times.tdtape", "as-is");
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view",
                                   "schedule", "--format", "json");
  double ns[19], mean = 0, squares = 0;
  const char *times, *first;
  int step;

  assert_child_status (child, 0);
  assert_contains (child.out, "\"timed_iterations\": 19");
  times = strstr (child.out, "\"times\"");
  assert_non_null (times);
  first = strstr (times, "\"step\":");
  assert_non_null (first);
  step = (int)member (first, "\"step\":");
  assert_int_equal (member (first, "\"runs\":"), 19);
  for (int i = 0; i < 19; i++)
    mean += (ns[i] = step_time (tape, i + 1, step)) / 19;
  for (int i = 0; i < 19; i++)
    squares += (ns[i] - mean) * (ns[i] - mean);
  qsort (ns, 19, sizeof *ns, smaller);
  assert_true (mean > 0);
  assert_float_equal (member (first, "\"mean_ns\":"), mean, 1e-3 * mean);
  assert_float_equal (member (first, "\"sd_ns\":"), sqrt (squares / 18), 1e-3 * mean);
  assert_float_equal (member (first, "\"p99_ns\":"), ns[18], 1);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view", "schedule");
  assert_contains (child.out, "times over 19 iterations\n");
  td_test_child_clear (&child);
}

static void
show__lists_the_schedule_and_what_is_not_part_of_it (void **state)
{
  const char *tape = record ("s.tdtape", "as-is");
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view", "schedule");

  if (child.status == 127)
    skip ();
  assert_child_status (child, 0);
  assert_contains (child.out, "scheduled, 19 calls replayed, 1 by code, unverified since "
                              "iteration 1\n");
  assert_contains (child.out, "td_static_code");
  assert_contains (child.out, "m->n_plain is possibly set once\n");
  assert_contains (child.out, "printf ran once\n");
  assert_int_equal (count (child.out, " ran once\n"), 1);
  assert_contains (child.out, "self: 24 bytes, 0 of them set by the code");
  assert_contains (child.out, "iteration 0      traced\n");
  assert_contains (child.out, "iteration 1      scheduled (schedule 1)\n");
  assert_int_equal (count (child.out, "proved"), 0); /* nothing was verified */
  td_test_child_clear (&child);
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view", "schedule",
                       "--format", "svg", "-o", "-");
  assert_child_status (child, 0);
  assert_contains (child.out, "<svg");
  td_test_child_clear (&child);
}

/* A program whose code, being traced, ends before its function does. */
static const char cut[]
    = "#include <tapedeck.h>\n"
      "#include <stdlib.h>\n"
      "static void forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)\n"
      "{\n"
      "  TdVar *h = td_relu (in[0]);\n"
      "  h = td_tanh (h);\n"
      "  h = td_mul (h, h);\n"
      "  _exit (3);\n"
      "  out[0] = h;\n"
      "}\n"
      "int main (void)\n"
      "{\n"
      "  td_init (NULL, NULL);\n"
      "  TdStatic *s = td_static_new (forward, NULL, .name = \"cut\");\n"
      "  TD_ITERATION (0)\n"
      "    td_static_call1 (s, td_ones (TD_F32, TD_SHAPE (3)));\n"
      "}\n";

/* SG04: entries are there one by one, so a trace that was cut off shows what it had. */
static void
show__lists_the_entries_of_a_trace_that_was_cut (void **state)
{
  const char *source = td_test_tmp ("cut.c"), *tape = td_test_tmp ("cut.tdtape");
  FILE *f = fopen (source, "w");
  TdTestChild child;

  assert_non_null (f);
  fputs ("#include <unistd.h>\n", f);
  fputs (cut, f);
  fclose (f);
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", "-o", tape, source);
  assert_child_status (child, 3);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view", "schedule");
  if (child.status == 127)
    skip ();
  assert_child_status (child, 0);
  assert_contains (child.out, "cut.c:15)  tracing: 4 entries so far\n");
  assert_contains (child.out, "    1  forward    relu ");
  assert_contains (child.out, "    2  forward    tanh ");
  assert_contains (child.out, "    3  forward    mul ");
  assert_contains (child.out, "cut.c:8\n");
  assert_int_equal (count (child.out, "  forward  "), 4); /* and the function's scope */
  td_test_child_clear (&child);
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view", "schedule",
                       "--format", "json");
  assert_contains (child.out, "\"tracing\": true");
  assert_int_equal (count (child.out, "\"entry\":"), 4);
  td_test_child_clear (&child);
}

static const char verified[]
    = "#include <tapedeck.h>\n"
      "static void forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)\n"
      "{\n"
      "  out[0] = td_sum (td_tanh (td_relu (td_link (self, in[0]))));\n"
      "}\n"
      "int main (void)\n"
      "{\n"
      "  td_init (NULL, NULL);\n"
      "  TdLink *l = td_linear_new (NULL, \"l\", 30, 20);\n"
      "  TdStatic *s = td_static_new (forward, l, .name = \"v\");\n"
      "  TD_ITERATIONS (i, 5)\n"
      "    {\n"
      "      if (i == 3)\n"
      "        td_static_verify_next (s);\n"
      "      td_cleargrads (l);\n"
      "      td_backward (td_static_call1 (s, td_ones (TD_F32, TD_SHAPE (4, 30))), 0);\n"
      "    }\n"
      "  td_static_free (s);\n"
      "  return td_finish ();\n"
      "}\n";

static char *
show (const char *tape, const char *view, const char *iteration)
{
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view",
                                   view, "--iteration", iteration, "--format", "text");
  char *text;

  if (child.status == 127)
    skip ();
  assert_child_status (child, 0);
  text = strdup (child.out);
  td_test_child_clear (&child);
  return text;
}

/* A verified call is on the tape with its code, and in no view but as one call. */
static void
show__has_a_verified_call_once (void **state)
{
  static const char *const views[] = { "graph", "backward", "memory" };
  const char *source = td_test_tmp ("verified.c"), *tape = td_test_tmp ("verified.tdtape");
  FILE *f = fopen (source, "w");
  TdTestChild child;

  assert_non_null (f);
  fputs (verified, f);
  fclose (f);
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", "-o", tape, source);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "cat", tape, "--iterations", "3:3");
  assert_contains (child.out, "run v verification list 0 events 0 to 4 discarded\n");
  assert_contains (child.out, "run v replayed list 0 events 4 to ");
  td_test_child_clear (&child);
  for (size_t i = 0; i < sizeof views / sizeof *views; i++)
    {
      char *plain = show (tape, views[i], "2"), *checked = show (tape, views[i], "3");

      assert_true (strlen (plain) > 40);
      assert_string_equal (plain, checked);
      free (plain);
      free (checked);
    }
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view", "graph",
                       "--iteration", "3", "--discarded");
  assert_child_status (child, 0);
  assert_int_equal (count (child.out, ": relu\n"), 1);
  assert_contains (child.out, "verify");
  td_test_child_clear (&child);
}

static const char thousand[]
    = "#include <tapedeck.h>\n"
      "static void forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)\n"
      "{\n"
      "  TdVar *h = in[0];\n"
      "  for (int i = 0; i < 250; i++)\n"
      "    h = td_add (td_relu (td_mul_scalar (td_tanh (h), 1.5)), in[0]);\n"
      "  out[0] = h;\n"
      "}\n"
      "int main (void)\n"
      "{\n"
      "  td_init (NULL, NULL);\n"
      "  TdStatic *s = td_static_new (forward, NULL, .name = \"long\");\n"
      "  TD_ITERATIONS (i, 31)\n"
      "    TD_USING (use_static_graph, i <= 15)\n"
      "      td_static_call1 (s, td_full (TD_F32, TD_SHAPE (16), 0.5));\n"
      "  td_static_free (s);\n"
      "  return td_finish ();\n"
      "}\n";

/* ST16: 1,000 operations on 16 floats, 15 calls by each of schedule and code; of both the least
 * counts, which other programs on the machine do not change. */
static void
show__says_that_a_schedule_costs_less_besides_its_operations (void **state)
{
  const char *source = td_test_tmp ("long.c"), *tape = td_test_tmp ("long.tdtape");
  FILE *f = fopen (source, "w");
  TdTestChild child;
  double by_schedule, by_code;

  assert_non_null (f);
  fputs (thousand, f);
  fclose (f);
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", "-o", tape, source);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view", "schedule",
                       "--format", "json");
  if (child.status == 127)
    skip ();
  assert_child_status (child, 0);
  assert_int_equal (member (child.out, "\"static_calls\":"), 15);
  assert_int_equal (member (child.out, "\"dynamic_calls\":"), 15);
  assert_contains (child.out, "\"dynamic_traced\": false");
  by_schedule = member (child.out, "\"static_ns\":");
  by_code = member (child.out, "\"dynamic_ns\":");
  print_message ("besides itself an operation costs %.1f ns replayed, %.1f ns by code\n",
                 by_schedule, by_code);
  assert_true (by_schedule > 0);
  assert_true (by_schedule < by_code);
  td_test_child_clear (&child);
  char *text = show (tape, "schedule", "30");
  assert_contains (text, "besides itself an operation of forward costs ");
  assert_contains (text, " ns replayed (least of 15 calls), ");
  assert_contains (text, " ns by code (least of 15 calls)\n");
  free (text);
}

static const char recurrent[]
    = "#include <tapedeck.h>\n"
      "typedef struct { TdLink *in, *rec; } Net;\n"
      "static void forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)\n"
      "{\n"
      "  Net *n = self;\n"
      "  TdVar *h = in[5];\n"
      "  for (int t = 0; t < 5; t++)\n"
      "    h = td_tanh (td_add (td_link (n->in, td_relu (in[t])), td_link (n->rec, h)));\n"
      "  td_exp (h);\n"
      "  out[0] = td_sum (td_add (td_sigmoid (h), td_sigmoid (h)));\n"
      "}\n"
      "int main (void)\n"
      "{\n"
      "  td_init (NULL, NULL);\n"
      "  TdLink *root = td_chain_new (\"net\");\n"
      "  Net n = { td_linear_new (root, \"in\", 8, 16), td_linear_new (root, \"rec\", 16, 16) "
      "};\n"
      "  TdStatic *s = td_static_new (forward, &n, .name = \"all\");\n"
      "  TdStatic *plain = td_static_new (forward, &n, .name = \"plain\", .fuse = false);\n"
      "  TD_ITERATIONS (i, 3)\n"
      "    {\n"
      "      TdVar *in[6], *y;\n"
      "      for (int t = 0; t < 5; t++)\n"
      "        in[t] = td_full (TD_F32, TD_SHAPE (4, 8), 0.1 * t);\n"
      "      in[5] = td_zeros (TD_F32, TD_SHAPE (4, 16));\n"
      "      td_static_call (s, in, 6, &y, 1);\n"
      "      td_cleargrads (root);\n"
      "      td_backward (y, 0);\n"
      "      TD_NO_BACKPROP\n"
      "        td_static_call (plain, in, 6, &y, 1);\n"
      "    }\n"
      "  td_static_free (plain);\n"
      "  td_static_free (s);\n"
      "  return td_finish ();\n"
      "}\n";

/* Five input projections are one product; a recurrent one waits for the one before. */
static void
show__says_what_passes_did_to_each_step_and_why_not (void **state)
{
  const char *source = td_test_tmp ("rnn.c"), *tape = td_test_tmp ("rnn.tdtape");
  FILE *f = fopen (source, "w");
  TdTestChild child;
  char *text, *plain;

  assert_non_null (f);
  fputs (recurrent, f);
  fclose (f);
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", "-o", tape, source);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  text = show (tape, "schedule", "2");
  plain = strstr (text, "\nplain ");
  assert_non_null (plain);
  *plain++ = '\0';
  assert_contains (text, "1.28 kB  batch of 5\n");
  assert_in_range (count (text, "  batched: done with step "), 4, 100);
  assert_int_equal (
      count (text, "not batched: its like depend on each other, or lie elsewhere"),
      8); /* h of steps 1 to 4, and their gradients */
  assert_contains (text, "not batched: its rows are not the plan's to lay out");
  assert_contains (text, "its matrix is packed\n");
  assert_contains (text, "  pruned\n");
  assert_int_equal (count (text, "  merged: the same as step "), 1);
  assert_contains (text, "not fused: ");
  assert_int_equal (count (plain, "not batched: batching is off"), 10);
  assert_true (count (plain, "not fused: fusion is off") >= 15);
  assert_int_equal (count (plain, "batch of"), 0);
  free (text);
}

/* Row 62: that a call ran once is read in the source; that it would have run again is seen in
 * the fifth replay, which is verified.  Memory that is not watched proves nothing. */
static void
show__says_what_a_verified_call_proved_to_have_run_once (void **state)
{
  const char *tape = record ("proved.tdtape", "verify=5");
  char *before = show (tape, "schedule", "4"), *text = show (tape, "schedule", "19");

  assert_contains (before, "m->n_plain is possibly set once\n");
  assert_contains (before, "printf ran once\n");
  assert_contains (text, "m->n_plain is possibly set once\n");
  assert_contains (text, "printf ran once, proved in iteration 5\n");
  assert_int_equal (
      count (text, "  iteration 5      proved stdout: 30 bytes written by the code\n"), 1);
  assert_int_equal (count (text, "  proved "), 1); /* once, not at every verified call */
  free (before);
  free (text);
}

/* What is planned is what is taken, and no less than what lives at once. */
static void
tape__has_a_plan_that_memory_keeps_to (void **state)
{
  const char *tape = record ("p.tdtape", "as-is");
  char error[200];
  TdTapeReader *r = td_tape_reader_open (tape, error, sizeof error);
  const TdTapeSchedule *s = td_tape_schedule_load (r, 1, error, sizeof error);
  const TdTapeIteration *it = td_tape_iteration_load (r, 19, error, sizeof error);

  if (s == NULL)
    fail_msg ("%s", error);
  assert_int_equal (it->start_bytes[TD_TAPE_CATEGORY_STATIC], s->head.arena_bytes);
  assert_true (s->head.lower_bound <= s->head.arena_bytes);
  assert_int_equal (it->n_statics, 1);
  assert_int_equal (it->statics[0].all_replays, 19);
  assert_int_equal (it->statics[0].n_replays, 1);
  td_tape_iteration_free (it);
  td_tape_schedule_free (s);
  td_tape_reader_free (r);
}

static void
tape__has_the_verified_calls (void **state)
{
  const char *tape = record ("v.tdtape", "verify=5");
  char error[200];
  TdTapeReader *r = td_tape_reader_open (tape, error, sizeof error);
  int n = 0;

  assert_non_null (r);
  for (uint32_t i = 0; i < td_tape_reader_n_static_events (r); i++)
    {
      const TdTapeStaticEvent *e = td_tape_reader_static_event (r, i);

      n += e->what == TD_TAPE_STATIC_VERIFIED || e->what == TD_TAPE_STATIC_DIFFERS;
    }
  assert_true (n >= 3 && n <= 4);
  td_tape_reader_free (r);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (side_effects__run_once_unless_they_are_wrapped),
    td_test (run__static_off_runs_the_code_at_every_call),
    td_test (run__takes_no_other_word_for_static),
    td_test (show__lists_the_schedule_and_what_is_not_part_of_it),
    td_test (show__summarises_the_times_of_a_step_over_its_replays),
    td_test (show__lists_the_entries_of_a_trace_that_was_cut),
    td_test (show__has_a_verified_call_once),
    td_test (show__says_that_a_schedule_costs_less_besides_its_operations),
    td_test (show__says_what_passes_did_to_each_step_and_why_not),
    td_test (show__says_what_a_verified_call_proved_to_have_run_once),
    td_test (tape__has_a_plan_that_memory_keeps_to),
    td_test (tape__has_the_verified_calls),
  };

  return cmocka_run_group_tests_name ("static-views", tests, NULL, NULL);
}
