/* Starts `tapedeck run` for a model and watches it: where its tape and socket are, what it and
 * the model print, how it ended. The supervisor is a process of its own; the app is only its
 * client. SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

#define TD_TYPE_RUNNER (td_runner_get_type ())
G_DECLARE_FINAL_TYPE (TdRunner, td_runner, TD, RUNNER, GObject)

/** What is run and how it is recorded: the options of `tapedeck run`. Texts that are NULL or
 * empty leave an option out. */
typedef struct
{
  const char *program; /* a .c file, a .py script, an .onnx model or an executable */
  const char *const *args;
  const char *level; /* graph, stats or values */
  const char *tape_budget, *tape_rate, *values_budget;
  const char *runs_budget; /* of the window's runs together: not for a terminal */
  const char *device, *stop, *seed, *iterations, *keyframes;
  const char
      *pause; /* the iteration before which it waits for the window: not for a terminal */
  const char *const *environment; /* NULL: the app's own */
  const char *directory;          /* NULL: a fresh folder for this run */
} TdRunOptions;

/** Whether it is a PyTorch script, which writes its tape itself. */
gboolean td_runner_is_script (const char *program);

/** Whether it is an ONNX model, which `tapedeck run` gives inputs. */
gboolean td_runner_is_model (const char *program);

/** Start a program under supervision, in a session of its own: what ends the app or its
 * terminal does not end the program. Signals: "output" (line, is_stderr), "tape" once the tape
 * exists, "ended" (exit status as of wait). Owner: caller. Errors: NULL and `error` when
 * tapedeck is not installed beside the app. */
TdRunner *td_runner_new (const TdRunOptions *options, GError **error);

/** Have `tapedeck run` read the options and start nothing. Errors: FALSE and its one line in
 * `error`. Sync: waits for the command, some milliseconds. */
gboolean td_runner_check (const TdRunOptions *options, GError **error);

/** Write the options as the command line that does the same in a terminal, with `tape` as its
 * tape. Owner: caller. */
char *td_runner_dup_command (const TdRunOptions *options, const char *tape);

/** Return the tape the run writes. Owner: the runner. */
const char *td_runner_get_tape (TdRunner *self);

/** Return the address of the control socket. Owner: the runner. */
const char *td_runner_get_address (TdRunner *self);

/** Return what the supervisor and the model wrote to stderr last, at most 16 kB. */
const char *td_runner_get_stderr (TdRunner *self);

/** Say whether the process still runs and was not detached from. */
gboolean td_runner_is_running (TdRunner *self);

/** Ask the supervisor to end the program: SIGTERM. */
void td_runner_stop (TdRunner *self);

/** Let the program run on when the app goes; what it prints stays in stdout.log and stderr.log
 * beside the tape. */
void td_runner_detach (TdRunner *self);

/** Return the path of an executable of this installation or build tree, or NULL. Owner: caller.
 */
char *td_runner_find_executable (const char *name);
