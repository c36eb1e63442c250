/* The control socket of `tapedeck run`: pause, steps, breakpoints, live reads, a client that
 * leaves.  The lines are those of engine/record/agent/PROTOCOL.md.
 *
 * SPDX-License-Identifier: MIT */
#include "json-read.h"
#include "td-client.h"
#include "td-test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A run with one client. */
typedef struct
{
  TdClient client; /* first */
  pid_t pid;
  const char *tape;
  char out[512];
} Session;

static Session session;

static pid_t
start (const char *const *argv, const char *out)
{
  pid_t pid = fork ();

  if (pid == 0)
    {
      (void)!freopen (out, "w", stdout);
      execv (argv[0], (char *const *)(uintptr_t)argv);
      _exit (127);
    }
  return pid;
}

enum
{
  MAX_WORDS = 6
};

/* Start `tapedeck run` with these words after its own, and be its client. */
static int
setup_run (const char *const words[MAX_WORDS])
{
  Session *s = &session;
  const char *argv[6 + MAX_WORDS + 1], *socket_path;

  memset (s, 0, sizeof *s);
  s->tape = td_test_tmp ("t.tdtape");
  socket_path = td_test_tmp ("control");
  snprintf (s->out, sizeof s->out, "%s", td_test_tmp ("out"));
  memcpy (argv,
          (const char *[6]){ td_test_program ("app/tapedeck"), "run", "-o", s->tape,
                             "--control", socket_path },
          6 * sizeof *argv);
  memcpy (argv + 6, words, MAX_WORDS * sizeof *argv);
  argv[6 + MAX_WORDS] = NULL;
  s->pid = start (argv, s->out);
  td_client_open (&s->client, socket_path);
  return 0;
}

/* It trains on until it is ended: no test has to be there in time. */
static int
setup (void **state)
{
  td_test_setup (state);
  return setup_run ((const char *[MAX_WORDS]){ td_test_build ("tests/app/model-train"),
                                               "1000000000", "1000" });
}

static int
setup_fused (void **state)
{
  td_test_setup (state);
  return setup_run ((const char *[MAX_WORDS]){ td_test_build ("tests/app/model-fused"),
                                               "1000000000", "200", "1000" });
}

/* One that ends, and before that waits for its client. */
static int
setup_stopped (void **state)
{
  td_test_setup (state);
  return setup_run ((const char *[MAX_WORDS]){
      "--stop", "iteration == 20", td_test_build ("tests/app/model-train"), "2000" });
}

static int
setup_paused (void **state)
{
  td_test_setup (state);
  return setup_run ((const char *[MAX_WORDS]){
      "--pause", "7", td_test_build ("tests/app/model-train"), "1000000000", "1000" });
}

static int
setup_quoted (void **state)
{
  td_test_setup (state);
  return setup_run ((const char *[MAX_WORDS]){ td_test_build ("tests/app/model-quoted") });
}

static int
teardown (void **state)
{
  Session *s = &session;

  td_client_close (&s->client);
  if (s->pid > 0)
    {
      kill (s->pid, SIGTERM);
      waitpid (s->pid, NULL, 0);
    }
  return td_test_teardown (state);
}

static const char *
next_line (Session *s)
{
  return td_client_next (&s->client);
}

static const char *
ask (Session *s, const char *command)
{
  return td_client_ask (&s->client, command);
}

static const char *
move (Session *s, const char *command)
{
  return td_client_move (&s->client, command);
}

static void
hello__says_what_runs_and_where_its_tape_is (void **state)
{
  const char *answer = ask (&session, "hello");

  (void)state;
  assert_contains (answer, "\"ok\":true");
  assert_contains (answer, "t.tdtape");
  assert_contains (answer, "model-train");
}

static void
step_op__stands_before_each_event_in_turn (void **state)
{
  static const char *const forward[] = { "mul", "add", "tanh", "sub", "square", "mean" };
  const char *at = move (&session, "pause");
  long iteration;

  (void)state;
  at = move (&session, "next-iteration");
  iteration = td_client_number (at, "iteration");
  for (int i = 0; i < 6; i++)
    {
      char expected[64];

      snprintf (expected, sizeof expected, "\"op\":\"%s\"", forward[i]);
      assert_contains (at, expected);
      assert_int_equal (td_client_number (at, "at"), i);
      assert_int_equal (td_client_number (at, "iteration"), iteration);
      at = move (&session, "step-op");
    }
  assert_contains (ask (&session, "status"), "\"state\":\"stopped\"");
  at = move (&session, "run-to backward");
  assert_int_equal (td_client_number (at, "iteration"), iteration + 1);
}

static void
run_to__backward_stops_at_the_phases_first_event (void **state)
{
  const char *at;

  (void)state;
  move (&session, "pause");
  move (&session, "next-iteration");
  at = move (&session, "run-to loss");
  assert_int_equal (td_client_number (at, "at"), 6);
}

static void
breakpoint__stops_and_can_be_taken_back (void **state)
{
  const char *at, *answer;
  char command[64];
  long id;

  (void)state;
  move (&session, "pause"); /* who stands answers at once */
  answer = ask (&session, "break op == tanh && iteration >= 20");
  assert_contains (answer, "\"ok\":true");
  id = td_client_number (answer, "id");
  at = move (&session, "continue");
  assert_contains (at, "\"op\":\"tanh\"");
  assert_true (td_client_number (at, "iteration") >= 20);
  assert_int_equal (td_client_number (at, "break"), id);
  assert_contains (ask (&session, "breaks"), "op == tanh");
  snprintf (command, sizeof command, "unbreak %ld", id);
  assert_contains (ask (&session, command), "\"ok\":true");
  assert_contains (ask (&session, "breaks"), "\"breaks\":[]");
  assert_contains (ask (&session, "break op > 3"), "\"ok\":false");
}

/* The next iteration, by a breakpoint on what every iteration has. */
static void
breakpoint__counts_and_can_be_switched_off_and_changed (void **state)
{
  const char *at;
  char command[64];
  long id, iteration;

  (void)state;
  move (&session, "pause");
  id = td_client_number (ask (&session, "break op == tanh"), "id");
  move (&session, "continue");
  at = move (&session, "continue");
  iteration = td_client_number (at, "iteration");
  assert_contains (ask (&session, "breaks"), "\"enabled\":true,\"hits\":2");
  snprintf (command, sizeof command, "rebreak %ld op == ", id);
  assert_contains (ask (&session, command), "\"ok\":false"); /* and the old one stays */
  assert_contains (ask (&session, "breaks"), "\"text\":\"op == tanh\"");
  snprintf (command, sizeof command, "rebreak %ld iteration == %ld", id, iteration + 5);
  assert_contains (ask (&session, command), "\"ok\":true");
  assert_contains (ask (&session, "breaks"), "\"hits\":0");
  at = move (&session, "continue");
  assert_int_equal (td_client_number (at, "iteration"), iteration + 5);
  assert_int_equal (td_client_number (at, "break"), id);
  /* Off, it stops nothing: the other is reached first, much later. */
  snprintf (command, sizeof command, "rebreak %ld op == tanh", id);
  ask (&session, command);
  snprintf (command, sizeof command, "rebreak %ld off", id);
  assert_contains (ask (&session, command), "\"ok\":true");
  assert_contains (ask (&session, "breaks"), "\"enabled\":false");
  snprintf (command, sizeof command, "break iteration == %ld", iteration + 50);
  ask (&session, command);
  at = move (&session, "continue");
  assert_int_equal (td_client_number (at, "iteration"), iteration + 50);
  snprintf (command, sizeof command, "unbreak %ld", td_client_number (at, "break"));
  ask (&session, command);
  snprintf (command, sizeof command, "rebreak %ld on", id);
  ask (&session, command);
  at = move (&session, "continue");
  assert_contains (at, "\"op\":\"tanh\"");
  snprintf (command, sizeof command, "unbreak %ld", id);
  ask (&session, command);
  assert_contains (ask (&session, "rebreak 99 off"), "no such breakpoint");
}

/* Ids are the engine's: w was the first array made. */
static void
read__gives_metadata_and_bytes_of_a_live_array (void **state)
{
  static const char *const unclear[] = { "read x",
                                         "read 1x",
                                         "read 1 x",
                                         "read -1",
                                         "read 1 2 3",
                                         "read 1 -1",
                                         "read 99999999999999999999" };
  const char *answer;
  const float *values;
  double sum = 0;

  (void)state;
  move (&session, "pause");
  answer = ask (&session, "read 1");
  assert_contains (answer, "\"ok\":true");
  assert_contains (answer, "\"dtype\":\"f32\"");
  assert_contains (answer, "\"shape\":[64]");
  assert_int_equal (td_client_number (answer, "bytes"), 256);
  assert_true (session.client.memory >= 0);
  values = mmap (NULL, 256, PROT_READ, MAP_SHARED, session.client.memory, 0);
  assert_ptr_not_equal (values, MAP_FAILED);
  for (int i = 0; i < 64; i++)
    sum += (double)values[i] * values[i];
  assert_true (sum > 1 && sum < 1000);
  munmap ((void *)(uintptr_t)values, 256);
  assert_contains (ask (&session, "read 999999999"), "no longer there");
  for (size_t i = 0; i < sizeof unclear / sizeof *unclear; i++)
    assert_contains (ask (&session, unclear[i]), "read wants the number of an array");
}

/* What the tape has of the iterations `range`, and whether that is the second operation. */
typedef struct
{
  char range[64];
  TdTestChild child;
} Cat;

static bool
shows_add (void *data)
{
  Cat *cat = data;

  td_test_child_clear (&cat->child);
  cat->child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "cat", session.tape,
                            "--iterations", cat->range);
  assert_child_status (cat->child, 0);
  return strstr (cat->child.out, "1 forward add") != NULL;
}

/* The tape shows the iteration in which the program stands, as far as it got. */
static void
stopped_program__is_on_the_tape_up_to_its_last_event (void **state)
{
  const char *at;
  long iteration, n;
  Cat cat = { 0 };

  (void)state;
  move (&session, "pause");
  move (&session, "next-iteration");
  move (&session, "step-op");
  at = move (&session, "step-op");
  iteration = td_client_number (at, "iteration");
  n = td_client_number (at, "at");
  assert_int_equal (n, 2);
  snprintf (cat.range, sizeof cat.range, "%ld:%ld", iteration, iteration);
  td_test_wait ("the second operation on the tape", shows_add, &cat);
  assert_contains (cat.child.out, "0 forward mul");
  assert_not_contains (cat.child.out, "2 forward tanh");
  td_test_child_clear (&cat.child);
}

static bool
is_stopped (void *data)
{
  return strstr (ask (data, "status"), "\"state\":\"stopped\"") != NULL;
}

static void
client__that_leaves_changes_nothing_and_weights_stay_equal (void **state)
{
  Session *s = &session;
  TdTestChild plain;
  int status;
  char *out;

  (void)state;
  td_test_wait ("the stop", is_stopped, s);
  for (int i = 0; i < 30; i++)
    {
      move (s, "step-op");
      ask (s, "read 1");
    }
  assert_contains (ask (s, "unbreak 1"), "\"ok\":true");
  ask (s, "continue");
  close (s->client.fd);
  s->client.fd = -1;
  assert_int_equal (waitpid (s->pid, &status, 0), s->pid);
  s->pid = 0;
  assert_int_equal (status, 0);
  out = td_test_read_file (s->out, NULL);
  plain = TD_TEST_RUN (td_test_build ("tests/app/model-train"), "2000");
  assert_string_equal (out, plain.out);
  free (out);
  td_test_child_clear (&plain);
}

static void
stop__ends_the_model_even_while_it_stands (void **state)
{
  int status;

  (void)state;
  move (&session, "pause");
  assert_contains (ask (&session, "stop"), "\"ok\":true");
  assert_int_equal (waitpid (session.pid, &status, 0), session.pid);
  session.pid = 0;
  assert_true (WIFEXITED (status));
  assert_int_equal (WEXITSTATUS (status), 128 + SIGTERM);
}

/* Once, and before the first event of that iteration. */
static void
pause__waits_before_an_iteration (void **state)
{
  (void)state;
  td_test_wait ("a stop", is_stopped, &session);
  assert_int_equal (td_client_number (ask (&session, "status"), "iteration"), 7);
  assert_int_equal (td_client_number (ask (&session, "status"), "event"), 0);
  assert_contains (ask (&session, "breaks"), "\"breaks\":[]");
  assert_contains (ask (&session, "continue"), "\"ok\":true");
  assert_contains (ask (&session, "status"), "\"state\":\"running\"");
}

static void
nonsense__is_answered_and_survived (void **state)
{
  char command[400];

  (void)state;
  move (&session, "pause"); /* who stands answers at once */
  memset (command, 'x', sizeof command - 1);
  command[sizeof command - 1] = '\0';
  assert_contains (ask (&session, command), "no such command");
  assert_contains (ask (&session, "\001\002{}"), "\"ok\":false");
  assert_contains (ask (&session, "read"), "\"ok\":false");
  assert_contains (ask (&session, "level loud"), "\"ok\":false");
  assert_contains (ask (&session, "break phase == foo"), "phase is forward, backward");
  assert_contains (ask (&session, "break phase != backwards"), "phase is forward, backward");
  assert_contains (ask (&session, "level stats"), "\"ok\":true");
  assert_contains (ask (&session, "static loud"), "as-is, off or verify expected");
  assert_contains (ask (&session, "static verify"), "\"chains\":0}");
  assert_contains (ask (&session, "static off"), "\"ok\":true");
  assert_contains (ask (&session, "static as-is"), "\"ok\":true");
  assert_contains (ask (&session, "hello"), "\"ok\":true");
}

/* What recording takes is a part of the time that the program ran, not of what it stood. */
static void
status__says_what_recording_costs (void **state)
{
  long cost, ran, later;

  (void)state;
  move (&session, "pause");
  move (&session, "next-iteration");
  cost = td_client_number (ask (&session, "status"), "cost_ns");
  ran = td_client_number (ask (&session, "status"), "ran_ns");
  assert_true (cost > 0);
  assert_true (ran > cost);
  later = td_client_number (ask (&session, "status"), "ran_ns");
  assert_int_equal (later, ran);
}

static void
answers__come_in_the_order_of_the_commands (void **state)
{
  Session *s = &session;
  static const char lines[] = "read 1\nhello\nbreaks\nstatus\n";
  static const char *const expected[]
      = { "\"dtype\"", "\"version\":\"", "\"breaks\":[]", "\"stalls\"" };

  (void)state;
  move (s, "pause");
  assert_int_equal (write (s->client.fd, lines, sizeof lines - 1), sizeof lines - 1);
  for (int i = 0; i < 4; i++)
    assert_contains (next_line (s), expected[i]);
}

/* What one of the operations left, which came with the answer. */
static const float *
inside (int k)
{
  char command[32];
  const float *values;

  snprintf (command, sizeof command, "inside %d", k);
  assert_contains (ask (&session, command), "\"shape\":[8],\"bytes\":32,\"total\":32");
  assert_true (session.client.memory >= 0);
  values = mmap (NULL, 32, PROT_READ, MAP_SHARED, session.client.memory, 0);
  assert_ptr_not_equal (values, MAP_FAILED);
  close (session.client.memory);
  session.client.memory = -1;
  return values;
}

/* Of mul, tanh, log, exp: NaN comes from log, and what it was given is there to be seen. */
static void
inside__shows_where_in_a_fused_group_nan_came_from (void **state)
{
  const char *answer;
  const float *values;

  (void)state;
  move (&session, "pause");
  assert_contains (ask (&session, "break nan"), "\"ok\":true");
  answer = move (&session, "continue");
  assert_contains (answer, "made NaN");
  assert_contains (answer, "first in log at ");
  answer = ask (&session, "inside");
  assert_true (td_client_number (answer, "n") >= 4);
  assert_contains (answer, "\"ran\":true");
  assert_contains (answer, "\"op\":\"mul\"");
  assert_contains (answer, "\"op\":\"log\"");
  values = inside (1);
  assert_true (values[7] < -0.4f && values[7] > -0.5f); /* tanh (-0.5) */
  munmap ((void *)(uintptr_t)values, 32);
  values = inside (2);
  assert_true (values[7] != values[7]);
  munmap ((void *)(uintptr_t)values, 32);
  assert_contains (ask (&session, "inside 99"), "has no such operation");
  assert_contains (ask (&session, "unbreak 1"), "\"ok\":true");
  move (&session, "next-iteration");
  assert_contains (ask (&session, "inside"), "\"ran\":false");
  values = inside (2); /* the group has not run yet */
  assert_true (values[0] != values[0]);
  munmap ((void *)(uintptr_t)values, 32);
  assert_contains (move (&session, "step-op"), "before sum");
  assert_contains (ask (&session, "inside"), "does not stand at a fused group");
}

/* Connected and silent, or in the middle of a line: neither keeps anybody out, nor throws out
 * who has asked something. */
static void
clients__that_say_nothing_lock_nobody_out (void **state)
{
  enum
  {
    N_SILENT = 40
  };
  const char *socket_path = td_test_tmp ("control");
  Session silent[N_SILENT], other;

  (void)state;
  assert_contains (ask (&session, "hello"), "\"ok\":true");
  for (int i = 0; i < N_SILENT; i++)
    {
      silent[i].client.fd = td_test_connect (socket_path);
      if (i % 2 != 0)
        assert_int_equal (write (silent[i].client.fd, "hel", 3), 3);
    }
  memset (&other, 0, sizeof other);
  other.client.fd = td_test_connect (socket_path);
  assert_contains (ask (&other, "hello"), "\"ok\":true");
  assert_contains (ask (&session, "hello"), "\"ok\":true");
  for (int i = 0; i < N_SILENT; i++)
    close (silent[i].client.fd);
  close (other.client.fd);
}

static const char quoted_place[] = "a \"b\\c\".c:12";

static bool
runs_there (void *unused)
{
  char text[100];

  (void)unused;
  assert_true (td__json_member (ask (&session, "status"), "where", text, sizeof text));
  return strcmp (text, quoted_place) == 0;
}

/* A file may be called anything, and the line is still JSON. */
static void
busy__names_the_line_that_runs (void **state)
{
  char text[100];

  (void)state;
  td_test_wait ("the line", runs_there, NULL);
  ask (&session, "breaks");
  assert_true (td__json_member (session.client.line, "busy", text, sizeof text));
  assert_string_equal (text, quoted_place);
  assert_true (td__json_member (session.client.line, "error", text, sizeof text));
  assert_string_equal (text, "busy in a \"b\\c\".c:12");
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (hello__says_what_runs_and_where_its_tape_is),
    row (step_op__stands_before_each_event_in_turn),
    row (run_to__backward_stops_at_the_phases_first_event),
    row (breakpoint__stops_and_can_be_taken_back),
    row (breakpoint__counts_and_can_be_switched_off_and_changed),
    row (read__gives_metadata_and_bytes_of_a_live_array),
    cmocka_unit_test_setup_teardown (inside__shows_where_in_a_fused_group_nan_came_from,
                                     setup_fused, teardown),
    row (stopped_program__is_on_the_tape_up_to_its_last_event),
    cmocka_unit_test_setup_teardown (client__that_leaves_changes_nothing_and_weights_stay_equal,
                                     setup_stopped, teardown),
    row (stop__ends_the_model_even_while_it_stands),
    row (nonsense__is_answered_and_survived),
    row (status__says_what_recording_costs),
    row (answers__come_in_the_order_of_the_commands),
    row (clients__that_say_nothing_lock_nobody_out),
    cmocka_unit_test_setup_teardown (busy__names_the_line_that_runs, setup_quoted, teardown),
    cmocka_unit_test_setup_teardown (pause__waits_before_an_iteration, setup_paused, teardown),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
