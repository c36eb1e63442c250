/* One model, trained and then asked: three iterations of training, two of inference. Arguments:
 * where to save the model, and where the optimizer.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdLink *model = td_chain_new ("model"), *l1 = td_linear_new (model, "l1", 4, 8),
         *norm = td_batch_normalization_new (model, "norm", 8),
         *l2 = td_linear_new (model, "l2", 8, 3);
  TdOpt *opt = td_adam_new (model);

  for (int i = 0; i < 5 && td_error () == NULL; i++)
    TD_ITERATION (i)
      TD_USING (train, i < 3)
        TD_USING (enable_backprop, i < 3)
          {
            TdVar *x = td_randn (TD_F32, TD_SHAPE (6, 4));
            TdVar *h = td_relu (td_link (norm, td_link (l1, x)));
            TdVar *y = td_sum (td_square (td_link (l2, td_dropout (h, 0.5))));

            if (i >= 3)
              continue;
            td_cleargrads (model);
            td_backward (y, 0);
            td_opt_update (opt);
          }
  if (argc > 2)
    {
      td_save_npz (argv[1], model);
      td_save_npz (argv[2], opt);
    }
  return td_finish ();
}
