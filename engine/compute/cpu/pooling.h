/* What the files that pool share.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "cpu.h"

/** Which operand is the image, which is pooled: in[0], in[1] or the output (2). */
typedef struct TdPoolRoles
{
  int image, pooled;
} TdPoolRoles;
extern const TdPoolRoles td__pool_roles[];

/** Windows over planes, not adaptive, averages by window.  *Errors*: TD_ERR_DTYPE. */
TdStatus td__cpu_pooling_2d (TdPoolKind kind, const TdPooling *attrs, const TdTensor *in,
                             int n_in, TdTensor *out, TdTensor *out2);
