/*
 * Which layer of a model is which of its port: by a table, or guessed. Layers that have
 * parameters are aligned in their order by the sizes of these, whichever way round a weight
 * lies; what stands around the same layers on both sides is the same; layers without parameters
 * are left out.
 *
 * SPDX-License-Identifier: MIT
 */
#include <gio/gio.h>
#include <string.h>

#include "td-align.h"
#include "td-port-names.h"
#include "td-port-private.h"

static guint64
count (const TdPortParameter *p)
{
  guint64 n = 1;

  for (guint d = 0; d < p->ndim; d++)
    n *= (guint64)p->dims[d];
  return n;
}

/* Sizes of the largest parameter, in no order: what a transposed weight and a missing bias
 * leave as it is. */
static guint64
signature (const TdPortLayer *layer)
{
  const TdPortParameter *largest = &g_array_index (layer->parameters, TdPortParameter, 0);
  gint64 dims[TD_TAPE_MAX_NDIM];

  for (guint i = 1; i < layer->parameters->len; i++)
    {
      const TdPortParameter *p = &g_array_index (layer->parameters, TdPortParameter, i);

      largest = count (p) > count (largest) ? p : largest;
    }
  memcpy (dims, largest->dims, sizeof dims);
  return td__names_token (dims, largest->ndim);
}

/* Layers with parameters: their indices, and tokens to be aligned. */
static void
find_units (const TdPort *self, guint side, GArray *units, GArray *tokens)
{
  for (guint i = 0; i < self->side[side].layers->len; i++)
    if (td__port_layer (self, side, i)->parameters->len > 0)
      {
        guint64 token = signature (td__port_layer (self, side, i));

        g_array_append_val (units, i);
        g_array_append_val (tokens, token);
      }
}

static gboolean
is_within (const char *path, const char *around)
{
  const gsize n = strlen (around);

  return strncmp (path, around, n) == 0 && path[n] == '/';
}

static void
pair (TdPort *self, guint a, guint b)
{
  self->partner[0][a] = (gint)b;
  self->partner[1][b] = (gint)a;
}

/* The layers of B that stand around just the partners of what stands in A's layer `i`. */
static void
pair_around (TdPort *self, const GArray *const units[2], guint i)
{
  const char *path = td__port_layer (self, 0, i)->path;
  guint n = 0;

  for (guint k = 0; k < units[0]->len; k++)
    n += is_within (td__port_layer (self, 0, g_array_index (units[0], guint, k))->path, path);
  for (guint j = 0; n > 1 && j < self->side[1].layers->len; j++)
    {
      const char *other = td__port_layer (self, 1, j)->path;
      gboolean same = self->partner[1][j] < 0;

      for (guint k = 0; same && k < units[0]->len; k++)
        {
          const guint u = g_array_index (units[0], guint, k);
          const gint v = self->partner[0][u];

          if (is_within (td__port_layer (self, 0, u)->path, path))
            same = v >= 0 && is_within (td__port_layer (self, 1, (guint)v)->path, other);
          else
            same = v < 0 || !is_within (td__port_layer (self, 1, (guint)v)->path, other);
        }
      if (same)
        {
          pair (self, i, j);
          return;
        }
    }
}

void
td__port_guess (TdPort *self)
{
  g_autoptr (GArray) a = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GArray) b = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GArray) tokens_a = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_autoptr (GArray) tokens_b = g_array_new (FALSE, FALSE, sizeof (guint64));
  const GArray *const units[2] = { a, b };

  find_units (self, 0, a, tokens_a);
  find_units (self, 1, b, tokens_b);
  g_autofree gint32 *b_of_a = g_new (gint32, a->len + 1);
  g_autofree gint32 *a_of_b = g_new (gint32, b->len + 1);
  td__align ((const guint64 *)(const void *)tokens_a->data, (gint)a->len,
             (const guint64 *)(const void *)tokens_b->data, (gint)b->len, b_of_a, a_of_b);
  for (guint k = 0; k < a->len; k++)
    if (b_of_a[k] >= 0)
      pair (self, g_array_index (a, guint, k), g_array_index (b, guint, (guint)b_of_a[k]));
  for (guint i = 0; i < self->side[0].layers->len; i++)
    if (self->partner[0][i] < 0)
      pair_around (self, units, i);
}

/* ---- a table ---- */

static gint
find_path (const TdPort *self, guint side, const char *path)
{
  for (guint i = 0; i < self->side[side].layers->len; i++)
    if (strcmp (td__port_layer (self, side, i)->path, path) == 0)
      return (gint)i;
  return -1;
}

static gboolean
take_line (TdPort *self, char *line, guint number, GError **error)
{
  const char *path[2];
  const guint n = td__names_words (line, path, G_N_ELEMENTS (path));
  gint found[2];

  if (n == 0)
    return TRUE;
  if (n != 2)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                   "line %u of the names has %u paths, not two", number, n);
      return FALSE;
    }
  if (strcmp (path[0], "-") == 0 || strcmp (path[1], "-") == 0)
    return TRUE;
  for (guint s = 0; s < 2; s++)
    {
      found[s] = find_path (self, s, path[s]);
      if (found[s] < 0 || self->partner[s][found[s]] >= 0)
        {
          g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                       "line %u of the names: %s %s %s", number, s == 0 ? "A" : "B",
                       found[s] < 0 ? "has no layer" : "is asked twice for", path[s]);
          return FALSE;
        }
    }
  pair (self, (guint)found[0], (guint)found[1]);
  return TRUE;
}

gboolean
td__port_take_names (TdPort *self, const char *names, GError **error)
{
  g_auto (GStrv) lines = g_strsplit (names, "\n", -1);

  for (guint i = 0; lines[i]; i++)
    if (!take_line (self, lines[i], i + 1, error))
      return FALSE;
  return TRUE;
}
