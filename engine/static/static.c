/* Static chains: the cache of schedules, and which of code and schedule a call runs.
 *
 * SPDX-License-Identifier: MIT */
#include "tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TdStatic *all;
static unsigned n_made;

/* --- entries --- */

TdEntry *
td__entry_ref (TdEntry *e)
{
  e->refs++;
  return e;
}

void
td__entry_unref (TdEntry *e)
{
  if (--e->refs > 0)
    return;
  td__trace_free (e->trace);
  td__plan_unref (e->plan);
  td__guards_free (e->guards);
  td__schedule_free (e->schedule);
  free (e->op_out);
  free (e->reads);
  free (e);
}

/* Take an entry out of the cache; instances that wait for backward live on. */
void
td__static_evict (TdStatic *s, TdEntry *e)
{
  TdEntry **at = &s->entries;

  while (*at != e)
    at = &(*at)->next;
  *at = e->next;
  s->n_entries--;
  s->info.n_evictions++;
  td__static_tell (s, TD_NEWS_EVICTED, e, NULL, NULL);
  if (e->trace != NULL)
    {
      td__trace_free (e->trace);
      e->trace = NULL;
    }
  e->owner = NULL;
  while (e->instances != NULL)
    {
      TdInstance *i = e->instances;

      e->instances = i->next;
      td__instance_unref (i);
    }
  td__entry_unref (e);
}

void
td_static_clear (TdStatic *s)
{
  while (s != NULL && s->entries != NULL)
    td__static_evict (s, s->entries);
}

static size_t
entry_bytes (const TdEntry *e)
{
  size_t bytes = 0;

  for (const TdInstance *i = e->instances; i != NULL; i = i->next)
    bytes += i->arena != NULL ? i->arena->bytes : 0;
  return bytes;
}

static void
enforce_budget (TdStatic *s, const TdEntry *keep)
{
  size_t bytes = 0;

  for (const TdEntry *e = s->entries; e != NULL; e = e->next)
    bytes += entry_bytes (e);
  while (s->options.cache_bytes > 0 && bytes > s->options.cache_bytes && s->n_entries > 1)
    {
      TdEntry *oldest = NULL;

      for (TdEntry *e = s->entries; e != NULL; e = e->next)
        if (e != keep && (oldest == NULL || e->last_use < oldest->last_use))
          oldest = e;
      bytes -= entry_bytes (oldest);
      td__static_evict (s, oldest);
    }
}

/* --- what is said --- */

static __attribute__ ((format (printf, 3, 4))) void
say (const TdStatic *s, int level, const char *format, ...)
{
  va_list args;

  if (s->options.verbosity_level < level)
    return;
  fprintf (stderr, "tapedeck: static chain %s: ", s->name);
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
  e->op_out = calloc (s->n_outputs + 1, sizeof *e->op_out);
  e->reads = calloc (s->n_externals + 1, sizeof *e->reads);
  if (e->op_out == NULL || e->reads == NULL)
    abort ();
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
        }
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

/* Run the code in a scope of its own, and hand its results out. */
static TdStatus
run_code (TdStatic *s, TdVar *const *in, int n_in, TdVar **out, int n_out, const TdSite *site,
          TdStaticRunKind kind)
{
  TdEngine *e = &td__engine;
  TdScope *scope;

  td__static_tell_run (TD_RUN_BEGINS, kind, s->number, 0, 0);
  scope = td_scope_open_at (s->name, site);

  for (int k = 0; k < n_out; k++)
    out[k] = NULL;
  s->fn (s->self, in, n_in, out, n_out);
  for (int k = 0; k < n_out; k++)
    if (out[k] == NULL)
      {
        td__fail (TD_ERR_STATE, s->name, site, "output %d was not set by the chain's code", k);
        out[k] = td__poison ();
      }
  for (int k = 0; k < n_out; k++)
    td_scope_yield (out[k]);
  td_scope_close (scope);
  td__static_tell_run (TD_RUN_ENDS, kind, s->number, 0, 0);
  s->info.n_dynamic++;
  td__static_tell (s, TD_NEWS_CODE, NULL, NULL, NULL);
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
  td__static_tell (s, TD_NEWS_REFUSED, NULL, &s->miss, NULL);
  if (s->n_refusals++ == 0)
    say (s, 0, "runs dynamically: %s", s->miss_text);
}

TdTrace *
td__static_trace (TdStatic *s, TdVar *const *in, int n_in, TdVar **out, int n_out,
                  const TdSite *site, bool keeps, TdStatus *status)
{
  TdEngine *e = &td__engine;
  TdGuards *guards = td__guards_new (in, n_in);
  TdTrace *t;

  for (uint32_t k = 0; k < s->n_watches; k++)
    td__guards_watch (guards, s->watches[k].name, s->watches[k].site, s->watches[k].memory,
                      s->watches[k].bytes);
  t = td__trace_begin (in, n_in, guards);
  t->keeps = keeps;
  t->chain = keeps ? 0 : s->number;
  *status = run_code (s, in, n_in, out, n_out, site, keeps ? TD_RUN_SHADOW : TD_RUN_TRACED);
  td__trace_finish (t, out, n_out);
  if (*status == TD_OK && e->state_generation != guards->state_generation)
    snprintf (t->refused, sizeof t->refused,
              "keeps the state of a recurrent link from call to call: pass it as an "
              "argument and return it");
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

/* An argument that the program holds was replaced: once the code was seen to use none of the
 * earlier ones but as argument, that is no guard any more. */
static void
see_arguments (TdStatic *s, const TdTrace *t)
{
  bool used = false;

  for (const TdEntry *e = s->entries; e != NULL; e = e->next)
    used |= td__guards_uses (e->guards, t->schedule);
  s->own_arguments |= s->entries != NULL && !used;
}

/* Drop what can never be replayed again: these counts only grow. */
static void
drop_dead (TdStatic *s)
{
  for (TdEntry *e = s->entries, *next; e != NULL; e = next)
    {
      next = e->next;
      if (e->guards->links_generation != td__links_generation
          || e->guards->state_generation != td__engine.state_generation)
        td__static_evict (s, e);
    }
}

void
td__static_install (TdStatic *s, TdTrace *t)
{
  TdEntry *entry = calloc (1, sizeof *entry);
  char place[300];

  if (entry == NULL)
    abort ();
  if (s->miss.guard != NULL && strcmp (s->miss.guard, "argument identity") == 0)
    see_arguments (s, t);
  t->guards->own_arguments = s->own_arguments;
  entry->refs = 1;
  entry->owner = s;
  entry->chain = s->number;
  t->chain = s->number; /* of a shadow too, from here on */
  entry->schedule = t->schedule;
  entry->guards = t->guards;
  entry->iteration = td__engine.iteration;
  entry->last_use = s->info.n_calls;
  entry->keeps_graph = t->guards->config.enable_backprop && has_graph (t->schedule);
  entry->double_backprop = s->options.enable_double_backprop;
  entry_index (entry);
  for (uint32_t k = 0; k < t->schedule->forward.n; k++)
    entry->reads_host |= t->schedule->forward.steps[k].kind == TD_STEP_HOST_READ;
  t->guards = NULL;
  if (entry->keeps_graph)
    {
      entry->trace = t;
      td__trace_wait (t);
    }
  else
    td__trace_free (t);
  while (s->options.minimize_cache_size && s->entries != NULL)
    td__static_evict (s, s->entries);
  drop_dead (s);
  entry->next = s->entries;
  s->entries = entry;
  s->n_entries++;
  s->n_unverified = 0;
  s->info.n_traces++;
  s->info.state = TD_STATIC_TRACING;
  s->info.n_steps = entry->schedule->forward.n_events;
  td__static_tell (s, TD_NEWS_TRACED, entry, NULL, NULL);
  for (uint32_t k = 0; k < entry->guards->n_watches; k++)
    if (entry->guards->watches[k].n_changed > 0)
      say (s, 1, "its code sets %zu bytes of %s, which a replay does not: td_static_code does",
           entry->guards->watches[k].n_changed, entry->guards->watches[k].name);
  for (uint32_t k = 0; k < entry->schedule->forward.n; k++)
    if (entry->schedule->forward.steps[k].kind == TD_STEP_HOST_READ)
      say (s, 1, "its code reads numbers at %s, which become a guard",
           site_text (entry->schedule->forward.steps[k].site, place, sizeof place));
  say (s, 1, "traced %u operations on %u variables from outside; %u values",
       entry->schedule->forward.n_events, entry->schedule->n_externals,
       entry->schedule->n_values);
}

/* Run the code and write a schedule beside. */
static TdStatus
trace_call (TdStatic *s, TdVar *const *in, int n_in, TdVar **out, int n_out, const TdSite *site)
{
  TdStatus status;
  TdTrace *t = td__static_trace (s, in, n_in, out, n_out, site, false, &status);

  if (t != NULL)
    td__static_install (s, t);
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
        say (s, 1, "its backward was not traced: it %s", entry->trace->why);
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
  say (s, 1, "scheduled %u forward and %u backward operations in %zu bytes",
       entry->schedule->forward.n_events, s->info.n_backward_steps, entry->plan->arena_bytes);
  td__static_tell_plan (s, entry);
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
    say (s, 0,
         "%u instances of its schedule wait for a backward, %zu bytes: results that are kept "
         "keep them",
         entry->n_instances, entry_bytes (entry));
  enforce_budget (s, entry);
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
  td__static_tell (s, TD_NEWS_MISSED, s->entries, &s->miss, NULL);
  return NULL;
}

static bool
usable (TdStatic *s, TdVar *const *in, int n_in, const TdSite *site)
{
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
      td__static_tell (s, TD_NEWS_MISSED, entry, &s->miss, NULL);
      return trace_call (s, in, n_in, out, n_out, site);
    }
  if (status != TD_OK)
    return status;
  s->n_unverified++;
  entry->n_replays++;
  s->info.n_replays++;
  s->info.state = TD_STATIC_STATIC;
  say (s, 2, "replayed %u operations", entry->schedule->forward.n_events);
  td__static_tell (s, TD_NEWS_REPLAYED, entry, NULL, NULL);
  return TD_OK;
}

TdStatus
td_static_call_at (TdStatic *s, TdVar *const *in, int n_in, TdVar **out, int n_out,
                   const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdEntry *entry;

  site = site != NULL ? site : e->site;
  if (s == NULL || td__check_thread ("td_static_call") != TD_OK || !usable (s, in, n_in, site))
    {
      for (int k = 0; k < n_out; k++)
        out[k] = td__poison ();
      return e->has_error ? e->error.status : TD_ERR_STATE;
    }
  s->info.n_calls++;
  td__static_tell_call (s);
  if (e->tracer != NULL)
    {
      if (s->options.strict)
        {
          td__fail (TD_ERR_STATE, s->name, site,
                    "a static chain inside a static chain: mark "
                    "the outer one only");
          for (int k = 0; k < n_out; k++)
            out[k] = td__poison ();
          return TD_ERR_STATE;
        }
      if (!s->told_nested)
        say (s, 0, "is called inside another static chain and becomes part of it");
      s->told_nested = true;
      return run_code (s, in, n_in, out, n_out, site, TD_RUN_CODE);
    }
  if (!e->config.use_static_graph || e->hooks != NULL
      || (s->options.force_test_define_by_run
          && (!e->config.train || !e->config.enable_backprop)))
    {
      s->info.state = TD_STATIC_OFF;
      return run_code (s, in, n_in, out, n_out, site, TD_RUN_CODE);
    }
  entry = find_entry (s, in, n_in, n_out, site);
  if (entry == NULL)
    {
      if (s->entries != NULL)
        say (s, 1, "is traced again: %s", s->miss_text);
      return trace_call (s, in, n_in, out, n_out, site);
    }
  entry->last_use = s->info.n_calls;
  if (!ready (s, entry))
    {
      s->info.state = TD_STATIC_TRACING;
      return run_code (s, in, n_in, out, n_out, site, TD_RUN_CODE);
    }
  if (TD_UNLIKELY (td__verify_due (s)))
    return td__verify_call (s, entry, in, n_in, out, n_out, site);
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

  if (fn == NULL)
    {
      td__fail (TD_ERR_ARG, "td_static_code", NULL, "a function to run expected, got none");
      return;
    }
  td__trace_effect (t, fn, user);
  if (t == NULL)
    return;
  c = malloc (sizeof *c);
  if (c == NULL)
    abort ();
  *c = (Code){ fn, user };
  t->effect (t, &(TdTraceEffect){ "td_static_code", run_again, free, c, same_code }, NULL);
}

void
td_static_end_forward (TdStatic *s)
{
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

  if (!td__ensure_started ())
    return NULL;
  if (fn == NULL || options.verify < 0 || options.verbosity_level < 0
      || options.verbosity_level > 2)
    {
      td__fail (TD_ERR_ARG, "td_static_new", site,
                fn == NULL ? "the code of the chain expected, got NULL"
                           : "verify of 0 or more and verbosity_level of 0 to 2 expected");
      return NULL;
    }
  s = calloc (1, sizeof *s);
  if (s == NULL)
    abort ();
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
  td__static_tell (s, TD_NEWS_MADE, NULL, NULL, NULL);
  return s;
}

void
td_static_watch_at (TdStatic *s, const char *name, const void *memory, size_t bytes,
                    const TdSite *site)
{
  TdWatch *w;

  if (s == NULL || memory == NULL || bytes == 0)
    {
      td__fail (TD_ERR_ARG, "td_static_watch", site, "a chain and memory expected");
      return;
    }
  s->watches = realloc (s->watches, (s->n_watches + 1) * sizeof *s->watches);
  if (s->watches == NULL)
    abort ();
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

  while (*at != NULL && *at != s)
    at = &(*at)->next;
  if (s == NULL || *at == NULL)
    return;
  *at = s->next;
  td__static_tell (s, TD_NEWS_FREED, NULL, NULL, NULL);
  s->number = 0; /* what follows is no news */
  if (s->owner != NULL)
    *s->owner = NULL;
  td_static_clear (s);
  free (s->watches);
  free (s->proved);
  free (s);
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

  if (s == NULL)
    return info;
  info = s->info;
  info.n_schedules = s->n_entries;
  info.n_instances = info.n_instances_awaiting = 0;
  info.bytes = 0;
  for (const TdEntry *e = s->entries; e != NULL; e = e->next)
    {
      info.n_instances += e->n_instances;
      info.bytes += entry_bytes (e);
      for (const TdInstance *i = e->instances; i != NULL; i = i->next)
        info.n_instances_awaiting += i->state == TD_INSTANCE_AWAITING;
    }
  return info;
}

const char *
td_static_last_miss (const TdStatic *s)
{
  return s != NULL ? s->miss_text : "";
}
