/* A trainer on every rank: updates, evaluations and reports that are of all of them.
 *
 * SPDX-License-Identifier: MIT */
#include "ranks.h"

#include <math.h>
#include <string.h>

enum
{
  TESTS = 23,
  TRAINS = 24,
  EPOCHS = 2
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

static void
report_square (void *self, const TdBatch *b)
{
  (void)self;
  td_report ("square", td_item (td_mean (td_square (b->x))));
}

static TdVar *
loss_of (void *self, const TdBatch *b)
{
  return td_mean_squared_error (td_link (self, b->x), b->t);
}

typedef struct
{
  double square[EPOCHS];
  int n;
} Seen;

static TdStatus
see (void *self, TdTrainer *t)
{
  Seen *seen = self;
  const TdSummary s = td_observation_get (td_trainer_observation (t), "validation/square");

  if (s.n > 0 && seen->n < EPOCHS)
    seen->square[seen->n++] = s.last;
  return TD_OK;
}

static void
trainer__of_every_rank_evaluates_the_whole_each_example_once (void **state)
{
  TdLink *line = td_linear_new (NULL, "line", 1, 1);
  TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (line, .lr = 1e-4), world);
  TdDataset *train = td_scatter_dataset (me == 0 ? rows (0, TRAINS) : NULL, world,
                                         .shuffle = true, .force_equal_length = true);
  TdDataset *test
      = td_scatter_dataset (me == 0 ? rows (-3, TESTS) : NULL, world, .shuffle = false);
  TdIter *it = td_serial_iterator_new (train, .batch_size = 3);
  TdIter *all
      = td_serial_iterator_new (test, .batch_size = 4, .shuffle = false, .repeat = false);
  TdExtension *evaluator = td_ext_evaluator (all, line, .eval_func = report_square);
  TdTrainer *trainer;
  Seen seen = { { 0 }, 0 };
  double mean = 0;
  float weights[2];

  (void)state;
  assert_ptr_equal (td_multi_node_evaluator_new (evaluator, world), evaluator);
  trainer
      = td_trainer_new (td_standard_updater_new (it, opt, .loss_func = loss_of, .self = line),
                        td_interval_trigger_new (EPOCHS, "epoch"), .out = td_test_tmp ("out"));
  td_trainer_extend (trainer, evaluator);
  td_trainer_extend (trainer, td_ext_function_new (see, &seen));
  assert_int_equal (td_trainer_run (trainer), TD_OK);
  for (int i = 0; i < TESTS; i++)
    mean += (i - 3.0) * (i - 3.0) / TESTS;
  assert_int_equal (seen.n, EPOCHS);
  for (int i = 0; i < EPOCHS; i++)
    if (!(fabs (seen.square[i] - mean) < 1e-5))
      fail_msg ("rank %d: %.9g, %.9g expected", me, seen.square[i], mean);
  assert_int_equal (td_read (td_link_param (line, "W"), weights, sizeof *weights), TD_OK);
  assert_same_on_all_ranks (weights, sizeof *weights);
  td_trainer_free (trainer);
  td_link_free (line);
}

static void
report_by_rank (void *self, const TdBatch *b)
{
  (void)self, (void)b;
  td_report (me == 0 ? "one" : "other", 1);
}

static void
evaluator__whose_keys_differ_is_an_error_on_all_ranks (void **state)
{
  TdIter *it = td_serial_iterator_new (rows (0, 4), .batch_size = 4);
  TdIter *all = td_serial_iterator_new (rows (0, 4), .batch_size = 4, .repeat = false);
  TdLink *line = td_linear_new (NULL, "line", 1, 1);
  TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (line, .lr = 1e-4), world);
  TdTrainer *trainer
      = td_trainer_new (td_standard_updater_new (it, opt, .loss_func = loss_of, .self = line),
                        td_interval_trigger_new (1, "epoch"), .out = td_test_tmp ("out"));

  (void)state;
  td_trainer_extend (trainer,
                     td_multi_node_evaluator_new (
                         td_ext_evaluator (all, line, .eval_func = report_by_rank), world));
  td_trainer_run (trainer);
  if (n_ranks > 1)
    assert_non_null (strstr (said (TD_ERR_STATE), "the ranks report different keys"));
  td_multi_node_evaluator_new (td_ext_fail_on_non_number (), world);
  assert_non_null (strstr (said (TD_ERR_ARG), "an evaluator of td_ext_evaluator expected"));
  assert_int_equal (td_comm_barrier (world), TD_OK);
  td_trainer_free (trainer);
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
  return td_test_teardown (state) != 0 || td_error () != NULL ? -1 : 0;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (
        trainer__of_every_rank_evaluates_the_whole_each_example_once, setup, teardown),
    cmocka_unit_test_setup_teardown (evaluator__whose_keys_differ_is_an_error_on_all_ranks,
                                     setup, teardown),
  };

  return run_as_ranks (tests);
}
