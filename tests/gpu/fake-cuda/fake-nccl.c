/* NCCL for the fake driver: ranks are processes of one machine that meet in a folder, and move
 * real bytes through files there.
 *
 * A rank gives its part when it issues an exchange, and takes the others' when its stream comes
 * there; so no rank's host waits for another's, as it is with devices.  What a real NCCL would
 * let pass, hang on or answer wrongly is noted: ranks in different exchanges, of different
 * sizes or types, sends that nobody takes, groups without an end, arrays of other sizes than
 * the module has announced, a rank that does not come.  What runs on a wrong stream the streams
 * find by themselves; but not exchanges of two communicators at once, which are noted here.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-internal.h"

#include "cuda-device.h"
#include "nccl-library.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__ ((visibility ("default")))
#define PROTOTYPE(type, name, ...) EXPORT type name (__VA_ARGS__);
TD_NCCL_FUNCTIONS (PROTOTYPE)

enum
{
  MOST = 16,   /* ranks */
  PARTS = 64,  /* of a group */
  PATH = 160,  /* characters of a file's name */
  INVALID = 4, /* ncclInvalidArgument */
  MISUSED = 5  /* ncclInvalidUsage */
};

typedef struct
{
  char folder[100];
  int rank, size, device;
  uint64_t seq, sent[MOST], received[MOST];
  bool given_up; /* aborted, or somebody did not come */
  int waiting;   /* exchanges that no stream has come to */
  FakeEvent given;
} Comm;

typedef enum
{
  BROADCAST,
  ALL_REDUCE,
  ALL_GATHER,
  SEND,
  RECEIVE
} What;
static const char *const names[]
    = { "ncclBroadcast", "ncclAllReduce", "ncclAllGather", "ncclSend", "ncclRecv" };

/* What ranks must have in common, in front of the bytes that each gives. */
typedef struct
{
  int what, dtype, root;
  uint64_t n, bytes; /* bytes: that follow */
} Head;

/* One exchange, or one part of a group. */
typedef struct
{
  Comm *comm;
  Head head;
  uint64_t seq; /* of the communicator, or of the pair */
  int peer;
  const void *in;
  void *out;
  struct timespec since;
} Part;

typedef struct
{
  Part part[PARTS];
  int n;
  CUstream stream;
} Group;

static struct
{
  const Comm *comm; /* NULL: there was none */
  int stream;
  uint64_t time;
} last;
static Group open_group;
static int depth; /* of ncclGroupStart */

static const size_t dtype_bytes[]
    = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 }; /* as ncclDataType_t counts */

/* --- files --- */

static void
give (const char *path, const Head *head, const void *bytes)
{
  char unfinished[PATH + 8];
  FILE *f;

  snprintf (unfinished, sizeof unfinished, "%s.new", path);
  f = fopen (unfinished, "w");
  if (f == NULL || fwrite (head, sizeof *head, 1, f) != 1
      || (head->bytes > 0 && fwrite (bytes, head->bytes, 1, f) != 1) || fclose (f) != 0
      || rename (unfinished, path) != 0)
    abort ();
}

/* *Owner*: the caller. */
static void *
take (const char *path, Head *head)
{
  FILE *f = fopen (path, "r");
  void *bytes;

  if (f == NULL || fread (head, sizeof *head, 1, f) != 1)
    abort ();
  bytes = malloc (head->bytes + 1);
  if (bytes == NULL || (head->bytes > 0 && fread (bytes, head->bytes, 1, f) != 1))
    abort ();
  fclose (f);
  return bytes;
}

static bool
is_there (const char *path)
{
  return access (path, R_OK) == 0;
}

static const char *
path_of_rank (const Comm *c, uint64_t seq, int rank, char path[PATH])
{
  snprintf (path, PATH, "%s/%llu.%d", c->folder, (unsigned long long)seq, rank);
  return path;
}

static const char *
path_of_pair (const Comm *c, int from, int to, uint64_t seq, char path[PATH])
{
  snprintf (path, PATH, "%s/%d-%d.%llu", c->folder, from, to, (unsigned long long)seq);
  return path;
}

static double
seconds_allowed (void)
{
  const char *text = getenv ("FAKE_NCCL_SECONDS");

  return text != NULL ? atof (text) : 60;
}

static bool
is_late (const struct timespec *since)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (double)(now.tv_sec - since->tv_sec) + 1e-9 * (double)(now.tv_nsec - since->tv_nsec)
         > seconds_allowed ();
}

/* --- the sum --- */

static TdTensor
tensor_of (void *data, int64_t n, TdDtype dtype, TdShape *shape)
{
  *shape = (TdShape){ 1, { n } };
  return (TdTensor){ data, shape, n, dtype };
}

/* to += from, numbers of 16 bits as floats and rounded each time. */
static void
add_halves (void *to, const void *from, int64_t n, TdDtype dtype)
{
  TdDevice *cpu = td_cuda_host->cpu;
  TdShape shape;
  float *a = malloc ((size_t)n * sizeof *a + 1), *b = malloc ((size_t)n * sizeof *b + 1);
  TdTensor x = tensor_of (to, n, dtype, &shape), y = x, wide_x = x, wide_y = x;

  y.data = (void *)(uintptr_t)from;
  wide_x.data = a;
  wide_y.data = b;
  wide_x.dtype = wide_y.dtype = TD_F32;
  if (a == NULL || b == NULL || cpu->ops->cast (cpu, &x, &wide_x) != TD_OK
      || cpu->ops->cast (cpu, &y, &wide_y) != TD_OK)
    abort ();
  for (int64_t i = 0; i < n; i++)
    a[i] += b[i];
  if (cpu->ops->cast (cpu, &wide_x, &x) != TD_OK)
    abort ();
  free (a);
  free (b);
}

#define ADD(type)                                                                              \
  for (size_t i = 0; i < n; i++)                                                               \
  ((type *)to)[i] = (type)(((type *)to)[i] + ((const type *)from)[i])

static void
add (void *to, const void *from, size_t n, int dtype)
{
  if (dtype == TD_NCCL_FLOAT32)
    ADD (float);
  else if (dtype == TD_NCCL_FLOAT64)
    ADD (double);
  else if (dtype == TD_NCCL_INT32)
    ADD (int32_t);
  else if (dtype == TD_NCCL_INT64)
    ADD (int64_t);
  else if (dtype == TD_NCCL_UINT8)
    ADD (uint8_t);
  else
    add_halves (to, from, (int64_t)n, dtype == TD_NCCL_FLOAT16 ? TD_F16 : TD_BF16);
}

/* --- exchanges, when a stream comes there --- */

static bool
is_same (const Head *a, const Head *b)
{
  return a->what == b->what && a->dtype == b->dtype && a->root == b->root && a->n == b->n;
}

/* Every rank's part, in their order: the same on all. */
static void
finish_of_all (const Part *p)
{
  const size_t bytes = p->head.n * dtype_bytes[p->head.dtype];
  char path[PATH];

  for (int r = 0; r < p->comm->size; r++)
    {
      Head head;
      void *theirs = take (path_of_rank (p->comm, p->seq, r, path), &head);

      if (!is_same (&head, &p->head))
        {
          fake_violation ("exchange %llu of the communicator is %s of %llu numbers on rank %d "
                          "and %s of %llu on rank %d",
                          (unsigned long long)p->seq, names[p->head.what],
                          (unsigned long long)p->head.n, p->comm->rank, names[head.what],
                          (unsigned long long)head.n, r);
          free (theirs);
          return;
        }
      if (p->head.what == ALL_GATHER)
        memcpy ((char *)p->out + (size_t)r * bytes, theirs, bytes);
      else if (p->head.what == BROADCAST ? r == p->head.root : r == 0)
        memcpy (p->out, theirs, bytes);
      else if (p->head.what == ALL_REDUCE)
        add (p->out, theirs, p->head.n, p->head.dtype);
      free (theirs);
    }
}

static void
finish_receive (const Part *p)
{
  char path[PATH], taken[PATH + 8];
  Head head;
  void *theirs = take (path_of_pair (p->comm, p->peer, p->comm->rank, p->seq, path), &head);

  if (head.n != p->head.n || head.dtype != p->head.dtype)
    fake_violation ("rank %d receives %llu numbers where rank %d sends %llu", p->comm->rank,
                    (unsigned long long)p->head.n, p->peer, (unsigned long long)head.n);
  else
    memcpy (p->out, theirs, head.bytes);
  free (theirs);
  snprintf (taken, sizeof taken, "%s.taken", path);
  head.bytes = 0;
  give (taken, &head, NULL);
}

static bool
part_is_ready (Part *p)
{
  char path[PATH], taken[PATH + 8];
  bool ready = true;

  if (p->comm->given_up)
    return true;
  if (p->head.what == RECEIVE)
    ready = is_there (path_of_pair (p->comm, p->peer, p->comm->rank, p->seq, path));
  else if (p->head.what == SEND)
    {
      snprintf (taken, sizeof taken, "%s.taken",
                path_of_pair (p->comm, p->comm->rank, p->peer, p->seq, path));
      ready = is_there (taken);
    }
  else
    for (int r = 0; r < p->comm->size; r++)
      ready = ready && is_there (path_of_rank (p->comm, p->seq, r, path));
  if (ready || !is_late (&p->since))
    return ready;
  fake_violation ("rank %d waits in %s for another rank, which does not come", p->comm->rank,
                  names[p->head.what]);
  p->comm->given_up = true;
  return true;
}

/* Parts of a group wait for others together: what has come is taken while the rest is not
 * there, as sends to each other want it. */
static bool
is_ready (FakeCommand *command)
{
  Group *g = command->data;
  bool ready = true;

  for (int i = 0; i < g->n; i++)
    {
      Part *p = &g->part[i];

      if (p->out == NULL && p->head.what == RECEIVE)
        continue;
      if (!part_is_ready (p))
        ready = false;
      else if (p->head.what == RECEIVE && !p->comm->given_up)
        {
          finish_receive (p);
          p->out = NULL;
        }
    }
  return ready;
}

static void
run_finish (FakeCommand *command)
{
  Group *g = command->data;

  for (int i = 0; i < g->n; i++)
    {
      if (g->part[i].head.what < SEND && !g->part[i].comm->given_up)
        finish_of_all (&g->part[i]);
      g->part[i].comm->waiting--;
    }
}

static void
free_group (FakeCommand *command)
{
  free (command->data);
}

static void
run_give (FakeCommand *command)
{
  const Group *g = command->data;
  char path[PATH];

  for (int i = 0; i < g->n; i++)
    {
      const Part *p = &g->part[i];

      if (p->head.what == SEND)
        give (path_of_pair (p->comm, p->comm->rank, p->peer, p->seq, path), &p->head, p->in);
      else if (p->head.what != RECEIVE)
        give (path_of_rank (p->comm, p->seq, p->comm->rank, path), &p->head, p->in);
    }
}

/* --- issuing --- */

static Group *
copy_of (const Group *g)
{
  Group *copy = malloc (sizeof *copy);

  if (copy == NULL)
    abort ();
  *copy = *g;
  return copy;
}

/* The module has said what it reads and writes; a test that calls NCCL itself has not. */
static void
check_announced (const FakeCommand *command)
{
  FakeCommand *said = fake_command ("", NULL);

  fake_command_take_uses (said);
  for (int i = 0; i < command->n_uses && said->n_uses > 0; i++)
    {
      const FakeUse *use = &command->uses[i];
      bool found = false;

      for (int k = 0; k < said->n_uses; k++)
        found = found
                || (use->address >= said->uses[k].address
                    && use->address + use->bytes <= said->uses[k].address + said->uses[k].bytes
                    && (said->uses[k].writes || !use->writes));
      if (!found)
        fake_violation ("%s %s %zu bytes that the module has not announced", command->name,
                        use->writes ? "writes" : "reads", use->bytes);
    }
  fake_command_unref (said);
}

/* Kernels of two communicators wait for other ranks, and may keep each other from running. */
static void
check_alone (const Group *g)
{
  if (last.comm != NULL && last.comm != g->part[0].comm
      && g->stream->clock.at[last.stream] < last.time)
    fake_violation ("%s while an exchange of another communicator may run: no event is between "
                    "them",
                    names[g->part[0].head.what]);
}

static int
issue (const Group *g)
{
  const char *name = names[g->part[0].head.what];
  FakeCommand *gives = fake_command (name, run_give), *takes = fake_command (name, run_finish);
  Comm *c = g->part[0].comm;

  gives->data = copy_of (g);
  takes->data = copy_of (g);
  gives->free = takes->free = free_group;
  takes->ready = is_ready;
  gives->early = true;
  for (int i = 0; i < g->n; i++)
    {
      const Part *p = &g->part[i];
      const size_t bytes = p->head.n * dtype_bytes[p->head.dtype];

      if (p->in != NULL)
        fake_command_use (gives, (CUdeviceptr)p->in, bytes, false);
      if (p->out != NULL)
        fake_command_use (takes, (CUdeviceptr)p->out,
                          p->head.what == ALL_GATHER ? bytes * (size_t)c->size : bytes, true);
      p->comm->waiting++;
      fake.exchanged_bytes += (long)p->head.bytes;
    }
  fake.n_exchanges++;
  {
    FakeCommand *both = fake_command (name, NULL);

    for (int i = 0; i < gives->n_uses; i++)
      fake_command_use (both, gives->uses[i].address, gives->uses[i].bytes, false);
    for (int i = 0; i < takes->n_uses; i++)
      fake_command_use (both, takes->uses[i].address, takes->uses[i].bytes, true);
    check_announced (both);
    fake_command_unref (both);
  }
  gives->records = &c->given;
  gives->version = ++c->given.recorded;
  if (fake_enqueue (g->stream, gives) != CUDA_SUCCESS)
    return MISUSED;
  check_alone (g);
  if (fake_enqueue (g->stream, takes) != CUDA_SUCCESS)
    return MISUSED;
  last.comm = c;
  last.stream = g->stream->number;
  last.time = g->stream->clock.at[last.stream];
  fake_drain_to (&c->given);
  return TD_NCCL_SUCCESS;
}

static int
add_part (Part *p, CUstream stream)
{
  if (p->comm == NULL || (unsigned)p->head.dtype >= sizeof dtype_bytes / sizeof *dtype_bytes
      || p->peer >= p->comm->size)
    return INVALID;
  if (fake_enter (names[p->head.what]) != CUDA_SUCCESS)
    return 1; /* ncclUnhandledCudaError */
  if (fake_device () != p->comm->device)
    fake_violation ("%s on another device than the communicator's", names[p->head.what]);
  clock_gettime (CLOCK_MONOTONIC, &p->since);
  p->head.n += (uint64_t)fake.miscount;
  p->head.bytes = p->in != NULL ? p->head.n * dtype_bytes[p->head.dtype] : 0;
  p->seq = p->head.what == SEND      ? ++p->comm->sent[p->peer]
           : p->head.what == RECEIVE ? ++p->comm->received[p->peer]
                                     : ++p->comm->seq;
  if (depth == 0)
    {
      Group one = { .part = { *p }, .n = 1, .stream = stream };

      return issue (&one);
    }
  if (open_group.n == PARTS || (open_group.n > 0 && open_group.stream != stream))
    return MISUSED;
  open_group.part[open_group.n++] = *p;
  open_group.stream = stream;
  if (stream != NULL)
    stream->n_grouped++;
  return TD_NCCL_SUCCESS;
}

/* --- what the module calls --- */

int
ncclGetVersion (int *version)
{
  *version = 22809;
  return TD_NCCL_SUCCESS;
}

const char *
ncclGetErrorString (int result)
{
  return result == INVALID   ? "invalid argument"
         : result == MISUSED ? "invalid usage"
                             : "unhandled cuda error";
}

int
ncclGetUniqueId (TdTeamId *id)
{
  const char *tmp = getenv ("TMPDIR");
  Comm room;

  if (fake_enter ("ncclGetUniqueId") != CUDA_SUCCESS)
    return 1;
  memset (id, 0, sizeof *id);
  if ((size_t)snprintf (room.folder, sizeof room.folder, "%s/fake-nccl-XXXXXX",
                        tmp != NULL ? tmp : "/tmp")
          >= sizeof room.folder
      || mkdtemp (room.folder) == NULL)
    return 2; /* ncclSystemError */
  memcpy (id->bytes, room.folder, sizeof room.folder);
  return TD_NCCL_SUCCESS;
}

/* All come, each with a device of its own. */
static int
meet (Comm *c)
{
  struct timespec since;
  char path[PATH];
  Head mine = { .root = c->device };
  int result = TD_NCCL_SUCCESS;

  clock_gettime (CLOCK_MONOTONIC, &since);
  give (path_of_rank (c, 0, c->rank, path), &mine, NULL);
  for (int r = 0; r < c->size; r++)
    {
      Head head;

      while (!is_there (path_of_rank (c, 0, r, path)))
        {
          if (is_late (&since))
            {
              fake_violation ("rank %d waits in ncclCommInitRank for rank %d", c->rank, r);
              return 2;
            }
          usleep (200);
        }
      free (take (path, &head));
      if (r != c->rank && head.root == c->device)
        result = MISUSED; /* Duplicate GPU detected */
    }
  return result;
}

static void
reset_groups (void)
{
  depth = 0;
  memset (&open_group, 0, sizeof open_group);
  last.comm = NULL;
}

/* The last one clears up. */
static void
leave (Comm *c)
{
  char path[PATH];
  const Head mine = { .root = 0 };
  struct dirent *e;
  DIR *folder;

  give (path_of_rank (c, UINT64_MAX, c->rank, path), &mine, NULL);
  for (int r = 0; r < c->size; r++)
    if (!is_there (path_of_rank (c, UINT64_MAX, r, path)))
      return;
  folder = opendir (c->folder);
  while (folder != NULL && (e = readdir (folder)) != NULL)
    if (e->d_name[0] != '.')
      {
        snprintf (path, sizeof path, "%s/%.50s", c->folder, e->d_name);
        unlink (path);
      }
  if (folder != NULL)
    closedir (folder);
  rmdir (c->folder);
}

/* A fault may be of the call, or of "ncclCommInitRank after all": when all have come. */
int
ncclCommInitRank (TdNcclComm *comm, int n, TdTeamId id, int rank)
{
  Comm *c;
  int result;

  if (n < 1 || n > MOST || rank < 0 || rank >= n)
    return INVALID;
  c = calloc (1, sizeof *c);
  if (c == NULL)
    return 2;
  memcpy (c->folder, id.bytes, sizeof c->folder);
  c->rank = rank;
  c->size = n;
  c->device = fake_device ();
  fake_reset_more = reset_groups;
  result = fake_enter ("ncclCommInitRank") != CUDA_SUCCESS ? 1 : meet (c);
  if (result == TD_NCCL_SUCCESS && fake_enter ("ncclCommInitRank after all") != CUDA_SUCCESS)
    result = 1;
  if (result != TD_NCCL_SUCCESS)
    {
      leave (c);
      free (c);
    }
  else
    *comm = c;
  return result;
}

static int
end (Comm *c, const char *function, bool abort)
{
  if (c == NULL)
    return INVALID;
  if (depth > 0)
    fake_violation ("%s in an open group: ncclGroupEnd is missing", function);
  if (!abort && c->waiting > 0)
    fake_violation ("%s while exchanges wait", function);
  c->given_up = abort;
  if (abort)
    fake_drain_all ();
  leave (c);
  if (last.comm == c)
    last.comm = NULL;
  free (c);
  return fake_enter (function) == CUDA_SUCCESS ? TD_NCCL_SUCCESS : 1;
}

int
ncclCommDestroy (TdNcclComm comm)
{
  return end (comm, "ncclCommDestroy", false);
}

int
ncclCommAbort (TdNcclComm comm)
{
  return end (comm, "ncclCommAbort", true);
}

int
ncclBroadcast (const void *in, void *out, size_t n, int dtype, int root, TdNcclComm comm,
               void *stream)
{
  Part p = { .comm = comm,
             .head = { .what = BROADCAST, .dtype = dtype, .root = root, .n = n },
             .in = comm != NULL && ((Comm *)comm)->rank == root ? in : NULL,
             .out = out };

  return add_part (&p, stream);
}

int
ncclAllReduce (const void *in, void *out, size_t n, int dtype, int op, TdNcclComm comm,
               void *stream)
{
  Part p = {
    .comm = comm, .head = { .what = ALL_REDUCE, .dtype = dtype, .n = n }, .in = in, .out = out
  };

  return op == TD_NCCL_SUM ? add_part (&p, stream) : INVALID;
}

int
ncclAllGather (const void *in, void *out, size_t n, int dtype, TdNcclComm comm, void *stream)
{
  Part p = {
    .comm = comm, .head = { .what = ALL_GATHER, .dtype = dtype, .n = n }, .in = in, .out = out
  };

  return add_part (&p, stream);
}

int
ncclSend (const void *in, size_t n, int dtype, int peer, TdNcclComm comm, void *stream)
{
  Part p = {
    .comm = comm, .head = { .what = SEND, .dtype = dtype, .n = n }, .peer = peer, .in = in
  };

  return peer >= 0 ? add_part (&p, stream) : INVALID;
}

int
ncclRecv (void *out, size_t n, int dtype, int peer, TdNcclComm comm, void *stream)
{
  Part p = {
    .comm = comm, .head = { .what = RECEIVE, .dtype = dtype, .n = n }, .peer = peer, .out = out
  };

  return peer >= 0 ? add_part (&p, stream) : INVALID;
}

/* A program that forgot one of these is one where it does nothing. */
int
ncclGroupStart (void)
{
  if (!fake_ignores ("ncclGroupStart"))
    depth++;
  return TD_NCCL_SUCCESS;
}

int
ncclGroupEnd (void)
{
  Group g = open_group;

  if (fake_ignores ("ncclGroupEnd") || fake_ignores ("ncclGroupStart"))
    return TD_NCCL_SUCCESS;
  if (depth == 0)
    {
      fake_violation ("ncclGroupEnd of no group");
      return MISUSED;
    }
  if (--depth > 0 || g.n == 0)
    return TD_NCCL_SUCCESS;
  memset (&open_group, 0, sizeof open_group);
  if (g.stream != NULL)
    g.stream->n_grouped = 0;
  return issue (&g);
}
