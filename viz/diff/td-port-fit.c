/*
 * Which layer of a reference may be which of a program's: a file of arrays may name only some
 * parameters, or lay them out flat, so those that it names have to be there, by their numbers
 * of elements, and no more is asked for.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-port-private.h"

#define MOST_CELLS (1u << 24)

guint64
td__port_count (const TdPortParameter *p)
{
  guint64 n = 1;

  for (guint d = 0; d < p->ndim; d++)
    n *= (guint64)p->dims[d];
  return n;
}

static const TdPortParameter *
parameter_of (const TdPortLayer *layer, guint i)
{
  return &g_array_index (layer->parameters, TdPortParameter, i);
}

/* Of how many parameters of a layer the other one has a counterpart, each of its own. */
static guint
count_fitting (const TdPortLayer *layer, const TdPortLayer *other)
{
  const guint n = other->parameters->len;
  g_autofree gboolean *taken = g_new0 (gboolean, n + 1);
  guint fitting = 0;

  for (guint i = 0; i < layer->parameters->len; i++)
    {
      const guint64 count = td__port_count (parameter_of (layer, i));
      guint k = 0;

      while (k < n && (taken[k] || td__port_count (parameter_of (other, k)) != count))
        k++;
      taken[k] = TRUE;
      fitting += k < n;
    }
  return fitting;
}

guint
td__port_fitting (const TdPort *self, guint a, guint b)
{
  return count_fitting (td__port_layer (self, 0, a), td__port_layer (self, 1, b));
}

/* ---- in order ---- */

static const char *
last_part (const char *path)
{
  const char *slash = strrchr (path, '/');

  return slash ? slash + 1 : path;
}

/* Have they returned as many elements? */
static gboolean
return_as_much (const TdPortLayer *a, const TdPortLayer *b)
{
  return a->out.stats && b->out.stats && a->out.stats->n == b->out.stats->n;
}

/* What speaks for a pair; 0: a parameter that is named has no counterpart. */
static guint
score_of (const TdPort *self, guint a, guint b)
{
  const TdPortLayer *x = td__port_layer (self, 0, a), *y = td__port_layer (self, 1, b);

  if (count_fitting (x, y) < MIN (x->parameters->len, y->parameters->len))
    return 0;
  return 1 + return_as_much (x, y) + (td__port_signature (x) == td__port_signature (y))
         + (strcmp (last_part (x->path), last_part (y->path)) == 0);
}

static guint
unit (const GArray *units, guint k)
{
  return g_array_index (units, guint, k);
}

gboolean
td__port_align_fitting (TdPort *self, const GArray *const units[2])
{
  const guint n = units[0]->len, m = units[1]->len, row = m + 1;
  guint i = 0, j = 0;

  if ((guint64)(n + 1) * row > MOST_CELLS)
    return FALSE;
  g_autofree guint *best = g_new0 (guint, (gsize)(n + 1) * row); /* of what is left */
  for (guint a = n; a-- > 0;)
    for (guint b = m; b-- > 0;)
      {
        const guint score = score_of (self, unit (units[0], a), unit (units[1], b));
        const guint without = MAX (best[(a + 1) * row + b], best[a * row + b + 1]);
        const guint with = score > 0 ? score + best[(a + 1) * row + b + 1] : 0;

        best[a * row + b] = MAX (with, without);
      }
  while (i < n && j < m)
    {
      const guint score = score_of (self, unit (units[0], i), unit (units[1], j));

      if (score > 0 && best[i * row + j] == score + best[(i + 1) * row + j + 1])
        td__port_pair (self, unit (units[0], i++), unit (units[1], j++), TD_PORT_BY_ORDER);
      else if (best[i * row + j] == best[(i + 1) * row + j])
        i++;
      else
        j++;
    }
  return TRUE;
}
