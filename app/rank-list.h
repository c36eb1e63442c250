/* The ranks of a run as a client of the control socket sees them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "json-line.h"
#include "whereabouts.h"

/** Write the answer to `ranks FIRST`: from that one on as many as a line has room for, each
 * with what it does and the address of its own socket.  Borrowed: the line's. */
const char *td_rank_list (TdJsonLine *line, const TdWhere *where, int first);
