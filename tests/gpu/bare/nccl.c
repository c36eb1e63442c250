/* NCCL with one rank, without the engine: a communicator, all-reduces of several sizes, one
 * inside a CUDA graph that is launched again and again, its end.
 *
 *   bare-nccl [LIBRARY [--small]]
 *
 * prints one JSON object per row; the status is 77 where the library or a GPU is not there.
 *
 * SPDX-License-Identifier: MIT */
#include "nccl.h"

#include "measure.h"

#include "driver-call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  ROUNDS = 9
};

typedef struct
{
  Nccl nccl;
  void *comm;
  CUstream stream;
  CUdeviceptr in, out;
  float *sent, *got; /* pinned */
  size_t largest;    /* floats */
  int failed;
} Rig;

/* The sum of one rank's numbers is those numbers. */
static bool
came_through (Rig *r, size_t n)
{
  CU (cuMemcpyDtoHAsync (r->got, r->out, n * sizeof (float), r->stream));
  CU (cuStreamSynchronize (r->stream));
  return memcmp (r->sent, r->got, n * sizeof (float)) == 0;
}

static void
forget (Rig *r, size_t n)
{
  CU (cuMemsetD8Async (r->out, 0xff, n * sizeof (float), r->stream));
}

static int
reduce (Rig *r, size_t n)
{
  return r->nccl.all_reduce ((const void *)r->in, (void *)r->out, n, NCCL_FLOAT32, NCCL_SUM,
                             r->comm, r->stream);
}

static void
print_row (Rig *r, const char *name, size_t n, bool holds, int code, double us)
{
  printf ("{\"row\": \"nccl.%s_%zu\", \"holds\": %s, \"code\": %d, \"us\": %.5g}\n", name,
          n * sizeof (float), holds ? "true" : "false", code, us);
  fflush (stdout);
  r->failed += !holds;
}

static void
time_sizes (Rig *r)
{
  for (size_t n = 1 << 10; n <= r->largest; n <<= 7)
    {
      double samples[ROUNDS];
      int code = 0;

      forget (r, n);
      for (int i = -1; i < ROUNDS && code == 0; i++)
        {
          double start;

          CU (cuStreamSynchronize (r->stream));
          start = measure_now ();
          code = reduce (r, n);
          CU (cuStreamSynchronize (r->stream));
          samples[i < 0 ? 0 : i] = measure_now () - start;
        }
      print_row (r, "all_reduce", n, code == 0 && came_through (r, n), code,
                 code == 0 ? measure_median (samples, ROUNDS) * 1e6 : -1);
    }
}

static void
time_graph (Rig *r, size_t n)
{
  double samples[ROUNDS];
  CUgraphExec exec;
  CUgraph graph;
  int code;

  forget (r, n);
  CU (cuStreamSynchronize (r->stream));
  CU (cuStreamBeginCapture (r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  code = reduce (r, n);
  CU (cuStreamEndCapture (r->stream, &graph));
  if (code != 0)
    {
      print_row (r, "graph", n, false, code, -1);
      return;
    }
  CU (cuGraphInstantiate (&exec, graph, 0));
  for (int i = 0; i < ROUNDS; i++)
    {
      double start = measure_now ();

      CU (cuGraphLaunch (exec, r->stream));
      CU (cuStreamSynchronize (r->stream));
      samples[i] = measure_now () - start;
    }
  print_row (r, "graph", n, came_through (r, n), code, measure_median (samples, ROUNDS) * 1e6);
  CU (cuGraphExecDestroy (exec));
  CU (cuGraphDestroy (graph));
}

static void
prepare (Rig *r)
{
  const size_t bytes = r->largest * sizeof (float);
  CUcontext context;
  CUdevice device;
  void *host[2];

  CU (cuDeviceGet (&device, 0));
  CU (cuDevicePrimaryCtxRetain (&context, device));
  CU (cuCtxSetCurrent (context));
  CU (cuStreamCreate (&r->stream, CU_STREAM_NON_BLOCKING));
  CU (cuMemAlloc (&r->in, bytes));
  CU (cuMemAlloc (&r->out, bytes));
  for (int i = 0; i < 2; i++)
    CU (cuMemAllocHost (&host[i], bytes));
  r->sent = host[0];
  r->got = host[1];
  for (size_t i = 0; i < r->largest; i++)
    r->sent[i] = (float)i;
  CU (cuMemcpyHtoDAsync (r->in, r->sent, bytes, r->stream));
  CU (cuStreamSynchronize (r->stream));
}

int
main (int argc, char **argv)
{
  const char *why = td_cuda_api_open ();
  Rig r = { 0 };
  NcclId id;
  int version = 0, code, n = 0;
  double start;

  if (why == NULL && !nccl_open (argc > 1 ? argv[1] : "libnccl.so.2", &r.nccl))
    why = "no NCCL here";
  if (why == NULL
      && (td_cuda.cuInit (0) != CUDA_SUCCESS || td_cuda.cuDeviceGetCount (&n) != CUDA_SUCCESS
          || n == 0))
    why = "no device";
  if (why != NULL)
    {
      printf ("%s\n", why);
      return 77;
    }
  r.largest = (size_t)1 << (argc > 2 ? 17 : 24);
  prepare (&r);
  r.nccl.version (&version);
  start = measure_now ();
  code = r.nccl.unique_id (&id);
  if (code == 0)
    code = r.nccl.init (&r.comm, 1, id, 0);
  printf ("{\"row\": \"nccl\", \"holds\": %s, \"code\": %d, \"version\": %d, "
          "\"init_ms\": %.4g}\n",
          code == 0 ? "true" : "false", code, version, (measure_now () - start) * 1e3);
  fflush (stdout);
  if (code != 0)
    return 1;
  time_sizes (&r);
  time_graph (&r, 1 << 17);
  return r.nccl.destroy (r.comm) != 0 || r.failed > 0;
}
