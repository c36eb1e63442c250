/* The examples as programs: what they print, the files they leave, how well they learn.
 *
 * With the argument "slow": the two of them that are held to figures on real MNIST.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "td-test.h"

/* Run an example in a folder of the test's; it must succeed. */
static TdTestChild
run_example_in (const char *inside, const char *name, const char *arguments, const char *data)
{
  char program[200], command[9000], variable[4200];
  const char *const env[] = { variable, NULL };
  const char *folder = td_test_tmp (inside);
  TdTestChild child;

  snprintf (program, sizeof program, "tests/engine/example-%s", name);
  snprintf (command, sizeof command, "cd '%s' && exec '%s' %s", folder, td_test_build (program),
            arguments);
  snprintf (variable, sizeof variable, "TAPEDECK_DATA=%s", data);
  child = td_test_run ((const char *const[]){ "sh", "-c", command, NULL }, NULL, env);
  assert_child_status (child, 0);
  return child;
}

static TdTestChild
run_example (const char *name, const char *arguments, const char *data)
{
  return run_example_in (".", name, arguments, data);
}

static double
last_accuracy (const TdTestChild *child)
{
  const char *at = strstr (child->out, "test accuracy 0.");
  double accuracy = 0;
  int used = 0;

  assert_non_null (at);
  assert_int_equal (sscanf (at, "test accuracy %lf%n", &accuracy, &used), 1);
  assert_int_equal (used, 20);           /* 0.NNNN */
  assert_string_equal (at + used, "\n"); /* the last line */
  return accuracy;
}

static int
count (const char *text, const char *what)
{
  int n = 0;

  for (const char *at = strstr (text, what); at != NULL; at = strstr (at + 1, what))
    n++;
  return n;
}

static void
assert_graph (const char *name, int n_nodes, int n_edges)
{
  size_t n;
  char *text = td_test_read_file (td_test_tmp (name), &n);

  assert_int_equal (count (text, "[label="), n_nodes);
  assert_int_equal (count (text, " -> "), n_edges);
  free (text);
}

/* A picture has been drawn with the graph's labels, where tapedeck-viz was built. */
static void
assert_pictures (const char *png, const char *svg, const char *label)
{
  char *text;
  size_t n;

  if (access (td_test_build ("app/tapedeck-viz"), X_OK) != 0)
    return;
  text = td_test_read_file (td_test_tmp (png), &n);
  assert_true (n > 1000 && memcmp (text, "\x89PNG\r\n\x1a\n", 8) == 0);
  free (text);
  text = td_test_read_file (td_test_tmp (svg), &n);
  assert_contains (text, "<svg");
  assert_contains (text, label);
  free (text);
}

static void
dynamic_graph__draws_both_branches (void **state)
{
  TdTestChild child = run_example ("dynamic_graph", "", "");

  (void)state;
  assert_string_equal (child.out,
                       "Graph with ReLU has been saved as dynamic_graph_relu.dot\n"
                       "Graph with Sigmoid has been saved as dynamic_graph_sigmoid.dot\n");
  assert_graph ("dynamic_graph_relu.dot", 5, 4);
  assert_graph ("dynamic_graph_sigmoid.dot", 5, 4);
  assert_pictures ("dynamic_graph_relu.png", "dynamic_graph_relu.svg", "ReLU");
  assert_pictures ("dynamic_graph_sigmoid.png", "dynamic_graph_sigmoid.svg", "Sigmoid");
  td_test_child_clear (&child);
}

/* The data decides as well: one seed's numbers have a positive mean, another's a negative one.
 */
static void
dynamic_graph__takes_the_branch_that_its_data_say (void **state)
{
  int n_sum = 0, n_prod = 0;

  (void)state;
  for (int seed = 1; seed <= 8; seed++)
    {
      char arguments[40];
      TdTestChild child;
      size_t n;
      char *text;

      snprintf (arguments, sizeof arguments, "--td-seed=%d", seed);
      child = run_example ("dynamic_graph", arguments, "");
      td_test_child_clear (&child);
      text = td_test_read_file (td_test_tmp ("dynamic_graph_relu.dot"), &n);
      n_sum += count (text, "\"Sum\"");
      n_prod += count (text, "\"Prod\"");
      free (text);
    }
  assert_int_equal (n_sum + n_prod, 8);
  assert_true (n_sum > 0 && n_prod > 0);
}

static void
static_graph__draws_eleven_nodes_and_ten_edges (void **state)
{
  TdTestChild child = run_example ("static_graph", "", "");

  (void)state;
  assert_string_equal (child.out, "Static graph has been saved as static_graph.dot\n");
  assert_graph ("static_graph.dot", 11, 10);
  assert_pictures ("static_graph.png", "static_graph.svg", "LinearFunction");
  td_test_child_clear (&child);
}

static void
mlp__learns_the_built_in_digits (void **state)
{
  TdTestChild child = run_example ("mlp", "", "");

  (void)state;
  assert_true (last_accuracy (&child) > 0.97);
  td_test_child_clear (&child);
}

/* The last line's accuracy of so many epochs in a folder; weights gets the file of them. */
static double
train_epochs (const char *folder, const char *epochs, char **weights, size_t *n)
{
  char arguments[40], name[100];
  TdTestChild child;
  double accuracy;

  mkdir (td_test_tmp (folder), 0777);
  snprintf (arguments, sizeof arguments, "%s --td-seed=3", epochs);
  snprintf (name, sizeof name, "%s/mnist_trainer.npz", folder);
  child = run_example_in (folder, "mnist_trainer", arguments, "");
  assert_contains (child.out, "epoch       loss        validation/loss");
  assert_contains (child.err, "     total [####");
  accuracy = last_accuracy (&child);
  td_test_child_clear (&child);
  *weights = td_test_read_file (td_test_tmp (name), n);
  return accuracy;
}

/* A process that goes on from another's snapshot ends with the same weights, bit for bit. */
static void
mnist_trainer__learns_and_resumes_in_another_process (void **state)
{
  char *whole, *part, *resumed, *text;
  size_t n_whole, n_part, n_resumed, n;
  double accuracy = train_epochs ("whole", "2", &whole, &n_whole);

  (void)state;
  assert_true (accuracy > 0.95);
  train_epochs ("parts", "1", &part, &n_part);
  assert_true (train_epochs ("parts", "2", &resumed, &n_resumed) == accuracy);
  assert_int_equal (n_resumed, n_whole);
  assert_memory_equal (resumed, whole, n_whole);
  assert_true (n_part != n_whole || memcmp (part, whole, n_whole) != 0);
  free (whole);
  free (part);
  free (resumed);
  text = td_test_read_file (td_test_tmp ("parts/result/log"), &n);
  assert_int_equal (count (text, "\"elapsed_time\""), 2);
  free (text);
  text = td_test_read_file (td_test_tmp ("parts/result/loss.svg"), &n);
  assert_int_equal (count (text, "<circle"), 4);
  free (text);
  text = td_test_read_file (td_test_tmp ("whole/result/cg.dot"), &n);
  assert_contains (text, "SoftmaxCrossEntropy");
  free (text);
}

/* The trainer's iterations are the recording's, and so are the reports of its extensions. */
static void
mnist_trainer__records_its_iterations_and_reports (void **state)
{
  const char *tapedeck = td_test_program ("app/tapedeck");
  char tape[4200], command[9000];
  TdTestChild child;

  (void)state;
  snprintf (tape, sizeof tape, "%s", td_test_tmp ("run.tdtape"));
  snprintf (command, sizeof command,
            "cd '%s' && TAPEDECK_DATA= '%s' run --quiet -o '%s' '%s' 1", td_test_tmp ("."),
            tapedeck, tape, td_test_build ("tests/engine/example-mnist_trainer"));
  child = TD_TEST_RUN ("sh", "-c", command);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck, "info", "--json", tape);
  assert_child_status (child, 0);
  assert_contains (child.out, "\"iterations\":100");
  assert_contains (child.out, "\"validation/loss\":[[99,0.");
  assert_contains (child.out, "\"progress\":[[99,1]]");
  assert_contains (child.out, "\"loss\":[[0,2.");
  td_test_child_clear (&child);
}

static void
char_lstm__learns_a_text_that_it_is_given (void **state)
{
  static char text[26 * 120];
  TdTestChild child;

  (void)state;
  for (size_t i = 0; i < sizeof text; i++)
    text[i] = (char)('a' + i % 26);
  td_test_write_file (td_test_tmp ("alphabet"), text, sizeof text);
  child = run_example ("char_lstm", "alphabet 120", "");
  assert_contains (child.out, "iteration 100  loss 0.0");
  assert_true (last_accuracy (&child) > 0.85);
  td_test_child_clear (&child);
}

/* The loss of iteration `i` (counted from 1), as it was printed. */
static double
loss_at (const TdTestChild *child, int i)
{
  char head[40];
  const char *at;

  snprintf (head, sizeof head, "iteration %d  loss ", i);
  at = strstr (child->out, head);
  assert_non_null (at);
  return atof (at + strlen (head));
}

static void
seq2seq__learns_to_write_strings_backward (void **state)
{
  TdTestChild child = run_example ("seq2seq", "300", "");

  (void)state;
  assert_true (loss_at (&child, 300) < 0.25 * loss_at (&child, 1));
  assert_true (last_accuracy (&child) > 0.8);
  td_test_child_clear (&child);
}

/* Guessing is right for less than half of the phrases. */
static void
recursive__learns_the_mood_of_trees_of_every_shape (void **state)
{
  TdTestChild child = run_example ("recursive", "", "");

  (void)state;
  assert_true (loss_at (&child, 400) < 0.25 * loss_at (&child, 1));
  assert_true (last_accuracy (&child) > 0.8);
  td_test_child_clear (&child);
}

static void
transformer__learns_a_text (void **state)
{
  TdTestChild child = run_example ("transformer", "", "");

  (void)state;
  assert_true (loss_at (&child, 100) < 0.5 * loss_at (&child, 1));
  assert_true (loss_at (&child, 200) < 0.2 * loss_at (&child, 1));
  assert_true (last_accuracy (&child) > 0.2); /* of 37 characters */
  td_test_child_clear (&child);
}

static void
vae__learns_to_paint_digits (void **state)
{
  TdTestChild child = run_example ("vae", "200", "");
  const char *at;

  (void)state;
  assert_true (loss_at (&child, 100) < 0.5 * loss_at (&child, 1));
  assert_true (loss_at (&child, 200) < loss_at (&child, 100));
  at = strstr (child.out, "test loss ");
  assert_non_null (at);
  assert_true (atof (at + strlen ("test loss ")) < 0.5 * loss_at (&child, 1));
  td_test_child_clear (&child);
}

/* The critic learns first; what the painter learns shows in the mean of its pictures. */
static void
gan__learns_on_both_sides (void **state)
{
  TdTestChild child = run_example ("gan", "100", "");
  double before, after;

  (void)state;
  assert_true (loss_at (&child, 50) < 0.5 * loss_at (&child, 1));
  before = atof (strstr (child.out, "distance ") + strlen ("distance "));
  after = atof (strstr (strstr (child.out, "iteration 100 "), "distance ")
                + strlen ("distance "));
  assert_true (after < 0.5 * before);
  td_test_child_clear (&child);
}

static void
example__says_what_is_wrong_with_its_data (void **state)
{
  char command[9000];
  TdTestChild child;

  (void)state;
  snprintf (command, sizeof command, "TAPEDECK_DATA=/nowhere/at/all exec '%s'",
            td_test_build ("tests/engine/example-mlp"));
  child = TD_TEST_RUN ("sh", "-c", command);
  assert_child_status (child, 1);
  assert_contains (child.err, "/nowhere/at/all: has no train-images-idx3-ubyte");
  assert_contains (child.err, "mlp.c:");
  assert_int_equal (count (child.err, "\n"), 1);
  assert_string_equal (child.out, "");
  td_test_child_clear (&child);
}

/* --- slow: real MNIST --- */

static double
accuracy_on_mnist (const char *name)
{
  char folder[4096];
  TdTestChild child;
  double accuracy;

  snprintf (folder, sizeof folder, "%s",
            td_test_shared ("data/mnist/train-images-idx3-ubyte.gz"));
  *strrchr (folder, '/') = '\0';
  child = run_example (name, "", folder);
  accuracy = last_accuracy (&child);
  print_message ("%s: %.4f\n", name, accuracy);
  td_test_child_clear (&child);
  return accuracy;
}

static void
mlp__reaches_97_percent_on_mnist_in_3_epochs (void **state)
{
  (void)state;
  assert_true (accuracy_on_mnist ("mlp") >= 0.97);
}

static void
lenet__reaches_98_5_percent_on_mnist_in_2_epochs (void **state)
{
  (void)state;
  assert_true (accuracy_on_mnist ("lenet") >= 0.985);
}

/* Programs of their own, so that none runs over a minute under the sanitizers. */
int
main (int argc, char **argv)
{
  const struct CMUnitTest graphs[] = {
    td_test (dynamic_graph__draws_both_branches),
    td_test (dynamic_graph__takes_the_branch_that_its_data_say),
    td_test (static_graph__draws_eleven_nodes_and_ten_edges),
    td_test (example__says_what_is_wrong_with_its_data),
  };
  const struct CMUnitTest digits[] = {
    td_test (mlp__learns_the_built_in_digits),
    td_test (mnist_trainer__learns_and_resumes_in_another_process),
    td_test (mnist_trainer__records_its_iterations_and_reports),
    td_test (vae__learns_to_paint_digits),
  };
  const struct CMUnitTest gan[] = { td_test (gan__learns_on_both_sides) };
  const struct CMUnitTest sequences[] = {
    td_test (char_lstm__learns_a_text_that_it_is_given),
    td_test (seq2seq__learns_to_write_strings_backward),
    td_test (recursive__learns_the_mood_of_trees_of_every_shape),
    td_test (transformer__learns_a_text),
  };
  const struct CMUnitTest mnist[] = {
    td_test (mlp__reaches_97_percent_on_mnist_in_3_epochs),
    td_test (lenet__reaches_98_5_percent_on_mnist_in_2_epochs),
  };
  const char *group = argc > 1 ? argv[1] : "graphs";

  if (strcmp (group, "digits") == 0)
    return cmocka_run_group_tests_name ("examples-digits", digits, NULL, NULL);
  if (strcmp (group, "gan") == 0)
    return cmocka_run_group_tests_name ("examples-gan", gan, NULL, NULL);
  if (strcmp (group, "sequences") == 0)
    return cmocka_run_group_tests_name ("examples-sequences", sequences, NULL, NULL);
  if (strcmp (group, "mnist") == 0)
    return cmocka_run_group_tests_name ("examples-mnist", mnist, NULL, NULL);
  return cmocka_run_group_tests_name ("examples-graphs", graphs, NULL, NULL);
}
