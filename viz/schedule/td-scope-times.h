/* What the program named while it ran: its scopes (TD_SCOPE in C), and from when to when each
 * was open.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-iteration.h"

/** A scope that has a name and in which something ran. */
typedef struct
{
  const char *name; /* of the iteration */
  guint64 key;
  guint depth; /* scopes around it */
  guint first_event, last_event;
  guint64 start_ns, ns; /* from its first event to the end of its last */
} TdScopeTime;

/** List the scopes of an iteration as they were opened. Owner: the caller, of TdScopeTime. */
GArray *td_scope_times_new (const TdIteration *iteration);
