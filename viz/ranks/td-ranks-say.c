/*
 * Texts of tapes, names of ranks, votes and findings.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"

#define SITE_SIZE 320

static const char *const cause_names[TD_RANKS_N_CAUSES] = {
  [TD_RANKS_PARAMETERS] = "parameters",
  [TD_RANKS_PERSISTENTS] = "persistents",
  [TD_RANKS_STATE] = "optimizer state",
  [TD_RANKS_NUMBERS] = "optimizer numbers",
  [TD_RANKS_MEANS] = "means differ",
  [TD_RANKS_UPDATES] = "update counts",
  [TD_RANKS_NOT_FINITE] = "not finite",
  [TD_RANKS_ABSENT] = "gradient missing",
  [TD_RANKS_GRAPHS] = "different graphs",
  [TD_RANKS_MEAN_CHECK] = "wrong mean",
  [TD_RANKS_BATCHES] = "unequal batches",
  [TD_RANKS_MISMATCH] = "mismatch",
  [TD_RANKS_HANG] = "hang",
  [TD_RANKS_DEATH] = "death",
  [TD_RANKS_SAME_DATA] = "same data",
  [TD_RANKS_DEVICE] = "shared device",
  [TD_RANKS_PLAIN] = "plain optimizer",
  [TD_RANKS_UNSHARED] = "not averaged",
  [TD_RANKS_STRAGGLER] = "straggler",
  [TD_RANKS_DAMAGE] = "damaged tape",
};

static const char *const level_names[TD_RANKS_N_LEVELS] = {
  [TD_RANKS_NOTE] = "note",
  [TD_RANKS_WARNING] = "warning",
  [TD_RANKS_ERROR] = "error",
};

const char *
td_ranks_cause_name (TdRanksCause cause)
{
  return cause_names[cause];
}

const char *
td_ranks_level_name (TdRanksLevel level)
{
  return level_names[level];
}

const char *
td__ranks_text (TdRanks *self, guint place, guint32 id)
{
  TdRankTape *tape = &self->tapes[place];
  const char *text;

  if (id == 0 || id > G_MAXINT32 / 2)
    return "";
  text = id < tape->texts->len ? g_ptr_array_index (tape->texts, id) : NULL;
  if (text)
    return text;
  text = g_string_chunk_insert_const (self->chunk, td_tape_reader_string (tape->reader, id));
  if (*text == '\0')
    return ""; /* an id that is none makes no table grow */
  if (id >= tape->texts->len)
    g_ptr_array_set_size (tape->texts, (gint)id + 1);
  tape->texts->pdata[id] = (gpointer)text;
  return text;
}

char *
td__ranks_dup_site (const TdRanks *self, guint place, guint32 site)
{
  char text[SITE_SIZE];

  if (!td_tape_reader_site (self->tapes[place].reader, site))
    return NULL;
  td_tape_reader_site_text (self->tapes[place].reader, site, text, sizeof text);
  return *text ? g_path_get_basename (text) : NULL;
}

/* Of the places that are set, the rank that is the i-th. */
static guint
list_ranks (const TdRanks *self, const gboolean *set, guint *ranks)
{
  guint n = 0;

  for (guint i = 0; i < self->n; i++)
    if (set[i])
      ranks[n++] = self->tapes[i].open.rank;
  return n;
}

char *
td__ranks_dup_names_do (const TdRanks *self, const gboolean *set, const char *one,
                        const char *many)
{
  g_autofree guint *ranks = g_new (guint, self->n);
  guint n = list_ranks (self, set, ranks);
  GString *out = g_string_new (n == 1 ? "rank " : "ranks ");

  if (n == 0)
    g_string_assign (out, "no rank");
  for (guint i = 0; i < n; i++)
    if (i >= 6 && n > 8)
      {
        g_string_append_printf (out, " and %u others", n - i);
        break;
      }
    else
      g_string_append_printf (out, "%s%u", i == 0 ? "" : i + 1 == n ? " and " : ", ", ranks[i]);
  g_string_append (out, n == 1 ? one : many);
  return g_string_free (out, FALSE);
}

char *
td__ranks_dup_names (const TdRanks *self, const gboolean *set)
{
  return td__ranks_dup_names_do (self, set, "", "");
}

/* ---- votes ---- */

void
td__rank_vote_init (TdRankVote *vote, const guint *classes, guint n)
{
  g_autofree guint *counts = g_new0 (guint, n + 1);
  guint best = 0, n_best = 0;

  memset (vote, 0, sizeof *vote);
  vote->n = n;
  vote->classes = g_memdup2 (classes, n * sizeof *classes);
  vote->odd = g_new0 (gboolean, n + 1);
  for (guint i = 0; i < n; i++)
    if (classes[i] != TD_RANKS_NO_CLASS)
      {
        counts[classes[i]]++;
        vote->n_classes = MAX (vote->n_classes, classes[i] + 1);
      }
  for (guint c = 0; c < vote->n_classes; c++)
    if (counts[c] > counts[best])
      best = c;
  for (guint c = 0; c < vote->n_classes; c++)
    n_best += counts[c] == counts[best];
  vote->has_majority = n_best == 1;
  for (guint i = 0; vote->n_classes > 1 && i < n; i++)
    vote->odd[i]
        = classes[i] != TD_RANKS_NO_CLASS && (!vote->has_majority || classes[i] != best);
}

void
td__rank_vote_clear (TdRankVote *vote)
{
  g_free (vote->classes);
  g_free (vote->odd);
}

gboolean
td__rank_vote_choose_pair (const TdRankVote *vote, guint *other, guint *odd)
{
  gint one = -1, another = -1;

  for (guint i = 0; i < vote->n && one < 0; i++)
    if (vote->classes[i] != TD_RANKS_NO_CLASS && vote->odd[i])
      one = (gint)i;
  for (guint i = 0; one >= 0 && i < vote->n && another < 0; i++)
    if (vote->classes[i] != TD_RANKS_NO_CLASS && vote->classes[i] != vote->classes[one])
      another = (gint)i;
  *other = (guint)MAX (another, 0);
  *odd = (guint)MAX (one, 0);
  return one >= 0 && another >= 0;
}

/* ---- findings ---- */

TdRanksFinding *
td__ranks_add (TdRanks *self, TdRanksCause cause, TdRanksLevel level, gint64 iteration,
               const gboolean *ranks)
{
  TdRanksFinding f = { .cause = cause, .level = level, .iteration = iteration, .after = -1 };

  f.ranks = g_new0 (guint, self->n);
  f.n_ranks = list_ranks (self, ranks, f.ranks);
  g_array_append_val (self->findings, f);
  return &g_array_index (self->findings, TdRanksFinding, self->findings->len - 1);
}

gboolean
td__ranks_has (const TdRanks *self, TdRanksCause cause)
{
  for (guint i = 0; i < self->findings->len; i++)
    if (td_ranks_get_finding (self, i)->cause == cause)
      return TRUE;
  return FALSE;
}

char *
td__ranks_dup_when (gint64 iteration, gint64 after)
{
  if (after >= 0 && after + 1 < iteration)
    return g_strdup_printf ("by iteration %" G_GINT64_FORMAT
                            " (before it, the tapes have %" G_GINT64_FORMAT " last)",
                            iteration, after);
  return g_strdup_printf ("in iteration %" G_GINT64_FORMAT, iteration);
}

/* Ranks of whose steps some, or all, are not whole on the tape, which says nothing of those. */
static void
append_not_whole (const TdRanks *self, gboolean all, GString *out)
{
  g_autofree gboolean *set = g_new0 (gboolean, self->n);
  g_autofree char *names = NULL;
  guint n = 0;

  for (guint i = 0; i < self->n; i++)
    {
      const TdRank *rank = &self->tapes[i].open;

      set[i] = rank->n_looked_at < rank->n_iterations && rank->n_compared < self->n_steps
               && (rank->n_compared == 0) == all;
      n += set[i];
    }
  names = td__ranks_dup_names (self, set);
  if (n > 0)
    g_string_append_printf (out, "; %s of %s, whose %s not all of them whole",
                            all ? "none" : "not all", names,
                            n == 1 ? "tape has" : "tapes have");
}

/* Those of which nothing is whole were not compared. */
static guint
count_compared (const TdRanks *self)
{
  guint n = 0;

  for (guint i = 0; i < self->n; i++)
    n += self->tapes[i].open.n_compared > 0
         || self->tapes[i].open.n_looked_at == self->tapes[i].open.n_iterations;
  return n;
}

char *
td__ranks_dup_nothing (const TdRanks *self)
{
  GString *out;

  if (self->n_started < 2)
    return g_strdup ("One rank: there is nothing to compare it with");
  out = g_string_new (NULL);
  if (self->n < self->n_started)
    g_string_append_printf (
        out, "Nothing found in the tapes of %u of %u ranks: %u steps with updates compared",
        self->n, self->n_started, self->n_steps);
  else
    g_string_append_printf (out, "Nothing found: %u steps with updates of %u ranks compared",
                            self->n_steps, count_compared (self));
  append_not_whole (self, TRUE, out);
  append_not_whole (self, FALSE, out);
  return g_string_free (out, FALSE);
}
