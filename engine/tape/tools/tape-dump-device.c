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
      TdJsonWriter *json = td__tape_begin_record_of (d, "device", iteration);

      td__json_member_uint (json, "device", device->device);
      td__json_member_string (json, "name", name);
      td__json_member_uint (json, "total_bytes", device->total_bytes);
      td__json_member_uint (json, "outside_bytes", device->outside_bytes);
      td__json_member_uint (json, "reserved_bytes", device->reserved_bytes);
      td__json_member_uint (json, "live_bytes", device->live_bytes);
      td__tape_end_record (d);
      return;
    }
  fputs ("  device ", d->out);
  td__tape_put_line (d->out, name);
  fprintf (
      d->out,
      ": %" PRIu64 " bytes live, %" PRIu64 " reserved, %" PRIu64 " outside, of %" PRIu64 "\n",
      device->live_bytes, device->reserved_bytes, device->outside_bytes, device->total_bytes);
}

static void
device_time_json (TapeDump *d, uint64_t iteration, const TdTapeDeviceTime *t)
{
  TdJsonWriter *json = td__tape_begin_record_of (d, "device_time", iteration);

  td__json_member_uint (json, "event", t->event);
  td__json_member_uint (json, "device", t->device);
  td__json_member_uint (json, "stream", t->stream);
  td__json_member_string (json, "kind", td__tape_device_time_name (t->kind));
  td__json_member_uint (json, "start_ns", t->start_ns);
  td__json_member_uint (json, "ns", t->duration_ns);
  td__tape_end_record (d);
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
        device_time_json (d, it->number, t);
      else
        fprintf (d->out, "  on device %u: event %u at %" PRIu64 " ns for %" PRIu64 " ns (%s)\n",
                 t->device, t->event, t->start_ns, t->duration_ns,
                 td__tape_device_time_name (t->kind));
    }
}
