/* What the supervisor of a rank tells the other ranks, and hears of them: what its program
 * runs, how it ended, who does not come.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "control-server.h"
#include "supervisor.h"
#include "whereabouts.h"

typedef struct
{
  TdWhere where;
  bool named; /**< by `tapedeck run -n`, which removes the file, too */
  int64_t looked_ns;
  uint32_t *seen;     /**< of each rank's findings */
  uint64_t n_moves;   /**< that were looked at, of those to all ranks */
  int64_t stopped_ns; /**< another has stopped; 0: none */
  char stopped[480];  /**< which, and why */
} TdRankWatch;

/** Begin this rank's page, with the address of its control socket ("": none), and name the file
 * in the environment; does nothing where there is one rank only. */
void td_rank_watch_open (TdRankWatch *w, const TdSupervisorOptions *options,
                         const char *address);
/** The program runs. */
void td_rank_watch_begin (TdRankWatch *w, pid_t pid);
/** Look, unless that was a moment ago.  A rank has said of others that they do not come: its
 * line, once, or NULL.  now: whether or not it was a moment ago. */
const char *td_rank_watch_look (TdRankWatch *w, const TdControlRun *run, bool now);
/** Another rank has stopped for a reason of its own, and this one, which is to stop with it,
 * does not, since it waits: a line about it, once, or NULL. */
const char *td_rank_watch_stopped (TdRankWatch *w);
/** mpirun has told this rank to end. */
void td_rank_watch_told (TdRankWatch *w);
/** Why it told so, into text: "rank 1 was ended by signal 9 (Killed)"; false: nobody knows, or
 * td_rank_watch_look has said it. */
bool td_rank_watch_reason (const TdRankWatch *w, char *text, size_t size);
/** The signal by which the whole run has been told to end; 0: it has not. */
int td_rank_watch_ended_by (const TdRankWatch *w);
/** The program has ended: by a signal, or with the status that this process ends with.  now:
 * where it was then. */
void td_rank_watch_end (TdRankWatch *w, const TdWhereNow *now, int status, int signal);
void td_rank_watch_close (TdRankWatch *w);
