/*
 * Buffers over steps: bars equal the tape's records, sums equal a recount.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <string.h>

#include "lenet-tape.h"
#include "memory/td-memory.h"
#include "schedule/td-gantt.h"
#include "td-test.h"

typedef struct
{
  TdTapeReader *reader;
  TdIteration *iteration;
  TdGantt *gantt;
} Fixture;

static Fixture
measured (guint64 number)
{
  LenetOptions o = LENET_DEFAULT;
  const char *path = td_test_tmp ("gantt.tdtape");
  char error[160];
  Fixture f;

  lenet_tape_write (path, &o);
  f.reader = td_tape_reader_open (path, error, sizeof error);
  f.iteration = lenet_tape_load (f.reader, number);
  f.gantt = td_gantt_new (f.iteration);
  return f;
}

static void
fixture_clear (Fixture *f)
{
  td_gantt_free (f->gantt);
  td_iteration_unref (f->iteration);
  td_tape_reader_free (f->reader);
}

/* At each step the bars, and what lives throughout, are what the memory panel counts, but for
 * bytes of the beginning that the hand-made tape lists no block for. */
static void
gantt__sums_equal_the_recount_at_every_step (void **state)
{
  Fixture f = measured (5);
  TdMemoryProfile *profile = td_memory_profile_new (f.iteration);
  guint64 most = 0, unlisted = 0;

  for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    unlisted += td_iteration_get_tape (f.iteration)->start_bytes[c];
  for (guint i = 0; i < td_iteration_get_tape (f.iteration)->n_blocks; i++)
    unlisted -= td_iteration_get_tape (f.iteration)->blocks[i].bytes;
  assert_int_equal (f.gantt->n_steps, profile->n_steps);
  assert_true (f.gantt->n_bars > 20);
  for (guint step = 0; step < f.gantt->n_steps; step++)
    {
      guint64 bytes = 0;

      for (guint i = 0; i < f.gantt->n_bars; i++)
        if (f.gantt->bars[i].from <= step && step < f.gantt->bars[i].to)
          bytes += f.gantt->bars[i].bytes;
      most = MAX (most, bytes);
      assert_int_equal (bytes + f.gantt->bytes_throughout + unlisted, profile->total[step]);
    }
  assert_int_equal (f.gantt->most_alive, most);
  td_memory_profile_free (profile);
  fixture_clear (&f);
}

static void
gantt__bars_that_live_together_do_not_overlap (void **state)
{
  Fixture f = measured (5);
  const TdGantt *g = f.gantt;

  for (guint i = 0; i < g->n_bars; i++)
    for (guint j = i + 1; j < g->n_bars; j++)
      {
        const TdGanttBar *a = &g->bars[i], *b = &g->bars[j];
        gboolean together = a->from < b->to && b->from < a->to;
        gboolean apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;

        assert_true (!together || apart);
      }
  fixture_clear (&f);
}

static void
gantt__bars_name_what_made_them (void **state)
{
  Fixture f = measured (5);
  const TdTapeIteration *t = td_iteration_get_tape (f.iteration);
  guint n_named = 0;

  for (guint i = 0; i < f.gantt->n_bars; i++)
    {
      const TdGanttBar *bar = &f.gantt->bars[i];

      if (bar->event < 0)
        continue;
      const char *op = td_iteration_get_op_name (f.iteration, (guint)bar->event);
      assert_int_equal (strncmp (bar->name, op, strlen (op)), 0);
      assert_true (bar->from <= (guint)bar->event);
      n_named++;
    }
  assert_true (n_named > 20);
  assert_int_equal (f.gantt->first_backward, 13);
  assert_int_equal (t->events[13].phase, TD_TAPE_PHASE_BACKWARD);
  fixture_clear (&f);
}

static void
gantt__of_a_plan_draws_offsets_and_the_arena (void **state)
{
  const TdGanttBar bars[] = {
    { .from = 2, .to = 4, .offset = 1024, .bytes = 512, .key = 7, .event = 2, .name = "late" },
    { .from = 0, .to = 3, .offset = 0, .bytes = 1024, .key = 6, .event = 0, .name = "early" },
  };
  g_autoptr (TdGantt) g = td_gantt_new_planned (4, bars, 2, 2048, 3);
  const guint64 selected = 7;
  TdPanelView view = {
    .width = 640, .height = 240, .event = 2, .head = -1, .selected = &selected, .n_selected = 1
  };
  g_autoptr (TdScene) scene = td_gantt_scene (g, 0, &view);
  g_autofree char *dump = td_scene_dump (scene);
  TdSceneRect early, late;

  assert_string_equal (g->bars[0].name, "early"); /* in order of beginning */
  assert_int_equal (g->most_alive, 1536);
  assert_int_equal (g->most_alive_step, 2);
  assert_int_equal (g->extent, 1536);
  assert_true (td_scene_find_key (scene, 6, &early));
  assert_true (td_scene_find_key (scene, 7, &late));
  assert_true (late.y + late.height <= early.y + 0.001); /* higher up */
  assert_true (late.x > early.x);
  assert_contains (dump, "2.05 kB planned");
  assert_contains (dump, "stroke=accent");
}

static void
gantt__of_nothing_says_so (void **state)
{
  g_autoptr (TdGantt) g = td_gantt_new_planned (4, NULL, 0, 0, -1);
  TdPanelView view = { .width = 400, .height = 200, .event = -1, .head = -1 };
  g_autoptr (TdScene) scene = td_gantt_scene (g, 0, &view);
  g_autofree char *dump = td_scene_dump (scene);

  assert_contains (dump, "No buffers on the tape");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (gantt__sums_equal_the_recount_at_every_step),
    td_test (gantt__bars_that_live_together_do_not_overlap),
    td_test (gantt__bars_name_what_made_them),
    td_test (gantt__of_a_plan_draws_offsets_and_the_arena),
    td_test (gantt__of_nothing_says_so),
  };

  return cmocka_run_group_tests_name ("gantt", tests, NULL, NULL);
}
