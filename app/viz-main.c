/*
 * tapedeck-viz: the views of a tape without a window. `tapedeck show` and `tapedeck diff` start
 * it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "viz-commands.h"

#define EXIT_TROUBLE 2

static const struct
{
  const char *name;
  int (*run) (int argc, char **argv);
} commands[] = {
  { "show", td_viz_show },
  { "diff", td_viz_diff },
  { "dot", td_viz_dot },
  { "leaks", td_viz_leaks },
};

int
main (int argc, char **argv)
{
  setlocale (LC_CTYPE,
             "C.UTF-8"); /* messages are UTF-8 whatever the caller's locale; numbers stay C */
  for (gsize i = 0; argc > 1 && i < G_N_ELEMENTS (commands); i++)
    if (strcmp (argv[1], commands[i].name) == 0)
      return commands[i].run (argc - 1, argv + 1);
  if (argc > 1 && strcmp (argv[1], "--version") == 0)
    {
      printf ("tapedeck-viz %s\n", TD_VERSION);
      return 0;
    }
  fprintf (stderr, "usage: tapedeck-viz show|diff|leaks|dot ...; try tapedeck show --help\n");
  return EXIT_TROUBLE;
}
