/* Reads IDX, npz, npy, safetensors, CSV and text files that may be anything, through the public
 * functions. Built with libFuzzer (-fsanitize=fuzzer) it is a fuzzer; with main () below it
 * runs a corpus that it makes itself out of good files: every truncation, and bytes changed at
 * random from a fixed seed.  Each file is read whole or refused with one line.
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static char path[64];
static TdLink *model;
static TdOpt *opt;
static TdTrainer *trainer;

static void
start (void)
{
  td_init (NULL, NULL);
  model = td_chain_new ("model");
  td_link_add_param (td_chain_new (model, "l1"), "W", TD_SHAPE (2, TD_INFER));
  td_link_add_param (td_link_child (model, "l1"), "b", TD_SHAPE (2));
  td_link_add_persistent (model, "n", td_zeros (TD_I64, TD_SCALAR));
  opt = td_adam_new (model);
  trainer = td_trainer_new (
      td_standard_updater_new (
          td_serial_iterator_new (td_tuple_dataset_new (td_zeros (TD_F32, TD_SHAPE (4, 3)),
                                                        td_zeros (TD_I32, TD_SHAPE (4))),
                                  .batch_size = 2),
          opt),
      td_interval_trigger_new (4, "iteration"));
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
  td_load_npz (path, trainer);
  settle ("npz of a trainer");
  TD_SCOPE ("npy")
    td_load_npy (path);
  settle ("npy");
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

/* The check sums of a zip file's members that are stored as they are, made right again. */
static void
seal (uint8_t *zip, size_t n)
{
  static const uint8_t local[4] = { 'P', 'K', 3, 4 }, central[4] = { 'P', 'K', 1, 2 };
  uint32_t crcs[64];
  int n_crcs = 0, at_crc = 0;

  for (size_t at = 0; at + 46 <= n; at++)
    if (memcmp (zip + at, local, 4) == 0 && n_crcs < 64)
      {
        size_t name = zip[at + 26] | (size_t)zip[at + 27] << 8,
               extra = zip[at + 28] | (size_t)zip[at + 29] << 8, start = at + 30 + name + extra;
        uint32_t bytes, crc = 0xffffffff;

        memcpy (&bytes, zip + at + 18, sizeof bytes);
        for (size_t i = start; i < n && i < start + bytes; i++)
          {
            crc ^= zip[i];
            for (int k = 0; k < 8; k++)
              crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
          }
        crcs[n_crcs] = ~crc;
        memcpy (zip + at + 14, &crcs[n_crcs++], sizeof crc);
      }
    else if (memcmp (zip + at, central, 4) == 0 && at_crc < n_crcs)
      memcpy (zip + at + 16, &crcs[at_crc++], sizeof crcs[0]);
}

static void
run_corpus (const uint8_t *good, size_t n)
{
  const int rounds = fuzz_rounds (300);
  uint8_t *bad = malloc (2 * n);

  if (bad == NULL)
    abort ();
  for (size_t i = 0; i <= n; i += 1 + i / 64)
    LLVMFuzzerTestOneInput (good, i);
  for (int round = 0; round < rounds; round++)
    {
      size_t length = fuzz_mutate (good, n, bad, 2 * n, round % 4 != 0);

      if (round % 2 == 0)
        seal (bad, length);
      LLVMFuzzerTestOneInput (bad, length);
    }
  free (bad);
}

/* An array as the engine itself writes it. */
static void
run_npy (void)
{
  char name[80];
  uint8_t *good;
  size_t n;

  snprintf (name, sizeof name, "/dev/shm/td-fuzz-npy-%ld", (long)getpid ());
  td_init (NULL, NULL);
  TD_SCOPE ("npy")
    if (td_save_npy (name, td_full (TD_F32, TD_SHAPE (3, 2), 1.5)) != TD_OK)
      abort ();
  td_finish ();
  good = fuzz_read (name, &n, 4096);
  unlink (name);
  run_corpus (good, n);
  free (good);
}

int
main (int argc, char **argv)
{
  static const uint8_t idx[]
      = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8 };

  static const char csv[] = "a,b,t\n1,2.5,0\n\"3\",nan,1\r\n";

  run_corpus (idx, sizeof idx);
  run_corpus ((const uint8_t *)csv, sizeof csv - 1);
  run_npy ();
  for (int i = 1; i < argc; i++)
    {
      size_t n;
      uint8_t *data = fuzz_read (argv[i], &n, 1 << 20);

      run_corpus (data, n);
      free (data);
    }
  puts ("every file was read whole or refused with one line");
  return 0;
}
#endif
