/* What is called wrong: operations of a program's own whose backward is wrong, handles and
 * links that are gone, nothing where something is expected, other threads, an end without
 * td_finish. Each case is a child process: an error, said on one line, and never a signal.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck-op.h>

#include "td-test.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a child said, and its exit status; -signal if one ended it. */
typedef struct
{
  char said[4000];
  int status;
} Child;

static Child
child_of (int (*body) (int which), int which)
{
  static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
  Child c = { "", 0 };
  int ends[2], status;
  size_t n = 0;
  ssize_t got;
  pid_t pid;

  assert_int_equal (pipe (ends), 0);
  fflush (NULL);
  pid = fork ();
  assert_true (pid >= 0);
  if (pid == 0)
    {
      dup2 (ends[1], 2);
      close (ends[0]);
      close (ends[1]);
      for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal (deadly[i], SIG_DFL); /* CMocka's would go on with the next test */
      exit (body (which));
    }
  close (ends[1]);
  while (n < sizeof c.said - 1 && (got = read (ends[0], c.said + n, sizeof c.said - 1 - n)) > 0)
    n += (size_t)got;
  close (ends[0]);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  c.status = WIFEXITED (status) ? WEXITSTATUS (status) : -WTERMSIG (status);
  return c;
}

static int
count_of (const char *text, const char *word)
{
  int n = 0;

  for (const char *at = text; (at = strstr (at, word)) != NULL; at++)
    n++;
  return n;
}

/* --- backward of a program's own operation --- */

static TdStatus
twice_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
twice_forward (TdOpCall *call)
{
  for (int64_t i = 0; i < call->in[0].size; i++)
    ((float *)call->out[0].data)[i] = 2 * ((const float *)call->in[0].data)[i];
  return TD_OK;
}

static TdStatus
wrong_shape (TdBackward *b)
{
  b->gx[0] = td_sum (b->gy[0]);
  return TD_OK;
}

static TdStatus
wrong_dtype (TdBackward *b)
{
  b->gx[0] = td_cast (b->gy[0], TD_F64);
  return TD_OK;
}

static TdStatus
wrong_count (TdBackward *b)
{
  b->gx[0] = b->gx[1] = b->gy[0];
  return TD_OK;
}

static TdStatus
only_an_error (TdBackward *b)
{
  (void)b;
  return TD_ERR_NUMERIC;
}

static const struct
{
  TdStatus (*backward) (TdBackward *b);
  TdStatus status;
  const char *said;
} wrong[] = {
  { wrong_shape, TD_ERR_SHAPE, "backward gives v a gradient () f32, (2, 3) f32 expected" },
  { wrong_dtype, TD_ERR_DTYPE, "backward gives v a gradient (2, 3) f64, (2, 3) f32 expected" },
  { wrong_count, TD_ERR_ARG, "backward gives more than 1 gradient, one for each input" },
  { only_an_error, TD_ERR_NUMERIC, "backward returned an error: numeric" },
  { NULL, TD_ERR_STATE, "its class has no backward, and a gradient arrived" },
};

static int
run_wrong_backward (int which)
{
  static const char *const names[] = { "v" };
  const TdOpClass cls = { .name = "twice",
                          .n_in_min = 1,
                          .n_in_max = 1,
                          .n_out = 1,
                          .flags = TD_OP_HOST,
                          .in_names = names,
                          .infer = twice_infer,
                          .forward = twice_forward,
                          .backward = wrong[which].backward };
  TdVar *x, *y;
  TdStatus status;

  td_init (NULL, NULL);
  x = td_variable (td_ones (TD_F32, TD_SHAPE (2, 3)), "x");
  td_apply (&cls, NULL, &x, 1, &y, 1);
  status = td_backward (td_sum (td_square (y)), 0);
  if (status != wrong[which].status || td_grad (x) != NULL)
    fprintf (stderr, "status %d, gradient %p\n", (int)status, (void *)td_grad (x));
  return td_finish ();
}

static void
backward__refuses_what_an_operation_of_ones_own_returns_wrong (void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    {
      const Child c = child_of (run_wrong_backward, (int)i);

      assert_int_equal (c.status, 1);
      assert_contains (c.said, "twice: ");
      assert_contains (c.said, wrong[i].said);
      assert_contains (c.said, "test-wrong-use.c:");
      assert_int_equal (count_of (c.said, "\n"), 1);
    }
}

/* --- the same root twice --- */

static int
run_root_twice (int which)
{
  TdVar *x, *y[2];

  (void)which;
  td_init (NULL, NULL);
  x = td_variable (td_ones (TD_F32, TD_SHAPE (3)), "x");
  y[0] = y[1] = td_sum (x);
  if (td_backward_all (y, 2, NULL, 0) != TD_ERR_ARG || td_grad (x) != NULL)
    fprintf (stderr, "not refused\n");
  return td_finish ();
}

static void
backward_all__refuses_a_root_given_twice (void **state)
{
  const Child c = child_of (run_root_twice, 0);

  (void)state;
  assert_int_equal (c.status, 1);
  assert_contains (c.said,
                   "td_backward_all: each root once expected, roots 0 and 1 are the same");
  assert_int_equal (count_of (c.said, "\n"), 1);
}

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
#define VAR(name) { "td_" #name, var_##name, false }
#define LINK(name) { "a link's " #name, link_##name, true }
/* clang-format on */
static const struct
{
  const char *name;
  void (*call) (const Wrong *w);
  bool of_link;
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
      const Child c = child_of (run_wrong, i);

      if (c.status < 0)
        fail_msg ("%s, way %d: signal %d", calls[i / WAYS].name, i % WAYS, -c.status);
      if (count_of (c.said, "\n") > 1)
        fail_msg ("%s, way %d: %s", calls[i / WAYS].name, i % WAYS, c.said);
    }
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
      = { "the link was freed",         "a variable is used after td_finish",
          "a place for 8 bytes",        "8 bytes expected, got NULL",
          "td_backward: a variable is", "a place for 1 gradients expected, got NULL" };

  (void)state;
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    {
      const Child c = child_of (run_said, (int)i);

      assert_int_equal (c.status, 1);
      assert_contains (c.said, said[i]);
      assert_int_equal (count_of (c.said, "\n"), 1);
    }
}

/* --- another thread --- */

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
      Child c;

      if (calls[i].of_link)
        continue;
      c = child_of (run_stranger, i);
      if (c.status != 1 || count_of (c.said, "\n") != 1
          || count_of (c.said, "called from a thread that did not call td_init") != 1)
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
  Child c = child_of (run_to_its_end, 0);

  (void)state;
  assert_int_equal (c.status, 0);
  assert_string_equal (c.said, "");
  c = child_of (run_to_its_end, 1);
  assert_int_equal (c.status, 1);
  assert_contains (c.said, "tapedeck: add: ");
  assert_int_equal (count_of (c.said, "\n"), 1);
  c = child_of (run_to_its_end, 2); /* a status of the program's own stays */
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
  Child c = child_of (run_debug, 0);

  (void)state;
  assert_int_equal (c.status, 1);
  assert_contains (c.said, "2 +inf");
  assert_contains (c.said, "backward of log at ");
  assert_contains (c.said, "test-wrong-use.c:");
  c = child_of (run_debug, 1);
  assert_int_equal (c.status, 1);
  assert_contains (c.said, "td_backward: the gradient of a root has 2 NaN");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (backward__refuses_what_an_operation_of_ones_own_returns_wrong),
    td_test (backward_all__refuses_a_root_given_twice),
    td_test (wrong_arguments__never_end_the_program),
    td_test (wrong_arguments__are_said_on_a_line),
    td_test (other_threads__are_refused_and_said_once),
    td_test (end__without_finish_says_the_error),
    td_test (debug__names_the_backward_that_a_gradient_is_of),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
