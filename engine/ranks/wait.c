/* Calls of the transport that wait for other ranks, each between td__wait_begin and
 * td__wait_end, so that who records hears of it, and so that a process that is ended meanwhile
 * can say where it was.  What ranks say of their GPUs (`agree` in teams.c) is not among them:
 * it brings no numbers of a model.
 *
 * SPDX-License-Identifier: MIT */
#include "comm.h"

static TdWait
wait_of (const TdComm *c, TdWaitKind kind, uint64_t seq, size_t bytes, int peer,
         const TdSite *site)
{
  return (TdWait){ .comm = c->id,
                   .seq = seq,
                   .call = td__meet_name ((TdMeetKind)c->mine.kind),
                   .site = site,
                   .bytes = bytes,
                   .rank = c->rank,
                   .size = c->size,
                   .peer = peer,
                   .kind = kind,
                   .whole = c->whole };
}

static void
tell (const TdComm *c, const TdWait *wait, bool ended)
{
  TdObserver *o = td__engine.observer;

  if (TD_UNLIKELY (o != NULL) && o->wait != NULL && c->size > 1)
    o->wait (o, wait, ended);
}

TdWait
td__wait_begin (const TdComm *c, TdWaitKind kind, size_t bytes, int peer, const TdSite *site)
{
  const TdWait wait = wait_of (c, kind, c->seq, bytes, peer, site);

  tell (c, &wait, false);
  td__last_words (c);
  return wait;
}

bool
td__wait_end (const TdComm *c, TdWait *wait, bool ok)
{
  td__last_words (NULL);
  wait->failed = !ok;
  tell (c, wait, true);
  return ok;
}

bool
td__wait_bcast (TdComm *c, void *data, size_t bytes, int root, char *why, const TdSite *site)
{
  TdWait wait = td__wait_begin (c, TD_WAIT_BCAST, bytes, root, site);

  return td__wait_end (c, &wait, c->transport->bcast (c->wire, data, bytes, root, why));
}

static const uint8_t wire_bytes[] = {
  [TD_WIRE_F32] = 4, [TD_WIRE_F64] = 8, [TD_WIRE_I32] = 4, [TD_WIRE_I64] = 8, [TD_WIRE_U8] = 1
};

bool
td__wait_sum (TdComm *c, void *data, int64_t n, TdWireKind kind, char *why, const TdSite *site)
{
  TdWait wait = td__wait_begin (c, TD_WAIT_SUM, (size_t)n * wire_bytes[kind], -1, site);

  return td__wait_end (c, &wait, c->transport->sum (c->wire, data, n, kind, why));
}

bool
td__wait_gather (TdComm *c, const void *in, void *all, size_t bytes, char *why,
                 const TdSite *site)
{
  TdWait wait = td__wait_begin (c, TD_WAIT_GATHER, bytes, -1, site);

  return td__wait_end (c, &wait, c->transport->gather (c->wire, in, all, bytes, why));
}

bool
td__wait_exchange (TdComm *c, const void *in, void *out, size_t bytes, char *why,
                   const TdSite *site)
{
  TdWait wait = td__wait_begin (c, TD_WAIT_EXCHANGE, bytes * (size_t)c->size, -1, site);

  return td__wait_end (c, &wait, c->transport->exchange (c->wire, in, out, bytes, why));
}

/* Letters are numbered by their pair of ranks: nobody else knows of them. */
bool
td__wait_send (TdComm *c, const void *data, size_t bytes, int to, char *why, const TdSite *site)
{
  TdWait wait = wait_of (c, TD_WAIT_SEND, ++c->n_sent[to], bytes, to, site);

  tell (c, &wait, false);
  wait.failed = !c->transport->send (c->wire, data, bytes, to, why);
  tell (c, &wait, true);
  return !wait.failed;
}

bool
td__wait_receive (TdComm *c, void *data, size_t bytes, int from, char *why, const TdSite *site)
{
  TdWait wait = wait_of (c, TD_WAIT_RECEIVE, ++c->n_received[from], bytes, from, site);

  tell (c, &wait, false);
  td__last_words (c);
  return td__wait_end (c, &wait, c->transport->receive (c->wire, data, bytes, from, why));
}
