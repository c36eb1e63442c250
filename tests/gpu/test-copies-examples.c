/* The programs that come with us, on cuda:0 of the fake driver: the tape says of all bytes that
 * the driver copied.
 *
 * SPDX-License-Identifier: MIT */
#include "far-tape.h"

#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  long to_device, to_host;
} Bytes;

/* Run a few iterations of an example.  Returns the driver's own count. */
static Bytes
run (const char *name, const char *tape)
{
  char program[200], command[9000], device[4200], report[4200], recording[4200];
  const char *const env[] = { device,
                              report,
                              recording,
                              "TAPEDECK_DEVICE=cuda:0",
                              "TAPEDECK_LEVEL=graph",
                              "TAPEDECK_DEVICE_TIMES=off",
                              "TAPEDECK_ITERATIONS=4",
                              "TAPEDECK_DATA=",
                              NULL };
  const char *said = td_test_tmp ("driver.txt");
  long launches, misused;
  TdTestChild child;
  Bytes bytes;
  char *text;
  size_t n;

  remove (said);
  snprintf (program, sizeof program, "tests/engine/example-%s", name);
  snprintf (command, sizeof command, "cd '%s' && exec '%s'", td_test_tmp ("."),
            td_test_build (program));
  snprintf (device, sizeof device, "TAPEDECK_CUDA_MODULE=%s", FAKE_CUDA_MODULE);
  snprintf (report, sizeof report, "FAKE_CUDA_REPORT=%s", said);
  snprintf (recording, sizeof recording, "TAPEDECK_TAPE=%s", tape);
  child = td_test_run ((const char *const[]){ "sh", "-c", command, NULL }, NULL, env);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  text = td_test_read_file (said, &n);
  if (sscanf (text, "launches %ld misused %ld up %ld down %ld", &launches, &misused,
              &bytes.to_device, &bytes.to_host)
      != 4)
    fail_msg ("the driver said: %s", text);
  assert_true (launches > 0);
  assert_int_equal (misused, 0);
  free (text);
  return bytes;
}

static Bytes
on_tape (const char *path)
{
  TdTapeReader *r = far_tape_open (path);
  const TdTapeSummaries s = td_tape_reader_summaries (r);
  Bytes bytes = { 0, 0 };
  char error[256];

  for (uint32_t i = 0; i < s.n; i++)
    {
      const TdTapeIteration *it
          = td_tape_iteration_load_row (r, &s.rows[i], error, sizeof error);

      if (it == NULL)
        fail_msg ("%s", error);
      for (uint32_t k = 0; k < it->n_copies; k++)
        *(it->copies[k].way == TD_TAPE_COPY_TO_DEVICE ? &bytes.to_device : &bytes.to_host)
            += (long)it->copies[k].bytes;
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (r);
  return bytes;
}

static void
examples__copy_what_the_tape_says (void **state)
{
  static const char *const names[]
      = { "mlp",          "lenet",       "char_lstm",     "dynamic_graph",
          "static_graph", "static_mlp",  "mnist_trainer", "seq2seq",
          "recursive",    "transformer", "gan",           "vae" };
  enum
  {
    ANSWERS = 16 /* bytes: whether a kernel of a library keeps NaN, which is not on the tape */
  };
  long n_bytes = 0;
  int n_wrong = 0;

  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    {
      const char *tape = td_test_tmp ("t.tdtape");
      Bytes driver, told;

      remove (tape);
      driver = run (names[i], tape);
      told = on_tape (tape);
      print_message ("%s: %ld bytes to the device, %ld to the host; on the tape %ld, %ld\n",
                     names[i], driver.to_device, driver.to_host, told.to_device, told.to_host);
      n_wrong += driver.to_device != told.to_device || driver.to_host < told.to_host
                 || driver.to_host > told.to_host + ANSWERS;
      n_bytes += driver.to_device;
    }
  assert_int_equal (n_wrong, 0);
  assert_true (n_bytes > 1000000); /* batches of images */
}

int
main (void)
{
  const struct CMUnitTest tests[] = { td_test (examples__copy_what_the_tape_says) };

  return cmocka_run_group_tests_name ("copies-examples", tests, NULL, NULL);
}
