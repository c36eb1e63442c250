/* The tape as text and as JSON lines (`tapedeck cat`).
 * SPDX-License-Identifier: MIT */
#include "../read/reader-private.h"
#include "tape-dump.h"
#include "plural.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef TapeDump Dump;

void
td__tape_put_line (FILE *out, const char *text)
{
  for (; *text != '\0'; text++)
    fputc ((unsigned char)*text < ' ' ? ' ' : *text, out);
}

void
td__tape_put_dims (FILE *out, const int64_t *dims, unsigned n)
{
  fputc ('(', out);
  for (unsigned i = 0; i < n; i++)
    fprintf (out, "%s%" PRId64, i ? ", " : "", dims[i]);
  fputc (')', out);
}

void
td__tape_json_shape (TdJsonWriter *json, const int64_t *dims, unsigned n)
{
  td__json_key (json, "shape");
  td__json_begin_array (json);
  for (unsigned i = 0; i < n; i++)
    td__json_int (json, dims[i]);
  td__json_end_array (json);
}

void
td__tape_json_site (TdJsonWriter *json, const TdTapeReader *r, const char *key, uint32_t site)
{
  char text[512];

  td__json_member_string (json, key, td_tape_reader_site_text (r, site, text, sizeof text));
}

TdJsonWriter *
td__tape_begin_record (Dump *d, const char *record)
{
  td__json_begin_object (d->json);
  td__json_member_string (d->json, "record", record);
  return d->json;
}

TdJsonWriter *
td__tape_begin_record_of (Dump *d, const char *record, uint64_t iteration)
{
  td__tape_begin_record (d, record);
  td__json_member_uint (d->json, "iteration", iteration);
  return d->json;
}

void
td__tape_end_record (Dump *d)
{
  td__json_end_object (d->json);
  fputc ('\n', d->out);
}

void
td__tape_json_number (TdJsonWriter *json, const char *key, double value)
{
  td__json_key (json, key);
  td__json_rounded (json, value, 9);
}

/* ----------------------------------------------------------------------------- tables */

static void
dump_opdef (Dump *d, const TdTapeOpdef *o)
{
  const char *name = td_tape_reader_string (d->r, o->name);
  const char *group = td_tape_reader_string (d->r, o->group);
  const char *attributes = td_tape_reader_string (d->r, o->attributes);
  TdJsonWriter *json;

  if (!d->json)
    {
      fprintf (d->out, "op %u %s group=%s in=%d out=%d", o->id, name, group, o->n_in, o->n_out);
      if (o->attributes)
        fprintf (d->out, " attributes=%s", attributes);
      fputc ('\n', d->out);
      return;
    }
  json = td__tape_begin_record (d, "op");
  td__json_member_uint (json, "id", o->id);
  td__json_member_string (json, "name", name);
  td__json_member_string (json, "group", group);
  td__json_member_string (json, "attributes", attributes);
  td__json_member_string (json, "formula", td_tape_reader_string (d->r, o->formula));
  td__json_member_int (json, "in", o->n_in);
  td__json_member_int (json, "out", o->n_out);
  td__tape_end_record (d);
}

void
td__tape_json_parameter (TdJsonWriter *json, const TdTapeReader *r, const TdTapeParameter *p)
{
  td__json_member_string (json, "path", td_tape_reader_string (r, p->path));
  td__tape_json_shape (json, p->dims, p->ndim);
  td__json_member_string (json, "dtype", td_tape_dtype_name (p->dtype));
}

static void
dump_parameter (Dump *d, const TdTapeParameter *p)
{
  const char *path = td_tape_reader_string (d->r, p->path);

  if (d->json)
    {
      td__tape_json_parameter (td__tape_begin_record (d, "parameter"), d->r, p);
      td__tape_end_record (d);
      return;
    }
  fprintf (d->out, "parameter %s %s ", path, td_tape_dtype_name (p->dtype));
  td__tape_put_dims (d->out, p->dims, p->ndim);
  fputc ('\n', d->out);
}

static void
dump_source (Dump *d, TdTapeSource s)
{
  TdJsonWriter *json;

  if (!d->json)
    {
      fputs ("source ", d->out);
      td__json_put_string (td__json_put_file, d->out, s.path, strlen (s.path));
      fprintf (d->out, " %zu %s\n", s.bytes, td_plural (s.bytes, "byte", "bytes"));
      return;
    }
  json = td__tape_begin_record (d, "source");
  td__json_member_string (json, "path", s.path);
  td__json_member_uint (json, "bytes", s.bytes);
  td__tape_end_record (d);
}

static void
dump_tables (Dump *d)
{
  for (uint32_t i = 1; i <= td_tape_reader_n_opdefs (d->r); i++)
    if (td_tape_reader_opdef (d->r, i) != NULL)
      dump_opdef (d, td_tape_reader_opdef (d->r, i));
  for (uint32_t i = 0; i < td_tape_reader_n_parameters (d->r); i++)
    dump_parameter (d, td_tape_reader_parameter (d->r, i));
  for (uint32_t i = 0; i < td_tape_reader_n_sources (d->r); i++)
    dump_source (d, td_tape_reader_source (d->r, i));
  td__tape_dump_notices (d);
  td__tape_dump_statics (d);
}

/* ------------------------------------------------------------------------- iterations */

static void
put_vars (Dump *d, const TdTapeIteration *it, const uint32_t *list, unsigned n)
{
  for (unsigned i = 0; i < n; i++)
    {
      const TdTapeVar *v = &it->vars[list[i]];

      fprintf (d->out, "%sv%u", i ? " " : "", list[i]);
      if (v->name)
        {
          fputc ('\'', d->out);
          td__tape_put_line (d->out, td_tape_reader_string (d->r, v->name));
          fputc ('\'', d->out);
        }
      td__tape_put_dims (d->out, it->dims + v->first_dim, v->ndim);
      if (v->flags & TD_TAPE_VAR_CHANNELS_LAST)
        fputs (":channels-last", d->out);
    }
}

/* What tells an event or array from all others. */
static void
json_id (TdJsonWriter *json, uint64_t key)
{
  char text[20];

  snprintf (text, sizeof text, "%016" PRIx64, key);
  td__json_member_string (json, "key", text);
}

static void
json_vars (Dump *d, const char *key, const TdTapeIteration *it, const uint32_t *list,
           unsigned n)
{
  td__json_key (d->json, key);
  td__json_begin_array (d->json);
  for (unsigned i = 0; i < n; i++)
    {
      const TdTapeVar *v = &it->vars[list[i]];

      td__json_begin_object (d->json);
      td__json_member_uint (d->json, "var", list[i]);
      json_id (d->json, v->key);
      td__json_member_string (d->json, "dtype", td_tape_dtype_name (v->dtype));
      td__tape_json_shape (d->json, it->dims + v->first_dim, v->ndim);
      if (v->flags & TD_TAPE_VAR_CHANNELS_LAST)
        td__json_member_string (d->json, "layout", "channels_last");
      if (v->name)
        td__json_member_string (d->json, "name", td_tape_reader_string (d->r, v->name));
      td__json_end_object (d->json);
    }
  td__json_end_array (d->json);
}

static void
dump_event_json (Dump *d, const TdTapeIteration *it, uint32_t i, const char *site)
{
  const TdTapeEvent *e = &it->events[i];
  TdJsonWriter *json = td__tape_begin_record_of (d, "event", it->number);

  td__json_member_uint (json, "event", i);
  json_id (json, e->key);
  td__json_member_string (json, "phase", td_tape_phase_name (e->phase));
  td__json_member_string (json, "op", td_tape_reader_op_name (d->r, e->opdef));
  td__json_member_string (json, "link", td_tape_reader_path_text (d->r, e->path));
  td__json_member_string (json, "site", site);
  td__json_member_string (json, "attributes", td_tape_reader_string (d->r, e->attrs));
  td__json_member_int (json, "twin", e->twin);
  td__json_member_uint (json, "flags", e->flags);
  td__json_member_uint (json, "start_ns", it->event_start_ns[i]);
  td__json_member_uint (json, "ns", it->event_duration_ns[i]);
  if (it->n_event_stacks > 0)
    td__json_member_uint (json, "stack", it->event_stacks[i]);
  json_vars (d, "in", it, it->ins + e->first_in, e->n_in);
  json_vars (d, "out", it, it->outs + e->first_out, e->n_out);
  td__tape_end_record (d);
}

static void
dump_event (Dump *d, const TdTapeIteration *it, uint32_t i)
{
  const TdTapeEvent *e = &it->events[i];
  char site[512];

  td_tape_reader_site_text (d->r, e->site, site, sizeof site);
  if (d->json)
    {
      dump_event_json (d, it, i, site);
      return;
    }
  fprintf (d->out, "  %u %s %s", i, td_tape_phase_name (e->phase),
           td_tape_reader_op_name (d->r, e->opdef));
  if (e->path)
    fprintf (d->out, " %s", td_tape_reader_path_text (d->r, e->path));
  if (*site)
    fprintf (d->out, " %s", site);
  if (e->attrs)
    fprintf (d->out, " [%s]", td_tape_reader_string (d->r, e->attrs));
  if (it->n_event_stacks > 0 && it->event_stacks[i] != 0)
    fprintf (d->out, " in call %u", it->event_stacks[i]);
  if (e->twin >= 0)
    fprintf (d->out, " of %d", e->twin);
  if (e->flags & TD_TAPE_EVENT_FAILED)
    fputs (" FAILED", d->out);
  fputs (" : ", d->out);
  put_vars (d, it, it->ins + e->first_in, e->n_in);
  fputs (" -> ", d->out);
  put_vars (d, it, it->outs + e->first_out, e->n_out);
  if (e->flags & TD_TAPE_EVENT_CAPTURED)
    fputs (" in a CUDA graph, not measured\n", d->out);
  else
    fprintf (d->out, " %" PRIu64 " ns\n", it->event_duration_ns[i]);
}

static void
dump_stats (Dump *d, const TdTapeIteration *it, const TdTapeStats *s)
{
  const double numbers[] = { s->min, s->max, s->mean, s->l2 };
  static const char *const names[] = { "min", "max", "mean", "l2" };
  TdJsonWriter *json;

  if (!d->json)
    {
      fprintf (d->out, "  stats v%u n=%" PRIu64, s->var, s->n);
      for (unsigned k = 0; k < 4; k++)
        fprintf (d->out, " %s=%.9g", names[k], numbers[k]);
      fprintf (d->out, " zero=%" PRIu64 " nan=%" PRIu64 " inf=%" PRIu64 "\n", s->n_zero,
               s->n_nan, s->n_pos_inf + s->n_neg_inf);
      return;
    }
  json = td__tape_begin_record_of (d, "stats", it->number);
  td__json_member_uint (json, "var", s->var);
  td__json_member_uint (json, "n", s->n);
  for (unsigned k = 0; k < 4; k++)
    td__tape_json_number (json, names[k], numbers[k]);
  td__json_member_uint (json, "zero", s->n_zero);
  td__json_member_uint (json, "nan", s->n_nan);
  td__json_member_uint (json, "inf", s->n_pos_inf + s->n_neg_inf);
  td__tape_end_record (d);
}

static void
dump_memory (Dump *d, const TdTapeIteration *it, const TdTapeMemory *m)
{
  static const char *const kinds[] = { "alloc", "free", "hold", "unhold" };
  const char *kind = m->kind < 4 ? kinds[m->kind] : "?";
  TdJsonWriter *json;
  char address[20];

  if (!d->json)
    {
      fprintf (d->out, "  %s before %u %s %" PRIu64 " %s\n", kind, m->event,
               td_tape_category_name (m->category), m->bytes,
               td_plural (m->bytes, "byte", "bytes"));
      return;
    }
  json = td__tape_begin_record_of (d, "memory", it->number);
  td__json_member_uint (json, "event", m->event);
  td__json_member_string (json, "kind", kind);
  td__json_member_uint (json, "bytes", m->bytes);
  td__json_member_string (json, "category", td_tape_category_name (m->category));
  snprintf (address, sizeof address, "%" PRIx64, m->address);
  td__json_member_string (json, "address", address);
  td__json_member_uint (json, "buffer", m->buffer);
  td__tape_end_record (d);
}

static void
dump_report (Dump *d, const TdTapeReport *report)
{
  const char *key = td_tape_reader_string (d->r, report->key);
  TdJsonWriter *json;

  if (!d->json)
    {
      fputs ("  report ", d->out);
      td__tape_put_line (d->out, key);
      fprintf (d->out, " %.9g\n", report->value);
      return;
    }
  json = td__tape_begin_record_of (d, "report", report->iteration);
  td__json_member_string (json, "key", key);
  td__tape_json_number (json, "value", report->value);
  td__tape_end_record (d);
}

static const char *
label_text (const TdTapeReader *r, uint32_t label, char *text, size_t n)
{
  if ((label & TD_TAPE_LABEL_NUMBER) == 0)
    return td_tape_reader_string (r, label);
  snprintf (text, n, "%" PRIu32, label & ~TD_TAPE_LABEL_NUMBER);
  return text;
}

static void
dump_iteration_head (Dump *d, const TdTapeSummary *s, const TdTapeIteration *it)
{
  char text[16];
  bool partial = it && (it->flags & TD_TAPE_ITERATION_PARTIAL);

  if (d->json)
    {
      TdJsonWriter *json = td__tape_begin_record (d, "iteration");

      td__json_member_uint (json, "number", s->number);
      td__json_member_string (json, "label", label_text (d->r, s->label, text, sizeof text));
      td__json_member_uint (json, "structure", s->structure);
      td__json_member_uint (json, "events", s->n_events);
      td__json_member_uint (json, "start_ns", s->start_ns);
      td__json_member_uint (json, "ns", s->duration_ns);
      td__json_member_uint (json, "peak_bytes", s->peak_bytes);
      td__json_member_uint (json, "flags", s->flags);
      td__json_member_bool (json, "thinned", it == NULL);
      td__json_member_bool (json, "partial", partial);
      td__tape_end_record (d);
      return;
    }
  fprintf (d->out, "iteration %" PRIu64, s->number);
  if (s->label)
    fprintf (d->out, " '%s'", label_text (d->r, s->label, text, sizeof text));
  fprintf (d->out, " structure %u events %u peak %" PRIu64 " bytes %" PRIu64 " ns%s%s\n",
           s->structure, s->n_events, s->peak_bytes, s->duration_ns, it ? "" : " (thinned)",
           partial ? " (partial)" : "");
}

static void
dump_iteration (Dump *d, const TdTapeSummary *s, const TdTapeIteration *it)
{
  dump_iteration_head (d, s, it);
  if (it == NULL)
    return;
  for (uint32_t i = 0, m = 0; i <= it->n_events; i++)
    {
      for (; m < it->n_memory && it->memory[m].event <= i; m++)
        dump_memory (d, it, &it->memory[m]);
      if (i < it->n_events)
        dump_event (d, it, i);
    }
  for (uint32_t i = 0; i < it->n_stats; i++)
    dump_stats (d, it, &it->stats[i]);
  td__tape_dump_iteration_notices (d, it);
  td__tape_dump_faults (d, it);
  td__tape_dump_ooms (d, it->number);
  for (uint32_t i = 0; i < it->n_reports; i++)
    dump_report (d, &it->reports[i]);
  td__tape_dump_iteration_statics (d, it);
  td__tape_dump_held (d, it);
  td__tape_dump_objects (d, it);
  td__tape_dump_devices (d, it);
  td__tape_dump_pools (d, it);
  td__tape_dump_copies (d, it);
  td__tape_dump_ranks (d, it);
  td__tape_dump_stacks (d, it);
  td__tape_dump_keyframe (d, it);
}

static void
dump_live (Dump *d, uint64_t first, uint64_t last)
{
  const TdTapeIteration *it = td_tape_reader_live (d->r);

  if (it != NULL && it->number >= first && it->number <= last)
    {
      TdTapeSummary s = { .number = it->number,
                          .label = it->label,
                          .n_events = it->n_events,
                          .flags = it->flags,
                          .start_ns = it->start_ns,
                          .duration_ns = it->duration_ns,
                          .peak_bytes = it->peak_bytes };

      dump_iteration (d, &s, it);
    }
  td_tape_iteration_free (it);
}

void
td__tape_json_exit (TdJsonWriter *json, TdTapeReader *r)
{
  const TdTapeEnd *end = td_tape_reader_end (r);

  td__json_key (json, "exit");
  if (end == NULL)
    {
      td__json_null (json);
      return;
    }
  td__json_begin_object (json);
  td__json_member_int (json, "status", end->status);
  td__json_member_int (json, "signal", end->signal);
  td__json_member_string (json, "by", end->by ? "tapedeck" : "model");
  td__json_end_object (json);
}

static void
dump_end (Dump *d)
{
  const TdTapeEnd *end = td_tape_reader_end (d->r);

  if (end == NULL)
    return;
  if (d->json)
    {
      td__tape_json_exit (td__tape_begin_record (d, "end"), d->r);
      td__tape_end_record (d);
    }
  else if (end->signal)
    fprintf (d->out, "end: signal %d\n", end->signal);
  else if (end->status < 0)
    fputs ("end: nobody saw how\n", d->out);
  else
    fprintf (d->out, "end: status %d\n", end->status);
}

void
td_tape_dump (TdTapeReader *r, FILE *out, bool json, uint64_t first, uint64_t last)
{
  TdJsonWriter writer;
  Dump d = { .r = r, .out = out, .json = json ? &writer : NULL };
  TdTapeSummaries s = td_tape_reader_summaries (r);
  char error[128];

  td__json_write (&writer, td__json_put_file, out, TD_JSON_TIGHT);
  if (json)
    {
      td__tape_begin_record (&d, "tape");
      td__json_member_uint (&writer, "major", r->header.major);
      td__json_member_uint (&writer, "minor", r->header.minor);
      td__json_member_string (&writer, "level", td_tape_level_name (r->header.level));
      td__tape_end_record (&d);
    }
  else
    fprintf (out, "tape %u.%u level %s\n", r->header.major, r->header.minor,
             td_tape_level_name (r->header.level));
  dump_tables (&d);
  for (uint32_t i = 0; i < s.n; i++)
    if (s.rows[i].number >= first && s.rows[i].number <= last)
      {
        const TdTapeIteration *it
            = td_tape_iteration_load (r, s.rows[i].number, error, sizeof error);

        dump_iteration (&d, &s.rows[i], it);
        td_tape_iteration_free (it);
      }
  dump_live (&d, first, last);
  dump_end (&d);
  free (d.notices);
}
