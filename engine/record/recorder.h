/* The recorder: an observer that writes raw records into a ring, as cheap as possible.
 *
 * Ids instead of texts, no hashing of structure, no system calls but for a full ring.  Control
 * (pause, step, breakpoints) hangs on the same observer: engine/record/agent/agent.h.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/core.h"
#include "compute/core/observer.h"
#include "assembler.h"
#include "event-ids.h"
#include "ring.h"

/* From pointers, or from hashes of bytes, to small ids; never forgets. */
typedef struct
{
  struct
  {
    uint64_t key;
    uint32_t id;
  } * slots;
  size_t n, capacity;
} TdIdMap;

/** An allocation or free that waits for the event it belongs to. */
typedef struct
{
  const struct TdBuffer *live; /* an allocation that still lives says the next three itself */
  uint64_t address, bytes, buffer;
  uint64_t variable; /* 0: not known */
  uint8_t kind, category, device;
} TdPendingMemory;

/** What an operation's class, call site and link path are called on the tape. */
typedef struct
{
  const TdOpClass *cls;
  const TdSite *site;
  uint32_t path;
  uint32_t opdef_id, site_id;
} TdKnownPlace;

enum
{
  TD_N_KNOWN_PLACES = 256
};

struct TdAgent;
typedef struct TdHoldings TdHoldings;

/** Answers of devices that an iteration waits for. */
typedef struct
{
  uint64_t iteration;
  uint32_t n;
  bool ended; /* it has, and they are still to come */
} TdAsyncCount;

/** When events ran on their devices. */
typedef struct
{
  int every;             /* iterations; 0: as often as is cheap, below 0: never */
  bool on;               /* in this one */
  uint16_t zeroed;       /* bit for each device that was given a mark in it */
  uint64_t n_timed;      /* iterations */
  uint64_t began, spent; /* ticks */
  TdDevice *device;      /* of the event that runs and is timed */
  TdDevice *copies;      /* of the copy that is under way and is timed */
} TdDeviceTimes;

enum
{
  TD_ASYNC_ITERATIONS = 256,
  TD_EARLY_COPIES = 256
};

/* A gradient that an event of backward made, by its memory. */
typedef struct
{
  uint64_t buffer, variable;
} TdGradientAt;

enum
{
  TD_GRADIENTS_KNOWN = 1024
};

/** The float32 copy that an optimizer keeps of a parameter, and what it was updated by. */
typedef struct
{
  uint64_t copy, gradient; /* variables */
} TdMaster;

typedef struct
{
  TdMaster *items;
  uint32_t n, next; /* next: where the following one is looked for first */
} TdMasters;

/** A variable whose numbers the tape has, or that are made of what it has. */
typedef struct
{
  uint64_t variable; /* 0: none */
  uint32_t version;  /* of its buffer, with those numbers */
} TdKnown;

/** Keyframes: every so many iterations all that operations are given is written. */
typedef struct
{
  uint64_t every; /* iterations of the program; 0: never */
  uint64_t n;     /* iterations so far */
  bool on;        /* in this one */
  uint32_t level; /* of the iterations between */
  TdKnown *known; /* by hash */
  size_t n_known, room;
} TdKeyframes;

/** What recording takes of the program's time: of every so many-th event, and all of what is
 * done between iterations.  In ticks. */
typedef struct
{
  uint64_t began, stood; /* the first iteration; what of the time since then it stood */
  uint64_t stopped_at;
  uint64_t spent;      /* without waits for room in the ring, which are counted as they are */
  uint64_t stalled_ns; /* at the beginning of what is measured */
  uint64_t sample,
      before; /* of the event that is measured, 0: none; what it took before it ran */
} TdRecordingCost;

enum
{
  TD_COST_EVERY = 64
};

typedef struct TdRecorder
{
  TdObserver observer; /* first: the engine sees only this */
  TdRing *ring;
  TdRingNow *now;
  struct TdAgent *agent; /* NULL without control */
  bool writes;           /* false: control only, nothing is recorded */
  uint32_t level;
  uint64_t values_max_bytes; /* of one tensor */
  TdIdMap strings, classes, sites, attrs, paths;
  TdKnownPlace known[TD_N_KNOWN_PLACES]; /* by hash; the last that met there */
  uint32_t n_strings, n_classes, n_sites, n_attrs;
  uint64_t event;            /* of the next event in its iteration */
  uint64_t written;          /* events of the iteration in the ring */
  TdEventIds ids;            /* of the iteration's events */
  const TdKnownPlace *place; /* of the operation that runs */
  uint64_t start;            /* ticks at before_op */
  uint64_t chained; /* end of the backward event before, when only the engine ran since; or 0 */
  bool in_iteration; /* on the tape: a begin was written, its end not yet */
  bool outside;      /* that iteration is work outside TD_ITERATION */
  bool link_opens;   /* the scope that opens next belongs to a link call */
  TdPendingMemory *pending;
  size_t n_pending, pending_capacity;
  size_t n_live;          /* of those, allocations of buffers that live */
  TdAssembler *assembler; /* in this process: no supervisor */
  TdTapeWriter *writer;
  char *tape; /* what the writer writes */
  uint64_t n_events, n_bytes;
  TdTapeStatic *functions; /* by the engine's number - 1; .chain 0: not, or no more */
  uint32_t n_functions;
  uint64_t call_ticks; /* a static function was called; 0: nothing of it was written yet */
  TdHoldings *holdings;
  TdAsyncCount async[TD_ASYNC_ITERATIONS];  /* by iteration; the last that met there */
  uint16_t async_devices;                   /* bit for each device that was asked something */
  uint64_t n_left_out[TD_ASYNC_N_REFUSALS]; /* arrays without statistics, by why */
  TdDeviceTimes times;
  TdTapeDevice devices[TD_MAX_DEVICES];
  uint64_t devices_asked;           /* ticks, when the driver was last; 0: never */
  TdRawCopy early[TD_EARLY_COPIES]; /* while no iteration was recorded */
  int n_early;
  TdRawWait early_waits[TD_EARLY_COPIES];
  int n_early_waits;
  uint64_t wait_began;                        /* ticks, of the one that is under way */
  uint32_t n_copies;                          /* of the iteration, in the ring */
  uint32_t n_ooms;                            /* on the tape */
  TdGradientAt gradients[TD_GRADIENTS_KNOWN]; /* by hash; the last that met there */
  TdMasters masters;
  TdKeyframes keyframes;
  TdRecordingCost cost;
} TdRecorder;

/** The recorder of this process, or NULL. */
extern TdRecorder *td__recorder;

/** What is measured begins: returns the ticks. */
uint64_t td__recorder_measures (TdRecorder *r);
/** It took so many ticks, and stands for `n` of its kind; let whoever looks see all of it. */
void td__recorder_spent (TdRecorder *r, uint64_t ticks, uint64_t n);

/** Without a supervisor: say once why the writer writes no more. false: it still does. */
bool td__recorder_say_trouble (TdRecorder *r);

/** Say that nobody drains the ring any more, and what the tape has. */
void td__recorder_say_lost (TdRing *ring);

/** Start recording into a ring.  *Owner*: takes the ring. */
TdRecorder *td__recorder_new (TdRing *ring, uint32_t level, bool writes);

uint32_t td__recorder_string (TdRecorder *r, const char *text);
uint32_t td__recorder_site (TdRecorder *r, const TdSite *site);
uint32_t td__recorder_class (TdRecorder *r, const TdOpClass *cls);
uint32_t td__recorder_path (TdRecorder *r, const TdPath *path);
/** The attributes of a call as text ("stride=2,2"), 0 for none. */
uint32_t td__recorder_attrs (TdRecorder *r, const TdOpClass *cls, const void *attrs,
                             const char *algorithm);
/** What the tape calls the categories of memory. */
extern const uint8_t td__tape_category[TD_MEM_N_CATEGORIES];
/** Write what was allocated and freed since the last event. */
void td__recorder_flush_memory (TdRecorder *r);
/** Name the variable of a buffer that was allocated just now. */
void td__recorder_match_memory (TdRecorder *r, const TdBuffer *b, uint64_t variable);
void td__recorder_buffer_new (TdObserver *o, const TdBuffer *b);
void td__recorder_buffer_free (TdObserver *o, const TdBuffer *b);
/** Write STATS, and at level values TENSOR, of an output. */
void td__recorder_values (TdRecorder *r, const TdNode *node, const TdBuffer *buffer);
/** The statistics of an array of the host, whose variable has engine id `id`. */
void td__recorder_stats_of (const TdNode *node, const TdBuffer *buffer, uint64_t id,
                            TdTapeStats *to);
/** Write TENSOR, whatever its size. */
void td__recorder_tensor (TdRecorder *r, const TdNode *node, const TdBuffer *buffer,
                          uint16_t flags);
/** The same of the inputs that no event has written, a batch or the weights that a run begins
 * with, when they are read first, and again once the program has written to them: else nobody
 * could tell a number that came in from one that was made. */
void td__recorder_inputs (TdRecorder *r, const TdEvent *event);
/** The same of the gradient that an event of backward has added to in place. */
void td__recorder_accumulated (TdRecorder *r, const TdEvent *event);
/** The same of what an update, or a hook of one, has written in place: a parameter, or its
 * gradient. */
void td__recorder_updated (TdRecorder *r, const TdNode *node);
/** Write GRAD: the gradient that an update uses, for the table of parameters. */
void td__recorder_update (TdRecorder *r, const TdEvent *event);
/** The memory of a gradient; NULL where the node is a parameter or an optimizer's state. */
const TdBuffer *td__recorder_gradient_of (const TdNode *node);
/** Write the values of a gradient that an optimizer was given, or that one of its hooks changed
 * in place: what it is from here on.  Those that backward made were written as outputs. */
void td__recorder_gradient (TdRecorder *r, const TdNode *node);
/** Write that the program stands before its next event, or goes on. */
/** A key and its value about the run. */
void td__recorder_info (TdRecorder *r, const char *key, const char *value);
void td__recorder_stopped (TdRecorder *r, const char *reason, const TdSite *site);
void td__recorder_resumed (TdRecorder *r);
/** Say whether an event's outputs will be asked for, so that its device may count early. */
void td__recorder_stats_wanted (const TdEvent *e, bool wanted);
/** Ask the device of x for its statistics; false: it answers at once, by its other slot. */
bool td__recorder_stats_async (TdRecorder *r, const TdNode *n, const TdTensor *x,
                               uint64_t sample);
/** Say at the end which statistics are missing, and why. */
void td__recorder_report_left_out (TdRecorder *r);
/** A word about the recording, on the tape. */
void td__recorder_notice (TdRecorder *r, const char *text);
void td__recorder_fill_stats (TdTapeStats *to, const TdStats *from);
/** Write the answers of devices that are there. */
void td__recorder_poll_async (TdRecorder *r, TdAsyncHow how);
/** Which event runs, or comes next; false: none is recorded. */
bool td__recorder_where (TdObserver *o, TdEventPlace *place);
/** Write the error of an event that was over. */
void td__recorder_fault (TdObserver *o, const TdError *error, const TdAsyncFault *fault);
void td__recorder_poll_async_now_and_then (TdRecorder *r);
/** The iteration ends: say whether answers are still to come. */
bool td__recorder_async_ends (TdRecorder *r);
/** Which iterations are timed: "auto" (NULL), "all", "off", or a number n: every n-th. */
void td__recorder_times_setting (TdRecorder *r, const char *text);
void td__recorder_times_begin (TdRecorder *r);
void td__recorder_time_before (TdRecorder *r, const TdEvent *event);
void td__recorder_time_after (TdRecorder *r);
/** Write how full the devices are. */
void td__recorder_devices (TdRecorder *r);
/** Write that the host's numbers went to a device, or a device's to the host. */
void td__recorder_copied (TdObserver *o, const struct TdCopy *copy);
uint64_t td__recorder_copying (TdObserver *o, TdDevice *device);
/** A copy begins; it is over, and was the newest in the ring. */
void td__recorder_time_copy (TdRecorder *r, TdDevice *d);
void td__recorder_time_copied (TdRecorder *r);
/** The same of what was copied before the iteration that begins. */
void td__recorder_early_copies (TdRecorder *r);
/** Write that the program waits for other ranks, and what they are compared by. */
void td__recorder_wait (TdObserver *o, const struct TdWait *wait, bool ended);
uint64_t td__recorder_clock (void);
bool td__recorder_rank_sum (TdObserver *o, const struct TdRankSum *sum);
/** The same of waits before the iteration that begins. */
void td__recorder_early_waits (TdRecorder *r);
/** Write that memory ran out. */
void td__recorder_out_of_memory (TdObserver *o, const struct TdMemReport *report);
void td__recorder_static_event (TdObserver *o, const TdStaticEvent *event);
void td__recorder_schedule (TdObserver *o, const TdScheduleInfo *schedule);
void td__recorder_static_run (TdObserver *o, const TdStaticRun *run);
void td__recorder_static_entry (TdObserver *o, const TdStaticEntry *entry);
/** Open an iteration for work outside any, unless one is open. */
void td__recorder_ensure_iteration (TdRecorder *r);
/** Write where every static function stands at the end of the iteration. */
void td__recorder_functions (TdRecorder *r);
/** Every how many iterations is a keyframe, as text; NULL: none. */
void td__keyframes_setting (TdRecorder *r, const char *text);
/** An iteration begins; `outside`: of no TD_ITERATION.  Says whether it is a keyframe. */
bool td__keyframe_begin (TdRecorder *r, bool outside);
/** In a keyframe, before and after an event: write what it is given. */
void td__keyframe_before (TdRecorder *r, const TdEvent *event);
void td__keyframe_after (TdRecorder *r, const TdEvent *event);
/** Write attributes as text into `text`. */
void td__attrs_text (const TdOpClass *cls, const void *attrs, char *text, size_t size);

/* A record of a fixed size, with its head filled in. */
#define TD_RECORD(r, Type, name, kind)                                                         \
  Type *name = td_ring_reserve ((r)->ring, TD_RAW_PADDED (sizeof (Type)));                     \
  name->head = (TdRawHead)                                                                     \
  {                                                                                            \
    TD_RAW_PADDED (sizeof (Type)), kind, 0                                                     \
  }
#define TD_PUBLISH(r, name) td_ring_publish ((r)->ring, (name)->head.size)
