/*
 * tapedeck ranks: where the ranks of one run part, who waits for whom, and what to do.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "ranks/td-ranks.h"
#include "viz-commands.h"

static const char help[]
    = "usage: tapedeck ranks FOLDER|TAPE... [--json] [-o FILE]\n"
      "\n"
      "Holds the tapes of all ranks of one run against each other, and says in one sentence "
      "for\n"
      "each cause where they part first: which rank, iteration, array and line. Then the "
      "ranks,\n"
      "with how they ended, how long they waited for others, and how far their clocks are "
      "off;\n"
      "and the last calls where ranks wait for each other. One TAPE stands for its siblings,\n"
      "whose names have another number after \"rank-\".\n"
      "\n"
      "Errors and warnings are findings; notes are not.\n"
      "\n"
      "Exit status: 0 nothing found, 1 ranks part, 2 trouble.\n";

int
td_viz_ranks (int argc, char **argv)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new ();
  g_autoptr (TdRanks) ranks = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  const char *format = "text", *out = "-";

  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--help") == 0)
      {
        fputs (help, stdout);
        return 0;
      }
    else if (strcmp (argv[i], "--json") == 0)
      format = "json";
    else if (strcmp (argv[i], "-o") == 0 && i + 1 < argc)
      out = argv[++i];
    else if (argv[i][0] == '-' && argv[i][1])
      return td__viz_trouble ("ranks: unknown option %s; try tapedeck ranks --help", argv[i]);
    else
      g_ptr_array_add (paths, argv[i]);
  if (paths->len == 0)
    return td__viz_trouble (
        "ranks: a folder or the tapes of a run are needed; try tapedeck ranks --help");
  ranks = td_ranks_open ((const char *const *)paths->pdata, paths->len, &error);
  if (!ranks)
    return td__viz_trouble ("%s", error->message);
  td_ranks_look (ranks);
  text = td_ranks_print (ranks, format);
  if (!td__viz_write_text (out, text, format, &error))
    return td__viz_trouble ("%s", error->message);
  return td_ranks_count_faults (ranks) > 0;
}
