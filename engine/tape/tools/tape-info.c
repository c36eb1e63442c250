/* The facts of a tape, as text and as JSON (`tapedeck info`).
 * SPDX-License-Identifier: MIT */
#include "../read/reader-private.h"
#include "tape-dump.h"
#include "td-tape-import.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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

/* The reports of one key as a list of pairs. */
static void
json_curve (TdJsonWriter *json, const TdTapeReader *r, const TdTapeReport *all, uint64_t n,
            uint32_t key)
{
  td__json_key (json, td_tape_reader_string (r, key));
  td__json_begin_array (json);
  for (uint64_t i = 0; i < n; i++)
    if (all[i].key == key)
      {
        td__json_begin_array (json);
        td__json_uint (json, all[i].iteration);
        td__json_rounded (json, all[i].value, 9);
        td__json_end_array (json);
      }
  td__json_end_array (json);
}

static void
json_reports (TdJsonWriter *json, TdTapeReader *r)
{
  uint64_t n;
  const TdTapeReport *all = td_tape_reader_reports (r, &n);
  char *seen = calloc (r->strings.n + 1, 1);

  td__json_key (json, "reports");
  td__json_begin_object (json);
  for (uint64_t i = 0; seen != NULL && i < n; i++)
    {
      if (all[i].key == 0 || all[i].key > r->strings.n || seen[all[i].key])
        continue;
      seen[all[i].key] = 1;
      json_curve (json, r, all, n, all[i].key);
    }
  td__json_end_object (json);
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
info_versions (const TdTapeReader *r, FILE *out, TdJsonWriter *json)
{
  bool any = false;

  if (json)
    {
      td__json_key (json, "versions");
      td__json_begin_object (json);
    }
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
    {
      const char *value = td_tape_reader_info (r, versions[i].key);

      if (*value == '\0')
        continue;
      if (json)
        td__json_member_string (json, versions[i].name, value);
      else
        fprintf (out, "%-17s%s %s\n", any ? "" : "versions", versions[i].name, value);
      any = true;
    }
  if (json)
    td__json_end_object (json);
}

static void
json_thinned (TdJsonWriter *json, const TdTapeThinning *t)
{
  td__json_key (json, "thinned");
  td__json_begin_object (json);
  td__json_member_uint (json, "whole", t->n_whole);
  td__json_member_uint (json, "summaries", t->n_summaries);
  td__json_member_uint (json, "summary_of_every", t->stride);
  if (t->n_lost > 0)
    td__json_member_uint (json, "lost", t->n_lost);
  td__json_key (json, "whole_from");
  if (t->first_whole != UINT64_MAX)
    td__json_uint (json, t->first_whole);
  else
    td__json_null (json);
  td__json_end_object (json);
}

static void
json_parameters (TdJsonWriter *json, const TdTapeReader *r)
{
  td__json_key (json, "parameters");
  td__json_begin_array (json);
  for (uint32_t i = 0; i < td_tape_reader_n_parameters (r); i++)
    {
      td__json_begin_object (json);
      td__tape_json_parameter (json, r, td_tape_reader_parameter (r, i));
      td__json_end_object (json);
    }
  td__json_end_array (json);
}

/* The operation that ran last, or null. */
static void
json_last_op (TdJsonWriter *json, TdTapeReader *r)
{
  const char *op = "";
  char site[512] = "";

  td__json_key (json, "last_op");
  if (td__tape_is_import (r) || !last_op (r, &op, site, sizeof site))
    {
      td__json_null (json);
      return;
    }
  td__json_begin_object (json);
  td__json_member_string (json, "op", op);
  td__json_member_string (json, "site", site);
  td__json_end_object (json);
}

static void
info_json (TdTapeReader *r, FILE *out)
{
  const bool import = td__tape_is_import (r);
  const TdTapeThinning t = td_tape_reader_thinning (r);
  char format[32], damage[160];
  TdJsonWriter json;

  td__json_write (&json, td__json_put_file, out, TD_JSON_TIGHT);
  td__json_begin_object (&json);
  td__json_member_uint (&json, "iterations", t.n_iterations);
  if (t.n_whole < t.n_iterations)
    json_thinned (&json, &t);
  if (td_tape_reader_damage (r, damage, sizeof damage))
    td__json_member_string (&json, "damage", damage);
  td__json_member_uint (&json, "distinct_graphs", distinct_graphs (r));
  td__json_member_uint (&json, "ops_total", import ? 0 : ops_total (r));
  if (import)
    {
      td__json_member_string (&json, "import", TD_TAPE_IMPORT_TORCH);
      td__json_member_uint (&json, "trace_events", ops_total (r));
    }
  if (td__tape_is_trace (r))
    td__json_member_string (&json, "import", TD_TAPE_IMPORT_TRACE);
  json_parameters (&json, r);
  json_reports (&json, r);
  td__tape_json_exit (&json, r);
  json_last_op (&json, r);
  td__json_member_string (&json, "level", td_tape_level_name (r->header.level));
  td__json_member_string (&json, "device", td_tape_reader_info (r, "device"));
  td__json_member_uint (&json, "ranks", r->header.n_ranks);
  td__json_member_uint (&json, "rank", r->header.rank);
  td__json_member_string (&json, "program", td_tape_reader_info (r, "program"));
  if (!td__tape_is_trace (r))
    td__tape_info_devices (r, out, &json);
  td__tape_info_statics (r, out, &json);
  td__tape_info_scaling (r, out, &json);
  td__tape_info_faults (r, out, &json);
  td__tape_info_ooms (r, out, &json);
  td__tape_info_recording (r, out, &json);
  info_versions (r, out, &json);
  snprintf (format, sizeof format, "%u.%u", r->header.major, r->header.minor);
  td__json_member_string (&json, "format", format);
  td__json_member_uint (&json, "bytes", r->file_bytes);
  td__json_end_object (&json);
  fputc ('\n', out);
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
  fprintf (out, "%s          %s\n", td__tape_is_trace (r) ? "trace  " : "program",
           td_tape_reader_info (r, "program"));
  fprintf (out, "iterations       %" PRIu64 "\n", t.n_iterations);
  td_tape_thinning_text (&t, thinned, sizeof thinned);
  if (thinned[0] != '\0')
    fprintf (out, "%s%s\n",
             t.n_lost < t.n_iterations - t.n_whole ? "thinned          " : "lost             ",
             thinned);
  if (td_tape_reader_damage (r, thinned, sizeof thinned))
    fprintf (out, "damage           %s\n", thinned);
  fprintf (out, "distinct graphs  %u\n", distinct_graphs (r));
  fprintf (out, "operations       %" PRIu64 "\n", ops_total (r));
  fprintf (out, "parameters       %u\n", td_tape_reader_n_parameters (r));
  td__tape_info_statics (r, out, NULL);
  td__tape_info_scaling (r, out, NULL);
  fprintf (out, "level            %s\n", td_tape_level_name (r->header.level));
  fprintf (out, "device           %s\n", td_tape_reader_info (r, "device"));
  if (!td__tape_is_trace (r))
    td__tape_info_devices (r, out, NULL);
  if (r->header.n_ranks > 1)
    fprintf (out, "rank             %u of %u\n", r->header.rank, r->header.n_ranks);
  if (end == NULL)
    fputs (is_gone (r)
               ? "exit             nobody saw it: the recorder is gone, the recording was cut\n"
               : "exit             not yet\n",
           out);
  else if (end->signal)
    fprintf (out, "exit             signal %d\n", end->signal);
  else if (end->status < 0)
    fputs ("exit             nobody saw it\n", out);
  else
    fprintf (out, "exit             status %d\n", end->status);
  td__tape_info_recording (r, out, NULL);
  td__tape_info_faults (r, out, NULL);
  td__tape_info_ooms (r, out, NULL);
  if (last_op (r, &op, site, sizeof site))
    fprintf (out, "last operation   %s%s%s%s\n", op, *site ? " at " : "", site,
             end && end->running ? ", still running" : "");
  info_versions (r, out, NULL);
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
