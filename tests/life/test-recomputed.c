/* A program of real size, recorded with keyframes: what recomputing makes of one is what a
 * second recording of the program at level values has, in every element of every array.
 *
 *     test-recomputed PROGRAM NAME=VALUE...
 *
 * SPDX-License-Identifier: MIT */
#include "td-tape-reader.h"
#include "td-test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MOST_WORDS = 16
};

static const char *program;
static const char *const *sizes; /* to NULL */

static void
record (const char *tape, const char *level, const char *keyframes)
{
  const char *argv[2 * MOST_WORDS] = { td_test_program ("app/tapedeck"),
                                       "run",
                                       "--quiet",
                                       "--static",
                                       "off",
                                       "--values-budget",
                                       "0",
                                       "--level",
                                       level,
                                       "--keyframes",
                                       keyframes,
                                       "-o",
                                       tape,
                                       program };
  int n = 14;
  TdTestChild child;

  for (int i = 0; sizes[i] != NULL; i++)
    argv[n++] = sizes[i];
  child = td_test_run (argv, NULL, NULL);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static TdTapeReader *
open_tape (const char *path)
{
  char error[256];
  TdTapeReader *r = td_tape_reader_open (path, error, sizeof error);

  if (r == NULL)
    fail_msg ("%s", error);
  td_tape_reader_poll (r);
  return r;
}

static void *
elements (TdTapeReader *r, const TdTapeTensorRef *ref)
{
  TdTapeTensorRecord record;
  char *bytes = malloc (ref->bytes + 1);

  assert_non_null (bytes);
  assert_int_equal (td_tape_tensor_read (r, ref, &record, bytes, 0, ref->bytes), ref->bytes);
  return bytes;
}

static const TdTapeTensorRef *
find (const TdTapeIteration *it, const TdTapeTensorRef *wanted)
{
  for (uint32_t k = 0; k < it->n_tensors; k++)
    if (it->tensors[k].var == wanted->var && it->tensors[k].event == wanted->event
        && !(it->tensors[k].flags & TD_TAPE_TENSOR_BEFORE))
      return &it->tensors[k];
  return NULL;
}

/* How many arrays of events both tapes have; each is the same in both. */
static unsigned
compare (const char *recomputed, TdTapeReader *second, uint64_t number)
{
  char error[256];
  TdTapeReader *r = open_tape (recomputed);
  const TdTapeIteration *a = td_tape_iteration_load (r, number, error, sizeof error),
                        *b = td_tape_iteration_load (second, number, error, sizeof error);
  unsigned n = 0;

  assert_non_null (a);
  assert_non_null (b);
  assert_int_equal (a->n_events, b->n_events);
  assert_true (a->fingerprint_dims == b->fingerprint_dims);
  assert_int_equal (td_tape_reader_summaries (r).n, 1);
  assert_true (a->flags & TD_TAPE_ITERATION_RECOMPUTED);
  for (uint32_t k = 0; k < b->n_tensors; k++)
    {
      const TdTapeTensorRef *one = find (a, &b->tensors[k]);
      void *x, *y;

      if (one == NULL) /* an input, which `a` has as such */
        continue;
      assert_int_equal (one->bytes, b->tensors[k].bytes);
      x = elements (r, one);
      y = elements (second, &b->tensors[k]);
      if (memcmp (x, y, one->bytes) != 0)
        fail_msg ("iteration %" PRIu64 ", event %u: v%u differs", number, one->event, one->var);
      free (x);
      free (y);
      n++;
    }
  td_tape_iteration_free (a);
  td_tape_iteration_free (b);
  td_tape_reader_free (r);
  return n;
}

static void
recomputing__gives_the_bits_of_a_second_recording (void **state)
{
  const char *tape = td_test_tmp ("run.tdtape"), *values = td_test_tmp ("values.tdtape"),
             *out = td_test_tmp ("again.tdtape");
  TdTapeReader *first, *second;
  TdTapeSummaries s;
  unsigned n_keyframes = 0, n_arrays = 0, n_stored = 0;

  (void)state;
  record (tape, "graph", "3");
  record (values, "values", "0");
  first = open_tape (tape);
  second = open_tape (values);
  s = td_tape_reader_summaries (first);
  for (uint32_t i = 0; i < s.n && n_keyframes < 3; i++)
    {
      char number[24];
      TdTestChild child;

      if (!(s.rows[i].flags & TD_TAPE_ITERATION_KEYFRAME))
        continue;
      snprintf (number, sizeof number, "%" PRIu64, s.rows[i].number);
      child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "recompute", tape, "--iteration",
                           number, "-f", "-o", out);
      assert_child_status (child, 0);
      assert_contains (child.out, "all equal");
      td_test_child_clear (&child);
      n_keyframes++;
      n_arrays += compare (out, second, s.rows[i].number);
      n_stored += s.rows[i].n_events;
    }
  print_message ("%u keyframes of %u iterations, %u events: %u arrays equal, bit for bit\n",
                 n_keyframes, s.n, n_stored, n_arrays);
  assert_true (n_keyframes > 0);
  assert_true (n_arrays >= n_stored / 2); /* updates and views of large arrays have fewer */
  td_tape_reader_free (first);
  td_tape_reader_free (second);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (recomputing__gives_the_bits_of_a_second_recording),
  };
  char path[256];

  if (argc < 2 || argc > MOST_WORDS)
    return 2;
  snprintf (path, sizeof path, "tests/life/%s", argv[1]);
  program = strdup (td_test_build (path));
  sizes = (const char *const *)&argv[2];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
