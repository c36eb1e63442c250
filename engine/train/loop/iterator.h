/* Iterators: the position of one, its loader threads, and prefetching to the device.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../dataset/dataset.h"

/** A position in the sequence of rows.  From equal cursors the same rows follow. */
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

/** The batch that is being prefetched to a device. */
typedef struct TdAhead
{
  TdHostBatch *batch; /**< NULL: none */
  TdDevice *device;   /**< to which it is being copied, or NULL */
  struct TdBlock *block[TD_MAX_FIELDS];
  size_t pinned_bytes; /**< of all batches of the iterator */
} TdAhead;

/** Where another process reads the batches; ranks fills it. */
typedef struct TdIterShare
{
  TdBatch (*next) (TdIter *it, const TdSite *site);
  void (*free) (void *shared);
} TdIterShare;

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
  TdPrefetch *prefetch; /**< NULL: rows are read on demand */
  TdAhead ahead;
  const TdIterShare *share; /**< NULL: this process's own batches */
  void *shared;
};

/** The one that constructors return after an error. */
TdIter *td__iter_inert (void);
bool td__iter_usable (const TdIter *it, const char *call, const TdSite *site);
/** The next batch that this process reads itself. */
TdBatch td__iter_next_own (TdIter *it, const TdSite *site);

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
/** Start again at the iterator's cursor. */
void td__prefetch_restart (TdPrefetch *prefetch);
/** The next batch, waiting for it; the caller's until the next call. */
TdHostBatch *td__prefetch_take (TdPrefetch *prefetch);
/** Whether there is a next batch. */
bool td__prefetch_has_more (TdPrefetch *prefetch);
void td__prefetch_free (TdPrefetch *prefetch);

/** Return the next batch of the loader threads, and prefetch the one after it if the device can
 * copy while it computes (ahead.c). */
TdBatch td__ahead_next (TdIter *it, const TdSite *site);
/** Drop the prefetched batch. */
void td__ahead_drop (TdIter *it);
/** Load again from the iterator's cursor on. */
void td__ahead_restart (TdIter *it);
