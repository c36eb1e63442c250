/* A device for tests that is as far away as a GPU: the host cannot touch its memory, and its
 * work is done later.
 *
 * Its addresses are mapped without any permission; a second mapping of the same pages is what
 * its kernels, the CPU's, are given.  Calls are copied into a queue and run in order when a
 * result is asked for or the queue is full.  New memory holds NaN.  So code that looks at an
 * array behind the device's back, or counts on a result before its time, faults or differs.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "compute/alloc/pool.h"
#include "device.h"

/** What the device is called; the tests of the CUDA module run the same programs on theirs. */
#ifndef FAKE_REMOTE_NAME
#define FAKE_REMOTE_NAME "remote"
#endif

/** Register the device with a started engine.
 * *Owner*: the engine, until td_finish.
 * *Errors*: NULL when there is no room for it. */
TdDevice *fake_remote_start (void);

/** Say how many calls wait in the queue. */
int fake_remote_pending (void);

/** Say how many calls were queued since fake_remote_start. */
long fake_remote_queued (void);

extern const TdDeviceOps fake_remote_ops;

/* --- between the queue and the slots --- */

enum
{
  FAKE_REMOTE_TENSORS = 12 /**< of one call */
};

/** A call on its way: what to run, and copies of all it was given. */
typedef struct FakeCall FakeCall;
struct FakeCall
{
  const char *name;
  TdStatus (*run) (FakeCall *c, TdDevice *cpu);
  int kind;
  int axis;
  uint32_t axes;
  bool accumulate;
  double p, q;
  union
  {
    TdRngKey key;
    TdStrides walk;
    TdGemm gemm;
    TdConv conv;
    TdPooling pooling;
    TdResize resize;
    TdRowNorm norm;
    TdAttention attention;
    TdUpdate update;
    double doubles[2];
    int64_t integers[3];
  };
  int n_in, n_out;
  TdTensor t[FAKE_REMOTE_TENSORS]; /**< inputs, then outputs; data as the kernels see it */
  TdShape shapes[FAKE_REMOTE_TENSORS];
  char *to;
  const char *from;
  void *bytes; /**< what an upload brings */
  size_t n_bytes;
  bool lost; /**< it was given an address that is not the device's */
};

/** Begin a call.  *Owner*: the queue, from fake_remote_enqueue on. */
FakeCall *fake_remote_call (const char *name, TdStatus (*run) (FakeCall *c, TdDevice *cpu));

/** Copy operands into a call; NULL stays absent.  Inputs come first. */
void fake_remote_inputs (FakeCall *c, const TdTensor *in, int n);
void fake_remote_outputs (FakeCall *c, const TdTensor *out, int n);

/** Where the kernels see a device address; marks the call as lost if it is not one. */
char *fake_remote_alias (FakeCall *c, const void *address);

/** Put a call last in the queue. */
TdStatus fake_remote_enqueue (FakeCall *c);

/** Run what waits, then this call, and free it. *Sync*. */
TdStatus fake_remote_run_now (FakeCall *c);

/** Run what waits.  *Errors*: the first a queued kernel returned since the last one was told.
 */
TdStatus fake_remote_drain (void);

extern const TdSegmentProvider fake_remote_provider;
