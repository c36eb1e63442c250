/*
 * Stacks of one or more iterations, each once: two that go through the same functions, files
 * and lines are one, whichever tape they are on. Texts and numbers of it outlive the
 * iterations.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-json.h"
#include "tape/td-stack.h"

G_BEGIN_DECLS

typedef struct TdStackTable TdStackTable;

TdStackTable *td_stack_table_new (void);
void td_stack_table_free (TdStackTable *self);

/** Find the number of a stack of the iteration, from 1 on in the order in which they were asked
 * for; 0: stack 0, which is not known. The iteration must live until the last such call. */
guint32 td_stack_table_add (TdStackTable *self, const TdIteration *iteration, guint32 stack);

/** List the frames of a stack of the table, innermost first: an array of TdStackFrame, whose
 * calls are the table's own and whose sites are 0. Owner: the caller; of its texts the table.
 */
GArray *td_stack_table_list (const TdStackTable *self, guint32 stack);
/** Count the calls, from the innermost on, that two stacks have in common. */
guint td_stack_table_common (const TdStackTable *self, guint32 a, guint32 b);

/** Order stacks by their frames, from the innermost on: those that begin alike are neighbours.
 */
gint td_stack_table_order (const TdStackTable *self, guint32 a, guint32 b);

/** Write the members "frames", an array of {function, file, line} without what is not known,
 * and "stacks", an array of arrays of indices of frames, innermost first: stack k of the table
 * is number k - 1 in it. */
void td_stack_table_write (const TdStackTable *self, TdJson *json);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdStackTable, td_stack_table_free)

G_END_DECLS
