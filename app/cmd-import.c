/* `tapedeck import`: what other programs recorded, as a tape; and such files given where a tape
 * is expected, which are made into one on the way.
 *
 * SPDX-License-Identifier: MIT */
#include "command.h"

#include "import-watch.h"
#include "paths.h"
#include "plural.h"
#include "td-tape-import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char help[]
    = "Usage: tapedeck import FILE [-f] [--progress] -o TAPE\n"
      "\n"
      "FILE is a memory snapshot, a trace, or a reference.\n"
      "A snapshot is what torch.cuda.memory._dump_snapshot () of PyTorch wrote: a pickle, of "
      "which\n"
      "only dictionaries, lists, texts and numbers are read.  What names code is refused.\n"
      "TAPE then has the blocks and the trace of allocations, for the views memory and "
      "blocks,\n"
      "and the stacks of both, for the view flame;\n"
      "a snapshot has no operations, and does not know who keeps a block.\n"
      "A trace is JSON as Chrome reads it and PyTorch's profiler (Kineto) writes it, plain or "
      "gzip.\n"
      "TAPE then has its operations in time, for the views timeline, flame and schedule: a "
      "step\n"
      "of the profiler is an iteration.  A trace has no arrays.\n"
      "A reference is an npz file with what layers of any framework returned, LAYER/out, "
      "their\n"
      "gradients, LAYER/grad, parameters, LAYER/NAME, and theirs, LAYER/NAME/grad: tapedeck\n"
      "diff compares it by layers.\n"
      "-f overwrites an existing TAPE.  --progress prints \"DONE of ALL STAGE\" on standard "
      "output,\n"
      "a line each: reading, arranging, writing.  SIGINT and SIGTERM end it, and leave no new "
      "TAPE.\n"
      "The other commands take such a FILE for a tape, too.\n\n"
      "The man page is tapedeck-import(1).";

static int
parse (int argc, char **argv, const char **from, const char **tape, bool *force, bool *progress)
{
  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "-o") == 0 && i + 1 < argc)
      *tape = argv[++i];
    else if (strcmp (argv[i], "-f") == 0)
      *force = true;
    else if (strcmp (argv[i], "--progress") == 0)
      *progress = true;
    else if (argv[i][0] == '-' && argv[i][1] != '\0')
      return td_usage_error (argv[0], "%s: no such option, or its value is missing", argv[i]);
    else if (*from != NULL)
      return td_usage_error (argv[0], "%s: one file expected", argv[i]);
    else
      *from = argv[i];
  if (*from == NULL)
    return td_usage_error (argv[0], "a snapshot, a trace or a reference expected");
  if (*tape == NULL)
    return td_usage_error (argv[0], "-o TAPE expected");
  return td_refuse_standard_output (argv[0], "-o", *tape);
}

static void
say_trace (const char *tape, const TdTapeImport *found)
{
  printf ("%s: %" PRIu64 " %s of %" PRIu64 " %s, in %" PRIu64 " %s (%" PRIu64
          " of the profiler), %u %s\n",
          tape, found->n_events, td_plural (found->n_events, "operation", "operations"),
          found->n_slices, td_plural (found->n_slices, "slice", "slices"), found->n_iterations,
          td_plural (found->n_iterations, "iteration", "iterations"), found->n_steps,
          found->n_devices, td_plural (found->n_devices, "device", "devices"));
  if (found->n_left_out > 0)
    printf ("%" PRIu64 " %s of other kinds left out: arrows, counters, moments\n",
            found->n_left_out, td_plural (found->n_left_out, "event is", "events are"));
}

static void
say_reference (const char *tape, const TdTapeImport *found)
{
  printf ("%s: %" PRIu64 " %s of %" PRIu64 " %s\n", tape, found->n_arrays,
          td_plural (found->n_arrays, "array", "arrays"), found->n_layers,
          td_plural (found->n_layers, "layer", "layers"));
  if (found->n_left_out > 0)
    printf ("%" PRIu64 " %s left out: tapedeck info says which\n", found->n_left_out,
            td_plural (found->n_left_out, "array is", "arrays are"));
}

/* What was odd in it is said, not hidden. */
static void
say_snapshot (const char *tape, const TdTapeImport *found)
{
  printf ("%s: %" PRIu64 " %s of a trace (%" PRIu64 " %s), %" PRIu64 " %s at its end, %" PRIu64
          " from before it, %u %s\n",
          tape, found->n_entries, td_plural (found->n_entries, "entry", "entries"),
          found->n_events, td_plural (found->n_events, "event", "events"), found->n_blocks,
          td_plural (found->n_blocks, "block", "blocks"), found->n_start, found->n_devices,
          td_plural (found->n_devices, "device", "devices"));
  if (found->n_dropped > 0)
    printf ("%" PRIu64 " older %s left out\n", found->n_dropped,
            td_plural (found->n_dropped, "entry is", "entries are"));
  if (found->n_unmatched > 0)
    printf ("%" PRIu64 " %s not agree with the rest of the trace\n", found->n_unmatched,
            td_plural (found->n_unmatched, "entry or block does", "entries or blocks do"));
}

int
td_command_import (int argc, char **argv)
{
  const char *from = NULL, *tape = NULL;
  TdTapeImport found = { .size = sizeof found };
  TdImportWatch watch;
  bool force = false, progress = false, done;
  char error[512];
  int status;

  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--help") == 0)
      return puts (help), TD_EXIT_OK;
  status = parse (argc, argv, &from, &tape, &force, &progress);
  if (status != TD_EXIT_OK)
    return status;
  td_import_watch_begin (&watch, from, progress);
  watch.options.overwrite = force;
  done = td_tape_import_with (from, tape, &watch.options, &found, error, sizeof error);
  status = td_import_watch_end (&watch, done ? NULL : error);
  if (status != TD_EXIT_OK)
    return status;
  if (found.n_slices > 0)
    say_trace (tape, &found);
  else if (found.n_layers > 0)
    say_reference (tape, &found);
  else
    say_snapshot (tape, &found);
  return TD_EXIT_OK;
}

/* ------------------------------------------------------------- files given as tapes */

static int
import_into_cache (const char *path, char *tape, size_t n)
{
  char folder[3072], error[512];
  TdImportWatch watch;
  bool done;

  if (!td_cache_folder ("import", td_tape_import_identity (path), folder, sizeof folder))
    return TD_EXIT_USAGE;
  td_import_watch_begin (&watch, path, false);
  done = td_tape_import_into (path, folder, &watch.options, tape, n, error, sizeof error);
  return td_import_watch_end (&watch, done ? NULL : error);
}

int
td_import_arguments (int argc, char **argv)
{
  for (int i = 0; i < argc; i++)
    {
      char tape[4200];
      struct stat s;
      int status;

      /* What is to be written may be there already. */
      if (argv[i][0] == '-' || (i > 0 && strcmp (argv[i - 1], "-o") == 0)
          || stat (argv[i], &s) != 0 || !S_ISREG (s.st_mode) || !td_tape_is_import (argv[i]))
        continue;
      status = import_into_cache (argv[i], tape, sizeof tape);
      if (status != TD_EXIT_OK)
        return status;
      argv[i] = strdup (tape); /* as long as the process */
      if (argv[i] == NULL)
        return TD_EXIT_USAGE;
    }
  return TD_EXIT_OK;
}
