/*
 * What of an iteration's time was spent in no operation, and why: of the host, its own code
 * between operations; of a device, waiting for the host, or between two that it had been given.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-panel.h"

G_BEGIN_DECLS

typedef enum
{
  TD_GAP_FIRST,    /* before the first operation */
  TD_GAP_CODE,     /* between operations: the program's own code */
  TD_GAP_BACKWARD, /* before backward begins */
  TD_GAP_UPDATE,   /* before the updates begin */
  TD_GAP_HOST,     /* a device had nothing to do: the host had not issued the next yet */
  TD_GAP_START,    /* it had: the device was between two */
  TD_N_GAPS
} TdGapKind;

typedef struct
{
  gint32 after, before; /* the events beside it; after -1: it is the first */
  guint64 start_ns, ns; /* start since the iteration began */
  TdGapKind kind;
} TdGap;

/** List the gaps of a device (0: the host) in order, of what was timed there; copies of the
 * host are none.  Owner: the caller, g_array_unref(). */
GArray *td_gaps_new (const TdIteration *iteration, guint device);
/** The same of one stream of a device; -1: of all, where a gap is of none of them. */
GArray *td_gaps_of_stream (const TdIteration *iteration, guint device, gint stream);
/** Return a gap's name: "before backward", "waits for the host". */
const char *td_gap_name (TdGapKind kind);

G_END_DECLS
