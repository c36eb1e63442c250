/* Small models that ranks train, and their numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "models.h"

#include <math.h>
#include <string.h>

TdLink *
mlp (const char *name, int64_t in_size, unsigned seed)
{
  TdLink *model = td_sequential_new (name);

  td_set_seed (seed);
  td_linear_new (model, "l1", in_size, 16);
  td_sequential_append (model, td_tanh);
  td_linear_new (model, "l2", 16, 4);
  return model;
}

static void
add_numbers (const char *path, TdVar *v, void *user)
{
  Numbers *all = user;

  (void)path;
  assert_true (all->n + (size_t)td_size (v) <= ROOM);
  assert_int_equal (td_read (v, all->numbers + all->n, (size_t)td_size (v) * sizeof (float)),
                    TD_OK);
  all->n += (size_t)td_size (v);
}

Numbers
params_of (TdLink *link)
{
  Numbers all = { .n = 0 };

  td_link_each_param (link, add_numbers, &all);
  return all;
}

void
assert_params_same_on_all_ranks (TdLink *link)
{
  const Numbers all = params_of (link);

  assert_same_on_all_ranks (all.numbers, all.n * sizeof (float));
}

void
assert_params_near (TdLink *a, TdLink *b, double tolerance)
{
  const Numbers x = params_of (a), y = params_of (b);

  assert_int_equal (x.n, y.n);
  for (size_t i = 0; i < x.n; i++)
    if (!(fabs ((double)x.numbers[i] - (double)y.numbers[i]) <= tolerance))
      fail_msg ("rank %d, number %zu: %.9g, %.9g expected", me, i, (double)x.numbers[i],
                (double)y.numbers[i]);
}

void
train_step (TdLink *model, TdOpt *opt, int first, int end, int step)
{
  TD_SCOPE ("step")
    {
      TdVar *xs[MOST], *ts[MOST], *loss;

      for (int r = first; r < end; r++)
        {
          xs[r - first] = numbers_of (r, TD_F32, TD_SHAPE (BATCH, 8), (unsigned)step);
          ts[r - first] = numbers_of (r, TD_F32, TD_SHAPE (BATCH, 4), (unsigned)step + 500);
        }
      loss = td_mean_squared_error (td_link (model, td_concat (xs, end - first, 0)),
                                    td_concat (ts, end - first, 0));
      td_cleargrads (model);
      assert_int_equal (td_backward (loss, 0), TD_OK);
      assert_int_equal (td_opt_update (opt), TD_OK);
    }
}
