/*
 * Which layer of a model is which of its port: by a table, or guessed. Layers that have
 * parameters are the same by their names, if all of one side's are called so on the other; else
 * they are aligned in their order by the sizes of these, whichever way round a weight lies.
 * Of a reference, which may name only some of its parameters, these are what counts.
 * Layers without parameters are the same by their names, too, or if they stand around the same
 * layers. Where a side knows of no parameters, what layers return stands for these.
 *
 * SPDX-License-Identifier: MIT
 */
#include <gio/gio.h>
#include <string.h>

#include "td-align.h"
#include "td-port-names.h"
#include "td-port-private.h"

/* Sizes of the largest parameter, in no order: what a transposed weight and a missing bias
 * leave as it is. */
guint64
td__port_signature (const TdPortLayer *layer)
{
  const TdPortParameter *largest = &g_array_index (layer->parameters, TdPortParameter, 0);
  gint64 dims[TD_TAPE_MAX_NDIM];

  for (guint i = 1; i < layer->parameters->len; i++)
    {
      const TdPortParameter *p = &g_array_index (layer->parameters, TdPortParameter, i);

      largest = td__port_count (p) > td__port_count (largest) ? p : largest;
    }
  memcpy (dims, largest->dims, sizeof dims);
  return td__names_token (dims, largest->ndim);
}

/* Is a side a file that may name only some parameters? */
static gboolean
has_reference (const TdPort *self)
{
  return self->side[0].source.is_reference || self->side[1].source.is_reference;
}

gboolean
td__port_may_pair (const TdPort *self, guint a, guint b)
{
  const TdPortLayer *x = td__port_layer (self, 0, a), *y = td__port_layer (self, 1, b);

  if (x->parameters->len == 0 || y->parameters->len == 0)
    return TRUE;
  if (has_reference (self))
    return td__port_fitting (self, a, b) > 0;
  return td__port_signature (x) == td__port_signature (y);
}

/* Layers without a partner: all, or those that have parameters. Their indices. */
static GArray *
find_units (const TdPort *self, guint side, gboolean with_parameters)
{
  GArray *units = g_array_new (FALSE, FALSE, sizeof (guint));

  for (guint i = 0; i < self->side[side].layers->len; i++)
    if (self->partner[side][i] < 0
        && (!with_parameters || td__port_layer (self, side, i)->parameters->len > 0))
      g_array_append_val (units, i);
  return units;
}

static GArray *
find_tokens (const TdPort *self, guint side, const GArray *units)
{
  GArray *tokens = g_array_new (FALSE, FALSE, sizeof (guint64));

  for (guint k = 0; k < units->len; k++)
    {
      guint64 token
          = td__port_signature (td__port_layer (self, side, g_array_index (units, guint, k)));

      g_array_append_val (tokens, token);
    }
  return tokens;
}

static gboolean
is_within (const char *path, const char *around)
{
  const gsize n = strlen (around);

  return strncmp (path, around, n) == 0 && path[n] == '/';
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
          td__port_pair (self, i, j, TD_PORT_BY_WITHIN);
          return;
        }
    }
}

static void
align (TdPort *self, const GArray *const units[2])
{
  g_autoptr (GArray) tokens_a = find_tokens (self, 0, units[0]);
  g_autoptr (GArray) tokens_b = find_tokens (self, 1, units[1]);
  g_autofree gint32 *b_of_a = g_new (gint32, units[0]->len + 1);
  g_autofree gint32 *a_of_b = g_new (gint32, units[1]->len + 1);

  td__align ((const guint64 *)(const void *)tokens_a->data, (gint)units[0]->len,
             (const guint64 *)(const void *)tokens_b->data, (gint)units[1]->len, b_of_a,
             a_of_b);
  for (guint k = 0; k < units[0]->len; k++)
    if (b_of_a[k] >= 0)
      td__port_pair (self, g_array_index (units[0], guint, k),
                     g_array_index (units[1], guint, (guint)b_of_a[k]), TD_PORT_BY_ORDER);
}

/* All pairs that may be: the names do not lie. */
static gboolean
names_fit (const TdPort *self, const GArray *const units[2])
{
  guint n = 0;

  for (guint k = 0; k < units[0]->len; k++)
    n += self->partner[0][g_array_index (units[0], guint, k)] >= 0;
  return n == MIN (units[0]->len, units[1]->len);
}

static void
unpair_all (TdPort *self)
{
  for (guint s = 0; s < 2; s++)
    for (guint i = 0; i < self->side[s].layers->len; i++)
      self->partner[s][i] = -1;
}

void
td__port_guess (TdPort *self)
{
  g_autoptr (GArray) a = find_units (self, 0, TRUE);
  g_autoptr (GArray) b = find_units (self, 1, TRUE);
  const GArray *const units[2] = { a, b };
  const gboolean known = a->len > 0 && b->len > 0;

  if (known && (!td__port_pair_names (self, units, units, TRUE) || !names_fit (self, units)))
    {
      unpair_all (self);
      if (!has_reference (self) || !td__port_align_fitting (self, units))
        align (self, units);
    }
  g_autoptr (GArray) others_a = find_units (self, 0, FALSE);
  g_autoptr (GArray) others_b = find_units (self, 1, FALSE);
  const GArray *const others[2] = { others_a, others_b };
  td__port_pair_names (self, others, known ? units : others, FALSE);
  for (guint i = 0; i < self->side[0].layers->len; i++)
    if (self->partner[0][i] < 0)
      pair_around (self, units, i);
  if (!known)
    td__port_pair_shapes (self);
}

const char *
td__port_how (TdPortHow how)
{
  static const char *const words[] = { [TD_PORT_BY_TABLE] = "by the table",
                                       [TD_PORT_BY_NAME] = "by name",
                                       [TD_PORT_BY_ORDER] = "by order and sizes of parameters",
                                       [TD_PORT_BY_WITHIN] = "by the layers within",
                                       [TD_PORT_BY_SHAPE] = "by order and what they return" };

  return words[how];
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
  td__port_pair (self, (guint)found[0], (guint)found[1], TD_PORT_BY_TABLE);
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
