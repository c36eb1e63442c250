/* A small tape as this version makes them, for those who damage it: recorded with its values,
 * with what refers to what, reports, and a NaN that begins in the third iteration.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "model.h"

#include "record/assembler.h"
#include "record/ring.h"

#include <sys/wait.h>

static void
made_trouble (const char *path, const char *what)
{
  fprintf (stderr, "%s: no tape could be made: %s\n", path, what);
  exit (1);
}

/* Write the tape to `path`. */
static void
make_tape (const char *path)
{
  TdRingOptions options = { .capacity = 1 << 18, .n_ranks = 1, .level = 2 };
  TdTapeWriterOptions tape = {
    .size = sizeof tape, .path = path, .overwrite = true, .level = 2, .budget_bytes = 256 << 10
  };
  char error[256], ring_path[200];
  TdAssembler *a;
  TdTapeWriter *w;
  TdRing *ring;
  pid_t pid;
  int status = 0;

  snprintf (ring_path, sizeof ring_path, "%s.ring", path);
  ring = td_ring_new (ring_path, &options, error, sizeof error);
  if (ring == NULL)
    made_trouble (path, error);
  td_ring_consume (ring);
  tape.mono_ns = ring->shared->mono_ns;
  tape.ticks = ring->shared->ticks;
  tape.ns_per_tick = ring->shared->ns_per_tick;
  w = td_tape_writer_new (&tape, error, sizeof error);
  if (w == NULL)
    made_trouble (path, error);
  a = td_assembler_new (w, ring->shared);
  pid = fork ();
  if (pid == 0)
    {
      td_release (fuzz_model (dup (ring->fd), 4, 2));
      _exit (td_finish () == TD_OK ? 0 : 3);
    }
  while (waitpid (pid, &status, WNOHANG) == 0)
    if (td_assembler_drain (a, ring) == 0)
      usleep (1000);
  while (td_assembler_drain (a, ring) > 0)
    ;
  td_assembler_end (a, ring, status, false);
  td_assembler_free (a);
  td_tape_writer_free (w);
  td_ring_free (ring);
  unlink (ring_path);
  if (status != 0)
    made_trouble (path, "its program failed");
}
