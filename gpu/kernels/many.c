/* Launches that take many arrays at once (updates of parameters, statistics), and LSTM cells.
 *
 * SPDX-License-Identifier: MIT */
#include "launch.h"
#include "lstm.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "scalar-updates.h"

static_assert (sizeof (TdUpdateParams) <= 32764 && sizeof (TdStatsParams) <= 4096
                   && sizeof (TdSquaresParams) <= 4096,
               "drivers from 12.1 on take 32,764 bytes of a kernel's parameters");

#define UPDATE_KERNELS(S, T, kind, name, n_arrays, setup, body)                                \
  [TD_UPDATE_##kind] = { TD_FLOATS ("td_update_" #kind), TD_HALVES ("td_update_" #kind) },
#define ARRAYS_OF(S, T, kind, name, n_arrays, setup, body) [TD_UPDATE_##kind] = n_arrays,
static TdCudaKernel updates[TD_UPDATE_N][TD_N_DTYPES]
    = { TD_UPDATES (UPDATE_KERNELS, f32, float, sqrtf) };
static const int arrays_of[TD_UPDATE_N] = { TD_UPDATES (ARRAYS_OF, f32, float, sqrtf) };

TdStatus
td_cuda_update_check (TdUpdateKind kind, TdTensor *const *arrays, int n, int n_params)
{
  const TdDtype dtype = n_params > 0 ? arrays[0]->dtype : TD_F32;

  if (updates[kind][dtype].name == NULL)
    return TD_ERR_DTYPE;
  if (n != arrays_of[kind])
    return TD_ERR_ARG;
  for (int k = 0; k < n * n_params; k++)
    {
      if (arrays[k]->dtype != dtype)
        return TD_ERR_DTYPE;
      if (arrays[k]->size != arrays[k / n * n]->size)
        return TD_ERR_SHAPE;
    }
  return TD_OK;
}

TdStatus
td_cuda_update (TdCudaLauncher *l, TdUpdateKind kind, const TdUpdate *u,
                TdTensor *const *arrays, int n, int n_params)
{
  TdUpdateParams a = { .u = *u };
  TdStatus status = td_cuda_update_check (kind, arrays, n, n_params);
  const TdDtype dtype = n_params > 0 ? arrays[0]->dtype : TD_F32;
  int64_t blocks = 0;

  for (int k = 0; k < n_params && status == TD_OK; k++)
    {
      const int64_t size = arrays[k * n]->size;

      if (size > 0)
        {
          a.first_block[a.n_params] = (uint32_t)blocks;
          a.size[a.n_params] = size;
          for (int i = 0; i < n; i++)
            a.data[a.n_params][i] = arrays[k * n + i]->data;
          blocks += (size + TD_UPDATE_CHUNK - 1) / TD_UPDATE_CHUNK;
          a.n_params++;
        }
      if (a.n_params > 0 && (a.n_params == TD_UPDATE_MANY || k + 1 == n_params))
        {
          status = td__launch (l, &updates[kind][dtype], blocks, 1, &a);
          a.n_params = 0;
          blocks = 0;
        }
    }
  return status;
}

/* --- statistics --- */

enum
{
  STATS_OF_SM = 4,  /* blocks that a multiprocessor holds at once: their registers */
  MOST_UNITS = 4095 /* of a block: its threads count in 16 bits */
};
static_assert (MOST_UNITS *(TD_STATS_UNIT / TD_BLOCK) <= UINT16_MAX, "of each thread");

/* How much of an array a block looks at: of large ones so much that all blocks run at once, and
 * leave few parts. */
static uint16_t
units_of_block (const TdCudaLauncher *l, int64_t size)
{
  const int64_t each = (int64_t)l->n_sms * STATS_OF_SM * TD_STATS_UNIT;
  const int64_t units = (size + each - 1) / each, least = TD_STATS_CHUNK / TD_STATS_UNIT;

  return (uint16_t)(units < least ? least : units < MOST_UNITS ? units : MOST_UNITS);
}

/* Which elements the histogram is from, as the CPU chooses them. */
static void
choose_sample (const TdCudaStatsOf *of, uint64_t *start, uint64_t *step)
{
  const uint64_t n = (uint64_t)of->size;
  uint64_t seed = of->seed;

  *start = 0;
  *step = 1;
  if (of->max_samples == 0 || n <= of->max_samples)
    return;
  *step = (n + of->max_samples - 1) / of->max_samples;
  seed ^= seed >> 33; /* MurmurHash3's finisher */
  seed *= 0xFF51AFD7ED558CCDu;
  seed ^= seed >> 33;
  *start = seed % *step;
}

TdStatus
td_cuda_sum_squares (TdCudaLauncher *l, const TdTensor *x, int n, TdTensor *y)
{
  static TdCudaKernel squares = { .name = "td_sum_squares" },
                      end = { .name = "td_sum_squares_end" };
  int first = 0;
  TdStatus status;

  do
    {
      TdSquaresParams a = { .sum = y->data,
                            .n = n - first < TD_STATS_MANY ? n - first : TD_STATS_MANY,
                            .adds = first > 0 };
      int64_t blocks = 0;

      for (int k = 0; k < a.n; k++)
        {
          const TdTensor *one = &x[first + k];
          const int64_t units = units_of_block (l, one->size), share = units * TD_STATS_UNIT;

          if (one->dtype > TD_BF16)
            return TD_ERR_DTYPE;
          a.first_block[k] = (uint32_t)blocks;
          a.of[k].data = one->data;
          a.of[k].size = one->size;
          a.of[k].dtype = (uint16_t)one->dtype;
          a.of[k].units = (uint16_t)units;
          blocks += (one->size + share - 1) / share;
        }
      a.first_block[a.n] = (uint32_t)blocks;
      a.parts = l->workspace (l, (size_t)(blocks + 1) * sizeof *a.parts);
      if (a.parts == NULL)
        return TD_ERR_MEMORY;
      status = td__launch (l, &squares, blocks, 1, &a);
      if (status == TD_OK)
        status = td__launch (l, &end, 1, 1, &a);
      first += a.n;
    }
  while (first < n && status == TD_OK);
  return status;
}

TdStatus
td_cuda_stats (TdCudaLauncher *l, const TdCudaStatsOf *of, int n)
{
  static TdCudaKernel stats = { .name = "td_stats" }, end = { .name = "td_stats_end" };
  TdStatus status = TD_OK;

  for (int first = 0; first < n && status == TD_OK; first += TD_STATS_MANY)
    {
      TdStatsParams a = { .n = n - first < TD_STATS_MANY ? n - first : TD_STATS_MANY };
      int64_t blocks = 0, share;

      for (int k = 0; k < a.n; k++)
        {
          const TdCudaStatsOf *one = &of[first + k];

          a.first_block[k] = (uint32_t)blocks;
          a.of[k].data = one->data;
          a.of[k].size = one->size;
          a.of[k].dtype = (uint16_t)one->dtype;
          a.of[k].units = units_of_block (l, one->size);
          a.of[k].result = one->result;
          a.of[k].step = 1;
          a.of[k].parts = one->parts;
          a.of[k].n_parts = (uint32_t)one->n_parts;
          if (one->parts != NULL) /* of all of it */
            continue;
          choose_sample (one, &a.of[k].start, &a.of[k].step);
          share = (int64_t)a.of[k].units * TD_STATS_UNIT;
          a.of[k].n_parts = (uint32_t)((one->size + share - 1) / share);
          blocks += a.of[k].n_parts;
        }
      a.first_block[a.n] = (uint32_t)blocks;
      a.parts = l->workspace (l, (size_t)(blocks + 1) * sizeof *a.parts);
      if (a.parts == NULL)
        return TD_ERR_MEMORY;
      for (int k = 0; k < a.n; k++)
        if (a.of[k].parts == NULL)
          a.of[k].parts = a.parts + a.first_block[k];
      status = td__launch (l, &stats, blocks, 1, &a);
      if (status == TD_OK)
        status = td__launch (l, &end, a.n, 1, &a);
    }
  return status;
}

void
td_cuda_stats_finish (const TdCudaStats *r, TdStats *out)
{
  const double count = (double)(r->n - r->n_nan - r->n_pos_inf - r->n_neg_inf);

  *out = (TdStats){ .n = r->n,
                    .n_sampled = r->n_sampled,
                    .n_zero = r->n_zero,
                    .n_nan = r->n_nan,
                    .n_pos_inf = r->n_pos_inf,
                    .n_neg_inf = r->n_neg_inf,
                    .min = NAN,
                    .max = NAN,
                    .mean = NAN };
  memcpy (out->exponent, r->exponent, sizeof out->exponent);
  if (count <= 0)
    return;
  out->min = r->min;
  out->max = r->max;
  out->mean = r->shift + r->s1 / count;
  out->m2 = r->s2 - r->s1 * (r->s1 / count);
  out->m2 = out->m2 > 0 ? out->m2 : 0;
  out->sum_squares = r->s2 + 2 * r->shift * r->s1 + count * r->shift * r->shift;
  out->sum_squares = out->sum_squares > 0 ? out->sum_squares : 0;
}

/* --- cells --- */

TdStatus
td_cuda_lstm (TdCudaLauncher *l, int kind, const TdTensor *in, int n_in, TdTensor *out,
              int n_out)
{
  static TdCudaKernel cells[TD_N_DTYPES] = { TD_FLOATS ("td_lstm"), TD_HALVES ("td_lstm") };
  static TdCudaKernel grads[TD_N_DTYPES]
      = { TD_FLOATS ("td_lstm_grad"), TD_HALVES ("td_lstm_grad") };
  static TdCudaKernel counting[2][TD_N_DTYPES]
      = { { TD_FLOATS ("td_count_lstm"), TD_HALVES ("td_count_lstm") },
          { TD_FLOATS ("td_count_lstm_grad"), TD_HALVES ("td_count_lstm_grad") } };
  const bool grad = kind == TD_LSTM_GRAD;
  const TdDtype dtype = out[0].dtype;
  const size_t gates = 4 * td__bytes_of (dtype);
  const TdLstmParams p = { .c = in[0].data,
                           .x = in[1].data,
                           .c_new = grad ? in[2].data : NULL,
                           .gc = grad ? in[3].data : NULL,
                           .gh = grad ? in[4].data : NULL,
                           .out0 = out[0].data,
                           .out1 = out[1].data,
                           .n = in[0].shape->dim[0],
                           .u = in[0].shape->dim[1],
                           .packs = dtype != TD_F64 && td__aligned (in[1].data, gates)
                                    && td__aligned (out[1].data, gates) };
  TdLstmWithStats a = { .p = p };
  int64_t blocks;

  for (int i = 0; i < n_in; i++)
    if (in[i].dtype != dtype)
      return TD_ERR_DTYPE;
  blocks = td__blocks (l, p.n * p.u, TD_BLOCK);
  for (int i = 0; i < 2; i++)
    a.parts[i] = td__count (l, &counting[grad][dtype], &out[i], &blocks);
  return td__launch (l,
                     a.parts[0] != NULL || a.parts[1] != NULL ? &counting[grad][dtype]
                     : grad                                   ? &grads[dtype]
                                                              : &cells[dtype],
                     blocks, 1, &a);
}
