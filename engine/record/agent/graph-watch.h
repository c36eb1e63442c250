/* Whether an iteration has the graph of the one before: the operations in order, their layers,
 * and what they read of what the iteration has made.  Sizes and numbers are not looked at.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** An operation, by what makes it another one.  Texts are borrowed for good; no file: not
 * known.
 */
typedef struct
{
  uint64_t hash;
  const char *op, *file;
  int line;
} TdWatchedOp;

typedef struct
{
  TdWatchedOp *ops;
  size_t n, capacity;
  bool whole; /* it was watched from its beginning */
  int64_t number;
} TdWatchedGraph;

typedef struct
{
  TdWatchedGraph now, before;
  bool begun;
} TdGraphWatch;

/** An iteration begins: from here on all its operations are added. */
void td__graph_watch_begin (TdGraphWatch *w, int64_t number);
void td__graph_watch_add (TdGraphWatch *w, TdWatchedOp op);
/** It ends.  Returns whether its graph is not that of the iteration right before it, with one
 * line that says where it parts from that; false as well where one of the two was not watched
 * as a whole. */
bool td__graph_watch_end (TdGraphWatch *w, char *what, size_t size);
void td__graph_watch_clear (TdGraphWatch *w);

/** One more number of an operation. */
static inline uint64_t
td__graph_watch_mix (uint64_t hash, uint64_t more)
{
  return (hash ^ more) * 0x9e3779b97f4a7c15u ^ hash >> 29;
}
