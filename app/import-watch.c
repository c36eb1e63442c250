/* Progress and end of an import.  Signals only set a flag: the import looks at it, takes away
 * what it has written, and returns.
 *
 * SPDX-License-Identifier: MIT */
#include "import-watch.h"

#include "command.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SILENT_NS 1000000000u /* nobody needs to hear of what takes less */
#define PARTS 1000

static volatile sig_atomic_t cancelled;
static const int signals[] = { SIGINT, SIGTERM };

static void
on_signal (int number)
{
  cancelled = number;
}

static uint64_t
now_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const char *
stage_name (TdTapeImportStage stage)
{
  static const char *const names[] = { [TD_TAPE_IMPORT_READING] = "reading",
                                       [TD_TAPE_IMPORT_ARRANGING] = "arranging",
                                       [TD_TAPE_IMPORT_WRITING] = "writing" };

  return names[stage];
}

/* Has it moved, by what can be seen in `parts` parts? */
static bool
moved (TdImportWatch *w, TdTapeImportStage stage, double part, int parts)
{
  const int now = (int)(part * parts);

  if (stage == w->stage && now == w->part)
    return false;
  w->stage = stage;
  w->part = now;
  return true;
}

/* Whoever reads it may have gone, and then nobody wants the tape. */
static void
print_line (void *user, TdTapeImportStage stage, double part)
{
  TdImportWatch *w = user;

  if (moved (w, stage, part, PARTS)
      && (printf ("%d of %d %s\n", w->part, PARTS, stage_name (stage)) < 0
          || fflush (stdout) != 0))
    cancelled = SIGPIPE;
}

static void
print_on_terminal (void *user, TdTapeImportStage stage, double part)
{
  TdImportWatch *w = user;

  if (now_ns () - w->start_ns >= SILENT_NS && moved (w, stage, part, 100))
    fprintf (stderr, "\rtapedeck: %s: %s, %d %%\033[K", w->name, stage_name (stage), w->part);
}

void
td_import_watch_begin (TdImportWatch *w, const char *path, bool lines)
{
  const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
  const char *slash = strrchr (path, '/');

  *w = (TdImportWatch){ .options = { .size = sizeof w->options,
                                     .progress = lines        ? print_line
                                                 : isatty (2) ? print_on_terminal
                                                              : NULL,
                                     .user = w,
                                     .cancel = &cancelled },
                        .name = slash != NULL ? slash + 1 : path,
                        .start_ns = now_ns (),
                        .part = -1 };
  for (int i = 0; i < 2; i++)
    {
      sigaction (signals[i], NULL, &w->before[i]);
      if (w->before[i].sa_handler != SIG_IGN) /* as nohup and a script's & have it */
        sigaction (signals[i], &action, NULL);
    }
  if (lines)
    signal (SIGPIPE, SIG_IGN);
}

int
td_import_watch_end (TdImportWatch *w, const char *error)
{
  if (w->options.progress == print_on_terminal && w->part >= 0)
    fputs ("\r\033[K", stderr);
  for (int i = 0; i < 2; i++)
    sigaction (signals[i], &w->before[i], NULL);
  if (error == NULL)
    return TD_EXIT_OK;
  if (cancelled == 0)
    fprintf (stderr, "tapedeck: %s\n", error);
  else
    fputs ("tapedeck: import: cancelled; nothing was written\n", stderr);
  return cancelled != 0 ? 128 + cancelled : TD_EXIT_USAGE;
}
