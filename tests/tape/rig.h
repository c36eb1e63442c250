/* A model, a ring, an assembler, a writer and the tape that comes out, for tests of the tape.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../support/td-test.h"

#include "model.h"
#include "record/assembler.h"
#include "td-tape-reader.h"

typedef struct
{
  Model m;
  TdRing *ring;
  TdTapeWriter *w;
  TdAssembler *a;
  TdTapeReader *r;
  const char *path;
  char error[256];
} Rig;

/** Start recording; `options` may be NULL. */
void rig_start (Rig *rig, const TdTapeWriterOptions *options);

/** Run `n` iterations, draining after each. */
void rig_iterations (Rig *rig, int n);

/** Open the tape for reading, or poll it. */
TdTapeReader *rig_read (Rig *rig);

/** Load an iteration; fails the test when it cannot be. */
const TdTapeIteration *rig_load (Rig *rig, uint64_t number);

/** Make the golden tape that TD_MAKE_GOLDEN_TAPE names, by `record`, of a model of one layer;
 * false where the variable is not set. */
bool rig_makes_golden (void (*record) (Rig *rig, const char *path));

/** Stop recording with this wait status, unless it is -2: then as if the supervisor had died.
 */
void rig_stop (Rig *rig, int status);

/** Free everything. */
void rig_clear (Rig *rig);
