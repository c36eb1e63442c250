/*
 * What a run as a whole says: optimizers that never average, counts of updates, and devices.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"

/* ---- a plain optimizer ---- */

/* A tape of an older recorder, or of another program's, does not say what ranks did together.
 */
static gboolean
says_waits (const TdRankTape *tape)
{
  const TdTapeHeader *header = td_tape_reader_header (tape->reader);

  return header->major > 1 || header->minor >= 3;
}

static void
say_plain_optimizer (TdRanks *self, guint first, const gboolean *plain)
{
  const TdRankTape *tape = &self->tapes[first];
  g_autofree char *names = td__ranks_dup_names (self, plain);
  const gboolean named = !td__ranks_is_of_framework (self, first); /* else a part of a step */
  TdRanksFinding *f
      = td__ranks_add (self, TD_RANKS_PLAIN, TD_RANKS_ERROR, tape->first_update, plain);

  f->site = td__ranks_dup_site (self, first, tape->update_site);
  f->sentence = g_strdup_printf (
      "%s update their parameters%s%s%s%s and never average: each trains a model of its own",
      names, named ? " by " : "",
      named ? td_tape_reader_op_name (tape->reader, tape->update_opdef) : "",
      f->site ? " at " : "", f->site ? f->site : "");
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_AVERAGE));
}

/* Ranks of a framework may average in ways that no tape has: there they never do where they are
 * apart from the first update on. Returns the place of that finding; -1: they are not. */
static gint
find_apart (const TdRanks *self, gint64 first_update)
{
  for (guint i = 0; i < self->findings->len; i++)
    {
      const TdRanksFinding *f = td_ranks_get_finding (self, i);

      if ((f->cause == TD_RANKS_PARAMETERS || f->cause == TD_RANKS_STATE)
          && f->iteration == first_update && f->n_ranks == self->n)
        return (gint)i;
    }
  return -1;
}

/* That parameters were not equal is no cause then; states part by it, too. */
static void
explain_apart (TdRanks *self, guint at)
{
  TdRanksFinding *f = &g_array_index (self->findings, TdRanksFinding, at);
  g_autofree char *before = NULL;

  if (f->cause == TD_RANKS_PARAMETERS)
    {
      g_array_remove_index (self->findings, at);
      return;
    }
  before = f->sentence;
  f->sentence
      = g_strdup_printf ("%s; they never average: each trains a model of its own", before);
}

static void
look_for_plain_optimizer (TdRanks *self)
{
  g_autofree gboolean *plain = g_new0 (gboolean, self->n);
  const gboolean of_framework = td__ranks_is_of_framework (self, 0);
  gint first = -1, apart = -1;
  guint n = 0;

  for (guint i = 0; i < self->n; i++)
    {
      if (!says_waits (&self->tapes[i]))
        return;
      plain[i] = self->tapes[i].open.n_updating > 0;
      n += plain[i];
      first = first < 0 && plain[i] ? (gint)i : first;
    }
  if (n < 2 || td__ranks_train_together (self))
    return;
  if (of_framework)
    {
      apart = find_apart (self, self->tapes[first].first_update);
      if (apart < 0)
        return;
      explain_apart (self, (guint)apart);
      if (td__ranks_has (self, TD_RANKS_STATE))
        return;
    }
  say_plain_optimizer (self, (guint)first, plain);
}

/* ---- counts ---- */

static gboolean
is_whole (const TdRank *rank)
{
  return !rank->is_running && !rank->has_failed && rank->n_looked_at == rank->n_iterations;
}

/* Does it come to none in this one, though to a backward? */
static gboolean
has_backward_only (const TdRankTape *tape, gint64 number)
{
  for (guint i = 0; i < tape->left_out->len; i++)
    if (g_array_index (tape->left_out, gint64, i) == number)
      return TRUE;
  return FALSE;
}

/* Or to neither? An evaluation beside the others' iterations is none of these: the program
 * calls it otherwise. */
static gboolean
is_idle (const TdRanks *self, guint place, gint64 number)
{
  const GArray *idle = self->tapes[place].idle;
  gboolean computes = TRUE, found = FALSE;

  for (guint i = 0; i < idle->len && !found; i++)
    {
      found = g_array_index (idle, TdRankIdle, i).number == number;
      computes = g_array_index (idle, TdRankIdle, i).computes;
    }
  for (guint i = 0; found && computes && i < self->n; i++)
    if (i != place && !td__ranks_have_one_label (self, place, i, number))
      return FALSE;
  return found;
}

/* What it was to do there still it did not leave out: it died, hangs or ended first. */
static gboolean
ends_in (const TdRankTape *tape, gint64 number)
{
  return number >= tape->last_of_loop;
}

static gboolean
leaves_out (const TdRanks *self, guint place, gint64 number, gboolean idle)
{
  const TdRankTape *tape = &self->tapes[place];

  if (ends_in (tape, number) && (idle || tape->open.has_failed))
    return FALSE;
  return has_backward_only (tape, number) || (idle && is_idle (self, place, number));
}

/* Who left the update of that iteration out, where all others that made more made it. FALSE:
 * not so. */
static gboolean
find_left_out (const TdRanks *self, gint64 number, gboolean idle, gboolean *without,
               gboolean *with)
{
  guint n_without = 0, n_with = 0;

  for (guint i = 0; i < self->n; i++)
    {
      const TdRankTape *tape = &self->tapes[i];

      without[i] = leaves_out (self, i, number, idle);
      with[i] = !without[i] && tape->n_begun > 0 && number <= tape->last_number;
      n_without += without[i];
      n_with += with[i];
    }
  for (guint i = 0; i < self->n; i++)
    for (guint j = 0; without[i] && j < self->n; j++)
      if (with[j] && self->tapes[j].n_begun <= self->tapes[i].n_begun)
        return FALSE; /* it has numbers of its own, and as many updates */
  return n_without > 0 && n_with > 0;
}

/* The first iteration in which some ranks came to no update, and the others did; G_MAXINT64:
 * there is none. */
static gint64
find_first_left_out (const TdRanks *self, gboolean idle, gboolean *without, gboolean *with)
{
  gint64 number = G_MAXINT64;

  for (guint i = 0; i < self->n; i++)
    {
      const TdRankTape *tape = &self->tapes[i];

      for (guint k = 0; k < (idle ? tape->idle->len : tape->left_out->len); k++)
        {
          gint64 at = idle ? g_array_index (tape->idle, TdRankIdle, k).number
                           : g_array_index (tape->left_out, gint64, k);

          if (at < number && find_left_out (self, at, idle, without, with))
            number = at;
        }
    }
  if (number != G_MAXINT64)
    find_left_out (self, number, idle, without, with);
  return number;
}

/* Calls of the ranks do not fit any more, and one of them has come to fewer updates: it has
 * left out one behind its backward, or a whole iteration. */
static void
look_for_left_out (TdRanks *self)
{
  g_autofree gboolean *without = g_new0 (gboolean, self->n), *with = g_new0 (gboolean, self->n);
  gboolean idle = FALSE;
  gint64 number;
  TdRanksFinding *f;

  if (!td__ranks_has (self, TD_RANKS_MISMATCH) && !td__ranks_has (self, TD_RANKS_HANG))
    return;
  number = find_first_left_out (self, FALSE, without, with);
  if (number == G_MAXINT64)
    {
      idle = TRUE;
      number = find_first_left_out (self, TRUE, without, with);
    }
  if (number == G_MAXINT64)
    return;
  g_autofree char *names = td__ranks_dup_names (self, without),
                  *leave = td__ranks_dup_names_do (self, without, " leaves", " leave"),
                  *others = td__ranks_dup_names (self, with);
  f = td__ranks_add (self, TD_RANKS_UPDATES, TD_RANKS_ERROR, number, without);
  f->sentence
      = idle ? g_strdup_printf ("%s iteration %" G_GINT64_FORMAT
                                " out: no backward and no update is in it, where %s came to "
                                "one; from then on they are one iteration apart",
                                leave, number, others)
             : g_strdup_printf ("%s made no update in iteration %" G_GINT64_FORMAT
                                ", where %s came to one; from then on they are an update apart",
                                names, number, others);
  f->advice = g_strdup ("All ranks must update as often");
}

/* Calls do not fit any more, and in one iteration a rank came to more updates than others. */
static void
look_for_more_updates (TdRanks *self)
{
  g_autofree gboolean *more = g_new0 (gboolean, self->n), *fewer = g_new0 (gboolean, self->n);
  guint32 least = G_MAXUINT32;
  TdRanksFinding *f;

  if (!self->more_updates || td__ranks_has (self, TD_RANKS_UPDATES)
      || (!td__ranks_has (self, TD_RANKS_MISMATCH) && !td__ranks_has (self, TD_RANKS_HANG)))
    return;
  for (guint i = 0; i < self->n; i++)
    least = MIN (least, self->more_updates[i]);
  for (guint i = 0; i < self->n; i++)
    {
      if (self->more_updates[i] % least != 0)
        return; /* of more parameters, rather */
      more[i] = self->more_updates[i] > least;
      fewer[i] = !more[i];
    }
  g_autofree char *names = td__ranks_dup_names (self, more),
                  *others = td__ranks_dup_names (self, fewer);
  f = td__ranks_add (self, TD_RANKS_UPDATES, TD_RANKS_ERROR, self->more_updates_in, more);
  f->sentence = g_strdup_printf ("%s made more updates in iteration %" G_GINT64_FORMAT
                                 " than %s; from then on they are an update apart",
                                 names, self->more_updates_in, others);
  f->advice = g_strdup ("All ranks must update as often");
}

/* What is not on its tape is not compared: FALSE where there is such a rank. */
static gboolean
say_recording_ends (TdRanks *self)
{
  gboolean all = TRUE;

  for (guint i = 0; i < self->n; i++)
    {
      /* "recording stopped, cannot write the tape: No space left on device" */
      const char *why = td__rank_tape_find_notice (&self->tapes[i], TD_TAPE_NOTICE_RECORDING,
                                                   "recording stopped");
      g_autofree gboolean *set = g_new0 (gboolean, self->n);
      TdRanksFinding *f;

      if (!why)
        continue;
      all = FALSE;
      set[i] = TRUE;
      f = td__ranks_add (self, TD_RANKS_UPDATES, TD_RANKS_NOTE, self->tapes[i].last_number,
                         set);
      f->sentence
          = self->tapes[i].last_number < 0
                ? g_strdup_printf (
                    "no iteration of rank %u is on its tape (%s): nothing that it "
                    "did is compared",
                    self->tapes[i].open.rank, why)
                : g_strdup_printf ("rank %u is on its tape up to iteration %" G_GINT64_FORMAT
                                   " (%s): what it did from then on is not compared",
                                   self->tapes[i].open.rank, self->tapes[i].last_number, why);
    }
  return all;
}

/* How many forwards of the others a rank made the calls of, because it had no more examples:
 * PyTorch's join. */
static guint64
shadowed_by (const TdRankTape *tape)
{
  return g_ascii_strtoull (td_tape_reader_info (tape->reader, "joined"), NULL, 10);
}

/* Each that made fewer updates had joined meanwhile, at least as often. */
static gboolean
have_joined (const TdRanks *self)
{
  guint64 most = 0;

  for (guint i = 0; i < self->n; i++)
    most = MAX (most, self->tapes[i].open.n_updating);
  for (guint i = 0; i < self->n; i++)
    if (self->tapes[i].open.n_updating > 0
        && self->tapes[i].open.n_updating + shadowed_by (&self->tapes[i]) < most)
      return FALSE;
  return TRUE;
}

static void
look_at_counts (TdRanks *self)
{
  g_autofree guint *classes = g_new (guint, self->n);
  g_autofree char *names = NULL;
  GString *out;
  TdRanksFinding *f;
  TdRankVote vote;
  guint n = 0;

  for (guint i = 0; i < self->n; i++)
    if (!is_whole (&self->tapes[i].open))
      return;
  if (!say_recording_ends (self) || self->steps_said)
    return;
  for (guint i = 0; i < self->n; i++)
    {
      classes[i] = TD_RANKS_NO_CLASS;
      if (self->tapes[i].open.n_updating == 0) /* it trains nothing, in no group */
        continue;
      for (guint j = 0; j < i; j++)
        if (self->tapes[j].open.n_updating == self->tapes[i].open.n_updating)
          classes[i] = classes[j];
      if (classes[i] == TD_RANKS_NO_CLASS)
        classes[i] = n++;
    }
  if (n < 2 || self->n_means == 0 || have_joined (self))
    return;
  td__rank_vote_init (&vote, classes, self->n);
  names = td__ranks_dup_names (self, vote.odd);
  out = g_string_new (names);
  g_string_append (out, vote.has_majority ? " made another number of updates than the others: "
                                          : " made different numbers of updates: ");
  for (guint i = 0; i < self->n; i++)
    g_string_append_printf (out, "%s%" G_GUINT64_FORMAT " on rank %u", i ? ", " : "",
                            self->tapes[i].open.n_updating, self->tapes[i].open.rank);
  if (self->uneven >= 0)
    g_string_append_printf (out, "; first in iteration %" G_GINT64_FORMAT, self->uneven);
  f = td__ranks_add (self, TD_RANKS_UPDATES, TD_RANKS_ERROR, self->uneven, vote.odd);
  f->sentence = g_string_free (out, FALSE);
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_EQUAL_UPDATES));
  td__rank_vote_clear (&vote);
}

/* ---- damage ---- */

/* What a file has lost was not compared: that nothing was found in the rest says little. */
static void
look_for_damage (TdRanks *self)
{
  for (guint i = 0; i < self->n; i++)
    {
      const TdRank *rank = &self->tapes[i].open;
      g_autofree gboolean *set = g_new0 (gboolean, self->n);
      TdRanksFinding *f;
      char what[200];

      if (rank->n_looked_at >= rank->n_iterations
          || !td_tape_reader_damage (self->tapes[i].reader, what, sizeof what))
        continue;
      set[i] = TRUE;
      f = td__ranks_add (self, TD_RANKS_DAMAGE, TD_RANKS_WARNING, -1, set);
      f->sentence = g_strdup_printf (
          "rank %u's tape has lost iterations, which are not compared: %s", rank->rank, what);
    }
}

/* ---- devices ---- */

/* Which device it is for sure: where that is not recorded, its name, which another process may
 * use for another device. */
static const char *
device_of (const TdRankTape *tape, gboolean *sure)
{
  const char *uuid = td_tape_reader_info (tape->reader, "device.uuid");

  *sure = *uuid != '\0';
  return *sure ? uuid : tape->open.device;
}

static gboolean
is_shared (const TdRankTape *a, const TdRankTape *b, gboolean *sure)
{
  gboolean sure_a, sure_b;
  const char *x = device_of (a, &sure_a), *y = device_of (b, &sure_b);

  *sure = sure_a && sure_b;
  return g_str_has_prefix (a->open.device, "cuda") && g_str_has_prefix (b->open.device, "cuda")
         && *a->open.host && g_str_equal (a->open.host, b->open.host) && sure_a == sure_b
         && g_str_equal (x, y);
}

static void
look_at_devices (TdRanks *self)
{
  for (guint a = 0; a < self->n; a++)
    {
      g_autofree gboolean *shares = g_new0 (gboolean, self->n);
      g_autofree char *names = NULL;
      gboolean sure = FALSE;
      TdRanksFinding *f;
      guint n = 0;

      for (guint b = a + 1; b < self->n; b++)
        n += shares[b] = is_shared (&self->tapes[a], &self->tapes[b], &sure);
      if (n == 0)
        continue;
      shares[a] = TRUE;
      is_shared (&self->tapes[a], &self->tapes[a], &sure);
      names = td__ranks_dup_names (self, shares);
      f = td__ranks_add (self, TD_RANKS_DEVICE, sure ? TD_RANKS_WARNING : TD_RANKS_NOTE, -1,
                         shares);
      f->sentence = g_strdup_printf (
          "%s of %s share the device %s%s", names, self->tapes[a].open.host,
          self->tapes[a].open.device,
          sure ? "" : ", unless each was shown another one (CUDA_VISIBLE_DEVICES)");
      f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_OWN_DEVICE));
      return;
    }
}

void
td__ranks_look_at_run (TdRanks *self)
{
  look_for_plain_optimizer (self);
  look_for_left_out (self);
  look_for_more_updates (self);
  td__ranks_look_for_behind (self);
  look_at_counts (self);
  look_for_damage (self);
  look_at_devices (self);
  td__ranks_look_for_straggler (self);
}
