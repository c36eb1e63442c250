/* An ONNX graph that is being written.
 *
 * *Source*: github.com/onnx/onnx, onnx.proto3 and Operators.md, opsets 17 to 21.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "export.h"
#include "onnx-loops.h"
#include "onnx-names.h"
#include "onnx-sizes.h"
#include "onnx-weights.h"
#include "protobuf.h"

enum
{
  TD_ONNX_TEXT = 420, /* of a name, with its 0 */
  TD_ONNX_NONES = 8   /* lists that one step may have */
};

typedef struct TdOnnx
{
  const TdSchedule *s;
  const TdStep *step; /**< that is being written; NULL: none */
  TdMessage graph;
  TdOnnxNames values, nodes;
  const char **value; /**< names by node of the schedule; NULL: not yet */
  const char
      *symbol[TD_ONNX_SYMBOLS]; /**< values that hold what a symbol stands for, or NULL */
  TdOnnxSizes sizes;
  TdOnnxLoops loops;
  TdOnnxWeights weights;
  int opset;
  TdExportLacks lacks;
  char none[TD_ONNX_NONES][TD_ONNX_TEXT]; /**< the last lists with a size of 0 */
  unsigned n_nones;
} TdOnnx;

/** One node that is being written.  Where the standard's operator does not take the step's
 * type (onnx-types.c), it is one of floats between casts. */
typedef struct TdOnnxNodeWriter
{
  TdOnnx *o;
  TdMessage m;
  bool reshapes;
  TdDtype half; /**< that it is cast from and to; TD_F32: it is not */
  char wide[TD_ONNX_TEXT], result[TD_ONNX_TEXT]; /**< of its one result: in float, and cast */
} TdOnnxNodeWriter;

/** The half precision of the step that an operator does not take, or TD_F32. */
TdDtype td__onnx_cast_around (const TdOnnx *o, const char *type);
/** Write a step of doubles whose operator would have its number as a float; false: it is none.
 */
bool td__onnx_double (TdOnnx *o, const TdStep *step);

TdOnnxNodeWriter td__onnx_node (TdOnnx *o, const char *type, const char *domain);
void td__onnx_in (TdOnnxNodeWriter *n, const char *name);
void td__onnx_in_node (TdOnnxNodeWriter *n, uint32_t node);
void td__onnx_out (TdOnnxNodeWriter *n, const char *name);
void td__onnx_out_node (TdOnnxNodeWriter *n, uint32_t node);
void td__onnx_int (TdOnnxNodeWriter *n, const char *name, int64_t value);
void td__onnx_float (TdOnnxNodeWriter *n, const char *name, double value);
void td__onnx_ints (TdOnnxNodeWriter *n, const char *name, const int64_t *values, int count);
void td__onnx_text (TdOnnxNodeWriter *n, const char *name, const char *text);
/** A list of the same word, count times. */
void td__onnx_texts (TdOnnxNodeWriter *n, const char *name, const char *text, int count);
void td__onnx_end (TdOnnxNodeWriter *n);
/** A whole node; what is NULL is left out. */
typedef struct TdOnnxCall
{
  const char *type, *in[3];
  const char *list, *number, *word; /**< names of attributes ... */
  const int64_t *values;            /**< ... and what they are */
  int n_values;
  int64_t value;
  const char *text;
} TdOnnxCall;
/** Write it; result: the name of what it makes, NULL for a new one, which goes to `to` (may be
 * one of its inputs). */
const char *td__onnx_call (TdOnnx *o, TdOnnxCall call, const char *result, char *to);
/** The name of a node's value: of a parameter its path, of another the path of the link that
 * made it and its operation.  *Owner*: o. */
const char *td__onnx_value (TdOnnx *o, uint32_t node);
/** A constant with these numbers; its name goes to text. */
const char *td__onnx_constant_ints (TdOnnx *o, const int64_t *values, int count, char *text,
                                    size_t size);
const char *td__onnx_constant (TdOnnx *o, TdDtype dtype, const TdShape *shape,
                               const void *numbers, char *text, size_t size);
const char *td__onnx_constant_number (TdOnnx *o, double value, TdDtype dtype, char *text,
                                      size_t size);
/** The same of numbers of any floating-point type. */
const char *td__onnx_constant_floats (TdOnnx *o, TdDtype dtype, const TdShape *shape,
                                      const double *numbers, char *text, size_t size);
/** A value in another type; its name goes to `to`, which may be the value's. */
const char *td__onnx_cast (TdOnnx *o, const char *value, TdDtype dtype, const char *result,
                           char *to);
/** A new name. */
const char *td__onnx_made (TdOnnx *o, char *text, size_t size);

/* Sizes that follow a symbol (onnx-size-lists.c). */
/** A list of sizes as a value of i64: a constant, or computed where some follow a symbol. */
const char *td__onnx_size_list (TdOnnx *o, const TdOnnxSize *sizes, int n, char *text,
                                size_t size);
/** The same of a node's shape. */
const char *td__onnx_shape_of (TdOnnx *o, uint32_t node, char *text, size_t size);
/** The same for Reshape of an array with the sizes `from`, which may leave sizes open. */
const char *td__onnx_reshape_list (TdOnnx *o, const TdOnnxSize *from, int n_from,
                                   const TdOnnxSize *sizes, int n, char *text, size_t size);
/** Is a list one for Reshape that has a size of 0, which means 0? */
bool td__onnx_has_none (const TdOnnx *o, const char *list);
/** Zeros of the type in these sizes; the value's name goes to text. */
const char *td__onnx_zeros (TdOnnx *o, TdDtype dtype, const TdOnnxSize *sizes, int n,
                            char *text, size_t size);
/** One size as a number of the type, in the shape (). */
const char *td__onnx_size_number (TdOnnx *o, const TdOnnxSize *s, TdDtype dtype, char *text,
                                  size_t size);
/** A size that the file must have as a number: what it follows is fixed from now on. */
int64_t td__onnx_fixed (TdOnnx *o, const TdStep *step, uint32_t node, int axis);

/** Write an operation that is several of ONNX's (onnx-recipes.c), or moves elements
 * (onnx-shapes.c).  False where it is none; *why: what of it cannot be written, or NULL. */
bool td__onnx_recipe (TdOnnx *o, const TdStep *step, const char **why);
bool td__onnx_shape (TdOnnx *o, const TdStep *step);
/** Write a gradient that moves elements or is a convolution (onnx-gradients.c), or what is
 * linear along each axis of an image (onnx-maps.c).  False where it is none. */
bool td__onnx_gradient (TdOnnx *o, const TdStep *step);
bool td__onnx_map (TdOnnx *o, const TdStep *step);
/** Slice a value as the step's attribute slices says, but for axes that are new or gone; the
 * name of what is left goes to `to`, which has TD_ONNX_TEXT bytes. */
void td__onnx_sliced (TdOnnx *o, const TdStep *step, const char *from, char *to);
/** A value that a recipe calls by a letter. */
typedef struct TdOnnxGiven
{
  char letter; /**< none of the step's inputs, which are a, b ... */
  const char *value;
} TdOnnxGiven;
/** Write a step by a line of text as the recipes of onnx-recipes.c are, with further names. */
void td__onnx_compose (TdOnnx *o, const TdStep *step, const char *line,
                       const TdOnnxGiven *given, int n);
/** What writes an operation, by its name. */
typedef struct TdOnnxWriter
{
  const char *op;
  void (*write) (TdOnnx *o, const TdStep *step);
} TdOnnxWriter;
/** Write a step as the one of n writers does that is its operation's; false: there is none. */
bool td__onnx_write_by (const TdOnnxWriter *writers, size_t n, TdOnnx *o, const TdStep *step);
/** Write an operation on windows of images (onnx-windows.c), or one that picks elements by
 * their places or adds to them (onnx-places.c); false: it is none. */
bool td__onnx_windows (TdOnnx *o, const TdStep *step);
bool td__onnx_places (TdOnnx *o, const TdStep *step);
/** Write the nodes of one step (onnx-steps.c). */
void td__onnx_step (TdOnnx *o, const TdStep *step);
/** Write all steps of the forward: those of a recurrent layer as one node, behind all that it
 * reads (onnx-recurrent.c). */
void td__onnx_all_steps (TdOnnx *o);
