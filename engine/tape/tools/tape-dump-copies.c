/* Copies between the host and devices in a dump of a tape.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"

#include <inttypes.h>
#include <stdio.h>

static void
put_json (FILE *out, uint64_t iteration, const TdTapeCopy *c, const char *site)
{
  fprintf (out,
           "{\"record\":\"copy\",\"iteration\":%" PRIu64
           ",\"event\":%u,\"way\":\"%s\",\"why\":\"%s\",\"device\":%u,\"bytes\":%" PRIu64,
           iteration, c->event, td_tape_copy_way_name (c->way), td_tape_copy_why_name (c->why),
           c->device, c->bytes);
  if (c->var != TD_TAPE_NONE)
    fprintf (out, ",\"var\":%u", c->var);
  if (c->flags & TD_TAPE_COPY_TIMED)
    fprintf (out, ",\"start_ns\":%" PRIu64 ",\"ns\":%" PRIu64, c->start_ns, c->duration_ns);
  if (c->device_kind != TD_TAPE_DEVICE_TIME_NONE)
    fprintf (out,
             ",\"device_time\":\"%s\",\"device_start_ns\":%" PRIu64 ",\"device_ns\":%" PRIu64
             ",\"device_stream\":%u",
             td__tape_device_time_name (c->device_kind), c->device_start_ns,
             c->device_duration_ns, c->device_stream);
  fprintf (out, ",\"before\":%s,\"unused\":%s,\"site\":",
           c->flags & TD_TAPE_COPY_BEFORE ? "true" : "false",
           c->flags & TD_TAPE_COPY_UNUSED ? "true" : "false");
  td__tape_put_string (out, site);
  fputs ("}\n", out);
}

static void
put_text (FILE *out, const TdTapeCopy *c, const char *site)
{
  fprintf (out, "  copy %s %u %s device %u, %s: %" PRIu64 " bytes",
           c->why == TD_TAPE_COPY_OP ? "of" : "before", c->event,
           c->way == TD_TAPE_COPY_TO_DEVICE ? "to" : "from", c->device,
           td_tape_copy_why_name (c->why), c->bytes);
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
        put_json (d->out, it->number, &it->copies[i], site);
      else
        put_text (d->out, &it->copies[i], site);
    }
}
