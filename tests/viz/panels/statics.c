/*
 * Static schedules as viewers see them: rows, bars, times, guards, news; what ran once.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <string.h>

#include "lenet-tape.h"
#include "schedule/td-statics.h"
#include "td-test.h"

/* ---- what ran once ---- */

static const char source[]
    = "/* printf (\"not this\"); */\n"
      "static int seen;\n"
      "static void helper (int *n)\n"
      "{\n"
      "  ++*n;\n"
      "}\n"
      "static void forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)\n"
      "{\n"
      "  Net *net = self;\n"
      "  TdVar *h = td_relu (in[0]), *g;\n"
      "  float a[2] = { fabs (-1), 2 };\n"
      "  int k = 0, m;\n"
      "\n"
      "  k += 2; a[0] = 3; m = k; g = h;\n"
      "  if (k > 1 && sizeof (a) > 4)\n"
      "    net->n_calls++;\n"
      "  net->scale = 2 * net->scale;\n"
      "  seen = 1;\n"
      "  td_static_code (count, (net->wrapped = 1, &net->n));\n"
      "  printf (\"forward (%d) = x\\n\", k);\n"
      "  helper (&net->depth);\n"
      "  out[0] = td_add (h, g);\n"
      "}\n"
      "int main (void)\n"
      "{\n"
      "  puts (\"not of the chain\");\n"
      "}\n";

static void
assert_row (const TdRanOnce *found, guint i, guint line, const char *text)
{
  g_autofree char *says = NULL;

  assert_true (i < found->n);
  says = td_ran_once_text (&found->rows[i]);
  assert_string_equal (says, text);
  assert_int_equal (found->rows[i].line, line);
  assert_string_equal (found->rows[i].file, "a.c");
}

static void
ran_once__finds_calls_and_writes_that_a_replay_leaves_out (void **state)
{
  TdRanOnce *found = td_ran_once_new_text ("a.c", source, "forward");

  assert_row (found, 0, 5, "*n is possibly set once");
  assert_row (found, 1, 16, "net->n_calls is possibly set once");
  assert_row (found, 2, 17, "net->scale is possibly set once");
  assert_row (found, 3, 18, "seen is possibly set once");
  assert_row (found, 4, 20, "printf ran once");
  assert_int_equal (found->n, 5);
  td_ran_once_free (found);
}

static void
ran_once__says_nothing_of_code_that_only_computes (void **state)
{
  TdRanOnce *found = td_ran_once_new_text (
      "a.c",
      "static TdVar *block (TdVar *x) { return td_relu (td_scale (x, sqrt (2))); }\n"
      "void f (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)\n"
      "{ for (int i = 0; i < 3; i++) { TdVar *y = block (in[0]); out[i] = y; } }\n",
      "f");

  assert_int_equal (found->n, 0);
  td_ran_once_free (found);
}

static void
ran_once__ends_on_any_text (void **state)
{
  static const char *const texts[] = { "",
                                       "f",
                                       "f (",
                                       "f () {",
                                       "f () { g (",
                                       "f () { \"",
                                       "f () { /* ",
                                       "f () { x = ",
                                       "f () { ++",
                                       "f () { ++*(",
                                       "} f () { ] = 2 }",
                                       "f () { f (); }",
                                       "#define f \\\n" };

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    td_ran_once_free (td_ran_once_new_text ("a.c", texts[i], "f"));
  /* and on every beginning of a good one */
  for (gsize n = 0; n < sizeof source; n++)
    {
      g_autofree char *cut = g_strndup (source, n);

      td_ran_once_free (td_ran_once_new_text ("a.c", cut, "forward"));
    }
}

/* ---- the golden tape of 1.1 ---- */

typedef struct
{
  TdTapeReader *reader;
  TdIteration *iteration;
  TdStatics *statics;
} Fixture;

static Fixture
at (guint64 number)
{
  char error[200];
  Fixture f = { 0 };

  f.reader = td_tape_reader_open (td_test_source ("tests/golden/tape-1.1.tdtape"), error,
                                  sizeof error);
  assert_non_null (f.reader);
  f.iteration = lenet_tape_load (f.reader, number);
  f.statics = td_statics_new (f.reader, f.iteration);
  assert_non_null (f.statics);
  return f;
}

static void
fixture_clear (Fixture *f)
{
  td_statics_free (f->statics);
  td_iteration_unref (f->iteration);
  td_tape_reader_free (f->reader);
}

static void
statics__lists_steps_with_groups_and_what_became_of_others (void **state)
{
  Fixture f = at (1);
  const TdStaticsChain *c = f.statics->chains;
  g_autofree char *headline = td_statics_headline (c);

  assert_int_equal (f.statics->n_chains, 1);
  assert_string_equal (headline, "scheduled, 2 calls replayed, 1 by code, unverified since "
                                 "iteration 1");
  assert_int_equal (c->n_rows, 8);
  assert_int_equal (c->n_calls, 5); /* 8 less a pruned one and the two in the group */
  assert_string_equal (c->rows[0].op, "linear");
  assert_int_equal (c->rows[1].tape->kind, TD_TAPE_STEP_GROUP);
  assert_int_equal (c->rows[4].tape->fate, TD_TAPE_FATE_PRUNED);
  assert_int_equal (c->rows[7].bytes, 256);
  fixture_clear (&f);
}

/* Values 6 and 7 share a place: one ends where the other takes it over, in step 6. */
static void
statics__draws_the_arena_over_steps (void **state)
{
  Fixture f = at (1);
  const TdGantt *g = f.statics->chains[0].gantt;

  assert_int_equal (g->n_bars, 4);
  assert_int_equal (g->planned_bytes, 384);
  assert_int_equal (g->first_backward, 5);
  assert_int_equal (g->extent, 384);
  for (guint i = 0; i < g->n_bars; i++)
    for (guint k = 0; k < i; k++)
      {
        const TdGanttBar *a = &g->bars[i], *b = &g->bars[k];

        assert_true (a->from >= b->to || b->from >= a->to || a->offset >= b->offset + b->bytes
                     || b->offset >= a->offset + a->bytes);
      }
  fixture_clear (&f);
}

static void
statics__says_at_each_moment_what_had_happened_by_then (void **state)
{
  Fixture f = at (0);

  assert_int_equal (f.statics->chains[0].n_events, 1);
  assert_null (f.statics->chains[0].tape);
  assert_int_equal (f.statics->chains[0].state.state, TD_TAPE_CHAIN_TRACING);
  fixture_clear (&f);
  f = at (2);
  g_autofree char *text = td_statics_event_text (f.reader, f.statics->chains[0].events[5]);
  assert_string_equal (text,
                       "differs: relu is sigmoid (schedule 1) at model.c:10 and model.c:20");
  assert_int_equal (f.statics->chains[0].n_events, 7);
  fixture_clear (&f);
}

static void
statics__prints_every_format (void **state)
{
  Fixture f = at (2);
  g_autofree char *text = td_statics_print (f.statics, "text"),
                  *csv = td_statics_print (f.statics, "csv"),
                  *json = td_statics_print (f.statics, "json");

  assert_contains (text, "block  (model.c:20)  invalid, 2 calls replayed, 1 by code\n");
  assert_contains (text, "x is (5, 8), (4, 8) before at model.c:10");
  assert_contains (json, "\"unverified_since\": -1");
  assert_contains (csv, "chain,step,list,kind,op,link,site,fate,group,ns,bytes\n");
  fixture_clear (&f);
  f = at (1);
  g_autofree char *now = td_statics_print (f.statics, "text"),
                  *rows = td_statics_print (f.statics, "csv"),
                  *object = td_statics_print (f.statics, "json");
  assert_contains (now, "2 steps fused");
  assert_contains (now, "calls 5; pruned 1, folded 0, merged 0, fused 2, in place 1\n");
  assert_contains (now, "arena planned 384 B, at least 384 B needed");
  assert_contains (now, "x (4, 8)  model.c:10\n");
  assert_contains (rows, "block,4,0,operation,relu,,model.c:20,pruned,-1,0,128\n");
  assert_contains (object, "\"fused\": 2");
  assert_contains (object, "\"fate\": \"pruned\"");
  fixture_clear (&f);
}

static void
statics__are_drawn_at_every_size (void **state)
{
  Fixture f = at (1);
  TdPanelView natural = { .event = -1, .head = -1 };
  TdScene *whole = td_statics_scene (f.statics, 0, &natural);
  g_autofree char *all = td_scene_dump (whole);

  assert_contains (all, "2 steps fused");
  assert_contains (all, "relu (pruned)");
  assert_contains (all, "linear_grad");
  assert_contains (all, "x (4, 8)");
  assert_contains (all, "Buffers");
  td_scene_unref (whole);
  for (double w = 40; w < 1300; w += 97)
    for (double h = 30; h < 900; h += 127)
      {
        TdPanelView view = { .width = w, .height = h, .event = -1, .head = -1 };
        TdScene *scene = td_statics_scene (f.statics, 0, &view);
        g_autofree char *dump = td_scene_dump (scene);

        assert_contains (dump, "block");
        td_scene_unref (scene);
      }
  fixture_clear (&f);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (ran_once__finds_calls_and_writes_that_a_replay_leaves_out),
    td_test (ran_once__says_nothing_of_code_that_only_computes),
    td_test (ran_once__ends_on_any_text),
    td_test (statics__lists_steps_with_groups_and_what_became_of_others),
    td_test (statics__draws_the_arena_over_steps),
    td_test (statics__says_at_each_moment_what_had_happened_by_then),
    td_test (statics__prints_every_format),
    td_test (statics__are_drawn_at_every_size),
  };

  return cmocka_run_group_tests_name ("statics", tests, NULL, NULL);
}
