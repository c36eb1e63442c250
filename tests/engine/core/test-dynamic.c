/* What "dynamic graphs" promise, row by row: DY01 - DY16, DY19, DY20 of the inventory of the
 * tutorial this project grew from, and EX05.  An observer notes events as a recorder would.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include "tapedeck-op.h" /* before core.h, which leaves the sites out */

#include "compute/core/core.h"
#include "../quiet-observer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_EVENTS = 4096
};

/* What the observer notes. */
static struct
{
  TdObserver observer;
  char log[1 << 16]; /* "relu sum " ..., "free " */
  int n_events, n_host_reads, n_outputs, n_buffers;
  uint64_t backward_ids[MAX_EVENTS];
  int n_backward;
} notes;

static void
note (const char *text)
{
  size_t used = strlen (notes.log);

  if (used + strlen (text) + 2 < sizeof notes.log)
    snprintf (notes.log + used, sizeof notes.log - used, "%s ", text);
}

static void
after_op (TdObserver *o, const TdEvent *e)
{
  (void)o;
  notes.n_events++;
  notes.n_outputs += e->n_out;
  if (e->phase == TD_PHASE_FORWARD)
    note (e->cls->name);
  else if (e->phase == TD_PHASE_BACKWARD && notes.n_backward < MAX_EVENTS
           && (notes.n_backward == 0 || notes.backward_ids[notes.n_backward - 1] != e->twin_id))
    notes.backward_ids[notes.n_backward++] = e->twin_id;
}

static void
buffer_free (TdObserver *o, const TdBuffer *b)
{
  (void)o;
  (void)b;
  note ("free");
}

static void
host_read (TdObserver *o, TdNode *n, const TdSite *site)
{
  (void)o;
  (void)n;
  (void)site;
  notes.n_host_reads++;
}

static void
on_buffer (TdObserver *o, const TdBuffer *b)
{
  (void)o;
  assert_non_null (b->block);
  notes.n_buffers++;
}

static void
on_error (TdObserver *o, const TdError *error)
{
  (void)o;
  note (error->op);
  note ("failed");
}

static void
watch (void)
{
  memset (&notes, 0, sizeof notes);
  notes.observer = quiet_observer;
  notes.observer.after_op = after_op;
  notes.observer.buffer_new = on_buffer;
  notes.observer.buffer_free = buffer_free;
  notes.observer.host_read = host_read;
  notes.observer.write = host_read;
  notes.observer.unchain = host_read;
  notes.observer.error = on_error;
  td__engine.observer = &notes.observer;
}

static int
setup (void **state)
{
  td_init (NULL, NULL);
  td_set_seed (7);
  td_scope_open ("test");
  return td_test_setup (state);
}

static int
teardown (void **state)
{
  td__engine.observer = NULL;
  td_error_clear ();
  assert_int_equal (td_finish (), 0);
  return td_test_teardown (state);
}

static TdVar *
leaf (int64_t rows, int64_t columns)
{
  return td_variable (td_randn (TD_F64, TD_SHAPE (rows, columns)), "x");
}

static int64_t
live_ops (void)
{
  return td_mem_info (NULL).live_ops;
}

static void
dy01__each_call_makes_one_operation_and_its_outputs_at_once (void **state)
{
  TdVar *x = leaf (2, 3), *out[3];

  (void)state;
  watch ();
  for (int i = 0; i < 5; i++)
    {
      int64_t ops = live_ops ();

      td_relu (x);
      assert_int_equal (live_ops (), ops + 1);
      assert_int_equal (notes.n_events, i + 1);
    }
  int64_t ops = live_ops (), nodes = td_mem_info (NULL).live_nodes;
  assert_int_equal (td_split_axis (x, 3, 1, out), TD_OK);
  assert_int_equal (live_ops () - ops, notes.n_events - 5);
  assert_int_equal (td_mem_info (NULL).live_nodes - nodes, notes.n_outputs - 5);
}

/* EX01, EX02, EX04: the function of the tutorial. */
static TdVar *
example (TdVar *x, bool apply_relu)
{
  TdVar *h = apply_relu ? td_relu (x) : td_sigmoid (x);

  return td_mean_of (x) > 0 ? td_sum (h) : td_prod (h);
}

static void
dy02_dy04_ex02__another_branch_is_another_graph_without_a_rebuild (void **state)
{
  TdVar *x = td_full (TD_F64, TD_SHAPE (5), 1);

  (void)state;
  td_variable (x, "x");
  watch ();
  example (x, true);
  assert_string_equal (notes.log, "relu sum ");
  watch ();
  example (x, false);
  assert_string_equal (notes.log, "sigmoid sum ");
}

static void
dy10_ex05__a_decision_on_data_follows_the_data_and_is_recorded (void **state)
{
  TdVar *x = td_full (TD_F64, TD_SHAPE (5), 1);

  (void)state;
  watch ();
  example (x, true);
  assert_int_equal (notes.n_host_reads, 1);
  assert_string_equal (notes.log, "relu sum ");
  x = td_full (TD_F64, TD_SHAPE (5), -1);
  watch ();
  example (x, true);
  assert_int_equal (notes.n_host_reads, 1);
  assert_string_equal (notes.log, "relu prod ");
}

/* EX04: both outputs are scalars with gradients, prod also with a zero in its input. */
static void
sum_of_relu (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)user;
  (void)n_in;
  (void)n_out;
  out[0] = td_sum (td_sigmoid (in[0]));
}

static void
prod_of_square (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)user;
  (void)n_in;
  (void)n_out;
  out[0] = td_prod (td_add_scalar (in[0], *(double *)user));
}

static void
ex04__sum_and_prod_have_gradients_also_at_zero (void **state)
{
  static const double values[] = { 1, -2, 3, 0.5, -1.5 };
  TdVar *x = td_variable (td_tensor (TD_F64, TD_SHAPE (5), values), "x");
  double shift = 2; /* makes the second element zero */
  TdCheckOpt options = td_check_options ();

  (void)state;
  assert_int_equal (td_ndim (example (x, false)), 0);
  assert_int_equal (td_check_backward_ (sum_of_relu, NULL, &x, 1, NULL, 1, &options), TD_OK);
  assert_int_equal (td_check_backward_ (prod_of_square, &shift, &x, 1, NULL, 1, &options),
                    TD_OK);
  assert_int_equal (
      td_check_double_backward_ (prod_of_square, &shift, &x, 1, NULL, 1, &options), TD_OK);
}

/* A recurrent net of user's code: T steps of h = tanh (h W + x_t). */
static void
recurrent (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_mul_scalar (in[0], 0.5);

  (void)n_in;
  (void)n_out;
  for (int t = 0; t < *(int *)user; t++)
    h = td_tanh (td_add (td_matmul (h, in[1], false, false), in[0]));
  out[0] = td_sum (h);
}

static void
dy03__a_loop_makes_a_graph_in_proportion_and_right_gradients_for_each_length (void **state)
{
  TdVar *in[2] = { leaf (2, 3), leaf (3, 3) }, *y;
  TdCheckOpt options = td_check_options ();
  int64_t first = 0;

  (void)state;
  options.eps = 1e-5;
  for (int steps = 1; steps <= 50; steps++)
    TD_SCOPE ("length")
      {
        int64_t ops = live_ops ();

        recurrent (&steps, in, 2, &y, 1);
        if (steps == 1)
          first = live_ops () - ops;
        assert_int_equal (live_ops () - ops, first + 3 * (steps - 1));
        if (steps <= 5 || steps == 50)
          assert_int_equal (td_check_backward_ (recurrent, &steps, in, 2, NULL, 1, &options),
                            TD_OK);
      }
}

/* A binary tree of a given depth, each node its own combination: recursion in plain C. */
static TdVar *
tree (TdVar *x, TdVar *w, int depth, int64_t at)
{
  if (depth == 0)
    return td_mul_scalar (x, 0.1 * (double)(at + 1));
  return td_tanh (
      td_matmul (td_add (tree (x, w, depth - 1, 2 * at),
                         tree (x, w, depth - 1 - (at & 1 && depth > 1), 2 * at + 1)),
                 w, false, false));
}

static void
tree_net (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_sum (tree (in[0], in[1], *(int *)user, 0));
}

static void
dy06__a_recursive_net_has_right_gradients_at_every_depth (void **state)
{
  TdVar *in[2] = { leaf (2, 3), leaf (3, 3) };
  TdCheckOpt options = td_check_options ();

  (void)state;
  options.eps = 1e-5;
  for (int depth = 1; depth <= 4; depth++)
    TD_SCOPE ("depth")
      assert_int_equal (td_check_backward_ (tree_net, &depth, in, 2, NULL, 1, &options), TD_OK);
}

static void
dy05_dy19__sizes_and_lengths_vary_without_reconfiguration_or_padding (void **state)
{
  static const int batches[] = { 7, 3, 64 }, lengths[] = { 5, 40, 1 };
  TdLink *net = td_chain_new ("net"), *lstm = td_lstm_new (net, "lstm", 4, 6);

  (void)state;
  for (int i = 0; i < 3; i++)
    TD_SCOPE ("sequence")
      {
        TdVar *h = NULL;

        td_lstm_reset_state (lstm);
        for (int t = 0; t < lengths[i]; t++)
          {
            /* sequences sorted by length: fewer rows as the short ones end */
            int rows = t < 3 ? batches[i] : batches[i] - 1;

            h = td_link (lstm, td_randn (TD_F32, TD_SHAPE (rows, 4)));
          }
        assert_false (td_poisoned (h));
        assert_int_equal (td_shape (h).dim[0], lengths[i] > 3 ? batches[i] - 1 : batches[i]);
        assert_int_equal (td_backward (td_sum (h), 0), TD_OK);
        td_cleargrads (net);
      }
  assert_null (td_error ());
  td_link_free (net);
}

static void
dy07__the_graph_dies_with_its_last_handle_and_only_parameters_stay (void **state)
{
  TdLink *net = td_chain_new ("net"), *l1 = td_linear_new (net, "l1", 8, 16),
         *l2 = td_linear_new (net, "l2", 16, 2);
  TdOpt *opt = td_adam_new (net);
  size_t bytes = 0;

  (void)state;
  for (int i = 0; i < 5; i++)
    {
      TD_SCOPE ("iteration")
        {
          TdVar *x = td_randn (TD_F32, TD_SHAPE (4, 8)),
                *y = td_link (l2, td_relu (td_link (l1, x)));

          td_cleargrads (net);
          assert_int_equal (td_backward (td_sum (y), 0), TD_OK);
          assert_int_equal (td_opt_update (opt), TD_OK);
          assert_true (live_ops () > 0);
        }
      assert_int_equal (live_ops (), 0);
      if (i == 0)
        bytes = td_mem_info (NULL).live_bytes;
      assert_int_equal (td_mem_info (NULL).live_bytes, bytes);
    }
  TdMemInfo info = td_mem_info (NULL);
  assert_int_equal (info.category_bytes[TD_MEM_PARAMETER] + info.category_bytes[TD_MEM_GRADIENT]
                        + info.category_bytes[TD_MEM_OPTIMIZER],
                    info.live_bytes);
  td_opt_free (opt);
  td_link_free (net);
}

static void
dy08__an_array_that_nobody_keeps_is_freed_right_after_its_last_use (void **state)
{
  TdVar *x = leaf (4, 4), *y = NULL;

  (void)state;
  watch ();
  TD_SCOPE ("layer")
    y = td_scope_yield (td_mul_scalar (td_add_scalar (x, 1), 2));
  td_neg (y);
  assert_string_equal (notes.log, "add_scalar mul_scalar free neg ");
}

/* DY09, DY14: a user's chain with a loop and a branch inside, below another chain. */
typedef struct
{
  TdLink *inner;
  int turns;
} Looping;

static TdStatus
looping_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Looping *l = self;
  TdVar *h = in[0], *scale = td_link_param (link, "scale");

  (void)n_in;
  (void)n_out;
  for (int i = 0; i < l->turns; i++)
    h = i % 2 == 0 ? td_tanh (td_link (l->inner, h))
                   : td_mul (h, td_broadcast_to (scale, td_shape (h)));
  out[0] = h;
  return TD_OK;
}

static const TdLinkClass looping_class = { .size = sizeof (TdLinkClass),
                                           .name = "Looping",
                                           .self_bytes = sizeof (Looping),
                                           .forward = looping_forward };

static void
dy09_dy14__a_users_link_has_control_flow_parameters_and_a_place_in_the_tree (void **state)
{
  TdLink *net = td_chain_new ("net"), *mine = td_link_new (&looping_class, net, "mine");
  Looping *self = td_link_self (mine);
  TdVar *x = td_randn (TD_F32, TD_SHAPE (2, 3)), *y;

  (void)state;
  self->inner = td_linear_new (mine, "inner", 3, 3);
  td_link_add_param (mine, "scale", TD_SHAPE (1));
  assert_string_equal (td_link_path (self->inner), "net/mine/inner");
  assert_int_equal (td_link_count_params (net), 3 * 3 + 3 + 1);
  for (int turns = 1; turns <= 4; turns++)
    {
      self->turns = turns;
      watch ();
      y = td_link (mine, x);
      assert_false (td_poisoned (y));
      int n = 0;
      for (const char *at = notes.log; (at = strstr (at, "linear")) != NULL; at++)
        n++;
      assert_int_equal (n, (turns + 1) / 2);
    }
  assert_int_equal (td_save_npz (td_test_tmp ("net.npz"), net), TD_OK);
  assert_int_equal (td_load_npz (td_test_tmp ("net.npz"), net), TD_OK);
  td__engine.observer = NULL;
  td_link_free (net);
}

static void
dy11__an_error_is_reported_at_the_offending_call_before_any_later_one (void **state)
{
  TdLink *net = td_chain_new ("net"), *l1 = td_linear_new (net, "l1", 784, 10);
  TdVar *x = td_randn (TD_F32, TD_SHAPE (5, 100)), *y;

  (void)state;
  watch ();
  y = td_relu (td_link (l1, x));
  assert_true (td_poisoned (y));
  assert_string_equal (notes.log, "linear failed linear ");
  assert_int_equal (td_error ()->status, TD_ERR_SHAPE);
  assert_contains (td_error ()->message, "linear: ");
  assert_contains (td_error ()->message, "got 100 != 784");
  assert_contains (td_error ()->message, "x (5, 100) f32");
  assert_contains (td_error ()->message, "W (10, 784) f32");
  assert_contains (td_error ()->message, "net/l1");
  assert_contains (td_error ()->message, "test-dynamic.c:");
  td__engine.observer = NULL;
  td_link_free (net);
}

static void
dy12__after_an_error_what_was_computed_before_is_still_there (void **state)
{
  TdVar *x = td_full (TD_F64, TD_SHAPE (3), 2), *h = td_mul (x, x), *bad;
  double values[3];

  (void)state;
  bad = td_add (h, td_zeros (TD_F64, TD_SHAPE (4)));
  assert_true (td_poisoned (bad));
  assert_int_equal (td_read (h, values, sizeof values), TD_OK);
  assert_float_equal (values[2], 4, 0);
}

/* DY13: an operation of the user's own, y = x^3, with its backward in operations. */
static const char *const cube_names[] = { "x" };

static TdStatus
cube_infer (TdOpCall *call)
{
  if (call->in[0].dtype != TD_F64)
    return td_op_fail_operands (call, TD_ERR_DTYPE, "x.dtype == f64 expected");
  return td_op_out (call, 0, TD_F64, call->in[0].shape);
}

static TdStatus
cube_forward (TdOpCall *call)
{
  const double *x = call->in[0].data;
  double *y = call->out[0].data;

  for (int64_t i = 0; i < call->in[0].size; i++)
    y[i] = x[i] * x[i] * x[i];
  return TD_OK;
}

static TdStatus
cube_backward (TdBackward *b)
{
  TdVar *x = td_backward_input (b, 0);

  b->gx[0] = td_mul (b->gy[0], td_mul_scalar (td_mul (x, x), 3));
  return TD_OK;
}

static const TdOpClass cube_class = { .name = "cube",
                                      .label = "Cube",
                                      .group = "user",
                                      .n_in_min = 1,
                                      .n_in_max = 1,
                                      .n_out = 1,
                                      .flags = TD_OP_HOST,
                                      .retain_in = 1,
                                      .in_names = cube_names,
                                      .infer = cube_infer,
                                      .forward = cube_forward,
                                      .backward = cube_backward };

static void
cubes (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)user;
  (void)n_in;
  (void)n_out;
  td_apply (&cube_class, NULL, in, 1, out, 1);
}

static void
dy13__a_users_operation_is_in_graph_dot_recorder_and_gradient_check (void **state)
{
  TdVar *x = leaf (2, 2), *y, *bad = td_zeros (TD_F32, TD_SHAPE (1));
  TdCheckOpt options = td_check_options ();
  char *dot;

  (void)state;
  watch ();
  cubes (NULL, &x, 1, &y, 1);
  assert_false (td_poisoned (y));
  assert_string_equal (notes.log,
                       td_test_on_cpu () ? "cube " : "to_device cube to_device free free ");
  assert_int_equal (td_check_backward_ (cubes, NULL, &x, 1, NULL, 1, &options), TD_OK);
  assert_int_equal (td_check_double_backward_ (cubes, NULL, &x, 1, NULL, 1, &options), TD_OK);
  assert_int_equal (td_save_dot (y, td_test_tmp ("cube.dot"), NULL), TD_OK);
  dot = td_test_read_file (td_test_tmp ("cube.dot"), NULL);
  assert_contains (dot, "label=\"Cube\"");
  free (dot);
  cubes (NULL, &bad, 1, &y, 1);
  assert_int_equal (td_error ()->status, TD_ERR_DTYPE);
  assert_contains (td_error ()->message, "cube: x.dtype == f64 expected: x (1) f32");
}

/* One that does not say that it is a loop of the host is no crash on a device. */
static void
dy13__an_operation_that_says_nothing_is_refused_where_it_would_crash (void **state)
{
  static TdOpClass silent;
  TdVar *x = leaf (2, 2), *y;
  char here[40];

  (void)state;
  silent = cube_class;
  silent.name = "silent";
  silent.flags = 0;
  snprintf (here, sizeof here, "test-dynamic.c:%d)", __LINE__ + 1);
  td_apply (&silent, NULL, &x, 1, &y, 1);
  assert_int_equal (td_poisoned (y), !td_test_on_cpu ());
  if (td_test_on_cpu ())
    return;
  assert_int_equal (td_error ()->status, TD_ERR_DEVICE);
  assert_contains (td_error ()->message, "silent: its forward may read host memory, and its "
                                         "operands are on cuda:0: give its class TD_OP_HOST");
  assert_contains (td_error ()->message, here);
}

/* The operations that lead from y to what wants a gradient, found without the engine's walk. */
static void
collect_reachable (TdOp *op, uint64_t *ids, int *n)
{
  bool wants = false;

  for (int i = 0; i < *n; i++)
    if (ids[i] == op->id)
      return;
  for (int i = 0; i < op->n_in; i++)
    wants = wants || op->in[i]->requires_grad;
  if (wants)
    ids[(*n)++] = op->id;
  for (int i = 0; i < op->n_in; i++)
    if (op->in[i]->creator != NULL && op->in[i]->requires_grad)
      collect_reachable (op->in[i]->creator, ids, n);
}

static int
newest_first (const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

  return (x < y) - (x > y);
}

static void
dy15__backward_visits_just_what_is_reachable_and_wants_a_gradient (void **state)
{
  TdVar *x = leaf (3, 3), *w = leaf (3, 3),
        *constant = td_exp (td_randn (TD_F64, TD_SHAPE (3, 3)));
  TdVar *side = td_square (td_matmul (x, w, false, false)); /* not an ancestor of y */
  TdVar *h = td_tanh (td_mul (x, td_log (constant))), *y;
  uint64_t expected[64];
  int n = 0;

  (void)state;
  (void)side;
  y = td_sum (td_square (td_mul (h, td_sigmoid (h))));
  collect_reachable (y->node->creator, expected, &n);
  qsort (expected, (size_t)n, sizeof *expected, newest_first);
  watch ();
  assert_int_equal (td_backward (y, 0), TD_OK);
  assert_int_equal (notes.n_backward, n);
  for (int i = 0; i < n; i++)
    assert_int_equal (notes.backward_ids[i], expected[i]);
}

static void
dy20__the_first_iteration_does_nothing_that_later_ones_do_not (void **state)
{
  TdLink *net = td_chain_new ("net"), *l1 = td_linear_new (net, "l1", 4, 4);
  char first[1024] = "";

  (void)state;
  for (int i = 0; i < 3; i++)
    {
      watch ();
      TD_SCOPE ("iteration")
        td_backward (td_sum (td_relu (td_link (l1, td_ones (TD_F32, TD_SHAPE (2, 4))))), 0);
      td_cleargrads (net);
      if (i == 0)
        snprintf (first, sizeof first, "%.1000s", notes.log);
      assert_string_equal (notes.log, first);
    }
  td__engine.observer = NULL;
  td_link_free (net);
}

static void
observer__is_told_of_an_outputs_buffer_by_its_event_or_before_a_failed_one (void **state)
{
  TdVar *x = leaf (2, 3);

  (void)state;
  watch ();
  td_relu (x);
  assert_int_equal (notes.n_buffers, 0);
  td_zeros (TD_F32, TD_SHAPE (4));
  assert_int_equal (notes.n_buffers, 1);
  x = td_mul_scalar (td_square (x), -1);
  TD_USING (debug, 1)
    assert_true (td_poisoned (td_log (x))); /* NaN */
  assert_int_equal (notes.n_buffers, 2);
  assert_non_null (strstr (notes.log, "free "));
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (dy01__each_call_makes_one_operation_and_its_outputs_at_once),
    row (dy02_dy04_ex02__another_branch_is_another_graph_without_a_rebuild),
    row (dy03__a_loop_makes_a_graph_in_proportion_and_right_gradients_for_each_length),
    row (dy05_dy19__sizes_and_lengths_vary_without_reconfiguration_or_padding),
    row (dy06__a_recursive_net_has_right_gradients_at_every_depth),
    row (dy07__the_graph_dies_with_its_last_handle_and_only_parameters_stay),
    row (dy08__an_array_that_nobody_keeps_is_freed_right_after_its_last_use),
    row (dy09_dy14__a_users_link_has_control_flow_parameters_and_a_place_in_the_tree),
    row (dy10_ex05__a_decision_on_data_follows_the_data_and_is_recorded),
    row (dy11__an_error_is_reported_at_the_offending_call_before_any_later_one),
    row (dy12__after_an_error_what_was_computed_before_is_still_there),
    row (dy13__a_users_operation_is_in_graph_dot_recorder_and_gradient_check),
    row (dy13__an_operation_that_says_nothing_is_refused_where_it_would_crash),
    row (dy15__backward_visits_just_what_is_reachable_and_wants_a_gradient),
    row (dy20__the_first_iteration_does_nothing_that_later_ones_do_not),
    row (observer__is_told_of_an_outputs_buffer_by_its_event_or_before_a_failed_one),
    row (ex04__sum_and_prod_have_gradients_also_at_zero),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
