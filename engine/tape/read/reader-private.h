/* The reader's insides: what its files share, and nobody else includes.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../format/tape-private.h"
#include "td-tape-reader.h"

/** A segment as the reader knows it. */
typedef struct
{
  uint64_t offset;
  TdTapeSegment head;
  uint64_t room; /* bytes of frames that the file can have */
  uint64_t read; /* bytes of frames taken already (DEFS, INDEX) */
  uint32_t last_seq;
} TapeSeen;

/** Where a frame's payload lies. */
typedef struct
{
  uint64_t offset; /* of the frame */
  uint32_t len, seq;
} TapeSpot;

/** An array that grows by id or at its end. */
typedef struct
{
  void *items;
  uint32_t n, room;
} TapeArray;

/** The element at `index`, zero if it is new, and so are those before it; NULL: no memory. */
void *td__tape_array_at (TapeArray *a, uint32_t index, size_t size);

/** What several iterations share: a parsed structure or memory profile. */
typedef struct TapePart TapePart;

#define TAPE_CACHE 64

struct TdTapeReader
{
  int fd;
  uint64_t file_bytes;
  TdTapeHeader header;
  TdTapeState state;
  TdTapeTally tally;
  bool has_tally;
  TapeSeen *seen;
  uint32_t n_seen;
  uint64_t bad;       /* offset of the first head of a segment that is none; 0: none */
  bool has_state;     /* its check sum is right */
  const char *damage; /* what is wrong at `damaged_at`; NULL: nothing that was met */
  uint64_t damaged_at;
  uint32_t n_salvaged; /* summaries that were made of the iterations themselves */
  bool said_again;     /* the tape has rows that are said again */

  TapeArray strings; /* TdTapeText by id - 1 */
  TapeArray opdefs, sites, paths;
  TapeArray infos, sources, parameters, notices;
  TapeArray faults; /* TdTapeFault */
  TapeArray ooms, oom_holders, oom_links;
  uint32_t n_faults_marked; /* of those, in the summaries of their iterations */
  TapeArray summaries, reports;
  TapeArray structures;                    /* TdTapeStructure */
  TapeArray structure_spots, memory_spots; /* TapeSpot by id - 1 */
  TapeArray aliases;
  TapeArray chains, static_events;
  TapeArray schedule_spots; /* TapeSpot by id - 1 */
  bool summaries_sorted, reports_sorted, faults_sorted;
  uint32_t n_counted;     /* summaries counted into structures */
  uint32_t max_summaries; /* that are kept; 0: all */
  uint64_t stride;        /* of those that are kept among the old */
  bool thinned;           /* some are not kept */
  uint64_t first_number;  /* of all of them, when some are not kept */
  bool has_end;
  TdTapeEnd end;
  uint32_t live_seq;
  uint64_t known_through, reported_through; /* rows that are said again up to here are known */
  TapeArray texts;                          /* char * to be freed */
  bool skips_memory;
  TapePart *cache[2][TAPE_CACHE];
};

/** pread until `n` bytes are there; false at the end of the file or on an error. */
bool td__tape_pread (int fd, void *bytes, size_t n, uint64_t offset);

/** Read the frame at `offset`, at most `limit` bytes: its payload, to be freed; NULL when it is
 * not valid.  `type` 0: any. */
char *td__tape_read_frame (int fd, uint64_t offset, uint64_t limit, unsigned type,
                           TdTapeFrame *frame);

/** Does this iteration's frame belong to its segment as it is now?  What a recycled segment
 * left behind does not, though it may still be legible. */
bool td__tape_frame_is_current (const TdTapeReader *r, uint64_t offset,
                                const TdTapeFrame *frame);

/** Did it when its segment was last seen?  Reads nothing. */
bool td__tape_may_be_whole (const TdTapeReader *r, const TdTapeSummary *row);

/** Copy `n` bytes of a record into a struct of `size` bytes, the rest zeros. */
void td__tape_take (void *into, size_t size, const void *bytes, size_t n);

/** Enter a valid frame of DEFS or INDEX into the tables; types that are not known are skipped.
 */
void td__tape_take_frame (TdTapeReader *r, const TdTapeFrame *frame, const char *bytes,
                          TapeSpot spot);

/** The sections of a payload. */
typedef struct
{
  const char *bytes;
  uint64_t count;
  uint32_t stride;
  uint64_t packed; /* bytes that it is packed in; 0: it is not */
} TapeSectionView;

typedef struct
{
  TapeSectionView at[TD_TAPE_N_SECTIONS];
} TapeSections;

/** Find the sections after `head` bytes; false when one lies outside. */
bool td__tape_find_sections (const char *bytes, size_t n, size_t head, TapeSections *sections);

/** Copy a section to an array of our own structs; NULL when empty or there is no memory (then
 * the count is 0 too). */
void *td__tape_copy_section (const TapeSections *sections, unsigned kind, size_t size,
                             uint32_t *count);

/** Make an iteration from an ITERATION or LIVE payload. */
const TdTapeIteration *td__tape_iteration_from (TdTapeReader *r, const char *bytes, size_t n,
                                                char *error, size_t n_error);

/** Do all indices of its structure lie inside, and those of the rest, which is looked at when
 * the structure was found right? */
bool td__tape_structure_ok (const TdTapeIteration *it);
bool td__tape_instance_ok (const TdTapeIteration *it);

void td__tape_part_unref (TapePart *part);

/** The first fault from index `from` on that is of iteration `number`; r->faults.n: none. */
uint32_t td__tape_next_fault (const TdTapeReader *r, uint64_t number, uint32_t from);
/** Copy those of that iteration; *n is how many.  Owner: the caller, free; NULL: none. */
TdTapeFault *td__tape_copy_faults (const TdTapeReader *r, uint64_t number, uint32_t *n);

/** Say in the summaries of iterations that they have errors which were found later. */
void td__tape_mark_faults (TdTapeReader *r);

/** Read the summaries and reports that are new; true if there are any. */
bool td__tape_read_index (TdTapeReader *r);
/** Take the frames of all segments of a kind that were not taken yet. */
bool td__tape_read_kind (TdTapeReader *r, unsigned kind);
/** Read the tally, if it has one. */
void td__tape_read_tally (TdTapeReader *r);

/** Drop summaries beyond what the reader keeps. */
void td__tape_thin (TdTapeReader *r);

/** Read the heads of all segments of a file; NULL: no memory.  `*bad`: offset of the first head
 * that is not one, 0 if all are.  `beyond`: look for the next behind that. */
TapeSeen *td__tape_walk (int fd, uint64_t start, uint64_t file_bytes, bool beyond, uint32_t *n,
                         uint64_t *bad);

/** Is the check sum of a frame right whose bytes are at hand? */
bool td__tape_frame_valid (const char *at, const TdTapeFrame *frame);

/** The same of a tensor; true where `n` are not all of its bytes. */
bool td__tape_tensor_valid (const TdTapeFrame *frame, const TdTapeTensorRecord *record,
                            const void *data, uint64_t n);

/** Find the next valid frame that is later than the frame `after`: where it begins; `n`: none.
 * So that a made-up file takes no time, no more than `*patience` bytes are summed. */
uint64_t td__tape_find_frame (const char *bytes, uint64_t n, uint32_t after,
                              uint64_t *patience);

/** A way through the valid frames of a segment, also those behind damaged ones. */
typedef struct
{
  int fd;
  const TapeSeen *seen;
  uint64_t at; /* where it is, from the first frame on */
  uint32_t last;
  uint64_t patience;
} TapeScan;

/** The next frame's payload, to be freed; NULL: there is none.  `*skipped`: bytes before it
 * that are damaged. */
char *td__tape_scan_next (TapeScan *scan, TdTapeFrame *frame, uint64_t *skipped);

/** Is the tape damaged, as far as its reader must know?  Then read what it can in spite of
 * that. */
void td__tape_look_for_damage (TdTapeReader *r);
/** Make summaries of iterations that are there and that the index does not have. */
void td__tape_salvage (TdTapeReader *r);
/** Enter summaries that no index has. */
void td__tape_add_rows (TdTapeReader *r, const TdTapeSummary *rows, uint32_t n);

/** Of an iteration that cannot be loaded: is it lost by damage?  Else it was thinned. */
bool td__tape_is_lost (const TdTapeReader *r, const TdTapeSummary *row);
/** Was it when the tape was last seen?  Reads nothing. */
bool td__tape_was_lost (const TdTapeReader *r, const TdTapeSummary *row);
/** Say which. */
void td__tape_say_gone (const TdTapeReader *r, const TdTapeSummary *row, char *error, size_t n);
/** Say that damage is why there is no summary of an iteration; false: it is not. */
bool td__tape_say_damage (TdTapeReader *r, uint64_t number, char *error, size_t n);
