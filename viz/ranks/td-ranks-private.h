/*
 * What the files of viz/ranks share: rows of iterations, tables of sums, rungs of calls.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-json.h"
#include "tape/td-names.h"
#include "td-ranks.h"

/* An iteration of one rank, as far as ranks are compared. */
typedef struct
{
  gint64 number;
  guint32 structure, flags;
  guint64 fingerprint, fingerprint_dims, attrs;
  guint64 start_ns, duration_ns;
  guint32 n_update_events, update_site, update_opdef;
  gboolean has_backward, computes;
  gboolean is_of_loop; /* the program began it, or it trains: not what is behind the last one */
  guint n_waits, n_sums;
  TdTapeCollective *waits;
  TdTapeRankSum *sums;
  guint n_trained;  /* parameters that it updates by a gradient */
  guint32 *trained; /* their paths: strings */
  gboolean is_partial;
  gboolean is_live;   /* it ran when the tape ended, and has no summary */
  gboolean has_calls; /* of all ranks */
  guint64 first_call, last_call;
  gboolean mean_early; /* all means were made before backward began */
} TdRankIteration;

void td__rank_iteration_free (TdRankIteration *self);

/* One without backward and update. */
typedef struct
{
  gint64 number;
  gboolean computes; /* something in it, as an evaluation does */
} TdRankIdle;

/* Which updates an iteration with this structure has. */
typedef struct
{
  guint32 n, site, opdef;
  gboolean has_backward; /* whether or not it updates */
} TdRankUpdates;

typedef struct
{
  TdRank open; /* first: what others see */
  TdTapeHandle *handle;
  TdTapeReader *reader;
  char *own_path;
  GPtrArray *texts;    /* by id of a string: the text in `chunk`, NULL: not asked for yet */
  GHashTable *updates; /* by structure: TdRankUpdates */
  GHashTable *attrs;   /* hashes of texts of attributes */
  /* of the scan */
  guint next; /* summary */
  gboolean live_taken;
  TdRankIteration *now;              /* the next one, NULL: no more */
  gint64 last_number;                /* that was looked at */
  gint64 last_of_loop;               /* of its loop, or that trains */
  gint64 first_update;               /* iteration; -1: none */
  guint64 n_begun;                   /* iterations in which an update began */
  GArray *left_out;                  /* gint64: those with backward and none */
  GArray *idle;                      /* TdRankIdle: those with neither */
  guint32 update_site, update_opdef; /* of it */
  TdTapeCollective last;             /* the wait that it began last */
  TdTapeCollective stuck;            /* the wait that never ended */
  gboolean has_last, is_stuck;
  gint64 stuck_iteration;
  guint64 first_wait_ns, last_wait_ns; /* from the first's beginning to the last's end */
  gint64 least_offset, most_offset;    /* by meetings; G_MININT64 and G_MAXINT64: none */
  /* of what it waits: td-ranks-waiting.c */
  guint64 waited_until;         /* by its clock: up to there it is counted */
  guint behind_for;             /* place: who made it late in this step, since all met */
  guint64 behind_ns;            /* and by how much */
  guint64 waited_before;        /* the step that is looked at */
  guint64 step_ns, step_end_ns; /* how long that takes, by its clock */
  gint64 step_number;
  double
      lead; /* by how much less it waits than the ranks do on average, in this block of steps */
  double lead_sum, lead_squares; /* of the blocks before */
  guint64 paced_ns;              /* it waited, in the steps of these */
} TdRankTape;

/* One side of a call that ranks make together. */
typedef struct
{
  gboolean here, met, left;
  gboolean meets;  /* it has a meeting of its own, as calls of the engine have */
  gboolean waited; /* an element is no transfer behind other work */
  gint64 iteration;
  const char *call; /* in `chunk` */
  guint32 site;     /* of the tape */
  gint32 peer, rank;
  guint8 wait; /* the last of them */
  guint8 flags;
  guint8 dtype; /* TdTapeDtype + 1; 0: not said */
  guint64 bytes;
  guint64 enter_ns, leave_ns;           /* of the whole call, by the tape's clock */
  guint64 meet_enter_ns, meet_leave_ns; /* of its meeting, or of all where that is none */
  guint64 wait_ns;                      /* in the meeting; without one, in the call */
} TdRungSide;

/* A call on all ranks; sides by place of the tape. */
typedef struct
{
  guint64 comm, seq;
  GList link; /* in `order` */
  guint32 size;
  guint n_here;
  gboolean whole;  /* of all ranks */
  gboolean behind; /* something of it ran behind other work */
  TdRungSide sides[];
} TdRung;

/* Who is in a communicator: place of the tape by rank in it, -1: not known. */
typedef struct
{
  guint32 size;
  gint *places;
} TdRankGroup;

/* Iterations that are of one step of the run; by place of the tape, NULL: none. */
typedef struct
{
  gint64 number; /* of the first that is there */
  TdRankIteration **of;
} TdRankRow;

/* Arrays of one step side by side. */
typedef struct
{
  guint8 kind;
  const char *path; /* in `chunk` */
  guint64 group;    /* ranks that share a mean: their communicator, 0: all */
  guint turn;       /* which array of this kind and name in the iteration */
} TdSumKey;

typedef struct
{
  guint n, n_tapes;
  GArray *keys;  /* TdSumKey */
  GPtrArray *of; /* TdTapeRankSum, keys * tapes; NULL: that rank has none */
} TdSumTable;

/* Ranks by what they have: equal ones are in one class. */
#define TD_RANKS_NO_CLASS G_MAXUINT
typedef struct
{
  guint n; /* of tapes */
  guint *classes;
  guint n_classes;
  gboolean *odd; /* not of the largest class; all where two are the largest */
  gboolean has_majority;
} TdRankVote;

struct _TdRanks
{
  guint n_started, n;
  TdRankTape *tapes; /* by rank */
  GStringChunk *chunk;
  GArray *findings;   /* TdRanksFinding */
  GHashTable *rungs;  /* that some have not come to yet: TdRung itself as key */
  GQueue order;       /* the same, oldest first */
  GQueue *done;       /* the newest that all have left */
  GPtrArray *fresh;   /* of these, what is of the step that is looked at: borrowed */
  GHashTable *groups; /* by communicator: TdRankGroup */
  guint64 primary;    /* the communicator of all ranks, 0: none yet */
  guint64 n_waits[TD_TAPE_N_WAITS], n_means; /* over all tapes */
  gboolean trains_together;                  /* some call brought gradients */
  guint64 most_summed, most_gradients; /* numbers in one iteration: by td_comm_allreduce, in all
                                        * gradients */
  guint64 paced_ns;                    /* the steps whose waiting is compared */
  guint64 block_ns;                    /* of them, those not in a block yet */
  guint n_paced, n_blocks;
  guint64 n_calls;             /* rungs that all have left */
  gboolean shares_persistents; /* after an update: ranks are given one set of them */
  gint64
      uneven; /* iteration: the first in which some ranks update and others do not; -1: none */
  GPtrArray *averaged; /* names of means, of the first step that has any: borrowed; or NULL */
  gint64 before_averaged;    /* a step before it that updates these without; -1: none */
  GPtrArray *updated_before; /* the parameters of it: borrowed; or NULL */
  gint64 not_averaged; /* the first step after it that updates all the same without; -1: none */
  gint64 more_updates_in; /* the first in which all do, some more often */
  guint32 *more_updates;  /* and their operations then, by place; NULL: none */
  guint n_steps;          /* with updates of two ranks or more, which were compared */
  gint64 steps_part; /* the finding of steps by which ranks part; -1: none, or it is told */
  gboolean steps_said;
};

/* ---- texts and findings: td-ranks-say.c ---- */

/** Return the text of a string of a tape, the same pointer for the same text. */
const char *td__ranks_text (TdRanks *self, guint place, guint32 id);
/** Return "file:line", NULL: not known. Owner: the caller. */
char *td__ranks_dup_site (const TdRanks *self, guint place, guint32 site);
/** Return "rank 2", "ranks 0, 1 and 3" of the places that are set. Owner: the caller. */
char *td__ranks_dup_names (const TdRanks *self, const gboolean *set);
/** The same with "are" or "is" and so on behind it. Owner: the caller. */
char *td__ranks_dup_names_do (const TdRanks *self, const gboolean *set, const char *one,
                              const char *many);
/** Vote: places whose values are equal are of one class. `classes` has n entries. */
void td__rank_vote_init (TdRankVote *vote, const guint *classes, guint n);
void td__rank_vote_clear (TdRankVote *vote);
/** Choose one place that is odd, and another of another class. FALSE: there are none. */
gboolean td__rank_vote_choose_pair (const TdRankVote *vote, guint *other, guint *odd);
/** Add a finding; strings may be filled in afterwards. Owner: borrowed until the next. */
TdRanksFinding *td__ranks_add (TdRanks *self, TdRanksCause cause, TdRanksLevel level,
                               gint64 iteration, const gboolean *ranks);
gboolean td__ranks_has (const TdRanks *self, TdRanksCause cause);
/** Say that nothing was found, and in what. Owner: the caller. */
char *td__ranks_dup_nothing (const TdRanks *self);
/** Say when: "in iteration 41", or "by iteration 41 (16 is the last one before it on the
 * tapes)". Owner: the caller. */
char *td__ranks_dup_when (gint64 iteration, gint64 after);

/* ---- what to do: td-ranks-advice.c ---- */
typedef enum
{
  TD_RANKS_SET_NUMBERS,
  TD_RANKS_ALL_SAME_BITS,
  TD_RANKS_SET_STATE,
  TD_RANKS_SET_PARAMETERS,
  TD_RANKS_SAME_UPDATES,
  TD_RANKS_SHARE_PERSISTENTS,
  TD_RANKS_WRITERS, /* no advice: what writes a parameter */
  TD_RANKS_DIVIDE,
  TD_RANKS_USE_ALL,
  TD_RANKS_DEAL_OUT,
  TD_RANKS_EQUAL_BATCHES,
  TD_RANKS_EQUAL_UPDATES,
  TD_RANKS_SAME_STEPS,
  TD_RANKS_OWN_DEVICE,
  TD_RANKS_AVERAGE,
  TD_RANKS_AVERAGE_ALL,
  TD_RANKS_AVERAGE_LATER,
  TD_RANKS_CALL_WRAPPED,
  TD_RANKS_END_TOGETHER,
  TD_RANKS_N_ADVICES
} TdRanksAdvice;

/** Say what to do, with the names that the program that made the tapes knows. */
const char *td__ranks_advice (const TdRanks *self, TdRanksAdvice which);

/* ---- reading: td-ranks-rows.c ---- */

/** Copy an iteration of the tape. Owner: the caller. */
TdRankIteration *td__rank_iteration_new (TdRanks *self, guint place, const TdTapeIteration *it);
/** Load one by its number, with its operations. Owner: the caller. NULL: it is not there. */
TdIteration *td__ranks_load (TdRanks *self, guint place, gint64 number);
/** Take the next iterations that belong together. FALSE: there are no more. */
gboolean td__ranks_next_row (TdRanks *self, TdRankRow *row);
/** Begin with the first iterations again. */
void td__ranks_rewind (TdRanks *self);
TdRankRow *td__rank_row_new (const TdRanks *self);
void td__rank_row_clear (const TdRanks *self, TdRankRow *row);
void td__rank_row_free (const TdRanks *self, TdRankRow *row);

/* ---- sums side by side: td-ranks-sums.c ---- */
TdSumTable *td__sum_table_new (TdRanks *self, const TdRankRow *row);
void td__sum_table_free (TdSumTable *table);
const TdTapeRankSum *td__sum_table_get (const TdSumTable *table, guint key, guint place);
/** Put equal sums into classes; absent ones into none. Returns how many classes there are. */
guint td__sum_table_classes (const TdSumTable *table, guint key, guint *classes);
double td__rank_sum_number (const TdTapeRankSum *sum);

/* ---- calls side by side: td-ranks-rungs.c ---- */
void td__ranks_take_waits (TdRanks *self, guint place, const TdRankIteration *it);
/** Build the rungs of one step only. Owner: the caller, with free functions. */
GPtrArray *td__ranks_rungs_of (TdRanks *self, const TdRankRow *row);
guint td__rung_hash (gconstpointer rung);
gboolean td__rung_equal (gconstpointer a, gconstpointer b);
/** Find calls that met others, or failed; only the first such is said. */
void td__ranks_check_calls (TdRanks *self, const TdRung *rung);
/** Say who has not come to a call, by place. */
void td__ranks_list_missing (const TdRanks *self, const TdRung *rung, gboolean *missing);
/** Hold all clocks against the first rank's by what meetings say. */
void td__ranks_align_clocks (TdRanks *self);
/** Nobody leaves it before all have come. */
gboolean td__rung_is_meeting (const TdRanks *self, const TdRung *rung);

/** List the last calls that all have left, and those that ranks wait in. Owner: the caller; its
 * rungs are borrowed. */
GPtrArray *td__ranks_list_last (const TdRanks *self);
/** When everybody was there whom a rank may have waited for in a call without a meeting, by the
 * first tape's clock. FALSE: nobody, or somebody is missing or has an unknown clock. */
gboolean td__rung_find_last (const TdRanks *self, const TdRung *rung, guint place,
                             gint64 *last_ns);
/** It is made for ranks that still have examples, and has another name than theirs. */
gboolean td__rung_side_is_shadow (const TdRungSide *side);
/** Name the call. Owner: borrowed. */
const char *td__rung_call (const TdRanks *self, const TdRung *rung);
/** Write a rung as a line of text, or as an object. */
void td__rung_print (const TdRanks *self, const TdRung *rung, GString *out);
/** The same with what it brings, and when each came. */
void td__rung_print_whole (const TdRanks *self, const TdRung *rung, GString *out);
void td__rung_json (const TdRanks *self, const TdRung *rung, TdJson *json);

/* ---- who waits for whom: td-ranks-waiting.c ---- */

/** Count what was waited in the calls that have ended in this step. */
void td__ranks_count_waiting (TdRanks *self, const TdRankRow *row);
/** Say which rank all others wait for, if it is one. */
void td__ranks_look_for_straggler (TdRanks *self);

/* ---- checks: one file each ---- */
typedef struct TdRanksSteps TdRanksSteps;
TdRanksSteps *td__ranks_steps_new (const TdRanks *self);
void td__ranks_steps_look (TdRanksSteps *steps, TdRanks *self, const TdRankRow *row);
void td__ranks_steps_free (TdRanksSteps *steps);

/** Say what one rank did to the gradient of a parameter after its mean, and another did not:
 * "; after the mean rank 1 wrote to it by mul_ at ...", with the place in `site` unless there
 * is one. Owner: the caller; "": not known. */
char *td__ranks_dup_written (TdRanks *self, const TdRankRow *row, const char *path, guint other,
                             guint odd, char **site);

/** Say the same of a parameter that one rank wrote outside of updates: "; rank 1 wrote to
 * `0/bias` by copy_ at ..."; path: which, NULL: any; other: -1: there is none to compare with.
 */
char *td__ranks_dup_parameter_write (TdRanks *self, const TdRankRow *row, const char *path,
                                     gint other, guint odd, char **site);

typedef struct TdRanksParting TdRanksParting;
TdRanksParting *td__ranks_parting_new (const TdRanks *self);
void td__ranks_parting_look (TdRanksParting *parting, TdRanks *self, const TdRankRow *row,
                             const TdSumTable *table);
void td__ranks_parting_free (TdRanksParting *parting);

typedef struct TdRanksGradients TdRanksGradients;
TdRanksGradients *td__ranks_gradients_new (const TdRanks *self);
void td__ranks_gradients_look (TdRanksGradients *gradients, TdRanks *self, const TdRankRow *row,
                               const TdSumTable *table);
void td__ranks_gradients_end (TdRanksGradients *gradients, TdRanks *self);

typedef struct TdRanksGraphs TdRanksGraphs;
TdRanksGraphs *td__ranks_graphs_new (const TdRanks *self);
void td__ranks_graphs_look (TdRanksGraphs *graphs, TdRanks *self, const TdRankRow *row,
                            const TdSumTable *table);
void td__ranks_graphs_end (TdRanksGraphs *graphs, TdRanks *self);

typedef struct TdRanksBatches TdRanksBatches;
TdRanksBatches *td__ranks_batches_new (void);
/** Compare the batches of two places, whose steps after `after` were equal. */
void td__ranks_batches_look (TdRanksBatches *batches, TdRanks *self, const TdRankRow *row,
                             guint a, guint b, gint64 after);
void td__ranks_batches_end (TdRanksBatches *batches, TdRanks *self);
/** How much an example counts in the gradients of two iterations with batches of other sizes:
 * not the same, the same, or by numbers that are not on the tape. */
typedef enum
{
  TD_RANKS_UNWEIGHTED,
  TD_RANKS_WEIGHTED,
  TD_RANKS_WEIGHTS_UNKNOWN
} TdRanksWeighting;
TdRanksWeighting td__ranks_find_weighting (const TdIteration *a, const TdIteration *b);

/** A tape of PyTorch, say, in which examples come from operations. */
gboolean td__ranks_is_of_framework (const TdRanks *self, guint place);
/** Find the operation that reads examples first; -1: none. */
gint td__ranks_find_first_layer (const TdIteration *it);

typedef struct TdRanksAttrs TdRanksAttrs;
TdRanksAttrs *td__ranks_attrs_new (const TdRanks *self);
void td__ranks_attrs_look (TdRanksAttrs *attrs, TdRanks *self, const TdRankRow *row,
                           guint first, const gboolean *together);
void td__ranks_attrs_end (TdRanksAttrs *attrs, TdRanks *self);
/** Hash the attributes of an iteration's operations that ranks must have in common. */
guint64 td__ranks_hash_attrs (TdRanks *self, guint place, const TdTapeIteration *it);

/** Mark the variables from which gradients or updates come. Owner: the caller; by variable. */
gboolean *td__ranks_mark_trained (const TdIteration *it);
/** Hash the operations of which gradients or updates come, and what they read and write: other
 * names of variables do not count. 0: not on the tape. */
guint64 td__ranks_hash_trained (TdRanks *self, guint place, gint64 number);
/** Find the first operation that reads or writes other variables than its counterpart, where
 * both sides run the same ones: -1: none. */
gint td__ranks_find_other_input (const TdIteration *a, const TdIteration *b);

/** Take note of what an iteration's calls of several ranks bring. */
void td__ranks_take_exchange (TdRanks *self, guint place, const TdTapeIteration *it);
/** Has any brought gradients, or as many numbers as these are? */
gboolean td__ranks_train_together (const TdRanks *self);

/** Hash the operations of an iteration, those of backward in any order. */
guint64 td__ranks_hash_order (TdRanks *self, guint place, gint64 number);

/** Find the iteration of a framework's tape in which a rank that ended before the others began
 * once more. */
void td__ranks_look_for_behind (TdRanks *self);

/** Has the program given both one label in their iterations of this number? */
gboolean td__ranks_have_one_label (const TdRanks *self, guint a, guint b, gint64 number);
/** Say what the program calls the iterations of all findings. */
void td__ranks_name_iterations (TdRanks *self);

/** Find parameters that are updated without a mean, beside others that have one. */
void td__ranks_look_for_unshared (TdRanks *self, const TdRankRow *row);
/** Find the newest notice of a kind that begins so; NULL: there is none. Owner: borrowed. */
const char *td__rank_tape_find_notice (const TdRankTape *tape, guint kind, const char *prefix);

/** What the whole run says: ends, hangs, devices, plain optimizers, stragglers. */
void td__ranks_look_at_ends (TdRanks *self);
void td__ranks_look_at_run (TdRanks *self);
