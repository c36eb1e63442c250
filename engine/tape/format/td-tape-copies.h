/* What the tape says of copies between the host and devices: prose and record.  Included by
 * td-tape.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdint.h>

/* The section COPIES of an iteration has one element for each copy between memory of the host
 * and of a device, in the order in which the program issued them: those of to_device events,
 * arrays that the host fills, reads and writes of the program, batches, files.  `event` is the
 * event that was next, and with the reason OP the to_device event itself.  A batch that was
 * sent ahead is here when it is asked for; one that never was has the flag UNUSED.  What was
 * copied while no iteration was recorded belongs to the one that follows, and has the flag
 * BEFORE.
 *
 * With the flag TIMED there are times of the host: how long it was busy with the copy or, of
 * one that it reads, waited until the device had computed that and sent it.  Others have none:
 * batches that were sent ahead, and all of earlier recorders.  `device_kind` says whether the
 * device's own times are known too, as for events (TdTapeDeviceTimeKind); a copy that belongs
 * to an event whose time there is known has them in DEVICE_TIMES.
 *
 * Not among them is what the recording itself copies: tensors of level `values`, what a
 * debugger looks at, and answers of the device to questions of the engine, which are a few
 * words: statistics, whether indices are in range, whether a library's kernel keeps NaN.
 *
 * Programs that compute on the host alone have none, nor have tapes of earlier recorders. */

typedef enum
{
  TD_TAPE_COPY_TO_DEVICE,
  TD_TAPE_COPY_TO_HOST,
  TD_TAPE_N_COPY_WAYS
} TdTapeCopyWay;

typedef enum
{
  TD_TAPE_COPY_OP,
  TD_TAPE_COPY_READ,  /* the program asked for numbers */
  TD_TAPE_COPY_WRITE, /* the program wrote numbers into an array */
  TD_TAPE_COPY_NEW,   /* a new array of the host's numbers */
  TD_TAPE_COPY_BATCH, /* examples of a data set */
  TD_TAPE_COPY_LOAD,  /* out of a file */
  TD_TAPE_COPY_CHECK, /* a static function looks at numbers, or puts them back */
  TD_TAPE_N_COPY_WHYS
} TdTapeCopyWhy;

enum
{
  TD_TAPE_COPY_BEFORE = 1 << 0, /* the iteration */
  TD_TAPE_COPY_UNUSED = 1 << 1,
  TD_TAPE_COPY_TIMED = 1 << 2
};

/** COPIES: one copy. */
typedef struct
{
  uint64_t bytes;
  uint32_t event; /* before this event, or of it */
  uint32_t var;   /* TD_TAPE_NONE: not known, or none of this iteration */
  uint32_t site;
  uint8_t way, why;  /* TdTapeCopyWay, TdTapeCopyWhy */
  uint8_t device;    /* its number */
  uint8_t flags;     /* TD_TAPE_COPY_... */
  uint64_t start_ns; /* since the iteration's start; BEFORE: 0 */
  uint64_t duration_ns;
  uint64_t device_start_ns; /* the same by the device, where device_kind is not NONE */
  uint64_t device_duration_ns;
  uint8_t device_kind, device_stream; /* 0: in order with what it computes */
  uint8_t reserved[6];
} TdTapeCopy;
static_assert (sizeof (TdTapeCopy) == 64, "TdTapeCopy changed size");
