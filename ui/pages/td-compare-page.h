/* The compare perspective: the iteration at the playhead beside another one of the same or
 * another recording. Of one recording the older iteration is A, on the left; another recording
 * is B, on the right. There is a sentence, the differences, two canvases, time and bytes of
 * each operation. Signal "announce" (const char *text): for people who do not see the pictures.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "diff/td-compare.h"
#include "diff/td-port.h"
#include "pages/td-compare-snapshots.h"
#include "td-session.h"
#include "widgets/td-compare-side.h"

#define TD_TYPE_COMPARE_PAGE (td_compare_page_get_type ())
G_DECLARE_FINAL_TYPE (TdComparePage, td_compare_page, TD, COMPARE_PAGE, AdwBin)

/** Create the page. It compares only while it is on show. Owner: floating. */
GtkWidget *td_compare_page_new (void);

void td_compare_page_set_session (TdComparePage *self, TdSession *session);

/** Choose the other one: "previous" (follows the playhead), "structure" (the nearest iteration
 * with another graph), "same" (the same iteration of the other recording), the number of an
 * iteration, or the path of a recording. Errors: one line; what was shown stays. */
gboolean td_compare_page_compare_with (TdComparePage *self, const char *what, GError **error);

/** Take the other one to the next or, with -1, the previous iteration of its recording. Errors:
 * one line; what was shown stays. */
gboolean td_compare_page_move_other (TdComparePage *self, int direction, GError **error);

/** Open the menu of what to compare with. */
void td_compare_page_pick (TdComparePage *self);

/** Bring a view below the pictures to the front by name: operations, compare-buffers,
 * dynamic-static, by-layer. FALSE: there is none such. */
gboolean td_compare_page_show_view (TdComparePage *self, const char *name);
/** Return the picture of a side's buffers; NULL: nothing is compared. Owner: the page. */
TdScene *td_compare_page_get_buffers (TdComparePage *self, TdSide side);

/** Return the comparison on show, NULL: there is nothing to compare. Owner: the page. */
const TdCompare *td_compare_page_get (TdComparePage *self);
/** Say whether a side is a reference, of which layers alone are compared. */
gboolean td_compare_page_is_by_layer (TdComparePage *self);
/** Return the comparison by layer; NULL: it was not asked for, or is not known yet. Owner: the
 * page. */
const TdPort *td_compare_page_get_port (TdComparePage *self);
/** Open the table of names by which layers are paired, to be edited: an AdwMessageDialog with
 * the responses "cancel", "guess" and "use". Owner: itself, until it is closed. */
GtkWidget *td_compare_page_edit_names (TdComparePage *self);
/** Return the part that compares memory snapshots; NULL: none are compared. Owner: the page. */
TdCompareSnapshots *td_compare_page_get_snapshots (TdComparePage *self);
/** Return why there is none, "" if there is one. Owner: the page. */
const char *td_compare_page_get_reason (TdComparePage *self);
/** Return the sentence over the page. Owner: the page. */
const char *td_compare_page_get_sentence (TdComparePage *self);

/** Go to the next or, with -1, the previous difference. FALSE: there is none. */
gboolean td_compare_page_step (TdComparePage *self, int direction);
/** Return which difference is selected, from 1 on (0: none), and how many are listed. */
guint td_compare_page_get_position (TdComparePage *self, guint *n);

gboolean td_compare_page_get_numbers (TdComparePage *self);
/** List what differs in numbers only as well, or not. */
void td_compare_page_set_numbers (TdComparePage *self, gboolean numbers);

/** Open the bar that finds operations of either side; close it (FALSE: it was not open). */
void td_compare_page_find (TdComparePage *self);
gboolean td_compare_page_close_find (TdComparePage *self);
/** Select the next row that has the text on one side; returns how many have. */
guint td_compare_page_search (TdComparePage *self, const char *text);

/** Leave out what a low window has no room for. */
void td_compare_page_set_low (TdComparePage *self, gboolean low);
/** The same for a narrow one: the list of differences takes less. */
void td_compare_page_set_narrow (TdComparePage *self, gboolean narrow);

TdCompareSide *td_compare_page_get_side (TdComparePage *self, TdSide side);
/** Return the side of the iteration at the playhead. */
TdSide td_compare_page_get_mine (TdComparePage *self);
/** Return the session of the other picture; NULL: none. Owner: the page. */
TdSession *td_compare_page_get_other (TdComparePage *self);
/** Say whether the two are of different recordings. */
gboolean td_compare_page_has_other_recording (TdComparePage *self);
