/*
 * The staticness advisor: which functions (links, scopes, the whole forward pass) of a dynamic
 * recording had the same structure all the time, which became dynamic and where, what was added
 * after the first iteration, and what a static schedule would save, "nothing" included.
 * Everything is read from the tape's own structures and times; nothing is assumed about
 * operations.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-json.h"
#include "tape/td-iteration.h"
#include "tape/td-range.h"
#include "td-tape-reader.h"

G_BEGIN_DECLS

typedef enum
{
  TD_STATIC_ALWAYS,  /* one structure */
  TD_STATIC_SETTLED, /* one structure for at least 8 iterations and half of them, until now */
  TD_STATIC_SHAPES,  /* one structure in several sizes: one schedule for each */
  TD_STATIC_SEVERAL, /* a few structures that come again and again: one schedule for each */
  TD_STATIC_ONCE,    /* ran in one iteration only: nothing is known */
  TD_STATIC_DYNAMIC,
} TdStaticVerdict;

/** One function, over all calls in all iterations. */
typedef struct
{
  const char
      *path; /* link path; scopes by name below their parent's path; "" the forward pass */
  gboolean is_link;
  gint parent; /* index; -1: it is the whole forward pass */
  TdStaticVerdict verdict;
  gboolean maximal;            /* may be one schedule, and what is around it may not */
  guint n_structures, n_sizes; /* distinct calls, without and with dimensions */
  guint64 n_iterations;        /* in which it ran */
  guint n_calls, n_ops;        /* in the newest iteration that has it; operations of one call */
  const char *site;            /* where it is called, "" unknown */
  gint64 since;                /* it has been what it is since this iteration */
  gint64 changed;  /* the first iteration in which it was something else, -1: none */
  gint64 compared; /* the iteration that this one is compared with */
  const char *op, *site_a, *site_b; /* the first difference between these; "" unknown */
  const char *why;                  /* in words: "took the else branch at model.c:37 (...)" */
  guint n_reads;                    /* values that the program read within one call */
  const char *read_site;            /* the first */
  guint n_attributes;               /* operations whose attributes change between iterations */
  const char *attribute;            /* the first: "dropout at model.c:12" */
  guint64 op_ns, gap_ns;            /* of an iteration: in its operations, and between them */
} TdStaticFunction;

/** A link or parameter that was not there in the first iteration. */
typedef struct
{
  gboolean is_parameter;
  const char *path;
  gint64 iteration;
  const char *site; /* of its first use */
} TdStaticAddition;

/** What a schedule of the newest iteration could save. Units: ns, bytes; of one iteration. */
typedef struct
{
  guint64 duration_ns, op_ns, gap_ns; /* medians of the newest iterations */
  guint64 static_gap_ns;              /* of the gaps those within static functions */
  guint n_ops;                        /* of forward and backward */
  guint n_fusable, n_groups; /* elementwise operations that meet, and in how many groups */
  guint64 fused_bytes;       /* that would not be written and read again */
  guint64 peak_bytes;        /* as it was */
  guint64 planned_bytes;     /* the most that is needed at once: no plan can do with less */
  guint n_outside;           /* forward operations in no function that may be static */
  guint64 outside_ns;
  gboolean with_recording; /* the gaps hold statistics and values being recorded */
  gboolean worth_it;
} TdStaticGain;

typedef struct
{
  guint64 n_iterations; /* whole ones on the tape */
  guint64 n_ran;        /* from the first of them to the newest, whatever was thinned */
  guint n_structures, n_looked_at;
  guint64 n_equal; /* the newest that are equal, sizes included; of those that ran */
  gint64 equal_since;
  guint n_functions;
  TdStaticFunction *functions; /* parents before children */
  guint n_additions;
  TdStaticAddition *additions;
  TdStaticGain gain;
  char *sentence; /* the advice in one line */
  /* private */
  GStringChunk *texts;
} TdStaticness;

/** Look at all structures of a tape (a spread of 200 where there are more) and at the times of
 * its newest iterations. `loaded`: one of them that is at hand, without what was discarded, so
 * that it is not loaded again; NULL: none. Owner: the caller. Sync: for the thread of the
 * reader. */
TdStaticness *td_staticness_new (TdTapeReader *reader, TdIteration *loaded);
/** The same of the iterations of a range, as if there were no others. */
TdStaticness *td_staticness_new_in (TdTapeReader *reader, TdRange range);
void td_staticness_free (TdStaticness *self);
/** Return the word of a verdict: "static", "settled", "sizes", "several", "once", "dynamic". */
const char *td_static_verdict_name (TdStaticVerdict verdict);
/** Say in one line how a function behaved. Owner: the caller. */
char *td_staticness_dup_function (const TdStaticness *self, const TdStaticFunction *function);
/** Append the report. */
void td_staticness_print (const TdStaticness *self, GString *out);
/** Append an object. */
void td_staticness_print_json (const TdStaticness *self, TdJson *json);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdStaticness, td_staticness_free)

G_END_DECLS
