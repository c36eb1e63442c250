/* One iteration on the tape: its sections, a struct and a size assertion for each, then the
 * struct that writers fill and readers return.  Included by td-tape.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape.h"

TD_TAPE_BEGIN_C

typedef struct
{
  uint32_t kind;
  uint32_t stride;
  uint64_t count;
} TdTapeSection;
static_assert (sizeof (TdTapeSection) == 16, "TdTapeSection changed size");

typedef enum
{
  TD_TAPE_SECTION_EVENTS = 1,
  TD_TAPE_SECTION_INS,
  TD_TAPE_SECTION_OUTS,
  TD_TAPE_SECTION_VARS,
  TD_TAPE_SECTION_DIMS,
  TD_TAPE_SECTION_SPANS,
  TD_TAPE_SECTION_GRADS,
  TD_TAPE_SECTION_TOTALS,
  TD_TAPE_SECTION_MEMORY,
  TD_TAPE_SECTION_BLOCKS,
  TD_TAPE_SECTION_TIMES,
  TD_TAPE_SECTION_EXTERNALS,
  TD_TAPE_SECTION_HOST_READS,
  TD_TAPE_SECTION_STATS,
  TD_TAPE_SECTION_TENSORS,
  TD_TAPE_SECTION_NOTICES,
  TD_TAPE_SECTION_STOP,
  TD_TAPE_SECTION_ATTRS,
  TD_TAPE_SECTION_ADDRESSES,
  TD_TAPE_SECTION_STATICS,
  TD_TAPE_SECTION_STEPS,
  TD_TAPE_SECTION_OPERANDS,
  TD_TAPE_SECTION_NODES,
  TD_TAPE_SECTION_VALUES,
  TD_TAPE_SECTION_GUARDS,
  TD_TAPE_SECTION_RUNS,
  TD_TAPE_SECTION_TRACED,
  TD_TAPE_SECTION_HELD,
  TD_TAPE_SECTION_DEVICES,
  TD_TAPE_SECTION_DEVICE_TIMES,
  TD_TAPE_SECTION_OBJECTS,
  TD_TAPE_SECTION_REFERENCES,
  TD_TAPE_SECTION_POOLS,
  TD_TAPE_SECTION_COPIES,
  TD_TAPE_SECTION_PACKED, /* a long one of another kind: tape-pack.h */
  TD_TAPE_SECTION_CALLS,
  TD_TAPE_SECTION_CALL_WORDS,
  TD_TAPE_SECTION_COLLECTIVES,
  TD_TAPE_SECTION_RANK_SUMS,
  TD_TAPE_SECTION_STACK_FRAMES,
  TD_TAPE_SECTION_EVENT_STACKS,
  TD_TAPE_SECTION_EXTERNAL_STACKS,
  TD_TAPE_N_SECTIONS
} TdTapeSectionKind;

/** STRUCTURE: then EVENTS, INS, OUTS, VARS, DIMS, SPANS, GRADS. */
typedef struct
{
  uint32_t id;
  uint32_t n_events, n_vars;
  uint32_t reserved;
  uint64_t fingerprint, fingerprint_dims;
} TdTapeStructureHead;
static_assert (sizeof (TdTapeStructureHead) == 32, "TdTapeStructureHead changed size");

/** MEMORY: then TOTALS, MEMORY, BLOCKS. */
typedef struct
{
  uint32_t id;
  uint32_t reserved;
} TdTapeMemoryHead;
static_assert (sizeof (TdTapeMemoryHead) == 8, "TdTapeMemoryHead changed size");

/** TOTALS: one element. */
typedef struct
{
  uint64_t start_bytes[TD_TAPE_N_CATEGORIES];
  uint64_t peak_bytes, end_bytes;
} TdTapeTotals;
static_assert (sizeof (TdTapeTotals) == 96, "TdTapeTotals changed size");

/** ITERATION and LIVE: then TIMES, EXTERNALS, HOST_READS, STATS, TENSORS, NOTICES, STOP, ATTRS,
 * STATICS, RUNS, TRACED, HELD, DEVICES, DEVICE_TIMES, OBJECTS, REFERENCES, POOLS, COPIES,
 * CALLS, CALL_WORDS, COLLECTIVES, RANK_SUMS, STACK_FRAMES, EVENT_STACKS, EXTERNAL_STACKS,
 * ADDRESSES (one for each memory record; BLOCKS is then the iteration's) as far as there are
 * any, and the sections of structure and memory where the id is 0. */
typedef struct
{
  uint64_t number;
  uint64_t start_ns, duration_ns;
  uint64_t first_id, first_buffer;
  uint64_t fingerprint, fingerprint_dims; /* 0 where the structure has an id */
  uint32_t label, flags;
  uint32_t structure, memory;
  uint32_t time_shift;
  uint32_t reserved;
} TdTapeIterationHead;
static_assert (sizeof (TdTapeIterationHead) == 80, "TdTapeIterationHead changed size");

/** TIMES: of one event, in units of 2^time_shift ns. */
typedef struct
{
  uint32_t delta; /* its start since the start of the event before (the iteration's start) */
  uint32_t duration;
} TdTapeTime;
static_assert (sizeof (TdTapeTime) == 8, "TdTapeTime changed size");

/** One event. */
typedef struct
{
  uint64_t key; /* survives iterations (TdTapeVar.key are its outputs' keys) */
  uint32_t opdef, site, path;
  uint32_t attrs;               /* string: "stride=2,2 pad=1,1" */
  int32_t twin;                 /* backward: the forward event; -1: none */
  uint32_t span;                /* innermost open span; TD_TAPE_NONE: none */
  uint32_t first_in, first_out; /* into ins[], outs[] */
  uint16_t n_in, n_out;
  uint16_t order; /* which of the twin's backward events; 0x8000: a change of layout, apart */
  uint8_t phase;  /* TdTapePhase */
  uint8_t reserved;
  uint32_t flags;       /* TD_TAPE_EVENT_... */
  uint32_t retained_in; /* bit k: input k is kept for backward (31: and all above) */
} TdTapeEvent;
static_assert (sizeof (TdTapeEvent) == 56, "TdTapeEvent changed size");

/** One variable. */
typedef struct
{
  uint64_t key;
  uint64_t bytes;
  int32_t producer; /* event; -1: a leaf or external */
  uint32_t name;    /* string */
  uint32_t path;    /* path id of a parameter's link; 0: none */
  uint32_t site;
  uint32_t first_dim; /* into dims[] */
  uint32_t id;        /* engine id minus the iteration's first_id; external: see `externals` */
  uint16_t out_index;
  uint8_t dtype, ndim, category, flags;
  uint8_t device, reserved;
} TdTapeVar;
static_assert (sizeof (TdTapeVar) == 48, "TdTapeVar changed size");

/** A scope or a link call: the events [begin, end). */
typedef struct
{
  uint64_t key;
  uint32_t kind; /* 0: scope, 1: link */
  uint32_t name; /* string */
  uint32_t path; /* path id */
  uint32_t site;
  uint32_t parent; /* span; TD_TAPE_NONE: none */
  uint32_t begin, end;
  uint32_t depth;
} TdTapeSpan;
static_assert (sizeof (TdTapeSpan) == 40, "TdTapeSpan changed size");

enum
{
  TD_TAPE_SPAN_SCOPE,
  TD_TAPE_SPAN_LINK
};

/** The gradient of a parameter as the optimizer saw it. */
typedef struct
{
  uint32_t event;     /* the update; TD_TAPE_NONE: none */
  uint32_t parameter; /* var */
  uint32_t gradient;  /* var; TD_TAPE_NONE: none */
  uint32_t path;      /* string: link path and name */
} TdTapeGrad;
static_assert (sizeof (TdTapeGrad) == 16, "TdTapeGrad changed size");

typedef enum
{
  TD_TAPE_MEMORY_ALLOC,
  TD_TAPE_MEMORY_FREE,
  TD_TAPE_MEMORY_HOLD, /* a holder begins to keep a variable alive */
  TD_TAPE_MEMORY_UNHOLD,
} TdTapeMemoryKind;

typedef enum
{
  TD_TAPE_HOLDER_HANDLE,
  TD_TAPE_HOLDER_SCOPE,
  TD_TAPE_HOLDER_LINK,
  TD_TAPE_HOLDER_HOOK,
  TD_TAPE_HOLDER_GRADIENT,
  TD_TAPE_HOLDER_CREATOR,
  TD_TAPE_HOLDER_RETAINED,
  TD_TAPE_HOLDER_REPORTER,
  TD_TAPE_HOLDER_SCHEDULE,
  TD_TAPE_HOLDER_OPTIMIZER,
  TD_TAPE_N_HOLDERS
} TdTapeHolder;

/** One allocation, free, hold or release, just before event `event` (n_events: after the last).
 * On tape `buffer` and `variable` are relative to the iteration's first ids; readers return
 * engine ids.  TD_TAPE_NO_ID on tape: none. */
typedef struct
{
  uint64_t address; /* holds: id of the holder */
  uint64_t bytes;
  uint64_t buffer;
  uint64_t variable; /* 0: none */
  uint32_t event;
  uint32_t var;  /* index in vars[], filled by readers; TD_TAPE_NONE: none of these */
  uint32_t site; /* holds: who */
  uint8_t kind, category, holder, device;
} TdTapeMemory;
static_assert (sizeof (TdTapeMemory) == 48, "TdTapeMemory changed size");

/** A block that was alive when the iteration began. */
typedef struct
{
  uint64_t address;
  uint64_t bytes;
  uint64_t key; /* of the variable, 0: unknown */
  uint32_t category;
  uint32_t device;
} TdTapeBlock;
static_assert (sizeof (TdTapeBlock) == 32, "TdTapeBlock changed size");

/** The program asked for a value: control flow may depend on it. */
typedef struct
{
  uint32_t event; /* before this event */
  uint32_t var;   /* TD_TAPE_NONE: unknown */
  uint32_t site;
  uint32_t reserved;
} TdTapeHostRead;
static_assert (sizeof (TdTapeHostRead) == 16, "TdTapeHostRead changed size");

#define TD_TAPE_STATS_BINS 32
#define TD_TAPE_STATS_MIN_EXPONENT                                                             \
  (-24) /* bin k: 2^(k-24) <= |x| < 2^(k-23); 0 and 31: beyond, too */

/** Statistics of one array.  Moments are over finite elements, exact; the histogram counts
 * finite elements that are not zero, of `n_sampled` elements. */
typedef struct
{
  uint32_t var;   /* index in vars[] */
  uint32_t event; /* as of after this event */
  uint64_t n, n_sampled;
  uint64_t n_zero, n_nan, n_pos_inf, n_neg_inf;
  double min, max, mean;
  double m2; /* sum of squared differences from the mean */
  double l2; /* square root of the sum of squares */
  uint32_t bins[TD_TAPE_STATS_BINS];
} TdTapeStats;
static_assert (sizeof (TdTapeStats) == 224, "TdTapeStats changed size");

/** Where a tensor lies. */
typedef struct
{
  uint64_t offset; /* of its frame */
  uint64_t bytes;
  uint32_t seq;
  uint32_t var;
  uint32_t event;
  uint32_t flags; /* TD_TAPE_TENSOR_... */
} TdTapeTensorRef;
static_assert (sizeof (TdTapeTensorRef) == 32, "TdTapeTensorRef changed size");

/** An event whose attributes differ from its structure's: a step size that changes, a seed. */
typedef struct
{
  uint32_t event;
  uint32_t attrs; /* string */
} TdTapeAttrs;
static_assert (sizeof (TdTapeAttrs) == 8, "TdTapeAttrs changed size");

/** Where and why the program stopped, live only. */
typedef struct
{
  uint32_t stopped; /* 1: it stands before event `event` */
  uint32_t event;
  uint32_t reason; /* string: "step", "breakpoint 2: op relu" */
  uint32_t site;
} TdTapeStop;
static_assert (sizeof (TdTapeStop) == 16, "TdTapeStop changed size");

/** One iteration, immutable once made: what readers return and writers are given.
 * Writers leave `n_dims` etc. exact and pointers valid during the call only. */
typedef struct
{
  uint32_t size;  /* sizeof (TdTapeIteration) */
  uint32_t flags; /* TD_TAPE_ITERATION_... */
  uint64_t number;
  uint32_t label;                     /* string, or TD_TAPE_LABEL_NUMBER */
  uint32_t structure, memory_profile; /* ids; 0 while live */
  uint32_t reserved;
  uint64_t fingerprint, fingerprint_dims; /* of the structure, without and with dimensions */
  uint64_t start_ns, duration_ns;
  uint64_t first_id, first_buffer; /* engine ids before which nothing was made here */
  uint64_t start_bytes[TD_TAPE_N_CATEGORIES]; /* alive at the start */
  uint64_t peak_bytes;                        /* highest sum of all categories */
  uint64_t end_bytes;

  uint32_t n_events, n_ins, n_outs, n_vars, n_dims, n_spans, n_grads, n_externals;
  uint32_t n_memory, n_blocks, n_host_reads, n_reports, n_stats, n_tensors, n_notices,
      n_attr_changes;

  const TdTapeEvent *events;
  const uint64_t *event_start_ns; /* since the iteration's start */
  const uint64_t *event_duration_ns;
  const uint32_t *ins, *outs; /* variable indices */
  const TdTapeVar *vars;
  const int64_t *dims;
  const TdTapeSpan *spans;
  const TdTapeGrad *grads;
  const uint64_t *externals; /* engine ids of the external variables */
  const TdTapeMemory *memory;
  const TdTapeBlock *blocks;
  const TdTapeHostRead *host_reads;
  const TdTapeReport *reports;
  const TdTapeStats *stats;
  const TdTapeTensorRef *tensors;
  const TdTapeNotice *notices; /* errors, configuration changes */
  TdTapeStop stop;
  const uint64_t *addresses; /* of memory[], applied by readers; NULL: as in the profile */
  uint32_t n_addresses, n_copies;
  const TdTapeAttrs *attr_changes; /* readers have applied them to `events` */
  const TdTapeStatic *statics;     /* of each static function that there is */
  uint32_t n_statics, n_runs;
  const TdTapeRun *runs;
  const TdTapeTraced *traced;
  uint32_t n_traced, n_faults;
  const TdTapeHeld *held;
  uint32_t n_held, n_devices, n_device_times, n_objects;
  const TdTapeDevice *devices;
  const TdTapeDeviceTime *device_times;
  const TdTapeObject *objects;
  const uint32_t *references; /* indices of objects */
  uint32_t n_references, n_pools;
  const TdTapePool *pools;
  const TdTapeCopy *copies;
  const TdTapeFault *faults; /* filled by readers, from FAULT frames */
  /* writers, instead of stats: n_stats of them, and the variable of each, TD_TAPE_NONE: it is
   * left out */
  struct TdTapeRows *stats_rows;
  const uint32_t *stats_vars;
  const TdTapeCall *calls; /* of a keyframe */
  const uint64_t *call_words;
  uint32_t n_calls, n_call_words;
  const struct TdTapePacked *packed;   /* writers, of a very large one: instead of its arrays */
  const TdTapeCollective *collectives; /* of a rank */
  const TdTapeRankSum *rank_sums;
  uint32_t n_collectives, n_rank_sums;
  const TdTapeStackFrame *stack_frames;
  const uint32_t *event_stacks; /* of each event: the number of its innermost call; 0: none */
  const uint32_t *external_stacks; /* of each of the externals */
  uint32_t n_stack_frames, n_event_stacks, n_external_stacks;
} TdTapeIteration;

/** Engine id of variable `var`. */
TD_API uint64_t td_tape_var_id (const TdTapeIteration *it, uint32_t var);

TD_TAPE_END_C
