/*
 * Reading marks of what outlived its iteration, and finding what grows. Tables are in
 * td-holders-print.c, pictures in td-holders-scene.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-holders.h"

#define NEW_MARKS 300 /* the newest, all loaded */
#define OLD_MARKS 300 /* of those before, spread evenly */
#define OLD_ENOUGH 8  /* iterations whose arrays are still there */
#define STEPS 8
#define FEWEST_STEPS 3
#define QUARTERS 4

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

static gboolean
is_of (const TdHolder *h, const TdTapeHeld *row, TdHoldersBy by)
{
  if (h->others || (row->flags & TD_TAPE_HELD_OTHERS))
    return h->others && (row->flags & TD_TAPE_HELD_OTHERS);
  if (by == TD_HOLDERS_BY_SITE)
    return h->site == row->site && h->opdef == row->opdef && h->category == row->category;
  return h->kind == row->holder && h->holder_site == row->holder_site
         && h->held_site == row->held_site && h->held_opdef == row->held_opdef
         && h->name == row->name;
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
      if (at + 1 < n_marks)
        continue;
      h->n_iterations = MAX (h->n_iterations, row->n_iterations);
      if (row->bytes > h->largest.bytes || h->largest.n_objects == 0)
        h->largest = *row;
    }
}

static guint
find_birth (const TdHolder *h)
{
  guint at = 0;

  while (h->n_objects[at] == 0)
    at++;
  return at;
}

/* More in nearly every one of the last steps since the first array, and far more than there
 * has ever been before it became fewer, as looks miss when there was most: a list that is given
 * up now and then grows no further than the last time. */
static gboolean
grows_in_steps (const TdHolder *h, guint n_marks)
{
  guint birth = find_birth (h), steps = MIN (STEPS, n_marks - MAX (birth, 1));
  guint first = n_marks - 1 - steps, up = 0, peak = 0;

  for (guint i = first; i + 1 < n_marks; i++)
    up += h->n_objects[i + 1] > h->n_objects[i];
  for (guint i = 0; i + 1 < n_marks; i++)
    if (h->n_objects[i + 1] < h->n_objects[i])
      peak = MAX (peak, h->n_objects[i]);
  return steps >= FEWEST_STEPS && up + (steps == STEPS) >= steps
         && h->n_objects[n_marks - 1] > 2 * peak;
}

/* From the first array on, in every quarter of the iterations both the fewest and the most are
 * more than in the quarter before: growth now and then, or under what comes and goes. */
static gboolean
grows_in_the_long_run (const TdHolder *h, const TdHoldersMark *marks, guint n_marks)
{
  guint least[QUARTERS], most[QUARTERS] = { 0 }, birth = find_birth (h);
  gint64 length = marks[n_marks - 1].iteration - marks[birth].iteration + 1;
  for (guint q = 0; q < QUARTERS; q++)
    least[q] = G_MAXUINT;
  for (guint i = birth; i < n_marks; i++)
    {
      guint q = (guint)((marks[i].iteration - marks[birth].iteration) * QUARTERS / length);

      least[q] = MIN (least[q], h->n_objects[i]);
      most[q] = MAX (most[q], h->n_objects[i]);
    }
  for (guint q = 0; q + 1 < QUARTERS; q++)
    if (least[q + 1] == G_MAXUINT || least[q + 1] <= least[q] || most[q + 1] <= most[q])
      return FALSE;
  return 2 * least[QUARTERS - 1] > most[0];
}

/* More at every look since the first array, of which there are too few to judge by. */
static gboolean
may_grow (const TdHolder *h, guint n_marks)
{
  guint birth = find_birth (h);

  for (guint i = birth; i + 1 < n_marks; i++)
    if (h->n_objects[i + 1] <= h->n_objects[i])
      return FALSE;
  return h->n_iterations >= 2 && birth + 1 < n_marks
         && (h->n_iterations < OLD_ENOUGH || n_marks - 1 - birth < FEWEST_STEPS);
}

static void
judge (TdHolder *h, const TdHoldersMark *marks, guint n_marks)
{
  guint first = n_marks - 1 - MIN (STEPS, n_marks - 1);
  guint64 now = h->bytes[n_marks - 1];

  h->grows = h->n_iterations >= OLD_ENOUGH && now > 0
             && (grows_in_steps (h, n_marks) || grows_in_the_long_run (h, marks, n_marks));
  h->may_grow = !h->grows && now > 0 && may_grow (h, n_marks);
  if (now > h->bytes[first])
    h->bytes_per_iteration = (double)(now - h->bytes[first])
                             / (double)(marks[n_marks - 1].iteration - marks[first].iteration);
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
    judge (&self->holders[i], self->marks, self->n_marks);
  if (self->n_marks == 0)
    g_clear_pointer (&self, td_holders_free);
  else if (self->n_holders > 0)
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
  g_free (self->marks);
  g_free (self->holders);
  g_free (self);
}

const TdHolder *
td_holders_find_young (const TdHolders *self)
{
  for (guint i = 0; i < self->n_holders && !self->holders[0].grows; i++)
    if (self->holders[i].may_grow)
      return &self->holders[i];
  return NULL;
}

guint
td_holders_n_growing (const TdHolders *self)
{
  guint n = 0;

  while (n < self->n_holders && self->holders[n].grows)
    n++;
  return n;
}
