/* The verbs of the transport, and indices of iterations they rest on.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "td-synthetic.h"

#include "tape/td-navigate.h"

/* LeNet: block1 0-2, block2 3-5, head 6-11, loss 12; backward 13 loss', head' 14-25, block2'
 * 26-30, block1' 31-34; updates 35-44. Layers: iteration > lenet > block > conv. */

static const char *
op (TdIteration *it, gint event)
{
  return td_iteration_get_op_name (it, (guint)event);
}

static void
step_op__walks_every_event_and_stops_at_the_ends (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  gint event = -1;

  for (gint i = 0; i < 45; i++)
    {
      event = td_navigate_step_op (it, event, 1);
      assert_int_equal (event, i);
    }
  assert_int_equal (td_navigate_step_op (it, 44, 1), 44);
  assert_int_equal (td_navigate_step_op (it, 7, -1), 6);
  assert_int_equal (td_navigate_step_op (it, 0, -1), 0);
  (void)state;
}

static void
step_over__passes_a_layer_whole (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);

  /* from block1's last operation, over block2 to its last; over head; to the loss */
  assert_int_equal (td_navigate_step_over (it, 2, 1), 5);
  assert_int_equal (td_navigate_step_over (it, 5, 1), 11);
  assert_int_equal (td_navigate_step_over (it, 11, 1), 12);
  /* inside block2: one operation after the other */
  assert_int_equal (td_navigate_step_over (it, 3, 1), 4);
  /* and back: over block2 to its first, over block1 to its first */
  assert_int_equal (td_navigate_step_over (it, 6, -1), 3);
  assert_int_equal (td_navigate_step_over (it, 3, -1), 0);
  (void)state;
}

static void
step_over__passes_a_layer_of_backward_whole (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);

  assert_string_equal (op (it, 25), "reshape_grad");
  assert_int_equal (td_navigate_step_over (it, 25, 1), 30);
  assert_int_equal (td_navigate_step_over (it, 30, 1), 34);
  assert_int_equal (td_navigate_step_over (it, 31, -1), 26);
  (void)state;
}

static void
step_out__ends_the_layer_then_the_one_around_it (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);

  assert_int_equal (td_navigate_step_out (it, 4, 1), 5);   /* block2 */
  assert_int_equal (td_navigate_step_out (it, 5, 1), 11);  /* lenet */
  assert_int_equal (td_navigate_step_out (it, 11, 1), 12); /* the iteration's scope */
  assert_int_equal (td_navigate_step_out (it, 27, 1), 30); /* block2 in backward */
  assert_int_equal (td_navigate_step_out (it, 5, -1), 3);
  (void)state;
}

static void
step_into__enters_the_next_layer (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);

  assert_int_equal (td_navigate_step_into (it, 2, 1), 3);
  assert_int_equal (td_navigate_step_into (it, 12, 1), 13); /* into backward */
  (void)state;
}

static void
same_event__is_found_by_key_else_the_nearest_before (void **state)
{
  g_autoptr (TdIteration) a = td_synthetic_lstm (0, 5, FALSE, FALSE);
  g_autoptr (TdIteration) b = td_synthetic_lstm (1, 3, FALSE, FALSE);
  gboolean exact;
  gint event = td_navigate_same_event (a, 20, b, &exact);

  assert_int_equal (event, 20);
  assert_true (exact);
  event = td_navigate_same_event (a, 60, b, &exact); /* in the fifth step: b has three */
  assert_false (exact);
  assert_int_equal (event, 44); /* the last operation of b's third step */
  /* the loss is the same operation, though it runs earlier */
  event = td_navigate_same_event (a, (gint)td_iteration_get_n_events (a) - 1, b, &exact);
  assert_true (exact);
  assert_int_equal (event, td_iteration_get_n_events (b) - 1);
  (void)state;
}

static void
where_from__walks_through_views_and_updates (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  GArray *found = td_navigate_where_from (it, 7, FALSE);

  assert_int_equal (g_array_index (found, gint32, 0), 6); /* the reshape */
  g_array_unref (found);
  found = td_navigate_where_from (it, 7, TRUE);
  assert_int_equal (found->len, 1);
  assert_string_equal (op (it, g_array_index (found, gint32, 0)), "max_pooling_2d");
  g_array_unref (found);
  found = td_navigate_where_used (it, 3);
  assert_int_equal (g_array_index (found, gint32, 0), 4);
  g_array_unref (found);
  /* backward of the first convolution reads what comes from outside, and relu's gradient */
  found = td_navigate_where_from (it, 33, TRUE);
  assert_int_equal (found->len, 1);
  assert_string_equal (op (it, g_array_index (found, gint32, 0)), "relu_grad");
  g_array_unref (found);
  (void)state;
}

static void
twin__goes_there_and_back (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);

  for (gint e = 0; e < 13; e++)
    assert_int_equal (td_navigate_twin (it, td_navigate_twin (it, e)), e);
  assert_string_equal (op (it, 37), "adam"); /* conv2/W */
  assert_string_equal (op (it, td_navigate_twin (it, 37)), "convolution_2d_grad_W");
  (void)state;
}

static void
loss__is_what_backward_begins_with (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (0);
  g_autoptr (TdIteration) forward_only = td_synthetic_residual (0, 12, FALSE);

  assert_int_equal (td_navigate_loss (it), 12);
  assert_int_equal (td_navigate_first_of_phase (it, TD_TAPE_PHASE_BACKWARD), 13);
  assert_int_equal (td_navigate_first_of_phase (it, TD_TAPE_PHASE_UPDATE), 35);
  assert_int_equal (td_navigate_loss (forward_only), 11);
  assert_int_equal (td_navigate_first_of_phase (forward_only, TD_TAPE_PHASE_BACKWARD), -1);
  (void)state;
}

/* As PyTorch does it: gradients are zeroed between the loss and backward, which begins with a
 * gradient of 1. */
static void
loss__is_not_what_runs_between_it_and_backward (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  const gint64 *shape = TD_SHAPE (4);
  guint W = td_synthetic_parameter (s, "net/W", shape);
  guint y = TD_OP (s, "mul", 1, shape, td_synthetic_input (s, "x", shape), W);
  guint loss = TD_OP (s, "sum", 2, TD_SHAPE (1), y);
  g_autoptr (TdIteration) it = NULL;

  TD_OP (s, "zero_", 3, shape, td_synthetic_input (s, "old", shape));
  td_synthetic_ones (s, loss);
  td_synthetic_backward (s, loss);
  it = td_synthetic_finish (s);
  assert_string_equal (op (it, 3), "ones_like");
  assert_int_equal (td_navigate_loss (it), 1);
  (void)state;
}

static void
anomaly__is_a_failed_call_or_a_nan (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  guint x = td_synthetic_input (s, "x", TD_SHAPE (4));

  x = TD_OP (s, "exp", 1, TD_SHAPE (4), x);
  x = TD_OP (s, "log", 2, TD_SHAPE (4), x);
  td_synthetic_nan (s);
  x = TD_OP (s, "sum", 3, TD_SHAPE (1), x);
  x = TD_OP (s, "matmul", 4, TD_SHAPE (1), x);
  td_synthetic_fail (s);
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);

    assert_int_equal (td_navigate_anomaly (it, -1, 1), 1);
    assert_int_equal (td_navigate_anomaly (it, 1, 1), 3);
    assert_int_equal (td_navigate_anomaly (it, 3, 1), -1);
    assert_int_equal (td_navigate_anomaly (it, 3, -1), 1);
  }
  (void)state;
}

/* a and b are read by c; d reads a only, and nothing leads from b to it. */
static void
between__lists_what_lies_on_the_ways (void **state)
{
  static const struct
  {
    gint from, to;
    guint n;
    gint32 events[4];
  } cases[] = { { 0, 2, 2, { 0, 2 } },    { 0, 4, 4, { 0, 2, 3, 4 } }, { 1, 3, 0, { 0 } },
                { 1, 4, 3, { 1, 2, 4 } }, { 2, 2, 1, { 2 } },          { 4, 0, 0, { 0 } },
                { -1, 2, 0, { 0 } },      { 0, 99, 0, { 0 } } };
  TdSynthetic *s = td_synthetic_new (0);
  guint x = td_synthetic_input (s, "x", TD_SHAPE (4));
  guint a = TD_OP (s, "tanh", 1, TD_SHAPE (4), x), b = TD_OP (s, "exp", 2, TD_SHAPE (4), x);
  guint c = TD_OP (s, "add", 3, TD_SHAPE (4), a, b), d = TD_OP (s, "relu", 4, TD_SHAPE (4), a);

  TD_OP (s, "mul", 5, TD_SHAPE (4), c, d);
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);

    for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
      {
        g_autoptr (GArray) found = td_navigate_between (it, cases[i].from, cases[i].to);

        assert_int_equal (found->len, cases[i].n);
        for (guint k = 0; k < found->len; k++)
          assert_int_equal (g_array_index (found, gint32, k), cases[i].events[k]);
      }
  }
  (void)state;
}

static void
iteration__lists_each_reader_once (void **state)
{
  TdSynthetic *s = td_synthetic_new (0);
  guint x = td_synthetic_input (s, "x", TD_SHAPE (4));
  guint y = TD_OP (s, "mul", 1, TD_SHAPE (4), x, x);
  guint n;
  const gint32 *readers;

  TD_OP (s, "add", 2, TD_SHAPE (4), x, y);
  {
    g_autoptr (TdIteration) it = td_synthetic_finish (s);

    readers = td_iteration_get_consumers (it, x, &n);
    assert_int_equal (n, 2);
    assert_int_equal (readers[0], 0);
    assert_int_equal (readers[1], 1);
    readers = td_iteration_get_consumers (it, y, &n);
    assert_int_equal (n, 1);
    assert_int_equal (readers[0], 1);
  }
  (void)state;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (step_op__walks_every_event_and_stops_at_the_ends),
    td_test (step_over__passes_a_layer_whole),
    td_test (step_over__passes_a_layer_of_backward_whole),
    td_test (step_out__ends_the_layer_then_the_one_around_it),
    td_test (step_into__enters_the_next_layer),
    td_test (same_event__is_found_by_key_else_the_nearest_before),
    td_test (where_from__walks_through_views_and_updates),
    td_test (twin__goes_there_and_back),
    td_test (loss__is_what_backward_begins_with),
    td_test (loss__is_not_what_runs_between_it_and_backward),
    td_test (anomaly__is_a_failed_call_or_a_nan),
    td_test (between__lists_what_lies_on_the_ways),
    td_test (iteration__lists_each_reader_once),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
