/* Iterators from the inside: where one stands, and what its loader threads do.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../dataset/dataset.h"

/** A place in the sequence of rows.  Whoever has the same cursor goes on with the same rows. */
typedef struct TdCursor
{
  int64_t position; /**< of the next row in the order; of a text, in each of its places */
  int64_t epoch, count;
  int64_t drawn; /**< rows so far */
  double previous_epoch_detail;
  bool is_new_epoch;
  uint64_t random;
  int64_t *order; /**< NULL: as they come */
} TdCursor;

typedef struct TdPrefetch TdPrefetch;

struct TdIter
{
  TdObject object;
  TdDataset *dataset;
  TdSerialIterOpt o;
  bool inert, is_text;
  uint64_t seed;
  int64_t n; /**< rows of an epoch */
  TdCursor at;
  TdHostBatch host;
  TdGatherRule rule;
  TdConverter converter;
  void *converter_user;
  TdPrefetch *prefetch; /**< NULL: rows are read when they are asked for */
};

/** Go to the first epoch's first row. */
void td__cursor_begin (const TdIter *it, TdCursor *at);
/** Which rows come next: wraps around an epoch's end with repeat, stops there without.
 * False: the order sampler went out of range. */
bool td__cursor_next (const TdIter *it, TdCursor *at, int64_t *rows, int64_t *n);
/** Say whether there is no next batch. */
static inline bool
td__cursor_ended (const TdIter *it, const TdCursor *at)
{
  return !it->o.repeat && at->epoch > 0;
}
void td__cursor_copy (const TdIter *it, TdCursor *to, const TdCursor *from);
double td__cursor_epoch_detail (const TdIter *it, const TdCursor *at);

/** Start threads that load ahead of the iterator. */
TdPrefetch *td__prefetch_new (const TdIter *it, int n_threads, int n_slots);
/** Begin again behind the iterator's cursor. */
void td__prefetch_restart (TdPrefetch *prefetch);
/** The next batch, waiting for it; valid until the next call. */
const TdHostBatch *td__prefetch_take (TdPrefetch *prefetch);
void td__prefetch_free (TdPrefetch *prefetch);
