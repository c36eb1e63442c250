/* What the tape says of devices other than the host's own memory: which there are and how full
 * they are, and when their work ran.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdint.h>

#include "td-tape-pools.h"

/* Devices have small numbers, the engine's: 0 is the host.  Variables and memory records name
 * the device that they lie on.  An ITERATION has the section DEVICES, with one element for each
 * device that was opened, and DEVICE_TIMES, with one for each event whose time on its device is
 * known.  An event that ran on a device and has no element there was not timed: which it was
 * not for itself, or its iteration was none of those that are. */

/** How the time of an event on a device was found. */
typedef enum
{
  TD_TAPE_DEVICE_TIME_NONE,
  TD_TAPE_DEVICE_TIME_EXACT,  /* of its kernels, by the device's own tracing */
  TD_TAPE_DEVICE_TIME_SAMPLED /* between two marks on the stream, in iterations that are
                                 sampled: what the stream waited for in between counts */
} TdTapeDeviceTimeKind;

/** One more flag of a variable: its elements lie as if axis 1 came last (NHWC of an NCHW
 * shape). Shape, dims and numbers on the tape are logical all the same. */
enum
{
  TD_TAPE_VAR_CHANNELS_LAST = 1 << 6
};

/** DEVICE_TIMES: in the order of `event`; start since the iteration's. Clocks of devices are
 * laid on the host's so that nothing starts before it was issued. */
typedef struct
{
  uint64_t start_ns, duration_ns;
  uint32_t event;
  uint8_t device, stream;
  uint8_t kind; /* TdTapeDeviceTimeKind */
  uint8_t reserved;
} TdTapeDeviceTime;
static_assert (sizeof (TdTapeDeviceTime) == 24, "TdTapeDeviceTime changed size");

/** DEVICES: how full a device is at the iteration's end; 0 where nobody knows. */
typedef struct
{
  uint64_t total_bytes;    /* of the device */
  uint64_t outside_bytes;  /* taken by others: libraries, other programs */
  uint64_t reserved_bytes; /* taken from the device by this program's pool */
  uint64_t live_bytes;     /* of those, in use */
  uint32_t device;
  uint32_t name; /* string: "cuda:0 NVIDIA H200" */
} TdTapeDevice;
static_assert (sizeof (TdTapeDevice) == 40, "TdTapeDevice changed size");
