/* Why static functions were not replayed: programs in which every kind of guard is made to fail
 * at known iterations and lines, and nothing else is told of them. More of them by
 * PLANTED_FIRST and PLANTED_N.
 *
 * SPDX-License-Identifier: MIT */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/td-explain.h"
#include "td-session.h"
#include "td-test.h"

#ifndef N_SEEDS
#define N_SEEDS 30
#endif

/* ---- programs ---- */

typedef struct
{
  TdSession *session;
  TdIteration *iteration;
  TdStatics *statics;
  TdExplain *explain;
} World;

static World
look_at (const char *tape, gint64 iteration, TdExplainRuns *runs)
{
  g_autoptr (GError) error = NULL;
  World w = { .session = td_session_open (tape, &error) };

  assert_non_null (w.session);
  if (iteration < 0)
    iteration = td_session_get_last_complete (w.session);
  w.iteration = td_session_load_iteration (w.session, iteration, &error);
  if (!w.iteration)
    fail_msg ("%s: iteration %d: %s", tape, (int)iteration, error->message);
  w.statics = td_statics_new (td_session_get_reader (w.session), w.iteration);
  assert_non_null (w.statics);
  w.explain = td_explain_new (w.statics, runs);
  return w;
}

static void
world_clear (World *w)
{
  td_explain_free (w->explain);
  td_statics_free (w->statics);
  td_iteration_unref (w->iteration);
  g_object_unref (w->session);
}

/* Run the program of a seed. *Returns*: what it planted. *Owner*: the caller. */
static char *
record (const char *tape, guint64 seed)
{
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, seed);
  const char *argv[] = { td_test_build ("tests/viz/explain/planted-guards"), text, NULL };
  g_auto (GStrv) environment = g_environ_setenv (g_get_environ (), "TAPEDECK_TAPE", tape, TRUE);
  char *out = NULL;
  int status = 0;

  remove (tape);
  assert_true (g_spawn_sync (NULL, (char **)argv, environment, G_SPAWN_STDERR_TO_DEV_NULL, NULL,
                             NULL, &out, NULL, &status, NULL));
  assert_int_equal (status, 0);
  return out;
}

static int
by_text (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *)a, *(char *const *)b);
}

static char *
join_sorted (GPtrArray *lines)
{
  g_ptr_array_sort (lines, by_text);
  g_ptr_array_add (lines, NULL);
  return g_strjoinv ("\n", (char **)lines->pdata);
}

static char *
planted_lines (const char *out)
{
  g_autoptr (GPtrArray) lines = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) all = g_strsplit (out, "\n", -1);

  for (char **line = all; *line; line++)
    if (**line)
      g_ptr_array_add (lines, g_strdup (*line));
  return join_sorted (lines);
}

static char *
told_lines (const TdExplain *e)
{
  g_autoptr (GPtrArray) lines = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < e->n_rows; i++)
    if (e->rows[i].section == TD_EXPLAIN_REASON)
      g_ptr_array_add (lines, g_strdup_printf ("%s|%s|%u|%u|%" G_GINT64_FORMAT,
                                               e->statics->functions[e->rows[i].function].name,
                                               e->rows[i].title, e->rows[i].line, e->rows[i].n,
                                               e->rows[i].first));
  return join_sorted (lines);
}

static void
print_missing (const char *what, const char *all, const char *there)
{
  g_auto (GStrv) lines = g_strsplit (all, "\n", -1), known = g_strsplit (there, "\n", -1);

  for (char **line = lines; *line; line++)
    if (!g_strv_contains ((const char *const *)known, *line))
      print_message ("  %s: %s\n", what, *line);
}

/* Every call that ran the code is told of, once; each reason has one piece of advice. */
static void
assert_complete (const TdExplain *e)
{
  for (guint f = 0; f < e->statics->n_functions; f++)
    {
      guint n = 0;

      for (guint i = 0; i < e->n_rows; i++)
        {
          const TdExplainRow *row = &e->rows[i];

          if (row->section != TD_EXPLAIN_REASON || row->function != f)
            continue;
          assert_true (*row->advice != '\0');
          if (strcmp (row->title, "code ran beside its schedule") != 0)
            n += row->n;
        }
      assert_int_equal (n, e->calls[f].n_code);
      assert_int_equal (n, e->calls[f].n_explained);
    }
}

static void
explain__tells_every_planted_reason_with_line_and_count_and_no_other (void **state)
{
  guint64 first = td_test_number ("PLANTED_FIRST", 1);
  guint64 n = td_test_number ("PLANTED_N", N_SEEDS), n_wrong = 0, n_reasons = 0;
  const char *tape = td_test_tmp ("guards.tdtape");

  for (guint64 seed = first; seed < first + n; seed++)
    {
      g_autofree char *out = record (tape, seed);
      World w = look_at (tape, -1, NULL);
      g_autofree char *planted = planted_lines (out), *told = told_lines (w.explain);

      if (strcmp (planted, told) != 0)
        {
          print_message ("seed %d\n", (int)seed);
          print_missing ("planted, but not told", planted, told);
          print_missing ("told, but not planted", told, planted);
          n_wrong++;
        }
      else
        assert_complete (w.explain);
      for (const char *at = planted; (at = strchr (at, '\n')) != NULL; at++)
        n_reasons++;
      n_reasons++;
      world_clear (&w);
    }
  print_message ("%d reasons in %d programs, %d programs are told of wrongly\n", (int)n_reasons,
                 (int)n, (int)n_wrong);
  assert_int_equal (n_wrong, 0);
}

/* ---- programs as people write them ---- */

static const TdExplainRow *
find_row (const TdExplain *e, TdExplainSection section, const char *title)
{
  for (guint i = 0; i < e->n_rows; i++)
    if (e->rows[i].section == section && strcmp (e->rows[i].title, title) == 0)
      return &e->rows[i];
  return NULL;
}

static const char *
record_source (const char *source, const char *mode, const char *level)
{
  const char *tape = td_test_tmp ("example.tdtape");
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", "-f", "-o", tape,
                     "--level", level, "--static", mode, td_test_source (source));

  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return tape;
}

/* The line of the example that has this text, from 1 on. */
static guint
line_of (const char *source, const char *needle)
{
  g_autofree char *text = NULL;
  guint line = 1;

  assert_true (g_file_get_contents (td_test_source (source), &text, NULL, NULL));
  const char *at = strstr (text, needle);
  assert_non_null (at);
  for (const char *c = text; c < at; c++)
    line += *c == '\n';
  return line;
}

static void
explain__names_what_ran_once_and_what_a_replay_runs_too (void **state)
{
  const char *source = "data/examples/static_mlp.c";
  World w = look_at (record_source (source, "as-is", "graph"), -1, NULL);
  const TdExplainRow *first
      = find_row (w.explain, TD_EXPLAIN_REASON, "first call: it is traced");
  const TdExplainRow *once = find_row (w.explain, TD_EXPLAIN_ONCE, "ran while tracing only");
  const TdExplainRow *write
      = find_row (w.explain, TD_EXPLAIN_ONCE, "written while tracing only");
  const TdExplainRow *effect
      = find_row (w.explain, TD_EXPLAIN_BREAK, "code that a replay runs too");
  const TdExplainRow *guard = find_row (w.explain, TD_EXPLAIN_GUARD, "several");

  assert_non_null (first);
  assert_int_equal (first->n, 1);
  assert_int_equal (first->n_timed, 1);
  assert_int_equal (w.explain->calls[0].n_replayed, 19);
  assert_non_null (once);
  assert_int_equal (once->line, line_of (source, "printf (\"a line of"));
  assert_non_null (write);
  assert_int_equal (write->line, line_of (source, "m->n_plain++"));
  assert_non_null (effect);
  assert_non_null (guard);
  assert_int_equal (guard->line, line_of (source, "td_static_new (mlp_forward"));
  assert_complete (w.explain);
  world_clear (&w);
}

/* Every call but the first is verified. */
static void
explain__counts_what_verification_costs (void **state)
{
  World w
      = look_at (record_source ("data/examples/static_mlp.c", "verify=1", "graph"), -1, NULL);
  const TdExplainRow *row
      = find_row (w.explain, TD_EXPLAIN_REASON, "code ran beside its schedule");

  assert_non_null (row);
  assert_int_equal (row->n, 19);
  assert_int_equal (row->n_timed, 19);
  assert_true (row->cost_ns > 0);
  assert_complete (w.explain);
  world_clear (&w);
}

/* What each pass takes away is what the engine counted, and what is left is what runs. */
static void
assert_passes (const World *w, guint function)
{
  const TdStaticsFunction *c = &w->statics->functions[function];
  const TdTapeScheduleHead *h = &c->tape->head;
  guint left = 0, at = G_MAXUINT, n_passes = 0;

  for (guint i = 0; i < c->n_rows; i++)
    {
      const TdTapeStep *t = c->rows[i].tape;
      gboolean member = t->kind != TD_TAPE_STEP_GROUP && t->group != TD_TAPE_NO_GROUP;

      left += t->fate == TD_TAPE_FATE_RUNS && !member
              && (t->kind <= TD_TAPE_STEP_HOST_READ || t->kind >= TD_TAPE_STEP_PROPAGATE);
    }
  for (guint i = 0; i < w->explain->n_rows; i++)
    {
      const TdExplainRow *row = &w->explain->rows[i];

      if (row->section != TD_EXPLAIN_PASS || row->function != function)
        continue;
      assert_int_equal (row->pass, ++n_passes);
      if (at != G_MAXUINT)
        assert_int_equal (row->before, at);
      at = row->after;
      if (strcmp (row->title, "dead code") == 0)
        assert_int_equal (row->before - row->after, h->n_pruned);
      else if (strcmp (row->title, "constant folding") == 0)
        assert_int_equal (row->before - row->after, h->n_folded);
      else if (strcmp (row->title, "common subexpressions") == 0)
        assert_int_equal (row->before - row->after, h->n_merged);
      for (guint k = i + 1;
           k < w->explain->n_rows && w->explain->rows[k].section == TD_EXPLAIN_REMARK; k++)
        assert_int_equal (w->explain->rows[k].pass, row->pass);
    }
  assert_int_equal (n_passes, 7);
  assert_int_equal (at, left);
}

static void
explain__steps_through_passes_that_add_up (void **state)
{
  static const char *const sources[]
      = { "data/examples/static_mlp.c", "tests/viz/explain/passes-program.c" };

  for (guint i = 0; i < G_N_ELEMENTS (sources); i++)
    {
      World w = look_at (record_source (sources[i], "as-is", "graph"), -1, NULL);

      assert_passes (&w, 0);
      world_clear (&w);
    }
}

/* Programs of real size: what makes their functions run code is known. */
static const struct
{
  const char *program, *title;
  guint n; /* calls, of the first function */
} known[] = {
  { "l03-gpt", "first call: it is traced", 1 },
  { "l07-dcgan", "hooks are set", 12 },
  { "l09-dqn", "first call: it is traced", 1 },
  { "l11-experts", "numbers that the code reads", 5 },
  { "l14-double-backward", "the trace waits for its backward", 2 },
  { "l15-vae-trainer", "shape of an argument", 2 },
  { "l15-vae-trainer", "training or test", 2 },
};

static void
explain__is_complete_on_programs_of_real_size (void **state)
{
  for (guint i = 0; i < G_N_ELEMENTS (known); i++)
    {
      g_autofree char *source = g_strdup_printf ("tests/models/life/%s.c", known[i].program);
      g_autofree char *out = g_strdup_printf ("out=%s", td_test_tmp ("result"));
      const char *tape = td_test_tmp ("life.tdtape");
      TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", "-f",
                                       "-o", tape, td_test_source (source), "static=1",
                                       "iterations=6", "snapshots=0", out);
      const TdExplainRow *row;

      assert_child_status (child, 0);
      td_test_child_clear (&child);
      World w = look_at (tape, -1, NULL);
      assert_complete (w.explain);
      for (guint f = 0; f < w.statics->n_functions; f++)
        if (w.statics->functions[f].tape)
          assert_passes (&w, f);
      row = find_row (w.explain, TD_EXPLAIN_REASON, known[i].title);
      assert_non_null (row);
      assert_int_equal (row->n, known[i].n);
      world_clear (&w);
    }
}

/* Kept or read anew, what is said of a moment is the same; of an earlier one less is said. */
static void
explain__says_the_same_with_runs_that_were_read_before (void **state)
{
  const char *tape = td_test_tmp ("guards.tdtape");
  g_free (record (tape, 4));
  World w = look_at (tape, -1, NULL);
  g_autoptr (TdExplainRuns) runs = td_explain_runs_new (td_session_get_reader (w.session));
  guint n_before = 0;

  for (gint64 i = 0; i <= w.statics->iteration; i++)
    {
      g_autoptr (TdIteration) it = td_session_load_iteration (w.session, i, NULL);
      g_autoptr (TdStatics) at = td_statics_new (td_session_get_reader (w.session), it);
      g_autoptr (TdExplain) kept = td_explain_new (at, runs);
      guint n = 0;

      assert_complete (kept);
      for (guint f = 0; f < at->n_functions; f++)
        n += kept->calls[f].n_explained;
      assert_true (n >= n_before);
      n_before = n;
      if (i < w.statics->iteration)
        continue;
      g_autofree char *a = td_explain_print (kept, -1, "csv");
      g_autofree char *b = td_explain_print (w.explain, -1, "csv");
      assert_string_equal (a, b);
    }
  world_clear (&w);
}

/* Without runs, as tapes before 1.2 are, what happened is still counted. */
static void
explain__counts_by_events_on_tapes_without_runs (void **state)
{
  World w = look_at (td_test_source ("tests/golden/tape-1.1.tdtape"), 2, NULL);
  g_autofree char *text = td_explain_print (w.explain, -1, "text");
  guint n = 0;

  for (guint i = 0; i < w.explain->n_rows; i++)
    n += w.explain->rows[i].section == TD_EXPLAIN_DIFFERENCE;
  assert_int_equal (n, 1);
  assert_contains (text, "ran the code");
  for (guint i = 0; i < w.explain->n_rows; i++)
    {
      assert_int_equal (w.explain->rows[i].n_timed, 0);
      assert_true (*w.explain->rows[i].title != '\0');
      if (w.explain->rows[i].section <= TD_EXPLAIN_DIFFERENCE)
        assert_true (*w.explain->rows[i].advice != '\0');
    }
  world_clear (&w);
}

/* The picture has the rows; the pass of the cursor is open, and no other. */
static void
explain__draws_its_rows_and_opens_the_pass_of_the_cursor (void **state)
{
  World w = look_at (record_source ("tests/viz/explain/passes-program.c", "as-is", "graph"), -1,
                     NULL);
  TdPanelView view = { .iteration = w.statics->iteration, .event = -1, .head = -1 };
  g_autoptr (TdScene) closed = td_explain_scene (w.explain, 0, &view);
  g_autofree char *closed_text = td_scene_dump (closed);
  guint n_open = 0;

  assert_contains (closed_text, "Why its code ran");
  assert_contains (closed_text, "Guards by line");
  assert_contains (closed_text, "fusion");
  assert_null (strstr (closed_text, "become one"));
  for (guint i = 0; i < w.explain->n_rows; i++)
    {
      if (w.explain->rows[i].section != TD_EXPLAIN_PASS)
        continue;
      view.cursor = i + 1;
      g_autoptr (TdScene) open = td_explain_scene (w.explain, 0, &view);
      g_autofree char *text = td_scene_dump (open);
      n_open += strstr (text, "become one") != NULL;
    }
  assert_int_equal (n_open, 1);
  world_clear (&w);
}

static void
show__prints_the_view_explain_in_every_format (void **state)
{
  const char *tape = record_source ("data/examples/static_mlp.c", "as-is", "graph");
  static const struct
  {
    const char *format, *says;
  } formats[] = { { "text", "first call: it is traced" },
                  { "json", "\"title\": \"ran while tracing only\"" },
                  { "csv", "mlp,reason,first call," },
                  { "svg", "<svg" } };

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    {
      TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show", tape, "--view",
                                       "explain", "--format", formats[i].format);

      assert_child_status (child, 0);
      assert_contains (child.out, formats[i].says);
      td_test_child_clear (&child);
    }
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "show",
                     td_test_source ("tests/golden/tape-1.0.tdtape"), "--view", "explain");
  assert_child_status (child, 2);
  assert_contains (child.err, "no static function on this tape");
  td_test_child_clear (&child);
}

static const struct CMUnitTest tests[] = {
  td_test (explain__tells_every_planted_reason_with_line_and_count_and_no_other),
  td_test (explain__names_what_ran_once_and_what_a_replay_runs_too),
  td_test (explain__counts_what_verification_costs),
  td_test (explain__steps_through_passes_that_add_up),
  td_test (explain__is_complete_on_programs_of_real_size),
  td_test (explain__says_the_same_with_runs_that_were_read_before),
  td_test (explain__counts_by_events_on_tapes_without_runs),
  td_test (explain__draws_its_rows_and_opens_the_pass_of_the_cursor),
  td_test (show__prints_the_view_explain_in_every_format),
};

int
main (void)
{
  return cmocka_run_group_tests_name ("explain", tests, NULL, NULL);
}
