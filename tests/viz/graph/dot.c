/* DOT of the recorded graph: Chainer's nodes, labels and edges; hostile labels; Graphviz reads
 * it. SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "td-synthetic.h"

#include <stdlib.h>
#include <string.h>

#include "graph/td-graph.h"

static guint
count (const char *text, const char *what)
{
  guint n = 0;

  for (; (text = strstr (text, what)); text++)
    n++;
  return n;
}

static void
dot__is_chainers_graph_of_a_linear_and_relu (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  guint x = td_synthetic_input (s, "", TD_SHAPE (5, 3));
  guint W = td_synthetic_parameter (s, "net/l/W", TD_SHAPE (4, 3));
  guint b = td_synthetic_parameter (s, "net/l/b", TD_SHAPE (4));
  guint h = TD_OP (s, "linear", 1, TD_SHAPE (5, 4), x, W, b);

  h = TD_OP (s, "relu", 2, TD_SHAPE (5, 4), h);
  TD_OP (s, "mul", 3, TD_SHAPE (5, 4), h, h);
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);
    char *dot = td_viz_graph_to_dot (td_iteration_get_graph (it));

    /* the format of CHAINER.md 3.15, numbers for ids; an argument used twice is one edge */
    assert_string_equal (
        dot,
        "digraph graphname{rankdir=TB;"
        "0 [label=\"(5, 3), "
        "float32\",shape=\"octagon\",fillcolor=\"#E0E0E0\",style=\"filled\"];"
        "1 [label=\"W: (4, 3), "
        "float32\",shape=\"octagon\",fillcolor=\"#E0E0E0\",style=\"filled\"];"
        "2 [label=\"b: (4), "
        "float32\",shape=\"octagon\",fillcolor=\"#E0E0E0\",style=\"filled\"];"
        "3 [label=\"LinearFunction\",shape=\"record\",fillcolor=\"#6495ED\",style=\"filled\"];"
        "4 [label=\"(5, 4), "
        "float32\",shape=\"octagon\",fillcolor=\"#E0E0E0\",style=\"filled\"];"
        "5 [label=\"ReLU\",shape=\"record\",fillcolor=\"#6495ED\",style=\"filled\"];"
        "6 [label=\"(5, 4), "
        "float32\",shape=\"octagon\",fillcolor=\"#E0E0E0\",style=\"filled\"];"
        "7 [label=\"_ * _\",shape=\"record\",fillcolor=\"#6495ED\",style=\"filled\"];"
        "8 [label=\"(5, 4), "
        "float32\",shape=\"octagon\",fillcolor=\"#E0E0E0\",style=\"filled\"];"
        "0 -> 3;1 -> 3;2 -> 3;3 -> 4;4 -> 5;5 -> 6;6 -> 7;7 -> 8;}");
    g_free (dot);
  }
  (void)state;
}

static void
dot__has_what_the_loss_depends_on (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  guint x = td_synthetic_input (s, "x", TD_SHAPE (2));
  guint y = TD_OP (s, "exp", 1, TD_SHAPE (2), x);
  guint loss = TD_OP (s, "sum", 2, TD_SHAPE (1), y);

  TD_OP (s, "argmax", 3, TD_SHAPE (1), y); /* reported, not trained */
  td_synthetic_backward (s, loss);
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);
    char *dot = td_viz_graph_to_dot (td_iteration_get_graph (it));

    assert_contains (dot, "\"Sum\"");
    assert_not_contains (dot, "ArgMax");
    assert_not_contains (dot, "Grad"); /* the backward pass is no part of it */
    g_free (dot);
  }
  (void)state;
}

static void
dot__escapes_hostile_labels (void **state)
{
  char *hostile = g_strnfill (10000, 'x');
  TdSynthetic *s = td_synthetic_new (0);
  guint x;

  memcpy (hostile, "a\"b\\c\nd<e>{f|g}&amp;\xff\x01", 22);
  td_synthetic_enter_link (s, hostile, 1);
  x = td_synthetic_input (s, hostile, TD_SHAPE (2));
  x = TD_OP (s, hostile, 1, TD_SHAPE (2), x);
  x = TD_OP (s, hostile, 2, TD_SHAPE (2), x);
  td_synthetic_leave (s);
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);
    TdVizGraph *graph = td_iteration_get_graph (it);
    TdFold *fold = td_fold_new_depth (graph, -1);
    TdVizView *view = td_viz_view_new (graph, fold, TD_VIEW_ALL);
    char *texts[] = { td_viz_graph_to_dot (graph), td_viz_view_to_dot (view) };

    for (guint i = 0; i < 2; i++)
      {
        const char *path = td_test_tmp ("hostile.dot");
        TdTestChild child;

        assert_true (g_utf8_validate (texts[i], -1, NULL));
        assert_true (strlen (texts[i]) < 8000);
        td_test_write_file (path, texts[i], strlen (texts[i]));
        child = TD_TEST_RUN ("dot", "-Tplain", path);
        assert_child_status (child, 0);
        assert_int_equal (count (child.out, "\nnode "), i == 0 ? 5 : 3);
        td_test_child_clear (&child);
        g_free (texts[i]);
      }
    td_viz_view_unref (view);
    td_fold_free (fold);
  }
  g_free (hostile);
  (void)state;
}

static void
dot__of_the_view_mirrors_backward (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  TdVizGraph *graph = td_iteration_get_graph (it);
  TdFold *fold = td_fold_new_depth (graph, 0);
  TdVizView *view = td_viz_view_new (graph, fold, TD_VIEW_ALL);
  char *dot = td_viz_view_to_dot (view);

  /* loss' -> head' -> block2' -> block1' */
  assert_int_equal (count (dot, "dir=back"), 3);
  assert_int_equal (count (dot, "style=dotted,constraint=false"), 4);
  assert_contains (dot, "block1′");
  g_free (dot);
  td_viz_view_unref (view);
  td_fold_free (fold);
  (void)state;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (dot__is_chainers_graph_of_a_linear_and_relu),
    td_test (dot__has_what_the_loss_depends_on),
    td_test (dot__escapes_hostile_labels),
    td_test (dot__of_the_view_mirrors_backward),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
