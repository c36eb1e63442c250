/* Names become values: what makes each, and what takes it.
 *
 * SPDX-License-Identifier: MIT */
#include "graph.h"

#include "compute/core/core.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- numbers of names --- */

typedef struct
{
  const char *name;
  int value, maker; /* the node that makes it; -1: it is there before */
} Entry;

typedef struct
{
  Entry *entries;
  size_t n_slots, n;
} Names;

static Entry *
find (const Names *names, const char *name)
{
  size_t hash = 14695981039346656037u, at;

  for (const char *c = name; *c != '\0'; c++)
    hash = (hash ^ (unsigned char)*c) * 1099511628211u;
  for (at = hash % names->n_slots; names->entries[at].name != NULL;
       at = (at + 1) % names->n_slots)
    if (strcmp (names->entries[at].name, name) == 0)
      break;
  return &names->entries[at];
}

typedef struct Connect
{
  TdOnnxGraph *g, *root;       /* root: whose values and arrays are those of all bodies */
  const struct Connect *outer; /* whose names are seen, too */
  int at;                      /* the node whose body is looked at */
  Names names;
  char *why;
  size_t size;
} Connect;

static bool
make (Connect *c, const char *name, int maker, int *value)
{
  Entry *e = find (&c->names, name);

  if (e->name != NULL)
    return snprintf (c->why, c->size, "%.200s is made twice", name), false;
  *e = (Entry){ name, c->root->n_values++, maker };
  *value = e->value;
  return true;
}

/* --- what Constants make --- */

static const char *
constant_tensor (TdOnnxGraph *g, const TdOnnxNode *n, TdOnnxTensor *t)
{
  const TdOnnxAttr *a = n->n_attrs == 1 ? &n->attrs[0] : NULL;
  const bool is_list
      = a != NULL
        && (a->kind == TD_ONNX_INTS || a->kind == TD_ONNX_FLOATS
            || strcmp (a->name, "value_ints") == 0 || strcmp (a->name, "value_floats") == 0);
  int64_t *elements;

  if (a != NULL && a->kind == TD_ONNX_TENSOR)
    {
      *t = *a->tensor;
      return t->location != NULL ? "its data lies outside of the file" : t->why;
    }
  if (a == NULL || strncmp (a->name, "value_", 6) != 0 || strstr (a->name, "string") != NULL)
    return "neither numbers nor an array";
  t->shape = (TdShape){ is_list, { a->n } };
  t->dtype = strncmp (a->name + 6, "int", 3) == 0 ? TD_I64 : TD_F32;
  t->bytes = td_dtype_bytes ((TdDtype)t->dtype) * (size_t)(is_list ? a->n : 1);
  elements = td__onnx_alloc (&g->arena, t->bytes + 8, 1);
  if (t->dtype == TD_I64 && (a->kind == TD_ONNX_INT || a->ints != NULL))
    memcpy (elements, is_list ? a->ints : &a->i, t->bytes);
  for (int i = 0; t->dtype == TD_F32 && i < (is_list ? a->n : 1); i++)
    ((float *)(void *)elements)[i] = (float)(a->floats != NULL ? a->floats[i] : a->f);
  t->elements = elements;
  return NULL;
}

/* Nodes that make constants become arrays that are given. */
static void
take_constants (TdOnnxGraph *root, TdOnnxGraph *g)
{
  int kept = 0;

  for (int i = 0; i < g->n_nodes; i++)
    {
      TdOnnxNode *n = &g->nodes[i];
      TdOnnxGiven *given = &g->givens[g->n_givens];

      if (strcmp (n->type, "Constant") != 0 || n->domain[0] != '\0' || n->n_out != 1
          || n->n_in != 0)
        {
          g->nodes[kept++] = *n;
          continue;
        }
      g->n_givens++;
      given->tensor.why = constant_tensor (root, n, &given->tensor);
      given->tensor.name = n->out_names[0];
    }
  g->n_nodes = kept;
}

/* --- all together --- */

/* Inputs that initializers are defaults of go behind the others.  Old files list every
 * initializer as an input, too, and mean nothing by it. */
static bool
take_defaults (Connect *c)
{
  TdOnnxGraph *g = c->g;
  TdOnnxPort *in = td__onnx_alloc (&c->root->arena, (size_t)g->n_in + 1, sizeof *in);
  int n = 0, n_all = g->n_in;

  for (int i = 0; i < n_all; i++)
    if (find (&c->names, g->in[i].name)->name == NULL)
      in[n++] = g->in[i];
  g->n_in = n;
  for (int i = 0; i < n_all && g->ir_version >= TD_ONNX_IR_DEFAULTS; i++)
    {
      const Entry *e = find (&c->names, g->in[i].name);

      if (e->name == NULL)
        continue;
      if (g->givens[e->value].is_default)
        return snprintf (c->why, c->size, "%.200s is an input twice", e->name), false;
      in[n] = g->in[i];
      in[n].value = in[n].given = e->value; /* givens have the first values */
      n++;
      g->givens[e->value].is_default = true;
    }
  g->n_optional = n - g->n_in;
  g->in = in;
  return true;
}

static bool
makers (Connect *c)
{
  TdOnnxGraph *g = c->g;

  for (int i = 0; i < g->n_givens; i++)
    if (!make (c, g->givens[i].tensor.name, -1, &g->givens[i].value))
      return false;
  if (!take_defaults (c))
    return false;
  for (int i = 0; i < g->n_in; i++)
    if (!make (c, g->in[i].name, -1, &g->in[i].value))
      return false;
  for (int i = 0; i < g->n_nodes; i++)
    for (int k = 0; k < g->nodes[i].n_out; k++)
      {
        g->nodes[i].out[k] = TD_ONNX_ABSENT;
        if (g->nodes[i].out_names[k][0] != '\0'
            && !make (c, g->nodes[i].out_names[k], i, &g->nodes[i].out[k]))
          return false;
      }
  return true;
}

/* The value of a name before node i, or TD_ONNX_ABSENT and what is wrong with it. */
static int
value_of (const Connect *c, const char *name, int i, const char **wrong)
{
  const Entry *e = find (&c->names, name);

  if (e->name != NULL && e->maker < i)
    return e->value;
  *wrong = e->name == NULL ? "nothing makes"
           : e->maker == i ? "it makes itself"
                           : "a later node makes: in a circle, or out of order";
  for (const Connect *o = c->outer; o != NULL && e->name == NULL; o = o->outer)
    {
      e = find (&o->names, name);
      if (e->name != NULL && e->maker < o->at)
        return e->value;
    }
  return TD_ONNX_ABSENT;
}

static bool connect_graph (TdOnnxGraph *root, TdOnnxGraph *g, const Connect *outer, char *why,
                           size_t size);

/* Values that node i takes, in its bodies as well. */
static bool
take (Connect *c, int i)
{
  TdOnnxNode *n = &c->g->nodes[i];
  const char *wrong = "";
  char text[240];

  for (int k = 0; k < n->n_in; k++)
    {
      const char *name = n->in_names[k];

      n->in[k] = name[0] != '\0' ? value_of (c, name, i, &wrong) : TD_ONNX_ABSENT;
      if (name[0] != '\0' && n->in[k] == TD_ONNX_ABSENT)
        return snprintf (c->why, c->size, "%s takes %.200s, which %s",
                         td__onnx_node_text (n, text, sizeof text), name, wrong),
               false;
    }
  c->at = i;
  for (int k = 0; k < n->n_attrs; k++)
    if (n->attrs[k].graph != NULL
        && !connect_graph (c->root, n->attrs[k].graph, c, c->why, c->size))
      return false;
  return true;
}

static bool
takers (Connect *c)
{
  TdOnnxGraph *g = c->g;
  const char *wrong;

  for (int i = 0; i < g->n_nodes; i++)
    if (!take (c, i))
      return false;
  for (int k = 0; k < g->n_out; k++)
    {
      g->out[k].value = value_of (c, g->out[k].name, g->n_nodes, &wrong);
      if (g->out[k].value == TD_ONNX_ABSENT)
        return snprintf (c->why, c->size, "nothing makes its output %.200s", g->out[k].name),
               false;
    }
  return true;
}

/* Is one of its outputs taken? */
static bool
is_needed (const TdOnnxNode *n, const bool *used)
{
  bool is = false;

  for (int k = 0; k < n->n_out && !is; k++)
    is = n->out[k] != TD_ONNX_ABSENT && used[n->out[k]];
  return is;
}

/* Whatever a body takes, from outside as well. */
static void mark_body (const TdOnnxGraph *body, bool *used);

static void
mark_node (const TdOnnxNode *n, bool *used)
{
  for (int k = 0; k < n->n_in; k++)
    if (n->in[k] != TD_ONNX_ABSENT)
      used[n->in[k]] = true;
  for (int k = 0; k < n->n_attrs; k++)
    if (n->attrs[k].graph != NULL)
      mark_body (n->attrs[k].graph, used);
}

static void
mark_body (const TdOnnxGraph *body, bool *used)
{
  for (int k = 0; k < body->n_out; k++)
    used[body->out[k].value] = true;
  for (int i = 0; i < body->n_nodes; i++)
    mark_node (&body->nodes[i], used);
}

/* What every output of the graph needs, from the last node to the first; the others go. */
static void
keep_needed (TdOnnxGraph *g, bool *used)
{
  int kept = g->n_nodes, n = 0;

  for (int k = 0; k < g->n_out; k++)
    used[g->out[k].value] = true;
  for (int i = g->n_nodes - 1; i >= 0; i--)
    {
      const TdOnnxNode node = g->nodes[i];

      if (!is_needed (&node, used))
        continue;
      mark_node (&node, used);
      g->nodes[--kept] = node;
    }
  n = g->n_nodes - kept;
  memmove (g->nodes, g->nodes + kept, (size_t)n * sizeof *g->nodes);
  g->n_nodes = n;
  for (int i = 0; i < g->n_givens; i++)
    g->givens[i].is_used = used[g->givens[i].value];
}

/* What nobody takes, and inputs left out behind the last, are as if not there. */
static void
drop_unused (const TdOnnxGraph *root, TdOnnxGraph *g)
{
  bool *used = td__xcalloc ((size_t)root->n_values + 1, sizeof *used);

  keep_needed (g, used);
  for (int i = 0; i < g->n_nodes; i++)
    {
      TdOnnxNode *n = &g->nodes[i];

      for (int k = 1; k < n->n_out; k++)
        if (n->out[k] != TD_ONNX_ABSENT && !used[n->out[k]])
          n->out[k] = TD_ONNX_ABSENT;
      while (n->n_in > 0 && n->in[n->n_in - 1] == TD_ONNX_ABSENT)
        n->n_in--;
    }
  free (used);
}

/* The arrays of a body lie among those of the whole. */
static void
give_up_arrays (TdOnnxGraph *root, TdOnnxGraph *body)
{
  memcpy (root->givens + root->n_givens, body->givens,
          (size_t)body->n_givens * sizeof *body->givens);
  root->n_givens += body->n_givens;
  body->n_givens = 0;
}

static bool
connect_graph (TdOnnxGraph *root, TdOnnxGraph *g, const Connect *outer, char *why, size_t size)
{
  Connect c = { .g = g, .root = root, .outer = outer, .why = why, .size = size };
  size_t n = (size_t)g->n_in + (size_t)g->n_givens + (size_t)g->n_nodes;
  bool ok;

  for (int i = 0; i < g->n_nodes; i++)
    n += (size_t)g->nodes[i].n_out;
  c.names.n_slots = 2 * n + 16;
  c.names.entries = td__xcalloc (c.names.n_slots, sizeof *c.names.entries);
  take_constants (root, g);
  ok = makers (&c);
  if (g != root)
    give_up_arrays (root, g);
  ok = ok && takers (&c);
  free (c.names.entries);
  if (ok)
    drop_unused (root, g);
  return ok;
}

bool
td__onnx_connect (TdOnnxGraph *g, char *why, size_t size)
{
  TdOnnxGiven *givens = td__onnx_alloc (&g->arena, (size_t)g->n_all_givens + 1, sizeof *givens);

  memcpy (givens, g->givens, (size_t)g->n_givens * sizeof *givens);
  g->givens = givens;
  return connect_graph (g, g, NULL, why, size);
}

/* --- what is asked of a node --- */

const TdOnnxAttr *
td__onnx_attr (const TdOnnxNode *node, const char *name)
{
  for (int i = 0; i < node->n_attrs; i++)
    if (strcmp (node->attrs[i].name, name) == 0)
      return &node->attrs[i];
  return NULL;
}

const TdOnnxGraph *
td__onnx_body (const TdOnnxNode *node, const char *name)
{
  const TdOnnxAttr *a = td__onnx_attr (node, name);

  return a != NULL ? a->graph : NULL;
}

int64_t
td__onnx_attr_int (const TdOnnxNode *node, const char *name, int64_t otherwise)
{
  const TdOnnxAttr *a = td__onnx_attr (node, name);

  return a != NULL && a->kind == TD_ONNX_INT ? a->i : otherwise;
}

double
td__onnx_attr_float (const TdOnnxNode *node, const char *name, double otherwise)
{
  const TdOnnxAttr *a = td__onnx_attr (node, name);

  return a != NULL && a->kind == TD_ONNX_FLOAT ? a->f : otherwise;
}

const char *
td__onnx_attr_text (const TdOnnxNode *node, const char *name, const char *otherwise)
{
  const TdOnnxAttr *a = td__onnx_attr (node, name);

  return a != NULL && a->kind == TD_ONNX_STRING ? a->s : otherwise;
}

const char *
td__onnx_node_text (const TdOnnxNode *node, char *text, size_t size)
{
  const char *name = node->name[0] != '\0' ? node->name
                     : node->n_out > 0     ? node->out_names[0]
                                           : "";

  snprintf (text, size, "%.60s (node %.120s)", node->type, name);
  return text;
}
