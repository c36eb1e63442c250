/* Data sets and iterators: rows in host memory, and batches of them.  Included by tapedeck.h.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/* --- data --------------------------------------------------------------------------------- */
enum
{
  TD_TRAIN = 1,
  TD_TEST = 2
};
/** MNIST from a folder of its four IDX files, plain or .gz; NULL: $TAPEDECK_DATA, and without
 * that the built-in digits.  x (n, 28, 28) float32 in 0..1, t (n) int32.  *Errors*:
 * TD_ERR_IO, naming the file and what is wrong with it. */
TD_API TdDataset *td_mnist_open (const char *folder, int part);
TD_API TdDataset *td_mnist_open_at (const char *folder, int part, const TdSite *site);
/** Any pair of IDX files of unsigned bytes: images (n, ...) and labels (n).  labels_path may
 * be NULL.  x (n, ...) float32 / 255. */
TD_API TdDataset *td_idx_open (const char *images_path, const char *labels_path);
TD_API TdDataset *td_idx_open_at (const char *images_path, const char *labels_path,
                                  const TdSite *site);
/** The built-in digits: 10,000 to train on and 2,000 to test on, always the same. */
TD_API TdDataset *td_digits_open (int part);
/** The characters of a text as ids 0, 1 ... in order of first appearance. */
TD_API TdDataset *td_text_open (const char *path);
TD_API TdDataset *td_text_open_at (const char *path, const TdSite *site);
/** The same from memory; the text is copied. */
TD_API TdDataset *td_text_from (const char *text);
/** Number of distinct characters of a text. */
TD_API int td_text_vocabulary (const TdDataset *text);
/** The byte that an id stands for, -1 if none. */
TD_API int td_text_byte (const TdDataset *text, int id);
/** Rows of x (n, ...) float32 with labels t (n); both are copied, t may be NULL. */
TD_API TdDataset *td_tuple_dataset_new (TdVar *x, TdVar *t);
TD_API int64_t td_dataset_size (const TdDataset *dataset);
/** The shape of one row. */
TD_API TdShape td_dataset_shape (const TdDataset *dataset);
/** Keep rows start to stop only. */
TD_API TdStatus td_dataset_slice (TdDataset *dataset, int64_t start, int64_t stop);
TD_API void td_dataset_free (TdDataset *dataset);

/** A piece of a dataset, owned by the innermost scope; t is NULL without labels. */
typedef struct TdBatch
{
  TdVar *x, *t;
  int64_t n;
} TdBatch;
typedef struct
{
  int64_t batch_size;
  bool shuffle, repeat;
  uint64_t seed; /**< of the order; 0: from the engine's */
  int end_;
} TdSerialIterOpt;
#define TD_SERIAL_ITER_DEFAULTS .batch_size = 32, .shuffle = true, .repeat = true, .seed = 0
/** Batches one after the other; with repeat a batch may reach over the end of an epoch, as in
 * Chainer.  *Owner*: the caller, td_iter_free or td_finish; the dataset must outlive it. */
TD_API TdIter *td_serial_iterator_new_ (TdDataset *dataset, const TdSerialIterOpt *options);
TD_API TdIter *td_serial_iterator_new_at (TdDataset *dataset, TdSerialIterOpt options,
                                          const TdSite *site);
/** A text in batch_size places at once: x (n) ids, t (n) the ids after them (Chainer's
 * ParallelSequentialIterator of its ptb example). */
TD_API TdIter *td_text_iterator_new (TdDataset *text, int64_t batch_size);
/** The next batch.  *Errors*: TD_ERR_STATE and poison after the end without repeat. */
TD_API TdBatch td_iter_next (TdIter *iter);
TD_API TdBatch td_iter_next_at (TdIter *iter, const TdSite *site);
/** Number of epochs that are over. */
TD_API int64_t td_iter_epoch (const TdIter *iter);
/** Epochs with their fraction. */
TD_API double td_iter_epoch_detail (const TdIter *iter);
/** Number of batches so far. */
TD_API int64_t td_iter_count (const TdIter *iter);
/** Say whether the last batch ended an epoch. */
TD_API bool td_iter_is_new_epoch (const TdIter *iter);
/** Start again from the first epoch. */
TD_API void td_iter_reset (TdIter *iter);
TD_API void td_iter_free (TdIter *iter);

/* clang-format off */
#if !defined(TD_NO_SITES)
#define td_serial_iterator_new(...) td__serial_iterator_new_x (__VA_ARGS__, .end_ = 0)
#define td__serial_iterator_new_x(dataset, ...) td_serial_iterator_new_at (dataset, TD_OPTIONS_ (TdSerialIterOpt, TD_SERIAL_ITER_DEFAULTS, __VA_ARGS__), TD_HERE)
#define td_mnist_open(...) td_mnist_open_at (__VA_ARGS__, TD_HERE)
#define td_idx_open(...) td_idx_open_at (__VA_ARGS__, TD_HERE)
#define td_text_open(...) td_text_open_at (__VA_ARGS__, TD_HERE)
#define td_iter_next(...) td_iter_next_at (__VA_ARGS__, TD_HERE)
#endif
/* clang-format on */

TD_END_DECLS
