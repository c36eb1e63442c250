/* Making a tape of what another program recorded: memory snapshots of PyTorch.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape.h"

TD_TAPE_BEGIN_C

/** What INFO says under TD_TAPE_IMPORT_KEY of a tape that was made from a snapshot.  Such a
 * tape has one iteration with the flag TD_TAPE_ITERATION_SNAPSHOT: its events are the entries
 * of the snapshot's trace (alloc, free, segment_alloc ...) and no operations; a variable is a
 * block of memory, produced by its alloc and read by its free; device k + 1 is the snapshot's
 * device k.
 *
 * A block that was there before the trace began is one of the iteration's start.  Bytes are
 * those of the segments for blocks that are there in the end, and those that the trace tells
 * for others: what was asked for, without what the allocator added.  A block is live until its
 * free has completed.  The place of a block is the innermost frame of a Python file that
 * belongs to no library; nothing is said of what it was for: its category is "other". */
#define TD_TAPE_IMPORT_KEY "import"
#define TD_TAPE_IMPORT_TORCH "torch-snapshot"

/** What an import found. */
typedef struct
{
  uint32_t size; /* sizeof (TdTapeImport), set by the caller */
  uint32_t n_devices;
  uint64_t n_entries, n_dropped; /* of the trace; older ones that were too many */
  uint64_t n_events;             /* a free's request and its completion are one */
  uint64_t n_blocks, n_start;    /* there at its end, and at its start */
  uint64_t
      n_unmatched; /* frees of what was free already, blocks that the trace says are free */
  uint64_t peak_bytes, end_bytes;
} TdTapeImport;

/** Say whether a file begins like a pickle of protocol 2 to 5. */
TD_API bool td_tape_is_snapshot (const char *path);

/** Make a tape of a snapshot: the pickle of torch.cuda.memory._snapshot (), or of its segments
 * alone.  No code in it is run: all but dictionaries, lists, texts and numbers is refused.
 * `what` may be NULL.
 * Errors: false, with one line in `error` (`n` bytes) that names the file, and no tape. */
TD_API bool td_tape_import_snapshot (const char *snapshot, const char *tape, bool overwrite,
                                     TdTapeImport *what, char *error, size_t n);

/** Tell files apart: the same file has the same number until it is written again; 0: there is
 * none. */
TD_API uint64_t td_tape_import_identity (const char *snapshot);

/** Make a tape of a snapshot in a folder that is there, unless it has one; its path is written
 * to `tape`.  Errors: as of td_tape_import_snapshot. */
TD_API bool td_tape_import_into (const char *snapshot, const char *folder, char *tape,
                                 size_t n_tape, char *error, size_t n);

TD_TAPE_END_C
