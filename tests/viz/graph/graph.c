/* The graph of an iteration: groups, loops, folding, twins, stubs, saved edges, questions.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "td-synthetic.h"

#include <stdlib.h>
#include <string.h>

#include "graph/td-graph.h"
#include "tape/td-navigate.h"

static TdVizView *
view_at_depth (TdIteration *it, gint depth)
{
  TdVizGraph *graph = td_iteration_get_graph (it);
  TdFold *fold = td_fold_new_depth (graph, depth);
  TdVizView *view = td_viz_view_new (graph, fold, TD_VIEW_ALL);

  td_fold_free (fold);
  return view;
}

static const TdVizGroup *
find_group (TdIteration *it, const char *name)
{
  guint n;
  const TdVizGroup *groups = td_viz_graph_get_groups (td_iteration_get_graph (it), &n);

  for (guint i = 0; i < n; i++)
    if (strcmp (groups[i].name, name) == 0)
      return &groups[i];
  return NULL;
}

static gint
find_label (const TdVizView *view, const char *label, TdLane lane)
{
  for (guint i = 0; i < view->n_nodes; i++)
    if (view->nodes[i].lane == lane && view->nodes[i].user < 0
        && strcmp (view->nodes[i].label, label) == 0)
      return (gint)i;
  return -1;
}

static void
graph__groups_by_link_and_leaves_the_wrappers_out (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (118);
  guint n;
  const TdVizGroup *groups = td_viz_graph_get_groups (td_iteration_get_graph (it), &n);

  /* root, block1, block2, head: neither the scope nor "lenet", nor links of one operation */
  assert_int_equal (n, 4);
  assert_string_equal (groups[0].name, "lenet");
  assert_string_equal (groups[1].name, "block1");
  assert_string_equal (groups[2].name, "block2");
  assert_string_equal (groups[3].name, "head");
  assert_string_equal (groups[3].path, "lenet/head");
  /* conv, relu, pool; 3 gradients of the convolution (2 for block1: x needs none); W and b */
  assert_int_equal (groups[2].n_ops[TD_LANE_FORWARD], 3);
  assert_int_equal (groups[2].n_ops[TD_LANE_BACKWARD], 5);
  assert_int_equal (groups[2].n_ops[TD_LANE_UPDATE], 2);
  assert_int_equal (groups[1].n_ops[TD_LANE_BACKWARD], 4);
  assert_int_equal (groups[0].n_ops[TD_LANE_FORWARD], 13);
  (void)state;
}

static void
graph__counts_saved_bytes_once_for_each_variable (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  const TdVizGroup *block1 = find_group (it, "block1");

  /* x, and the outputs of convolution and relu, which the next operation retains: each once */
  assert_int_equal (block1->saved_bytes, 4 * 64 * 28 * 28 * (1 + 6 + 6));
  (void)state;
}

static void
graph__finds_loops_that_c_hides (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lstm (0, 35, FALSE, TRUE);
  const TdVizGroup *loop = find_group (it, "lstm ×35");

  assert_non_null (loop);
  assert_int_equal (loop->kind, TD_GROUP_LOOP);
  assert_int_equal (loop->n_repeats, 35);
  assert_int_equal (loop->n_ops[TD_LANE_FORWARD], 35 * 15);
  (void)state;
}

static void
graph__counts_an_odd_step_and_says_so (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lstm (0, 36, TRUE, TRUE);
  TdVizView *view = view_at_depth (it, 0);
  guint boxes = 0;

  assert_int_equal (find_group (it, "lstm ×36, last differs")->n_repeats, 36);
  assert_true (find_label (view, "lstm ×36", TD_LANE_FORWARD) >= 0);
  /* beside it is no need to say it again */
  assert_true (find_label (view, "lstm ×36′", TD_LANE_BACKWARD) >= 0);
  for (guint i = 0; i < view->n_nodes; i++)
    boxes += view->nodes[i].kind == TD_VIZ_GROUP && view->nodes[i].lane == TD_LANE_FORWARD;
  assert_int_equal (boxes, 1);
  td_viz_view_unref (view);
  (void)state;
}

static void
graph__names_the_layer_that_differs (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  const gint64 *shape = TD_SHAPE (4, 4);
  guint h = td_synthetic_input (s, "x", shape);

  td_synthetic_enter_link (s, "gpt", 5);
  for (guint b = 0; b < 12; b++)
    {
      char path[32];

      g_snprintf (path, sizeof path, "gpt/h%u", b);
      td_synthetic_enter_link (s, path, 7);
      h = TD_OP (s, "linear", 20, shape, h);
      h = TD_OP (s, "relu", 21, shape, h);
      if (b != 5)
        h = TD_OP (s, "dropout", 22, shape, h);
      td_synthetic_leave (s);
    }
  td_synthetic_leave (s);
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);
    const TdVizGroup *loop = find_group (it, "h0…h11 ×12, h5 differs");

    assert_int_equal (loop->n_repeats, 12);
    assert_int_equal (loop->n_ops[TD_LANE_FORWARD], 35);
    assert_int_equal (find_group (it, "h5")->n_ops[TD_LANE_FORWARD], 2);
    assert_string_equal (find_group (it, "h11")->path, "gpt/h11");
  }
  (void)state;
}

/* The first loss has no sum of losses to be added to, the first state is an input. */
static void
graph__counts_a_first_turn_that_has_nothing_to_read (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  const gint64 *shape = TD_SHAPE (4, 4);
  guint h = 0, sum = 0;

  for (guint t = 0; t < 20; t++)
    {
      guint x = td_synthetic_input (s, "x", shape), loss;

      x = TD_OP (s, "linear", 12, shape, x);
      if (t > 0)
        x = TD_OP (s, "add", 13, shape, x, h);
      h = TD_OP (s, "tanh", 14, shape, x);
      loss = TD_OP (s, "mean", 15, TD_SHAPE (1), h);
      sum = t > 0 ? TD_OP (s, "add", 16, TD_SHAPE (1), sum, loss) : loss;
    }
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);
    const TdVizGroup *loop = find_group (it, "loop ×20, first differs");

    assert_int_equal (loop->n_ops[TD_LANE_FORWARD], 20 * 5 - 2);
    assert_int_equal (find_group (it, "step 0")->n_ops[TD_LANE_FORWARD], 3);
  }
  (void)state;
}

static void
graph__finds_loops_of_plain_operations (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  guint x = td_synthetic_input (s, "x", TD_SHAPE (4, 4));

  x = TD_OP (s, "exp", 1, TD_SHAPE (4, 4), x);
  for (guint i = 0; i < 20; i++)
    {
      x = TD_OP (s, "mul", 5, TD_SHAPE (4, 4), x, x);
      x = TD_OP (s, "tanh", 6, TD_SHAPE (4, 4), x);
    }
  x = TD_OP (s, "sum", 9, TD_SHAPE (1), x);
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);
    const TdVizGroup *loop = find_group (it, "loop ×20");
    TdVizView *view = view_at_depth (it, 0);

    assert_non_null (loop);
    assert_int_equal (loop->n_ops[TD_LANE_FORWARD], 40);
    /* exp, the loop, sum; and x above */
    assert_int_equal (view->n_nodes, 4);
    td_viz_view_unref (view);
  }
  (void)state;
}

/* A network of residual blocks whose program calls only the leaves, at lines as in C: blocks
 * are written once, at lines 10 to 13, and called from line 21. */
static TdIteration *
leaf_calls (guint n_blocks, gboolean numbered)
{
  static const char *const leaves[] = { "conv1", "conv2" };
  TdSynthetic *s = td_synthetic_new (0);
  const gint64 *shape = TD_SHAPE (4, 4);
  guint h = td_synthetic_input (s, "x", shape), x;
  char path[64];

  for (guint b = 0; b < n_blocks; b++)
    {
      x = h;
      for (guint l = 0; l < 2; l++)
        {
          if (numbered)
            g_snprintf (path, sizeof path, "net/res%u/%s", b, leaves[l]);
          else
            g_snprintf (path, sizeof path, "net/res/%s", leaves[l]);
          td_synthetic_enter_link (s, path, 10 + l);
          strcat (path, "/W");
          h = TD_OP (s, "convolution_2d", 100 + l, shape, h,
                     td_synthetic_parameter (s, path, shape));
          td_synthetic_leave (s);
          if (l == 0)
            h = TD_OP (s, "relu", 10, shape, h);
        }
      h = TD_OP (s, "add", 13, shape, h, x);
      h = TD_OP (s, "relu", 13, shape, h);
    }
  h = TD_OP (s, "mean", 22, TD_SHAPE (1), h);
  td_synthetic_enter_link (s, "net/fc", 23);
  h = TD_OP (s, "linear", 102, TD_SHAPE (1), h,
             td_synthetic_parameter (s, "net/fc/W", TD_SHAPE (1)));
  td_synthetic_leave (s);
  h = TD_OP (s, "loss", 23, TD_SHAPE (1), h);
  td_synthetic_backward (s, h);
  td_synthetic_update (s, "adam");
  return td_synthetic_finish (s);
}

static void
graph__makes_boxes_of_paths_where_only_leaves_are_called (void **state)
{
  g_autoptr (TdIteration) it = leaf_calls (2, TRUE);
  const TdVizGroup *res0 = find_group (it, "res0"), *res1 = find_group (it, "res1");

  assert_string_equal (
      td_viz_graph_get_groups (td_iteration_get_graph (it), &(guint){ 0 })->name, "net");
  /* two convolutions, relu between them, the sum and relu after them: but not the mean */
  assert_int_equal (res0->n_ops[TD_LANE_FORWARD], 5);
  assert_int_equal (res1->n_ops[TD_LANE_FORWARD], 5);
  assert_string_equal (res1->path, "net/res1");
  assert_int_equal (res1->n_ops[TD_LANE_UPDATE], 2);
  (void)state;
}

static void
graph__stacks_like_blocks_and_members_keep_their_names (void **state)
{
  g_autoptr (TdIteration) it = leaf_calls (12, TRUE);

  assert_non_null (find_group (it, "res0…res11 ×12"));
  assert_string_equal (find_group (it, "res7")->path, "net/res7");
  assert_null (find_group (it, "step 7"));
  (void)state;
}

static void
graph__makes_a_box_of_each_step_of_a_cell (void **state)
{
  g_autoptr (TdIteration) it = leaf_calls (5, FALSE);

  assert_non_null (find_group (it, "res ×5"));
  assert_int_equal (find_group (it, "res 3")->n_ops[TD_LANE_FORWARD], 5);
  (void)state;
}

static void
graph__pairs_in_a_series_are_no_loop (void **state)
{
  /* b0, b1, b0, b1 ...: as code this repeats, but b0 to b7 are one series of blocks */
  TdSynthetic *s = td_synthetic_new (0);
  const gint64 *shape = TD_SHAPE (4, 4);
  guint h = td_synthetic_input (s, "x", shape);

  for (guint b = 0; b < 8; b++)
    {
      char path[32];

      g_snprintf (path, sizeof path, "net/b%u", b);
      td_synthetic_enter_link (s, path, 5);
      h = TD_OP (s, "exp", 10, shape, h);
      h = TD_OP (s, b % 2 ? "tanh" : "relu", 11 + b % 2, shape, h);
      td_synthetic_leave (s);
    }
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);
    guint n;
    const TdVizGroup *groups = td_viz_graph_get_groups (td_iteration_get_graph (it), &n);

    assert_int_equal (n, 9);
    for (guint i = 1; i < n; i++)
      assert_int_equal (groups[i].kind, TD_GROUP_LINK);
  }
  (void)state;
}

static guint
count_boxes (const TdVizView *view, TdLane lane)
{
  guint n = 0;

  for (guint i = 0; i < view->n_nodes; i++)
    n += view->nodes[i].lane == lane
         && (view->nodes[i].kind == TD_VIZ_OP || view->nodes[i].kind == TD_VIZ_GROUP);
  return n;
}

static void
graph__folds_many_updates_by_layer (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  const gint64 *shape = TD_SHAPE (4, 4);
  guint h = td_synthetic_input (s, "x", shape);

  for (guint b = 0; b < 6; b++) /* each a link of one operation with two parameters */
    {
      char path[32], W[40], beta[40];

      g_snprintf (path, sizeof path, "net/fc%c", 'a' + b);
      g_snprintf (W, sizeof W, "%s/W", path);
      g_snprintf (beta, sizeof beta, "%s/b", path);
      td_synthetic_enter_link (s, path, 5 + b);
      h = TD_OP (s, "linear", 30 + b, shape, h, td_synthetic_parameter (s, W, shape),
                 td_synthetic_parameter (s, beta, shape));
      td_synthetic_leave (s);
    }
  td_synthetic_backward (s, h);
  td_synthetic_update (s, "adam");
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);
    TdVizView *view = view_at_depth (it, 0);
    gint fcb = find_label (view, "fcb update", TD_LANE_UPDATE);

    assert_int_equal (count_boxes (view, TD_LANE_UPDATE), 6);
    assert_true (fcb >= 0);
    /* in the row of what they update */
    assert_string_equal (view->nodes[view->nodes[fcb].twin].label, "linear");
    td_viz_view_unref (view);
  }
  (void)state;
}

static void
graph__cuts_what_no_picture_has_room_for_into_sections (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  const gint64 *shape = TD_SHAPE (4, 4);
  guint h = td_synthetic_input (s, "x", shape);

  for (guint i = 0; i < 500; i++) /* a new line each time: nothing repeats */
    h = TD_OP (s, i % 7 ? "tanh" : "exp", 10 + i, shape, h);
  td_synthetic_backward (s, h);
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);
    TdFold *fold = td_fold_new_default (td_iteration_get_graph (it), 60);
    TdVizView *view = td_viz_view_new (td_iteration_get_graph (it), fold, TD_VIEW_ALL);
    guint n = count_boxes (view, TD_LANE_FORWARD) + count_boxes (view, TD_LANE_BACKWARD);

    assert_in_range (n, 20, 60);
    guint n_groups, n_sections = 0, n_ops = 0;
    const TdVizGroup *groups = td_viz_graph_get_groups (td_iteration_get_graph (it), &n_groups);

    for (guint g = 1; g < n_groups; g++)
      if (groups[g].parent == 0)
        {
          assert_int_equal (groups[g].kind, TD_GROUP_SECTION);
          assert_true (g_str_has_prefix (groups[g].name, "ops "));
          n_sections++;
          n_ops += groups[g].n_ops[TD_LANE_FORWARD];
        }
    assert_in_range (n_sections, 10, 20);
    assert_int_equal (n_ops, 500);
    td_viz_view_unref (view);
    td_fold_free (fold);
  }
  (void)state;
}

/* As `stack` of many rows is undone by as many of `select`. */
static void
graph__makes_a_box_of_an_operation_that_many_undo (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  const gint64 *shape = TD_SHAPE (4, 4);
  guint rows[20], few, many;

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      char path[16];

      g_snprintf (path, sizeof path, "net/row%u", i);
      rows[i] = td_synthetic_parameter (s, path, shape);
    }
  few = td_synthetic_op (s, "join", 10, shape, rows, 8);
  many = td_synthetic_op (s, "stack", 11, shape, rows, G_N_ELEMENTS (rows));
  td_synthetic_backward (s, TD_OP (s, "add", 12, shape, few, many));
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);
    TdVizView *view = view_at_depth (it, 0);
    gint stack = find_label (view, "stack", TD_LANE_FORWARD);
    gint undone = find_label (view, "stack′", TD_LANE_BACKWARD);
    guint n_undoing = 0;

    assert_true (stack >= 0 && undone >= 0);
    assert_int_equal (view->nodes[undone].twin, stack);
    assert_string_equal (view->nodes[undone].detail, "20 ops");
    for (guint i = 0; i < view->n_nodes; i++)
      n_undoing += g_str_has_prefix (view->nodes[i].label, "grad_row");
    assert_int_equal (n_undoing, 8); /* of `join` */
    td_viz_view_unref (view);
  }
  (void)state;
}

/* Nothing is gained by a box with one other box in it. */
static void
graph__calls_a_layer_that_is_one_loop_by_its_name (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  const gint64 *shape = TD_SHAPE (4, 4);
  guint h = TD_OP (s, "exp", 4, shape, td_synthetic_input (s, "x", shape));

  td_synthetic_enter_link (s, "gpt", 5);
  h = TD_OP (s, "exp", 6, shape, h);
  td_synthetic_enter_link (s, "gpt/layers", 7);
  for (guint b = 0; b < 12; b++)
    {
      char path[32];

      g_snprintf (path, sizeof path, "gpt/layers/%u", b);
      td_synthetic_enter_link (s, path, 8);
      h = TD_OP (s, "linear", 20, shape, h);
      h = TD_OP (s, "relu", 21, shape, h);
      td_synthetic_leave (s);
    }
  td_synthetic_leave (s);
  td_synthetic_enter_link (s, "gpt/head", 9); /* what is alone is no box at the top */
  h = TD_OP (s, "linear", 30, shape, TD_OP (s, "tanh", 31, shape, h));
  td_synthetic_leave (s);
  td_synthetic_leave (s);
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);
    const TdVizGroup *layers = find_group (it, "layers ×12");
    const TdVizGroup *fifth = find_group (it, "5");
    guint n;
    const TdVizGroup *groups = td_viz_graph_get_groups (td_iteration_get_graph (it), &n);

    assert_int_equal (layers->n_ops[TD_LANE_FORWARD], 24);
    assert_int_equal (layers->n_repeats, 12);
    assert_string_equal (layers->path, "gpt/layers");
    assert_ptr_equal (&groups[fifth->parent], layers);
  }
  (void)state;
}

static void
fold__opens_what_hides_the_playhead_first (void **state)
{
  g_autoptr (TdIteration) it = leaf_calls (12, TRUE);
  TdVizGraph *graph = td_iteration_get_graph (it);
  TdFold *fold = td_fold_new_near (graph, 60, 27); /* in the sixth block */
  TdVizView *view = td_viz_view_new (graph, fold, TD_VIEW_ALL);

  assert_int_equal (view->nodes[td_viz_view_find_event (view, 27)].kind, TD_VIZ_OP);
  assert_in_range (count_boxes (view, 0) + count_boxes (view, 1) + count_boxes (view, 2), 10,
                   60);
  td_viz_view_unref (view);
  td_fold_free (fold);
  (void)state;
}

static void
graph__two_equal_steps_are_no_loop (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lstm (0, 2, FALSE, FALSE);

  assert_null (find_group (it, "lstm ×2"));
  assert_non_null (find_group (it, "lstm"));
  (void)state;
}

static void
fold__opens_small_graphs_whole_and_keeps_large_ones_readable (void **state)
{
  g_autoptr (TdIteration) small = td_synthetic_lstm (0, 2, FALSE, FALSE);
  g_autoptr (TdIteration) large = td_synthetic_lstm (0, 35, FALSE, TRUE);
  TdFold *fold = td_fold_new_default (td_iteration_get_graph (small), 0);
  TdVizView *view = td_viz_view_new (td_iteration_get_graph (small), fold, TD_VIEW_ALL);
  guint visible = 0;

  for (guint i = 0; i < view->n_nodes; i++)
    assert_int_not_equal (view->nodes[i].kind, TD_VIZ_GROUP);
  td_viz_view_unref (view);
  td_fold_free (fold);

  fold = td_fold_new_default (td_iteration_get_graph (large), 0);
  view = td_viz_view_new (td_iteration_get_graph (large), fold, TD_VIEW_ALL);
  for (guint i = 0; i < view->n_nodes; i++)
    visible += view->nodes[i].user < 0 && view->nodes[i].kind != TD_VIZ_INPUT;
  assert_in_range (visible, 5, 40);
  td_viz_view_unref (view);
  td_fold_free (fold);
  (void)state;
}

static void
fold__reveals_an_event_and_folds_back (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lstm (0, 35, FALSE, TRUE);
  TdVizGraph *graph = td_iteration_get_graph (it);
  TdFold *fold = td_fold_new_depth (graph, 0), *before = td_fold_new_depth (graph, 0);
  TdVizView *view;
  const TdVizGroup *groups;
  guint event = 100, n;

  view = td_viz_view_new (graph, fold, TD_VIEW_ALL);
  assert_int_equal (view->nodes[td_viz_view_find_event (view, event)].kind, TD_VIZ_GROUP);
  td_viz_view_unref (view);
  assert_true (td_fold_reveal (fold, graph, event));
  assert_false (td_fold_reveal (fold, graph, event));
  view = td_viz_view_new (graph, fold, TD_VIEW_ALL);
  assert_int_equal (view->nodes[td_viz_view_find_event (view, event)].kind, TD_VIZ_OP);
  td_viz_view_unref (view);
  for (gint g = td_viz_graph_get_event_group (graph, event); g > 0;)
    {
      groups = td_viz_graph_get_groups (graph, &n);
      td_fold_set_expanded (fold, groups[g].key, FALSE);
      g = groups[g].parent;
    }
  groups = td_viz_graph_get_groups (graph, &n);
  for (guint g = 0; g < n; g++)
    assert_int_equal (td_fold_is_expanded (fold, groups[g].key),
                      td_fold_is_expanded (before, groups[g].key));
  td_fold_free (fold);
  td_fold_free (before);
  (void)state;
}

static void
view__puts_every_twin_in_the_row_of_its_operation (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  const TdTapeIteration *tape = td_iteration_get_tape (it);
  TdVizView *view = view_at_depth (it, -1);
  guint backward = 0;

  for (guint e = 0; e < tape->n_events; e++)
    if (tape->events[e].phase == TD_TAPE_PHASE_BACKWARD)
      {
        const TdVizNode *node = &view->nodes[td_viz_view_find_event (view, e)];

        backward++;
        assert_int_equal (view->nodes[node->twin].event, tape->events[e].twin);
      }
  assert_int_equal (backward, 22);
  /* three gradients side by side are called by what they are the gradient of */
  assert_true (find_label (view, "grad_W", TD_LANE_BACKWARD) >= 0);
  assert_true (find_label (view, "relu_grad", TD_LANE_BACKWARD) >= 0);
  assert_true (find_label (view, "adam conv2/W", TD_LANE_UPDATE) >= 0);
  td_viz_view_unref (view);
  (void)state;
}

static void
view__copies_a_shared_parameter_for_each_user (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lstm (0, 10, FALSE, FALSE);
  TdVizView *view = view_at_depth (it, -1);
  guint stubs = 0;

  for (guint i = 0; i < view->n_nodes; i++)
    if (view->nodes[i].kind == TD_VIZ_STUB && strcmp (view->nodes[i].label, "Wx") == 0)
      {
        stubs++;
        assert_int_equal (view->nodes[view->nodes[i].user].kind, TD_VIZ_OP);
      }
  assert_int_equal (stubs, 10);
  /* no node is read by more than its stub's one edge */
  for (guint i = 0; i < view->n_edges; i++)
    if (view->nodes[view->edges[i].from].kind == TD_VIZ_STUB)
      assert_int_equal (view->edges[i].to, view->nodes[view->edges[i].from].user);
  td_viz_view_unref (view);
  (void)state;
}

static void
view__draws_saved_edges_with_their_bytes_in_the_row (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  TdVizView *view = view_at_depth (it, 0);
  gint block1 = find_label (view, "block1", TD_LANE_FORWARD);
  guint saved = 0;

  for (guint i = 0; i < view->n_edges; i++)
    if (view->edges[i].kind == TD_EDGE_SAVED && view->edges[i].from == block1)
      {
        saved++;
        assert_string_equal (view->nodes[view->edges[i].to].label, "block1′");
        assert_int_equal (view->edges[i].bytes, 4 * 64 * 28 * 28 * (1 + 6 + 6));
      }
  assert_int_equal (saved, 1);
  td_viz_view_unref (view);
  (void)state;
}

static void
view__counts_what_has_run (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  TdVizGraph *graph = td_iteration_get_graph (it);

  /* events 0 ... 12 are forward; backward begins with 13 */
  assert_int_equal (td_viz_graph_count_run (graph, 0, TD_LANE_FORWARD, 12), 13);
  assert_int_equal (td_viz_graph_count_run (graph, 0, TD_LANE_BACKWARD, 12), 0);
  assert_int_equal (td_viz_graph_count_run (graph, 0, TD_LANE_BACKWARD, 14), 2);
  assert_int_equal (td_viz_graph_count_run (graph, 2, TD_LANE_FORWARD, 4), 2);
  (void)state;
}

static void
view__says_all_of_lenet_as_text (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (118);
  TdVizView *view = view_at_depth (it, -1);
  char *text = td_viz_view_to_text (view);

  td_test_golden ("viz-lenet-view.txt", text);
  g_free (text);
  td_viz_view_unref (view);
  (void)state;
}

static void
graph__finds_text_in_names_layers_shapes_and_sites (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  TdVizGraph *graph = td_iteration_get_graph (it);
  GArray *found = td_viz_graph_find_text (graph, "CONV2");

  /* forward and three gradients by their layer, two updates by their parameter */
  assert_int_equal (found->len, 6);
  g_array_unref (found);
  found = td_viz_graph_find_text (graph, "model.c:33");
  assert_int_equal (found->len, 2); /* the loss and its gradient */
  g_array_unref (found);
  found = td_viz_graph_find_text (graph, "(64, 10)");
  assert_true (found->len > 0); /* what the last layer makes, and its gradient */
  g_array_unref (found);
  found = td_viz_graph_find_text (graph, "64, 10)"); /* which does not begin as a shape does */
  assert_int_equal (found->len, 0);
  g_array_unref (found);
  found = td_viz_graph_find_text (graph, "conv9");
  assert_int_equal (found->len, 0);
  g_array_unref (found);
  (void)state;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (graph__groups_by_link_and_leaves_the_wrappers_out),
    td_test (graph__counts_saved_bytes_once_for_each_variable),
    td_test (graph__finds_loops_that_c_hides),
    td_test (graph__counts_an_odd_step_and_says_so),
    td_test (graph__names_the_layer_that_differs),
    td_test (graph__counts_a_first_turn_that_has_nothing_to_read),
    td_test (graph__finds_loops_of_plain_operations),
    td_test (graph__makes_boxes_of_paths_where_only_leaves_are_called),
    td_test (graph__stacks_like_blocks_and_members_keep_their_names),
    td_test (graph__makes_a_box_of_each_step_of_a_cell),
    td_test (graph__pairs_in_a_series_are_no_loop),
    td_test (graph__folds_many_updates_by_layer),
    td_test (graph__cuts_what_no_picture_has_room_for_into_sections),
    td_test (graph__makes_a_box_of_an_operation_that_many_undo),
    td_test (graph__calls_a_layer_that_is_one_loop_by_its_name),
    td_test (fold__opens_what_hides_the_playhead_first),
    td_test (graph__two_equal_steps_are_no_loop),
    td_test (fold__opens_small_graphs_whole_and_keeps_large_ones_readable),
    td_test (fold__reveals_an_event_and_folds_back),
    td_test (view__puts_every_twin_in_the_row_of_its_operation),
    td_test (view__copies_a_shared_parameter_for_each_user),
    td_test (view__draws_saved_edges_with_their_bytes_in_the_row),
    td_test (view__counts_what_has_run),
    td_test (view__says_all_of_lenet_as_text),
    td_test (graph__finds_text_in_names_layers_shapes_and_sites),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
