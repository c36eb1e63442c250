/* What observers are told of static functions.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "entry.h"

/** Say what happened; entry, miss and other_site may be NULL. */
void td__static_notify (TdStatic *s, TdStaticEventKind what, const TdEntry *entry,
                        const TdMiss *miss, const TdSite *other_site);
/** Count what is written to the standard output from here on, and let it through. */
void td__stdout_count (bool begin, uint64_t *bytes);
/** Tell what the code of a verified call did that a replay does not: each thing once. */
void td__static_notify_side_effects (TdStatic *s, const TdGuards *guards,
                                     uint64_t stdout_bytes);
/** A call begins. */
void td__static_notify_call (TdStatic *s);
/** A list of a static function begins, ends, or was thrown away; function 0: it is nobody's any
 * more. */
void td__static_notify_run (TdStaticRunMoment moment, TdStaticRunKind kind, uint32_t function,
                            uint32_t schedule, uint32_t list);
/** Say what the passes did to a step of the plan, or why they did nothing.  (pass-remarks.c) */
void td__plan_why (const TdPlan *p, uint32_t list, const TdStep *step, char why[TD_WHY_SIZE]);
/** Number a new plan, and describe it to whoever looks. */
void td__static_notify_plan (TdStatic *s, TdEntry *entry);
