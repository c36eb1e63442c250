/* Layers in half precision on the CPU: stored in two bytes a number, computed in float by the
 * kernels that know no halves, and rounded once at the end.
 *
 * SPDX-License-Identifier: MIT */
#include "halves.h"

#include <stdlib.h>

static TdStatus
begin (TdDevice *d, TdInFloats *f)
{
  if (f->bytes == 0)
    return TD_ERR_DTYPE;
  f->memory = aligned_alloc (TD_IN_FLOATS_ALIGNED, f->bytes);
  return f->memory != NULL ? td_in_floats_begin (f, d, &td__cpu_ops, f->memory) : TD_ERR_MEMORY;
}

static TdStatus
end (TdDevice *d, TdInFloats *f, TdStatus status)
{
  status = td_in_floats_end (f, d, &td__cpu_ops, status);
  free (f->memory);
  return status;
}

#define SLOT(name, parameters, arguments, ...)                                                 \
  TdStatus td__cpu_half_##name parameters                                                      \
  {                                                                                            \
    TdInFloats floats = { .n = 0 }, *f = &floats;                                              \
    TdStatus status;                                                                           \
                                                                                               \
    __VA_ARGS__;                                                                               \
    status = begin (d, f);                                                                     \
    return end (d, f, status == TD_OK ? td__cpu_##name arguments : status);                    \
  }
TD_IN_FLOATS_SLOTS (SLOT)
