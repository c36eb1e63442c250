/* Devices in a dump: how full they are, and when events ran on them.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"

#include <inttypes.h>
#include <stdio.h>

const char *
td__tape_device_time_name (unsigned kind)
{
  static const char *const names[] = { "none", "exact", "sampled" };

  return kind < sizeof names / sizeof *names ? names[kind] : "?";
}

static void
dump_device (TapeDump *d, uint64_t iteration, const TdTapeDevice *device)
{
  const char *name = td_tape_reader_string (d->r, device->name);

  if (d->json)
    {
      fprintf (d->out,
               "{\"record\":\"device\",\"iteration\":%" PRIu64 ",\"device\":%u,\"name\":",
               iteration, device->device);
      td__tape_put_string (d->out, name);
      fprintf (d->out,
               ",\"total_bytes\":%" PRIu64 ",\"outside_bytes\":%" PRIu64
               ",\"reserved_bytes\":%" PRIu64 ",\"live_bytes\":%" PRIu64 "}\n",
               device->total_bytes, device->outside_bytes, device->reserved_bytes,
               device->live_bytes);
      return;
    }
  fputs ("  device ", d->out);
  td__tape_put_line (d->out, name);
  fprintf (
      d->out,
      ": %" PRIu64 " bytes live, %" PRIu64 " reserved, %" PRIu64 " outside, of %" PRIu64 "\n",
      device->live_bytes, device->reserved_bytes, device->outside_bytes, device->total_bytes);
}

void
td__tape_dump_devices (TapeDump *d, const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_devices; i++)
    dump_device (d, it->number, &it->devices[i]);
  for (uint32_t i = 0; i < it->n_device_times; i++)
    {
      const TdTapeDeviceTime *t = &it->device_times[i];

      if (d->json)
        fprintf (
            d->out,
            "{\"record\":\"device_time\",\"iteration\":%" PRIu64
            ",\"event\":%u,\"device\":%u,\"stream\":%u,\"kind\":\"%s\",\"start_ns\":%" PRIu64
            ",\"ns\":%" PRIu64 "}\n",
            it->number, t->event, t->device, t->stream, td__tape_device_time_name (t->kind),
            t->start_ns, t->duration_ns);
      else
        fprintf (d->out, "  on device %u: event %u at %" PRIu64 " ns for %" PRIu64 " ns (%s)\n",
                 t->device, t->event, t->start_ns, t->duration_ns,
                 td__tape_device_time_name (t->kind));
    }
}
