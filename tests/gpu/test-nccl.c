/* A process alone on a GPU, by NCCL: that the host waits for nothing, what the fake notes where
 * the module forgets a call or counts wrongly, and what is said where NCCL cannot be had.
 *
 * What several ranks compute this way the tests of ranks show (on-gpus).
 *
 * SPDX-License-Identifier: MIT */
#include "far-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "td-test.h"

static TdComm *comm;

static int
setup (void **state)
{
  setenv ("FAKE_NCCL", "1", 1);
  if (far_test_setup_engine (state) != 0)
    return -1;
  td_device_use (far_device);
  comm = td_comm_new ("nccl");
  return td_comm_size (comm) == 1 ? 0 : -1;
}

static int
setup_host (void **state)
{
  unsetenv ("FAKE_NCCL");
  return far_test_setup_engine (state);
}

/* After a group that has no end: all that follows is misuse, too. */
static int
teardown_misused (void **state)
{
  td_error_clear ();
  td_finish ();
  far_driver->state->n_violations = 0;
  return td_test_teardown (state);
}

/* Waits, exchanges, and bytes between the host and the device since the last call. */
typedef struct
{
  long waits, exchanges, up, down;
} Counts;

static Counts
counts_since (Counts *before)
{
  const FakeCuda *f = far_driver->state;
  const Counts now = { f->n_waits, f->n_exchanges, f->copied_bytes[0], f->copied_bytes[1] };
  const Counts since = { now.waits - before->waits, now.exchanges - before->exchanges,
                         now.up - before->up, now.down - before->down };

  *before = now;
  return since;
}

/* --- nobody waits --- */

static void
function__is_an_exchange_that_nobody_waits_for (void **state)
{
  (void)state;
  TD_SCOPE ("functions")
    {
      TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (1, 500)), "x"), *y;
      Counts at = { 0 }, since;

      counts_since (&at);
      y = td_comm_bcast (comm, x, 0);
      y = td_comm_allreduce (comm, y);
      y = td_comm_alltoall (comm, y);
      y = td_sum (td_comm_allgather (comm, y));
      since = counts_since (&at);
      assert_int_equal (since.exchanges, 4);
      assert_int_equal (since.waits, 0);
      assert_int_equal (since.up + since.down, 0);
      assert_int_equal (td_backward (y, 0), TD_OK);
      since = counts_since (&at);
      assert_int_equal (since.exchanges, 4);
      assert_int_equal (since.waits, 0);
      assert_int_equal (since.down, 0);
      assert_float_equal (td_item (y), 500, 0);
      assert_float_equal (td_item (td_sum (td_grad (x))), 500, 0);
    }
}

static void
half__is_summed_in_float_on_the_device (void **state)
{
  (void)state;
  TD_SCOPE ("halves")
    {
      TdVar *x = td_full (TD_F16, TD_SHAPE (300), 3);
      Counts at = { 0 }, since;
      TdVar *y;

      counts_since (&at);
      y = td_comm_allreduce (comm, x);
      since = counts_since (&at);
      assert_int_equal (since.exchanges, 1);
      assert_int_equal (since.waits + since.up + since.down, 0);
      assert_int_equal (td_dtype (y), TD_F16);
      assert_float_equal (td_item (td_sum (td_cast (y, TD_F32))), 900, 0);
    }
}

static TdLink *
model_new (void)
{
  TdLink *model = td_sequential_new ("net");

  td_set_seed (1);
  td_convolution_2d_new (model, "c", 2, 3, 3); /* whose weights lie channels-last */
  td_sequential_append (model, td_relu);
  td_linear_new (model, "l", 3 * 4 * 4, 2);
  return model;
}

static TdVar *
loss_of (TdLink *model)
{
  TdVar *x = td_ones (TD_F32, TD_SHAPE (4, 2, 6, 6));

  return td_mean (td_square (td_link (model, x)));
}

/* One update after the other, the last of them counted. */
static Counts
train (TdOpt *opt, TdLink *model)
{
  Counts at = { 0 }, since = { 0 };

  for (int step = 0; step < 6; step++)
    TD_SCOPE ("step")
      {
        counts_since (&at);
        td_cleargrads (model);
        assert_int_equal (td_backward (loss_of (model), 0), TD_OK);
        assert_int_equal (td_opt_update (opt), TD_OK);
        since = counts_since (&at);
      }
  return since;
}

static float
weight_of (TdLink *model)
{
  float sum = 0;

  TD_SCOPE ("weight")
    {
      TdVar *w = td_link_param (td_link_child (model, "c"), "W");

      sum = (float)td_item (td_sum (td_square (w)));
    }
  return sum;
}

static void
update__waits_for_nothing_and_reads_nothing (void **state)
{
  float want = 0;

  (void)state;
  for (int way = 0; way < 4; way++)
    {
      TdLink *model = model_new ();
      TdOpt *opt = td_sgd_new (model, .lr = 0.01);
      Counts since;

      if (way == 1)
        td_multi_node_optimizer_new (opt, comm, .bucket_bytes = 64);
      if (way == 2)
        td_multi_node_optimizer_new (opt, comm, .double_buffering = true, .bucket_bytes = 64);
      if (way == 3)
        td_multi_node_optimizer_new (opt, comm);
      since = train (opt, model);
      assert_int_equal (since.waits, 0);
      assert_int_equal (since.down, 0);
      /* W of c and W of l have more than 64 bytes each, their biases share a bucket or not */
      assert_in_range (since.exchanges,
                       way == 0   ? 0
                       : way == 3 ? 1
                                  : 2,
                       way == 0   ? 0
                       : way == 3 ? 1
                                  : 4);
      if (way == 0)
        want = weight_of (model);
      else if (way != 2) /* which is behind by one */
        assert_float_equal (weight_of (model), want, 1e-6);
      td_opt_free (opt);
      td_link_free (model);
    }
}

/* --- what the fake notes of a module that is wrong --- */

static void
plant (const char *ignored, long miscount, const char *text)
{
  FakeCuda *f = far_driver->state;

  TD_SCOPE ("planted")
    {
      TdVar *x = td_ones (TD_F32, TD_SHAPE (1, 500)), *y;

      snprintf (f->ignored, sizeof f->ignored, "%s", ignored);
      f->miscount = miscount;
      y = td_comm_alltoall (comm, td_mul_scalar (x, 2));
      y = td_comm_allreduce (comm, td_mul_scalar (y, 2));
      f->ignored[0] = '\0';
      f->miscount = 0;
      if (f->n_violations == 0 || strstr (f->violation, text) == NULL)
        fail_msg ("\"%s\" was noted, \"%s\" expected", f->violation, text);
      f->n_violations = 0; /* it has served */
      (void)y;
    }
}

static void
wrong_stream__is_noted (void **state)
{
  (void)state;
  plant ("cuStreamWaitEvent", 0, "and no event is between them");
}

static void
missing_group__is_noted (void **state)
{
  (void)state;
  plant ("ncclGroupEnd", 0, "ncclGroupEnd is missing");
}

static void
wrong_count__is_noted (void **state)
{
  (void)state;
  plant ("", 3, "bytes that the module has not announced");
}

/* --- where it cannot be had, or fails --- */

/* The next call of it. */
static void
fake_fail (const char *function)
{
  far_driver->fail_call (function, 1, 999 /* CUDA_ERROR_UNKNOWN */);
}

static void
absence__is_said_in_one_line (void **state)
{
  (void)state;
  assert_int_equal (td_comm_size (td_comm_new ("nccl")), 0);
  assert_non_null (strstr (far_test_error (TD_ERR_DEVICE),
                           "rank 0 of 1: \"nccl\" cannot be had: each rank needs a GPU with "
                           "NCCL, and rank 0 cannot use cuda:0 so: NCCL is not here "
                           "(libnccl.so.2 cannot be opened)"));
  td_device_use (td_device_get ("null"));
  assert_int_equal (td_comm_size (td_comm_new ("nccl")), 0);
  assert_non_null (strstr (far_test_error (TD_ERR_DEVICE), "it computes on null"));
  assert_int_equal (td_comm_size (td_comm_new (NULL)), 1); /* needs none */
}

/* As torchrun starts them: each would train alone. */
static void
processes__that_mpirun_did_not_start_are_refused (void **state)
{
  static const char *const names[] = { "nccl", NULL };

  (void)state;
  setenv ("LOCAL_RANK", "1", 1);
  setenv ("LOCAL_WORLD_SIZE", "4", 1);
  for (int i = 0; i < 2; i++)
    {
      assert_int_equal (td_comm_size (td_comm_new (names[i])), 0);
      assert_non_null (
          strstr (far_test_error (TD_ERR_STATE),
                  "this is process 1 of 4 that were started together here, but not "
                  "by mpirun"));
    }
  setenv ("LOCAL_WORLD_SIZE", "1", 1);
  assert_int_equal (td_comm_size (td_comm_new (NULL)), 1);
  unsetenv ("LOCAL_RANK");
  unsetenv ("LOCAL_WORLD_SIZE");
}

/* Of a process alone there is nobody to end. */
static void
failure__of_an_exchange_is_the_calls_error (void **state)
{
  (void)state;
  TD_SCOPE ("failure")
    {
      TdVar *x = td_ones (TD_F32, TD_SHAPE (5)), *y;

      fake_fail ("ncclAllReduce");
      y = td_comm_allreduce (comm, x);
      assert_true (td_poisoned (y));
      assert_non_null (strstr (far_test_error (TD_ERR_DEVICE),
                               "cuda:0: ncclAllReduce failed: unhandled cuda error"));
      y = td_comm_allreduce (comm, x);
      assert_float_equal (td_item (td_sum (y)), 5, 0);
    }
}

/* What was begun is given up, and goes by the host from then on. */
static void
exchange__whose_end_cannot_be_seen_is_given_up (void **state)
{
  (void)state;
  TD_SCOPE ("failure")
    {
      TdVar *x = td_ones (TD_F32, TD_SHAPE (5)), *y;
      Counts at = { 0 };

      far_driver->fail_call ("cuEventRecord", 2, 999); /* the first is of what it follows */
      y = td_comm_allreduce (comm, x);
      assert_true (td_poisoned (y));
      assert_non_null (strstr (far_test_error (TD_ERR_DEVICE), "cuEventRecord failed"));
      counts_since (&at);
      y = td_comm_allreduce (comm, x);
      assert_float_equal (td_item (td_sum (y)), 5, 0);
      assert_int_equal (counts_since (&at).exchanges, 0);
    }
}

/* Double buffering needs one besides the communicator's. */
static void
failure__of_a_second_team_is_the_optimizers (void **state)
{
  TdLink *model = model_new ();
  TdOpt *opt;

  (void)state;
  fake_fail ("ncclGetUniqueId");
  opt = td_multi_node_optimizer_new (td_sgd_new (model, .lr = 0.01), comm,
                                     .double_buffering = true);
  assert_non_null (strstr (far_test_error (TD_ERR_DEVICE), "ncclGetUniqueId failed: "));
  assert_int_not_equal (td_opt_update (opt), TD_OK); /* it is inert */
  td_error_clear ();
  td_link_free (model);
}

static void
failure__of_joining_is_said_by_td_comm_new (void **state)
{
  (void)state;
  fake_fail ("ncclCommInitRank");
  assert_int_equal (td_comm_size (td_comm_new ("nccl")), 0);
  assert_non_null (strstr (far_test_error (TD_ERR_DEVICE), "ncclCommInitRank failed: "));
  fake_fail ("ncclGetUniqueId");
  assert_int_equal (td_comm_size (td_comm_new ("nccl")), 0);
  assert_non_null (strstr (far_test_error (TD_ERR_DEVICE), "ncclGetUniqueId failed: "));
  fake_fail ("cuStreamCreate");
  assert_int_equal (td_comm_size (td_comm_new ("nccl")), 0);
  assert_non_null (strstr (far_test_error (TD_ERR_DEVICE), "cuStreamCreate failed: "));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (absence__is_said_in_one_line, setup_host,
                                     far_test_teardown_engine),
    cmocka_unit_test_setup_teardown (function__is_an_exchange_that_nobody_waits_for, setup,
                                     far_test_teardown_engine),
    cmocka_unit_test_setup_teardown (half__is_summed_in_float_on_the_device, setup,
                                     far_test_teardown_engine),
    cmocka_unit_test_setup_teardown (update__waits_for_nothing_and_reads_nothing, setup,
                                     far_test_teardown_engine),
    cmocka_unit_test_setup_teardown (processes__that_mpirun_did_not_start_are_refused, setup,
                                     far_test_teardown_engine),
    cmocka_unit_test_setup_teardown (failure__of_an_exchange_is_the_calls_error, setup,
                                     far_test_teardown_engine),
    cmocka_unit_test_setup_teardown (exchange__whose_end_cannot_be_seen_is_given_up, setup,
                                     far_test_teardown_engine),
    cmocka_unit_test_setup_teardown (failure__of_a_second_team_is_the_optimizers, setup,
                                     far_test_teardown_engine),
    cmocka_unit_test_setup_teardown (failure__of_joining_is_said_by_td_comm_new, setup,
                                     far_test_teardown_engine),
    cmocka_unit_test_setup_teardown (wrong_stream__is_noted, setup, far_test_teardown_engine),
    cmocka_unit_test_setup_teardown (missing_group__is_noted, setup, teardown_misused),
    cmocka_unit_test_setup_teardown (wrong_count__is_noted, setup, far_test_teardown_engine),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
