/* Updates of parameters are collected while they follow the same rule, and become one launch
 * for up to 128 parameters.
 *
 * Nobody can see that they are late: whatever looks, waits, copies or launches calls
 * td_cuda_enter, which launches them first.  During a capture nothing is collected, and where
 * operations are timed each update is launched by itself.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"

#include <stdlib.h>
#include <string.h>

enum
{
  MANY = TD_CUDA_UPDATES,
  SEEN_BITS = 11,
  SEEN = 1 << SEEN_BITS /* of arrays: more than twice as many as there can be */
};
_Static_assert(MANY *TD_CUDA_UPDATE_ARRAYS * 2 < SEEN, "a search that ends");

/* An array of the updates that wait. */
typedef struct
{
  const void *data;
  uint32_t batch; /* an older one's: free */
  bool written;
} Seen;

struct TdCudaUpdates
{
  TdUpdateKind kind;
  TdUpdate u;
  int n, n_params;
  uint32_t batch;
  TdTensor arrays[MANY * TD_CUDA_UPDATE_ARRAYS];
  Seen seen[SEEN];
};

void
td_cuda_updates_send (TdCuda *c)
{
  struct TdCudaUpdates *s = c->updates;
  TdTensor *pointers[MANY * TD_CUDA_UPDATE_ARRAYS];
  const int n_params = s != NULL ? s->n_params : 0;

  if (n_params == 0)
    return;
  s->n_params = 0; /* nothing below comes here again */
  s->batch++;
  for (int k = 0; k < s->n * n_params; k++)
    {
      pointers[k] = &s->arrays[k];
      if (k % s->n != 1 && s->arrays[k].size == 1)
        td_cuda_marks_wanted (c, s->arrays[k].data);
    }
  if (c->lost == TD_OK) /* an error is reported there; what comes next finds the device lost */
    td_cuda_update (&c->launcher, s->kind, &s->u, pointers, s->n, n_params);
  td_cuda_marks_made (c);
}

void
td_cuda_updates_close (TdCuda *c)
{
  free (c->updates);
  c->updates = NULL;
}

/* Of the same numbers: padding is none of them. */
static bool
same_rule (const TdUpdate *a, const TdUpdate *b)
{
  return memcmp (a, b, offsetof (TdUpdate, amsgrad)) == 0 && a->amsgrad == b->amsgrad
         && a->adabound == b->adabound && a->eps_inside_sqrt == b->eps_inside_sqrt;
}

static Seen *
find (struct TdCudaUpdates *s, const void *data)
{
  uint32_t at
      = (uint32_t)(((uint64_t)(uintptr_t)data >> 6) * 0x9E3779B97F4A7C15u >> (64 - SEEN_BITS));

  while (s->seen[at].batch == s->batch && s->seen[at].data != data)
    at = (at + 1) % SEEN;
  return &s->seen[at];
}

/* Whether this one can go with those that wait: in any order, that is. */
static bool
joins (struct TdCudaUpdates *s, TdUpdateKind kind, const TdUpdate *u, TdTensor *const *arrays,
       int n)
{
  if (s->n_params == MANY || s->kind != kind || s->n != n || !same_rule (&s->u, u)
      || s->arrays[0].dtype != arrays[0]->dtype)
    return false;
  for (int k = 0; k < n; k++)
    {
      const Seen *seen = find (s, arrays[k]->data);

      if (seen->batch == s->batch && (seen->written || k != 1))
        return false;
    }
  return true;
}

static void
add (struct TdCudaUpdates *s, TdTensor *const *arrays, int n)
{
  for (int k = 0; k < n; k++)
    {
      Seen *seen = find (s, arrays[k]->data);

      *seen = (Seen){ arrays[k]->data, s->batch, k != 1 };
      s->arrays[s->n_params * n + k] = *arrays[k];
      s->arrays[s->n_params * n + k].shape = NULL; /* the caller's; only sizes matter */
    }
  s->n_params++;
}

static TdStatus
launch_now (TdCuda *c, TdUpdateKind kind, const TdUpdate *u, TdTensor *const *arrays, int n)
{
  TdStatus status;

  td_cuda_updates_send (c);
  for (int k = 0; k < n; k++)
    td_cuda_writes (c, arrays[k], 1);
  status = td_cuda_update (&c->launcher, kind, u, arrays, n, 1);
  td_cuda_marks_made (c);
  return status;
}

TdStatus
td_cuda_updates_add (TdDevice *d, TdUpdateKind kind, const TdUpdate *u, TdTensor *const *arrays,
                     int n)
{
  TdCuda *c = td_cuda_thread (d);
  struct TdCudaUpdates *s = c->updates;
  const TdStatus status = td_cuda_update_check (kind, arrays, n, 1);

  if (status != TD_OK || c->lost != TD_OK)
    return status != TD_OK ? status : c->lost;
  if (s == NULL)
    {
      s = c->updates = calloc (1, sizeof *s);
      if (s != NULL)
        s->batch = 1;
    }
  if (s == NULL || c->capture != NULL)
    return launch_now (c, kind, u, arrays, n);
  /* Who is to see these as they were, is sent now. */
  for (int k = 0; k < n; k++)
    if (k != 1)
      td_cuda_host_copies_written (c, arrays[k]->data,
                                   (size_t)arrays[k]->size * td__bytes_of (arrays[k]->dtype));
  if (s->n_params > 0 && !joins (s, kind, u, arrays, n))
    td_cuda_updates_send (c);
  if (s->n_params == 0)
    {
      s->kind = kind;
      s->u = *u;
      s->n = n;
    }
  add (s, arrays, n);
  return c->lost;
}

void
td_cuda_updates_end (TdDevice *d)
{
  td_cuda_enter (d);
}
