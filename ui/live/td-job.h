/* A command of `tapedeck` as a child of the window, which writes one tape: how far it is, how
 * it ended. What it does to itself, a crash or all memory taken, is no more than its end.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

#define TD_TYPE_JOB (td_job_get_type ())
G_DECLARE_FINAL_TYPE (TdJob, td_job, TD, JOB, GObject)

/** Make a job whose tape lies in a folder of its own below `parent` (NULL: for temporary
 * files), which goes with the job and all that is in it. Signals: "progress" (double, 0 to 1;
 * text: what it is doing, ""), and once "ended" (text: what is not well, "": nothing, NULL: it
 * was cancelled). Owner: caller; the app stays until the process has gone. Errors: NULL and
 * `error`.
 */
TdJob *td_job_new (const char *parent, GError **error);

/** Return where its tape is to be written. Owner: the job. */
const char *td_job_get_result (TdJob *self);

/** Start `tapedeck` with these arguments, the first of which is the command's name. It says its
 * progress on standard output, lines "DONE of ALL" and what it is doing, and on standard error
 * what is not well. Errors: FALSE and `error`. */
gboolean td_job_start (TdJob *self, const char *const *arguments, GError **error);

/** Return how far it said that it is, 0 to 1, and what it was doing. Owner: the job. */
double td_job_get_part (TdJob *self, const char **doing);

/** Return the signal that ended it; 0: none did. */
int td_job_get_signal (TdJob *self);

/** Return the number of its process, NULL when that has gone. Owner: the job. */
const char *td_job_get_process (TdJob *self);

/** End it: "ended" comes at once, its process and folder go afterwards. */
void td_job_cancel (TdJob *self);

/** End it, and tell `listener` nothing more. Owner: takes `self`; NULL is allowed. */
void td_job_drop (TdJob *self, gpointer listener);
