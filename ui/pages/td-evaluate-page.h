/* Expressions that are typed, and what they are at the playhead: a line to type in, with a
 * history, and the answers above it. SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

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
/** Return the newest answer, "" before the first. Owner: the page. */
const char *td_evaluate_page_get_answer (TdEvaluatePage *self);
