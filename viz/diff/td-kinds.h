/*
 * Dynamic and static graphs, aspect by aspect: what is said of them in general, and what was
 * measured in the recordings that are compared.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-compare.h"

G_BEGIN_DECLS

typedef struct
{
  const char *aspect;     /* "Definition" */
  const char *of_dynamic; /* "" where the literature says nothing */
  const char *of_static;
  char *measured[TD_N_SIDES]; /* "" where the recording tells nothing */
} TdKindsRow;

typedef struct
{
  guint n_rows;
  TdKindsRow *rows;
} TdKinds;

/** Measure both sides of a comparison; a reader may be NULL. Owner: the caller. */
TdKinds *td_kinds_new (const TdCompare *compare, TdTapeReader *reader_a,
                       TdTapeReader *reader_b);
void td_kinds_free (TdKinds *kinds);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdKinds, td_kinds_free)

G_END_DECLS
