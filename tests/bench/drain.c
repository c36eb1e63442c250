/* How fast the assembler turns raw operation records into a tape: millions of records a second,
 * one thread, iterations that repeat.  Then how fast the tape opens again.  Prints JSON
 * objects; arguments: layers, iterations (a million of 25 layers make a tape of 1 GB).
 * SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tape/model.h"
#include "record/assembler.h"
#include "td-tape-reader.h"

static double
cpu_seconds (void)
{
  struct timespec t;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Open, and load the last iteration: what a window needs for its first picture. */
static void
measure_open (const char *path, const char *workload, double goal)
{
  char error[200];
  double before = cpu_seconds ();
  TdTapeReader *r = td_tape_reader_open (path, error, sizeof error);
  TdTapeSummaries s = r ? td_tape_reader_summaries (r) : (TdTapeSummaries){ 0 };
  const TdTapeIteration *it
      = s.n ? td_tape_iteration_load (r, s.rows[s.n - 1].number, error, sizeof error) : NULL;

  printf ("{\"workload\":\"%s\",\"threads\":1,\"value\":%.1f,\"unit\":\"ms\",\"peer\":null,"
          "\"ratio\":null,\"goal\":%g,\"bytes\":%" PRIu64 ",\"iterations\":%u,\"events\":%u}\n",
          workload, (cpu_seconds () - before) * 1e3, goal, r ? td_tape_reader_bytes (r) : 0,
          s.n, it ? it->n_events : 0);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* As after a crash in the middle of the head: every segment has to be looked at. */
static void
forget_state (const char *path)
{
  char zeros[sizeof (TdTapeState)] = { 0 };
  int fd = open (path, O_WRONLY | O_CLOEXEC);

  if (fd < 0 || pwrite (fd, zeros, sizeof zeros, TD_TAPE_STATE_OFFSET) != sizeof zeros)
    perror (path);
  close (fd);
}

int
main (int argc, char **argv)
{
  int layers = argc > 1 ? atoi (argv[1]) : 25, iterations = argc > 2 ? atoi (argv[2]) : 20000;
  const char *tmp = getenv ("TMPDIR");
  char error[200], path[4096];
  TdRingOptions ring_options = { .capacity = 16u << 20 };
  TdRing *ring = td_ring_new (NULL, &ring_options, error, sizeof error);
  TdTapeWriterOptions options = { .size = sizeof options, .path = path, .overwrite = true };
  Model m = { .n_layers = layers };
  TdTapeWriter *w;
  TdAssembler *a;
  double spent = 0;
  uint64_t records = 0, ops = 0;
  int fd;

  snprintf (path, sizeof path, "%s/td-drain-XXXXXX", tmp != NULL ? tmp : "/tmp");
  fd = mkstemp (path);
  if (ring == NULL || fd < 0
      || (w = td_tape_writer_new (&options, error, sizeof error)) == NULL)
    {
      fprintf (stderr, "drain: %s\n", error);
      return 1;
    }
  close (fd);
  a = td_assembler_new (w, ring->shared);
  model_define (&m, ring);
  for (int i = 0; i < iterations; i++)
    {
      model_iteration (&m);
      ops += (uint64_t)(4 * layers + 2);
      /* A poll each 4 MiB: more than the caches near the core hold. */
      if (ring->head - ring->cursor > (4u << 20) || i + 1 == iterations)
        {
          double before = cpu_seconds ();

          td_assembler_drain (a, ring);
          spent += cpu_seconds () - before;
        }
    }
  records = td_assembler_state (a)->n_records;
  td_tape_writer_flush (w);
  printf ("{\"workload\":\"drain\",\"threads\":1,\"value\":%.0f,\"unit\":\"operations/"
          "s\",\"peer\":null,\"ratio\":null,\"goal\":15000000,"
          "\"operations\":%" PRIu64 ",\"records\":%" PRIu64 ",\"repeats\":%" PRIu64
          ",\"ns\":%.1f,\"tape_bytes_per_operation\":%.2f}\n",
          (double)ops / spent, ops, records, td_assembler_state (a)->n_repeats,
          spent / (double)ops * 1e9, (double)td_tape_writer_bytes (w) / (double)ops);
  td_assembler_free (a);
  td_tape_writer_free (w);
  td_ring_free (ring);
  measure_open (path, "tape_open", 1000);
  forget_state (path);
  measure_open (path, "tape_open_state_lost", 3000);
  unlink (path);
  return 0;
}
