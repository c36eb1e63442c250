/* Traces as JSON, as Chrome's tracing, Perfetto and speedscope read it.  Source: "Trace Event
 * Format", the document that Chrome's tracing names.
 * SPDX-License-Identifier: MIT */
#include "tape-export.h"

#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void
put_text (TapeTraceOut *o, const char *text)
{
  td__json_put_string (td__json_put_file, o->out, text, strlen (text));
}

/* Times are microseconds, here with all their digits. */
static void
put_time (TapeTraceOut *o, const char *key, uint64_t ns)
{
  fprintf (o->out, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

static void
begin_event (TapeTraceOut *o, char phase, uint64_t track)
{
  fprintf (o->out, "%s{\"ph\":\"%c\",\"pid\":1,\"tid\":%" PRIu64, o->n++ > 0 ? ",\n" : "",
           phase, track);
}

static void
put_name (TapeTraceOut *o, const char *name)
{
  fputs (",\"name\":", o->out);
  put_text (o, name);
}

static void
put_member (TapeTraceOut *o, const char *key, const char *text)
{
  if (*text == '\0')
    return;
  fprintf (o->out, ",\"%s\":", key);
  put_text (o, text);
}

static void
put_arguments (TapeTraceOut *o, const TapeSliceText *text)
{
  fprintf (o->out, ",\"args\":{\"iteration\":%" PRIu64, text->iteration);
  if (text->is_operation)
    fprintf (o->out, ",\"event\":%" PRIu64, text->event);
  put_member (o, "layer", text->layer);
  put_member (o, "site", text->site);
  put_member (o, "attributes", text->attributes);
  fputs ("}}", o->out);
}

/* ------------------------------------------------------------------------------------ */

static void
begin (TapeTraceOut *o, const char *program)
{
  fputs ("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", o->out);
  begin_event (o, 'M', 0);
  fputs (",\"name\":\"process_name\",\"args\":{\"name\":", o->out);
  put_text (o, program);
  fputs ("}}", o->out);
}

/* Counters are told apart by their names, and need no row. */
static void
track (TapeTraceOut *o, uint64_t number, TapeTrackKind kind, const char *name)
{
  if (kind != TAPE_TRACK_THREAD)
    return;
  begin_event (o, 'M', number);
  fputs (",\"name\":\"thread_name\",\"args\":{\"name\":", o->out);
  put_text (o, name);
  fputs ("}}", o->out);
  begin_event (o, 'M', number);
  fprintf (o->out, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%" PRIu64 "}}",
           number);
}

static void
put_flow (TapeTraceOut *o, uint64_t number, uint64_t ns, const TapeSliceText *text)
{
  begin_event (o, text->flow_ends ? 'f' : 's', number);
  put_time (o, "ts", ns);
  fprintf (o->out, ",\"id\":%" PRIu64 ",\"cat\":\"device\",\"name\":\"device\"%s}", text->flow,
           text->flow_ends ? ",\"bp\":\"e\"" : "");
}

static void
slice (TapeTraceOut *o, uint64_t number, uint64_t start_ns, uint64_t end_ns,
       const TapeSliceText *text)
{
  begin_event (o, 'X', number);
  put_time (o, "ts", start_ns);
  put_time (o, "dur", end_ns - start_ns);
  put_name (o, text->name);
  put_member (o, "cat", text->category);
  put_arguments (o, text);
  if (text->flow != 0)
    put_flow (o, number, start_ns, text);
}

static void
open_slice (TapeTraceOut *o, uint64_t number, uint64_t ns, const TapeSliceText *text)
{
  begin_event (o, 'B', number);
  put_time (o, "ts", ns);
  put_name (o, text->name);
  put_member (o, "cat", text->category);
  put_arguments (o, text);
}

static void
close_slice (TapeTraceOut *o, uint64_t number, uint64_t ns)
{
  begin_event (o, 'E', number);
  put_time (o, "ts", ns);
  fputc ('}', o->out);
}

/* JSON has no NaN: it is a moment with a name. */
static void
value (TapeTraceOut *o, uint64_t number, TapeTrackKind kind, const char *name, uint64_t ns,
       double x)
{
  (void)number;
  begin_event (o, isfinite (x) ? 'C' : 'i', 0);
  put_time (o, "ts", ns);
  if (!isfinite (x))
    {
      char text[300];

      snprintf (text, sizeof text, "%.250s is %s", name,
                isnan (x) ? "NaN"
                : x > 0   ? "infinite"
                          : "-infinite");
      put_name (o, text);
      fputs (",\"s\":\"p\"}", o->out);
      return;
    }
  put_name (o, name);
  if (kind == TAPE_TRACK_BYTES)
    fprintf (o->out, ",\"args\":{\"bytes\":%.0f}}", x);
  else
    fprintf (o->out, ",\"args\":{\"value\":%.9g}}", x);
}

static void
end (TapeTraceOut *o)
{
  fputs ("\n]}\n", o->out);
}

void
td__tape_chrome (TapeTraceOut *o)
{
  o->begin = begin;
  o->track = track;
  o->slice = slice;
  o->open = open_slice;
  o->close = close_slice;
  o->value = value;
  o->end = end;
}
