/* Devices that the host cannot look into: fake-remote computes later and far away, null only
 * plans.
 *
 * SPDX-License-Identifier: MIT */
#include "test-devices.h"

#include <tapedeck.h>

#include "compute/core/core.h"
#include "fake-remote.h"
#include "td-test.h"

#include "train/links/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static TdDevice *cpu, *null, *remote;

static int
setup (void **state)
{
  if (td_init (NULL, NULL) != TD_OK)
    return -1;
  cpu = td_device_get ("cpu");
  null = td_device_get ("null");
  remote = fake_remote_start ();
  td_set_seed (1);
  return remote == NULL ? -1 : 0;
}

static int
teardown (void **state)
{
  return td_finish ();
}

/* Take the error that a call made: one line of this status. */
static const char *
said (TdStatus status)
{
  static char text[1024];

  assert_non_null (td_error ());
  assert_int_equal (td_error ()->status, status);
  snprintf (text, sizeof text, "%s", td_error ()->message);
  assert_null (strchr (text, '\n'));
  td_error_clear ();
  return text;
}

/* --- fake-remote --- */

/* The kernel answers EFAULT where our own access would be a signal. */
static bool
host_can_read (const void *address)
{
  int ends[2];
  ssize_t n;

  assert_int_equal (pipe (ends), 0);
  n = write (ends[1], address, 1);
  assert_true (n == 1 || errno == EFAULT);
  close (ends[0]);
  close (ends[1]);
  return n == 1;
}

static void
remote__memory_is_out_of_the_hosts_reach (void **state)
{
  TdVar *here = td_ones (TD_F32, TD_SHAPE (3)), *there = td_to_device (here, remote);
  float values[3];

  assert_true (host_can_read (here->buffer->data));
  assert_false (host_can_read (there->buffer->data));
  assert_int_equal (td_read (there, values, sizeof values), TD_OK);
  assert_true (values[0] == 1 && values[2] == 1);
  assert_false (host_can_read (there->buffer->data));
}

static void
remote__work_waits_until_a_result_is_asked_for (void **state)
{
  TdVar *x = td_to_device (td_ones (TD_F32, TD_SHAPE (4)), remote), *y;
  int pending = fake_remote_pending ();

  assert_true (pending > 0); /* the upload */
  y = td_sum (td_mul (x, x));
  assert_true (fake_remote_pending () >= pending + 2);
  assert_true (td_item (y) == 4);
  assert_int_equal (fake_remote_pending (), 0);
  y = td_add (x, x);
  assert_true (fake_remote_pending () > 0);
  td_device_synchronize (remote);
  assert_int_equal (fake_remote_pending (), 0);
  assert_true (td_item (td_sum (y)) == 8);
}

static void
remote__refuses_memory_of_the_host (void **state)
{
  TdShape shape = TD_SHAPE (2);
  float host[2] = { 1, 2 };
  TdTensor t = { host, &shape, 2, TD_F32 };

  assert_int_equal (remote->ops->fill (remote, &t, 3), TD_ERR_DEVICE);
  assert_contains (said (TD_ERR_DEVICE),
                   "a kernel of " FAKE_REMOTE_NAME " was given memory of the host");
  assert_true (host[0] == 1 && host[1] == 2);
}

/* What failed in the queue comes out where the program waits, and once. */
static void
remote__tells_of_queued_failures_at_the_next_wait (void **state)
{
  TdVar *x = td_to_device (td_ones (TD_F32, TD_SHAPE (2)), remote);
  TdTensor bad = { x->buffer->data, &x->node->shape, 2, TD_BOOL };
  float values[2];

  assert_int_equal (remote->ops->random (remote, TD_RANDOM_NORMAL, (TdRngKey){ 1, 2 }, 0, &bad),
                    TD_OK);
  assert_int_equal (td_read (x, values, sizeof values), TD_ERR_DTYPE);
  assert_contains (said (TD_ERR_DTYPE), "queued work failed on " FAKE_REMOTE_NAME);
  assert_int_equal (td_read (x, values, sizeof values), TD_OK);
}

static void
remote__has_a_slot_of_its_own_for_each_of_the_cpus (void **state)
{
  const char *ours = (const char *)remote->ops, *theirs = (const char *)&td__cpu_ops;

  for (size_t at = offsetof (TdDeviceOps, provider); at <= offsetof (TdDeviceOps, stats);
       at += sizeof (void *))
    {
      void *mine, *cpus;

      memcpy (&mine, ours + at, sizeof mine);
      memcpy (&cpus, theirs + at, sizeof cpus);
      if (cpus == NULL)
        continue;
      assert_non_null (mine);
      assert_ptr_not_equal (mine, cpus);
    }
}

static void
to_device__there_and_back_keeps_every_bit (void **state)
{
  TdVar *here = td_randn (TD_F32, TD_SHAPE (7, 13)), *there, *back;
  float before[91], after[91];

  td_variable (here, "w");
  there = td_to_device (here, remote);
  back = td_to_device (there, cpu);
  assert_ptr_equal (td_device (there), remote);
  assert_ptr_equal (td_device (back), cpu);
  assert_ptr_equal (td_to_device (there, remote), there);
  assert_int_equal (td_read (here, before, sizeof before), TD_OK);
  assert_int_equal (td_read (back, after, sizeof after), TD_OK);
  assert_memory_equal (before, after, sizeof before);
}

static void
zeros_like__lies_where_its_variable_lies (void **state)
{
  TdVar *zeros = td_zeros_like (td_to_device (td_ones (TD_F32, TD_SHAPE (2, 2)), remote));

  assert_ptr_equal (td_device (zeros), remote);
  assert_true (td_item (td_sum (zeros)) == 0);
  assert_ptr_equal (td_device (td_zeros_like (td_to_device (zeros, null))), null);
}

static void
mixed_devices__are_an_error_that_names_both (void **state)
{
  TdVar *here = td_ones (TD_F32, TD_SHAPE (2, 2)), *there = td_to_device (here, remote);
  const char *text;

  assert_true (td_poisoned (td_add (there, here)));
  text = said (TD_ERR_DEVICE);
  assert_contains (text, FAKE_REMOTE_NAME);
  assert_contains (text, "cpu");
  assert_true (td_poisoned (td_linear (here, td_to_device (here, null), NULL)));
  text = said (TD_ERR_DEVICE);
  assert_contains (text, "null");
  assert_contains (text, "cpu");
}

/* An operation of the user's that computes with pointers. */
static TdStatus
twice_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
twice_forward (TdOpCall *call)
{
  const float *x = call->in[0].data;
  float *y = call->out[0].data;

  for (int64_t i = 0; i < call->in[0].size; i++)
    y[i] = 2 * x[i];
  return TD_OK;
}

static const TdOpClass twice_class = {
  .name = "twice",
  .group = "user",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_HOST,
  .infer = twice_infer,
  .forward = twice_forward,
};

/* The same of a class that says nothing, and of one that would compute on the device. */
static const TdOpClass silent_class = {
  .name = "twice_silent",
  .group = "user",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .infer = twice_infer,
  .forward = twice_forward,
};

static void
host_operation__is_refused_where_it_would_crash (void **state)
{
  TdVar *x = td_full (TD_F32, TD_SHAPE (1), 21), *there = td_to_device (x, remote);
  TdVar *planned = td_to_device (x, null), *y;

  assert_int_equal (td_apply (&silent_class, NULL, &x, 1, &y, 1), TD_OK);
  assert_true (td_item (y) == 42);
  assert_int_equal (td_apply (&silent_class, NULL, &there, 1, &y, 1), TD_ERR_DEVICE);
  assert_true (td_poisoned (y));
  assert_contains (td_error ()->message, "give its class TD_OP_HOST");
  assert_contains (said (TD_ERR_DEVICE),
                   "twice_silent: its forward may read host memory, and its operands are "
                   "on " FAKE_REMOTE_NAME);
  assert_int_equal (td_apply (&silent_class, NULL, &planned, 1, &y, 1), TD_OK);
  assert_ptr_equal (td_device (y), null);
}

static void
host_operation__runs_on_copies_where_its_class_says_so (void **state)
{
  TdVar *x = td_full (TD_F32, TD_SHAPE (3), 21), *there = td_to_device (x, remote), *y;
  TdMemInfo before = td_mem_info (remote), after;

  TD_SCOPE ("call")
    {
      assert_int_equal (td_apply (&twice_class, NULL, &there, 1, &y, 1), TD_OK);
      assert_ptr_equal (td_device (y), remote);
      assert_true (td_item (td_sum (y)) == 3 * 42);
      assert_ptr_equal (td_device (there), remote);
    }
  after = td_mem_info (remote);
  assert_int_equal (after.live_vars, before.live_vars);
  assert_int_equal (after.live_nodes, before.live_nodes);
  y = td_to_device (x, null);
  assert_int_equal (td_apply (&twice_class, NULL, (TdVar *[]){ y }, 1, &y, 1), TD_OK);
  assert_ptr_equal (td_device (y), null);
}

/* --- training, bit for bit --- */

typedef TdLink *(*ModelNew) (void);

static TdVar *
pool (TdVar *x)
{
  return td_max_pooling_2d (x, .ksize = { 2, 2 }, .stride = { 2, 2 });
}

static TdVar *
drop (TdVar *x)
{
  return td_dropout (x, 0.3);
}

static TdLink *
mlp_new (void)
{
  TdLink *m = td_sequential_new ("mlp");

  td_linear_new (m, "l1", TD_INFER, 20);
  td_batch_normalization_new (m, "bn", 20);
  td_sequential_append (m, td_relu);
  td_sequential_append (m, drop);
  td_linear_new (m, "l2", 20, 10);
  return m;
}

static TdLink *
lenet_new (void)
{
  TdLink *m = td_sequential_new ("lenet");

  td_convolution_2d_new (m, "conv1", 1, 6, 5, .pad = { 2, 2 });
  td_sequential_append (td_sequential_append (m, td_relu), pool);
  td_convolution_2d_new (m, "conv2", 6, 16, 5);
  td_sequential_append (td_sequential_append (m, td_relu), pool);
  td_linear_new (m, "fc1", TD_INFER, 120);
  td_sequential_append (m, td_relu);
  td_linear_new (m, "fc2", 120, 10);
  return m;
}

typedef struct
{
  char *bytes;
  size_t n;
} Weights;

static void
collect (TdLink *owner, TdParam *param, const char *key, void *user)
{
  Weights *w = user;
  size_t n = param->var->buffer->bytes;

  w->bytes = realloc (w->bytes, w->n + n);
  assert_non_null (w->bytes);
  assert_int_equal (td_read (param->var, w->bytes + w->n, n), TD_OK);
  w->n += n;
}

/* Three iterations on the device.  Returns all parameters and statistics. */
static Weights
train (ModelNew model_new, TdDevice *device, bool adam, double *losses)
{
  enum
  {
    N = 8
  };
  static const int32_t labels[N] = { 3, 1, 4, 1, 5, 9, 2, 6 };
  Weights w = { NULL, 0 };
  TdLink *m;
  TdOpt *opt;

  td_set_seed (5);
  td_device_use (device);
  m = model_new ();
  opt = adam ? td_adam_new (m, .lr = 1e-2) : td_momentum_sgd_new (m, .lr = 1e-2);
  td_opt_add_hook (opt, td_weight_decay_new (1e-3));
  td_opt_add_hook (opt, td_gradient_clipping_new (1.0));
  TD_ITERATIONS (i, 3)
    {
      TdVar *x = td_rand (TD_F32, TD_SHAPE (N, 1, 28, 28));
      TdVar *t = td_tensor (TD_I32, TD_SHAPE (N), labels);
      TdVar *loss = td_softmax_cross_entropy (td_link (m, x), t);

      td_cleargrads (m);
      assert_int_equal (td_backward (loss, 0), TD_OK);
      assert_int_equal (td_opt_update (opt), TD_OK);
      losses[i] = td_item (loss);
      assert_true (losses[i] > 0); /* neither NaN nor the memory of nobody */
    }
  td__link_visit (m, collect, &w);
  td_opt_free (opt);
  td_link_free (m);
  td_device_use (cpu);
  return w;
}

static void
trains_alike (ModelNew model_new, bool adam)
{
  double loss[2][3];
  Weights here = train (model_new, cpu, adam, loss[0]),
          there = train (model_new, remote, adam, loss[1]);

  assert_memory_equal (loss[0], loss[1], sizeof loss[0]);
  assert_true (loss[0][0] != loss[0][2]);
  assert_int_equal (here.n, there.n);
  assert_true (here.n > 4000);
  assert_memory_equal (here.bytes, there.bytes, here.n);
  free (here.bytes);
  free (there.bytes);
}

static void
mlp__trains_far_away_bit_for_bit (void **state)
{
  trains_alike (mlp_new, true);
  trains_alike (mlp_new, false);
}

static void
lenet__trains_far_away_bit_for_bit (void **state)
{
  trains_alike (lenet_new, false);
  trains_alike (lenet_new, true);
}

/* --- null --- */

static size_t
resident_bytes (void)
{
  size_t bytes, total, pages = 0;
  char *text = td_test_read_file ("/proc/self/statm", &bytes);

  assert_int_equal (sscanf (text, "%zu %zu", &total, &pages), 2);
  free (text);
  return pages * (size_t)sysconf (_SC_PAGESIZE);
}

enum
{
  WIDE = 160000 /* a square matrix of so many floats is 102.4 GB */
};

static void
null__plans_a_hundred_gigabytes_without_touching_memory (void **state)
{
  const size_t weights = (size_t)WIDE * WIDE * sizeof (float);
  size_t before;
  TdMemInfo info;
  TdLink *m;
  TdOpt *opt;

  td_device_use (null);
  before = resident_bytes ();
  m = td_linear_new (NULL, "wide", WIDE, WIDE);
  opt = td_adam_new (m);
  TD_ITERATION (0)
    {
      TdVar *y = td_link (m, td_rand (TD_F32, TD_SHAPE (4, WIDE)));

      assert_int_equal (td_backward (td_mean (td_square (y)), 0), TD_OK);
      assert_int_equal (td_opt_update (opt), TD_OK);
    }
  info = td_mem_info (null);
  /* W and b; as much of gradients; two moments of each. */
  assert_true (info.category_bytes[TD_MEM_PARAMETER] == weights + WIDE * sizeof (float));
  assert_true (info.category_bytes[TD_MEM_GRADIENT] == weights + WIDE * sizeof (float));
  assert_true (info.category_bytes[TD_MEM_OPTIMIZER] == 2 * (weights + WIDE * sizeof (float)));
  assert_true (info.peak_bytes > 4 * weights);
  assert_true (resident_bytes () - before < (size_t)32 << 20);
  td_opt_free (opt);
  td_link_free (m);
  assert_int_equal (td_mem_info (null).live_bytes, 0);
}

static void
null__says_in_one_line_that_it_keeps_no_values (void **state)
{
  TdVar *x = td_to_device (td_ones (TD_F32, TD_SHAPE (1)), null);
  float value = 42;
  double item;

  assert_int_equal (td_read (x, &value, sizeof value), TD_ERR_DEVICE);
  assert_contains (said (TD_ERR_DEVICE), "device null keeps no values to read");
  assert_true (value == 42);
  item = td_item (x);
  assert_true (item != item);
  assert_contains (said (TD_ERR_DEVICE), "device null keeps no values to read");
}

/* The limit comes as a user gives it, before the model is built. */
static void
null__refuses_what_exceeds_the_memory_limit (void **state)
{
  char program[] = "model", device[] = "--td-device=null", limit[] = "--td-mem-limit=90G";
  char *arguments[] = { program, device, limit, NULL }, **argv = arguments;
  const char *text;
  int argc = 3;

  assert_int_equal (td_finish (), 0);
  assert_int_equal (td_init (&argc, &argv), TD_OK);
  assert_int_equal (argc, 1);
  null = td_device_get ("null");
  assert_false (td_poisoned (td_zeros (TD_F32, TD_SHAPE (WIDE, WIDE / 2))));
  assert_true (td_poisoned (td_zeros (TD_F32, TD_SHAPE (WIDE, WIDE / 2))));
  text = said (TD_ERR_MEMORY);
  assert_contains (text, "out of memory on null: 51.2 GB wanted, 51.2 GB live (input 51.2 GB)");
  assert_true (td_mem_info (null).live_bytes <= (size_t)90 << 30);
}

int
main (int argc, char **argv)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (remote__memory_is_out_of_the_hosts_reach),
    row (remote__work_waits_until_a_result_is_asked_for),
    row (remote__refuses_memory_of_the_host),
    row (remote__tells_of_queued_failures_at_the_next_wait),
    row (remote__has_a_slot_of_its_own_for_each_of_the_cpus),
    row (to_device__there_and_back_keeps_every_bit),
    row (zeros_like__lies_where_its_variable_lies),
    row (mixed_devices__are_an_error_that_names_both),
    row (host_operation__is_refused_where_it_would_crash),
    row (host_operation__runs_on_copies_where_its_class_says_so),
    row (mlp__trains_far_away_bit_for_bit),
    row (lenet__trains_far_away_bit_for_bit),
    row (null__plans_a_hundred_gigabytes_without_touching_memory),
    row (null__says_in_one_line_that_it_keeps_no_values),
    row (null__refuses_what_exceeds_the_memory_limit),
  };
  int failed = devices_run_rows (argc > 1 ? argv[1] : NULL);

  return failed + cmocka_run_group_tests_name ("devices", tests, NULL, NULL) != 0;
}
