/* Calls that a program does not make: where it calls only `res3/conv1`, `res3/bn1` and so on,
 * all that happens between the first and the last of them is what a call of `res3` would be.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-iteration.h"

typedef struct
{
  TdLayer *layers; /* the recorded calls and the implied ones, in order of entering */
  guint n_layers;
  gint32 *event_layer;   /* innermost, of forward events; -1 at the top */
  GStringChunk *strings; /* names and paths of the implied ones */
} TdLayers;

/** Add the implied calls to the recorded ones. Owner: the caller, td__layers_clear(); borrows
 * names and paths from the iteration. */
void td__layers_imply (TdLayers *self, TdIteration *iteration);
void td__layers_clear (TdLayers *self);
