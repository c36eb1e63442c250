/* Attention in halves where cuDNN does not take it: our kernel computes it in fp32.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"

enum
{
  MAX_IN = 7,
  MAX_OUT = 3,
  ALIGNED = 256
};

bool
td_cuda_is_half (TdDtype dtype)
{
  return dtype == TD_F16 || dtype == TD_BF16;
}

static size_t
wide_bytes (const TdTensor *t)
{
  const size_t bytes = (size_t)t->size * sizeof (float);

  return td_cuda_is_half (t->dtype) ? (bytes + ALIGNED - 1) / ALIGNED * ALIGNED : 0;
}

/* t itself, or as floats at *room, which moves on. */
static TdTensor
widened (TdCuda *c, const TdTensor *t, char **room)
{
  TdTensor wide = *t;

  if (!td_cuda_is_half (t->dtype))
    return wide;
  wide.dtype = TD_F32;
  wide.data = *room;
  *room += wide_bytes (t);
  td_cuda_writes (c, &wide, 1);
  return wide;
}

TdStatus
td_cuda_attention_in_floats (TdCuda *c, TdAttentionKind kind, const TdAttention *attrs,
                             const TdTensor *in, int n_in, TdTensor *out, int n_out)
{
  TdTensor wide_in[MAX_IN], wide_out[MAX_OUT];
  size_t bytes = 0;
  char *room;
  TdStatus status = TD_OK;

  for (int i = 0; i < n_in; i++)
    bytes += wide_bytes (&in[i]);
  for (int i = 0; i < n_out; i++)
    bytes += wide_bytes (&out[i]);
  room = td_cuda_scratch (c, bytes + 1);
  if (room == NULL)
    return TD_ERR_MEMORY;
  for (int i = 0; i < n_in && status == TD_OK; i++)
    {
      wide_in[i] = widened (c, &in[i], &room);
      if (td_cuda_is_half (in[i].dtype) && in[i].size > 0)
        status = td_cuda_cast (&c->launcher, &in[i], &wide_in[i]);
    }
  for (int i = 0; i < n_out; i++)
    wide_out[i] = widened (c, &out[i], &room);
  if (status == TD_OK)
    status = td_cuda_attention (&c->launcher, kind, attrs, wide_in, n_in, wide_out, n_out);
  for (int i = 0; i < n_out && status == TD_OK; i++)
    if (td_cuda_is_half (out[i].dtype) && out[i].size > 0)
      status = td_cuda_cast (&c->launcher, &wide_out[i], &out[i]);
  return status;
}
