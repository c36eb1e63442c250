/* Reads files of weights that may be anything as `tapedeck weights` does: as those of another
 * program, and as a model of ours; what can be paired is made.  Built with libFuzzer
 * (-fsanitize=fuzzer) it is a fuzzer; with main () below it runs a corpus out of good files:
 * every truncation, and bytes changed at random from a fixed seed.  Each file is read whole or
 * refused with one line.
 * SPDX-License-Identifier: MIT */
#include "mutate.h"

#include "weights-files.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static char path[64];
static long n_made, n_refused;

static void
refused (const char *text)
{
  n_refused++;
  if (text == NULL || *text == '\0' || strchr (text, '\n') != NULL)
    {
      fprintf (stderr, "not one line: %s\n", text);
      abort ();
    }
}

static void
make_all (const TdWeights *weights, const TdWeightsFile *ours, const TdWeightsFile *theirs)
{
  for (guint i = 0; i < ours->arrays->len; i++)
    {
      const TdWeightsRow *row = td_weights_get_row (weights, i);
      g_autofree char *why = NULL;
      TdRecord value;

      if (row->question != NULL)
        continue;
      if (td_weights_make (weights, row, ours, theirs, &value, &why))
        n_made++;
      else
        refused (why);
      free (value.data);
    }
}

static void
pair (TdWeightsFile *ours, TdWeightsFile *theirs)
{
  const TdWeightsRules rules = { .same = td_weights_file_same, .user = theirs };
  g_autoptr (GError) error = NULL;
  g_autoptr (TdWeights) weights = td_weights_new (
      (const TdWeightsArray *)(const void *)ours->arrays->data, ours->arrays->len,
      (const TdWeightsArray *)(const void *)theirs->arrays->data, theirs->arrays->len, &rules,
      &error);

  if (weights == NULL)
    {
      refused (error->message);
      return;
    }
  g_autofree char *text = td_weights_print (weights);
  if (ours->arrays->len > 0 && *text == '\0')
    abort ();
  make_all (weights, ours, theirs);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  TdWeightsFile ours = { 0 }, theirs = { 0 };
  g_autoptr (GError) error = NULL;

  if (path[0] == '\0')
    snprintf (path, sizeof path, "/dev/shm/td-fuzz-weights-%ld", (long)getpid ());
  fuzz_write (path, data, n);
  if (!td_weights_file_open (&theirs, path, &error)
      || !td_weights_file_open (&ours, path, &error))
    refused (error->message);
  else
    pair (&ours, &theirs);
  td_weights_file_clear (&ours);
  td_weights_file_clear (&theirs);
  unlink (path);
  return 0;
}

#ifndef TD_LIBFUZZER

static void
run_corpus (const uint8_t *good, size_t n)
{
  const int rounds = fuzz_rounds (2000);
  g_autofree uint8_t *bad = g_malloc (2 * n);

  for (size_t i = 0; i <= n; i += 1 + i / 64)
    LLVMFuzzerTestOneInput (good, i);
  for (int round = 0; round < rounds; round++)
    LLVMFuzzerTestOneInput (bad, fuzz_mutate (good, n, bad, 2 * n, round % 4 != 0));
}

int
main (int argc, char **argv)
{
  for (int i = 1; i < argc; i++)
    {
      size_t n;
      g_autofree uint8_t *good = fuzz_read (argv[i], &n, 1 << 20);

      run_corpus (good, n);
    }
  if (n_made == 0 || n_refused == 0)
    abort ();
  printf ("every file was read or refused with one line: %ld arrays made, %ld refusals\n",
          n_made, n_refused);
  return 0;
}
#endif
