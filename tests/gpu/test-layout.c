/* Channels-last arrays on cuda:0: what turns them off, and that CUDA graphs launch nets of them
 * with the numbers of the CPU.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <tapedeck-op.h>

#include "far-test.h"
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum
{
  N_CALLS = 6,
  N_PARAMS = 6
};

/* Numbers of a fixed sequence, on this device. */
static TdVar *
some (TdDevice *d, TdShape shape, unsigned seed)
{
  float *host = malloc ((size_t)td_shape_size (&shape) * sizeof *host);
  TdVar *v;

  assert_non_null (host);
  for (int64_t i = 0; i < td_shape_size (&shape); i++)
    {
      seed = seed * 1103515245u + 12345u;
      host[i] = (float)(seed >> 16 & 1023) / 512 - 1;
    }
  assert_int_equal (td_device_use (d), TD_OK);
  v = td_tensor (TD_F32, shape, host);
  free (host);
  return v;
}

typedef struct
{
  TdVar *p[N_PARAMS];
} Net;

/* Two convolutions with normalisation and pooling between, and a classifier. */
static void
forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Net *n = self;
  TdVar *h = td_convolution_2d (in[0], n->p[0], n->p[1], .pad = { 1, 1 });

  h = td_relu (td_batch_normalization (h, n->p[2], n->p[3]));
  h = td_max_pooling_2d (h, .ksize = { 2, 2 });
  h = td_add (td_convolution_2d (h, n->p[4], NULL, .pad = { 1, 1 }), h);
  h = td_reshape (td_average_pooling_2d (h, .ksize = { 4, 4 }), TD_SHAPE (2, 8));
  out[0] = td_linear (h, n->p[5], NULL);
}

static void
train (TdDevice *d, bool is_static, double *losses)
{
  static const int64_t shapes[N_PARAMS][5]
      = { { 4, 8, 3, 3, 3 }, { 1, 8 }, { 1, 8 }, { 1, 8 }, { 4, 8, 8, 3, 3 }, { 2, 5, 8 } };
  Net n;
  TdStatic *s = td_static_new (forward, &n);

  for (int i = 0; i < N_PARAMS; i++)
    {
      TdShape shape = { .ndim = (int)shapes[i][0] };

      for (int k = 0; k < shape.ndim; k++)
        shape.dim[k] = shapes[i][1 + k];
      n.p[i] = td_retain (td_variable (some (d, shape, 3 + (unsigned)i), "p"));
    }
  for (int call = 0; call < N_CALLS; call++)
    {
      TdScope *scope = td_scope_open ("call");
      TdVar *x = some (d, TD_SHAPE (2, 3, 8, 8), 50 + (unsigned)call), *y, *loss;

      if (is_static)
        assert_int_equal (td_static_call (s, &x, 1, &y, 1), TD_OK);
      else
        forward (&n, &x, 1, &y, 1);
      loss = td_mean (td_square (y));
      assert_int_equal (td_backward (loss, 0), TD_OK);
      *losses++ = td_item (loss);
      for (int i = 0; i < N_PARAMS; i++)
        {
          *losses++ = td_item (td_sum (td_square (td_grad (n.p[i]))));
          assert_int_equal (td_layout (td_grad (n.p[i])), TD_ROW_MAJOR);
          td_cleargrad (n.p[i]);
        }
      td_scope_close (scope);
    }
  td_static_free (s);
  for (int i = 0; i < N_PARAMS; i++)
    td_release (n.p[i]);
}

static void
layout__in_cuda_graphs_gives_the_cpus_losses_and_gradients (void **state)
{
  static double cpu[N_CALLS][1 + N_PARAMS], gpu[N_CALLS][1 + N_PARAMS],
      graphs[N_CALLS][1 + N_PARAMS];
  TdDevice *cuda = td_device_get ("cuda:0");

  assert_non_null (cuda);
  train (td_device_get ("cpu"), false, cpu[0]);
  train (cuda, false, gpu[0]);
  train (cuda, true, graphs[0]);
  assert_true (far_cuda_driver ()->state->n_graph_launches > 0);
  for (int i = 0; i < N_CALLS; i++)
    for (int k = 0; k <= N_PARAMS; k++)
      {
        assert_true (fabs (gpu[i][k] - cpu[i][k]) <= 1e-4 * (1e-3 + fabs (cpu[i][k])));
        assert_true (fabs (graphs[i][k] - gpu[i][k]) <= 1e-6 * (1e-3 + fabs (gpu[i][k])));
      }
}

static TdLayout
layout_of_a_convolution (void)
{
  TdDevice *d = td_device_get ("cuda:0");
  TdVar *x = some (d, TD_SHAPE (2, 3, 8, 8), 1), *W = some (d, TD_SHAPE (4, 3, 3, 3), 2);

  return td_layout (td_convolution_2d (x, W, NULL));
}

static void
layout__of_convolutions_is_the_configurations (void **state)
{
  TdLayout off = TD_CHANNELS_LAST;

  assert_int_equal (layout_of_a_convolution (), TD_CHANNELS_LAST);
  TD_USING (channels_last, 0)
    {
      off = layout_of_a_convolution ();
    }
  assert_int_equal (off, TD_ROW_MAJOR);
}

static int
setup_row_major (void **state)
{
  setenv ("TAPEDECK_CUDA_LAYOUT", "row_major", 1);
  return far_test_setup_engine (state);
}

static int
teardown_row_major (void **state)
{
  unsetenv ("TAPEDECK_CUDA_LAYOUT");
  return far_test_teardown_engine (state);
}

static void
layout__is_row_major_where_the_environment_says_so (void **state)
{
  assert_int_equal (layout_of_a_convolution (), TD_ROW_MAJOR);
}

/* A tape says which arrays are channels-last; to_layout is a row like any other. */
static void
layout__is_on_the_tape (void **state)
{
  TdTestChild cat;

  setenv ("TAPEDECK_TAPE", td_test_tmp ("a.tdtape"), 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  unsetenv ("TAPEDECK_TAPE");
  TD_ITERATION (0)
    {
      layout_of_a_convolution ();
    }
  td_finish ();
  cat = TD_TEST_RUN (td_test_program ("app/tapedeck"), "cat", td_test_tmp ("a.tdtape"));
  assert_child_status (cat, 0);
  assert_contains (cat.out, "to_layout");
  assert_contains (cat.out, "(2, 4, 6, 6):channels-last");
  assert_contains (cat.out, "(2, 3, 8, 8)");
  td_test_child_clear (&cat);
  cat = TD_TEST_RUN (td_test_program ("app/tapedeck"), "cat", "--json",
                     td_test_tmp ("a.tdtape"));
  assert_contains (cat.out, "\"shape\":[2,4,6,6],\"layout\":\"channels_last\"");
  td_test_child_clear (&cat);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (layout__in_cuda_graphs_gives_the_cpus_losses_and_gradients,
                                     far_test_setup_engine, far_test_teardown_engine),
    cmocka_unit_test_setup_teardown (layout__of_convolutions_is_the_configurations,
                                     far_test_setup_engine, far_test_teardown_engine),
    cmocka_unit_test_setup_teardown (layout__is_row_major_where_the_environment_says_so,
                                     setup_row_major, teardown_row_major),
    cmocka_unit_test_setup_teardown (layout__is_on_the_tape, far_test_setup, far_test_teardown),
  };

  return cmocka_run_group_tests_name ("layout", tests, NULL, NULL);
}
