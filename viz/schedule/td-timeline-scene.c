/*
 * The events as bars over time: what the host did, in a lane for each phase; what each device
 * computed, in a lane of its own for each of its streams, and below it the copies to and from
 * it, which may run beside that.  What the host copies besides operations (reads, batches, new
 * arrays) is a bar as long as that took it, or it waited, in the lane of what ran before, and a
 * mark in the device's.
 *
 * A device's times are its kernels' own (plain), or taken around operations in sampled
 * iterations (hatched); an operation without one is an empty outline where it was issued.
 *
 * Below all stand the scopes that the program named, those in others in lanes below theirs.
 *
 * Where nothing ran in a lane for long enough to be seen, a dashed line says why.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "tape/td-devices.h"
#include "td-gaps.h"
#include "td-schedule.h"
#include "td-scope-times.h"

enum
{
  HOST_LANES = 3,
  MAX_LANES = 16,
  SCOPE_LANES = 3 /* scopes in more others are not drawn */
};

static const TdRole phase_roles[TD_TAPE_N_PHASES] = {
  [TD_TAPE_PHASE_FORWARD] = TD_ROLE_PARAMETER,
  [TD_TAPE_PHASE_BACKWARD] = TD_ROLE_GRADIENT,
  [TD_TAPE_PHASE_ACCUMULATE] = TD_ROLE_GRADIENT,
  [TD_TAPE_PHASE_UPDATE] = TD_ROLE_OPTIMIZER,
};
static const char *const host_lanes[HOST_LANES] = { "Forward", "Backward", "Update" };
static const guint lane_of[TD_TAPE_N_PHASES] = { 0, 1, 1, 2 };

typedef struct
{
  TdSceneBuilder *b;
  const TdIteration *iteration;
  const TdTapeIteration *tape;
  const TdPanelView *view;
  TdSceneRect plot;
  double span_ns, lane_height;
  guint n_lanes;
  guint device[MAX_LANES];     /* of a lane; 0: the host */
  guint stream[MAX_LANES];     /* the same; of copies 0 */
  gboolean copies[MAX_LANES];  /* the lane has the device's copies */
  gboolean streams[MAX_LANES]; /* the device has others */
  GArray *scopes;              /* TdScopeTime */
  guint scope_lane; /* the first of scopes', below all others; n_lanes: there are none */
  double drawn_to[MAX_LANES], dotted_to[MAX_LANES];
  TdTransfers *transfers;
  guint next_transfer;
} Timeline;

/* One bar, in its lane. */
typedef struct
{
  guint lane;
  guint64 key;   /* 0: of no node */
  gboolean here; /* the playhead's event */
  double start_ns, ns;
  TdStyle style;
  const char *label;
  char *tip; /* taken */
} Bar;

static double
x_of (const Timeline *t, double ns)
{
  return t->plot.x + t->plot.width * ns / t->span_ns;
}

/* Bars narrower than a pixel that follow one another become one; nothing is drawn twice. */
static void
add_bar (Timeline *t, guint event, Bar *bar)
{
  g_autofree char *tip = g_steal_pointer (&bar->tip);
  gboolean marked = bar->here || (bar->key != 0 && td_panel_is_selected (t->view, bar->key));
  double x = x_of (t, bar->start_ns), width = x_of (t, bar->start_ns + bar->ns) - x;
  TdSceneRect r
      = { x, t->plot.y + bar->lane * t->lane_height + 4, MAX (width, 1), t->lane_height - 8 };

  if (x + r.width < t->drawn_to[bar->lane] + 1 && !marked)
    return;
  t->drawn_to[bar->lane] = MAX (t->drawn_to[bar->lane], x + r.width);
  if (marked)
    {
      bar->style.stroke = TD_ROLE_ACCENT;
      bar->style.stroke_width = 2;
    }
  td_scene_mark (t->b, TD_TAG_EVENT, bar->key, event, tip);
  td_scene_add_shape (t->b, TD_PRIM_RECT, r, 0, &bar->style);
  td_scene_unmark (t->b);
  if (r.width > 46 && r.height >= 12)
    {
      TdTextStyle name
          = { .role = TD_ROLE_TEXT, .size = TD_TEXT_AXIS, .max_width = r.width - 8 };
      TdStyle label = { .fill = TD_ROLE_VIEW, .fill_alpha = 0.8 };
      double text = MIN (td_text_width (bar->label, TD_TEXT_AXIS, FALSE), r.width - 8);

      td_scene_add_shape (t->b, TD_PRIM_ROUND,
                          (TdSceneRect){ r.x + 2, r.y + r.height / 2 - 7, text + 4, 14 }, 3,
                          &label);
      td_scene_add_text (t->b, r.x + 4, r.y + r.height / 2, bar->label, &name);
    }
}

/* The copy that this event is, or NULL. */
static const TdTransfer *
transfer_at (Timeline *t, guint event)
{
  while (t->next_transfer < t->transfers->n
         && t->transfers->rows[t->next_transfer].event < event)
    t->next_transfer++;
  return t->next_transfer < t->transfers->n
                 && t->transfers->rows[t->next_transfer].event == event
             ? &t->transfers->rows[t->next_transfer]
             : NULL;
}

/* Copies are short among long operations: each has a dot of its own, unless that would lie on
 * another. */
static void
add_copy_mark (Timeline *t, guint event, guint64 key, guint lane, double start_ns,
               const char *tip)
{
  TdStyle dot = { .fill = TD_ROLE_COMMUNICATION, .stroke = TD_ROLE_VIEW };
  double x = x_of (t, start_ns);

  if (x < t->dotted_to[lane] + 1)
    return;
  t->dotted_to[lane] = x;
  td_scene_mark (t->b, TD_TAG_EVENT, key, event, tip);
  td_scene_add_shape (t->b, TD_PRIM_ELLIPSE,
                      (TdSceneRect){ x - 3, t->plot.y + lane * t->lane_height + 1, 6, 6 }, 0,
                      &dot);
  td_scene_unmark (t->b);
}

static void
add_host_bar (Timeline *t, guint event)
{
  guint phase = MIN (t->tape->events[event].phase, TD_TAPE_N_PHASES - 1);
  const char *op = td_iteration_get_op_name (t->iteration, event);
  const TdTransfer *copy = transfer_at (t, event);
  gboolean later = t->view->event >= 0 && (gint)event > t->view->event;
  char ns[TD_FORMAT_SIZE], bytes[TD_FORMAT_SIZE];
  g_autofree char *label
      = copy ? g_strdup_printf ("%s → %s", copy->from, copy->to) : g_strdup (op);
  guint64 key = t->tape->events[event].key;
  Bar bar = { .lane = lane_of[phase],
              .key = key,
              .here = (gint)event == t->view->event,
              .start_ns = (double)t->tape->event_start_ns[event],
              .ns = (double)t->tape->event_duration_ns[event],
              .style = { .fill = copy ? TD_ROLE_COMMUNICATION : phase_roles[phase],
                         .fill_alpha = later ? 0.3 : 0.85 },
              .label = label };

  td_format_ns (ns, t->tape->event_duration_ns[event]);
  bar.tip = copy ? g_strdup_printf ("copy %s to %s · %s · event %u · %s%s%s", copy->from,
                                    copy->to, td_format_bytes (bytes, copy->bytes), event, ns,
                                    *copy->site ? " · " : "", copy->site)
                 : g_strdup_printf ("%s · event %u · %s", op, event, ns);
  if (copy)
    add_copy_mark (t, event, key, bar.lane, bar.start_ns, bar.tip);
  add_bar (t, event, &bar);
}

static guint
device_lane (const Timeline *t, guint device, guint stream, gboolean copies)
{
  guint found = 0;

  for (guint lane = t->scope_lane; lane-- > HOST_LANES;)
    if (t->device[lane] == device && t->copies[lane] == copies)
      {
        if (t->stream[lane] == stream)
          return lane;
        found = lane; /* its first, where there was no room for more */
      }
  return found;
}

/* The device at one end of a copy that is not the host: the far one of two. */
static guint
device_of_copy (const TdIteration *iteration, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  const TdTapeEvent *e = &t->events[event];
  guint to = td_devices_of_event (iteration, event);

  return to != 0 || e->n_in == 0 ? to : t->vars[t->ins[e->first_in]].device;
}

/* When an event ran on its device; of a copy to the host its copy knows.  NULL: not known. */
static const TdTapeDeviceTime *
device_time (const Timeline *t, guint event, gboolean copies, TdTapeDeviceTime *room)
{
  const TdTapeDeviceTime *time = td_devices_time (t->iteration, event);
  const TdTapeCopy *copy = !time && copies ? td_host_copy_of_event (t->iteration, event) : NULL;

  if (!copy || copy->device_kind == TD_TAPE_DEVICE_TIME_NONE)
    return time;
  *room = (TdTapeDeviceTime){ .start_ns = copy->device_start_ns,
                              .duration_ns = copy->device_duration_ns,
                              .event = event,
                              .device = copy->device,
                              .stream = copy->device_stream,
                              .kind = copy->device_kind };
  return room;
}

static TdStyle
device_style (TdRole role, gboolean later, guint kind)
{
  return (TdStyle){ .fill = role,
                    .fill_alpha = later ? 0.3 : 0.85,
                    .pattern = kind == TD_TAPE_DEVICE_TIME_SAMPLED ? TD_PATTERN_HATCH_DOWN
                                                                   : TD_PATTERN_NONE };
}

static void
add_device_bar (Timeline *t, guint event)
{
  static const char *const kinds[] = { "", "exact", "sampled" };
  guint phase = MIN (t->tape->events[event].phase, TD_TAPE_N_PHASES - 1);
  const TdTransfer *copy = transfer_at (t, event);
  TdTapeDeviceTime room;
  const TdTapeDeviceTime *time = device_time (t, event, copy != NULL, &room);
  guint device
      = copy ? device_of_copy (t->iteration, event) : td_devices_of_event (t->iteration, event);
  guint lane = device_lane (t, device, time && !copy ? time->stream : 0, copy != NULL);
  TdRole role = copy ? TD_ROLE_COMMUNICATION : phase_roles[phase];
  g_autofree char *op = copy ? g_strdup_printf ("%s → %s", copy->from, copy->to)
                             : g_strdup (td_iteration_get_op_name (t->iteration, event));
  gboolean later = t->view->event >= 0 && (gint)event > t->view->event;
  char ns[TD_FORMAT_SIZE];
  Bar bar = { .lane = lane,
              .key = t->tape->events[event].key,
              .here = (gint)event == t->view->event,
              .label = op };

  if (lane == 0 || (!copy && !td_devices_is_work (t->iteration, event)))
    return;
  if (time)
    {
      bar.start_ns = (double)time->start_ns;
      bar.ns = (double)time->duration_ns;
      bar.style = device_style (role, later, time->kind);
      bar.tip = g_strdup_printf ("%s · event %u · %s on the device%s, %s", op, event,
                                 td_format_ns (ns, time->duration_ns),
                                 !copy               ? ""
                                 : time->stream != 0 ? ", beside what it computes"
                                                     : ", between what it computes",
                                 kinds[MIN (time->kind, TD_TAPE_DEVICE_TIME_SAMPLED)]);
    }
  else
    {
      bar.start_ns = (double)t->tape->event_start_ns[event];
      bar.ns = (double)t->tape->event_duration_ns[event];
      bar.style = (TdStyle){ .fill = TD_ROLE_VIEW, .stroke = role, .dash = TD_DASH_DASHED };
      bar.tip = g_strdup_printf ("%s · event %u · not timed on the device: drawn where it was "
                                 "issued",
                                 op, event);
    }
  add_bar (t, event, &bar);
}

/* What the host copied before an event, or after the last, besides operations. */
static void
add_copy (Timeline *t, const TdTapeCopy *copy)
{
  guint last = t->tape->n_events - 1, event = MIN (copy->event, last);
  guint before = MIN (copy->event, last + 1);
  guint lane = before > 0 && !(copy->flags & TD_TAPE_COPY_BEFORE)
                   ? lane_of[MIN (t->tape->events[before - 1].phase, TD_TAPE_N_PHASES - 1)]
                   : 0;
  guint far = device_lane (t, copy->device, 0, TRUE);
  guint64 key = copy->var < t->tape->n_vars ? t->tape->vars[copy->var].key : 0;
  gboolean later = t->view->event >= 0 && (gint)copy->event > t->view->event;
  gboolean timed
      = (copy->flags & (TD_TAPE_COPY_TIMED | TD_TAPE_COPY_BEFORE)) == TD_TAPE_COPY_TIMED;
  g_autofree char *tip = td_host_copy_describe (t->iteration, copy);
  Bar bar = { .lane = lane,
              .key = key,
              .start_ns = (double)td_host_copy_start (t->iteration, copy),
              .ns = timed ? (double)copy->duration_ns : 0,
              .style = { .fill = TD_ROLE_COMMUNICATION, .fill_alpha = later ? 0.3 : 0.85 },
              .label = td_tape_copy_why_name (copy->why) };

  add_copy_mark (t, event, key, lane, bar.start_ns, tip);
  if (timed)
    {
      bar.tip = g_strdup (tip);
      add_bar (t, event, &bar);
    }
  if (far == 0)
    return;
  bar.lane = far;
  if (copy->device_kind != TD_TAPE_DEVICE_TIME_NONE)
    {
      bar.start_ns = (double)copy->device_start_ns;
      bar.ns = (double)copy->device_duration_ns;
      bar.style = device_style (TD_ROLE_COMMUNICATION, later, copy->device_kind);
      bar.tip = g_strdup (tip);
      add_copy_mark (t, event, key, far, bar.start_ns, tip);
      add_bar (t, event, &bar);
      return;
    }
  add_copy_mark (t, event, key, far, bar.start_ns, tip);
  bar.style = (TdStyle){ .fill = TD_ROLE_VIEW,
                         .stroke = TD_ROLE_COMMUNICATION,
                         .dash = TD_DASH_DASHED };
  bar.tip
      = g_strdup_printf ("%s · not timed on the device: drawn where the host was at it", tip);
  add_bar (t, event, &bar);
}

/* Those of to_device events are the events themselves. */
static void
add_copies_before (Timeline *t, guint event, guint *next)
{
  for (; *next < t->tape->n_copies && t->tape->copies[*next].event <= event; ++*next)
    if (t->tape->copies[*next].why != TD_TAPE_COPY_OP)
      add_copy (t, &t->tape->copies[*next]);
}

static gboolean
has_copies (const Timeline *t, guint device)
{
  for (guint i = 0; i < t->transfers->n; i++)
    if (device_of_copy (t->iteration, t->transfers->rows[i].event) == device)
      return TRUE;
  for (guint i = 0; i < t->tape->n_copies; i++)
    if (t->tape->copies[i].device == device)
      return TRUE;
  return FALSE;
}

/* A lane for each stream on which the device computed, as far as there is room. */
static void
add_streams (Timeline *t, guint device)
{
  gboolean has[G_MAXUINT8 + 1] = { FALSE };
  guint n = 0, first = t->n_lanes;

  for (guint i = 0; i < t->tape->n_device_times; i++)
    {
      const TdTapeDeviceTime *time = &t->tape->device_times[i];

      if (time->device == device && !td_host_copy_of_event (t->iteration, time->event))
        has[time->stream] = TRUE;
    }
  for (guint stream = 0; stream <= G_MAXUINT8 && t->n_lanes + 2 < MAX_LANES; stream++)
    if (has[stream])
      {
        t->device[t->n_lanes] = device;
        t->stream[t->n_lanes++] = stream;
        n++;
      }
  if (n == 0)
    t->device[t->n_lanes++] = device;
  for (guint lane = first; n > 1 && lane < t->n_lanes; lane++)
    t->streams[lane] = TRUE;
}

static void
find_lanes (Timeline *t)
{
  t->n_lanes = HOST_LANES;
  for (guint i = 0; i < t->tape->n_devices && t->n_lanes + 1 < MAX_LANES; i++)
    {
      guint device = t->tape->devices[i].device;

      if (device == 0)
        continue;
      add_streams (t, device);
      if (!has_copies (t, device))
        continue;
      t->copies[t->n_lanes] = TRUE;
      t->device[t->n_lanes++] = device;
    }
}

static void
find_scope_lanes (Timeline *t)
{
  guint n = 0;

  for (guint i = 0; i < t->scopes->len; i++)
    n = MAX (n, g_array_index (t->scopes, TdScopeTime, i).depth + 1);
  t->scope_lane = t->n_lanes;
  t->n_lanes += MIN (MIN (n, SCOPE_LANES), MAX_LANES - t->n_lanes);
}

static void
add_scopes (Timeline *t)
{
  for (guint i = 0; i < t->scopes->len; i++)
    {
      const TdScopeTime *s = &g_array_index (t->scopes, TdScopeTime, i);
      char ns[TD_FORMAT_SIZE];
      Bar bar = { .lane = t->scope_lane + s->depth,
                  .start_ns = (double)s->start_ns,
                  .ns = (double)s->ns,
                  .style = { .fill = TD_ROLE_OTHER, .fill_alpha = 0.35 },
                  .label = s->name };

      if (bar.lane >= t->n_lanes)
        continue;
      bar.tip = g_strdup_printf ("%s · events %u to %u · %s", s->name, s->first_event,
                                 s->last_event, td_format_ns (ns, s->ns));
      add_bar (t, s->first_event, &bar);
    }
}

/* A stream has a small number on the tape; the program's own number for it is an attribute.
 * Owner: the caller. */
static char *
dup_stream (const Timeline *t, guint lane)
{
  for (guint i = 0; i < t->tape->n_device_times; i++)
    {
      const TdTapeDeviceTime *time = &t->tape->device_times[i];
      const char *attrs;

      if (time->device != t->device[lane] || time->stream != t->stream[lane])
        continue;
      attrs = td_iteration_get_string (t->iteration, t->tape->events[time->event].attrs);
      if (g_str_has_prefix (attrs, "stream="))
        return g_strndup (attrs + 7, strcspn (attrs + 7, " "));
    }
  return g_strdup_printf ("%u", t->stream[lane]);
}

/* What a lane is called: of several streams "gpu:0/7", and below it "/20". */
static char *
dup_lane_name (const Timeline *t, guint lane)
{
  if (lane < HOST_LANES)
    return g_strdup (host_lanes[lane]);
  if (lane >= t->scope_lane)
    return g_strdup (lane == t->scope_lane ? "Scopes" : "");
  if (t->copies[lane])
    return g_strdup ("copies");
  if (!t->streams[lane])
    return td_devices_dup_name (t->iteration, t->device[lane]);
  g_autofree char *device = td_devices_dup_name (t->iteration, t->device[lane]);
  g_autofree char *stream = dup_stream (t, lane);

  return g_strdup_printf ("%s/%s", t->device[lane - 1] == t->device[lane] ? "" : device,
                          stream);
}

static void
find_span (Timeline *t)
{
  t->span_ns = 1;
  for (guint e = 0; e < t->tape->n_events; e++)
    t->span_ns = MAX (t->span_ns,
                      (double)(t->tape->event_start_ns[e] + t->tape->event_duration_ns[e]));
  for (guint i = 0; i < t->tape->n_device_times; i++)
    t->span_ns = MAX (t->span_ns, (double)(t->tape->device_times[i].start_ns
                                           + t->tape->device_times[i].duration_ns));
  for (guint i = 0; i < t->tape->n_copies; i++)
    {
      const TdTapeCopy *copy = &t->tape->copies[i];

      if (!(copy->flags & TD_TAPE_COPY_BEFORE))
        t->span_ns = MAX (t->span_ns, (double)(copy->start_ns + copy->duration_ns));
      if (copy->device_kind != TD_TAPE_DEVICE_TIME_NONE)
        t->span_ns
            = MAX (t->span_ns, (double)(copy->device_start_ns + copy->device_duration_ns));
    }
}

static void
add_lane_names (Timeline *t)
{
  TdTextStyle name = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .max_width = 56 };
  TdStyle line = { .stroke = TD_ROLE_BORDER };

  for (guint lane = 0; lane < t->n_lanes; lane++)
    {
      double y = t->plot.y + (lane + 0.5) * t->lane_height;
      g_autofree char *text = dup_lane_name (t, lane);

      td_scene_add_text (t->b, 12, y, text, &name);
    }
  if (t->n_lanes > HOST_LANES)
    {
      double y = round (t->plot.y + HOST_LANES * t->lane_height) + 0.5;
      const TdScenePoint q[] = { { 8, y }, { t->plot.x + t->plot.width, y } };

      td_scene_add_line (t->b, q, 2, &line);
    }
}

#define LEAST_GAP 14 /* that is drawn */

/* A gap of the host is in the lane of what ran before it. */
static void
add_gap (Timeline *t, guint lane, const TdGap *gap)
{
  double x = x_of (t, (double)gap->start_ns), end = x_of (t, (double)(gap->start_ns + gap->ns));
  double y = round (t->plot.y + (lane + 0.5) * t->lane_height) + 0.5;
  TdSceneRect place = { x, t->plot.y + lane * t->lane_height + 2, end - x, t->lane_height - 4 };
  const TdScenePoint q[] = { { x + 2, y }, { end - 2, y } };
  TdStyle line = { .stroke = TD_ROLE_FAINT, .dash = TD_DASH_DASHED };
  TdStyle ground = { .fill = TD_ROLE_VIEW }, nothing = { 0 };
  TdTextStyle style = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 0.5 };
  char ns[TD_FORMAT_SIZE];
  g_autofree char *words = NULL, *tip = NULL;
  double text;

  if (end - x < LEAST_GAP)
    return;
  td_format_ns (ns, gap->ns);
  words = g_strdup_printf ("%s %s", ns, td_gap_name (gap->kind));
  tip = gap->after < 0 ? g_strdup (words)
                       : g_strdup_printf ("%s · after event %d", words, gap->after);
  text = td_text_width (words, TD_TEXT_AXIS, FALSE);
  td_scene_mark (t->b, TD_TAG_LANE, 0, lane, tip);
  td_scene_add_shape (t->b, TD_PRIM_RECT, place, 0, &nothing);
  td_scene_unmark (t->b);
  td_scene_add_line (t->b, q, 2, &line);
  if (text + 16 > end - x || t->lane_height < 16)
    return;
  td_scene_add_shape (t->b, TD_PRIM_RECT,
                      (TdSceneRect){ (x + end - text) / 2 - 4, y - 7, text + 8, 14 }, 0,
                      &ground);
  td_scene_add_text (t->b, (x + end) / 2, y, words, &style);
}

static void
add_gaps (Timeline *t)
{
  for (guint lane = 0; lane < t->n_lanes; lane++)
    {
      gboolean host = lane == 0,
               device = lane >= HOST_LANES && lane < t->scope_lane && !t->copies[lane];
      g_autoptr (GArray) gaps
          = host || device ? td_gaps_of_stream (t->iteration, t->device[lane],
                                                t->streams[lane] ? (gint)t->stream[lane] : -1)
                           : NULL;

      for (guint i = 0; gaps && i < gaps->len; i++)
        {
          const TdGap *gap = &g_array_index (gaps, TdGap, i);
          guint phase = gap->after < 0 ? 0 : t->tape->events[gap->after].phase;

          add_gap (t, host ? lane_of[MIN (phase, TD_TAPE_N_PHASES - 1)] : lane, gap);
        }
    }
}

#define RIGHT_MARGIN 12 /* of the plot */

static void
add_time_axis (Timeline *t)
{
  TdTextStyle tick = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 0.5 };
  TdStyle line = { .stroke = TD_ROLE_HAIRLINE };
  double step = td_format_step (t->span_ns, MAX (2, (int)(t->plot.width / 90)));

  for (double v = 0; v <= t->span_ns; v += step)
    {
      double x = round (x_of (t, v)) + 0.5;
      const TdScenePoint q[] = { { x, t->plot.y }, { x, t->plot.y + t->plot.height } };
      char label[TD_FORMAT_SIZE];

      td_format_ns (label, (guint64)v);
      double half = td_text_width (label, TD_TEXT_AXIS, FALSE) / 2;
      double most = t->plot.x + t->plot.width + RIGHT_MARGIN - half;

      td_scene_add_line (t->b, q, 2, &line);
      td_scene_add_text (t->b, MIN (x, most), t->plot.y + t->plot.height + 12, label, &tick);
    }
}

TdScene *
td_timeline_scene (const TdIteration *iteration, const TdPanelView *view)
{
  double w = view->width > 0 ? view->width : 960, h = view->height > 0 ? view->height : 170;
  Timeline t = { .iteration = iteration,
                 .tape = td_iteration_get_tape (iteration),
                 .view = view,
                 .plot = { 72, 8, MAX (40, w - 72 - RIGHT_MARGIN), MAX (30, h - 34) } };
  guint next_copy = 0;

  if (t.tape->n_events == 0 || !t.tape->event_start_ns)
    return td_panel_message (view, "Nothing has run yet",
                             "Operations appear here as they run.");
  t.transfers = td_transfers_new (iteration);
  t.scopes = td_scope_times_new (iteration);
  find_lanes (&t);
  find_scope_lanes (&t);
  find_span (&t);
  t.lane_height = t.plot.height / t.n_lanes;
  for (guint lane = 0; lane < t.n_lanes; lane++)
    t.drawn_to[lane] = t.dotted_to[lane] = -1;
  t.b = td_scene_builder_new (w, h);
  td_scene_set_background (t.b, TD_ROLE_VIEW);
  add_lane_names (&t);
  add_time_axis (&t);
  add_gaps (&t);
  for (guint e = 0; e < t.tape->n_events; e++)
    {
      add_copies_before (&t, e, &next_copy);
      add_host_bar (&t, e);
      if (t.scope_lane > HOST_LANES)
        add_device_bar (&t, e);
    }
  add_copies_before (&t, G_MAXUINT, &next_copy);
  add_scopes (&t);
  if (view->event >= 0 && (guint)view->event < t.tape->n_events)
    td_panel_add_playhead (t.b, x_of (&t, (double)t.tape->event_start_ns[view->event]),
                           t.plot.y - 6, t.plot.y + t.plot.height);
  TdSceneAxes axes = { .box = t.plot, .x1 = t.span_ns, .y1 = t.n_lanes };
  td_scene_set_axes (t.b, &axes);
  td_transfers_free (t.transfers);
  g_array_unref (t.scopes);
  return td_scene_builder_end (t.b);
}
