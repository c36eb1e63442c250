/* MultiNodeChainList: one model whose links lie on several ranks, each with the ranks that its
 * inputs come from and its output goes to.
 *
 * Ranks send each other letters, which meet nobody: a list whose links wait for each other in a
 * circle would hang.  So at the first call all ranks lay their lists side by side, and go
 * through them with counters instead of arrays.
 *
 * *Source*: chainermn.links.MultiNodeChainList.
 * SPDX-License-Identifier: MIT */
#include "comm.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  NAME = 48,
  PARTNERS = TD_CHAIN_LIST_PARTNERS
};

/* A link's place, as ranks tell it each other. */
typedef struct
{
  char name[NAME];
  int32_t n_in, n_out; /* -1: the list's own inputs, or its output */
  int32_t in[PARTNERS], out[PARTNERS];
} Place;

typedef struct
{
  TdComm *comm;
  Place *places; /* of the children, in their order */
  int n;
  bool checked; /* since the last was added, by all */
} List;

/* --- is there a way through all lists? --- */

typedef struct
{
  const Place *all; /* of all ranks, `most` each */
  int size, most;
  int *n, *place, *input; /* of each rank: its links, the one it is in, and how many inputs of
                             that have come */
  int *sent;              /* from a to b, not received yet */
} Walk;

static const Place *
place_at (const Walk *w, int rank)
{
  return &w->all[rank * w->most + w->place[rank]];
}

/* One rank goes on as far as it gets.  False: not at all. */
static bool
go_on (Walk *w, int rank)
{
  const Place *p;
  bool moved = false;

  while (w->place[rank] < w->n[rank])
    {
      p = place_at (w, rank);
      for (; w->input[rank] < p->n_in; w->input[rank]++)
        {
          int *waits = &w->sent[p->in[w->input[rank]] * w->size + rank];

          if (*waits == 0)
            return moved;
          --*waits;
          moved = true;
        }
      for (int i = 0; i < p->n_out; i++)
        w->sent[rank * w->size + p->out[i]]++;
      w->place[rank]++;
      w->input[rank] = 0;
      moved = true;
    }
  return moved;
}

/* What keeps the walk from its end; TD_OK: nothing. */
static TdStatus
judge (const Walk *w, const TdComm *comm, const TdSite *site)
{
  for (int r = 0; r < w->size; r++)
    if (w->place[r] < w->n[r])
      {
        const Place *p = place_at (w, r);
        const int from = p->in[w->input[r]];

        if (from != r && w->place[from] < w->n[from])
          return td__fail (TD_ERR_ARG, "MultiNodeChainList", site,
                           "rank %d of %d: links wait in a circle: %s of rank %d for rank %d, "
                           "which is at %s",
                           comm->rank, comm->size, p->name, r, from, place_at (w, from)->name);
        return td__fail (
            TD_ERR_ARG, "MultiNodeChainList", site,
            "rank %d of %d: %s of rank %d waits for rank %d, which sends it nothing "
            "more",
            comm->rank, comm->size, p->name, r, from);
      }
  for (int a = 0; a < w->size; a++)
    for (int b = 0; b < w->size; b++)
      if (w->sent[a * w->size + b] > 0)
        return td__fail (TD_ERR_ARG, "MultiNodeChainList", site,
                         "rank %d of %d: rank %d sends to rank %d what no link there takes",
                         comm->rank, comm->size, a, b);
  return TD_OK;
}

static TdStatus
walk_lists (const List *list, const Place *all, int most, const TdSite *site)
{
  const TdComm *comm = list->comm;
  const size_t size = (size_t)comm->size;
  Walk w = { .all = all, .size = comm->size, .most = most };
  bool moved = true;
  TdStatus status;

  w.n = td__xcalloc (size, sizeof *w.n);
  w.place = td__xcalloc (size, sizeof *w.place);
  w.input = td__xcalloc (size, sizeof *w.input);
  w.sent = td__xcalloc (size * size, sizeof *w.sent);
  for (int r = 0; r < comm->size; r++)
    w.n[r] = (int)comm->all[r].number;
  while (moved)
    {
      moved = false;
      for (int r = 0; r < comm->size; r++)
        moved |= go_on (&w, r);
    }
  status = judge (&w, comm, site);
  free (w.n);
  free (w.place);
  free (w.input);
  free (w.sent);
  return status;
}

/* For all ranks: give each other the lists, and go through them. */
static TdStatus
check_lists (List *list, const TdSite *site)
{
  TdComm *comm = list->comm;
  TdMeet mine = td__meet_of (TD_MEET_CHAIN_LIST, NULL, site);
  char why[TD_WHY_WIRE] = "";
  Place *own, *all;
  TdStatus status;
  int most = 1;

  if (!td__comm_usable (comm, "MultiNodeChainList", site))
    return td__error_status ();
  mine.number = list->n;
  status = td__meet (comm, &mine, site);
  if (status != TD_OK)
    return status;
  for (int r = 0; r < comm->size; r++)
    most = comm->all[r].number > most ? (int)comm->all[r].number : most;
  own = td__xcalloc ((size_t)most, sizeof *own);
  all = td__xcalloc ((size_t)(most * comm->size), sizeof *all);
  if (list->n > 0)
    memcpy (own, list->places, (size_t)list->n * sizeof *own);
  if (td__wait_gather (comm, own, all, (size_t)most * sizeof *own, why, site))
    status = walk_lists (list, all, most, site);
  else
    status = td__comm_fail (comm, why, site);
  list->checked = status == TD_OK;
  free (own);
  free (all);
  return status;
}

/* --- the call --- */

/* What is on its way through this rank's links. */
typedef struct
{
  TdVar *delegate; /* of the last td_send that backward has not been led through, or NULL */
  TdVar **queue;   /* from this rank to itself */
  int n_queued, taken;
  TdVar *result;
} Pass;

static TdVar *
connected (Pass *p, TdVar *x)
{
  TdVar *delegate = p->delegate;

  p->delegate = NULL;
  return delegate != NULL ? td_pseudo_connect (delegate, x) : x;
}

static TdVar *
input_from (const List *list, Pass *p, int rank)
{
  TdVar *delegate = p->delegate;

  if (rank == list->comm->rank)
    return connected (p, p->queue[p->taken++]);
  p->delegate = NULL;
  return td_recv (list->comm, rank, delegate);
}

static void
output_to (const List *list, Pass *p, TdVar *y, int rank)
{
  if (rank == list->comm->rank)
    p->queue[p->n_queued++] = y;
  else /* one before it hangs on to this one */
    p->delegate = td_send (connected (p, y), list->comm, rank);
}

/* Whatever fails, all letters go and are taken: the others would take them for later ones. */
static void
call_one (TdLink *link, const List *list, int i, TdVar *const *in, int n_in, Pass *p)
{
  const Place *place = &list->places[i];
  TdVar *got[PARTNERS], *y = NULL;

  for (int k = 0; k < place->n_in; k++)
    got[k] = input_from (list, p, place->in[k]);
  if (place->n_in < 0)
    td_link_call_at (link->children[i], in, n_in, &y, 1, NULL);
  else
    td_link_call_at (link->children[i], got, place->n_in, &y, 1, NULL);
  if (place->n_out < 0)
    p->result = y;
  for (int k = 0; k < place->n_out; k++)
    output_to (list, p, y, place->out[k]);
}

static TdStatus
forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  List *list = self;
  Pass p = { .n_queued = 0 };

  if (link->n_children != list->n || n_out != 1)
    return td__fail (TD_ERR_STATE, "MultiNodeChainList", td__engine.site,
                     "one output, and links of td_multi_node_chain_list_add alone, expected");
  if (!list->checked && check_lists (list, td__engine.site) != TD_OK)
    return td__error_status ();
  p.queue = td__xcalloc ((size_t)(list->n * PARTNERS) + 1, sizeof (TdVar *));
  for (int i = 0; i < list->n; i++)
    call_one (link, list, i, in, n_in, &p);
  free (p.queue);
  out[0] = p.result != NULL     ? connected (&p, p.result)
           : p.delegate != NULL ? p.delegate
                                : td_zeros (TD_F32, TD_SCALAR);
  return td__link_status (out[0]);
}

static void
list_free (void *self)
{
  free (((List *)self)->places);
}

static void
list_copied (TdLink *to, const TdLink *from)
{
  const List *list = from->self;
  List *copy = to->self;

  *copy = *list;
  copy->places = td__xcalloc ((size_t)list->n + 1, sizeof *copy->places);
  if (list->n > 0)
    memcpy (copy->places, list->places, (size_t)list->n * sizeof *copy->places);
}

static const TdLinkClass list_class = { .size = sizeof (TdLinkClass),
                                        .name = "MultiNodeChainList",
                                        .self_bytes = sizeof (List),
                                        .forward = forward,
                                        .free = list_free,
                                        .copied = list_copied };

TdLink *
td_multi_node_chain_list_new_at (TdLink *parent, const char *name, TdComm *comm,
                                 const TdSite *site)
{
  TdLink *link;

  if (!td__comm_usable (comm, list_class.name, site))
    return td__link_inert ();
  link = td__link_make (&list_class, parent, name, site);
  if (!link->inert)
    ((List *)link->self)->comm = comm;
  return link;
}

TdLink *
td_multi_node_chain_list_new (TdLink *parent, const char *name, TdComm *comm)
{
  return td_multi_node_chain_list_new_at (parent, name, comm, NULL);
}

/* --- adding --- */

static bool
take_ranks (const List *list, const int *ranks, int n, int32_t *to, const char *what)
{
  if (n > PARTNERS || (n > 0 && ranks == NULL))
    {
      td__fail (TD_ERR_ARG, "td_multi_node_chain_list_add", NULL,
                "at most %d ranks %s expected", PARTNERS, what);
      return false;
    }
  for (int i = 0; i < n; i++)
    {
      if (ranks[i] < 0 || ranks[i] >= list->comm->size)
        {
          td__fail (TD_ERR_ARG, "td_multi_node_chain_list_add", NULL,
                    "rank %d of %d: a rank %s of 0 to %d expected, got %d", list->comm->rank,
                    list->comm->size, what, list->comm->size - 1, ranks[i]);
          return false;
        }
      to[i] = ranks[i];
    }
  return true;
}

TdLink *
td_multi_node_chain_list_add_many (TdLink *parent, TdLink *link, const int *rank_in, int n_in,
                                   const int *rank_out, int n_out)
{
  Place place;
  List *list;
  char name[16];

  if (!td__link_usable (parent, "td_multi_node_chain_list_add", NULL)
      || !td__link_usable (link, "td_multi_node_chain_list_add", NULL))
    return td__link_inert ();
  if (parent->cls != &list_class)
    {
      td__fail (TD_ERR_ARG, "td_multi_node_chain_list_add", NULL,
                "%s is a %s, not a MultiNodeChainList", parent->path->text, parent->cls->name);
      return td__link_inert ();
    }
  list = parent->self;
  if (!td__comm_usable (list->comm, "td_multi_node_chain_list_add", NULL))
    return td__link_inert ();
  memset (&place, 0, sizeof place); /* its bytes are sent */
  place.n_in = n_in <= 0 ? -1 : n_in;
  place.n_out = n_out <= 0 ? -1 : n_out;
  if (!take_ranks (list, rank_in, n_in, place.in, "in")
      || !take_ranks (list, rank_out, n_out, place.out, "out"))
    return td__link_inert ();
  for (int i = 0; i < list->n && n_out <= 0; i++)
    if (list->places[i].n_out < 0)
      {
        td__fail (TD_ERR_ARG, "td_multi_node_chain_list_add", NULL,
                  "%s has its output from %s already: only one link goes without ranks out",
                  parent->path->text, list->places[i].name);
        return td__link_inert ();
      }
  snprintf (place.name, sizeof place.name, "%.40s", link->path->text);
  snprintf (name, sizeof name, "%d", list->n);
  if (td_link_adopt (parent, name, link)->inert)
    return td__link_inert ();
  list->places = td__xrealloc (list->places, (size_t)(list->n + 1) * sizeof *list->places);
  list->places[list->n++] = place;
  list->checked = false;
  return link;
}

TdLink *
td_multi_node_chain_list_add (TdLink *list, TdLink *link, int rank_in, int rank_out)
{
  return td_multi_node_chain_list_add_many (list, link, &rank_in, rank_in != TD_NO_RANK,
                                            &rank_out, rank_out != TD_NO_RANK);
}
