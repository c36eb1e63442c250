/* A searcher: the random programs of test-static-search, recorded define by run at level values
 * with keyframes.  Every iteration that is run again must come out the same, bit for bit; what
 * is refused is so for a reason that is known.  Arguments: how many programs, and the first
 * seed.
 *
 * SPDX-License-Identifier: MIT */
#include "search-run.h"

#include "record/recompute.h"
#include "td-tape-reader.h"
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  PROGRAMS = 150
};

static const Mode mode = { "recorded, define by run", false, -1, .recorded = true };

/* Why an iteration may not be run again: parts of the text. */
static const char *const reasons[] = {
  "is no operation of the engine's own",
  "depends on the program's own memory",
  "adds to a gradient that was there before the iteration",
};

static struct
{
  unsigned n_equal, n_refused, n_arrays, n_failed;
} all;

static bool
is_known_reason (const char *text)
{
  for (size_t k = 0; k < sizeof reasons / sizeof *reasons; k++)
    if (strstr (text, reasons[k]) != NULL)
      return true;
  return false;
}

static void
run_iteration_again (const Program *p, const char *tape, uint64_t iteration)
{
  char out[4096];
  TdRecomputeOptions o
      = { .tape = tape, .out = out, .iteration = iteration, .overwrite = true };
  TdRecomputeResult result;
  TdRecomputeOutcome outcome;

  run_file ("again.tape", out, sizeof out);
  outcome = td_recompute (&o, &result);
  if (outcome == TD_RECOMPUTE_EQUAL)
    {
      all.n_equal++;
      all.n_arrays += result.n_bitwise;
      return;
    }
  if (outcome == TD_RECOMPUTE_REFUSED && is_known_reason (result.text))
    {
      all.n_refused++;
      return;
    }
  if (all.n_failed++ < 5)
    {
      fprintf (stdout, "iteration %lu: %s\n", (unsigned long)iteration, result.text);
      program_print (stdout, p);
    }
}

static void
run_again (const Program *p)
{
  char tape[4096], error[256];
  TdTapeReader *r;
  TdTapeSummaries s;

  run_file ("run.tape", tape, sizeof tape);
  r = td_tape_reader_open (tape, error, sizeof error);
  if (r == NULL || td_init (NULL, NULL) != TD_OK)
    abort ();
  td_tape_reader_poll (r);
  s = td_tape_reader_summaries (r);
  for (uint32_t i = 0; i < s.n; i++)
    if (s.rows[i].flags & TD_TAPE_ITERATION_KEYFRAME)
      run_iteration_again (p, tape, s.rows[i].number);
  td_tape_reader_free (r);
  if (td_finish () != 0)
    all.n_failed++;
}

int
main (int argc, char **argv)
{
  const unsigned n = argc > 1 ? (unsigned)strtoul (argv[1], NULL, 10) : PROGRAMS;
  const unsigned first = argc > 2 ? (unsigned)strtoul (argv[2], NULL, 10) : 0;
  static Note notes[MAX_NOTES];

  if (td_test_setup (NULL) != 0)
    return 1;
  run_files (td_test_tmp ("."));
  if (freopen ("/dev/null", "w", stderr) == NULL)
    return 1;
  for (unsigned k = 0; k < n && all.n_failed < 5; k++)
    {
      Program p = program_generate_more (first + k);
      Run run = { .notes = notes };

      p.level = 2;
      setenv ("TAPEDECK_KEYFRAMES", "1", 1);
      run_program (&p, &mode, &run);
      run_again (&p);
    }
  printf (
      "%u programs from seed %u: %u iterations equal in %u arrays, bit for bit, %u refused, "
      "%u failed\n",
      n, first, all.n_equal, all.n_arrays, all.n_refused, all.n_failed);
  td_test_teardown (NULL);
  return all.n_failed > 0 || all.n_equal < n; /* fewer: it looked at little */
}
