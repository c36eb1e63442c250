/* Memory that runs out in a program: what its tape says of it is the same on every device, by a
 * limit and in earnest; what would help according to it does help; and the program goes on.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT "--mem-limit 12000000"
#define LARGE 8000

static const char *const devices[] = {
  "cpu",
  "null",
#ifdef FAKE_CUDA_MODULE
  "cuda:0",
#endif
};

enum
{
  N_DEVICES = sizeof devices / sizeof *devices
};

/* Record the model.  *Owner*: td_test_child_clear. */
static TdTestChild
record (const char *device, const char *options, int batch, const char *more)
{
  char command[9000];
  const char *module = "";

#ifdef FAKE_CUDA_MODULE
  module = FAKE_CUDA_MODULE;
#endif
  snprintf (command, sizeof command,
            "TAPEDECK_CUDA_MODULE='%s' '%s' run --quiet --device %s -f -o '%s' %s '%s' %d %s",
            module, td_test_program ("app/tapedeck"), device, td_test_tmp ("a.tdtape"), options,
            td_test_build ("tests/app/model-grows"), batch, more);
  return TD_TEST_RUN ("sh", "-c", command);
}

/* *Owner*: the caller. */
static char *
tape_says (const char *command, const char *option)
{
  TdTestChild child = option != NULL ? TD_TEST_RUN (td_test_program ("app/tapedeck"), command,
                                                    td_test_tmp ("a.tdtape"), "--oom", option)
                                     : TD_TEST_RUN (td_test_program ("app/tapedeck"), command,
                                                    td_test_tmp ("a.tdtape"));
  char *text = strdup (child.out);

  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return text;
}

/* What the tape of a run says in its report, if memory runs out once.  *Owner*: the caller. */
static char *
report (const char *device, const char *options, int batch, const char *more, const char *form)
{
  TdTestChild child = record (device, options, batch, more);

  assert_child_status (child, 0);
  assert_string_equal (child.out, "4: memory\n");
  td_test_child_clear (&child);
  return tape_says ("info", form);
}

static void
cut (char *from, const char *to)
{
  const char *rest = strstr (from, to);

  assert_non_null (rest);
  memmove (from, rest, strlen (rest) + 1);
}

/* Without what differs: the name of the device, how it keeps what is free, how fast it is. */
static void
leave_common (char *text, const char *device)
{
  char on[32], *at;

  snprintf (on, sizeof on, " on %s;", device);
  at = strstr (text, on);
  assert_non_null (at);
  cut (at + 4, ";");
  at = strstr (text, "  memory        limit 12.0 MB, ");
  assert_non_null (at);
  cut (at + 29, "\n");
  for (at = text; (at = strstr (at, "less, for ")) != NULL; at += 10)
    cut (at + 10, " ms");
}

static void
oom__report_is_the_same_on_each_device (void **state)
{
  char *texts[N_DEVICES];

  (void)state;
  for (int i = 0; i < N_DEVICES; i++)
    {
      texts[i] = report (devices[i], LIMIT, LARGE, "keep", "--oom");
      leave_common (texts[i], devices[i]);
      if (i > 0)
        assert_string_equal (texts[0], texts[i]);
    }
  assert_contains (texts[0], "out of memory in iteration 4, event 1: forward relu at ");
  assert_contains (texts[0], "grows.c:22 wanted 8.19 MB");
  assert_contains (texts[0], "  asked         8.19 MB (8000, 256) float32: ");
  assert_contains (texts[0], "limit 12.0 MB");
  assert_contains (texts[0], "  tried         nothing: the limit counts what is live");
  assert_contains (texts[0], " 8.19 MB  activation net/l1 (8000, 256) float32, of linear, made "
                             "at ");
  assert_contains (texts[0], " optimizer (256, 256) float32 and 11 more");
  assert_contains (texts[0], " gradient net/l2/W (256, 256) float32, made at ");
  assert_contains (texts[0], " parameter net/l2/W (256, 256) float32, made at ");
  assert_contains (texts[0], " in iteration 0 and later, kept by user handle at ");
  assert_contains (texts[0], "              by way of user handle (");
  assert_contains (texts[0], "grows.c:22) -> linear (");
  assert_contains (texts[0], "              by way of link attribute net/l2/W (");
  assert_contains (texts[0], "grows.c:41) -> its gradient\n");
  for (int i = 0; i < N_DEVICES; i++)
    free (texts[i]);
}

/* All up to the operation that failed is there, that operation too, and what came after. */
static void
oom__leaves_a_whole_tape_of_a_program_that_goes_on (void **state)
{
  for (int i = 0; i < N_DEVICES; i++)
    {
      char *text = report (devices[i], LIMIT, LARGE, "", "--json"), *failed;

      assert_contains (text, "{\"out_of_memory\":[{\"iteration\":4,\"event\":1,\"device\":\"");
      assert_contains (text, "\"shape\":[8000,256],\"dtype\":\"float32\",\"asked_bytes\":"
                             "8192000,\"limit_bytes\":12000000,");
      assert_contains (text, "\"tried\":{\"limited\":true,\"freed_bytes\":0,");
      assert_contains (text,
                       "\"chain\":[{\"kind\":\"handle\",\"name\":\"W\",\"link\":\"net/l2\","
                       "\"op\":\"\",\"holder\":\"link attribute\",\"site\":\"");
      assert_contains (text, "},{\"kind\":\"gradient\",");
      assert_null (strstr (text, "},{\"iteration\":5"));
      free (text);
      text = tape_says ("check", NULL);
      assert_contains (text, ": whole, ");
      free (text);
      text = tape_says ("info", NULL);
      assert_contains (text, "\niterations       6\n");
      assert_contains (text, "\nout of memory    iteration 4, event 1: forward relu at ");
      free (text);
      text = tape_says ("cat", NULL);
      failed = strstr (text, "FAILED");
      assert_non_null (failed);
      assert_contains (failed, "\niteration 5 '5' ");
      assert_contains (failed, " update adam ");
      assert_null (strstr (failed + 1, "FAILED"));
      assert_contains (failed, "  out of memory iteration 4, event 1: ");
      free (text);
    }
}

static long
figure (const char *text, const char *key)
{
  const char *at = strstr (text, key);

  assert_non_null (at);
  return strtol (at + strlen (key), NULL, 10);
}

/* The batch that it names fits, a tenth more does not. */
static void
oom__batch_that_would_fit_does_fit (void **state)
{
  for (int i = 0; i < N_DEVICES; i++)
    {
      char *text = report (devices[i], LIMIT, LARGE, "", "--json");
      const long batch = figure (text, "\"batch\":");
      TdTestChild child;

      assert_int_equal (figure (text, "\"before\":"), LARGE);
      assert_contains (text, "\"whole\":true");
      assert_contains (text, " fits to the end, going as iteration 3 did: ");
      free (text);
      child = record (devices[i], LIMIT, (int)batch, "");
      assert_child_status (child, 0);
      assert_string_equal (child.out, "");
      td_test_child_clear (&child);
      text = tape_says ("info", "--oom");
      assert_string_equal (text, "memory did not run out\n");
      free (text);
      text = report (devices[i], LIMIT, (int)(batch + batch / 10), "", "--json");
      assert_true (figure (text, "\"batch\":") <= batch);
      free (text);
    }
}

#ifdef FAKE_CUDA_MODULE
/* The same who-holds of a device that has no more, and what was tried. */
static void
oom__in_earnest_names_the_same_holders (void **state)
{
  char *limited = report ("cuda:0", LIMIT, LARGE, "keep", "--oom"), *real, *a, *b;

  setenv ("FAKE_CUDA", "megabytes=22", 1);
  real = report ("cuda:0", "", LARGE, "keep", "--oom");
  unsetenv ("FAKE_CUDA");
  a = strstr (limited, "  held by ");
  b = strstr (real, "  held by ");
  assert_non_null (a);
  assert_non_null (b);
  strstr (a, "  would help")[0] = '\0';
  strstr (b, "  would help")[0] = '\0';
  assert_string_equal (a, b);
  assert_contains (real, ": forward relu at ");
  assert_contains (real, "  tried         ");
  assert_contains (real, "asked the device for ");
  assert_contains (real, ", which it refused\n");
  free (limited);
  free (real);
}
#endif

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (oom__report_is_the_same_on_each_device),
    cmocka_unit_test (oom__leaves_a_whole_tape_of_a_program_that_goes_on),
    cmocka_unit_test (oom__batch_that_would_fit_does_fit),
#ifdef FAKE_CUDA_MODULE
    cmocka_unit_test (oom__in_earnest_names_the_same_holders),
#endif
  };

  return cmocka_run_group_tests_name ("oom", tests, td_test_setup, td_test_teardown);
}
