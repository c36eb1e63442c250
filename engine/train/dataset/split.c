/* Cutting datasets: in two, in n, and into the folds of a cross validation.
 *
 * *Source*: chainer.datasets.split_dataset and its family.
 * SPDX-License-Identifier: MIT */
#include "dataset.h"
#include "host-memory.h"

#include <stdlib.h>

uint64_t
td__order_seed (uint64_t seed)
{
  TdRngKey key;

  if (seed != 0)
    return seed;
  key = td__rng_take (1);
  return key.seed * 0x2545f4914f6cdd1du + key.offset;
}

int64_t *
td__random_order (int64_t n, uint64_t seed)
{
  int64_t *order = td__xcalloc ((size_t)n, sizeof *order);

  for (int64_t i = 0; i < n; i++)
    {
      int64_t k = (int64_t)(td__random_next (&seed) % (uint64_t)(i + 1));

      order[i] = order[k];
      order[k] = i;
    }
  return order;
}

/* Both places are there and hold a dataset, and d can be read?  False after td__fail. */
static bool
begin_split (TdDataset *const *d, TdDataset **first, TdDataset **second, const char *call)
{
  if (!td__list_there (first, 1, call, NULL) || !td__list_there (second, 1, call, NULL))
    return false;
  *first = *second = td__dataset_inert ();
  return td__datasets_usable (d, 1, call);
}

static TdStatus
split_in_two (TdDataset *d, int64_t at, const int64_t *order, TdDataset **first,
              TdDataset **second, const char *call)
{
  *first = *second = td__dataset_inert ();
  if (at < 0 || at > d->n)
    return td__fail (TD_ERR_ARG, call, NULL, "a first part of %lld examples out of %lld",
                     (long long)at, (long long)d->n);
  *first = td_sub_dataset_new (d, 0, at, order);
  *second = td_sub_dataset_new (d, at, d->n, order);
  return TD_OK;
}

TdStatus
td_split_dataset (TdDataset *d, int64_t at, TdDataset **first, TdDataset **second)
{
  if (!begin_split (&d, first, second, "td_split_dataset"))
    return td__error_status ();
  return split_in_two (d, at, NULL, first, second, "td_split_dataset");
}

TdStatus
td_split_dataset_random (TdDataset *d, int64_t at, uint64_t seed, TdDataset **first,
                         TdDataset **second)
{
  int64_t *order;
  TdStatus status;

  if (!begin_split (&d, first, second, "td_split_dataset_random"))
    return td__error_status ();
  order = td__random_order (d->n, td__order_seed (seed));
  status = split_in_two (d, at, order, first, second, "td_split_dataset_random");
  free (order);
  return status;
}

static TdStatus
split_in_n (TdDataset *d, int n, bool random, uint64_t seed, TdDataset **parts,
            const char *call)
{
  int64_t *order = NULL, size;

  if (!td__list_there (parts, n, call, NULL))
    return td__error_status ();
  for (int i = 0; i < n; i++)
    parts[i] = td__dataset_inert ();
  if (!td__datasets_usable (&d, 1, call))
    return td__error_status ();
  if (n < 1 || n > d->n)
    return td__fail (TD_ERR_ARG, call, NULL, "%d parts out of %lld examples", n,
                     (long long)d->n);
  size = d->n / n;
  if (random)
    order = td__random_order (d->n, td__order_seed (seed));
  for (int i = 0; i < n; i++)
    parts[i] = td_sub_dataset_new (d, i * size, (i + 1) * size, order);
  free (order);
  return TD_OK;
}

TdStatus
td_split_dataset_n (TdDataset *d, int n, TdDataset **parts)
{
  return split_in_n (d, n, false, 0, parts, "td_split_dataset_n");
}

TdStatus
td_split_dataset_n_random (TdDataset *d, int n, uint64_t seed, TdDataset **parts)
{
  return split_in_n (d, n, true, seed, parts, "td_split_dataset_n_random");
}

/* The last fold is tested on first; the order of the others begins behind the fold that is, as
 * in Chainer. */
static TdStatus
cross_validation (TdDataset *d, int n, bool random, uint64_t seed, TdDataset **train,
                  TdDataset **test, const char *call)
{
  int64_t *order, *turned;

  if (!td__list_there (train, n, call, NULL) || !td__list_there (test, n, call, NULL))
    return td__error_status ();
  for (int i = 0; i < n; i++)
    train[i] = test[i] = td__dataset_inert ();
  if (!td__datasets_usable (&d, 1, call))
    return td__error_status ();
  if (n < 2 || n > d->n)
    return td__fail (TD_ERR_ARG, call, NULL, "%d folds out of %lld examples", n,
                     (long long)d->n);
  order = random ? td__random_order (d->n, td__order_seed (seed)) : NULL;
  turned = td__xcalloc ((size_t)d->n, sizeof *turned);
  for (int k = 0; k < n; k++)
    {
      int64_t begin = d->n * (n - 1 - k) / n, end = d->n * (n - k) / n;

      for (int64_t i = 0; i < d->n; i++)
        turned[i] = order != NULL ? order[(end + i) % d->n] : (end + i) % d->n;
      train[k] = td_sub_dataset_new (d, 0, d->n - (end - begin), turned);
      test[k] = td_sub_dataset_new (d, d->n - (end - begin), d->n, turned);
    }
  free (turned);
  free (order);
  return TD_OK;
}

TdStatus
td_cross_validation_datasets (TdDataset *d, int n_folds, TdDataset **train, TdDataset **test)
{
  return cross_validation (d, n_folds, false, 0, train, test, "td_cross_validation_datasets");
}

TdStatus
td_cross_validation_datasets_random (TdDataset *d, int n_folds, uint64_t seed,
                                     TdDataset **train, TdDataset **test)
{
  return cross_validation (d, n_folds, true, seed, train, test,
                           "td_cross_validation_datasets_random");
}
