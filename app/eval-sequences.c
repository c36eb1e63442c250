/* Rows of `tapedeck eval`: sequences, attention, recomputation.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <stddef.h>

const TdEvalFunction td_eval_sequences[] = {
  { .name = NULL },
};
