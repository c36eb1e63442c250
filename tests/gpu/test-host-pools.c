/* The host's pools on a tape, beside those of a device, and what the device has pinned of the
 * host.
 *
 * SPDX-License-Identifier: MIT */
#include "compute/core/core.h"
#include "far-test.h"
#include "far-tape.h"
#include "td-test.h"

#include <stdlib.h>

/* The host's pools are what the host says, and what the device has pinned is what the driver
 * gave. */
static void
pools__of_the_host_are_beside_the_devices (void **state)
{
  const char *path = td_test_tmp ("t.tdtape");
  TdDevice *cuda, *cpu;
  uint64_t reserved = 0;
  char error[256];
  size_t expected, pinned;
  TdTapeReader *r;
  const TdTapeIteration *it;
  const TdTapePool *p;
  TdVar *x;

  (void)state;
  setenv ("TAPEDECK_TAPE", path, 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  cuda = td_device_get ("cuda:0");
  cpu = td_device_get ("cpu");
  x = td_retain (td_ones (TD_F32, TD_SHAPE (100000)));
  TD_ITERATION (0)
    td_relu (td_to_device (x, cuda));
  expected = td_mem_info (cpu).reserved_bytes;
  pinned = cuda->ops->pinned_bytes (cuda);
  assert_true (pinned >= (size_t)4 << 20); /* what uploads go through */
  td_release (x);
  assert_int_equal (td_finish (), 0);
  r = far_tape_open (path);
  /* the iteration of before the loop has number 0 */
  it = td_tape_iteration_load (r, td_tape_reader_summaries (r).n - 1, error, sizeof error);
  assert_non_null (it);
  assert_int_equal (it->pools[0].device, 0);
  p = far_tape_pool (it, 0, TD_TAPE_POOL_DEFAULT);
  assert_non_null (p);
  assert_true (p->live_bytes >= 400000 && p->live_bytes <= p->reserved_bytes);
  p = far_tape_pool (it, 0, TD_TAPE_POOL_PINNED);
  assert_non_null (p);
  assert_int_equal (p->reserved_bytes, pinned);
  for (uint32_t i = 0; i < it->n_pools; i++)
    if (it->pools[i].device == 0 && it->pools[i].kind != TD_TAPE_POOL_PINNED)
      reserved += it->pools[i].reserved_bytes;
  assert_int_equal (reserved, expected);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, far_test_setup, far_test_teardown)
  const struct CMUnitTest tests[] = {
    row (pools__of_the_host_are_beside_the_devices),
  };

  return cmocka_run_group_tests_name ("pools of the host", tests, NULL, NULL);
}
