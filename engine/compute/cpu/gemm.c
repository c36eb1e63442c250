/* Matrix products: C = alpha op (A) op (B) + beta C, in f32 and f64, single or batched.
 *
 * f32 runs on our own tiles (gemm-tile.c): B is packed a column block at a time so that it
 * stays in the second-level cache, A once.  f64 goes to BLAS where there is one, else to plain
 * blocked loops (gemm-blas.c).  beta = 1 always adds the finished product, so that accumulating
 * inside the kernel and adding afterwards are bitwise equal.
 *
 * SPDX-License-Identifier: MIT */
#include "gemm.h"
#include "halves.h"

#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "elementwise.h"
#include "gemm-tile.h"
#include "packed.h"

enum
{
  K_BLOCK = 512,            /* longest panel */
  B_BLOCK_FLOATS = 131072,  /* packed block of B: half of a 1 MiB second-level cache */
  A_CHUNK_FLOATS = 1 << 21, /* packed A: 8 MiB */
  A_NEAR_FLOATS = 8192,     /* what stays in the first-level cache */
  B_FEW_ROWS = 64
};

/* One product on its way: A is packed, columns of C are the tasks (or, where all of B is one
 * block, panels of rows). */
typedef struct
{
  const TdGemmTiles *tiles;
  int64_t m, n, k, ldc, n_panels;
  int64_t n_columns; /* width of a column block */
  const float *a, *b;
  int64_t a_row, a_k, b_k, b_column; /* strides */
  float *packed_a, *packed_b, *c;
  float alpha;
  const float *offered; /* all of B, packed before; or NULL */
  const TdGemm *g;      /* whose end it is */
  int64_t first_row;    /* of this chunk */
  bool packs_a, packs_b;
  bool add, failed;
} Job;

static int64_t
k_blocks (int64_t k)
{
  return (k + K_BLOCK - 1) / K_BLOCK;
}

/* Panels [begin, end) of A; the panels of one block of k follow each other. */
static void
pack_a_body (int64_t begin, int64_t end, int worker, void *context)
{
  Job *job = context;
  const int64_t n_blocks = k_blocks (job->k);

  for (int64_t q = 0; q < n_blocks; q++)
    {
      const int64_t k0 = job->k * q / n_blocks, kc = job->k * (q + 1) / n_blocks - k0;

      for (int64_t p = begin; p < end; p++)
        {
          const int64_t row = td__gemm_panel_row (job->m, job->n_panels, p);
          const int64_t rows = td__gemm_panel_row (job->m, job->n_panels, p + 1) - row;
          float *out = job->packed_a + k0 * job->m + row * kc;

          td__gemm_pack (out, rows, job->a + row * job->a_row + k0 * job->a_k, job->a_row,
                         job->a_k, rows, kc);
          if (job->alpha != 1.0f)
            for (int64_t i = 0; i < rows * kc; i++)
              out[i] *= job->alpha;
        }
    }
}

/* Columns [j0, j0 + n) of B, rows [k0, k0 + kc). */
static void
pack_b (const Job *job, int64_t j0, int64_t n, int64_t k0, int64_t kc, float *out)
{
  const int64_t nr = job->tiles->nr;

  for (int64_t j = 0; j < n; j += nr)
    td__gemm_pack (out + j * kc, nr, job->b + (j0 + j) * job->b_column + k0 * job->b_k,
                   job->b_column, job->b_k, n - j < nr ? n - j : nr, kc);
}

/* Rows [row, row + rows) of C add what dst (n wide) holds. */
static void
add_rows (float *c, int64_t ldc, const float *dst, int64_t rows, int64_t n)
{
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < n; j++)
      c[i * ldc + j] += dst[i * n + j];
}

/* Rows [row, row + m) of C and columns [j, j + n), for the steps [k0, k0 + kc).  b: what is
 * packed of B for them. */
static void
multiply (const Job *job, int64_t row, int64_t m, int64_t j, int64_t n, int64_t k0, int64_t kc,
          const float *b, float *c, int64_t ldc, bool add)
{
  if (job->packs_a)
    td__gemm_block (job->tiles, m, n, kc, job->packed_a + k0 * job->m + row * kc, b, c, ldc,
                    add);
  else
    td__gemm_block_in_place (job->tiles, m, n, kc, job->a + row * job->a_row + k0 * job->a_k,
                             job->a_row, job->a_k,
                             job->packs_b ? b : job->b + j + k0 * job->b_k,
                             job->packs_b ? 0 : job->b_k, c, ldc, add);
}

/* Column blocks [begin, end). */
static void
columns_body (int64_t begin, int64_t end, int worker, void *context)
{
  Job *job = context;
  const int64_t n_blocks = k_blocks (job->k), nr = job->tiles->nr;
  const bool in_scratch = job->add && n_blocks > 1;

  for (int64_t t = begin; t < end; t++)
    {
      const int64_t j0 = t * job->n_columns;
      const int64_t n = job->n - j0 < job->n_columns ? job->n - j0 : job->n_columns;
      const int64_t width = (n + nr - 1) / nr * nr;
      const int64_t kc_max = (job->k + n_blocks - 1) / n_blocks;
      const bool packs = job->packs_b && job->offered == NULL;
      float *b
          = td__cpu_scratch (TD_SCRATCH_B, packs ? (size_t)(width * kc_max) * sizeof *b : 1);
      float *c = in_scratch ? td__cpu_scratch (TD_SCRATCH_C, (size_t)(job->m * n) * sizeof *c)
                            : job->c + j0;
      const int64_t ldc = in_scratch ? n : job->ldc;

      if (b == NULL || c == NULL)
        {
          __atomic_store_n (&job->failed, true, __ATOMIC_RELAXED);
          return;
        }
      for (int64_t q = 0; q < n_blocks; q++)
        {
          const int64_t k0 = job->k * q / n_blocks, kc = job->k * (q + 1) / n_blocks - k0;

          if (packs)
            pack_b (job, j0, n, k0, kc, b);
          multiply (job, 0, job->m, j0, n, k0, kc,
                    job->offered != NULL ? job->offered + j0 * job->k + k0 * width : b, c, ldc,
                    q > 0 || (job->add && !in_scratch));
        }
      if (in_scratch)
        add_rows (job->c + j0, job->ldc, c, job->m, n);
      td__gemm_end_f32 (job->g, job->first_row, job->m, j0, n, job->c + j0);
    }
}

/* Panels of rows [begin, end), where all of B is packed. */
static void
rows_body (int64_t begin, int64_t end, int worker, void *context)
{
  Job *job = context;
  const int64_t n_blocks = k_blocks (job->k), nr = job->tiles->nr;
  const int64_t width = (job->n + nr - 1) / nr * nr;
  const bool in_scratch = job->add && n_blocks > 1;

  for (int64_t p = begin; p < end; p++)
    {
      const int64_t row = td__gemm_panel_row (job->m, job->n_panels, p);
      const int64_t rows = td__gemm_panel_row (job->m, job->n_panels, p + 1) - row;
      float *c = in_scratch
                     ? td__cpu_scratch (TD_SCRATCH_C, (size_t)(rows * job->n) * sizeof *c)
                     : job->c + row * job->ldc;
      const int64_t ldc = in_scratch ? job->n : job->ldc;

      if (c == NULL)
        {
          __atomic_store_n (&job->failed, true, __ATOMIC_RELAXED);
          return;
        }
      for (int64_t q = 0; q < n_blocks; q++)
        {
          const int64_t k0 = job->k * q / n_blocks, kc = job->k * (q + 1) / n_blocks - k0;

          multiply (job, row, rows, 0, job->n, k0, kc,
                    (job->offered != NULL ? job->offered : job->packed_b) + k0 * width, c, ldc,
                    q > 0 || (job->add && !in_scratch));
        }
      if (in_scratch)
        add_rows (job->c + row * job->ldc, job->ldc, c, rows, job->n);
      td__gemm_end_f32 (job->g, job->first_row + row, rows, 0, job->n, job->c + row * job->ldc);
    }
}

/* Small work stays on this thread: waking others costs more than it saves. */
static void
run (int64_t n, int64_t grain, double flop, TdCpuBody body, Job *job)
{
  if (flop < (td__cpu_stays_awake () ? 1e6 : 2e7)) /* some 10 us, 0.2 ms */
    body (0, n, 0, job);
  else
    td__cpu_parallel (n, grain, body, job);
}

/* A is read where it lies, if the lines of its rows (4 KiB apart) or columns do not crowd out
 * each other in the first-level cache, and if it is not read so often that packing pays: all of
 * a small one stays near. */
static bool
packs_a (const Job *job)
{
  if (job->alpha != 1.0f)
    return true;
  if (job->a_k == 1)
    return job->a_row % 1024 == 0;
  return job->a_k >= 512 || (job->n > 512 && job->m * job->k > A_NEAR_FLOATS);
}

/* The same of B, which is read in whole or half panels of its columns: of few rows far apart
 * the lines are few. */
static bool
packs_b (const Job *job)
{
  if (job->b_column != 1 || job->n % (job->tiles->nr / 2) != 0)
    return true;
  return job->b_k >= 512 && (job->k > B_FEW_ROWS || job->b_k % 256 == 0);
}

enum
{
  B_PARTS = 4 /* of a panel of B within a block of k: few panels are work for several threads */
};

/* Parts [begin, end) of the panels of B, all of whose columns are one block. */
static void
pack_b_body (int64_t begin, int64_t end, int worker, void *context)
{
  Job *job = context;
  const int64_t n_blocks = k_blocks (job->k), nr = job->tiles->nr;
  const int64_t width = (job->n + nr - 1) / nr * nr;

  for (int64_t t = begin; t < end; t++)
    {
      const int64_t j = t / (n_blocks * B_PARTS) * nr, q = t / B_PARTS % n_blocks;
      const int64_t n = j + nr < job->n ? nr : job->n - j;
      const int64_t k0 = job->k * q / n_blocks, kc = job->k * (q + 1) / n_blocks - k0;
      const int64_t l = kc * (t % B_PARTS) / B_PARTS, l_end = kc * (t % B_PARTS + 1) / B_PARTS;

      pack_b (job, j, n, k0 + l, l_end - l, job->packed_b + k0 * width + j * kc + l * nr);
    }
}

/* Column blocks: how wide, and how many.  It does not depend on A. */
static int64_t
cut_columns (Job *job)
{
  const int64_t kc = job->k < K_BLOCK ? job->k : K_BLOCK, nr = job->tiles->nr;
  const int64_t columns = B_BLOCK_FLOATS / kc / nr * nr;
  const int64_t n_blocks = (job->n + columns - 1) / columns;

  job->n_columns = ((job->n + n_blocks - 1) / n_blocks + nr - 1) / nr * nr;
  return (job->n + job->n_columns - 1) / job->n_columns;
}

/* One chunk of rows of A. */
static bool
multiply_chunk (Job *job)
{
  const TdGemmTiles *tiles = job->tiles;
  const double flop = 2.0 * (double)job->m * (double)job->n * (double)job->k;
  int64_t n_blocks;

  job->n_panels = (job->m + tiles->mr - 1) / tiles->mr;
  job->packs_a = packs_a (job);
  job->packs_b = job->packs_a || job->offered != NULL || packs_b (job);
  if (job->packs_a)
    {
      job->packed_a
          = td__cpu_scratch (TD_SCRATCH_A, (size_t)(job->m * job->k) * sizeof *job->packed_a);
      if (job->packed_a == NULL)
        return false;
      run (job->n_panels, 4, flop, pack_a_body, job);
    }
  n_blocks = cut_columns (job);
  if (n_blocks > 1)
    {
      run (n_blocks, 1, flop, columns_body, job);
      return !job->failed;
    }
  if (job->packs_b && job->offered == NULL)
    {
      const int64_t nr = tiles->nr, width = (job->n + nr - 1) / nr * nr;

      job->packed_b
          = td__cpu_scratch (TD_SCRATCH_B, (size_t)(width * job->k) * sizeof *job->packed_b);
      if (job->packed_b == NULL)
        return false;
      run (width / nr * k_blocks (job->k) * B_PARTS, 4, flop, pack_b_body, job);
    }
  run (job->n_panels, 1, flop, rows_body, job);
  return !job->failed;
}

/* --- B packed before --- */

static __thread struct
{
  const float *b, *packed;
  bool tb;
  int64_t n, k;
} offer;

void
td__packed_offer (const float *b, bool tb, int64_t n, int64_t k, const float *packed)
{
  offer.b = b;
  offer.packed = packed;
  offer.tb = tb;
  offer.n = n;
  offer.k = k;
}

size_t
td__packed_bytes (const TdDevice *d, int64_t n, int64_t k)
{
  const int64_t nr = td__gemm_tiles ()->nr;

  if (d->ops != &td__cpu_ops || td__gemm_prefers_blas () || n < 1 || k < 1)
    return 0;
  return (size_t)((n + nr - 1) / nr * nr * k) * sizeof (float);
}

void
td__packed_fill (const float *b, bool tb, int64_t n, int64_t k, float *out)
{
  Job job = { .tiles = td__gemm_tiles (), .n = n, .k = k, .b = b };
  const int64_t n_k = k_blocks (k), nr = job.tiles->nr, n_blocks = cut_columns (&job);

  job.b_k = tb ? 1 : n;
  job.b_column = tb ? k : 1;
  for (int64_t t = 0; t < n_blocks; t++)
    {
      const int64_t j0 = t * job.n_columns, left = n - j0;
      const int64_t columns = left < job.n_columns ? left : job.n_columns;
      const int64_t width = (columns + nr - 1) / nr * nr;

      for (int64_t q = 0; q < n_k; q++)
        {
          const int64_t k0 = k * q / n_k, kc = k * (q + 1) / n_k - k0;

          pack_b (&job, j0, columns, k0, kc, out + j0 * k + k0 * width);
        }
    }
}

/* --- the other way round --- */

/* Is C^T = B A^T the less work?  A few rows by the transpose of many: packing B, a shuffle of
 * all of it, may be a third of a product by 32 rows.  A number packed or put back costs as much
 * as half a tile's width of multiplications; columns are multiplied in halves of tiles. */
static bool
better_swapped (const TdGemmTiles *tiles, const TdGemm *g, const float *b)
{
  const int64_t half = tiles->nr / 2, m = g->m, n = g->n, k = g->k;
  int64_t n_wide, m_wide, as_is, swapped;

  if (g->ta || !g->tb || m >= n || 2 * m < half || k % 1024 == 0 || m * n > A_CHUNK_FLOATS
      || g->alpha != 1.0 || (g->beta != 0.0 && g->beta != 1.0)
      || (offer.packed != NULL && offer.b == b))
    return false;
  n_wide = (n + half - 1) / half * half;
  m_wide = (m + half - 1) / half * half;
  as_is = k * (m * n_wide + half * n);
  swapped = k * (n * m_wide + half * m) + 2 * half * m * n;
  return m_wide * (k < K_BLOCK ? k : K_BLOCK) <= B_BLOCK_FLOATS && swapped < as_is - as_is / 16;
}

typedef struct
{
  float *c, *sum;
  const float *turned; /* (n, m) */
  const TdGemm *g;
  int64_t m, n;
} Turn;

/* Rows [begin, end) of C; where it adds, by way of sum. */
static void
turn_body (int64_t begin, int64_t end, int worker, void *context)
{
  const Turn *t = context;
  float *c = t->c + begin * t->n, *out = t->sum != NULL ? t->sum + begin * t->n : c;

  td__gemm_pack (out, t->n, t->turned + begin, t->m, 1, t->n, end - begin);
  for (int64_t i = 0; out != c && i < (end - begin) * t->n; i++)
    c[i] += out[i];
  td__gemm_end_f32 (t->g, begin, end - begin, 0, t->n, c);
}

/* Each element is the same chain of sums, so the bits are the same. */
static TdStatus
multiply_swapped (const TdGemmTiles *tiles, const TdGemm *g, const float *a, const float *b,
                  float *c)
{
  const TdGemm turned = { .tb = true, .m = g->n, .n = g->m, .k = g->k, .alpha = 1 };
  const size_t bytes = (size_t)(g->m * g->n) * sizeof *c;
  float *product = td__cpu_scratch (TD_SCRATCH_C, bytes);
  Turn t = { .c = c, .turned = product, .g = g, .m = g->m, .n = g->n };
  TdStatus status;

  if (product == NULL)
    return TD_ERR_MEMORY;
  status = td__gemm_f32 (tiles, &turned, b, a, product);
  if (status == TD_OK && g->beta != 0.0
      && (t.sum = td__cpu_scratch (TD_SCRATCH_A, bytes)) == NULL)
    status = TD_ERR_MEMORY;
  if (status != TD_OK)
    return status;
  if (g->m * g->n <= TD_CPU_GRAIN)
    turn_body (0, g->m, 0, &t);
  else
    td__cpu_parallel (g->m, 16, turn_body, &t);
  return TD_OK;
}

TdStatus
td__gemm_f32 (const TdGemmTiles *tiles, const TdGemm *g, const float *a, const float *b,
              float *c)
{
  Job job = { .tiles = tiles, .n = g->n, .k = g->k, .ldc = g->n, .b = b };
  int64_t chunk;

  if (g->m == 0 || g->n == 0)
    return TD_OK;
  if (g->beta != 0.0 && g->beta != 1.0)
    for (int64_t i = 0; i < g->m * g->n; i++)
      c[i] *= (float)g->beta;
  if (g->k == 0 || g->alpha == 0.0)
    {
      if (g->beta == 0.0)
        memset (c, 0, (size_t)(g->m * g->n) * sizeof *c);
      td__gemm_end_f32 (g, 0, g->m, 0, g->n, c);
      return TD_OK;
    }
  if (better_swapped (tiles, g, b))
    return multiply_swapped (tiles, g, a, b, c);
  job.alpha = (float)g->alpha;
  job.g = g;
  job.add = g->beta != 0.0;
  job.a_row = g->ta ? 1 : g->k;
  job.a_k = g->ta ? g->m : 1;
  job.b_k = g->tb ? 1 : g->n;
  job.b_column = g->tb ? g->k : 1;
  if (offer.packed != NULL && offer.b == b && offer.tb == g->tb && offer.n == g->n
      && offer.k == g->k && tiles == td__gemm_tiles ())
    job.offered = offer.packed;
  chunk = A_CHUNK_FLOATS / g->k;
  chunk = chunk < 4 * tiles->mr ? 4 * tiles->mr : chunk;
  for (int64_t row = 0; row < g->m; row += chunk)
    {
      job.m = g->m - row < chunk ? g->m - row : chunk;
      job.a = a + row * job.a_row;
      job.c = c + row * g->n;
      job.first_row = row;
      if (!multiply_chunk (&job))
        return TD_ERR_MEMORY;
    }
  return TD_OK;
}

typedef struct
{
  const TdGemm *g;
  TdDtype dtype;
  const char *a, *b;
  char *c;
  TdStatus status;
} Batch;

static void
batch_body (int64_t begin, int64_t end, int worker, void *context)
{
  Batch *batch = context;
  const TdGemm *g = batch->g;
  const int64_t item = batch->dtype == TD_F64 ? 8 : 4;

  for (int64_t i = begin; i < end; i++)
    {
      const char *a = batch->a + i * g->stride_a * item, *b = batch->b + i * g->stride_b * item;
      char *c = batch->c + i * g->stride_c * item;
      const TdStatus status
          = batch->dtype == TD_F64
                ? td__gemm_f64 (g, (const double *)a, (const double *)b, (double *)c)
            : td__gemm_prefers_blas ()
                ? td__gemm_blas_f32 (g, (const float *)a, (const float *)b, (float *)c)
                : td__gemm_f32 (td__gemm_tiles (), g, (const float *)a, (const float *)b,
                                (float *)c);

      if (status != TD_OK)
        __atomic_store_n (&batch->status, status, __ATOMIC_RELAXED);
    }
}

TdStatus
td__cpu_gemm (TdDevice *d, const TdGemm *g, const TdTensor *a, const TdTensor *b, TdTensor *c)
{
  Batch batch = { g, c->dtype, a->data, b->data, c->data, TD_OK };

  if (c->dtype != TD_F32 && c->dtype != TD_F64)
    return td__cpu_half_gemm (d, g, a, b, c);
  if (g->batch <= 1 || 2.0 * (double)g->m * (double)g->n * (double)g->k >= 1e8)
    batch_body (0, g->batch, 0, &batch);
  else
    td__cpu_parallel (g->batch, 1, batch_body, &batch);
  return batch.status;
}
