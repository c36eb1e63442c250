/*
 * tapedeck leaks: what grows from iteration to iteration, who holds it, and what to do.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "memory/td-holders.h"
#include "td-session.h"
#include "viz-commands.h"

static const char help[] = "usage: tapedeck leaks TAPE [--json]\n"
                           "\n"
                           "Says what grows from iteration to iteration, and who holds it.\n"
                           "\n"
                           "Exit status: 0 nothing grows, 1 something does, 2 trouble.\n";

int
td_viz_leaks (int argc, char **argv)
{
  const char *tape = NULL, *format = "text";
  g_autoptr (GError) error = NULL;

  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--help") == 0)
      {
        fputs (help, stdout);
        return 0;
      }
    else if (strcmp (argv[i], "--json") == 0)
      format = "json";
    else if (argv[i][0] == '-' && argv[i][1])
      return td__viz_trouble ("leaks: unknown option %s; try tapedeck leaks --help", argv[i]);
    else
      tape = argv[i];
  if (!tape)
    return td__viz_trouble ("leaks: a tape is needed; try tapedeck leaks --help");
  g_autoptr (TdSession) session = td_session_open (tape, &error);
  if (!session)
    return td__viz_trouble ("%s", error->message);
  g_autoptr (TdHolders) holders = td_holders_new (td_session_get_reader (session), -1);
  if (!holders)
    return td__viz_trouble (
        "%s: no reference records on this tape: who holds what is not known", tape);
  g_autofree char *text = td_leaks_print (holders, format);
  fputs (text, stdout);
  return td_holders_n_growing (holders) > 0 ? 1 : 0;
}
