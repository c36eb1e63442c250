/* What the tape says about the program: where it is, whether it runs, how it ended, what it
 * noted.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-session-private.h"

#include "td-tape-import.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define CHEAP_US                                                                               \
  4000               /* what reading the running iteration may take and still be done at once */
#define LIVE_SHARE 5 /* else it may take a fifth of the time */
#define MAX_WAIT_US 500000

/* ---- is it there? ---- */

/* When the process began, in seconds since the epoch; 0 if that cannot be said. */
static double
start_of_process (int pid)
{
  char *path = g_strdup_printf ("/proc/%d/stat", pid);
  char *stat = NULL, *system_stat = NULL, *at;
  double start = 0;
  unsigned long long ticks = 0;

  if (g_file_get_contents (path, &stat, NULL, NULL)
      && g_file_get_contents ("/proc/stat", &system_stat, NULL, NULL)
      && (at = strrchr (stat, ')')) != NULL)
    {
      const char *boot = strstr (system_stat, "btime ");

      /* after the name come the state and 18 numbers, then the start */
      for (guint field = 0; at && field < 20; field++)
        at = strchr (at + 1, ' ');
      if (at && boot)
        {
          ticks = g_ascii_strtoull (at + 1, NULL, 10);
          start = (double)g_ascii_strtoull (boot + 6, NULL, 10)
                  + (double)ticks / (double)sysconf (_SC_CLK_TCK);
        }
    }
  g_free (path);
  g_free (stat);
  g_free (system_stat);
  return start;
}

gboolean
td__session_writer_lives (const TdTapeHeader *header)
{
  double start;

  if (header->pid <= 0 || (kill (header->pid, 0) != 0 && errno != EPERM))
    return FALSE;
  /* numbers are used again: a process that began after the tape did is another one */
  start = start_of_process (header->pid);
  return start == 0 || start <= (double)header->wall_ns / 1e9 + 2;
}

gboolean
td_session_tape_is_written (const char *path)
{
  TdTapeHeader header;
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  gboolean lives = fd >= 0 && pread (fd, &header, sizeof header, 0) == sizeof header
                   && memcmp (header.magic, TD_TAPE_MAGIC, sizeof header.magic) == 0
                   && td__session_writer_lives (&header);

  if (fd >= 0)
    close (fd);
  return lives;
}

/* ---- state ---- */

static gboolean
is_import (TdTapeReader *reader, const char *kind)
{
  return g_str_equal (td_tape_reader_info (reader, TD_TAPE_IMPORT_KEY), kind);
}

gboolean
td_session_is_snapshot (TdSession *self)
{
  TdTapeReader *reader = td_session_get_reader (self);

  return reader && is_import (reader, TD_TAPE_IMPORT_TORCH);
}

gboolean
td_session_is_trace (TdSession *self)
{
  TdTapeReader *reader = td_session_get_reader (self);

  return reader && is_import (reader, TD_TAPE_IMPORT_TRACE);
}

gboolean
td_session_is_reference (TdSession *self)
{
  TdTapeReader *reader = td_session_get_reader (self);

  return reader && is_import (reader, TD_TAPE_IMPORT_ARRAYS);
}

const char *
td_session_import_kind (const char *path)
{
  return td_tape_is_snapshot (path) ? "Snapshot"
         : td_tape_is_trace (path)  ? "Trace"
         : td_tape_is_arrays (path) ? "Reference"
                                    : NULL;
}

char *
td_session_dup_import (const char *path, GError **error)
{
  char hash[20], tape[4096], line[512];

  g_snprintf (hash, sizeof hash, "%016" G_GINT64_MODIFIER "x", td_tape_import_identity (path));
  g_autofree char *folder
      = g_build_filename (g_get_user_cache_dir (), "tapedeck", "import", hash, NULL);
  g_mkdir_with_parents (folder, 0700);
  if (td_tape_import_path (path, folder, tape, sizeof tape, line, sizeof line))
    return g_strdup (tape);
  g_autofree char *valid = g_utf8_make_valid (line, -1);
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, valid);
  return NULL;
}

static char *
describe_end (TdTapeReader *reader, const TdTapeEnd *end, TdProgramState *state)
{
  GString *text = g_string_new (NULL);
  char site[256] = "";

  *state = end->signal ? TD_PROGRAM_CRASHED : TD_PROGRAM_ENDED;
  if (is_import (reader, TD_TAPE_IMPORT_TORCH))
    return g_strdup (
        "a memory snapshot of PyTorch: blocks and a trace of allocations, no operations");
  if (is_import (reader, TD_TAPE_IMPORT_TRACE))
    return g_strdup ("a profiler's trace: operations and when they ran, no arrays");
  if (is_import (reader, TD_TAPE_IMPORT_ARRAYS))
    return g_strdup ("arrays of a reference: what layers returned, and gradients");
  if (end->signal && end->by == 0)
    g_string_printf (text, "killed by signal %d (%s)", end->signal, strsignal (end->signal));
  else if (end->signal)
    g_string_printf (text, "stopped by Tapedeck with signal %d", end->signal);
  else if (end->status)
    g_string_printf (text, "exited with %d", end->status);
  else
    g_string_assign (text, "ended");
  if ((end->signal || end->status) && end->last_op)
    {
      td_tape_reader_site_text (reader, end->last_site, site, sizeof site);
      g_string_append_printf (text, " %s %s", end->running ? "in" : "after",
                              td_tape_reader_op_name (reader, end->last_op));
      if (*site)
        g_string_append_printf (text, " at %s", site);
    }
  return g_string_free (text, FALSE);
}

static void
set_state (TdSession *self, TdProgramState state, char *reason)
{
  gboolean changed = state != self->state || strcmp (reason, self->reason) != 0;

  g_free (self->reason);
  self->reason = reason;
  self->state = state;
  if (changed)
    td__session_emit (self, TD_SIGNAL_HEAD);
}

/* The running iteration: into the cache, and where the program stands in it. Returns why it
 * stopped, NULL while it runs. */
static char *
read_live (TdSession *self)
{
  gint64 start = g_get_monotonic_time ();
  const TdTapeIteration *tape = td_tape_reader_live (self->tape->reader);
  TdIteration *iteration;
  char *reason = NULL;

  self->live_number = -1;
  self->live_cost_us = 0;
  if (!tape)
    return NULL;
  self->live_number = (gint64)tape->number;
  self->live_events = tape->n_events;
  iteration = td__iteration_new_from_handle (self->tape, tape);
  td__iteration_cache_put (self->cache, iteration);
  if (tape->stop.stopped)
    reason = g_strdup (td_iteration_get_string (iteration, tape->stop.reason));
  td_iteration_unref (iteration);
  self->live_loaded_us = g_get_monotonic_time ();
  self->live_cost_us = self->live_loaded_us - start;
  return reason;
}

static void
read_head (TdSession *self)
{
  TdMoment head = { self->head.rank, -1, -1 };
  uint64_t number;
  uint32_t n_events;

  if (td_tape_reader_head (self->tape->reader, &number, &n_events))
    {
      head.iteration = (gint64)number;
      head.event = (gint)n_events - 1;
    }
  if (memcmp (&head, &self->head, sizeof head) == 0)
    return;
  if (head.iteration == self->head.iteration)
    td__iteration_cache_set_stale (self->cache, head.iteration);
  self->head = head;
  td__session_emit (self, TD_SIGNAL_HEAD);
}

/* Of events that were over: an iteration that is shown or kept in memory has another look. */
static void
read_faults (TdSession *self)
{
  TdTapeReader *reader = self->tape->reader;

  for (; self->n_seen_faults < td_tape_reader_n_faults (reader); self->n_seen_faults++)
    {
      const TdTapeFault *fault = td_tape_reader_fault (reader, self->n_seen_faults);

      td__iteration_cache_set_stale (self->cache, (gint64)fault->iteration);
    }
}

static void
read_notices (TdSession *self)
{
  guint n = td_tape_reader_n_notices (self->tape->reader);

  if (n <= self->n_seen_notices)
    return;
  for (; self->n_seen_notices < n; self->n_seen_notices++)
    {
      const TdTapeNotice *on_tape
          = td_tape_reader_notice (self->tape->reader, self->n_seen_notices);
      TdNotice notice
          = { on_tape->kind == TD_TAPE_NOTICE_ERROR,
              on_tape->kind == TD_TAPE_NOTICE_RECORDING
                  && on_tape->status == TD_TAPE_NOTICE_LOST,
              (gint64)on_tape->iteration,
              on_tape->event == TD_TAPE_NONE ? -1 : (gint)MIN (on_tape->event, G_MAXINT),
              td_tape_reader_string (self->tape->reader, on_tape->text),
              on_tape->kind == TD_TAPE_NOTICE_ERROR && on_tape->op == 0
                  && on_tape->event == TD_TAPE_NONE };

      if (on_tape->kind != TD_TAPE_NOTICE_CONFIG)
        g_array_append_val (self->notices, notice);
    }
  td__session_emit (self, TD_SIGNAL_NOTICES);
}

/* A long iteration that grows event by event must not keep the main loop busy with reading it.
 */
static gboolean
live_may_wait (TdSession *self)
{
  gint64 wait = MIN (self->live_cost_us * LIVE_SHARE, MAX_WAIT_US);

  return self->live_cost_us > CHEAP_US && td_tape_reader_end (self->tape->reader) == NULL
         && g_get_monotonic_time () - self->live_loaded_us < wait;
}

/* A tape that is opened the moment it begins may not say its program yet: named as its file
 * until then. */
static void
read_name (TdSession *self)
{
  const char *program = td_tape_reader_info (self->tape->reader, "program");

  if (self->name && (self->named || !*program))
    return;
  g_free (self->name);
  self->name = g_path_get_basename (*program ? program : self->path);
  self->named = *program != 0;
  char *dot = strrchr (self->name, '.');
  if (dot && dot != self->name)
    *dot = 0;
}

void
td__session_read_program (TdSession *self)
{
  TdTapeReader *reader = self->tape->reader;
  const TdTapeEnd *end = td_tape_reader_end (reader);
  TdProgramState state;
  char *reason;

  read_name (self);
  read_head (self);
  read_faults (self);
  read_notices (self);
  reason = read_live (self);
  if (end)
    {
      g_free (reason);
      reason = describe_end (reader, end, &state);
      set_state (self, state, reason);
    }
  else if (!self->attached && !td__session_writer_lives (td_tape_reader_header (reader)))
    {
      g_free (reason);
      set_state (self, TD_PROGRAM_CRASHED, g_strdup ("the recording ends without saying why"));
    }
  else
    set_state (self, reason ? TD_PROGRAM_PAUSED : TD_PROGRAM_RUNNING,
               reason ? reason : g_strdup (""));
}

gboolean
td_session_poll (TdSession *self)
{
  gboolean changed;
  gint64 before;

  if (!self->tape)
    return FALSE;
  before = self->live_number;
  changed = td_tape_reader_poll (self->tape->reader) || self->live_waits;
  if (changed && live_may_wait (self))
    {
      self->live_waits = TRUE;
      return FALSE;
    }
  self->live_waits = FALSE;
  if (!changed)
    {
      /* a program that died without a word adds nothing to its tape */
      if (self->state == TD_PROGRAM_RUNNING && !self->attached
          && !td__session_writer_lives (td_tape_reader_header (self->tape->reader)))
        td__session_read_program (self);
      return FALSE;
    }
  td__session_read_program (self);
  td__session_take_reports (self);
  td__session_emit (self, TD_SIGNAL_ITERATIONS);
  if (before >= 0 && before != self->live_number) /* it ended: what is cached lacks its end */
    td__iteration_cache_set_stale (self->cache, before);
  if (self->follow)
    {
      td__session_place (self, self->head);
      td__session_trail_follow (self);
    }
  return TRUE;
}

/* ---- questions ---- */

TdMoment
td_session_get_head (TdSession *self)
{
  return self->head;
}

TdProgramState
td_session_get_state (TdSession *self)
{
  return self->state;
}

const char *
td_session_get_reason (TdSession *self)
{
  return self->reason;
}

void
td_session_set_attached (TdSession *self, gboolean attached)
{
  if (self->attached == !!attached)
    return;
  self->attached = !!attached;
  if (self->tape)
    td__session_read_program (self);
}

guint
td_session_get_n_notices (TdSession *self)
{
  return self->notices->len;
}

const TdNotice *
td_session_get_notice (TdSession *self, guint i)
{
  return &g_array_index (self->notices, TdNotice, i);
}
