/* What the code of a static function asks the engine for, besides arrays: as code, whatever
 * changes between calls.  It has no guard, so that the function is not replayed, or that of a
 * variable that the code uses.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include <string.h>

typedef struct Question Question;

typedef struct
{
  const Question *question;
  TdLink *net;
  TdOpt *opt;
  TdVar *kept; /* the program's */
} World;

struct Question
{
  const char *call;
  double (*ask) (const World *w);
  void (*change) (World *w, int iteration);
  bool guarded; /* it is replayed all the same */
};

static double
lr (const World *w)
{
  return td_opt_lr (w->opt);
}
static double
momentum (const World *w)
{
  return td_opt_hyper (w->opt, NULL, "momentum");
}
static double
count (const World *w)
{
  return (double)td_opt_count (w->opt);
}
static double
epoch (const World *w)
{
  return (double)td_opt_epoch (w->opt);
}
static double
has_state (const World *w)
{
  return td_opt_state (w->opt, "W", "v") != NULL;
}
static double
is_updated (const World *w)
{
  return td_link_update_enabled (w->net);
}
static double
has_gradient (const World *w)
{
  return td_grad (td_link_param (w->net, "W")) != NULL;
}
static double
reported (const World *w)
{
  (void)w;
  return td_observation_get (NULL, "asked").last;
}
static double
n_axes (const World *w)
{
  return td_ndim (w->kept);
}
static double
n_elements (const World *w)
{
  return (double)td_size (w->kept);
}
static double
rows (const World *w)
{
  return (double)td_shape (w->kept).dim[0];
}
static double
dtype (const World *w)
{
  return td_dtype (w->kept);
}

static void
nothing (World *w, int iteration)
{
  (void)w;
  (void)iteration;
}
static void
set_lr (World *w, int iteration)
{
  td_opt_set_lr (w->opt, iteration == 6 ? 0.5 : 0.125);
}
static void
set_momentum (World *w, int iteration)
{
  td_opt_set_hyper (w->opt, NULL, "momentum", iteration == 6 ? 0.5 : 0.875);
}
static void
new_epoch (World *w, int iteration)
{
  if (iteration == 6)
    td_opt_new_epoch (w->opt);
}
static void
freeze (World *w, int iteration)
{
  if (iteration == 6)
    td_link_disable_update (w->net);
  else
    td_link_enable_update (w->net);
}
static void
clear (World *w, int iteration)
{
  if (iteration % 3 == 0)
    td_cleargrads (w->net);
}
static void
report (World *w, int iteration)
{
  (void)w;
  td_report ("asked", iteration);
}
static void
keep_another (World *w, int iteration)
{
  td_release (w->kept);
  w->kept = td_retain (iteration == 6 ? td_zeros (TD_F64, TD_SHAPE (5, 2))
                                      : td_zeros (TD_F32, TD_SHAPE (4)));
}

static const Question questions[] = {
  { "td_opt_lr", lr, set_lr, false },
  { "td_opt_hyper", momentum, set_momentum, false },
  { "td_opt_count", count, nothing, false },
  { "td_opt_epoch", epoch, new_epoch, false },
  { "td_opt_state", has_state, nothing, false },
  { "td_link_update_enabled", is_updated, freeze, false },
  { "td_grad", has_gradient, clear, false },
  { "td_observation_get", reported, report, false },
  { "td_ndim", n_axes, keep_another, true },
  { "td_size", n_elements, keep_another, true },
  { "td_shape", rows, keep_another, true },
  { "td_dtype", dtype, keep_another, true },
};

static void
asking (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const World *w = self;

  (void)n_in;
  (void)n_out;
  out[0] = td_mul_scalar (td_link (w->net, in[0]), 1 + w->question->ask (w) / 8);
}

static void
assert_replayed_or_said (const World *w, const TdStatic *s)
{
  if (!is_static_run ())
    return;
  if (w->question->guarded)
    assert_true (td_static_info (s).n_replays > 3);
  else
    {
      assert_int_equal (td_static_info (s).n_replays, 0);
      assert_non_null (strstr (td_static_last_miss (s), w->question->call));
    }
  assert_int_equal (td_static_info (s).n_differences, 0);
}

static void
ask (void *user)
{
  World w = { .question = user };
  TdStatic *s;

  w.net = td_linear_new (NULL, "l", 4, 3);
  fill_params (w.net, 5);
  w.opt = td_momentum_sgd_new (w.net, .lr = 0.125);
  TD_SCOPE ("kept")
    w.kept = td_retain (td_zeros (TD_F32, TD_SHAPE (4)));
  td_report ("asked", 1);
  s = td_static_new (asking, &w, .batch = false, .verify = 0);
  for (int i = 0; i < 12; i++)
    TD_SCOPE ("iteration")
      {
        TdVar *x = some (TD_SHAPE (2, 4), (unsigned)i), *y;

        if (w.question->change != clear)
          td_cleargrads (w.net);
        if (i == 6 || i == 7)
          w.question->change (&w, i);
        assert_int_equal (td_static_call (s, &x, 1, &y, 1), TD_OK);
        note (y);
        assert_int_equal (td_backward (td_sum (td_mul (y, y)), 0), TD_OK);
        assert_int_equal (td_opt_update (w.opt), TD_OK);
        note_link (w.net);
      }
  assert_replayed_or_said (&w, s);
  td_static_free (s);
  td_release (w.kept);
  td_opt_free (w.opt);
  td_link_free (w.net);
}

static void
questions__have_the_answers_of_the_code (void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
    {
      run_doing (questions[i].call, (int)i);
      run_both (ask, (void *)(uintptr_t)&questions[i]);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (questions__have_the_answers_of_the_code),
  };

  return cmocka_run_group_tests_name ("static asked", tests, NULL, NULL);
}
