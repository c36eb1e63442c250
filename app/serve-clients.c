/* The connections, and how long each may take: libmicrohttpd counts from the last byte that
 * came, so that a client that sends one now and then would hold its connection for ever.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum
{
  PATIENCE_NS = 1000000000 /* without a request, where others wait for a connection */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TdServeConnection *clients, *oldest; /* the newest, and the oldest */
static _Atomic int n_clients, n_busy;

static bool
is_busy (int state)
{
  return state == TD_CLIENT_RECEIVING || state == TD_CLIENT_WORKING
         || state == TD_CLIENT_SENDING;
}

/* Behind the back of libmicrohttpd, which writes nothing to a connection whose request is not
 * whole.  What does not fit the socket is not said. */
static void
say (const TdServeConnection *c, int status, const char *reason, const char *why)
{
  char text[400];
  const int n = snprintf (text, sizeof text,
                          "HTTP/1.1 %d %s\r\nConnection: close\r\n"
                          "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n"
                          "{\"error\":\"%s\"}",
                          status, reason, strlen (why) + strlen ("{\"error\":\"\"}"), why);

  if (send (c->fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) == n)
    td_serve_count_status (status);
}

TdServeConnection *
td_client_new (int fd)
{
  TdServeConnection *c = calloc (1, sizeof *c);

  if (c == NULL)
    return NULL;
  c->fd = fd;
  c->since_ns = td_serve_now_ns ();
  pthread_mutex_lock (&lock);
  c->after = clients;
  *(clients != NULL ? &clients->before : &oldest) = c;
  clients = c;
  pthread_mutex_unlock (&lock);
  n_clients++;
  return c;
}

/* Its descriptor is closed behind this.  libmicrohttpd says nothing to what is no HTTP at all.
 */
void
td_client_free (TdServeConnection *c)
{
  pthread_mutex_lock (&lock);
  *(c->before != NULL ? &c->before->after : &clients) = c->after;
  *(c->after != NULL ? &c->after->before : &oldest) = c->before;
  pthread_mutex_unlock (&lock);
  n_clients--;
  n_busy -= is_busy (c->state);
  if (c->lingers)
    td_linger_begin (c->fd);
  free (c);
}

bool
td_client_go (TdServeConnection *c, TdClientState from, TdClientState to)
{
  int expected = (int)from;

  c->since_ns = td_serve_now_ns ();
  if (!atomic_compare_exchange_strong (&c->state, &expected, (int)to))
    return false;
  n_busy += is_busy ((int)to) - is_busy ((int)from);
  return true;
}

/* What a client is told whose connection is closed, if it can still listen. */
static bool
drop (TdServeConnection *c, int state, int status, const char *reason, const char *why)
{
  if (!td_client_go (c, (TdClientState)state, TD_CLIENT_DROPPED))
    return false; /* it went on just now */
  if (state == TD_CLIENT_RECEIVING && c->status == 413)
    say (c, 413, "Content Too Large", "the body is larger than --max-body allows");
  else if (state == TD_CLIENT_NEW || state == TD_CLIENT_RECEIVING)
    say (c, status, reason, why);
  shutdown (c->fd, SHUT_RDWR);
  return true;
}

static void
drop_slow (TdServeConnection *c, int state, const char *why)
{
  if (drop (c, state, 408, "Request Timeout", why) && state != TD_CLIENT_IDLE)
    td_serve_count (TD_SERVE_DROPPED);
}

/* Nothing has come that could be answered. */
static bool
has_no_request (const TdServeConnection *c, int state)
{
  return state == TD_CLIENT_NEW || state == TD_CLIENT_IDLE
         || (state == TD_CLIENT_RECEIVING && !c->has_head);
}

/* Every connection is taken, and who comes now would wait until one times out: an eighth of
 * them is taken back, the oldest first. */
static void
make_room (uint64_t now, uint64_t most)
{
  uint64_t wanted = most / 8 + 1;

  for (TdServeConnection *c = oldest; c != NULL && wanted > 0; c = c->before)
    {
      const int state = c->state;
      const uint64_t since = c->since_ns;

      if (!has_no_request (c, state) || now < since + PATIENCE_NS)
        continue;
      drop_slow (c, state, "no request came within a second, and all connections are taken");
      wanted--;
    }
}

void
td_clients_look (uint64_t timeout_ms, uint64_t most)
{
  const uint64_t now = td_serve_now_ns ();
  char why[100];

  snprintf (why, sizeof why, "the request did not come within %llu ms",
            (unsigned long long)timeout_ms);
  pthread_mutex_lock (&lock);
  for (TdServeConnection *c = clients; c != NULL; c = c->after)
    {
      const int state = c->state;
      const uint64_t since = c->since_ns;

      if (state == TD_CLIENT_WORKING || state == TD_CLIENT_DROPPED || now <= since
          || now - since <= timeout_ms * 1000000u)
        continue;
      drop_slow (c, state, why);
    }
  if ((uint64_t)n_clients >= most)
    make_room (now, most);
  pthread_mutex_unlock (&lock);
}

void
td_clients_stop (bool bodies, bool answers)
{
  pthread_mutex_lock (&lock);
  for (TdServeConnection *c = clients; c != NULL; c = c->after)
    {
      const int state = c->state;

      if ((state == TD_CLIENT_RECEIVING && (bodies || !c->has_head))
          || (state == TD_CLIENT_SENDING && answers))
        drop (c, state, 503, "Service Unavailable", "the server stops");
    }
  pthread_mutex_unlock (&lock);
}

void
td_clients_count (int *n, int *busy)
{
  *n = n_clients;
  *busy = n_busy;
}
