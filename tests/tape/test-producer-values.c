/* Level values of the producer's library: the elements of what was measured are on the tape, of
 * views only where their order is known, and nothing is kept at other levels.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "td-producer.h"
#include "td-tape-reader.h"

enum
{
  SOURCE = 1,
  MADE,
  TURNED,
  BACK
};

static const float numbers[6] = { 1, 2, 3, 4, 5, 6 };
static const int64_t two_by_three[] = { 2, 3 }, three_by_two[] = { 3, 2 };
static const int64_t usual[] = { 3, 1 }, turned[] = { 1, 3 };

typedef struct
{
  TdProducer *p;
  char path[512];
  uint32_t kind;
} Fixture;

static void
must (Fixture *f, TdProducerStatus status)
{
  if (status != TD_PRODUCER_OK)
    fail_msg ("%s", td_producer_error (f->p));
}

static void
open_tape (Fixture *f, uint32_t level)
{
  TdProducerOptions o
      = { .size = sizeof o, .level = level, .producer = "test", .overwrite = 1 };
  char error[200];

  snprintf (f->path, sizeof f->path, "%s", td_test_tmp ("values.tdtape"));
  o.path = f->path;
  f->p = td_producer_new (&o, error, sizeof error);
  if (f->p == NULL)
    fail_msg ("%s", error);
  f->kind = td_producer_kind (f->p, "make", NULL, NULL);
  must (f, td_producer_begin (f->p, 0, 0));
}

/* An array on the storage of `MADE`, and the operation that makes it of another. */
static void
make (Fixture *f, uint64_t from, uint64_t id, const int64_t *dims, const int64_t *strides)
{
  const TdProducerVariable v = { .size = sizeof v,
                                 .id = id,
                                 .storage = id == SOURCE ? 0 : MADE,
                                 .dims = dims,
                                 .strides = strides,
                                 .ndim = 2 };
  const TdProducerOperation op = { .size = sizeof op,
                                   .kind = f->kind,
                                   .inputs = &from,
                                   .outputs = &id,
                                   .n_inputs = 1,
                                   .n_outputs = 1 };

  if (id == MADE)
    must (f, td_producer_alloc (f->p, MADE, 0x1000, 24, TD_TAPE_CATEGORY_ACTIVATION, 0));
  must (f, td_producer_variable (f->p, &v));
  if (from != 0)
    must (f, td_producer_operation (f->p, &op));
}

static void
say_measured (Fixture *f, uint64_t id, int64_t slot)
{
  const int64_t words[] = { TD_PRODUCER_WORD_MEASURED, 4, (int64_t)id, slot };

  must (f, td_producer_words (f->p, words, 4));
}

typedef struct
{
  TdTapeReader *r;
  const TdTapeIteration *it;
} Read;

static Read
close_tape (Fixture *f)
{
  char error[200];
  TdTapeCheck check;
  Read read;

  must (f, td_producer_end_iteration (f->p, 0));
  td_producer_end (f->p, 0);
  td_producer_free (f->p);
  assert_true (td_tape_check (f->path, &check) && check.whole);
  read.r = td_tape_reader_open (f->path, error, sizeof error);
  assert_non_null (read.r);
  read.it = td_tape_iteration_load (read.r, 0, error, sizeof error);
  assert_non_null (read.it);
  return read;
}

static void
read_clear (Read *read)
{
  td_tape_iteration_free (read->it);
  td_tape_reader_free (read->r);
}

/* The elements of what event `event` made; false: they are not there. */
static bool
elements_of (const Read *read, uint32_t event, float *to, TdTapeTensorRecord *record)
{
  const uint32_t var = read->it->outs[read->it->events[event].first_out];

  for (uint32_t i = 0; i < read->it->n_tensors; i++)
    if (read->it->tensors[i].var == var)
      return td_tape_tensor_read (read->r, &read->it->tensors[i], record, to, 0, 24) == 24;
  return false;
}

static void
values__of_what_was_measured_are_on_the_tape (void **state)
{
  TdTapeTensorRecord record;
  float found[6];
  Fixture f;
  Read read;

  (void)state;
  open_tape (&f, TD_TAPE_LEVEL_VALUES);
  make (&f, 0, SOURCE, two_by_three, NULL);
  make (&f, SOURCE, MADE, two_by_three, NULL);
  must (&f, td_producer_measure (f.p, MADE, numbers, 6));
  read = close_tape (&f);
  assert_true (elements_of (&read, 0, found, &record));
  assert_memory_equal (found, numbers, sizeof found);
  assert_int_equal (record.ndim, 2);
  assert_memory_equal (record.dims, two_by_three, sizeof two_by_three);
  assert_true (read.it->flags & TD_TAPE_ITERATION_VALUES);
  read_clear (&read);
}

static const float numbers_turned[6] = { 1, 4, 2, 5, 3, 6 };

/* One measuring stands for views of all of it: their statistics are the same, and their
 * elements in their own order. */
static void
values__of_a_turned_view_are_in_its_order (void **state)
{
  TdTapeTensorRecord record;
  float found[6];
  Fixture f;
  Read read;
  int64_t slot;

  (void)state;
  open_tape (&f, TD_TAPE_LEVEL_VALUES);
  make (&f, 0, SOURCE, two_by_three, NULL);
  make (&f, SOURCE, MADE, two_by_three, NULL);
  slot = td_producer_measure_ahead (f.p, TD_TAPE_F32, numbers, 6);
  assert_int_equal (slot, 0);
  const int64_t words[]
      = { TD_PRODUCER_WORD_MEASURED, 4, MADE, slot, TD_PRODUCER_WORD_MEASURED, 4, TURNED, slot,
          TD_PRODUCER_WORD_MEASURED, 4, BACK, slot };
  make (&f, MADE, TURNED, three_by_two, turned);
  make (&f, TURNED, BACK, two_by_three, usual);
  must (&f, td_producer_words (f.p, words, sizeof words / sizeof *words));
  read = close_tape (&f);
  assert_int_equal (read.it->n_stats, 3);
  assert_true (elements_of (&read, 0, found, &record));
  assert_memory_equal (found, numbers, sizeof found);
  assert_true (elements_of (&read, 1, found, &record));
  assert_memory_equal (found, numbers_turned, sizeof found);
  assert_memory_equal (record.dims, three_by_two, sizeof three_by_two);
  assert_true (elements_of (&read, 2, found, &record));
  assert_memory_equal (found, numbers, sizeof found);
  read_clear (&read);
}

/* The same where the turned one was measured, and its array has its numbers. */
static void
values__of_a_turned_array_are_those_of_what_it_is_of (void **state)
{
  TdTapeTensorRecord record;
  float found[6];
  Fixture f;
  Read read;

  (void)state;
  open_tape (&f, TD_TAPE_LEVEL_VALUES);
  make (&f, 0, SOURCE, two_by_three, NULL);
  make (&f, SOURCE, MADE, two_by_three, NULL);
  make (&f, MADE, TURNED, three_by_two, turned);
  make (&f, TURNED, BACK, two_by_three, usual);
  const int64_t slot = td_producer_measure_ahead (f.p, TD_TAPE_F32, numbers_turned, 6);
  const int64_t words[] = { TD_PRODUCER_WORD_MEASURED, 4, TURNED, slot,
                            TD_PRODUCER_WORD_MEASURED, 4, BACK,   slot };
  must (&f, td_producer_words (f.p, words, sizeof words / sizeof *words));
  read = close_tape (&f);
  assert_true (elements_of (&read, 1, found, &record));
  assert_memory_equal (found, numbers_turned, sizeof found);
  assert_memory_equal (record.dims, three_by_two, sizeof three_by_two);
  assert_true (elements_of (&read, 2, found, &record));
  assert_memory_equal (found, numbers, sizeof found);
  read_clear (&read);
}

static void
values__are_of_level_values (void **state)
{
  Fixture f;
  Read read;

  (void)state;
  open_tape (&f, TD_TAPE_LEVEL_STATS);
  make (&f, 0, SOURCE, two_by_three, NULL);
  make (&f, SOURCE, MADE, two_by_three, NULL);
  must (&f, td_producer_measure (f.p, MADE, numbers, 6));
  say_measured (&f, MADE, td_producer_measure_ahead (f.p, TD_TAPE_F32, numbers, 6));
  read = close_tape (&f);
  assert_int_equal (read.it->n_stats, 2);
  assert_int_equal (read.it->n_tensors, 0);
  read_clear (&read);
}

/* What is larger than 16 MiB has its statistics alone. */
static void
values__of_a_large_array_are_left_out (void **state)
{
  const int64_t large[] = { 2049, 2048 };
  float *zeros = calloc (2049 * 2048, sizeof *zeros);
  const uint64_t from = SOURCE, id = MADE;
  const TdProducerVariable v
      = { .size = sizeof v, .id = MADE, .storage = 0, .dims = large, .ndim = 2 };
  Fixture f;
  Read read;

  (void)state;
  assert_non_null (zeros);
  open_tape (&f, TD_TAPE_LEVEL_VALUES);
  const TdProducerOperation op = { .size = sizeof op,
                                   .kind = f.kind,
                                   .inputs = &from,
                                   .outputs = &id,
                                   .n_inputs = 1,
                                   .n_outputs = 1 };
  make (&f, 0, SOURCE, two_by_three, NULL);
  must (&f, td_producer_variable (f.p, &v));
  must (&f, td_producer_operation (f.p, &op));
  say_measured (&f, MADE, td_producer_measure_ahead (f.p, TD_TAPE_F32, zeros, 2049 * 2048));
  read = close_tape (&f);
  assert_int_equal (read.it->n_stats, 1);
  assert_int_equal (read.it->n_tensors, 0);
  read_clear (&read);
  free (zeros);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (values__of_what_was_measured_are_on_the_tape),
    td_test (values__of_a_turned_view_are_in_its_order),
    td_test (values__of_a_turned_array_are_those_of_what_it_is_of),
    td_test (values__are_of_level_values),
    td_test (values__of_a_large_array_are_left_out),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
