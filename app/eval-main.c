/* tapedeck-eval: what of `tapedeck` needs the engine itself, with OpenBLAS and oneDNN behind
 * it: calls of operations, and the list of devices.  `tapedeck` starts it.
 *
 * SPDX-License-Identifier: MIT */
#include "command.h"

#include "replace.h"
#include "tapedeck.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int
run (int argc, char **argv)
{
  if (argc > 1 && strcmp (argv[1], "eval") == 0)
    return td_command_eval (argc - 1, argv + 1);
  if (argc == 2 && strcmp (argv[1], "backends") == 0)
    return printf ("backends: %s\n", td_device_backends ()), TD_EXIT_OK;
  fputs ("usage: tapedeck-eval eval ... | backends; try tapedeck eval --help\n", stderr);
  return TD_EXIT_USAGE;
}

int
main (int argc, char **argv)
{
  int status;

  td_repair_inheritance ();
  status = run (argc, argv);
  if (td__stdout_end ())
    return status;
  fprintf (stderr, "tapedeck: standard output: %s\n", strerror (errno));
  return TD_EXIT_USAGE;
}
