/* The tape file: prose first, then one struct and one size assertion per record; those of an
 * iteration are in td-tape-iteration.h.  Nothing here depends on the engine.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* C linkage for C++, without a block that would indent the whole file. */
#ifdef __cplusplus
#define TD_TAPE_BEGIN_C                                                                        \
  extern "C"                                                                                   \
  {
#define TD_TAPE_END_C }
#else
#define TD_TAPE_BEGIN_C
#define TD_TAPE_END_C
#endif

TD_TAPE_BEGIN_C
#ifndef TD_API
#define TD_API __attribute__ ((visibility ("default")))
#endif

#include "td-tape-copies.h"
#include "td-tape-device.h"
#include "td-tape-fault.h"
#include "td-tape-held.h"
#include "td-tape-keyframe.h"
#include "td-tape-objects.h"
#include "td-tape-oom.h"
#include "td-tape-ranks.h"
#include "td-tape-stacks.h"
#include "td-tape-static.h"

/* THE FORMAT, version 1.3
 * =======================
 *
 * A tape is one file, little-endian, whose parts are aligned to 8 bytes:
 *
 *     0        TdTapeHeader
 *     512      TdTapeState, which a growing tape's readers poll
 *     576      TdTapeTally, what was recorded in all, whatever is left of it
 *     1024     segment 0, the tail: room for the last words (notice, end) that is there even
 *              when the disk is full
 *     4096     segment 1: TdTapeSegment (64 bytes), then frames, up to its capacity
 *     ...      segment 2, at the end of segment 1's capacity, and so on
 *
 * Segments.  A segment has a capacity that is a multiple of 1024, and one of these kinds:
 *
 *     DEFS     definitions (strings, operations, sites, paths, sources, parameters, structures,
 *              memory profiles), notices, the end: never recycled
 *     INDEX    SUMMARY and REPORT frames: written again, thinner, when they fill their share
 *     KEPT     iterations that are kept for ever: the first 16, those with findings, and the
 *              first of each structure
 *     RECENT   other iterations; when the budget is used up the oldest such segment is used
 *              again, with `generation` one higher
 *     VALUES   tensors, recycled in the same way within a budget of their own
 *     LIVE     the iteration that is running now; there are two, written in turn
 *     RECENT_INDEX  summaries and reports of the other newest iterations, recycled
 *     FREE     nothing; neighbouring free segments become one, and one may be split in two
 *
 * `used` counts the bytes of frames; it and the rest of the 64 bytes are covered by `crc`.  A
 * reader that sees a wrong crc in a growing file reads again; if it stays wrong the tape ends
 * there.  The last segment's capacity may reach beyond the end of the file.
 *
 * Frames.  {u32 len; u16 type; u16 flags; u32 seq; u32 crc}, then the payload, then zeros to a
 * multiple of 8.  `len` counts header and payload without the padding.  `crc` is CRC-32C of the
 * frame with crc = 0.  `seq` counts all frames of the writer, so in a segment it only grows;
 * a frame is valid if and only if it lies within `used`, its crc is right, and its seq is not
 * before the segment's `first_seq` (a left-over of an earlier generation is).  Readers accept
 * the longest valid prefix of each segment, and nothing after it.
 *
 * Evolution.  Readers skip types they do not know.  Arrays carry their stride: a reader keeps
 * to the part of each element it knows, and fills with zeros what an older writer lacked.  A
 * higher minor version only adds; a reader refuses a higher major.
 *
 * Ids.  Strings, operations, sites, paths, structures and memory profiles are numbered by the
 * writer from 1; 0 means none.  Nothing in the file depends on the names of operations.
 *
 * Iterations.  What is the same in every iteration is stored once: a STRUCTURE (events,
 * variables, spans, with variables numbered from 0 within the iteration) and a MEMORY profile
 * (allocations by event, and the blocks alive at the start).  An ITERATION frame then is the
 * two ids, the times, and what differs each time: ids of the outside variables, host reads,
 * statistics, references to tensors, errors.  Where an id is 0 the frame itself has the
 * sections of the structure or the profile: so it is for programs whose structures never
 * repeat, once definitions take half of the budget.  Each iteration leaves a 64-byte summary
 * that names the offset of its frame and the frame's seq; once that segment has been recycled
 * the seq no longer agrees, and the iteration is *thinned*.  While an iteration runs, a LIVE
 * frame (as ITERATION, with everything in it) holds the whole of it so far; the newest valid
 * one counts, unless a summary with its number or a higher one exists.
 *
 * The budget.  A tape with a budget of B bytes for iterations and V bytes for tensors never has
 * more than B + V bytes, and without tensors never more than B.  Of B, DEFS take at most half,
 * KEPT an eighth, INDEX a quarter; all the rest, an eighth at least, is for the newest: of that
 * RECENT_INDEX takes an eighth of B, or what the rows of all whole iterations need.  So the
 * newest iterations are always there, and the newest one is whole unless it finds no room in
 * one piece (NOT_STORED).  When INDEX has used its quarter it is written again with every
 * second of its summaries, then with every fourth and so on (TdTapeTally.stride), always the
 * same of the whole run; of the reports of each key with the first in every two iterations,
 * then in every four and so on.  Those of kept iterations stay, and those of iterations that
 * are still whole move to RECENT_INDEX, where all new ones go that are none of every n-th. A
 * frame that says again what was said before has the flag TD_TAPE_FRAME_AGAIN: who follows a
 * growing tape knows it.  How many iterations there were is in the tally.  A writer that is
 * given a rate takes as B, at any time, only what that rate allows by then.
 *
 * STRUCTURE, MEMORY, ITERATION and LIVE payloads are a head followed by sections:
 * TdTapeSection {u32 kind; u32 stride; u64 count}, then count * stride bytes, padded to 8.
 * Long sections are packed: kind PACKED stands for another one (tapedeck-tape(5) says how).
 *
 * Time is CLOCK_MONOTONIC in nanoseconds since `mono_ns` of the header.
 *
 * Version 1.1 adds static schedules: STATIC_CHAIN, SCHEDULE and STATIC_EVENT, and the section
 * STATICS, RUNS and TRACED of iterations (td-tape-static.h).  Version 1.2 adds the section HELD
 * of iterations and the holder OPTIMIZER (td-tape-held.h), OBJECTS and REFERENCES
 * (td-tape-objects.h), devices, POOLS and COPIES (td-tape-device.h and so on), FAULT, OOM.
 * Version 1.3 adds the tally, the flag AGAIN, packed sections (tape-pack.h), CALLS and
 * CALL_WORDS of iterations (td-tape-keyframe.h), COLLECTIVES and RANK_SUMS (td-tape-ranks.h),
 * and STACK_FRAMES, EVENT_STACKS and EXTERNAL_STACKS (td-tape-stacks.h). */

#define TD_TAPE_MAGIC "TDTAPE\r\n"
#define TD_TAPE_MAJOR 1
#define TD_TAPE_MINOR 3
#define TD_TAPE_STATE_OFFSET 512
#define TD_TAPE_TALLY_OFFSET 576
#define TD_TAPE_TAIL_OFFSET 1024 /* the first segment */
#define TD_TAPE_TAIL_BYTES 3072
#define TD_TAPE_SEGMENT_MAGIC 0x47455354u /* "TSEG" */
#define TD_TAPE_NONE UINT32_MAX           /* "no index" where an index is asked for */
#define TD_TAPE_NO_ID (1ull << 63)        /* on tape: no buffer, no variable */
#define TD_TAPE_MAX_NDIM 8

/** What happened in an event: stepping, "event n of m" and the text dump count the same. */
typedef enum
{
  TD_TAPE_PHASE_FORWARD,
  TD_TAPE_PHASE_BACKWARD,
  TD_TAPE_PHASE_ACCUMULATE,
  TD_TAPE_PHASE_UPDATE,
  TD_TAPE_N_PHASES
} TdTapePhase;

/** What an allocation is for, as said by the caller. */
typedef enum
{
  TD_TAPE_CATEGORY_OTHER,
  TD_TAPE_CATEGORY_PARAMETER,
  TD_TAPE_CATEGORY_GRADIENT,
  TD_TAPE_CATEGORY_ACTIVATION,
  TD_TAPE_CATEGORY_OPTIMIZER,
  TD_TAPE_CATEGORY_INPUT,
  TD_TAPE_CATEGORY_BUFFER,
  TD_TAPE_CATEGORY_WORKSPACE,
  TD_TAPE_CATEGORY_COMMUNICATION,
  TD_TAPE_CATEGORY_STATIC,
  TD_TAPE_N_CATEGORIES
} TdTapeCategory;

/** Element types on the tape: the same numbers as the engine's TdDtype. */
typedef enum
{
  TD_TAPE_F32,
  TD_TAPE_F64,
  TD_TAPE_F16,
  TD_TAPE_BF16,
  TD_TAPE_I32,
  TD_TAPE_I64,
  TD_TAPE_U8,
  TD_TAPE_BOOL,
  TD_TAPE_N_DTYPES
} TdTapeDtype;

/** How much is recorded. */
typedef enum
{
  TD_TAPE_LEVEL_GRAPH,
  TD_TAPE_LEVEL_STATS,
  TD_TAPE_LEVEL_VALUES
} TdTapeLevel;

/** Flags of an event. */
enum
{
  TD_TAPE_EVENT_ACCUMULATED = 1 << 0, /* added into its output's earlier content (beta = 1) */
  TD_TAPE_EVENT_FAILED = 1 << 1,      /* the call failed; its outputs are poison */
  TD_TAPE_EVENT_DOUBLE = 1 << 2,      /* made while double backprop was on */
  TD_TAPE_EVENT_REPLAYED = 1 << 3,    /* run from a static schedule */
  TD_TAPE_EVENT_NO_BACKPROP = 1 << 4, /* left no graph behind */
  TD_TAPE_EVENT_RUNNING = 1 << 5,     /* live only: started, not yet ended */
  TD_TAPE_EVENT_SHARED = 1 << 6,      /* output shares its input's buffer (a view) */
  TD_TAPE_EVENT_CAPTURED = 1 << 7,    /* ran inside a CUDA graph: its time was not measured */
  TD_TAPE_EVENT_FAULT = 1 << 8,       /* failed as was found later: td-tape-fault.h */
};

/** Flags of a variable. */
enum
{
  TD_TAPE_VAR_REQUIRES_GRAD = 1 << 0,
  TD_TAPE_VAR_RETAINED = 1 << 1, /* its operation keeps it for backward */
  TD_TAPE_VAR_POISONED = 1 << 2,
  TD_TAPE_VAR_PARAMETER = 1 << 3,
  TD_TAPE_VAR_EXTERNAL = 1 << 4,  /* made before; `id` is an index of `externals` */
  TD_TAPE_VAR_UNCHAINED = 1 << 5, /* cut from its creator in this iteration */
};

/** Flags of an iteration, also of its summary. */
enum
{
  TD_TAPE_ITERATION_NAN = 1 << 0,
  TD_TAPE_ITERATION_INF = 1 << 1,
  TD_TAPE_ITERATION_ERROR = 1 << 2,
  TD_TAPE_ITERATION_GRAPH_CHANGED = 1 << 3, /* structure differs from the iteration before */
  TD_TAPE_ITERATION_NEW_GRAPH = 1 << 4,     /* structure seen for the first time */
  TD_TAPE_ITERATION_PARTIAL = 1 << 5,       /* never ended: killed, stopped, or still running */
  TD_TAPE_ITERATION_OUTSIDE = 1 << 6,       /* work outside any TD_ITERATION */
  TD_TAPE_ITERATION_STATS = 1 << 7,
  TD_TAPE_ITERATION_VALUES = 1 << 8,
  TD_TAPE_ITERATION_KEPT = 1 << 9,
  TD_TAPE_ITERATION_NOT_STORED = 1 << 10, /* only its summary was ever written */
  TD_TAPE_ITERATION_LOST = 1 << 11,       /* some records of it were lost */
  TD_TAPE_ITERATION_HELD = 1 << 12,       /* says what outlived it */
  TD_TAPE_ITERATION_OBJECTS = 1 << 13,    /* says what refers to what, of that */
  TD_TAPE_ITERATION_SNAPSHOT = 1 << 14,   /* not of a program's operations: td-tape-import.h */
  TD_TAPE_ITERATION_KEYFRAME = 1 << 15,   /* can be run again: td-tape-keyframe.h */
  TD_TAPE_ITERATION_RECOMPUTED = 1 << 16, /* was run again: its values are of then */
};

/* ------------------------------------------------------------------ bytes of the file */

/** The first bytes of a tape; `header_bytes` is the offset of segment 0. */
typedef struct
{
  char magic[8];
  uint16_t major, minor;
  uint32_t header_bytes;
  uint8_t uuid[16];
  uint64_t wall_ns; /* CLOCK_REALTIME at the start */
  uint64_t mono_ns; /* CLOCK_MONOTONIC at the start: the tape's time 0 */
  uint64_t ticks;   /* raw time stamp at the same moment */
  double ns_per_tick;
  int32_t pid; /* of the model */
  uint32_t rank, n_ranks;
  uint32_t level;        /* TdTapeLevel */
  uint64_t budget_bytes; /* 0: unlimited */
  uint64_t values_bytes;
  uint32_t flags;
  uint32_t crc; /* CRC-32C of the bytes before it */
} TdTapeHeader;
static_assert (sizeof (TdTapeHeader) == 104, "TdTapeHeader changed size");

/** What a reader of a growing tape looks at first. */
typedef struct
{
  uint64_t n_changes;  /* one up with each flush */
  uint64_t n_segments; /* one up whenever a segment is made, recycled, split or merged */
  uint64_t end;        /* where the next segment will be */
  uint64_t defs, index, live[2]; /* offsets of the segments that grow now; 0: none */
  uint32_t reserved;
  uint32_t crc; /* CRC-32C of the bytes before it */
} TdTapeState;
static_assert (sizeof (TdTapeState) == 64, "TdTapeState changed size");

#define TD_TAPE_TALLY_STRUCTURES 48

/** What was recorded in all, since version 1.3; written with the state. */
typedef struct
{
  uint64_t n_iterations; /* that ended */
  uint64_t n_operations; /* their events that are not discarded */
  uint64_t newest;       /* number of the last of them */
  uint64_t stride;       /* every how many-th has its summary for ever */
  uint64_t n_not_stored; /* that never were there but as a summary */
  uint64_t n_lost;       /* lost to damage with their summaries: of a tape that was repaired */
  uint64_t repaired;     /* 1: so it was; 2: and n_iterations is what was left */
  uint64_t structures[TD_TAPE_TALLY_STRUCTURES]; /* iterations of structure [id - 1] */
  uint32_t reserved2;
  uint32_t crc; /* CRC-32C of the bytes before it */
} TdTapeTally;
static_assert (sizeof (TdTapeTally) == 448, "TdTapeTally changed size");
static_assert (TD_TAPE_TALLY_OFFSET + sizeof (TdTapeTally) <= TD_TAPE_TAIL_OFFSET, "tally");

typedef enum
{
  TD_TAPE_SEGMENT_FREE,
  TD_TAPE_SEGMENT_DEFS,
  TD_TAPE_SEGMENT_INDEX,
  TD_TAPE_SEGMENT_KEPT,
  TD_TAPE_SEGMENT_RECENT,
  TD_TAPE_SEGMENT_VALUES,
  TD_TAPE_SEGMENT_LIVE,
  TD_TAPE_SEGMENT_RECENT_INDEX,
  TD_TAPE_N_SEGMENTS
} TdTapeSegmentKind;

/** Flag of a FREE segment: here was something that damage has taken (see td_tape_repair). */
#define TD_TAPE_SEGMENT_GAP 1u

/** The head of a segment. */
typedef struct
{
  uint32_t magic;
  uint16_t kind, flags;
  uint32_t generation; /* how often it was written again */
  uint32_t first_seq;
  uint64_t capacity; /* bytes with this head */
  uint64_t used;     /* bytes of frames */
  uint64_t first_iteration, last_iteration;
  uint64_t reserved;
  uint32_t reserved2;
  uint32_t crc; /* CRC-32C of the bytes before it */
} TdTapeSegment;
static_assert (sizeof (TdTapeSegment) == 64, "TdTapeSegment changed size");

typedef enum
{
  TD_TAPE_FRAME_STRING = 1,
  TD_TAPE_FRAME_OPDEF,
  TD_TAPE_FRAME_SITE,
  TD_TAPE_FRAME_PATH,
  TD_TAPE_FRAME_INFO,
  TD_TAPE_FRAME_SOURCE,
  TD_TAPE_FRAME_PARAMETER,
  TD_TAPE_FRAME_STRUCTURE,
  TD_TAPE_FRAME_MEMORY,
  TD_TAPE_FRAME_ITERATION,
  TD_TAPE_FRAME_SUMMARY,
  TD_TAPE_FRAME_REPORT,
  TD_TAPE_FRAME_TENSOR,
  TD_TAPE_FRAME_LIVE,
  TD_TAPE_FRAME_NOTICE,
  TD_TAPE_FRAME_END,
  TD_TAPE_FRAME_ALIAS,
  TD_TAPE_FRAME_STATIC_CHAIN,
  TD_TAPE_FRAME_SCHEDULE,
  TD_TAPE_FRAME_STATIC_EVENT,
  TD_TAPE_FRAME_FAULT,
  TD_TAPE_FRAME_OOM,
  TD_TAPE_N_FRAMES
} TdTapeFrameType;

/** Flags of a frame. */
enum
{
  TD_TAPE_FRAME_AGAIN = 1 << 0, /* its rows were said in frames before */
};

typedef struct
{
  uint32_t len;
  uint16_t type, flags;
  uint32_t seq;
  uint32_t crc;
} TdTapeFrame;
static_assert (sizeof (TdTapeFrame) == 16, "TdTapeFrame changed size");

/** STRING: id, then the bytes (no NUL at the end). */
typedef struct
{
  uint32_t id;
  uint32_t length;
} TdTapeStringRecord;
static_assert (sizeof (TdTapeStringRecord) == 8, "TdTapeStringRecord changed size");

/** OPDEF: what a viewer needs to know about one class of operations.  Texts are string ids. */
typedef struct
{
  uint32_t id;
  uint32_t name, group;
  uint32_t attributes; /* schema of the attributes as text */
  uint32_t formula;
  uint32_t flags;
  int16_t n_in, n_out; /* -1: any number */
  uint32_t reserved;
} TdTapeOpdef;
static_assert (sizeof (TdTapeOpdef) == 32, "TdTapeOpdef changed size");

/** SITE: a place in the user's source. */
typedef struct
{
  uint32_t id;
  uint32_t file, function; /* strings */
  uint32_t line;
} TdTapeSite;
static_assert (sizeof (TdTapeSite) == 16, "TdTapeSite changed size");

/** PATH: a link, "root/child", and its class. */
typedef struct
{
  uint32_t id;
  uint32_t path, link_class; /* strings */
  uint32_t reserved;
} TdTapePath;
static_assert (sizeof (TdTapePath) == 16, "TdTapePath changed size");

/** INFO: one key and value about the run: program, device, argv, cwd, host, version ... */
typedef struct
{
  uint32_t key, value; /* strings */
} TdTapeInfo;
static_assert (sizeof (TdTapeInfo) == 8, "TdTapeInfo changed size");

/** ALIAS: number `foreign` of the recording program is `id` here; to recover a ring by. */
typedef struct
{
  uint32_t kind; /* type of the frame that defines it: STRING, OPDEF, SITE, PATH */
  uint32_t foreign;
  uint32_t id;
  uint32_t reserved;
} TdTapeAlias;
static_assert (sizeof (TdTapeAlias) == 16, "TdTapeAlias changed size");

/** SOURCE: path (a string), then the whole text. */
typedef struct
{
  uint32_t path;
  uint32_t reserved;
  uint64_t bytes;
} TdTapeSourceRecord;
static_assert (sizeof (TdTapeSourceRecord) == 16, "TdTapeSourceRecord changed size");

enum
{
  TD_TAPE_PARAMETER_PERSISTENT = 1 << 0 /* saved with the model, but not learnt: a mean */
};

/** PARAMETER: one parameter of the model; said again when it changes (lazy sizes). */
typedef struct
{
  uint64_t key;  /* of its variable */
  uint32_t path; /* string: link path and name */
  uint8_t dtype, ndim;
  uint16_t flags; /* TD_TAPE_PARAMETER_...; 0 on tapes before there were any */
  int64_t dims[TD_TAPE_MAX_NDIM];
} TdTapeParameter;
static_assert (sizeof (TdTapeParameter) == 80, "TdTapeParameter changed size");

/** A label with this bit is the number in its other bits and no string: a program that counts
 * its iterations for ever says no new text in each of them. */
#define TD_TAPE_LABEL_NUMBER 0x80000000u

/** SUMMARY: what stays of an iteration that was thinned. */
typedef struct
{
  uint64_t number;
  uint64_t offset;    /* of its ITERATION frame in the file */
  uint32_t seq;       /* of that frame: differs once it was recycled */
  uint32_t structure; /* id */
  uint64_t start_ns;
  uint64_t duration_ns;
  uint64_t peak_bytes;
  uint32_t label;    /* string, or a number: TD_TAPE_LABEL_NUMBER */
  uint32_t n_events; /* that are not discarded (td-tape-static.h) */
  uint32_t flags;
  uint32_t memory; /* id of the memory profile */
} TdTapeSummary;
static_assert (sizeof (TdTapeSummary) == 64, "TdTapeSummary changed size");

/** REPORT: one value of one curve. */
typedef struct
{
  uint64_t iteration;
  double value;
  uint32_t key;   /* string */
  uint32_t event; /* after this many events of the iteration */
} TdTapeReport;
static_assert (sizeof (TdTapeReport) == 24, "TdTapeReport changed size");

/** TENSOR: this, then the bytes, row-major in logical order. */
typedef struct
{
  uint64_t iteration;
  uint64_t variable; /* engine id */
  uint64_t bytes;
  uint32_t event; /* as of after this event; TD_TAPE_NONE: at its start */
  uint8_t dtype, ndim;
  uint16_t reserved;
  int64_t dims[TD_TAPE_MAX_NDIM];
} TdTapeTensorRecord;
static_assert (sizeof (TdTapeTensorRecord) == 96, "TdTapeTensorRecord changed size");

/** NOTICE: something the recorder or the engine has to say.  `kind` is a TdTapeNoticeKind. */
typedef struct
{
  uint64_t iteration;
  uint64_t time_ns;
  uint32_t event;
  uint32_t kind;
  int32_t status;          /* TdStatus for errors; of RECORDING: TD_TAPE_NOTICE_LOST or 0 */
  uint32_t text, op, site; /* strings, site id */
} TdTapeNotice;
static_assert (sizeof (TdTapeNotice) == 40, "TdTapeNotice changed size");

typedef enum
{
  TD_TAPE_NOTICE_TEXT,
  TD_TAPE_NOTICE_ERROR,     /* a failed call: status, message, op name, site */
  TD_TAPE_NOTICE_CONFIG,    /* a configuration value changed: "enable_backprop=0" */
  TD_TAPE_NOTICE_RECORDING, /* about the recording itself: stopped, records lost */
} TdTapeNoticeKind;

/** Status of a notice about the recording: the tape holds less than the program did. */
#define TD_TAPE_NOTICE_LOST (-1)

/** END: how the program ended, written by whoever watched it. */
typedef struct
{
  int32_t status;   /* exit status; -1 when ended by a signal */
  int32_t signal;   /* 0: none */
  uint32_t by;      /* 0: the model itself, 1: tapedeck */
  uint32_t last_op; /* opdef id of the operation that was running or ran last; 0: none */
  uint32_t last_site;
  uint32_t last_path;
  uint32_t last_phase;
  uint32_t running;    /* 1: last_op had begun and not ended */
  uint64_t last_event; /* its event within the iteration */
  uint64_t iteration;
  uint64_t time_ns;
  uint64_t n_stalls; /* how often the model waited for the recorder */
} TdTapeEnd;
static_assert (sizeof (TdTapeEnd) == 64, "TdTapeEnd changed size");

#include "td-tape-iteration.h"
#include "td-tape-names.h"
TD_TAPE_END_C
