/* Programs that keep too much, and what `leaks` and the views holders and growth say of them.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *
model (void)
{
  return td_test_source ("tests/models/leaks.c");
}

/* Record the model going one way.  *Owner*: the path stays the test's. */
static const char *
record (const char *way, const char *iterations)
{
  const char *tape = td_test_tmp ("leaks.tdtape");
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "--quiet",
                                   "--iterations", iterations, "-o", tape, model (), way);

  td_test_program ("app/tapedeck-viz");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return tape;
}

/* Line of the model that has this text, as a site of it ends. */
static const char *
line_of (const char *text, char out[64])
{
  char *source = td_test_read_file (model (), NULL);
  const char *at = strstr (source, text);
  int line = 1;

  assert_non_null (at);
  for (const char *c = source; c < at; c++)
    line += *c == '\n';
  snprintf (out, 64, "leaks.c:%d", line);
  free (source);
  return out;
}

static double
number_after (const char *text, const char *key)
{
  const char *at = strstr (text, key);

  if (at == NULL)
    fail_msg ("no %s in: %s", key, text);
  return strtod (at + strlen (key), NULL);
}

static TdTestChild
leaks (const char *way, bool json)
{
  const char *program = td_test_program ("app/tapedeck"), *tape = record (way, "40");

  return json ? TD_TEST_RUN (program, "leaks", tape, "--json")
              : TD_TEST_RUN (program, "leaks", tape);
}

/* total += loss: one handle keeps the graphs of all iterations.  Each keeps at least what
 * backward of the squares needs: 8 numbers, and x of the last layer: 8 * 64.  Looks are further
 * apart the more there is to look at, so the last one may be some iterations old. */
static double
assert_total_is_found (const char *way)
{
  TdTestChild child = leaks (way, true);
  double bytes;
  char site[64];

  assert_child_status (child, 1);
  assert_contains (child.out, "\"holder\": \"user handle\"");
  assert_contains (child.out, line_of ("kept[0] = td_retain (before", site));
  assert_contains (child.out, "\"category\": \"activation\"");
  bytes = number_after (child.out, "\"bytes_per_iteration\":");
  assert_true (bytes >= 4 * (8 + 8 * 64));
  assert_true (number_after (child.out, "\"retained_bytes\":") >= 30 * 4 * (8 + 8 * 64));
  assert_true (number_after (child.out, "\"iterations\":") >= 30);
  td_test_child_clear (&child);
  return bytes;
}

static void
leaks__names_the_handle_that_keeps_every_graph (void **state)
{
  assert_total_is_found ("total");
}

/* What the calls of static functions keep is in no node of the graph: "nothing grows" was said.
 */
static void
leaks__names_the_handle_that_keeps_every_call_of_a_static_function (void **state)
{
  TdTestChild child;

  assert_true (assert_total_is_found ("static-total") >= assert_total_is_found ("total"));
  child = leaks ("static-little", false);
  assert_child_status (child, 0);
  assert_contains (child.out, "nothing grows");
  td_test_child_clear (&child);
}

static void
leaks__says_what_to_do_about_losses_in_a_list (void **state)
{
  TdTestChild child = leaks ("losses", false);
  char site[64];

  assert_child_status (child, 1);
  assert_contains (child.out, " per iteration: ");
  assert_contains (child.out, "kept by user handle");
  assert_contains (child.out, line_of ("kept[i] = td_retain (loss)", site));
  assert_contains (child.out, "td_unchain_backward");
  td_test_child_clear (&child);
}

/* An output of 8 numbers without a graph: 32 bytes an iteration, and nothing else. */
static void
leaks__counts_outputs_that_have_no_graph (void **state)
{
  TdTestChild child = leaks ("outputs", true);
  char site[64];

  assert_child_status (child, 1);
  assert_contains (child.out, line_of ("kept[i] = td_retain (td_mul", site));
  assert_true (number_after (child.out, "\"bytes_per_iteration\":") == 8 * 4);
  assert_true (number_after (child.out, "\"retained_bytes\":") == 40 * 8 * 4);
  assert_true (number_after (child.out, "\"objects\":") == 40);
  td_test_child_clear (&child);
}

/* A recurrent state that is never cut off keeps every step since the first. */
static void
leaks__names_the_link_whose_state_is_never_cut_off (void **state)
{
  TdTestChild child = leaks ("state", true);

  assert_child_status (child, 1);
  assert_contains (child.out, "\"holder\": \"link attribute\"");
  assert_true (number_after (child.out, "\"iterations\":") >= 30);
  td_test_child_clear (&child);
}

/* A linear link of 1 to 64: 64 weights and 64 biases of each iteration but the first, from
 * which on those of a sound program stay. They are made and kept at one place: one leak. */
static void
leaks__names_the_line_that_makes_links_again_and_again (void **state)
{
  TdTestChild child = leaks ("links", true);
  char site[64], want[96];

  assert_child_status (child, 1);
  snprintf (want, sizeof want, "%s\"", line_of ("td_linear_new (NULL, \"aside\"", site));
  assert_contains (child.out, "\"holder\": \"link attribute\"");
  assert_contains (child.out, want);
  assert_contains (child.out, "\"category\": \"parameter\"");
  assert_contains (child.out, "td_link_free");
  assert_true (number_after (child.out, "\"bytes_per_iteration\":") == 2 * 64 * 4);
  td_test_child_clear (&child);
}

/* Adam's two states of each parameter are named by where the optimizer was made. */
static void
leaks__names_the_line_that_makes_optimizers_again_and_again (void **state)
{
  TdTestChild child = leaks ("optimizers", true);
  char site[64], want[96];

  assert_child_status (child, 1);
  snprintf (want, sizeof want, "%s\"", line_of ("td_adam_new (net", site));
  assert_contains (child.out, "\"holder\": \"optimizer\"");
  assert_contains (child.out, want);
  assert_contains (child.out, "\"category\": \"optimizer\"");
  assert_contains (child.out, "td_opt_free");
  assert_true (number_after (child.out, "\"bytes_per_iteration\":") >= 2 * 64 * 64 * 4);
  td_test_child_clear (&child);
}

static void
leaks__finds_nothing_in_programs_that_let_go (void **state)
{
  static const char *const ways[] = { "little", "cut-state", "one-link", "one-optimizer" };

  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    {
      TdTestChild child = leaks (ways[i], true);

      assert_child_status (child, 0);
      assert_contains (child.out, "\"growing\": []");
      td_test_child_clear (&child);
    }
}

/* A name of its own for each array hides nothing: what is made and kept at one place is one. */
static void
leaks__finds_what_has_another_name_in_every_iteration (void **state)
{
  static const char *const ways[] = { "named", "persistents" };

  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    for (int by_site = 0; by_site < 2; by_site++)
      {
        const char *program = td_test_program ("app/tapedeck"), *tape = record (ways[i], "40");
        TdTestChild child = TD_TEST_RUN (program, "leaks", tape, "--json", "--by",
                                         by_site ? "site" : "holder");
        char site[64];

        assert_child_status (child, 1);
        assert_true (number_after (child.out, "\"bytes_per_iteration\":") == 64 * 4);
        assert_true (number_after (child.out, "\"iterations\":") >= 30);
        if (i == 0)
          assert_contains (child.out, line_of ("td_retain (named", site));
        assert_not_contains (child.out, "all together");
        td_test_child_clear (&child);
      }
}

/* One array that becomes longer, and a line for each of many places: none of these grows. */
static void
leaks__says_what_all_places_keep_together (void **state)
{
  TdTestChild child = leaks ("places", false);

  assert_child_status (child, 1);
  assert_contains (child.out, "+256 B per iteration: ");
  assert_contains (child.out, "in groups none of which grows steadily by itself");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", record ("places", "40"),
                       "--view", "growth");
  assert_child_status (child, 0);
  assert_contains (child.out, "1: +256 B per iteration: ");
  assert_not_contains (child.out, "nothing grows");
  td_test_child_clear (&child);
  child = leaks ("longer", true);
  assert_child_status (child, 1);
  assert_true (number_after (child.out, "\"bytes_per_iteration\":") == 64 * 4);
  td_test_child_clear (&child);
}

/* A few iterations are no proof. */
static void
leaks__waits_for_eight_iterations (void **state)
{
  const char *program = td_test_program ("app/tapedeck");
  TdTestChild child = TD_TEST_RUN (program, "leaks", record ("losses", "6"));

  assert_child_status (child, 0);
  assert_contains (child.out, "too early to say that something grows; so far ");
  assert_contains (child.out, "leaks.c:"); /* and who keeps it */
  td_test_child_clear (&child);
}

static void
holders__lists_what_is_there_and_who_keeps_it (void **state)
{
  const char *program = td_test_program ("app/tapedeck"), *tape = record ("outputs", "40");
  TdTestChild child = TD_TEST_RUN (program, "show", tape, "--view", "holders");
  char site[64];

  assert_child_status (child, 0);
  assert_contains (child.out, "after iteration 39: ");
  assert_contains (child.out, "40 of 40 iterations  activation");
  assert_contains (child.out, "<- user handle at ");
  assert_contains (child.out, line_of ("kept[i] = td_retain (td_mul", site));
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "show", tape, "--view", "holders", "--iteration", "9",
                       "--format", "csv");
  assert_child_status (child, 0);
  assert_contains (child.out, "320,10,10,0,activation,user handle,");
  td_test_child_clear (&child);
}

static void
growth__has_a_row_for_each_mark_and_a_picture (void **state)
{
  static const char *const pictures[] = { "growth", "holders" };
  const char *program = td_test_program ("app/tapedeck"), *tape = record ("outputs", "40");
  TdTestChild child
      = TD_TEST_RUN (program, "show", tape, "--view", "growth", "--format", "csv");

  assert_child_status (child, 0);
  assert_contains (child.out, "\n0,32,1,activation,");
  assert_contains (child.out, "\n39,1280,40,activation,");
  td_test_child_clear (&child);
  for (size_t i = 0; i < 2; i++)
    {
      child = TD_TEST_RUN (program, "show", tape, "--view", pictures[i], "--format", "svg");
      assert_child_status (child, 0);
      assert_contains (child.out, "<svg");
      assert_contains (child.out, "1.28 kB");
      td_test_child_clear (&child);
    }
}

/* The picture is the window's: a stack of what holds, with a row for each, and by site what was
 * made. */
static void
growth__draws_a_band_and_a_row_for_each_holder_or_site (void **state)
{
  static const struct
  {
    const char *by, *head, *title;
  } rows[] = { { "holder", "Holder", "40 handles `kept[i]` (" },
               { "site", "Made at", "activation (" } };
  const char *program = td_test_program ("app/tapedeck"), *tape = record ("outputs", "40");

  for (size_t i = 0; i < 2; i++)
    {
      TdTestChild child = TD_TEST_RUN (program, "show", tape, "--view", "growth", "--by",
                                       rows[i].by, "--format", "svg");

      assert_child_status (child, 0);
      assert_contains (child.out, rows[i].head);
      assert_contains (child.out, "Grown");
      assert_contains (child.out, "iteration 0");
      assert_contains (child.out, rows[i].title);
      assert_contains (child.out, "+1.25 kB");
      td_test_child_clear (&child);
    }
}

/* One array of every 16th iteration, from the first on. */
static void
assert_kept (const char *n_iterations, const char *leaks_say, const char *holders_say)
{
  static const char text[] = "#include <tapedeck.h>\nint main (int argc, char **argv)\n{\n"
                             "  td_init (&argc, &argv);\n"
                             "  TD_ITERATIONS (i, 4096)\n"
                             "    {\n"
                             "      TdVar *x = td_add (td_zeros (TD_F32, TD_SHAPE (4)), "
                             "td_ones (TD_F32, TD_SHAPE (4)));\n"
                             "      if (i % 16 == 0)\n"
                             "        td_retain (x);\n"
                             "    }\n"
                             "  return td_finish ();\n}\n";
  const char *source = td_test_tmp ("kept.c"), *tape = td_test_tmp ("kept.tdtape"),
             *program = td_test_program ("app/tapedeck");
  TdTestChild child;

  td_test_write_file (source, text, sizeof text - 1);
  child = TD_TEST_RUN (program, "run", "-f", "--quiet", "--iterations", n_iterations, "-o",
                       tape, source);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "leaks", tape);
  assert_contains (child.out, leaks_say);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "show", tape, "--view", "holders");
  assert_contains (child.out, holders_say);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "cat", tape);
  assert_contains (child.out, leaks_say);
  td_test_child_clear (&child);
}

/* Numbers that are equal modulo 64 are told apart, and where the count ends is said. */
static void
leaks__counts_iterations_that_are_far_apart (void **state)
{
  (void)state;
  assert_kept ("400", "arrays of 25 iterations, ", " 25 of 25 iterations ");
  assert_kept ("1200", "arrays of 64 or more iterations, ", " 75 of 64 or more iterations ");
}

static void
assert_no_records (const char *tape, const char *view, const char *range, const char *says)
{
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view",
                                   view, "--range", range, "--format", "text");

  assert_child_status (child, 2);
  assert_contains (child.err, says);
  assert_not_contains (child.err, "on this tape");
  td_test_child_clear (&child);
}

/* Which iterations have them is the recorder's choice: 64 that are the same have a few. */
static void
holders__of_a_range_without_records_name_the_next (void **state)
{
  const char *tape = record ("one-link", "40");

  (void)state;
  assert_no_records (tape, "holders", "30", "no reference records in iteration 30: ");
  assert_no_records (tape, "growth", "28:30", "no reference records in iterations 28 to 30: ");
  assert_no_records (tape, "holders", "28:30", "(the last before are of iteration ");
  assert_no_records (tape, "holders", "28:30", ", the first after are of iteration ");
}

/* The handle is called as the program calls it, its bytes are those of all graphs, and the
 * operations are counted: mean, mul, linear, relu and linear of each iteration, and the sums
 * from the second on. */
static void
leaks__says_first_which_handle_retains_how_many_nodes (void **state)
{
  TdTestChild child = leaks ("total", false);
  char site[64], want[160];
  int last, iterations, nodes;

  assert_child_status (child, 1);
  assert_int_equal (sscanf (child.out, "After iteration %d: add of iteration", &last), 1);
  iterations = last + 1;
  nodes = 5 * iterations + iterations - 1;
  snprintf (want, sizeof want, "held by handle `kept[0]` (%s) retains ",
            line_of ("kept[0] = td_retain (before", site));
  assert_contains (child.out, want);
  snprintf (want, sizeof want, " through %d graph nodes of %d iterations; take the number",
            nodes, iterations);
  assert_contains (child.out, want);
  td_test_child_clear (&child);
}

/* relu's outputs: 8 * 64 floats of each iteration, by the line that made them. */
static void
leaks__by_site_names_the_lines_that_made_the_arrays (void **state)
{
  const char *program = td_test_program ("app/tapedeck"), *tape = record ("losses", "40");
  TdTestChild child = TD_TEST_RUN (program, "leaks", tape, "--by", "site", "--json");
  char site[64];

  assert_child_status (child, 1);
  assert_contains (child.out, line_of ("td_relu (", site));
  assert_true (number_after (child.out, "\"bytes_per_iteration\":") == 4 * 8 * 64);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "leaks", tape, "--by", "colour");
  assert_child_status (child, 2);
  assert_contains (child.err, "--by needs holder or site");
  td_test_child_clear (&child);
}

static void
retained__tells_the_way_from_the_handle_to_the_array (void **state)
{
  const char *program = td_test_program ("app/tapedeck"), *tape = record ("losses", "40");
  TdTestChild child = TD_TEST_RUN (program, "show", tape, "--view", "retained");
  char made[64], held[64], want[300];

  assert_child_status (child, 0);
  snprintf (want, sizeof want, "handle `kept[i]` (%s) → mean (%s)",
            line_of ("kept[i] = td_retain (loss)", held), line_of ("td_mean (", made));
  assert_contains (child.out, want);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "show", tape, "--view", "retained", "--format", "json");
  assert_child_status (child, 0);
  assert_contains (child.out, "\"cut\": false");
  assert_contains (child.out, "\"handle\": \"kept[i]\"");
  td_test_child_clear (&child);
}

/* Bytes of the blocks that the arrays of a row of JSON take: an array is rounded up to 64. */
static double
blocks_of (const char *row)
{
  const char *end = strstr (row, "\"shared\":"); /* of the next one */
  double bytes = 0;

  end = end != NULL ? end : row + strlen (row);
  for (const char *at = strstr (row, "\"sites\": [");
       (at = strstr (at, "\"arrays\":")) != NULL && at < end; at++)
    {
      const double n = number_after (at, "\"arrays\":"), of = number_after (at, "\"bytes\":");

      assert_true (n > 0);
      bytes += n * 64 * (double)(((long)(of / n) + 63) / 64);
    }
  return bytes;
}

/* Run as many iterations as the last look at `way` was after, and let go.  *Returns*: what was
 * retained, as the tape has it, and what was freed. */
static void
predict_and_measure (const char *way, double predicted[2], double freed[2])
{
  const char *program = td_test_program ("app/tapedeck"), *tape = record (way, "40");
  TdTestChild child
      = TD_TEST_RUN (program, "show", tape, "--view", "retained", "--format", "json");
  char iterations[32];
  const char *row;

  assert_child_status (child, 0);
  row = strstr (child.out, "\"handle\": \"kept[");
  assert_non_null (row);
  predicted[0] = blocks_of (row);
  predicted[1] = number_after (row, "\"graph_nodes\":");
  snprintf (iterations, sizeof iterations, "%d",
            (int)number_after (child.out, "\"iteration\":") + 1);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "run", "-f", "--quiet", "-o", td_test_tmp ("measured.tdtape"),
                       model (), way, iterations);
  assert_child_status (child, 0);
  freed[0] = number_after (child.out, "freed ");
  freed[1] = number_after (child.out, " bytes, ");
  td_test_child_clear (&child);
}

static void
retained__is_what_is_freed_when_the_handles_are_given_up (void **state)
{
  static const char *const ways[] = { "total", "losses", "outputs" };

  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    {
      double predicted[2], freed[2];

      predict_and_measure (ways[i], predicted, freed);
      if (predicted[0] != freed[0] || predicted[1] != freed[1])
        fail_msg ("%s: retained %g bytes, %g operations; freed %g, %g", ways[i], predicted[0],
                  predicted[1], freed[0], freed[1]);
    }
}

static void
cat__says_what_is_held (void **state)
{
  const char *program = td_test_program ("app/tapedeck"), *tape = record ("outputs", "40");
  TdTestChild child = TD_TEST_RUN (program, "cat", tape, "--iterations", "9:9");

  assert_child_status (child, 0);
  assert_contains (child.out, "  held 320 bytes in 10 arrays of 10 iterations, activation");
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (leaks__names_the_handle_that_keeps_every_graph),
    td_test (leaks__names_the_handle_that_keeps_every_call_of_a_static_function),
    td_test (leaks__says_what_to_do_about_losses_in_a_list),
    td_test (leaks__counts_outputs_that_have_no_graph),
    td_test (leaks__names_the_link_whose_state_is_never_cut_off),
    td_test (leaks__names_the_line_that_makes_links_again_and_again),
    td_test (leaks__names_the_line_that_makes_optimizers_again_and_again),
    td_test (leaks__finds_nothing_in_programs_that_let_go),
    td_test (leaks__finds_what_has_another_name_in_every_iteration),
    td_test (leaks__says_what_all_places_keep_together),
    td_test (leaks__waits_for_eight_iterations),
    td_test (holders__lists_what_is_there_and_who_keeps_it),
    td_test (leaks__counts_iterations_that_are_far_apart),
    td_test (holders__of_a_range_without_records_name_the_next),
    td_test (growth__has_a_row_for_each_mark_and_a_picture),
    td_test (growth__draws_a_band_and_a_row_for_each_holder_or_site),
    td_test (leaks__says_first_which_handle_retains_how_many_nodes),
    td_test (leaks__by_site_names_the_lines_that_made_the_arrays),
    td_test (retained__tells_the_way_from_the_handle_to_the_array),
    td_test (retained__is_what_is_freed_when_the_handles_are_given_up),
    td_test (cat__says_what_is_held),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
