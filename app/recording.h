/* The recording of a run: its lock, its ring, its tape, and what becomes of them when somebody
 * deletes or cuts them under it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/assembler.h"
#include "supervisor.h"

typedef struct
{
  const TdSupervisorOptions *options;
  TdRing *ring;
  TdTapeWriter *writer;   /**< NULL: nothing is recorded */
  TdAssembler *assembler; /**< the same */
  char ring_path[4200];   /**< "": the ring has no name */
  int tape_fd;            /* our own look at the tape, -1: none */
  off_t largest;          /* the tape has been this long */
  off_t cut_at;           /* and somebody has cut it here, -1: nobody */
  char *beginning;        /* its first bytes, without which the rest cannot be read */
  size_t n_beginning;
  uint64_t looked_ns; /* for what other runs leave of a budget */
  int status;         /* how the program ended, as from waitpid */
  char wrong[256];    /**< why the recording is not whole, "" while it is */
} TdRecording;

/** Take the lock and make the ring.  *Errors*: false, said on stderr; nothing has been touched
 * of a recording that another run makes. */
bool td_recording_open_ring (TdRecording *r, const TdSupervisorOptions *options);

/** Make the tape, if there is to be one.  *Errors*: false, said on stderr. */
bool td_recording_open_tape (TdRecording *r);

/** Take what is in the ring.  Returns the bytes taken. */
size_t td_recording_drain (TdRecording *r);

/** Write what is wrong with the run, though not with this program. */
void td_recording_say (TdRecording *r, const char *text);

/** Put a text on the tape that is no error. */
void td_recording_note (TdRecording *r, const char *text);

/** Write how the program `pid` ended, also on a tape of its own that lacks it; `status` as from
 * waitpid. */
void td_recording_end (TdRecording *r, pid_t pid, int status, bool killed_by_us);

/** Close everything; a tape that was cut is made whole as far as it goes. */
void td_recording_close (TdRecording *r);
