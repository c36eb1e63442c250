/*
 * tapedeck leaks: what grows from iteration to iteration, who holds it, and what to do.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "memory/td-retained.h"
#include "td-session.h"
#include "viz-commands.h"

static const char help[] = "usage: tapedeck leaks TAPE [--by holder|site] [--json]\n"
                           "\n"
                           "Says what grows from iteration to iteration, and who holds it.\n"
                           "\n"
                           "--by holder   what handles of one place keep (default)\n"
                           "--by site     what one place of the program made\n"
                           "\n"
                           "Exit status: 0 nothing grows, 1 something does, 2 trouble.\n";

int
td_viz_leaks (int argc, char **argv)
{
  const char *tape = NULL, *format = "text";
  TdHoldersBy by = TD_HOLDERS_BY_HOLDER;
  g_autoptr (GError) error = NULL;

  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--help") == 0)
      {
        fputs (help, stdout);
        return 0;
      }
    else if (strcmp (argv[i], "--json") == 0)
      format = "json";
    else if (strcmp (argv[i], "--by") == 0)
      {
        const char *name = argv[++i];

        if (!name || !td_holders_by_find (name, &by))
          return td__viz_trouble (
              "leaks: --by needs holder or site; try tapedeck leaks --help");
      }
    else if (argv[i][0] == '-' && argv[i][1])
      return td__viz_trouble ("leaks: unknown option %s; try tapedeck leaks --help", argv[i]);
    else
      tape = argv[i];
  if (!tape)
    return td__viz_trouble ("leaks: a tape is needed; try tapedeck leaks --help");
  g_autoptr (TdSession) session = td_session_open (tape, &error);
  if (!session)
    return td__viz_trouble ("%s", error->message);
  if (td_session_is_snapshot (session))
    return td__viz_trouble ("%s: a memory snapshot is one moment, and does not say who keeps "
                            "what: what grows is not known",
                            tape);
  g_autoptr (TdHolders) holders = td_holders_new_by (td_session_get_reader (session), -1, by);
  if (!holders)
    return td__viz_trouble (
        "%s: no reference records on this tape: who holds what is not known", tape);
  g_autoptr (TdRetained) retained = td_retained_new (td_session_get_reader (session), -1);
  g_autofree char *text = td_leaks_print (holders, retained, format);
  if (!td__viz_write_text ("-", text, format, &error))
    return td__viz_trouble ("%s", error->message);
  return td_holders_n_growing (holders) > 0 ? 1 : 0;
}
