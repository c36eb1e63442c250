/* The device's vtable: memory, the libraries where they are better, our kernels for the rest.
 *
 * Nothing here waits for the device but the two slots that answer the host: stats, and
 * check_index where the host did not send the indices and asks now (index-async.c does not).
 *
 * SPDX-License-Identifier: MIT */
#include "blas.h"
#include "cuda-device.h"
#include "cudnn.h"
#include "async.h"
#include "nccl-library.h"

/* Enter the device and say what the kernel that follows uses.  Who may hand it to a library
 * calls td_cuda_enter before. */
static TdCudaLauncher *
prepare (TdDevice *d, const TdTensor *in, int n_in, const TdTensor *out, int n_out)
{
  TdCuda *c = td_cuda_enter_launch (d);

  td_cuda_reads (c, in, n_in);
  td_cuda_writes (c, out, n_out);
  return &c->launcher;
}

/* The same for up to three inputs that lie apart. */
static TdCudaLauncher *
prepare_3 (TdDevice *d, const TdTensor *x, const TdTensor *y, const TdTensor *z,
           const TdTensor *out)
{
  td_cuda_reads (d->priv, x, 1);
  td_cuda_reads (d->priv, y, 1);
  td_cuda_reads (d->priv, z, 1);
  return prepare (d, NULL, 0, out, 1);
}

/* What kernels shared for partial results is the pool's again: what follows on the stream
 * follows them. */
static TdStatus
done (TdDevice *d, TdStatus status)
{
  td_cuda_marks_made (d->priv);
  td_cuda_scratch_end (d->priv);
  return status;
}

/* --- element by element --- */

static TdStatus
slot_fill (TdDevice *d, TdTensor *y, double value)
{
  return done (d, td_cuda_fill (prepare (d, NULL, 0, y, 1), y, value));
}

static TdStatus
slot_arange (TdDevice *d, TdTensor *y, double start, double step)
{
  return done (d, td_cuda_arange (prepare (d, NULL, 0, y, 1), y, start, step));
}

static TdStatus
slot_unary (TdDevice *d, TdUnaryKind kind, double p, double q, const TdTensor *x, TdTensor *y)
{
  return done (d, td_cuda_unary (prepare (d, x, 1, y, 1), kind, p, q, x, y));
}

static TdStatus
slot_unary_grad (TdDevice *d, TdUnaryKind kind, double p, const TdTensor *x, const TdTensor *gy,
                 TdTensor *gx, bool accumulate)
{
  return done (
      d, td_cuda_unary_grad (prepare_3 (d, x, gy, NULL, gx), kind, p, x, gy, gx, accumulate));
}

static TdStatus
slot_binary (TdDevice *d, TdBinaryKind kind, const TdTensor *x, const TdTensor *y, TdTensor *z,
             bool accumulate)
{
  return done (d, td_cuda_binary (prepare_3 (d, x, y, NULL, z), kind, x, y, z, accumulate));
}

static TdStatus
slot_select (TdDevice *d, const TdTensor *condition, const TdTensor *x, const TdTensor *y,
             TdTensor *z)
{
  return done (d, td_cuda_select (prepare_3 (d, condition, x, y, z), condition, x, y, z));
}

static TdStatus
slot_cast (TdDevice *d, const TdTensor *x, TdTensor *y)
{
  return done (d, td_cuda_cast (prepare (d, x, 1, y, 1), x, y));
}

static TdStatus
slot_random (TdDevice *d, TdRandomKind kind, TdRngKey key, double p, TdTensor *y)
{
  return done (d, td_cuda_random (prepare (d, NULL, 0, y, 1), kind, key, p, y));
}

static TdStatus
slot_dropout (TdDevice *d, TdRngKey key, double p, const TdTensor *x, TdTensor *y)
{
  return done (d, td_cuda_dropout (prepare (d, x, 1, y, 1), key, p, x, y));
}

/* --- shape --- */

static TdStatus
slot_strided (TdDevice *d, TdStridedKind kind, const TdTensor *x, const TdStrides *walk,
              TdTensor *y)
{
  return done (d, td_cuda_strided (prepare (d, x, 1, y, 1), kind, x, walk, y));
}

static TdStatus
slot_copy_parts (TdDevice *d, const TdCopyPart *parts, int n)
{
  TdCuda *c = td_cuda_enter (d);

  if (c->lost != TD_OK)
    return c->lost;
  for (int i = 0; i < n; i++)
    td_cuda_host_copies_written (c, parts[i].to, parts[i].bytes);
  return done (d, td_cuda_copy_parts (&c->launcher, parts, n));
}

static TdStatus
slot_gather_rows (TdDevice *d, const TdTensor *w, const TdTensor *index, TdTensor *y)
{
  return done (d, td_cuda_gather_rows (prepare_3 (d, w, index, NULL, y), w, index, y));
}

static TdStatus
slot_scatter_rows_add (TdDevice *d, const TdTensor *index, const TdTensor *gy, TdTensor *gw)
{
  return done (d, td_cuda_scatter_rows_add (prepare_3 (d, index, gy, NULL, gw), index, gy, gw));
}

static TdStatus
slot_check_index (TdDevice *d, const TdTensor *index, int64_t limit, int64_t ignore,
                  int64_t *bad_place, int64_t *bad_value)
{
  TdCuda *c = td_cuda_enter (d);
  int64_t found[2] = { -1, 0 };
  void *answers;
  TdStatus status;

  if (td_cuda_host_copies_check_index (c, index, limit, ignore, bad_place, bad_value, &status))
    return status;
  answers = td_cuda_scratch (c, sizeof found);
  if (answers == NULL)
    return TD_ERR_MEMORY;
  td_cuda_reads (c, index, 1);
  status = done (d, td_cuda_check_index (&c->launcher, index, limit, ignore, answers));
  if (status == TD_OK)
    status = td_cuda_download (d, found, answers, sizeof found);
  *bad_place = found[0];
  *bad_value = found[1];
  return status;
}

/* --- reductions --- */

static TdStatus
slot_reduce (TdDevice *d, TdReduceKind kind, uint32_t axes, const TdTensor *x, TdTensor *y,
             bool accumulate)
{
  const TdLayout layout = (TdLayout)x->layout;
  const int ndim = x->shape->ndim;
  TdShape sizes = td__layout_sizes (x->shape, layout);
  TdTensor places = *x;
  uint32_t there = axes;

  /* Of a channels-last array: over the same axes where they are in memory. */
  if (layout == TD_CHANNELS_LAST)
    there = (axes & 1) | (axes >> 2 << 1) | (axes >> 1 & 1) << (ndim - 1);
  places.shape = &sizes;
  return done (d,
               td_cuda_reduce (prepare (d, x, 1, y, 1), kind, there, &places, y, accumulate));
}

static TdStatus
slot_cumulative_sum (TdDevice *d, int axis, bool reverse, const TdTensor *x, TdTensor *y)
{
  return done (d, td_cuda_cumulative_sum (prepare (d, x, 1, y, 1), axis, reverse, x, y));
}

static TdStatus
slot_softmax (TdDevice *d, TdSoftmaxKind kind, int axis, const TdTensor *x, const TdTensor *gy,
              TdTensor *y)
{
  return done (d, td_cuda_softmax (prepare_3 (d, x, gy, NULL, y), kind, axis, x, gy, y));
}

/* --- products --- */

static TdStatus
multiply (TdDevice *d, const TdGemm *g, const TdTensor *a, const TdTensor *b, TdTensor *out)
{
  TdCudaLauncher *l;
  TdStatus status;

  td_cuda_enter (d);
  l = prepare_3 (d, a, b, NULL, out);
  if (td_cuda_blas_gemm (d->priv, g, a, b, out, &status))
    return status;
  d->algorithm = "own kernel";
  return done (d, td_cuda_gemm (l, g, a, b, out));
}

/* What the library's product does not do at its end, kernels do after it. */
static TdStatus
slot_gemm (TdDevice *d, const TdGemm *g, const TdTensor *a, const TdTensor *b, TdTensor *out)
{
  const TdProductEnd *end = &g->end;
  TdGemm plain = *g;
  TdStatus status;

  if (end->bias == NULL && !end->relu && end->above == NULL)
    return multiply (d, g, a, b, out);
  td_cuda_enter (d);
  prepare_3 (d, a, b, end->bias, out);
  if (td_cuda_blas_gemm (d->priv, g, a, b, out, &status))
    return status;
  plain.end = (TdProductEnd){ 0 };
  status = multiply (d, &plain, a, b, out);
  if (status == TD_OK && end->bias != NULL)
    status = slot_binary (d, TD_BINARY_ADD, end->bias, out, out, false);
  if (status == TD_OK && end->relu)
    status = slot_unary (d, TD_UNARY_RELU, 0, 0, out, out);
  if (status == TD_OK && end->above != NULL)
    status = slot_binary (d, TD_BINARY_RELU_GRAD, end->above, out, out, false);
  return status;
}

static TdStatus
convolve (TdDevice *d, TdConvKind kind, const TdConv *attrs, const TdTensor *in, int n_in,
          TdTensor *out)
{
  TdCudaLauncher *l;
  TdStatus status;

  td_cuda_enter (d);
  l = prepare (d, in, n_in, out, 1);
  if (td_cudnn_conv (d->priv, kind, attrs, in, n_in, out, &status))
    return status;
  d->algorithm = "own kernel";
  if (attrs->layout == TD_CHANNELS_LAST)
    return done (d, td_cuda_conv_reordered (d->priv, kind, attrs, in, n_in, out));
  return done (d, td_cuda_conv (l, kind, attrs, in, n_in, out));
}

/* What the library's graph does not do at its end, kernels do after it. */
static TdStatus
slot_conv (TdDevice *d, TdConvKind kind, const TdConv *attrs, const TdTensor *in, int n_in,
           TdTensor *out)
{
  const TdProductEnd *end = &attrs->end;
  TdConv plain = *attrs;
  TdStatus status;

  if (end->added == NULL && !end->relu && end->above == NULL)
    return convolve (d, kind, attrs, in, n_in, out);
  td_cuda_enter (d);
  prepare_3 (d, end->added, end->above, NULL, out);
  td_cuda_reads (d->priv, in, n_in);
  if (td_cudnn_conv (d->priv, kind, attrs, in, n_in, out, &status))
    return status;
  plain.end = (TdProductEnd){ 0 };
  status = convolve (d, kind, &plain, in, n_in, out);
  if (status == TD_OK && end->added != NULL)
    status = slot_binary (d, TD_BINARY_ADD, out, end->added, out, false);
  if (status == TD_OK && end->relu)
    status = slot_unary (d, TD_UNARY_RELU, 0, 0, out, out);
  if (status == TD_OK && end->above != NULL)
    status = slot_binary (d, TD_BINARY_RELU_GRAD, end->above, out, out, false);
  return status;
}

static TdStatus
slot_pooling (TdDevice *d, TdPoolKind kind, const TdPooling *attrs, const TdTensor *in,
              int n_in, TdTensor *out, TdTensor *out2)
{
  td_cuda_writes (d->priv, out2, 1);
  return done (
      d, td_cuda_pooling (prepare (d, in, n_in, out, 1), kind, attrs, in, n_in, out, out2));
}

/* --- fused layers --- */

static TdStatus
slot_batch_norm (TdDevice *d, int kind, const double *params, const TdTensor *in, int n_in,
                 TdTensor *out, int n_out)
{
  if (kind == TD_BATCH_NORM_TRAIN && n_in > 3) /* running mean and variance */
    td_cuda_writes (d->priv, in + 3, n_in - 3);
  return done (d, td_cuda_batch_norm (prepare (d, in, n_in, out, n_out), kind, params, in, n_in,
                                      out, n_out));
}

static TdStatus
slot_row_norm (TdDevice *d, TdRowNormKind kind, const TdRowNorm *norm, const TdTensor *in,
               int n_in, TdTensor *out, int n_out)
{
  td_cuda_reads (d->priv, norm->join.added, 1);
  td_cuda_writes (d->priv, norm->join.sum, 1);
  return done (d, td_cuda_row_norm (prepare (d, in, n_in, out, n_out), kind, norm, in, n_in,
                                    out, n_out));
}

static TdStatus
slot_attention (TdDevice *d, TdAttentionKind kind, const TdAttention *attention,
                const TdTensor *in, int n_in, TdTensor *out, int n_out)
{
  TdCudaLauncher *l;
  TdStatus status;

  td_cuda_enter (d);
  l = prepare (d, in, n_in, out, n_out);
  if (td_cudnn_attention (d->priv, kind, attention, in, n_in, out, &status))
    return status;
  d->algorithm = "own kernel";
  return done (d, td_cuda_attention (l, kind, attention, in, n_in, out, n_out));
}

static TdStatus
slot_cross_entropy (TdDevice *d, int kind, const int64_t *params, const TdTensor *in, int n_in,
                    TdTensor *out, int n_out)
{
  return done (d, td_cuda_cross_entropy (prepare (d, in, n_in, out, n_out), kind, params, in,
                                         n_in, out, n_out));
}

static TdStatus
slot_lstm (TdDevice *d, int kind, const TdTensor *in, int n_in, TdTensor *out, int n_out)
{
  return done (d, td_cuda_lstm (prepare (d, in, n_in, out, n_out), kind, in, n_in, out, n_out));
}

static TdStatus
slot_sum_squares (TdDevice *d, const TdTensor *x, int n, TdTensor *y)
{
  return done (d, td_cuda_sum_squares (prepare (d, x, n, y, 1), x, n, y));
}

static TdStatus
slot_stats (TdDevice *d, const TdTensor *x, uint64_t max_samples, uint64_t seed, TdStats *out)
{
  TdCuda *c = td_cuda_enter (d);
  TdCudaStatsOf of = { .data = x->data,
                       .size = x->size,
                       .dtype = x->dtype,
                       .max_samples = max_samples,
                       .seed = seed,
                       .result = td_cuda_scratch (c, sizeof (TdCudaStats)) };
  TdCudaStats result;
  TdStatus status;

  if (of.result == NULL)
    return TD_ERR_MEMORY;
  td_cuda_reads (c, x, 1);
  status = done (d, td_cuda_stats (&c->launcher, &of, 1));
  if (status == TD_OK)
    status = td_cuda_download (d, &result, of.result, sizeof result);
  if (status == TD_OK)
    td_cuda_stats_finish (&result, out);
  return status;
}

static const TdDeviceOps ops = {
  .abi = TD_DEVICE_ABI,
  .provider = &td_cuda_vmm_provider,
  .upload = td_cuda_upload,
  .upload_new = td_cuda_upload_new,
  .ahead = &td_cuda_ahead,
  .download = td_cuda_download,
  .copy = td_cuda_copy,
  .copy_parts = slot_copy_parts,
  .zero = td_cuda_zero,
  .synchronize = td_cuda_synchronize,
  .fill = slot_fill,
  .arange = slot_arange,
  .unary = slot_unary,
  .unary_grad = slot_unary_grad,
  .binary = slot_binary,
  .select = slot_select,
  .cast = slot_cast,
  .random = slot_random,
  .dropout = slot_dropout,
  .strided = slot_strided,
  .gather_rows = slot_gather_rows,
  .scatter_rows_add = slot_scatter_rows_add,
  .check_index = slot_check_index,
  .reduce = slot_reduce,
  .cumulative_sum = slot_cumulative_sum,
  .softmax = slot_softmax,
  .ends_products = 1u << TD_F32 | 1u << TD_F64 | 1u << TD_F16 | 1u << TD_BF16,
  .ends_convs = 1u << TD_F32 | 1u << TD_F64 | 1u << TD_F16 | 1u << TD_BF16,
  .gemm = slot_gemm,
  .conv = slot_conv,
  .pooling = slot_pooling,
  .batch_norm = slot_batch_norm,
  .row_norm = slot_row_norm,
  .joins_norms = 1u << TD_F32 | 1u << TD_F64 | 1u << TD_F16 | 1u << TD_BF16,
  .attention = slot_attention,
  .cross_entropy = slot_cross_entropy,
  .lstm = slot_lstm,
  .rnn = &td_cudnn_rnn,
  .update = td_cuda_updates_add,
  .updates_end = td_cuda_updates_end,
  .scaling = &td_cuda_scaling,
  .sum_squares = slot_sum_squares,
  .stats = slot_stats,
  .graphs = &td_cuda_graphs,
  .program_new = td_cuda_program_new,
  .program_free = td_cuda_program_free,
  .program_run = td_cuda_program_run,
  .stats_async = td_cuda_stats_async,
  .time_zero = td_cuda_time_zero,
  .time_op = td_cuda_time_op,
  .time_copy = td_cuda_time_copy,
  .poll_async = td_cuda_poll_async,
  .teams = &td_cuda_teams,
  .own_bytes = td_cuda_own_bytes,
  .pinned_bytes = td_cuda_pinned_bytes,
  .check_index_async = td_cuda_index_async,
  .bad_index = td_cuda_bad_index,
};

const TdDeviceOps *
td_cuda_slots (void)
{
  return &ops;
}
