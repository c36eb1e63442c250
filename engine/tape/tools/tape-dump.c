/* The tape as text and as JSON lines (`tapedeck cat`), and its facts (`tapedeck info`).
 * SPDX-License-Identifier: MIT */
#include "../read/reader-private.h"
#include "json.h"
#include "tape-dump.h"
#include "td-tape-import.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef TapeDump Dump;

static void
put_bytes (void *to, const char *text, size_t n)
{
  fwrite (text, 1, n, to);
}

static void
put_quoted (FILE *out, const char *text, size_t n)
{
  td__json_put_string (put_bytes, out, text, n);
}

void
td__tape_put_string (FILE *out, const char *text)
{
  put_quoted (out, text, strlen (text));
}

void
td__tape_put_line (FILE *out, const char *text)
{
  for (; *text != '\0'; text++)
    fputc ((unsigned char)*text < ' ' ? ' ' : *text, out);
}

/* A number as JSON has it: those that are not finite are strings. */
static void
put_number (FILE *out, double x)
{
  if (isnan (x))
    fputs ("\"nan\"", out);
  else if (isinf (x))
    fputs (x > 0 ? "\"inf\"" : "\"-inf\"", out);
  else
    fprintf (out, "%.9g", x);
}

void
td__tape_put_dims (FILE *out, const int64_t *dims, unsigned n, bool json)
{
  fputc (json ? '[' : '(', out);
  for (unsigned i = 0; i < n; i++)
    fprintf (out, "%s%" PRId64, i ? (json ? "," : ", ") : "", dims[i]);
  fputc (json ? ']' : ')', out);
}

/* ----------------------------------------------------------------------------- tables */

static void
dump_opdef (Dump *d, const TdTapeOpdef *o)
{
  const char *name = td_tape_reader_string (d->r, o->name);
  const char *group = td_tape_reader_string (d->r, o->group);

  if (!d->json)
    {
      fprintf (d->out, "op %u %s group=%s in=%d out=%d", o->id, name, group, o->n_in, o->n_out);
      if (o->attributes)
        fprintf (d->out, " attributes=%s", td_tape_reader_string (d->r, o->attributes));
      fputc ('\n', d->out);
      return;
    }
  fprintf (d->out, "{\"record\":\"op\",\"id\":%u,\"name\":", o->id);
  td__tape_put_string (d->out, name);
  fputs (",\"group\":", d->out);
  td__tape_put_string (d->out, group);
  fputs (",\"attributes\":", d->out);
  td__tape_put_string (d->out, td_tape_reader_string (d->r, o->attributes));
  fputs (",\"formula\":", d->out);
  td__tape_put_string (d->out, td_tape_reader_string (d->r, o->formula));
  fprintf (d->out, ",\"in\":%d,\"out\":%d}\n", o->n_in, o->n_out);
}

static void
dump_parameter (Dump *d, const TdTapeParameter *p)
{
  const char *path = td_tape_reader_string (d->r, p->path);

  if (d->json)
    {
      fputs ("{\"record\":\"parameter\",\"path\":", d->out);
      td__tape_put_string (d->out, path);
      fputs (",\"shape\":", d->out);
      td__tape_put_dims (d->out, p->dims, p->ndim, true);
      fprintf (d->out, ",\"dtype\":\"%s\"}\n", td_tape_dtype_name (p->dtype));
      return;
    }
  fprintf (d->out, "parameter %s %s ", path, td_tape_dtype_name (p->dtype));
  td__tape_put_dims (d->out, p->dims, p->ndim, false);
  fputc ('\n', d->out);
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
    {
      TdTapeSource s = td_tape_reader_source (d->r, i);

      fputs (d->json ? "{\"record\":\"source\",\"path\":" : "source ", d->out);
      td__tape_put_string (d->out, s.path);
      fprintf (d->out, d->json ? ",\"bytes\":%zu}\n" : " %zu bytes\n", s.bytes);
    }
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

      if (d->json)
        {
          fprintf (d->out,
                   "%s{\"var\":%u,\"key\":\"%016" PRIx64 "\",\"dtype\":\"%s\",\"shape\":",
                   i ? "," : "", list[i], v->key, td_tape_dtype_name (v->dtype));
          td__tape_put_dims (d->out, it->dims + v->first_dim, v->ndim, true);
          if (v->flags & TD_TAPE_VAR_CHANNELS_LAST)
            fputs (",\"layout\":\"channels_last\"", d->out);
          if (v->name)
            {
              fputs (",\"name\":", d->out);
              td__tape_put_string (d->out, td_tape_reader_string (d->r, v->name));
            }
          fputc ('}', d->out);
          continue;
        }
      fprintf (d->out, "%sv%u", i ? " " : "", list[i]);
      if (v->name)
        {
          fputc ('\'', d->out);
          td__tape_put_line (d->out, td_tape_reader_string (d->r, v->name));
          fputc ('\'', d->out);
        }
      td__tape_put_dims (d->out, it->dims + v->first_dim, v->ndim, false);
      if (v->flags & TD_TAPE_VAR_CHANNELS_LAST)
        fputs (":channels-last", d->out);
    }
}

static void
dump_event_json (Dump *d, const TdTapeIteration *it, uint32_t i, const char *site)
{
  const TdTapeEvent *e = &it->events[i];

  fprintf (d->out, "{\"record\":\"event\",\"iteration\":%" PRIu64 ",\"event\":%u", it->number,
           i);
  fprintf (d->out, ",\"key\":\"%016" PRIx64 "\",\"phase\":\"%s\",\"op\":", e->key,
           td_tape_phase_name (e->phase));
  td__tape_put_string (d->out, td_tape_reader_op_name (d->r, e->opdef));
  fputs (",\"link\":", d->out);
  td__tape_put_string (d->out, td_tape_reader_path_text (d->r, e->path));
  fputs (",\"site\":", d->out);
  td__tape_put_string (d->out, site);
  fputs (",\"attributes\":", d->out);
  td__tape_put_string (d->out, td_tape_reader_string (d->r, e->attrs));
  fprintf (d->out, ",\"twin\":%d,\"flags\":%u,\"start_ns\":%" PRIu64 ",\"ns\":%" PRIu64,
           e->twin, e->flags, it->event_start_ns[i], it->event_duration_ns[i]);
  fputs (",\"in\":[", d->out);
  put_vars (d, it, it->ins + e->first_in, e->n_in);
  fputs ("],\"out\":[", d->out);
  put_vars (d, it, it->outs + e->first_out, e->n_out);
  fputs ("]}\n", d->out);
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

  if (!d->json)
    {
      fprintf (d->out, "  stats v%u n=%" PRIu64, s->var, s->n);
      for (unsigned k = 0; k < 4; k++)
        fprintf (d->out, " %s=%.9g", names[k], numbers[k]);
      fprintf (d->out, " zero=%" PRIu64 " nan=%" PRIu64 " inf=%" PRIu64 "\n", s->n_zero,
               s->n_nan, s->n_pos_inf + s->n_neg_inf);
      return;
    }
  fprintf (d->out, "{\"record\":\"stats\",\"iteration\":%" PRIu64 ",\"var\":%u,\"n\":%" PRIu64,
           it->number, s->var, s->n);
  for (unsigned k = 0; k < 4; k++)
    {
      fprintf (d->out, ",\"%s\":", names[k]);
      put_number (d->out, numbers[k]);
    }
  fprintf (d->out, ",\"zero\":%" PRIu64 ",\"nan\":%" PRIu64 ",\"inf\":%" PRIu64 "}\n",
           s->n_zero, s->n_nan, s->n_pos_inf + s->n_neg_inf);
}

static void
dump_memory (Dump *d, const TdTapeIteration *it, const TdTapeMemory *m)
{
  static const char *const kinds[] = { "alloc", "free", "hold", "unhold" };
  const char *kind = m->kind < 4 ? kinds[m->kind] : "?";

  if (d->json)
    fprintf (d->out,
             "{\"record\":\"memory\",\"iteration\":%" PRIu64
             ",\"event\":%u,\"kind\":\"%s\",\"bytes\":%" PRIu64
             ",\"category\":\"%s\",\"address\":\"%" PRIx64 "\",\"buffer\":%" PRIu64 "}\n",
             it->number, m->event, kind, m->bytes, td_tape_category_name (m->category),
             m->address, m->buffer);
  else
    fprintf (d->out, "  %s before %u %s %" PRIu64 " bytes\n", kind, m->event,
             td_tape_category_name (m->category), m->bytes);
}

static void
dump_report (Dump *d, const TdTapeReport *report)
{
  const char *key = td_tape_reader_string (d->r, report->key);

  if (!d->json)
    {
      fputs ("  report ", d->out);
      td__tape_put_line (d->out, key);
      fprintf (d->out, " %.9g\n", report->value);
      return;
    }
  fprintf (d->out,
           "{\"record\":\"report\",\"iteration\":%" PRIu64 ",\"key\":", report->iteration);
  td__tape_put_string (d->out, key);
  fputs (",\"value\":", d->out);
  put_number (d->out, report->value);
  fputs ("}\n", d->out);
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
      fprintf (d->out,
               "{\"record\":\"iteration\",\"number\":%" PRIu64 ",\"label\":", s->number);
      td__tape_put_string (d->out, label_text (d->r, s->label, text, sizeof text));
      fprintf (d->out,
               ",\"structure\":%u,\"events\":%u,\"start_ns\":%" PRIu64 ",\"ns\":%" PRIu64
               ",\"peak_bytes\":%" PRIu64 ",\"flags\":%u,\"thinned\":%s,\"partial\":%s}\n",
               s->structure, s->n_events, s->start_ns, s->duration_ns, s->peak_bytes, s->flags,
               it ? "false" : "true", partial ? "true" : "false");
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

/* The JSON object of how it ended, or null. */
static void
put_exit (TdTapeReader *r, FILE *out)
{
  const TdTapeEnd *end = td_tape_reader_end (r);

  if (end == NULL)
    fputs ("null", out);
  else
    fprintf (out, "{\"status\":%d,\"signal\":%d,\"by\":\"%s\"}", end->status, end->signal,
             end->by ? "tapedeck" : "model");
}

static void
dump_end (Dump *d)
{
  const TdTapeEnd *end = td_tape_reader_end (d->r);

  if (end == NULL)
    return;
  if (d->json)
    {
      fputs ("{\"record\":\"end\",\"exit\":", d->out);
      put_exit (d->r, d->out);
      fputs ("}\n", d->out);
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
  Dump d = { .r = r, .out = out, .json = json };
  TdTapeSummaries s = td_tape_reader_summaries (r);
  char error[128];

  if (json)
    fprintf (out, "{\"record\":\"tape\",\"major\":%u,\"minor\":%u,\"level\":\"%s\"}\n",
             r->header.major, r->header.minor, td_tape_level_name (r->header.level));
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

/* ------------------------------------------------------------------------------- info */

static int
by_value (const void *a, const void *b)
{
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

  return x < y ? -1 : x > y;
}

/* Distinct fingerprints of the structures that iterations have. */
static uint32_t
distinct_graphs (TdTapeReader *r)
{
  uint32_t n = 0, distinct = 0;
  uint64_t *prints = malloc ((td_tape_reader_n_structures (r) + 1) * sizeof *prints);

  if (prints == NULL)
    return 0;
  for (uint32_t i = 0; i < td_tape_reader_n_structures (r); i++)
    if (td_tape_reader_structure (r, i)->n_iterations > 0)
      prints[n++] = td_tape_reader_structure (r, i)->fingerprint;
  qsort (prints, n, sizeof *prints, by_value);
  for (uint32_t i = 0; i < n; i++)
    distinct += i == 0 || prints[i] != prints[i - 1];
  free (prints);
  return distinct;
}

static uint64_t
ops_total (TdTapeReader *r)
{
  TdTapeSummaries s = td_tape_reader_summaries (r);
  const TdTapeIteration *live = td_tape_reader_live (r);
  const TdTapeThinning t = td_tape_reader_thinning (r);
  uint64_t n = live ? live->n_events : 0, of_summaries = 0;

  td_tape_iteration_free (live);
  for (uint32_t i = 0; i < s.n; i++)
    of_summaries += s.rows[i].n_events;
  return n + (t.n_operations > of_summaries ? t.n_operations : of_summaries);
}

/* The operation that ran last: as the end says, else the newest event known. */
static bool
last_op (TdTapeReader *r, const char **op, char *site, size_t n)
{
  const TdTapeEnd *end = td_tape_reader_end (r);
  TdTapeSummaries s = td_tape_reader_summaries (r);
  const TdTapeIteration *it;
  char error[128];
  bool found;

  if (end != NULL && end->last_op != 0)
    {
      *op = td_tape_reader_op_name (r, end->last_op);
      td_tape_reader_site_text (r, end->last_site, site, n);
      return true;
    }
  it = td_tape_reader_live (r);
  if ((it == NULL || it->n_events == 0) && s.n > 0)
    {
      td_tape_iteration_free (it);
      it = td_tape_iteration_load (r, s.rows[s.n - 1].number, error, sizeof error);
    }
  found = it != NULL && it->n_events > 0;
  if (found)
    {
      *op = td_tape_reader_op_name (r, it->events[it->n_events - 1].opdef);
      td_tape_reader_site_text (r, it->events[it->n_events - 1].site, site, n);
    }
  td_tape_iteration_free (it);
  return found;
}

/* Append the reports of one key as a list of pairs. */
static void
put_curve (TdTapeReader *r, FILE *out, const TdTapeReport *all, uint64_t n, uint32_t key)
{
  bool first = true;

  td__tape_put_string (out, td_tape_reader_string (r, key));
  fputs (":[", out);
  for (uint64_t i = 0; i < n; i++)
    if (all[i].key == key)
      {
        fprintf (out, "%s[%" PRIu64 ",", first ? "" : ",", all[i].iteration);
        put_number (out, all[i].value);
        fputc (']', out);
        first = false;
      }
  fputc (']', out);
}

static void
put_reports (TdTapeReader *r, FILE *out)
{
  uint64_t n;
  const TdTapeReport *all = td_tape_reader_reports (r, &n);
  char *seen = calloc (r->strings.n + 1, 1);
  bool first = true;

  fputc ('{', out);
  for (uint64_t i = 0; seen != NULL && i < n; i++)
    {
      if (all[i].key == 0 || all[i].key > r->strings.n || seen[all[i].key])
        continue;
      seen[all[i].key] = 1;
      fputs (first ? "" : ",", out);
      put_curve (r, out, all, n, all[i].key);
      first = false;
    }
  fputc ('}', out);
  free (seen);
}

/* Versions that a tape may have, as they are called in print. */
static const struct
{
  const char *key, *name;
} versions[] = {
  { "version", "tapedeck" },  { "version.engine", "engine" },
  { "version.blas", "blas" }, { "version.compiler", "compiler" },
  { "version.libc", "libc" },
};

static void
info_versions (const TdTapeReader *r, FILE *out, bool json)
{
  bool any = false;

  fputs (json ? ",\"versions\":{" : "", out);
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
    {
      const char *value = td_tape_reader_info (r, versions[i].key);

      if (*value == '\0')
        continue;
      if (json)
        {
          fprintf (out, "%s\"%s\":", any ? "," : "", versions[i].name);
          td__tape_put_string (out, value);
        }
      else
        fprintf (out, "%-17s%s %s\n", any ? "" : "versions", versions[i].name, value);
      any = true;
    }
  fputs (json ? "}" : "", out);
}

static void
info_thinned (const TdTapeThinning *t, FILE *out)
{
  fprintf (out,
           ",\"thinned\":{\"whole\":%" PRIu64 ",\"summaries\":%" PRIu64
           ",\"summary_of_every\":%" PRIu64 ",\"whole_from\":",
           t->n_whole, t->n_summaries, t->stride);
  if (t->first_whole != UINT64_MAX)
    fprintf (out, "%" PRIu64 "}", t->first_whole);
  else
    fputs ("null}", out);
}

static void
info_json (TdTapeReader *r, FILE *out)
{
  const char *op = "";
  char site[512] = "";
  const bool import = td__tape_is_import (r);
  bool any = !import && last_op (r, &op, site, sizeof site);
  const TdTapeThinning t = td_tape_reader_thinning (r);

  fprintf (out, "{\"iterations\":%" PRIu64, t.n_iterations);
  if (t.n_whole < t.n_iterations)
    info_thinned (&t, out);
  fprintf (out, ",\"distinct_graphs\":%u,\"ops_total\":%" PRIu64, distinct_graphs (r),
           import ? 0 : ops_total (r));
  if (import)
    fprintf (out, ",\"import\":\"%s\",\"trace_events\":%" PRIu64, TD_TAPE_IMPORT_TORCH,
             ops_total (r));
  fputs (",\"parameters\":[", out);
  for (uint32_t i = 0; i < td_tape_reader_n_parameters (r); i++)
    {
      const TdTapeParameter *p = td_tape_reader_parameter (r, i);

      fputs (i ? ",{\"path\":" : "{\"path\":", out);
      td__tape_put_string (out, td_tape_reader_string (r, p->path));
      fputs (",\"shape\":", out);
      td__tape_put_dims (out, p->dims, p->ndim, true);
      fprintf (out, ",\"dtype\":\"%s\"}", td_tape_dtype_name (p->dtype));
    }
  fputs ("],\"reports\":", out);
  put_reports (r, out);
  fputs (",\"exit\":", out);
  put_exit (r, out);
  fputs (",\"last_op\":", out);
  if (any)
    {
      fputs ("{\"op\":", out);
      td__tape_put_string (out, op);
      fputs (",\"site\":", out);
      td__tape_put_string (out, site);
      fputc ('}', out);
    }
  else
    fputs ("null", out);
  fprintf (out, ",\"level\":\"%s\",\"device\":", td_tape_level_name (r->header.level));
  td__tape_put_string (out, td_tape_reader_info (r, "device"));
  fprintf (out, ",\"ranks\":%u,\"rank\":%u,\"program\":", r->header.n_ranks, r->header.rank);
  td__tape_put_string (out, td_tape_reader_info (r, "program"));
  td__tape_info_devices (r, out, true);
  td__tape_info_statics (r, out, true);
  td__tape_info_scaling (r, out, true);
  td__tape_info_faults (r, out, true);
  td__tape_info_ooms (r, out, true);
  td__tape_info_recording (r, out, true);
  info_versions (r, out, true);
  fprintf (out, ",\"format\":\"%u.%u\",\"bytes\":%" PRIu64 "}\n", r->header.major,
           r->header.minor, r->file_bytes);
}

/* Is the process that wrote the tape no longer there?  Of another machine's that is not known.
 */
static bool
is_gone (const TdTapeReader *r)
{
  return r->header.pid > 0 && kill (r->header.pid, 0) != 0 && errno == ESRCH;
}

static void
info_text (TdTapeReader *r, FILE *out)
{
  const TdTapeEnd *end = td_tape_reader_end (r);
  const char *op = "";
  char site[512] = "", thinned[200];
  const TdTapeThinning t = td_tape_reader_thinning (r);

  if (td__tape_is_import (r))
    {
      td__tape_info_import (r, out);
      return;
    }
  fprintf (out, "program          %s\n", td_tape_reader_info (r, "program"));
  fprintf (out, "iterations       %" PRIu64 "\n", t.n_iterations);
  td_tape_thinning_text (&t, thinned, sizeof thinned);
  if (thinned[0] != '\0')
    fprintf (out, "thinned          %s\n", thinned);
  fprintf (out, "distinct graphs  %u\n", distinct_graphs (r));
  fprintf (out, "operations       %" PRIu64 "\n", ops_total (r));
  fprintf (out, "parameters       %u\n", td_tape_reader_n_parameters (r));
  td__tape_info_statics (r, out, false);
  td__tape_info_scaling (r, out, false);
  fprintf (out, "level            %s\n", td_tape_level_name (r->header.level));
  fprintf (out, "device           %s\n", td_tape_reader_info (r, "device"));
  td__tape_info_devices (r, out, false);
  if (r->header.n_ranks > 1)
    fprintf (out, "rank             %u of %u\n", r->header.rank, r->header.n_ranks);
  if (end == NULL)
    fputs (is_gone (r) ? "exit             nobody saw it: the recorder is gone\n"
                       : "exit             not yet\n",
           out);
  else if (end->signal)
    fprintf (out, "exit             signal %d\n", end->signal);
  else if (end->status < 0)
    fputs ("exit             nobody saw it\n", out);
  else
    fprintf (out, "exit             status %d\n", end->status);
  td__tape_info_recording (r, out, false);
  td__tape_info_faults (r, out, false);
  td__tape_info_ooms (r, out, false);
  if (last_op (r, &op, site, sizeof site))
    fprintf (out, "last operation   %s%s%s%s\n", op, *site ? " at " : "", site,
             end && end->running ? ", still running" : "");
  info_versions (r, out, false);
  fprintf (out, "tape             %u.%u, %" PRIu64 " bytes\n", r->header.major, r->header.minor,
           r->file_bytes);
}

void
td_tape_info (TdTapeReader *r, FILE *out, bool json)
{
  if (json)
    info_json (r, out);
  else
    info_text (r, out);
}
