/* An ONNX file looked at: see look.h.
 *
 * SPDX-License-Identifier: MIT */
#include "look.h"

#include "onnx-link.h"

#include "../serial/read-file.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- operators by number --- */

static int
by_operator (const void *a, const void *b)
{
  const TdOnnxCount *x = a, *y = b;
  const int name = strcmp (x->name, y->name);

  return name != 0 ? name : strcmp (x->domain, y->domain);
}

static int
by_number (const void *a, const void *b)
{
  const int more = ((const TdOnnxCount *)b)->n - ((const TdOnnxCount *)a)->n;

  return more != 0 ? more : by_operator (a, b);
}

/* One for each node, those of bodies too, behind n others; to NULL: none.  How many then. */
static int
list_nodes (const TdOnnxGraph *g, TdOnnxCount *to, int n)
{
  for (int i = 0; i < g->n_nodes; i++)
    {
      if (to != NULL)
        to[n] = (TdOnnxCount){ g->nodes[i].type, g->nodes[i].domain, 1 };
      n++;
      for (int k = 0; k < g->nodes[i].n_attrs; k++)
        if (g->nodes[i].attrs[k].graph != NULL)
          n = list_nodes (g->nodes[i].attrs[k].graph, to, n);
    }
  return n;
}

/* Those that the file has, the ones that nothing needs among them. */
static void
count_operators (TdOnnxLook *look, TdOnnxGraph *g)
{
  const int n_nodes = list_nodes (g, NULL, 0);
  TdOnnxCount *all = td__onnx_alloc (&g->arena, (size_t)n_nodes + 1, sizeof *all);
  int n = 0;

  list_nodes (g, all, 0);
  qsort (all, (size_t)n_nodes, sizeof *all, by_operator);
  for (int i = 0; i < n_nodes; i++)
    if (n > 0 && by_operator (&all[n - 1], &all[i]) == 0)
      all[n - 1].n++;
    else
      all[n++] = all[i];
  qsort (all, (size_t)n, sizeof *all, by_number);
  look->operators = all;
  look->n_operators = n;
  look->n_nodes = n_nodes;
}

/* --- the rest --- */

static void
count_initializers (TdOnnxLook *look, const TdOnnxGraph *g)
{
  for (int i = 0; i < g->n_givens; i++)
    if (g->givens[i].initializer)
      {
        const TdOnnxTensor *t = &g->givens[i].tensor;
        size_t bytes = 0, numbers = 0;

        look->n_initializers++;
        if (t->dtype >= 0 && td__shape_bytes (&t->shape, (TdDtype)t->dtype, &bytes)
            && td__shape_bytes (&t->shape, TD_U8, &numbers))
          {
            look->n_numbers += (int64_t)numbers;
            look->initializer_bytes += (int64_t)bytes;
          }
      }
}

static TdOnnxEnd *
ends (TdOnnxGraph *g, const TdOnnxPort *ports, int n, int n_needed)
{
  TdOnnxEnd *to = td__onnx_alloc (&g->arena, (size_t)n + 1, sizeof *to);

  for (int i = 0; i < n; i++)
    {
      to[i].info = td__onnx_port_info (&ports[i]);
      to[i].info.is_optional = i >= n_needed;
      to[i].type = td__onnx_type_name (ports[i].type);
    }
  return to;
}

static void
hear (const char *line, void *user)
{
  TdOnnxLook *look = user;

  look->lacks = td__xrealloc (look->lacks, (size_t)(look->n_lacks + 1) * sizeof *look->lacks);
  look->lacks[look->n_lacks++] = td__xstrdup (line);
}

TdOnnxLook *
td__onnx_look (const char *path, char *why, size_t size)
{
  TdOnnxLook *look = td__xcalloc (1, sizeof *look);
  const TdOnnxLoadOpt options = { .lack = hear, .user = look };
  const char *read = NULL;
  size_t n = 0;
  uint8_t *bytes = td__read_file (path, &n, &read);
  TdOnnxGraph *g = bytes != NULL ? td__onnx_parse (bytes, n, why, size) : NULL;
  bool good = g != NULL;

  if (bytes == NULL)
    snprintf (why, size, "%s", read);
  look->inside = g;
  if (good)
    {
      count_operators (look, g);
      good = td__onnx_connect (g, why, size);
    }
  if (good)
    {
      td__onnx_look_through (g, &options, NULL, 0);
      count_initializers (look, g);
      look->ir_version = g->ir_version;
      look->opset = g->opset;
      look->name = g->name;
      look->producer = g->producer;
      look->producer_version = g->producer_version;
      look->fixed = g->fixed;
      look->assumed = g->assumed;
      look->n_in = g->n_in + g->n_optional;
      look->n_out = g->n_out;
      look->in = ends (g, g->in, look->n_in, g->n_in);
      look->out = ends (g, g->out, look->n_out, look->n_out);
    }
  free (bytes);
  if (good)
    return look;
  td__onnx_look_free (look);
  return NULL;
}

void
td__onnx_look_free (TdOnnxLook *look)
{
  if (look == NULL)
    return;
  for (int i = 0; i < look->n_lacks; i++)
    free (look->lacks[i]);
  free (look->lacks);
  td__onnx_graph_unref (look->inside);
  free (look);
}

/* --- what an input indexes --- */

/* Operators whose output has numbers of their first input, and no others. */
static bool
passes_on (const TdOnnxNode *n)
{
  static const char *const types[] = { "Identity",  "Cast",   "Reshape", "Unsqueeze", "Squeeze",
                                       "Transpose", "Expand", "Flatten", "Slice",     "Tile" };

  for (int i = 0; i < TD_ARRAY_LENGTH (types); i++)
    if (strcmp (n->type, types[i]) == 0)
      return n->n_in > 0 && n->in[0] != TD_ONNX_ABSENT && n->out[0] != TD_ONNX_ABSENT;
  return false;
}

static bool
indexes (const TdOnnxNode *n)
{
  return (strcmp (n->type, "Gather") == 0 || strcmp (n->type, "GatherElements") == 0)
         && n->n_in == 2 && n->in[0] != TD_ONNX_ABSENT && n->in[1] != TD_ONNX_ABSENT;
}

int64_t
td__onnx_rows_for (TdLink *link, int i, const char **of)
{
  const TdOnnxGraph *g = ((const TdOnnxLink *)link->self)->graph;
  bool *comes = td__xcalloc ((size_t)g->n_values + 1, sizeof *comes);
  int *given = td__xcalloc ((size_t)g->n_values + 1, sizeof *given); /* index + 1 */
  int64_t least = 0;

  *of = NULL;
  comes[g->in[i].value] = true;
  for (int k = 0; k < g->n_givens; k++)
    given[g->givens[k].value] = k + 1;
  for (int k = 0; k < g->n_nodes; k++)
    {
      const TdOnnxNode *n = &g->nodes[k];

      if (passes_on (n))
        {
          comes[n->out[0]] = comes[n->in[0]];
          given[n->out[0]] = strcmp (n->type, "Identity") == 0 ? given[n->in[0]] : 0;
        }
      else if (indexes (n) && comes[n->in[1]] && given[n->in[0]] > 0)
        {
          const TdOnnxTensor *t = &g->givens[given[n->in[0]] - 1].tensor;
          const int64_t axis = td__onnx_attr_int (n, "axis", 0);
          const int64_t at = axis < 0 ? axis + t->shape.ndim : axis;

          if (at < 0 || at >= t->shape.ndim || (least > 0 && t->shape.dim[at] >= least))
            continue;
          least = t->shape.dim[at];
          *of = t->name;
        }
    }
  free (comes);
  free (given);
  return least;
}
