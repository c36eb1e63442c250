/* The recording of a run: see recording.h.
 *
 * The ring lies beside the tape, locked, so that what a supervisor that is killed had not yet
 * written can be recovered from it.  The model inherits its descriptor.
 *
 * SPDX-License-Identifier: MIT */
#include "recording.h"

#include "command.h"
#include "runs-budget.h"

#include "tapedeck.h"
#include "td-tape-reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum
{
  UNRECORDED_RING = 65536,
  MAX_BEGINNING = 1 << 20,
  LOOK_EVERY_NS = 250000000
};

static bool
complain (const char *what, const char *why)
{
  fprintf (stderr, "tapedeck: %s: %s\n", what, why);
  return false;
}

/* ------------------------------------------------------------------------ beginning */

/* May this tape be written?  Of a tape that is there the lock goes with this descriptor, by
 * whatever name another run may know it. */
static bool
take_tape (TdRecording *r)
{
  const TdSupervisorOptions *o = r->options;
  bool may = true;
  char error[256];
  struct stat st;

  if (stat (o->tape, &st) != 0)
    return true;
  if (o->overwrite && S_ISREG (st.st_mode)) /* before the lock: who closes a file unlocks it */
    may = td_tape_may_replace (o->tape, error, sizeof error);
  if (S_ISREG (st.st_mode))
    r->tape_fd = open (o->tape, O_RDWR | O_CLOEXEC);
  if (r->tape_fd >= 0 && !td_tape_lock (r->tape_fd))
    return complain (o->tape, TD_TAPE_TAKEN);
  if (!may)
    return complain (o->tape, error);
  return o->overwrite || complain (o->tape, "exists already; -f overwrites it");
}

bool
td_recording_open_ring (TdRecording *r, const TdSupervisorOptions *o)
{
  char error[256];
  TdRingOptions options = { .capacity = o->tape != NULL ? 0 : UNRECORDED_RING,
                            .level = o->level,
                            .rank = o->rank,
                            .n_ranks = o->n_ranks,
                            .budget_bytes = o->budget_bytes,
                            .values_bytes = o->values_bytes,
                            .tape = o->tape };
  int fd;

  r->options = o;
  r->tape_fd = -1;
  r->cut_at = -1;
  if (o->tape == NULL)
    r->ring = td_ring_new_nameless (&options, error, sizeof error);
  else
    {
      char path[sizeof r->ring_path];

      if ((size_t)snprintf (path, sizeof path, "%s.ring", o->tape) >= sizeof path)
        return complain (o->tape, strerror (ENAMETOOLONG));
      fd = td_ring_lock (path, error, sizeof error);
      if (fd < 0)
        return complain (o->tape, error);
      if (!take_tape (r))
        {
          td_ring_unlock (path, fd);
          return false;
        }
      r->ring = td_ring_new_locked (path, fd, &options, error, sizeof error);
      if (r->ring != NULL)
        memcpy (r->ring_path, path, sizeof path);
    }
  if (r->ring == NULL)
    return complain (o->tape != NULL ? o->tape : "tapedeck", error);
  td_ring_consume (r->ring);
  td_ring_guard (r->ring);
  return true;
}

/* What the reader needs of a tape before all else, in case somebody cuts it off. */
static void
keep_beginning (TdRecording *r)
{
  struct stat st;

  if (fstat (r->tape_fd, &st) != 0 || st.st_size > MAX_BEGINNING)
    return;
  r->largest = st.st_size;
  r->beginning = malloc ((size_t)st.st_size);
  if (r->beginning != NULL
      && pread (r->tape_fd, r->beginning, (size_t)st.st_size, 0) == st.st_size)
    r->n_beginning = (size_t)st.st_size;
}

bool
td_recording_open_tape (TdRecording *r)
{
  const TdSupervisorOptions *o = r->options;
  char error[256];
  TdTapeWriterOptions options = { .size = sizeof options,
                                  .level = o->level,
                                  .path = o->tape,
                                  .overwrite = o->overwrite,
                                  .budget_bytes = o->budget_bytes,
                                  .rate_bytes = o->rate_bytes,
                                  .values_bytes = o->values_bytes,
                                  .rank = o->rank,
                                  .n_ranks = o->n_ranks,
                                  .mono_ns = r->ring->shared->mono_ns,
                                  .ticks = r->ring->shared->ticks,
                                  .ns_per_tick = r->ring->shared->ns_per_tick };

  if (o->tape == NULL)
    return true;
  r->writer = td_tape_writer_new (&options, error, sizeof error);
  if (r->writer == NULL)
    return complain (o->tape, error);
  if (r->tape_fd < 0)
    r->tape_fd = open (o->tape, O_RDWR | O_CLOEXEC);
  if (r->tape_fd < 0)
    return complain (o->tape, strerror (errno));
  keep_beginning (r);
  r->assembler = td_assembler_new (r->writer, r->ring->shared);
  return r->assembler != NULL;
}

/* ------------------------------------------------------------------------ while it runs */

static void
put_notice_of (TdTapeWriter *w, TdTapeNoticeKind kind, int32_t status, const char *text,
               uint64_t iteration)
{
  TdTapeNotice notice = { .iteration = iteration,
                          .event = TD_TAPE_NONE,
                          .kind = kind,
                          .status = status,
                          .text = td_tape_writer_string (w, text) };

  td_tape_writer_notice (w, &notice);
}

/* Say on the tape why it holds less than the program did. */
static void
put_notice (TdTapeWriter *w, const char *text, uint64_t iteration)
{
  put_notice_of (w, TD_TAPE_NOTICE_RECORDING, TD_TAPE_NOTICE_LOST, text, iteration);
}

void
td_recording_say (TdRecording *r, const char *text)
{
  if (r->assembler == NULL || r->cut_at >= 0 || r->wrong[0] != '\0')
    return;
  put_notice_of (r->writer, TD_TAPE_NOTICE_ERROR, TD_ERR_STATE, text,
                 td_assembler_state (r->assembler)->iteration);
  td_tape_writer_flush (r->writer);
}

void
td_recording_note (TdRecording *r, const char *text)
{
  if (r->assembler == NULL || r->cut_at >= 0 || r->wrong[0] != '\0')
    return;
  put_notice_of (r->writer, TD_TAPE_NOTICE_TEXT, 0, text,
                 td_assembler_state (r->assembler)->iteration);
}

/* The recording is over, the program is not.  A tape that is deleted may be open somewhere. */
static void
stop (TdRecording *r, const char *why)
{
  snprintf (r->wrong, sizeof r->wrong, "%s", why);
  td_ring_abandon (r->ring);
  if (r->assembler == NULL || r->cut_at >= 0)
    return;
  put_notice (r->writer, why, td_assembler_state (r->assembler)->iteration);
  td_tape_writer_flush (r->writer);
}

/* Has somebody cut, replaced or deleted what we write?  Writing on behind the end would leave a
 * hole. */
static void
look_at_files (TdRecording *r)
{
  struct stat st;
  char text[128];

  if (r->wrong[0] != '\0' || r->tape_fd < 0)
    return;
  if (fstat (r->tape_fd, &st) == 0)
    {
      if (st.st_nlink == 0)
        stop (r, "the tape was deleted while it was recorded");
      else if (st.st_size < r->largest)
        {
          r->cut_at = st.st_size;
          snprintf (text, sizeof text, "the tape was cut to %lld bytes while it was recorded",
                    (long long)st.st_size);
          stop (r, text);
        }
      else if (r->writer != NULL && td_tape_writer_lost (r->writer))
        {
          r->cut_at = st.st_size; /* where it was cut nobody knows: it has grown again */
          stop (r, td_tape_writer_error (r->writer));
        }
      r->largest = st.st_size;
    }
  if (r->wrong[0] == '\0' && td_ring_is_cut (r->ring))
    stop (r, "the ring was cut short: recording has stopped");
}

/* Several recordings may have one budget: how much of it this one has changes as they grow. */
static void
look_at_budget (TdRecording *r)
{
  const TdSupervisorOptions *o = r->options;
  struct timespec t;
  uint64_t now, share;

  if (o->runs_bytes == 0 || r->writer == NULL)
    return;
  clock_gettime (CLOCK_MONOTONIC, &t);
  now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
  if (r->looked_ns != 0 && now - r->looked_ns < LOOK_EVERY_NS)
    return;
  share = td_runs_budget_share (o->tape, o->runs_bytes, r->ring,
                                td_tape_writer_bytes (r->writer));
  if (r->looked_ns == 0 && share <= TD_RUNS_BUDGET_LEAST && !o->quiet)
    fprintf (stderr,
             "tapedeck: the budget of all recordings is taken: this one keeps its first "
             "iteration, and of the others hardly more than summaries\n");
  r->looked_ns = now;
  td_tape_writer_limit (r->writer, share);
}

size_t
td_recording_drain (TdRecording *r)
{
  struct stat st;
  size_t n = 0;
  const char *error;

  look_at_files (r);
  look_at_budget (r);
  if (r->assembler == NULL || r->cut_at >= 0 || td_ring_is_cut (r->ring)
      || (r->wrong[0] != '\0' && td_tape_writer_error (r->writer) == NULL))
    return 0;
  n = td_assembler_drain (r->assembler, r->ring);
  error = td_tape_writer_error (r->writer);
  if (error != NULL)
    look_at_files (r); /* it may have been found out in there */
  if (error != NULL && r->wrong[0] == '\0')
    snprintf (r->wrong, sizeof r->wrong, "%s", error);
  if (fstat (r->tape_fd, &st) == 0 && st.st_size > r->largest)
    r->largest = st.st_size;
  return n;
}

/* ------------------------------------------------------------------------ the end */

static TdTapeEnd
end_of (const TdRecording *r)
{
  const bool signalled = WIFSIGNALED (r->status);

  return (TdTapeEnd){ .status = signalled ? -1 : WEXITSTATUS (r->status),
                      .signal = signalled ? WTERMSIG (r->status) : 0 };
}

/* Does the program that has ended leave this tape without an end?  One that is there from
 * before was never its own, whatever number its program had. */
static bool
lacks_end (const TdRecording *r, pid_t pid, TdTapeEnd *end)
{
  char error[256];
  struct timespec t;
  TdTapeReader *reader = td_tape_reader_open (r->options->own_tape, error, sizeof error);
  const TdTapeHeader *h = reader != NULL ? td_tape_reader_header (reader) : NULL;
  uint32_t n_events;
  bool lacks = h != NULL && h->pid == pid && h->mono_ns >= r->ring->shared->mono_ns
               && td_tape_reader_end (reader) == NULL
               && !td_tape_reader_damage (reader, error, sizeof error);

  if (lacks)
    {
      td_tape_reader_head (reader, &end->iteration, &n_events);
      clock_gettime (CLOCK_MONOTONIC, &t);
      end->time_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - h->mono_ns;
    }
  td_tape_reader_free (reader);
  return lacks;
}

/* A program that writes its tape itself, and could not say how it ended.  Who closes any
 * descriptor of a file unlocks it: readers do. */
static void
end_own (const TdRecording *r, pid_t pid, bool killed_by_us)
{
  const int fd = open (r->options->own_tape, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  TdTapeEnd end = end_of (r);
  TdTapeWriter *w = NULL;
  char error[256];
  struct stat st;

  if (fd < 0)
    return;
  if (fstat (fd, &st) == 0 && S_ISREG (st.st_mode) && td_tape_lock (fd)
      && lacks_end (r, pid, &end))
    w = td_tape_writer_continue (r->options->own_tape, error, sizeof error);
  if (w != NULL && td_tape_lock (fd))
    {
      end.by = killed_by_us;
      td_tape_writer_end (w, &end);
    }
  td_tape_writer_free (w);
  close (fd);
}

void
td_recording_end (TdRecording *r, pid_t pid, int status, bool killed_by_us)
{
  r->status = status;
  if (r->options->own_tape != NULL)
    end_own (r, pid, killed_by_us);
  if (r->assembler == NULL)
    return;
  look_at_files (r);
  if (r->wrong[0] == '\0' && atomic_load (&r->ring->shared->gave_up))
    stop (r, "the program waited too long for the recorder");
  td_assembler_end (r->assembler, r->ring, status, killed_by_us);
  td_tape_writer_flush (r->writer);
  look_at_files (r);
}

static bool
copy_over (const char *from, int to)
{
  static char part[65536];
  int fd = open (from, O_RDONLY | O_CLOEXEC);
  off_t at = 0;
  ssize_t n;

  while (fd >= 0 && (n = read (fd, part, sizeof part)) > 0)
    {
      if (pwrite (to, part, (size_t)n, at) != n)
        break;
      at += n;
    }
  if (fd < 0)
    return false;
  close (fd);
  return n == 0 && ftruncate (to, at) == 0;
}

/* Whose is the file that we were writing?  One that was cut, and may have grown again, begins
 * as ours, or with zeros, as far as it goes; what somebody has put there is left alone.
 * `begins`: its first segment is there, too. */
static bool
is_ours (const TdRecording *r, bool *begins)
{
  static const char zeros[sizeof (TdTapeHeader)];
  char head[sizeof zeros];
  uint32_t magic;
  bool ours;
  const ssize_t n
      = r->n_beginning >= sizeof head ? pread (r->tape_fd, head, sizeof head, 0) : -1;

  if (n < 0)
    return false;
  ours = memcmp (head, r->beginning, (size_t)n) == 0;
  *begins = ours
            && pread (r->tape_fd, &magic, sizeof magic, TD_TAPE_TAIL_OFFSET) == sizeof magic
            && magic == TD_TAPE_SEGMENT_MAGIC;
  return ours || memcmp (head, zeros, (size_t)n) == 0;
}

/* A tape that was cut: what lies before the cut, as a whole tape that says what happened.  In
 * the same file, which readers have open. */
static void
mend (TdRecording *r)
{
  char beside[4300], error[256];
  TdTapeReader *reader;
  TdTapeWriter *w;
  TdTapeSummaries s = { 0 };
  const TdTapeEnd end = end_of (r);
  uint64_t last = 0;
  bool ended, begins;

  if (!is_ours (r, &begins))
    return;
  snprintf (beside, sizeof beside, "%s.%ld", r->options->tape, (long)getpid ());
  if (ftruncate (r->tape_fd, r->cut_at) != 0
      || ((!begins || r->cut_at < (off_t)r->n_beginning)
          && pwrite (r->tape_fd, r->beginning, r->n_beginning, 0) != (ssize_t)r->n_beginning)
      || !td_tape_repair (r->options->tape, beside, error, sizeof error))
    return;
  reader = td_tape_reader_open (beside, error, sizeof error);
  ended = reader != NULL && td_tape_reader_end (reader) != NULL;
  if (reader != NULL)
    s = td_tape_reader_summaries (reader);
  if (s.n > 0)
    last = s.rows[s.n - 1].number;
  td_tape_reader_free (reader);
  w = reader != NULL ? td_tape_writer_continue (beside, error, sizeof error) : NULL;
  if (w != NULL)
    {
      put_notice (w, r->wrong, last);
      if (!ended)
        td_tape_writer_end (w, &end);
      td_tape_writer_free (w);
      copy_over (beside, r->tape_fd);
    }
  unlink (beside);
}

/* The tape of a run that has made nothing would be in the way of the next one. */
static void
drop_refused (const TdRecording *r)
{
  char error[256];
  TdTapeReader *reader;
  TdTapeSummaries s = { 0 };
  bool begins, empty;

  if (!r->options->drops_refused || !WIFEXITED (r->status)
      || WEXITSTATUS (r->status) != TD_EXIT_USAGE || !is_ours (r, &begins))
    return;
  reader = td_tape_reader_open (r->options->tape, error, sizeof error);
  empty = reader != NULL;
  if (reader != NULL)
    s = td_tape_reader_summaries (reader);
  for (uint32_t i = 0; i < s.n; i++)
    empty = empty && s.rows[i].n_events == 0;
  td_tape_reader_free (reader);
  if (empty)
    unlink (r->options->tape);
}

void
td_recording_close (TdRecording *r)
{
  const bool written = r->writer != NULL;

  td_assembler_free (r->assembler);
  td_tape_writer_free (r->writer);
  if (r->cut_at >= 0)
    mend (r);
  else if (written)
    drop_refused (r);
  if (r->tape_fd >= 0)
    close (r->tape_fd);
  if (r->ring_path[0] != '\0')
    unlink (r->ring_path); /* drained: the tape has it all.  While it is locked */
  td_ring_free (r->ring);
  free (r->beginning);
}
