/* Datasets and iterators: what comes out of good files, and what is said about bad ones.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#ifdef TD_WITH_ZLIB
#include <zlib.h>
#endif

#include "start.h"

/* Skips the test in a build without zlib. */
static void
write_gzip (const char *path, const void *head, size_t head_bytes, const void *data, size_t n)
{
#ifdef TD_WITH_ZLIB
  gzFile f = gzopen (path, "wb");

  assert_non_null (f);
  gzwrite (f, head, (unsigned)head_bytes);
  gzwrite (f, data, (unsigned)n);
  gzclose (f);
#else
  (void)path, (void)head, (void)head_bytes, (void)data, (void)n;
  skip ();
#endif
}

/* Write an IDX file of n bytes of content behind a header of the given sizes. */
static const char *
idx_file (const char *name, int type, int ndim, const uint32_t *dims, const void *data,
          size_t n, bool packed)
{
  unsigned char head[64] = { 0, 0, (unsigned char)type, (unsigned char)ndim };
  const char *path = td_test_tmp (name);
  size_t bytes = 4 + 4 * (size_t)ndim;

  for (int i = 0; i < ndim; i++)
    for (int k = 0; k < 4; k++)
      head[4 + 4 * i + k] = (unsigned char)(dims[i] >> (24 - 8 * k));
  if (packed)
    write_gzip (path, head, bytes, data, n);
  else
    {
      char *all = malloc (bytes + n);

      memcpy (all, head, bytes);
      memcpy (all + bytes, data, n);
      td_test_write_file (path, all, bytes + n);
      free (all);
    }
  return path;
}

static const unsigned char pixels[12] = { 0, 51, 102, 153, 204, 255, 5, 4, 3, 2, 1, 0 };
static const unsigned char two_labels[2] = { 7, 200 };
static const uint32_t picture_dims[3] = { 2, 2, 3 };
static const uint32_t label_dims[1] = { 2 };

static void
check_two_pictures (TdDataset *d)
{
  TdIter *it = td_serial_iterator_new (d, .batch_size = 2, .shuffle = false);
  float x[12];
  int32_t t[2];

  assert_null (td_error ());
  assert_int_equal (td_dataset_size (d), 2);
  TD_SCOPE ("batch")
    {
      TdBatch b = td_iter_next (it);
      TdShape shape = td_shape (b.x);

      assert_int_equal (shape.ndim, 3);
      assert_true (shape.dim[0] == 2 && shape.dim[1] == 2 && shape.dim[2] == 3);
      assert_int_equal (td_dtype (b.x), TD_F32);
      assert_int_equal (td_dtype (b.t), TD_I32);
      assert_int_equal (td_read (b.x, x, sizeof x), TD_OK);
      assert_int_equal (td_read (b.t, t, sizeof t), TD_OK);
    }
  for (int i = 0; i < 12; i++)
    assert_true (x[i] == (float)pixels[i] / 255.0f);
  assert_true (t[0] == 7 && t[1] == 200);
}

static void
idx__reads_plain_files_as_float_over_255 (void **state)
{
  (void)state;
  check_two_pictures (
      td_idx_open (idx_file ("images", 8, 3, picture_dims, pixels, 12, false),
                   idx_file ("labels", 8, 1, label_dims, two_labels, 2, false)));
}

static void
idx__knows_gzip_by_its_content (void **state)
{
  (void)state;
  check_two_pictures (
      td_idx_open (idx_file ("images-without-ending", 8, 3, picture_dims, pixels, 12, true),
                   idx_file ("labels", 8, 1, label_dims, two_labels, 2, true)));
}

static void
idx__says_what_is_wrong_with_a_header (void **state)
{
  static const uint32_t huge[3] = { 0xffffffff, 0xffffffff, 0xffffffff };
  static const uint32_t no_rows[4] = { 0, 0xffffffff, 0xffffffff, 0xffffffff };
  static const uint32_t giant[3] = { 60000, 65535, 65535 };

  (void)state;
  td_test_write_file (td_test_tmp ("text"), "hello, world", 12);
  td_idx_open (td_test_tmp ("text"), NULL);
  assert_contains (said (TD_ERR_IO), "not an IDX file");
  td_idx_open (idx_file ("type", 13, 3, picture_dims, pixels, 12, false), NULL);
  assert_contains (said (TD_ERR_IO), "type 0x0d");
  td_idx_open (
      idx_file ("rank", 8, 9, (uint32_t[9]){ 1, 1, 1, 1, 1, 1, 1, 1, 1 }, pixels, 1, false),
      NULL);
  assert_contains (said (TD_ERR_IO), "9 axes");
  td_idx_open (idx_file ("huge", 8, 3, huge, pixels, 12, false), NULL);
  assert_contains (said (TD_ERR_IO), "more elements than can be counted");
  td_idx_open (idx_file ("no-rows", 8, 4, no_rows, pixels, 0, false), NULL);
  assert_contains (said (TD_ERR_IO), "more elements than can be counted");
  td_idx_open (idx_file ("large", 8, 3, giant, pixels, 12, false), NULL);
  assert_contains (said (TD_ERR_IO), "more than the file can hold");
  td_test_write_file (td_test_tmp ("short"), "\0\0\x08\x03\0\0\0\x02", 8);
  td_idx_open (td_test_tmp ("short"), NULL);
  assert_contains (said (TD_ERR_IO), "within its header");
  td_test_write_file (td_test_tmp ("empty"), "", 0);
  td_idx_open (td_test_tmp ("empty"), NULL);
  assert_contains (said (TD_ERR_IO), "not an IDX file");
}

static void
idx__says_where_a_file_is_missing_or_cut_off (void **state)
{
  (void)state;
  td_idx_open (td_test_tmp ("nowhere"), NULL);
  assert_contains (said (TD_ERR_IO), "nowhere: No such file");
  td_idx_open ("/dev/zero", NULL);
  assert_contains (said (TD_ERR_IO), "not a regular file");
  td_idx_open (idx_file ("cut", 8, 3, picture_dims, pixels, 11, false), NULL);
  assert_contains (said (TD_ERR_IO), "more than the file can hold");
  td_idx_open (idx_file ("long", 8, 1, label_dims, pixels, 12, false), NULL);
  assert_contains (said (TD_ERR_IO), "goes on after");
}

static void
idx__says_what_is_wrong_with_a_gzip_file (void **state)
{
  static const uint32_t giant[3] = { 60000, 65535, 65535 };
  const char *path;
  char *bytes;
  size_t n;

  (void)state;
  td_idx_open (idx_file ("giant.gz", 8, 3, giant, pixels, 12, true), NULL);
  assert_contains (said (TD_ERR_IO), "more than the file can hold");
  td_idx_open (idx_file ("cut.gz", 8, 3, picture_dims, pixels, 11, true), NULL);
  assert_contains (said (TD_ERR_IO), "truncated: its header promises (2, 2, 3)");
  path = idx_file ("broken.gz", 8, 3, picture_dims, pixels, 12, true);
  bytes = td_test_read_file (path, &n);
  td_test_write_file (path, bytes, n / 2);
  free (bytes);
  td_idx_open (path, NULL);
  assert_contains (said (TD_ERR_IO), "gzip stream is cut off");
}

/* 64 MB of zeros in 64 KB of gzip behind a header that promises 12 bytes. */
static void
idx__takes_from_a_bomb_what_its_header_promises (void **state)
{
  size_t n = 64u << 20;
  char *zeros = calloc (1, n);
  const char *path = idx_file ("bomb", 8, 3, picture_dims, zeros, n, true);
  struct rusage before, after;

  (void)state;
  free (zeros);
  getrusage (RUSAGE_SELF, &before);
  td_idx_open (path, NULL);
  getrusage (RUSAGE_SELF, &after);
  assert_contains (said (TD_ERR_IO), "goes on after");
  assert_true (after.ru_maxrss - before.ru_maxrss < 8 << 10);
}

static void
idx__compares_labels_with_images (void **state)
{
  static const uint32_t three[1] = { 3 };

  (void)state;
  td_idx_open (idx_file ("images", 8, 3, picture_dims, pixels, 12, false),
               idx_file ("labels", 8, 1, three, pixels, 3, false));
  assert_contains (said (TD_ERR_IO), "3 labels for 2 images");
  td_idx_open (idx_file ("images", 8, 3, picture_dims, pixels, 12, false),
               idx_file ("labels", 8, 3, picture_dims, pixels, 12, false));
  assert_contains (said (TD_ERR_IO), "labels are in one axis");
}

static void
mnist__refuses_labels_beyond_nine (void **state)
{
  char folder[4096];

  (void)state;
  idx_file ("t10k-images-idx3-ubyte", 8, 3, picture_dims, pixels, 12, false);
  snprintf (folder, sizeof folder, "%s",
            idx_file ("t10k-labels-idx1-ubyte", 8, 1, label_dims, two_labels, 2, false));
  *strrchr (folder, '/') = '\0';
  td_mnist_open (folder, TD_TEST);
  assert_contains (said (TD_ERR_IO), "label 200 of row 1 is not in 0 to 9");
  td_mnist_open (folder, TD_TRAIN);
  assert_contains (said (TD_ERR_IO), "has no train-images-idx3-ubyte, with or without .gz");
  td_mnist_open (folder, 3);
  assert_contains (said (TD_ERR_ARG), "neither TD_TRAIN nor TD_TEST");
}

static void
dataset__is_inert_after_an_error (void **state)
{
  TdDataset *d = td_idx_open (td_test_tmp ("nowhere"), NULL);
  TdIter *it = td_serial_iterator_new (d, .batch_size = 2);
  int n = 0;

  (void)state;
  while (td_iter_epoch (it) < 3)
    n++; /* the loop of a model does not run, even if it never asks for errors */
  assert_int_equal (n, 0);
  assert_true (td_poisoned (td_iter_next (it).x));
  assert_contains (said (TD_ERR_IO), "nowhere");
  td_iter_free (it);
  td_dataset_free (d);
}

static void
mnist__has_its_published_counts (void **state)
{
  static const int published[10] = { 980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009 };
  char folder[4096];
  int count[10] = { 0 };
  TdDataset *d;
  TdIter *it;

  (void)state;
#ifndef TD_WITH_ZLIB
  skip ();
#endif
  snprintf (folder, sizeof folder, "%s",
            td_test_shared ("data/mnist/t10k-labels-idx1-ubyte.gz"));
  *strrchr (folder, '/') = '\0';
  setenv ("TAPEDECK_DATA", folder, 1);
  d = td_mnist_open (NULL, TD_TEST);
  unsetenv ("TAPEDECK_DATA");
  it = td_serial_iterator_new (d, .batch_size = 1000, .repeat = false);
  assert_int_equal (td_dataset_size (d), 10000);
  while (td_iter_epoch (it) < 1)
    TD_SCOPE ("batch")
      {
        int32_t t[1000];

        assert_int_equal (td_read (td_iter_next (it).t, t, sizeof t), TD_OK);
        for (int i = 0; i < 1000; i++)
          count[t[i]]++;
      }
  assert_memory_equal (count, published, sizeof count);
}

static uint64_t
hash_batches (int part, int n, int counts[10])
{
  TdIter *it = td_serial_iterator_new (td_mnist_open (NULL, part), .batch_size = 100,
                                       .shuffle = false);
  uint64_t h = 14695981039346656037u;

  for (int i = 0; i < n; i++)
    TD_SCOPE ("batch")
      {
        static float x[100 * 784];
        int32_t t[100];
        TdBatch b = td_iter_next (it);

        assert_int_equal (td_read (b.x, x, sizeof x), TD_OK);
        assert_int_equal (td_read (b.t, t, sizeof t), TD_OK);
        for (size_t k = 0; k < sizeof x; k++)
          h = (h ^ ((unsigned char *)x)[k]) * 1099511628211u;
        for (int k = 0; k < 100; k++)
          counts[t[k]]++;
      }
  return h;
}

static void
digits__are_the_same_in_every_run_and_balanced (void **state)
{
  int counts[10] = { 0 }, test_counts[10] = { 0 }, again[10] = { 0 };
  uint64_t train, test;

  (void)state;
  assert_true (td_dataset_size (td_mnist_open (NULL, TD_TRAIN)) >= 10000);
  assert_true (td_dataset_size (td_mnist_open (NULL, TD_TEST)) >= 2000);
  train = hash_batches (TD_TRAIN, 100, counts);
  test = hash_batches (TD_TEST, 20, test_counts);
  assert_true (train == hash_batches (TD_TRAIN, 100, again));
  assert_true (train != test);
  for (int i = 0; i < 10; i++)
    {
      assert_in_range (counts[i], 900, 1100);
      assert_in_range (test_counts[i], 150, 250);
    }
}

/* --- iterators --- */

static TdDataset *
numbers (int n)
{
  TdDataset *d = NULL;

  TD_SCOPE ("numbers")
    {
      TdVar *x = td_arange (TD_F32, 0, n, 1), *t = td_arange (TD_I32, 0, n, 1);

      d = td_tuple_dataset_new (x, t);
    }
  return d;
}

/* The numbers of the next batch; their labels must agree. */
static int
next (TdIter *it, int *values)
{
  int n = 0;

  TD_SCOPE ("batch")
    {
      TdBatch b = td_iter_next (it);
      float x[64];
      int32_t t[64];

      n = (int)b.n;
      td_read (b.x, x, (size_t)n * sizeof *x);
      td_read (b.t, t, (size_t)n * sizeof *t);
      for (int i = 0; i < n; i++)
        {
          values[i] = (int)x[i];
          assert_int_equal (values[i], t[i]);
        }
    }
  return n;
}

static void
iterator__wraps_a_batch_around_the_end_of_an_epoch (void **state)
{
  TdIter *it = td_serial_iterator_new (numbers (5), .batch_size = 3, .shuffle = false);
  int v[64];

  (void)state;
  assert_int_equal (next (it, v), 3);
  assert_true (v[0] == 0 && v[2] == 2);
  assert_false (td_iter_is_new_epoch (it));
  assert_true (td_iter_epoch_detail (it) == 0.6);
  assert_int_equal (next (it, v), 3);
  assert_true (v[0] == 3 && v[1] == 4 && v[2] == 0);
  assert_true (td_iter_is_new_epoch (it));
  assert_int_equal (td_iter_epoch (it), 1);
  assert_int_equal (next (it, v), 3);
  assert_true (v[0] == 1);
  assert_false (td_iter_is_new_epoch (it));
  assert_int_equal (td_iter_count (it), 3);
}

static void
iterator__ends_with_a_smaller_batch_without_repeat (void **state)
{
  TdIter *it = td_serial_iterator_new (numbers (5), .batch_size = 3, .shuffle = false,
                                       .repeat = false);
  int v[64];

  (void)state;
  assert_int_equal (next (it, v), 3);
  assert_int_equal (next (it, v), 2);
  assert_true (v[0] == 3 && v[1] == 4);
  assert_int_equal (td_iter_epoch (it), 1);
  assert_true (td_poisoned (td_iter_next (it).x));
  assert_contains (said (TD_ERR_STATE), "at its end");
  td_iter_reset (it);
  assert_int_equal (next (it, v), 3);
}

static void
iterator__gives_every_row_once_an_epoch_in_an_order_of_its_seed (void **state)
{
  TdIter *a = td_serial_iterator_new (numbers (60), .batch_size = 60, .seed = 7);
  TdIter *b = td_serial_iterator_new (numbers (60), .batch_size = 60, .seed = 7);
  TdIter *c = td_serial_iterator_new (numbers (60), .batch_size = 60, .seed = 8);
  int va[64], vb[64], vc[64], second[64], seen[60] = { 0 };

  (void)state;
  next (a, va);
  next (b, vb);
  next (c, vc);
  next (a, second);
  for (int i = 0; i < 60; i++)
    seen[va[i]]++;
  for (int i = 0; i < 60; i++)
    assert_int_equal (seen[i], 1);
  assert_memory_equal (va, vb, 60 * sizeof *va);
  assert_memory_not_equal (va, vc, 60 * sizeof *va);
  assert_memory_not_equal (va, second, 60 * sizeof *va);
}

static void
iterator__refuses_what_makes_no_batch (void **state)
{
  TdDataset *d = numbers (5);

  (void)state;
  td_serial_iterator_new (d, .batch_size = 0);
  assert_contains (said (TD_ERR_ARG), "batches of 0 out of 5 rows");
  assert_int_equal (td_dataset_slice (d, 2, 9), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "rows 2 to 9 are not among 5");
  assert_int_equal (td_dataset_slice (d, 1, 3), TD_OK);
  td_serial_iterator_new (td_text_from ("abc"));
  assert_contains (said (TD_ERR_ARG), "td_text_iterator_new");
}

static void
text__numbers_characters_and_follows_each_by_the_next (void **state)
{
  TdDataset *d;
  TdIter *it;

  (void)state;
  td_test_write_file (td_test_tmp ("text"), "abcabd", 6);
  d = td_text_open (td_test_tmp ("text"));
  it = td_text_iterator_new (d, 2);
  assert_int_equal (td_text_vocabulary (d), 4);
  assert_int_equal (td_text_byte (d, 3), 'd');
  assert_int_equal (td_text_byte (d, 4), -1);
  for (int i = 0; i < 3; i++)
    TD_SCOPE ("batch")
      {
        static const int32_t xs[3][2] = { { 0, 0 }, { 1, 1 }, { 2, 3 } };
        static const int32_t ts[3][2] = { { 1, 1 }, { 2, 3 }, { 0, 0 } };
        TdBatch b = td_iter_next (it);
        int32_t x[2], t[2];

        td_read (b.x, x, sizeof x);
        td_read (b.t, t, sizeof t);
        assert_memory_equal (x, xs[i], sizeof x);
        assert_memory_equal (t, ts[i], sizeof t);
        assert_int_equal (td_iter_epoch (it), i == 2);
      }
  td_text_open (td_test_tmp ("missing"));
  assert_contains (said (TD_ERR_IO), "missing: No such file");
}

static void
tuple__wants_as_many_labels_as_rows (void **state)
{
  (void)state;
  td_tuple_dataset_new (td_zeros (TD_F32, TD_SHAPE (3, 2)), td_zeros (TD_I32, TD_SHAPE (4)));
  assert_contains (said (TD_ERR_SHAPE), "got x (3, 2) and t (4)");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    train_test (idx__reads_plain_files_as_float_over_255),
    train_test (idx__knows_gzip_by_its_content),
    train_test (idx__says_what_is_wrong_with_a_header),
    train_test (idx__says_where_a_file_is_missing_or_cut_off),
    train_test (idx__says_what_is_wrong_with_a_gzip_file),
    train_test (idx__takes_from_a_bomb_what_its_header_promises),
    train_test (idx__compares_labels_with_images),
    train_test (mnist__refuses_labels_beyond_nine),
    train_test (mnist__has_its_published_counts),
    train_test (dataset__is_inert_after_an_error),
    train_test (digits__are_the_same_in_every_run_and_balanced),
    train_test (iterator__wraps_a_batch_around_the_end_of_an_epoch),
    train_test (iterator__ends_with_a_smaller_batch_without_repeat),
    train_test (iterator__gives_every_row_once_an_epoch_in_an_order_of_its_seed),
    train_test (iterator__refuses_what_makes_no_batch),
    train_test (text__numbers_characters_and_follows_each_by_the_next),
    train_test (tuple__wants_as_many_labels_as_rows),
  };

  return cmocka_run_group_tests_name ("data", tests, NULL, NULL);
}
