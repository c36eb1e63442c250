/* Operations of a program's own on a GPU: on copies in host memory, each copy an event with its
 * place, with the CPU's bits forward and backward; what is written in place; static functions
 * with them.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "tapedeck-op.h" /* before core.h, which leaves the sites out */
#include "compute/core/core.h"
#include "far-test.h"
#include "quiet-observer.h"

#include <stdio.h>
#include <string.h>

enum
{
  N = 6
};

/* y = x^3 + w, counting its calls in place in n. */
static TdStatus
infer (TdOpCall *call)
{
  return td_op_out (call, 0, TD_F32, call->in[0].shape);
}

static TdStatus
forward (TdOpCall *call)
{
  const float *x = call->in[0].data, *w = call->in[1].data;
  float *room = td_op_workspace (call, (size_t)call->in[0].size * sizeof *room);

  if (room == NULL)
    return TD_ERR_MEMORY;
  for (int64_t i = 0; i < call->in[0].size; i++)
    room[i] = x[i] * x[i] * x[i] + w[i];
  memcpy (call->out[0].data, room, (size_t)call->in[0].size * sizeof *room);
  ++*(float *)call->in[2].data;
  return TD_OK;
}

static TdStatus
backward (TdBackward *b)
{
  TdVar *x = td_backward_input (b, 0);

  b->gx[0] = td_mul (b->gy[0], td_mul_scalar (td_mul (x, x), 3));
  b->gx[1] = b->gy[0];
  return TD_OK;
}

static const char *const names[] = { "x", "w", "n" };
static const TdOpClass cube_class = { .name = "cube",
                                      .group = "user",
                                      .n_in_min = 3,
                                      .n_in_max = 3,
                                      .n_out = 1,
                                      .flags = TD_OP_HOST | TD_OP_STATEFUL,
                                      .retain_in = 1,
                                      .no_grad_in = 4,
                                      .writes = 4,
                                      .in_names = names,
                                      .infer = infer,
                                      .forward = forward,
                                      .backward = backward };

static TdVar *
cube (TdVar *x, TdVar *w, TdVar *n)
{
  TdVar *in[] = { x, w, n }, *y;

  td_apply (&cube_class, NULL, in, 3, &y, 1);
  return y;
}

/* Loss, gradients and the count on this device. */
static void
train (const char *name, float *numbers)
{
  static const float values[N] = { 0.5f, -1, 2, 1.5f, -0.25f, 3 };
  TdDevice *d = td_device_get (name);

  TD_SCOPE ("train")
    {
      TdVar *x, *w, *n, *y;

      td_device_use (d);
      x = td_variable (td_tensor (TD_F32, TD_SHAPE (N), values), "x");
      w = td_variable (td_full (TD_F32, TD_SHAPE (N), 0.125), "w");
      n = td_zeros (TD_F32, TD_SHAPE (1));
      y = td_tanh (cube (td_sin (cube (x, w, n)), w, n));
      assert_ptr_equal (td_device (y), d);
      assert_int_equal (td_backward (td_sum (y), 0), TD_OK);
      assert_int_equal (td_read (td_grad (x), numbers, N * sizeof *numbers), TD_OK);
      assert_int_equal (td_read (td_grad (w), numbers + N, N * sizeof *numbers), TD_OK);
      numbers[2 * N] = (float)td_item (td_sum (y));
      numbers[2 * N + 1] = (float)td_item (n);
    }
}

/* It has no results: there is no list for them. */
static TdStatus
infer_count (TdOpCall *call)
{
  (void)call;
  return TD_OK;
}

static TdStatus
forward_count (TdOpCall *call)
{
  ++*(float *)call->in[0].data;
  return TD_OK;
}

static const TdOpClass count_class = { .name = "count",
                                       .group = "user",
                                       .n_in_min = 1,
                                       .n_in_max = 1,
                                       .flags = TD_OP_HOST | TD_OP_STATEFUL | TD_OP_NO_GRAD,
                                       .writes = 1,
                                       .in_names = names,
                                       .infer = infer_count,
                                       .forward = forward_count };

static void
host_op__without_results_runs_on_the_host_too (void **state)
{
  (void)state;
  td_device_use (far_device);
  TD_SCOPE ("count")
    {
      TdVar *n = td_zeros (TD_F32, TD_SHAPE (1));

      for (int i = 0; i < 3; i++)
        assert_int_equal (td_apply (&count_class, NULL, &n, 1, NULL, 0), TD_OK);
      assert_float_equal (td_item (n), 3, 0);
    }
}

static void
host_op__trains_with_the_cpus_bits (void **state)
{
  float cpu[2 * N + 2], cuda[2 * N + 2];

  (void)state;
  train ("cpu", cpu);
  train ("cuda:0", cuda);
  assert_memory_equal (cpu, cuda, sizeof cpu);
  assert_true (cuda[2 * N + 1] == 2);
}

/* --- what is told --- */

static char events[400];

static void
note_op (TdObserver *o, const TdEvent *e)
{
  (void)o;
  snprintf (events + strlen (events), sizeof events - strlen (events), "%s:%d ", e->cls->name,
            e->site != NULL ? e->site->line : 0);
}

static void
host_op__copies_are_events_at_the_calls_place (void **state)
{
  TdObserver watch = quiet_observer;
  char expected[400];
  int line;

  (void)state;
  td_device_use (td_device_get ("cuda:0"));
  TD_SCOPE ("call")
    {
      TdVar *in[] = { td_ones (TD_F32, TD_SHAPE (N)), td_ones (TD_F32, TD_SHAPE (N)),
                      td_zeros (TD_F32, TD_SHAPE (1)) };
      TdVar *y;

      events[0] = '\0';
      watch.before_op = note_op;
      td__engine.observer = &watch;
      line = __LINE__ + 1;
      assert_int_equal (td_apply (&cube_class, NULL, in, 3, &y, 1), TD_OK);
      td__engine.observer = NULL;
    }
  snprintf (expected, sizeof expected,
            "to_device:%d to_device:%d to_device:%d cube:%d to_device:%d to_device:%d ", line,
            line, line, line, line, line);
  assert_string_equal (events, expected); /* what it wrote, and its result */
}

static void
cubes (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)n_in, (void)n_out;
  out[0] = td_square (cube (td_relu (in[0]), in[1], in[2]));
}

static void
host_op__keeps_a_function_define_by_run_which_says_why (void **state)
{
  TdStatic *s = td_static_new (cubes, NULL);

  (void)state;
  td_device_use (td_device_get ("cuda:0"));
  for (int i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        TdVar *in[] = { td_full (TD_F32, TD_SHAPE (N), i), td_ones (TD_F32, TD_SHAPE (N)),
                        td_zeros (TD_F32, TD_SHAPE (1)) };
        TdVar *y;

        assert_int_equal (td_static_call (s, in, 3, &y, 1), TD_OK);
        assert_true (td_item (td_sum (y)) == N * (i * i * i + 1) * (i * i * i + 1));
      }
  assert_int_equal (td_static_info (s).n_replays, 0);
  assert_non_null (strstr (td_static_last_miss (s), "an operation that the host computes"));
  td_static_free (s);
}

int
main (void)
{
#define row(f)                                                                                 \
  cmocka_unit_test_setup_teardown (f, far_test_setup_engine, far_test_teardown_engine)
  const struct CMUnitTest tests[] = {
    row (host_op__trains_with_the_cpus_bits),
    row (host_op__without_results_runs_on_the_host_too),
    row (host_op__copies_are_events_at_the_calls_place),
    row (host_op__keeps_a_function_define_by_run_which_says_why),
  };

  return cmocka_run_group_tests_name ("operations of the host's", tests, NULL, NULL);
}
