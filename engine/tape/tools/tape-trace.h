/* Between the parts of an import of traces: the file event by event; what of it is kept; how
 * slices lie in each other; iterations.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../format/tape-private.h"
#include "json-read.h"
#include "tape-import.h"

/* ---------------------------------------------------------------------------- the file */

/** Where in a trace one reads: a window of the file that holds the event at hand whole. */
typedef struct TapeTraceFile TapeTraceFile;

/** Open a trace, plain or gzip: an object with a list "traceEvents", or the list alone.
 * `watch`, which may be NULL, hears how far it is read, as long as it is open.
 * Owner: the caller; td__tape_trace_close.  Errors: NULL, with one line in `error`. */
TapeTraceFile *td__tape_trace_open (const char *path, const TdTapeImportOptions *watch,
                                    char *error, size_t n);
void td__tape_trace_close (TapeTraceFile *f);

/** Take the next item: of the list of events, or a member of the object (`*key` is its name, ""
 * for an event).  The item's JSON is ready to be read.
 * Errors: false; `error` is empty where the trace has ended as it should. */
bool td__tape_trace_next (TapeTraceFile *f, const char **key, TdJsonReader *item, char *error,
                          size_t n);
/** Whether it is a list of lists: no trace, but a memory timeline. */
bool td__tape_trace_has_rows (TapeTraceFile *f);
/** How many events were taken. */
uint64_t td__tape_trace_count (const TapeTraceFile *f);

/* ---------------------------------------------------------------------- what is kept */

/** What a slice is, by its category. */
typedef enum
{
  TAPE_TRACE_OP,     /* an operation, or something that nobody else has a name for */
  TAPE_TRACE_LAYER,  /* an annotation: a layer; an operation where nothing lies in it */
  TAPE_TRACE_PYTHON, /* a function of Python's: says where, and is no operation */
  TAPE_TRACE_CALL,   /* of a device's interface: what it starts has the same number */
  TAPE_TRACE_DEVICE, /* ran on a device */
  TAPE_TRACE_NOTHING /* says again what others say */
} TapeTraceKind;

/** A slice of time.  64 bytes each are what an import's memory grows by. */
typedef struct
{
  uint64_t start_ns, end_ns;
  uint64_t number;   /* + 1.  CALL, DEVICE: of the start on a device; OP: of autograd's node */
  uint32_t name;     /* text */
  uint32_t attrs;    /* text; 0: none */
  uint32_t track;    /* a thread of the host; slices of devices have none */
  uint32_t sequence; /* in the trace */
  uint32_t path;     /* text, of what lies in it */
  uint32_t site;     /* the tape's id, of what lies in it */
  uint32_t node;     /* OP that made the node of autograd which this belongs to, + 1 */
  uint8_t kind, device, stream;
  uint8_t phase; /* TdTapePhase of what lies in it */
  uint8_t rank;  /* how well `site` tells where */
  uint8_t depth; /* of `path` */
  uint8_t flags;
} TapeTraceSlice;

enum
{
  TAPE_TRACE_ISSUED = 1 << 0,   /* of a device: by a call that is in the trace */
  TAPE_TRACE_BACKWARD = 1 << 1, /* runs its node, and does not make it */
  TAPE_TRACE_NODE = 1 << 2,     /* made its node */
};

/** A stretch of the host's time that one operation has for itself: an operation of the tape. */
typedef struct
{
  uint64_t start_ns, end_ns;
  uint32_t slice;
  uint32_t device;  /* slice on a device that it starts, + 1; 0: none */
  uint32_t forward; /* part that it is the backward of, + 1 */
  uint32_t nth;     /* stretch of its slice, from 0 */
} TapeTracePart;

/** A device that slices ran on: number k + 1 on the tape. */
typedef struct
{
  uint64_t id;           /* the trace's number for it */
  uint32_t name;         /* text; 0: the trace does not say */
  uint64_t total_bytes;  /* 0: not known */
  uint64_t streams[255]; /* the trace's numbers, in order of appearance */
  uint32_t n_streams;
  bool used;
} TapeTraceDevice;

/** A step of the training, as the profiler marks it. */
typedef struct
{
  uint64_t start_ns, end_ns;
  uint64_t number;
} TapeTraceStep;

typedef struct
{
  TdTapeWriter *w;
  const TdTapeImportOptions *watch; /* NULL: nobody looks on */
  char *texts; /* each with a NUL behind it; their places are their numbers; 0 is "" */
  uint64_t n_texts, room_texts;
  TapeMap text_map;
  TapeTraceSlice *slices;
  uint64_t n_slices, room_slices;
  TapeTracePart *parts;
  uint64_t n_parts, room_parts;
  TapeTraceDevice *devices;
  uint64_t n_devices, room_devices;
  TapeTraceStep *steps;
  uint64_t n_steps, room_steps;
  TapeMap tracks; /* hash of pid and tid -> number */
  uint32_t n_tracks;
  uint64_t first_ns, last_ns; /* of all slices */
  uint64_t n_left_out;        /* events that are none of these */
  uint64_t n_unissued;        /* slices of devices without the call that started them */
  uint64_t n_cut;             /* that reach beyond what they begin in */
  char *error;
  size_t n_error;
} TapeTrace;

const char *td__tape_trace_text (const TapeTrace *t, uint32_t text);
/** Return the number of a text.  Errors: false. */
bool td__tape_trace_name (TapeTrace *t, const char *text, size_t n, uint32_t *number);

/** Read the whole trace.  False with one line in t->error. */
bool td__tape_trace_take (TapeTrace *t, TapeTraceFile *f);
/** Find what lies in what, which is the stretch of whom, and what belongs together. */
bool td__tape_trace_nest (TapeTrace *t);
/** Write the iterations. */
bool td__tape_trace_write (TapeTrace *t, TdTapeImport *what);
void td__tape_trace_clear (TapeTrace *t);

/** Take a memory timeline as the trace of a snapshot.  False with one line in `error`. */
bool td__tape_timeline_take (TapeSnapshot *s, TapeTraceFile *f, char *error, size_t n);
