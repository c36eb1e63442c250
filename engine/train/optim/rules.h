/* The kinds of optimizer there are.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "optimizer.h"

extern const TdOptClass td__sgd_class, td__momentum_sgd_class, td__corrected_momentum_sgd_class,
    td__nesterov_ag_class, td__ada_grad_class, td__ada_delta_class, td__rmsprop_class,
    td__rmsprop_graves_class, td__smorms3_class, td__adam_class;
