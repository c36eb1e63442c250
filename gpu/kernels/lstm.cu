/* LSTM cells: a thread for each unit of each row; x holds a unit's gates a, i, f, o side by side.
 * *Source*: chainer.functions.lstm.
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

#define LSTM(T, name)                                                                          \
  TD_KERNEL (td_lstm_##name, TdLstmParams)                                                     \
  {                                                                                            \
    for (int64_t k = thread_index (); k < a.n * a.u; k += n_threads ())                        \
      {                                                                                        \
        const T *x = (const T *)a.x + 4 * k;                                                   \
        const T c = tanh_of (x[0]) * sigmoid_of (x[1]) + sigmoid_of (x[2]) * ((const T *)a.c)[k]; \
                                                                                               \
        ((T *)a.out0)[k] = c;                                                                  \
        ((T *)a.out1)[k] = sigmoid_of (x[3]) * tanh_of (c);                                    \
      }                                                                                        \
  }                                                                                            \
  TD_KERNEL (td_lstm_grad_##name, TdLstmParams)                                                \
  {                                                                                            \
    for (int64_t k = thread_index (); k < a.n * a.u; k += n_threads ())                        \
      {                                                                                        \
        const T *x = (const T *)a.x + 4 * k;                                                   \
        T *gx = (T *)a.out1 + 4 * k;                                                           \
        const T gh = ((const T *)a.gh)[k];                                                     \
        const T o = sigmoid_of (x[3]), co = tanh_of (((const T *)a.c_new)[k]);                 \
        const T g = ((const T *)a.gc)[k] + gh * o * (1 - co * co);                             \
        T v = sigmoid_of (x[2]), i;                                                            \
                                                                                               \
        gx[3] = gh * co * o * (1 - o);                                                         \
        ((T *)a.out0)[k] = g * v;                                                              \
        gx[2] = g * ((const T *)a.c)[k] * v * (1 - v);                                         \
        v = tanh_of (x[0]);                                                                    \
        i = sigmoid_of (x[1]);                                                                 \
        gx[0] = g * i * (1 - v * v);                                                           \
        gx[1] = g * v * i * (1 - i);                                                           \
      }                                                                                        \
  }
LSTM (float, f32)
LSTM (double, f64)
