/*
 * The tapes of all ranks of one run, side by side: where ranks part, who waits for whom, and
 * what to do. Iterations are put beside each other by what the ranks did together, arrays by
 * their names, and clocks by meetings. Tapes are read one iteration at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-panel.h"

G_BEGIN_DECLS

/* How bad a finding is; a note is no reason to think that something is wrong. */
typedef enum
{
  TD_RANKS_NOTE,
  TD_RANKS_WARNING,
  TD_RANKS_ERROR,
  TD_RANKS_N_LEVELS
} TdRanksLevel;

typedef enum
{
  TD_RANKS_PARAMETERS,  /* differ after an update */
  TD_RANKS_PERSISTENTS, /* the same; each rank has its own, by design */
  TD_RANKS_STATE,       /* of the optimizer */
  TD_RANKS_NUMBERS,     /* of the optimizer: learning rate, count of updates, loss scale */
  TD_RANKS_MEANS,       /* ranks got different means of one gradient */
  TD_RANKS_UPDATES,     /* some ranks made more updates than others */
  TD_RANKS_NOT_FINITE,  /* NaN or infinity in a rank's own gradient, or in a mean */
  TD_RANKS_ABSENT,      /* some ranks have no such gradient */
  TD_RANKS_GRAPHS,      /* iterations differ in their operations */
  TD_RANKS_MEAN_CHECK,  /* the mean is not that of the gradients */
  TD_RANKS_BATCHES,     /* numbers of examples differ: a mean of means */
  TD_RANKS_MISMATCH,    /* different calls met each other */
  TD_RANKS_HANG,        /* ranks wait for one that does not come */
  TD_RANKS_DEATH,       /* a rank failed */
  TD_RANKS_SAME_DATA,   /* ranks compute with the same examples */
  TD_RANKS_DEVICE,      /* ranks share a device */
  TD_RANKS_PLAIN,       /* updates without any mean */
  TD_RANKS_UNSHARED,    /* some parameters are updated without a mean */
  TD_RANKS_STRAGGLER,   /* who the others wait for most */
  TD_RANKS_DAMAGE,      /* a tape has lost iterations to damage */
  TD_RANKS_N_CAUSES
} TdRanksCause;

/** One finding: the first time that something is so. Strings are the finding's, NULL: unknown.
 */
typedef struct
{
  TdRanksCause cause;
  TdRanksLevel level;
  gint64 iteration; /* as the first of these ranks numbers it; -1: of the run */
  char *label;      /* what the program calls it: "105", "'warm'", "step 105"; NULL: the same */
  gint64 after;     /* the last one that was looked at before, and was well; -1: none */
  guint *ranks;     /* which differ from the others; all of them where no majority does not */
  guint n_ranks;
  char *array;    /* "l3/W" */
  char *site;     /* "train.c:88" */
  char *sentence; /* all of it in one */
  char *advice;
} TdRanksFinding;

/** A rank and its tape. */
typedef struct
{
  guint rank;
  const char *path, *host, *device; /* "" unknown */
  gint32 pid;
  guint64 n_iterations; /* that ended */
  guint64 n_looked_at;  /* that are whole on the tape */
  guint64 n_updating;   /* of those, with an update */
  guint64 n_compared;   /* steps in which its arrays were held against others' */
  char *end;            /* "ended", "killed by SIGKILL", "runs" */
  gboolean is_running, has_failed;
  guint64 waited_ns;   /* in meetings, for others */
  guint64 kept_ns;     /* that others waited for it */
  gboolean has_offset; /* its clock can be held against the first rank's */
  gboolean one_clock;  /* it is the same clock: of one machine */
  gint64 offset_ns;    /* plus a time of its tape is the time of the first rank's */
  guint64 error_ns;    /* at most */
} TdRank;

typedef struct _TdRanks TdRanks;

/** Open the tapes of a run: a folder, the tape of one rank, whose siblings are looked for by
 * its name, or the tapes themselves. Nothing is compared yet. Owner: the caller. Errors: NULL,
 * one line that names the file: no tapes, of one rank only, of different runs. */
TdRanks *td_ranks_open (const char *const *paths, guint n, GError **error);
void td_ranks_free (TdRanks *ranks);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdRanks, td_ranks_free)

/** Read all tapes and find where they part. Sync: reads each iteration that is whole. */
void td_ranks_look (TdRanks *ranks);

/** Return how many ranks were started, and how many of them have a tape here. */
guint td_ranks_get_n_started (const TdRanks *ranks);
guint td_ranks_get_n (const TdRanks *ranks);
/** Return the i-th of those that have one, in order. Owner: borrowed. */
const TdRank *td_ranks_get (const TdRanks *ranks, guint i);
/** Return the findings, errors first, of one level by iteration. Owner: borrowed. */
guint td_ranks_get_n_findings (const TdRanks *ranks);
const TdRanksFinding *td_ranks_get_finding (const TdRanks *ranks, guint i);
/** Count those that are no notes. */
guint td_ranks_count_faults (const TdRanks *ranks);

/** Return the words of JSON: "not finite", "error". */
const char *td_ranks_cause_name (TdRanksCause cause);
const char *td_ranks_level_name (TdRanksLevel level);
/** format: "text" or "json". Owner: the caller. */
char *td_ranks_print (const TdRanks *ranks, const char *format);

G_END_DECLS
