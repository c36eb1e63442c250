/* A stretch of steps that is one CUDA graph, as capture.c and capture-graph.c share it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "capture.h"

enum
{
  TD_MAX_MOVES = 2 /**< captures that are made anew because an array lies elsewhere */
};

/** An operand whose memory may be another at every call. */
typedef struct
{
  TdTensor *t;
  uint32_t value, at; /* of the launched steps of the stretch */
  bool reads, writes;
  void *seen; /* where it was when the graph got it */
  int fixed;  /* its fixed place; -1: none */
} TdStretchRef;

/** A step that is launched. */
typedef struct
{
  uint32_t ready;
  uint64_t adds; /* by output: added to what is there */
  TdRngKey key;
  uint16_t places; /* of indices that it checks: of late-index.h */
  bool changed;
} TdLaunched;

/** An array's fixed place while the stretch runs. */
typedef struct
{
  uint32_t value;
  TdBlock *block;
  bool owns; /* else another value's, in the same array */
} TdFixedPlace;

typedef struct
{
  uint32_t from, to; /* of the ready steps */
  TdGraph *graph;
  TdLaunched *steps;
  uint32_t n_steps;
  TdStretchRef *refs;
  uint32_t n_refs;
  TdFixedPlace *fixed;
  uint32_t n_fixed;
  TdSpan *written;
} TdStretch;

typedef struct TdCaptures
{
  TdDevice *device;
  const char **alone; /* by ready step: why it is launched by itself, owned; NULL: it is not */
  uint8_t *trouble;   /* by ready step */
  TdEventPlace *at;   /* by ready step: where this run of it is recorded */
  uint8_t *moves;     /* by value; TD_MAX_MOVES: it gets a fixed place */
  uint32_t *blamed;   /* by value: the last search for blame that found it */
  uint32_t n_searches;
  TdStretch *stretches;
  uint32_t n;
  bool off; /* the device makes no graphs */
} TdCaptures;

/** Places for the arrays that were found to move; what lies in one array has one place. */
void td__stretch_make_places (const TdPlay *p, TdStretch *st);
void td__stretch_drop_places (TdStretch *st);
/** Do its values share arrays as they share places, and no others? */
bool td__stretch_places_hold (const TdPlay *p, const TdStretch *st);
/** Point operands at the fixed places, or back at the arrays. */
void td__stretch_bind (const TdPlay *p, const TdStretch *st, bool fixed);
/** Copy what the stretch finds in its fixed places, before it; what it leaves there, after. */
TdStatus td__stretch_copy (const TdPlay *p, const TdStretch *st, bool before);
/** Let the slots of steps go into a capture: all of them, or those that have changed.  NULL:
 * all is well; else why not, and *bad is the step, TD_ABSENT where it is none's fault. */
const char *td__stretch_record (TdPlay *p, TdStretch *st, bool all, uint32_t *bad);
