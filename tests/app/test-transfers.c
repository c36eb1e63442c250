/* Copies between devices, on one that the host cannot look into: each is an event with its line
 * in the program, and those that were not needed are listed.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "fake-remote.h"
#include "td-tape-reader.h"
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where this file copies, in the order of time. */
enum
{
  MOVED, /* a link, two parameters */
  FIRST,
  AGAIN,
  CHANGED,
  THERE_AND_BACK,
  READ_AND_BACK,
  RESULT,
  NEXT_ITERATION,
  N_COPIES
};
static int line[N_COPIES];
#define AT(copy) (line[copy] = __LINE__)

static void
first_iteration (TdVar *x, TdDevice *cpu, TdDevice *remote)
{
  const float numbers[] = { 1, 2, 3, 4 };
  TdLink *m = td_linear_new (NULL, "m", 4, 3);
  TdVar *unread, *read, *y;

  AT (MOVED), td_link_to_device (m, remote);
  AT (FIRST), unread = td_to_device (x, remote);
  AT (AGAIN), read = td_to_device (x, remote);
  y = td_relu (read);
  assert_int_equal (td_write (x, numbers, sizeof numbers), TD_OK);
  AT (CHANGED), td_relu (td_to_device (x, remote));
  AT (THERE_AND_BACK), td_to_device (unread, cpu);
  AT (READ_AND_BACK), td_to_device (read, cpu);
  AT (RESULT), y = td_to_device (y, cpu);
  assert_int_equal (td_to_device (y, cpu) == y, true); /* no copy */
  td_link_free (m);
}

/* *Owner*: the test's folder. */
static const char *
record (void)
{
  const char *path = td_test_tmp ("t.tdtape");
  TdDevice *cpu, *remote;
  TdVar *x;

  setenv ("TAPEDECK_TAPE", path, 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  cpu = td_device_get ("cpu");
  remote = fake_remote_start ();
  assert_non_null (remote);
  x = td_retain (td_variable (td_ones (TD_F32, TD_SHAPE (1, 4)), "x"));
  TD_ITERATION (0)
    first_iteration (x, cpu, remote);
  TD_ITERATION (1)
    AT (NEXT_ITERATION), td_relu (td_to_device (x, remote));
  td_release (x);
  assert_int_equal (td_finish (), 0);
  return path;
}

/* One copy on the tape: its line, or 0 when the event is none. */
static uint32_t
copy_line (TdTapeReader *r, const TdTapeEvent *e, const char *attrs)
{
  const TdTapeSite *site;

  if (strcmp (td_tape_reader_op_name (r, e->opdef), "to_device") != 0)
    return 0;
  assert_string_equal (td_tape_reader_string (r, e->attrs), attrs);
  site = td_tape_reader_site (r, e->site);
  assert_non_null (site);
  assert_contains (td_tape_reader_string (r, site->file), "test-transfers.c");
  return site->line;
}

static void
op01__every_copy_is_an_event_with_its_line (void **state)
{
  static const struct
  {
    int copy;
    const char *attrs;
  } expected[] = {
    { MOVED, "from=cpu to=" FAKE_REMOTE_NAME " again=false back=false" },
    { MOVED, "from=cpu to=" FAKE_REMOTE_NAME " again=false back=false" },
    { FIRST, "from=cpu to=" FAKE_REMOTE_NAME " again=false back=false" },
    { AGAIN, "from=cpu to=" FAKE_REMOTE_NAME " again=true back=false" },
    { CHANGED, "from=cpu to=" FAKE_REMOTE_NAME " again=false back=false" },
    { THERE_AND_BACK, "from=" FAKE_REMOTE_NAME " to=cpu again=false back=true" },
    { READ_AND_BACK, "from=" FAKE_REMOTE_NAME " to=cpu again=false back=true" },
    { RESULT, "from=" FAKE_REMOTE_NAME " to=cpu again=false back=false" },
  };
  char error[256] = "";
  TdTapeReader *r = td_tape_reader_open (record (), error, sizeof error);
  const TdTapeIteration *it;
  int n = 0;

  assert_non_null (r);
  it = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (it);
  for (uint32_t e = 0; e < it->n_events; e++)
    if (strcmp (td_tape_reader_op_name (r, it->events[e].opdef), "to_device") == 0)
      {
        assert_true (n < TD_ARRAY_LENGTH (expected));
        assert_int_equal (copy_line (r, &it->events[e], expected[n].attrs),
                          line[expected[n].copy]);
        n++;
      }
  assert_int_equal (n, TD_ARRAY_LENGTH (expected));
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* The schedule of an iteration.  *Owner*: the caller, td_test_child_clear. */
static TdTestChild
schedule (const char *tape, const char *iteration, const char *format)
{
  const char *program = td_test_program ("app/tapedeck-viz");
  TdTestChild child = TD_TEST_RUN (program, "show", tape, "--view", "schedule", "--iteration",
                                   iteration, "--format", format);

  assert_child_status (child, 0);
  return child;
}

static const char *
finding (int copy, const char *way, const char *why)
{
  static char text[160];

  snprintf (text, sizeof text, "16 B, %s, test-transfers.c:%d: %s", way, line[copy], why);
  return text;
}

static void
op01__transfers_without_need_are_listed_and_no_others (void **state)
{
  const char *tape = record ();
  TdTestChild child = schedule (tape, "0", "text");

  assert_contains (child.out, "8 copies between devices, 156 B"); /* W 48, b 12, arrays 16 */
  assert_contains (child.out, "unneeded transfers: 2, 32 B\n");
  assert_contains (child.out, finding (AGAIN, "cpu to " FAKE_REMOTE_NAME,
                                       "copied to " FAKE_REMOTE_NAME " before"));
  assert_contains (child.out,
                   finding (THERE_AND_BACK, FAKE_REMOTE_NAME " to cpu", "there by event"));
  td_test_child_clear (&child);
  child = schedule (tape, "1", "text"); /* x has not changed since it was copied in the first */
  assert_contains (child.out, "unneeded transfers: 1, 16 B\n");
  assert_contains (child.out, finding (NEXT_ITERATION, "cpu to " FAKE_REMOTE_NAME,
                                       "copied to " FAKE_REMOTE_NAME " before"));
  td_test_child_clear (&child);
  child = schedule (tape, "0", "json");
  assert_contains (child.out, "\"why\": \"again\"");
  assert_contains (child.out, "\"why\": \"there_and_back\"");
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (op01__every_copy_is_an_event_with_its_line),
    td_test (op01__transfers_without_need_are_listed_and_no_others),
  };

  return cmocka_run_group_tests_name ("transfers", tests, NULL, NULL);
}
