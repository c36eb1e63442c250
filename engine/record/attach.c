/* How a model finds out that it is recorded: what td_init takes from the environment.
 *
 * TAPEDECK_RING=FD       a ring that a supervisor drains
 * TAPEDECK_CONTROL=FD    a socket to the supervisor: pause, step, break, read
 * TAPEDECK_RECORD=0      control only: nothing is written
 * TAPEDECK_BREAK=EXPR    breakpoints that are there from the start, one a line
 * TAPEDECK_PAUSE=N       stop before the first event of iteration N
 * TAPEDECK_TAPE=FILE     record to FILE in this process, without a supervisor; where that is
 *                        not possible, or comes to an end, the program runs on and td_finish
 *                        returns 1
 * TAPEDECK_LEVEL=graph|stats|values
 * TAPEDECK_KEYFRAMES=N    every N-th iteration says all that its operations were given
 * TAPEDECK_DEVICE_TIMES=auto|all|off|N  in which iterations operations are timed on their GPU
 *
 * All are unset, and descriptors closed on exec, so that a child of the model is not taken for
 * the model.  Of several programs that a script starts, the first takes the ring.
 * SPDX-License-Identifier: MIT */
#include "attach.h"

#include "agent/agent.h"
#include "recorder.h"

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *
take (const char *name)
{
  const char *value = getenv (name);
  char *copy = value != NULL && *value != '\0' ? strdup (value) : NULL;

  unsetenv (name);
  return copy;
}

static uint32_t
level_of (const char *name)
{
  for (uint32_t level = TD_TAPE_LEVEL_GRAPH; name != NULL && level <= TD_TAPE_LEVEL_VALUES;
       level++)
    if (strcmp (name, td_tape_level_name (level)) == 0)
      return level;
  return TD_TAPE_LEVEL_GRAPH;
}

/* A forked child of the model shares the ring's memory: it must not write there. */
static void
in_child (void)
{
  td__engine.observer = NULL;
  td__recorder = NULL;
}

/* What this run's numbers depend on besides the model; `tapedeck diff` compares them first. */
static void
write_versions (TdRecorder *r)
{
  td__recorder_info (r, "version.engine", td_version ());
  td__recorder_info (r, "version.blas", td__cpu_blas_version ());
  td__recorder_info (r, "version.compiler", __VERSION__);
#if defined(__GLIBC__)
  td__recorder_info (r, "version.libc", gnu_get_libc_version ());
#endif
}

static void
start (TdRecorder *r, const char *times, const char *keyframes)
{
  static bool once;

  td__recorder = r;
  td__engine.observer = &r->observer;
  td__recorder_times_setting (r, times);
  td__keyframes_setting (r, keyframes);
  if (r->writes)
    write_versions (r);
  if (!once)
    pthread_atfork (NULL, NULL, in_child);
  once = true;
}

/* Recording without a supervisor: the same ring in private memory, drained when it is full. */
static void
drain_self (TdRing *ring, void *user)
{
  TdRecorder *r = user;

  (void)ring;
  td_assembler_drain (r->assembler, r->ring);
  td__recorder_say_trouble (r);
}

/* A tape beyond the limit of file sizes is a full disk, and no reason to end the program. */
static void
survive_file_limit (void)
{
  struct sigaction now;

  if (sigaction (SIGXFSZ, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
    signal (SIGXFSZ, SIG_IGN);
}

static void
start_alone (const char *path, uint32_t level, const char *times, const char *keyframes)
{
  char error[256];
  TdRingOptions ring_options = { .level = level, .n_ranks = 1, .tape = path };
  TdTapeWriterOptions options = { .size = sizeof options, .level = level, .path = path };
  TdRing *ring = td_ring_new (NULL, &ring_options, error, sizeof error);
  TdTapeWriter *writer = NULL;
  TdRecorder *r;

  if (ring != NULL)
    {
      options.mono_ns = ring->shared->mono_ns;
      options.ticks = ring->shared->ticks;
      options.ns_per_tick = ring->shared->ns_per_tick;
      options.budget_bytes = (uint64_t)2 << 30;
      options.rate_bytes = TD_TAPE_RATE_BYTES;
      survive_file_limit ();
      writer = td_tape_writer_new (&options, error, sizeof error);
    }
  if (writer == NULL)
    {
      fprintf (stderr, "tapedeck: %s: %s; the program runs unrecorded\n", path, error);
      td__engine.recording_failed = true; /* it was asked for, as where it ends on the way */
      td_ring_free (ring);
      return;
    }
  td_ring_produce (ring);
  r = td__recorder_new (ring, level, true);
  r->writer = writer;
  r->tape = strdup (path);
  r->assembler = td_assembler_new (writer, ring->shared);
  ring->full = drain_self;
  ring->user = r;
  start (r, times, keyframes);
}

void
td__record_attach (void)
{
  char *tape = take ("TAPEDECK_TAPE"), *level = take ("TAPEDECK_LEVEL"),
       *record = take ("TAPEDECK_RECORD"), *breaks = take ("TAPEDECK_BREAK"),
       *times = take ("TAPEDECK_DEVICE_TIMES"), *keyframes = take ("TAPEDECK_KEYFRAMES"),
       *pause = take ("TAPEDECK_PAUSE");
  int ring_fd = td__control_take_fd ("TAPEDECK_RING"),
      control_fd = td__control_take_fd ("TAPEDECK_CONTROL");
  char error[256];
  TdRing *ring;

  if (td__engine.observer != NULL)
    goto out; /* td_init was called before */
  if (ring_fd >= 0)
    {
      ring = td_ring_claim (ring_fd, error, sizeof error);
      if (ring == NULL && *error != '\0') /* nor is the socket ours */
        fprintf (stderr, "tapedeck: the recorder's ring: %s; the program runs unrecorded\n",
                 error);
      else if (ring == NULL)
        {
          fprintf (stderr, "tapedeck: another program of this run has the recorder; this one "
                           "runs unrecorded\n");
          if (control_fd >= 0)
            close (control_fd);
        }
      else
        {
          TdRecorder *r
              = td__recorder_new (ring, level_of (level), record == NULL || *record != '0');

          td_ring_guard (ring);
          if (r->writes)
            ring->lost = td__recorder_say_lost;
          if (control_fd >= 0)
            r->agent = td__agent_new (r, control_fd, breaks, pause);
          start (r, times, keyframes);
        }
    }
  else if (tape != NULL)
    start_alone (tape, level_of (level), times, keyframes);
out:
  free (tape);
  free (level);
  free (record);
  free (breaks);
  free (times);
  free (keyframes);
  free (pause);
}
