/* How many devices there can be: the last one works like the first, one more is refused.
 * SPDX-License-Identifier: MIT */
#include "compute/core/core.h"

#include "td-test.h"

#include <stdio.h>

static TdDevice more[TD_MAX_DEVICES];

static void
devices__are_refused_beyond_the_limit_by_name (void **state)
{
  const TdDevice *host;
  int n = 0;

  (void)state;
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  host = td_device_get ("cpu");
  while (td__device_at (n) != NULL)
    n++;
  assert_true (n >= 2); /* the host and null */
  for (int i = n; i < TD_MAX_DEVICES; i++)
    {
      TdDevice *d = &more[i];

      *d = (TdDevice){ .ops = host->ops, .computes = true };
      snprintf (d->name, sizeof d->name, "m:%d", i);
      assert_int_equal (td__device_register (d), TD_OK);
      assert_int_equal (d->number, i);
      assert_ptr_equal (td_device_get (d->name), d);
    }
  more[0] = (TdDevice){ .name = "one-more", .ops = host->ops, .computes = true };
  assert_int_equal (td__device_register (&more[0]), TD_ERR_DEVICE);
  assert_contains (td_error ()->message, "no room for more than 16 devices");
  td_error_clear ();
  assert_int_equal (td_finish (), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (devices__are_refused_beyond_the_limit_by_name),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
