/* The perceptron of mlp.c, trained by a Trainer: evaluation, log, table, chart, progress and
 * snapshots are its extensions.
 *
 * Reads MNIST from the folder in $TAPEDECK_DATA; without it, the built-in digits.  Files go to
 * a folder "result"; a second run goes on from its newest snapshot.  The argument is the number
 * of epochs.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct
{
  TdLink *chain, *l1, *l2;
} Mlp;

static TdVar *
mlp_forward (Mlp *m, TdVar *x)
{
  TdVar *h = td_dropout (td_relu (td_link (m->l1, x)), 0.2);

  return td_link (m->l2, h);
}

/* What the updater minimises. */
static TdVar *
mlp_loss (void *self, const TdBatch *b)
{
  TdVar *y = mlp_forward (self, b->x);
  TdVar *loss = td_softmax_cross_entropy (y, b->t);

  td_report_variable ("loss", loss);
  td_report_variable ("accuracy", td_accuracy (y, b->t));
  return loss;
}

/* What the evaluator reports, as validation/loss and validation/accuracy. */
static void
mlp_evaluate (void *self, const TdBatch *b)
{
  mlp_loss (self, b);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  int epochs = argc > 1 ? atoi (argv[1]) : 3;
  Mlp m = { .chain = td_chain_new ("mlp") };
  m.l1 = td_linear_new (m.chain, "l1", TD_INFER, 500);
  m.l2 = td_linear_new (m.chain, "l2", 500, 10);

  TdOpt *opt = td_adam_new (m.chain);
  TdDataset *train = td_mnist_open (NULL, TD_TRAIN), *test = td_mnist_open (NULL, TD_TEST);
  TdIter *train_iter = td_multithread_iterator_new (train, .batch_size = 100);
  TdIter *test_iter
      = td_serial_iterator_new (test, .batch_size = 500, .repeat = false, .shuffle = false);
  TdUpdater *updater
      = td_standard_updater_new (train_iter, opt, .loss_func = mlp_loss, .self = &m);
  TdTrainer *trainer
      = td_trainer_new (updater, td_interval_trigger_new (epochs > 0 ? epochs : 1, "epoch"));

  td_trainer_extend (
      trainer, td_ext_evaluator (test_iter, m.chain, .eval_func = mlp_evaluate, .self = &m));
  td_trainer_extend (trainer, td_ext_dump_graph ("loss"));
  td_trainer_extend (
      trainer, td_ext_snapshot (.writer = TD_WRITER_THREAD, .n_retains = 2, .autoload = true));
  td_trainer_extend (trainer, td_ext_exponential_shift ("lr", 0.5),
                     .trigger = td_interval_trigger_new (1, "epoch"));
  TdExtension *log = td_ext_log_report ();
  td_trainer_extend (trainer, log);
  td_trainer_extend (
      trainer, td_ext_print_report (TD_KEYS ("epoch", "loss", "validation/loss", "accuracy",
                                             "validation/accuracy", "elapsed_time")));
  td_trainer_extend (trainer, td_ext_plot_report (TD_KEYS ("loss", "validation/loss"),
                                                  .x_key = "epoch", .filename = "loss.svg"));
  td_trainer_extend (trainer, td_ext_progress_bar (.fd = 2));

  if (td_trainer_run (trainer) == TD_OK)
    {
      td_save_npz ("mnist_trainer.npz", m.chain);
      printf ("test accuracy %.4f\n", td_log_report_value (log, td_log_report_n_lines (log) - 1,
                                                           "validation/accuracy"));
    }
  return td_finish ();
}
