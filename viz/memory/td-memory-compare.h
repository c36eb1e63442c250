/*
 * Two memory snapshots: which blocks are new in the second and which are gone, by the place
 * that allocated them.  A block is the same in both where device, address, bytes and place are.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-memory.h"

G_BEGIN_DECLS

/* Blocks of one place on one device. */
typedef struct
{
  char *place; /* "train.py:12"; "?": a block without a stack */
  char *device;
  guint64 bytes[2];              /* in the first, in the second */
  guint64 new_bytes, gone_bytes; /* of those */
  guint n_new, n_gone;
} TdMemoryCompareRow;

typedef struct
{
  guint n;
  TdMemoryCompareRow *rows; /* those that differ, what grew most first */
  guint n_same;             /* places without a difference */
  guint64 bytes[2];         /* of all */
} TdMemoryCompare;

/** Compare what is alive at the ends of two iterations. Owner: the caller. */
TdMemoryCompare *td_memory_compare_new (const TdIteration *a, const TdIteration *b);
void td_memory_compare_free (TdMemoryCompare *compare);
/** Say it; format: "text" or "json". Owner: the caller. */
char *td_memory_compare_print (const TdMemoryCompare *compare, const char *format);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdMemoryCompare, td_memory_compare_free)

G_END_DECLS
