/* A client of the control socket: see td-client.h.
 *
 * SPDX-License-Identifier: MIT */
#include "td-client.h"

#include "td-test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void
td_client_open (TdClient *c, const char *path)
{
  memset (c, 0, sizeof *c);
  c->memory = -1;
  c->fd = td_test_connect (path);
}

void
td_client_close (TdClient *c)
{
  if (c->fd >= 0)
    close (c->fd);
  if (c->memory >= 0)
    close (c->memory);
  c->fd = c->memory = -1;
}

/* What has come, with a descriptor if there is one. */
static void
receive (TdClient *c)
{
  struct pollfd p = { c->fd, POLLIN, 0 };
  struct iovec part = { c->buffer + c->used, sizeof c->buffer - c->used };
  char control[CMSG_SPACE (sizeof (int))];
  struct msghdr message = {
    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
  };
  struct cmsghdr *head;
  ssize_t n;

  assert_int_equal (poll (&p, 1, td_test_patience_ms ()), 1);
  n = recvmsg (c->fd, &message, MSG_CMSG_CLOEXEC);
  assert_true (n > 0);
  c->used += (size_t)n;
  head = CMSG_FIRSTHDR (&message);
  if (head != NULL && head->cmsg_type == SCM_RIGHTS)
    memcpy (&c->memory, CMSG_DATA (head), sizeof c->memory);
}

const char *
td_client_next (TdClient *c)
{
  char *end;
  size_t length;

  while ((end = memchr (c->buffer, '\n', c->used)) == NULL)
    receive (c);
  length = (size_t)(end - c->buffer);
  assert_true (length < sizeof c->line);
  memcpy (c->line, c->buffer, length);
  c->line[length] = '\0';
  c->used -= length + 1;
  memmove (c->buffer, end + 1, c->used);
  return c->line;
}

static void
put (TdClient *c, const char *command)
{
  char line[512];
  const int n = snprintf (line, sizeof line, "%s\n", command);

  assert_int_equal (write (c->fd, line, (size_t)n), n);
}

const char *
td_client_ask (TdClient *c, const char *command)
{
  const char *answer;

  put (c, command);
  do
    answer = td_client_next (c);
  while (strstr (answer, "\"event\":\"") != NULL);
  return answer;
}

const char *
td_client_stopped (TdClient *c)
{
  const char *event;

  do
    event = td_client_next (c);
  while (strstr (event, "\"event\":\"stopped\"") == NULL);
  return event;
}

const char *
td_client_move (TdClient *c, const char *command)
{
  put (c, command);
  return td_client_stopped (c);
}

long
td_client_number (const char *json, const char *member)
{
  char key[64];
  const char *at;

  snprintf (key, sizeof key, "\"%s\":", member);
  at = strstr (json, key);
  assert_non_null (at);
  return strtol (at + strlen (key), NULL, 10);
}
