/* LeNet-5 on handwritten digits: links of one's own, nested in each other.
 *
 * LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition,
 * 1998, with today's relu and max pooling.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>

/* A block is a convolution, relu and pooling. */
static TdStatus
block_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_link (td_link_child_at (link, 0), in[0]);

  (void)self, (void)n_in, (void)n_out;
  h = td_relu (h);
  out[0] = td_max_pooling_2d (h, .ksize = { 2, 2 }, .stride = { 2, 2 });
  return TD_OK;
}

/* The head is three layers of neurons. */
static TdStatus
head_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_link (td_link_child_at (link, 0), in[0]);

  (void)self, (void)n_in, (void)n_out;
  h = td_relu (h);
  h = td_link (td_link_child_at (link, 1), h);
  h = td_relu (h);
  out[0] = td_link (td_link_child_at (link, 2), h);
  return TD_OK;
}

static TdStatus
lenet_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_link (td_link_child (link, "block1"), in[0]);

  (void)self, (void)n_in, (void)n_out;
  h = td_link (td_link_child (link, "block2"), h);
  out[0] = td_link (td_link_child (link, "head"), h);
  return TD_OK;
}

static const TdLinkClass block_class
    = { .size = sizeof (TdLinkClass), .name = "Block", .forward = block_forward };
static const TdLinkClass head_class
    = { .size = sizeof (TdLinkClass), .name = "Head", .forward = head_forward };
static const TdLinkClass lenet_class
    = { .size = sizeof (TdLinkClass), .name = "LeNet", .forward = lenet_forward };

static TdLink *
lenet_new (void)
{
  TdLink *lenet = td_link_new (&lenet_class, NULL, "lenet");
  TdLink *block1 = td_link_new (&block_class, lenet, "block1");
  TdLink *block2 = td_link_new (&block_class, lenet, "block2");
  TdLink *head = td_link_new (&head_class, lenet, "head");

  td_convolution_2d_new (block1, "conv1", 1, 6, 5, .pad = { 2, 2 });
  td_convolution_2d_new (block2, "conv2", 6, 16, 5);
  td_linear_new (head, "fc1", TD_INFER, 120);
  td_linear_new (head, "fc2", 120, 84);
  td_linear_new (head, "fc3", 84, 10);
  return lenet;
}

/* Pictures come as (n, 28, 28); a convolution wants their one channel as an axis. */
static TdVar *
predict (TdLink *lenet, TdBatch b)
{
  return td_link (lenet, td_reshape (b.x, TD_SHAPE (b.n, 1, 28, 28)));
}

static double
test_accuracy (TdLink *lenet, TdDataset *test)
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

            right += td_item (td_accuracy (predict (lenet, b), b.t)) * (double)b.n;
          }
  td_iter_free (iter);
  return right / (double)td_dataset_size (test);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdLink *lenet = lenet_new ();
  TdOpt *opt = td_adam_new (lenet, .lr = 2e-3);
  TdDataset *train = td_mnist_open (NULL, TD_TRAIN), *test = td_mnist_open (NULL, TD_TEST);
  TdIter *iter = td_serial_iterator_new (train, .batch_size = 64);

  while (td_iter_epoch (iter) < 2 && td_error () == NULL)
    TD_ITERATION (td_iter_count (iter))
      {
        TdBatch b = td_iter_next (iter);
        TdVar *y = predict (lenet, b);
        TdVar *loss = td_softmax_cross_entropy (y, b.t);

        td_cleargrads (lenet);
        td_backward (loss, 0);
        td_opt_update (opt);
        td_report ("loss", td_item (loss));
        if (td_iter_is_new_epoch (iter))
          {
            printf ("epoch %d  loss %.4f\n", (int)td_iter_epoch (iter), td_item (loss));
            td_opt_set_lr (opt, td_opt_lr (opt) / 2);
          }
      }
  if (td_error () == NULL)
    printf ("test accuracy %.4f\n", test_accuracy (lenet, test));
  return td_finish ();
}
