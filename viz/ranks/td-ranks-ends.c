/*
 * How ranks ended: who waited for whom when the tapes stop, who never came and where it was,
 * who failed. What a rank's end did to the others is no finding of its own.
 *
 * SPDX-License-Identifier: MIT
 */
#include <signal.h>
#include <string.h>
#include <time.h>

#include <gio/gio.h>

#include "td-ranks-private.h"
#include "td-session.h"

#define PATIENCE_NS 10000000000u /* that ranks of a running program may wait for others */

static const struct
{
  int number;
  const char *name;
} signals[] = {
  { SIGKILL, "SIGKILL" }, { SIGSEGV, "SIGSEGV" }, { SIGABRT, "SIGABRT" }, { SIGBUS, "SIGBUS" },
  { SIGTERM, "SIGTERM" }, { SIGINT, "SIGINT" },   { SIGFPE, "SIGFPE" },   { SIGILL, "SIGILL" },
  { SIGHUP, "SIGHUP" },   { SIGPIPE, "SIGPIPE" },
};

const char *
td__rank_tape_find_notice (const TdRankTape *tape, guint kind, const char *prefix)
{
  for (guint32 k = td_tape_reader_n_notices (tape->reader); k-- > 0;)
    {
      const TdTapeNotice *notice = td_tape_reader_notice (tape->reader, k);
      const char *text = td_tape_reader_string (tape->reader, notice->text);

      if (notice->kind == kind && g_str_has_prefix (text, prefix))
        return text;
    }
  return NULL;
}

/* It was ended where it stood: "stopped at train.c:22: before relu (breakpoint 1: ...)". NULL:
 * it did not stand. Owner: borrowed. */
static const char *
find_stop (const TdRankTape *tape)
{
  return td__rank_tape_find_notice (tape, TD_TAPE_NOTICE_TEXT, "stopped at ");
}

static gboolean
is_stopped (const TdRankTape *tape)
{
  const TdTapeEnd *end = td_tape_reader_end (tape->reader);

  return end && end->signal == SIGKILL && find_stop (tape);
}

static char *
dup_end (const TdRankTape *tape)
{
  const TdTapeEnd *end = td_tape_reader_end (tape->reader);

  if (!end)
    return g_strdup (tape->open.is_running ? "still runs"
                                           : "stopped without saying how it ended");
  if (end->signal == 0 && end->status == 0)
    return g_strdup ("ended");
  if (end->signal == 0)
    return g_strdup_printf ("ended with status %d", end->status);
  if (is_stopped (tape))
    return g_strdup (find_stop (tape));
  for (gsize i = 0; i < G_N_ELEMENTS (signals); i++)
    if (signals[i].number == end->signal)
      return g_strdup_printf ("was killed by %s", signals[i].name);
  return g_strdup_printf ("was killed by signal %d", end->signal);
}

static void
find_ends (TdRanks *self)
{
  for (guint i = 0; i < self->n; i++)
    {
      TdRankTape *tape = &self->tapes[i];
      const TdTapeEnd *end = td_tape_reader_end (tape->reader);

      tape->open.is_running = !end && td_session_tape_is_written (tape->own_path);
      tape->open.has_failed
          = end ? end->status != 0 || end->signal != 0 : !tape->open.is_running;
      tape->open.end = dup_end (tape);
    }
}

/* ---- where a rank was ---- */

static char *
dup_wait (const TdRanks *self, guint place, const TdTapeCollective *w)
{
  const TdRankTape *tape = &self->tapes[place];
  g_autofree char *site = td__ranks_dup_site (self, place, w->site);
  const char *call = td_tape_reader_string (tape->reader, w->call);
  const char *way = w->wait == TD_TAPE_WAIT_SEND      ? " to "
                    : w->wait == TD_TAPE_WAIT_RECEIVE ? " from "
                                                      : NULL;
  g_autofree char *peer
      = way && w->peer >= 0 ? g_strdup_printf ("%srank %d", way, w->peer) : NULL;

  g_autofree char *part
      = !way && w->size < self->n_started ? g_strdup_printf (" of %u ranks", w->size) : NULL;

  return g_strdup_printf ("%s%s%s%s%s", *call ? call : td_tape_wait_name (w->wait),
                          part ? part : "", peer ? peer : "", site ? " at " : "",
                          site ? site : "");
}

static gboolean
has_note (const TdRankTape *tape, const char *prefix)
{
  return td__rank_tape_find_notice (tape, TD_TAPE_NOTICE_TEXT, prefix) != NULL;
}

/* What started the ranks was killed, and nobody says that one of them was, nor that all were
 * told to end. */
static gboolean
has_lost_mpirun (const TdRankTape *tape)
{
  return has_note (tape, "the run has lost mpirun")
         && !has_note (tape, "the run was told to end");
}

/* It ran when the whole run was: "the run was told to end (Terminated)". */
static gboolean
is_of_ended_run (const TdRankTape *tape)
{
  return has_note (tape, "the run was told to end") || has_lost_mpirun (tape);
}

static gboolean
is_told_to_end (const TdRankTape *tape)
{
  const TdTapeEnd *end = td_tape_reader_end (tape->reader);

  return end && (end->signal == SIGTERM || end->signal == SIGINT || is_of_ended_run (tape));
}

/* "was killed by SIGKILL in iteration 17, in linear at train.c:22". One that was told to end
 * did something else until then. */
static char *
dup_last (const TdRanks *self, guint place)
{
  const TdRankTape *tape = &self->tapes[place];
  const TdTapeEnd *end = td_tape_reader_end (tape->reader);
  GString *out = g_string_new (is_told_to_end (tape) ? "was" : tape->open.end);

  if (is_stopped (tape))
    return g_string_free (out, FALSE);
  gint64 iteration = end && end->last_op ? (gint64)end->iteration : tape->last_number;

  if (iteration >= 0)
    g_string_append_printf (out, " in iteration %" G_GINT64_FORMAT, iteration);
  if (end && end->last_op)
    {
      g_autofree char *site = td__ranks_dup_site (self, place, end->last_site);

      g_string_append_printf (out, ", %s %s%s%s", end->running ? "in" : "after",
                              td_tape_reader_op_name (tape->reader, end->last_op),
                              site ? " at " : "", site ? site : "");
    }
  else if (tape->has_last)
    {
      g_autofree char *wait = dup_wait (self, place, &tape->last);

      g_string_append_printf (out, "; its last call was %s", wait);
    }
  if (is_told_to_end (tape) && g_str_equal (out->str, "was")) /* nothing else is known of it */
    g_string_assign (out, tape->open.end);
  else if (is_told_to_end (tape))
    g_string_append_printf (out, ", until it %s", tape->open.end);
  return g_string_free (out, FALSE);
}

/* ---- waiting ---- */

static gboolean
is_letter (const TdTapeCollective *w)
{
  return w->wait == TD_TAPE_WAIT_SEND || w->wait == TD_TAPE_WAIT_RECEIVE;
}

/* Did they bring the same to one call? */
static gboolean
are_of_one (const TdRungSide *a, const TdRungSide *b)
{
  return a->call == b->call && a->wait == b->wait && a->bytes == b->bytes
         && a->dtype == b->dtype;
}

/* All have come to the call that is the last on its tape, and another one has left it: nobody
 * was waited for any more, but that it left, too, did not come to the tape of a rank that was
 * killed. */
static gboolean
has_gone_on (const TdRanks *self, guint place)
{
  const TdTapeCollective *w = &self->tapes[place].stuck;
  TdRung wanted = { .comm = w->comm, .seq = w->seq };
  const TdRung *rung = is_letter (w) ? NULL : g_hash_table_lookup (self->rungs, &wanted);
  gboolean left = FALSE;

  if (!rung || rung->n_here < w->size)
    return FALSE;
  for (guint i = 0; i < self->n; i++)
    {
      const TdRungSide *side = &rung->sides[i];

      if (side->here && !are_of_one (side, &rung->sides[place]))
        return FALSE;
      left = left || (side->left && !(side->flags & TD_TAPE_COLLECTIVE_FAILED));
    }
  return left;
}

static void
forget_gone_on (TdRanks *self)
{
  for (guint i = 0; i < self->n; i++)
    if (self->tapes[i].is_stuck && has_gone_on (self, i))
      self->tapes[i].is_stuck = FALSE;
}

/* Ranks that wait in one call stand together; letters wait alone. */
static gboolean
wait_together (const TdTapeCollective *a, const TdTapeCollective *b)
{
  return !is_letter (a) && !is_letter (b) && a->comm == b->comm && a->seq == b->seq;
}

/* Who has to come for the wait to end. */
static void
find_missing (const TdRanks *self, guint place, gboolean *missing)
{
  const TdTapeCollective *w = &self->tapes[place].stuck;
  TdRung wanted = { .comm = w->comm, .seq = w->seq };
  const TdRankGroup *group = g_hash_table_lookup (self->groups, &w->comm);
  const TdRung *rung = g_hash_table_lookup (self->rungs, &wanted);

  memset (missing, 0, self->n * sizeof *missing);
  if (!is_letter (w) && rung)
    td__ranks_list_missing (self, rung, missing);
  else if (is_letter (w) && group && w->peer >= 0 && (guint32)w->peer < group->size
           && group->places[w->peer] >= 0)
    missing[group->places[w->peer]] = TRUE;
  else if (is_letter (w) && w->size == self->n_started)
    for (guint i = 0; i < self->n; i++)
      missing[i] = self->tapes[i].open.rank == (guint)w->peer;
}

/* In a program that runs everybody waits now and then. */
static gboolean
is_patient (const TdRanks *self, guint place)
{
  const TdRankTape *tape = &self->tapes[place];
  struct timespec now;
  guint64 began;

  if (!tape->open.is_running)
    return FALSE;
  clock_gettime (CLOCK_MONOTONIC, &now);
  began = td_tape_reader_header (tape->reader)->mono_ns + tape->stuck.start_ns;
  return !g_str_equal (tape->open.host, g_get_host_name ())
         || (guint64)now.tv_sec * 1000000000u + (guint64)now.tv_nsec < began + PATIENCE_NS;
}

/* What each of those who did not come does instead. */
static void
append_missing (const TdRanks *self, const gboolean *missing, GString *out)
{
  for (guint i = 0; i < self->n; i++)
    {
      const TdRankTape *tape = &self->tapes[i];
      g_autofree char *text = NULL;

      if (!missing[i])
        continue;
      text = tape->is_stuck ? dup_wait (self, i, &tape->stuck) : dup_last (self, i);
      g_string_append_printf (out, "; rank %u %s%s", tape->open.rank,
                              tape->is_stuck ? "waits elsewhere, in " : "never came: it ",
                              text);
    }
  if (self->n < self->n_started)
    g_string_append_printf (out, "; of %u %s no tape is here", self->n_started - self->n,
                            td_plural (self->n_started - self->n, "rank", "ranks"));
}

static gboolean
any (const gboolean *set, guint n)
{
  for (guint i = 0; i < n; i++)
    if (set[i])
      return TRUE;
  return FALSE;
}

/* Those who wait with `place`, and whom for. Returns whether that is a finding. */
static gboolean
say_waiting (TdRanks *self, guint place, gboolean *said)
{
  const TdTapeCollective *w = &self->tapes[place].stuck;
  g_autofree gboolean *waiting = g_new0 (gboolean, self->n),
                      *missing = g_new0 (gboolean, self->n);
  g_autofree char *names = NULL, *where = dup_wait (self, place, w);
  GString *out;
  TdRanksFinding *f;

  for (guint i = 0; i < self->n; i++)
    {
      waiting[i]
          = self->tapes[i].is_stuck && (i == place || wait_together (&self->tapes[i].stuck, w));
      said[i] = said[i] || waiting[i];
    }
  find_missing (self, place, missing);
  if ((!any (missing, self->n) && self->n == self->n_started) || is_patient (self, place))
    return FALSE;
  names = td__ranks_dup_names_do (self, waiting, " waits", " wait");
  out = g_string_new (NULL);
  g_string_append_printf (out, "%s in %s", names, where);
  if (!is_letter (w))
    g_string_append_printf (out, " (call %" G_GUINT64_FORMAT ")", w->seq);
  g_string_append_printf (out, " in iteration %" G_GINT64_FORMAT,
                          self->tapes[place].stuck_iteration);
  append_missing (self, missing, out);
  f = td__ranks_add (self, TD_RANKS_HANG, TD_RANKS_ERROR, self->tapes[place].stuck_iteration,
                     any (missing, self->n) ? missing : waiting);
  f->site = td__ranks_dup_site (self, place, w->site);
  f->sentence = g_string_free (out, FALSE);
  f->advice = g_strdup ("All ranks must come to every call; see what the one that did not come "
                        "did instead");
  return TRUE;
}

/* Who waits for one that is gone says more than one who waits for others that wait. */
static gboolean
waits_for_gone (const TdRanks *self, guint place)
{
  g_autofree gboolean *missing = g_new0 (gboolean, self->n);
  gboolean gone = FALSE;

  find_missing (self, place, missing);
  for (guint i = 0; i < self->n; i++)
    gone = gone || (missing[i] && !self->tapes[i].is_stuck);
  return gone;
}

/* It had waited for less than somebody takes to see that nothing goes on. */
static gboolean
is_short (const TdRankTape *tape)
{
  const TdTapeEnd *end = td_tape_reader_end (tape->reader);

  return end && end->time_ns < tape->stuck.start_ns + PATIENCE_NS;
}

/* Where nobody had failed when all were told to end: who computed then, and who waits for such
 * only, however far they had come. Those that are left wait for each other. */
static void
find_healthy (const TdRanks *self, gboolean *healthy)
{
  gboolean found = FALSE;

  for (guint i = 0; i < self->n; i++)
    {
      gboolean is_of = is_of_ended_run (&self->tapes[i]);

      healthy[i] = !self->tapes[i].is_stuck && is_of;
      found = found || is_of;
    }
  while (found)
    {
      found = FALSE;
      for (guint i = 0; i < self->n; i++)
        {
          g_autofree gboolean *missing = g_new0 (gboolean, self->n);
          gboolean all = !healthy[i] && self->tapes[i].is_stuck && is_short (&self->tapes[i]);

          if (!all)
            continue;
          find_missing (self, i, missing);
          for (guint j = 0; j < self->n; j++)
            all = all && (!missing[j] || healthy[j]);
          healthy[i] = all;
          found = found || all;
        }
    }
}

static void
look_at_waiting (TdRanks *self)
{
  g_autofree gboolean *said = g_new0 (gboolean, self->n);

  find_healthy (self, said); /* of whom there is nothing to say */
  for (guint pass = 0; pass < 2; pass++)
    for (guint i = 0; i < self->n; i++)
      if (self->tapes[i].is_stuck && !said[i] && (pass == 1 || waits_for_gone (self, i))
          && say_waiting (self, i, said))
        return;
}

/* ---- what was said when they were ended ---- */

/* A rank that waited for too long has said where each is, on every tape. NULL: none has. */
static const char *
find_notice (const TdRanks *self)
{
  for (guint i = 0; i < self->n; i++)
    {
      TdTapeReader *reader = self->tapes[i].reader;

      for (guint32 k = td_tape_reader_n_notices (reader); k-- > 0;)
        {
          const TdTapeNotice *notice = td_tape_reader_notice (reader, k);
          const char *text = td_tape_reader_string (reader, notice->text);

          if ((notice->kind == TD_TAPE_NOTICE_ERROR || notice->kind == TD_TAPE_NOTICE_TEXT)
              && g_str_has_prefix (text, "rank ") && strstr (text, " has waited "))
            return text;
        }
    }
  return NULL;
}

/* "... for rank 1, rank 2; rank 1 (pid 7) is stopped ...": those before the first semicolon. */
static void
find_named (const TdRanks *self, const char *text, gboolean *named)
{
  const char *end = strchrnul (text, ';');

  for (const char *at = strstr (text, " for rank "); at && at < end;
       at = strstr (at + 1, "rank "))
    {
      guint64 rank = g_ascii_strtoull (strstr (at, "rank ") + strlen ("rank "), NULL, 10);

      for (guint i = 0; i < self->n; i++)
        named[i] = named[i] || self->tapes[i].open.rank == rank;
    }
}

/* What the tapes' waits do not show: outside iterations, and how the one that did not come was.
 */
static void
look_at_notice (TdRanks *self)
{
  g_autofree gboolean *named = g_new0 (gboolean, self->n);
  const char *text = find_notice (self);
  gboolean came = TRUE; /* all, in the end */
  TdRanksFinding *f = NULL;

  for (guint i = 0; i < self->n; i++)
    came = came && !self->tapes[i].open.has_failed && !self->tapes[i].open.is_running;
  if (!text || came)
    return;
  for (guint i = 0; i < self->findings->len && !f; i++)
    if (g_array_index (self->findings, TdRanksFinding, i).cause == TD_RANKS_HANG)
      f = &g_array_index (self->findings, TdRanksFinding, i);
  if (f)
    {
      g_free (f->advice);
      f->advice = g_strdup_printf ("It was said then: %s", text);
      return;
    }
  if (td__ranks_has (self, TD_RANKS_MISMATCH)) /* they wait because of that */
    return;
  find_named (self, text, named);
  f = td__ranks_add (self, TD_RANKS_HANG, TD_RANKS_ERROR, -1, named);
  f->sentence = g_strdup (text);
  f->advice = g_strdup ("All ranks must come to every call");
}

/* ---- failing ---- */

/* Some ended by themselves, and well, and mpirun ended the others: those had not come that far.
 */
static gboolean
look_for_early (TdRanks *self)
{
  g_autofree gboolean *well = g_new0 (gboolean, self->n), *told = g_new0 (gboolean, self->n);
  g_autofree char *names = NULL, *others = NULL;
  TdRanksFinding *f;

  for (guint i = 0; i < self->n; i++)
    {
      told[i] = is_told_to_end (&self->tapes[i]);
      well[i] = !self->tapes[i].open.has_failed && !self->tapes[i].open.is_running;
      if (!told[i] && !well[i])
        return FALSE;
    }
  if (!any (well, self->n) || !any (told, self->n))
    return FALSE;
  names = td__ranks_dup_names (self, well);
  others = td__ranks_dup_names_do (self, told, " was", " were");
  f = td__ranks_add (self, TD_RANKS_DEATH, TD_RANKS_ERROR, -1, well);
  f->sentence
      = g_strdup_printf ("%s ended while others still ran: %s told to end", names, others);
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_END_TOGETHER));
  return TRUE;
}

static gboolean
all_stopped (const TdRanks *self, const gboolean *set)
{
  for (guint i = 0; i < self->n; i++)
    if (set[i] && !is_stopped (&self->tapes[i]))
      return FALSE;
  return TRUE;
}

/* What had failed first in the iteration in which a signal ended it that nobody had asked for;
 * NULL: nothing. */
static const char *
find_error (const TdRankTape *tape)
{
  const TdTapeEnd *end = td_tape_reader_end (tape->reader);

  if (!end || end->signal == 0 || is_told_to_end (tape))
    return NULL;
  for (guint32 k = 0; k < td_tape_reader_n_notices (tape->reader); k++)
    {
      const TdTapeNotice *notice = td_tape_reader_notice (tape->reader, k);

      if (notice->kind == TD_TAPE_NOTICE_ERROR
          && (gint64)notice->iteration
                 == (end->last_op ? (gint64)end->iteration : tape->last_number))
        return td_tape_reader_string (tape->reader, notice->text);
    }
  return NULL;
}

/* No rank is to blame. */
static gboolean
say_lost_mpirun (TdRanks *self)
{
  g_autofree gboolean *none = g_new0 (gboolean, self->n);
  GString *out = NULL;
  TdRanksFinding *f;

  for (guint i = 0; i < self->n; i++)
    {
      g_autofree char *last = NULL;

      if (!has_lost_mpirun (&self->tapes[i]))
        continue;
      last = dup_last (self, i);
      if (!out)
        out = g_string_new ("mpirun, which had started the ranks, was killed or died, and they "
                            "ended with it");
      g_string_append_printf (out, "; rank %u %s", self->tapes[i].open.rank, last);
    }
  if (!out)
    return FALSE;
  f = td__ranks_add (self, TD_RANKS_DEATH, TD_RANKS_ERROR, -1, none);
  f->sentence = g_string_free (out, FALSE);
  return TRUE;
}

/* One that failed takes the others along: they are ended, or fail in the same call. */
static void
look_at_failing (TdRanks *self)
{
  g_autofree gboolean *failed = g_new0 (gboolean, self->n);
  gboolean by_itself = FALSE;
  GString *out;
  TdRanksFinding *f;

  if (td__ranks_has (self, TD_RANKS_HANG) || td__ranks_has (self, TD_RANKS_MISMATCH)
      || look_for_early (self))
    return;
  for (guint i = 0; i < self->n; i++)
    by_itself
        = by_itself || (self->tapes[i].open.has_failed && !is_told_to_end (&self->tapes[i]));
  for (guint i = 0; i < self->n; i++)
    failed[i]
        = self->tapes[i].open.has_failed && (!by_itself || !is_told_to_end (&self->tapes[i]));
  if (!any (failed, self->n))
    return;
  if (!by_itself && say_lost_mpirun (self))
    return;
  out = g_string_new (NULL);
  for (guint i = 0; i < self->n; i++)
    {
      g_autofree char *last = failed[i] ? dup_last (self, i) : NULL;
      const char *error = find_error (&self->tapes[i]);

      if (failed[i])
        g_string_append_printf (out, "%srank %u %s%s%s", out->len ? "; " : "",
                                self->tapes[i].open.rank, last,
                                error ? ", after an error: " : "", error ? error : "");
    }
  f = td__ranks_add (self, TD_RANKS_DEATH,
                     by_itself && !all_stopped (self, failed) ? TD_RANKS_ERROR : TD_RANKS_NOTE,
                     -1, failed);
  for (guint i = 0; i < self->n && f->iteration < 0; i++)
    if (failed[i])
      f->iteration = self->tapes[i].last_number;
  f->sentence = g_string_free (out, FALSE);
}

void
td__ranks_look_at_ends (TdRanks *self)
{
  find_ends (self);
  forget_gone_on (self);
  for (GList *l = self->order.head; l; l = l->next)
    if (((TdRung *)l->data)->n_here > 1)
      td__ranks_check_calls (self, l->data);
  look_at_waiting (self);
  look_at_notice (self);
  look_at_failing (self);
}
