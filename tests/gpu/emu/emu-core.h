/* The kernel emulator: runs kernels that were compiled for the host, one fibre per thread.
 *
 * What a GPU leaves undefined ends the program here, with a line that says which kernel, block
 * and thread: a barrier that only some threads reach, a shuffle without its partners, an index
 * beyond shared memory, an address outside every array, a place of shared memory that two
 * threads use, one of them writing, with no barrier between, whoever came first.  Threads run
 * one at a time in an order that can be changed, so that places of other memory that they share
 * without order give different numbers.  It cannot see coalescing or speed.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tapedeck.h"

TD_BEGIN_DECLS

typedef struct
{
  unsigned x, y, z;
} TdEmuDim;
extern TdEmuDim threadIdx, blockIdx, blockDim, gridDim;

/** A kernel as the compiler left it. */
typedef struct TdEmuKernel TdEmuKernel;
struct TdEmuKernel
{
  const char *name;
  void (*thread) (const void *params);
  size_t params_bytes;
  long runs;
  TdEmuKernel *next;
};
void td_emu_register (TdEmuKernel *kernel);
/** The kernel of that name, or NULL. */
TdEmuKernel *td_emu_find (const char *name);
/** All of them, by `next`. */
TdEmuKernel *td_emu_kernels (void);

/** An array of shared memory. */
typedef struct TdEmuArea TdEmuArea;
struct TdEmuArea
{
  const char *name;
  void *data;
  size_t bytes;
  int used;
  TdEmuArea *next;
};
void td_emu_shared (TdEmuArea *area);
__attribute__ ((noreturn)) void td_emu_beyond (const char *name, long i, long n);

/** Who used a place of shared memory last, and when. */
typedef struct
{
  uint32_t written, read;    /* epochs; 0: never */
  uint32_t writers, readers; /* the warp's epochs */
  uint16_t writer, reader;
  uint16_t
      several; /* 1: other threads of the reader's warp have read it too; 2: of other warps */
} TdEmuTouch;
/** How often the block has met; how often each warp has. */
extern uint32_t td_emu_epoch, td_emu_warp_epoch[32];
__attribute__ ((noreturn)) void td_emu_race (const char *name, long i, const char *does,
                                             unsigned thread, const char *did);

typedef enum
{
  TD_EMU_MEET,
  TD_EMU_XOR,
  TD_EMU_DOWN,
  TD_EMU_UP,
  TD_EMU_FROM,
  TD_EMU_BALLOT
} TdEmuWarpOp;
void td_emu_barrier (const char *file, int line);
uint64_t td_emu_warp (TdEmuWarpOp op, uint32_t mask, uint64_t value, int argument,
                      const char *file, int line);

/** Which threads and blocks go first. */
typedef enum
{
  TD_EMU_FORWARD,
  TD_EMU_BACKWARD,
  TD_EMU_SHUFFLED,
  TD_EMU_ORDERS
} TdEmuOrder;
void td_emu_order (TdEmuOrder order);

/** Run a kernel over a grid; params are copied. */
void td_emu_run (TdEmuKernel *kernel, const unsigned grid[3], unsigned block,
                 const void *params);
/** How many kernels have run, and those of one name. */
long td_emu_launches (void);

/** Let a bad address say which kernel and thread used it. */
void td_emu_report_faults (void);

TD_END_DECLS
