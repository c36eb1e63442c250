/* What the tests of training share.
 *
 * SPDX-License-Identifier: MIT */
#include "train-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
train_setup (void **state)
{
  td_test_setup (state);
  unsetenv ("TAPEDECK_DATA");
  return td_init (NULL, NULL) != TD_OK;
}

int
train_teardown (void **state)
{
  int status = 0;

  if (td_error () != NULL)
    {
      print_error ("unexpected: %s\n", td_error ()->message);
      status = 1;
    }
  status |= td_finish ();
  td_test_teardown (state);
  return status;
}

const char *
train_said (TdStatus status)
{
  static char text[1024];

  assert_non_null (td_error ());
  assert_int_equal (td_error ()->status, status);
  snprintf (text, sizeof text, "%s", td_error ()->message);
  assert_null (strchr (text, '\n'));
  td_error_clear ();
  return text;
}
