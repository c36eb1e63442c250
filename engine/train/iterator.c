/* Iterators: batches of a dataset, epoch after epoch, as Chainer's SerialIterator, and many
 * places of one text at once, as the ParallelSequentialIterator of its ptb example.
 *
 * SPDX-License-Identifier: MIT */
#include "../dataset/dataset.h"

#include <stdlib.h>

struct TdIter
{
  TdObject object;
  TdDataset *dataset;
  TdSerialIterOpt o;
  bool inert, is_text;
  uint64_t random, seed;
  int64_t *order;
  int64_t position; /**< of the next row in the order; of a text, in each of its places */
  int64_t epoch, count;
  bool is_new_epoch;
  void *staging;
  size_t staging_bytes;
};

static TdIter *
inert_iter (void)
{
  static TdIter inert = { .inert = true, .epoch = INT64_MAX };

  return &inert;
}

static void
iter_free (void *object)
{
  TdIter *it = object;

  td__dataset_unref (it->dataset);
  free (it->order);
  free (it->staging);
  free (it);
}

void
td_iter_free (TdIter *it)
{
  if (it == NULL || it->inert || !td__engine.started)
    return;
  td__object_remove (&it->object);
  iter_free (it);
}

/* Fisher and Yates; the order is the one that is there, mixed again, as in Chainer. */
static void
mix (TdIter *it)
{
  for (int64_t i = it->dataset->n; i > 1 && it->o.shuffle; i--)
    {
      int64_t k = (int64_t)(td__random_next (&it->random) % (uint64_t)i);
      int64_t swap = it->order[k];

      it->order[k] = it->order[i - 1];
      it->order[i - 1] = swap;
    }
}

void
td_iter_reset (TdIter *it)
{
  if (it == NULL || it->inert)
    return;
  it->random = it->seed;
  it->position = it->epoch = it->count = 0;
  it->is_new_epoch = false;
  for (int64_t i = 0; i < it->dataset->n && it->order != NULL; i++)
    it->order[i] = i;
  if (it->order != NULL)
    mix (it);
}

static uint64_t
seed_of (uint64_t seed)
{
  TdRngKey key;

  if (seed != 0)
    return seed;
  key = td__rng_take (1);
  return key.seed * 0x2545f4914f6cdd1du + key.offset;
}

static TdIter *
iter_make (TdDataset *dataset, TdSerialIterOpt o, const char *call, const TdSite *site)
{
  TdIter *it;

  if (!td__ensure_started () || !td__dataset_usable (dataset, call, site))
    return inert_iter ();
  if (o.batch_size <= 0 || dataset->n <= 0 || o.batch_size > INT32_MAX)
    {
      td__fail (TD_ERR_ARG, call, site, "batches of %lld out of %lld rows cannot be had",
                (long long)o.batch_size, (long long)dataset->n);
      return inert_iter ();
    }
  it = td__xcalloc (1, sizeof *it);
  it->dataset = td__dataset_ref (dataset);
  it->o = o;
  it->seed = seed_of (o.seed);
  td__object_add (&it->object, iter_free);
  return it;
}

TdIter *
td_serial_iterator_new_at (TdDataset *dataset, TdSerialIterOpt options, const TdSite *site)
{
  TdIter *it;

  if (dataset != NULL && dataset->is_text)
    {
      td__fail (TD_ERR_ARG, "td_serial_iterator_new", site,
                "a text is read by td_text_iterator_new");
      return inert_iter ();
    }
  it = iter_make (dataset, options, "td_serial_iterator_new", site);
  if (it->inert)
    return it;
  it->order = td__xcalloc ((size_t)dataset->n, sizeof *it->order);
  td_iter_reset (it);
  return it;
}

TdIter *
td_serial_iterator_new_ (TdDataset *dataset, const TdSerialIterOpt *options)
{
  static const TdSerialIterOpt defaults = { TD_SERIAL_ITER_DEFAULTS };

  return td_serial_iterator_new_at (dataset, options != NULL ? *options : defaults, NULL);
}

TdIter *
td_text_iterator_new (TdDataset *text, int64_t batch_size)
{
  TdSerialIterOpt o = { .batch_size = batch_size, .repeat = true, .seed = 1 };
  TdIter *it;

  if (td__dataset_usable (text, "td_text_iterator_new", NULL)
      && (!text->is_text || batch_size > text->n))
    {
      td__fail (TD_ERR_ARG, "td_text_iterator_new", NULL,
                "a text of at least %lld characters expected", (long long)batch_size);
      return inert_iter ();
    }
  it = iter_make (text, o, "td_text_iterator_new", NULL);
  it->is_text = true;
  return it;
}

static void *
staging (TdIter *it, size_t bytes)
{
  if (it->staging_bytes < bytes)
    {
      it->staging = td__xrealloc (it->staging, bytes);
      it->staging_bytes = bytes;
    }
  return it->staging;
}

/* A new array of the innermost scope with what lies in the staging memory. */
static TdVar *
send (const TdIter *it, TdDtype dtype, const TdShape *shape, const char *name,
      const TdSite *site)
{
  TdVar *v = td_tensor_at (dtype, *shape, it->staging, site);

  return td_poisoned (v) ? v : td_name (v, name);
}

static TdBatch
text_batch (TdIter *it, const TdSite *site)
{
  const TdDataset *d = it->dataset;
  int64_t n = it->o.batch_size;
  TdShape shape = { 1, { n } };
  int32_t *ids = staging (it, (size_t)n * sizeof *ids);
  TdVar *v[2];

  for (int k = 0; k < 2; k++)
    {
      for (int64_t i = 0; i < n; i++)
        ids[i] = d->bytes[d->first + (i * (d->n / n) + it->position + k) % d->n];
      v[k] = send (it, TD_I32, &shape, k == 0 ? "x" : "t", site);
    }
  it->position++;
  it->is_new_epoch = it->position * n / d->n > it->epoch;
  it->epoch = it->position * n / d->n;
  return (TdBatch){ v[0], v[1], n };
}

/* Which rows come next: wraps around an epoch's end with repeat, stops there without. */
static int64_t
next_rows (TdIter *it, int64_t *rows)
{
  int64_t n = 0;

  it->is_new_epoch = false;
  while (n < it->o.batch_size)
    {
      rows[n++] = it->order[it->position++];
      if (it->position < it->dataset->n)
        continue;
      it->position = 0;
      it->epoch++;
      it->is_new_epoch = true;
      if (!it->o.repeat)
        break;
      mix (it);
    }
  return n;
}

static TdBatch
row_batch (TdIter *it, const TdSite *site)
{
  const TdDataset *d = it->dataset;
  size_t row_bytes = (size_t)d->row_size * sizeof (float);
  size_t room = (size_t)it->o.batch_size * (row_bytes > 4 ? row_bytes : 4);
  int64_t *rows = td__xcalloc ((size_t)it->o.batch_size, sizeof *rows);
  int64_t n = next_rows (it, rows);
  TdShape shape = { d->row.ndim + 1, { n } }, labels = { 1, { n } };
  TdBatch batch = { .n = n };
  float *x = staging (it, room);
  int32_t *t;

  for (int i = 0; i < d->row.ndim; i++)
    shape.dim[i + 1] = d->row.dim[i];
  for (int64_t i = 0; i < n; i++)
    td__dataset_row (d, rows[i], x + i * d->row_size);
  batch.x = send (it, TD_F32, &shape, "x", site);
  if (d->labels != NULL)
    {
      t = it->staging;
      for (int64_t i = 0; i < n; i++)
        t[i] = d->labels[d->first + rows[i]];
      batch.t = send (it, TD_I32, &labels, "t", site);
    }
  free (rows);
  return batch;
}

TdBatch
td_iter_next_at (TdIter *it, const TdSite *site)
{
  TdBatch none = { td__poison (), td__poison (), 0 };

  if (it == NULL || it->inert)
    {
      td__fail (TD_ERR_STATE, "td_iter_next", site, "the iterator is inert");
      return none;
    }
  if (td__check_thread ("td_iter_next") != TD_OK)
    return none;
  if (!it->o.repeat && it->epoch > 0)
    {
      td__fail (TD_ERR_STATE, "td_iter_next", site,
                "the iterator is at its end: it does not repeat");
      return none;
    }
  it->count++;
  return it->is_text ? text_batch (it, site) : row_batch (it, site);
}

TdBatch (td_iter_next) (TdIter *it)
{
  return td_iter_next_at (it, NULL);
}

int64_t
td_iter_epoch (const TdIter *it)
{
  return it != NULL ? it->epoch : INT64_MAX;
}

double
td_iter_epoch_detail (const TdIter *it)
{
  if (it == NULL || it->inert)
    return 0;
  if (it->is_text)
    return (double)(it->position * it->o.batch_size) / (double)it->dataset->n;
  return (double)it->epoch + (double)it->position / (double)it->dataset->n;
}

int64_t
td_iter_count (const TdIter *it)
{
  return it != NULL ? it->count : 0;
}

bool
td_iter_is_new_epoch (const TdIter *it)
{
  return it != NULL && it->is_new_epoch;
}
