/*
 * The table of gradient norms from inside.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-gradient.h"

G_BEGIN_DECLS

typedef enum
{
  TD_MISSING_NO,
  TD_MISSING_NOT_USED,
  TD_MISSING_CUT
} TdMissing;

typedef struct
{
  guint n;
  double *norm;
  guint8 *cell;     /* TdCell */
  guint8 *missing;  /* TdMissing */
  gboolean updated; /* an optimizer took gradients: what is missing is known */
  TdGradientClip clip;
} TdGradientColumn;

typedef struct
{
  char *path;
  guint64 key;
  guint first_event; /* that read it in a forward pass; G_MAXUINT: none did yet */
} TdGradientRow;

struct _TdGradientTable
{
  GArray *rows;  /* TdGradientRow, in the order in which they became known */
  GArray *order; /* guint: rows in forward order, what the outside calls row 0, 1 ... */
  GHashTable *row_of_path;
  GHashTable *columns; /* gint64 -> TdGradientColumn */
};

/** Where an iteration's texts are: its own tables, or a reader. */
typedef struct
{
  const char *(*string) (gconstpointer data, guint32 id);
  const char *(*op) (gconstpointer data, const TdTapeEvent *event);
  gconstpointer data;
} TdGradientNames;

/** Read from the tape what the clipping hooks of the optimizers did in an iteration. */
TdGradientClip td__gradient_clip (const TdTapeIteration *t, const TdGradientNames *names);

/** Say whether an optimizer took gradients in an iteration of the table. */
gboolean td__gradient_updated (const TdGradientTable *table, gint64 iteration);

/** Return the row of a path, as it is stored, making it if it is new. */
guint td__gradient_row (TdGradientTable *table, const char *path, guint64 key);

/** Return the iterations, oldest first, of the last `n` columns up to `last`. Owner: the
 * caller. */
GArray *td__gradient_columns (const TdGradientTable *table, gint64 last, guint n);

G_END_DECLS
