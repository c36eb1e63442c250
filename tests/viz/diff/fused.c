/* A dynamic and a static run of one model: fused groups, removed operations, the mode.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "diff/td-diff.h"
#include "td-synthetic.h"
#include "td-test.h"

/* What a schedule may make of two layers: pairs fused, a reshape gone. */
static TdIteration *
network (gboolean is_static)
{
  TdSynthetic *s = td_synthetic_new (3);
  const gint64 *shape = TD_SHAPE (8, 6, 14, 14);
  guint x = td_synthetic_input (s, "x", shape), h = x, skip;

  for (guint i = 0; i < 2; i++)
    {
      const char *W = i == 0 ? "net/conv1/W" : "net/conv2/W";

      td_synthetic_enter_link (s, i == 0 ? "net/conv1" : "net/conv2", 10 + i);
      if (is_static)
        h = TD_OP (s, "convolution_2d + relu", 20 + i, shape, h,
                   td_synthetic_parameter (s, W, shape));
      else
        {
          h = TD_OP (s, "convolution_2d", 20 + i, shape, h,
                     td_synthetic_parameter (s, W, shape));
          h = TD_OP (s, "relu", 20 + i, shape, h);
        }
      td_synthetic_leave (s);
    }
  skip = h;
  if (!is_static)
    h = TD_OP (s, "reshape", 30, shape, h);
  h = TD_OP (s, "tanh", 31, shape, h);
  TD_OP (s, "add", 32, shape, h, skip);
  return td_synthetic_finish (s);
}

static void
set_replayed (TdIteration *it)
{
  TdTapeEvent *events = (TdTapeEvent *)td_iteration_get_tape (it)->events;

  for (guint e = 0; e < td_iteration_get_n_events (it); e++)
    events[e].flags |= TD_TAPE_EVENT_REPLAYED;
}

static void
assert_group (const TdDiff *d, guint item, guint side, guint from, guint n, guint other)
{
  const TdDiffPair *p = &d->pairs[d->items[item]];
  guint got;
  const guint32 *events = td_diff_get_events (d, p, side, &got);

  assert_int_equal (p->kind, TD_DIFF_FUSED);
  assert_int_equal (got, n);
  for (guint i = 0; i < n; i++)
    {
      assert_int_equal (events[i], from + i);
      assert_int_equal (td_diff_get_pair (d, side, (gint)events[i]), d->items[item]);
    }
  events = td_diff_get_events (d, p, 1 - side, &got);
  assert_int_equal (got, 1);
  assert_int_equal (events[0], other);
}

static void
diff__of_dynamic_and_static_shows_fused_groups (void **state)
{
  g_autoptr (TdIteration) a = network (FALSE);
  g_autoptr (TdIteration) b = network (TRUE);

  set_replayed (b);
  g_autoptr (TdDiff) d = td_diff_new (a, b, NULL, NULL);
  g_autofree char *sentence = td_diff_sentence (d),
                  *title = td_diff_dup_title (d, &d->pairs[d->items[0]]),
                  *json = td_diff_print (d, "json");

  assert_int_equal (d->n_items, 3);
  assert_group (d, 0, TD_DIFF_A, 0, 2, 0);
  assert_group (d, 1, TD_DIFF_A, 2, 2, 1);
  assert_int_equal (d->pairs[d->items[2]].kind, TD_DIFF_REMOVED);
  assert_int_equal (d->pairs[d->items[2]].event[TD_DIFF_A], 4);
  assert_string_equal (title, "convolution_2d + relu");
  assert_contains (sentence, "1 operation removed, 2 fused");
  assert_contains (json, "\"events_a\": [");
  assert_int_equal (d->totals[TD_DIFF_A].n_static, 0);
  assert_int_equal (d->totals[TD_DIFF_B].n_static, 4);
  /* times and bytes of a group are those of its members */
  const TdTapeIteration *t = td_iteration_get_tape (a);
  assert_int_equal (d->pairs[d->items[0]].ns[TD_DIFF_A],
                    t->event_duration_ns[0] + t->event_duration_ns[1]);
  /* and the other way round */
  g_autoptr (TdDiff) back = td_diff_new (b, a, NULL, NULL);
  assert_int_equal (back->n_items, 3);
  assert_group (back, 0, TD_DIFF_B, 0, 2, 0);
  assert_int_equal (back->pairs[back->items[2]].kind, TD_DIFF_ADDED);
}

static void
diff__of_modes_alone_is_no_difference (void **state)
{
  g_autoptr (TdIteration) a = network (FALSE);
  g_autoptr (TdIteration) b = network (FALSE);

  set_replayed (b);
  g_autoptr (TdDiff) d = td_diff_new (a, b, NULL, NULL);
  assert_true (td_diff_is_same (d));
  for (guint i = 0; i < d->n_pairs; i++)
    {
      assert_int_equal (d->pairs[i].kind, TD_DIFF_SAME);
      assert_int_equal (d->pairs[i].aspects, TD_DIFF_MODE);
    }
  assert_int_equal (d->n_pairs, 7);
  assert_int_equal (d->totals[TD_DIFF_B].n_static, 7);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (diff__of_dynamic_and_static_shows_fused_groups),
    td_test (diff__of_modes_alone_is_no_difference),
  };

  return cmocka_run_group_tests_name ("fused", tests, NULL, NULL);
}
