/* Layouts: rows of twins, boxes around their members, nothing on top of anything, the same
 * again and again, by both engines; the helper when it is late, dead or lying.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "td-synthetic.h"

#include <stdlib.h>
#include <string.h>

#include "layout/td-layering.h"
#include "layout/td-layout.h"

static TdVizView *
view_with (TdIteration *it, gint depth)
{
  TdVizGraph *graph = td_iteration_get_graph (it);
  TdFold *fold = td_fold_new_depth (graph, depth);
  TdVizView *view = td_viz_view_new (graph, fold, TD_VIEW_ALL);

  td_fold_free (fold);
  return view;
}

static TdLayout *
lay_out (TdIteration *it, gint depth, TdOrientation orientation)
{
  TdLayoutOptions options = { orientation };
  TdVizView *view = view_with (it, depth);
  TdLayout *layout = td_layout_new_quick (view, &options, NULL);

  td_viz_view_unref (view);
  return layout;
}

static gboolean
overlap (const TdRect *a, const TdRect *b)
{
  return a->x < b->x + b->width && b->x < a->x + a->width && a->y < b->y + b->height
         && b->y < a->y + a->height;
}

static gboolean
is_inside (const TdRect *inner, const TdRect *outer)
{
  return inner->x >= outer->x && inner->y >= outer->y
         && inner->x + inner->width <= outer->x + outer->width
         && inner->y + inner->height <= outer->y + outer->height;
}

static void
check_sane (const TdLayout *l)
{
  const TdVizView *v = l->view;

  for (guint i = 0; i < v->n_nodes; i++)
    {
      const TdVizNode *n = &v->nodes[i];

      for (guint k = i + 1; k < v->n_nodes; k++)
        if (overlap (&l->nodes[i], &l->nodes[k]))
          fail_msg ("%s (%u) lies on %s (%u)", n->label, i, v->nodes[k].label, k);
      assert_true (is_inside (&l->nodes[i], &l->bounds));
      assert_true (is_inside (&l->nodes[i], &l->lanes[n->lane]));
      if (n->user < 0)
        for (gint g = n->parent; g > 0; g = v->groups[g].parent)
          assert_true (is_inside (&l->nodes[i], &l->groups[g][n->lane]));
    }
  for (guint a = 1; a < v->n_groups; a++)
    for (guint b = a + 1; b < v->n_groups; b++)
      for (guint lane = 0; lane < TD_N_LANES; lane++)
        {
          const TdRect *x = &l->groups[a][lane], *y = &l->groups[b][lane];

          if (x->width > 0 && y->width > 0 && overlap (x, y))
            assert_true (is_inside (y, x)); /* children come after parents */
        }
  for (guint i = 0; i < v->n_edges; i++)
    {
      const TdEdgeRoute *e = &l->edges[i];
      const TdPoint *p = &l->points[e->first_point];

      assert_true (e->n_points >= 2);
      for (guint k = 1; k < e->n_points; k++)
        assert_true (p[k].x == p[k - 1].x || p[k].y == p[k - 1].y); /* orthogonal */
    }
}

static void
layout__keeps_everything_apart_and_in_its_box (void **state)
{
  for (gint orientation = 0; orientation < 2; orientation++)
    for (gint model = 0; model < 3; model++)
      for (gint depth = -1; depth < 2; depth++)
        {
          g_autoptr (TdIteration) it = model == 0   ? td_synthetic_lenet (0)
                                       : model == 1 ? td_synthetic_lstm (0, 6, TRUE, TRUE)
                                                    : td_synthetic_residual (0, 48, TRUE);
          TdLayout *layout = lay_out (it, depth, (TdOrientation)orientation);

          check_sane (layout);
          td_layout_unref (layout);
        }
  (void)state;
}

static void
layout__puts_twins_in_one_row (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  TdLayout *l = lay_out (it, -1, TD_ORIENTATION_TB);
  guint rows = 0;

  for (guint i = 0; i < l->view->n_nodes; i++)
    {
      const TdVizNode *n = &l->view->nodes[i];
      const TdRect *a, *b;

      if (n->lane != TD_LANE_BACKWARD || n->twin < 0)
        continue;
      a = &l->nodes[i];
      b = &l->nodes[n->twin];
      assert_true (a->y + a->height / 2 == b->y + b->height / 2);
      assert_true (a->x > b->x + b->width);
      rows++;
    }
  assert_int_equal (rows, 22);
  td_layout_unref (l);
  (void)state;
}

static void
layout__uses_the_measures_of_the_design (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  TdLayout *l = lay_out (it, 0, TD_ORIENTATION_TB);

  for (guint i = 0; i < l->view->n_nodes; i++)
    if (l->view->nodes[i].kind == TD_VIZ_GROUP)
      {
        assert_true (l->nodes[i].width == 172);
        assert_true (l->nodes[i].height == 44);
      }
    else if (l->view->nodes[i].kind == TD_VIZ_STUB)
      {
        const TdRect *user = &l->nodes[l->view->nodes[i].user];

        assert_true (l->nodes[i].width == 28 && l->nodes[i].height == 20);
        assert_true (l->nodes[i].x + 28 < user->x); /* on the left of its user */
      }
  assert_true (l->lanes[TD_LANE_BACKWARD].x - l->lanes[TD_LANE_FORWARD].x
                   - l->lanes[TD_LANE_FORWARD].width
               == 94);
  td_layout_unref (l);
  (void)state;
}

static void
layout__draws_a_chain_straight (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  TdLayout *l = lay_out (it, -1, TD_ORIENTATION_TB);

  /* all 13 forward operations, through two boxes and their borders */
  for (guint i = 1; i < 13; i++)
    assert_true (l->nodes[i].x + l->nodes[i].width / 2
                 == l->nodes[0].x + l->nodes[0].width / 2);
  for (guint i = 0; i < l->view->n_edges; i++)
    if (l->view->edges[i].kind == TD_EDGE_DATA
        && l->view->nodes[l->view->edges[i].to].lane == TD_LANE_FORWARD)
      assert_int_equal (l->edges[i].n_points, 2);
  td_layout_unref (l);
  (void)state;
}

static void
layout__is_the_same_after_expand_and_collapse (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lstm (0, 20, FALSE, TRUE);
  TdVizGraph *graph = td_iteration_get_graph (it);
  TdFold *fold = td_fold_new_depth (graph, 0);
  TdLayoutOptions options = { TD_ORIENTATION_TB };
  char *text[3];
  double dx, dy;
  TdLayout *layouts[3];
  guint n;
  const TdVizGroup *groups = td_viz_graph_get_groups (graph, &n);

  for (guint i = 0; i < 3; i++)
    {
      TdVizView *view;

      td_fold_set_expanded (fold, groups[1].key, i == 1);
      view = td_viz_view_new (graph, fold, TD_VIEW_ALL);
      layouts[i] = td_layout_new_quick (view, &options, i ? layouts[i - 1] : NULL);
      text[i] = td_layout_to_text (layouts[i]);
      td_viz_view_unref (view);
    }
  assert_string_equal (text[0], text[2]);
  assert_string_not_equal (text[0], text[1]);
  /* what was clicked can be kept still on screen: it is known how far it moved */
  assert_true (td_layout_get_shift (layouts[0], layouts[1], groups[1].key, &dx, &dy));
  assert_true (td_layout_get_shift (layouts[0], layouts[2], groups[1].key, &dx, &dy));
  assert_true (dx == 0 && dy == 0);
  for (guint i = 0; i < 3; i++)
    {
      g_free (text[i]);
      td_layout_unref (layouts[i]);
    }
  td_fold_free (fold);
  (void)state;
}

static void
layout__is_the_same_for_the_next_equal_iteration (void **state)
{
  g_autoptr (TdIteration) a = td_synthetic_lenet (1);
  g_autoptr (TdIteration) b = td_synthetic_lenet (2);
  TdLayout *x = lay_out (a, -1, TD_ORIENTATION_TB), *y = lay_out (b, -1, TD_ORIENTATION_TB);
  char *text_x = td_layout_to_text (x), *text_y = td_layout_to_text (y);

  assert_string_equal (text_x, text_y);
  assert_true (x->view->content_hash == y->view->content_hash);
  g_free (text_x);
  g_free (text_y);
  td_layout_unref (x);
  td_layout_unref (y);
  (void)state;
}

/* A chain with a convolution-like start; `middle` is one more operation, or another one. */
static TdIteration *
chain (guint64 number, const char *middle, gboolean extra)
{
  TdSynthetic *s = td_synthetic_new (number);
  guint h = td_synthetic_input (s, "x", TD_SHAPE (4, 4));

  for (guint i = 0; i < 4; i++)
    {
      char *W = g_strdup_printf ("net/l%u/W", i);

      h = TD_OP (s, "linear", 10 + i, TD_SHAPE (4, 4), h,
                 td_synthetic_parameter (s, W, TD_SHAPE (4, 4)));
      h = TD_OP (s, i == 2 ? middle : "tanh", i == 2 && *middle == 's' ? 99 : 20 + i,
                 TD_SHAPE (4, 4), h);
      if (i == 1 && extra)
        h = TD_OP (s, "dropout", 30, TD_SHAPE (4, 4), h);
      g_free (W);
    }
  td_synthetic_backward (s, h);
  td_synthetic_update (s, "sgd");
  return td_synthetic_finish (s);
}

static void
expect_kept (TdIteration *before, TdIteration *after, guint n_new)
{
  TdLayout *a = lay_out (before, -1, TD_ORIENTATION_TB), *b;
  TdVizView *view = view_with (after, -1);
  guint kept = 0;

  b = td_layout_new_quick (view, NULL, a);
  check_sane (b);
  for (guint i = 0; i < view->n_nodes; i++)
    {
      gint m = td_viz_view_find (a->view, view->nodes[i].key);

      if (m < 0)
        continue;
      kept++;
      assert_memory_equal (&b->nodes[i], &a->nodes[m], sizeof (TdRect));
    }
  assert_int_equal (kept, view->n_nodes - n_new);
  td_layout_unref (a);
  td_layout_unref (b);
  td_viz_view_unref (view);
}

static void
layout__keeps_equal_keys_where_they_were_in_the_next_iteration (void **state)
{
  g_autoptr (TdIteration) a = chain (1, "relu", FALSE);
  g_autoptr (TdIteration) other_branch = chain (2, "sigmoid", FALSE);
  g_autoptr (TdIteration) longer = chain (3, "relu", TRUE);

  expect_kept (a, other_branch, 2); /* the operation and its gradient */
  expect_kept (a, longer, 2);
  expect_kept (longer, a, 0); /* and when it is gone again */
  (void)state;
}

/* Three elementwise operations, or, of `code`, what a schedule has in their place: one with the
 * key of the last. */
static TdIteration *
fusible (guint64 number, TdIteration *code)
{
  gboolean fused = code != NULL;
  TdSynthetic *s = td_synthetic_new (number);
  guint h = td_synthetic_input (s, "x", TD_SHAPE (4, 4));

  h = TD_OP (s, "linear", 10, TD_SHAPE (4, 4), h,
             td_synthetic_parameter (s, "net/l/W", TD_SHAPE (4, 4)));
  for (guint i = 0; i < 2 && !fused; i++)
    h = TD_OP (s, i ? "exp" : "tanh", 20 + i, TD_SHAPE (4, 4), h);
  h = TD_OP (s, fused ? "tanh+exp+relu" : "relu", 22, TD_SHAPE (4, 4), h);
  h = TD_OP (s, "sigmoid", 30, TD_SHAPE (4, 4), h);
  TdIteration *iteration = td_synthetic_finish (s);
  TdTapeEvent *made = (TdTapeEvent *)td_iteration_get_tape (iteration)->events;
  if (fused)
    {
      made[1].flags |= TD_TAPE_EVENT_REPLAYED;
      made[1].key = td_iteration_get_tape (code)->events[3].key;
    }
  return iteration;
}

static void
layout__gives_what_was_fused_the_room_of_what_it_was_made_of (void **state)
{
  g_autoptr (TdIteration) code = fusible (1, NULL);
  g_autoptr (TdIteration) schedule = fusible (2, code);
  TdLayout *a = lay_out (code, -1, TD_ORIENTATION_TB), *own, *kept;
  TdVizView *view = view_with (schedule, -1);
  gint node = td_viz_view_find_event (view, 1), relu = td_viz_view_find_event (a->view, 3);

  own = td_layout_new_quick (view, NULL, NULL);
  kept = td_layout_new_quick (view, NULL, a);
  check_sane (kept);
  assert_int_equal (view->nodes[node].n_fused, 3);
  assert_true (own->nodes[node].height > a->nodes[relu].height);
  assert_true (kept->nodes[node].height == own->nodes[node].height);
  assert_true (kept->nodes[node].y + kept->nodes[node].height
               == a->nodes[relu].y + a->nodes[relu].height);
  td_layout_unref (kept);
  /* and back: its last operation is as low again */
  td_layout_unref (a);
  TdVizView *back = view_with (code, -1);
  a = td_layout_new_quick (back, NULL, own);
  check_sane (a);
  assert_true (a->nodes[relu].height < own->nodes[node].height);
  td_viz_view_unref (back);
  td_layout_unref (a);
  td_layout_unref (own);
  td_viz_view_unref (view);
  (void)state;
}

static void
layout__says_where_everything_of_lenet_is (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (118);
  TdLayout *l = lay_out (it, -1, TD_ORIENTATION_TB);
  char *text = td_layout_to_text (l);

  td_test_golden ("viz-lenet-layout.txt", text);
  g_free (text);
  td_layout_unref (l);
  (void)state;
}

static void
layout__is_walked_by_arrows (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  TdLayout *l = lay_out (it, -1, TD_ORIENTATION_TB);

  assert_int_equal (td_layout_walk (l, 3, 0, 1), 4); /* convolution_2d down to relu */
  assert_int_equal (td_layout_walk (l, 4, 0, -1), 3);
  assert_int_equal (l->view->nodes[td_layout_walk (l, 4, 1, 0)].twin, 4); /* right: relu_grad */
  td_layout_unref (l);
  (void)state;
}

/* ---- layering by itself ---- */

static void
layering__uncrosses_what_can_be_uncrossed (void **state)
{
  /* 0 1 2 3 above 4 5 6 7, joined in reverse */
  TdLayerEdge edges[]
      = { { 0, 7, 0, 0, 0 }, { 1, 6, 0, 1, 0 }, { 2, 5, 0, 2, 0 }, { 3, 4, 0, 3, 0 } };
  TdLayering *l = td__layering_new (8, edges, 4);

  assert_int_equal (l->n_ranks, 2);
  assert_int_equal (td__layering_count_crossings (l), 0);
  td__layering_free (l);
  (void)state;
}

static void
layering__gives_long_edges_of_one_source_one_way (void **state)
{
  /* a chain 0 ... 5, and 0 is read by 3, 4 and 5 as well */
  TdLayerEdge edges[]
      = { { 0, 1, 0, 0, 0 }, { 1, 2, 0, 1, 0 }, { 2, 3, 0, 2, 0 }, { 3, 4, 0, 3, 0 },
          { 4, 5, 0, 4, 0 }, { 0, 3, 0, 0, 0 }, { 0, 4, 0, 0, 0 }, { 0, 5, 0, 0, 0 } };
  TdLayering *l = td__layering_new (6, edges, 8);

  assert_int_equal (l->n_ranks, 6);
  assert_int_equal (l->n_slots - l->n_things, 4); /* ranks 1 ... 4, once */
  td__layering_free (l);
  (void)state;
}

/* ---- the helper ---- */

static void
helper__lays_out_every_group (void **state)
{
  for (gint model = 0; model < 3; model++)
    {
      g_autoptr (TdIteration) it = model == 0   ? td_synthetic_lenet (0)
                                   : model == 1 ? td_synthetic_lstm (0, 8, TRUE, TRUE)
                                                : td_synthetic_residual (0, 120, TRUE);
      TdVizView *view = view_with (it, -1);
      GError *error = NULL;
      TdLayout *l = td_layout_new_graphviz (view, NULL, NULL, 20000, NULL, &error);

      assert_null (error);
      assert_non_null (l);
      assert_false (l->is_quick);
      check_sane (l);
      td_layout_unref (l);
      td_viz_view_unref (view);
    }
  (void)state;
}

static void
helper__cuts_a_group_that_is_too_large (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  guint h = td_synthetic_input (s, "x", TD_SHAPE (4));

  for (guint i = 0; i < 1400; i++) /* two calls of 700 operations, on a line each */
    {
      if (i % 700 == 0)
        td_synthetic_enter_link (s, i ? "net/second" : "net/first", 5);
      h = TD_OP (s, "add", 10 + i, TD_SHAPE (4), h, h);
      if (i % 700 == 699)
        td_synthetic_leave (s);
    }
  g_autoptr (TdIteration) it = td_synthetic_finish (s);
  TdVizView *view = view_with (it, -1);
  GError *error = NULL;
  TdLayout *l = td_layout_new_graphviz (view, NULL, NULL, 50000, NULL, &error);

  assert_null (error);
  assert_int_equal (view->n_groups, 3);
  assert_false (l->is_quick);
  check_sane (l);
  td_layout_unref (l);
  td_viz_view_unref (view);
  (void)state;
}

static void
write_helper (const char *script)
{
  const char *path = td_test_tmp ("tapedeck-layout");

  td_test_write_file (path, script, strlen (script));
  {
    char *command = g_strdup_printf ("chmod +x '%s'", path);

    assert_int_equal (system (command), 0);
    g_free (command);
  }
  g_setenv ("TAPEDECK_LIBEXECDIR", td_test_tmp (""), TRUE);
}

/* A bad helper gives an error, and the quick layout is still to be had. Every call has a graph
 * of its own: answers are remembered. What fails by itself has a minute, so that it is not late
 * on a busy machine. */
static void
expect_error (guint steps, int limit_ms, int code, const char *text)
{
  g_autoptr (TdIteration) it = td_synthetic_lstm (0, steps, FALSE, FALSE);
  TdVizView *view = view_with (it, -1);
  GError *error = NULL;
  TdLayout *l = td_layout_new_graphviz (view, NULL, NULL, limit_ms, NULL, &error);

  assert_null (l);
  assert_true (g_error_matches (error, G_IO_ERROR, code));
  assert_contains (error->message, text);
  g_clear_error (&error);
  l = td_layout_new_quick (view, NULL, NULL);
  assert_non_null (l);
  td_layout_unref (l);
  td_viz_view_unref (view);
}

static void
helper__is_killed_when_it_is_late (void **state)
{
  gint64 start = g_get_monotonic_time ();

  write_helper ("#!/bin/sh\nexec sleep 100\n");
  expect_error (3, 500, G_IO_ERROR_TIMED_OUT, "too long");
  assert_true (g_get_monotonic_time () - start < 60 * G_USEC_PER_SEC); /* not when it ended */
  (void)state;
}

static void
helper__may_die (void **state)
{
  write_helper ("#!/bin/sh\nread line\nkill -9 $$\n");
  expect_error (4, 60000, G_IO_ERROR_FAILED, "died");
  (void)state;
}

static void
helper__may_talk_nonsense (void **state)
{
  write_helper ("#!/bin/sh\ncat >/dev/null &\nprintf 'ok 3 4\\nn 1 2\\nend\\n'\nwait\n");
  expect_error (5, 60000, G_IO_ERROR_FAILED, "makes no sense");
  write_helper ("#!/bin/sh\nread line\nprintf 'error out of luck\\n'\ncat >/dev/null\n");
  expect_error (6, 60000, G_IO_ERROR_FAILED, "out of luck");
  (void)state;
}

static void
on_done (GObject *source, GAsyncResult *result, gpointer data)
{
  GError *error = NULL;

  (void)source;
  assert_null (td_layout_new_graphviz_finish (result, &error));
  *(gboolean *)data = g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
}

static gboolean
cancel (gpointer data)
{
  g_cancellable_cancel (data);
  return G_SOURCE_REMOVE;
}

static void
helper__is_killed_by_cancel (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lstm (0, 7, FALSE, FALSE);
  TdVizView *view = view_with (it, -1);
  GCancellable *cancellable = g_cancellable_new ();
  gboolean cancelled = FALSE;

  write_helper ("#!/bin/sh\nexec sleep 1000\n");
  td_layout_new_graphviz_async (view, NULL, NULL, 600000, cancellable, on_done, &cancelled);
  g_timeout_add (20, cancel, cancellable);
  while (!cancelled) /* meson's time-out ends a test that hangs */
    g_main_context_iteration (NULL, TRUE);
  assert_true (cancelled);
  g_object_unref (cancellable);
  td_viz_view_unref (view);
  (void)state;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (layout__keeps_everything_apart_and_in_its_box),
    td_test (layout__puts_twins_in_one_row),
    td_test (layout__uses_the_measures_of_the_design),
    td_test (layout__draws_a_chain_straight),
    td_test (layout__is_the_same_after_expand_and_collapse),
    td_test (layout__is_the_same_for_the_next_equal_iteration),
    td_test (layout__keeps_equal_keys_where_they_were_in_the_next_iteration),
    td_test (layout__gives_what_was_fused_the_room_of_what_it_was_made_of),
    td_test (layout__says_where_everything_of_lenet_is),
    td_test (layout__is_walked_by_arrows),
    td_test (layering__uncrosses_what_can_be_uncrossed),
    td_test (layering__gives_long_edges_of_one_source_one_way),
    td_test (helper__lays_out_every_group), /* the true helper; those after it are fakes */
    td_test (helper__cuts_a_group_that_is_too_large),
    td_test (helper__is_killed_when_it_is_late),
    td_test (helper__may_die),
    td_test (helper__may_talk_nonsense),
    td_test (helper__is_killed_by_cancel),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
