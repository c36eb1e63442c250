/* Arrays of a reference: what a framework of any kind computed, layer by layer, in an npz file.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape-private.h"
#include "td-tape-import.h"
#include "td-tape-writer.h"
#include "zip.h"

#define TAPE_ARRAYS_NONE UINT32_MAX

typedef enum
{
  TAPE_ARRAY_OUT,          /* what a layer returned */
  TAPE_ARRAY_OUT_GRADIENT, /* of the loss, with regard to that */
  TAPE_ARRAY_PARAMETER,
  TAPE_ARRAY_GRADIENT, /* of a parameter */
  TAPE_ARRAY_LEFT_OUT
} TapeArrayKind;

/** A member of the file. */
typedef struct
{
  const TdZipMember *member;
  char *path; /* of its layer, with "/" between names, then the name of a parameter or "" */
  char *name; /* within `path`, behind its end */
  uint32_t layer, next; /* the next one of its layer; TAPE_ARRAYS_NONE */
  TapeArrayKind kind;
} TapeArray;

typedef struct
{
  const char *path;              /* of its first array */
  uint32_t first, last;          /* arrays: parameters and their gradients */
  uint32_t out, out_gradient;    /* arrays; TAPE_ARRAYS_NONE */
  uint32_t forward, n_gradients; /* event; gradients of parameters */
} TapeArrayLayer;

typedef struct
{
  TdZip *zip;
  const TdTapeImportOptions *watch; /* NULL: nobody looks on */
  TapeArray *arrays;                /* as many as the file has members */
  TapeArrayLayer *layers;
  uint32_t n_arrays, n_layers;
  TapeMap by_path; /* layer + 1 */
  uint32_t n_left_out;
  char left_out[160]; /* the first one, and why */
  char *error;
  size_t n_error;
} TapeArrays;

/** Say whether a file begins as zip files do. */
bool td__tape_is_zip (const char *path);

/** Say what each array of a file is.  False with a line in t->error. */
bool td__tape_arrays_open (TapeArrays *t, const char *path);
void td__tape_arrays_clear (TapeArrays *t);
/** Bytes of all elements, at most. */
uint64_t td__tape_arrays_bytes (const TapeArrays *t);
/** One more array is left out; `why` is of the first of them. */
void td__tape_arrays_leave_out (TapeArrays *t, TapeArray *a, const char *why);

/** Write the iteration. */
bool td__tape_arrays_write (TapeArrays *t, TdTapeWriter *w, TdTapeImport *what);
