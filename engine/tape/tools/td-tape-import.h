/* Making a tape of what another program recorded: memory snapshots of PyTorch, traces of its
 * profiler and of others, and arrays of a reference. SPDX-License-Identifier: MIT */
#pragma once

#include <signal.h>

#include "td-tape.h"

TD_TAPE_BEGIN_C

/** What INFO says under TD_TAPE_IMPORT_KEY of a tape that was made from a snapshot.  Such a
 * tape has one iteration with the flag TD_TAPE_ITERATION_SNAPSHOT: its events are the entries
 * of the snapshot's trace (alloc, free, segment_alloc ...) and no operations; a variable is a
 * block of memory, produced by its alloc and read by its free; device k + 1 is the snapshot's
 * device k.
 *
 * What a program said to the allocator (_set_memory_metadata) stands in the attributes of an
 * entry, behind user_metadata=; its annotations are events called annotation, by their time.
 * Segments, with what is free at their ends, are in INFO under TD_TAPE_IMPORT_SEGMENTS and a
 * number from 0 on: "device address bytes stream type;" for each, in hexadecimal.
 *
 * A block that was there before the trace began is one of the iteration's start.  Bytes are
 * those of the segments for blocks that are there in the end, and those that the trace tells
 * for others: what was asked for, without what the allocator added.  A block is live until its
 * free has completed.  The place of a block is the innermost frame of a Python file that
 * belongs to no library; its whole stack is one of the iteration's (td-tape-stacks.h), with
 * what PyTorch says of C++, and without the frames by which Tapedeck's own snapshots say link
 * and category; of stacks with more than 4096 frames the innermost are there.  Files of the
 * program that stacks name are sources of the tape, where they are there and were not written
 * after the snapshot.  Nothing is said
 * of what a block was for: its category is "other". */
#define TD_TAPE_IMPORT_KEY "import"
/** Also of a raw memory timeline of PyTorch's profiler, which has categories and no places. */
#define TD_TAPE_IMPORT_TORCH "torch-snapshot"
#define TD_TAPE_IMPORT_SEGMENTS "segments"
#define TD_TAPE_IMPORT_METADATA "user_metadata="

/** The same of a tape that was made of a trace: JSON as Chrome reads it, and as PyTorch's
 * profiler (Kineto) writes it, plain or gzip.  A step of the profiler (ProfilerStep#3) is an
 * iteration; a trace without steps is one, and more where it has over 2^20 operations.
 *
 * What a slice of the host does besides what lies in it is an operation: it has that stretch of
 * time for itself, so that times add up.  A slice with several stretches is as many operations;
 * from the second on they say `part=2`.  A call that starts something on a device is the
 * operation that the device ran, with the call's time on the host.  Slices around others are
 * its path; annotations, modules and functions of Python have no time of their own unless an
 * annotation is empty.  Backward belongs to the forward operation that made its node, where the
 * trace has sequence numbers.  There are no variables: a trace does not know any. */
#define TD_TAPE_IMPORT_TRACE "trace"

/** The same of a tape that was made of arrays of a reference: an npz file whose members say by
 * their names what they are, with "/" or "." between parts:
 *
 *     LAYER/out             what the layer returned
 *     LAYER/grad            the gradient of that, where LAYER/out is there
 *     LAYER/PARAMETER/grad  of a parameter
 *     LAYER/PARAMETER       the parameter itself
 *
 * Layers are in the order of the file, which should be that of their calls.  Each is a forward
 * event of one iteration, and a backward one if it has gradients; who read what the file does
 * not say.  All arrays have statistics and elements; what has another name, or elements that a
 * tape has no name for, is left out, and a notice says so. */
#define TD_TAPE_IMPORT_ARRAYS "arrays"

/** What an import found. */
typedef struct
{
  uint32_t size; /* sizeof (TdTapeImport), set by the caller */
  uint32_t n_devices;
  uint64_t n_entries, n_dropped; /* of the trace; older ones that were too many */
  uint64_t n_events;             /* a free's request and its completion are one */
  uint64_t n_blocks, n_start;    /* there at its end, and at its start */
  uint64_t
      n_unmatched; /* frees of what was free already, blocks that the trace says are free */
  uint64_t peak_bytes, end_bytes;
  /* Of a trace, whose n_events are operations: */
  uint64_t n_slices, n_iterations, n_steps; /* iterations that are steps of the profiler */
  uint64_t n_left_out;                      /* events of kinds that are not shown; arrays */
  uint64_t n_layers, n_arrays;              /* of a reference */
} TdTapeImport;

/** What an import is doing. */
typedef enum
{
  TD_TAPE_IMPORT_READING,
  TD_TAPE_IMPORT_ARRANGING, /* what was read: by time, and what lies in what */
  TD_TAPE_IMPORT_WRITING
} TdTapeImportStage;

/** How an import is done, and who looks on.  What is 0 or NULL is not wanted. */
typedef struct
{
  uint32_t size; /* sizeof (TdTapeImportOptions) */
  bool overwrite;
  /* Called often while the file is read, with how much of its bytes (0 to 1) has been, and a
   * few times afterwards, with how much of the stage is over as far as that is known. */
  void (*progress) (void *user, TdTapeImportStage stage, double part);
  void *user;
  /* Looked at as often: other than 0 ends the import with the line "cancelled". */
  const volatile sig_atomic_t *cancel;
} TdTapeImportOptions;

/** Say whether a file begins like a pickle of protocol 2 to 5. */
TD_API bool td_tape_is_snapshot (const char *path);

/** Say whether a file, plain or gzip, begins like JSON. */
TD_API bool td_tape_is_trace (const char *path);

/** Say whether it is an npz file with arrays that are called as above. */
TD_API bool td_tape_is_arrays (const char *path);

/** Say whether it is one of these. */
TD_API bool td_tape_is_import (const char *path);

/** Make a tape of a file, whichever of them it is.  Errors: as of td_tape_import_snapshot. */
TD_API bool td_tape_import (const char *path, const char *tape, bool overwrite,
                            TdTapeImport *what, char *error, size_t n);

/** The same with all options; NULL: none of them. */
TD_API bool td_tape_import_with (const char *path, const char *tape,
                                 const TdTapeImportOptions *options, TdTapeImport *what,
                                 char *error, size_t n);

/** Make a tape of a snapshot: the pickle of torch.cuda.memory._snapshot (), or of its segments
 * alone.  No code in it is run: all but dictionaries, lists, texts and numbers is refused.
 * `what` may be NULL.
 * Errors: false, with one line in `error` (`n` bytes) that names the file, and no tape. */
TD_API bool td_tape_import_snapshot (const char *snapshot, const char *tape, bool overwrite,
                                     TdTapeImport *what, char *error, size_t n);

/** Tell files apart: the same file has the same number until it is written again; 0: there is
 * none. */
TD_API uint64_t td_tape_import_identity (const char *path);

/** Write to `tape` the path that the tape of a file has in a folder.
 * Errors: false, with one line in `error`; the name is too long. */
TD_API bool td_tape_import_path (const char *path, const char *folder, char *tape,
                                 size_t n_tape, char *error, size_t n);

/** Make a tape of a file in a folder that is there, unless it has one; its path is written
 * to `tape`.  Options as of td_tape_import_with.  Errors: as of td_tape_import_snapshot. */
TD_API bool td_tape_import_into (const char *path, const char *folder,
                                 const TdTapeImportOptions *options, char *tape, size_t n_tape,
                                 char *error, size_t n);

TD_TAPE_END_C
