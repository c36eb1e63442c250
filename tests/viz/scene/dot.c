/*
 * DOT files as pictures: what is read, how it is laid out, what garbage does.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <string.h>

#include "scene/td-dot.h"
#include "td-test.h"

static const char chainer[] = "digraph graphname{rankdir=TB;0 [label=\"x: (5), "
                              "float32\",shape=\"octagon\",style=\"filled\"];"
                              "1 [label=\"ReLU\",shape=\"record\",style=\"filled\"];2 "
                              "[label=\"\\\"y\\\" \\{1\\|2\\}\\nline\",shape=\"octagon\"];"
                              "0 -> 1;1 -> 2;subgraph cluster_0{label=\"mlp\";1;}}";

static void
dot__reads_what_chainer_writes (void **state)
{
  GError *error = NULL;
  g_autoptr (TdDotGraph) g = td_dot_parse (chainer, strlen (chainer), &error);

  assert_non_null (g);
  assert_int_equal (g->nodes->len, 3);
  assert_int_equal (g->edges->len, 2);
  assert_string_equal (g->rankdir, "TB");
  assert_string_equal (g_array_index (g->nodes, TdDotNode, 2).label, "\"y\" {1|2}\nline");
  assert_true (g_array_index (g->nodes, TdDotNode, 0).octagon);
  assert_false (g_array_index (g->nodes, TdDotNode, 1).octagon);
  assert_int_equal (g_array_index (g->edges, TdDotEdge, 1).from, 1);
  assert_int_equal (g_array_index (g->edges, TdDotEdge, 1).to, 2);
}

/* Position of the box of node `i` along the direction of the ranks. */
static double
rank_of (const TdScene *scene, guint i, gboolean sideways)
{
  TdSceneRect box;

  assert_true (td_scene_find_key (scene, i + 1, &box));
  return sideways ? box.x : box.y;
}

static void
dot__edges_go_the_way_that_rankdir_says (void **state)
{
  static const char *const directions[] = { "TB", "BT", "LR", "RL" };

  for (int i = 0; i < 4; i++)
    {
      g_autofree char *text
          = g_strdup_printf ("digraph g{rankdir=%s; a->b->c; a->c}", directions[i]);
      g_autoptr (TdDotGraph) g = td_dot_parse (text, strlen (text), NULL);
      g_autoptr (TdScene) scene = td_dot_scene (g);
      double a = rank_of (scene, 0, i >= 2), b = rank_of (scene, 1, i >= 2),
             c = rank_of (scene, 2, i >= 2);

      if (i % 2)
        assert_true (a > b && b > c);
      else
        assert_true (a < b && b < c);
    }
}

static void
dot__nodes_of_a_rank_do_not_overlap (void **state)
{
  GString *text = g_string_new ("digraph g{");
  GRand *rand = g_rand_new_with_seed (5);

  for (int i = 1; i < 120; i++)
    g_string_append_printf (text, "n%d -> n%d; n%d [label=\"%.*s\"];",
                            g_rand_int_range (rand, MAX (0, i - 9), i), i, i, i % 30,
                            "abcdefghijklmnopqrstuvwxyzabcd");
  g_string_append (text, "n119 -> n3; n7 -> n7}"); /* a cycle and a loop */
  g_autoptr (TdDotGraph) g = td_dot_parse (text->str, text->len, NULL);
  g_autoptr (TdScene) scene = td_dot_scene (g);
  for (guint i = 0; i < g->nodes->len; i++)
    for (guint k = 0; k < i; k++)
      {
        TdSceneRect a, b;

        assert_true (td_scene_find_key (scene, i + 1, &a)
                     && td_scene_find_key (scene, k + 1, &b));
        assert_false (a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height
                      && b.y < a.y + a.height);
        assert_true (a.x >= 0 && a.y >= 0 && a.x + a.width <= td_scene_width (scene)
                     && a.y + a.height <= td_scene_height (scene));
      }
  g_string_free (text, TRUE);
  g_rand_free (rand);
}

static void
dot__refuses_garbage_with_the_line (void **state)
{
  const char *bad[] = { "",
                        "x",
                        "digraph",
                        "digraph {",
                        "digraph g{a ->",
                        "digraph g{a -> ;}",
                        "digraph g{\n\na [label=\"",
                        "digraph g{a [label=]}",
                        "digraph g{a [=]}",
                        "digraph g{@}",
                        "digraph g{subgraph x y}" };
  g_autofree char *deep = g_strnfill (100000, '{');
  g_autofree char *deeper = g_strconcat ("digraph ", deep, NULL);

  for (gsize i = 0; i <= G_N_ELEMENTS (bad); i++)
    {
      const char *text = i < G_N_ELEMENTS (bad) ? bad[i] : deeper;
      g_autoptr (GError) error = NULL;

      assert_null (td_dot_parse (text, strlen (text), &error));
      assert_true (g_str_has_prefix (error->message, "line "));
      assert_null (strchr (error->message, '\n'));
    }
  g_autoptr (GError) error = NULL;
  assert_null (td_dot_parse (bad[6], strlen (bad[6]), &error));
  assert_contains (error->message, "line 3");
  /* every prefix of a good file, and every byte changed: an answer, not a crash */
  for (gsize n = 0; n < sizeof chainer - 1; n++)
    {
      g_autofree char *copy = g_strdup (chainer);

      td_dot_free (td_dot_parse (chainer, n, NULL));
      copy[n] ^= 0x15;
      g_autoptr (TdDotGraph) g = td_dot_parse (copy, sizeof chainer - 1, NULL);
      if (g)
        td_scene_unref (td_dot_scene (g));
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (dot__reads_what_chainer_writes),
    td_test (dot__edges_go_the_way_that_rankdir_says),
    td_test (dot__nodes_of_a_rank_do_not_overlap),
    td_test (dot__refuses_garbage_with_the_line),
  };

  return cmocka_run_group_tests_name ("dot", tests, NULL, NULL);
}
