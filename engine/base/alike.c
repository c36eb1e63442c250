/* Commands that the ranks of one machine take alike: see alike.h.
 *
 * SPDX-License-Identifier: MIT */
#include "alike.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof (TdAlike) <= TD_WHERE_ALIKE, "what ranks share is full");

TdAlike *
td__alike_of (const TdWhere *w)
{
  return w->pages != NULL ? (TdAlike *)(void *)(w->pages + (size_t)w->n * TD_WHERE_PAGE) : NULL;
}

bool
td__alike_put_move (TdAlike *t, uint64_t after, const TdAlikeMove *move)
{
  TdAlikeMove *to = &t->moves[after % TD_ALIKE_MOVES];

  if (!atomic_compare_exchange_strong (&t->n_moves, &after, after + 1))
    return false;
  atomic_store (&to->whole, 0);
  atomic_store (&to->until, atomic_load (&move->until));
  to->from = move->from;
  to->iteration = move->iteration;
  to->phase = move->phase;
  to->rank = move->rank;
  memcpy (to->path, move->path, sizeof to->path);
  memcpy (to->text, move->text, sizeof to->text);
  atomic_store (&to->whole, after + 1);
  atomic_fetch_add (&t->news, 1);
  return true;
}

TdAlikeMove *
td__alike_move (TdAlike *t, uint64_t number, bool *lost)
{
  TdAlikeMove *m = &t->moves[(number - 1) % TD_ALIKE_MOVES];

  *lost = atomic_load (&t->n_moves) >= number + TD_ALIKE_MOVES;
  return !*lost && atomic_load (&m->whole) == number ? m : NULL;
}

bool
td__alike_put_change (TdAlike *t, const char *text, uint64_t *number)
{
  uint64_t n = atomic_load (&t->n_changes);
  TdAlikeChange *to;

  do
    if (n >= TD_ALIKE_CHANGES)
      return false;
  while (!atomic_compare_exchange_strong (&t->n_changes, &n, n + 1));
  to = &t->changes[n];
  snprintf (to->text, sizeof to->text, "%s", text);
  atomic_store (&to->whole, n + 1);
  atomic_fetch_add (&t->news, 1);
  *number = n + 1;
  return true;
}

const char *
td__alike_change (TdAlike *t, uint64_t number)
{
  const TdAlikeChange *c = &t->changes[number - 1];

  return number <= TD_ALIKE_CHANGES && atomic_load (&c->whole) == number ? c->text : NULL;
}

bool
td__alike_takes_part (const TdWhere *w, int rank)
{
  const TdWherePage *p = td__where_page (w, rank);

  return atomic_load (&p->takes_part) && !atomic_load (&p->ended) && td__where_is_here (w, p);
}

static const char *const moves[]
    = { "pause",    "continue",       "step-op",     "step-into",       "step-over",
        "step-out", "next-iteration", "run-to loss", "run-to backward", "run-to update" };

bool
td__alike_is_move (const char *text)
{
  for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
    if (strcmp (text, moves[i]) == 0)
      return true;
  return false;
}

static bool
stands (const TdWhere *w, int rank)
{
  return td__alike_takes_part (w, rank) && atomic_load (&td__where_page (w, rank)->standing);
}

/* NULL: none stands. */
static const TdWherePage *
find_from (const TdWhere *w)
{
  const TdWherePage *from = NULL;

  if (stands (w, w->rank))
    return td__where_page (w, w->rank);
  for (int r = 0; r < w->n; r++)
    {
      const TdWherePage *p = td__where_page (w, r);

      if (stands (w, r)
          && (from == NULL || atomic_load (&p->begun) < atomic_load (&from->begun)))
        from = p;
    }
  return from;
}

void
td__alike_tell (const TdWhere *w, const char *text)
{
  const TdWherePage *from = find_from (w);
  TdAlikeMove m = { .rank = w->rank };
  TdAlike *all = td__alike_of (w);

  if (from != NULL)
    {
      m.from = atomic_load (&from->begun);
      m.iteration = from->at_iteration;
      m.phase = from->at_phase;
      memcpy (m.path, from->at_path, sizeof m.path);
    }
  snprintf (m.text, sizeof m.text, "%s", text);
  while (!td__alike_put_move (all, atomic_load (&all->n_moves), &m))
    ;
}
