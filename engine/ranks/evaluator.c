/* An evaluator whose means are over the examples of all ranks.
 *
 * ChainerMN takes the mean of the ranks' means; where their parts differ in size, that is not
 * the mean of the whole.
 * SPDX-License-Identifier: MIT */
#include "comm.h"
#include "host-memory.h"
#include "train/loop/trainer.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdComm *comm;
} Shared;

/* Of keys in their order. */
static uint64_t
digest_of (const TdObservation *o)
{
  uint64_t digest = td__digest (0, &o->n_entries, sizeof o->n_entries);

  for (int i = 0; i < o->n_entries; i++)
    digest = td__digest (digest, o->entries[i].key, strlen (o->entries[i].key) + 1);
  return digest;
}

/* Sums and weights of all keys become those of all ranks. */
static TdStatus
add_up (TdComm *comm, double *sums, int64_t n)
{
  char why[TD_WHY_WIRE] = "";

  return td__wait_sum (comm, sums, n, TD_WIRE_F64, why, NULL) ? TD_OK
                                                              : td__comm_fail (comm, why, NULL);
}

static TdStatus
evaluate_all (void *shared, TdObservation *summary)
{
  TdComm *comm = ((Shared *)shared)->comm;
  const int n = summary->n_entries;
  double *sums;
  bool differs = false;
  TdStatus status;
  TdMeet mine;

  if (td__engine.has_error && comm->parted) /* which has been said */
    return td__error_status ();
  if (!td__comm_usable (comm, "td_multi_node_evaluator_new", NULL))
    return td__error_status ();
  mine = td__meet_of (TD_MEET_EVALUATOR, NULL, NULL);
  mine.digest = digest_of (summary);
  if (td__engine.has_error)
    td__meet_fail (&mine);
  status = td__meet_digest (comm, &mine, &differs, NULL);
  if (status == TD_OK && differs)
    status = td__fail (TD_ERR_STATE, "td_multi_node_evaluator_new", NULL,
                       "rank %d of %d: the ranks report different keys, or in another order",
                       comm->rank, comm->size);
  if (status != TD_OK)
    return status;
  sums = td__xcalloc (2 * (size_t)n + 1, sizeof *sums);
  for (int i = 0; i < n; i++)
    {
      sums[2 * i] = summary->entries[i].mean * summary->entries[i].weight;
      sums[2 * i + 1] = summary->entries[i].weight;
    }
  status = add_up (comm, sums, 2 * n);
  for (int i = 0; i < n && status == TD_OK; i++)
    if (sums[2 * i + 1] > 0)
      summary->entries[i].mean = sums[2 * i] / sums[2 * i + 1];
  free (sums);
  return status;
}

static const TdEvaluatorShare share = { evaluate_all, free };

TdExtension *
td_multi_node_evaluator_new_at (TdExtension *evaluator, TdComm *comm, const TdSite *site)
{
  Shared *s;

  if (!td__comm_usable (comm, "td_multi_node_evaluator_new", site))
    return td__extension_inert ();
  s = td__xcalloc (1, sizeof *s);
  s->comm = comm;
  if (td__evaluator_share (evaluator, &share, s))
    return evaluator;
  free (s);
  td__fail (TD_ERR_ARG, "td_multi_node_evaluator_new", site,
            "an evaluator of td_ext_evaluator expected, that has no communicator yet");
  return td__extension_inert ();
}

TdExtension *
td_multi_node_evaluator_new (TdExtension *evaluator, TdComm *comm)
{
  return td_multi_node_evaluator_new_at (evaluator, comm, NULL);
}
