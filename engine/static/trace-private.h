/* What the two halves of the tracer share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "trace.h"

/** Remember the first reason why no schedule can be made. */
void td__trace_refuse (TdTrace *t, const TdSite *site, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
/** A trace is freed: no backward is its any more.  (trace-backward.c) */
void td__trace_forget (const TdTrace *t);
/** Tell observers of the last step that was written. (notify.c) */
void td__trace_notify (TdTrace *t);
/** The line of a step: NULL where it is that of the function's call. */
static inline const TdSite *
td__trace_site (const TdTrace *t, const TdSite *site)
{
  return site == t->call_site ? NULL : site;
}

/** The steps that are being written. */
TdSteps *td__trace_list (TdTrace *t);
uint32_t td__trace_new_node (TdTrace *t, TdValueKind kind, uint32_t index, const TdNode *n,
                             const TdBuffer *b);
/** The node of a variable that a step reads; TD_ABSENT after td__trace_refuse. */
uint32_t td__trace_operand (TdTrace *t, TdVar *v);
/** The same for one that a step writes into. */
uint32_t td__trace_target (TdTrace *t, TdVar *v);
