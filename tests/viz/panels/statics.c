/*
 * Static schedules as viewers see them: rows, bars, times, guards, news; what ran once.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <string.h>

#include "graph/td-graph.h"
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
      "  puts (\"not of the function\");\n"
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
  const TdStaticsFunction *c = f.statics->functions;
  g_autofree char *headline = td_statics_headline (c);

  assert_int_equal (f.statics->n_functions, 1);
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
  const TdGantt *g = f.statics->functions[0].gantt;

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

  assert_int_equal (f.statics->functions[0].n_events, 1);
  assert_null (f.statics->functions[0].tape);
  assert_int_equal (f.statics->functions[0].state.state, TD_TAPE_CHAIN_TRACING);
  fixture_clear (&f);
  f = at (2);
  g_autofree char *text = td_statics_event_text (f.reader, f.statics->functions[0].events[5]);
  assert_string_equal (text,
                       "differs: relu is sigmoid (schedule 1) at model.c:10 and model.c:20");
  assert_int_equal (f.statics->functions[0].n_events, 7);
  fixture_clear (&f);
}

static void
statics__prints_every_format (void **state)
{
  Fixture f = at (2);
  g_autofree char *text = td_statics_print (f.statics, -1, "text"),
                  *csv = td_statics_print (f.statics, -1, "csv"),
                  *json = td_statics_print (f.statics, -1, "json");

  assert_contains (text, "block  (model.c:20)  invalid, 2 calls replayed, 1 by code\n");
  assert_contains (text, "x is (5, 8), (4, 8) before at model.c:10");
  assert_contains (json, "\"unverified_since\": -1");
  assert_contains (csv, "chain,step,list,kind,op,link,site,fate,group,ns,bytes\n");
  fixture_clear (&f);
  f = at (1);
  g_autofree char *now = td_statics_print (f.statics, -1, "text"),
                  *rows = td_statics_print (f.statics, -1, "csv"),
                  *object = td_statics_print (f.statics, -1, "json");
  assert_contains (now, "2 steps fused");
  assert_contains (now, "calls 5; pruned 1, folded 0, merged 0, fused 2, in place 1\n");
  assert_contains (now, "arena planned 384 B, at least 384 B needed");
  assert_contains (now, "x (4, 8)  model.c:10\n");
  assert_contains (rows, "block,4,0,operation,relu,,model.c:20,pruned,-1,0,128\n");
  assert_contains (object, "\"fused\": 2");
  assert_contains (object, "\"fate\": \"pruned\"");
  /* members say what they are given, by number where that is another member's */
  assert_contains (object, "\"call\": \"relu (linear)\", \"formula\": \"\", \"shape\": [4, 8], "
                           "\"dtype\": \"float32\"");
  assert_contains (object, "\"call\": \"relu (#1)\"");
  assert_contains (now, "  relu (#1)");
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

/* ---- which step an event was ---- */

static const char *
no_text (gpointer data, guint32 id)
{
  (void)data;
  (void)id;
  return NULL;
}

static const char *
no_site (gpointer data, guint32 site, guint32 *line)
{
  (void)data;
  (void)site;
  *line = 0;
  return NULL;
}

static const TdNamesClass no_names = { no_text, no_text, no_text, no_site };

#define FORWARD TD_TAPE_PHASE_FORWARD
#define BACKWARD TD_TAPE_PHASE_BACKWARD
#define REPLAYED TD_TAPE_EVENT_REPLAYED

/* By hand: the code's event, then the golden schedule's two calls of forward and three of
 * backward, with a sum of gradients between them that is no step. */
static const TdTapeEvent hand_events[] = {
  { .key = 1, .twin = -1, .span = TD_TAPE_NONE, .phase = FORWARD },
  { .key = 2, .twin = -1, .span = TD_TAPE_NONE, .phase = FORWARD, .flags = REPLAYED },
  { .key = 3, .twin = -1, .span = TD_TAPE_NONE, .phase = FORWARD, .flags = REPLAYED },
  { .key = 4, .twin = 2, .span = TD_TAPE_NONE, .phase = BACKWARD, .flags = REPLAYED },
  { .key = 5, .twin = -1, .span = TD_TAPE_NONE, .phase = TD_TAPE_PHASE_ACCUMULATE },
  { .key = 6, .twin = 2, .span = TD_TAPE_NONE, .phase = BACKWARD, .flags = REPLAYED },
  { .key = 7, .twin = 1, .span = TD_TAPE_NONE, .phase = BACKWARD, .flags = REPLAYED },
};
static const TdTapeRun hand_runs[] = {
  { .chain = 1, .schedule = 1, .list = 0, .begin = 1, .end = 3, .kind = TD_TAPE_RUN_REPLAYED },
  { .chain = 1, .schedule = 1, .list = 1, .begin = 3, .end = 7, .kind = TD_TAPE_RUN_REPLAYED },
};
static const TdTapeIteration by_hand = { .size = sizeof by_hand,
                                         .number = 1,
                                         .events = hand_events,
                                         .n_events = 7,
                                         .runs = hand_runs,
                                         .n_runs = 2 };

static void
iteration__knows_which_step_each_replayed_event_was (void **state)
{
  static const gint steps[] = { -1, 0, 1, 5, -1, 6, 7 };
  g_autoptr (TdIteration) iteration = td_iteration_new (&no_names, NULL, NULL, &by_hand, NULL);
  Fixture f = at (1);

  for (guint e = 0; e < 7; e++)
    {
      const TdReplayed *r = td_iteration_get_replayed (iteration, e);

      assert_int_equal (r != NULL, steps[e] >= 0);
      if (!r)
        continue;
      assert_int_equal (r->function, 1);
      assert_int_equal (r->schedule, 1);
      assert_int_equal (td_replayed_step (r, f.statics->functions[0].tape), steps[e]);
    }
  assert_null (td_iteration_get_replayed (iteration, 7));
  fixture_clear (&f);
}

/* A row stands for the event that ran it, a member of a group for the group's. */
static void
statics__rows_and_events_stand_for_each_other (void **state)
{
  static const guint64 key_of_row[] = { 2, 3, 3, 3, 0, 4, 6, 7 };
  static const char *const use_after[]
      = { "free",          "1 in forward",  "1 awaiting backward",
          "1 in backward", "1 in backward", "1 in backward",
          "free" };
  static const guint64 group_key = 3;
  Fixture f = at (1);
  g_autoptr (TdIteration) iteration = td_iteration_new (&no_names, NULL, NULL, &by_hand, NULL);
  g_autoptr (TdStatics) statics = td_statics_new (f.reader, iteration);
  const TdStaticsFunction *c = statics->functions;

  assert_int_equal (c->n_rows, G_N_ELEMENTS (key_of_row));
  for (guint i = 0; i < c->n_rows; i++)
    assert_int_equal (td_statics_row_key (statics, c, i, -1), key_of_row[i]);
  for (gint e = 0; e < 7; e++)
    {
      TdStaticsUse use = td_statics_use (c, e);
      g_autofree char *text = td_statics_use_text (&use);

      assert_string_equal (text, use_after[e]);
    }
  g_autofree guint8 *events
      = td_viz_graph_mark_events (td_iteration_get_graph (iteration), &group_key, 1);
  g_autofree guint8 *rows = td_statics_mark_rows (c, events);
  for (guint i = 0; i < c->n_rows; i++)
    assert_int_equal (rows[i], i >= 1 && i <= 3);
  assert_int_equal (statics->steps[2].schedule, 1);
  assert_int_equal (statics->steps[2].step, 1);
  assert_int_equal (statics->steps[0].schedule, 0);
  assert_int_equal (td_statics_find_function (statics, "block"), 0);
  assert_int_equal (td_statics_find_function (statics, "1"), 0);
  assert_int_equal (td_statics_find_function (statics, "2"), -1);
  assert_true (td_statics_choose (statics, 0, 1));
  assert_false (td_statics_choose (statics, 0, 7));
  fixture_clear (&f);
}

/* By hand: events 1 and 2 are the code of a verified call, 3 and 4 its schedule. x (0) is
 * everybody's; the code made 1 and 2 and 64 bytes that live until the schedule has run. */
static void
iteration__shows_a_verified_call_as_if_it_had_run_once (void **state)
{
  static const guint32 ins[] = { 0, 0, 1, 0, 3, 4 }, outs[] = { 5, 1, 2, 3, 4, 6 };
  static const TdTapeEvent events[] = {
    { .key = 1, .twin = -1, .span = 0, .first_in = 0, .n_in = 1, .first_out = 0, .n_out = 1 },
    { .key = 2, .twin = -1, .span = 1, .first_in = 1, .n_in = 1, .first_out = 1, .n_out = 1 },
    { .key = 3, .twin = -1, .span = 1, .first_in = 2, .n_in = 1, .first_out = 2, .n_out = 1 },
    { .key = 4, .twin = -1, .span = 0, .first_in = 3, .n_in = 1, .first_out = 3, .n_out = 1 },
    { .key = 5, .twin = -1, .span = 0, .first_in = 4, .n_in = 1, .first_out = 4, .n_out = 1 },
    { .key = 6, .twin = 4, .span = 0, .first_in = 5, .n_in = 1, .first_out = 5, .n_out = 1 },
  };
  static const guint64 start[] = { 0, 10, 20, 30, 40, 50 }, duration[] = { 1, 2, 3, 4, 5, 6 };
  static const TdTapeVar vars[] = {
    { .key = 10, .producer = -1 }, { .key = 11, .producer = 1 }, { .key = 12, .producer = 2 },
    { .key = 13, .producer = 3 },  { .key = 14, .producer = 4 }, { .key = 15, .producer = 0 },
    { .key = 16, .producer = 5 },
  };
  static const TdTapeSpan spans[] = {
    { .key = 20, .parent = TD_TAPE_NONE, .begin = 0, .end = 6 },
    { .key = 21, .parent = 0, .begin = 1, .end = 3, .depth = 1 },
  };
  static const TdTapeMemory memory[] = {
    { .kind = TD_TAPE_MEMORY_ALLOC, .event = 1, .bytes = 32, .buffer = 1, .var = 0 },
    { .kind = TD_TAPE_MEMORY_ALLOC, .event = 1, .bytes = 64, .buffer = 2, .var = 1 },
    { .kind = TD_TAPE_MEMORY_ALLOC, .event = 2, .bytes = 8, .buffer = 3, .var = TD_TAPE_NONE },
    { .kind = TD_TAPE_MEMORY_FREE, .event = 2, .bytes = 8, .buffer = 3, .var = TD_TAPE_NONE },
    { .kind = TD_TAPE_MEMORY_ALLOC, .event = 3, .bytes = 16, .buffer = 4, .var = 3 },
    { .kind = TD_TAPE_MEMORY_FREE, .event = 5, .bytes = 64, .buffer = 2, .var = TD_TAPE_NONE },
  };
  static const TdTapeRun runs[] = {
    { .chain = 1,
      .begin = 1,
      .end = 3,
      .kind = TD_TAPE_RUN_VERIFICATION,
      .flags = TD_TAPE_RUN_DISCARDED },
    { .chain = 1, .schedule = 1, .begin = 3, .end = 5, .kind = TD_TAPE_RUN_REPLAYED },
  };
  const TdTapeIteration tape = {
    .size = sizeof tape,
    .events = events,
    .n_events = 6,
    .event_start_ns = start,
    .event_duration_ns = duration,
    .ins = ins,
    .n_ins = 6,
    .outs = outs,
    .n_outs = 6,
    .vars = vars,
    .n_vars = 7,
    .spans = spans,
    .n_spans = 2,
    .memory = memory,
    .n_memory = 6,
    .runs = runs,
    .n_runs = 2,
    .peak_bytes = 132,
    .stop = { .stopped = 1, .event = 6 },
  };
  g_autoptr (TdIteration) iteration = td_iteration_new (&no_names, NULL, NULL, &tape, NULL);
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  static const guint64 keys[] = { 1, 4, 5, 6 };

  assert_int_equal (it->n_events, 4);
  for (guint e = 0; e < 4; e++)
    assert_int_equal (it->events[e].key, keys[e]);
  assert_int_equal (it->event_start_ns[1], 30);
  assert_int_equal (it->event_duration_ns[2], 5);
  assert_int_equal (it->events[3].twin, 2);
  assert_int_equal (it->n_vars, 5); /* without 11 and 12 */
  assert_int_equal (it->vars[it->ins[it->events[2].first_in]].key, 13);
  assert_int_equal (it->vars[it->outs[it->events[3].first_out]].producer, 3);
  assert_int_equal (it->n_spans, 1);
  assert_int_equal (it->spans[0].end, 4);
  assert_int_equal (it->n_memory, 2);
  assert_int_equal (it->memory[1].event, 1);
  assert_int_equal (it->memory[1].var, 1);
  assert_int_equal (it->peak_bytes, 48);
  assert_int_equal (it->end_bytes, 48);
  assert_int_equal (it->n_runs, 1);
  assert_int_equal (it->runs[0].begin, 1);
  assert_int_equal (it->runs[0].end, 3);
  assert_int_equal (it->stop.event, 4);
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
    td_test (statics__rows_and_events_stand_for_each_other),
    td_test (iteration__knows_which_step_each_replayed_event_was),
    td_test (iteration__shows_a_verified_call_as_if_it_had_run_once),
  };

  return cmocka_run_group_tests_name ("statics", tests, NULL, NULL);
}
