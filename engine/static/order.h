/* Scheduling the steps of a list again, with respect to what depends on what.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "plan.h"

/** Order the steps of a list when some are merged.  joined[i] is the step that stands for step
 * i after merging, i itself if it is not merged; dead steps are left out.  `order` is filled
 * with the steps that remain, in a topological order close to the present one.  Returns how
 * many, or TD_ABSENT if steps that are to be merged depend on each other. */
uint32_t td__order_steps (const TdPlan *p, uint32_t list, const uint32_t *joined,
                          const bool *dead, uint32_t *order);
