/* LSTM cells: a thread for each unit of each row; x holds a unit's gates a, i, f, o side by
 * side. *Source*: chainer.functions.lstm.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"

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

  TD_MEMBER void
  store (void *x, int64_t k, int packs) const
  {
    Pack<S, 4> pack;

    for (int i = 0; i < 4; i++)
      pack.v[i] = N::store (v[i]);
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

template <typename S>
TD_DEVICE void
cell (const TdLstmParams &a, int64_t k)
{
  typedef Number<S> N;
  Gates<S> x;

  x.load (a.x, k, a.packs);
  const typename N::T c
      = tanh_of (x.v[0]) * sigmoid_of (x.v[1]) + sigmoid_of (x.v[2]) * number_of<S> (a.c, k);

  ((S *)a.out0)[k] = N::store (c);
  ((S *)a.out1)[k] = N::store (sigmoid_of (x.v[3]) * tanh_of (c));
}

template <typename S>
TD_DEVICE void
cell_grad (const TdLstmParams &a, int64_t k)
{
  typedef Number<S> N;
  typedef typename N::T T;
  Gates<S> x, gx;

  x.load (a.x, k, a.packs);
  const T gh = number_of<S> (a.gh, k), co = tanh_of (number_of<S> (a.c_new, k));
  const T o = sigmoid_of (x.v[3]), g = number_of<S> (a.gc, k) + gh * o * (1 - co * co);
  T v = sigmoid_of (x.v[2]), i;

  gx.v[3] = gh * co * o * (1 - o);
  ((S *)a.out0)[k] = N::store (g * v);
  gx.v[2] = g * number_of<S> (a.c, k) * v * (1 - v);
  v = tanh_of (x.v[0]);
  i = sigmoid_of (x.v[1]);
  gx.v[0] = g * i * (1 - v * v);
  gx.v[1] = g * v * i * (1 - i);
  gx.store (a.out1, k, a.packs);
}

#define LSTM(S, name)                                                                          \
  TD_KERNEL (td_lstm_##name, TdLstmParams)                                                     \
  {                                                                                            \
    for (int64_t k = thread_index (); k < a.n * a.u; k += n_threads ())                        \
      cell<S> (a, k);                                                                          \
  }                                                                                            \
  TD_KERNEL (td_lstm_grad_##name, TdLstmParams)                                                \
  {                                                                                            \
    for (int64_t k = thread_index (); k < a.n * a.u; k += n_threads ())                        \
      cell_grad<S> (a, k);                                                                     \
  }
LSTM (float, f32)
LSTM (double, f64)
LSTM (td_f16, f16)
LSTM (td_bf16, bf16)
