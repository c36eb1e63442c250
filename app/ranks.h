/* `tapedeck run -n N`: the same model as several processes, by mpirun, each with a supervisor
 * and a tape of its own in one folder.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/** Of more `tapedeck ranks` reads no tapes. */
#define TD_MOST_RANKS 65536

/** What it needs to know. */
typedef struct
{
  int n;               /**< ranks */
  const char *hosts;   /**< a file of machines, or NULL: all on this one */
  const char *model;   /**< what the user called it */
  const char *program; /**< what is executed: model, or what it was compiled to */
  char **argv;         /**< of the model, from its own name on, NULL at the end */
  char **options;      /**< of `tapedeck run`, for each rank, NULL at the end */
  const char *folder;  /**< of the tapes, NULL: the usual one, in the working folder */
  bool overwrite, quiet;
} TdRanksOptions;

/** Run all ranks to their end.  Returns the exit status: the worst of theirs. */
int td_run_ranks (const TdRanksOptions *options);

/** Write the path of a rank's tape in such a folder. */
void td_rank_tape (const char *folder, int rank, char *out, unsigned long size);
/** Write the path of the file where ranks say where they are. */
void td_rank_board (const char *folder, char *out, unsigned long size);
