/* What the files of the iteration share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-iteration.h"

/** The iteration without what its runs have discarded; the same where there is nothing. Owner:
 * takes `it` if it is another, with a function of its own to free it. */
const TdTapeIteration *
td__iteration_without_discarded (const TdTapeIteration *it,
                                 void (**free_it) (const TdTapeIteration *));
/** By event what was replayed, function 0: nothing; NULL: nothing at all. Owner: the caller. */
TdReplayed *td__iteration_index_replayed (const TdTapeIteration *it);

/** td_iteration_new () of all that the tape has, also what was discarded. */
TdIteration *td__iteration_new_whole (const TdNamesClass *names, gpointer names_data,
                                      GDestroyNotify free_names_data,
                                      const TdTapeIteration *tape_iteration,
                                      void (*free_tape_iteration) (const TdTapeIteration *));

/** Wrap a tape's iteration that has its texts from where `like` has them; `tape` keeps `like`
 * alive. Of its events the first `n_run` have run. Owner: as td_iteration_new (). */
TdIteration *td__iteration_new_like (const TdIteration *like, const TdTapeIteration *tape,
                                     void (*free_tape) (const TdTapeIteration *), guint n_run);

/** The layers of an iteration whose tape has no calls of links: of paths, and scopes. Owner:
 * the caller, g_free (); names are kept in `strings`. of_event: the innermost of each event. */
TdLayer *td__layers_from_paths (const TdIteration *iteration, GStringChunk *strings,
                                gint32 *of_event, guint *n_layers);

/** Make the indices of keys now, which else are made when somebody looks for the first key. */
void td__iteration_index_keys (const TdIteration *self);

/** Return what is kept with the iteration and freed with it: `make` makes it at the first call
 * (any thread). There is one such thing, the graph. Owner: borrowed. */
gpointer td__iteration_keep (TdIteration *self, gpointer (*make) (TdIteration *self),
                             GDestroyNotify free_kept);
