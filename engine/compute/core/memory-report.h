/* The report of a failed allocation: what was asked for, what was tried, and who holds the
 * device's memory.  The observer gets it; its first line is that of the error.
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
  const TdVar *var;     /**< of the largest; NULL: it is kept only by the graph */
  const TdVar *of;      /**< the variable whose gradient it is, or NULL */
  const TdNode *node;   /**< of the largest */
  uint64_t oldest;      /**< id of the first node */
  size_t bytes, largest;
  uint32_t n;
  uint8_t category; /**< TdMemCategory */
  bool saved;       /**< some are kept for backward */
  bool earlier;     /**< made before the present iteration */
} TdMemHolder;

/** Group the arrays on a device, the largest group first.  Memory that is no array (workspace,
 * arenas of static schedules) is not included.  *Owner*: the caller, free; NULL: no host
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
