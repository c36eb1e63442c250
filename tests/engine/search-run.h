/* Running one random program in one of several ways, each in an engine of its own, and what is
 * noted of it: every status, result, gradient and weight.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "search-program.h"

#include <tapedeck.h>

enum
{
  MAX_NOTES = 4000
};

/** One of the ways. */
typedef struct
{
  const char *name;
  bool is_static;
  int verify; /* TdEngine.static_verify */
  bool other_passes, observed, recorded, stopped;
} Mode;

typedef struct
{
  char what[24];
  int iteration;
  uint64_t hash; /* of numbers; of a status 1: TD_OK, 2: an error */
} Note;

/** What the code may read, which is watched. */
typedef struct
{
  int32_t fails, fails_backward;
  int64_t own; /* the code reads and sets it */
} Watched;

typedef struct
{
  const Program *p;
  const Mode *mode;
  FILE *tells; /* what goes wrong is said there; NULL: nowhere */
  Note *notes;
  int n_notes;
  uint64_t n_replays, n_differences;
  /* of the engine that runs */
  TdLink *root, *layers[2], *twin, *late, *bn, *stateless, *stateful, *marked, *other_root,
      *other;
  TdVar *memory;                        /* of root, REMEMBER changes it */
  TdVar *captured, *square[3], *row[3]; /* of each other dtype, square (COLUMNS, COLUMNS) */
  TdStatic *outer, *inner;
  TdOpt *opt, *other_opt;
  Watched watched;
  double hidden;
  int64_t n_effects;
  int iteration;
  bool failed; /* this iteration */
  bool broken; /* the trainer ended with an error */
  uint32_t hooked;
} Run;

/** Set the folder of files that runs write. */
void run_files (const char *folder);
/** Name one of those. */
void run_file (const char *name, char *path, size_t size);
/** Run p from its beginning to its end. */
void run_program (const Program *p, const Mode *mode, Run *r);

/* search-code.c: the static function, and what it is made of */
void code_prepare (Run *r);
void code_free (Run *r);
/** The name of the learning rate of a kind of optimizer; NULL: it has none. */
const char *optimizer_rate (unsigned kind);
void code_body (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out);
/* search-loop.c: one iteration */
void loop_iteration (Run *r);
/** What is done where a program may be stopped, in each way alike: what no file keeps. */
void loop_boundary (Run *r);

void note_hash (Run *r, const char *what, uint64_t hash);
void note_var (Run *r, const char *what, TdVar *v);
/** Note it, and take the error. */
TdStatus note_status (Run *r, const char *what, TdStatus status);
/** Numbers in -1 .. 1, the same for the same seed. */
void fill_array (TdVar *v, unsigned seed);
TdVar *fresh_array (int64_t rows, int64_t columns, unsigned seed);
