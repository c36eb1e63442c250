/* What stands above operations, on a device that the host cannot look into: links and their
 * files, checks, recordings.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "fake-remote.h"
#include "td-tape-reader.h"
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TdDevice *cpu, *remote;

static int
setup (void **state)
{
  if (td_test_setup (state) != 0 || td_init (NULL, NULL) != TD_OK)
    return -1;
  cpu = td_device_get ("cpu");
  remote = fake_remote_start ();
  td_set_seed (1);
  return remote == NULL ? -1 : 0;
}

static int
teardown (void **state)
{
  int status = td_finish ();

  return td_test_teardown (state) != 0 || status != 0 ? -1 : 0;
}

static void
assert_same (TdVar *a, TdVar *b)
{
  size_t bytes = (size_t)td_size (a) * td_dtype_bytes (td_dtype (a));
  char *x = malloc (bytes + 1), *y = malloc (bytes + 1);

  assert_true (td_size (a) > 0);
  assert_int_equal (td_read (a, x, bytes), TD_OK);
  assert_int_equal (td_read (b, y, bytes), TD_OK);
  assert_memory_equal (x, y, bytes);
  free (x);
  free (y);
}

static void
link_copy__has_numbers_of_its_own_far_away (void **state)
{
  TdLink *m, *copy;

  td_device_use (remote);
  m = td_linear_new (NULL, "m", 6, 4, .initialW = td_init_orthogonal ());
  copy = td_link_copy (m);
  td_device_use (cpu);
  assert_ptr_equal (td_device (td_link_param (copy, "W")), remote);
  assert_ptr_not_equal (td_link_param (copy, "W"), td_link_param (m, "W"));
  assert_same (td_link_param (copy, "W"), td_link_param (m, "W"));
}

static void
npz__carries_weights_from_there_to_here_and_back (void **state)
{
  const char *path = td_test_tmp ("m.npz");
  TdLink *here = td_linear_new (NULL, "m", 6, 4), *there, *back;

  td_device_use (remote);
  there = td_linear_new (NULL, "m", 6, 4);
  back = td_linear_new (NULL, "m", 6, 4);
  td_device_use (cpu);
  assert_int_equal (td_save_npz (path, there), TD_OK);
  assert_int_equal (td_load_npz (path, here), TD_OK);
  assert_same (td_link_param (here, "W"), td_link_param (there, "W"));
  assert_int_equal (td_load_npz (path, back), TD_OK);
  assert_same (td_link_param (back, "W"), td_link_param (there, "W"));
  assert_ptr_equal (td_device (td_link_param (back, "W")), remote);
}

/* The loss of an lstm that moved there, with a size it learns from its first input, while the
 * program's default device is another. */
static double
lstm_loss (TdDevice *device)
{
  TdLink *m = td_sequential_new ("m"), *lstm;
  double loss = 0;

  td_set_seed (3);
  lstm = td_lstm_new (m, "lstm", TD_INFER, 5);
  assert_int_equal (td_link_to_device (m, device), TD_OK);
  for (int i = 0; i < 3; i++)
    TD_SCOPE ("step")
      {
        TdVar *x = td_to_device (td_rand (TD_F32, TD_SHAPE (4, 3)), device);
        TdVar *y = td_sum (td_square (td_link (m, x)));

        assert_false (td_poisoned (y));
        assert_ptr_equal (td_device (y), device);
        assert_int_equal (td_backward (y, 0), TD_OK);
        loss += td_item (y);
      }
  assert_ptr_equal (td_device (td_lstm_h (lstm)), device);
  td_link_free (m);
  return loss;
}

static void
lstm__lives_where_it_was_moved_before_it_knew_its_size (void **state)
{
  double here = lstm_loss (cpu), there = lstm_loss (remote);

  assert_true (here > 0);
  assert_true (here == there);
}

static void
copied_link__goes_where_its_pattern_was_moved (void **state)
{
  TdLink *m = td_linear_new (NULL, "m", TD_INFER, 2), *copy;

  assert_int_equal (td_link_to_device (m, remote), TD_OK);
  copy = td_link_copy (m);
  TD_SCOPE ("call")
    {
      TdVar *y = td_link (copy, td_to_device (td_ones (TD_F32, TD_SHAPE (1, 3)), remote));

      assert_ptr_equal (td_device (y), remote);
    }
  assert_ptr_equal (td_device (td_link_param (copy, "W")), remote);
}

static void
debug__finds_the_operation_that_made_nan_far_away (void **state)
{
  TdVar *x = td_to_device (td_full (TD_F32, TD_SHAPE (3), -1), remote);

  TD_USING (debug, 1)
    assert_true (td_poisoned (td_log (x)) || td_error () != NULL);
  assert_int_equal (td_error ()->status, TD_ERR_NUMERIC);
  assert_string_equal (td_error ()->op, "log");
  assert_contains (td_error ()->message, "3 NaN");
  td_error_clear ();
}

static void
call_tanh (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  out[0] = td_mul (td_tanh (in[0]), in[0]);
}

static void
gradient_check__works_where_its_inputs_lie (void **state)
{
  TdVar *x = td_to_device (td_randn (TD_F64, TD_SHAPE (5)), remote), *g;
  long queued = fake_remote_queued ();
  TdCheckOpt options = td_check_options ();

  assert_int_equal (td_check_backward_ (call_tanh, NULL, &x, 1, NULL, 1, &options), TD_OK);
  assert_int_equal (td_check_double_backward_ (call_tanh, NULL, &x, 1, NULL, 1, &options),
                    TD_OK);
  assert_int_equal (td_numerical_grad (call_tanh, NULL, &x, 1, NULL, 1, 1e-4, &g), TD_OK);
  assert_ptr_equal (td_device (g), remote);
  assert_true (fake_remote_queued () > queued);
}

/* --- recordings --- */

/* Record an iteration at level values on a device; the engine starts and ends here. */
static void
record (const char *path, const char *device_name)
{
  TdLink *m;

  assert_int_equal (td_finish (), 0);
  setenv ("TAPEDECK_TAPE", path, 1);
  setenv ("TAPEDECK_LEVEL", "values", 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  assert_non_null (fake_remote_start ());
  td_set_seed (2);
  td_device_use (td_device_get (device_name));
  m = td_linear_new (NULL, "m", 6, 4);
  TD_ITERATION (0)
    {
      TdVar *y = td_relu (td_link (m, td_rand (TD_F32, TD_SHAPE (3, 6))));

      assert_int_equal (td_backward (td_sum (y), 0), TD_OK);
    }
  assert_int_equal (td_finish (), 0);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
}

typedef struct
{
  TdTapeReader *reader;
  const TdTapeIteration *it;
} Tape;

static Tape
tape_open (const char *path)
{
  char error[256] = "";
  Tape t = { td_tape_reader_open (path, error, sizeof error), NULL };

  if (t.reader != NULL)
    t.it = td_tape_iteration_load (t.reader, 0, error, sizeof error);
  if (t.it == NULL)
    fail_msg ("%s: %s", path, error);
  return t;
}

static void
tape_close (Tape *t)
{
  td_tape_iteration_free (t->it);
  td_tape_reader_free (t->reader);
}

static void
recording__has_the_same_statistics_and_values_far_away (void **state)
{
  char here_path[256], there_path[256], a[512], b[512];
  Tape here, there;

  snprintf (here_path, sizeof here_path, "%s", td_test_tmp ("here.tdtape"));
  snprintf (there_path, sizeof there_path, "%s", td_test_tmp ("there.tdtape"));
  record (here_path, "cpu");
  record (there_path, FAKE_REMOTE_NAME);
  here = tape_open (here_path);
  there = tape_open (there_path);
  assert_true (here.it->n_stats > 4 && here.it->n_tensors > 4);
  /* Of a device that counts later, outputs are counted; here leaves and sums of gradients, too.
   */
  assert_true (there.it->n_stats > 4 && there.it->n_stats <= here.it->n_stats);
  assert_true (there.it->n_tensors > 4 && there.it->n_tensors <= here.it->n_tensors);
  for (uint32_t i = 0; i < there.it->n_stats; i++)
    {
      bool found = false;

      for (uint32_t k = 0; k < here.it->n_stats; k++)
        found |= memcmp (&there.it->stats[i], &here.it->stats[k], sizeof *here.it->stats) == 0;
      assert_true (found);
    }
  for (uint32_t i = 0; i < there.it->n_tensors; i++)
    {
      TdTapeTensorRecord far_record, record;
      const int64_t n = td_tape_tensor_read (there.reader, &there.it->tensors[i], &far_record,
                                             b, 0, sizeof b);
      bool found = false;

      assert_true (n > 0);
      for (uint32_t k = 0; k < here.it->n_tensors; k++)
        found
            |= td_tape_tensor_read (here.reader, &here.it->tensors[k], &record, a, 0, sizeof a)
                   == n
               && memcmp (a, b, (size_t)n) == 0;
      assert_true (found);
    }
  tape_close (&here);
  tape_close (&there);
}

/* Constants, shapes and indices of a model follow its inputs. */
static void
onnx__computes_there_what_it_computes_here (void **state)
{
  static const char *const models[] = { "pictures", "words", "sequence" };

  (void)state;
  for (int k = 0; k < 3; k++)
    TD_SCOPE ("model")
      {
        char path[80];
        int64_t ids[] = { 1, 2, 6, 0, 5, 3 };
        TdVar *x = k == 0   ? td_rand (TD_F32, TD_SHAPE (2, 2, 5, 6))
                   : k == 1 ? td_tensor (TD_I64, TD_SHAPE (2, 3), ids)
                            : td_rand (TD_F32, TD_SHAPE (4, 1, 3)),
              *y;
        TdLink *link;

        snprintf (path, sizeof path, "tests/golden/onnx/%s.onnx", models[k]);
        link = td_onnx_load (td_test_source (path));
        y = td_link (link, x);
        assert_false (td_poisoned (y));
        assert_int_equal (td_link_to_device (link, remote), TD_OK);
        assert_same (y, td_link (link, td_to_device (x, remote)));
      }
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (link_copy__has_numbers_of_its_own_far_away),
    row (npz__carries_weights_from_there_to_here_and_back),
    row (lstm__lives_where_it_was_moved_before_it_knew_its_size),
    row (onnx__computes_there_what_it_computes_here),
    row (copied_link__goes_where_its_pattern_was_moved),
    row (debug__finds_the_operation_that_made_nan_far_away),
    row (gradient_check__works_where_its_inputs_lie),
    row (recording__has_the_same_statistics_and_values_far_away),
  };

  return cmocka_run_group_tests_name ("devices-links", tests, NULL, NULL);
}
