/* Channels-last arrays: what programs see is logical, whatever the order in memory; nets give
 * what they give row-major, in every order of derivative, dynamic and as schedules.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include "compute/core/core.h"
#include "fake-remote.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static TdDevice *device;

/* On a device that the host cannot look into, which wants images channels-last. */
static int
setup (void **state)
{
  if (td_init (NULL, NULL) != TD_OK)
    return -1;
  device = fake_remote_start ();
  if (device == NULL)
    return -1;
  device->channels_last = true;
  td__engine.device = device;
  td_set_seed (1);
  return 0;
}

static int
teardown (void **state)
{
  return td_finish ();
}

static TdVar *
some_of (TdShape shape, unsigned seed)
{
  TdVar *v = td_zeros (TD_F32, shape);

  fill (v, seed);
  return v;
}

static TdVar *
last (TdVar *v)
{
  return td__to_layout (v, TD_CHANNELS_LAST, NULL);
}

static float *
read_all (TdVar *v)
{
  float *host = calloc ((size_t)td_size (v) + 1, sizeof *host);

  assert_non_null (host);
  assert_int_equal (td_read (v, host, (size_t)td_size (v) * sizeof *host), TD_OK);
  return host;
}

/* The elements as they lie. */
static float *
memory_of (TdVar *v)
{
  float *host = calloc ((size_t)td_size (v) + 1, sizeof *host);

  assert_non_null (host);
  assert_int_equal (device->ops->download (device, host, v->buffer->data, v->buffer->bytes),
                    TD_OK);
  return host;
}

static void
assert_equal_arrays (TdVar *a, TdVar *b, double tolerance)
{
  const TdShape x = td_shape (a), y = td_shape (b);
  float *p = read_all (a), *q = read_all (b);

  assert_true (td_shape_equal (&x, &y));
  for (int64_t i = 0; i < td_size (a); i++)
    if (fabs ((double)(p[i] - q[i])) > tolerance * (1 + fabs ((double)q[i])))
      fail_msg ("element %d: %g and %g", (int)i, (double)p[i], (double)q[i]);
  free (p);
  free (q);
}

/* --- arrays --- */

static void
layout__moves_elements_in_memory_and_not_for_the_reader (void **state)
{
  TdVar *x = some_of (TD_SHAPE (2, 3, 4, 5), 1), *y = last (x);
  float *logical = read_all (y), *memory = memory_of (y);

  assert_int_equal (td_layout (x), TD_ROW_MAJOR);
  assert_int_equal (td_layout (y), TD_CHANNELS_LAST);
  assert_equal_arrays (y, x, 0);
  for (int n = 0; n < 2; n++)
    for (int c = 0; c < 3; c++)
      for (int p = 0; p < 20; p++)
        assert_true (memory[(n * 20 + p) * 3 + c] == logical[(n * 3 + c) * 20 + p]);
  assert_equal_arrays (td__to_layout (y, TD_ROW_MAJOR, NULL), x, 0);
  free (logical);
  free (memory);
}

static void
layout__of_three_and_five_axes_moves_the_channels_too (void **state)
{
  TdVar *x = some_of (TD_SHAPE (2, 3, 4), 1), *y = some_of (TD_SHAPE (2, 3, 2, 2, 3), 2);

  assert_int_equal (td_layout (last (x)), TD_CHANNELS_LAST);
  assert_equal_arrays (last (x), x, 0);
  assert_int_equal (td_layout (last (y)), TD_CHANNELS_LAST);
  assert_equal_arrays (td__to_layout (last (y), TD_ROW_MAJOR, NULL), y, 0);
}

static void
layout__that_fits_both_is_row_major_and_costs_nothing (void **state)
{
  TdVar *x = some_of (TD_SHAPE (4, 1, 5, 5), 1), *y = some_of (TD_SHAPE (4, 5, 1, 1), 1);
  TdVar *z = some_of (TD_SHAPE (4, 5), 1);

  assert_ptr_equal (last (x), x);
  assert_ptr_equal (last (y), y);
  assert_ptr_equal (last (z), z);
}

static void
layout__takes_what_the_host_writes_in_logical_order (void **state)
{
  TdVar *x = some_of (TD_SHAPE (2, 3, 4, 5), 1), *y = last (td_zeros (TD_F32, td_shape (x)));
  float *host = read_all (x);

  assert_int_equal (td_write (y, host, 480), TD_OK);
  assert_int_equal (td_layout (y), TD_CHANNELS_LAST);
  assert_equal_arrays (y, x, 0);
  free (host);
}

static void
layout__is_row_major_again_on_another_device (void **state)
{
  TdVar *x = some_of (TD_SHAPE (2, 3, 4, 5), 1);
  TdVar *y = td_to_device (last (x), td_device_get ("cpu"));

  assert_int_equal (td_layout (y), TD_ROW_MAJOR);
  assert_equal_arrays (y, x, 0);
}

/* --- operations --- */

static TdVar *
wanting (TdVar *v)
{
  v->node->requires_grad = true;
  return v;
}

static void
apply__gives_row_major_operands_to_operations_that_know_no_other (void **state)
{
  TdVar *x = wanting (some_of (TD_SHAPE (2, 3, 4, 5), 1)), *y = last (x);
  TdVar *a = td_softmax (y, .axis = 1), *b = td_reshape (y, TD_SHAPE (2, 60));

  assert_int_equal (td_layout (a), TD_ROW_MAJOR);
  assert_string_equal (a->node->creator->in[0]->creator->cls->name, "to_layout");
  assert_string_equal (b->node->creator->in[0]->creator->cls->name, "to_layout");
  assert_equal_arrays (a, td_softmax (x, .axis = 1), 0);
  assert_equal_arrays (b, td_reshape (x, TD_SHAPE (2, 60)), 0);
}

static void
apply__keeps_the_layout_element_by_element (void **state)
{
  TdVar *x = some_of (TD_SHAPE (2, 3, 4, 5), 1), *z = some_of (TD_SHAPE (2, 3, 4, 5), 2);
  TdVar *y = last (x), *c = some_of (TD_SHAPE (1, 3, 1, 1), 3);
  TdVar *relu = td_relu (y), *sum = td_add (y, z), *bias = td_add (y, c);
  TdVar *number = td_mul (y, td_full (TD_F32, TD_SHAPE (1), 2));

  assert_int_equal (td_layout (relu), TD_CHANNELS_LAST);
  assert_int_equal (td_layout (sum), TD_CHANNELS_LAST);
  assert_int_equal (td_layout (number), TD_CHANNELS_LAST);
  assert_int_equal (td_layout (bias), TD_ROW_MAJOR); /* a row is repeated: not flat */
  assert_equal_arrays (relu, td_relu (x), 0);
  assert_equal_arrays (sum, td_add (x, z), 0);
  assert_equal_arrays (bias, td_add (x, c), 0);
  assert_equal_arrays (number, td_mul_scalar (x, 2), 0);
  assert_equal_arrays (td_where (td_cast (td_relu (y), TD_BOOL), y, z),
                       td_where (td_cast (td_relu (x), TD_BOOL), x, z), 0);
}

static void
apply__draws_the_same_mask_for_the_same_elements (void **state)
{
  TdVar *x = some_of (TD_SHAPE (2, 3, 4, 5), 1), *a, *b;

  td_set_seed (7);
  a = td_dropout (x, 0.5);
  td_set_seed (7);
  b = td_dropout (last (x), 0.5);
  assert_int_equal (td_layout (b), TD_CHANNELS_LAST);
  assert_equal_arrays (b, a, 0);
}

static void
apply__sums_and_joins_channels_where_they_lie (void **state)
{
  const int places[] = { 0, 2, 3 }, channels[] = { 1 }, batch[] = { 0 };
  TdVar *x = some_of (TD_SHAPE (2, 3, 4, 5), 1), *y = last (x), *parts[2], *flat[2];
  TdVar *sum = td_sum_axes (wanting (y), places, 3, false);

  assert_ptr_equal (sum->node->creator->in[0], y->node); /* as it lies */
  assert_ptr_equal (td_sum (wanting (x))->node->creator->in[0], x->node);
  assert_equal_arrays (sum, td_sum_axes (x, places, 3, false), 1e-6);
  assert_equal_arrays (td_mean_axes (y, channels, 1, true), td_mean_axes (x, channels, 1, true),
                       1e-6);
  assert_equal_arrays (td_mean_axes (y, channels, 1, false),
                       td_mean_axes (x, channels, 1, false), 1e-6);
  assert_equal_arrays (td_sum_axes (y, batch, 1, false), td_sum_axes (x, batch, 1, false), 0);
  assert_equal_arrays (td_sum (y), td_sum (x), 1e-6);
  parts[0] = y;
  parts[1] = td_relu (y);
  flat[0] = x;
  flat[1] = td_relu (x);
  for (int axis = 0; axis < 4; axis++)
    {
      assert_int_equal (td_layout (td_concat (parts, 2, axis)), TD_CHANNELS_LAST);
      assert_equal_arrays (td_concat (parts, 2, axis), td_concat (flat, 2, axis), 0);
    }
}

static void
apply__makes_images_channels_last_where_the_device_and_config_say_so (void **state)
{
  TdVar *x = some_of (TD_SHAPE (2, 3, 6, 6), 1), *W = some_of (TD_SHAPE (4, 3, 3, 3), 2);
  TdVar *y = td_convolution_2d (x, W, NULL), *z = NULL;

  assert_int_equal (td_layout (y), TD_CHANNELS_LAST);
  TD_USING (channels_last, 0)
    {
      z = td_convolution_2d (x, W, NULL);
    }
  assert_int_equal (td_layout (z), TD_ROW_MAJOR);
  assert_equal_arrays (y, z, 0);
  device->channels_last = false;
  assert_int_equal (td_layout (td_convolution_2d (x, W, NULL)), TD_ROW_MAJOR);
}

/* --- gradients --- */

static void
gradients__lie_as_what_they_are_the_gradients_of (void **state)
{
  TdVar *x = wanting (some_of (TD_SHAPE (2, 3, 6, 6), 1));
  TdVar *W = wanting (some_of (TD_SHAPE (4, 3, 3, 3), 2));
  TdVar *h = td_relu (td_convolution_2d (x, W, NULL));
  TdVar *y = td_sum (td_mul (h, h));

  assert_int_equal (td_backward (y, TD_RETAIN_GRADS), TD_OK);
  assert_int_equal (td_layout (td_grad (h)), TD_CHANNELS_LAST);
  assert_int_equal (td_layout (td_grad (W)), TD_ROW_MAJOR);
  assert_int_equal (td_layout (td_grad (x)), TD_ROW_MAJOR);
  /* also one that the program brings */
  td_set_grad (h, some_of (td_shape (h), 3));
  assert_int_equal (td_layout (td_grad (h)), TD_CHANNELS_LAST);
  assert_equal_arrays (td_grad (h), some_of (td_shape (h), 3), 0);
}

/* A net of every kind of layer that knows channels-last arrays, and of some that do not. */
typedef struct
{
  TdVar *x, *W[4], *b[4], *gamma, *beta, *mean, *var;
} Net;

static Net
net_new (void)
{
  static const int64_t sizes[4][4]
      = { { 4, 3, 3, 3 }, { 4, 4, 3, 3 }, { 5, 8, 1, 1 }, { 5, 2, 2, 2 } };
  Net n = { .x = wanting (some_of (TD_SHAPE (2, 3, 8, 8), 1)) };

  for (unsigned i = 0; i < 4; i++)
    {
      const int64_t *s = sizes[i];

      n.W[i] = wanting (some_of (TD_SHAPE (s[0], s[1], s[2], s[3]), 2 + i));
      n.b[i] = wanting (some_of (TD_SHAPE (s[i < 3 ? 0 : 1]), 12 + i));
    }
  n.gamma = wanting (some_of (TD_SHAPE (4), 31));
  n.beta = wanting (some_of (TD_SHAPE (4), 32));
  n.mean = td_zeros (TD_F32, TD_SHAPE (4));
  n.var = td_ones (TD_F32, TD_SHAPE (4));
  return n;
}

static TdVar *
net_of (const Net *n)
{
  TdVar *h = td_convolution_2d (n->x, n->W[0], n->b[0], .pad = { 1, 1 }), *r, *join[2];

  h = td_batch_normalization (h, n->gamma, n->beta, .running_mean = n->mean,
                              .running_var = n->var);
  h = td_max_pooling_2d (td_relu (h), .ksize = { 3, 3 }, .stride = { 2, 2 });
  r = td_convolution_2d (h, n->W[1], n->b[1], .pad = { 1, 1 });
  join[0] = td_tanh (td_add (r, h));
  join[1] = td_average_pooling_2d (h, .ksize = { 3, 3 }, .stride = { 1, 1 }, .pad = { 1, 1 });
  h = td_convolution_2d (td_concat (join, 2, 1), n->W[2], n->b[2]);
  h = td_deconvolution_2d (h, n->W[3], n->b[3], .stride = { 2, 2 });
  h = td_mul (td_adaptive_average_pooling_2d (h, 3, 3),
              td_max_pooling_2d (h, .ksize = { 3, 3 }));
  h = td_average_pooling_2d (h, .ksize = { 3, 3 });
  return td_mean (td_square (td_reshape (h, TD_SHAPE (2, 2))));
}

enum
{
  MAX_NOTES = 64
};
static float *notes[MAX_NOTES];
static size_t note_sizes[MAX_NOTES];
static int n_notes, at_note;

/* The first time notes are taken, the second time compared. */
static void
note (TdVar *v, bool first)
{
  float *host;

  assert_non_null (v);
  assert_false (td_poisoned (v));
  host = read_all (v);
  if (first)
    {
      assert_true (n_notes < MAX_NOTES);
      note_sizes[n_notes] = (size_t)td_size (v);
      notes[n_notes++] = host;
      return;
    }
  assert_true (at_note < n_notes);
  assert_int_equal (note_sizes[at_note], td_size (v));
  for (size_t i = 0; i < note_sizes[at_note]; i++)
    {
      const double a = (double)host[i], b = (double)notes[at_note][i];

      if (!(fabs (a - b) <= 2e-5 * (1 + fabs (b))))
        fail_msg ("array %d, element %zu: %g channels-last, %g row-major", at_note, i, a, b);
    }
  at_note++;
  free (host);
}

static void
notes_end (void)
{
  assert_int_equal (at_note, n_notes);
  for (int i = 0; i < n_notes; i++)
    free (notes[i]);
  n_notes = at_note = 0;
}

static int
leaves_of (const Net *n, TdVar **leaves)
{
  int k = 0;

  leaves[k++] = n->x;
  for (int i = 0; i < 4; i++)
    {
      leaves[k++] = n->W[i];
      leaves[k++] = n->b[i];
    }
  leaves[k++] = n->gamma;
  leaves[k++] = n->beta;
  return k;
}

static void
run_net (bool channels_last, bool first)
{
  TD_USING (channels_last, channels_last)
    {
      TdScope *scope = td_scope_open ("net");
      Net n = net_new ();
      TdVar *leaves[12], *gx[12], *y = net_of (&n), *second = NULL;
      const int k = leaves_of (&n, leaves);

      note (y, first);
      note (n.mean, first);
      note (n.var, first);
      assert_int_equal (td_backward (y, 0), TD_OK);
      for (int i = 0; i < k; i++)
        note (td_grad (leaves[i]), first);
      /* the sum of the gradients' squares, and its gradients */
      y = net_of (&n);
      assert_int_equal (td_grad_of (&y, 1, leaves, k, NULL, TD_DOUBLE_BACKPROP, gx), TD_OK);
      for (int i = 0; i < k; i++)
        second = second == NULL ? td_sum (td_square (gx[i]))
                                : td_add (second, td_sum (td_square (gx[i])));
      for (int i = 0; i < k; i++)
        td_cleargrad (leaves[i]);
      assert_int_equal (td_backward (second, 0), TD_OK);
      for (int i = 0; i < k; i++)
        note (td_grad (leaves[i]), first);
      td_scope_close (scope);
    }
}

static void
net__gives_the_same_gradients_of_both_orders_in_both_layouts (void **state)
{
  run_net (false, true);
  run_net (true, false);
  notes_end ();
}

static void
net__on_devices_that_do_not_want_it_has_no_layouts (void **state)
{
  Net n = net_new ();
  TdVar *y;
  long with, without;

  with = fake_remote_queued ();
  y = net_of (&n);
  with = fake_remote_queued () - with;
  device->channels_last = false;
  without = fake_remote_queued ();
  y = net_of (&n);
  without = fake_remote_queued () - without;
  assert_false (td_poisoned (y));
  assert_true (with > without); /* what to_layout adds */
}

/* --- schedules --- */

static void
net_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net n = *(const Net *)self;

  n.x = in[0];
  out[0] = net_of (&n);
  if (n_out > 1)
    out[1] = td_relu (td_convolution_2d (n.x, n.W[0], NULL));
}

static void
run_chain (bool is_static, bool first)
{
  TD_USING (use_static_graph, is_static)
    {
      TdScope *scope = td_scope_open ("chain");
      Net n = net_new ();
      TdStatic *s = td_static_new (net_forward, &n, .verify = 2);
      TdVar *leaves[12];
      const int k = leaves_of (&n, leaves);

      for (int call = 0; call < 5; call++)
        {
          TdVar *in = wanting (some_of (TD_SHAPE (2, 3, 8, 8), 40 + (unsigned)call)), *out[2];

          assert_int_equal (td_static_call (s, &in, 1, out, 2), TD_OK);
          assert_int_equal (td_layout (out[1]), TD_CHANNELS_LAST);
          note (out[0], first);
          note (out[1], first);
          for (int i = 1; i < k; i++)
            td_cleargrad (leaves[i]);
          assert_int_equal (td_backward (td_add (out[0], td_sum (out[1])), 0), TD_OK);
          note (td_grad (in), first);
          note (td_grad (n.W[1]), first);
          note (td_grad (n.gamma), first);
        }
      assert_null (td_error ());
      if (is_static)
        {
          const TdStaticInfo info = td_static_info (s);

          assert_true (info.n_replays >= 2);
        }
      td_static_free (s);
      td_scope_close (scope);
    }
}

static void
chain__replays_with_channels_last_arrays (void **state)
{
  run_chain (false, true);
  run_chain (true, false);
  notes_end ();
}

static TdVar *
twice (void *self, TdVar *x)
{
  return td_mul_scalar (td_relu (x), 2);
}

static void
twice_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  out[0] = twice (self, in[0]);
}

/* The same shape in another order is another argument. */
static void
chain__is_traced_anew_for_an_argument_in_another_layout (void **state)
{
  TdStatic *s = td_static_new (twice_forward, NULL);
  TdVar *x = some_of (TD_SHAPE (2, 3, 4, 5), 1), *given[] = { x, last (x), x, last (x) };

  for (int i = 0; i < 4; i++)
    {
      TdVar *y;

      assert_int_equal (td_static_call (s, &given[i], 1, &y, 1), TD_OK);
      assert_int_equal (td_layout (y), i % 2 == 0 ? TD_ROW_MAJOR : TD_CHANNELS_LAST);
      assert_equal_arrays (y, twice (NULL, x), 0);
    }
  td_static_free (s);
}

#define layout_test(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    layout_test (layout__moves_elements_in_memory_and_not_for_the_reader),
    layout_test (layout__of_three_and_five_axes_moves_the_channels_too),
    layout_test (layout__that_fits_both_is_row_major_and_costs_nothing),
    layout_test (layout__takes_what_the_host_writes_in_logical_order),
    layout_test (layout__is_row_major_again_on_another_device),
    layout_test (apply__gives_row_major_operands_to_operations_that_know_no_other),
    layout_test (apply__keeps_the_layout_element_by_element),
    layout_test (apply__draws_the_same_mask_for_the_same_elements),
    layout_test (apply__sums_and_joins_channels_where_they_lie),
    layout_test (apply__makes_images_channels_last_where_the_device_and_config_say_so),
    layout_test (gradients__lie_as_what_they_are_the_gradients_of),
    layout_test (net__gives_the_same_gradients_of_both_orders_in_both_layouts),
    layout_test (net__on_devices_that_do_not_want_it_has_no_layouts),
    layout_test (chain__replays_with_channels_last_arrays),
    layout_test (chain__is_traced_anew_for_an_argument_in_another_layout),
  };

  return cmocka_run_group_tests_name ("layouts", tests, NULL, NULL);
}
