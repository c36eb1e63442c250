/* An extension that makes of what each rank reports under a key the mean of all ranks' values.
 *
 * *Source*: chainermn.extensions.ObservationAggregator, with its default aggregator.
 * SPDX-License-Identifier: MIT */
#include "comm.h"
#include "host-memory.h"

#include "train/loop/trainer.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdComm *comm;
  char *key, *result_key;
  double sum, count; /* since all have met last */
  TdTrigger *trigger;
} Aggregator;

static TdStatus
add_up (Aggregator *a)
{
  double numbers[] = { a->sum, a->count };
  char why[TD_WHY_WIRE] = "";
  TdStatus status;
  TdMeet mine;

  if (!td__comm_usable (a->comm, "td_observation_aggregator_new", NULL))
    return td__error_status ();
  mine = td__meet_of (TD_MEET_AGGREGATOR, NULL, NULL);
  mine.digest = td__digest (0, a->key, strlen (a->key));
  status = td__meet (a->comm, &mine, NULL);
  if (status != TD_OK)
    return status;
  if (!td__wait_sum (a->comm, numbers, 2, TD_WIRE_F64, why, NULL))
    return td__comm_fail (a->comm, why, NULL);
  if (numbers[1] > 0) /* else nobody has reported it */
    td_report (a->result_key, numbers[0] / numbers[1]);
  a->sum = a->count = 0;
  return TD_OK;
}

static TdStatus
aggregator_call (void *self, TdTrainer *t)
{
  Aggregator *a = self;
  const TdSummary s = td_observation_get (t->observation, a->key);

  if (s.n > 0)
    {
      a->sum += s.last;
      a->count++;
    }
  return a->trigger == NULL || td_trigger_call (a->trigger, t) ? add_up (a) : TD_OK;
}

static void
aggregator_serialize (void *self, TdSerializer *s)
{
  Aggregator *a = self;

  if (a->trigger != NULL)
    {
      td_serializer_enter (s, "_trigger");
      td__trigger_serialize (a->trigger, s);
      td_serializer_leave (s);
    }
  td_serialize_double (s, "_sum", &a->sum);
  td_serialize_double (s, "_count", &a->count);
}

static void
aggregator_free (void *self)
{
  Aggregator *a = self;

  td__trigger_drop (a->trigger);
  free (a->key);
  free (a->result_key);
}

static const TdExtensionClass aggregator_class = { .size = sizeof (TdExtensionClass),
                                                   .name = "ObservationAggregator",
                                                   .self_bytes = sizeof (Aggregator),
                                                   .priority = TD_PRIORITY_EDITOR,
                                                   .call = aggregator_call,
                                                   .serialize = aggregator_serialize,
                                                   .free = aggregator_free };

TdExtension *
td_observation_aggregator_new (TdComm *comm, const char *key, const char *aggregated_key,
                               TdTrigger *trigger)
{
  TdExtension *x;
  Aggregator *a;

  if (!td__comm_usable (comm, "td_observation_aggregator_new", NULL))
    return td__extension_inert ();
  if (key == NULL)
    {
      td__fail (TD_ERR_ARG, "td_observation_aggregator_new", NULL, "a key expected");
      return td__extension_inert ();
    }
  if (trigger != NULL)
    trigger = td__trigger_take (trigger, "td_observation_aggregator_new");
  if (td__engine.has_error)
    return td__extension_inert ();
  x = td_extension_new (&aggregator_class);
  a = x->self;
  a->comm = comm;
  a->key = td__xstrdup (key);
  a->result_key = td__xstrdup (aggregated_key != NULL ? aggregated_key : key);
  a->trigger = trigger;
  return x;
}
