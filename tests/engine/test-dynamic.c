/* What define-by-run means, row by row of CHAINER.md 1A: DY01 to DY16, DY19, DY20, and the rows
 * of its examples that are about the engine.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>
#include <tapedeck-op.h>

#include "core/core.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "td-test.h"

/* --- an observer that writes down what happens --- */

static TdObserver observer;
static char seen[1 << 16]; /* a word for each event */
static const void *watched;
static uint64_t twins[256];
static int n_twins;
static const TdSite *read_site;

static void
see (const char *word)
{
  size_t used = strlen (seen);

  snprintf (seen + used, sizeof seen - used, "%s ", word);
}

static void
see_op (TdObserver *o, const TdEvent *event)
{
  static const char *const prefix[] = { "", "b:", "+:", "u:" };
  char word[100];

  (void)o;
  snprintf (word, sizeof word, "%s%s%s", prefix[event->phase], event->cls->name,
            event->flags & TD_EVENT_FAILED ? "!" : "");
  see (word);
  if (event->phase == TD_PHASE_BACKWARD && n_twins < TD_ARRAY_LENGTH (twins))
    twins[n_twins++] = event->twin_id;
}

static void
see_free (TdObserver *o, const TdBuffer *buffer)
{
  (void)o;
  if (buffer == watched)
    see ("free");
}

static void
see_read (TdObserver *o, TdNode *node, const TdSite *site)
{
  (void)o, (void)node;
  read_site = site;
  see ("read");
}

static void
ignore_op (TdObserver *o, const TdEvent *event)
{
  (void)o, (void)event;
}

static void
ignore_buffer (TdObserver *o, const TdBuffer *buffer)
{
  (void)o, (void)buffer;
}

static void
ignore_scope (TdObserver *o, bool open, const TdScope *scope)
{
  (void)o, (void)open, (void)scope;
}

static void
ignore_link (TdObserver *o, bool enter, const TdPath *path, const TdSite *site)
{
  (void)o, (void)enter, (void)path, (void)site;
}

static void
ignore_iteration (TdObserver *o, bool begin, int64_t number, int64_t label, const TdSite *site)
{
  (void)o, (void)begin, (void)number, (void)label, (void)site;
}

static void
ignore_backward (TdObserver *o, bool begin, const TdSite *site)
{
  (void)o, (void)begin, (void)site;
}

static void
ignore_gradient (TdObserver *o, TdNode *leaf, TdNode *gradient)
{
  (void)o, (void)leaf, (void)gradient;
}

static void
ignore_report (TdObserver *o, const char *key, double value)
{
  (void)o, (void)key, (void)value;
}

static void
ignore_node (TdObserver *o, TdNode *node, const TdSite *site)
{
  (void)o, (void)node, (void)site;
}

static void
ignore_name (TdObserver *o, TdNode *node, const char *name)
{
  (void)o, (void)node, (void)name;
}

static void
ignore_error (TdObserver *o, const TdError *error)
{
  (void)o, (void)error;
}

static void
ignore_config (TdObserver *o, const char *field, int value)
{
  (void)o, (void)field, (void)value;
}

static void
ignore_param (TdObserver *o, const TdPath *path, const TdVar *param)
{
  (void)o, (void)path, (void)param;
}

static void
ignore_finish (TdObserver *o, int status)
{
  (void)o, (void)status;
}

/* From here on: events are written down, from an empty page. */
static void
watch (void)
{
  observer = (TdObserver){
    .before_op = ignore_op,
    .after_op = see_op,
    .buffer_new = ignore_buffer,
    .buffer_free = see_free,
    .scope = ignore_scope,
    .link = ignore_link,
    .iteration = ignore_iteration,
    .backward = ignore_backward,
    .gradient = ignore_gradient,
    .report = ignore_report,
    .host_read = see_read,
    .write = ignore_node,
    .unchain = ignore_node,
    .name = ignore_name,
    .error = ignore_error,
    .config = ignore_config,
    .param = ignore_param,
    .finish = ignore_finish,
  };
  td__engine.observer = &observer;
  seen[0] = '\0';
  n_twins = 0;
}

static int
setup (void **state)
{
  td_test_setup (state);
  td_init (NULL, NULL);
  td_set_seed (3);
  watched = NULL;
  return 0;
}

static int
teardown (void **state)
{
  int status;

  td__engine.observer = NULL;
  status = td_finish ();
  td_test_teardown (state);
  return status;
}

/* All numbers of an f32 or f64 array, as doubles. */
static double *
values (TdVar *v)
{
  static double room[4096];
  float single[4096];
  int64_t n = td_size (v);

  assert_true (n <= 4096);
  if (td_dtype (v) == TD_F64)
    assert_int_equal (td_read (v, room, (size_t)n * sizeof *room), TD_OK);
  else
    {
      assert_int_equal (td_read (v, single, (size_t)n * sizeof *single), TD_OK);
      for (int64_t i = 0; i < n; i++)
        room[i] = (double)single[i];
    }
  return room;
}

/* d loss / d p[i] by central differences, for every element of an f64 parameter, against what
 * backward left in its gradient. */
static void
check_gradient (TdVar *p, TdVar *(*loss) (void *user), void *user)
{
  double p0[256], g[256];
  int64_t n = td_size (p);
  size_t bytes = (size_t)n * sizeof *p0;

  td_cleargrad (p);
  TD_SCOPE ("backward")
    {
      assert_int_equal (td_backward (loss (user), 0), TD_OK);
    }
  memcpy (g, values (td_grad (p)), bytes);
  memcpy (p0, values (p), bytes);
  for (int64_t i = 0; i < n; i++)
    {
      double side[2], keep = p0[i];

      for (int k = 0; k < 2; k++)
        TD_NO_BACKPROP
          TD_SCOPE ("difference")
            {
              p0[i] = keep + (k == 0 ? 1e-5 : -1e-5);
              td_write (p, p0, bytes);
              side[k] = td_item (loss (user));
            }
      p0[i] = keep;
      if (fabs ((side[0] - side[1]) / 2e-5 - g[i]) > 1e-7 * fmax (1, fabs (g[i])))
        fail_msg ("element %d: %.12g, differences give %.12g", (int)i, g[i],
                  (side[0] - side[1]) / 2e-5);
    }
  td_write (p, p0, bytes);
}

/* --- DY01 to DY05 --- */

static void
dy01__each_call_adds_one_operation_and_its_outputs_at_once (void **state)
{
  TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (4)), "x"), *h = x;
  TdMemInfo before = td_mem_info (NULL), after;

  (void)state;
  watch ();
  for (int i = 0; i < 5; i++)
    {
      h = i % 2 == 0 ? td_tanh (h) : td_mul (h, x);
      after = td_mem_info (NULL);
      assert_int_equal (after.live_ops, before.live_ops + 1);
      assert_int_equal (after.live_nodes, before.live_nodes + 1);
      before = after;
    }
  assert_string_equal (seen, "tanh mul tanh mul tanh ");
}

static TdVar *
example (TdVar *x, bool apply_relu)
{
  TdVar *h = apply_relu ? td_relu (x) : td_sigmoid (x);

  return td_mean_of (x) > 0 ? td_sum (h) : td_prod (h);
}

static void
dy02_dy04__only_the_branch_that_was_taken_is_in_the_graph (void **state)
{
  TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (5)), "x");

  (void)state;
  watch ();
  assert_int_equal (td_backward (example (x, true), 0), TD_OK);
  assert_string_equal (seen, "relu read sum b:broadcast_to b:relu_grad ");
  watch ();
  td_cleargrad (x);
  assert_int_equal (td_backward (example (x, false), 0), TD_OK);
  assert_null (strstr (seen, "relu"));
  assert_non_null (strstr (seen, "sigmoid read sum "));
}

typedef struct
{
  TdVar *W, *x;
  int T;
} Loop;

static TdVar *
loop_loss (void *user)
{
  Loop *l = user;
  TdVar *h = l->x;

  for (int t = 0; t < l->T; t++)
    h = td_tanh (td_matmul (h, l->W, false, false));
  return td_sum (h);
}

static void
dy03__a_loop_makes_as_many_operations_as_it_turns (void **state)
{
  Loop l = { .x = td_rand (TD_F64, TD_SHAPE (2, 3)) };

  (void)state;
  l.W = td_variable (td_randn (TD_F64, TD_SHAPE (3, 3)), "W");
  for (l.T = 1; l.T <= 50; l.T++)
    {
      int64_t before = td_mem_info (NULL).live_ops;

      TD_SCOPE ("turn")
        {
          loop_loss (&l);
          assert_int_equal (td_mem_info (NULL).live_ops, before + 2 * l.T + 1);
        }
      check_gradient (l.W, loop_loss, &l);
    }
}

static void
dy05__sizes_vary_without_any_preparation (void **state)
{
  static const int batches[] = { 7, 3, 64 }, lengths[] = { 5, 40 };
  TdLink *m = td_chain_new ("m");
  TdLink *lstm = td_lstm_new (m, "lstm", 3, 4), *out = td_linear_new (m, "out", 4, 2);

  (void)state;
  for (int b = 0; b < 3; b++)
    for (int l = 0; l < 2; l++)
      TD_ITERATION (b)
        {
          TdVar *y = NULL;

          td_lstm_reset_state (lstm);
          for (int t = 0; t < lengths[l]; t++)
            y = td_link (out, td_link (lstm, td_rand (TD_F32, TD_SHAPE (batches[b], 3))));
          assert_int_equal (td_shape (y).dim[0], batches[b]);
          td_cleargrads (m);
          assert_int_equal (td_backward (td_sum (y), 0), TD_OK);
          assert_non_null (td_grad (td_link_param (m, "lstm/lateral/W")));
        }
  td_lstm_reset_state (lstm);
}

/* --- DY06, DY09, DY19: recurrent, recursive, nested --- */

typedef struct
{
  TdLink *lstm, *leaf, *join;
  int length;
} Nets;

static TdVar *
rnn_loss (void *user)
{
  Nets *n = user;
  TdVar *y = NULL;

  td_lstm_reset_state (n->lstm);
  for (int t = 0; t < n->length; t++)
    {
      double x[3] = { sin (t), cos (t), 0.1 * t };

      y = td_link (n->lstm, td_tensor (TD_F64, TD_SHAPE (1, 3), x));
    }
  td_lstm_reset_state (n->lstm);
  return td_sum (td_square (y));
}

/* A tree in brackets, "((ab)c)": a leaf by its letter, a pair by joining its halves. */
static TdVar *
tree (Nets *n, const char **at)
{
  if (*(*at) == '(')
    {
      TdVar *pair[2];

      ++*at;
      pair[0] = tree (n, at);
      pair[1] = tree (n, at);
      ++*at;
      return td_tanh (td_link (n->join, td_concat (pair, 2, 1)));
    }
  int32_t id = *(*at)++ - 'a';
  return td_link (n->leaf, td_tensor (TD_I32, TD_SHAPE (1), &id));
}

static TdVar *
tree_loss (void *user)
{
  static const char *const trees[] = { "a", "((ab)c)", "((a(bc))(da))" };
  Nets *n = user;
  TdVar *loss = NULL;

  for (int i = 0; i < 3; i++)
    {
      const char *at = trees[i];
      TdVar *l = td_sum (td_square (tree (n, &at)));

      loss = loss == NULL ? l : td_add (loss, l);
    }
  return loss;
}

static void
dy06__recurrent_and_recursive_nets_have_right_gradients (void **state)
{
  Nets n = { .length = 1 };

  (void)state;
  TD_USING (dtype, TD_F64)
    {
      n.lstm = td_lstm_new (NULL, "lstm", 3, 2);
      n.leaf = td_embed_id_new (NULL, "leaf", 4, 2);
      n.join = td_linear_new (NULL, "join", 4, 2);
    }
  for (int k = 0; k < 3; k++)
    {
      n.length = 1 + 4 * k;
      check_gradient (td_link_param (n.lstm, "upward/W"), rnn_loss, &n);
      if (n.length > 1)
        check_gradient (td_link_param (n.lstm, "lateral/W"), rnn_loss, &n);
    }
  check_gradient (td_link_param (n.join, "W"), tree_loss, &n);
  check_gradient (td_link_param (n.leaf, "W"), tree_loss, &n);
}

/* A chain inside a chain, each with a loop or a branch of its own. */
static TdStatus
inner_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = in[0];

  (void)self, (void)n_in, (void)n_out;
  for (int t = 0; t < (int)td_shape (in[0]).dim[0]; t++)
    h = td_tanh (td_link (td_link_child_at (link, 0), h));
  out[0] = h;
  return TD_OK;
}

static TdStatus
outer_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_link (td_link_child_at (link, 0), in[0]);

  (void)self, (void)n_in, (void)n_out;
  out[0] = td_mean_of (in[0]) > 0 ? td_sum (h) : td_sum (td_exp (h));
  return TD_OK;
}

static const TdLinkClass inner_class
    = { .size = sizeof (TdLinkClass), .name = "Inner", .forward = inner_forward };
static const TdLinkClass outer_class
    = { .size = sizeof (TdLinkClass), .name = "Outer", .forward = outer_forward };

static void
dy09_dy10__loops_and_branches_work_inside_nested_links (void **state)
{
  TdLink *outer = td_link_new (&outer_class, NULL, "outer");
  TdLink *inner = td_link_new (&inner_class, outer, "inner");
  TdVar *x = td_ones (TD_F32, TD_SHAPE (2, 3));

  (void)state;
  td_linear_new (inner, "l", 3, 3);
  watch ();
  td_link (outer, x);
  assert_string_equal (seen, "linear tanh linear tanh read sum ");
  watch ();
  td_link (outer, td_neg (x));
  assert_string_equal (seen, "neg linear tanh linear tanh read exp sum ");
}

static void
dy19__sequences_sorted_by_length_need_no_padding (void **state)
{
  static const int lengths[3] = { 5, 3, 2 };
  TdLink *lstm;
  TdVar *W, *apart = NULL, *together = NULL;
  double data[5][3][3], g[32];

  (void)state;
  TD_USING (dtype, TD_F64)
    lstm = td_lstm_new (NULL, "lstm", 3, 2);
  W = td_link_param (lstm, "upward/W");
  for (int i = 0; i < 45; i++)
    (&data[0][0][0])[i] = sin (i);
  for (int s = 0; s < 3; s++) /* each sequence by itself */
    {
      TdVar *y = NULL;

      td_lstm_reset_state (lstm);
      for (int t = 0; t < lengths[s]; t++)
        y = td_link (lstm, td_tensor (TD_F64, TD_SHAPE (1, 3), data[t][s]));
      y = td_sum (td_square (y));
      apart = apart == NULL ? y : td_add (apart, y);
    }
  td_backward (apart, 0);
  memcpy (g, values (td_grad (W)), sizeof (double[24]));
  td_cleargrad (W);
  td_lstm_reset_state (lstm);
  for (int t = 0; t < 5; t++) /* the batch shrinks as sequences end */
    {
      int n = (lengths[0] > t) + (lengths[1] > t) + (lengths[2] > t);

      td_link (lstm, td_tensor (TD_F64, TD_SHAPE (n, 3), data[t]));
    }
  together = td_sum (td_square (td_lstm_h (lstm)));
  assert_true (fabs (td_item (together) - td_item (apart)) < 1e-12);
  td_backward (together, 0);
  for (int i = 0; i < 24; i++)
    assert_true (fabs (values (td_grad (W))[i] - g[i]) < 1e-12);
  td_lstm_reset_state (lstm);
}

/* --- DY07, DY08: memory --- */

static void
dy07__the_graph_is_gone_when_the_loss_is (void **state)
{
  TdLink *m = td_sequential_new ("m");
  TdOpt *opt;
  TdMemInfo warm = { 0 };

  (void)state;
  td_linear_new (m, "l1", 6, 5);
  td_sequential_append (m, td_relu);
  td_linear_new (m, "l2", 5, 2);
  opt = td_adam_new (m);
  for (int i = 0; i < 5; i++)
    {
      TdMemInfo now;

      TD_ITERATION (i)
        {
          TdVar *loss = td_sum (td_square (td_link (m, td_rand (TD_F32, TD_SHAPE (4, 6)))));

          td_cleargrads (m);
          td_backward (loss, 0);
          td_opt_update (opt);
        }
      now = td_mem_info (NULL);
      if (i == 0)
        warm = now;
      assert_int_equal (now.live_ops, 0);
      assert_int_equal (now.live_nodes, 4 + 4 + 8); /* parameters, gradients, Adam's m and v */
      assert_int_equal (now.live_bytes, warm.live_bytes);
      assert_int_equal (now.category_bytes[TD_MEM_ACTIVATION], 0);
      assert_int_equal (now.category_bytes[TD_MEM_INPUT], 0);
    }
}

static TdStatus
two_steps (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_add_scalar (in[0], 1); /* neither operation keeps this array for backward */

  (void)link, (void)self, (void)n_in, (void)n_out;
  watched = h->buffer;
  out[0] = td_tanh (h);
  return TD_OK;
}

static const TdLinkClass two_class
    = { .size = sizeof (TdLinkClass), .name = "Two", .forward = two_steps };

static void
dy08__what_nobody_keeps_is_freed_between_the_right_operations (void **state)
{
  TdLink *l = td_link_define (&two_class);
  TdVar *x = td_variable (td_rand (TD_F32, TD_SHAPE (4)), "x");

  (void)state;
  watch ();
  td_exp (td_link (l, x));
  assert_string_equal (seen, "add_scalar tanh free exp ");
}

/* --- DY11, DY12: errors --- */

static void
dy11_dy12__an_error_is_reported_at_its_call_and_the_rest_can_be_read (void **state)
{
  TdLink *net = td_chain_new ("net"), *l1 = td_linear_new (net, "l1", 4, 5);
  TdVar *x = td_full (TD_F32, TD_SHAPE (3, 4), 2), *h = td_tanh (x), *y;
  int line;

  (void)state;
  watch ();
  line = __LINE__ + 1;
  y = td_exp (td_link (l1, td_reshape (h, TD_SHAPE (4, 3))));
  assert_non_null (td_error ());
  assert_int_equal (td_error ()->status, TD_ERR_SHAPE);
  assert_string_equal (td_error ()->op, "linear");
  assert_int_equal (td_error ()->site->line, line);
  assert_contains (td_error ()->message, "x (4, 3)");
  assert_contains (td_error ()->message, "W (5, 4)");
  assert_contains (td_error ()->message, "net/l1, ");
  assert_contains (td_error ()->message, "test-dynamic.c:");
  assert_string_equal (seen, "reshape linear! "); /* and nothing after it */
  assert_true (td_poisoned (y));
  assert_true (fabs (values (h)[0] - tanh (2)) < 1e-6); /* what ran can be looked at */
  td_error_clear ();
}

/* --- DY13, DY14: one's own --- */

static TdStatus
cube_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
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
                                      .infer = cube_infer,
                                      .forward = cube_forward,
                                      .backward = cube_backward };

static TdVar *
cube_loss (void *user)
{
  TdVar *y, *x = *(TdVar **)user;

  td_apply (&cube_class, NULL, &x, 1, &y, 1);
  return td_sum (y);
}

static void
dy13__an_operation_of_ones_own_is_one_like_any_other (void **state)
{
  TdVar *x = td_variable (td_randn (TD_F64, TD_SHAPE (6)), "x"), *y, *gx, *ggx;
  double x0[6];
  size_t n;
  char *dot;

  (void)state;
  watch ();
  y = cube_loss (&x);
  assert_string_equal (seen, "cube sum ");
  assert_int_equal (td_save_dot (y, td_test_tmp ("cube.dot"), NULL), TD_OK);
  dot = td_test_read_file (td_test_tmp ("cube.dot"), &n);
  assert_contains (dot, "label=\"Cube\"");
  free (dot);
  check_gradient (x, cube_loss, &x);
  y = cube_loss (&x); /* the numbers were written anew */
  td_grad_of (&y, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &gx);
  gx = td_sum (gx);
  assert_int_equal (td_grad_of (&gx, 1, &x, 1, NULL, 0, &ggx), TD_OK);
  memcpy (x0, values (x), sizeof x0);
  for (int i = 0; i < 6; i++)
    assert_true (fabs (values (ggx)[i] - 6 * x0[i]) < 1e-12);
}

static TdStatus
scale_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)n_in, (void)n_out;
  out[0] = td_mul (in[0], td_link_param (link, "scale"));
  return TD_OK;
}

static const TdLinkClass scale_class
    = { .size = sizeof (TdLinkClass), .name = "MyScale", .forward = scale_forward };

static TdLink *
scale_model (double scale, double seen_so_far)
{
  TdLink *m = td_chain_new ("m"), *s = td_link_new (&scale_class, m, "s");

  td_link_add_param (s, "scale", TD_SHAPE (2), TD_F32, td_init_constant (scale));
  td_link_add_persistent (s, "seen", td_full (TD_I64, TD_SCALAR, seen_so_far));
  return m;
}

static void
dy14__a_link_of_ones_own_trains_and_is_saved (void **state)
{
  TdLink *a = scale_model (3, 7), *b = scale_model (0, 0);
  TdVar *x = td_ones (TD_F32, TD_SHAPE (2));
  TdOpt *opt = td_sgd_new (a, .lr = 0.5);

  (void)state;
  td_backward (td_sum (td_link (td_link_child (a, "s"), x)), 0);
  td_opt_update (opt);
  assert_int_equal (td_save_npz (td_test_tmp ("m.npz"), a), TD_OK);
  assert_int_equal (td_load_npz (td_test_tmp ("m.npz"), b), TD_OK);
  assert_true (values (td_link_param (b, "s/scale"))[1] == 2.5);
  assert_true (td_item (td_link_param (b, "s/seen")) == 7);
  assert_string_equal (td_link_path (td_link_child (b, "s")), "m#2/s");
}

/* --- DY15, DY16, DY20 --- */

static void
dy15__backward_visits_what_leads_to_a_gradient_and_nothing_else (void **state)
{
  TdVar *w = td_variable (td_rand (TD_F32, TD_SHAPE (3)), "w");
  TdVar *x = td_rand (TD_F32, TD_SHAPE (3)), *data, *h, *side, *y;
  uint64_t expected[3];

  (void)state;
  data = td_exp (x); /* needs no gradient */
  h = td_mul (w, data);
  side = td_tanh (h); /* leads nowhere */
  y = td_sum (td_sigmoid (h));
  expected[0] = y->node->creator->id;
  expected[1] = y->node->creator->in[0]->creator->id;
  expected[2] = h->node->creator->id;
  watch ();
  assert_int_equal (td_backward (y, 0), TD_OK);
  for (int i = 0; i < n_twins; i++)
    {
      bool known = false;

      for (int k = 0; k < 3; k++)
        known |= twins[i] == expected[k];
      assert_true (known);
      assert_true (twins[i] != side->node->creator->id);
    }
  for (int k = 0; k < 3; k++)
    {
      bool visited = false;

      for (int i = 0; i < n_twins; i++)
        visited |= twins[i] == expected[k];
      assert_true (visited);
    }
  assert_null (strstr (seen, "exp"));
}

/* Two structures in turn: w x, and (w x) x. The reference multiplies in the same order. */
static void
dy16__structures_in_turn_train_bitwise_as_the_reference (void **state)
{
  static const float data[3] = { 0.3f, -1.7f, 2.1f };
  TdLink *m = td_chain_new ("m");
  TdVar *W = td_link_add_param (m, "W", TD_SHAPE (3), TD_F32, td_init_constant (0.7));
  TdOpt *opt = td_sgd_new (m, .lr = 0.125);
  float w[3] = { 0.7f, 0.7f, 0.7f }, got[3];

  (void)state;
  for (int i = 0; i < 40; i++)
    TD_ITERATION (i)
      {
        TdVar *x = td_tensor (TD_F32, TD_SHAPE (3), data);
        TdVar *h = td_mul (W, x);

        if (i % 2 == 1)
          h = td_mul (h, x);
        td_cleargrads (m);
        td_backward (td_sum (h), 0);
        td_opt_update (opt);
        for (int k = 0; k < 3; k++)
          {
            float g = i % 2 == 1 ? data[k] * data[k] : data[k], step = 0.125f * g;

            w[k] -= step;
          }
      }
  assert_int_equal (td_read (W, got, sizeof got), TD_OK);
  assert_memory_equal (got, w, sizeof w);
}

static void
dy20__the_first_iteration_does_what_every_iteration_does (void **state)
{
  TdLink *m = td_sequential_new ("m");
  TdOpt *opt;
  static char first[sizeof seen];

  (void)state;
  td_linear_new (m, "l1", 4, 4);
  td_sequential_append (m, td_relu);
  opt = td_sgd_new (m);
  for (int i = 0; i < 3; i++)
    TD_ITERATION (i)
      {
        watch ();
        td_cleargrads (m);
        td_backward (td_sum (td_link (m, td_rand (TD_F32, TD_SHAPE (2, 4)))), 0);
        td_opt_update (opt);
        if (i == 0)
          memcpy (first, seen, sizeof first);
        assert_string_equal (seen, first);
      }
  assert_contains (first, "linear relu sum b:");
  assert_contains (first, "u:sgd u:sgd");
}

/* --- EX03, EX05, EX11, EX12 --- */

static void
ex03__normal_numbers_are_repeated_by_their_seed (void **state)
{
  double a[5], b[5], c[5];

  (void)state;
  td_set_seed (11);
  memcpy (a, values (td_randn (TD_F32, TD_SHAPE (5))), sizeof a);
  memcpy (c, values (td_randn (TD_F32, TD_SHAPE (5))), sizeof c);
  td_set_seed (11);
  memcpy (b, values (td_randn (TD_F32, TD_SHAPE (5))), sizeof b);
  assert_memory_equal (a, b, sizeof a);
  assert_memory_not_equal (a, c, sizeof a);
}

static void
ex05__a_decision_on_data_is_an_event_with_its_line (void **state)
{
  TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (5)), NULL);
  int line;

  (void)state;
  watch ();
  line = __LINE__ + 1;
  assert_true (td_mean_of (x) == 1);
  assert_string_equal (seen, "read ");
  assert_int_equal (read_site->line, line);
  assert_contains (read_site->file, "test-dynamic.c");
}

static void
ex11_ex12__parameters_have_their_names_and_wait_for_their_sizes (void **state)
{
  TdLink *model = td_chain_new ("model");
  TdLink *l1 = td_linear_new (model, "l1", TD_INFER, 5),
         *l2 = td_linear_new (model, "l2", 5, 2);
  TdVar *y;

  (void)state;
  assert_null (td_link_param (model, "l1/W"));
  y = td_link (l2, td_relu (td_link (l1, td_rand (TD_F32, TD_SHAPE (3, 4)))));
  assert_int_equal (td_shape (td_link_param (model, "l1/W")).dim[0], 5);
  assert_int_equal (td_shape (td_link_param (model, "l1/W")).dim[1], 4);
  assert_int_equal (td_size (td_link_param (model, "l1/b")), 5);
  assert_int_equal (td_size (td_link_param (model, "l2/W")), 10);
  assert_int_equal (td_size (td_link_param (model, "l2/b")), 2);
  assert_int_equal (td_shape (y).dim[0], 3);
  assert_int_equal (td_shape (y).dim[1], 2);
}

#define td_dynamic_test(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_dynamic_test (dy01__each_call_adds_one_operation_and_its_outputs_at_once),
    td_dynamic_test (dy02_dy04__only_the_branch_that_was_taken_is_in_the_graph),
    td_dynamic_test (dy03__a_loop_makes_as_many_operations_as_it_turns),
    td_dynamic_test (dy05__sizes_vary_without_any_preparation),
    td_dynamic_test (dy06__recurrent_and_recursive_nets_have_right_gradients),
    td_dynamic_test (dy07__the_graph_is_gone_when_the_loss_is),
    td_dynamic_test (dy08__what_nobody_keeps_is_freed_between_the_right_operations),
    td_dynamic_test (dy09_dy10__loops_and_branches_work_inside_nested_links),
    td_dynamic_test (dy11_dy12__an_error_is_reported_at_its_call_and_the_rest_can_be_read),
    td_dynamic_test (dy13__an_operation_of_ones_own_is_one_like_any_other),
    td_dynamic_test (dy14__a_link_of_ones_own_trains_and_is_saved),
    td_dynamic_test (dy15__backward_visits_what_leads_to_a_gradient_and_nothing_else),
    td_dynamic_test (dy16__structures_in_turn_train_bitwise_as_the_reference),
    td_dynamic_test (dy19__sequences_sorted_by_length_need_no_padding),
    td_dynamic_test (dy20__the_first_iteration_does_what_every_iteration_does),
    td_dynamic_test (ex03__normal_numbers_are_repeated_by_their_seed),
    td_dynamic_test (ex05__a_decision_on_data_is_an_event_with_its_line),
    td_dynamic_test (ex11_ex12__parameters_have_their_names_and_wait_for_their_sizes),
  };

  return cmocka_run_group_tests_name ("dynamic", tests, NULL, NULL);
}
