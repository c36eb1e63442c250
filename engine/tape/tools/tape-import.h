/* Between the two halves of an import: what a snapshot says, flat, with its texts already on
 * the tape. SPDX-License-Identifier: MIT */
#pragma once

#include "tape-pickle.h"
#include "td-tape-import.h"
#include "td-tape-writer.h"

typedef enum
{
  TAPE_ENTRY_ALLOC,
  TAPE_ENTRY_FREE_REQUESTED,
  TAPE_ENTRY_FREE, /* completed */
  TAPE_ENTRY_SEGMENT_ALLOC,
  TAPE_ENTRY_SEGMENT_FREE,
  TAPE_ENTRY_SEGMENT_MAP,
  TAPE_ENTRY_SEGMENT_UNMAP,
  TAPE_ENTRY_SNAPSHOT,
  TAPE_ENTRY_OOM,
  TAPE_ENTRY_OTHER,
  TAPE_ENTRY_ANNOTATION, /* that the program made beside the allocator */
  TAPE_N_ENTRIES
} TapeEntryKind;

/** Where something was done, as a stack of frames says; ids of the tape. */
typedef struct
{
  uint32_t site, path;
  uint32_t category;
  uint32_t stack; /* number of its innermost call in the tree of `frames`; 0: none */
} TapePlace;

/** An entry of a trace. */
typedef struct
{
  uint64_t at, bytes, time_us; /* OOM: `at` is what the device had left */
  TapePlace place;
  uint32_t attrs; /* string */
  uint8_t kind, device;
  bool is_joined; /* a free whose request came just before it and is no entry of its own */
} TapeEntry;

/** A block that is there at the end. */
typedef struct
{
  uint64_t at, bytes, requested;
  TapePlace place;
  uint8_t device;
} TapeEndBlock;

typedef struct
{
  TdTapeWriter *w;
  TapeEntry *entries;
  TapeEndBlock *blocks;
  TdTapePool *pools;
  uint64_t n_entries, room_entries, n_blocks, room_blocks, n_pools, room_pools;
  uint64_t n_joined, n_dropped,
      n_annotations; /* of these: those without a place in the trace */
  bool timed;        /* every entry has a time */
  TdTapeStackFrame *frames;
  uint64_t n_frames, room_frames, n_stackless; /* places whose stack has no room in them */
  uint64_t *site_hash; /* of each site by its id, the same in every tape */
  uint64_t room_sites; /* sites have lower ids */
  char **sources;      /* files of the program's own, each once */
  uint64_t n_sources, room_sources;
  uint32_t opdefs[TAPE_N_ENTRIES];
  bool used[UINT8_MAX + 1]; /* devices of the tape */
} TapeSnapshot;

/** Take everything out of a pickle, while it is read: entries of the trace are never all there
 * as its values.  False with one line in `error`. */
bool td__tape_snapshot_read (TapeSnapshot *s, int fd, const TdTapeImportOptions *watch,
                             char *error, size_t n);
void td__tape_snapshot_clear (TapeSnapshot *s);

/** Write the iteration. */
bool td__tape_snapshot_write (TapeSnapshot *s, TdTapeImport *what, char *error, size_t n);

/** How well the file of a frame tells where: 3: Python of the program's own, 2: any Python, 1:
 * anything with a file, 0: nothing. */
int td__tape_rank_of_file (const char *file);

/** A frame is in this file; false: no memory. */
bool td__tape_sources_note (TapeSnapshot *s, const char *file);
/** Store those of them that are there, and not younger than the snapshot, which is open. */
void td__tape_sources_store (TapeSnapshot *s, int fd);
void td__tape_sources_clear (TapeSnapshot *s);

/** Tell who looks on that `done` of `all` of a stage is over.  `watch` may be NULL.
 * Errors: false: the import is to end, as cancelled. */
bool td__tape_import_step (const TdTapeImportOptions *watch, TdTapeImportStage stage,
                           uint64_t done, uint64_t all);

/** Grow an array to at least `n` elements; false: no memory. */
bool td__tape_reserve (void *array, uint64_t *room, uint64_t n, size_t size);
