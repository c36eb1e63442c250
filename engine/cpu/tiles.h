/* Programs of element-by-element kernels that run tile by tile: each kernel of the program over
 * one stretch of the arrays that fits the first-level cache, then all over the next.
 *
 * What kernel an operation is, is asked of the operation: it runs on a device that computes
 * nothing and notes what it is told to do.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../device.h"

/** One kernel call of an operation over arrays of one dtype.  Operands are numbered: inputs,
 * then outputs. */
typedef struct TdTileCall
{
  uint8_t family; /**< of TdTileFamily */
  uint8_t kind;   /**< TdUnaryKind, TdBinaryKind; of the condition: TdDtype */
  uint8_t dtype;
  bool accumulate;
  bool broadcasts; /**< some operand is neither of the result's size nor one number nor a row */
  int8_t x, y, z;  /**< z = f (x, y); y: -1 where there is none */
  int8_t c;        /**< z = c ? x : y; -1 where there is none */
  uint32_t full;   /**< inputs as large as the result, as a mask */
  int64_t size;    /**< elements of the result */
  double p, q;
} TdTileCall;

typedef enum
{
  TD_TILE_UNARY,
  TD_TILE_GRAD, /**< unary_grad */
  TD_TILE_BINARY,
  TD_TILE_SELECT
} TdTileFamily;

enum
{
  TD_TILE_MAX_SLOTS = 16, /**< arrays that live in a tile only */
  TD_TILE_MAX_ROWS = 4,   /**< operands that are repeated */
  TD_TILE_MAX_OPERANDS = 1000
};

/** Say whether a device's kernels are those of the programs. */
bool td__tiles_known (const TdDevice *d);
/** Ask an operation what it does, of operands that need no data.  Returns false where that is
 * not one kernel call on its operands that a program can have. */
bool td__tiles_record (TdOpCall *call, TdTileCall *out);

/** A kernel of a program; places: operands, then slots. */
typedef struct TdTileStep
{
  TdTileCall call;
  uint32_t x, y, z, c;
  uint32_t aside; /**< a slot for what is added to z then */
  bool may_add;   /**< whether it adds is said with every run */
} TdTileStep;
typedef struct TdTiles TdTiles;
/** A program over arrays of `size` elements; operand k is repeated every period[k] of them: 0:
 * it is as large, 1: it is one number.  *Owner*: the caller, td__tiles_free. */
TdTiles *td__tiles_new (const TdTileStep *steps, uint32_t n, const int64_t *period,
                        uint32_t n_operands, uint32_t n_slots, int64_t size);
void td__tiles_free (TdTiles *t);
/** adds: by operand, for kernels that may add to it; NULL where there are none. */
void td__tiles_run (const TdTiles *t, const TdTensor *operands, const bool *adds);
/** Elements of a tile. */
int64_t td__tiles_length (const TdTiles *t);
