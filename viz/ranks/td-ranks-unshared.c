/*
 * Parameters that each rank updates by a gradient of its own, beside others whose gradients are
 * averaged: a second optimizer that knows nothing of the ranks, or a part of the model that is
 * left out. No sums are made of them, so that nothing else would find them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-ranks-private.h"

#include <string.h>

#define NOT_AVERAGED "are not averaged: " /* data/python/tapedeck/bypassed.py */

/* Sums are named from the optimizer's link on ("l1/W"), updates from the root ("net/l1/W"). */
static gboolean
is_name_of (const char *name, const char *path)
{
  gsize n = strlen (path), length = strlen (name);

  return length <= n && strcmp (path + n - length, name) == 0
         && (length == n || path[n - length - 1] == '/');
}

static gboolean
has_mean (TdRanks *self, guint place, const TdRankIteration *it, const char *path)
{
  for (guint i = 0; i < it->n_sums; i++)
    if (it->sums[i].kind == TD_TAPE_SUM_MEAN
        && is_name_of (td__ranks_text (self, place, it->sums[i].path), path))
      return TRUE;
  return FALSE;
}

/* One that certainly has none; NULL where names do not tell. */
static const char *
find_unshared (TdRanks *self, guint place, const TdRankIteration *it)
{
  for (guint i = 0; i < it->n_trained; i++)
    {
      const char *path = td__ranks_text (self, place, it->trained[i]);

      if (!has_mean (self, place, it, path))
        return path;
    }
  return NULL;
}

static guint
count_means (const TdRankIteration *it)
{
  guint n = 0;

  for (guint i = 0; i < it->n_sums; i++)
    n += it->sums[i].kind == TD_TAPE_SUM_MEAN;
  return n;
}

/* Of the first rank: its meetings are those of all. */
static void
learn_averaged (TdRanks *self, const TdRankIteration *it)
{
  self->averaged = g_ptr_array_new ();
  for (guint i = 0; i < it->n_sums; i++)
    if (it->sums[i].kind == TD_TAPE_SUM_MEAN)
      g_ptr_array_add (self->averaged, (gpointer)td__ranks_text (self, 0, it->sums[i].path));
}

/* A parameter that was averaged before and is updated in this step; NULL: none is. */
static const char *
find_averaged (TdRanks *self, guint place, const TdRankIteration *it)
{
  for (guint i = 0; i < it->n_trained; i++)
    for (guint k = 0; k < self->averaged->len; k++)
      {
        const char *path = td__ranks_text (self, place, it->trained[i]);

        if (is_name_of (g_ptr_array_index (self->averaged, k), path))
          return path;
      }
  return NULL;
}

/* Updated without a mean before any is known of: it is of those that get one from here on, or
 * each rank's own for good. */
static void
look_before (TdRanks *self, const TdRankRow *row)
{
  const TdRankIteration *it = row->of[0];

  if (it && !self->averaged && it->n_trained > 0 && count_means (it) == 0
      && self->before_averaged < 0)
    {
      self->before_averaged = row->number;
      self->updated_before = g_ptr_array_new ();
      for (guint i = 0; i < it->n_trained; i++)
        g_ptr_array_add (self->updated_before,
                         (gpointer)td__ranks_text (self, 0, it->trained[i]));
    }
}

/* Was one of these averaged afterwards? */
static void
compare_before (TdRanks *self)
{
  gboolean found = FALSE;

  for (guint i = 0; self->updated_before && i < self->updated_before->len; i++)
    for (guint k = 0; k < self->averaged->len; k++)
      found = found
              || is_name_of (g_ptr_array_index (self->averaged, k),
                             g_ptr_array_index (self->updated_before, i));
  if (!found)
    self->before_averaged = -1;
}

/* A call that was forgotten once, on all ranks: each goes on from a gradient of its own. */
static void
look_for_forgotten (TdRanks *self, const TdRankRow *row)
{
  g_autofree gboolean *set = g_new0 (gboolean, self->n);
  g_autofree char *names = NULL;
  const char *path = NULL;
  TdRanksFinding *f;

  if (self->not_averaged >= 0)
    return;
  look_before (self, row);
  for (guint i = 0; i < self->n; i++)
    {
      const TdRankIteration *it = row->of[i];

      if (it && i == 0 && !self->averaged && count_means (it) > 0)
        {
          learn_averaged (self, it);
          compare_before (self);
        }
      if (!it || !self->averaged || it->is_partial || count_means (it) > 0
          || !(path = find_averaged (self, i, it)))
        return;
      set[i] = TRUE;
    }
  self->not_averaged = row->number;
  names = td__ranks_dup_names_do (self, set, " updates", " update");
  f = td__ranks_add (self, TD_RANKS_UNSHARED, TD_RANKS_ERROR, row->number, set);
  f->array = g_strdup (path);
  f->sentence = g_strdup_printf (
      "%s `%s` in iteration %" G_GINT64_FORMAT
      " by their own gradients: there is no mean of them, as in those before",
      names, path, row->number);
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_AVERAGE_ALL));
}

/* ---- a recorder's own words ---- */

/* "not averaged: the gradients of `a/weight` and 3 more: the module inside ... at train.py:12",
 * of the recorder of a framework, in this iteration; NULL: it says nothing. */
static const char *
find_said (const TdRankTape *tape, const TdRankIteration *it)
{
  for (guint32 k = 0; it && k < td_tape_reader_n_notices (tape->reader); k++)
    {
      const TdTapeNotice *notice = td_tape_reader_notice (tape->reader, k);
      const char *text = td_tape_reader_string (tape->reader, notice->text);

      if ((gint64)notice->iteration == it->number && strstr (text, NOT_AVERAGED))
        return text;
    }
  return NULL;
}

/* "a/weight" of a text between the first two such quotes. Owner: the caller. */
static char *
dup_quoted (const char *text)
{
  const char *begin = strchr (text, '`'), *end = begin ? strchr (begin + 1, '`') : NULL;

  return end ? g_strndup (begin + 1, (gsize)(end - begin - 1)) : NULL;
}

/* What parts by it is said behind it. */
static void
look_for_said (TdRanks *self, const TdRankRow *row)
{
  g_autofree gboolean *set = g_new0 (gboolean, self->n);
  g_autofree char *names = NULL;
  const char *first = NULL, *at;
  TdRanksFinding *f;

  for (guint i = 0; i < self->n; i++)
    {
      const char *said = find_said (&self->tapes[i], row->of[i]);

      set[i] = said != NULL;
      first = first ? first : said;
    }
  if (!first)
    return;
  names = td__ranks_dup_names (self, set);
  f = td__ranks_add (self, TD_RANKS_UNSHARED, TD_RANKS_ERROR, row->number, set);
  self->steps_part = (gint64)self->findings->len - 1;
  at = g_strrstr (first, " at ");
  f->array = dup_quoted (first);
  f->site = at ? g_strdup (at + strlen (" at ")) : NULL;
  f->sentence = g_strdup_printf ("%s parted in iteration %" G_GINT64_FORMAT ": %s", names,
                                 row->number, first);
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_CALL_WRAPPED));
}

void
td__ranks_look_for_unshared (TdRanks *self, const TdRankRow *row)
{
  g_autofree gboolean *set = g_new0 (gboolean, self->n);
  g_autofree char *names = NULL;
  gint first = -1;
  guint n_means;
  TdRanksFinding *f;

  if (!td__ranks_has (self, TD_RANKS_UNSHARED))
    look_for_said (self, row);
  look_for_forgotten (self, row);
  if (td__ranks_has (self, TD_RANKS_UNSHARED))
    return;
  for (guint i = 0; i < self->n; i++)
    {
      const TdRankIteration *it = row->of[i];

      n_means = it ? count_means (it) : 0;
      set[i] = n_means > 0 && it->n_trained > n_means;
      first = set[i] && first < 0 ? (gint)i : first;
    }
  if (first < 0)
    return;
  const TdRankIteration *it = row->of[first];
  const char *path = find_unshared (self, (guint)first, it);

  n_means = count_means (it);
  names = td__ranks_dup_names_do (self, set, " updates", " update");
  f = td__ranks_add (self, TD_RANKS_UNSHARED, TD_RANKS_WARNING, row->number, set);
  f->array = g_strdup (path);
  f->sentence = g_strdup_printf ("%s %u parameters in iteration %" G_GINT64_FORMAT
                                 ", and the gradients of %u are averaged%s%s%s",
                                 names, it->n_trained, row->number, n_means,
                                 path ? ": not those of `" : "", path ? path : "",
                                 path ? "`, for one" : "");
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_AVERAGE_ALL));
}
