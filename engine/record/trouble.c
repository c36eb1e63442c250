/* What a program says when its recording comes to an end before it.
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"
#include "td-tape-reader.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool
td__recorder_say_trouble (TdRecorder *r)
{
  const char *error = td_tape_writer_error (r->writer);

  if (error == NULL || td__engine.recording_failed)
    return td__engine.recording_failed;
  fprintf (stderr, "tapedeck: %s: %s; the program runs on unrecorded\n",
           r->tape != NULL ? r->tape : "the tape", error);
  td__engine.recording_failed = true;
  return true;
}

/* Whoever read our standard error may have died with the supervisor, and that is no reason to
 * end the program by SIGPIPE. */
static void
say (const char *text)
{
  static const struct timespec now;
  sigset_t pipe, old, pending;
  ssize_t written;

  sigpending (&pending);
  sigemptyset (&pipe);
  sigaddset (&pipe, SIGPIPE);
  pthread_sigmask (SIG_BLOCK, &pipe, &old);
  written = write (2, text, strlen (text));
  if (written < 0 && !sigismember (&pending, SIGPIPE))
    sigtimedwait (&pipe, NULL, &now);
  pthread_sigmask (SIG_SETMASK, &old, NULL);
}

/* The first iteration that is not whole on the tape. What the recorder said of it last is a
 * batch of the ring old: it may have died between writing and saying so, and the tape knows. */
static uint64_t
count_taped (const TdRingShared *shared)
{
  const uint64_t said = atomic_load (&shared->n_taped);
  char error[160];
  TdTapeReader *reader = td_tape_reader_open_bounded (shared->tape, 1, error, sizeof error);
  const TdTapeSummaries s
      = reader != NULL ? td_tape_reader_summaries (reader) : (TdTapeSummaries){ 0 };
  const uint64_t there = s.n > 0 ? s.rows[s.n - 1].number + 1 : 0;

  td_tape_reader_free (reader);
  return there > said ? there : said;
}

void
td__recorder_say_lost (TdRing *ring)
{
  const TdRingShared *shared = ring->shared;
  const uint64_t n = shared->tape[0] != '\0' ? count_taped (shared) : 0;
  char text[3 * sizeof shared->tape + 256], ends[64] = "has no whole iteration";

  if (shared->tape[0] == '\0')
    return;
  if (n > 0)
    snprintf (ends, sizeof ends, "ends with iteration %" PRIu64, n - 1);
  snprintf (text, sizeof text,
            "tapedeck: the recorder is gone and recording has stopped: %s %s; what follows, up "
            "to %" PRIu64 " MiB, is in %s.ring (tapedeck check %s --repair OUT)\n",
            shared->tape, ends, shared->capacity >> 20, shared->tape, shared->tape);
  say (text);
}
