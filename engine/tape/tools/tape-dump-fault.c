/* Errors that were found after their operation had run, in a dump and in what `info` says of a
 * tape.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"

#include <inttypes.h>
#include <stdio.h>

/* Its members. */
static void
put_json (const TdTapeReader *r, TdJsonWriter *json, const TdTapeFault *f,
          const TdTapeIteration *it)
{
  const char *operand = td_tape_reader_string (r, f->operand);
  char text[256];

  td__json_member_uint (json, "iteration", f->iteration);
  if (f->event != TD_TAPE_NONE)
    td__json_member_uint (json, "event", f->event);
  td__json_member_string (json, "op", td_tape_reader_string (r, f->op));
  td__json_member_string (json, "operand", operand);
  td__json_member_int (json, "value", f->value);
  td__json_member_int (json, "limit", f->limit);
  td__json_member_int (json, "element", f->element);
  td__json_member_uint (json, "found_iteration", f->found_iteration);
  td__json_member_uint (json, "found_event", f->found_event);
  td_tape_fault_text (f, operand, it, text, sizeof text);
  td__json_member_string (json, "text", text);
  td__tape_json_site (json, r, "site", f->site);
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
      if (d->json)
        {
          put_json (d->r, td__tape_begin_record (d, "fault"), &it->faults[i], it);
          td__tape_end_record (d);
          continue;
        }
      fputs ("  fault ", d->out);
      put_text (d->r, d->out, &it->faults[i], it);
    }
}

void
td__tape_info_faults (TdTapeReader *r, FILE *out, TdJsonWriter *json)
{
  enum
  {
    SHOWN = 8
  };
  const uint32_t n = td_tape_reader_n_faults (r);

  if (n == 0)
    return;
  if (json)
    {
      td__json_member_uint (json, "n_faults", n);
      td__json_key (json, "faults");
      td__json_begin_array (json);
    }
  for (uint32_t i = 0; i < n && i < SHOWN; i++)
    {
      const TdTapeFault *f = td_tape_reader_fault (r, i);
      char error[128];
      const TdTapeIteration *it = td_tape_iteration_load (r, f->iteration, error, sizeof error);

      if (json)
        {
          td__json_begin_object (json);
          put_json (r, json, f, it);
          td__json_end_object (json);
        }
      else
        {
          fputs (i == 0 ? "errors           " : "                 ", out);
          put_text (r, out, f, it);
        }
      td_tape_iteration_free (it);
    }
  if (json)
    td__json_end_array (json);
  else if (n > SHOWN)
    fprintf (out, "                 and %" PRIu32 " more\n", n - SHOWN);
}
