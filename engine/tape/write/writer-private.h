/* The writer's insides: segments below, tables above.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../format/tape-private.h"
#include "td-tape-writer.h"

/** So many iterations are kept for ever, whatever they are. */
#define TAPE_KEPT_FIRST 16

/** A segment in the writer's table, sorted by offset. */
typedef struct
{
  uint64_t offset;
  TdTapeSegment head;
} TapeSlot;

/** A segment that grows now. */
typedef struct
{
  uint64_t offset; /* 0: none */
  TdTapeSegment head;
  TapeBuffer pending; /* frames not yet written */
  bool dirty;
} TapeGrowing;

/** A table of definitions: ids from 1 on, found by hash. */
typedef struct
{
  TapeMap map;
  uint64_t *check; /* a second hash for each id, [id - 1] */
  uint32_t n, room;
} TapeTable;

enum
{
  TABLE_STRINGS,
  TABLE_OPDEFS,
  TABLE_SITES,
  TABLE_PATHS,
  TABLE_STRUCTURES,
  TABLE_MEMORY,
  TABLE_SCHEDULES,
  N_TABLES
};

/** Rows of the index. */
typedef struct
{
  TdTapeSummary *summaries;
  TdTapeReport *reports;
  uint32_t n_summaries, n_reports, summary_room, report_room;
} TapeRows;

/** The newest of a key's reports that stay: in which of every index_stride iterations. */
typedef struct
{
  uint64_t bucket;
  uint32_t key;
} TapeCurve;

/** The last of what was written to the file that is not 0: it is gone when the file is cut and
 * has grown again. */
typedef struct
{
  uint64_t offset;
  uint32_t n;
  uint8_t bytes[16];
} TapeLast;

struct TdTapeWriter
{
  int fd;
  bool failed, reported_failure;
  bool lost;           /* it is another's file now: nothing is written to it */
  TdTapeState written; /* the last state that is in the file */
  uint64_t end;        /* the file has been so long */
  TapeLast last;
  char error[200];
  TdTapeHeader header;
  TdTapeState state;
  uint32_t seq;

  TapeSlot *slots;
  uint32_t n_slots, slot_room;
  TapeGrowing growing[TD_TAPE_N_SEGMENTS];
  TapeGrowing tail;
  TapeGrowing live[2];
  unsigned next_live;
  uint64_t kind_bytes[TD_TAPE_N_SEGMENTS];
  uint64_t min_capacity;
  uint64_t rate_bytes;    /* by which the allowance grows each second; 0: it is the budget */
  uint64_t start_bytes;   /* what it is at first */
  uint64_t limit_bytes;   /* beyond which the file does not grow; 0: there is none */
  uint64_t must_bytes;    /* beyond all of these, of what had to be stored: see find_space */
  uint64_t must_kept;     /* of these, of the first iteration */
  bool must;              /* the frame at hand has to */
  uint64_t now_ns;        /* the end of the newest iteration */
  uint64_t largest_frame; /* so far, tensors apart */

  TapeTable tables[N_TABLES];
  uint64_t *opdef_hash, *path_hash; /* by id; for fingerprints */
  TapeBuffer scratch;

  uint64_t n_iterations;
  bool has_first; /* an iteration, and not only work outside of one */
  TdTapeTally tally;
  uint64_t index_stride; /* of the summaries that stay for ever; one report of each key in
                          * so many iterations */
  TapeCurve *curves;
  uint32_t n_curves;
  bool has_thinned;          /* iterations have become summaries */
  bool reported_thinning[2]; /* of that, and of summaries that went */
  TapeRows rows[2];          /* pending: for ever, and for a while */
};

/** Where a frame lies. */
typedef struct
{
  uint64_t offset;
  uint32_t seq;
} TapePlace;

/** Open a tape that is to be written, which is empty then.  Errors: -1, one line in `error`;
 * nothing of a file that is another recorder's, or no tape, has been touched. */
int td__tape_open (const char *path, bool overwrite, char *error, size_t n);

/** Take note of `n` bytes that have been written at `offset`. */
void td__tape_wrote (TdTapeWriter *w, uint64_t offset, const void *bytes, size_t n);

/** Is the file as the writer left it?  False: writing has failed, with the reason. */
bool td__tape_is_ours (TdTapeWriter *w);

/** The same of every segment, once, when nothing is pending: takes a while. */
void td__tape_look_at_all (TdTapeWriter *w);

/** Add a frame of two parts to a segment of `kind`.  False when it has no room in the budget,
 * or writing has failed. */
bool td__tape_append (TdTapeWriter *w, unsigned kind, unsigned type, const void *a, size_t n_a,
                      const void *b, size_t n_b, uint64_t iteration, TapePlace *place);

/** Write the live frame over the older of the two. */
void td__tape_append_live (TdTapeWriter *w, const void *bytes, size_t n, uint64_t iteration);

/** Add a frame to the tail, which has room on a full disk too. */
void td__tape_append_tail (TdTapeWriter *w, unsigned type, const void *a, size_t n_a,
                           const void *b, size_t n_b);

/** Write all pending frames, heads and the state. */
void td__tape_flush_segments (TdTapeWriter *w);

/** Flags of the frame, with its type in td__tape_append. */
#define TAPE_AGAIN ((unsigned)TD_TAPE_FRAME_AGAIN << 16)

/** The segments of INDEX, at most `room`, in the order in which they were begun. */
uint32_t td__tape_index_slots (const TdTapeWriter *w, uint64_t *offsets, uint32_t room);

/** Let the segment of `kind` that grows now be full. */
bool td__tape_close_segment (TdTapeWriter *w, unsigned kind);

/** The bytes of the frames of a segment that does not grow.  Owner: the caller. */
char *td__tape_read_segment (TdTapeWriter *w, uint64_t offset, uint64_t *n);

void td__tape_free_segment (TdTapeWriter *w, uint64_t offset);

/** No iteration before this number is whole, but kept ones; UINT64_MAX: none is. */
uint64_t td__tape_first_whole (const TdTapeWriter *w);

/** Bytes of the file, tensors apart: what the budget is of. */
uint64_t td__tape_own_bytes (const TdTapeWriter *w);

/** Bytes of the budget that the tape may have by now, tensors apart; 0: any number.  Only
 * grows. */
uint64_t td__tape_allowance (const TdTapeWriter *w);
/** Is that less than its budget and rate allow? */
bool td__tape_is_limited (const TdTapeWriter *w);

/** Bytes of that which permanent kinds may take; UINT64_MAX without a limit. */
uint64_t td__tape_share (const TdTapeWriter *w, unsigned quarters);

/** Remember the first error; nothing more is written but the tail. */
void td__tape_fail (TdTapeWriter *w, const char *what, int error_number);

bool td__tape_segments_start (TdTapeWriter *w);
void td__tape_segments_free (TdTapeWriter *w);

/** Encode the sections of structure, memory profile and the rest of an iteration. */
void td__tape_put_structure (TapeBuffer *b, const TdTapeIteration *it);
/** The section of rows that were kept packed. */
void td__tape_put_rows (TapeBuffer *b, TdTapeRows *rows, uint32_t kind);
/** The section of statistics that were kept packed; `vars` has the variable of each. */
void td__tape_put_stats (TapeBuffer *b, TdTapeRows *rows, const uint32_t *vars);
void td__tape_put_instance (TapeBuffer *b, const TdTapeIteration *it, unsigned extra_flags);

/** Store `scratch`, whose first 4 bytes are the id to be filled in, unless it is known. Returns
 * the id; 0 when there is no room. */
uint32_t td__tape_put_once (TdTapeWriter *w, unsigned table, unsigned type, bool *is_new);

/** Remember the hash of the name of entry `id`. */
void td__tape_remember_hash (uint64_t **hashes, uint32_t id, uint64_t hash);

/** Enter a segment of a tape that exists into the writer's table. */
bool td__tape_adopt_segment (TdTapeWriter *w, uint64_t offset, const TdTapeSegment *head);

/** Write the pending summaries and reports. */
void td__tape_put_index (TdTapeWriter *w);
/** Add the summary of an iteration; `keep`: it is kept whole, for ever. */
void td__tape_put_summary (TdTapeWriter *w, const TdTapeSummary *row, bool keep);
void td__tape_index_free (TdTapeWriter *w);

/** Id of an entry whose content has these two hashes; `*is_new` when it was not there.
 * 0: no memory. */
uint32_t td__tape_table_intern (TapeTable *t, uint64_t hash, uint64_t check, bool *is_new);
