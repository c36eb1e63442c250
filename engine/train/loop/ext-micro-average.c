/* MicroAverage: the sum of one key over the sum of another.
 *
 * *Source*: chainer.training.extensions.MicroAverage.
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include <stdlib.h>

typedef struct
{
  char *numerator_key, *denominator_key, *result_key;
  double numerator, denominator;
  TdTrigger *trigger;
} MicroAverage;

static TdStatus
average_call (void *self, TdTrainer *t)
{
  MicroAverage *m = self;
  TdSummary a = td_observation_get (t->observation, m->numerator_key);
  TdSummary b = td_observation_get (t->observation, m->denominator_key);

  if (a.n == 0 || b.n == 0)
    return TD_OK;
  m->numerator += a.last;
  m->denominator += b.last;
  if (!td_trigger_call (m->trigger, t))
    return TD_OK;
  td_report (m->result_key, m->numerator / m->denominator);
  m->numerator = m->denominator = 0;
  return TD_OK;
}

static void
average_serialize (void *self, TdSerializer *s)
{
  MicroAverage *m = self;

  td_serializer_enter (s, "_trigger");
  td__trigger_serialize (m->trigger, s);
  td_serializer_leave (s);
  td_serialize_double (s, "_numerator", &m->numerator);
  td_serialize_double (s, "_denominator", &m->denominator);
}

static void
average_free (void *self)
{
  MicroAverage *m = self;

  td__trigger_drop (m->trigger);
  free (m->numerator_key);
  free (m->denominator_key);
  free (m->result_key);
}

static const TdExtensionClass average_class = { .size = sizeof (TdExtensionClass),
                                                .name = "MicroAverage",
                                                .self_bytes = sizeof (MicroAverage),
                                                .priority = TD_PRIORITY_EDITOR,
                                                .call = average_call,
                                                .serialize = average_serialize,
                                                .free = average_free };

TdExtension *
td_ext_micro_average (const char *numerator_key, const char *denominator_key,
                      const char *result_key, TdTrigger *trigger)
{
  TdExtension *x;
  MicroAverage *m;

  if (td__check_thread ("td_ext_micro_average") != TD_OK)
    return td__extension_inert ();
  if (numerator_key == NULL || denominator_key == NULL || result_key == NULL)
    {
      td__fail (TD_ERR_ARG, "td_ext_micro_average", NULL, "three keys expected");
      return td__extension_inert ();
    }
  trigger = td__trigger_or (trigger, 1, "epoch", "td_ext_micro_average");
  if (trigger == NULL)
    return td__extension_inert ();
  x = td_extension_new (&average_class);
  m = x->self;
  m->numerator_key = td__xstrdup (numerator_key);
  m->denominator_key = td__xstrdup (denominator_key);
  m->result_key = td__xstrdup (result_key);
  m->trigger = trigger;
  return x;
}
