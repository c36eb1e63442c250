/* The header of an npy file: a dictionary as Python writes it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum
{
  TD__NPY_MAX_DIMS = 8
};

/** What the dictionary says. */
typedef struct
{
  char descr[24]; /* '<f4'; cut, so that it names nothing, when it is longer */
  bool is_record; /* the dtype is a list of fields; then nothing else is known */
  bool fortran;
  int ndim;
  int64_t dim[TD__NPY_MAX_DIMS];
} TdNpyHeader;

/** Read {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }: these three keys, each
 * once, and plain values.  What Python would have to compute is refused.  *Errors*: false. */
bool td__npy_header_parse (const char *text, TdNpyHeader *header);

/** Read the header of an npy file in memory, and where its elements begin.  *Errors*: false and
 * *why. */
bool td__npy_header_read (const void *data, size_t bytes, TdNpyHeader *header, size_t *offset,
                          const char **why);
