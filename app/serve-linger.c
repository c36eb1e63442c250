/* Connections that were closed while their client was sending: were they closed for good, the
 * client's next bytes would have them reset, and with them the answer that it has not read yet.
 * *Source*: RFC 9112, 9.6.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum
{
  LINGER_NS = 2000000000,
  PART_BYTES = 65536
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct
{
  int fd;
  uint64_t until_ns;
} those[TD_MOST_LINGER];
static int n_those;

/* With a descriptor of its own, since the other is closed now. */
void
td_linger_begin (int fd)
{
  const int copy = fcntl (fd, F_DUPFD_CLOEXEC, 0);
  bool kept;

  if (copy < 0)
    return;
  shutdown (copy, SHUT_WR);
  pthread_mutex_lock (&lock);
  kept = n_those < TD_MOST_LINGER;
  if (kept)
    {
      those[n_those].fd = copy;
      those[n_those++].until_ns = td_serve_now_ns () + LINGER_NS;
    }
  pthread_mutex_unlock (&lock);
  if (!kept)
    close (copy);
}

int
td_linger_polls (struct pollfd *p)
{
  int n;

  pthread_mutex_lock (&lock);
  n = n_those;
  for (int i = 0; i < n; i++)
    p[i] = (struct pollfd){ .fd = those[i].fd, .events = POLLIN };
  pthread_mutex_unlock (&lock);
  return n;
}

/* False: there is no more to come. */
static bool
read_part (int fd)
{
  static char part[PART_BYTES];

  return recv (fd, part, sizeof part, MSG_DONTWAIT) > 0;
}

void
td_linger_read (const struct pollfd *p, int n)
{
  const uint64_t now = td_serve_now_ns ();
  int kept = 0;

  pthread_mutex_lock (&lock);
  for (int i = 0; i < n_those; i++)
    if (now > those[i].until_ns || (i < n && p[i].revents != 0 && !read_part (those[i].fd)))
      close (those[i].fd);
    else
      those[kept++] = those[i];
  n_those = kept;
  pthread_mutex_unlock (&lock);
}

void
td_linger_end (void)
{
  pthread_mutex_lock (&lock);
  while (n_those > 0)
    close (those[--n_those].fd);
  pthread_mutex_unlock (&lock);
}
