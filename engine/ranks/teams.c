/* Teams of ranks' devices: which can be one, how they come together, and their exchanges.
 *
 * SPDX-License-Identifier: MIT */
#include "teams.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What ranks tell each other before they make a team. */
typedef struct
{
  int wish;
  char name[16], why[240]; /* why: its device can be in none; empty: it can */
  unsigned char id[TD_DEVICE_IDENTITY];
} Part;

/* What rank 0 tells the others then. */
typedef struct
{
  TdTeamId id;
  bool made;
  char why[200];
} Call;

static const char *const wish_texts[] = { [TD_FAR_NEVER] = "\"mpi\"",
                                          [TD_FAR_MACHINE] = "\"shm\"",
                                          [TD_FAR_CAN] = "NULL",
                                          [TD_FAR_MUST] = "\"nccl\"" };

/* A program may choose its device when it has the communicator, by td_comm_intra_rank: it will
 * be the GPU that "cuda" is for this rank.  NULL: *why. */
static TdDevice *
own_gpu (char *why, size_t size)
{
  const bool earlier = td__engine.has_error;
  TdDevice *d = td_device_get ("cuda");

  if (d != NULL)
    return d;
  snprintf (why, size, "has none: %.220s",
            earlier ? "see the error before" : td_error ()->message);
  if (!earlier)
    td_error_clear ();
  return NULL;
}

/* What this rank has to offer; *device: the one that it would be. */
static Part
part_of (TdDevice **device, TdFarWish wish)
{
  const TdDeviceTeams *teams;
  const char *missing;
  TdDevice *d = *device;
  Part p;

  memset (&p, 0, sizeof p); /* its bytes are sent */
  p.wish = wish;
  if (wish <= TD_FAR_MACHINE)
    return p;
  if (wish == TD_FAR_MUST && d->number == 0)
    d = *device = own_gpu (p.why, sizeof p.why);
  if (d == NULL)
    return p;
  teams = d->ops->teams;
  missing = teams != NULL ? teams->missing (d) : NULL;
  snprintf (p.name, sizeof p.name, "%s", d->name);
  if (teams == NULL)
    snprintf (p.why, sizeof p.why, "has none: it computes on %.15s", p.name);
  else if (missing != NULL)
    snprintf (p.why, sizeof p.why, "cannot use %.15s so: %.120s", p.name, missing);
  else if (!teams->identity (d, p.id))
    snprintf (p.why, sizeof p.why, "does not know which GPU %.15s is", p.name);
  return p;
}

/* The text of what keeps these parts from being a team; false: nothing does. */
static bool
cannot (const Part *all, int size, char *text, size_t room)
{
  for (int r = 0; r < size; r++)
    if (all[r].why[0] != '\0')
      {
        snprintf (text, room, "each rank needs a GPU with NCCL, and rank %d %.239s", r,
                  all[r].why);
        return true;
      }
  for (int r = 1; r < size; r++)
    for (int k = 0; k < r; k++)
      if (memcmp (all[r].id, all[k].id, sizeof all[r].id) == 0)
        {
          snprintf (
              text, room,
              "ranks %d and %d compute on one device (%.15s, %.15s), and NCCL takes one "
              "rank for each: TAPEDECK_DEVICE=cuda, or a CUDA_VISIBLE_DEVICES for each, gives "
              "each rank of a machine its own; "
              "\"mpi\" lets them share one",
              k, r, all[k].name, all[r].name);
          return true;
        }
  return false;
}

static TdFar *
far_of (TdComm *comm, TdDevice *device, TdTeam *team)
{
  TdFar *far = td__xcalloc (1, sizeof *far), **end = &comm->far;

  while (*end != NULL)
    end = &(*end)->next;
  *end = far;
  *far = (TdFar){ .device = device, .team = team, .used = true };
  return far;
}

/* For which a team is made: td_comm_new, td_comm_split, or an optimizer. */
static const char *
call_of (const TdComm *comm)
{
  return td__meet_name ((TdMeetKind)comm->mine.kind);
}

/* All say what they have.  It brings no numbers of a model, as who looks for ranks that never
 * average has to know, so nobody hears of it. */
static bool
agree (TdComm *c, const void *in, void *all, size_t bytes, char *why)
{
  return c->transport->gather (c->wire, in, all, bytes, why);
}

/* Have all opened theirs?  *first: the first that has not, where this is known. */
static bool
all_opened (TdComm *comm, bool opened, int *first, const TdSite *site)
{
  char *all = td__xcalloc ((size_t)comm->size, 1), why[TD_WHY_WIRE] = "";
  const char mine = opened;

  *first = 0;
  if (!agree (comm, &mine, all, 1, why))
    td__comm_fail (comm, why, site);
  else
    while (*first < comm->size && all[*first])
      ++*first;
  free (all);
  return *first == comm->size;
}

/* NCCL does not start: no error where arrays can go through the host. */
static void
go_without (const TdComm *comm, bool earlier, int first)
{
  if (comm->parted)
    return;
  if (comm->rank == first)
    fprintf (stderr,
             "tapedeck: rank %d of %d: arrays of GPUs go through the host, for NCCL does not "
             "start: %s\n",
             comm->rank, comm->size,
             earlier ? "see the error before" : td__engine.error.message);
  if (!earlier)
    td_error_clear ();
}

/* An id that rank 0 makes for all; false after td__fail, on all of them. */
static bool
share_id (TdComm *comm, TdDevice *d, TdTeamId *id, const TdSite *site)
{
  char why[TD_WHY_WIRE] = "";
  Call call;

  memset (&call, 0, sizeof call); /* its bytes are sent */
  if (comm->rank == 0)
    {
      call.made = d->ops->teams->id_new (d, &call.id) == TD_OK;
      if (!call.made)
        snprintf (call.why, sizeof call.why, "%.199s",
                  td__engine.has_error ? td__engine.error.message : "it has failed");
    }
  if (!td__wait_bcast (comm, &call, sizeof call, 0, why, site))
    td__comm_fail (comm, why, site);
  else if (!call.made && comm->rank != 0)
    td__fail (TD_ERR_DEVICE, call_of (comm), site, "rank %d of %d: rank 0 makes no team: %s",
              comm->rank, comm->size, call.why);
  *id = call.id;
  return call.made && !comm->parted;
}

/* All have devices that can.  NULL after td__fail, unless they only can: then also where NCCL
 * does not start, on all. */
static TdFar *
open_team (TdComm *comm, TdDevice *d, TdFarWish wish, const TdSite *site)
{
  const bool earlier = td__engine.has_error;
  TdTeam *team = NULL;
  TdTeamId id;
  TdWait wait;
  int first = 0;

  if (share_id (comm, d, &id, site))
    {
      wait = td__wait_begin (comm, TD_WAIT_EXCHANGE, 0, -1, site);
      team = d->ops->teams->open (d, &id, comm->rank, comm->size);
      td__wait_end (comm, &wait, team != NULL);
      if (wish == TD_FAR_MUST && team == NULL)
        td__comm_abort (comm); /* the others wait for it */
      if (wish == TD_FAR_MUST ? team != NULL : all_opened (comm, team != NULL, &first, site))
        return far_of (comm, d, team);
      if (team != NULL)
        d->ops->teams->close (d, team, false);
    }
  if (wish == TD_FAR_CAN)
    go_without (comm, earlier, first);
  return NULL;
}

/* A GPU of two ranks, with which nobody may have reckoned; that there is none is no news. */
static void
say_shared (const TdComm *comm, const Part *all, const char *text)
{
  const char *share = getenv ("TAPEDECK_SHARE_DEVICES");

  for (int r = 0; r < comm->size; r++)
    if (all[r].why[0] != '\0')
      return;
  if (comm->rank == 0 && (share == NULL || strcmp (share, "1") != 0))
    fprintf (stderr, "tapedeck: %s\n", text);
}

TdStatus
td__far_join (TdComm *comm, TdDevice *device, TdFarWish wish, const TdSite *site)
{
  Part *all = td__xcalloc ((size_t)comm->size, sizeof *all), mine = part_of (&device, wish);
  char why[TD_WHY_WIRE] = "", text[400];
  TdStatus status = TD_OK;
  int other = 1;

  if (!agree (comm, &mine, all, sizeof mine, why))
    status = td__comm_fail (comm, why, site);
  while (status == TD_OK && other < comm->size && all[other].wish == all[0].wish)
    other++;
  if (status == TD_OK && other < comm->size)
    status = td__fail (TD_ERR_ARG, call_of (comm), site,
                       "rank %d of %d: rank 0 asks for %s, rank %d for %s: all ranks must ask "
                       "for the same",
                       comm->rank, comm->size, wish_texts[all[0].wish], other,
                       wish_texts[all[other].wish]);
  else if (status == TD_OK && wish >= TD_FAR_CAN)
    {
      const bool lacks = cannot (all, comm->size, text, sizeof text);

      if (!lacks)
        status = open_team (comm, device, wish, site) != NULL
                         || (wish == TD_FAR_CAN && !comm->parted)
                     ? TD_OK
                     : td__error_status ();
      else if (wish == TD_FAR_CAN)
        say_shared (comm, all, text);
      else
        status = td__fail (TD_ERR_DEVICE, call_of (comm), site,
                           "rank %d of %d: \"nccl\" cannot be had: %s", comm->rank, comm->size,
                           text);
    }
  free (all);
  return status;
}

/* Which of the teams nobody uses on this rank: a bit for each of the first 64. */
static uint64_t
idle_teams (const TdComm *comm)
{
  uint64_t idle = 0, bit = 1;

  for (const TdFar *far = comm->far; far != NULL; far = far->next, bit <<= 1)
    idle |= !far->used && far->team != NULL ? bit : 0;
  return idle;
}

TdFar *
td__far_another (TdComm *comm, const TdSite *site)
{
  const uint64_t mine = idle_teams (comm);
  uint64_t *all, idle = UINT64_MAX;
  char why[TD_WHY_WIRE] = "";
  TdFar *far = comm->far;

  if (far == NULL)
    return NULL;
  all = td__xcalloc ((size_t)comm->size, sizeof *all);
  if (!agree (comm, &mine, all, sizeof mine, why))
    {
      td__comm_fail (comm, why, site);
      far = NULL;
    }
  for (int r = 0; r < comm->size; r++)
    idle &= all[r];
  free (all);
  if (far == NULL)
    return NULL;
  for (uint64_t bit = 1; far != NULL && !(idle & bit); bit <<= 1)
    far = far->next;
  if (far == NULL)
    far = open_team (comm, comm->far->device, TD_FAR_MUST, site);
  if (far != NULL)
    far->used = true;
  return far;
}

static void
team_close (TdFar *far, bool together)
{
  if (far->team != NULL)
    far->device->ops->teams->close (far->device, far->team, together);
  far->team = NULL;
}

void
td__far_give_up (TdFar *far)
{
  team_close (far, false);
}

void
td__far_leave (TdFar *far)
{
  far->used = false;
  if (far->alone)
    free (far);
}

/* All that anybody has followed is over on every rank. */
static void
let_all_end (TdComm *comm)
{
  const char mine = 0;
  char *all = td__xcalloc ((size_t)comm->size, 1), why[TD_WHY_WIRE];

  comm->far->device->ops->synchronize (comm->far->device);
  agree (comm, &mine, all, 1, why);
  free (all);
}

/* The first is the communicator's own.  What is on its way in the others some rank may never
 * bring: no rank waits for that. */
void
td__far_close (TdComm *comm, bool together)
{
  TdFar *next, *first = comm->far;

  if (together && first != NULL && first->next != NULL)
    let_all_end (comm);
  for (TdFar *far = first; far != NULL; far = next)
    {
      next = far->next;
      team_close (far, together && far == first);
      far->alone = true;
      if (far == first || !far->used)
        free (far);
    }
  comm->far = NULL;
}

bool
td__far_has (const TdComm *comm, const TdVar *v)
{
  return comm->far != NULL && comm->far->team != NULL && v != NULL && v->state == TD_VAR_LIVE
         && v->node->device == comm->far->device;
}

/* --- exchanges --- */

static size_t
bytes_of (const TdTensor *t)
{
  return (size_t)t->size * td__dtype_sizes[t->dtype];
}

/* Let what is issued from here on follow what was begun.  A team of which nobody can say when
 * it is done with its arrays is given up. */
static TdStatus
follow (TdFar *far)
{
  const TdDeviceTeams *teams = far->device->ops->teams;
  TdTeamMark *mark = teams->mark (far->device, far->team);
  const TdStatus status
      = mark != NULL ? teams->follow (far->device, mark) : td__error_status ();

  if (status != TD_OK)
    td__far_give_up (far);
  return status;
}

/* One without a root, as the table of teams has it. */
typedef TdStatus (*Exchange) (TdDevice *d, TdTeam *team, const TdTensor *x, TdTensor *y);

/* Begin one, which is told of as one of the host's is, though nobody waits; exchange NULL: it
 * is a bcast. */
static TdStatus
issue (TdComm *comm, TdWaitKind kind, Exchange exchange, const TdTensor *x, TdTensor *y,
       int root)
{
  TdFar *far = comm->far;
  TdStatus status;
  TdWait wait;

  comm->brought = true;
  if (y->size == 0) /* on all ranks */
    return TD_OK;
  wait = td__wait_begin (comm, kind, bytes_of (exchange != NULL ? x : y), root,
                         td__engine.call_site);
  status = exchange != NULL
               ? exchange (far->device, far->team, x, y)
               : far->device->ops->teams->bcast (far->device, far->team, x, y, root);
  if (status == TD_OK)
    status = follow (far);
  comm->brought = status == TD_OK;
  td__wait_end (comm, &wait, status == TD_OK);
  return status;
}

TdStatus
td__far_bcast (TdComm *comm, const TdTensor *x, TdTensor *y, int root)
{
  return issue (comm, TD_WAIT_BCAST, NULL, x, y, root);
}

TdStatus
td__far_sum (TdComm *comm, const TdTensor *x, TdTensor *y)
{
  return issue (comm, TD_WAIT_SUM, comm->far->device->ops->teams->sum, x, y, -1);
}

TdStatus
td__far_gather (TdComm *comm, const TdTensor *x, TdTensor *y)
{
  return issue (comm, TD_WAIT_GATHER, comm->far->device->ops->teams->gather, x, y, -1);
}

TdStatus
td__far_exchange (TdComm *comm, const TdTensor *x, TdTensor *y)
{
  return issue (comm, TD_WAIT_EXCHANGE, comm->far->device->ops->teams->exchange, x, y, -1);
}
