/* The operations of two iterations in a row, compared one by one: see graph-watch.h.
 *
 * SPDX-License-Identifier: MIT */
#include "graph-watch.h"
#include "host-memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
td__graph_watch_begin (TdGraphWatch *w, int64_t number)
{
  w->begun = true;
  w->now.n = 0;
  w->now.whole = true;
  w->now.number = number;
}

void
td__graph_watch_add (TdGraphWatch *w, TdWatchedOp op)
{
  TdWatchedGraph *g = &w->now;

  if (!w->begun)
    return;
  if (g->n == g->capacity)
    {
      g->capacity = g->capacity == 0 ? 256 : 2 * g->capacity;
      g->ops = td__xrealloc (g->ops, g->capacity * sizeof *g->ops);
    }
  g->ops[g->n++] = op;
}

/* "relu at mlp.c:31". */
static const char *
name_op (const TdWatchedGraph *g, size_t at, char *text, size_t size)
{
  const TdWatchedOp *op = at < g->n ? &g->ops[at] : NULL;
  const char *file = op != NULL && op->file != NULL ? strrchr (op->file, '/') : NULL;

  if (op == NULL)
    return "its end";
  if (op->file == NULL)
    return op->op;
  snprintf (text, size, "%.60s at %.80s:%d", op->op, file != NULL ? file + 1 : op->file,
            op->line);
  return text;
}

static void
describe (const TdGraphWatch *w, size_t at, char *what, size_t size)
{
  char now[200], before[200];

  snprintf (what, size,
            "the graph of iteration %" PRId64 " is not that of iteration %" PRId64
            ": it has %s where that had %s",
            w->now.number, w->before.number, name_op (&w->now, at, now, sizeof now),
            name_op (&w->before, at, before, sizeof before));
}

bool
td__graph_watch_end (TdGraphWatch *w, char *what, size_t size)
{
  const TdWatchedGraph old = w->before;
  size_t at = 0;
  bool changed = false;

  if (!w->begun)
    return false;
  if (w->now.whole && old.whole && old.number + 1 == w->now.number)
    {
      while (at < w->now.n && at < old.n && w->now.ops[at].hash == old.ops[at].hash)
        at++;
      changed = at < w->now.n || at < old.n;
    }
  if (changed)
    describe (w, at, what, size);
  w->before = w->now;
  w->now = (TdWatchedGraph){ .ops = old.ops, .capacity = old.capacity };
  w->begun = false;
  return changed;
}

void
td__graph_watch_clear (TdGraphWatch *w)
{
  free (w->now.ops);
  free (w->before.ops);
  *w = (TdGraphWatch){ 0 };
}
