/* Ranks that train on with different numbers: found by the sums that who records is told of.
 *
 * Each update's meeting has the sum of all sums of the update before.  Where those differ, and
 * only then, ranks give each other the list, and look for the first array in it.  Nothing but
 * sums is sent, and nothing is changed: training goes on as it would without.
 *
 * SPDX-License-Identifier: MIT */
#include "host-memory.h"
#include "sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  NAME = 320
};

bool
td__roots_differ (const TdComm *comm)
{
  bool differ = false;

  for (int r = 0; r < comm->size; r++)
    {
      const uint64_t *root = comm->all[r].sums;

      if (root[0] == 0 && root[1] == 0)
        return false;
      differ |= memcmp (root, comm->all[0].sums, sizeof comm->all[0].sums) != 0;
    }
  return differ;
}

/* The name of sum i: of the list's order. */
static const char *
name_of (const TdCommon *all, const TdOpt *opt, int i, char *name)
{
  int n = 0;

  for (int k = 0; k < all->n; k++)
    if (all->of[k].param->kind != TD_PARAM_PERSISTENT && all->of[k].param->var != NULL
        && n++ == i)
      {
        snprintf (name, NAME, "%.300s", all->of[k].key);
        return name;
      }
  for (int k = 0; k < opt->n_slots; k++)
    {
      const TdOptSlot *slot = &opt->slots[k];

      for (int s = 0; s <= TD_OPT_MAX_STATES; s++)
        {
          const bool master = s == TD_OPT_MAX_STATES;

          if ((master ? slot->master : slot->states[s]) == NULL || n++ != i)
            continue;
          snprintf (name, NAME, "%.280s/%.30s", slot->key,
                    master ? "master" : opt->cls->states[s]);
          return name;
        }
    }
  snprintf (name, NAME, "an array");
  return name;
}

typedef uint64_t Sum[2];

static bool
same (const Sum *all, int n, int i, int a, int b)
{
  return memcmp (all[a * n + i], all[b * n + i], sizeof (Sum)) == 0;
}

/* The first array that is not the same on all; n: none is. */
static int
first_difference (const Sum *all, int n, int n_ranks)
{
  for (int i = 0; i < n; i++)
    for (int r = 1; r < n_ranks; r++)
      if (!same (all, n, i, 0, r))
        return i;
  return n;
}

/* A rank that has the array as most have it. */
static int
usual_rank (const Sum *all, int n, int i, int n_ranks)
{
  int best = 0, most = 0;

  for (int a = 0; a < n_ranks; a++)
    {
      int count = 0;

      for (int b = 0; b < n_ranks; b++)
        count += same (all, n, i, a, b);
      if (count > most)
        {
          most = count;
          best = a;
        }
    }
  return best;
}

/* "rank 2", "ranks 1, 3 and 4": those that have it otherwise. */
static void
put_ranks (const Sum *all, int n, int i, int n_ranks, char *text, size_t size)
{
  const int usual = usual_rank (all, n, i, n_ranks);
  int n_other = 0, n_put = 0;
  size_t at;

  for (int r = 0; r < n_ranks; r++)
    n_other += !same (all, n, i, usual, r);
  at = (size_t)snprintf (text, size, n_other == 1 ? "rank" : "ranks");
  for (int r = 0; r < n_ranks && at < size; r++)
    if (!same (all, n, i, usual, r))
      {
        const char *before = n_put == 0 ? " " : n_put == n_other - 1 ? " and " : ", ";

        at += (size_t)snprintf (text + at, size - at, "%s%d", before, r);
        n_put++;
      }
  if (at < size)
    snprintf (text + at, size - at, " of %d", n_ranks);
}

static void
say (const TdComm *comm, const Sum *all, int n, int i, const char *name, int64_t t,
     const TdSite *site)
{
  TdObserver *o = td__engine.observer;
  char ranks[200], line[700];

  put_ranks (all, n, i, comm->size, ranks, sizeof ranks);
  site = site != NULL ? site : td__engine.site;
  snprintf (
      line, sizeof line,
      "ranks have parted: after update %lld %.300s of %.190s is not that of the others%s; "
      "tapedeck ranks says more",
      (long long)t, name, ranks,
      comm->size == 2 ? " (with two ranks, either may be wrong)" : "");
  if (o != NULL && o->notice != NULL)
    o->notice (o, line);
  if (comm->rank == 0)
    fprintf (stderr, "tapedeck: %s:%d: %s\n", site != NULL ? site->file : "?",
             site != NULL ? site->line : 0, line);
}

TdStatus
td__say_parted (TdComm *comm, const TdCommon *common, const TdOpt *opt, const TdSums *sums,
                const TdSite *site)
{
  TdMeet mine = td__meet_of (TD_MEET_UPDATE, NULL, site);
  char why[TD_WHY_WIRE] = "", name[NAME];
  const int n = sums->n;
  TdStatus status;
  bool alike = true;
  Sum *all;

  mine.number = n;
  status = td__meet (comm, &mine, site);
  for (int r = 0; r < comm->size; r++)
    alike &= comm->all[r].number == n;
  if (status != TD_OK || !alike || n == 0) /* lists of other arrays: names were compared */
    return status;
  all = td__xcalloc ((size_t)comm->size * (size_t)n, sizeof *all);
  if (td__wait_gather (comm, sums->of, all, (size_t)n * sizeof *all, why, site))
    {
      const int i = first_difference ((const Sum *)all, n, comm->size);

      if (i < n)
        say (comm, (const Sum *)all, n, i, name_of (common, opt, i, name), opt->t, site);
    }
  else
    status = td__comm_fail (comm, why, site);
  free (all);
  return status;
}
