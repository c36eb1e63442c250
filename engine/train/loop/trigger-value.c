/* Triggers of reported values: the best one so far, and the end of improvement.
 *
 * *Source*: chainer.training.triggers.
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
greater (double best, double now)
{
  return now > best;
}

static bool
less (double best, double now)
{
  return now < best;
}

typedef struct
{
  char *key;
  TdTrigger *interval, *max;
  TdObservation summary; /**< of the values since the last look */
  bool (*better) (double best, double now);
  double best;
  bool has_best, verbose, warned;
  int64_t count, patience;
} Value;

static void
value_free (void *self)
{
  Value *v = self;

  td__trigger_drop (v->interval);
  td__trigger_drop (v->max);
  td_observation_clear (&v->summary);
  free (v->key);
}

/* Collect the value of this iteration. */
static void
collect (Value *v, TdTrainer *trainer)
{
  TdSummary now = td_observation_get (trainer->observation, v->key);

  if (now.n > 0)
    td_observation_add (&v->summary, v->key, now.last, 1);
}

static void
serialize_trigger (TdTrigger *t, const char *name, TdSerializer *s)
{
  td_serializer_enter (s, name);
  td__trigger_serialize (t, s);
  td_serializer_leave (s);
}

/* --- the best value --- */

static bool
best_call (void *self, TdTrainer *trainer)
{
  Value *v = self;
  TdSummary mean;

  collect (v, trainer);
  if (!td_trigger_call (v->interval, trainer))
    return false;
  mean = td_observation_get (&v->summary, v->key);
  td_observation_clear (&v->summary);
  if (mean.n == 0)
    {
      td__fail (TD_ERR_ARG, "td_best_value_trigger", NULL,
                "nothing was reported under \"%s\" since it was asked last", v->key);
      return false;
    }
  if (v->has_best && !v->better (v->best, mean.mean))
    return false;
  v->has_best = true;
  v->best = mean.mean;
  return true;
}

static void
best_serialize (void *self, TdSerializer *s)
{
  Value *v = self;

  serialize_trigger (v->interval, "interval_trigger", s);
  td__observation_serialize (&v->summary, s, "summary");
  td_serialize_double (s, "best_value", &v->best);
  td_serialize_bool (s, "has_best_value", &v->has_best);
}

static const TdTriggerClass best_class = { .size = sizeof (TdTriggerClass),
                                           .name = "BestValueTrigger",
                                           .self_bytes = sizeof (Value),
                                           .call = best_call,
                                           .serialize = best_serialize,
                                           .free = value_free };

static TdTrigger *
best_new (const char *key, bool (*better) (double best, double now), TdTrigger *trigger,
          const char *call)
{
  TdTrigger *t, *interval;
  Value *v;

  if (td__check_thread (call) != TD_OK)
    return td__trigger_inert ();
  if (key == NULL || *key == '\0' || better == NULL)
    {
      td__fail (TD_ERR_ARG, call, NULL, "a key and a comparison expected");
      return td__trigger_inert ();
    }
  interval = td__trigger_or (trigger, 1, "epoch", call);
  if (interval == NULL)
    return td__trigger_inert ();
  t = td_trigger_new (&best_class);
  v = t->self;
  v->key = td__xstrdup (key);
  v->interval = interval;
  v->better = better;
  return t;
}

TdTrigger *
td_best_value_trigger_new (const char *key, bool (*better) (double best, double now),
                           TdTrigger *trigger)
{
  return best_new (key, better, trigger, "td_best_value_trigger_new");
}

TdTrigger *
td_max_value_trigger_new (const char *key, TdTrigger *trigger)
{
  return best_new (key, greater, trigger, "td_max_value_trigger_new");
}

TdTrigger *
td_min_value_trigger_new (const char *key, TdTrigger *trigger)
{
  return best_new (key, less, trigger, "td_min_value_trigger_new");
}

/* --- early stopping --- */

static bool
stopping_call (void *self, TdTrainer *trainer)
{
  Value *v = self;
  TdSummary mean;

  collect (v, trainer);
  if (td_trigger_call (v->max, trainer))
    return true;
  if (!td_trigger_call (v->interval, trainer))
    return false;
  mean = td_observation_get (&v->summary, v->key);
  if (mean.n == 0)
    {
      if (!v->warned)
        fprintf (stderr, "tapedeck: early stopping: nothing is reported under \"%s\"\n",
                 v->key);
      v->warned = true;
      return false;
    }
  td_observation_clear (&v->summary);
  if (v->better (v->best, mean.mean))
    {
      v->best = mean.mean;
      v->count = 0;
    }
  else
    v->count++;
  if (v->count < v->patience)
    return false;
  if (v->verbose)
    printf ("Epoch %lld : early stopping\n", (long long)td_updater_epoch (trainer->updater));
  return true;
}

static void
stopping_serialize (void *self, TdSerializer *s)
{
  Value *v = self;

  serialize_trigger (v->interval, "interval_trigger", s);
  serialize_trigger (v->max, "max_trigger", s);
  td__observation_serialize (&v->summary, s, "summary");
  td_serialize_double (s, "best", &v->best);
  td_serialize_int (s, "count", &v->count);
}

static const TdTriggerClass stopping_class = { .size = sizeof (TdTriggerClass),
                                               .name = "EarlyStoppingTrigger",
                                               .self_bytes = sizeof (Value),
                                               .call = stopping_call,
                                               .serialize = stopping_serialize,
                                               .free = value_free };

const TdTrigger *
td__stopping_max (const TdTrigger *t)
{
  return t->cls == &stopping_class ? ((const Value *)t->self)->max : NULL;
}

TdTrigger *
td_early_stopping_trigger_new_ (TdEarlyStoppingOpt o)
{
  bool is_max = o.mode != NULL && strcmp (o.mode, "max") == 0;
  bool is_auto = o.mode != NULL && strcmp (o.mode, "auto") == 0, rises;
  TdTrigger *t, *interval, *max;
  Value *v;

  if (td__check_thread ("td_early_stopping_trigger_new") != TD_OK)
    return td__trigger_inert ();
  if (o.monitor == NULL || *o.monitor == '\0' || o.patience < 1
      || (!is_max && !is_auto && (o.mode == NULL || strcmp (o.mode, "min") != 0)))
    {
      td__fail (TD_ERR_ARG, "td_early_stopping_trigger_new", NULL,
                "a key to monitor, patience above 0 and mode \"max\", \"min\" or \"auto\" "
                "expected");
      return td__trigger_inert ();
    }
  interval = td__trigger_or (o.check_trigger, 1, "epoch", "td_early_stopping_trigger_new");
  max = td__trigger_or (o.max_trigger, 100, "epoch", "td_early_stopping_trigger_new");
  if (interval == NULL || max == NULL)
    {
      td__trigger_drop (interval);
      td__trigger_drop (max);
      return td__trigger_inert ();
    }
  t = td_trigger_new (&stopping_class);
  v = t->self;
  v->key = td__xstrdup (o.monitor);
  v->interval = interval;
  v->max = max;
  v->patience = o.patience;
  v->verbose = o.verbose;
  rises = is_max || (is_auto && strstr (o.monitor, "accuracy") != NULL);
  v->better = rises ? greater : less;
  v->best = rises ? -(double)INFINITY : (double)INFINITY;
  return t;
}
