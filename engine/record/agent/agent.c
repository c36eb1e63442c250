/* The model's side of control: see agent.h and PROTOCOL.md.
 *
 * SPDX-License-Identifier: MIT */
#include "agent.h"
#include "host-memory.h"

#include "compute/core/inside.h"
#include "compute/core/async-index.h"
#include "../recorder.h"
#include "../stats.h"
#include "json-line.h"
#include "read.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum
{
  MESSAGE_MAX = 4096,
  /* of texts in messages, escaped: all that is told of a stop fits a line */
  MAX_BREAK = 600,
  MAX_REASON = 1100,
  MAX_WHERE = 500,
  MAX_OP = 200
};

static void
send_text (TdAgent *a, const char *text)
{
  (void)!send (a->fd, text, strlen (text), MSG_NOSIGNAL);
}

/* "#TAG {...}": an answer to the command that came with that tag. */
static void
answer_ok (TdAgent *a, const char *tag)
{
  TdJsonLine line;

  send_text (a, td__json_line_ok (&line, tag));
}

/* The same with a number. */
static void
answer_number (TdAgent *a, const char *tag, const char *key, int number)
{
  TdJsonLine line;
  TdJsonWriter *json = td__json_line_begin (&line, tag);

  td__json_member_bool (json, "ok", true);
  td__json_member_int (json, key, number);
  send_text (a, td__json_line_end (&line));
}

static void
answer_error (TdAgent *a, const char *tag, const char *error)
{
  TdJsonLine line;

  send_text (a, td__json_line_error (&line, tag, error));
}

static void
look_again (TdAgent *a)
{
  a->alert = a->step != TD_STEP_NONE || a->stop_next;
  a->needs_stats = false;
  td__index_now = td__index_wait = false;
  for (int i = 0; i < a->n_breaks; i++)
    {
      const TdBreak *b = a->breaks[i];

      if (!td__break_enabled (b))
        continue;
      a->needs_stats = a->needs_stats || td__break_needs_values (b);
      a->alert = a->alert || !td__break_errors_only (b);
      td__index_now = td__index_now || td__break_exactly (b);
      td__index_wait = td__index_wait || td__break_on_error (b);
    }
  td__engine.inside_wanted = a->needs_stats;
}

static int
add_break (TdAgent *a, const char *text, int id, char *error, size_t size)
{
  TdBreak *b = td__break_parse (text, error, size);
  TdBreak **more;

  if (b == NULL)
    return -1;
  more = td__xrealloc (a->breaks, (size_t)(a->n_breaks + 1) * sizeof (TdBreak *));
  a->breaks = more;
  td__break_set_id (b, id > 0 ? id : a->next_break_id);
  if (td__break_id (b) >= a->next_break_id)
    a->next_break_id = td__break_id (b) + 1;
  a->breaks[a->n_breaks++] = b;
  look_again (a);
  return td__break_id (b);
}

static int
find_break (const TdAgent *a, int id)
{
  for (int i = 0; i < a->n_breaks; i++)
    if (td__break_id (a->breaks[i]) == id)
      return i;
  return -1;
}

static bool
remove_break (TdAgent *a, int id)
{
  const int i = find_break (a, id);

  if (i < 0)
    return false;
  td__break_free (a->breaks[i]);
  memmove (&a->breaks[i], &a->breaks[i + 1], (size_t)(--a->n_breaks - i) * sizeof (TdBreak *));
  look_again (a);
  return true;
}

/* Commands that only set how far the program runs. */
static const struct
{
  const char *text;
  TdStepKind step;
} motions[] = {
  { "pause", TD_STEP_OP },
  { "continue", TD_STEP_NONE },
  { "step-op", TD_STEP_OP },
  { "step-into", TD_STEP_OP },
  { "step-over", TD_STEP_OVER },
  { "step-out", TD_STEP_OUT },
  { "next-iteration", TD_STEP_ITERATION },
  { "run-to loss", TD_STEP_BACKWARD },
  { "run-to backward", TD_STEP_BACKWARD },
  { "run-to update", TD_STEP_UPDATE },
};

/* What one command did: whether a stopped program goes on. */
typedef enum
{
  STAY,
  GO,
  GONE
} Outcome;

static Outcome
command_break (TdAgent *a, const char *tag, const char *text)
{
  char error[256];
  int id = add_break (a, text, 0, error, sizeof error);

  if (id < 0)
    answer_error (a, tag, error);
  else
    answer_number (a, tag, "id", id);
  return STAY;
}

static Outcome
command_level (TdAgent *a, const char *tag, const char *text)
{
  for (uint32_t level = TD_TAPE_LEVEL_GRAPH; level <= TD_TAPE_LEVEL_VALUES; level++)
    if (strcmp (text, td_tape_level_name (level)) == 0)
      {
        a->recorder->level = level;
        answer_ok (a, tag);
        return STAY;
      }
  answer_error (a, tag, "level: graph, stats or values expected");
  return STAY;
}

/* It holds from the next call of a static function on: a call that runs is not changed. */
static Outcome
command_static (TdAgent *a, const char *tag, const char *text)
{
  if (strcmp (text, "verify") == 0)
    answer_number (a, tag, "chains",
                   td__engine.statics != NULL ? td__engine.statics->verify_next () : 0);
  else if (strcmp (text, "off") == 0 || strcmp (text, "as-is") == 0)
    {
      td_config_set (use_static_graph, text[0] == 'a');
      answer_ok (a, tag);
    }
  else
    answer_error (a, tag, "static: as-is, off or verify expected");
  return STAY;
}

static Outcome
command_read (TdAgent *a, const char *tag, const char *text)
{
  td__agent_read (a->fd, tag, text);
  return STAY;
}

static Outcome
command_inside (TdAgent *a, const char *tag, const char *text)
{
  td__agent_inside (a->fd, tag, text);
  return STAY;
}

static Outcome
command_unbreak (TdAgent *a, const char *tag, const char *text)
{
  if (remove_break (a, (int)strtol (text, NULL, 10)))
    answer_ok (a, tag);
  else
    answer_error (a, tag, "unbreak: no such breakpoint");
  return STAY;
}

/* ID on, ID off, or ID EXPR: what it asks from now on. */
static Outcome
command_rebreak (TdAgent *a, const char *tag, const char *text)
{
  char *rest, error[256];
  const int i = find_break (a, (int)strtol (text, &rest, 10));
  TdBreak *b;

  while (*rest == ' ')
    rest++;
  if (i < 0)
    answer_error (a, tag, "rebreak: no such breakpoint");
  else if (strcmp (rest, "on") == 0 || strcmp (rest, "off") == 0)
    {
      td__break_enable (a->breaks[i], rest[1] == 'n');
      look_again (a);
      answer_ok (a, tag);
    }
  else if ((b = td__break_parse (rest, error, sizeof error)) == NULL)
    answer_error (a, tag, error); /* the old one stays */
  else
    {
      td__break_take_over (b, a->breaks[i]);
      td__break_free (a->breaks[i]);
      a->breaks[i] = b;
      look_again (a);
      answer_ok (a, tag);
    }
  return STAY;
}

static Outcome
command_breaks (TdAgent *a, const char *tag, const char *text)
{
  TdJsonLine line;
  TdJsonWriter *json = td__json_line_begin (&line, tag);

  (void)text;
  td__json_member_bool (json, "ok", true);
  td__json_key (json, "breaks");
  td__json_begin_array (json);
  for (int i = 0; i < a->n_breaks && td__json_line_room (&line) > MAX_BREAK + 100; i++)
    {
      td__json_begin_object (json);
      td__json_member_int (json, "id", td__break_id (a->breaks[i]));
      td__json_key (json, "text");
      td__json_cut_string (json, td__break_text (a->breaks[i]), MAX_BREAK);
      td__json_member_bool (json, "enabled", td__break_enabled (a->breaks[i]));
      td__json_member_int (json, "hits", (int64_t)td__break_hits (a->breaks[i]));
      td__json_end_object (json);
    }
  td__json_end_array (json);
  send_text (a, td__json_line_end (&line));
  return STAY;
}

static const struct
{
  const char *word;
  Outcome (*run) (TdAgent *a, const char *tag, const char *rest);
} commands[] = {
  { "break ", command_break },   { "unbreak ", command_unbreak },
  { "breaks", command_breaks },  { "rebreak ", command_rebreak },
  { "level ", command_level },   { "read ", command_read },
  { "static ", command_static }, { "inside", command_inside },
};

static Outcome
run_command (TdAgent *a, const char *tag, const char *text)
{
  for (int i = 0; i < TD_ARRAY_LENGTH (motions); i++)
    if (strcmp (text, motions[i].text) == 0)
      {
        a->step = motions[i].step;
        a->step_path = td__engine.path;
        a->step_iteration = td__engine.iteration;
        a->step_phase = td__engine.phase;
        look_again (a);
        answer_ok (a, tag);
        return strcmp (text, "pause") == 0 ? STAY : GO;
      }
  for (int i = 0; i < TD_ARRAY_LENGTH (commands); i++)
    {
      size_t n = strlen (commands[i].word);

      if (strncmp (text, commands[i].word, n) == 0)
        return commands[i].run (a, tag, text + n);
    }
  answer_error (a, tag, "no such command");
  return STAY;
}

/* Read one message.  `block`: wait for it. */
static Outcome
take_message (TdAgent *a, bool block, bool *any)
{
  char text[MESSAGE_MAX];
  ssize_t n;
  char *space;

  *any = false;
  do
    n = recv (a->fd, text, sizeof text - 1, block ? 0 : MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return STAY;
  if (n <= 0)
    return GONE;
  *any = true;
  text[n] = '\0';
  space = strchr (text, ' ');
  if (text[0] != '#' || space == NULL)
    return STAY;
  *space = '\0';
  return run_command (a, text, space + 1);
}

/* The supervisor is gone: run on, without control. */
static void
lose (TdAgent *a)
{
  while (a->n_breaks > 0)
    remove_break (a, td__break_id (a->breaks[0]));
  a->step = TD_STEP_NONE;
  a->stop_next = false;
  look_again (a);
}

static void
report_stopped (TdAgent *a, const char *reason, const char *op, const TdSite *site,
                int break_id)
{
  const TdEventPlace *fault = a->fault;
  TdJsonLine line;
  TdJsonWriter *json = td__json_line_begin (&line, "!");
  char where[400];

  snprintf (where, sizeof where, "%.300s:%d", site != NULL ? site->file : "?",
            site != NULL ? site->line : 0);
  td__json_member_string (json, "event", "stopped");
  td__json_key (json, "reason");
  td__json_cut_string (json, reason, MAX_REASON);
  td__json_key (json, "where");
  td__json_cut_string (json, where, MAX_WHERE);
  td__json_key (json, "op");
  td__json_cut_string (json, op, MAX_OP);
  td__json_member_int (json, "iteration", td__engine.iteration);
  td__json_member_uint (json, "at", a->recorder->event);
  td__json_member_int (json, "break", break_id);
  if (fault != NULL)
    {
      td__json_key (json, "failed");
      td__json_begin_object (json);
      td__json_member_uint (json, "iteration", fault->iteration);
      td__json_member_uint (json, "event", fault->event);
      td__json_end_object (json);
    }
  /* What was printed is seen while the program stands, and not lost if it ends here. */
  fflush (stdout);
  send_text (a, td__json_line_end (&line));
}

/* Stand here until somebody says go. */
static void
stop (TdAgent *a, const char *reason, const char *op, const TdSite *site, int break_id)
{
  TdJsonLine resumed;
  Outcome outcome = STAY;
  bool any;

  a->step = TD_STEP_NONE;
  a->stop_next = false;
  look_again (a);
  td__recorder_stopped (a->recorder, reason, site);
  atomic_store (&a->page->stopped, 1);
  report_stopped (a, reason, op, site, break_id);
  while (outcome == STAY)
    outcome = take_message (a, true, &any);
  atomic_store (&a->page->stopped, 0);
  if (outcome == GONE)
    lose (a);
  td__recorder_resumed (a->recorder);
  td__json_member_string (td__json_line_begin (&resumed, "!"), "event", "resumed");
  send_text (a, td__json_line_end (&resumed));
}

/* Is `path` the layer `layer`, or inside it?  NULL is the outermost layer: everything is
 * inside. */
static bool
within (const TdPath *path, const char *layer, size_t n)
{
  const char *text = path != NULL ? path->text : "";

  return strncmp (text, layer, n) == 0 && (n == 0 || text[n] == '\0' || text[n] == '/');
}

static bool
step_ends (const TdAgent *a, const TdEvent *e)
{
  const char *layer = a->step_path != NULL ? a->step_path->text : "";
  const char *slash = strrchr (layer, '/');
  size_t n = strlen (layer);

  switch (a->step)
    {
    case TD_STEP_OP:
      return true;
    case TD_STEP_OVER: /* in no layer there is nothing to step over: the next event */
      return n == 0 || !within (e->path, layer, n) || e->phase != a->step_phase;
    case TD_STEP_OUT:
      return !within (e->path, layer, slash != NULL ? (size_t)(slash - layer) : n)
             || (slash == NULL && n == 0) || e->phase != a->step_phase;
    case TD_STEP_ITERATION:
      return td__engine.iteration > a->step_iteration;
    case TD_STEP_BACKWARD:
    case TD_STEP_UPDATE: /* from inside the phase: that of the next iteration */
      return e->phase == (a->step == TD_STEP_UPDATE ? TD_PHASE_UPDATE : TD_PHASE_BACKWARD)
             && (a->step_phase < e->phase || td__engine.iteration > a->step_iteration);
    case TD_STEP_NONE:
    default:
      return false;
    }
}

static TdBreakMoment
moment_of (const TdEvent *e)
{
  TdMemInfo info = td_mem_info (td__engine.device);

  return (TdBreakMoment){ .event = e,
                          .iteration = td__engine.iteration,
                          .live_bytes = info.live_bytes };
}

static void
stop_at_break (TdAgent *a, TdBreak *b, const TdEvent *e, const char *what)
{
  td__break_hit (b);
  snprintf (a->reason, sizeof a->reason, "%s (breakpoint %d: %s)", what, td__break_id (b),
            td__break_text (b));
  stop (a, a->reason, e != NULL ? e->cls->name : "", e != NULL ? e->site : td__engine.site,
        td__break_id (b));
}

/* Stop at the first breakpoint that holds before an operation; group: what it is fused in, or
 * NULL. */
static bool
breaks_before (TdAgent *a, const TdEvent *e, const TdEvent *group)
{
  for (int i = 0; i < a->n_breaks; i++)
    {
      TdBreakMoment m;
      char what[200];

      if (td__break_needs_values (a->breaks[i]))
        continue;
      m = moment_of (e);
      if (!td__break_holds (a->breaks[i], &m))
        continue;
      snprintf (what, sizeof what, "before %s%s%s", e->cls->name, group != NULL ? " in " : "",
                group != NULL ? group->cls->name : "");
      stop_at_break (a, a->breaks[i], e, what);
      return true;
    }
  return false;
}

static void
agent_before (TdAgent *a, const TdEvent *e)
{
  const TdStaticTable *statics = td__engine.statics;
  Outcome outcome = STAY;
  bool any = true;

  if (atomic_exchange (&a->page->attention, 0) != 0)
    while (any && outcome != GONE)
      outcome = take_message (a, false, &any);
  if (outcome == GONE)
    lose (a);
  if (breaks_before (a, e, NULL))
    return;
  for (uint32_t k = 0; statics != NULL && k < statics->n (); k++) /* each of a fused group */
    {
      const TdInsideStep step = statics->step (k);
      TdEvent member = *e;

      member.cls = step.cls;
      member.site = step.site;
      member.path = step.path;
      if (breaks_before (a, &member, e))
        return;
    }
  if (a->stop_next || (a->step != TD_STEP_NONE && step_ends (a, e)))
    {
      snprintf (a->reason, sizeof a->reason, "before %s", e->cls->name);
      stop (a, a->reason, e->cls->name, e->site, 0);
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
    td_stats_compute (b->data, n->dtype, (uint64_t)x.size, 0, s);
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

/* Values of the outputs, for the breakpoints that look at them. */
static void
look_at_values (const TdEvent *e, TdBreakMoment *m)
{
  m->after = true;
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

/* What a value breakpoint says: "log made NaN (4 of its numbers)". */
static void
describe_values (const TdBreakMoment *m, const char *who, char *what, size_t size)
{
  if (m->n_nan > 0)
    snprintf (what, size, "%.150s made NaN (%lu of its numbers)", who, (unsigned long)m->n_nan);
  else if (m->n_inf > 0)
    snprintf (what, size, "%.150s made Inf (%lu of its numbers)", who, (unsigned long)m->n_inf);
  else
    snprintf (what, size, "%.150s made a norm of %g", who, m->norm);
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
  const TdAgent *a = members->a;
  TdEvent member = *members->group;
  TdBreakMoment m;
  TdTapeStats s;
  char who[150];

  if (result->dtype > TD_BF16)
    return false;
  member.cls = step->cls;
  member.site = step->site;
  member.path = step->path;
  td_stats_compute (result->data, (uint8_t)result->dtype, (uint64_t)result->size, 0, &s);
  m = moment_of (&member);
  m.after = true;
  m.n_nan = s.n_nan;
  m.n_inf = s.n_pos_inf + s.n_neg_inf;
  m.norm = s.l2;
  for (int i = 0; i < a->n_breaks; i++)
    if (td__break_needs_values (a->breaks[i]) && td__break_holds (a->breaks[i], &m))
      {
        members->holds = a->breaks[i];
        members->step = *step;
        snprintf (who, sizeof who, "%.60s in %.80s", step->cls->name,
                  members->group->cls->name);
        describe_values (&m, who, members->what, sizeof members->what);
        return true;
      }
  return false;
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
      TdBreakMoment m;

      member.cls = step.cls;
      member.site = step.site;
      member.path = step.path;
      m = moment_of (&member);
      for (int i = 0; i < a->n_breaks; i++)
        if (td__break_needs_values (a->breaks[i]) && td__break_may_hold (a->breaks[i], &m))
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
  stop_at_break (a, members.holds, &member, members.what);
}

static void
agent_after (TdAgent *a, const TdEvent *e)
{
  TdBreakMoment m;
  char what[300];

  if (!a->needs_stats || (e->flags & TD_EVENT_FAILED) || (e->order & TD_ORDER_APART))
    return; /* a change of layout makes no numbers */
  m = moment_of (e);
  look_at_values (e, &m);
  for (int i = 0; i < a->n_breaks; i++)
    {
      if (!td__break_needs_values (a->breaks[i]) || !td__break_holds (a->breaks[i], &m))
        continue;
      if (m.n_nan > 0)
        describe_nan (e, (unsigned long)m.n_nan, what, sizeof what);
      else
        describe_values (&m, e->cls->name, what, sizeof what);
      stop_at_break (a, a->breaks[i], e, what);
      return;
    }
  breaks_inside (a, e);
}

static void
agent_iteration (TdAgent *a, int64_t number)
{
  (void)number;
  /* Breakpoints on an iteration hold at its first event; the flag makes events look. */
  look_again (a);
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
  TdBreakMoment m = moment_of (NULL);

  m.error = error;
  for (int i = 0; i < a->n_breaks; i++)
    if (td__break_holds (a->breaks[i], &m))
      {
        if (fault != NULL)
          reason = async_reason (a, error, fault);
        a->fault = fault != NULL ? &fault->at : NULL;
        td__break_hit (a->breaks[i]);
        stop (a, reason, error->op, error->site, td__break_id (a->breaks[i]));
        a->fault = NULL;
        return;
      }
}

static void
agent_free (TdAgent *a)
{
  for (int i = 0; i < a->n_breaks; i++)
    td__break_free (a->breaks[i]);
  free (a->breaks);
  close (a->fd);
  free (a);
}

static const TdAgentTable calls = { .before = agent_before,
                                    .after = agent_after,
                                    .iteration = agent_iteration,
                                    .error = agent_error,
                                    .free = agent_free };

TdAgent *
td__agent_new (TdRecorder *recorder, int fd, const char *breaks)
{
  TdAgent *a = td__xcalloc (1, sizeof *a);
  char error[256], line[MESSAGE_MAX];

  a->calls = &calls;
  a->recorder = recorder;
  a->fd = fd;
  a->next_break_id = 1;
  a->page = (TdControlPage *)(void *)((char *)recorder->ring->shared + TD_CONTROL_OFFSET);
  while (breaks != NULL && *breaks != '\0')
    {
      size_t n = strcspn (breaks, "\n");

      snprintf (line, sizeof line, "%.*s", (int)n, breaks);
      if (n > 0 && add_break (a, line, 0, error, sizeof error) < 0)
        fprintf (stderr, "tapedeck: %s\n", error);
      breaks += n + (breaks[n] == '\n');
    }
  look_again (a);
  return a;
}
