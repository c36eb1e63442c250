/* Means of gradients behind other work: see overlap.h.
 *
 * When a gradient is final is learned: the backward before has shown how many operations add to
 * it, and after how many backwards the update comes.  Where a program does something else this
 * time, gradients that have gone are others than those that are there at the update; that is
 * found by what their memory was, and they go once more, as without overlap.
 *
 * SPDX-License-Identifier: MIT */
#include "overlap.h"
#include "by-hand.h"
#include "host-memory.h"

#include "compute/core/walk-watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  UNKNOWN = -1,
  PATIENCE = 3 /* useless sums one after the other, before it is given up */
};

/* One array of the list. */
typedef struct
{
  int touched; /* operations of this backward that have it as input */
  int last;    /* of the backward before */
  int final_after;
  bool packed, has; /* a gradient, in memory that was so when it was packed: */
  uint64_t buffer;
  uint32_t version;
} Array;

/* Sums that are on their way, or have come. */
typedef struct
{
  TdBucket *buckets; /* NULL: there are none */
  uint64_t (*times)[2];
  int n_sent, n_come;
  int n_counting;
  float scale;
  uint64_t turn;
} Round;

typedef struct
{
  const TdNode *node;
  int array;
} Place;

struct TdOverlap
{
  TdComm *comm;
  const TdTransport *transport; /* stays when comm is freed */
  TdWire *wire;                 /* its own: in one order with nothing else */
  TdFar *far;                   /* its own team; NULL: there is none */
  const TdCommon *common;
  uint32_t key; /* the same on all ranks, and of no other optimizer */
  TdMean how;
  bool backward, agreed, stale, in_backward, off;
  uint64_t generation; /* of links, when all agreed */
  TdBucket *layout;
  int n_buckets, n_arrays;
  Array *arrays;
  Place *places; /* by node */
  int *left;     /* of each bucket: arrays that are to be packed */
  Round going, come;
  int n_backwards, n_backwards_last, n_useless;
  const TdSite *site; /* of the optimizer */
  TdOverlap *next, **link;
};

static TdOverlap *all;

/* --- rounds --- */

static uint64_t
clock_now (void)
{
  const TdObserver *o = td__engine.observer;

  return o != NULL && o->clock != NULL ? o->clock () : 0;
}

static void
round_clear (const TdOverlap *o, Round *r)
{
  for (int i = 0; i < o->n_buckets && r->buckets != NULL; i++)
    td__bucket_close (&r->buckets[i], o->transport);
  free (r->buckets);
  free (r->times);
  *r = (Round){ NULL, NULL, 0, 0, 0, 0, 0 };
}

static void
round_open (TdOverlap *o)
{
  Round *r = &o->going;

  r->buckets = td__xcalloc ((size_t)o->n_buckets + 1, sizeof *r->buckets);
  r->times = td__xcalloc ((size_t)o->n_buckets + 1, sizeof *r->times);
  memcpy (r->buckets, o->layout, (size_t)o->n_buckets * sizeof *r->buckets);
  for (int i = 0; i < o->n_buckets; i++)
    td__bucket_open (&r->buckets[i], o->comm->size > 1 && td__rank_sums_wanted (), o->site);
  r->n_counting = o->comm->size;
  r->scale = 1;
  r->turn = o->how.turn;
}

/* Those that are complete, in order; the first n whatever they have. */
static void
send (TdOverlap *o, int n)
{
  Round *r = &o->going;
  char why[TD_WHY_WIRE] = "";

  while (r->n_sent < o->n_buckets && (r->n_sent < n || o->left[r->n_sent] == 0))
    {
      r->times[r->n_sent][0] = clock_now ();
      if (!td__bucket_send (&r->buckets[r->n_sent], o->comm, o->wire, why))
        {
          td__comm_fail (o->comm, why, o->site);
          td__comm_abort (o->comm);
          return;
        }
      r->n_sent++;
    }
}

/* Go on with what is on its way; who has come is noted. */
static void
progress (TdOverlap *o)
{
  Round *r = &o->going;

  while (r->n_come < r->n_sent && td__bucket_test (&r->buckets[r->n_come], o->transport))
    r->times[r->n_come++][1] = clock_now ();
}

static void
put (TdOverlap *o, int bucket, int i, const TdVar *g, bool left_out)
{
  Array *a = &o->arrays[i];

  if (a->packed)
    return;
  a->packed = true;
  a->has = g != NULL;
  a->buffer = g != NULL ? g->buffer->id : 0;
  a->version = g != NULL ? g->buffer->version : 0;
  o->left[bucket]--;
  if (td__bucket_put (&o->going.buckets[bucket], o->common, i, g, left_out, o->how.turn,
                      o->site)
      != TD_OK)
    td__comm_abort (o->comm);
}

static int
bucket_of (const TdOverlap *o, int i)
{
  int b = 0;

  while (o->layout[b].first > i)
    b++;
  return b;
}

static void
start (TdOverlap *o)
{
  round_open (o);
  o->stale = false;
  for (int b = 0; b < o->n_buckets; b++)
    o->left[b] = o->layout[b].end - o->layout[b].first;
  for (int i = 0; i < o->n_arrays; i++)
    o->arrays[i].packed = false;
}

/* The gradients that are there, of all that is not packed yet. */
static void
put_rest (TdOverlap *o, bool counts)
{
  for (int b = 0; b < o->n_buckets; b++)
    for (int i = o->layout[b].first; i < o->layout[b].end; i++)
      {
        const TdVar *v = o->common->of[i].param->var;
        const TdVar *g = v != NULL ? v->grad : NULL;

        put (o, b, i, counts ? g : NULL, !counts && g != NULL);
      }
}

/* --- while a backward runs --- */

/* The one that may send between devices in backward. */
static const TdOverlap *
first_far (void)
{
  const TdOverlap *first = NULL;

  for (const TdOverlap *o = all; o != NULL; o = o->next) /* the newest is in front */
    if (o->backward && o->how.far != NULL)
      first = o;
  return first;
}

static bool
can_begin (const TdOverlap *o)
{
  return (o->how.far == NULL || o == first_far ()) && o->backward && o->agreed && !o->off
         && !o->comm->parted && !o->comm->inert && o->going.buckets == NULL
         && o->generation == td__links_generation && o->n_backwards == o->n_backwards_last;
}

/* What nothing adds to, this time as the last, is final now. */
static void
put_untouched (TdOverlap *o)
{
  for (int b = 0; b < o->n_buckets; b++)
    for (int i = o->layout[b].first; i < o->layout[b].end; i++)
      if (o->arrays[i].final_after == 0)
        {
          const TdVar *v = o->common->of[i].param->var;

          put (o, b, i, v != NULL ? v->grad : NULL, false);
        }
}

static void
backward_begins (void)
{
  td__by_hand_forget ();
  for (TdOverlap *o = all; o != NULL; o = o->next)
    {
      if (!o->backward)
        continue;
      o->n_backwards++;
      o->in_backward = true;
      for (int i = 0; i < o->n_arrays; i++)
        o->arrays[i].touched = 0;
      if (can_begin (o))
        {
          start (o);
          put_untouched (o);
        }
    }
}

static int
compare_places (const void *a, const void *b)
{
  const uintptr_t x = (uintptr_t)((const Place *)a)->node,
                  y = (uintptr_t)((const Place *)b)->node;

  return (x > y) - (x < y);
}

/* The place of an array in the list; -1: it is no array of this optimizer. */
static int
find (const TdOverlap *o, const TdNode *node)
{
  const Place key = { node, 0 };
  const Place *found = o->n_arrays == 0 ? NULL
                                        : bsearch (&key, o->places, (size_t)o->n_arrays,
                                                   sizeof key, compare_places);

  return found != NULL ? found->array : -1;
}

static void
touch (TdOverlap *o, const TdNode *node)
{
  const int i = find (o, node);

  if (i < 0)
    return;
  o->arrays[i].touched++;
  if (o->going.buckets == NULL || !o->in_backward || o->stale)
    return;
  if (o->arrays[i].packed) /* and has been sent, perhaps */
    o->stale = true;
  else if (o->arrays[i].touched == o->arrays[i].final_after)
    {
      put (o, bucket_of (o, i), i, node->acc != NULL ? node->acc : node->var->grad, false);
      send (o, 0);
    }
}

static void
backward_steps (const TdOp *op)
{
  for (TdOverlap *o = all; o != NULL; o = o->next)
    {
      if (o->comm->parted || o->comm->inert)
        continue;
      if (o->backward && o->agreed && o->generation == td__links_generation)
        for (int i = 0; i < op->n_in; i++)
          if (op->in[i]->creator == NULL && op->in[i]->var != NULL)
            touch (o, op->in[i]);
      progress (o);
    }
}

/* After how many operations each gradient was final; the same twice is believed. */
static void
learn (TdOverlap *o)
{
  for (int i = 0; i < o->n_arrays; i++)
    {
      Array *a = &o->arrays[i];

      a->final_after = a->touched == a->last ? a->touched : UNKNOWN;
      a->last = a->touched;
    }
}

static bool
any_touched (const TdOverlap *o)
{
  bool any = false;

  for (int i = 0; i < o->n_arrays; i++)
    any |= o->arrays[i].touched > 0;
  return any;
}

static void
backward_ends (TdStatus status)
{
  for (TdOverlap *o = all; o != NULL; o = o->next)
    {
      Round *r = &o->going;

      if (!o->backward || !o->in_backward)
        continue;
      o->in_backward = false;
      if (!any_touched (o) && r->n_sent == 0) /* of another model */
        {
          round_clear (o, r);
          o->n_backwards--;
          continue;
        }
      if (o->agreed && (o->n_backwards == o->n_backwards_last || o->n_backwards_last == 0))
        learn (o);
      if (r->buckets == NULL || r->n_sent == o->n_buckets || o->comm->parted || o->comm->inert)
        {
          o->stale |= r->buckets != NULL && o->n_backwards != o->n_backwards_last;
          continue;
        }
      o->stale |= status != TD_OK || o->generation != td__links_generation;
      if (!o->stale)
        put_rest (o, true);
      send (o, o->n_buckets);
    }
}

static const TdWalkWatch watch = { backward_begins, backward_steps, backward_ends };

/* --- at meetings --- */

void
td__overlap_tell (TdMeet *mine)
{
  for (const TdOverlap *o = all; o != NULL; o = o->next)
    if (o->backward && o->how.far != NULL && o->going.n_sent > 0)
      {
        mine->sending = o->key;
        mine->n_sent = (uint32_t)o->going.n_sent;
      }
}

void
td__overlap_catch_up (const TdComm *comm)
{
  for (TdOverlap *o = all; o != NULL; o = o->next)
    {
      int n = 0;

      for (int r = 0; r < comm->size && o->backward && o->how.far != NULL; r++)
        if (comm->all[r].sending == o->key && (int)comm->all[r].n_sent > n)
          n = (int)comm->all[r].n_sent;
      if (n <= o->going.n_sent || o->comm->parted)
        continue;
      if (o->going.buckets == NULL)
        start (o);
      o->stale = true;
      send (o, n);
    }
}

/* --- making and ending --- */

TdOverlap *
td__overlap_new (TdComm *comm, const TdCommon *common, const TdMean *how, bool backward,
                 const TdSite *site)
{
  char why[TD_WHY_WIRE] = "";
  TdWait wait = td__wait_begin (comm, TD_WAIT_EXCHANGE, 0, -1, site);
  TdWire *wire = comm->transport->split (comm->wire, 0, comm->rank, why);
  TdFar *far;
  TdOverlap *o;

  if (!td__wait_end (comm, &wait, wire != NULL))
    {
      td__comm_fail (comm, why, site);
      return NULL;
    }
  far = td__far_another (comm, site);
  if (far == NULL && comm->far != NULL)
    {
      comm->transport->close (wire, false);
      return NULL;
    }
  o = td__xcalloc (1, sizeof *o);
  o->comm = comm;
  o->wire = wire;
  o->far = far;
  o->transport = comm->transport;
  o->common = common;
  o->key = (uint32_t)td__digest (comm->id, &comm->n_optimizers, sizeof comm->n_optimizers) | 1;
  o->how = *how;
  o->backward = backward;
  o->site = site;
  o->link = &all;
  o->next = all;
  if (all != NULL)
    all->link = &o->next;
  all = o;
  td__engine.walk_watch = &watch;
  return o;
}

static void
forget_layout (TdOverlap *o)
{
  free (o->layout);
  free (o->arrays);
  free (o->places);
  free (o->left);
  o->layout = NULL;
  o->arrays = NULL;
  o->places = NULL;
  o->left = NULL;
  o->n_buckets = o->n_arrays = 0;
}

/* A wire with sums on it that may never come stays open till the end. */
void
td__overlap_free (TdOverlap *o)
{
  /* Sums of others that are under way need the wire; a process alone has none. */
  const bool idle = o->going.buckets == NULL || o->transport == &td__transport_alone;

  round_clear (o, &o->going);
  round_clear (o, &o->come);
  forget_layout (o);
  *o->link = o->next;
  if (o->next != NULL)
    o->next->link = o->link;
  if (all == NULL)
    td__engine.walk_watch = NULL;
  if (idle)
    o->transport->close (o->wire, false);
  if (o->far != NULL)
    td__far_leave (o->far);
  free (o);
}

void
td__overlap_lay_out (TdOverlap *o, bool far)
{
  const TdCommon *common = o->common;

  if (o->agreed && o->generation == td__links_generation && far == (o->how.far != NULL))
    return;
  forget_layout (o);
  o->how.far = far ? o->far : NULL;
  o->agreed = true;
  o->off = false;
  o->n_useless = o->n_backwards_last = 0;
  o->layout = td__buckets_of (common, &o->how, &o->n_buckets);
  o->generation = td__links_generation;
  o->n_arrays = common->n;
  o->arrays = td__xcalloc ((size_t)common->n + 1, sizeof *o->arrays);
  o->places = td__xcalloc ((size_t)common->n + 1, sizeof *o->places);
  o->left = td__xcalloc ((size_t)o->n_buckets + 1, sizeof *o->left);
  for (int i = 0; i < common->n; i++)
    {
      const TdVar *v = common->of[i].param->var;

      o->arrays[i].last = o->arrays[i].final_after = UNKNOWN;
      o->places[i] = (Place){ v != NULL ? v->node : NULL, i };
    }
  qsort (o->places, (size_t)common->n, sizeof *o->places, compare_places);
}

void
td__overlap_turn (TdOverlap *o, uint64_t turn)
{
  o->how.turn = turn;
}

/* --- around an update --- */

TdStatus
td__overlap_begin (TdOverlap *o, bool counts, int n_counting, float scale, const TdSite *site)
{
  o->site = site;
  start (o);
  o->going.n_counting = n_counting;
  o->going.scale = scale;
  put_rest (o, counts);
  send (o, o->n_buckets);
  return o->comm->parted ? td__error_status () : TD_OK;
}

/* Are the gradients that are there those that have gone? */
static bool
is_as_packed (const TdOverlap *o)
{
  for (int i = 0; i < o->n_arrays; i++)
    {
      const TdVar *v = o->common->of[i].param->var, *g = v != NULL ? v->grad : NULL;
      const Array *a = &o->arrays[i];

      if (v == NULL || !v->node->device->computes)
        continue;
      if (a->has != (g != NULL)
          || (g != NULL && (a->buffer != g->buffer->id || a->version != g->buffer->version)))
        return false;
    }
  return true;
}

bool
td__overlap_has (const TdOverlap *o)
{
  return o->come.buckets != NULL;
}

uint32_t
td__overlap_flags (const TdOverlap *o)
{
  if (o->going.buckets == NULL)
    return TD_MEET_STALE;
  return TD_MEET_ROUND
         | (o->stale || o->generation != td__links_generation || !is_as_packed (o)
                ? TD_MEET_STALE
                : 0);
}

static void
tell_behind (const TdOverlap *o, int i, const TdSite *site)
{
  TdObserver *observer = td__engine.observer;
  const Round *r = &o->going;
  const TdWait wait = { .comm = o->comm->id,
                        .seq = o->comm->seq,
                        .call = td__meet_name ((TdMeetKind)o->comm->mine.kind),
                        .site = site,
                        .bytes = td__bucket_bytes (&r->buckets[i]),
                        .rank = o->comm->rank,
                        .size = o->comm->size,
                        .peer = -1,
                        .kind = TD_WAIT_SUM,
                        .whole = o->comm->whole,
                        .behind = { r->times[i][0], r->times[i][1] } };

  if (TD_UNLIKELY (observer != NULL) && observer->wait != NULL && wait.behind[1] != 0
      && o->comm->size > 1)
    observer->wait (observer, &wait, true);
}

/* What has come is not waited for; what has not takes no more bytes. */
static bool
receive (TdOverlap *o, int i, char *why, const TdSite *site)
{
  TdBucket *b = &o->going.buckets[i];
  TdWait wait;
  bool ok;

  if (i < o->going.n_come)
    return td__bucket_receive (b, o->comm, why);
  wait = td__wait_begin (o->comm, TD_WAIT_SUM, 0, -1, site);
  ok = td__bucket_receive (b, o->comm, why);
  td__wait_end (o->comm, &wait, ok);
  o->going.times[i][1] = clock_now ();
  return ok;
}

TdStatus
td__overlap_wait (TdOverlap *o, const TdSite *site)
{
  char why[TD_WHY_WIRE] = "";

  if (o->going.buckets == NULL) /* others have begun: this rank brings zeros */
    start (o);
  send (o, o->n_buckets);
  progress (o);
  for (int i = 0; i < o->n_buckets && !o->comm->parted; i++)
    {
      if (!receive (o, i, why, site))
        {
          td__comm_fail (o->comm, why, site);
          td__comm_abort (o->comm);
        }
      tell_behind (o, i, site);
    }
  if (o->comm->parted)
    return td__error_status ();
  round_clear (o, &o->come);
  o->come = o->going;
  o->going = (Round){ NULL, NULL, 0, 0, 0, 0, 0 };
  return TD_OK;
}

TdStatus
td__overlap_take (TdOverlap *o, const TdMean *how, float scale, const TdSite *site)
{
  TdMean then = *how;
  TdStatus status = TD_OK;

  then.turn = o->come.turn;
  for (int i = 0; i < o->n_buckets && !o->comm->parted;
       i++) /* ranks may ask each other in each */
    {
      const TdStatus one = td__bucket_take (&o->come.buckets[i], o->comm, o->common, &then,
                                            o->come.n_counting, scale / o->come.scale, site);

      status = status == TD_OK ? one : status;
    }
  round_clear (o, &o->come);
  return status;
}

void
td__overlap_forget (TdOverlap *o)
{
  round_clear (o, &o->come);
}

void
td__overlap_updated (TdOverlap *o, bool useless, const TdSite *site)
{
  o->n_backwards_last = o->n_backwards;
  o->n_backwards = 0;
  o->n_useless = useless ? o->n_useless + 1 : 0;
  if (o->n_useless < PATIENCE || o->off)
    return;
  o->off = true;
  if (o->comm->rank == 0)
    fprintf (stderr,
             "tapedeck: %s:%d: gradients are no more summed while backward runs: they change "
             "between there and the update, on some rank\n",
             site != NULL ? site->file : "?", site != NULL ? site->line : 0);
}
