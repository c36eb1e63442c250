/* A multilayer perceptron on handwritten digits: the first model to look at.
 *
 * Reads MNIST from the folder in $TAPEDECK_DATA; without it, the built-in digits.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>

typedef struct
{
  TdLink *chain, *l1, *l2;
} Mlp;

static TdVar *
mlp_forward (Mlp *m, TdVar *x)
{
  TdVar *h = td_link (m->l1, x);

  h = td_relu (h);
  return td_link (m->l2, h);
}

static double
test_accuracy (Mlp *m, TdDataset *test)
{
  TdIter *iter
      = td_serial_iterator_new (test, .batch_size = 500, .shuffle = false, .repeat = false);
  double right = 0;

  while (td_iter_epoch (iter) < 1 && td_error () == NULL)
    TD_NO_BACKPROP
      TD_USING (train, 0)
        TD_SCOPE ("test")
          {
            TdBatch b = td_iter_next (iter);

            right += td_item (td_accuracy (mlp_forward (m, b.x), b.t)) * (double)b.n;
          }
  td_iter_free (iter);
  return right / (double)td_dataset_size (test);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  Mlp m = { .chain = td_chain_new ("mlp") };
  m.l1 = td_linear_new (m.chain, "l1", TD_INFER, 1000);
  m.l2 = td_linear_new (m.chain, "l2", 1000, 10);

  TdOpt *opt = td_adam_new (m.chain, .lr = 1e-3);
  td_opt_add_hook (opt, td_gradient_clipping_new (5.0));

  TdDataset *train = td_mnist_open (NULL, TD_TRAIN), *test = td_mnist_open (NULL, TD_TEST);
  TdIter *iter = td_serial_iterator_new (train, .batch_size = 100);

  while (td_iter_epoch (iter) < 3 && td_error () == NULL)
    TD_ITERATION (td_iter_count (iter))
      {
        TdBatch b = td_iter_next (iter);
        TdVar *y = mlp_forward (&m, b.x);
        TdVar *loss = td_softmax_cross_entropy (y, b.t);

        td_cleargrads (m.chain);
        td_backward (loss, 0);
        td_opt_update (opt);
        td_report ("loss", td_item (loss));
        if (td_iter_is_new_epoch (iter))
          printf ("epoch %d  loss %.4f\n", (int)td_iter_epoch (iter), td_item (loss));
      }
  if (td_error () == NULL)
    printf ("test accuracy %.4f\n", test_accuracy (&m, test));
  return td_finish ();
}
