/* Writing a tape.  The C ABI for the engine's recorder and for recorders of other programs:
 * operations, sites and paths are given as text, the writer numbers them.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape.h"

TD_TAPE_BEGIN_C

typedef struct TdTapeWriter TdTapeWriter;

/** How a tape is made; fill with zeros, set `size`. */
typedef struct
{
  uint32_t size; /* sizeof (TdTapeWriterOptions) */
  uint32_t level;
  const char *path;
  bool overwrite;         /* else an existing file is refused; what is no tape always is */
  uint64_t budget_bytes;  /* 0: unlimited */
  uint64_t values_bytes;  /* budget of tensors; 0: 256 MiB */
  uint32_t rank, n_ranks; /* n_ranks 0: 1 */
  int32_t pid;            /* of the program; 0: this process */
  uint64_t mono_ns;       /* the tape's time 0; 0: now */
  uint64_t ticks;
  double ns_per_tick;
  uint64_t rate_bytes;  /* a second, by which start_bytes of the budget grow; 0: all of it from
                         * the start */
  uint64_t start_bytes; /* 0: TD_TAPE_START_BYTES */
} TdTapeWriterOptions;

/** A tape that may grow by so much a second holds 1,000 events of a structure seen before in
 * each of 100 iterations: more than a person looks at.  Only what is faster is thinned before
 * the budget is used up. */
#define TD_TAPE_RATE_BYTES ((uint64_t)1 << 20)
#define TD_TAPE_START_BYTES ((uint64_t)256 << 20)

/** Why a file is not written to. */
#define TD_TAPE_TAKEN "another run is recording to it"
#define TD_TAPE_NO_TAPE "it is no tape, and is not written over"

/** Create the file, lock it and write its head.  The lock goes when this process ends or closes
 * any descriptor of the file.
 * Owner: the caller; end with td_tape_writer_free.
 * Errors: NULL, with one line in `error` (`n` bytes); a file that another recorder writes, or
 * that is no tape, is as it was. */
TD_API TdTapeWriter *td_tape_writer_new (const TdTapeWriterOptions *options, char *error,
                                         size_t n);

/** Go on with a tape that exists: everything new comes behind what is there.  Needs a whole
 * tape (see td_tape_repair). Errors: NULL, with one line in `error`. */
TD_API TdTapeWriter *td_tape_writer_continue (const char *path, char *error, size_t n);

/** Lock a tape as its writer does.  False while another process has the lock. */
TD_API bool td_tape_lock (int fd);

/** May a tape be written in the place of this file?  An older tape may go, and what is empty or
 * not there.  Errors: false, with one line in `error`. */
TD_API bool td_tape_may_replace (const char *path, char *error, size_t n);

/** Write what is pending, close the file, free the writer.  NULL is allowed. */
TD_API void td_tape_writer_free (TdTapeWriter *w);

/** Make everything written so far visible to readers. */
TD_API void td_tape_writer_flush (TdTapeWriter *w);

/** From now on the file does not grow beyond `bytes`, whatever its budget allows: what is older
 * makes room.  What it has already it keeps. */
TD_API void td_tape_writer_limit (TdTapeWriter *w, uint64_t bytes);

/** The line that says why writing stopped ("disk full" ...), or NULL while it goes on.  After a
 * failed write every call is accepted and does nothing. */
TD_API const char *td_tape_writer_error (const TdTapeWriter *w);

/** Has somebody else written to the file, or cut it?  What is there now is not what was
 * written, and the writer leaves it alone.  Looks at the file; so does every
 * td_tape_writer_flush. */
TD_API bool td_tape_writer_lost (TdTapeWriter *w);

/** Bytes of the file so far. */
TD_API uint64_t td_tape_writer_bytes (const TdTapeWriter *w);

/** Return the id of a text, writing it when it is new.  0 for NULL or an empty text. */
TD_API uint32_t td_tape_writer_string (TdTapeWriter *w, const char *text);
TD_API uint32_t td_tape_writer_string_n (TdTapeWriter *w, const char *text, size_t n);

/** Return the id of an operation class; `opdef->id` is ignored. */
TD_API uint32_t td_tape_writer_opdef (TdTapeWriter *w, const TdTapeOpdef *opdef);

/** Return the id of a place in the source. */
TD_API uint32_t td_tape_writer_site (TdTapeWriter *w, const char *file, uint32_t line,
                                     const char *function);

/** Return the id of a link path. */
TD_API uint32_t td_tape_writer_path (TdTapeWriter *w, const char *path, const char *link_class);

/** Say something about the run: program, device, argv, cwd, host, version ... */
TD_API void td_tape_writer_info (TdTapeWriter *w, const char *key, const char *value);

/** Store the whole text of one source file of the model. */
TD_API void td_tape_writer_source (TdTapeWriter *w, const char *path, const char *text,
                                   size_t n);

/** Announce a parameter of the model. */
TD_API void td_tape_writer_parameter (TdTapeWriter *w, const TdTapeParameter *parameter);

/** Say that the recorder's own number `foreign` for a text, operation, site or path (`kind`, a
 * TdTapeFrameType) is `id`: needed to recover what was recorded but not yet written. */
TD_API void td_tape_writer_alias (TdTapeWriter *w, unsigned kind, uint32_t foreign,
                                  uint32_t id);

/** Add to the curves of reports; also those of the iteration that is still running. */
TD_API void td_tape_writer_report (TdTapeWriter *w, const TdTapeReport *report);

/** Store a structure (events, variables, spans, gradients of `it`) unless the same is there.
 * Returns its id; 0 when writing has stopped.  `*is_new` may be NULL. */
TD_API uint32_t td_tape_writer_structure (TdTapeWriter *w, const TdTapeIteration *it,
                                          bool *is_new);

/** Store a memory profile (memory, blocks, start_bytes, peak_bytes and end_bytes of `it`)
 * unless the same is there.  buffer and variable of the records are relative to the iteration's
 * first ids.  Returns its id. */
TD_API uint32_t td_tape_writer_memory (TdTapeWriter *w, const TdTapeIteration *it);

/** Rows of a section on their way to the tape, packed as they will be there while more of them
 * come: an iteration has millions. */
typedef struct TdTapeRows TdTapeRows;

/** Make room for rows of `size` bytes, a multiple of 4 up to 256.  NULL: no memory. */
TD_API TdTapeRows *td_tape_rows_new (uint32_t size);
TD_API void td_tape_rows_free (TdTapeRows *rows);

/** Returns false when there is no memory. */
TD_API bool td_tape_rows_add (TdTapeRows *rows, const void *row);
TD_API uint32_t td_tape_rows_count (const TdTapeRows *rows);

/** Row `i`, valid until the next call; NULL: there is none, or no memory.  Rows that lie near
 * each other are best asked for one after the other. */
TD_API const void *td_tape_rows_at (TdTapeRows *rows, uint32_t i);
/** The same, to be changed. */
TD_API void *td_tape_rows_change (TdTapeRows *rows, uint32_t i);

/** Forget them, and give memory back where it is much. */
TD_API void td_tape_rows_clear (TdTapeRows *rows);

/** When an event began and how long it took, in ticks of some clock. */
typedef struct
{
  uint64_t start, duration;
} TdTapeTicks;

/** A very large iteration, whose rows were packed while it went on: instead of the arrays of
 * these names, and of event_start_ns and event_duration_ns.  Counts are the iteration's. */
typedef struct TdTapePacked
{
  TdTapeRows *events, *ins, *outs, *vars, *dims, *memory;
  TdTapeRows *times;   /* TdTapeTicks, of each event */
  uint64_t first_tick; /* of the iteration */
  double ns_per_tick;
  const uint32_t *types;     /* of each variable: where its type is in `type_words` */
  const int64_t *type_words; /* dtype << 8 | ndim, then the dimensions */
} TdTapePacked;

/** When an event of such an iteration began, and how long it took. */
TD_API void td_tape_packed_time (const TdTapePacked *packed, uint32_t event, uint64_t *start_ns,
                                 uint64_t *duration_ns);

/** Write one iteration and its summary.  structure and memory_profile of `it` name what
 * the two functions above returned; only the parts that differ each time are read from it. */
TD_API void td_tape_writer_iteration (TdTapeWriter *w, const TdTapeIteration *it);

/** Write one whole iteration: structure, memory, times, all in one call.  For other recorders:
 * keys that are 0 are made from path, site, occurrence and phase. */
TD_API void td_tape_writer_whole (TdTapeWriter *w, TdTapeIteration *it);

/* Of an array of more elements than this the histogram is from a sample ... */
#define TD_TAPE_STATS_SAMPLE 65536
/* ... of so many: bins are right to 1.6 % of the whole. */
#define TD_TAPE_STATS_SAMPLED 4096

/** Compute the statistics of `n` contiguous elements (a TdTapeDtype), all but `var` and
 * `event`: counts and moments are exact, the histogram of large arrays comes from a stride
 * sample with a start chosen by `seed`. */
TD_API void td_tape_measure (const void *data, unsigned dtype, uint64_t n, uint64_t seed,
                             TdTapeStats *stats);

/** Show the iteration that is running, as far as it got; replaces what was shown before. */
TD_API void td_tape_writer_live (TdTapeWriter *w, const TdTapeIteration *it);

/** Store a tensor; `record->bytes` bytes at `data`.  Fills offset, seq, bytes and event of
 * `ref` for the iteration's list of tensors.  False when it does not fit the budget. */
TD_API bool td_tape_writer_tensor (TdTapeWriter *w, const TdTapeTensorRecord *record,
                                   const void *data, TdTapeTensorRef *ref);

/** Say something to the reader of the tape. */
TD_API void td_tape_writer_notice (TdTapeWriter *w, const TdTapeNotice *notice);

/** Say that an event, maybe of an iteration stored before, has turned out to have failed. */
TD_API void td_tape_writer_fault (TdTapeWriter *w, const TdTapeFault *fault);
TD_API void td_tape_writer_oom (TdTapeWriter *w, const TdTapeOom *oom,
                                const TdTapeOomHolder *holders, uint32_t n);

/** Say that there is a static function; `chain->id` is the program's number for it. */
TD_API void td_tape_writer_chain (TdTapeWriter *w, const TdTapeChain *chain);

/** Store a schedule unless the same is there; `head.id` is ignored.  first and last of its
 * values are filled in.  Returns its id; 0 when it has no room in the budget or is none that a
 * reader would take, then with one line in `error` (`n` bytes; may be NULL). */
TD_API uint32_t td_tape_writer_schedule (TdTapeWriter *w, const TdTapeSchedule *schedule,
                                         char *error, size_t n);

/** Say what happened to a static function. */
TD_API void td_tape_writer_static_event (TdTapeWriter *w, const TdTapeStaticEvent *event);

/** Say how the program ended. */
TD_API void td_tape_writer_end (TdTapeWriter *w, const TdTapeEnd *end);

/* Keys and fingerprints, the same for every recorder. */

/** Mix `value` into hash `h`. */
TD_API uint64_t td_tape_hash (uint64_t h, uint64_t value);

/** Hash `n` bytes. */
TD_API uint64_t td_tape_hash_bytes (uint64_t h, const void *bytes, size_t n);

/** Key of the k-th event with this path, site and phase in the scope instance `scope_key`. */
TD_API uint64_t td_tape_event_key (uint64_t scope_key, uint64_t path_hash, uint64_t site_hash,
                                   uint32_t k, uint32_t phase);

/** Key of a backward event. */
TD_API uint64_t td_tape_twin_key (uint64_t forward_key, uint32_t phase, uint32_t order);

/** Key of an event's output. */
TD_API uint64_t td_tape_output_key (uint64_t event_key, uint32_t out_index);

/** Compute the two fingerprints of a structure: of operations, edges, link paths, dtypes and
 * ranks; the second of dimensions too.  Texts count, not ids: tapes can be compared. */
TD_API void td_tape_writer_fingerprint (const TdTapeWriter *w, const TdTapeIteration *it,
                                        uint64_t *fingerprint, uint64_t *fingerprint_dims);

TD_TAPE_END_C
