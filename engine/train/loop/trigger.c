/* Triggers of time: intervals, schedules, once, seconds.
 *
 * *Source*: chainer.training.triggers.
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- what all triggers share --- */

TdTrigger *
td__trigger_inert (void)
{
  static TdTrigger inert = { .inert = true };

  return &inert;
}

static void
trigger_free (void *object)
{
  TdTrigger *t = object;

  if (t->cls->free != NULL)
    t->cls->free (t->self);
  free (t->self);
  *t = (TdTrigger){ .inert = true, .object.freed = true };
  td__shell_keep (t);
}

TdTrigger *
td_trigger_new (const TdTriggerClass *cls)
{
  TdTrigger *t;

  if (td__check_thread ("td_trigger_new") != TD_OK)
    return td__trigger_inert ();
  if (cls == NULL || cls->size != sizeof *cls || cls->call == NULL)
    {
      td__fail (TD_ERR_ARG, "td_trigger_new", NULL, "a class with its size and call expected");
      return td__trigger_inert ();
    }
  t = td__xcalloc (1, sizeof *t);
  t->cls = cls;
  t->self = td__xcalloc (1, cls->self_bytes);
  td__object_add (&t->object, trigger_free);
  return t;
}

void *
td_trigger_self (TdTrigger *t)
{
  return td__stranger ("td_trigger_self") || t == NULL ? NULL : t->self;
}

void
td_trigger_free (TdTrigger *t)
{
  if (td__stranger ("td_trigger_free") || t == NULL || t->inert || t->owned
      || !td__engine.started)
    return;
  td__object_remove (&t->object);
  trigger_free (t);
}

void
td__trigger_drop (TdTrigger *t)
{
  if (t != NULL && !t->inert)
    trigger_free (t);
}

TdTrigger *
td__trigger_take (TdTrigger *t, const char *call)
{
  if (t == NULL || t->inert || t->owned)
    {
      td__fail (TD_ERR_STATE, call, NULL, "%s",
                t == NULL         ? "the trigger is NULL"
                : t->object.freed ? "the trigger was freed"
                : t->inert        ? "the trigger is inert: its constructor failed before"
                                  : "the trigger belongs to another owner already");
      return NULL;
    }
  td__object_remove (&t->object);
  t->owned = true;
  return t;
}

TdTrigger *
td__trigger_or (TdTrigger *t, double period, const char *unit, const char *call)
{
  return td__trigger_take (t != NULL ? t : td_interval_trigger_new (period, unit), call);
}

bool
td_trigger_call (TdTrigger *t, TdTrainer *trainer)
{
  return td__trainer_usable (trainer, "td_trigger_call") && t != NULL && !t->inert
         && t->cls->call (t->self, trainer);
}

void
td__trigger_serialize (TdTrigger *t, TdSerializer *s)
{
  if (t->cls->serialize != NULL)
    t->cls->serialize (t->self, s);
}

/* "epoch" or "iteration"; false after td__fail. */
static bool
unit_is_epoch (const char *unit, bool *is_epoch, const char *call)
{
  *is_epoch = unit != NULL && strcmp (unit, "epoch") == 0;
  if (*is_epoch || (unit != NULL && strcmp (unit, "iteration") == 0))
    return true;
  td__fail (TD_ERR_ARG, call, NULL, "unit \"iteration\" or \"epoch\" expected, got \"%s\"",
            unit != NULL ? unit : "(null)");
  return false;
}

/* --- where the updater was the last time, and where it is --- */

typedef struct
{
  bool is_epoch;
  double period;
  double *points;
  int n_points;
  bool finished;
  int64_t previous_iteration;
  double previous_epoch_detail;
} Timed;

static void
step (Timed *t, TdTrainer *trainer, double *previous, double *now)
{
  const TdUpdater *u = trainer->updater;

  *now = t->is_epoch ? td_updater_epoch_detail (u) : (double)u->iteration;
  *previous = t->is_epoch ? t->previous_epoch_detail : (double)t->previous_iteration;
  if (*previous < 0) /* a snapshot that does not say */
    *previous = t->is_epoch ? td_updater_previous_epoch_detail (u) : *now - 1;
  t->previous_iteration = u->iteration;
  t->previous_epoch_detail = td_updater_epoch_detail (u);
}

static void
timed_serialize (void *self, TdSerializer *s)
{
  Timed *t = self;

  td_serialize_int (s, "previous_iteration", &t->previous_iteration);
  td_serialize_double (s, "previous_epoch_detail", &t->previous_epoch_detail);
}

static bool
interval_call (void *self, TdTrainer *trainer)
{
  Timed *t = self;
  double previous, now;

  step (t, trainer, &previous, &now);
  return floor (previous / t->period) != floor (now / t->period);
}

static const TdTriggerClass interval_class = { .size = sizeof (TdTriggerClass),
                                               .name = "IntervalTrigger",
                                               .self_bytes = sizeof (Timed),
                                               .call = interval_call,
                                               .serialize = timed_serialize };

TdTrigger *
td_interval_trigger_new (double period, const char *unit)
{
  TdTrigger *t;
  bool is_epoch;

  if (td__check_thread ("td_interval_trigger_new") != TD_OK
      || !unit_is_epoch (unit, &is_epoch, "td_interval_trigger_new"))
    return td__trigger_inert ();
  if (!(period > 0) || isinf (period))
    {
      td__fail (TD_ERR_ARG, "td_interval_trigger_new", NULL,
                "a period above 0 expected, got %g", period);
      return td__trigger_inert ();
    }
  t = td_trigger_new (&interval_class);
  ((Timed *)t->self)->period = period;
  ((Timed *)t->self)->is_epoch = is_epoch;
  return t;
}

bool
td__trigger_length (const TdTrigger *t, double *length, bool *by_epoch)
{
  const Timed *timed = t->self;

  if (t->cls != &interval_class)
    return td__stopping_max (t) != NULL
           && td__trigger_length (td__stopping_max (t), length, by_epoch);
  *length = timed->period;
  *by_epoch = timed->is_epoch;
  return true;
}

static bool
schedule_call (void *self, TdTrainer *trainer)
{
  Timed *t = self;
  double previous, now;
  bool fire = false;

  step (t, trainer, &previous, &now);
  t->finished = true;
  for (int i = 0; i < t->n_points; i++)
    {
      fire = fire || (previous < t->points[i] && t->points[i] <= now);
      t->finished = t->finished && t->points[i] <= now;
    }
  return fire;
}

static void
schedule_free (void *self)
{
  free (((Timed *)self)->points);
}

static const TdTriggerClass schedule_class = { .size = sizeof (TdTriggerClass),
                                               .name = "ManualScheduleTrigger",
                                               .self_bytes = sizeof (Timed),
                                               .call = schedule_call,
                                               .serialize = timed_serialize,
                                               .free = schedule_free };

TdTrigger *
td_manual_schedule_trigger_new (const double *points, int n, const char *unit)
{
  TdTrigger *t;
  Timed *timed;
  bool is_epoch;

  if (td__check_thread ("td_manual_schedule_trigger_new") != TD_OK
      || !unit_is_epoch (unit, &is_epoch, "td_manual_schedule_trigger_new"))
    return td__trigger_inert ();
  if (n < 1 || points == NULL)
    {
      td__fail (TD_ERR_ARG, "td_manual_schedule_trigger_new", NULL,
                "at least one point expected");
      return td__trigger_inert ();
    }
  t = td_trigger_new (&schedule_class);
  timed = t->self;
  timed->is_epoch = is_epoch;
  timed->points = td__xcalloc ((size_t)n, sizeof *points);
  memcpy (timed->points, points, (size_t)n * sizeof *points);
  timed->n_points = n;
  return t;
}

/* --- once --- */

typedef struct
{
  bool first, resumed;
} Once;

static bool
once_call (void *self, TdTrainer *trainer)
{
  Once *o = self;
  bool fire = o->first || o->resumed;

  (void)trainer;
  o->first = o->resumed = false;
  return fire;
}

static void
once_serialize (void *self, TdSerializer *s)
{
  td_serialize_bool (s, "_flag_first", &((Once *)self)->first);
}

static const TdTriggerClass once_class = { .size = sizeof (TdTriggerClass),
                                           .name = "OnceTrigger",
                                           .self_bytes = sizeof (Once),
                                           .call = once_call,
                                           .serialize = once_serialize };

TdTrigger *
td_once_trigger_new (bool call_on_resume)
{
  TdTrigger *t = td_trigger_new (&once_class);

  if (!t->inert)
    *(Once *)t->self = (Once){ true, call_on_resume };
  return t;
}

bool
td_trigger_finished (const TdTrigger *t)
{
  if (td__asked ("td_trigger_finished") || t == NULL || t->inert)
    return true;
  if (t->cls == &once_class)
    return !((const Once *)t->self)->first && !((const Once *)t->self)->resumed;
  return t->cls == &schedule_class && ((const Timed *)t->self)->finished;
}

/* --- seconds --- */

typedef struct
{
  double period, next;
} Seconds;

static bool
seconds_call (void *self, TdTrainer *trainer)
{
  Seconds *t = self;

  if (td_trainer_elapsed_time (trainer) <= t->next)
    return false;
  t->next += t->period;
  return true;
}

static void
seconds_serialize (void *self, TdSerializer *s)
{
  td_serialize_double (s, "next_time", &((Seconds *)self)->next);
}

static const TdTriggerClass seconds_class = { .size = sizeof (TdTriggerClass),
                                              .name = "TimeTrigger",
                                              .self_bytes = sizeof (Seconds),
                                              .call = seconds_call,
                                              .serialize = seconds_serialize };

TdTrigger *
td_time_trigger_new (double seconds)
{
  TdTrigger *t;

  if (td__check_thread ("td_time_trigger_new") != TD_OK)
    return td__trigger_inert ();
  if (!(seconds > 0) || isinf (seconds))
    {
      td__fail (TD_ERR_ARG, "td_time_trigger_new", NULL, "seconds above 0 expected, got %g",
                seconds);
      return td__trigger_inert ();
    }
  t = td_trigger_new (&seconds_class);
  if (!t->inert)
    *(Seconds *)t->self = (Seconds){ seconds, seconds };
  return t;
}
