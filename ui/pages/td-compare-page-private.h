/* What the files of the compare page share: its parts and what is beside the playhead.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "pages/td-compare-page.h"
#include "pages/td-compare-snapshots.h"
#include "widgets/td-compare-buffers.h"
#include "widgets/td-compare-layers.h"
#include "widgets/td-compare-list.h"
#include "widgets/td-compare-table.h"
#include "widgets/td-find-bar.h"
#include "widgets/td-kinds-view.h"

/** What stands beside the playhead: something that follows it, or one iteration. */
typedef enum
{
  TD_CHOICE_PREVIOUS,
  TD_CHOICE_STRUCTURE,
  TD_CHOICE_SCHEDULE, /* the static functions that ran as code here were replayed there */
  TD_CHOICE_CODE,     /* and the other way round */
  TD_CHOICE_SAME,
  TD_CHOICE_NUMBER
} TdCompareChoice;

struct _TdComparePage
{
  AdwBin parent;
  GtkStack *stack; /* pictures, empty */
  GtkBox *body;    /* head, find bar, pictures and what is below them */
  GtkWidget *head;
  GtkLabel *sentence, *cost;
  GtkSpinner *spinner;
  GtkWidget *picker, *empty_picker;
  TdFindBar *find;
  AdwStatusPage *empty;
  TdCompareList *list;
  GtkWidget *lower; /* below the pictures */
  GtkStack *views;  /* in it: operations, compare-buffers, dynamic-static */
  TdCompareTable *table;
  TdCompareBuffers *buffers;
  TdKindsView *kinds;
  TdCompareLayers *layers;
  GtkWidget *upper;              /* list and pictures */
  GtkWidget *paned;              /* both halves */
  TdCompareSnapshots *snapshots; /* instead of them, where both sides are memory snapshots */
  GtkBox *pair;                  /* the sides */
  TdCompareSide *sides[TD_N_SIDES];

  TdSession *session; /* the window's */
  TdSession *other;   /* another recording beside it; NULL: the same */
  TdSession *shown;   /* one iteration: the picture beside the window's */
  TdSide mine;        /* where the window's is; the other one is beside it */
  TdCompareChoice choice;
  gint64 number;               /* of TD_CHOICE_NUMBER */
  TdIteration *of[TD_N_SIDES]; /* on show */
  TdCompare *compare;          /* of them, once it is known */
  GCancellable *job;           /* it is being found out */
  TdPort *port;                /* of them by layer, once it was asked for and is known */
  GCancellable *port_job;
  gboolean port_asked;
  char *port_names; /* the table by which layers are paired; NULL: it is guessed */
  void (*port_known) (TdComparePage *self); /* there is one, or why not */
  gboolean low;                             /* there is room for one of both halves */
  char *reason;                             /* why there is nothing to compare */
  gboolean numbers;
  gboolean drawn;   /* the window's picture was asked for: the page was on show */
  gboolean dirty;   /* something changed while the page was not on show */
  gboolean syncing; /* one side follows the other */
};

/** Takes the result, which it owns. */
typedef void (*TdCompareTakeFunc) (TdComparePage *self, TdCompare *compare);

/** What a thread compares, with readers of its own; the task owns it. */
typedef struct TdCompareJob
{
  TdIteration *of[TD_N_SIDES];
  char *paths[TD_N_SIDES];
  gboolean is_reference[TD_N_SIDES];
  TdCompareTakeFunc take;
} TdCompareJob;
TdCompareJob *td__compare_job_new (TdComparePage *self, TdIteration *const *of);
void td__compare_job_free (gpointer data);

/** Compare what is on show, now or in a thread. */
void td__compare_page_run (TdComparePage *self, TdIteration *const *of, TdCompareTakeFunc take);
void td__compare_page_cancel (TdComparePage *self);

/** Return the session of a side. Owner: the page. */
TdSession *td__compare_page_session_of (TdComparePage *self, TdSide side);
/** From now on what happens in the window's session, or in the other one, happens in both. */
void td__compare_page_follow_mine (TdComparePage *self);
void td__compare_page_follow_theirs (TdComparePage *self);
/** Take the other playhead to the counterpart of the window's. */
void td__compare_page_follow_playhead (TdComparePage *self);
/** Select on the other side what is selected in the window. */
void td__compare_page_show_selected (TdComparePage *self);
/** Let both pictures open where they part first, or at the loss where they do not. */
void td__compare_page_open (TdComparePage *self);
/** Select a row on both sides and show it. */
void td__compare_page_show_row (TdComparePage *self, guint row);
/** Select an event on both sides (-1: none) and show it. */
void td__compare_page_show_events (TdComparePage *self, const gint event[TD_N_SIDES]);

/* td-compare-port.c */
/** Compare layers of what is on show, if they are looked at or all that there is, and that has
 * not been done. */
void td__compare_page_check_port (TdComparePage *self);
void td__compare_page_forget_port (TdComparePage *self);
/** The same as before by other names or limits, at once. */
void td__compare_page_check_again (TdComparePage *self);
/** Say whether a side is a file of arrays: layers are all that it has. */
gboolean td__compare_page_has_reference (TdComparePage *self);
/** Say in a sentence what is known of the layers. Owner: the caller. */
char *td__compare_page_dup_sentence (TdComparePage *self);
/** Show a row of the table of layers on both sides. */
void td__compare_page_show_layer (TdComparePage *self, guint row);

/** Build the bar of td_compare_page_find. Owner: floating. */
GtkWidget *td__compare_page_new_find (TdComparePage *self);

/** Return the recording that the other iteration is of. Owner: the page. */
TdSession *td__compare_page_source (TdComparePage *self);

/** Guess names, from the next check on: what is compared has others. */
void td__compare_page_forget_names (TdComparePage *self);

/** Take a choice of td_compare_page_compare_with. Errors: one line; nothing changes. */
gboolean td__compare_page_choose (TdComparePage *self, const char *what, GError **error);

/** Choose the iteration after or before the one that is chosen now. Errors: one line; nothing
 * changes. */
gboolean td__compare_page_move (TdComparePage *self, int direction, GError **error);

/** Load what stands beside iteration `here`. Owner: the caller. Errors: one sentence that says
 * why there is none. */
TdIteration *td__compare_page_find_other (TdComparePage *self, TdIteration *here,
                                          GError **error);
