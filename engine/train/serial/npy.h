/* NumPy's array files: a header that is a Python dictionary, then the elements.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck-op.h"

/** What a header says. */
typedef struct
{
  TdDtype dtype;
  bool fortran;
  TdShape shape;
  size_t offset; /**< of the elements */
} TdNpy;

/** Understand a header, and check that the elements are all there.  False: *why. */
bool td__npy_parse (const void *data, size_t bytes, TdNpy *npy, const char **why);
/** The same where more may lie behind it; *used: bytes of the file. */
bool td__npy_parse_first (const void *data, size_t bytes, TdNpy *npy, size_t *used,
                          const char **why);
/** An npy file in memory, with bfloat16 written as float32.
 * *Owner*: the caller, free (). */
void *td__npy_format (TdDtype dtype, const TdShape *shape, const void *elements, size_t *bytes);
/** Element by element, row-major, as doubles or exactly: dst of dtype and npy's shape. */
/** Find the first of n elements of one dtype that another cannot hold: a fraction or a number
 * out of range as an integer, an integer that a float would round, a finite number that would
 * become infinite, or 0 and was not.  Rounding between floats is no loss.  False: all fit. */
bool td__npy_misfit (TdDtype from, const void *elements, int64_t n, TdDtype to, int64_t *at);
void td__npy_convert (const TdNpy *npy, const void *elements, TdDtype dtype, void *dst);

/** The letter of a file's element type ('f', 'O', 'U' ...), 0 if it is no npy file. */
char td__npy_type (const void *data, size_t bytes, size_t *offset);
/** A single text (<U5, |S5) as UTF-8 with its final 0, which *text_bytes counts.
 * *Owner*: the caller, free ().  NULL: *why. */
char *td__npy_parse_text (const void *data, size_t bytes, size_t *text_bytes, const char **why);
/** An npy file of one text.  *Owner*: the caller, free ().  NULL: it is not UTF-8. */
void *td__npy_format_text (const char *text, size_t *bytes);
