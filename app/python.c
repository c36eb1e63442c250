/* Running a PyTorch script: finding the package and the library that it calls, and supervising
 * Python.
 *
 * SPDX-License-Identifier: MIT */
#include "python.h"
#include "command.h"

#include "td-tape-writer.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool
td_is_python (const char *name)
{
  const size_t n = strlen (name);

  return n > 3 && strcmp (name + n - 3, ".py") == 0;
}

/* The package before all others that Python knows, and the library, in a build tree or below
 * the prefix. */
static bool
set_environment (void)
{
  const char *before = getenv ("PYTHONPATH");
  char folder[4096], package[4400], probe[4500], path[16384];

  if (!td_own_folder (folder, sizeof folder))
    return false;
  snprintf (probe, sizeof probe, "%s/../engine/libtdproducer.so.0", folder);
  if (access (probe, R_OK) == 0) /* a build tree, which knows its source tree */
    snprintf (package, sizeof package, "%s/data/python", TD_SOURCE_ROOT);
  else
    {
      snprintf (probe, sizeof probe, "%s/" TD_LIB_FROM_BIN "/libtdproducer.so.0", folder);
      snprintf (package, sizeof package, "%s/" TD_DATA_FROM_BIN "/tapedeck/python", folder);
    }
  snprintf (path, sizeof path, "%s/tapedeck/__main__.py", package);
  if (access (path, R_OK) != 0 || access (probe, R_OK) != 0)
    {
      fprintf (stderr, "tapedeck: %s: the package for PyTorch is not installed\n", package);
      return false;
    }
  snprintf (path, sizeof path, "%s%s%s", package, before != NULL && *before != '\0' ? ":" : "",
            before != NULL ? before : "");
  return setenv ("PYTHONPATH", path, 1) == 0 && setenv ("TAPEDECK_PRODUCER", probe, 1) == 0;
}

/* What torch.distributed reads where a script says no more than init_process_group ("gloo"), as
 * torchrun sets it; what is set already stays. */
static bool
set_rank (void)
{
  static const char *const names[][2]
      = { { "RANK", "OMPI_COMM_WORLD_RANK" },
          { "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE" },
          { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK" },
          { "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE" } };

  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    {
      const char *value = getenv (names[i][1]);

      if (value != NULL && setenv (names[i][0], value, 0) != 0)
        return false;
    }
  return true;
}

void
td_python_meet (void)
{
  struct sockaddr_in address = { .sin_family = AF_INET };
  socklen_t size = sizeof address;
  char port[16];
  const int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (fd >= 0 && bind (fd, (struct sockaddr *)&address, size) == 0
      && getsockname (fd, (struct sockaddr *)&address, &size) == 0)
    {
      snprintf (port, sizeof port, "%d", ntohs (address.sin_port));
      setenv ("MASTER_ADDR", "127.0.0.1", 0);
      setenv ("MASTER_PORT", port, 0);
    }
  if (fd >= 0)
    close (fd);
}

const char *
td_python_tape (const char *script)
{
  static char tape[4096];
  const char *slash = strrchr (script, '/'), *name = slash != NULL ? slash + 1 : script;

  snprintf (tape, sizeof tape, "%.*s.tdtape", (int)(strlen (name) - strlen (".py")), name);
  return tape;
}

int
td_run_python (const TdSupervisorOptions *options)
{
  const char *python = getenv ("TAPEDECK_PYTHON");
  const char *head[12] = { python != NULL && *python != '\0' ? python : "python3", "-m",
                           "tapedeck", "--level", td_tape_level_name (options->level) };
  TdSupervisorOptions o = *options;
  char budget[32], *tape, **args;
  size_t n = 5, n_own = 0;
  int status;

  o.name = options->argv[0];
  o.own_tape = options->tape != NULL ? options->tape : td_python_tape (o.name);
  o.tape = NULL;
  if (access (o.name, R_OK) != 0)
    {
      fprintf (stderr, "tapedeck: %s: %s\n", o.name, strerror (errno));
      return TD_EXIT_NOT_FOUND;
    }
  if (!set_environment () || !set_rank ())
    return TD_EXIT_NOT_FOUND;
  if (o.overwrite)
    head[n++] = "-f";
  if (asprintf (&tape, "--tape=%s", o.own_tape) < 0) /* in one: it may begin with a dash */
    return TD_EXIT_USAGE;
  head[n++] = tape;
  snprintf (budget, sizeof budget, "%" PRIu64, o.budget_bytes);
  head[n++] = "--tape-budget";
  head[n++] = budget;
  while (o.argv[n_own] != NULL)
    n_own++;
  args = calloc (n + n_own + 2, sizeof *args);
  if (args == NULL)
    {
      free (tape);
      return TD_EXIT_USAGE;
    }
  for (size_t i = 0; i < n; i++)
    args[i] = (char *)(uintptr_t)head[i];
  args[n] = (char *)(uintptr_t) "--"; /* a script's name may look like an option */
  memcpy (args + n + 1, o.argv, n_own * sizeof *args);
  o.argv = args;
  o.program = args[0];
  status = td_supervise (&o);
  free (args);
  free (tape);
  return status;
}
