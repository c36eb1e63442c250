/* The few functions of NCCL that are called here; its header need not be there.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct NcclId
{
  char bytes[128];
} NcclId;

typedef struct Nccl
{
  int (*version) (int *version);
  int (*unique_id) (NcclId *id);
  int (*init) (void **comm, int n, NcclId id, int rank);
  int (*all_reduce) (const void *in, void *out, size_t n, int dtype, int op, void *comm,
                     void *stream);
  int (*destroy) (void *comm);
} Nccl;

enum
{
  NCCL_FLOAT32 = 7, /* ncclDataType_t */
  NCCL_SUM = 0
};

/** Fill the table from this library.  Returns false where it is not there. */
bool nccl_open (const char *library, Nccl *nccl);
