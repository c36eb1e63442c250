/*
 * Blocks: what several layers are in, and what there are several of (a0/conv1, a0/bn1, a1/conv1
 * ...; layer1.0.conv1 ...). Where the layers in them have the same names and sizes, the numbers
 * of the blocks say which is which, whatever the blocks are called.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-weights-private.h"

/* All blocks whose paths differ in their last number only. */
typedef struct
{
  char *name;       /* "layer1." of layer1.0 and layer1.1 */
  GPtrArray *paths; /* of the blocks, by their numbers */
} Group;

static void
group_free (gpointer data)
{
  Group *group = data;

  g_free (group->name);
  g_ptr_array_unref (group->paths);
  g_free (group);
}

const char *
td__weights_in_block (const char *path, const char *block)
{
  const gsize n = strlen (block);

  return strncmp (path, block, n) == 0 && path[n] == '.' ? path + n + 1 : NULL;
}

static guint64
number_of (const char *block, gsize *stem)
{
  gsize n = strlen (block);

  while (n > 0 && g_ascii_isdigit (block[n - 1]))
    n--;
  *stem = n;
  return g_ascii_strtoull (block + n, NULL, 10);
}

static gint
by_number (gconstpointer a, gconstpointer b)
{
  gsize stem;
  const guint64 x = number_of (*(char *const *)a, &stem),
                y = number_of (*(char *const *)b, &stem);

  return x < y ? -1 : x > y;
}

/* One more block, unless it is known. */
static void
add_block (GPtrArray *groups, GHashTable *by_name, const char *block)
{
  gsize stem;

  number_of (block, &stem);
  g_autofree char *name = g_strndup (block, stem);
  Group *group = g_hash_table_lookup (by_name, name);
  if (!group)
    {
      group = g_new0 (Group, 1);
      group->name = g_steal_pointer (&name);
      group->paths = g_ptr_array_new_with_free_func (g_free);
      g_ptr_array_add (groups, group);
      g_hash_table_insert (by_name, group->name, group);
    }
  if (!g_ptr_array_find_with_equal_func (group->paths, block, g_str_equal, NULL))
    g_ptr_array_add (group->paths, g_strdup (block));
}

/* Of the layers that have no partner yet. */
static GPtrArray *
find_groups (const TdWeights *self, guint whose)
{
  GPtrArray *groups = g_ptr_array_new_with_free_func (group_free);
  g_autoptr (GHashTable) by_name = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < self->units[whose]->len; i++)
    {
      const char *path = td__weights_unit (self, whose, i)->path;

      for (const char *dot = strchr (path, '.'); dot; dot = strchr (dot + 1, '.'))
        {
          g_autofree char *block = g_strndup (path, (gsize)(dot - path));

          if (dot > path && g_ascii_isdigit (dot[-1]) && td__weights_is_free (self, whose, i))
            add_block (groups, by_name, block);
        }
    }
  for (guint g = 0; g < groups->len; g++)
    g_ptr_array_sort (((Group *)g_ptr_array_index (groups, g))->paths, by_number);
  return groups;
}

/* ---- which is which ---- */

/* What is free in a block, by what it is called in there; values are indices and one more. */
static GHashTable *
content_of (const TdWeights *self, guint whose, const char *block)
{
  GHashTable *content = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < self->units[whose]->len; i++)
    {
      const char *rest = td__weights_in_block (td__weights_unit (self, whose, i)->path, block);

      if (rest && td__weights_is_free (self, whose, i))
        g_hash_table_insert (content, (gpointer)rest, GUINT_TO_POINTER (i + 1));
    }
  return content;
}

static gboolean
could_be (const TdWeightsUnit *a, const TdWeightsUnit *b)
{
  return a->token != 0 && a->token == b->token && a->gates == b->gates;
}

/* Two layers or more have one name in both, which are at least half of each, and they all have
 * the same sizes. */
static gboolean
blocks_agree (const TdWeights *self, const char *ours, const char *theirs)
{
  g_autoptr (GHashTable) a = content_of (self, TD_OURS, ours),
                         b = content_of (self, TD_THEIRS, theirs);
  GHashTableIter iter;
  gpointer rest, i;
  guint n = 0;

  g_hash_table_iter_init (&iter, a);
  while (g_hash_table_iter_next (&iter, &rest, &i))
    {
      const guint j = GPOINTER_TO_UINT (g_hash_table_lookup (b, rest));

      if (j == 0)
        continue;
      if (!could_be (td__weights_unit (self, TD_OURS, GPOINTER_TO_UINT (i) - 1),
                     td__weights_unit (self, TD_THEIRS, j - 1)))
        return FALSE;
      n++;
    }
  return n > 1 && 2 * n >= MAX (g_hash_table_size (a), g_hash_table_size (b));
}

static gboolean
groups_agree (const TdWeights *self, const Group *ours, const Group *theirs)
{
  if (ours->paths->len != theirs->paths->len)
    return FALSE;
  for (guint k = 0; k < ours->paths->len; k++)
    if (!blocks_agree (self, g_ptr_array_index (ours->paths, k),
                       g_ptr_array_index (theirs->paths, k)))
      return FALSE;
  return TRUE;
}

/* The one group that fits; NULL: none does, or several do. */
static Group *
only_one (const TdWeights *self, guint whose, const Group *group, GPtrArray *others)
{
  Group *found = NULL;

  for (guint k = 0; k < others->len; k++)
    {
      Group *other = g_ptr_array_index (others, k);

      if (!(whose == TD_OURS ? groups_agree (self, group, other)
                             : groups_agree (self, other, group)))
        continue;
      if (found)
        return NULL;
      found = other;
    }
  return found;
}

/* What is free and in no block yet; returns how many layers that are. */
static guint
put_into_block (TdWeights *self, guint whose, const char *path, guint block)
{
  guint n = 0;

  for (guint i = 0; i < self->units[whose]->len; i++)
    {
      TdWeightsUnit *unit = td__weights_unit (self, whose, i);
      const char *rest = td__weights_in_block (unit->path, path);

      if (!rest || !td__weights_is_free (self, whose, i))
        continue;
      unit->block = block;
      unit->rest = rest;
      n++;
    }
  return n;
}

gboolean
td__weights_pair_blocks (TdWeights *self, const char *ours, const char *theirs)
{
  const guint block = self->n_blocks + 1;

  if (put_into_block (self, TD_OURS, ours, block) == 0
      || put_into_block (self, TD_THEIRS, theirs, block) == 0)
    return FALSE;
  self->n_blocks = block;
  return TRUE;
}

void
td__weights_find_blocks (TdWeights *self)
{
  g_autoptr (GPtrArray) ours = find_groups (self, TD_OURS);
  g_autoptr (GPtrArray) theirs = find_groups (self, TD_THEIRS);
  g_autofree Group **partner = g_new0 (Group *, ours->len + 1);

  for (guint g = 0; g < ours->len; g++)
    {
      Group *a = g_ptr_array_index (ours, g), *b = only_one (self, TD_OURS, a, theirs);

      if (b && only_one (self, TD_THEIRS, b, ours) == a)
        partner[g] = b;
    }
  for (guint g = 0; g < ours->len; g++)
    for (guint k = 0; partner[g] && k < partner[g]->paths->len; k++)
      {
        const Group *a = g_ptr_array_index (ours, g);

        td__weights_pair_blocks (self, g_ptr_array_index (a->paths, k),
                                 g_ptr_array_index (partner[g]->paths, k));
      }
}

/* ---- in a block ---- */

static void
match_names (TdWeights *self)
{
  for (guint i = 0; i < self->units[TD_OURS]->len; i++)
    for (guint j = 0; td__weights_is_free (self, TD_OURS, i) && j < self->units[TD_THEIRS]->len;
         j++)
      {
        const TdWeightsUnit *a = td__weights_unit (self, TD_OURS, i),
                            *b = td__weights_unit (self, TD_THEIRS, j);

        if (td__weights_is_free (self, TD_THEIRS, j) && g_str_equal (a->rest, b->rest)
            && a->gates == b->gates)
          td__weights_pair (self, i, j, "by name, in blocks");
      }
}

/* The free layer of the block that is alone in being of these sizes; -1: none, or several. */
static gint
alone (const TdWeights *self, guint whose, const TdWeightsUnit *like)
{
  gint found = -1;

  for (guint i = 0; i < self->units[whose]->len; i++)
    if (td__weights_is_free (self, whose, i)
        && could_be (td__weights_unit (self, whose, i), like))
      {
        if (found >= 0)
          return -1;
        found = (gint)i;
      }
  return found;
}

void
td__weights_match_in_block (TdWeights *self)
{
  match_names (self);
  for (guint i = 0; i < self->units[TD_OURS]->len; i++)
    {
      const TdWeightsUnit *unit = td__weights_unit (self, TD_OURS, i);
      gint other;

      if (!td__weights_is_free (self, TD_OURS, i) || alone (self, TD_OURS, unit) != (gint)i)
        continue;
      other = alone (self, TD_THEIRS, unit);
      if (other >= 0)
        td__weights_pair (self, i, (guint)other, "by sizes, in blocks");
    }
}
