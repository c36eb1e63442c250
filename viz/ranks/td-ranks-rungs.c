/*
 * Calls that ranks make together: each a rung, with who came when and who left. Rungs that all
 * have left are done; those that are left over at the end say who waits for whom. What meetings
 * say of clocks is gathered meanwhile.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"

#define MOST_OPEN 4096        /* of tapes whose iterations are thinned differently */
#define MOST_TICKS_NS 1000000 /* that counting ticks makes of one clock */

guint
td__rung_hash (gconstpointer data)
{
  const TdRung *rung = data;
  guint64 h = rung->comm * 0x9e3779b97f4a7c15u ^ rung->seq;

  return (guint)(h ^ h >> 32);
}

gboolean
td__rung_equal (gconstpointer a, gconstpointer b)
{
  const TdRung *x = a, *y = b;

  return x->comm == y->comm && x->seq == y->seq;
}

/* Letters are of two ranks, which count them each for itself. */
static gboolean
is_letter (const TdTapeCollective *w)
{
  return w->wait == TD_TAPE_WAIT_SEND || w->wait == TD_TAPE_WAIT_RECEIVE;
}

/* Each of its ranks needs what all bring. */
static gboolean
needs_all (const TdTapeCollective *w)
{
  return w->peer < 0
         && (w->wait == TD_TAPE_WAIT_SUM || w->wait == TD_TAPE_WAIT_GATHER
             || w->wait == TD_TAPE_WAIT_EXCHANGE);
}

/* Where a call has a meeting, what runs behind other work is no part of it. */
static gboolean
is_apart (const TdRung *rung, guint place, const TdTapeCollective *w)
{
  return (w->flags & TD_TAPE_COLLECTIVE_BEHIND) && rung && rung->sides[place].meets;
}

/* It came when it sent, and went on at once. */
static void
take_behind (const TdTapeCollective *w, TdRungSide *side)
{
  side->flags |= w->flags & (guint8)~TD_TAPE_COLLECTIVE_WAITS;
  side->bytes += w->bytes;
  side->enter_ns = MIN (side->enter_ns, w->start_ns);
  if (side->waited)
    return;
  side->left = TRUE;
  side->leave_ns = w->start_ns + w->duration_ns;
}

static void
take_wait (const TdTapeCollective *w, TdRungSide *side)
{
  guint64 end = w->start_ns + w->duration_ns;
  gboolean waits = (w->flags & TD_TAPE_COLLECTIVE_WAITS) != 0;

  if (w->wait == TD_TAPE_WAIT_MEET)
    {
      side->meets = TRUE;
      side->meet_enter_ns = w->start_ns;
      side->meet_leave_ns = end;
      side->wait_ns = w->duration_ns;
      side->met = !waits;
    }
  else if (!side->meets)
    {
      side->meet_enter_ns = side->enter_ns;
      side->meet_leave_ns = end;
      side->wait_ns += w->duration_ns;
      side->met = !waits && needs_all (w);
    }
  side->waited = TRUE;
  side->flags |= w->flags;
  side->bytes += w->bytes;
  side->left = !waits;
  side->leave_ns = waits ? w->start_ns : end;
}

static void
take_side (TdRanks *self, guint place, const TdRankIteration *it, const TdTapeCollective *w,
           TdRung *rung)
{
  TdRungSide *side = &rung->sides[place];

  if (!side->here)
    {
      side->here = TRUE;
      rung->n_here++;
      side->iteration = it->number;
      side->enter_ns = w->start_ns;
      side->call = td__ranks_text (self, place, w->call);
      side->site = w->site;
      side->rank = (gint32)w->rank;
      side->dtype = w->dtype;
    }
  side->peer = w->peer;
  side->wait = w->wait;
  if (w->flags & TD_TAPE_COLLECTIVE_BEHIND)
    {
      rung->behind = TRUE;
      take_behind (w, side);
    }
  else
    take_wait (w, side);
}

static TdRung *
rung_new (const TdRanks *self, const TdTapeCollective *w)
{
  TdRung *rung = g_malloc0 (sizeof *rung + self->n * sizeof *rung->sides);

  rung->comm = w->comm;
  rung->seq = w->seq;
  rung->size = w->size;
  rung->whole = (w->flags & TD_TAPE_COLLECTIVE_WHOLE) != 0;
  return rung;
}

static gboolean
all_left (const TdRanks *self, const TdRung *rung)
{
  if (rung->n_here < MIN (rung->size, self->n))
    return FALSE;
  for (guint i = 0; i < self->n; i++)
    if (rung->sides[i].here && !rung->sides[i].left)
      return FALSE;
  return TRUE;
}

/* ---- who is in a communicator ---- */

static void
take_member (TdRanks *self, guint place, const TdTapeCollective *w)
{
  TdRankGroup *group = g_hash_table_lookup (self->groups, &w->comm);

  if (w->size > self->n_started || w->rank >= w->size)
    return;
  if (!group)
    {
      group = g_new0 (TdRankGroup, 1);
      group->size = w->size;
      group->places = g_new (gint, w->size);
      for (guint i = 0; i < w->size; i++)
        group->places[i] = -1;
      g_hash_table_insert (self->groups, g_memdup2 (&w->comm, sizeof w->comm), group);
    }
  if (w->rank < group->size)
    group->places[w->rank] = (gint)place;
}

/* The same call among those that were taken in, of whole tapes; NULL: all have left it long
 * ago, or no tape was looked at. */
static const TdRung *
find_whole (const TdRanks *self, const TdRung *rung)
{
  const TdRung *found = g_hash_table_lookup (self->rungs, rung);

  for (GList *l = self->done->tail; !found && l; l = l->prev)
    if (td__rung_equal (l->data, rung))
      found = l->data;
  return found;
}

void
td__ranks_list_missing (const TdRanks *self, const TdRung *rung, gboolean *missing)
{
  const TdRankGroup *group = g_hash_table_lookup (self->groups, &rung->comm);

  memset (missing, 0, self->n * sizeof *missing);
  if (self->n_calls > 0 && !find_whole (self, rung)) /* all came, some in another iteration */
    return;
  for (guint i = 0; i < self->n; i++)
    missing[i] = rung->whole && !rung->sides[i].here;
  for (guint k = 0; !rung->whole && group && k < group->size; k++)
    if (group->places[k] >= 0)
      missing[group->places[k]] = !rung->sides[group->places[k]].here;
}

/* ---- clocks ---- */

/* Nobody leaves a meeting before all have come: each of two ranks came before the other left.
 */
static void
bound_clock (TdRankTape *tape, const TdRungSide *first, const TdRungSide *own)
{
  tape->least_offset
      = MAX (tape->least_offset, (gint64)(first->meet_enter_ns - own->meet_leave_ns));
  tape->most_offset
      = MIN (tape->most_offset, (gint64)(first->meet_leave_ns - own->meet_enter_ns));
}

/* Without a meeting of its own each of the calls brings arrays, too, where there are any. */
static gboolean
is_meeting (const TdRungSide *side)
{
  return side->met && (side->meets || side->bytes > 0)
         && !(side->flags & TD_TAPE_COLLECTIVE_FAILED);
}

/* Where a meeting failed, somebody may have left it early. */
gboolean
td__rung_is_meeting (const TdRanks *self, const TdRung *rung)
{
  for (guint i = 0; i < self->n; i++)
    if (rung->sides[i].here && !is_meeting (&rung->sides[i]))
      return FALSE;
  return TRUE;
}

static void
bound_clocks (TdRanks *self, const TdRung *rung)
{
  if (!rung->sides[0].here || !td__rung_is_meeting (self, rung))
    return;
  for (guint i = 1; i < self->n; i++)
    if (rung->sides[i].here)
      bound_clock (&self->tapes[i], &rung->sides[0], &rung->sides[i]);
}

/* Of those who came before it left, when the last did. In a call of which one rank is the root
 * it waits for some, and not for who comes when it has gone: which those are is the library's.
 */
gboolean
td__rung_find_last (const TdRanks *self, const TdRung *rung, guint place, gint64 *last_ns)
{
  const TdRungSide *own = &rung->sides[place];
  gint64 left = (gint64)own->leave_ns + self->tapes[place].open.offset_ns;

  *last_ns = G_MININT64;
  if (own->peer < 0 && rung->n_here < MIN (rung->size, self->n))
    return FALSE;
  for (guint i = 0; i < self->n; i++)
    {
      const TdRungSide *side = &rung->sides[i];
      gint64 came = (gint64)side->enter_ns + self->tapes[i].open.offset_ns;

      if (!side->here || i == place)
        continue;
      if (!self->tapes[i].open.has_offset)
        return FALSE;
      if (own->peer < 0 || came <= left)
        *last_ns = MAX (*last_ns, came);
    }
  return *last_ns != G_MININT64;
}

/* One machine has one such clock, which its tapes' beginnings were read from; times between are
 * counted in ticks, whose length is not known as well. Names of machines may be the same by
 * chance, so meetings have the last word: `error` is by how much they contradict. */
static gboolean
is_one_clock (const TdRankTape *first, const TdRankTape *tape, gint64 *offset, guint64 *error)
{
  gint64 away;

  *offset = (gint64)(td_tape_reader_header (tape->reader)->mono_ns
                     - td_tape_reader_header (first->reader)->mono_ns);
  away = tape->least_offset == G_MININT64
             ? 0
             : MAX (tape->least_offset - *offset, *offset - tape->most_offset);
  *error = (guint64)MAX (away, 0);
  return *tape->open.host && g_str_equal (tape->open.host, first->open.host)
         && away <= MOST_TICKS_NS;
}

/* Clocks of two machines drift, so that of a long run no one offset may be within all bounds:
 * then the middle is wrong by at most half of what they contradict each other. */
void
td__ranks_align_clocks (TdRanks *self)
{
  for (guint i = 0; i < self->n; i++)
    {
      TdRankTape *tape = &self->tapes[i];
      TdRank *rank = &tape->open;
      gint64 width;

      rank->has_offset = TRUE;
      rank->one_clock
          = i == 0 || is_one_clock (&self->tapes[0], tape, &rank->offset_ns, &rank->error_ns);
      if (rank->one_clock)
        continue;
      rank->offset_ns = 0;
      rank->error_ns = 0;
      rank->has_offset = tape->least_offset != G_MININT64;
      if (!rank->has_offset)
        continue;
      width = tape->most_offset - tape->least_offset;
      rank->offset_ns = tape->least_offset + width / 2;
      rank->error_ns = (guint64)(ABS (width) + 1) / 2;
    }
}

/* ---- different calls ---- */

/* "rank 0 in td_comm_bcast at a.c:3, ranks 1 and 2 in td_comm_allreduce at a.c:5". */
static char *
dup_calls (const TdRanks *self, const TdRung *rung)
{
  GString *out = g_string_new (NULL);
  g_autofree gboolean *said = g_new0 (gboolean, self->n), *same = g_new0 (gboolean, self->n);

  for (guint i = 0; i < self->n; i++)
    {
      g_autofree char *site = NULL, *names = NULL;

      if (!rung->sides[i].here || said[i])
        continue;
      site = td__ranks_dup_site (self, i, rung->sides[i].site);
      for (guint j = 0; j < self->n; j++)
        {
          g_autofree char *other = td__ranks_dup_site (self, j, rung->sides[j].site);

          same[j] = rung->sides[j].here && rung->sides[j].call == rung->sides[i].call
                    && g_strcmp0 (site, other) == 0;
          said[j] = said[j] || same[j];
        }
      names = td__ranks_dup_names (self, same);
      g_string_append_printf (out, "%s%s in %s%s%s", out->len ? ", " : "", names,
                              rung->sides[i].call, site ? " at " : "", site ? site : "");
    }
  return g_string_free (out, FALSE);
}

/* What the engine said of it, which is the same on all: behind who says it. Owner: the caller.
 * NULL: nothing. */
static char *
dup_error (const TdRanks *self, const TdRung *rung)
{
  for (guint i = 0; i < self->n; i++)
    for (guint k = 0;
         rung->sides[i].here && k < td_tape_reader_n_notices (self->tapes[i].reader); k++)
      {
        const TdTapeNotice *notice = td_tape_reader_notice (self->tapes[i].reader, k);
        const char *text = td_tape_reader_string (self->tapes[i].reader, notice->text);
        g_autofree char *begin = NULL;

        if (notice->kind != TD_TAPE_NOTICE_ERROR
            || (gint64)notice->iteration != rung->sides[i].iteration || *text == '\0')
          continue;
        begin = g_strdup_printf ("%s: rank %d of %u: ", rung->sides[i].call,
                                 rung->sides[i].rank, rung->size);
        return g_strdup (g_str_has_prefix (text, begin) ? text + strlen (begin) : text);
      }
  return NULL;
}

/* "; rank 1 ended with status 3": that it came to td_finish was its own exit, as a rank that
 * only fails with the others ends with 1. Owner: the caller. */
static char *
dup_exits (const TdRanks *self, const TdRung *rung)
{
  GString *out = g_string_new (NULL);

  for (guint i = 0; i < self->n; i++)
    {
      const TdTapeEnd *end = td_tape_reader_end (self->tapes[i].reader);

      if (rung->sides[i].here && end && end->signal == 0 && end->status > 1
          && g_str_equal (rung->sides[i].call, "td_finish"))
        g_string_append_printf (out, "; rank %u ended with status %d", self->tapes[i].open.rank,
                                end->status);
    }
  return g_string_free (out, FALSE);
}

/* PyTorch's join: a rank without examples makes the calls of the others, by names of its own.
 */
gboolean
td__rung_side_is_shadow (const TdRungSide *side)
{
  return g_str_has_prefix (side->call, "join: ");
}

/* Most ranks agree, and not with rank 0: the finding is of that one. */
static void
take_first_alone (const TdRanks *self, TdRanksFinding *f)
{
  if (self->tapes[0].open.rank != 0)
    return;
  f->n_ranks = 1;
  f->ranks[0] = 0;
}

/* ---- lengths ---- */

/* Of a call in which all must bring as much, what one brings; 0: it is not known, or none of
 * these. Calls of the engine look at that themselves. */
static guint64
bytes_of (const TdRanks *self, const TdRung *rung, guint place)
{
  const TdRungSide *side = &rung->sides[place];

  return side->here && td__ranks_is_of_framework (self, place)
                 && !td__rung_side_is_shadow (side)
                 && (side->wait == TD_TAPE_WAIT_SUM || side->wait == TD_TAPE_WAIT_BCAST)
                 && g_str_has_suffix (side->call, "all_reduce")
             ? side->bytes
             : 0;
}

static void
say_lengths (TdRanks *self, const TdRung *rung, const TdRankVote *vote)
{
  g_autofree char *calls = dup_calls (self, rung),
                  *odd = td__ranks_dup_names_do (self, vote->odd, " brings", " bring");
  GString *out = g_string_new (NULL);
  TdRanksFinding *f = NULL;

  for (guint i = 0; i < self->n; i++)
    {
      if (vote->classes[i] == TD_RANKS_NO_CLASS)
        continue;
      g_string_append_printf (out, "%s%" G_GUINT64_FORMAT " bytes on rank %u",
                              out->len ? ", " : "", rung->sides[i].bytes,
                              self->tapes[i].open.rank);
      if (!vote->odd[i] || f)
        continue;
      f = td__ranks_add (self, TD_RANKS_MISMATCH, TD_RANKS_ERROR, rung->sides[i].iteration,
                         vote->odd);
      f->site = td__ranks_dup_site (self, i, rung->sides[i].site);
    }
  f->sentence = g_strdup_printf (
      "%s %s to a sum in iteration %" G_GINT64_FORMAT " (call %" G_GUINT64_FORMAT "): %s; %s",
      odd, vote->has_majority ? "another length than the others" : "different lengths",
      f->iteration, rung->seq, out->str, calls);
  f->advice = g_strdup ("All ranks must bring as many elements, of one type");
  g_string_free (out, TRUE);
}

/* All are in the call of one name, and do not bring as much: of what comes nobody knows what it
 * is. */
static void
check_lengths (TdRanks *self, const TdRung *rung)
{
  g_autofree guint *classes = g_new (guint, self->n);
  TdRankVote vote;
  guint n = 0;

  for (guint i = 0; i < self->n; i++)
    {
      guint64 bytes = bytes_of (self, rung, i);

      classes[i] = TD_RANKS_NO_CLASS;
      for (guint j = 0; bytes > 0 && j < i; j++)
        if (classes[j] != TD_RANKS_NO_CLASS && rung->sides[j].bytes == bytes)
          classes[i] = classes[j];
      if (bytes > 0 && classes[i] == TD_RANKS_NO_CLASS)
        classes[i] = n++;
    }
  if (n < 2)
    return;
  td__rank_vote_init (&vote, classes, self->n);
  say_lengths (self, rung, &vote);
  td__rank_vote_clear (&vote);
}

/* The first only: once ranks have parted, nothing fits. */
void
td__ranks_check_calls (TdRanks *self, const TdRung *rung)
{
  g_autofree guint *classes = g_new (guint, self->n);
  TdRanksFinding *f;
  TdRankVote vote;
  gboolean failed = FALSE;
  gint first = -1;
  guint n = 0;

  for (guint i = 0; i < self->n; i++)
    {
      classes[i] = TD_RANKS_NO_CLASS;
      failed = failed || (rung->sides[i].flags & TD_TAPE_COLLECTIVE_FAILED);
      if (rung->sides[i].here && td__rung_side_is_shadow (&rung->sides[i]))
        continue;
      for (guint j = 0; rung->sides[i].here && j < i; j++)
        if (rung->sides[j].here && rung->sides[j].call == rung->sides[i].call)
          classes[i] = classes[j];
      if (rung->sides[i].here && classes[i] == TD_RANKS_NO_CLASS)
        classes[i] = n++;
      first = first < 0 && rung->sides[i].here ? (gint)i : first;
    }
  if (td__ranks_has (self, TD_RANKS_MISMATCH))
    return;
  if (n < 2 && !failed)
    {
      check_lengths (self, rung);
      return;
    }
  td__rank_vote_init (&vote, classes, self->n);
  for (guint i = 0; n < 2 && i < self->n; i++)
    vote.odd[i] = rung->sides[i].here;
  f = td__ranks_add (self, TD_RANKS_MISMATCH, TD_RANKS_ERROR, rung->sides[first].iteration,
                     vote.odd);
  for (guint i = 0; i < self->n && !f->site; i++)
    if (vote.odd[i])
      f->site = td__ranks_dup_site (self, i, rung->sides[i].site);
  g_autofree char *calls = dup_calls (self, rung), *exits = dup_exits (self, rung), *odd = NULL,
                  *why = NULL;
  odd = td__ranks_dup_names_do (self, vote.odd, " is", " are");
  if (n < 2)
    {
      why = dup_error (self, rung);
      if (why && strstr (why, "rank 0 is the odd one"))
        take_first_alone (self, f);
      f->sentence = g_strdup_printf (
          "call %" G_GUINT64_FORMAT
          " failed on all that were in it, in iteration %" G_GINT64_FORMAT ": %s%s%s",
          rung->seq, f->iteration, calls, why ? "; " : "", why ? why : "");
    }
  else
    f->sentence = g_strdup_printf (
        "%s in %s in iteration %" G_GINT64_FORMAT " (call %" G_GUINT64_FORMAT "): %s%s", odd,
        vote.has_majority ? "another call than the others" : "different calls", f->iteration,
        rung->seq, calls, exits);
  f->advice = g_strdup (n < 2 ? "All ranks must make it with the same shape, dtype, root and "
                                "settings, and be able to"
                              : "All ranks must make the same calls in the same order");
  td__rank_vote_clear (&vote);
}

/* ---- taking them in ---- */

/* In the order of calls, though one that ran behind others is done after them. */
static void
push_done (TdRanks *self, TdRung *rung)
{
  GList *at = self->done->tail;

  while (at && ((const TdRung *)at->data)->comm == rung->comm
         && ((const TdRung *)at->data)->seq > rung->seq)
    at = at->prev;
  if (at)
    g_queue_insert_after (self->done, at, rung);
  else
    g_queue_push_head (self->done, rung);
}

static void
finish (TdRanks *self, TdRung *rung)
{
  bound_clocks (self, rung);
  self->n_calls++;
  g_hash_table_steal (self->rungs, rung);
  g_queue_unlink (&self->order, &rung->link);
  push_done (self, rung);
  g_ptr_array_add (self->fresh, rung);
}

static TdRung *
find_rung (TdRanks *self, const TdTapeCollective *w)
{
  TdRung wanted = { .comm = w->comm, .seq = w->seq };
  TdRung *rung = g_hash_table_lookup (self->rungs, &wanted);

  if (rung)
    return rung;
  rung = rung_new (self, w);
  g_hash_table_add (self->rungs, rung);
  rung->link.data = rung;
  g_queue_push_tail_link (&self->order, &rung->link);
  if (g_queue_get_length (&self->order) > MOST_OPEN)
    g_hash_table_remove (self->rungs, g_queue_pop_head_link (&self->order)->data);
  return rung;
}

/* A call ends where the next one begins, unless some of it runs behind that. */
static void
end_call (TdRanks *self, TdRung *rung)
{
  if (!rung || rung->behind || !all_left (self, rung))
    return;
  td__ranks_check_calls (self, rung);
  finish (self, rung);
}

/* Those end with the iteration in which they are taken. */
static void
end_behind (TdRanks *self, const TdRankIteration *it)
{
  for (guint i = 0; i < it->n_waits; i++)
    {
      TdRung wanted = { .comm = it->waits[i].comm, .seq = it->waits[i].seq };
      TdRung *rung = it->waits[i].flags & TD_TAPE_COLLECTIVE_BEHIND
                         ? g_hash_table_lookup (self->rungs, &wanted)
                         : NULL;

      if (!rung || !rung->behind || !all_left (self, rung))
        continue;
      td__ranks_check_calls (self, rung);
      finish (self, rung);
    }
}

static gboolean
is_of (const TdRung *rung, const TdTapeCollective *w)
{
  return rung->comm == w->comm && rung->seq == w->seq;
}

static void
take_last (TdRankTape *tape, const TdRankIteration *it, const TdTapeCollective *w)
{
  if (!tape->has_last)
    tape->first_wait_ns = w->start_ns;
  tape->last_wait_ns = w->start_ns + w->duration_ns;
  tape->last = *w;
  tape->has_last = TRUE;
  tape->is_stuck = (w->flags & TD_TAPE_COLLECTIVE_WAITS) != 0;
  if (!tape->is_stuck)
    return;
  tape->stuck = *w;
  tape->stuck_iteration = it->number;
}

void
td__ranks_take_waits (TdRanks *self, guint place, const TdRankIteration *it)
{
  TdRankTape *tape = &self->tapes[place];
  TdRung *rung = NULL;

  for (guint i = 0; i < it->n_waits; i++)
    {
      const TdTapeCollective *w = &it->waits[i];

      if (w->wait >= TD_TAPE_N_WAITS)
        continue;
      self->n_waits[w->wait]++;
      if (!(w->flags & TD_TAPE_COLLECTIVE_BEHIND)) /* there nobody waited */
        take_last (tape, it, w);
      if (is_letter (w))
        continue;
      if (is_apart (rung && is_of (rung, w) ? rung : NULL, place, w))
        continue;
      take_member (self, place, w);
      if (!rung || !is_of (rung, w))
        {
          end_call (self, rung);
          rung = find_rung (self, w);
        }
      take_side (self, place, it, w, rung);
    }
  end_call (self, rung);
  end_behind (self, it);
  tape->last_number = it->number;
}

/* Ranks whose calls do not fit any more come to one in another iteration than others. */
static void
complete (const TdRanks *self, TdRung *rung)
{
  const TdRung *whole = find_whole (self, rung);

  for (guint i = 0; whole && i < self->n; i++)
    if (!rung->sides[i].here && whole->sides[i].here)
      {
        rung->sides[i] = whole->sides[i];
        rung->n_here++;
      }
}

GPtrArray *
td__ranks_rungs_of (TdRanks *self, const TdRankRow *row)
{
  GPtrArray *rungs = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GHashTable) by_call = g_hash_table_new (td__rung_hash, td__rung_equal);

  for (guint i = 0; i < self->n; i++)
    for (guint k = 0; row->of[i] && k < row->of[i]->n_waits; k++)
      {
        const TdTapeCollective *w = &row->of[i]->waits[k];
        TdRung wanted = { .comm = w->comm, .seq = w->seq }, *rung;

        if (is_letter (w) || w->wait >= TD_TAPE_N_WAITS)
          continue;
        rung = g_hash_table_lookup (by_call, &wanted);
        if (is_apart (rung, i, w))
          continue;
        if (!rung)
          {
            rung = rung_new (self, w);
            g_ptr_array_add (rungs, rung);
            g_hash_table_add (by_call, rung);
          }
        take_side (self, i, row->of[i], w, rung);
      }
  for (guint i = 0; i < rungs->len; i++)
    complete (self, g_ptr_array_index (rungs, i));
  return rungs;
}
