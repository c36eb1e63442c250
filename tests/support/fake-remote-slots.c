/* The slots of the test device: each copies its call into the queue, and runs the CPU's kernel
 * on the alias when its time comes.  Only what a slot must answer at once waits.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-remote.h"

#include "compute/core/core.h"

#include <stdlib.h>
#include <string.h>

/* --- memory --- */

static TdStatus
run_move (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.copy (cpu, c->to, c->from, c->n_bytes);
}

static TdStatus
remote_upload (TdDevice *d, void *dst, const void *host, size_t bytes)
{
  FakeCall *c = fake_remote_call ("upload", run_move);

  c->to = fake_remote_alias (c, dst);
  c->bytes = malloc (bytes + 1); /* the caller's memory is his again when we return */
  if (c->bytes == NULL)
    abort ();
  if (bytes > 0)
    memcpy (c->bytes, host, bytes);
  c->from = c->bytes;
  c->n_bytes = bytes;
  return fake_remote_enqueue (c);
}

static TdStatus
remote_download (TdDevice *d, void *host, const void *src, size_t bytes)
{
  FakeCall *c = fake_remote_call ("download", run_move);

  c->to = host;
  c->from = fake_remote_alias (c, src);
  c->n_bytes = bytes;
  return fake_remote_run_now (c);
}

static TdStatus
remote_copy (TdDevice *d, void *dst, const void *src, size_t bytes)
{
  FakeCall *c = fake_remote_call ("copy", run_move);

  c->to = fake_remote_alias (c, dst);
  c->from = fake_remote_alias (c, src);
  c->n_bytes = bytes;
  return fake_remote_enqueue (c);
}

static TdStatus
run_zero (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.zero (cpu, c->to, c->n_bytes);
}

static TdStatus
remote_zero (TdDevice *d, void *dst, size_t bytes)
{
  FakeCall *c = fake_remote_call ("zero", run_zero);

  c->to = fake_remote_alias (c, dst);
  c->n_bytes = bytes;
  return fake_remote_enqueue (c);
}

static void
remote_synchronize (TdDevice *d)
{
  fake_remote_drain (); /* td__fail has kept what went wrong */
}

/* Queue a call that has operands only; y and z may be NULL. */
static TdStatus
plain (const char *name, TdStatus (*run) (FakeCall *c, TdDevice *cpu), const TdTensor *x,
       const TdTensor *y, const TdTensor *z, TdTensor *out)
{
  FakeCall *call = fake_remote_call (name, run);

  fake_remote_inputs (call, x, 1);
  fake_remote_inputs (call, y, 1);
  fake_remote_inputs (call, z, 1);
  fake_remote_outputs (call, out, 1);
  return fake_remote_enqueue (call);
}

/* Begin a call of a kind with lists of operands. */
static FakeCall *
listed (const char *name, TdStatus (*run) (FakeCall *c, TdDevice *cpu), int kind,
        const TdTensor *in, int n_in, const TdTensor *out, int n_out)
{
  FakeCall *c = fake_remote_call (name, run);

  c->kind = kind;
  fake_remote_inputs (c, in, n_in);
  fake_remote_outputs (c, out, n_out);
  return c;
}

/* --- element by element --- */

static TdStatus
run_fill (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.fill (cpu, &c->t[0], c->p);
}

static TdStatus
remote_fill (TdDevice *d, TdTensor *y, double value)
{
  FakeCall *c = fake_remote_call ("fill", run_fill);

  c->p = value;
  fake_remote_outputs (c, y, 1);
  return fake_remote_enqueue (c);
}

static TdStatus
run_arange (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.arange (cpu, &c->t[0], c->p, c->q);
}

static TdStatus
remote_arange (TdDevice *d, TdTensor *y, double start, double step)
{
  FakeCall *c = fake_remote_call ("arange", run_arange);

  c->p = start;
  c->q = step;
  fake_remote_outputs (c, y, 1);
  return fake_remote_enqueue (c);
}

static TdStatus
run_unary (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.unary (cpu, (TdUnaryKind)c->kind, c->p, c->q, &c->t[0], &c->t[1]);
}

static TdStatus
remote_unary (TdDevice *d, TdUnaryKind kind, double p, double q, const TdTensor *x, TdTensor *y)
{
  FakeCall *c = fake_remote_call ("unary", run_unary);

  c->kind = (int)kind;
  c->p = p;
  c->q = q;
  fake_remote_inputs (c, x, 1);
  fake_remote_outputs (c, y, 1);
  return fake_remote_enqueue (c);
}

static TdStatus
run_unary_grad (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.unary_grad (cpu, (TdUnaryKind)c->kind, c->p, &c->t[0], &c->t[1], &c->t[2],
                                 c->accumulate);
}

static TdStatus
remote_unary_grad (TdDevice *d, TdUnaryKind kind, double p, const TdTensor *x,
                   const TdTensor *gy, TdTensor *gx, bool accumulate)
{
  FakeCall *c = fake_remote_call ("unary_grad", run_unary_grad);

  c->kind = (int)kind;
  c->p = p;
  c->accumulate = accumulate;
  fake_remote_inputs (c, x, 1);
  fake_remote_inputs (c, gy, 1);
  fake_remote_outputs (c, gx, 1);
  return fake_remote_enqueue (c);
}

static TdStatus
run_binary (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.binary (cpu, (TdBinaryKind)c->kind, &c->t[0], &c->t[1], &c->t[2],
                             c->accumulate);
}

static TdStatus
remote_binary (TdDevice *d, TdBinaryKind kind, const TdTensor *x, const TdTensor *y,
               TdTensor *z, bool accumulate)
{
  FakeCall *c = fake_remote_call ("binary", run_binary);

  c->kind = (int)kind;
  c->accumulate = accumulate;
  fake_remote_inputs (c, x, 1);
  fake_remote_inputs (c, y, 1);
  fake_remote_outputs (c, z, 1);
  return fake_remote_enqueue (c);
}

static TdStatus
run_select (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.select (cpu, &c->t[0], &c->t[1], &c->t[2], &c->t[3]);
}

static TdStatus
remote_select (TdDevice *d, const TdTensor *condition, const TdTensor *x, const TdTensor *y,
               TdTensor *z)
{
  return plain ("select", run_select, condition, x, y, z);
}

static TdStatus
run_cast (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.cast (cpu, &c->t[0], &c->t[1]);
}

static TdStatus
remote_cast (TdDevice *d, const TdTensor *x, TdTensor *y)
{
  return plain ("cast", run_cast, x, NULL, NULL, y);
}

static TdStatus
run_random (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.random (cpu, (TdRandomKind)c->kind, c->key, c->p, &c->t[0]);
}

static TdStatus
remote_random (TdDevice *d, TdRandomKind kind, TdRngKey key, double p, TdTensor *y)
{
  FakeCall *c = fake_remote_call ("random", run_random);

  c->kind = (int)kind;
  c->key = key;
  c->p = p;
  fake_remote_outputs (c, y, 1);
  return fake_remote_enqueue (c);
}

/* --- shape --- */

static TdStatus
run_strided (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.strided (cpu, (TdStridedKind)c->kind, &c->t[0], &c->walk, &c->t[1]);
}

static TdStatus
remote_strided (TdDevice *d, TdStridedKind kind, const TdTensor *x, const TdStrides *walk,
                TdTensor *y)
{
  FakeCall *c = fake_remote_call ("strided", run_strided);

  c->kind = (int)kind;
  c->walk = *walk;
  fake_remote_inputs (c, x, 1);
  fake_remote_outputs (c, y, 1);
  return fake_remote_enqueue (c);
}

static TdStatus
run_gather_rows (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.gather_rows (cpu, &c->t[0], &c->t[1], &c->t[2]);
}

static TdStatus
remote_gather_rows (TdDevice *d, const TdTensor *w, const TdTensor *index, TdTensor *y)
{
  return plain ("gather_rows", run_gather_rows, w, index, NULL, y);
}

static TdStatus
run_scatter_rows_add (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.scatter_rows_add (cpu, &c->t[0], &c->t[1], &c->t[2]);
}

static TdStatus
remote_scatter_rows_add (TdDevice *d, const TdTensor *index, const TdTensor *gy, TdTensor *gw)
{
  return plain ("scatter_rows_add", run_scatter_rows_add, index, gy, NULL, gw);
}

static TdStatus
remote_check_index (TdDevice *d, const TdTensor *index, int64_t limit, int64_t ignore,
                    int64_t *bad_place, int64_t *bad_value)
{
  TdStatus status = fake_remote_drain ();
  FakeCall c = { 0 };

  fake_remote_inputs (&c, index, 1);
  if (c.lost)
    return TD_ERR_DEVICE;
  return status != TD_OK ? status
                         : td__cpu_ops.check_index (td_device_get ("cpu"), &c.t[0], limit,
                                                    ignore, bad_place, bad_value);
}

/* --- reductions --- */

static TdStatus
run_reduce (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.reduce (cpu, (TdReduceKind)c->kind, c->axes, &c->t[0], &c->t[1],
                             c->accumulate);
}

static TdStatus
remote_reduce (TdDevice *d, TdReduceKind kind, uint32_t axes, const TdTensor *x, TdTensor *y,
               bool accumulate)
{
  FakeCall *c = fake_remote_call ("reduce", run_reduce);

  c->kind = (int)kind;
  c->axes = axes;
  c->accumulate = accumulate;
  fake_remote_inputs (c, x, 1);
  fake_remote_outputs (c, y, 1);
  return fake_remote_enqueue (c);
}

static TdStatus
run_cumulative_sum (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.cumulative_sum (cpu, c->axis, c->kind != 0, &c->t[0], &c->t[1]);
}

static TdStatus
remote_cumulative_sum (TdDevice *d, int axis, bool reverse, const TdTensor *x, TdTensor *y)
{
  FakeCall *c = fake_remote_call ("cumulative_sum", run_cumulative_sum);

  c->axis = axis;
  c->kind = reverse;
  fake_remote_inputs (c, x, 1);
  fake_remote_outputs (c, y, 1);
  return fake_remote_enqueue (c);
}

static TdStatus
run_resize (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.resize (cpu, &c->resize, c->kind != 0, &c->t[0], &c->t[1]);
}

static TdStatus
remote_resize (TdDevice *d, const TdResize *r, bool grad, const TdTensor *x, TdTensor *y)
{
  FakeCall *c = fake_remote_call ("resize", run_resize);

  c->resize = *r;
  c->kind = grad;
  fake_remote_inputs (c, x, 1);
  fake_remote_outputs (c, y, 1);
  return fake_remote_enqueue (c);
}

static TdStatus
run_softmax (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.softmax (cpu, (TdSoftmaxKind)c->kind, c->axis, &c->t[0],
                              c->n_in > 1 ? &c->t[1] : NULL, &c->t[c->n_in]);
}

static TdStatus
remote_softmax (TdDevice *d, TdSoftmaxKind kind, int axis, const TdTensor *x,
                const TdTensor *gy, TdTensor *y)
{
  FakeCall *c = fake_remote_call ("softmax", run_softmax);

  c->kind = (int)kind;
  c->axis = axis;
  fake_remote_inputs (c, x, 1);
  fake_remote_inputs (c, gy, 1);
  fake_remote_outputs (c, y, 1);
  return fake_remote_enqueue (c);
}

/* --- products --- */

static TdStatus
run_gemm (FakeCall *c, TdDevice *cpu)
{
  TdTensor *next = &c->t[2];

  if (c->gemm.end.bias != NULL)
    c->gemm.end.bias = next++;
  if (c->gemm.end.above != NULL)
    c->gemm.end.above = next++;
  return td__cpu_ops.gemm (cpu, &c->gemm, &c->t[0], &c->t[1], next);
}

static TdStatus
remote_gemm (TdDevice *d, const TdGemm *g, const TdTensor *a, const TdTensor *b, TdTensor *out)
{
  FakeCall *c = fake_remote_call ("gemm", run_gemm);

  c->gemm = *g;
  fake_remote_inputs (c, a, 1);
  fake_remote_inputs (c, b, 1);
  fake_remote_inputs (c, g->end.bias, 1);
  fake_remote_inputs (c, g->end.above, 1);
  fake_remote_outputs (c, out, 1);
  return fake_remote_enqueue (c);
}

static TdStatus
run_conv (FakeCall *c, TdDevice *cpu)
{
  int n_in = c->n_in;

  if (c->conv.end.above != NULL)
    c->conv.end.above = &c->t[--n_in];
  if (c->conv.end.added != NULL)
    c->conv.end.added = &c->t[--n_in];
  return td__cpu_ops.conv (cpu, (TdConvKind)c->kind, &c->conv, c->t, n_in, &c->t[c->n_in]);
}

static TdStatus
remote_conv (TdDevice *d, TdConvKind kind, const TdConv *attrs, const TdTensor *in, int n_in,
             TdTensor *out)
{
  FakeCall *c = fake_remote_call ("conv", run_conv);

  c->kind = (int)kind;
  c->conv = *attrs;
  fake_remote_inputs (c, in, n_in);
  fake_remote_inputs (c, attrs->end.added, 1);
  fake_remote_inputs (c, attrs->end.above, 1);
  fake_remote_outputs (c, out, 1);
  return fake_remote_enqueue (c);
}

static TdStatus
run_pooling (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.pooling (cpu, (TdPoolKind)c->kind, &c->pooling, c->t, c->n_in,
                              &c->t[c->n_in], c->n_out > 1 ? &c->t[c->n_in + 1] : NULL);
}

static TdStatus
remote_pooling (TdDevice *d, TdPoolKind kind, const TdPooling *attrs, const TdTensor *in,
                int n_in, TdTensor *out, TdTensor *out2)
{
  FakeCall *c = listed ("pooling", run_pooling, (int)kind, in, n_in, out, 1);

  c->pooling = *attrs;
  fake_remote_outputs (c, out2, 1);
  return fake_remote_enqueue (c);
}

/* --- fused layers --- */

static TdStatus
run_batch_norm (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.batch_norm (cpu, c->kind, c->doubles, c->t, c->n_in, &c->t[c->n_in],
                                 c->n_out);
}

static TdStatus
remote_batch_norm (TdDevice *d, int kind, const double *params, const TdTensor *in, int n_in,
                   TdTensor *out, int n_out)
{
  static const int n_params[] = { [TD_BATCH_NORM_TRAIN] = 2, [TD_BATCH_NORM_FIXED] = 1 };
  FakeCall *c = listed ("batch_norm", run_batch_norm, kind, in, n_in, out, n_out);

  for (int i = 0; kind < TD_ARRAY_LENGTH (n_params) && i < n_params[kind]; i++)
    c->doubles[i] = params[i];
  return fake_remote_enqueue (c);
}

static TdStatus
run_row_norm (FakeCall *c, TdDevice *cpu)
{
  TdRowJoin *join = &c->norm.join;
  int n_in = c->n_in, n_out = c->n_out;

  if (join->added != NULL)
    join->added = &c->t[--n_in];
  if (join->sum != NULL)
    join->sum = &c->t[c->n_in + --n_out];
  return td__cpu_ops.row_norm (cpu, (TdRowNormKind)c->kind, &c->norm, c->t, n_in,
                               &c->t[c->n_in], n_out);
}

static TdStatus
remote_row_norm (TdDevice *d, TdRowNormKind kind, const TdRowNorm *norm, const TdTensor *in,
                 int n_in, TdTensor *out, int n_out)
{
  FakeCall *c = listed ("row_norm", run_row_norm, (int)kind, in, n_in, out, 0);

  c->norm = *norm;
  fake_remote_inputs (c, norm->join.added, 1);
  fake_remote_outputs (c, out, n_out);
  fake_remote_outputs (c, norm->join.sum, 1);
  return fake_remote_enqueue (c);
}

static TdStatus
run_attention (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.attention (cpu, (TdAttentionKind)c->kind, &c->attention, c->t, c->n_in,
                                &c->t[c->n_in], c->n_out);
}

static TdStatus
remote_attention (TdDevice *d, TdAttentionKind kind, const TdAttention *attention,
                  const TdTensor *in, int n_in, TdTensor *out, int n_out)
{
  FakeCall *c = listed ("attention", run_attention, (int)kind, in, n_in, out, n_out);

  c->attention = *attention;
  return fake_remote_enqueue (c);
}

static TdStatus
run_cross_entropy (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.cross_entropy (cpu, c->kind, c->integers, c->t, c->n_in, &c->t[c->n_in],
                                    c->n_out);
}

static TdStatus
remote_cross_entropy (TdDevice *d, int kind, const int64_t *params, const TdTensor *in,
                      int n_in, TdTensor *out, int n_out)
{
  FakeCall *c = listed ("cross_entropy", run_cross_entropy, kind, in, n_in, out, n_out);

  static const int n_params[]
      = { [TD_CROSS_ENTROPY] = 3, 3, 3, [TD_ACCURACY] = 2, [TD_LABEL_COUNTS] = 1 };

  for (int i = 0; i < n_params[kind]; i++)
    c->integers[i] = params[i];
  return fake_remote_enqueue (c);
}

static TdStatus
run_lstm (FakeCall *c, TdDevice *cpu)
{
  return td__cpu_ops.lstm (cpu, c->kind, c->t, c->n_in, &c->t[c->n_in], c->n_out);
}

static TdStatus
remote_lstm (TdDevice *d, int kind, const TdTensor *in, int n_in, TdTensor *out, int n_out)
{
  return fake_remote_enqueue (listed ("lstm", run_lstm, kind, in, n_in, out, n_out));
}

static TdStatus
run_update (FakeCall *c, TdDevice *cpu)
{
  TdTensor *arrays[FAKE_REMOTE_TENSORS];

  for (int i = 0; i < c->n_out; i++)
    arrays[i] = &c->t[i];
  return td__cpu_ops.update (cpu, (TdUpdateKind)c->kind, &c->update, arrays, c->n_out);
}

static TdStatus
remote_update (TdDevice *d, TdUpdateKind kind, const TdUpdate *u, TdTensor *const *arrays,
               int n)
{
  FakeCall *c = fake_remote_call ("update", run_update);

  c->kind = (int)kind;
  c->update = *u;
  c->update.by = (const double *)(const void *)fake_remote_alias (c, u->by);
  for (int i = 0; i < n; i++)
    fake_remote_outputs (c, arrays[i], 1);
  return fake_remote_enqueue (c);
}

static TdStatus
remote_stats (TdDevice *d, const TdTensor *x, uint64_t max_samples, uint64_t seed, TdStats *out)
{
  TdStatus status = fake_remote_drain ();
  FakeCall c = { 0 };

  fake_remote_inputs (&c, x, 1);
  if (c.lost)
    return TD_ERR_DEVICE;
  return status != TD_OK
             ? status
             : td__cpu_ops.stats (td_device_get ("cpu"), &c.t[0], max_samples, seed, out);
}

const TdDeviceOps fake_remote_ops = {
  .abi = TD_DEVICE_ABI,
  .provider = &fake_remote_provider,
  .upload = remote_upload,
  .download = remote_download,
  .copy = remote_copy,
  .zero = remote_zero,
  .synchronize = remote_synchronize,
  .fill = remote_fill,
  .arange = remote_arange,
  .unary = remote_unary,
  .unary_grad = remote_unary_grad,
  .binary = remote_binary,
  .select = remote_select,
  .cast = remote_cast,
  .random = remote_random,
  .strided = remote_strided,
  .gather_rows = remote_gather_rows,
  .scatter_rows_add = remote_scatter_rows_add,
  .check_index = remote_check_index,
  .reduce = remote_reduce,
  .cumulative_sum = remote_cumulative_sum,
  .resize = remote_resize,
  .softmax = remote_softmax,
  .ends_products = 1u << TD_F32 | 1u << TD_F64,
  .ends_convs = 1u << TD_F32 | 1u << TD_F64,
  .ends_conv_grads = 1u << TD_F32 | 1u << TD_F64,
  .gemm = remote_gemm,
  .conv = remote_conv,
  .pooling = remote_pooling,
  .batch_norm = remote_batch_norm,
  .row_norm = remote_row_norm,
  .joins_norms = 1u << TD_F32 | 1u << TD_F64,
  .attention = remote_attention,
  .cross_entropy = remote_cross_entropy,
  .lstm = remote_lstm,
  .update = remote_update,
  .stats = remote_stats,
};
