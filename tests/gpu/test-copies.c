/* Copies between the host and cuda:0: each is on the tape, with what it is for and its line,
 * and their bytes are those that the driver copied.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "far-test.h"
#include "far-tape.h"
#include "td-test.h"
#include "train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const FakeCudaControl *driver;

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  return far_test_setup (state);
}

static const char *
start_with (const char *name, const char *times)
{
  const char *path = td_test_tmp (name);

  remove (path);
  setenv ("TAPEDECK_TAPE", path, 1);
  setenv ("TAPEDECK_LEVEL", "ops", 1);
  setenv ("TAPEDECK_DEVICE_TIMES", times, 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  td_device_use (td_device_get ("cuda:0"));
  return path;
}

static const char *
start (const char *name)
{
  return start_with (name, "off");
}

/* Bytes of all copies on the tape, by way and reason. */
typedef struct
{
  long bytes[TD_TAPE_N_COPY_WAYS];
  long why[TD_TAPE_N_COPY_WHYS];
  int n, n_unused, n_before, n_without_line;
} Sums;

static Sums
sums_of (const char *path)
{
  TdTapeReader *r = far_tape_open (path);
  const TdTapeSummaries s = td_tape_reader_summaries (r);
  Sums sums = { .n = 0 };
  char error[256] = "";

  for (uint32_t i = 0; i < s.n; i++)
    {
      const TdTapeIteration *it
          = td_tape_iteration_load_row (r, &s.rows[i], error, sizeof error);

      if (it == NULL)
        fail_msg ("%s", error);
      for (uint32_t k = 0; k < it->n_copies; k++)
        {
          const TdTapeCopy *c = &it->copies[k];

          assert_in_range (c->why, 0, TD_TAPE_N_COPY_WHYS - 1);
          assert_int_not_equal (c->device, 0);
          sums.bytes[c->way] += (long)c->bytes;
          sums.why[c->why] += (long)c->bytes;
          sums.n++;
          sums.n_unused += (c->flags & TD_TAPE_COPY_UNUSED) != 0;
          sums.n_before += (c->flags & TD_TAPE_COPY_BEFORE) != 0;
          sums.n_without_line += td_tape_reader_site (r, c->site) == NULL;
          if (c->why == TD_TAPE_COPY_OP)
            {
              assert_true (c->event < it->n_events);
              assert_string_equal (td_tape_reader_op_name (r, it->events[c->event].opdef),
                                   "to_device");
            }
        }
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (r);
  return sums;
}

/* What the driver copied is what the tape says. */
static void
assert_all (const Sums *s)
{
  assert_int_equal (s->bytes[TD_TAPE_COPY_TO_DEVICE], driver->state->copied_bytes[0]);
  assert_int_equal (s->bytes[TD_TAPE_COPY_TO_HOST], driver->state->copied_bytes[1]);
  assert_true (s->n > 0);
}

/* --- each kind --- */

enum
{
  OP,
  BACK,
  READ,
  ITEM,
  WRITE,
  NEW,
  SAVE,
  LOAD,
  N_LINES
};
static int line[N_LINES];
#define AT(what) (line[what] = __LINE__)

static void
copy_each_way (const char *file)
{
  const float numbers[] = { 1, 2, 3, 4, 5, 6 };
  float back[6];
  TdVar *x, *far, *loaded;

  td_device_use (td_device_get ("cpu"));
  x = td_tensor (TD_F32, TD_SHAPE (2, 3), numbers); /* no copy */
  td_device_use (td_device_get ("cuda:0"));
  AT (OP), far = td_to_device (x, td_device_get ("cuda:0"));
  AT (BACK), td_to_device (far, td_device_get ("cpu"));
  AT (READ), td_read (far, back, sizeof back);
  AT (ITEM), td_item (td_sum (far));
  AT (WRITE), td_write (far, numbers, sizeof numbers);
  AT (NEW), td_tensor (TD_F32, TD_SHAPE (3), numbers);
  AT (SAVE), td_save_npy (file, far);
  AT (LOAD), loaded = td_load_npy (file);
  assert_false (td_poisoned (loaded));
  assert_null (td_error ());
}

static void
copies__are_each_on_the_tape_with_reason_and_line (void **state)
{
  static const struct
  {
    int what, way, why;
    uint64_t bytes;
  } expected[] = {
    { OP, TD_TAPE_COPY_TO_DEVICE, TD_TAPE_COPY_OP, 24 },
    { BACK, TD_TAPE_COPY_TO_HOST, TD_TAPE_COPY_OP, 24 },
    { READ, TD_TAPE_COPY_TO_HOST, TD_TAPE_COPY_READ, 24 },
    { ITEM, TD_TAPE_COPY_TO_HOST, TD_TAPE_COPY_READ, 4 },
    { WRITE, TD_TAPE_COPY_TO_DEVICE, TD_TAPE_COPY_WRITE, 24 },
    { NEW, TD_TAPE_COPY_TO_DEVICE, TD_TAPE_COPY_NEW, 12 },
    { SAVE, TD_TAPE_COPY_TO_HOST, TD_TAPE_COPY_READ, 24 },
    { LOAD, TD_TAPE_COPY_TO_DEVICE, TD_TAPE_COPY_LOAD, 24 },
  };
  const char *path = start ("each.tdtape");
  const TdTapeIteration *it;
  char error[256] = "", *file = strdup (td_test_tmp ("each.npy"));
  uint64_t ended = 0;
  TdTapeReader *r;
  Sums sums;

  (void)state;
  TD_ITERATION (7)
    copy_each_way (file);
  assert_int_equal (td_finish (), 0);
  sums = sums_of (path);
  assert_all (&sums);
  assert_int_equal (sums.n_before, 0);
  r = far_tape_open (path);
  it = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (it);
  assert_int_equal (it->n_copies, TD_ARRAY_LENGTH (expected));
  for (uint32_t i = 0; i < it->n_copies; i++)
    {
      const TdTapeCopy *c = &it->copies[i];
      const TdTapeSite *site = td_tape_reader_site (r, c->site);

      assert_int_equal (c->way, expected[i].way);
      assert_int_equal (c->why, expected[i].why);
      assert_int_equal (c->bytes, expected[i].bytes);
      assert_int_equal (c->flags, TD_TAPE_COPY_TIMED);
      assert_int_equal (c->device_kind, TD_TAPE_DEVICE_TIME_NONE);
      assert_true (c->start_ns >= ended);
      ended = c->start_ns + c->duration_ns;
      assert_true (ended <= it->duration_ns);
      assert_non_null (site);
      assert_contains (td_tape_reader_string (r, site->file), "test-copies.c");
      assert_int_equal (site->line, line[expected[i].what]);
    }
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
  free (file);
}

/* What is copied outside iterations belongs to the next, or at the end to one of its own. */
static void
copies__outside_iterations_are_not_lost (void **state)
{
  const float numbers[] = { 1, 2, 3 };
  const char *path = start ("outside.tdtape");
  const TdTapeIteration *it;
  char error[256] = "";
  TdTapeReader *r;
  float back[3];
  Sums sums;
  TdVar *x;

  (void)state;
  x = td_retain (td_tensor (TD_F32, TD_SHAPE (3), numbers));
  TD_ITERATION (0)
    td_item (td_sum (x));
  assert_int_equal (td_read (x, back, sizeof back), TD_OK);
  td_release (x);
  assert_int_equal (td_finish (), 0);
  sums = sums_of (path);
  assert_all (&sums);
  assert_int_equal (sums.n, 3);
  assert_int_equal (sums.n_before, 2);
  r = far_tape_open (path);
  it = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (it);
  assert_int_equal (it->n_copies, 2);
  assert_int_equal (it->copies[0].why, TD_TAPE_COPY_NEW);
  assert_int_equal (it->copies[0].flags, TD_TAPE_COPY_BEFORE | TD_TAPE_COPY_TIMED);
  assert_int_equal (it->copies[0].start_ns, 0);
  assert_int_not_equal (it->copies[0].var, TD_TAPE_NONE);
  assert_int_equal (it->vars[it->copies[0].var].bytes, sizeof numbers);
  assert_int_equal (it->copies[1].why, TD_TAPE_COPY_READ);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* --- the device's times --- */

static TdTapeDeviceTime
time_of_event (const TdTapeIteration *it, uint32_t event)
{
  for (uint32_t i = 0; i < it->n_device_times; i++)
    if (it->device_times[i].event == event)
      return it->device_times[i];
  return (TdTapeDeviceTime){ 0 };
}

/* A copy takes the fake device a microsecond, and so does a mark; what is read is not charged
 * with what it waits for. */
static void
copies__have_the_device_s_times_in_iterations_that_are_timed (void **state)
{
  const char *path = start_with ("times.tdtape", "all");
  char error[256] = "", *file = strdup (td_test_tmp ("times.npy"));
  const TdTapeIteration *it;
  int n_ops = 0, n_on_copies = 0;
  TdTapeReader *r;

  (void)state;
  TD_ITERATION (7)
    copy_each_way (file);
  assert_int_equal (td_finish (), 0);
  r = far_tape_open (path);
  it = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (it);
  assert_int_equal (it->n_copies, N_LINES);
  for (uint32_t i = 0; i < it->n_copies; i++)
    {
      const TdTapeCopy *c = &it->copies[i];

      assert_int_equal (c->flags, TD_TAPE_COPY_TIMED);
      if (c->why == TD_TAPE_COPY_OP && c->way == TD_TAPE_COPY_TO_DEVICE)
        {
          /* The event's own. */
          assert_int_equal (c->device_kind, TD_TAPE_DEVICE_TIME_NONE);
          assert_int_equal (time_of_event (it, c->event).kind, TD_TAPE_DEVICE_TIME_SAMPLED);
          n_ops++;
          continue;
        }
      assert_int_equal (c->device_kind, TD_TAPE_DEVICE_TIME_SAMPLED);
      assert_int_equal (c->device_stream, c->way == TD_TAPE_COPY_TO_HOST);
      assert_in_range (c->device_duration_ns, 1000, 3000);
      assert_true (c->device_stream != 0 || c->device_start_ns + 1 >= c->start_ns);
      n_on_copies += c->device_stream;
    }
  assert_int_equal (n_ops, 1);
  assert_int_equal (n_on_copies, 4);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
  free (file);
}

/* One that fails has no time, and the next has its own. */
static void
copies__after_one_that_failed_are_timed (void **state)
{
  const float numbers[] = { 1, 2, 3 };
  const char *path = start_with ("failed.tdtape", "all");
  const TdTapeIteration *it;
  char error[256] = "";
  TdTapeReader *r;
  float back[3];

  (void)state;
  setenv ("TAPEDECK_ON_ERROR", "continue", 1);
  TD_ITERATION (0)
    {
      TdVar *x = td_tensor (TD_F32, TD_SHAPE (3), numbers);

      driver->fail_call ("cuMemcpyDtoHAsync", 1, 2 /* CUDA_ERROR_OUT_OF_MEMORY */);
      assert_int_not_equal (td_read (x, back, sizeof back), TD_OK);
      td_error_clear ();
      assert_int_equal (td_read (x, back, sizeof back), TD_OK);
      td_relu (x);
    }
  td_finish ();
  unsetenv ("TAPEDECK_ON_ERROR");
  r = far_tape_open (path);
  it = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (it);
  assert_int_equal (it->n_copies, 2);
  for (int i = 0; i < 2; i++)
    {
      assert_int_equal (it->copies[i].device_kind, TD_TAPE_DEVICE_TIME_SAMPLED);
      assert_in_range (it->copies[i].device_duration_ns, 1000, 3000);
    }
  assert_int_equal (it->n_device_times, 1);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* --- batches --- */

enum
{
  ROWS = 512,
  WIDE = 1024,
  BATCH = 256,
  STEPS = 5
};

static void
train_ahead (TdDataset *d)
{
  TdIter *it = td_multithread_iterator_new (d, .batch_size = BATCH, .seed = 5, .n_threads = 2);

  for (int i = 0; i < STEPS; i++)
    TD_ITERATION (i)
      {
        TdBatch b = td_iter_next (it);

        td_item (td_sum (b.x));
      }
  td_iter_free (it);
}

/* A batch that is sent an iteration early is told of in the one that uses it, and the last one,
 * which nobody asks for, all the same. */
static void
batches__are_copies_of_the_iteration_that_uses_them (void **state)
{
  const char *path = start ("batches.tdtape");
  const uint64_t bytes = (uint64_t)BATCH * WIDE * sizeof (float);
  TdTapeReader *r;
  char error[256] = "";
  TdDataset *d = NULL;
  Sums sums;

  (void)state;
  td_device_use (td_device_get ("cpu"));
  TD_SCOPE ("rows")
    d = td_tuple_dataset_new (td_ones (TD_F32, TD_SHAPE (ROWS, WIDE)), NULL);
  td_device_use (td_device_get ("cuda:0"));
  assert_non_null (d);
  train_ahead (d);
  td_dataset_free (d);
  assert_null (td_error ());
  assert_int_equal (td_finish (), 0);
  sums = sums_of (path);
  assert_all (&sums);
  assert_int_equal (sums.why[TD_TAPE_COPY_BATCH], (long)bytes * (STEPS + 1));
  assert_int_equal (sums.n_unused, 1);
  r = far_tape_open (path);
  for (uint32_t i = 0, label = 0; label < STEPS; i++)
    {
      const TdTapeIteration *it = td_tape_iteration_load (r, i, error, sizeof error);

      if (it == NULL)
        fail_msg ("%s", error);
      if (it->label == (TD_TAPE_LABEL_NUMBER | label))
        {
          assert_int_equal (it->copies[0].why, TD_TAPE_COPY_BATCH);
          assert_int_equal (it->copies[0].flags, label == 0 ? TD_TAPE_COPY_TIMED : 0);
          assert_int_equal (it->copies[0].bytes, bytes);
          assert_int_not_equal (it->copies[0].var, TD_TAPE_NONE);
          assert_int_equal (it->vars[it->copies[0].var].bytes, bytes);
          label++;
        }
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (r);
}

/* --- whole programs --- */

static void
training__copies_what_the_tape_says (void **state)
{
  static const char *const nets[] = { "mlp", "lenet", "lstm" };

  (void)state;
  for (int i = 0; i < TD_ARRAY_LENGTH (nets); i++)
    {
      const char *path = start (nets[i]);
      TrainNet *net = train_new (nets[i], td_device_get ("cuda:0"));
      Sums sums;

      train_copies (net);
      for (int k = 0; k < STEPS; k++)
        train_step (net, true);
      train_free (net);
      assert_null (td_error ());
      assert_int_equal (td_finish (), 0);
      sums = sums_of (path);
      assert_all (&sums);
      assert_true (sums.why[TD_TAPE_COPY_READ] >= STEPS * 4);
      driver->reset ();
    }
}

/* --- what is shown --- */

static void
show__lists_copies_by_line (void **state)
{
  const char *program = td_test_program ("app/tapedeck-viz");
  char *path = strdup (start_with ("shown.tdtape", "all")),
       *file = strdup (td_test_tmp ("shown.npy"));
  char text[160];
  TdTestChild child;

  (void)state;
  TD_ITERATION (0)
    copy_each_way (file);
  assert_int_equal (td_finish (), 0);
  child = TD_TEST_RUN (program, "show", path, "--view", "schedule", "--iteration", "0",
                       "--format", "text");
  assert_child_status (child, 0);
  assert_contains (child.out, "copies of the host: 4 to devices, 84 B, ");
  assert_contains (child.out, " of the host; 4 to the host, 76 B, which waited ");
  snprintf (text, sizeof text, "24 B  test-copies.c:%d  ", line[WRITE]);
  assert_contains (child.out, text);
  assert_contains (strstr (child.out, text), " µs on the device\n");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "show", path, "--view", "schedule", "--iteration", "0",
                       "--format", "json");
  assert_child_status (child, 0);
  assert_contains (child.out, "\"to_device_bytes\": 84");
  assert_contains (child.out, "\"to_host_bytes\": 76");
  assert_contains (child.out, "\"to_host_ns\": ");
  assert_contains (child.out, "\"copies\": [");
  assert_contains (child.out, "\"device_time\": \"sampled\"");
  assert_contains (child.out, "\"device_ns\": ");
  td_test_child_clear (&child);
  free (path);
  free (file);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, far_test_teardown)
  const struct CMUnitTest tests[] = {
    row (copies__are_each_on_the_tape_with_reason_and_line),
    row (copies__outside_iterations_are_not_lost),
    row (copies__have_the_device_s_times_in_iterations_that_are_timed),
    row (copies__after_one_that_failed_are_timed),
    row (batches__are_copies_of_the_iteration_that_uses_them),
    row (training__copies_what_the_tape_says),
    row (show__lists_copies_by_line),
  };

  return cmocka_run_group_tests_name ("copies", tests, NULL, NULL);
}
