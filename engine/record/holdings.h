/* What outlived its iteration and who keeps it, told at ends of iterations.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "recorder.h"

TdHoldings *td__holdings_new (void);
void td__holdings_free (TdHoldings *h);
/** An iteration begins, whose first node will have this id. */
void td__holdings_begin (TdHoldings *h, uint64_t iteration, uint64_t first_id);
/** An iteration of n_events ends, and its scope is closed: write HELD, unless that would cost
 * more than the events since the last time allow. */
void td__holdings_mark (TdHoldings *h, TdRecorder *r, uint64_t n_events);

/** What an iteration left that is still there now, of which `what` says the largest part. */
typedef struct
{
  uint64_t bytes, n_arrays;
  char what[400];
} TdOutlived;

/** At the end of an iteration, whose scope is closed: what `iteration`, an earlier one, has
 * left that is neither a parameter, nor its gradient, nor what an optimizer remembers.
 * *Returns*: whether there is any. */
bool td__holdings_outlived (TdHoldings *h, uint64_t iteration, TdOutlived *out);

/** The iteration that made node `id`; false: none, it was there before the first. */
bool td__holdings_iteration_of (const TdHoldings *h, uint64_t id, uint64_t *iteration);
/** Whether the array that node `id` has is one to tell about, if it is still there, and the
 * iteration that made it.  What was there before the first iteration is not, and neither are
 * parameters and what an optimizer remembers of them, if the first iteration made them. */
bool td__holdings_is_told (const TdHoldings *h, const TdBuffer *b, uint64_t id,
                           uint64_t *iteration);
/** Who holds a live handle: the program before those that hold it by way of others. */
uint8_t td__holdings_holder (const TdVar *v);
/** Where the program took hold of it, or made the optimizer that has it; NULL: not known. */
const TdSite *td__holdings_holder_site (const TdVar *v);

/* The graph behind the groups (objects.c). */
typedef struct TdObjects TdObjects;

TdObjects *td__objects_new (void);
void td__objects_free (TdObjects *o);
/** So many events have run. */
void td__objects_count (TdObjects *o, uint64_t n_events);
/** Write OBJECTS and REFERENCES of what is there now, if it is time. *Returns*: the cost. */
uint64_t td__objects_mark (TdObjects *o, const TdHoldings *h, TdRecorder *r, uint64_t n_visits);
