/* Datasets from the inside: rows in host memory.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../links/link.h"

/** A kind of dataset made of others, or of arrays that the rows below do not fit. */
typedef struct TdDatasetClass
{
  /** Fill the fields of example i.  Any thread.  False: why, of TD_WHY_BYTES. */
  bool (*get) (const TdDataset *dataset, int64_t i, TdExample *example, char *why);
  /** Release what self holds. */
  void (*free) (void *self);
} TdDatasetClass;
enum
{
  TD_WHY_BYTES = 300
};

struct TdDataset
{
  TdObject object; /**< the program's reference */
  int refs;
  const TdDatasetClass *cls; /**< NULL: the rows below */
  void *self;
  bool inert;
  bool is_text;
  int64_t first, n; /**< the rows in use */
  int64_t n_rows;   /**< the rows there are */
  TdShape row;
  int64_t row_size;
  uint8_t *bytes; /**< rows of bytes, read as value / 255; of a text, the ids */
  float *floats;  /**< or rows of floats */
  int32_t *labels;
  int n_ids;
  uint8_t byte_of_id[256];
};

TdDataset *td__dataset_inert (void);
/** A dataset without rows.  *Owner*: the program's list. */
TdDataset *td__dataset_make (void);
bool (td__dataset_usable) (const TdDataset *dataset, const char *call, const TdSite *site);
#ifdef __clang_analyzer__
#define td__dataset_usable(dataset, ...) TD_USABLE (td__dataset_usable, dataset, __VA_ARGS__)
#endif
TdDataset *td__dataset_ref (TdDataset *dataset);
void td__dataset_unref (TdDataset *dataset);
/** Write row i, of the rows in use, to x. */
void td__dataset_row (const TdDataset *dataset, int64_t i, float *x);

/** A dataset of a class, of n examples.  *Owner*: the program's list; takes self. */
TdDataset *td__dataset_of (const TdDatasetClass *cls, void *self, int64_t n);
/** Rows of one dtype in host memory; name may be NULL. */
typedef struct TdColumn
{
  char *name;
  TdDtype dtype;
  TdShape row;
  size_t row_bytes;
  char *data;
} TdColumn;
/** A dataset of 1 to TD_MAX_FIELDS columns of n_rows.  *Owner*: the program's list; takes their
 * names and data. */
TdDataset *td__dataset_of_columns (const TdColumn *columns, int n, int64_t n_rows);
/** Fill an example, whose memory stays owned by it.  Any thread.  False: why. */
bool td__dataset_example (const TdDataset *dataset, int64_t i, TdExample *example, char *why);
/** Go through sub-datasets: the dataset that really holds example i, and its place there. */
const TdDataset *td__dataset_resolve (const TdDataset *dataset, int64_t *i);
/** The seed of an order: this one, or for 0 one from the engine's numbers. (split.c) */
uint64_t td__order_seed (uint64_t seed);
/** A random order of n examples.  *Owner*: the caller, free (). */
int64_t *td__random_order (int64_t n, uint64_t seed);
/** False for NULL, inert ones and texts, after td__fail. */
bool td__datasets_usable (TdDataset *const *datasets, int n, const char *call);

/** A batch in host memory. */
typedef struct TdHostBatch
{
  struct
  {
    const char *name;
    TdDtype dtype;
    TdShape shape;
    void *data; /**< one of: */
    void *own, *pinned;
    size_t own_bytes, pinned_bytes;
  } field[TD_MAX_FIELDS];
  int n_fields;
  int64_t n;
  bool failed;
  char why[TD_WHY_BYTES];
  TdDevice *device; /**< that reads `pinned` where it is; the field's thread is the engine's */
} TdHostBatch;
/** How examples become a batch. */
typedef struct TdGatherRule
{
  double padding[TD_MAX_FIELDS];
  int n_padding; /**< 0: none; 1: for all fields */
} TdGatherRule;
/** Read rows and stack them; draw is the number of the first row since the iterator began.
 * Any thread. */
void td__gather_rows (const TdDataset *dataset, const int64_t *rows, int64_t n, uint64_t seed,
                      int64_t draw, const TdGatherRule *rule, TdHostBatch *out);
/** Stack examples.  Any thread. */
void td__gather_examples (const TdExample *examples, int64_t n, const TdGatherRule *rule,
                          TdHostBatch *out);
void td__host_batch_clear (TdHostBatch *batch);
/** New arrays of the innermost scope; blocks: where their numbers are on the default device
 * already, or NULL. *Owner*: the arrays take the blocks. */
TdBatch td__host_batch_send (const TdHostBatch *batch, struct TdBlock *const *blocks,
                             const char *call, const TdSite *site);
TdBatch td__batch_poison (void);

/** The next of a fixed sequence of pseudo-random numbers (splitmix64, Steele et al. 2014). */
static inline uint64_t
td__random_next (uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15u;

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
