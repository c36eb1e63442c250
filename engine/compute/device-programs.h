/* Programs of a device: the form in which fused groups of static schedules run.  Included by
 * device.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tapedeck-op.h"

/** The kernel call of an elementwise operation.  Operands are numbered, inputs first. */
typedef struct TdTileCall
{
  uint8_t family; /**< of TdTileFamily */
  uint8_t kind;   /**< TdUnaryKind, TdBinaryKind; TdDtype: of a condition, of what is cast */
  uint8_t dtype;  /**< of all operands but those */
  bool accumulate;
  bool broadcasts; /**< some operand is neither as large as the result, nor one number, nor a
                      row */
  int8_t x, y, z;  /**< z = f (x, y); y: -1 if there is none */
  int8_t c;        /**< z = c ? x : y; -1 if there is none */
  uint32_t full;   /**< bit mask of the inputs that are as large as the result */
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
  TD_TILE_MASK /**< z = x times TD_RANDOM_MASK, by a key that each run passes */
} TdTileFamily;

/** The dtype of x; of y and z it is the call's, of c its kind. */
static inline TdDtype
td__tile_dtype_of_x (const TdTileCall *c)
{
  return (TdDtype)(c->family == TD_TILE_CAST ? c->kind : c->dtype);
}

enum
{
  TD_TILE_MAX_SLOTS = 16, /**< arrays that live only in a tile */
  TD_TILE_MAX_ROWS = 4,   /**< operands that are broadcast */
  TD_TILE_MAX_DRAWS = 8,  /**< kernels that draw random numbers */
  TD_TILE_MAX_OPERANDS = 1000,
  TD_TILE_MAX_STEPS = 1024,
  TD_TILE_FEW_OPERANDS = 24, /**< if the device runs a program as one kernel */
  TD_TILE_FEW_STEPS = 256
};

/** A step of a program.  Its operands are places: operands of the program, then slots. */
typedef struct TdTileStep
{
  TdTileCall call;
  uint32_t x, y, z, c;
  uint32_t addend; /**< a slot for the addend if the step accumulates into z */
  uint32_t draw;   /**< TD_TILE_MASK: which of the run's keys */
  bool may_add;    /**< each run says whether it accumulates */
} TdTileStep;
/** A program over arrays of `size` elements: elementwise steps, which all run on one tile
 * before the next.  A slot has the dtype of the value in it.  Operand k is broadcast: it
 * repeats after period[k] elements; 0: it has `size` elements, 1: it is one number. */
typedef struct TdProgram
{
  const TdTileStep *steps;
  const int64_t *period;
  uint32_t n_steps, n_operands, n_slots;
  int64_t size;
} TdProgram;
