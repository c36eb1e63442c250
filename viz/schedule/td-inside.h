/*
 * The inside of a fused group: its members from the schedule on the tape, and what is known of
 * their results. The group's event has only the values that leave the group. Those between
 * members are on no tape; a program that has stopped at the group can be asked for them.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "gradient/td-tensor.h"
#include "tape/td-iteration.h"

G_BEGIN_DECLS

/* One operation of a group. */
typedef struct
{
  guint step;          /* of the schedule */
  const char *op;      /* "tanh" */
  const char *formula; /* "y = tanh (x)"; "": it has none */
  const char *layer;
  char *call;   /* "tanh (#1)": with its inputs, members by their number from 1 on */
  char *result; /* "(16, 6) float32" */
  char *site;   /* "" unknown */
  guint dtype, ndim;
  gint64 dims[TD_TAPE_MAX_NDIM];
  gint var;       /* the iteration's variable that is its result; -1: it stays inside */
  gboolean known; /* its values are known */
  TdHonesty honesty;
  double min, max, mean;
  guint64 n_nan, n_inf;
} TdInsideMember;

typedef struct
{
  guint64 key; /* of the group's event */
  gint64 iteration;
  gint event;
  guint schedule, group; /* its id, the group's step */
  char *name;            /* "mul+tanh+log" */
  guint n;
  TdInsideMember *members;
} TdInside;

/** Name the members of the group that an event ran. Owner: the caller; NULL: it is none, or its
 * schedule is not on the tape. */
TdInside *td_inside_new (TdTapeReader *reader, TdIteration *it, guint event);
/** The same for the group that an iteration which has not ended comes to next: its event is not
 * there yet. NULL: it is none, or that is not known. */
TdInside *td_inside_new_next (TdTapeReader *reader, TdIteration *it);
void td_inside_free (TdInside *inside);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdInside, td_inside_free)

/** Return the member that is a step of the schedule; -1: none. */
gint td_inside_find_step (const TdInside *inside, guint step);
/** Load what the tape has of a member's result; NULL: it stays inside, or is not recorded.
 * Owner: the caller. */
TdTensor *td_inside_load (const TdInside *inside, guint k, TdTapeReader *reader,
                          TdIteration *it);
/** Set a member's values from what the program has answered. */
void td_inside_take (TdInside *inside, guint k, const TdTensor *tensor);
/** "0.12 … 0.98", "3 NaN" ...; "" where nothing is known. Owner: the caller. */
char *td_inside_dup_range (const TdInsideMember *member);
/** Describe a member in a sentence. Owner: the caller. */
char *td_inside_describe (const TdInside *inside, guint k);

/** Fill in what a schedule says of a step: op, formula, layer, call, result, site, shape. The
 * texts are the caller's (td_inside_member_clear). */
void td_inside_member_fill (TdInsideMember *member, TdTapeReader *reader,
                            const TdTapeSchedule *schedule, guint step);
void td_inside_member_clear (TdInsideMember *member);

/* Of the picture, in its units. */
#define TD_INSIDE_ROW 38.0
/** Draw the members in order; the view's cursor is the chosen one, plus 1. */
TdScene *td_inside_scene (const TdInside *inside, const TdPanelView *view);

G_END_DECLS
