/* Reading sources for branches and loops: what it finds, and that nothing makes it stumble.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>
#include <time.h>

#include "diff/td-flow.h"
#include "td-test.h"

static const TdFlowNode *
node (const TdFlow *f, guint i)
{
  assert_true (i < f->nodes->len);
  return &g_array_index (f->nodes, TdFlowNode, i);
}

static char *
part_text (const TdFlow *f, const char *text, guint n, guint k)
{
  assert_true (k < node (f, n)->n_parts);
  return td__flow_dup_text (
      text, g_array_index (f->parts, TdFlowRange, node (f, n)->first_part + k), 1000);
}

static void
assert_part (const TdFlow *f, const char *text, guint n, guint k, const char *wanted)
{
  g_autofree char *got = part_text (f, text, n, k);

  assert_string_equal (got, wanted);
}

static void
flow__finds_parts_of_branches (void **state)
{
  static const char text[]
      = "int g (void);\n"
        "/* if (no) this (); */\n"
        "#define IF(x) if (x) \\\n  no ()\n"
        "int f (int x)\n"
        "{\n"
        "  const char *s = \"if (no) '{' {\";\n"
        "  if (x > ')') // } else\n"
        "    a ();\n"
        "  else if (y) { b (); }\n"
        "  c = x == 1 ? d (x, 2) : e ? h : i;\n"
        "  TD_SCOPE (\"s\") { switch (x) { case 1: j (); break; default: k (); } }\n"
        "  for (int i = 0; i < 3; i++) { if (z) break; l (); }\n"
        "  do m (); while (n);\n"
        "  return g ();\n"
        "}\n"
        "int g (void) { return f (3); }\n";
  g_autoptr (TdFlow) f = td__flow_new (text, strlen (text));
  guint n;

  assert_int_equal (f->nodes->len, 8);
  assert_part (f, text, 0, 0, "a ();");
  assert_part (f, text, 0, 1, "if (y) { b (); }");
  assert_int_equal (td__flow_line (f, node (f, 0)->condition.from), 8);
  assert_part (f, text, 1, 0, "{ b (); }");
  assert_int_equal (node (f, 1)->n_parts, 1);
  assert_part (f, text, 2, 0, "d (x, 2)");
  assert_part (f, text, 2, 1, "e ? h : i");
  assert_part (f, text, 3, 0, "h");
  assert_part (f, text, 3, 1, "i");
  assert_int_equal (node (f, 4)->kind, TD_FLOW_SWITCH);
  assert_part (f, text, 4, 0, "case 1: j (); break;");
  assert_int_equal (node (f, 5)->kind, TD_FLOW_LOOP);
  assert_part (f, text, 5, 0, "{ if (z) break; l (); }");
  assert_true (node (f, 6)->jumps && node (f, 6)->leaves_loop);
  assert_part (f, text, 6, 1, "l ();");
  assert_int_equal (node (f, 7)->kind, TD_FLOW_LOOP);
  assert_part (f, text, 7, 0, "m ();");

  assert_int_equal (f->functions->len, 2);
  gint in_f = td__flow_function_at (f, (guint)(strstr (text, "a ();") - text));
  assert_int_equal (in_f, 0);
  const guint *calls = td__flow_calls (f, 0, &n);
  assert_int_equal (n, 1);
  assert_int_equal (td__flow_line (f, calls[0]), 17);
}

static void
assert_sound (const TdFlow *f)
{
  for (guint i = 0; i < f->nodes->len; i++)
    {
      const TdFlowNode *x = node (f, i);

      assert_true (x->all.from <= x->all.to && x->all.to <= f->n);
      assert_true (x->condition.from <= x->condition.to && x->condition.to <= f->n);
      assert_true (x->first_part + x->n_parts <= f->parts->len);
    }
  for (guint i = 0; i < f->parts->len; i++)
    {
      TdFlowRange part = g_array_index (f->parts, TdFlowRange, i);

      assert_true (part.from <= part.to && part.to <= f->n);
    }
}

static void
flow__of_any_bytes_stays_within_them (void **state)
{
  static const char *const words[]
      = { "if",   "else", "(",  ")", "{",      "}",    "for",   "while", "do",       "switch",
          "case", ":",    "?",  ";", "return", "\n",   "/*",    "*/",    "//",       "\"",
          "'",    "\\",   "#x", "a", "b",      "goto", "break", "\0x",   "continue", "[",
          "]",    ",",    "=",  " ", "main",   "\xff", "/" };
  g_autoptr (GRand) rand = g_rand_new_with_seed (3);

  for (int round = 0; round < 20000; round++)
    {
      g_autoptr (GString) s = g_string_new (NULL);
      gint n = g_rand_int_range (rand, 0, 60);

      for (gint i = 0; i < n; i++)
        {
          const char *word = words[g_rand_int_range (rand, 0, G_N_ELEMENTS (words))];

          g_string_append_len (s, word, (gssize)MAX (strlen (word), 1));
          if (g_rand_boolean (rand))
            g_string_append_c (s, ' ');
        }
      g_autoptr (TdFlow) f = td__flow_new (s->str, s->len);
      assert_sound (f);
    }
}

static void
flow__of_a_hostile_source_ends_soon (void **state)
{
  static const char *const pieces[] = { "if (x) return;",
                                        "{",
                                        "(",
                                        "?",
                                        "a ? b : ",
                                        "for (;;) ",
                                        "f () {",
                                        "} f () { f (); ",
                                        "switch (x) { case 1: ",
                                        "/*",
                                        "\"",
                                        "x " };

  for (guint i = 0; i < G_N_ELEMENTS (pieces); i++)
    {
      g_autoptr (GString) s = g_string_new ("int f (void)\n{\n");
      clock_t start = clock ();

      while (s->len < 1u << 20)
        g_string_append (s, pieces[i]);
      g_autoptr (TdFlow) f = td__flow_new (s->str, s->len);
      assert_sound (f);
      assert_true ((double)(clock () - start) / CLOCKS_PER_SEC < 5);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (flow__finds_parts_of_branches),
    td_test (flow__of_any_bytes_stays_within_them),
    td_test (flow__of_a_hostile_source_ends_soon),
  };

  return cmocka_run_group_tests_name ("flow", tests, NULL, NULL);
}
