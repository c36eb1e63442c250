/* Breakpoints that are asked at other times than before and after events: at the end of an
 * iteration, where a guard fails, and where an edge is cut.
 *
 * SPDX-License-Identifier: MIT */
#include "agent.h"

#include "../holdings.h"
#include "../recorder.h"
#include "host-memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool
is_asked_at (const TdAgent *a, TdBreakWhen when)
{
  return (a->control.asked_at & 1u << when) != 0;
}

/* ------------------------------------------------------------------- edges cut */

/* Would it have a backward, but for the configuration?  What has none cuts nothing. */
static bool
runs_without_backprop (const TdEvent *e)
{
  bool wanted = false;

  if (td__engine.config.enable_backprop || (e->cls->flags & TD_OP_NO_GRAD)
      || e->cls->backward == NULL)
    return false;
  for (int i = 0; i < e->n_in; i++)
    wanted = wanted || e->in[i]->requires_grad;
  return wanted;
}

bool
td__agent_cuts (TdAgent *a, const TdEvent *e)
{
  const bool before = a->cuts;

  if (e->phase != TD_PHASE_FORWARD)
    return false;
  a->cuts = runs_without_backprop (e) || (before && !td__engine.config.enable_backprop);
  return a->cuts && !before;
}

void
td__agent_cut (TdAgent *a, const TdNode *node, const TdSite *site)
{
  const TdOp *made_by = node->creator;
  TdControlPlace place = { .op = made_by->cls->name,
                           .path = td__engine.path != NULL ? td__engine.path->text : "",
                           .phase = td__engine.phase };
  TdBreakMoment m = td__agent_moment (NULL, NULL);
  TdBreak *b;
  char what[300];

  if (!is_asked_at (a, TD_BREAK_AT_CUT))
    return;
  site = made_by->site != NULL ? made_by->site : site;
  place.file = site != NULL ? site->file : NULL;
  place.line = site != NULL ? site->line : 0;
  m.when = TD_BREAK_AT_CUT;
  m.place = &place;
  b = td__control_holds (&a->control, &m, false);
  if (b == NULL)
    return;
  snprintf (what, sizeof what,
            "%.80s%sthe result of %.80s%s is cut from it: no gradient passes",
            node->name != NULL ? node->name : "", node->name != NULL ? ", " : "", place.op,
            node->name != NULL ? "," : "");
  td__agent_stop_at (a, b, place.op, site, what, true);
}

/* ---------------------------------------------------------------------- guards */

void
td__agent_guard (TdAgent *a, const TdStaticEvent *event)
{
  const TdSite *site = event->called != NULL ? event->called : event->made;
  const TdControlPlace place = { .op = event->name != NULL ? event->name : "a static function",
                                 .path = td__engine.path != NULL ? td__engine.path->text : "",
                                 .file = site != NULL ? site->file : NULL,
                                 .line = site != NULL ? site->line : 0,
                                 .phase = td__engine.phase };
  TdBreakMoment m = td__agent_moment (NULL, NULL);
  TdBreak *b;
  char what[500];
  const bool says_guard
      = event->guard == NULL
        || (event->text != NULL
            && strncmp (event->text, event->guard, strlen (event->guard)) == 0);

  if (!is_asked_at (a, TD_BREAK_AT_GUARD))
    return;
  m.when = TD_BREAK_AT_GUARD;
  m.place = &place;
  b = td__control_holds (&a->control, &m, false);
  if (b == NULL)
    return;
  snprintf (what, sizeof what, "%.80s cannot be replayed, and runs its code: %.60s%s%.200s",
            place.op, says_guard ? "" : event->guard, says_guard ? "" : ": ",
            event->text != NULL ? event->text : "");
  td__agent_stop_at (a, b, place.op, site, what, false);
}

/* ------------------------------------------------------------ ends of iterations */

/* A static function's call is one step of the graph, whether it runs its code, is compared with
 * it or is replayed, fused: what becomes static does not change by that. */
void
td__agent_run (TdAgent *a, const TdStaticRun *run)
{
  TdStaticCalls *c = &a->statics;

  if (run->moment == TD_RUN_DISCARDED || !a->control.compares_graphs)
    return;
  if (run->kind == TD_RUN_CALL)
    {
      if (c->depth == 0)
        td__graph_watch_add (&a->graphs,
                             (TdWatchedOp){ .hash = run->function, .op = "a static function" });
      return;
    }
  if (run->moment == TD_RUN_ENDS)
    {
      c->depth -= c->depth > 0;
      if (c->depth == 0 && c->n > 0)
        c->items[c->n - 1].last = td__engine.next_id;
      c->last_node = td__engine.next_node_id;
      return;
    }
  if (c->depth++ > 0)
    return;
  if (c->n == c->capacity)
    {
      c->capacity = c->capacity == 0 ? 16 : 2 * c->capacity;
      c->items = td__xrealloc (c->items, c->capacity * sizeof *c->items);
    }
  c->items[c->n].after = td__engine.next_id;
  c->items[c->n++].last = UINT64_MAX;
}

/* Did the operation run in a call of a static function? */
static bool
is_of_static (const TdStaticCalls *c, uint64_t id)
{
  size_t lo = 0, hi = c->n;

  while (lo < hi)
    {
      const size_t mid = lo + (hi - lo) / 2;

      if (c->items[mid].after < id)
        lo = mid + 1;
      else
        hi = mid;
    }
  return lo > 0 && id <= c->items[lo - 1].last;
}

/* What an operation reads, by how long ago it was made: that does not change where something
 * was put in before both.  From a static function's call, and across it, that is not compared.
 */
static uint64_t
read_by (const TdAgent *a, const TdEvent *e, int i)
{
  const uint64_t id = e->in[i]->id;

  return id <= td__engine.iteration_node ? 0
         : id <= a->statics.last_node    ? 1
                                         : td__engine.next_node_id - id + 2;
}

/* What is added up in backward follows from the rest. */
static bool
is_compared (const TdAgent *a, const TdEvent *e)
{
  return td__engine.in_iteration && !(e->order & TD_ORDER_APART) && a->statics.depth == 0
         && e->phase != TD_PHASE_ACCUMULATE
         && (e->twin_id == 0 || !is_of_static (&a->statics, e->twin_id));
}

void
td__agent_watch (TdAgent *a, const TdEvent *e)
{
  uint64_t hash = (uintptr_t)e->cls;

  if (!is_compared (a, e))
    return;
  hash = td__graph_watch_mix (hash, e->path != NULL ? e->path->id : 0);
  hash = td__graph_watch_mix (hash, (uint64_t)e->phase << 32 | (e->flags & TD_EVENT_GRAPH));
  hash = td__graph_watch_mix (hash, (uint64_t)e->n_in << 32 | (uint32_t)e->n_out);
  /* What an optimizer remembers is made by the first update. */
  for (int i = 0; i < e->n_in && e->phase != TD_PHASE_UPDATE; i++)
    hash = td__graph_watch_mix (hash, read_by (a, e, i));
  td__graph_watch_add (&a->graphs,
                       (TdWatchedOp){ .hash = hash,
                                      .op = e->cls->name,
                                      .file = e->site != NULL ? e->site->file : NULL,
                                      .line = e->site != NULL ? e->site->line : 0 });
}

/* All that can be asked at the end of an iteration, and the line for each. */
typedef struct
{
  char changed[450], grown[120];
  TdOutlived outlived;
} End;

static void
look_at_end (TdAgent *a, int64_t number, TdBreakMoment *m, End *end)
{
  m->when = TD_BREAK_AT_END;
  m->changed = a->control.compares_graphs
               && td__graph_watch_end (&a->graphs, end->changed, sizeof end->changed);
  m->held
      = a->control.asks_for_held && number > 0
        && td__holdings_outlived (a->recorder->holdings, (uint64_t)number - 1, &end->outlived);
  m->grows_known = a->ended >= 0 && a->ended + 1 == number;
  m->grown_bytes = (int64_t)(m->live_bytes - a->live_at_end);
  td__control_describe_growth (m, end->grown, sizeof end->grown);
  a->ended = number;
  a->live_at_end = m->live_bytes;
}

void
td__agent_ends (TdAgent *a, int64_t number, const TdSite *site)
{
  TdControlPlace place = { .op = "end of iteration",
                           .path = "",
                           .file = site != NULL ? site->file : NULL,
                           .line = site != NULL ? site->line : 0,
                           .phase = td__engine.phase };
  TdBreakMoment m;
  TdBreak *b;
  End end = { .changed = "" };
  char what[450];

  if (!is_asked_at (a, TD_BREAK_AT_END))
    return;
  m = td__agent_moment (NULL, NULL);
  look_at_end (a, number, &m, &end);
  m.place = &place;
  b = td__control_holds (&a->control, &m, false);
  if (b == NULL)
    return;
  snprintf (what, sizeof what, "%.440s",
            td__break_compares_graphs (b) && m.changed ? end.changed
            : td__break_asks_for_held (b) && m.held    ? end.outlived.what
                                                       : end.grown);
  td__agent_stop_at (a, b, place.op, site, what, true);
}
