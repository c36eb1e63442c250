/* The meeting before every call for all ranks: what each says, what must be the same, and what
 * is said when it is not.
 *
 * SPDX-License-Identifier: MIT */
#include "overlap.h"

#include <stdio.h>
#include <string.h>

static const char *const names[TD_MEET_N] = {
  [TD_MEET_NEW] = "td_comm_new",
  [TD_MEET_SPLIT] = "td_comm_split",
  [TD_MEET_FREE] = "td_comm_free",
  [TD_MEET_BARRIER] = "td_comm_barrier",
  [TD_MEET_BCAST] = "td_comm_bcast",
  [TD_MEET_ALLREDUCE] = "td_comm_allreduce",
  [TD_MEET_ALLGATHER] = "td_comm_allgather",
  [TD_MEET_ALLTOALL] = "td_comm_alltoall",
  [TD_MEET_BCAST_LINK] = "td_comm_bcast_link",
  [TD_MEET_BCAST_OPTIMIZER] = "td_comm_bcast_optimizer",
  [TD_MEET_BCAST_RANDOM] = "td_comm_bcast_random",
  [TD_MEET_ALLREDUCE_GRAD] = "td_comm_allreduce_grad",
  [TD_MEET_OPTIMIZER] = "td_multi_node_optimizer_new",
  [TD_MEET_UPDATE] = "td_opt_update",
  [TD_MEET_SCATTER] = "td_scatter_dataset",
  [TD_MEET_EVALUATOR] = "td_multi_node_evaluator_new",
  [TD_MEET_AGGREGATOR] = "td_observation_aggregator_new",
  [TD_MEET_ITERATOR] = "td_multi_node_iterator_new",
  [TD_MEET_SYNCHRONIZED] = "td_synchronized_iterator_new",
  [TD_MEET_CHAIN_LIST] = "td_multi_node_chain_list_new",
  [TD_MEET_CHECKPOINT] = "td_multi_node_checkpointer_new",
  [TD_MEET_PERSISTENTS] = "td_comm_allreduce_persistent",
  [TD_MEET_SEND] = "td_send",
  [TD_MEET_RECV] = "td_recv",
  [TD_MEET_FINISH] = "td_finish",
};

const char *
td__meet_name (TdMeetKind kind)
{
  return (unsigned)kind < TD_MEET_N ? names[kind] : "?";
}

uint64_t
td__digest (uint64_t digest, const void *bytes, size_t n)
{
  const unsigned char *b = bytes;

  if (digest == 0)
    digest = 0xcbf29ce484222325u;
  for (size_t i = 0; i < n; i++)
    digest = (digest ^ b[i]) * 0x100000001b3u;
  return digest;
}

TdMeet
td__meet_of (TdMeetKind kind, const TdVar *x, const TdSite *site)
{
  TdMeet m;
  size_t n;

  memset (&m, 0, sizeof m); /* its bytes are sent */
  m.abi = TD_TRANSPORT_ABI;
  m.kind = kind;
  m.dtype = m.root = m.ndim = -1;
  site = site != NULL ? site : td__engine.site;
  if (site != NULL)
    {
      n = strlen (site->file);
      snprintf (m.file, sizeof m.file, "%s",
                site->file + (n < sizeof m.file ? 0 : n + 1 - sizeof m.file));
      m.line = site->line;
    }
  if (x == NULL)
    return m;
  if (!td__var_usable (x, names[kind], site))
    {
      td__meet_fail (&m);
      return m;
    }
  m.dtype = (int32_t)x->node->dtype;
  m.ndim = x->node->shape.ndim;
  for (int i = 0; i < m.ndim; i++)
    m.dim[i] = x->node->shape.dim[i];
  m.flags = x->node->requires_grad && td__engine.config.enable_backprop ? TD_MEET_WANTS : 0;
  return m;
}

void
td__meet_fail (TdMeet *mine)
{
  const TdError *e = td__engine.has_error ? &td__engine.error : NULL;

  mine->flags |= TD_MEET_FAILED;
  snprintf (mine->note, sizeof mine->note, "%.199s", e != NULL ? e->message : "it has failed");
}

bool
td__meet_any (const TdComm *comm, uint32_t flag)
{
  bool any = false;

  for (int r = 0; r < comm->size; r++)
    any |= (comm->all[r].flags & flag) != 0;
  return any;
}

bool
td__meet_all (const TdComm *comm, uint32_t flag)
{
  bool all = true;

  for (int r = 0; r < comm->size; r++)
    all &= (comm->all[r].flags & flag) != 0;
  return all;
}

/* " (train.c:12)" */
static void
place_text (const TdMeet *m, char *text, size_t size)
{
  text[0] = '\0';
  if (m->file[0] != '\0')
    snprintf (text, size, " (%.43s:%d)", m->file, m->line);
}

/* "td_comm_bcast of (2, 3) f32 from rank 1 (train.c:12)" */
static const char *
describe (const TdMeet *m, char *text, size_t size)
{
  char shape[160] = "", of[200] = "", root[40] = "", place[80];
  TdShape s = { .ndim = m->ndim };

  for (int i = 0; i < m->ndim && i < TD_MAX_DIMS; i++)
    s.dim[i] = m->dim[i];
  if (m->ndim >= 0 && m->ndim <= TD_MAX_DIMS && (unsigned)m->dtype < TD__N_DTYPES)
    snprintf (of, sizeof of, " of %s %s", td_shape_text (&s, shape, sizeof shape),
              td__dtype_short_names[m->dtype]);
  if (m->root >= 0)
    snprintf (root, sizeof root, " from rank %d", m->root);
  place_text (m, place, sizeof place);
  snprintf (text, size, "%.40s%s%s%s", td__meet_name ((TdMeetKind)m->kind), of, root, place);
  return text;
}

static bool
same_shape (const TdMeet *a, const TdMeet *b)
{
  return a->ndim == b->ndim && memcmp (a->dim, b->dim, sizeof a->dim) == 0;
}

/* What is different, the worst first; TD_OK: nothing is. */
static TdStatus
difference (const TdMeet *a, const TdMeet *b)
{
  return a->kind != b->kind || a->abi != b->abi ? TD_ERR_STATE
         : a->dtype != b->dtype                 ? TD_ERR_DTYPE
         : !same_shape (a, b)                   ? TD_ERR_SHAPE
         : a->root != b->root                   ? TD_ERR_ARG
                                                : TD_OK;
}

static TdStatus
say_ended (const TdComm *c, int gone, int other, const TdSite *site)
{
  char text[400];

  if (c->mine.kind == TD_MEET_FINISH)
    return td__fail (TD_ERR_STATE, "td_finish", site,
                     "rank %d of %d ends while rank %d is in %s, which is for all ranks",
                     c->rank, c->size, other, describe (&c->all[other], text, sizeof text));
  return td__fail (TD_ERR_STATE, td__meet_name ((TdMeetKind)c->mine.kind), site,
                   "rank %d of %d: call %llu waits for rank %d, which has ended (td_finish)",
                   c->rank, c->size, (unsigned long long)c->seq, gone);
}

static TdStatus
say_difference (TdComm *c, TdStatus status, int r, const TdSite *site)
{
  const char *call = td__meet_name ((TdMeetKind)c->mine.kind);
  char a[400], b[400];

  if (status == TD_ERR_STATE)
    {
      c->parted = true;
      c->parted_at = c->seq;
      c->parting = call;
      if (c->all[r].kind == TD_MEET_FINISH)
        return say_ended (c, r, 0, site);
      if (c->all[0].kind == TD_MEET_FINISH)
        return say_ended (c, 0, r, site);
    }
  if (c->all[r].abi != c->all[0].abi)
    return td__fail (status, call, site,
                     "rank %d of %d: ranks 0 and %d run different versions of Tapedeck",
                     c->rank, c->size, r);
  return td__fail (status, call, site,
                   "rank %d of %d: in call %llu rank 0 is in %s, rank %d in %s: all ranks must "
                   "do the same",
                   c->rank, c->size, (unsigned long long)c->seq,
                   describe (&c->all[0], a, sizeof a), r, describe (&c->all[r], b, sizeof b));
}

/* Some rank cannot take part: the others hear why. */
static TdStatus
say_failed (const TdComm *c, int r, const TdSite *site)
{
  const char *call = td__meet_name ((TdMeetKind)c->mine.kind);
  char place[80];

  if (r == c->rank && td__engine.has_error)
    return td__engine.error.status;
  place_text (&c->all[r], place, sizeof place);
  return td__fail (TD_ERR_STATE, call, site,
                   "rank %d of %d: rank %d cannot take part in call %llu%s: %.199s", c->rank,
                   c->size, r, (unsigned long long)c->seq, place, c->all[r].note);
}

TdStatus
td__meet_compare (TdComm *c, bool *differs, const TdSite *site)
{
  *differs = false;
  for (int r = 1; r < c->size; r++)
    if (difference (&c->all[0], &c->all[r]) == TD_ERR_STATE)
      return say_difference (c, TD_ERR_STATE, r, site);
  for (int r = 0; r < c->size; r++)
    if (c->all[r].flags & TD_MEET_FAILED)
      return say_failed (c, r, site);
  for (int r = 1; r < c->size; r++)
    {
      const TdStatus status = difference (&c->all[0], &c->all[r]);

      if (status != TD_OK)
        return say_difference (c, status, r, site);
      *differs |= c->all[r].digest != c->all[0].digest;
    }
  return TD_OK;
}

TdStatus
td__comm_fail (TdComm *comm, const char *why, const TdSite *site)
{
  comm->parted = true;
  comm->parted_at = comm->seq;
  comm->parting = td__meet_name ((TdMeetKind)comm->mine.kind);
  return td__fail (TD_ERR_IO, comm->parting, site, "rank %d of %d, call %llu: %s", comm->rank,
                   comm->size, (unsigned long long)comm->seq, why);
}

void
td__comm_abort (TdComm *comm)
{
  if (comm->size > 1)
    fprintf (stderr, "tapedeck: rank %d of %d cannot bring its part, and ends all: %s\n",
             comm->rank, comm->size,
             td__engine.has_error ? td__engine.error.message : "it has failed");
  comm->transport->abort (comm->wire);
}

TdStatus
td__meet_digest (TdComm *comm, const TdMeet *mine, bool *differs, const TdSite *site)
{
  char why[TD_WHY_WIRE] = "";
  TdStatus status;
  TdWait wait;

  *differs = false; /* also where nothing is compared */
  comm->mine = *mine;
  comm->mine.seq = ++comm->seq;
  td__overlap_tell (&comm->mine);
  wait = td__wait_begin (comm, TD_WAIT_MEET, 0, -1, site);
  status
      = comm->transport->meet_begin (comm->wire, &comm->mine, comm->all, sizeof (TdMeet), why)
                && comm->transport->meet_end (comm->wire, why)
            ? td__meet_compare (comm, differs, site)
            : td__comm_fail (comm, why, site);
  td__wait_end (comm, &wait, status == TD_OK);
  if (!comm->parted)
    td__overlap_catch_up (comm);
  return status;
}

int
td__meet_other (const TdComm *comm)
{
  int r = 1;

  while (r < comm->size - 1 && comm->all[r].digest == comm->all[0].digest)
    r++;
  return r;
}

TdStatus
td__meet (TdComm *comm, const TdMeet *mine, const TdSite *site)
{
  bool differs;
  const TdStatus status = td__meet_digest (comm, mine, &differs, site);

  if (status != TD_OK || !differs)
    return status;
  return td__fail (
      TD_ERR_ARG, td__meet_name ((TdMeetKind)mine->kind), site,
      "rank %d of %d: in call %llu the ranks give different arguments: rank %d other "
      "ones than rank 0",
      comm->rank, comm->size, (unsigned long long)comm->seq, td__meet_other (comm));
}
