/*
 * A tape of LeNet-5 made by hand: the 45 events an iteration of the design's pictures. For
 * tests of panels that need known numbers, and for looking at them.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

#include "tape/td-iteration.h"
#include "td-tape-reader.h"

typedef struct
{
  guint n_iterations;
  gint nan_at;          /* iteration whose last gradient of fc3/W holds a NaN; -1: none */
  gint inf_at;          /* the same, an infinity */
  gint cut_at;          /* iteration in which conv1/b gets no gradient; -1: none */
  gint extra_relu_at;   /* iteration with one more relu before the loss; -1: none */
  gint cold_at;         /* iteration in which everything takes twenty times as long; -1: none */
  gint static_from;     /* iteration from which on all events are replayed, in half the time */
  gint failed_event;    /* event that failed in every iteration; -1: none */
  gboolean no_update;   /* there is no optimizer */
  guint64 budget_bytes; /* thin the tape to it; 0: no limit */
  gboolean values;      /* store the tensor of conv2/W's gradient */
  const char *op_name;  /* instead of "max_pooling_2d": hostile labels; NULL: the usual */
} LenetOptions;

#define LENET_DEFAULT                                                                          \
  {                                                                                            \
    .n_iterations = 40, .nan_at = -1, .inf_at = -1, .cut_at = -1, .extra_relu_at = -1,         \
    .cold_at = -1, .static_from = G_MAXINT, .failed_event = -1, .values = TRUE                 \
  }

/** Write the tape. Owner of the file: the caller. */
void lenet_tape_write (const char *path, const LenetOptions *options);

/** Load an iteration of an open tape; the reader must outlive it. Owner: the caller. */
TdIteration *lenet_tape_load (TdTapeReader *reader, guint64 number);
