/* What a function is told: options and their defaults, the mark on a link, nesting, the end of
 * a forward pass, what is said on stderr, and what is refused.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- defaults and wrong values --- */

static void
options__have_the_documented_defaults (void **state)
{
  TdStaticOpt o = td_static_options ();

  (void)state;
  assert_true (o.minimize_cache_size);
  assert_false (o.force_test_define_by_run);
  assert_int_equal (o.verbosity_level, 0);
  assert_false (o.enable_double_backprop);
  assert_int_equal (o.verify, -1);
  assert_true (o.prune && o.fold && o.cse && o.fuse && o.in_place && o.plan && o.cuda_graph);
  assert_false (o.strict);
  assert_int_equal (o.cache_bytes, 0);
  assert_true (td_config ()->use_static_graph);
}

static void
options__out_of_range_are_refused (void **state)
{
  Net net = net_new ();

  (void)state;
  assert_null (td_static_new (net_forward, &net, .verify = -2));
  said (TD_ERR_ARG);
  assert_null (td_static_new (net_forward, &net, .verbosity_level = 3));
  assert_non_null (strstr (said (TD_ERR_ARG), "0 to 2 expected"));
  assert_null (td_static_new (net_forward, &net, .verbosity_level = -1));
  said (TD_ERR_ARG);
  assert_null (td_static_new (NULL, &net));
  assert_non_null (strstr (said (TD_ERR_ARG), "code of the function"));
  td_static_code (NULL, NULL);
  said (TD_ERR_ARG);
  td_static_watch (NULL, "x", &net, 4);
  said (TD_ERR_ARG);
}

/* --- modes --- */

static void
options__force_test_define_by_run_runs_the_code_in_test_mode (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net, .force_test_define_by_run = true);
  TdVar *x = some (TD_SHAPE (4, 5), 1);

  (void)state;
  for (int i = 0; i < 3; i++)
    TD_SCOPE ("training")
      td_static_call1 (s, x);
  assert_int_equal (net.n_code, 1);
  TD_USING (train, 0)
    for (int i = 0; i < 3; i++)
      td_static_call1 (s, x);
  assert_int_equal (net.n_code, 4);
  TD_NO_BACKPROP
    for (int i = 0; i < 3; i++)
      td_static_call1 (s, x);
  assert_int_equal (net.n_code, 7);
  assert_int_equal (td_static_info (s).n_traces, 1);
}

static void
options__in_test_mode_one_instance_serves_all_calls (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net);
  TdVar *y[6];
  double then[6][12];

  (void)state;
  TD_USING (train, 0)
    TD_NO_BACKPROP
      for (int i = 0; i < 6; i++)
        {
          y[i] = td_static_call1 (s, some (TD_SHAPE (4, 5), (unsigned)i));
          memcpy (then[i], numbers (y[i]), sizeof then[i]);
        }
  assert_int_equal (td_static_info (s).n_instances, 1);
  assert_int_equal (td_static_info (s).n_replays, 5);
  for (int i = 0; i < 6; i++)
    assert_memory_equal (then[i], numbers (y[i]), sizeof then[i]);
}

static void
options__use_static_graph_off_makes_every_mark_a_no_op (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net);
  TdVar *x = some (TD_SHAPE (4, 5), 1);

  (void)state;
  td_config_set (use_static_graph, 0);
  for (int i = 0; i < 3; i++)
    td_static_call1 (s, x);
  assert_int_equal (net.n_code, 3);
  assert_int_equal (td_static_info (s).state, TD_STATIC_OFF);
  assert_int_equal (td_static_info (s).n_traces, 0);
  TD_USING (use_static_graph, 1)
    for (int i = 0; i < 3; i++)
      TD_SCOPE ("on")
        td_static_call1 (s, x);
  assert_int_equal (net.n_code, 4);
  assert_int_equal (td_static_info (s).state, TD_STATIC_STATIC);
}

/* --- the end of a forward pass --- */

static void
warm_up (TdStatic *s)
{
  for (int i = 0; i < 2; i++)
    TD_SCOPE ("warm")
      td_backward (sum_of_squares (td_static_call1 (s, some (TD_SHAPE (8, 5), 1))), 0);
}

static void
end_forward__lets_instances_go_and_backward_into_them_is_an_error (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net);
  TdVar *x = some (TD_SHAPE (8, 5), 1), *first, *second;
  const char *text;

  (void)state;
  warm_up (s);
  TD_SCOPE ("kept")
    {
      first = td_static_call1 (s, x);
      second = td_static_call1 (s, x);
      assert_int_equal (td_static_info (s).n_instances_awaiting, 2);
      td_static_end_forward (s);
      assert_int_equal (td_static_info (s).n_instances_awaiting, 0);
      td_static_call1 (s, x);
      td_static_call1 (s, x); /* takes the memory of the two */
      assert_int_equal (td_static_info (s).n_instances, 2);
      assert_int_equal (
          td_backward (td_add (sum_of_squares (first), sum_of_squares (second)), 0),
          TD_ERR_STATE);
    }
  text = said (TD_ERR_STATE);
  assert_non_null (strstr (text, "memory of this call was taken by the one at"));
  assert_non_null (strstr (text, "test-static-options.c:"));
  td_static_end_forward (NULL);
}

static void
end_forward__leaves_a_backward_that_comes_before_the_next_call_right (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net);

  (void)state;
  warm_up (s);
  for (int i = 0; i < 10; i++)
    TD_SCOPE ("ended")
      {
        td_static_call1 (s, some (TD_SHAPE (8, 5), 1));
        td_static_end_forward (s);
        assert_int_equal (td_static_info (s).n_instances, 1);
      }
}

/* --- nesting --- */

typedef struct
{
  TdStatic *inner;
} Outer;

static void
square (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_mul (in[0], in[0]);
}

static void
around (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_tanh (td_static_call1 (((Outer *)self)->inner, in[0]));
}

static void
nesting (void *user)
{
  Outer o = { td_static_new (square, NULL, .fuse = false, .name = "inner") };
  TdStatic *s = td_static_new (around, &o, .fuse = false, .name = "outer");

  (void)user;
  for (unsigned i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        TdVar *x = td_variable (some (TD_SHAPE (3), i), "x"), *y = td_static_call1 (s, x);

        note (y);
        td_backward (td_sum (y), 0);
        note (td_grad (x));
      }
  expect_calls (s, 1, 3);
  if (is_static_run ())
    {
      assert_int_equal (td_static_info (s).n_steps, 2); /* the inner one's is among them */
      assert_int_equal (td_static_info (o.inner).n_schedules, 0);
    }
  td_static_free (o.inner);
  td_static_free (s);
}

static void
nesting__a_function_in_a_function_becomes_part_of_it (void **state)
{
  (void)state;
  run_both (nesting, NULL);
}

static void
nesting__is_an_error_in_strict_mode_that_names_both (void **state)
{
  Outer o = { td_static_new (square, NULL, .strict = true, .name = "inner") };
  TdStatic *s = td_static_new (around, &o, .name = "outer");
  const char *text;

  (void)state;
  assert_true (td_poisoned (td_static_call1 (s, some (TD_SHAPE (3), 1))));
  text = said (TD_ERR_STATE);
  assert_non_null (strstr (text, "inner"));
  assert_non_null (strstr (text, "outer"));
  assert_int_equal (td_static_info (s).n_schedules, 0);
}

/* --- a mark on a link --- */

static int n_block;

static TdStatus
block_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  (void)self;
  n_block++;
  out[0] = td_relu (td_link (td_link_child (link, "l"), in[0]));
  return td_poisoned (out[0]) ? TD_ERR_STATE : TD_OK;
}

static const TdLinkClass block_class = { .size = sizeof (TdLinkClass),
                                         .name = "Block",
                                         .self_bytes = sizeof (int),
                                         .forward = block_forward };

static void
marked (void *user)
{
  TdLink *root = td_chain_new ("root"), *block = td_link_new (&block_class, root, "block");
  TdStatic *s;

  (void)user;
  n_block = 0;
  td_linear_new (block, "l", 5, 4);
  fill_params (root, 6);
  assert_null (td_link_static (block));
  s = td_link_set_static (block, .fuse = false);
  assert_ptr_equal (s, td_link_static (block));
  for (unsigned i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        TdVar *y = td_link (block, some (TD_SHAPE (3, 5), i));

        note (y);
        td_cleargrads (root);
        td_backward (sum_of_squares (y), 0);
        note_link (root);
      }
  expect_calls (s, 1, 3);
  if (is_static_run ())
    assert_int_equal (n_block, 1);
  s = td_link_set_static (block, .fuse = false, .verify = 1); /* from the start */
  assert_ptr_equal (s, td_link_static (block));
  for (unsigned i = 0; i < 3; i++)
    TD_SCOPE ("call")
      note (td_link (block, some (TD_SHAPE (3, 5), i)));
  if (is_static_run ())
    assert_int_equal (td_static_info (s).n_verified, 2);
  td_static_free (s); /* takes the mark away */
  assert_null (td_link_static (block));
  note (td_link (block, some (TD_SHAPE (3, 5), 1)));
  td_link_set_static (block, .strict = true);
  td_link_free (root);
}

static void
mark__makes_calls_of_a_link_static_until_it_is_freed (void **state)
{
  (void)state;
  run_both (marked, NULL);
}

/* Marked beside, and within a function that has a schedule already. */
static void
calling_one (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_tanh (td_link (self, in[0]));
}

static void
marked_within (void *user)
{
  TdLink *l = td_linear_new (NULL, "l", 4, 4);
  TdStatic *outer = td_static_new (calling_one, l, .batch = false, .verify = 1);

  (void)user;
  fill_params (l, 6);
  for (unsigned i = 0; i < 9; i++)
    TD_SCOPE ("call")
      {
        TdVar *x = some (TD_SHAPE (2, 4), i), *y;

        if (i == 3)
          td_link_set_static (l, .batch = false);
        if (i == 6)
          td_static_free (td_link_static (l));
        assert_int_equal (td_static_call (outer, &x, 1, &y, 1), TD_OK);
        note (y);
      }
  if (is_static_run ())
    {
      assert_int_equal (td_static_info (outer).n_differences, 0);
      expect_miss (outer, "links", NULL);
    }
  td_static_free (outer);
  td_link_free (l);
}

static void
mark__of_a_link_that_a_function_calls_is_no_difference_of_its_code (void **state)
{
  (void)state;
  run_both (marked_within, NULL);
}

/* --- what is said --- */

static const char *
heard (void (*what) (int level), int level)
{
  static char text[4000];
  FILE *file = tmpfile ();
  int old = dup (2);
  size_t n;

  assert_non_null (file);
  fflush (stderr);
  dup2 (fileno (file), 2);
  what (level);
  fflush (stderr);
  dup2 (old, 2);
  close (old);
  rewind (file);
  n = fread (text, 1, sizeof text - 1, file);
  text[n] = '\0';
  fclose (file);
  return text;
}

static void
talk (int level)
{
  TdStatic *s = td_static_new (square, NULL, .verbosity_level = level, .name = "talker");

  for (int i = 0; i < 6; i++)
    TD_SCOPE ("call")
      td_static_call1 (s, some (TD_SHAPE (i < 4 ? 3 : 5), 1));
}

/* Five shapes in turn: each is traced, then it is seen that they come again, and those that
 * left are traced once more. */
static void
take_turns (int level)
{
  TdStatic *s = td_static_new (square, NULL, .verbosity_level = level, .name = "turns");

  for (int i = 0; i < 80; i++)
    TD_SCOPE ("call")
      td_static_call1 (s, some (TD_SHAPE (2 + i % 5), 1));
  assert_true (td_static_info (s).n_replays >= 70);
}

static void
options__shapes_in_turn_are_not_called_hopeless (void **state)
{
  const char *text = heard (take_turns, 0);

  (void)state;
  assert_non_null (strstr (text, "turns: is called with other shapes or modes in turn"));
  assert_null (strstr (text, "never replayed"));
}

typedef struct
{
  int n_plain, n_wrapped;
} Counters;

static void
count_one (void *user)
{
  ++*(int *)user;
}

static void
counting (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Counters *c = self;

  (void)n_in;
  (void)n_out;
  c->n_plain++;
  td_static_code (count_one, &c->n_wrapped);
  out[0] = td_item (in[1]) > 0 ? td_exp (in[0]) : td_neg (in[0]);
}

static Counters counters;

static void
count_calls (int level)
{
  TdStatic *s = td_static_new (counting, &counters, .verbosity_level = level,
                               .name = "counting", .self_bytes = sizeof counters);
  TdVar *in[] = { some (TD_SHAPE (3), 1), td_ones (TD_F32, TD_SHAPE (1)) }, *y;

  counters = (Counters){ 0, 0 };
  for (int i = 0; i < 6; i++)
    td_static_call (s, in, 2, &y, 1);
}

static int
count_lines (const char *text, const char *with)
{
  int n = 0;

  for (const char *at = text; (at = strstr (at, with)) != NULL; at++)
    n++;
  return n;
}

static void
verbosity__0_is_silent_1_tells_schedules_and_2_every_call (void **state)
{
  const char *text;

  (void)state;
  assert_string_equal (heard (talk, 0), "");
  text = heard (talk, 1);
  assert_int_equal (count_lines (text, "talker: traced"), 2);
  assert_int_equal (count_lines (text, "talker: scheduled"), 2);
  assert_int_equal (
      count_lines (text, "talker: is traced again: argument: argument 0 has shape"), 1);
  assert_int_equal (count_lines (text, "replayed"), 0);
  assert_int_equal (count_lines (heard (talk, 2), "talker: replayed"), 4);
}

static void
verbosity__1_names_memory_that_the_code_changes_itself (void **state)
{
  const char *text = heard (count_calls, 1);

  (void)state;
  assert_int_equal (counters.n_plain, 6); /* the code might read it */
  assert_int_equal (counters.n_wrapped, 6);
  assert_int_equal (count_lines (text, "counting: its code sets 2 bytes of self"), 6);
  assert_int_equal (count_lines (text, "counting: its code reads numbers at "), 6);
  assert_int_equal (count_lines (text, "memory of self changed at byte 0"), 5);
  assert_int_equal (count_lines (text, "by the code itself: td_static_code"), 5);
}

/* --- threads --- */

static void *
call_elsewhere (void *user)
{
  TdVar *y = NULL;

  td_static_call (user, &y, 0, &y, 1);
  return y;
}

static void
threads__only_the_engine_s_own_may_call (void **state)
{
  TdStatic *s = td_static_new (square, NULL);
  pthread_t thread;
  void *y;

  (void)state;
  assert_int_equal (pthread_create (&thread, NULL, call_elsewhere, s), 0);
  pthread_join (thread, &y);
  assert_true (td_poisoned (y));
  assert_null (td_error ()); /* another thread's mistake is told, and is not this one's */
  assert_int_equal (td_static_info (s).n_calls, 0);
  assert_int_equal (td_finish (), 1); /* but the program does not end well */
  td_init (NULL, NULL);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (options__have_the_documented_defaults),
    engine_test (options__out_of_range_are_refused),
    engine_test (options__force_test_define_by_run_runs_the_code_in_test_mode),
    engine_test (options__in_test_mode_one_instance_serves_all_calls),
    engine_test (options__use_static_graph_off_makes_every_mark_a_no_op),
    engine_test (end_forward__lets_instances_go_and_backward_into_them_is_an_error),
    engine_test (end_forward__leaves_a_backward_that_comes_before_the_next_call_right),
    engine_test (nesting__a_function_in_a_function_becomes_part_of_it),
    engine_test (nesting__is_an_error_in_strict_mode_that_names_both),
    engine_test (mark__makes_calls_of_a_link_static_until_it_is_freed),
    engine_test (mark__of_a_link_that_a_function_calls_is_no_difference_of_its_code),
    engine_test (options__shapes_in_turn_are_not_called_hopeless),
    engine_test (verbosity__0_is_silent_1_tells_schedules_and_2_every_call),
    engine_test (verbosity__1_names_memory_that_the_code_changes_itself),
    engine_test (threads__only_the_engine_s_own_may_call),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
