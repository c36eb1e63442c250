/* What the tape says of the pools of a device's memory: prose and record.  Included by
 * td-tape-device.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdint.h>

/* A program takes memory of a device in segments, and keeps what has a life of its own in
 * segments of its own: a pool.  The section POOLS of an iteration has one element for each
 * device and pool that has segments at the iteration's end, in the order of DEVICES and then of
 * TdTapePoolKind; that of a device without any none.  The host's, which is device 0 and none of
 * DEVICES, come before them; tapes of earlier recorders have none of the host's.
 *
 * reserved_bytes are the segments'.  Of them live_bytes are in use; pending_bytes were given
 * back, but work that was issued to the device may still use them; the rest is free.  Of what
 * is free split_bytes lie in segments with a block in use, so that they cannot go back to the
 * device, and largest_free_bytes is the largest piece: a larger request needs a new segment.
 *
 * The pool CAPTURE is the recording's own: it is not in the device's reserved_bytes, nor in its
 * outside_bytes, and no view counts it as the program's.  PINNED is memory of the host beside
 * the host's pools, which other devices copy from and answer to. */

typedef enum
{
  TD_TAPE_POOL_DEFAULT,
  TD_TAPE_POOL_WORKSPACE, /* what kernels need while they run */
  TD_TAPE_POOL_STATIC,    /* planned blocks of static schedules */
  TD_TAPE_POOL_GRAPH,     /* what captured CUDA graphs refer to */
  TD_TAPE_POOL_CAPTURE,   /* recording itself */
  TD_TAPE_POOL_UPLOAD,    /* what copies from the host fill while others compute */
  TD_TAPE_POOL_PINNED,    /* of the host, for devices */
  TD_TAPE_POOL_PRIVATE,   /* of a snapshot: pools that a program or its CUDA graphs have for
                             themselves */
  TD_TAPE_N_POOLS
} TdTapePoolKind;

/** POOLS: one pool of one device at the iteration's end. */
typedef struct
{
  uint64_t reserved_bytes, live_bytes, pending_bytes;
  uint64_t split_bytes, largest_free_bytes;
  uint32_t device;
  uint8_t kind; /* TdTapePoolKind */
  uint8_t reserved[3];
} TdTapePool;
static_assert (sizeof (TdTapePool) == 48, "TdTapePool changed size");
