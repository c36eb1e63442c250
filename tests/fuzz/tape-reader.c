/* Reads a tape that may be anything: opens it, loads every iteration, dumps, checks, repairs.
 * Built with libFuzzer (-fsanitize=fuzzer) it is a fuzzer; with main () below it runs a corpus
 * that it makes itself out of a good tape: every truncation in steps, and bit flips, of which
 * most get their check sums made right again, so that what lies behind them is reached.
 * SPDX-License-Identifier: MIT */
#include "tape-damage.h"

#include <unistd.h>

#include "td-tape-import.h"
#include "td-tape-reader.h"
#include "td-tape-writer.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static char path[64], out[80];

static void
use (TdTapeReader *r)
{
  TdTapeSummaries s = td_tape_reader_summaries (r);
  FILE *sink = fopen ("/dev/null", "w");
  char error[256];

  for (uint32_t i = 0; i < s.n && i < 100; i++)
    {
      const TdTapeIteration *it
          = td_tape_iteration_load (r, s.rows[i].number, error, sizeof error);

      for (uint32_t k = 0; it != NULL && k < it->n_tensors; k++)
        {
          TdTapeTensorRecord record;
          char bytes[64];

          td_tape_tensor_read (r, &it->tensors[k], &record, bytes, 0, sizeof bytes);
        }
      td_tape_iteration_free (it);
    }
  td_tape_iteration_free (td_tape_reader_live (r));
  td_tape_dump (r, sink, true, 0, 100);
  td_tape_dump (r, sink, false, 0, 100);
  td_tape_info (r, sink, true);
  td_tape_info (r, sink, false);
  td_tape_reader_poll (r);
  fclose (sink);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  char error[256];
  TdTapeCheck check;
  TdTapeReader *r;
  FILE *f;

  if (path[0] == '\0')
    {
      snprintf (path, sizeof path, "/dev/shm/td-fuzz-%ld", (long)getpid ());
      snprintf (out, sizeof out, "%s.out", path);
    }
  f = fopen (path, "w");
  if (f == NULL || (n > 0 && fwrite (data, 1, n, f) != n))
    abort ();
  fclose (f);
  r = td_tape_reader_open (path, error, sizeof error);
  if (r != NULL)
    use (r);
  td_tape_reader_free (r);
  td_tape_check (path, &check);
  unlink (out);
  if (td_tape_repair (path, out, error, sizeof error))
    td_tape_writer_free (td_tape_writer_continue (out, error, sizeof error));
  unlink (out);
  unlink (path);
  return 0;
}

#ifndef TD_LIBFUZZER

/* A snapshot of another program's memory is made into a tape first: only such have stacks. */
static const char *
tape_of (const char *file)
{
  static char made[200];
  char error[256];

  if (!td_tape_is_snapshot (file))
    return file;
  snprintf (made, sizeof made, "/dev/shm/td-fuzz-%ld.tdtape", (long)getpid ());
  if (!td_tape_import_snapshot (file, made, true, NULL, error, sizeof error))
    {
      fprintf (stderr, "%s\n", error);
      exit (2);
    }
  return made;
}

int
main (int argc, char **argv)
{
  const int rounds = fuzz_rounds (1500);
  const char *file;
  size_t n;
  uint8_t *good, *bad;

  if (argc != 2)
    {
      fprintf (stderr, "usage: tape-reader TAPE|SNAPSHOT\n");
      return 2;
    }
  file = tape_of (argv[1]);
  good = fuzz_read (file, &n, 1 << 24);
  if (file != argv[1])
    unlink (file);
  bad = malloc (n);
  if (bad == NULL)
    return 2;
  for (size_t cut = 0; cut < n; cut += 61)
    LLVMFuzzerTestOneInput (good, cut);
  for (int i = 0; i < rounds; i++)
    {
      tape_damage (good, n, bad);
      LLVMFuzzerTestOneInput (bad, n);
    }
  printf ("%zu truncations, %d damaged tapes\n", (n + 60) / 61, rounds);
  free (bad);
  free (good);
  return 0;
}
#endif
