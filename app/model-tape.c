/* A tape of a model that nobody has run: see model-tape.h.
 *
 * SPDX-License-Identifier: MIT */
#include "model-tape.h"

#include "command.h"
#include "paths.h"
#include "td-tape-import.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum
{
  LONGEST = 4200
};

/* Runs it into a new tape; the child says what is wrong, unless it is not to speak.  Its own
 * words are about made-up inputs. */
static int
run_model (const char *model, char *tape, char *on, bool speaks)
{
  static char name[] = "tapedeck", run[] = "run", quiet[] = "--quiet", device[] = "--device",
              force[] = "-f", out[] = "-o";
  char *argv[]
      = { name, run, quiet, device, on, force, out, tape, (char *)(uintptr_t)model, NULL };
  posix_spawn_file_actions_t files;
  int status = 0, failed;
  pid_t pid;

  posix_spawn_file_actions_init (&files);
  posix_spawn_file_actions_addopen (&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (!speaks)
    posix_spawn_file_actions_addopen (&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  failed = posix_spawn (&pid, "/proc/self/exe", &files, NULL, argv, environ);
  posix_spawn_file_actions_destroy (&files);
  if (failed != 0)
    {
      fprintf (stderr, "tapedeck: %s: %s\n", model, strerror (failed));
      return TD_EXIT_USAGE;
    }
  while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
    ;
  return WIFEXITED (status) ? WEXITSTATUS (status) : TD_EXIT_USAGE;
}

/* Without arithmetic; with it where an If or a Loop goes by values that only arithmetic has. */
static bool
run_once (const char *model, char *tape)
{
  static char null[] = "null", cpu[] = "cpu";

  return run_model (model, tape, null, false) == 0 || run_model (model, tape, cpu, true) == 0;
}

static bool
make_tape (const char *model, char *tape, size_t n)
{
  const char *slash = strrchr (model, '/');
  char folder[3072], part[LONGEST];
  int length;

  if (!td_cache_folder ("models", td_tape_import_identity (model), folder, sizeof folder))
    return false;
  length = snprintf (tape, n, "%s/%s.tdtape", folder, slash != NULL ? slash + 1 : model);
  if (length < 0 || (size_t)length >= n
      || snprintf (part, sizeof part, "%s/%ld.part", folder, (long)getpid ())
             >= (int)sizeof part)
    {
      fprintf (stderr, "tapedeck: %s: the name is too long\n", model);
      return false;
    }
  if (access (tape, R_OK) == 0)
    return true;
  if (!run_once (model, part))
    {
      unlink (part);
      return false;
    }
  if (rename (part, tape) == 0)
    return true;
  fprintf (stderr, "tapedeck: %s: %s\n", tape, strerror (errno));
  unlink (part);
  return false;
}

int
td_model_arguments (int argc, char **argv)
{
  for (int i = 0; i < argc; i++)
    {
      char tape[LONGEST];

      if (argv[i][0] == '-' || (i > 0 && td_names_output (argv[i - 1])) || !td_is_onnx (argv[i])
          || access (argv[i], R_OK) != 0)
        continue;
      if (!make_tape (argv[i], tape, sizeof tape))
        return TD_EXIT_USAGE;
      argv[i] = strdup (tape); /* as long as the process */
      if (argv[i] == NULL)
        return TD_EXIT_USAGE;
    }
  return TD_EXIT_OK;
}
