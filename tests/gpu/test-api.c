/* The table of the driver's functions against the toolkit's stub of the driver, which has every
 * name and does nothing: a name that is wrong shows here, and how the module says that.
 *
 * SPDX-License-Identifier: MIT */
#include "api.h"
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *self;

static TdTestChild
open_with (const char *library)
{
  const char *link = td_test_tmp ("libcuda.so.1");
  char folder[4096];
  TdTestChild child;

  assert_int_equal (symlink (library, link), 0);
  snprintf (folder, sizeof folder, "%s", link);
  *strrchr (folder, '/') = '\0';
  setenv ("LD_LIBRARY_PATH", folder, 1);
  child = TD_TEST_RUN (self, "--open");
  unsetenv ("LD_LIBRARY_PATH");
  return child;
}

static void
api__finds_every_function_in_the_toolkits_stub (void **state)
{
  TdTestChild child;

  if (access (CUDA_STUB, R_OK) != 0)
    skip ();
  child = open_with (CUDA_STUB);
  assert_string_equal (child.out, "open\n");
  td_test_child_clear (&child);
}

/* Some other library under that name. */
static void
api__names_the_function_that_is_missing (void **state)
{
  TdTestChild child = open_with (WRONG_MODULE);

  assert_string_equal (child.out, "the driver is too old: it has no cuInit\n");
  td_test_child_clear (&child);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (api__finds_every_function_in_the_toolkits_stub),
    td_test (api__names_the_function_that_is_missing),
  };

  if (argc > 1 && strcmp (argv[1], "--open") == 0)
    {
      const char *why = td_cuda_api_open ();

      return puts (why != NULL ? why : "open") < 0;
    }
  self = argv[0];
  return cmocka_run_group_tests_name ("api", tests, NULL, NULL);
}
