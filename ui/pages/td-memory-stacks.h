/* The blocks at the playhead as a table, and the stack that allocated the one that is selected:
 * a card of the Memory page where the recording has stacks. A frame that is chosen leaves those
 * blocks in the table that were allocated under it; signal "filtered": it is another one.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-page.h"
#include "widgets/td-call-stack.h"

#define TD_TYPE_MEMORY_STACKS (td_memory_stacks_get_type ())
G_DECLARE_FINAL_TYPE (TdMemoryStacks, td_memory_stacks, TD, MEMORY_STACKS, TdPage)

/** Create it. Owner: the caller. */
TdMemoryStacks *td_memory_stacks_new (void);

/** Fill the card, whose layout `builder` has. */
void td_memory_stacks_build (TdMemoryStacks *self, GtkBuilder *builder);

/** The Memory page is on show now: look again. */
void td_memory_stacks_look (TdMemoryStacks *self);

/** Return the call that blocks are filtered by; 0: all are there. */
guint32 td_memory_stacks_get_call (TdMemoryStacks *self);
