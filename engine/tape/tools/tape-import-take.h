/* What taking a snapshot out of its pickle is made of: segments and traces, stacks.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape-import.h"

typedef enum
{
  TAPE_KEY_SEGMENTS,
  TAPE_KEY_TRACES,
  TAPE_KEY_SETTINGS,
  TAPE_KEY_CONF,
  TAPE_KEY_DEVICE,
  TAPE_KEY_ADDRESS,
  TAPE_KEY_TOTAL,
  TAPE_KEY_STREAM,
  TAPE_KEY_POOL,
  TAPE_KEY_BLOCKS,
  TAPE_KEY_SIZE,
  TAPE_KEY_REQUESTED,
  TAPE_KEY_STATE,
  TAPE_KEY_FRAMES,
  TAPE_KEY_HISTORY,
  TAPE_KEY_REAL_SIZE,
  TAPE_KEY_ACTION,
  TAPE_KEY_ADDR,
  TAPE_KEY_DEVICE_FREE,
  TAPE_KEY_TIME,
  TAPE_KEY_FILE,
  TAPE_KEY_LINE,
  TAPE_KEY_NAME,
  TAPE_KEY_METADATA,
  TAPE_KEY_ANNOTATIONS,
  TAPE_KEY_STAGE,
  TAPE_KEY_TYPE,
  TAPE_N_KEYS
} TapeKey;

enum
{
  TAPE_N_ACTIONS = 10
};

typedef struct
{
  TapeSnapshot *s;
  const TapePickle *p;
  TapeValue keys[TAPE_N_KEYS], actions[TAPE_N_ACTIONS];
  TapeMap frame_sites; /* hash of a frame -> index + 1 */
  TapeValue *seen;     /* which frame it is, and its site */
  uint32_t *seen_sites;
  uint64_t n_seen, room_seen, room_seen_sites;
  TapeMap calls;  /* hash of a site and what is around it -> number of the call */
  TapeMap stacks; /* hash of a list of frames -> its place's index + 1 */
  TapePlace *places;
  TapeValue *lists; /* whose places they are */
  uint64_t n_places, room_places, room_lists;
  uint64_t n_of_device; /* entries so far, of the newest device */
  uint64_t n_in_device; /* of these, about as many are still there */
  bool in_trace;
  int64_t outer,
      inner; /* what is looked at: segment and block, or device and entry; -1: none */
  uint64_t n_looked;
  char *error;
  size_t n_error;
} TapeSnapshotTake;

/** Set the error, with where in the snapshot it is.  Returns false. */
bool td__tape_take_fail (TapeSnapshotTake *m, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

TapeValue td__tape_take_member (const TapeSnapshotTake *m, TapeValue dict, TapeKey key);
bool td__tape_take_number (const TapeSnapshotTake *m, TapeValue dict, TapeKey key,
                           uint64_t *out);

/** Find the place that the frames of a block or an entry tell.  False: an error is set. */
bool td__tape_take_frames (TapeSnapshotTake *m, TapeValue dict, TapePlace *place);

/** Copy a text that is to be shown: bytes that are no UTF-8 become question marks. */
const char *td__tape_clean (const char *text, char *out, size_t size);
