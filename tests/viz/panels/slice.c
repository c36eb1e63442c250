/*
 * Slices mean what NumPy means by them, and what is no slice is refused with its place.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "gradient/td-tensor.h"
#include "td-test.h"

static TdTensor *
counted (guint ndim, const gint64 *dims, guint n_there)
{
  float v[256];

  for (guint i = 0; i < G_N_ELEMENTS (v); i++)
    v[i] = (float)i;
  return td_tensor_new_live ("x", TD_TAPE_F32, ndim, dims, v, n_there * sizeof (float));
}

/* Expected: numpy.arange (60).reshape (3, 4, 5)[TEXT], shape and elements. */
static void
slice__takes_what_numpy_takes (void **state)
{
  static const gint64 dims[] = { 3, 4, 5 };
  static const struct
  {
    const char *text, *shape;
    int first, last;
    double sum;
  } rows[] = {
    { "", "[3, 4, 5]", 0, 59, 1770 },
    { "[]", "[3, 4, 5]", 0, 59, 1770 },
    { "...", "[3, 4, 5]", 0, 59, 1770 },
    { "[0]", "[4, 5]", 0, 19, 190 },
    { "0, :, 3:7", "[4, 2]", 3, 19, 88 },
    { "[ -1 , 1 : 3 , ::2 ]", "[2, 3]", 45, 54, 297 },
    { "[..., -1]", "[3, 4]", 4, 59, 378 },
    { "[1, ..., 2]", "[4]", 22, 37, 118 },
    { "[0, 0, 0]", "[]", 0, 0, 0 },
    { "[2, 3, ::-1]", "[5]", 59, 55, 285 },
    { "[::-2, 0, 4:0:-3]", "[2, 2]", 44, 1, 90 },
    { "[:, 2:2]", "[3, 0, 5]", -1, -1, 0 },
    { "[100:, 0]", "[0, 5]", -1, -1, 0 },
    { "[-100:100, 0, 0,]", "[3]", 0, 40, 60 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      TdTensor *x = counted (3, dims, 60);
      TdSlice slice;
      g_autoptr (GError) error = NULL;
      double sum = 0;

      if (!td_slice_parse (rows[i].text, 3, dims, &slice, NULL, &error))
        fail_msg ("%s: %s", rows[i].text, error->message);
      TdTensor *part = td_tensor_take (x, &slice, &error);
      assert_null (error);
      g_autofree char *shape = td_slice_dup_index (part->ndim, part->dims);
      assert_string_equal (shape, rows[i].shape);
      assert_int_equal (part->n_values, part->n_total);
      for (guint64 k = 0; k < part->n_values; k++)
        {
          gint64 index[TD_TAPE_MAX_NDIM];
          float raw;

          sum += part->values[k];
          memcpy (&raw, (const char *)g_bytes_get_data (part->raw, NULL) + k * 4, 4);
          assert_true ((double)raw == part->values[k]);
          /* an element knows where in the tensor it was */
          td_slice_locate (&part->slice, k, index);
          assert_true (part->values[k] == (double)(index[0] * 20 + index[1] * 5 + index[2]));
        }
      assert_true (sum == rows[i].sum);
      if (rows[i].first >= 0)
        {
          assert_true (part->values[0] == rows[i].first);
          assert_true (part->values[part->n_values - 1] == rows[i].last);
        }
      td_tensor_free (part);
      td_tensor_free (x);
    }
}

/* All starts and ends from -7 to 7 or left out, all steps from -3 to 3, of five elements. The
 * two numbers were computed by Python over list (range (5))[start:end:step]. */
static void
slice__ranges_are_those_of_python (void **state)
{
  static const gint64 dims[] = { 5 };
  guint64 n = 0, hash = 0;

  for (int a = -8; a <= 7; a++)
    for (int b = -8; b <= 7; b++)
      for (int s = -4; s <= 3; s++)
        {
          g_autoptr (GString) text = g_string_new (NULL);
          TdSlice slice;

          if (s == 0)
            continue;
          if (a > -8)
            g_string_append_printf (text, "%d", a);
          g_string_append_c (text, ':');
          if (b > -8)
            g_string_append_printf (text, "%d", b);
          if (s > -4)
            g_string_append_printf (text, ":%d", s);
          assert_true (td_slice_parse (text->str, 1, dims, &slice, NULL, NULL));
          for (gint64 k = 0; k < slice.axes[0].n; k++)
            {
              gint64 v = slice.axes[0].start + k * slice.axes[0].step;
              assert_in_range (v, 0, 4);
              hash = (hash * 31 + (guint64)v + 1) % 1000000007;
              n++;
            }
          hash = (hash * 31 + 7) % 1000000007;
        }
  assert_int_equal (n, 1640);
  assert_int_equal (hash, 809920500);
}

static void
slice__mistakes_are_one_line_with_their_place (void **state)
{
  static const gint64 dims[] = { 3, 1, 5 };
  static const struct
  {
    const char *text;
    guint at;
    const char *said;
  } rows[] = {
    { "[3]", 1, "slice, character 2: index 3 is outside of axis 0, which has 3 elements" },
    { "[0, -2]", 4, "slice, character 5: index -2 is outside of axis 1, which has 1 element" },
    { "[::0]", 1, "slice, character 2: the step is 0" },
    { "[0, 0, 0, 0]", 10, "slice, character 11: the tensor has 3 axes, this is one more" },
    { "[..., ...]", 6, "slice, character 7: one ellipsis is enough" },
    { "[0, 1:2", 7, "slice, character 8: the bracket is not closed" },
    { "[0] 1", 4, "slice, character 5: “1” is not understood here" },
    { "0]", 1, "slice, character 2: “]” is not understood here" },
    { "[a]", 1, "slice, character 2: an index or a range is wanted before “a”" },
    { "[0,, 1]", 3, "slice, character 4: an index or a range is wanted before “,”" },
    { "[1:2:3:4]", 6, "slice, character 7: a range has two colons at most" },
    { "[1.5]", 2, "slice, character 3: “.” is not understood here" },
    { "[é]", 1, "slice, character 2: an index or a range is wanted before “é”" },
    { "[:, é]", 4, "slice, character 5: an index or a range is wanted before “é”" },
    { "[99999999999999999999]", 1, "slice, character 2: the number is too large" },
    { "0,0,0,0,0,0,0,0,0,0,0,0", 18, "slice, character 19: there are too many indices" },
    { "\xff", 0, "slice, character 1: the text is not UTF-8" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      TdSlice slice;
      guint at = 99;
      g_autoptr (GError) error = NULL;

      assert_false (td_slice_parse (rows[i].text, 3, dims, &slice, &at, &error));
      assert_string_equal (error->message, rows[i].said);
      assert_int_equal (at, rows[i].at);
    }
}

/* Twenty-seven of sixty elements are there: a part has those that come before its first missing
 * one, and what it lacks is neither counted nor written. */
static void
slice__of_a_part_says_what_is_missing (void **state)
{
  static const gint64 dims[] = { 3, 4, 5 };
  TdTensor *x = counted (3, dims, 27);
  TdSlice slice;
  g_autoptr (GError) error = NULL;

  assert_true (td_slice_parse ("[:, :, 2]", 3, dims, &slice, NULL, NULL));
  TdTensor *part = td_tensor_take (x, &slice, &error);
  assert_int_equal (part->n_total, 12);
  assert_int_equal (part->n_values, 5);
  assert_true (part->values[4] == 22);
  g_autofree char *text = td_tensor_print (part, "text");
  assert_contains (text, "max ≈22");
  g_autofree char *csv = td_tensor_print (part, "csv");
  assert_string_equal (csv, "2,7,12,17\n22,,,\n,,,\n");
  assert_null (td_tensor_to_npy (part));
  td_tensor_free (part);
  assert_true (td_slice_parse ("[::-1]", 3, dims, &slice, NULL, NULL));
  assert_null (td_tensor_take (x, &slice, &error));
  assert_string_equal (error->message, "only the first 27 of 60 values are there: a slice of "
                                       "them cannot step back");
  td_tensor_free (x);
}

/* A tape may say what it likes: a tensor of 2^62 elements of which three are there, and one of
 * more than can be counted. */
static void
slice__of_what_says_it_is_huge_takes_what_is_there (void **state)
{
  static const gint64 huge[] = { (gint64)1 << 31, (gint64)1 << 31 };
  static const gint64 more[] = { (gint64)1 << 40, (gint64)1 << 40 };
  TdTensor *x = counted (2, huge, 3), *y = counted (2, more, 3);
  TdSlice slice;

  assert_true (td_slice_parse ("[:, 1:]", 2, huge, &slice, NULL, NULL));
  TdTensor *part = td_tensor_take (x, &slice, NULL);
  assert_int_equal (part->n_values, 2);
  assert_true (part->values[0] == 1 && part->values[1] == 2);
  td_tensor_free (part);
  td_tensor_free (x);
  assert_true (td_slice_parse ("[5, :7]", 2, more, &slice, NULL, NULL));
  part = td_tensor_take (y, &slice, NULL);
  assert_int_equal (part->n_total, 0);
  assert_int_equal (part->n_values, 0);
  td_tensor_free (part);
  td_tensor_free (y);
}

static void
slice__npy_and_csv_hold_the_part (void **state)
{
  static const gint64 dims[] = { 3, 4, 5 };
  TdTensor *x = counted (3, dims, 60);
  TdSlice slice;
  float values[4];
  gsize n;

  assert_true (td_slice_parse ("[1, 2:, ::3]", 3, dims, &slice, NULL, NULL));
  TdTensor *part = td_tensor_take (x, &slice, NULL);
  g_autofree char *csv = td_tensor_print (part, "csv");
  assert_string_equal (csv, "30,33\n35,38\n");
  g_autoptr (GBytes) npy = td_tensor_to_npy (part);
  const char *data = g_bytes_get_data (npy, &n);
  g_autofree char *head = g_strndup (data + 10, 100);
  assert_contains (head, "'shape': (2, 2,)");
  assert_int_equal (n, 64 * ((n - 16) / 64) + 16);
  memcpy (values, data + n - 16, 16);
  assert_true (values[0] == 30 && values[1] == 33 && values[2] == 35 && values[3] == 38);
  td_tensor_free (part);
  td_tensor_free (x);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (slice__takes_what_numpy_takes),
    td_test (slice__ranges_are_those_of_python),
    td_test (slice__mistakes_are_one_line_with_their_place),
    td_test (slice__of_a_part_says_what_is_missing),
    td_test (slice__of_what_says_it_is_huge_takes_what_is_there),
    td_test (slice__npy_and_csv_hold_the_part),
  };
  return cmocka_run_group_tests_name ("slice", tests, NULL, NULL);
}
