/*
 * Which layer is which: by names, but for what all of a side have in front; then, first in
 * blocks that are known to be each other (td-weights-blocks.c), by numbers, where one family of
 * layers (h.0.ln, h.1.ln ...) can only be one other; and what is left by its order, as a
 * question, or because that was asked for.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-align.h"
#include "td-port-names.h"
#include "td-weights-private.h"

enum
{
  MOST_FRONT = 3 /* parts of paths that all of a side may have in front */
};

gboolean
td__weights_is_free (const TdWeights *self, guint whose, guint i)
{
  const TdWeightsUnit *unit = td__weights_unit (self, whose, i);

  return unit->partner < 0 && unit->block == self->block;
}

void
td__weights_pair (TdWeights *self, guint ours, guint theirs, const char *how)
{
  TdWeightsUnit *a = td__weights_unit (self, TD_OURS, ours),
                *b = td__weights_unit (self, TD_THEIRS, theirs);

  a->partner = (gint)theirs;
  b->partner = (gint)ours;
  a->how = b->how = how;
}

/* ---- by names ---- */

/* What is behind the first n parts, which may be nothing; NULL: there are not so many. */
static const char *
behind (const char *path, guint n)
{
  for (; n > 0; n--)
    {
      if (!*path)
        return NULL;
      path += strcspn (path, ".");
      path += *path == '.';
    }
  return path;
}

/* Do two paths begin with the same n parts? */
static gboolean
same_front (const char *path, const char *other, guint n)
{
  for (; n > 0; n--)
    {
      const gsize length = strcspn (path, ".");

      if (length == 0 || length != strcspn (other, ".") || strncmp (path, other, length) != 0)
        return FALSE;
      path = behind (path, 1);
      other = behind (other, 1);
    }
  return TRUE;
}

/* How many parts all paths of a side begin with. */
static guint
common_front (const TdWeights *self, guint whose)
{
  const char *first = td__weights_unit (self, whose, 0)->path;

  for (guint n = 1; n <= MOST_FRONT; n++)
    for (guint i = 0; i < self->units[whose]->len; i++)
      if (!same_front (first, td__weights_unit (self, whose, i)->path, n))
        return n - 1;
  return MOST_FRONT;
}

/* Pairs layers of one name behind so many parts; returns how many there are. */
static guint
match_names (TdWeights *self, guint front_ours, guint front_theirs, gboolean count_only)
{
  g_autoptr (GHashTable) by_path = g_hash_table_new (g_str_hash, g_str_equal);
  guint n = 0;

  for (guint j = 0; j < self->units[TD_THEIRS]->len; j++)
    g_hash_table_insert (
        by_path, (gpointer)behind (td__weights_unit (self, TD_THEIRS, j)->path, front_theirs),
        GUINT_TO_POINTER (j + 1));
  for (guint i = 0; i < self->units[TD_OURS]->len; i++)
    {
      const TdWeightsUnit *unit = td__weights_unit (self, TD_OURS, i);
      const guint found
          = GPOINTER_TO_UINT (g_hash_table_lookup (by_path, behind (unit->path, front_ours)));

      if (found == 0 || unit->gates != td__weights_unit (self, TD_THEIRS, found - 1)->gates)
        continue;
      n++;
      if (!count_only && td__weights_is_free (self, TD_OURS, i)
          && td__weights_is_free (self, TD_THEIRS, found - 1))
        td__weights_pair (self, i, found - 1, "by name");
    }
  return n;
}

static void
match_by_name (TdWeights *self)
{
  const guint most[TD_N_WHOSE]
      = { common_front (self, TD_OURS), common_front (self, TD_THEIRS) };
  guint best = 0, front[TD_N_WHOSE] = { 0 };

  for (guint a = 0; a <= most[TD_OURS]; a++)
    for (guint b = 0; b <= most[TD_THEIRS]; b++)
      {
        const guint n = match_names (self, a, b, TRUE);

        if (n > best)
          {
            best = n;
            front[TD_OURS] = a;
            front[TD_THEIRS] = b;
          }
      }
  match_names (self, front[TD_OURS], front[TD_THEIRS], FALSE);
}

/* ---- queries, keys and values: three layers of one side, one of the other ---- */

/* The layer beside this one that makes `letter`; -1: none, or several. */
static gint
beside (const TdWeights *self, guint whose, const char *path, char letter)
{
  const char *dot = strrchr (path, '.');
  const gsize around = dot ? (gsize)(dot - path) + 1 : 0;
  gint found = -1;

  for (guint i = 0; i < self->units[whose]->len; i++)
    {
      const char *other = td__weights_unit (self, whose, i)->path;

      if (strncmp (other, path, around) == 0 && !strchr (other + around, '.')
          && td__weights_qkv (other) == letter && td__weights_is_free (self, whose, i))
        {
          if (found >= 0)
            return -1;
          found = (gint)i;
        }
    }
  return found;
}

/* Rows and columns of a layer's weight, whichever way round; FALSE: it has none of two axes. */
static gboolean
weight_sizes (const TdWeights *self, guint whose, guint i, gint64 *rows, gint64 *columns)
{
  const TdWeightsPart *part
      = td__weights_part (td__weights_unit (self, whose, i), whose == TD_OURS ? "W" : "weight");
  const TdWeightsArray *a = part ? &self->arrays[whose][part->array] : NULL;

  if (!a || a->ndim != 2)
    return FALSE;
  *rows = a->dims[0];
  *columns = a->dims[1];
  return TRUE;
}

/* Three layers of `whose`, by their first; FALSE: these are none. */
static gboolean
find_three (const TdWeights *self, guint whose, guint q, guint *three)
{
  const char *path = td__weights_unit (self, whose, q)->path;

  if (td__weights_qkv (path) != 'q' || !td__weights_is_free (self, whose, q))
    return FALSE;
  for (guint i = 0; i < 3; i++)
    {
      const gint found = beside (self, whose, path, "qkv"[i]);
      gint64 rows, columns;

      if (found < 0 || !weight_sizes (self, whose, (guint)found, &rows, &columns)
          || rows != columns)
        return FALSE;
      three[i] = (guint)found;
    }
  return TRUE;
}

/* Free layers of the other side that could be all three, in the order of their numbers. */
static void
find_fused (const TdWeights *self, guint whose, gint64 size, GArray *fused)
{
  for (guint i = 0; i < self->units[whose]->len; i++)
    {
      gint64 rows, columns;

      if (td__weights_is_free (self, whose, i) && weight_sizes (self, whose, i, &rows, &columns)
          && ((rows == 3 * size && columns == size) || (rows == size && columns == 3 * size)))
        g_array_append_val (fused, i);
    }
}

static gint by_numbers (gconstpointer a, gconstpointer b, gpointer self);

/* As many threes as layers of three times the rows, each in the order of its numbers. */
static void
match_qkv (TdWeights *self, guint whose)
{
  const guint other = whose == TD_OURS ? TD_THEIRS : TD_OURS;
  g_autoptr (GArray) firsts = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GArray) fused = g_array_new (FALSE, FALSE, sizeof (guint));
  gint64 size = 0, rows, columns;
  guint three[3];

  for (guint i = 0; i < self->units[whose]->len; i++)
    if (find_three (self, whose, i, three) && weight_sizes (self, whose, i, &rows, &columns))
      {
        if (size == 0)
          size = rows;
        if (rows == size)
          g_array_append_val (firsts, i);
      }
  if (firsts->len == 0)
    return;
  find_fused (self, other, size, fused);
  if (fused->len != firsts->len)
    return;
  g_array_sort_with_data (firsts, by_numbers, self->units[whose]);
  g_array_sort_with_data (fused, by_numbers, self->units[other]);
  for (guint k = 0; k < firsts->len; k++)
    if (find_three (self, whose, g_array_index (firsts, guint, k), three))
      td__weights_settle_qkv (self, whose, g_array_index (fused, guint, k), three);
}

/* ---- by numbers ---- */

/* Layers whose paths differ in numbers only. */
typedef struct
{
  char *name, *last; /* "h.#.ln", "ln" */
  GArray *units;     /* guint, by their numbers */
  guint64 token;     /* of all, in that order */
  gboolean taken;
} Family;

static void
family_free (gpointer data)
{
  Family *family = data;

  g_free (family->name);
  g_free (family->last);
  g_array_unref (family->units);
  g_free (family);
}

/* A number less where a path has a smaller one first. */
static gint
compare_numbers (const char *a, const char *b)
{
  while (*a && *b)
    if (g_ascii_isdigit (*a) && g_ascii_isdigit (*b))
      {
        char *after_a, *after_b;
        const guint64 x = g_ascii_strtoull (a, &after_a, 10),
                      y = g_ascii_strtoull (b, &after_b, 10);

        if (x != y)
          return x < y ? -1 : 1;
        a = after_a;
        b = after_b;
      }
    else if (*a != *b)
      return *a < *b ? -1 : 1;
    else
      {
        a++;
        b++;
      }
  return (*a != '\0') - (*b != '\0');
}

static gint
by_numbers (gconstpointer a, gconstpointer b, gpointer units)
{
  const TdWeightsUnit *x = g_ptr_array_index ((GPtrArray *)units, *(const guint *)a),
                      *y = g_ptr_array_index ((GPtrArray *)units, *(const guint *)b);

  return compare_numbers (x->path, y->path);
}

static char *
without_numbers (const char *path)
{
  GString *name = g_string_new (NULL);

  for (const char *at = path; *at; at++)
    if (!g_ascii_isdigit (*at))
      g_string_append_c (name, *at);
    else if (at == path || !g_ascii_isdigit (at[-1]))
      g_string_append_c (name, '#');
  return g_string_free (name, FALSE);
}

/* The last part of a path, or what it says of queries, keys and values. */
static char *
last_part (const char *name)
{
  const char letter = td__weights_qkv (name), *dot = strrchr (name, '.');

  return letter ? g_strdup_printf ("%c", letter) : g_strdup (dot ? dot + 1 : name);
}

static void
finish_family (const TdWeights *self, guint whose, Family *family)
{
  guint64 hash = 14695981039346656037u;

  g_array_sort_with_data (family->units, by_numbers, self->units[whose]);
  for (guint k = 0; k < family->units->len; k++)
    {
      const TdWeightsUnit *unit
          = td__weights_unit (self, whose, g_array_index (family->units, guint, k));

      hash = (hash ^ unit->token ^ unit->gates) * 1099511628211u;
    }
  family->token = hash;
}

/* Families of what is free and has sizes. */
static GPtrArray *
find_families (const TdWeights *self, guint whose)
{
  GPtrArray *families = g_ptr_array_new_with_free_func (family_free);
  g_autoptr (GHashTable) by_name = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < self->units[whose]->len; i++)
    {
      const TdWeightsUnit *unit = td__weights_unit (self, whose, i);
      g_autofree char *name = without_numbers (unit->path);
      Family *family = g_hash_table_lookup (by_name, name);

      if (!td__weights_is_free (self, whose, i) || unit->token == 0)
        continue;
      if (!family)
        {
          family = g_new0 (Family, 1);
          family->last = last_part (name);
          family->name = g_steal_pointer (&name);
          family->units = g_array_new (FALSE, FALSE, sizeof (guint));
          g_ptr_array_add (families, family);
          g_hash_table_insert (by_name, family->name, family);
        }
      g_array_append_val (family->units, i);
    }
  for (guint f = 0; f < families->len; f++)
    finish_family (self, whose, g_ptr_array_index (families, f));
  return families;
}

/* Is a layer of these sizes there more than once? */
static gboolean
is_common (const TdWeights *self, guint whose, guint i)
{
  const TdWeightsUnit *unit = td__weights_unit (self, whose, i);
  guint n = 0;

  for (guint k = 0; k < self->units[whose]->len; k++)
    n += td__weights_is_free (self, whose, k)
         && td__weights_unit (self, whose, k)->token == unit->token;
  return n > 1;
}

static gboolean
are_alike (const Family *a, const Family *b, gboolean by_last)
{
  return !b->taken && a->token == b->token && a->units->len == b->units->len
         && (!by_last || g_str_equal (a->last, b->last));
}

/* The one family that could be this one; NULL: none, or several. */
static Family *
only_other (const Family *a, GPtrArray *families, gboolean by_last)
{
  Family *found = NULL;

  for (guint f = 0; f < families->len; f++)
    if (are_alike (a, g_ptr_array_index (families, f), by_last))
      {
        if (found)
          return NULL;
        found = g_ptr_array_index (families, f);
      }
  return found;
}

static void
match_families (TdWeights *self, GPtrArray *ours, GPtrArray *theirs, gboolean by_last)
{
  for (guint f = 0; f < ours->len; f++)
    {
      Family *a = g_ptr_array_index (ours, f),
             *b = a->taken ? NULL : only_other (a, theirs, by_last);

      if (!b || only_other (b, ours, by_last) != a
          || (a->units->len == 1 && !by_last
              && (is_common (self, TD_OURS, g_array_index (a->units, guint, 0))
                  || is_common (self, TD_THEIRS, g_array_index (b->units, guint, 0)))))
        continue;
      a->taken = b->taken = TRUE;
      for (guint k = 0; k < a->units->len; k++)
        td__weights_pair (self, g_array_index (a->units, guint, k),
                          g_array_index (b->units, guint, k),
                          a->units->len > 1 ? "by numbers and sizes" : "by sizes");
    }
}

static void
match_by_numbers (TdWeights *self)
{
  g_autoptr (GPtrArray) ours = find_families (self, TD_OURS);
  g_autoptr (GPtrArray) theirs = find_families (self, TD_THEIRS);

  match_families (self, ours, theirs, TRUE);
  match_families (self, ours, theirs, FALSE);
}

/* ---- by order ---- */

static void
find_free (const TdWeights *self, guint whose, GArray *units, GArray *tokens)
{
  for (guint i = 0; i < self->units[whose]->len; i++)
    {
      const TdWeightsUnit *unit = td__weights_unit (self, whose, i);
      const guint64 token = unit->token ^ unit->gates;

      if (!td__weights_is_free (self, whose, i) || unit->token == 0)
        continue;
      g_array_append_val (units, i);
      g_array_append_val (tokens, token);
    }
}

/* Does one sequence of sizes lie in both, without anything between? */
static gboolean
are_equal (const GArray *a, const GArray *b)
{
  return a->len == b->len
         && (a->len == 0 || memcmp (a->data, b->data, a->len * sizeof (guint64)) == 0);
}

static void
match_by_order (TdWeights *self)
{
  g_autoptr (GArray) ours = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GArray) theirs = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GArray) tokens = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_autoptr (GArray) other = g_array_new (FALSE, FALSE, sizeof (guint64));
  const char *doubt = NULL;

  find_free (self, TD_OURS, ours, tokens);
  find_free (self, TD_THEIRS, theirs, other);
  g_autofree gint32 *partner = g_new (gint32, ours->len + 1);
  g_autofree gint32 *back = g_new (gint32, theirs->len + 1);
  td__align ((const guint64 *)(const void *)tokens->data, (gint)ours->len,
             (const guint64 *)(const void *)other->data, (gint)theirs->len, partner, back);
  if (self->sorted)
    doubt = "their names are sorted, so that the order says little";
  else if (!are_equal (tokens, other))
    doubt = "by order and sizes, where not all have a counterpart";
  else if (!self->rules.by_order)
    doubt = "by order and sizes alone";
  for (guint k = 0; k < ours->len; k++)
    if (partner[k] >= 0)
      {
        const guint i = g_array_index (ours, guint, k);

        td__weights_pair (self, i, g_array_index (theirs, guint, (guint)partner[k]),
                          "by order and sizes");
        td__weights_unit (self, TD_OURS, i)->question = g_strdup (doubt);
      }
}

/* What names do not say, of the block at hand. */
static void
match_unnamed (TdWeights *self)
{
  match_qkv (self, TD_OURS);
  match_qkv (self, TD_THEIRS);
  match_by_numbers (self);
  match_by_order (self);
}

void
td__weights_match (TdWeights *self)
{
  if (self->units[TD_OURS]->len == 0 || self->units[TD_THEIRS]->len == 0)
    return;
  match_by_name (self);
  td__weights_find_blocks (self);
  for (self->block = self->n_blocks; self->block > 0; self->block--)
    {
      td__weights_match_in_block (self);
      match_unnamed (self);
    }
  match_unnamed (self); /* what is in none */
}
