/* How fast the assembler turns raw operation records into a tape: millions of records a second,
 * one thread, iterations that repeat.  Prints one JSON object; arguments: layers, iterations.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tape/model.h"
#include "record/assembler.h"

static double
cpu_seconds (void)
{
  struct timespec t;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int
main (int argc, char **argv)
{
  int layers = argc > 1 ? atoi (argv[1]) : 25, iterations = argc > 2 ? atoi (argv[2]) : 20000;
  char error[200], path[] = "/tmp/td-drain-XXXXXX";
  TdRingOptions ring_options = { .capacity = 16u << 20 };
  TdRing *ring = td_ring_new (NULL, &ring_options, error, sizeof error);
  TdTapeWriterOptions options = { .size = sizeof options, .path = path, .overwrite = true };
  Model m = { .n_layers = layers };
  TdTapeWriter *w;
  TdAssembler *a;
  double spent = 0;
  uint64_t records = 0, ops = 0;
  int fd = mkstemp (path);

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
  printf ("{\"workload\":\"drain\",\"threads\":1,\"value\":%.0f,\"unit\":\"operations/s\","
          "\"operations\":%" PRIu64 ",\"records\":%" PRIu64 ",\"repeats\":%" PRIu64
          ",\"ns\":%.1f,\"tape_bytes_per_operation\":%.2f}\n",
          (double)ops / spent, ops, records, td_assembler_state (a)->n_repeats,
          spent / (double)ops * 1e9, (double)td_tape_writer_bytes (w) / (double)ops);
  td_assembler_free (a);
  td_tape_writer_free (w);
  td_ring_free (ring);
  unlink (path);
  return 0;
}
