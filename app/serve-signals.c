/* The thread that waits for signals, and looks after slow clients in between.  Signals come to
 * handlers, since libraries have threads of their own from the start, which nobody can tell to
 * leave a signal alone.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum
{
  LOOK_EVERY_MS = 50
};

static int event = -1;
static pthread_t thread;
static atomic_bool stops, hurries, ends, reload;
static uint64_t timeout_ms, most_clients;

static void
on_signal (int number)
{
  const int saved = errno;
  const uint64_t one = 1;

  if (number == SIGHUP)
    reload = true;
  else if (!stops)
    stops = true;
  else
    {
      hurries = true;
      signal (number, SIG_DFL); /* and a third one is not ours */
    }
  if (write (event, &one, sizeof one) < 0) /* it is full, then: the thread is awake */
    errno = saved;
  errno = saved;
}

static void *
wait_and_look (void *unused)
{
  struct pollfd p[1 + TD_MOST_LINGER] = { { .fd = event, .events = POLLIN } };
  uint64_t n, looked = 0;

  while (!ends)
    {
      const int n_linger = td_linger_polls (p + 1);

      if (poll (p, 1 + (nfds_t)n_linger, LOOK_EVERY_MS) > 0 && (p[0].revents & POLLIN)
          && read (event, &n, sizeof n) > 0)
        td_serve_queue_wake ();
      td_linger_read (p + 1, n_linger);
      if (td_serve_now_ns () - looked > LOOK_EVERY_MS * 900000u)
        {
          td_clients_look (timeout_ms, most_clients);
          looked = td_serve_now_ns ();
        }
    }
  td_linger_end ();
  return unused;
}

bool
td_serve_signals_begin (const TdServeOptions *o)
{
  static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
  const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
  int wrong = 0;

  timeout_ms = o->timeout_ms;
  most_clients = o->connections;
  event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0)
    wrong = errno;
  signal (SIGPIPE, SIG_IGN);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    sigaction (numbers[i], &action, NULL);
  if (wrong == 0)
    wrong = pthread_create (&thread, NULL, wait_and_look, NULL);
  if (wrong != 0)
    fprintf (stderr, "tapedeck: serve: %s\n", strerror (wrong));
  return wrong == 0;
}

void
td_serve_signals_end (void)
{
  const uint64_t one = 1;

  ends = true;
  if (write (event, &one, sizeof one) > 0)
    pthread_join (thread, NULL);
}

bool
td_serve_stops (void)
{
  return stops;
}

bool
td_serve_hurries (void)
{
  return hurries;
}

bool
td_serve_reload_wanted (void)
{
  return atomic_exchange (&reload, false);
}
