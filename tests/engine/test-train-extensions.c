/* Extensions that report, write and draw.
 *
 * Formats and numbers are those of Chainer 7.8.1's extensions for the same reports.
 * SPDX-License-Identifier: MIT */
#include "start.h"

#include "train/loop/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Four rows in batches of two: an epoch is two iterations.  The model is y = w x + b. */
typedef struct
{
  TdLink *line;
  TdOpt *opt;
  TdUpdater *updater;
  TdTrainer *trainer;
} Setting;

static TdVar *
loss_function (void *self, const TdBatch *b)
{
  TdVar *loss = td_mean_squared_error (td_link (self, b->x), b->t);

  td_report_variable ("loss", loss);
  return loss;
}

static TdDataset *
four_rows (void)
{
  static const float x[4] = { 1, 2, 3, 4 }, y[4] = { 2, 4, 6, 8 };

  return td_tuple_dataset_new_n ((TdVar *[]){ td_tensor (TD_F32, TD_SHAPE (4, 1), x),
                                              td_tensor (TD_F32, TD_SHAPE (4, 1), y) },
                                 2);
}

static Setting
setting (double lr, int iterations)
{
  Setting s;
  TdIter *it = td_serial_iterator_new (four_rows (), .batch_size = 2, .shuffle = false);

  s.line = td_linear_new (NULL, "line", 1, 1, .initialW = td_init_one ());
  s.opt = td_sgd_new (s.line, .lr = lr);
  s.updater = td_standard_updater_new (it, s.opt, .loss_func = loss_function, .self = s.line);
  s.trainer = td_trainer_new (s.updater, td_interval_trigger_new (iterations, "iteration"),
                              .out = td_test_tmp ("out"));
  return s;
}

static char *
file_of (const char *name)
{
  char path[300];
  size_t n;

  snprintf (path, sizeof path, "out/%s", name);
  return td_test_read_file (td_test_tmp (path), &n);
}

static double stopped_clock_now;

static double
stopped_clock (void)
{
  return stopped_clock_now;
}

/* Report 1, 2, 3 ... of iteration under "n", and the iteration's parity under "odd" when odd.
 */
static TdStatus
report_numbers (void *self, TdTrainer *t)
{
  int64_t i = td_updater_iteration (td_trainer_updater (t));

  (void)self;
  stopped_clock_now += 0.25;
  td_report ("n", (double)i);
  if (i % 2 == 1)
    td_report ("odd", 10.0 * (double)i);
  return TD_OK;
}

static void
extend_numbers (TdTrainer *t)
{
  td_trainer_extend (t, td_ext_function_new (report_numbers, NULL), .name = "numbers",
                     .priority = TD_PRIORITY_WRITER);
}

/* --- log and table --- */

static void
double_n (void *self, TdObservation *line)
{
  (void)self;
  td_observation_add (line, "twice", 2 * td_observation_get (line, "n").last, 1);
}

static void
log_report__writes_chainers_json (void **state)
{
  double (*clock) (void) = td__train_clock;
  Setting s = setting (0, 4);
  char *text;

  (void)state;
  td__train_clock = stopped_clock;
  extend_numbers (s.trainer);
  td_trainer_extend (s.trainer, td_ext_log_report (.keys = TD_KEYS ("n", "odd", "absent"),
                                                   .postprocess = double_n));
  assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  td__train_clock = clock;
  text = file_of ("log");
  assert_string_equal (text, "[\n"
                             "    {\n"
                             "        \"n\": 1.5,\n"
                             "        \"odd\": 10.0,\n"
                             "        \"epoch\": 1,\n"
                             "        \"iteration\": 2,\n"
                             "        \"elapsed_time\": 0.5,\n"
                             "        \"twice\": 3.0\n"
                             "    },\n"
                             "    {\n"
                             "        \"n\": 3.5,\n"
                             "        \"odd\": 30.0,\n"
                             "        \"epoch\": 2,\n"
                             "        \"iteration\": 4,\n"
                             "        \"elapsed_time\": 1.0,\n"
                             "        \"twice\": 7.0\n"
                             "    }\n"
                             "]");
  free (text);
}

static const char odd_key[] = "a\tb\"\xc3\xa9\x01";

static TdStatus
report_odd_things (void *self, TdTrainer *t)
{
  (void)self;
  (void)t;
  td_report (odd_key, 0.1);
  td_report ("nan", (double)NAN);
  td_report ("inf", -(double)INFINITY);
  return TD_OK;
}

static void
log_report__reads_back_whatever_it_has_written (void **state)
{
  TdExtension *logs[2];
  Setting s[2];

  (void)state;
  for (int i = 0; i < 2; i++)
    {
      s[i] = setting (0, 2);
      logs[i] = td_ext_log_report (.trigger = td_interval_trigger_new (1, "iteration"));
      td_trainer_extend (s[i].trainer, td_ext_function_new (report_odd_things, NULL),
                         .name = "odd", .priority = TD_PRIORITY_WRITER);
      td_trainer_extend (s[i].trainer, logs[i]);
    }
  assert_int_equal (td_trainer_run (s[0].trainer), TD_OK);
  assert_int_equal (td_save_npz (td_test_tmp ("t"), s[0].trainer), TD_OK);
  assert_int_equal (td_load_npz (td_test_tmp ("t"), s[1].trainer), TD_OK);
  assert_int_equal (td_log_report_n_lines (logs[1]), 2);
  for (int line = 0; line < 2; line++)
    {
      assert_true (td_log_report_value (logs[1], line, odd_key) == 0.1);
      assert_true (isnan (td_log_report_value (logs[1], line, "nan")));
      assert_true (isinf (td_log_report_value (logs[1], line, "inf")));
      assert_true (td_log_report_value (logs[1], line, "iteration") == line + 1);
    }
}

static void
log_report__takes_all_keys_and_names_files (void **state)
{
  Setting s = setting (0, 3);
  TdExtension *log = td_ext_log_report (.trigger = td_interval_trigger_new (1, "iteration"),
                                        .filename = "log-{iteration}");
  char *text;

  (void)state;
  extend_numbers (s.trainer);
  td_trainer_extend (s.trainer, log);
  assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  assert_int_equal (td_log_report_n_lines (log), 3);
  assert_true (td_log_report_value (log, 2, "odd") == 30);
  assert_true (isnan (td_log_report_value (log, 1, "odd")));
  assert_true (td_log_report_value (log, 1, "loss") > 0);
  assert_true (isnan (td_log_report_value (log, 3, "n")));
  text = file_of ("log-2");
  assert_contains (text, "\"iteration\": 2");
  assert_not_contains (text, "\"iteration\": 3");
  free (text);
}

static void
print_report__is_a_table_of_the_log (void **state)
{
  Setting s = setting (0, 4);
  FILE *file = fopen (td_test_tmp ("table"), "w+");
  char text[500] = "";

  (void)state;
  extend_numbers (s.trainer);
  td_trainer_extend (s.trainer,
                     td_ext_log_report (.trigger = td_interval_trigger_new (1, "iteration")));
  td_trainer_extend (s.trainer,
                     td_ext_print_report (TD_KEYS ("epoch", "n", "odd_and_very_long", "odd"),
                                          .fd = fileno (file)));
  assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  rewind (file);
  assert_true (fread (text, 1, sizeof text - 1, file) > 0);
  fclose (file);
  assert_string_equal (text, "epoch       n           odd_and_very_long  odd       \n"
                             "0           1                              10          \n"
                             "1           2                                          \n"
                             "1           3                              30          \n"
                             "2           4                                          \n");
}

static void
print_report__says_which_log_it_misses (void **state)
{
  Setting s = setting (0, 2);

  (void)state;
  td_trainer_extend (s.trainer, td_ext_print_report (TD_KEYS ("epoch"), .log_report = "Other"));
  assert_int_equal (td_trainer_run (s.trainer), TD_ERR_STATE);
  assert_contains (said (TD_ERR_STATE), "no log report \"Other\"");
}

/* --- charts --- */

static int
count (const char *text, const char *what)
{
  int n = 0;

  for (const char *at = strstr (text, what); at != NULL; at = strstr (at + 1, what))
    n++;
  return n;
}

static void
plot_report__draws_a_line_and_its_points_for_each_key (void **state)
{
  Setting s = setting (0, 4);
  char *svg;

  (void)state;
  extend_numbers (s.trainer);
  td_trainer_extend (s.trainer,
                     td_ext_plot_report (TD_KEYS ("n", "odd", "a<b"), .filename = "n.svg",
                                         .trigger = td_interval_trigger_new (1, "iteration")));
  assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  svg = file_of ("n.svg");
  assert_contains (svg, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
  assert_int_equal (count (svg, "<circle"), 6); /* four of n, two of odd */
  assert_contains (svg, "a&#60;b");
  /* x from 1 to 4 in 72..624, y from 0 to 30 in 256..28: n is 1 to 4 */
  assert_contains (svg, "M72.0 248.4L256.0 240.8L440.0 233.2L624.0 225.6");
  free (svg);
  td_ext_plot_report (TD_KEYS ("n"), .x_key = "day");
  assert_contains (said (TD_ERR_ARG), "\"iteration\" or \"epoch\"");
}

static void
variable_statistics_plot__draws_every_parameter_and_gradient (void **state)
{
  Setting s = setting (0.01, 9);
  char *svg;

  (void)state;
  td_trainer_extend (s.trainer, td_ext_variable_statistics_plot (s.line, .max_sample_size = 4));
  assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  svg = file_of ("statistics.svg");
  assert_int_equal (count (svg, "font-weight=\"bold\""), 4);
  assert_contains (svg, ">W data<");
  assert_contains (svg, ">b grad<");
  assert_contains (svg, "mean ± std");
  free (svg);
}

static void
progress_bar__prints_lines_where_there_is_no_terminal (void **state)
{
  double (*clock) (void) = td__train_clock;
  Setting s = setting (0, 8);
  FILE *file = fopen (td_test_tmp ("bar"), "w+");
  char text[1000] = "";

  (void)state;
  td__train_clock = stopped_clock;
  extend_numbers (s.trainer);
  td_trainer_extend (s.trainer, td_ext_progress_bar (.update_interval = 2, .bar_length = 8,
                                                     .fd = fileno (file)));
  assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  td__train_clock = clock;
  rewind (file);
  assert_true (fread (text, 1, sizeof text - 1, file) > 0);
  fclose (file);
  assert_string_equal (text,
                       "     total [##......]  25.00%         2 iter, 1 epoch / 8 iterations\n"
                       "     total [####....]  50.00%         4 iter, 2 epoch / 8 iterations"
                       "         4 iters/sec. Estimated time to finish: 0:00:01.\n"
                       "     total [######..]  75.00%         6 iter, 3 epoch / 8 iterations"
                       "         4 iters/sec. Estimated time to finish: 0:00:00.\n"
                       "     total [########] 100.00%         8 iter, 4 epoch / 8 iterations"
                       "         4 iters/sec. Estimated time to finish: 0:00:00.\n");
}

static void
progress_bar__wants_to_know_the_length (void **state)
{
  TdTrainer *t = td_trainer_new (setting (0, 1).updater, td_time_trigger_new (9),
                                 .out = td_test_tmp ("out"));

  (void)state;
  td_trainer_extend (t, td_ext_progress_bar (.update_interval = 1));
  assert_int_equal (td_trainer_run (t), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "give .training_length");
}

/* --- values --- */

typedef struct
{
  double sum[12];
  int n;
} Seen;

static TdStatus
see_result (void *self, TdTrainer *t)
{
  Seen *seen = self;
  TdSummary v = td_observation_get (td_trainer_observation (t), "result");

  if (v.n > 0)
    seen->sum[seen->n++] = v.last;
  return TD_OK;
}

static void
micro_average__divides_the_sums (void **state)
{
  Setting s = setting (0, 6);
  Seen seen = { { 0 }, 0 };

  (void)state;
  extend_numbers (s.trainer);
  td_trainer_extend (
      s.trainer,
      td_ext_micro_average ("odd", "n", "result", td_interval_trigger_new (3, "iteration")));
  td_trainer_extend (s.trainer, td_ext_function_new (see_result, &seen));
  assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  /* odd comes in iterations 1, 3, 5; the trigger is asked only then, and fires at 3 */
  assert_int_equal (seen.n, 1);
  assert_true (seen.sum[0] == (10.0 + 30.0) / (1.0 + 3.0));
}

static double
answer (void *self, TdTrainer *t)
{
  return *(double *)self + (double)td_updater_iteration (td_trainer_updater (t));
}

static void
observe__reports_values_and_the_learning_rate (void **state)
{
  Setting s = setting (0.125, 4);
  Seen seen = { { 0 }, 0 }, lr = { { 0 }, 0 };
  double forty = 40;

  (void)state;
  td_trainer_extend (s.trainer, td_ext_observe_value ("result", answer, &forty));
  td_trainer_extend (s.trainer, td_ext_function_new (see_result, &seen));
  assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  assert_true (seen.n == 2 && seen.sum[0] == 42 && seen.sum[1] == 44);
  s = setting (0.125, 4);
  td_trainer_extend (s.trainer, td_ext_observe_lr (.key = "result"));
  td_trainer_extend (s.trainer, td_ext_function_new (see_result, &lr));
  assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  assert_true (lr.n == 2 && lr.sum[0] == 0.125);
}

/* --- evaluation --- */

static TdStatus
see_validation (void *self, TdTrainer *t)
{
  *(double *)self = td_observation_get (td_trainer_observation (t), "validation/loss").last;
  return TD_OK;
}

static void
evaluate_loss (void *self, const TdBatch *b)
{
  assert_int_equal (td_config ()->train, 0);
  assert_int_equal (td_config ()->enable_backprop, 0);
  td_report ("loss", td_item (td_mean_squared_error (td_link (self, b->x), b->t)));
}

static void
evaluator__reports_the_mean_over_batches (void **state)
{
  Setting s = setting (0, 2);
  TdIter *it = td_serial_iterator_new (four_rows (), .batch_size = 3, .shuffle = false,
                                       .repeat = false);
  double loss = 0;

  (void)state;
  td_trainer_extend (s.trainer,
                     td_ext_evaluator (it, s.line, .eval_func = evaluate_loss, .self = s.line));
  td_trainer_extend (s.trainer, td_ext_function_new (see_validation, &loss));
  assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  /* (y - x)^2 = x^2: the means of 1 4 9 and of 16, each a batch */
  assert_true (fabs (loss - (14.0 / 3 + 16) / 2) < 1e-6);
  assert_int_equal (td_config ()->train, 1);
  assert_int_equal (td_config ()->enable_backprop, 1);
  td_ext_evaluator (td_serial_iterator_new (four_rows ()), s.line);
  assert_contains (said (TD_ERR_ARG), "an iterator that does not repeat");
}

/* Updater and evaluator call a classifier with the fields of their batches. */
static void
evaluator__calls_its_target_without_a_function (void **state)
{
  static const float x[4] = { -2, -1, 1, 2 };
  static const int32_t t[4] = { 0, 0, 1, 1 };
  TdDataset *d = td_tuple_dataset_new (td_tensor (TD_F32, TD_SHAPE (4, 1), x),
                                       td_tensor (TD_I32, TD_SHAPE (4), t));
  TdLink *m = td_classifier_new (NULL, "m", td_linear_new (NULL, "line", 1, 2));
  TdIter *it = td_serial_iterator_new (d, .batch_size = 2, .seed = 1);
  TdIter *all = td_serial_iterator_new (d, .batch_size = 4, .repeat = false);
  TdExtension *log = td_ext_log_report (.filename = NULL);
  TdTrainer *trainer
      = td_trainer_new (td_standard_updater_new (it, td_sgd_new (m, .lr = 0.5)),
                        td_interval_trigger_new (9, "epoch"), .out = td_test_tmp ("out"));
  char *dot;

  (void)state;
  td_trainer_extend (trainer, td_ext_evaluator (all, m, .name = "test"));
  td_trainer_extend (trainer, td_ext_dump_graph ("loss"));
  td_trainer_extend (trainer, log);
  assert_int_equal (td_trainer_run (trainer), TD_OK);
  assert_int_equal (td_log_report_n_lines (log), 9);
  assert_true (td_log_report_value (log, 8, "test/accuracy") == 1);
  assert_true (td_log_report_value (log, 8, "test/loss")
               < td_log_report_value (log, 0, "test/loss"));
  assert_true (td_log_report_value (log, 8, "loss") > 0);
  dot = file_of ("cg.dot");
  assert_contains (dot, "SoftmaxCrossEntropy");
  free (dot);
}

/* --- the model --- */

static void
fail_on_non_number__names_the_parameter (void **state)
{
  Setting s = setting (1e30, 50);

  (void)state;
  td_trainer_extend (s.trainer, td_ext_fail_on_non_number ());
  assert_int_equal (td_trainer_run (s.trainer), TD_ERR_NUMERIC);
  assert_contains (said (TD_ERR_NUMERIC), "parameter W is not a number any more: element 0");
  assert_true (td_updater_iteration (s.updater) < 5);
}

static TdStatus
see_statistics (void *self, TdTrainer *t)
{
  TdObservation *o = td_trainer_observation (t);
  double *v = self;

  v[0] = td_observation_get (o, "p/m/w/data/mean").last;
  v[1] = td_observation_get (o, "p/m/w/data/std").last;
  v[2] = td_observation_get (o, "p/m/w/data/min").last;
  v[3] = td_observation_get (o, "p/m/w/data/max").last;
  v[4] = td_observation_get (o, "p/m/w/data/zeros").last;
  v[5] = td_observation_get (o, "p/m/w/data/percentile/0").last;
  v[6] = td_observation_get (o, "p/m/w/data/percentile/3").last;
  v[7] = (double)td_observation_n_keys (o);
  return TD_OK;
}

/* numpy.percentile ([0, 1, 2, 4], [0.13, 50]) is [0.0039, 1.5]; its std is 1.479... */
static void
parameter_statistics__are_numpys (void **state)
{
  static const float w[4] = { 4, 0, 1, 2 };
  TdLink *m = td_chain_new ("m");
  Setting s = setting (0, 2);
  double v[8];

  (void)state;
  td_write (td_link_add_param (m, "w", TD_SHAPE (4)), w, sizeof w);
  td_trainer_extend (s.trainer, td_ext_parameter_statistics (m, .prefix = "p"));
  td_trainer_extend (s.trainer, td_ext_function_new (see_statistics, v),
                     .trigger = td_interval_trigger_new (1, "epoch"));
  assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  assert_true (v[0] == 1.75 && v[2] == 0 && v[3] == 4 && v[4] == 1);
  assert_true (fabs (v[1] - 1.479019945774904) < 1e-14);
  assert_true (fabs (v[5] - 0.0039) < 1e-15 && v[6] == 1.5);
  assert_int_equal (v[7], 1 + 12); /* the loss; no gradients: w has none */
}

static void
dump_graph__writes_the_graph_once (void **state)
{
  Setting s = setting (0.01, 4);
  char *dot;

  (void)state;
  td_trainer_extend (s.trainer, td_ext_dump_graph ("loss"));
  assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  dot = file_of ("cg.dot");
  assert_contains (dot, "LinearFunction");
  assert_contains (dot, "MeanSquaredError");
  free (dot);
  assert_int_equal (td_config ()->keep_graph_on_report, 0);
  s = setting (0.01, 4);
  td_trainer_extend (s.trainer, td_ext_dump_graph ("nothing"));
  assert_int_equal (td_trainer_run (s.trainer), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "\"nothing\" by td_report_variable");
}

static TdStatus
count_ops (void *self, TdTrainer *t)
{
  (void)t;
  *(int64_t *)self = td_mem_info (NULL).live_ops;
  return TD_OK;
}

static int64_t
live_ops_with (TdExtension *x)
{
  Setting s = setting (0.01, 1);
  int64_t ops = -1;

  if (x != NULL)
    td_trainer_extend (s.trainer, x);
  td_trainer_extend (s.trainer, td_ext_function_new (count_ops, &ops));
  TD_USING (keep_graph_on_report, 1)
    assert_int_equal (td_trainer_run (s.trainer), TD_OK);
  return ops;
}

static void
unchain_variables__cuts_what_reports_keep (void **state)
{
  (void)state;
  assert_int_equal (live_ops_with (NULL), 2);
  assert_int_equal (live_ops_with (td_ext_unchain_variables ()), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    train_test (log_report__writes_chainers_json),
    train_test (log_report__reads_back_whatever_it_has_written),
    train_test (log_report__takes_all_keys_and_names_files),
    train_test (print_report__is_a_table_of_the_log),
    train_test (print_report__says_which_log_it_misses),
    train_test (plot_report__draws_a_line_and_its_points_for_each_key),
    train_test (variable_statistics_plot__draws_every_parameter_and_gradient),
    train_test (progress_bar__prints_lines_where_there_is_no_terminal),
    train_test (progress_bar__wants_to_know_the_length),
    train_test (micro_average__divides_the_sums),
    train_test (observe__reports_values_and_the_learning_rate),
    train_test (evaluator__reports_the_mean_over_batches),
    train_test (evaluator__calls_its_target_without_a_function),
    train_test (fail_on_non_number__names_the_parameter),
    train_test (parameter_statistics__are_numpys),
    train_test (dump_graph__writes_the_graph_once),
    train_test (unchain_variables__cuts_what_reports_keep),
  };

  return cmocka_run_group_tests_name ("train-extensions", tests, NULL, NULL);
}
