/* Sends a running model commands that may be anything, as its supervisor would: good ones of
 * the protocol, cut short, with bytes changed at random from a fixed seed, strung together.
 * Each is answered with one line, whose JSON is well formed, and the model goes on.
 * SPDX-License-Identifier: MIT */
#include "record/agent/agent.h"
#include "record/ring.h"

#include "mutate.h"
#include "td-test.h"

#include <tapedeck.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
  N_COMMANDS = 20000, /* TD_FUZZ_ROUNDS is another number */
  ANSWER_MAX = 8192
};

static const char *const good[] = {
  "pause",
  "continue",
  "step-op",
  "step-into",
  "step-over",
  "step-out",
  "next-iteration",
  "run-to loss",
  "run-to backward",
  "run-to update",
  "break nan",
  "break op == \"tanh\" and iteration > 3",
  "break norm(grad(l1/W)) > 1e3 or bytes > 10M",
  "break link l1/* or phase == backward",
  "break model.c:12",
  "unbreak 1",
  "rebreak 1 off",
  "rebreak 1 on",
  "rebreak 1 op == relu || nan",
  "breaks",
  "level graph",
  "level stats",
  "level values",
  "read 3",
  "read 18446744073709551615 9999999999",
  "read 12 16",
  "status",
};

/* --- the model --- */

static void
run_model (int ring_fd, int control_fd)
{
  char text[16];
  int argc = 0;

  prctl (PR_SET_PDEATHSIG, SIGKILL);
  snprintf (text, sizeof text, "%d", ring_fd);
  setenv ("TAPEDECK_RING", text, 1);
  snprintf (text, sizeof text, "%d", control_fd);
  setenv ("TAPEDECK_CONTROL", text, 1);
  setenv ("TAPEDECK_RECORD", "0", 1);
  if (td_init (&argc, NULL) != TD_OK)
    _exit (3);
  TD_ITERATIONS (i, INT64_MAX)
    {
      TdVar *x = td_variable (td_randn (TD_F32, TD_SHAPE (3, 2)), "x");

      td_backward (td_sum (td_tanh (td_mul_scalar (x, 2))), 0);
      if (td_error () != NULL)
        _exit (4);
    }
}

/* --- is it JSON? --- */

static const char *json_value (const char *s);

static const char *
json_string (const char *s)
{
  if (s == NULL || *s++ != '"')
    return NULL;
  for (; *s != '"'; s++)
    if ((unsigned char)*s < 0x20 || (*s == '\\' && strchr ("\"\\/bfnrtu", *++s) == NULL))
      return NULL;
  return s + 1;
}

static const char *
json_list (const char *s, char close, bool named)
{
  if (*s == close)
    return s + 1;
  for (; s != NULL; s++)
    {
      if (named && ((s = json_string (s)) == NULL || *s++ != ':'))
        return NULL;
      s = json_value (s);
      if (s == NULL || *s == close)
        return s != NULL ? s + 1 : NULL;
      if (*s != ',')
        return NULL;
    }
  return NULL;
}

static const char *
json_value (const char *s)
{
  static const char *const words[] = { "true", "false", "null" };
  char *end;

  if (*s == '{' || *s == '[')
    return json_list (s + 1, *s == '{' ? '}' : ']', *s == '{');
  if (*s == '"')
    return json_string (s);
  for (size_t i = 0; i < 3; i++)
    if (strncmp (s, words[i], strlen (words[i])) == 0)
      return s + strlen (words[i]);
  strtod (s, &end);
  return end > s ? end : NULL;
}

/* --- the supervisor's side --- */

/* Read one message; descriptors that come with it are closed. */
static ssize_t
take (int fd, char *text, size_t size)
{
  char room[CMSG_SPACE (sizeof (int))];
  struct iovec part = { text, size - 1 };
  struct msghdr message = {
    .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
  };
  struct pollfd wait = { .fd = fd, .events = POLLIN };
  ssize_t n = poll (&wait, 1, td_test_patience_ms ()) == 1
                  ? recvmsg (fd, &message, MSG_CMSG_CLOEXEC)
                  : -1;

  if (n <= 0)
    return -1;
  text[n] = '\0';
  for (struct cmsghdr *c = CMSG_FIRSTHDR (&message); c != NULL; c = CMSG_NXTHDR (&message, c))
    if (c->cmsg_type == SCM_RIGHTS)
      close (*(int *)(void *)CMSG_DATA (c));
  return n;
}

/* One line, well formed, with `mark` in front of it. */
static bool
is_answer (const char *text, ssize_t n, const char *mark)
{
  size_t head = strlen (mark);
  const char *end;

  if (strncmp (text, mark, head) != 0 || strlen (text) != (size_t)n)
    return false;
  end = json_value (text + head);
  return end != NULL && *end == '\0' && strchr (text, '\n') == NULL;
}

static void
mutate (char *command, size_t size)
{
  size_t n;

  snprintf (command, size, "%s", good[fuzz_below (sizeof good / sizeof good[0])]);
  if (fuzz_below (8) == 0)
    snprintf (command + strlen (command), size - strlen (command), " %s",
              good[fuzz_below (sizeof good / sizeof good[0])]);
  if (fuzz_below (64) == 0) /* a long one */
    while (strlen (command) + 40 < size)
      strcat (command, " and op == \"\\\"<&\x01\xff\"");
  n = strlen (command);
  switch (fuzz_below (4))
    {
    case 0:
      command[fuzz_below ((uint32_t)n + 1)] = '\0';
      break;
    case 1:
      for (uint32_t k = 1 + fuzz_below (3); k > 0 && n > 0; k--)
        command[fuzz_below ((uint32_t)n)] = (char)(1 + fuzz_below (255));
      break;
    default: /* as it is */
      break;
    }
}

static int
complain (const char *what, const char *command, const char *text)
{
  fprintf (stderr, "%s: command \"%s\", answer \"%s\"\n", what, command, text);
  return 1;
}

static int
talk (int fd, TdControlPage *page, int n_commands)
{
  static char command[3000], message[4000], text[ANSWER_MAX];
  char mark[32];

  for (int i = 0; i < n_commands; i++)
    {
      ssize_t n;

      mutate (command, sizeof command);
      snprintf (mark, sizeof mark, "#%d ", i);
      snprintf (message, sizeof message, "%s%s", mark, command);
      if (send (fd, message, strlen (message), MSG_NOSIGNAL) < 0)
        return complain ("the model is gone", command, "");
      atomic_store (&page->attention, 1);
      do
        n = take (fd, text, sizeof text);
      while (n > 0 && text[0] == '!' && is_answer (text, n, "! "));
      if (n < 0 || !is_answer (text, n, mark))
        return complain ("no answer, or not one line of JSON", command, n < 0 ? "" : text);
    }
  return 0;
}

int
main (void)
{
  const int n_commands = fuzz_rounds (N_COMMANDS);
  char path[64], error[256];
  TdRingOptions options = { .capacity = 1 << 16, .n_ranks = 1 };
  int ends[2], status, failed;
  TdRing *ring;
  pid_t model;

  snprintf (path, sizeof path, "/dev/shm/td-fuzz-control-%ld", (long)getpid ());
  ring = td_ring_new (path, &options, error, sizeof error);
  if (ring == NULL || socketpair (AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
    {
      fprintf (stderr, "%s: %s\n", path, error);
      return 1;
    }
  unlink (path);
  model = fork ();
  if (model == 0)
    {
      close (ends[0]);
      run_model (dup (ring->fd), ends[1]);
    }
  close (ends[1]);
  failed = talk (ends[0], (TdControlPage *)(void *)((char *)ring->shared + TD_CONTROL_OFFSET),
                 n_commands);
  if (waitpid (model, &status, WNOHANG) != 0)
    {
      fprintf (stderr, "the model ended: status %#x\n", (unsigned)status);
      return 1;
    }
  kill (model, SIGKILL);
  waitpid (model, &status, 0);
  td_ring_free (ring);
  if (!failed)
    printf ("%d commands were answered, each in one line of JSON\n", n_commands);
  return failed;
}
