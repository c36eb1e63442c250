/*
 * Two memory snapshots: which blocks are new in the second and which are gone, by the stack
 * that allocated them; where one of both has no stacks, by the place alone. A block is the same
 * in both where device, address, bytes and that are.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-memory.h"
#include "td-stack-table.h"

G_BEGIN_DECLS

/* Blocks of one stack on one device. Its texts are the comparison's. */
typedef struct
{
  const char *place; /* "train.py:12", of the whole path; "?": a block without a stack */
  const char *device;
  guint32 stack; /* of the table; 0: not known, or not compared */
  guint apart;   /* the frame from which on others of the place differ; 0: no other is there */
  guint64 bytes[2];              /* in the first, in the second */
  guint64 new_bytes, gone_bytes; /* of those */
  guint n_new, n_gone;
} TdMemoryCompareRow;

typedef struct
{
  guint n;
  TdMemoryCompareRow *rows; /* those that differ, what grew most first */
  guint n_same;             /* stacks without a difference */
  guint64 bytes[2];         /* of all */
  gboolean by_stack;        /* both have whole stacks */
  TdStackTable *stacks;
  GStringChunk *texts;
} TdMemoryCompare;

/** Compare what is alive at the ends of two iterations. Owner: the caller. Sync: may be done in
 * a thread. */
TdMemoryCompare *td_memory_compare_new (const TdIteration *a, const TdIteration *b);
void td_memory_compare_free (TdMemoryCompare *compare);
/** Say in a line how much there is, and what is new and gone of it. Owner: the caller. */
char *td_memory_compare_sentence (const TdMemoryCompare *compare);
/** Say which of the rows with its place a row is: its first call that no other one has there;
 * NULL: its place says it. Owner: the caller. */
char *td_memory_compare_apart (const TdMemoryCompare *compare, guint row, gboolean is_short);
/** Say it; format: "text" or "json"; `whole`: text has whole stacks. Owner: the caller. */
char *td_memory_compare_print (const TdMemoryCompare *compare, const char *format,
                               gboolean whole);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdMemoryCompare, td_memory_compare_free)

G_END_DECLS
