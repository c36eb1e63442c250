/*
 * The flame graph: its sums are the iteration's, its boxes lie in one another, and its labels
 * tell boxes apart.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/td-flame.h"
#include "schedule/td-schedule.h"
#include "td-synthetic.h"
#include "td-test.h"

static const TdPanelView usual = { .width = 900, .height = 260, .event = -1, .head = -1 };

/* ---- sums ---- */

static void
assert_sums (const TdFlame *flame)
{
  g_autofree guint64 *sums = g_new0 (guint64, flame->n * TD_N_FLAME_SIZES);
  TdSchedule *schedule = td_schedule_new (flame->iteration);

  for (gint i = 1; i < (gint)flame->n; i++)
    for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
      {
        const TdFlameNode *node = &flame->nodes[i], *parent = &flame->nodes[node->parent];

        assert_in_range (node->parent, 0, i - 1);
        assert_true (node->end <= parent->end);
        assert_int_equal (node->depth, parent->depth + 1);
        /* begins where the one before it in the same parent ends */
        assert_int_equal (node->start[s],
                          parent->start[s] + sums[node->parent * TD_N_FLAME_SIZES + (gint)s]);
        sums[node->parent * TD_N_FLAME_SIZES + (gint)s] += node->size[s];
      }
  for (guint i = 0; i < flame->n; i++)
    for (guint s = 0; s < TD_N_FLAME_SIZES && !flame->nodes[i].is_op; s++)
      assert_int_equal (sums[i * TD_N_FLAME_SIZES + s], flame->nodes[i].size[s]);
  assert_int_equal (flame->nodes[0].size[TD_FLAME_TIME], schedule->total_ns);
  assert_int_equal (flame->nodes[0].size[TD_FLAME_BYTES], schedule->total_bytes);
  assert_int_equal (flame->nodes[0].n_ops, schedule->n_rows);
  assert_int_equal (flame->nodes[0].end, flame->n);
  td_schedule_free (schedule);
}

static void
flame__children_are_the_parent_and_all_is_the_iteration (void **state)
{
  TdIteration *iterations[] = { td_synthetic_lenet (3), td_synthetic_lstm (1, 35, TRUE, TRUE),
                                td_synthetic_residual (2, 900, TRUE) };

  for (gsize i = 0; i < G_N_ELEMENTS (iterations); i++)
    {
      g_autoptr (TdFlame) flame = td_flame_new (iterations[i]);

      assert_sums (flame);
      td_iteration_unref (iterations[i]);
    }
}

/* Every operation is there once, in the lane in which it ran. */
static void
flame__has_every_operation_once (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lstm (1, 35, FALSE, TRUE);
  g_autoptr (TdFlame) flame = td_flame_new (it);
  g_autofree guint8 *seen = g_malloc0 (td_iteration_get_n_events (it));

  for (guint i = 0; i < flame->n; i++)
    if (flame->nodes[i].is_op)
      {
        guint event = (guint)flame->nodes[i].event;

        assert_int_equal (seen[event]++, 0);
        assert_int_equal (flame->nodes[i].lane,
                          td_viz_graph_get_event_lane (td_iteration_get_graph (it), event));
      }
  for (guint e = 0; e < td_iteration_get_n_events (it); e++)
    assert_int_equal (seen[e], 1);
}

/* Sections are a matter of drawing graphs: what is cut into them has no boxes for them. */
static void
flame__has_no_sections (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_residual (2, 900, TRUE);
  g_autoptr (TdFlame) flame = td_flame_new (it);

  assert_true (flame->n > 900);
  for (guint i = 0; i < flame->n; i++)
    assert_false (g_str_has_prefix (flame->nodes[i].name, "ops "));
}

/* ---- finding and walking ---- */

static gint
find_named (const TdFlame *flame, const char *name, TdLane lane)
{
  for (guint i = 0; i < flame->n; i++)
    if (strcmp (flame->nodes[i].name, name) == 0 && flame->nodes[i].lane == lane)
      return (gint)i;
  fail_msg ("no %s", name);
  return -1;
}

static void
flame__finds_a_layer_in_both_lanes_by_its_one_key (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (3);
  g_autoptr (TdFlame) flame = td_flame_new (it);
  gint forward = find_named (flame, "block2", TD_LANE_FORWARD);
  gint backward = find_named (flame, "block2", TD_LANE_BACKWARD);

  assert_int_equal (flame->nodes[forward].key, flame->nodes[backward].key);
  assert_int_equal (td_flame_find (flame, flame->nodes[forward].key, TD_LANE_BACKWARD),
                    backward);
  assert_int_equal (td_flame_find (flame, flame->nodes[forward].key, TD_FLAME_ALL), forward);
  assert_int_equal (flame->nodes[td_flame_find (flame, 0, TD_LANE_UPDATE)].depth, 1);
  assert_int_equal (td_flame_find (flame, 4711, TD_FLAME_ALL), -1);
}

static void
flame__finds_what_made_a_variable (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (3);
  g_autoptr (TdFlame) flame = td_flame_new (it);
  const TdTapeIteration *t = td_iteration_get_tape (it);
  gint node = td_flame_find (flame, t->vars[t->outs[t->events[4].first_out]].key, TD_FLAME_ALL);

  assert_true (node > 0);
  assert_int_equal (flame->nodes[node].event, 4);
}

static void
flame__walks_to_what_is_beside_above_and_below (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (3);
  g_autoptr (TdFlame) flame = td_flame_new (it);
  gint block1 = find_named (flame, "block1", TD_LANE_FORWARD);
  gint block2 = find_named (flame, "block2", TD_LANE_FORWARD);
  gint backward = td_flame_find (flame, 0, TD_LANE_BACKWARD);
#define STEP(zoom, at, way) td_flame_step (flame, TD_FLAME_TIME, zoom, at, TD_FLAME_##way)

  assert_int_equal (STEP (0, block1, RIGHT), block2);
  assert_int_equal (STEP (0, block2, LEFT), block1);
  assert_int_equal (STEP (0, STEP (0, block1, IN), OUT), block1);
  assert_int_equal (STEP (0, 0, OUT), -1);
  assert_int_equal (STEP (0, 0, LEFT), -1);
  assert_int_equal (STEP (block1, block1, OUT), -1); /* zoomed in, it is the top */
  assert_int_equal (STEP (block1, block1, RIGHT), -1);
  assert_int_equal (STEP (0, STEP (0, block1, LAST), RIGHT), -1);
  assert_int_equal (STEP (0, STEP (0, block1, LAST), FIRST), block1);
  assert_int_equal (STEP (0, STEP (0, 0, IN), RIGHT), backward);
}

/* ---- words ---- */

static void
flame__says_path_share_and_numbers (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (3);
  g_autoptr (TdFlame) flame = td_flame_new (it);
  gint block2 = find_named (flame, "block2", TD_LANE_FORWARD);
  g_autofree char *of_layer = td_flame_describe (flame, block2, TD_FLAME_TIME);
  g_autofree char *of_op = td_flame_describe (
      flame, td_flame_step (flame, TD_FLAME_TIME, 0, block2, TD_FLAME_IN), TD_FLAME_TIME);
  g_autofree char *title = td_flame_title (flame, 0, TD_FLAME_TIME);
  g_autofree char *zoomed = td_flame_title (flame, block2, TD_FLAME_TIME);

  /* 3 of 45 operations of 500 ns each */
  assert_contains (of_layer, "block2 · forward · 1.50 µs, 6.67 % · ");
  assert_contains (of_layer, " · 3 operations");
  assert_contains (of_op, "block2 › ");
  assert_contains (of_op, " · event ");
  assert_contains (title, "22.5 µs in 45 operations");
  assert_contains (zoomed, "1.50 µs, 6.67 % of iteration 3 · Forward › block2");
}

static char *
flame_text (const TdFlame *flame, TdFlameSize size, const char *format)
{
  TdSink sink = { .text = g_string_new (NULL) };

  td_flame_print (flame, size, format, &sink);
  return g_string_free (sink.text, FALSE);
}

static void
flame__folded_stacks_add_up_to_the_iteration (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lstm (1, 35, FALSE, TRUE);
  g_autoptr (TdFlame) flame = td_flame_new (it);

  for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
    {
      g_autofree char *text = flame_text (flame, (TdFlameSize)s, "folded");
      g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
      g_autoptr (GHashTable) stacks = g_hash_table_new (g_str_hash, g_str_equal);
      guint64 sum = 0;

      for (guint i = 0; *lines[i]; i++)
        {
          char *space = strrchr (lines[i], ' ');

          assert_true (g_str_has_prefix (lines[i], "iteration 1;"));
          sum += g_ascii_strtoull (space + 1, NULL, 10);
          *space = '\0';
          assert_true (g_hash_table_add (stacks, lines[i])); /* none is there twice */
        }
      assert_int_equal (sum, flame->nodes[0].size[s]);
    }
}

/* ---- the picture ---- */

static TdScene *
draw (const TdFlame *flame, gint zoom, const TdPanelView *view)
{
  TdFlameLook look = { .size = TD_FLAME_TIME, .zoom = zoom, .cursor = -1 };

  return td_flame_scene (flame, &look, view);
}

/* The middle of every pixel of a row answers with the node that is there, or with what is too
 * narrow; boxes are never outside of what they are in. */
static void
flame__boxes_lie_in_what_they_are_in (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (3);
  g_autoptr (TdFlame) flame = td_flame_new (it);
  g_autoptr (TdScene) scene = draw (flame, 0, &usual);
  guint n_found = 0;

  for (guint i = 1; i < flame->n; i++)
    {
      TdSceneRect box, around;
      gint parent = flame->nodes[i].parent;

      if (!flame->nodes[i].key || !flame->nodes[parent].key
          || flame->nodes[i].lane != TD_LANE_FORWARD
          || !td_scene_find_key (scene, flame->nodes[i].key, &box)
          || !td_scene_find_key (scene, flame->nodes[parent].key, &around))
        continue;
      assert_true (box.x >= around.x - 1e-6);
      assert_true (box.x + box.width <= around.x + around.width + 1e-6);
      assert_true (box.y > around.y);
      n_found++;
    }
  assert_true (n_found >= 10);
}

static void
flame__zoomed_into_a_layer_it_is_as_wide_as_the_picture (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (3);
  g_autoptr (TdFlame) flame = td_flame_new (it);
  gint block2 = find_named (flame, "block2", TD_LANE_FORWARD);
  g_autoptr (TdScene) whole = draw (flame, 0, &usual);
  g_autoptr (TdScene) scene = draw (flame, block2, &usual);
  TdSceneRect before, box, other;

  assert_true (td_scene_find_key (whole, flame->nodes[block2].key, &before));
  assert_true (td_scene_find_key (scene, flame->nodes[block2].key, &box));
  assert_true (box.width > 880);
  assert_true (before.width < 80);
  assert_false (td_scene_find_key (
      scene, flame->nodes[find_named (flame, "block1", TD_LANE_FORWARD)].key, &other));
}

/* Layers whose names begin and end alike, of two operations each so that they have boxes. */
static TdIteration *
make_alike (void)
{
  TdSynthetic *s = td_synthetic_new (1);
  guint x = td_synthetic_input (s, "x", TD_SHAPE (4, 4));

  for (guint i = 0; i < 9; i++)
    {
      g_autofree char *path = g_strdup_printf ("encoder_layer_%u_attention_output", i * i * 37);

      td_synthetic_enter_link (s, path, 10 + 7 * i);
      x = TD_OP (s, "relu", 11 + 7 * i, TD_SHAPE (4, 4), x);
      x = TD_OP (s, "linear", 40 + 7 * i, TD_SHAPE (4, 4), x);
      td_synthetic_leave (s);
    }
  return td_synthetic_finish (s);
}

/* Texts of a row that are equal stand for names that are equal. */
static void
flame__no_two_names_are_cut_to_the_same_text (void **state)
{
  g_autoptr (TdIteration) it = make_alike ();
  g_autoptr (TdFlame) flame = td_flame_new (it);
  guint n_cut = 0;

  for (int width = 300; width <= 2400; width += 150)
    {
      TdPanelView view = usual;
      view.width = width;
      g_autoptr (TdScene) scene = draw (flame, 0, &view);
      g_autofree char *dump = td_scene_dump (scene);
      g_auto (GStrv) lines = g_strsplit (dump, "\n", -1);
      g_autoptr (GHashTable) names
          = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

      for (guint i = 0; lines[i]; i++)
        {
          double x, y;
          char *text = strchr (lines[i], '"');
          TdSceneHit hit;

          if (!text || sscanf (lines[i], "text %lf %lf", &x, &y) != 2
              || !td_scene_hit (scene, x + 1, y, 0, &hit) || hit.tag != TD_TAG_ROW)
            continue;
          const char *name = flame->nodes[hit.data].name;
          char *shown = g_strdup_printf ("%g %.*s", y, (int)strcspn (text + 1, "\""), text + 1);
          const char *other = g_hash_table_lookup (names, shown);

          n_cut += !strstr (shown, name);
          if (other)
            assert_string_equal (other, name);
          g_hash_table_insert (names, shown, (gpointer)name);
        }
    }
  assert_true (n_cut > 10);
}

/* Names end within a character, and are cut: nothing is read after them. */
static void
flame__draws_names_that_are_no_text (void **state)
{
  static const char *const names[] = { "convolution_of_\xe2\x82", "\xff\xff\xff\xff\xf0" };
  TdSynthetic *s = td_synthetic_new (1);
  guint x = td_synthetic_input (s, "x", TD_SHAPE (4, 4));

  for (guint i = 0; i < 12; i++)
    {
      td_synthetic_enter_link (s, names[i / 6], 10 + i);
      x = TD_OP (s, names[i % 2], 20 + i, TD_SHAPE (4, 4), x);
      x = TD_OP (s, names[(i + 1) % 2], 40 + i, TD_SHAPE (4, 4), x);
      td_synthetic_leave (s);
    }
  g_autoptr (TdIteration) it = td_synthetic_finish (s);
  g_autoptr (TdFlame) flame = td_flame_new (it);
  for (int width = 60; width < 1500; width += 60)
    {
      TdPanelView view = usual;
      view.width = width;
      g_autoptr (TdScene) scene = draw (flame, 0, &view);
      assert_true (td_scene_n_items (scene) > 0);
    }
  for (guint i = 0; i < flame->n; i++)
    assert_true (g_utf8_validate (flame->nodes[i].name, -1, NULL));
}

static void
flame__of_100000_operations_draws_what_can_be_seen (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_residual (2, 100100, FALSE);
  g_autoptr (TdFlame) flame = td_flame_new (it);
  g_autoptr (TdScene) scene = draw (flame, 0, &usual);
  TdSceneHit hit;

  assert_int_equal (flame->nodes[0].n_ops, td_iteration_get_n_events (it));
  assert_true (flame->nodes[0].n_ops >= 100000);
  assert_true (td_scene_n_items (scene) < 2000);
  assert_sums (flame);
  /* what is drawn together says how much it is */
  assert_true (td_scene_hit (scene, 450, 4 + 24 * 2.5, 0, &hit));
  assert_contains (hit.tooltip, "too narrow to be seen");
}

/* ---- times of devices ---- */

/* The first event was timed exactly, the second now and then; the third ran there untimed. */
static void
flame__sampled_and_missing_times_look_and_read_otherwise (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (3);
  TdTapeIteration *t = (TdTapeIteration *)(gpointer)td_iteration_get_tape (it);
  const TdTapeDeviceTime times[] = {
    { .duration_ns = 9000, .event = 0, .device = 1, .kind = TD_TAPE_DEVICE_TIME_EXACT },
    { .duration_ns = 8000, .event = 1, .device = 1, .kind = TD_TAPE_DEVICE_TIME_SAMPLED },
  };
  static const char *const said[] = { "9.00 µs", "≈8.00 µs", "500 ns" };
  static const char *const drawn[]
      = { "fill=parameter", "hatch-down", "fill=view stroke=parameter" };
  TdTapeVar *vars = (TdTapeVar *)(gpointer)t->vars;

  t->device_times = times;
  t->n_device_times = G_N_ELEMENTS (times);
  for (guint e = 0; e < 3; e++)
    vars[t->outs[t->events[e].first_out]].device = 1;
  g_autoptr (TdFlame) flame = td_flame_new (it);
  t->device_times = NULL;
  t->n_device_times = 0;
  g_autoptr (TdScene) scene = draw (flame, 0, &usual);
  g_autofree char *dump = td_scene_dump (scene);
  for (guint e = 0; e < 3; e++)
    {
      gint node = td_flame_find (flame, t->events[e].key, TD_FLAME_ALL);
      g_autofree char *words = td_flame_describe (flame, node, TD_FLAME_TIME);

      assert_contains (words, said[e]);
      assert_int_equal (strstr (words, "not timed where it ran") != NULL, e == 2);
      assert_contains (dump, drawn[e]);
    }
  assert_int_equal (flame->nodes[0].size[TD_FLAME_TIME], 9000 + 8000 + 43 * 500);
  g_autofree char *all = td_flame_title (flame, 0, TD_FLAME_TIME);
  assert_contains (all, "≈38.5 µs in 45 operations");
  assert_contains (all, "1 not timed where they ran");
}

static char *
schedule_picture (const TdSchedule *schedule, double height)
{
  TdPanelView view = { .width = 480, .height = height, .event = -1, .head = -1 };
  g_autoptr (TdScene) scene = td_schedule_scene (schedule, NULL, &view);

  return td_scene_dump (scene);
}

static void
schedule__as_high_as_its_rows_says_which_it_leaves_out (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lstm (1, 500, FALSE, TRUE);
  TdSchedule *s = td_schedule_new (it);
  g_autofree char *all = schedule_picture (s, 0), *some = schedule_picture (s, 600);
  g_autofree char *words = g_strdup_printf ("rows 1 to 1000 of %u:", s->n_rows);

  assert_in_range (s->n_rows, 1001, 100000);
  assert_contains (all, words);
  assert_contains (all, "\"999\"");
  assert_not_contains (all, "\"1000\"");
  assert_not_contains (some, "rows 1 to");
  td_schedule_free (s);
}

/* A recording without times: nothing is a share of it, and no time is said to be one. */
static void
flame__of_no_times_says_so_and_lists_its_layers (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (3);
  TdTapeIteration *t = (TdTapeIteration *)(gpointer)td_iteration_get_tape (it);
  const guint64 *durations = t->event_duration_ns;

  t->event_duration_ns = NULL;
  g_autoptr (TdFlame) flame = td_flame_new (it);
  t->event_duration_ns = durations;
  gint op = td_flame_find (flame, t->events[0].key, TD_FLAME_ALL);
  gint layer = find_named (flame, "block2", TD_LANE_BACKWARD);
  g_autofree char *text = flame_text (flame, TD_FLAME_TIME, "text");
  g_autofree char *title = td_flame_title (flame, 0, TD_FLAME_TIME);
  g_autofree char *op_words = td_flame_describe (flame, op, TD_FLAME_TIME);
  g_autofree char *layer_words = td_flame_describe (flame, layer, TD_FLAME_TIME);
  const char *const all[] = { text, op_words, layer_words };

  assert_string_equal (title, "not timed: 45 operations");
  for (gsize i = 0; i < G_N_ELEMENTS (all); i++)
    {
      assert_contains (all[i], "not timed");
      assert_null (strstr (all[i], "where it ran"));
      assert_null (strstr (all[i], "where they ran"));
      assert_null (strstr (all[i], "how long it took"));
    }
  assert_contains (layer_words, " · not timed, — · ");
  assert_contains (text, "block2\n");
  assert_null (strstr (text, "not listed"));
  assert_null (strstr (text, "0 %"));
}

/* The updates change what is there: by bytes they are nothing, which is no matter of times. */
static void
flame__of_updates_by_bytes_does_not_speak_of_time (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (3);
  TdTapeIteration *t = (TdTapeIteration *)(gpointer)td_iteration_get_tape (it);
  TdTapeVar *vars = (TdTapeVar *)(gpointer)t->vars;

  for (guint i = 0; i < t->n_vars; i++)
    vars[i].bytes = 0;
  g_autoptr (TdFlame) flame = td_flame_new (it);
  for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
    {
      TdFlameLook look = { .size = (TdFlameSize)s, .cursor = -1 };
      g_autoptr (TdScene) scene = td_flame_scene (flame, &look, &usual);
      g_autofree char *dump = td_scene_dump (scene);

      assert_int_equal (strstr (dump, "block2") != NULL, s == TD_FLAME_TIME);
      assert_int_equal (strstr (dump, "no outputs that take bytes") != NULL,
                        s == TD_FLAME_BYTES);
      assert_null (strstr (dump, "has no time"));
    }
  g_autofree char *text = flame_text (flame, TD_FLAME_BYTES, "text");
  assert_contains (text, "block2\n");
  assert_null (strstr (text, "not listed"));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (flame__children_are_the_parent_and_all_is_the_iteration),
    td_test (flame__has_every_operation_once),
    td_test (flame__has_no_sections),
    td_test (flame__finds_a_layer_in_both_lanes_by_its_one_key),
    td_test (flame__finds_what_made_a_variable),
    td_test (flame__walks_to_what_is_beside_above_and_below),
    td_test (flame__says_path_share_and_numbers),
    td_test (flame__folded_stacks_add_up_to_the_iteration),
    td_test (flame__boxes_lie_in_what_they_are_in),
    td_test (flame__zoomed_into_a_layer_it_is_as_wide_as_the_picture),
    td_test (flame__no_two_names_are_cut_to_the_same_text),
    td_test (flame__draws_names_that_are_no_text),
    td_test (flame__of_100000_operations_draws_what_can_be_seen),
    td_test (flame__of_no_times_says_so_and_lists_its_layers),
    td_test (flame__of_updates_by_bytes_does_not_speak_of_time),
    td_test (flame__sampled_and_missing_times_look_and_read_otherwise),
    td_test (schedule__as_high_as_its_rows_says_which_it_leaves_out),
  };

  return cmocka_run_group_tests_name ("flame", tests, NULL, NULL);
}
