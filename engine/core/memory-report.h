/* What is known when a device has no more memory: what was asked for, what was done for it, and
 * who holds what there is.  It is told to whoever records; its first line is the error's.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

/** Arrays of one category, name, operation and place, made in this iteration or before it. */
typedef struct
{
  const TdSite *site;
  const TdPath *path;
  const char *name;     /**< of a gradient: that of its parameter */
  const TdOpClass *cls; /**< that made them; NULL: none */
  const TdVar *var;     /**< of the largest; NULL: only the graph keeps it */
  const TdVar *of;      /**< whose gradient that is; NULL: it is none */
  const TdNode *node;   /**< of the largest */
  uint64_t oldest;      /**< id of the first node */
  size_t bytes, largest;
  uint32_t n;
  uint8_t category; /**< TdMemCategory */
  bool saved;       /**< some are kept for backward */
  bool earlier;     /**< made before the iteration that runs */
} TdMemHolder;

/** Sum up the arrays on a device, the largest sum first.  What has neither handle nor saved
 * array (workspace, planned blocks) is none of them.  *Owner*: the caller, free; NULL: no host
 * memory. */
TdMemHolder *td__mem_holders (const TdDevice *device, size_t *n);

typedef struct TdMemChains TdMemChains; /* memory-chain.h */

typedef struct TdMemReport
{
  const TdDevice *device;
  size_t bytes;         /**< asked for */
  const TdShape *shape; /**< NULL: not an array */
  TdDtype dtype;
  const char *op;
  const TdSite *site;
  const TdMemInfo *info;
  size_t limit; /**< 0: none */
  TdMemTried tried;
  const TdMemHolder *holders;
  size_t n_holders;
  const TdMemChains *chains; /**< NULL: not known */
} TdMemReport;
