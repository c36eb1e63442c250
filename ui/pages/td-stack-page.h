/* The inspector's page of stacks, where the recording has any: in which calls a block was
 * allocated and in which it was freed, or an entry of the trace was made.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "td-session.h"
#include "widgets/td-call-stack.h"

#define TD_TYPE_STACK_PAGE (td_stack_page_get_type ())
G_DECLARE_FINAL_TYPE (TdStackPage, td_stack_page, TD, STACK_PAGE, GtkWidget)

/** Create the page. Owner: floating. */
GtkWidget *td_stack_page_new (void);

/** Show the stacks of a variable and an event (-1: none). FALSE: the iteration has no stacks at
 * all, and there is nothing for such a page. */
gboolean td_stack_page_show (TdStackPage *self, TdSession *session, TdIteration *iteration,
                             gint event, gint var);

/** Return the stack in which it was allocated, or that in which it was freed. Owner: the page.
 */
TdCallStack *td_stack_page_get_stack (TdStackPage *self, gboolean freed);
