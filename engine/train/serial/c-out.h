/* A C program that is being written: what its writers share.
 *
 * A value of the schedule is an array vN, N its number; nodes that show one value in other
 * shapes are the same array.  A step is nested loops, printed with their sizes, or a call of a
 * kernel (c-kernels/), whose text goes into the file if it is called.
 *
 * Half precision is uint16_t, and computed as the engine does it.  What goes element by element
 * turns each number into a float where it is read, and rounds it where it is written; a step
 * that calls a kernel is between two casts, in floats wN.  Where the engine rounds on the way,
 * texts have "$" and kernels ROUND.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "export.h"

typedef struct TdCOut
{
  const TdSchedule *s;
  TdExport *to;
  TdExportLacks lacks;
  TdDtype real;       /**< what kernels of the step compute in: TD_F32, TD_F64 */
  TdDtype half;       /**< what the step rounds to: TD_F16, TD_BF16; TD_F32: nothing */
  bool in_floats;     /**< its halves are floats, wN */
  int64_t room[2];    /**< numbers of the largest workspace that a kernel asked for: of float,
                         of double */
  int64_t floats;     /**< of the largest step whose halves are floats */
  uint64_t seed;      /**< of the random stream */
  uint64_t offset;    /**< of it where the traced call began */
  bool draws;         /**< seed and offset are known: a step draws */
  uint32_t n_scratch; /**< small arrays that were made up */
  char names[8][16];  /**< those of arrays that were asked for last */
  uint32_t n_names;
} TdCOut;

#define TD_C_PRINT(o, ...) td__export_print ((o)->to, __VA_ARGS__)

/** Write a step by a row's text.  NULL, or what of the operation cannot be written: "of f64".
 */
typedef const char *(*TdCWrite) (TdCOut *o, const TdStep *step, const char *text);

/** One operation of the engine: its writer, and what that makes of it. */
typedef struct TdCRow
{
  const char *op;
  TdCWrite write;
  const char *text;
  bool in_halves; /**< of calls: it only moves numbers, or knows halves */
  bool in_floats; /**< of others: it adds up what it writes, in floats where these are halves */
} TdCRow;
extern const TdCRow td__c_maps[], td__c_reductions[], td__c_moves[], td__c_calls[],
    td__c_windows[], td__c_losses[]; /* each ends in op NULL */

/** One function of c-kernels/, in the order in which they may call each other. */
typedef struct TdCKernel
{
  const char *name, *text;
} TdCKernel;
extern const TdCKernel td__c_kernels[];
extern const int td__c_n_kernels;

enum
{
  TD_C_DIMS = 2 * TD_MAX_DIMS, /* loops in each other */
  TD_C_ALIGNED = 16            /* numbers: where arrays that share memory begin */
};

/** How loops go through an array: a place, and a step for each of them. */
typedef struct TdCWalk
{
  uint32_t node;
  int64_t offset, stride[TD_C_DIMS];
} TdCWalk;

typedef struct TdCLoops
{
  int ndim;
  int64_t dim[TD_C_DIMS];
} TdCLoops;

static inline uint32_t
td__c_in (const TdCOut *o, const TdStep *step, uint32_t i)
{
  return td__step_in (o->s, step, i);
}
static inline uint32_t
td__c_out (const TdCOut *o, const TdStep *step, uint32_t i)
{
  return td__step_out (o->s, step, i);
}
static inline const TdShape *
td__c_shape (const TdCOut *o, uint32_t node)
{
  return &o->s->nodes[node].shape;
}
static inline bool
td__c_is_half (TdDtype dtype)
{
  return dtype == TD_F16 || dtype == TD_BF16;
}
static inline TdDtype
td__c_dtype (const TdCOut *o, uint32_t node)
{
  const TdDtype dtype = (TdDtype)o->s->nodes[node].dtype;

  return o->in_floats && td__c_is_half (dtype) ? TD_F32 : dtype;
}
static inline uint32_t
td__c_value (const TdCOut *o, uint32_t node)
{
  return o->s->nodes[node].value;
}
static inline long long
td__c_count (const TdCOut *o, uint32_t node)
{
  return (long long)td__size (td__c_shape (o, node));
}

/** "float", "int64_t"; "uint16_t" for halves. */
const char *td__c_type (TdDtype dtype);
/** "v3", "w3" in a step whose halves are floats; one of the eight last asked for. */
const char *td__c_v (TdCOut *o, uint32_t node);
/** Print what comes before and behind an expression that becomes a number of that type, and
 * before and behind the place of one that becomes a number to compute with. */
void td__c_begin_store (TdCOut *o, TdDtype dtype);
void td__c_end_store (TdCOut *o, TdDtype dtype);
void td__c_begin_load (TdCOut *o, TdDtype dtype);
void td__c_end_load (TdCOut *o, TdDtype dtype);
/** "f16", "bf16" for halves. */
const char *td__c_half (TdDtype dtype);
/** The walk of a node's array through loops of its own shape. */
TdCWalk td__c_walk (const TdCOut *o, uint32_t node);
/** The same through loops of a larger shape, to which it is broadcast. */
TdCWalk td__c_walk_under (const TdCOut *o, uint32_t node, const TdShape *y);
/** Print loops that copy: to's elements are from's.  combine: "=" or "+=". */
void td__c_copy (TdCOut *o, const TdCLoops *loops, TdCWalk to, TdCWalk from,
                 const char *combine);
/** Print a loop that fills an array with a number. */
void td__c_fill (TdCOut *o, uint32_t node, double number);
/** Print a number as a constant of that type. */
void td__c_number (TdCOut *o, double number, TdDtype dtype);
/** Print text, with "@name" as an attribute, "#" as n, "~" as the letter of float functions,
 * and "$" as the function that rounds to the step's halves, if it has any. */
void td__c_text (TdCOut *o, const TdStep *step, const char *text, size_t n_text, TdDtype dtype,
                 long long n);
/** Which axes of input 0 a reduction is over: its attribute axis, all without one. */
uint32_t td__c_reduced (const TdStep *step, int ndim);
/** Print the begin of a call, "  softmax_f64 (": of the kernel for what the step computes in.
 */
void td__c_call (TdCOut *o, const char *kernel);
/** "v3, ", or "0, " for an input that is not given. */
void td__c_operand (TdCOut *o, const TdStep *step, uint32_t i);
/** "v3". */
void td__c_result (TdCOut *o, const TdStep *step, uint32_t i);
/** The name of the workspace, when it has room for so many numbers of a type. */
const char *td__c_room (TdCOut *o, TdDtype real, int64_t n);
/** Print a loop that rounds what a kernel wrote to the step's halves, if it has any. */
void td__c_round (TdCOut *o, uint32_t node);
/** Print the begin of a loop over n numbers, "for (long i0 = 0; ...)". */
void td__c_each (TdCOut *o, long long n);
/** Sizes of x around n axes from `axis` on: before, of them, behind. */
void td__c_around (const TdShape *x, int axis, int n, long long size[3]);
/** Print the call that fills a node's array with what the step draws; p: of masks. */
void td__c_draw (TdCOut *o, const TdStep *step, uint32_t node, int kind, double p);
/** Print a step, or note that it cannot be. */
void td__c_step (TdCOut *o, const TdStep *step);
