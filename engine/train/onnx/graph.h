/* An ONNX graph that was read: nodes in the order in which they run, arrays that the file
 * gives, names of what goes in and out.  Values are numbers from 0 on.
 *
 * *Source*: github.com/onnx/onnx, onnx.proto3 and IR.md.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "host.h"
#include "wire.h"

enum
{
  TD_ONNX_ABSENT = -1,     /* an input or output that is left out */
  TD_ONNX_INT8 = 3,        /* of the standard's element types: read, and not the engine's */
  TD_ONNX_IR_DEFAULTS = 4, /* from then on an initializer among the inputs is a default */
  TD_ONNX_OPSET_FIRST = 7,
  TD_ONNX_OPSET_LAST = 21,
  TD_ONNX_MOST_OUT = 512,
  TD_ONNX_MOST_DEEP = 16 /* bodies in bodies */
};

/** An array of the file.  *Owner*: the graph's arena, or the file's bytes while it is loaded.
 */
typedef struct TdOnnxTensor
{
  const char *name;
  int dtype;    /**< a TdDtype, or -1: one that the engine has not */
  bool is_int8; /**< and lies in int32 */
  TdShape shape;
  const void *elements; /**< NULL once loading is over, and where `why` says what is wrong */
  size_t bytes;
  const char *why;
  void *external;       /**< elements from outside: free () */
  const char *location; /**< of external data, beside the model; NULL: none */
  uint64_t offset, length;
} TdOnnxTensor;

typedef enum
{
  TD_ONNX_FLOAT = 1,
  TD_ONNX_INT = 2,
  TD_ONNX_STRING = 3,
  TD_ONNX_TENSOR = 4,
  TD_ONNX_GRAPH = 5,
  TD_ONNX_FLOATS = 6,
  TD_ONNX_INTS = 7,
  TD_ONNX_STRINGS = 8
} TdOnnxKind;

typedef struct TdOnnxAttr
{
  const char *name;
  int kind;
  int64_t i;
  double f;
  const char *s;
  int n; /**< of ints, floats or texts */
  int64_t *ints;
  double *floats;
  const char **texts;
  TdOnnxTensor *tensor;
  struct TdOnnxGraph *graph; /**< a body: its values are numbers of the whole */
} TdOnnxAttr;

struct TdOnnxRow;

typedef struct TdOnnxNode
{
  const char *name, *type, *domain;
  const char **in_names, **out_names; /**< "": left out */
  int *in, *out;                      /**< values, or TD_ONNX_ABSENT */
  int n_in, n_out;
  TdOnnxAttr *attrs;
  int n_attrs;
  const struct TdOnnxRow *row;
  bool makes_int8;   /**< which lies in int32 */
  const char *path;  /**< of the link that its operations are of: "layers/0/conv1" */
  const char *scope; /**< the link that its name is in, "layers/0/conv1", or "" */
} TdOnnxNode;

/** What goes in or out: its type, and sizes, -1 for those that are open. */
typedef struct TdOnnxPort
{
  const char *name;
  int value;
  int64_t type; /**< of its elements, ONNX's number; 0: it is no array */
  int dtype;    /**< -1: none that the engine has */
  int ndim;     /**< -1: not said */
  int64_t dim[TD_MAX_DIMS];
  const char *symbol[TD_MAX_DIMS]; /**< "batch", or NULL */
  int given;                       /**< of an input that may be left out: its default */
} TdOnnxPort;

/** An array that the graph begins with: an initializer, or what a Constant makes. */
typedef struct TdOnnxGiven
{
  TdOnnxTensor tensor;
  int value;
  bool initializer;
  bool is_used;           /**< by a node or as an output */
  bool is_default;        /**< of an input, which may be given instead */
  const TdOnnxHost *host; /**< its numbers, where they never change; or NULL */
  const char *key;        /**< of its array in the link, "l1/W"; NULL: it has none there */
} TdOnnxGiven;

typedef struct TdOnnxGraph
{
  int refs;
  TdOnnxArena arena;
  const char *name, *producer, *producer_version;
  const char *fixed, *assumed; /**< what td_save_onnx says of the sizes, lines; or "" */
  int64_t ir_version, opset;   /**< opset 0: the standard domain is not imported */
  TdOnnxNode *nodes;
  TdOnnxGiven *givens;
  TdOnnxPort *in, *out;
  int n_nodes, n_givens, n_in, n_out, n_values;
  int n_all_givens;   /**< as many as there can be, those of bodies among them */
  int n_optional;     /**< inputs that have a default, in[n_in] and on */
  bool follows_train; /**< TdOnnxLoadOpt.train */
} TdOnnxGraph;

/** Understand a file.  What it keeps of `bytes` are the elements of tensors.  NULL: why, of
 * `size` bytes.  *Owner*: the caller, td__onnx_graph_unref. */
TdOnnxGraph *td__onnx_parse (const uint8_t *bytes, size_t n, char *why, size_t size);
void td__onnx_graph_unref (TdOnnxGraph *graph);
/** What a type of elements is called: the engine's word, or ONNX's. */
const char *td__onnx_type_name (int64_t type);
/** Look through a connected graph, and give every node its row: what is not there goes to
 * options->lack, and the first lines of it to `first`, if that is not NULL.  How many. */
int td__onnx_look_through (TdOnnxGraph *graph, const TdOnnxLoadOpt *options, char *first,
                           size_t size);
/** A TdDtype of one of ONNX's element types, or -1. */
int td__onnx_dtype_of (int64_t type);
/** Give every name its value, Constants their arrays, and nodes their order; nodes that no
 * output needs go.  False: why. */
bool td__onnx_connect (TdOnnxGraph *graph, char *why, size_t size);
/** Read arrays that lie in files of their own, in the folder of `path`.  False: why. */
bool td__onnx_read_external (TdOnnxGraph *graph, const char *path, char *why, size_t size);

/** An attribute by name, or NULL. */
const TdOnnxAttr *td__onnx_attr (const TdOnnxNode *node, const char *name);
int64_t td__onnx_attr_int (const TdOnnxNode *node, const char *name, int64_t otherwise);
double td__onnx_attr_float (const TdOnnxNode *node, const char *name, double otherwise);
/** The graph of an attribute, or NULL. */
const TdOnnxGraph *td__onnx_body (const TdOnnxNode *node, const char *name);
const char *td__onnx_attr_text (const TdOnnxNode *node, const char *name,
                                const char *otherwise);
/** What a node is called in messages: "Conv conv1". */
const char *td__onnx_node_text (const TdOnnxNode *node, char *text, size_t size);
