/* What one rank is told all ranks do: they stop at the same event, step together, have the same
 * breakpoints; and what one stops for holds the others, without a hang.
 *
 * test-together TAPEDECK MODEL: MODEL is tests/ranks/stepped.c, built.
 * SPDX-License-Identifier: MIT */
#include "mpi-here.h"
#include "td-client.h"
#include "td-test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
  N = 3
};

static const char *tapedeck, *model;
static pid_t launcher;
static TdClient ranks[N];

/* --- a run, and a client for each of its ranks --- */

/* One socket of the run, whichever comes first. */
static bool
finds_socket (void *path)
{
  TdTestChild c = td_test_shell ("ls %s/tapedeck/*.sock 2>/dev/null | head -n 1 | tr -d '\n'",
                                 getenv ("XDG_RUNTIME_DIR"));
  const bool found = c.out[0] != '\0';

  snprintf (path, 400, "%s", c.out);
  td_test_child_clear (&c);
  return found;
}

static const char *
rank_of (const char *list, int rank)
{
  char begin[32];
  const char *at;

  snprintf (begin, sizeof begin, "{\"rank\":%d,", rank);
  at = strstr (list, begin);
  assert_non_null (at);
  return at;
}

/* The socket of a rank: its own object ends before the next begins. */
static bool
socket_of (const char *list, int rank, char *path, size_t size)
{
  const char *at = rank_of (list, rank), *end = strchr (at, '}'),
             *key = strstr (at, "\"socket\":\"");

  if (key == NULL || key > end)
    return false;
  key += strlen ("\"socket\":\"");
  snprintf (path, size, "%.*s", (int)strcspn (key, "\""), key);
  return true;
}

/* All ranks that were started have said so. */
static bool
all_have_begun (void *first)
{
  const char *list = td_client_ask (first, "ranks");
  char path[200];
  bool all = strstr (list, "\"state\":\"unknown\"") == NULL;

  for (int r = 0; r < N && all; r++)
    all = socket_of (list, r, path, sizeof path);
  return all;
}

static void
start (const char *options, const char *arguments)
{
  char path[400], list[8192];
  TdClient first;

  assert_int_equal (mkdir (td_test_tmp ("run"), 0700), 0);
  setenv ("XDG_RUNTIME_DIR", td_test_tmp ("run"), 1);
  launcher = fork ();
  if (launcher == 0)
    {
      char line[2000];

      snprintf (line, sizeof line, "exec %s run -q -n %d -o %s %s %s %s 2>%s", tapedeck, N,
                td_test_tmp ("tapes"), options, model, arguments, td_test_tmp ("err"));
      execl ("/bin/sh", "sh", "-c", line, (char *)NULL);
      _exit (127);
    }
  td_test_wait ("a rank that listens", finds_socket, path);
  td_client_open (&first, path);
  td_test_wait ("all ranks", all_have_begun, &first);
  snprintf (list, sizeof list, "%s", first.line);
  td_client_close (&first);
  for (int r = 0; r < N; r++)
    {
      assert_true (socket_of (list, r, path, sizeof path));
      td_client_open (&ranks[r], path);
    }
}

static int
end (void)
{
  int status;

  for (int r = 0; r < N; r++)
    td_client_close (&ranks[r]);
  kill (launcher, SIGTERM);
  assert_int_equal (waitpid (launcher, &status, 0), launcher);
  launcher = 0;
  return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

/* A test that has failed leaves no run behind. */
static int
teardown (void **state)
{
  if (launcher > 0)
    end ();
  return td_test_teardown (state);
}

/* --- where they stand --- */

typedef struct
{
  long iteration, at;
  char op[64], reason[400];
} Stop;

static void
text_of (const char *json, const char *member, char *out, size_t size)
{
  char key[64];
  const char *at;

  snprintf (key, sizeof key, "\"%s\":\"", member);
  at = strstr (json, key);
  assert_non_null (at);
  at += strlen (key);
  snprintf (out, size, "%.*s", (int)strcspn (at, "\""), at);
}

static Stop
stop_of (TdClient *c)
{
  const char *event = td_client_stopped (c);
  Stop s = { td_client_number (event, "iteration"), td_client_number (event, "at"), "", "" };

  text_of (event, "op", s.op, sizeof s.op);
  text_of (event, "reason", s.reason, sizeof s.reason);
  return s;
}

/* All ranks stop, before the same event; returns it as rank 0 says it. */
static Stop
all_stop (void)
{
  const Stop first = stop_of (&ranks[0]);

  for (int r = 1; r < N; r++)
    {
      const Stop s = stop_of (&ranks[r]);

      if (s.iteration != first.iteration || s.at != first.at || strcmp (s.op, first.op) != 0)
        fail_msg (
            "rank %d stands before %s, event %ld of %ld (%s); rank 0 before %s, event %ld "
            "of %ld (%s)",
            r, s.op, s.at, s.iteration, s.reason, first.op, first.at, first.iteration,
            first.reason);
    }
  return first;
}

static Stop
tell (int rank, const char *command)
{
  assert_contains (td_client_ask (&ranks[rank], command), "\"ok\":true");
  return all_stop ();
}

static void
go_on (int rank)
{
  assert_contains (td_client_ask (&ranks[rank], "continue"), "\"ok\":true");
}

/* --- tests --- */

static void
pause__of_one_rank_stops_all_at_the_same_event (void **state)
{
  long before = -1;

  (void)state;
  start ("--pause 3", "");
  all_stop ();
  go_on (0);
  for (int i = 0; i < 30; i++)
    {
      const Stop s = tell (i % N, "pause");

      assert_true (s.iteration >= before);
      before = s.iteration;
      go_on ((i + 1) % N);
    }
  end ();
}

static void
steps__are_made_by_all_ranks (void **state)
{
  static const struct
  {
    const char *command, *op;
  } rows[] = {
    { "next-iteration", "linear" }, { "step-op", "relu" },
    { "step-into", "linear" },      { "run-to loss", "softmax_cross_entropy_grad" },
    { "run-to update", "sgd" },     { "step-op", "sgd" },
    { "next-iteration", "linear" }, { "run-to backward", "softmax_cross_entropy_grad" },
    { "step-over", "relu_grad" },   { "next-iteration", "linear" },
  };
  Stop s;

  (void)state;
  start ("--pause 5", "");
  s = all_stop ();
  assert_int_equal (s.at, 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    {
      s = tell ((int)i % N, rows[i].command);
      assert_string_equal (s.op, rows[i].op);
    }
  end ();
}

static void
breakpoints__are_the_same_on_all_ranks (void **state)
{
  (void)state;
  start ("--stop 'op == nothing' --pause 3", "");
  all_stop ();
  assert_int_equal (td_client_number (td_client_ask (&ranks[0], "break op == log"), "id"), 2);
  assert_int_equal (td_client_number (td_client_ask (&ranks[1], "break op == add"), "id"), 3);
  assert_contains (td_client_ask (&ranks[2], "rebreak 2 off"), "\"ok\":true");
  assert_contains (td_client_ask (&ranks[1], "unbreak 1"), "\"ok\":true");
  for (int r = 0; r < N; r++)
    {
      const char *list = td_client_ask (&ranks[r], "breaks");

      assert_contains (list, "{\"id\":2,\"text\":\"op == log\",\"enabled\":false");
      assert_contains (list, "{\"id\":3,\"text\":\"op == add\",\"enabled\":true");
      assert_null (strstr (list, "\"id\":1,"));
    }
  assert_contains (td_client_ask (&ranks[1], "unbreak 1"), "no such breakpoint");
  assert_contains (td_client_ask (&ranks[2], "break rank > x"), "rank wants a comparison");
  go_on (2);
  assert_string_equal (all_stop ().op, "add"); /* each by its own */
  end ();
}

/* That one stops by itself, the others since it does: before the same event, however fast they
 * are. */
static void
breakpoint__of_one_rank_stops_all_there (void **state)
{
  (void)state;
  start ("--pause 3", "");
  all_stop ();
  assert_contains (td_client_ask (&ranks[0], "break rank == 2 && op == square"), "\"ok\":true");
  go_on (1);
  for (int i = 0; i < 10; i++)
    {
      const Stop s = all_stop ();

      assert_string_equal (s.op, "square");
      assert_string_equal (s.reason,
                           "rank 2 stopped: before square (breakpoint 1: rank == 2 && "
                           "op == square)");
      go_on (i % N);
    }
  end ();
}

static void
nan__of_one_rank_stops_the_others_before_the_next_event (void **state)
{
  Stop of[N];

  (void)state;
  start ("--stop nan", "nan 1 50");
  for (int r = 0; r < N; r++)
    of[r] = stop_of (&ranks[r]);
  assert_string_equal (of[1].op, "log"); /* it has made them */
  assert_contains (of[1].reason, "log made NaN");
  for (int r = 0; r < N; r++)
    {
      assert_int_equal (of[r].iteration, 50);
      assert_int_equal (of[r].at, of[1].at);
      if (r != 1)
        {
          assert_string_equal (of[r].op, "relu"); /* which comes next */
          assert_contains (of[r].reason, "rank 1 stopped: log made NaN");
        }
    }
  assert_contains (td_client_ask (&ranks[2], "unbreak 1"), "\"ok\":true");
  assert_contains (td_client_ask (&ranks[0], "step-op"), "\"ok\":true");
  assert_string_equal (all_stop ().op, "softmax_cross_entropy"); /* level again */
  end ();
}

static bool
hears_of_graphs (void *unused)
{
  (void)unused;
  return strstr (td_client_next (&ranks[0]), "they run different graphs") != NULL;
}

static void
graphs__that_differ_are_said_and_level_at_the_next_call_of_all (void **state)
{
  Stop s;

  (void)state;
  start ("--pause 20", "longer 1 0");
  all_stop ();
  assert_contains (td_client_ask (&ranks[2], "break rank == 0 && phase == backward"),
                   "\"ok\":true");
  go_on (2);
  td_test_wait ("a line about graphs", hears_of_graphs, NULL);
  assert_contains (ranks[0].line, "rank 0 stands at softmax_cross_entropy_grad");
  assert_contains (ranks[0].line, "where rank 1 stands at softmax_cross_entropy (");
  stop_of (&ranks[1]);
  stop_of (&ranks[2]);
  assert_contains (td_client_ask (&ranks[2], "unbreak 1"), "\"ok\":true");
  for (int r = 0; r < N; r++) /* what it has run says nothing of what the others have */
    assert_contains (td_client_ask (&ranks[r], "status"), "\"state\":\"stopped\"");
  assert_contains (td_client_ask (&ranks[1], "run-to update"), "\"ok\":true");
  for (int r = 0; r < N; r++)
    {
      s = stop_of (&ranks[r]);
      assert_string_equal (s.op, "sgd");
      assert_int_equal (s.iteration, 20);
    }
  end ();
}

static bool
hears_of_rank_1 (void *unused)
{
  (void)unused;
  return strstr (td_client_next (&ranks[0]), "\"event\":\"notice\"") != NULL
         && strstr (ranks[0].line, "rank 1 stopped: ") != NULL; /* not of waiting */
}

static bool
has_waited_long (void *unused)
{
  const char *list = td_client_ask (&ranks[0], "ranks");
  static int n;

  (void)unused;
  assert_contains (rank_of (list, 1), "\"state\":\"stopped\"");
  assert_contains (rank_of (list, 0), "\"state\":\"waits\"");
  usleep (100000);
  return ++n > 65; /* more than twice the limit */
}

/* A rank that fails before a call of all is looked at, and the others wait in that call: they
 * cannot stop, say why, and are not ended for it; and it can be moved from any of them. */
static void
rank__that_stands_is_named_and_waited_for (void **state)
{
  TdTestChild c;
  int status;
  (void)state;
  start ("--pause 3 --stop error --hang-after 3", "error 1 30");
  all_stop (); /* who listens later does not hear of what was said before */
  go_on (0);
  assert_string_equal (stop_of (&ranks[1]).op, "reshape");
  td_test_wait ("a line about rank 1", hears_of_rank_1, NULL);
  assert_contains (ranks[0].line, "rank 1 stopped: reshape: ");
  assert_contains (ranks[0].line, "; this rank waits for it in td_opt_update");
  td_test_wait ("more than the limit", has_waited_long, NULL);
  c = td_test_shell ("cat %s", td_test_tmp ("err"));
  assert_contains (c.out, " of 3 has waited 3 s in td_opt_update (call ");
  assert_contains (c.out, "rank 1 (pid ");
  assert_contains (c.out, " stands at a breakpoint");
  assert_contains (c.out, "; it is waited for");
  td_test_child_clear (&c);
  td_client_ask (&ranks[0], "unbreak 1"); /* its own program cannot answer now */
  go_on (0);
  assert_int_equal (waitpid (launcher, &status, 0), launcher);
  launcher = 0;
  assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 1);
}

/* Each answers of itself: weights are equal, what is computed from its examples is not. */
static void
reads__are_of_the_rank_that_is_asked (void **state)
{
  float of[N][2];

  (void)state;
  start ("--pause 10", "");
  all_stop ();
  for (int r = 0; r < N; r++)
    {
      const char *answer = td_client_ask (&ranks[r], "read 1 8");
      const float *bytes;

      assert_contains (answer, "\"ok\":true");
      assert_true (ranks[r].memory >= 0);
      bytes = mmap (NULL, 8, PROT_READ, MAP_SHARED, ranks[r].memory, 0);
      assert_true (bytes != MAP_FAILED);
      memcpy (of[r], bytes, sizeof of[r]);
      munmap ((void *)(uintptr_t)bytes, 8);
    }
  assert_true (of[0][0] != 0);
  assert_memory_equal (of[0], of[1], sizeof of[0]);
  assert_memory_equal (of[0], of[2], sizeof of[0]);
  end ();
}

static void
ranks__that_all_stand_end_with_their_launcher (void **state)
{
  (void)state;
  start ("--pause 3", "");
  all_stop ();
  assert_int_not_equal (end (), 0);
  for (int r = 0; r < N; r++)
    {
      TdTestChild c
          = td_test_shell ("%s check %s/rank-%d.tdtape", tapedeck, td_test_tmp ("tapes"), r);

      assert_child_status (c, 0);
      td_test_child_clear (&c);
    }
}

/* A process that was killed may still be there for a moment after who waited for it. */
static void
assert_gone (pid_t pid)
{
  for (int waited = 0; kill (pid, 0) == 0; waited += 10)
    {
      if (waited > td_test_patience_ms ())
        fail_msg ("process %d is still there", (int)pid);
      usleep (10000);
    }
}

/* Neither a model that is stopped nor its supervisor hears a signal before it is woken. */
static void
ranks__that_are_stopped_end_with_their_launcher (void **state)
{
  char path[400];
  const char *list;
  pid_t model_pid, supervisor;

  (void)state;
  start ("--pause 3", "");
  all_stop ();
  list = td_client_ask (&ranks[0], "ranks");
  model_pid = (pid_t)td_client_number (rank_of (list, 1), "pid");
  assert_true (socket_of (list, 1, path, sizeof path));
  supervisor = atoi (strrchr (path, '/') + 1);
  assert_true (model_pid > 0 && supervisor > 0);
  kill (model_pid, SIGSTOP);
  kill (supervisor, SIGSTOP);
  assert_int_not_equal (end (), 0);
  assert_gone (model_pid);
  assert_gone (supervisor);
}

/* Without anybody to look, the one that stops ends the run, and is the only one that says so.
 */
static void
break__of_one_rank_ends_the_run_with_its_line (void **state)
{
  TdTestChild c = td_test_shell ("%s run -q -n %d -o %s --break 'rank == 1 && nan' %s nan 1 5",
                                 tapedeck, N, td_test_tmp ("tapes"), model);
  const char *line = strstr (c.err, "stopped at ");

  (void)state;
  assert_int_equal (c.status, 3);
  assert_non_null (line);
  assert_contains (c.err, "[rank 1] tapedeck: stopped at ");
  assert_null (strstr (line + 1, "stopped at "));
  td_test_child_clear (&c);
}

#define ranks_test(f) cmocka_unit_test_setup_teardown (f, td_test_setup, teardown)

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ranks_test (pause__of_one_rank_stops_all_at_the_same_event),
    ranks_test (steps__are_made_by_all_ranks),
    ranks_test (breakpoints__are_the_same_on_all_ranks),
    ranks_test (breakpoint__of_one_rank_stops_all_there),
    ranks_test (nan__of_one_rank_stops_the_others_before_the_next_event),
    ranks_test (graphs__that_differ_are_said_and_level_at_the_next_call_of_all),
    ranks_test (rank__that_stands_is_named_and_waited_for),
    ranks_test (reads__are_of_the_rank_that_is_asked),
    ranks_test (ranks__that_all_stand_end_with_their_launcher),
    ranks_test (ranks__that_are_stopped_end_with_their_launcher),
    ranks_test (break__of_one_rank_ends_the_run_with_its_line),
  };

  if (argc != 3)
    return 1;
  tapedeck = argv[1];
  model = argv[2];
  return mpi_here () ? cmocka_run_group_tests (tests, NULL, NULL) : 77;
}
