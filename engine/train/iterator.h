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

/** The batch after the one that is computed with, where a device takes it early. */
typedef struct TdAhead
{
  TdHostBatch *batch; /**< NULL: none is taken */
  TdDevice *device;   /**< that it is on its way to; NULL: to none */
  struct TdBlock *block[TD_MAX_FIELDS];
  size_t pinned_bytes; /**< of all batches of the iterator */
} TdAhead;

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
  TdAhead ahead;
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
/** The next batch, waiting for it; the caller's until the next call. */
TdHostBatch *td__prefetch_take (TdPrefetch *prefetch);
/** Is there one? */
bool td__prefetch_has_more (TdPrefetch *prefetch);
void td__prefetch_free (TdPrefetch *prefetch);

/** The next batch of loader threads; the one after it is sent to the device, where that takes
 * it while it computes (ahead.c). */
TdBatch td__ahead_next (TdIter *it, const TdSite *site);
/** What was taken early is not wanted. */
void td__ahead_drop (TdIter *it);
/** Load again from where the iterator's cursor stands. */
void td__ahead_restart (TdIter *it);
