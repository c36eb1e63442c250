/* LSTM cells: a thread for each unit of each row; x holds a unit's gates a, i, f, o side by
 * side. *Source*: chainer.functions.lstm.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"

#include "lstm.h"

TD_DEVICE float
sigmoid_of (float x)
{
  return 1 / (1 + td_exp_f32 (-x));
}

TD_DEVICE double
sigmoid_of (double x)
{
  return 1 / (1 + exp (-x));
}

TD_DEVICE float
tanh_of (float x)
{
  return td_tanh_f32 (x);
}

TD_DEVICE double
tanh_of (double x)
{
  return tanh (x);
}

/* The four gates of unit k. */
template <typename S> struct Gates
{
  typedef Number<S> N;
  typename N::T v[4];

  TD_MEMBER void
  load (const void *x, int64_t k, int packs)
  {
    if (packs)
      {
        const Pack<S, 4> pack = ((const Pack<S, 4> *)x)[k];

        for (int i = 0; i < 4; i++)
          v[i] = N::load (pack.v[i]);
      }
    else
      for (int i = 0; i < 4; i++)
        v[i] = N::load (((const S *)x)[4 * k + i]);
  }

  template <typename C>
  TD_MEMBER void
  store (void *x, int64_t k, int packs, C &counter) const
  {
    Pack<S, 4> pack;

    for (int i = 0; i < 4; i++)
      {
        pack.v[i] = N::store (v[i]);
        counter.see (N::load (pack.v[i]));
      }
    if (packs)
      ((Pack<S, 4> *)x)[k] = pack;
    else
      for (int i = 0; i < 4; i++)
        ((S *)x)[4 * k + i] = pack.v[i];
  }
};

template <typename S>
TD_DEVICE typename Number<S>::T
number_of (const void *x, int64_t k)
{
  return Number<S>::load (((const S *)x)[k]);
}

/* Number k of an array that is counted. */
template <typename S, typename C>
TD_DEVICE void
put (void *x, int64_t k, typename Number<S>::T v, C &counter)
{
  const S stored = Number<S>::store (v);

  counter.see (Number<S>::load (stored));
  ((S *)x)[k] = stored;
}

template <typename S, typename C>
TD_DEVICE void
cell (const TdLstmParams &a, int64_t k, C &of_out0, C &of_out1)
{
  typedef Number<S> N;
  Gates<S> x;

  x.load (a.x, k, a.packs);
  const typename N::T c
      = tanh_of (x.v[0]) * sigmoid_of (x.v[1]) + sigmoid_of (x.v[2]) * number_of<S> (a.c, k);

  put<S> (a.out0, k, c, of_out0);
  put<S> (a.out1, k, sigmoid_of (x.v[3]) * tanh_of (c), of_out1);
}

template <typename S, typename C>
TD_DEVICE void
cell_grad (const TdLstmParams &a, int64_t k, C &of_out0, C &of_out1)
{
  typedef Number<S> N;
  typedef typename N::T T;
  Gates<S> x, gx;

  x.load (a.x, k, a.packs);
  const T gh = number_of<S> (a.gh, k), co = tanh_of (number_of<S> (a.c_new, k));
  const T o = sigmoid_of (x.v[3]), g = number_of<S> (a.gc, k) + gh * o * (1 - co * co);
  T v = sigmoid_of (x.v[2]), i;

  gx.v[3] = gh * co * o * (1 - o);
  put<S> (a.out0, k, g * v, of_out0);
  gx.v[2] = g * number_of<S> (a.c, k) * v * (1 - v);
  v = tanh_of (x.v[0]);
  i = sigmoid_of (x.v[1]);
  gx.v[0] = g * i * (1 - v * v);
  gx.v[1] = g * v * i * (1 - i);
  gx.store (a.out1, k, a.packs, of_out1);
}

#define LSTM_KERNEL(S, kernel, each)                                                           \
  TD_STATS_KERNEL (kernel, TdLstmWithStats)                                                    \
  {                                                                                            \
    TD_COUNTER_AS (of_out0, Number<S>::T);                                                     \
    TD_COUNTER_AS (of_out1, Number<S>::T);                                                     \
                                                                                               \
    for (int64_t k = thread_index (); k < a.p.n * a.p.u; k += n_threads ())                    \
      each<S> (a.p, k, of_out0, of_out1);                                                      \
    TD_COUNTER_LEAVE_AS (of_out0, a.parts[0]);                                                 \
    TD_COUNTER_LEAVE_AS (of_out1, a.parts[1]);                                                 \
  }
#define LSTM(S, name)                                                                          \
  LSTM_KERNEL (S, lstm_##name, cell)                                                           \
  LSTM_KERNEL (S, lstm_grad_##name, cell_grad)
LSTM (float, f32)
LSTM (double, f64)
LSTM (td_f16, f16)
LSTM (td_bf16, bf16)
