/* Every function that the library exports, called wrongly: from another thread, without what it
 * expects, with what was freed, after td_finish.  The table of them is made from the headers
 * (every-function.py), so that a new function is in it.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "td-test.h"

#include "every-function.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
  LIST = 2, /* how many a list has */
  ROOM = 64 /* what several lists in one may have, and what a function fills */
};

/* --- handles --- */

static TdEveryValues live;
static const TdSite here = { __FILE__, "make_handles", __LINE__ };

static void
code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  if (n_in > 0 && n_out > 0)
    out[0] = td_relu (in[0]);
}

static void
make_handles (void)
{
  static const TdHookClass hook_class = { .size = sizeof (TdHookClass), .name = "none" };
  static const double weights[] = { 1, 2 };
  static double room[512];
  TdEveryValues *v = &live;

  v->var = td_retain (td_variable (td_ones (TD_F32, TD_SHAPE (2, 2)), "v"));
  v->link = td_linear_new_ (NULL, "l", 2, 2, NULL);
  v->opt = td_adam_new_ (v->link, NULL);
  v->opt_hook = td_weight_decay_new (0.1);
  v->dataset = td_tuple_dataset_new (td_zeros (TD_F32, TD_SHAPE (4, 2)), NULL);
  v->iter = td_serial_iterator_new_ (v->dataset, &(TdSerialIterOpt){ .batch_size = 2 });
  v->device = td_device_get ("cpu");
  v->scope = td_scope_open ("s");
  v->observation = td_observation_new ();
  v->updater = td_standard_updater_new_ (v->iter, v->opt, (TdUpdaterOpt){ .update = NULL });
  v->trigger = td_interval_trigger_new (1, "iteration");
  v->trainer = td_trainer_new_ (v->updater, td_interval_trigger_new (2, "iteration"),
                                (TdTrainerOpt){ .out = td_test_tmp ("out") });
  v->extension = td_ext_fail_on_non_number ();
  v->alias = td_walker_alias_new (weights, 2);
  v->static_ = td_static_new_at (code, NULL, td_static_options (), NULL);
  v->hook = td_hook_new (&hook_class);
  v->comm = td_comm_new (NULL); /* of this process alone */
  v->site = (void *)(uintptr_t)&here;
  v->list = room;
  v->text = "l";
  v->number = LIST;
  v->shape = TD_SHAPE (2, 2);
#define TWICE(name)                                                                            \
  static void *name##_list[ROOM];                                                              \
  for (int i = 0; i < ROOM; i++)                                                               \
    name##_list[i] = v->name;                                                                  \
  v->name##s = name##_list;
  TD_EVERY_HANDLE (TWICE)
  assert_null (td_error ());
}

static void
free_handles (void)
{
  const TdEveryValues *v = &live;

  td_trainer_free (v->trainer);
  td_updater_free (v->updater);
  td_iter_free (v->iter);
  td_dataset_free (v->dataset);
  td_opt_free (v->opt);
  td_link_free (v->link);
  td_static_free (v->static_);
  td_hook_free (v->hook);
  td_comm_free (v->comm);
  td_trigger_free (v->trigger);
  td_extension_free (v->extension);
  td_scope_close (v->scope);
  td_release (v->var);
}

/* --- a call, in a process of its own --- */

typedef struct
{
  char said[4000];
  int status; /* -signal if one ended it */
} Child;

typedef struct
{
  const TdEveryFunction *row;
  const TdEveryValues *values;
  bool stranger;
  int status; /* what it returned */
} Call;

static void *
call_it (void *data)
{
  Call *c = data;

  c->status = c->row->call (c->values);
  return NULL;
}

static int
body (Call *c)
{
  pthread_t thread;

  if (!c->stranger)
    call_it (c);
  else
    {
      pthread_create (&thread, NULL, call_it, c);
      pthread_join (thread, NULL);
      if (td_error () != NULL)
        fprintf (stderr, "it is the engine's error: %s\n", td_error ()->message);
      if (c->status == TD_OK)
        fprintf (stderr, "it returns TD_OK\n");
    }
  return td_finish ();
}

static Child
child_of (Call *call)
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
      int nowhere = open ("/dev/null", O_RDWR);

      alarm (20);
      dup2 (ends[1], 2);
      dup2 (nowhere, 0);
      dup2 (nowhere, 1);
      close (ends[0]);
      close (ends[1]);
      for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal (deadly[i], SIG_DFL); /* CMocka's would go on with the next test */
      _exit (body (call));
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
lines_of (const Child *c)
{
  int n = 0;

  for (const char *at = c->said; (at = strchr (at, '\n')) != NULL; at++)
    n++;
  return n;
}

static void
test_start (void)
{
  mallopt (M_PERTURB, 165); /* what is freed is not what it was */
  if (chdir (td_test_tmp (".")) != 0)
    fail_msg ("no folder");
  td_init (NULL, NULL);
  make_handles ();
}

static void
test_end (void)
{
  td_finish ();
  td_walker_alias_free (live.alias); /* a plain table: the one that no session ends */
}

/* --- another thread --- */

/* The base name of a function: without _at and _. */
static bool
is_of (const char *name, const char *base)
{
  const size_t n = strlen (base);

  return strncmp (name, base, n) == 0
         && (name[n] == '\0' || strcmp (name + n, "_") == 0 || strcmp (name + n, "_at") == 0);
}

typedef struct
{
  const char *name, *why;
} Exempt;

/* What any thread may call. */
static const Exempt threads[] = {
  { "td_version", "a constant" },
  { "td_status_name", "a constant" },
  { "td_dtype_name", "a constant" },
  { "td_dtype_bytes", "a constant" },
  { "td_mem_category_name", "a constant" },
  { "td_mem_pool_name", "a constant" },
  { "td_device_name", "a constant" },
  { "td_op_class_at", "a constant table" },
  { "td_op_class_count", "a constant table" },
  { "td_op_class_find", "a constant table" },
  { "td_onnx_operator_at", "a constant table" },
  { "td_shape_size", "of its arguments alone" },
  { "td_shape_equal", "of its arguments alone" },
  { "td_shape_text", "of its arguments alone" },
  { "td_dataset_get", "what an iterator's threads call in a dataset of the program's" },
  { "td_dataset_size", "what an iterator's threads call in a dataset of the program's" },
  { "td_dataset_shape", "what an iterator's threads call in a dataset of the program's" },
  { "td_example_set", "what an iterator's threads call in a dataset of the program's" },
  { "td_example_clear", "what an iterator's threads call in a dataset of the program's" },
  { "td_random_next", "what an iterator's threads call in a dataset of the program's" },
  { "td__config_pop", "the end of a block whose beginning was refused" },
  { "td__report_pop", "the end of a block whose beginning was refused" },
};

/* What cannot be called so. */
static const Exempt unfit[] = {
  { "td_init", "its arguments are those of main" },
  { "td_vgg16_layers_new", "it makes 138 million numbers" },
};

/* NULL for a list and how many it has: what is meant then is documented. */
static const Exempt default_lists[] = {
  { "td_normalize", "axis 1" },
};

static bool
listed (const Exempt *list, size_t n, const char *name)
{
  for (size_t i = 0; i < n; i++)
    if (is_of (name, list[i].name))
      return true;
  return false;
}
#define LISTED(list, name) listed (list, sizeof list / sizeof *list, name)

/* Functions of their arguments alone: defaults, and the kinds of initialisers. */
static bool
is_pure (const char *name)
{
  const size_t n = strlen (name);

  return strncmp (name, "td_init_", 8) == 0
         || (n > 8 && strcmp (name + n - 8, "_options") == 0);
}

static void
other_threads__are_refused_by_every_function (void **state)
{
  int n_wrong = 0;

  (void)state;
  test_start ();
  for (int i = 0; i < td_every_n; i++)
    {
      Child c;
      bool refused;

      if (is_pure (td_every_function[i].name) || LISTED (threads, td_every_function[i].name))
        continue;
      c = child_of (&(Call){ &td_every_function[i], &live, true, 0 });
      refused = c.status == 1 && lines_of (&c) == 1
                && strstr (c.said, "called from a thread that did not call td_init") != NULL;
      if (!refused)
        print_error ("%s: status %d, said %s\n", td_every_function[i].name, c.status, c.said);
      n_wrong += !refused;
    }
  test_end ();
  assert_int_equal (n_wrong, 0);
}

/* --- wrong arguments --- */

/* A call may go wrong; it may not end the program, and says at most one thing. */
static void
never_end_the_program (const TdEveryValues *v, const char *how, bool lists)
{
  int n_wrong = 0;

  for (int i = 0; i < td_every_n; i++)
    {
      const char *name = td_every_function[i].name;
      const bool wants_error
          = lists && td_every_function[i].takes_list && !LISTED (default_lists, name);
      Child c;
      bool wrong;

      if (LISTED (unfit, name))
        continue;
      c = child_of (&(Call){ &td_every_function[i], v, false, 0 });
      wrong = c.status < 0 || lines_of (&c) > 1 || (wants_error && c.status != 1);
      if (wrong)
        print_error ("%s, %s: status %d, said %s\n", name, how, c.status, c.said);
      n_wrong += wrong;
    }
  assert_int_equal (n_wrong, 0);
}

static void
nothing__never_ends_the_program (void **state)
{
  TdEveryValues v = { .number = 0 };

  (void)state;
  test_start ();
  never_end_the_program (&v, "NULL and 0", false);
  v.number = LIST;
  v.text = "l";
  never_end_the_program (&v, "NULL and 2", true);
  test_end ();
}

static void
no_list__is_an_error (void **state)
{
  TdEveryValues v;

  (void)state;
  test_start ();
  v = live;
#define NO_LIST(name) v.name##s = NULL;
  TD_EVERY_HANDLE (NO_LIST)
  v.list = NULL;
  never_end_the_program (&v, "no list of 2", true);
  v.number = 0;
  v.text = NULL;
  v.shape = (TdShape){ .ndim = 0 };
  never_end_the_program (&v, "no list of 0", false);
  test_end ();
}

static void
what_was_freed__never_ends_the_program (void **state)
{
  (void)state;
  test_start ();
  free_handles ();
  never_end_the_program (&live, "freed", false);
  test_end ();
}

static void
what_has_finished__never_ends_the_program (void **state)
{
  (void)state;
  test_start ();
  td_finish ();
  never_end_the_program (&live, "after td_finish", false);
  td_walker_alias_free (live.alias);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (other_threads__are_refused_by_every_function),
    td_test (nothing__never_ends_the_program),
    td_test (no_list__is_an_error),
    td_test (what_was_freed__never_ends_the_program),
    td_test (what_has_finished__never_ends_the_program),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
