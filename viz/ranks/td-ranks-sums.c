/*
 * The arrays of one step of all ranks side by side, by kind and name.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"

static guint
hash_key (gconstpointer data)
{
  const TdSumKey *key = data;

  return g_direct_hash (key->path) ^ (key->kind * 0x9e3779b9u) ^ (key->turn * 0x85ebca6bu)
         ^ (guint)key->group;
}

static gboolean
same_key (gconstpointer a, gconstpointer b)
{
  const TdSumKey *x = a, *y = b;

  return x->path == y->path && x->kind == y->kind && x->turn == y->turn && x->group == y->group;
}

/* The row of a key, made when it is new. */
static guint
row_of (TdSumTable *table, GHashTable *rows, const TdSumKey *key)
{
  gpointer found;
  guint row = table->n;

  if (g_hash_table_lookup_extended (rows, key, NULL, &found))
    return GPOINTER_TO_UINT (found);
  g_array_append_val (table->keys, *key);
  g_ptr_array_set_size (table->of, (gint)((row + 1) * table->n_tapes));
  g_hash_table_insert (rows, g_memdup2 (key, sizeof *key), GUINT_TO_POINTER (row));
  table->n++;
  return row;
}

/* Where means are of some ranks only, others may have other arrays of the same names: ranks are
 * compared with those whose mean they share. Returns their communicator, 0: that of all. */
static guint64
find_group (const TdRanks *self, const TdRankIteration *it)
{
  guint32 n_averaged = 0;
  guint64 comm = 0;

  for (guint i = 0; i < it->n_sums; i++)
    if (it->sums[i].kind == TD_TAPE_SUM_MEAN)
      n_averaged = MAX (n_averaged, it->sums[i].n_averaged);
  for (guint i = 0; n_averaged > 0 && n_averaged < self->n_started && i < it->n_waits; i++)
    if (it->waits[i].size == n_averaged)
      comm = it->waits[i].comm;
  return comm;
}

/* A mean that was asked for when no rank had this gradient, before backward: the next one is
 * the first there is. */
static gboolean
is_of_nobody (const TdRankIteration *it, guint i)
{
  const TdTapeRankSum *s = &it->sums[i];

  for (guint k = i + 1;
       s->kind == TD_TAPE_SUM_GRADIENT && (s->flags & TD_TAPE_SUM_ABSENT) && k < it->n_sums;
       k++)
    if (it->sums[k].path == s->path && it->sums[k].kind <= TD_TAPE_SUM_MEAN
        && it->sums[k].kind >= TD_TAPE_SUM_GRADIENT)
      return it->sums[k].kind == TD_TAPE_SUM_GRADIENT;
  return FALSE;
}

static void
take_sums (TdSumTable *table, TdRanks *self, guint place, const TdRankIteration *it,
           GHashTable *rows, GHashTable *turns)
{
  guint64 group = find_group (self, it);

  g_hash_table_remove_all (turns);
  for (guint i = 0; i < it->n_sums; i++)
    {
      const TdTapeRankSum *s = &it->sums[i];
      TdSumKey key
          = { .kind = s->kind, .path = td__ranks_text (self, place, s->path), .group = group };
      gpointer turn = g_hash_table_lookup (turns, &key);
      guint row;

      if (s->kind >= TD_TAPE_N_SUMS || is_of_nobody (it, i))
        continue;
      g_hash_table_insert (turns, g_memdup2 (&key, sizeof key),
                           GUINT_TO_POINTER (GPOINTER_TO_UINT (turn) + 1));
      key.turn = GPOINTER_TO_UINT (turn);
      row = row_of (table, rows, &key);
      table->of->pdata[row * table->n_tapes + place] = (gpointer)s;
    }
}

TdSumTable *
td__sum_table_new (TdRanks *self, const TdRankRow *row)
{
  TdSumTable *table = g_new0 (TdSumTable, 1);
  g_autoptr (GHashTable) rows = g_hash_table_new_full (hash_key, same_key, g_free, NULL),
                         turns = g_hash_table_new_full (hash_key, same_key, g_free, NULL);

  table->n_tapes = self->n;
  table->keys = g_array_new (FALSE, FALSE, sizeof (TdSumKey));
  table->of = g_ptr_array_new ();
  for (guint i = 0; i < self->n; i++)
    if (row->of[i])
      take_sums (table, self, i, row->of[i], rows, turns);
  return table;
}

void
td__sum_table_free (TdSumTable *table)
{
  g_array_unref (table->keys);
  g_ptr_array_unref (table->of);
  g_free (table);
}

const TdTapeRankSum *
td__sum_table_get (const TdSumTable *table, guint key, guint place)
{
  return table->of->pdata[key * table->n_tapes + place];
}

static gboolean
same_sum (const TdTapeRankSum *a, const TdTapeRankSum *b)
{
  return a->sum[0] == b->sum[0] && a->sum[1] == b->sum[1] && a->size == b->size;
}

guint
td__sum_table_classes (const TdSumTable *table, guint key, guint *classes)
{
  guint n = 0;

  for (guint i = 0; i < table->n_tapes; i++)
    {
      const TdTapeRankSum *s = td__sum_table_get (table, key, i);

      classes[i] = TD_RANKS_NO_CLASS;
      if (!s || (s->flags & TD_TAPE_SUM_ABSENT))
        continue;
      for (guint j = 0; j < i && classes[i] == TD_RANKS_NO_CLASS; j++)
        if (classes[j] != TD_RANKS_NO_CLASS && same_sum (s, td__sum_table_get (table, key, j)))
          classes[i] = classes[j];
      if (classes[i] == TD_RANKS_NO_CLASS)
        classes[i] = n++;
    }
  return n;
}

double
td__rank_sum_number (const TdTapeRankSum *s)
{
  double number;

  memcpy (&number, &s->sum[0], sizeof number);
  return number;
}
