/*
 * What the parts of the staticness advisor share.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-staticness.h"

G_BEGIN_DECLS

/* Iterations whose times are looked at. */
#define TD__STATIC_SAMPLE 8
/* Another one is not loaded when those that are have more events than this. */
#define TD__STATIC_SAMPLE_EVENTS 500000

/** The calls of one function in one structure. */
typedef struct
{
  guint64 print[2]; /* without dimensions, with them */
  guint n_calls, n_ops, n_reads;
  const char *read_site;
} TdStaticCalls;

/** One distinct structure on the tape. */
typedef struct
{
  guint32 row; /* summary of an iteration that has it and is kept */
  guint64 number;
  TdIteration *iteration; /* NULL: not looked at, or it could not be loaded */
  GHashTable *calls;      /* function index + 1 -> TdStaticCalls *, owned */
} TdStaticUnit;

/** The advisor at work. */
typedef struct
{
  TdStaticness *s;
  TdTapeReader *reader;
  TdIteration *loaded; /* the caller has it; NULL: none */
  TdRange range;       /* of iterations that are looked at */
  GArray *units;       /* TdStaticUnit, by their first iteration */
  GArray *rows;        /* guint32: summaries of whole iterations, in order */
  GArray *unit_of;     /* guint32: unit of each of them */
  GArray *functions;   /* TdStaticFunction */
  GHashTable *by_key;  /* function key -> index + 1 */
  GHashTable *seen;    /* structures of functions in the unit that is looked at */
  GHashTable *known;   /* links and parameters seen so far */
  GArray *additions;   /* TdStaticAddition */
  guint64 n_events;    /* looked at so far */
  GPtrArray *prints;   /* by function: GHashTable of structures seen */
  GPtrArray *sizes;    /* by function: the same with dimensions */
  GPtrArray *newest;   /* TdIteration: the newest ones of the newest structure */
} TdStaticScan;

/** Load the iteration of a row for this thread only. NULL: it is gone. Owner: the caller. */
TdIteration *td__static_load (const TdStaticScan *scan, guint32 row);
/** Return the function of a layer of an iteration, -1 if it was never seen. */
gint td__static_function_of (const TdStaticScan *scan, const TdIteration *iteration,
                             gint layer);
/** Say whether a function may be run from static schedules. */
gboolean td__static_can_be (const TdStaticFunction *function);

/* td-staticness-gain.c */
/** Mark the events within maximal functions, with their gradients. Owner: the caller. */
guint8 *td__static_mark (const TdStaticScan *scan, const TdIteration *iteration);
void td__static_measure (TdStaticScan *scan);
/* td-staticness-print.c */
char *td__static_sentence (const TdStaticness *self);

G_END_DECLS
