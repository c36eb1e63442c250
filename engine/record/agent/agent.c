/* The model's side of control: see agent.h and PROTOCOL.md.
 *
 * SPDX-License-Identifier: MIT */
#include "agent.h"
#include "alike.h"
#include "host-memory.h"

#include "compute/core/inside.h"
#include "compute/core/async-index.h"
#include "../recorder.h"
#include "read.h"
#include "together.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
command_level (TdControl *c, const char *tag, const char *text)
{
  for (uint32_t level = TD_TAPE_LEVEL_GRAPH; level <= TD_TAPE_LEVEL_VALUES; level++)
    if (strcmp (text, td_tape_level_name (level)) == 0)
      {
        ((TdAgent *)c)->recorder->level = level;
        td__control_answer_ok (c, tag);
        return;
      }
  td__control_answer_error (c, tag, "level: graph, stats or values expected");
}

/* It holds from the next call of a static function on: a call that runs is not changed. */
static void
command_static (TdControl *c, const char *tag, const char *text)
{
  if (strcmp (text, "verify") == 0)
    td__control_answer_number (
        c, tag, "chains", td__engine.statics != NULL ? td__engine.statics->verify_next () : 0);
  else if (strcmp (text, "off") == 0 || strcmp (text, "as-is") == 0)
    {
      td_config_set (use_static_graph, text[0] == 'a');
      td__control_answer_ok (c, tag);
    }
  else
    td__control_answer_error (c, tag, "static: as-is, off or verify expected");
}

static void
command_read (TdControl *c, const char *tag, const char *text)
{
  td__agent_read (c->fd, tag, text);
}

static void
command_inside (TdControl *c, const char *tag, const char *text)
{
  td__agent_inside (c->fd, tag, text);
}

static const TdControlCommand commands[] = {
  { "level ", command_level },
  { "read ", command_read },
  { "static ", command_static },
  { "inside", command_inside },
  { NULL, NULL },
};

/* What the engine itself has to look at. */
static void
changed (TdControl *c)
{
  td__index_now = c->exactly;
  td__index_wait = c->on_error;
  td__engine.inside_wanted = c->needs_values;
}

static void
now (TdControl *c, TdControlPlace *place, int64_t *iteration)
{
  (void)c;
  place->path = td__engine.path != NULL ? td__engine.path->text : "";
  place->phase = td__engine.phase;
  *iteration = td__engine.iteration;
}

/* The supervisor has told all ranks, this one among them: what came of it here. */
static void
command_change (TdControl *c, const char *tag, const char *text)
{
  td__together_answer (((TdAgent *)c)->ranks, tag, strtoull (text, NULL, 10));
}

/* Breakpoints that are asked about are those of all ranks. */
static void
prepare (TdControl *c)
{
  td__together_changes (((TdAgent *)c)->ranks);
}

static TdControlOutcome
look (TdControl *c)
{
  return td__together_look (((TdAgent *)c)->ranks);
}

static const TdControlKind kind = { .commands = commands, .now = now, .changed = changed };

/* One rank of several. */
static const TdControlCommand rank_commands[] = {
  { "level ", command_level },  { "read ", command_read },        { "static ", command_static },
  { "inside", command_inside }, { TD_ALIKE_ASK, command_change }, { NULL, NULL },
};
static const TdControlKind rank_kind = {
  .commands = rank_commands, .now = now, .changed = changed, .prepare = prepare, .look = look
};

static TdControlPlace
place_of (const TdEvent *e)
{
  return (TdControlPlace){ .op = e->cls->name,
                           .path = e->path != NULL ? e->path->text : "",
                           .file = e->site != NULL ? e->site->file : NULL,
                           .line = e->site != NULL ? e->site->line : 0,
                           .phase = e->phase };
}

/* Stand here until somebody says go.  rank: that of the other that this one stops for, or NULL.
 */
static void
stand (TdAgent *a, const char *reason, const int *rank, const char *op, const TdSite *site,
       const TdBreak *by, bool after)
{
  const TdControlPlace place = { .op = op,
                                 .path = td__engine.path != NULL ? td__engine.path->text : "",
                                 .phase = td__engine.phase,
                                 .file = site != NULL ? site->file : NULL,
                                 .line = site != NULL ? site->line : 0 };
  const uint64_t failed[]
      = { a->fault != NULL ? a->fault->iteration : 0, a->fault != NULL ? a->fault->event : 0 };

  td__recorder_stopped (a->recorder, reason, site);
  if (a->ranks != NULL)
    td__together_stands (a->ranks, reason, &place, by != NULL, after);
  td__control_stops (&a->control,
                     &(TdControlStop){ .reason = reason,
                                       .rank = rank,
                                       .place = &place,
                                       .iteration = td__engine.iteration,
                                       .at = a->recorder->event,
                                       .by = by,
                                       .failed = a->fault != NULL ? failed : NULL });
  td__control_wait (&a->control, false);
  if (a->ranks != NULL)
    td__together_resumes (a->ranks);
  td__recorder_resumed (a->recorder);
  td__control_resumes (&a->control);
}

/* All ranks stand before this event, or one does and this one has come to it. */
static void
stop_with_others (TdAgent *a, const TdEvent *e)
{
  const int rank = td__together_for (a->ranks);

  snprintf (a->reason, sizeof a->reason, "%s", td__together_why (a->ranks));
  stand (a, a->reason, rank >= 0 ? &rank : NULL, e->cls->name, e->site, NULL, false);
}

TdBreakMoment
td__agent_moment (const TdEvent *e, TdControlPlace *place)
{
  TdMemInfo info = td__mem_info_whole (td__engine.device);

  if (e != NULL)
    *place = place_of (e);
  return (TdBreakMoment){ .place = e != NULL ? place : NULL,
                          .iteration = td__engine.iteration,
                          .live_bytes = info.live_bytes,
                          .pool_bytes = info.reserved_bytes };
}

void
td__agent_stop_at (TdAgent *a, TdBreak *b, const char *op, const TdSite *site, const char *what,
                   bool after)
{
  td__break_hit (b);
  snprintf (a->reason, sizeof a->reason, "%s (breakpoint %d: %s)", what, td__break_id (b),
            td__break_text (b));
  stand (a, a->reason, NULL, op, site, b, after);
}

static void
stop_at_break (TdAgent *a, TdBreak *b, const TdEvent *e, const char *what, bool after)
{
  td__agent_stop_at (a, b, e->cls->name, e->site, what, after);
}

/* Stop at the first breakpoint that holds before an operation; group: what it is fused in, or
 * NULL. */
static bool
breaks_before (TdAgent *a, const TdEvent *e, const TdEvent *group, bool cuts)
{
  TdControlPlace place;
  TdBreakMoment m;
  TdBreak *b;
  char what[200];

  if (a->control.n_breaks == 0)
    return false;
  m = td__agent_moment (e, &place);
  m.cuts = cuts;
  b = td__control_holds (&a->control, &m, false);
  if (b == NULL)
    return false;
  snprintf (what, sizeof what, "before %s%s%s%s", e->cls->name, group != NULL ? " in " : "",
            group != NULL ? group->cls->name : "",
            cuts && td__break_asked_at (b, TD_BREAK_AT_CUT)
                ? ", which runs without backprop: no gradient passes it"
                : "");
  stop_at_break (a, b, e, what, false);
  return true;
}

static void
agent_before (TdAgent *a, const TdEvent *e)
{
  const TdStaticTable *statics = td__engine.statics;
  const TdControlPlace place = place_of (e);
  TdTogetherWay way;

  td__control_take (&a->control);
  a->allocated = 0;
  if (a->ranks != NULL)
    td__together_before (a->ranks, &place);
  if (a->control.compares_graphs)
    td__agent_watch (a, e);
  if (breaks_before (a, e, NULL, td__agent_cuts (a, e)))
    return;
  for (uint32_t k = 0; statics != NULL && k < statics->n (); k++) /* each of a fused group */
    {
      const TdInsideStep step = statics->step (k);
      TdEvent member = *e;

      member.cls = step.cls;
      member.site = step.site;
      member.path = step.path;
      if (breaks_before (a, &member, e, false))
        return;
    }
  if (a->ranks != NULL && (way = td__together_wait (a->ranks)) != TD_TOGETHER_RUNS)
    {
      if (way == TD_TOGETHER_STANDS)
        stop_with_others (a, e);
      return;
    }
  if (td__control_step_ends (&a->control, &place, td__engine.iteration))
    {
      snprintf (a->reason, sizeof a->reason, "before %s", e->cls->name);
      stand (a, a->reason, NULL, e->cls->name, e->site, NULL, false);
    }
}

/* What a breakpoint looks at, of an array wherever it is; false: not to be had. */
static bool
stats_of (const TdBuffer *b, const TdNode *n, TdTapeStats *s)
{
  TdShape shape = n->shape;
  TdTensor x = { b->data, &shape, td_shape_size (&shape), (TdDtype)n->dtype };
  TdStats d;

  if (b->device->ops == &td__cpu_ops)
    td_tape_measure (b->data, n->dtype, (uint64_t)x.size, 0, s);
  else if (b->device->computes && b->device->ops->stats (b->device, &x, 1, 0, &d) == TD_OK)
    {
      s->n_nan = d.n_nan;
      s->n_pos_inf = d.n_pos_inf;
      s->n_neg_inf = d.n_neg_inf;
      s->l2 = sqrt (d.sum_squares);
    }
  else
    return false;
  return true;
}

/* NaN and infinities in what it wrote in place: an update has no other results. Its norm is
 * that of the parameter, which no one asks for who asks for that of a gradient or an output. */
static void
look_at_written (const TdEvent *e, TdBreakMoment *m)
{
  for (int i = 0; e->cls->writes != 0 && i < e->n_in; i++)
    {
      const TdNode *n = e->in[i];
      const TdBuffer *b = td__bit (e->cls->writes, i) && n->var != NULL ? n->var->buffer : NULL;
      TdTapeStats s;

      if (b == NULL || n->dtype > TD_BF16 || !stats_of (b, n, &s))
        continue;
      m->n_nan += s.n_nan;
      m->n_inf += s.n_pos_inf + s.n_neg_inf;
    }
}

/* Values of what an event made, for the breakpoints that look at them. */
static void
look_at_values (const TdEvent *e, TdBreakMoment *m)
{
  m->measured = true;
  look_at_written (e, m);
  for (int i = 0; i < e->n_out; i++)
    {
      const TdBuffer *b = e->out_buffers[i];
      TdTapeStats s;

      if (b == NULL || e->out[i]->dtype > TD_BF16 || !stats_of (b, e->out[i], &s))
        continue;
      m->n_nan += s.n_nan;
      m->n_inf += s.n_pos_inf + s.n_neg_inf;
      if (s.l2 > m->norm)
        m->norm = s.l2;
    }
}

/* Which operation of a fused group made the first NaN. */
static void
describe_nan (const TdEvent *e, unsigned long n, char *what, size_t size)
{
  const TdStaticTable *statics = td__engine.statics;
  const uint32_t first = statics != NULL ? statics->first_nan () : UINT32_MAX;

  if (first != UINT32_MAX)
    {
      const TdInsideStep step = statics->step (first);

      snprintf (what, size, "%.150s made NaN (%lu of its numbers), first in %s at %.60s:%d",
                e->cls->name, n, step.cls->name, step.site != NULL ? step.site->file : "?",
                step.site != NULL ? step.site->line : 0);
    }
  else
    snprintf (what, size, "%s made NaN (%lu of its numbers)", e->cls->name, n);
}

/* The members of a fused group, whose values the group does not write. */
typedef struct
{
  TdAgent *a;
  const TdEvent *group;
  TdBreak *holds;    /* the first that does */
  TdInsideStep step; /* on this member */
  char what[300];
} Members;

static bool
member_breaks (const TdInsideStep *step, const TdTensor *result, void *user)
{
  Members *members = user;
  TdEvent member = *members->group;
  TdControlPlace place;
  TdBreakMoment m;
  TdTapeStats s;
  char who[150];

  if (result->dtype > TD_BF16)
    return false;
  member.cls = step->cls;
  member.site = step->site;
  member.path = step->path;
  td_tape_measure (result->data, (uint8_t)result->dtype, (uint64_t)result->size, 0, &s);
  m = td__agent_moment (&member, &place);
  m.after = m.measured = true;
  m.n_nan = s.n_nan;
  m.n_inf = s.n_pos_inf + s.n_neg_inf;
  m.norm = s.l2;
  members->holds = td__control_holds (&members->a->control, &m, true);
  if (members->holds == NULL)
    return false;
  members->step = *step;
  snprintf (who, sizeof who, "%.60s in %.80s", step->cls->name, members->group->cls->name);
  td__control_describe (members->holds, &m, who, members->what, sizeof members->what);
  return true;
}

/* Running the members takes as long as the group and more: only where what else a breakpoint
 * asks, iteration and operation and line, holds for one of them. */
static bool
may_break_inside (const TdAgent *a, const TdEvent *group)
{
  const TdStaticTable *statics = td__engine.statics;

  for (uint32_t k = 0; statics != NULL && k < statics->n (); k++)
    {
      const TdInsideStep step = statics->step (k);
      TdEvent member = *group;
      TdControlPlace place;
      TdBreakMoment m;

      member.cls = step.cls;
      member.site = step.site;
      member.path = step.path;
      m = td__agent_moment (&member, &place);
      if (td__control_may_hold (&a->control, &m))
        return true;
    }
  return false;
}

static void
breaks_inside (TdAgent *a, const TdEvent *group)
{
  Members members = { .a = a, .group = group };
  TdEvent member = *group;

  if (!may_break_inside (a, group) || !td__engine.statics->each (member_breaks, &members))
    return;
  member.cls = members.step.cls;
  member.site = members.step.site;
  member.path = members.step.path;
  stop_at_break (a, members.holds, &member, members.what, true);
}

/* What it allocated for its outputs, and meanwhile. */
static uint64_t
allocated_by (const TdAgent *a, const TdEvent *e)
{
  const bool shares = (e->cls->flags & TD_OP_VIEW) || (e->flags & TD_EVENT_ACCUMULATE);
  uint64_t bytes = a->allocated;

  for (int i = shares ? 1 : 0; i < e->n_out && !(e->flags & TD_EVENT_REPLAYED); i++)
    bytes += e->out_buffers[i] != NULL ? e->out_buffers[i]->block->bytes : 0;
  return bytes;
}

static void
agent_after (TdAgent *a, const TdEvent *e)
{
  TdControlPlace place;
  TdBreakMoment m;
  TdBreak *b;
  char what[300];

  if (!a->control.needs_after || (e->flags & TD_EVENT_FAILED) || (e->order & TD_ORDER_APART))
    return; /* a change of layout makes no numbers */
  m = td__agent_moment (e, &place);
  m.after = true;
  m.allocated_bytes = allocated_by (a, e);
  if (a->control.needs_values)
    look_at_values (e, &m);
  b = td__control_holds (&a->control, &m, true);
  if (b == NULL)
    {
      if (a->control.needs_values)
        breaks_inside (a, e);
      return;
    }
  if (m.n_nan > 0 && td__break_needs_values (b))
    describe_nan (e, (unsigned long)m.n_nan, what, sizeof what);
  else
    td__control_describe (b, &m, e->cls->name, what, sizeof what);
  stop_at_break (a, b, e, what, true);
}

static void
agent_iteration (TdAgent *a, int64_t number)
{
  a->cuts = false;
  a->statics.n = a->statics.depth = 0;
  a->statics.last_node = 0;
  if (a->control.compares_graphs)
    td__graph_watch_begin (&a->graphs, number);
  else
    td__graph_watch_clear (&a->graphs);
  changed (&a->control);
}

/* Where the program stands, when that is not where the error is. */
static const char *
async_reason (TdAgent *a, const TdError *error, const TdAsyncFault *fault)
{
  char iteration[40] = "";

  if (fault->at.iteration != a->recorder->now->iteration)
    snprintf (iteration, sizeof iteration, " of iteration %lu",
              (unsigned long)fault->at.iteration);
  snprintf (a->reason, sizeof a->reason, "%.380s; stopped %s, the error is at event %lu%s",
            error->message, fault->at_end ? "after the iteration" : "where it was found",
            (unsigned long)fault->at.event, iteration);
  return a->reason;
}

static void
agent_error (TdAgent *a, const TdError *error, const TdAsyncFault *fault)
{
  const char *reason = error->message;
  TdBreakMoment m = td__agent_moment (NULL, NULL);
  TdBreak *b;

  if (a->ranks != NULL)
    td__together_news (a->ranks);
  b = td__control_fails (&a->control, &m);
  if (b == NULL)
    return;
  if (fault != NULL)
    reason = async_reason (a, error, fault);
  a->fault = fault != NULL ? &fault->at : NULL;
  td__break_hit (b);
  stand (a, reason, NULL, error->op, error->site, b, true);
  a->fault = NULL;
}

static void
agent_free (TdAgent *a)
{
  td__control_end (&a->control);
  td__together_free (a->ranks);
  td__graph_watch_clear (&a->graphs);
  free (a->statics.items);
  free (a);
}

static const TdAgentTable calls = { .before = agent_before,
                                    .after = agent_after,
                                    .iteration = agent_iteration,
                                    .ends = td__agent_ends,
                                    .guard = td__agent_guard,
                                    .run = td__agent_run,
                                    .cut = td__agent_cut,
                                    .error = agent_error,
                                    .free = agent_free };

TdAgent *
td__agent_new (TdRecorder *recorder, int fd, const char *breaks, const char *pause)
{
  TdAgent *a = td__xcalloc (1, sizeof *a);

  a->calls = &calls;
  a->recorder = recorder;
  a->ended = -1;
  a->ranks = td__together_new (a);
  td__control_begin (
      &a->control, a->ranks != NULL ? &rank_kind : &kind,
      (TdControlPage *)(void *)((char *)recorder->ring->shared + TD_CONTROL_OFFSET), fd,
      breaks);
  if (pause != NULL)
    td__control_pause (&a->control, strtoll (pause, NULL, 10));
  return a;
}
