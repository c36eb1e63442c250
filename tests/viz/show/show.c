/*
 * tapedeck-viz from outside: every view in every format, its exit codes, its one-line errors.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "lenet-tape.h"
#include "td-test.h"

static const char *
viz (void)
{
  return td_test_program ("app/tapedeck-viz");
}

static const char *
lenet (const LenetOptions *options)
{
  const char *path = td_test_tmp ("lenet.tdtape");

  lenet_tape_write (path, options);
  return path;
}

/* ---- a JSON reader that only says whether it is JSON ---- */

static const char *json_value (const char *p);

static const char *
json_space (const char *p)
{
  while (p && *p && strchr (" \n\t\r", *p))
    p++;
  return p;
}

static const char *
json_string (const char *p)
{
  if (*p++ != '"')
    return NULL;
  for (; *p != '"'; p++)
    {
      if ((unsigned char)*p < 0x20)
        return NULL;
      if (*p == '\\' && !strchr ("\"\\/bfnrtu", *++p))
        return NULL;
    }
  return p + 1;
}

static const char *
json_list (const char *p, char end, gboolean keys)
{
  p = json_space (p + 1);
  if (*p == end)
    return p + 1;
  for (;;)
    {
      if (keys)
        {
          p = json_string (json_space (p));
          p = json_space (p);
          if (!p || *p++ != ':')
            return NULL;
        }
      p = json_space (json_value (p));
      if (!p || (*p != ',' && *p != end))
        return NULL;
      if (*p++ == end)
        return p;
    }
}

static const char *
json_value (const char *p)
{
  p = json_space (p);
  if (!p)
    return NULL;
  if (*p == '{' || *p == '[')
    return json_list (p, *p == '{' ? '}' : ']', *p == '{');
  if (*p == '"')
    return json_string (p);
  for (const char **word = (const char *[]){ "true", "false", "null", NULL }; *word; word++)
    if (g_str_has_prefix (p, *word))
      return p + strlen (*word);
  char *end;
  (void)!g_ascii_strtod (p, &end);
  return end > p && (g_ascii_isdigit (*p) || *p == '-') ? end : NULL;
}

static void
assert_json (const char *text)
{
  const char *end = json_space (json_value (text));

  if (!end || *end)
    fail_msg ("not JSON: %.300s", text);
}

static void
json_reader__refuses_what_is_not_json (void **state)
{
  assert_json ("{\"a\": [1, -2.5e3, \"x\\n\", null, true, {}]}");
  assert_null (json_value ("{\"a\": nan}"));
  assert_null (json_value ("[1,]"));
  assert_null (json_value ("\"line\nbreak\""));
}

/* ---- the program ---- */

static void
show__every_view_in_every_format (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const char *tape = lenet (&o);
  static const char *const views[]
      = { "graph",     "backward", "curves",   "memory",   "blocks",
          "gradients", "ridge",    "schedule", "timeline", "flame" };
  static const char *const formats[] = { "text", "json", "svg", "png", "pdf", "csv" };
  static const char *const begins[] = { "", "{", "<?xml", "\x89PNG", "%PDF", "" };

  for (gsize v = 0; v < G_N_ELEMENTS (views); v++)
    for (gsize f = 0; f < G_N_ELEMENTS (formats) - (v < 2); f++)
      {
        TdTestChild c
            = TD_TEST_RUN (viz (), "show", tape, "--view", views[v], "--format", formats[f]);

        assert_child_status (c, 0);
        assert_string_equal (c.err, "");
        assert_true (c.out_bytes > 60);
        assert_memory_equal (c.out, begins[f], strlen (begins[f]));
        if (f == 1)
          assert_json (c.out);
        td_test_child_clear (&c);
      }
}

static void
show__graph_json_has_the_promised_members (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  TdTestChild c
      = TD_TEST_RUN (viz (), "show", lenet (&o), "--view", "graph", "--format", "json");
  static const char *const members[] = { "\"id\": \"",
                                         "\"kind\": \"op\"",
                                         "\"kind\": \"var\"",
                                         "\"label\": ",
                                         "\"op\": \"convolution_2d\"",
                                         "\"link\": \"lenet/block1/conv1\"",
                                         "\"site\": \"lenet.c:31\"",
                                         "\"phase\": \"forward\"",
                                         "\"shape\": [64, 6, 28, 28]",
                                         "\"dtype\": \"float32\"",
                                         "\"bytes\": 1204224",
                                         "\"ns\": " };
  guint ops = 0, edges = 0;

  assert_child_status (c, 0);
  for (gsize i = 0; i < G_N_ELEMENTS (members); i++)
    assert_contains (c.out, members[i]);
  for (const char *p = c.out; (p = strstr (p, "\"kind\": \"op\"")); p++)
    ops++;
  assert_int_equal (ops, 13); /* the forward pass */
  for (const char *p = strstr (c.out, "\"edges\""); (p = strstr (p, "[\"")); p++)
    edges++;
  /* inputs: 3 for each of 5 layers with parameters, 2 for the loss, 1 for the other 7; 13
   * outputs */
  assert_int_equal (edges, 15 + 2 + 7 + 13);
  td_test_child_clear (&c);
}

/* Returns the id of the node of the schedule with this operation and layer. */
static char *
find_id (const char *tape, const char *op, const char *link)
{
  TdTestChild c = TD_TEST_RUN (viz (), "show", tape, "--view", "schedule", "--format", "json");
  g_autofree char *member = g_strdup_printf ("\"op\": \"%s\", \"link\": \"%s\"", op, link);
  char *at = strstr (c.out, member), *id;

  assert_non_null (at);
  while (!g_str_has_prefix (at, "\"id\": \""))
    at--;
  id = g_strndup (at + 7, 16);
  td_test_child_clear (&c);
  return id;
}

static void
show__tensor_of_a_node_as_numbers_picture_and_npy (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const char *tape = lenet (&o), *npy = td_test_tmp ("g.npy");
  g_autofree char *id = find_id (tape, "convolution_2d_grad_W", "lenet/block2/conv2");
  TdTestChild c = TD_TEST_RUN (viz (), "show", tape, "--view", "tensor", "--node", id,
                               "--format", "json");
  gsize n;

  assert_child_status (c, 0);
  assert_json (c.out);
  assert_contains (c.out, "\"name\": \"lenet/block2/conv2/W.grad\"");
  assert_contains (c.out, "\"shape\": [16, 6, 5, 5]");
  td_test_child_clear (&c);
  c = TD_TEST_RUN (viz (), "show", tape, "--view", "tensor", "--node", id, "-o", npy);
  assert_child_status (c, 0);
  td_test_child_clear (&c);
  g_autofree char *bytes = NULL;
  assert_true (g_file_get_contents (npy, &bytes, &n, NULL));
  assert_memory_equal (bytes, "\x93NUMPY", 6);
  assert_int_equal (n, 128 + 9600);
  c = TD_TEST_RUN (viz (), "show", tape, "--view", "tensor", "--node", id, "--format", "png",
                   "--theme", "dark");
  assert_child_status (c, 0);
  assert_memory_equal (c.out, "\x89PNG", 4);
  td_test_child_clear (&c);
}

static void
show__refuses_in_one_line_with_status_2 (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const char *tape = lenet (&o), *garbage = td_test_tmp ("garbage.tdtape"),
             *none = td_test_tmp ("none.tdtape"), *nowhere = td_test_tmp ("none/x.txt");
  g_autofree char *beyond = g_strconcat (tape, ":4000", NULL);
  const char *runs[][9] = {
    { "show", none, "--view", "graph" },
    { "show", garbage, "--view", "graph" },
    { "show", tape, "--view", "nothing" },
    { "show", tape },
    { "show", tape, "--view", "graph", "--format", "npy" },
    { "show", tape, "--view", "graph", "--iteration", "4000" },
    { "show", tape, "--view", "graph", "--iteration", "x" },
    { "show", tape, "--view", "graph", "--event", "45" },
    { "show", tape, "--view", "tensor" },
    { "show", tape, "--view", "tensor", "--node", "1234" },
    { "show", tape, "--view", "holders" },
    { "show", tape, "--view", "growth" },
    { "show", tape, "--view", "graph", "--bogus" },
    { "show", tape, "--view", "flame", "--by", "site" },
    { "show", tape, "--view", "growth", "--by", "bytes" },
    { "show", tape, "--view", "flame", "--by", "colour" },
    { "show", tape, "--view", "graph", "-o", nowhere },
    { "diff", tape },
    { "diff", tape, none },
    { "diff", tape, "--bogus" },
    { "diff", tape, tape, tape },
    { "diff", tape, garbage },
    { "diff", beyond, tape },
    { "diff", tape, tape, "-o", nowhere },
    { "leaks", tape },
    { "leaks" },
    { "dot", tape, "-o", "x.png" },
    { "nothing" },
  };

  td_test_write_file (garbage, "this is no tape", 15);
  for (gsize i = 0; i < G_N_ELEMENTS (runs); i++)
    {
      const char *argv[11] = { viz () };

      for (int k = 0; k < 9 && runs[i][k]; k++)
        argv[k + 1] = runs[i][k];
      TdTestChild c = td_test_run (argv, NULL, NULL);
      assert_child_status (c, 2);
      assert_string_equal (c.out, "");
      assert_true (c.err_bytes > 10 && strchr (c.err, '\n') == c.err + c.err_bytes - 1);
      td_test_child_clear (&c);
    }
}

static void
diff__exit_status_says_same_or_different (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.extra_relu_at = 20;
  const char *tape = lenet (&o);
  g_autofree char *a = g_strconcat (tape, ":19", NULL), *b = g_strconcat (tape, ":20", NULL);
  TdTestChild c = TD_TEST_RUN (viz (), "diff", a, a, "--json");

  assert_child_status (c, 0);
  assert_json (c.out);
  td_test_child_clear (&c);
  c = TD_TEST_RUN (viz (), "diff", a, b, "--json");
  assert_child_status (c, 1);
  assert_json (c.out);
  assert_contains (c.out, "\"same\": false");
  assert_contains (c.out, "\"only_a\": []");
  assert_contains (
      c.out,
      "\"first_divergence\": {\n    \"site\": \"lenet.c:50\",\n    \"op\": \"relu\",\n    "
      "\"site_a\": null,\n    \"site_b\": \"lenet.c:50\"\n  }");
  td_test_golden ("viz/diff.json", c.out);
  td_test_child_clear (&c);
}

static void
show__hostile_operation_name_is_escaped_everywhere (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 2;
  o.op_name = "</svg>\"\\\n\x01<script>";
  const char *tape = lenet (&o);
  TdTestChild c = TD_TEST_RUN (viz (), "show", tape, "--view", "graph", "--format", "json");

  assert_child_status (c, 0);
  assert_json (c.out);
  td_test_child_clear (&c);
  c = TD_TEST_RUN (viz (), "show", tape, "--view", "graph", "--format", "svg");
  assert_child_status (c, 0);
  assert_not_contains (c.out, "<script>");
  td_test_child_clear (&c);
}

/* Of 45 operations; the sums are those of the view schedule. */
static void
show__flame_adds_up_to_the_schedule (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const char *tape = lenet (&o);
  static const char *const by[] = { "time", "bytes" }, *const member[] = { "ns", "bytes" };

  for (guint k = 0; k < G_N_ELEMENTS (by); k++)
    {
      TdTestChild folded = TD_TEST_RUN (viz (), "show", tape, "--view", "flame", "--by", by[k],
                                        "--format", "folded");
      TdTestChild schedule
          = TD_TEST_RUN (viz (), "show", tape, "--view", "schedule", "--format", "json");
      g_auto (GStrv) lines = g_strsplit (folded.out, "\n", -1);
      g_autofree char *key = g_strdup_printf ("\"%s\": ", member[k]);
      guint64 of_stacks = 0, of_events = 0;

      assert_child_status (folded, 0);
      for (guint i = 0; *lines[i]; i++)
        of_stacks += g_ascii_strtoull (strrchr (lines[i], ' ') + 1, NULL, 10);
      for (const char *at = strstr (schedule.out, "\"events\": ["); (at = strstr (at, key));
           at += strlen (key))
        of_events += g_ascii_strtoull (at + strlen (key), NULL, 10);
      assert_true (of_events > 0);
      assert_int_equal (of_stacks, of_events);
      td_test_child_clear (&folded);
      td_test_child_clear (&schedule);
    }
}

/* As `tapedeck cat` tells them: tests/golden/tape-1.2-copies.txt. */
static void
show__timeline_as_csv_has_the_copies_of_the_host (void **state)
{
  const char *tape = td_test_source ("tests/golden/tape-1.2-copies.tdtape");
  TdTestChild c = TD_TEST_RUN (viz (), "show", tape, "--view", "timeline", "--format", "csv",
                               "--iteration", "1");
  g_auto (GStrv) lines = NULL;

  assert_child_status (c, 0);
  td_test_golden ("viz/copies.csv", c.out);
  lines = g_strsplit (c.out, "\n", -1);
  assert_int_equal (g_strv_length (lines), 1 + 2 + 4 + 1);
  for (char **line = lines; **line; line++) /* as many columns in each */
    {
      int commas = 0;

      for (const char *at = *line; *at; at++)
        commas += *at == ',';
      assert_int_equal (commas, 18);
    }
  td_test_child_clear (&c);
}

static void
show__gradients_are_of_the_whole_run_or_of_the_newest (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 300;
  o.values = FALSE;
  const char *tape = lenet (&o);
  TdTestChild c = TD_TEST_RUN (viz (), "show", tape, "--view", "gradients", "--format", "csv",
                               "--iteration", "100");
  assert_child_status (c, 0);
  assert_true (g_str_has_prefix (c.out, "parameter,7,15,23,"));
  assert_contains (c.out, ",287,295,299\n");
  td_test_child_clear (&c);
  c = TD_TEST_RUN (viz (), "show", tape, "--view", "gradients", "--format", "csv",
                   "--iteration", "100", "--newest", "3");
  assert_child_status (c, 0);
  assert_true (g_str_has_prefix (c.out, "parameter,98,99,100\n"));
  td_test_child_clear (&c);
  c = TD_TEST_RUN (viz (), "show", tape, "--view", "gradients", "--newest", "0");
  assert_child_status (c, 2);
  td_test_child_clear (&c);
}

/* What the views over the run print of a range is what they print of it in the whole. */
static void
show__range_narrows_the_views_over_the_run (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const char *tape = lenet (&o);
  TdTestChild c = TD_TEST_RUN (viz (), "show", tape, "--view", "curves", "--format", "csv",
                               "--range", "5:8");
  TdTestChild all = TD_TEST_RUN (viz (), "show", tape, "--view", "curves", "--format", "csv");
  g_auto (GStrv) lines = g_strsplit (g_strchomp (c.out), "\n", -1);
  guint n = 0;

  assert_child_status (c, 0);
  assert_child_status (all, 0);
  for (guint i = 1; lines[i]; i++, n++)
    {
      const char *comma = strchr (lines[i], ',');

      assert_non_null (comma);
      assert_in_range (atoi (comma + 1), 5, 8);
      assert_contains (all.out, lines[i]);
    }
  assert_true (n >= 4 && n % 4 == 0);
  td_test_child_clear (&c);
  td_test_child_clear (&all);
  c = TD_TEST_RUN (viz (), "show", tape, "--view", "gradients", "--format", "csv", "--range",
                   "5:8");
  assert_child_status (c, 0);
  assert_true (g_str_has_prefix (c.out, "parameter,5,6,7,8\n"));
  td_test_child_clear (&c);
  c = TD_TEST_RUN (viz (), "show", tape, "--view", "gradients", "--range", "900:901");
  assert_child_status (c, 2);
  assert_contains (c.err, "nothing of iterations 900 to 901: it has iterations 0 to 39");
  td_test_child_clear (&c);
  c = TD_TEST_RUN (viz (), "show", tape, "--view", "gradients", "--range", "5:8", "--iteration",
                   "9");
  assert_child_status (c, 2);
  assert_contains (c.err, "--iteration 9 is none of iterations 5 to 8");
  td_test_child_clear (&c);
  c = TD_TEST_RUN (viz (), "show", tape, "--view", "graph", "--range", "5:8");
  assert_child_status (c, 2);
  assert_contains (c.err, "--range is not for the view graph");
  td_test_child_clear (&c);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (json_reader__refuses_what_is_not_json),
    td_test (show__every_view_in_every_format),
    td_test (show__graph_json_has_the_promised_members),
    td_test (show__tensor_of_a_node_as_numbers_picture_and_npy),
    td_test (show__refuses_in_one_line_with_status_2),
    td_test (diff__exit_status_says_same_or_different),
    td_test (show__gradients_are_of_the_whole_run_or_of_the_newest),
    td_test (show__range_narrows_the_views_over_the_run),
    td_test (show__flame_adds_up_to_the_schedule),
    td_test (show__timeline_as_csv_has_the_copies_of_the_host),
    td_test (show__hostile_operation_name_is_escaped_everywhere),
  };

  return cmocka_run_group_tests_name ("show", tests, NULL, NULL);
}
