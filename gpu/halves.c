/* Computing in fp32 what neither a library nor a kernel of ours computes in halves: products
 * and convolutions that libraries refuse, attention without cuDNN, sums of elements that
 * overlap, operands of unusual types together.  A slot that returns TD_ERR_DTYPE is called
 * again with copies in fp32 (engine/compute/in-floats.h).
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"
#include "in-floats.h"

/* TD_ERR_DTYPE: there are no halves, the slot's answer stands. */
static TdStatus
begin (TdDevice *d, TdInFloats *f)
{
  struct TdBlock *block;
  char *room;

  if (f->bytes == 0)
    return TD_ERR_DTYPE;
  room = td_cuda_host->memory_take (d, f->bytes, TD_MEM_WORKSPACE, &block);
  if (room == NULL)
    return TD_ERR_MEMORY;
  f->memory = block;
  return td_in_floats_begin (f, d, td_cuda_slots (), room);
}

/* The memory is the pool's again: what follows on the stream follows what used it. */
static TdStatus
end (TdDevice *d, TdInFloats *f, TdStatus status)
{
  status = td_in_floats_end (f, d, td_cuda_slots (), status);
  if (f->memory != NULL)
    td_cuda_host->memory_release (f->memory);
  return status;
}

/* The slot as it is, and where it refuses with floats. */
#define SLOT(name, parameters, arguments, ...)                                                 \
  static TdStatus name parameters                                                              \
  {                                                                                            \
    TdStatus status = td_cuda_slots ()->name arguments;                                        \
    TdInFloats floats = { .n = 0 }, *f = &floats;                                              \
    const bool wanted = d->stats_wanted;                                                       \
                                                                                               \
    if (status != TD_ERR_DTYPE)                                                                \
      return status;                                                                           \
    __VA_ARGS__;                                                                               \
    d->stats_wanted = false; /* nobody asks for the floats in between */                       \
    status = begin (d, f);                                                                     \
    status = status == TD_OK ? td_cuda_slots ()->name arguments : status;                      \
    d->stats_wanted = wanted;                                                                  \
    return end (d, f, status);                                                                 \
  }
TD_IN_FLOATS_SLOTS (SLOT)

void
td_cuda_halves_begin (TdDeviceOps *ops)
{
#define PUT(name, ...) ops->name = name;
  TD_IN_FLOATS_SLOTS (PUT)
}
