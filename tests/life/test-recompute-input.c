/* What `tapedeck recompute` does with what it cannot run again: it says why in one line, and
 * leaves no half tape.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include "td-tape-reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *
tapedeck (void)
{
  return td_test_program ("app/tapedeck");
}

/* A recording of three iterations. */
static const char *
record (const char *options, const char *model)
{
  const char *tape = td_test_tmp ("run.tdtape");
  TdTestChild child = td_test_shell ("%s run --quiet -f -o %s %s %s/tests/life/%s", tapedeck (),
                                     tape, options, td_test_build (""), model);

  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return tape;
}

static const char *
small (const char *options)
{
  return record (options, "l09-dqn iterations=3");
}

static const char *
out (void)
{
  return td_test_tmp ("out.tdtape");
}

/* It ends so, says that, and the folder has no new file. */
static void
check_refused (const char *arguments, int status, const char *says)
{
  TdTestChild child = td_test_shell ("%s recompute %s", tapedeck (), arguments);

  assert_child_status (child, status);
  assert_contains (child.err, says);
  td_test_child_clear (&child);
  child = td_test_shell ("ls %s | grep -c '^out' || true", td_test_tmp ("."));
  assert_string_equal (child.out, "0\n");
  td_test_child_clear (&child);
}

#define FORMAT(...) (snprintf (line, sizeof line, __VA_ARGS__), line)

static void
what_is_no_keyframe__is_refused_with_the_way_to_have_one (void **state)
{
  char line[4096];

  (void)state;
  check_refused (FORMAT ("%s --iteration 1 -o %s", small (""), out ()), 1,
                 "the tape has none: record with --keyframes N");
  check_refused (FORMAT ("%s --iteration 1 -o %s", small ("--keyframes 2"), out ()), 1,
                 "iteration 1 is no keyframe; these are: 0, 2");
  check_refused (FORMAT ("%s --iteration 7 -o %s", small ("--keyframes 2"), out ()), 1,
                 "no iteration 7");
}

static void
inputs_that_found_no_room__are_named (void **state)
{
  char line[4096];

  (void)state;
  check_refused (FORMAT ("%s --iteration 0 -o %s",
                         record ("--keyframes 1 --values-budget 256K", "l03-gpt iterations=3"),
                         out ()),
                 1, "is not on the tape: the budget of values had no room for it");
}

static void
steps_of_static_schedules__are_named (void **state)
{
  char line[4096];

  (void)state;
  check_refused (
      FORMAT ("%s --iteration 4 -o %s",
              record ("--keyframes 1 --static as-is", "l09-dqn iterations=5 static=1"), out ()),
      1, "ran from a static schedule");
}

static void
wrong_usage__is_said (void **state)
{
  char line[4096];
  const char *tape = small ("--keyframes 1");

  (void)state;
  check_refused (FORMAT ("%s -o %s", tape, out ()), 2, "--iteration N expected");
  check_refused (FORMAT ("%s --iteration x -o %s", tape, out ()), 2, "--iteration");
  check_refused (FORMAT ("%s --iteration 0", tape), 2, "-o OUT expected");
  check_refused (FORMAT ("%s --iteration 0 -o -", tape), 2, "a tape goes to a file");
  check_refused (FORMAT ("%s --iteration 0 -f -o %s", tape, tape), 2, "is not written over");
  check_refused (FORMAT ("%s --iteration 0 -o %s/none/out.tdtape", tape, td_test_tmp (".")), 2,
                 "No such file");
  check_refused (FORMAT ("/dev/null --iteration 0 -o %s", out ()), 2, "/dev/null");
}

static void
an_older_tape__is_kept_without_force (void **state)
{
  const char *tape = small ("--keyframes 1"), *older = td_test_tmp ("older.tdtape");
  char line[4096];
  TdTestChild child;

  (void)state;
  td_test_write_file (older, "mine", 4);
  check_refused (FORMAT ("%s --iteration 0 -o %s", tape, older), 2, "File exists");
  check_refused (FORMAT ("%s --iteration 0 -f -o %s", tape, older), 2, "it is no tape");
  child = td_test_shell ("cat %s", older);
  assert_string_equal (child.out, "mine");
  td_test_child_clear (&child);
}

static void
a_full_disk__leaves_nothing (void **state)
{
  const char *tape
      = record ("--keyframes 1", "l12-many-operations iterations=1 operations=500");
  TdTestChild child = td_test_shell ("ulimit -f 64; %s recompute %s --iteration 0 -o %s; s=$?; "
                                     "ls %s | grep '^out'; exit $s",
                                     tapedeck (), tape, out (), td_test_tmp ("."));

  (void)state;
  assert_child_status (child, 2);
  assert_string_equal (child.out, "");
  assert_contains (child.err, "out.tdtape: ");
  td_test_child_clear (&child);
}

/* More lines of progress than a pipe holds: it waits for its reader. */
static TdTestChild
stopped_by (const char *signal)
{
  const char *tape
      = record ("--keyframes 1", "l12-many-operations iterations=1 operations=5000");

  return td_test_shell (
      "cd %s && mkfifo said && { %s recompute %s --iteration 0 --progress -o %s > said & } && "
      "exec 3< said && read line <&3 && kill -%s $! && { cat <&3 > lines; wait $!; s=$?; "
      "ls | grep '^out.tdtape$'; ls | grep -c part; exit $s; }",
      td_test_tmp ("."), tapedeck (), tape, out (), signal);
}

static void
cancelling__leaves_nothing (void **state)
{
  TdTestChild child = stopped_by ("INT");

  (void)state;
  assert_child_status (child, 128 + 2);
  assert_contains (child.err, "cancelled; nothing was written");
  assert_string_equal (child.out, "0\n");
  td_test_child_clear (&child);
}

static void
being_killed__leaves_no_tape_of_that_name (void **state)
{
  TdTestChild child = stopped_by ("KILL");

  (void)state;
  assert_child_status (child, 128 + 9);
  assert_string_equal (child.out, "1\n"); /* what it had begun, under another name */
  td_test_child_clear (&child);
}

/* Whatever byte is wrong: it ends by itself, and what it leaves is whole. */
static void
damage__is_found (void **state)
{
  const char *tape = small ("--keyframes 1"), *bad = td_test_tmp ("bad.tdtape");
  size_t n;
  char *bytes = td_test_read_file (tape, &n);
  int n_refused = 0;

  (void)state;
  for (size_t at = 0; at < n; at += n / 60 + 1)
    {
      TdTestChild child;

      bytes[at] = (char)(bytes[at] ^ 0x55);
      td_test_write_file (bad, bytes, n);
      bytes[at] = (char)(bytes[at] ^ 0x55);
      child
          = TD_TEST_RUN (tapedeck (), "recompute", bad, "--iteration", "2", "-f", "-o", out ());
      if (child.signal != 0 || child.status > 2)
        fail_msg ("byte %zu: status %d, %s", at, child.status, child.err);
      n_refused += child.status != 0;
      td_test_child_clear (&child);
      if (access (out (), F_OK) == 0)
        {
          child = TD_TEST_RUN (tapedeck (), "check", out ());
          assert_child_status (child, 0);
          td_test_child_clear (&child);
        }
      unlink (out ());
    }
  free (bytes);
  assert_true (n_refused > 0);
}

/* Flip a bit of a tape. */
static void
damage (const char *tape, uint64_t offset)
{
  size_t n;
  char *bytes = td_test_read_file (tape, &n);

  assert_true (offset < n);
  bytes[offset] ^= 4;
  td_test_write_file (tape, bytes, n);
  free (bytes);
}

/* An element of what it reads: an arithmetic that differs is not to blame for that. */
static void
a_damaged_input__is_called_damage_and_where (void **state)
{
  const char *tape = small ("--keyframes 2");
  char line[4096], at[80];
  TdTapeReader *r = td_tape_reader_open (tape, line, sizeof line);
  const TdTapeIteration *it = td_tape_iteration_load (r, 0, line, sizeof line);
  uint64_t offset;

  (void)state;
  assert_non_null (it);
  assert_true (it->n_tensors > 0);
  offset = it->tensors[0].offset;
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
  damage (tape, offset + sizeof (TdTapeFrame) + sizeof (TdTapeTensorRecord) + 2);
  snprintf (at, sizeof at, "the tape is damaged at offset %llu: ", (unsigned long long)offset);
  check_refused (FORMAT ("%s --iteration 0 -o %s", tape, out ()), 1, at);
}

static void
a_damaged_record__is_called_damage_and_where (void **state)
{
  const char *tape = small ("--keyframes 2");
  char line[4096], at[120];
  TdTapeReader *r = td_tape_reader_open (tape, line, sizeof line);
  const uint64_t offset = td_tape_reader_summaries (r).rows[2].offset;

  (void)state;
  td_tape_reader_free (r);
  damage (tape, offset + 60);
  snprintf (at, sizeof at, "iteration 2 ran, and is lost: its record at offset %llu is damaged",
            (unsigned long long)offset);
  check_refused (FORMAT ("%s --iteration 2 -o %s", tape, out ()), 1, at);
}

/* Cut before its first iteration. */
static void
a_cut_tape__is_called_one (void **state)
{
  const char *tape = small ("--keyframes 2");
  char line[4096];

  (void)state;
  assert_int_equal (truncate (tape, 6000), 0);
  check_refused (FORMAT ("%s --iteration 2 -o %s", tape, out ()), 1,
                 "the tape is damaged at offset 6000: the file ends too early");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (what_is_no_keyframe__is_refused_with_the_way_to_have_one),
    td_test (inputs_that_found_no_room__are_named),
    td_test (steps_of_static_schedules__are_named),
    td_test (wrong_usage__is_said),
    td_test (an_older_tape__is_kept_without_force),
    td_test (a_full_disk__leaves_nothing),
    td_test (cancelling__leaves_nothing),
    td_test (being_killed__leaves_no_tape_of_that_name),
    td_test (damage__is_found),
    td_test (a_damaged_input__is_called_damage_and_where),
    td_test (a_damaged_record__is_called_damage_and_where),
    td_test (a_cut_tape__is_called_one),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
