/*
 * The table of gradient norms from inside.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-gradient.h"
#include "td-gradient-inferred.h"

G_BEGIN_DECLS

typedef enum
{
  TD_MISSING_NO,
  TD_MISSING_UNUSED, /* an optimizer updated it, with zeros that it filled in */
  TD_MISSING_CUT,    /* the same of one that the forward pass used */
  TD_MISSING_UNHELD  /* optimizers updated others */
} TdMissing;

/** How the sizes of an array's elements are spread: shares of all of them, 65535 is all. */
typedef struct
{
  guint16 bin[TD_TAPE_STATS_BINS]; /* bin k: 2^(k-24) <= |x| < 2^(k-23), the ends beyond, too */
  guint16 zero, bad;               /* NaN and infinite */
  gboolean is_known;
} TdSpread;

/** What a spread is of. */
enum
{
  TD_SPREAD_GRADIENT, /* as backward left it */
  TD_SPREAD_WEIGHT,   /* after the update */
  TD_N_SPREADS
};

typedef struct
{
  guint n;
  double *norm;
  guint8 *cell; /* TdCell */
  double *born;
  guint8 *born_cell;   /* the same of the gradient before the update began with it */
  guint8 *rounding;    /* gboolean: `born` is 0 but for what rounding leaves of a sum */
  guint64 *n_elements; /* of what `norm` is of */
  guint8 *missing;     /* TdMissing */
  TdSpread *spread;    /* by row, TD_N_SPREADS of each; NULL: none is known */
  gboolean updated;    /* an optimizer took gradients: what is missing is known */
  gboolean skipped;    /* an optimizer left its update out: gradients overflowed */
  gboolean partial;    /* it had not ended when it was added */
  guint sought;        /* of how many gradients it has none; G_MAXUINT: nothing to seek */
  guint32 flags;       /* TD_TAPE_ITERATION_... */
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
  GHashTable *columns;    /* gint64 -> TdGradientColumn */
  GHashTable *taken;      /* key of what an optimizer took as a gradient -> its stored row */
  gboolean looked_around; /* for an update beside iterations without one */
  GHashTable *gone;       /* gint64 -> the frame that was found thinned */
};

/** Where an iteration's texts are: its own tables, or a reader. */
typedef struct
{
  const char *(*string) (gconstpointer data, guint32 id);
  const char *(*path) (gconstpointer data, guint32 id);
  const char *(*op) (gconstpointer data, const TdTapeEvent *event);
  gconstpointer data;
} TdGradientNames;

/** Add what an iteration says. `flags`: of its summary; `partial`: it had not ended. */
void td__gradient_add_column (TdGradientTable *table, const TdTapeIteration *t, guint32 flags,
                              gboolean partial, const TdGradientNames *names);
void td__gradient_column_free (gpointer column);
/** Keep which variables are the gradients of which parameters, without a column of it. */
void td__gradient_learn (TdGradientTable *table, const TdTapeIteration *t,
                         const TdGradientNames *names);
/** Put rows in the order in which forward passes read them. */
void td__gradient_sort_rows (TdGradientTable *table);

/** Read from the tape what the clipping hooks of the optimizers did in an iteration. */
TdGradientClip td__gradient_clip (const TdTapeIteration *t, const TdGradientNames *names);

/** Say whether an optimizer took gradients in an iteration of the table. */
gboolean td__gradient_updated (const TdGradientTable *table, gint64 iteration);

/** The same as td_gradient_table_norm, of the gradient as backward left it: what hooks of the
 * optimizer did to it afterwards (clipping, decay, noise) hides what it was. */
TdCell td__gradient_born (const TdGradientTable *table, guint row, gint64 iteration,
                          double *norm);
/** Say whether that was 0 but for rounding. */
gboolean td__gradient_is_rounding (const TdGradientTable *table, guint row, gint64 iteration);
/** Say whether a gradient is missing, and why. */
TdMissing td__gradient_missing (const TdGradientTable *table, guint row, gint64 iteration);
/** Return how the elements of a parameter are spread; NULL: it is not known. */
const TdSpread *td__gradient_spread (const TdGradientTable *table, guint row, gint64 iteration,
                                     guint of);
/** Return of how many elements a norm is; 0: it is not known. */
guint64 td__gradient_n_elements (const TdGradientTable *table, guint row, gint64 iteration);

/** Return the row of a path, as it is stored, making it if it is new. */
guint td__gradient_row (TdGradientTable *table, const char *path, guint64 key);

/* Columns side by side: column c is of `width` iterations from first + c * width on. */
typedef struct
{
  gint64 first, last; /* `last` is in the last column, not always at its end */
  gint64 width;
  guint n;
  gint64 *shown; /* by column; -1: nothing is stored of its iterations */
} TdGradientAxis;

/** Lay columns over a range, at most `max` and what the range says, that show nothing yet.
 * Owner: the caller. */
TdGradientAxis *td__gradient_axis_new (const TdGradientRange *range, guint max);
void td__gradient_axis_free (TdGradientAxis *axis);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdGradientAxis, td__gradient_axis_free)
/** Return the column of an iteration; -1: it is outside. */
gint td__gradient_axis_find (const TdGradientAxis *axis, gint64 iteration);
/** Fill in what the columns show of a tape. */
void td__gradient_axis_choose (TdGradientAxis *axis, TdGradientTable *table,
                               TdTapeReader *reader);
/** Lay columns that show what is in the table. Owner: the caller. */
TdGradientAxis *td__gradient_axis_of (const TdGradientTable *table,
                                      const TdGradientRange *range, guint max);
/** Return the iterations that are shown, in their order. Owner: the caller. */
GArray *td__gradient_axis_list (const TdGradientAxis *axis);

/** Count, of the iterations in `columns`, those that clipped; returns how many it is known of.
 */
guint td__gradient_count_clipped (const TdGradientTable *table, const GArray *columns,
                                  guint *n_clipped);
/** Say in words that updates were skipped, where that is more than a dynamic loss scale costs:
 * in more than half of these iterations, or in the last three. NULL: it is not. Owner: the
 * caller. */
char *td__gradient_dup_skipped (const TdGradientTable *table, const GArray *columns);
/** Say whether the norm of one gradient is known in these columns. */
gboolean td__gradient_knows_norms (const TdGradientTable *table, const GArray *columns);
/** Say why there is nothing to see in these columns, as a title and a sentence; FALSE: there
 * is. */
gboolean td__gradient_why_nothing (const TdGradientTable *table, const GArray *columns,
                                   const char **title, const char **text);

/** "conv1/W" says enough beside a row where no other is called so; else as many more parts as
 * tell all such rows apart: "h0/ln1/gamma". Pointers into the paths. Owner: the caller. */
GPtrArray *td__gradient_name_rows (const TdGradientTable *table);

G_END_DECLS
