/* Errors that were found after their operation had run, in a dump and in what `info` says of a
 * tape.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"

#include <inttypes.h>
#include <stdio.h>

static void
put_json (const TdTapeReader *r, FILE *out, const TdTapeFault *f, const TdTapeIteration *it)
{
  char text[256], site[512];

  fprintf (out, "\"iteration\":%" PRIu64, f->iteration);
  if (f->event != TD_TAPE_NONE)
    fprintf (out, ",\"event\":%" PRIu32, f->event);
  fputs (",\"op\":", out);
  td__tape_put_string (out, td_tape_reader_string (r, f->op));
  fputs (",\"operand\":", out);
  td__tape_put_string (out, td_tape_reader_string (r, f->operand));
  fprintf (out,
           ",\"value\":%" PRId64 ",\"limit\":%" PRId64 ",\"element\":%" PRId64
           ",\"found_iteration\":%" PRIu64 ",\"found_event\":%" PRIu32 ",\"text\":",
           f->value, f->limit, f->element, f->found_iteration, f->found_event);
  td_tape_fault_text (f, td_tape_reader_string (r, f->operand), it, text, sizeof text);
  td__tape_put_string (out, text);
  fputs (",\"site\":", out);
  td__tape_put_string (out, td_tape_reader_site_text (r, f->site, site, sizeof site));
  fputc ('}', out);
}

static void
put_text (const TdTapeReader *r, FILE *out, const TdTapeFault *f, const TdTapeIteration *it)
{
  char text[256], site[512];

  td_tape_reader_site_text (r, f->site, site, sizeof site);
  td_tape_fault_text (f, td_tape_reader_string (r, f->operand), it, text, sizeof text);
  fprintf (out, "iteration %" PRIu64, f->iteration);
  if (f->event != TD_TAPE_NONE)
    fprintf (out, " event %" PRIu32, f->event);
  fputs (", ", out);
  td__tape_put_line (out, td_tape_reader_string (r, f->op));
  fprintf (out, "%s%s: ", *site ? " at " : "", site);
  td__tape_put_line (out, text);
  fputc ('\n', out);
}

void
td__tape_dump_faults (TapeDump *d, const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_faults; i++)
    {
      fputs (d->json ? "{\"record\":\"fault\"," : "  fault ", d->out);
      (d->json ? put_json : put_text) (d->r, d->out, &it->faults[i], it);
      if (d->json)
        fputc ('\n', d->out);
    }
}

void
td__tape_info_faults (TdTapeReader *r, FILE *out, bool json)
{
  enum
  {
    SHOWN = 8
  };
  const uint32_t n = td_tape_reader_n_faults (r);

  if (n == 0)
    return;
  if (json)
    fprintf (out, ",\"n_faults\":%" PRIu32 ",\"faults\":[", n);
  for (uint32_t i = 0; i < n && i < SHOWN; i++)
    {
      const TdTapeFault *f = td_tape_reader_fault (r, i);
      char error[128];
      const TdTapeIteration *it = td_tape_iteration_load (r, f->iteration, error, sizeof error);

      if (json)
        fputs (i == 0 ? "{" : ",{", out);
      else
        fputs (i == 0 ? "errors           " : "                 ", out);
      (json ? put_json : put_text) (r, out, f, it);
      td_tape_iteration_free (it);
    }
  if (json)
    fputc (']', out);
  else if (n > SHOWN)
    fprintf (out, "                 and %" PRIu32 " more\n", n - SHOWN);
}
