/*
 * Where memory ran out, in a sentence for the top of the Memory page.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

#include "td-tape-reader.h"

G_BEGIN_DECLS

/** Say where memory ran out last, who held the most, and what would help most. Owner: the
 * caller; NULL: it did not. */
char *td_oom_headline (TdTapeReader *reader);

G_END_DECLS
