/* Ranges for NVIDIA's tools: there when a tool is, nested as links and operations are, and next
 * to a recording without a difference to it.
 *
 * SPDX-License-Identifier: MIT */
#include "train.h"

#include "far-cuda.h"
#include "fake-remote.h"
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *self;

/* Two iterations in a process of their own, since NVTX looks for a tool once. */
static int
train (const char *tape)
{
  TrainNet *t;

  if (far_cuda_driver () == NULL)
    return 1;
  if (tape != NULL)
    setenv ("TAPEDECK_TAPE", tape, 1);
  td_init (NULL, NULL);
  t = train_new ("mlp", td_device_get ("cuda:0"));
  train_step (t, false);
  train_step (t, false);
  train_free (t);
  return td_finish ();
}

static char *
ranges_of (const char *setting, bool tool, const char *tape)
{
  const char *out = td_test_tmp ("ranges.txt");
  char injected[1200], nvtx[64], to[1200];
  const char *const argv[] = { self, "--train", tape, NULL };
  const char *env[] = { to, NULL, NULL, NULL };
  int n = 1;
  TdTestChild child;

  remove (out);
  snprintf (to, sizeof to, "NVTX_TOOL_OUT=%s", out);
  snprintf (injected, sizeof injected, "NVTX_INJECTION64_PATH=%s", NVTX_TOOL);
  if (tool)
    env[n++] = injected;
  if (setting != NULL)
    {
      snprintf (nvtx, sizeof nvtx, "TAPEDECK_NVTX=%s", setting);
      env[n++] = nvtx;
    }
  child = td_test_run (argv, NULL, env);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return access (out, R_OK) == 0 ? td_test_read_file (out, NULL) : strdup ("");
}

static void
ranges__are_nested_as_links_and_operations (void **state)
{
  char *text = ranges_of (NULL, true, NULL);
  int depth = 0, deepest = 0;

  assert_memory_equal (text, "domain Tapedeck\n", 16);
  assert_contains (text, "+ 5 mlp/l1 ");    /* a link */
  assert_contains (text, "+ 1 linear ");    /* forward */
  assert_contains (text, "+ 2 relu_grad "); /* backward */
  assert_contains (text, "+ 4 adam ");      /* update */
  for (const char *at = strchr (text, '\n') + 1; *at != '\0'; at = strchr (at, '\n') + 1)
    {
      depth += at[0] == '+' ? 1 : -1;
      deepest = depth > deepest ? depth : deepest;
      assert_true (depth >= 0);
    }
  assert_int_equal (depth, 0);
  assert_true (deepest >= 2);
  free (text);
}

static void
ranges__are_off_unless_somebody_looks (void **state)
{
  char *off = ranges_of ("0", true, NULL), *on = ranges_of ("1", true, NULL);

  assert_string_equal (off, "");
  assert_contains (on, "+ 1 linear ");
  free (off);
  free (on);
  /* Asked for, and no tool there: nothing happens. */
  off = ranges_of ("1", false, NULL);
  assert_string_equal (off, "");
  free (off);
}

static void
ranges__stand_before_a_recording (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  char *text = ranges_of (NULL, true, tape);
  size_t bytes;
  char *recorded = td_test_read_file (tape, &bytes);

  assert_contains (text, "+ 1 linear ");
  assert_true (bytes > 4096);
  free (recorded);
  free (text);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (ranges__are_nested_as_links_and_operations),
    td_test (ranges__are_off_unless_somebody_looks),
    td_test (ranges__stand_before_a_recording),
  };

  if (argc > 1 && strcmp (argv[1], "--train") == 0)
    return train (argc > 2 ? argv[2] : NULL);
  self = argv[0];
  return cmocka_run_group_tests_name ("nvtx", tests, NULL, NULL);
}
