/* The supervisor: starts a model as its child, drains its ring onto a tape, serves its control
 * socket, and says how it ended.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** What `tapedeck run` was asked for. */
typedef struct
{
  const char *program;  /**< what is executed */
  const char *name;     /**< what the user called it: model.c */
  char **argv;          /**< of the model, argv[0] included, NULL at the end */
  const char *tape;     /**< NULL: nothing is recorded */
  const char *own_tape; /**< what the program writes itself, instead; or NULL */
  bool overwrite, quiet;
  bool drops_refused; /**< its program ends with 2 where it was asked wrongly: of a run without
                         operations no tape is left then */
  uint32_t level;
  uint64_t budget_bytes, values_bytes, rate_bytes;
  uint64_t runs_bytes;   /* of this recording and those beside it; 0: any number */
  const char *keyframes; /**< every how many iterations; NULL: none */
  const char *statics;   /* of static functions: TAPEDECK_STATIC */
  const char *device, *mem_limit, *seed,
      *iterations;     /**< passed on in the environment, or NULL */
  char *breaks;        /**< one a line, or NULL */
  const char *pause;   /**< the iteration before which it stops, for a client; or NULL */
  bool exit_at_break;  /**< no client is expected: the first stop ends the run with 3 */
  const char *control; /**< path of the socket, NULL: the usual one */
  const char *source;  /**< the model's source file to store on the tape, or NULL */
  uint32_t rank, n_ranks;
  const char *ranks_folder; /**< of all ranks' tapes, made by `tapedeck run -n`; or NULL */
  const char *hang_after, *on_hang; /**< passed on, or NULL */
} TdSupervisorOptions;

/** Run the model to its end.  Returns the exit status for `tapedeck run`. */
int td_supervise (const TdSupervisorOptions *options);
