/* Inside a fused group: a page of the inspector that lists its members and shows the value of
 * one. What the recording has not is asked of the program, where that stands at the group.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "schedule/td-inside.h"
#include "td-session.h"

#define TD_TYPE_INSIDE_PAGE (td_inside_page_get_type ())
G_DECLARE_FINAL_TYPE (TdInsidePage, td_inside_page, TD, INSIDE_PAGE, GtkWidget)

/** Create the page. Signal "look" (int k, guint token): ask the program what it stands at (k is
 * -1), or for what member k leaves; answers bring the token back. Owner: floating. */
GtkWidget *td_inside_page_new (void);

/** Show the group that is selected, else the one the program stands at, else the playhead's.
 * FALSE: none of them is a fused group. */
gboolean td_inside_page_show (TdInsidePage *self, TdSession *session);

/** Return the group on show; NULL: none. Owner: the page. */
const TdInside *td_inside_page_get_inside (TdInsidePage *self);
/** Return the chosen member and what is known of its result (NULL: nothing). */
guint td_inside_page_get_chosen (TdInsidePage *self);
const TdTensor *td_inside_page_get_tensor (TdInsidePage *self);
/** Return the line that says where the values come from, or why there are none. */
const char *td_inside_page_get_says (TdInsidePage *self);

/** Return what an answer must bring to be taken. */
guint td_inside_page_get_token (TdInsidePage *self);
/** The program stands at a group of these operations (the first `n_ops` of `n`), before it or
 * behind it. */
void td_inside_page_take_group (TdInsidePage *self, guint token, const char *const *ops,
                                guint n_ops, guint n, gboolean ran);
/** Show what a member leaves. Owner: takes `tensor`. */
void td_inside_page_take (TdInsidePage *self, guint token, guint k, TdTensor *tensor);
/** Say why the program does not tell. */
void td_inside_page_take_error (TdInsidePage *self, guint token, const char *text);
