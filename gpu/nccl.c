/* Teams of GPUs by NCCL: each has a stream of its own, which follows the compute stream before
 * each exchange, and which the compute stream follows where somebody asks for that.  So sums of
 * gradients run beside the kernels that make the next ones, and the host waits for nothing.
 *
 * Exchanges of a device come one after the other, also those of two teams (of a communicator's
 * functions, and of gradients that go behind backward): each follows the one that was issued
 * before it.  NCCL wants that, or one order on all ranks, for a kernel that waits for other
 * ranks keeps another one from running; and so it is for who issues them to have one order on
 * all ranks (engine/ranks/overlap.h).
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"
#include "libraries.h"
#include "nccl-library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct TdTeam
{
  TdNcclComm comm;
  CUstream stream;
  CUevent issued; /* on the compute stream, what the exchange follows */
  int size;
};

struct TdTeamMark
{
  CUevent event;
  const TdTeam *team; /* on whose stream it was recorded */
  TdTeamMark *next;   /* of those that are not in use */
};

static struct
{
  bool here;
  TdNccl functions;
} library;

static const char *
open_library (void)
{
#define NAME(type, name, ...) { #name, offsetof (TdNccl, name) },
  static const struct
  {
    const char *name;
    size_t at;
  } names[] = { TD_NCCL_FUNCTIONS (NAME) };
#undef NAME
  static char why[100];
  void *handle = td_cuda_library ("libnccl.so.2");

  if (handle == NULL)
    return "NCCL is not here (libnccl.so.2 cannot be opened)";
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    {
      void *function = dlsym (handle, names[i].name);

      if (function == NULL)
        {
          snprintf (why, sizeof why, "NCCL is too old: it has no %s", names[i].name);
          return why;
        }
      *(void **)((char *)&library.functions + names[i].at) = function;
    }
  return NULL;
}

const TdNccl *
td_nccl (const char **why)
{
  *why = library.here ? NULL : open_library ();
  library.here = *why == NULL;
  return library.here ? &library.functions : NULL;
}

/* What a function of NCCL returned, as a status. */
static TdStatus
check (const TdCuda *c, int result, const char *what)
{
  char text[256];

  if (result == TD_NCCL_SUCCESS)
    return TD_OK;
  snprintf (text, sizeof text, "%s failed: %s", what,
            library.functions.ncclGetErrorString (result));
  return td_cuda_host->fail (TD_ERR_DEVICE, c->device.name, text);
}

static const char *
team_missing (TdDevice *d)
{
  const char *why;

  (void)d;
  td_nccl (&why);
  return why;
}

static bool
team_identity (TdDevice *d, unsigned char id[TD_DEVICE_IDENTITY])
{
  TdCuda *c = td_cuda_thread (d);
  CUuuid uuid;

  if (td_cuda_check (c, td_cuda.cuDeviceGetUuid (&uuid, c->handle), "cuDeviceGetUuid") != TD_OK)
    return false;
  memcpy (id, uuid.bytes, TD_DEVICE_IDENTITY);
  return true;
}

static TdStatus
team_id_new (TdDevice *d, TdTeamId *id)
{
  TdCuda *c = td_cuda_enter (d);

  return check (c, library.functions.ncclGetUniqueId (id), "ncclGetUniqueId");
}

static void
team_free (TdCuda *c, TdTeam *t)
{
  if (t->stream != NULL && c->lost == TD_OK)
    td_cuda.cuStreamDestroy (t->stream);
  if (t->issued != NULL && c->lost == TD_OK)
    td_cuda.cuEventDestroy (t->issued);
  free (t);
}

static TdTeam *
team_open (TdDevice *d, const TdTeamId *id, int rank, int size)
{
  TdCuda *c = td_cuda_enter (d);
  TdTeam *t = calloc (1, sizeof *t);

  if (t == NULL)
    {
      td_cuda_host->fail (TD_ERR_MEMORY, c->device.name, "no host memory for a team");
      return NULL;
    }
  t->size = size;
  if (c->lost != TD_OK
      || td_cuda_check (c, td_cuda.cuStreamCreate (&t->stream, CU_STREAM_NON_BLOCKING),
                        "cuStreamCreate")
             != TD_OK
      || td_cuda_check (c, td_cuda.cuEventCreate (&t->issued, CU_EVENT_DISABLE_TIMING),
                        "cuEventCreate")
             != TD_OK
      || check (c, library.functions.ncclCommInitRank (&t->comm, size, *id, rank),
                "ncclCommInitRank")
             != TD_OK)
    {
      team_free (c, t);
      return NULL;
    }
  return t;
}

/* To destroy a communicator whose exchanges wait for a rank that never comes would wait, too.
 */
static void
team_close (TdDevice *d, TdTeam *t, bool together)
{
  TdCuda *c = td_cuda_enter (d);

  if (!together || c->lost != TD_OK)
    library.functions.ncclCommAbort (t->comm);
  if (c->lost == TD_OK)
    td_cuda_check (c, td_cuda.cuStreamSynchronize (t->stream), "waiting for a team");
  if (together && c->lost == TD_OK)
    check (c, library.functions.ncclCommDestroy (t->comm), "ncclCommDestroy");
  team_free (c, t);
}

/* --- exchanges --- */

/* Numbers, by what they are; what is only carried goes as bytes. */
static const int dtypes[TD_N_DTYPES]
    = { [TD_F32] = TD_NCCL_FLOAT32,   [TD_F64] = TD_NCCL_FLOAT64, [TD_F16] = TD_NCCL_FLOAT16,
        [TD_BF16] = TD_NCCL_BFLOAT16, [TD_I32] = TD_NCCL_INT32,   [TD_I64] = TD_NCCL_INT64,
        [TD_U8] = TD_NCCL_UINT8,      [TD_BOOL] = TD_NCCL_UINT8 };

static size_t
bytes_of (const TdTensor *t)
{
  return (size_t)t->size * td__bytes_of (t->dtype);
}

/* Make the team's stream follow all that was issued; what is noted of x and y is as for a
 * kernel that reads and writes them. */
static TdStatus
begin (TdDevice *d, TdTeam *t, const TdTensor *x, TdTensor *y)
{
  TdCuda *c = td_cuda_enter (d);
  TdStatus status;

  td_cuda_refuses (c, "exchanges arrays with other processes");
  if (c->lost != TD_OK)
    return c->lost;
  td_cuda_reads (c, x, 1);
  td_cuda_writes (c, y, 1);
  td_cuda_marks_written (c, y->data, bytes_of (y)); /* not by what is launched next */
  status = td_cuda_check (c, td_cuda.cuEventRecord (t->issued, c->stream), "cuEventRecord");
  if (status == TD_OK)
    status = td_cuda_check (c, td_cuda.cuStreamWaitEvent (t->stream, t->issued, 0),
                            "cuStreamWaitEvent");
  if (status == TD_OK && c->last_exchange != NULL && c->last_exchange->team != t)
    status
        = td_cuda_check (c, td_cuda.cuStreamWaitEvent (t->stream, c->last_exchange->event, 0),
                         "cuStreamWaitEvent");
  return status;
}

static TdStatus
team_bcast (TdDevice *d, TdTeam *t, const TdTensor *x, TdTensor *y, int root)
{
  const TdStatus status = begin (d, t, x, y);

  if (status != TD_OK)
    return status;
  return check (d->priv,
                library.functions.ncclBroadcast (x->data, y->data, bytes_of (y), TD_NCCL_UINT8,
                                                 root, t->comm, t->stream),
                "ncclBroadcast");
}

static TdStatus
team_sum (TdDevice *d, TdTeam *t, const TdTensor *x, TdTensor *y)
{
  const TdStatus status = begin (d, t, x, y);

  if (status != TD_OK)
    return status;
  return check (d->priv,
                library.functions.ncclAllReduce (x->data, y->data, (size_t)x->size,
                                                 dtypes[x->dtype], TD_NCCL_SUM, t->comm,
                                                 t->stream),
                "ncclAllReduce");
}

static TdStatus
team_gather (TdDevice *d, TdTeam *t, const TdTensor *x, TdTensor *y)
{
  const TdStatus status = begin (d, t, x, y);

  if (status != TD_OK)
    return status;
  return check (d->priv,
                library.functions.ncclAllGather (x->data, y->data, bytes_of (x), TD_NCCL_UINT8,
                                                 t->comm, t->stream),
                "ncclAllGather");
}

/* All parts are in one group: one after the other they would wait for each other.  A group that
 * was begun is ended whatever becomes of its parts. */
static TdStatus
team_exchange (TdDevice *d, TdTeam *t, const TdTensor *x, TdTensor *y)
{
  const size_t part = bytes_of (x) / (size_t)t->size;
  TdStatus status = begin (d, t, x, y), end;

  if (status != TD_OK)
    return status;
  status = check (d->priv, library.functions.ncclGroupStart (), "ncclGroupStart");
  if (status != TD_OK)
    return status;
  for (int r = 0; r < t->size && status == TD_OK; r++)
    {
      status = check (d->priv,
                      library.functions.ncclSend ((const char *)x->data + (size_t)r * part,
                                                  part, TD_NCCL_UINT8, r, t->comm, t->stream),
                      "ncclSend");
      if (status == TD_OK)
        status = check (d->priv,
                        library.functions.ncclRecv ((char *)y->data + (size_t)r * part, part,
                                                    TD_NCCL_UINT8, r, t->comm, t->stream),
                        "ncclRecv");
    }
  end = check (d->priv, library.functions.ncclGroupEnd (), "ncclGroupEnd");
  return status == TD_OK ? end : status;
}

/* --- places in its work --- */

static void
team_drop (TdDevice *d, TdTeamMark *mark)
{
  TdCuda *c = td_cuda_thread (d);

  mark->next = c->team_marks;
  c->team_marks = mark;
}

/* One that is not in use, or a new one. */
static TdTeamMark *
take_mark (TdCuda *c)
{
  TdTeamMark *mark = c->team_marks;

  if (mark != NULL)
    {
      c->team_marks = mark->next;
      return mark;
    }
  mark = calloc (1, sizeof *mark);
  if (mark == NULL)
    td_cuda_host->fail (TD_ERR_MEMORY, c->device.name, "no host memory for a team's mark");
  else if (td_cuda_check (c, td_cuda.cuEventCreate (&mark->event, CU_EVENT_DISABLE_TIMING),
                          "cuEventCreate")
           != TD_OK)
    {
      free (mark);
      mark = NULL;
    }
  return mark;
}

void
td_cuda_team_marks_close (TdCuda *c)
{
  c->last_exchange = NULL;
  while (c->team_marks != NULL)
    {
      TdTeamMark *mark = c->team_marks;

      c->team_marks = mark->next;
      if (c->lost == TD_OK)
        td_cuda.cuEventDestroy (mark->event);
      free (mark);
    }
}

static TdTeamMark *
team_mark (TdDevice *d, TdTeam *t)
{
  TdCuda *c = td_cuda_thread (d);
  TdTeamMark *mark = take_mark (c);

  if (mark == NULL)
    return NULL;
  mark->team = t;
  if (td_cuda_check (c, td_cuda.cuEventRecord (mark->event, t->stream), "cuEventRecord")
      == TD_OK)
    return c->last_exchange = mark; /* one that is used anew is of a later one */
  team_drop (d, mark);
  return NULL;
}

static bool
team_passed (TdDevice *d, TdTeamMark *mark)
{
  const TdCuda *c = td_cuda_thread (d);

  return c->lost != TD_OK || td_cuda.cuEventQuery (mark->event) != CUDA_ERROR_NOT_READY;
}

static TdStatus
team_follow (TdDevice *d, TdTeamMark *mark)
{
  TdCuda *c = td_cuda_enter (d);
  TdStatus status = c->lost;

  if (status == TD_OK)
    status = td_cuda_check (c, td_cuda.cuStreamWaitEvent (c->stream, mark->event, 0),
                            "cuStreamWaitEvent");
  team_drop (d, mark);
  return status;
}

const TdDeviceTeams td_cuda_teams = { .missing = team_missing,
                                      .identity = team_identity,
                                      .id_new = team_id_new,
                                      .open = team_open,
                                      .close = team_close,
                                      .bcast = team_bcast,
                                      .sum = team_sum,
                                      .gather = team_gather,
                                      .exchange = team_exchange,
                                      .mark = team_mark,
                                      .passed = team_passed,
                                      .follow = team_follow,
                                      .drop = team_drop };
