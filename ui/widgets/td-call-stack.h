/* The calls of a stack as a list, innermost first: runs without a line are folded until all are
 * asked for. A frame whose source the recording has leads to it; Copy Stack copies all of it as
 * text. Signal "chosen" (guint call, its number in the stack's tree): a frame was selected.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "tape/td-stack.h"
#include "td-session.h"

#define TD_TYPE_CALL_STACK (td_call_stack_get_type ())
G_DECLARE_FINAL_TYPE (TdCallStack, td_call_stack, TD, CALL_STACK, GtkWidget)

/** Create the list. Owner: floating. */
GtkWidget *td_call_stack_new (void);

/** Show frames, an array of TdStackFrame whose texts are copied, below a title; `session` (may
 * be NULL) has the sources. NULL or an empty array: the stack is not known, and that is said.
 */
void td_call_stack_set (TdCallStack *self, const char *title, const GArray *frames,
                        TdSession *session);

/** Select the frame that is this call; 0, or one that is folded away: none. Emits nothing. */
void td_call_stack_select (TdCallStack *self, guint32 call);

/** Show all frames, or fold them again. */
void td_call_stack_set_whole (TdCallStack *self, gboolean whole);

/** Return the stack as Copy Stack copies it, a line a frame. Owner: the caller. */
char *td_call_stack_dup_text (TdCallStack *self);
/** Count the rows on show. */
guint td_call_stack_get_n_rows (TdCallStack *self);
