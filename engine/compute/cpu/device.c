/* The CPU as a device: its vtable.  Host memory is device memory, work is done when a call
 * returns.
 * SPDX-License-Identifier: MIT */
#include "cpu.h"

#include <string.h>

static TdStatus
cpu_transfer (TdDevice *d, void *dst, const void *src, size_t bytes)
{
  if (bytes > 0)
    memcpy (dst, src, bytes);
  return TD_OK;
}

static TdStatus
cpu_zero (TdDevice *d, void *dst, size_t bytes)
{
  if (bytes > 0)
    memset (dst, 0, bytes);
  return TD_OK;
}

static void
cpu_synchronize (TdDevice *d)
{
}

static void
stay_awake (TdDevice *d, bool awake)
{
  td__cpu_stay_awake (awake);
}

const TdDeviceOps td__cpu_ops = {
  .abi = TD_DEVICE_ABI,
  .provider = &td__provider_host,
  .upload = cpu_transfer,
  .download = cpu_transfer,
  .copy = cpu_transfer,
  .zero = cpu_zero,
  .synchronize = cpu_synchronize,
  .fill = td__cpu_fill,
  .arange = td__cpu_arange,
  .unary = td__cpu_unary,
  .unary_grad = td__cpu_unary_grad,
  .binary = td__cpu_binary,
  .select = td__cpu_select,
  .cast = td__cpu_cast,
  .random = td__cpu_random,
  .strided = td__cpu_strided,
  .gather_rows = td__cpu_gather_rows,
  .scatter_rows_add = td__cpu_scatter_rows_add,
  .check_index = td__cpu_check_index,
  .reduce = td__cpu_reduce,
  .cumulative_sum = td__cpu_cumulative_sum,
  .softmax = td__cpu_softmax,
  .ends_products = 1u << TD_F32 | 1u << TD_F64,
  .ends_convs = 1u << TD_F32 | 1u << TD_F64,
  .ends_conv_grads = 1u << TD_F32 | 1u << TD_F64,
  .joins_norms = 1u << TD_F32 | 1u << TD_F64,
  .stay_awake = stay_awake,
  .gemm = td__cpu_gemm,
  .conv = td__cpu_conv_any,
  .pooling = td__cpu_pooling_any,
  .resize = td__cpu_resize,
  .batch_norm = td__cpu_batch_norm_any,
  .row_norm = td__cpu_row_norm,
  .attention = td__cpu_attention,
  .cross_entropy = td__cpu_cross_entropy,
  .lstm = td__cpu_lstm,
  .update = td__cpu_update,
  .stats = td__cpu_stats,
};
