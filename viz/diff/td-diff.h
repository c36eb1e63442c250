/*
 * The difference of two iterations: of one run, of two runs, or of a dynamic and a static run
 * of one model. Every event has its counterpart or is known to have none; operations are
 * matched by where they stand (layer, call site, k-th call) and then by their neighbourhood, so
 * that one inserted operation is one difference and not a shifted tail. What merely follows
 * from a difference (its gradients, what reads it) is marked as following and counted, not
 * listed.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>

#include "tape/td-iteration.h"
#include "td-tape-reader.h"

G_BEGIN_DECLS

#define TD_TYPE_DIFF (td_diff_get_type ())

/** The two sides: A is the older or the left one. */
enum
{
  TD_DIFF_A,
  TD_DIFF_B
};

typedef enum
{
  TD_DIFF_SAME,
  TD_DIFF_CHANGED,
  TD_DIFF_REMOVED, /* only A has it */
  TD_DIFF_ADDED,   /* only B has it */
  TD_DIFF_FUSED,   /* several events of one side are one of the other */
  TD_DIFF_N_KINDS
} TdDiffKind;

/** In what a pair differs. */
typedef enum
{
  TD_DIFF_OPERATION = 1 << 0,
  TD_DIFF_ATTRIBUTES = 1 << 1,
  TD_DIFF_LINK = 1 << 2,   /* it belongs to another layer */
  TD_DIFF_INPUTS = 1 << 3, /* it reads something else */
  TD_DIFF_SHAPE = 1 << 4,
  TD_DIFF_DTYPE = 1 << 5,
  TD_DIFF_FAILED = 1 << 6,  /* one of them failed */
  TD_DIFF_ORDER = 1 << 7,   /* it runs at another place */
  TD_DIFF_NUMBERS = 1 << 8, /* statistics or values; also states of the random stream */
  TD_DIFF_MODE = 1 << 9,    /* run by a static schedule on one side: no difference by itself */
  TD_DIFF_GRAPH = 1 << 10,  /* one of them left no graph: backward does not come there */
} TdDiffAspects;

/** One event and its counterpart, or one without; a row of a compare view. There are millions:
 * it is packed. */
typedef struct
{
  TdDiffKind kind : 8;
  guint aspects : 16;   /* TdDiffAspects */
  guint fused_side : 8; /* of the several events of a fused group */
  gint cause;           /* the pair that this follows from: then it is no item; -1: none */
  gint event[2];        /* of a fused group the last; -1: no counterpart */
  guint first_fused, n_fused; /* td_diff_get_events(); n_fused 0: one on each side at most */
  guint64 ns[2], bytes[2];    /* times (medians) and bytes of outputs, of its events */
  guint first_numbers, n_numbers; /* td_diff_get_numbers() */
} TdDiffPair;

/** Numbers of one output on both sides, as far as the tapes have them. */
typedef struct
{
  guint output;
  gboolean differ;
  const TdTapeStats *stats[2]; /* NULL: none; owned by the iterations */
  gboolean has_values;         /* the fields below are known: both tapes hold the tensors */
  gboolean bitwise;            /* every byte is equal */
  guint64 n, n_differ;         /* elements; those that differ (NaN equals NaN, -0 equals 0) */
  double max_abs;              /* largest difference; infinite when only one is not finite */
  guint64 max_ulp;             /* units in the last place; G_MAXUINT64 beside a NaN */
  gint64 first;                /* row-major index of the first that differs, -1: none */
  double first_value[2];
} TdDiffNumbers;

/** One side as a whole. */
typedef struct
{
  guint n_events, n_phase[TD_TAPE_N_PHASES];
  guint n_static;     /* of them, run by a static schedule */
  guint n_times;      /* like iterations that all times are medians of; 1: its own times */
  guint64 ns;         /* the iteration's duration */
  guint64 op_ns;      /* sum over events */
  guint64 bytes;      /* of all outputs */
  guint64 peak_bytes; /* highest sum of live arrays */
} TdDiffTotals;

typedef enum
{
  TD_DIFF_CAUSE_NONE,
  TD_DIFF_CAUSE_BRANCH, /* if, else, ?:, switch: B took another way than A */
  TD_DIFF_CAUSE_LOOP,   /* a loop ran more or fewer times */
  TD_DIFF_CAUSE_READ,   /* after a value was read by the program; the source says no more */
  TD_DIFF_CAUSE_SOURCE, /* the recorded sources differ there */
} TdDiffCauseKind;

/** Why the graphs part, as far as the recorded sources tell. */
typedef struct
{
  TdDiffCauseKind kind;
  const char *file; /* as recorded; "" unknown */
  guint line;
  const char *text; /* "took the else branch at model.c:37 (mean > 0 is false)" */
} TdDiffCause;

/** Immutable once made; fields may be read, functions below explain them. */
typedef struct
{
  gint ref_count;
  TdIteration *side[2];
  guint n_pairs;
  TdDiffPair *pairs;  /* in order of running: A's order, B's own events where they came */
  gint32 *pair_of[2]; /* by event of each side */
  gint32 *partner[2]; /* by event: the counterpart's event, -1 */
  guint n_items;
  guint32 *items;                /* the differences: indices of pairs, in order */
  guint n_kind[TD_DIFF_N_KINDS]; /* of items; [TD_DIFF_SAME] counts pairs that are the same */
  guint n_numbers_only;          /* of n_kind[CHANGED]: those with the same structure */
  guint n_followers[TD_TAPE_N_PHASES];
  gboolean has_numbers, has_values; /* of both sides */
  gboolean same_run;                /* both sides are iterations of one tape */
  gboolean same_program;            /* and sources are the same text */
  TdDiffTotals totals[2];
  TdDiffCause cause;
  char **versions; /* key, A's, B's ... of versions that differ; NULL: none */
  /* private */
  guint32 *fused;
  TdDiffNumbers *numbers;
  char *cause_file, *cause_text;
  GHashTable *members; /* of fused groups, those that differ: td-diff-members.c */
} TdDiff;

GType td_diff_get_type (void);

/** Compare two iterations. The readers (each NULL: unknown) say what the programs were, hold
 * tensors and like iterations, and may be one; they are not kept. Owner: the caller; keeps
 * references on both iterations. Sync: reads tensors when both tapes have them, and up to 14
 * like iterations of each side (a second at most for both): for a worker with readers of its
 * own, or the thread of the readers. */
TdDiff *td_diff_new (TdIteration *a, TdIteration *b, TdTapeReader *reader_a,
                     TdTapeReader *reader_b);
TdDiff *td_diff_ref (TdDiff *diff);
void td_diff_unref (TdDiff *diff);

/** Say whether nothing differs, in structure and in numbers as far as both tapes have them. */
gboolean td_diff_is_same (const TdDiff *diff);
/** Say whether the structure is the same; numbers may differ. */
gboolean td_diff_is_same_structure (const TdDiff *diff);
/** Say whether the times of both sides are medians, so that a share of them means something. */
gboolean td_diff_has_medians (const TdDiff *diff);
/** Say what the times are: "median of 15", "median of 15 and of 1", "1 iteration each". Owner:
 * the caller. */
char *td_diff_dup_times (const TdDiff *diff);
/** Return the pair of an event, -1 beyond the end. */
gint td_diff_get_pair (const TdDiff *diff, guint side, guint event);
/** Return the index of a pair among the items, or of its cause if it follows from one; -1. */
gint td_diff_get_item (const TdDiff *diff, gint pair);
/** List the events of a pair on one side (more than one when fused). Owner: borrowed. */
const guint32 *td_diff_get_events (const TdDiff *diff, const TdDiffPair *pair, guint side,
                                   guint *n);
/** List the numbers of a pair's outputs; `n` is 0 where there are none. Owner: borrowed. */
const TdDiffNumbers *td_diff_get_numbers (const TdDiff *diff, const TdDiffPair *pair, guint *n);
/** Say whether an operation of that name brings numbers of other ranks: of its attributes,
 * `rank` differs on each. */
gboolean td_diff_is_call_of_ranks (const char *op);
/** Return the glyph of a kind: "=", "~", "−", "+", "⇄". */
const char *td_diff_kind_glyph (TdDiffKind kind);
/** Return the word of a kind: "same", "changed", "removed", "added", "fused". */
const char *td_diff_kind_name (TdDiffKind kind);

/** Name what a pair is: "relu", "relu → sigmoid", "convolution_2d + relu". Owner: the caller.
 */
char *td_diff_dup_title (const TdDiff *diff, const TdDiffPair *pair);
/** Say in one line how a pair differs: "(64, 10) → (32, 10)", "mean 0.1 → 0.2", "no
 * counterpart"; "" for what is the same. Owner: the caller. */
char *td_diff_dup_what (const TdDiff *diff, const TdDiffPair *pair);
/** Write "file:line" of a pair's side, "" where it has none. Owner: the caller. */
char *td_diff_dup_site (const TdDiff *diff, const TdDiffPair *pair, guint side);
/** Say it in one sentence, for a heading: "Iteration 4811 took the else branch at model.c:37
 * (mean > 0 is false): sum → prod; 1 operation changed, 3 gradients follow." Owner: the caller.
 */
char *td_diff_sentence (const TdDiff *diff);
/** Name a side: "Iteration 3", "A". Owner: the caller. */
char *td_diff_dup_side (const TdDiff *diff, guint side);
/** format: "text" or "json". Owner: the caller. */
char *td_diff_print (const TdDiff *diff, const char *format);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdDiff, td_diff_unref)

G_END_DECLS
