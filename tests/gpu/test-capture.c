/* What a driver refuses while launches are captured: memory that comes and goes, events that
 * are asked for, code that is loaded.  Nothing of that may end the capture, nor be done too
 * early.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "core/core.h"
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
#define SEGMENT_BYTES ((size_t)2 << 20)

static const FakeCudaControl *driver;
static TdDevice *cuda;
static void *memory; /* a segment */
static TdShape shape = { 1, { N } };

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  if (far_test_setup_engine (state) != 0)
    return -1;
  cuda = td_device_get ("cuda:0");
  memory = cuda->ops->provider->segment_new (cuda->priv, SEGMENT_BYTES);
  assert_non_null (memory);
  return 0;
}

static int
teardown (void **state)
{
  if (memory != NULL)
    cuda->ops->provider->segment_free (cuda->priv, memory, SEGMENT_BYTES);
  memory = NULL;
  return far_test_teardown_engine (state);
}

static TdTensor
tensor (TdDtype dtype)
{
  return (TdTensor){ memory, &shape, N, dtype };
}

/* Work that is not done before somebody waits. */
static void
issue_work (void)
{
  TdTensor y = tensor (TD_F32);

  assert_int_equal (cuda->ops->fill (cuda, &y, 3), TD_OK);
  assert_true (driver->state->n_pending > 0);
}

static void
begin_capture (void)
{
  assert_null (cuda->ops->graphs->begin (cuda, NULL));
  cuda->ops->graphs->step (cuda, 0);
}

static const char *
abandon_capture (void)
{
  const char *why = NULL;

  cuda->ops->graphs->abandon (cuda, &why);
  return why;
}

/* Kernels and libraries are looked for when they are wanted first, and that may be now. */
static void
capture__loads_what_it_needs (void **state)
{
  TdTensor y = tensor (TD_I64), m = tensor (TD_F32);
  TdGemm product = { .m = 4, .n = 4, .k = 4, .batch = 1, .alpha = 1 };

  begin_capture ();
  assert_int_equal (cuda->ops->arange (cuda, &y, 0, 1), TD_OK);
  assert_int_equal (cuda->ops->gemm (cuda, &product, &m, &m, &m), TD_OK);
  assert_int_equal (driver->state->n_products, 1);
  assert_null (abandon_capture ());
}

static void
capture__gives_memory_back_behind_the_work_that_uses_it (void **state)
{
  void *more;

  issue_work ();
  begin_capture ();
  more = cuda->ops->provider->segment_new (cuda->priv, SEGMENT_BYTES);
  assert_non_null (more);
  cuda->ops->provider->segment_free (cuda->priv, memory, SEGMENT_BYTES);
  memory = more;
  assert_null (abandon_capture ());
}

static void
assert_fences_hold (const char *why)
{
  const TdSegmentProvider *p = cuda->ops->provider;
  void *fence, *other;
  long waits = driver->state->n_waits;
  const char *said;

  fence = p->fence_new (cuda->priv);
  other = p->fence_new (cuda->priv);
  assert_non_null (fence);
  assert_non_null (other);
  assert_false (p->fence_passed (cuda->priv, fence));
  p->fence_wait (cuda->priv, fence);
  assert_true (driver->state->n_waits > waits);
  p->fence_wait (cuda->priv, other);
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
  cuda->ops->synchronize (cuda);
  assert_fences_hold ("waits for the device");
}

static void
statistics__are_answered_during_a_capture (void **state)
{
  const TdTensor x = tensor (TD_F32);
  const TdLateOf of = { .event = 7 };
  TdLate late[4];

  issue_work ();
  assert_int_equal (cuda->ops->stats_later (cuda, &x, 0, 0, &of), TD_LATE_TAKEN);
  assert_int_equal (cuda->ops->late (cuda, TD_LATE_SEND, late, 4), 0);
  begin_capture ();
  cuda->ops->synchronize (cuda);
  assert_int_equal (cuda->ops->late (cuda, TD_LATE_LOOK, late, 4), 0);
  assert_int_equal (cuda->ops->late (cuda, TD_LATE_WAIT, late, 4), 1);
  assert_int_equal (late[0].status, TD_OK);
  assert_int_equal (late[0].of.event, 7);
  assert_true (late[0].stats.mean == 3);
  assert_non_null (abandon_capture ());
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (capture__loads_what_it_needs, setup, teardown),
    cmocka_unit_test_setup_teardown (capture__gives_memory_back_behind_the_work_that_uses_it,
                                     setup, teardown),
    cmocka_unit_test_setup_teardown (fences__of_a_capture_stand_for_what_was_issued_before,
                                     setup, teardown),
    cmocka_unit_test_setup_teardown (fences__stand_for_it_where_nothing_more_is_captured, setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (statistics__are_answered_during_a_capture, setup,
                                     teardown),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
