/* Between what a tape says as a trace, and the two ways of writing one down.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape-reader.h"

/** A row of a trace. */
typedef enum
{
  TAPE_TRACK_THREAD,  /* slices in each other */
  TAPE_TRACK_BYTES,   /* values: bytes of memory */
  TAPE_TRACK_NUMBERS, /* values of any other kind */
} TapeTrackKind;

/** What is said of a slice besides its time; texts may be "". */
typedef struct
{
  const char *name, *category;
  const char *layer, *site, *attributes;
  uint64_t iteration, event;
  bool is_operation; /* else a layer, of which only the name is said */
  uint64_t flow;     /* from the host's slice to the device's: a number of its own; 0: none */
  bool flow_ends;
} TapeSliceText;

/** Where a trace is written, and how.  Tracks have numbers from 1 on, and are said before they
 * are used. Times are ns since the tape began. */
typedef struct TapeTraceOut
{
  FILE *out;
  void (*begin) (struct TapeTraceOut *o, const char *program);
  void (*track) (struct TapeTraceOut *o, uint64_t track, TapeTrackKind kind, const char *name);
  /** A slice that is over, or one that another call closes. */
  void (*slice) (struct TapeTraceOut *o, uint64_t track, uint64_t start_ns, uint64_t end_ns,
                 const TapeSliceText *text);
  void (*open) (struct TapeTraceOut *o, uint64_t track, uint64_t ns, const TapeSliceText *text);
  void (*close) (struct TapeTraceOut *o, uint64_t track, uint64_t ns);
  void (*value) (struct TapeTraceOut *o, uint64_t track, TapeTrackKind kind, const char *name,
                 uint64_t ns, double value);
  void (*end) (struct TapeTraceOut *o);
  uint64_t n; /* the writer's own */
} TapeTraceOut;

/** Chrome's JSON; Perfetto's protobuf. */
void td__tape_chrome (TapeTraceOut *o);
void td__tape_perfetto (TapeTraceOut *o);
