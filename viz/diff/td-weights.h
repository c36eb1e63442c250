/*
 * Weights of another program for a model of ours: which of our arrays is made of which of
 * theirs, and how. Theirs are called as PyTorch calls them (l1.weight, bn.running_mean,
 * rnn.weight_ih_l0), ours as td_save_npz does (l1/W, bn/avg_mean, rnn/upward/W). Layers are
 * paired by a table that is given, by their names, by their numbers and sizes; what only an
 * order says is a question, and so is all that is left over.
 *
 * The table is text, a line an array of ours, # before what is only said:
 *
 *     OURS  THEIRS [transpose] [rows=FIRST:END] [gates] [reshape]
 *
 * THEIRS is a name, names joined by "+" (their sum) or by "," (their rows, one behind the
 * other), "zeros", or "-": ours stays as it is. OURS is "-" for what nothing is made of. Steps
 * are taken in that order: the first two on each of theirs, gates (blocks of rows i, f, g, o as
 * rows a, i, f, o of unit after unit) and reshape (axes of size 1 come or go) on what was
 * joined. Both may be layers, whose arrays are paired then, or what layers are in (blocks):
 * then their layers are sought in each other. In names a byte that would be taken for something
 * else is %XX. A line that begins with "?" is a question, and no table for use.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

enum
{
  TD_WEIGHTS_MAX_NDIM = 8,
  TD_WEIGHTS_MOST_SOURCES = 8,
  TD_WEIGHTS_UNKNOWN = -1 /* ndim of an array that waits for its shape */
};

/** An array of either side. */
typedef struct
{
  const char *name;
  guint dtype; /* as dtype.h counts */
  gint ndim;
  gint64 dims[TD_WEIGHTS_MAX_NDIM];
  const char *unread; /* why nothing is known of it; NULL: all is, or it waits */
} TdWeightsArray;

typedef enum
{
  TD_WEIGHTS_SUM, /* of one: itself */
  TD_WEIGHTS_ROWS
} TdWeightsJoin;

/** What an array of ours is made of; see above. */
typedef struct
{
  gint ours;     /* -1: these of theirs are left out */
  gint n_theirs; /* 0: ours stays, or is zeros */
  gint theirs[TD_WEIGHTS_MOST_SOURCES];
  TdWeightsJoin join;
  gboolean zeros, transpose, gates, reshape;
  gint64 first, end; /* rows; end -1: all */
  const char *how;   /* they were found: "by name" */
  char *question;    /* NULL: none */
} TdWeightsRow;

/** Say whether two of their arrays, of one shape, hold the same. */
typedef gboolean (*TdWeightsSame) (guint theirs, guint other, gpointer user);

typedef struct
{
  const char *table;  /* NULL: none */
  gboolean by_order;  /* the order decides where nothing else does */
  TdWeightsSame same; /* NULL: nobody knows */
  gpointer user;
} TdWeightsRules;

typedef struct TdWeights TdWeights;

/** Find out. Owner: the caller; the arrays and their names are borrowed as long as it lives.
 * Errors: NULL where the table is wrong, or a side has a name twice. */
TdWeights *td_weights_new (const TdWeightsArray *ours, guint n_ours,
                           const TdWeightsArray *theirs, guint n_theirs,
                           const TdWeightsRules *rules, GError **error);
void td_weights_free (TdWeights *self);

guint td_weights_get_n_rows (const TdWeights *self);
/** A row; those of ours come first, one for each array, in its order. */
const TdWeightsRow *td_weights_get_row (const TdWeights *self, guint i);
guint td_weights_get_n_questions (const TdWeights *self);
/** Return the table, with what is known of each line behind #. Owner: the caller. */
char *td_weights_print (const TdWeights *self);
/** Write the shape that a row's sources make before gates and reshape, of at most
 * TD_WEIGHTS_MAX_NDIM sizes. Returns ndim, or -1 and `why` (the caller's): they cannot be
 * joined. */
gint td_weights_shape (const TdWeights *self, const TdWeightsRow *row, gint64 *dims,
                       char **why);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdWeights, td_weights_free)

G_END_DECLS
