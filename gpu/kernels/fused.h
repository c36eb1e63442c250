/* What a kernel made at run time is launched with: read by the host's C compiler, and by the
 * one that makes the kernel, which has no files but those beside it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "common.h"

enum
{
  TD_FUSED_OPERANDS = 24, /* a pack of each is held in registers */
  TD_FUSED_NUMBERS = 64,
  TD_FUSED_ROWS = 4,           /* operands that are repeated */
  TD_FUSED_DRAWS = 8,          /* steps that draw random numbers */
  TD_FUSED_COUNTS = 4,         /* operands that a counting kernel counts */
  TD_FUSED_COUNT_BYTES = 16896 /* of shared memory for each */
};

typedef struct TdFusedKey
{
  uint64_t seed, offset;
} TdFusedKey;

typedef struct TdFusedParams
{
  void *data[TD_FUSED_OPERANDS];
  int64_t n;
  uint32_t adds; /* by operand: what is written is added to what is there */
  int32_t packs; /* 16 bytes at a time */
  uint32_t period[TD_FUSED_ROWS];
  TdFusedKey key[TD_FUSED_DRAWS];
  double number[TD_FUSED_NUMBERS];
  TdCudaStats *parts[TD_FUSED_COUNTS]; /* of each block; read by kernels that count */
} TdFusedParams;
