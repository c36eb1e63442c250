/* What a driver refuses while launches are captured: memory that comes and goes, events that
 * are asked for, code that is loaded.  Nothing of that may end the capture, nor be done too
 * early.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "far-test.h"
#include "fake-remote.h"
#include "td-test.h"

#include <stdlib.h>
#include <string.h>

#include <cuda.h>

enum
{
  N = 1 << 10
};

static TdShape shape = { 1, { N } };

static TdTensor
tensor (TdDtype dtype)
{
  return (TdTensor){ far_memory, &shape, N, dtype };
}

/* Work that is not done before somebody waits. */
static void
issue_work (void)
{
  TdTensor y = tensor (TD_F32);

  assert_int_equal (far_device->ops->fill (far_device, &y, 3), TD_OK);
  assert_true (far_driver->state->n_pending > 0);
}

static void
begin_capture (void)
{
  assert_null (far_device->ops->graphs->begin (far_device, NULL));
  far_device->ops->graphs->step (far_device, 0);
}

static const char *
abandon_capture (void)
{
  const char *why = NULL;

  far_device->ops->graphs->abandon (far_device, &why);
  return why;
}

/* Kernels and libraries are looked for when they are wanted first, and that may be now. */
static void
capture__loads_what_it_needs (void **state)
{
  TdTensor y = tensor (TD_I64), m = tensor (TD_F32);
  TdGemm product = { .m = 4, .n = 4, .k = 4, .batch = 1, .alpha = 1 };

  begin_capture ();
  assert_int_equal (far_device->ops->arange (far_device, &y, 0, 1), TD_OK);
  assert_int_equal (far_device->ops->gemm (far_device, &product, &m, &m, &m), TD_OK);
  assert_int_equal (far_driver->state->n_products, 1);
  assert_null (abandon_capture ());
}

static void
capture__gives_memory_back_behind_the_work_that_uses_it (void **state)
{
  void *more;

  issue_work ();
  begin_capture ();
  more = far_device->ops->provider->segment_new (far_device->priv, FAR_MEMORY_BYTES);
  assert_non_null (more);
  far_device->ops->provider->segment_free (far_device->priv, far_memory, FAR_MEMORY_BYTES);
  far_memory = more;
  assert_null (abandon_capture ());
}

static void
assert_fences_hold (const char *why)
{
  const TdSegmentProvider *p = far_device->ops->provider;
  void *fence, *other;
  long waits = far_driver->state->n_waits;
  const char *said;

  fence = p->fence_new (far_device->priv);
  other = p->fence_new (far_device->priv);
  assert_non_null (fence);
  assert_non_null (other);
  assert_false (p->fence_passed (far_device->priv, fence));
  p->fence_wait (far_device->priv, fence);
  assert_true (far_driver->state->n_waits > waits);
  p->fence_wait (far_device->priv, other);
  said = abandon_capture ();
  assert_true (why == NULL ? said == NULL : strcmp (said, why) == 0);
  assert_null (td_error ());
}

static void
fences__of_a_capture_stand_for_what_was_issued_before (void **state)
{
  issue_work ();
  begin_capture ();
  assert_fences_hold (NULL);
}

/* A capture that can be no graph is not a device that is lost: work goes on. */
static void
fences__stand_for_it_where_nothing_more_is_captured (void **state)
{
  issue_work ();
  begin_capture ();
  far_device->ops->synchronize (far_device);
  assert_fences_hold ("waits for the device");
}

static void
statistics__are_answered_during_a_capture (void **state)
{
  const TdTensor x = tensor (TD_F32);
  const TdAsyncOf of = { .event = 7 };
  TdAsyncResult late[4];

  issue_work ();
  assert_int_equal (far_device->ops->stats_async (far_device, &x, 0, 0, &of), TD_ASYNC_TAKEN);
  assert_int_equal (far_device->ops->poll_async (far_device, TD_ASYNC_SEND, late, 4), 0);
  begin_capture ();
  far_device->ops->synchronize (far_device);
  assert_int_equal (far_device->ops->poll_async (far_device, TD_ASYNC_LOOK, late, 4), 0);
  assert_int_equal (far_device->ops->poll_async (far_device, TD_ASYNC_WAIT, late, 4), 1);
  assert_int_equal (late[0].status, TD_OK);
  assert_int_equal (late[0].of.event, 7);
  assert_true (late[0].stats.mean == 3);
  assert_non_null (abandon_capture ());
}

int
main (void)
{
#define row(f)                                                                                 \
  cmocka_unit_test_setup_teardown (f, far_test_setup_memory, far_test_teardown_memory)
  const struct CMUnitTest tests[] = {
    row (capture__loads_what_it_needs),
    row (capture__gives_memory_back_behind_the_work_that_uses_it),
    row (fences__of_a_capture_stand_for_what_was_issued_before),
    row (fences__stand_for_it_where_nothing_more_is_captured),
    row (statistics__are_answered_during_a_capture),
  };

  return cmocka_run_group_tests_name ("capture", tests, NULL, NULL);
}
