/*
 * Gradients that no optimizer takes, as far as the graph tells them.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

#include "td-tape-reader.h"

G_BEGIN_DECLS

/** Find by the graph which variables are the gradients of leaves, where that is plain: by
 * variable, TD_TAPE_NONE for the others. Owner: the caller, g_free. */
guint32 *td__gradient_infer (const TdTapeIteration *t);

G_END_DECLS
