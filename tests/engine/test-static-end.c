/* Products that do relu, or its gradient, before they leave their numbers: when a schedule
 * joins them, and when it must not.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"
#include "static/entry.h"

#include <string.h>

static const TdPlan *
plan_of (TdStatic *s)
{
  assert_non_null (s->entries);
  assert_non_null (s->entries->plan);
  return s->entries->plan;
}

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

static uint32_t found[2];

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

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (end__relu_and_its_gradient_run_inside_their_products),
    engine_test (end__a_product_that_others_need_keeps_its_numbers),
    engine_test (end__other_steps_between_product_and_relu_do_no_harm),
    engine_test (end__is_told_as_a_group_of_two),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
