/* The assembler's insides: the iteration that is being collected, the shapes of iterations seen
 * before, what is known of variables that outlive an iteration, live memory.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "assembler.h"

#define MAX_SHAPES 16
/** Bytes of raw records up to which an iteration is kept as it came, to compare others with,
 * and shown while it runs: a larger one is built while it goes on, and packed
 * (assemble-large.c).
 */
#define TD_SHAPE_LARGEST (64u << 20)
#define MAX_PROFILES 8
#define MAX_RECENT 64

/** A growing array; `td__list_add` returns the new element, NULL when there is no memory. */
typedef struct
{
  void *items;
  uint32_t n, room;
} TdList;

void *td__list_add (TdList *list, size_t size);
void *td__list_add_n (TdList *list, size_t size, uint32_t n);
void td__list_clear (TdList *list);

/** A map from 64-bit ids to 32-bit values. */
typedef struct
{
  uint64_t *ids;
  uint32_t *values; /* value + 1; 0: empty */
  uint32_t n, room;
  bool failed; /* there was no memory for one of them */
} TdIdMap;

/** The value of `id`, TD_TAPE_NONE if there is none. */
uint32_t td__id_map_get (const TdIdMap *map, uint64_t id);
bool td__id_map_set (TdIdMap *map, uint64_t id, uint32_t value);
bool td__id_map_remove (TdIdMap *map, uint64_t id);
/** How often it was asked for `id` before. */
uint32_t td__id_map_count (TdIdMap *map, uint64_t id);
void td__id_map_clear (TdIdMap *map);

/** What is known of a variable that was made before the iteration. */
typedef struct
{
  uint64_t key, bytes;
  uint32_t name, path, site; /* tape ids */
  uint8_t dtype, ndim, category, flags, device;
  int64_t dims[TD_TAPE_MAX_NDIM];
} TdMeta;

/** A table of the engine: its id -> the tape's, and a hash of the content for keys. */
typedef struct
{
  uint32_t id;
  uint64_t hash;
} TdAlias;

/** A site in the engine's numbers, for what is said while the program runs. */
typedef struct
{
  uint32_t file, line;
} TdPlace;

/** Where a variable of a shape is. */
typedef struct
{
  uint32_t id; /* relative */
  uint32_t var;
} TdVarAt;

/** An iteration seen before: its raw records, to compare with, and what was made of them. */
typedef struct
{
  char *raw;
  uint32_t n_raw, n_records;
  uint32_t n_events; /* also of one whose events were dropped */
  uint64_t first_id;
  uint64_t used;      /* when last */
  TdTapeIteration it; /* structure part only, arrays owned */
  TdList events, ins, outs, vars, dims, spans, grads;
  TdTapePacked *packed; /* of a very large one, instead of the first five */
  TdList types;         /* uint32_t, of each of its variables, into ... */
  TdList type_words;    /* int64_t: of each type dtype << 8 | ndim, then dimensions */
  TdList at;            /* TdVarAt, sorted by id; of a very large one, where it can be, ... */
  TdList own;           /* ... uint32_t by relative id: the variable, plus 1 */
  TdList external_refs; /* uint32_t: slot of each reference to an external variable, in order */
  TdList externals;     /* uint64_t: ids in the iteration matched last */
  TdList external_meta; /* TdMeta */
  TdList external_var;  /* uint32_t: index of its variable */
} TdShape;

/** Of all memory records of an iteration, with addresses and without. */
typedef struct
{
  uint64_t hash[2], moved[2];
} TdMemoryHash;

/** Memory records seen before. */
typedef struct
{
  uint32_t id;
  uint32_t n;
  TdTapeMemory *records; /* NULL where there are very many: then their hash */
  TdMemoryHash hash;
  uint64_t start_hash, end_hash;
  uint64_t used;
  uint64_t start_bytes[TD_TAPE_N_CATEGORIES];
  uint64_t peak_bytes, end_bytes;
} TdProfile;

typedef struct
{
  uint64_t address, bytes, variable, key;
  uint32_t category, device;
  bool used;
} TdBlock;

typedef struct
{
  uint64_t first_id, end_id;
  TdShape *shape;
} TdRecent;

typedef struct
{
  uint64_t variable;
  TdTapeHostRead read;
} TdPendingRead;

typedef struct
{
  uint64_t variable;
  TdTapeTensorRef ref;
} TdPendingTensor;

typedef struct
{
  uint64_t into;
  TdTapeCall call;
} TdPendingCall;

/** When the clock of a device was 0, as far as is known, in ns of the tape. */
typedef struct
{
  double ns;
  uint64_t iteration; /* of that mark, plus 1; 0: never */
} TdDeviceZero;

enum
{
  MAX_TAPE_DEVICES = 256
};

typedef struct TdBuild TdBuild;

/** An open iteration that has become so large that nothing is kept as it came. */
typedef struct
{
  TdBuild *build;
  TdTapeRows *times;  /* TdTapeTicks */
  TdTapeRows *memory; /* TdTapeMemory, ids relative */
  TdMemoryHash memory_hash;
  TdList fates;     /* uint8_t by relative buffer */
  bool memory_full; /* there was no memory for more of it */
} TdLarge;

struct TdAssembler
{
  TdTapeWriter *w;
  TdAssemblerState state;
  uint64_t ticks0, mono0;
  double ns_per_tick;
  uint64_t next_calibration_ns;
  uint64_t values_bytes;

  TdList texts;                         /* char * by engine id - 1 */
  TdList strings, opdefs, sites, paths; /* TdAlias by engine id - 1 */
  TdList op_names;                      /* uint32_t, the engine's string, by opdef - 1 */
  TdList places;                        /* TdPlace by site - 1 */

  /* the open iteration */
  TdRawIterationBegin begin;
  uint32_t flags;
  TdList raw; /* bytes of structure records */
  uint32_t n_records;
  TdList start, duration; /* uint64_t ticks by event */
  TdList memory;          /* TdTapeMemory, ids absolute, unless ... */
  bool memory_is_relative;
  bool full;        /* there was no memory for more */
  TdLarge *large;   /* instead of raw, start, duration and memory; NULL: it is not so large */
  uint32_t largest; /* TD_SHAPE_LARGEST */
  TdList reads, tensors, notices;
  TdTapeRows *stats;            /* TdTapeStats */
  TdList stats_of;              /* uint64_t: the variable of each */
  TdList devices, device_times; /* TdTapeDevice, TdRawDeviceTime */
  TdList pools;                 /* TdTapePool */
  TdList copies;                /* TdRawCopy */
  TdList rank_waits, rank_sums; /* TdTapeCollective, TdTapeRankSum */
  TdList calls, call_words;     /* TdPendingCall, uint64_t */
  TdTapeStop stop;
  uint64_t last_structure;
  uint64_t fed, iteration_at; /* bytes fed, and where the open iteration begins */
  bool skip_to_begin;         /* recovery: until the first whole iteration */
  uint64_t skip_through;      /* recovery: iterations up to this number are there, plus 1 */

  /* what outlives iterations */
  TdIdMap meta_at;
  TdList metas;
  TdIdMap outside_counts;
  TdShape *shapes[MAX_SHAPES];
  TdRecent recent[MAX_RECENT];
  unsigned next_recent;
  TdProfile profiles[MAX_PROFILES];
  TdIdMap block_at;   /* by address: a profile that repeats changes ids, not places */
  TdList blocks;      /* TdBlock */
  TdList free_blocks; /* uint32_t */
  uint64_t live_hash, live_total;
  uint64_t live_bytes[TD_TAPE_N_CATEGORIES];
  uint32_t n_profiles_made;
  uint64_t use_clock;
  TdList addresses;    /* uint64_t, of the iteration whose profile was found last */
  TdList attr_changes; /* TdTapeAttrs, of the iteration matched last */
  TdList bound;        /* uint64_t, scratch of the match */

  /* the tensor that comes in parts */
  char *tensor_bytes;
  uint64_t tensor_have;
  /* and the source */
  char *source;
  uint64_t source_total, source_have;

  /* the open iteration has ended, and waits for answers of devices: what follows waits too */
  bool waits;
  uint64_t waits_since; /* ticks of its end */
  TdList queue;         /* bytes */
  TdDeviceZero zeros[MAX_TAPE_DEVICES];

  /* static functions */
  TdIdMap schedules; /* by the engine's number: the tape's */
  TdList statics;    /* TdTapeStatic, of the open iteration */
  TdList runs;       /* TdTapeRun, of the open iteration; ns: ticks at the beginning if open */
  TdList traced;     /* TdTapeTraced, of the open iteration */
  TdList held;       /* TdTapeHeld, of the open iteration */
  TdList objects;    /* TdTapeObject, with ids of the engine's tables resolved */
  TdList references; /* uint32_t */
  char *schedule;    /* that comes in parts */
  uint64_t schedule_total, schedule_have;
  uint32_t schedule_number;

  uint32_t shown_events;
  bool shown_stopped;
  uint64_t next_live_ns;
  TdRawTensor tensor; /* the head of the tensor that comes in parts; last, it has no size */
};

/** Tape id and hash of an engine id. */
TdAlias td__alias (const TdList *table, uint32_t id);

/** What the program's numbers name, "" where that is not known: a text, the name of an
 * operation, the file of a place. */
const char *td__assembler_text (const TdAssembler *a, uint32_t id);
const char *td__assembler_op (const TdAssembler *a, uint32_t opdef);
const char *td__assembler_place (const TdAssembler *a, uint32_t site, uint32_t *line);

/** Nanoseconds of the tape at `ticks`. */
uint64_t td__assembler_ns (const TdAssembler *a, uint64_t ticks);

/** Look up what is known of a variable made before the open iteration. */
bool td__meta_find (TdAssembler *a, uint64_t id, TdMeta *meta);
void td__meta_set (TdAssembler *a, uint64_t id, const TdMeta *meta);

/** Key of a leaf without an operation. */
uint64_t td__leaf_key (TdAssembler *a, const TdRawLeaf *leaf, uint64_t scope, TdIdMap *counts);
void td__leaf_meta (TdAssembler *a, const TdRawLeaf *leaf, uint64_t key, TdMeta *meta);

/** Is the record whole and are its counts possible? */
bool td__raw_valid (const TdRawHead *head, size_t available);

/** Make a shape of the open iteration's records; it does not own `raw`. */
TdShape *td__shape_build (TdAssembler *a);
/** The same one record after the other, for a very large one. */
TdBuild *td__build_new (TdAssembler *a);
void td__build_free (TdBuild *b);
/** Returns false when there was no memory, now or before. */
bool td__build_record (TdBuild *b, const TdRawHead *head);
/** The shape as far as it has come, still the build's; after `td__build_go_on` more can come.
 * NULL: there was no memory. */
TdShape *td__build_look (TdBuild *b);
void td__build_go_on (TdBuild *b);
/** The shape, and the build's end. */
TdShape *td__build_end (TdBuild *b);
void td__shape_free (TdShape *shape);
/** Give the shape a copy of the raw records, so that it can be matched, and remember it. */
void td__shape_keep (TdAssembler *a, TdShape *shape);
/** The shape that the open iteration has, its externals bound; NULL: none. */
TdShape *td__shape_match (TdAssembler *a);
/** Drop of a large shape what only its own iteration needed. */
void td__shape_slim (TdShape *shape);
/** Variable `var` of the shape, valid until the next call; NULL: there is no memory for it. */
const TdTapeVar *td__shape_var_at (const TdShape *shape, uint32_t var);
/** What is to be known of that variable in later iterations. */
TdMeta td__shape_meta (const TdShape *shape, const TdTapeVar *v);
/** Variable of the iteration's own with this id, relative to it: the newest where it has been
 * given to several; TD_TAPE_NONE: none. */
uint32_t td__shape_own_var (const TdShape *shape, uint64_t id);
/** Variable of engine id `id`, TD_TAPE_NONE if the iteration has none. */
uint32_t td__shape_var (const TdAssembler *a, const TdShape *shape, uint64_t id);

/** What differs each time, resolved to variables; the arrays are the iteration's own. */
typedef struct
{
  TdList start, duration, reads, stats_vars, tensors, runs, records, blocks, device_times,
      copies, calls;
} TdResolved;

/** Fill `it` with what the open iteration has, ids resolved to variables of the shape; with
 * `commit`, the last time, in the assembler's own memory where that is large. */
void td__resolve (TdAssembler *a, const TdShape *s, uint64_t end_ns, TdTapeIteration *it,
                  TdResolved *r, bool commit);
void td__resolved_clear (TdResolved *r);

/** Fill memory, blocks and totals of `it`; with `commit` the blocks alive move on and the
 * profile is stored.  `blocks` and the records live in lists that the next call reuses. */
void td__memory_finish (TdAssembler *a, const TdShape *shape, TdTapeIteration *it,
                        TdList *records, TdList *blocks, bool commit);
/** Give the pending memory records the engine's ids again. */
void td__memory_absolute (TdAssembler *a);
/** Mix a record, its ids relative, into the hash of all; begin with td__memory_no_hash. */
void td__memory_hash (TdMemoryHash *hash, const TdTapeMemory *m);
extern const TdMemoryHash td__memory_no_hash;
/** Note that the record makes or frees a buffer: `fate` is what was noted of that before. */
void td__memory_fate (uint8_t *fate, const TdTapeMemory *m);
/** The record, its ids relative to the iteration. */
TdTapeMemory td__memory_relative (const TdAssembler *a, const TdTapeMemory *m);
/** Let the pending memory records change what is alive, and nothing else. */
void td__memory_replay (TdAssembler *a, const TdShape *shape, TdTapeIteration *it);

/* Takers of single records. */
void td__feed_string (TdAssembler *a, const TdRawHead *head);
void td__feed_opdef (TdAssembler *a, const TdRawHead *head);
void td__feed_site (TdAssembler *a, const TdRawHead *head);
void td__feed_path (TdAssembler *a, const TdRawHead *head);
void td__feed_info (TdAssembler *a, const TdRawHead *head);
void td__feed_source (TdAssembler *a, const TdRawHead *head);
void td__feed_parameter (TdAssembler *a, const TdRawHead *head);
void td__feed_tensor (TdAssembler *a, const TdRawHead *head);
void td__feed_function (TdAssembler *a, const TdRawHead *head);
void td__feed_schedule (TdAssembler *a, const TdRawHead *head);
void td__feed_static_event (TdAssembler *a, const TdRawHead *head);
void td__feed_static (TdAssembler *a, const TdRawHead *head);
void td__feed_held (TdAssembler *a, const TdRawHead *head);
void td__feed_object (TdAssembler *a, const TdRawHead *head);
void td__feed_references (TdAssembler *a, const TdRawHead *head);
/** Give the iteration its objects, unless some of them were lost. */
void td__resolve_objects (const TdAssembler *a, TdTapeIteration *it);
void td__feed_static_run (TdAssembler *a, const TdRawHead *head);
void td__feed_static_entry (TdAssembler *a, const TdRawHead *head);
/** The runs of the open iteration as they are at a moment, in `runs`. */
void td__static_runs (const TdAssembler *a, uint64_t end_ns, TdList *runs);
void td__feed_async_stats (TdAssembler *a, const TdRawHead *head);
void td__feed_device_time (TdAssembler *a, const TdRawHead *head);
void td__feed_answered (TdAssembler *a, const TdRawHead *head);
void td__feed_device (TdAssembler *a, const TdRawHead *head);
void td__feed_pool (TdAssembler *a, const TdRawHead *head);
void td__feed_fault (TdAssembler *a, const TdRawHead *head);
void td__feed_oom (TdAssembler *a, const TdRawHead *head);
void td__feed_copy (TdAssembler *a, const TdRawHead *head);
void td__feed_wait (TdAssembler *a, const TdRawHead *head);
void td__feed_rank_sum (TdAssembler *a, const TdRawHead *head);
/** Give the iteration its copies; `copies` is its own list. */
void td__resolve_copies (const TdAssembler *a, const TdShape *s, TdTapeIteration *it,
                         TdList *copies);
void td__feed_call (TdAssembler *a, const TdRawHead *head);
/** Give the iteration what its events were given; `calls` is its own list. */
void td__resolve_calls (const TdAssembler *a, const TdShape *s, TdTapeIteration *it,
                        TdList *calls);

/** Go over to what a very large iteration is kept in; false when there is no memory for it. */
bool td__large_begin (TdAssembler *a);
void td__large_free (TdAssembler *a);
bool td__large_add_memory (TdAssembler *a, const TdTapeMemory *m);
/** Let the iteration have what of a very large one is not in its shape. */
void td__large_resolve (const TdAssembler *a, const TdShape *s);
/** Its end: the shape has none of that any more. */
void td__large_leave (const TdShape *s);

/** There is no memory for more of the open iteration: cut it off here, so that what is kept of
 * it is its beginning. */
void td__lose_rest (TdAssembler *a);
/** Say on the tape that only this many operations of the open iteration are there. */
void td__tell_lost (TdAssembler *a, uint32_t n_kept);

/** End the open iteration. */
void td__finish_iteration (TdAssembler *a, uint64_t end_ticks);
/** Note statistics of `variable`, as of after `event`. */
void td__add_stats (TdAssembler *a, uint64_t variable, uint32_t event,
                    const TdTapeStats *stats);
/** Whether an iteration that waits for answers takes this record, or keeps it for later. */
bool td__hold_keeps (TdAssembler *a, const TdRawHead *head);
/** Let the iteration that waits end now, and feed what has waited behind it. */
void td__hold_end (TdAssembler *a, bool lost);
/** Fill devices and times of the iteration; `times` is its own list.  With `commit` the clocks
 * of the devices are remembered. */
void td__resolve_devices (TdAssembler *a, TdTapeIteration *it, TdList *times, TdList *copies,
                          bool commit);
