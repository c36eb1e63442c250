/* Recomputation: a forgotten function gives the bits that it gives itself, with dropout and
 * batch normalisation inside, keeps less memory, and says what it cannot do.
 * SPDX-License-Identifier: MIT */
#include "start.h"

#include <string.h>

enum
{
  N = 6,
  D = 5
};

/* What the function uses besides its input. */
typedef struct
{
  TdVar *W, *b, *gamma, *beta, *mean, *var;
  double dropout;
  int n_runs, widen; /* widen: the run after which results have another shape */
} Model;

static void
block (void *user, TdVar *const *xs, int n, TdVar **ys, int m)
{
  Model *p = user;
  TdVar *h = td_linear (xs[0], p->W, p->b);

  (void)n;
  p->n_runs++;
  h = td_batch_normalization (h, p->gamma, p->beta, .running_mean = p->mean,
                              .running_var = p->var);
  h = td_dropout (td_tanh (h), p->dropout);
  ys[0] = p->widen != 0 && p->n_runs > p->widen ? td_flatten (h) : h;
  if (m > 1)
    ys[1] = td_square (xs[0]);
}

static TdVar *
leaf (TdShape shape, const char *name)
{
  return td_variable (td_randn (TD_F32, shape), name);
}

static Model
model_new (void)
{
  return (Model){ .W = leaf (TD_SHAPE (D, D), "W"),
                  .b = leaf (TD_SHAPE (D), "b"),
                  .gamma = leaf (TD_SHAPE (D), "gamma"),
                  .beta = leaf (TD_SHAPE (D), "beta"),
                  .mean = td_zeros (TD_F32, TD_SHAPE (D)),
                  .var = td_ones (TD_F32, TD_SHAPE (D)),
                  .dropout = 0.5 };
}

/* What a step came to, byte by byte. */
typedef struct
{
  float loss, gx[N * D], gW[D * D], gb[D], ggamma[D], gbeta[D], mean[D], var[D];
} Result;

static void
copy_grad (TdVar *v, float *to)
{
  assert_non_null (td_grad (v));
  assert_int_equal (td_read (td_grad (v), to, (size_t)td_size (v) * sizeof *to), TD_OK);
}

/* Two blocks with the same parameters, which are used once more outside. */
static Result
step (bool forget, bool eval_in_backward)
{
  Result r = { 0 };

  td_set_seed (11);
  TD_SCOPE ("step")
    {
      TdVar *x = leaf (TD_SHAPE (N, D), "x"), *h[2], *loss;
      Model p = model_new ();

      if (forget)
        {
          assert_int_equal (td_forget (block, &p, &x, 1, h, 2), TD_OK);
          assert_int_equal (td_forget (block, &p, h, 1, h, 1), TD_OK);
        }
      else
        {
          block (&p, &x, 1, h, 2);
          block (&p, h, 1, h, 1);
        }
      loss = td_add (td_sum (td_mul (td_linear (h[0], p.W, NULL), h[0])), td_sum (h[1]));
      if (eval_in_backward)
        TD_USING (train, 0)
          assert_int_equal (td_backward (loss, 0), TD_OK);
      else
        assert_int_equal (td_backward (loss, 0), TD_OK);
      assert_int_equal (p.n_runs, forget ? 4 : 2);
      r.loss = (float)td_item (loss);
      copy_grad (x, r.gx);
      copy_grad (p.W, r.gW);
      copy_grad (p.b, r.gb);
      copy_grad (p.gamma, r.ggamma);
      copy_grad (p.beta, r.gbeta);
      assert_int_equal (td_read (p.mean, r.mean, sizeof r.mean), TD_OK);
      assert_int_equal (td_read (p.var, r.var, sizeof r.var), TD_OK);
    }
  return r;
}

static void
expect_close (const float *a, const float *b, int n)
{
  for (int i = 0; i < n; i++)
    assert_float_equal (a[i], b[i], 1e-4);
}

static void
forget__drops_the_same_and_gives_the_same_gradients (void **unused)
{
  const Result plain = step (false, false), again = step (true, false),
               eval = step (true, true);

  assert_memory_equal (&plain.loss, &again.loss, sizeof plain.loss);
  assert_memory_equal (plain.gx, again.gx, sizeof plain.gx);
  /* Sums over blocks and the use outside are made in another order. */
  expect_close (plain.gW, again.gW, D * D);
  expect_close (plain.gb, again.gb, D);
  expect_close (plain.ggamma, again.ggamma, D);
  expect_close (plain.gbeta, again.gbeta, D);
  assert_memory_equal (again.gx, eval.gx, sizeof eval.gx);
  assert_memory_equal (again.gW, eval.gW, sizeof eval.gW);
}

static void
forget__writes_running_statistics_once (void **unused)
{
  const Result plain = step (false, false), again = step (true, false);

  assert_memory_equal (plain.mean, again.mean, sizeof plain.mean);
  assert_memory_equal (plain.var, again.var, sizeof plain.var);
}

static void
chain (void *user, TdVar *const *xs, int n, TdVar **ys, int m)
{
  TdVar *h = xs[0];

  (void)user;
  (void)n;
  (void)m;
  for (int i = 0; i < 8; i++)
    h = td_tanh (td_mul_scalar (h, 1.5));
  ys[0] = h;
}

static size_t
live_bytes (void)
{
  return td_mem_info (NULL).live_bytes;
}

static void
forget__keeps_its_inputs_and_outputs_only (void **unused)
{
  const size_t array = 4096 * sizeof (float);

  TD_SCOPE ("test")
    {
      TdVar *x = leaf (TD_SHAPE (4096), "x"), *y, *z = NULL;
      size_t before = live_bytes ();

      td_forget (chain, NULL, &x, 1, &y, 1);
      assert_int_equal (live_bytes () - before, array);
      before = live_bytes ();
      TD_SCOPE ("plain")
        {
          chain (NULL, &x, 1, &z, 1);
          td_scope_yield (z);
        }
      assert_true (live_bytes () - before >= 8 * array); /* tanh keeps its output */
    }
}

static void
two_levels (void *user, TdVar *const *xs, int n, TdVar **ys, int m)
{
  TdVar *h;

  td_forget (block, user, xs, n, &h, 1);
  h = td_add (h, xs[0]);
  td_forget (chain, NULL, &h, 1, ys, m);
}

static void
forget__nests (void **unused)
{
  float plain[N * D], nested[N * D];

  for (int k = 0; k < 2; k++)
    TD_SCOPE ("test")
      {
        TdVar *x, *y;
        Model p;

        td_set_seed (3);
        x = leaf (TD_SHAPE (N, D), "x");
        p = model_new ();
        if (k == 0)
          {
            block (&p, &x, 1, &y, 1);
            y = td_add (y, x);
            chain (NULL, &y, 1, &y, 1);
          }
        else
          assert_int_equal (td_forget (two_levels, &p, &x, 1, &y, 1), TD_OK);
        td_backward (td_sum (y), 0);
        copy_grad (x, k == 0 ? plain : nested);
      }
  assert_memory_equal (plain, nested, sizeof plain);
}

static void
forget__reaches_parameters_when_its_input_wants_nothing (void **unused)
{
  float gW[D * D], zeros[D * D] = { 0 };

  TD_SCOPE ("test")
    {
      TdVar *x = td_randn (TD_F32, TD_SHAPE (N, D)), *y;
      Model p = model_new ();

      p.dropout = 0;
      td_forget (block, &p, &x, 1, &y, 1);
      td_backward (td_sum (td_square (y)), 0);
      assert_null (td_grad (x));
      copy_grad (p.W, gW);
      assert_memory_not_equal (gW, zeros, sizeof gW);
    }
}

static void
forget__leaves_own_gradients_alone_in_grad_of (void **unused)
{
  float got[N * D], want[N * D];

  TD_SCOPE ("test")
    {
      TdVar *x = leaf (TD_SHAPE (N, D), "x"), *y, *sum, *gx;
      Model p = model_new ();

      p.dropout = 0;
      td_forget (block, &p, &x, 1, &y, 1);
      sum = td_sum (td_square (y));
      assert_int_equal (td_grad_of (&sum, 1, &x, 1, NULL, 0, &gx), TD_OK);
      assert_null (td_grad (p.W));
      assert_null (td_grad (x));
      assert_int_equal (td_read (gx, got, sizeof got), TD_OK);
      td_backward (sum, 0);
      copy_grad (x, want);
      assert_memory_equal (got, want, sizeof got);
    }
}

static void
forget__does_not_need_results_that_died (void **unused)
{
  TD_SCOPE ("test")
    {
      TdVar *x = leaf (TD_SHAPE (N, D), "x"), *y[2] = { NULL };
      Model p = model_new ();
      float gx[N * D], twice[N * D];

      TD_SCOPE ("results")
        {
          td_forget (block, &p, &x, 1, y, 2);
          td_scope_yield (y[1]); /* x squared */
        }
      assert_int_equal (td_backward (td_sum (y[1]), 0), TD_OK);
      copy_grad (x, gx);
      assert_int_equal (td_read (td_mul_scalar (x, 2), twice, sizeof twice), TD_OK);
      assert_memory_equal (gx, twice, sizeof gx);
    }
}

static void
expect_error (TdStatus got, const char *text)
{
  assert_int_equal (got, TD_ERR_STATE);
  assert_non_null (td_error ());
  assert_contains (td_error ()->message, text);
  td_error_clear ();
}

static void
forget__says_what_it_cannot_do (void **unused)
{
  const float other[N * D] = { 1 };

  TD_SCOPE ("test")
    {
      TdVar *x = leaf (TD_SHAPE (N, D), "x"), *y;
      Model p = model_new ();

      td_forget (block, &p, &x, 1, &y, 1);
      expect_error (td_backward (td_sum (y), TD_DOUBLE_BACKPROP),
                    "forget: no double backprop through a forgotten function expected");
      p.widen = p.n_runs + 1;
      td_forget (block, &p, &x, 1, &y, 1);
      expect_error (td_backward (td_sum (y), 0),
                    "got output 0 of (6, 5) first and (30) in backward");
      p.widen = 0;
      td_forget (block, &p, &x, 1, &y, 1);
      td_write (x, other, sizeof other);
      expect_error (td_backward (td_sum (y), 0), "input 0 was kept for backward");
      assert_int_equal (td_forget (NULL, &p, &x, 1, &y, 1), TD_ERR_ARG);
      assert_true (td_poisoned (y));
      td_error_clear ();
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    tidy_test (forget__drops_the_same_and_gives_the_same_gradients),
    tidy_test (forget__writes_running_statistics_once),
    tidy_test (forget__keeps_its_inputs_and_outputs_only),
    tidy_test (forget__nests),
    tidy_test (forget__reaches_parameters_when_its_input_wants_nothing),
    tidy_test (forget__leaves_own_gradients_alone_in_grad_of),
    tidy_test (forget__does_not_need_results_that_died),
    tidy_test (forget__says_what_it_cannot_do),
  };

  return run_with_engine (tests);
}
