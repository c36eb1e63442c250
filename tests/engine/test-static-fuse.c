/* What the groups of element-by-element steps take in: operands that are rows of the others,
 * choices by a condition.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"
#include "compute/ops/ops.h"
#include "static/entry.h"

#include <string.h>

/* Scale and shift of every row, twice; in[0] (n, d), the others (d) or (1, d) or one number. */
static void
rows_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *y = in[0];

  (void)self;
  (void)n_out;
  for (int k = 1; k < n_in; k++)
    y = k % 3 == 0   ? td_tanh (td_sub (in[k], y))
        : k % 3 == 1 ? td_mul (y, in[k])
                     : td_add (in[k], y);
  out[0] = y;
}

/* Rows that are shorter than a tile, longer, and no divisor of it; more than one piece. */
static void
fuse__rows_are_repeated_inside_a_group (void **state)
{
  static const struct
  {
    int64_t n, d;
    int n_rows;
    uint32_t n_groups;
  } cases[] = { { 300, 7, 3, 1 }, { 3, 11000, 4, 1 }, { 700, 130, 4, 1 },
                { 5, 513, 1, 0 }, { 9, 700, 7, 2 },   { 1, 40, 3, 1 } };

  (void)state;
  td_test_needs_cpu ("it alone has kernels of fused groups");
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
    {
      const int64_t n = cases[c].n, d = cases[c].d;
      const int n_in = cases[c].n_rows + 2; /* the last is one number */
      TdStatic *s = td_static_new (rows_code, NULL);
      TdVar *x[2][9];

      for (int which = 0; which < 2; which++)
        for (int k = 0; k < n_in; k++)
          x[which][k] = td_variable (td_retain (some (k == 0          ? TD_SHAPE (n, d)
                                                      : k == n_in - 1 ? TD_SHAPE (1)
                                                      : k % 2 == 0    ? TD_SHAPE (1, d)
                                                                      : TD_SHAPE (d),
                                                      (unsigned)k)),
                                     "x");
      TD_ITERATIONS (i, 3)
        {
          TdVar *want, *got, *seed = some (TD_SHAPE (n, d), 77);

          for (int k = 0; k < n_in; k++)
            {
              td_cleargrad (x[0][k]);
              td_cleargrad (x[1][k]);
            }
          rows_code (NULL, x[0], n_in, &want, 1);
          td_static_call (s, x[1], n_in, &got, 1);
          assert_bits (want, got);
          td_set_grad (want, seed);
          td_backward (want, 0);
          td_set_grad (got, seed);
          td_backward (got, 0);
          for (int k = 0; k < n_in; k++)
            assert_bits (td_grad (x[0][k]), td_grad (x[1][k]));
        }
      if (cases[c].n_groups > 0)
        {
          uint32_t n_forward = 0;
          const TdPlan *p = plan_of (s);

          for (uint32_t k = 0; k < p->s->forward.n; k++)
            n_forward += p->s->forward.steps[k].kind == TD_STEP_GROUP;
          assert_int_equal (n_forward, cases[c].n_groups);
        }
      td_static_free (s);
      for (int k = 0; k < 2 * n_in; k++)
        td_release (x[k / n_in][k % n_in]);
    }
}

/* A column, or an axis in the middle, is no row: it runs by itself. */
static void
columns_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_tanh (td_add (td_square (in[0]), in[1]));
}

static void
fuse__columns_are_not_taken_for_rows (void **state)
{
  TdStatic *s = td_static_new (columns_code, NULL, .minimize_cache_size = false);
  const TdShape shapes[][2] = { { TD_SHAPE (6, 5), TD_SHAPE (6, 1) },
                                { TD_SHAPE (5, 5), TD_SHAPE (5, 1) },
                                { TD_SHAPE (4, 3, 5), TD_SHAPE (4, 1, 5) },
                                { TD_SHAPE (4, 3, 5), TD_SHAPE (1, 3, 1) } };

  (void)state;
  for (size_t c = 0; c < sizeof shapes / sizeof shapes[0]; c++)
    TD_ITERATIONS (i, 3)
      {
        TdVar *in[] = { some (shapes[c][0], 5), some (shapes[c][1], 6) }, *want, *got;

        columns_code (NULL, in, 2, &want, 1);
        td_static_call (s, in, 2, &got, 1);
        assert_bits (want, got);
        if (i > 0)
          assert_int_equal (td_static_info (s).n_fused, 0);
      }
  td_static_free (s);
}

/* Choices by a condition as wide as the numbers, their backward, with rows and single numbers:
 * in[2] (d), in[3] one number, in[4] zeros and ones. */
static void
choices_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *y = td_maximum (td_mul (in[0], in[1]), in[2]);

  (void)self;
  (void)n_in;
  (void)n_out;
  y = td_where (in[4], td_tanh (y), in[3]);
  y = td_where (in[4], in[2], td_minimum (y, in[1]));
  out[0] = td_where (in[2], td_neg (y), y);
}

static void
fuse__choices_are_part_of_a_group (void **state)
{
  static const int64_t sizes[][2] = { { 40, 9 }, { 3, 3000 }, { 400, 130 } };

  (void)state;
  td_test_needs_cpu ("it alone has kernels of fused groups");
  for (size_t c = 0; c < sizeof sizes / sizeof sizes[0]; c++)
    {
      const int64_t n = sizes[c][0], d = sizes[c][1];
      const TdShape shapes[] = { TD_SHAPE (n, d), TD_SHAPE (n, d), TD_SHAPE (d), TD_SHAPE (1) };
      TdStatic *s = td_static_new (choices_code, NULL);
      TdVar *in[2][5], *mask = NULL;
      uint32_t n_chosen = 0;
      const TdPlan *p;

      TD_SCOPE (NULL)
        mask = td_retain (td__less (some (shapes[0], 8), some (shapes[0], 9)));
      for (int which = 0; which < 2; which++)
        for (int k = 0; k < 5; k++)
          in[which][k]
              = k == 4 ? mask : td_variable (td_retain (some (shapes[k], (unsigned)k)), "x");
      TD_ITERATIONS (i, 3)
        {
          TdVar *want, *got, *seed = some (shapes[0], 77);

          for (int k = 0; k < 8; k++)
            td_cleargrad (in[k / 4][k % 4]);
          choices_code (NULL, in[0], 5, &want, 1);
          td_static_call (s, in[1], 5, &got, 1);
          assert_bits (want, got);
          td_set_grad (want, seed);
          td_backward (want, 0);
          td_set_grad (got, seed);
          td_backward (got, 0);
          for (int k = 0; k < 4; k++)
            assert_bits (td_grad (in[0][k]), td_grad (in[1][k]));
        }
      p = plan_of (s);
      for (uint32_t g = 0; g < p->n_groups; g++)
        for (uint32_t j = 0; j < p->groups[g].n_members; j++)
          n_chosen += strcmp (p->groups[g].members[j].cls->name, "where") == 0;
      assert_true (n_chosen >= 6); /* three of the forward, and of its backward */
      td_static_free (s);
      for (int k = 0; k < 8; k++)
        td_release (in[k / 4][k % 4]);
      td_release (mask);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (fuse__rows_are_repeated_inside_a_group),
    engine_test (fuse__columns_are_not_taken_for_rows),
    engine_test (fuse__choices_are_part_of_a_group),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
