/* Programs of a device: what a fused group of a static schedule runs as.  Included by device.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tapedeck-op.h"

/** One kernel call of an element-by-element operation.  Operands are numbered: inputs, then
 * outputs. */
typedef struct TdTileCall
{
  uint8_t family; /**< of TdTileFamily */
  uint8_t kind;   /**< TdUnaryKind, TdBinaryKind; TdDtype: of a condition, of what is cast */
  uint8_t dtype;  /**< of all operands but those */
  bool accumulate;
  bool broadcasts; /**< some operand is neither of the result's size nor one number nor a row */
  int8_t x, y, z;  /**< z = f (x, y); y: -1 where there is none */
  int8_t c;        /**< z = c ? x : y; -1 where there is none */
  uint32_t full;   /**< inputs as large as the result, as a mask */
  int64_t size;    /**< elements of the result */
  double p, q;     /**< TD_TILE_MASK: p is the share of zeros */
} TdTileCall;

typedef enum
{
  TD_TILE_UNARY,
  TD_TILE_GRAD, /**< unary_grad */
  TD_TILE_BINARY,
  TD_TILE_SELECT,
  TD_TILE_CAST,
  TD_TILE_MASK /**< z = x times TD_RANDOM_MASK, by a key that is given with every run */
} TdTileFamily;

/** The dtype of x; of y and z it is the call's, of c its kind. */
static inline TdDtype
td__tile_dtype_of_x (const TdTileCall *c)
{
  return (TdDtype)(c->family == TD_TILE_CAST ? c->kind : c->dtype);
}

enum
{
  TD_TILE_MAX_SLOTS = 16, /**< arrays that live in a tile only */
  TD_TILE_MAX_ROWS = 4,   /**< operands that are repeated */
  TD_TILE_MAX_DRAWS = 8,  /**< kernels that draw random numbers */
  TD_TILE_MAX_OPERANDS = 1000,
  TD_TILE_MAX_STEPS = 1024,
  TD_TILE_FEW_OPERANDS = 24, /**< where a program is one kernel that holds all in registers */
  TD_TILE_FEW_STEPS = 256
};

/** A kernel of a program; places: operands, then slots. */
typedef struct TdTileStep
{
  TdTileCall call;
  uint32_t x, y, z, c;
  uint32_t aside; /**< a slot for what is added to z then */
  uint32_t draw;  /**< TD_TILE_MASK: which of the run's keys */
  bool may_add;   /**< whether it adds is said with every run */
} TdTileStep;
/** A program over arrays of `size` elements: kernels element by element, each of them over one
 * stretch before all of them over the next.  A slot has the dtype of what is put there. Operand
 * k is repeated every period[k] elements: 0: it is as large, 1: it is one number. */
typedef struct TdProgram
{
  const TdTileStep *steps;
  const int64_t *period;
  uint32_t n_steps, n_operands, n_slots;
  int64_t size;
} TdProgram;
