/* Updates in place, piece by piece over the threads.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"
#include "vector.h"
#include "../scalar-updates.h"

enum
{
  ARRAYS = 5,
  FEW = 4 * TD_CPU_GRAIN,
  FEWEST = 4096
};

/* Arrays of each kind: p, g and the states. */
#define COUNT(S, T, kind, name, n_arrays, setup, body) [TD_UPDATE_##kind] = n_arrays,
static const int n_arrays[TD_UPDATE_N] = { TD_UPDATES (COUNT, f32, float, sqrtf) };

typedef struct
{
  TdUpdateLoop loop;
  const TdUpdate *u;
  TdTensor *const *arrays;
  int n;
} UpdateWork;

static void
update_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const UpdateWork *w = context;
  char *at[ARRAYS] = { NULL };

  (void)worker;
  for (int k = 0; k < w->n; k++)
    at[k] = (char *)w->arrays[k]->data + (size_t)begin * td__dtype_sizes[w->arrays[k]->dtype];
  w->loop (w->u, at[0], at[1], at[2], at[3], at[4], end - begin);
}

/* Half precision: each step is one of float, rounded once into the arrays. */
static void
update_half_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const UpdateWork *w = context;
  float block[ARRAYS][TD_HALF_BLOCK];

  (void)worker;
  for (int64_t i = begin; i < end; i += TD_HALF_BLOCK)
    {
      int64_t n = end - i < TD_HALF_BLOCK ? end - i : TD_HALF_BLOCK;

      for (int k = 0; k < w->n; k++)
        td__half_load (w->arrays[k], i, n, block[k]);
      w->loop (w->u, block[0], block[1], block[2], block[3], block[4], n);
      for (int k = 0; k < w->n; k++)
        if (k != 1) /* g is only read */
          td__half_store (w->arrays[k], i, n, block[k]);
    }
}

/* Elements of a piece: of few, all of them, as waking a thread takes longer than it saves, or
 * one piece for each thread that is awake. */
static int64_t
piece_of (int64_t size)
{
  const int64_t share = (size / td__cpu_threads () + 64) / 16 * 16;

  if (size >= FEW)
    return TD_CPU_GRAIN;
  return !td__cpu_are_awake () ? size : share < FEWEST ? FEWEST : share;
}

TdStatus
td__cpu_update (TdDevice *d, TdUpdateKind kind, const TdUpdate *u, TdTensor *const *arrays,
                int n)
{
  UpdateWork w = { .u = u, .arrays = arrays, .n = n };
  TdDtype dtype = arrays[0]->dtype;
  bool half = td__is_half (dtype);

  (void)d;
  if (dtype != TD_F32 && dtype != TD_F64 && !half)
    return TD_ERR_DTYPE;
  if (n != n_arrays[kind])
    return TD_ERR_ARG;
  for (int k = 0; k < n; k++)
    {
      if (arrays[k]->dtype != dtype)
        return TD_ERR_DTYPE;
      if (arrays[k]->size != arrays[0]->size)
        return TD_ERR_SHAPE;
    }
  if (TD_UPDATE_SKIPS (u, kind))
    return TD_OK;
  w.loop = td__vector->update[kind][half ? TD_F32 : dtype];
  td__cpu_parallel (arrays[0]->size, piece_of (arrays[0]->size),
                    half ? update_half_piece : update_piece, &w);
  return TD_OK;
}
