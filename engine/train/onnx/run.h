/* One call of an ONNX graph, and the table of its operators.
 *
 * A value is an array of the engine, or numbers in host memory, or both.  What is computed from
 * sizes and constants alone stays on the host; as soon as an array takes part, it is one.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../links/link.h"
#include "graph.h"

typedef struct TdOnnxValue
{
  TdVar *var;
  const TdOnnxHost *host;
} TdOnnxValue;

typedef struct TdOnnxRun
{
  const TdOnnxGraph *g;
  const TdOnnxNode *node; /**< that runs now */
  TdOnnxValue *values;
  TdOnnxArena arena;
  int64_t n_turns;   /**< that all loops of the call have begun */
  const char *root;  /**< path of the link */
  const char *scope; /**< that it is in now, of a node */
  bool failed;
} TdOnnxRun;

/** An operator in a range of opsets. */
typedef struct TdOnnxRow
{
  const char *name;
  int from, to;           /**< opsets; to 0: the last that is read */
  int least_in, most_in;  /**< inputs; -1: any number */
  int most_out;           /**< outputs that can be made; -1: any number; 0: one */
  const char *attributes; /**< that are understood: "axis", or "mode=0" where nothing but that
                             value is */
  void (*run) (TdOnnxRun *r);
  /** The same on the host, where all inputs are there; may be NULL. */
  const TdOnnxHost *(*host) (TdOnnxRun *r);
  /* For functions that several rows share: */
  TdVar *(*unary) (TdVar *x);
  TdVar *(*binary) (TdVar *a, TdVar *b);
  TdVar *(*reduce) (TdVar *x, const int *axes, int n_axes, bool keepdims);
  TdVar *(*number[2]) (TdVar *x, double c); /**< a is the array, b is the array; or NULL */
  TdOnnxHostOp numbers;
  uint32_t read;      /**< bit i: input i is read as numbers */
  uint32_t narrow;    /**< bit i: input i may be int8 */
  int narrow_as;      /**< what comes out is int8 if that input is; 0: it is not */
  bool has_bodies;    /**< its attributes are graphs */
  uint32_t state;     /**< bit i: input i is written in training, and has no gradient */
  const char *limits; /**< what is left out, or NULL */
  /** What a node asks for that is not there; NULL: nothing. */
  const char *(*lacks) (const TdOnnxGraph *g, const TdOnnxNode *node);
} TdOnnxRow;

extern const TdOnnxRow td__onnx_control[], td__onnx_quantized[], td__onnx_math[],
    td__onnx_arrays[], td__onnx_indices[], td__onnx_layers[], td__onnx_sequences[],
    td__onnx_sizes[];
/** Hears of a node and its input that is int8 and must not be, or of an output's name. */
typedef void TdOnnxNarrow (const TdOnnxNode *node, int input, const char *output, void *user);
/** Mark the nodes that make int8, and find what cannot take it.  All nodes that are read have
 * their rows. */
void td__onnx_each_narrow (TdOnnxGraph *g, TdOnnxNarrow *found, void *user);
/** Hears of a node that takes sizes and constants only, and is given an array. */
typedef void TdOnnxOfSizes (const TdOnnxNode *node, void *user);
/** Find those nodes outside of bodies, as far as no input's value decides.  All nodes that are
 * read have their rows. */
void td__onnx_each_of_sizes (const TdOnnxGraph *g, TdOnnxOfSizes *found, void *user);
/** Row i over all tables, or NULL beyond the last. */
const TdOnnxRow *td__onnx_row_at (int i);

static inline bool
td__run_there (const TdOnnxRun *r, int i)
{
  return i < r->node->n_in && r->node->in[i] != TD_ONNX_ABSENT;
}
/** Input i as an array; poison if it is not there. */
TdVar *td__run_var (TdOnnxRun *r, int i);
TdShape td__run_shape (TdOnnxRun *r, int i);
/** Numbers of input i, if they are known without a look at an array; else NULL. */
const TdOnnxHost *td__run_known (const TdOnnxRun *r, int i);
/** Numbers of input i, which are read.  NULL after td__fail.  *Sync*: blocks for arrays. */
const TdOnnxHost *td__run_numbers (TdOnnxRun *r, int i);
/** Whole numbers of input i (an attribute of that name, where the input is not there) to to[0
 * ... most - 1].  How many; -1: they are not there, or, with r->failed, too many. */
int td__run_ints (TdOnnxRun *r, int i, const char *attribute, int64_t *to, int most);
/** Axes of the same, counted from the front; those of an attribute or input that is not there
 * are n_axes 0.  False after a failure. */
bool td__run_axes (TdOnnxRun *r, int i, const char *attribute, int ndim, int *axes,
                   int *n_axes);
/** One axis by attribute.  -1 after a failure. */
int td__run_axis (TdOnnxRun *r, int otherwise, int ndim);
/** Output k; a value on the host as an array of r's node. */
void td__run_out (TdOnnxRun *r, int k, TdVar *v);
void td__run_out_host (TdOnnxRun *r, int k, const TdOnnxHost *h);
/** Numbers as an array.  *Owner*: the innermost scope. */
TdVar *td__run_upload (TdOnnxRun *r, const TdOnnxHost *h);
/** The convolution that the node's attributes describe; b may be NULL.  NULL after a failure.
 */
TdVar *td__run_conv (TdOnnxRun *r, TdVar *x, TdVar *weights, TdVar *b);
/** The node cannot run: one line with its name. */
__attribute__ ((format (printf, 3, 4))) void td__run_fail (TdOnnxRun *r, TdStatus status,
                                                           const char *format, ...);
/** Run the nodes of a body, whose inputs are there.  False after a failure. */
bool td__run_body (TdOnnxRun *r, const TdOnnxGraph *body);
/** Run the nodes.  Values of in and of givens are there. */
void td__onnx_run (TdOnnxRun *r, const char *root);
