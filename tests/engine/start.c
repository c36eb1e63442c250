/* How tests of the engine start and end it.
 *
 * SPDX-License-Identifier: MIT */
#include "start.h"
#include "compute/core/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls are counted: what is verified is said by the test. */
static int
start (void)
{
  int status = td_init (NULL, NULL) != TD_OK;

  td__engine.static_verify = -1;
  return status;
}

int
fixture_setup (void **state)
{
  int status;

  td_test_setup (state);
  status = start ();
  td_set_seed (1);
  return status;
}

int
train_setup (void **state)
{
  td_test_setup (state);
  unsetenv ("TAPEDECK_DATA");
  return start ();
}

int
fixture_teardown (void **state)
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

static TdMemInfo before;

int
tidy_setup (void **state)
{
  (void)state;
  before = td_mem_info (NULL);
  return 0;
}

int
tidy_teardown (void **state)
{
  const TdMemInfo after = td_mem_info (NULL);

  (void)state;
  return after.live_vars != before.live_vars || after.live_nodes != before.live_nodes
                 || after.live_ops != before.live_ops || after.live_bytes != before.live_bytes
             ? -1
             : 0;
}

int
group_start (void **state)
{
  (void)state;
  return td_init (NULL, NULL) == TD_OK ? 0 : -1;
}

int
group_stop (void **state)
{
  (void)state;
  return td_finish ();
}

void
assert_python_says (const char *script, const char *path, const char *text)
{
  TdTestChild child = TD_TEST_RUN (td_test_python ("numpy"), "-c", script, path);

  assert_child_status (child, 0);
  assert_string_equal (child.out, text);
  td_test_child_clear (&child);
}

const char *
numpys_file (const char *name)
{
  char path[200];

  snprintf (path, sizeof path, "tests/golden/npz/%s", name);
  return td_test_source (path);
}
