/* Updates of many parameters: by few launches, of the same bits, in the order that the program
 * gave, and seen by whoever looks.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "far-test.h"
#include "fake-remote.h"
#include "td-test.h"

#include <stdio.h>
#include <string.h>

#include <cuda.h>

enum
{
  MANY = 160, /* as many as ResNet-50 has */
  STEPS = 4,
  MAX_SIZE = 40
};

/* Parameters of different sizes, and gradients that depend on the step. */
static void
net_new (TdLink *m, TdDtype dtype, TdVar **params)
{
  char name[16];

  td_set_seed (3);
  for (int i = 0; i < MANY; i++)
    {
      snprintf (name, sizeof name, "p%d", i);
      params[i] = td_link_add_param (m, name, TD_SHAPE (1 + i % MAX_SIZE), dtype,
                                     td_init_constant (0.5 + i % 7));
    }
}

static void
set_gradients (TdVar **params, int step)
{
  for (int i = 0; i < MANY; i++)
    {
      float slopes[MAX_SIZE];
      const int64_t n = td_size (params[i]);

      for (int64_t k = 0; k < n; k++)
        slopes[k] = (float)((i + 3 * k + step) % 11 - 5) / 8;
      td_set_grad (params[i], td_cast (td_tensor (TD_F32, TD_SHAPE (n), slopes),
                                       (TdDtype)params[i]->node->dtype));
    }
}

/* Train on a device; the parameters' bytes.  launches: those of an update's rule. */
static void
train (TdDevice *d, TdDtype dtype, bool mixed, unsigned char *bytes, long *launches)
{
  TdVar *params[MANY];
  TdLink *m;
  TdOpt *opt;

  td_device_use (d);
  m = td_chain_new ("many");
  net_new (m, dtype, params);
  opt = td_adam_new (m);
  td_opt_use_fp32_update (opt, mixed);
  TD_ITERATIONS (i, STEPS)
    {
      const long before = far_driver->state->n_updates;

      set_gradients (params, (int)i);
      assert_int_equal (td_opt_update (opt), TD_OK);
      *launches = far_driver->state->n_updates - before;
    }
  memset (bytes, 0, (size_t)MANY * MAX_SIZE * 4);
  for (int i = 0; i < MANY; i++)
    assert_int_equal (td_read (params[i], bytes + (size_t)i * MAX_SIZE * 4,
                               (size_t)td_size (params[i]) * td_dtype_bytes (dtype)),
                      TD_OK);
  td_opt_free (opt);
  td_link_free (m);
}

static void
expect_same (TdDtype dtype, bool mixed)
{
  static unsigned char here[MANY * MAX_SIZE * 4], there[MANY * MAX_SIZE * 4];
  long launches;

  train (td_device_get ("cpu"), dtype, mixed, here, &launches);
  assert_int_equal (launches, 0);
  train (far_device, dtype, mixed, there, &launches);
  assert_int_equal (launches, 2);
  assert_memory_equal (here, there, sizeof here);
}

static void
updates__of_160_parameters_are_two_launches (void **state)
{
  (void)state;
  expect_same (TD_F32, false);
}

/* The parameters follow their float32 copies when all of these have moved. */
static void
updates__of_float32_copies_are_two_launches (void **state)
{
  (void)state;
  expect_same (TD_BF16, true);
  expect_same (TD_F16, true);
}

/* --- the slot itself --- */

static TdTensor
tensor_of (TdVar *v)
{
  return (TdTensor){ v->buffer->data, &v->node->shape, td_size (v), (TdDtype)v->node->dtype };
}

static void
add (TdVar *p, TdVar *g, double lr)
{
  TdTensor of_p = tensor_of (p), of_g = tensor_of (g), *arrays[] = { &of_p, &of_g };
  const TdUpdate u = { .lr = lr };

  assert_int_equal (far_device->ops->update (far_device, TD_UPDATE_SGD, &u, arrays, 2), TD_OK);
}

static void
updates__wait_for_others_and_are_seen_by_who_reads (void **state)
{
  TdVar *p, *q, *g, *sum;
  const long *n = &far_driver->state->n_updates;

  (void)state;
  td_device_use (far_device);
  p = td_ones (TD_F32, TD_SHAPE (3));
  q = td_ones (TD_F32, TD_SHAPE (1)); /* a number: read without waiting for all */
  g = td_ones (TD_F32, TD_SHAPE (3));
  add (p, g, 0.5);
  add (q, td_ones (TD_F32, TD_SHAPE (1)), 0.25); /* sends the first: ones are made */
  assert_int_equal (*n, 1);
  assert_true (td_item (q) == 0.75);
  assert_int_equal (*n, 2);
  add (p, g, 0.5);
  assert_int_equal (*n, 2); /* it waits */
  sum = td_sum (p);
  assert_int_equal (*n, 3);
  assert_true (td_item (sum) == 0);
}

/* What one wrote another reads or writes, or the rule is another: one after the other. */
static void
updates__of_the_same_array_keep_their_order (void **state)
{
  TdVar *p, *g, *h;
  const long *n = &far_driver->state->n_updates;

  (void)state;
  td_device_use (far_device);
  p = td_ones (TD_F32, TD_SHAPE (3));
  g = td_ones (TD_F32, TD_SHAPE (3));
  h = td_ones (TD_F32, TD_SHAPE (3));
  td_device_synchronize (far_device);
  add (p, g, 0.5);
  add (p, g, 0.5); /* p again: 0 */
  assert_int_equal (*n, 1);
  add (g, p, 1); /* reads what the last one wrote: 1 - 0 */
  assert_int_equal (*n, 2);
  add (h, g, 1); /* 1 - 1 */
  assert_int_equal (*n, 3);
  add (p, g, 2); /* another rule: 0 - 2 */
  assert_int_equal (*n, 4);
  assert_true (td_item (td_sum (p)) == -6);
  assert_true (td_item (td_sum (h)) == 0);
  assert_true (td_item (td_sum (g)) == 3);
  assert_int_equal (*n, 5);
}

/* Memory that is given back and taken again is the next owner's after the update. */
static void
updates__are_sent_before_their_memory_is_another_s (void **state)
{
  TdVar *p, *q;

  (void)state;
  td_device_use (far_device);
  p = td_retain (td_ones (TD_F32, TD_SHAPE (3)));
  TD_SCOPE ("s")
    add (p, td_full (TD_F32, TD_SHAPE (3), 2), 0.5);
  q = td_full (TD_F32, TD_SHAPE (3), 100); /* where the gradient was */
  assert_true (td_item (td_sum (p)) == 0);
  assert_true (td_item (td_sum (q)) == 300);
  td_release (p);
}

static void
updates__of_what_is_no_number_are_refused_at_once (void **state)
{
  TdVar *p, *g;
  TdTensor of_p, of_g, *arrays[] = { &of_p, &of_g };
  const TdUpdate u = { .lr = 1 };

  (void)state;
  td_device_use (far_device);
  p = td_ones (TD_F32, TD_SHAPE (3));
  g = td_ones (TD_F32, TD_SHAPE (4));
  of_p = tensor_of (p);
  of_g = tensor_of (g);
  assert_int_equal (far_device->ops->update (far_device, TD_UPDATE_SGD, &u, arrays, 2),
                    TD_ERR_SHAPE);
  of_g.dtype = TD_I32;
  assert_int_equal (far_device->ops->update (far_device, TD_UPDATE_SGD, &u, arrays, 2),
                    TD_ERR_DTYPE);
  assert_int_equal (far_driver->state->n_updates, 0);
}

static void
fault__of_an_update_is_told_where_it_is_sent (void **state)
{
  TdVar *p, *g;

  (void)state;
  td_device_use (far_device);
  p = td_ones (TD_F32, TD_SHAPE (3));
  g = td_ones (TD_F32, TD_SHAPE (3));
  td_device_synchronize (far_device);
  add (p, g, 0.5);
  far_driver->fail_call ("cuLaunchKernel", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_true (td_poisoned (td_relu (p)));
  assert_contains (far_test_error (TD_ERR_DEVICE), "update");
  assert_int_equal (
      far_device->ops->update (far_device, TD_UPDATE_SGD, &(TdUpdate){ .lr = 1 }, NULL, 0),
      TD_ERR_DEVICE);
}

int
main (void)
{
#define row(f)                                                                                 \
  cmocka_unit_test_setup_teardown (f, far_test_setup_engine, far_test_teardown_engine)
  const struct CMUnitTest tests[] = {
    row (updates__of_160_parameters_are_two_launches),
    row (updates__of_float32_copies_are_two_launches),
    row (updates__wait_for_others_and_are_seen_by_who_reads),
    row (updates__of_the_same_array_keep_their_order),
    row (updates__are_sent_before_their_memory_is_another_s),
    row (updates__of_what_is_no_number_are_refused_at_once),
    row (fault__of_an_update_is_told_where_it_is_sent),
  };

  return cmocka_run_group_tests_name ("updates", tests, NULL, NULL);
}
