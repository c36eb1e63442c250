/* Snapshots: going on from one is never having stopped; which files stay; what goes wrong.
 *
 * SPDX-License-Identifier: MIT */
#include "start.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum
{
  N_ROWS = 60,
  N_IN = 9,
  N_WEIGHTS = N_IN * 16 + 16 + 16 * 4 + 4
};

/* An MLP with everything whose state matters: dropout, batch normalization, Adam with a
 * shifting rate, shuffled rows, parameters that wait for their shapes. */
typedef struct
{
  TdLink *chain, *l1, *bn, *l2;
} Mlp;

static TdVar *
mlp_loss (void *self, const TdBatch *b)
{
  Mlp *m = self;
  TdVar *h = td_relu (td_link (m->bn, td_link (m->l1, b->x)));
  TdVar *loss = td_softmax_cross_entropy (td_link (m->l2, td_dropout (h, 0.4)), b->t);

  td_report ("loss", td_item (loss));
  return loss;
}

static TdDataset *
rows (void)
{
  static float x[N_ROWS * N_IN];
  static int32_t t[N_ROWS];

  for (int i = 0; i < N_ROWS * N_IN; i++)
    x[i] = (float)((i * 7919) % 101) / 50 - 1;
  for (int i = 0; i < N_ROWS; i++)
    t[i] = i * 13 % 4;
  return td_tuple_dataset_new (td_tensor (TD_F32, TD_SHAPE (N_ROWS, N_IN), x),
                               td_tensor (TD_I32, TD_SHAPE (N_ROWS), t));
}

typedef struct
{
  float weights[N_WEIGHTS];
  float mean[16];
  double loss, lr;
  int64_t count;
  int n_lines;
} Result;

typedef struct
{
  bool threads;
  TdSnapshotWriter writer;
  const char *filename;
} Variant;

static void
take_weights (const char *path, TdVar *param, void *user)
{
  Result *r = user;

  (void)path;
  assert_int_equal (td_dtype (param), TD_F32);
  assert_true (r->count + td_size (param) <= N_WEIGHTS + 32);
  if (r->count + td_size (param) <= N_WEIGHTS)
    td_read (param, r->weights + r->count, (size_t)td_size (param) * sizeof (float));
  r->count += td_size (param);
}

/* Train in an engine of its own up to an epoch, beginning with the newest snapshot in out. */
static Result
train_to (int epochs, const char *out, Variant v)
{
  Result r = { .count = 0 };
  Mlp m;
  TdIter *it;
  TdOpt *opt;
  TdTrainer *t;
  TdExtension *log;
  TdDataset *d;

  assert_int_equal (td_finish (), 0);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  td_set_seed (5);
  m.chain = td_chain_new ("mlp");
  m.l1 = td_linear_new (m.chain, "l1", TD_INFER, 16);
  m.bn = td_batch_normalization_new (m.chain, "bn", 16);
  m.l2 = td_linear_new (m.chain, "l2", TD_INFER, 4);
  opt = td_adam_new (m.chain, .lr = 0.01);
  d = rows ();
  it = v.threads ? td_multithread_iterator_new (d, .batch_size = 7, .n_threads = 2)
                 : td_serial_iterator_new (d, .batch_size = 7);
  t = td_trainer_new (td_standard_updater_new (it, opt, .loss_func = mlp_loss, .self = &m),
                      td_interval_trigger_new (epochs, "epoch"), .out = td_test_tmp (out));
  log = td_ext_log_report (.trigger = td_interval_trigger_new (4, "iteration"),
                           .filename = NULL);
  td_trainer_extend (t, td_ext_snapshot (.autoload = true, .n_retains = 1, .writer = v.writer,
                                         .filename = v.filename));
  td_trainer_extend (t, log);
  td_trainer_extend (t, td_ext_exponential_shift ("alpha", 0.9));
  td_trainer_extend (t, td_ext_plot_report (TD_KEYS ("loss", "absent")));
  td_trainer_extend (t, td_ext_variable_statistics_plot (m.chain, .max_sample_size = 8));
  td_trainer_extend (t, td_ext_micro_average ("loss", "loss", "one", NULL));
  assert_int_equal (td_trainer_run (t), TD_OK);
  td_link_each_param (m.chain, take_weights, &r);
  assert_int_equal (td_read (td_link_param (m.bn, "avg_mean"), r.mean, sizeof r.mean), TD_OK);
  r.n_lines = td_log_report_n_lines (log);
  r.loss = td_log_report_value (log, r.n_lines - 1, "loss");
  r.lr = td_opt_lr (opt);
  return r;
}

static void
assert_same_file (const char *name)
{
  char a[300], b[300], *whole, *parts;
  size_t n_whole, n_parts;

  snprintf (a, sizeof a, "whole/%s", name);
  snprintf (b, sizeof b, "parts/%s", name);
  whole = td_test_read_file (td_test_tmp (a), &n_whole);
  parts = td_test_read_file (td_test_tmp (b), &n_parts);
  assert_string_equal (parts, whole);
  free (whole);
  free (parts);
}

static void
assert_resumes (Variant v)
{
  Result whole = train_to (3, "whole", v), part, resumed;
  float change = 0;

  part = train_to (1, "parts", v);
  resumed = train_to (3, "parts", v);
  assert_memory_equal (resumed.weights, whole.weights, sizeof whole.weights);
  assert_memory_equal (resumed.mean, whole.mean, sizeof whole.mean);
  assert_true (resumed.loss == whole.loss && resumed.lr == whole.lr);
  assert_int_equal (resumed.n_lines, whole.n_lines);
  assert_int_equal (whole.n_lines, 26 / 4);
  for (int i = 0; i < N_WEIGHTS; i++)
    change += fabsf (part.weights[i] - whole.weights[i]);
  assert_same_file ("plot.svg");
  assert_same_file ("statistics.svg");
  assert_true (change > 0.1f); /* the two later epochs did something */
}

static void
snapshot__resumes_as_if_never_stopped (void **state)
{
  (void)state;
  assert_resumes ((Variant){ false, TD_WRITER_SIMPLE, "{iteration}" });
}

static void
snapshot__resumes_with_threads_that_load_and_write (void **state)
{
  (void)state;
  assert_resumes ((Variant){ true, TD_WRITER_THREAD, "state-{epoch}.npz" });
}

static void
snapshot__resumes_from_safetensors (void **state)
{
  (void)state;
  assert_resumes ((Variant){ false, TD_WRITER_SIMPLE, "{iteration}.safetensors" });
}

/* --- files --- */

static TdStatus
step (TdUpdater *u, void *self)
{
  int64_t *fail_at = self;

  td_iter_next (td_updater_iterator (u, "main"));
  return fail_at != NULL && td_updater_iteration (u) == *fail_at ? TD_ERR_NUMERIC : TD_OK;
}

static TdTrainer *
small_trainer (int iterations, TdLink *link, int64_t *fail_at)
{
  TdDataset *d = td_tuple_dataset_new (td_ones (TD_F32, TD_SHAPE (6, 1)), NULL);
  TdIter *it = td_serial_iterator_new (d, .batch_size = 2);
  TdUpdater *u
      = td_standard_updater_new (it, td_sgd_new (link), .update = step, .self = fail_at);

  return td_trainer_new (u, td_interval_trigger_new (iterations, "iteration"),
                         .out = td_test_tmp ("out"));
}

/* Names in the trainer's folder, in order, separated by spaces. */
static const char *
files (void)
{
  static char text[1000];
  struct dirent **entries;
  int n = scandir (td_test_tmp ("out"), &entries, NULL, alphasort);

  text[0] = '\0';
  for (int i = 0; i < n; i++)
    {
      if (entries[i]->d_name[0] != '.')
        snprintf (text + strlen (text), sizeof text - strlen (text), "%s%s",
                  *text != '\0' ? " " : "", entries[i]->d_name);
      free (entries[i]);
    }
  free (entries);
  return text;
}

static TdTrigger *
every (int iterations)
{
  return td_interval_trigger_new (iterations, "iteration");
}

static bool
in_odd_iterations (void *self, TdTrainer *t)
{
  (void)self;
  return td_updater_iteration (td_trainer_updater (t)) % 2 == 1;
}

static void
snapshot__keeps_the_newest_files_only (void **state)
{
  TdLink *m = td_linear_new (NULL, "m", 1, 1);
  TdTrainer *t = small_trainer (12, m, NULL);

  (void)state;
  td_trainer_extend (t, td_ext_snapshot (.n_retains = 2), .trigger = every (3));
  td_trainer_extend (
      t,
      td_ext_snapshot_object (m, "model-{epoch}-{iteration}", .condition = in_odd_iterations),
      .trigger = every (3));
  assert_int_equal (td_trainer_run (t), TD_OK);
  /* 12 comes after 9, although "12" sorts before "9" */
  assert_string_equal (files (), "model-1-3 model-3-9 snapshot_iter_12 snapshot_iter_9");
}

static void
snapshot_object__holds_the_links_arrays (void **state)
{
  TdLink *m = td_linear_new (NULL, "m", 1, 1), *n;
  TdTrainer *t = small_trainer (3, m, NULL);

  (void)state;
  td_write (td_link_param (m, "W"), &(float){ 0.75f }, sizeof (float));
  td_trainer_extend (t, td_ext_snapshot_object (m, "model.npz"));
  assert_int_equal (td_trainer_run (t), TD_OK);
  n = td_linear_new (NULL, "n", TD_INFER, 1);
  assert_int_equal (td_load_npz (td_test_tmp ("out/model.npz"), n), TD_OK);
  assert_true (td_item (td_link_param (n, "W")) == 0.75);
}

static void
snapshot__is_taken_on_error_if_asked (void **state)
{
  TdLink *m = td_linear_new (NULL, "m", 1, 1);
  int64_t fail_at = 4;
  TdTrainer *t = small_trainer (12, m, &fail_at);

  (void)state;
  td_trainer_extend (t, td_ext_snapshot (.snapshot_on_error = true), .trigger = every (100));
  assert_int_equal (td_trainer_run (t), TD_ERR_NUMERIC);
  assert_string_equal (files (), "snapshot_iter_4");
  said (TD_ERR_NUMERIC);
}

static void
trainer__says_that_its_folder_is_none (void **state)
{
  TdTrainer *t = small_trainer (3, td_linear_new (NULL, "m", 1, 1), NULL);

  (void)state;
  td_test_write_file (td_test_tmp ("out"), "", 0);
  assert_int_equal (td_trainer_run (t), TD_ERR_IO);
  assert_contains (said (TD_ERR_IO), "/out: Not a directory");
}

static void
snapshot__leaves_the_old_file_when_it_cannot_write (void **state)
{
  TdLink *m = td_linear_new (NULL, "m", 1, 1);
  TdTrainer *t;
  struct stat before, after;

  (void)state;
  for (int i = 0; i < 2; i++)
    {
      TdSnapshotWriter writer = i == 0 ? TD_WRITER_SIMPLE : TD_WRITER_THREAD;

      t = small_trainer (3, m, NULL);
      td_trainer_extend (t, td_ext_snapshot (.filename = "state"));
      assert_int_equal (td_trainer_run (t), TD_OK);
      assert_int_equal (stat (td_test_tmp ("out/state"), &before), 0);
      t = small_trainer (3, m, NULL);
      td_trainer_extend (t, td_ext_snapshot (.filename = "state/below", .writer = writer));
      assert_int_equal (td_trainer_run (t), TD_ERR_IO);
      assert_contains (said (TD_ERR_IO), "state/below");
      assert_int_equal (stat (td_test_tmp ("out/state"), &after), 0);
      assert_true (before.st_ino == after.st_ino && before.st_size == after.st_size);
      assert_string_equal (files (), "state");
    }
}

static void
snapshot__says_what_is_wrong_with_the_file_it_begins_with (void **state)
{
  TdLink *m = td_linear_new (NULL, "m", 1, 1);
  TdTrainer *t = small_trainer (3, m, NULL);

  (void)state;
  mkdir (td_test_tmp ("out"), 0777);
  td_test_write_file (td_test_tmp ("out/snapshot_iter_7"), "no zip", 6);
  td_trainer_extend (t, td_ext_snapshot (.autoload = true));
  assert_int_equal (td_trainer_run (t), TD_ERR_IO);
  assert_contains (said (TD_ERR_IO), "snapshot_iter_7");
  assert_int_equal (td_updater_iteration (td_trainer_updater (t)), 0);
  td_ext_snapshot (.filename = "a/b", .autoload = true);
  assert_contains (said (TD_ERR_ARG), "autoload looks in the trainer's folder");
}

/* Rows of another dataset: nothing of the file is taken. */
static void
trainer_load__changes_nothing_when_something_does_not_fit (void **state)
{
  TdLink *m = td_linear_new (NULL, "m", 1, 1), *n = td_linear_new (NULL, "n", 1, 1);
  TdTrainer *t = small_trainer (4, m, NULL), *u;
  TdIter *it = td_serial_iterator_new (
      td_tuple_dataset_new (td_ones (TD_F32, TD_SHAPE (4, 1)), NULL), .batch_size = 2);
  double before = td_item (td_link_param (n, "W"));

  (void)state;
  assert_int_equal (td_trainer_run (t), TD_OK);
  assert_int_equal (td_save_npz (td_test_tmp ("t"), t), TD_OK);
  u = td_trainer_new (td_standard_updater_new (it, td_sgd_new (n), .update = step), every (5),
                      .out = td_test_tmp ("out"));
  assert_int_equal (td_load_npz (td_test_tmp ("t"), u), TD_ERR_SHAPE);
  assert_contains (said (TD_ERR_SHAPE),
                   "updater/iterator:main/order: shape (4) expected, the file has (6)");
  assert_true (td_item (td_link_param (n, "W")) == before);
  assert_int_equal (td_updater_iteration (td_trainer_updater (u)), 0);
  assert_int_equal (td_iter_count (it), 0);
}

static TdTrainer *
trainer_of_rows (int n, int iterations)
{
  TdIter *it
      = td_serial_iterator_new (td_tuple_dataset_new (td_ones (TD_F32, TD_SHAPE (n, 1)), NULL),
                                .batch_size = 2, .shuffle = false);
  TdLink *m = td_linear_new (NULL, "m", 1, 1);

  return td_trainer_new (td_standard_updater_new (it, td_sgd_new (m), .update = step),
                         every (iterations), .out = td_test_tmp ("out"));
}

static void
trainer_load__refuses_a_place_outside_the_data (void **state)
{
  TdTrainer *t = trainer_of_rows (9, 3);

  (void)state;
  assert_int_equal (td_trainer_run (t), TD_OK);
  assert_int_equal (td_save_npz (td_test_tmp ("t"), t), TD_OK);
  assert_int_equal (td_load_npz (td_test_tmp ("t"), trainer_of_rows (7, 3)), TD_OK);
  assert_int_equal (td_load_npz (td_test_tmp ("t"), trainer_of_rows (6, 3)), TD_ERR_IO);
  assert_contains (said (TD_ERR_IO),
                   "updater/iterator:main/current_position: it is not in the dataset");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    train_test (snapshot__resumes_as_if_never_stopped),
    train_test (snapshot__resumes_with_threads_that_load_and_write),
    train_test (snapshot__resumes_from_safetensors),
    train_test (trainer__says_that_its_folder_is_none),
    train_test (snapshot__keeps_the_newest_files_only),
    train_test (snapshot_object__holds_the_links_arrays),
    train_test (snapshot__is_taken_on_error_if_asked),
    train_test (snapshot__leaves_the_old_file_when_it_cannot_write),
    train_test (snapshot__says_what_is_wrong_with_the_file_it_begins_with),
    train_test (trainer_load__refuses_a_place_outside_the_data),
    train_test (trainer_load__changes_nothing_when_something_does_not_fit),
  };

  return cmocka_run_group_tests_name ("train-snapshot", tests, NULL, NULL);
}
