/* The control socket: see control-server.h.
 *
 * A client's line is answered here when it can be, else it goes to the model with a tag and the
 * client waits; answers come back with the tag.  After 200 ms the client hears "busy" instead.
 *
 * SPDX-License-Identifier: MIT */
#include "control-server.h"

#include "json-line.h"
#include "alike.h"
#include "rank-list.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum
{
  MAX_CLIENTS = 16,
  MAX_WAITING = 64,
  LINE_BYTES = 4096,
  MAX_TEXT = 1100, /* of a text in an answer, escaped */
  BUSY_MS = 200,
  STANDING_MS = 5000
};

typedef struct
{
  int fd;
  int n_waiting;    /* commands with the model; further lines wait: answers come in order */
  bool asked;       /* it has sent a whole line */
  int64_t heard_ms; /* when it last sent one, or came */
  char line[LINE_BYTES];
  size_t used;
} Client;

/* A command that the model has to answer. */
typedef struct
{
  uint32_t tag; /* 0: free */
  int client;
  int64_t deadline_ms;
} Waiting;

struct TdControlServer
{
  TdControlRun *run;
  int listener;
  char path[108];
  Client clients[MAX_CLIENTS];
  Waiting waiting[MAX_WAITING];
  uint32_t next_tag;
};

static int64_t
now_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

TdControlServer *
td_control_server_new (const char *path, TdControlRun *run)
{
  TdControlServer *s = calloc (1, sizeof *s);
  struct sockaddr_un address = { .sun_family = AF_UNIX };

  if (s == NULL)
    return NULL;
  s->run = run;
  for (int i = 0; i < MAX_CLIENTS; i++)
    s->clients[i].fd = -1;
  s->listener = -1;
  if (path == NULL)
    return s;
  s->listener = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (strlen (path) >= sizeof address.sun_path)
    errno = ENAMETOOLONG;
  else
    {
      strcpy (address.sun_path, path);
      strcpy (s->path, path);
      unlink (path);
      if (s->listener >= 0
          && bind (s->listener, (const struct sockaddr *)&address, sizeof address) == 0
          && listen (s->listener, 8) == 0)
        return s;
    }
  fprintf (stderr, "tapedeck: %s: %s; the run goes on without control\n", path,
           strerror (errno));
  if (s->listener >= 0)
    close (s->listener);
  s->listener = -1; /* the model's own messages, breakpoints among them, still come */
  s->path[0] = '\0';
  return s;
}

const char *
td_control_server_address (const TdControlServer *s)
{
  return s != NULL ? s->path : "";
}

static void
drop_client (TdControlServer *s, int i)
{
  close (s->clients[i].fd);
  s->clients[i].fd = -1;
  s->clients[i].used = 0;
  s->clients[i].n_waiting = 0;
  for (int w = 0; w < MAX_WAITING; w++)
    if (s->waiting[w].client == i)
      s->waiting[w].client = -1;
}

void
td_control_server_free (TdControlServer *s)
{
  if (s == NULL)
    return;
  for (int i = 0; i < MAX_CLIENTS; i++)
    if (s->clients[i].fd >= 0)
      drop_client (s, i);
  if (s->listener >= 0)
    close (s->listener);
  if (s->path[0] != '\0')
    unlink (s->path);
  free (s);
}

/* One line to a client, with a descriptor if there is one.  A client that does not read is
 * dropped: nobody waits for it. */
static void
send_line (TdControlServer *s, int i, const char *json, int memory)
{
  char line[LINE_BYTES + 2];
  int n = snprintf (line, sizeof line, "%.*s\n", LINE_BYTES, json);
  struct iovec part = { line, (size_t)n };
  union
  {
    struct cmsghdr head;
    char room[CMSG_SPACE (sizeof (int))];
  } control;
  struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

  if (i < 0 || s->clients[i].fd < 0)
    return;
  if (memory >= 0)
    {
      struct cmsghdr *c;

      memset (&control, 0, sizeof control);
      message.msg_control = &control;
      message.msg_controllen = sizeof control.room;
      c = CMSG_FIRSTHDR (&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN (sizeof (int));
      memcpy (CMSG_DATA (c), &memory, sizeof memory);
    }
  if (sendmsg (s->clients[i].fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) != n)
    drop_client (s, i);
}

void
td_control_server_notify (TdControlServer *s, const char *json)
{
  for (int i = 0; s != NULL && i < MAX_CLIENTS; i++)
    send_line (s, i, json, -1);
}

void
td_control_now (const TdControlRun *run, char *op, size_t op_size, char *where,
                size_t where_size)
{
  if (run->assembler != NULL)
    td_assembler_describe (run->assembler, &run->ring->shared->now, op, op_size, where,
                           where_size);
  else if (run->page->where[0] != '\0')
    {
      snprintf (op, op_size, "%.*s", (int)sizeof run->page->op - 1, run->page->op);
      snprintf (where, where_size, "%.*s", (int)sizeof run->page->where - 1, run->page->where);
    }
  else
    {
      snprintf (op, op_size, "?");
      snprintf (where, where_size, "%s", run->program);
    }
}

/* Of a script, which writes its tape itself, only what it ran last. */
void
td_control_where (const TdControlRun *run, TdWhereNow *now)
{
  const TdAssemblerState *state;
  char where[512];

  memset (now, 0, sizeof *now);
  td_control_now (run, now->op, sizeof now->op, where, sizeof where);
  snprintf (now->where, sizeof now->where, "%.255s", where);
  if (strcmp (now->op, "?") == 0)
    now->op[0] = '\0';
  if (run->assembler == NULL)
    return;
  state = td_assembler_state (run->assembler);
  atomic_store (&now->running, run->ring->shared->now.running && !state->exited);
  now->iteration = (int64_t)state->iteration;
  now->progress = state->in_iteration ? state->n_events > 0 ? TD_WHERE_INSIDE : TD_WHERE_BEGUN
                  : state->n_iterations > 0 ? TD_WHERE_BEHIND
                                            : TD_WHERE_NOWHERE;
}

/* A text as long as a line has room for, besides the others. */
static void
put_text (TdJsonWriter *json, const char *key, const char *text)
{
  td__json_key (json, key);
  td__json_cut_string (json, text, MAX_TEXT);
}

static void
answer_error (TdControlServer *s, int client, const char *error)
{
  TdJsonLine line;

  send_line (s, client, td__json_line_error (&line, NULL, error), -1);
}

static void
answer_busy (TdControlServer *s, int client)
{
  char op[128], where[512], error[600];
  TdJsonLine line;
  TdJsonWriter *json = td__json_line_begin (&line, NULL);

  td_control_now (s->run, op, sizeof op, where, sizeof where);
  snprintf (error, sizeof error, "busy in %.500s", where);
  td__json_member_bool (json, "ok", false);
  put_text (json, "busy", where);
  put_text (json, "error", error);
  send_line (s, client, td__json_line_end (&line), -1);
}

static const char *
state_name (const TdControlServer *s)
{
  if (s->run->model_fd < 0)
    return "ended";
  return atomic_load (&s->run->page->stopped) ? "stopped" : "running";
}

static void
answer_hello (TdControlServer *s, int client, const char *rest)
{
  TdJsonLine line;
  TdJsonWriter *json = td__json_line_begin (&line, NULL);

  td__json_member_bool (json, "ok", true);
  td__json_member_string (json, "version", TD_VERSION);
  td__json_member_int (json, "pid", s->run->model_pid);
  put_text (json, "tape", s->run->tape);
  td__json_member_string (json, "state", state_name (s));
  put_text (json, "program", s->run->program);
  send_line (s, client, td__json_line_end (&line), -1);
}

/* Of a tape that the program writes itself the file says it. */
static uint64_t
tape_bytes (const TdControlRun *run)
{
  struct stat st;

  if (run->writer != NULL)
    return td_tape_writer_bytes (run->writer);
  return run->tape != NULL && stat (run->tape, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static uint64_t
ns_of (const TdRingShared *shared, uint64_t ticks)
{
  return (uint64_t)((double)ticks * shared->ns_per_tick);
}

static void
answer_status (TdControlServer *s, int client, const char *rest)
{
  const TdRingShared *shared = s->run->ring->shared;
  char op[128], where[512];
  TdJsonLine line;
  TdJsonWriter *json = td__json_line_begin (&line, NULL);

  td_control_now (s->run, op, sizeof op, where, sizeof where);
  td__json_member_bool (json, "ok", true);
  td__json_member_string (json, "state", state_name (s));
  td__json_member_uint (json, "iteration", shared->now.iteration);
  td__json_member_uint (json, "event", shared->now.event);
  put_text (json, "op", op);
  put_text (json, "where", where);
  td__json_member_uint (json, "stalls", atomic_load (&shared->n_stalls));
  td__json_member_uint (json, "stalled_ns", atomic_load (&shared->stalled_ns));
  td__json_member_uint (json, "cost_ns", ns_of (shared, atomic_load (&shared->cost_ticks)));
  td__json_member_uint (json, "ran_ns", ns_of (shared, atomic_load (&shared->ran_ticks)));
  td__json_member_bool (json, "lost", atomic_load (&shared->gave_up) != 0);
  td__json_member_uint (json, "tape_bytes", tape_bytes (s->run));
  send_line (s, client, td__json_line_end (&line), -1);
}

static void
answer_ranks (TdControlServer *s, int client, const char *rest)
{
  TdJsonLine line;
  char *end;
  const long first = strtol (rest, &end, 10);

  if (s->run->ranks == NULL || s->run->ranks->pages == NULL)
    answer_error (s, client, "the program is no rank of a run");
  else if (*end != '\0' || first < 0 || first > s->run->ranks->n)
    answer_error (s, client, "ranks: a rank's number, or nothing, expected");
  else
    send_line (s, client, td_rank_list (&line, s->run->ranks, (int)first), -1);
}

static void
answer_stop (TdControlServer *s, int client, const char *rest)
{
  TdJsonLine line;

  send_line (s, client, td__json_line_ok (&line, NULL), -1);
  s->run->stop (s->run->user);
}

/* Commands that the supervisor answers itself. */
static const struct
{
  const char *text;
  void (*answer) (TdControlServer *s, int client, const char *rest);
  bool takes_rest;
} own_commands[] = {
  { "hello", answer_hello, false },
  { "status", answer_status, false },
  { "ranks", answer_ranks, true },
  { "stop", answer_stop, false },
};

/* What stands behind the word of one of them; NULL: it is another. */
static const char *
rest_of (const char *line, unsigned i)
{
  const size_t n = strlen (own_commands[i].text);

  if (strncmp (line, own_commands[i].text, n) != 0)
    return NULL;
  return line[n] == '\0' || (own_commands[i].takes_rest && line[n] == ' ') ? line + n : NULL;
}

/* The client whose command `w` is answered now, -1 if it has left. */
static int
no_longer_waits (TdControlServer *s, int w)
{
  int client = s->waiting[w].client;

  s->waiting[w].tag = 0;
  if (client >= 0)
    s->clients[client].n_waiting--;
  return client;
}

/* A program that stands answers at once, but for a machine that is busy with other things. */
static int
patience_ms (const TdControlServer *s)
{
  return atomic_load (&s->run->page->stopped) ? STANDING_MS : BUSY_MS;
}

static void
forward_to_model (TdControlServer *s, int client, const char *line)
{
  char text[LINE_BYTES + 32];
  int w = 0;

  while (w < MAX_WAITING && s->waiting[w].tag != 0)
    w++;
  if (s->run->model_fd < 0 || w == MAX_WAITING)
    {
      answer_error (s, client,
                    s->run->model_fd < 0 ? "the program has ended" : "too many commands wait");
      return;
    }
  if (++s->next_tag == 0)
    s->next_tag = 1;
  s->waiting[w] = (Waiting){ s->next_tag, client, now_ms () + patience_ms (s) };
  s->clients[client].n_waiting++;
  snprintf (text, sizeof text, "#%u %s", s->next_tag, line);
  if (send (s->run->model_fd, text, strlen (text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    {
      no_longer_waits (s, w);
      answer_busy (s, client);
      return;
    }
  atomic_fetch_or (&s->run->page->attention, TD_ATTENTION_COMMANDS);
}

/* --- what is for all ranks of a run --- */

static bool
is_change (const char *line)
{
  static const char *const words[] = { "break ", "unbreak ", "rebreak " };

  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strncmp (line, words[i], strlen (words[i])) == 0)
      return true;
  return false;
}

/* An expression that is none goes to nobody. */
static bool
check_change (const char *line, char *error, size_t size)
{
  TdBreak *b;

  if (strlen (line) >= TD_ALIKE_TEXT)
    {
      snprintf (error, size, "too long for a command to all ranks");
      return false;
    }
  if (strncmp (line, "break ", strlen ("break ")) != 0)
    return true;
  b = td__break_parse (line + strlen ("break "), error, size);
  if (b != NULL)
    td__break_free (b);
  return b != NULL;
}

static void
change_all (TdControlServer *s, int client, const char *line)
{
  char error[256], ask[64];
  uint64_t number;

  if (!check_change (line, error, sizeof error))
    answer_error (s, client, error);
  else if (!td__alike_put_change (td__alike_of (s->run->ranks), line, &number))
    answer_error (s, client, "no more changes of breakpoints of all ranks in this run");
  else
    {
      snprintf (ask, sizeof ask, TD_ALIKE_ASK "%" PRIu64, number);
      forward_to_model (s, client, ask);
    }
}

/* What one rank is told all do, though this one may wait in a call that another does not come
 * to.  False: it is for this one alone. */
static bool
tell_all (TdControlServer *s, int client, const char *line)
{
  const TdWhere *ranks = s->run->ranks;
  TdJsonLine answer;

  if (ranks == NULL || ranks->pages == NULL || s->run->model_fd < 0
      || !td__alike_takes_part (ranks, ranks->rank))
    return false;
  if (is_change (line))
    change_all (s, client, line);
  else if (td__alike_is_move (line))
    {
      td__alike_tell (ranks, line);
      send_line (s, client, td__json_line_ok (&answer, NULL), -1);
    }
  else
    return false;
  return true;
}

static void
take_line (TdControlServer *s, int client, char *line)
{
  size_t n = strlen (line);
  const char *rest;

  if (n > 0 && line[n - 1] == '\r')
    line[n - 1] = '\0';
  for (unsigned i = 0; i < sizeof own_commands / sizeof *own_commands; i++)
    if ((rest = rest_of (line, i)) != NULL)
      {
        own_commands[i].answer (s, client, rest);
        return;
      }
  if (*line != '\0' && !tell_all (s, client, line))
    forward_to_model (s, client, line);
}

/* Take the whole lines that have come, as long as none waits for the model. */
static void
take_lines (TdControlServer *s, int i)
{
  Client *c = &s->clients[i];
  char *end;

  while (c->fd >= 0 && c->n_waiting == 0 && (end = memchr (c->line, '\n', c->used)) != NULL)
    {
      char line[LINE_BYTES];
      size_t length = (size_t)(end - c->line);

      memcpy (line, c->line, length);
      line[length] = '\0';
      c->used -= length + 1;
      memmove (c->line, end + 1, c->used);
      c->asked = true;
      c->heard_ms = now_ms ();
      take_line (s, i, line);
    }
  if (c->fd >= 0 && c->n_waiting == 0 && c->used == sizeof c->line - 1)
    {
      answer_error (s, i, "the line is too long");
      drop_client (s, i);
    }
}

static void
read_client (TdControlServer *s, int i)
{
  Client *c = &s->clients[i];
  ssize_t n = recv (c->fd, c->line + c->used, sizeof c->line - 1 - c->used, MSG_DONTWAIT);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0)
    {
      drop_client (s, i);
      return;
    }
  c->used += (size_t)n;
  take_lines (s, i);
}

const char *
td_control_notice (TdJsonLine *line, const char *text)
{
  TdJsonWriter *json = td__json_line_begin (line, NULL);

  td__json_member_string (json, "event", "notice");
  put_text (json, "text", text);
  return td__json_line_end (line);
}

/* Is client `a` to go rather than `b`?  One that has never said a line, or but half of one,
 * before one that has; then the one that has been silent longest. */
static bool
goes_before (const Client *a, const Client *b)
{
  return a->asked != b->asked ? !a->asked : a->heard_ms < b->heard_ms;
}

/* A place for a client: where there is none left, whoever is least missed makes room. */
static int
find_place (TdControlServer *s)
{
  TdJsonLine line;
  int place = 0;

  for (int i = 0; i < MAX_CLIENTS; i++)
    if (s->clients[i].fd < 0)
      return i;
    else if (goes_before (&s->clients[i], &s->clients[place]))
      place = i;
  send_line (s, place, td_control_notice (&line, "too many clients"), -1);
  if (s->clients[place].fd >= 0)
    drop_client (s, place);
  return place;
}

static void
accept_client (TdControlServer *s)
{
  int fd = accept4 (s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  struct ucred peer;
  socklen_t size = sizeof peer;

  if (fd < 0)
    return;
  if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
      && (peer.uid == getuid () || peer.uid == 0))
    {
      Client *c = &s->clients[find_place (s)];

      c->fd = fd;
      c->used = 0;
      c->asked = false;
      c->heard_ms = now_ms ();
    }
  else
    close (fd);
}

/* A message of the model: "#TAG JSON" or "! JSON", perhaps with a descriptor. */
static bool
read_model (TdControlServer *s)
{
  char text[LINE_BYTES];
  struct iovec part = { text, sizeof text - 1 };
  union
  {
    struct cmsghdr head;
    char room[CMSG_SPACE (sizeof (int))];
  } control;
  struct msghdr message = { .msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control.room };
  ssize_t n = recvmsg (s->run->model_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  struct cmsghdr *c;
  char *space;
  int memory = -1;

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (n <= 0)
    {
      close (s->run->model_fd);
      s->run->model_fd = -1;
      return false;
    }
  text[n] = '\0';
  c = CMSG_FIRSTHDR (&message);
  if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
    memcpy (&memory, CMSG_DATA (c), sizeof memory);
  space = strchr (text, ' ');
  if (text[0] == '!' && space != NULL)
    {
      s->run->event (s->run->user, space + 1);
      td_control_server_notify (s, space + 1);
    }
  else if (text[0] == '#' && space != NULL)
    {
      uint32_t tag = (uint32_t)strtoul (text + 1, NULL, 10);

      for (int w = 0; w < MAX_WAITING; w++)
        if (tag != 0 && s->waiting[w].tag == tag)
          {
            send_line (s, no_longer_waits (s, w), space + 1, memory);
          }
    }
  if (memory >= 0)
    close (memory);
  return true;
}

int
td_control_server_poll_fds (TdControlServer *s, struct pollfd *fds)
{
  int n = 0;

  fds[n++] = (struct pollfd){ s->listener, POLLIN, 0 };
  fds[n++] = (struct pollfd){ s->run->model_fd, POLLIN, 0 }; /* poll passes over -1 */
  for (int i = 0; i < MAX_CLIENTS; i++)
    fds[n++]
        = (struct pollfd){ s->clients[i].n_waiting > 0 ? -1 : s->clients[i].fd, POLLIN, 0 };
  return n;
}

/* Commands that the model did not answer in time are answered for it; what it says later is
 * dropped, since its tag is no longer known. */
static void
expire (TdControlServer *s)
{
  int64_t now = now_ms ();

  for (int w = 0; w < MAX_WAITING; w++)
    if (s->waiting[w].tag != 0 && (s->run->model_fd < 0 || s->waiting[w].deadline_ms <= now))
      {
        int client = no_longer_waits (s, w);

        if (client >= 0)
          answer_busy (s, client);
      }
}

/* ms until the next command is late, -1: none waits. */
static int
next_deadline (const TdControlServer *s)
{
  int64_t now = now_ms (), next = -1;

  for (int w = 0; w < MAX_WAITING; w++)
    if (s->waiting[w].tag != 0 && (next < 0 || s->waiting[w].deadline_ms - now < next))
      next = s->waiting[w].deadline_ms > now ? s->waiting[w].deadline_ms - now : 0;
  return (int)next;
}

int
td_control_server_serve (TdControlServer *s, const struct pollfd *fds, int n)
{
  if (n > 1 && (fds[1].revents & (POLLIN | POLLHUP | POLLERR)) && s->run->model_fd >= 0)
    while (s->run->model_fd >= 0 && read_model (s))
      ;
  if (n > 0 && (fds[0].revents & POLLIN))
    accept_client (s);
  for (int i = 0; i < MAX_CLIENTS && i + 2 < n; i++)
    if (s->clients[i].fd >= 0 && s->clients[i].fd == fds[i + 2].fd
        && (fds[i + 2].revents & (POLLIN | POLLHUP | POLLERR)))
      read_client (s, i);
  expire (s);
  for (int i = 0; i < MAX_CLIENTS; i++)
    take_lines (s, i);
  return next_deadline (s);
}
