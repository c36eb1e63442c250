/* Reading a tape, also one that is still growing.  Uses pread only, trusts nothing in the file,
 * and never takes more memory than the file can back.  One reader is used by one thread;
 * iterations it returned may be used and freed by any.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "td-tape.h"

TD_TAPE_BEGIN_C

typedef struct TdTapeReader TdTapeReader;

/** A text on the tape; NUL-terminated, but may contain any byte before. */
typedef struct
{
  const char *text; /* never NULL */
  uint32_t length;
} TdTapeText;

/** One source file of the model. */
typedef struct
{
  const char *path;
  const char *text; /* NUL-terminated */
  size_t bytes;
} TdTapeSource;

/** Columns of the summaries: entry i of each is the i-th iteration of the tape. */
typedef struct
{
  uint32_t n;
  const TdTapeSummary *rows;
} TdTapeSummaries;

/** One distinct structure. */
typedef struct
{
  uint32_t id;
  uint32_t n_events, n_vars;
  uint64_t fingerprint, fingerprint_dims;
  uint64_t n_iterations;    /* that have it */
  uint64_t first_iteration; /* its number */
} TdTapeStructure;

/** Open a tape.
 * Owner: the caller; td_tape_reader_free.
 * Errors: NULL, with one line in `error` (`n` bytes) that names neither the program nor the
 * file: "not a tape", "made with tape format 2.0; this version reads up to 1.x" ... */
TD_API TdTapeReader *td_tape_reader_open (const char *path, char *error, size_t n);
/** Open a tape that may grow for ever and keep at most `max_summaries` (0: all) of its
 * summaries: the newest quarter, those with findings, and every n-th of the others. With 1 the
 * reader keeps the last only, and no reports: enough to load iterations that
 * td_tape_reader_look_up finds. */
TD_API TdTapeReader *td_tape_reader_open_bounded (const char *path, uint32_t max_summaries,
                                                  char *error, size_t n);
/** Change that number, from the next poll on. */
TD_API void td_tape_reader_bound (TdTapeReader *r, uint32_t max_summaries);
TD_API void td_tape_reader_free (TdTapeReader *r);

/** Read what was written since the last call.  True if anything is new (also within the live
 * iteration).  Pointers returned earlier by the functions below are invalid after that, except
 * iterations, and texts, which stay valid while the reader lives. */
TD_API bool td_tape_reader_poll (TdTapeReader *r);
/** The first bytes of the tape, and how many it has. */
TD_API const TdTapeHeader *td_tape_reader_header (const TdTapeReader *r);
TD_API uint64_t td_tape_reader_bytes (const TdTapeReader *r);

/** Tables.  Ids run from 1 to the count; an unknown id gives "" or NULL. */
TD_API TdTapeText td_tape_reader_text (const TdTapeReader *r, uint32_t id);
TD_API const char *td_tape_reader_string (const TdTapeReader *r, uint32_t id);
TD_API uint32_t td_tape_reader_n_opdefs (const TdTapeReader *r);
TD_API const TdTapeOpdef *td_tape_reader_opdef (const TdTapeReader *r, uint32_t id);
TD_API uint32_t td_tape_reader_n_sites (const TdTapeReader *r);
TD_API const TdTapeSite *td_tape_reader_site (const TdTapeReader *r, uint32_t id);
TD_API uint32_t td_tape_reader_n_paths (const TdTapeReader *r);
TD_API const TdTapePath *td_tape_reader_path (const TdTapeReader *r, uint32_t id);

/** Name of operation class `opdef`, "?" if unknown. */
TD_API const char *td_tape_reader_op_name (const TdTapeReader *r, uint32_t opdef);
/** Text of link path `path`, "" if none. */
TD_API const char *td_tape_reader_path_text (const TdTapeReader *r, uint32_t path);
/** Write "file:line" of `site` to `out`, "" if none; returns `out`. */
TD_API const char *td_tape_reader_site_text (const TdTapeReader *r, uint32_t site, char *out,
                                             size_t n);

/** What INFO says about `key` (the last that was said), "" if nothing. */
TD_API const char *td_tape_reader_info (const TdTapeReader *r, const char *key);
/** Source files that the tape holds, by number from 0. */
TD_API uint32_t td_tape_reader_n_sources (const TdTapeReader *r);
TD_API TdTapeSource td_tape_reader_source (const TdTapeReader *r, uint32_t i);

/** Parameters in the order in which they were announced, each path once. */
TD_API uint32_t td_tape_reader_n_parameters (const TdTapeReader *r);
TD_API const TdTapeParameter *td_tape_reader_parameter (const TdTapeReader *r, uint32_t i);

/** Notices of the whole run. */
TD_API uint32_t td_tape_reader_n_notices (const TdTapeReader *r);
TD_API const TdTapeNotice *td_tape_reader_notice (const TdTapeReader *r, uint32_t i);

/** Errors that were found after their operation had run, in the order in which they were. */
TD_API uint32_t td_tape_reader_n_faults (const TdTapeReader *r);
TD_API const TdTapeFault *td_tape_reader_fault (const TdTapeReader *r, uint32_t i);

/** Say a fault in one line, without its place: "index 12 outside 0..9 at element 7 of t, found
 * at the end of the iteration; backward and update had run".  `operand` is its text, `it` the
 * iteration of the event, NULL where it is not at hand. */
TD_API void td_tape_fault_text (const TdTapeFault *fault, const char *operand,
                                const TdTapeIteration *it, char *out, size_t n);

/** When memory ran out, in the order in which it did.  Holders: n_holders of them. */
TD_API uint32_t td_tape_reader_n_ooms (const TdTapeReader *r);
TD_API const TdTapeOom *td_tape_reader_oom (const TdTapeReader *r, uint32_t i);
TD_API const TdTapeOomHolder *td_tape_reader_oom_holders (const TdTapeReader *r, uint32_t i);
/** Say one in a sentence: "iteration 2, event 5: forward linear of mlp/l1 at mlp.c:12 wanted
 * 31.5 MB on cpu; 12.6 MB live, limit 24 MB". */
TD_API void td_tape_oom_sentence (const TdTapeReader *r, uint32_t i, char *out, size_t n);
/** Compute what would help, the best first.  Returns how many there are, at most `max`. */
TD_API uint32_t td_tape_oom_remedies (TdTapeReader *r, uint32_t i, TdTapeRemedy *out,
                                      uint32_t max);
/** Write the report of each: what `tapedeck info --oom` shows.  JSON as one object. */
TD_API void td_tape_oom_print (TdTapeReader *r, FILE *out, bool json);

/** What the recording program called its texts, operations, sites and paths. */
TD_API const TdTapeAlias *td_tape_reader_aliases (const TdTapeReader *r, uint32_t *n);

/** How it ended; NULL while it runs or when nobody could write it. */
TD_API const TdTapeEnd *td_tape_reader_end (const TdTapeReader *r);

/** Summaries of all iterations that ended, in their order. */
TD_API TdTapeSummaries td_tape_reader_summaries (const TdTapeReader *r);

/** What is left of the iterations that ran. */
typedef struct
{
  uint64_t n_iterations; /* that ended */
  uint64_t n_operations; /* in them; 0: not known, the tape is of a version before 1.3 */
  uint64_t n_summaries;  /* that the reader has a summary of */
  uint64_t n_whole;      /* of those the whole iteration */
  uint64_t first_whole;  /* from this number on, up to the newest; UINT64_MAX: not even that */
  uint64_t stride;       /* of the old ones, every how many-th has its summary */
  uint64_t n_lost;       /* to damage, as far as that can be told */
} TdTapeThinning;

/** Count what was thinned; of a bounded reader's summaries it says what the reader keeps. */
TD_API TdTapeThinning td_tape_reader_thinning (TdTapeReader *r);
/** Say it in one line without an end; "" when all are whole. */
TD_API void td_tape_thinning_text (const TdTapeThinning *t, char *out, size_t n);

/** Is the tape damaged, in its segments, definitions or index?  Says where and what, and what
 * to do; the records of iterations are looked at when they are loaded. */
TD_API bool td_tape_reader_damage (const TdTapeReader *r, char *text, size_t n);

/** Index in the summaries of iteration `number`, -1 if there is none. */
TD_API int64_t td_tape_reader_find (const TdTapeReader *r, uint64_t number);

/** Find the summary of iteration `number`, in the file if the reader does not keep it. False:
 * it has none. */
TD_API bool td_tape_reader_look_up (TdTapeReader *r, uint64_t number, TdTapeSummary *row);

/** Find the iterations with this structure that ended and are still whole, those nearest to
 * `number` first and not that itself; at most `max`, also those that the reader does not keep.
 * On a growing tape some may be thinned by now. Returns how many. */
TD_API uint32_t td_tape_reader_find_like (TdTapeReader *r, uint64_t number, uint32_t structure,
                                          TdTapeSummary *rows, uint32_t max);

/** False for an iteration that was thinned: it has its summary only. */
TD_API bool td_tape_reader_stored (TdTapeReader *r, uint32_t index);

/** All reports of the run, in order. */
TD_API const TdTapeReport *td_tape_reader_reports (const TdTapeReader *r, uint64_t *n);

/** Drop the reports read so far: somebody has taken them in. */
TD_API void td_tape_reader_forget_reports (TdTapeReader *r);
/** Structures by id - 1 (td-tape.h); NULL beyond them. */
TD_API uint32_t td_tape_reader_n_structures (const TdTapeReader *r);
TD_API const TdTapeStructure *td_tape_reader_structure (const TdTapeReader *r, uint32_t i);

/** Static functions by id - 1; NULL for a gap. */
TD_API uint32_t td_tape_reader_n_chains (const TdTapeReader *r);
TD_API const TdTapeChain *td_tape_reader_chain (const TdTapeReader *r, uint32_t id);

/** What happened to them, in order. */
TD_API uint32_t td_tape_reader_n_static_events (const TdTapeReader *r);
TD_API const TdTapeStaticEvent *td_tape_reader_static_event (const TdTapeReader *r, uint32_t i);

/** Schedules have ids from 1 on.  Load one and check it.
 * Owner: the caller; td_tape_schedule_free, by any thread.
 * Errors: NULL, with one line in `error` that says what is not well formed in it. */
TD_API uint32_t td_tape_reader_n_schedules (const TdTapeReader *r);
TD_API const TdTapeSchedule *td_tape_schedule_load (TdTapeReader *r, uint32_t id, char *error,
                                                    size_t n);
TD_API void td_tape_schedule_free (const TdTapeSchedule *schedule);

/** Check a schedule: see td-tape-static.h.  False with one line in `error`. */
TD_API bool td_tape_schedule_verify (const TdTapeSchedule *schedule, char *error, size_t n);

/** Leave the records of memory and the blocks out of iterations that are loaded from now on, or
 * take them again: of a large one they are a quarter, and some views show none. */
TD_API void td_tape_reader_skip_memory (TdTapeReader *r, bool skips);

/** Read one iteration; the live one too, when `number` is it.
 * Owner: the caller; td_tape_iteration_free, by any thread.
 * Errors: NULL when it was thinned, damaged or never there, with the reason in `error`. */
TD_API const TdTapeIteration *td_tape_iteration_load (TdTapeReader *r, uint64_t number,
                                                      char *error, size_t n);
/** The same by its summary, which may be another reader's of the same tape. */
TD_API const TdTapeIteration *
td_tape_iteration_load_row (TdTapeReader *r, const TdTapeSummary *row, char *error, size_t n);
/** Read of it only how things stood at its end: what outlived it, what refers to what, devices
 * and pools.  It has no events, variables, times, values and memory. */
TD_API const TdTapeIteration *
td_tape_iteration_load_end (TdTapeReader *r, const TdTapeSummary *row, char *error, size_t n);
TD_API const TdTapeIteration *
td_tape_iteration_load_structure (TdTapeReader *r, uint32_t structure, char *error, size_t n);
TD_API void td_tape_iteration_free (const TdTapeIteration *it);

/** The iteration that runs, or ran when the program was cut off: NULL if there is none.  Owner:
 * the caller. */
TD_API const TdTapeIteration *td_tape_reader_live (TdTapeReader *r);

/** The newest moment known: iteration number and number of events in it.  False: nothing yet.
 */
TD_API bool td_tape_reader_head (TdTapeReader *r, uint64_t *number, uint32_t *n_events);

/** Read a tensor of an iteration: its record to `record`, up to `max_bytes` bytes from `offset`
 * on to `data`. Returns the bytes read; -1 when it is no longer there, or when all was read and
 * is damaged. */
TD_API int64_t td_tape_tensor_read (TdTapeReader *r, const TdTapeTensorRef *ref,
                                    TdTapeTensorRecord *record, void *data, uint64_t offset,
                                    uint64_t max_bytes);

/** What `check` finds. */
typedef struct
{
  bool whole;
  bool ended;         /* has an END frame */
  uint64_t first_bad; /* offset; only when not whole */
  uint64_t n_frames;
  uint64_t n_bytes;
  uint64_t n_iterations; /* that ended, of which */
  uint64_t n_loadable;   /* can be loaded */
  char what[160];        /* one line: what is wrong there */
  char thinned[200];     /* what is left of its iterations (td_tape_thinning_text) */
} TdTapeCheck;

/** Read and verify every frame of a file, and that iterations can be loaded.  False: it cannot
 * be read at all
 * (`check->what` says why). */
TD_API bool td_tape_check (const char *path, TdTapeCheck *check);

/** Copy the valid part of a tape to `out`, which must not exist.  False with one line in
 * `error`. */
TD_API bool td_tape_repair (const char *path, const char *out, char *error, size_t n);

/** Write the memory of one device in one iteration as a snapshot of PyTorch's: a pickle of
 * protocol 2.  False with one line in `error` and nothing written, for a device that the
 * iteration does not know too; what `out` says of errors is the caller's. */
TD_API bool td_tape_write_snapshot (TdTapeReader *r, uint64_t iteration, uint32_t device,
                                    FILE *out, char *error, size_t n);

/** Traces that a tape can be written as: the JSON that Chrome's tracing reads, Perfetto's
 * protobuf. */
typedef enum
{
  TD_TAPE_TRACE_CHROME,
  TD_TAPE_TRACE_PERFETTO
} TdTapeTraceFormat;

/** Write the iterations with numbers in [first, last] as a trace: operations inside of phases
 * and layers, with what devices ran on rows of their own; memory by device and category, norms
 * of gradients and reports as counters.  Of an iteration that is not stored whole there is the
 * time alone.  False with one line in `error`; what `out` says of errors is the caller's. */
TD_API bool td_tape_write_trace (TdTapeReader *r, TdTapeTraceFormat format, uint64_t first,
                                 uint64_t last, FILE *out, char *error, size_t n);

/** Write the records as text, or as one JSON object a line: the tables, then the iterations
 * with numbers in [first, last]. */
TD_API void td_tape_dump (TdTapeReader *r, FILE *out, bool json, uint64_t first, uint64_t last);

/** Write what `tapedeck info` shows; JSON as one object. */
TD_API void td_tape_info (TdTapeReader *r, FILE *out, bool json);

TD_TAPE_END_C
