/* What the files of recompute share.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/core.h"
#include "recompute.h"
#include "td-tape-reader.h"
#include "td-tape-writer.h"

/** The tape that is written. */
typedef struct
{
  TdTapeWriter *w;
  char path[4200]; /* where it is until it is whole */
  TdTapeStats *stats;
  TdTapeTensorRef *tensors;
  uint32_t n_stats, n_tensors, room_stats, room_tensors;
} TdRecomputeOut;

typedef struct
{
  const TdRecomputeOptions *options;
  TdRecomputeResult *result;
  TdTapeReader *r;
  const TdTapeIteration *it;
  const TdOpClass **classes; /* by event; NULL: it failed then, and is not run */
  const TdTapeCall **calls;  /* by event; NULL: without attributes */
  uint32_t *last_use;        /* by variable: the event that needs it last */
  uint32_t *first_stats;     /* by event: of stats_order; and one more */
  uint32_t *stats_order;     /* statistics by event */
  TdVar **vars;              /* by variable; NULL: not there yet, or no more */
  uint32_t next_input;       /* of it->tensors, that an event reads */
  uint32_t next_value;       /* of it->tensors, of the event that ran last */
  char *host;                /* elements of one array */
  size_t room;
  TdRecomputeOut out;
} TdRecompute;

/** Say why not, once; returns false. */
bool td__recompute_refuse (TdRecompute *c, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
/** "conv2d (res1/conv) at model.c:12". */
void td__recompute_event_text (const TdRecompute *c, uint32_t event, char *text, size_t size);
/** Bytes of a variable's array. */
uint64_t td__recompute_bytes (const TdTapeIteration *it, uint32_t var);
/** Make room in c->host.  False: no memory. */
bool td__recompute_room (TdRecompute *c, uint64_t bytes);

/** Before which event a tensor of flag BEFORE is read. */
static inline uint32_t
td__recompute_before (const TdTapeTensorRef *ref)
{
  return ref->event == TD_TAPE_NONE ? 0 : ref->event + 1;
}

/* recompute-inputs.c */
/** Look whether everything is there that is needed.  False: refused. */
bool td__recompute_prepare (TdRecompute *c);
/** Bring in what the event reads and no event made. */
bool td__recompute_inputs (TdRecompute *c, uint32_t event);

/* recompute-write.c */
bool td__recompute_open (TdRecompute *c);
/** Add a variable's statistics and elements, which are in c->host, as of after `event`. */
bool td__recompute_put (TdRecompute *c, uint32_t var, uint32_t event, uint32_t flags,
                        const TdTapeStats *stats);
/** Write the iteration, close the tape; if it is `whole`, put it in its place. */
bool td__recompute_close (TdRecompute *c, bool whole);
