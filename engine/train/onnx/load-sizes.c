/* Which values are arrays whatever is given: operators that know numbers in host memory only,
 * sizes and constants, cannot take them.
 *
 * SPDX-License-Identifier: MIT */
#include "run.h"

#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

/* What comes out are numbers in host memory, though an array goes in. */
static bool
makes_numbers (const char *type)
{
  static const char *const types[] = { "ConstantOfShape", "Range", "Shape", "Size" };

  for (int i = 0; i < TD_ARRAY_LENGTH (types); i++)
    if (strcmp (type, types[i]) == 0)
      return true;
  return false;
}

/* Of operators that look at one input the first decides; sizes that others give may be read. */
static bool
takes_array (const TdOnnxNode *n, const bool *arrays)
{
  const int n_looked_at = n->row->binary != NULL || n->row->run == NULL ? n->n_in : 1;

  for (int k = 0; k < n_looked_at && k < n->n_in; k++)
    if (n->in[k] != TD_ONNX_ABSENT && arrays[n->in[k]])
      return true;
  return false;
}

void
td__onnx_each_of_sizes (const TdOnnxGraph *g, TdOnnxOfSizes *found, void *user)
{
  bool *arrays = td__xcalloc ((size_t)g->n_values + 1, sizeof *arrays);

  for (int i = 0; i < g->n_in; i++)
    arrays[g->in[i].value] = true;
  for (int i = 0; i < g->n_nodes; i++)
    {
      const TdOnnxNode *n = &g->nodes[i];

      /* Of what bodies make nothing is known, and whether they run at all. */
      if (n->row == NULL || n->row->has_bodies || makes_numbers (n->type)
          || !takes_array (n, arrays))
        continue;
      if (n->row->run == NULL && n->row->host != NULL)
        found (n, user);
      for (int k = 0; k < n->n_out; k++)
        if (n->out[k] != TD_ONNX_ABSENT)
          arrays[n->out[k]] = true;
    }
  free (arrays);
}
