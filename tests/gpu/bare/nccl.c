/* NCCL with one rank, by dlopen: a communicator, an all-reduce of memory of our pool, its end.
 *
 *   bare-nccl [LIBRARY]
 *
 * prints one JSON object; the status is 77 where the library is not there.
 *
 * SPDX-License-Identifier: MIT */
#include "measure.h"

#include "core/core.h"
#include "device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum
{
  N = 1 << 20,
  FLOAT32 = 7, /* ncclDataType_t */
  SUM = 0
};

typedef struct
{
  char bytes[128];
} UniqueId;

typedef struct
{
  int (*version) (int *version);
  int (*unique_id) (UniqueId *id);
  int (*init) (void **comm, int n, UniqueId id, int rank);
  int (*all_reduce) (const void *in, void *out, size_t n, int dtype, int op, void *comm,
                     void *stream);
  int (*destroy) (void *comm);
} Nccl;

static bool
open_library (const char *name, Nccl *nccl)
{
  static const char *const names[] = { "ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank",
                                       "ncclAllReduce", "ncclCommDestroy" };
  void *library = dlopen (name, RTLD_NOW | RTLD_LOCAL);

  for (int i = 0; library != NULL && i < 5; i++)
    {
      *(void **)((char *)nccl + (size_t)i * sizeof (void *)) = dlsym (library, names[i]);
      if (((void **)(void *)nccl)[i] == NULL)
        return false;
    }
  return library != NULL;
}

/* The sum of one rank's numbers is those numbers. */
static int
reduce (const Nccl *nccl, TdDevice *d, int version)
{
  struct TdBlock *in = td__pool_take (d->pool, N * 4, TD_MEM_COMMUNICATION),
                 *out = td__pool_take (d->pool, N * 4, TD_MEM_COMMUNICATION);
  static float sent[N], got[N];
  void *comm = NULL;
  UniqueId id;
  double start = measure_now (), init_ms;
  int code;

  for (int i = 0; i < N; i++)
    sent[i] = (float)i;
  d->ops->upload (d, in->address, sent, sizeof sent);
  td_device_synchronize (d); /* NCCL's stream is the default one */
  code = nccl->unique_id (&id);
  if (code == 0)
    code = nccl->init (&comm, 1, id, 0);
  init_ms = (measure_now () - start) * 1e3;
  if (code == 0)
    code = nccl->all_reduce (in->address, out->address, N, FLOAT32, SUM, comm, NULL);
  if (code == 0)
    code = nccl->destroy (comm); /* waits for its work */
  td_device_synchronize (d);
  d->ops->download (d, got, out->address, sizeof got);
  code = code == 0 && memcmp (sent, got, sizeof got) != 0 ? -1 : code;
  td__pool_give (in);
  td__pool_give (out);
  printf ("{\"row\": \"nccl\", \"holds\": %s, \"code\": %d, \"version\": %d, "
          "\"init_ms\": %.4g}\n",
          code == 0 ? "true" : "false", code, version, init_ms);
  return code != 0;
}

int
main (int argc, char **argv)
{
  Nccl nccl = { 0 };
  int version = 0, failed;
  TdDevice *d;

  td_init (&argc, &argv);
  if (!open_library (argc > 1 ? argv[1] : "libnccl.so.2", &nccl))
    {
      printf ("no NCCL here: %s\n", dlerror ());
      td_finish ();
      return 77;
    }
  nccl.version (&version);
  d = td_device (td_zeros (TD_F32, TD_SHAPE (1)));
  td_item (td_zeros (TD_F32, TD_SHAPE (1)));
  failed = reduce (&nccl, d, version);
  return measure_end () || failed;
}
