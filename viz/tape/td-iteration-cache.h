/* Loaded iterations by number: the least recently used leave when more than a budget is held.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-iteration.h"

typedef struct TdIterationCache TdIterationCache;

/** Units: bytes. Owner: the caller. */
TdIterationCache *td__iteration_cache_new (gsize budget);
void td__iteration_cache_free (TdIterationCache *self);
/** Keep an iteration under its number, in place of an earlier one. */
/** Keep at most this many bytes from the next put on. */
void td__iteration_cache_set_budget (TdIterationCache *self, gsize budget);
void td__iteration_cache_put (TdIterationCache *self, TdIteration *iteration);
/** Return it, or NULL. Owner: the cache. `stale` (may be NULL): it has grown since. */
TdIteration *td__iteration_cache_get (TdIterationCache *self, gint64 number, gboolean *stale);
/** Note that the iteration on the tape has grown. */
void td__iteration_cache_set_stale (TdIterationCache *self, gint64 number);
gsize td__iteration_cache_get_bytes (const TdIterationCache *self);
