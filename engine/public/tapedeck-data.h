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
/** Arrays (n, ...) of an npz file, in their own dtypes: x_key as x, t_key (may be NULL) as t;
 * x_key NULL: all there are, under their names.  *Errors*: TD_ERR_IO naming file and key. */
TD_API TdDataset *td_npz_open (const char *path, const char *x_key, const char *t_key);
TD_API TdDataset *td_npz_open_at (const char *path, const char *x_key, const char *t_key,
                                  const TdSite *site);
#define TD_CSV_NO_LABEL INT32_MIN
typedef struct
{
  char delimiter;
  int label_column;   /**< of whole numbers; from 0, or -1 for the last; TD_CSV_NO_LABEL */
  int64_t skip_lines; /**< at the beginning */
  int end_;
} TdCsvOpt;
#define TD_CSV_DEFAULTS .delimiter = ',', .label_column = TD_CSV_NO_LABEL, .skip_lines = 0
/** A line of numbers for each row, plain or .gz: x (n, columns) float32, t (n) int32.  A first
 * line without a number has names, and is passed over.
 * *Errors*: TD_ERR_IO naming file, line and column; for a number, too, that float32 cannot
 * hold: beyond its range, so small that it would become 0, a whole one that it would round. */
TD_API TdDataset *td_csv_open_ (const char *path, const TdCsvOpt *options);
TD_API TdDataset *td_csv_open_at (const char *path, TdCsvOpt options, const TdSite *site);
/* --- examples ----------------------------------------------------------------------------- */
enum
{
  TD_MAX_FIELDS = 8
};
/** One part of an example, in host memory. */
typedef struct TdField
{
  const char *name; /**< of a dict's fields, else NULL */
  TdDtype dtype;
  TdShape shape;
  const void *data;
} TdField;
/** What a dataset holds at one place: "x" and "t", say.  Fields may lie in the dataset's own
 * memory. */
typedef struct TdExample
{
  TdField field[TD_MAX_FIELDS];
  int n_fields;
  int64_t index; /**< its place in the dataset */
  uint64_t seed; /**< for random choices of a transform: the same in every run and thread */
  void *owned_;
} TdExample;
/** Read example i of any dataset but a text.  Any thread may.
 * *Owner*: the caller, td_example_clear; an example begins as { 0 }. */
TD_API TdStatus td_dataset_get (const TdDataset *dataset, int64_t i, TdExample *example);
TD_API void td_example_clear (TdExample *example);
/** Replace or append (k == n_fields) a field; data is copied, NULL leaves it zero.
 * Returns the field's own memory to write to; NULL for a field that cannot be. */
TD_API void *td_example_set (TdExample *example, int k, TdDtype dtype, TdShape shape,
                             const void *data);
/** The next number of a stream that depends on its state alone (splitmix64). */
TD_API uint64_t td_random_next (uint64_t *state);

/* --- datasets of arrays and of other datasets --------------------------------------------- */
/** Rows of x (n, ...) float32 with labels t (n); both are copied, t may be NULL. */
TD_API TdDataset *td_tuple_dataset_new (TdVar *x, TdVar *t);
/** Rows of any number of arrays (n, ...), each of its own dtype; all are copied. */
TD_API TdDataset *td_tuple_dataset_new_n (TdVar *const *arrays, int n);
/** The same with a name for every array (Chainer's DictDataset). */
TD_API TdDataset *td_dict_dataset_new (const char *const *names, TdVar *const *arrays, int n);
/** Examples added one by one: sequences of different lengths, say. */
TD_API TdDataset *td_list_dataset_new (void);
/** Append an example; its fields are copied.  *Errors*: TD_ERR_ARG when there are not as many
 * fields of the same dtypes as in the first. */
TD_API TdStatus td_list_dataset_add (TdDataset *list, const TdField *fields, int n);
/** Example i is the fields of example i of every dataset, one after the other. */
TD_API TdDataset *td_zip_dataset_new (TdDataset *const *datasets, int n);
/** The datasets one after the other (Chainer's ConcatenatedDataset). */
TD_API TdDataset *td_concatenated_dataset_new (TdDataset *const *datasets, int n);
/** Examples start to finish of a dataset, counted in order when that is not NULL: its
 * td_dataset_size entries are copied (Chainer's SubDataset). */
TD_API TdDataset *td_sub_dataset_new (TdDataset *dataset, int64_t start, int64_t finish,
                                      const int64_t *order);
/** Each example goes through a function when it is read, which may change, add and drop its
 * fields.  The threads of an iterator call it, several at once.  It may not call the engine
 * but for td_example_set and td_random_next.  user must live as long as the iterators.
 * False: the example is refused. */
typedef bool (*TdTransform) (TdExample *example, void *user);
TD_API TdDataset *td_transform_dataset_new (TdDataset *dataset, TdTransform transform,
                                            void *user);
/** Cut a dataset in two, the first part of split_at examples. */
TD_API TdStatus td_split_dataset (TdDataset *dataset, int64_t split_at, TdDataset **first,
                                  TdDataset **second);
/** The same of a random order; seed 0: from the engine's. */
TD_API TdStatus td_split_dataset_random (TdDataset *dataset, int64_t first_size, uint64_t seed,
                                         TdDataset **first, TdDataset **second);
/** Cut into n parts of size / n examples each; what is left over is left out. */
TD_API TdStatus td_split_dataset_n (TdDataset *dataset, int n, TdDataset **parts);
TD_API TdStatus td_split_dataset_n_random (TdDataset *dataset, int n, uint64_t seed,
                                           TdDataset **parts);
/** n_folds pairs: test[k] is every part once, train[k] all the others.  Sizes differ by one at
 * most. */
TD_API TdStatus td_cross_validation_datasets (TdDataset *dataset, int n_folds,
                                              TdDataset **train, TdDataset **test);
TD_API TdStatus td_cross_validation_datasets_random (TdDataset *dataset, int n_folds,
                                                     uint64_t seed, TdDataset **train,
                                                     TdDataset **test);
TD_API int64_t td_dataset_size (const TdDataset *dataset);
/** The shape of one row: of the first example's first field. */
TD_API TdShape td_dataset_shape (const TdDataset *dataset);
/** Keep rows start to stop only. */
TD_API TdStatus td_dataset_slice (TdDataset *dataset, int64_t start, int64_t stop);
/** Give up the program's reference; datasets and iterators that were made of it keep it. */
TD_API void td_dataset_free (TdDataset *dataset);

/* --- batches and iterators ---------------------------------------------------------------- */
/** A piece of a dataset, owned by the innermost scope; t is NULL without labels. */
typedef struct TdBatch
{
  TdVar *x, *t; /**< field[0] and field[1] */
  int64_t n;
  TdVar *field[TD_MAX_FIELDS];
  const char *name[TD_MAX_FIELDS]; /**< of a dict's fields, else NULL */
  int n_fields;
} TdBatch;
/** A batch's field by its name.  *Errors*: TD_ERR_ARG and poison when there is none. */
TD_API TdVar *td_batch_get (const TdBatch *batch, const char *name);
/** Stack examples on a new first axis, field by field.  n_padding 0: all must have one shape;
 * 1: shorter ones are filled up with padding[0] to the largest; else a number per field.
 * *Source*: chainer.dataset.concat_examples. */
TD_API TdBatch td_concat_examples (const TdExample *examples, int64_t n, const double *padding,
                                   int n_padding);
/** Make the order of the next epoch out of the last one's: a pure function of its arguments,
 * because loader threads run ahead with it. */
typedef void (*TdOrderSampler) (int64_t *order, int64_t n, int64_t position, uint64_t *random,
                                void *user);
/** A batch made by the program's own function, of examples in host memory. */
typedef TdBatch (*TdConverter) (const TdExample *examples, int64_t n, void *user);
typedef struct
{
  int64_t batch_size;
  bool shuffle, repeat;
  uint64_t seed;                /**< of the order; 0: from the engine's */
  TdOrderSampler order_sampler; /**< instead of shuffling; also makes the first order */
  void *order_user;
  int end_;
} TdSerialIterOpt;
#define TD_SERIAL_ITER_DEFAULTS .batch_size = 32, .shuffle = true, .repeat = true, .seed = 0
/** Batches one after the other; with repeat a batch may reach over the end of an epoch, as in
 * Chainer.  *Owner*: the caller, td_iter_free or td_finish. */
TD_API TdIter *td_serial_iterator_new_ (TdDataset *dataset, const TdSerialIterOpt *options);
TD_API TdIter *td_serial_iterator_new_at (TdDataset *dataset, TdSerialIterOpt options,
                                          const TdSite *site);
typedef struct
{
  int64_t batch_size;
  bool shuffle, repeat;
  int n_threads;  /**< that load */
  int n_prefetch; /**< batches that are loaded ahead; 0: two for each thread */
  uint64_t seed;
  TdOrderSampler order_sampler;
  void *order_user;
  int end_;
} TdMultithreadIterOpt;
#define TD_MULTITHREAD_ITER_DEFAULTS                                                           \
  .batch_size = 32, .shuffle = true, .repeat = true, .n_threads = 1, .n_prefetch = 0
/** The same batches in the same order, loaded ahead by threads that see host memory only.  On a
 * device that copies while it computes the next batch is sent when one is handed out, and is
 * memory of category input from then on; its arrays are recorded where they are asked for. */
TD_API TdIter *td_multithread_iterator_new_ (TdDataset *dataset,
                                             const TdMultithreadIterOpt *options);
TD_API TdIter *td_multithread_iterator_new_at (TdDataset *dataset, TdMultithreadIterOpt options,
                                               const TdSite *site);
/** A text in batch_size places at once: x (n) ids, t (n) the ids after them (Chainer's
 * ParallelSequentialIterator of its ptb example). */
TD_API TdIter *td_text_iterator_new (TdDataset *text, int64_t batch_size);
/** Fill up shorter examples, as td_concat_examples does. */
TD_API TdStatus td_iter_set_padding (TdIter *iter, const double *padding, int n_padding);
/** Have batches made by a function instead, on the thread that asks for them. */
TD_API TdStatus td_iter_set_converter (TdIter *iter, TdConverter converter, void *user);
/** The next batch.  *Errors*: TD_ERR_STATE and poison after the end without repeat. */
TD_API TdBatch td_iter_next (TdIter *iter);
TD_API TdBatch td_iter_next_at (TdIter *iter, const TdSite *site);
/** Number of epochs that are over. */
TD_API int64_t td_iter_epoch (const TdIter *iter);
/** Epochs with their fraction. */
TD_API double td_iter_epoch_detail (const TdIter *iter);
/** The same as it was before the last batch; -1 before the first. */
TD_API double td_iter_previous_epoch_detail (const TdIter *iter);
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
#define td__serial_iterator_new_x(dataset, ...) TD_CALL_ (td_serial_iterator_new_at (dataset, TD_OPTIONS_ (TdSerialIterOpt, TD_SERIAL_ITER_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_multithread_iterator_new(...) td__multithread_iterator_new_x (__VA_ARGS__, .end_ = 0)
#define td__multithread_iterator_new_x(dataset, ...) TD_CALL_ (td_multithread_iterator_new_at (dataset, TD_OPTIONS_ (TdMultithreadIterOpt, TD_MULTITHREAD_ITER_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_mnist_open(...) td_mnist_open_at (__VA_ARGS__, TD_HERE)
#define td_idx_open(...) td_idx_open_at (__VA_ARGS__, TD_HERE)
#define td_npz_open(...) td_npz_open_at (__VA_ARGS__, TD_HERE)
#define td_csv_open(...) td__csv_open_x (__VA_ARGS__, .end_ = 0)
#define td__csv_open_x(path, ...) TD_CALL_ (td_csv_open_at (path, TD_OPTIONS_ (TdCsvOpt, TD_CSV_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_text_open(...) td_text_open_at (__VA_ARGS__, TD_HERE)
#define td_iter_next(...) td_iter_next_at (__VA_ARGS__, TD_HERE)
#endif
/* clang-format on */

TD_END_DECLS
