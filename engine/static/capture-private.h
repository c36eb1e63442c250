/* A segment of steps that is one CUDA graph, as capture.c and capture-graph.c share it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "capture.h"

enum
{
  TD_MAX_MOVES = 2 /**< so often a segment is captured again because an array has moved */
};

/** An operand whose memory may be another at every call. */
typedef struct
{
  TdTensor *t;
  uint32_t value, at; /* index among the segment's steps */
  bool reads, writes;
  void *seen; /* its address in the graph */
  int fixed;  /* its fixed place; -1: none */
} TdCaptureSegmentRef;

/** A step that is launched. */
typedef struct
{
  uint32_t ready;
  uint64_t adds; /* by output: added to what is there */
  TdRngKey key;
  uint16_t places; /* how many checks of indices it makes (async-index.h) */
  bool changed;
} TdLaunched;

/** The fixed place of an array while the segment runs. */
typedef struct
{
  uint32_t value;
  TdBlock *block;
  bool owns; /* false: the place belongs to another value of the same array */
} TdFixedPlace;

typedef struct
{
  uint32_t from, to; /* first ready step, and the one after the last */
  TdGraph *graph;
  TdLaunched *steps;
  uint32_t n_steps;
  TdCaptureSegmentRef *refs;
  uint32_t n_refs;
  TdFixedPlace *fixed;
  uint32_t n_fixed;
  TdSpan *written;
} TdCaptureSegment;

typedef struct TdCaptures
{
  TdDevice *device;
  const char **alone; /* by ready step: why it is launched alone (owned), or NULL */
  uint8_t *trouble;   /* by ready step */
  TdEventPlace *at;   /* by ready step: its event in this run */
  uint8_t *moves; /* by value: captures it has caused; at TD_MAX_MOVES it gets a fixed place */
  uint32_t *blamed; /* by value: the last search for blame that found it */
  uint32_t n_searches;
  TdCaptureSegment *segments;
  uint32_t n;
  bool off; /* the device cannot capture graphs */
} TdCaptures;

/** Allocate a fixed place for each array that was found to move. */
void td__segment_make_places (const TdReplay *p, TdCaptureSegment *st);
void td__segment_drop_places (TdCaptureSegment *st);
/** Whether values share arrays in this call exactly where they share fixed places. */
bool td__segment_places_hold (const TdReplay *p, const TdCaptureSegment *st);
/** Point operands at the fixed places, or back at the arrays. */
void td__segment_bind (const TdReplay *p, const TdCaptureSegment *st, bool fixed);
/** Copy what the segment reads into its fixed places (before), or what it wrote back (after).
 */
TdStatus td__segment_copy (const TdReplay *p, const TdCaptureSegment *st, bool before);
/** Capture all steps, or only those that are marked as changed.  Returns NULL on success, else
 * the reason; *bad is then the step at fault, or TD_ABSENT. */
const char *td__segment_record (TdReplay *p, TdCaptureSegment *st, bool all, uint32_t *bad);
