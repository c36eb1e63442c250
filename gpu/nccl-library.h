/* What the module calls of NCCL.  Its header need not be there when this is built; where it is,
 * a test holds these numbers against it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "device.h"

typedef void *TdNcclComm; /* ncclComm_t; a stream is CUstream, which is cudaStream_t */

enum
{
  TD_NCCL_SUCCESS = 0,
  /* ncclDataType_t */
  TD_NCCL_UINT8 = 1,
  TD_NCCL_INT32 = 2,
  TD_NCCL_INT64 = 4,
  TD_NCCL_FLOAT16 = 6,
  TD_NCCL_FLOAT32 = 7,
  TD_NCCL_FLOAT64 = 8,
  TD_NCCL_BFLOAT16 = 9,
  TD_NCCL_SUM = 0 /* ncclRedOp_t */
};

/* result, name, arguments */
#define TD_NCCL_FUNCTIONS(X)                                                                   \
  X (int, ncclGetVersion, int *version)                                                        \
  X (const char *, ncclGetErrorString, int result)                                             \
  X (int, ncclGetUniqueId, TdTeamId *id)                                                       \
  X (int, ncclCommInitRank, TdNcclComm *comm, int n, TdTeamId id, int rank)                    \
  X (int, ncclCommDestroy, TdNcclComm comm)                                                    \
  X (int, ncclCommAbort, TdNcclComm comm)                                                      \
  X (int, ncclBroadcast, const void *in, void *out, size_t n, int dtype, int root,             \
     TdNcclComm comm, void *stream)                                                            \
  X (int, ncclAllReduce, const void *in, void *out, size_t n, int dtype, int op,               \
     TdNcclComm comm, void *stream)                                                            \
  X (int, ncclAllGather, const void *in, void *out, size_t n, int dtype, TdNcclComm comm,      \
     void *stream)                                                                             \
  X (int, ncclSend, const void *in, size_t n, int dtype, int peer, TdNcclComm comm,            \
     void *stream)                                                                             \
  X (int, ncclRecv, void *out, size_t n, int dtype, int peer, TdNcclComm comm, void *stream)   \
  X (int, ncclGroupStart, void)                                                                \
  X (int, ncclGroupEnd, void)

typedef struct TdNccl
{
#define TD_NCCL_FIELD(type, name, ...) type (*name) (__VA_ARGS__);
  TD_NCCL_FUNCTIONS (TD_NCCL_FIELD)
#undef TD_NCCL_FIELD
} TdNccl;

/** The table; NULL and *why, in one line, where NCCL is not here. */
const TdNccl *td_nccl (const char **why);

/** The slot teams. (nccl.c) */
extern const TdDeviceTeams td_cuda_teams;
