/* Verification: what the code did is held against the schedule, first the lists of steps
 * (verify-steps.c), then the numbers.  Arrays of the code's run are kept until the schedule has
 * run.
 *
 * SPDX-License-Identifier: MIT */
#include "verify.h"
#include "host-memory.h"

#include "compute/core/copies.h"

#include "static.h"
#include "notify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAY(miss, ...) snprintf ((miss)->text, sizeof (miss)->text, __VA_ARGS__)

/* --- numbers --- */

static double
number (const void *host, uint8_t dtype, int64_t i)
{
  return td__host_element (host, (TdDtype)dtype, i);
}

/* Bit for bit, but that a NaN is a NaN: which of two a sum takes is nobody's promise.  With
 * fusion, to one unit of the array's largest number for every operation that was fused. */
static bool
near (const void *a, const void *b, const TdNodeInfo *n, uint32_t n_fused, int64_t *at)
{
  int64_t size = td__size (&n->shape);
  size_t bytes = td__dtype_sizes[n->dtype];
  static const double units[]
      = { [TD_F64] = 0x1p-52, [TD_F32] = 0x1p-23, [TD_F16] = 0x1p-10, [TD_BF16] = 0x1p-7 };
  double largest = 0;

  if (memcmp (a, b, (size_t)size * bytes) == 0)
    return true;
  for (*at = 0; *at < size; ++*at)
    if (memcmp ((const char *)a + (size_t)*at * bytes, (const char *)b + (size_t)*at * bytes,
                bytes)
            != 0
        && !(isnan (number (a, n->dtype, *at)) && isnan (number (b, n->dtype, *at))))
      break;
  if (*at == size)
    return true;
  if (n_fused == 0 || n->dtype > TD_BF16)
    return false;
  for (int64_t k = 0; k < size; k++)
    largest = fmax (largest, fabs (number (b, n->dtype, k)));
  for (*at = 0; *at < size; ++*at)
    {
      double x = number (a, n->dtype, *at), y = number (b, n->dtype, *at);
      double unit = units[n->dtype];

      if (!(fabs (x - y) <= n_fused * unit * largest) && !(isnan (x) && isnan (y)) && x != y)
        return false;
    }
  return true;
}

static bool
same_memory (const TdCheck *c, TdDevice *d, const void *replayed, const void *code,
             const TdNodeInfo *n, const char *what, const TdSite *site)
{
  size_t bytes = (size_t)td__size (&n->shape) * td__dtype_sizes[n->dtype];
  const void *a, *b;
  void *copies[2];
  bool same = true;
  char text[80];
  int64_t at;

  if (!d->computes)
    return true;
  a = td__copy_look (d, replayed, bytes, &copies[0], TD_COPY_CHECK, NULL, site);
  b = td__copy_look (d, code, bytes, &copies[1], TD_COPY_CHECK, NULL, site);
  if (a != NULL && b != NULL)
    same = near (a, b, n, c->entry->plan->n_fused, &at);
  if (!same)
    {
      c->miss->guard = "verify";
      c->miss->site = site;
      SAY (c->miss, "%s at %s: element %lld is %.9g by the code, %.9g by the schedule", what,
           td__check_place (site, text, sizeof text), (long long)at, number (b, n->dtype, at),
           number (a, n->dtype, at));
    }
  free (copies[0]);
  free (copies[1]);
  return same;
}

bool
td__check_says (TdMiss *miss, const char *name, const char *format, ...)
{
  va_list args;
  int n = snprintf (miss->text, sizeof miss->text,
                    "backward, %s: ", name != NULL ? name : "a variable from outside");

  va_start (args, format);
  if (n >= 0 && (size_t)n < sizeof miss->text)
    vsnprintf (miss->text + n, sizeof miss->text - (size_t)n, format, args);
  va_end (args);
  miss->guard = "verify";
  return false;
}

bool
td__check_gradient (TdMiss *miss, const void *replayed, const void *code, const TdNode *n,
                    const char *name, uint32_t units)
{
  const TdNodeInfo info = { .dtype = n->dtype, .shape = n->shape };
  int64_t at;

  if (!n->device->computes || near (replayed, code, &info, units, &at))
    return true;
  return td__check_says (miss, name,
                         "element %lld of its gradient is %.9g by the code, %.9g by the "
                         "schedule",
                         (long long)at, number (code, n->dtype, at),
                         number (replayed, n->dtype, at));
}

void
td__check_step (TdCheck *c, const TdInstance *i, const TdStep *step)
{
  const TdSchedule *s = c->entry->schedule;

  for (uint32_t k = 0; k < step->n_out && c->miss->guard == NULL; k++)
    {
      uint32_t node = td__step_out (i->plan->s, step, k), value;

      if (node >= c->code_trace->schedule->n_nodes
          || (step->cls != NULL && k < 32 && step->cls->opaque_out >> k & 1))
        continue; /* made by a pass, or nobody's but backward's */
      value = s->nodes[node].value;
      if (value < c->code_trace->n_kept && c->code_trace->kept[value] != NULL
          && s->values[value].n_writers == 1)
        same_memory (c, s->device, i->address[i->plan->s->nodes[node].value],
                     c->code_trace->kept[value]->data, &s->nodes[node], td__check_kind (step),
                     step->site);
    }
}

static void
check_state (TdCheck *c)
{
  for (uint32_t k = 0; k < c->n_after && c->miss->guard == NULL; k++)
    {
      const TdSavedState *after = &c->after[k];
      const TdBuffer *b = after->buffer;
      const TdNodeInfo all
          = { .dtype = after->dtype,
              .shape = TD_SHAPE ((int64_t)(b->bytes / td__dtype_sizes[after->dtype])) };
      const void *now;
      void *copy;
      int64_t at;

      if (!b->device->computes)
        continue;
      now = td__copy_look (b->device, b->data, b->bytes, &copy, TD_COPY_CHECK, NULL, b->writer);
      if (now != NULL && !near (now, after->bytes, &all, c->entry->plan->n_fused, &at))
        {
          c->miss->guard = "verify";
          c->miss->site = b->writer;
          SAY (c->miss,
               "state that the code writes: element %lld is %.9g by the code, %.9g by the "
               "schedule",
               (long long)at, number (after->bytes, after->dtype, at),
               number (now, after->dtype, at));
        }
      free (copy);
    }
}

void
td__check_end (TdCheck *c, const TdInstance *i)
{
  const TdEngine *e = &td__engine;

  (void)i;
  check_state (c);
  if (c->miss->guard != NULL
      || (e->rng_seed == c->key_after.seed && e->rng_offset == c->key_after.offset))
    return;
  c->miss->guard = "verify";
  SAY (c->miss, "the code takes %llu random numbers, the schedule %llu",
       (unsigned long long)(c->key_after.offset - c->key.offset),
       (unsigned long long)(e->rng_offset - c->key.offset));
}

/* --- a verified call --- */

void
td_static_verify_next (TdStatic *s)
{
  if (!td__stranger ("td_static_verify_next") && s != NULL)
    s->verify_next = true;
}

static uint32_t
save (const TdSchedule *s, TdVar *const *in, TdSavedState **saved)
{
  TdVar **externals = td__xmalloc ((s->n_externals + 1) * sizeof *externals);
  uint32_t n;

  for (uint32_t k = 0; k < s->n_externals; k++)
    externals[k] = k < s->n_arguments ? in[k] : s->externals[k].var;
  n = td__state_save (s, externals, saved);
  free (externals);
  return n;
}

static TdRngKey
place_in_stream (void)
{
  return (TdRngKey){ td__engine.rng_seed, td__engine.rng_offset };
}

static void
go_to (TdRngKey key)
{
  td__engine.rng_seed = key.seed;
  td__engine.rng_offset = key.offset;
}

/* From the state before, the schedule; what it makes is compared, and undone if it differs. */
static TdStatus
replay_beside (TdCheck *c, TdStatic *s, TdEntry *entry, TdVar *const *in, TdVar **out,
               const TdSite *site)
{
  TdInstance *i = td__static_instance (s, entry, site);
  TdMiss guard = { NULL, "", NULL };
  TdStatus status = TD_ERR_MEMORY;

  c->instance = i;
  c->n_after = save (entry->schedule, in, &c->after);
  td__state_restore (c->before, c->n_before, true);
  c->before = NULL;
  c->n_before = 0;
  go_to (c->key);
  if (i != NULL)
    status = td__replay_forward (entry, i, in, out, site, &guard, c);
  if (status == TD_OK)
    td__check_end (c, i);
  else if (guard.guard != NULL)
    *c->miss = guard;
  if (c->miss->guard != NULL || status != TD_OK)
    {
      td__state_restore (c->after, c->n_after, true);
      go_to (c->key_after);
      if (status == TD_OK)
        td__static_notify_run (TD_RUN_DISCARDED, TD_RUN_REPLAYED, entry->function, 0, 0);
    }
  else
    td__state_restore (c->after, c->n_after, false);
  return guard.guard != NULL ? TD_OK : status;
}

/* What the code says now that the schedule does not know. */
static void
no_trace (const TdStatic *s, TdStatus status, TdMiss *miss)
{
  miss->guard = "verify";
  if (status != TD_OK)
    SAY (miss, "the code fails now: %.180s", td__engine.error.message);
  else
    {
      miss->site = s->miss.site;
      SAY (miss, "no schedule can be made of the code now: %.160s", s->miss.text);
    }
}

/* The code's results, held while its scope ends. */
static void
hold_results (TdVar **out, TdVar **held, int n_out, bool hold)
{
  for (int k = 0; k < n_out; k++)
    if (held[k]->state == TD_VAR_POISON)
      out[k] = held[k];
    else if (hold)
      td__var_ref (held[k], TD_HOLD_ENGINE);
    else
      {
        if (out != NULL)
          out[k] = td__scope_add (held[k]);
        td__var_unref (held[k], TD_HOLD_ENGINE);
      }
}

/* The code ran again: what it does in C was done twice. */
static void
notify_verified (TdStatic *s, const TdEntry *entry)
{
  TdMiss note = { NULL, "", NULL };

  snprintf (
      note.text, sizeof note.text,
      "call %llu: the code ran again beside its schedule, and what it does in C shows twice",
      (unsigned long long)(entry->n_uses + 1));
  td__static_notify (s, TD_STATIC_EVENT_VERIFIED, entry, &note, NULL);
}

/* The steps were the same, and yet the schedule cannot do what the code did. */
static TdStatus
undone (const TdStatic *s, TdVar **out, int n_out, const TdSite *site)
{
  for (int k = 0; k < n_out; k++)
    out[k] = td__poison ();
  return td__fail (TD_ERR_STATE, s->name, site, "its schedule does not run as its code did");
}

TdStatus
td__verify_call (TdStatic *s, TdEntry *entry, TdVar *const *in, int n_in, TdVar **out,
                 int n_out, const TdSite *site, TdVerify how)
{
  TdMiss miss = { NULL, "", NULL };
  TdCheck c = { .entry = entry, .miss = &miss, .key = place_in_stream () };
  TdVar **held = td__xcalloc ((size_t)n_out + 1, sizeof *held);
  TdStatus status, replayed = TD_OK;
  uint64_t n_printed = 0;
  TdScope *scope;

  td__entry_ref (entry);
  s->verify_next = false;
  s->n_unverified = 0;
  s->info.n_verified++;
  c.n_before = save (entry->schedule, in, &c.before);
  scope = td_scope_open_at ("verify", site);
  td__stdout_count (true, NULL);
  c.code_trace = td__static_trace (
      s, in, n_in, held, n_out, site,
      how == TD_VERIFY_ALL ? TD_TRACE_FOR_NUMBERS : TD_TRACE_FOR_VERIFICATION, &status);
  td__stdout_count (false, &n_printed);
  c.key_after = place_in_stream ();
  hold_results (out, held, n_out, true);
  td_scope_close (scope);
  if (c.code_trace == NULL)
    no_trace (s, status, &miss);
  else if (td__check_traces (entry->schedule, c.code_trace->schedule, &miss))
    {
      if (how == TD_VERIFY_STEPS) /* its graph makes room for the schedule's */
        {
          hold_results (NULL, held, n_out, false);
          free (held);
          held = NULL;
        }
      replayed = replay_beside (&c, s, entry, in, out, site);
    }
  td__state_restore (c.before, c.n_before, false);
  if (miss.guard == NULL)
    {
      td__static_notify_run (TD_RUN_DISCARDED, TD_RUN_VERIFICATION, entry->function, 0, 0);
      td__static_notify_side_effects (s, c.code_trace->guards, n_printed);
      if (replayed == TD_OK && entry->keeps_graph && how != TD_VERIFY_STEPS)
        {
          c.instance->code_graph = td__code_graph_new (c.code_trace, held, (uint32_t)n_out);
          held = NULL;
        }
      else
        {
          if (held != NULL)
            hold_results (NULL, held, n_out, false);
          td__static_untrace (c.code_trace);
        }
      s->info.unverified_since = td__engine.iteration;
      status = replayed;
      if (status == TD_OK)
        {
          s->info.n_replays++;
          s->info.state = TD_STATIC_STATIC;
          s->hopeless.n = 0;
          entry->n_replays++;
          td__static_is_equal (s);
          td__static_notify (s, TD_STATIC_EVENT_REPLAYED, entry, NULL, NULL);
          notify_verified (s, entry);
        }
    }
  else
    {
      if (held != NULL)
        hold_results (out, held, n_out, false);
      else
        status = undone (s, out, n_out, site);
      td__static_count_code (s);
      if (strcmp (miss.guard, "verify") == 0)
        td__verify_differs (s, entry, &miss, site);
      else
        {
          td__static_remember (s, &miss, site);
          s->info.n_misses++;
          td__static_notify (s, TD_STATIC_EVENT_MISSED, entry, &s->miss, NULL);
        }
      if (entry->owner != NULL)
        td__static_evict (s, entry);
      if (c.code_trace != NULL)
        td__static_install (s, c.code_trace);
      if (strcmp (miss.guard, "verify") == 0)
        td__doubt_begin (s);
    }
  td__entry_unref (entry);
  free (held);
  return status;
}
