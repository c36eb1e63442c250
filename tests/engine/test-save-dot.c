/* Graphs as DOT: Chainer's nodes, labels and edges (chainer/computational_graph.py), our order.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "start.h"

#define VARIABLE "shape=\"octagon\",fillcolor=\"#E0E0E0\",style=\"filled\"];"
#define FUNCTION "shape=\"record\",fillcolor=\"#6495ED\",style=\"filled\"];"

static char *
dot_of (TdVar *y, const TdDotOpt *options)
{
  const char *path = td_test_tmp ("graph.dot");
  size_t n;

  assert_int_equal (td_save_dot (y, path, options), TD_OK);
  return td_test_read_file (path, &n);
}

static void
assert_dot (TdVar *y, const TdDotOpt *options, const char *expected)
{
  char *text = dot_of (y, options);

  assert_string_equal (text, expected);
  free (text);
}

/* The first program of the seeds, apply_relu and a positive mean: Chainer draws these five. */
static void
dot__is_chainers_for_the_dynamic_example (void **state)
{
  TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (5)), NULL);

  (void)state;
  assert_dot (td_sum (td_relu (x)), NULL,
              "digraph graphname{rankdir=TB;"
              "0 [label=\"(5), float32\"," VARIABLE "1 [label=\"(5), float32\"," VARIABLE
              "2 [label=\"float32\"," VARIABLE "3 [label=\"ReLU\"," FUNCTION
              "4 [label=\"Sum\"," FUNCTION "0 -> 3;3 -> 1;1 -> 4;4 -> 2;}");
  assert_dot (td_prod (td_sigmoid (x)), NULL,
              "digraph graphname{rankdir=TB;"
              "0 [label=\"(5), float32\"," VARIABLE "1 [label=\"(5), float32\"," VARIABLE
              "2 [label=\"float32\"," VARIABLE "3 [label=\"Sigmoid\"," FUNCTION
              "4 [label=\"Prod\"," FUNCTION "0 -> 3;3 -> 1;1 -> 4;4 -> 2;}");
}

static int
count (const char *text, const char *what)
{
  int n = 0;

  for (const char *at = strstr (text, what); at != NULL; at = strstr (at + 1, what))
    n++;
  return n;
}

/* The second program: 8 variables, 3 functions, 10 edges (EX13). */
static void
dot__is_chainers_for_the_static_example (void **state)
{
  TdLink *m = td_chain_new ("model");
  TdLink *l1 = td_linear_new (m, "l1", TD_INFER, 5), *l2 = td_linear_new (m, "l2", 5, 2);
  TdVar *x = td_variable (td_rand (TD_F32, TD_SHAPE (3, 4)), NULL);
  char *text = dot_of (td_link (l2, td_relu (td_link (l1, x))), NULL);

  (void)state;
  assert_int_equal (count (text, "octagon"), 8);
  assert_int_equal (count (text, "record"), 3);
  assert_int_equal (count (text, " -> "), 10);
  assert_int_equal (count (text, "label=\"LinearFunction\""), 2);
  assert_int_equal (count (text, "label=\"ReLU\""), 1);
  assert_int_equal (count (text, "label=\"W: (5, 4), float32\""), 1);
  assert_int_equal (count (text, "label=\"b: (5), float32\""), 1);
  assert_int_equal (count (text, "label=\"W: (2, 5), float32\""), 1);
  assert_int_equal (count (text, "label=\"b: (2), float32\""), 1);
  assert_int_equal (count (text, "label=\"(3, 4), float32\""), 1);
  assert_int_equal (count (text, "label=\"(3, 5), float32\""), 2);
  assert_int_equal (count (text, "label=\"(3, 2), float32\""), 1);
  free (text);
}

static void
dot__draws_an_argument_used_twice_once (void **state)
{
  TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (2)), "x");

  (void)state;
  assert_dot (td_mul (x, x), NULL,
              "digraph graphname{rankdir=TB;"
              "0 [label=\"x: (2), float32\"," VARIABLE "1 [label=\"(2), float32\"," VARIABLE
              "2 [label=\"_ * _\"," FUNCTION "0 -> 2;2 -> 1;}");
}

static void
dot__obeys_its_options (void **state)
{
  TdVar *x = td_variable (td_ones (TD_F32, TD_SCALAR), "x");
  TdDotOpt o = td_dot_options ();

  (void)state;
  o.rankdir = "LR";
  o.show_name = false;
  o.variable_style = "shape=\"oval\"";
  o.function_style = "shape=\"box\"";
  assert_dot (td_exp (x), &o,
              "digraph graphname{rankdir=LR;0 [label=\"float32\",shape=\"oval\"];"
              "1 [label=\"float32\",shape=\"oval\"];2 [label=\"Exp\",shape=\"box\"];"
              "0 -> 2;2 -> 1;}");
  o.remove_variable = true;
  assert_dot (td_exp (td_exp (x)), &o,
              "digraph graphname{rankdir=LR;3 [label=\"Exp\",shape=\"box\"];"
              "4 [label=\"Exp\",shape=\"box\"];3 -> 4;}");
  o.rankdir = "UP";
  assert_int_equal (td_save_dot (x, td_test_tmp ("x.dot"), &o), TD_ERR_ARG);
  assert_contains (td_error ()->message, "UP");
  td_error_clear ();
  assert_int_equal (td_save_dot (x, td_test_tmp ("no/x.dot"), NULL), TD_ERR_IO);
  td_error_clear ();
  assert_int_equal (td_save_dot (x, td_test_tmp ("x.txt"), NULL), TD_ERR_ARG);
  assert_contains (td_error ()->message, "ends in .dot, .png, .svg or .pdf expected");
  assert_int_not_equal (access (td_test_tmp ("x.txt"), F_OK), 0);
  td_error_clear ();
}

static void
dot__has_what_several_roots_share_once (void **state)
{
  TdVar *x = td_variable (td_ones (TD_F32, TD_SCALAR), "x"), *h = td_exp (x);
  TdVar *roots[] = { td_sin (h), td_cos (h), h };
  const char *path = td_test_tmp ("roots.dot");
  char *text;
  size_t n;

  (void)state;
  assert_int_equal (td_save_dot_all (roots, 3, path, NULL), TD_OK);
  text = td_test_read_file (path, &n);
  assert_string_equal (text, "digraph graphname{rankdir=TB;0 [label=\"x: float32\"," VARIABLE
                             "1 [label=\"float32\"," VARIABLE "2 [label=\"float32\"," VARIABLE
                             "3 [label=\"float32\"," VARIABLE "4 [label=\"Exp\"," FUNCTION
                             "5 [label=\"Sin\"," FUNCTION "6 [label=\"Cos\"," FUNCTION
                             "0 -> 4;4 -> 1;1 -> 5;5 -> 2;1 -> 6;6 -> 3;}");
  free (text);
  assert_int_equal (td_save_dot_all (roots, 0, path, NULL), TD_ERR_ARG);
  td_error_clear ();
}

static void
dot__escapes_a_hostile_name (void **state)
{
  static char name[10001];
  TdVar *x;
  char *text;

  (void)state;
  memset (name, 'a', sizeof name - 1);
  memcpy (name, "\"];\\\n<b>", 8);
  x = td_variable (td_ones (TD_F32, TD_SCALAR), name);
  text = dot_of (x, NULL);
  assert_contains (text, "0 [label=\"\\\"];\\\\\\n<b>aaa");
  assert_int_equal (count (text, "\n"), 0);
  assert_true (strlen (text) > 10000);
  free (text);
}

static void
dot__names_arguments_and_links_in_rich_form (void **state)
{
  TdLink *l = td_linear_new (td_chain_new ("m"), "l1", 2, 3);
  TdDotOpt o = td_dot_options ();
  char *text;

  (void)state;
  o.rich = true;
  text = dot_of (td_link (l, td_rand (TD_F32, TD_SHAPE (4, 2))), &o);
  assert_contains (text, "label=\"m/l1\"");
  assert_contains (text, "[headlabel=\"W\"]");
  assert_contains (text, "24 bytes");
  free (text);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (dot__is_chainers_for_the_dynamic_example),
    engine_test (dot__is_chainers_for_the_static_example),
    engine_test (dot__draws_an_argument_used_twice_once),
    engine_test (dot__obeys_its_options),
    engine_test (dot__has_what_several_roots_share_once),
    engine_test (dot__escapes_a_hostile_name),
    engine_test (dot__names_arguments_and_links_in_rich_form),
  };

  return cmocka_run_group_tests_name ("save-dot", tests, NULL, NULL);
}
