/* Datasets from the inside: rows in host memory.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../links/link.h"

struct TdDataset
{
  TdObject object; /**< the program's reference */
  int refs;
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
bool td__dataset_usable (const TdDataset *dataset, const char *call, const TdSite *site);
TdDataset *td__dataset_ref (TdDataset *dataset);
void td__dataset_unref (TdDataset *dataset);
/** Write row i, of the rows in use, to x. */
void td__dataset_row (const TdDataset *dataset, int64_t i, float *x);

/** The next of a fixed sequence of pseudo-random numbers (splitmix64, Steele et al. 2014). */
static inline uint64_t
td__random_next (uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15u;

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
