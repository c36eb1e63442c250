/* Reads IDX, npz, safetensors, CSV and text files that may be anything, through the public
 * functions. Built with libFuzzer (-fsanitize=fuzzer) it is a fuzzer; with main () below it
 * runs a corpus that it makes itself out of good files: every truncation, and bytes changed at
 * random from a fixed seed.  Each file is read whole or refused with one line.
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static char path[64];
static TdLink *model;
static TdOpt *opt;

static void
start (void)
{
  td_init (NULL, NULL);
  model = td_chain_new ("model");
  td_link_add_param (td_chain_new (model, "l1"), "W", TD_SHAPE (2, TD_INFER));
  td_link_add_param (td_link_child (model, "l1"), "b", TD_SHAPE (2));
  td_link_add_persistent (model, "n", td_zeros (TD_I64, TD_SCALAR));
  opt = td_adam_new (model);
}

/* A refusal is one line; reading on must be possible. */
static void
settle (const char *what)
{
  const TdError *error = td_error ();

  if (error == NULL)
    return;
  if (strchr (error->message, '\n') != NULL || error->message[0] == '\0')
    {
      fprintf (stderr, "%s: not one line: %s\n", what, error->message);
      abort ();
    }
  td_error_clear ();
}

static void
read_dataset (TdDataset *d, const char *what)
{
  if (td_dataset_size (d) > 0)
    TD_SCOPE ("batch")
      {
        TdIter *it = td_serial_iterator_new (d, .batch_size = 2);

        td_iter_next (it);
        td_iter_free (it);
      }
  td_dataset_free (d);
  settle (what);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  FILE *f;

  if (path[0] == '\0')
    snprintf (path, sizeof path, "/dev/shm/td-fuzz-data-%ld", (long)getpid ());
  f = fopen (path, "wb");
  if (f == NULL || fwrite (data, 1, n, f) != n || fclose (f) != 0)
    abort ();
  start ();
  read_dataset (td_idx_open (path, NULL), "idx");
  read_dataset (td_idx_open (path, path), "idx with labels");
  td_load_npz (path, model);
  settle ("npz");
  td_load_safetensors (path, model);
  settle ("safetensors");
  td_load_npz (path, opt);
  settle ("npz of an optimizer");
  read_dataset (td_npz_open (path, NULL, NULL), "npz data");
  read_dataset (td_csv_open (path, .label_column = -1), "csv");
  TD_SCOPE ("text")
    {
      TdDataset *text = td_text_open (path);

      td_iter_next (td_text_iterator_new (text, 2));
      settle ("text");
    }
  if (td_finish () != 0)
    abort ();
  unlink (path);
  return 0;
}

#ifndef TD_LIBFUZZER
static uint64_t state = 88172645463325252u;

static uint32_t
random_below (uint32_t n)
{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 32) % n;
}

static void
run_corpus (const uint8_t *good, size_t n)
{
  uint8_t *bad = malloc (n + 1);

  if (bad == NULL)
    abort ();
  for (size_t i = 0; i <= n; i += 1 + i / 64)
    LLVMFuzzerTestOneInput (good, i);
  for (int round = 0; round < 300; round++)
    {
      memcpy (bad, good, n);
      for (uint32_t k = 1 + random_below (4); k > 0; k--)
        bad[random_below ((uint32_t)n)]
            = random_below (4) == 0 ? 0xff : (uint8_t)random_below (256);
      LLVMFuzzerTestOneInput (bad, n);
    }
  free (bad);
}

int
main (int argc, char **argv)
{
  static const uint8_t idx[]
      = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8 };

  static const char csv[] = "a,b,t\n1,2.5,0\n\"3\",nan,1\r\n";

  run_corpus (idx, sizeof idx);
  run_corpus ((const uint8_t *)csv, sizeof csv - 1);
  for (int i = 1; i < argc; i++)
    {
      static uint8_t data[1 << 16];
      FILE *f = fopen (argv[i], "rb");
      size_t n = f != NULL ? fread (data, 1, sizeof data, f) : 0;

      if (n == 0)
        {
          fprintf (stderr, "%s: cannot be read\n", argv[i]);
          return 1;
        }
      fclose (f);
      run_corpus (data, n);
    }
  puts ("every file was read whole or refused with one line");
  return 0;
}
#endif
