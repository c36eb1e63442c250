/* Convolutions of channels-last arrays where cuDNN is missing or refuses them: arrays are
 * copied to row-major order, convolved by our own kernel, and copied back.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"

static TdStatus
reorder (TdCuda *c, const TdTensor *from, TdLayout layout, TdTensor *to)
{
  TdShape x_sizes, y_sizes;
  const TdStrides walk = td__layout_walk (
      from->shape, layout, layout == TD_ROW_MAJOR ? TD_CHANNELS_LAST : TD_ROW_MAJOR, &x_sizes,
      &y_sizes);
  TdTensor x = *from, y = *to;

  x.shape = &x_sizes;
  y.shape = &y_sizes;
  td_cuda_reads (c, &x, 1);
  td_cuda_writes (c, &y, 1);
  return td_cuda_strided (&c->launcher, TD_STRIDED_READ, &x, &walk, &y);
}

static bool
fits_both (const TdTensor *t)
{
  return t->size == 0 || td__layout_fits_both (t->shape);
}

/* t in row-major room of its own, where the layouts differ. */
static TdStatus
plain_of (TdCuda *c, const TdTensor *t, bool is_read, TdTensor *plain)
{
  *plain = *t;
  plain->layout = TD_ROW_MAJOR;
  if (fits_both (t))
    return TD_OK;
  plain->data = td_cuda_scratch (c, (size_t)t->size * td__bytes_of (t->dtype));
  if (plain->data == NULL)
    return TD_ERR_MEMORY;
  return is_read ? reorder (c, t, TD_CHANNELS_LAST, plain) : TD_OK;
}

TdStatus
td_cuda_conv_reordered (TdCuda *c, TdConvKind kind, const TdConv *attrs, const TdTensor *in,
                        int n_in, TdTensor *out)
{
  TdConv row_major = *attrs;
  TdTensor plain[4];
  TdStatus status = TD_OK;

  row_major.layout = TD_ROW_MAJOR;
  for (int i = 0; i < n_in && status == TD_OK; i++)
    status = plain_of (c, &in[i], true, &plain[i]);
  if (status == TD_OK)
    status = plain_of (c, out, attrs->accumulate, &plain[3]);
  if (status != TD_OK)
    return status;
  td_cuda_reads (c, plain, n_in);
  td_cuda_writes (c, &plain[3], 1);
  status = td_cuda_conv (&c->launcher, kind, &row_major, plain, n_in, &plain[3]);
  return status != TD_OK || fits_both (out) ? status
                                            : reorder (c, &plain[3], TD_ROW_MAJOR, out);
}
