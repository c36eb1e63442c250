/* The mean of all ranks' persistents: running statistics, which each rank has of its own
 * examples.
 *
 * *Source*: chainermn.extensions.AllreducePersistent.
 * SPDX-License-Identifier: MIT */
#include "arrays.h"
#include "host-memory.h"

#include "compute/core/before-write.h"
#include "compute/core/copies.h"
#include "train/loop/trainer.h"

#include <stdlib.h>

/* What is a persistent that has a mean. */
static TdVar *
persistent_of (const TdCommon *common, int i)
{
  const TdParam *p = common->of[i].param;

  return p->kind == TD_PARAM_PERSISTENT && p->var != NULL && p->var->node->dtype <= TD_BF16
                 && p->var->node->device->computes
             ? p->var
             : NULL;
}

/* Half precision is summed in float. */
static TdStatus
mean_of (TdComm *comm, TdVar *v, const TdSite *site)
{
  const TdDtype dtype = (TdDtype)v->node->dtype, wide = dtype == TD_F64 ? TD_F64 : TD_F32;
  TdDevice *host = td__device_at (0);
  TdShape shape = v->node->shape;
  const int64_t n = td__size (&shape);
  TdTensor own = { td__xcalloc ((size_t)n + 1, td__dtype_sizes[dtype]), &shape, n, dtype };
  TdTensor sum = { td__xcalloc ((size_t)n + 1, td__dtype_sizes[wide]), &shape, n, wide };
  char why[TD_WHY_WIRE] = "";
  TdStatus status = td__layout_download (v->node, v->buffer, own.data, TD_COPY_OP, site);

  if (status == TD_OK)
    status = host->ops->cast (host, &own, &sum);
  if (status != TD_OK)
    td__comm_abort (comm);
  else if (!td__wait_sum (comm, sum.data, n, wide == TD_F64 ? TD_WIRE_F64 : TD_WIRE_F32, why,
                          site))
    status = td__comm_fail (comm, why, site);
  for (int64_t i = 0; i < n; i++)
    if (wide == TD_F64)
      ((double *)sum.data)[i] /= comm->size;
    else
      ((float *)sum.data)[i] /= (float)comm->size;
  if (status == TD_OK)
    status = host->ops->cast (host, &sum, &own);
  if (status == TD_OK)
    {
      td__will_be_written (v->buffer);
      status = td__layout_upload (v->node, v->buffer, own.data, TD_COPY_OP, site);
    }
  if (status == TD_OK)
    td__buffer_written (v->buffer, site);
  free (own.data);
  free (sum.data);
  return status;
}

TdStatus
td_comm_allreduce_persistent_at (TdComm *comm, TdLink *link, const TdSite *site)
{
  TdCommon common = { NULL, 0 };
  bool differs = false;
  TdStatus status;
  TdMeet mine;

  if (!td__comm_usable (comm, "td_comm_allreduce_persistent", site))
    return td__error_status ();
  mine = td__meet_of (TD_MEET_PERSISTENTS, NULL, site);
  if (td__link_usable (link, "td_comm_allreduce_persistent", site))
    common = td__common_of (link, true);
  else
    td__meet_fail (&mine);
  mine.digest = td__common_digest (&common, true);
  status = td__meet_digest (comm, &mine, &differs, site);
  if (status == TD_OK && differs)
    status = td__common_explain (comm, &common, NULL, TD_MEET_PERSISTENTS, site);
  for (int i = 0; i < common.n && status == TD_OK; i++)
    if (persistent_of (&common, i) != NULL)
      status = mean_of (comm, persistent_of (&common, i), site);
  td__common_clear (&common);
  return status;
}

TdStatus
td_comm_allreduce_persistent (TdComm *comm, TdLink *link)
{
  return td_comm_allreduce_persistent_at (comm, link, NULL);
}

/* --- the extension --- */

typedef struct
{
  TdComm *comm;
  uint64_t link;
} Persistents;

static TdStatus
persistents_call (void *self, TdTrainer *t)
{
  const Persistents *p = self;
  TdLink *link = td__link_by_id (p->link);

  (void)t;
  return link != NULL ? td_comm_allreduce_persistent (p->comm, link)
                      : td__fail (TD_ERR_STATE, "td_allreduce_persistent_new", NULL,
                                  "its link was freed");
}

/* Before evaluators and snapshots, which want one model. */
static const TdExtensionClass persistents_class = { .size = sizeof (TdExtensionClass),
                                                    .name = "AllreducePersistent",
                                                    .self_bytes = sizeof (Persistents),
                                                    .priority = TD_PRIORITY_WRITER + 1,
                                                    .period = 1,
                                                    .unit = "epoch",
                                                    .call = persistents_call };

TdExtension *
td_allreduce_persistent_new (TdComm *comm, TdLink *link)
{
  TdExtension *x;

  if (!td__comm_usable (comm, "td_allreduce_persistent_new", NULL)
      || !td__link_usable (link, "td_allreduce_persistent_new", NULL))
    return td__extension_inert ();
  x = td_extension_new (&persistents_class);
  *(Persistents *)x->self = (Persistents){ comm, link->id };
  return x;
}
