/* Data sets in npz and CSV files: what they hold, and one line about what they cannot.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "td-test.h"

static int
setup (void **state)
{
  td_test_setup (state);
  td_init (NULL, NULL);
  return 0;
}

static int
teardown (void **state)
{
  int status = td_finish ();

  td_test_teardown (state);
  return status;
}

static const char *
file_of (const char *name, const char *text)
{
  const char *path = td_test_tmp (name);

  td_test_write_file (path, text, strlen (text));
  return path;
}

/* The numbers of example i's first field, "1 2.5 |" and the label, if there is one. */
static void
assert_example (TdDataset *d, int64_t i, const char *text)
{
  TdExample e = { .n_fields = 0 };
  char got[200] = "";
  size_t used = 0;

  assert_int_equal (td_dataset_get (d, i, &e), TD_OK);
  assert_int_equal (e.field[0].dtype, TD_F32);
  assert_int_equal (e.field[0].shape.ndim, 1);
  for (int64_t k = 0; k < e.field[0].shape.dim[0]; k++)
    used += (size_t)snprintf (got + used, sizeof got - used, "%g ",
                              (double)((const float *)e.field[0].data)[k]);
  if (e.n_fields > 1)
    snprintf (got + used, sizeof got - used, "| %d", *(const int32_t *)e.field[1].data);
  assert_string_equal (got, text);
  td_example_clear (&e);
}

static void
csv__reads_numbers_and_labels (void **state)
{
  const char *path = file_of ("iris.csv", "sepal, petal ,\"kind, or so\"\r\n"
                                          "5.1,1.5,0\r\n"
                                          "\r\n"
                                          " \"4.9\" ,\t-1e2 , 2\r\n"
                                          "nan,inf,1");
  TdDataset *d = td_csv_open (path, .label_column = -1);

  (void)state;
  assert_int_equal (td_dataset_size (d), 3);
  assert_int_equal (td_dataset_shape (d).dim[0], 2);
  assert_example (d, 0, "5.1 1.5 | 0");
  assert_example (d, 1, "4.9 -100 | 2");
  assert_example (d, 2, "nan inf | 1");
  assert_example (td_csv_open (path), 0, "5.1 1.5 0 ");
}

static void
csv__takes_other_delimiters_and_a_label_in_front (void **state)
{
  TdDataset *d = td_csv_open (file_of ("a.tsv", "# made by hand\n3\t0.5\t1\n4\t0.25\t2\n"),
                              .delimiter = '\t', .label_column = 0, .skip_lines = 1);

  (void)state;
  assert_int_equal (td_dataset_size (d), 2);
  assert_example (d, 0, "0.5 1 | 3");
  assert_example (d, 1, "0.25 2 | 4");
}

static void
csv__takes_every_number_that_float32_can_hold (void **state)
{
  TdDataset *d = td_csv_open (file_of ("a.csv", "a,b\n"
                                                "16777216,-0016777218\n"
                                                "0.1,16777217.0\n"
                                                "1e-40,-0\n"
                                                "3.4028235e38,-inf\n"
                                                "0e-400,9007199254740992\n"));

  (void)state;
  assert_null (td_error ());
  assert_example (d, 0, "1.67772e+07 -1.67772e+07 ");
  assert_example (d, 1, "0.1 1.67772e+07 ");
  assert_example (d, 2, "9.99995e-41 -0 ");
  assert_example (d, 3, "3.40282e+38 -inf ");
  assert_example (d, 4, "0 9.0072e+15 ");
}

static void
csv__makes_batches (void **state)
{
  TdDataset *d = td_csv_open (file_of ("a.csv", "1,2,0\n3,4,1\n5,6,2\n"), .label_column = -1);

  (void)state;
  TD_SCOPE ("batch")
    {
      TdBatch b = td_iter_next (td_serial_iterator_new (d, .batch_size = 3, .shuffle = false));

      assert_int_equal (td_dtype (b.t), TD_I32);
      assert_true (td_mean_of (b.x) == 3.5 && td_mean_of (b.t) == 1);
    }
}

static void
csv__names_line_and_column_of_what_is_wrong (void **state)
{
  static const struct
  {
    const char *csv, *text;
    int label;
  } bad[] = {
    { "1,2\n3\n", "bad.csv: line 2: 1 columns, the lines before have 2", TD_CSV_NO_LABEL },
    { "1,2\n3,4,5\n", "bad.csv: line 2: 3 columns, the lines before have 2", TD_CSV_NO_LABEL },
    { "1,2\n3,x\n", "bad.csv: line 2, column 1: \"x\" is not a number", TD_CSV_NO_LABEL },
    { "1,2\n\n3,\n", "bad.csv: line 3, column 1: \"\" is not a number", TD_CSV_NO_LABEL },
    { "1,0\n3,0.5\n", "line 2, column 1: the label \"0.5\" is not a whole number", -1 },
    { "1,0\n3,1e10\n", "the label \"1e10\" is not a whole number", -1 },
    { "1,0\n3,setosa\n", "the label \"setosa\" is not a whole number", -1 },
    { "1,0\n", "there is no label in column 2 beside others: it has 2 columns", 2 },
    { "1\n", "there is no label in column -1 beside others: it has 1 columns", -1 },
    { "", "bad.csv: there is no line of numbers in it", TD_CSV_NO_LABEL },
    { "a,b\n", "there is no line of numbers in it", TD_CSV_NO_LABEL },
    { "1.O,2\n3,4\n", "line 1, column 0: \"1.O\" is not a number, beside numbers",
      TD_CSV_NO_LABEL },
    { "1,2,x\n3,4,5\n", "line 1, column 2: \"x\" is not a number", TD_CSV_NO_LABEL },
    { "1,2\n3,1e39\n", "line 2, column 1: \"1e39\" is more than float32 can hold",
      TD_CSV_NO_LABEL },
    { "1,-1e400\n", "line 1, column 1: \"-1e400\" is more than float32", TD_CSV_NO_LABEL },
    { "1,1e-60\n", "column 1: \"1e-60\" is too small for float32: it would become 0",
      TD_CSV_NO_LABEL },
    { "1e-400,1\n", "column 0: \"1e-400\" is too small for float32", TD_CSV_NO_LABEL },
    { "16777217,1\n", "\"16777217\" is a whole number that float32 would round",
      TD_CSV_NO_LABEL },
    { "1,-9007199254740993\n", "is a whole number that float32 would round", TD_CSV_NO_LABEL },
    { "1,2\n1,\"2\n", "column 1: \"\"2\" is not a number", TD_CSV_NO_LABEL },
  };

  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    {
      TdDataset *d
          = td_csv_open (file_of ("bad.csv", bad[i].csv), .label_column = bad[i].label);

      if (td_error () == NULL)
        fail_msg ("read: %s (%d rows)", bad[i].csv, (int)td_dataset_size (d));
      if (strstr (td_error ()->message, bad[i].text) == NULL)
        fail_msg ("%s: %s", bad[i].csv, td_error ()->message);
      assert_null (strchr (td_error ()->message, '\n'));
      td_error_clear ();
    }
  td_csv_open (td_test_tmp ("nothing.csv"));
  assert_contains (td_error ()->message, "nothing.csv: No such file or directory");
  td_error_clear ();
}

/* --- npz: files of our own, which NumPy reads too (test-serial-npz) --- */

static const char *
an_npz (void)
{
  const char *path = td_test_tmp ("data.npz");
  TdLink *link = td_chain_new ("data");

  td_link_add_persistent (link, "x",
                          td_reshape (td_arange (TD_F32, 0, 12, 1), TD_SHAPE (3, 4)));
  td_link_add_persistent (link, "t", td_arange (TD_I32, 5, 8, 1));
  td_link_add_persistent (link, "short", td_arange (TD_I32, 0, 2, 1));
  td_link_add_persistent (link, "scalar", td_zeros (TD_F32, TD_SCALAR));
  assert_int_equal (td_save_npz (path, link), TD_OK);
  td_link_free (link);
  return path;
}

static void
npz__gives_rows_with_labels (void **state)
{
  TdDataset *d = td_npz_open (an_npz (), "x", "t");

  (void)state;
  assert_int_equal (td_dataset_size (d), 3);
  assert_example (d, 1, "4 5 6 7 | 6");
  TD_SCOPE ("batch")
    {
      TdBatch b = td_iter_next (td_serial_iterator_new (d, .batch_size = 3));

      assert_true (td_mean_of (b.x) == 5.5 && td_mean_of (b.t) == 6);
    }
}

static void
npz__gives_all_arrays_by_name (void **state)
{
  const char *path = td_test_tmp ("all.npz");
  TdLink *link = td_chain_new ("data");
  TdDataset *d;

  (void)state;
  td_link_add_persistent (link, "left", td_ones (TD_U8, TD_SHAPE (2, 3)));
  td_link_add_persistent (link, "right", td_full (TD_F64, TD_SHAPE (2), 4));
  assert_int_equal (td_save_npz (path, link), TD_OK);
  d = td_npz_open (path, NULL, NULL);
  TD_SCOPE ("batch")
    {
      TdBatch b = td_iter_next (td_serial_iterator_new (d, .batch_size = 2));

      assert_int_equal (b.n_fields, 2);
      assert_int_equal (td_dtype (td_batch_get (&b, "left")), TD_U8);
      assert_true (td_mean_of (td_batch_get (&b, "right")) == 4);
    }
}

static void
npz__names_the_array_that_does_not_fit (void **state)
{
  static const struct
  {
    const char *x, *t, *text;
  } bad[] = {
    { "y", NULL, "data.npz: y: there is no such array in the file" },
    { "x", "short", "data.npz: short: it has 2 rows, the first array 3" },
    { "scalar", NULL, "data.npz: scalar: it has no rows" },
    { NULL, NULL, "rows" },
  };
  char *path = strdup (an_npz ());

  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    {
      assert_int_equal (td_dataset_size (td_npz_open (path, bad[i].x, bad[i].t)), 0);
      assert_contains (td_error ()->message, bad[i].text);
      td_error_clear ();
    }
  td_npz_open (file_of ("bad.npz", "PK"), "x", NULL);
  assert_contains (td_error ()->message, "bad.npz: not an npz file, or cut off");
  td_error_clear ();
  td_npz_open (path, NULL, "t");
  assert_int_equal (td_error ()->status, TD_ERR_ARG);
  td_error_clear ();
  free (path);
}

#define td_file_test(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_file_test (csv__reads_numbers_and_labels),
    td_file_test (csv__takes_other_delimiters_and_a_label_in_front),
    td_file_test (csv__takes_every_number_that_float32_can_hold),
    td_file_test (csv__makes_batches),
    td_file_test (csv__names_line_and_column_of_what_is_wrong),
    td_file_test (npz__gives_rows_with_labels),
    td_file_test (npz__gives_all_arrays_by_name),
    td_file_test (npz__names_the_array_that_does_not_fit),
  };

  return cmocka_run_group_tests_name ("data-files", tests, NULL, NULL);
}
