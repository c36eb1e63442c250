/* The set-up and teardown that the tests of cuda:0 share, and their look at the engine's error.
 *
 * SPDX-License-Identifier: MIT */
#include "far-test.h"

#include <stdio.h>
#include <string.h>

#include "device.h"
#include "td-test.h"

const FakeCudaControl *far_driver;
TdDevice *far_device;
char *far_memory;

int
far_test_setup (void **state)
{
  td_test_setup (state);
  far_driver = far_cuda_driver ();
  if (far_driver == NULL)
    return -1;
  far_driver->reset ();
  return 0;
}

int
far_test_teardown (void **state)
{
  td_error_clear ();
  if (far_driver->state->n_violations > 0)
    fail_msg ("the driver was misused: %s", far_driver->state->violation);
  td_test_teardown (state);
  return 0;
}

int
far_test_setup_engine (void **state)
{
  if (far_test_setup (state) != 0 || td_init (NULL, NULL) != TD_OK)
    return -1;
  far_device = td_device_get ("cuda:0");
  return far_device != NULL ? 0 : -1;
}

int
far_test_teardown_engine (void **state)
{
  int status;

  td_error_clear ();
  status = td_finish ();
  assert_int_equal (far_driver->state->used_bytes, 0);
  far_test_teardown (state);
  return status;
}

int
far_test_setup_memory (void **state)
{
  if (far_test_setup_engine (state) != 0)
    return -1;
  far_memory = far_device->ops->provider->segment_new (far_device->priv, FAR_MEMORY_BYTES);
  return far_memory != NULL ? 0 : -1;
}

int
far_test_teardown_memory (void **state)
{
  far_device->ops->provider->segment_free (far_device->priv, far_memory, FAR_MEMORY_BYTES);
  return far_test_teardown_engine (state);
}

const char *
far_test_error (TdStatus status)
{
  static char text[1024];

  assert_non_null (td_error ());
  snprintf (text, sizeof text, "%s", td_error ()->message);
  if (td_error ()->status != status)
    fail_msg ("%s", text);
  assert_null (strchr (text, '\n'));
  td_error_clear ();
  return text;
}
