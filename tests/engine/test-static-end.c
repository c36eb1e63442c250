/* Products and convolutions that do relu, or its gradient, before they leave their numbers:
 * when a schedule joins them, and when it must not.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "static-rig.h"
#include "static/entry.h"

#include <string.h>

/* Groups of a list that are products with an end. */
static uint32_t
n_ended (const TdPlan *p, uint32_t list)
{
  const TdSteps *steps = td__plan_list (p, list);
  uint32_t n = 0;

  for (uint32_t k = 0; k < steps->n; k++)
    n += steps->steps[k].kind == TD_STEP_GROUP
         && p->groups[steps->steps[k].external].tiles == NULL;
  return n;
}

/* How many members the largest of them has. */
static uint32_t
largest_ended (const TdPlan *p)
{
  uint32_t n = 0;

  for (uint32_t k = 0; k < p->n_groups; k++)
    if (p->groups[k].tiles == NULL && p->groups[k].n_members > n)
      n = p->groups[k].n_members;
  return n;
}

static bool
ends_products (void)
{
  TdVar *x = td_zeros (TD_F32, TD_SHAPE (1));

  return x->node->device->ops->ends_products != 0;
}

typedef struct
{
  TdLink *root, *layer[3];
  enum
  {
    PLAIN,   /* relu takes what the layer before it gives */
    ASIDE,   /* so does something else */
    RETURNED /* the caller gets that too */
  } how;
  bool no_bias;
} Layers;

static Layers
layers_new (bool no_bias)
{
  static const int sizes[] = { 9, 20, 33, 4 };
  Layers l = { .root = td_chain_new ("root"), .no_bias = no_bias };

  for (int i = 0; i < 3; i++)
    {
      char name[4] = { 'l', (char)('1' + i), 0 };

      l.layer[i] = td_linear_new (l.root, name, sizes[i], sizes[i + 1], .nobias = no_bias);
    }
  return l;
}

static void
layers_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Layers *l = self;
  TdVar *h = in[0], *before = NULL;

  (void)n_in;
  for (int i = 0; i < 3; i++)
    {
      TdVar *y = td_link (l->layer[i], h);

      if (i == 1)
        before = y;
      h = i < 2 ? td_relu (y) : y;
      if (i == 1 && l->how == ASIDE)
        h = td_add (h, td_tanh (y));
    }
  out[0] = h;
  if (n_out > 1)
    out[1] = l->how == RETURNED ? before : td_square (h);
}

static uint32_t found[2], largest;

static void
train_layers (void *user)
{
  const Layers *wanted = user;
  Layers l = layers_new (wanted->no_bias);
  TdStatic *s = td_static_new (layers_code, &l);

  l.how = wanted->how;
  TD_ITERATIONS (i, 3)
    {
      TdVar *x = some (TD_SHAPE (7, 9), (unsigned)i), *y[2];

      td_cleargrads (l.root);
      td_static_call (s, &x, 1, y, 2);
      td_backward (td_add (td_sum (td_square (y[0])), td_sum (y[1])), 0);
      note (y[0]);
      note (y[1]);
      note_link (l.root);
    }
  expect_calls (s, 1, 2);
  if (is_static_run ())
    for (uint32_t list = 0; list < 2; list++)
      found[list] = n_ended (plan_of (s), list);
  td_static_free (s);
  td_link_free (l.root);
}

static void
end__relu_and_its_gradient_run_inside_their_products (void **state)
{
  (void)state;
  for (int no_bias = 0; no_bias < 2; no_bias++)
    {
      Layers l = { .how = PLAIN, .no_bias = no_bias };

      run_both (train_layers, &l);
      assert_int_equal (found[0], ends_products () ? 2 : 0);
      assert_int_equal (found[1], ends_products () ? 2 : 0);
    }
}

/* What something else reads, or the caller gets, has to be there. */
static void
end__a_product_that_others_need_keeps_its_numbers (void **state)
{
  Layers aside = { .how = ASIDE }, returned = { .how = RETURNED };

  (void)state;
  run_both (train_layers, &aside);
  assert_int_equal (found[0], ends_products () ? 1 : 0);
  run_both (train_layers, &returned);
  assert_int_equal (found[0], ends_products () ? 1 : 0);
}

/* What lies between a product and its relu may change what the product reads. */
static void
changing_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdLink *norm = self;
  TdVar *y = td_matmul (in[0], in[1], false, false);

  (void)n_in;
  (void)n_out;
  out[1] = td_link (norm, in[0]);
  out[0] = td_relu (y);
}

static void
train_changing (void *user)
{
  TdLink *root = td_chain_new ("root"), *norm = td_batch_normalization_new (root, "bn", 5);
  TdStatic *s = td_static_new (changing_code, norm);

  (void)user;
  TD_ITERATIONS (i, 3)
    {
      TdVar *in[] = { some (TD_SHAPE (6, 5), (unsigned)i), some (TD_SHAPE (5, 8), 9) }, *y[2];

      td_static_call (s, in, 2, y, 2);
      note (y[0]);
      note (y[1]);
      note_link (root);
    }
  if (is_static_run ())
    found[0] = n_ended (plan_of (s), 0);
  td_static_free (s);
  td_link_free (root);
}

static void
end__other_steps_between_product_and_relu_do_no_harm (void **state)
{
  (void)state;
  run_both (train_changing, NULL);
  assert_int_equal (found[0], ends_products () ? 1 : 0);
}

/* The plan says what was joined, and the result takes no other's place. */
static void
end__is_told_as_a_group_of_two (void **state)
{
  Layers l = layers_new (false);
  TdStatic *s = td_static_new (layers_code, &l);
  const TdPlan *p;
  uint32_t n_notes = 0;

  (void)state;
  TD_ITERATIONS (i, 2)
    {
      TdVar *x = some (TD_SHAPE (7, 9), 1), *y[2];

      td_static_call (s, &x, 1, y, 2);
    }
  p = plan_of (s);
  for (uint32_t k = 0; k < p->n_groups; k++)
    if (p->groups[k].tiles == NULL)
      {
        assert_int_equal (p->groups[k].n_members, 2);
        assert_string_equal (p->groups[k].members[0].cls->name, "linear");
        assert_string_equal (p->groups[k].members[1].cls->name, "relu");
        assert_int_equal (p->groups[k].n_interior, 1);
        assert_true (p->offsets[p->groups[k].interior[0]] == SIZE_MAX);
        for (uint32_t n = 0; n < p->n_notes; n++)
          n_notes += p->notes[n].pass == TD_PASS_FUSE && p->notes[n].other == k;
      }
  assert_int_equal (n_notes, ends_products () ? 4 : 0);
  td_static_free (s);
  td_link_free (l.root);
}

/* --- convolutions --- */

static bool
ends_convs (TdDtype dtype, bool grads)
{
  TdVar *x = td_zeros (TD_F32, TD_SHAPE (1));
  const TdDeviceOps *ops = x->node->device->ops;

  return ((grads ? ops->ends_conv_grads : ops->ends_convs) & 1u << dtype) != 0;
}

typedef struct
{
  TdDtype dtype;
  bool nan; /* some of x are */
  enum
  {
    STACK,      /* relu after relu, with all that windows can be */
    RESIDUAL,   /* what goes round a block is added before relu, from either side */
    SUM_SHARED, /* the sum is read by something else too */
    SUM_ROW,    /* what is added is repeated */
    DOUBLED,    /* it is the convolution itself */
    VIEWED,     /* relu sees it in another shape */
    TURNED      /* transposed convolutions */
  } net;
  int forward, backward; /* groups there should be */
  TdVar *x, *W[4], *b, *row;
} Convs;

static TdVar *
weight (const Convs *c, TdShape shape, unsigned seed)
{
  char name[8] = { 'W', (char)('0' + seed % 10), 0 };

  return td_variable (td_retain (td_cast (some (shape, seed), c->dtype)), name);
}

static void
convs_new (Convs *c)
{
  c->W[0] = weight (c, TD_SHAPE (6, 3, 3, 3), 11);
  c->W[1] = weight (c, TD_SHAPE (6, 6, 3, 3), 12);
  c->W[2] = weight (c, TD_SHAPE (6, 3, 1, 1), 13);
  c->W[3] = weight (c, TD_SHAPE (6, 6, 3, 3), 14);
  c->b = weight (c, TD_SHAPE (6), 15);
  c->row = weight (c, TD_SHAPE (1, 6, 1, 1), 16);
}

static void
convs_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Convs *c = self;
  TdVar *h = td_relu (td_convolution_2d (in[0], c->W[0], c->b, .pad = { 1, 1 })), *y;

  (void)n_in;
  (void)n_out;
  if (c->net == STACK)
    {
      h = td_relu (td_convolution_2d (h, c->W[1], NULL, .stride = { 2, 2 }));
      h = td_relu (td_convolution_2d (h, c->W[2], c->b, .groups = 2));
      h = td_convolution_2d (h, c->W[3], c->b, .pad = { 2, 2 }, .dilate = { 2, 2 });
    }
  else if (c->net == TURNED)
    {
      h = td_relu (td_deconvolution_2d (h, c->W[1], c->b, .stride = { 2, 2 }));
      h = td_relu (td_deconvolution_2d (h, c->W[3], NULL, .pad = { 1, 1 }));
    }
  else
    {
      y = td_convolution_2d (h, c->W[1], c->b, .pad = { 1, 1 });
      if (c->net == VIEWED)
        h = td_relu (td_reshape (y, TD_SHAPE (4, 6 * 81)));
      else if (c->net == SUM_ROW)
        h = td_relu (td_add (y, c->row));
      else if (c->net == DOUBLED)
        h = td_relu (td_add (y, y));
      else
        {
          y = td_add (y, h);
          h = td_relu (y);
          if (c->net == SUM_SHARED)
            h = td_mul (h, td_tanh (y));
        }
      if (c->net == RESIDUAL)
        h = td_relu (td_add (h, td_convolution_2d (h, c->W[3], NULL, .pad = { 1, 1 })));
    }
  out[0] = h;
}

static void
train_convs (void *user)
{
  Convs *c = user;
  TdStatic *s;

  convs_new (c);
  s = td_static_new (convs_code, c);
  TD_ITERATIONS (i, 3)
    {
      TdVar *x = some (TD_SHAPE (4, 3, 9, 9), (unsigned)i), *y;

      if (c->nan)
        x = td_sqrt (td_add_scalar (x, 0.99));
      x = td_variable (td_cast (x, c->dtype), "x");
      for (int k = 0; k < 4; k++)
        td_cleargrad (c->W[k]);
      td_cleargrad (c->b);
      td_cleargrad (c->row);
      td_static_call (s, &x, 1, &y, 1);
      td_backward (td_sum (td_square (y)), 0);
      note (y);
      note (td_grad (x));
      for (int k = 0; k < 4; k++)
        note (td_grad (c->W[k]));
      note (td_grad (c->b));
    }
  expect_calls (s, 1, 2);
  if (is_static_run ())
    for (uint32_t list = 0; list < 2; list++)
      found[list] = n_ended (plan_of (s), list);
  if (is_static_run ())
    largest = largest_ended (plan_of (s));
  td_static_free (s);
  for (int k = 0; k < 4; k++)
    td_release (c->W[k]);
  td_release (c->b);
  td_release (c->row);
}

static void
train_both_ways (Convs c)
{
  const bool grads = ends_convs (c.dtype, true);

  run_both (train_convs, &c);
  if (!ends_convs (c.dtype, false))
    return;
  /* Transposed convolutions are data gradients to a device. */
  assert_int_equal (found[0], c.net == TURNED && !grads ? 1 : c.forward);
  assert_int_equal (found[1], grads ? c.backward : 0);
  assert_int_equal (largest, c.net == RESIDUAL || (c.net == SUM_SHARED && grads) ? 3 : 2);
}

/* Backward: the data gradient goes into the gradient of the relu before, three times. */
static void
end__relu_and_its_gradient_run_inside_their_convolutions (void **state)
{
  (void)state;
  train_both_ways ((Convs){ .dtype = TD_F32, .net = STACK, .forward = 3, .backward = 3 });
  train_both_ways ((Convs){ .dtype = TD_F64, .net = STACK, .forward = 3, .backward = 3 });
  train_both_ways ((Convs){ .dtype = TD_F32, .net = TURNED, .forward = 3, .backward = 2 });
}

/* What goes round a block, in both orders of the sum; what only looks like it. */
static void
end__what_goes_round_a_block_is_added_inside_its_convolution (void **state)
{
  (void)state;
  train_both_ways ((Convs){ .dtype = TD_F32, .net = RESIDUAL, .forward = 3, .backward = 2 });
  train_both_ways ((Convs){ .dtype = TD_F64, .net = RESIDUAL, .forward = 3, .backward = 2 });
  train_both_ways ((Convs){ .dtype = TD_F32, .net = SUM_SHARED, .forward = 1, .backward = 1 });
  train_both_ways ((Convs){ .dtype = TD_F32, .net = SUM_ROW, .forward = 1, .backward = 1 });
  train_both_ways ((Convs){ .dtype = TD_F32, .net = DOUBLED, .forward = 1, .backward = 1 });
}

static void
end__a_view_between_a_convolution_and_relu_keeps_them_apart (void **state)
{
  (void)state;
  train_both_ways ((Convs){ .dtype = TD_F32, .net = VIEWED, .forward = 1, .backward = 1 });
}

static void
end__nan_passes_through_relu_inside_a_convolution (void **state)
{
  (void)state;
  train_both_ways (
      (Convs){ .dtype = TD_F32, .nan = true, .net = STACK, .forward = 3, .backward = 3 });
  train_both_ways (
      (Convs){ .dtype = TD_F32, .nan = true, .net = RESIDUAL, .forward = 3, .backward = 2 });
}

static void
viewed_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_relu (td_reshape (td_matmul (in[0], in[1], false, false), TD_SHAPE (48)));
}

static void
run_viewed (void *user)
{
  TdStatic *s = td_static_new (viewed_code, NULL);

  (void)user;
  TD_ITERATIONS (i, 3)
    {
      TdVar *in[] = { some (TD_SHAPE (6, 5), (unsigned)i), some (TD_SHAPE (5, 8), 9) }, *y;

      td_static_call (s, in, 2, &y, 1);
      note (y);
    }
  if (is_static_run ())
    found[0] = n_ended (plan_of (s), 0);
  td_static_free (s);
}

static void
end__a_view_between_a_product_and_relu_keeps_them_apart (void **state)
{
  (void)state;
  run_both (run_viewed, NULL);
  assert_int_equal (found[0], 0);
}

int
main (int argc, char **argv)
{
  struct CMUnitTest tests[] = {
    engine_test (end__relu_and_its_gradient_run_inside_their_products),
    engine_test (end__a_product_that_others_need_keeps_its_numbers),
    engine_test (end__other_steps_between_product_and_relu_do_no_harm),
    engine_test (end__is_told_as_a_group_of_two),
    engine_test (end__a_view_between_a_product_and_relu_keeps_them_apart),
    engine_test (end__relu_and_its_gradient_run_inside_their_convolutions),
    engine_test (end__what_goes_round_a_block_is_added_inside_its_convolution),
    engine_test (end__a_view_between_a_convolution_and_relu_keeps_them_apart),
    engine_test (end__nan_passes_through_relu_inside_a_convolution),
  };

  return _cmocka_run_group_tests (
      "static-end", tests, fixture_part (tests, sizeof tests / sizeof *tests, argc, argv), NULL,
      NULL);
}
