/* Matrix products for where no library does them, by tiles.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"

enum
{
  TILE = 64,  /* of C, both ways */
  DEPTH = 16, /* of a step */
  EACH = 4    /* rows and columns of a thread */
};

template <typename T, typename Room>
TD_DEVICE void
gemm (const TdGemmParams &p, Room &as, Room &bs)
{
  const TdGemm &g = p.g;
  const int64_t columns = (g.n + TILE - 1) / TILE;
  const int64_t row = blockIdx.x / columns * TILE, column = blockIdx.x % columns * TILE;
  const int x = threadIdx.x % (TILE / EACH), y = threadIdx.x / (TILE / EACH);

  for (int64_t batch = blockIdx.y; batch < g.batch; batch += gridDim.y)
    {
      const T *a = (const T *)p.a + batch * g.stride_a,
              *b = (const T *)p.b + batch * g.stride_b;
      T *c = (T *)p.c + batch * g.stride_c;
      T sum[EACH][EACH] = {};

      for (int64_t k0 = 0; k0 < g.k; k0 += DEPTH)
        {
          for (int t = threadIdx.x; t < TILE * DEPTH; t += TD_BLOCK)
            {
              /* Neighbouring threads read neighbours, whichever way the matrix lies. */
              const int am = g.ta ? t % TILE : t / DEPTH, ak = g.ta ? t / TILE : t % DEPTH;
              const int bn = g.tb ? t / DEPTH : t % TILE, bk = g.tb ? t % DEPTH : t / TILE;
              const int64_t i = row + am, j = column + bn;

              as[ak * (TILE + 1) + am] = i < g.m && k0 + ak < g.k
                                             ? a[g.ta ? (k0 + ak) * g.m + i : i * g.k + k0 + ak]
                                             : (T)0;
              bs[bk * (TILE + 1) + bn] = j < g.n && k0 + bk < g.k
                                             ? b[g.tb ? j * g.k + k0 + bk : (k0 + bk) * g.n + j]
                                             : (T)0;
            }
          __syncthreads ();
          for (int k = 0; k < DEPTH; k++)
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
              for (int j = 0; j < EACH; j++)
                sum[i][j]
                    += as[k * (TILE + 1) + y * EACH + i] * bs[k * (TILE + 1) + x + j * 16];
          __syncthreads ();
        }
#pragma unroll
      for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++)
          {
            const int64_t at_row = row + y * EACH + i, at_column = column + x + j * 16;
            T *place = c + at_row * g.n + at_column;

            if (at_row < g.m && at_column < g.n)
              *place = (T)g.alpha * sum[i][j] + (g.beta != 0 ? (T)g.beta * *place : (T)0);
          }
    }
}

#define PRODUCT(T, name)                                                                       \
  TD_KERNEL (td_gemm_##name, TdGemmParams)                                                     \
  {                                                                                            \
    TD_SHARED (T, as, DEPTH *(TILE + 1));                                                      \
    TD_SHARED (T, bs, DEPTH *(TILE + 1));                                                      \
                                                                                               \
    gemm<T> (a, as, bs);                                                                       \
  }
PRODUCT (float, f32)
PRODUCT (double, f64)
