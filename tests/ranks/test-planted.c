/* Ranks that are killed, that hang, or that call something else than the others: named within
 * the time that was set, all tapes whole, no process left.
 *
 * test-planted SUITE TAPEDECK MODEL: faults at random, from a seed that is printed
 * (TD_PLANTED_SEED says which), in MODEL, which tests/ranks/planted.c is.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "mpi-here.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *tapedeck, *model;
static int n_kills, n_ends, n_hangs, n_mismatches;
static unsigned long seed;

enum
{
  HANG_AFTER_S = 2
};

/* xorshift64* */
static unsigned
draw (unsigned n)
{
  static unsigned long state;

  if (state == 0)
    state = seed;
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (unsigned)((state * 2685821657736338717ul) >> 33) % n;
}

/* One run with a fault in it. */
typedef struct
{
  const char *fault;
  int n, rank, iteration, point;
  char folder[4200];
  double seconds;
  TdTestChild child;
} Run;

static double
now_s (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static Run
plant (const char *fault, int number)
{
  Run r = { .fault = fault, .n = 2 + (int)draw (3), .iteration = 1 + (int)draw (38) };
  char name[64];
  double begin;

  r.rank = (int)draw ((unsigned)r.n);
  r.point = (int)draw (3);
  if (strcmp (fault, "in-part") == 0) /* the last of three is alone in its part */
    r.rank = (int)draw (2);
  snprintf (name, sizeof name, "%s-%d", fault, number);
  snprintf (r.folder, sizeof r.folder, "%s", td_test_tmp (name));
  begin = now_s ();
  r.child
      = td_test_shell ("%s run -q -n %d --hang-after %d -o %s %s %s %d %d %d", tapedeck, r.n,
                       HANG_AFTER_S, r.folder, model, fault, r.rank, r.iteration, r.point);
  r.seconds = now_s () - begin;
  return r;
}

static void
clear (Run *r)
{
  td_test_child_clear (&r->child);
}

static void
fail_run (const Run *r, const char *expected, const char *more)
{
  fail_msg (
      "seed %lu: %d ranks, rank %d: %s in iteration %d at %d: %s expected (status %d, %.1f "
      "s):\n%s\n%s",
      seed, r->n, r->rank, r->fault, r->iteration, r->point, expected, r->child.status,
      r->seconds, r->child.err, more);
}

static void
expect (const Run *r, const char *text)
{
  if (strstr (r->child.err, text) == NULL)
    fail_run (r, text, "");
}

/* Does a file of a process, of many strings, name this folder? */
static bool
names (const char *pid, const char *file, const char *folder)
{
  char name[300], *text = calloc (1, 1 << 16);
  bool found;
  ssize_t n;
  int fd;

  assert_non_null (text);
  snprintf (name, sizeof name, "/proc/%s/%s", pid, file);
  fd = open (name, O_RDONLY | O_CLOEXEC);
  n = fd >= 0 ? read (fd, text, (1 << 16) - 1) : 0;
  if (fd >= 0)
    close (fd);
  found = n > 0 && memmem (text, (size_t)n, folder, strlen (folder)) != NULL;
  free (text);
  return found;
}

/* mpirun and supervisors have the folder as an argument, models in their environment. */
static bool
is_left (const char *pid, const char *folder)
{
  return names (pid, "cmdline", folder) || names (pid, "environ", folder);
}

/* A process that is left, *pid, or none. */
static bool
find_left (const char *folder, char pid[32])
{
  DIR *dir = opendir ("/proc");
  bool found = false;

  assert_non_null (dir);
  for (const struct dirent *e; !found && (e = readdir (dir)) != NULL;)
    {
      found = e->d_name[0] >= '1' && e->d_name[0] <= '9' && is_left (e->d_name, folder);
      snprintf (pid, 32, "%.31s", e->d_name);
    }
  closedir (dir);
  return found;
}

static void
expect_nothing_left (const Run *r)
{
  char pid[32];

  if (find_left (r->folder, pid))
    fail_run (r, "no process", pid);
}

/* One for each rank, whole to its end, and nothing beside them: no ring, no file of ranks. */
static void
expect_tapes (const Run *r, const char *notice)
{
  DIR *dir = opendir (r->folder);
  int n = 0;

  assert_non_null (dir);
  for (const struct dirent *e; (e = readdir (dir)) != NULL;)
    n += e->d_name[0] != '.';
  closedir (dir);
  if (n != r->n)
    fail_run (r, "a tape for each rank, and nothing else", r->folder);
  for (int rank = 0; rank < r->n; rank++)
    {
      char tape[4300];
      TdTestChild c;

      snprintf (tape, sizeof tape, "%s/rank-%d.tdtape", r->folder, rank);
      c = TD_TEST_RUN (tapedeck, "check", tape);
      if (c.status != 0 || strstr (c.out, "whole, ") == NULL || strstr (c.out, "cut") != NULL)
        fail_run (r, "a whole tape", c.out);
      td_test_child_clear (&c);
      if (notice == NULL)
        continue;
      c = TD_TEST_RUN (tapedeck, "cat", tape);
      if (strstr (c.out, notice) == NULL)
        fail_run (r, notice, tape);
      td_test_child_clear (&c);
    }
}

/* All other ranks say why they end: on their tapes, and on standard error as far as mpirun has
 * passed that on before it ended itself. */
static void
expect_reason (const Run *r, const char *reason)
{
  int n_said = 0;

  for (int rank = 0; rank < r->n; rank++)
    {
      char tape[4300], line[100];
      TdTestChild c;

      if (rank == r->rank)
        continue;
      snprintf (tape, sizeof tape, "%s/rank-%d.tdtape", r->folder, rank);
      c = TD_TEST_RUN (tapedeck, "cat", tape);
      if (strstr (c.out, reason) == NULL)
        fail_run (r, reason, tape);
      td_test_child_clear (&c);
      snprintf (line, sizeof line, "[rank %d] tapedeck: rank %d of %d is ended", rank, rank,
                r->n);
      n_said += strstr (r->child.err, line) != NULL;
    }
  if (n_said == 0)
    fail_run (r, "another rank's line", "");
}

/* Where it is, of the line: never in an operation, as none runs there; at point 0 the last was
 * one of the iteration before. */
static void
expect_place (const Run *r, const char *line)
{
  char text[320];

  if (r->point == 0)
    snprintf (text, sizeof text, "%s at the beginning of iteration %d, after sgd at ", line,
              r->iteration);
  else
    snprintf (text, sizeof text, "%s, after %s at ", line, r->point == 1 ? "sum" : "sgd");
  expect (r, text);
  snprintf (text, sizeof text, " iteration %d%s", r->iteration, r->point == 0 ? "," : ";");
  expect (r, text);
}

static void
kills__name_the_rank_and_leave_whole_tapes_and_no_process (void **state)
{
  static const char *const faults[] = { "killed", "ended", "crash", "failed" };
  static const char *const ends[] = { "signal 9", "signal 15", "signal 11", "status 7" };
  static const char *const names[]
      = { " (Killed)", " (Terminated)", " (Segmentation fault)", "" };
  static const int statuses[] = { 137, 143, 139, 7 };
  double longest = 0;

  (void)state;
  for (int i = 0; i < n_kills; i++)
    {
      const unsigned which = draw (4);
      Run r = plant (faults[which], i);
      char text[200];

      snprintf (text, sizeof text, "tapedeck: %d ranks: rank %d ", r.n, r.rank);
      expect (&r, text);
      snprintf (text, sizeof text, "rank %d %s %s", r.rank,
                statuses[which] < 128 ? "has ended with" : "was ended by", ends[which]);
      expect (&r, text);
      if (r.child.status != statuses[which])
        fail_run (&r, "its status", "");
      snprintf (text, sizeof text, "tapedeck: %d ranks: rank %d %s %s%s", r.n, r.rank,
                statuses[which] < 128 ? "has ended with" : "was ended by", ends[which],
                names[which]);
      expect_place (&r, text);
      snprintf (text, sizeof text, "rank %d %s %s", r.rank,
                statuses[which] < 128 ? "has ended with" : "was ended by", ends[which]);
      expect_tapes (&r, NULL);
      expect_reason (&r, text);
      expect_nothing_left (&r);
      longest = r.seconds > longest ? r.seconds : longest;
      clear (&r);
    }
  print_message ("# %d kills, the longest run %.1f s\n", n_kills, longest);
}

static void
ends__that_look_well_are_named_in_the_last_line (void **state)
{
  static const char *const faults[] = { "quit", "gone" };
  static const char *const ends[]
      = { "status 1 (exit or td_finish) while others went on", "status 0" };

  (void)state;
  for (int i = 0; i < n_ends; i++)
    {
      Run r = plant (faults[i % 2], i);
      char text[200];

      snprintf (text, sizeof text, "tapedeck: %d ranks: rank %d has ended with %s", r.n, r.rank,
                ends[i % 2]);
      expect_place (&r, text);
      if (r.child.status != 1)
        fail_run (&r, "status 1", "");
      expect_tapes (&r, NULL);
      expect_nothing_left (&r);
      clear (&r);
    }
}

static void
hangs__name_the_rank_and_where_it_is_on_all_tapes (void **state)
{
  static const char *const faults[]
      = { "stopped", "loop", "asleep", "in-part", "in-letter", "no-comm" };
  static const char *const places[]
      = { " is stopped (",   " is elsewhere",      " is elsewhere",
          "td_comm_barrier", "td_recv from rank ", " is elsewhere" };
  double longest = 0;

  (void)state;
  for (int i = 0; i < n_hangs; i++)
    {
      const unsigned which = (unsigned)i < 6 ? (unsigned)(i + (int)seed) % 6 : draw (6);
      Run r = plant (faults[which], i);
      char text[200];

      snprintf (text, sizeof text, " has waited %d s in td_", HANG_AFTER_S);
      expect (&r, text);
      if (which != 3 && which != 4) /* those two name each other */
        {
          snprintf (text, sizeof text, " for rank %d; rank %d (pid ", r.rank, r.rank);
          expect (&r, text);
        }
      expect (&r, places[which]);
      expect (&r, which == 5 ? "td_comm_new (" : "td_opt_update (");
      expect (&r, "planted.c:");
      if (r.child.status != 1)
        fail_run (&r, "status 1", "");
      snprintf (text, sizeof text, " has waited %d s in td_", HANG_AFTER_S);
      expect_tapes (&r, text);
      expect_nothing_left (&r);
      longest = r.seconds > longest ? r.seconds : longest;
      clear (&r);
    }
  print_message ("# %d hangs, the longest run %.1f s\n", n_hangs, longest);
}

static void
calls__that_do_not_match_are_named_on_all_ranks_at_once (void **state)
{
  static const char *const faults[] = { "barrier", "shape", "broadcast", "finish", "one-more" };
  static const char *const names[] = { "td_comm_barrier", "td_comm_allreduce", "td_comm_bcast",
                                       "has ended (td_finish)", "td_comm_new" };
  double longest = 0;

  (void)state;
  for (int i = 0; i < n_mismatches; i++)
    {
      const unsigned which = draw (5);
      Run r = plant (faults[which], i);
      char text[200];

      for (int rank = 0; rank < r.n; rank++)
        {
          snprintf (text, sizeof text, "rank %d of %d", rank, r.n);
          expect (&r, text);
        }
      snprintf (text, sizeof text, "rank %d ", r.rank);
      expect (&r, text);
      expect (&r, names[which]);
      if (strstr (r.child.err, " has waited ") != NULL || r.child.status != 1)
        fail_run (&r, "an error at once", "");
      expect_tapes (&r, NULL);
      expect_nothing_left (&r);
      longest = r.seconds > longest ? r.seconds : longest;
      clear (&r);
    }
  print_message ("# %d mismatches, the longest run %.1f s\n", n_mismatches, longest);
}

static bool
none_is_left (void *folder)
{
  char pid[32];

  return !find_left (folder, pid);
}

/* Their pids: of `tapedeck run -n`, of its child, and so on down to a supervisor, whose child
 * is the model.  The kernel may leave a child out of its list while processes come and go: it
 * is asked again. */
static void
starter__that_is_killed_leaves_no_process (void **state)
{
  static const char *const starters[] = { "launcher", "mpirun", "keeper", "supervisor" };

  (void)state;
  for (int depth = 0; depth < 4; depth++)
    {
      char folder[4200], said[4300];
      TdTestChild c;

      snprintf (folder, sizeof folder, "%s", td_test_tmp (starters[depth]));
      /* of its own: what the one before said must not be taken for this one's */
      snprintf (said, sizeof said, "%s.said", folder);
      c = td_test_shell ("%s run -q -n 3 --hang-after 0 -o %s %s asleep 1 3 0 2>%s & pid=$!\n"
                         "until grep -q planted: %s; do sleep 0.05; done\n"
                         "victim=$pid\n"
                         "for i in $(seq %d); do child=; while [ -z \"$child\" ]; do "
                         "read -r child rest <<END\n"
                         "$(cat /proc/$victim/task/*/children)\nEND\n"
                         "done; victim=$child; done\n"
                         "kill -9 $victim; wait $pid; exit 0",
                         tapedeck, folder, model, said, said, depth);
      assert_child_status (c, 0);
      td_test_child_clear (&c);
      print_message ("# %s\n", starters[depth]);
      td_test_wait ("the end of all processes", none_is_left, folder);
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (kills__name_the_rank_and_leave_whole_tapes_and_no_process),
    td_test (ends__that_look_well_are_named_in_the_last_line),
    td_test (hangs__name_the_rank_and_where_it_is_on_all_tapes),
    td_test (calls__that_do_not_match_are_named_on_all_ranks_at_once),
    td_test (starter__that_is_killed_leaves_no_process),
  };
  const char *given = getenv ("TD_PLANTED_SEED");
  bool slow;

  if (argc != 4)
    return 1;
  if (!mpi_here ())
    return 77;
  slow = strcmp (argv[1], "slow") == 0;
  n_kills = slow ? 50 : 8;
  n_ends = slow ? 20 : 4;
  n_hangs = slow ? 20 : 4;
  n_mismatches = slow ? 20 : 4;
  seed = given != NULL ? strtoul (given, NULL, 10) : (unsigned long)time (NULL);
  printf ("# TD_PLANTED_SEED=%lu\n", seed);
  fflush (stdout);
  tapedeck = argv[2];
  model = argv[3];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
