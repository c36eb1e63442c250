/*
 * Layers of two sides that are the same by their names, or by what they return.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-port-names.h"
#include "td-port-private.h"

void
td__port_pair (TdPort *self, guint a, guint b, TdPortHow how)
{
  self->partner[0][a] = (gint)b;
  self->partner[1][b] = (gint)a;
  self->how[a] = how;
}

/* Paths that other layers of a side stand below. */
static GHashTable *
find_containers (const TdPort *self, guint side)
{
  GHashTable *containers = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = 0; i < self->side[side].layers->len; i++)
    {
      g_autofree char *path = g_strdup (td__port_layer (self, side, i)->path);

      for (char *slash; (slash = strrchr (path, '/')) != NULL;)
        {
          *slash = '\0';
          g_hash_table_add (containers, g_strdup (path));
        }
    }
  return containers;
}

/* ---- names ---- */

/* One side's layers, as they are called. */
typedef struct
{
  const GArray *units;
  gsize common;        /* bytes of the path that all are below */
  GHashTable *by_name; /* what comes behind these -> 1 + layer */
} Names;

/* What the paths of the innermost of these layers have in common, in whole parts. */
static gsize
common_part (const TdPort *self, guint side, const GArray *units)
{
  g_autoptr (GHashTable) containers = find_containers (self, side);
  const char *first = NULL;
  gsize n = 0;

  for (guint k = 0; k < units->len; k++)
    {
      const char *path = td__port_layer (self, side, g_array_index (units, guint, k))->path;
      const char *slash = strrchr (path, '/');
      const gsize most = slash ? (gsize)(slash - path) + 1 : 0;
      gsize same = 0;

      if (g_hash_table_contains (containers, path))
        continue;
      n = first ? MIN (n, most) : most;
      first = first ? first : path;
      while (same < n && path[same] == first[same])
        same++;
      while (same > 0 && first[same - 1] != '/')
        same--;
      n = same;
    }
  return n;
}

static void
names_read (const TdPort *self, guint side, const GArray *units, const GArray *roots,
            Names *names)
{
  names->units = units;
  names->common = common_part (self, side, roots);
  names->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint k = 0; k < units->len; k++)
    {
      const guint i = g_array_index (units, guint, k);
      const char *path = td__port_layer (self, side, i)->path;

      if (strlen (path) > names->common)
        g_hash_table_insert (names->by_name, (char *)path + names->common,
                             GINT_TO_POINTER ((gint)i + 1));
    }
}

/* Is `b` all of `a`, or its last parts? */
static gboolean
is_end_of (const char *a, const char *b)
{
  const gsize n = strlen (a), m = strlen (b);

  return n >= m && strcmp (a + n - m, b) == 0 && (n == m || a[n - m - 1] == '/');
}

/* The one layer of the other side that is called as layer `i` of `side`; -1: none, or several.
 * A reference often lacks the model's own name. */
static gint
find_named (const TdPort *self, guint side, guint i, const Names *names)
{
  const char *path = td__port_layer (self, side, i)->path;
  const GArray *others = names[!side].units;
  gint named = -1;

  if (strlen (path) > names[side].common)
    named = GPOINTER_TO_INT (
                g_hash_table_lookup (names[!side].by_name, path + names[side].common))
            - 1;
  if (named >= 0)
    return named;
  for (guint k = 0; k < others->len; k++)
    {
      const guint j = g_array_index (others, guint, k);
      const char *other = td__port_layer (self, !side, j)->path;

      if (!is_end_of (path, other) && !is_end_of (other, path))
        continue;
      if (named >= 0)
        return -1;
      named = (gint)j;
    }
  return named;
}

/* Find for each layer of one side the other's that is called so. FALSE: of one there is none,
 * or two have the same. */
static gboolean
find_all_named (const TdPort *self, guint side, const Names *names, gint *named)
{
  g_autoptr (GHashTable) taken = g_hash_table_new (NULL, NULL);
  gboolean all = TRUE;

  for (guint k = 0; k < names[side].units->len; k++)
    {
      named[k] = find_named (self, side, g_array_index (names[side].units, guint, k), names);
      if (named[k] >= 0 && !g_hash_table_add (taken, GINT_TO_POINTER (named[k])))
        named[k] = -1;
      all = all && named[k] >= 0;
    }
  return all;
}

gboolean
td__port_pair_names (TdPort *self, const GArray *const units[2], const GArray *const roots[2],
                     gboolean all)
{
  const guint side = units[0]->len <= units[1]->len ? 0 : 1;
  g_autofree gint *named = g_new (gint, units[side]->len + 1);
  Names names[2];
  gboolean found;

  for (guint s = 0; s < 2; s++)
    names_read (self, s, units[s], roots[s], &names[s]);
  found = find_all_named (self, side, names, named) || !all;
  for (guint k = 0; found && k < units[side]->len; k++)
    {
      const guint own = g_array_index (units[side], guint, k);
      const guint a = side == 0 ? own : (guint)named[k], b = side == 0 ? (guint)named[k] : own;

      if (named[k] >= 0 && td__port_may_pair (self, a, b))
        td__port_pair (self, a, b, TD_PORT_BY_NAME);
    }
  for (guint s = 0; s < 2; s++)
    g_hash_table_unref (names[s].by_name);
  return found;
}

/* ---- what they return ---- */

static guint64
token_of (const TdPort *self, guint side, const TdPortLayer *layer)
{
  const TdTapeIteration *t = self->side[side].tape;
  const TdTapeVar *v = &t->vars[layer->out.var];
  gint64 dims[TD_TAPE_MAX_NDIM];

  memcpy (dims, t->dims + v->first_dim, v->ndim * sizeof *dims);
  return td__names_token (dims, v->ndim);
}

/* Layers without a partner and without layers within, by the size of what they return. */
static GHashTable *
group_by_size (const TdPort *self, guint side)
{
  g_autoptr (GHashTable) containers = find_containers (self, side);
  GHashTable *groups = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free,
                                              (GDestroyNotify)g_array_unref);

  for (guint i = 0; i < self->side[side].layers->len; i++)
    {
      const TdPortLayer *layer = td__port_layer (self, side, i);

      if (layer->out.var < 0 || self->partner[side][i] >= 0
          || g_hash_table_contains (containers, layer->path))
        continue;
      const guint64 token = token_of (self, side, layer);
      GArray *group = g_hash_table_lookup (groups, &token);

      if (!group)
        {
          group = g_array_new (FALSE, FALSE, sizeof (guint));
          g_hash_table_insert (groups, g_memdup2 (&token, sizeof token), group);
        }
      g_array_append_val (group, i);
    }
  return groups;
}

void
td__port_pair_shapes (TdPort *self)
{
  g_autoptr (GHashTable) a = group_by_size (self, 0);
  g_autoptr (GHashTable) b = group_by_size (self, 1);
  GHashTableIter iter;
  gpointer token, group;

  g_hash_table_iter_init (&iter, a);
  while (g_hash_table_iter_next (&iter, &token, &group))
    {
      const GArray *mine = group, *theirs = g_hash_table_lookup (b, token);

      for (guint k = 0; theirs && mine->len == theirs->len && k < mine->len; k++)
        td__port_pair (self, g_array_index (mine, guint, k), g_array_index (theirs, guint, k),
                       TD_PORT_BY_SHAPE);
    }
}
