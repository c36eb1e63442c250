/* Where a NaN, or an infinity, comes from: backwards from a value along the operations whose
 * recorded numbers have it, through backward and updates and into earlier iterations, to the
 * first operation that made it of inputs that do not have it.
 *
 * What is recorded decides how sure that is. With elements (level values) the elements are
 * followed; with statistics only, whole arrays are, and where an operation may have dropped
 * what it was given (where, maximum, get_item) several operations can come into question. Then
 * `sure` is FALSE and `candidates` has all of them. Where nothing is recorded the trail is
 * lost, and said to be.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-session.h"

G_BEGIN_DECLS

typedef enum
{
  TD_BAD_NAN,
  TD_BAD_INF
} TdBad;

typedef enum
{
  TD_ORIGIN_UNKNOWN, /* nothing is recorded of the value that was asked for */
  TD_ORIGIN_CLEAN,   /* it has neither NaN nor infinity */
  TD_ORIGIN_MADE,    /* an operation made it of inputs without it */
  TD_ORIGIN_CAME,    /* the program brought it in: data, weights, a write */
  TD_ORIGIN_LOST,    /* the trail ends where nothing is recorded */
} TdOriginKind;

/** One array on the way, from the selected value to the origin. */
typedef struct
{
  gint64 iteration;
  gint event; /* that wrote it; -1: none of this iteration */
  guint var;
  guint64 key; /* of the event, else of the variable */
  char *name;  /* "log of net/head at model.c:31", "net/l1/W" */
} TdOriginStep;

#define TD_ORIGIN_MOST_INPUTS 4

typedef struct TdOrigin TdOrigin;
struct TdOrigin
{
  TdOriginKind kind;
  TdBad bad;
  TdOriginStep at;
  gboolean sure;
  gboolean has_element;
  guint ndim;
  gint64 element[TD_TAPE_MAX_NDIM];
  guint n_inputs; /* of the elements that it was made of, as far as they are recorded */
  double inputs[TD_ORIGIN_MOST_INPUTS];
  char *name;         /* "log", "div of backward of log (net/l1)", "x" */
  char *place;        /* "model.c:31", "" unknown */
  char *note;         /* what is not known, and what would tell; NULL: nothing */
  char *sentence;     /* all of it in one */
  GArray *steps;      /* TdOriginStep: the selected value first, the origin last */
  GArray *candidates; /* TdOriginStep: origins that come into question, when not sure */
  TdOrigin *cause;    /* of a NaN that was made of infinities: theirs; else NULL */
};

/** Follow what is bad in an event's outputs or in a variable, by key, as it is after `event`
 * (-1: at the end of the iteration). Owner: the caller. Sync: loads earlier iterations. */
TdOrigin *td_origin_new (TdSession *session, TdIteration *iteration, guint64 key, gint event);
void td_origin_free (TdOrigin *origin);
/** Return the key of what an iteration's NaN is best asked of: the loss, else the last that
 * has one (a call that failed has none); 0: there is none. */
guint64 td_origin_find (const TdIteration *iteration);
/** format: "text" or "json". Owner: the caller. */
char *td_origin_print (const TdOrigin *origin, const char *format);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdOrigin, td_origin_free)

G_END_DECLS
