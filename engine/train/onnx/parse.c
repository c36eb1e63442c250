/* The messages of an ONNX file.  Each list is counted before memory is taken, so that no number
 * in the file decides how much it is.
 *
 * SPDX-License-Identifier: MIT */
#include "graph.h"

#include "../serial/onnx-fields.h"
#include "compute/core/core.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MOST_PARTS = 1000000 /* nodes, initializers */
};

int
td__onnx_dtype_of (int64_t type)
{
  for (int dtype = 0; dtype < TD__N_DTYPES; dtype++)
    if (td__onnx_dtype (dtype) == type)
      return dtype;
  return -1;
}

const char *
td__onnx_type_name (int64_t type)
{
  static const char *const others[]
      = { [0] = "no array",   [TD_ONNX_INT8] = "int8", [4] = "uint16",  [5] = "int16",
          [8] = "text",       [12] = "uint32",         [13] = "uint64", [14] = "complex64",
          [15] = "complex128" };
  const int dtype = td__onnx_dtype_of (type);

  return dtype >= 0 ? td_dtype_name ((TdDtype)dtype)
         : type >= 0 && type < TD_ARRAY_LENGTH (others) && others[type] != NULL
             ? others[type]
             : "a type of ONNX's that is not known here";
}

typedef struct
{
  TdOnnxGraph *g;
  int depth; /* of bodies */
  bool bad;
  const char *other; /* what else is wrong, or NULL */
} Parse;

static size_t
count (TdWire w, unsigned number)
{
  TdWireField f;
  size_t n = 0;

  while (td__wire_next (&w, &f))
    n += f.number == number;
  return n;
}

/* A text without an end in the middle, and without control characters but `kept`. */
static const char *
text_with (Parse *p, const TdWireField *f, char kept)
{
  const size_t n = f->kind == TD_WIRE_BYTES ? td__wire_left (&f->bytes) : 0;
  char *t;

  if (n == 0)
    return "";
  t = td__onnx_alloc (&p->g->arena, n + 1, 1);
  memcpy (t, f->bytes.at, n);
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)t[i] < ' ' && (t[i] == '\0' || t[i] != kept))
      t[i] = '_';
  return t;
}

/* The same of one line. */
static const char *
text (Parse *p, const TdWireField *f)
{
  return text_with (p, f, '\0');
}

/* How many numbers a list has, packed or not, at most: every one takes a byte or more. */
static size_t
most_numbers (TdWire w, unsigned number, TdWireKind kind)
{
  const size_t least = kind == TD_WIRE_32 ? 4 : kind == TD_WIRE_64 ? 8 : 1;
  TdWireField f;
  size_t n = 0;

  while (td__wire_next (&w, &f))
    if (f.number == number)
      n += f.kind == TD_WIRE_BYTES ? td__wire_left (&f.bytes) / least : 1;
  return n;
}

/* Each number of a list, whatever way it is written. */
static size_t
numbers (Parse *p, TdWire w, unsigned number, TdWireKind kind, uint64_t *to)
{
  TdWireField f;
  size_t n = 0;

  while (td__wire_next (&w, &f))
    if (f.number == number && f.kind == kind)
      to[n++] = f.value;
    else if (f.number == number && f.kind == TD_WIRE_BYTES)
      {
        while (td__wire_number (&f.bytes, kind, &to[n]))
          n++;
        p->bad |= f.bytes.bad;
      }
    else
      p->bad |= f.number == number;
  return n;
}

static double
float_of (uint64_t bits)
{
  const uint32_t low = (uint32_t)bits;
  float f;

  memcpy (&f, &low, sizeof f);
  return (double)f;
}

/* --- tensors --- */

/* Which list has the elements of each dtype, if they are no bytes. */
static const struct
{
  unsigned field;
  TdWireKind kind;
} lists[] = {
  [TD_F32] = { TENSOR_FLOATS, TD_WIRE_32 },   [TD_F64] = { TENSOR_DOUBLES, TD_WIRE_64 },
  [TD_F16] = { TENSOR_INTS, TD_WIRE_VARINT }, [TD_BF16] = { TENSOR_INTS, TD_WIRE_VARINT },
  [TD_I32] = { TENSOR_INTS, TD_WIRE_VARINT }, [TD_I64] = { TENSOR_LONGS, TD_WIRE_VARINT },
  [TD_U8] = { TENSOR_INTS, TD_WIRE_VARINT },  [TD_BOOL] = { TENSOR_INTS, TD_WIRE_VARINT },
};

static void
listed_elements (Parse *p, TdWire w, TdOnnxTensor *t)
{
  const unsigned field = lists[t->dtype].field;
  const size_t width = td_dtype_bytes ((TdDtype)t->dtype);
  const size_t most = most_numbers (w, field, lists[t->dtype].kind);
  uint64_t *wide = td__onnx_alloc (&p->g->arena, most + 1, sizeof *wide);
  const size_t n = numbers (p, w, field, lists[t->dtype].kind, wide);
  char *to = (char *)wide;

  for (size_t i = 0; i < n; i++) /* little-endian: the low bytes */
    memmove (to + i * width, &wide[i], width);
  t->elements = wide;
  t->bytes = n * width;
}

/* The engine has no int8. */
static void
widen (Parse *p, const TdWire *raw, TdOnnxTensor *t)
{
  const size_t n = td__wire_left (raw);
  int32_t *wide = td__onnx_alloc (&p->g->arena, n + 1, sizeof *wide);

  for (size_t i = 0; i < n; i++)
    wide[i] = (int8_t)raw->at[i];
  t->elements = wide;
  t->bytes = n * sizeof *wide;
}

static bool
whole_number (const char *text, uint64_t *to)
{
  char *end;

  *to = strtoull (text, &end, 10);
  return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

/* A key and its value, which may have the control character `keep` in it. */
static void
entry (Parse *p, TdWire w, char keep, const char **key, const char **value)
{
  TdWireField f;

  *key = *value = "";
  while (td__wire_next (&w, &f))
    if (f.number == ENTRY_KEY)
      *key = text (p, &f);
    else if (f.number == ENTRY_VALUE)
      *value = text_with (p, &f, keep);
  p->bad |= w.bad;
}

static void
external_entry (Parse *p, TdWire w, TdOnnxTensor *t)
{
  const char *key, *value;

  entry (p, w, '\0', &key, &value);
  if (strcmp (key, "location") == 0)
    t->location = value;
  else if (strcmp (key, "offset") == 0 && !whole_number (value, &t->offset))
    t->why = "its offset outside is no number";
  else if (strcmp (key, "length") == 0 && !whole_number (value, &t->length))
    t->why = "its length outside is no number";
}

static void
dimensions (Parse *p, TdWire w, TdOnnxTensor *t)
{
  const size_t most = most_numbers (w, TENSOR_DIMS, TD_WIRE_VARINT);
  uint64_t *dims = td__onnx_alloc (&p->g->arena, most + 1, sizeof *dims);
  const size_t n = numbers (p, w, TENSOR_DIMS, TD_WIRE_VARINT, dims);

  if (n > TD_MAX_DIMS)
    t->why = "it has more than 8 dimensions";
  for (size_t i = 0; i < n && n <= TD_MAX_DIMS; i++)
    {
      t->shape.dim[t->shape.ndim++] = (int64_t)dims[i];
      if ((int64_t)dims[i] < 0)
        t->why = "it has a negative size";
    }
}

/* Hold what a tensor has against what its sizes promise. */
static void
check_elements (TdOnnxTensor *t)
{
  size_t need;

  if (t->why != NULL)
    return;
  if (!td__shape_bytes (&t->shape, (TdDtype)t->dtype, &need))
    t->why = "its sizes overflow";
  else if (need != t->bytes)
    t->why = "it has not the elements that its sizes promise";
}

static void
tensor (Parse *p, TdWire w, TdOnnxTensor *t)
{
  int64_t type = 0, place = 0;
  TdWire raw = { NULL, NULL, true };
  TdWireField f;

  dimensions (p, w, t);
  t->name = "";
  for (TdWire all = w; td__wire_next (&all, &f);)
    if (f.number == TENSOR_TYPE && f.kind == TD_WIRE_VARINT)
      type = (int64_t)f.value;
    else if (f.number == TENSOR_NAME)
      t->name = text (p, &f);
    else if (f.number == TENSOR_RAW && f.kind == TD_WIRE_BYTES)
      raw = f.bytes;
    else if (f.number == TENSOR_LOCATION && f.kind == TD_WIRE_VARINT)
      place = (int64_t)f.value;
    else if (f.number == TENSOR_EXTERNAL && f.kind == TD_WIRE_BYTES)
      external_entry (p, f.bytes, t);
  t->is_int8 = type == TD_ONNX_INT8;
  t->dtype = t->is_int8 ? TD_I32 : td__onnx_dtype_of (type);
  if (t->is_int8 && place != 0)
    t->why = "it is int8, and its data lies outside";
  if (t->dtype < 0)
    t->why = "its element type is not one of float, double, float16, bfloat16, int32, int64, "
             "int8, uint8 and bool";
  if (place == 0)
    t->location = NULL;
  else if (t->location == NULL)
    t->why = "its data lies outside, and it does not say where";
  if (t->why != NULL || t->location != NULL)
    return;
  if (raw.bad)
    listed_elements (p, w, t);
  else if (t->is_int8)
    widen (p, &raw, t);
  else
    {
      t->elements = raw.at;
      t->bytes = td__wire_left (&raw);
    }
  check_elements (t);
}

/* --- nodes --- */

static void
attribute_lists (Parse *p, TdWire w, TdOnnxAttr *a)
{
  TdOnnxArena *arena = &p->g->arena;
  const size_t n_ints = most_numbers (w, ATTRIBUTE_INTS, TD_WIRE_VARINT),
               n_floats = most_numbers (w, ATTRIBUTE_FLOATS, TD_WIRE_32),
               n_texts = count (w, ATTRIBUTE_STRINGS);
  TdWireField f;

  if (n_ints > 0)
    {
      a->ints = td__onnx_alloc (arena, n_ints + 1, sizeof *a->ints);
      a->n = (int)numbers (p, w, ATTRIBUTE_INTS, TD_WIRE_VARINT, (uint64_t *)a->ints);
    }
  else if (n_floats > 0)
    {
      uint64_t *bits = td__onnx_alloc (arena, n_floats + 1, sizeof *bits);

      a->floats = td__onnx_alloc (arena, n_floats + 1, sizeof *a->floats);
      a->n = (int)numbers (p, w, ATTRIBUTE_FLOATS, TD_WIRE_32, bits);
      for (int i = 0; i < a->n; i++)
        a->floats[i] = float_of (bits[i]);
    }
  else if (n_texts > 0)
    {
      a->texts = td__onnx_alloc (arena, n_texts, sizeof *a->texts);
      while (td__wire_next (&w, &f))
        if (f.number == ATTRIBUTE_STRINGS)
          a->texts[a->n++] = text (p, &f);
    }
}

static void graph (Parse *p, TdWire w, TdOnnxGraph *g);

/* The type field is not there in old files: what is filled says it too. */
static void
attribute (Parse *p, TdWire w, TdOnnxAttr *a)
{
  TdWireField f;
  int type = 0;

  a->name = a->s = "";
  for (TdWire all = w; td__wire_next (&all, &f);)
    if (f.number == ATTRIBUTE_NAME)
      a->name = text (p, &f);
    else if (f.number == ATTRIBUTE_TYPE && f.kind == TD_WIRE_VARINT)
      type = f.value <= TD_ONNX_STRINGS ? (int)f.value : 0;
    else if (f.number == ATTRIBUTE_F && f.kind == TD_WIRE_32)
      a->kind = TD_ONNX_FLOAT, a->f = float_of (f.value);
    else if (f.number == ATTRIBUTE_I && f.kind == TD_WIRE_VARINT)
      a->kind = TD_ONNX_INT, a->i = (int64_t)f.value;
    else if (f.number == ATTRIBUTE_S && f.kind == TD_WIRE_BYTES)
      a->kind = TD_ONNX_STRING, a->s = text (p, &f);
    else if (f.number == ATTRIBUTE_G && f.kind == TD_WIRE_BYTES && a->graph == NULL)
      {
        a->kind = TD_ONNX_GRAPH;
        a->graph = td__onnx_alloc (&p->g->arena, 1, sizeof *a->graph);
        a->graph->name = "";
        graph (p, f.bytes, a->graph);
      }
    else if (f.number == ATTRIBUTE_T && f.kind == TD_WIRE_BYTES && a->tensor == NULL)
      {
        a->kind = TD_ONNX_TENSOR;
        a->tensor = td__onnx_alloc (&p->g->arena, 1, sizeof *a->tensor);
        tensor (p, f.bytes, a->tensor);
      }
  attribute_lists (p, w, a);
  if (a->kind == 0 && type >= TD_ONNX_FLOAT && type <= TD_ONNX_STRING)
    a->kind = type; /* a 0 need not be written */
  if (a->n > 0)
    a->kind = a->ints != NULL     ? TD_ONNX_INTS
              : a->floats != NULL ? TD_ONNX_FLOATS
                                  : TD_ONNX_STRINGS;
}

static void
node (Parse *p, TdWire w, TdOnnxNode *n)
{
  TdOnnxArena *arena = &p->g->arena;
  TdWireField f;

  n->in_names = td__onnx_alloc (arena, count (w, NODE_INPUT) + 1, sizeof *n->in_names);
  n->out_names = td__onnx_alloc (arena, count (w, NODE_OUTPUT) + 1, sizeof *n->out_names);
  n->attrs = td__onnx_alloc (arena, count (w, NODE_ATTRIBUTE) + 1, sizeof *n->attrs);
  n->name = n->type = n->domain = "";
  while (td__wire_next (&w, &f))
    if (f.number == NODE_INPUT)
      n->in_names[n->n_in++] = text (p, &f);
    else if (f.number == NODE_OUTPUT)
      n->out_names[n->n_out++] = text (p, &f);
    else if (f.number == NODE_NAME)
      n->name = text (p, &f);
    else if (f.number == NODE_TYPE)
      n->type = text (p, &f);
    else if (f.number == NODE_DOMAIN)
      n->domain = text (p, &f);
    else if (f.number == NODE_ATTRIBUTE && f.kind == TD_WIRE_BYTES)
      attribute (p, f.bytes, &n->attrs[n->n_attrs++]);
  p->bad |= w.bad;
  n->in = td__onnx_alloc (arena, (size_t)n->n_in + 1, sizeof *n->in);
  n->out = td__onnx_alloc (arena, (size_t)n->n_out + 1, sizeof *n->out);
}

/* --- what goes in and out --- */

static void
port_shape (Parse *p, TdWire w, TdOnnxPort *port)
{
  TdWireField f, d;

  port->ndim = 0;
  while (td__wire_next (&w, &f))
    if (f.number == SHAPE_DIM && f.kind == TD_WIRE_BYTES)
      {
        if (port->ndim == TD_MAX_DIMS)
          {
            port->ndim = -1; /* refused when an array comes */
            return;
          }
        port->dim[port->ndim] = -1;
        while (td__wire_next (&f.bytes, &d))
          if (d.number == DIM_VALUE && d.kind == TD_WIRE_VARINT)
            port->dim[port->ndim] = (int64_t)d.value < 0 ? -1 : (int64_t)d.value;
          else if (d.number == DIM_SYMBOL)
            port->symbol[port->ndim] = text (p, &d);
        p->bad |= f.bytes.bad;
        port->ndim++;
      }
  p->bad |= w.bad;
}

static void
port_tensor (Parse *p, TdWire w, TdOnnxPort *port)
{
  TdWireField f;

  while (td__wire_next (&w, &f))
    if (f.number == TYPE_ELEMENT && f.kind == TD_WIRE_VARINT)
      {
        port->type = (int64_t)f.value;
        port->dtype = td__onnx_dtype_of (port->type);
      }
    else if (f.number == TYPE_SHAPE && f.kind == TD_WIRE_BYTES)
      port_shape (p, f.bytes, port);
  p->bad |= w.bad;
}

static void
port (Parse *p, TdWire w, TdOnnxPort *port)
{
  TdWireField f, t;

  *port = (TdOnnxPort){ .name = "", .value = TD_ONNX_ABSENT, .dtype = -1, .ndim = -1 };
  while (td__wire_next (&w, &f))
    if (f.number == VALUE_NAME)
      port->name = text (p, &f);
    else if (f.number == VALUE_TYPE && f.kind == TD_WIRE_BYTES)
      {
        while (td__wire_next (&f.bytes, &t))
          if (t.number == TYPE_TENSOR && t.kind == TD_WIRE_BYTES)
            port_tensor (p, t.bytes, port);
        p->bad |= f.bytes.bad;
      }
  p->bad |= w.bad;
}

/* --- graph and model --- */

static void
graph (Parse *p, TdWire w, TdOnnxGraph *g)
{
  TdOnnxArena *arena = &p->g->arena;
  TdWireField f;
  const size_t n_nodes = count (w, GRAPH_NODE), n_initializers = count (w, GRAPH_INITIALIZER);

  if (n_nodes > MOST_PARTS || n_initializers > MOST_PARTS || count (w, GRAPH_SPARSE) > 0)
    {
      p->other = count (w, GRAPH_SPARSE) > 0 ? "it has sparse initializers, which are not read"
                                             : "it has more than a million nodes";
      return;
    }
  if (p->depth == TD_ONNX_MOST_DEEP)
    {
      p->other = "its graphs lie too deep in each other";
      return;
    }
  p->depth++;
  p->g->n_all_givens += (int)(n_nodes + n_initializers);
  g->nodes = td__onnx_alloc (arena, n_nodes + 1, sizeof *g->nodes);
  g->givens = td__onnx_alloc (arena, n_nodes + n_initializers + 1, /* nodes may be Constants */
                              sizeof *g->givens);
  g->in = td__onnx_alloc (arena, count (w, GRAPH_INPUT) + 1, sizeof *g->in);
  g->out = td__onnx_alloc (arena, count (w, GRAPH_OUTPUT) + 1, sizeof *g->out);
  while (td__wire_next (&w, &f))
    if (f.number == GRAPH_NAME)
      g->name = text (p, &f);
    else if (f.kind != TD_WIRE_BYTES)
      continue;
    else if (f.number == GRAPH_NODE)
      node (p, f.bytes, &g->nodes[g->n_nodes++]);
    else if (f.number == GRAPH_INITIALIZER)
      {
        g->givens[g->n_givens].initializer = true;
        tensor (p, f.bytes, &g->givens[g->n_givens++].tensor);
      }
    else if (f.number == GRAPH_INPUT)
      port (p, f.bytes, &g->in[g->n_in++]);
    else if (f.number == GRAPH_OUTPUT)
      port (p, f.bytes, &g->out[g->n_out++]);
  p->depth--;
  p->bad |= w.bad;
}

static void
opset (Parse *p, TdWire w)
{
  const char *domain = "";
  int64_t version = 0;
  TdWireField f;

  while (td__wire_next (&w, &f))
    if (f.number == OPSET_DOMAIN)
      domain = text (p, &f);
    else if (f.number == OPSET_VERSION && f.kind == TD_WIRE_VARINT)
      version = (int64_t)f.value;
  p->bad |= w.bad;
  if (domain[0] == '\0' || strcmp (domain, "ai.onnx") == 0)
    p->g->opset = version;
}

/* What td_save_onnx says of the sizes; entries of others are not looked at. */
static void
metadata (Parse *p, TdWire w)
{
  const char *key, *value;

  entry (p, w, '\n', &key, &value);
  if (strcmp (key, "fixed") == 0)
    p->g->fixed = value;
  else if (strcmp (key, "assumed") == 0)
    p->g->assumed = value;
}

void
td__onnx_graph_unref (TdOnnxGraph *g)
{
  TdOnnxArena arena;

  if (g == NULL || --g->refs > 0)
    return;
  arena = g->arena;
  free (g);
  td__onnx_arena_free (&arena);
}

TdOnnxGraph *
td__onnx_parse (const uint8_t *bytes, size_t n, char *why, size_t size)
{
  Parse p = { .g = td__xcalloc (1, sizeof *p.g) };
  TdWire w = { bytes, bytes + n, false };
  bool is_there = false;
  TdWireField f;

  p.g->refs = 1;
  p.g->name = p.g->producer = p.g->producer_version = p.g->fixed = p.g->assumed = "";
  while (td__wire_next (&w, &f))
    if (f.number == MODEL_IR_VERSION && f.kind == TD_WIRE_VARINT)
      p.g->ir_version = (int64_t)f.value;
    else if (f.number == MODEL_PRODUCER)
      p.g->producer = text (&p, &f);
    else if (f.number == MODEL_PRODUCER_VERSION)
      p.g->producer_version = text (&p, &f);
    else if (f.number == MODEL_OPSET && f.kind == TD_WIRE_BYTES)
      opset (&p, f.bytes);
    else if (f.number == MODEL_METADATA && f.kind == TD_WIRE_BYTES)
      metadata (&p, f.bytes);
    else if (f.number == MODEL_GRAPH && f.kind == TD_WIRE_BYTES && !is_there)
      {
        is_there = true;
        graph (&p, f.bytes, p.g);
      }
  if (!w.bad && !p.bad && is_there && p.other == NULL && p.g->n_out > 0)
    return p.g;
  snprintf (why, size, "%s",
            p.other != NULL       ? p.other
            : !is_there && !w.bad ? "it is not an ONNX model: there is no graph in it"
            : w.bad || p.bad      ? "it is not an ONNX model, or it is cut off or damaged"
                                  : "its graph has no output");
  td__onnx_graph_unref (p.g);
  return NULL;
}
