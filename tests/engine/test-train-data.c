/* Datasets made of arrays and of other datasets, batches with padding, iterators with loader
 * threads.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "td-test.h"
#include "start.h"

/* The numbers 0 ... n - 1, each with itself as its label. */
static TdDataset *
numbers (int n)
{
  TdDataset *d = NULL;

  TD_SCOPE ("numbers")
    {
      d = td_tuple_dataset_new (td_arange (TD_F32, 0, n, 1), td_arange (TD_I32, 0, n, 1));
    }
  return d;
}

/* What number example i is. */
static int
number (TdDataset *d, int64_t i)
{
  TdExample e = { .n_fields = 0 };
  int value;

  assert_int_equal (td_dataset_get (d, i, &e), TD_OK);
  assert_int_equal (e.field[0].dtype, TD_F32);
  value = (int)*(const float *)e.field[0].data;
  assert_int_equal (*(const int32_t *)e.field[1].data, value);
  td_example_clear (&e);
  return value;
}

static void
assert_numbers (TdDataset *d, const int *expected, int n)
{
  assert_int_equal (td_dataset_size (d), n);
  for (int i = 0; i < n; i++)
    assert_int_equal (number (d, i), expected[i]);
}

#define assert_dataset(d, ...)                                                                 \
  assert_numbers (d, (const int[]){ __VA_ARGS__ },                                             \
                  (int)(sizeof ((int[]){ __VA_ARGS__ }) / sizeof (int)))

static int
next (TdIter *it, int *values)
{
  int n = 0;

  TD_SCOPE ("batch")
    {
      TdBatch b = td_iter_next (it);
      float x[64];

      n = (int)b.n;
      assert_int_equal (td_read (b.x, x, (size_t)n * sizeof *x), TD_OK);
      for (int i = 0; i < n; i++)
        values[i] = (int)x[i];
    }
  return n;
}

/* --- datasets --- */

static void
tuple__keeps_each_arrays_dtype_and_shape (void **state)
{
  static const double x[6] = { 1, 2, 3, 4, 5, 6 };
  static const uint8_t mask[2] = { 1, 0 };
  TdDataset *d;
  TdBatch b;
  double got[6];

  (void)state;
  d = td_tuple_dataset_new_n ((TdVar *[]){ td_tensor (TD_F64, TD_SHAPE (2, 3), x),
                                           td_arange (TD_I64, 0, 2, 1),
                                           td_tensor (TD_BOOL, TD_SHAPE (2), mask) },
                              3);
  b = td_iter_next (td_serial_iterator_new (d, .batch_size = 2, .shuffle = false));
  assert_int_equal (b.n_fields, 3);
  assert_true (b.x == b.field[0] && b.t == b.field[1]);
  assert_int_equal (td_dtype (b.x), TD_F64);
  assert_int_equal (td_dtype (b.t), TD_I64);
  assert_int_equal (td_dtype (b.field[2]), TD_BOOL);
  assert_int_equal (td_ndim (b.x), 2);
  assert_int_equal (td_read (b.x, got, sizeof got), TD_OK);
  assert_memory_equal (got, x, sizeof x);
  assert_int_equal (td_dataset_shape (d).dim[0], 3);
}

static void
dict__names_the_fields_of_its_batches (void **state)
{
  TdDataset *d = td_dict_dataset_new (
      (const char *[]){ "pixels", "label" },
      (TdVar *[]){ td_ones (TD_F32, TD_SHAPE (4, 2)), td_arange (TD_I32, 0, 4, 1) }, 2);
  TdBatch b = td_iter_next (td_serial_iterator_new (d, .batch_size = 4, .shuffle = false));
  int32_t t[4];

  (void)state;
  assert_int_equal (td_read (td_batch_get (&b, "label"), t, sizeof t), TD_OK);
  assert_true (t[0] == 0 && t[3] == 3);
  assert_true (td_batch_get (&b, "pixels") == b.x);
  assert_true (td_poisoned (td_batch_get (&b, "nothing")));
  assert_contains (said (TD_ERR_ARG), "no field \"nothing\"");
  td_dict_dataset_new ((const char *[]){ "a", "a" }, b.field, 2);
  assert_contains (said (TD_ERR_ARG), "name of its own for array 1");
  td_tuple_dataset_new_n (
      (TdVar *[]){ td_ones (TD_F32, TD_SHAPE (4)), td_ones (TD_F32, TD_SHAPE (3)) }, 2);
  assert_contains (said (TD_ERR_SHAPE), "got array 0 (4) and array 1 (3)");
}

static void
concatenated__is_one_after_the_other (void **state)
{
  TdDataset *a = numbers (2), *b = numbers (3);
  TdDataset *d = td_concatenated_dataset_new ((TdDataset *[]){ a, b, a }, 3);
  TdExample e = { .n_fields = 0 };

  (void)state;
  assert_dataset (d, 0, 1, 0, 1, 2, 0, 1);
  assert_int_equal (td_dataset_get (d, 7, &e), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "row 7 is not among 7");
  td_dataset_free (a); /* the program's reference only */
  assert_int_equal (number (d, 6), 1);
}

static void
zip__puts_fields_side_by_side (void **state)
{
  TdDataset *d = td_zip_dataset_new ((TdDataset *[]){ numbers (3), numbers (3) }, 2);
  TdExample e = { .n_fields = 0 };

  (void)state;
  assert_int_equal (td_dataset_get (d, 2, &e), TD_OK);
  assert_int_equal (e.n_fields, 4);
  assert_true (*(const float *)e.field[2].data == 2.0f);
  td_example_clear (&e);
  td_zip_dataset_new ((TdDataset *[]){ numbers (3), numbers (4) }, 2);
  assert_contains (said (TD_ERR_ARG), "got 3 and 4");
}

static void
sub__takes_a_piece_of_an_order (void **state)
{
  static const int64_t order[5] = { 4, 2, 0, 1, 3 }, wrong[5] = { 0, 1, 5, 0, 0 };
  TdDataset *d = numbers (5), *part = td_sub_dataset_new (d, 1, 4, order);

  (void)state;
  assert_dataset (td_sub_dataset_new (d, 1, 4, NULL), 1, 2, 3);
  assert_dataset (part, 2, 0, 1);
  assert_dataset (td_sub_dataset_new (part, 1, 3, NULL), 0, 1);
  td_sub_dataset_new (d, 2, 6, NULL);
  assert_contains (said (TD_ERR_ARG), "examples 2 to 6 are not among 5");
  td_sub_dataset_new (d, 0, 5, wrong);
  assert_contains (said (TD_ERR_ARG), "order[2] is 5");
}

static void
split__cuts_in_two_and_in_n (void **state)
{
  TdDataset *d = numbers (7), *a, *b, *parts[3];
  int seen[7] = { 0 };

  (void)state;
  assert_int_equal (td_split_dataset (d, 3, &a, &b), TD_OK);
  assert_dataset (a, 0, 1, 2);
  assert_dataset (b, 3, 4, 5, 6);
  assert_int_equal (td_split_dataset_random (d, 2, 11, &a, &b), TD_OK);
  for (int i = 0; i < 7; i++)
    seen[i < 2 ? number (a, i) : number (b, i - 2)]++;
  for (int i = 0; i < 7; i++)
    assert_int_equal (seen[i], 1);
  assert_int_equal (td_split_dataset_n (d, 3, parts), TD_OK);
  assert_dataset (parts[0], 0, 1);
  assert_dataset (parts[2], 4, 5); /* 6 is left out */
  assert_int_equal (td_split_dataset (d, 8, &a, &b), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "first part of 8 examples out of 7");
}

/* The same folds as chainer.datasets.get_cross_validation_datasets (range (7), 3). */
static void
cross_validation__tests_every_fold_once (void **state)
{
  TdDataset *train[3], *test[3];

  (void)state;
  assert_int_equal (td_cross_validation_datasets (numbers (7), 3, train, test), TD_OK);
  assert_dataset (test[0], 4, 5, 6);
  assert_dataset (train[0], 0, 1, 2, 3);
  assert_dataset (test[1], 2, 3);
  assert_dataset (train[1], 4, 5, 6, 0, 1);
  assert_dataset (test[2], 0, 1);
  assert_dataset (train[2], 2, 3, 4, 5, 6);
}

/* Doubles x and adds a field of noise; refuses from a limit on. */
static bool
double_and_add_noise (TdExample *e, void *user)
{
  float *x = td_example_set (e, 0, TD_F32, TD_SCALAR, e->field[0].data);
  uint64_t state = e->seed;
  float noise = (float)(td_random_next (&state) >> 40);

  *x *= 2;
  td_example_set (e, e->n_fields, TD_F32, TD_SCALAR, &noise);
  return *x < *(const float *)user;
}

static void
transform__changes_and_adds_fields_and_may_refuse (void **state)
{
  float limit = 5;
  TdDataset *d = td_transform_dataset_new (numbers (4), double_and_add_noise, &limit);
  TdExample e = { .n_fields = 0 };

  (void)state;
  assert_int_equal (td_dataset_get (d, 2, &e), TD_OK);
  assert_int_equal (e.n_fields, 3);
  assert_true (*(const float *)e.field[0].data == 4.0f);
  td_example_clear (&e);
  assert_int_equal (td_dataset_get (d, 3, &e), TD_ERR_ARG);
  td_example_clear (&e);
  assert_contains (said (TD_ERR_ARG), "refuses row 3");
  assert_true (td_poisoned (
      td_iter_next (td_serial_iterator_new (d, .batch_size = 4, .shuffle = false)).x));
  assert_contains (said (TD_ERR_SHAPE), "refuses row 3");
}

/* --- padding --- */

static TdDataset *
sequences (void)
{
  static const int32_t a[] = { 1, 2, 3 }, b[] = { 4 }, c[] = { 5, 6 };
  static const float weight[] = { 0.5f, 0.25f, 0.125f };
  static const struct
  {
    const int32_t *ids;
    int n;
  } rows[] = { { a, 3 }, { b, 1 }, { c, 2 } };
  TdDataset *d = td_list_dataset_new ();

  for (int i = 0; i < 3; i++)
    {
      TdField fields[2] = { { NULL, TD_I32, TD_SHAPE (rows[i].n), rows[i].ids },
                            { NULL, TD_F32, TD_SCALAR, &weight[i] } };

      assert_int_equal (td_list_dataset_add (d, fields, 2), TD_OK);
    }
  return d;
}

static void
concat_examples__fills_shorter_ones_up (void **state)
{
  static const int32_t expected[9] = { 1, 2, 3, 4, -1, -1, 5, 6, -1 };
  TdIter *it = td_serial_iterator_new (sequences (), .batch_size = 3, .shuffle = false);
  int32_t x[9];
  TdBatch b;

  (void)state;
  assert_int_equal (td_iter_set_padding (it, (double[]){ -1 }, 1), TD_OK);
  b = td_iter_next (it);
  assert_true (td_shape (b.x).dim[0] == 3 && td_shape (b.x).dim[1] == 3);
  assert_int_equal (td_read (b.x, x, sizeof x), TD_OK);
  assert_memory_equal (x, expected, sizeof x);
  assert_int_equal (td_iter_set_padding (it, (double[]){ 0, 1, 2 }, 3), TD_OK);
  assert_true (td_poisoned (td_iter_next (it).x));
  assert_contains (said (TD_ERR_SHAPE), "3 paddings for 2 fields");
  td_iter_reset (it);
  td_iter_set_padding (it, NULL, 0);
  assert_true (td_poisoned (td_iter_next (it).x));
  assert_contains (said (TD_ERR_SHAPE),
                   "field 0 of row 0 has shape (3), of row 1 (1): equal shapes expected, or "
                   "padding");
}

static void
concat_examples__pads_every_axis (void **state)
{
  static const float a[6] = { 1, 2, 3, 4, 5, 6 }, b[4] = { 7, 8, 9, 10 };
  static const float expected[18] = { 1, 2, 3, 4, 5, 6, 0, 0, 0, 7, 0, 0, 8, 0, 0, 9, 0, 0 };
  TdExample e[2] = { { .n_fields = 0 }, { .n_fields = 0 } };
  float x[18];

  (void)state;
  assert_non_null (td_example_set (&e[0], 0, TD_F32, TD_SHAPE (2, 3), a));
  assert_non_null (td_example_set (&e[1], 0, TD_F32, TD_SHAPE (3, 1), b));
  assert_int_equal (td_read (td_concat_examples (e, 2, (double[]){ 0 }, 1).x, x, sizeof x),
                    TD_OK);
  assert_memory_equal (x, expected, sizeof x);
  assert_null (td_example_set (&e[0], 3, TD_F32, TD_SCALAR, NULL));
  assert_non_null (td_example_set (&e[0], 1, TD_F32, TD_SCALAR, NULL));
  assert_true (td_poisoned (td_concat_examples (e, 2, NULL, 0).x));
  assert_contains (said (TD_ERR_SHAPE), "row 0 has 2 fields, row 0 has 1");
  td_example_clear (&e[0]);
  td_example_clear (&e[1]);
}

static TdBatch
lengths_of (const TdExample *e, int64_t n, void *user)
{
  float lengths[8] = { 0 };
  TdBatch b = { .n = n, .n_fields = 1 };

  *(int *)user += 1;
  for (int64_t i = 0; i < n; i++)
    lengths[i] = (float)e[i].field[0].shape.dim[0];
  b.x = b.field[0] = td_tensor (TD_F32, TD_SHAPE (n), lengths);
  return b;
}

static void
converter__makes_a_batch_of_examples_as_they_are (void **state)
{
  TdIter *it = td_serial_iterator_new (sequences (), .batch_size = 3, .shuffle = false);
  int calls = 0, v[64];

  (void)state;
  assert_int_equal (td_iter_set_converter (it, lengths_of, &calls), TD_OK);
  assert_int_equal (next (it, v), 3);
  assert_true (v[0] == 3 && v[1] == 1 && v[2] == 2 && calls == 1);
}

/* --- iterators --- */

static void
iterator__knows_the_epoch_before_the_last_batch (void **state)
{
  TdIter *it = td_serial_iterator_new (numbers (5), .batch_size = 3, .shuffle = false);
  int v[64];

  (void)state;
  assert_true (td_iter_previous_epoch_detail (it) == -1);
  next (it, v);
  assert_true (td_iter_previous_epoch_detail (it) == 0);
  next (it, v);
  assert_true (td_iter_previous_epoch_detail (it) == 0.6);
  assert_true (td_iter_epoch_detail (it) == 1.2);
}

/* Every epoch in reverse of the one before; rows may come more than once. */
static void
reversed (int64_t *order, int64_t n, int64_t position, uint64_t *random, void *user)
{
  (void)position, (void)random;
  for (int64_t i = 0; i < n / 2; i++)
    {
      int64_t swap = order[i];

      order[i] = order[n - 1 - i];
      order[n - 1 - i] = swap;
    }
  if (user != NULL)
    order[0] = n;
}

static void
iterator__asks_the_order_sampler_for_every_epoch (void **state)
{
  TdIter *it = td_serial_iterator_new (numbers (3), .batch_size = 4, .order_sampler = reversed);
  int v[64], user = 0;

  (void)state;
  assert_int_equal (next (it, v), 4);
  assert_true (v[0] == 2 && v[1] == 1 && v[2] == 0 && v[3] == 0);
  it = td_serial_iterator_new (numbers (3), .batch_size = 2, .order_sampler = reversed,
                               .order_user = &user);
  assert_true (td_poisoned (td_iter_next (it).x));
  assert_contains (said (TD_ERR_ARG), "order sampler gives rows that are not among 3");
}

/* The first 40 batches of both kinds of iterator, over several epochs. */
static void
assert_same_batches (int n_threads, int n_prefetch, bool repeat)
{
  static float limit = 1e9f; /* loaders read it until the iterator goes */
  TdDataset *d = td_transform_dataset_new (numbers (57), double_and_add_noise, &limit);
  TdIter *a = td_serial_iterator_new (d, .batch_size = 8, .seed = 3, .repeat = repeat);
  TdIter *b = td_multithread_iterator_new (d, .batch_size = 8, .seed = 3, .repeat = repeat,
                                           .n_threads = n_threads, .n_prefetch = n_prefetch);
  int batches = 0;

  while (batches < 40 && (repeat || td_iter_epoch (a) < 1))
    TD_SCOPE ("batches")
      {
        TdBatch p = td_iter_next (a), q = td_iter_next (b);
        float x[2][8], noise[2][8];

        batches++;
        assert_int_equal (p.n, q.n);
        td_read (p.x, x[0], (size_t)p.n * 4);
        td_read (q.x, x[1], (size_t)p.n * 4);
        td_read (p.field[2], noise[0], (size_t)p.n * 4);
        td_read (q.field[2], noise[1], (size_t)p.n * 4);
        assert_memory_equal (x[0], x[1], (size_t)p.n * 4);
        assert_memory_equal (noise[0], noise[1], (size_t)p.n * 4);
        assert_true (td_iter_epoch_detail (a) == td_iter_epoch_detail (b));
        assert_int_equal (td_iter_is_new_epoch (a), td_iter_is_new_epoch (b));
        if (batches == 5)
          {
            td_iter_reset (a);
            td_iter_reset (b);
          }
      }
  assert_true (batches >= 8);
}

static void
multithread__gives_the_same_batches_at_any_number_of_threads (void **state)
{
  (void)state;
  assert_same_batches (1, 1, true);
  assert_same_batches (1, 0, true);
  assert_same_batches (3, 2, true);
  assert_same_batches (4, 9, true);
}

static void
multithread__ends_without_repeat (void **state)
{
  TdIter *it = td_multithread_iterator_new (numbers (5), .batch_size = 3, .repeat = false,
                                            .shuffle = false, .n_threads = 2);
  int v[64];

  (void)state;
  assert_same_batches (2, 3, false);
  assert_int_equal (next (it, v), 3);
  assert_int_equal (next (it, v), 2);
  assert_true (td_poisoned (td_iter_next (it).x));
  assert_contains (said (TD_ERR_STATE), "at its end");
  td_iter_reset (it);
  assert_int_equal (next (it, v), 3);
  assert_int_equal (v[0], 0);
  td_iter_free (it);
  td_multithread_iterator_new (numbers (5), .n_threads = 0);
  assert_contains (said (TD_ERR_ARG), "got 0 and 0");
}

static void
multithread__says_what_a_loader_could_not_read (void **state)
{
  TdIter *it = td_multithread_iterator_new (sequences (), .batch_size = 3, .shuffle = false);

  (void)state;
  assert_true (td_poisoned (td_iter_next (it).x));
  assert_contains (said (TD_ERR_SHAPE), "equal shapes expected, or padding");
  assert_int_equal (td_iter_set_padding (it, (double[]){ 0 }, 1), TD_OK);
  assert_false (td_poisoned (td_iter_next (it).x));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    train_test (tuple__keeps_each_arrays_dtype_and_shape),
    train_test (dict__names_the_fields_of_its_batches),
    train_test (concatenated__is_one_after_the_other),
    train_test (zip__puts_fields_side_by_side),
    train_test (sub__takes_a_piece_of_an_order),
    train_test (split__cuts_in_two_and_in_n),
    train_test (cross_validation__tests_every_fold_once),
    train_test (transform__changes_and_adds_fields_and_may_refuse),
    train_test (concat_examples__fills_shorter_ones_up),
    train_test (concat_examples__pads_every_axis),
    train_test (converter__makes_a_batch_of_examples_as_they_are),
    train_test (iterator__knows_the_epoch_before_the_last_batch),
    train_test (iterator__asks_the_order_sampler_for_every_epoch),
    train_test (multithread__gives_the_same_batches_at_any_number_of_threads),
    train_test (multithread__ends_without_repeat),
    train_test (multithread__says_what_a_loader_could_not_read),
  };

  return cmocka_run_group_tests_name ("train-data", tests, NULL, NULL);
}
