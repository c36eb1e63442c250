/* What the files of the iteration share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-iteration.h"

/** Wrap a tape's iteration that has its texts from where `like` has them; `tape` keeps `like`
 * alive. Of its events the first `n_run` have run. Owner: as td_iteration_new (). */
TdIteration *td__iteration_new_like (const TdIteration *like, const TdTapeIteration *tape,
                                     void (*free_tape) (const TdTapeIteration *), guint n_run);
