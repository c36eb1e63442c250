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
  return call == 2 && entry->plan->arena_bytes < MOST_KEPT ? TD_VERIFY_ALL : TD_VERIFY_STEPS;
}

/* --- doubt --- */

void
td__doubt_begin (TdStatic *s)
{
  TdDoubt *d = &s->doubt;

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
                    "same for a while; td_static_watch guards memory that it reads",
                    s->miss_text);
}

/* The code was traced and is the same as before, or not. */
static void
settle (TdStatic *s, TdEntry *entry, TdTrace *t, const TdMiss *miss, const TdSite *site)
{
  TdDoubt *d = &s->doubt;

  s->info.n_verified++;
  if (miss->guard == NULL)
    {
      td__static_untrace (t);
      d->gap = 1;
      d->wait = 0;
      if (++d->n_equal < d->needed)
        return;
      d->on = false;
      entry->n_uses = 0;
      entry->verify_at = 2;
      td__static_say (s, 1, "its code has been the same %u times: its schedule runs again",
                      d->needed);
      return;
    }
  td__static_remember (s, miss, site);
  s->info.n_differences++;
  td__static_notify (s, TD_STATIC_EVENT_DIFFERS, entry, &s->miss, miss->other);
  d->n_equal = 0;
  d->wait = d->gap - 1;
  d->gap = 2 * d->gap < LONGEST_GAP ? 2 * d->gap : LONGEST_GAP;
  td__static_evict (s, entry);
  td__static_install (s, t);
}

TdStatus
td__doubt_call (TdStatic *s, TdEntry *entry, TdVar *const *in, int n_in, TdVar **out, int n_out,
                const TdSite *site)
{
  TdMiss miss = { NULL, "", NULL };
  TdStatus status;
  TdTrace *t;

  if (s->doubt.wait > 0)
    {
      s->doubt.wait--;
      s->info.state = TD_STATIC_OFF;
      return td__static_run_code (s, in, n_in, out, n_out, site, TD_RUN_CODE);
    }
  t = td__static_trace (s, in, n_in, out, n_out, site, TD_TRACE_FOR_DOUBT, &status);
  if (t == NULL)
    return status;
  td__check_traces (entry->schedule, t->schedule, &miss);
  settle (s, entry, t, &miss, site);
  s->info.state = TD_STATIC_OFF;
  return status;
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
