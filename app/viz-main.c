/*
 * tapedeck-viz: the views of a tape without a window. `tapedeck show` and `tapedeck diff` start
 * it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replace.h"
#include "scene/td-scene.h"
#include "utf8.h"
#include "viz-commands.h"

#define EXIT_TROUBLE 2

static const struct
{
  const char *name;
  int (*run) (int argc, char **argv);
} commands[] = {
  { "show", td_viz_show },   { "diff", td_viz_diff },   { "dot", td_viz_dot },
  { "leaks", td_viz_leaks }, { "ranks", td_viz_ranks },
};

static int
run (int argc, char **argv)
{
  for (gsize i = 0; argc > 1 && i < G_N_ELEMENTS (commands); i++)
    if (strcmp (argv[1], commands[i].name) == 0)
      return commands[i].run (argc - 1, argv + 1);
  if (argc > 1 && strcmp (argv[1], "--version") == 0)
    {
      printf ("tapedeck-viz %s\n", TD_VERSION);
      return 0;
    }
  fprintf (stderr,
           "usage: tapedeck-viz show|diff|leaks|ranks|dot ...; try tapedeck show --help\n");
  return EXIT_TROUBLE;
}

int
main (int argc, char **argv)
{
  int status;

  signal (SIGXFSZ, SIG_IGN); /* a file beyond the limit of sizes is a full disk */
  setlocale (LC_CTYPE,
             "C.UTF-8"); /* messages are UTF-8 whatever the caller's locale; numbers stay C */
  status = run (argc, argv);
  if (td__stdout_end ())
    return status;
  fprintf (stderr, "tapedeck: standard output: %s\n", g_strerror (errno));
  return EXIT_TROUBLE;
}
