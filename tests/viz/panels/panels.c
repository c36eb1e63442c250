/*
 * The panels' models against recounts of the tape, and their pictures' text twins.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "gradient/td-gradient.h"
#include "gradient/td-tensor.h"
#include "layout/td-layout.h"
#include "lenet-tape.h"
#include "memory/td-memory.h"
#include "scene/td-graph-scene.h"
#include "schedule/td-curve.h"
#include "schedule/td-schedule.h"
#include "td-test.h"

typedef struct
{
  TdTapeReader *reader;
  TdIteration *it;
} Fixture;

static Fixture
open_lenet (const LenetOptions *options, guint64 number)
{
  const char *path = td_test_tmp ("lenet.tdtape");
  char error[160];
  Fixture f;

  lenet_tape_write (path, options);
  f.reader = td_tape_reader_open (path, error, sizeof error);
  assert_non_null (f.reader);
  f.it = lenet_tape_load (f.reader, number);
  return f;
}

static void
close_lenet (Fixture *f)
{
  td_iteration_unref (f->it);
  td_tape_reader_free (f->reader);
}

/* ---- memory ---- */

static void
memory__profile_equals_a_recount_at_every_event (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 2;
  Fixture f = open_lenet (&o, 1);
  const TdTapeIteration *t = td_iteration_get_tape (f.it);
  TdMemoryProfile *p = td_memory_profile_new (f.it);

  assert_int_equal (p->n_steps, 46);
  for (guint e = 0; e < p->n_steps; e++)
    {
      guint64 total = 0;

      for (guint c = 0; c < TD_TAPE_N_CATEGORIES; c++)
        {
          guint64 bytes = t->start_bytes[c];

          for (guint m = 0; m < t->n_memory; m++)
            if (t->memory[m].category == c && t->memory[m].event <= e)
              bytes += t->memory[m].kind == TD_TAPE_MEMORY_ALLOC ? t->memory[m].bytes
                                                                 : -t->memory[m].bytes;
          assert_int_equal (p->bytes[c][e], bytes);
          total += bytes;
        }
      assert_int_equal (p->total[e], total);
      assert_true (p->peak_bytes >= total);
    }
  assert_int_equal (p->peak_bytes, t->peak_bytes);
  td_memory_profile_free (p);
  close_lenet (&f);
}

static void
memory__history_splits_every_peak_into_categories (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.extra_relu_at = 7;
  Fixture f = open_lenet (&o, 0);
  TdTapeSummaries s = td_tape_reader_summaries (f.reader);
  TdMemoryHistory *h = td_memory_history_new (f.reader, (TdRange){ 0 }, 1000);

  assert_int_equal (h->n, 40);
  for (guint i = 0; i < h->n; i++)
    {
      guint64 total = 0;

      assert_int_equal (h->peak[i], s.rows[i].peak_bytes);
      assert_true (h->known[i]);
      for (guint c = 0; c < TD_TAPE_N_CATEGORIES; c++)
        total += h->bytes[c][i];
      assert_int_equal (total, h->peak[i]);
    }
  td_memory_history_free (h);
  h = td_memory_history_new (f.reader, (TdRange){ 0 },
                             7); /* fewer columns than iterations: the highest of each stays */
  guint64 highest = 0, shown = 0;
  for (guint i = 0; i < s.n; i++)
    highest = MAX (highest, s.rows[i].peak_bytes);
  for (guint i = 0; i < h->n; i++)
    shown = MAX (shown, h->peak[i]);
  assert_int_equal (h->n, 7);
  assert_int_equal (shown, highest);
  td_memory_history_free (h);
  close_lenet (&f);
}

static void
memory__blocks_alive_sum_to_the_profile (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 1;
  Fixture f = open_lenet (&o, 0);
  TdMemoryProfile *p = td_memory_profile_new (f.it);

  for (gint event = 0; event < 45; event += 4)
    {
      g_autoptr (GArray) blocks = td_memory_blocks_at (f.it, event);
      guint64 sum = 0, start = 0;

      for (guint i = 0; i < blocks->len; i++)
        sum += g_array_index (blocks, TdMemoryBlock, i).bytes;
      for (guint c = 0; c < TD_TAPE_N_CATEGORIES; c++)
        start += p->start[c]; /* the fixture names no blocks for what was there before */
      assert_int_equal (sum, p->total[event] - start);
    }
  td_memory_profile_free (p);
  close_lenet (&f);
}

/* ---- gradients ---- */

static void
gradient__tells_nan_missing_and_zero_apart (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.nan_at = 33;
  o.cut_at = 21;
  Fixture f = open_lenet (&o, 39);
  TdGradientTable *g = td_gradient_table_new (f.reader);
  double norm;

  TdGradientRange run = td_gradient_range_run (f.reader, 39);
  TdGradientRange zoom = td_gradient_range_newest (f.reader, 22, 3);
  td_gradient_table_load (g, f.reader, &run, 39);
  assert_int_equal (td_gradient_table_n_rows (g), 10);
  assert_string_equal (td_gradient_table_path (g, 8), "lenet/head/fc3/W");
  assert_int_equal (td_gradient_table_norm (g, 8, 33, &norm), TD_CELL_NAN);
  assert_int_equal (td_gradient_table_norm (g, 8, 32, &norm), TD_CELL_VALUE);
  /* the fixture's formula */
  assert_true (fabs (norm - 0.02 * (1 + 0.4 * sin (32 * 0.7 + 8))) < 1e-12);
  assert_int_equal (td_gradient_table_norm (g, 1, 21, &norm), TD_CELL_MISSING);
  assert_non_null (strstr (td_gradient_table_missing (g, 1, 21), "cut"));
  assert_null (td_gradient_table_missing (g, 1, 20));
  assert_null (td_gradient_table_missing (g, 0, 21));
  assert_int_equal (td_gradient_table_norm (g, 1, 1000, &norm), TD_CELL_MISSING);
  g_autofree char *json = td_gradient_print (g, &run, 39, "json");
  assert_contains (json, "\"nan\"");
  g_autofree char *csv = td_gradient_print (g, &zoom, 22, "csv");
  assert_contains (csv, "parameter,20,21,22\n");
  assert_contains (csv, ",,"); /* a missing cell is empty, not zero */
  td_gradient_table_free (g);
  close_lenet (&f);
}

/* Fewer columns than iterations, and more: the playhead is in the place that a press takes for
 * its iteration. */
static void
memory__playhead_is_in_the_place_of_its_iteration (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  Fixture f = open_lenet (&o, 39);

  for (guint columns = 7; columns < 100; columns += 50)
    {
      TdMemoryHistory *h = td_memory_history_new (f.reader, (TdRange){ 0 }, columns);

      for (gint64 i = 0; i < 40; i++)
        {
          TdPanelView v = { .width = 480, .height = 190, .iteration = i, .head = -1 };
          g_autoptr (TdScene) scene = td_memory_scene_iterations (h, &v);
          const TdSceneAxes *axes = td_scene_axes (scene);
          double x = axes->box.x + axes->box.width * ((double)i + 0.5) / 40;
          TdSceneHit hit;

          assert_true (axes->x0 == 0 && axes->x1 == 40);
          assert_int_equal (td_scene_axis_place (scene, x), i);
          assert_true (td_scene_hit (scene, x, axes->box.y - 8, 0.5, &hit));
          assert_int_equal (hit.tag, TD_TAG_PLAYHEAD);
        }
      td_memory_history_free (h);
    }
  close_lenet (&f);
}

static void
gradient__heat_map_marks_cells_in_its_dump (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.nan_at = 33;
  o.cut_at = 21;
  Fixture f = open_lenet (&o, 39);
  TdGradientTable *g = td_gradient_table_new (f.reader);
  TdPanelView v = { .width = 480, .height = 190, .iteration = 39, .event = -1, .head = -1 };
  TdSceneHit hit;

  TdGradientRange run = td_gradient_range_run (f.reader, 39);
  td_gradient_table_load (g, f.reader, &run, 39);
  g_autoptr (TdScene) scene = td_gradient_scene (g, f.it, &run, &v);
  g_autofree char *dump = td_scene_dump (scene);
  td_test_golden ("viz/gradients.scene", dump);
  assert_int_equal ((int)td_scene_axis_value (scene, td_scene_axes (scene)->box.x + 1), 0);
  assert_true (td_scene_hit (scene, td_scene_axes (scene)->box.x + 1,
                             td_scene_axes (scene)->box.y + 1, 0, &hit));
  assert_int_equal (hit.tag, TD_TAG_CELL);
  assert_int_equal (hit.row, 0);
  assert_int_equal (hit.number, 0);
  td_gradient_table_free (g);
  close_lenet (&f);
}

/* ---- schedule, curves, deck ---- */

static void
schedule__totals_equal_the_sum_of_the_rows (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.extra_relu_at = 20;
  Fixture f = open_lenet (&o, 39);
  const TdTapeIteration *t = td_iteration_get_tape (f.it);
  TdSchedule *s = td_schedule_new (f.it);
  guint64 ns = 0, bytes = 0;

  for (guint e = 0; e < t->n_events; e++)
    ns += t->event_duration_ns[e];
  for (guint k = 0; k < t->n_outs; k++)
    bytes += t->vars[t->outs[k]].bytes;
  assert_int_equal (s->total_ns, ns);
  assert_int_equal (s->total_bytes, bytes);
  assert_int_equal (s->phase_n[TD_TAPE_PHASE_FORWARD], 13);
  assert_int_equal (s->phase_n[TD_TAPE_PHASE_BACKWARD], 22);
  assert_int_equal (s->phase_n[TD_TAPE_PHASE_UPDATE], 10);
  g_autofree char *advice = td_schedule_advice (f.reader, 39, 0);
  assert_string_equal (advice,
                       "19 equal iterations: 45 operations could be one static schedule.");
  g_autofree char *changed = td_schedule_advice (f.reader, 20, 0);
  assert_string_equal (changed,
                       "Iteration 20 differs from the one before: 46 operations against 45.");
  g_autofree char *some = td_schedule_advice (f.reader, 39, 30);
  assert_string_equal (some,
                       "19 equal iterations: 30 of 45 operations ran from static schedules.");
  g_autofree char *all = td_schedule_advice (f.reader, 39, 45);
  assert_string_equal (all,
                       "19 equal iterations: all 45 operations ran from static schedules.");
  td_schedule_free (s);
  close_lenet (&f);
}

static void
gradients__of_a_program_without_an_optimizer_are_shown_and_none_is_missing (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  Fixture f = open_lenet (&o, 39);
  TdGradientTable *g = td_gradient_table_new (f.reader);
  TdPanelView v = { .iteration = 39, .event = -1, .head = -1 };

  /* the same iteration, but for the update */
  ((TdTapeIteration *)td_iteration_get_tape (f.it))->n_grads = 0;
  td_gradient_table_add (g, f.it);
  TdGradientRange run = td_gradient_range_run (f.reader, 39);
  g_autoptr (TdScene) map = td_gradient_scene (g, f.it, &run, &v);
  g_autoptr (TdScene) missing = td_gradient_scene_missing (g, &v);
  g_autofree char *map_text = td_scene_dump (map), *missing_text = td_scene_dump (missing);
  assert_null (strstr (map_text, "No optimizer update in these iterations"));
  assert_non_null (strstr (missing_text, "No optimizer update in this iteration"));
  assert_null (strstr (missing_text, "Every parameter got a gradient"));
  td_gradient_table_free (g);
  close_lenet (&f);
}

/* Of a long run not every iteration has a row, and the rows get fewer as it goes on. */
static void
schedule__counts_equal_iterations_that_have_no_row (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  Fixture f = open_lenet (&o, 39);
  char error[160];
  TdTapeReader *bounded
      = td_tape_reader_open_bounded (td_test_tmp ("lenet.tdtape"), 16, error, sizeof error);

  assert_non_null (bounded);
  assert_true (td_tape_reader_summaries (bounded).n < 40);
  g_autofree char *all = td_schedule_advice (f.reader, 39, 0);
  g_autofree char *sampled = td_schedule_advice (bounded, 39, 0);
  assert_string_equal (all, "40 equal iterations: 45 operations could be one static schedule.");
  assert_string_equal (sampled, all);
  td_tape_reader_free (bounded);
  close_lenet (&f);
}

static void
curve__range_equals_a_linear_search (void **state)
{
  TdCurves *c = td_curves_new ();
  GRand *rand = g_rand_new_with_seed (3);
  enum
  {
    N = 5000
  };
  g_autofree double *values = g_new (double, N);

  for (int i = 0; i < N; i++)
    {
      values[i] = i % 97 == 5    ? NAN
                  : i % 211 == 7 ? INFINITY
                                 : g_rand_double_range (rand, -3, 3);
      td_curves_append (c, "loss", i, values[i]);
    }
  for (int round = 0; round < 2000; round++)
    {
      guint a = (guint)g_rand_int_range (rand, 0, N),
            z = a + (guint)g_rand_int_range (rand, 0, N - (gint)a + 1), bad = 0;
      double lo = INFINITY, hi = -INFINITY, got_lo, got_hi;

      for (guint i = a; i < z; i++)
        if (isfinite (values[i]))
          {
            lo = MIN (lo, values[i]);
            hi = MAX (hi, values[i]);
          }
        else
          bad++;
      assert_int_equal (td_curves_range (c, 0, a, z, &got_lo, &got_hi), bad);
      assert_true (lo > hi ? got_lo > got_hi
                           : fabs (got_lo - lo) < 1e-6 && fabs (got_hi - hi) < 1e-6);
    }
  td_curves_free (c);
  g_rand_free (rand);
}

/* Folded, a curve has fewer entries; each is the extent of its values and none is lost. */
static void
curve__folded_is_bounded_and_keeps_every_extreme (void **state)
{
  enum
  {
    LIMIT = 256,
    N = 20001
  };
  TdCurves *c = td_curves_new ();
  GRand *rand = g_rand_new_with_seed (5);
  g_autofree double *values = g_new (double, N);

  td_curves_set_limit (c, LIMIT);
  for (int i = 0; i < N; i++)
    {
      gint64 iteration, next;
      double lo = INFINITY, hi = -INFINITY, got_lo, got_hi, value;

      values[i] = i % 971 == 5 ? NAN : g_rand_double_range (rand, -3, 3);
      td_curves_append (c, "loss", 10 + i, values[i]);
      guint n = td_curves_length (c, 0);
      assert_in_range (n, 1, LIMIT + 1);
      if (i % 501 != 0 && i != N - 1)
        continue;
      for (guint k = 0; k < n; k++)
        {
          guint bad = 0;
          td_curves_get (c, 0, k, &iteration, &value);
          next = 10 + i + 1;
          if (k + 1 < n)
            td_curves_get (c, 0, k + 1, &next, &value);
          lo = INFINITY, hi = -INFINITY;
          for (gint64 j = iteration - 10; j < next - 10; j++)
            if (isfinite (values[j]))
              {
                lo = MIN (lo, values[j]);
                hi = MAX (hi, values[j]);
              }
            else
              bad++;
          assert_int_equal (td_curves_range (c, 0, k, k + 1, &got_lo, &got_hi), bad);
          assert_true (lo > hi || (fabs (got_lo - lo) < 1e-6 && fabs (got_hi - hi) < 1e-6));
        }
      /* and over all of it at once, through the levels */
      guint bad = 0;
      lo = INFINITY, hi = -INFINITY;
      for (int j = 0; j <= i; j++)
        if (isfinite (values[j]))
          {
            lo = MIN (lo, values[j]);
            hi = MAX (hi, values[j]);
          }
        else
          bad++;
      assert_int_equal (td_curves_range (c, 0, 0, n, &got_lo, &got_hi), bad);
      assert_true (lo > hi || (fabs (got_lo - lo) < 1e-6 && fabs (got_hi - hi) < 1e-6));
    }
  td_curves_free (c);
  g_rand_free (rand);
}

static void
curve__drawing_does_not_grow_with_the_run (void **state)
{
  TdCurves *c = td_curves_new ();
  TdPanelView v = { .width = 300, .height = 150, .iteration = 0, .event = -1, .head = -1 };

  for (int i = 0; i < 300000; i++)
    td_curves_append (c, "loss", i, i == 123457 ? 1000 : sin (i * 0.01));
  g_autoptr (TdScene) scene = td_curves_scene (c, &v);
  g_autofree char *dump = td_scene_dump (scene);
  assert_true (strlen (dump) < 20000); /* two points a pixel, not 300,000 */
  double lo, hi;
  td_curves_range (c, 0, 0, 300000, &lo, &hi);
  assert_true (hi == 1000); /* one spike among 300,000 survives */
  td_curves_free (c);
}

static void
deck__strips_turn_x_into_iterations_and_events (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.nan_at = 33;
  Fixture f = open_lenet (&o, 39);
  TdCurves *c = td_curves_new ();
  TdPanelView v = { .width = 460, .height = 38, .iteration = 39, .event = 28, .head = 30 };

  assert_true (td_curves_update (c, f.reader));
  assert_false (td_curves_update (c, f.reader));
  assert_int_equal (td_curves_main (c), 0);
  g_autoptr (TdScene) iterations = td_deck_scene_iterations (c, f.reader, 0, 0, NULL, 0, &v);
  g_autoptr (TdScene) events = td_deck_scene_events (f.it, FALSE, (TdRange){ 0 }, &v);
  g_autofree char *dump = td_scene_dump (events);
  TdSceneHit hit;

  td_test_golden ("viz/deck-events.scene", dump);
  assert_int_equal ((int)td_scene_axis_value (iterations, 459), 40);
  assert_int_equal ((int)td_scene_axis_value (events, 460 * 28.5 / 45), 28);
  /* the finding of iteration 33 is a tick that takes a click, where the playhead would be */
  const TdSceneRect *box = &td_scene_axes (iterations)->box;
  assert_true (td_scene_hit (iterations, box->x + box->width * 33.5 / 40,
                             box->y + box->height - 4, 2, &hit));
  assert_int_equal (hit.tag, TD_TAG_ITERATION);
  assert_int_equal (hit.data, 33);
  td_curves_free (c);
  close_lenet (&f);
}

/* ---- tensor ---- */

static TdTensor *
grad_tensor (Fixture *f)
{
  const TdTapeIteration *t = td_iteration_get_tape (f->it);

  return td_tensor_new (f->reader, f->it, t->grads[2].gradient, -1);
}

static void
tensor__npy_holds_shape_and_bytes (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 1;
  Fixture f = open_lenet (&o, 0);
  TdTensor *t = grad_tensor (&f);
  g_autoptr (GBytes) npy = td_tensor_to_npy (t);
  gsize n;
  const char *data = g_bytes_get_data (npy, &n);
  float first;

  assert_memory_equal (data, "\x93NUMPY\x01\x00", 8);
  guint header = (guint8)data[8] | (guint)(guint8)data[9] << 8;
  assert_int_equal ((10 + header) % 64, 0);
  g_autofree char *text = g_strndup (data + 10, header);
  assert_contains (text, "'descr': '<f4'");
  assert_contains (text, "'shape': (16, 6, 5, 5,)");
  assert_int_equal (n, 10 + header + 2400 * 4);
  memcpy (&first, data + 10 + header, 4);
  assert_true ((double)first == t->values[0]);
  td_tensor_free (t);
  close_lenet (&f);
}

static void
tensor__says_what_kind_of_number_it_shows (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const gint64 dims[] = { 2, 3 };
  const float v[] = { 1, -2, NAN, INFINITY, 0, 3 };
  TdTensor *live = td_tensor_new_live ("h", TD_TAPE_F32, 2, dims, v, sizeof v);
  g_autofree char *exact = td_tensor_print (live, "text");

  assert_contains (exact, "min −2  max 3  mean 0.5");
  assert_contains (exact, "zero 1  nan 1  +inf 1  -inf 0");
  td_tensor_free (live);
  live = td_tensor_new_live ("h", TD_TAPE_F32, 2, dims, v, 8); /* only two of six came */
  g_autofree char *sampled = td_tensor_print (live, "text");
  assert_contains (sampled, "min ≈−2  max ≈1");
  assert_null (td_tensor_to_npy (live));
  td_tensor_free (live);
  const float nothing[] = { NAN, NAN, NAN, NAN, NAN, NAN }; /* whose norm is no 0 */
  live = td_tensor_new_live ("h", TD_TAPE_F32, 2, dims, nothing, sizeof nothing);
  live->has_stats = FALSE;
  g_autofree char *counted = td_tensor_print (live, "text");
  assert_contains (counted, "min NaN  max NaN  mean NaN  sigma NaN  l2 NaN");
  live->has_stats = TRUE;
  live->stats = (TdTapeStats){ .n = 6, .n_nan = 6, .min = NAN, .max = NAN, .mean = NAN };
  g_autofree char *recorded = td_tensor_print (live, "text");
  assert_contains (recorded, "min NaN  max NaN  mean NaN  sigma NaN  l2 NaN");
  td_tensor_free (live);

  o.n_iterations = 1;
  Fixture f = open_lenet (&o, 0);
  TdTensor *t = td_tensor_new (f.reader, f.it, 0, -1); /* a parameter: nothing recorded */
  g_autofree char *missing = td_tensor_print (t, "text");
  assert_contains (missing, "min —");
  g_autofree char *json = td_tensor_print (t, "json");
  assert_contains (json, "\"min\": null");
  td_tensor_free (t);
  close_lenet (&f);
}

static void
tensor__decodes_every_dtype (void **state)
{
  const gint64 one[] = { 1 };
  const guint16 half = 0xC100, bf16 = 0xC020; /* -2.5 in both */
  const double f64 = -2.5;
  const gint32 i32 = -7;
  const gint64 i64 = -8;
  const guint8 u8 = 9;
  const struct
  {
    guint dtype;
    const void *data;
    gsize n;
    double expected;
  } cases[] = { { TD_TAPE_F16, &half, 2, -2.5 }, { TD_TAPE_BF16, &bf16, 2, -2.5 },
                { TD_TAPE_F64, &f64, 8, -2.5 },  { TD_TAPE_I32, &i32, 4, -7 },
                { TD_TAPE_I64, &i64, 8, -8 },    { TD_TAPE_U8, &u8, 1, 9 } };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      TdTensor *t = td_tensor_new_live ("x", cases[i].dtype, 1, one, cases[i].data, cases[i].n);
      assert_true (t->values[0] == cases[i].expected);
      td_tensor_free (t);
    }
}

/* ---- graph ---- */

static TdScene *
graph_scene (Fixture *f, gint event, gint head)
{
  TdPanelView v = { .iteration = 0, .event = event, .head = head };
  TdVizGraph *graph = td_iteration_get_graph (f->it);
  TdLayoutOptions options = { TD_ORIENTATION_TB };
  g_autoptr (TdFold) fold = td_fold_new_depth (graph, -1);
  g_autoptr (TdVizView) view = td_viz_view_new (graph, fold, TD_VIEW_ALL);
  g_autoptr (TdLayout) layout = td_layout_new_quick (view, &options, NULL);

  return td_graph_scene_new (layout, &v, TD_HEAT_OFF);
}

static void
graph__shows_every_operation_and_dims_what_has_not_run (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 1;
  Fixture f = open_lenet (&o, 0);
  const TdTapeIteration *t = td_iteration_get_tape (f.it);
  g_autoptr (TdScene) done = graph_scene (&f, -1, -1);
  g_autoptr (TdScene) half = graph_scene (&f, 28, 30);
  g_autofree char *dump = td_scene_dump (half);
  guint dashed = 0;

  for (guint e = 0; e < t->n_events; e++)
    {
      TdSceneRect box;
      TdSceneHit hit;

      assert_true (td_scene_find_key (done, t->events[e].key, &box));
      assert_true (td_scene_hit (done, box.x + box.width / 2, box.y + box.height / 2, 0, &hit));
      assert_int_equal (hit.key, t->events[e].key);
      assert_int_equal (hit.data, e);
    }
  g_auto (GStrv) lines = g_strsplit (dump, "\n", -1);
  for (char **l = lines; *l; l++)
    dashed += strstr (*l, "[node") && strstr (*l, " dashed");
  assert_int_equal (dashed, 45 - 29);
  assert_contains (dump, "\"3 of 5\"");
  assert_contains (dump, "\"16 of 22\"");
  assert_contains (dump, "[playhead 28]");
  assert_contains (dump, "[head");
  close_lenet (&f);
}

static char *
schedule_text (const TdSchedule *s, const char *format)
{
  TdSink sink = { .text = g_string_new (NULL) };

  td_schedule_print (s, NULL, NULL, format, &sink);
  return g_string_free (sink.text, FALSE);
}

static void
graph__failing_operation_is_red_and_cross_hatched (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 1;
  o.failed_event = 5;
  Fixture f = open_lenet (&o, 0);
  g_autoptr (TdScene) scene = graph_scene (&f, -1, -1);
  g_autofree char *dump = td_scene_dump (scene);
  TdSchedule *s = td_schedule_new (f.it);
  g_autofree char *csv = schedule_text (s, "csv");
  guint red = 0;

  g_auto (GStrv) lines = g_strsplit (dump, "\n", -1);
  for (char **l = lines; *l; l++)
    if (strstr (*l, "stroke=error"))
      {
        assert_contains (*l, "fill=error*0.28");
        assert_contains (*l, " cross ");
        assert_contains (*l, "[node 5]");
        red++;
      }
  assert_int_equal (red, 1);
  assert_contains (csv, "5,max_pooling_2d,lenet/block2,forward,");
  td_schedule_free (s);
  close_lenet (&f);
}

static void
graph__label_of_ten_thousand_hostile_characters_stays_text (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  GString *label = g_string_new ("</text><script>\"&'\n\\");

  while (label->len < 10000)
    g_string_append (label, "<b>x</b>");
  o.n_iterations = 1;
  o.op_name = label->str;
  Fixture f = open_lenet (&o, 0);
  g_autoptr (TdScene) scene = graph_scene (&f, 20, -1);
  g_autofree char *svg = td_scene_to_svg (scene, 1, td_theme_get ("dark"));
  TdSchedule *s = td_schedule_new (f.it);
  g_autofree char *json = schedule_text (s, "json");

  assert_not_contains (svg, "<script>");
  assert_not_contains (svg, "<b>");
  assert_contains (svg, "&lt;/text&gt;");
  assert_contains (json, "<script>\\\"&'\\n\\\\<b>");
  td_schedule_free (s);
  g_string_free (label, TRUE);
  close_lenet (&f);
}

static void
minimap__maps_points_back_to_the_layout (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 1;
  Fixture f = open_lenet (&o, 0);
  TdPanelView v = { .event = 3, .head = -1 };
  TdVizGraph *graph = td_iteration_get_graph (f.it);
  TdLayoutOptions options = { TD_ORIENTATION_TB };
  g_autoptr (TdFold) fold = td_fold_new_default (graph, 0);
  g_autoptr (TdVizView) view = td_viz_view_new (graph, fold, TD_VIEW_ALL);
  g_autoptr (TdLayout) layout = td_layout_new_quick (view, &options, NULL);
  g_autoptr (TdScene) map = td_graph_minimap_new (layout, &v, NULL);
  TdScenePoint p = td_graph_minimap_point (layout, 61, 33); /* its middle */

  assert_true (td_scene_width (map) == 122 && td_scene_height (map) == 66);
  assert_true (fabs (p.x - layout->bounds.x - layout->bounds.width / 2) < 1e-6);
  assert_true (fabs (p.y - layout->bounds.y - layout->bounds.height / 2) < 1e-6);
  close_lenet (&f);
}

/* Every picture, in every theme, paints something else than its background, also when narrow.
 */
static void
panel__every_picture_paints_in_every_theme_and_width (void **state)
{
  static const char *const themes[] = { "light", "dark", "high-contrast", "chainer" };
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 12;
  Fixture f = open_lenet (&o, 11);
  TdMemoryProfile *p = td_memory_profile_new (f.it);
  TdMemoryHistory *h = td_memory_history_new (f.reader, (TdRange){ 0 }, 100);
  TdGradientTable *g = td_gradient_table_new (f.reader);
  TdSchedule *s = td_schedule_new (f.it);
  TdCurves *c = td_curves_new ();
  TdTensor *t = grad_tensor (&f);

  TdGradientRange run = td_gradient_range_run (f.reader, 11);
  td_gradient_table_load (g, f.reader, &run, 11);
  td_curves_update (c, f.reader);
  for (int width = 90; width <= 480; width += 390)
    {
      TdPanelView v
          = { .width = width, .height = 120, .iteration = 11, .event = 20, .head = 22 };
      TdScene *scenes[] = { td_memory_scene_events (f.it, p, p, 9000000, &v),
                            td_memory_scene_iterations (h, &v),
                            td_memory_scene_blocks (f.it, &v),
                            td_gradient_scene (g, f.it, &run, &v),
                            td_gradient_scene_missing (g, &v),
                            td_schedule_scene (s, "advice", &v),
                            td_timeline_scene (f.it, &v),
                            td_curves_scene (c, &v),
                            td_deck_scene_iterations (c, f.reader, 0, 0, NULL, 0, &v),
                            td_deck_scene_events (f.it, TRUE, (TdRange){ 0 }, &v),
                            td_tensor_scene (t, NULL, &v),
                            graph_scene (&f, 20, 21) };

      for (gsize i = 0; i < G_N_ELEMENTS (scenes); i++)
        {
          for (gsize k = 0; k < G_N_ELEMENTS (themes); k++)
            {
              cairo_surface_t *surface
                  = cairo_image_surface_create (CAIRO_FORMAT_ARGB32, width, 120);
              cairo_t *cr = cairo_create (surface);
              const guint32 *data
                  = (const guint32 *)(const void *)cairo_image_surface_get_data (surface);
              guint painted = 0;

              td_scene_paint (scenes[i], cr, NULL, 1, td_theme_get (themes[k]));
              assert_int_equal (cairo_status (cr), CAIRO_STATUS_SUCCESS);
              cairo_surface_flush (surface);
              for (int n = 0; n < width * 120; n++)
                painted += data[n] != 0;
              if (painted < 60)
                fail_msg ("picture %zu at width %d in %s: %u pixels", i, width, themes[k],
                          painted);
              cairo_destroy (cr);
              cairo_surface_destroy (surface);
            }
          td_scene_unref (scenes[i]);
        }
    }
  td_tensor_free (t);
  td_curves_free (c);
  td_schedule_free (s);
  td_gradient_table_free (g);
  td_memory_history_free (h);
  td_memory_profile_free (p);
  close_lenet (&f);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (memory__profile_equals_a_recount_at_every_event),
    td_test (memory__history_splits_every_peak_into_categories),
    td_test (memory__blocks_alive_sum_to_the_profile),
    td_test (gradient__tells_nan_missing_and_zero_apart),
    td_test (memory__playhead_is_in_the_place_of_its_iteration),
    td_test (gradient__heat_map_marks_cells_in_its_dump),
    td_test (schedule__totals_equal_the_sum_of_the_rows),
    td_test (gradients__of_a_program_without_an_optimizer_are_shown_and_none_is_missing),
    td_test (schedule__counts_equal_iterations_that_have_no_row),
    td_test (curve__range_equals_a_linear_search),
    td_test (curve__drawing_does_not_grow_with_the_run),
    td_test (curve__folded_is_bounded_and_keeps_every_extreme),
    td_test (deck__strips_turn_x_into_iterations_and_events),
    td_test (tensor__npy_holds_shape_and_bytes),
    td_test (tensor__says_what_kind_of_number_it_shows),
    td_test (tensor__decodes_every_dtype),
    td_test (graph__shows_every_operation_and_dims_what_has_not_run),
    td_test (graph__failing_operation_is_red_and_cross_hatched),
    td_test (graph__label_of_ten_thousand_hostile_characters_stays_text),
    td_test (minimap__maps_points_back_to_the_layout),
    td_test (panel__every_picture_paints_in_every_theme_and_width),
  };

  return cmocka_run_group_tests_name ("panels", tests, NULL, NULL);
}
