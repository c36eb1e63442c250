/*
 * Who waits for whom: of each call what its ranks waited until the last had come, and which
 * rank that was due to. One that comes late because it waited itself passes it on. Then, step
 * by step, who waits less than the others do, which is whom they wait for.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "td-ranks-private.h"

#define MOST_DONE 24  /* the ladder's last calls */
#define MANY_CALLS 10 /* from which on waiting says something */
#define BLOCK_NS                                                                               \
  250000000u /* steps are put together: a busy machine keeps a rank back for some */
#define MANY_BLOCKS 4
#define WAITING_NS 250000000u /* in all, that all others wait more than the one */
#define WAITING_SHARE 0.1     /* and of the steps */

/* Student's t that chance exceeds once in 2000 times, by degrees of freedom, from 3 on. */
static const double certain[] = { 12.92, 8.61, 6.87, 5.96, 5.41, 5.04, 4.78, 4.59, 4.44,
                                  4.32,  4.22, 4.14, 4.07, 4.01, 3.97, 3.92, 3.88, 3.85 };

static guint64
offset_of (const TdRanks *self, guint place)
{
  return td_tape_reader_header (self->tapes[place].reader)->mono_ns
         - td_tape_reader_header (self->tapes[0].reader)->mono_ns;
}

/* On one machine: it has one clock. */
static gboolean
is_near (const TdRanks *self, guint a, guint b)
{
  const char *host = self->tapes[a].open.host;

  return *host && g_str_equal (host, self->tapes[b].open.host);
}

/* When its last wait in the call began, by its clock. */
static guint64
begin_of (const TdRungSide *side)
{
  return side->meet_leave_ns - MIN (side->meet_leave_ns, side->wait_ns);
}

/* Rank `place` waited for another from `from` on. What it waited in two calls at once counts
 * once. Returns how long that is. */
static guint64
add_waiting (TdRanks *self, guint place, guint64 from, guint64 ns)
{
  TdRankTape *tape = &self->tapes[place];
  guint64 to = from + ns;

  if (to <= tape->waited_until)
    return 0;
  ns = to - MAX (from, tape->waited_until);
  tape->waited_until = to;
  tape->open.waited_ns += ns;
  return ns;
}

/* Of what `place` waits for `late`, as much is due to another as `late` has waited for it in
 * this step since all met last. */
static void
blame (TdRanks *self, guint place, guint late, guint64 ns)
{
  TdRankTape *tape = &self->tapes[place], *other = &self->tapes[late];
  guint64 passed = other->behind_for == place ? 0 : MIN (ns, other->behind_ns);
  guint cause = passed > ns / 2 ? other->behind_for : late;

  self->tapes[other->behind_for].open.kept_ns += passed;
  other->open.kept_ns += ns - passed;
  if (tape->behind_for == cause || tape->behind_ns == 0)
    tape->behind_ns += ns;
  else if (ns <= tape->behind_ns)
    return;
  else
    tape->behind_ns = ns;
  tape->behind_for = cause;
}

/* All are there when the last has come, who waits least: as long as the call takes by itself.
 */
static void
take_meeting (TdRanks *self, const TdRung *rung)
{
  guint64 least = G_MAXUINT64;
  guint last = 0;

  for (guint i = 0; i < self->n; i++)
    if (rung->sides[i].here && rung->sides[i].wait_ns < least)
      {
        least = rung->sides[i].wait_ns;
        last = i;
      }
  for (guint i = 0; i < self->n; i++)
    {
      const TdRungSide *side = &rung->sides[i];
      guint64 ns;

      if (!side->here)
        continue;
      ns = add_waiting (self, i, begin_of (side), side->wait_ns - least);
      if (i != last && ns > 0)
        blame (self, i, last, ns);
      if (side->meets)
        self->tapes[i].open.waited_ns += least;
    }
  for (guint i = 0; i < self->n && rung->n_here == self->n; i++)
    self->tapes[i].behind_ns = 0;
}

/* Who gives something to all, or gets it, waits for some of them, who do not wait for each
 * other: each for the last of those who came before it left, as far as one clock tells. */
static void
take_rooted (TdRanks *self, const TdRung *rung, guint place)
{
  const TdRungSide *own = &rung->sides[place];
  guint64 begin = begin_of (own), last = begin;
  guint late = place;

  for (guint i = 0; i < self->n; i++)
    {
      guint64 came = rung->sides[i].enter_ns + offset_of (self, i) - offset_of (self, place);

      if (i == place || !rung->sides[i].here || !is_near (self, place, i)
          || (gint64)came <= (gint64)last || (gint64)came > (gint64)own->leave_ns)
        continue;
      last = came;
      late = i;
    }
  if (late != place)
    blame (self, place, late, add_waiting (self, place, begin, last - begin));
}

static void
take_call (TdRanks *self, const TdRung *rung)
{
  if (rung->n_here < 2)
    return;
  if (td__rung_is_meeting (self, rung))
    {
      take_meeting (self, rung);
      return;
    }
  for (guint i = 0; i < self->n; i++)
    {
      const TdRungSide *side = &rung->sides[i];

      if (side->here && side->left && side->waited && !side->meets && side->peer >= 0
          && !(side->flags & TD_TAPE_COLLECTIVE_FAILED))
        take_rooted (self, rung, i);
    }
}

/* ---- steps ---- */

static int
by_time (gconstpointer a, gconstpointer b, gpointer data)
{
  const TdRanks *self = data;
  const TdRung *x = *(const TdRung *const *)a, *y = *(const TdRung *const *)b;

  for (guint i = 0; i < self->n; i++)
    if (x->sides[i].here && y->sides[i].here)
      return x->sides[i].leave_ns < y->sides[i].leave_ns   ? -1
             : x->sides[i].leave_ns > y->sides[i].leave_ns ? 1
                                                           : 0;
  return 0;
}

/* What begins a run takes each rank another time, and is no pace. */
static gboolean
is_paced (const TdRanks *self, const TdRankRow *row)
{
  gboolean first = FALSE;

  for (guint i = 0; i < self->n; i++)
    {
      if (!row->of[i] || row->of[i]->is_partial || row->of[i]->is_live)
        return FALSE;
      first = first || self->tapes[i].first_update < 0
              || row->of[i]->number <= self->tapes[i].first_update;
    }
  return !first;
}

/* From the step before to this one; where tapes do not have that, of this one. */
static void
take_length (TdRankTape *tape, const TdRankIteration *it)
{
  guint64 end = MAX (it->start_ns + it->duration_ns, tape->last_wait_ns);

  tape->step_ns = it->number == tape->step_number + 1 && end > tape->step_end_ns
                      ? end - tape->step_end_ns
                      : it->duration_ns;
  tape->step_end_ns = end;
  tape->step_number = it->number;
}

/* Leads of steps that follow each other are not independent of each other. */
static void
end_block (TdRanks *self)
{
  for (guint i = 0; i < self->n; i++)
    {
      TdRankTape *tape = &self->tapes[i];

      tape->lead_sum += tape->lead;
      tape->lead_squares += tape->lead * tape->lead;
      tape->lead = 0;
    }
  self->n_blocks++;
  self->block_ns = 0;
}

static void
take_pace (TdRanks *self)
{
  guint64 all = 0, length = 0;

  for (guint i = 0; i < self->n; i++)
    {
      all += self->tapes[i].open.waited_ns - self->tapes[i].waited_before;
      length = MAX (length, self->tapes[i].step_ns);
    }
  for (guint i = 0; i < self->n; i++)
    {
      TdRankTape *tape = &self->tapes[i];
      guint64 ns = tape->open.waited_ns - tape->waited_before;

      tape->lead += (double)all / self->n - (double)ns;
      tape->paced_ns += ns;
    }
  self->paced_ns += length;
  self->n_paced++;
  self->block_ns += length;
  if (self->block_ns >= BLOCK_NS)
    end_block (self);
}

void
td__ranks_count_waiting (TdRanks *self, const TdRankRow *row)
{
  for (guint i = 0; i < self->n; i++)
    {
      self->tapes[i].waited_before = self->tapes[i].open.waited_ns;
      self->tapes[i].behind_ns = 0;
    }
  g_ptr_array_sort_with_data (self->fresh, by_time, self);
  for (guint i = 0; i < self->fresh->len; i++)
    take_call (self, g_ptr_array_index (self->fresh, i));
  g_ptr_array_set_size (self->fresh, 0);
  while (g_queue_get_length (self->done) > MOST_DONE)
    g_free (g_queue_pop_head (self->done));
  for (guint i = 0; i < self->n; i++)
    if (row->of[i])
      take_length (&self->tapes[i], row->of[i]);
  if (is_paced (self, row))
    take_pace (self);
}

/* ---- whom all wait for ---- */

/* Its lead is none of chance: it is much the same at all times. */
static gboolean
is_certain (const TdRanks *self, const TdRankTape *tape)
{
  double n = self->n_blocks, mean = tape->lead_sum / n,
         variance = (tape->lead_squares - tape->lead_sum * mean) / (n - 1);
  guint row = MIN (self->n_blocks - MANY_BLOCKS, G_N_ELEMENTS (certain) - 1);

  return mean > certain[row] * sqrt (MAX (variance, 0) / n);
}

/* By how much each of the others waits longer than this one does, at least. */
static guint64
find_lead (const TdRanks *self, guint place)
{
  guint64 least = G_MAXUINT64;

  for (guint i = 0; i < self->n; i++)
    if (i != place)
      least = MIN (least, self->tapes[i].paced_ns);
  return least - MIN (least, self->tapes[place].paced_ns);
}

void
td__ranks_look_for_straggler (TdRanks *self)
{
  g_autofree gboolean *set = g_new0 (gboolean, self->n);
  char each[TD_FORMAT_SIZE], all[TD_FORMAT_SIZE], run[TD_FORMAT_SIZE];
  guint first = 0;
  TdRanksFinding *f;
  guint64 lead;

  for (guint i = 1; i < self->n; i++)
    if (self->tapes[i].paced_ns < self->tapes[first].paced_ns)
      first = i;
  if (self->n < 2 || self->n_blocks < MANY_BLOCKS || self->n_calls < MANY_CALLS)
    return;
  lead = find_lead (self, first);
  if (lead < WAITING_NS || (double)lead < WAITING_SHARE * (double)self->paced_ns
      || !is_certain (self, &self->tapes[first]))
    return;
  set[first] = TRUE;
  f = td__ranks_add (self, TD_RANKS_STRAGGLER, TD_RANKS_NOTE, -1, set);
  f->sentence = g_strdup_printf (
      "rank %u is waited for most: each of the others waited %s an iteration longer than it "
      "did, which is %s of the %s that %u iterations took",
      self->tapes[first].open.rank, td_format_ns (each, lead / self->n_paced),
      td_format_ns (all, lead), td_format_ns (run, self->paced_ns), self->n_paced);
}
