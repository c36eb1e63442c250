/* Tracing: a static function's code runs as it always does, and its schedule is written.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "guard.h"
#include "map.h"
#include "schedule.h"

/** Random numbers that were given out while tracing. */
typedef struct TdDraw
{
  uint64_t offset, n;
  uint64_t at; /**< from where the call's begin; known once the trace is over */
  bool used;   /**< by a step; numbers for a new parameter are not drawn again */
} TdDraw;

typedef enum
{
  TD_TRACE_FORWARD,  /**< the code runs */
  TD_TRACE_WAITING,  /**< for the backward of its graph */
  TD_TRACE_BACKWARD, /**< which runs */
  TD_TRACE_DONE
} TdTraceState;

enum
{
  TD_TRACE_MAX_INTO = 8
};

typedef struct TdTrace
{
  TdTracer tracer; /**< first */
  struct TdTrace *next;
  TdTraceState state;
  uint32_t function; /**< the steps are reported to observers as its; 0: nobody asks */
  bool reported;     /**< a run of its backward began */
  bool in_effect;    /**< td_static_code runs: a replay runs it again, with what it reads and
                        reports */
  bool enters;       /**< a link was entered: the scope that opens next is its own */
  TdSchedule *schedule;
  TdGuards *guards;        /**< what the code could see; NULL in a trace of backward alone */
  TdMap nodes;             /**< node id -> node */
  TdMap buffers;           /**< buffer id -> value */
  TdMap external;          /**< node id -> external */
  const TdSite *call_site; /**< of the function's call: a step that has none of its own has
                              NULL, for another call may be at another line */
  uint64_t first, last;    /**< ids of the function's operations are first + 1 .. last */
  TdDraw *draws;
  uint32_t n_draws;
  uint64_t seed;
  TdNode **outs; /**< weak: valid while their ids are out_ids */
  uint64_t *out_ids;
  char refused[200]; /**< why no schedule can be made of it, or empty */
  const TdSite *refused_site;
  char why[200]; /**< the last backward could not be traced, or empty */
  /* one backward */
  TdBackwardTrace backward;
  bool *given; /**< by value: a gradient that was handed on */
  uint32_t n_given;
  TdNode *into; /**< what the next kernel may add to, if it can */
  struct
  {
    TdNode *node;
    uint32_t result;
  } into_results[TD_TRACE_MAX_INTO];
  int n_into_results;
  uint64_t random_before;
  /* of a verification: the arrays that it made, by value */
  bool keeps;
  TdBuffer **kept;
  uint32_t n_kept;
  /* of code that ran in place of a schedule, whose backward is compared when it has run */
  void (*traced_backward) (struct TdTrace *t); /**< called then, and may free t; or NULL */
  struct TdStatic *looked_at_by;
  struct TdTrace *next_looked_at;
  struct TdEntry *compared_with; /**< a reference */
} TdTrace;

/** Begin: what in makes from here on is traced. */
TdTrace *td__trace_begin (TdVar *const *in, int n_in, TdGuards *guards);
/** End of the code, which returned out.  The schedule is there if refused is empty. */
void td__trace_finish (TdTrace *t, TdVar *const *out, int n_out);
/** Run an effect, which a replay runs too; t may be NULL. */
void td__trace_effect (TdTracer *t, void (*fn) (void *user), void *user);
/** Wait for backward of the operations that were made.  Takes no ownership. */
void td__trace_wait (TdTrace *t);
/** Give up the arrays of a verification: sums of gradients are made in place from then on. */
void td__trace_keep_no_more (TdTrace *t);
/** Of its graph nothing lives any more, so that no backward can come. */
bool td__trace_is_over (const TdTrace *t);
/** Stop waiting and free it, but not its schedule. */
void td__trace_free (TdTrace *t);
/** A trace of a backward through a graph that was built again from a schedule: ops first + 1 ..
 * last, random numbers from key on; nodes and buffers are given by td__trace_know. */
TdTrace *td__trace_of_backward (TdSchedule *s, TdVar *const *externals, uint64_t first,
                                uint64_t last, TdRngKey key);
void td__trace_know (TdTrace *t, uint32_t node, const TdVar *v);
void td__trace_know_output (TdTrace *t, uint32_t k, TdVar *v);
