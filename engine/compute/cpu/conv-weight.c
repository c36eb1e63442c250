/* Convolution on the CPU in f32: the gradient of the filters.
 *
 * gW (o, k) = sum over images and pixels of gy (o) times the window (k) under that pixel.  Per
 * pixel the kw numbers of one window row lie side by side in the image, so a panel of B, whose
 * rows are pixels, is made of short copies: panels hold as many whole window rows as fit.
 * Images are cut into a fixed number of chunks, each with a sum of its own, added in order: the
 * same bits for any number of threads.
 *
 * SPDX-License-Identifier: MIT */
#include "conv.h"

#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "gemm-tile.h"

enum
{
  PIXELS = 512,           /* per panel */
  MAX_CHUNKS = 8,         /* of images */
  PARTS_FLOATS = 1 << 23, /* at most, for the sums of all chunks: 32 MiB */
};

typedef struct
{
  const TdConvSizes *s;
  const TdGemmTiles *tiles;
  const float *x, *gy;
  float *parts; /* one sum per chunk */
  int64_t n_chunks;
  int64_t run;     /* window numbers that lie side by side in the image */
  int64_t columns; /* window numbers per panel: a multiple of run */
  bool failed;
} Job;

/* Copy run numbers for each of n pixels; run is a constant where this is inlined with one. */
static inline __attribute__ ((always_inline)) void
copy_runs (const float *x, int64_t step, int64_t n, int64_t run, int64_t nr, float *out)
{
  for (int64_t t = 0; t < n; t++)
    memcpy (out + t * nr, x + t * step, (size_t)run * sizeof *out);
}

/* Where the window number k begins in the image. */
static int64_t
window_place (const TdConvSizes *s, int64_t k, int64_t stride, int64_t plane)
{
  const int64_t j = k % s->kw, i = k / s->kw % s->kh, cz = k / s->kw / s->kh;

  return cz / s->kd * plane + cz % s->kd * s->dz * td__conv_slice (s) + i * s->dy * stride
         + j * s->dx;
}

/* Window numbers [k0, k0 + n) of pixels [p0, p0 + n_pixels): out[pixel][nr]. */
static void
pack_pixels (const Job *job, const float *x, int64_t stride, int64_t plane, int64_t k0,
             int64_t n, int64_t p0, int64_t n_pixels, float *out)
{
  const TdConvSizes *s = job->s;
  const int64_t nr = job->tiles->nr, run = job->run;

  if (n < nr)
    memset (out, 0, (size_t)(n_pixels * nr) * sizeof *out);
  for (int64_t r = 0; r < n; r += run)
    {
      const float *from = x + window_place (s, k0 + r, stride, plane);

      for (int64_t t = 0; t < n_pixels;)
        {
          const int64_t at = (p0 + t) / s->ow, ox = (p0 + t) % s->ow;
          const int64_t left = s->ow - ox, length = left < n_pixels - t ? left : n_pixels - t;
          const float *row = from + td__conv_row (s, at, stride) + ox * s->sx;
          float *to = out + t * nr + r;

          if (run == 5)
            copy_runs (row, s->sx, length, 5, nr, to);
          else if (run == 3)
            copy_runs (row, s->sx, length, 3, nr, to);
          else if (run == 1)
            copy_runs (row, s->sx, length, 1, nr, to);
          else
            copy_runs (row, s->sx, length, run, nr, to);
          t += length;
        }
    }
}

/* gy of one image and group as panels of A: rows are filters, k are pixels. */
static void
pack_gy (const Job *job, const float *gy, int64_t p0, int64_t n_pixels, float *out)
{
  const TdConvSizes *s = job->s;
  const int64_t n_panels = (s->og + job->tiles->mr - 1) / job->tiles->mr;

  for (int64_t q = 0; q < n_panels; q++)
    {
      const int64_t row = td__gemm_panel_row (s->og, n_panels, q);
      const int64_t rows = td__gemm_panel_row (s->og, n_panels, q + 1) - row;

      td__gemm_pack (out + row * n_pixels, rows, gy + row * s->pixels + p0, s->pixels, 1, rows,
                     n_pixels);
    }
}

/* Add one image's share of one group to sum (og, k). */
static void
add_image (const Job *job, const float *x, int64_t stride, int64_t plane, const float *gy,
           float *a, float *b, float *sum, bool add)
{
  const TdConvSizes *s = job->s;

  for (int64_t p = 0; p < s->pixels; p += PIXELS)
    {
      const int64_t n_pixels = s->pixels - p < PIXELS ? s->pixels - p : PIXELS;

      pack_gy (job, gy, p, n_pixels, a);
      for (int64_t k = 0; k < s->k; k += job->columns)
        {
          const int64_t n = s->k - k < job->columns ? s->k - k : job->columns;

          pack_pixels (job, x, stride, plane, k, n, p, n_pixels, b);
          td__gemm_block (job->tiles, s->og, n, n_pixels, a, b, sum + k, s->k, add || p > 0);
        }
    }
}

/* Chunks of images [begin, end). */
static void
chunks_body (int64_t begin, int64_t end, int worker, void *context)
{
  Job *job = context;
  const TdConvSizes *s = job->s;
  const int64_t size = s->o * s->k;
  float *a = td__cpu_scratch (TD_SCRATCH_A, (size_t)(s->og * PIXELS) * sizeof *a);
  float *b = td__cpu_scratch (TD_SCRATCH_B, (size_t)(job->tiles->nr * PIXELS) * sizeof *b);

  for (int64_t chunk = begin; chunk < end; chunk++)
    {
      const int64_t first = td__gemm_panel_row (s->n, job->n_chunks, chunk);
      const int64_t last = td__gemm_panel_row (s->n, job->n_chunks, chunk + 1);

      for (int64_t i = first; i < last; i++)
        for (int64_t g = 0; g < s->groups; g++)
          {
            const int64_t ig = i * s->groups + g;
            int64_t stride, plane;
            const float *x
                = td__conv_image (s, job->x + ig * s->cg * s->image, &stride, &plane);

            if (a == NULL || b == NULL || x == NULL)
              {
                __atomic_store_n (&job->failed, true, __ATOMIC_RELAXED);
                return;
              }
            add_image (job, x, stride, plane, job->gy + ig * s->og * s->pixels, a, b,
                       job->parts + chunk * size + g * s->og * s->k, i > first);
          }
    }
}

TdStatus
td__conv_weight_grad (const TdConvSizes *s, const float *x, const float *gy, float *gW,
                      bool accumulate)
{
  const int64_t size = s->o * s->k;
  Job job = { .s = s, .tiles = td__gemm_tiles (), .x = x, .gy = gy };

  job.run = s->dx == 1 && s->kw <= job.tiles->nr ? s->kw : 1;
  job.columns = job.tiles->nr / job.run * job.run;
  job.n_chunks = PARTS_FLOATS / size;
  job.n_chunks = job.n_chunks > MAX_CHUNKS ? MAX_CHUNKS : job.n_chunks;
  job.n_chunks = job.n_chunks > s->n ? s->n : job.n_chunks;
  job.n_chunks = job.n_chunks < 1 ? 1 : job.n_chunks;
  job.parts
      = td__cpu_scratch (TD_SCRATCH_PARTS, (size_t)(job.n_chunks * size) * sizeof *job.parts);
  if (job.parts == NULL)
    return TD_ERR_MEMORY;
  td__cpu_parallel (job.n_chunks, 1, chunks_body, &job);
  if (job.failed)
    return TD_ERR_MEMORY;
  for (int64_t chunk = 1; chunk < job.n_chunks; chunk++)
    for (int64_t i = 0; i < size; i++)
      job.parts[i] += job.parts[chunk * size + i];
  for (int64_t i = 0; i < size; i++)
    gW[i] = accumulate ? gW[i] + job.parts[i] : job.parts[i];
  return TD_OK;
}
