/* Every row of op-cases, and of operations that draw, as a static function that is written as
 * C: what the table of what goes out and the test of its other types share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "op-cases.h"

enum
{
  MOST_ARRAYS = 9,
  N_FORMATS = 2
};
/** "c", "onnx". */
extern const char *const row_formats[N_FORMATS];

/** One row of the tables, called once. */
typedef struct
{
  const OpCase *c;
  TdDtype run;               /**< what its floating-point numbers are */
  void *arrays[MOST_ARRAYS]; /**< inputs, then outputs */
  size_t bytes[MOST_ARRAYS];
  TdDtype dtype[MOST_ARRAYS];
  TdShape shape[MOST_ARRAYS];
  bool random, is_open;       /**< as ONNX it takes other batches */
  char said[N_FORMATS][1024]; /**< why it is refused; "": it is written */
} Row;

extern Row *rows;
extern int n_rows;

/** Call every row in each of these types, and write it as C; `also`, if not NULL, sees each
 * call with its static function while its scope is open. */
void rows_make (const TdDtype *runs, int n_runs,
                void (*also) (Row *row, TdStatic *s, TdVar *const *x, TdVar *const *y));
/** "case12.c" in the test's folder.  *Owner*: as td_test_tmp. */
const char *row_file (const Row *row, const char *ending);
/** Write a row's function, and keep why it cannot be. */
void row_save (Row *row, TdStatic *s, int format);
void rows_forget (void);

/** Where a number that is none stands: in an input, first, or in the middle and last. */
typedef struct
{
  double number;
  int input;
  bool first;
} Planting;

/** See a copy of the row for each of NaN and the infinities, planted in each input of
 * floating-point numbers, with what the engine makes of it.  Those that it refuses, and those
 * that its kernels do not agree on, are left out; returns how many there were. */
int row_each_planted (const Row *row,
                      void (*each) (const Row *planted, const Planting *p, void *user),
                      void *user);

/** Compile the rows of these types that were written, as one library, with the compiler and its
 * options, and call each: fails where one does not give what the engine gave.  Floats may be
 * 1e-5 off, doubles 1e-12, halves the next number.  Prints how many there were, and how many
 * halves are off. */
void rows_agree_as_c (const TdDtype *runs, int n_runs, const char *compiler);
