/* Reads rings that a dead run has left and that may be anything, as `tapedeck check --repair`
 * does: opened, fed to an assembler that goes on with a good tape, written, and read again.
 * Either the ring is refused with one line or the tape that comes out is whole.
 * SPDX-License-Identifier: MIT */
#include "mutate.h"

#include "record/assembler.h"
#include "record/ring.h"
#include "td-tape-reader.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static char folder[64], tape[100], ring_path[110], out[100];
static long n_read, n_refused;

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  char error[256] = "";
  TdTapeCheck check;

  fuzz_write (ring_path, data, n);
  unlink (out);
  if (td_assembler_recover (tape, ring_path, out, error, sizeof error))
    {
      if (!td_tape_check (out, &check) || !check.whole)
        {
          fprintf (stderr, "a damaged tape: %s at %llu\n", check.what,
                   (unsigned long long)check.first_bad);
          abort ();
        }
      n_read++;
    }
  else if (error[0] == '\0' || strchr (error, '\n') != NULL)
    abort ();
  else
    n_refused++;
  return 0;
}

#ifndef TD_LIBFUZZER

#include "model.h"

/* The tape as its supervisor had begun it, and a ring that holds the rest. */
static void
make_good (void)
{
  TdRingOptions options = { .capacity = 1 << 16, .n_ranks = 1, .level = 2, .tape = tape };
  TdTapeWriterOptions tape_options = { .size = sizeof tape_options, .path = tape, .level = 2 };
  char error[256];
  TdTapeWriter *w;
  TdRing *ring = td_ring_new (ring_path, &options, error, sizeof error);
  pid_t pid;

  if (ring == NULL)
    {
      fprintf (stderr, "%s: %s\n", ring_path, error);
      exit (1);
    }
  tape_options.mono_ns = ring->shared->mono_ns;
  tape_options.ticks = ring->shared->ticks;
  tape_options.ns_per_tick = ring->shared->ns_per_tick;
  w = td_tape_writer_new (&tape_options, error, sizeof error);
  td_tape_writer_free (w);
  pid = fork ();
  if (pid == 0)
    {
      fuzz_model (dup (ring->fd), 6, -1);
      kill (getpid (), SIGKILL); /* td_finish would wait for somebody to take it all */
    }
  waitpid (pid, NULL, 0);
  td_ring_free (ring);
}

/* Changes where records are, in their first words, more often than in zeros behind them. */
static void
change (uint8_t *bad, size_t n, uint64_t head)
{
  const size_t used = head < n - TD_RING_DATA ? (size_t)head : n - TD_RING_DATA;

  if (fuzz_below (8) == 0 || used == 0)
    fuzz_change (bad, TD_RING_DATA, TD_RING_DATA, true);
  else
    fuzz_change (bad + TD_RING_DATA, used, used, true);
}

int
main (void)
{
  const int rounds = fuzz_rounds (400);
  uint8_t *good, *bad;
  uint64_t head;
  size_t n;

  snprintf (folder, sizeof folder, "/dev/shm/td-fuzz-ring-%ld", (long)getpid ());
  snprintf (tape, sizeof tape, "%s.tdtape", folder);
  snprintf (ring_path, sizeof ring_path, "%s.ring", tape);
  snprintf (out, sizeof out, "%s.out", folder);
  make_good ();
  good = fuzz_read (ring_path, &n, 1 << 20);
  bad = malloc (n);
  memcpy (&head, good + offsetof (TdRingShared, head), sizeof head);
  LLVMFuzzerTestOneInput (good, n);
  if (bad == NULL || n_read != 1 || head < 1000)
    {
      fputs ("a good ring is not read\n", stderr);
      return 1;
    }
  for (size_t cut = 0; cut < n; cut += 1 + n / 100)
    LLVMFuzzerTestOneInput (good, cut);
  for (int i = 0; i < rounds; i++)
    {
      memcpy (bad, good, n);
      for (uint32_t k = 1 + fuzz_below (5); k > 0; k--)
        change (bad, n, head);
      LLVMFuzzerTestOneInput (bad, n);
    }
  printf ("%ld rings were read, %ld refused\n", n_read, n_refused);
  unlink (tape);
  unlink (ring_path);
  unlink (out);
  free (good);
  free (bad);
  return n_refused == 0;
}
#endif
