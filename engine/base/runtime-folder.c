/* The folder of control sockets: see runtime-folder.h.  SPDX-License-Identifier: MIT */
#include "runtime-folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* "/tapedeck-", the numbers of a user and a process and "/.sock" follow; an address holds 108
 * bytes. */
enum
{
  MAX_RUNTIME_BYTES = 70
};

bool
td__make_folders (char *path)
{
  for (char *at = path + 1;; at++)
    {
      char old = *at;

      if (old != '/' && old != '\0')
        continue;
      *at = '\0';
      if (mkdir (path, 0700) != 0 && errno != EEXIST)
        return false;
      *at = old;
      if (old == '\0')
        return true;
    }
}

/* Somebody else's folder of that name must get neither our sockets nor our programs. */
static bool
is_own_folder (const char *path)
{
  struct stat s;

  return lstat (path, &s) == 0 && S_ISDIR (s.st_mode) && s.st_uid == getuid ();
}

bool
td__temporary_folder (char *out, size_t size, const char **why)
{
  const char *tmp = getenv ("TAPEDECK_TMPDIR");

  if (tmp == NULL || tmp[0] != '/' || strlen (tmp) >= MAX_RUNTIME_BYTES)
    tmp = "/tmp";
  snprintf (out, size, "%s/tapedeck-%ld", tmp, (long)getuid ());
  if (!td__make_folders (out))
    *why = strerror (errno);
  else if (!is_own_folder (out))
    *why = "belongs to another user";
  else
    return true;
  return false;
}

bool
td__runtime_folder (char *out, size_t size, const char **why)
{
  const char *runtime = getenv ("XDG_RUNTIME_DIR");
  struct stat s;

  /* After su it is still the other user's, and root could write there. */
  if (runtime != NULL && runtime[0] == '/' && strlen (runtime) < MAX_RUNTIME_BYTES
      && stat (runtime, &s) == 0 && s.st_uid == getuid ())
    {
      snprintf (out, size, "%s/tapedeck", runtime);
      if (td__make_folders (out) && is_own_folder (out) && access (out, W_OK) == 0)
        return true;
    }
  return td__temporary_folder (out, size, why);
}

bool
td__socket_answers (const char *path)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  bool answers;
  int fd;

  if (strlen (path) >= sizeof address.sun_path)
    return false;
  strcpy (address.sun_path, path);
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  answers = fd >= 0
            && (connect (fd, (const struct sockaddr *)&address, sizeof address) == 0
                || errno == EAGAIN); /* its queue is full */
  if (fd >= 0)
    close (fd);
  return answers;
}

/* PID.sock or PID.ring of a process that is gone.  A process of another container, whose number
 * means nothing here, still answers at its socket. */
static bool
is_left_behind (const char *folder, const char *name)
{
  char path[4200], *end;
  const long pid = strtol (name, &end, 10);

  if (pid <= 0 || (strcmp (end, ".sock") != 0 && strcmp (end, ".ring") != 0)
      || kill ((pid_t)pid, 0) == 0 || errno != ESRCH)
    return false;
  snprintf (path, sizeof path, "%s/%ld.sock", folder, pid);
  return !td__socket_answers (path);
}

void
td__runtime_clear (const char *folder)
{
  DIR *dir = opendir (folder);
  struct dirent *entry;

  while (dir != NULL && (entry = readdir (dir)) != NULL)
    if (is_left_behind (folder, entry->d_name))
      unlinkat (dirfd (dir), entry->d_name, 0);
  if (dir != NULL)
    closedir (dir);
}
