/* Static functions: what is replayed is what the code would have computed, bit for bit.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <string.h>

typedef struct
{
  TdLink *l1, *bn, *l2;
  int calls;
  double scale;
} Net;

static void
net_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *h = td_relu (td_link (net->bn, td_link (net->l1, in[0])));

  (void)n_in;
  (void)n_out;
  net->calls++;
  h = td_dropout (h, 0.5);
  h = td_add (h, td_tanh (h));
  out[0] = td_softmax_cross_entropy (td_link (net->l2, h), in[1]);
}

static TdLink *
net_new (Net *net, const char *name)
{
  TdLink *root = td_chain_new (name);

  memset (net, 0, sizeof *net);
  net->l1 = td_linear_new (root, "l1", 6, 8);
  net->bn = td_batch_normalization_new (root, "bn", 8);
  net->l2 = td_linear_new (root, "l2", 8, 3);
  fill_params (root, 5);
  return root;
}

static TdVar *
batch (int i, int n)
{
  float x[64 * 6];

  for (int k = 0; k < n * 6; k++)
    x[k] = (float)((k * 37 + i * 11) % 29) / 14.0f - 1;
  return td_tensor (TD_F32, TD_SHAPE (n, 6), x);
}

static TdVar *
labels (int i, int n)
{
  int32_t t[64];

  for (int k = 0; k < n; k++)
    t[k] = (k * 7 + i) % 3;
  return td_tensor (TD_I32, TD_SHAPE (n), t);
}

/* Train both nets with the same numbers; everything must be equal to the last bit. */
static void
assert_bits (TdVar *a, TdVar *b)
{
  char x[4096], y[4096];
  size_t bytes = (size_t)td_size (a) * td_dtype_bytes (td_dtype (a));

  assert_true (bytes <= sizeof x);
  assert_int_equal (td_size (a), td_size (b));
  assert_int_equal (td_read (a, x, bytes), TD_OK);
  assert_int_equal (td_read (b, y, bytes), TD_OK);
  assert_memory_equal (x, y, bytes);
}

static const char *const keys[]
    = { "l1/W", "l1/b", "bn/gamma", "bn/beta", "bn/avg_mean", "bn/avg_var", "l2/W", "l2/b" };

static void
static__training_equals_define_by_run_bit_for_bit (void **state)
{
  Net a, b;
  TdLink *dynamic = net_new (&a, "dynamic"), *replayed = net_new (&b, "replayed");
  TdOpt *oa = td_sgd_new (dynamic, .lr = 0.1), *ob = td_sgd_new (replayed, .lr = 0.1);
  TdStatic *s = td_static_new (net_forward, &b, .fuse = false);

  (void)state;
  TD_ITERATIONS (i, 12)
    {
      TdVar *in[] = { batch (i, 16), labels (i, 16) }, *la, *lb;

      td_set_seed ((uint64_t)(100 + i));
      net_forward (&a, in, 2, &la, 1);
      td_set_seed ((uint64_t)(100 + i));
      assert_int_equal (td_static_call (s, in, 2, &lb, 1), TD_OK);
      assert_bits (la, lb);
      td_cleargrads (dynamic);
      td_cleargrads (replayed);
      td_backward (la, 0);
      td_backward (lb, 0);
      for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (td_grad (td_link_param (dynamic, keys[k])) != NULL)
          assert_bits (td_grad (td_link_param (dynamic, keys[k])),
                       td_grad (td_link_param (replayed, keys[k])));
      td_opt_update (oa);
      td_opt_update (ob);
      for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        assert_bits (td_link_param (dynamic, keys[k]), td_link_param (replayed, keys[k]));
    }
  assert_int_equal (b.calls, 1);
  assert_int_equal (td_static_info (s).n_replays, 11);
  assert_int_equal (td_static_info (s).n_instances, 1);
}

static void
static__a_function_called_often_before_one_backward_accumulates (void **state)
{
  Net a, b;
  TdLink *dynamic = net_new (&a, "dynamic"), *replayed = net_new (&b, "replayed");
  TdStatic *s = td_static_new (net_forward, &b, .fuse = false);

  (void)state;
  TD_ITERATIONS (i, 5)
    {
      TdVar *la = NULL, *lb = NULL;

      for (int which = 0; which < 2; which++)
        {
          TdVar *sum = NULL;

          td_set_seed (7);
          for (int k = 0; k < 3; k++)
            {
              TdVar *in[] = { batch (i + k, 16), labels (i + k, 16) }, *l;

              if (which == 0)
                net_forward (&a, in, 2, &l, 1);
              else
                td_static_call (s, in, 2, &l, 1);
              sum = sum == NULL ? l : td_add (sum, l);
            }
          *(which == 0 ? &la : &lb) = sum;
        }
      assert_bits (la, lb);
      td_backward (la, 0); /* no cleargrads: over iterations too */
      td_backward (lb, 0);
      for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (td_grad (td_link_param (dynamic, keys[k])) != NULL)
          assert_bits (td_grad (td_link_param (dynamic, keys[k])),
                       td_grad (td_link_param (replayed, keys[k])));
    }
  assert_int_equal (b.calls, 3);
  assert_int_equal (td_static_info (s).n_instances, 3);
}

/* x -> x^3, whose second derivative is 6 x. */
static void
cube (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_mul (td_mul (in[0], in[0]), in[0]);
}

static void
static__gradients_have_gradients_when_asked_for (void **state)
{
  TdStatic *s = td_static_new (cube, NULL, .enable_double_backprop = true);
  float two = 2;

  (void)state;
  TD_ITERATIONS (i, 4)
    {
      TdVar *x = td_variable (td_tensor (TD_F32, TD_SHAPE (1), &two), "x");
      TdVar *y = td_static_call1 (s, x), *g, *gg;

      td_grad_of (&y, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &g);
      assert_float_equal (td_item (g), 12, 1e-6);
      td_grad_of (&g, 1, &x, 1, NULL, 0, &gg);
      assert_float_equal (td_item (gg), 12, 1e-6);
    }
  assert_int_equal (td_static_info (s).n_replays, 3);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (static__training_equals_define_by_run_bit_for_bit),
    engine_test (static__a_function_called_often_before_one_backward_accumulates),
    engine_test (static__gradients_have_gradients_when_asked_for),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
