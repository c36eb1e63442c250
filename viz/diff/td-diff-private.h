/*
 * What the parts of a comparison tell one another.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-diff.h"

G_BEGIN_DECLS

/** Which line of B each line of A's sources is, where the programs differ in their sources. */
typedef struct
{
  char *name;         /* of the file, without folders */
  guint n;            /* lines of A */
  guint32 *line_in_b; /* by line - 1; 0: none */
  guint first;        /* line of A at which they part; 0: they are equal */
} TdLineMap;

/** A comparison while it is made. */
typedef struct
{
  TdDiff *d;
  const TdTapeIteration *t[2];
  TdTapeReader *reader[2];
  GPtrArray *maps;      /* TdLineMap */
  GArray *groups;       /* TdFusedGroup */
  GArray *fused;        /* guint32: events of the groups */
  gint32 *group[2];     /* by event: index of its group, -1 */
  guint64 *event_ns[2]; /* by event: a median of what it takes; NULL: its own time is */
  guint8 *moved[2];     /* by event: matched out of order */
  const TdTapeSchedule *schedule[2]; /* the last one that was loaded, and its id */
  guint schedule_id[2];
} TdComparison;

/** Events of one side that are one event of the other. */
typedef struct
{
  guint side;     /* of the several */
  gint event;     /* of the other side */
  guint first, n; /* into TdComparison.fused */
} TdFusedGroup;

/* td-diff-match.c */
/** Find the counterpart of every event: fills partner[], groups and moved[]. */
void td__diff_match (TdComparison *c);
/** Say whether two variables are counterparts: made by matched events, or the same leaf. */
gboolean td__diff_same_var (const TdComparison *c, guint var_a, guint var_b);

/** Say whether both sides have both of two leaves, so that one stands where the other stood. */
gboolean td__diff_other_leaf (const TdComparison *c, guint var_a, guint var_b);
/** Make two events counterparts; say whether one has none yet. */
void td__diff_pair (TdComparison *c, gint a, gint b);
gboolean td__diff_is_lone (const TdComparison *c, guint side, guint32 event);

/* td-diff-fused.c */
/** Say whether an event does what several operations do. */
gboolean td__diff_is_fused (const TdComparison *c, guint side, guint event);
/** Where the members of a group are looked for besides among what its members read. */
typedef enum
{
  TD_DIFF_LINKED,      /* nowhere */
  TD_DIFF_OF_ONE_TWIN, /* among the backward operations of one forward operation */
  TD_DIFF_NEAR         /* before the last one */
} TdDiffReach;
/** Find what the fused event `fused` of `side` does among the other side's lone events, of
 * which `last` is to be its last member. FALSE: it is not that, and nothing was changed. */
gboolean td__diff_open_group (TdComparison *c, guint side, guint fused, guint32 last,
                              TdDiffReach reach);

/* td-diff-members.c */
/** In what the members of a fused group differ from those of its counterpart. */
typedef struct
{
  char *title, *what; /* of the first, of all */
  char *site[2];      /* of the first */
  guint32 reads[8];   /* what they read from outside: a variable of A, one of B ... */
  guint n_reads;
} TdDiffMember;
/** Compare the members of two groups, as far as their schedules are on the tapes: returns
 * TdDiffAspects. */
guint td__diff_compare_members (TdComparison *c, guint a, guint b);
/** The attributes of a group's members and of the events of the other side that it does. */
guint td__diff_compare_fused (TdComparison *c, const TdFusedGroup *fused);
/** Return what differs inside a pair of groups; NULL: nothing. Owner: borrowed. */
const TdDiffMember *td__diff_member_of (const TdDiff *d, const TdDiffPair *pair);
void td__diff_member_free (gpointer member);
void td__diff_forget_schedules (TdComparison *c);

/* td-diff-backward.c */
/** Find the counterparts of backward events; `loose` are names and layers by event. */
void td__diff_match_backward (TdComparison *c, const guint64 *const loose[2]);

/* td-diff-compare.c */
/** Return the aspects in which attributes of an operation differ; follows: sizes in them may
 * follow from others. */
guint td__diff_compare_attributes (const char *op, const char *a, const char *b,
                                   gboolean follows);
/** Make pairs in order, find in what each differs and what follows from what. */
void td__diff_compare (TdComparison *c);

/* td-diff-times.c */
/** Find how long events take, and both sides in all: fills event_ns and those totals. */
void td__diff_times (TdComparison *c);
/** Return how long an event takes. */
guint64 td__diff_event_ns (const TdComparison *c, guint side, guint event);

/* td-diff-numbers.c */
/** The element at `p` as a number, and where it stands on the line of all numbers of its type.
 */
double td__diff_element (guint dtype, const guint8 *p, gint64 *place);
/** Compare the numbers of all pairs' outputs. */
void td__diff_numbers (TdComparison *c);

/** Say whether two variables that counterparts read are not counterparts, beyond what was put
 * in or left out. */
gboolean td__diff_reads_other (const TdComparison *c, guint var_a, guint var_b);

/* td-diff-text.c */
/** Append the attributes that differ: "value=0.5 → 0.51". */
void td__diff_append_attributes (GString *s, const char *a, const char *b);
char *td__diff_print_text (const TdDiff *d);

/* td-diff-programs.c, td-diff-cause.c */
/** Compare sources and versions, and map lines. */
void td__diff_programs (TdComparison *c);
void td__line_map_free (gpointer map);
/** Return the line of B that line `line` of A's file is; 0: none. */
guint td__line_in_b (const TdComparison *c, const char *file, guint line);
/** Find why the graphs part. */
void td__diff_find_cause (TdComparison *c);

/** Return the last part of a path. Owner: borrowed. */
const char *td__base_name (const char *path);

G_END_DECLS
