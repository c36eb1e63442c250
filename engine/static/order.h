/* A list in another order: what has to come before what.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "plan.h"

/** Order a list anew: joined[i] is the step that i is run as part of
 * (itself if none), which stands for all; dead steps are none.  Fills order with the steps that
 * stand for themselves or others, such that nothing is used before it is made; as they were,
 * where possible.  Returns how many, or TD_ABSENT if the joined ones depend on each other. */
uint32_t td__order_steps (const TdPlan *p, uint32_t list, const uint32_t *joined,
                          const bool *dead, uint32_t *order);
