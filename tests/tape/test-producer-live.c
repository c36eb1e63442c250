/* A program that writes its tape by the producer's library is controlled as a supervisor would:
 * it stops, is read and goes on, and what makes no sense is refused.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/agent/control.h"
#include "record/ring.h"
#include "td-producer.h"
#include "td-tape-reader.h"

typedef struct
{
  TdProducer *p;
  TdRing *ring;
  TdControlPage *page;
  int fd; /* the supervisor's end */
  const volatile uint32_t *word;
  TdProducerMoment moment;
  const char *const *lines; /* said once it stops; NULL at the end */
  bool leaves;              /* it is gone then */
  float numbers[4];
  int n_flushes, memory;
  char heard[4096];
} Live;

static void
say (Live *f, const char *line)
{
  assert_int_equal (send (f->fd, line, strlen (line), 0), strlen (line));
  atomic_fetch_or (&f->page->attention, TD_ATTENTION_COMMANDS);
}

static void
flush (void *user)
{
  Live *f = user;

  f->n_flushes++;
  for (int i = 0; f->lines != NULL && f->lines[i] != NULL; i++)
    say (f, f->lines[i]);
  f->lines = NULL;
  if (f->leaves)
    close (f->fd);
}

static int
output (void *user, uint32_t i, TdProducerArray *array)
{
  Live *f = user;

  if (i > 0)
    return 0;
  array->dtype = TD_TAPE_F32;
  array->ndim = 1;
  array->dims[0] = 4;
  array->bytes = sizeof f->numbers;
  array->data = f->numbers;
  return 1;
}

static int
read_variable (void *user, uint64_t variable, TdProducerArray *array)
{
  return variable == 1 ? output (user, 0, array) : 0;
}

static TdProducerCalls
calls_of (Live *f)
{
  return (TdProducerCalls){ .size = sizeof (TdProducerCalls),
                            .user = f,
                            .flush = flush,
                            .read = read_variable,
                            .output = output };
}

static void
put_fd (const char *name, int fd)
{
  char text[16];

  snprintf (text, sizeof text, "%d", fd);
  setenv (name, text, 1);
}

/* A producer with a supervisor, unless `alone`. */
static void
start (Live *f, const char *breaks, bool alone)
{
  static const int64_t four[] = { 4 };
  const TdProducerOptions options = { .size = sizeof options,
                                      .path = td_test_tmp ("live.tdtape"),
                                      .producer = "test",
                                      .overwrite = 1 };
  const TdRingOptions ring = { .capacity = 65536 };
  const TdProducerVariable v = {
    .size = sizeof v, .id = 1, .dims = four, .ndim = 1, .category = TD_TAPE_CATEGORY_INPUT
  };
  const TdProducerCalls calls = calls_of (f);
  char error[256];
  int pair[2];

  f->p = td_producer_new (&options, error, sizeof error);
  assert_non_null (f->p);
  f->moment = (TdProducerMoment){ .size = sizeof f->moment,
                                  .kind = td_producer_kind (f->p, "relu", NULL, NULL),
                                  .place = td_producer_place (f->p, "x.py", 7, NULL),
                                  .layer = td_producer_layer (f->p, "net/l1", "Linear") };
  assert_int_equal (td_producer_variable (f->p, &v), TD_PRODUCER_OK);
  assert_int_equal (td_producer_begin (f->p, 0, 0), TD_PRODUCER_OK);
  f->memory = -1;
  if (!alone)
    {
      f->ring = td_ring_new_nameless (&ring, error, sizeof error);
      assert_non_null (f->ring);
      f->page = (TdControlPage *)(void *)((char *)f->ring->shared + TD_CONTROL_OFFSET);
      assert_int_equal (socketpair (AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
      f->fd = pair[0];
      put_fd ("TAPEDECK_RING", dup (f->ring->fd));
      put_fd ("TAPEDECK_CONTROL", pair[1]);
      setenv ("TAPEDECK_BREAK", breaks, 1);
    }
  f->word = td_producer_live (f->p, &calls);
}

static void
stop (Live *f)
{
  td_producer_free (f->p);
  td_ring_free (f->ring);
  if (f->ring != NULL && !f->leaves)
    close (f->fd);
}

/* The next message of the program, with the descriptor that came with it. */
static const char *
hear (Live *f)
{
  struct iovec part = { f->heard, sizeof f->heard - 1 };
  char room[CMSG_SPACE (sizeof (int))];
  struct msghdr message = {
    .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
  };
  const ssize_t n = recvmsg (f->fd, &message, MSG_DONTWAIT);
  struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR (&message) : NULL;

  f->heard[n > 0 ? n : 0] = '\0';
  if (c != NULL)
    memcpy (&f->memory, CMSG_DATA (c), sizeof f->memory);
  return f->heard;
}

static void
live__without_a_supervisor_there_is_no_word (void **state)
{
  Live f = { .fd = -1 };

  (void)state;
  start (&f, NULL, true);
  assert_null (f.word);
  assert_int_equal (td_producer_gate (f.p, &f.moment), TD_PRODUCER_OK);
  assert_int_equal (f.n_flushes, 0);
  stop (&f);
}

/* A program that another one has started without them has files of its own there. */
static void
live__leaves_descriptors_of_the_program_alone (void **state)
{
  Live f = { .fd = -1 };
  TdProducerCalls calls;
  int ends[2];

  (void)state;
  start (&f, NULL, true);
  assert_int_equal (pipe (ends), 0);
  put_fd ("TAPEDECK_RING", ends[0]);
  put_fd ("TAPEDECK_CONTROL", ends[1]);
  calls = calls_of (&f);
  assert_null (td_producer_live (f.p, &calls));
  assert_null (getenv ("TAPEDECK_RING"));
  assert_null (getenv ("TAPEDECK_CONTROL"));
  for (int i = 0; i < 2; i++)
    {
      assert_int_equal (fcntl (ends[i], F_GETFD), 0);
      close (ends[i]);
    }
  stop (&f);
}

/* The first program of a run has the supervisor. */
static void
live__of_a_second_program_closes_what_it_was_left (void **state)
{
  Live first = { 0 }, f = { .fd = -1 };
  TdProducerCalls calls;
  int pair[2], ring;

  (void)state;
  start (&first, "", false);
  ring = dup (first.ring->fd);
  assert_int_equal (socketpair (AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  td_producer_free (first.p);
  first.p = NULL;
  start (&f, NULL, true);
  put_fd ("TAPEDECK_RING", ring);
  put_fd ("TAPEDECK_CONTROL", pair[1]);
  calls = calls_of (&f);
  assert_null (td_producer_live (f.p, &calls));
  assert_int_equal (fcntl (ring, F_GETFD), -1);
  assert_int_equal (fcntl (pair[1], F_GETFD), -1);
  close (pair[0]);
  stop (&f);
  stop (&first);
}

static void
live__stops_is_read_and_goes_on (void **state)
{
  static const char *const lines[]
      = { "#2 read 1", "#3 read 2",   "#4 read 1 6", "#5 level stats",
          "#6 end",    "#7 continue", NULL };
  Live f = { .numbers = { 1, 2, 3, 4 }, .lines = lines };
  float numbers[4] = { 0 };

  (void)state;
  start (&f, "", false);
  assert_non_null (f.word);
  assert_null (getenv ("TAPEDECK_CONTROL"));
  assert_int_equal (*f.word, 0);
  say (&f, "#1 pause");
  assert_int_not_equal (*f.word & TD_PRODUCER_LOOK_BEFORE, 0);
  f.moment.n_events = 5;
  assert_int_equal (td_producer_gate (f.p, &f.moment), TD_PRODUCER_OK);
  assert_string_equal (hear (&f), "#1 {\"ok\":true}");
  assert_contains (hear (&f),
                   "! {\"event\":\"stopped\",\"reason\":\"before relu\",\"where\":\"x.py:7\"");
  assert_contains (f.heard, "\"at\":5");
  assert_contains (hear (&f),
                   "#2 {\"ok\":true,\"id\":1,\"dtype\":\"f32\",\"shape\":[4],\"bytes\":16");
  assert_int_equal (pread (f.memory, numbers, sizeof numbers, 0), sizeof numbers);
  assert_memory_equal (numbers, f.numbers, sizeof numbers);
  close (f.memory);
  assert_string_equal (hear (&f), "#3 {\"ok\":false,\"error\":\"array 2 is no longer there\"}");
  assert_contains (hear (&f), "\"bytes\":6,\"total\":16");
  close (f.memory);
  assert_contains (hear (&f), "programs of the engine");
  assert_string_equal (hear (&f), "#6 {\"ok\":false,\"error\":\"no such command\"}");
  assert_string_equal (hear (&f), "#7 {\"ok\":true}");
  assert_string_equal (hear (&f), "! {\"event\":\"resumed\"}");
  assert_int_equal (*f.word & ~TD_ATTENTION_COMMANDS, 0);
  stop (&f);
}

/* A stop that ends the run: the supervisor says so, and the program its last words. */
static void
live__that_is_to_end_has_all_on_its_tape (void **state)
{
  static const char *const lines[] = { "#0 end", NULL };
  const char *tape = td_test_tmp ("live.tdtape");
  const pid_t pid = fork ();
  const TdTapeIteration *it;
  const TdTapeEnd *end;
  TdTapeReader *r;
  uint64_t bytes = 0;
  char error[256];
  int status;

  (void)state;
  if (pid == 0)
    {
      Live f = { .lines = lines };

      start (&f, "op == relu", false);
      td_producer_alloc (f.p, 5, 0x1000, 4096, TD_TAPE_CATEGORY_OTHER, 0);
      td_producer_gate (f.p, &f.moment);
      _exit (1);
    }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFSIGNALED (status));
  assert_int_equal (WTERMSIG (status), SIGKILL);
  r = td_tape_reader_open (tape, error, sizeof error);
  assert_non_null (r);
  end = td_tape_reader_end (r);
  assert_non_null (end);
  assert_int_equal (end->signal, SIGKILL);
  assert_int_equal (end->by, 1);
  it = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (it);
  for (uint32_t i = 0; i < it->n_memory; i++)
    bytes += it->memory[i].bytes;
  assert_int_equal (bytes, 4096);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* A signal that came just before it waits interrupts nothing: without one it returns as well.
 */
static void
live__returns_meanwhile_so_that_handlers_run (void **state)
{
  Live f = { 0 };

  (void)state;
  start (&f, "op == relu", false);
  assert_int_equal (td_producer_gate (f.p, &f.moment), TD_PRODUCER_INTERRUPTED);
  assert_int_equal (td_producer_gate (f.p, &f.moment), TD_PRODUCER_INTERRUPTED);
  assert_int_equal (f.n_flushes, 1);
  assert_contains (hear (&f), "\"event\":\"stopped\"");
  assert_string_equal (hear (&f), "");
  say (&f, "#1 continue");
  assert_int_equal (td_producer_gate (f.p, &f.moment), TD_PRODUCER_OK);
  assert_string_equal (hear (&f), "#1 {\"ok\":true}");
  stop (&f);
}

static void
live__looks_at_numbers_where_a_breakpoint_asks (void **state)
{
  static const char *const lines[] = { "#1 unbreak 1", "#2 continue", NULL };
  Live f = { .numbers = { 1, 2, NAN, NAN }, .lines = lines };

  (void)state;
  start (&f, "nan && link == net", false);
  assert_non_null (f.word);
  assert_int_not_equal (*f.word & TD_PRODUCER_LOOK_AFTER, 0);
  assert_int_equal (td_producer_gate (f.p, &f.moment), TD_PRODUCER_OK);
  assert_int_equal (f.n_flushes, 0);
  f.moment.when = TD_PRODUCER_AFTER;
  assert_int_equal (td_producer_gate (f.p, &f.moment), TD_PRODUCER_OK);
  assert_contains (hear (&f), "relu made NaN (2 of its numbers) (breakpoint 1");
  assert_int_equal (*f.word & ~TD_ATTENTION_COMMANDS, 0);
  stop (&f);
}

/* An iteration of two events, the second at another layer in iteration 2. */
static void
run_iteration (Live *f, uint64_t number, uint32_t other)
{
  const uint32_t usual = f->moment.kind;

  f->moment.iteration = number;
  f->moment.live_bytes = 1000 * number;
  for (f->moment.n_events = 0; f->moment.n_events < 2; f->moment.n_events++)
    {
      f->moment.kind = number == 2 && f->moment.n_events == 1 ? other : usual;
      assert_int_equal (td_producer_gate (f->p, &f->moment), TD_PRODUCER_OK);
    }
  f->moment.kind = usual;
}

static void
live__stops_behind_an_iteration_whose_graph_is_another (void **state)
{
  static const char *const lines[]
      = { "#1 rebreak 1 pool > 1", "#2 rebreak 1 growth > 900 && iteration > 3", "#3 continue",
          NULL };
  Live f = { .lines = lines };
  uint32_t other;

  (void)state;
  start (&f, "graph changed", false);
  other = td_producer_kind (f.p, "tanh", NULL, NULL);
  for (uint64_t i = 0; i < 3; i++)
    {
      run_iteration (&f, i, other);
      assert_string_equal (hear (&f), "");
    }
  run_iteration (&f, 3, other);
  assert_contains (
      hear (&f), "the graph of iteration 2 is not that of iteration 1: it has "
                 "tanh at x.py:7 where that had relu at x.py:7 (breakpoint 1: graph changed)");
  assert_contains (hear (&f), "pool is for programs of the engine");
  assert_string_equal (hear (&f), "#2 {\"ok\":true}");
  assert_string_equal (hear (&f), "#3 {\"ok\":true}");
  assert_string_equal (hear (&f), "! {\"event\":\"resumed\"}");
  run_iteration (&f, 4, other);
  assert_string_equal (hear (&f), "");
  f.moment.iteration = 5;
  f.moment.n_events = 0;
  assert_int_equal (td_producer_gate (f.p, &f.moment), TD_PRODUCER_INTERRUPTED);
  assert_contains (hear (&f), "1.00 kB more are alive after iteration 4 than after the one "
                              "before (breakpoint 1: growth > 900 && iteration > 3)");
  stop (&f);
}

static void
live__goes_on_when_its_supervisor_is_gone (void **state)
{
  Live f = { .leaves = true };

  (void)state;
  start (&f, "op == relu", false);
  assert_int_equal (td_producer_gate (f.p, &f.moment), TD_PRODUCER_OK);
  assert_int_equal (f.n_flushes, 1);
  assert_int_equal (*f.word, 0);
  assert_int_equal (td_producer_gate (f.p, &f.moment), TD_PRODUCER_OK);
  assert_int_equal (f.n_flushes, 1);
  stop (&f);
}

static void
live__what_makes_no_sense_is_refused (void **state)
{
  Live f = { 0 };
  TdProducerCalls calls;
  TdProducerMoment m;

  (void)state;
  start (&f, "", false);
  calls = calls_of (&f);
  assert_null (td_producer_live (f.p, &calls));
  assert_contains (td_producer_error (f.p), "listens already");
  calls.read = NULL;
  assert_null (td_producer_live (f.p, &calls));
  assert_contains (td_producer_error (f.p), "call-back is missing");
  calls.size = 8;
  assert_null (td_producer_live (f.p, &calls));
  assert_contains (td_producer_error (f.p), "size");
  for (int i = 0; i < 6; i++)
    {
      static const char *const wrong[] = { "time", "kind", "phase", "place", "layer", "size" };

      m = f.moment;
      *(uint32_t *[]){ &m.when, &m.kind, &m.phase, &m.place, &m.layer, &m.size }[i] = 1u << 30;
      assert_int_equal (td_producer_gate (f.p, &m), TD_PRODUCER_WRONG);
      assert_contains (td_producer_error (f.p), wrong[i]);
    }
  assert_int_equal (td_producer_gate (NULL, &f.moment), TD_PRODUCER_WRONG);
  assert_int_equal (td_producer_gate (f.p, NULL), TD_PRODUCER_OK);
  stop (&f);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (live__without_a_supervisor_there_is_no_word),
    td_test (live__leaves_descriptors_of_the_program_alone),
    td_test (live__of_a_second_program_closes_what_it_was_left),
    td_test (live__stops_is_read_and_goes_on),
    td_test (live__that_is_to_end_has_all_on_its_tape),
    td_test (live__returns_meanwhile_so_that_handlers_run),
    td_test (live__looks_at_numbers_where_a_breakpoint_asks),
    td_test (live__stops_behind_an_iteration_whose_graph_is_another),
    td_test (live__goes_on_when_its_supervisor_is_gone),
    td_test (live__what_makes_no_sense_is_refused),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
