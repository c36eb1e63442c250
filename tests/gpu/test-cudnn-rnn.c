/* Recurrent layers as one operation on cuda:0, by the fake cuDNN: values and gradients beside
 * the composed ones of the CPU, when it is composed after all and how that is said, static
 * chains, what a recording shows, and what goes wrong.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "fake-remote.h"
#include "far-test.h"
#include "far-tape.h"
#include "td-test.h"

#include <cuda.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const FakeCudaControl *driver;

enum
{
  IN = 3,
  UNITS = 4,
  MAX_STEPS = 8,
  MAX_PARTS = 3 * 2 * 8,
  MAX_NUMBERS = 4000
};

/* A stack, and how many sequences last to each step. */
typedef struct
{
  TdCell cell;
  int layers, directions, steps;
  int rows[MAX_STEPS];
  bool hx, cx;
  double dropout;
} Net;

/* Everything that goes in, and what came out. */
typedef struct
{
  TdVar *hx, *cx, *ws[MAX_PARTS], *bs[MAX_PARTS], *xs[MAX_STEPS];
  TdVar *hy, *cy, *ys[MAX_STEPS];
  TdStatus status;
} Call;

/* Numbers of a run, one array after the other. */
typedef struct
{
  double at[MAX_NUMBERS];
  int n;
} Numbers;

static const int n_parts[] = { [TD_CELL_LSTM] = 8, [TD_CELL_GRU] = 6, 2, 2 };

static int
setup (void **state)
{
  setenv ("FAKE_CUDNN", "1", 1);
  driver = far_cuda_driver ();
  return far_test_setup_engine (state);
}

/* --- runs --- */

static int
n_weights (const Net *net)
{
  return net->layers * net->directions * n_parts[net->cell];
}

/* A leaf of numbers in (-scale, scale) that differ from seed to seed. */
static TdVar *
leaf (TdDtype dtype, TdShape shape, int seed, double scale)
{
  double host[400];
  int64_t n = 1;

  for (int i = 0; i < shape.ndim; i++)
    n *= shape.dim[i];
  assert_true (n <= 400);
  for (int64_t i = 0; i < n; i++)
    host[i] = scale * sin (12.9898 * (seed + 1) + 78.233 * (double)(i + 1));
  return td_variable (
      td_to_device (td_cast (td_tensor (TD_F64, shape, host), dtype), td__engine.device), NULL);
}

static void
make (const Net *net, TdDtype dtype, Call *c)
{
  const int k = n_parts[net->cell], n = n_weights (net);
  const TdShape state = TD_SHAPE (net->layers * net->directions, net->rows[0], UNITS);

  *c = (Call){ .hx = net->hx ? leaf (dtype, state, 1, 1) : NULL,
               .cx = net->cx ? leaf (dtype, state, 2, 1) : NULL };
  for (int i = 0; i < n; i++)
    {
      const int below = i / k < net->directions ? IN : UNITS * net->directions;

      c->ws[i] = leaf (dtype, TD_SHAPE (UNITS, i % k < k / 2 ? below : UNITS), 10 + i, 0.7);
      c->bs[i] = leaf (dtype, TD_SHAPE (UNITS), 100 + i, 0.5);
    }
  for (int t = 0; t < net->steps; t++)
    c->xs[t] = leaf (dtype, TD_SHAPE (net->rows[t], IN), 200 + t, 1);
}

static void
run (const Net *net, Call *c)
{
  const bool both = net->directions == 2;
  const TdRnnActivation f = net->cell == TD_CELL_RELU ? TD_RNN_RELU : TD_RNN_TANH;

  if (net->cell == TD_CELL_LSTM)
    c->status = (both ? td_n_step_bilstm : td_n_step_lstm) (net->layers, net->dropout, c->hx,
                                                            c->cx, c->ws, c->bs, c->xs,
                                                            net->steps, &c->hy, &c->cy, c->ys);
  else if (net->cell == TD_CELL_GRU)
    c->status = (both ? td_n_step_bigru : td_n_step_gru) (
        net->layers, net->dropout, c->hx, c->ws, c->bs, c->xs, net->steps, &c->hy, c->ys);
  else
    c->status = (both ? td_n_step_birnn : td_n_step_rnn) (
        net->layers, net->dropout, c->hx, c->ws, c->bs, c->xs, net->steps, f, &c->hy, c->ys);
}

/* A loss that every number of the results has its own share in. */
static TdVar *
loss_of (const Net *net, const Call *c)
{
  TdVar *sum = td_sum (td_mul (c->hy, td_add_scalar (c->hy, 0.3)));

  if (net->cell == TD_CELL_LSTM)
    sum = td_add (sum, td_sum (td_mul_scalar (td_square (c->cy), 0.6)));
  for (int t = 0; t < net->steps; t++)
    sum = td_add (sum, td_mul_scalar (td_sum (td_square (c->ys[t])), 0.2 * (t + 1)));
  return sum;
}

static void
note (Numbers *numbers, TdVar *v)
{
  const int n = (int)td_size (v);

  assert_true (numbers->n + n <= MAX_NUMBERS);
  assert_int_equal (
      td_read (td_cast (v, TD_F64), numbers->at + numbers->n, (size_t)n * sizeof (double)),
      TD_OK);
  numbers->n += n;
}

static void
note_gradients (Numbers *numbers, const Net *net, const Call *c)
{
  if (c->hx != NULL)
    note (numbers, td_grad (c->hx));
  if (c->cx != NULL)
    note (numbers, td_grad (c->cx));
  for (int i = 0; i < n_weights (net); i++)
    {
      note (numbers, td_grad (c->ws[i]));
      note (numbers, td_grad (c->bs[i]));
    }
  for (int t = 0; t < net->steps; t++)
    note (numbers, td_grad (c->xs[t]));
}

static void
use (const char *device)
{
  td_device_use (td_device_get (device));
}

/* Results, then all gradients. */
static void
compute (const Net *net, const char *device, TdDtype dtype, Numbers *numbers)
{
  numbers->n = 0;
  use (device);
  TD_SCOPE ("run")
    {
      Call c;

      make (net, dtype, &c);
      run (net, &c);
      assert_int_equal (c.status, TD_OK);
      note (numbers, c.hy);
      if (net->cell == TD_CELL_LSTM)
        note (numbers, c.cy);
      for (int t = 0; t < net->steps; t++)
        note (numbers, c.ys[t]);
      assert_int_equal (td_backward (loss_of (net, &c), 0), TD_OK);
      note_gradients (numbers, net, &c);
    }
}

static void
assert_close (const Net *net, const Numbers *got, const Numbers *want, double tolerance)
{
  assert_int_equal (got->n, want->n);
  for (int i = 0; i < got->n; i++)
    if (!(fabs (got->at[i] - want->at[i]) <= tolerance * (1 + fabs (want->at[i]))))
      fail_msg ("cell %d, %d layers, %d directions, %d steps: number %d is %.17g, composed "
                "%.17g",
                (int)net->cell, net->layers, net->directions, net->steps, i, got->at[i],
                want->at[i]);
}

/* The fake's calls: forward, and two for backward. */
static void
agree (const Net *net, TdDtype dtype, double tolerance)
{
  static Numbers fused, composed;
  const long before = driver->state->n_rnn;

  compute (net, "cuda:0", dtype, &fused);
  assert_int_equal (driver->state->n_rnn - before, 3);
  compute (net, "cpu", dtype, &composed);
  assert_int_equal (driver->state->n_rnn - before, 3);
  assert_close (net, &fused, &composed, tolerance);
}

/* Lengths 5, 5, 3, 1; all of 4; one sequence of one step. */
static const struct
{
  int steps, rows[MAX_STEPS];
} batches[] = { { 5, { 4, 3, 3, 2, 2 } }, { 4, { 3, 3, 3, 3 } }, { 1, { 1 } } };

static void
agree_over_all (TdDtype dtype, double tolerance)
{
  for (int cell = TD_CELL_LSTM; cell <= TD_CELL_RELU; cell++)
    for (int layers = 1; layers <= 3; layers++)
      for (int directions = 1; directions <= 2; directions++)
        for (int b = 0; b < TD_ARRAY_LENGTH (batches); b++)
          {
            Net net = { (TdCell)cell,
                        layers,
                        directions,
                        batches[b].steps,
                        { 0 },
                        b == 0 || layers == 2,
                        cell == TD_CELL_LSTM && b != 1,
                        0 };

            memcpy (net.rows, batches[b].rows, sizeof net.rows);
            agree (&net, dtype, tolerance);
          }
}

static const Net sorted = { TD_CELL_LSTM, 2, 1, 5, { 4, 3, 3, 2, 2 }, true, true, 0 };

/* --- claims --- */

static void
fused_layers__are_the_composed_ones_in_double (void **state)
{
  agree_over_all (TD_F64, 1e-12);
}

static void
fused_layers__are_the_composed_ones_in_float (void **state)
{
  agree_over_all (TD_F32, 1e-5);
}

/* What cuDNN keeps is not used up by a backward. */
static void
backward__can_come_twice (void **state)
{
  Numbers first = { .n = 0 }, second = { .n = 0 };

  use ("cuda:0");
  TD_SCOPE ("twice")
    {
      TdVar *loss;
      Call c;

      make (&sorted, TD_F64, &c);
      run (&sorted, &c);
      loss = loss_of (&sorted, &c);
      assert_int_equal (td_backward (loss, 0), TD_OK);
      note_gradients (&first, &sorted, &c);
      for (int i = 0; i < n_weights (&sorted); i++)
        {
          td_cleargrad (c.ws[i]);
          td_cleargrad (c.bs[i]);
        }
      for (int t = 0; t < sorted.steps; t++)
        td_cleargrad (c.xs[t]);
      td_cleargrad (c.hx);
      td_cleargrad (c.cx);
      assert_int_equal (td_backward (loss, 0), TD_OK);
      note_gradients (&second, &sorted, &c);
    }
  assert_int_equal (driver->state->n_rnn, 5);
  assert_memory_equal (first.at, second.at, (size_t)first.n * sizeof (double));
}

/* A loss of the last states alone leaves no gradient at y. */
static void
backward__starts_at_the_states_alone (void **state)
{
  Numbers got[2] = { { .n = 0 }, { .n = 0 } };
  const char *const devices[] = { "cuda:0", "cpu" };

  for (int i = 0; i < 2; i++)
    TD_SCOPE ("states")
      {
        Call c;

        use (devices[i]);
        make (&sorted, TD_F64, &c);
        run (&sorted, &c);
        assert_int_equal (td_backward (td_sum (td_square (c.cy)), 0), TD_OK);
        note_gradients (&got[i], &sorted, &c);
      }
  assert_close (&sorted, &got[0], &got[1], 1e-12);
}

static void
without_a_graph__nothing_is_kept (void **state)
{
  size_t with = 0, without = 0;

  use ("cuda:0");
  TD_SCOPE ("kept")
    {
      Call c;

      make (&sorted, TD_F64, &c);
      TD_NO_BACKPROP
        run (&sorted, &c);
      without = td_mem_info (td_device_get ("cuda:0")).live_bytes;
      run (&sorted, &c);
      with = td_mem_info (td_device_get ("cuda:0")).live_bytes;
      assert_int_equal (driver->state->n_rnn, 2);
    }
  /* y, hy, cy and the weights would be about this. */
  assert_true (with - without > 4 * 14 * UNITS * sizeof (double));
}

/* --- composed after all --- */

/* Gradients of gradients; the CPU's. */
static void
second_gradients__are_composed (void **state)
{
  Numbers got[2] = { { .n = 0 }, { .n = 0 } };
  const char *const devices[] = { "cuda:0", "cpu" };

  for (int i = 0; i < 2; i++)
    TD_SCOPE ("second")
      {
        TdVar *gx;
        Call c;

        use (devices[i]);
        make (&sorted, TD_F64, &c);
        run (&sorted, &c);
        assert_int_equal (td_backward (loss_of (&sorted, &c), TD_DOUBLE_BACKPROP), TD_OK);
        assert_int_equal (driver->state->n_rnn, i == 0 ? 1 : 3); /* forward */
        gx = td_grad (c.xs[0]);
        assert_int_equal (td_backward (td_sum (td_square (gx)), 0), TD_OK);
        note_gradients (&got[i], &sorted, &c);
      }
  assert_int_equal (driver->state->n_rnn, 3); /* the loss is a function of its results too */
  assert_close (&sorted, &got[0], &got[1], 1e-11);
}

/* Whether the tape holds this text: names of scopes are in it. */
static bool
tape_says (const char *path, const char *text)
{
  FILE *f = fopen (path, "rb");
  static char bytes[8 << 20];
  size_t n;

  assert_non_null (f);
  n = fread (bytes, 1, sizeof bytes, f);
  assert_true (n < sizeof bytes);
  fclose (f);
  return memmem (bytes, n, text, strlen (text)) != NULL;
}

static void
seen (TdHook *hook, void *self, const TdFunctionCall *call)
{
  (void)hook;
  (void)self;
  (void)call;
}

static void
run_dropping (void)
{
  Net net = sorted;
  Call c;

  net.dropout = 0.5;
  make (&net, TD_F64, &c);
  run (&net, &c);
  assert_int_equal (c.status, TD_OK);
}

static void
run_without_cudnn (void)
{
  Call c;

  make (&sorted, TD_F64, &c);
  TD_USING (use_cudnn, 0)
    run (&sorted, &c);
  assert_int_equal (c.status, TD_OK);
}

static void
run_hooked (void)
{
  static const TdHookClass cls
      = { .size = sizeof cls, .name = "looks", .forward_postprocess = seen };
  TdHook *hook = td_hook_new (&cls);
  Call c;

  make (&sorted, TD_F64, &c);
  td_hook_add (hook);
  run (&sorted, &c);
  td_hook_free (hook);
  assert_int_equal (c.status, TD_OK);
}

/* The fake has no halves; the CPU's products of them are what they are made of. */
static void
run_in_halves (void)
{
  Net net = { TD_CELL_TANH, 1, 1, 1, { 2 }, false, false, 0 };
  Call c;

  make (&net, TD_BF16, &c);
  run (&net, &c);
  assert_int_equal (c.status, TD_OK);
}

static void
run_on (const char *device, void (*f) (void), const char *path)
{
  setenv ("TAPEDECK_TAPE", path, 1);
  remove (path);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  use (device);
  TD_ITERATIONS (i, 1)
    f ();
  assert_null (td_error ());
  assert_int_equal (td_finish (), 0);
  unsetenv ("TAPEDECK_TAPE");
}

static void
composed_layers__say_why (void **state)
{
  static const struct
  {
    void (*f) (void);
    const char *text;
  } ways[] = {
    { run_dropping, "n_step_lstm composed: dropout between the layers" },
    { run_without_cudnn, "n_step_lstm composed: use_cudnn is 0" },
    { run_hooked, "n_step_lstm composed: hooks look at every operation" },
    { run_in_halves, "n_step_rnn composed: cuDNN has no such network" },
  };
  const char *path = td_test_tmp ("why.tdtape");

  assert_int_equal (td_finish (), 0);
  for (int i = 0; i < TD_ARRAY_LENGTH (ways); i++)
    {
      run_on ("cuda:0", ways[i].f, path);
      assert_int_equal (driver->state->n_rnn, 0);
      if (!tape_says (path, ways[i].text))
        fail_msg ("the tape does not say %s", ways[i].text);
    }
  run_on ("cpu", run_without_cudnn, path); /* where there is no choice */
  assert_false (tape_says (path, "composed"));
  unsetenv ("FAKE_CUDNN");
  run_on ("cuda:0", run_without_cudnn, path);
  setenv ("FAKE_CUDNN", "1", 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
}

/* --- static chains --- */

typedef struct
{
  Call c;
  Net net;
} Chain;

static void
chain (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Chain *chained = self;

  (void)n_out;
  for (int t = 0; t < n_in; t++)
    chained->c.xs[t] = in[t];
  run (&chained->net, &chained->c);
  out[0] = loss_of (&chained->net, &chained->c);
}

/* Losses and the gradients of the last call. */
static void
train (const Net *net, bool replays, int verify, Numbers *numbers)
{
  numbers->n = 0;
  use ("cuda:0");
  TD_SCOPE ("train")
    {
      Chain chained = { .net = *net };
      TdVar *xs[MAX_STEPS], *loss;
      TdStatic *s;

      make (net, TD_F64, &chained.c);
      memcpy (xs, chained.c.xs, sizeof xs);
      s = td_static_new (chain, &chained, .verify = verify);
      TD_USING (use_static_graph, replays)
        for (int i = 0; i < 6; i++)
          TD_SCOPE ("call")
            {
              for (int k = 0; k < n_weights (net); k++)
                {
                  td_cleargrad (chained.c.ws[k]);
                  td_cleargrad (chained.c.bs[k]);
                }
              for (int t = 0; t < net->steps; t++)
                td_cleargrad (xs[t]);
              td_cleargrad (chained.c.hx);
              td_cleargrad (chained.c.cx);
              assert_int_equal (td_static_call (s, xs, net->steps, &loss, 1), TD_OK);
              note (numbers, loss);
              assert_int_equal (td_backward (loss, 0), TD_OK);
            }
      memcpy (chained.c.xs, xs, sizeof xs);
      note_gradients (numbers, net, &chained.c);
      if (replays)
        {
          assert_int_equal (td_static_info (s).n_replays, 5);
          assert_true (td_static_info (s).n_graph_launches >= 4);
        }
      td_static_free (s);
    }
}

static void
static_chains__replay_it_as_part_of_a_graph (void **state)
{
  static Numbers code, schedule;

  train (&sorted, false, 0, &code);
  assert_int_equal (driver->state->n_rnn, 6 * 3);
  train (&sorted, true, -1, &schedule); /* verified by default: the reserve is no difference */
  assert_memory_equal (code.at, schedule.at, (size_t)code.n * sizeof (double));
}

/* What cannot be captured is launched alone; the numbers are the same. */
static void
static_chains__go_on_where_it_cannot_be_captured (void **state)
{
  static Numbers code, schedule;

  train (&sorted, false, 0, &code);
  driver->fail_call ("cudnnRNNForward", 3, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  TD_SCOPE ("alone")
    train (&sorted, true, 0, &schedule); /* whose calls are counted */
  assert_memory_equal (code.at, schedule.at, (size_t)code.n * sizeof (double));
}

/* --- what a recording shows, memory, faults --- */

static void
count_ops (TdTapeReader *r, const TdTapeIteration *it, const char *name, int *n, bool *nan)
{
  *n = 0;
  *nan = false;
  for (uint32_t e = 0; e < it->n_events; e++)
    *n += strcmp (td_tape_reader_op_name (r, it->events[e].opdef), name) == 0;
  for (uint32_t i = 0; i < it->n_stats; i++)
    *nan
        = *nan
          || (it->stats[i].n_nan > 0
              && strcmp (td_tape_reader_op_name (r, it->events[it->stats[i].event].opdef), name)
                     == 0);
}

static void
run_to_nan (void)
{
  Call c;
  double host[UNITS] = { 0, NAN, 0, 0 };

  make (&sorted, TD_F64, &c);
  td_write (c.bs[n_parts[TD_CELL_LSTM]], host, sizeof host); /* of the second layer */
  run (&sorted, &c);
  assert_int_equal (td_backward (loss_of (&sorted, &c), 0), TD_OK);
}

static void
recordings__show_one_operation_and_its_numbers (void **state)
{
  static const char *const ops[]
      = { "n_step_weights", "n_step_rnn", "n_step_rnn_grad", "n_step_weights_grad" };
  const char *path = td_test_tmp ("nan.tdtape");
  char error[256] = "";
  TdTapeSummaries s;
  TdTapeReader *r;
  const TdTapeIteration *it;
  bool nan;
  int n;

  assert_int_equal (td_finish (), 0);
  setenv ("TAPEDECK_LEVEL", "stats", 1);
  run_on ("cuda:0", run_to_nan, path);
  unsetenv ("TAPEDECK_LEVEL");
  r = far_tape_open (path);
  s = td_tape_reader_summaries (r);
  it = td_tape_iteration_load (r, s.rows[s.n - 1].number, error, sizeof error);
  assert_non_null (it);
  for (int i = 0; i < TD_ARRAY_LENGTH (ops); i++)
    {
      count_ops (r, it, ops[i], &n, &nan);
      assert_int_equal (n, 1);
      assert_true (nan);
    }
  count_ops (r, it, "lstm", &n, &nan);
  assert_int_equal (n, 0);
  assert_true (tape_says (path, "mode=lstm n_layers=2 bidirectional=false in_size=3"
                                " hidden_size=4 rows_steps=4,1,3,2,2,2 algorithm=cuDNN"));
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
}

static void
packed_weights__are_workspace (void **state)
{
  use ("cuda:0");
  TD_SCOPE ("memory")
    {
      TdMemInfo before, after;
      Call c;

      make (&sorted, TD_F64, &c);
      before = td_mem_info (td_device_get ("cuda:0"));
      run (&sorted, &c);
      after = td_mem_info (td_device_get ("cuda:0"));
      /* Two layers of 8 matrices and 8 biases, at least. */
      assert_true (after.category_bytes[TD_MEM_WORKSPACE]
                       - before.category_bytes[TD_MEM_WORKSPACE]
                   >= (4 * UNITS * IN + 12 * UNITS * UNITS + 16 * UNITS) * sizeof (double));
    }
}

static void
calls__wait_for_nothing (void **state)
{
  use ("cuda:0");
  TD_SCOPE ("waits")
    {
      long waits, up, down;
      Call c;

      make (&sorted, TD_F64, &c);
      waits = driver->state->n_waits;
      up = driver->state->n_copies[0];
      down = driver->state->n_copies[1];
      run (&sorted, &c);
      assert_int_equal (driver->state->n_copies[0], up); /* lengths stay on the host */
      assert_int_equal (td_backward (loss_of (&sorted, &c), 0), TD_OK);
      assert_int_equal (driver->state->n_rnn, 3);
      assert_int_equal (driver->state->n_waits, waits);
      assert_int_equal (driver->state->n_copies[1], down);
    }
}

static void
failing_calls__are_one_line (void **state)
{
  static const char *const functions[]
      = { "cudnnRNNForward", "cudnnRNNBackwardData_v8", "cudnnRNNBackwardWeights_v8" };

  use ("cuda:0");
  for (int i = 0; i < 3; i++)
    TD_SCOPE ("fails")
      {
        Call c;

        make (&sorted, TD_F64, &c);
        driver->fail_call (functions[i], 1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        run (&sorted, &c);
        if (i > 0)
          td_backward (loss_of (&sorted, &c), 0);
        assert_non_null (strstr (far_test_error (TD_ERR_DEVICE), functions[i]));
      }
}

static void
weights_that_do_not_fit__are_refused (void **state)
{
  use ("cuda:0");
  TD_SCOPE ("fit")
    {
      Call c;

      make (&sorted, TD_F64, &c);
      c.ws[5] = leaf (TD_F64, TD_SHAPE (UNITS, IN), 1, 1);
      run (&sorted, &c);
      assert_int_equal (c.status, TD_ERR_SHAPE);
      assert_true (td_poisoned (c.hy) && td_poisoned (c.ys[4]));
      assert_non_null (
          strstr (far_test_error (TD_ERR_SHAPE), "ws[0][5] (4, 4) expected, got (4, 3)"));
    }
}

/* Another batch, and other networks than are remembered. */
static void
networks__are_looked_up_by_all_they_depend_on (void **state)
{
  Net net = { TD_CELL_GRU, 1, 1, 2, { 2, 1 }, false, false, 0 };

  for (int round = 0; round < 2; round++)
    for (int layers = 1; layers <= 3; layers++)
      for (int cell = TD_CELL_LSTM; cell <= TD_CELL_RELU; cell++)
        {
          net.cell = (TdCell)cell;
          net.layers = layers;
          net.rows[1] = 1 + round;
          agree (&net, TD_F64, 1e-12);
          agree (&net, TD_F32, 1e-5);
        }
}

#define CLAIM(f) cmocka_unit_test_setup_teardown (f, setup, far_test_teardown_engine)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    CLAIM (fused_layers__are_the_composed_ones_in_double),
    CLAIM (fused_layers__are_the_composed_ones_in_float),
    CLAIM (backward__can_come_twice),
    CLAIM (backward__starts_at_the_states_alone),
    CLAIM (without_a_graph__nothing_is_kept),
    CLAIM (second_gradients__are_composed),
    CLAIM (composed_layers__say_why),
    CLAIM (static_chains__replay_it_as_part_of_a_graph),
    CLAIM (static_chains__go_on_where_it_cannot_be_captured),
    CLAIM (recordings__show_one_operation_and_its_numbers),
    CLAIM (packed_weights__are_workspace),
    CLAIM (calls__wait_for_nothing),
    CLAIM (failing_calls__are_one_line),
    CLAIM (weights_that_do_not_fit__are_refused),
    CLAIM (networks__are_looked_up_by_all_they_depend_on),
  };

  return cmocka_run_group_tests_name ("cudnn-rnn", tests, NULL, NULL);
}
