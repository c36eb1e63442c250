/* Which values are int8, which lies in arrays of int32: only operators that do no arithmetic
 * with it, or know of it, may take it.
 *
 * SPDX-License-Identifier: MIT */
#include "run.h"

#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

/* What comes out has the numbers that come in. */
static bool
keeps_numbers (const char *type)
{
  static const char *const types[]
      = { "Concat", "Expand", "Flatten", "Gather",    "Identity", "Reshape",
          "Slice",  "Split",  "Squeeze", "Transpose", "Unsqueeze" };

  for (int i = 0; i < TD_ARRAY_LENGTH (types); i++)
    if (strcmp (type, types[i]) == 0)
      return true;
  return false;
}

/* The first input that must not be int8 and is, or -1; what comes out of the node is marked. */
static int
pass (TdOnnxNode *n, bool *narrow)
{
  const bool keeps = keeps_numbers (n->type);
  const int as = n->row->narrow_as;
  bool out
      = (as > 0 && as < n->n_in && n->in[as] != TD_ONNX_ABSENT && narrow[n->in[as]])
        || (strcmp (n->type, "Cast") == 0 && td__onnx_attr_int (n, "to", 0) == TD_ONNX_INT8);

  for (int k = 0; k < n->n_in; k++)
    {
      const bool is = n->in[k] != TD_ONNX_ABSENT && narrow[n->in[k]];

      if (is && !keeps && (k >= 32 || (n->row->narrow >> k & 1) == 0))
        return k;
      out |= is && keeps;
    }
  n->makes_int8 = out;
  for (int k = 0; k < n->n_out && out; k++)
    if (n->out[k] != TD_ONNX_ABSENT)
      narrow[n->out[k]] = true;
  return -1;
}

static void
look (const TdOnnxGraph *g, bool *narrow, TdOnnxNarrow *found, void *user)
{
  for (int i = 0; i < g->n_nodes; i++)
    {
      TdOnnxNode *n = &g->nodes[i];
      const int wrong = n->row != NULL ? pass (n, narrow) : -1;

      if (wrong >= 0)
        found (n, wrong, NULL, user);
      for (int k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].graph != NULL)
          look (n->attrs[k].graph, narrow, found, user);
    }
  for (int k = 0; k < g->n_out; k++)
    if (narrow[g->out[k].value])
      found (NULL, -1, g->out[k].name, user);
}

void
td__onnx_each_narrow (TdOnnxGraph *g, TdOnnxNarrow *found, void *user)
{
  bool *narrow = td__xcalloc ((size_t)g->n_values + 1, sizeof *narrow);

  for (int i = 0; i < g->n_givens; i++)
    narrow[g->givens[i].value] = g->givens[i].tensor.is_int8;
  look (g, narrow, found, user);
  free (narrow);
}
