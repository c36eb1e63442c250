/* Raw records: what the model writes into the ring, as cheap as possible.  Ids only, no
 * hashing; texts, operations, sites and paths are said once, before their first use.  The
 * assembler (assembler.h) turns them into a tape. SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape.h"

/* Rules for whoever writes them
 *
 * - Every record starts with TdRawHead, has a size that is a multiple of 8, and lies whole in
 *   the ring.  Records with bytes at the end pad with anything.
 * - Ids of strings, opdefs, sites and paths are the engine's, from 1 on; 0 means none.  Small
 *   numbers please (they index arrays).
 * - Variables and buffers have ids of their own sequences, from 1 on, never reused.
 * - A variable is made by an operation's output or by a LEAF.  An id that was never made is
 *   taken for a leaf without a name.
 * - ITERATION_BEGIN precedes the iteration's first record.  Work outside any TD_ITERATION is an
 *   iteration too (TD_RAW_OUTSIDE), numbered in the same sequence: begin it at the first
 *   operation outside, end it before the next ITERATION_BEGIN or EXIT.
 * - MEMORY, ALLOC and FREE records belong to the event that follows them, SCOPE and LINK
 * records too; STATS, TENSOR and NOTICE belong to the event before them.
 * - An ITERATION_END with TD_RAW_ANSWERS_TO_COME is followed, anywhere later, by the
 * iteration's ASYNC_STATS and DEVICE_TIME, and then by its ANSWERED.
 * - Records larger than TD_RING_MAX_RECORD are not possible: TENSOR, SOURCE and SCHEDULE come
 * in parts.
 * - Times are raw ticks (td_ring_ticks).  A backward event that follows another one of the same
 *   td_backward may start where that one ended: only the engine ran in between. */

typedef enum
{
  TD_RAW_PAD, /* skip; also fills the end of the ring */
  TD_RAW_STRING,
  TD_RAW_OPDEF,
  TD_RAW_SITE,
  TD_RAW_PATH,
  TD_RAW_INFO,
  TD_RAW_SOURCE,
  TD_RAW_PARAMETER,
  TD_RAW_ITERATION_BEGIN,
  TD_RAW_ITERATION_END,
  TD_RAW_OP,
  TD_RAW_LEAF,
  TD_RAW_SCOPE_OPEN,
  TD_RAW_SCOPE_CLOSE,
  TD_RAW_LINK_ENTER,
  TD_RAW_LINK_LEAVE,
  TD_RAW_MEMORY,
  TD_RAW_GRAD,
  TD_RAW_NAME,
  TD_RAW_UNCHAIN,
  TD_RAW_REPORT,
  TD_RAW_STATS,
  TD_RAW_TENSOR,
  TD_RAW_HOST_READ,
  TD_RAW_NOTICE,
  TD_RAW_STOPPED,
  TD_RAW_RESUMED,
  TD_RAW_EXIT,
  TD_RAW_ALLOC,
  TD_RAW_FREE,
  TD_RAW_STATIC_FUNCTION,
  TD_RAW_SCHEDULE,
  TD_RAW_STATIC_EVENT,
  TD_RAW_STATIC,
  TD_RAW_STATIC_RUN,
  TD_RAW_STATIC_ENTRY,
  TD_RAW_HELD,
  TD_RAW_ASYNC_STATS,
  TD_RAW_DEVICE_TIME,
  TD_RAW_ANSWERED,
  TD_RAW_DEVICE,
  TD_RAW_OBJECT,
  TD_RAW_REFERENCES,
  TD_RAW_POOL,
  TD_RAW_FAULT,
  TD_RAW_COPY,
  TD_RAW_OOM,
  TD_RAW_CALL,
  TD_RAW_WAIT,
  TD_RAW_RANK_SUM,
  TD_RAW_N_TYPES
} TdRawType;

typedef struct
{
  uint32_t size; /* bytes, with this head */
  uint16_t type;
  uint16_t flags; /* meaning depends on the type */
} TdRawHead;
_Static_assert(sizeof (TdRawHead) == 8, "TdRawHead changed size");

/** STRING: `length` bytes follow. */
typedef struct
{
  TdRawHead head;
  uint32_t id, length;
  char bytes[];
} TdRawString;

typedef struct
{
  TdRawHead head;
  TdTapeOpdef def; /* ids are the engine's */
} TdRawOpdef;

typedef struct
{
  TdRawHead head;
  TdTapeSite site;
} TdRawSite;

typedef struct
{
  TdRawHead head;
  TdTapePath path;
} TdRawPath;

/** INFO: key and value are strings. */
typedef struct
{
  TdRawHead head;
  uint32_t key, value;
} TdRawInfo;

/** SOURCE: a part of a model's source file; `length` bytes follow. */
typedef struct
{
  TdRawHead head;
  uint32_t path, length;
  uint64_t total, offset;
  char bytes[];
} TdRawSource;

/** PARAMETER: a parameter got its shape; `variable` is its id, `path` a string. */
typedef struct
{
  TdRawHead head;
  uint64_t variable;
  uint32_t path;
  uint8_t dtype, ndim;
  uint16_t flags; /* TD_TAPE_PARAMETER_... */
  int64_t dims[TD_TAPE_MAX_NDIM];
} TdRawParameter;

enum
{
  TD_RAW_OUTSIDE = 1 << 0,
  TD_RAW_KEYFRAME = 1 << 1
};

/** ITERATION_BEGIN: flags TD_RAW_OUTSIDE, TD_RAW_KEYFRAME. */
typedef struct
{
  TdRawHead head;
  uint64_t number;       /* 0, 1, 2 ... */
  uint64_t first_id;     /* the id the next variable will get */
  uint64_t first_buffer; /* the id the next buffer will get */
  uint64_t ticks;
  uint32_t label; /* string, or TD_TAPE_LABEL_NUMBER */
  uint32_t site;
} TdRawIterationBegin;

enum
{
  TD_RAW_ANSWERS_TO_COME = 1 << 0,
  TD_RAW_WAS_OUTSIDE = 1 << 1 /* as TD_RAW_OUTSIDE, of which nobody knew when it began */
};

/** ITERATION_END: flags TD_RAW_ANSWERS_TO_COME, TD_RAW_WAS_OUTSIDE. */
typedef struct
{
  TdRawHead head;
  uint64_t ticks;
} TdRawIterationEnd;

/** One output of an operation, then `ndim` dimensions as int64_t. */
typedef struct
{
  uint64_t variable;
  uint8_t dtype, ndim;
  uint8_t category; /* TdTapeCategory */
  uint8_t flags;    /* TD_TAPE_VAR_... */
  uint32_t device;  /* its number, 0: the host */
  int64_t dims[];
} TdRawOutput;
_Static_assert(sizeof (TdRawOutput) == 16, "TdRawOutput changed size");

#define TD_RAW_ORDER_APART 0x8000u

/** OP: an event, written when it has ended; then `n_in` ids (0: an optional input left out),
 * then `n_out` TdRawOutput.  head.flags are TD_TAPE_EVENT_....  Two inputs and an output of two
 * dimensions take 104 bytes. */
typedef struct
{
  TdRawHead head;
  uint64_t start, end; /* ticks; first, since they differ each time */
  uint32_t opdef, site;
  uint32_t path, attrs; /* path id; string */
  uint32_t twin_back;   /* events between here and the forward event, 0: none */
  uint16_t order;       /* TD_RAW_ORDER_APART: not counted with the others */
  uint8_t phase;        /* TdTapePhase */
  uint8_t reserved;
  uint16_t n_in, n_out;
  uint32_t retained_in;
  uint64_t ids[];
} TdRawOp;
_Static_assert(sizeof (TdRawOp) == 56, "TdRawOp changed size");

/** LEAF: a variable made outside operations (parameter, input, constant). */
typedef struct
{
  TdRawHead head;
  uint32_t name; /* string */
  uint32_t path; /* path id of the link that has it */
  uint32_t site;
  uint32_t reserved;
  TdRawOutput var; /* then its dimensions */
} TdRawLeaf;
_Static_assert(sizeof (TdRawLeaf) == 40, "TdRawLeaf changed size");

/** SCOPE_OPEN and LINK_ENTER. */
typedef struct
{
  TdRawHead head;
  uint32_t name; /* string; links: 0 */
  uint32_t path; /* path id; scopes: 0 */
  uint32_t site;
  uint32_t reserved;
} TdRawSpan;

/** MEMORY: `head.flags` is TdTapeMemoryKind in the low byte. */
typedef struct
{
  TdRawHead head;
  uint64_t address; /* HOLD, UNHOLD: id of the holder */
  uint64_t bytes;
  uint64_t buffer;
  uint64_t variable; /* 0: none */
  uint32_t site;
  uint8_t category, holder;
  uint16_t device;
} TdRawMemory;
_Static_assert(sizeof (TdRawMemory) == 48, "TdRawMemory changed size");

/** ALLOC: MEMORY in short, for the output of the operation that follows.  head.flags is the
 * category, and in the high byte the device. */
typedef struct
{
  TdRawHead head;
  uint64_t address, bytes;
  uint64_t buffer;
  uint64_t variable; /* 0: none */
} TdRawAlloc;
_Static_assert(sizeof (TdRawAlloc) == 40, "TdRawAlloc changed size");

/** FREE: MEMORY in short.  head.flags as of ALLOC. */
typedef struct
{
  TdRawHead head;
  uint64_t address, bytes;
  uint64_t buffer;
} TdRawFree;
_Static_assert(sizeof (TdRawFree) == 32, "TdRawFree changed size");

/** GRAD: the update that follows uses `gradient` (0: none) for `parameter`; `path` is a string.
 */
typedef struct
{
  TdRawHead head;
  uint64_t parameter, gradient;
  uint32_t path, reserved;
} TdRawGrad;

/** NAME: the variable got a name, or another one.  UNCHAIN: it lost its creator (name 0). */
typedef struct
{
  TdRawHead head;
  uint64_t variable;
  uint32_t name;
  uint32_t flags; /* NAME: TD_TAPE_VAR_... to be set */
} TdRawName;

typedef struct
{
  TdRawHead head;
  double value;
  uint32_t key, reserved; /* string */
} TdRawReport;

/** STATS: of one variable as it is now; `stats.var` and `stats.event` are ignored. */
typedef struct
{
  TdRawHead head;
  uint64_t variable;
  TdTapeStats stats;
} TdRawStats;

enum
{
  TD_RAW_BEFORE = 1 << 0 /* TD_TAPE_TENSOR_BEFORE */
};

/** TENSOR: a part of a variable's elements; `length` bytes follow.  Flags TD_RAW_BEFORE. */
typedef struct
{
  TdRawHead head;
  uint64_t variable;
  uint64_t total, offset; /* bytes */
  uint32_t length;
  uint8_t dtype, ndim;
  uint16_t reserved;
  int64_t dims[TD_TAPE_MAX_NDIM];
  char bytes[];
} TdRawTensor;
_Static_assert(sizeof (TdRawTensor) == 104, "TdRawTensor changed size");

/** HOST_READ: the program asked for a value. */
typedef struct
{
  TdRawHead head;
  uint64_t variable;
  uint32_t site, reserved;
} TdRawHostRead;

/** NOTICE: head.flags is a TdTapeNoticeKind. */
typedef struct
{
  TdRawHead head;
  int32_t status;
  uint32_t text, op, site; /* strings, site */
  uint64_t ticks;
} TdRawNotice;

/** STOPPED: the program stands before its next event.  RESUMED: reason 0. */
typedef struct
{
  TdRawHead head;
  uint32_t reason, site; /* string, site */
} TdRawStopped;

/** EXIT: the program called td_finish or exit. */
typedef struct
{
  TdRawHead head;
  int32_t status;
  uint32_t reserved;
  uint64_t ticks;
} TdRawExit;

/** STATIC_FUNCTION: its name and site are the engine's. */
typedef struct
{
  TdRawHead head;
  TdTapeChain function;
} TdRawFunction;

/** SCHEDULE: a part of a schedule's bytes, which are a TdRawScheduleHead and what it counts,
 * each array padded to 8 bytes.  All numbers are the engine's. */
typedef struct
{
  TdRawHead head;
  uint32_t schedule, length;
  uint64_t total, offset;
  char bytes[];
} TdRawSchedule;

typedef struct
{
  TdTapeScheduleHead head;
  uint32_t n_steps, n_operands, n_nodes, n_dims, n_values, n_guards;
} TdRawScheduleHead;
_Static_assert(sizeof (TdRawScheduleHead) % 8 == 0, "arrays after it are aligned");

/** STATIC_EVENT: iteration and time are the reader's to fill in, from `ticks`. */
typedef struct
{
  TdRawHead head;
  uint64_t ticks;
  TdTapeStaticEvent event;
} TdRawStaticEvent;

/** STATIC: a static function as it is, when its state changed and just before ITERATION_END:
 * the last of an iteration counts. */
typedef struct
{
  TdRawHead head;
  TdTapeStatic state;
} TdRawStatic;

enum
{
  TD_RAW_RUN_BEGINS,
  TD_RAW_RUN_ENDS,
  TD_RAW_RUN_DISCARDED /* the newest one of this function and kind */
};

/** STATIC_RUN: head.flags is one of those; events and time are the reader's to fill in. */
typedef struct
{
  TdRawHead head;
  uint64_t ticks;
  TdTapeRun run;
} TdRawStaticRun;

/** STATIC_ENTRY: a step that was traced; an operation's is the event before it.  Numbers are
 * the engine's. */
typedef struct
{
  TdRawHead head;
  TdTapeTraced entry;
} TdRawStaticEntry;
/** ASYNC_STATS: STATS of an event of the open iteration or of the one before, which a device
 * has answered now. */
typedef struct
{
  TdRawHead head;
  uint64_t iteration, variable;
  TdTapeStats stats; /* its `event` counts */
} TdRawAsyncStats;

/** DEVICE_TIME: when an event ran on its device, or a copy of the iteration. */
typedef struct
{
  TdRawHead head;
  uint64_t iteration;
  uint64_t zero;   /* ticks when the mark was issued that times count from */
  double since_ns; /* that mark after the one before it; below 0: not known */
  double start_ns; /* after the mark */
  double duration_ns;
  uint32_t event;
  uint32_t copy;                /* counted from 1; 0: an event */
  uint8_t device, stream, kind; /* TdTapeDeviceTimeKind */
  uint8_t reserved[5];
} TdRawDeviceTime;

/** ANSWERED: nothing more is to come for that iteration. */
typedef struct
{
  TdRawHead head;
  uint64_t iteration;
} TdRawAnswered;

/** DEVICE: how full it is, just before ITERATION_END. */
typedef struct
{
  TdRawHead head;
  TdTapeDevice device;
} TdRawDevice;

/** POOL: one of a device's, after its DEVICE. */
typedef struct
{
  TdRawHead head;
  TdTapePool pool;
} TdRawPool;

/** FAULT: texts and site are the engine's; found_iteration, found_event and time are the
 * reader's to fill in, from where it comes and `ticks`. */
typedef struct
{
  TdRawHead head;
  uint64_t ticks;
  int32_t status, reserved;
  TdTapeFault fault;
} TdRawFault;

/** OOM: texts and places are the engine's; iteration, event, n_memory and time are the reader's
 * to fill in, from where it comes and `ticks`. */
typedef struct
{
  TdRawHead head;
  uint64_t ticks;
  TdTapeOom oom;
  uint32_t n_links, reserved;
  TdTapeOomHolder holders[]; /* oom.n_holders; then TdTapeOomLink, n_links */
} TdRawOom;

/** HELD: a group of what is still there at the end of the iteration, just before ITERATION_END.
 */
typedef struct
{
  TdRawHead head;
  TdTapeHeld held;
} TdRawHeld;

/** OBJECT: one of those behind HELD, in their order, after the groups.  The references of all
 * objects follow in parts. */
typedef struct
{
  TdRawHead head;
  TdTapeObject object;
} TdRawObject;

/** REFERENCES: the next n of them. */
typedef struct
{
  TdRawHead head;
  uint32_t n, reserved;
  uint32_t to[];
} TdRawReferences;

/** COPY: numbers went between the host and a device; its var, event and times are the reader's
 * to fill in, from `variable` (0: none), where it comes and the ticks (0: not timed). */
typedef struct
{
  TdRawHead head;
  uint64_t variable;
  uint64_t start, end;
  TdTapeCopy copy;
} TdRawCopy;
_Static_assert(sizeof (TdRawCopy) == 96, "TdRawCopy changed size");

/** CALL: what the OP that follows was given, in a keyframe; then `length` bytes of attributes.
 */
typedef struct
{
  TdRawHead head;
  uint64_t into; /* variable that it adds to; 0: none */
  uint32_t length, reserved;
  char bytes[];
} TdRawCall;
_Static_assert(sizeof (TdRawCall) == 24, "TdRawCall changed size");

/** WAIT: the program waits for other ranks, or, with the same again, does so no more; its event
 * and times are the reader's to fill in, from where it comes and the ticks (end 0: it waits).
 */
typedef struct
{
  TdRawHead head;
  uint64_t start, end;
  TdTapeCollective wait;
} TdRawWait;
_Static_assert(sizeof (TdRawWait) == 96, "TdRawWait changed size");

/** RANK_SUM: the event is the reader's to fill in. */
typedef struct
{
  TdRawHead head;
  TdTapeRankSum sum;
} TdRawRankSum;
_Static_assert(sizeof (TdRawRankSum) == 72, "TdRawRankSum changed size");

/** Bytes of a record of `n` bytes, padded. */
#define TD_RAW_PADDED(n) (((uint32_t)(n) + 7u) & ~7u)
