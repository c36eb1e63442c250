/* tapedeck-ggml.h over a test double of ggml: its structs and calls by their names, in a folder
 * beside this.  A scale is learnt: forward, backward and update are nodes of one graph.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <tapedeck-ggml.h>

#include "td-tape-reader.h"

#include <math.h>

enum
{
  N = 8,
  STEPS = 4
};

static float memory[32][N];
static struct ggml_tensor tensors[32];
static struct ggml_backend_buffer buffer = { "CPU", sizeof memory };
static int n_tensors;

static struct ggml_tensor *
tensor (const char *name, enum ggml_op op, int64_t n, struct ggml_tensor *a,
        struct ggml_tensor *b)
{
  struct ggml_tensor *t = &tensors[n_tensors];

  *t = (struct ggml_tensor){ .type = GGML_TYPE_F32,
                             .buffer = &buffer,
                             .ne = { n, 1, 1, 1 },
                             .nb = { 4, 4 * (size_t)n, 4 * (size_t)n, 4 * (size_t)n },
                             .op = op,
                             .src = { a, b },
                             .data = memory[n_tensors] };
  snprintf (t->name, sizeof t->name, "%s", name);
  n_tensors++;
  return t;
}

static void
set_scale (struct ggml_tensor *t, float by)
{
  memcpy (t->op_params, &by, sizeof by);
}

/* d = w x - y, loss = sum d^2; dw = 2 d x, w -= 0.01 dw. */
static void
build (struct ggml_cgraph *forward, struct ggml_cgraph *all)
{
  n_tensors = 0;
  struct ggml_tensor *w = tensor ("blk.0.scale.weight", GGML_OP_NONE, N, NULL, NULL);
  struct ggml_tensor *x = tensor ("x", GGML_OP_NONE, N, NULL, NULL);
  struct ggml_tensor *y = tensor ("y", GGML_OP_NONE, N, NULL, NULL);
  struct ggml_tensor *p = tensor ("", GGML_OP_MUL, N, w, x);
  struct ggml_tensor *d = tensor ("head.difference", GGML_OP_SUB, N, p, y);
  struct ggml_tensor *s = tensor ("", GGML_OP_SQR, N, d, NULL);
  struct ggml_tensor *loss = tensor ("loss", GGML_OP_SUM, 1, s, NULL);
  struct ggml_tensor *gd = tensor ("", GGML_OP_SCALE, N, d, NULL);
  struct ggml_tensor *gw = tensor ("blk.0.scale.weight (grad)", GGML_OP_MUL, N, gd, x);
  struct ggml_tensor *step = tensor ("", GGML_OP_OPT_STEP_SGD, N, w, gw);
  struct ggml_tensor *moment
      = tensor ("AdamW m for blk.0.scale.weight", GGML_OP_NONE, N, NULL, NULL);

  w->flags = GGML_TENSOR_FLAG_PARAM;
  x->flags = y->flags = GGML_TENSOR_FLAG_INPUT;
  loss->flags = GGML_TENSOR_FLAG_LOSS;
  set_scale (gd, 2);
  set_scale (step, 0.01f);
  step->src[2] = moment;
  step->view_src = w; /* as ggml makes it: a view of the parameter */
  step->data = w->data;
  for (int i = 0; i < N; i++)
    {
      memory[0][i] = 1;
      memory[1][i] = (float)i / N;
      memory[2][i] = 3 * memory[1][i];
    }
  *forward = (struct ggml_cgraph){ .nodes = { p, d, s, loss }, .n = 4 };
  *all = (struct ggml_cgraph){ .nodes = { p, d, s, loss, gd, gw, step }, .n = 7 };
}

/* The same in double precision: the loss of each step, and the norm of the gradient. */
static void
expect (double loss[STEPS], double norm[STEPS])
{
  double w[N];

  for (int i = 0; i < N; i++)
    w[i] = 1;
  for (int k = 0; k < STEPS; k++)
    {
      loss[k] = norm[k] = 0;
      for (int i = 0; i < N; i++)
        {
          const double x = (double)i / N, d = w[i] * x - 3 * x, g = 2 * d * x;

          loss[k] += d * d;
          norm[k] += g * g;
          w[i] -= 0.01 * g;
        }
      norm[k] = sqrt (norm[k]);
    }
}

static TdGgml *
open_recording_at (const char *path, uint32_t level)
{
  char why[256] = "";
  TdGgml *g = td_ggml_new (
      &(TdProducerOptions){ .size = sizeof (TdProducerOptions), .path = path, .level = level },
      why, sizeof why);

  assert_string_equal (why, "");
  assert_non_null (g);
  return g;
}

static TdGgml *
open_recording (const char *path)
{
  return open_recording_at (path, TD_TAPE_LEVEL_STATS);
}

static TdTapeReader *
close_and_read (TdGgml *g, const char *path)
{
  char error[256] = "";
  TdTapeReader *r;

  assert_string_equal (td_ggml_error (g), "");
  td_ggml_free (g);
  r = td_tape_reader_open (path, error, sizeof error);
  assert_string_equal (error, "");
  return r;
}

static double
norm_of (const TdTapeIteration *it, uint32_t var)
{
  for (uint32_t i = 0; i < it->n_stats; i++)
    if (it->stats[i].var == var)
      return it->stats[i].l2;
  return -1;
}

static void
ggml__a_training_is_forward_backward_and_update (void **state)
{
  static const struct
  {
    const char *op, *layer;
    unsigned phase;
  } expected[] = { { "MUL", "blk/0/scale", TD_TAPE_PHASE_FORWARD },
                   { "SUB", "head", TD_TAPE_PHASE_FORWARD },
                   { "SQR", "", TD_TAPE_PHASE_FORWARD },
                   { "SUM", "", TD_TAPE_PHASE_FORWARD },
                   { "SCALE", "", TD_TAPE_PHASE_BACKWARD },
                   { "MUL", "blk/0/scale", TD_TAPE_PHASE_BACKWARD },
                   { "OPT_STEP_SGD", "blk/0/scale", TD_TAPE_PHASE_UPDATE } };
  const char *path = td_test_tmp ("a.tdtape");
  struct ggml_backend_sched sched = { 0 };
  struct ggml_cgraph forward, all;
  double loss[STEPS], norm[STEPS];
  TdGgml *g = open_recording (path);
  TdTapeReader *r;
  char error[256];

  expect (loss, norm);
  build (&forward, &all);
  ggml_backend_sched_set_eval_callback (&sched, td_ggml_eval, g);
  td_ggml_forward (g, &forward);
  for (int k = 0; k < STEPS; k++)
    {
      ggml_backend_sched_graph_compute (&sched, &all);
      td_ggml_end (g);
    }
  r = close_and_read (g, path);
  assert_string_equal (td_tape_reader_info (r, "producer"), "ggml");
  assert_int_equal (td_tape_reader_summaries (r).n, STEPS);
  assert_int_equal (td_tape_reader_n_parameters (r), 1);
  assert_string_equal (td_tape_reader_string (r, td_tape_reader_parameter (r, 0)->path),
                       "blk/0/scale/weight");
  for (uint64_t k = 0; k < STEPS; k++)
    {
      const TdTapeIteration *it = td_tape_iteration_load (r, k, error, sizeof error);

      assert_non_null (it);
      assert_int_equal (it->n_events, 7);
      for (uint32_t e = 0; e < 7; e++)
        {
          const TdTapeEvent *event = &it->events[e];

          assert_string_equal (td_tape_reader_op_name (r, event->opdef), expected[e].op);
          assert_string_equal (td_tape_reader_path_text (r, event->path), expected[e].layer);
          assert_int_equal (event->phase, expected[e].phase);
        }
      /* what each reads is what the others made */
      assert_int_equal (it->ins[it->events[1].first_in], it->outs[it->events[0].first_out]);
      assert_int_equal (it->n_grads, 1);
      assert_int_equal (it->grads[0].event, 6);
      assert_int_equal (it->grads[0].gradient, it->outs[it->events[5].first_out]);
      assert_true (fabs (norm_of (it, it->grads[0].gradient) - norm[k]) < 1e-5 * norm[k]);
      td_tape_iteration_free (it);
    }
  uint64_t n, met = 0;
  const TdTapeReport *reports = td_tape_reader_reports (r, &n);

  for (uint64_t i = 0; i < n; i++)
    if (strcmp (td_tape_reader_string (r, reports[i].key), "loss") == 0)
      {
        assert_true (fabs (reports[i].value - loss[met]) < 1e-5 * loss[met]);
        met++;
      }
    else
      {
        assert_string_equal (td_tape_reader_string (r, reports[i].key),
                             "bytes of buffer 1 (CPU)");
        assert_true (reports[i].value == sizeof memory);
      }
  assert_int_equal (met, STEPS);
  assert_int_equal (n, STEPS + 1);
  td_tape_reader_free (r);
}

/* All memory of an iteration but its leaves is given back: the parameter and two inputs stay.
 */
static void
ggml__only_leaves_outlive_an_iteration (void **state)
{
  const char *path = td_test_tmp ("a.tdtape");
  struct ggml_backend_sched sched = { 0 };
  struct ggml_cgraph forward, all;
  TdGgml *g = open_recording (path);
  TdTapeReader *r;
  char error[256];

  build (&forward, &all);
  ggml_backend_sched_set_eval_callback (&sched, td_ggml_eval, g);
  for (int k = 0; k < 50; k++)
    {
      ggml_backend_sched_graph_compute (&sched, &all);
      td_ggml_end (g);
    }
  r = close_and_read (g, path);
  for (uint64_t k = 2; k < 50; k += 47)
    {
      const TdTapeIteration *it = td_tape_iteration_load (r, k, error, sizeof error);

      assert_non_null (it);
      assert_int_equal (it->n_blocks, 4);
      assert_int_equal (it->start_bytes[TD_TAPE_CATEGORY_OPTIMIZER], N * sizeof (float));
      assert_int_equal (it->start_bytes[TD_TAPE_CATEGORY_PARAMETER], N * sizeof (float));
      assert_int_equal (it->start_bytes[TD_TAPE_CATEGORY_INPUT], 2 * N * sizeof (float));
      assert_int_equal (it->start_bytes[TD_TAPE_CATEGORY_ACTIVATION], 0);
      /* nobody said which nodes are forward: what comes behind the loss is not */
      assert_int_equal (it->events[3].phase, TD_TAPE_PHASE_FORWARD);
      assert_int_equal (it->events[4].phase, TD_TAPE_PHASE_BACKWARD);
      assert_int_equal (it->events[6].phase, TD_TAPE_PHASE_UPDATE);
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (r);
}

/* The newest values of a variable in an iteration; how often there are some. */
static unsigned
values_of (TdTapeReader *r, const TdTapeIteration *it, uint32_t var, float *to, uint64_t n)
{
  TdTapeTensorRecord record;
  unsigned times = 0;

  for (uint32_t i = 0; i < it->n_tensors; i++)
    if (it->tensors[i].var == var)
      {
        times++;
        assert_int_equal (td_tape_tensor_read (r, &it->tensors[i], &record, to, 0, n * 4),
                          n * 4);
      }
  return times;
}

/* Of each step: weight and input as it begins, the product, and the weight after its update. */
static void
ggml__values_are_what_a_step_began_with_and_what_it_made (void **state)
{
  const char *path = td_test_tmp ("a.tdtape");
  struct ggml_backend_sched sched = { 0 };
  struct ggml_cgraph forward, all;
  float w[N], x[N], product[N], after[N];
  double expected[N];
  TdGgml *g = open_recording_at (path, TD_TAPE_LEVEL_VALUES);
  TdTapeReader *r;
  char error[256];

  build (&forward, &all);
  ggml_backend_sched_set_eval_callback (&sched, td_ggml_eval, g);
  td_ggml_forward (g, &forward);
  for (int k = 0; k < STEPS; k++)
    {
      ggml_backend_sched_graph_compute (&sched, &all);
      td_ggml_end (g);
    }
  r = close_and_read (g, path);
  for (int i = 0; i < N; i++)
    expected[i] = 1;
  for (uint64_t k = 0; k < STEPS; k++)
    {
      const TdTapeIteration *it = td_tape_iteration_load (r, k, error, sizeof error);
      const uint32_t *in = &it->ins[it->events[0].first_in];

      assert_int_equal (values_of (r, it, in[0], w, N), 1);
      assert_int_equal (values_of (r, it, in[1], x, N), 1);
      assert_int_equal (values_of (r, it, it->outs[it->events[0].first_out], product, N), 1);
      assert_int_equal (values_of (r, it, it->outs[it->events[6].first_out], after, N), 1);
      for (int i = 0; i < N; i++)
        {
          assert_float_equal (w[i], expected[i], 1e-5);
          assert_float_equal (x[i], (float)i / N, 0);
          assert_float_equal (product[i], expected[i] * x[i], 1e-5);
          expected[i] -= 0.01 * 2 * (expected[i] - 3) * x[i] * x[i];
          assert_float_equal (after[i], expected[i], 1e-5);
        }
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (r);
}

/* A matrix of 2 by 4 whose axes are exchanged: its rows are the columns of what it is of. */
static void
ggml__values_of_a_view_are_in_its_own_order (void **state)
{
  const char *path = td_test_tmp ("a.tdtape");
  TdGgml *g = open_recording_at (path, TD_TAPE_LEVEL_VALUES);
  struct ggml_tensor *x, *turned;
  struct ggml_cgraph graph;
  const TdTapeIteration *it;
  float found[N];
  TdTapeReader *r;
  char error[256];

  n_tensors = 0;
  x = tensor ("x", GGML_OP_NONE, N, NULL, NULL);
  for (int i = 0; i < N; i++)
    memory[0][i] = (float)i;
  turned = tensor ("x (transposed)", GGML_OP_TRANSPOSE, 2, x, NULL);
  turned->view_src = x;
  turned->data = x->data;
  turned->ne[1] = 4;
  turned->nb[0] = 16;
  turned->nb[1] = 4;
  turned->nb[2] = turned->nb[3] = 32;
  graph = (struct ggml_cgraph){ .nodes = { turned }, .n = 1 };
  td_ggml_graph (g, &graph);
  td_ggml_end (g);
  r = close_and_read (g, path);
  it = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (it);
  assert_int_equal (values_of (r, it, it->outs[it->events[0].first_out], found, N), 1);
  for (int i = 0; i < N; i++)
    assert_float_equal (found[i], (i / 2 + 4 * (i % 2)), 0);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* A quantised weight, a view, a copy into it, and a graph that no scheduler ran. */
static void
ggml__views_and_quantised_tensors_are_taken (void **state)
{
  const char *path = td_test_tmp ("a.tdtape");
  struct ggml_cgraph graph;
  TdGgml *g = open_recording (path);
  struct ggml_tensor *q, *x, *half, *flat, *into;
  const TdTapeIteration *it;
  TdTapeReader *r;
  char error[256];

  n_tensors = 0;
  q = tensor ("output.weight", GGML_OP_NONE, 32, NULL, NULL);
  q->type = GGML_TYPE_Q4_0;
  x = tensor ("x", GGML_OP_NONE, N, NULL, NULL);
  half = tensor ("x (view)", GGML_OP_VIEW, N / 2, x, NULL);
  half->view_src = x;
  half->data = memory[1] + N / 2;
  flat = tensor ("q (reshaped)", GGML_OP_RESHAPE, 32, q, NULL);
  flat->type = GGML_TYPE_Q4_0;
  flat->view_src = q;
  flat->data = q->data;
  into = tensor ("x (copy of half)", GGML_OP_CPY, N / 2, half, half);
  into->view_src = x;
  into->data = memory[1];
  graph = (struct ggml_cgraph){ .nodes = { half, flat, into }, .n = 3 };
  td_ggml_begin (g);
  td_ggml_graph (g, &graph);
  td_ggml_end (g);
  td_ggml_forget (g);
  r = close_and_read (g, path);
  it = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (it);
  assert_int_equal (it->n_events, 3);
  assert_true (it->events[0].flags & TD_TAPE_EVENT_SHARED);
  assert_non_null (strstr (td_tape_reader_string (r, it->events[0].attrs), "offset=4"));
  assert_non_null (strstr (td_tape_reader_string (r, it->events[1].attrs), "type=q4_0"));
  assert_int_equal (it->n_memory > 0, 1);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* The computing goes on, and the first error is there to be read. */
static void
ggml__a_tape_that_cannot_be_is_no_reason_to_stop (void **state)
{
  char why[256] = "";

  assert_null (td_ggml_new (&(TdProducerOptions){ .size = sizeof (TdProducerOptions),
                                                  .path = "/nowhere/at/all.tdtape" },
                            why, sizeof why));
  assert_string_not_equal (why, "");
  td_ggml_free (NULL);

  const char *path = td_test_tmp ("a.tdtape");
  TdGgml *g = open_recording (path);
  struct ggml_tensor *odd = (n_tensors = 0, tensor ("odd", GGML_OP_SQR, -3, NULL, NULL));

  assert_true (td_ggml_eval (odd, true, g));
  assert_true (td_ggml_eval (odd, false, g));
  assert_string_not_equal (td_ggml_error (g), "");
  td_ggml_free (g);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (ggml__a_training_is_forward_backward_and_update),
    td_test (ggml__only_leaves_outlive_an_iteration),
    td_test (ggml__values_are_what_a_step_began_with_and_what_it_made),
    td_test (ggml__values_of_a_view_are_in_its_own_order),
    td_test (ggml__views_and_quantised_tensors_are_taken),
    td_test (ggml__a_tape_that_cannot_be_is_no_reason_to_stop),
  };

  return cmocka_run_group_tests_name ("ggml", tests, NULL, NULL);
}
