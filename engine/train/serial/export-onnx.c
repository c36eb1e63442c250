/* A schedule as an ONNX model: its nodes, constants, inputs and outputs.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-fields.h"
#include "onnx.h"

#include "../links/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  KIND_FLOAT = 1,
  KIND_INT = 2,
  KIND_STRING = 3,
  KIND_TENSOR = 4,
  KIND_INTS = 7,
  KIND_STRINGS = 8
};
enum
{
  TEXT = 400,
  LARGE = 1 << 24 /* bytes: a constant is written like a weight */
};
/* By opset, from the first that is written on: the file format's version that came with it. */
enum
{
  FIRST_OPSET = 17,
  LAST_OPSET = 21
};
static const int ir_versions[] = { 8, 8, 9, 9, 10 };

int
td__onnx_dtype (int dtype)
{
  static const int types[] = { [TD_F32] = 1, [TD_F64] = 11, [TD_F16] = 10, [TD_BF16] = 16,
                               [TD_I32] = 6, [TD_I64] = 7,  [TD_U8] = 2,   [TD_BOOL] = 9 };

  return types[dtype];
}

/* "h0/attention/softmax": the link that a step runs in, and what it is. */
static void
with_path (const TdOnnx *o, const char *name, char *text, size_t size)
{
  const TdPath *path = o->step != NULL ? o->step->path : NULL;

  snprintf (text, size, "%.280s%s%.100s", path != NULL ? path->text : "",
            path != NULL && path->text[0] != '\0' ? "/" : "", name);
}

static const char *
name_of_step (const TdOnnx *o)
{
  return o->step == NULL                 ? "value"
         : o->step->kind == TD_STEP_OP   ? o->step->cls->name
         : o->step->kind == TD_STEP_FILL ? "array"
                                         : "copy";
}

TdOnnxNodeWriter
td__onnx_node (TdOnnx *o, const char *type, const char *domain)
{
  TdOnnxNodeWriter n = { .o = o,
                         .reshapes = strcmp (type, "Reshape") == 0,
                         .half = td__onnx_cast_around (o, type) };
  char name[TEXT];

  with_path (o, type, name, sizeof name);
  td__message_text (&n.m, NODE_NAME, td__onnx_name_take (&o->nodes, name));
  td__message_text (&n.m, NODE_TYPE, type);
  if (domain != NULL)
    td__message_text (&n.m, NODE_DOMAIN, domain);
  return n;
}

const char *
td__onnx_value (TdOnnx *o, uint32_t node)
{
  const char *own = o->s->nodes[node].name;
  char name[TEXT];

  if (o->value[node] == NULL)
    {
      with_path (o, own != NULL ? own : name_of_step (o), name, sizeof name);
      o->value[node] = td__onnx_name_take (&o->values, name);
    }
  return o->value[node];
}

void
td__onnx_in (TdOnnxNodeWriter *n, const char *name)
{
  char wide[TD_ONNX_TEXT];

  if (n->half != TD_F32 && name[0] != '\0')
    name = td__onnx_cast (n->o, name, TD_F32, NULL, wide);
  td__message_text (&n->m, NODE_INPUT, name);
  if (n->reshapes && td__onnx_has_none (n->o, name)) /* else 0 is the size of that axis */
    td__onnx_int (n, "allowzero", 1);
}

void
td__onnx_in_node (TdOnnxNodeWriter *n, uint32_t node)
{
  td__onnx_in (n, td__onnx_value (n->o, node));
}

void
td__onnx_out (TdOnnxNodeWriter *n, const char *name)
{
  if (n->half != TD_F32)
    {
      snprintf (n->result, sizeof n->result, "%s", name);
      name = td__onnx_made (n->o, n->wide, sizeof n->wide);
    }
  td__message_text (&n->m, NODE_OUTPUT, name);
}

void
td__onnx_out_node (TdOnnxNodeWriter *n, uint32_t node)
{
  td__onnx_out (n, td__onnx_value (n->o, node));
}

static TdMessage
attribute (const char *name, int kind)
{
  TdMessage a = { NULL, 0, 0 };

  td__message_text (&a, ATTRIBUTE_NAME, name);
  td__message_int (&a, ATTRIBUTE_TYPE, kind);
  return a;
}

void
td__onnx_int (TdOnnxNodeWriter *n, const char *name, int64_t value)
{
  TdMessage a = attribute (name, KIND_INT);

  td__message_int (&a, ATTRIBUTE_I, value);
  td__message_nest (&n->m, NODE_ATTRIBUTE, &a);
}

void
td__onnx_float (TdOnnxNodeWriter *n, const char *name, double value)
{
  TdMessage a = attribute (name, KIND_FLOAT);

  td__message_float (&a, ATTRIBUTE_F, (float)value);
  td__message_nest (&n->m, NODE_ATTRIBUTE, &a);
}

void
td__onnx_ints (TdOnnxNodeWriter *n, const char *name, const int64_t *values, int count)
{
  TdMessage a = attribute (name, KIND_INTS);

  for (int i = 0; i < count; i++)
    td__message_int (&a, ATTRIBUTE_INTS, values[i]);
  td__message_nest (&n->m, NODE_ATTRIBUTE, &a);
}

void
td__onnx_text (TdOnnxNodeWriter *n, const char *name, const char *text)
{
  TdMessage a = attribute (name, KIND_STRING);

  td__message_text (&a, ATTRIBUTE_S, text);
  td__message_nest (&n->m, NODE_ATTRIBUTE, &a);
}

void
td__onnx_texts (TdOnnxNodeWriter *n, const char *name, const char *text, int count)
{
  TdMessage a = attribute (name, KIND_STRINGS);

  for (int i = 0; i < count; i++)
    td__message_text (&a, ATTRIBUTE_STRINGS, text);
  td__message_nest (&n->m, NODE_ATTRIBUTE, &a);
}

void
td__onnx_end (TdOnnxNodeWriter *n)
{
  td__message_nest (&n->o->graph, GRAPH_NODE, &n->m);
  if (n->half != TD_F32)
    td__onnx_cast (n->o, n->wide, n->half, n->result, NULL);
}

const char *
td__onnx_made (TdOnnx *o, char *text, size_t size)
{
  char name[TEXT], part[TEXT];

  snprintf (part, sizeof part, "%.90s.part", name_of_step (o));
  with_path (o, part, name, sizeof name);
  snprintf (text, size, "%s", td__onnx_name_take (&o->values, name));
  return text;
}

const char *
td__onnx_call (TdOnnx *o, TdOnnxCall call, const char *result, char *to)
{
  TdOnnxNodeWriter n = td__onnx_node (o, call.type, NULL);

  for (int i = 0; i < 3 && call.in[i] != NULL; i++)
    td__onnx_in (&n, call.in[i]);
  if (result == NULL)
    result = td__onnx_made (o, to, TD_ONNX_TEXT);
  td__onnx_out (&n, result);
  if (call.list != NULL)
    td__onnx_ints (&n, call.list, call.values, call.n_values);
  if (call.number != NULL)
    td__onnx_int (&n, call.number, call.value);
  if (call.word != NULL)
    td__onnx_text (&n, call.word, call.text);
  td__onnx_end (&n);
  return result;
}

const char *
td__onnx_cast (TdOnnx *o, const char *value, TdDtype dtype, const char *result, char *to)
{
  return td__onnx_call (
      o,
      (TdOnnxCall){ "Cast", { value }, .number = "to", .value = td__onnx_dtype ((int)dtype) },
      result, to);
}

static TdMessage
tensor_of (const char *name, TdDtype dtype, const TdShape *shape, const void *numbers)
{
  TdMessage t = { NULL, 0, 0 };

  for (int d = 0; d < shape->ndim; d++)
    td__message_int (&t, TENSOR_DIMS, shape->dim[d]);
  td__message_int (&t, TENSOR_TYPE, td__onnx_dtype ((int)dtype));
  td__message_text (&t, TENSOR_NAME, name);
  td__message_bytes (&t, TENSOR_RAW, numbers,
                     (size_t)td__size (shape) * td__dtype_sizes[dtype]);
  return t;
}

/* Arrays of floating-point numbers that are no parameters are made by a node: an initializer is
 * what others train. */
static void
constant (TdOnnx *o, const char *name, TdDtype dtype, const TdShape *shape, const void *numbers)
{
  TdMessage t = tensor_of (name, dtype, shape, numbers);
  TdMessage value;
  TdOnnxNodeWriter n;

  if (dtype > TD_BF16 || shape->ndim == 0)
    {
      td__message_nest (&o->graph, GRAPH_INITIALIZER, &t);
      return;
    }
  n = td__onnx_node (o, "Constant", NULL);
  value = attribute ("value", KIND_TENSOR);
  td__message_nest (&value, ATTRIBUTE_T, &t);
  td__message_nest (&n.m, NODE_ATTRIBUTE, &value);
  td__onnx_out (&n, name);
  td__onnx_end (&n);
}

const char *
td__onnx_constant_ints (TdOnnx *o, const int64_t *values, int count, char *text, size_t size)
{
  const TdShape shape = { 1, { count } };

  constant (o, td__onnx_made (o, text, size), TD_I64, &shape, values);
  return text;
}

const char *
td__onnx_constant (TdOnnx *o, TdDtype dtype, const TdShape *shape, const void *numbers,
                   char *text, size_t size)
{
  constant (o, td__onnx_made (o, text, size), dtype, shape, numbers);
  return text;
}

const char *
td__onnx_constant_floats (TdOnnx *o, TdDtype dtype, const TdShape *shape, const double *numbers,
                          char *text, size_t size)
{
  const int64_t n = td__size (shape);
  float *narrow;

  if (dtype == TD_F64)
    return td__onnx_constant (o, dtype, shape, numbers, text, size);
  narrow = td__xcalloc ((size_t)n + 1, sizeof *narrow);
  for (int64_t i = 0; i < n; i++)
    narrow[i] = (float)numbers[i];
  td__onnx_constant (o, TD_F32, shape, narrow, text, size);
  free (narrow);
  return dtype == TD_F32 ? text : td__onnx_cast (o, text, dtype, NULL, text);
}

/* Types that are no numbers of C come by a cast. */
const char *
td__onnx_constant_number (TdOnnx *o, double value, TdDtype dtype, char *text, size_t size)
{
  const TdShape scalar = { 0, { 0 } };
  const bool direct = dtype == TD_F32 || dtype == TD_F64 || dtype == TD_I32 || dtype == TD_I64;
  const float f = (float)value;
  const int32_t i = dtype == TD_I32 ? (int32_t)value : 0;
  const int64_t l = dtype == TD_I64 ? (int64_t)value : 0;

  td__onnx_constant (o, direct ? dtype : TD_F32, &scalar,
                     dtype == TD_F64   ? (const void *)&value
                     : dtype == TD_I32 ? (const void *)&i
                     : dtype == TD_I64 ? (const void *)&l
                                       : (const void *)&f,
                     text, size);
  return direct ? text : td__onnx_cast (o, text, dtype, NULL, text);
}

static void
value_info (TdOnnx *o, unsigned field, uint32_t node, const char *name)
{
  const TdNodeInfo *n = &o->s->nodes[node];
  TdMessage info = { NULL, 0, 0 }, type = info, tensor = info, shape = info;
  char symbol[TEXT];

  for (int d = 0; d < n->shape.ndim; d++)
    {
      const TdOnnxSize *size = &o->sizes.of[node][d];
      TdMessage dim = { NULL, 0, 0 };

      if (td__onnx_size_text (&o->sizes, size, symbol, sizeof symbol)[0] != '\0')
        td__message_text (&dim, DIM_SYMBOL, symbol);
      else if (size->mask == 0)
        td__message_int (&dim, DIM_VALUE, n->shape.dim[d]);
      td__message_nest (&shape, SHAPE_DIM, &dim);
    }
  td__message_int (&tensor, TYPE_ELEMENT, td__onnx_dtype (n->dtype));
  td__message_nest (&tensor, TYPE_SHAPE, &shape);
  td__message_nest (&type, TYPE_TENSOR, &tensor);
  td__message_text (&info, VALUE_NAME, name);
  td__message_nest (&info, VALUE_TYPE, &type);
  td__message_nest (&o->graph, field, &info);
}

/* Names that are given come first: "net/l1/W", "x". */
static void
name_given (TdOnnx *o)
{
  const TdSchedule *s = o->s;
  char name[300];

  for (uint32_t i = 0; i < s->n_externals; i++)
    {
      const uint32_t node = s->externals[i].node;
      const char *own = node < s->n_nodes && i < s->n_arguments ? s->nodes[node].name : NULL;

      if (node < s->n_nodes && o->value[node] == NULL)
        o->value[node] = td__onnx_name_take (
            &o->values, own != NULL ? own : td__export_name (s, node, name, sizeof name));
    }
}

/* A constant of one number that follows a symbol is spread. */
static TdStatus
write_constant (TdOnnx *o, uint32_t node, const TdSite *site)
{
  const TdNodeInfo *n = &o->s->nodes[node];
  const TdShape scalar = { 0, { 0 } };
  char number[TEXT], sizes[TEXT];
  bool follows = false;
  TdOnnxNodeWriter spread;
  void *numbers;

  for (int d = 0; d < n->shape.ndim; d++)
    follows = follows || o->sizes.of[node][d].mask != 0;
  if (!follows && (size_t)td__size (&n->shape) * td__dtype_sizes[n->dtype] > (size_t)LARGE)
    {
      td__onnx_weights_add (&o->weights, node, td__onnx_value (o, node));
      return TD_OK;
    }
  numbers = td__export_numbers (o->s, node, site);
  if (numbers == NULL)
    return td__error_status ();
  if (!follows)
    constant (o, td__onnx_value (o, node), (TdDtype)n->dtype, &n->shape, numbers);
  else
    {
      td__onnx_constant (o, (TdDtype)n->dtype, &scalar, numbers, number, sizeof number);
      td__onnx_shape_of (o, node, sizes, sizeof sizes);
      spread = td__onnx_node (o, "Expand", NULL);
      td__onnx_in (&spread, number);
      td__onnx_in (&spread, sizes);
      td__onnx_out_node (&spread, node);
      td__onnx_end (&spread);
    }
  free (numbers);
  return TD_OK;
}

static bool
is_constant (const TdSchedule *s, uint32_t node)
{
  return td__node_value (s, node)->kind == TD_VALUE_CONSTANT;
}

/* Nodes that a step makes: a constant in another shape is none. */
static bool *
nodes_made (const TdSchedule *s)
{
  bool *made = td__xcalloc (s->n_nodes + 1, sizeof *made);

  for (uint32_t i = 0; i < s->forward.n; i++)
    for (uint32_t k = 0; k < s->forward.steps[i].n_out; k++)
      made[td__step_out (s, &s->forward.steps[i], k)] = true;
  return made;
}

/* Inputs, and what is there before a call. */
static TdStatus
write_given (TdOnnx *o, const TdSite *site)
{
  const TdSchedule *s = o->s;
  bool *made = nodes_made (s);
  TdStatus status = TD_OK;

  for (uint32_t i = 0; i < s->n_arguments; i++)
    if (s->externals[i].node < s->n_nodes)
      {
        bool seen = false;

        for (uint32_t j = 0; j < i; j++)
          seen |= s->externals[j].node == s->externals[i].node;
        if (!seen)
          value_info (o, GRAPH_INPUT, s->externals[i].node,
                      td__onnx_value (o, s->externals[i].node));
      }
  for (uint32_t n = 0; n < s->n_nodes && status == TD_OK; n++)
    if (!made[n] && td__export_is_given (s, n) && td__export_is_used (s, n))
      {
        if (is_constant (s, n))
          status = write_constant (o, n, site);
        else
          td__onnx_weights_add (&o->weights, n, td__onnx_value (o, n));
      }
  free (made);
  return status;
}

/* Outputs have names of their own: the same array may be returned twice, or be an input. */
static void
write_outputs (TdOnnx *o)
{
  for (uint32_t k = 0; k < o->s->n_outputs; k++)
    {
      TdOnnxNodeWriter n = td__onnx_node (o, "Identity", NULL);
      char name[32];
      const char *taken;

      snprintf (name, sizeof name, "output%u", k);
      taken = td__onnx_name_take (&o->values, name);
      td__onnx_in_node (&n, o->s->outputs[k].node);
      td__onnx_out (&n, taken);
      td__onnx_end (&n);
      value_info (o, GRAPH_OUTPUT, o->s->outputs[k].node, taken);
    }
}

static void
forget (TdOnnx *o)
{
  td__message_free (&o->graph);
  td__onnx_names_free (&o->values);
  td__onnx_names_free (&o->nodes);
  td__onnx_weights_free (&o->weights);
  td__export_lacks_free (&o->lacks);
  free (o->value);
  o->value = NULL;
  memset (o->symbol, 0, sizeof o->symbol);
}

static int
n_fixed (const TdOnnx *o)
{
  int n = 0;

  for (int i = 0; i < o->sizes.n_symbols; i++)
    n += o->sizes.symbols[i].why[0] != '\0';
  return n;
}

/* The whole graph, anew where a writer found that a symbol has to be fixed. */
static TdStatus
write_graph (TdOnnx *o, const char *name, const TdSite *site)
{
  TdStatus status;
  int before;

  do
    {
      if (o->value != NULL)
        forget (o);
      o->value = td__xcalloc (o->s->n_nodes + 1, sizeof *o->value);
      td__onnx_sizes_find (&o->sizes);
      before = n_fixed (o);
      td__message_text (&o->graph, GRAPH_NAME, name);
      name_given (o);
      status = write_given (o, site);
      if (status == TD_OK)
        {
          td__onnx_all_steps (o);
          write_outputs (o);
        }
    }
  while (status == TD_OK && n_fixed (o) > before);
  return status;
}

/* --- the model --- */

static void
opset (TdMessage *model, const char *domain, int version)
{
  TdMessage m = { NULL, 0, 0 };

  td__message_text (&m, OPSET_DOMAIN, domain);
  td__message_int (&m, OPSET_VERSION, version);
  td__message_nest (model, MODEL_OPSET, &m);
}

/* One more line of what an entry of the file says, to who asks too: they are under one key, as
 * a file may have no other of the name. */
static void
add_line (TdExport *lines, const char *line, void (*hear) (const char *line, void *user),
          void *user)
{
  td__export_print (lines, "%s%s", lines->n > 0 ? "\n" : "", line);
  if (hear != NULL)
    hear (line, user);
}

static void
end_lines (TdExport *lines, const char *key, TdMessage *tail)
{
  TdMessage entry = { NULL, 0, 0 };

  if (lines->n == 0)
    return;
  td__message_text (&entry, ENTRY_KEY, key);
  td__message_bytes (&entry, ENTRY_VALUE, lines->bytes, lines->n);
  td__message_nest (tail, MODEL_METADATA, &entry);
  free (lines->bytes);
}

/* "batch stays 4: get_item at x.c:12 takes some of its rows by number"; "axis 0 of y stays 4:
 * ..." where that of another input is open. */
static void
say_fixed (const TdOnnx *o, const TdOnnxOpt *options, TdMessage *tail)
{
  TdExport lines = { NULL, 0, 0 };
  char line[480];

  for (int i = 0; i < o->sizes.n_symbols; i++)
    if (o->sizes.symbols[i].why[0] != '\0')
      {
        const TdOnnxSymbol *symbol = &o->sizes.symbols[i];

        snprintf (line, sizeof line, "%s stays %lld: %s", symbol->name, (long long)symbol->v[0],
                  symbol->why);
        add_line (&lines, line, options->fixed, options->user);
      }
  for (uint32_t i = 0; i < o->s->n_arguments; i++)
    {
      const char *why = td__onnx_sizes_stays (&o->sizes, i);

      if (why == NULL)
        continue;
      snprintf (line, sizeof line, "axis 0 of %.100s stays %lld: %.300s",
                o->value[o->s->externals[i].node], (long long)o->sizes.symbols[0].v[0], why);
      add_line (&lines, line, options->fixed, options->user);
    }
  end_lines (&lines, "fixed", tail);
}

/* What was taken for granted; where nobody listens it is said once of a size of 1, as most
 * sizes of 1 are in more than one place. */
static void
say_assumed (const TdOnnx *o, const TdOnnxOpt *options, const char *path, TdMessage *tail)
{
  TdExportLacks assumed = { 0, NULL, 0 };
  TdExport lines = { NULL, 0, 0 };
  uint32_t n_ones;

  n_ones = td__onnx_sizes_assumed (&o->sizes, &assumed);
  for (uint32_t i = 0; i < assumed.n_lines; i++)
    add_line (&lines, assumed.lines[i], options->assumed, options->user);
  if (n_ones > 0 && options->assumed == NULL)
    fprintf (stderr,
             "tapedeck: %s: it ran with a size of 1, and %u thing%s may be another with others "
             "(tapedeck info): %s\n",
             path, n_ones, n_ones > 1 ? "s" : "", assumed.lines[0]);
  end_lines (&lines, "assumed", tail);
  td__export_lacks_free (&assumed);
}

static TdStatus
write_model (TdOnnx *o, const char *call, const char *name, const TdOnnxOpt *options,
             uint32_t n_lacks, const char *path, const TdSite *site)
{
  TdMessage head = { NULL, 0, 0 }, tail = { NULL, 0, 0 };
  char doc[160];
  TdStatus status;

  td__message_int (&head, MODEL_IR_VERSION, ir_versions[o->opset - FIRST_OPSET]);
  td__message_text (&head, MODEL_PRODUCER, "tapedeck");
  td__message_text (&head, MODEL_PRODUCER_VERSION, td_version ());
  snprintf (doc, sizeof doc, "%.60s; operations that ONNX does not have: %u", name, n_lacks);
  td__message_text (&head, MODEL_DOC, doc);
  opset (&tail, "", o->opset);
  if (n_lacks > 0)
    opset (&tail, "org.tapedeck", 1);
  say_fixed (o, options, &tail);
  say_assumed (o, options, path, &tail);
  status = td__onnx_write (call, o->s, &o->weights, &head, &o->graph, &tail,
                           options->weights_beside, path, site);
  td__message_free (&head);
  td__message_free (&tail);
  return status;
}

TdStatus
td__export_onnx (const char *call, const char *name, const TdSchedule *s,
                 const TdOnnxOpt *options, const char *path, const TdSite *site)
{
  TdOnnx o = { .s = s, .opset = options->opset };
  const char **named = td__xcalloc (s->n_arguments + 1, sizeof *named);
  TdStatus status;

  for (uint32_t i = 0; i < s->n_arguments; i++)
    if (s->externals[i].node < s->n_nodes)
      named[i] = s->nodes[s->externals[i].node].name;
  if (o.opset < FIRST_OPSET || o.opset > LAST_OPSET)
    status = td__fail (TD_ERR_ARG, call, site, "opset %d to %d expected, got %d", FIRST_OPSET,
                       LAST_OPSET, o.opset);
  else
    status = td__onnx_sizes_begin (&o.sizes, s, options->axes, named, call, site);
  if (status == TD_OK)
    {
      uint32_t n_lacks;

      o.loops = td__onnx_loops_find (s);
      o.sizes.loops = &o.loops;
      status = write_graph (&o, name, site);
      n_lacks = o.lacks.n;
      for (uint32_t k = 0; k < o.lacks.n_lines && options->custom_domains; k++)
        if (options->lack != NULL)
          options->lack (o.lacks.lines[k], options->user);
      if (status == TD_OK && !options->custom_domains)
        status = td__export_lacks_end (&o.lacks, call, "ONNX",
                                       ": leave them out, or ask for custom_domains",
                                       options->lack, options->user, site);
      if (status == TD_OK)
        status = write_model (&o, call, name, options, n_lacks, path, site);
      forget (&o);
      td__onnx_loops_free (&o.loops);
    }
  td__onnx_sizes_free (&o.sizes);
  free (named);
  return status;
}
