/* The card that plans are made for, and what the files of cuDNN want of the module for calls
 * that are not made without one.
 *
 * SPDX-License-Identifier: MIT */
#include "h200.h"

#include "cuda-device.h"
#include "td-test.h"

TdCudaApi td_cuda;
const TdModuleHost *td_cuda_host;

TdCuda *
td_cuda_enter (TdDevice *d)
{
  fail ();
  return NULL;
}

void
td_cuda_reads (TdCuda *c, const TdTensor *tensors, int n)
{
  fail ();
}

void
td_cuda_writes (TdCuda *c, const TdTensor *tensors, int n)
{
  fail ();
}

void *
td_cuda_scratch (TdCuda *c, size_t bytes)
{
  fail ();
  return NULL;
}

void
td_cuda_scratch_end (TdCuda *c)
{
}

TdStatus
td_cuda_check (TdCuda *c, CUresult result, const char *what)
{
  fail ();
  return TD_ERR_STATE;
}

TdStatus
td_cuda_download (TdDevice *d, void *host, const void *src, size_t bytes)
{
  fail ();
  return TD_ERR_STATE;
}

bool
td_cuda_refuses (TdCuda *c, const char *why)
{
  fail ();
  return true;
}

TdStatus
td_cuda_binary (TdCudaLauncher *l, TdBinaryKind kind, const TdTensor *x, const TdTensor *y,
                TdTensor *z, bool accumulate)
{
  fail ();
  return TD_ERR_STATE;
}

/* A hand-made description of the card that the project measures on. */
const char td_h200[]
    = "{\"version\":1,\"deviceName\":\"NVIDIA H200\",\"cudaDeviceId\":0,\"deviceVer\":900,"
      "\"multiProcessorCount\":132,\"driverVer\":13000,\"runtimeVer\":13000,"
      "\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560,"
      "\"warpSize\":32,\"regsPerBlock\":65536,\"maxRegistersPerSM\":65536,"
      "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
      "\"reservedSharedMemoryPerBlock\":1024,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
      "\"maxThreadsPerSM\":2048,\"maxGridSize\":[2147483647,65535,65535],"
      "\"maxBlockSize\":[1024,1024,64],\"isTccDriver\":0,\"supportCoopLaunch\":1,"
      "\"pciDeviceId\":0,\"totalGlobalMem\":150754820096,\"memoryBusWidth\":6144}";
