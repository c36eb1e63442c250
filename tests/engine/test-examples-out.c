/* The graphs of an example's first iterations go out as ONNX and compute the same elsewhere,
 * and here again.
 *
 *     test-examples-out NAME [draws | kept | replayed]
 *
 * With "draws" the model draws numbers itself, so that only its shapes are held against ours.
 * The others say why the second graph cannot go out.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "td-test.h"

static const char *name;
static const char *special = ""; /* the second argument */
static char *printed;

static const char *const refusals[][2] = {
  { "kept", "is the result of an operation that kept no graph" },
  { "replayed", "ONNX does not have the one operation that a replayed static function is" },
};

static bool
draws (void)
{
  return strcmp (special, "draws") == 0;
}

/* Its first graphs, in the test's folder. */
static int
run_example (void **state)
{
  char program[200], folder[4200], command[4600];
  const char *const env[] = { folder, "TAPEDECK_DATA=", NULL };
  TdTestChild child;

  if (td_test_setup (state) != 0)
    return -1;
  snprintf (program, sizeof program, "tests/engine/example-out-%s", name);
  snprintf (folder, sizeof folder, "EXPORT=%s", td_test_tmp ("."));
  snprintf (command, sizeof command, "cd '%s' && exec '%s'", td_test_tmp ("."),
            td_test_build (program));
  child = td_test_run ((const char *const[]){ "sh", "-c", command, NULL }, NULL, env);
  assert_child_status (child, 0);
  printed = strdup (child.out);
  td_test_child_clear (&child);
  return printed != NULL ? 0 : -1;
}

static int
forget (void **state)
{
  free (printed);
  return td_test_teardown (state);
}

/* Why the second graph cannot go out; NULL: it can. */
static const char *
refusal (void)
{
  for (size_t k = 0; k < sizeof refusals / sizeof *refusals; k++)
    if (strcmp (special, refusals[k][0]) == 0)
      return refusals[k][1];
  return NULL;
}

static void
example__goes_out_or_says_why_not (void **state)
{
  (void)state;
  assert_contains (printed, "graph0 OK\n");
  if (refusal () == NULL)
    assert_contains (printed, "graph1 OK\n");
  else
    {
      assert_contains (printed, refusal ());
      assert_contains (printed, ".c:"); /* with its line */
    }
}

/* How many graphs went out. */
static int
n_graphs (void)
{
  return refusal () == NULL ? 2 : 1;
}

static void
example__computes_the_same_in_onnxruntime_and_the_reference (void **state)
{
  const char *python = td_test_python ("onnxruntime");

  (void)state;
  for (int k = 0; k < n_graphs (); k++)
    {
      char graph[40];
      TdTestChild child;

      snprintf (graph, sizeof graph, "graph%d", k);
      child = TD_TEST_RUN (python, td_test_source ("tests/support/onnx-same.py"),
                           td_test_tmp (graph), draws () ? "draws" : NULL);
      assert_child_status (child, 0);
      assert_contains (child.out, "reference ");
      td_test_child_clear (&child);
    }
}

/* The one number or row that both wrote, within 1e-5. */
static void
assert_same_file (const char *a, const char *b)
{
  size_t n_a, n_b;
  char *x = td_test_read_file (a, &n_a), *y = td_test_read_file (b, &n_b);
  const size_t head = 10 + (size_t)(unsigned char)x[8] + 256 * (size_t)(unsigned char)x[9];

  assert_true (n_a > head);
  assert_int_equal (n_a, n_b);
  assert_memory_equal (x, y, head); /* shape and type */
  for (size_t at = head; at < n_a; at += sizeof (float))
    {
      float want, got;

      memcpy (&want, x + at, sizeof want);
      memcpy (&got, y + at, sizeof got);
      if (!(got - want <= 1e-5F * (1 + (want < 0 ? -want : want))
            && want - got <= 1e-5F * (1 + (want < 0 ? -want : want))))
        fail_msg ("%s: %g, expected %g", b, (double)got, (double)want);
    }
  free (x), free (y);
}

static void
example__computes_the_same_when_it_comes_in_again (void **state)
{
  const char *tapedeck = td_test_program ("app/tapedeck");

  (void)state;
  for (int k = 0; k < n_graphs () && !draws (); k++)
    {
      char want[4300], got[4300];
      TdTestChild child = td_test_shell (
          "cd '%s' && i=0; set --; while [ -f graph%d.in$i.npy ]; do "
          "set -- \"$@\" --in graph%d.in$i.npy; i=$((i + 1)); done; "
          "'%s' eval graph%d.onnx \"$@\" -o back%d && mv back%d/out*.npy back%d/y.npy",
          td_test_tmp ("."), k, k, tapedeck, k, k, k, k);

      assert_child_status (child, 0);
      td_test_child_clear (&child);
      snprintf (want, sizeof want, "%s/graph%d.out0.npy", td_test_tmp ("."), k);
      snprintf (got, sizeof got, "%s/back%d/y.npy", td_test_tmp ("."), k);
      assert_same_file (want, got);
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (example__goes_out_or_says_why_not),
    cmocka_unit_test (example__computes_the_same_in_onnxruntime_and_the_reference),
    cmocka_unit_test (example__computes_the_same_when_it_comes_in_again),
  };

  if (argc < 2)
    {
      fprintf (stderr, "usage: test-examples-out NAME [draws | kept | replayed]\n");
      return 2;
    }
  name = argv[1];
  if (argc > 2)
    special = argv[2];
  return cmocka_run_group_tests_name (name, tests, run_example, forget);
}
