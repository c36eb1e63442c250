/* Notices of a tape as text and as JSON lines, each of them once: most that an iteration has
 * are also the run's. SPDX-License-Identifier: MIT */
#include "tape-dump.h"

#include <inttypes.h>
#include <stdlib.h>

typedef TapeDump Dump;

static void
dump_notice (Dump *d, const TdTapeNotice *n)
{
  static const char *const kinds[] = { "text", "error", "config", "recording" };
  const char *kind = n->kind < 4 ? kinds[n->kind] : "?";
  char site[512];

  td_tape_reader_site_text (d->r, n->site, site, sizeof site);
  if (d->json)
    {
      TdJsonWriter *json = td__tape_begin_record (d, "notice");

      td__json_member_string (json, "kind", kind);
      td__json_member_uint (json, "iteration", n->iteration);
      td__json_member_int (json, "status", n->status);
      td__json_member_string (json, "text", td_tape_reader_string (d->r, n->text));
      td__json_member_string (json, "site", site);
      td__tape_end_record (d);
      return;
    }
  fprintf (d->out, "notice %s iteration %" PRIu64 " %s%s", kind, n->iteration, site,
           *site ? " " : "");
  td__tape_put_line (d->out, td_tape_reader_string (d->r, n->text));
  fputc ('\n', d->out);
}

static int
compare (const TdTapeNotice *a, const TdTapeNotice *b)
{
  if (a->iteration != b->iteration)
    return a->iteration < b->iteration ? -1 : 1;
  if (a->time_ns != b->time_ns)
    return a->time_ns < b->time_ns ? -1 : 1;
  if (a->kind != b->kind)
    return a->kind < b->kind ? -1 : 1;
  return a->text < b->text ? -1 : a->text > b->text;
}

static int
compare_places (const void *a, const void *b)
{
  return compare (*(const TdTapeNotice *const *)a, *(const TdTapeNotice *const *)b);
}

void
td__tape_dump_notices (Dump *d)
{
  const uint32_t n = td_tape_reader_n_notices (d->r);

  if (n > 0) /* without memory for it they are printed twice */
    d->notices = malloc (n * sizeof *d->notices);
  for (uint32_t i = 0; i < n; i++)
    {
      const TdTapeNotice *notice = td_tape_reader_notice (d->r, i);

      dump_notice (d, notice);
      if (d->notices != NULL)
        d->notices[i] = notice;
    }
  if (d->notices != NULL)
    qsort (d->notices, n, sizeof *d->notices, compare_places);
}

void
td__tape_dump_iteration_notices (Dump *d, const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_notices; i++)
    {
      const TdTapeNotice *notice = &it->notices[i];

      if (d->notices == NULL
          || bsearch (&notice, d->notices, td_tape_reader_n_notices (d->r), sizeof *d->notices,
                      compare_places)
                 == NULL)
        dump_notice (d, notice);
    }
}

/* What the recording says about itself: that it stopped before the program, and why. */
void
td__tape_info_recording (TdTapeReader *r, FILE *out, TdJsonWriter *json)
{
  bool any = false;

  for (uint32_t i = 0; i < td_tape_reader_n_notices (r); i++)
    {
      const TdTapeNotice *n = td_tape_reader_notice (r, i);

      if (n->kind != TD_TAPE_NOTICE_RECORDING)
        continue;
      if (json && !any)
        {
          td__json_key (json, "recording");
          td__json_begin_array (json);
        }
      if (json)
        td__json_string (json, td_tape_reader_string (r, n->text));
      else
        {
          fprintf (out, "%-17s", any ? "" : "recording");
          td__tape_put_line (out, td_tape_reader_string (r, n->text));
          fputc ('\n', out);
        }
      any = true;
    }
  if (json && any)
    td__json_end_array (json);
}
