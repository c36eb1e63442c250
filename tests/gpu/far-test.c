/* The set-up and teardown that the tests of cuda:0 share, and their look at the engine's error.
 *
 * SPDX-License-Identifier: MIT */
#include "far-test.h"

#include <stdio.h>
#include <string.h>

#include "td-test.h"

int
far_test_setup (void **state)
{
  const FakeCudaControl *driver = far_cuda_driver ();

  td_test_setup (state);
  if (driver == NULL)
    return -1;
  driver->reset ();
  return 0;
}

int
far_test_teardown (void **state)
{
  const FakeCudaControl *driver = far_cuda_driver ();

  td_error_clear ();
  if (driver->state->n_violations > 0)
    fail_msg ("the driver was misused: %s", driver->state->violation);
  td_test_teardown (state);
  return 0;
}

int
far_test_setup_engine (void **state)
{
  return far_test_setup (state) == 0 ? (int)td_init (NULL, NULL) : -1;
}

int
far_test_teardown_engine (void **state)
{
  int status;

  td_error_clear ();
  status = td_finish ();
  assert_int_equal (far_cuda_driver ()->state->used_bytes, 0);
  far_test_teardown (state);
  return status;
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
