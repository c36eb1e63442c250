/* Running a keyframe's operations again.  See recompute.h.
 *
 * SPDX-License-Identifier: MIT */
#include "recompute-private.h"

#include "recorder.h"
#include "host-memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
td__recompute_refuse (TdRecompute *c, const char *format, ...)
{
  va_list args;

  if (c->result->text[0] == '\0')
    {
      va_start (args, format);
      vsnprintf (c->result->text, sizeof c->result->text, format, args);
      va_end (args);
    }
  return false;
}

void
td__recompute_event_text (const TdRecompute *c, uint32_t event, char *text, size_t size)
{
  const TdTapeEvent *e = &c->it->events[event];
  const char *path = td_tape_reader_path_text (c->r, e->path);
  char site[256];

  td_tape_reader_site_text (c->r, e->site, site, sizeof site);
  snprintf (text, size, "event %u, %.60s%s%.80s%s%s%.200s", event,
            td_tape_reader_op_name (c->r, e->opdef), path[0] != '\0' ? " (" : "", path,
            path[0] != '\0' ? ")" : "", site[0] != '\0' ? " at " : "", site);
}

bool
td__recompute_room (TdRecompute *c, uint64_t bytes)
{
  char *larger;

  if (bytes < c->room)
    return true;
  larger = bytes < UINT64_MAX / 2 ? realloc (c->host, bytes + 1) : NULL;
  if (larger == NULL)
    return td__recompute_refuse (c, "no memory for an array of %" PRIu64 " bytes", bytes);
  c->host = larger;
  c->room = bytes + 1;
  return true;
}

/* --- what came out --- */

static void
say_difference (TdRecompute *c, uint32_t event, uint32_t var, const char *how)
{
  char what[400];

  c->result->n_differ++;
  td__recompute_event_text (c, event, what, sizeof what);
  td__recompute_refuse (c, "%s: v%u differs from the recorded one: %s", what, var, how);
}

static void
compare_stats (TdRecompute *c, uint32_t event, uint32_t var, const TdTapeStats *now)
{
  for (uint32_t k = c->first_stats[event]; k < c->first_stats[event + 1]; k++)
    {
      TdTapeStats then = c->it->stats[c->stats_order[k]];
      char how[120];

      if (then.var != var)
        continue;
      then.event = now->event;
      c->result->n_compared++;
      if (memcmp (&then, now, sizeof then) == 0)
        return;
      snprintf (how, sizeof how, "mean %.9g and norm %.9g, not %.9g and %.9g", now->mean,
                now->l2, then.mean, then.l2);
      say_difference (c, event, var, how);
      return;
    }
}

/* With the elements, where the tape has them; these are in c->host. */
static void
compare_elements (TdRecompute *c, uint32_t event, uint32_t var, uint64_t bytes)
{
  const TdTapeIteration *it = c->it;

  while (c->next_value < it->n_tensors
         && td__recompute_before (&it->tensors[c->next_value]) <= event)
    c->next_value++;
  for (uint32_t k = c->next_value; k < it->n_tensors; k++)
    {
      const TdTapeTensorRef *ref = &it->tensors[k];
      TdTapeTensorRecord record;
      char *then;

      if (ref->event != event)
        return;
      if (ref->var != var || (ref->flags & TD_TAPE_TENSOR_BEFORE))
        continue;
      then = malloc (bytes + 1);
      if (then != NULL
          && td_tape_tensor_read (c->r, ref, &record, then, 0, bytes) == (int64_t)bytes)
        {
          c->result->n_bitwise++;
          if (memcmp (then, c->host, bytes) != 0)
            say_difference (c, event, var, "not all elements are the same");
        }
      free (then);
      return;
    }
}

/* Hold a variable, as it is after the event, against the tape, and write it. */
static bool
take (TdRecompute *c, uint32_t event, uint32_t var, bool opaque)
{
  const TdVar *v = c->vars[var];
  TdTapeStats now;

  td__recorder_stats_of (v->node, v->buffer, td_tape_var_id (c->it, var), &now);
  now.var = var;
  now.event = event;
  if (!td__recompute_room (c, v->buffer->bytes)
      || td_read (v, c->host, v->buffer->bytes) != TD_OK)
    return false;
  if (!opaque)
    {
      compare_stats (c, event, var, &now);
      compare_elements (c, event, var, v->buffer->bytes);
    }
  return td__recompute_put (c, var, event, 0, &now);
}

/* --- one event --- */

static bool
is_recorded_shape (const TdRecompute *c, uint32_t var, const TdVar *v)
{
  const TdTapeVar *then = &c->it->vars[var];

  if (then->dtype != v->node->dtype || then->ndim != v->node->shape.ndim)
    return false;
  for (unsigned d = 0; d < then->ndim; d++)
    if (c->it->dims[then->first_dim + d] != v->node->shape.dim[d])
      return false;
  return true;
}

/* The device's taste in layouts is in the recording already: its changes are events. */
static bool
has_channels_last (const TdRecompute *c, const TdTapeEvent *e)
{
  for (uint32_t k = 0; k < e->n_in; k++)
    if (c->it->vars[c->it->ins[e->first_in + k]].flags & TD_TAPE_VAR_CHANNELS_LAST)
      return true;
  for (uint32_t k = 0; k < e->n_out; k++)
    if (c->it->vars[c->it->outs[e->first_out + k]].flags & TD_TAPE_VAR_CHANNELS_LAST)
      return true;
  return false;
}

static void
drop (TdRecompute *c, uint32_t var)
{
  if (c->vars[var] != NULL)
    td_release (c->vars[var]);
  c->vars[var] = NULL;
}

static bool
apply (TdRecompute *c, uint32_t i, TdVar **in, TdVar **out)
{
  const TdTapeIteration *it = c->it;
  const TdTapeEvent *e = &it->events[i];
  const TdTapeCall *call = c->calls[i];
  const uint32_t into = call != NULL ? call->into : TD_TAPE_NONE;
  void *attrs = call != NULL && call->n_bytes > 0 ? td__xmalloc (call->n_bytes) : NULL;
  TdStatus status;

  if (attrs != NULL)
    memcpy (attrs, it->call_words + call->first_word, call->n_bytes);
  for (uint32_t k = 0; k < e->n_in; k++)
    in[k] = c->vars[it->ins[e->first_in + k]];
  td__engine.phase = (TdPhase)e->phase;
  td__engine.config.channels_last = has_channels_last (c, e);
  td__engine.into = into != TD_TAPE_NONE ? c->vars[into] : NULL;
  status = td__apply_at (c->classes[i], attrs, in, e->n_in, out, e->n_out, NULL);
  td__engine.into = NULL;
  td__engine.phase = TD_PHASE_FORWARD;
  free (attrs);
  if (status != TD_OK)
    return td__recompute_refuse (c, "event %u: %.500s", i, td__engine.error.message);
  for (uint32_t k = 0; k < e->n_out; k++)
    if (!is_recorded_shape (c, it->outs[e->first_out + k], out[k]))
      return td__recompute_refuse (c, "event %u: output %u has another shape than it had", i,
                                   k);
  if (into != TD_TAPE_NONE && e->n_out > 0 && out[0] != c->vars[into])
    return td__recompute_refuse (c, "event %u: it did not add to v%u, as it did then", i, into);
  return true;
}

/* What the event wrote: its outputs, what it added to, what it changed in place. */
static bool
take_all (TdRecompute *c, uint32_t i)
{
  const TdTapeEvent *e = &c->it->events[i];
  const TdOpClass *cls = c->classes[i];
  const uint32_t into = c->calls[i] != NULL ? c->calls[i]->into : TD_TAPE_NONE;

  for (uint32_t k = 0; k < e->n_out; k++)
    if (!take (c, i, c->it->outs[e->first_out + k], td__bit (cls->opaque_out, (int)k)))
      return false;
  if (into != TD_TAPE_NONE && !take (c, i, into, false))
    return false;
  for (uint32_t k = 0; k < e->n_in; k++)
    if (td__bit (cls->writes, (int)k) && !take (c, i, c->it->ins[e->first_in + k], false))
      return false;
  return true;
}

static bool
run_event (TdRecompute *c, uint32_t i)
{
  const TdTapeEvent *e = &c->it->events[i];
  TdVar **in = td__xmalloc ((e->n_in + 1u) * sizeof *in),
        **out = td__xcalloc (e->n_out + 1u, sizeof *out);
  bool good = apply (c, i, in, out);

  for (uint32_t k = 0; good && k < e->n_out; k++)
    {
      const uint32_t var = c->it->outs[e->first_out + k];

      td_retain (out[k]);
      drop (c, var);
      c->vars[var] = out[k];
    }
  free (in);
  free (out);
  good = good && take_all (c, i);
  for (uint32_t k = 0; k < e->n_in; k++)
    if (c->last_use[c->it->ins[e->first_in + k]] <= i)
      drop (c, c->it->ins[e->first_in + k]);
  for (uint32_t k = 0; k < e->n_out; k++)
    if (c->last_use[c->it->outs[e->first_out + k]] <= i)
      drop (c, c->it->outs[e->first_out + k]);
  return good;
}

/* --- the iteration --- */

/* Statistics in the order of events; within one, as they were written. */
static bool
sort_stats (TdRecompute *c)
{
  const TdTapeIteration *it = c->it;
  uint32_t *first = calloc (it->n_events + 2u, sizeof *first);

  c->first_stats = first;
  c->stats_order = calloc (it->n_stats + 1u, sizeof *c->stats_order);
  if (first == NULL || c->stats_order == NULL)
    return false;
  for (uint32_t k = 0; k < it->n_stats; k++)
    if (it->stats[k].event < it->n_events)
      first[it->stats[k].event + 1]++;
  for (uint32_t i = 0; i < it->n_events; i++)
    first[i + 1] += first[i];
  for (uint32_t k = 0; k < it->n_stats; k++) /* moves each event's start to its end */
    if (it->stats[k].event < it->n_events)
      c->stats_order[first[it->stats[k].event]++] = k;
  memmove (first + 1, first, it->n_events * sizeof *first);
  first[0] = 0;
  return true;
}

static TdRecomputeOutcome
run_all (TdRecompute *c)
{
  const TdRecomputeOptions *o = c->options;
  const TdTapeIteration *it = c->it;

  for (uint32_t i = 0; i < it->n_events; i++)
    {
      TdScope *scope;
      bool good;

      if (o->cancel != NULL && *o->cancel)
        return TD_RECOMPUTE_CANCELLED;
      scope = td_scope_open ("recompute");
      good = td__recompute_inputs (c, i) && (c->classes[i] == NULL || run_event (c, i));
      td_scope_close (scope);
      if (!good)
        return td_tape_writer_error (c->out.w) != NULL ? TD_RECOMPUTE_FAILED
                                                       : TD_RECOMPUTE_REFUSED;
      c->result->n_events += c->classes[i] != NULL;
      if (o->progress != NULL)
        o->progress (o->user, i + 1, it->n_events);
    }
  return c->result->n_differ > 0 ? TD_RECOMPUTE_DIFFERS : TD_RECOMPUTE_EQUAL;
}

static bool
begin (TdRecompute *c)
{
  const TdTapeIteration *it = c->it;

  c->classes = calloc (it->n_events + 1u, sizeof (void *));
  c->calls = calloc (it->n_events + 1u, sizeof (void *));
  c->last_use = calloc (it->n_vars + 1u, sizeof *c->last_use);
  c->vars = calloc (it->n_vars + 1u, sizeof *c->vars);
  if (c->classes == NULL || c->calls == NULL || c->last_use == NULL || c->vars == NULL
      || !sort_stats (c))
    return td__recompute_refuse (c, "no memory for its %u events", it->n_events);
  return td__recompute_prepare (c);
}

static TdRecomputeOutcome
run (TdRecompute *c)
{
  const int enable_backprop = td__engine.config.enable_backprop;
  const int channels_last = td__engine.config.channels_last;
  TdRecomputeOutcome outcome;
  bool whole;

  if (!begin (c))
    return TD_RECOMPUTE_REFUSED;
  if (!td__recompute_open (c))
    return TD_RECOMPUTE_FAILED;
  td__engine.config.enable_backprop = 0;
  outcome = run_all (c);
  td__engine.config.enable_backprop = enable_backprop;
  td__engine.config.channels_last = channels_last;
  for (uint32_t v = 0; v < c->it->n_vars; v++)
    drop (c, v);
  if (td__engine.has_error)
    td__recompute_refuse (c, "%.600s", td__engine.error.message);
  td_error_clear ();
  whole = outcome == TD_RECOMPUTE_EQUAL || outcome == TD_RECOMPUTE_DIFFERS;
  return td__recompute_close (c, whole) || !whole ? outcome : TD_RECOMPUTE_FAILED;
}

/* Damage looks like a wrong sum: it is named first. */
static void
name_damage (const TdRecompute *c)
{
  TdTapeCheck check;
  char what[sizeof c->result->text];

  if (!td_tape_check (c->options->tape, &check) || check.whole)
    return;
  memcpy (what, c->result->text, sizeof what);
  snprintf (c->result->text, sizeof c->result->text,
            "the tape is damaged at offset %" PRIu64 ": %.160s; see tapedeck check.  %.500s",
            check.first_bad, check.what, what);
}

TdRecomputeOutcome
td_recompute (const TdRecomputeOptions *options, TdRecomputeResult *result)
{
  TdRecompute c = { .options = options, .result = result };
  TdRecomputeOutcome outcome = TD_RECOMPUTE_FAILED;
  char error[400] = "";

  *result = (TdRecomputeResult){ 0 };
  c.r = td_tape_reader_open (options->tape, error, sizeof error);
  if (c.r != NULL)
    td_tape_reader_poll (c.r);
  c.it = c.r != NULL ? td_tape_iteration_load (c.r, options->iteration, error, sizeof error)
                     : NULL;
  if (c.r == NULL)
    td__recompute_refuse (&c, "%.300s: %.400s", options->tape, error);
  else if (c.it == NULL)
    {
      td__recompute_refuse (&c, "%.400s", error);
      outcome = TD_RECOMPUTE_REFUSED;
    }
  else
    outcome = run (&c);
  if (c.it != NULL && (outcome == TD_RECOMPUTE_DIFFERS || outcome == TD_RECOMPUTE_REFUSED))
    name_damage (&c);
  free (c.classes);
  free (c.calls);
  free (c.last_use);
  free (c.first_stats);
  free (c.stats_order);
  free (c.vars);
  free (c.host);
  td_tape_iteration_free (c.it);
  td_tape_reader_free (c.r);
  return outcome;
}
