/* When kernels really ran, as CUPTI reports it; its own types are in cupti.c alone.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Begin tracing, where TAPEDECK_CUPTI=1 asks for it; before the first kernel, since CUPTI
 * changes kernels as they are loaded.  False: not asked for, or not here. */
bool td_cupti_start (void);
/** Say what td_cupti_start found, in a few words; "" when nobody asked. */
const char *td_cupti_text (void);
/** The time that kernels are given in, now, in ns. */
uint64_t td_cupti_now (void);
/** What is launched from here on belongs to `id`, up to the pop. */
void td_cupti_push (uint64_t id);
void td_cupti_pop (void);
/** Bring what is known up to date; force: everything that was launched and is done. */
void td_cupti_flush (bool force);
/** From the first begin to the last end of what belongs to `id`.  False: not known (yet). */
bool td_cupti_take (uint64_t id, uint64_t *start, uint64_t *end);
