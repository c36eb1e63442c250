/* What training loops of several ranks have beside the evaluator: iterators that read for all,
 * reports of all, and checkpoints of all.
 *
 * SPDX-License-Identifier: MIT */
#include "models.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum
{
  ROWS = 24
};

/* Rows x = first, first + 1 ...; t = 2 x. */
static TdDataset *
rows (double first, int n)
{
  TdDataset *d = NULL;

  TD_SCOPE ("rows")
    {
      TdVar *x = td_reshape (td_arange (TD_F32, first, first + n, 1), TD_SHAPE (n, 1));

      d = td_tuple_dataset_new_n ((TdVar *[]){ x, td_mul_scalar (x, 2) }, 2);
    }
  return d;
}

/* --- iterators --- */

static void
assert_same_batches (TdIter *it, int n)
{
  for (int i = 0; i < n; i++)
    TD_SCOPE ("batch")
      {
        TdBatch b = td_iter_next (it);
        float room[8];
        int64_t where[2] = { td_iter_epoch (it), b.n };

        assert_true (b.n <= 4 && b.n_fields == 2);
        assert_int_equal (td_read (b.x, room, (size_t)b.n * 4), TD_OK);
        assert_int_equal (td_read (b.t, room + 4, (size_t)b.n * 4), TD_OK);
        for (int k = 0; k < b.n; k++)
          assert_float_equal (room[4 + k], 2 * room[k], 0);
        assert_same_on_all_ranks (room, (size_t)b.n * 4);
        assert_same_on_all_ranks (where, sizeof where);
      }
}

static void
synchronized__iterators_give_one_order_over_epochs (void **state)
{
  TdDataset *d = rows (0, ROWS);
  TdIter *it = td_serial_iterator_new (d, .batch_size = 4, .seed = 7 + (unsigned)me);

  (void)state;
  for (int i = 0; i < me; i++) /* and from different places */
    TD_SCOPE ("ahead")
      td_iter_next (it);
  assert_ptr_equal (td_synchronized_iterator_new (it, world), it);
  assert_same_batches (it, 20);
  td_iter_free (it);
  if (n_ranks > 1)
    {
      it = td_serial_iterator_new (d, .batch_size = me == 0 ? 4 : 3);
      td_synchronized_iterator_new (it, world);
      assert_non_null (
          strstr (said (TD_ERR_ARG), "expected: rank 1 has another one than rank 0"));
      td_iter_free (it);
    }
  td_synchronized_iterator_new (NULL, world);
  assert_non_null (strstr (said (TD_ERR_STATE), "the iterator is NULL"));
  td_dataset_free (d);
}

/* One rank alone has the data. */
static void
master__reads_the_batches_of_all (void **state)
{
  for (int root = 0; root<n_ranks; root += n_ranks> 1 ? n_ranks - 1 : 1)
    {
      TdDataset *d = me == root ? rows (0, ROWS) : rows (-1000, 3);
      TdIter *it = td_serial_iterator_new (d, .batch_size = me == root ? 4 : 2);

      (void)state;
      assert_ptr_equal (td_multi_node_iterator_new (it, world, root), it);
      assert_same_batches (it, 20);
      TD_SCOPE ("whose")
        assert_true (td_item (td_min (td_iter_next (it).x)) >= 0);
      td_iter_free (it);
      td_dataset_free (d);
    }
}

static void
master__says_to_all_that_it_is_at_its_end_or_cannot_read (void **state)
{
  TdDataset *d = rows (0, 4);
  TdIter *it = td_serial_iterator_new (d, .batch_size = 4, .repeat = me != 0), *other;

  (void)state;
  td_multi_node_iterator_new (it, world, 0);
  TD_SCOPE ("end")
    {
      td_iter_next (it);
      assert_int_equal (td_iter_epoch (it), 1);
      td_iter_next (it);
      assert_non_null (strstr (said (TD_ERR_STATE), "the iterator is at its end"));
    }
  td_multi_node_iterator_new (it, world, 0);
  assert_non_null (td_error ());
  assert_non_null (strstr (td_error ()->message, "has a communicator already"));
  td_error_clear ();
  other = td_serial_iterator_new (d, .batch_size = 4);
  td_multi_node_iterator_new (other, world, n_ranks);
  assert_non_null (strstr (td_error ()->message, "a rank of 0 to"));
  td_error_clear ();
  td_iter_free (it);
  td_iter_free (other);
  td_dataset_free (d);
}

/* --- a trainer --- */

static TdVar *
loss_of (void *self, const TdBatch *b)
{
  TdVar *y = td_sum_axes (td_link (self, b->x), (int[]){ 1 }, 1, true);
  TdVar *loss = td_mean_squared_error (y, b->t);

  td_report ("value", me + 1);
  td_report ("loss", td_item (loss));
  return loss;
}

typedef struct
{
  TdLink *net;
  TdOpt *opt;
  TdIter *it;
  TdUpdater *updater;
  TdTrainer *trainer;
} Training;

static Training
training_new (double iterations, const char *out)
{
  Training t;

  td_set_seed (3);
  t.net = mlp ("net", 1, 3);
  td_batch_normalization_new (t.net, "bn",
                              4); /* whose statistics are of each rank's own data */
  t.opt = td_multi_node_optimizer_new (td_adam_new (t.net, .lr = 0.01), world);
  t.it = td_serial_iterator_new (rows (me, ROWS), .batch_size = 4, .seed = 5 + (unsigned)me);
  t.updater = td_standard_updater_new (t.it, t.opt, .loss_func = loss_of, .self = t.net);
  t.trainer = td_trainer_new (t.updater, td_interval_trigger_new (iterations, "iteration"),
                              .out = out);
  return t;
}

static void
training_free (Training *t)
{
  td_trainer_free (t->trainer);
  td_updater_free (t->updater);
  td_opt_free (t->opt);
  td_link_free (t->net);
}

typedef struct
{
  double every[20], third[20];
  int n_every, n_third;
} Seen;

static TdStatus
see (void *self, TdTrainer *t)
{
  Seen *seen = self;
  const TdSummary a = td_observation_get (td_trainer_observation (t), "value/all");
  const TdSummary b = td_observation_get (td_trainer_observation (t), "value/third");

  if (a.n > 0)
    seen->every[seen->n_every++] = a.last;
  if (b.n > 0)
    seen->third[seen->n_third++] = b.last;
  return TD_OK;
}

static void
aggregator__reports_the_mean_of_all_ranks (void **state)
{
  Training t = training_new (9, td_test_tmp ("out"));
  Seen seen = { { 0 }, { 0 }, 0, 0 };

  (void)state;
  td_trainer_extend (t.trainer,
                     td_observation_aggregator_new (world, "value", "value/all", NULL));
  td_trainer_extend (t.trainer,
                     td_observation_aggregator_new (world, "value", "value/third",
                                                    td_interval_trigger_new (3, "iteration")));
  td_trainer_extend (t.trainer, td_ext_function_new (see, &seen));
  assert_int_equal (td_trainer_run (t.trainer), TD_OK);
  assert_int_equal (seen.n_every, 9);
  assert_int_equal (seen.n_third, 3);
  for (int i = 0; i < 9; i++)
    assert_float_equal (seen.every[i], (n_ranks + 1) / 2.0, 1e-12);
  for (int i = 0; i < 3; i++)
    assert_float_equal (seen.third[i], (n_ranks + 1) / 2.0, 1e-12);
  td_observation_aggregator_new (world, NULL, NULL, NULL);
  assert_non_null (strstr (said (TD_ERR_ARG), "a key expected"));
  training_free (&t);
}

/* Running statistics are of a rank's own examples; whole numbers are left alone. */
static void
persistents__become_the_mean_of_all_ranks (void **state)
{
  TdLink *model = td_chain_new ("net");
  TdVar *mean = NULL, *half = NULL, *count = NULL;
  TdExtension *x;

  (void)state;
  TD_SCOPE ("persistents")
    {
      mean = td_link_add_persistent (model, "mean", td_full (TD_F64, TD_SHAPE (3), me + 1));
      half = td_link_add_persistent (model, "half", td_full (TD_F16, TD_SHAPE (2), 2 * me));
      count = td_link_add_persistent (model, "count", td_full (TD_I64, TD_SHAPE (1), me));
    }
  assert_int_equal (td_comm_allreduce_persistent (world, model), TD_OK);
  TD_SCOPE ("means")
    {
      assert_near (mean, td_full (TD_F64, TD_SHAPE (3), (n_ranks + 1) / 2.0), 1e-15);
      assert_near (half, td_full (TD_F16, TD_SHAPE (2), n_ranks - 1), 0);
      assert_near (count, td_full (TD_I64, TD_SHAPE (1), me), 0);
    }
  if (n_ranks > 1)
    {
      TdLink *other = td_chain_new ("other");

      TD_SCOPE ("other")
        td_link_add_persistent (other, me == 0 ? "a" : "b", td_zeros (TD_F32, TD_SHAPE (1)));
      td_comm_allreduce_persistent (world, other);
      assert_non_null (strstr (said (TD_ERR_STATE), "where rank 0 has"));
      td_link_free (other);
    }
  x = td_allreduce_persistent_new (world, NULL);
  assert_non_null (td_error ());
  td_error_clear ();
  td_extension_free (x);
  td_link_free (model);
}

/* Once an epoch, by a trainer: the statistics are the same on all ranks when it evaluates. */
static TdStatus
compare_statistics (void *self, TdTrainer *t)
{
  float room[2];

  (void)t;
  td_read (td_link_param (td_link_child (self, "bn"), "avg_mean"), room, sizeof room);
  assert_same_on_all_ranks (room, sizeof room);
  return TD_OK;
}

static TdVar *
normalized_loss (void *self, const TdBatch *b)
{
  return td_mean (td_square (td_link (self, b->x)));
}

static void
persistents__are_one_models_when_an_extension_averages_them (void **state)
{
  TdLink *net = td_sequential_new ("net");
  TdOpt *opt;
  TdUpdater *updater;
  TdTrainer *trainer;

  (void)state;
  td_linear_new (net, "l", 1, 2);
  td_batch_normalization_new (net, "bn", 2);
  opt = td_multi_node_optimizer_new (td_sgd_new (net, .lr = 1e-3), world);
  updater
      = td_standard_updater_new (td_serial_iterator_new (rows (10 * me, 8), .batch_size = 4),
                                 opt, .loss_func = normalized_loss, .self = net);
  trainer = td_trainer_new (updater, td_interval_trigger_new (2, "epoch"),
                            .out = td_test_tmp ("out"));
  td_trainer_extend (trainer, td_allreduce_persistent_new (world, net));
  td_trainer_extend (trainer, td_ext_function_new (compare_statistics, net),
                     .trigger = td_interval_trigger_new (1, "epoch"));
  assert_int_equal (td_trainer_run (trainer), TD_OK);
  td_trainer_free (trainer);
  td_link_free (net);
}

/* --- checkpoints --- */

/* One folder for all ranks. */
static const char *
folder (void)
{
  static char path[300];
  char mine[300] = { 0 };

  snprintf (mine, sizeof mine, "%s", td_test_tmp ("checkpoints"));
  TD_SCOPE ("folder")
    {
      TdVar *x = td_comm_bcast (world, td_tensor (TD_U8, TD_SHAPE (sizeof mine), mine), 0);

      assert_int_equal (td_read (x, path, sizeof path), TD_OK);
    }
  if (me == 0)
    mkdir (path, 0777);
  assert_int_equal (td_comm_barrier (world), TD_OK);
  return path;
}

static void
extend (Training *t)
{
  td_trainer_extend (t->trainer, td_multi_node_checkpointer_new ("check", world),
                     .trigger = td_interval_trigger_new (2, "iteration"));
}

static bool
exists (const char *out, int iteration, int rank, int size)
{
  char path[400];

  snprintf (path, sizeof path, "%s/check.%d.%d-of-%d.npz", out, iteration, rank, size);
  return access (path, F_OK) == 0;
}

static Numbers
run (double iterations, const char *out, int64_t *from)
{
  Training t = training_new (iterations, out);
  Numbers numbers;

  extend (&t);
  assert_int_equal (td_trainer_run (t.trainer), TD_OK);
  assert_params_same_on_all_ranks (t.net);
  numbers = params_of (t.net);
  for (int i = 0; i < 2; i++)
    {
      TdVar *v = td_link_param (t.net, i ? "bn/avg_var" : "bn/avg_mean");

      assert_int_equal (td_read (v, numbers.numbers + numbers.n, 4 * sizeof (float)), TD_OK);
      numbers.n += 4;
    }
  if (from != NULL)
    *from = td_opt_count (t.opt);
  training_free (&t);
  return numbers;
}

static void
damage (const char *out, int iteration, int rank)
{
  char path[400], zeros[64] = { 0 };
  FILE *file;

  snprintf (path, sizeof path, "%s/check.%d.%d-of-%d.npz", out, iteration, rank, n_ranks);
  file = fopen (path, "r+b");
  assert_non_null (file);
  fseek (file, 200, SEEK_SET);
  fwrite (zeros, 1, sizeof zeros, file);
  fclose (file);
}

/* Interrupted after 6 of 10 iterations, it goes on bit for bit, with each rank's own statistics
 * of batches; only two checkpoints stay. */
static void
checkpoints__of_all_ranks_are_gone_on_from_bit_for_bit (void **state)
{
  const char *out = folder ();
  Numbers whole = run (10, td_test_tmp ("other"), NULL), resumed;
  int64_t count;

  (void)state;
  run (6, out, NULL);
  assert_true (exists (out, 6, me, n_ranks) && exists (out, 4, me, n_ranks));
  assert_false (exists (out, 2, me, n_ranks));
  resumed = run (10, out, &count);
  assert_int_equal (count, 10);
  assert_memory_equal (whole.numbers, resumed.numbers, whole.n * sizeof (float));
}

/* The newest of one rank is damaged: all go on from the one before, to the same numbers. */
static void
checkpoint__that_is_damaged_on_one_rank_is_passed_over_by_all (void **state)
{
  const char *out = folder ();
  Numbers whole = run (6, out, NULL), resumed;

  (void)state;
  if (me == n_ranks - 1)
    {
      damage (out, 6, me);
      assert_true (exists (out, 6, me, n_ranks));
    }
  assert_int_equal (td_comm_barrier (world), TD_OK);
  resumed = run (6, out, NULL); /* from 4 on */
  assert_memory_equal (whole.numbers, resumed.numbers, whole.n * sizeof (float));
  if (me == 0) /* and one rank has lost all of its own */
    {
      char line[500];

      snprintf (line, sizeof line, "rm -f %s/check.*.0-of-*.npz", out);
      assert_int_equal (system (line), 0);
    }
  assert_int_equal (td_comm_barrier (world), TD_OK);
  resumed = run (6, out, NULL); /* from the beginning */
  assert_memory_equal (whole.numbers, resumed.numbers, whole.n * sizeof (float));
}

static TdStatus
first_count (void *self, TdTrainer *t)
{
  int64_t *first = self;

  if (*first == 0)
    *first = td_updater_iteration (td_trainer_updater (t));
  return TD_OK;
}

/* The files of two ranks, which are made of those that are here. */
static void
checkpoint__of_another_number_gives_weights_and_optimizers (void **state)
{
  const char *out = folder ();
  Training t;
  int64_t first = 0;

  (void)state;
  run (6, out, NULL);
  if (me == 0)
    {
      char line[1200];

      snprintf (
          line, sizeof line,
          "cd %s && for f in check.*.0-of-%d.npz; do mv $f ${f%%-of-*}-of-99.npz; done && "
          "rm -f check.*-of-%d.npz",
          out, n_ranks, n_ranks);
      assert_int_equal (system (line), 0);
    }
  assert_int_equal (td_comm_barrier (world), TD_OK);
  t = training_new (8, out);
  extend (&t);
  td_trainer_extend (t.trainer, td_ext_function_new (first_count, &first));
  assert_int_equal (td_trainer_run (t.trainer), TD_OK);
  assert_int_equal (first, 7);
  assert_int_equal (td_opt_count (t.opt), 8);
  assert_params_same_on_all_ranks (t.net);
  training_free (&t);
}

/* Something else has its name on one rank: all end with an error, and the older one stays. */
static void
checkpoint__that_one_rank_cannot_write_is_an_error_on_all (void **state)
{
  const char *out = folder ();
  Training t;
  char path[400];

  (void)state;
  snprintf (path, sizeof path, "%s/check.4.%d-of-%d.npz", out, n_ranks - 1, n_ranks);
  if (me == n_ranks - 1)
    assert_int_equal (mkdir (path, 0777), 0);
  assert_int_equal (td_comm_barrier (world), TD_OK);
  t = training_new (8, out);
  extend (&t);
  assert_int_not_equal (td_trainer_run (t.trainer), TD_OK);
  assert_non_null (strstr (td_error ()->message, "check.4."));
  td_error_clear ();
  assert_true (exists (out, 2, me, n_ranks));
  assert_int_equal (td_opt_count (t.opt), 4);
  training_free (&t);
}

/* A folder that is none yet: training begins. */
static void
no_checkpoint__lets_training_begin (void **state)
{
  char out[400];
  Numbers a, b;

  (void)state;
  snprintf (out, sizeof out, "%s/none/yet", folder ());
  a = run (4, out, NULL);
  b = run (4, td_test_tmp ("other"), NULL);
  assert_memory_equal (a.numbers, b.numbers, a.n * sizeof (float));
  td_multi_node_checkpointer_new ("a/b", world);
  assert_non_null (strstr (said (TD_ERR_ARG), "a name for its files"));
}

static int
setup (void **state)
{
  return td_test_setup (state);
}

static int
teardown (void **state)
{
  if (td_error () != NULL)
    print_error ("rank %d, unexpected: %s\n", me, td_error ()->message);
  td_comm_barrier (world); /* before rank 0 removes the folder of all */
  return td_test_teardown (state) != 0 || td_error () != NULL ? -1 : 0;
}

#define loop_test(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    loop_test (synchronized__iterators_give_one_order_over_epochs),
    loop_test (master__reads_the_batches_of_all),
    loop_test (master__says_to_all_that_it_is_at_its_end_or_cannot_read),
    loop_test (aggregator__reports_the_mean_of_all_ranks),
    loop_test (persistents__become_the_mean_of_all_ranks),
    loop_test (persistents__are_one_models_when_an_extension_averages_them),
    loop_test (checkpoints__of_all_ranks_are_gone_on_from_bit_for_bit),
    loop_test (checkpoint__that_is_damaged_on_one_rank_is_passed_over_by_all),
    loop_test (checkpoint__of_another_number_gives_weights_and_optimizers),
    loop_test (checkpoint__that_one_rank_cannot_write_is_an_error_on_all),
    loop_test (no_checkpoint__lets_training_begin),
  };

  return run_as_ranks (tests);
}
