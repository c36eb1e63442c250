/* Filter expressions over the operations of an iteration, in the language of the breakpoints:
 * terms joined by && and ||, && binding closer.
 *
 *   error  nan  inf                      what happened (nan, inf: of a recorded output)
 *   op == linear    link == mlp/l1       which operation (op=linear, `op linear` too); link:
 * that layer or one inside it line == mlp.c:31    phase == backward bytes > 1.5M    ms > 0.2 of
 * the outputs; its time norm > 100    norm(grad) > 100       Euclidean norm of an output; of a
 * gradient mean, min, max                       of an output; compared like norm relu    "two
 * words"                  any other word: in name, layer or place
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-iteration.h"

G_BEGIN_DECLS

typedef struct TdFilter TdFilter;

/** Read an expression; "" matches everything. Owner: the caller. Errors: NULL and one line that
 * names the word that was not understood. */
TdFilter *td_filter_new (const char *text, GError **error);
void td_filter_free (TdFilter *self);
/** List the events that match, in order. Owner: the caller, g_array_unref(); of gint32. */
GArray *td_filter_apply (const TdFilter *self, TdIteration *iteration);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdFilter, td_filter_free)

G_END_DECLS
