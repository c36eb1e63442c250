/* The driver without the engine: what the device says of itself, and what launches, events,
 * graphs, copies and mapped pages cost there.  These are the ceilings and floors that other
 * rows are read beside.
 *
 *   bare-driver [--small]
 *
 * prints one JSON object per row; 77 where there is no driver or no device.
 *
 * SPDX-License-Identifier: MIT */
#include "measure.h"

#include "driver-call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel that does nothing. */
static const char code[] = ".version 7.8\n.target sm_75\n.address_size 64\n"
                           ".visible .entry nothing ()\n{\n  ret;\n}\n";

typedef struct
{
  CUdevice device;
  CUstream stream;
  CUfunction nothing;
  bool small;
} Rig;

static void
wait (Rig *r)
{
  CU (cuStreamSynchronize (r->stream));
}

static void
launch (Rig *r)
{
  int none = 0;
  void *values[] = { &none }; /* it takes none, and nobody looks */

  CU (cuLaunchKernel (r->nothing, 1, 1, 1, 32, 1, 1, 0, r->stream, values, NULL));
}

/* --- what it is --- */

static const struct
{
  const char *name;
  CUdevice_attribute attribute;
} numbers[] = {
  { "multiProcessorCount", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT },
  { "smClockRateKHz", CU_DEVICE_ATTRIBUTE_CLOCK_RATE },
  { "memClockRateKHz", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE },
  { "l2CacheSize", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE },
  { "warpSize", CU_DEVICE_ATTRIBUTE_WARP_SIZE },
  { "regsPerBlock", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK },
  { "maxRegistersPerSM", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR },
  { "maxSharedMemoryPerBlock", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK },
  { "maxSharedMemoryPerBlockOptin", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN },
  { "reservedSharedMemoryPerBlock", CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK },
  { "maxCtasPerSM", CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR },
  { "maxThreadsPerBlock", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK },
  { "maxThreadsPerSM", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR },
  { "isTccDriver", CU_DEVICE_ATTRIBUTE_TCC_DRIVER },
  { "supportCoopLaunch", CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH },
  { "pciDeviceId", CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID },
  { "memoryBusWidth", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH },
};

/* -1: it does not say. */
static int
attribute (Rig *r, CUdevice_attribute which)
{
  int value;

  return td_cuda.cuDeviceGetAttribute (&value, which, r->device) == CUDA_SUCCESS ? value : -1;
}

/* In the form in which cuDNN takes a device that is only described. */
static void
print_properties (Rig *r)
{
  const int major = attribute (r, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            minor = attribute (r, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  char name[100] = "";
  size_t bytes = 0;
  int version = 0;

  CU (cuDeviceGetName (name, sizeof name, r->device));
  CU (cuDeviceTotalMem (&bytes, r->device));
  CU (cuDriverGetVersion (&version));
  printf ("{\"row\": \"device\", \"vmm\": %s, \"property\": {\"version\": 1, \"deviceName\": "
          "\"%s\", \"cudaDeviceId\": 0, \"deviceVer\": %d, \"driverVer\": %d, "
          "\"runtimeVer\": %d, \"totalGlobalMem\": %zu",
          attribute (r, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 1 ? "true"
                                                                                      : "false",
          name, major * 100 + minor * 10, version, CUDA_VERSION, bytes);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    printf (", \"%s\": %d", numbers[i].name, attribute (r, numbers[i].attribute));
  for (int k = 0; k < 2; k++)
    {
      const CUdevice_attribute first
          = k == 0 ? CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X : CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X;

      printf (", \"%s\": [", k == 0 ? "maxGridSize" : "maxBlockSize");
      for (int i = 0; i < 3; i++)
        printf ("%s%d", i > 0 ? ", " : "", attribute (r, (CUdevice_attribute)((int)first + i)));
      printf ("]");
    }
  printf ("}}\n");
}

/* --- launches and events --- */

static void
time_launches (Rig *r)
{
  enum
  {
    ROUNDS = 9
  };
  const int n = r->small ? 20 : 2000;
  double host[ROUNDS], device[ROUNDS], one[ROUNDS], marked[ROUNDS];
  CUevent event[2];

  for (int i = 0; i < 2; i++)
    CU (cuEventCreate (&event[i], CU_EVENT_DEFAULT));
  for (int round = 0; round < ROUNDS; round++)
    {
      double start;

      launch (r);
      wait (r);
      start = measure_now ();
      for (int i = 0; i < n; i++)
        launch (r);
      host[round] = (measure_now () - start) / n;
      wait (r);
      device[round] = (measure_now () - start) / n;
      start = measure_now ();
      for (int i = 0; i < n; i++)
        {
          launch (r);
          CU (cuEventRecord (event[i % 2], r->stream));
        }
      wait (r);
      marked[round] = (measure_now () - start) / n;
      start = measure_now ();
      for (int i = 0; i < n / 10; i++)
        {
          launch (r);
          wait (r);
        }
      one[round] = (measure_now () - start) / (n / 10);
    }
  printf ("{\"row\": \"driver.launch\", \"us\": %.4g, \"host_us\": %.4g}\n",
          measure_median (device, ROUNDS) * 1e6, measure_median (host, ROUNDS) * 1e6);
  printf ("{\"row\": \"driver.launch_and_wait\", \"us\": %.4g}\n",
          measure_median (one, ROUNDS) * 1e6);
  printf ("{\"row\": \"driver.launch_and_event\", \"us\": %.4g, \"event_us\": %.4g}\n",
          measure_median (marked, ROUNDS) * 1e6,
          (measure_median (marked, ROUNDS) - measure_median (device, ROUNDS)) * 1e6);
  for (int i = 0; i < 2; i++)
    CU (cuEventDestroy (event[i]));
}

/* --- graphs --- */

static void
time_graph (Rig *r, int n)
{
  enum
  {
    ROUNDS = 9
  };
  double start = measure_now (), captured, ready, host[ROUNDS], whole[ROUNDS];
  CUgraphExec exec;
  CUgraph graph;

  CU (cuStreamBeginCapture (r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  for (int i = 0; i < n; i++)
    launch (r);
  CU (cuStreamEndCapture (r->stream, &graph));
  captured = measure_now ();
  CU (cuGraphInstantiate (&exec, graph, 0));
  ready = measure_now ();
  CU (cuGraphLaunch (exec, r->stream));
  wait (r);
  for (int round = 0; round < ROUNDS; round++)
    {
      double begin = measure_now ();

      CU (cuGraphLaunch (exec, r->stream));
      host[round] = measure_now () - begin;
      wait (r);
      whole[round] = measure_now () - begin;
    }
  printf ("{\"row\": \"driver.graph_%d\", \"us\": %.5g, \"nodes\": %d, \"capture_us\": %.5g, "
          "\"instantiate_us\": %.5g, \"launch_host_us\": %.4g, \"node_us\": %.4g, "
          "\"holds\": %s}\n",
          n, measure_median (whole, ROUNDS) * 1e6, n, (captured - start) * 1e6,
          (ready - captured) * 1e6, measure_median (host, ROUNDS) * 1e6,
          measure_median (whole, ROUNDS) * 1e6 / n,
          (ready - start) * 1e6 <= 10.0 * n + 1000
                  && measure_median (host, ROUNDS) * 1e6 <= 10 + 0.1 * n
              ? "true"
              : "false");
  CU (cuGraphExecDestroy (exec));
  CU (cuGraphDestroy (graph));
}

/* --- memory --- */

static void
time_pages (Rig *r, size_t bytes, int n)
{
  CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
  CUmemAccessDesc access
      = { .location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  double created = 0, mapped = 0, opened = 0, start;
  CUmemGenericAllocationHandle handle[64];
  CUdeviceptr base;

  if (td_cuda.cuMemAddressReserve (&base, bytes * (size_t)n, 0, 0, 0) != CUDA_SUCCESS)
    {
      printf ("{\"row\": \"driver.map_%zu_mib\", \"error\": \"no addresses\"}\n", bytes >> 20);
      return;
    }
  for (int i = 0; i < n; i++)
    {
      double t[4];

      t[0] = measure_now ();
      CU (cuMemCreate (&handle[i], bytes, &prop, 0));
      t[1] = measure_now ();
      CU (cuMemMap (base + (size_t)i * bytes, bytes, 0, handle[i], 0));
      t[2] = measure_now ();
      CU (cuMemSetAccess (base + (size_t)i * bytes, bytes, &access, 1));
      t[3] = measure_now ();
      created += t[1] - t[0];
      mapped += t[2] - t[1];
      opened += t[3] - t[2];
    }
  CU (cuMemsetD8Async (base, 1, bytes * (size_t)n, r->stream));
  wait (r);
  start = measure_now ();
  for (int i = 0; i < n; i++)
    {
      CU (cuMemUnmap (base + (size_t)i * bytes, bytes));
      CU (cuMemRelease (handle[i]));
    }
  printf (
      "{\"row\": \"driver.map_%zu_mib\", \"us\": %.5g, \"create_us\": %.5g, \"map_us\": %.5g, "
      "\"access_us\": %.5g, \"unmap_us\": %.5g}\n",
      bytes >> 20, (created + mapped + opened) / n * 1e6, created / n * 1e6, mapped / n * 1e6,
      opened / n * 1e6, (measure_now () - start) / n * 1e6);
  CU (cuMemAddressFree (base, bytes * (size_t)n));
}

static void
print_copy (const char *name, double *seconds, int n, size_t bytes)
{
  const double median = measure_median (seconds, n);

  printf ("{\"row\": \"driver.%s\", \"us\": %.6g, \"copied\": %zu, \"gb_per_s\": %.4g}\n", name,
          median * 1e6, bytes, (double)bytes / median * 1e-9);
}

/* Through pinned memory, and within the device. */
static void
time_copies (Rig *r)
{
  enum
  {
    ROUNDS = 9
  };
  const size_t bytes = r->small ? 1 << 16 : (size_t)256 << 20;
  double up[ROUNDS], down[ROUNDS], within[ROUNDS];
  CUdeviceptr device;
  void *host;

  CU (cuMemAllocHost (&host, bytes));
  CU (cuMemAlloc (&device, 2 * bytes));
  memset (host, 1, bytes);
  for (int round = -1; round < ROUNDS; round++)
    {
      double t[4];

      t[0] = measure_now ();
      CU (cuMemcpyHtoDAsync (device, host, bytes, r->stream));
      wait (r);
      t[1] = measure_now ();
      CU (cuMemcpyDtoDAsync (device + bytes, device, bytes, r->stream));
      wait (r);
      t[2] = measure_now ();
      CU (cuMemcpyDtoHAsync (host, device + bytes, bytes, r->stream));
      wait (r);
      t[3] = measure_now ();
      if (round < 0)
        continue;
      up[round] = t[1] - t[0];
      within[round] = t[2] - t[1];
      down[round] = t[3] - t[2];
    }
  print_copy ("copy_to_device", up, ROUNDS, bytes);
  print_copy ("copy_to_host", down, ROUNDS, bytes);
  print_copy ("copy_within", within, ROUNDS, 2 * bytes); /* read and written */
  CU (cuMemFree (device));
  CU (cuMemFreeHost (host));
}

int
main (int argc, char **argv)
{
  const MeasureOptions o = measure_options (argc, argv);
  const char *why = td_cuda_api_open ();
  Rig r = { .small = o.small };
  CUcontext context;
  CUlibrary library;
  CUkernel kernel;
  CUresult result;
  int n = 0;

  if (why == NULL
      && (td_cuda.cuInit (0) != CUDA_SUCCESS || td_cuda.cuDeviceGetCount (&n) != CUDA_SUCCESS
          || n == 0))
    why = "no device";
  if (why != NULL)
    {
      printf ("%s\n", why);
      return 77;
    }
  CU (cuDeviceGet (&r.device, 0));
  CU (cuDevicePrimaryCtxRetain (&context, r.device));
  CU (cuCtxSetCurrent (context));
  print_properties (&r);
  fflush (stdout);
  CU (cuStreamCreate (&r.stream, CU_STREAM_NON_BLOCKING));
  time_copies (&r);
  /* It is text, and the driver's compiler is a library of its own, which may not be here. */
  result = td_cuda.cuLibraryLoadData (&library, code, NULL, NULL, 0, NULL, NULL, 0);
  if (result == CUDA_SUCCESS)
    {
      CU (cuLibraryGetKernel (&kernel, library, "nothing"));
      r.nothing = (CUfunction)kernel;
      time_launches (&r);
      time_graph (&r, 10);
      time_graph (&r, r.small ? 50 : 1000);
    }
  else
    printf ("{\"row\": \"driver.launch\", \"error\": \"no kernel of PTX: %d\"}\n", (int)result);
  fflush (stdout);
  time_pages (&r, (size_t)2 << 20, r.small ? 2 : 64);
  time_pages (&r, (size_t)20 << 20, r.small ? 1 : 32);
  CU (cuStreamDestroy (r.stream));
  CU (cuDevicePrimaryCtxRelease (r.device));
  return 0;
}
