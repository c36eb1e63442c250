/* Talks to tapedeck-layout over a socket pair, never longer than it was allowed to.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layout/td-layout-reply.h"

#define MAX_REPLY (64u << 20) /* more than any answer for 600 nodes */

extern char **environ;

struct TdLayoutHelper
{
  pid_t pid;
  int fd;
};

/* $TAPEDECK_LIBEXECDIR, beside this program, where the build put it, where it was installed. */
char *
td__layout_helper_find (void)
{
  const char *given = g_getenv ("TAPEDECK_LIBEXECDIR");
  char *self = g_file_read_link ("/proc/self/exe", NULL);
  char *beside = self ? g_path_get_dirname (self) : g_strdup ("/");
  char *found = NULL;
  char *places[]
      = { given ? g_build_filename (given, "tapedeck-layout", NULL) : NULL,
          g_build_filename (beside, "tapedeck-layout", NULL),
          g_build_filename (beside, "..", "app", "tapedeck-layout", NULL),
          g_build_filename (beside, "..", "..", "app", "tapedeck-layout", NULL),
          g_build_filename (beside, "..", "libexec", "tapedeck", "tapedeck-layout", NULL),
          g_build_filename (TD_LIBEXECDIR, "tapedeck-layout", NULL) };

  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    {
      if (!found && places[i] && g_file_test (places[i], G_FILE_TEST_IS_EXECUTABLE))
        found = g_strdup (places[i]);
      g_free (places[i]);
    }
  g_free (beside);
  g_free (self);
  return found;
}

TdLayoutHelper *
td__layout_helper_new (GError **error)
{
  char *path = td__layout_helper_find ();
  char *argv[] = { path, NULL };
  posix_spawn_file_actions_t actions;
  int fds[2], status;
  pid_t pid;
  TdLayoutHelper *self;

  if (!path)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "tapedeck-layout is not installed");
      return NULL;
    }
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "no socket for tapedeck-layout: %s",
                   g_strerror (errno));
      g_free (path);
      return NULL;
    }
  posix_spawn_file_actions_init (&actions);
  posix_spawn_file_actions_adddup2 (&actions, fds[1], 0);
  posix_spawn_file_actions_adddup2 (&actions, fds[1], 1);
  status = posix_spawn (&pid, path, &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy (&actions);
  close (fds[1]);
  if (status != 0)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", path, g_strerror (status));
      g_free (path);
      close (fds[0]);
      return NULL;
    }
  g_free (path);
  fcntl (fds[0], F_SETFL, O_NONBLOCK);
  self = g_new0 (TdLayoutHelper, 1);
  self->pid = pid;
  self->fd = fds[0];
  return self;
}

void
td__layout_helper_free (TdLayoutHelper *self)
{
  close (self->fd);
  kill (self->pid, SIGKILL);
  while (waitpid (self->pid, NULL, 0) < 0 && errno == EINTR)
    ;
  g_free (self);
}

/* Wait until the socket can be read, or also written. Returns its events; 0 with `error` set.
 */
static gushort
wait_for (TdLayoutHelper *self, gboolean writing, gint64 deadline_us, GCancellable *cancellable,
          GError **error)
{
  GPollFD fds[2] = { { self->fd, (gushort)(G_IO_IN | (writing ? G_IO_OUT : 0)), 0 } };
  gboolean watched = cancellable && g_cancellable_make_pollfd (cancellable, &fds[1]);
  gint64 left = deadline_us - g_get_monotonic_time ();
  int n = g_poll (fds, watched ? 2 : 1, left > 0 ? (gint)((left + 999) / 1000) : 0);

  if (watched)
    g_cancellable_release_fd (cancellable);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return 0;
  if (n == 0 || g_get_monotonic_time () >= deadline_us)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "the layout takes too long");
      return 0;
    }
  return fds[0].revents ? fds[0].revents : G_IO_IN;
}

gboolean
td__layout_helper_ask (TdLayoutHelper *self, const char *request, gsize n_request,
                       GString *reply, gint64 deadline_us, GCancellable *cancellable,
                       GError **error)
{
  gsize sent = 0;
  char buffer[65536];

  g_string_truncate (reply, 0);
  while (sent < n_request || !td__layout_reply_is_whole (reply->str, reply->len))
    {
      gushort events = wait_for (self, sent < n_request, deadline_us, cancellable, error);
      gssize n = -1;

      if (!events)
        return FALSE;
      errno = EAGAIN;
      if (sent < n_request && (events & G_IO_OUT))
        {
          n = send (self->fd, request + sent, n_request - sent, MSG_NOSIGNAL);
          sent += n > 0 ? (gsize)n : 0;
        }
      else
        {
          n = recv (self->fd, buffer, sizeof buffer, 0);
          if (n > 0)
            g_string_append_len (reply, buffer, n);
        }
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || reply->len > MAX_REPLY)
        {
          g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "the layout helper died");
          return FALSE;
        }
    }
  return TRUE;
}
