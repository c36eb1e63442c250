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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TdServeConnection *clients;
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
  if (clients != NULL)
    clients->before = c;
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
  if (c->after != NULL)
    c->after->before = c->before;
  pthread_mutex_unlock (&lock);
  n_clients--;
  n_busy -= is_busy (c->state);
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

static void
drop (TdServeConnection *c, int state, uint64_t timeout_ms)
{
  char why[100];

  if (!td_client_go (c, (TdClientState)state, TD_CLIENT_DROPPED))
    return; /* it went on just now */
  if (state != TD_CLIENT_IDLE)
    td_serve_count (TD_SERVE_DROPPED);
  snprintf (why, sizeof why, "the request did not come within %llu ms",
            (unsigned long long)timeout_ms);
  if (state == TD_CLIENT_RECEIVING && c->status == 413)
    say (c, 413, "Content Too Large", "the body is larger than --max-body allows");
  else if (state == TD_CLIENT_NEW || state == TD_CLIENT_RECEIVING)
    say (c, 408, "Request Timeout", why);
  shutdown (c->fd, SHUT_RDWR);
}

void
td_clients_look (uint64_t timeout_ms)
{
  const uint64_t now = td_serve_now_ns ();

  pthread_mutex_lock (&lock);
  for (TdServeConnection *c = clients; c != NULL; c = c->after)
    {
      const int state = c->state;
      const uint64_t since = c->since_ns;

      if (state != TD_CLIENT_WORKING && state != TD_CLIENT_DROPPED && now > since
          && now - since > timeout_ms * 1000000u)
        drop (c, state, timeout_ms);
    }
  pthread_mutex_unlock (&lock);
}

void
td_clients_count (int *n, int *busy)
{
  *n = n_clients;
  *busy = n_busy;
}
