/*
 * What ranks must have in common: parameters, the optimizer's numbers and state, and what they
 * were given as the mean. Of what differs in one step the first in the order of an update is
 * the cause; the rest follows, and is said with it. Persistents are each rank's own.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"

#define MOST_TIMES 8 /* ranks may be made equal again, and part again */

/* What may differ, in the order in which an update uses it. */
static const struct
{
  guint8 kind;
  TdRanksCause cause;
  const char *word;
  TdRanksAdvice advice;
} links[] = {
  { TD_TAPE_SUM_NUMBER, TD_RANKS_NUMBERS, "the optimizer's", TD_RANKS_SET_NUMBERS },
  { TD_TAPE_SUM_MEAN, TD_RANKS_MEANS, "the mean of the gradients of", TD_RANKS_ALL_SAME_BITS },
  { TD_TAPE_SUM_STATE, TD_RANKS_STATE, "the optimizer's state", TD_RANKS_SET_STATE },
  { TD_TAPE_SUM_PARAMETER, TD_RANKS_PARAMETERS, "parameter", TD_RANKS_SET_PARAMETERS },
};
#define N_LINKS G_N_ELEMENTS (links)
#define PARAMETERS (N_LINKS - 1)

/* Arrays of one kind that differ in a step. */
typedef struct
{
  guint n;
  guint first; /* row of the table */
} Different;

struct TdRanksParting
{
  gint64 last;    /* iteration that was compared last */
  gint64 seen;    /* iteration that was looked at last */
  gboolean gap;   /* some between these two are not on the tapes */
  gboolean apart; /* since a step before */
  gint64 at;      /* the finding that is open: its place among the findings; -1: none */
  guint n_times, n_steps;
  guint n_means;  /* that the last one had */
  guint followed; /* links that are said to follow: bits */
  guint8 kind;    /* of what is apart, and which */
  const char *path;
  gboolean persistents;
  gboolean early; /* in the last one the mean was made before backward */
};

TdRanksParting *
td__ranks_parting_new (const TdRanks *self)
{
  TdRanksParting *p = g_new0 (TdRanksParting, 1);

  (void)self;
  p->last = p->seen = p->at = -1;
  return p;
}

void
td__ranks_parting_free (TdRanksParting *p)
{
  g_free (p);
}

/* Each array once, however often it is told of. */
static Different
find_different (const TdRanks *self, const TdSumTable *table, guint8 kind)
{
  Different d = { 0 };
  g_autofree guint *classes = g_new (guint, self->n);

  for (guint key = 0; key < table->n; key++)
    {
      const TdSumKey *k = &g_array_index (table->keys, TdSumKey, key);

      if (k->kind == kind
          && (d.n == 0 || k->turn == g_array_index (table->keys, TdSumKey, d.first).turn)
          && td__sum_table_classes (table, key, classes) > 1 && d.n++ == 0)
        d.first = key;
    }
  return d;
}

/* "rank 1 has 0.01, the others 0.1". */
static char *
dup_numbers (const TdRanks *self, const TdSumTable *table, guint key, const TdRankVote *vote)
{
  GString *out = g_string_new (NULL);
  char text[TD_FORMAT_SIZE];

  for (guint i = 0; i < self->n; i++)
    {
      const TdTapeRankSum *s = td__sum_table_get (table, key, i);

      if (s && vote->odd[i])
        g_string_append_printf (out, "%srank %u has %s", out->len ? ", " : "",
                                self->tapes[i].open.rank,
                                td_format_digits (text, td__rank_sum_number (s), 9));
    }
  for (guint i = 0; vote->has_majority && i < self->n; i++)
    if (vote->classes[i] != TD_RANKS_NO_CLASS && !vote->odd[i])
      {
        const TdTapeRankSum *s = td__sum_table_get (table, key, i);

        g_string_append_printf (out, ", the others %s",
                                td_format_digits (text, td__rank_sum_number (s), 9));
        break;
      }
  return g_string_free (out, FALSE);
}

/* Averaged by td_comm_allreduce_grad, which knows no optimizer: sums of parameters are of
 * before the update. */
static gboolean
is_by_hand (const TdSumTable *table)
{
  for (guint key = 0; key < table->n; key++)
    if (g_array_index (table->keys, TdSumKey, key).kind == TD_TAPE_SUM_NUMBER)
      return FALSE;
  return TRUE;
}

/* td_comm_allreduce_grad tells of a parameter that no optimizer has told of before; then its
 * update does. */
static gboolean
is_told_again (const TdSumTable *table, guint key)
{
  const TdSumKey *of = &g_array_index (table->keys, TdSumKey, key);

  for (guint i = key + 1; i < table->n; i++)
    {
      const TdSumKey *k = &g_array_index (table->keys, TdSumKey, i);

      if (k->kind == of->kind && k->turn == of->turn + 1 && g_str_equal (k->path, of->path))
        return TRUE;
    }
  return FALSE;
}

/* Were all parameters that the first update tells of equal before it? */
static gboolean
began_equal (const TdRanks *self, const TdSumTable *table)
{
  g_autofree guint *classes = g_new (guint, self->n);
  gboolean found = FALSE;

  for (guint key = 0; key < table->n; key++)
    {
      const TdSumKey *k = &g_array_index (table->keys, TdSumKey, key);

      if (k->kind != TD_TAPE_SUM_PARAMETER || k->turn > 0 || !is_told_again (table, key))
        continue;
      if (td__sum_table_classes (table, key, classes) > 1)
        return FALSE;
      found = TRUE;
    }
  return found;
}

/* Sums of it are those of before its update. */
static gboolean
is_of_before (const TdRanksParting *p, const TdSumTable *table, guint key)
{
  return is_by_hand (table) || (p->n_steps == 0 && is_told_again (table, key));
}

/* A step without a mean between the last one that was compared and this one; -1: there was
 * none. */
static gint64
find_forgotten (const TdRanksParting *p, const TdRanks *self, const TdRankRow *row)
{
  if (p->n_steps == 0 && self->before_averaged >= 0 && self->before_averaged < row->number)
    return self->before_averaged;
  return self->not_averaged > p->last && self->not_averaged < row->number ? self->not_averaged
                                                                          : -1;
}

static gboolean
is_forgotten (const TdRanksParting *p, const TdRanks *self, const TdRankRow *row)
{
  return find_forgotten (p, self, row) >= 0;
}

/* The iteration whose update it was, and the last that is known to be well: of parameters that
 * are told of before their update it is the one before. */
static gint64
find_update (const TdRanksParting *p, const TdRanks *self, const TdRankRow *row,
             gboolean before, gint64 *after)
{
  *after = p->last;
  if (is_forgotten (p, self, row))
    {
      *after = find_forgotten (p, self, row) - 1;
      return find_forgotten (p, self, row);
    }
  if (!before)
    return row->number;
  *after = p->last - 1;
  return p->gap ? row->number - 1 : p->last;
}

/* Why parameters alone part: never made equal, or written by one rank. */
static char *
dup_parameter_cause (const TdRanksParting *p, const TdRanks *self, const TdRankRow *row,
                     const TdSumTable *table, const char *odd, gboolean majority,
                     gboolean by_hand)
{
  if (is_forgotten (p, self, row))
    return g_strdup ("; it was updated without a mean of the gradients");
  if (by_hand && p->n_steps > 0 && p->early)
    return g_strdup (
        "; it was updated by each rank's own gradients, as backward came after the "
        "mean");
  if (by_hand && p->n_steps > 0)
    return g_strdup_printf (
        "; %s%s changed it otherwise (by its own update, learning rate, hook or a write)",
        majority ? "" : "one of ", odd);
  if (p->n_steps == 0 && began_equal (self, table))
    return g_strdup_printf ("; they were equal before it, so %s%s changed it otherwise (a "
                            "parameter that it does not update, a hook or a write)",
                            majority ? "" : "one of ", odd);
  if (p->n_steps == 0)
    return g_strdup ("; the first update that is on the tapes: they were not equal at the "
                     "start, or were written since");
  return g_strdup_printf ("; gradients and optimizer were the same, so %s%s wrote it after the "
                          "update before (%s)",
                          majority ? "" : "one of ", odd,
                          td__ranks_advice (self, TD_RANKS_WRITERS));
}

/* Of arrays: what is told of once more counts once. */
static guint
count_means (const TdSumTable *table)
{
  guint n = 0;

  for (guint key = 0; key < table->n; key++)
    {
      const TdSumKey *k = &g_array_index (table->keys, TdSumKey, key);

      n += k->kind == TD_TAPE_SUM_MEAN && k->turn == 0;
    }
  return n;
}

/* Why a state alone parts, that nothing wrote to: of an update after a mean that all have, and
 * so was the one before. NULL: that is not known. Owner: the caller. */
static char *
dup_state_cause (const TdRanksParting *p, const TdRanks *self, const TdSumTable *table,
                 const char *odd, gboolean majority)
{
  const guint n = count_means (table);

  if (td__ranks_is_of_framework (self, 0) || p->gap || n == 0
      || (p->n_steps > 0 ? n != p->n_means : !began_equal (self, table)))
    return NULL;
  return g_strdup_printf ("; the mean and the optimizer's numbers were the same, so %s%s "
                          "changed the gradient after the mean (by a hook or a write)",
                          majority ? "" : "one of ", odd);
}

/* What one of these, and not another, did to it by an operation. */
static void
append_write (TdRanks *self, const TdRankRow *row, const char *path, const TdRankVote *vote,
              GString *out, char **first)
{
  guint a, b;

  if (!td__rank_vote_choose_pair (vote, &a, &b))
    return;
  for (guint i = 0; i < 2 && out->len == 0; i++)
    {
      g_autofree char *write = td__ranks_dup_parameter_write (
          self, row, path, (gint)(i ? b : a), i ? a : b, first);

      g_string_append (out, write);
    }
}

/* "; rank 1 wrote it at train.c:80", where the tapes of those that differ say so; else between
 * which updates, as far as their places are known. */
static char *
dup_writing (const TdRanksParting *p, TdRanks *self, const TdRankRow *row,
             const TdSumTable *table, guint key, const TdRankVote *vote, char **first)
{
  const gboolean is_written
      = g_array_index (table->keys, TdSumKey, key).kind == TD_TAPE_SUM_PARAMETER;
  GString *out = g_string_new (NULL);

  for (guint i = 0; i < self->n; i++)
    {
      const TdTapeRankSum *s = td__sum_table_get (table, key, i);
      g_autofree char *site
          = s && vote->odd[i] ? td__ranks_dup_site (self, i, s->n_averaged) : NULL;

      if (!site)
        continue;
      g_string_append_printf (out, "; rank %u wrote it at %s", self->tapes[i].open.rank, site);
      if (!*first)
        *first = g_steal_pointer (&site);
    }
  if (out->len == 0 && is_written)
    append_write (self, row, g_array_index (table->keys, TdSumKey, key).path, vote, out, first);
  for (guint i = 0; out->len == 0 && is_written && p->n_steps > 0 && i < self->n; i++)
    {
      g_autofree char *site = vote->odd[i] && row->of[i]
                                  ? td__ranks_dup_site (self, i, row->of[i]->update_site)
                                  : NULL;

      if (site)
        {
          g_string_append_printf (
              out,
              "; that was between the updates of iterations %" G_GINT64_FORMAT
              " and %" G_GINT64_FORMAT " at %s",
              p->last, row->number, site);
          break;
        }
    }
  return g_string_free (out, FALSE);
}

static void
say_parting (TdRanksParting *p, TdRanks *self, const TdRankRow *row, const TdSumTable *table,
             guint link, const Different *d)
{
  const TdSumKey *key = &g_array_index (table->keys, TdSumKey, d->first);
  g_autofree guint *classes = g_new (guint, self->n);
  const gboolean before
      = links[link].kind == TD_TAPE_SUM_PARAMETER && is_by_hand (table) && p->n_steps > 0;
  gint64 after, number = find_update (p, self, row, before, &after);
  g_autofree char *when = td__ranks_dup_when (number, after), *odd = NULL, *more = NULL,
                  *why = NULL, *writing = NULL;
  TdRanksFinding *f;
  TdRankVote vote;
  guint other, one;

  td__sum_table_classes (table, d->first, classes);
  td__rank_vote_init (&vote, classes, self->n);
  f = td__ranks_add (self, links[link].cause, TD_RANKS_ERROR, number, vote.odd);
  p->at = (gint64)self->findings->len - 1;
  p->n_times++;
  p->followed = 1u << link;
  p->kind = key->kind;
  p->path = key->path;
  f->after = after;
  f->array = g_strdup (key->path);
  f->advice
      = g_strdup (td__ranks_advice (self, is_forgotten (p, self, row) ? TD_RANKS_AVERAGE_ALL
                                          : before && p->early        ? TD_RANKS_AVERAGE_LATER
                                          : before                    ? TD_RANKS_SAME_UPDATES
                                                                      : links[link].advice));
  odd = td__ranks_dup_names (self, vote.odd);
  if (links[link].kind == TD_TAPE_SUM_NUMBER)
    why = dup_numbers (self, table, d->first, &vote);
  else if (links[link].kind == TD_TAPE_SUM_PARAMETER)
    why = dup_parameter_cause (p, self, row, table, odd, vote.has_majority, is_by_hand (table));
  if (links[link].kind == TD_TAPE_SUM_MEAN && td__rank_vote_choose_pair (&vote, &other, &one))
    writing = td__ranks_dup_written (self, row, key->path, other, one, &f->site);
  if (!before
      && (links[link].kind == TD_TAPE_SUM_PARAMETER || links[link].kind == TD_TAPE_SUM_STATE))
    writing = dup_writing (p, self, row, table, d->first, &vote, &f->site);
  if (key->kind == TD_TAPE_SUM_STATE && writing && !*writing)
    why = dup_state_cause (p, self, table, odd, vote.has_majority);
  if (why && !is_forgotten (p, self, row)
      && (key->kind == TD_TAPE_SUM_STATE
          || (key->kind == TD_TAPE_SUM_PARAMETER && p->n_steps == 0
              && began_equal (self, table))))
    {
      g_free (f->advice);
      f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_SAME_UPDATES));
    }
  if (d->n > 1)
    more = g_strdup_printf (" (and %u more)", d->n - 1);
  f->sentence = g_strdup_printf ("%s %s %s: %s `%s`%s differs%s%s%s", odd,
                                 vote.has_majority             ? "parted"
                                 : vote.n_classes < f->n_ranks ? "parted into groups"
                                                               : "parted",
                                 when, links[link].word, key->path, more ? more : "",
                                 links[link].kind == TD_TAPE_SUM_NUMBER ? ": "
                                 : is_of_before (p, table, d->first) && !before
                                     ? " when gradients are averaged"
                                     : " after the update",
                                 why ? why : "", writing ? writing : "");
  td__rank_vote_clear (&vote);
}

/* What comes of it is said behind it, once for each kind. */
static void
say_following (TdRanksParting *p, TdRanks *self, const TdRankRow *row, const TdSumTable *table,
               guint link, const Different *d)
{
  TdRanksFinding *f = &g_array_index (self->findings, TdRanksFinding, p->at);
  const char *path = g_array_index (table->keys, TdSumKey, d->first).path;
  g_autofree char *before = f->sentence;

  if (p->followed & 1u << link)
    {
      before = NULL;
      return;
    }
  p->followed |= 1u << link;
  f->sentence
      = g_strdup_printf ("%s; since iteration %" G_GINT64_FORMAT " %s `%s`%s, too", before,
                         row->number, links[link].word, path, d->n > 1 ? " and others" : "");
}

static void
look_at_persistents (TdRanksParting *p, TdRanks *self, const TdRankRow *row,
                     const TdSumTable *table)
{
  Different d = find_different (self, table, TD_TAPE_SUM_PERSISTENT);
  g_autofree guint *classes = NULL;
  g_autofree char *names = NULL;
  g_autofree gboolean *all = NULL;
  TdRanksFinding *f;

  if (d.n == 0 || p->persistents)
    return;
  p->persistents = TRUE;
  classes = g_new (guint, self->n);
  td__sum_table_classes (table, d.first, classes);
  all = g_new (gboolean, self->n);
  for (guint i = 0; i < self->n; i++)
    all[i] = classes[i] != TD_RANKS_NO_CLASS;
  names = td__ranks_dup_names (self, all);
  f = td__ranks_add (self, TD_RANKS_PERSISTENTS, TD_RANKS_NOTE, row->number, all);
  f->after = p->last;
  f->array = g_strdup (g_array_index (table->keys, TdSumKey, d.first).path);
  f->sentence
      = g_strdup_printf ("%s have their own persistents since iteration %" G_GINT64_FORMAT
                         ": `%s`%s; an evaluation is of as many models as there are ranks",
                         names, row->number, f->array, d.n > 1 ? " and others" : "");
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_SHARE_PERSISTENTS));
}

/* Ranks that have not stepped as often are apart by that. */
static void
follow_steps (TdRanksParting *p, TdRanks *self)
{
  p->apart = TRUE;
  p->at = self->steps_part;
  p->followed = 0;
  p->path = NULL;
  self->steps_part = -1;
  p->n_times++;
}

/* What is apart is not in a step in which another optimizer updates: it is still apart then. */
static gboolean
is_absent (const TdRanksParting *p, const TdSumTable *table)
{
  for (guint key = 0; p->apart && p->path && key < table->n; key++)
    {
      const TdSumKey *k = &g_array_index (table->keys, TdSumKey, key);

      if (k->kind == p->kind && g_str_equal (k->path, p->path))
        return FALSE;
    }
  return p->apart && p->path;
}

/* Nor is a rank that parted in a step that only others have. */
static gboolean
is_without (const TdRanksParting *p, const TdRanks *self, const TdRankRow *row)
{
  const TdRanksFinding *f
      = p->at < 0 ? NULL : &g_array_index (self->findings, TdRanksFinding, p->at);

  if (!p->apart || !f)
    return FALSE;
  for (guint i = 0; i < self->n; i++)
    for (guint k = 0; row->of[i] && row->of[i]->n_sums > 0 && k < f->n_ranks; k++)
      if (f->ranks[k] == self->tapes[i].open.rank)
        return FALSE;
  return TRUE;
}

static gboolean
has_updates (const TdRanks *self, const TdRankRow *row)
{
  guint n = 0;

  for (guint i = 0; i < self->n; i++)
    n += row->of[i] && row->of[i]->n_sums > 0;
  return n > 1;
}

static gboolean
look_at_link (TdRanksParting *p, TdRanks *self, const TdRankRow *row, const TdSumTable *table,
              guint link)
{
  Different d = find_different (self, table, links[link].kind);

  if (d.n == 0)
    return FALSE;
  if (!p->apart && p->n_times < MOST_TIMES)
    say_parting (p, self, row, table, link, &d);
  else if (p->apart && p->at >= 0)
    {
      say_following (p, self, row, table, link, &d);
      if (!p->path || p->kind == TD_TAPE_SUM_NUMBER) /* whose optimizer's, an array says */
        {
          p->kind = links[link].kind;
          p->path = g_array_index (table->keys, TdSumKey, d.first).path;
        }
    }
  p->apart = TRUE;
  return TRUE;
}

/* Parameters that were not equal before the first update: whatever else differs after it comes
 * of that. */
static gboolean
differs_before (const TdRanksParting *p, const TdRanks *self, const TdSumTable *table)
{
  Different d = find_different (self, table, TD_TAPE_SUM_PARAMETER);

  return p->n_steps == 0 && d.n > 0 && is_told_again (table, d.first);
}

void
td__ranks_parting_look (TdRanksParting *p, TdRanks *self, const TdRankRow *row,
                        const TdSumTable *table)
{
  gboolean differs = FALSE;

  p->gap = p->gap || (p->seen >= 0 && row->number > p->seen + 1);
  p->seen = row->number;
  if (!has_updates (self, row))
    return;
  if (self->steps_part >= 0 && !p->apart)
    follow_steps (p, self);
  if (differs_before (p, self, table))
    differs = look_at_link (p, self, row, table, PARAMETERS);
  for (guint link = 0; link < N_LINKS; link++)
    differs = look_at_link (p, self, row, table, link) || differs;
  look_at_persistents (p, self, row, table);
  if (!differs && !is_absent (p, table) && !is_without (p, self, row))
    {
      p->apart = FALSE;
      p->at = -1;
    }
  p->last = row->number;
  p->n_means = count_means (table);
  p->early = FALSE;
  for (guint i = 0; i < self->n; i++)
    p->early = p->early || (row->of[i] && row->of[i]->mean_early);
  p->gap = FALSE;
  p->n_steps++;
  self->n_steps++;
  for (guint i = 0; i < self->n; i++)
    self->tapes[i].open.n_compared += row->of[i] && row->of[i]->n_sums > 0;
}
