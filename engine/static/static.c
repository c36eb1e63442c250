/* Static functions: which of code and schedule a call runs.  The schedules lie in cache.c.
 *
 * SPDX-License-Identifier: MIT */
#include "notify.h"
#include "host-memory.h"
#include "plural.h"
#include "static.h"
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TdStatic *all;
static TdStatic *traced; /* whose code runs and is traced */
static unsigned n_made;

/* --- what is said --- */

void
td__static_say (const TdStatic *s, int level, const char *format, ...)
{
  va_list args;

  if (s->options.verbosity_level < level)
    return;
  fprintf (stderr, "tapedeck: static function %s: ", s->name);
  va_start (args, format);
  vfprintf (stderr, format, args);
  va_end (args);
  fputc ('\n', stderr);
}

static const char *
site_text (const TdSite *site, char *text, size_t size)
{
  if (site == NULL)
    snprintf (text, size, "?");
  else
    snprintf (text, size, "%s:%d", site->file, site->line);
  return text;
}

/* Keep the last miss, and one line on it. */
void
td__static_remember (TdStatic *s, const TdMiss *miss, const TdSite *call)
{
  char place[300];

  s->miss = *miss;
  s->miss.site = miss->site != NULL ? miss->site : call;
  snprintf (s->miss_text, sizeof s->miss_text, "%s: %s (%s)", miss->guard, miss->text,
            site_text (s->miss.site, place, sizeof place));
}

/* --- tracing --- */

/* What outputs the graph's operation has, and which externals a backward reads. */
static void
entry_index (TdEntry *e)
{
  const TdSchedule *s = e->schedule;
  uint32_t n = 0;

  free (e->op_out);
  free (e->reads);
  free (e->reads_out);
  e->op_out = td__xcalloc (s->n_outputs + 1, sizeof *e->op_out);
  e->reads = td__xcalloc (s->n_externals + 1, sizeof *e->reads);
  e->reads_out = td__xcalloc (s->n_outputs + 1, sizeof *e->reads_out);
  for (uint32_t k = 0; k < s->n_outputs; k++)
    {
      const TdOutput *o = &s->outputs[k];
      bool ours = o->same_as == TD_ABSENT && o->external == TD_ABSENT
                  && s->nodes[o->node].requires_grad;

      e->op_out[k] = ours ? n++ : TD_ABSENT;
    }
  for (uint32_t b = 0; b < s->n_backwards; b++)
    for (uint32_t i = 0; i < s->backwards[b].list.n; i++)
      for (uint32_t k = 0; k < s->backwards[b].list.steps[i].n_in; k++)
        {
          const TdValue *v
              = td__node_value (s, td__step_in (s, &s->backwards[b].list.steps[i], k));

          if (v->kind == TD_VALUE_EXTERNAL)
            e->reads[v->index] = true;
          else if (v->kind == TD_VALUE_OUTPUT)
            e->reads_out[v->index] = TD_READ_BY_BACKWARD;
        }
  for (uint32_t k = 0; k < s->n_outputs; k++)
    if (e->reads_out[k] == TD_READ_BY_NONE
        && td__schedule_retains (s, s->nodes[s->outputs[k].node].value))
      e->reads_out[k] = TD_READ_BY_CODE;
}

static bool
has_graph (const TdSchedule *s)
{
  for (uint32_t k = 0; k < s->n_outputs; k++)
    if (s->outputs[k].same_as == TD_ABSENT && s->outputs[k].external == TD_ABSENT
        && s->nodes[s->outputs[k].node].requires_grad)
      return true;
  return false;
}

void
td__static_count_code (TdStatic *s)
{
  s->info.n_dynamic++;
  td__static_notify (s, TD_STATIC_EVENT_CODE, NULL, NULL, NULL);
}

/* Run the code in a scope of its own, and hand its results out.  In a verification it is one of
 * two, and the call counts as what is handed out then. */
TdStatus
td__static_run_code (TdStatic *s, TdVar *const *in, int n_in, TdVar **out, int n_out,
                     const TdSite *site, TdStaticRunKind kind)
{
  TdEngine *e = &td__engine;
  const TdSite *outer_site = e->site;
  TdScope *scope;

  td__static_notify_run (TD_RUN_BEGINS, kind, s->number, 0, 0);
  scope = td_scope_open_at (s->name, site);

  for (int k = 0; k < n_out; k++)
    out[k] = NULL;
  e->site = site; /* of what has no line of its own: the operations of a link that is marked */
  s->fn (s->self, in, n_in, out, n_out);
  e->site = outer_site;
  for (int k = 0; k < n_out; k++)
    if (out[k] == NULL)
      {
        td__fail (TD_ERR_STATE, s->name, site, "output %d was not set by the function's code",
                  k);
        out[k] = td__poison ();
      }
  for (int k = 0; k < n_out; k++)
    td_scope_yield (out[k]);
  td_scope_close (scope);
  td__static_notify_run (TD_RUN_ENDS, kind, s->number, 0, 0);
  if (kind != TD_RUN_VERIFICATION)
    td__static_count_code (s);
  for (int k = 0; k < n_out; k++)
    if (td_poisoned (out[k]))
      return e->has_error ? e->error.status : TD_ERR_STATE;
  return TD_OK;
}

static void
refused (TdStatic *s, const TdTrace *t, const TdSite *site)
{
  TdMiss miss = { "trace", "", t->refused_site };

  s->info.state = TD_STATIC_OFF;
  snprintf (miss.text, sizeof miss.text, "%s", t->refused);
  td__static_remember (s, &miss, site);
  td__static_notify (s, TD_STATIC_EVENT_REFUSED, NULL, &s->miss, NULL);
  if (s->n_refusals++ == 0)
    td__static_say (s, 0, "runs dynamically: %s", s->miss_text);
}

TdTrace *
td__static_trace (TdStatic *s, TdVar *const *in, int n_in, TdVar **out, int n_out,
                  const TdSite *site, TdTraceFor what, TdStatus *status)
{
  static const TdStaticRunKind runs[]
      = { TD_RUN_TRACED, TD_RUN_VERIFICATION, TD_RUN_VERIFICATION, TD_RUN_CODE };
  TdEngine *e = &td__engine;
  TdGuards *guards = td__guards_new (in, n_in);
  TdTrace *t;

  for (uint32_t k = 0; k < s->n_watches; k++)
    td__guards_watch (guards, s->watches[k].name, s->watches[k].site, s->watches[k].memory,
                      s->watches[k].bytes);
  t = td__trace_begin (in, n_in, guards);
  t->keeps = what == TD_TRACE_FOR_NUMBERS;
  t->function = what == TD_TRACE_FOR_ENTRY ? s->number : 0;
  t->call_site = site;
  traced = s;
  *status = td__static_run_code (s, in, n_in, out, n_out, site, runs[what]);
  traced = NULL;
  td__trace_finish (t, out, n_out);
  if (*status == TD_OK && e->state_generation != guards->state_generation)
    snprintf (t->refused, sizeof t->refused,
              "keeps the state of a recurrent link from call to call: take "
              "td_stateless_lstm_new or td_stateless_gru_new, whose state is an argument and a "
              "result of the function");
  if (*status == TD_OK && e->has_error)
    snprintf (t->refused, sizeof t->refused, "an operation in it failed: %.140s",
              e->error.message);
  if (*status == TD_OK && t->refused[0] == '\0')
    {
      td__guards_settle (guards);
      return t;
    }
  if (*status == TD_OK)
    refused (s, t, site);
  td__static_untrace (t);
  return NULL;
}

void
td__static_untrace (TdTrace *t)
{
  td__guards_free (t->guards);
  td__schedule_free (t->schedule);
  td__trace_free (t);
}

/* What the code reaches by another way than as argument is that variable in one trace, and the
 * argument in another: two that are the same step by step show that it does not.  The earlier
 * one may have a backward already, with nodes and variables of its own behind those. */
static void
learn_arguments (const TdStatic *s, TdTrace *t)
{
  TdMiss other = { NULL, "", NULL };

  for (const TdEntry *e = s->entries; e != NULL; e = e->next)
    if (e->schedule->n_externals >= t->schedule->n_externals
        && e->schedule->n_nodes >= t->schedule->n_nodes
        && e->schedule->n_outputs == t->schedule->n_outputs
        && e->guards->n_arguments == t->guards->n_arguments
        && td__check_traces (e->schedule, t->schedule, &other))
      td__guards_learn (t->guards, e->guards);
}

/* The engine's backwards read what they are given; a program's own may read C variables. */
static bool
has_own_backward (const TdStep *step)
{
  bool engine = false;

  if (step->kind != TD_STEP_OP || !step->graph)
    return false;
  for (int k = 0; k < td_op_class_count () && !engine; k++)
    engine = td_op_class_at (k) == step->cls;
  return !engine || (step->cls->flags & TD_OP_CAPTURES) != 0;
}

void
td__static_install (TdStatic *s, TdTrace *t)
{
  TdEntry *entry = td__xcalloc (1, sizeof *entry);
  char place[300];

  if (s->miss.guard != NULL && strcmp (s->miss.guard, "argument identity") == 0)
    learn_arguments (s, t);
  entry->refs = 1;
  entry->owner = s;
  entry->function = s->number;
  t->function = s->number; /* of a verification's trace too, from here on */
  td__trace_keep_no_more (t);
  entry->schedule = t->schedule;
  entry->guards = t->guards;
  entry->iteration = td__engine.iteration;
  entry->last_use = s->info.n_calls;
  entry->verify_at = 2;
  entry->keeps_graph = has_graph (t->schedule);
  entry->reads_state = entry->keeps_graph && td__state_is_read (t->schedule);
  entry->double_backprop = s->options.enable_double_backprop;
  entry_index (entry);
  for (uint32_t k = 0; k < t->schedule->forward.n; k++)
    {
      entry->reads_host |= t->schedule->forward.steps[k].kind == TD_STEP_HOST_READ;
      entry->own_backward |= has_own_backward (&t->schedule->forward.steps[k]);
    }
  t->guards = NULL;
  if (entry->keeps_graph)
    {
      entry->trace = t;
      td__trace_wait (t);
    }
  else
    td__trace_free (t);
  td__cache_make_room (s, entry);
  td__cache_drop_dead (s);
  entry->next = s->entries;
  s->entries = entry;
  s->n_entries++;
  s->n_unverified = 0;
  s->info.n_traces++;
  s->info.state = TD_STATIC_TRACING;
  s->info.n_steps = entry->schedule->forward.n_events;
  td__static_notify (s, TD_STATIC_EVENT_TRACED, entry, NULL, NULL);
  for (uint32_t k = 0; k < entry->guards->n_watches; k++)
    if (entry->guards->watches[k].n_changed > 0)
      td__static_say (
          s, 1, "its code sets %zu bytes of %s, which a replay does not: td_static_code does",
          entry->guards->watches[k].n_changed, entry->guards->watches[k].name);
  for (uint32_t k = 0; k < entry->schedule->forward.n; k++)
    if (entry->schedule->forward.steps[k].kind == TD_STEP_HOST_READ)
      td__static_say (s, 1, "its code reads numbers at %s, which become a guard",
                      site_text (entry->schedule->forward.steps[k].site, place, sizeof place));
  td__static_say (
      s, 1, "traced %u %s on %u %s from outside; %u %s", entry->schedule->forward.n_events,
      td_plural (entry->schedule->forward.n_events, "operation", "operations"),
      entry->schedule->n_externals,
      td_plural (entry->schedule->n_externals, "variable", "variables"),
      entry->schedule->n_values, td_plural (entry->schedule->n_values, "value", "values"));
}

/* Run the code and write a schedule beside. */
static TdStatus
trace_call (TdStatic *s, TdVar *const *in, int n_in, TdVar **out, int n_out, const TdSite *site)
{
  TdStatus status;
  TdTrace *t;

  if (!td__hopeless_traces (s))
    {
      s->info.state = TD_STATIC_OFF;
      return td__static_run_code (s, in, n_in, out, n_out, site, TD_RUN_CODE);
    }
  t = td__static_trace (s, in, n_in, out, n_out, site, TD_TRACE_FOR_ENTRY, &status);
  if (t != NULL)
    {
      td__static_install (s, t);
      td__static_is_equal (s);
    }
  return status;
}

/* --- replaying --- */

/* Say whether there is a plan, or make one. */
static bool
ready (TdStatic *s, TdEntry *entry)
{
  const TdStaticOpt *o = &s->options;
  /* Config debug looks at every operation's numbers. */
  bool debug = entry->guards->config.debug;
  TdPassSwitches switches = { .prune = o->prune && !debug,
                              .fold = o->fold && !debug,
                              .cse = o->cse && !debug,
                              .batch = o->batch && o->fuse && !debug,
                              .pack = o->batch,
                              .fuse = o->fuse && !debug,
                              .in_place = o->in_place,
                              .plan = o->plan,
                              .graphs = o->cuda_graph && !debug };

  if (entry->trace != NULL)
    {
      if (entry->trace->state != TD_TRACE_DONE && !td__trace_is_over (entry->trace)
          && entry->iteration == td__engine.iteration) /* later on, its result is just kept */
        return entry->plan != NULL;
      if (entry->trace->state != TD_TRACE_DONE && entry->trace->why[0] != '\0')
        td__static_say (s, 1, "its backward was not traced: it %s", entry->trace->why);
      td__trace_free (entry->trace);
      entry->trace = NULL;
    }
  if (entry->plan != NULL && entry->plan->s->n_backwards == entry->schedule->n_backwards)
    return true;
  while (entry->instances != NULL) /* of a plan that knows less */
    {
      TdInstance *i = entry->instances;

      entry->instances = i->next;
      entry->n_instances--;
      td__instance_unref (i);
    }
  td__plan_unref (entry->plan);
  entry_index (entry);
  entry->plan = td__plan_new (entry->schedule, &switches);
  s->info.planned_bytes = entry->plan->arena_bytes;
  s->info.lower_bound_bytes = entry->plan->lower_bound;
  s->info.n_pruned = entry->plan->n_pruned;
  s->info.n_folded = entry->plan->n_folded;
  s->info.n_merged = entry->plan->n_merged;
  s->info.n_batched = entry->plan->n_batched;
  s->info.n_fused = entry->plan->n_fused;
  s->info.n_in_place = entry->plan->n_in_place;
  s->info.n_backward_steps
      = entry->schedule->n_backwards > 0 ? entry->schedule->backwards[0].list.n_events : 0;
  td__static_say (s, 1, "scheduled %u forward and %u backward %s in %zu bytes",
                  entry->schedule->forward.n_events, s->info.n_backward_steps,
                  td_plural (s->info.n_backward_steps, "operation", "operations"),
                  entry->plan->arena_bytes);
  td__static_notify_plan (s, entry);
  return true;
}

TdInstance *
td__static_instance (TdStatic *s, TdEntry *entry, const TdSite *site)
{
  TdInstance *released = NULL;

  for (TdInstance *i = entry->instances; i != NULL; i = i->next)
    if (i->state == TD_INSTANCE_FREE)
      return i;
    else if (i->state == TD_INSTANCE_RELEASED)
      released = i;
  if (released != NULL)
    {
      td__instance_drop (released);
      return released;
    }
  TdInstance *i = td__instance_new (entry, entry->plan, site);
  if (i == NULL)
    return NULL;
  i->next = entry->instances;
  entry->instances = i;
  entry->n_instances++;
  if (entry->n_instances >= 8 && (entry->n_instances & (entry->n_instances - 1)) == 0)
    td__static_say (
        s, 0,
        "%u instances of its schedule wait for a backward, %zu bytes: results that are kept "
        "keep them",
        entry->n_instances, td__entry_bytes (entry));
  td__cache_keep_within (s, entry);
  return i;
}

/* The entry whose guards hold; otherwise what misses of the one that was used last. */
static TdEntry *
find_entry (TdStatic *s, TdVar *const *in, int n_in, int n_out, const TdSite *site)
{
  TdMiss miss = { NULL, "", NULL }, newest = { NULL, "", NULL };
  uint64_t last_use = 0;

  for (TdEntry *e = s->entries; e != NULL; e = e->next)
    {
      if (e->schedule->n_outputs != (uint32_t)n_out)
        {
          miss = (TdMiss){ .guard = "results" };
          snprintf (miss.text, sizeof miss.text, "%d results are asked for, %u before", n_out,
                    e->schedule->n_outputs);
        }
      else if (td__guards_hold (e->guards, e->schedule, in, n_in, &miss))
        return e;
      if (e->last_use > last_use)
        newest = miss;
      last_use = e->last_use > last_use ? e->last_use : last_use;
    }
  if (newest.guard == NULL)
    return NULL;
  td__static_remember (s, &newest, site);
  s->info.n_misses++;
  td__static_notify (s, TD_STATIC_EVENT_MISSED, s->entries, &s->miss, NULL);
  return NULL;
}

bool
td__static_usable (const TdStatic *s, const char *call, const TdSite *site)
{
  if (TD_UNLIKELY (td__stranger (call)))
    return false;
  if (TD_LIKELY (s != NULL && s->fn != NULL))
    return true;
  td__fail (s == NULL ? TD_ERR_ARG : TD_ERR_STATE, call, site, "the static function %s",
            s == NULL ? "is NULL" : "was freed");
  return false;
}

static bool
usable (const TdStatic *s, TdVar *const *in, int n_in, const TdSite *site)
{
  if (!td__static_usable (s, "td_static_call", site)
      || !td__list_whole (in, n_in, s->name, site))
    return false;
  for (int k = 0; k < n_in; k++)
    if (in[k] == NULL)
      {
        td__fail (TD_ERR_ARG, s->name, site, "argument %d is a variable: got NULL", k);
        return false;
      }
    else if (!td__var_usable (in[k], s->name, site))
      return false;
  return true;
}

/* A host read inside had other numbers: what was done before it is undone. */
static TdStatus
replay (TdStatic *s, TdEntry *entry, TdVar *const *in, int n_in, TdVar **out, int n_out,
        const TdSite *site)
{
  TdInstance *i = td__static_instance (s, entry, site);
  TdMiss miss = { NULL, "", NULL };
  TdStatus status;

  if (i == NULL)
    {
      for (int k = 0; k < n_out; k++)
        out[k] = td__poison ();
      return TD_ERR_MEMORY;
    }
  status = td__replay_forward (entry, i, in, out, site, &miss, NULL);
  if (miss.guard != NULL)
    {
      td__static_remember (s, &miss, site);
      s->info.n_misses++;
      td__static_notify (s, TD_STATIC_EVENT_MISSED, entry, &s->miss, NULL);
      return trace_call (s, in, n_in, out, n_out, site);
    }
  if (status != TD_OK)
    return status;
  s->n_unverified++;
  s->hopeless.n = 0;
  entry->n_replays++;
  s->info.n_replays++;
  s->info.state = TD_STATIC_STATIC;
  td__static_say (s, 2, "replayed %u %s", entry->schedule->forward.n_events,
                  td_plural (entry->schedule->forward.n_events, "operation", "operations"));
  td__static_notify (s, TD_STATIC_EVENT_REPLAYED, entry, NULL, NULL);
  return TD_OK;
}

TdStatus
td_static_call_at (TdStatic *s, TdVar *const *in, int n_in, TdVar **out, int n_out,
                   const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdEntry *entry;
  TdVerify how;

  site = site != NULL ? site : e->site;
  if (!usable (s, in, n_in, site) || !td__list_whole (out, n_out, "td_static_call", site))
    {
      for (int k = 0; out != NULL && k < n_out; k++)
        out[k] = td__poison ();
      return td__error_status ();
    }
  s->info.n_calls++;
  s->called_at = site;
  td__static_notify_call (s);
  if (e->tracer != NULL)
    {
      if (s->options.strict || (traced != NULL && traced->options.strict))
        {
          td__fail (TD_ERR_STATE, s->name, site,
                    "a static function inside a static function: mark "
                    "the outer one only");
          for (int k = 0; k < n_out; k++)
            out[k] = td__poison ();
          return TD_ERR_STATE;
        }
      if (!s->reported_nested)
        td__static_say (s, 0,
                        "is called inside another static function and becomes part of it");
      s->reported_nested = true;
      return td__static_run_code (s, in, n_in, out, n_out, site, TD_RUN_CODE);
    }
  if (!e->config.use_static_graph || e->hooks != NULL
      || (s->options.force_test_define_by_run
          && (!e->config.train || !e->config.enable_backprop)))
    {
      td__static_set_aside (s, site);
      return td__static_run_code (s, in, n_in, out, n_out, site, TD_RUN_CODE);
    }
  s->aside = NULL;
  if (TD_UNLIKELY (e->has_error)) /* of before: what fails now says nothing of the code */
    return td__static_run_code (s, in, n_in, out, n_out, site, TD_RUN_CODE);
  entry = find_entry (s, in, n_in, n_out, site);
  if (entry == NULL)
    {
      if (s->entries != NULL)
        td__static_say (s, 1, "is traced again: %s", s->miss_text);
      return trace_call (s, in, n_in, out, n_out, site);
    }
  entry->last_use = s->info.n_calls;
  if (TD_UNLIKELY (s->looked_at != NULL))
    td__look_no_more (s, false);
  if (TD_UNLIKELY (s->doubt.on))
    return td__doubt_call (s, entry, in, n_in, out, n_out, site);
  if (!ready (s, entry))
    {
      s->info.state = TD_STATIC_TRACING;
      return td__static_run_code (s, in, n_in, out, n_out, site, TD_RUN_CODE);
    }
  how = td__verify_due (s, entry);
  if (TD_UNLIKELY (how == TD_VERIFY_CODE))
    return td__look_at_code (s, entry, in, n_in, out, n_out, site);
  if (TD_UNLIKELY (how != TD_VERIFY_NOT))
    return td__verify_call (s, entry, in, n_in, out, n_out, site, how);
  return replay (s, entry, in, n_in, out, n_out, site);
}

TdStatus (td_static_call) (TdStatic *s, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  return td_static_call_at (s, in, n_in, out, n_out, NULL);
}

TdVar *
td_static_call1_at (TdStatic *s, TdVar *x, const TdSite *site)
{
  TdVar *y = NULL;

  td_static_call_at (s, &x, 1, &y, 1, site);
  return y;
}

TdVar *(td_static_call1)(TdStatic *s, TdVar *x)
{
  return td_static_call1_at (s, x, NULL);
}

/* --- side effects --- */

typedef struct
{
  void (*fn) (void *user);
  void *user;
} Code;

static void
run_again (void *data, TdVar *v)
{
  const Code *c = data;

  (void)v;
  c->fn (c->user);
}

static bool
same_code (const void *a, const void *b)
{
  const Code *x = a, *y = b;

  return x->fn == y->fn && x->user == y->user;
}

void
td_static_code (void (*fn) (void *user), void *user)
{
  TdTracer *t = td__engine.tracer;
  Code *c;

  if (td__stranger ("td_static_code"))
    return;
  if (fn == NULL)
    {
      td__fail (TD_ERR_ARG, "td_static_code", NULL, "a function to run expected, got none");
      return;
    }
  td__trace_effect (t, fn, user);
  if (t == NULL)
    return;
  c = td__xmalloc (sizeof *c);
  *c = (Code){ fn, user };
  t->effect (t, &(TdTraceEffect){ "td_static_code", run_again, free, c, same_code }, NULL);
}

void
td_static_end_forward (TdStatic *s)
{
  if (td__stranger ("td_static_end_forward"))
    return;
  for (TdEntry *e = s != NULL ? s->entries : NULL; e != NULL; e = e->next)
    for (TdInstance *i = e->instances; i != NULL; i = i->next)
      if (i->state == TD_INSTANCE_AWAITING)
        i->state = TD_INSTANCE_RELEASED;
}

/* --- life --- */

TdStaticOpt
td_static_options (void)
{
  return (TdStaticOpt){ TD_STATIC_DEFAULTS };
}

TdStatic *
td_static_new_at (TdStaticFn fn, void *self, TdStaticOpt options, const TdSite *site)
{
  TdStatic *s;
  char name[32];

  if (!td__ensure_started () || td__stranger ("td_static_new"))
    return NULL;
  if (fn == NULL || options.verify < TD_STATIC_BY_ITSELF || options.verbosity_level < 0
      || options.verbosity_level > 2)
    {
      td__fail (TD_ERR_ARG, "td_static_new", site,
                fn == NULL ? "the code of the function expected, got NULL"
                           : "verify of -1 or more and verbosity_level of 0 to 2 expected");
      return NULL;
    }
  s = td__xcalloc (1, sizeof *s);
  snprintf (name, sizeof name, "static#%u", ++n_made);
  s->number = n_made;
  s->fn = fn;
  s->self = self;
  s->options = options;
  s->name = td__intern (options.name != NULL ? options.name : name);
  s->site = site;
  s->info.unverified_since = -1;
  s->next = all;
  all = s;
  if (options.self_bytes > 0 && self != NULL)
    td_static_watch_at (s, "self", self, options.self_bytes, site);
  td__static_notify (s, TD_STATIC_EVENT_MADE, NULL, NULL, NULL);
  return s;
}

void
td_static_watch_at (TdStatic *s, const char *name, const void *memory, size_t bytes,
                    const TdSite *site)
{
  TdWatch *w;

  if (!td__static_usable (s, "td_static_watch", site))
    return;
  if (memory == NULL || bytes == 0)
    {
      td__fail (TD_ERR_ARG, "td_static_watch", site, "memory expected");
      return;
    }
  s->watches = td__xrealloc (s->watches, (s->n_watches + 1) * sizeof *s->watches);
  w = &s->watches[s->n_watches++];
  *w = (TdWatch){ .name = td__intern (name != NULL ? name : "memory"),
                  .site = site,
                  .memory = (void *)(uintptr_t)memory,
                  .bytes = bytes };
  td_static_clear (s);
}

void (td_static_watch) (TdStatic *s, const char *name, const void *memory, size_t bytes)
{
  td_static_watch_at (s, name, memory, bytes, NULL);
}

void
td_static_free (TdStatic *s)
{
  TdStatic **at = &all;

  if (td__stranger ("td_static_free"))
    return;
  while (*at != NULL && *at != s)
    at = &(*at)->next;
  if (s == NULL || *at == NULL)
    return;
  *at = s->next;
  td__static_notify (s, TD_STATIC_EVENT_FREED, NULL, NULL, NULL);
  s->number = 0; /* what follows is not reported */
  if (s->owner != NULL)
    {
      *s->owner = NULL;
      td__links_changed (&(TdPath){ .text = s->name }, s->site);
    }
  td_static_clear (s);
  free (s->watches);
  free (s->proved);
  *s = (TdStatic){ .name = "freed" };
  td__shell_keep (s);
}

void
td__static_owned (TdStatic *s, TdStatic **owner)
{
  s->owner = owner;
}

int
td__statics_verify_next (void)
{
  int n = 0;

  for (TdStatic *s = all; s != NULL; s = s->next, n++)
    td_static_verify_next (s);
  return n;
}

void
td__statics_finish (void)
{
  while (all != NULL)
    td_static_free (all);
  td__observe_finish ();
  n_made = 0;
}

TdStaticInfo
td_static_info (const TdStatic *s)
{
  TdStaticInfo info = { 0 };

  if (td__asked ("td_static_info") || s == NULL)
    return info;
  info = s->info;
  info.n_schedules = s->n_entries;
  info.n_instances = info.n_instances_awaiting = 0;
  info.bytes = 0;
  for (const TdEntry *e = s->entries; e != NULL; e = e->next)
    {
      info.n_instances += e->n_instances;
      info.bytes += td__entry_bytes (e);
      for (const TdInstance *i = e->instances; i != NULL; i = i->next)
        info.n_instances_awaiting += i->state == TD_INSTANCE_AWAITING;
    }
  return info;
}

const char *
td_static_last_miss (const TdStatic *s)
{
  return td__stranger ("td_static_last_miss") || s == NULL ? "" : s->miss_text;
}
