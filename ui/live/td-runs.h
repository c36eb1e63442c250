/* The folders of runs started from the desktop, `$XDG_STATE_HOME/tapedeck/runs/NAME-DATE-PID`:
 * each holds run.tdtape, stdout.log and stderr.log. Old ones are cleared away; what a program
 * wrote there itself, and tapes under any other name, stay. SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

/** Make a fresh folder for a run of `program`. Owner: caller. */
char *td_runs_make (const char *program);

/** Return the folder that holds the folders of runs. Owner: caller. */
char *td_runs_folder (void);

/** Return how many runs there are, and in `bytes` what they take. */
guint td_runs_measure (guint64 *bytes);

/** Clear away all but the newest `keep` runs (0: any number stays), and the oldest of them
 * until the rest takes at most `budget` bytes (0: no limit); never the newest for its size, and
 * never one whose program still writes or whose tape is among `open` (NULL-terminated paths,
 * may be NULL). Return how many were cleared, and in `bytes` what they took. */
guint td_runs_clear (guint keep, guint64 budget, const char *const *open, guint64 *bytes);
