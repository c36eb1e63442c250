/* mpirun and its hosts: see mpirun.h.  SPDX-License-Identifier: MIT */
#include "mpirun.h"

#include "number.h"
#include "program.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
  OLDEST = 4,
  MOST_SLOTS = 1000000
};

/* What a program prints, the end of it cut off; *status: how it ended.  False: it cannot be
 * run. */
static bool
hear (char **argv, char *text, size_t size, int *status)
{
  char beyond[4096];
  posix_spawn_file_actions_t files;
  int fds[2], failed;
  size_t used = 0;
  ssize_t n;
  pid_t pid;

  if (pipe2 (fds, O_CLOEXEC) != 0)
    return false;
  posix_spawn_file_actions_init (&files);
  posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2 (&files, fds[1], 1);
  posix_spawn_file_actions_adddup2 (&files, fds[1], 2);
  failed = posix_spawnp (&pid, argv[0], &files, NULL, argv, environ);
  posix_spawn_file_actions_destroy (&files);
  close (fds[1]);
  while (
      failed == 0 && used + 1 < size
      && ((n = read (fds[0], text + used, size - 1 - used)) > 0 || (n < 0 && errno == EINTR)))
    used += n > 0 ? (size_t)n : 0;
  text[used] = '\0';
  while (failed == 0
         && ((n = read (fds[0], beyond, sizeof beyond)) > 0 || (n < 0 && errno == EINTR)))
    ;
  close (fds[0]);
  while (failed == 0 && waitpid (pid, status, 0) < 0 && errno == EINTR)
    ;
  return failed == 0;
}

/* What `PROGRAM --version` prints; false: it cannot be run. */
static bool
ask (const char *program, char *text, size_t size)
{
  char *argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t) "--version", NULL };
  int status;

  return hear (argv, text, size, &status);
}

/* Pages of mpirun's stand between lines of dashes, and have empty lines. */
static bool
is_frame (const char *line)
{
  return line[strspn (line, "- \t")] == '\0';
}

void
td_mpirun_complain (char **argv)
{
  char text[8192] = "", *rest = NULL;
  int status = 0;

  if (!hear (argv, text, sizeof text, &status) || status == 0)
    return;
  for (char *line = strtok_r (text, "\r\n", &rest); line != NULL;
       line = strtok_r (NULL, "\r\n", &rest))
    if (!is_frame (line))
      fprintf (stderr, "%s: %s\n", argv[0], line + strspn (line, " \t"));
}

int
td_mpirun_version (const char *program)
{
  static const char ours[] = "(Open MPI) ";
  const int trouble = td_program_trouble (program);
  char text[4096] = "";
  const char *at;
  int version;

  if (trouble == ENOENT)
    fprintf (
        stderr,
        "tapedeck: %s: not found; -n needs Open MPI (on Debian: apt install openmpi-bin)\n",
        program);
  else if (trouble != 0 || !ask (program, text, sizeof text))
    fprintf (stderr, "tapedeck: %s: %s\n", program, strerror (trouble != 0 ? trouble : errno));
  if (trouble != 0 || text[0] == '\0')
    return 0;
  at = strstr (text, ours);
  version = at != NULL ? atoi (at + strlen (ours)) : 0;
  if (version >= OLDEST)
    return version;
  text[strcspn (text, "\n")] = '\0';
  if (at != NULL)
    fprintf (stderr, "tapedeck: %s: %.200s: Open MPI %d or newer expected\n", program, text,
             OLDEST);
  else
    fprintf (stderr,
             "tapedeck: %s is not Open MPI's, whose library the ranks use: it says \"%.200s\"; "
             "TAPEDECK_MPIRUN names another\n",
             program, text);
  return 0;
}

/* --- machines --- */

static bool
is_name (const char *word)
{
  static const char more[] = ".-_:@%[]"; /* users, addresses */

  if (!isalnum ((unsigned char)word[0]) && word[0] != '[')
    return false;
  for (; *word != '\0'; word++)
    if (!isalnum ((unsigned char)*word) && strchr (more, *word) == NULL)
      return false;
  return true;
}

/* "slots=4": its number, 0 where it is another; -1: nonsense. */
static long
slots_of (const char *word)
{
  static const char *const keys[] = { "slots", "max_slots", "max-slots", "port" };
  const char *equals = strchr (word, '=');

  for (size_t i = 0; equals != NULL && i < sizeof keys / sizeof *keys; i++)
    {
      uint64_t n;

      if (strlen (keys[i]) != (size_t)(equals - word)
          || strncmp (word, keys[i], (size_t)(equals - word)) != 0)
        continue;
      if (!td_parse_number (equals + 1, strlen (equals + 1), &n) || n == 0 || n > MOST_SLOTS)
        return -1;
      return i == 0 ? (long)n : 0;
    }
  return -1;
}

/* One line; -1: nonsense, at *word; 0: it has no machine, or does not say its slots. */
static long
read_line (char *line, char **word, bool *has_machine)
{
  long slots = 0, n;
  char *rest = NULL;

  line[strcspn (line, "#\n")] = '\0';
  *word = strtok_r (line, " \t", &rest);
  *has_machine = *word != NULL;
  if (*word == NULL)
    return 0;
  if (!is_name (*word))
    return -1;
  while ((*word = strtok_r (NULL, " \t", &rest)) != NULL)
    {
      n = slots_of (*word);
      if (n < 0)
        return -1;
      slots = n > 0 ? n : slots;
    }
  return slots;
}

bool
td_mpirun_hosts (const char *path, long *slots)
{
  FILE *f = fopen (path, "re");
  char line[1024], *word = NULL;
  int number = 0, n_machines = 0;
  bool all_say = true, has, ends_in_cr = false;
  long n = 0;

  *slots = 0;
  if (f == NULL)
    {
      fprintf (stderr, "tapedeck: %s: %s\n", path, strerror (errno));
      return false;
    }
  while (n >= 0 && fgets (line, sizeof line, f) != NULL)
    {
      number++;
      ends_in_cr = strchr (line, '\r') != NULL;
      n = ends_in_cr ? -1
          : strlen (line) + 1 < sizeof line || strchr (line, '\n') != NULL
              ? read_line (line, &word, &has)
              : -1;
      if (n < 0)
        break;
      n_machines += has;
      all_say &= !has || n > 0;
      *slots += n;
    }
  if (n >= 0 && ferror (f))
    fprintf (stderr, "tapedeck: %s: %s\n", path, strerror (errno));
  else if (ends_in_cr)
    fprintf (stderr, "tapedeck: %s:%d: the line ends in CR and LF: mpirun reads LF only\n",
             path, number);
  else if (n < 0)
    fprintf (stderr, "tapedeck: %s:%d: \"%.60s\": a line is NAME [slots=N]\n", path, number,
             word != NULL ? word : "");
  else if (n_machines == 0)
    fprintf (stderr, "tapedeck: %s: no machine in it\n", path);
  n = n < 0 || ferror (f) || n_machines == 0 ? -1 : 0;
  fclose (f);
  if (!all_say)
    *slots = 0;
  return n == 0;
}
