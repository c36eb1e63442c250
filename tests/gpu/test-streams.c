/* Copies on streams of their own: what they wait for, what waits for them, and that memory
 * which another stream may still use is nobody's.
 *
 * SPDX-License-Identifier: MIT */
#include "train.h"

#include "compute/core/core.h"
#include "far-test.h"
#include "fake-remote.h"
#include "td-test.h"

#include <stdlib.h>
#include <string.h>

#include <cuda.h>

enum
{
  LARGE = 1 << 18 /* elements: as many bytes as copies on their own stream have at least */
};
static float numbers[2 * LARGE];

static int
setup (void **state)
{
  if (far_test_setup_engine (state) != 0)
    return -1;
  td_device_use (far_device);
  for (int i = 0; i < 2 * LARGE; i++)
    numbers[i] = (float)(i % 7);
  return 0;
}

static int
setup_malloc (void **state)
{
  setenv ("TAPEDECK_CUDA_ALLOCATOR", "cuda_malloc", 1);
  return setup (state);
}

static int
teardown_malloc (void **state)
{
  unsetenv ("TAPEDECK_CUDA_ALLOCATOR");
  return far_test_teardown_engine (state);
}

static TdVar *
input (int64_t n)
{
  return td_tensor (TD_F32, TD_SHAPE (n), numbers);
}

/* --- uploads --- */

/* Work waits on the compute stream, and the copy is not behind it. */
static void
uploads__of_new_arrays_wait_for_no_work (void **state)
{
  TdVar *small = input (64), *x;
  TdMemInfo info;

  (void)state;
  for (int i = 0; i < 20; i++)
    small = td_relu (small);
  x = input (LARGE);
  info = td_mem_info (far_device);
  assert_int_equal (info.pool_bytes[TD_MEM_POOL_UPLOAD], LARGE * sizeof (float));
  assert_true (td_item (td_sum (td_relu (x))) > 0);
  assert_int_equal (far_driver->state->n_violations, 0);
}

static void
uploads__are_there_before_kernels_read_them (void **state)
{
  double expected = 0;

  (void)state;
  for (int i = 0; i < 2 * LARGE; i++)
    expected += (double)numbers[i];
  for (int i = 0; i < 12; i++)
    TD_SCOPE ("s")
      assert_true (td_item (td_sum (input (2 * LARGE))) == expected);
}

/* The same program without the event between the two streams. */
static void
uploads__without_their_event_would_be_seen (void **state)
{
  TdVar *x;

  (void)state;
  strcpy (far_driver->state->ignored, "cuStreamWaitEvent");
  x = td_relu (input (LARGE));
  far_driver->state->ignored[0] = '\0';
  assert_false (td_poisoned (x));
  assert_true (far_driver->state->n_violations > 0);
  assert_contains (far_driver->state->violation,
                   "another stream writes, and no event is between");
  far_driver->state->n_violations = 0;
}

/* --- memory that another stream may use --- */

static void
blocks__are_pending_till_the_work_that_reads_them_is_done (void **state)
{
  size_t bytes = LARGE * sizeof (float);
  TdMemInfo info;

  (void)state;
  TD_SCOPE ("s")
    td_sum (input (LARGE));
  info = td_mem_info (far_device);
  assert_int_equal (info.pool_bytes[TD_MEM_POOL_UPLOAD], 0);
  assert_int_equal (info.pool_pending_bytes[TD_MEM_POOL_UPLOAD], bytes);
  assert_int_equal (info.pending_bytes, bytes);
  assert_null (td__pool_check (far_device->pool));
  td_pool_trim (far_device); /* which waits */
  info = td_mem_info (far_device);
  assert_int_equal (info.pending_bytes, 0);
  assert_int_equal (info.pool_reserved_bytes[TD_MEM_POOL_UPLOAD], 0);
  assert_null (td__pool_check (far_device->pool));
}

static void
inputs__come_to_the_same_addresses_in_every_run (void **state)
{
  const void *first[24];
  size_t reserved = 0;

  for (int run = 0; run < 2; run++)
    {
      for (int i = 0; i < 24; i++)
        TD_SCOPE ("s")
          {
            TdVar *x = input (LARGE);
            const char *start = (const char *)x->buffer->data;

            td_sum (x);
            if (run == 0)
              first[i] = start;
            assert_ptr_equal (start, first[i]);
            if (i % 5 == run) /* devices are as far as they are */
              td_device_synchronize (far_device);
            if (i == 12)
              reserved = td_mem_info (far_device).reserved_bytes;
          }
      assert_int_equal (td_mem_info (far_device).reserved_bytes, reserved);
      assert_null (td__pool_check (far_device->pool));
      if (run == 0)
        {
          far_test_teardown_engine (state);
          setup (state);
        }
    }
}

/* The host is some inputs ahead at most, and then waits for one of long ago. */
static void
inputs__are_not_many_ahead_of_the_device (void **state)
{
  long waits;

  (void)state;
  for (int i = 0; i < 4; i++)
    TD_SCOPE ("s")
      td_sum (input (LARGE));
  waits = far_driver->state->n_waits;
  for (int i = 0; i < 10; i++)
    TD_SCOPE ("s")
      td_sum (input (LARGE));
  assert_true (far_driver->state->n_waits > waits);
  assert_true (far_driver->state->n_waits <= waits + 20);
  assert_true (td_mem_info (far_device).pool_pending_bytes[TD_MEM_POOL_UPLOAD]
               <= 6 * LARGE * sizeof (float));
}

/* Were a block taken again without that wait, a copy would overtake a kernel. */
static void
blocks__taken_too_early_would_be_seen (void **state)
{
  (void)state;
  strcpy (far_driver->state->ignored, "cuEventSynchronize");
  for (int i = 0; i < 12 && far_driver->state->n_violations == 0; i++)
    TD_SCOPE ("s")
      td_sum (input (LARGE));
  far_driver->state->ignored[0] = '\0';
  assert_true (far_driver->state->n_violations > 0);
  assert_contains (far_driver->state->violation, "and no event is between them");
  far_driver->state->n_violations = 0;
}

/* Memory that waits is had, before there is none. */
static void
memory__that_is_pending_is_waited_for_before_there_is_none (void **state)
{
  (void)state;
  far_driver->state->total_bytes = (size_t)24 << 20;
  for (int i = 0; i < 6; i++)
    TD_SCOPE ("s")
      td_sum (input (2 * LARGE));
  assert_true (td_mem_info (far_device).pending_bytes > 0);
  assert_false (td_poisoned (td_zeros (TD_F32, TD_SHAPE (16, LARGE))));
  assert_int_equal (td_mem_info (far_device).pending_bytes, 0);
  assert_null (td__pool_check (far_device->pool));
}

/* --- downloads --- */

/* A loss is read while what follows it is still to be done. */
static void
reads__of_a_number_wait_for_what_made_it_alone (void **state)
{
  TdVar *x = input (64), *loss = td_sum (x), *y = x;
  double value;

  (void)state;
  for (int i = 0; i < 150; i++)
    y = td_relu (y);
  value = td_item (loss);
  assert_true (value > 0);
  assert_true (far_driver->state->n_pending > 50);
  assert_true (td_item (td_sum (y)) == value); /* of all: behind everything */
}

static void
reads__after_another_write_wait_for_that (void **state)
{
  TdVar *x = td_retain (td_sum (input (64)));
  float two = 2;

  (void)state;
  td_write (x, &two, sizeof two);
  assert_true (td_item (x) == 2);
  td_release (x);
}

static void
reads__without_their_event_would_be_seen (void **state)
{
  TdVar *y = td_relu (input (64));
  float out[64];

  (void)state;
  strcpy (far_driver->state->ignored, "cuStreamWaitEvent");
  td_read (y, out, sizeof out);
  far_driver->state->ignored[0] = '\0';
  assert_true (far_driver->state->n_violations > 0);
  assert_contains (far_driver->state->violation,
                   "another stream writes, and no event is between");
  far_driver->state->n_violations = 0;
}

/* --- when it goes wrong --- */

static void
fault__of_a_copy_ends_in_one_error_and_a_device_that_begins_anew (void **state)
{
  (void)state;
  TD_SCOPE ("s")
    td_sum (input (LARGE));
  far_driver->fail_call ("cuMemcpyHtoDAsync", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  TD_SCOPE ("s")
    assert_true (td_poisoned (td_relu (input (LARGE))));
  assert_contains (far_test_error (TD_ERR_DEVICE), "td_finish and td_init");
  far_test_teardown_engine (state);
  setup (state);
  assert_true (td_item (td_sum (td_ones (TD_F32, TD_SHAPE (3)))) == 3);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, far_test_teardown_engine)
#define by_malloc(f) cmocka_unit_test_setup_teardown (f, setup_malloc, teardown_malloc)
  const struct CMUnitTest tests[] = {
    row (uploads__of_new_arrays_wait_for_no_work),
    row (uploads__are_there_before_kernels_read_them),
    row (uploads__without_their_event_would_be_seen),
    row (blocks__are_pending_till_the_work_that_reads_them_is_done),
    row (inputs__come_to_the_same_addresses_in_every_run),
    row (inputs__are_not_many_ahead_of_the_device),
    row (blocks__taken_too_early_would_be_seen),
    row (memory__that_is_pending_is_waited_for_before_there_is_none),
    row (reads__of_a_number_wait_for_what_made_it_alone),
    row (reads__after_another_write_wait_for_that),
    row (reads__without_their_event_would_be_seen),
    row (fault__of_a_copy_ends_in_one_error_and_a_device_that_begins_anew),
    by_malloc (uploads__are_there_before_kernels_read_them),
    by_malloc (blocks__are_pending_till_the_work_that_reads_them_is_done),
    by_malloc (inputs__are_not_many_ahead_of_the_device),
    by_malloc (memory__that_is_pending_is_waited_for_before_there_is_none),
  };

  return cmocka_run_group_tests_name ("streams", tests, NULL, NULL);
}
