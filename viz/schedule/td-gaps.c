/*
 * Gaps between operations.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-gaps.h"

#include "tape/td-devices.h"
#include "td-host-copies.h"

/* Something was done from `start` to `end`. */
typedef struct
{
  guint64 start, end;
  gint32 event;
  gboolean copy;
} Span;

static const char *const names[TD_N_GAPS] = {
  [TD_GAP_FIRST] = "before the first operation",
  [TD_GAP_CODE] = "between operations",
  [TD_GAP_BACKWARD] = "before backward",
  [TD_GAP_UPDATE] = "before update",
  [TD_GAP_HOST] = "waits for the host",
  [TD_GAP_START] = "between operations of the device",
};

const char *
td_gap_name (TdGapKind kind)
{
  return names[kind];
}

static int
earlier (gconstpointer a, gconstpointer b)
{
  const Span *x = a, *y = b;

  return (x->start > y->start) - (x->start < y->start);
}

static void
add_host (const TdIteration *iteration, GArray *spans)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);

  for (guint e = 0; t->event_start_ns && e < t->n_events; e++)
    {
      Span span = { t->event_start_ns[e], t->event_start_ns[e] + t->event_duration_ns[e],
                    (gint32)e, FALSE };

      g_array_append_val (spans, span);
    }
  for (guint i = 0; i < t->n_copies && t->n_events > 0; i++)
    {
      const TdTapeCopy *copy = &t->copies[i];
      guint64 start = td_host_copy_start (iteration, copy);
      Span span = { start, start + copy->duration_ns,
                    (gint32)MIN (copy->event, t->n_events - 1), TRUE };

      if ((copy->flags & (TD_TAPE_COPY_TIMED | TD_TAPE_COPY_BEFORE)) == TD_TAPE_COPY_TIMED)
        g_array_append_val (spans, span);
    }
}

static void
add_device (const TdIteration *iteration, guint device, gint stream, GArray *spans)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);

  for (guint i = 0; i < t->n_device_times; i++)
    {
      const TdTapeDeviceTime *time = &t->device_times[i];
      Span span
          = { time->start_ns, time->start_ns + time->duration_ns, (gint32)time->event, FALSE };

      if (time->device == device && (stream < 0 || time->stream == stream)
          && time->event < t->n_events)
        g_array_append_val (spans, span);
    }
}

static TdGapKind
kind_of (const TdIteration *iteration, guint device, gint32 after, const Span *next,
         guint64 start)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  guint before = t->events[after < 0 ? 0 : after].phase, now = t->events[next->event].phase;

  if (device != 0)
    return t->event_start_ns && t->event_start_ns[next->event] > start ? TD_GAP_HOST
                                                                       : TD_GAP_START;
  if (after < 0)
    return TD_GAP_FIRST;
  if (before == now || next->copy)
    return TD_GAP_CODE;
  return now == TD_TAPE_PHASE_BACKWARD && before == TD_TAPE_PHASE_FORWARD ? TD_GAP_BACKWARD
         : now == TD_TAPE_PHASE_UPDATE                                    ? TD_GAP_UPDATE
                                                                          : TD_GAP_CODE;
}

GArray *
td_gaps_new (const TdIteration *iteration, guint device)
{
  return td_gaps_of_stream (iteration, device, -1);
}

GArray *
td_gaps_of_stream (const TdIteration *iteration, guint device, gint stream)
{
  g_autoptr (GArray) spans = g_array_new (FALSE, FALSE, sizeof (Span));
  GArray *gaps = g_array_new (FALSE, FALSE, sizeof (TdGap));
  guint64 end = 0;
  gint32 after = -1;

  if (device == 0)
    add_host (iteration, spans);
  else
    add_device (iteration, device, stream, spans);
  g_array_sort (spans, earlier);
  for (guint i = 0; i < spans->len; i++)
    {
      const Span *span = &g_array_index (spans, Span, i);

      if (span->start > end)
        {
          TdGap gap = { .after = after,
                        .before = span->event,
                        .start_ns = end,
                        .ns = span->start - end,
                        .kind = kind_of (iteration, device, after, span, end) };

          g_array_append_val (gaps, gap);
        }
      if (span->end >= end)
        {
          end = span->end;
          after = span->event;
        }
    }
  return gaps;
}
