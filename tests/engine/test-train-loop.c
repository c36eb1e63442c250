/* Reports, updaters, triggers and the trainer's loop.
 *
 * When a trigger fires is what Chainer 7.8.1's source says for the same sequence of epochs.
 * SPDX-License-Identifier: MIT */
#include "start.h"

#include "train/loop/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- reports --- */

static void
summary__weighs_values (void **state)
{
  TdObservation *o = td_observation_new ();
  TdSummary s;

  (void)state;
  td_observation_add (o, "a", 1, 1);
  td_observation_add (o, "a", 4, 3);
  s = td_observation_get (o, "a");
  assert_int_equal (s.n, 2);
  assert_true (fabs (s.mean - 13.0 / 4) < 1e-15);
  assert_true (fabs (s.std - sqrt (27.0 / 16)) < 1e-15);
  assert_true (s.last == 4 && s.min == 1 && s.max == 4);
  td_observation_add (o, "b", 1, -1);
  assert_contains (said (TD_ERR_ARG), "a weight of 0 or more");
}

static void
summary__adds_the_last_value_of_every_key (void **state)
{
  TdObservation *o = td_observation_new (), *sum = td_observation_new ();

  (void)state;
  for (int i = 0; i < 3; i++)
    {
      td_observation_clear (o);
      TD_REPORT_SCOPE (o)
        {
          td_report ("x", 100);
          td_report ("x", i);
          if (i == 2)
            td_report ("late", 7);
        }
      td_observation_add_last (sum, o);
    }
  assert_int_equal (td_observation_n_keys (sum), 2);
  assert_string_equal (td_observation_key (sum, 0), "x");
  assert_null (td_observation_key (sum, 2));
  assert_true (td_observation_get (sum, "x").mean == 1);
  assert_true (td_observation_get (sum, "late").n == 1);
}

static void
report__keeps_a_graph_only_when_asked (void **state)
{
  TdObservation *o = td_observation_new ();

  (void)state;
  TD_SCOPE ("a")
    TD_REPORT_SCOPE (o)
      {
        TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (3)), "x");

        td_report_variable ("plain", td_sum (x));
        TD_USING (keep_graph_on_report, 1)
          td_report_variable ("kept", td_sum (td_relu (x)));
      }
  assert_true (td_observation_get (o, "plain").last == 3);
  assert_null (td_observation_variable (o, "plain"));
  assert_non_null (td_observation_variable (o, "kept"));
  assert_int_equal (td_mem_info (NULL).live_ops, 2);
  td_observation_clear (o);
  assert_int_equal (td_mem_info (NULL).live_ops, 0);
}

/* --- a trainer of steps that only count --- */

static TdStatus
count_rows (TdUpdater *u, void *self)
{
  TdBatch b = td_iter_next (td_updater_iterator (u, "main"));

  (void)self;
  td_report ("loss", td_mean_of (b.x));
  return TD_OK;
}

/* 5 rows in batches of 2: epoch details 0.4 0.8 1.2 1.6 2.0 ... */
static TdUpdater *
counting_updater (TdUpdateFunction update, void *self)
{
  static const float x[5] = { 5, 4, 3, 2, 1 };
  TdLink *link = td_chain_new ("m");
  TdUpdater *u = NULL;

  TD_SCOPE ("data")
    {
      TdDataset *d = td_tuple_dataset_new (td_tensor (TD_F32, TD_SHAPE (5), x), NULL);
      TdIter *it = td_serial_iterator_new (d, .batch_size = 2, .shuffle = false);

      u = td_standard_updater_new (it, td_sgd_new (link), .update = update, .self = self);
    }
  return u;
}

static TdTrainer *
counting_trainer (int iterations)
{
  return td_trainer_new (counting_updater (count_rows, NULL),
                         td_interval_trigger_new (iterations, "iteration"),
                         .out = td_test_tmp ("out"));
}

/* The iterations in which an extension was called, as text: "1 3 5". */
typedef struct
{
  char text[400];
} Calls;

static TdStatus
note (void *self, TdTrainer *t)
{
  Calls *c = self;
  size_t n = strlen (c->text);

  snprintf (c->text + n, sizeof c->text - n, "%s%d", n > 0 ? " " : "",
            (int)td_updater_iteration (td_trainer_updater (t)));
  return TD_OK;
}

/* When a trigger fires in 12 iterations. */
static const char *
fires (TdTrigger *trigger)
{
  static Calls calls;
  TdTrainer *t = counting_trainer (12);

  calls.text[0] = '\0';
  assert_int_equal (
      td_trainer_extend (t, td_ext_function_new (note, &calls), .trigger = trigger), TD_OK);
  assert_int_equal (td_trainer_run (t), TD_OK);
  return calls.text;
}

/* --- triggers --- */

static void
interval__fires_when_a_whole_period_is_over (void **state)
{
  (void)state;
  assert_string_equal (fires (td_interval_trigger_new (4, "iteration")), "4 8 12");
  assert_string_equal (fires (td_interval_trigger_new (1, "epoch")), "3 5 8 10");
  assert_string_equal (fires (td_interval_trigger_new (0.5, "epoch")), "2 3 4 5 7 8 9 10 12");
  assert_true (td_trigger_finished (td_interval_trigger_new (0, "epoch")));
  assert_contains (said (TD_ERR_ARG), "a period above 0 expected, got 0");
  assert_true (td_trigger_finished (td_interval_trigger_new (1, "day")));
  assert_contains (said (TD_ERR_ARG), "got \"day\"");
}

static void
manual_schedule__fires_at_its_points (void **state)
{
  (void)state;
  assert_string_equal (
      fires (td_manual_schedule_trigger_new ((double[]){ 2, 7, 40 }, 3, "iteration")), "2 7");
  assert_string_equal (
      fires (td_manual_schedule_trigger_new ((double[]){ 0.5, 2 }, 2, "epoch")), "2 5");
}

static void
once__fires_once (void **state)
{
  (void)state;
  assert_string_equal (fires (td_once_trigger_new (false)), "1");
}

static double now_s;

static double
a_second_later (void)
{
  return now_s += 1;
}

/* Every look at this clock takes a second: the start, and each call of the trigger. */
static void
time__fires_every_so_many_seconds (void **state)
{
  double (*clock) (void) = td__train_clock;

  (void)state;
  td__train_clock = a_second_later;
  assert_string_equal (fires (td_time_trigger_new (3)), "4 7 10");
  td__train_clock = clock;
}

/* The means of loss: 4.5 2.5 3 3.5 1.5 and again from the front. */
static void
best_value__fires_when_it_is_the_best_so_far (void **state)
{
  (void)state;
  assert_string_equal (
      fires (td_min_value_trigger_new ("loss", td_interval_trigger_new (1, "iteration"))),
      "1 2 5");
  assert_string_equal (
      fires (td_max_value_trigger_new ("loss", td_interval_trigger_new (1, "iteration"))), "1");
  /* means over an epoch: 10/3, 2.5, 10/3 ... */
  assert_string_equal (fires (td_max_value_trigger_new ("loss", NULL)), "3");
  assert_string_equal (fires (td_min_value_trigger_new ("loss", NULL)), "3 5");
}

static bool
better_by_more_than_one (double best, double now)
{
  return now < best - 1;
}

static void
best_value__compares_as_it_is_told (void **state)
{
  (void)state;
  /* 1.5 is better than 2.5 by one, and no more */
  assert_string_equal (
      fires (td_best_value_trigger_new ("loss", better_by_more_than_one,
                                        td_interval_trigger_new (1, "iteration"))),
      "1 2");
  assert_true (td_trigger_finished (td_best_value_trigger_new ("loss", NULL, NULL)));
  assert_contains (said (TD_ERR_ARG), "a key and a comparison expected");
}

static void
best_value__says_when_there_is_no_value (void **state)
{
  TdTrainer *t = counting_trainer (12);
  Calls calls = { "" };

  (void)state;
  td_trainer_extend (t, td_ext_function_new (note, &calls),
                     .trigger = td_max_value_trigger_new ("validation/accuracy", NULL));
  assert_int_equal (td_trainer_run (t), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "nothing was reported under \"validation/accuracy\"");
  assert_int_equal (td_updater_iteration (td_trainer_updater (t)), 3);
}

static int
iterations_until (TdTrigger *stop)
{
  TdTrainer *t
      = td_trainer_new (counting_updater (count_rows, NULL), stop, .out = td_test_tmp ("out"));

  assert_int_equal (td_trainer_run (t), TD_OK);
  return (int)td_updater_iteration (td_trainer_updater (t));
}

/* 2.5 in iteration 2 is beaten in iteration 5 only. */
static void
early_stopping__stops_when_patience_is_over (void **state)
{
  (void)state;
  assert_int_equal (
      iterations_until (td_early_stopping_trigger_new (
              .check_trigger = td_interval_trigger_new (1, "iteration"), .patience = 2)),
      4);
  /* 1.5 comes back every five iterations and never gets better: 5, then 6 7 8 */
  assert_int_equal (
      iterations_until (td_early_stopping_trigger_new (
              .check_trigger = td_interval_trigger_new (1, "iteration"), .patience = 3)),
      8);
  assert_int_equal (iterations_until (td_early_stopping_trigger_new (
                            .check_trigger = td_interval_trigger_new (1, "iteration"),
                            .patience = 1, .mode = "max")),
                    2);
  assert_int_equal (
      iterations_until (td_early_stopping_trigger_new (.patience = 1000,
                                                       .max_trigger = td_interval_trigger_new (
                                                           7, "iteration"))),
      7);
  assert_true (td_trigger_finished (td_early_stopping_trigger_new (.mode = "best")));
  assert_contains (said (TD_ERR_ARG), "mode \"max\", \"min\" or \"auto\"");
}

/* --- the loop --- */

static Calls order;
static char letters[] = "r\0w\0s\0l\0b\0-";

static TdStatus
note_letter (void *self, TdTrainer *t)
{
  (void)t;
  strcat (order.text, self);
  return TD_OK;
}

static void
extensions__are_called_by_priority_then_in_the_order_of_adding (void **state)
{
  TdTrainer *t = counting_trainer (2);

  (void)state;
  order.text[0] = '\0';
  td_trainer_extend (t, td_ext_function_new (note_letter, &letters[0]));
  td_trainer_extend (t, td_ext_function_new (note_letter, &letters[2]),
                     .priority = TD_PRIORITY_WRITER);
  td_trainer_extend (t, td_ext_function_new (note_letter, &letters[4]), .name = "second");
  td_trainer_extend (t, td_ext_function_new (note_letter, &letters[6]), .priority = -100);
  td_trainer_extend (t, td_ext_function_new (note_letter, &letters[8]),
                     .trigger = td_interval_trigger_new (99, "epoch"),
                     .call_before_training = true);
  assert_int_equal (td_trainer_run (t), TD_OK);
  assert_string_equal (order.text, "bwrslwrsl");
  assert_non_null (td_trainer_extension (t, "function"));
  assert_non_null (td_trainer_extension (t, "function_1"));
  assert_non_null (td_trainer_extension (t, "second"));
  assert_null (td_trainer_extension (t, "third"));
  assert_int_equal (td_trainer_run (t), TD_ERR_STATE);
  assert_contains (said (TD_ERR_STATE), "a trainer runs once");
}

typedef struct
{
  const char *name;
} Stages;

static void
stage_initialize (void *self, TdTrainer *t)
{
  (void)self, (void)t;
  strcat (order.text, "i");
}

static TdStatus
stage_call (void *self, TdTrainer *t)
{
  (void)self;
  strcat (order.text, "c");
  if (td_updater_iteration (td_trainer_updater (t)) == 2)
    td_add (td_ones (TD_F32, TD_SHAPE (2)), td_ones (TD_F32, TD_SHAPE (3)));
  return TD_OK;
}

static void
stage_error (void *self, TdTrainer *t, const TdError *error)
{
  (void)self, (void)t;
  assert_contains (error->message, "(2)");
  strcat (order.text, "e");
}

static void
stage_finalize (void *self, TdTrainer *t)
{
  (void)self, (void)t;
  strcat (order.text, "f");
}

static void
trainer__ends_with_the_first_error_and_tells_its_extensions (void **state)
{
  static const TdExtensionClass stages = { .size = sizeof (TdExtensionClass),
                                           .name = "stages",
                                           .initialize = stage_initialize,
                                           .call = stage_call,
                                           .on_error = stage_error,
                                           .finalize = stage_finalize };
  TdTrainer *t = counting_trainer (5);

  (void)state;
  order.text[0] = '\0';
  td_trainer_extend (t, td_extension_new (&stages));
  td_trainer_extend (t, td_ext_function_new (note_letter, &letters[10]), .priority = -1);
  assert_int_equal (td_trainer_run (t), TD_ERR_SHAPE);
  assert_string_equal (order.text, "ic-cef");
  said (TD_ERR_SHAPE);
}

static TdStatus
fail_quietly (TdUpdater *u, void *self)
{
  (void)self;
  return td_updater_iteration (u) == 3 ? TD_ERR_NUMERIC : count_rows (u, NULL);
}

static void
updater__passes_on_what_its_function_says (void **state)
{
  TdTrainer *t
      = td_trainer_new (counting_updater (fail_quietly, NULL),
                        td_interval_trigger_new (9, "iteration"), .out = td_test_tmp ("out"));

  (void)state;
  assert_int_equal (td_trainer_run (t), TD_ERR_NUMERIC);
  assert_contains (said (TD_ERR_NUMERIC), "the update function says that it failed");
  assert_int_equal (td_updater_iteration (td_trainer_updater (t)), 3);
}

static TdVar *
half_loss (void *self, const TdBatch *b)
{
  return td_mul_scalar (td_mean_squared_error (td_link (self, b->x), b->t), 0.5);
}

/* y = 2 x is learnt by a single weight: through the target's call, and a loss function. */
static void
updater__trains_its_optimizers_target (void **state)
{
  static const float x[4] = { 1, 2, 3, 4 }, y[4] = { 2, 4, 6, 8 };
  TdVar *xs = td_tensor (TD_F32, TD_SHAPE (4, 1), x);
  TdVar *ys = td_tensor (TD_F32, TD_SHAPE (4, 1), y);
  TdIter *it = td_serial_iterator_new (td_tuple_dataset_new_n ((TdVar *[]){ xs, ys }, 2),
                                       .batch_size = 2, .seed = 1);
  TdLink *line = td_linear_new (NULL, "line", 1, 1, .nobias = true);
  TdUpdater *u = td_standard_updater_new (it, td_sgd_new (line, .lr = 0.05),
                                          .loss_func = half_loss, .self = line);

  (void)state;
  for (int i = 0; i < 60; i++)
    assert_int_equal (td_updater_update (u), TD_OK);
  assert_true (fabs (td_item (td_link_param (line, "W")) - 2) < 1e-4);
  assert_int_equal (td_updater_epoch (u), 30);
  assert_true (td_updater_is_new_epoch (u));
  assert_true (td_updater_previous_epoch_detail (u) == 29.5);
  assert_null (td_updater_iterator (u, "other"));
  assert_contains (said (TD_ERR_ARG), "no iterator \"other\"");
  assert_int_equal (td_updater_add_iterator (u, "main", it), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "got \"main\"");
}

/* Two optimizers in turn, as for a GAN. */
static TdStatus
update_both (TdUpdater *u, void *self)
{
  TdLink **links = self;

  td_iter_next (td_updater_iterator (u, "main"));
  for (int i = 0; i < 2; i++)
    {
      TdVar *x = td_ones (TD_F32, TD_SHAPE (1, 1));

      td_cleargrads (links[i]);
      td_backward (td_link (links[i], x), 0);
      td_opt_update (td_updater_optimizer (u, i == 0 ? "main" : "other"));
    }
  return TD_OK;
}

static void
updater__keeps_several_optimizers_and_their_links (void **state)
{
  TdLink *links[2] = { td_linear_new (NULL, "a", 1, 1, .initialW = td_init_zero ()),
                       td_linear_new (NULL, "b", 1, 1, .initialW = td_init_zero ()) };
  TdLink *copy = td_linear_new (NULL, "c", TD_INFER, 1);
  TdUpdater *u = td_standard_updater_new (
      td_serial_iterator_new (td_tuple_dataset_new (td_ones (TD_F32, TD_SHAPE (4, 1)), NULL),
                              .batch_size = 2),
      td_sgd_new (links[0], .lr = 1), .update = update_both, .self = links);
  TdTrainer *t = td_trainer_new (u, td_interval_trigger_new (3, "iteration"),
                                 .out = td_test_tmp ("out"));

  (void)state;
  assert_int_equal (td_updater_add_optimizer (u, "other", td_sgd_new (links[1], .lr = 0.5)),
                    TD_OK);
  assert_int_equal (td_trainer_run (t), TD_OK);
  assert_true (td_item (td_link_param (links[0], "W")) == -3);
  assert_int_equal (td_save_npz (td_test_tmp ("state"), t), TD_OK);
  /* as chainer.serializers.load_npz (file, link, path = "updater/model:other/") */
  assert_int_equal (td_load_npz (td_test_tmp ("state"), copy, .path = "updater/model:other/"),
                    TD_OK);
  assert_true (td_item (td_link_param (copy, "W")) == -1.5);
}

/* What is reported in an iteration belongs to it: fresh every time. */
static TdStatus
look_at_observation (void *self, TdTrainer *t)
{
  TdSummary s = td_observation_get (td_trainer_observation (t), "loss");

  assert_int_equal (s.n, 1);
  *(double *)self += s.last;
  return TD_OK;
}

static void
observation__is_fresh_in_every_iteration (void **state)
{
  TdTrainer *t = counting_trainer (5);
  double sum = 0;

  (void)state;
  td_trainer_extend (t, td_ext_function_new (look_at_observation, &sum));
  assert_int_equal (td_trainer_run (t), TD_OK);
  assert_true (sum == 4.5 + 2.5 + 3 + 3.5 + 1.5);
  assert_int_equal (td_observation_get (NULL, "loss").n, 0);
}

/* --- state --- */

/* A trainer with every trigger that has a state, stopped after n iterations. */
static TdTrainer *
triggers_of_all_kinds (int iterations, Calls calls[6])
{
  TdTrainer *t = counting_trainer (iterations);
  TdTrigger *triggers[6] = {
    td_interval_trigger_new (0.7, "epoch"),
    td_manual_schedule_trigger_new ((double[]){ 2, 6, 7, 11 }, 4, "iteration"),
    td_once_trigger_new (false),
    td_max_value_trigger_new ("loss", NULL),
    td_min_value_trigger_new ("loss", td_interval_trigger_new (1, "iteration")),
    td_early_stopping_trigger_new (.check_trigger = td_interval_trigger_new (1, "iteration")),
  };

  for (int i = 0; i < 6; i++)
    {
      calls[i].text[0] = '\0';
      td_trainer_extend (t, td_ext_function_new (note, &calls[i]), .trigger = triggers[i]);
    }
  return t;
}

static void
trigger__goes_on_where_its_snapshot_was_taken (void **state)
{
  Calls whole[6], first[6], second[6];
  TdTrainer *a = triggers_of_all_kinds (12, whole), *b = triggers_of_all_kinds (6, first), *c;
  char joined[5200];

  (void)state;
  assert_int_equal (td_trainer_run (a), TD_OK);
  assert_int_equal (td_trainer_run (b), TD_OK);
  assert_int_equal (td_save_npz (td_test_tmp ("b.npz"), b), TD_OK);
  c = triggers_of_all_kinds (12, second);
  assert_int_equal (td_load_npz (td_test_tmp ("b.npz"), c), TD_OK);
  assert_int_equal (td_trainer_run (c), TD_OK);
  for (int i = 0; i < 6; i++)
    {
      snprintf (joined, sizeof joined, "%s%s%s", first[i].text,
                *first[i].text != '\0' && *second[i].text != '\0' ? " " : "", second[i].text);
      assert_string_equal (joined, whole[i].text);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    train_test (summary__weighs_values),
    train_test (summary__adds_the_last_value_of_every_key),
    train_test (report__keeps_a_graph_only_when_asked),
    train_test (interval__fires_when_a_whole_period_is_over),
    train_test (manual_schedule__fires_at_its_points),
    train_test (once__fires_once),
    train_test (time__fires_every_so_many_seconds),
    train_test (best_value__fires_when_it_is_the_best_so_far),
    train_test (best_value__compares_as_it_is_told),
    train_test (best_value__says_when_there_is_no_value),
    train_test (early_stopping__stops_when_patience_is_over),
    train_test (extensions__are_called_by_priority_then_in_the_order_of_adding),
    train_test (trainer__ends_with_the_first_error_and_tells_its_extensions),
    train_test (updater__passes_on_what_its_function_says),
    train_test (updater__trains_its_optimizers_target),
    train_test (updater__keeps_several_optimizers_and_their_links),
    train_test (observation__is_fresh_in_every_iteration),
    train_test (trigger__goes_on_where_its_snapshot_was_taken),
  };

  return cmocka_run_group_tests_name ("train-loop", tests, NULL, NULL);
}
