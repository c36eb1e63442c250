/* Calls whose schedule has no backward yet.  What the code's graph would have kept of them,
 * only their forward can make: it runs again before what it reads is written.
 *
 * SPDX-License-Identifier: MIT */
#include "replay.h"

#include "compute/core/before-write.h"

static TdInstance *waiting;
static bool runs; /* what that writes itself it puts back */

static TdInstance *
first_that_needs (const TdBuffer *b)
{
  TdInstance *i = waiting;

  while (i != NULL && !td__replay_needs (i, b))
    i = i->next_waiting;
  return i;
}

static void
before_write (const TdBuffer *b)
{
  TdInstance *i;

  if (runs)
    return;
  runs = true;
  while ((i = first_that_needs (b)) != NULL)
    {
      TdOp *call = i->call;

      td__replay_waits_no_more (i);
      td__replay_expand_now (i, call);
    }
  runs = false;
}

void
td__replay_waits (TdInstance *i, TdOp *call)
{
  i->call = call;
  i->next_waiting = waiting;
  waiting = i;
  td__before_write = before_write;
}

void
td__replay_waits_no_more (TdInstance *i)
{
  TdInstance **at = &waiting;

  if (i->call == NULL)
    return;
  while (*at != i)
    at = &(*at)->next_waiting;
  *at = i->next_waiting;
  i->next_waiting = NULL;
  i->call = NULL;
  if (waiting == NULL)
    td__before_write = NULL;
}
