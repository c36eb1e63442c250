/* Iterators: batches of a dataset, epoch after epoch, as Chainer's SerialIterator and
 * MultithreadIterator, and many places of one text at once, as the ParallelSequentialIterator
 * of its ptb example.
 *
 * SPDX-License-Identifier: MIT */
#include "iterator.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

enum
{
  THREADS_MOST = 64,
  PREFETCH_MOST = 4096
};

TdIter *
td__iter_inert (void)
{
  static TdIter inert = { .inert = true, .at = { .epoch = INT64_MAX } };

  return &inert;
}

bool
td__iter_usable (const TdIter *it, const char *call, const TdSite *site)
{
  if (td__stranger (call))
    return false;
  if (it != NULL && !it->inert)
    return true;
  td__fail (TD_ERR_STATE, call, site, "%s",
            it == NULL         ? "the iterator is NULL"
            : it->object.freed ? "the iterator was freed"
                               : "the iterator is inert: its constructor failed before");
  return false;
}

static void
iter_free (void *object)
{
  TdIter *it = object;

  if (it->share != NULL)
    it->share->free (it->shared);
  td__ahead_drop (it);
  td__prefetch_free (it->prefetch);
  td__dataset_unref (it->dataset);
  td__host_batch_clear (&it->host);
  free (it->at.order);
  *it = (TdIter){ .inert = true, .at = { .epoch = INT64_MAX }, .object.freed = true };
  td__shell_keep (it);
}

void
td_iter_free (TdIter *it)
{
  if (td__stranger ("td_iter_free") || it == NULL || it->inert || !td__engine.started)
    return;
  td__object_remove (&it->object);
  iter_free (it);
}

void
td_iter_reset (TdIter *it)
{
  if (!td__iter_usable (it, "td_iter_reset", NULL))
    return;
  td__cursor_begin (it, &it->at);
  td__ahead_restart (it);
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
    return td__iter_inert ();
  if (o.batch_size <= 0 || dataset->n <= 0 || o.batch_size > INT32_MAX)
    {
      td__fail (TD_ERR_ARG, call, site, "batches of %lld out of %lld rows cannot be had",
                (long long)o.batch_size, (long long)dataset->n);
      return td__iter_inert ();
    }
  it = td__xcalloc (1, sizeof *it);
  it->dataset = td__dataset_ref (dataset);
  it->o = o;
  it->n = dataset->n;
  it->seed = seed_of (o.seed);
  it->at.previous_epoch_detail = -1;
  td__object_add (&it->object, iter_free);
  return it;
}

static TdIter *
row_iter_make (TdDataset *dataset, TdSerialIterOpt o, const char *call, const TdSite *site)
{
  TdIter *it;

  if (dataset != NULL && dataset->is_text)
    {
      td__fail (TD_ERR_ARG, call, site, "a text is read by td_text_iterator_new");
      return td__iter_inert ();
    }
  it = iter_make (dataset, o, call, site);
  if (it->inert)
    return it;
  if (o.shuffle || o.order_sampler != NULL)
    it->at.order = td__xcalloc ((size_t)it->n, sizeof *it->at.order);
  td_iter_reset (it);
  return it;
}

TdIter *
td_serial_iterator_new_at (TdDataset *dataset, TdSerialIterOpt options, const TdSite *site)
{
  return row_iter_make (dataset, options, "td_serial_iterator_new", site);
}

TdIter *
td_serial_iterator_new_ (TdDataset *dataset, const TdSerialIterOpt *options)
{
  static const TdSerialIterOpt defaults = { TD_SERIAL_ITER_DEFAULTS };

  return td_serial_iterator_new_at (dataset, options != NULL ? *options : defaults, NULL);
}

TdIter *
td_multithread_iterator_new_at (TdDataset *dataset, TdMultithreadIterOpt m, const TdSite *site)
{
  TdSerialIterOpt o = { .batch_size = m.batch_size,
                        .shuffle = m.shuffle,
                        .repeat = m.repeat,
                        .seed = m.seed,
                        .order_sampler = m.order_sampler,
                        .order_user = m.order_user };
  TdIter *it;

  if (m.n_threads < 1 || m.n_threads > THREADS_MOST || m.n_prefetch < 0
      || m.n_prefetch > PREFETCH_MOST)
    {
      td__ensure_started ();
      td__fail (TD_ERR_ARG, "td_multithread_iterator_new", site,
                "1 to %d threads and 0 to %d batches ahead expected, got %d and %d",
                THREADS_MOST, PREFETCH_MOST, m.n_threads, m.n_prefetch);
      return td__iter_inert ();
    }
  it = row_iter_make (dataset, o, "td_multithread_iterator_new", site);
  if (!it->inert)
    it->prefetch
        = td__prefetch_new (it, m.n_threads, m.n_prefetch > 0 ? m.n_prefetch : 2 * m.n_threads);
  return it;
}

TdIter *
td_multithread_iterator_new_ (TdDataset *dataset, const TdMultithreadIterOpt *options)
{
  static const TdMultithreadIterOpt defaults = { TD_MULTITHREAD_ITER_DEFAULTS };

  return td_multithread_iterator_new_at (dataset, options != NULL ? *options : defaults, NULL);
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
      return td__iter_inert ();
    }
  it = iter_make (text, o, "td_text_iterator_new", NULL);
  if (!it->inert)
    it->is_text = true;
  return it;
}

TdStatus
td_iter_set_padding (TdIter *it, const double *padding, int n_padding)
{
  if (!td__iter_usable (it, "td_iter_set_padding", NULL))
    return td__error_status ();
  if (n_padding < 0 || n_padding > TD_MAX_FIELDS || (n_padding > 0 && padding == NULL))
    return td__fail (TD_ERR_ARG, "td_iter_set_padding", NULL,
                     "0 to %d paddings expected, got %d", TD_MAX_FIELDS, n_padding);
  it->rule.n_padding = n_padding;
  for (int k = 0; k < n_padding; k++)
    it->rule.padding[k] = padding[k];
  td__ahead_restart (it);
  return TD_OK;
}

TdStatus
td_iter_set_converter (TdIter *it, TdConverter converter, void *user)
{
  if (!td__iter_usable (it, "td_iter_set_converter", NULL))
    return td__error_status ();
  if (it->is_text || it->prefetch != NULL)
    return td__fail (TD_ERR_ARG, "td_iter_set_converter", NULL,
                     "an iterator of td_serial_iterator_new expected");
  it->converter = converter;
  it->converter_user = user;
  return TD_OK;
}

/* --- batches --- */

static TdBatch
text_batch (TdIter *it, const TdSite *site)
{
  const TdDataset *d = it->dataset;
  int64_t n = it->o.batch_size;
  TdShape shape = { 1, { n } };
  int32_t *ids = td__xcalloc ((size_t)n, sizeof *ids);
  TdBatch b = { .n = n, .n_fields = 2 };

  for (int k = 0; k < 2; k++)
    {
      for (int64_t i = 0; i < n; i++)
        ids[i] = d->bytes[d->first + (i * (d->n / n) + it->at.position + k) % d->n];
      b.field[k] = td_tensor_at (TD_I32, shape, ids, site);
      if (!td_poisoned (b.field[k]))
        td_name (b.field[k], k == 0 ? "x" : "t");
    }
  free (ids);
  b.x = b.field[0];
  b.t = b.field[1];
  it->at.previous_epoch_detail = td__cursor_epoch_detail (it, &it->at);
  it->at.count++;
  it->at.position++;
  it->at.is_new_epoch = it->at.position * n / d->n > it->at.epoch;
  it->at.epoch = it->at.position * n / d->n;
  return b;
}

/* The batch of a converter of the program's own. */
static TdBatch
converted_batch (TdIter *it, const int64_t *rows, int64_t n, int64_t draw, const TdSite *site)
{
  TdExample *e = td__xcalloc ((size_t)n, sizeof *e);
  char why[TD_WHY_BYTES];
  bool ok = true;
  TdBatch b;

  for (int64_t i = 0; i < n && ok; i++)
    {
      uint64_t state = it->seed + (uint64_t)(draw + i);

      e[i].seed = td__random_next (&state);
      ok = td__dataset_example (it->dataset, rows[i], &e[i], why);
    }
  if (ok)
    b = it->converter (e, n, it->converter_user);
  else
    {
      td__fail (TD_ERR_ARG, "td_iter_next", site, "%s", why);
      b = td__batch_poison ();
    }
  for (int64_t i = 0; i < n; i++)
    td_example_clear (&e[i]);
  free (e);
  return b;
}

static TdBatch
row_batch (TdIter *it, const TdSite *site)
{
  int64_t *rows = td__xcalloc ((size_t)it->o.batch_size, sizeof *rows), n = 0;
  int64_t draw = it->at.drawn;
  TdBatch batch;

  if (!td__cursor_next (it, &it->at, rows, &n))
    {
      td__fail (TD_ERR_ARG, "td_iter_next", site,
                "the order sampler gives rows that are not among %lld", (long long)it->n);
      batch = td__batch_poison ();
    }
  else if (it->converter != NULL)
    batch = converted_batch (it, rows, n, draw, site);
  else if (it->prefetch != NULL)
    batch = td__ahead_next (it, site);
  else
    {
      td__gather_rows (it->dataset, rows, n, it->seed, draw, &it->rule, &it->host);
      batch = td__host_batch_send (&it->host, NULL, "td_iter_next", site);
    }
  free (rows);
  return batch;
}

TdBatch
td__iter_next_own (TdIter *it, const TdSite *site)
{
  return it->is_text ? text_batch (it, site) : row_batch (it, site);
}

TdBatch
td_iter_next_at (TdIter *it, const TdSite *site)
{
  if (!td__iter_usable (it, "td_iter_next", site) || td__asked ("td_iter_next"))
    return td__batch_poison ();
  if (td__cursor_ended (it, &it->at))
    {
      td__fail (TD_ERR_STATE, "td_iter_next", site,
                "the iterator is at its end: it does not repeat");
      return td__batch_poison ();
    }
  return it->share != NULL ? it->share->next (it, site) : td__iter_next_own (it, site);
}

TdBatch (td_iter_next) (TdIter *it)
{
  return td_iter_next_at (it, NULL);
}

int64_t
td_iter_epoch (const TdIter *it)
{
  return td__asked ("td_iter_epoch") || it == NULL ? INT64_MAX : it->at.epoch;
}

double
td_iter_epoch_detail (const TdIter *it)
{
  return !td__asked ("td_iter_epoch_detail") && it != NULL && !it->inert
             ? td__cursor_epoch_detail (it, &it->at)
             : 0;
}

double
td_iter_previous_epoch_detail (const TdIter *it)
{
  return !td__asked ("td_iter_previous_epoch_detail") && it != NULL && !it->inert
             ? it->at.previous_epoch_detail
             : -1;
}

int64_t
td_iter_count (const TdIter *it)
{
  return td__asked ("td_iter_count") || it == NULL ? 0 : it->at.count;
}

bool
td_iter_is_new_epoch (const TdIter *it)
{
  return !td__asked ("td_iter_is_new_epoch") && it != NULL && it->at.is_new_epoch;
}
