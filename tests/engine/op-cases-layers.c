/* Rows for products, convolution, pooling, normalisation, losses and recurrent layers.
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"

const OpCase op_cases_layers[] = { { 0 } };
const int n_op_cases_layers = 0;
const OpError op_errors_layers[] = { { 0 } };
const int n_op_errors_layers = 0;
