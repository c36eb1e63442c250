/* The operations of optimizers and of their hooks, for who runs recorded ones again.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/core.h"

extern const TdOpClass td__weight_decay_class, td__lasso_class, td__gradient_noise_class,
    td__gradient_norm_class, td__gradient_clipping_class, td__gradient_hard_clipping_class,
    td__gradient_lars_class, td__unscale_class;

/** Tell the engine of them all (TdEngine.updates). */
void td__updates_attach (void);
