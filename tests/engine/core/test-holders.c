/* Who keeps a variable alive: every reference of every live handle has a kind, and somebody of
 * that kind can be found for it.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "train/links/link.h"
#include "train/optim/optimizer.h"
#include "td-test.h"

#include <string.h>

static int
setup (void **state)
{
  return td_init (NULL, NULL) != TD_OK;
}

static int
teardown (void **state)
{
  return td_finish ();
}

/* Who was found to hold a handle, by kind. */
typedef struct
{
  const TdVar *v;
  uint32_t found[TD_HOLD_N];
} Holders;

static void
count_in_link (TdLink *owner, TdParam *param, const char *key, void *user)
{
  Holders *h = user;

  h->found[TD_HOLD_LINK] += param->var == h->v;
}

static void
count_in_optimizer (Holders *h, const TdOpt *opt)
{
  for (int i = 0; i < opt->n_slots; i++)
    {
      h->found[TD_HOLD_OPTIMIZER] += opt->slots[i].param == h->v;
      for (int k = 0; k < TD_OPT_MAX_STATES; k++)
        h->found[TD_HOLD_OPTIMIZER] += opt->slots[i].states[k] == h->v;
    }
}

/* Call visit for each live handle there is. */
static int
each_live (void (*visit) (TdVar *v, void *user), void *user)
{
  const TdSlab *slab = &td__engine.vars;
  int n = 0;

  for (size_t c = 0; c < slab->n_chunks; c++)
    for (size_t i = 0; i < TD_SLAB_ITEMS; i++)
      {
        TdVar *v = (TdVar *)(void *)((char *)slab->chunks[c] + i * slab->item_bytes);

        if (v->state != TD_VAR_LIVE)
          continue;
        visit (v, user);
        n++;
      }
  return n;
}

static void
count_as_gradient (TdVar *v, void *user)
{
  Holders *h = user;

  h->found[TD_HOLD_GRADIENT] += v->grad == h->v;
}

static void
count_in_scopes (Holders *h)
{
  for (size_t i = 0; i < td__engine.n_scope_vars; i++)
    h->found[TD_HOLD_SCOPE] += td__engine.scope_vars[i] == h->v;
}

/* All that may hold a variable in these tests. */
typedef struct
{
  TdLink *model;
  TdOpt *opt;
  TdVar *retained;
  uint32_t times;
  int seen[TD_HOLD_N];
} World;

static const char *const hold_names[TD_HOLD_N]
    = { "scope", "user", "link", "gradient", "optimizer", "engine" };

static void
explain (TdVar *v, void *user)
{
  World *w = user;
  Holders h = { .v = v };
  uint32_t sum = 0;

  count_in_scopes (&h);
  h.found[TD_HOLD_USER] = v == w->retained ? w->times : 0;
  td__link_visit (w->model, count_in_link, &h);
  each_live (count_as_gradient, &h);
  count_in_optimizer (&h, w->opt);
  for (int k = 0; k < TD_HOLD_N; k++)
    {
      if (v->holds[k] != h.found[k])
        fail_msg ("%s: %u references of kind %s are counted, %u holders were found",
                  v->name != NULL ? v->name : "a variable", v->holds[k], hold_names[k],
                  h.found[k]);
      sum += h.found[k];
      w->seen[k] += h.found[k] > 0;
    }
  assert_true (sum > 0);
  assert_int_equal (v->refs, sum);
}

static World
world_new (void)
{
  World w = { .model = td_sequential_new ("m") };

  td_linear_new (w.model, "l1", 6, 5);
  td_batch_normalization_new (w.model, "bn", 5);
  td_sequential_append (w.model, td_relu);
  td_linear_new (w.model, "l2", 5, 2);
  w.opt = td_adam_new (w.model);
  td_opt_add_hook (w.opt, td_gradient_clipping_new (1.0));
  return w;
}

static void
holders__explain_every_reference_during_and_after_an_iteration (void **state)
{
  World w = world_new ();
  int n_inside = 0, n_after;

  for (int i = 0; i < 2; i++)
    TD_ITERATION (i)
      {
        TdVar *y = td_link (w.model, td_rand (TD_F32, TD_SHAPE (4, 6)));
        TdVar *loss = td_mean (td_square (y));

        if (w.times > 0)
          td_release (w.retained);
        w.retained = td_retain (loss);
        w.times = 1;
        td_cleargrads (w.model);
        assert_int_equal (td_backward (loss, TD_RETAIN_GRADS), TD_OK);
        assert_int_equal (td_opt_update (w.opt), TD_OK);
        n_inside = each_live (explain, &w);
        assert_int_equal (n_inside, td__engine.vars.live);
      }
  memset (w.seen, 0, sizeof w.seen);
  n_after = each_live (explain, &w);
  assert_int_equal (n_after, td__engine.vars.live);
  assert_true (n_after < n_inside);
  /* 6 parameters and 3 statistics, 2 moments of each parameter, a gradient of each, the loss
   * with the gradient it retained. */
  assert_int_equal (w.seen[TD_HOLD_LINK], 9);
  assert_int_equal (w.seen[TD_HOLD_OPTIMIZER], 6 + 12);
  assert_int_equal (w.seen[TD_HOLD_GRADIENT], 6 + 1);
  assert_int_equal (w.seen[TD_HOLD_USER], 1);
  assert_int_equal (w.seen[TD_HOLD_SCOPE], 0);
  assert_int_equal (w.seen[TD_HOLD_ENGINE], 0);
  td_release (w.retained);
  td_opt_free (w.opt);
  td_link_free (w.model);
  assert_int_equal (td__engine.vars.live, 0);
}

/* Counts by kind are as wide as the sum, or they would part from it. */
static void
holders__count_a_hundred_thousand_of_one_kind (void **state)
{
  enum
  {
    N = 100000
  };
  TdVar *v = td_zeros (TD_F32, TD_SHAPE (2));

  for (int i = 0; i < N; i++)
    td_retain (v);
  assert_int_equal (v->holds[TD_HOLD_USER], N);
  assert_int_equal (v->refs, N + 1);
  for (int i = 0; i < N; i++)
    td_release (v);
  assert_null (td_error ());
  assert_int_equal (v->refs, 1);
  td_release (v);
  assert_contains (td_error ()->message, "was released more often than retained");
  td_error_clear ();
}

typedef struct
{
  TdHeld held[8];
  int n;
} Stored;

static void
store (const TdHeld *held, void *user)
{
  Stored *s = user;

  assert_true (s->n < 8);
  s->held[s->n++] = *held;
}

static const TdHeld *
by_op (const Stored *s, const char *op)
{
  for (int i = 0; i < s->n; i++)
    if (strcmp (s->held[i].op, op) == 0)
      return &s->held[i];
  fail_msg ("nothing made by %s is held", op);
  return NULL;
}

/* FQ01: after an iteration, what was stored of its graph, and the line that took hold of it. */
static void
fq01__stored_intermediates_name_the_line_that_holds_them (void **state)
{
  TdLink *link = td_chain_new ("m");
  TdVar *kept = NULL;
  int made = 0, taken = 0;

  (void)state;
  TD_ITERATIONS (i, 3)
    {
      TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (5)), "x");
      TdVar *y = td_relu (x);

      made = __LINE__ + 1;
      TdVar *h = td_sigmoid (y);
      TdVar *loss = td_sum (h);

      td_backward (loss, 0);
      if (i == 1)
        taken = __LINE__, kept = td_retain (h);
      if (i == 1)
        td_link_set_attr (link, "state", loss);
    }
  Stored s = { .n = 0 };

  assert_int_equal (td_held_intermediates (store, &s), 2);
  assert_ptr_equal (by_op (&s, "sigmoid")->v, kept);
  assert_string_equal (by_op (&s, "sigmoid")->holder, "td_retain");
  assert_int_equal (by_op (&s, "sigmoid")->held_at->line, taken);
  assert_contains (by_op (&s, "sigmoid")->held_at->file, "test-holders.c");
  assert_int_equal (by_op (&s, "sigmoid")->bytes, 20);
  assert_string_equal (by_op (&s, "sum")->holder, "link");
  assert_null (by_op (&s, "sum")->held_at);
  assert_in_range (by_op (&s, "sum")->made->line, made, made + 1);
  td_release (kept);
  td_link_set_attr (link, "state", NULL);
  assert_int_equal (td_held_intermediates (NULL, NULL), 0);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (holders__explain_every_reference_during_and_after_an_iteration),
    row (holders__count_a_hundred_thousand_of_one_kind),
    row (fq01__stored_intermediates_name_the_line_that_holds_them),
  };

  return cmocka_run_group_tests_name ("holders", tests, NULL, NULL);
}
