/* A C program that is being written: what its writers share.
 *
 * A value of the schedule is an array vN, N its number; nodes that show one value in other
 * shapes are the same array.  A step is nested loops, printed with their sizes, or a call of a
 * kernel (c-kernels/), whose text goes into the file if it is called.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "export.h"

typedef struct TdCOut
{
  const TdSchedule *s;
  TdExport *to;
  TdExportLacks lacks;
  int64_t room;       /**< floats of the largest workspace that a kernel asked for */
  uint64_t seed;      /**< of the random stream */
  uint64_t offset;    /**< of it where the traced call began */
  bool draws;         /**< seed and offset are known: a step draws */
  uint32_t n_scratch; /**< small arrays that were made up */
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
} TdCRow;
extern const TdCRow td__c_maps[], td__c_reductions[], td__c_moves[], td__c_calls[],
    td__c_losses[]; /* each ends in op NULL */

/** One function of c-kernels/, in the order in which they may call each other. */
typedef struct TdCKernel
{
  const char *name, *text;
} TdCKernel;
extern const TdCKernel td__c_kernels[];
extern const int td__c_n_kernels;

enum
{
  TD_C_DIMS = 2 * TD_MAX_DIMS /* loops in each other */
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
static inline TdDtype
td__c_dtype (const TdCOut *o, uint32_t node)
{
  return (TdDtype)o->s->nodes[node].dtype;
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

/** Say whether a C program has a type for it: all but halves. */
bool td__c_has_type (TdDtype dtype);
/** "float", "int64_t". */
const char *td__c_type (TdDtype dtype);
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
/** Print text, with "@name" as an attribute, "#" as n, and "~" as the letter of float
 * functions.
 */
void td__c_text (TdCOut *o, const TdStep *step, const char *text, size_t n_text, TdDtype dtype,
                 long long n);
/** Which axes of input 0 a reduction is over: its attribute axis, all without one. */
uint32_t td__c_reduced (const TdStep *step, int ndim);
/** Print a reduction of inputs a, b, ... over the axes in mask, "start|step|end". */
void td__c_reduce (TdCOut *o, const TdStep *step, uint32_t mask, const char *text);
/** NULL, or why not: all of the step's floating-point arrays are f32, as kernels want them. */
const char *td__c_only_floats (const TdCOut *o, const TdStep *step);
/** Note that a step draws at an offset of the stream; prints nothing. */
void td__c_draws (TdCOut *o, const TdStep *step);
