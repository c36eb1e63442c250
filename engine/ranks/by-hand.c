/* A mean that the program makes itself is seen by how many numbers have been summed between
 * backward and an update: as many as the gradients have.  A loss for the log is fewer, and the
 * sum of an evaluation, or of weights, has a backward between it and the update.
 *
 * SPDX-License-Identifier: MIT */
#include "by-hand.h"
#include "host-memory.h"
#include "sums.h"

#include "compute/core/walk-watch.h"

#include <stdlib.h>

typedef struct
{
  uint64_t generation; /* of the links when the list was made */
  TdCommon all;
  TdSums sums;
  bool now; /* this update is by a mean */
} ByHand;

static int64_t n_summed; /* numbers, since the last backward began */
static int n_ranks;      /* that the last of them are of */

void
td__by_hand_forget (void)
{
  n_summed = 0;
}

static void
nothing_at_step (const TdOp *op)
{
  (void)op;
}

static void
nothing_at_end (TdStatus status)
{
  (void)status;
}

static const TdWalkWatch walk_watch = { td__by_hand_forget, nothing_at_step, nothing_at_end };

static ByHand *
by_hand_of (TdOpt *opt)
{
  ByHand *h = opt->watched;

  if (h == NULL)
    opt->watched = h = td__xcalloc (1, sizeof *h);
  if (h->generation != td__links_generation)
    {
      td__common_clear (&h->all);
      h->all = td__common_of (opt->target, true);
      h->generation = td__links_generation;
    }
  return h;
}

static int64_t
count_gradients (const TdCommon *all)
{
  int64_t n = 0;

  for (int i = 0; i < all->n; i++)
    {
      const TdParam *p = all->of[i].param;

      if (p->kind != TD_PARAM_PERSISTENT && p->var != NULL && p->var->grad != NULL)
        n += td__size (&p->var->grad->node->shape);
    }
  return n;
}

static TdStatus
before (TdOpt *opt, const TdSite *site)
{
  const int64_t summed = n_summed;
  ByHand *h;
  int64_t n;

  n_summed = 0;
  if (summed == 0 && opt->watched == NULL)
    return TD_OK;
  h = by_hand_of (opt);
  n = summed > 0 ? count_gradients (&h->all) : 0;
  h->now = n > 0 && summed >= n && td__rank_sums_wanted ();
  if (!h->now)
    {
      h->sums.n_marks = 0;
      return TD_OK;
    }
  n_summed = summed - n; /* the rest are another optimizer's */
  td__sums_look (&h->all, opt, &h->sums);
  return td__tell_means (&h->all, n_ranks, site);
}

static void
after (TdOpt *opt, TdStatus status, const TdSite *site)
{
  ByHand *h = opt->watched;

  if (h == NULL || !h->now)
    return;
  td__sums_clear (&h->sums);
  if (status == TD_OK)
    td__tell_updated (&h->all, opt, &h->sums, site);
}

static void
watched_free (TdOpt *opt)
{
  ByHand *h = opt->watched;

  td__common_clear (&h->all);
  td__sums_free (&h->sums);
  free (h);
  opt->watched = NULL;
}

static const TdOptWatch opt_watch = { before, after, watched_free };

void
td__by_hand_summed (const TdComm *comm, const TdVar *x)
{
  if (comm->size < 2 || td__engine.phase != TD_PHASE_FORWARD || !td__rank_sums_wanted ())
    return;
  if (td__engine.walk_watch == NULL)
    td__engine.walk_watch = &walk_watch;
  td__opt_watch = &opt_watch;
  n_summed += td__size (&x->node->shape);
  n_ranks = comm->size;
}
