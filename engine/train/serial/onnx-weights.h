/* The file of an ONNX model: what it says, its initializers, and the file beside that has their
 * numbers where they are asked for there, or are too many for a message of protocol buffers.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "protobuf.h"
#include "static/schedule.h"

/** An array that is there before a call. */
typedef struct TdOnnxWeight
{
  uint32_t node;
  const char *name; /**< *Owner*: the writer's names */
} TdOnnxWeight;

typedef struct TdOnnxWeights
{
  TdOnnxWeight *list;
  uint32_t n;
} TdOnnxWeights;

/** A message may have 2^31 - 1 bytes; what is more goes beside.  For tests: another number. */
extern size_t td__onnx_most_bytes;

void td__onnx_weights_add (TdOnnxWeights *w, uint32_t node, const char *name);
void td__onnx_weights_free (TdOnnxWeights *w);
/** Write PATH: the fields of head, a graph of these fields and the initializers, the fields of
 * tail; and PATH.data, if the numbers go beside.  One array at a time is in memory, and none
 * that the host has.  *Errors*: TD_ERR_IO, TD_ERR_DEVICE after td__fail; PATH is as it was. */
TdStatus td__onnx_write (const char *call, const TdSchedule *s, const TdOnnxWeights *w,
                         const TdMessage *head, const TdMessage *graph, const TdMessage *tail,
                         bool beside, const char *path, const TdSite *site);
