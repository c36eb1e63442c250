/* Which parameters do not learn is found whatever hooks of the optimizer add to their
 * gradients: programs drawn at random, with faults that are planted in all of them.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "td-test.h"

#ifndef N_PROGRAMS
#define N_PROGRAMS 80
#endif

static void
assert_count (const char *csv, const char *text, unsigned expected, unsigned seed)
{
  unsigned n = 0;

  for (const char *p = csv; (p = strstr (p, text)) != NULL; p++)
    n++;
  if (n != expected)
    fail_msg ("program %u: \"%s\" is there %u times, not %u:\n%s", seed, text, n, expected,
              csv);
}

/* What is found in the tape of a program. Only net/key is dead: surely where its gradient is
 * one sum in float32, not at level graph, which has no numbers. */
static void
check (const char *csv, bool is_dead, bool has_numbers, bool is_scaled, unsigned seed)
{
  static const char *const always[]
      = { "missing,net/unused/W,", "missing,net/unused/b,", "missing,net/cut/W,",
          "missing,net/cut/b,",    "not-updated,free/l/W,", "not-updated,free/l/b," };

  for (unsigned i = 0; i < sizeof always / sizeof always[0]; i++)
    assert_count (csv, always[i], 1, seed);
  assert_count (csv, "\nmissing,", 4, seed);
  assert_count (csv, "\nnot-updated,", is_scaled ? 4 : 2, seed);
  assert_count (csv, "\nnot-updated,other/", is_scaled ? 2 : 0, seed);
  assert_count (csv, "\ndead,", strstr (csv, "\ndead,net/key,") != NULL, seed);
  if (is_dead || !has_numbers)
    assert_count (csv, "\ndead,net/key,", is_dead, seed);
  assert_count (csv, "\nexploding,net/used", 0, seed);
  assert_count (csv, "net/mean", 0, seed);
}

static void
findings__are_what_was_planted_whatever_hooks_do (void **state)
{
  const char *program = td_test_program ("app/tapedeck");
  const char *model = td_test_program ("tests/app/model-findings"),
             *tape = td_test_tmp ("t.tdtape");

  td_test_program ("app/tapedeck-viz");
  srand (1);
  for (unsigned seed = 0; seed < N_PROGRAMS; seed++)
    {
      char hooks[8], kind[8], how[8];
      bool clears = rand () % 4 != 0, has_numbers = rand () % 4 != 0;
      int bits = rand () % 2 ? rand () % 8 : 0;

      clears = clears || bits & 2; /* a skipped update leaves what is scaled */

      snprintf (hooks, sizeof hooks, "%d", rand () % 32);
      snprintf (kind, sizeof kind, "%d", rand () % 3);
      snprintf (how, sizeof how, "%d", bits);
      TdTestChild child
          = TD_TEST_RUN (program, "run", "-f", "--level", has_numbers ? "stats" : "graph", "-o",
                         tape, model, hooks, kind, clears ? "1" : "0", how);
      assert_child_status (child, 0);
      td_test_child_clear (&child);
      child = TD_TEST_RUN (program, "show", tape, "--view", "findings", "--format", "csv");
      assert_child_status (child, 0);
      check (child.out, has_numbers && clears && !(bits & 5), has_numbers, bits & 2, seed);
      td_test_child_clear (&child);
    }
  (void)state;
}

/* With parameters of 32 bits, and of 16, whose updates are begun with copies before they are
 * skipped: nobody is told that all learn, or that nothing updates them. */
static void
findings__say_that_updates_are_skipped (void **state)
{
  static const char *const ways[] = { "10", "11" }; /* DIVERGES, SCALED, and HALVES */
  const char *tape = td_test_tmp ("t.tdtape");

  (void)state;
  for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
    {
      const char *program = td_test_program ("app/tapedeck");
      TdTestChild child
          = TD_TEST_RUN (program, "run", "-f", "--level", "stats", "-o", tape,
                         td_test_program ("tests/app/model-findings"), "0", "0", "1", ways[i]);

      td_test_child_clear (&child);
      child = TD_TEST_RUN (program, "show", tape, "--view", "findings");
      assert_child_status (child, 0);
      assert_contains (child.out, "Updates are skipped since iteration ");
      assert_not_contains (child.out, "Nothing found");
      assert_not_contains (child.out, "net/used/W              in 9 of 9");
      td_test_child_clear (&child);
    }
}

/* Iteration 4 has gradients that are not numbers. argv[1]: what becomes of its update, or that
 * there is no optimizer. */
static const char *
record_bad (const char *how)
{
  static const char text[]
      = "#include <tapedeck.h>\n#include <math.h>\nint main (int argc, char **argv)\n{\n"
        "  td_init (&argc, &argv);\n"
        "  TdLink *net = td_linear_new (NULL, \"net\", 8, 8);\n"
        "  TdOpt *opt = *argv[1] == 'n' ? NULL : td_sgd_new (net, .lr = 0.001);\n"
        "  TD_ITERATIONS (i, 8)\n"
        "    {\n"
        "      TdVar *h = td_link (net, td_randn (TD_F32, TD_SHAPE (4, 8)));\n"
        "      TdVar *loss = td_mean (td_square (h));\n"
        "      if (i == 4)\n"
        "        loss = td_mul_scalar (*argv[1] == 'i' ? td_mean (h) : loss,\n"
        "                              *argv[1] == 'i' ? INFINITY : NAN);\n"
        "      td_cleargrads (net);\n"
        "      td_backward (loss, 0);\n"
        "      if (opt && (i != 4 || *argv[1] == 'u'))\n"
        "        td_opt_update (opt);\n"
        "    }\n"
        "  return td_finish ();\n}\n";
  const char *source = td_test_tmp ("bad.c"), *tape = td_test_tmp ("bad.tdtape");
  TdTestChild child;

  td_test_write_file (source, text, sizeof text - 1);
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "--level", "stats", "-o",
                       tape, source, how);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return tape;
}

static void
assert_shows (const char *tape, const char *view, const char *range, const char *what)
{
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view",
                                   view, "--range", range, "--format", "text");

  assert_child_status (child, 0);
  assert_contains (child.out, what);
  td_test_child_clear (&child);
}

/* Also where nothing on show was updated: which variables are gradients is known by others. */
static void
gradients__that_no_update_took_count (void **state)
{
  static const char *const ranges[] = { ":", "4", "4:5", "3:" };

  (void)state;
  for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; i++)
    {
      const char *tape = record_bad (i % 2 ? "infinite" : "skipped");

      assert_shows (tape, "gradients", ranges[i], i % 2 ? "+Inf" : "NaN");
      assert_shows (tape, "findings", ranges[i], "Exploding: 2 of 2 parameters");
    }
  assert_shows (record_bad ("skipped"), "findings", ":",
                "in 1 of 8 iterations; first not finite at 4\n");
  assert_shows (record_bad ("updated"), "findings", ":",
                "in 4 of 8 iterations; not finite from 4 on\n");
}

/* The graph says which they are (no-optimizer.py); of rules only that for what is no number
 * judges them. */
static void
gradients__of_no_optimizer_are_those_of_the_graph (void **state)
{
  const char *tape = record_bad ("none");

  (void)state;
  assert_shows (tape, "gradients", "4", "\nnet/W                           NaN\n");
  assert_shows (tape, "findings", ":", "in 1 of 1 iteration; not finite from 4 on\n");
  assert_shows (tape, "findings", "0:3", "No optimizer update in these iterations\n");
}

/* Eight weights: two of 0, two of 0.3, three of 5 and a NaN; their gradient is 2 throughout,
 * and nothing moves. Shares are of all elements. */
static void
ridge__has_the_shares_of_elements_by_their_size (void **state)
{
  static const char text[]
      = "#include <tapedeck.h>\n#include <math.h>\nint main (int argc, char **argv)\n{\n"
        "  td_init (&argc, &argv);\n"
        "  TdLink *net = td_chain_new (\"net\");\n"
        "  TdVar *W = td_link_add_param (net, \"W\", TD_SHAPE (8));\n"
        "  float w[8] = { 0, 0, 0.3f, -0.3f, 5, -5, 5, NAN };\n"
        "  td_write (W, w, sizeof w);\n"
        "  TdOpt *opt = td_sgd_new (net, .lr = 0);\n"
        "  TD_ITERATIONS (i, 2)\n"
        "    {\n"
        "      td_cleargrads (net);\n"
        "      td_backward (td_sum (td_mul_scalar (W, 2)), 0);\n"
        "      td_opt_update (opt);\n"
        "    }\n"
        "  return td_finish ();\n}\n";
  const char *source = td_test_tmp ("ridge.c"), *tape = td_test_tmp ("r.tdtape");
  const char *program = td_test_program ("app/tapedeck");
  TdTestChild child;

  (void)state;
  td_test_write_file (source, text, sizeof text - 1);
  child = TD_TEST_RUN (program, "run", "-f", "--level", "stats", "-o", tape, source);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "show", tape, "--view", "ridge", "--node", "net/W", "--format",
                       "csv");
  assert_child_status (child, 0);
  assert_count (child.out, "net/W,gradient,", 2, 0);
  assert_count (child.out, "net/W,weight,", 2, 0);
  assert_contains (child.out, "net/W,weight,1,0.2500,0.1250,");
  assert_contains (child.out, "net/W,gradient,0,0.0000,0.0000,");
  assert_count (child.out, ",0.2500,0.0000,0.0000,0.0000,0.3750,", 2, 0); /* 2^-2, 2^2 */
  assert_count (child.out, ",1.0000,", 2, 0);                             /* 2^1 */
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "show", tape, "--view", "ridge", "--node", "W.grad");
  assert_child_status (child, 0);
  assert_contains (child.out, "net/W: sizes of its elements");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "show", tape, "--view", "ridge", "--node", "net/V");
  assert_child_status (child, 2);
  assert_contains (child.err, "net/V");
  td_test_child_clear (&child);
}

/* A call that failed has made no NaN, whatever was recorded of others. */
static void
origin__of_a_call_that_failed_is_not_that_numbers_lack (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *program = td_test_program ("app/tapedeck");
  TdTestChild child = TD_TEST_RUN (program, "run", "-f", "--level", "stats", "-o", tape,
                                   td_test_program ("tests/app/model-trouble"), "error");
  char node[17];

  (void)state;
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "show", tape, "--view", "origin");
  assert_child_status (child, 2);
  assert_contains (child.err, "no NaN and no infinity is recorded in any iteration up to 3\n");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "show", tape, "--view", "graph", "--format", "json");
  assert_child_status (child, 0);
  const char *label = strstr (child.out, "\"label\": \"add\"");
  assert_non_null (label);
  snprintf (node, sizeof node, "%.16s",
            label - strlen ("24483fb2f2f5d602\", \"kind\": \"op\", "));
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "show", tape, "--view", "origin", "--node", node);
  assert_child_status (child, 0);
  assert_contains (child.out, "Nothing is known of add at ");
  assert_contains (child.out, "(the call failed: it made nothing)");
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (findings__are_what_was_planted_whatever_hooks_do),
    td_test (findings__say_that_updates_are_skipped),
    td_test (gradients__that_no_update_took_count),
    td_test (gradients__of_no_optimizer_are_those_of_the_graph),
    td_test (origin__of_a_call_that_failed_is_not_that_numbers_lack),
    td_test (ridge__has_the_shares_of_elements_by_their_size),
  };

  return cmocka_run_group_tests_name ("findings", tests, NULL, NULL);
}
