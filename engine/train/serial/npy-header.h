/* The header of an npy file: a dictionary as Python writes it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck.h"

/** What the dictionary says. */
typedef struct
{
  char descr[24]; /* '<f4'; cut, so that it names nothing, when it is longer */
  bool is_record; /* the dtype is a list of fields; then nothing else is known */
  bool fortran;
  TdShape shape;
} TdNpyHeader;

/** Read {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }: these three keys, each
 * once, and plain values.  What Python would have to compute is refused.  *Errors*: false. */
bool td__npy_header_parse (const char *text, TdNpyHeader *header);
