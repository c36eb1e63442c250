/* The mean of all ranks' gradients, one bucket after the other.
 *
 * SPDX-License-Identifier: MIT */
#include "buckets.h"
#include "by-hand.h"
#include "host-memory.h"

#include <stdlib.h>

/* Pack this rank's part; left out where it does not count. */
static TdStatus
fill (TdBucket *b, const TdCommon *common, const TdMean *how, bool counts, const TdSite *site)
{
  TdStatus status = TD_OK;

  for (int i = b->first; i < b->end && status == TD_OK; i++)
    {
      const TdVar *v = common->of[i].param->var, *g = v != NULL ? v->grad : NULL;

      status = td__bucket_put (b, common, i, counts ? g : NULL, !counts && g != NULL, how->turn,
                               site);
    }
  return status;
}

static TdStatus
reduce (TdComm *comm, TdBucket *b, const TdCommon *common, const TdMean *how, bool counts,
        int n_counting, const TdSite *site)
{
  char why[TD_WHY_WIRE] = "";
  TdStatus status;
  TdWait wait;
  bool ok;

  td__bucket_open (b, comm->size > 1 && td__rank_sums_wanted (), site);
  status = fill (b, common, how, counts, site);
  if (status != TD_OK)
    td__comm_abort (comm);
  if (status == TD_OK)
    {
      wait = td__wait_begin (comm, TD_WAIT_SUM, td__bucket_bytes (b), -1, site);
      ok = td__bucket_send (b, comm, comm->wire, why) && td__bucket_receive (b, comm, why);
      td__wait_end (comm, &wait, ok);
      status = ok ? td__bucket_take (b, comm, common, how, n_counting, 1, site)
                  : td__comm_fail (comm, why, site);
      if (!ok) /* the others wait for it, or for the next one; devices where nobody sees them */
        td__comm_abort (comm);
    }
  td__bucket_close (b, comm->transport);
  return status;
}

/* All go, whatever becomes of one: the others take them. */
TdStatus
td__common_mean_gradients (TdComm *comm, const TdCommon *common, const TdMean *how, bool counts,
                           int n_counting, const TdSite *site)
{
  int n;
  TdBucket *buckets = td__buckets_of (common, how, &n);
  TdStatus status = TD_OK;

  for (int i = 0; i < n && !comm->parted; i++)
    {
      const TdStatus one = reduce (comm, &buckets[i], common, how, counts, n_counting, site);

      status = status == TD_OK ? one : status;
    }
  free (buckets);
  return status;
}

/* Parameters are told of as the gradients were computed with them, unless an optimizer is known
 * that tells of them after its update. */
static TdStatus
tell_averaged (const TdComm *comm, const TdCommon *common, const TdSite *site)
{
  TdCommon rest = td__by_hand_averaged (comm, common);
  const TdStatus status = td__tell_parameters (&rest, NULL, site);

  free (rest.of);
  return status;
}

TdStatus
td_comm_allreduce_grad_at (TdComm *comm, TdLink *link, const TdSite *site)
{
  TdCommon common = { NULL, 0 };
  TdMean how = { .sent_as = TD_F32, .bucket = TD_MEAN_BUCKET };
  bool differs = false;
  TdStatus status;
  TdMeet mine;

  if (!td__comm_usable (comm, "td_comm_allreduce_grad", site))
    return td__error_status ();
  mine = td__meet_of (TD_MEET_ALLREDUCE_GRAD, NULL, site);
  if (td__link_usable (link, "td_comm_allreduce_grad", site))
    common = td__common_of (link, false);
  else
    td__meet_fail (&mine);
  mine.digest = td__common_digest (&common, true);
  mine.flags |= td__common_is_far (comm, &common) ? TD_MEET_FAR : 0;
  status = td__meet_digest (comm, &mine, &differs, site);
  how.far = td__meet_all (comm, TD_MEET_FAR) ? comm->far : NULL;
  how.turn = comm->seq;
  if (status == TD_OK)
    status = differs ? td__common_explain (comm, &common, NULL, TD_MEET_ALLREDUCE_GRAD, site)
                     : td__common_mean_gradients (comm, &common, &how, true, comm->size, site);
  if (status == TD_OK && comm->size > 1 && td__rank_sums_wanted ())
    status = tell_averaged (comm, &common, site);
  td__common_clear (&common);
  return status;
}

TdStatus
td_comm_allreduce_grad (TdComm *comm, TdLink *link)
{
  return td_comm_allreduce_grad_at (comm, link, NULL);
}
