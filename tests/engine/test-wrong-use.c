/* What is called wrong: handles and links that are gone, nothing where something is expected,
 * other threads, an end without td_finish, numbers that are none.  Each case is a child
 * process: an error, said on one line, and never a signal.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck-op.h>

#include "wrong-child.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- nothing, freed, finished: every function of a table with every wrong argument --- */

typedef struct
{
  TdVar *v;
  TdLink *link;
} Wrong;

static float room[64];

#define OF_VAR(name, expression)                                                               \
  static void var_##name (const Wrong *w)                                                      \
  {                                                                                            \
    expression;                                                                                \
  }
#define OF_LINK(name, expression)                                                              \
  static void link_##name (const Wrong *w)                                                     \
  {                                                                                            \
    expression;                                                                                \
  }
static TdVar *out;

OF_VAR (read, td_read (w->v, room, sizeof room))
OF_VAR (write, td_write (w->v, room, sizeof room))
OF_VAR (item, td_item (w->v))
OF_VAR (mean_of, td_mean_of (w->v))
OF_VAR (shape, td_shape (w->v))
OF_VAR (size, td_size (w->v))
OF_VAR (ndim, td_ndim (w->v))
OF_VAR (dtype, td_dtype (w->v))
OF_VAR (device, td_device (w->v))
OF_VAR (grad, td_grad (w->v))
OF_VAR (set_grad, td_set_grad (w->v, NULL))
OF_VAR (cleargrad, td_cleargrad (w->v))
OF_VAR (retain, td_retain (w->v))
OF_VAR (variable, td_variable (w->v, "v"))
OF_VAR (name, td_name (w->v, "v"))
OF_VAR (unchain, td_unchain (w->v))
OF_VAR (unchain_backward, td_unchain_backward (w->v))
OF_VAR (backward, td_backward (w->v, 0))
OF_VAR (backward_all, td_backward_all (&w->v, 1, NULL, 0))
OF_VAR (add, td_add (w->v, w->v))
OF_VAR (relu, td_relu (w->v))
OF_VAR (concat, td_concat (&w->v, 1, 0))
OF_VAR (stack, td_stack (&w->v, 1, 0))
OF_VAR (zeros_like, td_zeros_like (w->v))
OF_VAR (to_device, td_to_device (w->v, td_device_get ("cpu")))
OF_VAR (save_npy, td_save_npy (td_test_tmp ("v.npy"), w->v))
OF_VAR (save_dot, td_save_dot (w->v, td_test_tmp ("v.dot"), NULL))
OF_VAR (linear, td_linear (w->v, w->v, NULL))
OF_VAR (scope_yield, td_scope_yield (w->v))

OF_LINK (call, td_link (w->link, td_ones (TD_F32, TD_SHAPE (2, 3))))
OF_LINK (call_lists, td_link_call (w->link, NULL, 0, &out, 1))
OF_LINK (name, td_link_name (w->link))
OF_LINK (class_name, td_link_class_name (w->link))
OF_LINK (path, td_link_path (w->link))
OF_LINK (param, td_link_param (w->link, "W"))
OF_LINK (child, td_link_child (w->link, "l"))
OF_LINK (n_children, td_link_n_children (w->link))
OF_LINK (child_at, td_link_child_at (w->link, 0))
OF_LINK (count_params, td_link_count_params (w->link))
OF_LINK (copy, td_link_copy (w->link))
OF_LINK (cleargrads, td_cleargrads (w->link))
OF_LINK (enable_update, td_link_enable_update (w->link))
OF_LINK (update_enabled, td_link_update_enabled (w->link))
OF_LINK (reset_state, td_link_reset_state (w->link))
OF_LINK (to_device, td_link_to_device (w->link, td_device_get ("cpu")))
OF_LINK (free, td_link_free (w->link))
OF_LINK (self, td_link_self (w->link))
OF_LINK (add_param, td_link_add_param_ (w->link, "p", TD_SHAPE (2), NULL))
OF_LINK (save, td_save_npz (td_test_tmp ("l.npz"), w->link))
OF_LINK (load, td_load_npz (td_test_tmp ("none.npz"), w->link))
OF_LINK (adam, td_adam_new_ (w->link, NULL))
OF_LINK (parent_of, td_linear_new_ (w->link, "l", 2, 3, NULL))
OF_LINK (adopt, td_link_adopt (w->link, "l", w->link))

/* clang-format off */
#define VAR(name) { "td_" #name, var_##name }
#define LINK(name) { "a link's " #name, link_##name }
/* clang-format on */
static const struct
{
  const char *name;
  void (*call) (const Wrong *w);
} calls[] = {
  VAR (read),
  VAR (write),
  VAR (item),
  VAR (mean_of),
  VAR (shape),
  VAR (size),
  VAR (ndim),
  VAR (dtype),
  VAR (device),
  VAR (grad),
  VAR (set_grad),
  VAR (cleargrad),
  VAR (retain),
  VAR (variable),
  VAR (name),
  VAR (unchain),
  VAR (backward),
  VAR (backward_all),
  VAR (add),
  VAR (relu),
  VAR (concat),
  VAR (stack),
  VAR (zeros_like),
  VAR (to_device),
  VAR (save_npy),
  VAR (save_dot),
  VAR (linear),
  VAR (scope_yield),
  LINK (call),
  LINK (call_lists),
  LINK (name),
  LINK (class_name),
  LINK (path),
  LINK (param),
  LINK (child),
  LINK (n_children),
  LINK (child_at),
  LINK (count_params),
  LINK (copy),
  LINK (cleargrads),
  LINK (reset_state),
  LINK (enable_update),
  LINK (to_device),
  LINK (free),
  LINK (self),
  LINK (add_param),
  LINK (save),
  LINK (load),
  LINK (adam),
  LINK (parent_of),
  LINK (adopt),
  LINK (update_enabled),
  VAR (unchain_backward),
};

enum
{
  NOTHING,  /* NULL */
  GONE,     /* freed; of a scope that has ended */
  FINISHED, /* of an engine that has ended */
  WAYS
};

static int
run_wrong (int which)
{
  const int call = which / WAYS;
  Wrong w = { NULL, NULL };

  td_init (NULL, NULL);
  if (which % WAYS != NOTHING)
    TD_SCOPE ("gone")
      {
        w.v = td_variable (td_ones (TD_F32, TD_SHAPE (64)), "v");
        w.link = td_linear_new (NULL, "l", 3, 2);
      }
  if (which % WAYS == FINISHED)
    td_finish ();
  else if (which % WAYS == GONE)
    td_link_free (w.link);
  calls[call].call (&w);
  td_finish ();
  return 0;
}

static void
wrong_arguments__never_end_the_program (void **state)
{
  (void)state;
  for (int i = 0; i < WAYS * (int)(sizeof calls / sizeof *calls); i++)
    {
      const TdChild c = td_child_of (run_wrong, i);

      if (c.status < 0)
        fail_msg ("%s, way %d: signal %d", calls[i / WAYS].name, i % WAYS, -c.status);
      if (td_count_of (c.said, "\n") > 1)
        fail_msg ("%s, way %d: %s", calls[i / WAYS].name, i % WAYS, c.said);
    }
}

static void
code_of (void *self, TdVar *const *in, int n_in, TdVar **results, int n_out)
{
  (void)self;
  (void)n_in;
  for (int i = 0; i < n_out; i++)
    results[i] = td_relu (in[0]);
}

static void
free_itself (TdLink *link, TdVar *const *in, int n_in, void *user)
{
  (void)in;
  (void)n_in;
  (void)user;
  td_link_free (link);
}

/* Backward of numbers that another net's were copied over. */
static void
copy_over (TdLink *l)
{
  TdVar *y = td_link (l, td_variable (td_ones (TD_F32, TD_SHAPE (2, 3)), "x"));

  td_link_copy_params (l, td_link_copy (l));
  td_backward (td_sum (y), 0);
}

static int
run_said (int which)
{
  TdVar *v;
  TdLink *l;

  td_init (NULL, NULL);
  v = td_ones (TD_F32, TD_SHAPE (2));
  l = td_linear_new (NULL, "l", 3, 2);
  switch (which)
    {
    case 0:
      td_link_free (l);
      td_link (l, td_ones (TD_F32, TD_SHAPE (2, 3)));
      break;
    case 1:
      td_finish ();
      td_shape (v);
      break;
    case 2:
      td_read (v, NULL, 8);
      break;
    case 3:
      td_write (v, NULL, 8);
      break;
    case 4:
      td_backward_all (NULL, 1, NULL, 0);
      break;
    case 5:
      td_backward_all (&v, -1, NULL, 0);
      break;
    case 6:
      td_grad_of (&v, -1, &v, 1, NULL, 0, &v);
      break;
    case 7:
      td_static_call (td_static_new (code_of, NULL, .name = "f"), &v, -1, &v, 1);
      break;
    case 8:
      td_static_call (td_static_new (code_of, NULL, .name = "f"), &v, 1, &v, -2);
      break;
    case 9:
      td_link_call (l, &v, -1, &v, 1);
      break;
    case 10:
      td_link_register_forward_pre_hook (l, free_itself, NULL);
      td_link (l, td_ones (TD_F32, TD_SHAPE (2, 3)));
      break;
    case 11:
      copy_over (l);
      break;
    case 12:
      td_sequential_insert (td_sequential_new ("s"), 0, NULL);
      break;
    default:
      td_grad_of (&v, 1, &v, 1, NULL, 0, NULL);
      break;
    }
  return td_finish ();
}

static void
wrong_arguments__are_said_on_a_line (void **state)
{
  static const char *const said[]
      = { "the link was freed",
          "a variable is used after td_finish",
          "a place for 8 bytes",
          "8 bytes expected, got NULL",
          "td_backward: a variable is",
          "td_backward: a list of 0 or more expected, got -1",
          "td_grad_of: a list of 0 or more expected, got -1",
          "f: a list of 0 or more expected, got -1",
          "td_static_call: a list of 0 or more expected, got -2",
          "Linear: a list of 0 or more expected, got -1",
          "td_link_free: l is called at the moment: free it when its call has returned",
          "and overwritten at ../../tests/engine/test-wrong-use.c:",
          "td_sequential_insert: a Sequential and a function expected",
          "a place for 1 gradients expected, got NULL" };

  (void)state;
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    {
      const TdChild c = td_child_of (run_said, (int)i);

      assert_int_equal (c.status, 1);
      assert_contains (c.said, said[i]);
      assert_int_equal (td_count_of (c.said, "\n"), 1);
    }
}

/* What a dtype of whole numbers does not reach is refused; what it does is there. */
static void
creators__refuse_what_the_dtype_does_not_reach (void **state)
{
  static const struct
  {
    TdDtype dtype;
    double value, kept;
    const char *says; /* NULL: it is taken */
  } cases[] = {
    { TD_U8, 255.9, 255, NULL },
    { TD_U8, -0.5, 0, NULL },
    { TD_U8, 300, 0, "a number that u8 has expected, got 300" },
    { TD_U8, -1, 0, "a number that u8 has expected, got -1" },
    { TD_I32, -0x1p31, -0x1p31, NULL },
    { TD_I32, 0x1p31, 0, "a number that i32 has expected, got 2.14748e+09" },
    { TD_I32, NAN, 0, "a number that i32 has expected, got nan" },
    { TD_I64, -0x1p63, -0x1p63, NULL },
    { TD_I64, 0x1p63, 0, "a number that i64 has expected" },
    { TD_F16, 7e4, INFINITY, NULL },
  };

  (void)state;
  td_init (NULL, NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    TD_SCOPE ("one")
      {
        TdVar *full = td_full (cases[i].dtype, TD_SHAPE (2), cases[i].value);

        assert_int_equal (td_error () != NULL, cases[i].says != NULL);
        if (cases[i].says != NULL)
          assert_contains (td_error ()->message, cases[i].says);
        else
          assert_true (td_item (td_get_item (full, (TdSlice[]){ TD_AT (1) }, 1))
                       == cases[i].kept);
        td_error_clear ();
      }
  TD_SCOPE ("to the end")
    {
      assert_true (td_size (td_arange (TD_U8, 0, 256, 1)) == 256);
      assert_null (td_error ());
      td_arange (TD_U8, 0, 257, 1);
      assert_contains (td_error ()->message,
                       "td_arange: a number that u8 has expected, got 256");
      td_error_clear ();
    }
  assert_int_equal (td_finish (), 0);
}

/* --- other handles that were freed --- */

static void
relu_of (void *self, TdVar *const *in, int n_in, TdVar **results, int n_out)
{
  (void)self, (void)n_in, (void)n_out;
  results[0] = td_relu (in[0]);
}

static const char *const freed[] = { "td_opt_set_lr: the optimizer was freed",
                                     "td_opt_update: the optimizer was freed",
                                     "td_static_call: the static function was freed",
                                     "td_iter_next: the iterator was freed",
                                     "td_serial_iterator_new: the dataset was freed",
                                     "td_hook_add: the hook was freed",
                                     "td_iter_next: the iterator was freed",
                                     "td_static_call: the static function was freed",
                                     "td_opt_update: the optimizer was freed",
                                     "" };

static int
run_freed (int which)
{
  static const TdHookClass hook_class = { .size = sizeof (TdHookClass), .name = "none" };
  TdLink *l;
  TdOpt *o;
  TdDataset *d;
  TdIter *it;
  TdStatic *s;
  TdHook *h;
  TdVar *x, *y;

  td_init (NULL, NULL);
  l = td_linear_new (NULL, "l", 3, 2);
  o = td_adam_new (l);
  d = td_tuple_dataset_new (td_zeros (TD_F32, TD_SHAPE (4, 3)), NULL);
  it = td_serial_iterator_new (d, .batch_size = 2);
  s = td_static_new (relu_of, NULL);
  h = td_hook_new (&hook_class);
  x = td_ones (TD_F32, TD_SHAPE (2, 3));
  if (which >= 6 && which < 9)
    td_finish (); /* which frees them all */
  switch (which)
    {
    case 0:
      td_opt_free (o);
      td_opt_set_lr (o, 1);
      break;
    case 1:
      td_opt_free (o);
      td_opt_update (o);
      break;
    case 2:
      td_static_free (s);
      td_static_call (s, &x, 1, &y, 1);
      break;
    case 3:
      td_iter_free (it);
      td_iter_next (it);
      break;
    case 4:
      td_dataset_free (d); /* the iterator still reads it */
      td_iter_next (it);
      td_serial_iterator_new (d, .batch_size = 2);
      break;
    case 5:
      td_hook_free (h);
      td_hook_add (h);
      break;
    case 6:
      td_iter_next (it);
      break;
    case 7:
      x = td_ones (TD_F32, TD_SHAPE (2));
      td_static_call (s, &x, 1, &y, 1);
      break;
    case 8:
      td_opt_update (o);
      break;
    default: /* twice is no harm */
      for (int i = 0; i < 2; i++)
        {
          td_dataset_free (d);
          td_iter_next (it);
        }
      for (int i = 0; i < 2; i++)
        {
          td_iter_free (it);
          td_opt_free (o);
          td_static_free (s);
          td_hook_free (h);
          td_link_free (l);
        }
      break;
    }
  return td_finish ();
}

static void
freed_handles__are_recognised (void **state)
{
  const int n = (int)(sizeof freed / sizeof *freed);

  (void)state;
  for (int i = 0; i < n; i++)
    {
      const TdChild c = td_child_of (run_freed, i);

      assert_int_equal (c.status, i < n - 1);
      assert_contains (c.said, freed[i]);
      assert_int_equal (td_count_of (c.said, "\n"), i < n - 1);
    }
}

/* --- another thread --- */

static void *
clear_errors (void *unused)
{
  (void)unused;
  td_error_clear ();
  return NULL;
}

static int
run_clear (int which)
{
  pthread_t thread;

  (void)which;
  td_init (NULL, NULL);
  td_add (td_ones (TD_F32, TD_SHAPE (2)), td_ones (TD_F32, TD_SHAPE (3)));
  pthread_create (&thread, NULL, clear_errors, NULL);
  pthread_join (thread, NULL);
  return td_finish ();
}

static void
other_threads__do_not_clear_the_error (void **state)
{
  const TdChild c = td_child_of (run_clear, 0);

  (void)state;
  assert_int_equal (c.status, 1);
  assert_contains (c.said, "td_error_clear: called from a thread");
  assert_contains (c.said, "tapedeck: add: ");
}

static Wrong shared;

static void *
stranger (void *which)
{
  const int call = *(const int *)which;

  calls[call].call (&shared);
  calls[call].call (&shared);
  td_release (shared.v);
  return NULL;
}

static int
run_stranger (int which)
{
  pthread_t thread;
  float number = 0;

  td_init (NULL, NULL);
  shared.v = td_retain (td_variable (td_full (TD_F32, TD_SHAPE (64), 7), "v"));
  shared.link = td_linear_new (NULL, "l", 3, 2);
  pthread_create (&thread, NULL, stranger, &which);
  pthread_join (thread, NULL);
  td_read (td_sum (shared.v), &number, sizeof number);
  if (td_error () != NULL || number != 7 * 64 || td_grad (shared.v) != NULL)
    fprintf (stderr, "changed by another thread: %g\n", (double)number);
  td_release (shared.v);
  return td_finish ();
}

static void
other_threads__are_refused_and_said_once (void **state)
{
  (void)state;
  for (int i = 0; i < (int)(sizeof calls / sizeof *calls); i++)
    {
      const TdChild c = td_child_of (run_stranger, i);

      if (c.status != 1 || td_count_of (c.said, "\n") != 1
          || td_count_of (c.said, "called from a thread that did not call td_init") != 1)
        fail_msg ("%s: status %d, said %s", calls[i].name, c.status, c.said);
    }
}

/* --- an end without td_finish --- */

static int
run_to_its_end (int which)
{
  td_init (NULL, NULL);
  if (which > 0)
    td_add (td_ones (TD_F32, TD_SHAPE (2)), td_ones (TD_F32, TD_SHAPE (3)));
  return which == 2 ? 3 : 0;
}

static void
end__without_finish_says_the_error (void **state)
{
  TdChild c = td_child_of (run_to_its_end, 0);

  (void)state;
  assert_int_equal (c.status, 0);
  assert_string_equal (c.said, "");
  c = td_child_of (run_to_its_end, 1);
  assert_int_equal (c.status, 1);
  assert_contains (c.said, "tapedeck: add: ");
  assert_int_equal (td_count_of (c.said, "\n"), 1);
  c = td_child_of (run_to_its_end, 2); /* a status of the program's own stays */
  assert_int_equal (c.status, 3);
  assert_contains (c.said, "tapedeck: add: ");
}

/* --- debug mode --- */

static int
run_debug (int which)
{
  TdVar *x, *y;

  td_init (NULL, NULL);
  td_config_set (debug, 1);
  x = td_variable (td_full (TD_F32, TD_SHAPE (2), which == 0 ? 1e-39 : 1), "x");
  y = which == 0 ? td_log (x) : td_square (x);
  td_set_grad (y, td_full (TD_F32, TD_SHAPE (2), which == 0 ? 1e30 : NAN));
  td_backward (y, 0);
  return td_finish ();
}

static void
debug__names_the_backward_that_a_gradient_is_of (void **state)
{
  TdChild c = td_child_of (run_debug, 0);

  (void)state;
  assert_int_equal (c.status, 1);
  assert_contains (c.said, "2 +inf");
  assert_contains (c.said, "backward of log at ");
  assert_contains (c.said, "test-wrong-use.c:");
  c = td_child_of (run_debug, 1);
  assert_int_equal (c.status, 1);
  assert_contains (c.said, "td_backward: the gradient of a root has 2 NaN");
}

/* --- debug mode, updates --- */

static int
run_update (int debug)
{
  TdLink *l;
  TdOpt *o;
  TdVar *W;
  float w[6];

  td_init (NULL, NULL);
  td_config_set (debug, debug);
  l = td_linear_new (NULL, "l", 3, 2);
  o = td_sgd_new (l);
  W = td_link_param (l, "W");
  td_set_grad (W, td_full (TD_F32, TD_SHAPE (2, 3), NAN));
  td_opt_update (o);
  td_error ();
  if (debug && (td_read (W, w, sizeof w) != TD_OK || isnan (w[0])))
    fprintf (stderr, "it was updated\n");
  return td_finish ();
}

static void
debug__refuses_an_update_by_what_is_not_finite (void **state)
{
  TdChild c = td_child_of (run_update, 1);

  (void)state;
  assert_int_equal (c.status, 1);
  assert_contains (c.said, "td_opt_update: the gradient of W has 6 NaN, 0 +inf");
  assert_int_equal (td_count_of (c.said, "\n"), 1);
  c = td_child_of (run_update, 0);
  assert_int_equal (c.status, 0);
}

/* --- names --- */

static int
run_names (int which)
{
  TdVar *a, *b;

  (void)which;
  td_init (NULL, NULL);
  a = td_name (td_ones (TD_F32, TD_SHAPE (2)), "left");
  b = td_ones (TD_F32, TD_SHAPE (3));
  td_add (a, b);
  return td_finish ();
}

static void
messages__have_the_names_of_the_program (void **state)
{
  const TdChild c = td_child_of (run_names, 0);

  (void)state;
  assert_int_equal (c.status, 1);
  assert_contains (c.said, ": a = left (2) f32, b (3) f32");
}

/* --- scopes --- */

enum
{
  CLOSED_TWICE,
  WITH_ITS_OUTER_ONE,
  INNERMOST_FIRST,
  BLOCK_AFTER_FINISH,
  N_WAYS_TO_CLOSE
};

static int
run_scopes (int how)
{
  TdScope *outer, *inner;

  td_init (NULL, NULL);
  outer = td_scope_open ("outer");
  inner = td_scope_open ("inner");
  if (how == WITH_ITS_OUTER_ONE)
    td_scope_close (outer);
  td_scope_close (inner);
  if (how != WITH_ITS_OUTER_ONE)
    td_scope_close (how == CLOSED_TWICE ? inner : outer);
  if (how == BLOCK_AFTER_FINISH)
    TD_SCOPE ("block")
      {
        td_finish ();
        td_init (NULL, NULL);
      }
  return td_finish ();
}

static void
scopes__are_closed_once (void **state)
{
  (void)state;
  for (int how = 0; how < N_WAYS_TO_CLOSE; how++)
    {
      const TdChild c = td_child_of (run_scopes, how);
      const int wrong = how == CLOSED_TWICE || how == WITH_ITS_OUTER_ONE;

      assert_int_equal (c.status, wrong);
      assert_int_equal (td_count_of (c.said, "td_scope_close: not an open scope"), wrong);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (wrong_arguments__never_end_the_program),
    td_test (wrong_arguments__are_said_on_a_line),
    td_test (creators__refuse_what_the_dtype_does_not_reach),
    td_test (freed_handles__are_recognised),
    td_test (other_threads__are_refused_and_said_once),
    td_test (other_threads__do_not_clear_the_error),
    td_test (end__without_finish_says_the_error),
    td_test (debug__names_the_backward_that_a_gradient_is_of),
    td_test (debug__refuses_an_update_by_what_is_not_finite),
    td_test (messages__have_the_names_of_the_program),
    td_test (scopes__are_closed_once),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
