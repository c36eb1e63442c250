/* A schedule as an ONNX model: names, constants, inputs and outputs.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-fields.h"
#include "onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  KIND_FLOAT = 1,
  KIND_INT = 2,
  KIND_STRING = 3,
  KIND_INTS = 7
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

TdOnnxNodeWriter
td__onnx_node (TdOnnx *o, const char *type, const char *domain)
{
  TdOnnxNodeWriter n = { o, { NULL, 0, 0 } };

  td__message_text (&n.m, NODE_TYPE, type);
  if (domain != NULL)
    td__message_text (&n.m, NODE_DOMAIN, domain);
  return n;
}

void
td__onnx_in (TdOnnxNodeWriter *n, const char *name)
{
  td__message_text (&n->m, NODE_INPUT, name);
}

void
td__onnx_in_node (TdOnnxNodeWriter *n, uint32_t node)
{
  char name[300];

  td__onnx_in (n, td__export_name (n->o->s, node, name, sizeof name));
}

void
td__onnx_out (TdOnnxNodeWriter *n, const char *name)
{
  td__message_text (&n->m, NODE_OUTPUT, name);
}

void
td__onnx_out_node (TdOnnxNodeWriter *n, uint32_t node)
{
  char name[300];

  td__onnx_out (n, td__export_name (n->o->s, node, name, sizeof name));
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
td__onnx_end (TdOnnxNodeWriter *n)
{
  td__message_nest (&n->o->graph, GRAPH_NODE, &n->m);
}

const char *
td__onnx_made (TdOnnx *o, char *text, size_t size)
{
  snprintf (text, size, "made%u", o->n_made++);
  return text;
}

static void
initializer (TdOnnx *o, const char *name, TdDtype dtype, const TdShape *shape,
             const void *numbers)
{
  TdMessage t = { NULL, 0, 0 };

  for (int d = 0; d < shape->ndim; d++)
    td__message_int (&t, TENSOR_DIMS, shape->dim[d]);
  td__message_int (&t, TENSOR_TYPE, td__onnx_dtype ((int)dtype));
  td__message_text (&t, TENSOR_NAME, name);
  td__message_bytes (&t, TENSOR_RAW, numbers,
                     (size_t)td__size (shape) * td__dtype_sizes[dtype]);
  td__message_nest (&o->graph, GRAPH_INITIALIZER, &t);
}

const char *
td__onnx_constant_ints (TdOnnx *o, const int64_t *values, int count, char *text, size_t size)
{
  const TdShape shape = { 1, { count } };

  initializer (o, td__onnx_made (o, text, size), TD_I64, &shape, values);
  return text;
}

const char *
td__onnx_constant (TdOnnx *o, TdDtype dtype, const TdShape *shape, const void *numbers,
                   char *text, size_t size)
{
  initializer (o, td__onnx_made (o, text, size), dtype, shape, numbers);
  return text;
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
  TdOnnxNodeWriter n;

  td__onnx_constant (o, direct ? dtype : TD_F32, &scalar,
                     dtype == TD_F64   ? (const void *)&value
                     : dtype == TD_I32 ? (const void *)&i
                     : dtype == TD_I64 ? (const void *)&l
                                       : (const void *)&f,
                     text, size);
  if (direct)
    return text;
  n = td__onnx_node (o, "Cast", NULL);
  td__onnx_in (&n, text);
  td__onnx_int (&n, "to", td__onnx_dtype ((int)dtype));
  td__onnx_out (&n, td__onnx_made (o, text, size));
  td__onnx_end (&n);
  return text;
}

static void
value_info (TdOnnx *o, unsigned field, uint32_t node, const char *name)
{
  const TdNodeInfo *n = &o->s->nodes[node];
  TdMessage info = { NULL, 0, 0 }, type = info, tensor = info, shape = info;

  for (int d = 0; d < n->shape.ndim; d++)
    {
      TdMessage dim = { NULL, 0, 0 };

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

static TdStatus
write_given (TdOnnx *o, const TdSite *site)
{
  const TdSchedule *s = o->s;
  char name[300];

  for (uint32_t n = 0; n < s->n_nodes; n++)
    if (td__export_is_given (s, n))
      {
        void *numbers = td__export_numbers (s, n, site);

        if (numbers == NULL)
          return td__error_status ();
        initializer (o, td__export_name (s, n, name, sizeof name), (TdDtype)s->nodes[n].dtype,
                     &s->nodes[n].shape, numbers);
        free (numbers);
      }
  for (uint32_t i = 0; i < s->n_arguments; i++)
    if (s->externals[i].node < s->n_nodes)
      {
        bool seen = false;

        for (uint32_t j = 0; j < i; j++)
          seen |= s->externals[j].node == s->externals[i].node;
        if (!seen)
          value_info (o, GRAPH_INPUT, s->externals[i].node,
                      td__export_name (s, s->externals[i].node, name, sizeof name));
      }
  return TD_OK;
}

/* Outputs have names of their own: the same array may be returned twice, or be an input. */
static void
write_outputs (TdOnnx *o)
{
  for (uint32_t k = 0; k < o->s->n_outputs; k++)
    {
      TdOnnxNodeWriter n = td__onnx_node (o, "Identity", NULL);
      char name[32];

      snprintf (name, sizeof name, "output%u", k);
      td__onnx_in_node (&n, o->s->outputs[k].node);
      td__onnx_out (&n, name);
      td__onnx_end (&n);
      value_info (o, GRAPH_OUTPUT, o->s->outputs[k].node, name);
    }
}

static void
opset (TdMessage *model, const char *domain, int version)
{
  TdMessage m = { NULL, 0, 0 };

  td__message_text (&m, OPSET_DOMAIN, domain);
  td__message_int (&m, OPSET_VERSION, version);
  td__message_nest (model, MODEL_OPSET, &m);
}

TdStatus
td__export_onnx (const TdStatic *function, const TdSchedule *s, TdExportOut *out,
                 const TdSite *site)
{
  const bool custom_domains = out->options.custom_domains;
  const int version = out->options.opset;
  TdOnnx o = { .s = s, .opset = version };
  TdMessage model = { NULL, 0, 0 };
  char doc[160];
  TdStatus status;

  if (version < FIRST_OPSET || version > LAST_OPSET)
    return td__fail (TD_ERR_ARG, "td_static_save", site, "opset %d to %d expected, got %d",
                     FIRST_OPSET, LAST_OPSET, version);
  td__message_text (&o.graph, GRAPH_NAME, function->name);
  status = write_given (&o, site);
  for (uint32_t i = 0; i < s->forward.n && status == TD_OK; i++)
    td__onnx_step (&o, &s->forward.steps[i]);
  if (status == TD_OK && o.lacks.n > 0 && !custom_domains)
    status = td__fail (TD_ERR_ARG, "td_static_save", site,
                       "ONNX does not have %s: leave them out, or ask for custom_domains",
                       o.lacks.text);
  if (status != TD_OK)
    {
      td__message_free (&o.graph);
      return status;
    }
  write_outputs (&o);
  td__message_int (&model, MODEL_IR_VERSION, ir_versions[version - FIRST_OPSET]);
  td__message_text (&model, MODEL_PRODUCER, "tapedeck");
  td__message_text (&model, MODEL_PRODUCER_VERSION, td_version ());
  snprintf (doc, sizeof doc, "static function %s; operations that ONNX does not have: %u",
            function->name, o.lacks.n);
  td__message_text (&model, MODEL_DOC, doc);
  td__message_nest (&model, MODEL_GRAPH, &o.graph);
  opset (&model, "", version);
  if (o.lacks.n > 0)
    opset (&model, "org.tapedeck", 1);
  out->main = (TdExport){ (char *)model.bytes, model.n, model.capacity };
  return TD_OK;
}
