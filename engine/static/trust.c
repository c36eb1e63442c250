/* How far a static function trusts its schedules: when it compares them with its code by
 * itself, what it does after a difference, and when it gives up tracing.
 *
 * SPDX-License-Identifier: MIT */
#include "static.h"
#include "notify.h"
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  NEEDED = 4, /* equal calls in a row after a difference, twice as many after each more */
  MOST_NEEDED = 1024,
  LONGEST_GAP = 64,     /* calls in doubt whose code is not looked at */
  MOST_KEPT = 64 << 20, /* bytes: what is compared is kept twice */
  HOPELESS = 8,         /* traces without a replay */
  LONGEST_WAIT = 1024   /* calls until another is tried */
};

bool
td__verify_by_itself (const TdStatic *s)
{
  return td__engine.static_verify == 0 && s->options.verify < 0;
}

TdVerify
td__verify_due (TdStatic *s, TdEntry *entry)
{
  const int set = td__engine.static_verify;
  const int every = set > 0 ? set : s->options.verify;
  const uint64_t call = ++entry->n_uses + 1;

  if (s->verify_next)
    return TD_VERIFY_ALL;
  if (every > 0)
    return s->n_unverified + 1 >= (uint64_t)every ? TD_VERIFY_ALL : TD_VERIFY_NOT;
  if (TD_LIKELY (call != entry->verify_at) || !td__verify_by_itself (s))
    return TD_VERIFY_NOT;
  entry->verify_at = 2 * call - 1;
  if (entry->plan->arena_bytes < MOST_KEPT && call == 2)
    return TD_VERIFY_ALL;
  if (!entry->own_backward || !entry->keeps_graph)
    return TD_VERIFY_STEPS;
  return entry->plan->arena_bytes < MOST_KEPT ? TD_VERIFY_BACKWARD : TD_VERIFY_CODE;
}

void
td__verify_differs (TdStatic *s, const TdEntry *entry, const TdMiss *miss, const TdSite *site)
{
  const uint64_t n = ++s->info.n_differences;

  td__static_remember (s, miss, site);
  td__static_notify (s, TD_STATIC_EVENT_DIFFERS, entry, &s->miss, miss->other);
  if (!td__verify_by_itself (s) && (n & (n - 1)) == 0) /* by itself: as its doubt begins */
    td__static_say (s, 0, "its code is not what it was: %s. The call is the code's%s",
                    s->miss_text, n > 1 ? ", as in earlier differences" : "");
}

/* --- doubt --- */

void
td__static_is_equal (TdStatic *s)
{
  if (s->equal_at != td__engine.iteration)
    s->equal_before = s->equal_at;
  s->equal_at = td__engine.iteration;
}

/* What was replayed since then had what the code no longer has, or it changed just now. */
static const char *
since_when (const TdStatic *s, char *text, size_t size)
{
  const int64_t now = td__engine.iteration,
                at = s->equal_at < now ? s->equal_at : s->equal_before;

  if (now <= at + 1)
    return "";
  snprintf (
      text, size,
      ". It was last found equal in iteration %lld: replays since then may have been wrong",
      (long long)at);
  return text;
}

void
td__doubt_begin (TdStatic *s)
{
  TdDoubt *d = &s->doubt;
  char text[128];

  if (!td__verify_by_itself (s))
    return;
  d->on = true;
  d->n_equal = 0;
  d->needed = d->needed == 0                ? NEEDED
              : 2 * d->needed < MOST_NEEDED ? 2 * d->needed
                                            : MOST_NEEDED;
  d->wait = 0;
  d->gap = 1;
  if (d->needed == NEEDED)
    td__static_say (s, 0,
                    "its code is not what it was: %s. It runs as code until it has been the "
                    "same for a while; td_static_watch guards memory that it reads%s",
                    s->miss_text, since_when (s, text, sizeof text));
}

static void
equal_again (TdStatic *s, TdEntry *entry)
{
  TdDoubt *d = &s->doubt;

  d->gap = 1;
  d->wait = 0;
  if (++d->n_equal < d->needed)
    return;
  d->on = false;
  entry->n_uses = 0;
  entry->verify_at = 2;
  td__static_say (s, 1, "its code has been the same %u times: its schedule runs again",
                  d->needed);
}

/* Code and schedule differ, which another follows: in doubt, it is looked at less often. */
static void
not_equal (TdStatic *s, TdEntry *entry, const TdMiss *miss, const TdSite *site)
{
  TdDoubt *d = &s->doubt;

  td__verify_differs (s, entry, miss, site);
  td__static_evict (s, entry);
  if (!d->on)
    {
      td__doubt_begin (s);
      return;
    }
  d->n_equal = 0;
  d->wait = d->gap - 1;
  d->gap = 2 * d->gap < LONGEST_GAP ? 2 * d->gap : LONGEST_GAP;
}

/* --- code in place of a schedule --- */

static void
look_away (TdTrace *t)
{
  TdTrace **at = &t->looked_at_by->looked_at;

  while (*at != t)
    at = &(*at)->next_looked_at;
  *at = t->next_looked_at;
  td__entry_unref (t->compared_with);
  td__static_untrace (t);
}

void
td__look_no_more (TdStatic *s, bool all)
{
  for (TdTrace *t = s->looked_at, *next; t != NULL; t = next)
    {
      next = t->next_looked_at;
      if (all || td__trace_is_over (t))
        look_away (t);
    }
}

static bool
same_call (const TdBackwardTrace *x, const TdBackwardTrace *y, uint32_t n_externals)
{
  bool same = x->gy_given == y->gy_given && x->gy_alias == y->gy_alias;

  for (uint32_t k = 0; k < n_externals && same; k++)
    same = (x->wanted[k / 64] >> k % 64 & 1) == (y->wanted[k / 64] >> k % 64 & 1);
  return same;
}

/* The backward of code that ran in place of a schedule is over. */
static void
backward_is_traced (TdTrace *t)
{
  TdEntry *entry = t->compared_with;
  const TdSchedule *then = entry->schedule, *now = t->schedule;
  const uint32_t n
      = then->n_externals < now->n_externals ? then->n_externals : now->n_externals;
  TdMiss miss = { NULL, "", NULL };

  for (uint32_t k = 0; k < then->n_backwards && entry->owner != NULL; k++)
    if (same_call (&then->backwards[k], &now->backwards[0], n))
      {
        if (!td__check_lists (then, &then->backwards[k].list, now, &now->backwards[0].list,
                              &miss))
          not_equal (entry->owner, entry, &miss, NULL);
        break;
      }
  look_away (t);
}

static void
wait_for_backward (TdStatic *s, TdEntry *entry, TdTrace *t)
{
  td__guards_free (t->guards);
  t->guards = NULL;
  t->traced_backward = backward_is_traced;
  t->compared_with = td__entry_ref (entry);
  t->looked_at_by = s;
  t->next_looked_at = s->looked_at;
  s->looked_at = t;
  td__trace_wait (t);
}

TdStatus
td__look_at_code (TdStatic *s, TdEntry *entry, TdVar *const *in, int n_in, TdVar **out,
                  int n_out, const TdSite *site)
{
  TdMiss miss = { NULL, "", NULL };
  TdStatus status;
  TdTrace *t = td__static_trace (s, in, n_in, out, n_out, site, TD_TRACE_FOR_DOUBT, &status);

  if (t == NULL)
    return status;
  s->info.n_verified++;
  s->info.unverified_since = td__engine.iteration;
  s->info.state = TD_STATIC_OFF;
  s->n_unverified = 0;
  if (!td__check_traces (entry->schedule, t->schedule, &miss))
    {
      not_equal (s, entry, &miss, site);
      td__static_install (s, t);
      return status;
    }
  if (entry->own_backward && entry->keeps_graph)
    wait_for_backward (s, entry, t);
  else
    td__static_untrace (t);
  td__static_is_equal (s);
  if (s->doubt.on)
    equal_again (s, entry);
  return status;
}

TdStatus
td__doubt_call (TdStatic *s, TdEntry *entry, TdVar *const *in, int n_in, TdVar **out, int n_out,
                const TdSite *site)
{
  if (s->doubt.wait == 0)
    return td__look_at_code (s, entry, in, n_in, out, n_out, site);
  s->doubt.wait--;
  s->info.state = TD_STATIC_OFF;
  return td__static_run_code (s, in, n_in, out, n_out, site, TD_RUN_CODE);
}

/* --- calls that ask for no schedule --- */

/* It is said once for as long as it is so. */
void
td__static_set_aside (TdStatic *s, const TdSite *site)
{
  const char *why
      = !td__engine.config.use_static_graph ? "config.use_static_graph is 0"
        : td__engine.hooks != NULL
            ? "hooks are set, which see every operation of the code"
            : "force_test_define_by_run: without train or enable_backprop the code runs";
  TdMiss miss = { "set aside", "", site };

  s->info.state = TD_STATIC_OFF;
  if (s->aside != why)
    {
      snprintf (miss.text, sizeof miss.text, "%s", why);
      td__static_notify (s, TD_STATIC_EVENT_ASIDE, NULL, &miss, NULL);
    }
  s->aside = why;
}

/* --- traces that no replay follows --- */

bool
td__hopeless_traces (TdStatic *s)
{
  TdHopeless *h = &s->hopeless;

  if (h->wait > 0)
    {
      h->wait--;
      return false;
    }
  if (++h->n <= HOPELESS)
    return true;
  h->gap = h->gap == 0 ? HOPELESS : 2 * h->gap < LONGEST_WAIT ? 2 * h->gap : LONGEST_WAIT;
  h->wait = h->gap;
  if (!h->reported && s->miss.guard != NULL)
    td__static_say (
        s, 0,
        "was traced %d times and never replayed, which is slower than its code: %s. "
        "From now on it is traced now and then only",
        HOPELESS, s->miss_text);
  h->reported = true;
  return true;
}

/* Arguments and modes, which alternate in many programs: the last batch, training and test. */
static uint64_t
key_of (const TdEntry *e)
{
  const TdGuards *g = e->guards;
  uint64_t hash = 1469598103934665603u;
  const uint8_t *config = (const uint8_t *)&g->config;

#define ADD(x) hash = (hash ^ (uint64_t)(x)) * 1099511628211u
  for (size_t k = 0; k < sizeof g->config; k++)
    ADD (config[k]);
  ADD (g->recomputing);
  ADD (e->schedule->n_outputs);
  for (uint32_t i = 0; i < g->n_arguments; i++)
    {
      const TdArgumentGuard *a = &g->arguments[i];

      ADD (a->dtype);
      ADD (a->layout);
      ADD (a->requires_grad);
      ADD (a->same_buffer);
      ADD (a->same_node);
      for (int d = 0; d < a->shape.ndim; d++)
        ADD (a->shape.dim[d]);
    }
#undef ADD
  return hash;
}

bool
td__keys_alternate (TdStatic *s, const TdEntry *left, const TdEntry *next)
{
  const uint64_t old = key_of (left), now = key_of (next);

  if (old == now)
    return false;
  for (uint32_t k = 0; k < s->n_keys && k < TD_KEYS; k++)
    if (s->keys[k] == now)
      {
        s->keeps_several = true;
        s->hopeless = (TdHopeless){ .reported = s->hopeless.reported };
        td__static_say (s, 0,
                        "is called with other shapes or modes in turn, and keeps up to %d "
                        "schedules from now on: .minimize_cache_size = false says so from the "
                        "start, .cache_bytes how much memory they may take",
                        TD_KEYS);
        return true;
      }
  s->keys[s->n_keys++ % TD_KEYS] = old;
  return false;
}

bool
td__static_option (const char *value)
{
  char *end = NULL;
  long every;

  if (strcmp (value, "auto") == 0)
    td__engine.static_verify = 0;
  else if (strcmp (value, "as-is") == 0)
    td__engine.static_verify = TD_STATIC_AS_IS;
  else if (strcmp (value, "off") == 0)
    td__engine.config.use_static_graph = 0;
  else if (strcmp (value, "verify") == 0)
    td__engine.static_verify = 1;
  else if (strncmp (value, "verify=", 7) == 0)
    {
      every = strtol (value + 7, &end, 10);
      if (end == value + 7 || *end != '\0' || every < 1 || every > INT32_MAX)
        return false;
      td__engine.static_verify = (int)every;
    }
  else
    return false;
  return true;
}
