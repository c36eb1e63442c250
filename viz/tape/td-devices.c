/*
 * Looking up what the tape says of devices.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-devices.h"

#include <string.h>

#include "scene/td-format.h"

guint
td_devices_of_event (const TdIteration *iteration, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  const TdTapeEvent *e = &t->events[event];
  const TdTapeDeviceTime *time;

  if (e->n_out > 0)
    return t->vars[t->outs[e->first_out]].device;
  if (e->n_in > 0)
    return t->vars[t->ins[e->first_in]].device;
  time = td_devices_time (iteration, event); /* of a trace, which knows no arrays */
  return time ? time->device : 0;
}

const TdTapeDevice *
td_devices_find (const TdIteration *iteration, guint device)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);

  for (guint i = 0; i < t->n_devices; i++)
    if (t->devices[i].device == device)
      return &t->devices[i];
  return NULL;
}

char *
td_devices_dup_name (const TdIteration *iteration, guint device)
{
  const TdTapeDevice *d = device > 0 ? td_devices_find (iteration, device) : NULL;
  const char *name = d ? td_iteration_get_string (iteration, d->name) : "";
  gsize n = strcspn (name, " ");

  if (device == 0)
    return g_strdup ("host");
  return n > 0 ? g_strndup (name, n) : g_strdup_printf ("device %u", device);
}

char *
td_devices_dup_summary (const TdIteration *iteration)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  GString *out = g_string_new (NULL);

  for (guint i = 0; i < t->n_devices; i++)
    {
      const TdTapeDevice *d = &t->devices[i];
      char used[TD_FORMAT_SIZE], total[TD_FORMAT_SIZE];

      if (out->len > 0)
        g_string_append (out, ", ");
      g_string_append (out, td_iteration_get_string (iteration, d->name));
      g_string_append_printf (out, " · %s",
                              td_format_bytes (used, d->reserved_bytes + d->outside_bytes));
      if (d->total_bytes > 0)
        g_string_append_printf (out, " of %s", td_format_bytes (total, d->total_bytes));
    }
  return g_string_free (out, out->len == 0);
}

const TdTapeDeviceTime *
td_devices_time (const TdIteration *iteration, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  guint lo = 0, hi = t->n_device_times;

  while (lo < hi) /* they are in order */
    {
      guint mid = lo + (hi - lo) / 2;

      if (t->device_times[mid].event < event)
        lo = mid + 1;
      else
        hi = mid;
    }
  return lo < t->n_device_times && t->device_times[lo].event == event ? &t->device_times[lo]
                                                                      : NULL;
}

guint64
td_devices_duration (const TdIteration *iteration, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  const TdTapeDeviceTime *time = td_devices_time (iteration, event);

  if (time)
    return time->duration_ns;
  if (!t->event_duration_ns || (t->events[event].flags & TD_TAPE_EVENT_CAPTURED))
    return 0;
  return t->event_duration_ns[event];
}

guint64
td_devices_cost (const TdIteration *iteration, guint event)
{
  if (td_devices_is_work (iteration, event) && !td_devices_time (iteration, event))
    return 0;
  return td_devices_duration (iteration, event);
}

char *
td_devices_dup_cost (const TdIteration *iteration, guint event)
{
  const TdTapeDeviceTime *time = td_devices_time (iteration, event);
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  const gboolean captured = (t->events[event].flags & TD_TAPE_EVENT_CAPTURED) != 0;
  const guint64 ns = td_devices_cost (iteration, event);
  char text[TD_FORMAT_SIZE];

  if (!time && (!t->event_duration_ns || captured || td_devices_is_work (iteration, event)))
    return g_strdup ("—");
  return g_strconcat (time && time->kind == TD_TAPE_DEVICE_TIME_SAMPLED ? "≈" : "",
                      td_format_ns (text, ns), NULL);
}

guint64
td_devices_sum_durations (const TdIteration *iteration)
{
  guint64 ns = 0;

  for (guint e = 0; e < td_iteration_get_n_events (iteration); e++)
    ns += td_devices_duration (iteration, e);
  return ns;
}

gboolean
td_devices_is_work (const TdIteration *iteration, guint event)
{
  const TdTapeEvent *e = &td_iteration_get_tape (iteration)->events[event];

  return td_devices_of_event (iteration, event) != 0
         && !(e->flags & (TD_TAPE_EVENT_SHARED | TD_TAPE_EVENT_FAILED));
}
