/* Batches that are sent to the device an iteration early: the same batches, errors and states
 * as without, copies that nothing waits for but what reads them, and memory that comes back.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "train/loop/iterator.h"
#include "far-test.h"
#include "fake-remote.h"
#include "far-tape.h"
#include "td-test.h"

#include <stdlib.h>
#include <string.h>

static const FakeCudaControl *driver;

enum
{
  ROWS = 900,
  WIDE = 1024, /* so that a batch is copied on its own stream: at least a megabyte */
  NARROW = 8,
  BATCH = 256,
  CLASSES = 4
};

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  return far_test_setup_engine (state);
}

static TdDataset *
rows_of (int64_t width)
{
  float *x = calloc ((size_t)(ROWS * width), sizeof *x);
  int32_t t[ROWS];
  TdDataset *d = NULL;

  for (int64_t i = 0; i < ROWS * width; i++)
    x[i] = (float)((i * 7 + i / width) % 23) / 23;
  for (int i = 0; i < ROWS; i++)
    t[i] = i * i % CLASSES;
  TD_SCOPE ("rows")
    d = td_tuple_dataset_new (td_tensor (TD_F32, TD_SHAPE (ROWS, width), x),
                              td_tensor (TD_I32, TD_SHAPE (ROWS), t));
  free (x);
  return d;
}

/* As many large fields as there can be. */
static TdDataset *
many_fields (void)
{
  TdDataset *d = NULL;

  TD_SCOPE ("rows")
    {
      TdVar *x[TD_MAX_FIELDS];

      for (int k = 0; k < TD_MAX_FIELDS; k++)
        x[k] = td_full (TD_F32, TD_SHAPE (2 * BATCH, WIDE), k + 1);
      d = td_tuple_dataset_new_n (x, TD_MAX_FIELDS);
    }
  return d;
}

static TdIter *
iterator (TdDataset *d, bool ahead, bool repeat)
{
  return ahead ? td_multithread_iterator_new (d, .batch_size = BATCH, .seed = 5,
                                              .repeat = repeat, .n_threads = 2)
               : td_serial_iterator_new (d, .batch_size = BATCH, .seed = 5, .repeat = repeat);
}

static long
sent (void)
{
  return driver->state->n_copies[0];
}

/* --- when --- */

/* What iteration k + 1 computes with is issued before iteration k is, and what k computes does
 * not wait for it. */
static void
uploads__of_the_next_batch_begin_before_this_one_is_computed_with (void **state)
{
  TdIter *it;
  long before;
  int behind = 0;

  (void)state;
  td_device_use (td_device_get ("cuda:0"));
  it = iterator (many_fields (), true, true);
  for (int i = 0; i < 12; i++)
    TD_SCOPE ("iteration")
      {
        TdBatch b;
        TdVar *y;

        before = sent ();
        b = td_iter_next (it);
        assert_int_equal (sent () - before, (i == 0 ? 2 : 1) * TD_MAX_FIELDS);
        y = td_sum (td_relu (b.x));
        assert_int_equal (driver->state->n_violations, 0);
        before = driver->state->n_waits;
        assert_true (td_item (y) > 0);
        assert_int_equal (driver->state->n_waits, before + 1);
        behind += driver->state->n_pending >= 2; /* a copy to come, and its event */
      }
  assert_true (behind >= 8); /* streams run as dice fall; were y behind all, it were 0 */
  td_iter_free (it);
}

/* Once threads write to pinned memory, no copy is made on the host, and none is waited for. */
static void
uploads__are_from_where_threads_wrote (void **state)
{
  TdIter *it;
  long before = 0;

  (void)state;
  td_device_use (td_device_get ("cuda:0"));
  it = iterator (rows_of (WIDE), true, true);
  for (int i = 0; i < 20; i++)
    TD_SCOPE ("iteration")
      {
        TdBatch b = td_iter_next (it);

        assert_true (td_item (td_sum (b.x)) > 0);
        if (i == 9)
          before = driver->state->n_waits;
        if (i > 2) /* a ring of five, of which three have been lent already */
          assert_true (it->ahead.pinned_bytes > 0);
      }
  assert_true (it->ahead.batch->field[0].data == it->ahead.batch->field[0].pinned);
  assert_true (it->ahead.batch->field[1].data == it->ahead.batch->field[1].own); /* labels */
  /* The reads; and of blocks that come round again, sometimes, long past ones. */
  assert_in_range (driver->state->n_waits - before, 10, 25);
  td_iter_free (it);
}

/* --- what --- */

typedef struct
{
  float losses[14], weights[WIDE * CLASSES];
} Training;

static void
run_layer (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in, (void)n_out;
  out[0] = td_relu (td_link (self, in[0]));
}

static void
train (Training *r, const char *device, int64_t width, bool ahead, bool fixed)
{
  TdLink *net = td_chain_new ("net"), *layer;
  TdStatic *function = NULL;
  TdIter *it;
  TdOpt *opt;

  td_device_use (td_device_get (device));
  td_set_seed (11);
  layer = td_linear_new (net, "layer", width, CLASSES);
  if (fixed)
    function = td_static_new (run_layer, layer);
  opt = td_momentum_sgd_new (net, .lr = 0.5 / (double)width);
  it = iterator (rows_of (width), ahead, true);
  TD_ITERATIONS (i, TD_ARRAY_LENGTH (r->losses))
    {
      TdBatch b = td_iter_next (it);
      TdVar *y = NULL, *loss;

      if (fixed)
        td_static_call (function, &b.x, 1, &y, 1);
      else
        run_layer (layer, &b.x, 1, &y, 1);
      loss = td_softmax_cross_entropy (y, b.t);
      td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);
      r->losses[i] = (float)td_item (loss);
      if (td_error () != NULL)
        fail_msg ("%s", td_error ()->message);
    }
  assert_int_equal (td_read (td_link_param (layer, "W"), r->weights,
                             (size_t)(width * CLASSES) * sizeof (float)),
                    TD_OK);
  td_iter_free (it);
  if (function != NULL)
    td_static_free (function);
  td_opt_free (opt);
  td_link_free (net);
}

/* By hand and as a schedule that is a CUDA graph, small batches and large ones. */
static void
trainings__are_the_same_bit_for_bit (void **state)
{
  static Training cpu, without, with;
  static const int64_t widths[] = { WIDE, NARROW };

  (void)state;
  for (int w = 0; w < TD_ARRAY_LENGTH (widths); w++)
    {
      memset (&cpu, 0, sizeof cpu);
      train (&cpu, "cpu", widths[w], false, false);
      assert_true (cpu.losses[13] < cpu.losses[0]);
      for (int fixed = 0; fixed < 2; fixed++)
        {
          memset (&without, 0, sizeof with);
          memset (&with, 0, sizeof with);
          train (&without, "cuda:0", widths[w], false, fixed);
          train (&with, "cuda:0", widths[w], true, fixed);
          assert_memory_equal (&with, &without, sizeof with);
          assert_memory_equal (&with, &cpu, sizeof with);
        }
    }
  assert_true (driver->state->n_graph_launches > 0);
}

/* Threads would write over what a copy still reads: here nine batches are asked for at once, of
 * a ring of five. */
static void
loading__before_copies_are_done_would_be_seen (void **state)
{
  static float x[2][BATCH * WIDE];
  TdDataset *d = rows_of (WIDE);
  int wrong = 0;
  TdIter *it, *serial;

  (void)state;
  td_device_use (td_device_get ("cuda:0"));
  it = iterator (d, true, true);
  serial = iterator (d, false, true);
  for (int i = 0; i < 8; i++) /* till all of the ring is pinned */
    TD_SCOPE ("iteration")
      {
        td_iter_next (serial);
        assert_true (td_item (td_sum (td_iter_next (it).x)) > 0);
      }
  TD_SCOPE ("iteration")
    {
      TdVar *kept[9];

      strcpy (driver->state->ignored, "cuEventSynchronize");
      for (int i = 0; i < 9; i++)
        kept[i] = td_iter_next (it).x;
      driver->state->ignored[0] = '\0';
      for (int i = 0; i < 9; i++)
        {
          td_read (kept[i], x[0], sizeof x[0]);
          td_read (td_iter_next (serial).x, x[1], sizeof x[1]);
          wrong += memcmp (x[0], x[1], sizeof x[0]) != 0;
        }
    }
  td_iter_free (it);
  td_iter_free (serial);
  assert_true (wrong > 0);
}

/* The copies that nothing waits for would be read too early. */
static void
reading__before_copies_are_done_would_be_seen (void **state)
{
  TdIter *it;

  (void)state;
  td_device_use (td_device_get ("cuda:0"));
  it = iterator (rows_of (WIDE), true, true);
  TD_SCOPE ("iteration")
    {
      TdBatch b;

      strcpy (driver->state->ignored, "cuStreamWaitEvent");
      b = td_iter_next (it);
      td_relu (b.x);
      driver->state->ignored[0] = '\0';
    }
  assert_true (driver->state->n_violations > 0);
  assert_contains (driver->state->violation, "another stream writes, and no event is between");
  driver->state->n_violations = 0;
  td_iter_free (it);
}

/* --- ends and errors --- */

static bool
refuse_row (TdExample *e, void *row)
{
  return e->index != *(const int64_t *)row;
}

/* Row 600 is in the third batch: the first two are whole, and nothing is said before. */
static void
errors__come_with_the_batch_that_has_them (void **state)
{
  static int64_t row = 600;
  TdIter *it;

  (void)state;
  td_device_use (td_device_get ("cuda:0"));
  it = td_multithread_iterator_new (td_transform_dataset_new (rows_of (WIDE), refuse_row, &row),
                                    .batch_size = BATCH, .shuffle = false);
  for (int i = 0; i < 2; i++)
    TD_SCOPE ("iteration")
      {
        TdBatch b = td_iter_next (it);

        assert_null (td_error ());
        assert_true (td_item (td_sum (b.x)) > 0);
        assert_null (td_error ());
      }
  assert_true (td_poisoned (td_iter_next (it).x));
  assert_contains (far_test_error (TD_ERR_SHAPE), "600");
  assert_false (td_poisoned (td_iter_next (it).x));
  td_iter_free (it);
}

static void
epochs__end_and_begin_again (void **state)
{
  TdIter *it;

  (void)state;
  td_device_use (td_device_get ("cuda:0"));
  it = iterator (rows_of (WIDE), true, false);
  for (int epoch = 0; epoch < 3; epoch++)
    {
      int64_t n = 0;
      long before;

      for (int i = 0; i < 4; i++)
        TD_SCOPE ("iteration")
          {
            TdBatch b = td_iter_next (it);

            assert_false (td_poisoned (b.x));
            n += b.n;
          }
      assert_int_equal (n, ROWS);
      before = sent ();
      assert_true (td_poisoned (td_iter_next (it).x));
      assert_contains (far_test_error (TD_ERR_STATE), "at its end");
      assert_int_equal (sent (), before);
      td_iter_reset (it);
    }
  td_iter_free (it);
}

/* A batch that nobody asked for is given back, whenever the iterator goes. */
static void
memory__comes_back_when_an_iterator_stops_early (void **state)
{
  (void)state;
  td_device_use (td_device_get ("cuda:0"));
  for (int n = 1; n < 6; n++)
    {
      TdIter *it = iterator (rows_of (WIDE), true, true);

      for (int i = 0; i < n; i++)
        TD_SCOPE ("iteration")
          td_iter_next (it);
      assert_true (td_mem_info (td_device_get ("cuda:0")).category_bytes[TD_MEM_INPUT]
                   >= BATCH * WIDE * sizeof (float)); /* the one to come */
      td_iter_free (it);
      assert_int_equal (td_mem_info (td_device_get ("cuda:0")).category_bytes[TD_MEM_INPUT], 0);
    }
}

/* Without room for a batch more there is none early, and no error. */
static void
memory__that_is_not_there_is_done_without (void **state)
{
  TdIter *it;

  (void)state;
  td_device_use (td_device_get ("cuda:0"));
  it = iterator (rows_of (WIDE), true, true);
  td_set_mem_limit ((size_t)(BATCH * WIDE * 4 * 3 / 2));
  for (int i = 0; i < 5; i++)
    TD_SCOPE ("iteration")
      {
        TdBatch b = td_iter_next (it);

        assert_false (td_poisoned (b.x));
        assert_true (td_item (td_sum (b.t)) >= 0);
        assert_null (it->ahead.device);
      }
  assert_null (td_error ());
  td_set_mem_limit (0);
  td_iter_free (it);
}

/* A batch on its way to one device is sent to the other when that is computed with. */
static void
batches__follow_the_default_device (void **state)
{
  TdIter *it, *serial;
  TdDataset *d = rows_of (WIDE);

  (void)state;
  it = iterator (d, true, true);
  serial = iterator (d, false, true);
  for (int i = 0; i < 10; i++)
    TD_SCOPE ("iteration")
      {
        TdBatch a, b;

        td_device_use (td_device_get (i % 4 < 2 ? "cuda:0" : "cpu"));
        a = td_iter_next (it);
        b = td_iter_next (serial);
        assert_ptr_equal (a.x->node->device, b.x->node->device);
        assert_true (td_item (td_sum (a.x)) == td_item (td_sum (b.x)));
      }
  td_iter_free (it);
  td_iter_free (serial);
}

/* --- on the tape --- */

/* Arrays are told of in the iteration that uses them, as input, at the place that asked. */
static void
arrays__are_on_the_tape_where_they_are_used (void **state)
{
  const char *path = td_test_tmp ("t.tdtape");
  char error[256] = "";
  TdTapeReader *r;
  int line = 0;

  (void)state;
  td_finish ();
  setenv ("TAPEDECK_TAPE", path, 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  td_device_use (td_device_get ("cuda:0"));
  {
    TdIter *it = iterator (rows_of (WIDE), true, true);

    TD_ITERATIONS (i, 5)
      {
        TdBatch b = (line = __LINE__, td_iter_next (it));

        td_sum (b.x);
      }
    td_iter_free (it);
  }
  assert_int_equal (td_finish (), 0);
  unsetenv ("TAPEDECK_TAPE");
  r = far_tape_open (path);
  for (int i = 0; i < 5; i++)
    {
      const TdTapeIteration *it = td_tape_iteration_load (r, i, error, sizeof error);
      int n_inputs = 0;

      assert_non_null (it);
      for (uint32_t v = 0; v < it->n_vars; v++)
        if (it->vars[v].category == TD_TAPE_CATEGORY_INPUT && it->vars[v].dtype == TD_TAPE_F32
            && it->vars[v].device == 2)
          {
            n_inputs++;
            assert_int_equal (td_tape_reader_site (r, it->vars[v].site)->line, line);
          }
      assert_int_equal (n_inputs, 1);
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (r);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, far_test_teardown_engine)
  const struct CMUnitTest tests[] = {
    row (uploads__of_the_next_batch_begin_before_this_one_is_computed_with),
    row (uploads__are_from_where_threads_wrote),
    row (trainings__are_the_same_bit_for_bit),
    row (loading__before_copies_are_done_would_be_seen),
    row (reading__before_copies_are_done_would_be_seen),
    row (errors__come_with_the_batch_that_has_them),
    row (epochs__end_and_begin_again),
    row (memory__comes_back_when_an_iterator_stops_early),
    row (memory__that_is_not_there_is_done_without),
    row (batches__follow_the_default_device),
    row (arrays__are_on_the_tape_where_they_are_used),
  };

  return cmocka_run_group_tests_name ("ahead", tests, NULL, NULL);
}
