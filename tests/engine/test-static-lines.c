/* The operations of a link that is a static function have no line of their own: theirs is that
 * of its call, as without the mark, whichever line calls it.
 *
 * SPDX-License-Identifier: MIT */
#include "quiet-observer.h"
#include "static-rig.h"

#include "compute/core/core.h"

#include <stdlib.h>
#include <string.h>

/* How many operations, forward and backward, were seen at which line. */
typedef struct
{
  TdObserver observer; /* first */
  int n_forward[2000], n_backward[2000], n_without, n_replayed;
} Lines;

static void
count_line (TdObserver *o, const TdEvent *e)
{
  Lines *l = (Lines *)(void *)o;

  l->n_replayed += (e->flags & TD_EVENT_REPLAYED) != 0;
  if (e->site == NULL)
    l->n_without++;
  else if (strstr (e->site->file, "test-static-lines.c") != NULL && e->site->line < 2000)
    (e->phase == TD_PHASE_FORWARD ? l->n_forward : l->n_backward)[e->site->line]++;
}

static TdLink *
block_new (void)
{
  TdLink *block = td_sequential_new ("block");

  td_linear_new (block, "l1", 5, 7);
  td_sequential_append (block, td_relu);
  td_linear_new (block, "l2", 7, 3);
  return block;
}

/* Calls at two lines in turn; returns the lines. */
static void
call_in_turn (TdLink *block, int n, int lines[2])
{
  for (int i = 0; i < n; i++)
    TD_SCOPE ("call")
      {
        TdVar *x = some (TD_SHAPE (4, 5), (unsigned)i), *y;

        if (i % 2 == 0)
          {
            lines[0] = __LINE__ + 1;
            y = td_link (block, x);
          }
        else
          {
            lines[1] = __LINE__ + 1;
            y = td_link (block, x);
          }
        td_backward (sum_of_squares (y), 0);
      }
}

static Lines
lines_of (bool marked, TdStaticOpt options, int lines[2])
{
  Lines *l = calloc (1, sizeof *l), seen;
  TdLink *block = block_new ();

  if (marked)
    td_link_set_static_at (block, options, NULL);
  l->observer = quiet_observer;
  l->observer.after_op = count_line;
  td__engine.observer = &l->observer;
  call_in_turn (block, 12, lines);
  td__engine.observer = NULL;
  if (marked)
    assert_int_equal (td_static_info (td_link_static (block)).n_differences, 0);
  seen = *l;
  free (l);
  return seen;
}

static void
assert_same_lines (TdStaticOpt options, bool replayed)
{
  int lines[2], marked[2];
  const Lines code = lines_of (false, options, lines), found = lines_of (true, options, marked);

  assert_int_equal (lines[0], marked[0]);
  assert_true (code.n_forward[lines[0]] >= 18); /* three operations in six calls */
  assert_int_equal (code.n_replayed, 0);
  assert_int_equal (found.n_without, code.n_without);
  assert_int_equal (found.n_replayed > 0, replayed);
  for (int k = 0; k < 2; k++)
    {
      if (options.verify > 0) /* which runs code and schedule */
        assert_true (found.n_forward[lines[k]] >= code.n_forward[lines[k]]);
      else
        assert_int_equal (found.n_forward[lines[k]], code.n_forward[lines[k]]);
      assert_int_equal (found.n_backward[lines[k]] > 0, code.n_backward[lines[k]] > 0);
    }
}

static void
lines__of_a_marked_link_are_those_of_its_calls (void **state)
{
  TdStaticOpt options = td_static_options ();

  (void)state;
  options.fuse = options.batch = false;
  options.verify = 0;
  assert_same_lines (options, true);
  options.verify = 3;
  assert_same_lines (options, true);
}

static void
lines__of_a_marked_link_are_there_without_a_schedule (void **state)
{
  (void)state;
  TD_USING (use_static_graph, 0)
    assert_same_lines (td_static_options (), false);
}

/* --- what is said of one --- */

static void
line__of_a_call_is_in_the_error_of_a_marked_link (void **state)
{
  TdLink *block = block_new ();
  int line;

  (void)state;
  td_link_set_static (block, .verify = 0);
  TD_SCOPE ("equal")
    td_link (block, some (TD_SHAPE (4, 5), 1));
  TD_SCOPE ("wrong")
    {
      line = __LINE__ + 1;
      td_link (block, some (TD_SHAPE (4, 6), 1));
    }
  assert_int_equal (td_error ()->status, TD_ERR_SHAPE);
  assert_non_null (td_error ()->site);
  assert_int_equal (td_error ()->site->line, line);
  td_error_clear ();
}

/* Rows that there are not, of a replay: by code at two lines, statically and by a mark. */
static void
error__of_a_replay_has_the_line_and_the_link_of_its_operation (void **state)
{
  TdLink *embed = td_embed_id_new ((TdLink *)NULL, "embed", 5, 4);

  (void)state;
  for (int marked = 0; marked < 2; marked++)
    {
      if (marked)
        td_link_set_static (embed, .verify = 0);
      for (int i = 0; i < 8; i++)
        TD_SCOPE ("call")
          {
            const int32_t rows[3] = { 0, 1, i < 6 ? 2 : 5 };
            TdVar *x = td_reshape (td_tensor (TD_I32, TD_SHAPE (3), rows), TD_SHAPE (3)), *y;
            const char *own = __FILE__;
            int line;

            if (i % 2 == 0)
              {
                line = __LINE__ + 1;
                y = td_link (embed, x);
              }
            else
              {
                line = __LINE__ + 1;
                y = td_link (embed, x);
              }
            if (i < 6)
              {
                td_backward (td_sum (y), 0);
                continue;
              }
            assert_non_null (td_error ());
            assert_non_null (strstr (td_error ()->message, "(embed, "));
            assert_int_equal (td_error ()->site->line, line);
            assert_string_equal (td_error ()->site->file, own);
            td_error_clear ();
          }
      if (marked)
        assert_true (td_static_info (td_link_static (embed)).n_replays > 3);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (lines__of_a_marked_link_are_those_of_its_calls),
    engine_test (lines__of_a_marked_link_are_there_without_a_schedule),
    engine_test (line__of_a_call_is_in_the_error_of_a_marked_link),
    engine_test (error__of_a_replay_has_the_line_and_the_link_of_its_operation),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
