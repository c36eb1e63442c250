/* Control of all ranks of a run together: see together.h.
 *
 * SPDX-License-Identifier: MIT */
#include "together.h"
#include "../recorder.h"
#include "alike.h"
#include "host-memory.h"
#include "json-line.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum
{
  SPINS = 200,
  NAP_NS = 50000,
  LATE_NS = 100000000,  /* a rank that waits or stands for so long is not waited for */
  MOST_NS = 1000000000, /* nor is any for longer */
  SLACK = 4 /* two events, which a rank may have begun before it sees what has come */
};

struct TdAgentRanks
{
  TdAgent *a;
  TdWhere where;
  TdAlike *all;
  TdWherePage *page;
  uint64_t n_moves, n_changes; /* that were taken */
  TdControlChange *done[TD_ALIKE_CHANGES];
  uint64_t after;           /* 1: it stands after an event, not before one */
  uint64_t until;           /* it runs to there and stands; 0: it does not */
  int for_rank;             /* that it does so for; -1: none */
  bool passes;              /* it does not stand there: the move that follows begins there */
  uint64_t loose;           /* calls for all ranks, after which nobody is waited for; + 1 */
  bool told_apart;          /* that ranks stand before different operations */
  TdControlPlace next;      /* of the event that comes */
  char path[TD_ALIKE_PATH]; /* of a layer that a step is relative to */
  char why[TD_ALIKE_TEXT + 40];
};

static uint64_t
place_now (const TdAgentRanks *t)
{
  return td__agent_place_at (t->a, t->a->recorder->n_events) - t->after;
}

/* --- where it is to stop --- */

static void
aim (TdAgentRanks *t, uint64_t until, int for_rank)
{
  t->until = until;
  t->for_rank = for_rank;
  t->passes = false;
  t->a->control.aims = until != 0;
  t->a->control.step = TD_STEP_NONE;
  td__control_look_again (&t->a->control);
}

/* Where all that run freely can stop: none has come there, as each looks before each event. The
 * first that asks says it for all. */
static uint64_t
agree_where (TdAgentRanks *t, TdAlikeMove *m)
{
  uint64_t until = atomic_load (&m->until), most = place_now (t), none = 0;

  if (until != 0)
    return until;
  for (int r = 0; r < t->where.n; r++)
    {
      const uint64_t begun = atomic_load (&td__where_page (&t->where, r)->begun);

      if (td__alike_takes_part (&t->where, r) && begun > most)
        most = begun;
    }
  most += SLACK;
  return atomic_compare_exchange_strong (&m->until, &none, most) ? most : none;
}

/* --- what has come, while it runs --- */

void
td__together_changes (TdAgentRanks *t)
{
  const char *text;

  while ((text = td__alike_change (t->all, t->n_changes + 1)) != NULL)
    {
      TdControlChange *done = td__xcalloc (1, sizeof *done);

      td__control_change (&t->a->control, text, done);
      t->done[t->n_changes++] = done;
    }
}

static bool
is_halt (const TdAlikeMove *m)
{
  return strncmp (m->text, TD_ALIKE_HALT, strlen (TD_ALIKE_HALT)) == 0;
}

/* These hold at once, whatever was to be done before. */
static bool
interrupts (const TdAgentRanks *t, const TdAlikeMove *m)
{
  return is_halt (m) ? m->rank != t->where.rank
                     : strcmp (m->text, "pause") == 0 || strcmp (m->text, "continue") == 0;
}

static void
interrupt (TdAgentRanks *t, TdAlikeMove *m)
{
  if (is_halt (m))
    {
      snprintf (t->why, sizeof t->why, "rank %d stopped: %s", m->rank,
                m->text + strlen (TD_ALIKE_HALT));
      aim (t, atomic_load (&m->until), m->rank);
    }
  else if (strcmp (m->text, "continue") == 0)
    aim (t, 0, -1);
  else if (t->until == 0) /* else it is to stand soon anyway */
    {
      snprintf (t->why, sizeof t->why, "pause");
      aim (t, agree_where (t, m), -1);
    }
}

/* The last that interrupts; 0: none does. */
static uint64_t
find_interrupt (const TdAgentRanks *t)
{
  uint64_t last = 0;
  bool lost;

  for (uint64_t k = t->n_moves + 1; k <= atomic_load (&t->all->n_moves); k++)
    {
      const TdAlikeMove *m = td__alike_move (t->all, k, &lost);

      if (m == NULL && !lost)
        break;
      if (m != NULL && interrupts (t, m))
        last = k;
    }
  return last;
}

/* A move is made from where one stands: until this one does it stays where it is.  One that
 * runs freely stops for it. */
static void
take_moves (TdAgentRanks *t)
{
  const uint64_t last = find_interrupt (t);
  TdAlikeMove *m;
  bool lost;

  if (last != 0 && (m = td__alike_move (t->all, last, &lost)) != NULL)
    {
      t->n_moves = last;
      interrupt (t, m);
    }
  while (t->until == 0 && t->a->control.step == TD_STEP_NONE
         && t->n_moves < atomic_load (&t->all->n_moves))
    {
      m = td__alike_move (t->all, t->n_moves + 1, &lost);
      if (m == NULL && !lost)
        return;
      if (m != NULL && !is_halt (m))
        {
          aim (t, agree_where (t, m), -1);
          t->passes = true;
          return;
        }
      t->n_moves++;
    }
}

void
td__together_news (TdAgentRanks *t)
{
  const uint64_t news = atomic_load (&t->all->news);

  if (news == t->a->news_seen)
    return;
  t->a->news_seen = news;
  td__together_changes (t);
  take_moves (t);
}

static bool
is_there (const TdAgentRanks *t)
{
  return t->until != 0 && t->until <= place_now (t);
}

void
td__together_before (TdAgentRanks *t, const TdControlPlace *place)
{
  t->next = *place;
  td__together_news (t);
}

const char *
td__together_why (const TdAgentRanks *t)
{
  return t->why;
}

int
td__together_for (const TdAgentRanks *t)
{
  return t->for_rank;
}

/* --- event by event --- */

static void
rest (int turn)
{
  const struct timespec nap = { 0, NAP_NS };

  if (turn < SPINS)
    sched_yield ();
  else
    nanosleep (&nap, NULL);
}

static bool
stays_away (const TdAgentRanks *t, const TdWherePage *p, int64_t began_ns)
{
  const int64_t now = td__where_now ();
  const bool waits = atomic_load (&p->waits) && now - p->since_ns >= LATE_NS;

  (void)t;
  return waits || (atomic_load (&p->standing) && now - began_ns >= LATE_NS)
         || now - began_ns >= MOST_NS;
}

/* False: it is not waited for any longer, nor is any until the next call for all ranks. */
static bool
wait_for (TdAgentRanks *t, int rank, uint64_t place)
{
  const TdWherePage *p = td__where_page (&t->where, rank);
  int64_t began_ns = 0;

  for (int turn = 0; td__alike_takes_part (&t->where, rank) && atomic_load (&p->checked) < place
                     && t->a->control.apart;
       turn++)
    {
      td__control_take (&t->a->control);
      td__together_news (t);
      if (is_there (t))
        return true;
      if (began_ns == 0)
        began_ns = td__where_now ();
      if (turn >= SPINS && stays_away (t, p, began_ns))
        return false;
      rest (turn);
    }
  return true;
}

/* --- changes of breakpoints --- */

void
td__together_answer (TdAgentRanks *t, const char *tag, uint64_t number)
{
  td__together_changes (t);
  if (number > 0 && number <= t->n_changes && t->done[number - 1] != NULL)
    td__control_answer_change (&t->a->control, tag, t->done[number - 1]);
  else
    td__control_answer_error (&t->a->control, tag, "no such change");
}

/* --- while it stands --- */

/* Others may have said it of this place already, or say it at the same time. */
static void
tell_others (TdAgentRanks *t, const char *reason)
{
  TdAlikeMove m = { .from = 0, .rank = t->where.rank };
  uint64_t after;

  atomic_store (&m.until, place_now (t));
  snprintf (m.text, sizeof m.text, TD_ALIKE_HALT "%.250s", reason);
  do
    {
      after = atomic_load (&t->all->n_moves);
      td__together_news (t);
      if (is_there (t))
        return;
    }
  while (!td__alike_put_move (t->all, after, &m));
}

void
td__together_stands (TdAgentRanks *t, const char *reason, const TdControlPlace *place, bool own,
                     bool after)
{
  t->after = after;
  if (own)
    tell_others (t, reason);
  aim (t, 0, -1);
  t->told_apart = false;
  snprintf (t->page->at_op, sizeof t->page->at_op, "%s", place->op);
  snprintf (t->page->at_where, sizeof t->page->at_where, "%.140s:%d",
            place->file != NULL ? place->file : "?", place->file != NULL ? place->line : 0);
  snprintf (t->page->at_path, sizeof t->page->at_path, "%s", place->path);
  t->page->at_iteration = td__engine.iteration;
  t->page->at_phase = place->phase;
  atomic_store (&t->page->begun, place_now (t));
  atomic_store (&t->page->standing, 1);
}

void
td__together_resumes (TdAgentRanks *t)
{
  atomic_store (&t->page->standing, 0);
  t->after = 0;
}

/* Has a rank that is further than where the move began made it already? */
static bool
has_made (const TdAgentRanks *t, const TdAlikeMove *m)
{
  const TdControl *c = &t->a->control;
  const bool runs_to = c->step == TD_STEP_BACKWARD || c->step == TD_STEP_UPDATE;

  return c->step != TD_STEP_NONE && m->from != 0 && place_now (t) > m->from
         && (td__control_step_ends (c, &t->next, td__engine.iteration)
             || (runs_to && td__engine.iteration == c->step_iteration
                 && t->next.phase
                        >= (c->step == TD_STEP_UPDATE ? TD_PHASE_UPDATE : TD_PHASE_BACKWARD)));
}

static TdControlOutcome
make_move (TdAgentRanks *t, const TdAlikeMove *m)
{
  TdControl *c = &t->a->control;
  TdControlPlace from = { .path = t->path, .phase = m->phase };
  int64_t iteration = m->iteration;

  if (m->from == 0 || m->from == place_now (t))
    c->kind->now (c, &from, &iteration);
  else
    {
      memcpy (t->path, m->path, sizeof t->path);
      from.path = t->path;
    }
  td__control_move (c, m->text, &from, iteration);
  if (!has_made (t, m))
    return TD_CONTROL_GO;
  c->step = TD_STEP_NONE;
  td__control_look_again (c);
  return TD_CONTROL_STAY;
}

/* All stand, at one place, before different operations: say so, once. */
static void
compare_places (TdAgentRanks *t)
{
  const TdWherePage *mine = t->page;
  char text[600];
  TdJsonLine line;
  TdJsonWriter *json;

  for (int r = 0; r < t->where.n && !t->told_apart; r++)
    {
      const TdWherePage *p = td__where_page (&t->where, r);

      if (r == t->where.rank || !td__alike_takes_part (&t->where, r)
          || !atomic_load (&p->standing)
          || atomic_load (&p->begun) != atomic_load (&mine->begun)
          || (strcmp (p->at_op, mine->at_op) == 0 && strcmp (p->at_where, mine->at_where) == 0))
        continue;
      snprintf (text, sizeof text,
                "rank %d stands at %.63s (%.159s) where rank %d stands at %.63s (%.159s): they "
                "run different graphs, and are level again at the next call for all ranks",
                t->where.rank, mine->at_op, mine->at_where, r, p->at_op, p->at_where);
      json = td__json_line_begin (&line, "!");
      td__json_member_string (json, "event", "notice");
      td__json_member_string (json, "text", text);
      td__control_send (t->a->control.fd, td__json_line_end (&line), -1);
      t->told_apart = true;
    }
}

/* There may be more than was taken. */
static TdControlOutcome
goes (TdAgentRanks *t)
{
  t->a->news_seen = UINT64_MAX;
  return TD_CONTROL_GO;
}

TdControlOutcome
td__together_look (TdAgentRanks *t)
{
  bool lost;

  t->a->news_seen = atomic_load (&t->all->news);
  td__together_changes (t);
  while (t->n_moves < atomic_load (&t->all->n_moves))
    {
      const TdAlikeMove *m = td__alike_move (t->all, t->n_moves + 1, &lost);

      if (m == NULL && !lost)
        break;
      if (m != NULL && !is_halt (m) && strcmp (m->text, "pause") != 0)
        {
          if (m->from > place_now (t)) /* this move is made from there */
            {
              aim (t, m->from, -1);
              t->passes = true;
              return goes (t);
            }
          t->n_moves++;
          if (make_move (t, m) == TD_CONTROL_GO)
            return goes (t);
          continue;
        }
      t->n_moves++;
    }
  compare_places (t);
  return TD_CONTROL_STAY;
}

/* Where the others are the move begins that they have begun. */
static TdTogetherWay
way_of (TdAgentRanks *t)
{
  const bool passes = t->passes;

  if (!is_there (t))
    return TD_TOGETHER_RUNS;
  if (!passes)
    return TD_TOGETHER_STANDS;
  snprintf (t->why, sizeof t->why, "step"); /* should there be none to begin */
  aim (t, 0, -1);
  return td__together_look (t) == TD_CONTROL_GO ? TD_TOGETHER_PASSES : TD_TOGETHER_STANDS;
}

TdTogetherWay
td__together_wait (TdAgentRanks *t)
{
  const uint64_t place = place_now (t), calls = place >> 32;

  atomic_store (&t->page->checked, place);
  if (t->a->control.apart && t->loose != calls + 1)
    {
      for (int r = 0; r < t->where.n && !is_there (t); r++)
        if (r != t->where.rank && !wait_for (t, r, place))
          {
            t->loose = calls + 1;
            break;
          }
      td__together_news (t); /* who stops has said so before it was seen to stand */
    }
  return way_of (t);
}

/* --- beginning and end --- */

TdAgentRanks *
td__together_new (TdAgent *a)
{
  TdAgentRanks *t;
  TdWhere where;
  int rank, n;

  if (!td__where_rank (&rank, &n) || getenv (TD_WHERE_VARIABLE) == NULL
      || !td__where_open (&where, rank, n, false))
    return NULL;
  t = td__xcalloc (1, sizeof *t);
  t->a = a;
  t->where = where;
  t->all = td__alike_of (&t->where);
  t->page = td__where_page (&t->where, rank);
  t->for_rank = -1;
  t->next.path = t->next.op = "";
  atomic_store (&t->page->takes_part, 1);
  a->news = &t->all->news;
  a->begun = &t->page->begun;
  a->news_seen = UINT64_MAX; /* what was said before it began is for it, too */
  return t;
}

void
td__together_free (TdAgentRanks *t)
{
  if (t == NULL)
    return;
  atomic_store (&t->page->takes_part, 0);
  td__where_close (&t->where);
  for (uint64_t i = 0; i < t->n_changes; i++)
    free (t->done[i]);
  free (t);
}
