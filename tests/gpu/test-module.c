/* The CUDA module with a device behind it: why there is none, waiting, memory, faults.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "dtype.h"
#include "far-test.h"
#include "kernels.h"
#include "fake-remote.h"
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>

#include <cuda.h>

static const FakeCudaControl *driver;
static const char *self;

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  /* Tests open the device themselves: what it is like is theirs to say first. */
  return far_test_setup (state) == 0 ? (int)td_init (NULL, NULL) : -1;
}

/* --- why there is no GPU --- */

/* What a process of its own says of its devices, with this module and this driver. */
static void
assert_backends (const char *module, const char *settings, const char *text)
{
  TdTestChild child;

  setenv ("TAPEDECK_CUDA_MODULE", module, 1);
  setenv ("FAKE_CUDA", settings, 1);
  child = TD_TEST_RUN (self, "--backends");
  setenv ("TAPEDECK_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
  unsetenv ("FAKE_CUDA");
  assert_int_equal (child.status, 0);
  assert_string_equal (child.err, "");
  assert_contains (child.out, text);
  td_test_child_clear (&child);
}

static void
backends__name_the_gpu_and_what_it_is_reached_through (void **state)
{
  assert_backends (FAKE_CUDA_MODULE, "",
                   "cpu, null, cuda:0 (Fake H200, 4.3 GB, driver for CUDA 13");
  assert_backends (FAKE_CUDA_MODULE, "", "cuBLASLt 13.1.0, no cuDNN, no NCCL)");
  assert_backends (FAKE_CUDA_MODULE, "devices=2", ", cuda:1 (Fake H200");
}

/* As many as the engine has room for; of more it is said that they are not used. */
static void
backends__leave_no_gpu_out_without_a_word (void **state)
{
  TdTestChild child;
  char last[40], too_many[40];

  snprintf (last, sizeof last, ", cuda:%d (Fake H200", TD_MAX_DEVICES - 1);
  snprintf (too_many, sizeof too_many, "devices=%d", TD_MAX_DEVICES);
  assert_backends (FAKE_CUDA_MODULE, too_many, last);
  snprintf (too_many, sizeof too_many, "devices=%d", TD_MAX_DEVICES + 1);
  setenv ("FAKE_CUDA", too_many, 1);
  child = TD_TEST_RUN (self, "--backends");
  unsetenv ("FAKE_CUDA");
  assert_int_equal (child.status, 0);
  assert_contains (child.err,
                   "the driver finds 17 devices; those from cuda:16 on are not used");
  assert_contains (child.out, last);
  assert_null (strstr (child.out, "cuda:16"));
  td_test_child_clear (&child);
}

/* The module has a table of its own, as it sees no more of the engine than headers. */
static void
bytes_of__are_the_engines (void **state)
{
  assert_int_equal (TD_N_DTYPES, TD__N_DTYPES);
  for (int i = 0; i < TD_N_DTYPES; i++)
    assert_int_equal (td__bytes_of ((TdDtype)i), td__dtype_sizes[i]);
}

static void
backends__say_why_there_is_no_gpu (void **state)
{
  assert_backends (FAKE_CUDA_MODULE, "init=100",
                   "cpu, null; no GPU: the driver finds no device");
  assert_backends (FAKE_CUDA_MODULE, "devices=0", "no GPU: the driver finds no device");
  assert_backends (FAKE_CUDA_MODULE, "init=34",
                   "no GPU: the driver does not start: CUDA_ERROR_STUB_LIBRARY (34)");
  assert_backends (FAKE_CUDA_MODULE, "version=12080",
                   "no GPU: the driver is too old: it knows CUDA 12.8, 13.0 is needed");
  assert_backends ("no-such-file.so", "", "no GPU: no-such-file.so: cannot open");
}

static void
backends__refuse_a_module_of_another_build (void **state)
{
  assert_backends (WRONG_MODULE, "", "was built for another engine");
}

static void
device__of_no_such_number_is_an_error (void **state)
{
  assert_null (td_device_get ("cuda:1"));
  assert_contains (far_test_error (TD_ERR_DEVICE), "no GPU cuda:1: there are 1, from cuda:0");
  assert_null (td_device_get ("cuda:x"));
  assert_contains (far_test_error (TD_ERR_DEVICE), "no GPU cuda:x");
}

static void
device__that_is_too_old_is_refused (void **state)
{
  char text[120];

  snprintf (text, sizeof text, "its compute capability is %d.%d, and the kernels of this build",
            (TD_CUDA_ARCH - 1) / 10, (TD_CUDA_ARCH - 1) % 10);
  driver->state->capability = TD_CUDA_ARCH - 1;
  assert_null (td_device_get ("cuda:0"));
  assert_contains (far_test_error (TD_ERR_DEVICE), text);
  driver->state->capability = TD_CUDA_ARCH;
  assert_non_null (td_device_get ("cuda:0"));
}

static void
device__has_a_slot_for_everything_and_waits_in_none_for_the_cpu (void **state)
{
  const TdDevice *cuda = td_device_get ("cuda:0");
  const char *allocator = getenv ("TAPEDECK_CUDA_ALLOCATOR");

  assert_int_equal (cuda->ops->abi, TD_DEVICE_ABI);
  assert_string_equal (cuda->ops->provider->name, allocator != NULL ? allocator : "cuda_vmm");
  assert_string_equal (td_device_name (cuda), "cuda:0");
}

/* --- waiting --- */

static TdLink *
mlp_new (void)
{
  TdLink *m = td_sequential_new ("mlp");

  td_linear_new (m, "l1", 20, 30);
  td_batch_normalization_new (m, "bn", 30);
  td_sequential_append (m, td_relu);
  td_linear_new (m, "l2", 30, 5);
  return m;
}

/* Iterations with labels, gradient clipping, Adam; the loss is read or not. */
static long
waits_of_training (bool reads)
{
  static const int32_t labels[8] = { 0, 1, 2, 3, 4, 0, 1, 2 };
  float images[160];
  TdLink *m;
  TdOpt *opt;
  long before = 0;

  td_device_use (td_device_get ("cuda:0"));
  for (int i = 0; i < 160; i++)
    images[i] = (float)(i % 13) / 13;
  m = mlp_new ();
  opt = td_adam_new (m);
  td_opt_add_hook (opt, td_gradient_clipping_new (1.0));
  TD_ITERATIONS (i, 12)
    {
      TdVar *x = td_tensor (TD_F32, TD_SHAPE (8, 20), images);
      TdVar *t = td_tensor (TD_I32, TD_SHAPE (8), labels);
      TdVar *loss = td_softmax_cross_entropy (td_link (m, x), t);

      if (i == 2) /* the first may read what they set up */
        before = driver->state->n_waits;
      td_cleargrads (m);
      assert_int_equal (td_backward (loss, 0), TD_OK);
      assert_int_equal (td_opt_update (opt), TD_OK);
      if (reads)
        assert_true (td_item (loss) > 0);
    }
  before = driver->state->n_waits - before;
  td_opt_free (opt);
  td_link_free (m);
  return before;
}

static void
training__waits_only_for_what_the_host_reads (void **state)
{
  assert_int_equal (waits_of_training (false), 0);
  assert_true (driver->state->n_launches > 100);
  assert_int_equal (waits_of_training (true), 10);
}

static void
reads__wait_once_each (void **state)
{
  TdVar *x;
  long before;
  float values[6];

  td_device_use (td_device_get ("cuda:0"));
  x = td_mul (td_ones (TD_F32, TD_SHAPE (6)), td_ones (TD_F32, TD_SHAPE (6)));
  before = driver->state->n_waits;
  x = td_add (x, x);
  x = td_exp (x);
  assert_int_equal (driver->state->n_waits, before);
  assert_int_equal (td_read (x, values, sizeof values), TD_OK);
  assert_int_equal (driver->state->n_waits, before + 1);
  assert_true (values[5] > 7.38f && values[5] < 7.4f);
}

/* Labels that the host has sent are checked there; those made on the device need an answer. */
/* Uploads of more than all pinned memory, and downloads in pieces, arrive whole. */
static void
copies__larger_than_the_pinned_memory_arrive_whole (void **state)
{
  enum
  {
    N = (9 << 20) + 77
  };
  TdDevice *d = td_device_get ("cuda:0");
  TdVar *here = td_arange (TD_F32, 0, N, 1), *there = td_to_device (here, d);
  float *values = malloc (N * sizeof *values);

  assert_int_equal (td_read (td_add (there, there), values, N * sizeof *values), TD_OK);
  for (int i = 0; i < N; i++)
    if (values[i] != 2 * (float)i)
      fail_msg ("element %d is %g", i, (double)values[i]);
  free (values);
  assert_true (driver->state->n_copies[1] >= 9);
}

static void
labels__are_checked_without_waiting (void **state)
{
  static const int32_t good[3] = { 0, 2, 1 }, bad[3] = { 0, 3, 1 };
  TdVar *x, *t;
  long before;

  td_device_use (td_device_get ("cuda:0"));
  x = td_ones (TD_F32, TD_SHAPE (3, 3));
  t = td_tensor (TD_I32, TD_SHAPE (3), good);
  before = driver->state->n_waits;
  assert_false (td_poisoned (td_softmax_cross_entropy (x, t)));
  assert_int_equal (driver->state->n_waits, before);
  assert_true (
      td_poisoned (td_softmax_cross_entropy (x, td_tensor (TD_I32, TD_SHAPE (3), bad))));
  assert_contains (far_test_error (TD_ERR_ARG), "got 3 at element 1");
  assert_int_equal (driver->state->n_waits, before);
  /* Overwritten on the device, what the host sent says nothing. */
  t = td_mul_scalar (td_cast (t, TD_F32), 2);
  t = td_softmax_cross_entropy (x, td_cast (t, TD_I32));
  assert_int_equal (driver->state->n_waits, before);
  td_item (t);
  assert_contains (far_test_error (TD_ERR_ARG), "got 4 at element 1");
}

/* --- products --- */

/* All four transpositions, batches, accumulation: bit for bit the CPU's, by the library. */
static void
gemm__is_the_librarys_and_the_cpus_numbers (void **state)
{
  TdDevice *cuda = td_device_get ("cuda:0"), *cpu = td_device_get ("cpu");
  float here[40], there[40];

  for (int ta = 0; ta < 2; ta++)
    for (int tb = 0; tb < 2; tb++)
      {
        TdVar *a = td_randn (TD_F32, ta ? TD_SHAPE (3, 5) : TD_SHAPE (5, 3)),
              *b = td_randn (TD_F32, tb ? TD_SHAPE (8, 3) : TD_SHAPE (3, 8));
        long before = driver->state->n_products;

        assert_ptr_equal (td_device (a), cpu);
        assert_int_equal (td_read (td_matmul (a, b, ta, tb), here, sizeof here), TD_OK);
        assert_int_equal (
            td_read (td_matmul (td_to_device (a, cuda), td_to_device (b, cuda), ta, tb), there,
                     sizeof there),
            TD_OK);
        assert_memory_equal (here, there, sizeof here);
        assert_int_equal (driver->state->n_products, before + 1);
        assert_string_equal (cuda->algorithm, "cublasLt");
      }
}

static void
gemm__uses_tf32_only_when_told (void **state)
{
  TdVar *a;

  td_device_use (td_device_get ("cuda:0"));
  a = td_ones (TD_F32, TD_SHAPE (4, 4));
  td_matmul (a, a, false, false);
  assert_string_equal (td_device_get ("cuda:0")->algorithm, "cublasLt");
  TD_USING (tf32, 1)
    td_matmul (a, a, false, false);
  assert_string_equal (td_device_get ("cuda:0")->algorithm, "cublasLt tf32");
}

/* One launch, of every type that the library multiplies. */
static void
gemm__adds_the_bias_of_a_layer_at_its_end (void **state)
{
  static const TdDtype types[] = { TD_F32, TD_F64, TD_BF16 };
  TdDevice *cuda = td_device_get ("cuda:0");
  TdVar *x = td_randn (TD_F32, TD_SHAPE (5, 3)), *W = td_randn (TD_F32, TD_SHAPE (8, 3)),
        *b = td_randn (TD_F32, TD_SHAPE (8));
  float here[40], there[40];

  assert_int_equal (td_read (td_linear (x, W, b), here, sizeof here), TD_OK);
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    {
      TdVar *far[] = { td_cast (td_to_device (x, cuda), types[i]),
                       td_cast (td_to_device (W, cuda), types[i]),
                       td_cast (td_to_device (b, cuda), types[i]) };
      const long launches = driver->state->n_launches, products = driver->state->n_products;
      TdVar *y = td_linear (far[0], far[1], far[2]);

      assert_int_equal (driver->state->n_launches - launches, 1);
      assert_int_equal (driver->state->n_products - products, 1);
      assert_int_equal (td_read (td_cast (y, TD_F32), there, sizeof there), TD_OK);
      for (int k = 0; k < 40; k++)
        assert_true (fabsf (here[k] - there[k]) <= (types[i] == TD_BF16 ? 0.05f : 1e-6f));
    }
}

static void
gemm__tells_of_a_library_that_does_not_start (void **state)
{
  TdVar *a;

  td_device_use (td_device_get ("cuda:0"));
  a = td_ones (TD_F32, TD_SHAPE (4, 4));
  driver->fail_call ("cublasLtCreate", 1, CUDA_ERROR_UNKNOWN);
  assert_true (td_poisoned (td_matmul (a, a, false, false)));
  assert_contains (far_test_error (TD_ERR_DEVICE), "cublasLtCreate failed: CUBLAS_STATUS_");
  assert_false (td_poisoned (td_matmul (a, a, false, false)));
}

/* --- memory --- */

static void
memory__comes_from_the_provider_that_works (void **state)
{
  TdDevice *d;

  driver->state->no_vmm = true;
  d = td_device_get ("cuda:0");
  assert_string_equal (d->ops->provider->name, "cuda_malloc");
  assert_true (td_item (td_sum (td_to_device (td_ones (TD_F32, TD_SHAPE (1000)), d))) == 1000);
  assert_null (td__pool_check (d->pool));
}

static void
memory__comes_in_small_pages_where_large_ones_are_advised (void **state)
{
  TdDevice *d;

  driver->state->advised = (size_t)32 << 20;
  d = td_device_get ("cuda:0");
  assert_true (td_item (td_sum (td_to_device (td_ones (TD_F32, TD_SHAPE (9)), d))) == 9);
}

/* Addresses are given out, and no pages for them. */
static void
memory__comes_in_whole_segments_where_pages_cannot_be_mapped (void **state)
{
  static const char *const calls[] = { "cuMemCreate", "cuMemMap", "cuMemSetAccess" };

  for (int i = 0; i < TD_ARRAY_LENGTH (calls); i++)
    {
      TdDevice *d;

      driver->fail_call (calls[i], 1, CUDA_ERROR_NOT_SUPPORTED);
      d = td_device_get ("cuda:0");
      assert_string_equal (d->ops->provider->name, "cuda_malloc");
      assert_true (td_item (td_sum (td_to_device (td_ones (TD_F32, TD_SHAPE (9)), d))) == 9);
      assert_int_equal (td_finish (), TD_OK);
      assert_int_equal (driver->state->used_bytes, 0);
      driver->reset ();
      assert_int_equal (td_init (NULL, NULL), TD_OK);
    }
}

static void
memory__of_others_is_told_apart (void **state)
{
  TdDevice *d = td_device_get ("cuda:0");
  TdMemInfo info;

  driver->state->outside_bytes = (size_t)300 << 20;
  td_to_device (td_ones (TD_F32, TD_SHAPE (1000)), d);
  info = td_mem_info (d);
  assert_int_equal (info.device_bytes, driver->state->total_bytes);
  assert_int_equal (info.outside_bytes, (size_t)300 << 20);
  assert_int_equal (info.reserved_bytes, driver->state->used_bytes);
}

/* Fill the device, ask for too much.  Returns what was said. */
static const char *
out_of_memory (size_t limit, size_t total)
{
  static char text[1024];
  TdDevice *d;
  TdVar *x[3];

  td_finish ();
  driver->reset ();
  driver->state->total_bytes = total;
  td_init (NULL, NULL);
  td_set_mem_limit (limit);
  d = td_device_get ("cuda:0");
  td_device_use (d);
  for (int i = 0; i < 3; i++)
    x[i] = td_zeros (TD_F32, TD_SHAPE (1 << 20));
  td_variable (x[0], "w");
  assert_true (td_poisoned (td_zeros (TD_F32, TD_SHAPE (8 << 20))));
  snprintf (text, sizeof text, "%s", far_test_error (TD_ERR_MEMORY));
  /* The engine goes on: what is there can be used, what fits can be had. */
  assert_true (td_item (td_sum (td_add (x[0], x[1]))) == 0);
  assert_null (td__pool_check (d->pool));
  return text;
}

static void
memory__runs_out_alike_by_the_limit_and_on_the_device (void **state)
{
  char simulated[1024];

  snprintf (simulated, sizeof simulated, "%s",
            out_of_memory ((size_t)24 << 20, (size_t)4 << 30));
  assert_contains (simulated, "out of memory on cuda:0: 33.6 MB wanted, 12.6 MB live");
  {
    const char *real = out_of_memory (0, (size_t)32 << 20);
    const char *end = strstr (simulated, ", largest free");

    assert_non_null (end);
    assert_memory_equal (simulated, real, (size_t)(end - simulated));
    assert_contains (simulated, "; limit 25.2 MB; ");
    assert_contains (real, "; the device has 33.6 MB, 0 B of it in use by others; ");
    assert_contains (real, " reserved");
  }
}

/* The same program under the same limit, here and on the CPU: only the device's name differs.
 */
static void
memory__that_runs_out_is_told_of_as_on_the_cpu (void **state)
{
  static const char *const names[] = { "cpu", "cuda:0" };
  const char *allocator = getenv ("TAPEDECK_CUDA_ALLOCATOR");
  char texts[2][1024], before[40];

  snprintf (before, sizeof before, "%s", allocator != NULL ? allocator : "cuda_vmm");
  setenv ("TAPEDECK_CUDA_ALLOCATOR", "cuda_malloc", 1);
  for (int i = 0; i < 2; i++)
    {
      const char *text, *on;
      TdVar *w;

      td_finish ();
      driver->reset ();
      td_init (NULL, NULL);
      td_set_mem_limit ((size_t)24 << 20);
      td_device_use (td_device_get (names[i]));
      w = td_variable (td_zeros (TD_F32, TD_SHAPE (1 << 20)), "w");
      for (int k = 0; k < 2; k++)
        td_mul (w, w);
      assert_true (
          td_poisoned (td_matmul (td_reshape (w, TD_SHAPE (1024, 1024)),
                                  td_zeros (TD_F32, TD_SHAPE (1024, 2048)), false, false)));
      text = far_test_error (TD_ERR_MEMORY);
      assert_contains (text, "; limit 25.2 MB; ");
      assert_contains (text, " reserved");
      assert_contains (text, "; held most by 8.39 MB in 2 times activation (");
      assert_contains (text, ", 4.19 MB w (");
      on = strstr (text, names[i]);
      assert_non_null (on);
      snprintf (texts[i], sizeof texts[i], "%.*s*%s", (int)(on - text), text,
                on + strlen (names[i]));
    }
  setenv ("TAPEDECK_CUDA_ALLOCATOR", before, 1);
  assert_string_equal (texts[0], texts[1]);
}

static void
memory__given_back_is_the_devices_again (void **state)
{
  TdDevice *d = td_device_get ("cuda:0");

  TD_SCOPE ("large")
    {
      td_to_device (td_zeros (TD_F32, TD_SHAPE (4 << 20)), d);
      assert_true (driver->state->used_bytes >= (size_t)16 << 20);
    }
  assert_true (td_pool_trim (d) >= (size_t)16 << 20);
  assert_int_equal (driver->state->used_bytes, 0);
}

static void
memory__refused_in_the_middle_leaves_the_pool_whole (void **state)
{
  static const char *const calls[][4]
      = { { "cuMemAlloc" }, { "cuMemCreate", "cuMemMap", "cuMemSetAccess" } };
  TdDevice *d = td_device_get ("cuda:0");
  const bool maps = strcmp (d->ops->provider->name, "cuda_vmm") == 0;

  for (int i = 0; calls[maps][i] != NULL; i++)
    {
      driver->fail_call (calls[maps][i], 1, CUDA_ERROR_OUT_OF_MEMORY);
      assert_true (td_poisoned (td_to_device (td_ones (TD_F32, TD_SHAPE (64 << 10)), d)));
      far_test_error (TD_ERR_MEMORY);
      assert_int_equal (driver->state->used_bytes, 0);
      assert_null (td__pool_check (d->pool));
    }
  assert_false (td_poisoned (td_to_device (td_ones (TD_F32, TD_SHAPE (64 << 10)), d)));
}

/* --- faults --- */

static void
fault__names_the_kernel_and_a_new_start_heals_it (void **state)
{
  const char *text;
  float values[4];
  TdVar *x;

  td_device_use (td_device_get ("cuda:0"));
  x = td_ones (TD_F32, TD_SHAPE (4));
  driver->fail_call ("cuLaunchKernel", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_true (td_poisoned (td_exp (x)));
  text = far_test_error (TD_ERR_DEVICE);
  assert_contains (text, "unary failed: CUDA_ERROR_ILLEGAL_ADDRESS");
  assert_contains (text, "td_finish and td_init");
  assert_int_equal (td_read (x, values, sizeof values), TD_ERR_DEVICE);
  td_error_clear ();
  assert_int_equal (td_finish (), 0);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  td_device_use (td_device_get ("cuda:0"));
  assert_true (td_item (td_sum (td_ones (TD_F32, TD_SHAPE (4)))) == 4);
}

static void
fault__seen_only_when_waiting_is_told_there (void **state)
{
  TdVar *x;
  float values[4];

  td_device_use (td_device_get ("cuda:0"));
  x = td_exp (td_ones (TD_F32, TD_SHAPE (4)));
  driver->fail_call ("cuEventSynchronize", 1, CUDA_ERROR_LAUNCH_FAILED);
  assert_int_equal (td_read (x, values, sizeof values), TD_ERR_DEVICE);
  assert_contains (far_test_error (TD_ERR_DEVICE), "a copy failed: CUDA_ERROR_LAUNCH_FAILED");
}

int
main (int argc, char **argv)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, far_test_teardown_engine)
  const struct CMUnitTest tests[] = {
    row (backends__name_the_gpu_and_what_it_is_reached_through),
    row (backends__leave_no_gpu_out_without_a_word),
    row (bytes_of__are_the_engines),
    row (backends__say_why_there_is_no_gpu),
    row (backends__refuse_a_module_of_another_build),
    row (device__of_no_such_number_is_an_error),
    row (device__that_is_too_old_is_refused),
    row (device__has_a_slot_for_everything_and_waits_in_none_for_the_cpu),
    row (training__waits_only_for_what_the_host_reads),
    row (reads__wait_once_each),
    row (copies__larger_than_the_pinned_memory_arrive_whole),
    row (labels__are_checked_without_waiting),
    row (gemm__is_the_librarys_and_the_cpus_numbers),
    row (gemm__uses_tf32_only_when_told),
    row (gemm__adds_the_bias_of_a_layer_at_its_end),
    row (gemm__tells_of_a_library_that_does_not_start),
    row (memory__comes_from_the_provider_that_works),
    row (memory__comes_in_small_pages_where_large_ones_are_advised),
    row (memory__comes_in_whole_segments_where_pages_cannot_be_mapped),
    row (memory__of_others_is_told_apart),
    row (memory__runs_out_alike_by_the_limit_and_on_the_device),
    row (memory__that_runs_out_is_told_of_as_on_the_cpu),
    row (memory__given_back_is_the_devices_again),
    row (memory__refused_in_the_middle_leaves_the_pool_whole),
    row (fault__names_the_kernel_and_a_new_start_heals_it),
    row (fault__seen_only_when_waiting_is_told_there),
  };

  if (argc > 1 && strcmp (argv[1], "--backends") == 0)
    return puts (td_device_backends ()) < 0;
  self = argv[0];
  return cmocka_run_group_tests_name ("module", tests, NULL, NULL);
}
