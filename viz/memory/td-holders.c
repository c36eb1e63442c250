/*
 * Reading marks of what outlived its iteration, and putting together what is held. What grows
 * is judged in td-holders-judge.c, tables are in td-holders-print.c, pictures in
 * td-holders-scene.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-holders-private.h"

#define NEW_MARKS 300 /* the newest, all loaded */
#define OLD_MARKS 300 /* of those before, spread evenly */

static void
add_mark (GArray *marks, const TdTapeIteration *it)
{
  TdHoldersMark mark = { .iteration = (gint64)it->number, .n_rows = it->n_held };

  if (it->n_held == 0)
    return;
  mark.rows = g_memdup2 (it->held, it->n_held * sizeof *it->held);
  for (guint i = 0; i < mark.n_rows; i++)
    {
      mark.bytes += mark.rows[i].bytes;
      mark.n_objects += mark.rows[i].n_objects;
    }
  g_array_append_val (marks, mark);
}

/* Indices of the iterations that say what outlived them. */
static GArray *
find_marks (const TdTapeSummaries *all, TdRange range)
{
  GArray *found = g_array_new (FALSE, FALSE, sizeof (guint));

  for (guint i = 0; i < all->n; i++)
    if ((all->rows[i].flags & TD_TAPE_ITERATION_HELD)
        && td_range_has (range, (gint64)all->rows[i].number))
      g_array_append_val (found, i);
  return found;
}

static GArray *
read_marks (TdTapeReader *reader, TdRange range)
{
  GArray *marks = g_array_new (FALSE, FALSE, sizeof (TdHoldersMark));
  TdTapeSummaries all = td_tape_reader_summaries (reader);
  g_autoptr (GArray) found = find_marks (&all, range);
  guint n_old = found->len > NEW_MARKS ? found->len - NEW_MARKS : 0;
  char error[128];

  for (guint i = 0; i < found->len; i++)
    {
      const TdTapeIteration *it;

      if (i < n_old && n_old > OLD_MARKS
          && (guint64)i * OLD_MARKS / n_old == (guint64)(i + 1) * OLD_MARKS / n_old)
        continue;
      it = td_tape_iteration_load_end (reader, &all.rows[g_array_index (found, guint, i)],
                                       error, sizeof error);
      if (it)
        add_mark (marks, it);
      td_tape_iteration_free (it);
    }
  return marks;
}

/* ---- holders ---- */

/* Names make no difference: a program may give each array that it keeps one of its own. */
static gboolean
is_of (const TdHolder *h, const TdTapeHeld *row, TdHoldersBy by)
{
  if (h->others || (row->flags & TD_TAPE_HELD_OTHERS))
    return h->others && (row->flags & TD_TAPE_HELD_OTHERS);
  if (by == TD_HOLDERS_BY_SITE)
    return h->site == row->site && h->opdef == row->opdef && h->category == row->category;
  return h->kind == row->holder && h->holder_site == row->holder_site
         && h->held_site == row->held_site && h->held_opdef == row->held_opdef;
}

static TdHolder *
holder_of (GArray *holders, const TdTapeHeld *row, guint n_marks, TdHoldersBy by)
{
  TdHolder h = { .others = (row->flags & TD_TAPE_HELD_OTHERS) != 0 };

  if (by == TD_HOLDERS_BY_SITE)
    {
      h.site = row->site;
      h.opdef = row->opdef;
      h.category = row->category;
    }
  else
    {
      h.kind = row->holder;
      h.holder_site = row->holder_site;
      h.held_site = row->held_site;
      h.held_opdef = row->held_opdef;
      h.name = row->name;
    }
  for (guint i = 0; i < holders->len; i++)
    if (is_of (&g_array_index (holders, TdHolder, i), row, by))
      return &g_array_index (holders, TdHolder, i);
  h.bytes = g_new0 (guint64, n_marks);
  h.n_objects = g_new0 (guint, n_marks);
  g_array_append_val (holders, h);
  return &g_array_index (holders, TdHolder, holders->len - 1);
}

static void
add_rows (GArray *holders, const TdHoldersMark *mark, guint at, guint n_marks, TdHoldersBy by)
{
  for (guint i = 0; i < mark->n_rows; i++)
    {
      const TdTapeHeld *row = &mark->rows[i];
      TdHolder *h = row->n_objects > 0 ? holder_of (holders, row, n_marks, by) : NULL;

      if (!h)
        continue;
      h->bytes[at] += row->bytes;
      h->n_objects[at] += row->n_objects;
      if (h->name != row->name)
        h->name = 0;
      if (at + 1 < n_marks)
        continue;
      if (row->bytes > h->largest.bytes || h->largest.n_objects == 0)
        h->largest = *row;
    }
}

/* ---- what grows ---- */

/* How many iterations made what a holder keeps at the last mark, at least: several rows may be
 * of the same ones, but not those whose oldest arrays are of different ones. */
static void
count_iterations (TdHolder *h, const TdHoldersMark *mark, TdHoldersBy by)
{
  g_autoptr (GHashTable) oldest = g_hash_table_new (g_int64_hash, g_int64_equal);

  for (guint i = 0; i < mark->n_rows; i++)
    {
      const TdTapeHeld *row = &mark->rows[i];

      if (row->n_objects == 0 || !(h->together ? !h->others : is_of (h, row, by)))
        continue;
      h->n_iterations = MAX (h->n_iterations, row->n_iterations);
      if (!(row->flags & TD_TAPE_HELD_OTHERS))
        g_hash_table_add (oldest, (gpointer)&row->oldest);
    }
  h->n_iterations
      = MIN (MAX (h->n_iterations, g_hash_table_size (oldest)), TD_TAPE_MAX_HELD_ITERATIONS);
}

/* Together, all that do not grow one by one: what leaks may be spread over places so that each
 * has too little of it. */
static void
add_together (TdHolders *self)
{
  TdHolder *all = &self->together;

  all->together = TRUE;
  all->bytes = g_new0 (guint64, self->n_marks);
  all->n_objects = g_new0 (guint, self->n_marks);
  for (guint i = 0; i < self->n_holders; i++)
    {
      const TdHolder *h = &self->holders[i];

      if (h->grows)
        continue;
      for (guint m = 0; m < self->n_marks; m++)
        {
          all->bytes[m] += h->bytes[m];
          all->n_objects[m] += h->n_objects[m];
        }
      if (!h->others && h->largest.bytes >= all->largest.bytes)
        all->largest = h->largest;
    }
  count_iterations (all, &self->marks[self->n_marks - 1], self->by);
  td__holder_judge (all, self->marks, self->n_marks);
}

static int
growing_first (gconstpointer a, gconstpointer b, gpointer last)
{
  const TdHolder *x = a, *y = b;
  guint at = GPOINTER_TO_UINT (last);

  if (x->grows != y->grows)
    return x->grows ? -1 : 1;
  return (x->bytes[at] < y->bytes[at]) - (x->bytes[at] > y->bytes[at]);
}

static const char *const by_names[]
    = { [TD_HOLDERS_BY_HOLDER] = "holder", [TD_HOLDERS_BY_SITE] = "site" };

gboolean
td_holders_by_find (const char *name, TdHoldersBy *by)
{
  for (guint i = 0; i < G_N_ELEMENTS (by_names); i++)
    if (g_str_equal (name, by_names[i]))
      {
        *by = (TdHoldersBy)i;
        return TRUE;
      }
  return FALSE;
}

TdHolders *
td_holders_new_in (TdTapeReader *reader, TdRange range, TdHoldersBy by)
{
  GArray *marks = read_marks (reader, range);
  GArray *holders = g_array_new (FALSE, FALSE, sizeof (TdHolder));
  TdHolders *self = g_new0 (TdHolders, 1);

  self->reader = reader;
  self->by = by;
  self->n_marks = marks->len;
  self->marks = (TdHoldersMark *)(void *)g_array_free (marks, FALSE);
  for (guint i = 0; i < self->n_marks; i++)
    add_rows (holders, &self->marks[i], i, self->n_marks, by);
  self->n_holders = holders->len;
  self->holders = (TdHolder *)(void *)g_array_free (holders, FALSE);
  for (guint i = 0; i < self->n_holders; i++)
    {
      count_iterations (&self->holders[i], &self->marks[self->n_marks - 1], by);
      td__holder_judge (&self->holders[i], self->marks, self->n_marks);
    }
  if (self->n_marks == 0)
    {
      g_clear_pointer (&self, td_holders_free);
      return NULL;
    }
  add_together (self);
  if (self->n_holders > 0)
    g_qsort_with_data (self->holders, (int)self->n_holders, sizeof *self->holders,
                       growing_first, GUINT_TO_POINTER (self->n_marks - 1));
  return self;
}

TdHolders *
td_holders_new_by (TdTapeReader *reader, gint64 last, TdHoldersBy by)
{
  return td_holders_new_in (reader, (TdRange){ 0, last < 0 ? 0 : last + 1 }, by);
}

void
td_holders_free (TdHolders *self)
{
  if (!self)
    return;
  for (guint i = 0; i < self->n_marks; i++)
    g_free (self->marks[i].rows);
  for (guint i = 0; i < self->n_holders; i++)
    {
      g_free (self->holders[i].bytes);
      g_free (self->holders[i].n_objects);
    }
  g_free (self->together.bytes);
  g_free (self->together.n_objects);
  g_free (self->marks);
  g_free (self->holders);
  g_free (self);
}

const TdHolder *
td_holders_find_young (const TdHolders *self)
{
  if (td_holders_n_growing (self) > 0)
    return NULL;
  for (guint i = 0; i < self->n_holders; i++)
    if (self->holders[i].may_grow)
      return &self->holders[i];
  return self->together.may_grow ? &self->together : NULL;
}

guint
td_holders_n_growing (const TdHolders *self)
{
  guint n = 0;

  while (n < self->n_holders && self->holders[n].grows)
    n++;
  return n + (self->together.grows ? 1 : 0);
}

const TdHolder *
td_holders_get_growing (const TdHolders *self, guint i)
{
  return i < self->n_holders && self->holders[i].grows ? &self->holders[i] : &self->together;
}
