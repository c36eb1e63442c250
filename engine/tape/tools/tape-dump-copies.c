/* Copies between the host and devices in a dump of a tape.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"
#include "plural.h"

#include <inttypes.h>
#include <stdio.h>

static void
put_json (TapeDump *d, uint64_t iteration, const TdTapeCopy *c, const char *site)
{
  TdJsonWriter *json = td__tape_begin_record_of (d, "copy", iteration);

  td__json_member_uint (json, "event", c->event);
  td__json_member_string (json, "way", td_tape_copy_way_name (c->way));
  td__json_member_string (json, "why", td_tape_copy_why_name (c->why));
  td__json_member_uint (json, "device", c->device);
  td__json_member_uint (json, "bytes", c->bytes);
  if (c->var != TD_TAPE_NONE)
    td__json_member_uint (json, "var", c->var);
  if (c->flags & TD_TAPE_COPY_TIMED)
    {
      td__json_member_uint (json, "start_ns", c->start_ns);
      td__json_member_uint (json, "ns", c->duration_ns);
    }
  if (c->device_kind != TD_TAPE_DEVICE_TIME_NONE)
    {
      td__json_member_string (json, "device_time", td__tape_device_time_name (c->device_kind));
      td__json_member_uint (json, "device_start_ns", c->device_start_ns);
      td__json_member_uint (json, "device_ns", c->device_duration_ns);
      td__json_member_uint (json, "device_stream", c->device_stream);
    }
  td__json_member_bool (json, "before", c->flags & TD_TAPE_COPY_BEFORE);
  td__json_member_bool (json, "unused", c->flags & TD_TAPE_COPY_UNUSED);
  td__json_member_string (json, "site", site);
  td__tape_end_record (d);
}

static void
put_text (FILE *out, const TdTapeCopy *c, const char *site)
{
  fprintf (out, "  copy %s %u %s device %u, %s: %" PRIu64 " %s",
           c->why == TD_TAPE_COPY_OP ? "of" : "before", c->event,
           c->way == TD_TAPE_COPY_TO_DEVICE ? "to" : "from", c->device,
           td_tape_copy_why_name (c->why), c->bytes, td_plural (c->bytes, "byte", "bytes"));
  if (c->var != TD_TAPE_NONE)
    fprintf (out, " v%u", c->var);
  if (*site != '\0')
    fprintf (out, " %s", site);
  if (c->flags & TD_TAPE_COPY_BEFORE)
    fputs (" before the iteration", out);
  if (c->flags & TD_TAPE_COPY_UNUSED)
    fputs (" never used", out);
  if (c->flags & TD_TAPE_COPY_TIMED)
    fprintf (out, " at %" PRIu64 " ns for %" PRIu64 " ns", c->start_ns, c->duration_ns);
  if (c->device_kind != TD_TAPE_DEVICE_TIME_NONE)
    fprintf (out, ", there at %" PRIu64 " ns for %" PRIu64 " ns (%s)", c->device_start_ns,
             c->device_duration_ns, td__tape_device_time_name (c->device_kind));
  fputc ('\n', out);
}

void
td__tape_dump_copies (TapeDump *d, const TdTapeIteration *it)
{
  char site[512];

  for (uint32_t i = 0; i < it->n_copies; i++)
    {
      td_tape_reader_site_text (d->r, it->copies[i].site, site, sizeof site);
      if (d->json)
        put_json (d, it->number, &it->copies[i], site);
      else
        put_text (d->out, &it->copies[i], site);
    }
}
