/* The producer's library: what it is told is on the tape, in the forms that views read; a call
 * that makes no sense is refused with a line, and the tape is as if it had not been made.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "td-producer.h"
#include "td-tape-reader.h"

/* A tape with a parameter on storage 1, an iteration that is open, a batch and what came of it.
 */
typedef struct
{
  TdProducer *p;
  char path[512];
  uint32_t kind, place, layer, name;
} Fixture;

enum
{
  PARAMETER = 1,
  BATCH,
  RESULT,
  NEXT /* the first number that is free */
};

static const int64_t two_by_three[] = { 2, 3 };

static TdProducerVariable
variable (uint64_t id, uint64_t storage)
{
  return (TdProducerVariable){ .size = sizeof (TdProducerVariable),
                               .id = id,
                               .storage = storage,
                               .dims = two_by_three,
                               .ndim = 2,
                               .category = TD_TAPE_CATEGORY_ACTIVATION };
}

static void
must (Fixture *f, TdProducerStatus status)
{
  if (status != TD_PRODUCER_OK)
    fail_msg ("%s", td_producer_error (f->p));
}

static TdProducerStatus
apply (Fixture *f, uint32_t phase, uint64_t in, uint64_t out, uint64_t twin)
{
  TdProducerOperation op = { .size = sizeof op,
                             .kind = f->kind,
                             .phase = phase,
                             .place = f->place,
                             .layer = f->layer,
                             .inputs = &in,
                             .outputs = &out,
                             .n_inputs = 1,
                             .n_outputs = 1,
                             .twin = twin };

  return td_producer_operation (f->p, &op);
}

static void
add_array (Fixture *f, uint64_t id, uint32_t category)
{
  TdProducerVariable v = variable (id, id);

  v.category = category;
  if (category == TD_TAPE_CATEGORY_PARAMETER)
    {
      v.flags = TD_TAPE_VAR_PARAMETER;
      v.layer = f->layer;
      v.name = f->name;
      v.parameter = td_producer_text (f->p, "net/W");
    }
  must (f, td_producer_alloc (f->p, id, 0x1000 * id, 24, category, 0));
  must (f, td_producer_variable (f->p, &v));
}

static void
open_tape (Fixture *f)
{
  TdProducerOptions o = { .size = sizeof o,
                          .level = TD_TAPE_LEVEL_STATS,
                          .producer = "test",
                          .version = "1",
                          .overwrite = 1 };
  char error[200];

  snprintf (f->path, sizeof f->path, "%s", td_test_tmp ("t.tdtape"));
  o.path = f->path;
  f->p = td_producer_new (&o, error, sizeof error);
  if (f->p == NULL)
    fail_msg ("%s", error);
  f->kind = td_producer_kind (f->p, "scale", "test", NULL);
  f->place = td_producer_place (f->p, "train.py", 12, "step");
  f->layer = td_producer_layer (f->p, "net", "Net");
  f->name = td_producer_text (f->p, "W");
  add_array (f, PARAMETER, TD_TAPE_CATEGORY_PARAMETER);
  must (f, td_producer_begin (f->p, 0, 0));
  add_array (f, BATCH, TD_TAPE_CATEGORY_INPUT);
  add_array (f, RESULT, TD_TAPE_CATEGORY_ACTIVATION);
  must (f, apply (f, TD_TAPE_PHASE_FORWARD, BATCH, RESULT, 0));
}

/* End it and read it. */
static TdTapeReader *
close_tape (Fixture *f)
{
  TdTapeReader *r;
  TdTapeCheck check;
  char error[200];

  td_producer_end (f->p, 0);
  td_producer_free (f->p);
  assert_true (td_tape_check (f->path, &check));
  assert_true (check.whole);
  r = td_tape_reader_open (f->path, error, sizeof error);
  if (r == NULL)
    fail_msg ("%s", error);
  return r;
}

static const TdTapeIteration *
load (TdTapeReader *r, uint32_t at)
{
  char error[200];
  const TdTapeSummary *row = &td_tape_reader_summaries (r).rows[at];
  const TdTapeIteration *it = td_tape_iteration_load_row (r, row, error, sizeof error);

  if (it == NULL)
    fail_msg ("%s", error);
  return it;
}

/* ------------------------------------------------------------------------ what is there */

static void
producer__writes_what_it_is_told (void **state)
{
  static const float numbers[6] = { 1, -2, 0, NAN, 4, 5 };
  const TdTapeIteration *it;
  Fixture f;
  TdTapeReader *r;

  (void)state;
  open_tape (&f);
  must (&f, td_producer_measure (f.p, RESULT, numbers, 6));
  add_array (&f, NEXT, TD_TAPE_CATEGORY_GRADIENT);
  must (&f, apply (&f, TD_TAPE_PHASE_BACKWARD, RESULT, NEXT, 1));
  must (&f, td_producer_gradient (f.p, PARAMETER, NEXT));
  must (&f, apply (&f, TD_TAPE_PHASE_UPDATE, NEXT, PARAMETER, 0));
  must (&f, td_producer_report (f.p, "loss", 0.25));
  must (&f, td_producer_release (f.p, RESULT));
  must (&f, td_producer_end_iteration (f.p, 0));
  r = close_tape (&f);
  assert_string_equal (td_tape_reader_info (r, "producer"), "test");
  assert_int_equal (td_tape_reader_summaries (r).n, 1);
  it = load (r, 0);
  assert_int_equal (it->n_events, 3);
  assert_int_equal (it->events[1].twin, 0);
  assert_int_equal (it->events[1].phase, TD_TAPE_PHASE_BACKWARD);
  assert_int_equal (it->n_grads, 1);
  assert_int_equal (it->grads[0].event, 2);
  assert_true (it->vars[it->grads[0].parameter].flags & TD_TAPE_VAR_PARAMETER);
  assert_int_equal (it->n_stats, 1);
  assert_int_equal (it->stats[0].n_nan, 1);
  assert_int_equal (it->stats[0].n_zero, 1);
  assert_true (it->flags & TD_TAPE_ITERATION_NAN);
  assert_int_equal (it->n_reports, 1);
  assert_int_equal (it->peak_bytes, 4 * 24);
  assert_int_equal (it->end_bytes, 3 * 24);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

static void
producer__recognises_iterations_that_repeat (void **state)
{
  Fixture f;
  TdTapeReader *r;
  uint64_t id = NEXT;

  (void)state;
  open_tape (&f);
  must (&f, td_producer_end_iteration (f.p, 0));
  for (int i = 0; i < 200; i++)
    {
      must (&f, td_producer_begin (f.p, 0, 0));
      add_array (&f, id, TD_TAPE_CATEGORY_INPUT);
      add_array (&f, id + 1, TD_TAPE_CATEGORY_ACTIVATION);
      must (&f, apply (&f, TD_TAPE_PHASE_FORWARD, id, id + 1, 0));
      must (&f, apply (&f, TD_TAPE_PHASE_UPDATE, id + 1, PARAMETER, 0));
      must (&f, td_producer_release (f.p, id));
      must (&f, td_producer_release (f.p, id + 1));
      must (&f, td_producer_end_iteration (f.p, 0));
      id += 2;
    }
  r = close_tape (&f);
  assert_int_equal (td_tape_reader_summaries (r).n, 201);
  for (uint32_t i = 2; i < 201; i++)
    assert_int_equal (td_tape_reader_summaries (r).rows[i].structure,
                      td_tape_reader_summaries (r).rows[1].structure);
  td_tape_reader_free (r);
}

/* What lies as it does in no other way is an attribute: the tape has no field for it. */
static void
producer__says_views_and_their_layout (void **state)
{
  static const int64_t part[] = { 2, 2 }, strides[] = { 1, 3 };
  const TdTapeIteration *it;
  TdProducerVariable v = variable (NEXT, RESULT);
  Fixture f;
  TdTapeReader *r;

  (void)state;
  open_tape (&f);
  v.dims = part; /* of (2, 3), turned: without the first column */
  v.strides = strides;
  v.offset = 1;
  must (&f, td_producer_variable (f.p, &v));
  must (&f, apply (&f, TD_TAPE_PHASE_FORWARD, RESULT, NEXT, 0));
  must (&f, td_producer_end_iteration (f.p, 0));
  r = close_tape (&f);
  it = load (r, 0);
  assert_true (it->events[1].flags & TD_TAPE_EVENT_SHARED);
  assert_string_equal (td_tape_reader_string (r, it->events[1].attrs), "offset=1 strides=1,3");
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

static void
producer__says_what_outlives_its_iteration (void **state)
{
  const TdTapeIteration *it;
  uint64_t id = NEXT;
  Fixture f;
  TdTapeReader *r;

  (void)state;
  open_tape (&f);
  must (&f, td_producer_end_iteration (f.p, 0));
  for (int i = 0; i < 12; i++, id++)
    {
      must (&f, td_producer_begin (f.p, 0, 0));
      add_array (&f, id, TD_TAPE_CATEGORY_ACTIVATION);
      must (&f, apply (&f, TD_TAPE_PHASE_FORWARD, BATCH, id, 0));
      must (&f, td_producer_end_iteration (f.p, 0));
    }
  r = close_tape (&f);
  it = load (r, 12);
  assert_true (it->flags & TD_TAPE_ITERATION_HELD);
  assert_int_equal (it->held[0].n_objects, 13); /* with that of the first */
  assert_int_equal (it->held[0].site, it->events[0].site);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

static void
producer__takes_a_row_of_words (void **state)
{
  const int64_t loss = 0x3fd0000000000000; /* 0.25 */
  static const float numbers[6] = { 1, 2, 3, 4, 5, 6 };
  const TdTapeIteration *it;
  Fixture f;
  TdTapeReader *r;

  (void)state;
  open_tape (&f);
  must (&f, td_producer_end_iteration (f.p, 0));
  assert_int_equal (td_producer_measure_ahead (f.p, TD_TAPE_F32, numbers, 6), 0);
  const int64_t key = (int64_t)td_producer_text (f.p, "loss");
  const int64_t words[] = { TD_PRODUCER_WORD_BEGIN,
                            5,
                            0,
                            0,
                            0,
                            TD_PRODUCER_WORD_ALLOC,
                            7,
                            NEXT,
                            0x9000,
                            24,
                            TD_TAPE_CATEGORY_OTHER,
                            0,
                            TD_PRODUCER_WORD_VARIABLE,
                            17,
                            NEXT,
                            NEXT,
                            0,
                            0,
                            TD_TAPE_F32,
                            TD_TAPE_CATEGORY_OTHER,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            2,
                            2,
                            3,
                            TD_PRODUCER_WORD_OPERATION,
                            15,
                            (int64_t)f.kind,
                            0,
                            (int64_t)f.place,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            1,
                            BATCH,
                            NEXT,
                            TD_PRODUCER_WORD_MEASURED,
                            4,
                            NEXT,
                            0,
                            TD_PRODUCER_WORD_REPORT,
                            4,
                            key,
                            loss,
                            TD_PRODUCER_WORD_END,
                            3,
                            0 };

  must (&f, td_producer_words (f.p, words, sizeof words / sizeof *words));
  r = close_tape (&f);
  it = load (r, 1);
  assert_int_equal (it->n_events, 1);
  assert_int_equal (it->n_stats, 1);
  assert_int_equal (it->reports[0].value * 100, 25);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* Only at its end is it known that no step follows; a part of it may be on the tape by then. */
static void
producer__says_at_an_end_that_it_was_work_outside (void **state)
{
  static const int64_t ends[][5] = {
    { TD_PRODUCER_WORD_END, 3, 0 },
    { TD_PRODUCER_WORD_END, 4, 0, 0 },
    { TD_PRODUCER_WORD_END, 4, 0, 1 },
  };
  TdTapeSummaries s;
  Fixture f;
  TdTapeReader *r;

  (void)state;
  open_tape (&f);
  must (&f, td_producer_end_iteration (f.p, 0));
  for (int i = 0; i < 3; i++)
    {
      must (&f, td_producer_begin (f.p, 0, 0));
      must (&f, td_producer_words (f.p, ends[i], (uint64_t)ends[i][1]));
    }
  must (&f, td_producer_begin (f.p, 0, 0));
  assert_int_equal (
      td_producer_words (f.p, (const int64_t[]){ TD_PRODUCER_WORD_END, 5, 0, 1, 1 }, 5),
      TD_PRODUCER_WRONG);
  assert_contains (td_producer_error (f.p), "another number of words");
  must (&f, td_producer_end_iteration (f.p, 0));
  r = close_tape (&f);
  s = td_tape_reader_summaries (r);
  assert_int_equal (s.n, 5);
  for (int i = 0; i < 5; i++)
    assert_int_equal ((s.rows[i].flags & TD_TAPE_ITERATION_OUTSIDE) != 0, i == 3);
  td_tape_reader_free (r);
}

/* What ranks are compared by comes back as it was said; of no kind, or of no path, it is
 * refused. */
/* Scopes are in one another, and what is open when the iteration ends has ended. */
static void
producer__says_scopes (void **state)
{
  Fixture f = { 0 };
  TdTapeReader *r;

  open_tape (&f);
  const int64_t open[] = { TD_PRODUCER_WORD_SCOPE, 3, f.name };
  const int64_t close[] = { TD_PRODUCER_WORD_SCOPE, 3, 0 };
  const int64_t wrong[][3] = { { TD_PRODUCER_WORD_SCOPE, 3, 1000 },
                               { TD_PRODUCER_WORD_SCOPE, 3, -1 },
                               { TD_PRODUCER_WORD_SCOPE, 2 } };
  must (&f, td_producer_words (f.p, open, 3));
  must (&f, td_producer_words (f.p, open, 3));
  add_array (&f, 50, TD_TAPE_CATEGORY_ACTIVATION);
  must (&f, apply (&f, TD_TAPE_PHASE_FORWARD, BATCH, 50, 0));
  must (&f, td_producer_words (f.p, close, 3));
  add_array (&f, 51, TD_TAPE_CATEGORY_ACTIVATION);
  must (&f, apply (&f, TD_TAPE_PHASE_FORWARD, BATCH, 51, 0));
  for (unsigned i = 0; i < 3; i++)
    assert_int_equal (td_producer_words (f.p, wrong[i], i < 2 ? 3 : 2), TD_PRODUCER_WRONG);
  must (&f, td_producer_end_iteration (f.p, 0));
  assert_int_equal (td_producer_words (f.p, close, 3), TD_PRODUCER_NOT_NOW);
  r = close_tape (&f);
  const TdTapeIteration *it = load (r, 0);
  const TdTapeSpan *last = &it->spans[it->n_spans - 1], *around = last - 1;
  assert_int_equal (it->n_spans, 2);
  assert_string_equal (td_tape_reader_string (r, last->name), "W");
  assert_true (last->kind == TD_TAPE_SPAN_SCOPE && around->kind == TD_TAPE_SPAN_SCOPE);
  assert_true (last->begin == 1 && last->end == 2 && around->begin == 1 && around->end == 3);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

static void
producer__says_sums_of_a_rank (void **state)
{
  const TdTapeIteration *it;
  const TdTapeRankSum *sum;
  double sample = 0.25;
  int64_t bits;
  Fixture f;
  TdTapeReader *r;

  (void)state;
  memcpy (&bits, &sample, sizeof bits);
  open_tape (&f);
  const int64_t path = td_producer_text (f.p, "net/l1/W");
  const int64_t good[]
      = { TD_PRODUCER_WORD_SUM, 12, TD_TAPE_SUM_MEAN, path, 0, 3, 7, -8, bits, 4, 6, 1 };
  const int64_t wrong[][12] = {
    { TD_PRODUCER_WORD_SUM, 12, TD_TAPE_N_SUMS, path, 0, 0, 0, 0, 0, 0, 0, 0 },
    { TD_PRODUCER_WORD_SUM, 12, -1, path, 0, 0, 0, 0, 0, 0, 0, 0 },
    { TD_PRODUCER_WORD_SUM, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    { TD_PRODUCER_WORD_SUM, 12, 0, path + 1000, 0, 0, 0, 0, 0, 0, 0, 0 },
    { TD_PRODUCER_WORD_SUM, 12, 0, path, 256, 0, 0, 0, 0, 0, 0, 0 },
    { TD_PRODUCER_WORD_SUM, 11, 0, path, 0, 0, 0, 0, 0, 0, 0 },
  };

  must (&f, td_producer_words (f.p, good, 12));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal (td_producer_words (f.p, wrong[i], (uint64_t)wrong[i][1]),
                      TD_PRODUCER_WRONG);
  must (&f, td_producer_end_iteration (f.p, 0));
  assert_int_equal (td_producer_words (f.p, good, 12), TD_PRODUCER_WRONG); /* in no iteration */
  r = close_tape (&f);
  it = load (r, 0);
  assert_int_equal (it->n_rank_sums, 1);
  sum = it->rank_sums;
  assert_string_equal (td_tape_reader_string (r, sum->path), "net/l1/W");
  assert_int_equal (sum->kind, TD_TAPE_SUM_MEAN);
  assert_int_equal (sum->n_averaged, 3);
  assert_true (sum->sum[0] == 7 && sum->sum[1] == (uint64_t)-8);
  assert_true (sum->sample == sample && sum->at == 4 && sum->size == 6
               && sum->n_not_finite == 1);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* ------------------------------------------------------------------- what makes no sense */

typedef TdProducerStatus (*Mistake) (Fixture *f);

#define MISTAKE(name, ...)                                                                     \
  static TdProducerStatus name (Fixture *f)                                                    \
  {                                                                                            \
    TdProducerVariable v = variable (NEXT, RESULT);                                            \
    uint64_t in = RESULT, out = NEXT;                                                          \
    TdProducerOperation op = {                                                                 \
      .size = sizeof op, .kind = f->kind, .inputs = &in, .n_inputs = 1, .outputs = &out        \
    };                                                                                         \
    (void)v;                                                                                   \
    (void)op;                                                                                  \
    __VA_ARGS__                                                                                \
  }
#define WRONG_VARIABLE(name, change)                                                           \
  MISTAKE (name, change; return td_producer_variable (f->p, &v);)
#define WRONG_OPERATION(name, change)                                                          \
  MISTAKE (name, change; return td_producer_operation (f->p, &op);)

static const int64_t huge[] = { INT64_MAX, INT64_MAX }, below[] = { 2, -1 };
static const TdTapeStats too_many_zeros = { .n = 3, .n_zero = 4 };

WRONG_VARIABLE (variable_without_size, v.size = 0)
WRONG_VARIABLE (variable_of_an_enormous_size, v.size = UINT32_MAX)
WRONG_VARIABLE (variable_with_number_0, v.id = 0)
WRONG_VARIABLE (variable_with_a_number_that_is_taken, v.id = RESULT)
WRONG_VARIABLE (variable_on_a_storage_that_is_not_there, v.storage = 99)
WRONG_VARIABLE (variable_of_nine_dimensions, v.ndim = 9)
WRONG_VARIABLE (variable_without_dimensions, v.dims = NULL)
WRONG_VARIABLE (variable_below_zero, v.dims = below)
WRONG_VARIABLE (variable_beyond_memory, v.dims = huge)
WRONG_VARIABLE (variable_of_no_dtype, v.dtype = 200)
WRONG_VARIABLE (variable_of_no_category, v.category = 77)
WRONG_VARIABLE (variable_of_no_flag, v.flags = 1u << 31)
WRONG_VARIABLE (variable_in_no_layer, v.layer = 1000)
WRONG_VARIABLE (variable_without_a_text, v.name = UINT32_MAX)
WRONG_VARIABLE (variable_on_no_device, v.device = 256)
WRONG_VARIABLE (variable_behind_its_storage, v.offset = 1000000)
WRONG_VARIABLE (variable_one_element_too_long, v.offset = 1)
WRONG_VARIABLE (variable_going_backwards, v.strides = below)
WRONG_OPERATION (operation_without_size, op.size = 4)
WRONG_OPERATION (operation_of_no_kind, op.kind = 0)
WRONG_OPERATION (operation_of_an_unknown_kind, op.kind = 4000000000u)
WRONG_OPERATION (operation_of_no_phase, op.phase = 4)
WRONG_OPERATION (operation_at_no_place, op.place = 1000)
WRONG_OPERATION (operation_in_no_layer, op.layer = 1000)
WRONG_OPERATION (operation_that_ends_before_it_starts, op.start_ns = 2; op.end_ns = 1)
WRONG_OPERATION (operation_of_an_input_that_is_not_there, in = 999)
WRONG_OPERATION (operation_of_an_output_that_is_not_there, op.n_outputs = 1)
WRONG_OPERATION (operation_without_inputs, op.inputs = NULL)
WRONG_OPERATION (operation_with_too_many_inputs, op.n_inputs = UINT32_MAX)
WRONG_OPERATION (operation_made_twice, out = RESULT; op.n_outputs = 1)
WRONG_OPERATION (operation_with_a_twin_to_come, op.phase = 1; op.twin = 2)
WRONG_OPERATION (operation_forward_with_a_twin, op.twin = 1)
WRONG_OPERATION (operation_without_attributes, op.n_attributes = 2)
MISTAKE (nothing_given, return td_producer_variable (f->p, NULL);)
MISTAKE (no_operation_given, return td_producer_operation (f->p, NULL);)
MISTAKE (begin_within, return td_producer_begin (f->p, 0, 0);)
MISTAKE (begin_without_a_text, return td_producer_begin (f->p, 12345, 0);)
MISTAKE (alloc_of_0, return td_producer_alloc (f->p, 0, 1, 1, 0, 0);)
MISTAKE (alloc_twice, return td_producer_alloc (f->p, RESULT, 1, 1, 0, 0);)
MISTAKE (alloc_of_no_category, return td_producer_alloc (f->p, 50, 1, 1, 50, 0);)
MISTAKE (alloc_beyond_memory, return td_producer_alloc (f->p, 50, 1, UINT64_MAX, 0, 0);)
MISTAKE (release_of_nothing, return td_producer_release (f->p, 77);)
MISTAKE (forget_nothing, return td_producer_forget (f->p, 77);)
MISTAKE (gradient_of_nothing, return td_producer_gradient (f->p, 77, 0);)
MISTAKE (gradient_that_is_not_there, return td_producer_gradient (f->p, PARAMETER, 77);)
MISTAKE (measure_too_much, return td_producer_measure (f->p, RESULT, "", 1u << 30);)
MISTAKE (measure_nothing, return td_producer_measure (f->p, RESULT, NULL, 6);)
MISTAKE (statistics_of_nothing, return td_producer_statistics (f->p, 77, NULL);)
MISTAKE (statistics_that_contradict,
         return td_producer_statistics (f->p, RESULT, &too_many_zeros);)
MISTAKE (report_without_a_name, return td_producer_report (f->p, NULL, 1);)
MISTAKE (notice_without_a_text, return td_producer_notice (f->p, NULL);)
MISTAKE (info_without_a_key, return td_producer_info (f->p, NULL, "x");)
MISTAKE (source_without_a_text, return td_producer_source (f->p, "a.py", NULL, 10);)
MISTAKE (end_with_no_status, return td_producer_end (f->p, 70000);)
MISTAKE (words_that_are_not_there, return td_producer_words (f->p, NULL, 5);)
MISTAKE (words_of_no_kind, const int64_t w[] = { 99, 2 };
         return td_producer_words (f->p, w, 2);)
MISTAKE (words_beyond_the_row, const int64_t w[] = { TD_PRODUCER_WORD_RELEASE, INT64_MAX, 1 };
         return td_producer_words (f->p, w, 3);)
MISTAKE (words_below_zero, const int64_t w[] = { TD_PRODUCER_WORD_RELEASE, INT64_MIN, 1 };
         return td_producer_words (f->p, w, 3);)
MISTAKE (words_of_an_operation_too_short,
         const int64_t w[] = { TD_PRODUCER_WORD_OPERATION, 5, 1, 0, 0 };
         return td_producer_words (f->p, w, 5);)

#define ROW(name)                                                                              \
  {                                                                                            \
#name, name                                                                                \
  }

static const struct
{
  const char *name;
  Mistake make;
} mistakes[] = {
  ROW (variable_without_size),
  ROW (variable_of_an_enormous_size),
  ROW (variable_with_number_0),
  ROW (variable_with_a_number_that_is_taken),
  ROW (variable_on_a_storage_that_is_not_there),
  ROW (variable_of_nine_dimensions),
  ROW (variable_without_dimensions),
  ROW (variable_below_zero),
  ROW (variable_beyond_memory),
  ROW (variable_of_no_dtype),
  ROW (variable_of_no_category),
  ROW (variable_of_no_flag),
  ROW (variable_in_no_layer),
  ROW (variable_without_a_text),
  ROW (variable_on_no_device),
  ROW (variable_behind_its_storage),
  ROW (variable_one_element_too_long),
  ROW (variable_going_backwards),
  ROW (operation_without_size),
  ROW (operation_of_no_kind),
  ROW (operation_of_an_unknown_kind),
  ROW (operation_of_no_phase),
  ROW (operation_at_no_place),
  ROW (operation_in_no_layer),
  ROW (operation_that_ends_before_it_starts),
  ROW (operation_of_an_input_that_is_not_there),
  ROW (operation_of_an_output_that_is_not_there),
  ROW (operation_without_inputs),
  ROW (operation_with_too_many_inputs),
  ROW (operation_made_twice),
  ROW (operation_with_a_twin_to_come),
  ROW (operation_forward_with_a_twin),
  ROW (operation_without_attributes),
  ROW (nothing_given),
  ROW (no_operation_given),
  ROW (begin_within),
  ROW (begin_without_a_text),
  ROW (alloc_of_0),
  ROW (alloc_twice),
  ROW (alloc_of_no_category),
  ROW (alloc_beyond_memory),
  ROW (release_of_nothing),
  ROW (forget_nothing),
  ROW (gradient_of_nothing),
  ROW (gradient_that_is_not_there),
  ROW (measure_too_much),
  ROW (measure_nothing),
  ROW (statistics_of_nothing),
  ROW (statistics_that_contradict),
  ROW (report_without_a_name),
  ROW (notice_without_a_text),
  ROW (info_without_a_key),
  ROW (source_without_a_text),
  ROW (end_with_no_status),
  ROW (words_that_are_not_there),
  ROW (words_of_no_kind),
  ROW (words_beyond_the_row),
  ROW (words_below_zero),
  ROW (words_of_an_operation_too_short),
};

static void
producer__refuses_what_makes_no_sense (void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
    {
      const TdTapeIteration *it;
      TdTapeReader *r;
      Fixture f;

      open_tape (&f);
      assert_string_equal (td_producer_error (f.p), "");
      if (mistakes[i].make (&f) == TD_PRODUCER_OK)
        fail_msg ("%s was taken", mistakes[i].name);
      assert_true (strlen (td_producer_error (f.p)) > 10);
      assert_null (strchr (td_producer_error (f.p), '\n'));
      /* and it goes on as if nothing had been said */
      add_array (&f, NEXT, TD_TAPE_CATEGORY_GRADIENT);
      must (&f, apply (&f, TD_TAPE_PHASE_BACKWARD, RESULT, NEXT, 1));
      must (&f, td_producer_end_iteration (f.p, 0));
      r = close_tape (&f);
      assert_int_equal (td_tape_reader_summaries (r).n, 1);
      it = load (r, 0);
      if (it->n_events != 2 || it->n_vars != 3)
        fail_msg ("%s left something behind", mistakes[i].name);
      td_tape_iteration_free (it);
      td_tape_reader_free (r);
    }
}

/* One that took the file away would leave the first without its tape. */
static void
producer__is_the_only_one_that_writes_to_its_tape (void **state)
{
  TdProducerOptions o = { .size = sizeof o, .producer = "other", .overwrite = 1 };
  char error[200];
  TdProducer *other;
  TdTapeReader *r;
  Fixture f;

  (void)state;
  open_tape (&f);
  o.path = f.path;
  assert_null (td_producer_new (&o, error, sizeof error));
  assert_non_null (strstr (error, "another producer of this process"));
  must (&f, td_producer_end_iteration (f.p, 0));
  r = close_tape (&f);
  assert_int_equal (td_tape_reader_summaries (r).n, 1);
  td_tape_reader_free (r);
  other = td_producer_new (&o, error, sizeof error); /* it is free again */
  assert_non_null (other);
  td_producer_free (other);
}

static void
producer__answers_without_a_tape (void **state)
{
  TdProducerOptions o = { .size = sizeof o };
  char error[100];

  (void)state;
  assert_int_equal (td_producer_begin (NULL, 0, 0), TD_PRODUCER_WRONG);
  assert_int_equal (td_producer_words (NULL, NULL, 0), TD_PRODUCER_WRONG);
  assert_int_equal (td_producer_text (NULL, "x"), 0);
  assert_string_equal (td_producer_error (NULL), "there is no producer");
  td_producer_free (NULL);
  assert_null (td_producer_new (NULL, error, sizeof error));
  assert_null (td_producer_new (&o, error, sizeof error));
  assert_string_equal (error, "no path is given");
  o.path = "/nowhere/at/all.tdtape";
  assert_null (td_producer_new (&o, NULL, 0));
  o.producer = "test";
  assert_null (td_producer_new (&o, error, sizeof error));
  assert_true (strlen (error) > 10);
  o.level = 17;
  assert_null (td_producer_new (&o, error, sizeof error));
  o.level = 0;
  o.rank = 3;
  assert_null (td_producer_new (&o, error, sizeof error));
}

static void
producer__says_nothing_after_the_end (void **state)
{
  Fixture f;

  (void)state;
  open_tape (&f);
  must (&f, td_producer_end (f.p, 3));
  assert_int_equal (td_producer_end (f.p, 0), TD_PRODUCER_NOT_NOW);
  assert_int_equal (td_producer_end_iteration (f.p, 0), TD_PRODUCER_NOT_NOW);
  assert_int_equal (apply (&f, 0, BATCH, 0, 0), TD_PRODUCER_NOT_NOW);
  td_producer_free (f.p);
}

/* Of a newer header: what this library does not know must be 0. */
static void
producer__honours_the_size_of_structs (void **state)
{
  struct
  {
    TdProducerVariable v;
    uint64_t more;
  } newer = { .v = variable (NEXT, RESULT) };
  Fixture f;

  (void)state;
  open_tape (&f);
  newer.v.size = sizeof newer;
  newer.more = 7;
  assert_int_equal (td_producer_variable (f.p, &newer.v), TD_PRODUCER_WRONG);
  assert_non_null (strstr (td_producer_error (f.p), "newer"));
  newer.more = 0;
  must (&f, td_producer_variable (f.p, &newer.v));
  td_tape_reader_free (close_tape (&f));
}

/* Killed: what had ended is there. */
static void
producer__leaves_a_tape_without_an_end (void **state)
{
  TdTapeReader *r;
  char error[200];
  Fixture f;

  (void)state;
  open_tape (&f);
  must (&f, td_producer_end_iteration (f.p, 0));
  r = td_tape_reader_open (f.path, error, sizeof error);
  assert_non_null (r);
  assert_int_equal (td_tape_reader_summaries (r).n, 1);
  td_tape_reader_free (r);
  td_producer_free (f.p);
}

/* The example is compiled by the build against the installed headers alone. */
static void
producer__example_finds_its_line (void **state)
{
  const char *tape = td_test_tmp ("line.tdtape");
  TdTestChild child;
  TdTapeReader *r;
  char error[200];

  (void)state;
  child = TD_TEST_RUN (td_test_program ("tests/tape/producer-example"), tape);
  assert_int_equal (child.status, 0);
  assert_string_equal (child.out, "a = 2.99946\n");
  td_test_child_clear (&child);
  r = td_tape_reader_open (tape, error, sizeof error);
  assert_non_null (r);
  assert_int_equal (td_tape_reader_summaries (r).n, 20);
  td_tape_reader_free (r);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (producer__writes_what_it_is_told),
    td_test (producer__recognises_iterations_that_repeat),
    td_test (producer__says_views_and_their_layout),
    td_test (producer__says_what_outlives_its_iteration),
    td_test (producer__takes_a_row_of_words),
    td_test (producer__says_at_an_end_that_it_was_work_outside),
    td_test (producer__says_scopes),
    td_test (producer__says_sums_of_a_rank),
    td_test (producer__refuses_what_makes_no_sense),
    td_test (producer__is_the_only_one_that_writes_to_its_tape),
    td_test (producer__answers_without_a_tape),
    td_test (producer__says_nothing_after_the_end),
    td_test (producer__honours_the_size_of_structs),
    td_test (producer__leaves_a_tape_without_an_end),
    td_test (producer__example_finds_its_line),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
