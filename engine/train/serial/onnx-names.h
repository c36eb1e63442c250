/* Names that are there once: those of values, and those of nodes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/** A set of names; all zero is an empty one. */
typedef struct TdOnnxNames
{
  struct TdOnnxTaken
  {
    char *text;
    unsigned next; /**< number of the next one that wants it */
  } * slots;
  size_t n, capacity;
} TdOnnxNames;

/** Take "conv1/Conv", or "conv1/Conv_1" if that is taken ...; the same calls give the same
 * names.  *Owner*: the set. */
const char *td__onnx_name_take (TdOnnxNames *names, const char *wanted);
void td__onnx_names_free (TdOnnxNames *names);
