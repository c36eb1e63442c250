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
  guint block;   /* its partner is in the one of this number; 0: nothing is known */
  const char *rest; /* of its path, behind the block's */
  gint partner;     /* -1: none */
  const char *how;
  char *question;
} TdWeightsUnit;

struct TdWeights
{
  const TdWeightsArray *arrays[TD_N_WHOSE];
  guint n_arrays[TD_N_WHOSE];
  GHashTable *index[TD_N_WHOSE]; /* name -> 1 + its array */
  TdWeightsRules rules;
  guint n_blocks, block;        /* pairs of blocks; the one whose layers are paired now */
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

/** What is said of a layer whose path is empty: of arrays that are in none. */
const char *td__weights_unit_said (const TdWeightsUnit *unit);

/* td-weights-match.c: which layer is which. */
void td__weights_match (TdWeights *self);
void td__weights_pair (TdWeights *self, guint ours, guint theirs, const char *how);
/** Has it no partner yet, and is it in the block whose layers are paired now? */
gboolean td__weights_is_free (const TdWeights *self, guint whose, guint i);

/* td-weights-blocks.c: what is in what. */
/** What of a layer's path is behind a block's; NULL: it is not in there. */
const char *td__weights_in_block (const char *path, const char *block);
/** Says that what is in one and free is in the other. FALSE: nothing is, in one of them. */
gboolean td__weights_pair_blocks (TdWeights *self, const char *ours, const char *theirs);
/** Pairs blocks that have the same in them, counted by their numbers. */
void td__weights_find_blocks (TdWeights *self);
/** Layers of the block at hand that are called the same in it, or are the only ones of their
 * sizes. */
void td__weights_match_in_block (TdWeights *self);

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
/** Ask, unless something is asked already; text becomes the row's. */
void td__weights_doubt (TdWeightsRow *row, char *text);

/* td-weights-turned.c: what shapes do not tell. */
/** Doubts of which weights are transposed, once all are settled. */
void td__weights_doubt_turned (TdWeights *self);

/* td-weights-table.c: the table as text. */
gboolean td__weights_take_table (TdWeights *self, GError **error);

G_END_DECLS
