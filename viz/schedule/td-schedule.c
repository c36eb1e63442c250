/*
 * The execution order as a table, its totals, and the advice about a static schedule.
 *
 * SPDX-License-Identifier: MIT
 */
#include "scene/td-json.h"
#include "tape/td-devices.h"
#include "td-schedule.h"
#include "td-scope-times-print.h"

/* What the tape says of an event on its device, and what of it goes into the sums. */
static void
take_device (TdSchedule *s, TdScheduleRow *r, const TdIteration *iteration)
{
  const TdTapeDeviceTime *time = td_devices_time (iteration, r->event);

  if (!td_devices_is_work (iteration, r->event))
    return;
  r->device = td_devices_of_event (iteration, r->event);
  s->n_device++;
  if (!time)
    return;
  r->device_ns = time->duration_ns;
  r->device_start_ns = time->start_ns;
  r->device_kind = time->kind;
  r->device_stream = time->stream;
  s->device_ns += time->duration_ns;
  s->n_timed++;
}

TdSchedule *
td_schedule_new (const TdIteration *iteration)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  TdSchedule *s = g_new0 (TdSchedule, 1);

  s->n_rows = t->n_events;
  s->rows = g_new0 (TdScheduleRow, MAX (t->n_events, 1));
  for (guint e = 0; e < t->n_events; e++)
    {
      const TdTapeEvent *event = &t->events[e];
      TdScheduleRow *r = &s->rows[e];
      guint phase = MIN (event->phase, TD_TAPE_N_PHASES - 1);

      *r = (TdScheduleRow){ .event = e,
                            .key = event->key,
                            .phase = phase,
                            .op = td_iteration_get_op_name (iteration, e),
                            .layer = td_iteration_get_link_path (iteration, e),
                            .start_ns = t->event_start_ns ? t->event_start_ns[e] : 0,
                            .ns
                            = t->event_duration_ns && !(event->flags & TD_TAPE_EVENT_CAPTURED)
                                  ? t->event_duration_ns[e]
                                  : 0,
                            .to_come = e >= td_iteration_get_n_run (iteration),
                            .captured = (event->flags & TD_TAPE_EVENT_CAPTURED) != 0,
                            .failed = (event->flags & TD_TAPE_EVENT_FAILED) != 0 };
      for (guint k = 0; k < event->n_out; k++)
        r->bytes += t->vars[t->outs[event->first_out + k]].bytes;
      take_device (s, r, iteration);
      s->total_ns += r->ns;
      s->total_bytes += r->bytes;
      s->phase_ns[phase] += r->ns;
      s->phase_n[phase]++;
    }
  s->transfers = td_transfers_new (iteration);
  s->scopes = td_scope_times_new (iteration);
  s->host_copies = td_host_copies_new (iteration);
  return s;
}

void
td_schedule_free (TdSchedule *schedule)
{
  if (!schedule)
    return;
  td_transfers_free (schedule->transfers);
  g_array_unref (schedule->scopes);
  td_host_copies_free (schedule->host_copies);
  g_free (schedule->rows);
  g_free (schedule);
}

guint64
td_schedule_graph_of (TdTapeReader *reader, guint32 structure)
{
  for (guint i = 0; i < td_tape_reader_n_structures (reader); i++)
    if (td_tape_reader_structure (reader, i)->id == structure)
      return td_tape_reader_structure (reader, i)->fingerprint_dims;
  return structure;
}

static gboolean
same_graph (TdTapeReader *reader, const TdTapeSummary *a, const TdTapeSummary *b)
{
  return a->structure == b->structure
         || td_schedule_graph_of (reader, a->structure)
                == td_schedule_graph_of (reader, b->structure);
}

guint
td_schedule_count_replayed (const TdIteration *iteration)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  guint n = 0;

  for (guint e = 0; e < t->n_events; e++)
    n += (t->events[e].flags & TD_TAPE_EVENT_REPLAYED) != 0;
  return n;
}

static GBytes *
shape_of (const TdTapeIteration *t, guint32 var)
{
  return g_bytes_new_static (t->dims + t->vars[var].first_dim,
                             t->vars[var].ndim * sizeof *t->dims);
}

gboolean
td_schedule_same_shapes (const TdIteration *a, const TdIteration *b)
{
  const TdTapeIteration *few = td_iteration_get_tape (a), *many = td_iteration_get_tape (b);
  g_autoptr (GHashTable) shapes = g_hash_table_new_full (g_bytes_hash, g_bytes_equal,
                                                         (GDestroyNotify)g_bytes_unref, NULL);
  gboolean same = TRUE;

  if (few->n_vars > many->n_vars)
    {
      const TdTapeIteration *other = few;
      few = many;
      many = other;
    }
  for (guint32 v = 0; v < many->n_vars; v++)
    g_hash_table_add (shapes, shape_of (many, v));
  for (guint32 v = 0; v < few->n_vars && same; v++)
    {
      g_autoptr (GBytes) shape = shape_of (few, v);

      same = g_hash_table_contains (shapes, shape);
    }
  return same;
}

static char *
could_be (guint64 equal, guint n, guint n_replayed, gboolean foreign)
{
  /* what another program recorded has no static functions */
  if (foreign)
    return g_strdup_printf ("%" G_GUINT64_FORMAT " equal iterations of %u %s.", equal, n,
                            td_plural (n, "operation", "operations"));
  if (n_replayed == 0)
    return g_strdup_printf ("%" G_GUINT64_FORMAT
                            " equal iterations: %u %s could be one static schedule.",
                            equal, n, td_plural (n, "operation", "operations"));
  if (n_replayed >= n)
    return g_strdup_printf ("%" G_GUINT64_FORMAT
                            " equal iterations: all %u %s ran from static schedules.",
                            equal, n, td_plural (n, "operation", "operations"));
  return g_strdup_printf ("%" G_GUINT64_FORMAT
                          " equal iterations: %u of %u %s ran from static schedules.",
                          equal, n_replayed, n, td_plural (n, "operation", "operations"));
}

guint64
td_schedule_count_between (TdTapeReader *reader, guint first, guint last)
{
  const TdTapeSummaries s = td_tape_reader_summaries (reader);
  const guint64 rows = (guint64)(last - first) + 1,
                by_number = s.rows[last].number - s.rows[first].number + 1;
  TdTapeThinning t;

  if (by_number <= rows)
    return by_number;
  t = td_tape_reader_thinning (reader);
  return t.n_summaries >= t.n_iterations ? rows : by_number;
}

char *
td_schedule_advice (TdTapeReader *reader, gint64 iteration, guint n_replayed)
{
  TdTapeSummaries s = td_tape_reader_summaries (reader);
  gint64 at = td_tape_reader_find (reader, (guint64)MAX (iteration, 0));
  gint64 first;

  if (at < 0)
    at = (gint64)s.n - 1;
  if (at < 0)
    return g_strdup ("No iteration has ended yet.");
  if (s.rows[at].flags & TD_TAPE_ITERATION_SNAPSHOT)
    return g_strdup ("A memory snapshot: these are entries of its trace, no operations.");
  for (first = at; first > 0 && same_graph (reader, &s.rows[first - 1], &s.rows[at]); first--)
    ;
  guint64 equal = td_schedule_count_between (reader, (guint)first, (guint)at);
  if (equal >= 2)
    return could_be (equal, s.rows[at].n_events, n_replayed,
                     *td_tape_reader_info (reader, "producer") != '\0');
  if (at == 0)
    return g_strdup ("One iteration so far: another one will show whether the graph repeats.");
  if (td_schedule_only_sizes (reader, &s.rows[at], &s.rows[at - 1]))
    return td_schedule_dup_sizes (reader, &s.rows[at], &s.rows[at - 1]);
  if (s.rows[at].n_events == s.rows[at - 1].n_events)
    return g_strdup_printf ("Iteration %" G_GUINT64_FORMAT
                            " differs from the one before: as many operations (%u), but not "
                            "the same.",
                            s.rows[at].number, s.rows[at].n_events);
  return g_strdup_printf (
      "Iteration %" G_GUINT64_FORMAT " differs from the one before: %u %s against %u.",
      s.rows[at].number, s.rows[at].n_events,
      td_plural (s.rows[at].n_events, "operation", "operations"), s.rows[at - 1].n_events);
}

static const char *
kind_name (const TdScheduleRow *r)
{
  return r->device_kind == TD_TAPE_DEVICE_TIME_EXACT ? "exact" : "sampled";
}

static void
print_json (const TdSchedule *s, const char *advice, const TdStaticness *staticness,
            TdSink *sink)
{
  TdJson j;

  td_json_init (&j, sink->text);
  td_json_begin_object (&j);
  td_json_member_int (&j, "total_ns", (gint64)s->total_ns);
  if (s->n_device > 0)
    {
      td_json_member_int (&j, "on_device", s->n_device);
      td_json_member_int (&j, "timed_on_device", s->n_timed);
      td_json_member_int (&j, "device_ns", (gint64)s->device_ns);
    }
  td_json_member_int (&j, "total_bytes", (gint64)s->total_bytes);
  td_json_member_string (&j, "advice", advice);
  if (staticness)
    {
      td_json_key (&j, "staticness");
      td_staticness_print_json (staticness, &j);
    }
  td_json_key (&j, "transfers");
  td_transfers_print_json (s->transfers, &j);
  td_json_key (&j, "host_copies");
  td_host_copies_print_json (s->host_copies, &j);
  td_json_key (&j, "scopes");
  td_scope_times_print_json (s->scopes, &j);
  td_json_key (&j, "phases");
  td_json_begin_array (&j);
  for (guint p = 0; p < TD_TAPE_N_PHASES; p++)
    {
      td_json_begin_object (&j);
      td_json_member_string (&j, "phase", td_tape_phase_name (p));
      td_json_member_int (&j, "events", s->phase_n[p]);
      td_json_member_int (&j, "ns", (gint64)s->phase_ns[p]);
      td_json_end_object (&j);
    }
  td_json_end_array (&j);
  td_json_key (&j, "events");
  td_json_begin_array (&j);
  for (guint i = 0; i < s->n_rows; i++)
    {
      const TdScheduleRow *r = &s->rows[i];

      td_json_begin_object (&j);
      td_json_member_int (&j, "event", r->event);
      td_json_key (&j, "id");
      td_json_id (&j, r->key);
      td_json_member_string (&j, "op", r->op);
      td_json_member_string (&j, "link", r->layer);
      td_json_member_string (&j, "phase", td_tape_phase_name (r->phase));
      td_json_member_int (&j, "start_ns", (gint64)r->start_ns);
      if (r->captured)
        td_json_member_bool (&j, "measured", FALSE);
      else
        td_json_member_int (&j, "ns", (gint64)r->ns);
      if (r->device != 0)
        td_json_member_int (&j, "device", r->device);
      if (r->device_kind != TD_TAPE_DEVICE_TIME_NONE)
        {
          td_json_member_string (&j, "device_time", kind_name (r));
          td_json_member_int (&j, "device_start_ns", (gint64)r->device_start_ns);
          td_json_member_int (&j, "device_ns", (gint64)r->device_ns);
          td_json_member_int (&j, "device_stream", r->device_stream);
        }
      td_json_member_int (&j, "bytes", (gint64)r->bytes);
      td_json_member_bool (&j, "failed", r->failed);
      td_json_end_object (&j);
      td_sink_row (sink);
    }
  td_json_end_array (&j);
  td_json_end_object (&j);
}

/* Copies of the host up to an event; that of the event itself follows it. */
static void
print_csv_copies (const TdSchedule *s, guint event, guint *next, GString *out)
{
  const TdIteration *iteration = s->host_copies->iteration;
  const TdTapeIteration *t = td_iteration_get_tape (iteration);

  for (; *next < t->n_copies; ++*next)
    {
      const TdTapeCopy *copy = &t->copies[*next];

      if (copy->event > event || (copy->event == event && copy->why == TD_TAPE_COPY_OP))
        return;
      td_host_copy_print_csv (iteration, copy, out);
      g_string_append_c (out, '\n');
    }
}

static void
print_csv (const TdSchedule *s, TdSink *sink)
{
  GString *out = sink->text;
  guint next = 0;

  g_string_append (
      out,
      "event,op,link,phase,start_ns,ns,bytes,failed,way,why,device,site,array,before,unused,"
      "device_time,device_start_ns,device_ns,device_stream\n");
  for (guint i = 0; i < s->n_rows; i++)
    {
      const TdScheduleRow *r = &s->rows[i];

      print_csv_copies (s, r->event, &next, out);
      g_string_append_printf (out, "%u,", r->event);
      td_csv_append (out, r->op);
      g_string_append_c (out, ',');
      td_csv_append (out, r->layer);
      g_string_append_printf (out, ",%s,%" G_GUINT64_FORMAT ",", td_tape_phase_name (r->phase),
                              r->start_ns);
      if (!r->captured) /* else it was not measured */
        g_string_append_printf (out, "%" G_GUINT64_FORMAT, r->ns);
      g_string_append_printf (out, ",%" G_GUINT64_FORMAT ",%d,,,", r->bytes, r->failed);
      if (r->device != 0)
        g_string_append_printf (out, "%u", r->device);
      g_string_append (out, ",,,,");
      if (r->device_kind == TD_TAPE_DEVICE_TIME_NONE)
        g_string_append (out, ",,,,\n");
      else
        g_string_append_printf (out, ",%s,%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%u\n",
                                kind_name (r), r->device_start_ns, r->device_ns,
                                r->device_stream);
      td_sink_row (sink);
    }
  print_csv_copies (s, G_MAXUINT, &next, out);
}

/* A cell of a column nine wide; "µ" has two bytes: pad by characters. */
static void
put_cell (GString *out, const char *text)
{
  g_string_append_printf (out, " %*s%s", (int)MAX (0, 9 - g_utf8_strlen (text, -1)), "", text);
}

const char *
td_schedule_format_device (const TdScheduleRow *r, char *text)
{
  char ns[TD_FORMAT_SIZE];

  if (r->device == 0 || r->device_kind == TD_TAPE_DEVICE_TIME_NONE)
    return "-";
  g_snprintf (text, TD_FORMAT_SIZE, "%s%s",
              r->device_kind == TD_TAPE_DEVICE_TIME_SAMPLED ? "≈" : "",
              td_format_ns (ns, r->device_ns));
  return text;
}

char *
td_schedule_dup_device_note (const TdSchedule *s)
{
  char ns[TD_FORMAT_SIZE];

  if (s->n_device == 0)
    return NULL;
  if (s->n_timed == 0)
    return g_strdup_printf ("times are of the host, which only issues: %u %s ran on a device, "
                            "which was not timed here (TAPEDECK_DEVICE_TIMES=all times all)",
                            s->n_device, td_plural (s->n_device, "operation", "operations"));
  return g_strdup_printf ("on the device %s in %u of the %u operations that ran there%s",
                          td_format_ns (ns, s->device_ns), s->n_timed, s->n_device,
                          s->n_timed < s->n_device ? "; - was not timed by itself" : "");
}

static void
print_text (const TdSchedule *s, const char *advice, TdSink *sink)
{
  GString *out = sink->text;
  char ns[TD_FORMAT_SIZE], bytes[TD_FORMAT_SIZE];
  g_autofree char *note = td_schedule_dup_device_note (s);

  g_string_append_printf (out, "%6s  %-28s %-24s %-10s", "event", "operation", "layer",
                          "phase");
  put_cell (out, s->n_device > 0 ? "issuing" : "time");
  if (s->n_device > 0)
    put_cell (out, "device");
  put_cell (out, "output");
  g_string_append_c (out, '\n');
  for (guint i = 0; i < s->n_rows; i++)
    {
      const TdScheduleRow *r = &s->rows[i];

      g_string_append_printf (out, "%6u  %-28s %-24s %-10s", r->event, r->op, r->layer,
                              td_tape_phase_name (r->phase));
      put_cell (out, r->captured ? "in graph" : td_format_ns (ns, r->ns));
      if (s->n_device > 0)
        put_cell (out, td_schedule_format_device (r, ns));
      put_cell (out, td_format_bytes (bytes, r->bytes));
      g_string_append_printf (out, "%s\n", r->failed ? "  failed" : "");
      td_sink_row (sink);
    }
  g_string_append_printf (out, "total %s, %s written", td_format_ns (ns, s->total_ns),
                          td_format_bytes (bytes, s->total_bytes));
  for (guint p = 0; p < TD_TAPE_N_PHASES; p++)
    if (s->phase_n[p] > 0)
      g_string_append_printf (out, "; %u %s %s", s->phase_n[p], td_tape_phase_name (p),
                              td_format_ns (ns, s->phase_ns[p]));
  g_string_append_c (out, '\n');
  if (note)
    g_string_append_printf (out, "%s\n", note);
  g_string_append_printf (out, "%s\n", advice ? advice : "");
  td_transfers_print (s->transfers, out);
  td_host_copies_print (s->host_copies, out);
}

void
td_schedule_print (const TdSchedule *schedule, const char *advice,
                   const TdStaticness *staticness, const char *format, TdSink *sink)
{
  if (g_str_equal (format, "json"))
    print_json (schedule, advice, staticness, sink);
  else if (g_str_equal (format, "csv"))
    print_csv (schedule, sink);
  else
    {
      print_text (schedule, advice, sink);
      if (staticness)
        td_staticness_print (staticness, sink->text);
    }
}
