/*
 * What the files of weights share.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-weights.h"

G_BEGIN_DECLS

enum
{
  TD_OURS,
  TD_THEIRS,
  TD_N_WHOSE
};

/** An array in its layer. */
typedef struct
{
  char *leaf; /* "weight", "upward.W", "weight_ih" */
  guint array;
} TdWeightsPart;

/** A layer: what is paired. */
typedef struct
{
  char *path;    /* parts joined by "." */
  guint gates;   /* of a recurrent layer, one direction of one: 1, 3, 4; 0: any other layer */
  GArray *parts; /* TdWeightsPart */
  guint64 token; /* the same for layers that could be each other; 0: shapes are not known */
  gint partner;  /* -1: none */
  const char *how;
  char *question;
} TdWeightsUnit;

struct TdWeights
{
  const TdWeightsArray *arrays[TD_N_WHOSE];
  guint n_arrays[TD_N_WHOSE];
  GHashTable *index[TD_N_WHOSE]; /* name -> 1 + its array */
  TdWeightsRules rules;
  gboolean sorted;              /* their names are: their order says nothing */
  GPtrArray *units[TD_N_WHOSE]; /* TdWeightsUnit */
  TdWeightsRow *of_ours;        /* how of each is NULL until it is settled */
  GArray *left_out;             /* TdWeightsRow: of theirs */
  gboolean *used;               /* theirs */
};

/* td-weights-units.c: layers of both sides. */
void td__weights_find_units (TdWeights *self, guint whose);
void td__weights_unit_free (gpointer unit);
TdWeightsUnit *td__weights_unit (const TdWeights *self, guint whose, guint i);
/** The part of a layer that is called so; NULL: none. */
const TdWeightsPart *td__weights_part (const TdWeightsUnit *unit, const char *leaf);
/** "q", "k" or "v" where a layer's last name says that it makes queries, keys or values. */
char td__weights_qkv (const char *path);

/* td-weights-match.c: which layer is which. */
void td__weights_match (TdWeights *self);

/* td-weights-rows.c: what an array is made of. */
void td__weights_settle_pair (TdWeights *self, guint ours, guint theirs);
/** Of a row that is not settled yet: by whom, and what is in doubt (owned by the row). */
void td__weights_settle (TdWeights *self, const TdWeightsRow *row);
/** Say in the row's question what does not fit. */
void td__weights_check (const TdWeights *self, TdWeightsRow *row);
/** What nothing has said anything of. */
void td__weights_finish (TdWeights *self);
/** Three layers of one side that are one of the other, which is `fused`. */
void td__weights_settle_qkv (TdWeights *self, guint whose, guint fused, const guint *three);

/* td-weights-table.c: the table as text. */
gboolean td__weights_take_table (TdWeights *self, GError **error);

G_END_DECLS
