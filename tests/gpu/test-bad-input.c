/* What goes wrong with a GPU, as a user sees it: one line that says what, a status, a tape that
 * holds all up to the operation that failed; and an engine that goes on where CUDA lets it.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "far-test.h"
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const FakeCudaControl *driver;

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  return far_test_setup_engine (state);
}

/* --- in a program --- */

static void
operations__of_two_devices_are_refused_by_both_names (void **state)
{
  TdDevice *cuda = td_device_get ("cuda:0");
  TdVar *here = td_ones (TD_F32, TD_SHAPE (2, 2)), *there = td_to_device (here, cuda), *y;

  (void)state;
  y = td_add (here, there);
  assert_true (td_poisoned (y));
  {
    const char *text = far_test_error (TD_ERR_DEVICE);

    assert_contains (text, "cpu");
    assert_contains (text, "cuda:0");
    assert_contains (text, "test-bad-input.c:");
  }
  assert_true (td_poisoned (td_matmul (there, here, false, false)));
  assert_contains (far_test_error (TD_ERR_DEVICE), "cuda:0");
  assert_true (td_item (td_sum (td_add (there, there))) == 8);
}

static void
operations__of_two_gpus_are_refused (void **state)
{
  TdVar *a, *b;

  (void)state;
  a = td_to_device (td_ones (TD_F32, TD_SHAPE (2)), td_device_get ("cuda:0"));
  b = td_to_device (td_ones (TD_F32, TD_SHAPE (2)), td_device_get ("cuda:1"));
  assert_true (td_poisoned (td_add (a, b)));
  assert_contains (far_test_error (TD_ERR_DEVICE), "cuda:1");
}

/* The library is not there: our own kernels do it, and say so. */
static void
convolution__without_cudnn_is_our_own_kernel (void **state)
{
  TdDevice *cuda = td_device_get ("cuda:0");
  TdVar *x = td_randn (TD_F32, TD_SHAPE (2, 3, 6, 6)),
        *W = td_randn (TD_F32, TD_SHAPE (4, 3, 3, 3)), *y;
  float here[2 * 4 * 4 * 4], there[2 * 4 * 4 * 4];

  (void)state;
  td_read (td_convolution_2d (x, W, NULL), here, sizeof here);
  y = td_convolution_2d (td_to_device (x, cuda), td_to_device (W, cuda), NULL);
  assert_false (td_poisoned (y));
  assert_int_equal (td_read (y, there, sizeof there), TD_OK);
  for (int i = 0; i < 2 * 4 * 4 * 4; i++)
    if (!(there[i] - here[i] < 1e-4f && here[i] - there[i] < 1e-4f))
      fail_msg ("element %d is %g, %g on the CPU", i, (double)there[i], (double)here[i]);
}

static TdVar *
loss_of (TdLink *m, int64_t batch)
{
  TdVar *h = td_link (m, td_ones (TD_F32, TD_SHAPE (batch, 64)));

  return td_sum (td_mul (h, h));
}

/* Out of memory in the middle of a training, by the limit or on the device: the batch that does
 * not fit is refused, parameters and memory are what they were, and a smaller batch goes on. */
static void
assert_training_goes_on (bool simulated)
{
  TdLink *m;
  TdOpt *opt;
  TdMemInfo before;

  driver->state->total_bytes = (size_t)(simulated ? 4096 : 24) << 20;
  td_device_use (td_device_get ("cuda:0"));
  td_set_mem_limit (simulated ? (size_t)24 << 20 : 0);
  m = td_chain_new ("m");
  td_linear_new (m, "l", 64, 256);
  opt = td_adam_new (m);
  m = td_link_child (m, "l");
  for (int i = 0; i < 6; i++)
    {
      const bool large = i == 2 || i == 4;

      if (i == 2)
        before = td_mem_info (NULL);
      TD_ITERATION (i)
        {
          TdVar *loss = loss_of (m, large ? 60000 : 64);

          td_cleargrads (m);
          if (large)
            {
              assert_true (td_poisoned (loss));
              assert_int_equal (td_backward (loss, 0), TD_ERR_MEMORY);
              assert_int_equal (td_opt_update (opt), TD_ERR_MEMORY);
              assert_contains (far_test_error (TD_ERR_MEMORY), "out of memory on cuda:0: ");
            }
          else
            {
              assert_int_equal (td_backward (loss, 0), TD_OK);
              assert_int_equal (td_opt_update (opt), TD_OK);
            }
        }
    }
  /* Gradients are of the last iteration: those of iteration 1 were there before. */
  assert_int_equal (td_mem_info (NULL).live_bytes, before.live_bytes);
  assert_int_equal (td_mem_info (NULL).live_vars, before.live_vars);
  td_opt_free (opt);
}

static void
memory__that_runs_out_in_training_lets_a_smaller_batch_go_on (void **state)
{
  (void)state;
  assert_training_goes_on (true);
}

static void
memory__that_runs_out_in_earnest_lets_a_smaller_batch_go_on (void **state)
{
  (void)state;
  assert_training_goes_on (false);
}

/* --- under tapedeck run --- */

/* Record an example on a fake GPU of these settings.  *Owner*: td_test_child_clear. */
static TdTestChild
record (const char *settings, const char *device, const char *more)
{
  char command[9000];
  const char *mlp = td_test_program ("tests/engine/example-mlp");
  const char *tapedeck = td_test_program ("app/tapedeck");

  snprintf (
      command, sizeof command,
      "cd '%s' && TAPEDECK_DATA= TAPEDECK_CUDA_MODULE='%s' FAKE_CUDA='%s' '%s' run --quiet "
      "--device %s %s -f -o a.tdtape '%s'",
      td_test_tmp ("."), FAKE_CUDA_MODULE, settings, tapedeck, device, more, mlp);
  return TD_TEST_RUN ("sh", "-c", command);
}

/* What tapedeck says of the tape.  *Owner*: the caller. */
static char *
tape_says (const char *command)
{
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), command, td_test_tmp ("a.tdtape"));
  char *text = strdup (child.out);

  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return text;
}

static void
assert_refused (const char *settings, const char *device, const char *text)
{
  TdTestChild child = record (settings, device, "");
  assert_child_status (child, 2);
  assert_contains (child.err, text);
  /* One line, and that the program ended. */
  assert_string_equal (strchr (child.err, '\n'), "\ntapedeck: model exited with 2\n");
  td_test_child_clear (&child);
}

static void
run__says_in_one_line_why_there_is_no_such_gpu (void **state)
{
  (void)state;
  assert_refused ("init=100", "cuda:0", "no GPU for cuda:0: the driver finds no device");
  assert_refused ("version=12040", "cuda:0", "the driver is too old: it knows CUDA 12.4");
  assert_refused ("capability=61", "cuda:0", "this GPU is too old");
  assert_refused ("", "cuda:7", "no GPU cuda:7: there are 1, from cuda:0");
  assert_refused ("", "cuda:", "no GPU cuda:");
}

/* The failed operation is the tape's, what came before it too, and the tape is whole. */
static void
assert_tape_up_to (const char *message)
{
  char *text = tape_says ("cat");
  const char *failed = strstr (text, " FAILED : ");

  assert_contains (text, message);
  assert_non_null (failed);
  assert_contains (text, " forward linear mlp/l1");
  assert_contains (text, "end: status 1");
  free (text);
  text = tape_says ("check");
  free (text);
}

static void
run__leaves_a_tape_up_to_the_operation_without_memory (void **state)
{
  TdTestChild child = record ("megabytes=8", "cuda:0", "");

  (void)state;
  assert_child_status (child, 1);
  assert_contains (child.err, "out of memory on cuda:0: 3.14 MB wanted");
  assert_contains (child.err, "mlp.c:");
  td_test_child_clear (&child);
  assert_tape_up_to ("matmul: out of memory on cuda:0");
  child = record ("", "cuda:0", "--mem-limit 6M");
  assert_child_status (child, 1);
  td_test_child_clear (&child);
  assert_tape_up_to ("out of memory on cuda:0");
}

static void
run__leaves_a_tape_up_to_the_kernel_that_faults (void **state)
{
  TdTestChild child = record ("fault=150", "cuda:0", "");
  char *text;

  (void)state;
  assert_child_status (child, 1);
  assert_contains (child.err, "failed: CUDA_ERROR_ILLEGAL_ADDRESS");
  assert_contains (child.err, "td_finish and td_init");
  td_test_child_clear (&child);
  assert_tape_up_to ("CUDA_ERROR_ILLEGAL_ADDRESS");
  text = tape_says ("info");
  assert_contains (text, "cuda:0");
  free (text);
}

static int
count (const char *text, const char *what)
{
  int n = 0;

  for (const char *at = strstr (text, what); at != NULL; at = strstr (at + 1, what))
    n++;
  return n;
}

/* An iteration of an example, with the module's own kernels.  *Owner*: td_test_child_clear. */
static TdTestChild
record_example (const char *name, const char *device)
{
  char command[9000], program[100];
  const char *tapedeck = td_test_program ("app/tapedeck");

  snprintf (program, sizeof program, "tests/engine/example-%s", name);
  snprintf (command, sizeof command,
            "cd '%s' && TAPEDECK_DATA= TAPEDECK_CUDA_MODULE='%s' '%s' run --quiet --device %s "
            "--iterations 1 -f -o a.tdtape '%s'",
            td_test_tmp ("."), EMULATED_MODULE, tapedeck, device, td_test_program (program));
  return TD_TEST_RUN ("sh", "-c", command);
}

/* Once in the program's output and once on the tape, at the first operation that would have
 * used it; not where nothing would have. */
static void
run__says_once_that_cudnn_is_not_here (void **state)
{
  static const struct
  {
    const char *example, *device;
    int said;
  } rows[] = { { "lenet", "cuda:0", 1 }, { "mlp", "cuda:0", 0 }, { "lenet", "cpu", 0 } };
  static const char line[] = "no cuDNN: there is no libcudnn.so.9; convolutions, recurrent "
                             "layers and attention run as tapedeck's own kernels\n";

  (void)state;
  if (*EMULATED_MODULE == '\0')
    skip ();
  for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++)
    {
      TdTestChild child = record_example (rows[i].example, rows[i].device);
      char *text;

      assert_child_status (child, 0);
      assert_int_equal (count (child.err, "cuDNN"), rows[i].said);
      if (rows[i].said > 0)
        assert_contains (child.err, line);
      td_test_child_clear (&child);
      text = tape_says ("cat");
      assert_int_equal (count (text, "no cuDNN"), rows[i].said);
      if (rows[i].said > 0)
        {
          assert_contains (text, line);
          assert_contains (text, "notice text iteration 0 ");
          assert_contains (text, "lenet.c:15 no cuDNN: ");
        }
      free (text);
    }
}

/* A value that no number is: found at the operation that makes it, on the device too. */
static void
run__breaks_where_nan_comes_up_on_the_gpu (void **state)
{
  char command[9000];
  TdTestChild child;
  const char *tapedeck = td_test_program ("app/tapedeck");
  const char *nan = td_test_program ("tests/gpu/bare/bare-nan");
  static const char *const kinds[][2] = { { "0", "add" }, { "4", "sub" }, { "8", "mul" } };

  (void)state;
  for (int i = 0; i < 3; i++)
    {
      char text[80];

      snprintf (command, sizeof command,
                "TAPEDECK_CUDA_MODULE='%s' '%s' run --quiet --device cuda:0 --break nan -f -o "
                "'%s' '%s' %s",
                FAKE_CUDA_MODULE, tapedeck, td_test_tmp ("a.tdtape"), nan, kinds[i][0]);
      child = TD_TEST_RUN ("sh", "-c", command);
      assert_child_status (child, 3);
      snprintf (text, sizeof text, "%s made NaN (1 of its numbers)", kinds[i][1]);
      assert_contains (child.err, text);
      td_test_child_clear (&child);
    }
}

int
main (void)
{
  setenv ("FAKE_CUDA", "devices=2", 1); /* read once, when the module looks for devices */

#define row(f) cmocka_unit_test_setup_teardown (f, setup, far_test_teardown_engine)
  const struct CMUnitTest tests[] = {
    row (operations__of_two_devices_are_refused_by_both_names),
    row (operations__of_two_gpus_are_refused),
    row (convolution__without_cudnn_is_our_own_kernel),
    row (memory__that_runs_out_in_training_lets_a_smaller_batch_go_on),
    row (memory__that_runs_out_in_earnest_lets_a_smaller_batch_go_on),
    td_test (run__says_in_one_line_why_there_is_no_such_gpu),
    td_test (run__leaves_a_tape_up_to_the_operation_without_memory),
    td_test (run__leaves_a_tape_up_to_the_kernel_that_faults),
    td_test (run__says_once_that_cudnn_is_not_here),
    td_test (run__breaks_where_nan_comes_up_on_the_gpu),
  };

  return cmocka_run_group_tests_name ("bad-input", tests, NULL, NULL);
}
