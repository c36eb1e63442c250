/* Expressions that are typed, and what they are at the playhead: a line to type in, with a
 * history, and the answers above it. Signals: "read" (id): where a program stands at the
 * playhead, its array of that id is wanted. SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "gradient/td-tensor.h"
#include "td-session.h"

#define TD_TYPE_EVALUATE_PAGE (td_evaluate_page_get_type ())
G_DECLARE_FINAL_TYPE (TdEvaluatePage, td_evaluate_page, TD, EVALUATE_PAGE, GtkWidget)

/** Create the page. Owner: floating. */
GtkWidget *td_evaluate_page_new (void);
/** Ask this recording; NULL: none. Answers of another one go. */
void td_evaluate_page_set_session (TdEvaluatePage *self, TdSession *session);
/** Give the line the focus. */
void td_evaluate_page_focus (TdEvaluatePage *self);
/** Evaluate a text as Enter in the line does. */
void td_evaluate_page_enter (TdEvaluatePage *self, const char *text);
/** Take what came of "read": the array, or NULL and a line that says why not. Owner: the page
 * takes `tensor`; an array that is wanted no longer is dropped. */
void td_evaluate_page_take_array (TdEvaluatePage *self, guint64 id, TdTensor *tensor,
                                  const char *error);
/** Say whether a line waits for arrays of the program; it is answered then. */
gboolean td_evaluate_page_is_reading (TdEvaluatePage *self);
/** Count the arrays of the program that the newest answer was made with. */
guint td_evaluate_page_get_n_read (TdEvaluatePage *self);
/** Return the newest answer, "" before the first. Owner: the page. */
const char *td_evaluate_page_get_answer (TdEvaluatePage *self);
