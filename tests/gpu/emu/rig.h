/* Kernels beside the CPU: one call made by the engine's own vtable and by the emulated kernels,
 * on equal numbers, and all that comes out compared.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "emu-core.h"
#include "kernels.h"

enum
{
  RIG_ARRAYS = 12,
  RIG_SPECIAL = 1, /**< some NaN, infinities, zeros among the numbers */
  RIG_KEEP = 2,    /**< an output that is read: it begins with numbers */
  RIG_WHOLE = 4    /**< whole numbers, high among them */
};

/** An operand: numbers spread over [low, high]. */
typedef struct
{
  TdDtype dtype;
  TdShape shape;
  double low, high;
  unsigned flags;
} RigArray;

/** Make the call: by the CPU if gpu is NULL. */
typedef TdStatus (*RigCall) (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out,
                             const void *context);

/** Is that order tried?  Each; under a sanitizer, which is twenty times slower, one in each
 * turn, so that there is a sanitizer's look at every array and an order's at every other one.
 */
bool rig_tries (TdEmuOrder order, int turn);

/** Run a call by the CPU and by the kernels: with arrays at the begin and at the end of guarded
 * pages, threads in each order.  Fails unless the statuses are the same, all orders give the
 * same bits, inputs stay as they were, and outputs are within `tolerance` (relative to 1 + |x|;
 * 0: equal) of the CPU's. */
void rig_check (const char *what, const RigArray *in, int n_in, const RigArray *out, int n_out,
                double tolerance, RigCall call, const void *context);

/** Fail if a kernel whose name begins with one of some words has not run yet. */
void rig_all_ran (const char *const *words, int n);

/** A launcher over the emulator, with guarded workspace. */
TdCudaLauncher *rig_launcher (void);

/** A number of a sequence that begins anew with rig_seed. */
uint64_t rig_random (uint64_t below);
void rig_seed (uint64_t seed);
/** A shape of up to `ndim` axes and about `size` elements; now and then with axes of 1 or 0. */
TdShape rig_shape (int ndim, int64_t size);

/** Memory that nothing may step over: at the end of its pages, or at their begin. */
void *rig_guarded (size_t bytes, bool at_end);
void rig_release (void *data, size_t bytes);

size_t rig_bytes_of (TdDtype dtype);
/** Element i as a double. */
double rig_at (const TdTensor *x, int64_t i);
