/* CUDA's device language for the host's C++ compiler, as far as our kernels speak it: what
 * kernel.cuh includes where nvcc is not the compiler.
 *
 * Each thread of a block is a fibre (emu.c).  A barrier or a shuffle stops it until the others
 * have come; shared memory knows its bounds and who used which place, and is filled with NaN
 * before each block.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <cstdint>
#include <cstring>

#include "emu-core.h"

#define TD_DEVICE static inline __attribute__ ((unused))
#define TD_MEMBER inline

#define TD_KERNEL(name, Params)                                                                \
  static void name (const Params &a);                                                          \
  static void name##_thread (const void *params)                                               \
  {                                                                                            \
    name (*(const Params *)params);                                                            \
  }                                                                                            \
  static TdEmuKernel name##_kernel = { #name, name##_thread, sizeof (Params), 0, nullptr };    \
  __attribute__ ((constructor)) static void name##_register ()                                 \
  {                                                                                            \
    td_emu_register (&name##_kernel);                                                          \
  }                                                                                            \
  static void name (const Params &a)

/* Is there nothing between what a thread did in this epoch and what is done now? */
static inline bool
td_emu_is_unordered (unsigned thread, uint32_t warp_epoch)
{
  const unsigned warp = threadIdx.x / 32;

  return thread != threadIdx.x
         && (thread / 32 != warp || warp_epoch == td_emu_warp_epoch[warp]);
}

static inline void
td_emu_reads (TdEmuTouch *t, const char *name, long i)
{
  const unsigned thread = threadIdx.x;

  if (t->written == td_emu_epoch && td_emu_is_unordered (t->writer, t->writers))
    td_emu_race (name, i, "read", t->writer, "written");
  if (t->read != td_emu_epoch)
    t->several = 0;
  else if (t->reader / 32 != thread / 32)
    t->several = 2;
  else if (t->reader != thread && t->several == 0)
    t->several = 1;
  t->read = td_emu_epoch;
  t->reader = (uint16_t)thread;
  t->readers = td_emu_warp_epoch[thread / 32];
}

static inline void
td_emu_writes (TdEmuTouch *t, const char *name, long i)
{
  const unsigned thread = threadIdx.x, warp = thread / 32;

  if (t->written == td_emu_epoch && td_emu_is_unordered (t->writer, t->writers))
    td_emu_race (name, i, "written", t->writer, "written");
  if (t->read == td_emu_epoch
      && (td_emu_is_unordered (t->reader, t->readers) || t->several == 2
          || (t->several == 1
              && (t->reader / 32 != warp || t->readers == td_emu_warp_epoch[warp]))))
    td_emu_race (name, i, "written", t->reader, "read");
  t->written = td_emu_epoch;
  t->writer = (uint16_t)thread;
  t->writers = td_emu_warp_epoch[warp];
}

/** A place of it, which is told of what is done there. */
template <typename T> class TdEmuPlace
{
public:
  TdEmuPlace (T *number_, TdEmuTouch *touch_, const char *name_, long i_)
      : number (number_), touch (touch_), name (name_), i (i_)
  {
  }

  operator T () const
  {
    td_emu_reads (touch, name, i);
    return *number;
  }

  TdEmuPlace &
  operator= (const T &v)
  {
    td_emu_writes (touch, name, i);
    *number = v;
    return *this;
  }

  TdEmuPlace &
  operator= (const TdEmuPlace &other)
  {
    return *this = (T)other;
  }

  void
  operator++ (int)
  {
    *this = (T)(*this + 1);
  }

private:
  T *number;
  TdEmuTouch *touch;
  const char *name;
  long i;
};

/** An array in shared memory. */
template <typename T, int N> class TdEmuShared
{
public:
  explicit TdEmuShared (const char *name)
  {
    area = { name, numbers, sizeof numbers, 0, nullptr };
    td_emu_shared (&area);
  }

  TdEmuPlace<T>
  operator[] (int64_t i)
  {
    area.used = 1;
    if (i < 0 || i >= N)
      td_emu_beyond (area.name, (long)i, N);
    return { &numbers[i], &touched[i], area.name, (long)i };
  }

private:
  T numbers[N];
  TdEmuTouch touched[N] = {};
  TdEmuArea area;
};

#define TD_SHARED(T, name, n) static TdEmuShared<T, n> name (#name)

/** A value's way through a warp. */
template <typename T>
static inline T
td_emu_exchange (TdEmuWarpOp op, uint32_t mask, T v, int argument, const char *file, int line)
{
  uint64_t bits = 0;

  static_assert (sizeof (T) <= sizeof bits, "a shuffle moves up to 8 bytes");
  std::memcpy (&bits, &v, sizeof v);
  bits = td_emu_warp (op, mask, bits, argument, file, line);
  std::memcpy (&v, &bits, sizeof v);
  return v;
}

#define __threadfence_system() ((void)0) /* fibres take turns */
#define __syncthreads() td_emu_barrier (__FILE__, __LINE__)
#define __syncwarp(...) td_emu_warp (TD_EMU_MEET, 0xFFFFFFFFu, 0, 0, __FILE__, __LINE__)
#define __shfl_xor_sync(mask, v, lane)                                                         \
  td_emu_exchange (TD_EMU_XOR, mask, v, lane, __FILE__, __LINE__)
#define __shfl_down_sync(mask, v, lanes)                                                       \
  td_emu_exchange (TD_EMU_DOWN, mask, v, lanes, __FILE__, __LINE__)
#define __shfl_up_sync(mask, v, lanes)                                                         \
  td_emu_exchange (TD_EMU_UP, mask, v, lanes, __FILE__, __LINE__)
#define __shfl_sync(mask, v, lane)                                                             \
  td_emu_exchange (TD_EMU_FROM, mask, v, lane, __FILE__, __LINE__)
#define __ballot_sync(mask, v)                                                                 \
  ((uint32_t)td_emu_warp (TD_EMU_BALLOT, mask, (v) != 0, 0, __FILE__, __LINE__))

static inline int
__popc (uint32_t v)
{
  return __builtin_popcount (v);
}

static inline int
__ffs (uint32_t v)
{
  return __builtin_ffs ((int)v);
}

/** One thread runs at a time, so that a plain addition is atomic; integers only. */
static inline unsigned long long
atomicAdd (unsigned long long *place, unsigned long long v)
{
  const unsigned long long old = *place;

  *place = old + v;
  return old;
}

static inline unsigned
atomicAdd (unsigned *place, unsigned v)
{
  const unsigned old = *place;

  *place = old + v;
  return old;
}
