/*
 * A rank of a framework that takes a step of its optimizer less, or one more, between two
 * backward passes: its calls fit, so that it goes on, with gradients of two passes, or with
 * weights of its own. Its tape has an iteration for each step: the calls in it say so.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-ranks-private.h"

struct TdRanksSteps
{
  gboolean said;
  gint64 last;       /* the step in which ranks updated last */
  gboolean *updated; /* in it, by place */
  guint32 *sites;    /* where, by place */
};

TdRanksSteps *
td__ranks_steps_new (const TdRanks *self)
{
  TdRanksSteps *steps = g_new0 (TdRanksSteps, 1);

  steps->last = -1;
  steps->updated = g_new0 (gboolean, self->n);
  steps->sites = g_new0 (guint32, self->n);
  return steps;
}

void
td__ranks_steps_free (TdRanksSteps *steps)
{
  g_free (steps->updated);
  g_free (steps->sites);
  g_free (steps);
}

static gboolean
is_whole (const TdRankIteration *it)
{
  return it && it->n_update_events > 0 && !it->is_partial && !it->is_live;
}

static gboolean
is_sum (const TdTapeCollective *w)
{
  return w->wait == TD_TAPE_WAIT_SUM && (w->flags & TD_TAPE_COLLECTIVE_WHOLE);
}

static gboolean
has_sum (TdRanks *self, guint place, const TdRankIteration *it, const char *call)
{
  for (guint i = 0; i < it->n_waits; i++)
    if (is_sum (&it->waits[i]) && td__ranks_text (self, place, it->waits[i].call) == call)
      return TRUE;
  return FALSE;
}

/* Sums of `of` after those of `it`: are they once more of the same names? */
static gboolean
sums_again (TdRanks *self, guint place, const TdRankIteration *it, guint other,
            const TdRankIteration *of)
{
  gboolean again = FALSE;

  for (guint i = 0; i < of->n_waits; i++)
    {
      const TdTapeCollective *w = &of->waits[i];

      if (!is_sum (w) || w->comm != self->primary || w->seq <= it->last_call)
        continue;
      if (!has_sum (self, place, it, td__ranks_text (self, other, w->call)))
        return FALSE;
      again = TRUE;
    }
  return again;
}

/* Owner of the sentence and of the place: the finding. */
static void
say (TdRanksSteps *steps, TdRanks *self, gint64 number, const gboolean *odd, char *site,
     char *sentence)
{
  TdRanksFinding *f = td__ranks_add (self, TD_RANKS_UPDATES, TD_RANKS_ERROR, number, odd);

  steps->said = self->steps_said = TRUE;
  self->steps_part = (gint64)self->findings->len - 1;
  f->site = site;
  f->sentence = sentence;
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_SAME_STEPS));
}

/* " at train.py:88". Owner: the caller. */
static char *
dup_at (const char *site)
{
  return site ? g_strconcat (" at ", site, NULL) : g_strdup ("");
}

/* Its iteration has the sums of the next one, too: it went on to the next backward without. */
static void
look_for_fewer (TdRanksSteps *steps, TdRanks *self, const TdRankRow *row)
{
  g_autofree gboolean *fewer = g_new0 (gboolean, self->n), *others = g_new0 (gboolean, self->n);
  g_autofree char *names = NULL, *rest = NULL, *at = NULL;
  guint64 least = G_MAXUINT64;
  char *site;
  gint first = -1;
  guint n = 0;

  for (guint i = 0; i < self->n; i++)
    if (is_whole (row->of[i]) && row->of[i]->has_calls && row->of[i]->last_call < least)
      {
        least = row->of[i]->last_call;
        first = (gint)i;
      }
  for (guint i = 0; first >= 0 && i < self->n; i++)
    {
      fewer[i] = is_whole (row->of[i]) && row->of[i]->last_call > least
                 && sums_again (self, (guint)first, row->of[first], i, row->of[i]);
      others[i] = is_whole (row->of[i]) && !fewer[i];
      n += fewer[i];
    }
  if (n == 0)
    return;
  site = td__ranks_dup_site (self, (guint)first, row->of[first]->update_site);
  names = td__ranks_dup_names (self, fewer);
  rest = td__ranks_dup_names (self, others);
  at = dup_at (site);
  say (steps, self, row->number, fewer, site,
       g_strdup_printf ("%s left out the optimizer's step in iteration %" G_GINT64_FORMAT
                        ", which %s took%s, and went on to the next backward",
                        names, row->number, rest, at));
}

/* Steps without a call and without backward, which the others do not take next either. */
static void
look_for_more (TdRanksSteps *steps, TdRanks *self, const TdRankRow *row)
{
  g_autofree gboolean *more = g_new0 (gboolean, self->n), *others = g_new0 (gboolean, self->n);
  g_autofree char *names = NULL, *rest = NULL, *at = NULL;
  char *site;
  gint first = -1;
  guint n_others = 0;

  for (guint i = 0; i < self->n; i++)
    {
      const TdRankIteration *it = row->of[i] ? row->of[i] : self->tapes[i].now;
      gboolean bare = is_whole (it) && !it->has_calls && !it->has_backward;

      more[i] = row->of[i] && bare && steps->updated[i];
      others[i] = steps->updated[i] && !bare;
      n_others += others[i];
      first = first < 0 && more[i] ? (gint)i : first;
      if (row->of[i] && !more[i])
        return;
    }
  if (first < 0 || n_others == 0)
    return;
  site = td__ranks_dup_site (self, (guint)first, row->of[first]->update_site);
  names = td__ranks_dup_names (self, more);
  rest = td__ranks_dup_names (self, others);
  at = dup_at (site);
  say (steps, self, steps->last, more, site,
       g_strdup_printf ("%s took another step of the optimizer%s in iteration %" G_GINT64_FORMAT
                        ", without a backward before it, and %s did not",
                        names, at, steps->last, rest));
}

void
td__ranks_steps_look (TdRanksSteps *steps, TdRanks *self, const TdRankRow *row)
{
  gboolean any = FALSE;

  if (steps->said || !td__ranks_is_of_framework (self, 0))
    return;
  look_for_fewer (steps, self, row);
  if (!steps->said && steps->last >= 0)
    look_for_more (steps, self, row);
  for (guint i = 0; i < self->n; i++)
    any = any || (is_whole (row->of[i]) && row->of[i]->has_calls);
  for (guint i = 0; any && i < self->n; i++)
    steps->updated[i] = is_whole (row->of[i]);
  if (any)
    steps->last = row->number;
}
