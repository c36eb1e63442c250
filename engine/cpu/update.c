/* Parameter updates in place, piece by piece over the threads.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"
#include "vector.h"

/* Arrays of each kind: p, g and states; adam's vhat may be missing. */
static const int n_arrays[TD_UPDATE_N]
    = { [TD_UPDATE_SGD] = 2, [TD_UPDATE_MOMENTUM_SGD] = 3, [TD_UPDATE_ADAM] = 4 };

typedef struct
{
  TdUpdateLoop loop;
  const TdUpdate *u;
  char *data[5];
  size_t bytes;
} UpdateWork;

static void
update_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const UpdateWork *w = context;
  char *at[5];

  for (int k = 0; k < 5; k++)
    at[k] = w->data[k] != NULL ? w->data[k] + (size_t)begin * w->bytes : NULL;
  w->loop (w->u, at[0], at[1], at[2], at[3], at[4], end - begin);
}

TdStatus
td__cpu_update (TdDevice *d, TdUpdateKind kind, const TdUpdate *u, TdTensor *const *arrays,
                int n)
{
  UpdateWork w = { .u = u };
  TdDtype dtype = arrays[0]->dtype;

  if (dtype != TD_F32 && dtype != TD_F64)
    return TD_ERR_DTYPE;
  if (n < n_arrays[kind] || n > 5)
    return TD_ERR_ARG;
  for (int k = 0; k < n; k++)
    {
      if (arrays[k]->dtype != dtype)
        return TD_ERR_DTYPE;
      if (arrays[k]->size != arrays[0]->size)
        return TD_ERR_SHAPE;
      w.data[k] = arrays[k]->data;
    }
  w.loop = td__vector->update[kind][dtype];
  w.bytes = td__cpu_dtype_bytes[dtype];
  td__cpu_parallel (arrays[0]->size, TD_CPU_GRAIN, update_piece, &w);
  return TD_OK;
}
