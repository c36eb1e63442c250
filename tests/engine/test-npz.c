/* npz: what is saved comes back, NumPy reads it, NumPy's is read, and a bad file changes
 * nothing. Files of NumPy's own: tests/golden/npz, made by make.py there.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "start.h"

#ifdef TD_WITH_ZLIB
#define WITH_ZLIB 1
#else
#define WITH_ZLIB 0
#endif

static const float weights[6] = { 0, 0.25f, 0.5f, 0.75f, 1, 1.25f };
static const float biases[2] = { -1.5f, 2.25f };

static TdLink *model;

/* A chain l1 with W (2, 3) and b (2), and a persistent n beside it. */
static int
setup (void **state)
{
  TdLink *l1;

  fixture_setup (state);
  model = td_chain_new ("model");
  l1 = td_chain_new (model, "l1");
  td_link_add_param (l1, "W", TD_SHAPE (2, 3), .initializer = td_init_constant (9));
  td_link_add_param (l1, "b", TD_SHAPE (2), .initializer = td_init_constant (9));
  td_link_add_persistent (model, "n", td_full (TD_I64, TD_SCALAR, 7));
  return 0;
}

static void
assert_weights (const float *W, const float *b, double n)
{
  float w[6], c[2];

  assert_int_equal (td_read (td_link_param (model, "l1/W"), w, sizeof w), TD_OK);
  assert_int_equal (td_read (td_link_param (model, "l1/b"), c, sizeof c), TD_OK);
  assert_memory_equal (w, W, sizeof w);
  assert_memory_equal (c, b, sizeof c);
  assert_true (td_item (td_link_param (model, "n")) == n);
}

static void
assert_untouched (void)
{
  static const float nine[6] = { 9, 9, 9, 9, 9, 9 };

  assert_weights (nine, nine, 7);
}

static void
save_known (const char *path)
{
  td_write (td_link_param (model, "l1/W"), weights, sizeof weights);
  td_write (td_link_param (model, "l1/b"), biases, sizeof biases);
  assert_int_equal (td_save_npz (path, model), TD_OK);
}

static void
npz__brings_back_what_was_saved (void **state)
{
  const char *path = td_test_tmp ("m.npz");
  float zeros[6] = { 0 };

  (void)state;
  save_known (path);
  td_write (td_link_param (model, "l1/W"), zeros, sizeof zeros);
  assert_int_equal (td_load_npz (path, model), TD_OK);
  assert_weights (weights, biases, 7);
}

static void
npz__is_read_by_numpy (void **state)
{
  const char *path = td_test_tmp ("m.npz");

  (void)state;
  save_known (path);
  assert_python_says ("import sys, numpy as np\n"
                      "f = np.load(sys.argv[1])\n"
                      "for k in sorted(f.files): print(k, f[k].dtype, f[k].tolist())\n",
                      path,
                      "l1/W float32 [[0.0, 0.25, 0.5], [0.75, 1.0, 1.25]]\n"
                      "l1/b float32 [-1.5, 2.25]\n"
                      "n int64 7\n");
}

static void
npz__reads_what_numpy_wrote_stored_and_deflated (void **state)
{
  static const char *const files[] = { "stored.npz", "dressed.npz", "deflated.npz" };

  (void)state;
  for (int i = 0; i < 2 + WITH_ZLIB; i++)
    {
      float nines[6] = { 9, 9, 9, 9, 9, 9 };

      td_write (td_link_param (model, "l1/W"), nines, sizeof nines);
      assert_int_equal (td_load_npz (numpys_file (files[i]), model), TD_OK);
      assert_weights (weights, biases, 42);
    }
}

static void
npz__names_file_and_key_of_what_does_not_fit (void **state)
{
  static const struct
  {
    const char *file, *key, *text;
    TdStatus status;
  } bad[] = {
    { "object.npz", "l1/W", "pickled Python object", TD_ERR_IO },
    { "shape.npz", "l1/W", "shape (2, 3) expected, the file has (3, 2)", TD_ERR_SHAPE },
    { "big-endian.npz", "l1/W", "big-endian", TD_ERR_IO },
  };

  (void)state;
  for (int i = 0; i < 3; i++)
    {
      assert_int_equal (td_load_npz (numpys_file (bad[i].file), model), bad[i].status);
      assert_contains (td_error ()->message, bad[i].file);
      assert_contains (td_error ()->message, bad[i].key);
      assert_contains (td_error ()->message, bad[i].text);
      td_error_clear ();
      assert_untouched ();
    }
  td_link_add_param (model, "more", TD_SHAPE (2));
  assert_int_equal (td_load_npz (numpys_file ("stored.npz"), model), TD_ERR_IO);
  assert_contains (td_error ()->message, "more: there is no such array in the file");
  td_error_clear ();
  assert_untouched ();
}

/* Cut off anywhere, or with any byte changed, a file is refused whole or read whole. */
static void
npz__survives_every_cut_and_every_changed_byte (void **state)
{
  static const char *const files[] = { "stored.npz", "deflated.npz" };
  const char *path = td_test_tmp ("bad.npz");

  (void)state;
  for (int f = 0; f < 1 + WITH_ZLIB; f++)
    {
      size_t n;
      char *bytes = td_test_read_file (numpys_file (files[f]), &n);

      for (size_t i = 0; i < n; i++)
        {
          td_test_write_file (path, bytes, i);
          assert_int_not_equal (td_load_npz (path, model), TD_OK);
          assert_null (strchr (td_error ()->message, '\n'));
          td_error_clear ();
          assert_untouched ();
        }
      for (size_t i = 0; i < n; i++)
        {
          float nines[6] = { 9, 9, 9, 9, 9, 9 };
          int64_t seven = 7;

          bytes[i] = (char)(bytes[i] ^ 0x41);
          td_test_write_file (path, bytes, n);
          if (td_load_npz (path, model) != TD_OK)
            assert_untouched ();
          else
            assert_weights (weights, biases, 42); /* a byte that says nothing, such as a date */
          td_error_clear ();
          bytes[i] = (char)(bytes[i] ^ 0x41);
          td_write (td_link_param (model, "l1/W"), nines, sizeof nines);
          td_write (td_link_param (model, "l1/b"), nines, 2 * sizeof *nines);
          td_write (td_link_param (model, "n"), &seven, sizeof seven);
        }
      free (bytes);
    }
}

/* What is no npy file in a zip file is no array; without any, it is said what it may be. */
static void
npz__says_what_a_zip_file_without_arrays_is (void **state)
{
  static const struct
  {
    const char *name, *words;
  } files[]
      = { { "pytorch.npz", ": a PyTorch pickle: save the state_dict as safetensors or npz" },
          { "../snapshot/small-2.pickle", ": a PyTorch pickle: save the state_dict" } };

  (void)state;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    {
      assert_int_equal (td_load_npz (numpys_file (files[i].name), model), TD_ERR_IO);
      assert_contains (td_error ()->message, files[i].words);
      td_error_clear ();
      td_dataset_free (td_npz_open (numpys_file (files[i].name), NULL, NULL));
      assert_contains (td_error ()->message, files[i].words);
      td_error_clear ();
    }
  assert_untouched ();
  assert_int_equal (td_load_npz (numpys_file ("mixed.npz"), model), TD_OK);
  assert_weights (weights, biases, 42);
}

/* Which of them is meant nobody can know. */
static void
npz__with_two_arrays_of_one_name_is_refused (void **state)
{
  const char *path = td_test_tmp ("twins.npz");
  size_t n, n_changed = 0;
  char *bytes;
  FILE *file;

  (void)state;
  bytes = td_test_read_file (numpys_file ("stored.npz"), &n);
  for (size_t i = 0; i + 4 < n; i++)
    if (memcmp (bytes + i, "l1/b", 4) == 0)
      {
        bytes[i + 3] = 'W';
        n_changed++;
      }
  assert_int_equal (n_changed, 2); /* where it lies, and in the directory */
  file = fopen (path, "wb");
  assert_non_null (file);
  assert_int_equal (fwrite (bytes, 1, n, file), n);
  assert_int_equal (fclose (file), 0);
  free (bytes);
  assert_int_equal (td_load_npz (path, model), TD_ERR_IO);
  assert_contains (td_error ()->message, "twins.npz: two of its arrays have one name");
  td_error_clear ();
  assert_untouched ();
}

/* A build without zlib says so, and reads and writes the rest. */
static void
npz__says_what_it_cannot_unpack (void **state)
{
  (void)state;
  if (WITH_ZLIB)
    skip ();
  assert_int_equal (td_load_npz (numpys_file ("deflated.npz"), model), TD_ERR_IO);
  assert_contains (td_error ()->message, ": it is deflated, and this build has no zlib");
  td_error_clear ();
  assert_untouched ();
}

static void
npz__gives_waiting_parameters_their_shape (void **state)
{
  TdLink *lazy = td_chain_new ("lazy"), *l1 = td_chain_new (lazy, "l1");
  float w[6];

  (void)state;
  assert_null (td_link_add_param (l1, "W", TD_SHAPE (2, TD_INFER)));
  assert_int_equal (td_load_npz (numpys_file ("stored.npz"), lazy), TD_OK);
  assert_int_equal (td_read (td_link_param (lazy, "l1/W"), w, sizeof w), TD_OK);
  assert_memory_equal (w, weights, sizeof w);
}

static void
npz__replaces_a_file_whole_or_not_at_all (void **state)
{
  const char *path = td_test_tmp ("m.npz"), *nowhere = td_test_tmp ("no/such/folder/m.npz");
  char folder[4096];
  struct dirent *entry;
  size_t n, again_n;
  char *bytes, *again;
  DIR *dir;
  int n_files = 0;

  (void)state;
  save_known (path);
  bytes = td_test_read_file (path, &n);
  assert_int_equal (td_save_npz (path, model), TD_OK);
  again = td_test_read_file (path, &again_n);
  assert_int_equal (n, again_n); /* the same weights are the same bytes */
  assert_memory_equal (bytes, again, n);
  assert_int_equal (td_save_npz (nowhere, model), TD_ERR_IO);
  assert_contains (td_error ()->message, "m.npz: No such file or directory");
  td_error_clear ();
  snprintf (folder, sizeof folder, "%s", path);
  *strrchr (folder, '/') = '\0';
  dir = opendir (folder);
  while ((entry = readdir (dir)) != NULL)
    n_files += entry->d_name[0] != '.';
  closedir (dir);
  assert_int_equal (n_files, 1); /* no temporary file is left */
  free (bytes);
  free (again);
}

/* A real file of 10,000 pictures, deflated by NumPy. */
static void
npz__reads_kmnist (void **state)
{
  const char *path = td_test_shared ("data/kmnist/kmnist-test-imgs.npz");
  TdLink *link = td_chain_new ("kmnist");
  TdVar *images;

  (void)state;
  if (!WITH_ZLIB)
    skip ();
  td_link_add_persistent (link, "arr_0", td_zeros (TD_U8, TD_SHAPE (10000, 28, 28)));
  assert_int_equal (td_load_npz (path, link), TD_OK);
  images = td_link_param (link, "arr_0");
  assert_in_range ((int)td_mean_of (images), 40, 60);
}

#define td_npz_test(f) cmocka_unit_test_setup_teardown (f, setup, fixture_teardown)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_npz_test (npz__brings_back_what_was_saved),
    td_npz_test (npz__is_read_by_numpy),
    td_npz_test (npz__reads_what_numpy_wrote_stored_and_deflated),
    td_npz_test (npz__names_file_and_key_of_what_does_not_fit),
    td_npz_test (npz__survives_every_cut_and_every_changed_byte),
    td_npz_test (npz__says_what_a_zip_file_without_arrays_is),
    td_npz_test (npz__with_two_arrays_of_one_name_is_refused),
    td_npz_test (npz__says_what_it_cannot_unpack),
    td_npz_test (npz__gives_waiting_parameters_their_shape),
    td_npz_test (npz__replaces_a_file_whole_or_not_at_all),
    td_npz_test (npz__reads_kmnist),
  };

  return cmocka_run_group_tests_name ("npz", tests, NULL, NULL);
}
