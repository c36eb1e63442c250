/* Reads IDX, npz, npy, safetensors, CSV and text files that may be anything, through the public
 * functions: as data, model, optimizer, trainer, and as what a loop of its own has kept. Built
 * with libFuzzer (-fsanitize=fuzzer) it is a fuzzer; with main () below it runs a corpus that
 * it makes itself out of good files: every truncation, and bytes changed at random from a fixed
 * seed.  Each file is read whole or refused with one line.
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

/* What a loop of the program's own keeps, of every kind that there is. */
typedef struct
{
  int64_t done;
  double best;
  bool warm;
  char *text;
  TdShape shape;
  void *rows;
  TdVar *mean;
} Kept;

static char path[64], tensors_path[80]; /* one file, whose name says npz, or safetensors */
static TdLink *model;
static TdOpt *opt;
static TdIter *iter;
static TdTrainer *plain, *trainer; /* without extensions, and with some */
static Kept kept;
static long n_loaded;

static void
serialize (void *object, TdSerializer *s)
{
  Kept *k = object;

  td_serialize_link (s, "model", model);
  td_serialize_opt (s, "optimizer", opt);
  td_serialize_iter (s, "iterator", iter);
  td_serialize_random (s);
  td_serializer_enter (s, "loop");
  td_serialize_int (s, "done", &k->done);
  td_serialize_double (s, "best", &k->best);
  td_serialize_bool (s, "warm", &k->warm);
  td_serialize_text (s, "text", &k->text);
  td_serialize_array (s, "rows", TD_I32, &k->shape, &k->rows);
  td_serialize_var (s, "mean", k->mean);
  td_serializer_leave (s);
}

static TdIter *
four_rows (void)
{
  return td_serial_iterator_new (td_tuple_dataset_new (td_zeros (TD_F32, TD_SHAPE (4, 3)),
                                                       td_zeros (TD_I32, TD_SHAPE (4))),
                                 .batch_size = 2);
}

static TdTrainer *
train (bool with_extensions)
{
  TdTrainer *t = td_trainer_new (td_standard_updater_new (four_rows (), opt),
                                 td_interval_trigger_new (4, "iteration"));

  if (with_extensions)
    {
      td_trainer_extend (t, td_ext_log_report ());
      td_trainer_extend (t, td_ext_exponential_shift ("alpha", 0.9));
    }
  return t;
}

/* A weight of TD_INFER columns waits for those of the file. */
static void
start (int64_t n_columns)
{
  td_init (NULL, NULL);
  model = td_chain_new ("model");
  td_link_add_param (td_chain_new (model, "l1"), "W", TD_SHAPE (2, n_columns));
  td_link_add_param (td_link_child (model, "l1"), "b", TD_SHAPE (2));
  td_link_add_persistent (model, "n", td_zeros (TD_I64, TD_SCALAR));
  opt = td_adam_new (model);
  iter = four_rows ();
  plain = train (false);
  trainer = train (true);
  TD_SCOPE ("kept")
    kept = (Kept){ .mean = td_retain (td_zeros (TD_F32, TD_SHAPE (2))) };
}

static void
end (void)
{
  td_release (kept.mean);
  free (kept.text);
  free (kept.rows);
  if (td_finish () != 0)
    abort ();
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

static void
loaded (TdStatus status, const char *what)
{
  n_loaded += status == TD_OK;
  settle (what);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  FILE *f;

  if (path[0] == '\0')
    {
      snprintf (path, sizeof path, "/dev/shm/td-fuzz-data-%ld", (long)getpid ());
      snprintf (tensors_path, sizeof tensors_path, "%s.safetensors", path);
    }
  f = fopen (path, "wb");
  if (f == NULL || fwrite (data, 1, n, f) != n || fclose (f) != 0)
    abort ();
  if (symlink (path, tensors_path) != 0)
    abort ();
  start (TD_INFER);
  read_dataset (td_idx_open (path, NULL), "idx");
  read_dataset (td_idx_open (path, path), "idx with labels");
  loaded (td_load_npz (path, model), "npz");
  loaded (td_load_safetensors (path, model), "safetensors");
  loaded (td_load_npz (path, opt), "npz of an optimizer");
  loaded (td_load_npz (path, plain), "npz of a trainer");
  loaded (td_load_npz (path, trainer), "npz of a trainer with extensions");
  loaded (td_load_object (path, serialize, &kept), "npz of a loop");
  loaded (td_load_safetensors (path, opt), "safetensors of an optimizer");
  loaded (td_load_safetensors (path, trainer), "safetensors of a trainer");
  loaded (td_load_object (tensors_path, serialize, &kept), "safetensors of a loop");
  TD_SCOPE ("npy")
    n_loaded += !td_poisoned (td_load_npy (path));
  settle ("npy");
  read_dataset (td_npz_open (path, NULL, NULL), "npz data");
  read_dataset (td_csv_open (path, .label_column = -1), "csv");
  TD_SCOPE ("text")
    {
      TdDataset *text = td_text_open (path);

      td_iter_next (td_text_iterator_new (text, 2));
      settle ("text");
    }
  end ();
  unlink (path);
  unlink (tensors_path);
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

/* --- files as the engine itself writes them --- */

static TdStatus
save_npy (const char *name)
{
  TdStatus status = TD_OK;

  TD_SCOPE ("npy")
    status = td_save_npy (name, td_full (TD_F32, TD_SHAPE (3, 2), 1.5));
  return status;
}

static TdStatus
save_optimizer (const char *name)
{
  return td_save_npz (name, opt, .compression = false);
}

static TdStatus
save_optimizer_tensors (const char *name)
{
  return td_save_safetensors (name, opt);
}

static TdStatus
save_trainer (const char *name)
{
  return td_save_npz (name, trainer, .compression = false);
}

static TdStatus
save_trainer_tensors (const char *name)
{
  return td_save_safetensors (name, trainer);
}

static TdStatus
save_loop (const char *name)
{
  return td_save_object (name, serialize, &kept);
}

static const struct
{
  const char *ending;
  TdStatus (*save) (const char *name);
} made[] = {
  { ".npy", save_npy },
  { ".npz", save_optimizer },
  { ".safetensors", save_optimizer_tensors },
  { ".npz", save_trainer },
  { ".safetensors", save_trainer_tensors },
  { ".npz", save_loop },
  { ".safetensors", save_loop },
};

/* An optimizer has states after an update only. */
static void
fill (void)
{
  static const int32_t rows[] = { 1, -2, 3, -4, 5, -6 };

  TD_ITERATION (0)
    {
      TdVar *W = td_link_param (td_link_child (model, "l1"), "W");

      td_backward (td_sum (td_square (W)), 0);
      td_opt_update (opt);
      td_iter_next (iter);
    }
  kept.done = 5;
  kept.best = 0.1;
  kept.warm = true;
  kept.text = strdup ("after epoch 3");
  kept.shape = TD_SHAPE (3, 2);
  kept.rows = malloc (sizeof rows);
  if (kept.text == NULL || kept.rows == NULL)
    abort ();
  memcpy (kept.rows, rows, sizeof rows);
}

static void
run_made (size_t which)
{
  char name[80];
  uint8_t *good;
  size_t n;

  snprintf (name, sizeof name, "/dev/shm/td-fuzz-made-%ld%s", (long)getpid (),
            made[which].ending);
  start (3);
  fill ();
  if (made[which].save (name) != TD_OK)
    {
      fprintf (stderr, "%s: %s\n", name, td_error ()->message);
      abort ();
    }
  end ();
  good = fuzz_read (name, &n, 1 << 16);
  unlink (name);
  n_loaded = 0;
  LLVMFuzzerTestOneInput (good, n);
  if (n_loaded == 0)
    {
      fprintf (stderr, "%s: a good one is not loaded\n", name);
      abort ();
    }
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
  for (size_t i = 0; i < sizeof made / sizeof *made; i++)
    run_made (i);
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
