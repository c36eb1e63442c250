/* Trains for ever as far as a test is concerned, by a trainer with a progress bar: a million
 * iterations. SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdlib.h>

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdLink *model = td_classifier_new (NULL, "model", td_linear_new (NULL, "l1", 784, 10));
  TdOpt *opt = td_sgd_new (model, .lr = 0.01);
  TdIter *iter = td_serial_iterator_new (td_digits_open (TD_TRAIN), .batch_size = 10);
  TdUpdater *updater = td_standard_updater_new (iter, opt);
  TdTrainer *trainer = td_trainer_new (
      updater, td_interval_trigger_new (argc > 2 ? atof (argv[2]) : 1000000, "iteration"));

  td_trainer_extend (trainer, td_ext_progress_bar (.update_interval = 10));
  td_trainer_run (trainer);
  return td_finish ();
}
